"""Random trees of bodies with friction in all joints, beside an independent simulation.

The reference takes mass matrix and bias from MuJoCo, integrates each mode by SciPy's DOP853, and
locates zeros of velocities and limits of holding torques; which joints hold or slide follows from
the minimum of Gauss's function of the accelerations. Each structure is simulated with several sets
of numbers, and once more with its coordinates in another order, mirrored, and in millimetres.

    python experiments/judge_robots.py --structures 30 --numbers 10 --seed 1
"""

from __future__ import annotations

import argparse
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

END, BREAK, LIMIT = 1.0, 0.4, 1e-7
OUTPUTS = np.linspace(0.0, END, 6)


class Numbers(NamedTuple):
    """Numbers of all links of one tree."""

    at: np.ndarray
    rpy: np.ndarray
    axis: np.ndarray
    m: np.ndarray
    com: np.ndarray
    J: np.ndarray
    armature: np.ndarray
    limit: np.ndarray
    before: np.ndarray
    after: np.ndarray
    q: np.ndarray
    v: np.ndarray


def numbers(random: np.random.Generator, n: int) -> Numbers:
    """Random numbers for ``n`` links, inertias of real bodies included."""
    shape = Rotation.random(n, random_state=random).as_matrix()
    masses = random.uniform(0.1, 1.0, (n, 3))  # of points along three axes
    sizes = masses * random.uniform(0.05, 0.3, (n, 3)) ** 2
    principal = sizes.sum(axis=1, keepdims=True) - sizes
    J = np.einsum("nij,nj,nkj->nik", shape, principal, shape)
    rest = random.random(n) < 0.5
    return Numbers(
        at=random.uniform(-0.5, 0.5, (n, 3)),
        rpy=random.uniform(-3.0, 3.0, (n, 3)),
        axis=random.normal(size=(n, 3)),
        m=random.uniform(0.3, 3.0, n),
        com=random.uniform(-0.3, 0.3, (n, 3)),
        J=J,
        armature=np.where(random.random(n) < 0.5, random.uniform(0.0, 0.3, n), 0.0),
        limit=random.uniform(0.2, 6.0, n),
        before=random.uniform(-6.0, 6.0, n),
        after=random.uniform(-6.0, 6.0, n),
        q=random.uniform(-1.0, 1.0, n),
        v=np.where(rest, 0.0, random.uniform(-3.0, 3.0, n)),
    )


def problem(parents: list[int], kinds: list[str], x: Numbers) -> jfric.Problem:
    """A tree of links with a friction and a load of two steps in each joint."""
    n = len(parents)
    six = [[0, 0], [1, 1], [2, 2], [0, 1], [0, 2], [1, 2]]
    links = {
        f"l{i}": jfric.Link(
            kinds[i],  # type: ignore[arg-type]
            parent="ground" if parents[i] < 0 else f"l{parents[i]}",
            at=tuple(x.at[i]),
            rpy=tuple(x.rpy[i]),
            axis=tuple(x.axis[i]),
            m=x.m[i],
            com=tuple(x.com[i]),
            J=tuple(x.J[i][a, b] for a, b in six),
            armature=x.armature[i],
        )
        for i in range(n)
    }
    loads = {
        f"l{i}": jfric.Load(f"l{i}", jfric.functions.Steps([BREAK], [x.before[i], x.after[i]]))
        for i in range(n)
    }
    friction = {f"l{i}": jfric.Friction(f"l{i}", limit=x.limit[i]) for i in range(n)}
    initial = {f"l{i}": jfric.InitialState(x.q[i], x.v[i]) for i in range(n)}
    elements = {"link": links, "gravity": jfric.Gravity(9.81), "load": loads, "friction": friction}
    return jfric.Problem([], elements, initial=initial, time=END)


def model(parents: list[int], kinds: list[str], x: Numbers):
    """The same tree in MuJoCo."""
    spec = mujoco.MjSpec()
    spec.option.gravity = (0.0, 0.0, -9.81)
    bodies = []
    for i, parent in enumerate(parents):
        body = (spec.worldbody if parent < 0 else bodies[parent]).add_body(name=f"l{i}")
        body.pos = x.at[i]
        body.quat = Rotation.from_euler("xyz", x.rpy[i]).as_quat(scalar_first=True)
        joint = body.add_joint(name=f"l{i}", axis=x.axis[i], armature=x.armature[i])
        hinge = kinds[i] == "revolute"
        joint.type = mujoco.mjtJoint.mjJNT_HINGE if hinge else mujoco.mjtJoint.mjJNT_SLIDE
        J = x.J[i]
        body.mass, body.ipos, body.explicitinertial = x.m[i], x.com[i], True
        body.fullinertia = (J[0, 0], J[1, 1], J[2, 2], J[0, 1], J[0, 2], J[1, 2])
        bodies.append(body)
    return spec.compile()


class Reference:
    """An event-driven simulation of one tree."""

    def __init__(self, compiled, x: Numbers) -> None:
        self.model, self.data, self.x = compiled, mujoco.MjData(compiled), x
        self.n = compiled.nv
        self.M = np.zeros((self.n, self.n))
        # In the order of MuJoCo, which goes down the branches.
        self.order = [int(compiled.joint(j).name[1:]) for j in range(self.n)]
        self.limit = x.limit[self.order]

    def parts(self, t: float, y) -> tuple[np.ndarray, np.ndarray]:
        """Mass matrix, and all forces but frictions."""
        self.data.qpos[:], self.data.qvel[:] = y[: self.n], y[self.n :]
        mujoco.mj_forward(self.model, self.data)
        mujoco.mj_fullM(self.model, self.data, self.M)
        load = self.x.before if t < BREAK else self.x.after
        return self.M.copy(), load[self.order] - self.data.qfrc_bias

    def mode(self, t: float, y, moving: np.ndarray) -> np.ndarray:
        """Signs of sliding, 0 where a joint holds, by descent in one coordinate after another.
        ``moving``: signs of the joints that move."""
        M, f = self.parts(t, y)
        f = f - self.limit * moving
        a, free = np.zeros(self.n), moving == 0
        for sweep in range(20000):
            for i in range(self.n):
                rest = f[i] - M[i] @ a + M[i, i] * a[i]
                size = self.limit[i] if free[i] else 0.0
                a[i] = np.sign(rest) * max(abs(rest) - size, 0.0) / M[i, i]
            if sweep % 20 < 19:
                continue
            sign = np.where(free, np.sign(a), moving).astype(float)
            exact, held = self.motion(t, y, sign)
            slides = free & (sign != 0)
            if np.all(np.abs(held) <= self.limit) and np.all(sign[slides] * exact[slides] > 0.0):
                return sign
        raise RuntimeError("no mode found")

    def motion(self, t: float, y, sign) -> tuple[np.ndarray, np.ndarray]:
        """Accelerations, and the forces that joints at rest need."""
        M, f = self.parts(t, y)
        f = f - self.limit * sign
        slides = sign != 0
        a = np.zeros(self.n)
        if slides.any():
            a[slides] = np.linalg.solve(M[np.ix_(slides, slides)], f[slides])
        return a, np.where(slides, 0.0, f - M @ a)

    def run(self) -> tuple[np.ndarray, list[float]]:
        """Positions at the outputs in the order of the links, and the instants of changes."""
        t, y = 0.0, np.concatenate([self.x.q[self.order], self.x.v[self.order]])
        found, changes, todo = [y[: self.n]], [], list(OUTPUTS[1:])
        sign = self.mode(t, y, np.sign(y[self.n :]))
        while todo:
            until = BREAK if t < BREAK else END

            def rate(s, z, sign=sign):
                return np.concatenate([z[self.n :], self.motion(s, z, sign)[0]])

            solution = solve_ivp(
                rate, (t, until - 1e-15), y, method="DOP853", rtol=1e-12, atol=1e-12,
                dense_output=True, max_step=0.02,
            )  # fmt: skip
            at, which = self._first(solution, sign, t)
            end = until if at is None else at
            reached = [min(x, end) for x in todo if x <= end + 1e-15]
            found += [solution.sol(x)[: self.n] for x in reached]
            todo = [x for x in todo if x > end + 1e-15]
            y, t = solution.sol(end), end
            moving = sign.copy()
            y[self.n :][sign == 0] = 0.0
            if which is not None:
                changes.append(t)
                y[self.n + which] = 0.0
                # A joint at its limit gives way to the force that holds it no longer.
                force = self.motion(t, y, sign)[1][which]
                moving[which] = 0.0 if sign[which] else np.sign(force)
            sign = self.mode(t, y, moving)
        rows = np.argsort(self.order)
        return np.array(found)[:, rows], changes

    def _first(self, solution, sign, start):
        """The first event of a smooth piece: a velocity of zero, or a force at its limit."""

        def margins(s):
            y = solution.sol(s)
            held = self.motion(s, y, sign)[1]
            return np.where(sign != 0, sign * y[self.n :], self.limit - np.abs(held))

        grid = np.unique(
            np.concatenate(
                [np.linspace(a, b, 9) for a, b in zip(solution.t, solution.t[1:], strict=False)]
            )
        )
        values = np.array([margins(s) for s in grid])
        best: tuple[Any, Any] = (None, None)
        for i in range(self.n):
            for k in range(1, len(grid)):
                if values[k, i] < 0.0:
                    low = grid[k - 1]
                    if values[k - 1, i] <= 0.0:
                        if k > 1 or values[k, i] > -1e-9:
                            continue
                        low = grid[0] + 1e-9
                        if margins(low)[i] <= 0.0:
                            continue
                    at = brentq(lambda s, i=i: margins(s)[i], low, grid[k], xtol=1e-15, rtol=1e-15)
                    if best[0] is None or at < best[0]:
                        best = at, i
                    break
        return best


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--structures", type=int, default=5)
    options.add_argument("--numbers", type=int, default=10)
    options.add_argument("--seed", type=int, default=1)
    given = options.parse_args()
    jax.config.update("jax_enable_x64", True)
    jfric.compile_quickly()
    random, counts = np.random.default_rng(given.seed), {}
    for structure in range(given.structures):
        n = int(random.integers(2, 9))
        parents = [-1, *(int(random.integers(-1 if i > 4 else 0, i)) for i in range(1, n))]
        kinds = [str(random.choice(["revolute", "prismatic"], p=[0.75, 0.25])) for _ in range(n)]
        sets = [numbers(random, n) for _ in range(given.numbers)]
        problems = [problem(parents, kinds, x) for x in sets]
        stacked = jax.tree.map(lambda *x: jnp.stack(x), *problems)
        began = time.perf_counter()
        solve = jax.jit(jax.vmap(lambda p: _ends(p)))
        q, status, flags = (np.asarray(x) for x in solve(stacked))
        took = time.perf_counter() - began
        for i, x in enumerate(sets):
            expected, changes = Reference(model(parents, kinds, x), x).run()
            error = np.abs(q[i] - expected).max()
            word = "right" if error < LIMIT and not status[i] else f"status {status[i]}"
            if error >= LIMIT and not status[i]:
                word = "wrong, flagged" if flags[i] else "wrong"
            counts[word] = counts.get(word, 0) + 1
            if word != "right":
                found = f"{word}, {error:.1e}, flags {flags[i]}, {len(changes)} changes"
                print(f"structure {structure} numbers {i}: {found}", flush=True)
        print(
            f"{structure}: {n} joints {kinds.count('prismatic')} prismatic, {took:.0f} s, {counts}",
            flush=True,
        )


def _ends(p: jfric.Problem):
    found = jfric.simulate(p, ts=jnp.asarray(OUTPUTS))
    return found.q, found.status, found.flags


if __name__ == "__main__":
    main()
