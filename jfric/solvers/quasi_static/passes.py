"""One pass of the quasi-static solver: settle the modes, or advance to the next breakpoint."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from jfric.contact import rules
from jfric.contact.pivoting import flip_limit, select_flips, start_pivoting
from jfric.numerics.tolerances import tolerances
from jfric.results.modes import Mode
from jfric.results.status import Flag, Status
from jfric.solvers.quasi_static.increment import Increment, friction_limits, increment
from jfric.solvers.quasi_static.state import State, target
from jfric.solvers.records import Records, write_events
from jfric.system.mechanics import Mechanics


class Passed(NamedTuple):
    """State after a pass, the buffers, and the path that each contact slid."""

    state: State
    records: Records
    slip: Float[Array, " nt"]


def one_pass(
    mechanics: Mechanics, times, state: State, records: Records, ts, until, force, on
) -> Passed:
    """One pass from ``state``; buffers are written only where ``on``.

    ``times``: knots of the load history; ``until``: time that the pass does not go beyond;
    ``force`` (n,): extra constant force.
    """
    goal = target(mechanics, times, state.stage, state.t, until)
    goal = goal._replace(given=goal.given._replace(f=goal.given.f + force))
    step = increment(mechanics, state, goal)
    found = guards(mechanics, state, step)
    # The choice of the next mode has no derivative; the place of the breakpoint has one.
    signs = found.signs
    mode, segment = following(mechanics, state, signs)
    changes = jnp.concatenate([mode != state.mode, segment != state.segment])
    settled = ~changes.any()

    # Not settled: change modes at this instant.
    nt = mechanics.n_contacts
    flips, _, pivoting = select_flips(changes, state.pivoting)

    # Settled: go to the earliest breakpoint, or to the target.
    fractions = found.fraction
    earliest = jnp.min(fractions, initial=2.0)
    breaks = earliest < 1.0
    fraction = jnp.where(breaks, earliest, 1.0)
    arrives = ~breaks
    t_new = jnp.where(arrives, goal.t, state.t + fraction * (goal.t - state.t))
    elapsed = goal.t - state.t
    v = jnp.where(elapsed > 0, step.q / jnp.where(elapsed > 0, elapsed, 1.0), 0.0)
    status = _status(state, step, settled, pivoting, nt)
    moves = settled & (status == int(Status.OK))

    modes = shown(mechanics, state)
    changed = on & settled & state.settled & (modes != state.recorded)
    records, total = write_events(
        records,
        changed,
        state.t,
        state.recorded,
        modes,
        jnp.zeros_like(changed),
        state.q,
        v,
        state.v,
        state.event_count,
    )
    ends = moves & arrives & goal.ends_stage
    stage = jax.tree.map(
        lambda a, b: jnp.where(ends, a, b), state.stage.following(times.shape[0] - 1), state.stage
    )
    q = state.q + fraction * step.q
    new = State(
        t=jnp.where(moves, t_new, state.t),
        q=jnp.where(moves, q, state.q),
        v=jnp.where(moves, v, state.v),
        lambda_t=jnp.where(moves, state.lambda_t + fraction * step.lambda_t, state.lambda_t),
        lambda_n=jnp.where(moves, state.lambda_n + fraction * step.lambda_n, state.lambda_n),
        normal=jnp.where(moves, state.normal + fraction * step.normal, state.normal),
        z=jnp.where(moves, state.z + fraction * step.z, state.z),
        q_scale=jnp.maximum(state.q_scale, jax.lax.stop_gradient(jnp.abs(q))),
        mode=jnp.where(flips[:nt] & ~settled, mode, state.mode),
        segment=jnp.where(flips[nt:] & ~settled, segment, state.segment),
        recorded=jnp.where(settled, modes, state.recorded),
        settled=state.settled | settled,
        start=state.start,
        stage=stage,
        ended=state.ended | (ends & goal.ends_history),
        pivoting=jax.tree.map(lambda a, b: jnp.where(settled, a, b), start_pivoting(), pivoting),
        status=status,
        flags=state.flags | jnp.where(settled, _remarks(mechanics, state, step, signs, changed), 0),
        steps=state.steps + 1,
        event_count=total,
    )
    records = write_outputs(records, ts, state, step, fraction, new, modes, on & moves)
    return Passed(new, records, jnp.where(moves, fraction * step.slip, 0.0))


def _status(state: State, step, settled, pivoting, nt: int):
    cycles = ~settled & (pivoting.flips > flip_limit(nt + state.segment.shape[0]))
    code = jnp.where(cycles | (settled & step.unstable), int(Status.INCONSISTENT), state.status)
    code = jnp.where(step.free & (settled | cycles), int(Status.SINGULAR), code)
    finite = jnp.isfinite(jnp.sum(step.q) + jnp.sum(step.lambda_t) + jnp.sum(step.lambda_n))
    return jnp.where(finite, code, int(Status.NON_FINITE)).astype(jnp.int32)


def _remarks(mechanics: Mechanics, state: State, step, signs: rules.GuardSign, changed):
    nt = state.mode.shape[0]
    first, second = (rules.GuardSign(*(x[k : k + nt] for x in signs)) for k in (0, nt))
    # A contact that slid until a load turned carries its limit as it stops: no decision.
    stuck = state.recorded[:nt] == Mode.STICK
    edge = rules.is_tie(state.mode, first, second) & (stuck | first.null | second.null)
    flags = jnp.where(edge.any() & step.loaded & ~step.redundant, int(Flag.TIE), 0)
    flags = flags | jnp.where(step.redundant, int(Flag.REDUNDANT), 0)
    several = jnp.sum(changed, dtype=jnp.int32) > 1
    if state.mode.shape[0]:
        # With friction it matters which of two loads jumps first.
        together = jnp.sum(mechanics.jumps() == state.t, dtype=jnp.int32) > 1
        several = several | (together & ~state.stage.on_line)
    return (flags | jnp.where(several, int(Flag.SIMULTANEOUS), 0)).astype(jnp.int32)


class Guards(NamedTuple):
    """Values of guards, their changes over the increment, and magnitudes that count as zero.

    Each contact has two guards, then each piecewise-linear spring has two. They are straight lines
    over the increment, which must not become negative within a mode::

        stick   mu(+) N + lambda_T,  mu(-) N - lambda_T
        slip    s (sliding displacement) of the increment, lambda_N   (unilateral contacts)
        open    g_N
        segment the elongation's distances to its ends
    """

    value: Float[Array, " g"]
    change: Float[Array, " g"]
    zero: Float[Array, " g"]

    @property
    def signs(self) -> rules.GuardSign:
        """Signs on the increment: a guard at zero is violated if it would become negative.

        A value below zero is a rounding error, or comes from a load that is not balanced yet.
        """
        straight = jnp.maximum(self.value, 0.0), self.change
        return rules.guard_sign(straight, (self.zero, self.zero))

    @property
    def fraction(self) -> Float[Array, " g"]:
        """Fraction of the increment after which each becomes zero; above 1 where it does not."""
        falls = self.change < -self.zero
        value = jnp.maximum(self.value, 0.0)
        reached = value / jnp.where(falls, -self.change, 1.0)
        return jnp.where(falls, reached, 2.0)


def guards(mechanics: Mechanics, state: State, step: Increment) -> Guards:
    """All guards of the current modes."""
    nf, mode = mechanics.n_friction, state.mode
    zero = tolerances(state.q.dtype).zero
    positive, negative = friction_limits(mechanics)
    N = jnp.concatenate([state.normal, state.lambda_n])
    dN = jnp.concatenate([step.normal, step.lambda_n])
    # A guard that a mode lacks has the constant value one.
    one, still = jnp.ones_like(N), jnp.zeros_like(N)
    stick = mode == Mode.STICK
    sign = jnp.where(mode == Mode.SLIP_POS, 1.0, -1.0)
    frictionless = jnp.asarray(mechanics.frictionless, bool)
    slides = ~stick & (mode != Mode.OPEN) & ~frictionless

    # The sliding displacement starts from zero.
    first = jnp.where(stick, positive * N + state.lambda_t, jnp.where(slides, 0.0, one))
    d_first = jnp.where(stick, positive * dN + step.lambda_t, still)
    d_first = jnp.where(slides, sign * step.slip, d_first)
    second = jnp.where(stick, negative * N - state.lambda_t, one)
    d_second = jnp.where(stick, negative * dN - step.lambda_t, still)

    force = _force_scale(mechanics.W_T, step.force_scale)
    force = jnp.maximum(force, jnp.abs(state.lambda_t) + (positive + negative) * jnp.abs(N))
    reach = state.q_scale + jnp.abs(step.q)
    sliding_scale = jnp.abs(mechanics.W_T) @ reach
    zero_first = jnp.where(stick, force, sliding_scale)
    zero_second = force
    if mechanics.n_unilateral:
        m = mode[nf:]
        is_open, glued = m == Mode.OPEN, m == Mode.STICK
        # With friction the two limits show that the contact pulls.
        limited = glued & (positive[nf:] + negative[nf:] > 0)
        gap = mechanics.gap0 + mechanics.W_N @ state.q + mechanics.W_N_base @ state.z
        lengths = jnp.abs(mechanics.gap0) + jnp.abs(mechanics.W_N) @ reach
        lengths = lengths + jnp.abs(mechanics.W_N_base) @ jnp.abs(state.z)
        normal_force = _force_scale(mechanics.W_N, step.force_scale)
        first = first.at[nf:].set(jnp.where(is_open, gap, first[nf:]))
        d_first = d_first.at[nf:].set(jnp.where(is_open, step.gap, d_first[nf:]))
        zero_first = zero_first.at[nf:].set(jnp.where(is_open, lengths, zero_first[nf:]))
        pulls = ~is_open & ~limited
        second = second.at[nf:].set(
            jnp.where(is_open, 1.0, jnp.where(pulls, state.lambda_n, second[nf:]))
        )
        d_second = d_second.at[nf:].set(
            jnp.where(is_open, 0.0, jnp.where(pulls, step.lambda_n, d_second[nf:]))
        )
        zero_second = zero_second.at[nf:].set(jnp.where(pulls, normal_force, zero_second[nf:]))
    values, changes, scales = [first, second], [d_first, d_second], [zero_first, zero_second]
    piecewise = mechanics.piecewise
    if piecewise.count:
        x = piecewise.directions @ state.q + piecewise.base_directions @ state.z
        table = piecewise.at(state.segment, "guards")
        alpha, delta = table[..., 0], table[..., 2]
        length = jnp.abs(piecewise.directions) @ reach
        for g in (0, 1):
            values.append(alpha[:, g] * x + delta[:, g])
            changes.append(alpha[:, g] * step.elongation)
            scales.append(jnp.abs(alpha[:, g]) * length + jnp.abs(delta[:, g]))
    return Guards(jnp.concatenate(values), jnp.concatenate(changes), zero * jnp.concatenate(scales))


def _force_scale(W, force):
    """Magnitude of the reaction that the forces on the degrees of freedom would cause alone."""
    size = jnp.sum(W * W, axis=1)
    return (jnp.abs(W) @ force) / jnp.where(size > 0, size, 1.0)


def following(
    mechanics: Mechanics, state: State, signs: rules.GuardSign
) -> tuple[Int[Array, " nt"], Int[Array, " ns"]]:
    """Modes and segments to which violated guards lead."""
    nt, nf = mechanics.n_contacts, mechanics.n_friction
    first, second = (
        rules.GuardSign(*(x[part] for x in signs)) for part in (slice(nt), slice(nt, 2 * nt))
    )
    unilateral = np.arange(nt) >= nf
    frictionless = np.asarray(mechanics.frictionless, bool)
    positive, negative = friction_limits(mechanics)
    kind = rules.Kind(unilateral, frictionless, unilateral & (positive + negative == 0))
    # Nothing has a velocity: a contact that closes sticks, if it can.
    still = jnp.zeros((nt,), state.q.dtype)
    closed = rules.closed_mode(frictionless, still, still)
    mode = rules.next_mode(kind, state.mode, first, second, closed).mode
    segment = state.segment
    piecewise = mechanics.piecewise
    if piecewise.count:
        ns = piecewise.count
        g1, g2 = signs.violated[2 * nt : 2 * nt + ns], signs.violated[2 * nt + ns :]
        segment = piecewise.following(segment, g1, g2)
    return mode, segment


def shown(mechanics: Mechanics, state: State) -> Int[Array, " c"]:
    """Modes and segments as reported to users."""
    mode = rules.reported_mode(np.asarray(mechanics.frictionless, bool), state.mode)
    return jnp.concatenate([mode, mechanics.piecewise.shown(state.segment)])


def write_outputs(
    records: Records, ts, old: State, step: Increment, fraction, new: State, modes, on
) -> Records:
    """Write outputs on the line from ``old`` to ``new``, which is ``fraction`` of ``step``.

    At a jump of the load the values after it replace those before it.
    """
    count = ts.shape[0]
    if count == 0:
        return records
    jump = new.t == old.t
    inside = on & jnp.where(jump, ts == old.t, (ts > old.t) & (ts <= new.t))
    length = jnp.where(jump, 1.0, new.t - old.t)
    # On the edge a clipped place would have half its derivative.
    place = (ts - old.t) / length
    place = place + jax.lax.stop_gradient(jnp.clip(place, 0.0, 1.0) - place)
    share = fraction * jnp.where(jump, 1.0, place)

    def line(start, change):
        return start[None, :] + share[:, None] * change[None, :]

    rate = jnp.broadcast_to(new.v, (count, new.v.shape[0]))
    values = jnp.concatenate(
        [
            line(old.q, step.q),
            rate,
            jnp.zeros_like(rate),
            line(old.lambda_t, step.lambda_t),
            line(old.lambda_n, step.lambda_n),
        ],
        axis=1,
    )
    inside = inside[:, None]
    kept_values, kept_modes = records.output_values, records.output_modes
    return records._replace(
        output_values=kept_values.at[:count].set(jnp.where(inside, values, kept_values[:count])),
        output_modes=kept_modes.at[:count].set(
            jnp.where(inside, modes[None, :], kept_modes[:count])
        ),
    )
