"""One trajectory: compile time, warm run time and error of jfric, SciPy and Siconos.

Systems: VE0116 to 4 s, Janovsky (2015) 4.1 and 4.2 (Coulomb impacts) to 377 s. The error is the
largest difference of a displacement from the exact value over the check times, divided by the
peak of the component.

- jfric: event-driven, exact flow; compiled ahead of time without any compilation cache; the run is
  the median of many, from the problem to the states at the check times and the status on the host.
  ``whole``: the run with all arrays of a solution. Each array costs JAX some microseconds, all
  together more than the simulation of VE0116.
- SciPy: ``solve_ivp`` with DOP853, rtol 1e-12, one event function for each way out of the mode,
  restarted at each event with the new mode's equations.
- Siconos (Debian's python3-siconos, if /usr/bin/python3 can import it): Moreau-Jean time stepping,
  theta = 1/2, at several steps; its error falls with the first power of the step, because events
  fall between steps.

    python experiments/benchmarks/single_trajectory.py [--json] [--repeats 200] [--quick]
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]

# Exact values: VE0116 from its closed form, Janovsky segment by segment in closed form.
VE0116_TIMES = np.array([0.25, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0])
JANOVSKY_TIMES = np.array([10.0, 50.0, 100.0, 200.0, 300.0, 376.99])
#: Displacements (u_nu, u_tau) at these times; u_nu is minus the gap.
JANOVSKY_STATES = {
    "janovsky_4_1": [
        (0.0, 0.33939342027690417),
        (0.0, 0.3623448103062179),
        (0.0, -0.5781546102767835),
        (0.0, 0.3616485542299593),
        (0.0, -0.45787500187309704),
        (0.0, -0.2946254604052216),
    ],
    "janovsky_4_2_coulomb": [
        (0.0, 0.6002615951120487),
        (0.0, 0.5660495160533341),
        (-0.18280503462894332, -0.6882319343765527),
        (0.0, 0.5667964399093695),
        (0.0, 0.043681440904504557),
        (0.0, 0.22826751765662073),
    ],
}
#: Peaks of (u_nu, u_tau).
JANOVSKY_PEAKS = {"janovsky_4_1": (1.0, 0.8), "janovsky_4_2_coulomb": (1.646, 2.305)}
JANOVSKY_DATA = {"janovsky_4_1": (0.4, 1.3), "janovsky_4_2_coulomb": (0.3, 0.5)}
JANOVSKY_END = 120.0 * math.pi


def ve0116_exact(t: np.ndarray, mu: float = 0.1) -> np.ndarray:
    """Closed-form displacement: half cosines about 0.3 -+ d with d = mu Fz / k."""
    d, centre, half = mu * 1000.0 / 5000.0, 0.3, math.pi / math.sqrt(50.0)
    count = math.ceil((centre / d - 1.0) / 2.0 - 1e-12)
    phase = np.minimum(np.floor(t / half), count).astype(int)
    turning = centre - (-1.0) ** phase * (centre - 2.0 * phase * d)
    middle = centre - (-1.0) ** phase * d
    moving = middle + (turning - middle) * np.cos(math.sqrt(50.0) * (t - phase * half))
    return np.where(phase >= count, turning, moving)


def error(case: str, q: np.ndarray) -> float:
    """Largest error of the displacements ``q`` (m, n) relative to the component's peak."""
    if case == "ve0116":
        return float(np.abs(q[:, 0] - ve0116_exact(VE0116_TIMES)).max() / 0.56)
    exact, peak = np.array(JANOVSKY_STATES[case]), np.array(JANOVSKY_PEAKS[case])
    # The sign of the normal coordinate is a convention: compare its magnitude.
    normal, tangential = np.abs(q[:, 0]) - np.abs(exact[:, 0]), q[:, 1] - exact[:, 1]
    difference = np.abs(np.column_stack([normal, tangential]))
    return float((difference / peak).max())


def median_time(run: Callable[[], object], repeats: int, limit: float = 20.0) -> float:
    """Median wall time of ``run`` over at most ``repeats`` calls and ``limit`` seconds."""
    times: list[float] = []
    while len(times) < repeats and sum(times) < limit:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


# jfric


def run_jfric(case: str, configs: Path, repeats: int) -> list[dict]:
    import jax
    import jax.numpy as jnp

    import jfric
    from jfric.numerics.compilation import compile_quickly

    compile_quickly()
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_enable_compilation_cache", False)
    problem = jfric.load(configs / f"{case}.toml")
    ts = jnp.asarray(VE0116_TIMES if case == "ve0116" else JANOVSKY_TIMES)
    solver = jfric.EventDriven(flow="exact")

    def simulate(problem, ts):
        return jfric.simulate(problem, solver=solver, ts=ts)

    def states(problem, ts):
        solution = simulate(problem, ts)
        return solution.q, solution.status

    start = time.perf_counter()
    lowered = jax.jit(states).lower(problem, ts)
    traced = time.perf_counter() - start
    start = time.perf_counter()
    compiled = lowered.compile()
    built = time.perf_counter() - start
    whole = jax.jit(simulate).lower(problem, ts).compile()
    solution = whole(problem, ts)
    q, _ = compiled(problem, ts)
    row = {
        "case": case,
        "method": "jfric, exact flow",
        "trace_s": traced,
        "compile_s": traced + built,
        "run_s": median_time(lambda: jax.block_until_ready(compiled(problem, ts)), repeats),
        "whole_s": median_time(lambda: jax.block_until_ready(whole(problem, ts)), repeats),
        "error": error(case, np.asarray(q)),
        "steps": int(solution.steps),
        "events": int(solution.events.count),
        "note": solution.outcome(),
    }
    return [row]


# SciPy


def scipy_ve0116() -> tuple[np.ndarray, int]:
    """(states at the check times, number of events)."""
    from scipy.integrate import solve_ivp

    m, k, load, cap, end = 100.0, 5000.0, 1500.0, 100.0, 4.0
    t, y, events = 0.0, np.zeros(2), 0
    q = np.zeros((VE0116_TIMES.size, 1))

    def at_rest(t, y, *_):
        return y[1]

    at_rest.terminal = True
    while t < end:
        surplus = load - k * y[0]
        # The last stop lies on the edge of the cone: a tie is stick.
        if abs(surplus) <= cap * (1.0 + 1e-9):
            q[t <= VE0116_TIMES] = y[0]
            break
        s = math.copysign(1.0, surplus)
        at_rest.direction = -s
        solution = solve_ivp(
            lambda t, y, s=s: (y[1], (load - s * cap - k * y[0]) / m),
            (t, end), y, method="DOP853", rtol=1e-12, atol=1e-15, events=at_rest,
            dense_output=True,
        )  # fmt: skip
        inside = (t <= VE0116_TIMES) & (solution.t[-1] >= VE0116_TIMES)
        q[inside, 0] = solution.sol(VE0116_TIMES[inside])[0]
        t = float(solution.t[-1])
        y = np.array([solution.y[0, -1], 0.0])
        events += solution.status == 1
    return q, events


def scipy_janovsky(case: str, max_step: float) -> tuple[np.ndarray, int]:
    """Modes free, slip+, slip-, stick of the paper's system, Coulomb impact with e = 0."""
    from scipy.integrate import solve_ivp

    F, f_nu = JANOVSKY_DATA[case]
    b, c, w, end = -1.2, 1.0, 1.0 / 6.0, JANOVSKY_END
    times = JANOVSKY_TIMES
    q = np.zeros((times.size, 2))

    def f_tau(t):
        return math.sin(w * t)

    fields = {
        "free": lambda t, x: (x[1], b * x[0] + c * x[2] + f_nu, x[3],
                              c * x[0] + b * x[2] + f_tau(t)),
        "slip+": lambda t, x: (0.0, 0.0, x[3], (b - F * c) * x[2] + f_tau(t) - F * f_nu),
        "slip-": lambda t, x: (0.0, 0.0, x[3], (b + F * c) * x[2] + f_tau(t) + F * f_nu),
        "stick": lambda t, x: (0.0, 0.0, 0.0, 0.0),
    }  # fmt: skip

    def event(function, direction):
        def g(t, x):
            return function(t, x)

        g.terminal, g.direction = True, direction
        return g

    def press(t, x):
        return c * x[2] + f_nu

    touch = event(lambda t, x: x[0], 1)
    lift = event(press, -1)
    events = {
        "free": [touch],
        "slip+": [event(lambda t, x: x[3], -1), lift],
        "slip-": [event(lambda t, x: x[3], 1), lift],
        "stick": [
            event(lambda t, x: b * x[2] + f_tau(t) - F * press(t, x), 1),
            event(lambda t, x: b * x[2] + f_tau(t) + F * press(t, x), -1),
        ],
    }

    def at_rest(t, x):
        surplus, limit = b * x[2] + f_tau(t), F * press(t, x)
        return "stick" if abs(surplus) <= limit else ("slip+" if surplus > 0 else "slip-")

    t, x, mode, count = 0.0, np.array([0.0, 0.0, 0.0, 0.1]), "slip+", 0
    while t < end:
        # Without a step limit it misses most events: it uses signs at the ends of steps, and stick
        # has no dynamics that would shorten the steps.
        solution = solve_ivp(
            fields[mode], (t, end), x, method="DOP853", rtol=1e-12, atol=1e-14,
            events=events[mode], dense_output=True, max_step=max_step,
        )  # fmt: skip
        inside = (t <= times) & (solution.t[-1] >= times)
        if np.any(inside):
            q[inside] = solution.sol(times[inside])[[0, 2]].T
        t, x = float(solution.t[-1]), solution.y[:, -1].copy()
        if solution.status != 1:
            break
        count += 1
        which = next(i for i, e in enumerate(solution.t_events) if e.size)
        if mode == "free":
            x[3] -= math.copysign(min(F * x[1], abs(x[3])), x[3])
            x[0] = x[1] = 0.0
            mode = at_rest(t, x) if x[3] == 0.0 else ("slip+" if x[3] > 0 else "slip-")
        elif mode == "stick":
            mode = "slip+" if which == 0 else "slip-"
        elif which == 1:
            mode = "free"
        else:
            x[3] = 0.0
            mode = at_rest(t, x)
    return q, count


def run_scipy(case: str, repeats: int) -> list[dict]:
    rows = []
    for max_step in [math.inf] if case == "ve0116" else [math.inf, 0.5]:
        solve = scipy_ve0116 if case == "ve0116" else lambda h=max_step: scipy_janovsky(case, h)
        q, events = solve()
        limit = "" if max_step == math.inf else f", max_step {max_step:g}"
        rows.append(
            {
                "case": case,
                "method": f"SciPy DOP853, rtol 1e-12{limit}",
                "run_s": median_time(solve, min(repeats, 5)),
                "error": error(case, q),
                "events": int(events),
            }
        )
    return rows


# Siconos: run by the system's Python in a separate process, see ``main``.


def siconos_model(case: str, h: float, mu: float = 0.1):
    """(simulation, body, forces(t) at mid-step, end, objects to keep alive); ``mu`` of VE0116."""
    import siconos.kernel as sk

    if case == "ve0116":
        # A second coordinate presses the mass on the ground with the normal force.
        end = 4.0
        mass, stiffness = np.diag([1.0, 100.0]), np.diag([0.0, 5000.0])
        v0 = np.zeros(2)

        def forces(t):
            return np.array([1000.0, 1500.0])
    else:
        end, (mu, f_nu) = JANOVSKY_END, JANOVSKY_DATA[case]
        mass, stiffness = np.eye(2), np.array([[1.2, -1.0], [-1.0, 1.2]])
        v0 = np.array([0.0, 0.1])

        def forces(t):
            return np.array([f_nu, math.sin((t + 0.5 * h) / 6.0)])

    body = sk.LagrangianLinearTIDS(np.zeros(2), v0, mass)
    body.setKPtr(stiffness)
    body.setFExtPtr(forces(0.0))
    law = sk.NewtonImpactFrictionNSL(0.0, 0.0, mu, 2)
    # Normal direction: the gap is the negative of the first coordinate.
    relation = sk.LagrangianLinearTIR(np.array([[-1.0, 0.0], [0.0, 1.0]]))
    interaction = sk.Interaction(law, relation)
    problem = sk.FrictionContact(2)
    model = sk.NonSmoothDynamicalSystem(0.0, end)
    model.insertDynamicalSystem(body)
    model.link(interaction, body)
    scheme, discretisation = sk.MoreauJeanOSI(0.5), sk.TimeDiscretisation(0.0, h)
    simulation = sk.TimeStepping(model, discretisation, scheme, problem)
    alive = (law, relation, interaction, problem, model, scheme, discretisation)
    return simulation, body, forces, end, alive


def siconos_worker(case: str, h: float) -> dict:
    times = VE0116_TIMES if case == "ve0116" else JANOVSKY_TIMES
    # The step nearest to each check time, and its distance from it.
    nearest = np.round(times / h).astype(int)
    offset = times - nearest * h
    simulation, body, forces, end, _alive = siconos_model(case, h)
    q = np.zeros((times.size, 2))
    steps, following = int(end / h + 1e-9), 0
    start = time.perf_counter()
    for step in range(1, steps + 1):
        if case != "ve0116":
            body.setFExtPtr(forces((step - 1) * h))
        simulation.computeOneStep()
        simulation.nextStep()
        while following < times.size and nearest[following] == step:
            q[following] = body.q() + offset[following] * body.velocity()
            following += 1
    seconds = time.perf_counter() - start
    return {
        "case": case,
        "method": f"Siconos Moreau-Jean, h = {h:g}",
        "run_s": seconds,
        "error": error(case, q[:, 1:] if case == "ve0116" else q),
        "steps": steps,
    }


def run_siconos(case: str, steps: list[float]) -> list[dict]:
    rows = []
    for h in steps:
        command = ["/usr/bin/python3", __file__, "--siconos-worker", case, str(h)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        except (OSError, subprocess.TimeoutExpired) as failure:
            rows.append({"case": case, "method": "Siconos", "note": type(failure).__name__})
            break
        if done.returncode == 3:
            rows.append({"case": case, "method": "Siconos", "note": "not installed"})
            break
        if done.returncode:
            note = (done.stderr.strip().splitlines() or ["failed"])[-1]
            rows.append({"case": case, "method": f"Siconos, h = {h:g}", "note": note})
            continue
        # Siconos prints to the same stream; the result is the last line.
        rows.append(json.loads(done.stdout.strip().splitlines()[-1]))
    return rows


# Report


def machine() -> dict:
    """Processor, cores and versions."""
    from importlib.metadata import version

    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [x for x in info.read_text().splitlines() if x.startswith("model name")]
        model = names[0].split(":", 1)[1].strip() if names else model
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "processor": model,
        "cores": cores,
        "python": platform.python_version(),
        **{name: version(name) for name in ("jfric", "jax", "jaxlib", "numpy", "scipy")},
    }


def table(rows: list[dict]) -> str:
    head = (
        f"{'case':21} {'method':38} {'compile':>9} {'run':>11} {'whole':>11} {'error':>9} "
        f"{'events':>6} ratio"
    )
    lines = [head, "-" * len(head)]
    base = {r["case"]: r["run_s"] for r in rows if r["method"].startswith("jfric") and "run_s" in r}
    for r in rows:
        compile_s = f"{r['compile_s']:8.2f}s" if "compile_s" in r else "-"
        run = f"{1e3 * r['run_s']:9.3f}ms" if "run_s" in r else "-"
        whole = f"{1e3 * r['whole_s']:9.3f}ms" if "whole_s" in r else "-"
        err = f"{r['error']:.1e}" if "error" in r else "-"
        known = "run_s" in r and r["case"] in base
        ratio = f"{r['run_s'] / base[r['case']]:.4g}" if known else ""
        note = r.get("note", "")
        lines.append(
            f"{r['case']:21} {r['method']:38} {compile_s:>9} {run:>11} {whole:>11} {err:>9} "
            f"{r.get('events', '-'):>6} {ratio} {note}"
        )
    return "\n".join([*lines, "ratio: run time divided by jfric's for the same case"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--repeats", type=int, default=300, help="timed runs of jfric")
    parser.add_argument("--quick", action="store_true", help="only the coarser Siconos steps")
    parser.add_argument("--configs", type=Path, default=ROOT / "configs", help="folder of configs")
    parser.add_argument("--only", nargs="*", help="cases", default=None)
    parser.add_argument("--siconos-worker", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.siconos_worker:
        try:
            import siconos.kernel  # noqa: F401
        except ImportError:
            sys.exit(3)
        case, h = arguments.siconos_worker
        print("\n" + json.dumps(siconos_worker(case, float(h))))
        return
    rows: list[dict] = []
    steps = {"ve0116": [1e-3, 1e-4, 1e-5], "janovsky_4_1": [1e-2, 1e-3]}
    for case in ("ve0116", "janovsky_4_1", "janovsky_4_2_coulomb"):
        if arguments.only and case not in arguments.only:
            continue
        ladder = steps.get(case, steps["janovsky_4_1"])
        try:
            rows += run_jfric(case, arguments.configs, arguments.repeats)
        except Exception as failure:
            # A missing row must not hide the others.
            rows.append({"case": case, "method": "jfric", "note": str(failure)[:100]})
        rows += run_scipy(case, arguments.repeats)
        rows += run_siconos(case, ladder[:1] if arguments.quick else ladder)
    report = {"machine": machine(), "rows": rows}
    if arguments.json:
        print(json.dumps(report, indent=1))
        return
    print(", ".join(f"{k} {v}" for k, v in report["machine"].items()))
    print(table(rows))


if __name__ == "__main__":
    main()
