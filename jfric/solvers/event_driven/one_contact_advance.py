"""How far a pass in scalars advances: see :mod:`jfric.solvers.event_driven.advance`."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jfric.modes import Mode
from jfric.solvers.event_driven.advance import resolvable
from jfric.solvers.event_driven.constants import SMALLEST_FRACTION, constants
from jfric.solvers.event_driven.prepared import Prepared
from jfric.solvers.event_driven.scalar_isolation import Chosen, Guard, isolate, with_derivatives
from jfric.solvers.event_driven.scalar_series import Series, bound, sizes, value, value_and_slope
from jfric.solvers.event_driven.state import State
from jfric.solvers.loops import once


class Ahead(NamedTuple):
    """Where a step ends; see :class:`jfric.solvers.event_driven.advance.Advance`."""

    t: Float[Array, ""]
    s: Float[Array, ""]
    q: list
    v: list
    #: Basis functions at the end.
    w: list
    q_scale: list
    v_scale: list
    accepted: Bool[Array, ""]
    h_max: Float[Array, ""]
    fired: list
    grazing: Bool[Array, ""]


class Ends(NamedTuple):
    """The mode of a step, the time at its end and the longest sensible step."""

    mode: Int[Array, ""]
    t_end: Float[Array, ""]
    natural: Float[Array, ""]


def advance(prepared, state: State, x: Series, still, signs, ends, on, derivatives) -> Ahead:
    """Isolate the earliest event on the step and move there, or to its end.

    ``still``: series and guard rows without derivatives.
    """
    frozen, rows = still
    mode, t_end, natural = ends
    h, limits = x.h, constants(x.h.dtype)
    count = limits.order + 1
    whole, last = once(sizes(frozen, limits.order), on)
    watched = [
        Guard(
            p[:count],
            jnp.where(sign.null, 0, sign.lead),
            sign.null,
            bound(row, last),
            bound(row, whole),
        )
        for p, row, sign in zip(frozen.rows, rows, signs, strict=True)
    ]
    found = isolate(watched, limits, on)
    reference = jnp.minimum(natural, prepared.end - state.start)
    smallest = h <= SMALLEST_FRACTION * reference
    # Too short to resolve further: a guard in doubt that is negative at the end fires there.
    crossed = [
        d & (value(g.coefficients, jnp.ones_like(h)) < 0)
        for d, g in zip(found.doubtful, watched, strict=True)
    ]
    crossed = [crossed[0], crossed[1] & ~crossed[0]]
    gives_up = ~found.decided & smallest & ~(found.near & resolvable(state.t, h))
    event = jnp.where(gives_up, crossed[0] | crossed[1], found.root <= 1.0)
    fired = [jnp.where(gives_up, a, b) & event for a, b in zip(crossed, found.guard, strict=True)]
    earliest = jnp.where(gives_up, 1.0, found.root)
    place = earliest
    if derivatives:
        lead = jnp.where(fired[0], watched[0].lead, watched[1].lead)
        chosen = Chosen(fired[0], x.rows[0][:count], x.rows[1][:count], lead)
        place = with_derivatives(chosen, earliest)
    s = once(jnp.where(event, place, 1.0), on)
    # Zeros far inside the step are located again on a shorter one, for full precision.
    coarse = event & (earliest < 1.0 / 64) & ~smallest
    accepted = (found.decided | gives_up) & ~coarse
    retry = jnp.where(coarse & found.decided, 4.0 * earliest, found.retry) * h
    t = jnp.where(event, state.t + s * h, t_end)
    grown = jnp.maximum(16.0 * s * h, jnp.where(event, 0.0, 16.0 * h))
    moved = [value_and_slope(u, s) for u in x.q]
    q, v = [e[0] for e in moved], [e[1] / h for e in moved]
    w = [s**j * p for j, p in enumerate(x.powers)] + [value(u[:count], s) for u in x.w]
    q, v = _held_exactly(prepared, state, mode, q, v)
    return Ahead(
        t=t,
        s=s,
        q=q,
        v=v,
        w=w,
        q_scale=whole.q,
        v_scale=whole.v,
        accepted=accepted,
        h_max=jax.lax.stop_gradient(jnp.where(accepted, grown, retry)),
        fired=fired,
        grazing=gives_up,
    )


def _held_exactly(prepared: Prepared, state: State, mode, q: list, v: list):
    """Two bodies that stick to each other move as one, without rounding error."""
    (pair,) = prepared.mechanics.pair_tangent
    if pair is None or prepared.mechanics.belts[0] is not None:
        return q, v
    leader, follower = pair
    joined = mode == Mode.STICK
    moved = state.q[follower] + (q[leader] - state.q[leader])
    q, v = list(q), list(v)
    q[follower] = jnp.where(joined, moved, q[follower])
    v[follower] = jnp.where(joined, v[leader], v[follower])
    return q, v
