"""Friction with a state of its own: Dahl, Bouc-Wen, LuGre, rate and state."""

import functools
import itertools
import re
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from differences import fourth_order
from references import lugre
from references.bouncing import bounced
from scipy.integrate import solve_ivp
from test_experiments import optimised

import jfric
from jfric.files.read_toml import loads
from jfric.solvers.bias import set_valued, stiffened
from jfric.system.bristle import BRISTLES
from jfric.system.law_checks import coefficient_remarks
from jfric.system.states import passivity_remarks

START = jfric.InitialState
SOLVER = jfric.EventDriven(rtol=1e-12)
HAND = ("u", "hand")


def section_of(element):
    return next(name for name, cls in BRISTLES.items() if cls is type(element))


def held(element, path):
    """A body that friction holds, and a hand that draws the other end along straight lines."""
    times = np.arange(len(path) + 1.0)
    elements = {
        "mass": jfric.Mass("u", 1.0),
        "friction": jfric.Friction("u", limit=1e3),
        "base": {"hand": jfric.Base(jfric.PiecewiseLinear(times, [0.0, *path]))},
        section_of(element): element,
    }
    return jfric.Problem(["u"], elements, time=times[-1])


def states_at_corners(element, path):
    problem = held(element, path)
    solution = jfric.simulate(problem, SOLVER, ts=jnp.arange(1.0, len(path) + 1.0))
    solution.check()
    return np.asarray(solution.z)[:, 0], problem, solution


def by_way(rate, path, z0=0.0):
    """States at the ends of straight ways, by SciPy in the way."""
    z, at, found = z0, 0.0, []
    for end in path:
        side = np.sign(end - at)
        span = abs(end - at)
        z = solve_ivp(
            lambda s, z, side=side: side * rate(side, z),
            (0.0, span), [z], method="DOP853", rtol=1e-13, atol=1e-15,
        ).y[0, -1]  # fmt: skip
        at = end
        found.append(z)
    return np.asarray(found)


PATH = [0.02, -0.02, 0.02, 0.004, 0.01, -0.03]


def test_dahl_is_the_closed_form_in_the_way():
    """M3: each branch tends to the limit by an exponential."""
    sigma, F_c = 100.0, 1.0
    found, problem, solution = states_at_corners(jfric.Dahl(HAND, sigma=sigma, F_c=F_c), PATH)
    at, force, expected = 0.0, 0.0, []
    for end in PATH:
        side = np.sign(end - at)
        force = side * F_c + (force - side * F_c) * np.exp(-sigma * abs(end - at) / F_c)
        at = end
        expected.append(force)
    np.testing.assert_allclose(sigma * found, expected, atol=1e-11)
    pull = np.asarray(jfric.spring_forces(problem, solution)["dahl"])
    np.testing.assert_allclose(pull, -np.asarray(expected), atol=1e-11)
    assert solution.states == ("dahl",)
    assert solution.axes == ("u",)


@pytest.mark.slow
def test_dahl_in_a_closed_cycle():
    X, sigma, F_c = 0.02, 100.0, 1.0
    problem = held(
        jfric.Dahl(HAND, sigma=sigma, F_c=F_c, z0=-0.00964027580076), [2 * X, 0.0, 2 * X]
    )
    solution = jfric.simulate(problem, SOLVER, dense=True)
    force = sigma * np.asarray(solution.evaluate(jnp.array([1.0, 2.0, 3.0])).z)[:, 0]
    np.testing.assert_allclose(np.abs(force), 0.964027580076, atol=1e-9)
    nodes, weights = np.polynomial.legendre.leggauss(40)
    lost = 0.0
    for a, sign in ((1.0, -1.0), (2.0, 1.0)):
        z = np.asarray(solution.evaluate(a + 0.5 + 0.5 * nodes).z)[:, 0]
        lost += 0.5 * weights @ (sigma * z * sign * 2 * X)
    assert lost == pytest.approx(0.041438896797, abs=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("element", "rate"),
    [
        (
            jfric.Dahl(HAND, sigma=50.0, F_c=1.0, exponent=2.5),
            lambda side, z: np.sign(1 - 50 * z * side) * np.abs(1 - 50 * z * side) ** 2.5,
        ),
        (
            jfric.BoucWen(HAND, k=7.0, beta=40.0, gamma=25.0, n=1.7, A=1.3),
            lambda side, z: 1.3 - np.abs(z) ** 1.7 * (40.0 * side * np.sign(z) + 25.0),
        ),
        (
            # Without a bound of its state.
            jfric.BoucWen(HAND, k=7.0, beta=40.0, gamma=-40.0, n=1.7),
            lambda side, z: 1.0 - np.abs(z) ** 1.7 * 40.0 * (side * np.sign(z) - 1.0),
        ),
    ],
    ids=["dahl", "bouc_wen", "bouc_wen without a bound"],
)
def test_any_exponent_agrees_with_scipy(element, rate):
    found, *_ = states_at_corners(element, PATH)
    np.testing.assert_allclose(found, by_way(rate, PATH), atol=1e-9 * np.abs(found).max())


@pytest.mark.slow
def test_bouc_wen_in_closed_form():
    """M4: an exponential and a hyperbolic tangent from rest, straight unloading."""
    one = jfric.BoucWen(HAND, k=1.0, beta=0.5, gamma=0.5)
    found, *_ = states_at_corners(one, [1.0, 0.5])
    top = 1.0 - np.exp(-1.0)
    np.testing.assert_allclose(found, [top, top - 0.5], atol=1e-11)
    two = jfric.BoucWen(HAND, k=1.0, beta=0.5, gamma=0.5, n=2.0)
    found, *_ = states_at_corners(two, [1.0, 5.0])
    np.testing.assert_allclose(found, np.tanh([1.0, 5.0]), atol=1e-11)


def drawn(sigma0, end=30.0, **changes):
    """M5: 1 kg, drawn at 0.1 m/s by a spring of 2 N/m."""
    values = {"sigma1": 1e5**0.5, "sigma2": 0.4, "F_c": 1.0, "F_s": 1.5, "v_s": 1e-3}
    elements = {
        "mass": jfric.Mass("u", 1.0),
        "base": {"hand": jfric.Base(jfric.PiecewiseLinear([0.0, 100.0], [0.0, 10.0]))},
        "spring": jfric.Spring(HAND, k=2.0),
        "lugre": jfric.LuGre("u", sigma0=sigma0, **(values | changes)),
    }
    return jfric.Problem(["u"], elements, time=end)


def test_lugre_agrees_with_scipy():
    """M5 over its first stick-slip; over 30 s it is the case m5_lugre of the verification list."""
    solution = jfric.simulate(
        drawn(1e5, end=12.0), jfric.EventDriven(rtol=1e-10), ts=jnp.array([12.0])
    )
    solution.check()
    state, times = lugre.drawn(12.0)
    assert len(times) == 4
    np.testing.assert_allclose([e["time"] for e in solution.event_table()], times, atol=1e-7)
    found = [solution.q[0, 0], solution.v[0, 0], solution.z[0, 0]]
    np.testing.assert_allclose(found, state, rtol=1e-6, atol=1e-9)


@pytest.mark.slow
def test_lugre_slides_steadily_along_its_curve():
    """Behind the fall of the curve a hand that draws steadily feels F_c + sigma2 v."""
    problem = drawn(1e3, end=60.0, sigma1=10.0, v_s=0.01)
    problem = jfric.set_parameters(
        problem, {"initial.u.v": 0.1, "initial.u.q": -0.52, "lugre.z0": 1e-3}
    )
    solution = jfric.simulate(problem, jfric.EventDriven(rtol=1e-11), ts=jnp.array([60.0]))
    assert float(solution.v[0, 0]) == pytest.approx(0.1, abs=1e-8)
    (spring,) = [
        float(x[0]) for k, x in jfric.spring_forces(problem, solution).items() if k == "spring"
    ]
    g = 1.0 + 0.5 * np.exp(-100.0)
    assert abs(spring) == pytest.approx(g + 0.4 * 0.1, abs=1e-8)


def test_stiffness_costs_few_steps():
    steps = {}
    for sigma0 in (1e2, 1e5):
        problem = drawn(sigma0, end=20.0, sigma1=sigma0**0.5)
        solution = jfric.simulate(problem, jfric.EventDriven(rtol=1e-10), ts=jnp.array([20.0]))
        solution.check()
        steps[sigma0] = int(solution.steps)
    assert steps[1e5] <= 10 * steps[1e2]


def test_one_stiff_element_beside_a_soft_one_costs_few_steps():
    """An explicit step would be shorter than ten radians of the body on its bristles."""
    stiff, end = drawn(1e7, end=3.0, sigma1=1e7**0.5), 3.0
    elements = {**stiff.elements, "dahl": jfric.Dahl("u", sigma=10.0, F_c=0.1)}
    problem = jfric.Problem(["u"], elements, time=end)
    solution = jfric.simulate(problem, jfric.EventDriven(rtol=1e-10), ts=jnp.array([end])).check()
    assert int(solution.steps) < end * 1e7**0.5 / 10.0


@pytest.mark.slow
def test_elasto_plastic_bristles_stick_and_others_creep():
    """A load that trembles below the limit: LuGre creeps on, with a breakaway it comes to rest."""
    moved = {}
    for breakaway in (None, 0.8):
        elements = {
            "mass": jfric.Mass("u", 1.0),
            "lugre": jfric.LuGre(
                "u", sigma0=1e4, sigma1=200.0, sigma2=0.4, F_c=1.0, F_s=1.0, v_s=0.01,
                breakaway=breakaway,
            ),
            "load": {
                "mean": jfric.Load("u", 0.5),
                "trembles": jfric.Load("u", jfric.Harmonic(0.2, omega=20.0)),
            },
        }  # fmt: skip
        problem = jfric.Problem(["u"], elements, time=12.0)
        ts = 2 * jnp.pi / 20.0 * jnp.array([19.0, 38.0])
        solution = jfric.simulate(problem, jfric.EventDriven(rtol=1e-10), ts=ts)
        solution.check()
        moved[breakaway] = float(solution.q[1, 0] - solution.q[0, 0])
    assert moved[None] > 1e-5
    assert abs(moved[0.8]) < 1e-11


ROCK = {"N": 1e7, "mu0": 0.6, "a": 0.01, "b": 0.015, "D_c": 1e-3, "V0": 1e-6}


def linearised(law, k, m=0.0, eta=0.0):
    """Jacobian of (distance of the hand ahead, velocity, state) in steady sliding at V0."""
    V = ROCK["V0"]

    def rates(x):
        ahead, v, psi = x
        pull = k * ahead - law.friction(v, psi, 1.0) - eta * v
        return jnp.stack([V - v, pull / m, law.rate(v, psi, 1.0)])

    pull = law.friction(V, 0.0, 1.0) + eta * V
    return jax.jacfwd(rates)(jnp.stack([pull / k, jnp.asarray(V), jnp.asarray(0.0)]))


@pytest.mark.slow
def test_a_start_may_slide_backwards_over_a_moving_support():
    """The sign of sliding was that of forwards until a first step, which was not defined."""
    ends = []
    for way in (1.0, -1.0):
        elements = {
            "mass": jfric.Mass("u", 3e13),
            "base": {"plate": jfric.Base(jfric.Ramp(1e-6 * way))},
            "spring": jfric.Spring("u", 6.5e7),
            "rate_state": jfric.RateState(("u", "plate"), psi0=1e-3, **ROCK),
        }
        start = {"u": START(q=0.0923 * way)}
        problem = jfric.Problem(["u"], elements, initial=start, time=300.0)
        run = jfric.simulate(problem, SOLVER, ts=np.array([300.0])).check()
        ends.append((float(run.final.q[0]), float(run.z[-1, 0])))
    (q, z), (q_back, z_back) = ends
    assert q_back == pytest.approx(-q, rel=1e-12)
    assert z_back == pytest.approx(z, rel=1e-9)
    assert abs(z) > 1e-4


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow) for n in ("dahl", "bouc_wen", "lugre")]
)
def test_an_impact_turns_the_sliding_of_bristles(name):
    """The sign of sliding stayed that before the impact: the velocity passes zero without being
    there, and the new sign was taken back."""
    element = {
        "dahl": jfric.Dahl("y", sigma=40.0, F_c=1.5),
        "bouc_wen": jfric.BoucWen("y", k=30.0, beta=200.0, gamma=50.0, n=1.5),
        "lugre": jfric.LuGre("y", sigma0=60.0, F_c=1.0, F_s=1.5, v_s=0.3, sigma1=0.5, sigma2=0.2),
    }[name]
    parts = {"mass": jfric.Mass("y", 1.0), "load": jfric.Load("y", -3.0), name: element}
    parts["contact"] = jfric.Contact("y", e=0.7)
    start = {"y": START(q=0.2, v=0.3)}
    problem = jfric.Problem(["y"], parts, initial=start, time=1.2)
    solution = jfric.simulate(problem, SOLVER, ts=np.array([1.2])).check()

    def y_dot(t, y):
        side = np.where(y[1] < 0.0, -1.0, 1.0)
        friction = element.friction(y[1], y[2], side)
        return [y[1], -3.0 - float(friction), float(element.rate(y[1], y[2], side))]

    expected = bounced(y_dot, [0.2, 0.3, 0.0], 1.2, e=0.7)
    assert int(jnp.sum(solution.events.impact)) >= 2
    found = [solution.final.q[0], solution.final.v[0], solution.z[-1, 0]]
    np.testing.assert_allclose(found, expected, atol=2e-7)


@pytest.mark.parametrize("side", [1.0, -1.0])
def test_the_slope_of_a_rate_is_there_where_the_rate_is_zero(side):
    """Dahl's bristle in steady sliding; one of Bouc and Wen that passes zero."""
    dahl = jfric.Dahl("u", sigma=200.0, F_c=1.0)
    slope = jax.grad(lambda z: dahl.rate(0.5 * side, z, side))(side * 0.005)
    assert float(slope) == pytest.approx(-0.5 * 200.0)
    bent = jfric.BoucWen("u", k=1.0, beta=3.0, gamma=0.0, n=1.0)
    slope = jax.grad(lambda z: bent.rate(0.5 * side, z, side))(0.0)
    assert float(slope) == pytest.approx(-3.0 * 0.5)


def test_steps_with_derivatives_of_a_bristle_in_steady_sliding_are_few():
    """The derivative of its rate was zero at some instants: 30 times as many steps."""
    parts = {
        "mass": jfric.Mass("u", 1.0),
        "spring": jfric.Spring("u", 5.0),
        "load": {
            "drive": jfric.Load("u", jfric.Harmonic(2.2, 3.0)),
            "tremble": jfric.Load("u", jfric.Harmonic(1.0, 14.0)),
        },
        "dahl": jfric.Dahl("u", sigma=160.015, F_c=0.758),
    }
    problem = jfric.Problem(["u"], parts, time=1.5)
    plain, with_derivatives = (
        int(jfric.simulate(problem, jfric.EventDriven(adjoint=way)).final.steps)
        for way in ("none", "forward")
    )
    assert with_derivatives < 8 * plain


REVERSE = """
import jfric; jfric.compile_quickly()
import jax, jax.numpy as jnp, numpy as np
jax.config.update("jax_enable_x64", True)
parts = {
    "mass": jfric.Mass("u", 2.0), "spring": jfric.Spring("u", 2.4),
    "damper": jfric.Damper("u", 0.36),
    "load": jfric.Load("u", jfric.Harmonic(1.0, 2.7, 0.06)),
    "bouc_wen": jfric.BoucWen({"u": 1.45}, k=8.1, n=1.0, A=1.0, beta=4.2, gamma=4.2),
}
problem = jfric.Problem(["u"], parts, initial={"u": jfric.InitialState(v=0.6)}, time=4.0)

def end(x, adjoint):
    changed = jfric.set_parameters(problem, {"bouc_wen.n": x})
    final = jfric.simulate(changed, jfric.EventDriven(adjoint=adjoint)).final
    return jnp.stack([final.q[0], final.v[0]]), final.steps

ahead = jax.jit(jax.jacfwd(lambda x: end(x, "forward"), has_aux=True))
back = jax.jit(jax.jacrev(lambda x: end(x, "reverse"), has_aux=True))
off = [np.abs(ahead(x)[0] - back(x)[0]).max() for x in np.linspace(1.0, 1.02, 16)]
print(max(off), ahead(1.0)[1])
"""


@pytest.mark.slow
def test_the_reverse_mode_takes_the_steps_of_the_run():
    """Lengths of steps that follow from errors of rounding differ where a pass is computed again:
    parts of the motion were left out or came twice. Shown by optimised code alone."""
    command = [sys.executable, "-c", REVERSE]
    done = subprocess.run(command, capture_output=True, text=True, env=optimised(), timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    off, steps = map(float, done.stdout.split())
    assert steps > 128, "more passes than states are stored"
    assert off < 1e-12


@pytest.mark.slow
def test_rest_is_no_trouble_for_stiff_steps():
    """Accelerations are rounding errors there, and steps were shortened without end."""
    elements = {
        "mass": jfric.Mass("u", 3e13),
        "base": {"plate": jfric.Base(jfric.Ramp(1e-6))},
        "spring": jfric.Spring("u", 6.5e7),
        "rate_state": jfric.RateState(("u", "plate"), **ROCK),
    }
    still = jfric.Problem(["u"], elements, initial={"u": START(q=0.6 * 1e7 / 6.5e7)}, time=1000.0)
    run = jfric.simulate(still, jfric.EventDriven(rtol=1e-13)).check()
    assert int(run.steps) < 100
    assert float(run.final.q[0]) == pytest.approx(0.6 * 1e7 / 6.5e7, rel=1e-13)


@pytest.mark.slow
@pytest.mark.parametrize("evolution", ["ageing", "slip"])
def test_rate_and_state_is_stable_above_its_stiffness(evolution):
    """M6: at the critical stiffness the roots are imaginary, with the frequency known."""
    law = jfric.RateState("u", evolution=evolution, **ROCK)
    k_c, omega = 5.0e7, 7.071067811865e-4
    m = 0.3 * 1e7 * 0.01 * 1e-3 / 1e-6**2
    roots = np.linalg.eigvals(linearised(law, 1.3 * k_c, m=m))
    pair = roots[np.argsort(-np.abs(roots.imag))][:2]
    assert np.max(np.abs(pair.real)) < 1e-10 * omega * 1e3
    assert abs(pair[0].imag) == pytest.approx(omega, rel=1e-9)
    # Without inertia the force is in balance: V follows from it.

    def balanced(k, eta):
        V = ROCK["V0"]

        def velocity(ahead, psi):
            v = jnp.asarray(V)
            for _ in range(50):
                f = lambda v: k * ahead - law.friction(v, psi, 1.0) - eta * v  # noqa: E731
                v = v - f(v) / jax.grad(f)(v)
            return v

        def rates(x):
            v = velocity(*x)
            return jnp.stack([V - v, law.rate(v, x[1], 1.0)])

        pull = law.friction(V, 0.0, 1.0) + eta * V
        return np.trace(np.asarray(jax.jacfwd(rates)(jnp.stack([pull / k, jnp.asarray(0.0)]))))

    for eta, ratio in ((0.0, 1.0), (0.2 * 1e7 * 0.01 / 1e-6, 0.6)):
        k = ratio * k_c
        assert abs(balanced(k, eta)) < 1e-10 * omega
        assert balanced(1.01 * k, eta) < 0 < balanced(0.99 * k, eta)


ELEMENTS = {
    "dahl": jfric.Dahl("u", sigma=60.0, F_c=1.0, exponent=1.5),
    "bouc_wen": jfric.BoucWen("u", k=40.0, beta=20.0, gamma=10.0, n=1.5),
    "lugre": jfric.LuGre("u", sigma0=300.0, sigma1=3.0, sigma2=0.4, F_c=1.0, F_s=1.5, v_s=0.1),
    "elasto_plastic": jfric.LuGre(
        "u", sigma0=300.0, sigma1=3.0, sigma2=0.4, F_c=1.0, F_s=1.5, v_s=0.1, breakaway=0.6
    ),
    "rate_state": jfric.RateState("u", N=10.0, mu0=0.1, a=0.02, b=0.01, D_c=0.05, V0=0.1),
}


def shaken(element, end=2.0):
    elements = {
        "mass": jfric.Mass("u", 1.0),
        "spring": jfric.Spring("u", 20.0),
        "load": jfric.Load("u", jfric.Harmonic(3.0, omega=5.0)),
        section_of(element): element,
    }
    return jfric.Problem(["u"], elements, initial={"u": START(v=0.3)}, time=end)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [n if n == "lugre" else pytest.param(n, marks=pytest.mark.slow) for n in ELEMENTS],
)
def test_energy(name):
    """What the load puts in is in the spring, in the mass, or taken by the element."""
    element = ELEMENTS[name]
    solution = jfric.simulate(shaken(element), jfric.EventDriven(rtol=1e-11), dense=True)
    solution.check()
    knots = np.unique(np.r_[solution.dense.t[np.isfinite(solution.dense.t)], 2.0])
    nodes, weights = np.polynomial.legendre.leggauss(16)
    put = taken = 0.0
    for a, b in itertools.pairwise(knots):
        t = 0.5 * (a + b) + 0.5 * (b - a) * nodes
        m = solution.evaluate(t)
        v, z = m.v[:, 0], m.z[:, 0]
        force = jax.vmap(lambda v, z: element.friction(v, z, jnp.sign(v)))(v, z)
        put += 0.5 * (b - a) * weights @ np.asarray(3.0 * jnp.sin(5.0 * t) * v)
        taken += 0.5 * (b - a) * weights @ np.asarray(force * v)
    m = solution.evaluate(jnp.array([0.0, 2.0]))
    stored = np.diff(0.5 * m.v[:, 0] ** 2 + 10.0 * m.q[:, 0] ** 2)[0]
    assert put - taken == pytest.approx(stored, abs=1e-9)
    assert taken > 0.01
    assert float(jfric.motion_residual(shaken(element), jfric.simulate(
        shaken(element), jfric.EventDriven(rtol=1e-11), ts=jnp.linspace(0.0, 2.0, 9)
    )).max()) < 1e-9  # fmt: skip


@functools.cache
def end_of(name, adjoint="forward"):
    problem = shaken(ELEMENTS[name], end=1.3)
    section = section_of(ELEMENTS[name])
    fields = [p for p in jfric.parameters(problem) if p.startswith(f"{section}.")]
    fields = [p for p in fields if not p.endswith("z0") or name == "dahl"]
    start = jnp.stack([jfric.get_parameter(problem, p) for p in fields])
    solver = jfric.EventDriven(rtol=1e-12, adjoint=adjoint)

    def end(x):
        changed = jfric.set_parameters(problem, dict(zip(fields, x, strict=True)))
        solution = jfric.simulate(changed, solver, ts=jnp.array([1.3]))
        return jnp.concatenate([solution.q[0], solution.v[0], solution.z[0]])

    return end, start


@pytest.mark.slow
@pytest.mark.parametrize("name", ["lugre"])
def test_derivatives(name):
    """Forward against differences; reverse is among the slow tests."""
    end, x = end_of(name)
    forward = jax.jit(jax.jacfwd(end))(x)
    values = jax.jit(end)
    for i in range(len(x)):
        h = 1e-5 * max(abs(float(x[i])), 0.1)
        difference = (values(x.at[i].add(h)) - values(x.at[i].add(-h))) / (2 * h)
        np.testing.assert_allclose(forward[:, i], difference, rtol=1e-6, atol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("name", ELEMENTS)
def test_derivatives_of_every_law_both_ways(name):
    end, x = end_of(name)
    reverse, _ = end_of(name, "reverse")
    forward = jax.jit(jax.jacfwd(end))(x)
    np.testing.assert_allclose(jax.jit(jax.jacrev(reverse))(x), forward, rtol=1e-8, atol=1e-10)
    values = jax.jit(end)
    for i in range(len(x)):
        h = 1e-3 * max(abs(float(x[i])), 0.1)
        difference = fourth_order(lambda d, i=i: values(x.at[i].add(d)), h)
        np.testing.assert_allclose(forward[:, i], difference, rtol=1e-7, atol=1e-8)


@pytest.mark.slow  # its sibling: restarts and batches of sliders
def test_batches_restarts_and_states_beside_sliders():
    """Two elements with states, one with sliders: names, order, restart, vmap."""
    problem = shaken(ELEMENTS["dahl"])
    more = dict(problem.elements) | {"jenkins": jfric.Jenkins("u", k=10.0, R=0.3)}
    more |= {"bouc_wen": {"a": ELEMENTS["bouc_wen"]}}
    problem = jfric.Problem(["u"], more, initial={"u": START(v=0.3)}, time=2.0)
    ts = jnp.array([2.0])
    whole = jfric.simulate(problem, ts=ts)
    assert whole.states == ("jenkins", "dahl", "bouc_wen.a")
    assert whole.z.shape == (1, 3)
    first = jfric.simulate(jfric.set_parameters(problem, {"time.end": 0.9}), ts=ts / 4)
    second = jfric.simulate(problem, start=first.final, ts=ts)
    np.testing.assert_allclose(second.z, whole.z, atol=1e-7)
    found = jfric.observe(
        problem, "final.z.dahl, final.z.jenkins, max.z.bouc_wen.a, max.force.dahl"
    )
    assert float(found.values["final.z.dahl"]) == pytest.approx(float(whole.z[0, 1]), abs=1e-9)
    assert float(found.values["final.z.jenkins"]) == pytest.approx(float(whole.z[0, 0]), abs=1e-9)

    def run(m):
        return jfric.simulate(jfric.set_parameters(problem, {"mass.m": m}), ts=ts).z

    many = jax.jit(jax.vmap(run))(jnp.array([1.0, 1.1]))
    np.testing.assert_allclose(many[0], whole.z, atol=1e-12)


FILE = """
dofs = ["u"]
[time]
end = 1.0
[mass]
dof = "u"
m = "1 kg"
[{section}]
dof = "u"
{numbers}
[[check]]
quantity = "final.z.{section}"
expected = 0.0
tolerance = 1.0
"""


@pytest.mark.parametrize(
    ("section", "numbers"),
    [
        ("dahl", 'sigma = "1 kN/m"\nF_c = "2 N"\nz0 = "1 mm"'),
        ("bouc_wen", "k = 3.0\nbeta = 0.5\ngamma = -0.1\nn = 2"),
        ("lugre", 'sigma0 = 1e5\nF_c = 1.0\nF_s = 1.5\nv_s = "1 mm/s"\nbreakaway = 0.7'),
        (
            "rate_state",
            'N = 1\nmu0 = 0.6\na = 0.01\nb = 0.02\nD_c = "1 um"\nV0 = 1e-6\nevolution = "slip"',
        ),
    ],
)  # fmt: skip
def test_files_hold_them(section, numbers):
    problem = loads(FILE.format(section=section, numbers=numbers)).problem
    again = loads(jfric.to_toml(problem)).problem
    first, second = (jfric.parameters(p) for p in (problem, again))
    assert list(first) == list(second)
    assert all(jnp.array_equal(first[k], second[k]) for k in first)


BAD = [
    (jfric.Dahl("u", sigma=-1.0, F_c=1.0), "dahl.sigma: found -1, must be positive"),
    (jfric.Dahl("u", sigma=1.0, F_c=1.0, exponent=0.5), "dahl.exponent: found 0.5, must be"),
    (jfric.Dahl("u", sigma=10.0, F_c=1.0, z0=0.2), "dahl.z0: found 0.2, the state never"),
    (jfric.BoucWen("u", k=1.0, beta=1.0, gamma=0.0, n=0.5), "bouc_wen.n: found 0.5, must be"),
    (jfric.BoucWen("u", k=0.0, beta=1.0, gamma=0.0), "bouc_wen.k: found 0, must be positive"),
    (jfric.LuGre("u", sigma0=1.0, F_c=1.0, F_s=0.5, v_s=1.0), "lugre.F_s: found 0.5, must not"),
    (
        jfric.LuGre("u", sigma0=1.0, F_c=1.0, F_s=1.5, v_s=1.0, sigma2=-1.0),
        "lugre.sigma2: found -1, must not be negative",
    ),
    (
        jfric.LuGre("u", sigma0=1.0, F_c=1.0, F_s=1.5, v_s=1.0, breakaway=1.0),
        "lugre.breakaway: found 1, must lie between 0 and 1",
    ),
    (jfric.RateState("u", **(ROCK | {"a": 0.0})), "rate_state.a: found 0, must be positive"),
]  # fmt: skip


@pytest.mark.parametrize(("element", "sentence"), BAD, ids=[s[:20] for _, s in BAD])
def test_bad_numbers_have_a_sentence(element, sentence):
    elements = {"mass": jfric.Mass("u", 1.0), section_of(element): element}
    with pytest.raises(jfric.ProblemError) as error:
        jfric.Problem(["u"], elements)
    assert sentence in str(error.value)


#: 25 N in one direction, 2 N in the other, if the normal force is 1 N.
STEEP = jfric.Stribeck(jfric.Directional(25.0, 2.0), 1.5, 0.01)


@pytest.mark.parametrize(
    ("friction", "words"),
    [
        (
            {"law": STEEP, "N": 20.0},
            "friction: a coefficient of 25 with N = 20 N is a friction force of 500 N",
        ),
        ({"law": STEEP, "N": 1.0}, ""),
        ({"law": STEEP, "limit": 2.0}, ""),
        ({"law": 1.2, "N": 20.0}, ""),
        (
            {"plane": ["x", "y"], "direction": None, "law": [0.4, 9.0], "N": 2.0},
            "friction: a coefficient of 9",
        ),
    ],
)
def test_coefficients_that_may_be_forces_are_remarked(friction, words):
    elements = {
        "mass": {"x": jfric.Mass("x", 1.0), "y": jfric.Mass("y", 1.0)},
        "friction": jfric.Friction(**{"direction": "x"} | friction),
    }
    said = coefficient_remarks(jfric.Problem(["x", "y"], elements))
    assert [x.startswith(words) for x in said] == [True] * bool(words)


def test_what_is_not_passive_is_remarked():
    assert "lugre: is not passive, sigma2 (0.4) does not" in passivity_remarks(drawn(1e5))[0]
    assert passivity_remarks(shaken(ELEMENTS["dahl"])) == []


def test_the_quasi_static_solver_refuses_them_by_name():
    with pytest.raises(jfric.ProblemError, match="dahl: found a memory"):
        jfric.simulate(shaken(ELEMENTS["dahl"]), jfric.QuasiStatic(), ts=jnp.array([1.0]))


SLOW = [n if n == "dahl" else pytest.param(n, marks=pytest.mark.slow) for n in ELEMENTS]


@functools.cache
def exactly(name):
    times = jnp.linspace(0.0, 2.0, 9)
    found = jfric.simulate(shaken(ELEMENTS[name]), jfric.EventDriven(rtol=1e-11), ts=times)
    found.check()
    return np.concatenate([found.q, found.v, found.z], axis=1)


def apart(name, solver):
    """Largest distance of positions, velocities and states from the exact ones."""
    times = jnp.linspace(0.0, 2.0, 9)
    found = jfric.simulate(shaken(ELEMENTS[name]), solver, ts=times)
    found.check()
    assert found.states == (section_of(ELEMENTS[name]),)
    return np.abs(np.concatenate([found.q, found.v, found.z], axis=1) - exactly(name)).max()


@pytest.mark.slow
@pytest.mark.parametrize("name", ELEMENTS)
def test_the_solver_without_events_integrates_states_as_they_are(name):
    """Nothing is smoothed where only states of elements resist: it is an ordinary equation."""
    solver = jfric.Smoothed(method="kvaerno5", rtol=1e-10, atol=1e-12)
    assert apart(name, solver) < 1e-7


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW)
def test_time_stepping_converges_with_states(name):
    """First order with the whole weight at the end of the step, better in the middle."""
    steps = 2e-3 * 0.5 ** np.arange(3)
    errors = [apart(name, jfric.MoreauJean(dt=dt, theta=1.0)) for dt in steps]
    assert 0.8 < np.log2(errors[0] / errors[2]) / 2 < 1.3
    for scheme in (jfric.MoreauJean, jfric.StabilisedMidpoint):
        assert apart(name, scheme(dt=5e-4)) < 0.1 * errors[2]


@pytest.mark.slow
def test_time_stepping_takes_stiff_bristles():
    """M5 with steps a hundred times as long as the time that its bristles need to bend."""
    times = jnp.linspace(0.0, 12.0, 13)
    exact = jfric.simulate(drawn(1e5, end=12.0), jfric.EventDriven(rtol=1e-10), ts=times)
    errors = [
        np.abs(
            jfric.simulate(drawn(1e5, end=12.0), jfric.MoreauJean(dt=dt, theta=1.0), ts=times).q
            - exact.q
        ).max()
        for dt in (1e-3, 2.5e-4)
    ]
    assert errors[0] < 5e-3
    assert errors[1] < 0.3 * errors[0]


def checked(problem, free, sigma):
    """What a check says of a fit of position and velocity without noise."""
    t = np.linspace(0.0, float(problem.time.end), 31)
    found = jfric.observe(problem, ["u(t)", "v.u(t)"], times=t).values
    y = {name: np.asarray(found[f"{name}(t)"]) for name in ("u", "v.u")}
    experiment = jfric.Experiment(t, y=y, sigma=dict.fromkeys(y, sigma))
    return str(jfric.check(problem, experiment, {k: jfric.Free(*b) for k, b in free.items()}))


@pytest.mark.slow
def test_a_check_names_what_sliding_does_not_tell_of_bristles():
    """LuGre's bristles do not show in sliding that never reverses; limit and damping do."""
    law = jfric.LuGre("u", sigma0=1e4, sigma1=50.0, sigma2=0.5, F_c=1.0, F_s=1.5, v_s=0.01)
    elements = {"mass": jfric.Mass("u", 1.0), "load": jfric.Load("u", 2.0), "lugre": law}
    slides = jfric.Problem(["u"], elements, initial={"u": START(v=1.0)}, time=2.0)
    free = {"sigma0": (3e3, 3e4), "sigma1": (10.0, 200.0), "sigma2": (0.1, 2.0), "F_c": (0.5, 1.4)}
    free = {f"lugre.{name}": bounds for name, bounds in free.items()}
    said = [line for line in checked(slides, free, 0.01).splitlines() if "cannot tell" in line]
    assert len(said) == 1
    assert "lugre.sigma0" in said[0]
    assert "lugre.sigma1" in said[0]
    assert "sigma2" not in said[0]
    assert "F_c" not in said[0]


@pytest.mark.slow
def test_a_check_names_the_numbers_of_bouc_wen_that_are_one_too_many():
    """The state times c is the same force with k/c, c A, beta/c, gamma/c for n = 2."""
    law = jfric.BoucWen("u", k=200.0, beta=6e3, gamma=4e3, n=2.0)
    elements = {
        "mass": jfric.Mass("u", 1.0),
        "spring": jfric.Spring("u", 5.0),
        "load": jfric.Load("u", jfric.Harmonic(4.0, 5.0)),
        "bouc_wen": law,
    }
    free = {"k": (60.0, 600.0), "A": (0.3, 3.0), "beta": (2e3, 2e4), "gamma": (1e3, 1e4)}
    free = {f"bouc_wen.{name}": bounds for name, bounds in free.items()}
    problem = jfric.Problem(["u"], elements, time=1.2)
    said = [line for line in checked(problem, free, 1e-4).splitlines() if "cannot tell" in line]
    assert len(said) == 1
    signs = {name: re.search(rf"{name} by ([+-])", said[0])[1] for name in free}
    assert signs["bouc_wen.k"] == signs["bouc_wen.beta"] == signs["bouc_wen.gamma"]
    assert signs["bouc_wen.k"] != signs["bouc_wen.A"]


def test_a_bias_without_bristles_has_a_sentence():
    with pytest.raises(jfric.ProblemError, match="lugre: missing"):
        jfric.bristle_bias(shaken(ELEMENTS["dahl"]), [1e3])
    with pytest.raises(jfric.ProblemError, match="sigma0: found"):
        jfric.bristle_bias(drawn(1e5), [0.0])


def test_a_bias_is_relative_to_the_set_valued_motion():
    """A body of 1 kg and 1 m/s slides 0.5 m under 1 N."""
    law = jfric.LuGre("u", sigma0=1e3, sigma1=30.0, F_c=1.0, F_s=1.0, v_s=0.1)
    elements = {"mass": jfric.Mass("u", 1.0), "lugre": law}
    block = jfric.Problem(["u"], elements, time=1.5, initial={"u": jfric.InitialState(v=1.0)})
    bias = jfric.bristle_bias(block, [1e3], points=31)
    assert bias.distance[0, 0] > 1e-4
    np.testing.assert_allclose(bias.relative, bias.distance / 0.5, rtol=1e-9)


def test_stiffer_bristles_keep_their_ratio_of_damping_and_their_force():
    """A hundredfold stiffness: ten times the damping, a hundredth of the stretch."""
    soft = jfric.LuGre("u", sigma0=1e3, sigma1=30.0, F_c=1.0, F_s=1.5, v_s=0.1, z0=5e-4)
    elements = {"mass": jfric.Mass("u", 1.0), "lugre": soft}
    stiff = stiffened(jfric.Problem(["u"], elements).resolved(), 1e5).elements["lugre"]["lugre"]
    found = [float(x) for x in (stiff.sigma0, stiff.sigma1, stiff.z0)]
    np.testing.assert_allclose(found, [1e5, 300.0, 5e-6], rtol=1e-12)


@pytest.mark.slow
def test_bristles_tend_to_the_set_valued_law():
    """The first slip of M5 by stiffer and stiffer bristles; the law itself is that of a direct
    description."""
    bias = jfric.bristle_bias(drawn(1e5, end=12.0), [1e5, 1e6, 1e7], points=121)
    assert np.all(bias.status == jfric.Status.OK)
    assert np.all(bias.distance[1:] < 0.25 * bias.distance[:-1])
    elements = {k: v for k, v in drawn(1e5).elements.items() if k != "lugre"}
    law = jfric.Stribeck(mu_s=1.5, mu_d=1.0, v_s=1e-3)
    elements |= {"friction": jfric.Friction("u", law, N=1.0), "damper": jfric.Damper("u", 0.4)}
    solver, ts = jfric.EventDriven(rtol=1e-10), jnp.array([12.0])
    rigid = jfric.simulate(jfric.Problem(["u"], elements, time=12.0), solver, ts=ts)
    limit = jfric.simulate(set_valued(drawn(1e5, end=12.0)), solver, ts=ts)
    np.testing.assert_allclose(limit.q, rigid.q, rtol=1e-12)


@pytest.mark.slow
def test_derivatives_of_rest_with_bristles():
    """LuGre's bristles at rest are a spring and a damper."""
    stiffness = {"sigma0": 300.0, "sigma1": 3.0, "sigma2": 0.4}
    elements = {
        "mass": jfric.Mass("u", 1.0),
        "spring": jfric.Spring("u", 20.0),
        "lugre": jfric.LuGre("u", F_c=1.0, F_s=1.5, v_s=0.1, **stiffness),
    }
    problem = jfric.Problem(["u"], elements, initial={"u": START()}, time=0.5)

    def end(x):
        values = dict(zip(["initial.u.q", "initial.u.v", "lugre.z0"], x, strict=True))
        run = jfric.simulate(jfric.set_parameters(problem, values), jfric.EventDriven())
        return jnp.stack([run.final.q[0], run.final.v[0], run.final.v[1]])

    J = np.array([[0.0, 1.0, 0.0], [-20.0, -3.4, -300.0], [0.0, 1.0, 0.0]])
    found = jax.jacfwd(end)(jnp.zeros(3))
    np.testing.assert_allclose(found, scipy.linalg.expm(0.5 * J), atol=1e-8)
