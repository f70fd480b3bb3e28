"""Fits of sampled loops: closed in the simulation, numbers of each record, steps of the objective."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from references.sampled_loops import pid_motion

import jfric
from jfric.fits.recipe import prepare

T = 1e-3
FREE = {
    "friction.mu_s": jfric.Free(0.1, 3.0, init=1.0),
    "friction.mu_d": jfric.Free(0.05, 1.5, init=0.5),
    "mass.m": jfric.Free(0.005, 0.5, init=0.02),
}


def servo(**changes):
    """D3 with wrong numbers of the mass and its friction."""
    words = {"kp": 5.0, "ki": 20.0, "kd": 0.5, "period": T, "reference": 0.5} | changes
    return jfric.Problem(
        {"x": "rotation"},
        {
            "mass": jfric.Mass("x", 0.02),
            "friction": jfric.Friction("x", jfric.StaticDynamic(1.0, 0.5), limit=1.0),
            "load": {"motor": jfric.Load("x", 0.0)},
            "controller": jfric.Controller("x", "load.motor", **words),
        },
        time=10.0,
    )


@functools.cache
def recorded(*, end=10.0, kp=5.0, F_s=0.6, F_d=0.4, m=0.05):
    """Times, positions and commands of the loop with the true numbers, exact."""
    rows = pid_motion(m=m, F_s=F_s, F_d=F_d, kp=kp, ki=20.0, kd=0.5, T=T, end=end, r=lambda t: 0.5)
    q, _, u = np.array(rows[:-1]).T
    return np.arange(q.size) * T, q, u


def stepped(values, step):
    return step * np.round(values / step)


def test_positions_and_commands_of_a_loop_are_predicted_exactly():
    """The command of a sample is the one that acts after it."""
    t, q, u = recorded(end=1.0)
    record = jfric.Experiment(t, y={"x": q, "load.motor": u}, sigma=1e-3)
    true = {"friction.mu_s": 0.6, "friction.mu_d": 0.4, "mass.m": 0.05}
    free = {path: jfric.Free(0.5 * x, 2.0 * x, init=x) for path, x in true.items()}
    for residual in (jfric.Outputs(), jfric.ClosedLoop()):
        task = prepare(servo(), record, free, residual=residual)
        cost = task.objective.normal(task.objective.layout.init[None]).cost[0]
        assert 2.0 * cost < 1e-12


def test_records_have_numbers_of_their_own():
    """Three gains in one fit; a record without the number has that of the problem."""
    records = []
    for kp in (5.0, 8.0, 12.0):
        t, q, _ = recorded(end=0.6, kp=kp)
        known = None if kp == 5.0 else {"controller.kp": kp}
        records.append(jfric.Experiment(t, y={"x": q}, sigma=1e-5, known=known))
    free = {"friction.mu_d": FREE["friction.mu_d"], "mass.m": FREE["mass.m"]}
    result = jfric.fit(servo(), records, free, starts=2)
    assert abs(result.values["friction.mu_d"] - 0.4) < 1e-6
    assert abs(result.values["mass.m"] - 0.05) < 1e-7
    again = jfric.FitResult.from_json(result.to_json())
    assert again.experiments[2].known == {"controller.kp": 12.0}
    with pytest.raises(jfric.ProblemError, match="known.controller.kp: found a number and a free"):
        jfric.fit(servo(), records, {**free, "controller.kp": jfric.Free(1.0, 20.0)})
    with pytest.raises(jfric.ProblemError, match="known.controller.kp: only fits that simulate"):
        jfric.fit(servo(), records, free, residual=jfric.InverseDynamics())
    with pytest.raises(jfric.ProblemError, match="known.mass.m: found nan, must be a finite"):
        jfric.Experiment(t, y={"x": q}, known={"mass.m": np.nan})
