"""Contacts of links in space: points and spheres on surfaces, and on each other.

A surface is the plane of the first two axes of a frame, free on the side of the third, ``n``. A
sphere of radius ``r`` about ``c`` and a surface through ``o`` have the gap ``g``, and slide with
the relative velocity of their material at ``x``, measured along the first two axes::

    g = n . (c - o) - r + gap,    x = c - r n,    gamma = e_i . (v_A(x) - v_B(x))

Where friction brakes the spin, its velocity is ``n . (omega_A - omega_B)``.

A second sphere, of radius ``R`` about ``o``, has ``g = |c - o| - r - R + gap`` with the normal from
its centre. Where it is hollow, ``g = (C^2 - |c - o|^2)/(2 C)`` with the clearance ``C = R - r +
gap`` is smooth at its centre, and has the same slope where they touch. The axes there are those of
the start, turned with the normal on the shortest way.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jfric.errors import ProblemError
from jfric.system.body import GROUND, moving
from jfric.system.description import AbstractProblem, element_label
from jfric.system.elements import AXES, Contact, Gap
from jfric.system.laws import Coulomb, Directional, PerAxis
from jfric.system.places import require_reference
from jfric.system.position_functions import Instant
from jfric.system.state_function import Rate
from jfric.system.tree import CROSS, Tree, products, rows


class Directions(NamedTuple):
    """Contacts ``c`` at one position: the distances of both sides without a clearance, where they
    touch, and three directions, of which the last is the normal."""

    distance: Float[Array, " c"]
    at: Float[Array, "c 3"]
    along: Float[Array, "c 3 3"]


class OnSurface(eqx.Module):
    """Spheres of links ``c`` above surfaces."""

    tree: Tree
    #: Frames about the centres of the spheres, and those of their partners, in the frames of
    #: their bodies.
    own: Float[Array, "c 4 4"]
    partner: Float[Array, "c 4 4"]
    radius: Float[Array, " c"]
    gap: Float[Array, " c"]
    #: Bodies of both among those of the tree.
    bodies: tuple[tuple[int, int], ...] = eqx.field(static=True)

    def directions(self, centre: Float[Array, "c 3"], partner: Float[Array, "c 4 4"]) -> Directions:
        """Directions for centres and frames of the partners."""
        axes, n = partner[:, :3, :3], partner[:, :3, 2]
        way = jnp.sum(n * (centre - partner[:, :3, 3]), axis=1)
        return Directions(way - self.radius, centre - self.radius[:, None] * n, axes)

    def _sides(self) -> tuple[np.ndarray, np.ndarray]:
        first, second = np.asarray(self.bodies).T
        return first, second

    def _placed(self, frames) -> tuple[Float[Array, "c 3"], Float[Array, "c 4 4"]]:
        first, second = self._sides()
        return (rows(frames, first) @ self.own)[:, :3, 3], rows(frames, second) @ self.partner

    def gaps(self, q) -> Float[Array, " c"]:
        """Gaps at the positions ``q``."""
        return self.directions(*self._placed(self.tree.grounded(q))).distance + self.gap

    def seen(self, q, v) -> Instant:
        """Gaps, with the relative velocities of the material along the three directions, and
        that of spin (c, 4, n), and their rates (c, 4) without accelerations."""
        here = self.tree.positions(q)
        motion, sides = self.tree.motion(here, v), self._sides()
        centre, partner = self._placed(here.frames)
        V, A, about = ([rows(x, i) for i in sides] for x in (*motion, here.about))
        carried = moved(V[0], about[0], centre)
        arm = partner[:, :3, 3] - about[1]
        slopes = jnp.concatenate([partner[:, :3, :3], arm[:, :, None]], axis=2)
        slopes = products(V[1][:, :3], CROSS) @ slopes
        slopes = slopes.at[:, :, 3].add(V[1][:, 3:])
        turned = jnp.pad(slopes, ((0, 0), (0, 1), (0, 0)))
        (distance, at, E), (_, at_rate, E_rate) = jax.jvp(
            self.directions, (centre, partner), (carried, turned)
        )
        speed, rate, W, spin, spin_rate = 0.0, 0.0, 0.0, 0.0, 0.0
        n, n_rate = E[:, :, 2], E_rate[:, :, 2]
        along_n = jnp.concatenate([n, jnp.zeros_like(n)], axis=1)[:, :, None]
        for sign, i in ((1.0, 0), (-1.0, 1)):
            arm = at - about[i]
            speed = speed + sign * moved(V[i], about[i], at)
            rate = rate + sign * (
                moved(A[i], about[i], at)
                + jnp.einsum("cij,cj->ci", products(V[i][:, :3], CROSS), at_rate)
            )
            spin, spin_rate = spin + sign * V[i][:, :3], spin_rate + sign * A[i][:, :3]
            # Forces along the three directions and a torque, by the twists of the coordinates.
            torque = products(arm, CROSS) @ E
            force = jnp.concatenate([jnp.concatenate([torque, E], axis=1), along_n], axis=2)
            power = jnp.einsum("cia,ni->can", force, here.twists)
            W = W + sign * jnp.asarray(self.tree.behind[sides[i]], q.dtype)[:, None, :] * power
        bias = jnp.einsum("cia,ci->ca", E_rate, speed) + jnp.einsum("cia,ci->ca", E, rate)
        about_n = jnp.sum(n_rate * spin + n * spin_rate, axis=1, keepdims=True)
        bias = jnp.concatenate([bias, about_n], axis=1)
        W_all = jnp.zeros((*W.shape[:2], q.shape[0]), q.dtype).at[:, :, self.tree.columns].set(W)
        return Instant(distance + self.gap, W_all, jnp.zeros_like(bias), bias)

    def __call__(self, t, q):
        return self.gaps(q)[0]


def moved(twist: Float[Array, "c 6"], about, at) -> Float[Array, "c 3"]:
    """Velocities at places of what moves with twists about other places."""
    turned = jnp.einsum("cij,cj->ci", products(twist[:, :3], CROSS), at - about)
    return twist[:, 3:] + turned


class OnSphere(OnSurface):
    """Spheres of links that touch spheres."""

    #: Radius of the partner, and the directions at the start.
    other: Float[Array, " c"]
    start: Float[Array, "c 3 3"]

    def directions(self, centre, partner) -> Directions:
        way = centre - partner[:, :3, 3]
        apart = jnp.sqrt(jnp.sum(way * way, axis=1))
        distance = apart - self.radius - self.other
        return self._around(distance, centre, way / apart[:, None])

    def _around(self, distance, centre, n) -> Directions:
        first, start = self.start[:, :, :2], self.start[:, :, 2]
        share = jnp.einsum("ci,cia->ca", n, first)
        share = share / (1.0 + jnp.sum(n * start, axis=1, keepdims=True))
        along = first - (n + start)[:, :, None] * share[:, None, :]
        along = jnp.concatenate([along, n[:, :, None]], axis=2)
        return Directions(distance, centre - self.radius[:, None] * n, along)


class InSphere(OnSphere):
    """Spheres of links inside hollow spheres."""

    def directions(self, centre, partner) -> Directions:
        way, clearance = centre - partner[:, :3, 3], self.other - self.radius + self.gap
        left = (clearance**2 - jnp.sum(way * way, axis=1)) / (2.0 * clearance)
        return self._around(left - self.gap, centre, -way / clearance[:, None])


class Sliding(eqx.Module):
    """Sliding velocity of a contact along one of its directions, or its spin."""

    of: OnSurface
    axis: int = eqx.field(static=True)

    def __call__(self, t, q, v):
        W = self.of.seen(q, v).W[0, self.axis]
        return W @ v


class Touching(eqx.Module):
    """All contacts in space, and their rows among tangents, then normals."""

    groups: tuple[OnSurface, ...]
    #: Row, contact and direction: of gaps, then of sliding.
    gaps: tuple[tuple[int, int, int], ...] = eqx.field(static=True)
    slides: tuple[tuple[int, int, int], ...] = eqx.field(static=True)

    def values(self, q) -> Float[Array, " g"]:
        """Gaps at the positions ``q``, in order of their rows."""
        found = jnp.concatenate([group.gaps(q) for group in self.groups])
        return rows(found, np.asarray([contact for _, contact, _ in self.gaps]))

    def at(self, q, v) -> Instant:
        """Rows of gaps and of sliding at one instant."""
        seen = [group.seen(q, v) for group in self.groups]
        value, W, _, bias = (jnp.concatenate(x) for x in zip(*seen, strict=True))
        every = np.asarray([*self.gaps, *self.slides])
        here = every[:, 1] * len(AXES) + every[:, 2]
        return Instant(
            rows(value, every[:, 1]),
            rows(W.reshape(-1, W.shape[2]), here),
            jnp.zeros((len(every),), q.dtype),
            rows(bias.ravel(), here),
        )


def together_in_space(displacements: Iterable[tuple[int, Any]]) -> Touching | None:
    """Contacts in space among rows with their functions; None without any."""
    gaps, slides, every = [], [], []
    for row, function in displacements:
        if isinstance(function, OnSurface):
            gaps.append((row, function, AXES.index("normal")))
        elif isinstance(function, Rate) and isinstance(function.function, Sliding):
            slides.append((row, function.function.of, function.function.axis))
    if not gaps:
        return None
    kinds: dict[type, list[OnSurface]] = {}
    for _, contact, _ in gaps:
        own = kinds.setdefault(type(contact), [])
        if not any(contact is x for x in own):
            own.append(contact)
    every = [x for own in kinds.values() for x in own]

    def places(found) -> tuple[tuple[int, int, int], ...]:
        at = {id(x): i for i, x in enumerate(every)}
        return tuple((row, at[id(contact)], axis) for row, contact, axis in found)

    return Touching(tuple(map(_joined, kinds.values())), places(gaps), places(slides))


def _joined(contacts: list[OnSurface]) -> OnSurface:
    """Contacts of one kind as one array program."""
    first, bodies = contacts[0], tuple(pair for x in contacts for pair in x.bodies)
    arrays = {
        field.name: jnp.concatenate([getattr(x, field.name) for x in contacts])
        for field in dataclasses.fields(first)
        if field.name not in ("tree", "bodies")
    }
    return type(first)(tree=first.tree, bodies=bodies, **arrays)


def gap_in_space(problem: AbstractProblem, tree: Tree, contact: Contact) -> OnSurface:
    """The gap of a contact in space of a resolved ``problem``."""
    (first, own), (second, partner) = (
        placed_in_space(problem, tree, str(x)) for x in (contact.point, contact.partner)
    )
    numbers = {
        "own": own[None],
        "partner": partner[None],
        "radius": _number(contact.radius),
        "gap": _number(contact.gap),
        "bodies": ((first, second),),
    }
    if contact.sphere is None:
        return OnSurface(tree, **numbers)
    q = problem.start()[1]
    frames = tree.grounded(q)
    way = (frames[first] @ own)[:3, 3] - (frames[second] @ partner)[:3, 3]
    n = way / jnp.sqrt(way @ way)
    across = jnp.eye(3)[jnp.argmin(jnp.abs(n))]
    e = jnp.cross(across, n)
    e = e / jnp.sqrt(e @ e)
    sign = -1.0 if contact.inside else 1.0
    start = jnp.stack([e, jnp.cross(sign * n, e), sign * n], axis=1)
    cls = InSphere if contact.inside else OnSphere
    return cls(tree, **numbers, other=_number(contact.sphere_radius), start=start[None])


def sliding_in_space(gap: OnSurface, contact: Contact) -> Sliding:
    """The sliding velocity of one row of a contact with this ``gap``."""
    return Sliding(gap, AXES.index(str(contact.sliding)))


def _number(x: Any) -> Float[Array, " 1"]:
    return jnp.zeros((1,)) if x is None else jnp.asarray(x)[None]


def placed_in_space(problem: AbstractProblem, tree: Tree, reference: str) -> tuple[int, Array]:
    """Body of the tree that a point of a link, or the ground, belongs to, and the frame there."""
    name, _, point = reference.partition(".")
    body, frame = tree.links[name] if name != GROUND else (-1, jnp.eye(4))
    at = problem.section("link")[name].points[point] if point else (0.0, 0.0, 0.0)
    way = frame @ jnp.append(jnp.stack([jnp.asarray(x, frame.dtype) for x in at]), 1.0)
    return body, frame.at[:, 3].set(way)


def require_in_space(problem: AbstractProblem, where: str, contact: Contact) -> None:
    """Raise :class:`ProblemError` unless the point of a contact in space has one partner."""
    other = "surface" if contact.sphere is None else "sphere"
    for field in ("line", "circle", "polygon", "normal", "tangent", "sliding", "plane"):
        if getattr(contact, field) is not None:
            raise ProblemError(f"{where}.{field}: cannot be combined with {other}")
    if contact.point is None:
        raise ProblemError(f"{where}.point: is missing; give a point of a link that touches")
    if contact.surface is not None and contact.sphere is not None:
        raise ProblemError(f"{where}: found both of surface and sphere, exactly one is needed")
    if isinstance(contact.gap, Gap):
        raise ProblemError(
            f"{where}.gap: found {contact.gap.function!r} together with {other}; give a number, "
            "the clearance between both"
        )
    for field, names in (("point", False), (other, True)):
        require_point(problem, f"{where}.{field}", getattr(contact, field), ground=names)
    links, name = problem.section("link"), str(contact.point).partition(".")[0]
    if name not in moving(links) and str(contact.partner).partition(".")[0] not in moving(links):
        raise ProblemError(
            f"{where}.point: {element_label('link', name)} and its partner are fixed to the "
            "ground; one of both must move"
        )
    law = contact.law
    if contact.contact_radius is not None and (
        not isinstance(law, Coulomb) or law.holding(PerAxis) or law.holding(Directional)
    ):
        found = "no law" if law is None else f"the law {type(law).__name__}"
        raise ProblemError(
            f"{where}.contact_radius: found together with {found}; friction of a disc that slips "
            "and spins has one coefficient mu"
        )
    if contact.sphere is None and (contact.sphere_radius is not None or contact.inside):
        field = "inside" if contact.inside else "sphere_radius"
        raise ProblemError(f"{where}.{field}: is given without sphere")


def require_point(problem: AbstractProblem, where: str, reference: Any, ground: bool) -> None:
    """Raise :class:`ProblemError` for a name that is no point of a link, nor that of the ground."""
    points = {name: link.points for name, link in problem.section("link").items()}
    points |= {GROUND: {}} if ground else {}
    require_reference(where, "link", str(reference), points)
