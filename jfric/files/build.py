"""Elements, initial state and matrices from validated tables."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import equinox as eqx
import numpy as np

from jfric.errors import ProblemError, first_line
from jfric.files.directions import direction
from jfric.files.function_tables import function, number, numbers
from jfric.files.position_tables import position_factor
from jfric.system.dimensions import dimension, list_dimensions, matrix_dimension
from jfric.system.direction import Direction, kind
from jfric.system.elements import SECTIONS, is_formula
from jfric.system.laws import KNOTS, LAWS, AbstractLaw, Directional, PerAxis
from jfric.system.problem import InitialState, Matrices
from jfric.system.units import Dimension

if TYPE_CHECKING:
    from jfric.files import tables


#: Roles of fields that are taken as they are.
_AS_GIVEN = (
    *("choice", "formula", "formulas", "formula or several"),
    *("text", "texts", "bodies", "corners", "line", "flag", "count"),
)


def element(
    section: str,
    where: str,
    table: tables.Element,
    dofs: Mapping[str, str],
    bases: Collection[str],
    folder: Path,
    lengths: Collection[str] = (),
) -> eqx.Module:
    """The element that ``table`` describes; raises :class:`jfric.ProblemError`.

    ``lengths``: shared parameters that were given with a unit.
    """
    from jfric.files.schema import roles

    given = table.given()
    held = roles(section)
    directions = {
        field: direction(field, given, where, dofs, (*dofs, *bases), lengths)
        for field, role in held.items()
        if role == "direction"
    }
    values: dict[str, Any] = {k: d for k, d in directions.items() if d is not None}
    if given.get("plane") is not None:
        entries = {f"plane[{i}]": entry for i, entry in enumerate(given["plane"], 1)}
        values["plane"] = tuple(
            text
            if section == "contact" and is_formula(text)
            else direction(at, entries, where, dofs, (*dofs, *bases), lengths)
            for at, text in entries.items()
        )
        # What sliding measures is the same along both.
        first = values["plane"][0]
        if isinstance(first, Direction):
            side = "tangent" if section == "contact" else "direction"
            directions[side] = directions.get(side) or first
    for field, role in held.items():
        if role == "law":
            # Sliding is along the tangent.
            slides = directions.get("direction", directions.get("tangent"))
            slides = "translation" if "point" in given else kind(slides, dofs)
            values[field] = law(section, given, where, slides)
        if role in ("law", "direction", "plane") or field not in given:
            continue
        # A belt moves along the tangent, a gap along the normal.
        side = "tangent" if field == "belt" and "tangent" in directions else "normal"
        of_kind = kind(directions.get("direction", directions.get(side)), dofs)
        of_kind = "translation" if "point" in given else of_kind
        if section == "velocity":
            of_kind = given.get("kind", "translation")
        measures = dimension(section, field, of_kind)
        at, value = f"{where}.{field}", given[field]
        if (section, field) == ("contact", "gap") and not {"normal", "point"} & set(given):
            # Without a direction it is a function of positions.
            role = "formula" if isinstance(given[field], str) else role
        if role in _AS_GIVEN:
            values[field] = value
        elif role == "function" and isinstance(value, list):
            # The third belongs to the spin.
            turns = dimension(section, field, kind(directions.get("spin"), dofs))
            each = enumerate(zip(value, (measures, measures, turns), strict=False), 1)
            values[field] = [function(v, f"{at}[{i}]", x, folder) for i, (v, x) in each]
        elif role == "factor":
            values[field] = position_factor(value, at, measures)
        elif role == "elements":
            values[field] = _elements(value, at)
        elif role == "pair":
            values[field] = _pair(value, at, measures)
        elif role == "pairs":
            values[field] = {k: _pair(v, f"{at}.{k}", measures) for k, v in value.items()}
        elif role == "function":
            values[field] = function(value, at, measures, folder)
        elif role == "list":
            each = list_dimensions(section, field, of_kind, len(value))
            values[field] = [
                numbers([v], at, of, first=i)[0]
                for i, (v, of) in enumerate(zip(value, each, strict=True), 1)
            ]
        else:
            values[field] = number(value, at, measures)
    return SECTIONS[section](**values)


def _elements(value: Any, where: str) -> Any:
    """Names of elements: one, or several with factors."""
    if isinstance(value, str):
        return value
    return {name: number(v, f"{where}.{name}", None) for name, v in value.items()}


def _pair(value: list, where: str, measures: Dimension | None) -> list:
    return [number(x, f"{where}[{i}]", measures) for i, x in enumerate(value, 1)]


def law(
    section: str, given: Mapping[str, Any], where: str, of_kind: str | None
) -> AbstractLaw | None:
    """The friction law whose fields are given (``law = "..."`` decides between several).

    ``of_kind``: whether sliding is a translation or a rotation, None where it is both.
    """
    from jfric.files.schema import law_fields, laws_of

    keys = {k for k in law_fields(section) if k in given}
    name = given.get("law")
    if not keys and name is None:
        return None
    candidates = {name: LAWS[name]} if name is not None else laws_of(section)
    chosen = pick_law(keys, candidates)
    if chosen is None:
        forms = ", or ".join(" and ".join(_required(cls)) for cls in candidates.values())
        raise ProblemError(
            f"{where}: found {', '.join(sorted(keys)) or 'no coefficient'}, "
            f"a friction law needs {forms}"
        )
    return chosen(
        **{k: _coefficient(given[k], f"{where}.{k}", k, of_kind) for k in given if k in keys}
    )


def pick_law(
    keys: set[str], candidates: Mapping[str, type[AbstractLaw]]
) -> type[AbstractLaw] | None:
    """The first law that needs no more than ``keys`` and knows them all."""
    for cls in candidates.values():
        if set(_required(cls)) <= keys <= {f.name for f in dataclasses.fields(cls)}:
            return cls
    return None


def _required(law: type[AbstractLaw]) -> list[str]:
    return [f.name for f in dataclasses.fields(law) if f.default is dataclasses.MISSING]


def _coefficient(value: Any, where: str, field: str, of_kind: str | None):
    measures = dimension("", field, of_kind)
    if isinstance(value, bool):
        return value
    if field in KNOTS:
        return _at_knots(value, where, measures)
    if isinstance(value, (int, float, str)):
        return number(value, where, measures)
    if isinstance(value, list):
        return PerAxis(*(number(v, f"{where}[{i}]", measures) for i, v in enumerate(value, 1)))
    return Directional(*(number(v, f"{where}.{k}", measures) for k, v in value.given().items()))


def _at_knots(value: Any, where: str, measures: Dimension | None):
    """Numbers at the knots of a curve, or those of both directions of sliding."""
    if not isinstance(value, list):
        sides = value.given().items()
        return Directional(*(_at_knots(v, f"{where}.{side}", measures) for side, v in sides))
    return tuple(number(v, f"{where}[{i}]", measures) for i, v in enumerate(value, 1))


def initial(
    states: Mapping[str, tables.Initial], dofs: Mapping[str, str]
) -> dict[str, InitialState]:
    """Initial states; those of unknown degrees of freedom are left to the problem's own check."""
    return {
        dof: InitialState(
            **{
                field: number(
                    value, f"initial.{dof}.{field}", dimension("initial", field, dofs.get(dof))
                )
                for field, value in table.given().items()
            }
        )
        for dof, table in states.items()
    }


def matrices(table: tables.MatricesTable, dofs: Mapping[str, str], folder: Path) -> Matrices:
    """Full matrices from rows or files."""
    result = {}
    for name, value in table.given().items():
        where = f"matrices.{name}"
        if isinstance(value, str):
            result[name] = _checked(_matrix_file(folder / value, where), where, len(dofs))
        else:
            result[name] = _rows(name, value, where, dofs)
    return Matrices(**result)


def _rows(name: str, rows: list, where: str, dofs: Mapping[str, str]):
    n, kinds = len(dofs), list(dofs.values())
    widths = sorted({len(row) for row in rows})
    if len(rows) != n or widths != [n]:
        found = f"{len(rows)} x {' or '.join(map(str, widths))}" if rows else "no"
        raise ProblemError(
            f"{where}: found {found} entries, needed are {n} x {n} "
            "(a row and a column for each degree of freedom)"
        )
    entries = [
        [
            number(v, f"{where}[{i + 1}][{j + 1}]", matrix_dimension(name, kinds[i], kinds[j]))
            for j, v in enumerate(row)
        ]
        for i, row in enumerate(rows)
    ]
    if all(isinstance(v, float) for row in entries for v in row):
        return _checked(np.asarray(entries), where, n)
    return tuple(tuple(_leaf(v) for v in row) for row in entries)


def _leaf(value):
    from jfric.system.fields import scalar

    return scalar(value)


def _checked(matrix: np.ndarray, where: str, n: int):
    if matrix.shape != (n, n):
        raise ProblemError(f"{where}: found shape {matrix.shape}, needed is ({n}, {n})")
    return _leaf(matrix)


def _matrix_file(path: Path, where: str) -> np.ndarray:
    """A matrix from a NumPy (.npy) or Matrix Market (.mtx) file."""
    if path.suffix not in (".npy", ".mtx"):
        raise ProblemError(f"{where}: found {path.name!r}, allowed are files .npy and .mtx")
    if not path.is_file():
        raise ProblemError(f"{where}: no file {str(path)!r}")
    try:
        if path.suffix == ".npy":
            return np.asarray(np.load(path, allow_pickle=False), dtype=float)
        from scipy.io import mmread

        matrix = mmread(path)
        return np.asarray(matrix if isinstance(matrix, np.ndarray) else matrix.toarray(), float)
    except Exception as error:  # whatever the reader of a format says of a damaged file
        raise ProblemError(f"{where}: cannot read {str(path)!r} ({first_line(error)})") from None
