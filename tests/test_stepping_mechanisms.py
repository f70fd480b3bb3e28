"""Time stepping of mechanisms: references step by step, orders of convergence, what is refused."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cranks import CRANK, crank_by_angle, crank_by_bodies
from references import moreau_crank

import jfric
from jfric.files.read_toml import loads
from jfric.solvers.time_stepping.step import _partners
from jfric.system.start_checks import require_free_gaps
from jfric.verification.configs import shipped

jax.config.update("jax_enable_x64", True)


@pytest.mark.slow
def test_a_slider_crank_by_its_angle_is_the_reference_step_by_step():
    """It reverses, and comes to rest."""
    h, steps, N = 2e-3, 1500, 40.0
    problem, ts = crank_by_angle(N, steps * h), h * jnp.arange(steps + 1)
    found = jfric.simulate(problem, jfric.MoreauJean(h), ts=ts)
    assert found.status == jfric.Status.OK
    assert found.events.count >= 2
    assert found.final.mode[0] == jfric.Mode.STICK
    a, w = moreau_crank.angle(CRANK, N, h, steps)
    np.testing.assert_allclose(found.q[:, 0], a, atol=1e-9)
    np.testing.assert_allclose(found.v[:, 0], w, atol=1e-9)


@pytest.mark.slow
def test_a_slider_crank_by_bodies_is_the_reference_step_by_step():
    """Friction on the guide's reaction, whose sign changes; it reverses, and comes to rest."""
    h, steps = 2e-3, 1500
    ts = h * jnp.arange(steps + 1)
    found = jfric.simulate(crank_by_bodies(steps * h), jfric.MoreauJean(h), ts=ts)
    assert found.status == jfric.Status.OK
    assert found.events.count >= 5
    q, v = moreau_crank.bodies(CRANK, h, steps)
    np.testing.assert_allclose(found.q, q, atol=1e-9)
    np.testing.assert_allclose(found.v, v, atol=1e-9)
    # Joints hold, and stay so.
    off = [np.abs(moreau_crank._constraints(CRANK, x, 0 * x)[0][:8]).max() for x in found.q]
    assert max(off) < 1e-13


# Orders of convergence.


def slope_of(errors, steps):
    return np.polyfit(np.log(steps), np.log(errors), 1)[0]


@functools.cache
def smooth(name):
    problem = jfric.set_parameters(jfric.load(shipped(name)), {"time.end": 0.5})

    @jax.jit
    def run(h, theta):
        solver = jfric.MoreauJean(h, theta=theta)
        return jfric.simulate(problem, solver)

    return run


@pytest.mark.slow
@pytest.mark.parametrize(("theta", "order"), [(0.5, 2.0), (1.0, 1.0), (0.7, 1.0)])
def test_joints_converge_with_the_order_of_theta(theta, order):
    """A slider-crank of five coordinates and four joints."""
    run, errors = smooth("joint_slider_crank"), []
    expected = run(5e-5, 0.5).final.q
    for h in (2e-3, 1e-3, 5e-4):
        found = run(h, theta)
        assert found.status == jfric.Status.OK
        errors.append(float(jnp.abs(found.final.q - expected).max()))
    rates = np.log2(np.array(errors[:-1]) / errors[1:])
    np.testing.assert_allclose(rates, order, atol=0.15)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "at", "least"),
    [
        ("g3_bowl", ([-0.1516105401000122, -0.9884403088353806], 3.0), 0.8),
        ("g3_slot", ([-0.1516105401000122, -0.9884403088353806], 3.0), 0.8),
    ],
)
def test_a_bead_with_friction_converges_to_where_it_stops(name, at, least):
    """A contact, and a joint with friction on its reaction, along a circle."""
    expected, end = at
    problem = jfric.set_parameters(jfric.load(shipped(name)), {"time.end": end})
    run = jax.jit(lambda h: jfric.simulate(problem, jfric.MoreauJean(h)))
    steps, errors = 8e-3 / 1.4 ** np.arange(9), []
    for h in steps:
        found = run(h)
        assert found.status == jfric.Status.OK
        assert found.final.mode.max() == jfric.Mode.STICK
        errors.append(np.abs(np.asarray(found.final.q) - expected).max())
    assert slope_of(errors, steps) > least
    assert errors[-1] < 1e-6


@pytest.mark.slow
def test_rimless_wheels_converge_at_first_order_through_impacts():
    """Both contacts of the third step switch in one step of the scheme, at a known time."""
    problem = jfric.load(shipped("g1_rimless_wheel"))
    run = jax.jit(lambda h: jfric.simulate(problem, jfric.MoreauJean(h)))
    steps, errors = 4e-3 / 1.4 ** np.arange(9), []
    for h in steps:
        found = run(h)
        assert found.status == jfric.Status.OK
        assert found.events.count == 6
        times = np.asarray(found.events.time[:6:2])
        errors.append(np.abs(times - [1.034549811423, 2.069099622846, 3.103649434269]).max())
    errors = np.array(errors)
    assert (errors < 20 * steps).all()
    assert slope_of(errors, steps) > 0.7


@pytest.mark.slow
def test_reversals_of_a_slider_crank_converge_to_those_of_the_event_driven_solver():
    """Three reversals under friction on the guide's reaction, and a position after each."""
    reversals = [0.136546426782841, 0.548014037963237, 1.082087585648013]
    angles = [0.636756656802425, -0.975072197537717, -2.178102075177273]
    problem, ts = crank_by_bodies(1.5), jnp.asarray([0.3, 0.7, 1.1])
    run = jax.jit(lambda h: jfric.simulate(problem, jfric.MoreauJean(h), ts=ts))
    steps, errors = 4e-3 / 1.4 ** np.arange(9), []
    for h in steps:
        found = run(h)
        assert found.status == jfric.Status.OK
        turned = np.asarray(found.events.time)[: int(found.events.count), None]
        assert np.abs(turned - reversals).min(axis=0).max() < 3 * h
        errors.append(np.abs(np.asarray(found.q[:, 2]) - angles).max())
    assert (np.array(errors) < 5 * steps).all()
    assert slope_of(errors, steps) > 0.8


FALLING = """
[time]
end = 0.8
[gravity]
[body.rod]
m = 1.0
J = 0.1
at = [0.0, 0.45]
angle = 0.3
v = [0.5, 0.0]
[body.rod.points]
left = [-0.5, 0.0]
right = [0.5, 0.0]
[contact.left]
point = "rod.left"
line = "ground"
mu = 0.3
[contact.right]
point = "rod.right"
line = "ground"
mu = 0.3
"""


@pytest.mark.slow
def test_a_rod_that_falls_converges_to_the_event_driven_solver():
    """One end hits the ground and slides, the other hits, and the rod lies there."""
    problem, ts = loads(FALLING.lstrip()).problem, jnp.asarray([0.3, 0.8])
    exact = jfric.simulate(problem, jfric.EventDriven(rtol=1e-10), ts=ts)
    assert exact.status == jfric.Status.OK
    run = jax.jit(lambda h: jfric.simulate(problem, jfric.MoreauJean(h), ts=ts))
    steps, errors = 4e-3 / 1.4 ** np.arange(9), []
    for h in steps:
        found = run(h)
        assert found.status == jfric.Status.OK
        assert found.final.mode.tolist() == [jfric.Mode.STICK] * 2
        errors.append(np.abs(np.asarray(found.q - exact.q)).max())
    assert (np.array(errors) < 2 * steps).all()
    assert slope_of(errors, steps) > 0.8


@pytest.mark.slow
def test_a_slider_crank_by_bodies_runs_to_its_end():
    """Eight joints without friction; one of them, an angle that stays zero, demands nothing."""
    problem = jfric.set_parameters(jfric.load(shipped("slider_crank")), {"time.end": 0.5})
    found = jfric.simulate(problem, jfric.MoreauJean(1e-3))
    assert found.status == jfric.Status.OK
    assert abs(float(found.final.q[7])) < 1e-14


def contradicting(together):
    """A body on two rails, which drive apart unless they are the same."""
    mass = {"x": jfric.Mass("x", 1.0), "y": jfric.Mass("y", 1.0)}
    other = "x + y - 2*t^2" if together else "x + y - 2*t^2 - 3*t^3"
    rails = {"a": jfric.Joint("x + y - 2*t^2"), "b": jfric.Joint(other)}
    return jfric.Problem(["x", "y"], {"mass": mass, "joint": rails}, time=0.5)


@pytest.mark.parametrize("together", [True, False])
def test_joints_that_contradict_each_other_end_the_run(together):
    found = jfric.simulate(contradicting(together), jfric.MoreauJean(1e-2))
    assert jfric.Flag.REDUNDANT in jfric.Flag(int(found.flags))
    if together:
        assert found.status == jfric.Status.OK
        assert abs(float(jnp.sum(found.final.q)) - 0.5) < 1e-12
    else:
        assert found.status in (jfric.Status.INCONSISTENT, jfric.Status.STALLED)


# Derivatives and batches.


def pendulum(l, end=0.5):
    """A point on a rod, as a joint."""
    rod = jfric.Joint("x^2 + y^2 - l^2")
    mass = {"x": jfric.Mass("x", 1.0), "y": jfric.Mass("y", 1.0)}
    return jfric.Problem(
        ["x", "y"],
        {"mass": mass, "joint": {"rod": rod}, "load": jfric.Load("y", -9.81)},
        initial={"x": jfric.InitialState(l), "y": jfric.InitialState(0.0)},
        time=end,
        parameters={"l": l},
    )


@pytest.mark.slow
def test_joints_in_batches_and_under_derivatives():
    """The motion of the point is that of an angle: ``theta'' = -(g/l) cos(theta)``."""

    def end(l):
        return jfric.simulate(pendulum(l), jfric.MoreauJean(5e-3)).final.q

    l = jnp.asarray([0.8, 1.0, 1.3])
    found, rates = jax.jit(jax.vmap(lambda x: jax.jvp(end, (x,), (1.0,))))(l)
    np.testing.assert_allclose(jnp.sum(found**2, axis=1), l**2, atol=1e-14)
    np.testing.assert_allclose(2 * jnp.sum(found * rates, axis=1), 2 * l, atol=1e-12)
    step = 1e-5
    both = jax.jit(jax.vmap(end))(jnp.concatenate([l + step, l - step]))
    np.testing.assert_allclose(rates, (both[:3] - both[3:]) / (2 * step), atol=1e-7)
    np.testing.assert_allclose(jax.jit(jax.jacrev(end))(1.0), rates[1], atol=1e-12)


# What cannot be.


def driven(gap):
    """A body that a joint drives into a wall."""
    mass = {"x": jfric.Mass("x", 1.0), "y": jfric.Mass("y", 1.0)}
    return jfric.Problem(
        ["x", "y"],
        {
            "mass": mass,
            "joint": {"drive": jfric.Joint("x + 0.4*t")},
            "contact": jfric.Contact("x", gap=gap),
        },
        initial={"x": jfric.InitialState(0.0, -0.4)},
        time=0.5,
    )


def test_a_joint_that_drives_into_a_wall_ends_the_run_there():
    found = jfric.simulate(driven(0.1), jfric.MoreauJean(1e-2))
    assert found.status == jfric.Status.INCONSISTENT
    assert abs(float(found.final.q[0]) + 0.1) < 5e-3


def held_closed(**friction):
    """A body on a rail, which keeps the gap of a contact."""
    mass = {"x": jfric.Mass("x", 1.0), "y": jfric.Mass("y", 1.0)}
    return jfric.Problem(
        ["x", "y"],
        {
            "mass": mass,
            "joint": {"rail": jfric.Joint("y - 0.5*x")},
            "contact": jfric.Contact(gap="y - 0.5*x", **friction),
            "load": jfric.Load("y", -9.81),
        },
        time=0.2,
    )


def test_partners_of_opposed_contacts_stand_behind_those_without_normals():
    """Two frictions, then three contacts: the first and the last press on both sides of a part."""
    assert _partners(5, 2, np.array([[0, 2]])).tolist() == [0, 1, 4, 3, 2]
    assert _partners(4, 0, np.array([[3, 1], [0, 2]])).tolist() == [2, 3, 0, 1]


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_a_gap_that_joints_hold_is_known_in_any_unit(scale):
    rubs = {"sliding": "x", "law": jfric.Coulomb(0.3)}
    elements = dict(held_closed().elements) | {"joint": {"rail": jfric.Joint("0.7*y - 0.3*x")}}
    elements["contact"] = jfric.Contact(gap=f"{0.7 * scale}*y - {0.3 * scale}*x", **rubs)
    with pytest.raises(jfric.ProblemError, match="contact: the joints keep its gap at 0, so that"):
        require_free_gaps(jfric.Problem(["x", "y"], elements), "a solver")
    elements["contact"] = jfric.Contact(gap=f"{0.7 * scale}*y - {0.31 * scale}*x", **rubs)
    require_free_gaps(jfric.Problem(["x", "y"], elements), "a solver")


@pytest.mark.slow
def test_a_contact_that_joints_hold_closed_has_no_friction_to_tell():
    """Its normal force is not determined."""
    found = jfric.simulate(held_closed(), jfric.MoreauJean(1e-2))
    assert found.status == jfric.Status.OK
    # As without the contact: m = 1.25 along x.
    np.testing.assert_allclose(found.final.q[0], -0.5 * 9.81 * 0.5 / 1.25 * 0.04, rtol=1e-12)
    rubs = held_closed(sliding="x", law=jfric.Coulomb(0.3))
    found = jfric.simulate(rubs, jfric.MoreauJean(1e-2))
    assert found.status == jfric.Status.INCONSISTENT
    with pytest.raises(jfric.ProblemError, match="contact: the joints keep its gap at 0, so that"):
        jfric.simulate(rubs)


@pytest.mark.parametrize(
    "solver",
    [
        pytest.param(jfric.EventDriven(adjoint="none"), marks=pytest.mark.slow),
        jfric.MoreauJean(0.1),
    ],
)
def test_friction_where_a_joint_holds_carries_nothing(solver):
    elements = {
        "mass": {x: jfric.Mass(x, 1.0) for x in "xy"},
        "joint": jfric.Joint("y - 2*x"),
        "load": jfric.Load("x", 3.0),
        "friction": {
            "held": jfric.Friction({"y": 1.0, "x": -2.0}, 0.5, N=1.0),
            "free": jfric.Friction("x", 0.5, N=1.0),
        },
    }
    found = jfric.simulate(jfric.Problem(["x", "y"], elements, time=1.0), solver, ts=[0.5, 1.0])
    assert found.status == jfric.Status.OK
    np.testing.assert_allclose(found.lambda_t, [[0.0, -0.5]] * 2, atol=1e-12)
    np.testing.assert_array_equal(found.mode, [[jfric.Mode.STICK, jfric.Mode.SLIP_POS]] * 2)
    # 5 kg are moved by 2.5 N.
    np.testing.assert_allclose(found.v[:, 0], [0.25, 0.5], rtol=1e-12)


def test_positions_that_are_not_found_on_joints_end_the_run():
    """Steps of a third of a turn."""
    thrown = jfric.set_parameters(pendulum(1.0, end=4.0), {"initial.y.v": 20.0})
    found = jfric.simulate(thrown, jfric.MoreauJean(0.1))
    assert found.status == jfric.Status.STALLED


def test_events_of_the_users_own_are_refused():
    problem = jfric.load(shipped("disc_in_bowl"))
    with pytest.raises(jfric.ProblemError, match=r"an event of your own, which .* cannot"):
        jfric.simulate(problem, jfric.MoreauJean(1e-3))
