"""Functions of time and positions evaluated together, with their derivatives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jfric.system.dependence import depends_on_time
from jfric.system.places import OfPlaces, picked


class Instant(NamedTuple):
    """Values of functions at one instant, directions, what time and motion alone do to them."""

    value: Float[Array, " k"]
    W: Float[Array, "k n"]
    #: Velocity at rest, and acceleration along the motion without acceleration.
    rate: Float[Array, " k"]
    bias: Float[Array, " k"]


class Together(eqx.Module):
    """Functions ``g(t, q)``; those between bodies that differ in numbers and bodies alone are one
    array program, however many there are."""

    #: One function, or one whose numbers have an axis for all that are like it.
    groups: tuple[Callable, ...]
    #: Positions that each function of a group sees; None for one function that sees them all.
    rows: tuple[Any, ...] = eqx.field(static=True)
    #: Where each function is among all groups.
    order: tuple[int, ...] = eqx.field(static=True)
    #: Whether any of them depends on time.
    timed: bool = eqx.field(static=True)

    def __len__(self) -> int:
        return len(self.order)

    def __call__(self, t, q) -> Float[Array, " k"]:
        """Their values."""
        found = []
        for function, rows in zip(self.groups, self.rows, strict=True):
            if rows is None:
                found.append(function(t, q)[None])
                continue
            own = jnp.stack([picked(q, np.asarray(row)) for row in rows])
            found.append(jax.vmap(lambda g, q: g(t, q))(function, own))
        values = jnp.concatenate(found)
        if self.order == tuple(range(len(self))):
            return values
        return values.at[np.asarray(self.order)].get(mode="promise_in_bounds")

    def at(self, t, q, v) -> Instant:
        """Values and derivatives where the velocities are ``v`` (n,)."""
        along = (jnp.ones_like(t), v)
        moved, changes = jax.jvp(lambda *x: jax.jvp(self, x, along), (t, q), along)
        W, rate = jax.jacfwd(self, argnums=1)(t, q), jnp.zeros_like(moved[0])
        if self.timed:
            rate = jax.jvp(self, (t, q), (jnp.ones_like(t), jnp.zeros_like(q)))[1]
        return Instant(moved[0], W, rate, changes[1])


def together(functions: Sequence[Callable], n: int) -> Together:
    """``functions`` of time and ``n`` positions, one or more, as one."""
    kinds: dict[Any, list[int]] = {}
    apart: list[tuple[Callable, Any]] = []
    for i, function in enumerate(functions):
        if not isinstance(function, OfPlaces):
            kinds[i] = [i]
            apart.append((function, None))
            continue
        own, rows = function.apart()
        leaves, structure = jax.tree.flatten(own)
        kinds.setdefault((structure, tuple(map(jnp.shape, leaves))), []).append(i)
        apart.append((own, rows))
    groups, rows = [], []
    for members in kinds.values():
        if len(members) == 1:
            groups.append(functions[members[0]])
            rows.append(None)
            continue
        alike = [apart[i] for i in members]
        groups.append(jax.tree.map(lambda *x: jnp.stack(x), *(own for own, _ in alike)))
        rows.append(tuple(tuple(map(int, row)) for _, row in alike))
    places = [i for members in kinds.values() for i in members]
    timed = any(depends_on_time(g, n) for g in functions if not isinstance(g, OfPlaces))
    return Together(tuple(groups), tuple(rows), tuple(map(places.index, range(len(places)))), timed)
