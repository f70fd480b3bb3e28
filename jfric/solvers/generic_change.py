"""Small change of positions and velocities that contains every motion of a system.

Derivatives of a run are those of its steps. If the error of the motion alone determined their
length, they would be too long: a motion at rest has no error, however fast the motions close to it
are. Where derivatives are required, the error of such a change takes part in the choice of steps.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jfric.numerics.choice import select


def generic_change(inertia_scale: Float[Array, " n"], time=1.0) -> Float[Array, " y"]:
    """Irregular values of similar size: positions (n,), then velocities (n,). Velocities are
    divided by the square roots of inertias; positions are displacements by such velocities in
    ``time`` [s]."""
    k = np.arange(1, 2 * inertia_scale.shape[0] + 1)
    # Multiples of irrational numbers.
    signs = np.where(k * 0.41421356237 % 1.0 < 0.5, -1.0, 1.0)
    parts = signs * (0.5 + k * 0.61803398875 % 1.0)
    scale = jax.lax.stop_gradient(inertia_scale)
    scale = 1.0 / select(scale > 0, scale, 1.0)
    return jnp.asarray(parts, scale.dtype) * jnp.concatenate([time * scale, scale])
