"""Scaling of sweeps with lanes, cores, degrees of freedom, uneven lanes, memory, derivatives.

All measurements use ``jfric.sweep`` and ``jfric.observe``, each in a separate process.

- lanes: VE0116 over mu, one number observed, on one core and on all.
- dofs: chains of n masses with n dry frictions, damped and shaken.
- uneven: 0.1 % of the lanes need a hundred times the passes, spread over the whole sweep; compared
  with the sweep without them, and with one loop for all (``jit(vmap(simulate))``).
- memory: peak of a sweep into a store, with 1/10 of the lanes and with all.
- derivatives: observables and their derivatives with respect to one parameter, by ``jacfwd``, by
  ``grad``, and by ``grad`` with stored states (``adjoint="reverse"``).

    python experiments/benchmarks/scaling.py [--lanes 10000000] [--part lanes] [--json]
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from single_trajectory import machine

ROOT = Path(__file__).resolve().parents[2]
PARTS = ("lanes", "dofs", "uneven", "memory", "derivatives")
OBSERVED = "final.u"
MODES = ("plain", "forward", "reverse", "checkpoints")
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def start_jax(devices: int):
    import jax

    from jfric.numerics.compilation import compile_quickly

    # As on the command line.
    compile_quickly()
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_num_cpu_devices", devices)
    import jfric

    return jfric


def seconds(call) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def oscillator(jfric):
    return jfric.load(ROOT / "configs" / "ve0116.toml")


def chain(jfric, n: int):
    """Masses in a row between springs and dampers, each with dry friction, the first one shaken."""
    names = [f"x{i}" for i in range(n)]
    pairs = list(itertools.pairwise(names))
    elements = {
        "mass": {x: jfric.Mass(x, 1.0) for x in names},
        "spring": {"wall": jfric.Spring(names[0], 1.0)}
        | {f"{a}_{b}": jfric.Spring(jfric.between(a, b), 1.0) for a, b in pairs},
        "damper": {x: jfric.Damper(x, 0.05) for x in names},
        "friction": {x: jfric.Friction(x, jfric.Coulomb("$mu"), N=1.0) for x in names},
        "load": jfric.Load(names[0], jfric.Harmonic(2.0, 0.7)),
    }
    return jfric.Problem(names, elements, time=20.0, parameters={"mu": 0.3})


def measure_lanes(lanes: int, devices: int) -> dict:
    jfric = start_jax(devices)
    problem = oscillator(jfric)

    def sweep(count):
        values = {"friction.mu": jfric.Range(0.03, 0.4, count)}
        return jfric.sweep(problem, values, OBSERVED)

    first = seconds(lambda: sweep(lanes))
    warm = seconds(lambda: sweep(lanes)) if first < 100.0 else first
    return {"seconds": warm, "per_second": lanes / warm, "compile": first - warm}


def measure_dofs(lanes: int, n: int) -> dict:
    jfric = start_jax(CORES)
    problem = chain(jfric, n)

    def sweep():
        values = {"parameters.mu": jfric.Range(0.05, 0.6, lanes)}
        return jfric.sweep(problem, values, f"final.x{n - 1}")

    first = seconds(sweep)
    start = time.perf_counter()
    table = sweep()
    warm = time.perf_counter() - start
    return {
        "per_second": lanes / warm,
        "compile": first - warm,
        "passes": float(table["steps"].mean()),
        "failed": int((table["status"] != 0).sum()),
    }


def measure_uneven(lanes: int, kind: str) -> dict:
    jfric = start_jax(CORES)
    import jax

    problem = oscillator(jfric)
    k = np.full(lanes, 5000.0)
    if kind != "even":
        # A stiffness 10^4 times as large causes 100 times the half waves.
        k[np.random.default_rng(0).choice(lanes, max(lanes // 1000, 1), replace=False)] *= 1e4
    mu = np.full(lanes, 0.002)
    solver = jfric.EventDriven(max_events=0)
    if kind == "one loop":

        @jax.jit
        def run(k):
            def one(k):
                lane = jfric.set_parameters(problem, {"spring.k": k, "friction.mu": 0.002})
                final = jfric.simulate(lane, solver)
                return final.final.q[0], final.steps

            return jax.lax.map(jax.vmap(one), k.reshape(-1, 1000))

        rows = k[: max(lanes // 1000, 1) * 1000]
        jax.block_until_ready(run(rows))
        start = time.perf_counter()
        steps = np.asarray(run(rows)[1])
        return {"seconds": time.perf_counter() - start, "most": int(steps.max())}
    values = {"spring.k": k, "friction.mu": mu}
    jfric.sweep(problem, values, OBSERVED, method="zip")
    start = time.perf_counter()
    table = jfric.sweep(problem, values, OBSERVED, method="zip")
    found = {"seconds": time.perf_counter() - start, "most": int(table["steps"].max())}
    return found | {"mean": float(table["steps"].mean())}


def measure_memory(lanes: int, _: str) -> dict:
    jfric = start_jax(CORES)
    problem = oscillator(jfric)
    from jfric.sweeps.sweeping import execute, prepare

    side = round(lanes**0.5)
    values = {
        "friction.mu": jfric.Range(0.03, 0.4, side),
        "load.F": jfric.Range(1000.0, 2000.0, side),
    }
    with tempfile.TemporaryDirectory() as folder:
        _, summary = execute(prepare(problem, values, OBSERVED), store=Path(folder) / "sweep.zarr")
        disk = sum(f.stat().st_size for f in Path(folder).rglob("*") if f.is_file())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {"lanes": side * side, "peak": peak, "disk": disk, "seconds": summary.seconds}


def measure_derivatives(lanes: int, mode: str) -> dict:
    jfric = start_jax(1)
    import jax
    import jax.numpy as jnp

    problem = oscillator(jfric)
    names = ["final.u", "max.v", "dissipated"]
    adjoint = "reverse" if mode == "checkpoints" else "auto"
    solver = jfric.EventDriven(adjoint=adjoint, max_steps=48)
    gradient = jax.grad(lambda k, mu: jnp.sum(values(k, mu)))

    def values(k, mu):
        lane = jfric.set_parameters(problem, {"spring.k": k, "friction.mu": mu})
        found = jfric.observe(lane, names, solver).values
        return jnp.stack([found[name] for name in names])

    one = {
        "plain": values,
        "forward": jax.jacfwd(values),
        "reverse": gradient,
        "checkpoints": gradient,
    }[mode]
    chunk = min(lanes, 1000)
    mu = jnp.linspace(0.03, 0.4, lanes // chunk * chunk).reshape(-1, chunk)
    run = jax.jit(lambda mu: jax.lax.map(jax.vmap(lambda m: one(5000.0, m)), mu))
    first = seconds(lambda: jax.block_until_ready(run(mu)))
    warm = min(seconds(lambda: jax.block_until_ready(run(mu))) for _ in range(3))
    return {"per_second": mu.size / warm, "compile": first - warm}


def plan(part: str, lanes: int) -> list[tuple[int, object]]:
    """Lanes and variant of each measurement."""
    if part == "lanes":
        counts = [10**e for e in range(3, 8) if 10**e <= max(lanes, 1000)]
        return [(count, cores) for cores in sorted({1, CORES}) for count in counts]
    if part == "dofs":
        return [(max(min(lanes, 100_000) // n**2, 64), n) for n in (1, 2, 4, 8, 16)]
    if part == "uneven":
        return [(min(lanes, 100_000), kind) for kind in ("even", "uneven", "one loop")]
    if part == "memory":
        return [(max(lanes // 10, 100), "tenth"), (lanes, "all")]
    return [(min(lanes, 100_000), mode) for mode in MODES]


def measure(part: str, lanes: int, variant: object) -> dict:
    """One measurement, in a separate process."""
    call = [sys.executable, __file__, "--measure", json.dumps([part, lanes, variant])]
    done = subprocess.run(call, capture_output=True, text=True)
    row = {"part": part, "lanes": lanes, "variant": variant}
    if done.returncode:
        return row | {"note": (done.stderr.strip().splitlines() or ["failed"])[-1]}
    return row | json.loads(done.stdout.strip().splitlines()[-1])


def with_ratios(rows: list[dict]) -> None:
    """Add ratios to the first row of the part: time of an uneven sweep, cost of derivatives."""
    first = rows[0]
    for row in rows:
        if "note" in row or "note" in first:
            continue
        if row["part"] == "uneven":
            row["times_even"] = row["seconds"] / first["seconds"]
        if row["part"] == "derivatives":
            row["times_plain"] = first["per_second"] / row["per_second"]


def text(row: dict) -> str:
    units = {"peak": 1e-6, "disk": 1e-6}
    names = {"peak": "peak [MB]", "disk": "disk [MB]", "per_second": "per second"}
    shown = (k for k in row if k not in ("part", "lanes", "variant"))
    found = [
        f"{names.get(k, k)} {row[k] * units.get(k, 1.0):,.4g}"
        if isinstance(row[k], float | int)
        else f"{row[k]}"
        for k in shown
    ]
    what = {"lanes": "cores", "dofs": "dofs"}.get(row["part"], "")
    return f"{row['part']:12} {row['lanes']:>11,} {what} {row['variant']:<9} " + ", ".join(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--lanes", type=int, default=10_000_000, help="lanes of the largest sweep")
    parser.add_argument("--part", choices=PARTS, action="append", help="only this; repeatable")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        part, lanes, variant = json.loads(arguments.measure)
        print("\n" + json.dumps(globals()[f"measure_{part}"](lanes, variant)))
        return
    versions = machine()
    if not arguments.json:
        print(", ".join(f"{k} {v}" for k, v in versions.items()))
    everything = []
    for part in arguments.part or PARTS:
        rows = [measure(part, lanes, variant) for lanes, variant in plan(part, arguments.lanes)]
        with_ratios(rows)
        everything += rows
        if not arguments.json:
            print("\n".join(text(row) for row in rows), flush=True)
    if arguments.json:
        print(json.dumps({"machine": versions, "rows": everything}, indent=1))


if __name__ == "__main__":
    main()
