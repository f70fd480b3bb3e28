"""Loops from their records: delays of controllers, fits to force and windows, measured machines."""

import functools
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jfric
from jfric.cli.fit_record import free_of
from jfric.files.read_toml import load_config
from jfric.fits.comparison.candidates import candidate_laws
from jfric.fits.comparison.criteria import CLOSED, JOINT, WINDOWS, Setting, error, laps
from jfric.fits.data.measured_files import read_experiments
from jfric.fits.data.stacking import function_paths
from jfric.fits.recipe import prepare
from jfric.fits.sampled_model import found_delay
from jfric.solvers.sampled.run import run_sampled

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT.parent / "shared" / "data"
EMPS = DATA / "emps" / "emps_estimation.npz"
SERVO = DATA / "servo_pendulum" / "servo_pendulum_logs.npz"
PROBLEM = jfric.Problem(
    "x",
    {
        "mass": jfric.Mass("x", 2.0),
        "damper": jfric.Damper("x", 3.0),
        "friction": jfric.Friction("x", limit=4.0),
        "load": jfric.Load("x", 0.0),
    },
    time=6.0,
)
CONTROLLER = jfric.Controller("x", "load.F", kp=450.0, kd=30.0, limit=100.0, mean=2)
TRUE = {"mass.m": 2.0, "damper.c": 3.0, "friction.limit": 4.0}
FREE = {
    "mass.m": jfric.Free(0.5, 8.0, init=3.0),
    "damper.c": jfric.Free(0.3, 30.0, init=6.0),
    "friction.limit": jfric.Free(0.4, 40.0, init=2.0),
}


@functools.cache
def record(delay: float, noise: float = 0.0) -> jfric.Experiment:
    """A loop whose controller is ``delay`` samples late."""
    t = 5e-3 * np.arange(1200)
    reference = 0.1 * np.sin(2.0 * t) + 0.03 * np.sin(5.3 * t)
    late = replace(CONTROLLER, delay=delay)

    @jax.jit
    def run(t, r):
        slots = {"load.F": function_paths(PROBLEM)["load.F"]}
        return run_sampled(PROBLEM, t, {}, slots, controller=late, reference=r)

    found = run(jnp.asarray(t), jnp.asarray(reference))
    x = np.asarray(found.q) + noise * np.random.default_rng(1).normal(size=t.size)
    u = {"load.F": np.asarray(found.inputs["load.F"]), "controller.reference": reference}
    return jfric.Experiment(t, u=u, y={"x": x})


@pytest.mark.parametrize("true", [0.0, 1.0, 2.0])
def test_the_record_shows_the_delay(true):
    found, said = found_delay(CONTROLLER, [record(true, 2e-6)])
    assert float(found.delay) == true
    assert found.longest >= true
    assert (said is None) == (true == 0.0)
    if said:
        assert f"{true:g} samples as the records show, not 0" in said


def test_a_record_of_another_controller_says_nothing_of_the_delay():
    other = replace(CONTROLLER, kp=20.0, kd=900.0)
    assert found_delay(other, [record(2.0)]) == (other, None)
    without = replace(record(2.0), u={"load.F": record(2.0).u["load.F"]})
    assert found_delay(CONTROLLER, [without])[1] is None


@pytest.mark.slow
def test_a_fit_takes_the_delay_of_the_record_and_says_so():
    loop = jfric.ClosedLoop(CONTROLLER)
    result = jfric.fit(PROBLEM, record(2.0), FREE, residual=loop, starts=1)
    assert result.vector == pytest.approx(list(TRUE.values()), rel=1e-5)
    (said,) = [r for r in result.remarks if r.startswith("controller.delay: 2 samples")]
    assert "not 0" in said
    known = replace(record(2.0), known={"controller.delay": 0.0})
    result = jfric.fit(PROBLEM, known, FREE, residual=loop, starts=1)
    assert abs(result.values["mass.m"] / 2.0 - 1.0) > 1e-2
    assert not any(r.startswith("controller.delay") for r in result.remarks)


@pytest.mark.slow
def test_a_fit_to_the_loop_and_to_windows_finds_the_truth():
    both = jfric.LoopAndWindows(1.0, CONTROLLER)
    result = jfric.fit(PROBLEM, record(1.0), FREE, residual=both, starts=1)
    found = [result.values[name] for name in TRUE]
    # A window begins as if its first velocity had lasted for some samples.
    assert found == pytest.approx(list(TRUE.values()), rel=2e-3)
    assert result.objective.data.signals == ("load.F", "x")
    assert result.sigma["load.F"] < 5e-3
    assert result.sigma["x"] < 5e-5


def test_a_controller_with_samples_of_its_own_is_refused():
    own = replace(CONTROLLER, period=1e-3)
    elements = {**PROBLEM.elements, "controller": {"controller": own}}
    problem = jfric.Problem("x", elements, time=6.0)
    with pytest.raises(jfric.ProblemError, match=r"residual: 'both' simulates a controller"):
        jfric.fit(problem, record(0.0), FREE, residual=jfric.LoopAndWindows(), starts=1)


def test_an_integral_is_refused_in_windows():
    both = jfric.LoopAndWindows(1.0, replace(CONTROLLER, ki=30.0))
    with pytest.raises(
        jfric.ProblemError, match=r"controller\.ki: found 30 .* without the integral"
    ):
        jfric.fit(PROBLEM, record(0.0), FREE, residual=both, starts=1)


@pytest.mark.slow
def test_a_comparison_fits_both_and_gives_one_set_of_values():
    found = jfric.compare_laws(
        PROBLEM, record(1.0, 2e-6), {"mass.m": FREE["mass.m"]}, controller=CONTROLLER,
        laws=["Coulomb", "Coulomb + viscous"], folds=2,
    )  # fmt: skip
    assert found.fitted_to == JOINT
    assert {c.name for c in found.criteria if c.fitted} == {CLOSED, WINDOWS}
    assert found.recommended == "Coulomb + viscous"
    assert any(w.startswith("controller.delay: 1 samples") for w in found.warnings)
    assert found.fitted is not None
    values = found.fitted.values
    assert values["mass.m"] == pytest.approx(2.0, rel=1e-3)
    assert values["parameters.F_c"] == pytest.approx(4.0, rel=1e-3)
    assert values["parameters.F_v"] == pytest.approx(3.0, rel=1e-2)
    kept = jfric.get_parameter(found.fitted.problem, "parameters.F_c")
    assert float(kept) == values["parameters.F_c"]
    assert "fitted to all records" in str(found)
    assert found.to_dict()["fitted"]["values"] == values


@pytest.mark.slow
@pytest.mark.skipif(not EMPS.is_file(), reason="the measured data are not part of the project")
def test_one_fit_of_the_axis_foresees_force_and_windows_of_another_lap():
    config = load_config(ROOT / "configs" / "emps.toml").opened()
    *three, last = laps(read_experiments(config, EMPS)[0], ["x"], 4)
    law = next(c for c in candidate_laws(config.problem, 0.08) if c.name == "Stribeck")
    free = {
        "mass.m": jfric.Free(50.0, 200.0),
        "load.offset.F": jfric.Free(-20.0, 20.0, init=3.0, scale="linear"),
    }
    both = jfric.LoopAndWindows(1.0, config.controller)
    result = jfric.fit(law.problem, three, {**free, **law.free}, residual=both, starts=1)
    values = {k: x for k, x in result.values.items() if "[" not in k}
    setting = Setting(config.controller, 1.0)
    force, size = error(CLOSED, law.problem, values, [last], setting)
    position, _ = error(WINDOWS, law.problem, values, [last], setting)
    assert force / size < 0.0367
    assert position < 0.5e-3


@pytest.mark.skipif(not SERVO.is_file(), reason="the measured data are not part of the project")
def test_the_logs_of_the_servo_have_their_gains():
    config = load_config(ROOT / "configs" / "servo_loop.toml")
    records = read_experiments(config, SERVO)
    assert len(records) == 9
    for e in records:
        assert e.known == {"parameters.gain": float(e.name.rpartition("kp")[2])}
    free = free_of(config, None, required=True)
    assert prepare(config.problem, records, free).objective.layout.names == tuple(free)
