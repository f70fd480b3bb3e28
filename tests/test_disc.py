"""Friction of a disc that slips and spins (Contensou)."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from references.disc import Disc, shares
from typer.testing import CliRunner

import jfric
from jfric.cli.main import app
from jfric.contact.rules.discs import REGULAR, disc_friction, disc_gauge, disc_holding
from jfric.files.read_toml import load_config, loads
from jfric.files.write_toml import dump
from jfric.system.bounds import bounds_of
from jfric.verification.configs import shipped

SOLVER = jfric.EventDriven(rtol=1e-12)
START = jfric.InitialState
OWN = Disc(m=2.0, J=0.3, R=0.5, limit=1.2)


def disc(time, start=None, belt=None, **elements) -> jfric.Problem:
    """A disc on a plane, of a moment of inertia that its radius does not tell."""
    pad = jfric.Friction(
        plane=["x", "y"], spin="theta", law=jfric.laws.Contensou(0.4, OWN.R), N=3.0, belt=belt
    )
    masses = {
        d: jfric.Mass(d, m) for d, m in zip(("x", "y", "theta"), (2.0, 2.0, 0.3), strict=True)
    }
    return jfric.Problem(
        {"x": "translation", "y": "translation", "theta": "rotation"},
        {"mass": masses, "friction": pad} | elements,
        initial={d: START(v=v) for d, v in (start or {}).items()},
        time=time,
    )


def test_friction_is_the_derivative_of_what_the_disc_dissipates():
    """Beside sums over the disc, for more slip and for more spin, and where either is nothing."""
    r, weight = np.polynomial.legendre.leggauss(400)
    r, angle = 0.5 * (r + 1.0), np.linspace(0.0, 2.0 * np.pi, 800, endpoint=False)
    x, y = r[:, None] * np.cos(angle), r[:, None] * np.sin(angle)
    weight = (weight * r)[:, None] / 800
    friction = jax.jit(jax.vmap(disc_friction))
    slips = np.array([[1.0, 0.0, 0.0], [0.6, -0.8, 0.3], [0.2, 0.1, -2.0], [0.0, 0.0, 1.0]])
    for velocity, found in zip(slips, np.asarray(friction(slips)), strict=True):
        u, w = velocity[0] - velocity[2] * y, velocity[1] + velocity[2] * x
        speed = np.hypot(u, w)
        torque = (x * w - y * u) / speed
        expected = [np.sum(part * weight) for part in (u / speed, w / speed, torque)]
        # Within the disc there is a point that rests, which no sum likes.
        exact = abs(velocity[2]) <= np.hypot(*velocity[:2]) or not velocity[0]
        np.testing.assert_allclose(found, expected, atol=1e-12 if exact else 1e-5)
    for e in (1e-3, 0.653, 0.999, 1.0, 1.001, 30.0):
        found = disc_friction(jnp.array([0.0, e, 1.0]))
        np.testing.assert_allclose(found[1:], shares(e), rtol=1e-9)
        np.testing.assert_allclose(found[0], 0.0)
    assert not np.any(disc_friction(jnp.zeros(3)))


def test_the_limit_surface_is_what_sliding_reaches():
    """Its normals are directions of sliding; the size is homogeneous and twice differentiable."""
    rng = np.random.default_rng(3)
    velocity = rng.normal(size=(200, 3)) * 10.0 ** rng.uniform(-4.0, 4.0, (200, 1))
    velocity[:, 2] *= 10.0 ** rng.uniform(-6.0, 6.0, 200)
    velocity[0], velocity[1], velocity[2] = (1.0, 0.0, 0.0), (0.0, 0.0, -1.0), (1.0, 0.0, 1.0)
    friction = np.asarray(jax.jit(jax.vmap(disc_friction))(velocity))
    size, normal = jax.jit(jax.vmap(disc_gauge))(0.3 * friction)
    np.testing.assert_allclose(size, 0.3, rtol=1e-13)
    unit = velocity / np.linalg.norm(velocity, axis=1)[:, None]
    np.testing.assert_allclose(normal, unit, atol=1e-9)

    def along(s):
        return disc_gauge(jnp.array([0.2, 0.1, 0.05]) + s * jnp.array([0.03, -0.2, 0.4])).size

    values = [float(along(k * 1e-3)) for k in (-2, -1, 0, 1, 2)]
    weights = (np.array([1, -8, 0, 8, -1]) / 12e-3, np.array([-1, 16, -30, 16, -1]) / 12e-6)
    for derivative, weight in zip(
        (jax.grad(along), jax.grad(jax.grad(along))), weights, strict=True
    ):
        np.testing.assert_allclose(jax.jit(derivative)(0.0), weight @ values, rtol=1e-6)


def test_friction_that_holds_best():
    """What is left goes along the normal of the limit surface, or nothing is."""
    rng = np.random.default_rng(5)
    A = rng.normal(size=(300, 3, 3))
    D = A @ A.transpose(0, 2, 1) + 0.01 * np.eye(3)
    needed = rng.normal(size=(300, 3))
    gauge = jax.jit(jax.vmap(disc_gauge))
    size = np.asarray(gauge(needed).size)
    needed *= (10.0 ** rng.uniform(-0.5, 1.5, 300) / size)[:, None]
    # Some at the limit itself.
    needed[:20] *= ((1.0 + 1e-12) / np.asarray(gauge(needed).size)[:20])[:, None]
    free = -np.einsum("kij,kj->ki", D, needed)
    hold = jax.jit(jax.vmap(lambda D, free: disc_holding(D, free, 1.0, 1e-9)))
    friction, n, holds = (np.asarray(x) for x in hold(D, free))
    size = np.asarray(gauge(needed).size)
    np.testing.assert_array_equal(holds, size <= 1.0 - 1e-9)
    assert 30 < holds.sum() < 200
    left = free + np.einsum("kij,kj->ki", D, friction)
    scale = np.linalg.norm(free, axis=1)[:, None]
    # But for what is added to D.
    added = 2.0 * REGULAR * np.trace(D, axis1=1, axis2=2) * np.linalg.norm(needed, axis=1)
    assert np.all((np.linalg.norm(left, axis=1) <= added)[holds])
    kappa = np.sum(left * n, axis=1)[:, None]
    assert np.all(kappa >= -1e-12 * scale)
    np.testing.assert_allclose(((left - kappa * n) / scale)[~holds], 0.0, atol=1e-11)
    best = -np.asarray(jax.jit(jax.vmap(disc_friction))(n))
    np.testing.assert_allclose(friction[~holds], best[~holds], atol=1e-14)


@pytest.mark.slow
def test_slip_and_spin_end_together():
    """Times and places of stops, from mostly slip to mostly spin, as one batch."""
    starts = np.array([[3.0, 0.5], [1.0, 4.0], [0.02, 6.0], [1.0, 2.0]])
    assert starts[0, 0] > OWN.R * starts[0, 1] > 0.0

    def stopped(start):
        values = {"initial.x.v": start[0], "initial.theta.v": start[1]}
        problem = jfric.set_parameters(disc(12.0, {"x": 1.0, "theta": 1.0}), values)
        solution = jfric.simulate(problem, SOLVER, ts=jnp.array([12.0]))
        q = solution.q[-1]
        return jnp.stack([solution.events.time[0], q[0], q[2]]), solution.status

    found, status = jax.jit(jax.vmap(stopped))(starts)
    assert not np.any(status)
    expected = [OWN.stop(v, OWN.R * w) for v, w in starts]
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def ramp(value: float) -> jfric.PiecewiseLinear:
    """Up to twice ``value`` and back to nothing, and later down to twice its opposite."""
    times = [0.0, 2.0, 3.0, 8.0, 12.0]
    return jfric.PiecewiseLinear(times, [0.0, 2.0 * value, 0.0, 0.0, -4.0 * value])


PUSH = {"x": 0.5, "y": -0.2, "theta": 0.15}


@pytest.mark.slow
def test_breaks_loose_stops_and_breaks_loose_again():
    """At the limit surface, both times; derivatives of times and places."""
    loads = {d: jfric.Load(d, ramp(x)) for d, x in PUSH.items()}
    problem, ts = disc(14.0, load=loads), jnp.linspace(0.0, 14.0, 57)
    solution = jfric.simulate(problem, SOLVER, ts=ts).check()
    needed = jnp.array([PUSH["x"], PUSH["y"], PUSH["theta"] / OWN.R])
    begins = OWN.limit / float(disc_gauge(needed).size)
    times = solution.events.time[:3]
    assert int(solution.events.count) == 3
    np.testing.assert_allclose(times[::2], [begins, 8.0 + begins], rtol=1e-12)
    assert begins < times[1] < 3.0
    rests = (np.asarray(ts) <= begins) | ((ts > times[1]) & (ts <= times[2]))
    assert rests.sum() > 20
    assert not np.any(np.asarray(solution.v)[rests])
    assert np.all(np.asarray(solution.v)[~rests, 2] != 0.0)
    # The law itself, point by point, and Newton's.
    assert float(jfric.contact_residual(problem, solution).max()) < 1e-11
    assert float(jfric.motion_residual(problem, solution).max()) < 1e-13
    # What the reference finds until the load falls.
    slope = 0.5 * np.hypot(1.0, 0.4) * begins, 0.15 * begins
    e = _normal(slope[0], slope[1] / OWN.R)
    way = OWN.broken_loose(e, (slope[0] / begins, slope[1] / begins), slope, 2.0 - begins)
    at = jfric.simulate(problem, SOLVER, ts=jnp.array([2.0]))
    np.testing.assert_allclose(np.hypot(*np.asarray(at.q)[0, :2]), way[0], rtol=1e-8)
    np.testing.assert_allclose(float(at.q[0, 2]), way[1], rtol=1e-8)

    def run(x):
        names = ("friction.mu", "friction.radius", "mass.theta.m")
        moved = jfric.set_parameters(problem, dict(zip(names, x, strict=True)))
        found = jfric.simulate(moved, SOLVER, ts=jnp.array([14.0]))
        return jnp.concatenate([found.events.time[:3], found.final.q])

    x, h = jnp.array([0.4, OWN.R, 0.3]), 1e-4
    exact, run = jax.jit(jax.jacfwd(run))(x), jax.jit(run)
    for i in range(3):
        step = h * jnp.eye(3)[i]
        near, far = run(x + step) - run(x - step), run(x + 2 * step) - run(x - 2 * step)
        np.testing.assert_allclose(exact[:, i], (8 * near - far) / (12 * h), rtol=1e-7, atol=1e-7)


def _normal(force: float, torque: float) -> float:
    """Slip over spin of the limit surface's normal on the way through a force and a torque."""
    normal = np.asarray(disc_gauge(jnp.array([force, 0.0, torque])).normal)
    return float(normal[0] / normal[2])


@pytest.mark.slow
def test_a_turntable_takes_a_disc_along():
    """On a partner that turns and moves a disc ends with its velocities; energy is not gained."""
    problem = disc(9.0, {"y": -0.4}, belt=[0.3, 0.0, 1.5])
    solution = jfric.simulate(problem, SOLVER, ts=jnp.linspace(0.0, 9.0, 91)).check()
    np.testing.assert_allclose(solution.v[-1], [0.3, 0.0, 1.5], rtol=1e-12, atol=1e-15)
    slips = np.asarray(solution.v) - np.array([0.3, 0.0, 1.5])
    assert np.all(np.sum(np.asarray(solution.lambda_t) * slips, axis=1) <= 0.0)
    # The same motion seen from the partner.
    seen = disc(9.0, {"x": -0.3, "y": -0.4, "theta": -1.5})
    other = jfric.simulate(seen, SOLVER, ts=jnp.linspace(0.0, 9.0, 91))
    moved = np.asarray(solution.ts)[:, None] * np.array([0.3, 0.0, 1.5])
    np.testing.assert_allclose(solution.q, np.asarray(other.q) + moved, atol=1e-11)


def test_files_are_written_as_they_were_read():
    for name in ("disc_slip_spin", "disc_break_loose"):
        problem = load_config(shipped(name)).problem
        assert loads(dump(problem)).problem == problem
    assert float(jfric.parameters(problem.resolved())["friction.radius"]) == 0.1
    assert bounds_of("friction.radius").closed is False


TEXT = """
dofs = {x = "translation", y = "translation", theta = "rotation"}
[time]
end = 1
[mass]
x = {dof = "x", m = 1}
y = {dof = "y", m = 1}
theta = {dof = "theta", m = 1}
[friction]
plane = ["x", "y"]
spin = "theta"
mu = 0.3
radius = "0.1 m"
N = 1
"""


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        (
            'radius = "0.1 m"',
            "",
            "friction.law: found Coulomb together with spin, which only the law Contensou",
        ),
        ('plane = ["x", "y"]\n', "", "friction: found none, exactly one of dof"),
        ('spin = "theta"\n', "", "the law Contensou is for a disc that slips and spins; give a"),
        ("0.1 m", "0 m", "friction.radius: found 0, must be positive"),
        ("0.1 m", "1 kg", "friction.radius: found 'kg' (a mass), expected a length such"),
        ("mu = 0.3", "mu = [0.3, 0.2]", "friction.mu: found two coefficients, which friction in a"),
        ("mu = 0.3", "mu = {positive = 0.3, negative = 0.2}", "found a coefficient for each sign"),
        ("N = 1", "N = 1\nbelt = [0.1, 0.2]", "friction.belt: found 2 velocities, friction in a"),
        (
            "N = 1",
            'N = 1\nbelt = [0.1, 0.2, "2 m/s"]',
            "friction.belt[3]: found 'm/s' (a velocity), expected an angular velocity such as",
        ),
        (
            "N = 1",
            'N = 1\nbelt = [0.1, "60 rpm", 2]',
            "friction.belt[2]: found 'rpm'",
        ),
        ('"theta"\n', '"phi"\n', "friction.spin: no degree of freedom 'phi'; declared are x, y"),
    ],
)
def test_sentence(old, new, sentence):
    with pytest.raises(jfric.ProblemError) as caught:
        loads(TEXT.replace(old, new, 1))
    assert sentence in str(caught.value)


def test_a_radius_is_a_length_whatever_the_plane_measures():
    text = TEXT.replace("translation", "rotation")
    assert float(jfric.parameters(loads(text).problem.resolved())["friction.radius"]) == 0.1
    with pytest.raises(jfric.ProblemError, match=r"friction\.radius: .* expected a length"):
        loads(text.replace("0.1 m", "5 deg"))


def test_belts_of_a_disc_in_units(tmp_path):
    """Along the plane in m/s, for the spin in rad/s: in a file, and by paths of parameters."""
    path = tmp_path / "disc.toml"
    path.write_text(TEXT.replace("N = 1", 'N = 1\nbelt = ["50 cm/s", 0, "60 rpm"]'))
    values = jfric.parameters(jfric.load(path))
    assert [float(values[f"friction.belt.{i}"]) for i in range(3)] == [0.5, 0.0, 2.0 * np.pi]

    def shown(setting: str):
        return CliRunner().invoke(app, ["show", str(path), "--set", setting])

    assert "3.14159" in shown("friction.belt.2=30 rpm").output
    for setting, expected in {
        "friction.belt.2=1 m/s": "an angular velocity",
        "friction.belt.0=1 rad/s": "a velocity",
        "friction.N=5 kg": "a force",
    }.items():
        refused = shown(setting)
        assert refused.exit_code == 2
        assert f"expected {expected}" in refused.stderr


def test_a_law_of_discs_is_for_friction_in_a_plane_alone():
    law = jfric.laws.Contensou(0.3, 0.1)
    masses = {d: jfric.Mass(d, 1.0) for d in "xz"}
    for elements in (
        {"contact": jfric.Contact("z", "x", law)},
        {"friction": jfric.Friction("x", law, N=1.0)},
        {"joint": jfric.Joint("z", law=law, sliding="x")},
    ):
        with pytest.raises(jfric.ProblemError, match="is for a disc that slips and spins"):
            jfric.Problem(["x", "z"], {"mass": masses} | elements)


@pytest.mark.parametrize(
    ("solver", "sentence"),
    [
        (jfric.MoreauJean(1e-3), "friction.spin: found a disc that slips and spins"),
        (jfric.QuasiStatic(), "found friction in a plane, which the solver quasi-static"),
        (jfric.Smoothed(), "found friction in a plane, which the solver smoothed"),
        (jfric.EventDriven(flow="exact"), "friction in a plane"),
        (jfric.EventDriven(kernel="lowered"), "friction in a plane"),
    ],
    ids=lambda x: "" if isinstance(x, str) else type(x).__name__,
)
def test_who_refuses_discs(solver, sentence):
    with pytest.raises(jfric.ProblemError) as caught:
        jfric.simulate(disc(1.0), solver, ts=jnp.array([1.0]))
    assert sentence in str(caught.value)
