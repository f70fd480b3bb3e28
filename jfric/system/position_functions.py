"""Functions of time and positions evaluated together, with their derivatives.

Functions between bodies depend on positions through places. The places of all of them are one
table, ``P = c + cos(phi) r + sin(phi) r'`` for a point ``r`` of a body at ``c``, with ``r'`` turned
by a right angle. Changes of a row with its body, and along the motion without acceleration::

    dP = dc + (P - c)' dphi,    d2P/dt2 = -(dphi/dt)^2 (P - c)

A function ``f`` of rows thus has ``W = df/drow . drow/dq``, and its second derivative ``b`` along
these rates is the acceleration without that of the coordinates.
"""

from __future__ import annotations

import abc
import dataclasses
import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jfric.numerics.linear_algebra import picked
from jfric.system.places import Located, OfPlaces, Place
from jfric.system.state_function import TextFunction, depends_on_time, is_affine


class Instant(NamedTuple):
    """Values and directions of functions at one instant, and their rates by time and motion."""

    value: Float[Array, " k"]
    W: Float[Array, "k n"]
    #: Velocity at rest, and acceleration along the motion without acceleration.
    rate: Float[Array, " k"]
    bias: Float[Array, " k"]


class AbstractGroup(eqx.Module):
    """Functions ``g(q)`` that one array program computes, with derivatives of its own."""

    @abc.abstractmethod
    def __call__(self, t, q) -> Float[Array, " k"]:
        """Values at the positions ``q``."""

    @abc.abstractmethod
    def at(self, t, q, v) -> Instant:
        """Values and derivatives where the velocities are ``v``."""


class OfGroup(eqx.Module):
    """One function of a group."""

    group: AbstractGroup
    row: int = eqx.field(static=True)

    def __call__(self, t, q) -> Float[Array, ""]:
        return self.group(t, q)[self.row]


class PlaceTable(eqx.Module):
    """Points of bodies as an array program: rows of :class:`jfric.system.places.Located`."""

    at: Float[Array, "p 2"]
    #: Degrees of freedom of the body of each point.
    rows: tuple[tuple[int, int, int], ...] = eqx.field(static=True)

    def _own(self, x: Float[Array, " n"]) -> Float[Array, "p 3"]:
        return picked(x, self.rows)

    def __call__(self, q: Float[Array, " n"]) -> Float[Array, "p 7"]:
        """The rows at the positions ``q``."""
        own, at = self._own(q), self.at.astype(q.dtype)
        turn = jnp.stack([jnp.cos(own[:, 2]), jnp.sin(own[:, 2])], axis=1)
        position = own[:, :2] + turn[:, :1] * at + turn[:, 1:] * _turned(at)
        return jnp.concatenate([position, own, turn], axis=1)

    def rates(self, table: Float[Array, "p 7"], v: Float[Array, " n"]):
        """Changes of the rows (p, 7) by a turn of their bodies, and their first and second
        derivatives by time along the motion."""
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
    """Functions that differ only in numbers, as one function with an axis for all of them.

    Each takes an array, the rows of its places, or several numbers, the quantities that a text
    names.
    """

    function: Callable
    #: Number of functions, then number of places or quantities that each takes.
    shape: tuple[int, int] = eqx.field(static=True)

    def _value(self, function: Callable, x) -> Float[Array, ""]:
        if isinstance(function, TextFunction):
            return function.value(x, x[0].dtype)
        return function(None, Located(x))

    def __call__(self, x) -> Float[Array, " c"]:
        """Values of all functions."""
        return jax.vmap(self._value)(self.function, x)

    def at(self, x, rate, bend) -> tuple[Float[Array, " c"], Any, Float[Array, " c"]]:
        """Values, slopes along the arguments, and second derivatives by time, where ``rate`` and
        ``bend`` (None for zero) are the derivatives of the arguments."""

        def one(function, x, rate, bend):
            both = jax.value_and_grad(functools.partial(self._value, function))
            (value, slopes), (_, change) = jax.jvp(both, (x,), (rate,))
            second = _product(change, rate)
            return value, slopes, second if bend is None else second + _product(slopes, bend)

        return jax.vmap(one)(self.function, x, rate, bend)


def _product(a, b) -> Float[Array, ""]:
    parts = (jnp.sum(x * y) for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True))
    return functools.reduce(operator.add, parts)


class Straight(eqx.Module):
    """Functions that are linear in the rows of places: ``sum(weights * rows) + offset``."""

    weights: Float[Array, "c s 7"]
    offset: Float[Array, " c"]

    @property
    def shape(self) -> tuple[int, int]:
        """Number of functions, then number of places that each takes."""
        count, places, _ = self.weights.shape
        return count, places

    def __call__(self, x) -> Float[Array, " c"]:
        """Values of all functions."""
        return jnp.sum(self.weights.astype(x.dtype) * x, axis=(1, 2)) + self.offset.astype(x.dtype)

    def at(self, x, rate, bend) -> tuple[Float[Array, " c"], Any, Float[Array, " c"]]:
        """Values, slopes and second derivatives, see :meth:`Alike.at`."""
        weights = self.weights.astype(x.dtype)
        return self(x), weights, jnp.sum(weights * bend, axis=(1, 2))


class Together(eqx.Module):
    """Functions ``g(t, q)``; similar ones are one array program, whatever their number."""

    #: Places of all functions between bodies, one after the other; None without any.
    table: PlaceTable | None
    of_places: tuple[Alike | Straight, ...]
    of_texts: tuple[Alike, ...]
    groups: tuple[AbstractGroup, ...]
    #: Functions in Python, which take all positions.
    others: tuple[Callable, ...]
    #: Quantities that each text names: 0 for time, then degrees of freedom.
    named: tuple[tuple[int, ...], ...] = eqx.field(static=True)
    #: Index of each function among those of all groups, then the others.
    order: tuple[int, ...] = eqx.field(static=True)
    #: Number of positions, and whether any function depends on time.
    n: int = eqx.field(static=True)
    timed: bool = eqx.field(static=True)

    def __len__(self) -> int:
        return len(self.order)

    def __call__(self, t, q) -> Float[Array, " k"]:
        """Values of all functions at time ``t`` and positions ``q``."""
        found = []
        if self.table is not None:
            found += [f(x) for f, x in self._rows(self.table(q))]
        found += [f(x) for f, x in zip(self.of_texts, self._named(t, q), strict=True)]
        found += [g(t, q) for g in self.groups]
        found += [g(t, q)[None] for g in self.others]
        return self._in_order(jnp.concatenate(found))

    def at(self, t, q, v) -> Instant:
        """Values and derivatives where the velocities are ``v`` (n,)."""
        parts = []
        if self.of_places or self.of_texts:
            parts.append(self._of_rows(t, q, v))
        parts += [g.at(t, q, v) for g in self.groups]
        if self.others:
            parts.append(self._of_others(t, q, v))
        found = parts[0]
        if len(parts) > 1:
            found = Instant(*(jnp.concatenate(x) for x in zip(*parts, strict=True)))
        return Instant(*map(self._in_order, found))

    def _in_order(self, values: Array) -> Array:
        if self.order == tuple(range(len(self))):
            return values
        return picked(values, self.order)

    def _rows(self, table: Float[Array, "p 7"]):
        """Each group between bodies with the rows that its functions take."""
        at = 0
        for group in self.of_places:
            count, places = group.shape
            yield group, table[at : at + count * places].reshape(count, places, 7)
            at += count * places

    def _named(self, t, q) -> list[list[Float[Array, " c"]]]:
        """Quantities of each group of texts, one after the other."""
        if not self.of_texts:
            return []
        all_of_them, at, found = jnp.append(t, q), 0, []
        for group in self.of_texts:
            own = np.asarray(self.named[at : at + group.shape[0]])
            found.append([picked(all_of_them, x) for x in own.T])
            at += group.shape[0]
        return found

    def _of_rows(self, t, q, v) -> Instant:
        """Functions between bodies, and texts, at one instant."""
        found, along = [], []
        if self.table is not None:
            table = self.table(q)
            by_turn, rate, bend = self.table.rates(table, v)
            moved = zip(self._rows(table), self._rows(rate), self._rows(bend), strict=True)
            found += [f.at(x, dx, ddx) for (f, x), (_, dx), (_, ddx) in moved]
            slopes = jnp.concatenate([x[1].reshape(-1, 7) for x in found])
            along.append(self.table.directions(slopes, by_turn).ravel())
        named, rates = self._named(t, q), self._named(jnp.ones_like(t), v)
        for f, x, dx in zip(self.of_texts, named, rates, strict=True):
            found.append(f.at(x, dx, None))
            along.append(jnp.stack(found[-1][1], axis=1).ravel())
        value, bias = (jnp.concatenate([x[i] for x in found]) for i in (0, 2))
        slopes = jnp.concatenate([*along, jnp.zeros((1,), q.dtype)])
        W = jax.lax.reduce_sum(picked(slopes, self._columns), (0,))
        rate = W[:, 0] if self.timed else jnp.zeros_like(value)
        return Instant(value, W[:, 1:] if self.timed else W, rate, bias)

    @property
    def _columns(self) -> np.ndarray:
        """Indices (s, k, n) among all slopes, for each argument of each function: along time, if
        any function depends on it, and along each coordinate; one past the last for none."""
        seen: list[list[tuple[int, ...]]] = []
        if self.table is not None:
            rows = iter(self.table.rows)
            for group in self.of_places:
                for _ in range(group.shape[0]):
                    own = [next(rows) for _ in range(group.shape[1])]
                    seen.append([tuple(i + 1 for i in row) for row in own])
        seen += [[(i,) for i in own] for own in self.named]
        total = sum(len(row) for own in seen for row in own)
        found = np.full((max(map(len, seen)), len(seen), self.n + 1), total)
        at = 0
        for k, own in enumerate(seen):
            for slot, row in enumerate(own):
                found[slot, k, list(row)] = at + np.arange(len(row))
                at += len(row)
        return found if self.timed else found[..., 1:]

    def _of_others(self, t, q, v) -> Instant:
        """Functions in Python at one instant."""

        def values(t, q):
            return jnp.stack([g(t, q) for g in self.others])

        along = (jnp.ones_like(t), v)
        moved, changes = jax.jvp(lambda *x: jax.jvp(values, x, along), (t, q), along)
        W, rate = jax.jacfwd(values, argnums=1)(t, q), jnp.zeros_like(moved[0])
        if self.timed:
            rate = jax.jvp(values, (t, q), (jnp.ones_like(t), jnp.zeros_like(q)))[1]
        return Instant(moved[0], W, rate, changes[1])


def together(functions: Sequence[Callable], n: int) -> Together:
    """One or more ``functions`` of time and ``n`` positions, to be evaluated together."""
    kinds: dict[Any, list[tuple[int, OfPlaces, list[Place]]]] = {}
    texts: dict[Any, list[int]] = {}
    groups: dict[int, tuple[AbstractGroup, list[int]]] = {}
    others: list[int] = []
    for i, function in enumerate(functions):
        if isinstance(function, OfPlaces):
            own, places = function.of_rows()
            kinds.setdefault((len(places), _structure(own)), []).append((i, own, places))
        elif isinstance(function, TextFunction) and function.names:
            like = function.text, len(function.names), _structure(function.parts)
            texts.setdefault(like, []).append(i)
        elif isinstance(function, OfGroup):
            _, members = groups.setdefault(id(function.group), (function.group, []))
            assert function.row == len(members), "all functions of a group follow each other"
            members.append(i)
        else:
            others.append(i)
    straight, made, at, rows, order = [], [], [], [], []
    for members in kinds.values():
        if _is_straight(members[0]):
            straight.append(members)
            continue
        shape = len(members), len(members[0][2])
        made.append((members, Alike(_stacked([own for _, own, _ in members]), shape)))
    if straight:
        made.append(([x for members in straight for x in members], _straight(straight)))
    for members, group in made:
        for i, _, places in members:
            order.append(i)
            for x in (*places, *[places[0]] * (group.shape[1] - len(places))):
                at.append(x.at)
                rows.append(tuple(map(int, x.body)))
    of_texts, named = [], []
    for members in texts.values():
        alike: list[TextFunction] = [functions[i] for i in members]  # type: ignore[misc]
        first = alike[0]
        known = ("t", *first.dofs)
        # Similar functions may differ in names.
        stacked = _stacked([dataclasses.replace(f, names=first.names) for f in alike])
        of_texts.append(Alike(stacked, (len(alike), len(first.names))))
        named += [tuple(map(known.index, f.names)) for f in alike]
        order += members
    order += [i for _, members in groups.values() for i in members]
    order += others
    timed = any(0 in own for own in named)
    timed = timed or any(depends_on_time(functions[i], n) for i in others)
    return Together(
        PlaceTable(jnp.stack(at), tuple(rows)) if at else None,
        tuple(group for _, group in made),
        tuple(of_texts),
        tuple(group for group, _ in groups.values()),
        tuple(functions[i] for i in others),
        tuple(named),
        tuple(map(order.index, range(len(order)))),
        n,
        timed,
    )


def _structure(tree: Any) -> Any:
    leaves, structure = jax.tree.flatten(tree)
    return structure, tuple(map(jnp.shape, leaves))


def _stacked(trees: Sequence[Any]) -> Any:
    return jax.tree.map(lambda *x: jnp.stack(x), *trees)


def _is_straight(member: tuple[int, OfPlaces, list[Place]]) -> bool:
    """Whether a function is linear in the rows of its places."""
    _, own, places = member
    rows = (jax.ShapeDtypeStruct((len(places), 7), jnp.result_type(float)),)
    return is_affine(rows, lambda x: own(None, Located(x)))


def _straight(kinds: list[list[tuple[int, OfPlaces, list[Place]]]]) -> Straight:
    """Linear functions of several structures as one array."""
    most = max(len(members[0][2]) for members in kinds)
    weights, offset = [], []
    for members in kinds:
        none = jnp.zeros((len(members[0][2]), 7))
        both = jax.vmap(jax.value_and_grad(lambda x, own: own(None, Located(x))), (None, 0))
        value, slopes = both(none, _stacked([own for _, own, _ in members]))
        weights.append(jnp.pad(slopes, ((0, 0), (0, most - len(none)), (0, 0))))
        offset.append(value)
    return Straight(jnp.concatenate(weights), jnp.concatenate(offset))
