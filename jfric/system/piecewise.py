"""Piecewise-linear force elements as segments with linear guards.

Element j in segment s, elongation ``x = w^T q`` (bases included)::

    force along w:  -(k x + c x' + f)
    guards:         alpha x + beta x' + delta >= 0,  leaving to another segment when violated

Diagram springs, gap springs and elastic stops have these numbers in a table. Springs in series with
sliders (:mod:`jfric.system.sliders`) follow them, and also have a memory: anchors, set where they
change their segment. Solvers know only this form.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from jfric.numerics.choice import select
from jfric.system.bristle import BRISTLES
from jfric.system.description import AbstractProblem
from jfric.system.sliders import Sliders, assemble_sliders


class Inner(NamedTuple):
    """State of the piecewise-linear elements in addition to the motion: segments and anchors."""

    segment: Int[Array, " ns"]
    anchor: Float[Array, "e N"]


class PiecewiseElements(eqx.Module):
    """All piecewise-linear elements of a system: ``nd`` from tables, padded to ``S`` segments
    each, then those with sliders, ``ns`` in all.

    Guards that a segment lacks are constant (1) and never fire.
    """

    directions: Float[Array, "ns n"]
    base_directions: Float[Array, "ns nb"]
    k: Float[Array, "nd S"]
    c: Float[Array, "nd S"]
    f: Float[Array, "nd S"]
    #: Coefficients (alpha, beta, delta) of the two guards of each segment.
    guards: Float[Array, "nd S 2 3"]
    #: Segment after each guard, ``next[j][s][g]``.
    next: tuple[tuple[tuple[int, int], ...], ...] = eqx.field(static=True)
    #: Name of each segment in the event log, ``labels[j][s]``.
    labels: tuple[tuple[str, ...], ...] = eqx.field(static=True)
    names: tuple[str, ...] = eqx.field(static=True)
    sliders: Sliders | None = None

    @property
    def count(self) -> int:
        """Number of elements."""
        return len(self.names)

    @property
    def tables(self) -> int:
        """Number of elements from tables."""
        return self.k.shape[0]

    @property
    def states(self) -> tuple[str, ...]:
        """Names of the springs in series with sliders."""
        return () if self.sliders is None else self.sliders.states

    @property
    def has_couplings(self) -> bool:
        """Whether the force of an element depends on the elongation of another."""
        return self.sliders is not None and self.sliders.coupled is not None

    def elongations(self, inner: Inner, x: Float[Array, " e"]) -> Float[Array, " z"]:
        """Elongations ``z`` of the springs in series with sliders, element by element; ``x``:
        elongations of these elements."""
        if self.sliders is None:
            return x
        found = self.sliders.elongations(inner.segment[self.tables :], inner.anchor, x)
        return self.sliders.joined(found)

    @property
    def segments(self) -> int:
        """Largest number of segments of any element from a table."""
        return self.k.shape[1]

    def at(self, segment, table: str):
        """Row of a table (``"k"``, ``"c"``, ``"f"``, ``"guards"``) for each element's segment."""
        return getattr(self, table)[jnp.arange(self.tables), segment]

    def _chosen(self, segment: Int[Array, " ns"]) -> Bool[Array, "t s"]:
        """Whether each element from a table is in each of its segments."""
        return segment[: self.tables, None] == np.arange(self.segments, dtype=np.int32)[None, :]

    def line(self, inner: Inner) -> tuple[Array, Array, Array]:
        """Coefficients ``k``, ``c`` and ``f`` (ns,) of all elements."""
        chosen = self._chosen(inner.segment)
        k, c, f = (
            jnp.sum(select(chosen, table, 0.0), axis=1) for table in (self.k, self.c, self.f)
        )
        if self.sliders is None:
            return k, c, f
        own, offset = self.sliders.line(inner.segment[self.tables :], inner.anchor)
        joined = (k, own), (c, jnp.zeros_like(own)), (f, offset)
        k, c, f = (jnp.concatenate(pair) for pair in joined)
        return k, c, f

    def cross_stiffness(self, inner: Inner) -> Float[Array, "ns ns"] | None:
        """Forces of coupled elements by the elongations of all, in addition to :meth:`line`; None
        where none are coupled."""
        if self.sliders is None:
            return None
        nd = self.tables
        found = self.sliders.cross_stiffness(inner.segment[nd:], inner.anchor)
        return None if found is None else jnp.pad(found, ((nd, 0), (nd, 0)))

    def cross_guards(self, inner: Inner) -> tuple[Array, Array] | None:
        """Coefficients of the elongations and of the rates of all elements, each (ns, 2, ns), in
        the guards of coupled ones, in addition to :meth:`guards_at`; None where none are coupled.
        """
        if self.sliders is None:
            return None
        nd = self.tables
        found = self.sliders.cross_guards(inner.segment[nd:], inner.anchor)
        if found is None:
            return None
        alpha, beta = (jnp.pad(x, ((nd, 0), (0, 0), (nd, 0))) for x in found)
        return alpha, beta

    def guards_at(self, inner: Inner) -> Float[Array, "ns 2 3"]:
        """Coefficients (alpha, beta, delta) of the two guards of each element."""
        chosen = self._chosen(inner.segment)
        table = jnp.sum(select(chosen[:, :, None, None], self.guards, 0.0), axis=1)
        if self.sliders is None:
            return table
        own = self.sliders.guards(inner.segment[self.tables :], inner.anchor)
        return jnp.concatenate([table, own])

    def following(self, segment, first, second):
        """Segments (ns,) after those whose ``first`` or ``second`` guard is violated."""
        nd, found = self.tables, []
        if nd:
            after = jnp.asarray(self.next, jnp.int32)[jnp.arange(nd), segment[:nd]]
            other = select(second[:nd], after[:, 1], segment[:nd])
            found.append(select(first[:nd], after[:, 0], other).astype(jnp.int32))
        if self.sliders is not None:
            found.append(self.sliders.following(segment[nd:], first[nd:], second[nd:]))
        return jnp.concatenate(found)

    def anchored(self, inner: Inner, after, x: Float[Array, " ns"]) -> Float[Array, "e N"]:
        """Anchors after a change to the segments ``after`` at the elongations ``x``."""
        if self.sliders is None:
            return inner.anchor
        nd = self.tables
        return self.sliders.anchored(inner.segment[nd:], after[nd:], inner.anchor, x[nd:])

    def known_zeros(self, before, after, zero: Bool[Array, "ns 2"]) -> Bool[Array, "ns 2"]:
        """Whether each guard is zero by construction right after a change of segments.

        A guard from a table is zero if it is the violated guard up to sign, and that one was
        ``zero``. A rate that jumps passes zero without being zero.
        """
        nd, found = self.tables, []
        if nd:
            rows = jnp.arange(nd)
            old, new = self.guards[rows, before[:nd]], self.guards[rows, after[:nd]]
            leads = jnp.asarray(self.next, jnp.int32)[rows, before[:nd]] == after[:nd, None]
            same = jnp.all(new[:, :, None] == old[:, None], axis=-1)
            mirrored = jnp.all(new[:, :, None] == -old[:, None], axis=-1)
            leads = leads & zero[:nd]
            found.append(jnp.any(leads[:, None] & (same | mirrored), axis=-1))
        if self.sliders is not None:
            found.append(self.sliders.known_zeros(before[nd:], after[nd:]))
        return jnp.concatenate(found)

    def kinks(self, segment: Int[Array, " ns"]) -> Bool[Array, "ns 2"]:
        """Whether the line of the force turns where each guard is reached by elongation."""
        nd, found = self.tables, jnp.zeros((self.count, 2), bool)
        if not nd:
            return found
        rows, after = jnp.arange(nd), jnp.asarray(self.next, jnp.int32)
        after = after[rows, segment[:nd]]
        turns = jnp.zeros((nd, 2), bool)
        for line in (self.k, self.c):
            turns = turns | (line[rows[:, None], after] != line[rows, segment[:nd]][:, None])
        at = self.guards[rows, segment[:nd]]
        return found.at[:nd].set(turns & (at[..., 0] != 0.0) & (at[..., 1] == 0.0))

    def segment_at(self, x, rate=None):
        """Segment (ns,) whose guards hold at elongations ``x`` and, where given, their rates; all
        sliders are stuck."""
        g, nd = self.guards, self.tables
        value = g[..., 0] * x[:nd, None, None] + g[..., 2]
        if rate is None:
            value = select(g[..., 1] == 0.0, value, 1.0)
        else:
            value = value + g[..., 1] * rate[:nd, None, None]
        found = jnp.argmax(jnp.all(value >= 0, axis=-1), axis=1).astype(jnp.int32)
        return jnp.pad(found, (0, self.count - nd))

    def start(self, x: Float[Array, " ns"]) -> Inner:
        """Segments and anchors to start from at the elongations ``x``."""
        anchor = jnp.zeros((0, 0), x.dtype)
        if self.sliders is not None:
            anchor = self.sliders.start(x[self.tables :])
        return Inner(self.segment_at(x), anchor)

    def restarted(self, inner: Inner, x: Float[Array, " ns"], new: Float[Array, " ns"]) -> Inner:
        """Segments and anchors after a jump from the elongations ``x`` to ``new``, which stretches
        the springs in series with sliders; sliders that slip are found afterwards."""
        found, nd = self.start(new), self.tables
        if self.sliders is None:
            return found
        z = self.sliders.elongations(inner.segment[nd:], inner.anchor, x[nd:])
        return found._replace(anchor=x[nd:, None] - z)

    def resolved(self, segment, x: Float[Array, " ns"], rate: Float[Array, " ns"]):
        """Segments from those in results: of several with one name the one whose guards hold at
        elongations ``x`` and their rates. Unknown segments (-1) stay unknown."""
        nd = self.tables
        if not any(len(set(names)) < len(names) for names in self.labels[:nd]):
            return segment
        g = self.guards
        value = g[..., 0] * x[:nd, None, None] + g[..., 1] * rate[:nd, None, None] + g[..., 2]
        # Where forces are continuous, either of two segments may be taken at their border.
        inside = jnp.min(value, axis=-1)
        every = [
            [names.index(names[min(i, len(names) - 1)]) for i in range(self.segments)]
            for names in self.labels[:nd]
        ]
        of_name = jnp.asarray(every, jnp.int32) == segment[:nd, None]
        first = (
            jnp.arange(self.segments)[None, :]
            < np.asarray(list(map(len, self.labels[:nd])))[:, None]
        )
        found = jnp.argmax(select(of_name & first, inside, -jnp.inf), axis=1)
        found = select(segment[:nd] < 0, segment[:nd], found).astype(segment.dtype)
        return jnp.concatenate([found, segment[nd:]])

    def shown(self, segment):
        """Segments in results: those with the same name are one."""
        if not self.labels:
            return segment
        rows = [
            [names.index(names[min(i, len(names) - 1)]) for i in range(max(map(len, self.labels)))]
            for names in self.labels
        ]
        return jnp.asarray(rows, jnp.int32)[jnp.arange(self.count), segment]


class _Segments(eqx.Module):
    k: list
    c: list
    f: list
    guards: list
    next: list
    labels: list


_NEVER = (0.0, 0.0, 1.0)


def _diagram(spring) -> _Segments:
    x, force = spring.x, spring.F
    count = x.shape[0] - 1
    slopes = [(force[i + 1] - force[i]) / (x[i + 1] - x[i]) for i in range(count)]
    # From the end nearer to zero: a line through the origin has no offset by rounding.
    near = [jnp.abs(x[i]) <= jnp.abs(x[i + 1]) for i in range(count)]
    offsets = [
        select(near[i], force[i], force[i + 1]) - slopes[i] * select(near[i], x[i], x[i + 1])
        for i in range(count)
    ]
    return _lines(
        slopes, offsets, [x[i] for i in range(1, count)], [f"segment_{i + 1}" for i in range(count)]
    )


def _gap(spring) -> _Segments:
    kn, kp = spring.k_negative, spring.k_positive
    slopes = [kn, 0.0, kp]
    offsets = [kn * spring.gap_negative, 0.0, -kp * spring.gap_positive]
    return _lines(
        slopes,
        offsets,
        [-spring.gap_negative, spring.gap_positive],
        ["touch_negative", "free", "touch_positive"],
    )


def _lines(slopes, offsets, breaks, labels) -> _Segments:
    """Continuous piecewise-linear force with kinks at ``breaks``."""
    count = len(slopes)
    guards, following = [], []
    for s in range(count):
        lower = (1.0, 0.0, -breaks[s - 1]) if s > 0 else _NEVER
        upper = (-1.0, 0.0, breaks[s]) if s < count - 1 else _NEVER
        guards.append((lower, upper))
        following.append((max(s - 1, 0), min(s + 1, count - 1)))
    return _Segments(slopes, [0.0] * count, offsets, guards, following, labels)


def _stop(stop) -> _Segments:
    k, c, gap = stop.k, stop.c, stop.gap
    leave = (1.0, 0.0, -gap)
    if stop.release == "limited":
        return _limited(k, c, gap, leave)
    pull = (k, c, -k * gap)
    push = (-k, -c, k * gap)
    touch = _NEVER if stop.release == "adhesive" else pull
    # Released: still inside the stop's surface, which follows without force until touched again.
    return _Segments(
        k=[0.0, k, 0.0],
        c=[0.0, c, 0.0],
        f=[0.0, -k * gap, 0.0],
        guards=[((-1.0, 0.0, gap), _NEVER), (leave, touch), (leave, push)],
        next=[(1, 0), (0, 2), (0, 1)],
        labels=["free", "touch", "free"],
    )


def _limited(k, c, gap, leave) -> _Segments:
    """Segments: free; damper within its limits; at the upper one (approach); at the lower one."""
    above, below = (k, -c, -k * gap), (k, c, -k * gap)
    approach, recedes = (-k, c, k * gap), (-k, -c, k * gap)
    return _Segments(
        k=[0.0, k, 2.0 * k, 0.0],
        c=[0.0, c, 0.0, 0.0],
        f=[0.0, -k * gap, -2.0 * k * gap, 0.0],
        guards=[((-1.0, 0.0, gap), _NEVER), (above, below), (leave, approach), (leave, recedes)],
        # Touch begins at the upper limit: with a velocity, and a spring that does not push yet.
        next=[(2, 0), (2, 3), (0, 1), (0, 1)],
        labels=["free", "touch", "touch", "free"],
    )


def _sides(element) -> _Segments:
    """Two segments without force: sliding forwards and backwards."""
    del element
    nothing = [0.0, 0.0]
    guards = [((0.0, 1.0, 0.0), _NEVER), ((0.0, -1.0, 0.0), _NEVER)]
    return _Segments(nothing, nothing, nothing, guards, [(1, 0), (0, 0)], ["forward", "backward"])


def _limited_damper(damper) -> _Segments:
    c, rate = damper.c, damper.rate
    below, above = (0.0, 1.0, rate), (0.0, -1.0, rate)
    return _Segments(
        k=[0.0, 0.0, 0.0],
        c=[c, 0.0, 0.0],
        f=[0.0, -c * rate, c * rate],
        guards=[(below, above), ((0.0, -1.0, -rate), _NEVER), ((0.0, 1.0, -rate), _NEVER)],
        next=[(1, 2), (0, 1), (0, 2)],
        labels=["free", "limit_positive", "limit_negative"],
    )


#: Forms of the elements with a force.
FORMS = {
    "diagram_spring": _diagram,
    "gap_spring": _gap,
    "stop": _stop,
    "limited_damper": _limited_damper,
}


def _sign() -> _Segments:
    """Two segments without force, one for each sign of the elongation."""
    return _Segments(
        k=[0.0, 0.0],
        c=[0.0, 0.0],
        f=[0.0, 0.0],
        guards=[((1.0, 0.0, 0.0), _NEVER), ((-1.0, 0.0, 0.0), _NEVER)],
        next=[(1, 0), (0, 1)],
        labels=["positive", "negative"],
    )


def assemble_piecewise(problem: AbstractProblem, signs: Iterable[str] = ()) -> PiecewiseElements:
    """Collect the piecewise-linear elements of a resolved problem; an element for each name in
    ``signs``, the signs of loads (:mod:`jfric.system.load_friction`), follows them."""
    axes, bases = problem.axes, problem.bases
    n, nb = len(axes), len(bases)
    names, rows, forms = [], [], []
    for section, form in (FORMS | dict.fromkeys(BRISTLES, _sides)).items():
        for label, element in problem.labelled(section).items():
            names.append(label)
            rows.append(element.direction.vector(axes + bases))
            forms.append(form(element))
    for label in signs:
        names.append(label)
        rows.append(jnp.zeros((n + nb,)))
        forms.append(_sign())
    size = max((len(s.k) for s in forms), default=1)
    directions = jnp.stack(rows) if rows else jnp.zeros((0, n + nb))

    def table(field: str):
        if not forms:
            return jnp.zeros((0, size))
        return jnp.stack([_padded(getattr(s, field), size) for s in forms])

    guards = jnp.zeros((0, size, 2, 3))
    if forms:
        guards = jnp.stack([_guard_table(s, size) for s in forms])
    labels, sliders = [tuple(s.labels) for s in forms], assemble_sliders(problem)
    along, on_bases = directions[:, :n], directions[:, n:]
    if sliders is not None:
        names, labels = [*names, *sliders.names], [*labels, *sliders.labels]
        along = jnp.concatenate([along, sliders.directions])
        on_bases = jnp.concatenate([on_bases, sliders.base_directions])
    return PiecewiseElements(
        directions=along,
        base_directions=on_bases,
        k=table("k"),
        c=table("c"),
        f=table("f"),
        guards=guards,
        next=tuple(
            tuple(tuple(s.next[min(i, len(s.next) - 1)]) for i in range(size)) for s in forms
        ),
        labels=tuple(labels),
        names=tuple(names),
        sliders=sliders,
    )


def _guard_table(form: _Segments, size: int):
    """Guards (size, 2, 3), padded with those of the last segment."""
    pairs = [form.guards[min(i, len(form.guards) - 1)] for i in range(size)]
    return jnp.stack([jnp.stack([_padded(list(g), 3) for g in pair]) for pair in pairs])


def _padded(values: list, size: int):
    padded = list(values) + [0.0] * (size - len(values))
    return jnp.stack([jnp.asarray(v, jnp.result_type(float)) for v in padded])
