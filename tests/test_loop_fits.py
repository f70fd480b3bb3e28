"""Fits of sampled loops: closed in the simulation, numbers of records, steps of the objective."""

from __future__ import annotations

import functools
import json
from dataclasses import replace

import numpy as np
import pytest
from references.sampled_loops import pid_motion
from typer.testing import CliRunner

import jfric
from jfric.cli.main import app
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


@pytest.mark.parametrize(
    "residual", [pytest.param(jfric.Outputs(), marks=pytest.mark.slow), jfric.ClosedLoop()]
)
def test_positions_and_commands_of_a_loop_are_predicted_exactly(residual):
    """The command of a sample is the one that acts after it."""
    t, q, u = recorded(end=1.0)
    record = jfric.Experiment(t, y={"x": q, "load.motor": u}, sigma=1e-3)
    true = {"friction.mu_s": 0.6, "friction.mu_d": 0.4, "mass.m": 0.05}
    free = {path: jfric.Free(0.5 * x, 2.0 * x, init=x) for path, x in true.items()}
    task = prepare(servo(), record, free, residual=residual)
    cost = task.objective.normal(task.objective.layout.init[None]).cost[0]
    assert 2.0 * cost < 1e-12


def records_of_three_gains():
    """Three gains; a record without the number has that of the problem."""
    records = []
    for kp in (5.0, 8.0, 12.0):
        t, q, _ = recorded(end=0.6, kp=kp)
        known = None if kp == 5.0 else {"controller.kp": kp}
        records.append(jfric.Experiment(t, y={"x": q}, sigma=1e-5, known=known))
    return records, {"friction.mu_d": FREE["friction.mu_d"], "mass.m": FREE["mass.m"]}


@pytest.mark.slow  # its siblings: the objective of a loop, and records that files give numbers
def test_records_have_numbers_of_their_own():
    records, free = records_of_three_gains()
    known = jfric.set_parameters(servo(), {"friction.mu_s": 0.6})
    result = jfric.fit(known, records, free, starts=2)
    assert abs(result.values["friction.mu_d"] - 0.4) < 1e-4
    assert abs(result.values["mass.m"] - 0.05) < 1e-5
    again = jfric.FitResult.from_json(result.to_json())
    assert again.experiments[2].known == {"controller.kp": 12.0}


def test_numbers_of_records_that_no_fit_can_have_are_refused():
    records, free = records_of_three_gains()
    with pytest.raises(jfric.ProblemError, match=r"known.controller.kp: found a number and a free"):
        jfric.fit(servo(), records, {**free, "controller.kp": jfric.Free(1.0, 20.0)})
    with_force = [replace(e, u={"load.motor.F": 0.0 * e.t}) for e in records]
    with pytest.raises(jfric.ProblemError, match=r"known.controller.kp: only fits that simulate"):
        jfric.fit(servo(), with_force, free, residual=jfric.InverseDynamics())
    with pytest.raises(jfric.ProblemError, match=r"u.load.motor.F: missing in experiment 1; the c"):
        jfric.fit(servo(), records, free, residual=jfric.InverseDynamics())
    with pytest.raises(jfric.ProblemError, match=r"known.mass.m: found nan, must be a finite"):
        replace(records[0], known={"mass.m": np.nan})


FILE = """
[dofs]
x = "rotation"
[time]
end = 10.0
[mass]
dof = "x"
m = 0.02
[friction]
dof = "x"
law = "static-dynamic"
mu_s = 1.0
mu_d = 0.5
limit = 1.0
[load.motor]
dof = "x"
F = 0.0
[controller]
reads = "x"
drives = "load.motor"
kp = 5.0
ki = 20.0
kd = 0.5
period = "1 ms"
reference = 0.5
[data]
time = "t"
[data.y]
x = {column = "angle", unit = "rad", resolution = 1e-4}
[fit.free]
"friction.mu_s" = {between = [0.1, 3.0]}
"friction.mu_d" = {between = [0.05, 1.5]}
"mass.m" = {between = [0.005, 0.5]}
"""


def written(folder, record, name="run", text=FILE):
    """The file of the system and a record beside it."""
    (folder / "servo.toml").write_text(text)
    t, q, _ = record
    rows = "\n".join(f"{a:.3f},{b:.4f}" for a, b in zip(t, q, strict=True))
    (folder / f"{name}.csv").write_text(f"t,angle\n{rows}\n")
    return folder / "servo.toml", folder / f"{name}.csv"


@pytest.mark.slow
def test_the_command_finds_stiction_from_a_hunting_loop(tmp_path):
    """D4: ten seconds of encoder steps of 1e-4 rad."""
    config, data = written(tmp_path, recorded())
    out = tmp_path / "fit.json"
    found = CliRunner().invoke(app, ["fit", str(config), "--data", str(data), "--out", str(out)])
    assert found.exit_code == 0, found.output
    rows = json.loads(out.read_text())["parameters"]
    for name, value, most in (
        ("friction.mu_s", 0.6, 0.005),
        ("friction.mu_d", 0.4, 0.005),
        ("mass.m", 0.05, 0.0005),
    ):
        assert abs(rows[name]["value"] - value) < most
        low, high = rows[name]["interval"]
        assert low <= value <= high < low * 1.01


@pytest.mark.slow
def test_positions_and_torques_tell_stiction():
    t, q, u = recorded(end=2.6)
    y = {"x": stepped(q, 1e-4), "load.motor": stepped(u, 1e-5)}
    record = jfric.Experiment(t, y=y, resolution={"x": 1e-4, "load.motor": 1e-5})
    result = jfric.fit(servo(), record, FREE)
    assert abs(result.values["friction.mu_s"] - 0.6) < 1e-3
    assert abs(result.values["mass.m"] - 0.05) < 1e-4
    low, high = result.intervals()["friction.mu_s"]
    assert low < 0.6 < high
    again = jfric.FitResult.from_json(result.to_json())
    assert again.intervals() == result.intervals()
    report = jfric.check(servo(), record, FREE)
    assert not any("does nothing" in f.message for f in report.findings if f.kind == "problem")


@pytest.mark.slow
def test_a_wrong_model_has_no_intervals():
    """A loop with another gain than that of the machine: the residuals are far above the steps."""
    t, q, _ = recorded(end=2.0)
    record = jfric.Experiment(t, y={"x": stepped(q, 1e-4)}, resolution={"x": 1e-4})
    result = jfric.fit(servo(kp=9.0), record, FREE, starts=1)
    assert set(result.intervals().values()) == {None}
    assert "the residuals are far larger than noise: no intervals" in str(result)


def test_files_say_which_number_belongs_to_which_record(tmp_path):
    known = '[data.known."fast*"]\n"controller.kp" = 12.0\n'
    text = FILE.replace("[fit.free]", known + "[fit.free]")
    config, slow = written(tmp_path, recorded(end=1.0), "slow", text)
    _, fast = written(tmp_path, recorded(end=1.0, kp=12.0), "fast 1", text)
    records = jfric.read_experiments(config, [slow, fast])
    assert [e.known for e in records] == [None, {"controller.kp": 12.0}]
    with pytest.raises(jfric.ProblemError, match=r"data.known.fast\*: no record of this name"):
        jfric.read_experiments(config, [slow])
    config.write_text(text.replace("controller.kp", "controller.kq"))
    with pytest.raises(jfric.ProblemError, match=r"no parameter 'controller.kq'"):
        jfric.read_experiments(config, [slow])


def elastic(drag=1.0, **more):
    """A motor that turns a load by a shaft, both with friction."""
    return jfric.Problem(
        {"motor": "rotation", "arm": "rotation"},
        {
            "mass": {"rotor": jfric.Mass("motor", 0.05), "arm": jfric.Mass("arm", 0.2)},
            "spring": jfric.Spring({"motor": 1.0, "arm": -1.0}, 60.0),
            "damper": jfric.Damper({"motor": 1.0, "arm": -1.0}, 0.3),
            "friction": {
                "rotor": jfric.Friction("motor", limit=0.3),
                "arm": jfric.Friction("arm", limit=drag),
            },
            "load": {"drive": jfric.Load("motor", 0.0)},
            **more,
        },
        time=3.0,
    )


PD = {"kp": 20.0, "kd": 1.5}


def elastic_record():
    """What the loop does with the period 10 ms, and a friction of 0.5 N m of the arm."""
    t = 1e-2 * np.arange(300)
    r = 0.6 * np.sin(2.5 * t) + 0.3 * np.sin(6.1 * t)
    loop = jfric.Controller("motor", "load.drive", period=1e-2,
                            reference=jfric.functions.Steps(t[1:], r), **PD)  # fmt: skip
    found = jfric.simulate(elastic(0.5, controller=loop), ts=np.r_[t, 3.0])
    found.check()
    # The command of a sample is the one that acts after it.
    u = {"load.drive.F": found.commands[1:, 0], "controller.reference": r}
    y = {"motor": found.q[:-1, 0], "arm": found.q[:-1, 1]}
    return jfric.Experiment(t, u, y, x0={"motor": (0.0, 0.0), "arm": (0.0, 0.0)}, sigma=1e-3)


@pytest.mark.slow
def test_a_loop_of_two_bodies_with_two_frictions_acts_at_the_samples_of_the_record():
    data, controller = elastic_record(), jfric.Controller("motor", "load.drive", **PD)
    free = {
        "friction.arm.limit": jfric.Free(0.1, 2.0),
        "friction.rotor.limit": jfric.Free(0.1, 1.0),
    }
    residual = jfric.ClosedLoop(controller)
    task = prepare(elastic(), data, free, residual=residual)
    true = np.array([[0.5, 0.3]])
    predicted = task.objective.predict(true)[0, 0, :, 0]
    np.testing.assert_allclose(predicted, data.u["load.drive.F"], atol=1e-7)
    found = jfric.fit(elastic(), data, free, residual=residual, starts=1)
    assert found.values["friction.arm.limit"] == pytest.approx(0.5, abs=1e-3)
    assert found.values["friction.rotor.limit"] == pytest.approx(0.3, abs=1e-3)


def test_samples_of_such_a_loop_are_even():
    t = np.r_[0.0, 0.01, 0.025, 0.03]
    still = np.zeros(4)
    data = jfric.Experiment(t, {"load.drive.F": still, "controller.reference": still},
                            {"motor": t, "arm": t})  # fmt: skip
    controller = jfric.Controller("motor", "load.drive", **PD)
    with pytest.raises(jfric.ProblemError, match=r"t: found steps from 0.005 s to 0.015 s; a cont"):
        prepare(elastic(), data, {"friction.arm.limit": jfric.Free(0.1, 2.0)},
                residual=jfric.ClosedLoop(controller))  # fmt: skip
