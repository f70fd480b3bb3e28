"""A small change of positions and velocities in which no motion is missing.

Derivatives of a run are those of its steps, whose length the error of the motion alone would choose
too long: a motion that rests has none, however fast what is near it moves. Where derivatives are
asked for, the error of such a change takes part in the choice.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float


def generic_change(inertia_scale: Float[Array, " n"], time=1.0) -> Float[Array, " y"]:
    """Irregular parts of one size: velocities (n,) by the square roots of inertias, positions by
    what such velocities make of them in ``time`` [s]; positions come first."""
    k = np.arange(1, 2 * inertia_scale.shape[0] + 1)
    # Multiples of irrational numbers.
    signs = np.where(k * 0.41421356237 % 1.0 < 0.5, -1.0, 1.0)
    parts = signs * (0.5 + k * 0.61803398875 % 1.0)
    scale = jax.lax.stop_gradient(inertia_scale)
    scale = 1.0 / jnp.where(scale > 0, scale, 1.0)
    return jnp.asarray(parts, scale.dtype) * jnp.concatenate([time * scale, scale])
