"""Designed experiments against a sine of the same amplitude: predicted and realised intervals.

    python experiments/design_experiments.py [--draws 2000] [--systems axis] [--noise 1e-3]

There are three systems with noise on the position: a mass on a spring under a sine, whose frequency
is designed (criterion D, with a limit on the travel); an axis, whose force may be any polygon up to
the amplitude of the sine (A, of two of three parameters); a mass on a moving belt under a sine, for
which frequency, belt and start are designed (D, worst of four parameter vectors). The script prints
the predicted standard deviations, and the spread of fits to simulated repetitions. The realised
information has the relative standard error ``2/sqrt(draws - 1)`` of a ratio of two variances.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

import jfric
from jfric.numerics.compilation import compile_quickly, use_compilation_cache

jax.config.update("jax_enable_x64", True)
compile_quickly()
use_compilation_cache()

TIMES = np.linspace(0.02, 4.0, 150)
#: Sample times for the belt, whose events are many.
FEW = np.linspace(0.05, 4.0, 80)
NOISE = 1e-3


class Study(NamedTuple):
    """A problem with a sine, its unknown parameters, the designed inputs, and the options."""

    title: str
    problem: jfric.Problem
    free: dict[str, jfric.Free]
    inputs: dict[str, tuple[Any, Any]]
    options: dict[str, Any]
    times: np.ndarray = TIMES


def mass() -> Study:
    elements = {
        "mass": jfric.Mass("x", 1.0),
        "spring": jfric.Spring("x", 100.0),
        "damper": jfric.Damper("x", 1.0),
        "friction": jfric.Friction("x", jfric.Coulomb(0.2), N=10.0),
        "load": jfric.Load("x", jfric.Harmonic(6.0, 5.0)),
    }
    return Study(
        "mass on a spring, frequency chosen",
        jfric.Problem(["x"], elements, time=4.0),
        {"friction.mu": jfric.Free(0.05, 0.5), "damper.c": jfric.Free(0.3, 3.0)},
        {"load.F.omega": (2.0, 30.0)},
        {"limits": {"x": (-0.3, 0.3)}},
    )


def axis() -> Study:
    amplitude, knots = 6.0, np.linspace(0.0, 4.0, 17)
    sine = amplitude * np.sin(np.pi * knots)
    elements = {
        "mass": jfric.Mass("x", 1.0),
        "spring": jfric.Spring("x", 40.0),
        "damper": jfric.Damper("x", 1.0),
        "friction": jfric.Friction("x", jfric.Coulomb(0.2), N=10.0),
        "load": jfric.Load("x", jfric.PiecewiseLinear(knots, sine)),
    }
    return Study(
        "axis, force of 17 numbers chosen",
        jfric.Problem(["x"], elements, time=4.0),
        {
            "friction.mu": jfric.Free(0.05, 0.5),
            "mass.m": jfric.Free(0.5, 2.0),
            "damper.c": jfric.Free(0.3, 3.0),
        },
        {"load.F.values": (-amplitude, amplitude)},
        {"criterion": "A", "of": ("friction.mu", "mass.m")},
    )


def belt() -> Study:
    elements = {
        "mass": jfric.Mass("x", 1.0),
        "spring": jfric.Spring("x", 100.0),
        "damper": jfric.Damper("x", 0.5),
        "friction": jfric.Friction("x", jfric.Coulomb(0.2), N=10.0, belt=0.1),
        "load": jfric.Load("x", jfric.Harmonic(3.0, 3.0)),
    }
    return Study(
        "mass on a belt, frequency, belt and start chosen",
        jfric.Problem(["x"], elements, time=4.0),
        {"friction.mu": jfric.Free(0.15, 0.25), "spring.k": jfric.Free(90.0, 110.0)},
        {"load.F.omega": (1.0, 20.0), "friction.belt": (0.05, 0.5), "initial.x.q": (-0.1, 0.1)},
        {"worst_of": 4, "limits": {"x": (-0.3, 0.3)}, "candidates": 32},
        FEW,
    )


SYSTEMS: dict[str, Callable[[], Study]] = {"mass": mass, "axis": axis, "belt": belt}


def spread(problem: jfric.Problem, study: Study, draws: int, size: float) -> np.ndarray:
    """Standard deviations (P,) of fits to simulated repetitions."""
    clean = np.asarray(jfric.simulate(problem, ts=study.times).q[:, 0])
    plan = jfric.Experiment(study.times, y={"x": clean}, sigma=size)
    noise = np.random.default_rng(0).normal(size=(draws, study.times.size))
    found = jfric.fit_batch(problem, plan, study.free, {"x": clean + size * noise}, starts=1)
    return np.std(found.estimates[np.isfinite(found.cost)], axis=0, ddof=1)


def studied(study: Study, draws: int, size: float) -> dict[str, Any]:
    begin, own = time.perf_counter(), time.process_time()
    design = jfric.design_experiment(
        study.problem, study.free, study.inputs, times=study.times, sigma={"x": size},
        **study.options,
    )  # fmt: skip
    seconds, own = time.perf_counter() - begin, time.process_time() - own
    begin = time.perf_counter()
    before, after = (spread(p, study, draws, size) for p in (study.problem, design.problem))
    rows = {}
    for i, name in enumerate(design.before):
        rows[name] = {
            "predicted before": design.before[name],
            "realised before": float(before[i]),
            "predicted after": design.after[name],
            "realised after": float(after[i]),
            "information, predicted": design.information_ratio[name],
            "information, realised": float((before[i] / after[i]) ** 2),
            "its standard error": float((before[i] / after[i]) ** 2 * 2.0 / np.sqrt(draws - 1)),
        }
    return {
        "study": study.title,
        "inputs": {k: np.asarray(v).tolist() for k, v in design.inputs.items()},
        "seconds": seconds,
        "processor": own,
        "fits": time.perf_counter() - begin,
        "experiments simulated": design.evaluations,
        "remarks": design.remarks,
        "parameters": rows,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--noise", type=float, default=NOISE, help="of the position [m]")
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=list(SYSTEMS))
    parser.add_argument("--json", action="store_true", help="print the numbers as JSON")
    options = parser.parse_args()
    results = []
    for name in options.systems:
        found = studied(SYSTEMS[name](), options.draws, options.noise)
        results.append(found)
        if options.json:
            continue
        print(
            f"{found['study']}: {found['seconds']:.0f} s with compilation (processor "
            f"{found['processor']:.0f} s), fits to {options.draws:,} repetitions "
            f"{found['fits']:.0f} s"
        )
        for path, value in found["inputs"].items():
            print(f"  {path} = {np.array2string(np.asarray(value), precision=4)}")
        for parameter, row in found["parameters"].items():
            print(
                f"  {parameter:12} sine {row['predicted before']:.3g} (fits "
                f"{row['realised before']:.3g}), designed {row['predicted after']:.3g} (fits "
                f"{row['realised after']:.3g}); information times "
                f"{row['information, predicted']:.2f} (fits {row['information, realised']:.2f} "
                f"+- {row['its standard error']:.2f})"
            )
        for remark in found["remarks"]:
            print(f"  {remark}")
        print(flush=True, end="")
    if options.json:
        print(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
