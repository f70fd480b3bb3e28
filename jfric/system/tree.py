"""Equations of motion of a tree of rigid bodies in space, as an array program.

Joint ``j`` moves the body that it belongs to, and all behind it: with the twist ``S_j`` of the
joint, as the velocity of the point at the origin and the angular velocity in fixed axes, the twist
of body ``i`` is the sum over the joints on its way to the ground::

    V_i = sum_j A_ij S_j v_j,    dV_i/dt = sum_j A_ij (S_j dv_j/dt + V_j x S_j v_j)

The momentum of a body needs its inertia ``I_i`` about the origin, so that the mass matrix has the
composite inertias of all bodies behind the later joint of each pair, and the forces without
accelerations follow from Newton's and Euler's equations::

    M_jk = S_j^T (sum_i A_ik I_i) S_k,    tau_j = S_j^T sum_i A_ij (I_i dV_i/dt + V_i x* I_i V_i)

Nothing here runs along the tree except for the positions, which take as many rounds as the longest
way has powers of two. Source: R. Featherstone, Rigid body dynamics algorithms (2008).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jfric.numerics.choice import select
from jfric.system.body import GROUND, in_order
from jfric.system.description import AbstractProblem
from jfric.system.varying import AbstractEnergies

#: Vector products as a form: ``sum_i x_i CROSS[i] y`` is the product of ``x`` and ``y``.
CROSS = np.zeros((3, 3, 3))
for _i, _j, _k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
    CROSS[_i, _k, _j], CROSS[_i, _j, _k] = 1.0, -1.0
#: The rate of a twist that is carried along by another, likewise.
TWISTS = np.zeros((6, 6, 6))
TWISTS[:3, :3, :3] = TWISTS[:3, 3:, 3:] = TWISTS[3:, 3:, :3] = CROSS
#: Axes turned by a unit quaternion, a quadratic form in it.
TURNS = np.zeros((4, 4, 3, 3))
for _i in range(3):
    _a, _b, _c = _i + 1, (_i + 1) % 3 + 1, (_i + 2) % 3 + 1
    TURNS[0, 0, _i, _i] = TURNS[_a, _a, _i, _i] = 1.0
    TURNS[_b, _b, _i, _i] = TURNS[_c, _c, _i, _i] = -1.0
    TURNS[_a, _b, _i, _b - 1] = TURNS[_a, _b, _b - 1, _i] = 2.0
    TURNS[0, _c, _b - 1, _i], TURNS[0, _c, _i, _b - 1] = 2.0, -2.0
#: Angular velocity along the turned axes for the rate of each component of a quaternion, linear in
#: its components.
SPINS = 2.0 * np.array(
    [
        [[0, 0, 0], [-1, 0, 0], [0, -1, 0], [0, 0, -1]],
        [[1, 0, 0], [0, 0, 0], [0, 0, 1], [0, -1, 0]],
        [[0, 1, 0], [0, 0, -1], [0, 0, 0], [1, 0, 0]],
        [[0, 0, 1], [0, 1, 0], [-1, 0, 0], [0, 0, 0]],
    ]
)


class Positions(NamedTuple):
    """Bodies ``k`` and at last the ground, at one position: their frames, places near them, and
    the twists of the coordinates about these; matrices that carry forces there."""

    frames: Float[Array, "k+1 4 4"]
    about: Float[Array, "k+1 3"]
    twists: Float[Array, "n 6"]
    carrying: Float[Array, "k 6 6"]


class Motion(NamedTuple):
    """Twists of bodies ``k`` and at last of the ground along fixed axes, and their rates without
    accelerations of the coordinates."""

    twist: Float[Array, "k+1 6"]
    rate: Float[Array, "k+1 6"]


class Tree(AbstractEnergies):
    """Bodies ``k`` that move, in the order from the ground, and the ``n`` coordinates of their
    joints. Frames are matrices of four rows; twists and forces have their angular part first."""

    #: Frame of each body in that of the one before, with its joint at zero, and its changes with
    #: the sine of the angle, with one less the cosine, and with the displacement.
    home: Float[Array, "k 4 4"]
    changes: Float[Array, "k 3 4 4"]
    #: Twist of each coordinate in the frame of its body, its halves exchanged.
    twist: Float[Array, "n 6"]
    #: Inertia of each body about the origin of its frame; its mass and its first moment.
    inertia: Float[Array, "k 6 6"]
    moment: Float[Array, "k 4"]
    #: Inertia of the drive of each coordinate.
    armature: Float[Array, " n"]
    gravity: Float[Array, " 3"]
    #: Frames of all links in those of their bodies.
    inside: Float[Array, "l 4 4"]
    #: The body before each, -1 for the ground, and the kind of its joint.
    parents: tuple[int, ...] = eqx.field(static=True)
    kinds: tuple[str, ...] = eqx.field(static=True)
    #: Coordinates of each joint among those of the system.
    dofs: tuple[tuple[int, ...], ...] = eqx.field(static=True)
    #: Names of all links, each with its body, -1 for the ground.
    names: tuple[tuple[str, int], ...] = eqx.field(static=True)

    @property
    def links(self) -> dict[str, tuple[int, Float[Array, "4 4"]]]:
        """Body of each link, and the link's frame in that of the body."""
        return {name: (body, self.inside[i]) for i, (name, body) in enumerate(self.names)}

    @property
    def columns(self) -> np.ndarray:
        """Coordinates (n,) of all joints among those of the system."""
        return np.asarray([i for own in self.dofs for i in own], int)

    @property
    def owners(self) -> np.ndarray:
        """The body of each of these."""
        return np.asarray([b for b, own in enumerate(self.dofs) for _ in own], int)

    @property
    def behind(self) -> np.ndarray:
        """Whether each body, and at last the ground, (k+1) is moved by each coordinate (n)."""
        count = len(self.parents)
        found = np.eye(count + 1, count, dtype=bool)
        for i, parent in enumerate(self.parents):
            if parent >= 0:
                found[i] |= found[parent]
        return found[:, self.owners]

    @property
    def roots(self) -> np.ndarray:
        """The first body on the way from the ground to each."""
        found = np.arange(len(self.parents))
        for i, parent in enumerate(self.parents):
            found[i] = i if parent < 0 else found[parent]
        return found

    @property
    def balls(self) -> np.ndarray:
        """Bodies with a quaternion."""
        return np.flatnonzero([kind == "ball" for kind in self.kinds])

    @property
    def quaternions(self) -> np.ndarray:
        """Coordinates (b, 4) of these."""
        return np.asarray([self.dofs[b] for b in self.balls], int)

    def frames(self, q: Float[Array, " all"]) -> Float[Array, "k 4 4"]:
        """Frames of all bodies in that of the ground."""
        return self.grounded(q)[:-1]

    def grounded(self, q: Float[Array, " all"]) -> Float[Array, "k+1 4 4"]:
        """Frames of all bodies, and at last that of the ground itself."""
        x = rows(q, np.asarray([own[0] for own in self.dofs]))
        turns, slides = (
            jnp.asarray([kind == own for kind in self.kinds], q.dtype)
            for own in ("revolute", "prismatic")
        )
        share = jnp.stack([turns * jnp.sin(x), turns * (1.0 - jnp.cos(x)), slides * x], axis=1)
        H = self.home + jnp.einsum("kc,kcij->kij", share, self.changes)
        if self.balls.size:
            own = rows(q, self.quaternions)
            R = jnp.einsum("ba,bc,acij->bij", own, own, jnp.asarray(TURNS, q.dtype))
            H = H.at[self.balls].set(rows(H, self.balls) @ _framed(R, jnp.zeros_like(R[:, 0])))
        # Each round doubles the way that a row has gone towards the ground, the last row.
        ground = len(self.parents)
        to = np.asarray([ground if x < 0 else x for x in self.parents] + [ground])
        H = jnp.concatenate([H, jnp.eye(4, dtype=H.dtype)[None]])
        while np.any(to != ground):
            H, to = rows(H, to) @ H, to[to]
        return H

    def positions(self, q: Float[Array, " all"]) -> Positions:
        """Twists are about the origin of the first body of each tree, where no digits are lost."""
        frames = self.grounded(q)
        about = rows(frames[:, :3, 3], np.append(self.roots, len(self.parents)))
        X = carrying(frames[:-1], about[:-1])
        return Positions(frames, about, self._twists(q, X), X)

    def motion(self, here: Positions, v: Float[Array, " all"]) -> Motion:
        """Motion with the rates ``v`` of all coordinates."""
        S = here.twists
        behind, own = (jnp.asarray(x, S.dtype) for x in (self.behind, self.behind[self.owners]))
        moving = S * rows(v, self.columns)[:, None]
        carried = jnp.einsum("nij,nj->ni", products(own @ moving, TWISTS), moving)
        return Motion(behind @ moving, behind @ carried)

    def _twists(self, q, X: Float[Array, "k 6 6"]) -> Float[Array, "n 6"]:
        twist = self.twist
        if self.balls.size:
            spin = jnp.einsum(
                "rcw,bc->brw", jnp.asarray(SPINS, q.dtype), rows(q, self.quaternions)
            ).reshape(-1, 3)
            twist = twist.at[np.isin(self.owners, self.balls).nonzero()[0], 3:].set(spin)
        S = jnp.einsum("nij,nj->ni", rows(X, self.owners), twist)
        return jnp.concatenate([S[:, 3:], S[:, :3]], axis=1)

    def mass(self, t, q) -> Float[Array, "all all"]:
        """Mass matrix; quaternions have a mass along their norm, which never moves."""
        here, behind = self.positions(q), self.behind[:-1]
        S, inertia = here.twists, self._inertia(here)
        composite = jnp.asarray(behind.T, S.dtype) @ inertia.reshape(-1, 36)
        G = S @ jnp.einsum("nij,nj->ni", composite.reshape(-1, 6, 6), S).T
        later = behind[self.owners]  # the first coordinate is not before the second
        M = select(later.T, G, select(later, G.T, 0.0)) + jnp.diag(self.armature)
        if self.balls.size:
            x = select(np.isin(self.owners, self.balls), rows(q, self.columns), 0.0)
            size = jnp.trace(self.inertia, axis1=1, axis2=2)
            same = self.owners[:, None] == self.owners
            M = M + select(same, jnp.outer(rows(size, self.owners) * x, x), 0.0)
        if np.array_equal(self.columns, np.arange(q.shape[0])):
            return M
        none = jnp.zeros((q.shape[0],) * 2, M.dtype)
        return none.at[np.ix_(self.columns, self.columns)].set(M)

    def _inertia(self, here: Positions) -> Float[Array, "k 6 6"]:
        X = here.carrying
        return X @ self.inertia @ jnp.swapaxes(X, 1, 2)

    def parts(self, t, q, v) -> list[Float[Array, " all"]]:
        here = self.positions(q)
        inertia, (V, A) = self._inertia(here), (x[:-1] for x in self.motion(here, v))
        momentum = jnp.einsum("kij,kj->ki", inertia, V)
        # Twists and momenta are carried along by transposed matrices.
        F = jnp.einsum("kij,kj->ki", inertia, A)
        F = F - jnp.einsum("kji,kj->ki", products(V, TWISTS), momentum)
        weight = inertia[:, :, 3:] @ self.gravity
        behind = jnp.asarray(self.behind[:-1].T, F.dtype)
        terms = [jnp.sum(here.twists * (behind @ x), axis=1) for x in (-F, weight)]
        if np.array_equal(self.columns, np.arange(q.shape[0])):
            return terms
        return [jnp.zeros_like(q).at[self.columns].set(x) for x in terms]

    def total(self, t, q, v) -> Float[Array, ""]:
        """Kinetic and potential energy."""
        moments = jnp.einsum("kij,kj->i", self.frames(q), self.moment)
        return 0.5 * v @ self.mass(t, q) @ v - moments[:3] @ self.gravity

    def has_constant_mass(self) -> bool:
        return False

    def has_linear_force(self) -> bool:
        return False


def rows(x: Array, at: np.ndarray) -> Array:
    """Rows ``at`` of an array, which has them."""
    if np.array_equal(at, np.arange(x.shape[0])):
        return x
    return x.at[at].get(mode="promise_in_bounds")


def products(x: Float[Array, "k m"], form: np.ndarray) -> Float[Array, "k m m"]:
    """Matrices of the products with the rows of ``x``."""
    m = form.shape[0]
    return (x @ jnp.asarray(form.reshape(m, m * m), x.dtype)).reshape(-1, m, m)


def _framed(R: Float[Array, "k 3 3"], p: Float[Array, "k 3"]) -> Float[Array, "k 4 4"]:
    """Frames with the axes ``R`` and the origins ``p``."""
    below = jnp.broadcast_to(jnp.array([0.0, 0.0, 0.0, 1.0], R.dtype), (R.shape[0], 1, 4))
    return jnp.concatenate([jnp.concatenate([R, p[:, :, None]], axis=2), below], axis=1)


def carrying(frames: Float[Array, "k 4 4"], to: Float[Array, "k 3"]) -> Float[Array, "k 6 6"]:
    """Matrices that carry forces about the origins of ``frames``, and twists with exchanged halves,
    to fixed axes and the places ``to``."""
    R = frames[:, :3, :3]
    moved = products(frames[:, :3, 3] - to, CROSS) @ R
    upper = jnp.concatenate([R, moved], axis=2)
    return jnp.concatenate([upper, jnp.pad(R, ((0, 0), (0, 0), (3, 0)))], axis=1)


class _Bodies:
    """Links as bodies that move, those fixed to each other as one: structure, and frames of the
    links in those of the bodies."""

    def __init__(self, problem: AbstractProblem, order: list[str], frames: Array) -> None:
        links, unit = problem.section("link"), np.eye(4)
        self.parents: list[int] = []
        self.kinds: list[str] = []
        self.dofs: list[tuple[int, ...]] = []
        #: Frame of each body in that of the one before, and its axis: that of a link, the first
        #: or second across it, or a constant.
        self.home: list[Any] = []
        self.axes: list[int | tuple[int, int] | np.ndarray] = []
        #: For each link its body, and its frame in that of the body.
        self.body: dict[str, int] = {GROUND: -1}
        self.inside: dict[str, Any] = {GROUND: unit}
        for i, name in enumerate(order):
            link = links[name]
            self.body[name] = self.body[link.parent]
            self.inside[name] = self.inside[link.parent] @ frames[i]
            own = tuple(problem.axes.index(dof) for dof in link.coordinates(name))
            if link.joint == "free":
                for k in range(3):
                    self._carry(name, "prismatic", own[k : k + 1], unit[k, :3])
            if link.radius is not None:
                for k in range(2):
                    self._carry(name, "prismatic", own[k : k + 1], (i, k))
                own = own[2:]
            if link.joint != "fixed":
                kind = "ball" if link.joint == "free" else link.joint
                self._carry(name, kind, own[-4:], i)

    def _carry(self, name: str, kind: str, dofs: tuple[int, ...], axis) -> None:
        self.parents.append(self.body[name])
        self.home.append(self.inside[name])
        self.kinds.append(kind)
        self.dofs.append(dofs)
        self.axes.append(axis)
        self.body[name], self.inside[name] = len(self.kinds) - 1, np.eye(4)


def tree_of(problem: AbstractProblem) -> Tree:
    """The tree of all links of a resolved ``problem``. A free body slides along three axes without
    mass, and turns on a ball."""
    links, g = problem.section("link"), jnp.zeros((3,))
    for gravity in problem.section("gravity").values():
        g = g.at[2].add(-gravity.g)
    order = in_order(links)
    at, rpy, axis, m, com, J = (
        _stacked([getattr(links[x], field) for x in order])
        for field in ("at", "rpy", "axis", "m", "com", "J")
    )
    bodies = _Bodies(problem, order, _framed(_turned(rpy), at))
    axis = axis / jnp.linalg.norm(axis, axis=1, keepdims=True)
    across = jnp.cross(axis, jnp.eye(3)[jnp.argmin(jnp.abs(axis), axis=1)])
    across = across / jnp.linalg.norm(across, axis=1, keepdims=True)
    pairs = jnp.stack([across, jnp.cross(axis, across)], axis=1)
    chosen = {int: lambda x: axis[x], tuple: lambda x: pairs[x]}
    axis = jnp.stack([chosen.get(type(x), jnp.asarray)(x) for x in bodies.axes])
    home = jnp.stack([jnp.asarray(x) for x in bodies.home])
    K = _framed(products(axis, CROSS), jnp.zeros_like(axis)).at[:, 3, 3].set(0.0)
    along = _framed(jnp.zeros_like(K[:, :3, :3]), axis).at[:, 3, 3].set(0.0)
    still = np.asarray([kind != "prismatic" for kind in bodies.kinds])[:, None]
    twist = jnp.concatenate([select(still, 0.0, axis), select(still, axis, 0.0)], axis=1)
    owners = np.asarray([b for b, own in enumerate(bodies.dofs) for _ in own])
    inside = jnp.stack([jnp.asarray(bodies.inside[x]) for x in order])
    inertia, first = _inertias(inside, m, com, J)
    of_body = [[float(bodies.body[x] == b) for x in order] for b in range(len(bodies.kinds))]
    sums = jnp.asarray(of_body, m.dtype)
    armature = []
    for x in order:
        own = links[x].coordinates(x)
        still = 2 if links[x].radius is not None else 0
        armature += [0.0] * still + [links[x].armature] * (len(own) - still)
    return Tree(
        home=home,
        changes=jnp.stack([home @ K, home @ K @ K, home @ along], axis=1),
        twist=twist[owners],
        inertia=jnp.einsum("bl,lij->bij", sums, inertia),
        moment=sums @ first,
        armature=_stacked(armature),
        gravity=g,
        parents=tuple(bodies.parents),
        kinds=tuple(bodies.kinds),
        dofs=tuple(bodies.dofs),
        inside=inside,
        names=tuple((name, bodies.body[name]) for name in order),
    )


def _inertias(frames: Float[Array, "l 4 4"], m, com, J) -> tuple[Array, Array]:
    """Inertias (l, 6, 6) of links about the origins of their bodies, and first moments (l, 4), by
    the frames of the links in those of the bodies."""
    moment, K_com = m[:, None] * com, products(com, CROSS)
    K_moment, mass = m[:, None, None] * K_com, m[:, None, None] * jnp.eye(3)
    full = J[:, np.array([[0, 3, 4], [3, 1, 5], [4, 5, 2]])]
    upper = jnp.concatenate([full - K_moment @ K_com, K_moment], axis=2)
    own = jnp.concatenate([upper, jnp.concatenate([-K_moment, mass], axis=2)], axis=1)
    X = carrying(frames, jnp.zeros_like(com))
    first = jnp.einsum("kij,kj->ki", frames, jnp.append(moment, m[:, None], axis=1))
    return X @ own @ jnp.swapaxes(X, 1, 2), first


def _stacked(rows: list[Any]) -> Array:
    """Numbers, or rows of numbers, as one array."""
    found = [
        jnp.asarray(x, float) for row in rows for x in (row if isinstance(row, tuple) else (row,))
    ]
    stacked = jnp.stack(found)
    return stacked.reshape(len(rows), -1) if isinstance(rows[0], tuple) else stacked


def _turned(rpy: Float[Array, "k 3"]) -> Float[Array, "k 3 3"]:
    """Axes turned about x, then y, then z."""
    (cx, cy, cz), (sx, sy, sz) = jnp.cos(rpy).T, jnp.sin(rpy).T
    rows = (
        *(cz * cy, cz * sy * sx - sz * cx, cz * sy * cx + sz * sx),
        *(sz * cy, sz * sy * sx + cz * cx, sz * sy * cx - cz * sx),
        *(-sy, cy * sx, cy * cx),
    )
    return jnp.stack(rows, axis=1).reshape(-1, 3, 3)
