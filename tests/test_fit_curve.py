"""Friction curves from data: the prior, its weight, the band; against exact Gaussian formulas."""

import functools
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import multivariate_normal

import jfric
from jfric.fits.curve_fit import _best_tau, _plain
from jfric.fits.curve_prior import find_curve, free_of, with_bends
from jfric.fits.recipe import prepare
from jfric.fits.uncertainty.residual_series import correlation_time

SPEEDS = (0.0, 0.02, 0.08, 0.3, 1.0)
TRUE = (1.3, 1.0, 0.9, 1.0, 1.2)
SIDED = jfric.Directional((1.3, 1.0, 0.9, 1.0, 1.2), (0.9, 0.95, 1.0, 1.1, 1.3))
CONTROLLER = jfric.Controller("x", "load.drive.F", kp=400.0, kd=40.0)
MASS = {"mass.m": jfric.Free(0.3, 3.0)}


def axis(curve, position=None, speeds=SPEEDS) -> jfric.Problem:
    law = jfric.FrictionCurve(speeds, curve)
    return jfric.Problem(
        ("x",),
        {
            "mass": jfric.Mass("x", 1.0),
            "friction": jfric.Friction("x", law, limit=2.0, position=position),
            "load": {"drive": jfric.Load("x", 0.0)},
        },
        time=1.0,
    )


def record(problem, samples=500, seed=0, noise=0.05) -> jfric.Experiment:
    """Force of the position loop on a reference of two sines, with noise."""
    t = 0.01 * np.arange(samples)
    reference = 0.15 * np.sin(3.0 * t) + 0.02 * np.sin(1.1 * t)
    u = {"controller.reference": reference * (1.0 - np.exp(-((t / 0.3) ** 2)))}
    task = prepare(
        jfric.SampledModel(problem, CONTROLLER), jfric.Experiment(t, u, {"load.drive.F": t}),
        MASS, observe="load.drive.F",
    )  # fmt: skip
    force = task.objective.predict(np.array([[1.0]]))[0, 0, :, 0]
    force = force + noise * np.random.default_rng(seed).normal(size=samples)
    return jfric.Experiment(t, u, {"load.drive.F": force})


def found(problem, experiment, **options):
    return jfric.fit_curve(
        problem, experiment, MASS,
        observe="load.drive.F", residual=jfric.ClosedLoop(CONTROLLER), **options,
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(5))
def test_any_curve_is_a_line_and_bends(seed):
    rng = np.random.default_rng(seed)
    speeds = np.concatenate([[0.0], np.cumsum(rng.uniform(0.01, 1.0, rng.integers(2, 9)))])
    y = rng.uniform(0.8, 1.0, speeds.size)
    changed, (side,) = with_bends(axis(tuple(y), speeds=tuple(speeds)), None)
    values = dict(zip(side.paths, side.start, strict=True))
    law = jfric.set_parameters(changed, values).resolved().section("friction")["friction"].law
    np.testing.assert_allclose([float(v) for v in law.curve], y, rtol=1e-9)
    x = np.log1p(speeds / speeds[1])
    np.testing.assert_allclose(side.start[2:], np.diff(np.diff(y) / np.diff(x)), rtol=1e-9)
    np.testing.assert_allclose(side.start[:2], y[[0, -1]], rtol=1e-12)
    # Whatever single bend is tried, no knot is negative.
    for path, item in free_of(side, speeds, 0.1).items():
        for value in (item.lower, item.upper):
            law = jfric.set_parameters(changed, {path: value}).resolved()
            curve = law.section("friction")["friction"].law.curve
            assert min(float(v) for v in curve) >= 0.0


class Linear:
    """A linear model, whose marginal likelihood is that of a normal distribution."""

    def __init__(self, tau, low=-np.inf, high=np.inf, *, sign=1.0):
        """``sign``: of the second parameter."""
        rng = np.random.default_rng(1)
        self.A = rng.normal(size=(40, 6))
        self.b = self.A @ np.array([1.0, 2.0, *rng.normal(size=4) * 0.3]) + rng.normal(size=40)
        self.A[:, 1] *= sign
        x = self.found(tau)
        information = self.information(tau)
        normal = SimpleNamespace(
            gradient=self.A.T @ (self.A @ x - self.b) + information * x,
            hessian=self.A.T @ self.A + np.diag(information),
        )
        none = np.zeros((1, 40, 1))
        layout = SimpleNamespace(
            bounds=(np.zeros(6) + low, np.zeros(6) + high),
            prior_terms=lambda x: (0.0, information * x, information),
        )
        self.names, self.vector, self.at_bound = tuple("abcdef"), x, np.zeros(6, int)
        self.objective = SimpleNamespace(
            normal_at=lambda _: normal, weight=none + 1.0, layout=layout
        )
        self.linearised = lambda: SimpleNamespace(residuals=none)

    def information(self, tau):
        return np.where(np.arange(6) < 2, 0.0, tau**-2)

    def found(self, tau):
        return np.linalg.solve(
            self.A.T @ self.A + np.diag(self.information(tau)), self.A.T @ self.b
        )

    def log_likelihood(self, tau):
        wide = np.diag(np.where(np.arange(6) < 2, 1e8, tau**2))
        covariance = np.eye(40) + self.A @ wide @ self.A.T
        return multivariate_normal(np.zeros(40), covariance).logpdf(self.b)


def test_the_weight_has_the_largest_marginal_likelihood():
    model = Linear(0.7)
    best = _best_tau(model, list("cdef"), 0.7, 1.0)
    around = [model.log_likelihood(best * f) for f in (0.97, 1.0, 1.03)]
    assert around[1] == max(around)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_no_weight_is_chosen_for_a_curve_beyond_its_bounds(sign):
    """Far from the best weight, the linear model would go through a bound to come there: with one
    sign through an upper one, with the other through a lower one."""
    far, model = 50.0, functools.partial(Linear, sign=sign)
    best = _best_tau(model(far), list("cdef"), far, 1.0)
    # Between what the second parameter is now and what it would be.
    here, there = model(far).vector[1], model(best).vector[1]
    middle = 0.5 * (here + there)
    bound = np.where(np.arange(6) == 1, middle, np.inf)
    low, high = (bound, np.inf) if here > there else (-np.inf, bound)
    low = np.where(np.isposinf(low), -np.inf, low)
    kept = _best_tau(model(far, low, high), list("cdef"), far, 1.0)
    assert kept > 1.05 * best
    assert (model(kept).vector[1] - middle) * (here - middle) >= 0.0


def test_samples_that_depend_on_each_other_count_less():
    rng = np.random.default_rng(0)
    white = rng.normal(size=20000)
    slow = np.zeros(20000)
    for i in range(1, 20000):
        slow[i] = 0.8 * slow[i - 1] + white[i]
    for r, expected, within in ((white, 1.0, 0.15), (slow, 9.0, 0.2)):
        r = r.reshape(1, -1, 1)
        fit = SimpleNamespace(
            linearised=lambda r=r: SimpleNamespace(residuals=r),
            objective=SimpleNamespace(weight=np.ones_like(r)),
        )
        assert correlation_time(fit) == pytest.approx(expected, rel=within)


def test_a_fitted_problem_has_the_knots_of_both_directions():
    """As numbers, without the parameters of the fit."""
    changed, sides = with_bends(axis(SIDED), None)
    values = {k: v for side in sides for k, v in zip(side.paths, side.start, strict=True)}
    found = _plain(jfric.set_parameters(changed, values), *find_curve(axis(SIDED), None), sides)
    curve = found.elements["friction"]["friction"].law.curve
    np.testing.assert_allclose(curve.positive, SIDED.positive, rtol=1e-12)
    np.testing.assert_allclose(curve.negative, SIDED.negative, rtol=1e-12)
    assert found.parameters == {}


@pytest.mark.slow
def test_a_curve_is_found_with_its_band():
    """Both directions at once, from a flat first guess, on an axis with a ripple that is known."""
    ripple = jfric.laws.PeriodicFactor(0.1, cosine=[0.2])
    flat = jfric.Directional((1.1,) * 5, (1.1,) * 5)
    result = found(axis(flat, ripple), record(axis(SIDED, ripple)))
    for direction, true in (("positive", SIDED.positive), ("negative", SIDED.negative)):
        knots = result.knots(direction)
        # The last knot is faster than all of the record.
        off = np.abs(knots.mu - np.array([float(v) for v in true]))[:4]
        assert np.all(off < 4.0 * knots.standard_error[:4])
        assert np.all(knots.standard_error[:4] < 0.05)
        np.testing.assert_allclose(knots.high - knots.mu, 1.959964 * knots.standard_error)
    assert result.fit.values["mass.m"] == pytest.approx(1.0, abs=0.02)
    assert result.problem.parameters == {}
    assert 2 <= len(result.rounds) <= 8
    assert result.weight == result.rounds[-1] ** -2
    assert "friction curve with bends of" in str(result)
    assert not any("unit" in remark for remark in result.remarks)
    # What was found is a problem like any other, also in a file.
    assert "curve = {positive = [" in jfric.to_toml(result.problem)
    figure = jfric.plot_friction_curve(result, beside={"flat": lambda v, _: np.full_like(v, 1.1)})
    assert len(figure.axes[0].lines) >= 6
    with pytest.raises(jfric.ProblemError, match="direction: found 'both'"):
        result.band([0.1], "both")


@pytest.mark.slow
def test_a_curve_that_would_be_negative_bends_less():
    """A force drives the motion at middle speeds, which no friction does."""
    t = np.arange(0.0, 12.0, 5e-3)
    x, v, a = 0.5 * np.sin(2.0 * t), np.cos(2.0 * t), -2.0 * np.sin(2.0 * t)
    force = 3.0 * a + np.sign(v) * (1.0 - 1.5 * np.exp(-(((np.abs(v) - 0.4) / 0.1) ** 2)))
    data = jfric.Experiment(t, u={"load.F": force}, y={"x": x})
    elements = {
        "mass": jfric.Mass("x", 3.0),
        "friction": jfric.Friction(
            "x", jfric.FrictionCurve([0.0, 0.2, 0.4, 0.7, 1.0], [1.0] * 5), limit=1.0
        ),
        "load": jfric.Load("x", 0.0),
    }
    problem = jfric.Problem(["x"], elements)
    result = jfric.fit_curve(problem, data, residual=jfric.InverseDynamics(), weight=1e-2)
    assert min(float(y) for y in result.law.curve) >= 0.0
    assert result.rounds[0] == pytest.approx(10.0)
    assert result.weight == result.rounds[-1] ** -2 > 1e-2
    assert "negative somewhere" in result.remarks[0]
    # Still as far down as a curve may go, not the straight line.
    assert float(result.law.curve[2]) < 0.6


@pytest.mark.slow
def test_a_first_guess_may_end_at_zero():
    """The largest value of the guess says how far curves may bend before data have spoken."""
    t = np.arange(0.0, 12.0, 2e-2)
    x, v, a = 0.5 * np.sin(2.0 * t), np.cos(2.0 * t), -2.0 * np.sin(2.0 * t)
    force = a + np.sign(v) * (2.0 + np.abs(v)) + 0.02 * np.random.default_rng(0).normal(size=t.size)
    data = jfric.Experiment(t, u={"load.drive.F": force}, y={"x": x})
    guess = axis((1.0, 0.8, 0.5, 0.0), speeds=(0.0, 0.1, 0.3, 1.0))
    result = jfric.fit_curve(guess, data, residual=jfric.InverseDynamics())
    assert result.rounds[0] == pytest.approx(3.0 / np.log(11.0))
    np.testing.assert_allclose([2.0 * float(y) for y in result.law.curve[2:]], [2.3, 3.0], atol=0.3)


@pytest.mark.slow
def test_a_heavy_prior_leaves_a_straight_line():
    result = found(axis((1.1,) * 5), record(axis(TRUE)), weight=1e8)
    law, x = result.law, np.log1p(np.divide(SPEEDS, 0.02))
    y = np.array([float(v) for v in law.curve])
    np.testing.assert_allclose(y, y[0] + (y[-1] - y[0]) * x / x[-1], atol=1e-3)
    assert result.rounds == (pytest.approx(1e-4),)


@pytest.mark.parametrize(
    ("problem", "options", "sentence"),
    [
        (axis((1.0,) * 2, speeds=(0.0, 0.1)), {}, "speeds: found 2 knots"),
        (axis(TRUE), {"element": "friction.one"}, "element: found 'friction.one'"),
        (axis(TRUE), {"weight": -1.0}, "weight: found -1, must be positive"),
        (axis(TRUE), {"free": {"friction.curve.0": jfric.Free(0.1, 1.0)}}, "are free already"),
    ],
)
def test_what_cannot_be_found_is_refused(problem, options, sentence):
    e = jfric.Experiment(np.linspace(0.1, 1.0, 5), y={"x": np.arange(5.0)})
    with pytest.raises(jfric.ProblemError, match=sentence):
        jfric.fit_curve(problem, e, **options)


@pytest.mark.slow
def test_bands_cover_what_they_say():
    """Over draws of the noise, and over speeds that the record reaches."""
    speeds, problem = np.geomspace(2e-3, 0.4, 40), axis(TRUE)
    true = np.asarray(jfric.FrictionCurve(SPEEDS, TRUE).kinetic(speeds)[0])
    inside = []
    for seed in range(10):
        band = found(axis((1.1,) * 5), record(problem, seed=seed)).band(speeds)
        inside.append(np.mean((band.low <= true) & (true <= band.high)))
    assert 0.85 <= np.mean(inside) <= 1.0


def test_too_many_knots_are_refused():
    e = jfric.Experiment(np.linspace(0.1, 1.0, 5), y={"x": np.arange(5.0)})
    many = axis((1.0,) * 25, speeds=tuple(0.1 * i for i in range(25)))
    with pytest.raises(jfric.ProblemError, match=r"speeds: found 25 knots, .* at 3 to 24 of them"):
        jfric.fit_curve(many, e)
