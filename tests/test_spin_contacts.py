"""Contacts in space that brake slip and spin together: a disc under an even pressure touches."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from references.disc import shares
from references.tippe_top import TippeTop
from scipy.integrate import solve_ivp
from scipy.optimize import fsolve

import jfric
from jfric.contact.rules import disc_friction, disc_gauge, disc_nearest
from jfric.files.read_toml import load_config, loads
from jfric.results.modes import Mode
from jfric.verification.configs import shipped

M, R, MU, G, DISC = 1.3, 0.2, 0.3, 9.81, 0.05
J = 0.4 * M * R**2
BALL = f"""
time = {{ end = "1 s" }}
gravity = {{ g = {G} }}
[link.ball]
joint = "free"
m = {M}
J = [{J}, {J}, {J}, 0, 0, 0]
[contact.floor]
point = "ball"
radius = {R}
surface = "ground"
mu = {MU}
contact_radius = {DISC}
[initial.ball_z]
q = {R}
"""


def test_the_nearest_friction_leaves_a_velocity():
    """What is cut off has the direction of a velocity that slides with the rest; derivatives."""
    rng = np.random.default_rng(5)
    points = rng.normal(size=(60, 3)) * 10.0 ** rng.uniform(-2.0, 1.0, (60, 1))
    points[:3] = np.diag([3.0, -2.0, 4.0])
    limit = 0.7
    near = jax.jit(jax.vmap(lambda x: disc_nearest(x, limit)))(points)
    size = np.asarray(jax.vmap(disc_gauge)(points).size)
    inside = size <= limit
    assert 5 < inside.sum() < 50
    np.testing.assert_array_equal(near[inside], points[inside])
    left = points[~inside] - near[~inside]
    slides = limit * np.asarray(jax.vmap(disc_friction)(left))
    np.testing.assert_allclose(near[~inside], slides, atol=1e-11)
    along, x, step = np.array([0.3, -0.5, 0.2]), points[~inside][-1], 1e-5
    slope = jax.jvp(lambda x: disc_nearest(x, limit), (x,), (along,))[1]
    ends = [disc_nearest(x + s * step * along, limit) for s in (-1, 1)]
    np.testing.assert_allclose(slope, (ends[1] - ends[0]) / (2 * step), atol=1e-8)


@pytest.mark.slow
def test_a_ball_spins_until_it_sticks_and_impacts_slip_and_spin_together():
    """Pure spin stops in closed form, for good; a ball that hits the floor obliquely."""
    base = loads(BALL).problem

    @jax.jit
    @jax.vmap
    def run(height, velocity, spin):
        changed = {"initial.ball_z.q": height}
        changed |= {f"initial.ball_{a}.v": x for a, x in zip("xyz", velocity, strict=True)}
        changed |= {f"initial.ball_q{a}.v": w / 2.0 for a, w in zip("xyz", spin, strict=True)}
        problem = jfric.set_parameters(base, changed)
        found = jfric.simulate(problem, ts=jnp.array([0.5, 1.0]))
        events = found.events
        return found.q, found.v, events.time[0], events.v[0], found.mode[-1], found.status

    spin = 5.0
    oblique = np.array([0.7, -0.4, 0.0]), np.array([3.0, 8.0, 20.0])
    height, velocity = np.array([R, R + 0.1]), np.stack([np.zeros(3), oblique[0]])
    spins = np.stack([[0.0, 0.0, spin], oblique[1]])
    q, v, first, hit, mode, status = map(
        np.asarray, run(jnp.asarray(height), jnp.asarray(velocity), jnp.asarray(spins))
    )
    assert status.tolist() == [0, 0]
    slows = 2.0 / 3.0 * MU * M * G * DISC / J
    assert first[0] == pytest.approx(spin / slows, rel=1e-9)
    angle = 2.0 * np.arctan2(q[0, :, 6], q[0, :, 3])
    expected = spin * 0.5 - 0.125 * slows, 0.5 * spin**2 / slows
    np.testing.assert_allclose(angle, expected, rtol=1e-9)
    np.testing.assert_allclose(v[0, 1], 0.0, atol=1e-30)
    assert (mode[0] == Mode.STICK).all()
    # The impulse of the floor is that of the fall; friction obeys the law with what is left.
    assert first[1] == pytest.approx(np.sqrt(0.2 / G), rel=1e-9)
    normal = M * np.sqrt(0.2 * G)
    slip = oblique[0][:2] + R * np.array([-oblique[1][1], oblique[1][0]])

    def left(x):
        force, torque = shares(x[0] / (DISC * x[1]))
        return [
            x[0] - np.hypot(*slip) + 3.5 / M * MU * normal * force,
            x[1] - oblique[1][2] + MU * normal * DISC * torque / J,
        ]

    speed, spun = fsolve(left, [1.0, 15.0], xtol=1e-13)
    force, _ = shares(speed / (DISC * spun))
    moved = oblique[0][:2] - MU * normal * force / M * slip / np.hypot(*slip)
    np.testing.assert_allclose(hit[1, :3], [*moved, 0.0], atol=1e-9)


@pytest.mark.slow
def test_a_plate_on_three_discs_slides_turns_and_rests():
    """Beside SciPy: frictions of all discs tilt the load from one to the other."""
    height, inertia, start = 0.15, 0.04, np.array([1.0, -0.4, 4.0])
    feet = np.array([[0.2, 0.1], [-0.25, 0.15], [0.02, -0.3]])
    points = {name: (*at, -height) for name, at in zip("abc", feet, strict=True)}
    law = {"surface": "ground", "law": jfric.Coulomb(MU), "contact_radius": DISC}
    first = {"z": (height, 0.0), "x": (0.0, start[0]), "y": (0.0, start[1])}
    first |= {"qw": (1.0, 0.0), "qz": (0.0, start[2] / 2.0)}
    problem = jfric.Problem(
        [],
        {
            "link": {"plate": jfric.Link("free", m=M, J=(0.02, 0.03, inertia, 0, 0, 0),
                                         points=points)},
            "gravity": jfric.Gravity(G),
            "contact": {name: jfric.Contact(point=f"plate.{name}", **law) for name in points},
        },
        initial={f"plate_{c}": jfric.InitialState(*x) for c, x in first.items()},
        time=1.0,
    )  # fmt: skip

    def rates(_, y):
        turned = np.array([[np.cos(y[2]), -np.sin(y[2])], [np.sin(y[2]), np.cos(y[2])]])
        at, w = feet @ turned.T, y[5]
        slip = y[3:5] + w * np.stack([-at[:, 1], at[:, 0]], axis=1)
        speed = np.hypot(*slip.T)
        share = np.array([shares(x / (DISC * abs(w))) for x in speed])
        k = -MU * slip * (share[:, 0] / speed)[:, None]
        # No tilt: moments of loads and frictions about both horizontal axes cancel.
        across = [at[:, 1] + height * k[:, 1], at[:, 0] + height * k[:, 0]]
        load = np.linalg.solve([np.ones(3), *across], [M * G, 0.0, 0.0])
        own = at[:, 0] * k[:, 1] - at[:, 1] * k[:, 0] - MU * DISC * np.sign(w) * share[:, 1]
        return [*y[3:], *(load @ k / M), load @ own / inertia]

    ts = np.linspace(0.0, 1.0, 21)
    solution = jfric.simulate(problem, ts=jnp.asarray(ts)).check()
    q, slides = np.asarray(solution.q), ts <= 0.4
    known = solve_ivp(
        rates, (0.0, 0.4), [0.0, 0.0, 0.0, *start], "DOP853", ts[slides], rtol=1e-11, atol=1e-12
    ).y
    np.testing.assert_allclose(q[slides, :2], known[:2].T, atol=1e-10)
    angle = 2.0 * np.arctan2(q[slides, 6], q[slides, 3])
    np.testing.assert_allclose(angle, known[2], atol=1e-10)
    # It stops at once, and stays.
    assert (np.asarray(solution.mode[-1]) == Mode.STICK).all()
    np.testing.assert_allclose(q[-1], q[9], atol=1e-14)


@pytest.mark.slow
def test_a_tippe_top_turns_over():
    """Beside Newton's and Euler's equations, until the stem touches; it then lifts the body."""
    problem = load_config(shipped("r4_tippe_top")).problem
    times = np.linspace(0.0, problem.time.end, 31)
    solution = jfric.simulate(problem, jfric.EventDriven(rtol=1e-10), ts=jnp.asarray(times)).check()
    reference, stem = TippeTop().motion(0.1, 180.0, times)
    count = reference.shape[1]
    assert 25 < count < len(times)
    q = np.asarray(solution.q)[:count]
    np.testing.assert_allclose(q[:, 3:], reference[2:6].T, atol=1e-6)
    np.testing.assert_allclose(q[:, :2], reference[:2].T, atol=1e-8)
    assert float(solution.events.time[0]) == pytest.approx(stem, abs=1e-8)


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        (f"mu = {MU}\n", "", "contact.floor.contact_radius: found together with no law; friction"),
        (f"mu = {MU}\n", "mu_s = 0.3\nmu_d = 0.2\n", "found together with the law StaticDynamic"),
        (f"mu = {MU}\n", "mu = [0.3, 0.2]\n", "found together with the law Coulomb"),
        (f"contact_radius = {DISC}", "contact_radius = 0", "contact_radius: found 0"),
        (f'point = "ball"\nradius = {R}\nsurface = "ground"', 'normal = "ball_z"\ntangent = '
         '"ball_x"', "contact.floor.contact_radius: is given without surface or sphere"),
    ],
)  # fmt: skip
def test_mistakes_have_a_sentence(old, new, sentence):
    with pytest.raises(jfric.ProblemError, match=sentence):
        loads(BALL.replace(old, new)).problem.resolved()


def test_steps_refuse_it():
    with pytest.raises(jfric.ProblemError, match=r"contact.floor.contact_radius: found a disc"):
        jfric.simulate(loads(BALL).problem, jfric.MoreauJean(1e-3))
