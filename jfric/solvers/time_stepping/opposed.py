"""Steps with pairs of opposed contacts, which represent friction on a joint's reaction.

If both contacts of a pair were active they could press against each other without limit, and hold
anything. Only one carries in a step: that of the step before, or the other where that one would
open. A pair is one contact of the problem of the step, whose normal points to the side that
carries.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from jfric.contact.contact_methods import Impulses
from jfric.contact.contact_problem import ContactProblem
from jfric.results.modes import Mode
from jfric.solvers.time_stepping.friction import settled
from jfric.solvers.time_stepping.prepared import Prepared


class OnSides(NamedTuple):
    """Outcome for all contacts, see :func:`jfric.solvers.time_stepping.friction.settled`.

    ``touching``: contacts that could carry; ``cycles``: whether no side that carries was found.
    """

    solved: Impulses
    direction: Float[Array, " m"]
    touching: Bool[Array, " nu"]
    cycles: Bool[Array, ""]


def settled_on_sides(
    prepared: Prepared,
    problem: Callable[[Bool[Array, " nt"]], ContactProblem],
    mode: Int[Array, " nt"],
    before: Float[Array, " nt"],
    parts: Float[Array, " m"],
) -> OnSides:
    """Impulses of all contacts by ``settled``, with one of each opposed pair carrying."""
    nf, nt, nu = prepared.nf, prepared.nt, prepared.nu
    pairs = np.asarray(prepared.mechanics.opposed, int)
    first, second = pairs.T
    kept = np.asarray([i for i in range(nt) if i - nf not in second])
    rows = np.concatenate([kept, nt + kept[nf:] - nf])
    # Place of each contact among those that are kept; that of the first for both of a pair.
    place = np.searchsorted(kept, np.arange(nt))
    place[nf + second] = place[nf + first]
    ours = place[nf + first]
    count, own = kept.shape[0], np.searchsorted(kept, nf + first) - nf
    mode_kept = jnp.where(mode == Mode.OPEN, mode[_partners(nt, nf, pairs)], mode)[kept]

    def on(side: Bool[Array, " k"]):
        sign = jnp.ones((rows.shape[0],), before.dtype)
        sign = sign.at[count + own].set(jnp.where(side, -1.0, 1.0))

        def one_sided(holds) -> ContactProblem:
            return _part_of(problem(holds[place]), kept, rows, sign, place)

        solved, direction = settled(prepared, one_sided, mode_kept, before[kept], parts[rows])
        return solved, direction, sign

    def once(carry):
        side, _, tries = carry
        solved, direction, _ = jax.lax.stop_gradient(on(side))
        opens = (solved.mode[ours] == Mode.OPEN) & (direction[count + own] > 0)
        # One after the other, if simultaneous changes did not converge.
        opens = opens & ((jnp.cumsum(opens) == 1) | (tries < len(pairs)))
        return side ^ opens, opens.any(), tries + 1

    still = jax.lax.stop_gradient(mode[nf:])
    side = (still[first] == Mode.OPEN) & (still[second] != Mode.OPEN)
    start = (side, jnp.asarray(True), jnp.asarray(0, jnp.int32))
    limit = 4 * len(pairs) + 2
    side, cycles, _ = jax.lax.while_loop(lambda c: c[1] & (c[2] < limit), once, start)
    solved, direction, _ = on(side)

    carries = jnp.ones((nu,), bool).at[first].set(~side).at[second].set(side)
    both = jnp.concatenate([jnp.ones((nf,), bool), carries])
    normal = place[nf:] - nf + count
    impulse = jnp.concatenate([solved.impulse[place], solved.impulse[normal]])
    carried = jnp.concatenate([both, carries])
    full = solved._replace(
        impulse=jnp.where(carried, impulse, 0.0),
        mode=jnp.where(both, solved.mode[place], Mode.OPEN).astype(jnp.int32),
    )
    touching = problem(jnp.zeros((nt,), bool)).touching & carries
    return OnSides(full, jnp.concatenate([direction[place], direction[normal]]), touching, cycles)


def _part_of(
    p: ContactProblem, kept: np.ndarray, rows: np.ndarray, sign: Float[Array, " k"], place
) -> ContactProblem:
    """Problem of the contacts that are kept, with normals turned to the side that carries."""
    closed = kept[p.nf :] - p.nf
    return ContactProblem(
        D=p.D[np.ix_(rows, rows)] * sign[:, None] * sign[None, :],
        gamma=p.gamma[rows] * sign,
        decided=p.decided[kept],
        touching=p.touching[closed],
        sliding=p.sliding[kept],
        mu_positive=p.mu_positive[closed],
        mu_negative=p.mu_negative[closed],
        cap_positive=p.cap_positive[kept],
        cap_negative=p.cap_negative[kept],
        planes=tuple((int(place[i]), int(place[j])) for i, j in p.planes),
    )


def _partners(nt: int, nf: int, pairs: np.ndarray) -> np.ndarray:
    """The other contact of each pair; single contacts map to themselves."""
    other = np.arange(nt)
    other[nf + pairs[:, 0]], other[nf + pairs[:, 1]] = nf + pairs[:, 1], nf + pairs[:, 0]
    return other
