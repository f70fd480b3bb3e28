"""Systems given by their energies, and contacts with gaps that are functions of the position."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jfric
from jfric.files.read_toml import load_config, loads
from jfric.files.write_toml import dump
from jfric.system.assembly import assemble, has_linear_modes
from jfric.system.forces import applied_force
from jfric.verification.configs import shipped

START = jfric.InitialState

#: A pendulum that hangs from a cart on a spring.
KINETIC = "0.5*M*v.x^2 + 0.5*m*(v.x^2 + 2*l*cos(phi)*v.x*v.phi + l^2*v.phi^2)"
POTENTIAL = "0.5*k*x^2 - m*9.81*l*cos(phi)"
PARAMETERS = {"M": 2.0, "m": 0.5, "l": 0.7, "k": 30.0}


def cart(**energies) -> jfric.Problem:
    return jfric.Problem(
        {"x": "translation", "phi": "rotation"},
        {"lagrangian": jfric.Lagrangian(**energies)},
        parameters=PARAMETERS,
        initial={"x": START(q=0.1), "phi": START(q=0.4, v=1.0)},
    )


def in_python() -> jfric.Problem:
    def kinetic(t, q, v, p):
        del t
        mass = jnp.array([v[0] + p["l"] * jnp.cos(q[1]) * v[1], p["l"] * jnp.sin(q[1]) * v[1]])
        return 0.5 * p["M"] * v[0] ** 2 + 0.5 * p["m"] * mass @ mass

    def potential(t, q, p):
        del t
        return 0.5 * p["k"] * q[0] ** 2 - p["m"] * 9.81 * p["l"] * jnp.cos(q[1])

    return cart(kinetic=kinetic, potential=potential)


@pytest.mark.parametrize(
    "make",
    [
        lambda: cart(kinetic=KINETIC, potential=POTENTIAL),
        pytest.param(in_python, marks=pytest.mark.slow),
    ],
)
def test_lagrange_equations(make):
    """Against the equations by hand."""
    problem = make()
    mechanics = assemble(problem)
    t, q, v = jnp.asarray(0.3), jnp.array([0.2, -0.7]), jnp.array([0.5, 1.3])
    here = mechanics.at(t, q, v)
    p = PARAMETERS
    c, s = np.cos(-0.7), np.sin(-0.7)
    both = p["m"] * p["l"]
    by_hand = [[p["M"] + p["m"], both * c], [both * c, both * p["l"]]]
    np.testing.assert_allclose(here.M, by_hand, rtol=1e-14)
    forces = [both * s * 1.3**2 - p["k"] * 0.2, -both * 9.81 * s]
    np.testing.assert_allclose(applied_force(mechanics, t, q, v), forces, rtol=1e-13)


def test_linear_energies_are_masses_springs_and_dampers():
    """They join the constant matrices, and keep the exact flow and its closed form."""
    friction = {"friction": jfric.Friction("u", jfric.Coulomb(0.1), N=1000.0)}
    parts = {
        "mass": jfric.Mass("u", 100.0),
        "spring": jfric.Spring("u", 5000.0),
        "damper": jfric.Damper("u", 30.0),
        "load": jfric.Load("u", 1500.0),
    }
    energies = jfric.Lagrangian(
        kinetic="0.5*m*v.u^2", potential="0.5*k*u^2 - 1500*u", dissipation="0.5*c*v.u^2"
    )
    values = {"m": 100.0, "k": 5000.0, "c": 30.0}
    one = jfric.Problem(["u"], parts | friction, time=4.0)
    other = jfric.Problem(["u"], {"lagrangian": energies} | friction, time=4.0, parameters=values)
    assert has_linear_modes(other)
    a, b = (jfric.simulate(p, ts=jnp.linspace(0.0, 4.0, 9)) for p in (one, other))
    np.testing.assert_allclose(a.q, b.q, rtol=0.0, atol=1e-15)
    assert int(a.events.count) == int(b.events.count) > 0


def test_structure():
    """What depends on nothing is constant, whatever it is written as."""
    still = cart(kinetic="0.5*M*v.x^2 + 0.5*m*l^2*v.phi^2", potential=POTENTIAL)
    assert assemble(still).varying is None
    assert len(assemble(still).nonlinear) == 1
    assert not has_linear_modes(still)
    straight = jfric.Contact(gap="x + l*phi + 1", sliding="2*x - phi", law=jfric.Coulomb(0.1))
    mechanics = assemble(
        jfric.Problem(
            ["x", "phi"],
            {"mass": {k: jfric.Mass(k, 1.0) for k in ("x", "phi")}, "contact": straight},
            parameters={"l": 3.0},
        )
    )
    assert mechanics.varying is None
    assert (mechanics.W_N.tolist(), mechanics.W_T.tolist()) == ([[1.0, 3.0]], [[2.0, -1.0]])
    assert mechanics.gap0.tolist() == [1.0]


def test_steps_are_not_linear():
    """A function that is constant in pieces has tangents of zero everywhere."""
    gap = jfric.Contact(gap=lambda t, q, p: q[0] + jnp.floor(q[0]))
    problem = jfric.Problem(["x"], {"mass": jfric.Mass("x", 1.0), "contact": gap})
    assert assemble(problem).varying is not None


BASE = """
dofs = {x = "translation", phi = "rotation"}
time.end = 1
[parameters]
m = "2 kg"
l = "1 m"
[mass]
dof = "x"
m = 1
[lagrangian]
kinetic = "0.5*m*l^2*v.phi^2"
"""
SENTENCES = [
    (
        '"0.5*m*ll^2*v.phi^2"',
        "lagrangian.kinetic: '0.5*m*ll^2*v.phi^2' names 'll', which is not known (did you mean "
        "'l'?); there are x, phi, v.x, v.phi, t, m, l",
    ),
    (
        '"0.5*m*l*v.phi^2"',
        "lagrangian.kinetic: found '0.5*m*l*v.phi^2' (a force), expected one in J",
    ),
    (
        '"m*l^2*v.phi^4*1 s^2"',
        "lagrangian.kinetic: must be quadratic in the velocities, found a mass matrix that "
        "depends on them",
    ),
    (
        '"-m*l^2*v.phi^2"',
        "lagrangian.kinetic: gives the degree of freedom 'phi' a negative mass; must not be "
        "negative",
    ),
    (
        '"0.5*m*l^2*v.phi^2"\n[contact]\ngap = "x - 1 m"',
        "initial: the contact 'contact' starts with a gap of -1, must not be negative; move the "
        "initial position or the gap",
    ),
    (
        '"0.5*m*l^2*v.phi^2"\n[contact]\ngap = "5 mm"',
        "contact.normal: found none; give a degree of freedom such as 'y', or the gap "
        "as a function of positions such as 'y - r*cos(phi)', or the point of a body",
    ),
    (
        '"0.5*m*l^2*v.phi^2"\n[contact]\ngap = "x"\nsliding = "l*phi"',
        "contact: sliding is given without mu; give both, or neither for a frictionless contact",
    ),
    (
        '"0.5*m*l^2*v.phi^2"\n[friction]\nsliding = "l*phi"\ndof = "x"\nmu = 0.1\nN = 1',
        "friction: found direction and sliding of direction, sliding and plane, exactly one is "
        "needed",
    ),
]


@pytest.mark.parametrize(("text", "sentence"), SENTENCES)
def test_sentence(text, sentence):
    with pytest.raises(jfric.ProblemError) as caught:
        loads(BASE.replace('"0.5*m*l^2*v.phi^2"', text), "x.toml")
    assert str(caught.value) == f"x.toml: {sentence}"


def test_singular_mass_matrix_is_refused():
    problem = loads(BASE.replace("0.5*m*l^2*v.phi^2", "0.5*m*v.x^2")).problem
    with pytest.raises(
        jfric.ProblemError, match="mass matrix at the start is singular, the degree "
    ):
        jfric.simulate(problem)


def test_functions_that_fail_are_refused():
    for kinetic, reason in (
        (lambda t, q, v, p: p["mass"] * v[0] ** 2, "KeyError: 'mass'"),
        (lambda t, q, v, p: v**2, "gives shape"),
    ):
        with pytest.raises(jfric.ProblemError, match=reason):
            cart(kinetic=kinetic)


def refusing():
    curved = cart(kinetic=KINETIC, potential=POTENTIAL)
    yield curved, jfric.EventDriven(flow="exact"), "flow: 'exact' needs .* lagrangian.kinetic"
    bowl = {"mass": {c: jfric.Mass(c, 1.0) for c in "xy"}, "contact": jfric.Contact(gap="y - x^2")}
    particle = jfric.Problem(["x", "y"], bowl, time=1.0)
    yield (
        particle,
        jfric.EventDriven(flow="exact"),
        r"flow: 'exact' needs .* but contact\.gap is not",
    )
    yield curved, jfric.EventDriven(kernel="lowered"), "kernel: 'lowered' needs constant mass"
    yield curved, jfric.EventDriven(kernel="one-dof"), "kernel: 'one-dof' is for one degree"
    for solver in (jfric.Smoothed(), jfric.QuasiStatic()):
        yield curved, solver, "lagrangian.kinetic: .* depends on position"


@pytest.mark.parametrize(("problem", "solver", "sentence"), list(refusing()))
def test_what_cannot_is_refused_by_name(problem, solver, sentence):
    with pytest.raises(jfric.ProblemError, match=sentence):
        jfric.simulate(problem, solver)


def test_an_equilibrium_of_a_potential_that_is_not_quadratic():
    potential = cart(kinetic="0.5*M*v.x^2 + 0.5*m*l^2*v.phi^2", potential=POTENTIAL)
    (row,) = jfric.equilibria(potential).table()
    np.testing.assert_allclose(row["q"], [0.0, 0.0], atol=1e-14)


@pytest.mark.parametrize("name", ["g1_rimless_wheel", "g2_double_pendulum", "g3_bowl"])
def test_files_are_written_as_they_were_read(name):
    text = dump(load_config(shipped(name)))
    assert dump(loads(text)) == text


@functools.cache
def sphere() -> jfric.Problem:
    return load_config(shipped("g5_sphere")).problem


def leaving_time(values, solver):
    problem = jfric.set_parameters(sphere(), values)
    return jfric.simulate(problem, solver, end=0.9).events.time[0]


@pytest.mark.slow
@pytest.mark.parametrize("adjoint", ["auto", "reverse"])
def test_derivatives_of_the_leaving_time(adjoint):
    """Against differences of the closed form."""
    scipy = pytest.importorskip("scipy.integrate")
    solver = jfric.EventDriven(rtol=1e-12, adjoint=adjoint, max_steps=100)

    def time(R, v0):
        last = np.arccos(2.0 / 3.0 + v0**2 / (3.0 * 9.81 * R))
        speed = lambda a: np.sqrt(v0**2 + 2.0 * 9.81 * R * (1.0 - np.cos(a)))  # noqa: E731
        return scipy.quad(lambda a: R / speed(a), 0.0, last, epsabs=1e-14)[0]

    def simulated(x):
        paths = {"parameters.R": x[0], "initial.y.q": x[0], "initial.x.v": x[1]}
        return leaving_time(paths, solver)

    h, at = 1e-4, np.array([1.0, 0.5])
    expected = []
    for step in h * np.eye(2):
        near, far = ([time(*(at + s * k * step)) for s in (1, -1)] for k in (1, 2))
        expected.append((8 * (near[0] - near[1]) - (far[0] - far[1])) / (12 * h))
    batch = jnp.stack([at, 1.1 * at])
    found = jax.jit(jax.vmap(jax.value_and_grad(simulated)))(batch)
    np.testing.assert_allclose(found[0], [time(*x) for x in np.asarray(batch)], atol=1e-11)
    np.testing.assert_allclose(found[1][0], expected, atol=1e-9)
    if adjoint == "auto":
        np.testing.assert_allclose(jax.jit(jax.jacfwd(simulated))(at), expected, atol=1e-9)


@pytest.mark.slow
def test_a_gap_that_time_moves_is_a_moving_base():
    """A ball on a shaken table, by a base with the exact flow and by an explicit function of t."""
    ball = {"mass": jfric.Mass("y", 1.0), "load": jfric.Load("y", -9.81)}
    base = {"table": jfric.Base(jfric.Harmonic(0.1, 5.0))}
    moving = {"base": base, "contact": jfric.Contact(("table", "y"), e=0.5)}
    curved = {"contact": jfric.Contact(gap="y - 0.1*sin(5*t)", e=0.5)}
    ts = jnp.linspace(0.0, 1.5, 16)
    a, b = (
        jfric.simulate(
            jfric.Problem(["y"], ball | parts, initial={"y": START(q=0.3)}, time=1.5),
            jfric.EventDriven(rtol=1e-12),
            ts=ts,
        ).check()
        for parts in (moving, curved)
    )
    count = int(a.events.count)
    assert count == int(b.events.count) > 3
    np.testing.assert_allclose(a.events.time[:count], b.events.time[:count], atol=1e-10)
    np.testing.assert_allclose(a.q, b.q, atol=1e-10)
    np.testing.assert_allclose(a.lambda_n, b.lambda_n, atol=1e-8)


@pytest.mark.slow
def test_a_mass_matrix_that_becomes_singular_ends_the_run():
    """x = q^2 / 2 moves at a constant speed and comes to zero at 0.5 s, where nothing goes on."""
    kinetic = jfric.Lagrangian("0.5*q^2*v.q^2")
    start = {"q": START(q=1.0, v=-1.0)}
    problem = jfric.Problem(["q"], {"lagrangian": kinetic}, initial=start)
    solution = jfric.simulate(problem, ts=jnp.array([0.4, 0.9]))
    assert int(solution.status) != jfric.Status.OK
    assert float(solution.q[0, 0]) == pytest.approx(np.sqrt(0.2), abs=1e-9)
    assert bool(jnp.isnan(solution.q[1, 0]))


@pytest.mark.slow
def test_a_negative_mass_in_a_batch_is_a_status():
    problem = cart(kinetic=KINETIC, potential=POTENTIAL)

    def status(m):
        changed = jfric.set_parameters(problem, {"parameters.m": m})
        return jfric.simulate(changed, end=0.1).status

    found = jax.jit(jax.vmap(status))(jnp.array([0.5, -0.5]))
    assert found.tolist() == [int(jfric.Status.OK), int(jfric.Status.INCONSISTENT)]


@pytest.mark.slow
def test_friction_in_a_bowl_whatever_the_coordinates():
    """x and y with a curved contact, and polar coordinates with a straight one."""
    config = load_config(shipped("g3_bowl"))
    polar = jfric.Problem(
        {"r": "translation", "a": "rotation"},
        {
            "lagrangian": jfric.Lagrangian("0.5*m*(v.r^2 + r^2*v.a^2)", "-m*g*r*cos(a)"),
            "contact": jfric.Contact(gap="R - r", sliding="R*a", law=jfric.Coulomb(0.2)),
        },
        parameters=dict(config.problem.parameters),
        initial={"r": START(q=1.0), "a": START(q=-1.2)},
        time=3.0,
    )
    solver, ts = jfric.EventDriven(rtol=1e-12), jnp.linspace(0.0, 3.0, 31)
    a, b = (jfric.simulate(p, solver, ts=ts).check() for p in (config.problem, polar))
    np.testing.assert_allclose(a.q[:, 0], jnp.sin(b.q[:, 1]), atol=1e-10)
    np.testing.assert_allclose(a.lambda_n, b.lambda_n, atol=1e-7)
    np.testing.assert_allclose(jnp.hypot(*a.q.T), 1.0, rtol=0.0, atol=1e-15)
    for problem, solution in ((config.problem, a), (polar, b)):
        assert float(jfric.motion_residual(problem, solution).max()) < 1e-10
        assert float(jfric.contact_residual(problem, solution).max()) < 1e-10
    # At rest for good, on the slope.
    assert bool(jnp.all(a.q[-5:] == a.q[-1]))
