"""What counts as zero in a step, always relative to the magnitudes of the contributions."""

from __future__ import annotations

import jax.numpy as jnp

#: Rounding of gaps and velocities relative to the sum of their contributions.
RELATIVE = 1e-12


def touches(gap, size):
    """Whether a gap, were the contact to close in this step, is closed at its end."""
    # In float32 the gap itself is not known better than its rounding error.
    relative = jnp.maximum(RELATIVE, 16 * jnp.finfo(jnp.result_type(gap)).eps)
    return gap <= relative * size


def rests_on_contact(before, after):
    """Largest rebound velocity that still counts as rest: what forces take back in the step."""
    return jnp.maximum(before - after, 0.0)


def gains_energy(impulse, before, after):
    """Whether impulses (m,) feed energy into relative velocities ``before`` and ``after``."""
    work = impulse * (before + after)
    return jnp.sum(work) > 1e-9 * jnp.sum(jnp.abs(work))
