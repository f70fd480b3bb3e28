"""Random trees of bodies with friction in all joints, beside an independent simulation.

The reference takes mass matrix, bias and Jacobians from MuJoCo, integrates each mode by SciPy's
DOP853, and locates zeros of velocities, limits of holding torques, ends of joints and signs of
torques in gears. Modes are those of all combinations that agree with the motion that they cause, a
little later. Each structure is simulated with several sets of numbers, each also mirrored and in
millimetres and grams; where asked, once more with its links in another order.

    python experiments/judge_robots.py --structures 30 --numbers 10 --seed 1 [--renumber]
"""

from __future__ import annotations

import argparse
import itertools
import time
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
from scipy.integrate import solve_ivp
from scipy.optimize import brentq
from scipy.spatial.transform import Rotation

import jfric

END, LIMIT = 1.0, 1e-7
#: Instants at which loads jump [s].
BREAKS = (0.25, 0.6)
OUTPUTS = np.linspace(0.0, END, 6)
#: Time after which modes are judged [s], and velocities that count as zero.
LATER, STILL = 1e-7, 1e-9
#: Velocities of impacts without restitution.
SMALL = 2e-5
#: Kinds of joints with a quaternion in MuJoCo.
FREE, BALL = int(mujoco.mjtJoint.mjJNT_FREE), int(mujoco.mjtJoint.mjJNT_BALL)
#: Units of length and mass for the third run of each set.
UNITS = (1e3, 1e-3)


class Structure(NamedTuple):
    """Kinds of the joints of one tree, and what acts in them."""

    parents: tuple[int, ...]
    kinds: tuple[str, ...]
    #: Whether each joint has friction, with a peak at rest, a gear with losses, and ends.
    rubs: np.ndarray
    peaks: np.ndarray
    gears: np.ndarray
    ends: np.ndarray
    #: Whether the last link is pinned to the ground.
    loop: bool

    @property
    def scalar(self) -> np.ndarray:
        """Whether each joint has one coordinate."""
        return np.isin(self.kinds, ("revolute", "prismatic"))


class Numbers(NamedTuple):
    """Numbers of all links of one tree."""

    at: np.ndarray
    rpy: np.ndarray
    axis: np.ndarray
    m: np.ndarray
    com: np.ndarray
    J: np.ndarray
    armature: np.ndarray
    damping: np.ndarray
    limit: np.ndarray
    #: Limit at rest by that in sliding.
    peak: np.ndarray
    #: Inertia of the rotor, ratio, and part of the torque that is lost.
    rotor: np.ndarray
    ratio: np.ndarray
    loss: np.ndarray
    #: Lower and upper end, and coefficient of restitution.
    low: np.ndarray
    high: np.ndarray
    e: np.ndarray
    #: Loads by instants.
    loads: np.ndarray
    q: np.ndarray
    v: np.ndarray
    #: Orientation and angular velocity of joints with a quaternion.
    turn: np.ndarray
    spin: np.ndarray
    point: np.ndarray
    anchor: np.ndarray
    g: float


def structure(random: np.random.Generator) -> Structure:
    """A random structure: branches, all kinds of joints, and one of gears, ends or a loop."""
    flavour = str(random.choice(["plain", "gears", "ends", "loop"]))
    if flavour == "loop":
        kinds = ["revolute", "revolute", "revolute", "revolute"]
        kinds[int(random.integers(1, 4))] = "ball"
        extra = int(random.integers(0, 3))
        kinds = [*(["revolute"] * extra), *kinds]
        parents = [-1, *range(len(kinds) - 1)]
        rubs = np.zeros(len(kinds), bool)
        rubs[0] = True
        none = np.zeros(len(kinds), bool)
        return Structure(tuple(parents), tuple(kinds), rubs, rubs & (random.random() < 0.3),
                         none, rubs & (random.random() < 0.5), True)  # fmt: skip
    n = int(random.integers(2, 8))
    parents = [-1, *(int(random.integers(-1 if i > 3 else 0, i)) for i in range(1, n))]
    chances = [0.6, 0.2, 0.1, 0.1]
    kinds = [
        str(random.choice(["revolute", "prismatic", "fixed", "ball"], p=chances)) for _ in range(n)
    ]
    if random.random() < 0.15:
        kinds[0] = "free"
    if not any(k in ("revolute", "prismatic") for k in kinds):
        kinds[-1] = "revolute"
    scalar = np.isin(kinds, ("revolute", "prismatic"))
    rubs = scalar & (random.random(n) < 0.9)
    some = random.random((3, n))
    some[2, random.permutation(n)[2:]] = 1.0  # ends of two joints at most
    return Structure(
        tuple(parents),
        tuple(kinds),
        rubs,
        rubs & (some[0] < (0.25 if flavour == "plain" else 0.0)),
        rubs & (some[1] < (0.5 if flavour == "gears" else 0.0)),
        scalar & (some[2] < (0.6 if flavour == "ends" else 0.0)),
        False,
    )


def numbers(random: np.random.Generator, s: Structure) -> Numbers:
    """Random numbers, inertias of real bodies included."""
    n, scalar = len(s.kinds), s.scalar
    shape = Rotation.random(n, random_state=random).as_matrix()
    masses = random.uniform(0.1, 1.0, (n, 3))  # of points along three axes
    sizes = masses * random.uniform(0.05, 0.3, (n, 3)) ** 2
    principal = sizes.sum(axis=1, keepdims=True) - sizes
    rest = (random.random(n) < 0.5) | s.loop
    free = np.array([kind == "free" for kind in s.kinds])
    q = random.uniform(-1.0, 1.0, n)
    found = Numbers(
        at=np.where(free[:, None], 0.0, random.uniform(-0.5, 0.5, (n, 3))),
        rpy=np.where(free[:, None], 0.0, random.uniform(-3.0, 3.0, (n, 3))),
        axis=random.normal(size=(n, 3)),
        m=random.uniform(0.3, 3.0, n),
        com=random.uniform(-0.3, 0.3, (n, 3)),
        J=np.einsum("nij,nj,nkj->nik", shape, principal, shape),
        armature=np.where(random.random(n) < 0.5, random.uniform(0.0, 0.3, n), 0.0) * scalar,
        damping=np.where(random.random(n) < 0.3, random.uniform(0.0, 0.5, n), 0.0) * scalar,
        limit=random.uniform(0.2, 6.0, n),
        peak=random.uniform(1.05, 1.5, n),
        rotor=random.uniform(0.01, 0.3, n),
        ratio=random.uniform(1.0, 3.0, n),
        loss=random.uniform(0.02, 0.25, n),
        low=q - np.where(random.random(n) < 0.2, 0.0, random.uniform(0.0, 0.5, n)),
        high=q + random.uniform(0.05, 0.5, n),
        e=np.where(random.random(n) < 0.4, 0.0, random.uniform(0.1, 0.5, n)),
        loads=random.uniform(-6.0, 6.0, (n, 3)),
        q=q,
        v=np.where(rest, 0.0, random.uniform(-3.0, 3.0, n)),
        turn=Rotation.random(n, random_state=random).as_quat(scalar_first=True),
        spin=np.where(s.loop, 0.0, random.uniform(-3.0, 3.0, (n, 3))),
        point=random.uniform(-0.4, 0.4, 3),
        anchor=np.zeros(3),
        g=9.81,
    )
    # A joint that begins at its end moves away from it, or rests there.
    found = found._replace(v=np.where(s.ends & (found.low == q), np.abs(found.v), found.v))
    if s.loop:
        data = mujoco.MjData(model(s, found))
        set_state(data, s, found)
        mujoco.mj_kinematics(data.model, data)
        body = data.body(f"l{n - 1}")
        found = found._replace(anchor=body.xpos + body.xmat.reshape(3, 3) @ found.point)
    return found


def mirrored(s: Structure, x: Numbers) -> Numbers:
    """The same tree in a mirror across x = 0, with equal coordinates of revolute and prismatic
    joints."""
    P = np.array([-1.0, 1.0, 1.0])
    slides = np.array([kind == "prismatic" for kind in s.kinds])[:, None]
    return x._replace(
        at=x.at * P,
        rpy=x.rpy * -P,
        axis=np.where(slides, x.axis * P, -x.axis * P),
        com=x.com * P,
        J=x.J * np.outer(P, P),
        turn=x.turn * np.append(1.0, -P),
        spin=x.spin * -P,
        point=x.point * P,
        anchor=x.anchor * P,
    )


def in_units(s: Structure, x: Numbers, length: float, mass: float) -> Numbers:
    """The same tree in other units."""
    slides = np.array([kind == "prismatic" for kind in s.kinds])
    way = np.where(slides, length, 1.0)
    inertia = mass * (length / way) ** 2
    force = inertia * way
    return x._replace(
        at=x.at * length,
        com=x.com * length,
        point=x.point * length,
        anchor=x.anchor * length,
        m=x.m * mass,
        J=x.J * mass * length**2,
        armature=x.armature * inertia,
        rotor=x.rotor * inertia,
        damping=x.damping * inertia,
        limit=x.limit * force,
        loads=x.loads * force[:, None],
        low=x.low * way,
        high=x.high * way,
        q=x.q * way,
        v=x.v * way,
        g=x.g * length,
    )


def back(s: Structure, way: float, mirror: bool) -> np.ndarray:
    """Factors on coordinates that undo both changes."""
    P, found = (-1.0 if mirror else 1.0), []
    for kind in s.kinds:
        if kind == "free":
            found += [P / way, 1.0 / way, 1.0 / way]
        if kind in ("ball", "free"):
            found += [1.0, 1.0, P, P]
        if kind in ("revolute", "prismatic"):
            found.append(1.0 / way if kind == "prismatic" else 1.0)
    return np.array(found)


def problem(s: Structure, x: Numbers, order: list[int]) -> jfric.Problem:
    """The tree with all that acts in its joints; ``order``: of its links."""
    six = [[0, 0], [1, 1], [2, 2], [0, 1], [0, 2], [1, 2]]
    parts: dict[str, dict[str, Any]] = {}
    initial, dofs = {}, {}

    def add(section: str, name: str, element) -> None:
        parts.setdefault(section, {})[name] = element

    for i in order:
        name, kind = f"l{i}", s.kinds[i]
        points = {"end": tuple(x.point)} if s.loop and i == len(s.kinds) - 1 else {}
        add("link", name, jfric.Link(
            kind,  # type: ignore[arg-type]
            parent="ground" if s.parents[i] < 0 else f"l{s.parents[i]}",
            at=tuple(x.at[i]), rpy=tuple(x.rpy[i]), axis=tuple(x.axis[i]), m=x.m[i],
            com=tuple(x.com[i]), J=tuple(x.J[i][a, b] for a, b in six), armature=x.armature[i],
            points=points,
        ))  # fmt: skip
        if kind in ("ball", "free"):
            w, (qw, qv) = x.spin[i], (x.turn[i][0], x.turn[i][1:])
            rates = 0.5 * np.append(-qv @ w, qw * w + np.cross(qv, w))
            for k, c in enumerate("wxyz"):
                initial[f"{name}_q{c}"] = jfric.InitialState(x.turn[i][k], rates[k])
        if not s.scalar[i]:
            continue
        initial[name] = jfric.InitialState(x.q[i], x.v[i])
        add("damper", name, jfric.Damper(name, x.damping[i]))
        drive = name
        if s.gears[i]:
            drive = f"r{i}"
            dofs[drive] = "rotation" if kind == "revolute" else "translation"
            initial[drive] = jfric.InitialState(x.ratio[i] * x.q[i], x.ratio[i] * x.v[i])
            add("mass", drive, jfric.Mass(drive, x.rotor[i]))
            equation = f"{drive} - n{i}*{name}"
            law = jfric.Coulomb(x.loss[i])
            add("joint", name, jfric.Joint(equation, law=law, sliding=drive))
        add("load", name, jfric.Load(drive, jfric.functions.Steps(list(BREAKS), list(x.loads[i]))))
        if s.peaks[i]:
            law = jfric.StaticDynamic(x.peak[i], 1.0)
            add("friction", name, jfric.Friction(drive, law, N=x.limit[i]))
        elif s.rubs[i]:
            add("friction", name, jfric.Friction(drive, limit=x.limit[i]))
        if s.ends[i]:
            add("contact", f"{name}_low", jfric.Contact(name, gap=-x.low[i], e=x.e[i]))
            add("contact", f"{name}_high", jfric.Contact({name: -1.0}, gap=x.high[i], e=x.e[i]))
    if s.loop:
        parts["link"]["stand"] = jfric.Link("fixed", at=tuple(x.anchor))
        parts["pin"] = {"loop": jfric.Pin((f"l{len(s.kinds) - 1}.end", "stand"))}
    ratios = {f"n{i}": x.ratio[i] for i in np.flatnonzero(s.gears)}
    elements = parts | {"gravity": jfric.Gravity(x.g)}
    return jfric.Problem(dofs, elements, initial=initial, time=END, parameters=ratios)


def model(s: Structure, x: Numbers):
    """The same tree in MuJoCo."""
    spec = mujoco.MjSpec()
    spec.option.gravity = (0.0, 0.0, -x.g)
    types = {
        "revolute": mujoco.mjtJoint.mjJNT_HINGE,
        "prismatic": mujoco.mjtJoint.mjJNT_SLIDE,
        "ball": mujoco.mjtJoint.mjJNT_BALL,
        "free": mujoco.mjtJoint.mjJNT_FREE,
    }
    bodies = []
    for i, parent in enumerate(s.parents):
        body = (spec.worldbody if parent < 0 else bodies[parent]).add_body(name=f"l{i}")
        body.pos = x.at[i]
        body.quat = Rotation.from_euler("xyz", x.rpy[i]).as_quat(scalar_first=True)
        if s.kinds[i] != "fixed":
            joint = body.add_joint(name=f"l{i}", axis=x.axis[i], armature=x.armature[i])
            joint.type = types[s.kinds[i]]
        J = x.J[i]
        body.mass, body.ipos, body.explicitinertial = x.m[i], x.com[i], True
        body.fullinertia = (J[0, 0], J[1, 1], J[2, 2], J[0, 1], J[0, 2], J[1, 2])
        bodies.append(body)
    return spec.compile()


def set_state(data, s: Structure, x: Numbers) -> None:
    """The start."""
    for i, kind in enumerate(s.kinds):
        if kind == "fixed":
            continue
        joint = data.joint(f"l{i}")
        if s.scalar[i]:
            joint.qpos[:], joint.qvel[:] = x.q[i], x.v[i]
        else:
            joint.qpos[-4:], joint.qvel[-3:] = x.turn[i], x.spin[i]
            joint.qpos[:-4], joint.qvel[:-3] = 0.0, 0.0


class Mode(NamedTuple):
    """Side of sliding and sign of the torque in the gear of each joint; whether it is at an end,
    and at which."""

    side: tuple[int, ...]
    sign: tuple[int, ...]
    closed: tuple[int, ...]


class Unjudged(Exception):
    """No mode, or several, agree with the motion that they cause."""


class Reference:
    """An event-driven simulation of one tree."""

    def __init__(self, s: Structure, x: Numbers) -> None:
        self.s, self.x = s, x
        self.model = model(s, x)
        self.data = mujoco.MjData(self.model)
        set_state(self.data, s, x)
        self.M = np.zeros((self.model.nv,) * 2)
        #: Links on scalar joints, and their rows among velocities and positions of MuJoCo.
        self.links = np.flatnonzero(s.scalar)
        joints = [self.model.joint(f"l{i}") for i in self.links]
        self.rows = np.array([j.dofadr[0] for j in joints], int)
        self.places = np.array([j.qposadr[0] for j in joints], int)
        self.rubs, self.gears, self.ends = (y[self.links] for y in (s.rubs, s.gears, s.ends))
        self.ratio = np.where(self.gears, x.ratio[self.links], 1.0)
        self.limit = np.where(self.rubs, x.limit[self.links], 0.0)
        self.peak = np.where(s.peaks[self.links], x.peak[self.links], 1.0)
        self.loss = np.where(self.gears, x.loss[self.links], 0.0)
        self.rotor = np.where(self.gears, x.rotor[self.links], 0.0)
        self.low, self.high, self.e, self.damping = (
            y[self.links] for y in (x.low, x.high, x.e, x.damping)
        )

    def loads(self, t: float) -> np.ndarray:
        return self.x.loads[self.links, np.searchsorted(BREAKS, t, side="right")]

    def split(self, y) -> tuple[np.ndarray, np.ndarray]:
        """Velocities and positions of the scalar joints."""
        return y[self.model.nq :][self.rows], y[self.places]

    def equations(self, y):
        """Mass matrix, forces without friction and loads, constraints and their accelerations."""
        m, d = self.model, self.data
        d.qpos[:], d.qvel[:] = y[: m.nq], y[m.nq :]
        mujoco.mj_forward(m, d)
        mujoco.mj_fullM(m, d, self.M)
        f = -d.qfrc_bias.copy()
        f[self.rows] -= self.damping * d.qvel[self.rows]
        J, bias = np.zeros((0, m.nv)), np.zeros(0)
        if self.s.loop:
            body = m.body(f"l{len(self.s.kinds) - 1}").id
            where = d.xpos[body] + d.xmat[body].reshape(3, 3) @ self.x.point
            J, dJ = np.zeros((3, m.nv)), np.zeros((3, m.nv))
            mujoco.mj_jac(m, d, J, None, where, body)
            mujoco.mj_jacDot(m, d, dJ, None, where, body)
            bias = dJ @ d.qvel
        return self.M.copy(), f, J, bias

    def motion(self, mode: Mode, t: float, y):
        """Accelerations, and the margins of all conditions of the mode."""
        M, f, J, bias = self.equations(y)
        loads, (v, q) = self.loads(t), self.split(y)
        side, sign, closed = (np.array(z) for z in mode)
        rests = side == 0
        rests = rests & (self.rubs | (closed != 0))
        # Sliding: reaction R of a gear on its rotor, (1 - side sign loss) R = rotor a - drive.
        gain = np.where(rests, 1.0, 1.0 - side * sign * self.loss)
        drive = loads - np.where(rests, 0.0, side * self.limit)
        full, force = M.copy(), f.copy()
        full[self.rows, self.rows] += np.where(rests, 0.0, self.ratio**2 * self.rotor / gain)
        force[self.rows] += np.where(rests, 0.0, self.ratio * drive / gain)
        held = np.eye(len(f))[self.rows[rests]]
        G, k = np.concatenate([J, held]), len(J) + len(held)
        whole = np.block([[full, -G.T], [G, np.zeros((k, k))]])
        right = np.concatenate([force, -bias, np.zeros(len(held))])
        found = np.linalg.solve(whole, right)
        a, reactions = found[: len(f)], found[len(f) :]
        own = np.zeros(len(side))
        own[rests] = reactions[len(J) :]  # all that acts on the joint
        # At rest: own = ratio (load + friction) of a gear, load + friction + end otherwise.
        tooth = np.where(rests, -own / self.ratio, 0.0)
        tooth = np.where(rests, tooth, (self.ratio * self.rotor * a[self.rows] - drive) / gain)
        friction = own / self.ratio - loads
        most = self.peak * self.limit + self.loss * np.abs(tooth)
        margin = np.full((3, len(side)), np.inf)
        at = closed != 0
        slides = self.rubs | (side != 0)
        margin[0] = np.where(rests, most - np.abs(friction), np.where(slides, side * v, np.inf))
        margin[0] = np.where(rests & at, most - closed * friction, margin[0])
        margin[1] = np.where(self.gears & ~rests, sign * tooth, np.inf)
        open_ = self.ends & ~at
        margin[2] = np.where(open_, np.minimum(q - self.low, self.high - q), np.inf)
        return a, margin

    def derivative(self, y, a):
        """Rate of the state."""
        m = self.model
        v, rates = y[m.nq :], []
        for j in range(m.njnt):
            dof, at, kind = m.jnt_dofadr[j], m.jnt_qposadr[j], int(m.jnt_type[j])
            if kind == FREE:
                rates.append(v[dof : dof + 3])
                dof, at = dof + 3, at + 3
            if kind in (FREE, BALL):
                w, p = v[dof : dof + 3], y[at : at + 4]
                rates.append(0.5 * np.append(-p[1:] @ w, p[0] * w + np.cross(p[1:], w)))
            else:
                rates.append(v[dof : dof + 1])
        return np.concatenate([*rates, a])

    def decide(self, t: float, y, before: Mode | None) -> Mode:
        """The mode that agrees with the motion that it causes, a little later; of several that with
        the fewest changes."""
        v, q = self.split(y)
        choices = []
        for i in range(len(v)):
            at = 0
            if self.ends[i] and abs(v[i]) <= STILL:
                at = -1 if q[i] - self.low[i] < 1e-9 else int(self.high[i] - q[i] < 1e-9)
            signs = (1, -1) if self.gears[i] else (1,)
            sides = [int(np.sign(v[i]))] if abs(v[i]) > STILL else [0, 1, -1]
            if not self.rubs[i] and not at:
                sides = [0]
            own = [(x, y, 0) for x in sides if x for y in signs]
            if 0 in sides:
                own.append((0, 1, at))
            if at:
                own = [(-at, 1, 0), (0, 1, at)]
            choices.append(own)
        found = []
        for several in itertools.product(*choices):
            mode = Mode(*zip(*several, strict=True)) if several else Mode((), (), ())
            rate = self.derivative(y, self.motion(mode, t, y)[0])
            later = y + LATER * rate
            # Accelerations begin with zero where a joint gives way.
            then = self.derivative(later, self.motion(mode, t + LATER, later)[0])
            margin = self.motion(mode, t + LATER, y + 0.5 * LATER * (rate + then))[1]
            margin[0][np.abs(v) > STILL] = np.inf
            margin[2][np.abs(np.minimum(q - self.low, self.high - q)) < 1e-9] = np.inf
            if np.all(margin >= 0.0):
                old = before or Mode(*(tuple(np.zeros(len(v), int)) for _ in "abc"))
                changes = sum(abs(a - b) for a, b in zip(mode.side, old.side, strict=True))
                found.append((changes, mode))
        if not found:
            raise Unjudged(f"no mode at {t}")
        found.sort(key=lambda x: x[0])
        if len(found) > 1 and found[0][0] == found[1][0]:
            raise Unjudged(f"two modes at {t}: {found[:2]}")
        return found[0][1]

    def impact(self, y, i: int, side: int):
        """Velocities after joint ``i`` hits its end at ``side`` (-1 the lower one)."""
        M, _, J, _ = self.equations(y)
        M[self.rows, self.rows] += self.ratio**2 * self.rotor
        v, q = self.split(y)
        near = np.where(q - self.low < 1e-9, -1, np.where(self.high - q < 1e-9, 1, 0)) * self.ends
        near[i] = side
        touching = [k for k in np.flatnonzero(near) if k == i or abs(v[k]) <= STILL]
        for others in itertools.product(*[[True] if k == i else [True, False] for k in touching]):
            on = [k for k, x in zip(touching, others, strict=True) if x]
            G = np.concatenate([J, np.eye(len(y) - self.model.nq)[self.rows[on]]])
            # The rest of ever smaller impacts together is one without restitution.
            jump = np.array([-v[k] * (1.0 + self.e[k] * (abs(v[k]) > SMALL)) for k in on])
            right = np.concatenate([np.zeros(len(J)), jump])
            X = np.linalg.solve(M, G.T)
            impulse = np.linalg.solve(G @ X, right)
            after = y[self.model.nq :] + X @ impulse
            pushes = all(-near[k] * p >= 0 for k, p in zip(on, impulse[len(J) :], strict=True))
            off = [k for k in touching if k not in on]
            if pushes and all(-near[k] * after[self.rows[k]] >= -1e-14 for k in off):
                for k in on:
                    if k != i or abs(v[k]) <= SMALL or not self.e[k]:
                        after[self.rows[k]] = 0.0
                return np.concatenate([y[: self.model.nq], after])
        raise Unjudged("no impact")

    def run(self) -> tuple[np.ndarray, int]:
        """Coordinates at the outputs in the order of the links, and the number of changes."""
        t, y = 0.0, np.concatenate([self.data.qpos, self.data.qvel])
        nq = self.model.nq
        found, changes, todo = [y[:nq]], 0, list(OUTPUTS[1:])
        mode = self.decide(t, y, None)
        flight = np.inf
        while todo:
            until = min([b for b in (*BREAKS, END) if b > t + 1e-12] + [t + flight])
            flight = np.inf

            def rate(s, z, mode=mode):
                return self.derivative(z, self.motion(mode, s, z)[0])

            solution = solve_ivp(
                rate, (t, until - 1e-15), y, method="DOP853", rtol=1e-12, atol=1e-12,
                dense_output=True, max_step=0.01,
            )  # fmt: skip
            at, which = self._first(solution, mode, t)
            end = until if at is None else at
            reached = [min(z, end) for z in todo if z <= end + 1e-15]
            found += [solution.sol(z)[:nq] for z in reached]
            todo = [z for z in todo if z > end + 1e-15]
            y, t = solution.sol(end), end
            for k, side in enumerate(mode.side):
                if side == 0 and (self.rubs[k] or mode.closed[k]):
                    y[nq + self.rows[k]] = 0.0
            for j, kind in enumerate(self.model.jnt_type):
                if kind in (FREE, BALL):
                    own = self.model.jnt_qposadr[j] + (3 if kind == FREE else 0)
                    y[own : own + 4] /= np.linalg.norm(y[own : own + 4])
            if which is not None:
                kind, i = which
                changes += 1
                if kind == 0:
                    y[nq + self.rows[i]] = 0.0
                if kind == 2:
                    low = y[self.places[i]] - self.low[i] < self.high[i] - y[self.places[i]]
                    y[self.places[i]] = (self.low if low else self.high)[i]
                    y = self.impact(y, i, -1 if low else 1)
            if todo and (which is not None or t in BREAKS):
                mode = self.decide(t, y, mode)
            if which is not None and which[0] == 2:
                a = self.motion(mode, t, y)[0][self.rows[which[1]]]
                v = y[nq + self.rows[which[1]]]
                flight = 0.5 * abs(v / a) if v * a < 0.0 else np.inf
        columns = []
        for i, kind in enumerate(self.s.kinds):
            if kind != "fixed":
                joint = self.model.joint(f"l{i}")
                size = {"ball": 4, "free": 7}.get(kind, 1)
                columns += list(range(joint.qposadr[0], joint.qposadr[0] + size))
        return np.array(found)[:, columns], changes

    def _first(self, solution, mode: Mode, start: float):
        """The first event of a smooth piece: its instant, and the kind and joint of its margin."""

        def margins(s):
            return self.motion(mode, s, solution.sol(s))[1].ravel()

        pairs = zip(solution.t, solution.t[1:], strict=False)
        grid = np.unique(np.concatenate([np.linspace(a, b, 9) for a, b in pairs]))
        if len(grid) > 2 and grid[1] - start > 2 * LATER:
            grid = np.insert(grid, 1, start + LATER)
        values = np.array([margins(s) for s in grid])
        best: tuple[Any, Any] = (None, None)
        count = len(self.links)
        for i in range(values.shape[1]):
            # What is zero at the start has been judged a little later.
            known = int(values[0, i] < 1e-9)
            below = values[:, i] < 0.0
            if below[known] and values[known, i] < -1e-12:
                raise Unjudged(f"margin {divmod(i, count)} violated from {start}")
            falls = np.flatnonzero(below[known + 1 :] & ~below[known:-1])
            if not falls.size:
                continue
            k = known + 1 + falls[0]
            at = brentq(lambda s, i=i: margins(s)[i], grid[k - 1], grid[k], xtol=1e-15, rtol=1e-15)
            if best[0] is None or at < best[0]:
                best = at, divmod(i, count)
        return best


def judge(s: Structure, sets: list[Numbers], order: list[int], expected, counts, label: str):
    """Simulate each set three times, and compare."""
    runs = [(x, (1.0, False)) for x in sets]
    runs += [(mirrored(s, x), (1.0, True)) for x in sets]
    runs += [(in_units(s, x, *UNITS), (UNITS[0], False)) for x in sets]
    problems = [problem(s, x, order) for x, _ in runs]
    stacked = jax.tree.map(lambda *x: jnp.stack(x), *problems)
    began = time.perf_counter()
    solve = jax.jit(jax.vmap(_ends))
    q, status, flags = (np.asarray(x) for x in solve(stacked))
    took = time.perf_counter() - began
    axes = [d for d in problems[0].dofs if not d.startswith("r")]
    names = []
    for i, kind in enumerate(s.kinds):
        ends = {"ball": ("_qw", "_qx", "_qy", "_qz"), "fixed": (),
                "free": ("_x", "_y", "_z", "_qw", "_qx", "_qy", "_qz")}  # fmt: skip
        names += [f"l{i}{e}" for e in ends.get(kind, ("",))]
    columns = [list(problems[0].dofs).index(d) for d in names]
    assert sorted(names) == sorted(axes)
    for i, (_, (way, mirror)) in enumerate(runs):
        known = expected[i % len(sets)]
        if isinstance(known, Unjudged):
            counts["unjudged"] = counts.get("unjudged", 0) + 1
            if i < len(sets):
                print(f"{label} numbers {i}: {known}, status {status[i]}", flush=True)
            continue
        values, changes = known
        error = np.abs(q[i][:, columns] * back(s, way, mirror) - values).max()
        word = "right" if error < LIMIT and not status[i] else f"status {status[i]}"
        if not error < LIMIT and not status[i]:
            word = "wrong, flagged" if flags[i] else "wrong"
        counts[word] = counts.get(word, 0) + 1
        if word != "right":
            which = ("plain", "mirrored", "units")[i // len(sets)]
            found = f"{word}, {error:.1e}, flags {flags[i]}, {changes} changes"
            print(f"{label} numbers {i % len(sets)} {which}: {found}", flush=True)
    return took


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--structures", type=int, default=5)
    options.add_argument("--numbers", type=int, default=10)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--renumber", action="store_true")
    given = options.parse_args()
    jax.config.update("jax_enable_x64", True)
    jfric.compile_quickly()
    counts: dict[str, int] = {}
    for number in range(given.structures):
        # Each structure has a seed of its own, so that one can be repeated alone.
        random = np.random.default_rng(given.seed + number)
        s = structure(random)
        sets = [numbers(random, s) for _ in range(given.numbers)]
        expected: list[Any] = []
        began = time.perf_counter()
        for x in sets:
            try:
                expected.append(Reference(s, x).run())
            except Unjudged as reason:
                expected.append(reason)
        slow = time.perf_counter() - began
        label = f"seed {given.seed + number}"
        order = list(range(len(s.kinds)))
        took = judge(s, sets, order, expected, counts, label)
        if given.renumber:
            took += judge(s, sets, order[::-1], expected, counts, f"{label} renumbered")
        print(
            f"{label}: {' '.join(s.kinds)}, gears {s.gears.sum()}, ends {s.ends.sum()}, peaks "
            f"{s.peaks.sum()}, loop {s.loop}, {took:.0f} s and {slow:.0f} s, {counts}",
            flush=True,
        )


def _ends(p: jfric.Problem):
    found = jfric.simulate(p, ts=jnp.asarray(OUTPUTS))
    return found.q, found.status, found.flags


if __name__ == "__main__":
    main()
