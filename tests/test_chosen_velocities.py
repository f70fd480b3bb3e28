"""Velocities of the user's choice: ``dq/dt = S(q) u``, and joints that hold velocities alone."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from differences import fourth_order
from scipy.integrate import solve_ivp

import jfric
from jfric.files.read_toml import loads
from jfric.results.columns import column_units, columns

START, V = jfric.InitialState, jfric.Velocity
M, J, A = 2.0, 0.5, 0.4
DOFS = {"x": "translation", "y": "translation", "theta": "rotation"}
#: Of a centre of mass that is ``a`` ahead of the point (x, y).
KINETIC = (
    "0.5*m*((v.x - a*sin(theta)*v.theta)^2 + (v.y + a*cos(theta)*v.theta)^2) + 0.5*J*v.theta^2"
)
BLADE = "cos(theta)*v.y - sin(theta)*v.x"
FORWARD = {"x": "cos(theta)", "y": "sin(theta)"}
SIDE = {"x": "-sin(theta)", "y": "cos(theta)"}


def sleigh(speed=1.0, turn=1.5, angle=0.3, end=4.0, kinetic=KINETIC, own=None, **parts):
    """Chaplygin's sleigh: a blade at (x, y)."""
    own = own or {
        "forward": V(FORWARD, v=speed),
        "turn": V({"theta": 1}, v=turn, kind="rotation"),
    }
    return jfric.Problem(
        DOFS,
        {"lagrangian": jfric.Lagrangian(kinetic=kinetic), "velocity": own, **parts},
        parameters={"m": M, "J": J, "a": A},
        initial={"theta": START(q=angle)},
        time=end,
    )


def by_hand(t, speed, turn, angle, friction=0.0):
    """Forward speed, turn, x, y and angle at the times ``t``; Newton's and Euler's law along the
    blade and about it."""
    inertia = J + M * A**2

    def rate(_, y):
        u, w, phi = y[0], y[1], y[4]
        return [
            A * w**2 - friction / M,
            -M * A * u * w / inertia,
            u * np.cos(phi),
            u * np.sin(phi),
            w,
        ]

    run = solve_ivp(
        rate, (0, t[-1]), [speed, turn, 0, 0, angle], "DOP853", t, rtol=1e-13, atol=1e-14
    )
    return run.y


@pytest.mark.slow
def test_a_sleigh_runs_as_its_closed_form_says():
    """``u = U tanh(k (t - s))``, ``w = W / cosh(k (t - s))`` with the energy ``m U^2 = I W^2`` and
    ``k = m a U / I`` (Neimark and Fufaev): it ends straight on, forwards, at the speed ``U``."""
    problem = sleigh(speed=-0.5)
    solution = jfric.simulate(problem, jfric.EventDriven(rtol=1e-12), ts=jnp.linspace(0, 4, 41))
    assert solution.status == jfric.Status.OK
    assert solution.flags == 0
    found, inertia = columns(problem, solution), J + M * A**2
    U = np.sqrt((-0.5) ** 2 + inertia / M * 1.5**2)
    k, W = M * A * U / inertia, U * np.sqrt(M / inertia)
    t = found["t"] - np.arctanh(0.5 / U) / k
    np.testing.assert_allclose(found["v.forward"], U * np.tanh(k * t), atol=1e-10)
    np.testing.assert_allclose(found["v.turn"], W / np.cosh(k * t), atol=1e-10)
    turned = 2 * W / k * (np.arctan(np.tanh(k * t / 2)) - np.arctan(np.tanh(k * t[0] / 2)))
    np.testing.assert_allclose(found["q.theta"], 0.3 + turned, atol=1e-10)
    np.testing.assert_allclose(found["a.forward"], A * found["v.turn"] ** 2, atol=1e-10)
    # The blade pushes across, as much as its acceleration there needs.
    phi, u, w = found["q.theta"], found["v.forward"], found["v.turn"]
    across = M * (u * w + A * found["a.turn"])
    np.testing.assert_allclose(found["reaction.velocity.x"], -np.sin(phi) * across, atol=1e-9)
    np.testing.assert_allclose(found["reaction.velocity.y"], np.cos(phi) * across, atol=1e-9)
    units = column_units(problem, solution)
    assert [units[f"{f}.{n}"] for f in "va" for n in ("forward", "turn")] == [
        *("m/s", "rad/s", "m/s^2", "rad/s^2")
    ]
    assert float(jnp.max(jfric.motion_residual(problem, solution))) < 1e-10
    # Off the blade nothing moves.
    off = np.cos(phi) * found["v.y"] - np.sin(phi) * found["v.x"]
    np.testing.assert_allclose(off, 0.0, atol=1e-12)


@pytest.mark.slow
def test_the_same_by_a_joint_on_velocities():
    """A blade as an equation, its reaction the force across."""
    blade = jfric.Problem(
        DOFS,
        {
            "lagrangian": jfric.Lagrangian(kinetic=KINETIC),
            "joint": {"blade": jfric.Joint(BLADE)},
        },
        parameters={"m": M, "J": J, "a": A},
        initial={
            "x": START(v=float(np.cos(0.3))),
            "y": START(v=float(np.sin(0.3))),
            "theta": START(q=0.3, v=1.5),
        },
        time=4.0,
    )
    solver, ts = jfric.EventDriven(rtol=1e-12), jnp.linspace(0, 4, 9)
    found = jfric.simulate(blade, solver, ts=ts)
    assert found.status == jfric.Status.OK
    u, w, x, y, phi = by_hand(np.asarray(ts), 1.0, 1.5, 0.3)
    np.testing.assert_allclose(found.q, np.stack([x, y, phi], axis=1), atol=1e-10)
    reaction = columns(blade, found)["reaction.joint.blade"]
    a = -M * A * u * w / (J + M * A**2)
    np.testing.assert_allclose(reaction, M * (u * w + A * a), atol=1e-9)


@pytest.mark.slow
def test_friction_along_the_blade_stops_it():
    """It stops forwards when friction outweighs what turning does, and turns on."""
    limit, ts = 6.0, jnp.linspace(0, 0.3, 7)
    friction = {"friction": {"skate": jfric.Friction(sliding="v.forward", limit=limit)}}
    problem = sleigh(end=1.0, **friction)
    run = jax.jit(lambda ts: jfric.simulate(problem, jfric.EventDriven(rtol=1e-12), ts=ts))
    found = run(ts)
    assert found.status == jfric.Status.OK
    u, _, x, y, phi = by_hand(np.asarray(ts), 1.0, 1.5, 0.3, limit)
    assert u[-1] > 0
    np.testing.assert_allclose(found.q, np.stack([x, y, phi], axis=1), atol=1e-10)
    stopped = run(ts + 0.7)
    (time,) = stopped.events.time[:1]
    reached = by_hand(np.array([0.0, float(time)]), 1.0, 1.5, 0.3, limit)
    np.testing.assert_allclose(reached[0][-1], 0.0, atol=1e-9)
    assert stopped.mode[-1, 0] == jfric.Mode.STICK
    np.testing.assert_allclose(stopped.v[-1], [0.0, 0.0, reached[1][-1]], atol=1e-9)


def body(own: bool):
    """A block on the floor with friction of a runner: along it less than across; by velocities in
    its own frame, or by rates of its coordinates."""
    kinetic = "0.5*m*(v.forward^2 + v.side^2) + 0.5*J*v.turn^2"
    drag = "0.5*c*(v.forward^2 + 9*v.side^2)"
    along, across = "v.forward", "v.side"
    start = {"forward": 1.0, "side": 0.4, "turn": 2.0}
    velocity = {
        "forward": V(FORWARD, v=start["forward"]),
        "side": V(SIDE, v=start["side"]),
        "turn": V({"theta": 1}, v=start["turn"], kind="rotation"),
    }
    initial = {"theta": START(q=0.3)}
    if not own:
        along, across = "cos(theta)*v.x + sin(theta)*v.y", BLADE
        kinetic = "0.5*m*(v.x^2 + v.y^2) + 0.5*J*v.theta^2"
        drag = f"0.5*c*(({along})^2 + 9*({across})^2)"
        velocity, (s, c) = {}, (np.sin(0.3), np.cos(0.3))
        initial = {
            "x": START(v=c - 0.4 * s),
            "y": START(v=s + 0.4 * c),
            "theta": START(q=0.3, v=2.0),
        }
    return jfric.Problem(
        DOFS,
        {
            "lagrangian": jfric.Lagrangian(kinetic=kinetic, dissipation=drag),
            "velocity": velocity,
            "friction": {
                "along": jfric.Friction(sliding=along, limit=0.2),
                "across": jfric.Friction(sliding=across, limit=0.7),
            },
        },
        parameters={"m": M, "J": J, "c": 0.1},
        initial=initial,
        time=2.0,
    )


@pytest.mark.slow
def test_a_body_in_its_own_frame_moves_as_it_does_in_any():
    """As many velocities as coordinates describe the same motion, events included."""
    ts = jnp.linspace(0, 2, 11)
    one, other = (jfric.simulate(body(own), ts=ts) for own in (True, False))
    assert one.status == other.status == jfric.Status.OK
    count = int(one.events.count)
    assert count == other.events.count
    assert count >= 2
    np.testing.assert_allclose(one.q, other.q, atol=1e-10)
    np.testing.assert_allclose(one.v, other.v, atol=1e-10)
    np.testing.assert_allclose(one.events.time[:count], other.events.time[:count], atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("adjoint", ["forward", "reverse"])
def test_derivatives_by_start_and_length(adjoint):
    """Through the start that a chosen velocity gives, and where the blade's mass is."""
    problem = sleigh(end=1.0)
    solver = jfric.EventDriven(adjoint=adjoint)

    @jax.jit
    def end(x):
        given = {"velocity.forward.v": x[0], "parameters.a": x[1]}
        solution = jfric.simulate(jfric.set_parameters(problem, given), solver)
        final = solution.final
        return final.q[0] + final.v[2]

    x = jnp.array([1.0, A])
    found = (jax.jacfwd if adjoint == "forward" else jax.grad)(end)(x)
    for i, e in enumerate(jnp.eye(2)):
        expected = fourth_order(lambda d, e=e: end(x + d * e), 1e-3)
        np.testing.assert_allclose(found[i], expected, rtol=1e-7)


@pytest.mark.slow
def test_time_stepping_comes_to_the_same_with_its_order():
    """Moreau-Jean by halves of a step, with friction along the blade."""
    problem = sleigh(end=0.5, friction=jfric.Friction(sliding="v.forward", limit=1.0))
    exact = jfric.simulate(problem).final.q
    run = jax.jit(lambda h: jfric.simulate(problem, jfric.MoreauJean(h)).final.q)
    errors = [float(jnp.max(jnp.abs(run(h) - exact))) for h in (1e-2, 5e-3, 2.5e-3)]
    assert errors[-1] < 2e-5
    assert all(1.8 < a / b < 4.5 for a, b in itertools.pairwise(errors))


@pytest.mark.slow
def test_a_wheel_that_rolls_by_construction():
    """A wheel upright on the floor, its column two rates in one velocity: it runs in a circle."""
    wheel = jfric.Problem(
        {"x": "translation", "y": "translation", "psi": "rotation", "phi": "rotation"},
        {
            "mass": {
                "x": jfric.Mass("x", 3.0),
                "y": jfric.Mass("y", 3.0),
                "psi": jfric.Mass("psi", 0.01),
                "phi": jfric.Mass("phi", 0.02),
            },
            "load": jfric.Load("phi", 0.05),
            "velocity": {
                "roll": V({"x": "r*cos(psi)", "y": "r*sin(psi)", "phi": 1}, 5.0, "rotation"),
                "steer": V({"psi": 1}, 0.5, "rotation"),
            },
        },
        parameters={"r": 0.1},
        time=2.0,
    )
    found = jfric.observe(wheel, "final.v.roll, final.v.steer, final.phi, final.psi").values
    spin = 0.05 / (0.02 + 3.0 * 0.1**2)
    values = {
        "final.v.roll": 5.0 + 2 * spin,
        "final.v.steer": 0.5,
        "final.phi": 10.0 + 2 * spin,
        "final.psi": 1.0,
    }
    for name, value in values.items():
        np.testing.assert_allclose(float(found[name]), value, rtol=1e-10)


def test_chosen_velocities_are_observed_by_their_names():
    """A carriage whose velocity is counted in half metres a second, under a constant force."""
    elements = {
        "mass": jfric.Mass("x", 2.0),
        "load": jfric.Load("x", 3.0),
        "velocity": {"pace": V({"x": 0.5}, v=4.0)},
    }
    problem = jfric.Problem(["x"], elements, time=1.0)
    expected = {"final.v.pace": 7.0, "final.a.pace": 3.0, "final.v.x": 3.5}
    found = jfric.observe(problem, list(expected)).values
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-12, err_msg=name)


def test_a_blade_at_rest_holds_across_alone():
    """Friction along it carries what the blade does not."""
    loads = {"load": {"x": jfric.Load("x", 3.0), "y": jfric.Load("y", -1.0)}}

    def rest(limit):
        friction = jfric.Friction(sliding="v.forward", limit=limit)
        return jfric.equilibria(sleigh(0, 0, friction=friction, **loads), meaning="rest")

    along = 3.0 * np.cos(0.3) - np.sin(0.3)
    assert int(rest(0.99 * along).count) == 0
    (state,) = rest(1.01 * along).table()
    np.testing.assert_allclose(state["lambda_t"]["friction"], -along, rtol=1e-12)
    across = np.array([-3.0, 1.0]) + along * np.array([np.cos(0.3), np.sin(0.3)])
    for name, force in zip("xy", across, strict=True):
        np.testing.assert_allclose(state["reaction"][f"velocity.{name}"], force, rtol=1e-12)


def test_files_hold_them():
    """Written and read: the start has its home with the velocities."""
    problem = jfric.build(sleigh())
    text = jfric.to_toml(problem)
    assert "[velocity.forward]" in text
    again = loads(text).problem
    assert jfric.to_toml(again) == text
    assert again.elements["velocity"]["turn"].kind == "rotation"
    start = {"x": np.cos(0.3), "y": np.sin(0.3), "theta": 1.5}
    for dof, v in start.items():
        assert float(problem.initial[dof].v) == pytest.approx(v, rel=1e-15)
        assert float(again.initial[dof].v) == float(problem.initial[dof].v)
    with_units = text.replace("v = 1.0 # m/s", 'v = "3.6 km/h"')
    assert with_units != text
    assert float(loads(with_units).problem.elements["velocity"]["forward"].v) == 1.0


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"own": {"x": V(FORWARD)}}, r"velocity\.x: 'x' is a degree of freedom as well"),
        ({"own": {"u": V({})}}, r"velocity\.u\.moves: found \(\), expected rates"),
        ({"own": {"u": V({"thet": 1})}}, r"velocity\.u\.moves\.thet: .*did you mean 'theta'"),
        ({"own": {"u": V({"x": "cos(v.theta)"})}}, r"velocity\.u\.moves\.x: .*'v\.theta'"),
        ({"own": {"u": V({"x": "0*theta"})}}, r"velocity\.u\.moves: moves nothing at the start"),
        ({"own": {"u": V({"x": "1/(theta - 0.3)"})}}, r"moves: is not finite at the start"),
        ({"own": {"u": V(FORWARD), "w": V(FORWARD)}}, r"velocity: u, w are not independent"),
        (
            {"own": {"u": V({"x": 1}), "w": V({"x": 2})}},
            r"velocity: found u, w, 2 velocities that move x; there cannot be more",
        ),
        (
            {"kinetic": "0.5*m*v.forward^2 + 0.5*J*v.turn^2"},
            r"lagrangian\.kinetic: found 'v\.forward', which with 1 of 2 velocities .*v\.x, v\.y",
        ),
        (
            {"joint": {"k": jfric.Joint(BLADE, jfric.Coulomb(0.1), "v.x")}},
            r"joint\.k\.mu: found friction on a joint that holds no position",
        ),
        ({"joint": {"k": jfric.Joint("v.x^2")}}, r"joint\.k\.constraint: .*linear in velocities"),
        ({"joint": {"k": jfric.Joint("v.x - v.y")}}, r"initial: joint\.k starts with the rate"),
    ],
)
def test_what_cannot_be_is_one_sentence(change, sentence):
    with pytest.raises(jfric.ProblemError, match=sentence):
        jfric.build(sleigh(**change))


def test_a_start_has_one_home():
    with pytest.raises(jfric.ProblemError, match=r"initial\.x\.v: the velocity 'u' gives"):
        jfric.Problem(
            ["x"],
            {"mass": jfric.Mass("x", 1.0), "velocity": {"u": V({"x": 1}, v=1.0)}},
            initial={"x": START(v=2.0)},
        )


@pytest.mark.parametrize("solver", [jfric.Smoothed(), jfric.QuasiStatic()])
def test_others_refuse_them_by_name(solver):
    with pytest.raises(jfric.ProblemError, match=r"velocity\.forward: found velocities"):
        jfric.simulate(sleigh(), solver)
