"""Limits of a motor's current and heat of its winding: SciPy with events, messages, files."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from generators.manual.sketch import plot_system
from scipy.integrate import solve_ivp

import jfric
from jfric.elements import Motor
from jfric.files.read_toml import loads
from jfric.results.signals import look_up
from jfric.system.states import state_units

jax.config.update("jax_enable_x64", True)
TIGHT = {"method": "DOP853", "rtol": 1e-12, "atol": 1e-13}
KT, KB, R, L, J, I_MAX = 0.3, 0.25, 2.0, 0.05, 0.02, 2.0


def axis(time=2.0, c=0.05, **motor):
    """A rotor with a damper and a spring to the ground."""
    given = {"kt": KT, "J": J, "i_max": I_MAX} | motor
    elements = {
        "motor": Motor("q", **given),
        "damper": jfric.Damper("q", c),
        "spring": jfric.Spring("q", 0.4),
    }
    return jfric.Problem({"q": "rotation"}, elements, time=time)


def turned(current, events, breaks=(), c=0.05):
    """Motion of the rotor by a current ``current(t, q, v)`` that is smooth between ``breaks`` and
    the zeros of ``events``, where the integration begins anew; and the times of these zeros."""
    t, y, times = 0.0, [0.0, 0.0], []
    for event in events:
        event.terminal = True
    for end in (*breaks, 2.0):

        def rate(t, y, end=end):
            inside = min(t, end - 1e-13)
            return [y[1], (KT * current(inside, *y) - c * y[1] - 0.4 * y[0]) / J]

        while t < end:
            found = solve_ivp(rate, (t, end), y, events=events, **TIGHT)
            t, y = found.t[-1], found.y[:, -1]
            if found.status == 1:
                times.append(t)
                # Past the zero, which would be found again.
                y = solve_ivp(rate, (t, t + 1e-9), y, **TIGHT).y[:, -1]
                t = t + 1e-9
    return np.array([*y]), np.array(times)


def test_a_voltage_without_inductance():
    """A wave that meets both limits; a damper in series with a slider."""
    solution = jfric.simulate(axis(V=jfric.Harmonic(12.0, 9.0), R=R, kb=KB)).check()
    free = lambda t, q, v: (12.0 * np.sin(9.0 * t) - KB * v) / R  # noqa: E731
    events = [lambda t, y, s=s: free(t, *y) - s * I_MAX for s in (1.0, -1.0)]
    end, times = turned(lambda *x: np.clip(free(*x), -I_MAX, I_MAX), events)
    np.testing.assert_allclose([solution.final.q[0], solution.final.v[0]], end, atol=1e-10)
    found = [e["time"] for e in solution.event_table()]
    np.testing.assert_allclose(found, times, rtol=0, atol=1e-9)
    assert len(times) > 8
    assert not int(solution.flags)


LINES = [0.0, 0.5, 1.5], [-3.0, 5.0, -4.0]
STEPS = [0.7, 1.2], [1.5, 5.0, -9.0]
#: Currents as functions of time, as formulas, and the times at which these break.
GIVEN = {
    "lines": (jfric.PiecewiseLinear(*LINES), lambda t: np.interp(t, *LINES), [0.5, 1.5]),
    "steps": (
        jfric.functions.Sum([jfric.Steps(*STEPS), jfric.Ramp(0.9)]),
        lambda t: STEPS[1][np.searchsorted(STEPS[0], t, side="right")] + 0.9 * t,
        [0.7, 1.2],
    ),
    "number": (4.0, lambda t: 4.0, []),
}


@pytest.mark.parametrize(
    "name", [pytest.param(x, marks=pytest.mark.slow) if x != "lines" else x for x in GIVEN]
)
def test_a_given_current(name):
    given, current, breaks = GIVEN[name]
    solution = jfric.simulate(axis(i=given)).check()
    events = [lambda t, y, s=s: current(t) - s * I_MAX for s in (1.0, -1.0)]
    end, _ = turned(lambda t, q, v: np.clip(current(t), -I_MAX, I_MAX), events, breaks)
    np.testing.assert_allclose([solution.final.q[0], solution.final.v[0]], end, atol=1e-10)


def held(V, end=2.0, start=(0.0, 0.0, 0.0), limit=I_MAX):
    """Motion of a rotor with an inductance, whose current is held at the limits, by SciPy."""
    t, y, times = 0.0, np.array(start), []

    def spare(t, y, s):
        return (V(t) - R * s * limit - KB * y[1]) * s

    side = float(np.sign(y[2]))
    at = side if abs(y[2]) == limit and spare(t, y, side) > 0.0 else 0.0
    while t < end:

        def rate(t, y, at=at):
            i = at * limit if at else y[2]
            di = 0.0 if at else (V(t) - R * i - KB * y[1]) / L
            return [y[1], (KT * i - 0.05 * y[1] - 0.4 * y[0]) / J, di]

        if at:
            events = [lambda t, y, at=at: spare(t, y, at)]
        else:
            events = [lambda t, y: y[2] - limit, lambda t, y: y[2] + limit]
            events[0].direction, events[1].direction = 1.0, -1.0
        for event in events:
            event.terminal = True
        found = solve_ivp(rate, (t, end), y, events=events, **TIGHT)
        t, y = found.t[-1], found.y[:, -1]
        if found.status == 1:
            times.append(t)
            at = 0.0 if at else float(np.sign(y[2]))
            y[2] = np.clip(y[2], -limit, limit)
    return y, np.array(times)


@pytest.mark.slow
def test_a_voltage_with_inductance():
    """The current stays at the limit as long as the voltage would push it further; the derivative
    of the end by the limit."""

    def run(limit):
        problem = axis(V=jfric.Harmonic(12.0, 9.0), R=R, kb=KB, L=L, i_max=limit)
        return jfric.simulate(problem, ts=jnp.linspace(0.0, 2.0, 401))

    limit, one = jnp.asarray(I_MAX), jnp.ones(())
    solution, slope = jax.jit(lambda x: jax.jvp(run, (x,), (one,)))(limit)
    wave = lambda t: 12.0 * np.sin(9.0 * t)  # noqa: E731
    end, times = held(wave)
    final = [solution.q[-1, 0], solution.v[-1, 0], solution.z[-1, 0]]
    np.testing.assert_allclose(final, end, rtol=0, atol=1e-10)
    found = solution.events.time[: int(solution.events.count)]
    np.testing.assert_allclose(found, times, rtol=0, atol=1e-9)
    assert float(jnp.abs(solution.z).max()) == I_MAX
    assert not int(solution.status)
    assert not int(solution.flags)
    sides = [held(wave, limit=I_MAX + d)[0] for d in (1e-5, -1e-5)]
    expected = (sides[0] - sides[1]) / 2e-5
    np.testing.assert_allclose([slope.q[-1, 0], slope.v[-1, 0]], expected[:2], rtol=1e-5)
    assert abs(expected[1]) > 1.0


CIRCUITS = {"i": {"i": 0.0}, "V": {"V": 0.0, "R": R, "kb": KB}}
CIRCUITS["L"] = CIRCUITS["V"] | {"L": L}


@pytest.mark.parametrize(
    "kind", ["L", *(pytest.param(x, marks=pytest.mark.slow) for x in ("i", "V"))]
)
def test_a_controller_sets_a_current_or_voltage_beyond_the_limit(kind):
    """A sampled loop, with the motion between its samples by SciPy."""
    problem, T = axis(time=0.5, **CIRCUITS[kind]), 0.02
    drives = f"motor.{'i' if kind == 'i' else 'V'}"
    loop = jfric.Controller("q", drives, kp=40.0, kd=1.0, period=T, reference=0.5)
    elements = problem.elements | {"controller": loop}
    solution = jfric.simulate(jfric.Problem(problem.dofs, elements, time=0.5)).check()
    y, before = np.zeros(3), 0.0
    for _ in range(25):
        u = 40.0 * (0.5 - y[0]) - (y[0] - before) / T
        before = y[0]
        if kind == "L":
            y, _ = held(lambda t, u=u: u, T, y)
            continue

        def rate(t, y, u=u):
            i = np.clip(u if kind == "i" else (u - KB * y[1]) / R, -I_MAX, I_MAX)
            return [y[1], (KT * i - 0.05 * y[1] - 0.4 * y[0]) / J, 0.0]

        y = solve_ivp(rate, (0.0, T), y, max_step=1e-3, **TIGHT).y[:, -1]
    final = [solution.final.q[0], solution.final.v[0]]
    np.testing.assert_allclose(final, y[:2], rtol=0, atol=1e-9)


def warm(**more):
    """A stalled motor that warms its winding."""
    given = {"kt": KT, "V": 12.0, "R": R, "L": L, "J": J, "C_th": 2.0, "R_th": 3.0}
    elements = {
        "motor": Motor("q", **given | more),
        "friction": jfric.Friction("q", limit=10.0),
    }
    return jfric.Problem({"q": "rotation"}, elements, time=6.0)


def test_a_winding_warms_up():
    """A resistance that grows with the temperature, until the current leaves its limit."""
    end = jnp.array([6.0])
    problem = warm(alpha=3.9e-3, T_amb=290.0, R_th=None, i_max=5.5)
    solution = jfric.simulate(problem, jfric.EventDriven(rtol=1e-9), ts=end).check()

    def rate(t, y, at=0.0):
        hot = R * (1.0 + 3.9e-3 * (y[1] - 290.0))
        i = at or y[0]
        return [0.0 if at else (12.0 - hot * i) / L, hot * i**2 / 2.0]

    def reaches(t, y):
        return y[0] - 5.5

    def leaves(t, y):
        return 12.0 - R * (1.0 + 3.9e-3 * (y[1] - 290.0)) * 5.5

    reaches.terminal = leaves.terminal = True
    first = solve_ivp(rate, (0.0, 6.0), [0.0, 290.0], events=reaches, **TIGHT)
    held = solve_ivp(
        lambda t, y: rate(t, y, 5.5), (first.t[-1], 6.0), first.y[:, -1], events=leaves, **TIGHT
    )
    last = solve_ivp(rate, (held.t[-1], 6.0), held.y[:, -1], **TIGHT)
    np.testing.assert_allclose(solution.z[-1], last.y[:, -1], rtol=1e-8)
    found = [e["time"] for e in solution.event_table()]
    np.testing.assert_allclose(found, [first.t[-1], held.t[-1]], rtol=1e-8)


@pytest.mark.slow  # its sibling: a body that a belt holds against a strong damper
def test_a_winding_at_the_limit_warms_up_as_a_lag():
    """A current held for a million of its time constants is not taken for one at both limits."""
    solution = jfric.simulate(warm(L=1e-5, i_max=2.0), ts=jnp.array([6.0])).check()
    assert [e["contact"] for e in solution.event_table()] == ["motor.upper"]
    assert not int(solution.flags)
    np.testing.assert_allclose(solution.z[-1], [2.0, 293.15 + 24.0 * -np.expm1(-1.0)], rtol=1e-6)


@pytest.mark.slow  # its sibling: a voltage with inductance
@pytest.mark.parametrize("kind", CIRCUITS)
def test_derivatives_by_the_circuit(kind):
    given = CIRCUITS[kind] | {"i" if kind == "i" else "V": jfric.Ramp(30.0)}
    problem = axis(time=0.5, **given)
    paths = [x for x in ("motor.i_max", "motor.R", "motor.kt") if x in jfric.parameters(problem)]
    start = jnp.stack([jfric.get_parameter(problem, x) for x in paths])

    def run(x):
        changed = jfric.set_parameters(problem, dict(zip(paths, x, strict=True)))
        return jfric.simulate(changed).final.v[0]

    step = 1e-5 * jnp.eye(len(paths))
    at = jnp.concatenate([start[None], start + step, start - step])
    value, slope = jax.jit(jax.vmap(lambda x: (run(x), jax.jacfwd(run)(x))))(at)
    up, down = jnp.split(value[1:], 2)
    np.testing.assert_allclose(slope[0], (up - down) / 2e-5, rtol=1e-6, atol=1e-8)
    assert abs(float(slope[0, 0])) > 0.1


FILE = """
dofs = {q = "rotation"}
time = {end = "1 s"}
[motor.m]
dof = "q"
kt = "0.3 N*m/A"
R = "2 ohm"
L = "50 mH"
J = "0.02 kg*m^2"
V = "12 V"
i_max = "2 A"
C_th = "40 J/K"
R_th = "3 K/W"
T_amb = "300 K"
alpha = "0.0039 /K"
"""


def test_files_and_paths():
    problem = loads(FILE).problem
    again = loads(jfric.to_toml(problem)).problem
    assert jfric.to_toml(again) == jfric.to_toml(problem)
    assert {"motor.m.T_amb", "motor.m.alpha"} <= set(jfric.parameters(problem))
    assert state_units(problem) == {"motor.m": "A", "motor.m.temperature": "K"}


@pytest.mark.slow  # its sibling: files and paths
def test_limits_are_swept():
    names = "max.z.motor.m, final.z.motor.m.temperature"
    table = jfric.sweep(loads(FILE).problem, {"motor.m.i_max": [1.0, 2.0, 3.0]}, observe=names)
    np.testing.assert_allclose(table["max.z.motor.m"], [1.0, 2.0, 3.0], rtol=1e-12)
    assert np.all(np.diff(table["final.z.motor.m.temperature"]) > 0.1)


def test_forces_of_parts_are_quantities():
    """Those of a motor, although no element of the problem has the section of the part."""
    for given, part in ((CIRCUITS["V"], "drive"), (CIRCUITS["V"] | {"i_max": None}, "back_emf")):
        name = f"force.motor.{part}"
        found, force = look_up(axis(**given), name)
        assert (found, force.name, force.unit) == (name, f"motor.{part}", "N m")


def test_what_holds_a_current_has_its_units():
    problem = axis(**CIRCUITS["L"])
    units = {x: look_up(problem, x)[1].unit for x in ("lambda_t.motor.upper", "slip.motor.lower")}
    assert units == {"lambda_t.motor.upper": "A/s", "slip.motor.lower": "A"}


@pytest.mark.slow  # its sibling: forces of parts are quantities
def test_the_torque_of_a_limited_drive():
    quantity = "max.force.motor.drive"
    found = jfric.observe(axis(V=100.0, R=R), quantity).values
    assert float(found[quantity]) == pytest.approx(KT * I_MAX, rel=1e-14)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"i": 1.0, "i_max": 0.0}, "motor.i_max: found 0, must be positive"),
        ({"i": jfric.Harmonic(1.0, 2.0)}, "motor.i: found a Harmonic with i_max, whose limits are"),
        ({"V": 1.0, "R": 1.0, "kb": 0.0}, "motor.kb: found 0 with i_max and without L"),
        ({"V": 1.0, "R": 1.0, "L": 1.0, "i0": -3.0}, "motor.i0: found -3, must lie within -i_max"),
        ({"i": 1.0, "C_th": 1.0}, "motor.C_th: is given without L; the temperature follows"),
        ({"i": 1.0, "alpha": 1.0}, "motor.alpha: is given without C_th, the heat capacity"),
        ({"i": 1.0, "i_max": "2 V"}, "motor.i_max: found .* expected a current such as '2 A'"),
    ],
)
def test_contradictions_name_the_field(fields, message):
    with pytest.raises(jfric.ProblemError, match=message):
        axis(**fields)


@pytest.mark.slow  # its sibling: solvers take what they say, of every feature
def test_the_other_solvers_agree():
    wave = jfric.Harmonic(12.0, 9.0)
    end, _ = held(lambda t: 12.0 * np.sin(9.0 * t), 0.5)
    problem = axis(time=0.5, **CIRCUITS["L"] | {"V": wave})
    stepped = jfric.simulate(problem, jfric.MoreauJean(dt=1e-4), ts=jnp.array([0.5]))
    np.testing.assert_allclose([stepped.q[0, 0], stepped.v[0, 0]], end[:2], rtol=1e-3)
    assert float(jnp.abs(stepped.z).max()) <= I_MAX * (1.0 + 1e-12)
    problem = axis(time=0.5, **CIRCUITS["V"] | {"V": wave})
    exact = jfric.simulate(problem).final.v
    for solver in (jfric.MoreauJean(dt=1e-4), jfric.Smoothed()):
        np.testing.assert_allclose(jfric.simulate(problem, solver).final.v, exact, rtol=1e-3)


def test_a_sketch_shows_a_motor_in_place_of_its_parts():
    for given in CIRCUITS.values():
        drawn = plot_system(axis(**given)).axes[0]
        texts = [x.get_text() for x in drawn.texts]
        assert texts.count("M") == 1
        assert "motor: kt = 0.3 N·m/A, i_max = 2 A" in texts
        assert not any(x.startswith("motor.") for x in texts)
