"""Given normal forces during a run: where they become negative, the motion has no meaning.

Numbers are checked before a run; those that a sweep or a fit varies are known inside it only.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool

from jfric.numerics.tolerances import tolerances
from jfric.solvers.event_driven.prepared import Prepared
from jfric.system.functions import Constant

#: Points of a step that are looked at, the start included. A step is shorter than half a period.
POINTS = 17


def becomes_negative(prepared: Prepared, t, passed) -> Bool[Array, ""]:
    """Whether a given normal force is negative at one of some points between ``t`` and a time
    ``passed`` later, on the smooth piece that begins at or holds ``t``."""
    s = jnp.linspace(0.0, 1.0, POINTS, dtype=prepared.D.dtype) * jax.lax.stop_gradient(passed)
    found = jnp.asarray(False)
    for force in prepared.mechanics.normal_forces:
        polynomial, harmonics = jax.lax.stop_gradient(force.components(t))
        points = jnp.zeros((1,)) if isinstance(force, Constant) else s
        value = sum((p * points**j for j, p in enumerate(polynomial)), jnp.zeros_like(points))
        value = sum((a * jnp.sin(w * points + angle) for a, angle, w in harmonics), value)
        size = sum((jnp.abs(a) for a, _, _ in harmonics), sum(map(jnp.abs, polynomial), 0.0))
        found = found | jnp.any(value < -tolerances(value.dtype).zero * size)
    return found
