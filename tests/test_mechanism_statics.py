"""Mechanisms at rest: whether they are held where they stand, with which reactions, up to what."""

import jax
import numpy as np
import pytest

import jfric
from jfric.files.read_toml import loads

#: A ladder of weight 40 N that leans on a wall, ``theta`` from the vertical.
LADDER = """
[time]
end = "1 s"

[parameters]
l = 2.0
theta = 0.5
mu = 0.3
f = 0

[gravity]
g = 10

[body.rod]
m = 4
J = 1
at = ["0.5*$l*sin($theta)", "0.5*$l*cos($theta)"]
angle = "pi/2 + $theta"

[body.rod.points]
top = ["0.5*$l", 0]
foot = ["-0.5*$l", 0]

[ground.points]
corner = [0, 0]
down = [0, -1]

[contact.floor]
point = "rod.foot"
line = "ground"
mu = "$mu"

[contact.wall]
point = "rod.top"
line = ["ground.corner", "ground.down"]
mu = 0.2

[load.push]
dof = "rod_x"
F = "$f"
"""

#: A crank pinned to the ground, a rod and a slider pressed on its guide by the rod alone.
CRANK = """
[time]
end = "1 s"

[parameters]
torque = 1.0
mu = 0.2

[gravity]
g = "0 m/s^2"

[body.crank]
m = 1
J = 1
angle = 1.0
[body.crank.points]
pin = [0, 0]
tip = [0.5, 0]

[body.rod]
m = 1
J = 1
[body.rod.points]
left = [-1, 0]
right = [1, 0]

[body.block]
m = 1
J = 1

[pin.base]
points = ["crank.pin", "ground"]
[pin.knee]
points = ["crank.tip", "rod.left"]
[pin.wrist]
points = ["rod.right", "block"]

[slider.guide]
point = "block"
line = "ground"
mu = "$mu"

[load.drive]
dof = "crank_phi"
F = "$torque"

[load.push]
dof = "block_x"
F = -10
"""


def test_a_ladder_that_friction_holds():
    """Forces of both contacts lie in intervals, whose ends follow from those at the wall."""
    problem = loads(LADDER).problem
    found = jfric.equilibria(problem, meaning="rest")
    assert int(found.count) == 1
    (row,) = found.table()
    assert row["closed"] == ("contact.floor", "contact.wall")
    low, high = row["lambda_n"]["contact.floor"]
    # Without friction at the wall the floor carries all; with all of it, the wall carries a part.
    tilt = np.tan(0.5)
    np.testing.assert_allclose(high - 40.0, 0.2 * 40.0 * tilt / 2.0 / (1.0 - 0.2 * tilt), rtol=1e-9)
    assert low < 40.0


@pytest.mark.slow
def test_a_ladder_stands_up_to_its_limit():
    """``tan(theta) = 2 mu/(1 - mu mu_wall)``, with its derivative in ``mu``."""
    problem = loads(LADDER).problem

    def limit(mu):
        known = jfric.set_parameters(problem, {"parameters.mu": mu})
        return jfric.limit_load(known, "parameters.theta", 0.1, 1.4)

    value, rate = jax.jvp(lambda mu: limit(mu).parameter, (0.3,), (1.0,))
    tangent = 2.0 * 0.3 / (1.0 - 0.06)
    np.testing.assert_allclose(value, np.arctan(tangent), rtol=1e-9)
    slope = (2.0 * 0.94 + 0.6 * 0.2) / 0.94**2
    np.testing.assert_allclose(rate, slope / (1.0 + tangent**2), rtol=1e-7)


@pytest.mark.slow
def test_the_torque_that_a_crank_holds():
    """Friction in a guide holds between two torques, by the balance of its slider."""
    problem = loads(CRANK).problem
    rod = np.arcsin(-0.5 * np.sin(1.0) / 2.0)
    # The rod pushes the block with S against 10 N and friction, and the crank back.
    push = [10.0 / (np.cos(rod) + sign * 0.2 * abs(np.sin(rod))) for sign in (1.0, -1.0)]
    low, high = sorted(0.5 * S * np.sin(rod - 1.0) for S in push)
    found = jfric.limit_load(problem, "parameters.torque", 0.5 * (low + high), 20.0)
    np.testing.assert_allclose(found.parameter, high, rtol=1e-9)
    named = dict(zip(found.joints, found.reactions, strict=True))
    np.testing.assert_allclose(-named["pin.wrist.x"], min(push) * np.cos(rod), rtol=1e-8)
    below = jfric.limit_load(problem, "parameters.torque", 0.5 * (low + high), -20.0)
    np.testing.assert_allclose(below.parameter, low, rtol=1e-9)


GUIDED = """
[time]
end = "1 s"
[body.block]
m = 1
J = 1
[joint.guide]
constraint = "block_y"
[joint.upright]
constraint = "block_phi"
[friction.guide]
dof = "block_x"
limit = 4
[friction.guide.position]
cosine = [0.5]
period = "1 m"
[load.push]
dof = "block_x"
F = 0
"""


@pytest.mark.slow
def test_friction_that_depends_on_position_holds_a_mechanism_once():
    """At the crest of the ripple friction holds 1.5 times its limit."""
    found = jfric.limit_load(loads(GUIDED).problem, "load.push.F", 0.0, 20.0)
    np.testing.assert_allclose(found.parameter, 6.0, rtol=1e-12)


REFUSED = [
    ("mu = 0.2\n\n[load", "mu = 0.2\nbelt = 1.0\n\n[load", "contact.wall.belt: found a moving"),
    (
        "[load.push]",
        '[joint.drive]\nconstraint = "rod_x - 0.479425538604203 - 0.5*t"\n\n[load.push]',
        "joint.drive: prescribes a motion with the rate -0.5",
    ),
]


@pytest.mark.parametrize(("old", "new", "sentence"), REFUSED)
def test_what_has_no_rest_is_refused(old, new, sentence):
    assert old in LADDER
    problem = loads(LADDER.replace(old, new)).problem
    with pytest.raises(jfric.ProblemError, match=sentence):
        jfric.equilibria(problem, meaning="rest")
