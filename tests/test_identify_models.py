"""Fits of models of one's own, whose least squares are known: jumps, many parameters, samples."""

import re
import types
from collections.abc import Mapping
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.signal

import jfric
from jfric.fits.free import lay_out
from jfric.fits.minimise import _warmth
from jfric.fits.model import AbstractModel, Prediction
from jfric.fits.objective import AbstractLoss
from jfric.fits.optimise.descents import Outcome
from jfric.fits.optimise.direct_search import direct_search
from jfric.fits.recipe import Recipe, from_words
from jfric.fits.uncertainty.posterior import log_density
from jfric.fits.uncertainty.residual_series import bandwidth, long_run_covariance

T = np.linspace(0.0, 1.0, 200)
NOISE = 0.1


class Polynomial(AbstractModel):
    """``y = sum_i a_i cos(i pi t)``, and 10 more where ``a0`` exceeds ``jump``."""

    jump: float = 1e9

    def default(self, path, experiment):
        return 0.1

    def initial(self, experiment):
        return 0.0, {}

    def simulate_outputs(self, values: Mapping, data):
        waves = [x * jnp.cos(int(path[1:]) * jnp.pi * data.t) for path, x in values.items()]
        y = sum(waves) + jnp.where(values["a0"] > self.jump, 10.0, 0.0)
        return Prediction(y[:, None], jnp.asarray(0))


def measured(count: int, seed: int = 0, noise=None):
    """Noisy samples of the sum with ``a_i = 1/(i + 1)``, and the matrix of the waves."""
    waves = np.cos(np.outer(T, np.arange(count)) * np.pi)
    truth = 1.0 / (1.0 + np.arange(count))
    noise = np.random.default_rng(seed).normal(size=T.size) if noise is None else noise
    y = waves @ truth + NOISE * noise
    return jfric.Experiment(T, y={"y": y}, sigma=NOISE), waves


def free(count: int, **options):
    return {f"a{i}": jfric.Free(-3.0, 3.0, scale="linear", **options) for i in range(count)}


def test_minimum_at_a_jump_is_refined_without_derivatives_and_said():
    data, _ = measured(1)
    result = jfric.fit(Polynomial(jump=0.5), data, {"a0": jfric.Free(0.01, 0.9)}, starts=1)
    assert result.outcome == Outcome.STALLED
    assert result.values["a0"] == pytest.approx(0.5, abs=1e-5)
    assert "without derivatives" in result.remarks[0]


def test_many_parameters_at_a_jump_are_not_searched_without_derivatives():
    data, _ = measured(13)
    ranges = free(13) | {"a0": jfric.Free(0.01, 0.9)}
    result = jfric.fit(Polynomial(jump=0.5), data, ranges, starts=1)
    assert result.outcome == Outcome.STALLED
    assert "for at most 12 free parameters" in result.remarks[0]


class Coarse(Polynomial):
    """Steps that are too long add 0.3 to each prediction."""

    def simulate_outputs(self, values: Mapping, data):
        found = super().simulate_outputs(values, data)
        return found._replace(y=found.y + 0.3)

    def refined(self):
        return Polynomial()


@pytest.mark.parametrize(("width", "nothing"), [(1e-6, False), (1e-10, True)])
def test_a_check_tells_weak_parameters_from_those_that_do_nothing(width, nothing):
    ranges = free(1) | {"a1": jfric.Free(-width, width, scale="linear")}
    report = jfric.check(Polynomial(), measured(1)[0], ranges)
    # A wave over 200 samples, in noise levels of 0.1.
    assert report.influence["a1"] == pytest.approx(200.0 * width, rel=0.01)
    said = [x.kind for x in report.findings if x.topic == "a1" and "does nothing" in x.message]
    assert said == (["problem"] if nothing else [])


@pytest.mark.parametrize("sigma", [0.02, 2.0, 60.0])
def test_a_check_counts_the_error_of_steps_in_noise_levels(sigma):
    data = replace(measured(1)[0], sigma=sigma)
    report = jfric.check(Coarse(), data, free(1))
    assert report.step_error == pytest.approx(0.3 / sigma, rel=1e-12)
    assert any(x.topic == "steps" for x in report.findings) is (0.3 / sigma > 0.1)


def test_the_search_without_derivatives_closes_in_on_a_bowl():
    """Six curvatures up to 36 times as large; its generations are enough for six digits."""
    goal = np.linspace(1.0, 3.0, 6)
    numbers = {f"a{i}": jfric.Free(0.0, 4.0, scale="linear") for i in range(6)}
    layout = lay_out(numbers, {name: np.array([2.0]) for name in numbers}, ["record"])

    def cost(x):
        return np.sum(((x - goal) * np.arange(1, 7)) ** 2, axis=1)

    best, least, used = direct_search(cost, layout, np.full(6, 2.0))
    assert used < 60  # it ends by itself
    np.testing.assert_allclose(best, goal, atol=1e-6)
    assert least < 1e-11


@pytest.mark.parametrize("optimiser", [jfric.LevenbergMarquardt, jfric.LBFGS, jfric.Adam])
def test_many_parameters_are_those_of_linear_least_squares(optimiser):
    count = 20  # more than forward derivatives are taken for
    data, waves = measured(count)
    expected = np.linalg.lstsq(waves, data.y["y"], rcond=None)[0]
    result = jfric.fit(Polynomial(), data, free(count), starts=1, optimiser=optimiser(400))
    np.testing.assert_allclose(result.vector, expected, atol=2e-4)


@pytest.mark.slow
def test_covariance_profile_and_posterior_are_those_of_linear_least_squares():
    data, waves = measured(2)
    result = jfric.fit(Polynomial(), data, free(2), starts=1)
    exact = NOISE * np.sqrt(np.diagonal(np.linalg.inv(waves.T @ waves)))
    gauss = list(result.covariance("gauss-newton").standard_errors.values())
    np.testing.assert_allclose(gauss, exact, rtol=1e-6)
    for name, profile in result.profile().items():
        low, high = profile.interval() or (0.0, 0.0)
        i = result.names.index(name)
        assert 0.5 * (high - low) / 1.959964 == pytest.approx(exact[i], rel=1e-3)
    pytest.importorskip("blackjax")
    posterior = result.sample(1500, warmup=200, chains=8)
    assert np.all(posterior.rhat < 1.05)
    # Some 2,000 effective samples: their spread is known to 2 %.
    np.testing.assert_allclose(list(posterior.standard_errors.values()), exact, rtol=0.1)
    density, position, parameters = log_density(result)
    np.testing.assert_allclose(parameters(jnp.asarray(position)), result.vector, rtol=1e-6)
    step = 1e-5 * np.array([1.0, -2.0])
    place = position + 3.0 * np.array([1e-2, 2e-2])  # the slope is zero at the fit
    value = jax.jit(density)
    change = float(value(place + step) - value(place - step))
    slope = np.asarray(jax.jit(jax.grad(density))(place))
    assert change == pytest.approx(2.0 * float(step @ slope), rel=1e-5)


def test_prior_counts_like_a_measurement():
    data, waves = measured(1)
    prior = {"a0": jfric.Free(-3.0, 3.0, scale="linear", prior=(0.5, 0.01))}
    result = jfric.fit(Polynomial(), data, prior, starts=1)
    information = waves[:, 0] @ waves[:, 0] / NOISE**2
    expected = (information * np.mean(data.y["y"]) + 0.5 / 0.01**2) / (information + 1e4)
    assert result.values["a0"] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("method", ["hac", "autoregressive"])
def test_a_prior_counts_in_every_covariance(method):
    """A prior that is far narrower than what white noise leaves open decides alone."""
    data, _ = measured(1)
    prior = {"a0": jfric.Free(-3.0, 3.0, scale="linear", prior=(1.0, 1e-3))}
    result = jfric.fit(Polynomial(), data, prior, starts=1)
    assert result.covariance(method).standard_errors["a0"] == pytest.approx(1e-3, rel=0.02)


def test_newey_west_holds_for_autocorrelated_noise_where_white_noise_does_not():
    rng = np.random.default_rng(3)
    estimates, white, hac = [], [], []
    for _ in range(60):
        noise, value = np.zeros(T.size), 0.0
        for i, step in enumerate(rng.normal(size=T.size)):
            value = 0.8 * value + 0.6 * step
            noise[i] = value
        data, _ = measured(1, noise=noise)
        result = jfric.fit(Polynomial(), data, free(1), starts=1)
        estimates.append(result.values["a0"])
        white.append(result.covariance("gauss-newton").standard_errors["a0"])
        hac.append(result.covariance("hac").standard_errors["a0"])
    spread = np.std(estimates, ddof=1)
    # The long-run deviation of this noise is three times that of one sample.
    assert np.mean(white) < 0.5 * spread
    assert 0.65 * spread < np.mean(hac) < 1.35 * spread


def test_long_run_covariance_of_white_noise_is_its_variance():
    series = np.random.default_rng(4).normal(size=(20000, 1))
    assert bandwidth(series) <= 5
    assert long_run_covariance(series, 5)[0, 0] / 20000 == pytest.approx(1.0, abs=0.1)


def test_long_run_covariance_weighs_lags_by_bartlett():
    a, b, c = series = np.array([1.0, -2.0, 5.0])
    expected = a * a + b * b + c * c + 2 * (2 / 3) * (a * b + b * c) + 2 * (1 / 3) * a * c
    assert long_run_covariance(series[:, None], 2)[0, 0] == pytest.approx(expected)


def test_experiments_are_drawn_with_replacement():
    data = [measured(1, seed)[0] for seed in range(8)]
    result = jfric.fit(Polynomial(), data, free(1), starts=1)
    drawn = result.bootstrap(200, resample="experiments")
    means = [np.mean(e.y["y"]) for e in data]
    expected = np.std(means) / np.sqrt(8)
    assert drawn.standard_errors["a0"] == pytest.approx(expected, rel=0.25)
    low, high = drawn.intervals(0.9)["a0"]
    below, above = (np.mean(drawn.estimates[:, 0] <= x) for x in (low, high))
    assert (below, above) == (pytest.approx(0.05, abs=0.01), pytest.approx(0.95, abs=0.01))


def test_mini_batches_of_experiments():
    data = [measured(2, seed)[0] for seed in range(6)]
    whole = jfric.fit(Polynomial(), data, free(2), starts=1)
    few = jfric.fit(Polynomial(), data, free(2), starts=1, optimiser=jfric.Adam(400, batch=2))
    errors = np.array(list(whole.covariance("gauss-newton").standard_errors.values()))
    assert np.all(np.abs(few.vector - whole.vector) < 0.5 * errors)


def test_words_of_older_programs_are_translated():
    data, _ = measured(2)
    with pytest.warns(DeprecationWarning, match="are objects") as said:
        old = jfric.fit(
            Polynomial(), data, free(2), starts=1, loss="huber", loss_scale=2.0, max_iterations=5
        )
    (warning,) = said
    words = "write loss=jfric.Huber(scale=2.0), optimiser=jfric.LevenbergMarquardt("
    assert words in str(warning.message)
    assert warning.filename == __file__
    settings = {"loss": jfric.Huber(2.0), "optimiser": jfric.LevenbergMarquardt(5)}
    new = jfric.fit(Polynomial(), data, free(2), starts=1, **settings)
    np.testing.assert_array_equal(new.vector, old.vector)
    with pytest.raises(jfric.ProblemError, match="loss_scale: belongs into"):
        jfric.fit(Polynomial(), data, free(2), loss=jfric.Huber(), loss_scale=2.0)


def test_settings_come_back_from_their_words():
    options = {
        "residual": jfric.Windows(0.5),
        "loss": jfric.Cauchy(3.0),
        "search": jfric.Global([1.0, 2.0]),
        "optimiser": jfric.Adam(50, batch=2),
    }
    again = from_words(Recipe.of(Polynomial(), [], {}, **options).words())
    assert {k: again[k] for k in options} == options
    # As JSON has them.
    options["search"] = jfric.Global(np.array([1.0, 2.0]))
    assert Recipe.of(Polynomial(), [], {}, **options).words()["schedule"] == [1.0, 2.0]
    assert Recipe.of(Polynomial(), [], {}).words()["schedule"] is None

    class Own(AbstractLoss):
        scale = 1.0
        rho = staticmethod(jfric.Cauchy.rho)

    with pytest.raises(jfric.ProblemError, match="which cannot be written"):
        Recipe.of(Polynomial(), [], {}, loss=Own()).words()


def test_residual_of_ones_own():
    data, waves = measured(2)

    def every_second(predicted, measured, weight):
        return (weight * (predicted - measured))[::2]

    result = jfric.fit(Polynomial(), data, free(2), residual=every_second, starts=1)
    expected = np.linalg.lstsq(waves[::2], data.y["y"][::2], rcond=None)[0]
    np.testing.assert_allclose(result.vector, expected, rtol=1e-5)
    with pytest.raises(jfric.ProblemError, match="own"):
        result.to_json()


@pytest.mark.parametrize(
    ("option", "said"),
    [
        (
            {"residual": jfric.Windows(0.5)},
            "residual: found Windows(length=0.5, states='followed') together with a Polynomial",
        ),
        ({"solver": jfric.EventDriven()}, "solver: found "),
        ({"hold": "linear"}, "hold: found 'linear' together with a Polynomial, which has its own"),
    ],
)
def test_what_a_model_of_ones_own_decides_is_refused_beside_it(option, said):
    """It was left out without a word."""
    data, _ = measured(1)
    with pytest.raises(jfric.ProblemError, match=re.escape(said)):
        jfric.fit(Polynomial(), data, free(1), **option)


def test_a_fit_starts_at_the_own_value_or_in_the_middle_of_the_bounds():
    free = {
        "a": jfric.Free(1.0, 4.0),
        "b": jfric.Free(-1.0, 3.0, scale="linear"),
        "c": jfric.Free(1.0, 4.0),
        "d": jfric.Free(1.0, 4.0, init=3.5),
    }
    own = {path: np.array([x]) for path, x in zip("abcd", (9.0, -9.0, 3.0, 2.0), strict=True)}
    np.testing.assert_allclose(lay_out(free, own, ["one"]).init, [2.0, 1.0, 3.0, 3.5], rtol=1e-14)


def test_residuals_that_follow_each_other_make_a_search_warmer():
    """In parameters that act in steps: by ``(1 + a)/(1 - a)``, where each residual is ``a`` times
    the one before and noise; independent ones leave it as it is."""
    noise = np.random.default_rng(0).normal(size=(2, 4000, 1))

    def warmth(a):
        r = scipy.signal.lfilter([1.0], [1.0, -a], noise, axis=1)
        found = types.SimpleNamespace(residuals=r)
        return _warmth(types.SimpleNamespace(linearised_at=lambda x: found), np.zeros(1))

    assert warmth(0.8) == pytest.approx(9.0, rel=0.15)
    assert warmth(0.0) == pytest.approx(1.0, abs=0.1)
    assert warmth(-0.8) == 1.0
