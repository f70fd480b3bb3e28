"""Pins between links in space, which close loops of a tree.

A point ``a`` of one link and a point ``b`` of another coincide, and both links turn freely::

    a(q) - b(q) = 0

Directions follow from the twists of the coordinates, and accelerations without those of the
coordinates from the rates of the links' twists. Equations along directions in which no joint moves
the points, as across a loop in a plane, are zero and hold nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jfric.system.description import AbstractProblem
from jfric.system.link import GROUND, Link, in_order, turns_of
from jfric.system.linkage import Pin
from jfric.system.position_functions import AbstractGroup, Instant
from jfric.system.surfaces import moved, placed_in_space
from jfric.system.tree import CROSS, Tree, products, rows, tree_of


class Coinciding(AbstractGroup):
    """Equations ``a - b = 0`` of ``c`` pairs of points of links, along the axes of the ground."""

    tree: Tree
    #: Points of both sides in the frames of their bodies, behind which stands a one.
    points: Float[Array, "c 2 4"]
    #: Bodies of both among those of the tree.
    bodies: tuple[tuple[int, int], ...] = eqx.field(static=True)

    def _places(self, frames: Float[Array, "k 4 4"], side: int) -> Float[Array, "c 3"]:
        own = rows(frames, np.asarray(self.bodies)[:, side])
        return jnp.einsum("cij,cj->ci", own, self.points[:, side])[:, :3]

    def __call__(self, t, q):
        frames = self.tree.grounded(q)
        return (self._places(frames, 0) - self._places(frames, 1)).ravel()

    def at(self, t, q, v) -> Instant:
        here = self.tree.positions(q)
        motion, behind = self.tree.motion(here, v), self.tree.behind
        value, W, bias = 0.0, 0.0, 0.0
        for side, sign in enumerate((1.0, -1.0)):
            i, at = np.asarray(self.bodies)[:, side], self._places(here.frames, side)
            V, A, about = (rows(x, i) for x in (*motion, here.about))
            spin = products(V[:, :3], CROSS)
            value = value + sign * at
            bias = bias + sign * moved(A, about, at)
            bias = bias + sign * jnp.einsum("cij,cj->ci", spin, moved(V, about, at))
            # Unit forces along the axes, by the twists of the coordinates.
            unit = jnp.broadcast_to(jnp.eye(3, dtype=q.dtype), (len(i), 3, 3))
            force = jnp.concatenate([products(at - about, CROSS), unit], axis=1)
            power = jnp.einsum("cia,ni->can", force, here.twists)
            W = W + sign * jnp.asarray(behind[i], q.dtype)[:, None, :] * power
        n = q.shape[0]
        W = jnp.zeros((len(self.bodies), 3, n), q.dtype).at[:, :, self.tree.columns].set(W)
        return Instant(
            jnp.ravel(value),
            W.reshape(-1, n),
            jnp.zeros((W.shape[0] * 3,), q.dtype),
            jnp.ravel(bias),
        )


def in_space(problem: AbstractProblem, pin: Pin) -> bool:
    """Whether a pin holds points of links."""
    links = problem.section("link")
    points = pin.points if isinstance(pin.points, tuple) else ()
    return any(str(x).partition(".")[0] in links for x in points)


def coinciding(problem: AbstractProblem) -> tuple[list[str], Coinciding | None]:
    """Labels of the pins between links of a resolved ``problem``, and their equations, three for
    each."""
    pins = {k: x for k, x in problem.labelled("pin").items() if in_space(problem, x)}
    if not pins:
        return [], None
    tree = tree_of(problem)
    sides = [[placed_in_space(problem, tree, x) for x in pin.points] for pin in pins.values()]
    points = jnp.stack([jnp.stack([frame[:, 3] for _, frame in pair]) for pair in sides])
    return [*pins], Coinciding(tree, points, tuple((a, b) for (a, _), (b, _) in sides))


def in_loop(links: Mapping[str, Link], pin: Pin) -> dict[str, bool]:
    """Degrees of freedom that move one point of a pin against the other, those of the joints on the
    ways from both to where they meet, and whether they are of a quaternion."""
    ways: list[set[str]] = []
    for point in pin.points:
        name, way = point.partition(".")[0], set()
        while name != GROUND and name in in_order(links):
            way.add(name)
            name = links[name].parent
        ways.append(way)
    own = [links[x].coordinates(x) for x in sorted(ways[0] ^ ways[1])]
    return {dof: dof in turns_of(dofs) for dofs in own for dof in dofs}
