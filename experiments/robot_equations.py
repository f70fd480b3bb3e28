"""Equations of motion of robots from URDF files, beside Pinocchio and MuJoCo.

Mass matrix, forces, places of all links and their Jacobians at random states, as the largest
difference relative to the largest entry. Robots are those of the package example-robot-data: an arm
with two fingers, an arm, a hand with branches, two walking robots with a free base, a pendulum.

    pip install pin example-robot-data
    python experiments/robot_equations.py [--states 100]
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any

import jax
import mujoco
import numpy as np
import pinocchio
from scipy.spatial.transform import Rotation

import jfric
from jfric.system.assembly import energies
from jfric.system.tree import SPINS

#: Files of the package, and their bases.
ROBOTS = {
    "panda_description/urdf/panda.urdf": "fixed",
    "ur_description/urdf/ur5_robot.urdf": "fixed",
    "g1_description/urdf/g1_29dof_rev_1_0.urdf": "free",
    "solo_description/robots/solo12.urdf": "free",
    "a1_description/urdf/a1.urdf": "free",
    "double_pendulum_description/urdf/double_pendulum.urdf": "fixed",
}


def rates(dofs: list[str], names: list[str], free: str | None, q, spin):
    """The matrix from velocities of Pinocchio or MuJoCo to rates of jfric's coordinates, and its
    change by time; ``names``: joints of one coordinate in the order of the other program."""
    count = (6 if free else 0) + len(names)
    S, change = np.zeros((2, len(dofs), count))
    for k, name in enumerate(names, count - len(names)):
        S[dofs.index(name), k] = 1.0
    if free:
        own = [dofs.index(f"{free}_q{c}") for c in "wxyz"]
        S[[dofs.index(f"{free}_{c}") for c in "xyz"], range(3)] = 1.0
        S[own, 3:6] = _spins(q[own]).T / 4.0
        change[own, 3:6] = _spins(_spins(q[own]).T @ spin / 4.0).T / 4.0
    return S, change


def _spins(quaternion) -> np.ndarray:
    """Angular velocity of a body along its own axes for rates of its quaternion."""
    return np.einsum("rcw,c->wr", SPINS, quaternion)


def compared(path: Path, base: str, states: int) -> dict[str, float]:
    """Largest relative differences of one robot."""
    robot = jfric.read_robot(path, base=base)
    elements = {"link": robot.elements["link"], "gravity": jfric.Gravity(9.81)}
    problem = jfric.Problem([], elements, initial=robot.initial)
    dofs, tree = list(problem.dofs), energies(problem.resolved())["links"]
    free = next((d[:-3] for d in dofs if d.endswith("_qw")), None)
    root = pinocchio.JointModelFreeFlyer() if free else None
    args = [str(path)] if root is None else [str(path), root]
    other = pinocchio.buildModelFromUrdf(*args)
    other.armature[:] = 0.0
    mine = model_of(problem)
    pin_data, data = other.createData(), mujoco.MjData(mine)
    pairs = [*zip(other.names, other.joints, strict=True)][1:]
    joints = [_name(x) for x, j in pairs if j.nv == 1]

    @jax.jit
    def seen(q, v):
        here = tree.positions(q)
        return tree.mass(0.0, q), tree.force((), 0.0, q, v), here.frames, here.about, here.twists

    random, worst = np.random.default_rng(11), {}
    for _ in range(states):
        q, v = np.zeros(len(dofs)), random.normal(size=other.nv)
        for d in joints:
            q[dofs.index(d)] = random.uniform(-3.0, 3.0)
        config = pinocchio.neutral(other)
        if free:
            place, turn = random.normal(size=3), random.normal(size=4)
            turn /= np.linalg.norm(turn)
            q[[dofs.index(f"{free}_{c}") for c in "xyz"]] = place
            q[[dofs.index(f"{free}_q{c}") for c in "wxyz"]] = turn
            config[:7] = [*place, *turn[1:], turn[0]]
        for x, j in pairs:
            if j.nv == 1:
                angle = q[dofs.index(_name(x))]
                own = [angle] if j.nq == 1 else [np.cos(angle), np.sin(angle)]
                config[j.idx_q : j.idx_q + j.nq] = own
        S, change = rates(dofs, joints, free, q, v[3:6])
        # Velocities of a free body are along its own axes in Pinocchio, along fixed ones here.
        R = np.eye(3)
        if free:
            R = pinocchio.Quaternion(turn[0], *turn[1:]).matrix()
        T, T_rate = np.eye(other.nv), np.zeros((other.nv, other.nv))
        if free:
            T[:3, :3] = R
            T_rate[:3, :3] = R @ pinocchio.skew(v[3:6])
        full, full_rate = S @ T, change @ T + S @ T_rate
        mass, force, frames, about, twists = map(np.asarray, seen(q, full @ v))
        M = full.T @ mass @ full
        bias = full.T @ (mass @ full_rate @ v - force)
        expected = pinocchio.crba(other, pin_data, config)
        expected = np.triu(expected) + np.triu(expected, 1).T
        _worse(worst, "mass matrix, Pinocchio", M, expected)
        _worse(
            worst, "forces, Pinocchio", bias, pinocchio.nonLinearEffects(other, pin_data, config, v)
        )
        pinocchio.computeJointJacobians(other, pin_data, config)
        pinocchio.updateFramePlacements(other, pin_data)
        behind = tree.behind
        for name, (body, inside) in tree.links.items():
            index = _frame(other, name)
            if index is None:
                continue
            frame = frames[body] @ np.asarray(inside)
            there = pin_data.oMf[index]
            _worse(worst, "frames, Pinocchio", frame[:3], there.homogeneous[:3])
            J = np.zeros((6, len(dofs)))
            arm = frame[:3, 3] - about[body]
            for k, (column, twist) in enumerate(zip(tree.columns, twists, strict=True)):
                if behind[body, k]:
                    J[3:, column] = twist[:3]
                    J[:3, column] = twist[3:] + np.cross(twist[:3], arm)
            known = pinocchio.getFrameJacobian(
                other, pin_data, index, pinocchio.ReferenceFrame.LOCAL_WORLD_ALIGNED
            )
            _worse(worst, "Jacobians, Pinocchio", J @ full, known)
        # MuJoCo has the velocities of its free body along fixed axes, too.
        names = [_name(mine.joint(j).name) for j in range(mine.njnt) if mine.jnt_type[j] > 1]
        S, change = rates(dofs, names, free, q, v[3:6])
        for j in range(mine.njnt):
            at, dof = mine.jnt_qposadr[j], mine.jnt_dofadr[j]
            if mine.jnt_type[j] > 1:
                name = _name(mine.joint(j).name)
                data.qpos[at] = q[dofs.index(name)]
                data.qvel[dof] = v[_column(other, name)]
            else:
                data.qpos[at : at + 7] = [*place, *turn]
                data.qvel[dof : dof + 6] = [*(R @ v[:3]), *v[3:6]]
        mujoco.mj_forward(mine, data)
        found = np.zeros((mine.nv, mine.nv))
        mujoco.mj_fullM(mine, data, found)
        _worse(worst, "mass matrix, MuJoCo", S.T @ mass @ S, found)
        force = S.T @ (mass @ change @ data.qvel - force)
        _worse(worst, "forces, MuJoCo", force, data.qfrc_bias)
    return worst


def model_of(problem: jfric.Problem):
    """The links of a problem in MuJoCo, those fixed to each other included."""
    spec, bodies = mujoco.MjSpec(), {}
    types = {"revolute": mujoco.mjtJoint.mjJNT_HINGE, "prismatic": mujoco.mjtJoint.mjJNT_SLIDE}
    for name, link in problem.elements["link"].items():
        above = spec.worldbody if link.parent == "ground" else bodies[link.parent]
        body = bodies[name] = above.add_body(name=name)
        body.pos = np.array(link.at, float)
        body.quat = Rotation.from_euler("xyz", np.array(link.rpy, float)).as_quat(scalar_first=True)
        if float(link.m):
            body.mass, body.ipos = float(link.m), np.array(link.com, float)
            body.fullinertia, body.explicitinertial = np.array(link.J, float), True
        if link.joint == "free":
            body.add_freejoint(name=name)
        elif link.joint != "fixed":
            dof = link.dof or name
            body.add_joint(name=dof, type=types[link.joint], axis=np.array(link.axis, float))
    return spec.compile()


def _worse(worst: dict[str, float], what: str, found, expected) -> None:
    size = max(np.abs(expected).max(), 1e-300)
    worst[what] = max(worst.get(what, 0.0), float(np.abs(found - expected).max() / size))


def _name(text: str) -> str:
    """The name that jfric gives a joint."""
    return re.sub(r"\W", "_", text)


def _column(model: Any, name: str) -> int:
    names = [_name(x) for x in model.names]
    return model.joints[names.index(name)].idx_v


def _frame(model: Any, name: str) -> int | None:
    """Number of the frame of a link, if it has one."""
    for i, frame in enumerate(model.frames):
        if frame.type == pinocchio.FrameType.BODY and _name(frame.name) == name:
            return i
    return None


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--states", type=int, default=100)
    given = options.parse_args()
    jax.config.update("jax_enable_x64", True)
    prefix = Path(pinocchio.__file__).parents[4]
    folder = prefix / "share/example-robot-data/robots"
    for file, base in ROBOTS.items():
        found = compared(folder / file, base, given.states)
        print(
            f"{Path(file).stem}, {base} base: "
            + ", ".join(f"{k} {x:.1e}" for k, x in found.items()),
            flush=True,
        )


if __name__ == "__main__":
    main()
