"""Time stepping: a long run compared with the event-driven one, and Moreau-Jean with Siconos.

1. Janovsky (2015), Example 5.3: 377 s with dt = 0.001, by the midpoint rule, the stabilised
   midpoint rule, and event-driven. The paper's MATLAB programs took 2,495.6 s, 64.84 s and 2.3 s.
2. VE0116 with the same scheme (Moreau-Jean, theta = 1/2) and the same step in jfric and in Siconos
   (Debian's python3-siconos, if /usr/bin/python3 can import it): largest difference of the
   displacements, time of one trajectory, and of a batch over the coefficient of friction. Siconos
   runs the trajectories of its batch one after the other; a part of them is timed and scaled up.

Run times are medians of warm runs; compiled ahead of time, without a compilation cache, with the
settings of the command line (``jfric.numerics.compilation.compile_quickly``).

    python experiments/benchmarks/time_stepping.py [--json] [--repeats 20] [--batch 10000]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

ROOT = Path(__file__).resolve().parents[2]
STEP = 1e-3
VE0116_TIMES = np.array([0.25, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0])
FRICTION = (0.05, 0.15)
#: Number of trajectories that Siconos runs for the batch.
SICONOS_BATCH = 20
PUBLISHED = {"midpoint rule": 2495.6, "stabilised midpoint rule": 64.841882, "event-driven": 2.3}


def run_janovsky(configs: Path, repeats: int) -> list[dict]:
    import jax
    import jax.numpy as jnp
    from single_trajectory import JANOVSKY_TIMES, error, median_time

    import jfric

    problem = jfric.load(configs / "janovsky_4_1.toml")
    ts = jnp.asarray(JANOVSKY_TIMES)
    solvers = {
        "midpoint rule": jfric.Midpoint(STEP),
        "stabilised midpoint rule": jfric.StabilisedMidpoint(STEP),
        "event-driven": jfric.EventDriven(),
    }
    rows = []
    for name, solver in solvers.items():

        def simulate(problem, ts, solver=solver):
            return jfric.simulate(problem, solver, ts=ts)

        start = time.perf_counter()
        compiled = jax.jit(simulate).lower(problem, ts).compile()
        built = time.perf_counter() - start
        solution = compiled(problem, ts)
        seconds = median_time(lambda c=compiled: jax.block_until_ready(c(problem, ts)), repeats)
        rows.append(
            {
                "case": "janovsky_5_3",
                "method": f"jfric, {name}",
                "compile_s": built,
                "run_s": seconds,
                "error": error("janovsky_4_1", np.asarray(solution.q)),
                "switches": int(solution.events.count),
                "steps": int(solution.steps),
                "published_s": PUBLISHED[name],
            }
        )
    return rows


def run_ve0116(configs: Path, repeats: int, batch: int) -> tuple[list[dict], np.ndarray]:
    """Rows, and the displacements of one trajectory at the check times."""
    import jax
    import jax.numpy as jnp
    from single_trajectory import median_time

    import jfric

    problem = jfric.load(configs / "ve0116.toml")
    ts = jnp.asarray(VE0116_TIMES)
    # Neither run keeps a log of events.
    solver = jfric.MoreauJean(STEP, max_events=0)

    def one(mu):
        changed = jfric.set_parameters(problem, {"friction.mu": mu})
        return jfric.simulate(changed, solver, ts=ts).q[:, 0]

    def many(mus):
        # In chunks that fit the cache.
        return jax.lax.map(one, mus, batch_size=256)

    mu, mus = jnp.asarray(0.1), jnp.linspace(*FRICTION, batch)
    rows = []
    for name, function, argument in (("one", one, mu), (f"batch of {batch:,}", many, mus)):
        start = time.perf_counter()
        compiled = jax.jit(function).lower(argument).compile()
        built = time.perf_counter() - start
        seconds = median_time(
            lambda c=compiled, x=argument: jax.block_until_ready(c(x)),
            repeats if name == "one" else 3,
        )
        rows.append(
            {
                "case": f"ve0116, {name}",
                "method": f"jfric, Moreau-Jean, h = {STEP:g}",
                "compile_s": built,
                "run_s": seconds,
                "steps": round(4.0 / STEP),
            }
        )
    return rows, np.asarray(jax.jit(one)(mu))


def siconos_worker(step: float, count: int) -> dict:
    """Displacements of VE0116 at the check times for mu = 0.1, and times of 1 and ``count``
    runs."""
    import siconos.kernel as sk

    def trajectory(mu):
        # A second coordinate presses the mass on the ground with the normal force.
        body = sk.LagrangianLinearTIDS(np.zeros(2), np.zeros(2), np.diag([1.0, 100.0]))
        body.setKPtr(np.diag([0.0, 5000.0]))
        body.setFExtPtr(np.array([1000.0, 1500.0]))
        law = sk.NewtonImpactFrictionNSL(0.0, 0.0, mu, 2)
        relation = sk.LagrangianLinearTIR(np.array([[-1.0, 0.0], [0.0, 1.0]]))
        interaction = sk.Interaction(law, relation)
        problem = sk.FrictionContact(2)
        problem.numericsSolverOptions().dparam[0] = 1e-14
        model = sk.NonSmoothDynamicalSystem(0.0, 4.0)
        model.insertDynamicalSystem(body)
        model.link(interaction, body)
        scheme, grid = sk.MoreauJeanOSI(0.5), sk.TimeDiscretisation(0.0, step)
        simulation = sk.TimeStepping(model, grid, scheme, problem)
        wanted = np.round(VE0116_TIMES / step).astype(int)
        q = np.zeros(wanted.size)
        start = time.perf_counter()
        following = 0
        for i in range(1, round(4.0 / step) + 1):
            simulation.computeOneStep()
            simulation.nextStep()
            if following < wanted.size and wanted[following] == i:
                q[following] = body.q()[1]
                following += 1
        return q, time.perf_counter() - start

    q, seconds = trajectory(0.1)
    batch = sum(trajectory(mu)[1] for mu in np.linspace(*FRICTION, count))
    return {"q": q.tolist(), "run_s": seconds, "batch_s": batch, "count": count}


def run_siconos(own: np.ndarray, batch: int) -> list[dict]:
    method = f"Siconos, Moreau-Jean, h = {STEP:g}"
    cases = ("ve0116, one", f"ve0116, batch of {batch:,}")
    command = ["/usr/bin/python3", __file__, "--siconos-worker", str(STEP), str(SICONOS_BATCH)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    except (OSError, subprocess.TimeoutExpired) as failure:
        return [{"case": cases[0], "method": method, "note": type(failure).__name__}]
    if done.returncode == 3:
        return [{"case": cases[0], "method": method, "note": "not installed"}]
    if done.returncode:
        note = (done.stderr.strip().splitlines() or ["failed"])[-1]
        return [{"case": cases[0], "method": method, "note": note}]
    # Siconos prints to the same stream; the result is the last line.
    found = json.loads(done.stdout.strip().splitlines()[-1])
    difference = float(np.abs(np.array(found["q"]) - own).max())
    each = found["batch_s"] / found["count"]
    note = f"{found['count']} timed, scaled to {batch:,}"
    return [
        {"case": cases[0], "method": method, "run_s": found["run_s"], "difference": difference},
        {"case": cases[1], "method": method, "run_s": each * batch, "note": note},
    ]


def table(rows: list[dict]) -> str:
    head = (
        f"{'case':25} {'method':38} {'compile':>8} {'run':>13} {'switches':>8} {'error':>8} "
        f"{'difference':>10} {'paper':>9}  ratio"
    )
    lines = [head, "-" * len(head)]
    base: dict[str, float] = {}
    for r in rows:
        if "stabilised" in r["method"] or ("Moreau" in r["method"] and "jfric" in r["method"]):
            base[r["case"]] = r["run_s"]
    for r in rows:
        known = "run_s" in r and r["case"] in base

        def cell(key, text, r=r):
            return text.format(r[key]) if key in r else "-"

        run = f"{1e3 * r['run_s']:,.2f}ms" if "run_s" in r else "-"
        ratio = f"{r['run_s'] / base[r['case']]:.4g}" if known else ""
        lines.append(
            f"{r['case']:25} {r['method']:38} {cell('compile_s', '{:.2f}s'):>8} {run:>13} "
            f"{cell('switches', '{:,}'):>8} {cell('error', '{:.1e}'):>8} "
            f"{cell('difference', '{:.1e}'):>10} {cell('published_s', '{:,.1f}s'):>9}  "
            f"{ratio} {r.get('note', '')}".rstrip()
        )
    lines.append(
        "error: of displacements, relative to their peaks; difference: to jfric, in metres"
    )
    lines.append(
        "ratio: run time divided by that of the stabilised rule, or of jfric's Moreau-Jean"
    )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--repeats", type=int, default=20, help="timed runs")
    parser.add_argument("--batch", type=int, default=10_000, help="trajectories in the batch")
    parser.add_argument("--configs", type=Path, default=ROOT / "configs", help="folder of configs")
    parser.add_argument("--siconos-worker", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.siconos_worker:
        try:
            import siconos.kernel  # noqa: F401
        except ImportError:
            sys.exit(3)
        step, count = arguments.siconos_worker
        print("\n" + json.dumps(siconos_worker(float(step), int(count))))
        return
    import jax
    from single_trajectory import machine

    from jfric.numerics.compilation import compile_quickly

    compile_quickly()
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_enable_compilation_cache", False)
    rows = run_janovsky(arguments.configs, arguments.repeats)
    own_rows, own = run_ve0116(arguments.configs, arguments.repeats, arguments.batch)
    rows += own_rows + run_siconos(own, arguments.batch)
    report = {"machine": machine(), "rows": rows}
    if arguments.json:
        print(json.dumps(report, indent=1))
        return
    print(", ".join(f"{k} {v}" for k, v in report["machine"].items()))
    print(table(rows))


if __name__ == "__main__":
    main()
