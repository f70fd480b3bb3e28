"""Pictures and animations of bodies: what is drawn where, in which colour."""

import functools

import jax.numpy as jnp
import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from PIL import Image

import jfric
from jfric.figures.mechanism_figure import MARKS, _draw, view_of
from jfric.figures.mechanism_scene import scene
from jfric.files.read_toml import load_config
from jfric.verification.configs import shipped


@functools.cache
def disc():
    """A disc that slips on an incline until 0.919 s, then rolls."""
    problem = load_config(shipped("disc_incline")).problem
    return jfric.simulate(problem, ts=jnp.linspace(0.0, 2.0, 41)), problem


@pytest.mark.slow
def test_what_is_drawn():
    solution, problem = disc()
    times = np.array([0.0, 0.5, 1.5, 2.0])
    drawn = scene(solution, problem, times)
    assert drawn.bodies == ["disc"]
    (circle,), (mark,), ((through, along),) = drawn.circles, drawn.marks, drawn.lines
    assert (circle.body, circle.radius, circle.hollow) == (0, pytest.approx(0.3), False)
    rows = np.searchsorted(solution.ts, times)
    np.testing.assert_allclose(circle.centre, solution.q[rows, :2], atol=1e-12)
    np.testing.assert_allclose(circle.angle, solution.q[rows, 2], atol=1e-12)
    np.testing.assert_allclose(mark.place, solution.q[rows, :2] - np.array([0.0, 0.3]), atol=1e-12)
    assert mark.modes == ["slip+", "slip+", "stick", "stick"]
    np.testing.assert_array_equal([through, along], [[0.0, 0.0], [1.0, 0.0]])


def test_figure_of_instants():
    solution, problem = disc()
    figure = jfric.plot_mechanism(solution, problem, "title", instants=4)
    shown = [axis for axis in figure.axes if axis.get_title(loc="left")]
    assert [axis.get_title(loc="left") for axis in shown] == [
        "t = 0 s", "t = 0.6667 s", "t = 1.333 s", "t = 2 s",
    ]  # fmt: skip
    for axis, colour in zip(shown, ["slip+", "slip+", "stick", "stick"], strict=True):
        (patch, edge) = (x for x in axis.patches if isinstance(x, Circle))
        assert patch.center == edge.center
        (mark,) = (x for x in axis.lines if x.get_marker() == "o")
        assert mark.get_markerfacecolor() == MARKS[colour]
        assert axis.get_aspect() == 1.0
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert legend == ["stick", "slip+", "disc"]
    assert figure.get_suptitle() == "title"


def test_nothing_is_shown_narrower_than_a_sixth_of_its_length():
    """A rod on its way along a line: its height is zero."""
    rod = jfric.Body(1.0, 0.1, v=(2.0, 0.0), points={"a": (-0.5, 0.0), "b": (0.5, 0.0)})
    problem = jfric.Problem([], {"body": {"rod": rod}}, time=1.0)
    solution = jfric.simulate(problem, ts=jnp.linspace(0.0, 1.0, 3))
    axis = jfric.plot_mechanism(solution, problem, instants=2).axes[0]
    # From -0.5 to 2.5, with a margin of 6 % on all sides.
    np.testing.assert_allclose(axis.get_xlim(), [-0.68, 2.68], atol=1e-9)
    np.testing.assert_allclose(np.ptp(axis.get_ylim()), 3.0 / 6.0 + 0.36, atol=1e-9)


def test_pictures_end_shortly_after_the_bodies_rest():
    """A rod that friction stops after 1 s of a run of 10 s, and one that nothing stops."""
    rod = jfric.Body(1.0, 0.1, v=(1.0, 0.0), points={"a": (-0.5, 0.0), "b": (0.5, 0.0)})
    for friction, last in (({"friction": jfric.Friction("rod_x", 1.0, N=1.0)}, 1.5), ({}, 10.0)):
        problem = jfric.Problem([], {"body": {"rod": rod}, **friction}, time=10.0)
        solution = jfric.simulate(problem, ts=jnp.linspace(0.0, 10.0, 41))
        axis = jfric.plot_mechanism(solution, problem, instants=2).axes[1]
        assert axis.get_title(loc="left") == f"t = {last:.4g} s"


def test_points_pins_springs_and_guides():
    """Drawn from a start: nothing needs to move for that."""
    square = {"a": (-0.1, -0.1), "b": (0.1, -0.1), "c": (0.1, 0.1), "d": (-0.1, 0.1), "m": (0, 0)}
    problem = jfric.Problem(
        [],
        {
            "body": {
                "block": jfric.Body(1.0, 1.0, at=(1.0, 0.0), angle=np.pi / 4, points=square),
                "bob": jfric.Body(1.0, 1.0, at=(0.0, -1.0)),
            },
            "ground": jfric.Ground({"wall": (0.0, 2.0)}),
            "slider": jfric.Slider("block.m", "ground"),
            "link_spring": jfric.LinkSpring(("ground.wall", "bob"), 1.0),
        },
    )
    solution, _ = disc()
    start = [float(problem.initial[dof].q) for dof in problem.dofs]
    still = np.tile(start, (41, 1))
    moved = {"q": still, "axes": tuple(problem.dofs), "names": ()}
    solution = _replaced(solution, **moved)
    drawn = scene(solution, problem, np.array([0.0]))
    block, bob = drawn.outlines
    assert block.corners.shape == (1, 4, 2)
    reach = np.linalg.norm(block.corners[0] - [1.0, 0.0], axis=1)
    np.testing.assert_allclose(reach, 0.1 * np.sqrt(2.0), rtol=1e-12)
    np.testing.assert_allclose(bob.corners[0], [[0.0, -1.0]])
    assert len(drawn.guides) == 1
    assert not drawn.lines
    np.testing.assert_allclose(np.stack(drawn.springs[0])[:, 0], [[0.0, 2.0], [0.0, -1.0]])
    axis = Figure().subplots()
    _draw(axis, drawn, 0, view_of(drawn))
    (zigzag,) = (line for line in axis.lines if len(line.get_xdata()) == 15)
    x, y = zigzag.get_data()
    np.testing.assert_allclose(y, 2.0 - 3.0 * np.array([0.0, *np.linspace(0.2, 0.8, 13), 1.0]))
    width = x.max()
    np.testing.assert_allclose(x, width * np.array([0, 0, *[1, -1] * 5, 1, 0, 0]), atol=1e-12)
    assert 0.01 < width < 0.1
    corners = [np.unique(patch.get_xy(), axis=0) for patch in axis.patches]
    assert sum(len(x) == 4 for x in corners) == 2  # an area and its edge


def _replaced(solution, **values):
    import dataclasses

    log = dataclasses.replace(
        solution.events, count=0, q=np.zeros((1, 6)), time=np.zeros(1), impact=np.zeros(1, bool)
    )
    return dataclasses.replace(solution, events=log, **values)


@pytest.mark.slow
def test_animation(tmp_path):
    solution, problem = disc()
    path = jfric.animate(solution, problem, tmp_path / "disc.gif", "title", fps=10)
    with Image.open(path) as picture:
        assert picture.n_frames == 25  # no fewer
        assert picture.info["duration"] == 100
    with pytest.raises(jfric.ProblemError, match="exists, results are never overwritten"):
        jfric.animate(solution, problem, path)


def test_what_cannot_be_drawn_is_refused(tmp_path):
    solution, problem = disc()
    with pytest.raises(
        jfric.ProblemError, match=r"found 'x\.mp4', the name of an animation ends in"
    ):
        jfric.animate(solution, problem, tmp_path / "x.mp4")
    with pytest.raises(jfric.ProblemError, match="no folder"):
        jfric.animate(solution, problem, tmp_path / "none" / "x.gif")
    bare = load_config(shipped("ve0116")).problem
    with pytest.raises(jfric.ProblemError, match="a picture of the mechanism needs bodies"):
        jfric.plot_mechanism(solution, bare)


def test_a_pin_with_friction_is_drawn():
    """Its radius is that of its friction: no element of a point of its own."""
    solution, problem = disc()
    pin = jfric.Pin(("disc", "ground"), jfric.Coulomb(0.1), radius=0.01, impact="none")
    held = jfric.Problem({}, {"body": dict(problem.resolved().section("body")), "pin": pin})
    drawn = scene(solution, held, np.array([0.0, 0.5]))
    assert (len(drawn.pins), drawn.circles) == (1, [])
