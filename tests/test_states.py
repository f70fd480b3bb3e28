"""States with an equation that a user writes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from differences import fourth_order
from references import relief_valve
from scipy.integrate import solve_ivp

import jfric
from jfric.files.read_toml import load_config, loads
from jfric.files.write_toml import dump
from jfric.verification.configs import shipped

START = jfric.InitialState

#: A piston on a spring in a cylinder that leaks: pressures on both sides.
FILE = """
dofs = ["x"]
[time]
end = "2 s"
outputs = [1.0, 2.0]
[parameters]
A = "1e-4 m^2"
T = "0.5 s"
c = "2e5 Pa/m"
[mass]
dof = "x"
m = "2 kg"
[spring]
dof = "x"
k = "10 N/m"
[friction]
dof = "x"
limit = "20 N"
[state.p]
rate = "(z.s - z.p)/T - c*v.x"
z0 = "3 bar"
unit = "Pa"
force = "A*z.p"
dof = "x"
[state.s]
rate = "-z.s/(4*T)"
z0 = "1 bar"
unit = "Pa"
"""


def reference(end):
    """Sliding forwards until it stops, then rest: the time of the stop, its state, and that at the
    end, by SciPy."""

    def rate(t, y):
        x, v, p, s = y
        return [v, (1e-4 * p - 10.0 * x - 20.0) / 2.0, (s - p) / 0.5 - 2e5 * v, -s / 2.0]

    def stops(t, y):
        return y[1] if t > 0 else 1.0

    stops.terminal, stops.direction = True, -1
    options = {"method": "DOP853", "rtol": 1e-12, "atol": 1e-12}
    slides = solve_ivp(rate, (0.0, end), [0.0, 0.0, 3e5, 1e5], events=stops, **options)
    stop = slides.y[:, -1]
    rests = solve_ivp(
        lambda t, y: [(y[1] - y[0]) / 0.5, -y[1] / 2.0], (slides.t[-1], end), stop[2:], **options
    )
    # Friction holds all the time.
    pull = 1e-4 * rests.y[0] - 10.0 * stop[0]
    assert np.abs(pull).max() < 20.0
    return slides.t[-1], stop, rests.y[:, -1]


def test_a_piston_agrees_with_scipy():
    problem = loads(FILE).problem
    solution = jfric.simulate(problem, jfric.EventDriven(rtol=1e-11), ts=jnp.array([0.9]))
    solution.check()
    assert solution.states == ("p", "s")
    time, stop, end = reference(0.9)
    # It begins to slide at once, and stops once.
    (found,) = [e["time"] for e in solution.event_table() if e["to"] == "stick"]
    assert found == pytest.approx(time, abs=1e-10)
    assert float(solution.q[0, 0]) == pytest.approx(stop[0], abs=1e-11)
    np.testing.assert_allclose(solution.z[0], end, rtol=1e-9)


@pytest.mark.slow
def test_python_functions_and_derivatives():
    """A linear filter of a force: the state is known, and so are its derivatives."""

    def problem(T):
        return jfric.Problem(
            ["x"],
            {
                "mass": jfric.Mass("x", 1.0),
                "state": {"f": jfric.State(lambda t, q, v, z, p: (1.0 - z["f"]) / p["T"])},
            },
            parameters={"T": T},
        )

    def end(T):
        return jfric.simulate(problem(T), jfric.EventDriven(rtol=1e-12), ts=jnp.ones(1)).z[0, 0]

    assert float(end(0.5)) == pytest.approx(1 - np.exp(-2.0), abs=1e-10)
    expected = -np.exp(-2.0) * 1.0 / 0.25
    assert float(jax.jacfwd(end)(0.5)) == pytest.approx(expected, abs=1e-8)


HEAT = "-lambda_t.brake*slip.brake"


def braked(rate, **elements):
    """A body on a spring, with friction whose power heats something that cools."""
    own = {
        "mass": jfric.Mass("x", 2.0),
        "spring": jfric.Spring("x", 50.0),
        "friction": {"brake": jfric.Friction("x", limit=4.0)},
        "state": {"T": jfric.State(rate, unit="K")},
    }
    return jfric.Problem(
        ["x"],
        own | elements,
        initial={"x": START(q=1.0)},
        parameters={"C": 3.0, "tau": 0.8},
        time=1.5,
    )


@pytest.mark.slow
def test_heat_of_friction_in_closed_form():
    """Half periods under constant friction: the power is ``mu N |v|``, and what it heats cools."""
    problem = braked(f"({HEAT})/C - z.T/tau")
    solution = jfric.simulate(problem, jfric.EventDriven(rtol=1e-12), ts=jnp.array([1.0, 1.5]))
    solution.check()
    R, omega, half = 4.0, 5.0, np.pi / 5.0
    nodes, weights = np.polynomial.legendre.leggauss(60)

    def heat(end):
        found, at = 0.0, 1.0
        for i in range(3):
            shift = R / 50.0 * np.sign(at)
            size, a, b = abs(at - shift), i * half, min((i + 1) * half, end)
            if b > a:
                t = 0.5 * (a + b) + 0.5 * (b - a) * nodes
                power = R * size * omega * np.sin(omega * (t - a)) * np.exp(-(end - t) / 0.8)
                found += 0.5 * (b - a) * weights @ power / 3.0
            at = 2 * shift - at
        return found

    np.testing.assert_allclose(solution.z[:, 0], [heat(1.0), heat(1.5)], atol=1e-10)
    smoothed = jfric.observe(problem, "final.z.T, max.z.T", jfric.Smoothed(width=1e-4)).values
    assert float(smoothed["final.z.T"]) == pytest.approx(heat(1.5), abs=1e-3)
    assert float(smoothed["max.z.T"]) > heat(1.5)


def valve(q, v, p, end=4.0):
    """State at ``end``; then status, flags, times of events, and which are impacts."""
    problem = load_config(shipped("relief_valve")).problem
    values = {"parameters.q": q, "initial.y.v": v, "state.p.z0": p, "time.end": end}
    solver = jfric.EventDriven(rtol=1e-12, kernel="general", max_events=32)
    run = jfric.simulate(jfric.set_parameters(problem, values), solver, ts=jnp.array([end]))
    ends = jnp.concatenate([run.q[0], run.v[0], run.z[0]])
    return ends, (run.status, run.flags, run.events.time, run.events.impact)


#: Flow, speed off the seat and pressure at the start: some steps would take the pressure below
#: zero, where its rate has no root.
VALVES = np.array(
    [(8, 1, 12), (5, 1, 12), (3, 0, 9), (1, 0, 9), (0.5, 0.5, 9.9), (0.5, 0, 9)], dtype=float
)


@pytest.mark.slow  # its sibling: a piston
def test_a_relief_valve_agrees_with_scipy():
    """Impacts on a seat under a pressure whose rate has a root in it."""
    ends, (status, flags, times, impact) = jax.jit(jax.vmap(valve))(*VALVES.T)
    assert (np.asarray(status) == 0).all()
    assert (np.asarray(flags)[:4] == 0).all()
    for i, start in enumerate(VALVES):
        expected, impacts = relief_valve.motion(*start, 4.0)
        np.testing.assert_allclose(ends[i], expected, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(times[i][impact[i]], impacts, atol=1e-10)


@pytest.mark.slow
def test_derivatives_of_a_relief_valve():
    by_q = jax.jit(jax.vmap(jax.jacfwd(valve, has_aux=True)))(*VALVES.T)[0]
    for slope, (q, *others) in zip(by_q[:4], VALVES[:4], strict=True):
        ahead, behind = (relief_valve.motion(q + d, *others, 4.0)[0] for d in (1e-5, -1e-5))
        np.testing.assert_allclose(slope, (ahead - behind) / 2e-5, rtol=1e-5, atol=1e-5)


@pytest.mark.slow
def test_rates_by_contacts_have_derivatives_and_may_be_python_functions():
    """Heat that weakens a spring, wear of a contact that bounces; forward, reverse, differences."""

    def wear(t, q, v, z, p, contacts):
        return contacts["lambda_n.floor"] * jnp.abs(v[1]) / p["C"]

    def end(x, adjoint):
        problem = jfric.Problem(
            ["y", "x"],
            {
                "mass": {"a": jfric.Mass("y", 1.0), "b": jfric.Mass("x", 1.0)},
                "load": {
                    "w": jfric.Load("y", -9.81),
                    "p": jfric.Load("x", jfric.Harmonic(3.0, 4.0)),
                },
                "spring": jfric.Spring("x", 10.0),
                "friction": {"brake": jfric.Friction("x", limit=x[0])},
                "contact": {"floor": jfric.Contact("y", gap=0.0)},
                "state": {
                    "T": jfric.State(f"({HEAT})/C - z.T", force="-k*z.T", direction="x", unit="K"),
                    "wear": jfric.State(wear),
                },
            },
            initial={"x": START(v=x[1])},
            parameters={"C": x[2], "k": 0.5},
            time=1.0,
        )
        solver = jfric.EventDriven(adjoint=adjoint, rtol=1e-12)
        found = jfric.simulate(problem, solver, ts=jnp.array([1.0]))
        return jnp.concatenate([found.z[0], found.q[0, 1:]])

    x = jnp.array([0.6, 1.0, 2.0])
    forward = jax.jit(jax.jacfwd(lambda x: end(x, "forward")))(x)
    backward = jax.jit(jax.jacrev(lambda x: end(x, "reverse")))(x)
    np.testing.assert_allclose(forward, backward, rtol=1e-8, atol=1e-10)
    value = jax.jit(lambda x: end(x, "none"))
    difference = jnp.stack(
        [fourth_order(lambda d, e=e: value(x + d * e), 1e-3) for e in jnp.eye(3)], axis=1
    )
    np.testing.assert_allclose(forward, difference, rtol=1e-7, atol=1e-8)


def test_bad_rates_by_contacts_have_a_sentence():
    with pytest.raises(jfric.ProblemError, match=r"names 'lambda_t.brak', which is not known"):
        braked("lambda_t.brak*slip.brake")
    with pytest.raises(jfric.ProblemError, match=r"state.T.rate: .*, expected one in \(K\)/s"):
        braked("lambda_t.brake*slip.brake + 2 W")
    with pytest.raises(jfric.ProblemError, match="moreau-jean cannot represent"):
        jfric.simulate(braked(f"({HEAT})/C"), jfric.MoreauJean(dt=1e-3), ts=jnp.ones(1))


def test_files_hold_them():
    problem = loads(FILE).problem
    again = loads(jfric.to_toml(problem)).problem
    first, second = (jfric.parameters(p) for p in (problem, again))
    assert list(first) == list(second)
    assert all(jnp.array_equal(first[k], second[k]) for k in first)
    assert again.elements["state"]["p"].rate == problem.elements["state"]["p"].rate


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("(z.s - z.p)/T - c*v.x", "(z.s - z.q)/T", "state.p.rate: '(z.s - z.q)/T' names 'z.q'"),
        (
            "(z.s - z.p)/T - c*v.x",
            "(z.s - z.p)/T - c*x",
            "state.p.rate: '(z.s - z.p)/T - c*x' adds",
        ),
        ("A*z.p", "z.p*2 s", "state.p.force: found 'z.p*2 s'"),
        ('unit = "Pa"', 'unit = "Pascals"', "state.p.unit: found the unknown unit 'Pascals'"),
        ('force = "A*z.p"', "", "state.p: direction is given without force"),
        ("[state.s]", "[state.friction]", "state.p.rate: '(z.s - z.p)/T - c*v.x' names 'z.s'"),
    ],
)
def test_bad_states_have_a_sentence(old, new, sentence):
    with pytest.raises(jfric.ProblemError) as error:
        loads(FILE.replace(old, new))
    assert sentence in str(error.value)


U_HOPF = 2.410313237687
P_HOPF = U_HOPF + 10.0


def resting_valve(u=U_HOPF, **more):
    """A valve on a spring, lifted by the pressure in a vessel, in equilibrium at its Hopf point."""
    p = u + 10.0
    return jfric.Problem(
        ["u"],
        {
            "mass": jfric.Mass("u", 1.0),
            "spring": jfric.Spring("u", 1.0),
            "damper": jfric.Damper("u", 1.25),
            "state": {
                "p": jfric.State("20*(q_in - u*sqrt(z.p))", z0=p, force="z.p - 10", direction="u")
            },
            **more,
        },
        initial={"u": START(q=u)},
        parameters={"q_in": u * np.sqrt(p)},
        time=1.0,
    )


@pytest.mark.parametrize(
    "mode", ["auto", *(pytest.param(m, marks=pytest.mark.slow) for m in ("grad", "reverse"))]
)
def test_derivatives_of_a_motion_that_rests(mode):
    """Derivatives by the start and by what flows in are those of the linearised equations, though
    the motion has no errors that would shorten steps."""
    problem = resting_valve()
    names = ["initial.u.q", "initial.u.v", "state.p.z0", "parameters.q_in"]
    solver = jfric.EventDriven(adjoint="reverse" if mode == "reverse" else "auto")

    def end(x):
        values = dict(zip(names, x, strict=True))
        run = jfric.simulate(jfric.set_parameters(problem, values), solver)
        return jnp.stack([run.final.q[0], run.final.v[0], run.final.v[1]]), run.status

    root = np.sqrt(P_HOPF)
    J = np.array([[0, 1, 0, 0], [-1, -1.25, 1, 0], [-20 * root, 0, -10 * U_HOPF / root, 20]])
    J = scipy.linalg.expm(np.vstack([J, np.zeros(4)]))[:3]
    x = jnp.array([jfric.parameters(problem)[name] for name in names])
    jacobian = jax.jacfwd if mode == "auto" else jax.jacrev
    found, status = jacobian(end, has_aux=True)(x)
    assert int(status) == 0
    np.testing.assert_allclose(found, J, atol=2e-9)
    multipliers = np.sort_complex(np.linalg.eigvals(found[:, :3]))
    exact = [-0.998705698 - 0.050861850j, -0.998705698 + 0.050861850j, 3.0598e-4]
    np.testing.assert_allclose(multipliers, exact, atol=2e-9)


@pytest.mark.slow
def test_an_equilibrium_as_an_orbit_has_the_multipliers_of_its_linearisation():
    """A load without size gives the period."""
    load = {"load": jfric.Load("u", jfric.Harmonic(0.0, omega=2.0 * np.pi))}
    orbit = jfric.periodic_orbit(resting_valve(**load))
    assert int(orbit.status) == 0
    found = np.sort_complex(np.asarray(orbit.multipliers))
    # What is behind a state does not move.
    exact = [-0.998705698 - 0.050861850j, -0.998705698 + 0.050861850j, 0.0, 3.0598e-4]
    np.testing.assert_allclose(found, exact, atol=2e-9)


@pytest.mark.slow
def test_derivatives_at_rest_where_stiffness_changes_in_time():
    """A spring that a formula makes stiffer and softer twenty times a second leaves rest alone;
    the equations of small motions change all the time."""
    force = "-(1 + 0.5*cos(20*t))*u - u^3"
    problem = jfric.Problem(
        ["u"],
        {
            "mass": jfric.Mass("u", 1.0),
            "state": {"still": jfric.State("0*z.still", force=force, direction="u")},
        },
        initial={"u": START()},
        time=5.0,
    )

    def end(x):
        values = {"initial.u.q": x[0], "initial.u.v": x[1]}
        run = jfric.simulate(jfric.set_parameters(problem, values))
        return jnp.stack([run.final.q[0], run.final.v[0]])

    options = {"rtol": 1e-12, "atol": 1e-14, "method": "DOP853"}
    rate = lambda t, y: [y[1], -(1.0 + 0.5 * np.cos(20.0 * t)) * y[0]]  # noqa: E731
    exact = [solve_ivp(rate, (0.0, 5.0), start, **options).y[:, -1] for start in np.eye(2)]
    np.testing.assert_allclose(jax.jacfwd(end)(jnp.zeros(2)), np.transpose(exact), atol=1e-8)


@pytest.mark.parametrize("support", ["belt", pytest.param("base", marks=pytest.mark.slow)])
def test_the_heat_of_what_sticks_is_none(support):
    """A body that sticks to a moving support does not slip, whatever rounding leaves of it."""
    direction, moving = "x", {"belt": jfric.Harmonic(0.3, omega=3.0)}
    elements = {"mass": jfric.Mass("x", 1.0), "spring": jfric.Spring("x", 4.0)}
    if support == "base":
        elements["base"] = {"table": jfric.Base(jfric.Harmonic(0.1, omega=3.0, phase=np.pi / 2))}
        direction, moving = ("x", "table"), {}
    elements["friction"] = {"brake": jfric.Friction(direction, limit=50.0, **moving)}
    elements["state"] = {"heat": jfric.State(HEAT, unit="J")}
    problem = jfric.Problem(["x"], elements, initial={"x": START()}, time=2.0)
    run = jfric.simulate(problem, jfric.EventDriven(max_steps=500)).check()
    assert int(run.steps) < 100
    assert float(run.final.v[1]) == 0.0
    moved = 0.1 * (1.0 - np.cos(6.0)) if support == "belt" else 0.1 * (np.cos(6.0) - 1.0)
    assert float(run.final.q[0]) == pytest.approx(moved, rel=1e-9)


@pytest.mark.slow
def test_a_state_whose_rate_is_a_difference_may_rest():
    """A rate of rounding errors alone shortened steps without end."""
    problem = jfric.Problem(
        ["x"],
        {
            "mass": jfric.Mass("x", 1.0),
            "spring": jfric.Spring("x", 1e5),
            "load": jfric.Load("x", 0.3e5),
            "friction": {"brake": jfric.Friction("x", limit=1e-3)},
            "state": {"e": jfric.State("(lambda_t.brake - 1e5*(x - 0.1) + 2e4)*(1 + sin(7*x))")},
        },
        initial={"x": START(q=0.3)},
        time=2.0,
    )
    run = jfric.simulate(problem, jfric.EventDriven(max_steps=500)).check()
    assert abs(float(run.final.v[1])) < 1e-9


@pytest.mark.slow
def test_a_force_by_a_formula_is_that_of_other_elements():
    """Gravity of a pendulum, drag and Duffing's spring as one formula, under friction; a carried
    load grows with it like with theirs."""

    def made(**forces):
        elements = {
            "mass": jfric.Mass("x", 1.5),
            "friction": jfric.Friction("x", limit=0.2, kappa=0.1, load=list(forces)),
            "load": jfric.Load("x", jfric.Harmonic(4.0, omega=3.0)),
        }
        return jfric.Problem({"x": "rotation"}, elements | forces, parameters={"k": 2.0}, time=3.0)

    spring = made(
        pendulum=jfric.elements.Pendulum("x", m=1.0, L=1.0),
        polynomial_spring=jfric.elements.PolynomialSpring("x", [2.0, 0.0, 0.7]),
    )
    formula = made(force=jfric.Force("x", "-9.81*sin(x) - k*x - 0.7*x^3"))
    field = made(force=jfric.Force("x", _restoring))
    observed = "final.x, final.v.x, max.v.x, max.force.force"
    found = [jfric.observe(p, observed.removesuffix(", max.force.force")) for p in (spring,)]
    found += [jfric.observe(p, observed) for p in (formula, field)]
    for other in found[1:]:
        for name, value in found[0].values.items():
            np.testing.assert_allclose(other.values[name], value, rtol=0, atol=1e-8)
    assert found[1].values["max.force.force"] == found[2].values["max.force.force"]


def _restoring(t, q, v, z, p):
    return -9.81 * jnp.sin(q[0]) - p["k"] * q[0] - 0.7 * q[0] ** 3


def test_a_force_by_a_formula_in_a_file(tmp_path):
    text = """
        dofs = ["x"]
        time = { end = "1 s" }
        parameters = { c = "2 N*s/m" }
        [mass]
        dof = "x"
        m = "1 kg"
        [state.p]
        rate = "-z.p"
        z0 = 3.0
        unit = "N"
        [force.f]
        dof = "x"
        F = "z.p - c*v.x"
    """
    problem = loads(text).problem
    again = loads(dump(problem)).problem
    for p in (problem, again):
        found = jfric.observe(p, "final.v.x").values["final.v.x"]
        # v' = 3 exp(-t) - 2 v from rest.
        assert abs(found - 3.0 * (np.exp(-1.0) - np.exp(-2.0))) < 1e-9
    slope = jax.grad(
        lambda c: jfric.observe(
            jfric.set_parameters(problem, {"parameters.c": c}), "final.v.x"
        ).values["final.v.x"]
    )(2.0)
    h = 1e-4
    v = lambda c: 3.0 * (np.exp(-1.0) - np.exp(-c)) / (c - 1.0)  # noqa: E731
    assert abs(slope - (v(2 + h) - v(2 - h)) / (2 * h)) < 1e-7
    for formula, said in {
        "z.q": "names 'z.q', which is not known",
        "c*x": "expected one in N or N\\*m",
        "sign(x)": "cannot be read",
    }.items():
        with pytest.raises(jfric.ProblemError, match=rf"force\.f\.F: .*{said}"):
            loads(text.replace("z.p - c*v.x", formula))


def _driven() -> jfric.Problem:
    """A cart with a motor whose current is a state, under a harmonic voltage."""
    return jfric.Problem(
        ["x"],
        {
            "mass": jfric.Mass("x", 1.0),
            "spring": jfric.Spring("x", 4.0),
            "damper": jfric.Damper("x", 1.0),
            "motor": jfric.Motor("x", kt=0.5, V=jfric.Harmonic(2.0, omega=3.0), R=1.0, L=0.5),
        },
        time=3.0,
    )


def test_returns_hold_states_of_elements():
    """A section named the last position again in place of the current."""
    problem = _driven()
    found = jfric.poincare_section(problem, 1.0, returns=3)
    solution = jfric.simulate(problem, ts=jnp.arange(1.0, 4.0))
    for name in ("q", "v", "z"):
        np.testing.assert_allclose(getattr(found, name), getattr(solution, name), rtol=1e-9)


@pytest.mark.slow
def test_basins_of_a_system_with_states():
    """They ended in an error of array shapes."""
    starts = {"initial.x.q": [-1.0, 1.0]}
    found = jfric.basins(_driven(), starts, progress=False, give_up=60)
    (attractor,) = found.attractors
    w = 3.0
    # m x'' + d x' + k x = kt i,  L i' + R i = V - kt x', phasors of sin.
    matrix = np.array([[4.0 - w**2 + 1j * w, -0.5], [0.5j * w, 1.0 + 0.5j * w]])
    x, i = np.linalg.solve(matrix, [0.0, 2.0])
    for value, exact in ((attractor.q, x.imag), (attractor.v, w * x.real), (attractor.z, i.imag)):
        np.testing.assert_allclose(value, [exact], atol=1e-5)


def test_a_comparison_asks_for_positions_only():
    """It asked for measured currents, too."""
    t = np.linspace(0.0, 1.0, 11)
    record = jfric.Experiment(t, y={"x": np.sin(t)})
    friction = {"friction": jfric.Friction("x", 0.1, N=1.0)}
    problem = _driven()
    problem = jfric.Problem(["x"], problem.elements | friction, time=1.0)
    with pytest.raises(jfric.ProblemError) as error:
        jfric.compare_laws(problem, record, folds=40)
    assert not str(error.value).startswith("y.")
