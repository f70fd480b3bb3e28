"""Friction in a plane: two directions of sliding with one limit."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from references.plane import Belts
from scipy.optimize import minimize

import jfric
from jfric.contact import rules
from jfric.contact.rules.planes import holding_friction
from jfric.files.read_toml import json_schema, load_config, loads
from jfric.files.write_toml import dump
from jfric.numerics.collocation import collocation
from jfric.verification.configs import shipped

START = jfric.InitialState
MASSES = {d: jfric.Mass(d, 1.0) for d in "xy"}
SOLVER = jfric.EventDriven(rtol=1e-12)
WITHOUT_DERIVATIVES = jfric.EventDriven(rtol=1e-12, adjoint="none")


def block(law=None, time=4.0, start=None, **elements) -> jfric.Problem:
    """A block of 1 kg on a plane with a normal force of 1 N."""
    pad = jfric.Friction(plane=["x", "y"], law=law or jfric.Coulomb(0.4), N=1.0)
    elements = {"mass": MASSES, "friction": pad} | elements
    return jfric.Problem(["x", "y"], elements, initial=start or {"y": START(v=1.0)}, time=time)


def stop_of(x):
    """Time and place of the stop in a constant load, thrown across it with unit mass."""
    limit, f, v = x
    ratio = limit / f
    return jnp.stack(
        [
            v * limit / (limit**2 - f**2),
            v**2 / (4.0 * f * (ratio**2 - 1.0)),
            2.0 * ratio * v**2 / (f * (4.0 * ratio**2 - 1.0)),
        ]
    )


def simulated_stop(x):
    problem = block(load=jfric.Load("x", 0.2))
    limit, f, v = x
    end = 1.1 * jax.lax.stop_gradient(stop_of(x)[0])
    values = {"friction.mu": limit, "load.F": f, "initial.y.v": v, "time.end": end}
    solution = jfric.simulate(jfric.set_parameters(problem, values), SOLVER, ts=end[None])
    return jnp.concatenate([solution.events.time[:1], solution.q[0]])


def test_stop_under_a_load_below_the_limit():
    f, limit, v = 0.2, 0.4, 1.0
    problem = block(load=jfric.Load("x", f))
    ts = jnp.linspace(0.0, 4.0, 41)
    solution = jfric.simulate(problem, SOLVER, ts=ts)
    solution.check()
    assert int(solution.events.count) == 1
    expected = np.asarray(stop_of((limit, f, v)))
    found = np.array([solution.events.time[0], *solution.q[-1]])
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    # The law at all outputs: within the cone, against sliding, without gain.
    force, gamma = np.asarray(solution.lambda_t), np.asarray(solution.v)
    size = np.hypot(*force.T)
    slides = np.asarray(solution.mode)[:, 0] == jfric.Mode.SLIP
    assert slides[:34].all()
    assert not slides[34:].any()
    np.testing.assert_allclose(size[slides], limit, rtol=1e-11)
    np.testing.assert_allclose(force[~slides], [[-f, 0.0]] * 7, atol=1e-13)
    np.testing.assert_allclose(
        force[slides], -limit * gamma[slides] / np.hypot(*gamma[slides].T)[:, None], atol=1e-11
    )
    assert np.all(np.sum(force * gamma, axis=1) <= 0)
    assert np.all(gamma[~slides] == 0)
    assert float(jfric.contact_residual(problem, solution).max()) < 1e-12
    assert float(jfric.motion_residual(problem, solution).max()) < 1e-12
    # The energy: work of the load and of friction.
    power = f * gamma[:, 0] - limit * np.hypot(*gamma.T)
    assert 0.5 * v**2 + np.trapezoid(power, ts) == pytest.approx(0.0, abs=2e-3)
    # A judge that knows the cone: any other friction of the same size is no solution.
    turned = dataclasses.replace(solution, lambda_t=solution.lambda_t[:, ::-1])
    assert float(jfric.contact_residual(problem, turned).max()) > 0.1


@pytest.mark.slow  # its sibling: the same at one load
@pytest.mark.parametrize("part", [0.1, 0.5, 0.9, 0.99])
def test_stop_and_its_derivatives(part):
    x = jnp.array([0.4, 0.4 * part, 1.0])
    np.testing.assert_allclose(jax.jit(simulated_stop)(x), stop_of(x), rtol=1e-11)
    forward = jax.jit(jax.jacfwd(simulated_stop))(x)
    np.testing.assert_allclose(forward, jax.jacfwd(stop_of)(x), rtol=1e-8, atol=1e-9)


@pytest.mark.slow  # its sibling: forward mode
def test_derivatives_of_a_stop_in_reverse():
    x = jnp.array([0.4, 0.2, 1.0])
    np.testing.assert_allclose(
        jax.jacrev(simulated_stop)(x), jax.jacfwd(stop_of)(x), rtol=1e-9, atol=1e-10
    )


def belts(limits, velocities) -> jfric.Problem:
    """A mass on springs under a load that turns, on belts."""
    directions = {"x": (0.7, 0.3), "y": (0.77, 1.0)}
    return jfric.Problem(
        ["x", "y"],
        {
            "mass": MASSES,
            "spring": {d: jfric.Spring(d, 1.0) for d in "xy"},
            "damper": {d: jfric.Damper(d, 0.05) for d in "xy"},
            "load": {
                d: jfric.Load(d, jfric.Harmonic(0.5, omega=w, phase=p))
                for d, (w, p) in directions.items()
            },
            "friction": {
                f"belt{i}": jfric.Friction(plane=["x", "y"], limit=limit, belt=list(b))
                for i, (limit, b) in enumerate(zip(limits, velocities, strict=True))
            },
        },
        initial={"x": START(v=0.35)},
        time=20.0,
    )


@pytest.mark.slow  # its siblings: stops, and starts on an ellipse
@pytest.mark.parametrize(
    ("limits", "velocities", "count"),
    [((0.8,), [(0.5, 0.3)], 6), ((0.6, 0.3), [(0.2, 0.0), (0.0, 0.2)], 9)],
    ids=["one belt", "two belts at right angles"],
)
def test_belts_as_by_another_method(limits, velocities, count):
    omega, phase = np.array([0.7, 0.77]), np.array([0.3, 1.0])
    reference = Belts(
        lambda t: 0.5 * np.sin(omega * t + phase),
        lambda t: 0.5 * omega * np.cos(omega * t + phase),
        limits,
        np.array(velocities),
        c=0.05,
    )
    ts = np.linspace(0.0, 20.0, 41)[1:]
    states = reference.run([0.0, 0.0], [0.35, 0.0], ts)
    problem = belts(limits, velocities)
    solution = jfric.simulate(problem, SOLVER, ts=jnp.asarray(ts))
    solution.check()
    assert int(solution.events.count) == len(reference.events) >= count
    events = solution.events
    n = len(reference.events)
    np.testing.assert_allclose(events.time[:n], [e[0] for e in reference.events], atol=1e-10)
    assert [int(c) for c in events.contact[:n]] == [2 * e[1] for e in reference.events]
    labels = [jfric.Mode(int(m)).label for m in events.to_mode[:n]]
    assert labels == [e[2] for e in reference.events]
    np.testing.assert_allclose(jnp.concatenate([solution.q, solution.v], 1), states, atol=1e-10)
    assert float(jfric.contact_residual(problem, solution).max()) < 1e-10
    assert float(jfric.motion_residual(problem, solution).max()) < 1e-9


@pytest.mark.slow  # its sibling: the case f5_ellipse of the verification list
@pytest.mark.parametrize("jump", [False, True])
def test_sliding_starts_along_the_normal_of_the_ellipse(jump):
    angle, mu = 0.6, np.array([0.5, 0.2])
    edge = mu * np.array([np.cos(angle), np.sin(angle)])
    normal = np.array([np.cos(angle), np.sin(angle)]) / mu
    if jump:
        rows = [
            jfric.Steps([1.0], [0.5 * e, e + 0.3 * n]) for e, n in zip(edge, normal, strict=True)
        ]
        far = 0.5 * 0.3 * normal * 2.0**2
    else:
        # A load that grows in one direction: only the start is along the normal.
        rows = [jfric.PiecewiseLinear([0.0, 2.0], [0.0, 2.0 * e]) for e in edge]
        far = None
    load = {d: jfric.Load(d, row) for d, row in zip("xy", rows, strict=True)}
    problem = block(jfric.Coulomb(list(mu)), 3.0 if jump else 1.02, {"x": START()}, load=load)
    solution = jfric.simulate(
        problem, SOLVER, ts=jnp.array([0.9, 1.001, 1.02 if far is None else 3.0])
    )
    solution.check()
    assert float(solution.events.time[0]) == pytest.approx(1.0, abs=1e-12)
    v = np.asarray(solution.v[1])
    limit = 1e-12 if jump else 3e-3
    assert v[0] * normal[1] - v[1] * normal[0] == pytest.approx(0.0, abs=limit * np.hypot(*v))
    if far is not None:
        np.testing.assert_allclose(solution.q[-1], far, rtol=1e-12)
    assert float(jfric.contact_residual(problem, solution).max()) < 1e-9


@pytest.mark.slow  # its siblings: Coulomb's law
@pytest.mark.parametrize(
    "law",
    [jfric.StaticDynamic([0.5, 0.4], [0.3, 0.2]), jfric.Stribeck(0.4, 0.2, 0.1)],
    ids=["static, dynamic", "Stribeck"],
)
def test_other_laws(law):
    belt = [0.2, jfric.Harmonic(0.1, omega=0.5)]
    problem = jfric.Problem(
        ["x", "y"],
        {
            "mass": MASSES,
            "spring": {d: jfric.Spring(d, 1.0) for d in "xy"},
            "friction": jfric.Friction(plane=["x", "y"], law=law, N=1.0, belt=belt),
        },
        initial={"x": START(v=0.3)},
        time=8.0,
    )
    solution = jfric.simulate(problem, SOLVER, ts=jnp.linspace(0.0, 8.0, 33))
    solution.check()
    assert [int(m) for m in solution.events.to_mode[:2]] == [jfric.Mode.STICK, jfric.Mode.SLIP]
    assert float(jfric.contact_residual(problem, solution).max()) < 1e-10


def plate(load, v) -> jfric.Problem:
    """A plate on three feet."""
    feet = [(1.0, 0.0), (-0.5, 0.8), (-0.5, -0.8)]
    friction = {
        f"foot{i}": jfric.Friction(
            plane=[{"x": 1.0, "phi": -b}, {"y": 1.0, "phi": a}], law=jfric.Coulomb(0.3), N=1.0
        )
        for i, (a, b) in enumerate(feet)
    }
    return jfric.Problem(
        {"x": "translation", "y": "translation", "phi": "rotation"},
        {
            "mass": MASSES | {"phi": jfric.Mass("phi", 0.5)},
            "friction": friction,
            "load": {d: jfric.Load(d, load.get(d, 0.0)) for d in ("x", "phi")},
        },
        initial={d: START(v=w) for d, w in v.items()},
        time=3.0,
    )


@pytest.mark.slow  # compiles for half a minute
def test_plate_on_three_feet():
    ts = jnp.linspace(0.0, 3.0, 13)
    cases = [({}, {"x": 1.0, "y": 0.2, "phi": 0.5}), ({"x": 0.3}, {}), ({"x": 1.3, "phi": 0.4}, {})]
    for load, v in cases:
        problem = plate(load, {"x": 0.0, "y": 0.0, "phi": 0.0} | v)
        solution = jfric.simulate(problem, SOLVER, ts=ts)
        solution.check()
        assert float(jfric.contact_residual(problem, solution).max()) < 1e-10
        rests = np.abs(np.asarray(solution.v[-1])).max() < 1e-14
        assert rests == (load != cases[2][0])
        at_rest = jfric.Flag.REDUNDANT in jfric.Flag(int(solution.flags))
        assert at_rest == rests


@pytest.mark.slow  # compiles for a quarter of a minute
def test_pressed_against_a_wall():
    """The wall carries all of the load across it, or none where pulled away; friction the rest."""
    ts = jnp.array([0.0, 1.0, 4.0])
    for mu, across, along, a in (
        (0.4, 1.0, 0.0, (0.0, 0.0)),
        (0.4, 1.0, 0.35, (0.0, 0.0)),
        (0.4, 0.3, 0.3, (0.0, 0.0)),
        (0.4, -0.35, 0.1, (0.0, 0.0)),
        (0.4, 1.0, -0.5, (0.0, -0.1)),
        (0.4, -0.6, 0.8, (-0.36, 0.48)),
        (0.0, -0.6, 0.8, (-0.6, 0.8)),
    ):
        loads = {"x": jfric.Load("x", across), "y": jfric.Load("y", along)}
        wall = jfric.Contact({"x": -1.0})
        elements = {"load": loads, "contact": {"wall": wall}}
        problem = block(jfric.Coulomb(mu), start={"y": START(v=0.0)}, **elements)
        solution = jfric.simulate(problem, WITHOUT_DERIVATIVES, ts=ts)
        solution.check()
        np.testing.assert_allclose(solution.a[1], a, atol=1e-9)
        np.testing.assert_allclose(solution.q[-1], 8.0 * np.array(a), atol=1e-8)


@pytest.mark.slow  # its sibling: the same system with constant masses
def test_beside_a_mass_that_depends_on_position():
    pendulum = jfric.Lagrangian(kinetic="0.5*(1 + 0.5*cos(phi)^2)*v.phi^2", potential="-cos(phi)")
    problem = jfric.Problem(
        {"x": "translation", "y": "translation", "phi": "rotation"},
        {
            "mass": MASSES,
            "lagrangian": pendulum,
            "friction": jfric.Friction(plane=["x", "y"], law=jfric.Coulomb(0.4), N=1.0),
            "load": jfric.Load("x", 0.2),
        },
        initial={"y": START(v=1.0), "phi": START(q=1.0)},
        time=4.0,
    )
    solution = jfric.simulate(problem, SOLVER, ts=jnp.array([4.0]))
    found = np.array([solution.events.time[0], *solution.q[0, :2]])
    np.testing.assert_allclose(found, stop_of((0.4, 0.2, 1.0)), rtol=1e-11)


@pytest.mark.slow  # compiles for half a minute
def test_sweep_of_stops():
    loads = 0.4 * np.array([0.1, 0.5, 0.9, 0.99])
    problem = dataclasses.replace(block(load=jfric.Load("x", 0.2)), time=jfric.TimeSpan(150.0))
    table = jfric.sweep(problem, {"load.F": loads}, observe=["event_time(1)", "final.x"])
    for f, time, x in zip(loads, table["event_time(1)"], table["final.x"], strict=True):
        expected = stop_of((0.4, f, 1.0))
        np.testing.assert_allclose([time, x], expected[:2], rtol=1e-8)


def test_friction_that_holds_best():
    rng = np.random.default_rng(3)
    for mu in ([0.3, 0.3], [0.5, 0.1], [0.2, 0.7]):
        A = rng.normal(size=(2, 2))
        D, free = A @ A.T + 0.1 * np.eye(2), rng.normal(size=2)
        for normal in (0.5, 50.0):
            found = jax.jit(rules.holding_friction)(*map(jnp.asarray, (D, free, mu)), normal)

            def energy(p, D=D, free=free, mu=mu, normal=normal):
                x = normal * np.array(mu) * p[0] * np.array([np.cos(p[1]), np.sin(p[1])])
                return 0.5 * x @ D @ x + free @ x

            best = min(
                minimize(energy, [0.5, a], bounds=[(0, 1), (None, None)], tol=1e-14).fun
                for a in np.linspace(0.0, 6.0, 7)
            )
            polar = np.asarray(found) / (normal * np.array(mu))
            p = np.hypot(*polar), np.arctan2(polar[1], polar[0])
            assert p[0] <= 1 + 1e-12
            assert energy(p) == pytest.approx(best, rel=1e-7)
            holds = jax.jit(rules.onset)(*map(jnp.asarray, (D, free, mu)), normal).holds
            assert bool(holds) == (p[0] < 1 - 1e-8)


def test_collocation_has_the_order_of_radau():
    def acceleration(s, q, v):
        return jnp.cos(s) - q - 0.1 * v * v

    q, v = jnp.array([1.0]), jnp.array([0.5])

    def end(count, length=2.0):
        at, rate, h = q, v, length / count
        for i in range(count):

            def field(s, q, v, i=i):
                return acceleration(i * h + s, q, v)

            step = collocation(field, at, rate, jnp.asarray(h), lambda s: jnp.zeros_like(q) * s)
            at, rate = step.end[:1], step.end[1:]
        return float(at[0])

    exact = end(8)
    errors = [abs(end(n) - exact) for n in (1, 2)]
    assert np.log2(errors[0] / errors[1]) > 11.5


@pytest.mark.slow
def test_a_step_that_is_not_taken_leaves_no_trace_in_reverse():
    """Newton's method overflows in a step that is far too long; its shorter half counts."""

    def end(rate):
        def field(s, q, v):
            return rate * jnp.sinh(v) - q

        q, v = jnp.array([1.0]), jnp.array([0.5])

        def guess(s):
            return jnp.ones_like(q) * jnp.exp(60.0 * s)

        far, near = (collocation(field, q, v, jnp.asarray(h), guess) for h in (8.0, 0.05))
        taken = jnp.all(jnp.isfinite(far.error))
        return jnp.where(taken, far.end, near.end)[1], (far, near)

    _, (far, near) = end(1.0)
    assert not np.isfinite(far.error).any()
    assert np.isfinite(near.error).all()
    forward, reverse = (d(lambda r: end(r)[0])(1.0) for d in (jax.jacfwd, jax.jacrev))
    assert float(forward) == pytest.approx(0.05 * np.sinh(0.5), rel=0.1)
    assert float(reverse) == pytest.approx(float(forward), rel=1e-12)


def test_files_hold_planes():
    for name in ("f2_stop", "f4_billiard_ball", "f5_ellipse"):
        config = load_config(shipped(name))
        assert jax.tree.all(
            jax.tree.map(lambda a, b: np.all(a == b), loads(dump(config)).problem, config.problem)
        )
    assert "plane" in json_schema()["$defs"]["Friction"]["properties"]
    pad = jfric.Friction(
        plane=["x", "y"],
        law=jfric.Coulomb([0.4, 0.2]),
        N=2.0,
        belt=[0.5, jfric.Steps([1.0], [0.0, 1.0])],
    )
    problem = dataclasses.replace(block(), elements={"mass": MASSES, "friction": {"pad": pad}})
    again = loads(dump(problem)).problem
    assert list(jfric.parameters(again)) == list(jfric.parameters(problem))
    paths = jfric.parameters(again)
    assert {"friction.pad.mu.first", "friction.pad.mu.second", "friction.pad.belt.0"} <= {*paths}
    assert float(paths["friction.pad.mu.second"]) == 0.2


@pytest.mark.parametrize(
    ("field", "sentence"),
    [
        ({"plane": ["x"]}, "friction.plane: found 1 directions, two are needed"),
        ({"plane": ["x", "z"]}, "friction.plane[2]: no degree of freedom 'z'"),
        ({"plane": ["x", {"x": 2.0}]}, "friction.plane: found two directions that are the same"),
        ({"direction": "x"}, "friction: found direction and plane of direction, sliding and plane"),
        ({"belt": 0.5}, "friction.belt: found one velocity, friction in a plane needs two"),
        ({"reaction": "x"}, "friction.reaction: cannot be combined with plane"),
        (
            {"law": jfric.Coulomb([0.4, 0.0])},
            "friction.mu.second: found 0, must be positive",
        ),
        (
            {"law": jfric.Coulomb(jfric.laws.Directional(0.1, 0.2))},
            "friction.mu: found a coefficient for each sign of sliding",
        ),
        (
            {"plane": None, "direction": "x", "law": jfric.Coulomb([0.1, 0.2])},
            "friction.mu: found two",
        ),
        (
            {"plane": None, "direction": "x", "belt": [0.1, 0.2]},
            "friction.belt: found 2 velocities",
        ),
    ],
)
def test_bad_planes(field, sentence):
    given = {"plane": ["x", "y"], "law": jfric.Coulomb(0.4), "N": 1.0} | field
    with pytest.raises(jfric.ProblemError) as caught:
        block(friction=jfric.Friction(**given))
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def refused(problem):
    """Calls that cannot take friction in a plane, and who says so."""
    ts = jnp.array([1.0])
    return {
        "the solver quasi-static": lambda: jfric.simulate(problem, jfric.QuasiStatic(), ts=ts),
        "the solver smoothed": lambda: jfric.simulate(problem, jfric.Smoothed(), ts=ts),
        "linear in every mode, but friction in a plane": lambda: jfric.simulate(
            problem, jfric.EventDriven(flow="exact"), ts=ts
        ),
        "kernel: 'lowered' has no friction in a plane": lambda: jfric.simulate(
            problem, jfric.EventDriven(kernel="lowered"), ts=ts
        ),
        "kernel: 'one-dof' is for": lambda: jfric.simulate(
            problem, jfric.EventDriven(kernel="one-dof"), ts=ts
        ),
        "found friction in a plane": lambda: jfric.equilibria(problem),
    }


@pytest.mark.parametrize("who", refused(None))
def test_who_refuses_planes(who):
    with pytest.raises(jfric.ProblemError) as caught:
        refused(block(spring={d: jfric.Spring(d, 1.0) for d in "xy"}))[who]()
    assert who in str(caught.value)


@pytest.mark.slow
def test_sliding_begins_where_a_load_has_a_kink():
    """On the edge of the ellipse at 2 s, to rounding: whether before or after must not matter."""
    problem = load_config(shipped("f5_ellipse")).problem
    angles = np.random.default_rng(1).uniform(0.0, 2 * np.pi, 24)

    def run(angle):
        edge = jnp.stack([jnp.cos(angle), 0.4 * jnp.sin(angle)])
        beyond = edge + 2.0 * jnp.stack([0.4 * jnp.cos(angle), jnp.sin(angle)])
        values = {
            f"load.{d}.F.values": jnp.stack([jnp.zeros(()), edge[i], beyond[i]])
            for i, d in enumerate("xy")
        }
        changed = jfric.set_parameters(problem, values)
        return jfric.simulate(changed, SOLVER, ts=jnp.array([0.0, 4.0]))

    found = jax.jit(jax.vmap(run))(jnp.asarray(angles))
    assert np.all(found.status == 0)
    assert int(found.steps.max()) < 50
    np.testing.assert_allclose(found.events.time[:, 0], 2.0, rtol=1e-15)
    # It moves along the normal of the ellipse there.
    away = found.q[:, 1] / jnp.linalg.norm(found.q[:, 1], axis=1, keepdims=True)
    normal = np.stack([0.4 * np.cos(angles), np.sin(angles)], axis=1)
    normal /= np.linalg.norm(normal, axis=1, keepdims=True)
    np.testing.assert_allclose(away, normal, atol=1e-9)


@pytest.mark.slow
def test_a_stop_beside_a_moving_belt_takes_few_steps():
    """Seen from the belt, a block that comes to rest on it moves as on a plane at rest (Galilei).
    Its direction is the difference of velocities that do not vanish."""
    f, v, belt = 0.2, 1.0, np.array([0.39, 0.15])
    pad = jfric.Friction(plane=["x", "y"], law=jfric.Coulomb(0.4), N=1.0, belt=list(belt))
    elements = {"mass": MASSES, "load": jfric.Load("x", f), "friction": pad}
    start = {"x": START(v=belt[0]), "y": START(v=v + belt[1])}
    problem = jfric.Problem(["x", "y"], elements, initial=start, time=4.0)
    solution = jfric.simulate(problem, WITHOUT_DERIVATIVES, ts=jnp.array([4.0])).check()
    time, *place = stop_of((0.4, f, v))
    np.testing.assert_allclose(solution.events.time[0], time, rtol=1e-12)
    np.testing.assert_allclose(solution.q[0], place + 4.0 * belt, rtol=1e-9)
    assert int(solution.final.steps) < 100


@pytest.mark.slow
def test_an_impact_that_stops_friction_in_a_plane_beside_it():
    """What slid in another plane rests after it, and goes on from rest."""
    masses = {x: jfric.Mass(x, 1.0) for x in "xyz"}
    elements = {
        "mass": masses,
        "friction": jfric.Friction(plane=["x", "y"], law=0.1, N=1.0),
        "contact": jfric.Contact("z", plane=["x", "y"], law=0.7, e=0.5),
        "load": {"weight": jfric.Load("z", -10.0), "push": jfric.Load("y", 0.05)},
    }
    initial = {"y": jfric.InitialState(v=0.3), "z": jfric.InitialState(q=0.05, v=-1.0)}
    problem = jfric.Problem(["x", "y", "z"], elements, initial=initial, time=0.2)
    solution = jfric.simulate(problem)
    solution.check()
    hit = (np.sqrt(2.0) - 1.0) / 10.0
    np.testing.assert_allclose(solution.final.q[:2], [0.0, 0.3 * hit - 0.025 * hit**2], atol=1e-9)
    assert solution.final.v[1] == 0.0
    # 387 where the direction of sliding was one of rounding errors.
    assert int(solution.steps) < 50


@pytest.mark.parametrize(
    "ratio", [pytest.param(r, marks=pytest.mark.slow) for r in (0.8358, 1.0, 1.3)]
)
def test_a_joint_that_leaves_one_direction_of_a_plane(ratio):
    """Friction in the plane is then that along the direction."""
    load = jfric.Harmonic(2.0, omega=3.0, phase=0.2)
    initial = {"a": jfric.InitialState(v=0.4 * ratio), "b": jfric.InitialState(v=0.4)}
    tied = jfric.Problem(
        ["a", "b"],
        {
            "mass": {"a": jfric.Mass("a", 0.8), "b": jfric.Mass("b", 1.1)},
            "spring": jfric.Spring("a", 4.0),
            "friction": jfric.Friction(plane=["a", "b"], law=0.7, N=1.5),
            "load": jfric.Load("b", load),
            "joint": jfric.Joint("a - ratio*b"),
        },
        parameters={"ratio": ratio},
        initial=initial,
        time=6.0,
    )
    length = np.hypot(ratio, 1.0)
    along = jfric.Problem(
        ["b"],
        {
            "mass": jfric.Mass("b", 0.8 * ratio**2 + 1.1),
            "spring": jfric.Spring("b", 4.0 * ratio**2),
            "friction": jfric.Friction("b", 0.7, N=1.5 * length),
            "load": jfric.Load("b", load),
        },
        initial={"b": initial["b"]},
        time=6.0,
    )
    ts = jnp.linspace(0.0, 6.0, 61)
    found, expected = (jfric.simulate(p, ts=ts) for p in (tied, along))
    found.check()
    np.testing.assert_allclose(found.q[:, 1], expected.q[:, 0], atol=1e-6)


def beside_guides(start, plane, guides, rate) -> jfric.Problem:
    """A table on springs, on a plate and in guides along ``x`` and ``y``, under a load that
    grows."""
    friction = {k: jfric.Friction(k, jfric.Coulomb(mu), N=2.0) for k, mu in guides.items()}
    elements = {
        "mass": {"x": jfric.Mass("x", 1.0), "y": jfric.Mass("y", 1.5)},
        "spring": {"x": jfric.Spring("x", 5.0), "y": jfric.Spring("y", 7.0)},
        "load": jfric.Load("x", jfric.Ramp(rate)),
        "friction": {"plate": jfric.Friction(plane=["x", "y"], law=plane, N=2.0), **friction},
    }
    start = dict(zip("xy", (START(v=v) for v in start), strict=True))
    return jfric.Problem(["x", "y"], elements, initial=start, time=4.0)


@pytest.mark.parametrize(
    "plane",
    [
        pytest.param(jfric.Coulomb(0.3), marks=pytest.mark.slow),
        pytest.param(jfric.StaticDynamic(0.4, 0.2), marks=pytest.mark.slow),
    ],
)
def test_a_plane_beside_a_guide_is_one_line_where_it_moves_along_it(plane):
    """It stops with the guide, sticks with it, and both let go at once."""
    found = jfric.simulate(beside_guides((1.0, 0.0), plane, {"x": 0.5}, 3.0), SOLVER)
    elements = {
        "mass": jfric.Mass("x", 1.0),
        "spring": jfric.Spring("x", 5.0),
        "load": jfric.Load("x", jfric.Ramp(3.0)),
        "friction": {
            "plate": jfric.Friction("x", plane, N=2.0),
            "guide": jfric.Friction("x", jfric.Coulomb(0.5), N=2.0),
        },
    }
    line = jfric.simulate(
        jfric.Problem(["x"], elements, initial={"x": START(v=1.0)}, time=4.0), SOLVER
    )
    found.check()
    line.check()
    count = int(line.events.count)
    assert int(found.events.count) == count == 8
    times = np.asarray(found.events.time[:count])
    np.testing.assert_allclose(times, line.events.time[:count], atol=1e-9)
    np.testing.assert_allclose(found.final.q, [line.final.q[0], 0.0], atol=1e-9)


@pytest.mark.slow  # its sibling: a plane beside one guide
@pytest.mark.parametrize(
    ("plane", "guide", "rate"), [(0.3, 0.2, 0.0), (0.3, 0.5, 0.0), (0.3, 0.2, 3.0), (0.3, 2.0, 3.0)]
)
def test_a_plane_beside_two_guides_as_by_time_stepping(plane, guide, rate):
    """What slides obliquely comes to rest in all three at once; they let go together."""
    guides = {"x": guide, "y": 0.4}
    problem = beside_guides((1.0, 0.5), jfric.Coulomb(plane), guides, rate)
    exact = jfric.simulate(problem, WITHOUT_DERIVATIVES)
    exact.check()
    if not rate:
        assert not np.any(exact.final.v)
    coarse, fine = (
        np.asarray(jfric.simulate(problem, jfric.MoreauJean(dt=dt)).final.q) for dt in (4e-3, 1e-3)
    )
    error = np.abs(fine - np.asarray(exact.final.q)).max()
    assert error < 1e-4
    assert error < 0.5 * np.abs(coarse - np.asarray(exact.final.q)).max()


@pytest.mark.slow  # its sibling: a plane beside one guide
def test_a_body_lets_go_beside_one_that_a_plane_and_a_guide_hold():
    """The two that share a load share it anew as the other body begins to slide."""
    elements = {
        "mass": {d: jfric.Mass(d, 1.0) for d in "xyz"},
        "friction": {
            "plate": jfric.Friction(plane=["x", "y"], law=jfric.Coulomb(0.5), N=1.0),
            "guide": jfric.Friction("x", limit=2.0),
            "floor": jfric.Friction("z", limit=1.0),
        },
        "load": {"x": jfric.Load("x", 1.5), "z": jfric.Load("z", jfric.Steps([1.0], [0.5, 2.0]))},
    }
    problem = jfric.Problem(["x", "y", "z"], elements, time=2.0)
    found = jfric.simulate(problem, WITHOUT_DERIVATIVES)
    found.check()
    np.testing.assert_allclose(found.final.q, [0.0, 0.0, 0.5], atol=1e-12)


#: A block that a guide and a plane hold at a wall; a second one rubs beside it.
AT_A_WALL = """
dofs = ["a", "b", "c"]
[time]
end = 4.0
[mass]
a = {{dof = "a", m = {m[0]}}}
b = {{dof = "b", m = {m[1]}}}
c = {{dof = "c", m = {m[2]}}}
[spring]
a = {{dof = "a", k = {k[0]}}}
b = {{dof = "b", k = {k[1]}}}
c = {{dof = "c", k = {k[2]}}}
[initial.b]
v = {v}
[load.b]
dof = "b"
F = {{harmonic = {{amplitude = {F[0]}, omega = {F[1]}, phase = {F[2]}}}}}
[load.c]
dof = "c"
F = {{steps = {{times = {at}, values = {steps}}}}}
[friction.guide]
direction = {{a = {w[0]}, b = {w[1]}}}
mu_s = {mu[0]}
mu_d = {mu[1]}
N = {mu[2]}
[friction.other]
direction = {{c = {other[0]}}}
mu_s = {other[1]}
mu_d = {other[2]}
N = {other[3]}
[friction.plate]
plane = ["a", "b"]
mu = {plane[0]}
N = {{sum = [{plane[1]},
    {{harmonic = {{amplitude = {plane[2]}, omega = {plane[3]}, phase = {plane[4]}}}}}]}}
[contact.wall]
normal = {{b = {n}}}
e = {e}
gap = {gap}
"""
BLOCKS = {
    "a limit that nothing else relieves": {
        "m": (1.5, 1.0, 1.0), "k": (6.0, 7.0, 4.0), "v": -1.5, "F": (2.0, 2.0, np.pi),
        "at": [1.5, 2.5], "steps": [1.5, 2.0, 1.5], "w": (-1.5, 1.0), "mu": (0.25, 0.1875, 1.5),
        "other": (-1.5, 0.5, 0.25, 2.0), "plane": (0.25, 3.0, 0.75, 2.0, 0.0),
        "n": 1.0, "e": 0.0, "gap": 0.0,
    },
    "the wall lets go as the plane begins to slide": {
        "m": (1.5, 0.5, 2.0), "k": (2.0, 5.0, 1.0), "v": 0.0, "F": (1.0, 2.0, np.pi),
        "at": [0.5, 2.5], "steps": [0.0, 0.5, 0.5], "w": (-1.5, 0.5), "mu": (0.5, 0.25, 1.5),
        "other": (-1.0, 0.25, 0.25, 1.5), "plane": (0.25, 2.5, 1.25, 3.0, np.pi / 2),
        "n": -1.0, "e": 0.0, "gap": 0.0,
    },
    "the guide's friction drops as the plane begins to slide": {
        "m": (2.0, 0.5, 1.5), "k": (1.0, 8.0, 1.0), "v": 1.0, "F": (1.5, 3.0, np.pi / 2),
        "at": [1.0, 3.0], "steps": [-1.0, -2.0, 1.0], "w": (-0.5, 0.5), "mu": (0.75, 0.375, 2.5),
        "other": (1.5, 0.75, 0.75, 1.5), "plane": (0.75, 3.0, 1.5, 3.0, 0.0),
        "n": -1.0, "e": 0.5, "gap": 0.3,
    },
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", BLOCKS)
def test_a_guide_a_plane_and_a_wall_let_go_in_a_motion_that_exists(name):
    """Each ended as inconsistent at an instant from which one motion leads on."""
    problem = loads(AT_A_WALL.format(**BLOCKS[name])).problem
    ts = np.linspace(0.0, 4.0, 81)
    solution = jfric.simulate(problem, WITHOUT_DERIVATIVES, ts=ts).check()
    assert float(jfric.contact_residual(problem, solution).max()) < 1e-9
    assert np.ptp(np.asarray(solution.q)[:, :2]) > 1e-3


@pytest.mark.parametrize("size", [0.25, 4.0])
@pytest.mark.parametrize("angle", [0.3, 2.0])
def test_friction_of_a_plane_that_is_held_across_stands_along_the_free_direction(size, angle):
    """Only along one direction does friction move anything: there it takes away the push."""
    along = np.array([np.cos(angle), np.sin(angle)])
    D, push = size * np.outer(along, along), 0.1 * along
    across = 1e-17 * np.array([-along[1], along[0]])
    found = holding_friction(jnp.asarray(D), push + across, jnp.array([0.5, 0.5]), 2.0)
    np.testing.assert_allclose(found, -push / size, atol=1e-12)
