"""A pass in scalars: one degree of freedom, one friction element, loads constant between steps.

The same decisions, steps and records as :mod:`jfric.solvers.event_driven.passes`, for the
systems that large sweeps are often made of. What is a matrix there is a number here, the motion
has a closed form (:mod:`jfric.solvers.event_driven.sliding`), and a change of mode takes no pass of
its own. It has derivatives in forward mode.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from jfric.contact import rules
from jfric.numerics.loops import once
from jfric.results.modes import Mode
from jfric.results.status import Flag, Status
from jfric.solvers.event_driven.advance import step_length
from jfric.solvers.event_driven.clock import later
from jfric.solvers.event_driven.constants import constants
from jfric.solvers.event_driven.flow_step import Step, step_without_guards
from jfric.solvers.event_driven.prepared import Prepared
from jfric.solvers.event_driven.sliding import Body, Slide, Sliding, first_stop, propagator, slide
from jfric.solvers.event_driven.state import State
from jfric.solvers.event_driven.transitions import at_breakpoint
from jfric.solvers.records import Records, write_events, write_outputs


def is_one_dof(prepared: Prepared) -> bool:
    """Whether this pass applies; decided from the structure of the problem alone."""
    mechanics = prepared.mechanics
    belts = [b for b in mechanics.belts if b is not None]
    constant = (*mechanics.load_functions, *mechanics.normal_forces, *belts)
    return (
        mechanics.n == 1
        and prepared.nt == prepared.nf == 1
        and not any(mechanics.redirected)
        and mechanics.has_linear_modes
        and mechanics.piecewise.count == 0
        and not mechanics.base_functions
        and all(_is_constant(f) for f in constant)
        and not any(b.breakpoints().shape[0] for b in belts)
    )


def _is_constant(function) -> bool:
    """Whether a function of time is constant between its breakpoints."""
    parts = function.components(0.0)
    return len(parts.polynomial) <= 1 and not parts.harmonics


def _body(prepared: Prepared, t, force) -> Body:
    mechanics = prepared.mechanics
    (normal,), (belt,) = mechanics.normal_forces, mechanics.belts
    w, flexibility = mechanics.W_T[0, 0], mechanics.M_inverse[0, 0]
    f = mechanics.f0[0] + force[0]
    for i, load in enumerate(mechanics.load_functions):
        f = f + mechanics.load_directions[i, 0] * load(t)
    zero = jnp.zeros_like(f)
    return Body(
        K=flexibility * mechanics.K[0, 0],
        C=flexibility * mechanics.C[0, 0],
        F=w * (flexibility * f),
        D=prepared.D[0, 0],
        belt=zero if belt is None else belt(t) + zero,
        N=normal(t) + zero,
    )


class _Law(NamedTuple):
    """Friction that stick carries at most and sliding causes, in the two directions."""

    hold_positive: Float[Array, ""]
    hold_negative: Float[Array, ""]
    slide_positive: Float[Array, ""]
    slide_negative: Float[Array, ""]


#: Friction with a given normal force.
_FRICTION = rules.Kind(unilateral=False)


class _Decision(NamedTuple):
    """Mode from now on, whether the sliding velocity is zero, and the guards at this instant.

    ``unseen``: whether it is zero although no event has made it zero.
    """

    mode: Array
    rests: Bool[Array, ""]
    slip: rules.GuardSign
    first: rules.GuardSign
    second: rules.GuardSign
    unseen: Bool[Array, ""]


def _decide(prepared: Prepared, x: Body, law: _Law, state: State, u, v, sizes) -> _Decision:
    """The mode that lasts.

    ``sizes``: what rounding errors of ``u`` and ``v`` are relative to. Under constant loads a
    guard is zero identically if it and its first derivatives are: the rate of a limit, and the
    acceleration and jerk of sliding.
    """
    # Magnitudes of all contributions to sliding velocity, acceleration, jerk, ...
    u_size, v_size = sizes
    K, C = jnp.abs(x.K), jnp.abs(x.C)
    carried = x.D * jnp.maximum(law.hold_positive, law.hold_negative)
    a_size = jnp.abs(x.F) + K * u_size + C * v_size + carried
    jerk_size = K * v_size + C * a_size
    eps = constants(u.dtype).zero
    slip_zero = [v_size + jnp.abs(x.belt), a_size, jerk_size, K * a_size + C * jerk_size]
    slip_zero = [eps * y for y in slip_zero]
    at_break = at_breakpoint(prepared, state)
    mode, known = state.mode[0], [state.known[0], state.known[1]]
    if prepared.mechanics.belts[0] is not None:
        jumped = at_break & rules.has_jumped(v - x.belt, slip_zero[0])
        mode, known[0] = rules.released(_FRICTION, mode, known[0], v - x.belt, jumped)

    def slip(mode, v, known):
        direction, friction = _sliding(law, mode)
        there = slide(x, u, v, friction)
        rates = (v - x.belt, there.a, there.jerk, there.snap)
        return rules.guard_sign([direction * y for y in rates], slip_zero, known=known)

    slips = rules.slides(mode)
    old = slip(mode, v, known[0])
    # What sticks, or comes to rest: the force that would hold it decides.
    hold, rate = _holding(x, u)
    zero = [eps * a_size, eps * jnp.abs(rate)]
    limits = (x.D * law.hold_positive + hold, rate), (x.D * law.hold_negative - hold, -rate)
    first, second = (
        rules.guard_sign(limit, zero, known=jnp.where(slips, 0, k), of_force=True)
        for limit, k in zip(limits, known, strict=True)
    )
    going = rules.next_mode(_FRICTION, mode, old, second, mode).mode
    rests = ~slips | old.null | (known[0] > 0) | (going == Mode.STICK)
    stick = jnp.full_like(mode, Mode.STICK)
    tried = rules.next_mode(_FRICTION, stick, first, second, stick).mode
    start = slip(tried, x.belt, 1)
    unseen = rules.arrives_unseen(mode, old, known[0]) & ~at_break
    mode = jnp.where(rests, rules.mode_from_rest(tried, start), going).astype(jnp.int32)
    chosen = rules.GuardSign(*(jnp.where(rests, a, b) for a, b in zip(start, old, strict=True)))
    return _Decision(mode, rests, chosen, first, second, unseen)


def _sliding(law: _Law, mode):
    """Sign of the sliding velocity, and the friction that it causes."""
    positive = mode == Mode.SLIP_POS
    direction = jnp.where(positive, 1.0, -1.0).astype(law.slide_positive.dtype)
    return direction, jnp.where(positive, -law.slide_positive, law.slide_negative)


def _holding(x: Body, u):
    """``D`` times the friction that holds the body, and its rate as the belt carries it on."""
    return x.K * u + x.C * x.belt - x.F, x.K * x.belt


def one_dof_pass(
    prepared: Prepared,
    state: State,
    records: Records,
    ts,
    target,
    force,
    on,
    *,
    derivatives: bool,
) -> tuple[State, Records, Callable[[], Step]]:
    """Like :func:`jfric.solvers.event_driven.passes.one_pass`; ``derivatives``: whether there will
    be any (in forward mode)."""
    w = prepared.mechanics.W_T[0, 0]
    x = _body(prepared, state.t, force)
    law = _Law(
        prepared.static_positive[0] * x.N,
        prepared.static_negative[0] * x.N,
        prepared.kinetic_positive[0] * x.N,
        prepared.kinetic_negative[0] * x.N,
    )
    x, law = once((x, law), on)
    # Without a meaning: nothing is recorded.
    on = on & (x.N >= 0)
    u, q = w * state.q[0], state.q[0]
    sizes = jnp.abs(w) * state.q_scale[0], jnp.abs(w) * state.v_scale[0]
    # Decisions have no derivatives.
    still = jax.lax.stop_gradient((prepared, x, law, state, u, w * state.v[0], sizes))
    decision = once(_decide(*still), on)
    mode = decision.mode
    v = jnp.where(decision.rests, x.belt, w * state.v[0])
    sticks = mode == Mode.STICK
    direction, friction = _sliding(law, mode)
    start = once(slide(x, u, v, friction), on)

    order, theta = constants(q.dtype).order, constants(q.dtype).theta
    C = jnp.abs(x.C)
    omega = jnp.where(sticks, 0.0, 0.5 * (C + jnp.sqrt(C * C + 4.0 * jnp.abs(x.K))))
    natural = jnp.where(omega > 0, theta / jnp.where(omega > 0, omega, 1.0), jnp.inf)
    natural = jax.lax.stop_gradient(natural)
    reach, h = step_length(prepared, state, records, ts, target, natural)
    h = once(jnp.where(on, h, 1.0), on)

    hold, rate = _holding(x, u)
    first_at = _falls_to_zero(x.D * law.hold_positive + hold, rate, decision.first)
    second_at = _falls_to_zero(x.D * law.hold_negative - hold, -rate, decision.second)
    # Where the sliding velocity is zero, body and belt are as fast.
    zero = jax.lax.stop_gradient(constants(q.dtype).zero * 2.0 * jnp.abs(x.belt))
    way = Sliding(direction, decision.slip.order, ~sticks, order, zero)
    stop = first_stop(x, start, way, h, derivatives=derivatives)
    inverse = 1.0 / w
    s = jnp.where(sticks, jnp.minimum(jnp.minimum(first_at, second_at), h), stop.s)
    # Stick without drift: not through ``u``.
    q_new = jnp.where(sticks, q + inverse * x.belt * s, inverse * stop.u)
    v, v_new = inverse * v, inverse * jnp.where(sticks, x.belt, stop.v)
    first = jnp.where(sticks, (first_at <= h) & (first_at <= second_at), stop.found)
    second = sticks & (second_at <= h) & ~first
    arrives = ~first & ~second & (s >= h)
    t_new, rest = (
        jnp.where(arrives, a, b)
        for a, b in zip(reach, later(state.t, state.t_rest, s), strict=True)
    )

    shown = mode[None]
    changed = on & state.settled & (shown != state.recorded)
    records, total = write_events(
        records,
        changed,
        state.t,
        state.recorded,
        shown,
        jnp.zeros_like(changed),
        state.q,
        v[None],
        v[None],
        state.event_count,
    )
    friction = jnp.where(sticks, hold / x.D, friction)
    whole_step = functools.partial(_as_step, x, start, friction, rate / x.D, sticks, w, h)
    if ts.shape[0]:
        held = _Held(q, x.belt, friction, rate / x.D)

        def at(s):
            return _values(x, start, held, sticks, w, s * h)

        records = write_outputs(records, ts, at, state, h, t_new, shown, state.segment, on)
    # Comparisons hide what is NaN: all parameters are looked at.
    parts = (q_new, v_new, start.a, start.snap, hold, law.hold_positive, law.hold_negative)
    finite = jnp.isfinite(sum(parts))
    status = jnp.where(finite, state.status, int(Status.NON_FINITE))
    tie = rules.is_tie(mode, decision.first.null, decision.second.null)
    flags = state.flags | jnp.where(tie, int(Flag.TIE), 0)
    grazes = decision.unseen | (~sticks & stop.grazes)
    flags = flags | jnp.where(grazes, int(Flag.GRAZING), 0)
    largest_v = jnp.abs(v) + jnp.where(sticks, 0.0, h * jnp.abs(inverse * start.a))
    new = eqx.tree_at(
        _changing,
        state,
        (
            t_new,
            rest,
            q_new[None],
            v_new[None],
            jax.lax.stop_gradient(jnp.abs(q) + h * largest_v)[None],
            jax.lax.stop_gradient(largest_v)[None],
            shown,
            shown,
            jnp.asarray(True),
            jnp.stack([first, second]).astype(jnp.int32),
            status.astype(jnp.int32),
            flags.astype(jnp.int32),
            state.steps + 1,
            total,
            jnp.full_like(h, jnp.inf),
        ),
    )
    return new, records, whole_step


def _changing(s: State):
    """What a pass changes."""
    return (
        *(s.t, s.t_rest, s.q, s.v, s.q_scale, s.v_scale, s.mode, s.recorded, s.settled, s.known),
        *(s.status, s.flags, s.steps, s.event_count, s.h_max),
    )


def _falls_to_zero(value, rate, sign: rules.GuardSign):
    """Time until a guard of a sticking contact is zero."""
    falls = (rate < 0) & ~sign.null
    return jnp.where(falls, jnp.maximum(value, 0.0) / jnp.where(falls, -rate, 1.0), jnp.inf)


class _Held(NamedTuple):
    """A sticking contact: its position and velocity, the friction and its rate."""

    q: Float[Array, ""]
    belt: Float[Array, ""]
    friction: Float[Array, ""]
    rate: Float[Array, ""]


def _values(x: Body, start: Slide, held: _Held, sticks, w, s) -> tuple[Array, ...]:
    """Position, velocity, acceleration, friction and normal force a time ``s`` after the start."""
    u, v, a = start.after(propagator(x, s, constants(s.dtype).order))
    inverse = 1.0 / w
    q = jnp.where(sticks, held.q + inverse * held.belt * s, inverse * u)
    v = inverse * jnp.where(sticks, held.belt, v)
    a = jnp.where(sticks, 0.0, inverse * a)
    friction = held.friction + jnp.where(sticks, held.rate * s, 0.0)
    return q[None], v[None], a[None], friction[None], jnp.zeros((0,), s.dtype)


def _as_step(x: Body, start: Slide, friction, rate, sticks, w, h) -> Step:
    """The motion as polynomials, for observables."""
    order = constants(h.dtype).order
    zero = jnp.zeros_like(h)
    u = [start.u, start.v * h]
    Kh, Ch, push = x.K * h * h, x.C * h, (x.F + x.D * friction) * h * h
    for j in range(order + 1):
        value = (push if j == 0 else zero) - Ch * (j + 1.0) * u[j + 1] - Kh * u[j]
        u.append(jnp.where(sticks, 0.0, value * (1.0 / ((j + 1) * (j + 2)))))
    u = [y / w for y in u]
    velocity = [(j + 1.0) / h * u[j + 1] for j in range(order + 2)]
    acceleration = [(j + 1.0) / h * velocity[j + 1] for j in range(order + 1)]
    zeros = [zero] * (order + 1)
    columns = (
        u[: order + 1],
        velocity[: order + 1],
        acceleration,
        [friction, jnp.where(sticks, rate * h, 0.0), *zeros[2:]],
        [x.N, *zeros[1:]],
        zeros,
    )
    return step_without_guards(h, jnp.stack([jnp.stack(y) for y in columns], axis=1))
