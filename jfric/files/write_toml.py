"""Writing of problems as TOML in SI units, from which reading gives an equal problem."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import lazy_loader
import numpy as np

from jfric.errors import ProblemError
from jfric.files.codec import NUMBER, Place, System
from jfric.files.config import Config
from jfric.files.element_codec import element_codec, is_python_only
from jfric.files.settings_tables import TABLES
from jfric.system.body import COORDINATES, Body, coordinates, dofs_of
from jfric.system.expression import Expression
from jfric.system.linkage import has_joints
from jfric.system.naming import START
from jfric.system.problem import Problem

#: Slow to import.
tomlkit: Any = lazy_loader.load("tomlkit")


def to_toml(problem: Problem) -> str:
    """``problem`` as TOML text in SI units; ``loads`` gives an equal problem.

    Raises :class:`jfric.ProblemError` for content that a file cannot hold: a
    :class:`jfric.ForceField`, an event with a Python function, a function of time or a law of your
    own class. For the problem of :class:`jfric.Problem`::

        >>> print(jfric.to_toml(problem).split("\\n\\n")[4])
        [friction]
        dof = "u"
        mu = 0.1
        N = 1000.0 # N
    """
    return dump(problem)


def dump(config: Config | Problem) -> str:
    """A configuration or a bare problem as TOML text in SI units."""
    if isinstance(config, Problem):
        config = Config(config)
    problem, document = config.problem, tomlkit.document()
    for name, value in _tables(config).items():
        document[name] = value
    for section, group in problem.elements.items():
        tables = {name: _element(section, name, x, problem) for name, x in group.items()}
        if list(tables) == [section]:
            document[section] = tables[section]
        elif tables:
            document[section] = _named(section, tables)
    if initial := _initial(problem):
        document["initial"] = _super_table(initial)
    for name, value in _settings(config).items():
        document[name] = value
    if config.checks:
        document.add(tomlkit.nl())
        document["check"] = tomlkit.aot()
        for check in config.checks:
            table = {k: x for k, x in vars(check).items() if x not in (None, "")}
            table["quantity"] = str(check.quantity)
            document["check"].append(tomlkit.item(table))
    return tomlkit.dumps(document)


def _tables(config: Config) -> dict[str, Any]:
    """Tables that come before the elements."""
    problem, place = config.problem, Place()
    found: dict[str, Any] = {
        key: value for key in ("title", "source", "description") if (value := getattr(config, key))
    }
    own = dofs_of(problem.section("body"))
    for name, link in problem.section("link").items():
        own |= link.coordinates(name)
    others = {dof: k for dof, k in problem.dofs.items() if dof not in own}
    if list(problem.dofs) != [*others, *own]:
        others = problem.dofs  # their order has to be kept
    if others:
        plain = all(k == "translation" for k in others.values())
        found["dofs"] = list(others) if plain else dict(others)
    span, outputs = problem.time, config.outputs
    times = {"end": span.end} | ({} if is_zero(span.start) else {"start": span.start})
    found["time"] = {k: NUMBER.write(x, place.key("time").key(k)) for k, x in times.items()}
    found["time"]["outputs"] = outputs if isinstance(outputs, int) else list(outputs)
    if problem.parameters:
        found["parameters"] = {
            k: NUMBER.write(x, place.key(k)) for k, x in problem.parameters.items()
        }
    return found


def _initial(problem: Problem) -> dict[str, Any]:
    """Initial states by degree of freedom; bodies have their own."""
    of_bodies, found = dofs_of(problem.section("body")), {}
    for dof, state in problem.initial.items():
        # Values that follow from chosen velocities are written with these.
        given = {x: getattr(state, x) for x in "qv" if (dof, x) not in problem.follows}
        if dof not in of_bodies and not all(map(is_zero, given.values())):
            values = {x: NUMBER.write(value, Place(dof)) for x, value in given.items()}
            units = {x: START[x].dimension(problem.dofs[dof]) for x in "qv"}
            found[dof] = _table(values, units)
    return found


def _settings(config: Config) -> dict[str, Any]:
    """Tables that come after the elements, without checks."""
    place, matrices = Place("matrices"), vars(config.problem.matrices)
    tables: dict[str, Any] = {name: key.codec for name, key in TABLES.items()}
    found: dict[str, Any] = {
        "matrices": {k: _rows(x, place) for k, x in matrices.items() if x is not None},
        **{k: t.kept(x) for k, t in tables.items() if (x := getattr(config, k))},
    }
    if config.controller is not None:
        found["controller"] = _element(
            "controller", "controller", config.controller, config.problem
        )
    return {k: x for k, x in found.items() if x}


def _rows(matrix: Any, place: Place) -> list[Any]:
    """Rows of numbers and expressions."""
    if isinstance(matrix, (tuple, list)):
        return [[NUMBER.write(entry, place) for entry in row] for row in matrix]
    return NUMBER.write(matrix, place)


def _with_start(name: str, element: Body, problem: Problem) -> Body:
    """A body with the parts of its start that do not follow from joints."""
    given: dict[str, Any] = {}
    for coordinate, dof in zip(COORDINATES, coordinates(name), strict=True):
        for what in "qv":
            value = getattr(problem.initial[dof], what)
            follows = (dof, what) in problem.follows
            # With joints, values that are not written follow from them.
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
    reserved = [name for name in tables if name in element_codec(section).table]
    if reserved:
        raise ProblemError(
            f"{section}.{reserved[0]}: an element in a file cannot have the "
            "name of a field; rename it"
        )
    return _super_table(tables)


def _super_table(tables: dict[str, Any]):
    """Tables by name that need no line of their own."""
    result = tomlkit.table(is_super_table=True)
    for name, table in tables.items():
        result[name] = table
    return result


def _table(values: dict[str, Any], units: dict[str, Any]):
    """A table with the unit of each number as a comment."""
    result = tomlkit.table()
    for key, value in values.items():
        result[key] = _inline(value)
        if units.get(key) is not None and units[key].unit and isinstance(value, float):
            item: Any = result.value.item(key)
            item.comment(units[key].unit)
    return result


def _inline(value: Any) -> Any:
    """A value on one line, with its tables."""
    if isinstance(value, list):
        return [_inline(x) for x in value]
    if not isinstance(value, dict):
        return value
    table = tomlkit.inline_table()
    for key, x in value.items():
        table[key] = _inline(x)
    return table


def is_zero(value: Any) -> bool:
    """Whether a value is known to be zero."""
    return not isinstance(value, Expression) and bool(np.all(np.asarray(value) == 0.0))


def _element(section: str, name: str, element: eqx.Module, problem: Problem):
    place = Place(f"{section}.{name}", system=System(problem.dofs))
    if is_python_only(type(element)):
        raise place.error(
            f"a {type(element).__name__} holds a Python function and cannot be written to a file"
        )
    if isinstance(element, Body):
        element = _with_start(name, element, problem)
    codec = element_codec(section)
    return _table(codec.write(element, place), codec.measures(element, place))
