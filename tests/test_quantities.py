"""What is taken from a trajectory: one meaning in checks, runs, sweeps and ``observe``."""

import csv
import dataclasses
import functools
import json
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from systems import unloaded_spring
from typer.testing import CliRunner

import jfric
from jfric.cli.main import app
from jfric.files.read_toml import load_config
from jfric.system import units, usual_units
from jfric.verification.configs import shipped

EXACT = 1e-12


@functools.cache
def load_cycle() -> jfric.Problem:
    """VE0061: 0, 900 N, 0 on a spring of 6000 N/m with a limit of 300 N."""
    return load_config(shipped("ve0061")).problem


def test_integrals_of_load_histories_are_exact():
    """Slides from 1/3 s to 0.1 m at 1 s, sticks to 5/3 s, slides back to 0.05 m at 2 s."""
    names = "dissipated, mean.u, rms.u, stick_fraction, max.u, max.lambda_t, u(1.5)"
    names += ", lambda_t(0.2), lambda_t(1.5)"
    found = jfric.observe(load_cycle(), names, jfric.QuasiStatic())
    expected = {
        # What the spring of 6 kN/m holds less than the load, as it begins and at rest.
        "lambda_t(0.2)": -180.0,
        "lambda_t(1.5)": 600.0 - 450.0,
        "dissipated": 300.0 * 0.15,
        "mean.u": 0.125 / 2,
        "rms.u": np.sqrt(0.01 * (2 / 9 + 2 / 3 + 7 / 36) / 2),
        "stick_fraction": 0.5,
        "max.u": 0.1,
        "max.lambda_t": 300.0,
        "u(1.5)": 0.1,
    }
    assert int(found.status) == jfric.Status.OK
    for name, value in expected.items():
        np.testing.assert_allclose(found.values[name], value, rtol=EXACT, err_msg=name)


def test_jumps_of_a_load_dissipate():
    """From 10 m back to 8 m at the start, and to 3 m when the load drops, against 30 N."""
    problem = unloaded_spring()
    names = "dissipated, dissipated.friction, mean.u, max.u, min.u, final.u, u(1)"
    found = jfric.observe(problem, names, jfric.QuasiStatic()).values
    expected = {
        "dissipated": 30.0 * 7.0,
        "dissipated.friction": 30.0 * 7.0,
        "mean.u": 5.5,
        "max.u": 10.0,
        "min.u": 3.0,
        "final.u": 3.0,
        "u(1)": 3.0,
    }
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=EXACT, err_msg=name)


def test_work_of_many_sliders_balances():
    """Energy stored and dissipated is the work of the load and of a belt."""
    times, force = [0.0, 1.0, 3.0, 4.0, 5.0], [0.0, 20.0, -20.0, 10.0, -5.0]
    problem = jfric.Problem(
        ("u", "w"),
        {
            "spring": {"own": jfric.Spring("u", 5.0), "link": jfric.Spring(("u", "w"), 3.0)},
            "friction": {
                "a": jfric.Friction("w", limit=4.0),
                "b": jfric.Friction("u", limit=2.0, belt=jfric.Constant(0.5)),
            },
            "load": jfric.Load("u", jfric.PiecewiseLinear(times, force)),
        },
        time=5.0,
    )
    power = jfric.observables.Integral(lambda x: x.v[0] * x.problem.section("load")["load"].F(x.t))
    driven = jfric.observables.Integral(lambda x: x.lambda_t[1] * 0.5)
    names = {"heat": "dissipated", "work": power, "belt": driven, "u": "final.u", "w": "final.w"}
    found = jfric.observe(problem, names, jfric.QuasiStatic()).values
    u, w = found["u"], found["w"]
    stored = 0.5 * 5.0 * u**2 + 0.5 * 3.0 * (w - u) ** 2
    # lambda_T acts on the body: against the sliding velocity, and along the belt.
    np.testing.assert_allclose(found["heat"], found["work"] + found["belt"] - stored, rtol=1e-11)


@pytest.mark.slow
def test_integrals_of_load_histories_have_derivatives():
    """Heat mu N (u1 + (u1 - u2)) with u1 = (900 - mu N) / k and u2 = mu N / k."""

    def heat(mu):
        changed = jfric.set_parameters(load_cycle(), {"friction.mu": mu})
        return jfric.observe(changed, "dissipated", jfric.QuasiStatic()).values["dissipated"]

    exact = lambda mu: mu * 1e3 * (1800.0 - 3e3 * mu) / 6e3  # noqa: E731
    for derivative in (jax.grad, jax.jacfwd):
        np.testing.assert_allclose(derivative(heat)(0.2), jax.grad(exact)(0.2), rtol=1e-10)
    np.testing.assert_allclose(jax.vmap(heat)(jnp.array([0.2, 0.4])), exact(np.array([0.2, 0.4])))


#: A mass on a spring, started with 1 m/s: u = sin t. Two outputs, none near an extremum.
SWING = """
[dofs]
u = "translation"

[mass]
dof = "u"
m = 1.0

[spring]
dof = "u"
k = 1.0

[initial.u]
v = 1.0

[time]
end = 3.0
outputs = 2
"""
SWING_VALUES = {
    "max.u": 1.0,
    "min.v.u": np.cos(3.0),
    "mean.u": (1.0 - np.cos(3.0)) / 3.0,
    "integral.u": 1.0 - np.cos(3.0),
    "rms.v.u": np.sqrt((3.0 + np.sin(3.0) * np.cos(3.0)) / 6.0),
    "min.force.spring": -1.0,
    "impulse.spring": np.cos(3.0) - 1.0,
    "final.u": np.sin(3.0),
    "u(1)": np.sin(1.0),
}


@pytest.fixture
def swing_file(tmp_path):
    checks = [
        f'[[check]]\nquantity = "{name}"\nexpected = {value!r}\ntolerance = 1e-12\n'
        for name, value in ((k, float(v)) for k, v in SWING_VALUES.items())
    ]
    path = tmp_path / "swing.toml"
    path.write_text(SWING + "\n".join(checks), "utf-8")
    return path


@pytest.mark.slow
def test_one_quantity_has_one_value(swing_file, tmp_path):
    """A check, a run, a sweep and ``observe`` agree on the exact value."""
    verified = {r.quantity: r.value for r in jfric.verify([swing_file])}
    out = tmp_path / "out"
    result = CliRunner().invoke(app, ["run", str(swing_file), "--out", str(out)])
    assert result.exit_code == 0, result.output
    written = json.loads((out / "run-001.json").read_text("utf-8"))["checks"]
    ran = {check["quantity"]: check["value"] for check in written}
    problem = jfric.load(swing_file)
    observed = jfric.observe(problem, list(SWING_VALUES)).values
    swept = jfric.sweep(problem, {"mass.m": [1.0, 2.0]}, list(SWING_VALUES)).isel({"mass.m": 0})
    for name, exact in SWING_VALUES.items():
        for found in (verified[name], ran[name], observed[name], swept[name]):
            np.testing.assert_allclose(float(found), exact, rtol=EXACT, err_msg=name)


def test_other_solvers_take_extrema_from_outputs_and_events(swing_file):
    solver = jfric.MoreauJean(1e-3)
    problem = jfric.load(swing_file)
    found = jfric.observe(problem, "max.u, min.v.u, last_event_time, stop_time", solver).values
    assert float(found["max.u"]) == pytest.approx(1.0, abs=1e-5)
    assert float(found["min.v.u"]) == pytest.approx(np.cos(3.0), abs=1e-3)
    assert np.isnan(found["last_event_time"])
    assert np.isnan(found["stop_time"])


def oscillator(mu, end=4.0):
    """VE0116: half waves of 0.444 s; with 0.11 it stops after the seventh."""
    problem = load_config(shipped("ve0116")).problem
    return jfric.set_parameters(problem, {"friction.mu": mu, "time.end": end})


SOLVERS = [jfric.EventDriven(), jfric.EventDriven(flow="runge-kutta"), jfric.MoreauJean(1e-3)]


@pytest.mark.parametrize("solver", SOLVERS, ids=["exact", "runge-kutta", "moreau-jean"])
def test_stop_time_is_that_of_a_motion_that_stops(solver):
    half = np.pi / np.sqrt(50.0)
    names = "stop_time, last_event_time"
    found = jfric.observe(oscillator(0.11), names, solver).values
    np.testing.assert_allclose(found["stop_time"], 7 * half, rtol=1e-3)
    np.testing.assert_allclose(found["last_event_time"], 7 * half, rtol=1e-3)
    # Cut off while it moves: there are events, but no stop.
    found = jfric.observe(oscillator(0.11), names, solver, end=2.5).values
    assert np.isnan(found["stop_time"])
    np.testing.assert_allclose(found["last_event_time"], 5 * half, rtol=1e-3)


@pytest.mark.slow
def test_events_of_a_body_at_rest_do_not_move_its_stop():
    """A block stops at 1 s; at 2 s its load rests it on the other edge of a gap, unmoved; a second
    mass that never moves takes no part."""
    elements = {
        "mass": {"a": jfric.Mass("x", 1.0), "b": jfric.Mass("y", 1.0)},
        "friction": {
            "a": jfric.Friction("x", limit=2.0),
            "b": jfric.Friction("y", limit=2.0, belt=jfric.Steps([2.0], [0.0, 0.0])),
        },
        "load": jfric.Load("y", jfric.Steps([1.5], [0.5, -0.5])),
    }
    initial = {"x": jfric.InitialState(v=2.0)}
    problem = jfric.Problem(("x", "y"), elements, time=3.0, initial=initial)
    found = jfric.observe(problem, "stop_time, last_event_time, before_event.v.x(1)").values
    np.testing.assert_allclose(found["stop_time"], 1.0, rtol=EXACT)
    np.testing.assert_allclose(found["before_event.v.x(1)"], 0.0, atol=EXACT)
    resting = jfric.set_parameters(problem, {"initial.x.v": 0.0})
    assert np.isnan(jfric.observe(resting, "stop_time").values["stop_time"])


@pytest.mark.slow
def test_a_bounce_before_and_after():
    """From 1 m/s, e = 0.5: the velocity at the wall is -1, then 0.5; nothing stops."""
    elements = {"mass": jfric.Mass("x", 1.0), "contact": jfric.Contact("x", gap=1.0, e=0.5)}
    initial = {"x": jfric.InitialState(v=-1.0)}
    problem = jfric.Problem(("x",), elements, time=2.0, initial=initial)
    names = "before_event.v(1), event.v(1), event.x(1), min.v, max.v, stop_time"
    for solver in (jfric.EventDriven(), jfric.MoreauJean(1e-3)):
        found = jfric.observe(problem, names, solver).values
        expected = [-1.0, 0.5, -1.0, -1.0, 0.5, np.nan]
        for name, value in zip(names.split(", "), expected, strict=True):
            np.testing.assert_allclose(found[name], value, atol=2e-3, err_msg=name)


@pytest.mark.slow
def test_a_check_of_a_motion_without_stop_says_so(tmp_path):
    text = SWING + '\n[[check]]\nquantity = "stop_time"\nexpected = 1.0\ntolerance = 1.0\n'
    (tmp_path / "swing.toml").write_text(text, "utf-8")
    (result,) = jfric.verify([tmp_path / "swing.toml"])
    assert result.quantity == "stop_time (nothing comes to rest)"
    assert not result.passed


@pytest.mark.slow  # its sibling: parts of a trajectory
@pytest.mark.parametrize(
    "solver",
    [
        jfric.EventDriven(),
        pytest.param(jfric.QuasiStatic(), marks=pytest.mark.slow),
        pytest.param(jfric.MoreauJean(1e-2), marks=pytest.mark.slow),
        pytest.param(jfric.Smoothed(), marks=pytest.mark.slow),
    ],
    ids=lambda s: type(s).__name__,
)
def test_observe_ends_where_it_is_told(solver):
    """VE0061 to 1.5 s and beyond its own end: u(t) as simulated, means over the span."""
    problem = oscillator(0.11) if not isinstance(solver, jfric.QuasiStatic) else load_cycle()
    for end in (1.5, 5.0):
        found = jfric.observe(problem, "final.u, u(1.2), mean.u", solver, end=end).values
        solution = jfric.simulate(problem, solver, ts=[1.2, end], end=end)
        np.testing.assert_allclose(found["final.u"], solution.q[-1, 0], rtol=1e-12)
        np.testing.assert_allclose(found["u(1.2)"], solution.q[0, 0], rtol=1e-9)
    with pytest.raises(jfric.ProblemError, match=r"found 1\.2 s, after the end at 1 s"):
        jfric.observe(problem, "u(1.2)", solver, end=1.0)
    with pytest.raises(jfric.ProblemError, match="end: found -1 s, must be later than the start"):
        jfric.observe(problem, "final.u", solver, end=-1.0)


@pytest.mark.slow
def test_observe_takes_as_many_steps_as_a_run_may():
    problem = jfric.Problem(
        ("u",),
        {
            "mass": jfric.Mass("u", 1.0),
            "spring": jfric.Spring("u", 10.0),
            "friction": jfric.Friction("u", jfric.Coulomb(0.1), N=1.0),
        },
        initial={"u": jfric.InitialState(q=1.0)},
        time=2.0,
    )
    found = jfric.observe(problem, "final.u")
    assert int(found.status) == jfric.Status.OK
    fewer = jfric.EventDriven(max_steps=int(found.steps) - 1)
    found = jfric.observe(problem, "final.u", fewer)
    assert (int(found.status), int(found.steps)) == (jfric.Status.MAX_STEPS, fewer.max_steps)
    assert np.isnan(found.values["final.u"])


@pytest.mark.slow
def test_an_observable_need_not_say_when_it_equals_another():
    @dataclasses.dataclass
    class Passes(jfric.observables.Observable):
        name: str = "passes"
        unit: str = "1"

        def start(self, problem, mechanics, dtype):
            return jnp.zeros((), dtype)

        def update(self, carry, piece):
            return carry + 1.0

    found = jfric.observe(oscillator(0.11), [Passes()])
    assert found.values["passes"] >= 1.0


@pytest.mark.slow
def test_the_end_has_a_derivative():
    """The position of a swing at its end: d sin(T) / dT, also in reverse."""
    elements = {"mass": jfric.Mass("u", 1.0), "spring": jfric.Spring("u", 1.0)}
    initial = {"u": jfric.InitialState(v=1.0)}
    problem = jfric.Problem(("u",), elements, time=3.0, initial=initial)
    final = lambda end: jfric.observe(problem, "final.u", end=end).values["final.u"]  # noqa: E731
    for derivative in (jax.jacfwd, jax.grad):
        np.testing.assert_allclose(derivative(final)(2.0), np.cos(2.0), rtol=1e-12)


@pytest.mark.slow
def test_forces_are_columns_of_a_run(swing_file, tmp_path):
    out = tmp_path / "out"
    result = CliRunner().invoke(app, ["run", str(swing_file), "--out", str(out), "--times", "4"])
    assert result.exit_code == 0, result.output
    with (out / "run-001.csv").open() as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        assert float(row["force.spring"]) == -float(row["q.u"])
    units = json.loads((out / "run-001.json").read_text("utf-8"))["units"]
    assert units["force.spring"] == "N"
    assert list(units) == list(rows[0])


def test_what_jumps_counts_up_to_the_jump():
    """Pushed with 1 N against 0.1 N; the belt starts at 1 s, the load is turned off at 1.5 s."""
    elements = {
        "mass": jfric.Mass("x", 1.0),
        "friction": jfric.Friction("x", limit=0.1, belt=jfric.Steps([1.0], [0.0, 5.0])),
        "load": jfric.Load("x", jfric.PiecewiseLinear([0.0, 1.0, 1.5], [1.0, 1.0, 2.0])),
    }
    problem = jfric.Problem(("x",), elements, time=2.0)
    found = jfric.observe(problem, "max.slip, min.slip, final.slip").values
    np.testing.assert_allclose(found["max.slip"], 0.9, rtol=EXACT)
    np.testing.assert_allclose(found["min.slip"], -4.1, rtol=EXACT)


@pytest.mark.slow
def test_times_of_a_sweep_over_the_end():
    """Lanes that do not reach a time have no number there; an end that is the same is checked."""
    problem = oscillator(0.11, end=1.0)
    table = jfric.sweep(problem, {"time.end": [1.0, 2.0]}, "u(1.5), stop_time")
    assert np.isnan(float(table["u(1.5)"][0]))
    assert np.isfinite(float(table["u(1.5)"][1]))
    with pytest.raises(jfric.ProblemError, match=r"found 1\.5 s, after the end at 1 s"):
        jfric.sweep(problem, {"friction.mu": [0.1, 0.2]}, "u(1.5)")


#: Parts of ``x = cos t`` up to 8 s, with the values that they must have.
PARTS = {
    "mean.x after 5 s": (np.sin(8) - np.sin(5)) / 3,
    "integral.x between 1 s and 3 s": np.sin(3) - np.sin(1),
    "max.x between 1 s and 3 s": np.cos(1),
    "min.x before 2 s": np.cos(2),
    "min.v.x between 1 s and 2 s": -1.0,
    "rms.x before 3000 ms": np.sqrt((3 + np.sin(6) / 2) / 6),
    "amplitude.x after 4 s": (1 - np.cos(4)) / 2,
    "amplitude.x": 1.0,
}
SOLVERS = [
    (jfric.EventDriven(), 1e-12),
    (jfric.EventDriven(flow="runge-kutta"), 1e-7),
    (jfric.MoreauJean(dt=1e-3), 3e-3),
]


@pytest.mark.parametrize(("solver", "error"), SOLVERS)
def test_parts_of_a_trajectory_are_observed(solver, error):
    elements = {"mass": jfric.Mass("x", 1.0), "spring": jfric.Spring("x", 1.0)}
    start = {"x": jfric.InitialState(1.0)}
    problem = jfric.Problem(["x"], elements, initial=start, time=8.0)
    found = jfric.observe(problem, [*PARTS], solver)
    assert found.status == jfric.Status.OK
    for name, value in PARTS.items():
        np.testing.assert_allclose(found.values[name], value, atol=error, err_msg=name)


def reaches(e, names, solver):
    """What is observed of a ball from 1 m."""
    elements = {
        "mass": jfric.Mass("z", 1.0),
        "load": jfric.Load("z", -10.0),
        "contact": jfric.Contact("z", e=e),
    }
    start = {"z": jfric.InitialState(1.0)}
    ball = jfric.Problem(["z"], elements, initial=start, time=1.2)
    return jfric.observe(ball, names, solver).values


@pytest.mark.parametrize("solver", [jfric.EventDriven(), jfric.MoreauJean(dt=1e-4)])
def test_parts_between_events_are_observed(solver):
    """It keeps half of its speed: the next flights reach 1/4 m and 1/16 m."""
    expected = {
        "max.z between event_time(1) and event_time(2)": 0.25,
        "max.z after event_time(2)": 0.0625,
        "impact_count before 1 s": 2.0,
        "min.z between 0.2 s and event_time(1)": 0.0,
    }
    rough = solver.label != "event-driven"
    found = reaches(0.5, [*expected, "max.z after event_time(9)"], solver)
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, atol=1e-3 if rough else 1e-13, err_msg=name)
    assert np.isnan(found["max.z after event_time(9)"])


@pytest.mark.slow  # its siblings: the parts without derivatives, and derivatives of the whole
def test_parts_between_events_have_derivatives():
    name, solver = "max.z after event_time(2)", jfric.EventDriven()
    slope = jax.grad(lambda e: reaches(e, [name], solver)[name])(0.5)  # e^4
    np.testing.assert_allclose(slope, 4 * 0.5**3, rtol=1e-12)


OUTCOME = """
[[check]]
quantity = "derivative(u(1)/mass.m)"
expected = 0.15058433946987837
tolerance = 1e-12
[[check]]
quantity = "derivative(max.u before 2 s/spring.k)"
expected = -0.5
tolerance = 1e-11
[[check]]
quantity = "status"
expected = "ok"
tolerance = 0
[[check]]
quantity = "flag.grazing"
expected = 0
tolerance = 0
"""


def test_outcomes_and_derivatives_are_checked(tmp_path):
    """u = sqrt(m) sin(t/sqrt(m)) with k = 1, and its largest value v/sqrt(k)."""
    file = tmp_path / "swing.toml"
    file.write_text(SWING + OUTCOME)
    call = CliRunner().invoke
    arguments = ["run", str(file), "--out", str(tmp_path), "--json"]
    done = call(app, [*arguments, "--derivative", "u(1)/mass.m"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)["derivatives"]
    exact = 0.5 * (np.sin(1.0) - np.cos(1.0))
    np.testing.assert_allclose(found["derivative(u(1.0)/mass.m)"], exact, rtol=1e-12)
    assert exact == pytest.approx(0.15058433946987837)
    for slope, said in (
        ("final.u", "expected OBSERVABLE/PATH"),
        ("final.u/spring.c", "no parameter 'spring.c'"),
        ("status/spring.k", "status has no derivative here"),
    ):
        done = call(app, [*arguments[:4], "--derivative", slope])
        assert (done.exit_code, said in done.stderr) == (2, True), done.stderr
    shared = SWING.replace("k = 1.0", 'k = "$stiff"') + "[parameters]\nstiff = 1.0\n"
    file.write_text(shared)
    done = call(app, [*arguments[:4], "--derivative", "final.u/spring.k"])
    assert "spring.k is computed from shared parameters; take parameters.stiff" in done.stderr
    file.write_text(SWING + OUTCOME.replace('"ok"', '"okay"'))
    assert "found 'okay'" in call(app, ["show", str(file)]).stderr


@pytest.mark.slow  # its sibling: a derivative that there is
def test_the_derivative_of_an_event_that_is_none(tmp_path):
    file = tmp_path / "swing.toml"
    file.write_text(SWING + OUTCOME)
    arguments = ["run", str(file), "--out", str(tmp_path), "--json"]
    done = CliRunner().invoke(app, [*arguments, "--derivative", "event_time(9)/mass.m"])
    assert json.loads(done.stdout)["derivatives"]["derivative(event_time(9)/mass.m)"] == "nan"


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("final.u after 3 s", "final is not taken over a part"),
        ("mean.u after 5 s", r"mean.u after 5.0 s: found 5 s, after the end at 4 s"),
        ("mean.u between 2 s and 1 s", "times must be a list that increases"),
        ("mean.u between 1 s", "write 'after 15 s'"),
        ("mean.u before event_count", "a part begins or ends at a time"),
        ("max.u after event_time.none(1)", "no event 'none'"),
    ],
)
def test_a_part_that_is_none_is_refused(name, sentence):
    problem = load_config(shipped("ve0116")).problem
    with pytest.raises(jfric.ProblemError, match=sentence):
        jfric.observe(problem, [name])


def test_tables_of_units_are_not_shared_half_written(tmp_path):
    # pint writes its cache in place: a process that started meanwhile read an empty file.
    before = jax.config.jax_compilation_cache_dir
    jax.config.update("jax_compilation_cache_dir", str(tmp_path))
    try:
        assert units._registry.__wrapped__().Quantity("1 kN").to("N").magnitude == 1000.0
    finally:
        jax.config.update("jax_compilation_cache_dir", before)
    assert not list(tmp_path.rglob("*"))


def test_usual_units_are_those_of_pint():
    registry = units._registry()
    texts = [*usual_units.SYMBOLS, "deg", "", "/s", "1/m", "N s/m", "kN*m/rad", "mm/s^2", "kg m^2"]
    texts += [f"{a}/{b}^2" for a in ("N", "kPa", "mm", "mA") for b in usual_units.SYMBOLS]
    for text in texts:
        factor, measure = usual_units.usual_unit(text)
        unit = registry.parse_units(f"1{text}" if text.startswith("/") else text)
        expected = registry.Quantity(1.0, unit).to_base_units().magnitude
        assert float(factor) == pytest.approx(expected, rel=1e-15), text
        assert dict(measure.powers) == dict(unit.dimensionality), text
        assert text not in usual_units.SYMBOLS or str(measure) == str(unit.dimensionality)


@pytest.mark.parametrize("text", ["N/m s", "N/ m", "m//s", "m*", "m2", "m^22", "1", "inch", "degC"])
def test_other_units_are_left_to_pint(text):
    assert usual_units.usual_unit(text) is None


def test_reading_a_file_with_usual_units_imports_no_slow_package():
    file = str(shipped("slider_crank"))
    code = f"import sys, jfric; jfric.load({file!r}); print(*sys.modules)"
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert not {"pint", "dask", "scipy.special"} & set(found.stdout.split())
