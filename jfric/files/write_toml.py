"""Writing of problems as TOML in SI units, such that reading gives an equal problem."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import equinox as eqx

from jfric.errors import ProblemError
from jfric.files.config import Config
from jfric.files.position_tables import position_table
from jfric.files.write_tables import check_table, controller_table
from jfric.files.write_values import (
    as_written,
    function_values,
    inline_table,
    is_zero,
    law_values,
    matrix_rows,
)
from jfric.system.body import COORDINATES, Body, coordinates, dofs_of
from jfric.system.dimensions import dimension
from jfric.system.direction import Direction, kind
from jfric.system.elements import Along, Gap
from jfric.system.linkage import has_joints
from jfric.system.problem import Problem


def to_toml(problem: Problem) -> str:
    """``problem`` as TOML text in SI units; ``loads`` gives an equal problem.

    Raises :class:`jfric.ProblemError` for what a file cannot hold: a :class:`jfric.ForceField`,
    an event with a Python function, a function of time or a law of a class of your own. With the
    problem of :class:`jfric.Problem`::

        >>> print(jfric.to_toml(problem).split("\\n\\n")[4])
        [friction]
        dof = "u"
        mu = 0.1
        N = 1000.0 # N
    """
    return dump(problem)


def dump(config: Config | Problem) -> str:
    """A configuration or a bare problem as TOML text in SI units."""
    import tomlkit  # slow to import, only needed here

    if isinstance(config, Problem):
        config = Config(config)
    problem = config.problem
    document = tomlkit.document()
    for key in ("title", "source", "description"):
        if getattr(config, key):
            document[key] = getattr(config, key)
    own = dofs_of(problem.section("body"))
    others = {dof: k for dof, k in problem.dofs.items() if dof not in own}
    if list(problem.dofs) != [*others, *own]:
        others = problem.dofs  # in an order of their own
    if others:
        plain = all(k == "translation" for k in others.values())
        document["dofs"] = list(others) if plain else dict(others)
    document["time"] = _time(config)
    if problem.parameters:
        document["parameters"] = {k: as_written(v, k) for k, v in problem.parameters.items()}
    for section, group in problem.elements.items():
        tables = {
            name: _element(section, name, _with_start(section, name, element, problem), problem)
            for name, element in group.items()
        }
        if list(tables) == [section]:
            document[section] = tables[section]
        elif tables:
            document[section] = _named(section, tables)
    of_bodies = dofs_of(problem.section("body"))
    starts = {
        dof: {
            field: getattr(state, field)
            for field in "qv"
            # What velocities of the user's choice give has its home there.
            if (dof, field) not in problem.follows
        }
        for dof, state in problem.initial.items()
        if dof not in of_bodies
    }
    initial = {
        dof: _table(
            {field: as_written(value, dof) for field, value in given.items()},
            {field: dimension("initial", field, problem.dofs[dof]) for field in "qv"},
        )
        for dof, given in starts.items()
        if not all(map(is_zero, given.values()))
    }
    if initial:
        document["initial"] = _named("initial", initial)
    matrices = {
        name: matrix_rows(value)
        for name in ("M", "C", "K")
        if (value := getattr(problem.matrices, name)) is not None
    }
    if matrices:
        document["matrices"] = matrices
    if config.solver:
        document["solver"] = dict(config.solver)
    if config.statics:
        document["statics"] = dict(config.statics)
    if config.periodic:
        document["periodic"] = dict(config.periodic)
    if config.response:
        document["response"] = dict(config.response)
    if config.data is not None:
        document["data"] = dict(config.data.table)
    if config.fit:
        document["fit"] = dict(config.fit["table"])
    if config.controller is not None:
        document["controller"] = controller_table(config.controller)
    if config.checks:
        document.add(tomlkit.nl())
        document["check"] = tomlkit.aot()
        for check in config.checks:
            document["check"].append(tomlkit.item(check_table(check)))
    return tomlkit.dumps(document)


def _with_start(section: str, name: str, element: Any, problem: Problem) -> Any:
    """``element``, a body with the parts of its start that do not follow from joints."""
    if section != "body":
        return element
    given: dict[str, Any] = {}
    for coordinate, dof in zip(COORDINATES, coordinates(name), strict=True):
        for what in "qv":
            value = getattr(problem.initial[dof], what)
            follows = (dof, what) in problem.follows
            # Where there are joints, what is not written follows from them.
            default = is_zero(value) and not has_joints(problem)
            given[coordinate + what] = None if follows or default else value

    def both(what: str) -> Any:
        pair = [(given[c + what], problem.initial[f"{name}_{c}"]) for c in "xy"]
        if all(value is None for value, _ in pair):
            return None
        return tuple(getattr(state, what) if value is None else value for value, state in pair)

    at, v = both("q"), both("v")
    return Body(element.m, element.J, at, given["phiq"], v, given["phiv"], element.points)


def _named(section: str, tables: dict[str, Any]):
    import tomlkit

    from jfric.files.schema import element_model

    if section != "initial":
        reserved = [name for name in tables if name in element_model(section).model_fields]
        if reserved:
            raise ProblemError(
                f"{section}.{reserved[0]}: an element in a file cannot have the "
                "name of a field; rename it"
            )
    result = tomlkit.table(is_super_table=True)
    for name, table in tables.items():
        result[name] = table
    return result


def _table(values: dict[str, Any], units: dict[str, Any]):
    """A table with the unit of each number as a comment."""
    import tomlkit

    result = tomlkit.table()
    for key, value in values.items():
        result[key] = value
        if units.get(key) is not None and units[key].unit and isinstance(value, float):
            item: Any = result.value.item(key)
            item.comment(units[key].unit)
    return result


def _time(config: Config):
    span = config.problem.time
    outputs = config.outputs
    values = {"end": as_written(span.end, "time.end")}
    if not is_zero(span.start):
        values["start"] = as_written(span.start, "time.start")
    values["outputs"] = outputs if isinstance(outputs, int) else list(outputs)
    return values


def _element(section: str, name: str, element: eqx.Module, problem: Problem):
    from jfric.files.schema import PYTHON_ONLY, roles

    where = f"{section}.{name}"
    if section in PYTHON_ONLY:
        raise ProblemError(
            f"{where}: a {type(element).__name__} holds a Python function and "
            "cannot be written to a file"
        )
    result: dict[str, Any] = {}
    units = {}
    for field, role in roles(section).items():
        value = getattr(element, field)
        if value is None:
            continue
        if role == "direction" and field == "direction":
            result |= _attachment(value, where, problem.dofs)
        elif role == "direction":
            result[field] = _direction(value, where, problem.dofs)
        elif role == "plane":
            result[field] = [
                _formula(d.function, f"{where}.{field}")
                if isinstance(d, Along)
                else _direction(d, where, problem.dofs)
                for d in value
            ]
        elif role == "law":
            result |= law_values(value, where)
        elif role == "function" and isinstance(value, tuple):
            result[field] = [function_values(x, f"{where}.{field}") for x in value]
        elif role == "function":
            result[field] = function_values(value, f"{where}.{field}")
        elif role == "formula or several":
            texts = [_formula(text, f"{where}.{field}") for text in value]
            result[field] = texts[0] if len(texts) == 1 else texts
        elif role == "elements":
            result[field] = _direction(value, where, {})
        elif role in ("choice", "formula", "formulas"):
            result[field] = _formula(value, f"{where}.{field}") if role != "choice" else value
        elif role in _SHAPED:
            default = next(f.default for f in dataclasses.fields(element) if f.name == field)
            value = _shape(role, value, f"{where}.{field}")
            if value != {} and (role != "flag" or value != default):
                result[field] = value
        elif isinstance(value, Gap):
            result[field] = _formula(value.function, f"{where}.{field}")
        else:
            result[field] = as_written(value, f"{where}.{field}")
        of_kind = kind(_side(element, field), problem.dofs)
        of_kind = getattr(element, "kind", of_kind) if section == "velocity" else of_kind
        units[field] = dimension(section, field, of_kind)
    return _table(result, units)


#: What files hold of fields that are no plain numbers, laws or directions.
_SHAPED = (
    *("count", "text", "texts", "bodies", "corners", "line", "flag", "factor", "pair", "pairs"),
)


def _shape(role: str, value: Any, where: str) -> Any:
    """References to points as they are, and coordinates."""
    if role == "pairs":
        return inline_table({k: [as_written(x, where) for x in at] for k, at in value.items()})
    if role == "factor":
        return inline_table(position_table(value, where, as_written))
    if role == "pair":
        return [as_written(x, where) for x in value]
    return list(value) if isinstance(value, tuple) else value


def _formula(value: Any, where: str) -> Any:
    """A text, or texts by name."""
    if isinstance(value, tuple):
        return inline_table({key: _formula(text, f"{where}.{key}") for key, text in value})
    if not isinstance(value, str):
        raise ProblemError(f"{where}: a Python function cannot be written to a file")
    return value


def _side(element: eqx.Module, field: str) -> Direction | None:
    direction = getattr(element, "direction", None)
    if isinstance(direction, Direction):
        return direction
    tangent = getattr(element, "tangent", None)
    if getattr(element, "plane", None) is not None:
        tangent = element.plane[0]  # type: ignore[attr-defined]
        if not hasattr(element, "normal"):
            return tangent
        tangent = tangent if isinstance(tangent, Direction) else None
    return tangent if field == "belt" and tangent is not None else getattr(element, "normal", None)


def _attachment(direction: Direction, where: str, dofs: Mapping[str, str]) -> dict[str, Any]:
    form = _direction(direction, where, dofs)
    if isinstance(form, str):
        return {"dof": form}
    return form if "between" in form else {"direction": form}


def _direction(direction: Direction, where: str, dofs: Mapping[str, str]) -> str | dict[str, Any]:
    names, signs = direction.names, direction.signs
    if signs is None:
        coefficients = direction.coefficients or {}
        units = _units_of(direction, dofs)
        of = {n: _with_unit(as_written(coefficients[n], where), units.get(n)) for n in names}
        return inline_table(of)
    if signs == (1,):
        return names[0]
    if signs == (-1,):
        return inline_table({"between": [names[0], "ground"]})
    if signs in ((-1, 1), (1, -1)):
        return inline_table({"between": list(names if signs[0] < 0 else names[::-1])})
    return inline_table({n: float(s) for n, s in zip(names, signs, strict=True)})


def _units_of(direction: Direction, dofs: Mapping[str, str]) -> dict[str, str]:
    """Units that tell a reader what the elongation measures, by degree of freedom."""
    unit = {"translation": "m", "rotation": "1/m"}.get(direction.measures or "", "")
    return {n: unit for n in direction.names if unit and dofs.get(n, "") != direction.measures}


def _with_unit(value: Any, unit: str | None) -> Any:
    if unit is None or not isinstance(value, float):
        return value
    return f"{value!r} {unit}" if unit == "m" else f"{value!r} /m"
