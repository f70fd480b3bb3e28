"""Writing of problems as TOML in SI units, such that reading gives an equal problem."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import equinox as eqx
import numpy as np
from jax.core import Tracer

from jfric.errors import ProblemError
from jfric.files.config import Config
from jfric.files.dimensions import SHAPES, dimension
from jfric.files.position_tables import position_table
from jfric.files.write_tables import check_table, controller_table
from jfric.system.body import COORDINATES, Body, coordinates, dofs_of
from jfric.system.direction import Direction, kind
from jfric.system.elements import Along, Gap
from jfric.system.expression import Expression
from jfric.system.functions import (
    AbstractFunction,
    Constant,
    Harmonic,
    PiecewiseLinear,
    Ramp,
    Steps,
    Sum,
)
from jfric.system.laws import AbstractLaw, Directional, PerAxis
from jfric.system.linkage import has_joints
from jfric.system.problem import Problem
from jfric.system.wrapped import Clipped, Until


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
        document["parameters"] = {k: _value(v, k) for k, v in problem.parameters.items()}
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
            {field: _value(value, dof) for field, value in given.items()},
            {field: dimension("initial", field, problem.dofs[dof]) for field in "qv"},
        )
        for dof, given in starts.items()
        if not all(map(_is_zero, given.values()))
    }
    if initial:
        document["initial"] = _named("initial", initial)
    matrices = {
        name: _matrix(value)
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
            default = _is_zero(value) and not has_joints(problem)
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
    values = {"end": _value(span.end, "time.end")}
    if not _is_zero(span.start):
        values["start"] = _value(span.start, "time.start")
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
            result |= _law(value, where)
        elif role == "function" and isinstance(value, tuple):
            result[field] = [_function(x, f"{where}.{field}") for x in value]
        elif role == "function":
            result[field] = _function(value, f"{where}.{field}")
        elif role == "formula or several":
            texts = [_formula(text, f"{where}.{field}") for text in value]
            result[field] = texts[0] if len(texts) == 1 else texts
        elif role == "elements":
            result[field] = _direction(value, where, {})
        elif role in ("choice", "formula", "formulas"):
            result[field] = _formula(value, f"{where}.{field}") if role != "choice" else value
        elif role in SHAPES.values():
            default = next(f.default for f in dataclasses.fields(element) if f.name == field)
            value = _shape(role, value, f"{where}.{field}")
            if value != {} and (role != "flag" or value != default):
                result[field] = value
        elif isinstance(value, Gap):
            result[field] = _formula(value.function, f"{where}.{field}")
        else:
            result[field] = _value(value, f"{where}.{field}")
        of_kind = kind(_side(element, field), problem.dofs)
        of_kind = getattr(element, "kind", of_kind) if section == "velocity" else of_kind
        units[field] = dimension(section, field, of_kind)
    return _table(result, units)


def _shape(role: str, value: Any, where: str) -> Any:
    """References to points as they are, and coordinates."""
    if role == "pairs":
        return _inline({k: [_value(x, where) for x in at] for k, at in value.items()})
    if role == "factor":
        return _inline(position_table(value, where, _value))
    if role == "pair":
        return [_value(x, where) for x in value]
    return list(value) if isinstance(value, tuple) else value


def _formula(value: Any, where: str) -> Any:
    """A text, or texts by name."""
    if isinstance(value, tuple):
        return _inline({key: _formula(text, f"{where}.{key}") for key, text in value})
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
        return _inline({n: _with_unit(_value(coefficients[n], where), units.get(n)) for n in names})
    if signs == (1,):
        return names[0]
    if signs == (-1,):
        return _inline({"between": [names[0], "ground"]})
    if signs in ((-1, 1), (1, -1)):
        return _inline({"between": list(names if signs[0] < 0 else names[::-1])})
    return _inline({n: float(s) for n, s in zip(names, signs, strict=True)})


def _units_of(direction: Direction, dofs: Mapping[str, str]) -> dict[str, str]:
    """Units that tell a reader what the elongation measures, by degree of freedom."""
    unit = {"translation": "m", "rotation": "1/m"}.get(direction.measures or "", "")
    return {n: unit for n in direction.names if unit and dofs.get(n, "") != direction.measures}


def _with_unit(value: Any, unit: str | None) -> Any:
    if unit is None or not isinstance(value, float):
        return value
    return f"{value!r} {unit}" if unit == "m" else f"{value!r} /m"


def _law(law: AbstractLaw, where: str) -> dict[str, Any]:
    from jfric.files.build import pick_law
    from jfric.system.laws import LAWS

    names = {cls: name for name, cls in LAWS.items()}
    if type(law) not in names:
        raise ProblemError(
            f"{where}: the law {type(law).__name__} is not in jfric.system.laws.LAWS "
            "and cannot be written to a file"
        )
    result: dict[str, Any] = {}
    for field in dataclasses.fields(law):
        value = getattr(law, field.name)
        if value is None or value is False:
            continue
        if isinstance(value, Directional):
            value = _inline(
                {k: _at_knots(getattr(value, k), where) for k in ("positive", "negative")}
            )
        elif isinstance(value, PerAxis):
            value = [_value(x, where) for x in (value.first, value.second)]
        elif value is not True:
            value = _at_knots(value, where)
        result[field.name] = value
    if pick_law(set(result), LAWS) is not type(law):
        result["law"] = names[type(law)]
    return result


def _at_knots(value: Any, where: str) -> Any:
    """A number, or those at the knots of a curve."""
    if isinstance(value, tuple):
        return [_value(x, where) for x in value]
    return _value(value, where)


def _function(function: AbstractFunction, where: str) -> Any:
    match function:
        case Constant():
            return _value(function.value, where)
        case Steps() | PiecewiseLinear():
            form = "steps" if isinstance(function, Steps) else "linear"
            fields = ("times", "values")
        case Ramp():
            form, fields = "ramp", ("rate", "value")
        case Harmonic():
            form, fields = "harmonic", ("amplitude", "omega", "phase")
        case Until():
            fields = {f: _value(getattr(function, f), where) for f in ("end", "after")}
            return _inline({"until": {"function": _function(function.function, where), **fields}})
        case Clipped():
            periods = {"periods": function.periods} if function.periods else {}
            inner = {"function": _function(function.function, where)}
            return _inline({"clipped": inner | periods})
        case Sum():
            return _inline({"sum": [_function(term, where) for term in function.terms]})
        case _:
            raise ProblemError(
                f"{where}: the function of time {type(function).__name__} cannot be "
                "written to a file"
            )
    return _inline({form: {f: _value(getattr(function, f), where) for f in fields}})


def _inline(values: dict[str, Any]):
    import tomlkit

    table = tomlkit.inline_table()
    for key, value in values.items():
        table[key] = _inline(value) if type(value) is dict else value
    return table


def _value(value: Any, where: str) -> Any:
    if isinstance(value, Expression):
        return value.text
    if isinstance(value, Tracer):
        raise ProblemError(f"{where}: a value being traced by jax cannot be written to a file")
    return np.asarray(value, dtype=float).tolist()


def _matrix(value: Any) -> list:
    if isinstance(value, (tuple, list)):
        return [[_value(entry, "matrices") for entry in row] for row in value]
    return _value(value, "matrices")


def _is_zero(value: Any) -> bool:
    return not isinstance(value, Expression) and bool(np.all(np.asarray(value) == 0.0))
