"""Edges and corners that polygons touch: changes where the inequalities of a region end."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from jfric.contact.pivoting import Pivoting, start_pivoting
from jfric.numerics.choice import select
from jfric.results.modes import Mode
from jfric.solvers.event_driven.prepared import Prepared
from jfric.solvers.event_driven.state import State
from jfric.solvers.event_driven.transitions import Signs, Transition


class Move(NamedTuple):
    """Next regions: ``way`` (np,) is -1, 0 or 1; ``any``: whether there is a change."""

    region: Int[Array, " np"]
    way: Int[Array, " np"]
    any: Bool[Array, ""]


def next_regions(prepared: Prepared, state: State, signs: Signs) -> Move:
    """The regions to which violated guards lead.

    Both inequalities of a corner end at once where a point comes back through the corner, and
    always for a plate: the side on which the point is decides.
    """
    polygons = prepared.mechanics.polygons
    start = prepared.n_guards - 2 * len(polygons)
    first, second = jnp.split(signs.violated[start:], 2)
    forward = jnp.stack([p.forward(state.q) for p in polygons])
    back = first & ~(second & forward)
    way = select(back, -1, select(second, 1, 0)).astype(jnp.int32)
    count = jnp.asarray([2 * p.corners.shape[-2] for p in polygons], jnp.int32)
    return Move((state.region + way) % count, way, jnp.any(way != 0))


def only_regions(
    move: Move, transition: Transition, pivoting: Pivoting
) -> tuple[Transition, Pivoting]:
    """Transition of a pass that changes regions only: modes are judged in the next pass."""
    still = ~move.any
    fresh = start_pivoting()._replace(flips=pivoting.flips)
    chosen = (select(move.any, a, b) for a, b in zip(fresh, pivoting, strict=True))
    return transition._replace(impact=transition.impact & still), Pivoting(*chosen)


def after_move(
    prepared: Prepared, move: Move, mode: Int[Array, " nt"], known: Int[Array, " g"]
) -> tuple[Int[Array, " nt"], Int[Array, " g"]]:
    """Modes and known zeros of guards in the new regions: corners let points go, and the
    inequality through which a region was entered begins at zero."""
    mechanics = prepared.mechanics
    polygons, count = mechanics.polygons, len(mechanics.polygons)
    rows = prepared.nf + np.asarray(mechanics.polygon_contacts)
    moved = move.way != 0
    bare = jnp.asarray([p.bare for p in polygons])
    opens = moved & bare & (move.region % 2 == 1)
    own = select(opens, Mode.OPEN, mode[rows]).astype(mode.dtype)
    mode = mode.at[rows].set(own)
    apart = moved & (own == Mode.OPEN)
    known = known.at[rows].set(select(apart, 0, known[rows]))
    both = jnp.asarray([p.is_plate for p in polygons]) & (move.region % 2 == 1)
    entered = jnp.stack([(move.way == 1) | both, (move.way == -1) | both]).astype(known.dtype)
    at = known.shape[0] - 2 * count
    kept = known[at:].reshape(2, count)
    return mode, known.at[at:].set(select(moved[None, :], entered, kept).ravel())
