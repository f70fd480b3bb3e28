"""The equations of all joints of a problem: those given as functions, and those between bodies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jfric.system.body import GROUND, Link, in_order, quaternions, turns_of
from jfric.system.description import AbstractProblem, element_label
from jfric.system.fields import Scalar
from jfric.system.formula import read_formula
from jfric.system.joints import JointEquation
from jfric.system.linkage import LINKAGE, Gear, Pin, Rolling, Slider, Weld
from jfric.system.places import OfPlaces, Place, line, place
from jfric.system.polygons import CircleGap, LineGap, LineSliding
from jfric.system.position_functions import AbstractGroup, Instant, OfGroup
from jfric.system.state_function import Held, Rate, bound_to, chosen_velocities, is_rate
from jfric.system.surfaces import moved, placed_in_space
from jfric.system.tree import CROSS, Tree, products, rows, tree_of


class Coinciding(AbstractGroup):
    """Equations of ``c`` pins between links in space, which close loops of a tree: ``a`` and ``b``
    are points of two links that coincide, and both links turn freely::

        a(q) - b(q) = 0        along the axes of the ground

    Directions follow from the twists of the coordinates, and accelerations without those of the
    coordinates from the rates of the links' twists. Equations along directions in which no joint
    moves the points, as across a loop in a plane, are zero and hold nothing.
    """

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


def joint_equations(problem: AbstractProblem) -> list[JointEquation]:
    """The equations of all joints, in order, those on velocities last."""
    found = []
    for label, joint in problem.labelled("joint").items():
        several = len(joint.constraint) > 1
        for i, what in enumerate(joint.constraint, 1):
            name = f"{label}.{i}" if several else label
            unit = "N m" if _only_rotations(problem, what) else "N"
            rubs, bound = joint.law is not None, bound_to(problem, what)
            function = Rate(bound) if is_rate(what) else bound
            found.append(JointEquation(label, name, function, unit, rubs))
    for name, link in problem.section("link").items():
        label = element_label("link", name)
        for i, dof in enumerate(
            [*link.coordinates(name)][:2] if link.radius is not None else (), 1
        ):
            still = Still(problem.axes.index(dof))
            found.append(JointEquation(label, f"{label}.{i}", still, "N"))
    for label, own_rows in quaternions(problem):
        found.append(JointEquation(label, label, UnitQuaternion(own_rows), "N m"))
    if any(map(problem.section, LINKAGE)):
        found += linkage_equations(problem.resolved())
    for own in chosen_velocities(problem) if problem.section("velocity") else ():
        label = element_label("velocity", own.names[0])
        for i, dof in enumerate(own.dofs if own.holds else ()):
            unit = "N m" if problem.dofs[dof] == "rotation" else "N"
            found.append(JointEquation(label, f"velocity.{dof}", Rate(Held(own, i)), unit))
    return sorted(found, key=lambda e: e.on_velocities)


class Still(eqx.Module):
    """Equation ``x = 0`` of one coordinate."""

    row: int = eqx.field(static=True)

    def __call__(self, t, q):
        return q[self.row]


class UnitQuaternion(eqx.Module):
    """Equation ``(|x|^2 - 1)/2 = 0`` of the quaternion of a joint."""

    rows: tuple[int, ...] = eqx.field(static=True)

    def __call__(self, t, q):
        x = q[np.asarray(self.rows)]
        return 0.5 * (x @ x - 1.0)


def reaction_units(problem: AbstractProblem) -> dict[str, str]:
    """Units of the reactions of joints, by their names in results, in order."""
    return {e.name: e.unit for e in joint_equations(problem)}


def _only_rotations(problem: AbstractProblem, what: Any) -> bool:
    """Whether a function of positions names only angles, and therefore measures an angle."""
    if not isinstance(what, str):
        return "translation" not in problem.dofs.values()
    chosen = problem.section("velocity")
    kinds = problem.dofs | {f"v.{k}": x for k, x in problem.dofs.items()}
    kinds |= {f"v.{name}": element.kind for name, element in chosen.items()}
    named = read_formula(what).names.values()
    return all(kinds.get(name, "rotation") == "rotation" for name in named)


class Apart(OfPlaces):
    """Component, ``along`` a unit vector, of the vector from the second point to the first."""

    first: Place
    second: Place
    along: Float[Array, 2]

    def __call__(self, t, q):
        return self.along @ (self.first.position(q) - self.second.position(q))


class Turned(OfPlaces):
    """The sum ``r_a phi_a + r_b phi_b``."""

    first: Place
    second: Place
    radii: tuple[Any, Any]

    def __call__(self, t, q):
        return self.radii[0] * self.first.angle(q) + self.radii[1] * self.second.angle(q)


class SinceStart(OfPlaces):
    """Change of a displacement since the start, known up to multiples of a ``period``, if given."""

    displacement: OfPlaces
    start: Scalar
    period: Scalar = None

    def __call__(self, t, q):
        way = self.displacement(t, q) - self.start
        if self.period is None:
            return way
        return way - self.period * jnp.round(way / self.period)


class Rolled(OfPlaces):
    """Slip of two touching circles, ``r phi_A + s R phi_B - (r + s R) theta`` with the angle
    ``theta`` of the line of centres, up to its period; ``s`` is -1 for one inside the other."""

    of: CircleGap

    @property
    def radii(self) -> tuple[Any, Any]:
        """Radii ``r`` and ``s R``."""
        return self.of.radius, -self.of.other if self.of.inside else self.of.other

    @property
    def period(self):
        """Change of the slip by a whole turn of the line of centres, apart from the sign."""
        return 2.0 * jnp.pi * (self.radii[0] + self.radii[1])

    def __call__(self, t, q):
        r, R = self.radii
        way = self.of.point.position(q) - self.of.circle.position(q)
        turned = r * self.of.point.angle(q) + R * self.of.circle.angle(q)
        return turned - (r + R) * jnp.arctan2(way[1], way[0])


def linkage_equations(problem: AbstractProblem) -> list[JointEquation]:
    """Equations of all joints between bodies of a resolved problem."""
    found = []
    t, q, _ = problem.start()
    between_links, group = coinciding(problem)
    for label, joint in problem.labelled(*LINKAGE).items():
        if group is not None and label in between_links:
            first = 3 * between_links.index(label)
            own = {c: (OfGroup(group, first + i), "N") for i, c in enumerate("xyz")}
            equations: dict[str, tuple[Callable, str]] = dict(own)
        else:
            equations = _equations(problem, joint, t, q)
        for name, (function, unit) in equations.items():
            own = f"{label}.{name}" if len(equations) > 1 else label
            rubs = name == "normal" and getattr(joint, "law", None) is not None
            found.append(JointEquation(label, own, function, unit, rubs))
    return found


def _equations(problem: AbstractProblem, joint: Any, t, q) -> dict[str, tuple[Callable, str]]:
    """Functions of one joint, and units of their reactions, by the names of these."""

    def held(displacement: OfPlaces, period: Any = None) -> SinceStart:
        return SinceStart(displacement, displacement(t, q), period)

    zero, one = jnp.zeros(()), jnp.ones(())
    found: dict[str, tuple[Callable, str]] = {}
    if isinstance(joint, Pin | Weld):
        first, second = (place(problem, x) for x in joint.points)
        found = {c: (Apart(first, second, e), "N") for c, e in zip("xy", jnp.eye(2), strict=True)}
        if isinstance(joint, Weld):
            found["torque"] = held(Turned(first, second, (one, -one))), "N m"
    elif isinstance(joint, Slider):
        point, along = place(problem, joint.point), line(problem, joint.line)
        found["normal"] = LineGap(point, along, zero, zero), "N"
        if not joint.turns:
            found["torque"] = held(Turned(point, along.through, (one, -one))), "N m"
    elif isinstance(joint, Gear):
        first, second = (place(problem, x) for x in joint.bodies)
        found["teeth"] = held(Turned(first, second, joint.radii)), "N"
    elif isinstance(joint, Rolling):
        point = place(problem, joint.point)
        if joint.line is not None:
            along = line(problem, joint.line)
            found["normal"] = LineGap(point, along, joint.radius, zero), "N"
            found["tangent"] = held(LineSliding(point, along, joint.radius)), "N"
        else:
            circle = place(problem, joint.circle)  # type: ignore[arg-type]
            other = zero if joint.circle_radius is None else joint.circle_radius
            gap = CircleGap(point, circle, joint.radius, other, zero, joint.inside)
            rolled = Rolled(gap)
            found["normal"] = gap, "N"
            found["tangent"] = held(rolled, rolled.period), "N"
    return found
