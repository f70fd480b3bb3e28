"""Changes of mode of one contact, in scalars: see :mod:`jfric.solvers.event_driven.transitions`."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from jfric.complementarity.closed_form import Coefficients, contact_impulse, contact_numbers
from jfric.complementarity.impact import FAST
from jfric.modes import Mode
from jfric.solvers.event_driven.constants import constants
from jfric.solvers.event_driven.impacts import GAIN
from jfric.solvers.event_driven.prepared import Prepared
from jfric.solvers.event_driven.scalar_equations import Motion, Operators, Reaction
from jfric.solvers.event_driven.scalar_given import ScalarGiven
from jfric.solvers.event_driven.scalar_rows import dot, total
from jfric.solvers.event_driven.state import State
from jfric.solvers.event_driven.transitions import JUMP, at_breakpoint, touches


class Sign(NamedTuple):
    """A guard right after the start of a step: number of vanishing leading coefficients, whether
    all vanish, whether the first that does not is negative."""

    lead: Int[Array, ""]
    null: Bool[Array, ""]
    violated: Bool[Array, ""]

    def code(self) -> Int[Array, ""]:
        """All in one number: the compiler repeats for each number what leads to it."""
        return 4 * self.lead + 2 * self.null.astype(jnp.int32) + self.violated.astype(jnp.int32)

    @classmethod
    def from_code(cls, code: Int[Array, ""]) -> Sign:
        """The inverse of :meth:`code`."""
        return cls(code >> 2, (code & 2) != 0, (code & 1) != 0)


def guard_sign(leading: list, zero: list, of_force, known) -> Sign:
    """``zero``: magnitudes that count as zero. ``known`` leading coefficients are zero by
    construction; of forces, which may jump, only if they are not far beyond rounding."""
    beyond = constants(leading[0].dtype).known
    lead = jnp.zeros((), jnp.int32)
    still, negative = jnp.asarray(True), jnp.asarray(False)
    for k, (value, size) in enumerate(zip(leading, zero, strict=True)):
        magnitude = jnp.abs(value)
        forgotten = of_force & (magnitude > beyond * size)
        vanishes = (magnitude <= size) | ((k < known) & ~forgotten)
        if 1 <= k < len(leading) - 1:
            touched = touches(value, leading[k + 1], k, zero[0])
            vanishes = vanishes | (of_force & still & touched)
        negative = jnp.where(still & ~vanishes, value < 0, negative)
        still = still & vanishes
        lead = lead + still.astype(jnp.int32)
    return Sign(lead, still, negative)


def _closed_mode(prepared: Prepared, gamma, small):
    if prepared.mechanics.frictionless[0]:
        return jnp.full_like(gamma, Mode.SLIP_POS, jnp.int32)
    sliding = jnp.where(gamma > 0, Mode.SLIP_POS, Mode.SLIP_NEG)
    return jnp.where(jnp.abs(gamma) <= small, Mode.STICK, sliding).astype(jnp.int32)


class Relative(NamedTuple):
    """Relative velocities of the contact (tangent, normal), and what their rounding is."""

    velocity: list
    small: list


def relative_velocities(x: Operators, g: ScalarGiven, v, v_scale) -> Relative:
    """Of a body with the velocities ``v``."""
    n, w = len(g.force), g.basis.w
    w_size = g.basis.sizes()
    zero = constants(v_scale[0].dtype).zero
    velocity, small = [], []
    assert g.bound is not None
    for r, (row, largest) in enumerate(zip(g.velocity, g.bound.velocity, strict=True)):
        own = [x.W[r, i] for i in range(n)]
        velocity.append(total(a * b for a, b in zip(own, v, strict=True)) - dot(row, w))
        size = total(jnp.abs(a) * b for a, b in zip(own, v_scale, strict=True))
        small.append(zero * (size + dot(largest[: len(w_size)], w_size)))
    return Relative(velocity, small)


def release_after_jump(prepared: Prepared, x: Operators, g: ScalarGiven, state: State):
    """Mode and known zeros of the guards where the velocity of a belt or base jumped."""
    mode, known = state.mode[0], [state.known[0], state.known[1]]
    if not any((*prepared.mechanics.belts, *prepared.mechanics.base_functions)):
        return mode, known
    relative = relative_velocities(x, g, list(state.v), list(state.v_scale))
    limit = JUMP / constants(state.v.dtype).zero
    jumps = at_breakpoint(prepared, state)
    jumped = [
        jumps & (jnp.abs(u) > limit * s)
        for u, s in zip(relative.velocity, relative.small, strict=True)
    ]
    sliding = jnp.where(relative.velocity[0] > 0, Mode.SLIP_POS, Mode.SLIP_NEG)
    if not prepared.mechanics.frictionless[0]:
        slides = (mode != Mode.OPEN) & jumped[0]
        mode = jnp.where(slides, sliding, mode)
        known[0] = jnp.where(slides, 0, known[0])
    if prepared.nu:
        opens = jumped[1] & (mode != Mode.OPEN)
        mode = jnp.where(opens, Mode.OPEN, mode)
        known[0] = jnp.where(opens, 1, known[0])
    return mode.astype(jnp.int32), known


class Transition(NamedTuple):
    """The mode that violated guards lead to, and whether the contact closes with an impact."""

    mode: Int[Array, ""]
    violated: Bool[Array, ""]
    impact: Bool[Array, ""]
    #: Whether the gap is zero.
    touching: Bool[Array, ""]


def next_mode(prepared: Prepared, mode, signs: list[Sign], relative: Relative) -> Transition:
    """See :func:`jfric.solvers.event_driven.transitions.next_modes`."""
    first, second, lead = signs[0].violated, signs[1].violated, signs[0].lead
    stick, is_open = mode == Mode.STICK, mode == Mode.OPEN
    unlimited = prepared.unlimited[0]
    pulls = jnp.where(stick & ~unlimited, first & second, second)
    second = jnp.where(stick & unlimited, ~first & ~signs[0].null, second)
    opposite = jnp.where(mode == Mode.SLIP_POS, Mode.SLIP_NEG, Mode.SLIP_POS)
    slip = jnp.where(first, jnp.where(lead == 0, opposite, Mode.STICK), mode)
    from_stick = jnp.where(first, Mode.SLIP_POS, jnp.where(second, Mode.SLIP_NEG, mode))
    following = jnp.where(stick, from_stick, slip)
    hits, touching = jnp.asarray(False), jnp.asarray(False)
    if prepared.nu:
        opens = ~is_open & pulls
        following = jnp.where(opens, Mode.OPEN, following)
        closes = is_open & first
        closed = _closed_mode(prepared, relative.velocity[0], relative.small[0])
        following = jnp.where(is_open, jnp.where(closes, closed, mode), following)
        touching = ~is_open | (lead >= 1) | first
        hits = closes & (lead <= 1)
    return Transition(following.astype(jnp.int32), following != mode, hits, touching)


def known_after(mode, following, known: list, at_rest) -> list:
    """Zeros that the guards have by construction in the ``following`` mode.

    ``known``: those of the guards of ``mode``. ``at_rest``: whether the sliding velocity just
    reached zero.
    """
    changed = following != mode
    slides = (following == Mode.SLIP_POS) | (following == Mode.SLIP_NEG)
    slid = (mode == Mode.SLIP_POS) | (mode == Mode.SLIP_NEG)
    rested = (mode == Mode.STICK) | at_rest | (slid & (known[0] >= 1))
    first = jnp.where(following == Mode.OPEN, 2, jnp.where(slides & rested, 1, 0))
    return [
        jnp.where(changed, first, known[0]).astype(jnp.int32),
        jnp.where(changed, 0, known[1]).astype(jnp.int32),
    ]


class End(NamedTuple):
    """Motion and basis functions at the end of a step, and the guards that fired there."""

    q: list
    v: list
    w: list
    fired: list


def anticipate(
    prepared: Prepared, x: Operators, X: Reaction, y: Motion, g: ScalarGiven, mode, end: End
) -> Int[Array, ""]:
    """The mode to try first after an event: see
    :func:`jfric.solvers.event_driven.transitions.anticipate`."""
    first, second = end.fired
    z = [*end.q, *end.v, *end.w]
    n = prepared.mechanics.n
    friction, pressing = dot(y.friction, z), dot(y.pressing, z)
    rate = [dot(row, z) for row in y.a]
    acceleration = total(x.W[0, i] * rate[i] for i in range(n)) - dot(g.acceleration[0], end.w)
    D = prepared.D
    compliance = D[0, 0]
    if prepared.nu:
        # Sliding with the normal constraint.
        compliance = compliance - (D[0, 0] * X.tn + D[0, 1] * X.nn) * D[1, 0]
    positive = compliance > 0
    holding = friction - jnp.where(
        positive, acceleration / jnp.where(positive, compliance, 1.0), acceleration
    )
    beyond = 1.0 + 1e-6
    stop = jnp.where(
        holding > beyond * prepared.static_negative[0] * pressing, Mode.SLIP_NEG, Mode.STICK
    )
    stop = jnp.where(
        holding < -beyond * prepared.static_positive[0] * pressing, Mode.SLIP_POS, stop
    )
    slides = (mode == Mode.SLIP_POS) | (mode == Mode.SLIP_NEG)
    stick = mode == Mode.STICK
    following = jnp.where(first & slides, stop, mode)
    following = jnp.where(stick & first, Mode.SLIP_POS, following)
    following = jnp.where(stick & second, Mode.SLIP_NEG, following)
    return jnp.where(slides & second, Mode.OPEN, following).astype(jnp.int32)


class Now(NamedTuple):
    """Mode and motion before an impact; ``fall``: half the second derivative of the gap."""

    mode: Int[Array, ""]
    q: list
    v: list
    fall: Any


class Impact(NamedTuple):
    """State right after an impact; as in :class:`jfric.solvers.event_driven.transitions.Impact`."""

    q: list
    v: list
    v_scale: list
    mode: Int[Array, ""]
    hitting: Bool[Array, ""]
    due: Any
    zeno: Bool[Array, ""]
    solved: Bool[Array, ""]
    gained: Any


def impact(
    prepared: Prepared,
    x: Operators,
    g: ScalarGiven,
    state: State,
    now: Now,
    touching,
    accumulation: float,
) -> Impact:
    """Velocity jump of the contact, and its mode by the velocities after it.

    ``accumulation``: see :func:`jfric.solvers.event_driven.impacts.impact`.
    """
    mode, q, v, fall = now
    mechanics, n = prepared.mechanics, prepared.mechanics.n
    D = prepared.D
    before = relative_velocities(x, g, v, list(state.v_scale))
    gamma_t, gamma_n = before.velocity
    small_t, small_n = jax.lax.stop_gradient(before.small)
    approach = -gamma_n
    e = mechanics.e[0]
    # Rest of an accumulating sequence of impacts: flights 2 e v/a, then e times that, ...
    pull = -2.0 * fall
    repeats = (pull > 0) & (approach > 0) & (e < 1)
    rest = 2.0 * e * approach / jnp.where(repeats, pull, 1.0) / jnp.where(repeats, 1.0 - e, 1.0)
    rest = jnp.where(repeats, rest, jnp.inf)
    hitting = touching & (approach > small_n)
    accumulates = hitting & (e > 0) & (rest <= accumulation * (state.t - state.start))
    is_open = mode == Mode.OPEN
    e = jnp.where(accumulates | ~is_open, 0.0, e)
    positive, negative = prepared.kinetic_positive[0], prepared.kinetic_negative[0]
    target = (1.0 + e) * gamma_n
    if mechanics.frictionless[0] or mechanics.smooth_impact[0]:
        push_t = jnp.zeros_like(gamma_t)
        push_n = jnp.where(target < 0, -target / D[1, 1], 0.0)
        found = jnp.where(target < 0, Mode.CLOSED, Mode.OPEN)
        solved = jnp.asarray(True)
    else:
        push_t, push_n, found, solved = _rough_impulse(
            D, gamma_t, target, positive, negative, gamma_n
        )
    after_t = gamma_t + D[0, 0] * push_t + D[0, 1] * push_n
    after_n = gamma_n + D[1, 0] * push_t + D[1, 1] * push_n
    mode = _closed_mode(prepared, after_t, small_t)
    mode = jnp.where(found == Mode.STICK, Mode.STICK, mode)
    rests = touching & (jnp.abs(after_n) <= small_n)
    rests = rests | (touching & (found != Mode.OPEN) & (e == 0.0))
    mode = jnp.where(rests, mode, Mode.OPEN).astype(jnp.int32)
    changed = [x.WM[0, i] * push_t + x.WM[1, i] * push_n for i in range(n)]
    following = [a + b for a, b in zip(v, changed, strict=True)]
    caused = [jnp.abs(x.WM[0, i] * push_t) + jnp.abs(x.WM[1, i] * push_n) for i in range(n)]
    scale = [jnp.abs(a) + b for a, b in zip(following, caused, strict=True)]
    # Energy that the impulses add to the relative motion.
    gained = 0.5 * (push_t * (gamma_t + after_t) + push_n * (gamma_n + after_n))
    partner = -push_t * dot(g.velocity[0], g.basis.w) - push_n * dot(g.velocity[1], g.basis.w)
    energy = 0.5 * total(v[i] * mechanics.M[i, j] * v[j] for i in range(n) for j in range(n))
    return Impact(
        q=_onto_gap(prepared, x, g, q),
        v=following,
        v_scale=scale,
        mode=mode,
        hitting=hitting,
        due=jnp.where(accumulates, state.t + jnp.where(accumulates, rest, 0.0), -jnp.inf),
        zeno=accumulates,
        solved=solved,
        gained=jax.lax.stop_gradient(
            jnp.where(gained <= GAIN * (energy + jnp.abs(partner)), 0.0, gained)
        ),
    )


def _onto_gap(prepared: Prepared, x: Operators, g: ScalarGiven, q: list) -> list:
    """Positions at which the gap is zero, not only to rounding."""
    n = prepared.mechanics.n
    given = dot(g.gap, g.basis.w)
    missing = -(given + total(x.W[1, i] * q[i] for i in range(n)))
    moved = [q[i] + x.WM[1, i] * (missing / prepared.D[1, 1]) for i in range(n)]
    (dof,) = prepared.mechanics.single_normal
    if dof is not None:
        moved[dof] = -given / prepared.W[1, dof]
    return moved


def _rough_impulse(D, gamma_t, target, positive, negative, gamma_n):
    """Impulses with friction, the mode during the impact, and whether the laws hold.

    ``target``: normal velocity that the impulse takes away.
    """
    frozen = jax.lax.stop_gradient((D, gamma_t, target, positive, negative, gamma_n))
    mode, solved = _rough_mode(*frozen)
    ratio = jnp.where(
        mode == Mode.SLIP_POS, -positive, jnp.where(mode == Mode.SLIP_NEG, negative, 0.0)
    )
    stick, is_open = mode == Mode.STICK, mode == Mode.OPEN
    determinant = D[0, 0] * D[1, 1] - D[0, 1] * D[1, 0]
    inverse = 1.0 / jnp.where(stick, determinant, 1.0)
    along = D[1, 1] + D[1, 0] * ratio
    slide_n = -target / jnp.where(stick | is_open, 1.0, along)
    push_n = jnp.where(stick, (D[1, 0] * gamma_t - D[0, 0] * target) * inverse, slide_n)
    push_t = jnp.where(stick, (D[0, 1] * target - D[1, 1] * gamma_t) * inverse, ratio * slide_n)
    zero = jnp.zeros_like(push_n)
    return jnp.where(is_open, zero, push_t), jnp.where(is_open, zero, push_n), mode, solved


def _rough_mode(D, gamma_t, target, positive, negative, gamma_n):
    numbers = contact_numbers(
        ((D[0, 0], D[0, 1]), (D[1, 0], D[1, 1])),
        Coefficients(positive, negative, positive, negative),
    )
    _, _, mode, solved = contact_impulse(numbers, gamma_t, target)
    # Sliding far faster than the approach goes on.
    fast = jnp.abs(gamma_t) / jnp.sqrt(D[0, 0]) > FAST * jnp.abs(gamma_n) / jnp.sqrt(D[1, 1])
    kept = jnp.where(gamma_t > 0, Mode.SLIP_POS, Mode.SLIP_NEG)
    ratio = jnp.where(gamma_t > 0, -positive, negative)
    keeps = fast & (mode != Mode.OPEN)
    pushes = D[1, 1] + D[1, 0] * ratio > 0
    return (
        jnp.where(keeps, kept, mode).astype(jnp.int32),
        jnp.where(keeps, pushes, solved),
    )
