"""A periodic motion, the result of :func:`jfric.periodic_orbit`, and its Floquet multipliers:
eigenvalues of the monodromy matrix, with derivatives and exact zeros."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Complex, Float, Int

from jfric.numerics.linear_algebra import eigenvalues, matmul, singular_values
from jfric.numerics.printing import printable
from jfric.periodic.cycle_quantities import Harmonics, work_of_loads
from jfric.results.signals import look_up
from jfric.results.solution import Solution, mode_label, require_success
from jfric.results.status import NOT_DIFFERENTIABLE, AbstractOutcome, Status
from jfric.solvers.event_driven.solver import EventDriven
from jfric.solvers.simulation import simulate
from jfric.sweeps.observing import observe
from jfric.system.problem import Problem


class OrbitStatus(AbstractOutcome):
    """Outcome of the search for a periodic motion.

    >>> jfric.OrbitStatus(1).message
    'no convergence: give a better start, a longer transient or more segments'
    """

    CONVERGED = 0, "converged"
    #: Newton's method did not bring the residual down to rounding.
    NO_CONVERGENCE = 1, "no convergence: give a better start, a longer transient or more segments"
    #: The transient for the first guess ended early, see ``run_status``.
    TRANSIENT_FAILED = 2, "the transient that gives the first guess ended early"
    #: The motion over a period ended early, see ``run_status``.
    MOTION_FAILED = 3, "the motion over a period ended early"
    #: More events in a period than there is room for.
    TOO_MANY_EVENTS = 4, "more events in a period than max_events of the solver"
    #: An autonomous motion without a recurring event: its period cannot be guessed.
    NO_RECURRENCE = 5, "no event of the transient recurs: give a section, or a longer transient"
    #: The period became zero or negative: the motion found stands still.
    STANDS_STILL = 6, "the motion that was found stands still"
    #: An event coincides with the start of the orbit: the motion is found, but its derivative by
    #: the state has two sides there.
    STARTS_ON_EVENT = (
        7,
        "an event coincides with the start, where multipliers are not defined: start the problem "
        "at another time",
    )


#: Distance from one up to which a multiplier is that along the motion.
ALONG = 1e-4
#: Drift of a state below which it does not move.
STILL = 1e-8
#: Singular values, as parts of the largest one, below which they are rounding errors of directions
#: that sticking has erased.
ERASED = 1e-13
#: Distance from one below which a multiplier is one: a contact that sticks for a whole cycle stays
#: where it is put.
NEUTRAL = 1e-9


def none_grows(largest):
    """Whether small deviations do not grow; ``largest``: size of the largest multiplier."""
    return largest <= 1.0 + NEUTRAL


def erased(a: Float[Array, "x x"]) -> Int[Array, ""]:
    """Number of multipliers that are exactly zero: the dimension that powers of ``a`` erase."""
    size = a.shape[0]
    largest = jnp.max(jnp.abs(a))

    def smaller(carry):
        a, _, count = carry
        u, values, _ = singular_values(a)
        zero = values <= ERASED * size * largest
        # The part of a on its own range has the same eigenvalues except zeros. Columns of u that
        # belong to a singular value of zero may be zero themselves: nothing uses them.
        u = jnp.where(zero[None, :], 0.0, u)
        return matmul(u.T, matmul(a, u)), count, jnp.sum(zero).astype(jnp.int32)

    def grows(carry):
        # If a power takes no more dimensions to zero than the one before, no further one does.
        _, before, count = carry
        return count > before

    start = a, jnp.asarray(-1, jnp.int32), jnp.asarray(0, jnp.int32)
    return jax.lax.while_loop(grows, smaller, start)[2]


def multipliers(
    a: Float[Array, "x x"],
) -> tuple[Complex[Array, " x"], Complex[Array, "x x"]]:
    """Eigenvalues of ``a``, the largest first, and eigenvectors as columns; those of erased
    directions are exactly zero."""
    values, vectors = eigenvalues(a)
    order = jnp.argsort(-jnp.abs(values), stable=True)
    filled = jnp.where(jnp.all(jnp.isfinite(a)), a, jnp.eye(a.shape[0], dtype=a.dtype))
    count = a.shape[0] - erased(jax.lax.stop_gradient(filled))
    zero = jnp.arange(a.shape[0], dtype=jnp.int32) >= count
    known = jnp.isfinite(values).all()
    values = jnp.where(zero & known, 0.0, values[order])
    return values, vectors[:, order]


@printable
class PeriodicOrbit(eqx.Module):
    """A periodic motion, its stability, and the system started on it.

    In a batch every array has the axis of the batch in front. Derivatives of all fields by any
    parameter of the problem are those of the implicit function theorem; eigenvectors have none.
    After the example of :func:`jfric.continue_orbit`, with friction that never makes it stick::

        >>> orbit = jfric.periodic_orbit(shaken)
        >>> orbit.outcome(), bool(orbit.stable), [row["to"] for row in orbit.event_table()]
        ('converged', True, ['slip-', 'slip+'])
    """

    #: The system, started on the orbit, with one period of it as its time span.
    problem: Problem
    #: Period [s].
    period: Float[Array, ""]
    #: State at the start (2n,): positions, velocities [m, m/s or rad, rad/s]; states at the starts
    #: of all segments.
    state: Float[Array, " x"]
    states: Float[Array, "N x"]
    #: Derivative of the state after a period by the state at the start.
    monodromy: Float[Array, "x x"]
    #: Floquet multipliers, the largest first: eigenvalues of the monodromy matrix, exactly zero for
    #: directions that sticking erases; eigenvectors are columns.
    multipliers: Complex[Array, " x"]
    eigenvectors: Complex[Array, "x x"]
    #: Events of a period, padded: times [s], infinite in unused rows; contact, mode before, mode
    #: after and whether an impact, -1 in unused rows; number of events.
    event_times: Float[Array, " E"]
    event_codes: Int[Array, "E 4"]
    event_count: Int[Array, ""]
    #: Largest residual of the equations, relative to the sizes of the motion.
    residual: Float[Array, ""]
    #: Smallest singular value of the scaled equations, relative to the largest: zero where the
    #: orbit is one of a continuum, or at a fold.
    smallest: Float[Array, ""]
    #: Largest change of a state over a period at its rate, in sizes of the states: zero at rest.
    drift: Float[Array, ""]
    #: :class:`jfric.OrbitStatus`, and :class:`jfric.Status` of the run that ended early, if any.
    status: Int[Array, ""]
    run_status: Int[Array, ""]
    #: :class:`jfric.Flag` bits of the motion; rounds of Newton's method, for large systems those
    #: with derivatives.
    flags: Int[Array, ""]
    iterations: Int[Array, ""]
    #: The solver; names as in :class:`jfric.Solution`; whether the period is that of loads.
    solver: EventDriven
    axes: tuple[str, ...] = eqx.field(static=True)
    names: tuple[str, ...] = eqx.field(static=True)
    segment_labels: tuple[tuple[str, ...], ...] = eqx.field(static=True)
    event_names: tuple[str, ...] = eqx.field(static=True)
    forced: bool = eqx.field(static=True)

    @property
    def q(self) -> Float[Array, "... n"]:
        """Positions at the start [m or rad]."""
        return self.state[..., : len(self.axes)]

    @property
    def v(self) -> Float[Array, "... n"]:
        """Velocities at the start [m/s or rad/s]."""
        return self.state[..., len(self.axes) :]

    @property
    def converged(self):
        """Whether the orbit was found."""
        return self.status == int(OrbitStatus.CONVERGED)

    @property
    def largest_multiplier(self) -> Float[Array, ""]:
        """Largest magnitude of a multiplier; of an autonomous motion without the multiplier along
        the motion, which is one. An equilibrium has no such direction: all of them count."""
        size = jnp.abs(self.multipliers)
        if not self.forced:
            trivial = jnp.argmin(jnp.abs(self.multipliers - 1.0), axis=-1, keepdims=True)
            places = np.arange(size.shape[-1]).reshape((1,) * (size.ndim - 1) + (-1,))
            moves = ~self.is_equilibrium[..., None]
            size = jnp.where(moves & (trivial == places), 0.0, size)
        return jnp.max(size, axis=-1)

    @property
    def is_equilibrium(self):
        """Whether nothing moves: an autonomous motion whose states have no rate, or whose
        multipliers are all away from one, which is that along the motion."""
        nearest = jnp.min(jnp.abs(self.multipliers - 1.0), axis=-1)
        rests = (nearest > ALONG) | (self.drift <= STILL)
        return jnp.asarray(not self.forced) & rests

    @property
    def stable(self):
        """Whether no small deviation grows. All of them die out, except those of contacts that
        stick for the whole period, which stay where they are put: their multiplier is one."""
        return none_grows(self.largest_multiplier)

    @property
    def differentiable(self):
        """Whether no event was met at which derivatives may not exist (see :class:`jfric.Flag`)."""
        return (self.flags & int(NOT_DIFFERENTIABLE)) == 0

    def outcome(self) -> str:
        """The status of one orbit in words."""
        status = OrbitStatus(int(self.status))
        words = status.message
        if int(self.run_status) != int(Status.OK) and status != OrbitStatus.CONVERGED:
            words = f"{words} ({Status(int(self.run_status)).message})"
        return words

    def check(self) -> Self:
        """The orbit itself; raises :class:`jfric.SimulationError` unless it converged.

        In a batch the message names the first orbit that did not.
        """

        def words(place: tuple[int, ...]) -> str:
            run = Status(int(np.asarray(self.run_status)[place]))
            said = OrbitStatus(int(np.asarray(self.status)[place])).message
            return said if run == Status.OK else f"{said}: {run.message}"

        require_success(self.status, "orbits", ":", words)
        return self

    def event_table(self) -> list[dict[str, Any]]:
        """Events of one orbit as rows: time, contact, from, to, impact."""
        count = min(int(self.event_count), self.event_times.shape[0])
        names, labels = self.names + self.event_names, (self.segment_labels, len(self.names))
        times, codes = (np.asarray(x)[:count] for x in (self.event_times, self.event_codes))
        return [
            {
                "time": time,
                "contact": names[contact],
                "from": mode_label(*labels, contact, old),
                "to": mode_label(*labels, contact, new),
                "impact": impact == 1,
            }
            for time, (contact, old, new, impact) in zip(
                times.tolist(), codes.tolist(), strict=True
            )
        ]

    def solution(self, ts=None, *, dense: bool | int = False) -> Solution:
        """The motion over a period, see :func:`jfric.simulate`; ``ts`` (m,) [s]: output times."""
        return self._each(lambda p: simulate(p, self.solver, ts=ts, dense=dense))

    def observe(self, observables: Any, *, times=None) -> dict[str, Any]:
        """Observables over a period by name (``"max.x, rms.x, dissipated"``), see
        :func:`jfric.observe`."""
        return self._each(lambda p: observe(p, observables, self.solver, times=times).values)

    def harmonics(self, signal: str, count: int = 1) -> Complex[Array, "... k"]:
        """Fourier coefficients ``c_0 .. c_count`` of a quantity (``"x"``, ``"v.x"``,
        ``"force.spring"``) over the period ``T`` from the start ``t_0``::

            s(t) = c_0 + Re sum_k c_k exp(i k w (t - t_0)),    w = 2 pi / T

        so ``abs(c_k)`` is the amplitude of the k-th harmonic [unit of the quantity], from integrals
        over the pieces of the motion.
        """
        chosen = Harmonics(look_up(self.problem, signal)[1], count)
        both = self.observe([chosen])[chosen.name]
        return jax.lax.complex(both[..., 0, :], both[..., 1, :])

    def energy_loss(self) -> Float[Array, ...]:
        """Energy [J] lost in a period: the work of loads and belts. Raises
        :class:`jfric.ProblemError` where a support moves, whose work is not known."""
        work = work_of_loads(self.problem)
        return self.observe([work])[work.name]

    def _each(self, call: Callable[[Problem], Any]) -> Any:
        """Result of ``call`` for the problem, or for each problem of a batch."""
        for _ in range(self.state.ndim - 1):
            call = eqx.filter_vmap(call)
        return call(self.problem)
