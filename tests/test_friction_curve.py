"""Friction curves through values at knots: against SciPy, Coulomb and finite differences."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.interpolate import CubicHermiteSpline, CubicSpline, PchipInterpolator

import jfric
from jfric.files.read_toml import loads
from jfric.numerics import cubic

SPEEDS = (0.0, 0.02, 0.08, 0.25, 0.6, 1.0)
FALLS = (0.42, 0.3, 0.2, 0.18, 0.21, 0.25)
RISES = (0.25, 0.27, 0.3, 0.31, 0.33, 0.36)


def belt(law: jfric.laws.AbstractLaw, end: float = 6.0) -> jfric.Problem:
    """A block of 1 kg on a belt, held by a spring; N = 10 N. It passes all knots, and sticks."""
    return jfric.Problem(
        ("x",),
        {
            "mass": jfric.Mass("x", 1.0),
            "spring": jfric.Spring("x", 10.0),
            "friction": jfric.Friction("x", law, N=10.0, belt=0.2),
        },
        initial={"x": jfric.InitialState(q=0.9, v=1.4)},
        time=end,
    )


def test_curves_are_those_of_scipy():
    v = np.linspace(0.0, 1.0, 301)
    law = jfric.FrictionCurve(SPEEDS, jfric.Directional(FALLS, RISES))
    for found, values in zip(law.kinetic(v), (FALLS, RISES), strict=True):
        natural = CubicSpline(np.log1p(np.divide(SPEEDS, 0.02)), values, bc_type="natural")
        np.testing.assert_allclose(found, natural(np.log1p(v / 0.02)), rtol=1e-13)
        beyond = values[-1] + natural(np.log1p(1.0 / 0.02), 1) / 1.02 * 0.5
        index = 0 if values is FALLS else 1
        assert float(law.kinetic(1.5)[index]) == pytest.approx(beyond, rel=1e-13)
    # Inside, monotone slopes are those of Fritsch and Butland, as SciPy has them.
    slopes = cubic.monotone_slopes(jnp.asarray(SPEEDS), jnp.asarray(FALLS))
    own = PchipInterpolator(SPEEDS, FALLS).derivative()(SPEEDS)
    np.testing.assert_allclose(slopes[1:-1], own[1:-1], rtol=1e-12)
    slopes = cubic.flat_slopes(jnp.asarray(SPEEDS), jnp.asarray(FALLS))
    level = CubicSpline(SPEEDS, FALLS, bc_type="clamped")
    np.testing.assert_allclose(slopes, level(SPEEDS, 1), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_a_monotone_curve_stays_between_its_values(seed):
    rng = np.random.default_rng(seed)
    speeds = np.concatenate([[0.0], np.cumsum(rng.uniform(1e-3, 1.0, 7))])
    values = rng.uniform(0.0, 1.0, 8)
    law = jfric.FrictionCurve(speeds, values, monotone=True)
    v = np.linspace(0.0, speeds[-1], 2001)[1:-1]
    place = np.searchsorted(speeds, v) - 1
    low = np.minimum(values[place], values[place + 1])
    high = np.maximum(values[place], values[place + 1])
    found = np.asarray(law.kinetic(v)[0])
    assert np.all(found >= low - 1e-14)
    assert np.all(found <= high + 1e-14)
    # What falls at the last knot decays beyond it, and stays positive.
    falling = jfric.FrictionCurve([0.0, 1.0], [0.4, 0.1])
    far = [float(falling.kinetic(x)[0]) for x in (1.0, 1.1, 100.0)]
    assert far[0] == pytest.approx(0.1, rel=1e-15)
    assert far[1] == pytest.approx(0.1 * np.exp(-0.15 / np.log(2.0)))
    assert 0.0 <= far[2] < 1e-10


@pytest.mark.parametrize("monotone", [pytest.param(False, marks=pytest.mark.slow), True])
def test_motion_through_all_knots_against_scipy(monotone):
    """It passes all knots in both directions; times of reversal, stop and break-away."""
    curve = jfric.Directional(RISES, FALLS)
    problem = belt(jfric.FrictionCurve(SPEEDS, curve, monotone=monotone))
    solution = jfric.simulate(problem, jfric.EventDriven(rtol=1e-11), ts=np.linspace(0.0, 6.0, 41))
    prepared = problem.section("friction")["friction"].law.prepared()
    x = np.log1p(np.divide(SPEEDS, 0.02))
    sides = [
        CubicHermiteSpline(x, y, d) if monotone else CubicSpline(x, y, bc_type="natural")
        for y, d in zip((RISES, FALLS), prepared.slopes, strict=True)
    ]

    def slide(sign, start):
        """Until sliding ends; a step of SciPy's ends at each knot."""
        side = sides[0 if sign > 0 else 1]

        def rate(t, y):
            v = sign * (y[1] - 0.2)
            inside = min(max(v, 0.0), 1.0)
            s = np.log1p(inside / 0.02)
            mu = float(side(s)) + float(side(s, 1)) / (0.02 + inside) * (v - inside)
            return [y[1], -10.0 * y[0] - sign * 10.0 * mu]

        def stop(t, y):
            return y[1] - 0.2

        stop.terminal, stop.direction = True, -sign
        settings = {"method": "DOP853", "rtol": 1e-12, "atol": 1e-13, "max_step": 0.01}
        piece = solve_ivp(rate, (start[0], 10.0), start[1], events=stop, **settings)
        return piece.t_events[0][0], piece.y_events[0][0]

    now, times, sign = (0.0, [0.9, 1.4]), [], 1.0
    while len(times) < 5:
        now = slide(sign, now)
        times.append(now[0])
        x = now[1][0]
        # It sticks while -0.25 N <= k x <= 0.42 N.
        sign = -1.0 if x > 0.42 else 1.0
        if -0.25 <= x <= 0.42:
            now, sign = (now[0] + (0.42 - x) / 0.2, [0.42, 0.2]), -1.0
            times.append(now[0])
    found = solution.events.time[: len(solution.event_table())]
    assert len(found) >= 4
    np.testing.assert_allclose(found[:5], times[: len(found)][:5], rtol=1e-8)
    assert jfric.motion_residual(problem, solution).max() < 1e-8


@pytest.mark.slow
def test_a_curve_of_equal_values_is_coulomb():
    ts = np.linspace(0.0, 6.0, 61)
    solver = jfric.EventDriven(rtol=1e-12)
    flat = jfric.FrictionCurve(SPEEDS, (0.3,) * 6)
    assert [float(x) for x in flat.kinetic(0.123)] == [0.3, 0.3]
    found, exact = (jfric.simulate(belt(law), solver, ts=ts) for law in (flat, jfric.Coulomb(0.3)))
    np.testing.assert_allclose(found.q, exact.q, atol=1e-11)
    assert [r["to"] for r in found.event_table()] == [r["to"] for r in exact.event_table()]


@pytest.mark.slow
@pytest.mark.parametrize("monotone", [pytest.param(False, marks=pytest.mark.slow), True])
def test_derivatives_in_every_knot(monotone):
    problem = belt(jfric.FrictionCurve(SPEEDS, FALLS, mu_s=0.45, monotone=monotone), end=2.5)
    paths = [f"friction.curve.{i}" for i in range(6)] + ["friction.speeds.2", "friction.mu_s"]
    solver = jfric.EventDriven(rtol=1e-11)

    def end(values):
        changed = jfric.set_parameters(problem, dict(zip(paths, values, strict=True)))
        final = jfric.simulate(changed, solver).final
        return jnp.concatenate([final.q, final.v])

    x = jnp.asarray([*FALLS, 0.08, 0.45])
    slopes = np.asarray(jax.jit(jax.jacfwd(end))(x))
    run, h = jax.jit(end), 1e-5
    differences = [(run(x + h * e) - run(x - h * e)) / (2 * h) for e in np.eye(8)]
    np.testing.assert_allclose(slopes, np.stack(differences, axis=1), atol=2e-6)
    assert np.all(np.abs(slopes[:, :7]).max(axis=0) > 1e-4)


TEXT = """
dofs = ["x"]
time = {end = "6 s"}
[mass]
dof = "x"
m = 1.0
[spring]
dof = "x"
k = 10.0
[friction]
dof = "x"
N = 10.0
belt = 0.2
speeds = [0, "20 mm/s", "80 mm/s"]
curve = {positive = [0.3, 0.2, "$low"], negative = [0.3, 0.25, 0.2]}
mu_s = 0.35
monotone = true
[parameters]
low = 0.1
"""


def test_files_hold_curves():
    problem = loads(TEXT).problem
    law = problem.resolved().section("friction")["friction"].law
    assert isinstance(law, jfric.FrictionCurve)
    assert law.monotone
    assert [float(x) for x in law.speeds] == pytest.approx([0.0, 0.02, 0.08])
    assert float(law.kinetic(0.08)[0]) == pytest.approx(0.1)
    again = loads(jfric.to_toml(problem)).problem
    assert jax.tree.structure(again) == jax.tree.structure(jfric.build(problem))
    assert jfric.to_toml(again) == jfric.to_toml(problem)
    assert "friction.curve.negative.2" in jfric.parameters(problem)


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ('"80 mm/s"]', '"80 mm"]', r"friction.speeds\[3\]: found 'mm' \(a length\)"),
        ('"80 mm/s"]', '"10 mm/s"]', "friction.speeds: found .* increase strictly"),
        ("[0, ", '["1 mm/s", ', "must begin with 0"),
        ('"$low"]', "0.1, 0.1]", "friction.curve.positive: found 4 values, needed are 3"),
        ("speeds = [0, ", "#", "found curve, monotone, mu_s, a friction law needs"),
        ("0.25, 0.2]", "0.25, -0.2]", "friction.curve.negative.2: found -0.2, must not be"),
        ("mu_s = 0.35", "mu_s = 0.25", "friction.mu_s: found 0.25, must be at least 0.3"),
        ('[0.3, 0.2, "$low"]', "0.3", "friction.curve.positive"),
    ],
)
def test_what_is_no_curve_is_refused(old, new, sentence):
    assert old in TEXT
    with pytest.raises(jfric.ProblemError, match=sentence):
        loads(TEXT.replace(old, new))


def test_a_curve_that_is_negative_between_knots_is_refused():
    dips = {"speeds": [0.0, 0.1, 0.2, 2.0], "curve": [0.5, 0.01, 0.0, 0.5]}
    with pytest.raises(jfric.ProblemError, match=r"friction.curve: the curve is negative between"):
        belt(jfric.FrictionCurve(**dips))
    belt(jfric.FrictionCurve(**dips, monotone=True))


@pytest.mark.slow
def test_solvers_take_a_curve_or_refuse_it_by_name():
    problem = belt(jfric.FrictionCurve(SPEEDS, FALLS), end=1.0)
    with pytest.raises(jfric.ProblemError, match="FrictionCurve is not; use flow="):
        jfric.simulate(problem, jfric.EventDriven(flow="exact"))
    exact = jfric.simulate(problem).final.q
    stepped = jfric.simulate(problem, jfric.MoreauJean(1e-4)).final.q
    np.testing.assert_allclose(stepped, exact, atol=2e-4)
    smoothed = jfric.simulate(problem, jfric.Smoothed(width=1e-4)).final.q
    np.testing.assert_allclose(smoothed, exact, atol=1e-3)
