"""An arm of seven axes with dry friction in all joints, beside MuJoCo.

The arm (``configs/r6_arm.toml``) falls until friction holds it. Printed are the processor time to
the first number in a fresh process, simulated time per second of one core, alone and in a batch of
coefficients, with the largest error of the last position; the velocity with which joints creep that
ought to stand still; and the rate of mass matrix and bias alone.

    python experiments/benchmarks/robots.py [--json] [--lanes 256]
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
from scipy.spatial.transform import Rotation

import jfric
from jfric.system.assembly import energies

CONFIG = Path(__file__).resolve().parents[2] / "configs" / "r6_arm.toml"
END = 5.0
#: Steps of MuJoCo [s].
STEPS = (1e-3, 1e-4)
FIRST = (
    "import sys, jfric, jax; jfric.compile_quickly(); jax.config.update('jax_enable_x64', True); "
    "print(float(jfric.observe(jfric.load(sys.argv[1]), 'final.joint2').values['final.joint2']))"
)


def model_of(problem: jfric.Problem):
    """The links and frictions of a problem in MuJoCo."""
    spec = mujoco.MjSpec()
    spec.option.gravity = (0.0, 0.0, -float(problem.elements["gravity"]["gravity"].g))
    limits = {
        x.direction.names[0]: float(x.limit(0.0)) for x in problem.elements["friction"].values()
    }
    bodies: dict[str, Any] = {"ground": spec.worldbody}
    for name, link in problem.resolved().elements["link"].items():
        body = bodies[link.parent].add_body(name=name)
        body.pos = np.array(link.at, float)
        body.quat = Rotation.from_euler("xyz", np.array(link.rpy, float)).as_quat(scalar_first=True)
        body.mass, body.ipos = float(link.m), np.array(link.com, float)
        body.fullinertia, body.explicitinertial = np.array(link.J, float), True
        for dof in link.coordinates(name):
            body.add_joint(
                name=dof, axis=np.array(link.axis, float), frictionloss=limits.get(dof, 0.0)
            )
        bodies[name] = body
    return spec.compile()


def falls(model, start, step: float) -> tuple[np.ndarray, float, float]:
    """Last positions of MuJoCo's arm, the fastest joint then, and the time that it took."""
    model.opt.timestep = step
    data = mujoco.MjData(model)
    data.qpos[:] = start
    began = time.perf_counter()
    for _ in range(round(END / step)):
        mujoco.mj_step(model, data)
    took = time.perf_counter() - began
    return data.qpos.copy(), float(np.abs(data.qvel).max()), took


def best_of(repeats: int, call) -> float:
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return min(times)


def measured(lanes: int) -> dict[str, Any]:
    """All numbers."""
    found: dict[str, Any] = {}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "-c", FIRST, str(CONFIG)],
        check=True, capture_output=True, env=os.environ | {"JFRIC_CACHE_DIR": "0"},
    )  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    found["first number, processor seconds"] = (
        after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    )
    problem = jfric.load(CONFIG)
    start = np.array([float(x.q) for x in problem.initial.values()])
    run = jax.jit(lambda p, solver: jfric.simulate(p, solver, ts=jnp.array([END])).q[0])
    exact = np.asarray(run(problem, jfric.EventDriven(rtol=1e-12)))
    rows = []
    for rtol in (1e-4, 1e-6, 1e-8):
        solver = jfric.EventDriven(rtol=rtol)
        q = np.asarray(run(problem, solver))
        took = best_of(5, lambda s=solver: run(problem, s).block_until_ready())
        rows.append((f"jfric, rtol {rtol:g}", END / took, float(np.abs(q - exact).max()), 0.0))
    limits = [f"friction.joint{i}.limit" for i in range(1, 8)]
    given = np.array([float(jfric.get_parameter(problem, p)) for p in limits])
    factors = jnp.asarray(np.linspace(1.0, 1.2, lanes)[:, None] * given)

    @jax.jit
    def batch(x):
        def one(values):
            changed = jfric.set_parameters(problem, dict(zip(limits, values, strict=True)))
            return jfric.simulate(changed, jfric.EventDriven(rtol=1e-6), ts=jnp.array([END])).q[0]

        return jax.lax.map(one, x, batch_size=64)

    batch(factors).block_until_ready()
    took = best_of(2, lambda: batch(factors).block_until_ready())
    cores = len(os.sched_getaffinity(0))
    rows.append(
        (f"jfric, rtol 1e-6, {lanes} in rows of 64", END * lanes / took / cores, rows[1][2], 0.0)
    )
    model = model_of(problem)
    for step in STEPS:
        q, creep, took = falls(model, start, step)
        rows.append(
            (f"MuJoCo, step {step * 1e3:g} ms", END / took, float(np.abs(q - exact).max()), creep)
        )
    found["motion"] = rows
    tree = energies(problem.resolved())["links"]
    states = np.random.default_rng(1).normal(size=(2, 4096, 7))
    both = jax.jit(jax.vmap(lambda q, v: (tree.mass(0.0, q), tree.force((), 0.0, q, v))))
    q, v = map(jnp.asarray, states)
    jax.block_until_ready(both(q, v))
    took = best_of(5, lambda: jax.block_until_ready(both(q, v)))
    found["mass matrix and bias, per second of a core"] = len(q) / took / cores
    data, M = mujoco.MjData(model), np.zeros((7, 7))

    def plain_loop() -> None:
        for x, dx in zip(states[0], states[1], strict=True):
            data.qpos[:], data.qvel[:] = x, dx
            mujoco.mj_fwdPosition(model, data)
            mujoco.mj_fwdVelocity(model, data)
            mujoco.mj_fullM(model, data, M)

    found["the same by MuJoCo from Python"] = len(q) / best_of(2, plain_loop)
    return found


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--json", action="store_true")
    options.add_argument("--lanes", type=int, default=256)
    given = options.parse_args()
    jax.config.update("jax_enable_x64", True)
    jfric.compile_quickly()
    found = measured(given.lanes)
    if given.json:
        print(json.dumps(found))
        return
    print("| method | simulated seconds per second of a core | error [rad] | creep [rad/s] |")
    print("|---|---:|---:|---:|")
    for name, rate, error, creep in found.pop("motion"):
        print(f"| {name} | {rate:,.1f} | {error:.1e} | {creep:.1e} |")
    for name, value in found.items():
        print(f"{name}: {value:,.1f}")


if __name__ == "__main__":
    main()
