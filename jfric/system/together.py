"""Functions of time and positions evaluated together, with their derivatives.

Functions between bodies see positions through places. The places of all of them are one table,
``P = c + cos(phi) r + sin(phi) r'`` for a point ``r`` of a body at ``c``, ``r'`` that turned by a
right angle. How a row changes with its body, and along the motion without acceleration, is known::

    dP = dc + (P - c)' dphi,    d2P/dt2 = -(dphi/dt)^2 (P - c)

so that a function ``f`` of rows has ``W = df/drow . drow/dq``, and with ``b`` the second derivative
of ``f`` along these rates the acceleration without that of the coordinates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jfric.system.dependence import depends_on_time, is_affine
from jfric.system.places import Located, OfPlaces, Place


class Instant(NamedTuple):
    """Values of functions at one instant, directions, what time and motion alone do to them."""

    value: Float[Array, " k"]
    W: Float[Array, "k n"]
    #: Velocity at rest, and acceleration along the motion without acceleration.
    rate: Float[Array, " k"]
    bias: Float[Array, " k"]


class PlaceTable(eqx.Module):
    """Points of bodies as an array program: rows of :class:`jfric.system.places.Located`."""

    at: Float[Array, "p 2"]
    #: Degrees of freedom of the body of each.
    rows: tuple[tuple[int, int, int], ...] = eqx.field(static=True)

    def _own(self, x: Float[Array, " n"]) -> Float[Array, "p 3"]:
        return x.at[np.asarray(self.rows)].get(mode="promise_in_bounds")

    def __call__(self, q: Float[Array, " n"]) -> Float[Array, "p 7"]:
        """The rows."""
        own, at = self._own(q), self.at.astype(q.dtype)
        turn = jnp.stack([jnp.cos(own[:, 2]), jnp.sin(own[:, 2])], axis=1)
        position = own[:, :2] + turn[:, :1] * at + turn[:, 1:] * _turned(at)
        return jnp.concatenate([position, own, turn], axis=1)

    def rates(self, table: Float[Array, "p 7"], v: Float[Array, " n"]):
        """Changes of the rows (p, 7) by a turn of their bodies, and along the motion the first and
        second derivative by time."""
        own = self._own(v)
        arm, turn = table[:, :2] - table[:, 2:4], table[:, 5:]
        none, spin = jnp.zeros_like(arm), own[:, 2:]
        one = jnp.ones_like(spin)
        by_turn = jnp.concatenate([_turned(arm), none, one, _turned(turn)], axis=1)
        moved = jnp.concatenate([own[:, :2], own[:, :2], jnp.zeros((len(own), 3), v.dtype)], axis=1)
        inwards = jnp.concatenate([arm, none, jnp.zeros_like(spin), turn], axis=1)
        return by_turn, moved + spin * by_turn, -(spin * spin) * inwards

    def directions(self, slopes: Float[Array, "p 7"], by_turn) -> Float[Array, "p 3"]:
        """Slopes along the degrees of freedom of each place, from those along its row."""
        along = slopes[:, :2] + slopes[:, 2:4]
        return jnp.append(along, jnp.sum(slopes * by_turn, axis=1, keepdims=True), axis=1)


def _turned(x: Float[Array, "p 2"]) -> Float[Array, "p 2"]:
    return x[:, ::-1] * np.array([-1.0, 1.0], x.dtype)


class Alike(eqx.Module):
    """Functions of places that differ in numbers alone, ``count`` of them, as one with an axis for
    all."""

    function: Callable
    #: Number of functions, and of places that each sees.
    shape: tuple[int, int] = eqx.field(static=True)

    def _each(self, what: Callable, t, *tables: Float[Array, "p 7"]):
        rows = [x.reshape(*self.shape, 7) for x in tables]

        def one(function, *rows):
            return what(lambda x: function(t, Located(x)), *rows)

        return jax.vmap(one)(self.function, *rows)

    def __call__(self, t, table) -> Float[Array, " c"]:
        return self._each(lambda f, x: f(x), t, table)

    def slopes(self, t, table) -> tuple[Float[Array, " c"], Float[Array, "p 7"]]:
        """Values, and slopes along the rows."""
        value, slopes = self._each(lambda f, x: jax.value_and_grad(f)(x), t, table)
        return value, slopes.reshape(-1, 7)

    def second(self, t, table, rate, bend) -> Float[Array, " c"]:
        """Second derivative by time, where rows have these derivatives."""

        def along(f, x, dx, ddx):
            return jax.jvp(lambda x, dx: jax.jvp(f, (x,), (dx,))[1], (x, dx), (dx, ddx))[1]

        return self._each(along, t, table, rate, bend)


class Straight(eqx.Module):
    """Functions that are linear in the rows of places: ``sum(weights * rows) + offset``."""

    weights: Float[Array, "c s 7"]
    offset: Float[Array, " c"]

    @property
    def shape(self) -> tuple[int, int]:
        """Number of functions, and of places that each sees."""
        return self.weights.shape[:2]

    def _sum(self, table) -> Float[Array, " c"]:
        rows = table.reshape(self.weights.shape)
        return jnp.sum(self.weights.astype(table.dtype) * rows, axis=(1, 2))

    def __call__(self, t, table) -> Float[Array, " c"]:
        return self._sum(table) + self.offset.astype(table.dtype)

    def slopes(self, t, table) -> tuple[Float[Array, " c"], Float[Array, "p 7"]]:
        """Values, and slopes along the rows."""
        return self(t, table), self.weights.astype(table.dtype).reshape(-1, 7)

    def second(self, t, table, rate, bend) -> Float[Array, " c"]:
        """Second derivative by time, where rows have these derivatives."""
        return self._sum(bend)


class Together(eqx.Module):
    """Functions ``g(t, q)``; those between bodies are one array program, however many there are."""

    #: Places of all groups, one after the other; None without any.
    table: PlaceTable | None
    groups: tuple[Alike | Straight, ...]
    #: Functions that see all positions.
    others: tuple[Callable, ...]
    #: Where each function is among those of all groups, then the others.
    order: tuple[int, ...] = eqx.field(static=True)
    #: Number of positions, and whether any function depends on time.
    n: int = eqx.field(static=True)
    timed: bool = eqx.field(static=True)

    def __len__(self) -> int:
        return len(self.order)

    def __call__(self, t, q) -> Float[Array, " k"]:
        """Their values."""
        found = []
        if self.table is not None:
            table = self.table(q)
            found = [f(t, x) for f, (x,) in self._parts(table)]
        found += [g(t, q)[None] for g in self.others]
        return self._in_order(jnp.concatenate(found))

    def at(self, t, q, v) -> Instant:
        """Values and derivatives where the velocities are ``v`` (n,)."""
        parts = []
        if self.table is not None:
            parts.append(self._of_places(t, q, v))
        if self.others:
            parts.append(self._of_others(t, q, v))
        found = parts[0]
        if len(parts) > 1:
            found = Instant(*(jnp.concatenate(x) for x in zip(*parts, strict=True)))
        return Instant(*map(self._in_order, found))

    def _in_order(self, values: Array) -> Array:
        if self.order == tuple(range(len(self))):
            return values
        return values.at[np.asarray(self.order)].get(mode="promise_in_bounds")

    def _parts(self, *tables: Float[Array, "p 7"]):
        """Each group with its rows of the ``tables``."""
        at = 0
        for group in self.groups:
            size = group.shape[0] * group.shape[1]
            yield group, [x[at : at + size] for x in tables]
            at += size

    def _of_places(self, t, q, v) -> Instant:
        """What sees positions through places."""
        assert self.table is not None
        table = self.table(q)
        by_turn, rate, bend = self.table.rates(table, v)
        values, slopes, bias = [], [], []
        for group, (rows, moved, bent) in self._parts(table, rate, bend):
            value, slope = group.slopes(t, rows)
            values.append(value)
            slopes.append(slope)
            bias.append(group.second(t, rows, moved, bent))
        own = self.table.directions(jnp.concatenate(slopes), by_turn)
        value = jnp.concatenate(values)
        W = jnp.append(own.ravel(), 0.0).at[self._columns].get(mode="promise_in_bounds")
        return Instant(value, W.sum(axis=0), jnp.zeros_like(value), jnp.concatenate(bias))

    @property
    def _columns(self) -> np.ndarray:
        """For the places of each function, one after the other, which of all slopes along degrees
        of freedom is that of each coordinate (s, k, n); one beyond the last for none."""
        assert self.table is not None
        rows = np.asarray(self.table.rows)
        most = max(group.shape[1] for group in self.groups)
        count = sum(group.shape[0] for group in self.groups)
        found = np.full((most, count, self.n), rows.size)
        place = function = 0
        for group in self.groups:
            for _ in range(group.shape[0]):
                for slot in range(group.shape[1]):
                    found[slot, function, rows[place]] = 3 * place + np.arange(3)
                    place += 1
                function += 1
        return found

    def _of_others(self, t, q, v) -> Instant:
        """What sees all positions."""

        def values(t, q):
            return jnp.stack([g(t, q) for g in self.others])

        along = (jnp.ones_like(t), v)
        moved, changes = jax.jvp(lambda *x: jax.jvp(values, x, along), (t, q), along)
        W, rate = jax.jacfwd(values, argnums=1)(t, q), jnp.zeros_like(moved[0])
        if self.timed:
            rate = jax.jvp(values, (t, q), (jnp.ones_like(t), jnp.zeros_like(q)))[1]
        return Instant(moved[0], W, rate, changes[1])


def together(functions: Sequence[Callable], n: int) -> Together:
    """``functions`` of time and ``n`` positions, one or more, as one."""
    kinds: dict[Any, list[tuple[int, OfPlaces, list[Place]]]] = {}
    straight: list[tuple[int, OfPlaces, list[Place]]] = []
    seen: dict[Any, bool] = {}
    for i, function in enumerate(functions):
        if not isinstance(function, OfPlaces):
            continue
        own, places = function.located()
        leaves, structure = jax.tree.flatten(own)
        key = structure, tuple(map(jnp.shape, leaves))
        if key not in seen:
            like = (jax.ShapeDtypeStruct((len(places), 7), jnp.result_type(float)),)
            seen[key] = is_affine(like, lambda x, own=own: own(0.0, Located(x)))
        if seen[key]:
            straight.append((i, own, places))
        else:
            kinds.setdefault(key, []).append((i, own, places))
    groups: list[Alike | Straight] = []
    at, rows, order = [], [], []
    if straight:
        groups.append(_straight(straight))
    for members in kinds.values():
        stacked = jax.tree.map(lambda *x: jnp.stack(x), *(own for _, own, _ in members))
        groups.append(Alike(stacked, (len(members), len(members[0][2]))))
    for group, members in zip(groups, [straight] * bool(straight) + [*kinds.values()], strict=True):
        for i, _, places in members:
            order.append(i)
            spare = [places[0]] * (group.shape[1] - len(places))
            for x in (*places, *spare):
                at.append(x.at)
                rows.append(tuple(map(int, x.body)))
    table = PlaceTable(jnp.stack(at), tuple(rows)) if at else None
    others = [(i, g) for i, g in enumerate(functions) if not isinstance(g, OfPlaces)]
    order += [i for i, _ in others]
    timed = any(depends_on_time(g, n) for _, g in others)
    places = tuple(map(order.index, range(len(order))))
    return Together(table, tuple(groups), tuple(g for _, g in others), places, n, timed)


def _straight(members: list[tuple[int, OfPlaces, list[Place]]]) -> Straight:
    most = max(len(places) for _, _, places in members)
    weights, offset = [], []
    for _, own, places in members:
        none = jnp.zeros((len(places), 7))
        value, slopes = jax.value_and_grad(lambda x, own=own: own(0.0, Located(x)))(none)
        weights.append(jnp.pad(slopes, ((0, most - len(places)), (0, 0))))
        offset.append(value)
    return Straight(jnp.stack(weights), jnp.stack(offset))
