import equinox as eqx
import matplotlib.pyplot
import numpy as np
import pytest
from trajectories import HALF_PERIOD, machine, oscillator

from jfric.figures.curves import force_curves, force_points, motion_curve
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
    lanes = [text.get_text() for text in figure.axes[6].get_yticklabels()]
    assert lanes == ["friction.rail", "friction.hinge", "contact.floor", "gap_spring"]
    legend = {text.get_text() for text in figure.legends[0].get_texts()}
    assert {"open", "touch positive", "impact"} <= legend
    figure.savefig(tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 10_000
    assert not matplotlib.pyplot.get_fignums()  # no window, nothing to close
