"""Friction laws on measured records, each judged on data held out from its fit.

    python experiments/compare_measured.py --data ../shared/data [--only emps]

1. ``emps``, a motor-driven axis: fitted to the force of the closed loop on three of four laps, and
   judged on the fourth by that force, by inverse dynamics, in windows of 1 s and in open loop over
   the lap; ``emps-inverse``: fitted to inverse dynamics; ``emps-windows``: to windows.
2. ``servo``, with a pendulum: fitted to windows of two of three free decays, judged on the third.
3. ``pendulum``: fitted to windows of three of four quarters of its swing, judged on the fourth.

``--laws`` takes some of the laws, ``--json`` writes all numbers. Data: see ``identify_emps.py``,
``identify_servo.py`` and ``identify_pendulum.py``; they are not part of this project.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import jax
import numpy as np

import jfric
from jfric.files.read_toml import load_config
from jfric.fits.comparison.criteria import OPEN, Setting, error, laps
from jfric.fits.data.measured_files import read_experiments
from jfric.numerics.compilation import use_compilation_cache
from jfric.verification.configs import shipped

jax.config.update("jax_enable_x64", True)
use_compilation_cache()

OFFSET = {"load.offset.F": jfric.Free(-20.0, 20.0, init=3.0, scale="linear")}


def emps(folder: Path, fitted_to: str, **options):
    """The axis, its records, and the free parameters for the comparison of its laws."""
    config = load_config(shipped("emps")).opened()
    records = read_experiments(config, folder / "emps/emps_estimation.npz")
    free = {"mass.m": jfric.Free(50.0, 200.0), **OFFSET}
    found = jfric.compare_laws(
        config.problem, records, free, controller=config.controller, folds=4, window=1.0,
        fitted_to=fitted_to, **options,
    )  # fmt: skip
    return config.problem, records, found


def servo(folder: Path, fitted_to: str, **options):
    config = load_config(shipped("servo_pendulum"))
    records = read_experiments(config, folder / "servo_pendulum/servo_pendulum_logs.npz")
    free = {
        "mass.m": jfric.Free(0.004, 0.012),
        "sensor.theta.offset": jfric.Free(-0.3, 0.3, init=0.0, scale="linear"),
    }
    found = jfric.compare_laws(
        config.problem, records, free, window=1.0, fitted_to=fitted_to, **options
    )
    return config.problem, records, found


def pendulum(folder: Path, fitted_to: str, **options):
    config = load_config(shipped("pendulum"))
    (record,) = read_experiments(config, folder / "pendulum/free_swing_1kHz.npz")
    moving = record.between(float(record.t[0]), float(record.t[0]) + 5.2)
    free = {
        "pendulum.L": jfric.Free(5.0, 8.0),
        "sensor.theta.offset": jfric.Free(-0.02, 0.02, init=0.0, scale="linear"),
    }
    found = jfric.compare_laws(
        config.problem, moving, free, folds=4, window=0.5, fitted_to=fitted_to, **options
    )
    return config.problem, [moving], found


STUDIES = {
    "emps": (emps, "closed loop"),
    "emps-windows": (emps, "windows"),
    "emps-inverse": (emps, "inverse dynamics"),
    "servo": (servo, "windows"),
    "pendulum": (pendulum, "windows"),
}


def whole_records(problem, records, found) -> dict[str, float]:
    """Open-loop error over whole, partly fitted records; mean over the fits [m or rad]."""
    pieces = [p for e in records for p in laps(e, problem.axes, 1)]
    rows = {}
    for law in found.laws:
        fits = zip(law.problems, law.values, strict=True)
        errors = [error(OPEN, fitted, v, pieces, Setting())[0] for fitted, v in fits]
        rows[law.name] = float(np.mean(errors))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="folder")
    parser.add_argument("--only", choices=STUDIES, action="append", help="repeatable")
    parser.add_argument("--laws", nargs="+", help="names")
    parser.add_argument("--json", type=Path, help="file for all numbers")
    given = parser.parse_args()
    if not given.data.is_dir():
        print(
            f"no measured data at {given.data}: they are not part of this project; give their "
            "place with --data",
            file=sys.stderr,
        )
        raise SystemExit(2)
    numbers = {}
    for name in given.only or STUDIES:
        study, fitted_to = STUDIES[name]
        began, own = time.perf_counter(), time.process_time()

        def announce(text: str, name=name, began=began) -> None:
            print(f"{name}: {text} ({time.perf_counter() - began:.0f} s)", flush=True)

        problem, records, found = study(given.data, fitted_to, laws=given.laws, announce=announce)
        whole = whole_records(problem, records, found)
        own = time.process_time() - own
        print(f"\n{name}, {time.perf_counter() - began:.0f} s (processor {own:.0f} s)\n{found}")
        print("whole records in open loop, partly fitted, mean over the fits:")
        for law, value in whole.items():
            print(f"  {law:20} {1e3 * value:.3g} mm or mrad")
        for law in found.laws:
            print(f"  {law.name}: {dict(law.values[0]) if law.values else 'none'}", flush=True)
        numbers[name] = {**found.to_dict(), "whole records": whole}
        if given.json is not None:
            given.json.write_text(json.dumps(numbers, indent=1))


if __name__ == "__main__":
    main()
