"""Joints: bilateral constraints, prescribed motion, friction on their reactions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jfric
from jfric.files.read_toml import json_schema, load_config, loads
from jfric.files.write_toml import dump
from jfric.results.columns import columns
from jfric.system.assembly import assemble
from jfric.system.joints import generalised_inverse
from jfric.verification.configs import shipped

START = jfric.InitialState
G = 9.81


def point(joint, start=None, **parts) -> jfric.Problem:
    """A mass point in x and y, 2 kg, that hangs at (0, -0.5) unless it has another ``start``."""
    return jfric.Problem(
        ["x", "y"],
        {
            "mass": {"x": jfric.Mass("x", "$m"), "y": jfric.Mass("y", "$m")},
            "load": jfric.Load("y", "-$m*9.81"),
            "joint": joint if isinstance(joint, dict) else {"rod": joint},
            **parts,
        },
        parameters={"m": 2.0, "l": 0.5},
        initial=start or {"y": START(q=-0.5)},
        time=2.0,
    )


ROD = jfric.Joint("sqrt(x^2 + y^2) - l")


def rod(**parts) -> jfric.Problem:
    """A rod pinned at one end, by the position of its centre and its angle; it hits a stop, which
    is as long as the rod's part ``d`` away from the pin, when it is level."""
    return jfric.Problem(
        {"x": "translation", "y": "translation", "phi": "rotation"},
        {
            "mass": {
                "x": jfric.Mass("x", "$m"),
                "y": jfric.Mass("y", "$m"),
                "phi": jfric.Mass("phi", "$m*$l**2/12"),
            },
            "load": jfric.Load("y", "-$m*9.81"),
            "joint": {"pin": jfric.Joint(["x - l/2*cos(phi)", "y - l/2*sin(phi)"])},
            "contact": {"stop": jfric.Contact(gap="y + (d - l/2)*sin(phi)", e=0.5)},
            **parts,
        },
        parameters={"m": 3.0, "l": 1.2, "d": 0.9},
        initial={
            "x": START(q="$l/2*cos(0.7)"),
            "y": START(q="$l/2*sin(0.7)"),
            "phi": START(q=0.7),
        },
        time=1.2,
    )


def test_generalised_inverse():
    """The inverse where there is one, else one that solves, and the smallest solution."""
    a = np.array([[2.0, 0.3, -0.1], [0.5, 100.0, 0.2]])
    regular = a @ a.T
    inverse, found = generalised_inverse(jnp.asarray(regular))
    np.testing.assert_allclose(inverse @ regular, np.eye(2), atol=1e-13)
    assert not np.any(found.of.dependent)
    np.testing.assert_allclose(found.least(inverse), inverse, atol=1e-16)
    rows = np.vstack([a, 2.0 * a[0] - a[1], a[0]])
    G = rows @ rows.T
    inverse, found = generalised_inverse(jnp.asarray(G))
    smallest = found.least(inverse)
    r = G @ np.array([1.0, -2.0, 0.5, 3.0])
    assert np.sum(found.of.dependent) == 2
    np.testing.assert_allclose(G @ (inverse @ r), r, rtol=1e-10)
    np.testing.assert_allclose(smallest @ r, np.linalg.pinv(G, rcond=1e-10) @ r, rtol=1e-8)


@pytest.mark.slow
def test_accelerations_are_those_of_fewer_coordinates():
    """The inverse mass of a rod on a pin is that of its angle alone."""
    mechanics = assemble(rod())
    phi, omega, l, m = 0.3, 1.7, 1.2, 3.0
    J = np.array([-l / 2 * np.sin(phi), l / 2 * np.cos(phi), 1.0])
    q = jnp.array([l / 2 * np.cos(phi), l / 2 * np.sin(phi), phi])
    here = mechanics.at(jnp.zeros(()), q, jnp.asarray(J * omega))
    np.testing.assert_allclose(here.M_inverse, np.outer(J, J) / (m * l**2 / 3), atol=1e-15)
    # To the centre, and nothing along the angle.
    assert here.tied is not None
    inwards = np.array([-np.cos(phi), -np.sin(phi), 0.0]) * l / 2 * omega**2
    # Of all motions with this acceleration the joints demand the one of the least effort.
    demanded = np.asarray(here.tied.acceleration)
    np.testing.assert_allclose(here.tied.J @ demanded, here.tied.J @ inwards, atol=1e-14)
    np.testing.assert_allclose(here.M @ here.M_inverse @ here.M @ demanded, 0.0, atol=1e-13)


@pytest.fixture(scope="module")
def swing():
    start = {"x": START(q=0.5 * np.sin(1.2)), "y": START(q=-0.5 * np.cos(1.2))}
    problem = point(ROD, start)
    solver = jfric.EventDriven(rtol=1e-12)
    return problem, jfric.simulate(problem, solver, ts=jnp.linspace(0.0, 2.0, 41)).check()


def test_pendulum_as_a_point(swing):
    """Energy, length and reaction."""
    problem, solution = swing
    q, v = np.asarray(solution.q), np.asarray(solution.v)
    energy = 0.5 * (v**2).sum(axis=1) + G * q[:, 1]
    np.testing.assert_allclose(energy, energy[0], rtol=0.0, atol=2e-10)
    np.testing.assert_allclose(np.hypot(*q.T), 0.5, rtol=0.0, atol=1e-15)
    np.testing.assert_allclose((q * v).sum(axis=1), 0.0, rtol=0.0, atol=1e-15)
    # Three times the height below the pin, less what it started with.
    expected = -2.0 * G * (3.0 * -q[:, 1] / 0.5 - 2.0 * np.cos(1.2))
    table = columns(problem, solution)
    np.testing.assert_allclose(table["reaction.joint.rod"], expected, atol=1e-9)
    assert float(jfric.motion_residual(problem, solution).max()) < 1e-11
    assert int(solution.flags) == 0


@pytest.mark.slow
def test_friction_on_the_reaction_between_a_motor_and_a_load():
    """A shaft between two inertias of 1 carries ``-1 - a``, friction takes ``c + mu |1 + a|``: the
    motor starts where its torque, ``1 + s t``, is beyond that, and is as fast as it says."""
    shaft = jfric.Joint("motor - arm", jfric.Coulomb(0.2), sliding="motor")
    problem = jfric.Problem(
        {"motor": "rotation", "arm": "rotation"},
        {
            "mass": {d: jfric.Mass(d, 1.0) for d in ("motor", "arm")},
            "load": {"motor": jfric.Load("motor", jfric.Ramp(0.25, 1.0)),
                     "arm": jfric.Load("arm", -1.0)},
            "joint": {"shaft": shaft},
            "friction": jfric.Friction("motor", limit=0.1),
        },
        time=4.0,
    )  # fmt: skip

    @jax.jit
    @jax.vmap
    def run(mu, limit, slope):
        values = {"joint.shaft.mu": mu, "friction.limit": limit, "load.motor.F.rate": slope}
        found = jfric.simulate(
            jfric.set_parameters(problem, values),
            jfric.EventDriven(adjoint="none"),
            ts=jnp.array([4.0]),
        )
        return found.status, found.events.time[0], found.q[0], found.v[0]

    mu, limit, slope = np.array([[0.2, 0.1, 0.25], [0.1, 0.3, 0.25], [0.0, 0.2, 0.5]]).T
    status, start, q, v = map(np.asarray, run(mu, limit, slope))
    assert not status.any()
    # 2 a = s t - c - mu (1 + a).
    begins = (limit + mu) / slope
    np.testing.assert_allclose(start, begins, rtol=1e-12)
    grows, moves = slope / (2.0 + mu), 4.0 - begins
    for dof in (0, 1):
        np.testing.assert_allclose(v[:, dof], grows * moves**2 / 2.0, rtol=1e-9)
        np.testing.assert_allclose(q[:, dof], grows * moves**3 / 6.0, rtol=1e-9)


@pytest.mark.slow
def test_a_start_off_by_rounding_is_put_on_the_joint():
    """No more than a millionth; what is further off has a status where it cannot be a sentence."""
    problem = point(ROD)

    def found(x, v):
        changed = jfric.set_parameters(problem, {"initial.x.q": x, "initial.y.v": v})
        solution = jfric.simulate(changed, ts=jnp.array([0.0]), end=0.01)
        return solution.status, jnp.hypot(*solution.q[0])

    x, v = jnp.array([1e-6, 0.1, 0.0]), jnp.array([0.0, 0.0, 1e-3])
    status, length = jax.jit(jax.vmap(found))(x, v)
    bad = int(jfric.Status.INCONSISTENT)
    assert status.tolist() == [int(jfric.Status.OK), bad, bad]
    assert float(length[0]) == pytest.approx(0.5, abs=1e-16)


@pytest.fixture(scope="module")
def falling():
    problem = rod()
    ts = jnp.linspace(0.0, 1.2, 13)
    return problem, jfric.simulate(problem, jfric.EventDriven(rtol=1e-12), ts=ts).check()


@pytest.mark.slow
def test_impact_of_a_rod_on_a_pin(falling):
    """The pin takes its share of the impact: the velocity after it is that of a rotation."""
    problem, solution = falling
    first = solution.event_table()[0]
    omega = -np.sqrt(3.0 * G / 1.2 * np.sin(0.7))
    assert first["v_before"][2] == pytest.approx(omega, abs=1e-11)
    assert first["v"][2] == pytest.approx(-0.5 * omega, abs=1e-11)
    np.testing.assert_allclose(first["v"][:2], [0.0, -0.3 * omega], atol=1e-11)
    np.testing.assert_allclose(first["q"], [0.6, 0.0, 0.0], atol=1e-12)
    # It comes to rest on the stop, which carries two thirds of the weight.
    np.testing.assert_allclose(solution.q[-1], [0.6, 0.0, 0.0], atol=1e-15)
    np.testing.assert_allclose(solution.q[-2], solution.q[-1], rtol=0.0, atol=1e-16)
    table, weight = columns(problem, solution), 3.0 * G
    assert table["lambda_n.contact.stop"][-1] == pytest.approx(weight * 2 / 3, abs=1e-9)
    assert table["reaction.joint.pin.2"][-1] == pytest.approx(weight / 3, abs=1e-9)
    assert float(jfric.contact_residual(problem, solution).max()) < 1e-12
    assert float(jfric.motion_residual(problem, solution).max()) < 1e-11


@pytest.mark.slow
def test_prescribed_motion_and_equations_that_repeat_others():
    """A pendulum on a cart that is driven: against SciPy; the reactions are those of smallest
    norm."""
    scipy = pytest.importorskip("scipy.integrate")
    kinetic = "0.5*M*v.x^2 + 0.5*m*(v.x^2 + 2*l*cos(phi)*v.x*v.phi + l^2*v.phi^2)"
    problem = jfric.Problem(
        {"x": "translation", "phi": "rotation"},
        {
            "lagrangian": jfric.Lagrangian(kinetic, "-m*9.81*l*cos(phi)"),
            "joint": {
                "drive": jfric.Joint(lambda t, q, p: q[0] - p["A"] * jnp.sin(3.0 * t)),
                "again": jfric.Joint("2*x - 2*A*sin(3*t)"),
            },
        },
        parameters={"M": 1.0, "m": 0.5, "l": 0.7, "A": 0.1},
        initial={"x": START(v=0.3), "phi": START(q=0.4)},
        time=5.0,
    )
    ts = np.linspace(0.0, 5.0, 26)
    solution = jfric.simulate(problem, jfric.EventDriven(rtol=1e-13), ts=ts).check()
    assert jfric.Flag(int(solution.flags)) == jfric.Flag.REDUNDANT

    def rates(t, y):
        return [y[1], (-G * np.sin(y[0]) + 0.9 * np.sin(3 * t) * np.cos(y[0])) / 0.7]

    other = scipy.solve_ivp(rates, (0, 5), [0.4, 0], "DOP853", ts, rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(solution.q[:, 1], other.y[0], atol=1e-10)
    np.testing.assert_allclose(solution.q[:, 0], 0.1 * np.sin(3.0 * ts), atol=1e-15)
    phi, omega = other.y
    turn = np.array([rates(*x)[1] for x in zip(ts, other.y.T, strict=True)])
    force = -1.35 * np.sin(3 * ts) + 0.35 * (turn * np.cos(phi) - omega**2 * np.sin(phi))
    table = columns(problem, solution)
    np.testing.assert_allclose(table["reaction.joint.drive"], force / 5, atol=1e-9)
    np.testing.assert_allclose(table["reaction.joint.again"], 2 * force / 5, atol=1e-9)


def three_cranks() -> jfric.Problem:
    """A platform on three parallel cranks: six equations of which five count."""
    pins = {"a": -0.4, "b": 0.1, "c": 0.5}
    return jfric.Problem(
        {"x": "translation", "y": "translation", "phi": "rotation"}
        | dict.fromkeys(pins, "rotation"),
        {
            "mass": {"x": jfric.Mass("x", 2.0), "y": jfric.Mass("y", 2.0)}
            | {"phi": jfric.Mass("phi", 0.3)}
            | {name: jfric.Mass(name, 0.05) for name in pins},
            "load": jfric.Load("y", -2.0 * G),
            "joint": {
                name: jfric.Joint(
                    [
                        f"x + {at}*cos(phi) - {at} - 0.7*sin({name})",
                        f"y + {at}*sin(phi) + 0.7*cos({name})",
                    ]
                )
                for name, at in pins.items()
            },
        },
        initial={"x": START(q=0.7 * np.sin(0.9)), "y": START(q=-0.7 * np.cos(0.9))}
        | {name: START(q=0.9) for name in pins},
        time=2.0,
    )


@pytest.mark.slow
def test_equations_that_repeat_others_in_single_precision():
    """Rounding errors are no equation of their own: something is left to move, as in double."""
    found = []
    for double in (True, False):
        with jax.enable_x64(double):
            problem = three_cranks()
            here = assemble(problem).at(*problem.resolved().start())
            assert here.tied is not None
            assert here.M_inverse.dtype == (jnp.float64 if double else jnp.float32)
            assert bool(here.tied.redundant)
            found.append(np.asarray(here.M_inverse, float))
    # Along the one motion that is left.
    assert np.linalg.matrix_rank(found[0], tol=1e-9) == 1
    np.testing.assert_allclose(found[1], found[0], atol=1e-5 * np.abs(found[0]).max())


@pytest.mark.slow
def test_three_parallel_cranks():
    """The platform swings like a pendulum."""
    problem = three_cranks()
    single = jfric.Problem(
        {"a": "rotation"},
        {
            "mass": jfric.Mass("a", 0.15 + 2.0 * 0.49),
            "pendulum": jfric.Pendulum("a", 2.0, 0.7, G),
        },
        initial={"a": START(q=0.9)},
        time=2.0,
    )
    solver, ts = jfric.EventDriven(rtol=1e-12), jnp.linspace(0.0, 2.0, 21)
    found, expected = (jfric.simulate(p, solver, ts=ts).check() for p in (problem, single))
    assert jfric.Flag(int(found.flags)) == jfric.Flag.REDUNDANT
    for i in range(3, 6):
        np.testing.assert_allclose(found.q[:, i], expected.q[:, 0], atol=1e-10)
    np.testing.assert_allclose(found.q[:, 2], 0.0, rtol=0.0, atol=1e-14)
    assert float(jfric.motion_residual(problem, found).max()) < 1e-11


def around(polar: bool) -> jfric.Problem:
    """A bead that is thrown over the top of a slot with friction, where the slot's other side
    carries it."""
    initial = {"x": START(v=7.0), "y": START(q=-1.0)}
    parts = {
        "mass": {"x": jfric.Mass("x", 2.0), "y": jfric.Mass("y", 2.0)},
        "load": jfric.Load("y", -2.0 * G),
        "joint": {
            "slot": jfric.Joint(
                lambda t, q, p: jnp.hypot(q[0], q[1]) - 1.0,
                jfric.Coulomb(0.2),
                lambda t, q, p: jnp.arctan2(q[0], -q[1]),
            )
        },
    }
    if not polar:
        return jfric.Problem(["x", "y"], parts, initial=initial, time=2.0)
    energies = jfric.Lagrangian("(v.r^2 + r^2*v.a^2)", "-2*9.81*r*cos(a)")
    joint = {"slot": jfric.Joint("r - 1", jfric.Coulomb(0.2), "a")}
    return jfric.Problem(
        {"r": "translation", "a": "rotation"},
        {"lagrangian": energies, "joint": joint},
        initial={"r": START(q=1.0), "a": START(v=7.0)},
        time=2.0,
    )


@pytest.mark.slow
def test_normal_force_that_changes_its_sign():
    """No impact and no accumulation where the other side of the slot takes over; whatever the
    coordinates, and as by quadrature."""
    solver, ts = jfric.EventDriven(rtol=1e-12), jnp.linspace(0.0, 2.0, 21)
    a, b = (jfric.simulate(around(polar), solver, ts=ts).check() for polar in (False, True))
    np.testing.assert_allclose(jnp.arctan2(a.q[:, 0], -a.q[:, 1]), b.q[:, 1], atol=1e-9)
    for solution in (a, b):
        rows = solution.event_table()
        assert not any(row["impact"] for row in rows)
        # Both sides slide together: that one takes over from the other is no coincidence.
        assert int(solution.flags) == 0
        changes = [row for row in rows if "open" in (row["from"], row["to"])]
        assert len(changes) == 4
    # Up to where the outer side lets go: w = theta'^2 obeys a linear equation in theta.
    mu, at = 0.2, float(b.events.q[0, 1])
    scale = 1.0 + 4.0 * mu**2
    along, across = 2.0 * G * (1.0 - 2.0 * mu**2) / scale, -6.0 * mu * G / scale
    w = along * np.cos(at) + across * np.sin(at) + (49.0 - along) * np.exp(-2.0 * mu * at)
    assert w == pytest.approx(float(b.events.v[0, 1]) ** 2, abs=1e-9)
    assert w == pytest.approx(-G * np.cos(at), abs=1e-9)


@pytest.mark.slow
def test_a_block_between_straight_rails():
    """Straight constraints with friction keep the exact flow: the rail that carries changes with
    the load across, and friction does not mind."""
    problem = jfric.Problem(
        ["x", "y"],
        {
            "mass": {"x": jfric.Mass("x", 2.0), "y": jfric.Mass("y", 2.0)},
            "load": jfric.Load("y", jfric.Steps([0.5], [-10.0, 20.0])),
            "joint": {"rail": jfric.Joint("y", jfric.Coulomb(0.3), "x")},
        },
        initial={"x": START(v=3.0)},
        time=1.5,
    )
    assert assemble(problem).has_linear_modes
    solution = jfric.simulate(problem, ts=jnp.array([0.25, 0.75, 1.5])).check()
    # 1.5 m/s^2 for 0.5 s, 3 m/s^2 for the rest.
    np.testing.assert_allclose(solution.v[:, 0], [2.625, 1.5, 0.0], atol=1e-14)
    found = columns(problem, solution)
    np.testing.assert_allclose(found["reaction.joint.rail"], [10.0, -20.0, -20.0], atol=1e-13)
    # It slides on as 3 - 1.5 t, then as 2.25 - 3 (t - 0.5).
    assert float(solution.events.time[int(solution.events.count) - 1]) == pytest.approx(1.25)


@pytest.mark.slow
def test_an_event_that_watches_a_reaction():
    """The rod of a pendulum carries 30 N where the cosine of its angle says so."""
    start = {"x": START(q=0.5 * np.sin(1.2)), "y": START(q=-0.5 * np.cos(1.2))}
    watch = jfric.Event("reaction.rod + 30 N", action="stop")
    solution = jfric.simulate(point(ROD, start, event={"enough": watch}))
    assert jfric.Flag(int(solution.flags)) == jfric.Flag.STOPPED
    cosine = (30.0 / (2.0 * G) + 2.0 * np.cos(1.2)) / 3.0
    assert float(solution.final.q[1]) == pytest.approx(-0.5 * cosine, abs=1e-9)


BASE = """
dofs = {x = "translation", phi = "rotation"}
time.end = 1
[parameters]
l = "1 m"
c = 1
[mass.x]
dof = "x"
m = 1
[mass.phi]
dof = "phi"
m = 1
[joint]
constraint = "x - l*phi"
"""
SENTENCES = [
    ('"x - 3 s"', "joint.constraint: 'x - 3 s' adds (a length) and (a time)"),
    ('"x*l"', "joint.constraint: found 'x*l' ([length] ** 2), expected one in m or rad"),
    (
        '"x - l*psi"',
        "joint.constraint: 'x - l*psi' names 'psi', which is not known (did you mean 'phi'?)",
    ),
    ('"l - c"', "joint.constraint: 'l - c' names no degree of freedom; declared are x, phi"),
    ('"x - v.w"', "joint.constraint: 'x - v.w' names 'v.w', which is not known"),
    ("[]", "joint.constraint: found none, at least one is needed"),
    ("3", "joint.constraint: found 3, expected a text"),
    (
        '["x", "phi"]',
        "joint: leaves no degree of freedom, the joints hold all of x, phi; leave one out, or "
        "prescribe a motion that depends on t",
    ),
    (
        '["x", "phi - 0.1"]',
        "initial: joint.2 starts at -0.1, must be zero to 1e-12; the nearest position that meets "
        "all joints is x = 0, phi = 0.1",
    ),
    (
        '["x", "2*x - 0.3"]',
        "initial: joint.2 starts at -0.3, must be zero to 1e-12; no position nearby meets all "
        "joints: they contradict each other, or it is far off",
    ),
    (
        '"phi - 2*t"',
        "initial: joint starts with the rate -2, must be zero to 2e-06; the nearest velocity that "
        "meets all joints is v.x = 0, v.phi = 2",
    ),
    (
        '["phi - t^2", "2*phi - 3*t^2"]',
        "joint.2: contradicts other joints, no acceleration at the start meets all of them; leave "
        "one out",
    ),
    ('"x^2 + phi^2"', "joint: has the slope zero at the start, and holds nothing there"),
    ('"sqrt(x)"', "joint: is not finite, or has no slope, at the start"),
    (
        '"x"\nmu = 0.2',
        "joint: mu is given without sliding; give both, or neither for a joint without friction",
    ),
    (
        '["x", "phi"]\nmu = 0.2\nsliding = "x"',
        "joint: found 2 constraints and friction, which belongs to one; give each a joint of its "
        "own",
    ),
]


@pytest.mark.parametrize(("text", "sentence"), SENTENCES)
def test_sentence(text, sentence):
    with pytest.raises(jfric.ProblemError) as caught:
        loads(BASE.replace('"x - l*phi"', text), "x.toml")
    assert str(caught.value).startswith(f"x.toml: {sentence}")


def refusing():
    solvers = (jfric.Smoothed(), jfric.QuasiStatic())
    for joint in (ROD, jfric.Joint("x", jfric.Coulomb(0.1), "y")):
        for solver in solvers:
            yield (
                joint,
                solver,
                "joint.rod: found a joint, which .* cannot represent; use the solver",
            )
    yield ROD, jfric.EventDriven(flow="exact"), "flow: 'exact' needs .* joint.rod is not"
    yield ROD, jfric.EventDriven(kernel="lowered"), "kernel: 'lowered' needs constant mass"


@pytest.mark.parametrize(("joint", "solver", "sentence"), list(refusing()))
def test_what_cannot_is_refused_by_name(joint, solver, sentence):
    with pytest.raises(jfric.ProblemError, match=sentence):
        jfric.simulate(point(joint), solver)


def test_a_point_hangs_on_its_rod():
    (row,) = jfric.equilibria(point(ROD)).table()
    np.testing.assert_allclose(row["q"], [0.0, -0.5], atol=1e-15)
    # It pulls back along the gradient, which points downwards.
    np.testing.assert_allclose(row["reaction"], [-2.0 * G], rtol=1e-14)


@pytest.mark.parametrize("name", ["g3_slot", "joint_slider_crank"])
def test_files_are_written_as_they_were_read(name):
    text = dump(load_config(shipped(name)))
    assert dump(loads(text)) == text


@pytest.mark.slow
def test_names():
    problem = rod(joint={"pin": jfric.Joint(["x - l/2*cos(phi)", "y - l/2*sin(phi)"])})
    with pytest.raises(jfric.ProblemError, match=r"there are reaction.joint.pin.1, reaction.joint"):
        jfric.observe(problem, "final.reaction.pn.1")
    joint = json_schema()["$defs"]["Joint"]["properties"]
    assert set(joint) >= {"constraint", "sliding", "mu"}
    slot = load_config(shipped("g3_slot")).problem
    assert "joint.slot.mu" in jfric.parameters(slot)
