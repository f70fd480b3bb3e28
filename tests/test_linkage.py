"""Joints between bodies: their equations, accelerations and reactions at one instant, and runs."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from references import slider_crank

import jfric
from jfric.files.read_toml import load_config, loads
from jfric.files.write_toml import dump
from jfric.system.assembly import assemble
from jfric.system.forces import applied_force
from jfric.system.joint_equations import joint_equations, reaction_units
from jfric.verification.configs import shipped

GRAVITY = jfric.Gravity(9.81)


def at_start(problem):
    """Accelerations and reactions by name, as joints leave them."""
    known = problem.resolved()
    t = jnp.zeros(())
    q, v = (jnp.stack([getattr(known.initial[d], x) for d in known.dofs]) for x in "qv")
    here = assemble(problem).at(t, q, v)
    f = applied_force(here, t, q, v)
    reactions = dict(zip(reaction_units(problem), here.tied.reactions(f), strict=True))
    a = here.M_inverse @ f + here.tied.acceleration
    return dict(zip(problem.dofs, a.tolist(), strict=True)), reactions


@pytest.mark.slow
def test_slider_crank():
    """Against the equation of its one coordinate; the start is met to rounding."""
    problem = load_config(shipped("slider_crank")).problem
    a, reactions = at_start(problem)
    np.testing.assert_allclose(a["crank_phi"], slider_crank.acceleration(0.4, 5.0), rtol=1e-12)
    assert list(reactions) == [
        "pin.shaft.x", "pin.shaft.y", "pin.big.x", "pin.big.y", "pin.small.x", "pin.small.y",
        "slider.normal", "slider.torque",
    ]  # fmt: skip
    # The guide and the shaft carry what the weight and the accelerations demand.
    carried = float(reactions["pin.shaft.y"] + reactions["slider.normal"])
    moved = 2.0 * a["crank_y"] + 1.0 * a["rod_y"] + 3.0 * a["piston_y"]
    np.testing.assert_allclose(carried, moved + 6.0 * 9.81, rtol=1e-12)
    np.testing.assert_allclose(float(reactions["pin.small.x"]), -3.0 * a["piston_x"], rtol=1e-10)


def test_the_start_follows_from_the_joints():
    """Where rod and slider are, and how fast, from angle and speed of the crank alone."""
    start = load_config(shipped("slider_crank")).problem.initial
    r, length, c, s = slider_crank.R, slider_crank.L, np.cos(0.4), np.sin(0.4)
    h = np.sqrt(length**2 - (r * s) ** 2)
    expected = {
        "crank_x": (0.5 * r * c, -0.5 * r * s * 5.0),
        "crank_phi": (0.4, 5.0),
        "rod_y": (0.5 * r * s, 0.5 * r * c * 5.0),
        "rod_phi": (-np.arctan(r * s / h), -r * c * 5.0 / h),
        "piston_x": (r * c + h, -r * s * 5.0 * (1.0 + r * c / h)),
        "piston_phi": (0.0, 0.0),
    }
    found = {dof: (float(start[dof].q), float(start[dof].v)) for dof in expected}
    for dof, value in expected.items():
        np.testing.assert_allclose(found[dof], value, atol=1e-14, err_msg=dof)


def test_a_start_follows_in_single_precision():
    with jax.enable_x64(False):
        start = load_config(shipped("slider_crank")).problem.initial
        found = {dof: np.asarray(x.q, float) for dof, x in start.items()}
    expected = load_config(shipped("slider_crank")).problem.initial
    for dof, x in expected.items():
        np.testing.assert_allclose(found[dof], float(x.q), atol=2e-6, err_msg=dof)


def test_a_fast_start_at_a_dead_centre_is_one_in_single_precision():
    """The guide's own speed is zero: its rounding error is that of the crank's tip."""
    text = Path(shipped("slider_crank")).read_text("utf-8")
    fast = text.replace('"0.4 rad"', "0.0").replace('"5 rad/s"', "20.0")
    fast = fast.replace('"0.2 m"', "0.1").replace('"0.7 m"', "0.3")
    problem = loads(fast).problem
    with jax.enable_x64(False):
        start = jfric.build(loads(fast).problem).initial
        found = {dof: np.asarray(x.v, float) for dof, x in start.items()}
    for dof, x in jfric.build(problem).initial.items():
        np.testing.assert_allclose(found[dof], float(x.v), atol=1e-5, err_msg=dof)


@pytest.mark.slow
def test_what_is_given_stays_as_it_is():
    """A rod that hangs at a pin: its angle is given, its place follows; of two rods that cannot
    reach each other nothing does."""
    rod = {"points": {"a": (-0.5, 0), "b": (0.5, 0)}}
    elements = {
        "body": {"rod": jfric.Body(1.0, 0.1, angle=0.3, omega=2.0, **rod)},
        "pin": {"a": jfric.Pin(("rod.a", "ground"))},
    }
    start = jfric.build(jfric.Problem([], elements)).initial
    place = [float(start[f"rod_{x}"].q) for x in ("x", "y", "phi")]
    np.testing.assert_allclose(place, [0.5 * np.cos(0.3), 0.5 * np.sin(0.3), 0.3], rtol=1e-14)
    speed = [float(start[f"rod_{x}"].v) for x in ("x", "y", "phi")]
    np.testing.assert_allclose(speed, [-np.sin(0.3), np.cos(0.3), 2.0], rtol=1e-13)
    elements["ground"] = jfric.Ground({"far": (3.0, 0.0)})
    elements["pin"]["b"] = jfric.Pin(("rod.b", "ground.far"))
    with pytest.raises(jfric.ProblemError, match="no position nearby meets all joints"):
        jfric.build(jfric.Problem([], elements))


@pytest.mark.slow
def test_a_weld_makes_one_body():
    """A pendulum of two welded rods: its angular acceleration, and the torque in the weld."""
    bodies = {
        "first": jfric.Body(1.0, 1.0 / 12, at=(0.5, 0), points={"a": (-0.5, 0), "b": (0.5, 0)}),
        "second": jfric.Body(
            2.0, 0.3, at=(1.0, 0.4), angle=np.pi / 2, points={"c": (-0.4, 0.0)}, v=(0, 0)
        ),
    }
    problem = jfric.Problem(
        [],
        {
            "body": bodies,
            "gravity": GRAVITY,
            "pin": jfric.Pin(("first.a", "ground")),
            "weld": jfric.Weld(("second.c", "first.b")),
        },
    )
    a, reactions = at_start(problem)
    whole = 1.0 / 3 + 0.3 + 2.0 * (1.0 + 0.16)
    alpha = -9.81 * (0.5 * 1.0 + 2.0 * 1.0) / whole
    np.testing.assert_allclose([a["first_phi"], a["second_phi"]], alpha, rtol=1e-13)
    # About the weld: inertia of the second rod, whose centre is 0.4 m above it.
    torque = 0.3 * alpha + 2.0 * (-0.4 * a["second_x"])
    np.testing.assert_allclose(float(reactions["weld.torque"]), torque, rtol=1e-12)


@pytest.mark.slow
def test_gears():
    """A weight-free pair of wheels with a torque on one of them."""
    wheels = {"a": jfric.Body(1.0, 0.2), "b": jfric.Body(3.0, 0.5, at=(0.3, 0))}
    problem = jfric.Problem(
        [],
        {
            "body": wheels,
            "ground": jfric.Ground({"b": (0.3, 0)}),
            "pin": {"a": jfric.Pin(("a", "ground")), "b": jfric.Pin(("b", "ground.b"))},
            "gear": jfric.Gear(("a", "b"), (0.1, 0.2)),
            "load": jfric.Load("a_phi", 6.0),
        },
    )
    a, reactions = at_start(problem)
    np.testing.assert_allclose(a["a_phi"], 6.0 / (0.2 + 0.5 / 4), rtol=1e-14)
    np.testing.assert_allclose(a["b_phi"], -0.5 * a["a_phi"], rtol=1e-14)
    # The force between the teeth slows down one wheel and drives the other.
    np.testing.assert_allclose(0.2 * reactions["gear"], 0.5 * a["b_phi"], rtol=1e-13)


@pytest.mark.parametrize("inside", [pytest.param(False, marks=pytest.mark.slow), True])
def test_rolling_on_a_circle(inside):
    """A disc on another one, or in a bowl: ``(3/2) d theta'' = g sin`` with the distance ``d``."""
    r, R = 0.2, 1.0
    d = R - r if inside else R + r
    angle = 0.3  # of the line of centres, from the vertical
    up = -1.0 if inside else 1.0
    at = (d * np.sin(angle), up * d * np.cos(angle))
    rolling = jfric.Rolling("disc", r, circle="ground", circle_radius=R, inside=inside)
    problem = jfric.Problem(
        [],
        {
            "body": {"disc": jfric.Body(2.0, 0.5 * 2.0 * r**2, at=at)},
            "gravity": GRAVITY,
            "rolling": rolling,
        },
    )
    a, reactions = at_start(problem)
    theta = up * 9.81 * np.sin(angle) / (1.5 * d)
    np.testing.assert_allclose(a["disc_x"], d * np.cos(angle) * theta, rtol=1e-13)
    np.testing.assert_allclose(a["disc_phi"], -d / r * theta, rtol=1e-13)
    np.testing.assert_allclose(
        float(reactions["rolling.normal"]), 2.0 * 9.81 * np.cos(angle), rtol=1e-13
    )


def test_a_rolled_circle_forgets_whole_turns():
    """The line of centres may turn any number of times."""
    bodies = {"disc": jfric.Body(1.0, 1.0, at=(1.2, 0.0))}
    rolling = jfric.Rolling("disc", 0.2, circle="ground", circle_radius=1.0)
    problem = jfric.Problem([], {"body": bodies, "rolling": rolling})
    function = joint_equations(problem)[1].function
    for angle in np.linspace(-20.0, 20.0, 41):
        q = jnp.array([1.2 * np.cos(angle), 1.2 * np.sin(angle), 1.2 / 0.2 * angle])
        assert abs(float(function(0.0, q))) < 1e-13
        slipped = float(function(0.0, q.at[2].add(0.01)))
        np.testing.assert_allclose(slipped, 0.01 * 0.2, rtol=1e-10)


def test_rolling_on_a_line():
    problem = jfric.Problem(
        [],
        {
            "body": {"disc": jfric.Body(2.0, 0.5 * 2.0 * 0.3**2, at=(1.0, 0.3))},
            "gravity": jfric.Gravity(9.81, tilt=0.4),
            "rolling": jfric.Rolling("disc", 0.3, line="ground"),
        },
    )
    a, reactions = at_start(problem)
    np.testing.assert_allclose(a["disc_x"], 2 / 3 * 9.81 * np.sin(0.4), rtol=1e-13)
    np.testing.assert_allclose(a["disc_phi"], -a["disc_x"] / 0.3, rtol=1e-13)
    expected = -2.0 * 9.81 * np.sin(0.4) / 3
    np.testing.assert_allclose(float(reactions["rolling.tangent"]), expected, rtol=1e-13)


GOOD = """
[time]
end = "1 s"
[gravity]
[ground.points]
a = ["2 m", 0]
b = [2, 0]
[body.crank]
m = 1
J = 1
at = [0.5, 0]
[body.crank.points]
root = [-0.5, 0]
tip = [0.5, 0]
[body.rod]
m = 1
J = 1
at = [1.5, 0]
[body.rod.points]
first = [-0.5, 0]
last = [0.5, 0]
[pin.a]
points = ["crank.root", "ground"]
[pin.b]
points = ["crank.tip", "rod.first"]
[slider.guide]
point = "rod.last"
line = "ground"
mu = 0.2
"""

#: Text to replace, what to put there, and a part of the sentence.
MISTAKES = [
    (
        "[slider.guide]",
        "[pin.c]\npoints = ['rod.last', 'crank']\n[slider.guide]",
        "pin.c.x starts at",
    ),
    (
        '"crank.tip", "rod.first"',
        '"crank.top", "rod.first"',
        "pin.b.points: body.crank has no point 'top'",
    ),
    (
        '"crank.tip", "rod.first"',
        '"crank.tip", "crank.root"',
        "pin.b: both sides belong to 'crank'",
    ),
    ('"crank.tip", "rod.first"', '"crank.tip"', "pin.b.points: found 1 entries, needed are 2"),
    ("at = [1.5, 0]", "at = [1.6, 0]", "initial: pin.b.x starts at -0.1, must be zero"),
    ("at = [1.5, 0]", "at = [1.5, 0]\nv = [1, 0]", "initial: pin.b.x starts with the rate -1"),
    ('point = "rod.last"', 'point = "rod.last"\nturns = 3', "slider.guide.turns: found 3"),
    (
        "[slider.guide]",
        "[gear]\nbodies = ['rod.last', 'crank']\nradii = [1, 1]\n[slider.guide]",
        "gear.bodies: found the point 'rod.last', needed are bodies",
    ),
    (
        "[slider.guide]",
        "[rolling]\npoint = 'rod'\nradius = '-1 m'\nline = 'ground'\n[slider.guide]",
        "rolling.radius: found -1, must",
    ),
    (
        "[slider.guide]",
        "[rolling]\npoint = 'rod'\nradius = '1 m'\n[slider.guide]",
        "rolling: found neither of line and circle",
    ),
    (
        "[slider.guide]",
        "[weld]\npoints = ['rod.last', 'ground.a']\n[slider.guide]",
        "weld: leaves no degree of freedom, the joints hold all of crank_x, crank_y, crank_phi",
    ),
    (
        "[time]",
        "dofs = {rod_x = 'rotation'}\n[time]",
        "dofs.rod_x: must be a translation, it belongs to a body; rename it",
    ),
    (
        "[slider.guide]",
        "[contact]\npoint = 'rod.last'\nline = ['ground.a', 'ground.b']\n[slider.guide]",
        "contact.line: both points are at (2, 0), a line needs two places",
    ),
    (
        "[slider.guide]",
        "[link_spring]\nk = 1\n[slider.guide]",
        "link_spring.points: missing; give two points such as ['rod.tip', 'ground']",
    ),
]


@pytest.mark.parametrize(("old", "new", "sentence"), MISTAKES)
def test_sentence(old, new, sentence):
    assert old in GOOD
    with pytest.raises(jfric.ProblemError) as caught:
        loads(GOOD.replace(old, new, 1))
    assert sentence in str(caught.value)


def test_files_are_written_as_they_were_read():
    problem = loads(GOOD).problem
    assert dump(loads(dump(problem))) == dump(problem)
    held = load_config(shipped("slider_crank")).problem
    assert "turns = false" in dump(held)
    assert dump(loads(dump(held)).problem) == dump(held)


@pytest.mark.slow
def test_friction_of_a_slider():
    """A block on a guide stops after ``v / (mu g)``; its reaction is the normal force."""
    problem = jfric.Problem(
        [],
        {
            "body": {"block": jfric.Body(2.0, 1.0, v=(1.0, 0.0))},
            "gravity": GRAVITY,
            "slider": jfric.Slider("block", "ground", law=jfric.Coulomb(0.2), turns=False),
        },
        time=1.0,
    )
    stop = 1.0 / (0.2 * 9.81)
    expected = {
        "stop_time": stop, "final.block_x": 0.5 * stop, "final.reaction.slider.normal": 2.0 * 9.81,
    }  # fmt: skip
    found = jfric.observe(problem, ", ".join(expected)).values
    for name, value in expected.items():
        np.testing.assert_allclose(float(found[name]), value, rtol=1e-9, err_msg=name)


#: Lengths follow from parameters.
FOUR_BARS = """
[parameters]
r = "0.2 m"
l = "0.7 m"
c = "0.5 m"
X = "0.8 m"
Y = "0 m"
[ground.points]
far = ["$X", "$Y"]
[body.crank]
m = "1 kg"
J = "1 kg*m^2"
angle = "0.4 rad"
omega = "1 rad/s"
[body.crank.points]
tip = ["$r", "0 m"]
[body.rod]
m = "1 kg"
J = "1 kg*m^2"
[body.rod.points]
small = ["$l", "0 m"]
[body.rocker]
m = "1 kg"
J = "1 kg*m^2"
[body.rocker.points]
top = ["$c", "0 m"]
[pin.shaft]
points = ["crank", "ground"]
[pin.big]
points = ["crank.tip", "rod"]
[pin.small]
points = ["rod.small", "rocker.top"]
[pin.foot]
points = ["rocker", "ground.far"]
[time]
end = "0.01 s"
"""


@pytest.mark.parametrize(
    "lengths", [(0.42, 0.89, 0.1, -0.42, -0.35, 1.6), (0.8, 0.99, 0.11, -0.33, -0.8, -0.59)]
)
def test_a_start_is_found_from_bodies_that_are_turned(lengths):
    """Four bars that Newton's method assembles from one of the turns only."""
    from jfric.files.read_toml import loads
    from jfric.system.start import started

    paths = [*(f"parameters.{name}" for name in "rlcXY"), "initial.crank_phi.q"]
    problem = loads(FOUR_BARS).problem
    problem = jfric.set_parameters(problem, dict(zip(paths, lengths, strict=True)))
    _, q, _ = started(problem).start()
    at = dict(zip(problem.dofs, np.asarray(q), strict=True))
    (_, l, c), turns = lengths[:3], [at["rod_phi"], at["rocker_phi"]]
    tips = [
        np.array([at[f"{name}_x"], at[f"{name}_y"]]) + size * np.array([np.cos(a), np.sin(a)])
        for name, size, a in zip(("rod", "rocker"), (l, c), turns, strict=True)
    ]
    np.testing.assert_allclose(*tips, atol=1e-12)
