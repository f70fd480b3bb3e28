"""Paths of periodic motions: folds, flips, grazing, first stick against closed forms."""

from __future__ import annotations

import functools
import json
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from references import den_hartog
from typer.testing import CliRunner

import jfric
from jfric.cli.main import app
from jfric.periodic.follower import Follower

CONFIGS = "configs"


@functools.cache
def first_stick() -> jfric.OrbitPath:
    """A shaken mass that begins to stick, on both sides at once, as friction grows."""
    problem = jfric.load(f"{CONFIGS}/p5_continuous_slip.toml")
    return jfric.continue_orbit(problem, "friction.mu", 0.6, 0.8, transient=10)


@pytest.mark.slow
def test_the_first_stick_lies_where_the_closed_form_ends():
    path = first_stick()
    change, end = path.special
    assert (change.kind, end.kind, end.parameter) == ("event change", "end", 0.8)

    def left(mu):
        return den_hartog.steady(1.0, 0.1, 1.0, mu, 1.0, 0.8)[2]

    low, high = 0.7, 0.75
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if left(middle) < 0.0 else (low, middle)
    assert change.parameter == pytest.approx(low, abs=1e-9)
    # Both sides stick at once: one change, not two that differ by rounding.
    assert change.before == ("friction: slip+ > slip-", "friction: slip- > slip+")
    assert change.after is not None
    assert sum("> stick" in word for word in change.after) == 2


@pytest.mark.slow
def test_slopes_of_a_path_are_derivatives():
    """In the middle of the path, and on both sides of the change of events."""
    path = first_stick()
    row = len(path.parameter) // 4
    smooth = slice(row - 3, row + 4)
    x = path.parameter[smooth] - path.parameter[row]
    for i in range(2):
        fit = np.polynomial.polynomial.polyfit(x, path.state[smooth, i], 6)
        assert fit[1] == pytest.approx(path.slope[row, i], rel=1e-5)
    change = path.special[0]
    assert change.slope_before is not None
    assert change.slope_after is not None
    # The force changes its way, but the motion changes smoothly into the first stick.
    np.testing.assert_allclose(change.slope_before, change.slope_after, rtol=1e-4)


@pytest.mark.slow
def test_a_path_goes_on_where_it_was_stopped(tmp_path, monkeypatch):
    """What was kept is not computed again, and the whole path is the same, in the library and on
    the command line."""
    problem = jfric.load(f"{CONFIGS}/p5_continuous_slip.toml")
    ends: Any = problem, "friction.mu", 0.6, 0.8
    store, whole = tmp_path / "path", first_stick()
    rows: list[int] = []

    def stop_at(limit):
        def watch(part, count):
            rows.append(count)
            if count == limit:
                raise KeyboardInterrupt

        return watch

    # Before the change of events, and behind it.
    behind = whole.special[0].row + 3
    for limit in (4, behind):
        with pytest.raises(KeyboardInterrupt):
            jfric.continue_orbit(*ends, transient=10, store=store, watch=stop_at(limit))
        assert [p.name for p in store.glob("*.npz")] == ["curve-0001.part.npz"]
    # At the change of events two orbits are found at once.
    assert rows == [n for n in range(2, behind + 1) if n != whole.special[0].row + 1]
    resumed = jfric.continue_orbit(*ends, transient=10, store=store)
    assert [p.name for p in store.glob("*.npz")] == ["curve-0001.whole.npz"]
    assert [p.kind for p in resumed.special] == [p.kind for p in whole.special]
    assert resumed.special[0].parameter == pytest.approx(whole.special[0].parameter, abs=1e-10)
    assert resumed.special[0].row == whole.special[0].row
    np.testing.assert_allclose(resumed.parameter, whole.parameter, rtol=1e-9)
    np.testing.assert_array_equal(resumed.parameter[:4], whole.parameter[:4])
    np.testing.assert_array_equal(resumed.slope[:4], whole.slope[:4])
    assert len(resumed.events) == len(resumed.parameter) == len(resumed.observe("max.x")["max.x"])

    def never(*_):
        raise AssertionError

    monkeypatch.setattr(Follower, "follow", never)
    again = jfric.continue_orbit(*ends, transient=10, store=store)
    np.testing.assert_array_equal(again.parameter, resumed.parameter)
    np.testing.assert_array_equal(again.orbits.state, resumed.orbits.state)
    with pytest.raises(jfric.ProblemError, match=r"holds another path \(interval differ\)"):
        jfric.continue_orbit(problem, "friction.mu", 0.6, 0.7, transient=10, store=store)


@pytest.mark.slow
def test_a_path_on_the_command_line_goes_on(tmp_path, monkeypatch):
    out = tmp_path / "slip"
    command = ["periodic", "configs/p5_continuous_slip.toml", "--out", str(out)]
    command += ["--parameter", "friction.mu=0.6:0.8"]
    step = Follower._step

    def interrupted(self, *given):
        if len(self.rows) == 3:
            raise KeyboardInterrupt
        return step(self, *given)

    with monkeypatch.context() as patch:
        patch.setattr(Follower, "_step", interrupted)
        found = CliRunner().invoke(app, command)
    assert found.exit_code == 130
    assert f"the same command with --out {out} goes on" in found.output.replace("\n", "")
    found = CliRunner().invoke(app, command)
    assert found.exit_code == 0, found.output
    assert "0.72944127" in found.output
    assert sorted(p.name for p in out.iterdir()) == [
        *("curve-0001.whole.npz", "orbits-001.csv", "orbits-001.json", "path.json")
    ]


def test_bad_requests_are_one_sentence():
    problem = jfric.load(f"{CONFIGS}/p5_continuous_slip.toml")
    for arguments, options, words in (
        (("friction.nu", 0.1, 0.2), {}, "did you mean 'friction.mu'"),
        (("friction.mu", 0.1, 0.1), {}, "must differ from start"),
        (("friction.mu", -0.1, 0.1), {}, "friction.mu"),
        (("friction.mu", 0.1, 0.2), {"max_step": 0.0}, "max_step: found 0.0"),
    ):
        with pytest.raises(jfric.ProblemError, match=words):
            jfric.continue_orbit(problem, *arguments, **options)


@pytest.mark.slow
def test_a_ball_on_a_table_folds_and_doubles_its_period():
    ball = jfric.load(f"{CONFIGS}/p1_ball.toml")
    e, g, w = 0.8, 9.81, 2.0 * math.pi
    first, size = jfric.periodic_orbit(ball, start=jnp.array([0.4, -4.5])), g / w**2
    name = "base.table.displacement.amplitude"
    up = jfric.continue_orbit(ball, name, 0.4 * size, 1.2 * size, orbit=first)
    sine = 2.0 * (1.0 + e**2) / (1.0 + e) ** 2
    cosine = math.pi * (1.0 - e) / (1.0 + e)
    (flip,) = up.points("flip")
    assert flip.parameter / size == pytest.approx(math.hypot(sine, cosine), abs=1e-10)
    assert up.stable[: flip.row + 1].all()
    assert not up.stable[flip.row + 1 :].any()
    down = jfric.continue_orbit(ball, name, 0.4 * size, 0.3 * size, orbit=first)
    # The impact passes the start of the period right at the fold: the path goes on all the same.
    (fold,) = down.points("fold")
    assert fold.parameter / size == pytest.approx(cosine, abs=1e-10)
    assert down.parameter[-1] / size == pytest.approx(0.4)
    assert not down.stable[-1]


@pytest.mark.slow
def test_grazing_is_located_and_the_path_goes_on_with_impacts():
    wall = jfric.load(f"{CONFIGS}/p2_grazing.toml")
    path = jfric.continue_orbit(wall, "load.F.amplitude", 0.05, 0.12)
    (change,) = path.points("event change")
    assert change.parameter == pytest.approx(0.1, abs=1e-10)
    assert change.after is not None
    assert change.after[0].endswith("(impact)")
    # The motion without impact is the linear one.
    before = path.parameter[: change.row + 1]
    np.testing.assert_allclose(path.observe("max.x")["max.x"][: change.row + 1], before / 0.1)


@pytest.mark.slow
def test_the_period_of_stick_slip_over_the_speed_of_the_belt():
    belt = jfric.load(f"{CONFIGS}/c4_belt.toml")
    path = jfric.continue_orbit(belt, "friction.belt", 0.2, 1.5)
    v = path.parameter
    np.testing.assert_allclose(
        path.period, 1.0 / v + math.pi + 2.0 * np.arctan(2.0 * v), rtol=1e-12
    )
    assert np.all(path.multipliers[:, 1] == 0.0)


@pytest.mark.slow
def test_where_symmetry_breaks_a_multiplier_is_one():
    oscillator = jfric.Problem(
        ("x",),
        {
            "mass": jfric.Mass("x", 1.0),
            "damper": jfric.Damper("x", 0.2),
            "polynomial_spring": jfric.PolynomialSpring("x", [1.0, 0.0, 1.0]),
            "load": jfric.Load("x", jfric.Harmonic(5.0, 1.0)),
        },
    )
    path = jfric.continue_orbit(oscillator, "load.F.amplitude", 1.0, 12.0, transient=30)
    points = path.points("branch point")
    assert len(points) == 2
    for point in points:
        assert abs(point.multipliers[0] - 1.0) < 1e-6
    # Between them the symmetric motion is unstable.
    inside = (path.parameter > points[0].parameter) & (path.parameter < points[1].parameter)
    np.testing.assert_array_equal(path.stable, ~inside)


@functools.cache
def stopped() -> tuple[jfric.Problem, jfric.OrbitPath]:
    """Two masses and an elastic stop, through the first resonance."""
    problem = jfric.Problem(
        ("x", "y"),
        {
            "mass": {"a": jfric.Mass("x", 1.0), "b": jfric.Mass("y", 0.5)},
            "spring": {"a": jfric.Spring("x", 1.0), "b": jfric.Spring(("x", "y"), 0.6)},
            "damper": {"a": jfric.Damper("x", 0.05), "b": jfric.Damper(("x", "y"), 0.03)},
            "stop": jfric.Stop("x", k=4.0, gap=0.6),
            "load": jfric.Load("x", jfric.Harmonic(0.1, 1.0)),
        },
    )
    return problem, jfric.continue_orbit(problem, "load.F.omega", 0.6, 0.9, transient=100)


@pytest.mark.slow
def test_a_figure_is_solid_where_motions_are_stable():
    _, path = stopped()
    (axis,) = jfric.plot_orbits(path, "max.x").axes
    styles = [line.get_linestyle() for line in axis.get_lines()]
    assert styles.count("-") == 2
    assert styles.count("--") == 1
    assert styles.count("None") == 4
    four = jfric.plot_orbits(path, "max.x, max.y, max.v.x, max.v.y").axes
    assert [axis.get_visible() for axis in four] == [True] * 4 + [False] * 2
    with pytest.raises(jfric.ProblemError, match="no quantity"):
        jfric.plot_orbits(path, "max.z")


@pytest.mark.slow
def test_a_response_with_two_folds_against_transients():
    """Stable orbits stay where they are for 300 periods; unstable ones leave at the rate of their
    largest multiplier."""
    problem, path = stopped()
    kinds = [point.kind for point in path.special]
    assert kinds == ["event change", "fold", "fold", "event change", "end"]
    dofs = problem.axes
    names = [f"initial.{dof}.{x}" for x in "qv" for dof in dofs]
    stable = np.flatnonzero(path.stable)[:: max(len(path.stable) // 6, 1)]
    unstable = np.flatnonzero(~path.stable)
    chosen = [*stable.tolist(), int(unstable[len(unstable) // 2])]

    @jax.jit
    def after(omega, start, state, end):
        values = dict(zip(names, state, strict=True)) | {"load.F.omega": omega}
        begun = jfric.set_parameters(problem, values | {"time.start": start, "time.end": end})
        final = jfric.simulate(begun, jfric.EventDriven(max_events=1), end=end).final
        return jnp.concatenate([final.q, final.v])

    for row in chosen:
        orbit = jax.tree.map(lambda x, row=row: x[row], path.orbits)
        start, omega = orbit.problem.time.start, path.parameter[row]
        if path.stable[row]:
            end = after(omega, start, orbit.state, start + 300.0 * orbit.period)
            np.testing.assert_allclose(end, orbit.state, atol=1e-9)
            continue
        vector = np.real(orbit.eigenvectors[:, 0])
        moved = orbit.state + 1e-6 * vector
        end = after(omega, start, moved, start + 5.0 * orbit.period) - orbit.state
        rate = float(np.real(orbit.multipliers[0])) ** 5
        np.testing.assert_allclose(end, rate * 1e-6 * vector, rtol=1e-3, atol=1e-9)


BELT = """
dofs = ["x"]
[time]
end = "30 s"
[mass]
dof = "x"
m = "1 kg"
[spring]
dof = "x"
k = "1 N/m"
[damper]
dof = "x"
c = "0.55 N*s/m"
[friction]
dof = "x"
law = "velocity-weakening"
mu_s = 1.0
v_s = "1/3"
N = "1 N"
belt = "0.5 m/s"
[periodic]
period = 6.283
state = STATE
transient = 0
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("begin", "start"), [(0.55, [0.4, -0.28]), (0.480001, [0.4, -0.0012])], ids=["far", "near"]
)
def test_a_path_ends_where_its_motion_shrinks_to_an_equilibrium(begin, start, tmp_path):
    """Sliding on a belt with weakening friction: at the end the period is that without damping, and
    the spring carries the friction of steady sliding. Near the end there are few steps, too."""
    file, out = tmp_path / "belt.toml", tmp_path / "path"
    file.write_text(BELT.replace("STATE", str(start)))
    command = ["periodic", str(file), "--parameter", f"damper.c={begin}:0.3", "--out", str(out)]
    found = CliRunner().invoke(app, [*command, "--branch", "hopf(1)"])
    assert found.exit_code == 2
    assert "found a point of the kind 'hopf'; branches leave a 'flip'" in found.output
    path = json.loads((out / "orbits-001.json").read_text())
    (end,) = path["special"]
    assert end["kind"] == "hopf"
    # The damper is the slope of friction, 3/(1 + 3 v)^2 at v = 0.5 m/s.
    assert end["parameter"] == pytest.approx(0.48, abs=2e-9)
    np.testing.assert_allclose(end["state"], [0.4, 0.0], atol=1e-9)
    assert end["period"] == pytest.approx(2.0 * math.pi, abs=1e-8)
    rows = np.genfromtxt(out / "orbits-001.csv", delimiter=",", names=True)
    assert len(rows) < 25
    assert rows["damperc"].min() > 0.48
