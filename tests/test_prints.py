"""Prints: numbers on one screen at most, and tables in notebooks."""

import inspect
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from generators.manual.sketch import plot_system
from test_docstrings import PUBLIC

import jfric
from jfric.numerics.printing import LINES, WIDTH, short

BLOCK = jfric.Problem(
    ["u"],
    {
        "mass": jfric.Mass("u", 100.0),
        "spring": jfric.Spring("u", 5000.0),
        "friction": jfric.Friction("u", 0.1, N=1000.0),
        "load": jfric.Load("u", 1500.0),
    },
    time=4.0,
)


def screen(thing) -> str:
    """What a print shows, on one screen."""
    text = str(thing)
    assert repr(thing) == text
    assert len(text.splitlines()) <= LINES
    assert max(map(len, text.splitlines())) <= WIDTH
    assert not re.search(r"f64\[|float64|Array\(|<object", text)
    table = thing._repr_html_()
    assert table.startswith("<table>") or table.startswith("<pre>")
    return text


def test_a_problem_shows_its_numbers_and_units():
    text = screen(BLOCK)
    assert text.startswith("Problem: u; 4 elements; 0 s to 4 s\n")
    assert re.search(r"^spring\.k +5000 +N/m$", text, re.M)
    assert re.search(r"^friction\.mu +0\.1$", text, re.M)
    assert "<td>spring.k</td><td>5000</td><td>N/m</td>" in BLOCK._repr_html_()


def test_a_large_problem_fits_on_a_screen():
    n = 50
    names = [f"u{i}" for i in range(n)]
    chain = jfric.Problem(
        names,
        {"mass": {x: jfric.Mass(x, "$m") for x in names}},
        parameters={"m": 2.0},
        time=1.0,
    )
    text = screen(chain)
    assert "= $m" in text
    assert re.search(r"^\.\.\. and \d+ more$", text, re.M)


def test_a_solution_shows_outputs_outcome_and_modes():
    solution = jfric.simulate(BLOCK, ts=jnp.linspace(0.0, 4.0, 401))
    text = screen(solution)
    assert text.startswith("Solution: ok, 401 outputs, 7 events, ")
    assert re.search(r"^4 +0\.32 +0 +stick$", text, re.M)
    assert "<th>mode.friction</th>" in solution._repr_html_()
    assert re.search(r"^4 +0\.32 +0$", screen(jfric.simulate(BLOCK)), re.M)
    screen(solution.events)


def test_a_batch_shows_how_many_trajectories_ended_how():
    solver = jfric.EventDriven(max_steps=7)
    many = jax.vmap(
        lambda mu: jfric.simulate(jfric.set_parameters(BLOCK, {"friction.mu": mu}), solver)
    )(jnp.asarray([0.1, 1.6]))
    text = screen(many)
    assert text.startswith("Solution of 2 trajectories: 1 ok, 1 max_steps\n")
    assert re.search(r"^final\.t +\[.*, 4\]$", text, re.M)


def test_a_print_under_tracing_is_none_of_numbers():
    seen = []

    @jax.jit
    def traced(mu):
        problem = jfric.set_parameters(BLOCK, {"friction.mu": mu})
        seen.extend([str(problem), str(jfric.simulate(problem))])
        return mu

    traced(0.1)
    assert "traced, shape ()" in seen[0]
    assert seen[1].startswith("Solution that JAX traces")


def test_a_regression_shows_estimates():
    block = jfric.Problem(
        ["x"],
        {
            "mass": jfric.Mass("x", 1.0),
            "damper": jfric.Damper("x", 1.0),
            "load": jfric.Load("x", 0.0),
        },
    )
    t = np.arange(0.0, 6.0, 1e-3)
    x, v, a = np.sin(2.0 * t), 2.0 * np.cos(2.0 * t), -4.0 * np.sin(2.0 * t)
    data = jfric.Experiment(t, u={"load.F": 3.0 * a + 0.5 * v}, y={"x": x})
    found = jfric.inverse_regression(block, data, ["mass.m", "damper.c"])
    text = screen(found)
    assert text.startswith("Regression: ")
    for name, value in found.values.items():
        assert re.search(rf"^{name} +{value:.6g}$", text, re.M)
    screen(data)


@pytest.mark.slow
def test_equilibria_and_paths_show_what_was_found():
    assert re.search(r"^1 +slip\+ +0\.28 +-100 ", screen(jfric.equilibria(BLOCK)), re.M)
    path = screen(jfric.trace(BLOCK, "friction.mu", 0.0, 3.0))
    assert re.search(r" 1\.5 +mode change +friction ", path, re.M)
    screen(jfric.limit_load(BLOCK, "load.F", 0.0, 3000.0))


RESULTS = re.compile(
    "Fit|Result|Orbit|Response|Balance$|Equilibri|Path$|Solution|Compar|Basins|Peak$|Design$|"
    "Regression|Experiment$|Bias$|RestStates$|Load$"
)


@pytest.mark.parametrize(
    "name",
    [
        *sorted(x for x, thing in PUBLIC.items() if inspect.isclass(thing) and RESULTS.search(x)),
        *("Problem", "Events", "Moment", "SpecialCurve", "Exponent", "FoundAttractor"),
    ],
)
def test_every_result_has_a_print_of_its_own(name):
    cls = PUBLIC[name]
    if issubclass(cls, int) or name == "Load":
        return
    assert cls.__str__ is not object.__str__
    assert "_repr_html_" in dir(cls)


@pytest.mark.slow
def test_a_stop_pushes_on_the_other_side_than_a_contact():
    """What is said of it is so, and the sketch shows it."""
    ends = {}
    for name, element in (
        ("stop", {"stop": jfric.Stop("y", 1e4)}),
        ("contact", {"contact": jfric.Contact("y", e=1.0)}),
    ):
        for v in (-1.0, 1.0):
            problem = jfric.Problem(
                ["y"],
                {"mass": jfric.Mass("y", 1.0), **element},
                initial={"y": jfric.InitialState(v=v)},
            )
            ends[name, v] = float(jfric.simulate(problem, end=0.5).final.v[0])
    assert ends["stop", -1.0] == -1.0
    assert ends["stop", 1.0] == pytest.approx(-1.0)
    assert ends["contact", 1.0] == 1.0
    assert ends["contact", -1.0] == pytest.approx(1.0)
    for cls, other in ((jfric.Stop, "Contact"), (jfric.Contact, "Stop")):
        assert re.search(
            rf"pushes[^.]*:class:`jfric.{other}`|jfric.{other}`[^.]*pushes", cls.__doc__
        )


def arrows(problem) -> list[float]:
    """Directions of the arrows in the sketch, those of the blocks left out."""
    from matplotlib.text import Annotation

    found = [x for x in plot_system(problem).axes[0].texts if isinstance(x, Annotation)]
    signs = [float(np.sign(x.xy[0] - x.xyann[0])) for x in found]
    return signs[: -len(problem.dofs)]


@pytest.mark.parametrize(
    ("element", "expected"),
    [
        ({"stop": jfric.Stop("y", 1e4)}, [-1.0]),
        ({"stop": jfric.Stop({"y": -1.0}, 1e4)}, [1.0]),
        ({"contact": jfric.Contact("y")}, [1.0]),
        ({"contact": jfric.Contact({"y": -1.0})}, [-1.0]),
        ({"contact": jfric.Contact(("y", "z"))}, [-1.0, 1.0]),
        ({"stop": jfric.Stop(("y", "z"), 1e4)}, [1.0, -1.0]),
        ({"stop": jfric.Stop({"y": 1.0, "z": -1.0}, 1e4)}, [-1.0, 1.0]),
    ],
)
def test_the_sketch_shows_which_way_stops_and_contacts_push(element, expected):
    masses = {name: jfric.Mass(name, 1.0) for name in ("y", "z")}
    problem = jfric.Problem(["y", "z"], {"mass": masses, **element}, time=1.0)
    assert arrows(problem) == expected


def test_the_sketch_shows_a_load_at_the_right_of_its_block():
    """In the room that is kept for it, where nothing else is drawn."""
    from matplotlib.patches import FancyBboxPatch
    from matplotlib.text import Annotation

    parts = {"mass": jfric.Mass("y", 1.0), "spring": jfric.Spring("y", 1.0)}
    (axis,) = plot_system(jfric.Problem(["y"], {**parts, "load": jfric.Load("y", 1.0)})).axes
    (block,) = (x for x in axis.patches if isinstance(x, FancyBboxPatch))
    right = block.get_x() + block.get_width()
    (load,) = (x.get_position()[0] for x in axis.texts if x.get_text() == "load")
    arrow = next(x for x in axis.texts if isinstance(x, Annotation))
    assert right == pytest.approx(arrow.xyann[0])
    assert right < load < arrow.xy[0] < axis.get_xlim()[1]


def test_all_words_of_a_sketch_are_in_the_picture():
    figure = plot_system(BLOCK, "Block")
    figure.canvas.draw()
    words = [x for axis in figure.axes for x in axis.texts if x.get_text()]
    assert {"Block", "load"} <= {x.get_text() for x in words}
    for word in words:
        box, picture = word.get_window_extent(), figure.bbox
        assert picture.x0 <= box.x0 < box.x1 <= picture.x1, word
        assert picture.y0 <= box.y0 < box.y1 <= picture.y1, word


def test_settings_are_shown_by_name():
    assert short({"rtol": 1e-8, "steps": (1, 2)}) == "rtol: 1e-08, steps: 1, 2"
    assert short({f"k{i}": i for i in range(100)}) == "100 entries"
