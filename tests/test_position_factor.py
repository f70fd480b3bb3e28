"""Friction that depends on position: against SciPy and finite differences; files; refusals."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.interpolate import CubicSpline
from scipy.optimize import brentq

import jfric
from jfric.files.read_toml import loads
from jfric.laws import PeriodicFactor, SplineFactor

RIPPLE = PeriodicFactor(0.25, cosine=[0.2, 0.05], sine=[0.1])
WORN = SplineFactor([-0.5, -0.1, 0.2, 0.6], [1.0, 1.3, 0.7, 1.1])


def ripple(x):
    a = 2 * np.pi * x / 0.25
    return 1 + 0.2 * np.cos(a) + 0.05 * np.cos(2 * a) + 0.1 * np.sin(a)


def worn(x):
    level = CubicSpline([-0.5, -0.1, 0.2, 0.6], [1.0, 1.3, 0.7, 1.1], bc_type="clamped")
    return float(level(min(max(x, -0.5), 0.6)))


def belt(position, law=None, **more) -> jfric.Problem:
    """A block of 1 kg on a belt, held by a spring; N = 10 N."""
    law = jfric.StaticDynamic(0.42, 0.25) if law is None else law
    return jfric.Problem(
        ("x",),
        {
            "mass": jfric.Mass("x", 1.0),
            "spring": jfric.Spring("x", 10.0),
            "friction": jfric.Friction(
                "x", law, **({"N": 10.0} | more), belt=0.2, position=position
            ),
        },
        initial={"x": jfric.InitialState(q=0.2, v=0.2)},
        time=6.0,
    )


def reference(factor, mu, grown=0.0):
    """Times of break-away and of the end of sliding, sliding back over the belt alone."""

    def limit(x):
        return (10.0 + grown * abs(10.0 * x)) * factor(x)

    t, x, times = 0.0, 0.2, []
    while True:
        xs = np.linspace(x, 1.5, 4001)
        free = [10.0 * s - 0.42 * limit(s) for s in xs]
        first = next(i for i, f in enumerate(free) if f > 0)
        away = brentq(lambda s: 10.0 * s - 0.42 * limit(s), xs[first - 1], xs[first], xtol=1e-15)
        t += (away - x) / 0.2
        times.append(t)

        def rate(t, y):
            return [y[1], -10.0 * y[0] + mu(0.2 - y[1]) * limit(y[0])]

        def stop(t, y):
            return y[1] - 0.2

        stop.terminal, stop.direction = True, 1.0
        settings = {"method": "DOP853", "rtol": 1e-12, "atol": 1e-13, "max_step": 0.01}
        piece = solve_ivp(rate, (t, 20.0), [away, 0.2], events=stop, **settings)
        t, x = piece.t_events[0][0], piece.y_events[0][0][0]
        if t > 6.0:
            return times
        times.append(t)


@pytest.mark.parametrize(
    ("position", "factor"), [(RIPPLE, ripple), pytest.param(WORN, worn, marks=pytest.mark.slow)]
)
def test_stick_and_sliding_against_scipy(position, factor):
    """While it sticks the belt carries it to where the limit is another one."""
    solution = jfric.simulate(
        belt(position), jfric.EventDriven(rtol=1e-11), ts=np.linspace(0.0, 6.0, 41)
    )
    rows = solution.event_table()
    expected = reference(factor, lambda v: 0.25)
    assert len(rows) == len(expected) >= 2
    np.testing.assert_allclose([r["time"] for r in rows], expected, rtol=1e-8)
    assert [r["to"] for r in rows[:2]] == ["slip-", "stick"]
    assert jfric.contact_residual(belt(position), solution).max() < 1e-8
    assert jfric.motion_residual(belt(position), solution).max() < 1e-8


@pytest.mark.slow  # its sibling: the factor alone
def test_with_a_curve_and_a_load():
    """All three: a friction curve, a factor, and a limit that grows with the spring's force."""
    law = jfric.FrictionCurve([0.0, 0.1, 0.5], [0.3, 0.2, 0.25], mu_s=0.42)
    problem = belt(RIPPLE, law, kappa=0.3, load="spring")
    solution = jfric.simulate(problem, jfric.EventDriven(rtol=1e-11))
    found = [r["time"] for r in solution.event_table() if r["contact"] == "friction"]
    curve = CubicSpline(np.log1p([0.0, 1.0, 5.0]), [0.3, 0.2, 0.25], bc_type="natural")

    def mu(v):
        inside = min(max(v, 0.0), 0.5)
        slope = float(curve(np.log1p(5.0), 1)) / 0.6
        return float(curve(np.log1p(inside / 0.1))) + slope * max(v - 0.5, 0.0)

    expected = reference(ripple, mu, 0.3)
    assert len(found) == len(expected) >= 2
    np.testing.assert_allclose(found, expected, rtol=1e-7)


@pytest.mark.slow
def test_the_smoothed_solver_takes_it():
    problem = belt(WORN, jfric.FrictionCurve([0.0, 0.2, 0.5], [0.3, 0.25, 0.27]))
    exact = jfric.simulate(problem).final.q
    smoothed = jfric.simulate(problem, jfric.Smoothed(width=1e-5)).final.q
    np.testing.assert_allclose(smoothed, exact, atol=1e-3)


@pytest.mark.slow
def test_derivatives():
    paths = [f"friction.position.cosine.{i}" for i in (0, 1)] + ["friction.position.sine.0"]
    paths += ["friction.position.period", "friction.mu_d"]

    def end(values):
        changed = jfric.set_parameters(belt(RIPPLE), dict(zip(paths, values, strict=True)))
        return jfric.simulate(changed, jfric.EventDriven(rtol=1e-11)).final.q[0]

    x = jnp.asarray([0.2, 0.05, 0.1, 0.25, 0.25])
    slopes, run, h = np.asarray(jax.jit(jax.jacfwd(end))(x)), jax.jit(end), 1e-6
    differences = [(run(x + h * e) - run(x - h * e)) / (2 * h) for e in np.eye(5)]
    np.testing.assert_allclose(slopes, differences, rtol=1e-4)
    assert np.abs(slopes).min() > 1e-3


TEXT = """
dofs = ["x"]
time = {end = "6 s"}
[mass]
dof = "x"
m = 1.0
[friction]
dof = "x"
N = 10.0
mu = 0.3
position = {period = "20 mm", cosine = [0.1, "$a"], sine = [0.2]}
[parameters]
a = 0.05
"""


def test_files_hold_factors():
    for text in (TEXT, TEXT.replace(TEXT[TEXT.index("{period") : TEXT.index("\n[par")], KNOTS)):
        problem = loads(text).problem
        again = loads(jfric.to_toml(problem)).problem
        assert jax.tree.structure(again) == jax.tree.structure(jfric.build(problem))
        for path, value in jfric.parameters(problem).items():
            assert str(jfric.get_parameter(again, path)) == str(value)
    factor = loads(TEXT).problem.resolved().section("friction")["friction"].position
    assert float(factor.period) == 0.02
    assert float(factor(jnp.asarray(0.0))) == pytest.approx(1.15)


KNOTS = '{x = [0, "10 cm", 0.2], factor = [1.0, 0.9, 1.1]}'


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ('"20 mm"', '"20 s"', r"friction.position.period: found 's' \(a time\)"),
        ('"20 mm"', "-0.02", "friction.position.period: found -0.02, must be positive"),
        ("sine = [0.2]", "sine = [1.2]", "friction.position: the factor on friction is negative"),
        (
            "sine = [0.2]",
            "factor = [1.0]",
            "friction.position.factor: cannot be given together with",
        ),
        ("sine = [0.2]", "x = [1.0]", "friction.position"),
        ('dof = "x"\nN', 'plane = ["x", "y"]\nN', "friction.position: cannot be combined with pla"),
        ('sliding = "x^3"\nN', 'sliding = "x^3"\nN', ""),
    ],
)
def test_what_is_no_factor_is_refused(old, new, sentence):
    text = TEXT.replace('dofs = ["x"]', 'dofs = ["x", "y"]')
    text = text.replace("[friction]", '[mass.two]\ndof = "y"\nm = 1.0\n[friction]')
    text = text.replace("[mass]\n", "[mass.one]\n")
    if not sentence:
        old, sentence = 'dof = "x"\nN', "friction.position: cannot be combined with sliding"
    assert old in text
    with pytest.raises(jfric.ProblemError, match=sentence):
        loads(text.replace(old, new))


@pytest.mark.parametrize(
    "change",
    [
        lambda p: jfric.simulate(p, jfric.MoreauJean(1e-3)),
        lambda p: jfric.simulate(p, jfric.QuasiStatic()),
        jfric.equilibria,
    ],
)
def test_who_cannot_take_it_says_so(change):
    with pytest.raises(jfric.ProblemError, match="friction that depends on position"):
        change(belt(RIPPLE))


def test_not_beside_what_depends_on_position():
    problem = jfric.Problem(
        ("x", "phi"),
        {
            "mass": jfric.Mass("x", 1.0),
            "lagrangian": jfric.Lagrangian(kinetic="0.5*(2 + cos(phi))*v.phi**2"),
            "friction": jfric.Friction("x", jfric.Coulomb(0.2), N=1.0, position=RIPPLE),
        },
        time=1.0,
    )
    with pytest.raises(jfric.ProblemError, match="position: cannot be combined with lagrangian"):
        jfric.simulate(problem)


def test_not_beside_a_joint():
    """The event-driven solver would leave the factor out."""
    problem = jfric.Problem(
        {"x": "translation", "a": "rotation", "b": "rotation"},
        {
            "mass": {name: jfric.Mass(name, 1.0) for name in "xab"},
            "joint": jfric.Joint("sin(a) - sin(b)"),
            "friction": jfric.Friction("x", jfric.Coulomb(0.2), N=1.0, position=RIPPLE),
        },
        time=1.0,
    )
    with pytest.raises(jfric.ProblemError, match="position: cannot be combined with joint"):
        jfric.simulate(problem)
