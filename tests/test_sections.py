"""Poincare sections and bifurcation diagrams by brute force."""

import shlex
from pathlib import Path

import numpy as np
import pytest
from systems_periodic import FLIP, GRAVITY, OMEGA, ball_on_table, damped
from typer.testing import CliRunner

import jfric
from jfric import ProblemError
from jfric.cli.main import app


def test_returns_once_in_each_period_are_the_motion_there():
    problem = damped()
    found = jfric.poincare_section(problem, returns=5, skip=3)
    ts = 2 * np.pi * np.arange(4, 9)
    solution = jfric.simulate(problem, ts=ts, end=float(ts[-1] + 0.1))
    np.testing.assert_allclose(found.q, solution.q, atol=1e-12)
    np.testing.assert_allclose(found.v, solution.v, atol=1e-12)
    assert found.status == jfric.Status.OK
    assert int(found.flags) & jfric.Flag.STOPPED


@pytest.mark.slow
def test_returns_at_impacts_are_the_states_after_them():
    problem = ball_on_table(0.4)
    found = jfric.poincare_section(problem, "impact", returns=3, skip=2)
    events = jfric.simulate(problem, end=6.0).events
    np.testing.assert_allclose(found.q, events.q[2:5], atol=1e-12)
    np.testing.assert_allclose(found.v, events.v[2:5], atol=1e-12)
    # Thrown back with half of g T.
    np.testing.assert_allclose(found.v[:, 0], 0.5 * 9.81, rtol=1e-9)


@pytest.mark.slow
def test_returns_at_events_of_ones_own():
    problem = damped(event={"up": jfric.Event("x", "up"), "top": jfric.Event("v.x", "down")})
    problem = jfric.set_parameters(problem, {"time.end": 60.0})
    found = jfric.poincare_section(problem, "event.top", returns=4)
    np.testing.assert_allclose(found.v, 0.0, atol=1e-12)
    assert np.all(np.asarray(found.q) > 0.0)
    few = jfric.poincare_section(problem, "event.top", returns=40)
    missing = int(np.isnan(few.q).sum())
    assert 20 < missing < 40
    assert np.all(np.isnan(few.q[:missing]))
    assert few.status == jfric.Status.OK


def test_a_piece_longer_than_an_interval_is_not_looked_at_twice():
    # Intervals far shorter than the steps of the exact flow: returns in between are not known.
    found = jfric.poincare_section(damped(), 1e-3, returns=5, skip=50)
    known = np.isfinite(np.asarray(found.q))
    assert known[-1].all() or not known.any()
    assert not known[:-1].any()


@pytest.fixture(scope="module")
def shaken():
    values = np.array([0.8, 1.02, FLIP - 4e-3, FLIP + 4e-3, 1.12])
    # Half a period before or after the impacts of the motion of one period.
    return jfric.bifurcation_diagram(
        ball_on_table(1.0),
        "parameters.Gamma",
        values,
        "v.z, z",
        section=1.0,
        returns=4,
        skip=1500,
        progress=False,
    )


@pytest.mark.slow
def test_the_period_doubles_where_the_multiplier_is_minus_one(shaken):
    assert shaken["v.z"].dims == ("parameters.Gamma", "return")
    v = shaken["v.z"].values
    apart = np.abs(v[:, 0] - v[:, 1])
    np.testing.assert_allclose(v[:, 2:], v[:, :2], rtol=1e-6)  # of one or two returns
    assert np.all(apart[:3] < 1e-6)
    assert np.all(apart[3:] > 0.03)
    # A pitchfork opens with the root of the distance.
    near, far = apart[3] ** 2 / 4e-3, apart[4] ** 2 / (1.12 - FLIP)
    assert near == pytest.approx(far, rel=0.5)


def test_a_bifurcation_diagram_keeps_units_and_stops_early(shaken):
    assert shaken["v.z"].attrs["units"] == "m/s"
    assert np.all(shaken["flags"].values & int(jfric.Flag.STOPPED))


def test_periods_may_vary_with_the_parameter():
    omegas = [0.5, 1.0, 3.0]
    table = jfric.bifurcation_diagram(
        damped(1.0), "load.F.omega", omegas, "x", returns=2, skip=40, progress=False
    )
    exact = [(1.0 / (4.0 - w**2 + 1j * w)).real for w in omegas]
    np.testing.assert_allclose(table["x"].values, np.stack([exact, exact], axis=1), atol=1e-8)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: jfric.poincare_section(damped(), "evnt.a"), "section: found 'evnt.a'"),
        (lambda: jfric.poincare_section(damped(), "impact"), "there is no contact"),
        (lambda: jfric.poincare_section(damped(), returns=0), "returns: found 0"),
        (
            lambda: jfric.bifurcation_diagram(damped(), "damper.c", [], "x"),
            "values: found no list",
        ),
        (
            lambda: jfric.bifurcation_diagram(damped(), "damper.d", [1.0], "x"),
            "path: no parameter 'damper.d'",
        ),
        (lambda: jfric.bifurcation_diagram(damped(), "damper.c", [1.0], "y"), "observe: "),
    ],
)
def test_bad_input_is_one_sentence(call, said):
    with pytest.raises(ProblemError) as error:
        call()
    assert said in str(error.value)
    assert "\n" not in str(error.value)


AMPLITUDE = "base.table.displacement.amplitude"


@pytest.mark.slow
def test_a_diagram_and_exponents_on_the_command_line(tmp_path):
    """A ball on a table: one return before the doubling, two behind it; the size of both
    multipliers is the restitution where they are a pair."""
    size = GRAVITY / OMEGA**2
    ball, changed = "configs/p1_ball.toml", []
    for name, value in (("q", "0.4144619786082071"), ("v", "-4.108476460563543")):
        changed += ["--set", f"initial.z.{name}={value}"]
    store = tmp_path / "returns"
    command = [
        "bifurcations",
        ball,
        "--vary",
        f"{AMPLITUDE}=[{0.9 * size}, {1.1 * size}]",
        *changed,
    ]
    command += ["--observe", "v.z", "--section", "impact", "--returns", "2", "--skip", "1500"]
    command += ["--set", "time.end=1600", "--out", str(store), "--plot"]
    found = CliRunner().invoke(app, command)
    assert found.exit_code == 0, found.output
    v = jfric.open_sweep(store)["v.z"].values
    assert abs(v[0, 0] - v[0, 1]) < 1e-6
    assert abs(v[1, 0] - v[1, 1]) > 0.03
    assert store.with_suffix(".png").exists()
    store = tmp_path / "lyapunov"
    command = ["lyapunov", ball, "--vary", f"{AMPLITUDE}=[{0.4 * size}]", *changed]
    command += ["--interval", "1 s", "--intervals", "4000", "--parts", "4", "--out", str(store)]
    found = CliRunner().invoke(app, command)
    assert found.exit_code == 0, found.output
    kept = jfric.open_sweep(store)
    assert shlex.split(kept.attrs["command"])[:3] == ["jfric", *command[:2]]
    means = kept["lyapunov_exponent"].values
    assert means.mean() == pytest.approx(np.log(0.8), abs=2e-3)
    assert f"{means.mean():.6g}" in found.output


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["bifurcations", "--observe", "v.z", "--vary", "contact.f=[1]"], "mean 'contact.e'"),
        (
            ["bifurcations", "--observe", "v.z", "--vary", "contact.e=0:1"],
            "--vary contact.e: found",
        ),
        (
            ["bifurcations", "--observe", "v.z", "--vary", "contact.e=[0.8]", "--section", "3 kg"],
            "--section: ",
        ),
        (
            ["bifurcations", "--observe", "v.y", "--vary", "contact.e=[0.8]"],
            "observe: ",
        ),
        (["lyapunov", "--vary", "contact.e=[0.8]", "--interval", "3 kg"], "--interval: "),
        (["lyapunov", "--vary", "contact.e=[0.8]", "--interval", "impact"], "'period' or a time"),
        (["lyapunov", "--vary", "contact.e=[0.8]", "--parts", "0"], "parts: found 0"),
    ],
)
def test_bad_commands_are_one_sentence(options, said, tmp_path, monkeypatch):
    file = Path("configs/p1_ball.toml").resolve()
    monkeypatch.chdir(tmp_path)
    found = CliRunner().invoke(app, [options[0], str(file), *options[1:]])
    assert found.exit_code == 2
    assert said in " ".join(found.output.split())
    assert not list(tmp_path.glob("results/*/*"))
