"""Piecewise-linear force elements as segments with linear guards.

Element j in segment s, elongation ``x = w^T q`` (bases included)::

    force along w:  -(k x + c x' + f)
    guards:         alpha x + beta x' + delta >= 0,  leaving to segment ``next`` when violated

Diagram springs, gap springs and elastic stops all take this form; solvers know only this form.
"""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from jfric.system.description import AbstractProblem


class PiecewiseElements(eqx.Module):
    """All piecewise-linear elements of a system, padded to ``S`` segments each.

    Guards that a segment lacks are constant (1) and never fire.
    """

    directions: Float[Array, "ns n"]
    base_directions: Float[Array, "ns nb"]
    k: Float[Array, "ns S"]
    c: Float[Array, "ns S"]
    f: Float[Array, "ns S"]
    #: Coefficients (alpha, beta, delta) of the two guards of each segment.
    guards: Float[Array, "ns S 2 3"]
    #: Segment after each guard, ``next[j][s][g]``.
    next: tuple[tuple[tuple[int, int], ...], ...] = eqx.field(static=True)
    #: What the event log calls each segment, ``labels[j][s]``.
    labels: tuple[tuple[str, ...], ...] = eqx.field(static=True)
    names: tuple[str, ...] = eqx.field(static=True)

    @property
    def count(self) -> int:
        """Number of elements."""
        return len(self.names)

    @property
    def segments(self) -> int:
        """Largest number of segments of any element."""
        return self.k.shape[1]

    def at(self, segment, table: str):
        """Row of a table (``"k"``, ``"c"``, ``"f"``, ``"guards"``) for each element's segment."""
        return getattr(self, table)[jnp.arange(self.count), segment]

    def following(self, segment, first, second):
        """Segments (ns,) after those whose ``first`` or ``second`` guard is violated."""
        after = jnp.asarray(self.next, jnp.int32)[jnp.arange(self.count), segment]
        return jnp.where(first, after[:, 0], jnp.where(second, after[:, 1], segment)).astype(
            jnp.int32
        )

    def segment_at(self, x, rate=None):
        """Segment (ns,) whose guards hold at elongations ``x`` and, where given, their rates."""
        g = self.guards
        value = g[..., 0] * x[:, None, None] + g[..., 2]
        if rate is None:
            value = jnp.where(g[..., 1] == 0.0, value, 1.0)
        else:
            value = value + g[..., 1] * rate[:, None, None]
        return jnp.argmax(jnp.all(value >= 0, axis=-1), axis=1).astype(jnp.int32)

    def shown(self, segment):
        """Segments as users see them: those of equal name are one."""
        if not self.labels:
            return segment
        rows = [
            [names.index(names[min(i, len(names) - 1)]) for i in range(self.segments)]
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
    offsets = [force[i] - slopes[i] * x[i] for i in range(count)]
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
    """Free; damper as it is; at its upper limit (approach); at the lower one (no force)."""
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


FORMS = {"diagram_spring": _diagram, "gap_spring": _gap, "stop": _stop}


def assemble_piecewise(problem: AbstractProblem) -> PiecewiseElements:
    """Collect the piecewise-linear elements of a resolved problem."""
    axes, bases = problem.axes, problem.bases
    n, nb = len(axes), len(bases)
    names, rows, forms = [], [], []
    for section, form in FORMS.items():
        for label, element in problem.labelled(section).items():
            names.append(label)
            rows.append(element.direction.vector(axes + bases))
            forms.append(form(element))
    size = max((len(s.k) for s in forms), default=1)
    directions = jnp.stack(rows) if rows else jnp.zeros((0, n + nb))

    def table(field: str):
        if not forms:
            return jnp.zeros((0, size))
        return jnp.stack([_padded(getattr(s, field), size) for s in forms])

    guards = jnp.zeros((0, size, 2, 3))
    if forms:
        guards = jnp.stack([_guard_table(s, size) for s in forms])
    return PiecewiseElements(
        directions=directions[:, :n],
        base_directions=directions[:, n:],
        k=table("k"),
        c=table("c"),
        f=table("f"),
        guards=guards,
        next=tuple(
            tuple(tuple(s.next[min(i, len(s.next) - 1)]) for i in range(size)) for s in forms
        ),
        labels=tuple(tuple(s.labels) for s in forms),
        names=tuple(names),
    )


def _guard_table(form: _Segments, size: int):
    """Guards (size, 2, 3); the last segment fills up."""
    pairs = [form.guards[min(i, len(form.guards) - 1)] for i in range(size)]
    return jnp.stack([jnp.stack([_padded(list(g), 3) for g in pair]) for pair in pairs])


def _padded(values: list, size: int):
    padded = list(values) + [0.0] * (size - len(values))
    return jnp.stack([jnp.asarray(v, jnp.result_type(float)) for v in padded])
