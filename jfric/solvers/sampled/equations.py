"""Equation of motion of one degree of freedom with at most one friction element and any number of
elements that remember: springs in series with sliders, and bristles that rest when the body does.
"""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jfric.errors import ProblemError
from jfric.numerics.collocation import collocation
from jfric.solvers.smoothed.friction import friction_force
from jfric.system.bristle import DirectionalLoss, RateState
from jfric.system.forces import applied_force, normal_forces_at
from jfric.system.mechanics import Mechanics

#: Degree of the positions in a step with bristles, of the order 5.
DEGREE = 4


class State(NamedTuple):
    """Position, velocity, elongations of the springs with sliders, and states of bristles."""

    q: Float[Array, ""]
    v: Float[Array, ""]
    springs: Float[Array, "e N"]
    bristles: Float[Array, " b"]

    def rests(self, where) -> State:
        """The state, with zero velocity ``where`` this holds."""
        return self._replace(v=jnp.where(where, 0.0, self.v))


class Equations(eqx.Module):
    """``M dv/dt = f(t, q, v) + w lambda_T`` in scalars; ``gamma_T = w v``.

    ``width`` [m/s or rad/s]: width of a smoothed friction law (tanh); None: the set-valued law.
    """

    mechanics: Mechanics
    width: float | None = eqx.field(static=True, default=None)

    @property
    def direction(self):
        """Direction of sliding on the degree of freedom; that of the motion without friction."""
        m = self.mechanics
        return m.W_T[0, 0] if m.n_friction else jnp.ones_like(m.K[0, 0])

    @property
    def turns(self) -> bool:
        """Whether the equations differ between both directions of the motion."""
        m = self.mechanics
        return bool(m.n_friction or m.states)

    def at(self, before: State, q, v, bristles) -> State:
        """The state at ``q``, reached in one direction from the one ``before``."""
        sliders, springs = self.mechanics.piecewise.sliders, before.springs
        if sliders is not None:
            moved = sliders.directions[:, 0] * (q - before.q)
            springs = jnp.clip(springs + moved[:, None], -sliders.slip, sliders.slip)
        return State(q, v, springs, bristles)

    def forces(self, t, x: State):
        """All forces except friction [N or N m], then the rates of bristles."""
        m = self.mechanics
        if not m.states:
            return applied_force(m, t, x.q[None], x.v[None])
        sliders = m.piecewise.sliders
        springs = x.bristles[:0] if sliders is None else sliders.joined(x.springs)
        z = jnp.concatenate([springs, x.bristles])
        q, v = m.complete(x.q[None], x.v[None], z)
        return applied_force(m, t, q, v, None, z)

    # Compiled separately, and so traced, differentiated and batched once for its many calls.
    @jax.jit
    def rates(self, t, x: State, s):
        """``dv/dt`` while sliding in the direction ``s`` = 1 or -1 of ``gamma_T``, then rates of
        bristles."""
        m, q, v = self.mechanics, x.q, x.v
        found = self.forces(t, x)
        f = found[0]
        if m.n_friction:
            w, law, normal = m.W_T[0, 0], m.laws[0], self._normal(t, q, v)
            gamma = w * v
            if self.width is not None:
                f = f + w * friction_force(law, gamma, normal, self.width, "tanh")
            else:
                # A stage may lie a little beyond the reversal; the law ends there.
                positive, negative = law.kinetic(jnp.maximum(s * gamma, 0.0))
                f = f - w * s * jnp.where(s > 0, positive, negative) * normal
        return found.at[0].set(f * m.M_inverse[0, 0])

    def acceleration(self, t, x: State, s):
        """``dv/dt`` while sliding in the direction ``s``."""
        return self.rates(t, x, s)[0]

    @jax.jit
    def implicit_step(self, t, x: State, s, h) -> State:
        """The state after ``h``, sliding along ``s``, by collocation: bristles are stiff. It is
        not a number where the equations of the step have no solution."""
        still = jnp.zeros_like(x.bristles)
        q, v = jnp.append(x.q[None], still), jnp.append(x.v[None], x.bristles)

        def acceleration(passed, q, v):
            return self.rates(t + passed, self.at(x, q[0], v[0], v[1:]), s)

        first = acceleration(jnp.zeros_like(h), q, v)
        found = collocation(acceleration, q, v, h, lambda passed: first, degree=DEGREE)
        end = jnp.where(jnp.all(jnp.isfinite(found.error)), found.end, jnp.nan)
        n = q.shape[0]
        return self.at(x, end[0], end[n], end[n + 1 :])

    def stick_limits(self, t, q):
        """Largest forces along positive and negative sliding that stick withstands [N or N m]."""
        m = self.mechanics
        if not m.n_friction:
            return jnp.zeros_like(q), jnp.zeros_like(q)
        positive, negative = m.laws[0].static()
        normal = self._normal(t, q, jnp.zeros_like(q))
        return positive * normal, negative * normal

    @jax.jit
    def push(self, t, x: State):
        """Force along the direction of sliding that friction has to hold in stick."""
        return self.forces(t, x._replace(v=jnp.zeros_like(x.v)))[0] / self.direction

    def _normal(self, t, q, v):
        return normal_forces_at(self.mechanics, t, q[None], v[None])[0]


def is_one_degree(mechanics: Mechanics) -> bool:
    """Whether :class:`Equations` can represent a system."""
    return not _hindrance(mechanics)


def require_one_degree(mechanics: Mechanics) -> None:
    """Raise :class:`jfric.ProblemError` for a system that :class:`Equations` cannot represent."""
    if found := _hindrance(mechanics):
        raise ProblemError(
            f"sampled: found {found}, this solver takes one degree of freedom with at most one "
            "friction element against the ground; use the event-driven solver"
        )


def _hindrance(mechanics: Mechanics) -> str:
    if mechanics.n_dofs != 1:
        return f"{mechanics.n_dofs} degrees of freedom"
    bristles = () if mechanics.bristles is None else mechanics.bristles.elements
    if mechanics.n_states > len(bristles):
        return "a state with an equation of its own"
    if any(isinstance(e, RateState | DirectionalLoss) for e in bristles):
        return "a state that has no largest value"
    sliders = mechanics.piecewise.sliders
    if sliders is not None and sliders.coupled is not None:
        return "sliders that pull on each other"
    if mechanics.n_unilateral:
        return f"the unilateral contact {mechanics.contact_names[mechanics.n_friction]}"
    if mechanics.n_friction > 1:
        return f"{mechanics.n_friction} friction elements"
    if mechanics.redirected:
        return "friction with a reaction along another direction than that of sliding"
    if any(b is not None for b in mechanics.belts) or mechanics.base_functions:
        return "a moving belt or support"
    return ""
