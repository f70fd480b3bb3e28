"""Which of two opposed contacts, which stand for friction on a joint's reaction, carries.

Both at once could press against each other as hard as they like, and hold anything. One carries in
a step: that of the step before, or the other where that one would open.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from jfric.contact.contact_methods import Impulses
from jfric.results.modes import Mode
from jfric.solvers.time_stepping.prepared import Prepared


def carrying(
    prepared: Prepared,
    mode: Int[Array, " nt"],
    touching: Bool[Array, " nu"],
    solve: Callable[..., tuple[Impulses, Array]],
) -> tuple[Bool[Array, " nu"], Bool[Array, ""]]:
    """``touching`` with one of each two opposed contacts, and whether that was not found.

    ``mode``: at the start of the step. ``solve(touching)``: impulses, and signs (nt+nu,) of the
    relative velocities with them.
    """
    pairs, nf, nt = prepared.mechanics.opposed, prepared.nf, prepared.nt
    if not pairs:
        return touching, jnp.asarray(False)
    first, second = np.asarray(pairs, int).T

    def among(side: Bool[Array, " k"]) -> Bool[Array, " nu"]:
        return touching.at[first].set(~side).at[second].set(side)

    def once(carry):
        side, _, tries = carry
        solved, direction = jax.lax.stop_gradient(solve(among(side)))
        apart = (solved.mode[nf:] == Mode.OPEN) & (direction[nt:] > 0)
        opens = jnp.where(side, apart[second], apart[first])
        # One after the other, where they help each other.
        opens = opens & (jnp.cumsum(opens) <= jnp.where(tries < len(pairs), len(pairs), 1))
        return side ^ opens, opens.any(), tries + 1

    still = jax.lax.stop_gradient(mode[nf:])
    side = (still[first] == Mode.OPEN) & (still[second] != Mode.OPEN)
    limit = 4 * len(pairs) + 2
    start = (side, jnp.asarray(True), jnp.asarray(0, jnp.int32))
    side, changed, _ = jax.lax.while_loop(lambda c: c[1] & (c[2] < limit), once, start)
    return among(side), changed
