"""Mechanisms in batches: rimless wheels on slopes, and double pendulums.

- wheel: ``configs/g1_rimless_wheel_reset.toml`` to 3.5 s, over the slope gamma; the angle at the
  end. The impact is an event that changes the state.
- contacts: ``configs/g1_rimless_wheel.toml``, a wheel with unilateral contacts of the spokes, over
  slopes on which five of them are enough; the place of the hub at the end.
- pendulum: ``configs/g2_double_pendulum.toml`` to 5 s, over the first angle at the start; the
  second angle at the end.

Rates are those of ``jfric.sweep`` into a labelled table, with a relative tolerance of 1e-9 and all
cores, after a sweep that compiles; SciPy's ``solve_ivp`` (DOP853, rtol 1e-9, events and restarts,
one core); MuJoCo (``mujoco.rollout``, all cores). MuJoCo has the pendulum with its joints and
Runge-Kutta of order 4. The wheel is a hub with eight points that touch the ground. MuJoCo's
contacts stop it softly, within two steps, the shortest time allowed, and with five times the
critical damping: with the critical damping itself the points would bounce off. Gravity is tilted
there, and the ground is level. Errors are distances from SciPy with rtol 1e-13 at a few places of
the range: of the angle at the end, and of the hub's place. Rates use the time of the processors:
trajectories per second of one core; wall times are printed next to them. A step is one of the
solver, for one trajectory.

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
#: Angular velocity of the wheel at the start [rad/s].
OMEGA = 1.0954628396477
#: Number of times that MuJoCo repeats the trajectories.
TILES = 20
#: Steps of MuJoCo [s].
STEPS = {"wheel": (1e-3, 1e-4, 2e-5), "pendulum": (1e-2, 1e-3)}
#: File, parameter, range, observable, end [s].
SYSTEMS = {
    "wheel": ("g1_rimless_wheel_reset", "parameters.gamma", (0.07, 0.2), "final.theta", 3.5),
    "contacts": ("g1_rimless_wheel", "parameters.gamma", (0.07, 0.1), "final.x", 3.5),
    "pendulum": ("g2_double_pendulum", "initial.a.q", (0.2, 1.2), "final.b", 5.0),
}
_PENDULUM = """
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
_WHEEL = """
<mujoco>
  <option timestep="{h}" integrator="implicitfast" cone="elliptic" impratio="100" tolerance="1e-14"
    iterations="200" gravity="{along} 0 {down}"/>
  <default>
    <geom condim="3" friction="10 0 0" solref="{soft} 5" solimp="0.9999 0.9999 0.001"/>
  </default>
  <worldbody>
    <geom type="plane" size="100 1 1"/>
    <body>
      <joint type="slide" axis="1 0 0"/>
      <joint type="slide" axis="0 0 1"/>
      <joint type="hinge" axis="0 1 0"/>
      <inertial pos="0 0 0" mass="1" diaginertia="1e-6 1e-6 1e-6"/>
      {spokes}
    </body>
  </worldbody>
</mujoco>
"""


def wheel(gamma: float, rtol: float) -> tuple[float, int]:
    """Angle at the end, and the number of impacts."""
    from scipy.integrate import solve_ivp

    def step(t, y):
        del t
        return y[0] - gamma - ALPHA

    step.terminal, step.direction = True, 1.0
    t, y, impacts = 0.0, np.array([gamma - ALPHA, OMEGA]), 0
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
            return float(found.y[0, -1]), impacts
        t, impacts = float(found.t[-1]), impacts + 1
        y = np.array([gamma - ALPHA, math.cos(2 * ALPHA) * found.y[1, -1]])


def hub(gamma: float, rtol: float) -> float:
    """Place of the hub at the end."""
    angle, impacts = wheel(gamma, rtol)
    return 2.0 * math.sin(ALPHA) * math.cos(gamma) * impacts + math.sin(angle)


def turned(gamma: float, rtol: float) -> float:
    """Angle of the wheel against the normal of the ground."""
    angle, impacts = wheel(gamma, rtol)
    return angle - gamma + 2.0 * ALPHA * impacts


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


class Clock:
    """Wall and processor time of a block [s]; processor time is that of all threads."""

    def __enter__(self):
        self.start = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *_):
        self.wall = time.perf_counter() - self.start[0]
        self.processor = time.process_time() - self.start[1]

    def rates(self, count: int, steps: int | None = None) -> dict:
        """Rates for ``count`` trajectories, and for the ``steps`` of all of them together."""
        found = {
            "per_second": count / self.processor,
            "wall_per_second": count / self.wall,
            "lanes": count,
        }
        return found if steps is None else found | {"steps_per_second": steps / self.processor}


def run_scipy(name: str, values: np.ndarray, count: int) -> tuple[dict, np.ndarray, np.ndarray]:
    """The row of SciPy, and its most accurate values at some places."""

    def one(value: float, rtol: float) -> float:
        return wheel(value, rtol)[0] if name == "wheel" else ONE[name](value, rtol)

    some = values[:: max(values.size // count, 1)][:count]
    best = np.array([one(x, 1e-13) for x in some])
    with Clock() as clock:
        found = np.array([one(x, 1e-9) for x in some])
    error = float(np.abs(found - best).max())
    row = {"method": "SciPy DOP853, one core", "error": error, **clock.rates(some.size)}
    return row, some, best


def run_jfric(name: str, values: np.ndarray, some: np.ndarray, best: np.ndarray) -> dict:
    """The row of a sweep that follows another one that compiles."""
    import jax

    jax.config.update("jax_enable_x64", True)
    import jfric

    file, parameter, _, observed, end = SYSTEMS[name]
    problem = jfric.load(ROOT / "configs" / f"{file}.toml")
    problem = jfric.set_parameters(problem, {"time.end": end})
    arguments: dict = {"observe": observed, "solver": jfric.EventDriven(rtol=1e-9)}
    with Clock() as first:
        jfric.sweep(problem, {parameter: values}, **arguments)
    with Clock() as clock:
        table = jfric.sweep(problem, {parameter: values}, **arguments)
    found = np.asarray(table[observed])
    places = np.searchsorted(values, some)
    steps = int(np.asarray(table["steps"]).sum())
    return {
        "method": "jfric.sweep",
        "error": float(np.abs(found[places] - best).max()),
        "compile_s": first.processor - clock.processor,
        "note": f"{int((np.asarray(table['status']) != 0).sum())} not ok",
        **clock.rates(values.size, steps),
    }


def _wheel_model(gamma: float, h: float) -> str:
    spokes = []
    for k in range(8):
        # The first spoke stands on the ground, straight down if the wheel has not turned.
        x, z = math.sin(2 * ALPHA * k), -math.cos(2 * ALPHA * k)
        spokes.append(f'<geom type="sphere" size="1e-9" mass="0" pos="{x!r} 0 {z!r}"/>')
    along, down = G * math.sin(gamma), -G * math.cos(gamma)
    where = {"along": repr(along), "down": repr(down), "spokes": "".join(spokes)}
    return _WHEEL.format(h=h, soft=2.0 * h, **where)


def _wheels(mujoco, some: np.ndarray, h: float):
    """A model for each slope, states at the start, and the function that compares final states."""
    models = [mujoco.MjModel.from_xml_string(_wheel_model(x, h)) for x in some]
    c, s = math.cos(ALPHA), math.sin(ALPHA)
    start = [-s, c, -ALPHA, OMEGA * c, OMEGA * s, OMEGA]
    best = np.array([turned(x, 1e-13) for x in some])
    return models, np.tile(start, (some.size, 1)), best, lambda state: state[:, 3]


def _pendulums(mujoco, some: np.ndarray, h: float):
    """Models and states of the pendulums; the second joint turns relative to the first body."""
    model = mujoco.MjModel.from_xml_string(_PENDULUM.format(h=h))
    _, b, u, w = _start()
    start = np.stack([some, b - some, 0 * some + u, 0 * some + w - u], axis=1)
    best = np.array([pendulum(x, 1e-13) for x in some])
    return [model] * some.size, start, best, lambda state: state[:, 1] + state[:, 2]


def run_mujoco(name: str, some: np.ndarray, h: float) -> dict:
    """The row of MuJoCo with steps of ``h`` [s]; without a rate if MuJoCo is not installed."""
    method = f"MuJoCo, h = {h:g}"
    try:
        import mujoco
        from mujoco import rollout
    except ImportError:
        return {"method": method, "note": "MuJoCo is not installed (pip install mujoco)"}
    make = {"wheel": _wheels, "pendulum": _pendulums}[name]
    models, start, best, compared = make(mujoco, some, h)
    threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    data = [mujoco.MjData(models[0]) for _ in range(threads)]
    size = mujoco.mj_stateSize(models[0], mujoco.mjtState.mjSTATE_FULLPHYSICS)
    steps = round(SYSTEMS[name][4] / h)
    # The trajectories are repeated, so that the rate is that of a batch; long ones need fewer
    # repeats.
    tiles = max(min(TILES, 5_000_000 // (steps * some.size)), 1)
    states = np.zeros((tiles * some.size, size))
    # In a state the time comes first.
    states[:, 1 : 1 + start.shape[1]] = np.tile(start, (tiles, 1))
    with Clock() as clock:
        found, _ = rollout.rollout(models * tiles, data, states, nstep=steps)
    error = np.abs(compared(found[:, -1]) - np.tile(best, tiles))
    rates = clock.rates(len(states), len(states) * steps)
    return {"method": method, "error": float(error.max()), **rates}


#: SciPy's function for the result at one value.
ONE = {"contacts": hub, "pendulum": pendulum}


def printed(name: str, found: dict) -> str:
    """A row of the table."""
    rate, wall, error = (found.get(k, math.nan) for k in ("per_second", "wall_per_second", "error"))
    compiled, steps = found.get("compile_s"), found.get("steps_per_second")
    extra = [found.get("note"), compiled and f"compilation {compiled:.1f} s"]
    extra += [steps and f"{steps:,.0f} steps/s, {steps / rate:,.0f} each"]
    note = "; ".join(x for x in extra if x)
    return f"{name:<9} {found['method']:<23} {rate:>9,.0f}/s {wall:>9,.0f}/s  {error:8.1e}  {note}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--lanes", type=int, default=100_000)
    parser.add_argument("--scipy", type=int, default=50, help="trajectories of the others")
    parser.add_argument("--only", default="wheel,contacts,pendulum")
    arguments = parser.parse_args()
    import jfric

    jfric.compile_quickly()
    jfric.use_cores()
    rows = []
    if not arguments.json:
        print("system    method                   each core      wall      error")
    for name in arguments.only.split(","):
        values = np.linspace(*SYSTEMS[name][2], arguments.lanes)
        row, some, best = run_scipy(name, values, arguments.scipy)
        own = [run_jfric(name, values, some, best), row]
        own += [run_mujoco(name, some, h) for h in STEPS.get(name, ())]
        for found in own:
            rows.append({"system": name, **found})
            if not arguments.json:
                print(printed(name, found))
    if arguments.json:
        print(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
