"""``jfric.lyapunov_exponent``: rate at which neighbouring motions separate."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from jfric.errors import ProblemError
from jfric.numerics.limits import OUTPUTS, require_count
from jfric.numerics.printing import printable
from jfric.periodic.sections import Section, make_section, with_polynomials
from jfric.results.abstract_observables import OwnRun
from jfric.results.status import Status
from jfric.solvers.base import AbstractSolver
from jfric.sweeps.design import by_path, make_design
from jfric.sweeps.observing import observe
from jfric.sweeps.sweeping import sweep
from jfric.system.control import refuse_controllers
from jfric.system.model import build
from jfric.system.problem import Problem

if TYPE_CHECKING:
    import xarray

#: Direction of the first neighbour, with a component along all coordinates.
SPREAD = 0.618033988749895


@dataclass(frozen=True)
class LyapunovExponent(OwnRun):
    """Largest Lyapunov exponent [1/s], as the means over ``parts`` parts of a run.

    ``section``: the interval after which the distance of the neighbour is measured and reset to
    one; ``intervals`` of each part; the first ``skip`` are left out.
    :func:`jfric.lyapunov_exponent` creates it from names. In :func:`jfric.sweep` and
    :func:`jfric.observe` it must be the only observable.
    """

    section: Section
    intervals: int = 100
    skip: int = 100
    parts: int = 1
    name: str = "lyapunov_exponent"
    unit: str = "1/s"

    @property
    def dims(self):
        return (("part", tuple(float(i) for i in range(self.parts)), ""),)

    def measured(self, problem: Problem, solver: Any, end: Any):
        """Means of ``log|u|`` over time, for the derivative ``u`` of the motion by its start."""
        del end
        solver = dataclasses.replace(solver, adjoint="forward")
        prepared = solver.prepare(problem, None)
        period = self.section.period(prepared.mechanics)
        first = solver.start(problem, prepared)
        start, n = first.t, prepared.mechanics.n
        u = jnp.sin(SPREAD * (1.0 + jnp.arange(2 * n, dtype=first.t.dtype)))
        u = u / jnp.sqrt(jnp.sum(u * u))

        def flow(state, number):
            def moved(x):
                begun = eqx.tree_at(lambda s: (s.q, s.v), state, (x[:n], x[n:]))
                # Counted from the start, not from the last end, so that times keep their digits.
                until = start + (number + 1).astype(start.dtype) * period
                after = solver.advance(problem, begun, until)
                return jnp.concatenate([after.q, after.v]), after

            return moved

        def interval(carry, number):
            state, u, seed = carry
            x = jnp.concatenate([state.q, state.v])
            _, du, after = jax.jvp(flow(state, number), (x,), (u,), has_aux=True)
            length = jnp.sqrt(jnp.sum(du * du))
            some = length > 0.0
            growth = jnp.where(some, jnp.log(jnp.where(some, length, 1.0)), -jnp.inf)
            # If all neighbours have become one motion, the derivative starts anew.
            u = jnp.where(some, du / jnp.where(some, length, 1.0), seed)
            return (after, u, seed), growth

        total = self.skip + self.parts * self.intervals
        numbers = jnp.arange(total, dtype=jnp.int32)
        (last, _, _), growth = jax.lax.scan(interval, (first, u, u), numbers)
        kept = growth[self.skip :].reshape(self.parts, self.intervals)
        exponents = jnp.mean(kept, axis=1) / period
        until = start + jnp.asarray(total, start.dtype) * period
        status = solver.outcome(prepared, last, until)
        ends = (status == int(Status.OK)) & (last.t < until - 0.5 * period)
        status = jnp.where(ends, int(Status.MAX_STEPS), status)
        return exponents, status.astype(jnp.int32), last.flags, last.steps


@printable
class Exponent(NamedTuple):
    """Largest Lyapunov exponent of one motion.

    ``value`` [1/s] and its standard ``error``, from the scatter of the means over ``parts`` (p,) of
    the run; ``status`` and ``flags`` of the run (:class:`jfric.Status`, :class:`jfric.Flag`).
    Example: see :func:`jfric.lyapunov_exponent`.
    """

    value: Float[Array, ""]
    error: Float[Array, ""]
    parts: Float[Array, " p"]
    status: Int[Array, ""]
    flags: Int[Array, ""]


def lyapunov_exponent(
    problem: Problem,
    interval: str | float = "period",
    *,
    intervals: int = 1000,
    skip: int = 100,
    parts: int = 10,
    solver: AbstractSolver | None = None,
) -> Exponent:
    """Largest Lyapunov exponent of the motion of ``problem`` from its start.

    The derivative ``u`` of the motion by its start is computed with the motion, through changes of
    mode, impacts and stick, as exact as the motion itself; after each ``interval`` (``"period"`` of
    the loads, or a time [s]) its length is recorded and reset to one::

        exponent = mean of log|u(t + interval)| / interval

    over ``intervals`` in all, in ``parts`` parts whose scatter gives the error, after the first
    ``skip``. The exponent is zero for motions that neither separate nor approach each other, and
    minus infinity where all neighbours become one motion in finite time, as for a body that comes
    to rest on the ground. Stick removes one direction of neighbours, and the exponent is that of
    the others. Intervals must not end at events. ``solver``: one with exact derivatives, by default
    :class:`jfric.EventDriven`. Over parameters: :func:`jfric.lyapunov_exponents`.

    Raises :class:`jfric.ProblemError` for loads without a period and solvers without exact
    derivatives. Sources: G. Benettin et al., Meccanica 15 (1980); P. Mueller, Calculation of
    Lyapunov exponents for dynamic systems with discontinuities, Chaos, Solitons & Fractals 5
    (1995). A damped oscillator::

        >>> oscillator = jfric.Problem(
        ...     ["x"],
        ...     {
        ...         "mass": jfric.Mass("x", 1.0),
        ...         "spring": jfric.Spring("x", 4.0),
        ...         "damper": jfric.Damper("x", 0.2),
        ...         "load": jfric.Load("x", jfric.Harmonic(1.0, omega=1.0)),
        ...     },
        ... )
        >>> found = jfric.lyapunov_exponent(oscillator, intervals=200, parts=2)
        >>> round(float(found.value), 2)
        -0.1
    """
    problem = build(problem)
    chosen = _checked(problem, solver, interval, intervals, skip, parts)
    section = make_section(problem, interval)
    measure = LyapunovExponent(section, intervals // parts, skip, parts)
    found = observe(problem, [measure], chosen)
    means = found.values[measure.name]
    scatter = jnp.std(means, ddof=1) / jnp.sqrt(parts) if parts > 1 else jnp.full((), jnp.nan)
    return Exponent(jnp.mean(means), scatter, means, found.status, found.flags)


def lyapunov_exponents(
    problem: Problem,
    vary: Mapping[str, Any],
    interval: str | float = "period",
    *,
    intervals: int = 1000,
    skip: int = 100,
    parts: int = 10,
    solver: AbstractSolver | None = None,
    **execution: Any,
) -> xarray.Dataset:
    """Largest Lyapunov exponents of ``problem`` over parameters, as a sweep.

    ``vary``: parameter paths to values or ranges, as in :func:`jfric.sweep`; ``interval``,
    ``intervals``, ``skip``, ``parts``, ``solver``: as in :func:`jfric.lyapunov_exponent`.
    ``execution``: ``method``, ``store``, ``devices`` and the other options of
    :func:`jfric.sweep`. Returns the table of the sweep, in which ``lyapunov_exponent`` [1/s] has
    the axis ``part``: the mean over the parts is the exponent, their scatter gives its error.
    Raises :class:`jfric.ProblemError` as these two functions do.
    After the example of :func:`jfric.lyapunov_exponent`, damped oscillators lose ``c / (2 m)``::

        >>> table = jfric.lyapunov_exponents(
        ...     oscillator, {"damper.c": [0.2, 0.4]}, intervals=400, progress=False
        ... )
        >>> table["lyapunov_exponent"].mean("part").values.round(2).tolist()
        [-0.1, -0.2]
    """
    chosen = _checked(problem, solver, interval, intervals, skip, parts)
    paths = by_path(problem, vary)
    drawn = {k: execution[k] for k in ("method", "samples", "seed") if k in execution}
    design = make_design(paths, **drawn)
    sections = {
        make_section(problem, interval, name, ends)
        for name, ends in zip(design.names, design.extremes(), strict=True)
    }
    if len(sections) > 1:
        raise ProblemError("interval: found another ratio of frequencies for each parameter")
    measure = LyapunovExponent(sections.pop(), intervals // parts, skip, parts)
    return sweep(problem, vary, [measure], solver=chosen, **execution)


def _checked(
    problem: Problem,
    solver: AbstractSolver | None,
    interval: str | float,
    intervals: int,
    skip: int,
    parts: int,
) -> AbstractSolver:
    refuse_controllers(problem, "an exponent")
    solver = with_polynomials(solver)
    if solver.remark:
        raise ProblemError(f"solver: {solver.label} has no exact derivatives: {solver.remark}")
    require_count("parts", parts, 1, OUTPUTS)
    require_count("intervals", intervals, parts, OUTPUTS)
    require_count("skip", skip, 0, OUTPUTS)
    if isinstance(interval, str) and interval != "period":
        raise ProblemError(
            f"interval: found {interval!r}, must be 'period' or a time in seconds: the derivative "
            "is measured at equal times"
        )
    return solver
