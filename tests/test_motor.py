"""Motors: random circuits against SciPy, closed forms, friction, files, messages, derivatives."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from references.piecewise_motion import slid
from scipy.integrate import solve_ivp

import jfric
from jfric.elements import Motor
from jfric.files.read_toml import loads

jax.config.update("jax_enable_x64", True)
TIGHT = {"method": "DOP853", "rtol": 1e-12, "atol": 1e-13}
NAMES = ("kt", "kb", "R", "L", "J", "i0", "k", "c", "amplitude", "omega", "offset")


def axis(x, **more):
    """A rotor on a spring and a damper, driven by a sine about an offset."""
    voltage = jfric.functions.Sum([jfric.Harmonic(x["amplitude"], x["omega"]), x["offset"]])
    motor = Motor("phi", x["kt"], voltage, x["R"], x["L"], x["kb"], J=x["J"], i0=x["i0"], **more)
    return jfric.Problem(
        {"phi": "rotation"},
        {
            "motor": motor,
            "spring": jfric.Spring("phi", x["k"]),
            "damper": jfric.Damper("phi", x["c"]),
        },
        initial={"phi": jfric.InitialState(q=0.3, v=-1.0)},
        time=1.0,
    )


def numbers(rng, count):
    low = np.array([0.05, 0.05, 0.5, 2e-3, 0.01, -1.0, 0.0, 0.0, 1.0, 2.0, -3.0])
    high = np.array([0.5, 0.5, 4.0, 0.1, 0.1, 1.0, 5.0, 0.1, 12.0, 40.0, 3.0])
    return {
        k: jnp.asarray(rng.uniform(a, b, count)) for k, a, b in zip(NAMES, low, high, strict=True)
    }


def test_random_circuits_agree_with_scipy():
    """Current, angle and speed of random motors with an inductance, to 1e-10."""
    lanes = numbers(np.random.default_rng(4901), 12)
    one = lambda x: jfric.simulate(axis(x), jfric.EventDriven(flow="exact"), ts=jnp.ones(1))  # noqa: E731
    found = jax.jit(jax.vmap(one))(lanes)
    assert not np.any(found.status)
    for n in range(12):
        x = {k: float(v[n]) for k, v in lanes.items()}

        def rate(t, y, x=x):
            q, v, i = y
            u = x["offset"] + x["amplitude"] * np.sin(x["omega"] * t)
            a = (x["kt"] * i - x["k"] * q - x["c"] * v) / x["J"]
            return [v, a, (u - x["R"] * i - x["kb"] * v) / x["L"]]

        end = solve_ivp(rate, (0.0, 1.0), [0.3, -1.0, x["i0"]], **TIGHT).y[:, -1]
        own = [found.q[n, 0, 0], found.v[n, 0, 0], found.z[n, 0, 0]]
        np.testing.assert_allclose(own, end, rtol=1e-10, atol=1e-10)


def test_without_inductance_the_current_follows_at_once():
    """A torque ``kt V/R`` and a damper ``kt kb/R``: the solution of a mass with a damper."""
    motor = Motor("phi", kt=0.2, V=6.0, R=3.0, kb=0.25, L=0, J=0.01)
    solution = jfric.simulate(jfric.Problem({"phi": "rotation"}, {"motor": motor}, time=1.0))
    rate = 0.2 * 0.25 / 3.0 / 0.01
    expected = 6.0 / 0.25 * -np.expm1(-rate)
    assert float(solution.final.v[0]) == pytest.approx(expected, rel=1e-13)
    assert solution.states == ()
    driven = Motor("phi", kt=0.2, i=jfric.Ramp(3.0), J=0.01)
    solution = jfric.simulate(jfric.Problem({"phi": "rotation"}, {"motor": driven}, time=1.0))
    assert float(solution.final.v[0]) == pytest.approx(0.2 * 1.5 / 0.01, rel=1e-13)


def test_a_rigid_gear_is_a_direction():
    """With the angle ``50 q`` of the rotor the torque grows 50 times, the inertia 2500 times."""
    arm = {"arm": jfric.Mass("q", 1.0)}
    geared = Motor({"q": 50.0}, kt=0.1, V=10.0, R=1.0, J=1e-4)
    plain = Motor("q", kt=5.0, V=10.0, R=1.0, J=0.25)
    ends = [
        jfric.simulate(jfric.Problem({"q": "rotation"}, {"mass": arm, "motor": m}, time=1.0)).final
        for m in (geared, plain)
    ]
    np.testing.assert_allclose(ends[0].v, ends[1].v, rtol=1e-13)


@pytest.mark.parametrize("name", ["m", pytest.param("motor", marks=pytest.mark.slow)])
def test_friction_beside_a_motor_and_friction_by_its_torque(name):
    """A voltage that reverses: stops and break-aways, where friction grows with the torque that
    the motor carries at this instant, by SciPy."""
    kt, R, L, J = 0.3, 2.0, 0.05, 0.02
    motor = Motor("q", kt=kt, V=jfric.Harmonic(6.0, 5.0), R=R, L=L, J=J)
    rubs = jfric.Friction("q", limit=0.2, kappa=0.3, load="motor.m" if name == "m" else "motor")
    problem = jfric.Problem({"q": "rotation"}, {"motor": {name: motor}, "friction": rubs}, time=3.0)
    solution = jfric.simulate(problem, ts=jnp.linspace(0.0, 3.0, 31))
    solution.check()

    def rate(t, y):
        return 6.0 * np.sin(5.0 * t) - R * y[2] - kt * y[1]

    q, v, i, times = slid(
        push=lambda t, y: kt * y[2],
        limit=lambda t, y, s: 0.2 + 0.3 * abs(kt * y[2]),
        states=lambda t, y: [rate(t, y) / L],
        kinks=[lambda t, y: y[2]],
        mass=J,
        start=[0.0, 0.0, 0.0],
        end=3.0,
    )
    found = [e["time"] for e in solution.event_table() if e["contact"] == "friction"]
    np.testing.assert_allclose(found, times, rtol=0, atol=1e-9)
    final = [solution.final.q[0], solution.final.v[0], solution.z[-1, 0]]
    np.testing.assert_allclose(final, [q, v, i], rtol=0, atol=1e-9)
    assert float(jnp.max(jfric.contact_residual(problem, solution))) < 1e-11


def test_cogging_holds_in_places():
    x = {k: float(v[0]) for k, v in numbers(np.random.default_rng(77), 1).items()}
    problem = axis(x, cogging=0.4, periods=7, phase=0.3)

    def rate(t, y):
        q, v, i = y
        u = x["offset"] + x["amplitude"] * np.sin(x["omega"] * t)
        own = -0.4 * np.sin(7 * q + 0.3)
        a = (x["kt"] * i - x["k"] * q - x["c"] * v + own) / x["J"]
        return [v, a, (u - x["R"] * i - x["kb"] * v) / x["L"]]

    end = solve_ivp(rate, (0.0, 1.0), [0.3, -1.0, x["i0"]], **TIGHT).y[:, -1]
    found = jfric.simulate(problem, jfric.EventDriven(rtol=1e-11), ts=jnp.ones(1))
    own = [found.final.q[0], found.final.v[0], found.z[-1, 0]]
    np.testing.assert_allclose(own, end, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("mode", ["forward", pytest.param("reverse", marks=pytest.mark.slow)])
def test_derivatives_of_the_settled_speed(mode):
    """``v = kt V/(kt kb + R c)`` long after the start."""

    def speed(x):
        kt, kb, R, V, c = x
        motor = Motor("q", kt=kt, V=V, R=R, L=1e-3, kb=kb, J=1e-3)
        elements = {"motor": motor, "damper": jfric.Damper("q", c)}
        problem = jfric.Problem({"q": "rotation"}, elements, time=2.0)
        return jfric.simulate(problem, jfric.EventDriven(adjoint=mode)).final.v[0]

    x = jnp.array([0.3, 0.35, 2.0, 12.0, 0.05])
    expected = jax.grad(lambda x: x[0] * x[3] / (x[0] * x[1] + x[2] * x[4]))(x)
    derivative = jax.grad if mode == "reverse" else jax.jacfwd
    np.testing.assert_allclose(derivative(speed)(x), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.slow  # its sibling: orbits with states of elements, and circuits by SciPy
def test_the_current_of_a_rotor_that_is_held():
    """``V/|R + j w L|``, long after the start, as the orbit and as the motion."""
    motor = Motor("q", kt=0.3, V=jfric.Harmonic(4.0, 9.0), R=2.0, L=0.1, J=1.0)
    held = {"motor": {"m": motor}, "friction": jfric.Friction("q", limit=10.0)}
    problem = jfric.Problem({"q": "rotation"}, held, time=20.0)
    solution = jfric.simulate(problem, ts=jnp.linspace(19.0, 20.0, 50))
    lag = np.arctan2(0.9, 2.0)
    expected = 4.0 / np.hypot(2.0, 0.9) * np.sin(9.0 * np.asarray(solution.ts) - lag)
    np.testing.assert_allclose(solution.z[:, 0], expected, rtol=0, atol=1e-12)
    assert np.all(np.asarray(solution.v) == 0.0)
    orbit = jfric.periodic_orbit(problem)
    assert float(orbit.period) == pytest.approx(2.0 * np.pi / 9.0)
    assert float(orbit.state[-1]) == pytest.approx(4.0 / np.hypot(2.0, 0.9) * -np.sin(lag))


def test_the_other_solvers_agree():
    x = {k: float(v[0]) for k, v in numbers(np.random.default_rng(78), 1).items()}
    problem = axis(x)
    exact = jfric.simulate(problem).final.v[0]
    for solver, tolerance in ((jfric.MoreauJean(dt=1e-4), 2e-3), (jfric.Smoothed(), 1e-6)):
        assert float(jfric.simulate(problem, solver).final.v[0]) == pytest.approx(
            float(exact), rel=tolerance
        )
    with pytest.raises(jfric.ProblemError, match=r"motor: found a memory, which .*quasi-static"):
        jfric.simulate(problem, jfric.QuasiStatic())


FILE = """
dofs = {q = "rotation"}
time = {end = "1 s"}
[motor.m]
dof = "q"
kt = "50 mN*m/A"
R = "1.5 ohm"
L = "2 mH"
J = "20 g*cm^2"
V = {harmonic = {amplitude = "12 V", frequency = "2 Hz"}}
cogging = "1 mN*m"
periods = 12
"""


def test_files_and_paths():
    problem = loads(FILE).problem
    again = loads(jfric.to_toml(problem)).problem
    paths = jfric.parameters(problem)
    assert {"motor.m.kt", "motor.m.R", "motor.m.L", "motor.m.V.amplitude"} <= set(paths)
    assert float(paths["motor.m.J"]) == pytest.approx(2e-6)
    ends = [
        float(jfric.observe(p, "final.z.motor.m").values["final.z.motor.m"])
        for p in (problem, again)
    ]
    assert ends[0] == ends[1] != 0.0
    assert jfric.elements.Motor is Motor


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "motor.V: found neither of V and i, exactly one is needed"),
        ({"V": 1.0, "i": 1.0, "R": 1.0}, "motor.V: found both of V and i"),
        ({"V": 1.0}, "motor.R: is missing"),
        ({"i": 1.0, "L": 0.1}, "motor.L: is given with i"),
        ({"V": 1.0, "R": 0.0}, "motor.R: found 0"),
        ({"i": 1.0, "cogging": 0.1}, "motor.cogging: is given without periods"),
        ({"V": 1.0, "R": "2 V"}, "motor.R: found .* expected a resistance such as '1.5 ohm'"),
    ],
)
def test_contradictions_name_the_field(fields, message):
    with pytest.raises(jfric.ProblemError, match=message):
        jfric.Problem({"q": "rotation"}, {"motor": Motor("q", kt=1.0, J=1.0, **fields)})


def test_a_motor_is_no_part_of_a_model_for_mujoco():
    problem = jfric.Problem({"q": "rotation"}, {"motor": Motor("q", kt=1.0, i=1.0, J=1.0)})
    with pytest.raises(jfric.ProblemError, match="motor: a motor cannot be written as MJCF"):
        jfric.exports.export_mjcf(problem)
