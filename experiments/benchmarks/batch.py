"""Many trajectories: VE0116 swept over the coefficient of friction.

Each lane is one trajectory of VE0116 to 4 s (2 to 10 events); the displacement at the end is
compared with the closed form. mu runs over 0.03 .. 0.4, in order unless ``--shuffle`` is given:
neighbouring lanes of a sweep have about the same number of events.

- jfric: the public API under ``jit(vmap(...))``, in chunks that fit the cache, one device for each
  core, with the settings of the command line (``jfric.numerics.compilation.compile_quickly``).
  Exact flow with its certificate that no event is missed, or ``--flow runge-kutta``.
- numba, Taylor: the same algorithm written by hand for this one system: Taylor flow of order 16,
  Bernstein certificate, Newton on the guard; compiled, all cores.
- numba, closed form: half cosines; the limit for somebody who solves the system by hand.
- jfric.sweep: the same trajectories as the table of a sweep, and two larger systems: SDND106 to
  0.34 s over its kinetic friction, Janovsky's example 4.2 to 377 s over its coefficient of
  friction.
- SciPy: ``solve_ivp``, DOP853, rtol 1e-12, events, restarts; a few lanes, extrapolated, one core.
- MuJoCo and Siconos: see ``competitors.py``.

    python experiments/benchmarks/batch.py [--json] [--lanes 100000] [--chunk 128] [--devices 2]
        [--flow runge-kutta --rtol 1e-9]
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from competitors import run_mujoco, run_siconos
from single_trajectory import machine

ROOT = Path(__file__).resolve().parents[2]
M, K, FX, FZ, END = 100.0, 5000.0, 1500.0, 1000.0, 4.0


def exact(mu: np.ndarray, t: float = END) -> np.ndarray:
    """Closed-form displacement at ``t``: half cosines about 0.3 -+ d, d = mu Fz / k."""
    d, centre, omega = mu * FZ / K, FX / K, math.sqrt(K / M)
    half = math.pi / omega
    count = np.ceil((centre / d - 1.0) / 2.0 - 1e-12)
    phase = np.minimum(np.floor(t / half), count)
    sign = np.where(phase % 2 == 0, 1.0, -1.0)
    turning = centre - sign * (centre - 2.0 * phase * d)
    middle = centre - sign * d
    moving = middle + (turning - middle) * np.cos(omega * (t - phase * half))
    return np.where(phase >= count, turning, moving)


def rate(run: Callable[[], object], lanes: int, repeats: int) -> float:
    """Trajectories per second, median of ``repeats`` runs after one that warms up."""
    run()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return lanes / statistics.median(times)


def run_jfric(
    mu: np.ndarray, chunk: int, devices: int, flow: str, rtol: float, repeats: int
) -> dict:
    import jax
    import jax.numpy as jnp
    from jax.sharding import AxisType, PartitionSpec

    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_num_cpu_devices", devices)
    jax.config.update("jax_enable_compilation_cache", False)
    import jfric

    problem = jfric.load(ROOT / "configs" / "ve0116.toml")
    # No event log, because only the final state is needed.
    solver = jfric.EventDriven(flow=flow, rtol=rtol, max_events=0)

    def one(mu):
        lane = jfric.set_parameters(problem, {"friction.mu": mu})
        solution = jfric.simulate(lane, solver=solver)
        return solution.final.q[0], solution.status, solution.steps

    def chunks(mu):
        return jax.lax.map(jax.vmap(one), mu.reshape(-1, chunk))

    mesh = jax.make_mesh((devices,), ("lanes",), axis_types=(AxisType.Auto,))
    lanes = PartitionSpec("lanes")
    # shard_map, so that each device stops its loops independently.
    sweep = jax.jit(
        jax.shard_map(chunks, mesh=mesh, in_specs=lanes, out_specs=lanes, check_vma=False)
    )
    # Filled up to whole chunks; the filling does not count as work.
    full = -(-mu.size // (chunk * devices)) * chunk * devices
    filled = jnp.asarray(np.concatenate([mu, np.full(full - mu.size, mu[-1])]))
    start = time.perf_counter()
    compiled = sweep.lower(filled).compile()
    compile_s = time.perf_counter() - start
    speed = rate(lambda: jax.block_until_ready(compiled(filled)), mu.size, repeats)
    u, status, steps = (np.asarray(x).ravel()[: mu.size] for x in compiled(filled))
    return {
        "method": f"jfric, {flow} flow, jit(vmap), {devices} devices",
        "per_second": speed,
        "error": float(np.abs(u - exact(mu)).max()),
        "compile_s": compile_s,
        "lanes": mu.size,
        "note": f"{int((status != 0).sum())} lanes not ok; passes: mean {steps.mean():.1f}, "
        f"most {steps.max()}",
    }


#: Systems of ``run_sweep``: file, varied parameter, end [s], lanes per lane of the batch.
SWEEPS = (
    ("ve0116", "friction.mu", (0.03, 0.4), 4.0, 1.0),
    ("sdnd106", "friction.mu_d", (0.1, 0.3), 0.34, 1.0),
    ("janovsky_4_2_coulomb", "parameters.F", (0.2, 0.4), 120 * math.pi, 0.01),
)


def run_sweep(lanes: int, devices: int, flow: str, rtol: float) -> list[dict]:
    """``jfric.sweep`` after a short one that compiles."""
    import jax

    jax.config.update("jax_enable_x64", True)
    import jfric

    rows = []
    for name, parameter, (low, high), end, share in SWEEPS:
        problem = jfric.load(ROOT / "configs" / f"{name}.toml")
        problem = jfric.set_parameters(problem, {"time.end": end})
        count = max(int(lanes * share), 1)
        observed = f"final.{problem.axes[-1]}"
        arguments: dict = {
            "observe": observed,
            "solver": jfric.EventDriven(flow=flow, rtol=rtol),
            "devices": devices,
        }
        start = time.perf_counter()
        # The same number of lanes, so that the programs have the shapes of the measured run.
        jfric.sweep(problem, {parameter: jfric.Range(low, high, count)}, **arguments)
        compile_s = time.perf_counter() - start
        start = time.perf_counter()
        table = jfric.sweep(problem, {parameter: jfric.Range(low, high, count)}, **arguments)
        seconds = time.perf_counter() - start
        row = {
            "method": f"jfric.sweep, {name}, {flow} flow",
            "per_second": count / seconds,
            "compile_s": compile_s - seconds,
            "lanes": count,
            "note": f"{int((table['status'] != 0).sum())} lanes not ok; passes: mean "
            f"{float(table['steps'].mean()):.1f}, most {int(table['steps'].max())}",
        }
        if name == "ve0116":
            difference = np.asarray(table[observed]) - exact(np.asarray(table[parameter]))
            row["error"] = float(np.abs(difference).max())
        rows.append(row)
    return rows


def numba_kernels():
    """(Taylor loop, closed-form loop), each a function of (mu, result)."""
    import numba

    order = 16
    bernstein = np.array(
        [
            [math.comb(i, j) / math.comb(order, j) for j in range(order + 1)]
            for i in range(order + 1)
        ]
    )

    @numba.njit(fastmath=False)
    def taylor_lane(mu, bernstein):
        cap, omega2 = mu * FZ, K / M
        h_full = 1.45 / math.sqrt(omega2)
        t, u, v, s = 0.0, 0.0, 0.0, 0.0
        c = np.empty(order + 2)
        h_next = h_full
        while t < END:
            if v == 0.0:
                surplus = FX - K * u
                # A tie at the edge of the cone is stick.
                if abs(surplus) <= cap * (1.0 + 1e-12):
                    return u
                s = 1.0 if surplus > 0.0 else -1.0
            h = min(h_next, END - t)
            x = omega2 * h * h
            c[0], c[1] = u, v * h
            c[2] = ((FX - s * cap) / M * h * h - x * u) / 2.0
            for j in range(1, order):
                c[j + 2] = -x * c[j] / ((j + 1.0) * (j + 2.0))
            # Signed velocity as a polynomial g_j = s (j + 1) c_{j+1}, zero at the start or not.
            lead = 1 if v == 0.0 else 0
            changes, last = 0, 1.0
            for i in range(lead, order + 1):
                b = 0.0
                for j in range(i + 1):
                    b += bernstein[i, j] * (j + 1.0) * c[j + 1]
                if b * s * last < 0.0:
                    changes += 1
                    last = -last
            if changes > 1:
                h_next = 0.5 * h
                continue
            root = 1.0
            if changes == 1:
                low, high, root = 0.0, 1.0, 0.7
                for _ in range(30):
                    g, slope = 0.0, 0.0
                    for j in range(order, -1, -1):
                        slope = slope * root + g
                        g = g * root + s * (j + 1.0) * c[j + 1]
                    if g > 0.0:
                        low = root
                    else:
                        high = root
                    new = root - g / (slope - lead * g / root)
                    if not low <= new <= high:
                        new = 0.5 * (low + high)
                    if abs(new - root) < 1e-15:
                        root = new
                        break
                    root = new
            value, speed = 0.0, 0.0
            for j in range(order + 1, -1, -1):
                speed = speed * root + value
                value = value * root + c[j]
            u = value
            v = 0.0 if changes == 1 else speed / h
            t = END if (root == 1.0 and h == END - t) else t + root * h
            h_next = h_full
        return u

    @numba.njit(fastmath=False)
    def closed_lane(mu):
        cap, omega = mu * FZ, math.sqrt(K / M)
        half = math.pi / omega
        t, u = 0.0, 0.0
        while True:
            surplus = FX - K * u
            if abs(surplus) <= cap * (1.0 + 1e-12):
                return u
            middle = (FX - math.copysign(cap, surplus)) / K
            if t + half >= END:
                return middle + (u - middle) * math.cos(omega * (END - t))
            u = 2.0 * middle - u
            t += half

    @numba.njit(parallel=True)
    def taylor(mu, result):
        for i in numba.prange(mu.size):
            result[i] = taylor_lane(mu[i], bernstein)

    @numba.njit(parallel=True)
    def closed(mu, result):
        for i in numba.prange(mu.size):
            result[i] = closed_lane(mu[i])

    return (("numba, Taylor 16, certificate", taylor), ("numba, closed form", closed))


def run_numba(mu: np.ndarray, repeats: int) -> list[dict]:
    try:
        kernels = numba_kernels()
    except ImportError:
        return [{"method": "numba", "note": "not installed"}]
    rows = []
    for name, kernel in kernels:
        result = np.empty_like(mu)
        start = time.perf_counter()
        kernel(mu, result)
        compile_s = time.perf_counter() - start
        speed = rate(lambda k=kernel, r=result: k(mu, r), mu.size, repeats)
        rows.append(
            {
                "method": name,
                "per_second": speed,
                "error": float(np.abs(result - exact(mu)).max()),
                "compile_s": compile_s,
                "lanes": mu.size,
            }
        )
    return rows


def scipy_lane(mu: float) -> float:
    from scipy.integrate import solve_ivp

    cap, t, u = mu * FZ, 0.0, 0.0

    def at_rest(t, y):
        return y[1]

    at_rest.terminal = True
    while True:
        surplus = FX - K * u
        if abs(surplus) <= cap * (1.0 + 1e-9):
            return u
        s = math.copysign(1.0, surplus)
        at_rest.direction = -s
        solution = solve_ivp(
            lambda t, y, s=s: (y[1], (FX - s * cap - K * y[0]) / M),
            (t, END), (u, 0.0), method="DOP853", rtol=1e-12, atol=1e-15, events=at_rest,
        )  # fmt: skip
        t, u = float(solution.t[-1]), float(solution.y[0, -1])
        if solution.status != 1:
            return u


def run_scipy(mu: np.ndarray, lanes: int) -> dict:
    some = mu[:: max(mu.size // lanes, 1)][:lanes]
    scipy_lane(0.1)
    start = time.perf_counter()
    u = np.array([scipy_lane(float(x)) for x in some])
    seconds = time.perf_counter() - start
    return {
        "method": "SciPy DOP853, rtol 1e-12, one core",
        "per_second": some.size / seconds,
        "error": float(np.abs(u - exact(some)).max()),
        "lanes": int(some.size),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--lanes", type=int, default=100_000)
    parser.add_argument("--chunk", type=int, default=128, help="lanes in one vmap")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    parser.add_argument("--devices", type=int, default=cores, help="CPU devices of jax")
    parser.add_argument("--flow", choices=("exact", "runge-kutta"), default="exact")
    parser.add_argument(
        "--rtol", type=float, default=1e-9, help="relative tolerance of the Runge-Kutta flow"
    )
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--shuffle", action="store_true", help="lanes in random order")
    arguments = parser.parse_args()
    mu = np.linspace(0.03, 0.4, arguments.lanes)
    if arguments.shuffle:
        np.random.default_rng(0).shuffle(mu)
    chunk, devices = arguments.chunk, arguments.devices
    flow, rtol = arguments.flow, arguments.rtol
    from jfric.numerics.compilation import compile_quickly

    compile_quickly()
    rows = [
        run_jfric(mu, chunk, devices, flow, rtol, arguments.repeats),
        *run_sweep(arguments.lanes, devices, flow, rtol),
        *run_numba(mu, arguments.repeats),
        run_scipy(mu, 20),
        *run_mujoco(mu, 64, exact),
        *run_siconos(mu, 4, exact),
    ]
    for row in rows:
        if "per_second" in row:
            row["ratio"] = row["per_second"] / rows[0]["per_second"]
    versions = machine()
    try:
        import numba

        versions["numba"] = numba.__version__
    except ImportError:
        pass
    if arguments.json:
        print(json.dumps({"machine": versions, "rows": rows}, indent=1))
        return
    print(", ".join(f"{k} {v}" for k, v in versions.items()))
    head = f"{'method':42} {'lanes':>7} {'per second':>12} {'ratio':>8} {'error [m]':>10}  compile"
    print(head + "\n" + "-" * len(head))
    for r in rows:
        if "per_second" not in r:
            print(f"{r['method']:42} {r['note']}")
            continue
        built = f"{r['compile_s']:7.2f}s" if "compile_s" in r else ""
        error = f"{r['error']:.1e}" if "error" in r else "-"
        print(
            f"{r['method']:42} {r['lanes']:>7} {r['per_second']:>12,.0f} {r['ratio']:>8.3g} "
            f"{error:>10} {built:>8} {r.get('note', '')}"
        )
    print("ratio: speed divided by jfric's")


if __name__ == "__main__":
    main()
