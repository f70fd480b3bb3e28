"""Friction of a servo in its position loop: six models of gear losses, three gains in one fit.

    python experiments/identify_servo_gains.py --data PLACE/servo_pendulum_logs.npz
        [--only M1,M3,M4] [--held-out 400]

A Dynamixel XL330 moves a pendulum of 0.49 kg at 0.1 m along three references, each with the gains
100, 400 and 800. The loop is part of the model: a proportional controller sets the motor's voltage,
limited by the supply, from the logged reference; friction is that of ``[transmission]`` with the
models M1 to M6 of the library that published the logs. All models are fitted together to six logs,
the gains being known numbers of the records, and judged on the three logs of the reference or of
the gain that was left out, by the mean absolute error of the position, the metric of that library.

Data: Rhoban, BAM (Apache 2.0), Dynamixel XL330; not part of this project.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import jax
import numpy as np
from common import print_table
from measured import DATA

import jfric
from jfric.fits.free import beginning_at
from jfric.functions import PiecewiseLinear
from jfric.numerics.compilation import compile_quickly

jax.config.update("jax_enable_x64", True)
compile_quickly()

REFERENCES, GAINS = ("sin_sin", "up_and_down", "sin_time_square"), (100, 400, 800)
LEFT_OUT = "up_and_down"
#: Columns of a log.
COLUMNS = "timestamp", "position", "goal_position"
#: Voltage of the supply [V], and that of one unit of the gain and one radian.
SUPPLY, VOLTS = 7.4, 0.03
#: Steps of the search of each model, which begins where that of the model before ended.
STEPS = 40
#: Numbers that every model has, then those that each one adds, with the fields that they set.
COMMON = {
    "motor.kt": jfric.Free(0.1, 2.0, init=0.45),
    "motor.R": jfric.Free(1.0, 30.0, init=7.0),
    "motor.J": jfric.Free(1e-4, 0.02, init=1.3e-3),
    "parameters.volts": jfric.Free(0.003, 0.3, init=VOLTS),
    "parameters.limit": jfric.Free(1e-4, 0.3, init=0.03),
    "parameters.c": jfric.Free(1e-5, 0.1, init=4e-3),
}
SPEED = {"stribeck": jfric.Free(1e-4, 0.3, init=0.01), "v_s": jfric.Free(0.02, 10.0, init=1.0)}
RATIO = jfric.Free(1e-4, 0.9, init=0.05)
SQUARE = jfric.Free(1e-4, 2.0, init=0.01)
ALONE, FALLING = {"k": ("ke", "km")}, {"ks": ("kes", "kms")}
APART = {name: (name,) for name in ("ke", "km", "kes", "kms")}
MODELS = {
    "M1": (False, {}),
    "M2": (True, {}),
    "M3": (False, ALONE),
    "M4": (True, ALONE | FALLING),
    "M5": (True, APART),
    "M6": (True, APART | {name: (name,) for name in ("kqe", "kqm")}),
}


def system(model: str, reference=0.0, gain: float = 100.0) -> jfric.Problem:
    """The servo with the friction of a model, following a function of time."""
    falls, ratios = MODELS[model]
    numbers = {"limit": 0.03, "c": 4e-3, "volts": VOLTS, "gain": gain}
    fields = {"limit": "$limit", "c": "$c"}
    if falls:
        numbers |= {name: free.init for name, free in SPEED.items()}
        fields |= {name: f"${name}" for name in SPEED}
    for name, own in ratios.items():
        numbers[name] = (SQUARE if name.startswith("kq") else RATIO).init
        fields |= {field: f"${name}" for field in own}
    elements = {
        "mass": jfric.Mass("q", 0.49 * 0.1**2),
        "pendulum": jfric.elements.Pendulum("q", m=0.49, L=0.1),
        "motor": jfric.elements.Motor("q", kt=0.45, V=0.0, R=7.0, J=1.3e-3),
        "transmission": jfric.elements.Transmission("q", "motor", "pendulum", **fields),
        "controller": jfric.Controller(
            "q", "motor.V", kp="$volts*$gain", limit=SUPPLY, period=0.005, reference=reference
        ),
    }
    return jfric.Problem({"q": "rotation"}, elements, time=6.0, parameters=numbers)


def free_of(model: str) -> dict[str, jfric.Free]:
    """What is fitted in a model."""
    falls, ratios = MODELS[model]
    own = dict(SPEED) if falls else {}
    own |= {name: SQUARE if name.startswith("kq") else RATIO for name in ratios}
    return COMMON | {f"parameters.{name}": free for name, free in own.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    default = DATA / "servo_pendulum" / "servo_pendulum_logs.npz"
    parser.add_argument("--data", type=Path, default=default, help="measured file")
    parser.add_argument("--only", default=",".join(MODELS), help="models, separated by commas")
    parser.add_argument(
        "--held-out", default=LEFT_OUT, choices=[*REFERENCES, *map(str, GAINS)],
        help="reference or gain whose logs are left out of the fit",
    )  # fmt: skip
    given = parser.parse_args()
    if not given.data.is_file():
        print(f"no measured data at {given.data}: they are not part of this project; give their "
              "place with --data", file=sys.stderr)  # fmt: skip
        return 2
    records = read_logs(given.data)
    held = [key for key in records if given.held_out in map(str, key)]
    fitted = [record for key, record in records.items() if key not in held]
    rows, start = [], {}
    for model in given.only.split(","):
        began = time.perf_counter()
        free = beginning_at(free_of(model), start)
        search = jfric.LevenbergMarquardt(STEPS)
        result = jfric.fit(system(model), fitted, free, starts=1, optimiser=search)
        start |= dict(result.values)
        errors = {
            key: error_of(model, result.values, key[1], record) for key, record in records.items()
        }
        inside = [x for key, x in errors.items() if key not in held]
        outside = [errors[key] for key in held]
        rows.append(
            [model, str(len(free)), f"{np.mean(inside):.2f}", f"{np.mean(outside):.2f}",
             *(f"{x:.2f}" for x in outside), f"{time.perf_counter() - began:.0f} s"]
        )  # fmt: skip
        print(model, {k.rpartition(".")[2]: float(f"{v:.4g}") for k, v in result.values.items()})
    names = [f"{name}, {gain}" for name, gain in held]
    header = ["model", "free", "fitted logs", f"left out: {given.held_out}", *names]
    print_table("mean absolute error of the position [mrad]", [*header, "time"], rows)
    return 0


def read_logs(path: Path) -> dict[tuple[str, int], jfric.Experiment]:
    """The records by reference and gain."""
    logs, records = np.load(path, allow_pickle=True), {}
    for name in REFERENCES:
        for gain in GAINS:
            t, q, goal = (logs[f"{name}_kp{gain}/{column}"] for column in COLUMNS)
            records[name, gain] = jfric.Experiment(
                t, u={"controller.reference": goal}, y={"q": q}, sigma=0.01,
                x0={"q": (float(q[0]), 0.0)}, known={"parameters.gain": float(gain)},
                meta={"name": f"{name} {gain}"},
            )  # fmt: skip
    return records


def error_of(model: str, values, gain: float, record: jfric.Experiment) -> float:
    """Mean absolute error [mrad] of the position in a simulated log."""
    reference = PiecewiseLinear(record.t, record.u["controller.reference"])
    start = {"initial.q.q": float(record.y["q"][0])}
    problem = jfric.set_parameters(system(model, reference, gain), dict(values) | start)
    found = jfric.simulate(problem, jfric.EventDriven(adjoint="none"), ts=record.t)
    return 1e3 * float(np.mean(np.abs(np.asarray(found.q[:, 0]) - record.y["q"])))


if __name__ == "__main__":
    sys.exit(main())
