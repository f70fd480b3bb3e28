"""Sweeps on an accelerator and on this machine's cores, by the same program.

Each system runs as :func:`jfric.sweep` runs it, in rows that the platform chooses, all trajectories
up to their end. The script prints compile time, rate (median), the number of kernels that one pass
of the loop starts (counted in the compiled program: a conditional by its larger branch, an inner
loop by one round), and the largest deviation of a final position from the one on the cores. Without
an accelerator only the cores are measured.

    python experiments/benchmarks/gpu.py [--json] [--lanes 100000] [--only ve0116,chain2]
        [--kernels general,lowered]
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from single_trajectory import machine

ROOT = Path(__file__).resolve().parents[2]
#: Files: varied parameter, end [s], trajectories per lane of ``--lanes``.
FILES = {
    "ve0116": ("friction.mu", (0.03, 0.4), 4.0, 1.0),
    "sdnd106": ("friction.mu_d", (0.1, 0.3), 0.34, 1.0),
    "janovsky_4_2_coulomb": ("parameters.F", (0.2, 0.4), 120 * math.pi, 0.01),
}
#: Chains of ``kernels.py``.
CHAINS = {"chain2": 0.1, "chain4": 0.05}
#: Instructions that start no kernel.
FREE = {"parameter", "constant", "tuple", "get-tuple-element", "bitcast", "after-all"}


def kernels_per_pass(program: str) -> int:
    """Number of kernels that one round of the loop of passes starts. That is the loop with most
    kernels, apart from those within its conditionals and inner loops."""
    computations: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in program.splitlines():
        if opened := re.match(r"(?:ENTRY )?%?([\w.\-]+) \(.*\{$", line):
            lines = computations.setdefault(opened[1], [])
        elif " = " in line:
            lines.append(line.strip())
    known: dict[str, int] = {}

    def started(name: str) -> int:
        if name not in known:
            known[name] = sum(by(line) for line in computations.get(name, ()))
        return known[name]

    def operation_of(line: str) -> str:
        found = re.search(r"[\])}] ([a-z][\w\-]*)\(", line)
        return "" if found is None or found[1] in FREE else found[1]

    def by(line: str) -> int:
        operation = operation_of(line)
        if not operation:
            return 0
        if operation == "while":
            return sum(started(n) for n in re.findall(r"(?:body|condition)=%?([\w.\-]+)", line))
        if operation == "conditional":
            named = re.search(r"branch_computations=\{([^}]*)\}", line)
            branches = named[1] if named else " ".join(
                re.findall(r"(?:true|false)_computation=(%?[\w.\-]+)", line)
            )  # fmt: skip
            return max(started(n) for n in re.findall(r"%?([\w.\-]+)", branches))
        if operation == "call":
            return sum(started(n) for n in re.findall(r"to_apply=%?([\w.\-]+)", line))
        return 1

    def own(name: str) -> int:
        found = [operation_of(line) for line in computations.get(name, ())]
        return sum(x not in ("", "while", "conditional") for x in found)

    bodies = re.findall(r"body=%?([\w.\-]+)", program)
    return started(max(bodies, key=own)) if bodies else 0


def problem_of(name: str):
    """The system, the varied parameter, its range, and its share of trajectories."""
    import jfric

    if name in CHAINS:
        from kernels import systems

        return *systems(jfric)[name], (0.1, 0.5), CHAINS[name]
    path, between, end, share = FILES[name]
    problem = jfric.load(ROOT / "configs" / f"{name}.toml")
    return jfric.set_parameters(problem, {"time.end": end}), path, between, share


def measure(name: str, kernel: str, lanes: int, repeats: int) -> tuple[dict, np.ndarray]:
    """The printed row of one system on this process's platform, and the final positions."""
    import jax
    import jax.numpy as jnp

    import jfric
    from jfric.numerics.compilation import platform
    from jfric.sweeps import runner, sweeping
    from jfric.sweeps.tiles import start_layout

    problem, path, (low, high), share = problem_of(name)
    count = max(int(lanes * share), 8)
    observed = f"final.{problem.axes[-1]}"
    vary = {path: jfric.Range(low, high, count)}
    job = sweeping.prepare(problem, vary, observed, solver=jfric.EventDriven(kernel=kernel)).job
    devices = jax.local_devices()
    layout = start_layout(
        (count,),
        devices=len(devices),
        platform=platform(),
        small=job.small,
        chunk=None,
        block=count,
        max_steps=job.most_passes,
        lane_bytes=20,
    )
    shape = (layout.devices * layout.rows, layout.lanes)
    filled = np.full(math.prod(shape), high)
    filled[:count] = np.linspace(low, high, count)
    budgets = np.where(np.arange(filled.size) < count, job.most_passes, 0).astype(np.int32)
    settings = {k: x for k, x in vars(job).items() if k != "problem"}
    arguments = (
        job.problem,
        jnp.asarray(filled.reshape(*shape, 1)),
        jnp.asarray(budgets.reshape(shape)),
    )
    start = time.perf_counter()
    compiled = runner._rows.lower(*arguments, **settings, devices=tuple(devices)).compile()
    compile_s = time.perf_counter() - start
    found = jax.block_until_ready(compiled(*arguments))
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        jax.block_until_ready(compiled(*arguments))
        times.append(time.perf_counter() - start)
    status, steps = (np.asarray(x).ravel()[:count] for x in (found.status, found.steps))
    row = {
        "system": name,
        "kernel": kernel,
        "platform": jax.default_backend(),
        "device": f"{len(devices)} x {devices[0].device_kind}",
        "trajectories": count,
        "row": layout.lanes,
        "compile_s": compile_s,
        "per_second": count / statistics.median(times),
        "kernels_per_pass": kernels_per_pass(compiled.as_text()),
        "mean_passes": float(steps.mean()),
        "not_ok": int((status != 0).sum()),
    }
    return row, np.asarray(found.values[observed]).ravel()[:count]


def measure_all(arguments: argparse.Namespace, folder: Path) -> None:
    """Measure all systems in this process; rows and positions are left in ``folder``."""
    from jfric.numerics.compilation import compile_quickly

    compile_quickly()
    import jax

    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_enable_compilation_cache", False)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    jax.config.update("jax_num_cpu_devices", cores)
    rows = []
    for name in arguments.only.split(","):
        for kernel in arguments.kernels.split(",") if name in CHAINS else ("auto",):
            row, final = measure(name, kernel, arguments.lanes, arguments.repeats)
            rows.append(row)
            np.save(folder / f"{name}_{kernel}.npy", final)
    (folder / "rows.json").write_text(json.dumps(rows))


def run_on(platforms: str, folder: Path) -> list[dict]:
    """The rows of a separate process on these platforms."""
    folder.mkdir()
    environment = os.environ | {"JAX_PLATFORMS": platforms}
    command = [sys.executable, __file__, *sys.argv[1:], "--into", str(folder)]
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
    return json.loads((folder / "rows.json").read_text())


def accelerator() -> str:
    """The platform that JAX chooses on this machine, empty for the processor."""
    command = [sys.executable, "-c", "import jax; print(jax.default_backend())"]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[-1]
    return "" if found == "cpu" else found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--lanes", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", default=",".join((*FILES, *CHAINS)), help="systems")
    parser.add_argument("--kernels", default="general,lowered", help="kernels of the chains")
    parser.add_argument("--into", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.into is not None:
        measure_all(arguments, arguments.into)
        return
    found = accelerator()
    with tempfile.TemporaryDirectory() as folder:
        cores, device = Path(folder) / "cores", Path(folder) / "device"
        rows = run_on("cpu", cores)
        if found:
            others = run_on(found, device)
            for row in others:
                name = f"{row['system']}_{row['kernel']}.npy"
                difference = np.abs(np.load(device / name) - np.load(cores / name))
                row["largest_deviation"] = float(np.nanmax(difference))
            rows = [row for both in zip(rows, others, strict=True) for row in both]
    if arguments.json:
        print(json.dumps({"machine": machine(), "accelerator": found, "rows": rows}, indent=1))
        return
    print(", ".join(f"{k} {v}" for k, v in machine().items()))
    if not found:
        print("JAX finds no accelerator on this machine: its cores alone.")
    head = (
        f"{'system':21} {'kernel':8} {'on':22} {'number':>7} {'compile':>8} {'per second':>11} "
        f"{'kernels':>7} {'passes':>7} {'not ok':>6} deviation"
    )
    print(head + "\n" + "-" * len(head))
    for r in rows:
        deviation = f"{r['largest_deviation']:.1e}" if "largest_deviation" in r else ""
        print(
            f"{r['system']:21} {r['kernel']:8} {r['device'][:22]:22} {r['trajectories']:>7} "
            f"{r['compile_s']:7.1f}s {r['per_second']:>11,.0f} {r['kernels_per_pass']:>7} "
            f"{r['mean_passes']:>7.1f} {r['not_ok']:>6} {deviation}".rstrip()
        )
    print(
        "kernels: started in one pass; passes: mean of a trajectory; deviation: from the cores [m]"
    )


if __name__ == "__main__":
    main()
