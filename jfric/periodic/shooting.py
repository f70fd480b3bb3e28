"""The equations of periodic motion: segments of the exact motion, joined end to start.

    phi(x_i; t_i, T/N) - x_(i+1) = 0,    i = 0 .. N - 1,    x_N = x_0,    x = (q, v),

and, where the period ``T`` is unknown, one equation that fixes the phase. ``phi`` is the motion
that the event-driven solver computes, with its exact derivatives.
"""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jfric.periodic.forcing import Forcing
from jfric.periodic.state_vector import axes_of, joined, with_start
from jfric.results.formulas import bound
from jfric.results.pieces import Point
from jfric.results.status import Status
from jfric.solvers.event_driven.solver import EventDriven
from jfric.system.assembly import assemble
from jfric.system.naming import set_parameters
from jfric.system.problem import Problem

#: Distance of an event from the start or end of a segment, in parts of it, that counts as none.
BESIDE = 1e-10


class Unknowns(NamedTuple):
    """States at the starts of all segments, the period, and a possibly unknown parameter."""

    states: Float[Array, "N x"]
    period: Float[Array, ""]
    parameter: Float[Array, ""]


class Phase(NamedTuple):
    """Condition that fixes the phase of an autonomous motion.

    ``event``: contact, mode before and mode after of an event that first happens ``after`` [s] from
    the start. ``at``, ``along`` (2n,): if nothing else fixes the phase, the start moves from the
    state ``at`` at right angles to the direction ``along``.
    """

    event: Int[Array, " 3"]
    after: Float[Array, ""]
    at: Float[Array, " x"]
    along: Float[Array, " x"]


class Motion(NamedTuple):
    """Motion over all segments, with its derivatives and events.

    ``ends`` (N, 2n): states at the ends of segments; ``gain``, ``by_period``, ``by_parameter``:
    derivatives of ``ends`` by the start of the segment, the period and the parameter; ``phase``,
    ``phase_by``: left side of the equation of the phase, and its derivatives by the start of the
    first segment, the period and the parameter. ``times`` [s], ``codes``: log of events (contact,
    mode before, mode after, whether an impact), padded with inf and -1; ``count``: events of each
    segment. ``gap``: smallest gap at the starts. ``on_event``: whether an event coincides with a
    start, where derivatives have two sides.
    """

    ends: Float[Array, "N x"]
    gain: Float[Array, "N x x"]
    by_period: Float[Array, "N x"]
    by_parameter: Float[Array, "N x"]
    phase: Float[Array, ""]
    phase_by: Float[Array, " d"]
    times: Float[Array, "N E"]
    codes: Int[Array, "N E 4"]
    count: Int[Array, " N"]
    status: Int[Array, ""]
    flags: Int[Array, ""]
    gap: Float[Array, ""]
    on_event: Bool[Array, ""]


class Shooting(eqx.Module):
    """The equations of one kind of problem; all fields are structure.

    ``segments``: their number N. ``forcing``: source of the period, None if the period is given or
    unknown; ``cycles``: periods of the loads in one of the orbit. ``phase``: condition of the phase
    for an unknown period: ``"event"``, ``"section"`` or ``"along"``; empty for a known one.
    ``section``: formula of the section. ``path``: the unknown parameter, if any.
    """

    solver: EventDriven
    segments: int = eqx.field(static=True)
    forcing: Forcing | None = eqx.field(static=True)
    cycles: int = eqx.field(static=True)
    phase: str = eqx.field(static=True)
    section: str | None = eqx.field(static=True)
    path: str | None = eqx.field(static=True)

    @property
    def autonomous(self) -> bool:
        """Whether the period is unknown."""
        return bool(self.phase)

    def unknowns(self, problem: Problem) -> int:
        """Number of unknowns."""
        states = 2 * len(axes_of(problem)) * self.segments
        return states + int(self.autonomous) + int(self.path is not None)

    def problem_at(self, problem: Problem, parameter) -> Problem:
        """The problem for a value of the unknown parameter."""
        return problem if self.path is None else set_parameters(problem, {self.path: parameter})

    def period_of(self, problem: Problem, period):
        """The period [s]: an unknown, given, or that of the loads."""
        if self.forcing is None or self.autonomous:
            return period
        return self.cycles * self.forcing.period(problem.resolved())

    def motion(
        self, problem: Problem, z: Unknowns, phase: Phase, *, derivatives: bool = True
    ) -> Motion:
        """The motion over all segments from the unknowns ``z``, with its derivatives."""
        n2 = z.states.shape[1]
        directions = n2 + int(self.autonomous) + int(self.path is not None)

        def one(i, state, period, parameter):
            start = jnp.concatenate([state, period[None], parameter[None]])

            def ends(change):
                at = jnp.concatenate([change, jnp.zeros((n2 + 2 - directions,), start.dtype)])
                if self.path is not None and not self.autonomous:
                    at = jnp.concatenate([change[:n2], jnp.zeros((1,), start.dtype), change[n2:]])
                x = start + at
                found = self._segment(problem, i, x[:n2], x[n2], x[n2 + 1], phase)
                value = jnp.concatenate([found[0], found[1][None]])
                return value, (value, *found[2:])

            zero = jnp.zeros((directions,), start.dtype)
            if not derivatives:
                _, found = ends(zero)
                return jnp.zeros((n2 + 1, directions), start.dtype), found
            return jax.jacfwd(ends, has_aux=True)(zero)

        index = jnp.arange(self.segments, dtype=jnp.int32)
        if self.segments == 1:
            found = one(index[0], z.states[0], z.period, z.parameter)
            slopes, (values, *log) = jax.tree.map(lambda x: x[None], found)
        else:
            slopes, (values, *log) = jax.vmap(one, in_axes=(0, 0, None, None))(
                index, z.states, z.period, z.parameter
            )
        times, codes, count, status, flags, gap, begins, ends, near = log
        nothing = jnp.zeros((self.segments, n2), slopes.dtype)
        last = slopes[:, :n2, n2:]
        worst = jnp.argmax(status != int(Status.OK))
        return Motion(
            ends=values[:, :n2],
            gain=slopes[:, :n2, :n2],
            by_period=last[:, :, 0] if self.autonomous else nothing,
            by_parameter=last[:, :, -1] if self.path is not None else nothing,
            phase=values[0, n2],
            phase_by=slopes[0, n2],
            times=times,
            codes=codes,
            count=count,
            status=status[worst],
            flags=jax.lax.reduce_or(flags, (0,)),
            gap=jnp.min(gap),
            on_event=jnp.any(near) | jnp.any(begins != jnp.roll(ends, 1, axis=0)),
        )

    def _segment(self, problem: Problem, i, state, period, parameter, phase: Phase):
        """Segment ``i``: its end, the equation of the phase, its events, and its status."""
        problem = self.problem_at(problem, parameter)
        period = self.period_of(problem, period)
        first = jnp.asarray(problem.resolved().time.start, state.dtype)
        length = period / self.segments
        start = first if self.segments == 1 else first + i.astype(length.dtype) * length
        begun = with_start(problem, start, state)
        remembers = len(axes_of(problem)) > len(problem.dofs)
        ts = (start + length)[None] if remembers else None
        solution = self.solver.solve(begun, ts, None, start + length)
        log, n = solution.events, state.shape[0] // 2
        used = jnp.arange(log.time.shape[0], dtype=jnp.int32) < log.count
        codes = [log.contact, log.from_mode, log.to_mode, log.impact.astype(jnp.int32)]
        codes = jnp.where(used[:, None], jnp.stack(codes, axis=1), -1)
        times = jnp.where(used, log.time, jnp.inf)
        end, nd = solution.final, len(problem.dofs)
        z = solution.z[0] if remembers else jnp.zeros((0,), state.dtype)
        end = joined(end.q[:nd], end.v[:nd], z)
        value = jnp.zeros((), state.dtype)
        if self.phase == "section":
            value = self._on_section(begun, start, state, n)
        elif self.phase == "event":
            mine = used & jnp.all(codes[:, :3] == phase.event[None, :], axis=1)
            at = jnp.where(mine.any(), log.time[jnp.argmax(mine)], jnp.nan)
            value = at - start - phase.after
        elif self.phase == "along":
            value = jnp.sum(phase.along * (state - phase.at))
        gap = _smallest_gap(begun, start, state[:n])
        ends = solution.final.recorded
        mine = codes[:, 0, None] == jnp.arange(ends.shape[0], dtype=jnp.int32)[None, :]
        begins = jnp.where(mine.any(axis=0), codes[jnp.argmax(mine, axis=0), 1], ends)
        edge = BESIDE * length
        near = used & ((times <= start + edge) | (times >= start + length - edge))
        run = solution.status, solution.flags, gap
        return end, value, times, codes, log.count, *run, begins, ends, near.any()

    def _on_section(self, problem: Problem, t, state, n: int):
        resolved = problem.resolved()
        nothing = jnp.full((0,), jnp.nan, state.dtype)
        unknown = jnp.full((n,), jnp.nan, state.dtype)
        none = jnp.zeros((0,), jnp.int32)
        point = Point(
            *(t, state[:n], state[n:], unknown, nothing, nothing, none, none),
            problem=resolved,
            mechanics=assemble(resolved),
        )
        assert self.section is not None
        return jnp.asarray(bound(problem, "section", self.section)(point), state.dtype)

    def residual(self, z: Unknowns, motion: Motion) -> Float[Array, " e"]:
        """Left sides of all equations."""
        off = (motion.ends - jnp.roll(z.states, -1, axis=0)).ravel()
        return jnp.append(off, motion.phase) if self.autonomous else off

    def jacobian(self, motion: Motion) -> Float[Array, "e u"]:
        """Derivatives of the left sides by the unknowns: states, period, parameter."""
        count, n2 = motion.ends.shape
        eye = jnp.eye(n2, dtype=motion.ends.dtype)
        if count == 1:
            rows = motion.gain[0] - eye
        else:
            blocks = jnp.zeros((count, n2, count, n2), motion.ends.dtype)
            i = jnp.arange(count, dtype=jnp.int32)
            blocks = blocks.at[i, :, i, :].add(motion.gain)
            blocks = blocks.at[i, :, (i + 1) % count, :].add(-eye)
            rows = blocks.reshape(count * n2, count * n2)
        columns = [rows]
        if self.autonomous:
            columns.append(motion.by_period.reshape(-1, 1))
        if self.path is not None:
            columns.append(motion.by_parameter.reshape(-1, 1))
        rows = jnp.concatenate(columns, axis=1)
        if not self.autonomous:
            return rows
        others = jnp.zeros(((count - 1) * n2,), rows.dtype)
        last = jnp.concatenate([motion.phase_by[:n2], others, motion.phase_by[n2:]])
        return jnp.concatenate([rows, last[None]])

    def pack(self, z: Unknowns) -> Float[Array, " u"]:
        """The unknowns as one vector."""
        parts = [z.states.ravel()]
        parts += [z.period[None]] if self.autonomous else []
        parts += [z.parameter[None]] if self.path is not None else []
        return jnp.concatenate(parts)

    def moved(self, z: Unknowns, step: Float[Array, " u"]) -> Unknowns:
        """The unknowns after a step."""
        size = z.states.size
        period = z.period + step[size] if self.autonomous else z.period
        parameter = z.parameter + step[-1] if self.path is not None else z.parameter
        return Unknowns(z.states + step[:size].reshape(z.states.shape), period, parameter)


def _smallest_gap(problem: Problem, t, q) -> Float[Array, ""]:
    """The smallest gap at a start, negative for a guess inside another body."""
    if not problem.section("contact"):
        return jnp.asarray(jnp.inf, q.dtype)
    mechanics = assemble(problem.resolved()).at(t, q, jnp.zeros_like(q))
    return jax.lax.stop_gradient(jnp.min(mechanics.gaps(t, q)))
