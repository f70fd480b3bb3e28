"""``jfric.poincare_section`` and ``jfric.bifurcation_diagram``: returns of one or many motions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from jfric.errors import ProblemError
from jfric.numerics.limits import OUTPUTS, require_count
from jfric.periodic.sections import Returns, Section, make_section
from jfric.results.grammar import split
from jfric.results.signals import Signal, look_up
from jfric.solvers.base import AbstractSolver
from jfric.solvers.event_driven.solver import EventDriven
from jfric.sweeps.observing import observe as observed
from jfric.sweeps.sweeping import sweep
from jfric.system.assembly import assemble
from jfric.system.expression import Expression
from jfric.system.model import build
from jfric.system.naming import find_path, set_parameters
from jfric.system.problem import Problem

if TYPE_CHECKING:
    import xarray

#: Number of periods after its last return at which a run ends.
SPARE = 0.25


class PoincareSection(NamedTuple):
    """Last returns of one motion to a section, in their order.

    ``q``, ``v`` (r, n) [m, rad; m/s, rad/s], NaN for missing returns; ``status`` and ``flags`` of
    the run (:class:`jfric.Status`, :class:`jfric.Flag`).
    Example: see :func:`jfric.poincare_section`.
    """

    q: Float[Array, "r n"]
    v: Float[Array, "r n"]
    status: Int[Array, ""]
    flags: Int[Array, ""]


def poincare_section(
    problem: Problem,
    section: str | float = "period",
    *,
    returns: int = 100,
    skip: int = 0,
    solver: AbstractSolver | None = None,
) -> PoincareSection:
    """States of a motion of ``problem`` at its returns to a section.

    ``section``: ``"period"`` of the loads, from the start on; ``"impact"``; ``"event.NAME"``, a
    user's event (a :class:`jfric.Event` with ``action="record"``); or an interval [s]. The first
    ``skip`` returns are left out, the next ``returns`` kept. With sections at events the run ends
    at the problem's end at the latest. ``solver``: one with polynomials, by default
    :class:`jfric.EventDriven`. Raises :class:`jfric.ProblemError` for an unknown section and loads
    without a period. Source: J. Guckenheimer, P. Holmes, Nonlinear Oscillations, Dynamical Systems,
    and Bifurcations of Vector Fields (1983), section 1.5. A linear oscillator settles on its
    response::

        >>> oscillator = jfric.Problem(
        ...     ["x"],
        ...     {
        ...         "mass": jfric.Mass("x", 1.0),
        ...         "spring": jfric.Spring("x", 1.0),
        ...         "damper": jfric.Damper("x", 1.0),
        ...         "load": jfric.Load("x", jfric.Harmonic(1.0, omega=1.0)),
        ...     },
        ... )
        >>> found = jfric.poincare_section(oscillator, returns=2, skip=20)
        >>> found.q.round(9).tolist()
        [[-1.0], [-1.0]]
    """
    problem = build(problem)
    require_count("returns", returns, 1, OUTPUTS)
    require_count("skip", skip, 0, OUTPUTS)
    solver = with_polynomials(solver)
    chosen = make_section(problem, section)
    problem = lasting(problem, chosen, returns + skip)
    seen = [
        Returns(Signal(field, i, ""), chosen, returns, skip, name=f"{field}.{dof}")
        for field in ("q", "v")
        for i, dof in enumerate(problem.axes)
    ]
    found = observed(problem, seen, solver)
    q, v = (
        jnp.stack([found.values[f"{field}.{dof}"] for dof in problem.axes], axis=-1)
        for field in ("q", "v")
    )
    return PoincareSection(q, v, found.status, found.flags)


def bifurcation_diagram(
    problem: Problem,
    path: str,
    values: Any,
    observe: str,
    *,
    section: str | float = "period",
    returns: int = 50,
    skip: int = 200,
    solver: AbstractSolver | None = None,
    **execution: Any,
) -> xarray.Dataset:
    """The last returns of motions of ``problem`` over a parameter, by brute force: a sweep.

    ``path``: the parameter, which takes the ``values`` (p,) [SI]; every motion begins at the
    problem's start. ``observe``: quantities such as ``"u"`` or ``"v.u, u"``; the last ``returns``
    of each after ``skip`` returns to ``section`` are kept, see :func:`jfric.poincare_section`.
    ``solver``: one with polynomials, by default :class:`jfric.EventDriven`. ``execution``:
    ``store``, ``devices``, ``workers`` and the other options of :func:`jfric.sweep`.

    Returns a table as :func:`jfric.sweep` does, with the axis ``return``. Raises
    :class:`jfric.ProblemError` as these functions do. The response of a linear oscillator has one
    value::

        >>> oscillator = jfric.Problem(
        ...     ["x"],
        ...     {
        ...         "mass": jfric.Mass("x", 1.0),
        ...         "spring": jfric.Spring("x", 1.0),
        ...         "damper": jfric.Damper("x", 1.0),
        ...         "load": jfric.Load("x", jfric.Harmonic(1.0, omega=1.0)),
        ...     },
        ... )
        >>> table = jfric.bifurcation_diagram(
        ...     oscillator, "load.F.omega", [1.0, 2.0], "x", returns=3, skip=30, progress=False
        ... )
        >>> table["x"].dims, table["x"].values.round(6).tolist()
        (('load.F.omega', 'return'), [[-1.0, -1.0, -1.0], [-0.153846, -0.153846, -0.153846]])
    """
    problem = build(problem)
    require_count("returns", returns, 1, OUTPUTS)
    require_count("skip", skip, 0, OUTPUTS)
    solver = with_polynomials(solver)
    try:
        name = find_path(problem, path)
    except KeyError as error:
        raise ProblemError(f"path: {error.args[0]}") from None
    numbers = np.asarray(values, float)
    if numbers.ndim != 1 or not numbers.size or not np.all(np.isfinite(numbers)):
        raise ProblemError("values: found no list of finite numbers, needs at least one value")
    ends = sorted({float(numbers.min()), float(numbers.max())})
    chosen = make_section(problem, section, name, ends)
    problem = lasting(problem, chosen, returns + skip, name, numbers)
    seen = []
    for text in split(observe):
        try:
            full, quantity = look_up(problem, text)
        except ProblemError as error:
            raise ProblemError(f"observe: {error}") from None
        seen.append(Returns(quantity, chosen, returns, skip, name=full, unit=quantity.unit))
    return sweep(problem, {name: numbers}, seen, solver=solver, **execution)


def with_polynomials(solver: AbstractSolver | None) -> AbstractSolver:
    """The solver, by default the event-driven one; raises :class:`ProblemError` for a solver
    without polynomials between events."""
    solver = EventDriven() if solver is None else solver
    if not solver.has_polynomials:
        raise ProblemError(
            f"solver: {solver.label} knows its motion at outputs only; sections need event-driven"
        )
    return solver


def lasting(
    problem: Problem, section: Section, count: int, path: str | None = None, values: Any = ()
) -> Problem:
    """``problem`` with an end after ``count`` returns, if they come at equal intervals."""
    if section.kind != "period":
        return problem
    if isinstance(problem.time.end, Expression):
        raise ProblemError(
            "time.end: found an expression; here the end follows from the number of returns, give "
            "a number"
        )
    period = _longest(problem, section, path, jnp.asarray(values, jnp.result_type(float)))
    start = float(problem.resolved().time.start)
    return set_parameters(problem, {"time.end": start + (count + SPARE) * float(period)})


@eqx.filter_jit
def _longest(problem: Problem, section: Section, path: str | None, values) -> Float[Array, ""]:
    if path is None:
        return section.period(assemble(problem))

    def at(value):
        return section.period(assemble(set_parameters(problem, {path: value})))

    return jnp.max(jax.vmap(at)(values))
