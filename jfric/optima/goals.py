"""Objective and constraints of an optimisation: formulas in observables and parameters."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jfric.errors import ProblemError, quoted, within
from jfric.results.abstract_observables import Observable, renamed
from jfric.results.event_observables import During, EventCount, LastEventTime, StopTime
from jfric.results.grammar import parse_observable
from jfric.system.expression import WORDS, Expression
from jfric.system.formula import Formula, read_formula, require_formula
from jfric.system.naming import find_path, get_parameter, parameters, path_dimension
from jfric.system.problem import Problem
from jfric.system.units import UnitError

#: An observable with a number in parentheses, which formulas of quantities do not know.
_CALL = re.compile(r"([^\W\d]\w*(?:\.\w+)*)\(([^()]*)\)")
_RELATION = re.compile(r"==|<=|>=")
_FORM = "'final.x == 1 m', 'max.v.x <= 0.5' or 'final.x >= time.end'"


@dataclass(frozen=True)
class Goals:
    """Numbers that an optimisation brings about.

    ``texts``: the formula of the objective, then, for each constraint, that of a number which is
    zero (``equal``) or not negative; they are formulas in ``observables``, and in ``numbers``:
    paths of parameters by the names in the formulas. ``shown``: the constraints as they were given.
    """

    texts: tuple[str, ...]
    equal: tuple[bool, ...]
    shown: tuple[str, ...]
    observables: tuple[Observable, ...]
    numbers: tuple[tuple[str, str], ...]

    def values(self, problem: Problem, seen: Mapping[str, Any]) -> Float[Array, " k"]:
        """Objective and constraints (k,) from the observables ``seen`` on a motion."""
        known = dict(seen)
        known |= {name: get_parameter(problem, path) for name, path in self.numbers}
        shared = problem.parameters
        found = [_formula(problem, "", t).value(known.__getitem__, shared) for t in self.texts]
        return jnp.stack([jnp.asarray(x, jnp.result_type(float)) for x in found])

    @property
    def is_moved(self) -> bool:
        """Whether the objective holds an observable, or a number of the problem."""
        own = {*(o.name for o in self.observables), *(name for name, _ in self.numbers)}
        formula = read_formula(self.texts[0])
        return bool(formula.references) or bool(own & set(formula.names.values()))

    @property
    def counts(self) -> list[str]:
        """Names of observables that change in steps, and have the derivative zero."""
        return [o.name for o in self.observables if isinstance(_whole(o), EventCount)]

    @property
    def last_times(self) -> list[str]:
        """Names of observables that jump where another event becomes the last one."""
        last = (StopTime, LastEventTime)
        return [o.name for o in self.observables if isinstance(_whole(o), last)]


def missed(values: np.ndarray, equal: Any) -> np.ndarray:
    """By how much constraints (..., k) are missed, which are to be zero (``equal``), or not
    negative."""
    return np.where(equal, np.abs(values), np.maximum(-values, 0.0))


def read_goals(
    problem: Problem,
    objective: str | Observable,
    constraints: str | Sequence[str],
    observe: Mapping[str, str | Observable],
) -> Goals:
    """The goals with these texts; ``observe``: further observables by the names in them.

    Raises :class:`jfric.ProblemError` for a text that is no formula, for an unknown name, and where
    different dimensions are compared.
    """
    named = _named(problem, observe)
    if isinstance(objective, Observable):
        named["objective"] = renamed(objective, "objective")
        objective = "objective"
    if not isinstance(objective, str):
        raise ProblemError(
            f"objective: found {objective!r}, expected a formula in observables such as "
            "'time.end' or 'rms.v.x + 0.1*max.a.x'"
        )
    given = [constraints] if isinstance(constraints, str) else constraints
    if not isinstance(given, (list, tuple)):
        raise ProblemError(f"constraints: found {given!r}, needs a list of texts such as {_FORM}")
    read = [_constraint(f"constraints.{i}", text) for i, text in enumerate(given)]
    texts = tuple(_plain(problem, named, text) for text in (objective, *(t for t, _ in read)))
    units: dict[str, str | None] = {}
    numbers: dict[str, str] = {}
    for i, text in enumerate(texts):
        where = "objective" if i == 0 else f"constraints.{i - 1}"
        formula = _formula(problem, where, text)
        for name in formula.names.values():
            if name not in units:
                units[name] = _meaning(problem, where, name, named, numbers)
        _require_dimensions(where, given[i - 1] if i else text, formula, units)
    used = {name for text in texts for name in _formula(problem, "", text).names.values()}
    return Goals(
        texts=texts,
        equal=tuple(equal for _, equal in read),
        shown=tuple(given),
        observables=tuple(o for name, o in named.items() if name in used),
        numbers=tuple(numbers.items()),
    )


def _named(problem: Problem, observe: Mapping[str, str | Observable]) -> dict[str, Observable]:
    if not isinstance(observe, Mapping):
        raise ProblemError(f"observe: found {observe!r}, needs names and observables by name")
    found: dict[str, Observable] = {}
    for name, item in observe.items():
        if isinstance(item, str):
            with within(f"observe.{name}: "):
                item = _parsed(problem, item)
        if not isinstance(item, Observable):
            raise ProblemError(
                f"observe.{name}: found {item!r}, expected a name such as 'x(1 s)' or an "
                "observable such as jfric.observables.Maximum(function)"
            )
        found[name] = renamed(item, name)
    try:
        hash(tuple(found.values()))
    except TypeError:
        raise ProblemError(
            "observe: found an observable that has no hash; write its class as a frozen dataclass"
        ) from None
    return found


def _parsed(problem: Problem, text: str) -> Observable:
    # Times after the end are no mistake: the end may be free.
    return parse_observable(problem, text, end=np.inf)


def _plain(problem: Problem, named: dict[str, Observable], text: str) -> str:
    """``text`` with names in place of observables such as ``x(1 s)``, which are added."""

    def replaced(match: re.Match) -> str:
        if match[1] in WORDS:
            return match[0]
        with within(f"{quoted(text)}: "):
            found = _parsed(problem, match[0])
        name = next((k for k, o in named.items() if o == found), f"number_{len(named) + 1}")
        named[name] = renamed(found, name)
        return name

    return _CALL.sub(replaced, text)


def _constraint(where: str, text: Any) -> tuple[str, bool]:
    """Formula of a number that is to be zero, or not negative, and whether zero."""
    relations = _RELATION.findall(text) if isinstance(text, str) else []
    if len(relations) != 1:
        found = quoted(text) if isinstance(text, str) else repr(text)
        raise ProblemError(f"{where}: found {found}, expected such as {_FORM}")
    left, right = (side.strip() for side in _RELATION.split(text))
    if relations[0] == "<=":
        left, right = right, left
    return f"({left}) - ({right})", relations[0] == "=="


def _formula(problem: Problem, where: str, text: str) -> Formula:
    return require_formula(where, text, problem.parameters)


def _meaning(
    problem: Problem,
    where: str,
    name: str,
    named: dict[str, Observable],
    numbers: dict[str, str],
) -> str | None:
    """Unit of the observable or number with this name, which is added to one of the tables."""
    if name not in named:
        try:
            named[name] = _parsed(problem, name)
        except ProblemError as error:
            try:
                path = find_path(problem, name)
            except KeyError:
                raise ProblemError(f"{where}: {error}") from None
            value = parameters(problem)[path]
            if not isinstance(value, Expression) and np.ndim(value):
                raise ProblemError(
                    f"{where}: {path} is a list of numbers, a formula takes single ones"
                ) from None
            numbers[name] = path
            dimension = path_dimension(problem, path)
            return None if dimension is None else dimension.unit
    return named[name].unit or None


def _require_dimensions(
    where: str, text: str, formula: Formula, units: Mapping[str, str | None]
) -> None:
    """Raise :class:`jfric.ProblemError` where numbers with units are of another dimension."""
    known = [units[name] for name in formula.names.values()]
    if not formula.quantities or not all(known):
        return  # nothing to compare: bare numbers are in SI units
    with within(f"{where}: {text!r} ", UnitError):
        formula.dimensionality(lambda name: units[name] or "")


def _whole(observable: Observable) -> Observable:
    return observable.observed if isinstance(observable, During) else observable
