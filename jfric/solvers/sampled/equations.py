"""Equation of motion of one degree of freedom with at most one friction element."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp

from jfric.errors import ProblemError
from jfric.solvers.smoothed.friction import friction_force
from jfric.system.forces import applied_force, normal_forces_at
from jfric.system.mechanics import Mechanics


class Equations(eqx.Module):
    """``M dv/dt = f(t, q, v) + w lambda_T`` in scalars; ``gamma_T = w v``.

    ``width`` [m/s or rad/s]: width of a smoothed friction law (tanh); None: the set-valued law.
    """

    mechanics: Mechanics
    width: float | None = eqx.field(static=True, default=None)

    def force(self, t, q, v):
        """All forces except friction [N or N m]."""
        return applied_force(self.mechanics, t, q[None], v[None])[0]

    # Compiled separately, and so traced, differentiated and batched once for its many calls.
    @jax.jit
    def acceleration(self, t, q, v, s):
        """``dv/dt`` while sliding in the direction ``s`` = 1 or -1 of ``gamma_T``."""
        m = self.mechanics
        f = self.force(t, q, v)
        if m.n_friction:
            w, law, normal = m.W_T[0, 0], m.laws[0], self._normal(t, q, v)
            gamma = w * v
            if self.width is not None:
                f = f + w * friction_force(law, gamma, normal, self.width, "tanh")
            else:
                # A stage may lie a little beyond the reversal; the law ends there.
                positive, negative = law.kinetic(jnp.maximum(s * gamma, 0.0))
                f = f - w * s * jnp.where(s > 0, positive, negative) * normal
        return f * m.M_inverse[0, 0]

    def stick_limits(self, t, q):
        """Largest forces along positive and negative sliding that stick withstands [N or N m]."""
        m = self.mechanics
        positive, negative = m.laws[0].static()
        normal = self._normal(t, q, jnp.zeros_like(q))
        return positive * normal, negative * normal

    @jax.jit
    def push(self, t, q):
        """Force along the direction of sliding that friction has to hold in stick."""
        return self.force(t, q, jnp.zeros_like(q)) / self.mechanics.W_T[0, 0]

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
    if mechanics.n != 1:
        return f"{mechanics.n} degrees of freedom"
    if mechanics.n_unilateral:
        return f"the unilateral contact {mechanics.contact_names[mechanics.n_friction]}"
    if mechanics.n_friction > 1:
        return f"{mechanics.n_friction} friction elements"
    if mechanics.redirected:
        return "friction with a reaction along another direction than that of sliding"
    if any(b is not None for b in mechanics.belts) or mechanics.base_functions:
        return "a moving belt or support"
    return ""
