"""The friction curve of the EMPS compared with the standard laws, on a lap that was not fitted.

    python experiments/identify_curve_emps.py --data ../shared/data/emps/emps_estimation.npz

Every law is fitted to three of four laps in closed loop and judged on the fourth: by the force of
the loop, and by the position in open loop under the measured force, from the lap's first position
and speed. The curve has nine knots for each direction, with and without a factor on friction that
depends on the position. Data: see ``identify_emps.py``; they are not part of this project.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
from common import print_table
from identify_emps import LAPS, MASS, SPEED, free_of
from measured import arguments, rms
from prediction import relative_error

import jfric
from jfric.files.read_toml import load_config
from jfric.fits.comparison.candidates import candidate_laws
from jfric.fits.comparison.criteria import laps
from jfric.fits.data.measured_files import read_experiments
from jfric.fits.recipe import prepare
from jfric.verification.configs import shipped

KNOTS = (0.0, 2e-3, 5e-3, 0.012, 0.025, 0.045, 0.07, 0.1, 0.14)
PLACES = (-0.02, 0.05, 0.1, 0.15, 0.2, 0.25)


def with_curve(problem: jfric.Problem, *, position: bool) -> jfric.Problem:
    """The axis with a friction curve that includes the force of the damper."""
    flat = (20.0, 20.0, 20.0, 22.0, 24.0, 28.0, 33.0, 40.0, 48.0)
    law = jfric.FrictionCurve(KNOTS, jfric.laws.Directional(flat, flat))
    element = problem.section("friction")["friction"]
    factor = jfric.laws.SplineFactor(PLACES, [1.0] * len(PLACES)) if position else None
    elements = {k: dict(v) for k, v in problem.elements.items() if k != "damper"}
    elements["friction"]["friction"] = replace(element, law=law, limit=1.0, position=factor)
    return jfric.Problem(
        problem.dofs, elements, initial=problem.initial, time=problem.time,
        parameters=problem.parameters,
    )  # fmt: skip


def open_loop(problem: jfric.Problem, experiment: jfric.Experiment) -> float:
    """Root mean square error of the position under the measured force [mm]."""
    mass = float(jfric.get_parameter(problem, "mass.m"))
    task = prepare(jfric.SampledModel(problem), experiment, MASS, observe="x")
    found = task.objective.predict(np.array([[mass]]))[0, 0, : experiment.t.size, 0]
    return 1e3 * rms(found - experiment.y["x"])


def main() -> None:
    path, _ = arguments(__doc__, "emps/emps_estimation.npz")
    config = load_config(shipped("emps")).opened()
    (record,) = read_experiments(config, path)
    controller = config.controller
    assert controller is not None
    *train, test = laps(record, ["x"], LAPS)
    loop = jfric.closed_loop(test, controller)
    no_offset = jfric.set_parameters(config.problem, {"load.offset.F": 0.0})
    rows = []

    def judged(name: str, free: int, result, problem: jfric.Problem, seconds: float) -> None:
        errors = 100 * relative_error(result), 100 * relative_error(result, loop)
        rows.append(
            [name, str(free), *(f"{e:.3f}" for e in errors), f"{open_loop(problem, test):.2f}",
             f"{seconds:.0f}"]
        )  # fmt: skip
        print(" ".join(rows[-1]), flush=True)

    for candidate in candidate_laws(no_offset, SPEED):
        began = time.perf_counter()
        result = jfric.fit(
            candidate.problem, train, free_of(candidate), residual=jfric.ClosedLoop(controller),
            starts=1,
        )  # fmt: skip
        fitted = jfric.set_parameters(candidate.problem, result.values)
        seconds = time.perf_counter() - began
        judged(candidate.name, len(result.names), result, fitted, seconds)
    for position in (False, True):
        # The factor at the first place is one; otherwise it would trade with the whole curve.
        more = {
            f"friction.position.factor.{i}": jfric.Free(0.5, 1.5, scale="linear")
            for i in range(1, len(PLACES))
        }
        began = time.perf_counter()
        found = jfric.fit_curve(
            with_curve(no_offset, position=position), train,
            {**MASS, **(more if position else {})}, residual=jfric.ClosedLoop(controller),
        )  # fmt: skip
        name = "curve, with position" if position else "curve"
        seconds = time.perf_counter() - began
        judged(name, len(found.fit.names), found.fit, found.problem, seconds)
        print(found)
    header = ["law", "free", "fitted laps [%]", "held-out lap [%]", "open loop [mm]", "fit [s]"]
    print_table("Closed-loop force, and position in open loop over the held-out lap", header, rows)


if __name__ == "__main__":
    main()
