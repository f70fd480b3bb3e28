"""A gain schedule, a friction damper and an input, made as good as possible in three ways.

Each has an objective without constraints over 4 to 20 numbers. The script minimises it

1. by exact gradients through stick and slip: sequential quadratic programming of SciPy, and Adam of
   optax;
2. without derivatives: COBYQA of SciPy, and the cross-entropy method;
3. by exact gradients of a smoothed law, with two widths,

from the same start, and prints the objective *in the exact motion* at the numbers found, the runs
with and without derivatives, and the time, with and without compilation (a second, equal search).

    python experiments/optimal_design.py [--only schedule,damper,input] [--json]
"""

from __future__ import annotations

import argparse
import json
import warnings

import jax
import numpy as np
from common import print_table

import jfric

jax.config.update("jax_enable_x64", True)


def schedule() -> dict:
    """A carriage with dry friction comes to 0 from 0.1 m away. Its controller has gains on
    position, integral and speed, each a straight line over the time of 1 s: six numbers. The sum of
    the squares of error and force becomes small, as a state of its own."""
    force = "(p + dp*t)*x + (i + di*t)*z.integral + (d + dd*t)*v.x"
    problem = jfric.Problem(
        ["x"],
        {
            "mass": jfric.Mass("x", 2.0),
            "friction": jfric.Friction("x", limit=4.0),
            "state": {
                "integral": jfric.State("x", unit="m*s", force=f"-({force})", direction="x"),
                "cost": jfric.State(f"x^2 + 1e-6*({force})^2", unit="m^2*s"),
            },
        },
        parameters={"p": 200.0, "dp": 0.0, "i": 100.0, "di": 0.0, "d": 20.0, "dd": 0.0},
        initial={"x": jfric.InitialState(q=-0.1)},
        time=1.0,
    )
    free = {"p": (0.0, 2e3), "dp": (-2e3, 2e3), "i": (0.0, 5e3), "di": (-5e3, 5e3)}
    free |= {"d": (0.0, 200.0), "dd": (-200.0, 200.0)}
    free = {f"parameters.{name}": bounds for name, bounds in free.items()}
    return {"problem": problem, "free": free, "objective": "1e3*final.z.cost"}


def damper() -> dict:
    """A structure after a blow, with a rubbing mass behind a spring and a damper: its normal force,
    stiffness and damping, and the mass itself, for the least mean square over 60 s."""
    problem = jfric.Problem(
        ["structure", "pad"],
        {
            "mass": {"structure": jfric.Mass("structure", 1.0), "pad": jfric.Mass("pad", 0.05)},
            "spring": {
                "structure": jfric.Spring("structure", 1.0),
                "pad": jfric.Spring(("structure", "pad"), 0.3),
            },
            "damper": {
                "structure": jfric.Damper("structure", 0.005),
                "pad": jfric.Damper(("structure", "pad"), 0.01),
            },
            "friction": jfric.Friction("pad", jfric.Coulomb(0.3), N=0.2),
        },
        initial={"structure": jfric.InitialState(v=1.0)},
        time=60.0,
    )
    free = {
        "friction.N": jfric.Free(0.01, 10.0),
        "spring.pad.k": jfric.Free(0.01, 3.0),
        "damper.pad.c": jfric.Free(1e-4, 3.0),
        "mass.pad.m": jfric.Free(0.02, 0.1),
    }
    return {"problem": problem, "free": free, "objective": "rms.structure"}


def shaped_input() -> dict:
    """Motor and load with a spring between them and dry friction on both move by 0.1 m in 0.5 s;
    the force has 20 values. What is missing at the end counts, and the force a little."""
    count, end = 20, 0.5
    times = [end / count * i for i in range(1, count)]
    start = np.where(np.arange(count) < count // 2, 8.0, -2.0)
    problem = jfric.Problem(
        ["motor", "load"],
        {
            "mass": {"motor": jfric.Mass("motor", 1.0), "load": jfric.Mass("load", 1.0)},
            "spring": jfric.Spring(("motor", "load"), 800.0),
            "friction": {
                "motor": jfric.Friction("motor", limit=1.5),
                "load": jfric.Friction("load", limit=0.5),
            },
            "load": jfric.Load("motor", jfric.Steps(times, start.tolist())),
        },
        time=end,
    )
    missing = "(final.motor - 0.1)^2 + (final.load - 0.1)^2"
    speeds = "final.v.motor^2 + final.v.load^2"
    objective = f"1e4*({missing}) + 1e2*({speeds}) + 1e-4*rms.input.load.F^2"
    return {
        "problem": problem, "free": {"load.F.values": (-20.0, 20.0)}, "objective": objective
    }  # fmt: skip


TASKS = {"schedule": schedule, "damper": damper, "input": shaped_input}
WAYS = {
    "exact, SQP": {"method": "slsqp"},
    "exact, SQP, 8 starts": {"method": "slsqp", "starts": 8},
    "exact, Adam": {"method": "adam", "iterations": 300},
    "none, COBYQA": {"method": "cobyqa", "iterations": 2000},
    "none, cross-entropy": {"method": "direct", "iterations": 100},
    "smoothed, 0.01 m/s": {"method": "slsqp", "solver": 1e-2},
    "smoothed, 0.001 m/s": {"method": "slsqp", "solver": 1e-3},
}


def row(task: dict, way: dict) -> dict:
    """Result of one way: of a first search, and the time of a second one."""
    options = dict(way)
    if "solver" in options:
        options["solver"] = jfric.Smoothed(width=options["solver"], rtol=1e-8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found, again = (jfric.optimise(**task, **options) for _ in range(2))
    return {
        "objective": found.objective,
        "with derivatives": found.derivatives,
        "without": found.motions,
        "seconds": again.seconds,
        "with compilation": found.seconds,
        "status": jfric.Status(found.status).name.lower(),
        "stationarity": found.stationarity,
        "message": found.message,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default=",".join(TASKS), help="tasks, separated by commas")
    parser.add_argument("--ways", type=int, default=len(WAYS), help="number of ways")
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    given = parser.parse_args()
    jfric.compile_quickly()
    results = {}
    for name in given.only.split(","):
        task = TASKS[name]()
        results[name] = {}
        for way, options in list(WAYS.items())[: given.ways]:
            results[name][way] = row(task, options)
            if not given.json:
                print(name, way, results[name][way], flush=True)
        # Last, for it compiles a program of the searches.
        results[name]["start"] = {"objective": _start(task)}
    if given.json:
        print(json.dumps(results, indent=2))
        return
    header = ["way", "objective, exact motion", "runs with derivatives", "runs without"]
    header += ["time [s]", "with compilation [s]"]
    for name, found in results.items():
        rows = [["start", f"{found.pop('start')['objective']:.6g}", "", "", "", ""]]
        for way, x in found.items():
            counts = [str(x["with derivatives"]), str(x["without"])]
            times = [f"{x['seconds']:.2f}", f"{x['with compilation']:.1f}"]
            rows.append([way, f"{x['objective']:.6g}", *counts, *times])
        print_table(f"{name}: {TASKS[name].__doc__}", header, rows)


def _start(task: dict) -> float:
    """The objective of the given numbers."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = jfric.optimise(**{**task, "iterations": 1}, method="direct")
    return found.starts[0]["objective"]


if __name__ == "__main__":
    main()
