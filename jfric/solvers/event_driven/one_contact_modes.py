"""What decides about one contact, in scalars: numbers for :mod:`jfric.contact.rules`, and
the impact."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from jfric.contact import rules
from jfric.contact.closed_form import Coefficients, contact_impulse, contact_numbers
from jfric.results.modes import Mode
from jfric.solvers.event_driven.constants import constants
from jfric.solvers.event_driven.prepared import Prepared
from jfric.solvers.event_driven.scalar_equations import Motion, Operators, Reaction
from jfric.solvers.event_driven.scalar_given import ScalarGiven
from jfric.solvers.event_driven.scalar_rows import dot, total
from jfric.solvers.event_driven.state import State
from jfric.solvers.event_driven.transitions import at_breakpoint


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
    jumps = at_breakpoint(prepared, state)
    jumped = [
        jumps & rules.has_jumped(u, s)
        for u, s in zip(relative.velocity, relative.small, strict=True)
    ]
    mode, known[0] = rules.released(
        prepared.only_kind, mode, known[0], relative.velocity[0], *jumped
    )
    return mode, known


def next_mode(
    prepared: Prepared, mode, signs: list[rules.GuardSign], relative: Relative
) -> rules.NextMode:
    """The mode that violated guards lead to."""
    kind, closed = prepared.only_kind, mode
    if prepared.nu:
        closed = rules.closed_mode(kind.frictionless, relative.velocity[0], relative.small[0])
    first, second = signs
    return rules.next_mode(kind, mode, first, second, closed)


class End(NamedTuple):
    """Motion and basis functions at the end of a step, and the guards that fired there."""

    q: list
    v: list
    w: list
    fired: list


def predict(
    prepared: Prepared, x: Operators, X: Reaction, y: Motion, g: ScalarGiven, mode, end: End
) -> Int[Array, ""]:
    """The mode to try first after an event."""
    z = [*end.q, *end.v, *end.w]
    n = prepared.mechanics.n
    rate = [dot(row, z) for row in y.a]
    D = prepared.D
    compliance = D[0, 0]
    if prepared.nu:
        # Sliding with the normal constraint.
        compliance = compliance - (D[0, 0] * X.tn + D[0, 1] * X.nn) * D[1, 0]
    trial = rules.Trial(
        friction=dot(y.friction, z),
        normal=dot(y.normal_force, z),
        acceleration=total(x.W[0, i] * rate[i] for i in range(n)) - dot(g.acceleration[0], end.w),
        compliance=compliance,
        static_positive=prepared.static_positive[0],
        static_negative=prepared.static_negative[0],
    )
    first, second = end.fired
    return rules.predicted_mode(mode, first, second, trial)


class Now(NamedTuple):
    """Mode and motion before an impact; ``fall``: half the second derivative of the gap."""

    mode: Int[Array, ""]
    q: list
    v: list
    fall: Any


class Impact(NamedTuple):
    """State right after an impact; as in :class:`jfric.solvers.event_driven.impacts.Impact`."""

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
    hit = rules.hit(
        mode,
        touching,
        -gamma_n,
        small_n,
        pull=-2.0 * fall,
        e=mechanics.e[0],
        negligible=accumulation * (state.t - state.start),
    )
    positive, negative = prepared.kinetic_positive[0], prepared.kinetic_negative[0]
    target = rules.restitution(gamma_n, gamma_n, hit.e)
    frictionless, smooth = mechanics.frictionless[0], mechanics.smooth_impact[0]
    if frictionless or smooth:
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
    closed = rules.mode_after_impact(
        frictionless,
        found,
        touching,
        (after_t, after_n),
        (small_t, small_n),
        hit.e,
        smooth=smooth,
    )
    changed = [x.WM[0, i] * push_t + x.WM[1, i] * push_n for i in range(n)]
    following = [a + b for a, b in zip(v, changed, strict=True)]
    caused = [jnp.abs(x.WM[0, i] * push_t) + jnp.abs(x.WM[1, i] * push_n) for i in range(n)]
    scale = [jnp.abs(a) + b for a, b in zip(following, caused, strict=True)]
    energies = (
        rules.impulse_energy(push_t, gamma_t, after_t),
        rules.impulse_energy(push_n, gamma_n, after_n),
    )
    partner = -push_t * dot(g.velocity[0], g.basis.w) - push_n * dot(g.velocity[1], g.basis.w)
    energy = 0.5 * total(v[i] * mechanics.M[i, j] * v[j] for i in range(n) for j in range(n))
    return Impact(
        q=_onto_gap(prepared, x, g, q),
        v=following,
        v_scale=scale,
        mode=closed.mode,
        hitting=hit.hits,
        due=hit.due(state.t),
        zeno=hit.accumulates,
        solved=solved,
        gained=jax.lax.stop_gradient(rules.energy_gain(sum(energies), energy + jnp.abs(partner))),
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
    speed_t, speed_n = jnp.abs(gamma_t) / jnp.sqrt(D[0, 0]), jnp.abs(gamma_n) / jnp.sqrt(D[1, 1])
    fast = rules.slides_through(speed_t, speed_n)
    kept = rules.slip(gamma_t > 0)
    ratio = jnp.where(gamma_t > 0, -positive, negative)
    keeps = fast & (mode != Mode.OPEN)
    pushes = D[1, 1] + D[1, 0] * ratio > 0
    return (
        jnp.where(keeps, kept, mode).astype(jnp.int32),
        jnp.where(keeps, pushes, solved),
    )
