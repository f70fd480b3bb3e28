"""Friction of a servo with a pendulum from three free decays, fitted together.

    python experiments/identify_servo.py --data PLACE/servo_pendulum_logs.npz

Friction, inertia and the offset of the sensor are common to the three logs, initial states are
separate. Each log ends at rest some 30 mrad off centre: stick.

Data: Rhoban, BAM (Apache 2.0), Dynamixel XL330; not part of this project.
"""

from __future__ import annotations

import time

from common import BLUE, GREY, figure, print_table, save
from measured import arguments, rms

import jfric
from jfric.files.read_toml import load_config
from jfric.fits.comparison.candidates import candidate_laws
from jfric.fits.data.measured_files import read_experiments
from jfric.verification.configs import shipped

#: Published errors of fits to single logs, best and worst log [mrad], from the data's README.
BASELINES = {"viscous": "12.9 to 28.9", "Coulomb + viscous": "3.0 to 14.4"}
#: A typical angular velocity [rad/s].
SPEED = 2.0
FREE = {
    "mass.m": jfric.Free(0.004, 0.012),
    "sensor.theta.offset": jfric.Free(-0.3, 0.3, scale="linear"),
    "initial.q": jfric.Free(-2.0, 0.0, scale="linear", per_experiment=True),
    "initial.v": jfric.Free(-3.0, 3.0, scale="linear", per_experiment=True),
}


def main() -> None:
    path, out = arguments(__doc__, "servo_pendulum/servo_pendulum_logs.npz")
    config = load_config(shipped("servo_pendulum"))
    records = [
        jfric.Experiment(e.t, y=e.y, x0={"theta": (float(e.y["theta"][0]), 0.0)}, meta=e.meta)
        for e in read_experiments(config, path)
    ]
    rows, results = [], {}
    for candidate in candidate_laws(config.problem, SPEED):
        if candidate.name == "Coulomb":
            continue
        began = time.perf_counter()
        result = jfric.fit(
            jfric.SampledModel(candidate.problem),
            records,
            {**FREE, **candidate.free},
            starts=1,
            optimiser=jfric.LevenbergMarquardt(200),
        )
        results[candidate.name] = result
        predicted = result.linearised().predicted
        off = [1e3 * rms(predicted[i, : e.t.size, 0] - e.y["theta"]) for i, e in enumerate(records)]
        rows.append(
            [
                candidate.name,
                *(f"{x:.2f}" for x in off),
                BASELINES.get(candidate.name, ""),
                f"{time.perf_counter() - began:.1f}",
                result.outcome.name.lower(),
            ]
        )
    names = [str(e.name).removeprefix("lift_and_drop_") for e in records]
    header = ["one model for all", *(f"{n} [mrad]" for n in names), "each alone", "s", "outcome"]
    print_table("Servo with a pendulum: three free decays fitted together", header, rows)
    name, result = list(results.items())[-1]
    print(f"\n{name}\n{result}")
    predicted = result.linearised().predicted
    made, axes = figure(11.0, 3.4, 1, len(records), sharey=True)
    for i, (axis, e) in enumerate(zip(axes, records, strict=True)):
        axis.plot(e.t, e.y["theta"], color=GREY, lw=1.8, label="measured")
        axis.plot(e.t, predicted[i, : e.t.size, 0], color=BLUE, lw=0.8, label="simulated")
        axis.set(title=names[i], xlabel="t [s]")
    axes[0].set_ylabel("angle [rad]")
    axes[0].legend(frameon=False, fontsize=8)
    save(made, out / "servo_free_decay.png", f"Servo pendulum: free decays, {name}")


if __name__ == "__main__":
    main()
