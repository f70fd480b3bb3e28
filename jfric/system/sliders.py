"""Springs in series with sliders as segments with linear guards and a memory.

A slider is stuck, and its spring pulls with ``k (x - anchor)``, or it slips with its limit. The
sliders of one element are sorted by the elongation at which they slip. All slipping sliders slip in
the direction of ``x'``, and they are always the first ``m``, whatever the history: a segment is
``m`` and that direction. Of the stuck sliders only the first can slip next, so an element has two
guards, whatever the number of its sliders. Elements with one slider may be coupled
(:mod:`jfric.system.sliders`).
"""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from jfric.numerics.choice import select
from jfric.numerics.linear_algebra import diagonal_matrix, diagonal_of, eliminate, matmul, matvec
from jfric.system.description import AbstractProblem, element_label
from jfric.system.hysteresis import HYSTERESIS, Branches


class _Springs(NamedTuple):
    """Elongations ``z = along (x - anchor) + fixed`` while the same sliders slip."""

    along: Float[Array, "e e"]
    fixed: Float[Array, " e"]


class CoupledSliders(eqx.Module):
    """Springs in series with sliders that pull on each other: their nodes are joined by springs.

    The springs of ``e`` elements, elongated by ``z``, hold the energy ``z^T K z/2``; sliders carry
    at most ``R``::

        F = K z,   |F_i| <= R_i,   z_i' = x_i'  while slider i is stuck,
                                   F_i = R_i sign(x_i' - z_i')  while it slips

    Where some slip, in the directions ``way``, their springs follow from those of the others:
    ``z_P = K_PP^-1 (R way - K_PS z_S)``. With ``K`` positive definite the rates are unique,
    whichever sliders slip. Rows of elements that are not coupled (``members``) are zero.
    """

    K: Float[Array, "e e"]
    R: Float[Array, " e"]
    members: tuple[bool, ...] = eqx.field(static=True)

    @property
    def own(self) -> Float[Array, " e"]:
        """Stiffness (e,) of each element with all others held; one where it is not coupled."""
        return select(np.asarray(self.members), diagonal_of(self.K), 1.0)

    def _springs(self, way: Int[Array, " e"]) -> _Springs:
        slips = jnp.asarray(self.members) & (way != 0)
        both = slips[:, None] & slips[None, :]
        # Scaled to a unit diagonal, since stiffnesses may differ by orders of magnitude.
        size = 1.0 / jnp.sqrt(self.own)
        scaled = self.K * size[:, None] * size[None, :]
        block = select(both, scaled, jnp.eye(slips.size, dtype=self.K.dtype))
        inverse = eliminate(block, 0.0, active=slips).inverse
        inverse = select(both, inverse, 0.0) * size[:, None] * size[None, :]
        stuck = select(slips, 0.0, 1.0).astype(self.K.dtype)
        along = diagonal_matrix(stuck) - matmul(inverse, self.K * stuck[None, :])
        return _Springs(along, matvec(inverse, self.R * way))

    def elongations(self, way, x: Float[Array, " e"]) -> Float[Array, " e"]:
        """Elongations ``z``; as in ``x`` for stuck sliders and elements that are not coupled."""
        found = self._springs(way)
        return matvec(found.along, x) + found.fixed

    def forces(self, z: Float[Array, " e"]) -> Float[Array, " e"]:
        """Forces ``K z`` of the springs."""
        return matvec(self.K, z)

    def line(self, way, anchor: Float[Array, " e"]) -> tuple[Array, Array]:
        """Stiffness (e, e) and constant part (e,) of the force ``-(k x + f)``."""
        found = self._springs(way)
        stiffness = matmul(self.K, found.along)
        return stiffness, matvec(self.K, found.fixed) - matvec(stiffness, anchor)

    def guards(self, way, anchor: Float[Array, " e"]) -> tuple[Array, Array, Array]:
        """Coefficients of the elongations (e, 2, e), of their rates, and constants (e, 2) of the
        guards, in elongations of an element's own spring: limits while it is stuck, its sliding
        velocity while it slips."""
        stiffness, offset = self.line(way, anchor)
        per = 1.0 / self.own
        force, constant = stiffness * per[:, None], offset * per
        limit, stuck = self.R * per, way == 0
        nothing = jnp.zeros_like(force)
        alpha = jnp.stack([-force, force], axis=1)
        delta = jnp.stack([limit - constant, limit + constant], axis=1)
        slides = way[:, None] * (jnp.eye(limit.size, dtype=force.dtype) - self._springs(way).along)
        beta = jnp.stack([nothing, slides], axis=1)
        # While a slider slips there is nothing beyond its limit.
        never = jnp.stack([jnp.ones_like(limit), jnp.zeros_like(limit)], axis=1)
        here = stuck[:, None, None]
        return (
            select(here, alpha, 0.0),
            select(here, 0.0, beta),
            select(stuck[:, None], delta, never),
        )

    def sliding(self, way, rate: Float[Array, " e"]) -> Float[Array, " e"]:
        """Sliding velocities ``x' - z'`` at the ``rate`` of elongations."""
        return rate - matvec(self._springs(way).along, rate)


class Sliders(eqx.Module):
    """All springs with sliders of a system: ``e`` elements, padded to ``N`` sliders each."""

    directions: Float[Array, "e n"]
    base_directions: Float[Array, "e nb"]
    #: Stiffnesses, and elongations of the springs at which they slip, increasing.
    k: Float[Array, "e N"]
    slip: Float[Array, "e N"]
    #: Stiffness of the parallel spring.
    residual: Float[Array, " e"]
    #: Elongations of the springs at the start.
    z0: Float[Array, "e N"]
    counts: tuple[int, ...] = eqx.field(static=True)
    names: tuple[str, ...] = eqx.field(static=True)
    #: Elements that pull on each other; None where none do.
    coupled: CoupledSliders | None = None

    @property
    def size(self) -> int:
        """Largest number of sliders of an element."""
        return self.k.shape[1]

    @property
    def labels(self) -> tuple[tuple[str, ...], ...]:
        """Names of the segments of each element in the event log."""
        ways = ("slip_pos", "slip_neg")
        if self.size == 1:
            return (("stick", *ways),) * len(self.counts)
        slipping = [f"{way}.{m}" for way in ways for m in range(1, self.size + 1)]
        return (("stick", *slipping),) * len(self.counts)

    @property
    def states(self) -> tuple[str, ...]:
        """Names of the springs: that of the element, with a number where it has several."""
        return tuple(
            name if count == 1 else f"{name}.{i}"
            for name, count in zip(self.names, self.counts, strict=True)
            for i in range(1, count + 1)
        )

    def _slipping(self, segment) -> tuple[Int[Array, " e"], Int[Array, " e"]]:
        """Number of slipping sliders, and their direction (0 where none slips)."""
        back = segment > self.size
        way = select(segment == 0, 0, select(back, -1, 1))
        return select(back, segment - self.size, segment), way

    def _stuck(self, segment) -> Bool[Array, "e N"]:
        place = jnp.arange(self.size, dtype=jnp.int32)
        return place[None, :] >= self._slipping(segment)[0][:, None]

    def joined(self, values: Float[Array, "e N"]) -> Float[Array, " z"]:
        """Values of all sliders in one row, element by element, without the padding."""
        return jnp.concatenate([row[:n] for row, n in zip(values, self.counts, strict=True)])

    def forces(self, x: Float[Array, " e"], z: Float[Array, " z"]) -> Float[Array, " e"]:
        """Forces of the elements along their directions, by elongations of elements and springs."""
        ends = np.cumsum(self.counts)
        parts = jnp.split(self.joined(self.k) * z, ends[:-1])
        pull = jnp.stack([jnp.sum(part) for part in parts])
        if self.coupled is not None:
            pull = self._of_coupled(self.coupled.forces(z[ends - self.counts]), pull)
        return -self.residual * x - pull

    def _of_coupled(self, coupled: Array, others: Array) -> Array:
        """Array with ``coupled`` (e, ...) for coupled elements and ``others`` for the rest."""
        if self.coupled is None:
            return others
        members = np.asarray(self.coupled.members).reshape((-1,) + (1,) * (others.ndim - 1))
        return select(members, coupled, others)

    def start(self, x: Float[Array, " e"]) -> Float[Array, "e N"]:
        """Anchors at the start, at the elongations ``x``."""
        return x[:, None] - self.z0

    def line(self, segment, anchor):
        """Stiffness and constant part of the force ``-(k x + f)`` of each element (e,)."""
        stuck, way = self._stuck(segment), self._slipping(segment)[1]
        k = select(stuck, self.k, 0.0)
        slips = jnp.sum(select(stuck, 0.0, self.k * self.slip), axis=1)
        own, offset = jnp.sum(k, axis=1), way * slips - jnp.sum(k * anchor, axis=1)
        if self.coupled is not None:
            own = self._of_coupled(jnp.zeros_like(own), own)
            offset = self._of_coupled(self.coupled.line(way, anchor[:, 0])[1], offset)
        return self.residual + own, offset

    def cross_stiffness(self, segment, anchor) -> Float[Array, "e e"] | None:
        """Forces of coupled elements by the elongations of all; None where none are coupled."""
        if self.coupled is None:
            return None
        return self.coupled.line(self._slipping(segment)[1], anchor[:, 0])[0]

    def power(self, segment, rate: Float[Array, " e"]) -> Float[Array, " e"]:
        """Energy that each element loses per time, at the rates of its elongation."""
        way = self._slipping(segment)[1]
        slips = select(self._stuck(segment), 0.0, self.k * self.slip)
        if self.coupled is not None:
            rate = self._of_coupled(self.coupled.sliding(way, rate), rate)
        return way * rate * jnp.sum(slips, axis=1)

    def guards(self, segment, anchor) -> Float[Array, "e 2 3"]:
        """Coefficients of elongation, its rate and one in the guards: of the next slider, then of
        the reversal or, where none slips, of the next slider in the other direction."""
        count, way = self._slipping(segment)
        following = np.arange(self.size, dtype=np.int32)[None, :] == count[:, None]
        at, reach = (jnp.sum(select(following, x, 0.0), axis=1) for x in (anchor, self.slip))
        nothing, one = jnp.zeros_like(at), jnp.ones_like(at)
        upper = jnp.stack([-one, nothing, at + reach], axis=1)
        lower = jnp.stack([one, nothing, reach - at], axis=1)
        never = jnp.stack([nothing, nothing, one], axis=1)
        back = jnp.stack([nothing, way.astype(at.dtype), nothing], axis=1)
        first = select((way < 0)[:, None], lower, upper)
        all_slip = count >= np.asarray(self.counts, np.int32)
        first = select(all_slip[:, None], never, first)
        second = select((way == 0)[:, None], lower, back)
        found = jnp.stack([first, second], axis=1)
        if self.coupled is None:
            return found
        constant = self.coupled.guards(way, anchor[:, 0])[2]
        return self._of_coupled(jnp.pad(constant[:, :, None], ((0, 0), (0, 0), (2, 0))), found)

    def cross_guards(self, segment, anchor) -> tuple[Array, Array] | None:
        """Coefficients of the elongations of all elements, and of the rates of elongations, in the
        guards of coupled elements, each (e, 2, e); None where none are coupled."""
        if self.coupled is None:
            return None
        alpha, beta, _ = self.coupled.guards(self._slipping(segment)[1], anchor[:, 0])
        return self._of_coupled(alpha, 0.0 * alpha), self._of_coupled(beta, 0.0 * beta)

    def following(self, segment, first, second) -> Int[Array, " e"]:
        """Segments after those whose ``first`` or ``second`` guard is violated."""
        way = self._slipping(segment)[1]
        more = select(way < 0, segment + 1, select(way > 0, segment + 1, 1))
        other = select(way == 0, self.size + 1, 0)
        # An element that reverses slips no further.
        turns = second & (way != 0)
        after = select(first & ~turns, more, select(second, other, segment))
        return after.astype(jnp.int32)

    def anchored(self, before, after, anchor, x: Float[Array, " e"]) -> Float[Array, "e N"]:
        """Anchors after a change of segments at the elongations ``x``; sliders that stick again are
        at their limits there."""
        held = self._stuck(after) & ~self._stuck(before)
        return select(held, x[:, None] - self.elongations(before, anchor, x), anchor)

    def known_zeros(self, before, after) -> Bool[Array, "e 2"]:
        """Whether each guard is zero right after a change: sliders that stick again are at their
        limits."""
        way, turned = self._slipping(before)[1], (before > 0) & (after == 0)
        return turned[:, None] & jnp.stack([way > 0, way < 0], axis=1)

    def elongations(self, segment, anchor, x: Float[Array, " e"]) -> Float[Array, "e N"]:
        """Elongations ``z`` of the springs at the elongations ``x`` of the elements."""
        way = self._slipping(segment)[1]
        slipping = way[:, None] * self.slip
        found = select(self._stuck(segment), x[:, None] - anchor, slipping)
        if self.coupled is None:
            return found
        own = self.coupled.elongations(way, x - anchor[:, 0])
        return self._of_coupled(jnp.broadcast_to(own[:, None], found.shape), found)


def assemble_sliders(problem: AbstractProblem) -> Sliders | None:
    """Springs in series with sliders of a resolved problem; None where there are none."""
    found = problem.labelled(*HYSTERESIS)
    if not found:
        return None
    axes, bases = problem.axes, problem.bases
    rows = jnp.stack([e.direction.vector(axes + bases) for e in found.values()])
    n, size = len(axes), max(e.sliders for e in found.values())
    parts = [e.branches() for e in found.values()]
    k, slip, z0 = [], [], []
    coupled = _coupled(problem, list(found), parts)
    members = coupled.members if coupled is not None else (False,) * len(found)
    for part, held in zip(parts, members, strict=True):
        # The order has no derivatives.
        order = jnp.argsort(part.slip)
        width = (0, size - part.slip.shape[0])
        own = part.slip[order]
        k.append(jnp.pad(part.k[order], width))
        slip.append(jnp.pad(own, width, constant_values=1.0))
        # Coupled sliders slip by their force, not by their own elongation.
        start = part.z0 + jnp.zeros_like(own) if held else jnp.clip(part.z0, -own, own)
        z0.append(jnp.pad(start, width))
    return Sliders(
        directions=rows[:, :n],
        base_directions=rows[:, n:],
        k=jnp.stack(k),
        slip=jnp.stack(slip),
        residual=jnp.stack([part.residual for part in parts]),
        z0=jnp.stack(z0),
        counts=tuple(e.sliders for e in found.values()),
        names=tuple(found),
        coupled=coupled,
    )


def _coupled(
    problem: AbstractProblem, labels: list[str], parts: list[Branches]
) -> CoupledSliders | None:
    couplings = list(problem.section("jenkins_coupling").values())
    if not couplings:
        return None
    places = [tuple(labels.index(f) for f in found) for found in coupled_labels(problem)]
    members = {i for pair in places for i in pair}
    K, R = jnp.zeros((len(labels), len(labels))), jnp.zeros((len(labels),))
    for i in members:
        K = K.at[i, i].set(parts[i].k[0])
        R = R.at[i].set(parts[i].k[0] * parts[i].slip[0])
    for (i, j), coupling in zip(places, couplings, strict=True):
        K = K.at[i, j].add(coupling.k).at[j, i].add(coupling.k)
    return CoupledSliders(K, R, tuple(i in members for i in range(len(labels))))


def coupled_labels(problem: AbstractProblem) -> list[tuple[str, ...]]:
    """Labels of the elements that each coupling joins."""
    own = problem.section("jenkins")
    full = {name: element_label("jenkins", name) for name in own}
    return [
        tuple(full[name] for name in coupling.elements)
        for coupling in problem.section("jenkins_coupling").values()
    ]
