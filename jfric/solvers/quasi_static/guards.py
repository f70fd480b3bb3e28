"""Guards of a mode: quantities that must not become negative, and the modes that follow.

Each contact has two guards, then each piecewise-linear spring has two::

    stick   mu(+) N + lambda_T,  mu(-) N - lambda_T
    slip    s (sliding displacement) of the increment, lambda_N   (unilateral contacts)
    open    g_N
    segment the elongation's distances to its ends

Within a mode all guards are straight lines over the increment.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from jfric.contact import rules
from jfric.numerics.tolerances import tolerances
from jfric.results.modes import Mode
from jfric.solvers.quasi_static.increment import Increment, friction_limits
from jfric.solvers.quasi_static.state import State
from jfric.system.mechanics import Mechanics


class Guards(NamedTuple):
    """Values of guards, their changes over the increment, and magnitudes that count as zero."""

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
