import equinox as eqx
import jax.numpy as jnp
import matplotlib.pyplot
import numpy as np
import pytest
from structure_figure import plot_structure
from trajectories import HALF_PERIOD, machine, oscillator

import jfric
from jfric.figures.bias_figure import bias_figure, bristle_figure
from jfric.figures.curves import Phase, force_curves, force_points, motion_curve, phases
from jfric.figures.steady_figure import _drawn
from jfric.figures.style import colour
from jfric.figures.trajectory_figure import plot
from jfric.figures.view.fit_view import FOLD, plot_comparison
from jfric.solvers.bias import BristleBias, SmoothingBias


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


def test_a_bias_is_drawn_beside_the_slope_of_first_order():
    widths, distance = np.array([1e-2, 1e-3]), np.array([[4e-3, 2e-4], [4e-4, 0.0]])
    codes = np.zeros(2, int)
    smoothing = SmoothingBias(
        widths, distance, distance, 0.1 * distance, np.array([50, 80]), codes, 7, ("x", "y"),
        ("left", "right"),
    )  # fmt: skip
    left, right = bias_figure(smoothing, "title").axes
    *curves, slope = left.lines
    assert [line.get_label() for line in left.lines] == [
        "distance x", "distance y", "creep left", "creep right", "first order",
    ]  # fmt: skip
    np.testing.assert_array_equal(curves[1].get_ydata(), [2e-4, np.nan])
    assert slope.get_xdata().tolist() == [1e-3, 1e-2]
    np.testing.assert_allclose(slope.get_ydata(), [0.3 * 4e-4, 0.3 * 4e-3])
    assert right.lines[0].get_ydata().tolist() == [50, 80]
    assert set(right.lines[1].get_ydata()) == {7}
    bristles = BristleBias(
        1.0 / widths, distance, distance, np.array([50, 80]), codes, 7, ("x", "y")
    )
    figure = bristle_figure(bristles)
    left, right = figure.axes
    assert left.get_xlabel() == "stiffness of the bristles [N/m or N m/rad]"
    # Softer bristles are further away.
    np.testing.assert_allclose(left.lines[-1].get_ydata(), [0.3 * 4e-3, 0.3 * 4e-4])
    assert [line.get_label() for line in right.lines] == [
        "bristles (steps)", "set-valued law (passes)",
    ]  # fmt: skip


def test_a_structure_is_drawn_as_its_grid_lines():
    """Two squares one above the other; the upper right corner moves up by 0.1 m."""
    nodes = np.array([[x, y] for y in (0.0, 1.0, 2.0) for x in (0.0, 1.0)])
    dofs = np.full((6, 2), -1)
    dofs[5, 1] = 0
    one, none = np.eye(1), np.zeros((0, 1))
    made = jfric.Structure(
        one, none, none, one, np.zeros(0), nodes=nodes, dofs=dofs, body=np.zeros(6, int)
    )
    figure = plot_structure(made, [0.1], title="title")
    still, moved = figure.axes
    assert moved.get_title(loc="left") == "deformed, displacements times 1"
    (lines,) = still.collections
    assert sorted(map(len, lines.get_segments())) == [2, 2, 2, 3, 3]
    assert max(x[:, 1].max() for x in lines.get_segments()) == 2.0
    (lines,) = moved.collections
    # A twentieth of the height of 2 m.
    assert max(x[:, 1].max() for x in lines.get_segments()) == pytest.approx(2.1)
    twice = plot_structure(made, [0.1], magnify=2.0).axes[1].collections[0]
    assert max(x[:, 1].max() for x in twice.get_segments()) == pytest.approx(2.2)
    assert "times 1" in plot_structure(made, [0.0]).axes[1].get_title(loc="left")
    with pytest.raises(jfric.ProblemError, match="it cannot be drawn"):
        plot_structure(jfric.Structure(one, none, none, one, np.zeros(0)), [0.1])


def test_errors_of_laws_are_drawn_up_to_four_times_the_best():
    """One law is best, one is close to it, one is far away, one could not be fitted."""
    means = {"simple": 0.011, "rich": 0.01, "poor": 0.1, "odd": np.inf}
    laws = {
        name: {
            "mean": mean, "scores": [0.5 * mean, 1.5 * mean], "standard_error": 0.002,
            "within": mean < 0.05,
        }
        for name, mean in means.items()
    }  # fmt: skip
    criteria = {
        "open loop": {"unit": "m", "size": 2.0, "fitted": False, "laws": laws},
        "inverse dynamics": {"unit": "N", "size": 2.0, "fitted": True, "laws": laws},
    }
    found = {"criteria": criteria, "laws": laws, "recommended": "simple"}
    first, second = plot_comparison(found).axes
    assert first.get_title() == "open loop"
    assert second.get_title() == "inverse dynamics (fitted)"
    # Millimetres, and parts of the size of measured forces.
    assert [axis.get_xlabel() for axis in (first, second)] == ["error [mm]", "error [%]"]
    for axis, factor in ((first, 1e3), (second, 50.0)):
        folds = [line for line in axis.lines if line.get_color() == FOLD]
        np.testing.assert_allclose(folds[0].get_xdata(), factor * np.array([0.0055, 0.0165]))
        assert set(folds[2].get_xdata()) == {factor * 0.04}
        assert [text.get_text() for text in axis.texts] == [f"{factor * 0.1:.3g} →", "failed"]
        means = [line for line in axis.lines if line.get_marker() == "o"]
        np.testing.assert_allclose(
            [x.get_xdata()[0] for x in means], factor * np.array([0.011, 0.01])
        )
    bold = [label.get_fontweight() for label in first.get_yticklabels()]
    assert bold == ["bold", "normal", "normal", "normal"]
    assert first.yaxis_inverted()


def test_curves_of_a_family_are_spread_over_it():
    assert _drawn(20, None) == [0, 2, 5, 8, 10, 13, 16, 19]
    assert _drawn(3, None) == [0, 1, 2]
    assert _drawn(20, [4, 19]) == [4, 19]
    for wrong in ([20], range(9)):
        with pytest.raises(jfric.ProblemError, match=r"curves: found .*, give at most 8 numbers"):
            _drawn(20, wrong)
