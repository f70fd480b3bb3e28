"""Contacts of links in space: spheres and points on surfaces, on spheres, in hollow spheres."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jfric
from jfric.files.read_toml import loads
from jfric.system.assembly import displacement_functions

M, R, MU, G = 1.3, 0.2, 0.3, 9.81
BALL = {"joint": "free", "m": M, "J": (0.4 * M * R**2,) * 3 + (0.0,) * 3}


def ball(contact: dict, *, spin, velocity, height=R, time=2.0, **elements) -> jfric.Problem:
    """A ball on a floor, with an angular velocity in fixed axes."""
    start = {
        "ball_x": jfric.InitialState(0.0, velocity[0]),
        "ball_y": jfric.InitialState(0.0, velocity[1]),
        "ball_z": jfric.InitialState(height, velocity[2]),
        "ball_qw": jfric.InitialState(1.0),
        **{
            f"ball_q{a}": jfric.InitialState(0.0, w / 2.0) for a, w in zip("xyz", spin, strict=True)
        },
    }
    parts = {
        "link": {"ball": jfric.Link(**BALL)},
        "gravity": jfric.Gravity(G),
        "contact": jfric.Contact(point="ball", radius=R, surface="ground", **contact),
    }
    return jfric.Problem([], parts | elements, initial=start, time=time)


def several() -> jfric.Problem:
    """Two arms: points and spheres of one touch the ground, the other one, and a bowl of it."""
    arm = {"m": 1.0, "J": (0.1, 0.1, 0.1, 0, 0, 0)}
    links = {
        "one": jfric.Link("ball", at=(0, 0, 1), points={"tip": (0.3, 0.1, -0.4)}, **arm),
        "more": jfric.Link(
            "prismatic", parent="one", axis=(1, 1, 0), points={"knob": (0.1, 0, -0.2)}, **arm
        ),
        "other": jfric.Link(
            at=(1, 0, 0.5),
            axis=(0, 1, 0.2),
            rpy=(0.2, 0.4, 0.1),
            points={"bowl": (0, 0, 0.3)},
            **arm,
        ),
    }
    with_friction = {"law": jfric.Coulomb(0.3)}
    contacts = {
        "floor": jfric.Contact(point="one.tip", surface="ground", gap=0.1),
        "plate": jfric.Contact(point="more.knob", radius=0.05, surface="other", **with_friction),
        "beside": jfric.Contact(
            point="one.tip", radius=0.1, sphere="other.bowl", sphere_radius=0.2, **with_friction
        ),
        "inside": jfric.Contact(
            point="more", radius=0.1, sphere="other.bowl", sphere_radius=3.0, inside=True,
            **with_friction,
        ),
    }  # fmt: skip
    return jfric.Problem([], {"link": links, "contact": contacts})


def test_directions_are_derivatives_of_gaps_and_velocities_of_the_material():
    problem = several()
    random, axes = np.random.default_rng(11), list(problem.dofs)
    n, found = len(axes), displacement_functions(problem)
    assert len(found) == 4 + 3 + 6  # gaps, the second rows of three, and their slidings
    states = []
    for _ in range(3):
        q, v = random.normal(size=n) * 0.5, random.normal(size=n)
        q[:4] /= np.linalg.norm(q[:4])
        v[:4] -= q[:4] * (q[:4] @ v[:4])
        states.append((q, v))

    def off_norm(W, q):
        """The part of slopes that moves: along the norm of the quaternion nothing does."""
        return W.at[:4].add(-q[:4] * (q[:4] @ W[:4]))

    for name, (_, g) in found.items():
        if not name.endswith("gap") or name.endswith("2.gap"):
            continue

        @jax.jit
        def both(q, v, g=g):
            seen = g.seen(q, v)

            def along(s):
                # The motion q + v s keeps the norm only to first order.
                x = q + v * s
                return x.at[:4].divide(jnp.sqrt(x[:4] @ x[:4]))

            def moved(s):
                x, dx = jax.jvp(along, (s,), (1.0,))
                return g.seen(x, dx).W[0] @ dx

            a = jax.jvp(lambda s: jax.jvp(along, (s,), (1.0,))[1], (0.0,), (1.0,))[1]
            return (
                (seen.value[0], g(0.0, q)),
                (off_norm(seen.W[0, 2], q), off_norm(jax.grad(g, argnums=1)(0.0, q), q)),
                (seen.bias[0] + seen.W[0] @ a, jax.jvp(moved, (0.0,), (1.0,))[1]),
            )

        for q, v in states:
            for exact, derived in both(jnp.asarray(q), jnp.asarray(v)):
                np.testing.assert_allclose(exact, derived, atol=1e-12, err_msg=name)


@pytest.mark.slow
def test_a_ball_slides_then_rolls():
    base = ball({"law": jfric.Coulomb(MU)}, spin=(1.0, 1.0, 1.0), velocity=(1.0, 1.0, 0.0))

    @jax.jit
    @jax.vmap
    def run(velocity, spin):
        changed = {f"initial.ball_{a}.v": x for a, x in zip("xy", velocity, strict=True)}
        changed |= {f"initial.ball_q{a}.v": w / 2.0 for a, w in zip("xyz", spin, strict=True)}
        found = jfric.simulate(jfric.set_parameters(base, changed), ts=jnp.array([0.05, 2.0]))
        return found.v, found.events.time[0], found.lambda_n[:, 0], found.status

    velocity = np.array([[2.0, 0.5], [-1.0, 2.0]])
    spin = np.array([[1.0, -8.0, 3.0], [20.0, 5.0, -2.0]])
    v, first, normal, status = map(np.asarray, run(jnp.asarray(velocity), jnp.asarray(spin)))
    for i in range(2):
        slip = velocity[i] + R * np.array([-spin[i, 1], spin[i, 0]])
        speed = np.hypot(*slip)
        # The sliding velocity keeps its direction and falls by 7/2 mu g.
        until = 2.0 * speed / (7.0 * MU * G)
        assert first[i] == pytest.approx(until, rel=1e-8)
        rolled = velocity[i] - MU * G * until * slip / speed
        np.testing.assert_allclose(
            v[i, 0, :2], velocity[i] - MU * G * 0.05 * slip / speed, atol=1e-10
        )
        np.testing.assert_allclose(v[i, 1, :2], rolled, atol=1e-9)
        np.testing.assert_allclose(normal[i], M * G, rtol=1e-10)
    assert status.tolist() == [0, 0]


@pytest.mark.slow
def test_spheres_bounce_off_each_other():
    """Two equal free balls on their line of centres: momentum and Newton's restitution."""
    links = {x: jfric.Link(**BALL) for x in ("left", "right")}
    away = np.array([0.6, 0.0, 0.8])
    start = {f"right_{a}": jfric.InitialState(x) for a, x in zip("xyz", away, strict=True)}
    start |= {
        f"left_{a}": jfric.InitialState(0.0, x) for a, x in zip("xyz", 3.0 * away, strict=True)
    }
    contact = jfric.Contact(point="left", radius=R, sphere="right", sphere_radius=R, e=0.5)
    problem = jfric.Problem([], {"link": links, "contact": contact}, initial=start, time=1.0)
    solution = jfric.simulate(problem, ts=jnp.array([1.0]))
    assert float(solution.events.time[0]) == pytest.approx(0.6 / 3.0, rel=1e-12)
    v = np.asarray(solution.v[0])
    np.testing.assert_allclose(v[:3], 0.25 * 3.0 * away, atol=1e-11)
    np.testing.assert_allclose(v[7:10], 0.75 * 3.0 * away, atol=1e-11)


TEXT = """
[time]
end = "1 s"
[link.ball]
joint = "free"
m = "1 kg"
J = [0.016, 0.016, 0.016, 0, 0, 0]
[link.wall]
joint = "fixed"
at = ["1 m", 0, 0]
rpy = [0, "-90 deg", 0]
[contact.floor]
point = "ball"
radius = "20 cm"
surface = "ground"
mu = 0.3
[contact.wall]
point = "ball"
radius = "20 cm"
surface = "wall"
e = 0.5
[initial.ball_z]
q = "20 cm"
"""


def test_files_hold_contacts_in_space():
    problem = loads(TEXT).problem
    assert problem.elements["contact"]["wall"].surface == "wall"
    again = loads(jfric.to_toml(problem)).problem
    assert jfric.to_toml(again) == jfric.to_toml(problem)
    gaps = {
        k: float(g(0.0, problem.start()[1]))
        for k, (_, g) in displacement_functions(problem).items()
        if k.endswith("gap")
    }
    assert gaps == pytest.approx(
        {"contact.floor.1.gap": 0.0, "contact.floor.2.gap": 0.0, "contact.wall.gap": 0.8}, abs=1e-15
    )


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ('surface = "wall"', 'surface = "wal"', r"contact.wall.surface: no link 'wal' \(did you"),
        ('surface = "wall"', 'sphere = "wall"\nsurface = "wall"', "both of surface and sphere"),
        ('surface = "wall"', 'surface = "wall.top"', "link.wall has no point 'top'; it has none"),
        ('surface = "wall"', 'surface = "wall"\nnormal = "ball_x"', "normal: cannot be combined"),
        ('surface = "wall"', 'surface = "wall"\ninside = true', "inside: is given without sphere"),
        ('point = "ball"\nradius = "20 cm"\nsurface = "wall"', 'surface = "wall"', "is missing"),
        ("e = 0.5", 'e = 0.5\ngap = "ball_x"', "contact.wall.gap: found"),
        ('[contact.wall]\npoint = "ball"', '[contact.wall]\npoint = "wall"', "both must move"),
    ],
)  # fmt: skip
def test_mistakes_have_a_sentence(old, new, sentence):
    with pytest.raises(jfric.ProblemError, match=sentence):
        loads(TEXT.replace(old, new))
