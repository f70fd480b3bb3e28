"""Which violated contacts change their mode next: block pivoting with a finite fallback.

All violated contacts flip at once while that reduces their number; after ``TRIES`` flips without
progress only the violated contact of least index flips, which ends for every problem with
positive principal minors (Murty 1974; block form by Judice and Pires 1994). The block form does
not depend on the order of the contacts.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

TRIES = 6


class Pivoting(NamedTuple):
    """Progress of one decision: fewest violations so far, block flips left, flips made."""

    best: Int[Array, ""]
    tries: Int[Array, ""]
    flips: Int[Array, ""]


def start_pivoting() -> Pivoting:
    """Before the first flip of a decision."""
    return Pivoting(
        jnp.asarray(2**30, jnp.int32), jnp.asarray(TRIES, jnp.int32), jnp.asarray(0, jnp.int32)
    )


def select_flips(
    violated: Bool[Array, " c"], state: Pivoting
) -> tuple[Bool[Array, " c"], Pivoting]:
    """The contacts to flip now, and the progress after it."""
    if violated.shape[0] == 0:
        return violated, state
    count = jnp.sum(violated, dtype=jnp.int32)
    improved = count < state.best
    block = improved | (state.tries > 0)
    first = jnp.arange(violated.shape[0]) == jnp.argmax(violated)
    flips = violated & (block | first)
    return flips, Pivoting(
        best=jnp.minimum(count, state.best),
        tries=jnp.where(improved, TRIES, jnp.maximum(state.tries - 1, 0)).astype(jnp.int32),
        flips=state.flips + 1,
    )


def flip_limit(contacts: int) -> int:
    """Flips after which a decision counts as cycling."""
    return 40 + 20 * contacts
