"""Friction of the EMPS, a motor-driven linear axis, from its published record.

    python experiments/identify_emps.py --data ../shared/data/emps/emps_estimation.npz

1. inverse-dynamics regression, compared with the published estimates,
2. closed-loop force error of the published parameters, and of fits of the candidate laws,
3. one-second windows in open loop,
4. intervals for white and for autocorrelated residuals, and the scatter from lap to lap (figure).

The errors of the candidates on laps that were not fitted are those of ``compare_measured.py``.

Data: A. Janot, M. Gautier, M. Brunot, "Data Set and Reference Models of EMPS", Workshop on
Nonlinear System Identification Benchmarks, 2019; it is not part of this project.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
from common import BLUE, GOLD, GREEN, GREY, RED, figure, print_table, save
from measured import arguments, rms
from prediction import relative_error

import jfric
from jfric.files.read_toml import load_config
from jfric.fits.comparison.candidates import candidate_laws
from jfric.fits.comparison.criteria import laps
from jfric.fits.data.measured_files import read_experiments
from jfric.fits.inverse import inverse_regression
from jfric.verification.configs import shipped

PUBLISHED = {
    "mass.m": (95.109, 0.109),
    "damper.c": (203.50, 1.15),
    "friction.limit": (20.394, 0.101),
    "load.offset.F": (3.165, 0.044),
}
PUBLISHED_SIDED = {
    "mass.m": 95.154,
    "parameters.F_v_positive": 166.71,
    "parameters.F_c_positive": 20.144,
    "parameters.F_v_negative": 240.42,
    "parameters.F_c_negative": 20.628,
}
LAPS = 4
SPEED = 0.1
MASS = {"mass.m": jfric.Free(50.0, 200.0)}
#: If both directions have the same coefficients, the offset makes the difference.
OFFSET = {"load.offset.F": jfric.Free(-20.0, 20.0, init=3.0, scale="linear")}
START = {"initial.v": jfric.Free(-0.1, 0.1, scale="linear")}


def regression(problem, sided, record) -> None:
    found = inverse_regression(problem, record, list(PUBLISHED))
    sd = np.sqrt(np.diag(found.covariance()))
    rows = [
        [name, f"{x:.3f}", f"{s:.3f}", f"{p:.3f}", f"{e:.3f}", f"{100 * (x / p - 1):+.2f} %"]
        for (name, (p, e)), x, s in zip(PUBLISHED.items(), found.vector, sd, strict=True)
    ]
    header = ["inverse regression", "estimate", "sd", "published", "sd", "difference"]
    print_table(
        f"relative error {100 * found.relative_error:.3f} % (published 4.083)", header, rows
    )
    found = inverse_regression(sided, record, list(PUBLISHED_SIDED))
    rows = [
        [name, f"{x:.3f}", f"{p:.3f}", f"{100 * (x / p - 1):+.2f} %"]
        for (name, p), x in zip(PUBLISHED_SIDED.items(), found.vector, strict=True)
    ]
    header = ["each direction", "estimate", "published", "difference"]
    print_table(
        f"relative error {100 * found.relative_error:.3f} % (published 3.112)", header, rows
    )


def free_of(candidate) -> dict[str, jfric.Free]:
    """Free parameters of a candidate."""
    even = "parameters.F_c_positive" not in candidate.free
    return {**MASS, **(OFFSET if even else {}), **candidate.free}


def closed_loop_fits(candidates, controller, record):
    """Fits of all candidates in closed loop, and the error of the published parameters."""
    rows, results = [], {}
    for candidate in candidates:
        for _ in range(2):
            began = time.perf_counter()
            result = jfric.fit(
                candidate.problem, record, {**START, **free_of(candidate)},
                residual=jfric.ClosedLoop(controller), starts=1,
            )  # fmt: skip
            seconds = time.perf_counter() - began
        results[candidate.name] = result
        rows.append(
            [
                candidate.name,
                str(len(result.names)),
                f"{100 * relative_error(result):.3f}",
                f"{seconds:.1f}",
                str(result.outcome.name.lower()),
            ]
        )
    print_table(
        "Closed loop, fitted on the whole record",
        ["model", "free", "force error [%]", "warm [s]", "outcome"],
        rows,
    )
    return results


def published_error(config, record) -> float:
    """Force error of the published parameters in closed loop [%], with the published delay."""
    late = replace(config.controller, delay=1.0)
    v = float(np.mean(np.diff(record.y["x"][:2]) / np.diff(record.t[:2])))
    problem = jfric.set_parameters(config.problem, {"initial.v": v})
    rest = {"initial.q": jfric.Free(-1e-3, 1e-3, scale="linear", init=0.0)}
    model = jfric.SampledModel(problem, late)
    result = jfric.fit(
        model, jfric.closed_loop(record, config.controller), rest,
        observe=config.controller.drives, starts=1, optimiser=jfric.LevenbergMarquardt(1),
    )  # fmt: skip
    result.vector = np.zeros(1)
    return 100.0 * relative_error(result)


def open_loop(candidates, record) -> None:
    """Fit one-second windows with free initial states, driven by the measured force."""
    rows = []
    for name in ("Coulomb + viscous", "asymmetric", "Stribeck"):
        candidate, seconds = candidates[name], []
        for _ in range(2):
            began = time.perf_counter()
            result = jfric.fit(
                candidate.problem, record, free_of(candidate), residual=jfric.Windows(1.0),
                starts=1,
            )  # fmt: skip
            seconds.append(time.perf_counter() - began)
        predicted = result.linearised().predicted
        off = [predicted[i, : w.t.size, 0] - w.y["x"] for i, w in enumerate(result.experiments)]
        rows.append([name, f"{1e3 * rms(np.concatenate(off)):.4f}"] + [f"{s:.1f}" for s in seconds])
    header = ["model", "position error [mm]", "first [s]", "again [s]"]
    print_table(f"Open loop, {len(off)} windows of 1 s as one batch", header, rows)


def intervals(candidate, whole, controller, record, out) -> None:
    """Compare fits of single laps with the intervals of the whole record."""
    names = ["mass.m", *candidate.free]
    alone = []
    for lap in laps(record, ["x"], LAPS):
        result = jfric.fit(
            candidate.problem,
            lap,
            free_of(candidate),
            residual=jfric.ClosedLoop(controller),
            starts=1,
        )
        alone.append([result.values[name] for name in names])
    alone = np.array(alone)
    errors = {
        method: whole.covariance(method).standard_errors for method in ("gauss-newton", "hac")
    }
    rows = []
    for i, name in enumerate(names):
        off = np.abs(alone[:, i] - whole.values[name])
        white, hac = (errors[m][name] for m in ("gauss-newton", "hac"))
        inside = [f"{np.sum(off < 1.96 * sd)} of {LAPS}" for sd in (white, hac)]
        scatter = np.std(alone[:, i], ddof=1)
        rows.append(
            [name, *(f"{x:.3f}" for x in (whole.values[name], scatter, white, hac)), *inside]
        )
    header = ["parameter", "whole record", "scatter of laps", "white sd", "HAC sd"]
    header += ["laps in white", "laps in HAC"]
    print_table("Standard errors of the whole record and the scatter of laps", header, rows)
    made, axes = figure(12.0, 3.6, 1, len(names))
    lap = np.arange(1, LAPS + 1)
    for i, (axis, name) in enumerate(zip(axes, names, strict=True)):
        value = whole.values[name]
        for method, colour, label in (("hac", BLUE, "HAC"), ("gauss-newton", RED, "white noise")):
            half = 1.96 * errors[method][name]
            axis.axhspan(
                value - half, value + half, color=colour, alpha=0.25, lw=0, label=f"95 %, {label}"
            )
        axis.plot(lap, alone[:, i], "o", color="#222222", label="single laps")
        axis.set_title(name.removeprefix("parameters."), fontsize=10)
        axis.set_xticks(lap)
        axis.set_xlabel("lap")
    axes[0].legend(frameon=False, fontsize=8)
    save(made, out / "emps_intervals.png", "EMPS: intervals of the whole record and single laps")


def law_figure(results, record, out) -> None:
    """Draw the residual force of the candidates over time, and over velocity."""
    made, axes = figure(12.0, 6.0, 2, 2)
    axes = axes.reshape(2, 2)
    measured = record.u["load.drive.F"]
    chosen = {"Coulomb + viscous": GOLD, "asymmetric": BLUE, "Stribeck": GREEN}
    x = record.y["x"]
    v = np.gradient(x, record.t)
    axes[0, 0].plot(record.t, measured, color=GREY, lw=0.8, label="measured")
    for name, colour in chosen.items():
        predicted = results[name].linearised().predicted[0, :, 0]
        if name == "Stribeck":
            axes[0, 0].plot(record.t, predicted, color=colour, lw=0.8, label="simulated, Stribeck")
        axes[0, 1].plot(record.t, predicted - measured, color=colour, lw=0.6, label=name)
        axes[1, 0].plot(v, predicted - measured, ".", color=colour, ms=0.6)
        axes[1, 1].plot(x, predicted - measured, ".", color=colour, ms=0.6)
    axes[0, 0].set(xlim=(0.0, 6.24), xlabel="t [s]", ylabel="force [N]")
    axes[0, 1].set(xlim=(6.24, 12.48), ylim=(-12, 12), xlabel="t [s]", ylabel="residual [N]")
    axes[1, 0].set(ylim=(-12, 12), xlabel="velocity [m/s]", ylabel="residual [N]")
    axes[1, 1].set(ylim=(-12, 12), xlabel="position [m]", ylabel="residual [N]")
    axes[0, 0].legend(frameon=False, fontsize=8)
    axes[0, 1].legend(frameon=False, fontsize=8)
    save(made, out / "emps_laws.png", "EMPS: closed loop")


def main() -> None:
    path, out = arguments(__doc__, "emps/emps_estimation.npz")
    config = load_config(shipped("emps")).opened()
    (record,) = read_experiments(config, path)
    controller = config.controller
    no_offset = jfric.set_parameters(config.problem, {"load.offset.F": 0.0})
    candidates = candidate_laws(no_offset, SPEED)
    names = {candidate.name: candidate for candidate in candidates}
    regression(config.problem, names["asymmetric"].problem, record)
    error = published_error(config, record)
    print(f"\nclosed loop, published parameters: {error:.3f} % (published 5.848)")
    results = closed_loop_fits(candidates, controller, record)
    for name in ("asymmetric", candidates[-1].name):
        print(f"\n{name}\n{results[name]}")
    open_loop(names, record)
    intervals(names["asymmetric"], results["asymmetric"], controller, record, out)
    law_figure(results, record, out)


if __name__ == "__main__":
    main()
