"""Rigid bodies in a plane: points, contacts between them, springs, and what is said of mistakes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jfric
from jfric.files.read_toml import load_config, loads
from jfric.files.write_toml import dump
from jfric.system.assembly import assemble
from jfric.verification.configs import shipped

#: A rod and a disc above an inclined plane, a bowl and a spring.
TEXT = """
[time]
end = "1 s"

[parameters]
l = "2 m"

[gravity]
tilt = "3 deg"

[body.rod]
m = "3 kg"
J = "1 kg*m^2"
at = ["0 m", "$l"]
angle = "10 deg"

[body.rod.points]
tip = ["$l/2", "0 m"]
end = ["-80 cm", "10 cm"]

[body.disc]
m = 1
J = 0.1
at = [4, 3]
v = ["1 m/s", 0]
omega = "2 rad/s"

[ground.points]
a = [0, -1]
b = ["2 m", "-0.5 m"]

[contact.floor]
point = "rod.tip"
line = "ground"
e = 0.2
mu = 0.3
belt = "2 m/s"

[contact.slope]
point = "disc"
radius = "10 cm"
line = ["ground.a", "ground.b"]
mu = 0.1

[contact.edge]
point = "disc"
radius = "10 cm"
gap = "1 cm"
line = ["rod.end", "rod.tip"]
mu = 0.1

[contact.pair]
point = "disc"
radius = "10 cm"
circle = "rod.end"
circle_radius = "5 cm"
mu = {positive = 0.1, negative = 0.2}

[contact.bowl]
point = "rod.end"
radius = "20 cm"
circle = "ground.a"
circle_radius = "6 m"
inside = true
mu = 0.4

[link_spring.s]
points = ["rod.tip", "disc"]
k = "5 kN/m"
c = "7 N*s/m"
x0 = "1 m"
"""


def test_files_are_written_as_they_were_read():
    config = loads(TEXT)
    again = loads(dump(config))
    assert dump(again) == dump(config)
    assert jfric.parameters(again.problem) == jfric.parameters(config.problem)
    assert list(config.problem.dofs) == [
        "rod_x",
        "rod_y",
        "rod_phi",
        "disc_x",
        "disc_y",
        "disc_phi",
    ]


def test_parameters_of_bodies():
    problem = loads(TEXT).problem
    assert float(jfric.get_parameter(problem, "body.disc.m")) == 1.0
    assert float(jfric.get_parameter(problem, "body.rod.angle")) == np.deg2rad(10.0)
    moved = jfric.set_parameters(problem, {"body.disc.at.0": 5.0, "body.rod.points.end.0": -0.9})
    assert float(jfric.get_parameter(moved, "initial.disc_x.q")) == 5.0
    assert float(moved.elements["body"]["rod"].points["end"][0]) == -0.9


def contact_points(q):
    """By hand: name to the touching point, its tangent, normal and gap."""

    def at(i, x):
        c, s = np.cos(q[i + 2]), np.sin(q[i + 2])
        return q[i : i + 2] + np.array([[c, -s], [s, c]]) @ x

    def left(x):
        return np.array([-x[1], x[0]])

    tip, end, disc = at(0, [1.0, 0.0]), at(0, [-0.8, 0.1]), q[3:5]
    found = {"floor": (tip, np.array([1.0, 0.0]), tip[1])}
    slope = np.array([2.0, 0.5]) / np.hypot(2.0, 0.5)
    found["slope"] = disc - 0.1 * left(slope), slope, left(slope) @ (disc - [0.0, -1.0]) - 0.1
    edge = (tip - end) / np.linalg.norm(tip - end)
    # Where the touching surfaces are no clearance apart.
    found["edge"] = disc - 0.1 * left(edge), edge, left(edge) @ (disc - tip) - 0.09
    way = disc - end
    n = way / np.linalg.norm(way)
    found["pair"] = disc - 0.1 * n, -left(n), np.linalg.norm(way) - 0.15
    n = (np.array([0.0, -1.0]) - end) / 5.8
    found["bowl"] = end - 0.2 * n, -left(n), (5.8**2 - 5.8**2 * (n @ n)) / (2 * 5.8)
    return found


@pytest.mark.slow
def test_contacts_slide_with_the_material():
    """Gaps, their rates and sliding velocities against velocities of material points."""
    problem = loads(TEXT).problem
    mechanics = assemble(problem)
    rng = np.random.default_rng(1)
    for _ in range(5):
        q, v = rng.normal(size=6), rng.normal(size=6)
        here = mechanics.at(jnp.zeros(()), jnp.asarray(q), jnp.asarray(v))

        def speed(i, point, q=q, v=v):
            if i is None:
                return np.zeros(2)
            x = point - q[i : i + 2]
            return v[i : i + 2] + v[i + 2] * np.array([-x[1], x[0]])

        bodies = {"floor": (0, None), "slope": (3, None), "edge": (3, 0), "pair": (3, 0)}
        bodies["bowl"] = (0, None)
        gaps = here.gaps(jnp.zeros(()), jnp.asarray(q))
        for row, (name, (point, tangent, gap)) in enumerate(contact_points(q).items()):
            first, second = (speed(i, point) for i in bodies[name])
            np.testing.assert_allclose(gaps[row], gap, atol=1e-13, err_msg=name)
            sliding = here.W_T[row] @ v
            np.testing.assert_allclose(sliding, tangent @ (first - second), atol=1e-12)
            step = 1e-6
            later, sooner = (contact_points(q + h * v)[name][2] for h in (step, -step))
            rate = (later - sooner) / (2 * step)
            np.testing.assert_allclose(here.W_N[row] @ v, rate, atol=1e-8)


def test_relative_accelerations_along_the_motion():
    """``bias`` is the change of the directions along the motion, for sliding without a
    displacement as well."""
    problem = loads(TEXT).problem
    mechanics = assemble(problem)
    assert len(mechanics.varying.rolling) == 2
    rng = np.random.default_rng(2)
    q, v, t, h = (
        jnp.asarray(rng.normal(size=6)),
        jnp.asarray(rng.normal(size=6)),
        jnp.zeros(()),
        1e-6,
    )
    here = mechanics.at(t, q, v)
    later, sooner = (mechanics.at(t, q + s * v, v) for s in (h, -h))
    W = [jnp.concatenate([x.W_T, x.W_N]) for x in (later, sooner)]
    np.testing.assert_allclose(here.bias, (W[0] - W[1]) @ v / (2 * h), atol=2e-8)


def test_springs_between_points_and_weight():
    """Forces are those of their potential, and of the damper's power."""
    problem = loads(TEXT).problem
    mechanics = assemble(problem)
    rng = np.random.default_rng(3)
    q, v = jnp.asarray(rng.normal(size=6)), jnp.asarray(rng.normal(size=6))
    (spring,) = mechanics.nonlinear

    def length(q):
        tip = q[:2] + jnp.stack([jnp.cos(q[2]), jnp.sin(q[2])])
        return jnp.linalg.norm(q[3:5] - tip)

    along = jax.grad(length)(q)
    expected = -(5000.0 * (length(q) - 1.0) + 7.0 * (along @ v)) * along
    np.testing.assert_allclose(spring.force((), 0.0, q, v), expected, rtol=1e-12)
    tilt, weight = np.deg2rad(3.0), 9.81 * np.array([3.0, 1.0])
    np.testing.assert_allclose(mechanics.f0[0::3], weight * np.sin(tilt), rtol=1e-14)
    np.testing.assert_allclose(mechanics.f0[1::3], -weight * np.cos(tilt), rtol=1e-14)
    np.testing.assert_allclose(jnp.diagonal(mechanics.M), [3.0, 3.0, 1.0, 1.0, 1.0, 0.1])


def test_a_spring_without_length_has_a_force():
    start = {"a": jfric.Body(1.0, 1.0), "b": jfric.Body(1.0, 1.0)}
    problem = jfric.Problem([], {"body": start, "link_spring": jfric.LinkSpring(("a", "b"), 5.0)})
    (spring,) = assemble(problem).nonlinear
    assert not np.any(spring.force((), 0.0, jnp.zeros(6), jnp.ones(6)))


def test_a_disc_on_a_straight_line_is_linear():
    """It keeps the exact flow: neither gap nor sliding depends on the position."""
    assert assemble(load_config(shipped("disc_incline")).problem).varying is None


def test_sliding_as_a_velocity_in_a_text():
    """A skate: it slides across its blade, along a direction that turns with it."""
    text = """
    dofs = {x = "translation", y = "translation", phi = "rotation"}
    [time]
    end = 1
    [mass.x]
    dof = "x"
    m = 1
    [mass.y]
    dof = "y"
    m = 1
    [mass.phi]
    dof = "phi"
    m = 1
    [friction]
    sliding = "cos(phi)*v.y - sin(phi)*v.x"
    mu = 0.5
    N = 2
    """
    problem = loads(text).problem
    q, v = jnp.array([0.3, 0.2, 0.7]), jnp.array([1.0, 2.0, 3.0])
    here = assemble(problem).at(jnp.zeros(()), q, v)
    np.testing.assert_allclose(here.W_T[0], [-np.sin(0.7), np.cos(0.7), 0.0], rtol=1e-15)
    across = -np.cos(0.7) * 3.0 * 1.0 - np.sin(0.7) * 3.0 * 2.0
    np.testing.assert_allclose(here.bias[0], across, rtol=1e-14)
    assert dump(loads(dump(problem))) == dump(problem)
    wrong = text.replace("*v.y", "*v.y^2")
    with pytest.raises(jfric.ProblemError, match="must be linear in velocities"):
        loads(wrong)


#: Text to replace, what to put there, and the sentence.
MISTAKES = [
    (
        'point = "rod.tip"',
        'point = "rot.tip"',
        ("contact.floor.point: no body 'rot' (did you mean 'rod'?); there are rod, disc, ground"),
    ),
    (
        'point = "rod.tip"',
        'point = "rod.top"',
        ("contact.floor.point: body.rod has no point 'top' (did you mean 'tip'?); it has tip, end"),
    ),
    (
        'line = ["ground.a", "ground.b"]',
        'line = ["ground.a", "ground.c"]',
        "contact.slope.line: ground has no point 'c'; it has a, b",
    ),
    (
        'line = ["ground.a", "ground.b"]',
        'line = ["ground.a", "rod.tip"]',
        ("contact.slope.line: found points of 'ground' and 'rod', both must be of one body"),
    ),
    (
        'line = ["ground.a", "ground.b"]',
        'line = "ground.a"',
        (
            "contact.slope.line: found the point 'ground.a'; a line takes two points, "
            "or the name of a body for its x-axis"
        ),
    ),
    (
        'line = "ground"',
        'line = "rod"',
        (
            "contact.floor: both sides belong to 'rod'; it acts between two bodies, or a "
            "body and the ground"
        ),
    ),
    (
        'line = "ground"',
        "",
        "contact.floor: found neither of line and circle, exactly one is needed",
    ),
    ('m = "3 kg"', 'm = "-3 kg"', "body.rod.m: found -3, must be positive"),
    (
        'J = "1 kg*m^2"',
        "J = 0",
        "body.rod.J: found 0, must be positive: a body turns; for a point mass give two degrees of "
        "freedom with a mass along each, or, where joints or contacts refer to its points, a J "
        "that is small compared with m times their distance squared",
    ),
    ('J = "1 kg*m^2"', "J = -1", "body.rod.J: found -1, must be positive"),
    ('m = "3 kg"', 'm = "3 m"', "body.rod.m: found 'm' (a length), expected a mass such as '5 kg'"),
    (
        'tip = ["$l/2", "0 m"]',
        'tip = ["2 kg", "0 m"]',
        ("body.rod.points.tip[1]: found 'kg' (a mass), expected a length such as '10 mm'"),
    ),
    (
        'tip = ["$l/2", "0 m"]',
        "tip = [1, 2, 3]",
        "body.rod.points.tip: found 3 entries, needed are 2",
    ),
    (
        'at = ["0 m", "$l"]',
        'at = ["0 m", "-1 m"]',
        (
            "initial: the contact 'contact.floor' starts with a gap of -0.826352, must "
            "not be negative; move the initial position or the gap"
        ),
    ),
    ('at = ["0 m", "$l"]', "at = [0, 2, 0]", "body.rod.at: found 3 entries, needed are 2"),
    (
        'omega = "2 rad/s"',
        'omega = "2 m/s"',
        (
            "body.disc.omega: found 'm/s' (a velocity), expected an angular velocity "
            "such as '2 rad/s'"
        ),
    ),
    (
        'omega = "2 rad/s"',
        "omega = 1\n[initial.disc_phi]\nv = 2",
        "initial.disc_phi: the body 'disc' gives its start as well; keep one",
    ),
    (
        "[body.disc]",
        '[body."my disc"]',
        (
            "body: found the name 'my disc', names of bodies start with a letter, hold "
            "letters, digits and _, and are not 'ground'"
        ),
    ),
    (
        'circle_radius = "6 m"',
        'circle_radius = "10 cm"',
        (
            "contact.bowl.circle_radius: found 0.1, must exceed the radius (0.2) of "
            "the circle inside"
        ),
    ),
    (
        'points = ["rod.tip", "disc"]',
        'points = ["disc", "disc"]',
        ("link_spring.s.points: found ['disc', 'disc'], needed are two different points"),
    ),
    (
        'points = ["rod.tip", "disc"]',
        'points = ["rod.tip", "disk"]',
        (
            "link_spring.s.points: no body 'disk' (did you mean 'disc'?); there are "
            "rod, disc, ground"
        ),
    ),
    ('k = "5 kN/m"', 'k = "-5 kN/m"', "link_spring.s.k: found -5000, must not be negative"),
    (
        'belt = "2 m/s"',
        'belt = "2 m/s"\nsliding = "rod_x"',
        ("contact.floor.sliding: cannot be combined with point, from which it follows"),
    ),
    (
        'gap = "1 cm"',
        'gap = "1 kg"',
        "contact.edge.gap: found 'kg' (a mass), expected a length such as '10 mm'",
    ),
]


@pytest.mark.parametrize(("old", "new", "sentence"), MISTAKES)
def test_sentence(old, new, sentence):
    assert old in TEXT
    with pytest.raises(jfric.ProblemError) as caught:
        loads(TEXT.replace(old, new, 1))
    assert str(caught.value) == f"<text>: {sentence}"
