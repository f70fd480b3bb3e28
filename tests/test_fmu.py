"""Units of co-simulation: events, inputs and states against the direct run."""

import json

import jax.numpy as jnp
import numpy as np
import pytest
from typer.testing import CliRunner

import jfric
from jfric.cli.main import app
from jfric.exports.fmu import Unit
from jfric.verification.configs import shipped

pytest.importorskip("pythonfmu")
fmpy = pytest.importorskip("fmpy")
pytest.importorskip("fmpy.validation")
pytest.importorskip("fmpy.fmi3")


def opened(path, version):
    """A unit as another tool opens it, ready to step."""
    folder = fmpy.extract(str(path))
    about = fmpy.read_model_description(str(path))
    kind = fmpy.fmi2.FMU2Slave if version == 2 else fmpy.fmi3.FMU3Slave
    unit = kind(
        unzipDirectory=folder,
        instanceName="one",
        modelIdentifier=about.coSimulation.modelIdentifier,
        guid=about.guid,
    )
    unit.instantiate()
    return unit, {x.name: x.valueReference for x in about.modelVariables}


def begun(unit, version):
    if version == 2:
        unit.setupExperiment(startTime=0.0)
        unit.enterInitializationMode()
    else:
        unit.enterInitializationMode(startTime=0.0)
    unit.exitInitializationMode()


def events_of(unit, names):
    (listed,) = unit.getString([names["events"]])
    return json.loads(listed)


@pytest.fixture(scope="module")
def belt(tmp_path_factory):
    problem = jfric.load(shipped("c4_belt"))
    path = tmp_path_factory.mktemp("fmu") / "belt.fmu"
    found = jfric.export_fmu(problem, path, inputs=["friction.belt"])
    assert found.inputs == ("friction.belt",)
    return problem, path


@pytest.mark.slow
def test_event_times_do_not_depend_on_the_communication_step(belt):
    problem, path = belt
    assert fmpy.validation.validate_fmu(str(path)) == []
    direct = np.asarray(jfric.simulate(problem).events.used().time)
    for step in (0.37, 4.3):
        unit, names = opened(path, 2)
        begun(unit, 2)
        times, t = [], 0.0
        while t < 29.9:
            unit.doStep(t, step)
            t += step
            times += [row[0] for row in events_of(unit, names) if row[0] <= 30.0]
        (count,) = unit.getInteger([names["event_count"]])
        assert count >= len(direct)
        assert times == pytest.approx(direct, abs=1e-9)
        unit.terminate()
        unit.freeInstance()


def test_states_come_back_to_the_last_bit(belt):
    unit, names = opened(belt[1], 2)
    begun(unit, 2)
    outputs = [names[x] for x in ("x", "v.x", "lambda_t.friction", "last_event_time")]
    unit.doStep(0.0, 1.0)
    kept = unit.getFMUstate()
    stored = unit.serializeFMUstate(kept)

    def onward():
        for k in range(3):
            unit.doStep(1.0 + 2.0 * k, 2.0)
        return unit.getReal(outputs)

    first = onward()
    unit.setFMUstate(kept)
    assert onward() == first
    unit.setFMUstate(unit.deSerializeFMUstate(stored))
    assert onward() == first
    unit.freeFMUstate(kept)
    unit.terminate()
    unit.freeInstance()


@pytest.mark.slow
def test_parameters_and_inputs_are_those_of_a_direct_run(belt):
    problem, path = belt
    unit, names = opened(path, 2)
    unit.setupExperiment(startTime=0.0)
    unit.enterInitializationMode()
    unit.setReal([names["spring.k"]], [2.0])
    unit.exitInitializationMode()
    for k, belt_speed in enumerate((0.2, 0.3, 0.1)):
        unit.setReal([names["friction.belt"]], [belt_speed])
        unit.doStep(4.0 * k, 4.0)
    found = unit.getReal([names["x"], names["v.x"]])
    unit.terminate()
    unit.freeInstance()
    state, changed = None, jfric.set_parameters(problem, {"spring.k": 2.0})
    for k, belt_speed in enumerate((0.2, 0.3, 0.1)):
        held = jfric.set_parameters(changed, {"friction.belt": belt_speed})
        end = 4.0 * (k + 1)
        solution = jfric.simulate(held, ts=jnp.asarray([end]), start=state, end=end).check()
        state = solution.final
    assert found == pytest.approx([float(solution.q[0, 0]), float(solution.v[0, 0])], abs=1e-12)


@pytest.mark.slow
def test_a_bouncing_contact_in_version_3(tmp_path):
    pytest.importorskip("pythonfmu3")
    problem = jfric.load(shipped("c7_bouncing_ball"))
    path = tmp_path / "ball.fmu"
    jfric.export_fmu(problem, path, version=3)
    assert fmpy.validation.validate_fmu(str(path)) == []
    unit, names = opened(path, 3)
    begun(unit, 3)
    direct = np.asarray(jfric.simulate(problem).events.used().time)
    direct = direct[direct < 2.0]
    times = []
    for k in range(10):
        unit.doStep(0.2 * k, 0.2)
        times += [row[0] for row in events_of(unit, names)]
    assert len(direct) > 2
    assert [t for t in times if t < 2.0] == pytest.approx(direct, abs=1e-9)
    unit.terminate()
    unit.freeInstance()


def test_a_unit_without_fmi_says_what_went_wrong(tmp_path):
    from jfric.exports.fmu import NAMES, SYSTEM, described

    problem = jfric.load(shipped("ve0116"))
    (tmp_path / SYSTEM).write_text(jfric.to_toml(problem))
    (tmp_path / NAMES).write_text(json.dumps(described(problem, [], None)))
    unit = Unit(tmp_path)
    unit.begin(0.0)
    assert unit.step(1.0) == ""
    kept = unit.kept()
    assert unit.step(2.0) == ""
    after = dict(unit.outputs)
    unit.put_back(json.loads(json.dumps(kept)))
    assert unit.step(2.0) == ""
    assert unit.outputs == after
    fresh = Unit(tmp_path)
    before = fresh.kept()
    fresh.put_back(json.loads(json.dumps(kept)))
    assert fresh.step(2.0) == ""
    assert fresh.outputs == after
    fresh.put_back(before)
    fresh.begin(0.0)
    assert fresh.step(1.0) == ""
    assert fresh.kept() == kept


def test_what_a_unit_cannot_have_is_refused(tmp_path):
    problem = jfric.load(shipped("c4_belt"))
    path = tmp_path / "unit.fmu"
    with pytest.raises(jfric.ProblemError, match=r"inputs: found 'load\.F', allowed are functions"):
        jfric.export_fmu(problem, path, inputs=["load.F"])
    with pytest.raises(jfric.ProblemError, match=r"outputs: found 'y', there are x, v\.x"):
        jfric.export_fmu(problem, path, outputs=["y"])
    with pytest.raises(jfric.ProblemError, match="version: found 4, allowed are 2 and 3"):
        jfric.export_fmu(problem, path, version=4)
    with pytest.raises(jfric.ProblemError, match="path: found"):
        jfric.export_fmu(problem, tmp_path / "unit.zip")
    with pytest.raises(jfric.ProblemError, match="solver: found 'moreau-jean'"):
        jfric.export_fmu(problem, path, solver={"name": "moreau-jean", "dt": 1e-3})


def test_the_command_writes_a_unit(tmp_path):
    out = str(tmp_path / "belt.fmu")
    options = ["--to", "fmu", "--inputs", "friction.belt", "--outputs", "x,v.x", "--out", out]
    found = CliRunner().invoke(app, ["export", str(shipped("c4_belt")), *options])
    assert found.exit_code == 0, found.output
    assert "inputs: friction.belt" in found.output
    assert "outputs: x, v.x, mode.friction" in found.output
    about = fmpy.read_model_description(out)
    assert about.coSimulation.canGetAndSetFMUstate
    assert {x.name for x in about.modelVariables if x.causality == "input"} == {"friction.belt"}
