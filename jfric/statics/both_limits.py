"""Limits of friction for both directions of sliding, as one array."""

from __future__ import annotations

from collections.abc import Sequence

import jax.numpy as jnp
from jaxtyping import Array, Float


def both_limits(pairs: Sequence[tuple], dtype) -> Float[Array, "2 nt"]:
    """Limits (2, nt), first all forwards, from ``pairs`` (forwards, backwards) of each contact."""
    if not pairs:
        return jnp.zeros((2, 0), dtype)
    return jnp.stack([jnp.stack([jnp.asarray(p[i], dtype) for p in pairs]) for i in (0, 1)])
