import equinox as eqx
import jax.numpy as jnp
import matplotlib.pyplot
import numpy as np
import pytest
from trajectories import HALF_PERIOD, machine, oscillator

import jfric
from jfric.figures.curves import force_curves, force_points, motion_curve
from jfric.figures.response_figure import _drawn
from jfric.figures.style import colour
from jfric.figures.trajectory_figure import plot
from jfric.results.phases import Phase, phases


def test_phases_follow_the_event_log():
    _, solution = oscillator()
    found = phases(solution, 0)
    assert [p.label for p in found] == ["slip+", "slip-"] * 3 + ["slip+", "stick"]
    assert found[0] == Phase(0.0, pytest.approx(HALF_PERIOD), "slip+")
    assert found[-1] == Phase(pytest.approx(7 * HALF_PERIOD), 4.0, "stick")


def test_phases_use_the_outputs_where_the_log_overflowed():
    _, solution = oscillator(outputs=4001)
    log = solution.events
    short = eqx.tree_at(
        lambda s: (s.events.time, s.events.contact), solution, (log.time[:3], log.contact[:3])
    )
    ends = [p.end for p in phases(short, 0)]
    assert len(ends) == 8
    np.testing.assert_allclose(ends[:3], HALF_PERIOD * np.arange(1, 4))
    np.testing.assert_allclose(ends[:-1], HALF_PERIOD * np.arange(1, 8), atol=2e-3)


def test_curves_are_exact_at_events():
    problem, solution = oscillator()
    t, q = motion_curve(solution, "q", 0)
    assert np.all(np.diff(t) >= 0)
    assert q.max() == 0.56  # a turning point, which is no output
    line = force_curves(solution, problem)[0]
    t, force = force_points(solution, line)
    assert np.all(np.isin(np.diff(force), [0.0, 200.0, -200.0]))
    assert np.all(np.diff(t)[np.diff(force) != 0.0] == 0.0)  # jumps are upright


def test_figure_of_one_contact():
    problem, solution = oscillator()
    figure = plot(solution, problem, "title")
    labels = [axis.get_ylabel() for axis in figure.axes]
    assert labels == [
        "displacement [m]", "velocity [m/s]", "friction force [N]", "velocity [m/s]",
    ]  # fmt: skip
    assert figure.axes[-1].get_xlabel() == "displacement [m]"
    assert figure.axes[2].get_xlabel() == "time [s]"
    assert len(figure.axes[0].patches) == 8
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert legend == ["stick", "slip+", "slip-", "event"]
    assert figure.get_suptitle() == "title"


def test_figure_of_several_contacts_and_kinds(tmp_path):
    problem, solution = machine()
    figure = plot(solution, problem)
    labels = [axis.get_ylabel() for axis in figure.axes]
    assert labels == [
        "displacement [m]", "angle [rad]", "velocity [m/s]", "angular velocity [rad/s]",
        "friction force [N]", "friction torque [N·m]", "", "velocity [m/s]",
        "angular velocity [rad/s]",
    ]  # fmt: skip
    inks = [line.get_color() for i in (0, 1, 4, 5) for line in figure.axes[i].lines]
    assert len(set(inks)) == len(inks) == 6
    lanes = [text.get_text() for text in figure.axes[6].get_yticklabels()]
    assert lanes == ["friction.rail", "friction.hinge", "contact.floor", "gap_spring"]
    legend = {text.get_text() for text in figure.legends[0].get_texts()}
    assert {"open", "touch positive", "impact"} <= legend
    figure.savefig(tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 10_000
    assert not matplotlib.pyplot.get_fignums()  # no window, nothing to close


def test_no_colour_is_twice_and_a_panel_has_at_most_eight_curves():
    """Ten blocks: the first eight are drawn, and the panel says how to see the others."""
    names = [f"x{i}" for i in range(10)]
    elements = {
        "mass": {n: jfric.Mass(n, 1.0) for n in names},
        "friction": {f"f{i}": jfric.Friction(n, 0.1, N=1.0) for i, n in enumerate(names)},
    }
    start = {n: jfric.InitialState(v=0.1 * (i + 1)) for i, n in enumerate(names)}
    problem = jfric.Problem(names, elements, initial=start, time=2.0)
    solution = jfric.simulate(problem, ts=jnp.linspace(0.0, 2.0, 5))
    figure = plot(solution, problem)
    position, velocity, force = figure.axes[:3]
    for axis in (position, velocity, force):
        assert len(axis.lines) == 8
        assert axis.get_title("left").startswith(
            "2 of 10 not drawn; choose with jfric.plot(..., show"
        )
    # A colour belongs to one name.
    inks = [line.get_color() for axis in (position, force) for line in axis.lines]
    assert len(set(inks)) == 16
    assert [line.get_color() for line in velocity.lines] == inks[:8]
    some = plot(solution, problem, show=["x9", "friction.f3"])
    assert [[line.get_label() for line in axis.lines] for axis in some.axes[:3]] == [
        ["x9"], ["x9"], ["friction.f3"],
    ]  # fmt: skip
    with pytest.raises(jfric.ProblemError, match=r"show: found 'x10' .did you mean 'x1'"):
        plot(solution, problem, show=["x10"])


def test_colours_do_not_repeat():
    assert len({colour(number) for number in range(100)}) == 100


def test_curves_of_a_family_are_spread_over_it():
    assert _drawn(20, None) == [0, 2, 5, 8, 10, 13, 16, 19]
    assert _drawn(3, None) == [0, 1, 2]
    assert _drawn(20, [4, 19]) == [4, 19]
    for wrong in ([20], range(9)):
        with pytest.raises(jfric.ProblemError, match=r"curves: found .*, give at most 8 numbers"):
            _drawn(20, wrong)
