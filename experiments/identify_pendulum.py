"""Friction of a pendulum from its free swing.

    python experiments/identify_pendulum.py --data ../shared/data/pendulum/free_swing_1kHz.npz

The amplitude falls nearly linearly: dry friction. Candidate laws are fitted to the whole
record with free initial state and sensor offset; errors are given for the whole record and for the
swing alone. The figure shows the best one.

Data: multi-arm pendulum of the dynamicslab group (arXiv 2205.06231); not part of this project.
"""

from __future__ import annotations

import time

from common import BLUE, GREY, RED, figure, print_table, save
from measured import arguments, rms

import jfric
from jfric.files.read_toml import load_config
from jfric.fits.comparison.candidates import candidate_laws
from jfric.fits.data.measured_files import read_experiments
from jfric.verification.configs import shipped

#: Time by which the swing has ended [s].
SWING = 6.0
#: A typical angular velocity [rad/s].
SPEED = 0.3
FREE = {
    "pendulum.L": jfric.Free(5.0, 8.0),
    "initial.q": jfric.Free(-0.2, 0.2, scale="linear"),
    "initial.v": jfric.Free(-1.0, 1.0, scale="linear"),
    "sensor.theta.offset": jfric.Free(-0.01, 0.01, scale="linear"),
}


def main() -> None:
    path, out = arguments(__doc__, "pendulum/free_swing_1kHz.npz")
    config = load_config(shipped("pendulum"))
    (record,) = read_experiments(config, path)
    first = float(record.y["theta"][0])
    problem = jfric.set_parameters(config.problem, {"initial.q": first, "initial.v": 0.2})
    swing = record.t < SWING
    rows, best = [], None
    for candidate in candidate_laws(problem, SPEED, loads=False):
        if candidate.name == "asymmetric":
            break  # a bearing has no preferred direction, and these data would not show one
        began = time.perf_counter()
        result = jfric.fit(
            jfric.SampledModel(candidate.problem), record, {**FREE, **candidate.free}, starts=1
        )
        off = result.linearised().predicted[0, :, 0] - record.y["theta"]
        rows.append(
            [
                candidate.name,
                f"{1e3 * rms(off):.3f}",
                f"{1e3 * rms(off[swing]):.3f}",
                f"{time.perf_counter() - began:.1f}",
                result.outcome.name.lower(),
            ]
        )
        if best is None or rms(off) < best[0]:
            best = rms(off), candidate.name, result, off
    header = ["model", "whole record [mrad]", f"first {SWING:g} s [mrad]", "time [s]", "outcome"]
    print_table("Pendulum in free swing", header, rows)
    _, name, result, off = best
    print(f"\n{name}\n{result}")
    made, axes = figure(11.0, 5.0, 2, 1, sharex=True)
    axes[0].plot(record.t, 1e3 * record.y["theta"], color=GREY, lw=1.8, label="measured")
    predicted = result.linearised().predicted[0, :, 0]
    axes[0].plot(record.t, 1e3 * predicted, color=BLUE, lw=0.8, label=f"simulated, {name}")
    axes[0].set(ylabel="angle [mrad]", xlim=(0.0, 8.0))
    axes[0].legend(frameon=False, fontsize=8)
    axes[1].plot(record.t, 1e3 * off, color=RED, lw=0.8)
    axes[1].set(ylabel="residual [mrad]", xlabel="t [s]")
    save(made, out / "pendulum_free_swing.png", "Pendulum: free swing to a dead stop")


if __name__ == "__main__":
    main()
