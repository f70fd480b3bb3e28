"""Equilibria of mechanisms over a parameter, beside closed forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from test_mechanism_statics import CRANK, LADDER

import jfric
from jfric.files.read_toml import loads

PENDULUM = """
dofs = {theta = "rotation"}
[time]
end = "1 s"
[parameters]
T = 0
[mass]
dof = "theta"
m = 1
[pendulum]
dof = "theta"
m = 0.2
L = 1
g = 10
[friction]
dof = "theta"
limit = 0.5
[load]
dof = "theta"
F = "$T"
"""

BLOCK = """
[time]
end = "1 s"
[parameters]
tilt = 0
[body.block]
m = 2
J = 1
[gravity]
g = 10
tilt = "$tilt"
[joint.upright]
constraint = "block_phi"
[contact]
point = "block"
line = "ground"
mu = 0.3
[spring]
dof = "block_x"
k = 40
"""

#: A crank turned by a torque, a rod, and a block on its guide, which a spring pushes out.
SLIDER = """
dofs = {theta = "rotation", x = "translation", y = "translation"}
[time]
end = "1 s"
[parameters]
r = 1
l = 2
theta = 1
mu = 0.2
T = 0
[initial.theta]
q = "$theta"
[initial.x]
q = "$r*cos($theta) + sqrt($l**2 - $r**2*sin($theta)**2)"
[mass.crank]
dof = "theta"
m = 1
[mass.x]
dof = "x"
m = 1
[mass.y]
dof = "y"
m = 1
[joint.rod]
constraint = "(x - r*cos(theta))^2 + (y - r*sin(theta))^2 - l^2"
[joint.guide]
constraint = "y"
sliding = "x"
mu = "$mu"
[spring]
dof = "x"
k = 5
x0 = "$r*cos($theta) + sqrt($l**2 - $r**2*sin($theta)**2)"
[load]
dof = "theta"
F = "$T"
"""


def kinds(path, branch=0):
    return [point.kind for point in path.branches[branch].special]


def test_a_pendulum_over_its_limit_point():
    """It sticks up to the limit of friction, then ``2 sin(theta) = T - 0.5`` up to the level."""
    path = jfric.trace(loads(PENDULUM).problem, "parameters.T", 0.0, 3.0, seeds=1)
    assert kinds(path) == ["end", "mode change", "fold", "end"]
    (branch,) = path.branches
    parameters = [point.parameter for point in branch.special]
    np.testing.assert_allclose(parameters, [0.0, 0.5, 2.5, 0.0], atol=1e-12)
    assert branch.special[1].contacts == ("friction",)
    np.testing.assert_allclose(branch.special[2].q, np.pi / 2.0, atol=1e-7)
    slides = branch.mode[:, 0] == jfric.Mode.SLIP_POS
    T, theta = branch.parameter[slides], branch.q[slides, 0]
    np.testing.assert_allclose(2.0 * np.sin(theta), T - 0.5, atol=1e-12)
    slope, known = branch.dq[slides, 0], 2.0 * np.cos(theta)
    far = np.abs(known) > 1e-2
    assert far.sum() > 10
    np.testing.assert_allclose(slope[far] * known[far], 1.0, rtol=1e-9)


def test_a_pendulum_that_has_turned_twice_goes_the_same_way():
    """How far a branch goes is told from where it starts."""
    turned = 4.0 * np.pi
    text = PENDULUM.replace("[load]", f"[initial.theta]\nq = {turned!r}\n[load]")
    path = jfric.trace(loads(text).problem, "parameters.T", 0.0, 3.0, seeds=1)
    assert kinds(path) == ["end", "mode change", "fold", "end"]
    special = path.branches[0].special
    np.testing.assert_allclose([x.parameter for x in special], [0.0, 0.5, 2.5, 0.0], atol=1e-12)
    np.testing.assert_allclose(special[2].q, turned + np.pi / 2.0, atol=1e-7)


@pytest.mark.slow
def test_a_block_on_a_slope_that_tilts():
    """It sticks up to ``tan(tilt) = mu``, then the spring holds what friction leaves."""
    path = jfric.trace(loads(BLOCK).problem, "parameters.tilt", 0.0, 1.0, seeds=[0.1])
    assert kinds(path) == ["end", "mode change", "end"]
    (branch,) = path.branches
    np.testing.assert_allclose(branch.special[1].parameter, np.arctan(0.3), atol=1e-13)
    slides = branch.mode[:, 0] == jfric.Mode.SLIP_POS
    tilt, x = branch.parameter[slides], branch.q[slides, 0]
    np.testing.assert_allclose(40.0 * x, 20.0 * (np.sin(tilt) - 0.3 * np.cos(tilt)), atol=1e-12)
    np.testing.assert_allclose(branch.lambda_n[:, 0], 20.0 * np.cos(branch.parameter), atol=1e-12)
    assert path.joints == ("joint.upright",)
    assert branch.reaction.shape == (len(branch.parameter), 1)


@pytest.mark.slow
def test_a_ladder_at_a_smooth_wall_stands_up_to_its_limit():
    """``tan(theta) = 2 mu`` on its way out; there sliding begins, and the branch turns."""
    smooth = LADDER.replace("mu = 0.2", "")
    path = jfric.trace(loads(smooth).problem, "parameters.theta", 0.1, 1.2, seeds=[0.3])
    leans = [b for b in path.branches if b.mode[0, 1] == jfric.Mode.CLOSED]
    (fold,) = [point for b in leans for point in b.special if point.kind == "fold"]
    np.testing.assert_allclose(fold.parameter, np.arctan(0.6), atol=1e-12)
    assert fold.contacts == ("contact.floor",)
    for branch in leans:
        sticks = branch.mode[:, 0] == jfric.Mode.STICK
        push = 20.0 * np.tan(branch.parameter[sticks])
        np.testing.assert_allclose(branch.lambda_n[sticks, 1], push, atol=1e-11)


def torque(theta, k=5.0, mu=0.2):
    """What the crank takes while the block slides in."""
    at = [r * np.cos(x) + np.sqrt(4.0 - np.sin(x) ** 2) for r, x in ((1.0, theta), (1.0, 1.0))]
    rod = np.arcsin(0.5 * np.sin(theta))
    return k * (at[1] - at[0]) * np.sin(theta + rod) / (np.cos(rod) - mu * np.sin(rod))


@pytest.mark.slow
def test_a_slider_crank_under_a_growing_torque():
    """The block slides in against its spring; past the largest torque the crank goes on to its
    dead centre."""
    path = jfric.trace(loads(SLIDER).problem, "parameters.T", 0.05, 20.0, seeds=1)
    branch = path.branches[0]
    folds = [point for point in branch.special if point.kind == "fold"]
    assert len(folds) == 1
    angles = np.linspace(1.0, np.pi, 200_001)
    at = torque(angles)
    np.testing.assert_allclose(folds[0].parameter, at.max(), rtol=1e-9)
    np.testing.assert_allclose(folds[0].q[0], angles[at.argmax()], atol=1e-4)
    assert branch.parameter[0] == branch.parameter[-1] == 0.05
    np.testing.assert_allclose(torque(branch.q[:, 0]), branch.parameter, atol=1e-10)
    # The guide carries what the rod pushes across.
    rod = np.arcsin(0.5 * np.sin(branch.q[:, 0]))
    across = branch.parameter * np.sin(rod) / np.sin(branch.q[:, 0] + rod)
    np.testing.assert_allclose(np.max(branch.lambda_n, axis=1), across, atol=1e-10)


@pytest.mark.slow
def test_equilibria_of_a_mechanism_have_derivatives():
    """Where a ladder on a rough floor begins to slide, ``tan(theta) = 2 mu``."""
    problem = loads(LADDER.replace("mu = 0.2", "")).problem

    def angle(mu):
        known = jfric.set_parameters(problem, {"parameters.mu": mu})
        found = jfric.equilibria(known)
        assert isinstance(found, jfric.Equilibria)
        slides = (found.mode[:, 0] == jfric.Mode.SLIP_POS) & found.exists
        return jnp.sum(jnp.where(slides, found.q[:, 2], 0.0)) - jnp.pi / 2.0

    value, rate = jax.jvp(angle, (0.3,), (1.0,))
    np.testing.assert_allclose(value, np.arctan(0.6), atol=1e-12)
    np.testing.assert_allclose(rate, 2.0 / 1.36, rtol=1e-10)


@pytest.mark.slow
def test_what_is_not_unique_is_left_out_and_said():
    found = jfric.equilibria(loads(CRANK).problem)
    assert isinstance(found, jfric.Equilibria)
    assert int(found.count) == 0
    assert bool(found.unresolved)
    path = jfric.trace(loads(LADDER).problem, "parameters.f", 0.0, 1.0, seeds=1)
    assert "at 0 some modes leave positions or reactions open, and are left out" in path.remarks


REFUSED = [
    ("limit = 0.5\n", "limit = 0.5\nbelt = 1\n", "friction.belt: found a moving surface, which"),
    ("[load]", '[stop]\ndof = "theta"\nk = 3\ngap = 0.1\n[load]', "stop: has a kink, which"),
    ('"y"\nsliding = "x"\nmu = "$mu"', '"v.y"', "joint.guide: holds velocities, no position"),
    ("limit = 0.5", "mu_s = 0.5\nmu_d = 0.4\nN = 1", "friction: with StaticDynamic friction drops"),
]


@pytest.mark.parametrize(("old", "new", "sentence"), REFUSED)
def test_what_has_no_path_is_refused(old, new, sentence):
    text = PENDULUM if old in PENDULUM else SLIDER
    assert old in text
    problem = loads(text.replace(old, new)).problem
    with pytest.raises(jfric.ProblemError, match=f"^{sentence}"):
        jfric.trace(problem, "parameters.T", 0.0, 1.0)


CIRCLE = """
dofs = ["x", "y"]
time = {end = "1 s"}
parameters = {p = 0.1}
initial = {x = {q = 0.9949874371066199}, y = {q = 0.9949874371066199}}
mass = {a = {dof = "x", m = 1.0}, b = {dof = "y", m = 1.0}}
joint = {constraint = "y - x"}
polynomial_spring = {dof = "x", k = [0.0, 1.0]}
load = {dof = "x", F = "1 - $p*$p"}
"""


def test_a_closed_curve_of_equilibria_ends_where_it_began():
    """Where p^2 + x^2 = 1; both folds lie at x = 0."""
    path = jfric.trace(loads(CIRCLE).problem, "parameters.p", -2.0, 2.0, seeds=[0.1])
    (branch,) = path.branches
    assert branch.closed
    np.testing.assert_allclose(branch.parameter[[0, -1]], 0.1, rtol=1e-12)
    np.testing.assert_allclose(branch.parameter**2 + branch.q[:, 0] ** 2, 1.0, atol=1e-9)
    assert [point.kind for point in branch.special] == ["fold", "fold"]
    assert sorted(point.parameter for point in branch.special) == pytest.approx([-1.0, 1.0])
    angle = np.unwrap(np.arctan2(branch.q[:, 0], branch.parameter))
    assert abs(angle[-1] - angle[0]) == pytest.approx(2.0 * np.pi)
