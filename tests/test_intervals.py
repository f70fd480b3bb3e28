"""Intervals of fits under coloured noise: the model of the noise, its covariance, its warnings."""

import base64
import dataclasses
import functools
import json
import re

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.signal import lfilter
from scipy.special import stdtrit

import jfric
from jfric.fits.model import AbstractModel, Prediction
from jfric.fits.uncertainty.noise_model import Autoregression, _Group, autoregressive_covariance
from jfric.fits.uncertainty.posterior import Posterior
from jfric.fits.uncertainty.residual_series import (
    ResidualSeries,
    autocorrelation,
    bandwidth,
    residual_series,
)
from jfric.verification.configs import shipped


def series(residuals, jacobian, used=None) -> ResidualSeries:
    k = residuals.shape[1]
    used = np.ones(residuals.shape, bool) if used is None else used
    assert jacobian.shape[:2] == (residuals.shape[0], k)
    return ResidualSeries(residuals, jacobian, np.arange(jacobian.shape[2]), used, 0.01)


def coloured(past, samples, rng):
    return lfilter([1.0], np.r_[1.0, -np.asarray(past)], rng.normal(size=samples + 500))[500:]


def waves(samples):
    t = np.linspace(0.0, 1.0, samples)
    return np.stack([np.ones(samples), t * np.sin(40.0 * t), np.cos(40.0 * t)], axis=1)


def dense_autocovariance(coefficients, innovations, lags):
    """Autocovariance from the response to innovations, summed."""
    p, k, _ = coefficients.shape
    response = [np.eye(k)]
    for i in range(1, 4000):
        response.append(sum(coefficients[j] @ response[i - 1 - j] for j in range(min(p, i))))
    psi = np.array(response)
    return [
        np.einsum("iab,bc,idc->ad", psi[lag:], innovations, psi[: len(psi) - lag])
        for lag in range(lags)
    ]


def test_covariance_of_scores_is_that_of_the_dense_matrix():
    rng = np.random.default_rng(0)
    m, k = 50, 2
    coefficients = np.array([[[0.5, 0.2], [-0.1, 0.3]], [[-0.3, 0.0], [0.1, 0.2]]])
    innovations = np.array([[1.0, 0.4], [0.4, 0.5]])
    jacobian = rng.normal(size=(m, k, 3))
    used = rng.random((m, k)) > 0.1
    jacobian *= used[:, :, None]
    group = _Group([series(rng.normal(size=(m, k)) * used, jacobian, used)])
    group.model = Autoregression(coefficients, innovations)
    gamma = dense_autocovariance(coefficients, innovations, m)
    omega = np.block(
        [[gamma[i - j] if i >= j else gamma[j - i].T for j in range(m)] for i in range(m)]
    )
    flat = jacobian.reshape(m * k, 3)
    np.testing.assert_allclose(group.middle(3), flat.T @ omega @ flat, rtol=1e-8)


def test_variance_of_a_variance_is_its_derivative_by_the_model():
    # One parameter: cov(phi) = (1 - phi^2)/m and var(sigma^2) = 2 sigma^4/m.
    rng = np.random.default_rng(1)
    m, phi, sigma = 400, 0.6, 1.7
    jacobian = waves(m)[:, None, :]
    group = _Group([series(rng.normal(size=(m, 1)), jacobian)])
    group.order = 1

    def variance(phi, square):
        group.model = Autoregression(np.array([[[phi]]]), np.array([[square]]))
        inverse = np.linalg.inv(jacobian[:, 0].T @ jacobian[:, 0])
        return np.diagonal(inverse @ group.middle(3) @ inverse), inverse

    here, inverse = variance(phi, sigma**2)
    found = group.variance_of_variance(inverse) * group.count
    slope = (variance(phi + 1e-5, sigma**2)[0] - variance(phi - 1e-5, sigma**2)[0]) / 2e-5
    expected = slope**2 * (1.0 - phi**2) + 2.0 * here**2
    variance(phi, sigma**2)
    np.testing.assert_allclose(found, expected, rtol=1e-4)


def coverage(past, samples, draws, missing=0.0, seed=2):
    """Part of the intervals that hold the truth, for each parameter."""
    rng = np.random.default_rng(seed)
    held, degrees = [], []
    for _ in range(draws):
        used = rng.random(samples) >= missing
        jacobian = waves(samples) * used[:, None]
        inverse = np.linalg.inv(jacobian.T @ jacobian)
        noise = coloured(past, samples, rng) * used
        off = inverse @ jacobian.T @ noise
        residuals = (noise - jacobian @ off) * used
        one = series(residuals[:, None], jacobian[:, None], used[:, None])
        found = autoregressive_covariance([one], inverse)
        quantile = stdtrit(np.maximum(found.degrees, 1.0), 0.975)
        held.append(np.abs(off) <= quantile * np.sqrt(np.diagonal(found.matrix)))
        degrees.append(found.degrees)
    return np.mean(held, axis=0), np.median(degrees, axis=0)


RESONANCE = (2 * 0.95 * np.cos(0.3), -(0.95**2))


@pytest.mark.parametrize(
    ("past", "draws"),
    [
        ((0.9,), 150),
        pytest.param((), 400, marks=pytest.mark.slow),
        pytest.param(RESONANCE, 400, marks=pytest.mark.slow),
    ],
)
def test_intervals_hold_what_they_should(past, draws):
    found, _ = coverage(past, 400, draws)
    # Three times the scatter of the draws.
    assert np.all(np.abs(found - 0.95) < 3.0 * np.sqrt(0.95 * 0.05 / draws))


@pytest.mark.slow
@pytest.mark.parametrize("missing", [0.1, 0.3])
def test_intervals_hold_with_missing_samples(missing):
    found, _ = coverage((0.9,), 400, 400, missing)
    assert np.all(np.abs(found - 0.95) < 3.0 * np.sqrt(0.95 * 0.05 / 400))


def test_slow_noise_leaves_few_degrees_of_freedom():
    _, white = coverage((), 200, 20)
    _, slow = coverage((0.95,), 200, 20)
    assert np.all(white > 100.0)
    # The mean suffers most.
    assert slow[0] < 8.0


def test_short_records_share_a_model():
    rng = np.random.default_rng(3)
    whole = coloured((0.8,), 3000, rng)[:, None]
    jacobian = np.ones((3000, 1, 1))
    pieces = [series(whole[i : i + 100], jacobian[i : i + 100]) for i in range(0, 3000, 100)]
    inverse = np.array([[1.0 / 3000.0]])
    together = autoregressive_covariance(pieces, inverse)
    alone = autoregressive_covariance([series(whole, jacobian)], inverse)
    assert len(together.orders) == 1
    # Correlation between the pieces is left out: a little less than the whole has.
    assert 0.8 < together.matrix[0, 0] / alone.matrix[0, 0] < 1.05


def test_signals_that_are_never_sampled_together_are_modelled_apart():
    rng = np.random.default_rng(4)
    used = np.zeros((800, 2), bool)
    used[::2, 0] = used[1::2, 1] = True
    residuals = rng.normal(size=(800, 2)) * used
    jacobian = used[:, :, None].astype(float)
    found = autoregressive_covariance([series(residuals, jacobian, used)], np.array([[1 / 800.0]]))
    assert len(found.orders) == 2
    assert found.matrix[0, 0] == pytest.approx(1.0 / 800.0, rel=0.3)


class Decay(AbstractModel):
    """``u = exp(-rate t) cos(omega t)``: the least squares of a fit without a simulation."""

    def default(self, path, experiment):
        return FREE[path].init

    def initial(self, experiment):
        return 0.0, {}

    def simulate_outputs(self, values, data):
        t = jnp.where(jnp.isfinite(data.t), data.t, 0.0)
        u = jnp.exp(-values["rate"] * t) * jnp.cos(values["omega"] * t)
        return Prediction(u[:, None], jnp.asarray(0))


FREE = {"rate": jfric.Free(0.1, 1.0, init=0.3), "omega": jfric.Free(8.0, 12.0, init=10.0)}


@functools.cache
def fitted(missing: str = "", past: tuple = (0.9,)):
    t = np.linspace(0.0, 5.0, 300)
    u = np.exp(-0.3 * t) * np.cos(10.0 * t)
    u = u + 0.01 * coloured(past, t.size, np.random.default_rng(5))
    keep = np.ones(t.size, bool)
    keep[120:150] = not missing
    if missing == "gap":
        data = jfric.Experiment(t[keep], y={"u": u[keep]})
    else:
        data = jfric.Experiment(t, y={"u": np.where(keep, u, np.nan)}, mask=keep)
    return jfric.fit(Decay(), data, FREE, starts=1)


def test_a_gap_in_time_is_a_stretch_of_missing_samples():
    gap, masked = fitted("gap"), fitted("mask")
    (one,), (other,) = residual_series(gap), residual_series(masked)
    assert one.psi.shape == other.psi.shape == (300, 1)
    np.testing.assert_array_equal(one.used, other.used)
    expected = list(masked.covariance().standard_errors.values())
    np.testing.assert_allclose(list(gap.covariance().standard_errors.values()), expected, rtol=1e-4)


def test_intervals_of_a_fit_use_student_and_say_where_little_is_known():
    found = fitted().covariance()
    assert found.method == "autoregressive"
    assert found.degrees is not None
    low, high = found.intervals()["rate"] or (0.0, 0.0)
    quantile = stdtrit(found.degrees[0], 0.975)
    half = quantile * found.standard_errors["rate"] / found.x[0]
    assert 0.5 * np.log(high / low) == pytest.approx(half, rel=1e-6)
    assert not any("independent samples" in r for r in found.remarks())
    few = dataclasses.replace(found, degrees=np.array([3.2, 50.0]))
    assert "the error of rate is known as from 3 independent samples" in few.remarks()[0]


def test_white_noise_has_the_intervals_of_gauss_and_newton():
    found = fitted(past=())
    white = list(found.covariance("gauss-newton").standard_errors.values())
    expected = pytest.approx(white, rel=0.15)
    assert list(found.covariance().standard_errors.values()) == expected


class Line(AbstractModel):
    """``u = level + slope t``, whose slope is not negative."""

    def default(self, path, experiment):
        return LINE[path].init

    def initial(self, experiment):
        return 0.0, {}

    def simulate_outputs(self, values, data):
        t = jnp.where(jnp.isfinite(data.t), data.t, 0.0)
        return Prediction((values["level"] + values["slope"] * t)[:, None], jnp.asarray(0))


LINE = {"level": jfric.Free(0.0, 8.0, init=4.0, scale="linear"),
        "slope": jfric.Free(0.0, 100.0, init=1.0, scale="linear")}  # fmt: skip


@pytest.mark.parametrize(
    ("loss", "weight"),
    [
        (jfric.Huber(), lambda r: 1.0 / np.maximum(np.abs(r), 1.0)),
        (jfric.Cauchy(), lambda r: 1.0 / (1.0 + r**2)),
        (jfric.SoftL1(), lambda r: 1.0 / np.sqrt(1.0 + r**2)),
    ],
)
def test_standard_errors_of_a_robust_fit(loss, weight):
    """``H^-1 (sum of w^2 r^2 J J^T) H^-1`` with ``H`` the sum of ``w J J^T``, by its formula."""
    t = np.linspace(0.2, 1.0, 60)
    u = 4.0 + 10.0 * t + 0.05 * np.random.default_rng(3).normal(size=t.size)
    u[::7] += 0.5
    found = jfric.fit(
        Line(), jfric.Experiment(t, y={"u": u}, sigma=0.05), LINE, loss=loss, starts=1
    )
    level, slope = found.vector
    J = np.stack([np.ones_like(t), t], axis=1) / 0.05
    r = (level + slope * t - u) / 0.05
    w = weight(r)
    inverse = np.linalg.inv(J.T @ (w[:, None] * J))
    middle = J.T @ ((w * r)[:, None] ** 2 * J)
    expected = np.sqrt(np.diag(inverse @ middle @ inverse) * t.size / (t.size - 2))
    errors = found.covariance("gauss-newton").standard_errors
    np.testing.assert_allclose([errors["level"], errors["slope"]], expected, rtol=1e-6)


def test_intervals_hold_the_truth_that_lies_a_little_inside_a_bound():
    """The slope is one standard error from its bound, where one fit of six ends. Taken as known
    there, it would leave intervals of the level of which 29 % hold the truth."""
    t = np.linspace(0.2, 1.0, 60)
    J = np.stack([np.ones_like(t), t], axis=1)
    slope = float(np.sqrt(np.linalg.inv(J.T @ J)[1, 1]))
    ended, held, inside = 0, 0, 0
    for seed in range(60):
        u = 4.0 + slope * t + np.random.default_rng(seed).normal(size=t.size)
        found = jfric.fit(Line(), jfric.Experiment(t, y={"u": u}, sigma=1.0), LINE, starts=1)
        intervals = found.intervals(method="gauss-newton")
        level, rate = intervals["level"] or (0.0, 0.0), intervals["slope"] or (0.0, 0.0)
        inside += rate[0] <= slope <= rate[1]
        if found.at_bound[1]:
            ended += 1
            held += level[0] < 4.0 < level[1]
            assert rate[0] == 0.0
            assert any("slope is at its lower bound 0: its interval has one side" in r
                       for r in found.covariance("gauss-newton").remarks())  # fmt: skip
    assert 4 <= ended <= 20
    assert held >= ended - 1
    assert inside >= 54


def test_a_fit_without_finite_derivatives_has_no_interval():
    found = fitted()
    nowhere = dataclasses.replace(found, vector=np.array([np.nan, np.nan]))
    assert nowhere.covariance().intervals() == {"rate": None, "omega": None}


def test_lags_are_those_of_a_first_order_autoregression():
    """Andrews' number of lags for Bartlett weights; a series of zeros has none to count."""
    rho, count = 0.5, 20000
    noise = coloured((rho,), count, np.random.default_rng(8))
    lags = 1.1447 * (4.0 * rho**2 / (1.0 - rho**2) ** 2 * count) ** (1 / 3)
    assert bandwidth(noise[:, None]) == pytest.approx(lags, abs=2.0)
    assert bandwidth(np.zeros((count, 2))) == 0


def test_autocorrelation_leaves_missing_samples_out():
    noise = coloured((0.8,), 20000, np.random.default_rng(6))
    missing = np.where(np.random.default_rng(7).random(noise.size) < 0.5, np.nan, noise)
    expected = 0.8 ** np.arange(6)
    np.testing.assert_allclose(autocorrelation(noise, 5), expected, atol=0.05)
    np.testing.assert_allclose(autocorrelation(missing, 5), expected, atol=0.05)


def test_band_and_correlation_of_the_page():
    from jfric.fits.fit_result import series

    found = fitted()
    (one,) = series(found)
    # Nearly all samples lie in the band, which is a little wider than the noise.
    assert 0.9 < np.mean(np.abs(one.residual) < 1.96 * one.spread) < 1.0
    assert np.all(one.spread >= found.sigma["u"])


def test_the_page_shows_signals_whose_noise_is_above_one():
    """As of forces in newtons: what counts less than one still counts."""
    from jfric.fits.fit_result import series

    t = np.linspace(0.0, 1.0, 40)
    u = 4.0 + 50.0 * t + 2.0 * np.random.default_rng(3).normal(size=t.size)
    (one,) = series(jfric.fit(Line(), jfric.Experiment(t, y={"u": u}, sigma=2.0), LINE, starts=1))
    np.testing.assert_array_equal(one.measured, u)


class Level(Line):
    """Whatever the slope is."""

    def simulate_outputs(self, values, data):
        return Prediction(0.0 * values["slope"] + jnp.ones((data.t.shape[0], 1)), jnp.asarray(0))


def record_of(found, free, **extra):
    """The record of a fit of a model of one's own, as a file holds it."""
    from jfric.cli.fit_record import fit_record
    from jfric.files.output import as_json
    from jfric.files.read_toml import load_config

    config = load_config(shipped("ve0116"))
    return json.loads(as_json(fit_record(found, config, [], free, {}, **extra)))


def plots(page):
    """Curves and layout of each plot of a page, in their order."""
    found = re.findall(r'<script type="application/json" id="(.*?)-data">(.*?)</script>', page)
    return {name: json.loads(content) for name, content in found}


def numbers(packed):
    return np.frombuffer(base64.b64decode(packed["bdata"]), packed["dtype"])


def test_a_fit_without_finite_errors_has_no_profiles():
    from jfric.cli.fit_record import profiles
    from jfric.figures.view import fit_panels

    t = np.linspace(0.0, 1.0, 40)
    data = jfric.Experiment(t, y={"u": 1.0 + 0.1 * np.random.default_rng(9).normal(size=t.size)})
    found = jfric.fit(Level(), data, {"slope": LINE["slope"]}, starts=1)
    assert found.covariance().intervals() == {"slope": None}
    record = record_of(found, {"slope": LINE["slope"]}, profiles=profiles(found))
    assert fit_panels.residuals(fit_panels.series_of(record))
    assert fit_panels.certainty(record) == fit_panels.profiles(record) == []


def test_profiles_and_pairs_of_the_page():
    from jfric.cli.fit_record import profiles, samples
    from jfric.figures.view import fit_panels

    found = fitted()
    drawn = np.random.default_rng(8).multivariate_normal(
        found.vector, found.covariance().matrix, (4, 300)
    )
    one = np.ones(2)
    posterior = samples(Posterior(found.names, drawn, one, one, 0.3))
    assert (posterior["count"], len(posterior["values"])) == (1_200, 1_000)
    record = record_of(found, {}, profiles=profiles(found), samples=posterior)
    shown = plots("".join(fit_panels.profiles(record)))
    titles = [plot["layout"]["xaxis"]["title"]["text"] for plot in shown.values()]
    assert titles == ["rate", "omega"]
    parabola, profile, limit = shown["profile-0"]["data"]
    # A model that is nearly linear over the profile: both are the same curve, through 95 %.
    x, deviance = numbers(profile["x"]), numbers(profile["y"])
    near = np.interp(x, numbers(parabola["x"]), numbers(parabola["y"]))
    np.testing.assert_allclose(near, deviance, atol=0.6)
    assert deviance.min() < 0.01 < limit["y"][0] < deviance.max()
    shown = plots("".join(fit_panels.certainty(record)))
    assert shown["correlations"]["data"][0]["y"] == ["rate", "omega"]
    cloud, inner, outer = (
        np.array([numbers(trace["x"]), numbers(trace["y"])])
        for trace in shown["corner"]["data"]
        if trace.get("xaxis") == "x3"
    )
    inside = np.linalg.inv(np.cov(outer))
    off = cloud - outer.mean(axis=1, keepdims=True)
    # The outer ellipse is the level 2 of its own second moments.
    assert np.mean(np.einsum("im,ij,jm->m", off, inside, off) < 2.0) == pytest.approx(
        0.95, abs=0.04
    )
    assert np.ptp(inner[0]) < np.ptp(outer[0])
    shown = plots("".join(fit_panels.residuals(fit_panels.series_of(record))))
    assert [plot["layout"]["xaxis"]["title"]["text"] for plot in shown.values()] == [
        "velocity of u [m/s]",
        "position of u [m]",
        "lag [s]",
        "residual of u / its standard deviation",
    ]
    assert shown["velocity-0"]["layout"]["yaxis"]["title"]["text"] == "residual of u [m]"
    (plot,) = plots(fit_panels.starts(record)).values()
    title = plot["layout"]["yaxis"]["title"]["text"]
    assert title == "cost, before the noise was estimated"


@pytest.mark.slow
def test_each_signal_has_its_own_spread():
    from test_identify import FREE, NOISE, SOLVER, T, oscillator

    from jfric.fits.fit_result import series

    rng = np.random.default_rng(3)
    s = jfric.simulate(jfric.set_parameters(oscillator(), {"friction.mu": 0.11}), ts=T)
    y = {"u": s.q[:, 0] + NOISE * rng.normal(size=T.size)}
    y["v.u"] = s.v[:, 0] + 30 * NOISE * rng.normal(size=T.size)
    free = {"friction.mu": FREE["friction.mu"]}
    result = jfric.fit(oscillator(), jfric.Experiment(T, y=y), free, solver=SOLVER, starts=1)
    first, second = series(result)
    assert first.spread.min() == pytest.approx(result.sigma["u"], rel=0.1)
    assert second.spread.min() == pytest.approx(result.sigma["v.u"], rel=0.1)
    assert result.sigma["v.u"] > 2.0 * result.sigma["u"]
