"""Mechanisms in batches: rimless wheels on slopes, and double pendulums.

- wheel: ``configs/g1_rimless_wheel_reset.toml`` to 3.5 s, over the slope gamma; the angle at the
  end. The impact is an event that changes the state.
- pendulum: ``configs/g2_double_pendulum.toml`` to 5 s, over the first angle at the start; the
  second angle at the end.

``jfric.sweep`` into a labelled table, with a relative tolerance of 1e-9 and all cores, after one
tile that compiles; SciPy's ``solve_ivp`` (DOP853, rtol 1e-9, events and restarts, one core);
MuJoCo (``mujoco.rollout``, Runge-Kutta of order 4, all cores) for the pendulum, which its joints
represent.
Errors are distances from SciPy with rtol 1e-13 at a few places of the range.

    python experiments/benchmarks/mechanisms.py [--json] [--lanes 100000] [--only wheel,pendulum]
"""

from __future__ import annotations

import argparse
import json
import math
import os
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
G = 9.81
ALPHA = math.radians(22.5)
#: Times that MuJoCo repeats the trajectories.
TILES = 20
#: File, parameter, range, observable, end [s].
SYSTEMS = {
    "wheel": ("g1_rimless_wheel_reset", "parameters.gamma", (0.07, 0.2), "final.theta", 3.5),
    "pendulum": ("g2_double_pendulum", "initial.a.q", (0.2, 1.2), "final.b", 5.0),
}
_MODEL = """
<mujoco>
  <option timestep="{h}" integrator="RK4" gravity="0 0 -9.81"/>
  <worldbody>
    <body>
      <joint name="a" type="hinge" axis="0 -1 0"/>
      <inertial pos="0 0 -1" mass="1" diaginertia="1e-12 1e-12 1e-12"/>
      <body pos="0 0 -1">
        <joint name="b" type="hinge" axis="0 -1 0"/>
        <inertial pos="0 0 -1" mass="1" diaginertia="1e-12 1e-12 1e-12"/>
      </body>
    </body>
  </worldbody>
</mujoco>
"""


def wheel(gamma: float, rtol: float) -> float:
    """Angle at the end."""
    from scipy.integrate import solve_ivp

    def step(t, y):
        del t
        return y[0] - gamma - ALPHA

    step.terminal, step.direction = True, 1.0
    t, y = 0.0, np.array([gamma - ALPHA, 1.0954628396477])
    while True:
        found = solve_ivp(
            lambda _, y: [y[1], G * math.sin(y[0])],
            (t, SYSTEMS["wheel"][4]),
            y,
            method="DOP853",
            rtol=rtol,
            atol=rtol,
            events=step,
        )
        if found.status == 0:
            return float(found.y[0, -1])
        t = float(found.t[-1])
        y = np.array([gamma - ALPHA, math.cos(2 * ALPHA) * found.y[1, -1]])


def pendulum(angle: float, rtol: float) -> float:
    """Second angle at the end; unit masses and lengths."""
    from scipy.integrate import solve_ivp

    start = _start()
    start[0] = angle

    def field(_, y):
        a, b, u, w = y
        c, s = math.cos(a - b), math.sin(a - b)
        mass = np.array([[2.0, c], [c, 1.0]])
        force = [-w * w * s - 2.0 * G * math.sin(a), u * u * s - G * math.sin(b)]
        return [u, w, *np.linalg.solve(mass, force)]

    end = SYSTEMS["pendulum"][4]
    found = solve_ivp(field, (0.0, end), start, method="DOP853", rtol=rtol, atol=rtol)
    return float(found.y[1, -1])


def _start() -> list[float]:
    """Angles and their rates at the start, as in the file."""
    import jfric

    problem = jfric.load(ROOT / "configs" / "g2_double_pendulum.toml")
    state = [problem.initial[x] for x in ("a", "b")]
    return [float(s.q) for s in state] + [float(s.v) for s in state]


def run_scipy(name: str, values: np.ndarray, count: int) -> tuple[dict, np.ndarray, np.ndarray]:
    """Its row, and its most accurate values at some places."""
    one = {"wheel": wheel, "pendulum": pendulum}[name]
    some = values[:: max(values.size // count, 1)][:count]
    best = np.array([one(x, 1e-13) for x in some])
    start = time.perf_counter()
    found = np.array([one(x, 1e-9) for x in some])
    seconds = time.perf_counter() - start
    row = {
        "method": "SciPy DOP853, one core",
        "per_second": some.size / seconds,
        "error": float(np.abs(found - best).max()),
        "lanes": int(some.size),
    }
    return row, some, best


def run_jfric(name: str, values: np.ndarray, some: np.ndarray, best: np.ndarray) -> dict:
    """One sweep after a short one that compiles."""
    import jax

    jax.config.update("jax_enable_x64", True)
    import jfric

    file, parameter, _, observed, end = SYSTEMS[name]
    problem = jfric.load(ROOT / "configs" / f"{file}.toml")
    problem = jfric.set_parameters(problem, {"time.end": end})
    arguments: dict = {"observe": observed, "solver": jfric.EventDriven(rtol=1e-9)}
    start = time.perf_counter()
    jfric.sweep(problem, {parameter: values}, **arguments)
    first = time.perf_counter() - start
    start = time.perf_counter()
    table = jfric.sweep(problem, {parameter: values}, **arguments)
    seconds = time.perf_counter() - start
    found = np.asarray(table[observed])
    places = np.searchsorted(values, some)
    return {
        "method": "jfric.sweep",
        "per_second": values.size / seconds,
        "error": float(np.abs(found[places] - best).max()),
        "lanes": int(values.size),
        "compile_s": first - seconds,
        "note": f"{int((np.asarray(table['status']) != 0).sum())} not ok",
    }


def run_mujoco(some: np.ndarray, best: np.ndarray, h: float) -> dict:
    """The double pendulum with steps of ``h`` [s]."""
    method = f"MuJoCo RK4, h = {h:g}"
    try:
        import mujoco
        from mujoco import rollout
    except ImportError:
        return {"method": method, "note": "not installed"}
    model = mujoco.MjModel.from_xml_string(_MODEL.format(h=h))
    threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    data = [mujoco.MjData(model) for _ in range(threads)]
    size = mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS)
    _, b, u, w = _start()
    # The same ones several times: the rate is that of a batch.
    many = np.tile(some, TILES)
    states = np.zeros((many.size, size))
    # Time, angles, rates; the second joint turns against the first body.
    states[:, 1:5] = np.stack([many, b - many, 0 * many + u, 0 * many + w - u], axis=1)
    steps = round(SYSTEMS["pendulum"][4] / h)
    start = time.perf_counter()
    found, _ = rollout.rollout(model, data, states, nstep=steps)
    seconds = time.perf_counter() - start
    angle = found[:, -1, 1] + found[:, -1, 2]
    return {
        "method": method,
        "per_second": many.size / seconds,
        "error": float(np.abs(angle - np.tile(best, TILES)).max()),
        "lanes": int(many.size),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--lanes", type=int, default=100_000)
    parser.add_argument("--scipy", type=int, default=50, help="trajectories of the others")
    parser.add_argument("--only", default="wheel,pendulum")
    arguments = parser.parse_args()
    from jfric.numerics.compilation import compile_quickly

    compile_quickly()
    rows = []
    for name in arguments.only.split(","):
        values = np.linspace(*SYSTEMS[name][2], arguments.lanes)
        row, some, best = run_scipy(name, values, arguments.scipy)
        own = [run_jfric(name, values, some, best), row]
        if name == "pendulum":
            own += [run_mujoco(some, best, h) for h in (1e-2, 1e-3)]
        for found in own:
            rows.append({"system": name, **found})
            if not arguments.json:
                speed, error = (found.get(k, math.nan) for k in ("per_second", "error"))
                compiled = found.get("compile_s")
                extra = [found.get("note"), compiled and f"compilation {compiled:.1f} s"]
                note = "; ".join(x for x in extra if x)
                print(f"{name:<9} {found['method']:<24} {speed:>10,.0f}/s  {error:8.1e}  {note}")
    if arguments.json:
        print(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
