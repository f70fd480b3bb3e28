"""Choice of violated contacts that change mode next: block pivoting with a finite fallback.

All violated contacts flip at once while that reduces their number. After ``TRIES`` flips without
progress the decision starts once more from another proposal, if there is one. After that only
the violated contact of least index flips, which ends for every problem with positive principal
minors (Murty 1974; block form by Judice and Pires 1994). The block form does not depend on the
order of the contacts.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from jfric.numerics.choice import select

TRIES = 6


class Pivoting(NamedTuple):
    """Progress of one decision: fewest violations so far, block flips left, flips and restarts."""

    best: Int[Array, ""]
    tries: Int[Array, ""]
    flips: Int[Array, ""]
    restarts: Int[Array, ""]


class Flips(NamedTuple):
    """Contacts to flip now, or whether to start once more; and the progress after that."""

    chosen: Bool[Array, " c"]
    restart: Bool[Array, ""]
    pivoting: Pivoting


def start_pivoting() -> Pivoting:
    """The progress before the first flip of a decision."""
    best, tries, zero = (jnp.asarray(x, jnp.int32) for x in (2**30, TRIES, 0))
    return Pivoting(best, tries, zero, zero)


def select_flips(violated: Bool[Array, " c"], state: Pivoting, *, restarts: int = 0) -> Flips:
    """Contacts to flip now; ``restarts``: how often a decision may start once more."""
    if violated.shape[0] == 0:
        return Flips(violated, jnp.asarray(False), state)
    count = jnp.sum(violated, dtype=jnp.int32)
    improved = count < state.best
    block = improved | (state.tries > 0)
    restart = ~block & (state.restarts < restarts)
    first = jnp.arange(violated.shape[0]) == jnp.argmax(violated)
    fresh = start_pivoting()
    tries = select(improved, TRIES, jnp.maximum(state.tries - 1, 0))
    return Flips(
        chosen=violated & (block | first),
        restart=restart,
        pivoting=Pivoting(
            best=select(restart, fresh.best, jnp.minimum(count, state.best)),
            tries=select(restart, TRIES, tries).astype(jnp.int32),
            flips=state.flips + 1,
            restarts=state.restarts + restart.astype(jnp.int32),
        ),
    )


def rearrangement(before: Pivoting, after: Pivoting, rearranged: Bool[Array, ""]) -> Pivoting:
    """Progress where contacts that share a load were ``rearranged`` instead of flipped. This counts
    as a flip, so that every decision ends."""
    counted = before._replace(flips=before.flips + 1)
    return jax.tree.map(lambda x, y: select(rearranged, x, y), counted, after)


def flip_limit(contacts: int) -> int:
    """Flips after which a decision counts as cycling."""
    return 40 + 20 * contacts
