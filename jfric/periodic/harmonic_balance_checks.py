"""Checks that harmonic balance represents a system, and the base frequency of time functions."""

from __future__ import annotations

import itertools
from typing import Any

import jax.numpy as jnp
import numpy as np

from jfric.errors import ProblemError
from jfric.periodic.harmonic_balance_equations import frequencies
from jfric.system.assembly import assemble
from jfric.system.features import CONSTANT, require_features
from jfric.system.functions import AbstractFunction
from jfric.system.inertia import require_inertia
from jfric.system.mechanics import Mechanics
from jfric.system.naming import function_paths, set_parameters
from jfric.system.problem import Problem

#: Name of this method in messages.
WHO = "harmonic balance"
#: Largest whole number by which the lowest frequency is divided to reach the base frequency.
MOST = 64
#: Relative difference below which frequencies are equal.
SAME = 1e-9
#: Instants of a period at which a function of time is compared with itself a period later.
INSTANTS = (0.0, 0.137, 0.391, 0.662, 0.873)


def finite_numbers(what: str, values: Any) -> np.ndarray:
    """A list of values of a parameter; raises :class:`ProblemError` for anything else."""
    found = np.asarray(values, float)
    if found.ndim != 1 or not found.size or not np.all(np.isfinite(found)):
        raise ProblemError(f"{what}: found no list of finite numbers, needs at least one value")
    return found


def require_balance(problem: Problem) -> None:
    """Raise :class:`ProblemError` for problems that harmonic balance cannot represent."""
    require_inertia(problem)
    require_features(problem, WHO, CONSTANT - {"carried", "events", "position"})
    for where, element in problem.labelled("friction", "contact").items():
        law = element.law
        if law is not None and law.drops_at_onset:
            raise ProblemError(
                f"{where}: with {type(law).__name__} friction drops when sliding begins, which "
                f"{WHO} cannot represent: it knows no history; take mu or stribeck without a peak, "
                "or the solver event-driven"
            )


def carrier(problem: Problem, path: str | None, values: list[float]) -> tuple[int, float]:
    """Number of a frequency of :func:`frequencies`, and its ratio to the base frequency.

    The base frequency is the largest of which all others are multiples, the same ones at all
    ``values`` of the parameter ``path``. Raises :class:`ProblemError` where there is none, and for
    functions that are not periodic with it.
    """
    found: tuple[int, float] | None = None
    ratios = None
    for value in values:
        here = problem if path is None else set_parameters(problem, {path: value})
        here = here.resolved()
        mechanics = assemble(here)
        _refuse_breakpoints(here)
        omegas = np.asarray([float(w) for w in frequencies(mechanics)])
        if not np.any(omegas > 0.0):
            raise ProblemError(
                "load: found no function of time with a frequency, such as "
                "jfric.Harmonic(1.0, omega=3.0), from which the period follows"
            )
        base = _base(omegas, path, value)
        multiples = np.round(omegas / base)
        if ratios is not None and np.any(multiples != ratios):
            raise ProblemError(
                f"{path}: at {value:g} frequencies have other ratios than at {values[0]:g}; make "
                "them multiples of one shared parameter"
            )
        ratios = multiples
        if found is None:
            index = int(np.argmin(np.where(omegas > 0.0, omegas, np.inf)))
            found = index, float(multiples[index])
        _require_periodic(here, mechanics, 2.0 * np.pi / base)
    assert found is not None
    return found


def highest(problem: Problem, divisor: tuple[int, float]) -> int:
    """The highest multiple of the base frequency in a function of time."""
    omegas = [float(w) for w in frequencies(assemble(problem))]
    return int(np.round(max(omegas) / omegas[divisor[0]] * divisor[1]))


def _base(omegas: np.ndarray, path: str | None, value: float) -> float:
    present = omegas[omegas > 0.0]
    lowest = float(present.min())
    for divisor in range(1, MOST + 1):
        ratio = present / lowest * divisor
        if np.all(np.abs(ratio - np.round(ratio)) <= SAME * ratio):
            return lowest / divisor
    listed = ", ".join(f"{w:g}" for w in sorted(set(present.tolist())))
    where = "" if path is None else f" at {path} = {value:g}"
    raise ProblemError(
        f"load: found the frequencies {listed} rad/s{where}, which are no multiples of one of them "
        f"divided by at most {MOST}; {WHO} needs a period"
    )


def _refuse_breakpoints(problem: Problem) -> None:
    for path, (section, name, field) in function_paths(problem).items():
        function: AbstractFunction = getattr(problem.section(section)[name], field)
        if function.breakpoints().size:
            raise ProblemError(
                f"{path}: found a {type(function).__name__} with breakpoints, which has no period; "
                f"{WHO} takes constants and sums of harmonic functions"
            )


def _require_periodic(problem: Problem, mechanics: Mechanics, period: float) -> None:
    """Refuse functions of time without the given period."""
    named: list[tuple[str, Any]] = [
        (path, getattr(problem.section(section)[name], field))
        for path, (section, name, field) in function_paths(problem).items()
    ]
    for (path, function), part in itertools.product(named, INSTANTS):
        t = jnp.asarray(part * period)
        _compare(path, function(t), function(t + period), function.magnitude(t), period)
    n = mechanics.n
    size = jnp.maximum(jnp.max(jnp.abs(mechanics.K), initial=0.0), 1.0)
    q, v = jnp.linspace(0.3, 0.7, n), jnp.linspace(-0.4, 0.6, n)
    for element, part in itertools.product(mechanics.nonlinear, INSTANTS):
        t = jnp.asarray(part * period)
        now, later = (element.force(mechanics.axes, x, q, v) for x in (t, t + period))
        _compare(type(element).__name__, now, later, jnp.max(jnp.abs(now)) + size, period)


def _compare(what: str, now, later, size, period: float) -> None:
    if not np.all(np.abs(np.asarray(now - later)) <= 1e-6 * float(size)):
        raise ProblemError(
            f"{what}: depends on time and is not the same a period of {period:g} s later; {WHO} "
            "needs forces with the period of the loads"
        )
