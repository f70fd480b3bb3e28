"""Fits of synthetic data: traps, bounds, what the data cannot tell, bad input."""

import dataclasses
import functools
import re

import numpy as np
import pytest

import jfric
from jfric.fits.optimise import descents
from jfric.fits.optimise.descents import Outcome
from jfric.fits.plausibility import scatter
from jfric.fits.recipe import prepare

T = np.linspace(0.0, 4.0, 400)
TRUTH = {"friction.mu": 0.11, "spring.main.k": 5000.0}
#: Standard deviation of the noise [m]: 1 % of the peak.
NOISE = 0.0056
#: Few passes are allowed, so that a simulation can fail.
SOLVER = jfric.EventDriven(max_events=0, max_steps=60)
#: The last one changes nothing: where a spring without stiffness is relaxed.
FREE = {
    "friction.mu": jfric.Free(1e-4, 2.0, init=1.7),
    "spring.main.k": jfric.Free(3e3, 1e8),
    "spring.idle.x0": jfric.Free(-1.0, 1.0, scale="linear"),
}


def starting(mu: float, k: float) -> dict[str, jfric.Free]:
    return {
        **FREE,
        "friction.mu": jfric.Free(0.01, 2.0, init=mu),
        "spring.main.k": jfric.Free(3e3, 8e3, init=k),
    }


@functools.cache
def oscillator():
    """VE0116."""
    elements = {
        "mass": jfric.Mass("u", 100.0),
        "spring": {"main": jfric.Spring("u", 5000.0), "idle": jfric.Spring("u", 0.0)},
        "friction": jfric.Friction("u", jfric.Coulomb(0.1), N=1000.0),
        "load": jfric.Load("u", 1500.0),
    }
    return jfric.Problem(["u"], elements, time=4.0)


@functools.cache
def clean() -> np.ndarray:
    """Displacements at mu = 0.11, by the program that the fits use."""
    blank = jfric.Experiment(T, y={"u": np.zeros(T.size)}, sigma=1.0)
    objective = prepare(oscillator(), blank, FREE, solver=SOLVER).objective
    return objective.predict(np.array([[*TRUTH.values(), 0.0]]))[0, 0, :, 0]


def noisy(count: int, seed: int = 1) -> np.ndarray:
    return clean() + NOISE * np.random.default_rng(seed).normal(size=(count, T.size))


@functools.cache
def measured(**options) -> jfric.Experiment:
    return jfric.Experiment(T, y={"u": noisy(1)[0]}, sigma=NOISE)


@functools.cache
def fitted() -> jfric.FitResult:
    return jfric.fit(oscillator(), measured(), FREE, solver=SOLVER)


@functools.cache
def batch():
    """200 noise draws, from one start."""
    free = starting(0.1, 4900.0)
    return jfric.fit_batch(
        oscillator(), measured(), free, {"u": noisy(200, 2)}, starts=1, solver=SOLVER
    )


@pytest.mark.parametrize("starts", [1, 3])
def test_a_batch_of_fits_is_each_fit_by_itself(starts):
    """Free swings of one mass with several stiffnesses."""
    elements = {"mass": jfric.Mass("u", 1.0), "spring": jfric.Spring("u", 4.0)}
    problem = jfric.Problem(["u"], elements, initial={"u": jfric.InitialState(q=1.0)}, time=2.0)
    t, k = np.linspace(0.1, 2.0, 12), np.array([3.6, 4.0, 4.4])
    swings = np.cos(np.sqrt(k)[:, None] * t)
    data = jfric.Experiment(t, y={"u": swings[1]}, sigma=1e-3)
    free = {"spring.k": jfric.Free(3.0, 5.0, init=3.9)}
    found = jfric.fit_batch(problem, data, free, {"u": swings}, starts=starts)
    np.testing.assert_allclose(found.estimates[:, 0], k, rtol=1e-6)


@pytest.mark.slow
def test_prediction_is_the_closed_form():
    omega, t1 = np.sqrt(50.0), np.pi / np.sqrt(50.0)
    phase = np.minimum(T // t1, 7).astype(int)
    u, turns = np.zeros_like(T), [0.0]
    for i in range(7):
        center = 0.3 - 0.022 * (-1) ** i
        turns.append(2.0 * center - turns[-1])
        now = phase == i
        u[now] = center + (turns[i] - center) * np.cos(omega * (T[now] - i * t1))
    u[phase == 7] = turns[7]
    np.testing.assert_allclose(clean(), u, atol=1e-12)


@pytest.mark.slow
def test_start_where_everything_sticks_is_recovered():
    stuck = [w for w in fitted().waterfall if w["start"]["friction.mu"] == pytest.approx(1.7)]
    assert stuck[0]["outcome"] == Outcome.NO_GRADIENT
    errors = fitted().covariance("gauss-newton").standard_errors
    for name, value in TRUTH.items():
        assert abs(fitted().values[name] - value) < 4.0 * errors[name]


@pytest.mark.slow
def test_failed_start_leaves_the_others_alone():
    good, failed = (0.1, 4900.0, 0.0), (1e-4, 1e8, 0.0)  # thousands of half cycles
    task = prepare(oscillator(), measured(), FREE, solver=SOLVER)
    normal = task.objective.normal
    cost = normal(np.array([good, failed, good])).cost
    assert np.isinf(cost[1])
    assert cost[0] == cost[2] == normal(np.array([good])).cost[0]
    free = {
        **FREE,
        "friction.mu": jfric.Free(1e-4, 2.0, init=1e-4),
        "spring.main.k": jfric.Free(3e3, 1e8, init=1e8),
    }
    result = jfric.fit(oscillator(), measured(), free, solver=SOLVER)
    assert Outcome.FAILED in [w["outcome"] for w in result.waterfall]
    np.testing.assert_allclose(result.vector[:2], fitted().vector[:2], rtol=1e-6)


@pytest.mark.slow
def test_scatter_of_many_fits_is_what_the_standard_errors_say():
    found = batch()
    assert np.all(found.outcome == Outcome.CONVERGED)
    truth = np.array(list(TRUTH.values()))
    pulls = (found.estimates[:, :2] - truth) / found.standard_errors[:, :2]
    # Mean and spread of 200 draws: four times their own scatter.
    assert np.all(np.abs(pulls.mean(axis=0)) < 4.0 / np.sqrt(200))
    assert np.all(np.abs(pulls.std(axis=0) - 1.0) < 4.0 / np.sqrt(400))


def errors(found) -> np.ndarray:
    """Standard errors of mu and k."""
    return np.array([found.standard_errors[name] for name in TRUTH])


@pytest.mark.slow
def test_uncertainties_agree():
    fit = fitted()
    gauss = errors(fit.covariance("gauss-newton"))
    hac = errors(fit.covariance("hac"))
    again = errors(fit.bootstrap(100, block=1))
    profiles = fit.profile(list(TRUTH), points=7)
    widths = [p.interval() for p in profiles.values()]
    assert all(w is not None for w in widths)
    half = np.array([0.5 * (w[1] - w[0]) / 1.959964 for w in widths if w])
    np.testing.assert_allclose(half, gauss, rtol=0.03)
    # These two scatter: by a tenth or so for one data set.
    np.testing.assert_allclose(hac, gauss, rtol=0.4)
    np.testing.assert_allclose(again, gauss, rtol=0.4)


@pytest.mark.slow  # its sibling: scatter that is given
def test_estimated_noise_is_that_of_the_data():
    unknown = jfric.Experiment(T, y=measured().y)
    result = jfric.fit(oscillator(), unknown, starting(0.1, 4900.0), solver=SOLVER, starts=1)
    assert result.sigma["u"] == pytest.approx(NOISE, rel=4.0 / np.sqrt(800))
    np.testing.assert_allclose(result.vector[:2], fitted().vector[:2], rtol=1e-6)


@pytest.mark.slow
def test_fit_written_as_json_is_read_and_repeated():
    read = jfric.FitResult.from_json(fitted().to_json())
    np.testing.assert_array_equal(read.vector, fitted().vector)
    assert read.waterfall == fitted().waterfall
    assert read.covariance().standard_errors == fitted().covariance().standard_errors
    np.testing.assert_array_equal(read.refit().vector, fitted().vector)
    with pytest.raises(jfric.ProblemError, match="no fit"):
        jfric.FitResult.from_json("{}")


def test_outliers_count_less_with_a_robust_loss():
    spoilt = measured().y["u"].copy()
    spoilt[20:400:20] += 0.3
    data = jfric.Experiment(T, y={"u": spoilt}, sigma=NOISE)
    free = starting(0.1, 4900.0)
    expected = errors(fitted().covariance("gauss-newton"))

    def off(loss):
        result = jfric.fit(oscillator(), data, free, loss=loss, solver=SOLVER, starts=1)
        return np.abs(result.vector - fitted().vector)[:2] / expected

    assert np.max(off(jfric.Squares())) > 3.0
    assert np.all(off(jfric.Cauchy()) < 1.0)


def test_missing_samples_are_left_out():
    mask = np.ones(T.size, bool)
    mask[100:120] = False
    y = np.where(mask, measured().y["u"], np.nan)
    data = jfric.Experiment(T, y={"u": y}, sigma=NOISE, mask=mask)
    free = starting(0.1, 4900.0)
    result = jfric.fit(oscillator(), data, free, solver=SOLVER, starts=1)
    errors = result.covariance("gauss-newton").standard_errors
    for name, value in TRUTH.items():
        assert abs(result.values[name] - value) < 4.0 * errors[name]


def test_an_interval_at_a_bound_has_one_side():
    free = {**starting(0.1, 4900.0), "friction.mu": jfric.Free(0.12, 0.5, init=0.2)}
    result = jfric.fit(oscillator(), measured(), free, solver=SOLVER)
    assert result.values["friction.mu"] == pytest.approx(0.12, rel=1e-6)
    covariance = result.covariance()
    low, high = covariance.intervals()["friction.mu"]
    assert low == pytest.approx(0.12, rel=1e-12)
    assert 0.12 < high < 0.13
    assert "lower bound 0.12" in covariance.remarks()[0]


def test_residuals_far_above_the_noise_are_named():
    """Noise of 10 um. With mu held too low the fit leaves millimetres; at the minimum, noise."""
    record = clean() + 1e-5 * np.random.default_rng(4).normal(size=T.size)
    found = {}
    for name, mu in (("low", jfric.Free(0.01, 0.06, init=0.05)), ("free", FREE["friction.mu"])):
        free = {**FREE, "friction.mu": mu}
        experiment = jfric.Experiment(T, y={"u": record})
        found[name] = str(jfric.fit(oscillator(), experiment, free, solver=SOLVER))
    said = re.search(r"residuals of u are ([\d,]+) times the scatter of .*?, (\S+):", found["low"])
    assert said is not None
    assert float(said[1].replace(",", "")) > 100
    assert float(said[2]) == pytest.approx(1e-5, rel=0.15)
    assert "another minimum (search: global)" in found["low"]
    assert "residuals of" not in found["free"]


@pytest.mark.parametrize(
    "optimiser",
    [jfric.LBFGS(), jfric.Adam(), pytest.param(jfric.DirectSearch(), marks=pytest.mark.slow)],
)
def test_optimisers_find_the_same_minimum(optimiser):
    free = starting(0.109, 4995.0)
    result = jfric.fit(oscillator(), measured(), free, solver=SOLVER, starts=1, optimiser=optimiser)
    assert result.cost == pytest.approx(fitted().cost, rel=1e-5)


def test_check_names_what_does_nothing():
    free = starting(0.2, 4900.0)
    report = jfric.check(oscillator(), measured(), free, solver=SOLVER)
    assert not report.ok
    found = [f for f in report.findings if f.topic == "spring.idle.x0"]
    assert "does nothing" in found[0].message
    assert report.influence["friction.mu"] > 10.0
    assert report.derivative_error < 1e-6
    assert 0.0 < report.stick_fraction["1"][0] < 1.0
    assert report.reversals["1"][0] == 3


def test_check_names_a_model_that_never_slips():
    free = starting(1.7, 4900.0)
    report = jfric.check(oscillator(), measured(), free, solver=SOLVER)
    assert "never slips" in [f.topic for f in report.findings]
    assert report.stick_fraction["1"] == [1.0]


def test_parameter_without_influence_gets_no_interval():
    free = starting(0.1, 4900.0)
    result = jfric.fit(oscillator(), measured(), free, solver=SOLVER, starts=1)
    covariance = result.covariance()
    assert covariance.intervals()["spring.idle.x0"] is None
    assert covariance.unidentified == ({"spring.idle.x0": pytest.approx(1.0)},) or (
        covariance.unidentified == ({"spring.idle.x0": pytest.approx(-1.0)},)
    )
    assert result.values["friction.mu"] == pytest.approx(fitted().values["friction.mu"], rel=1e-5)
    # Without a standard error its profile goes from bound to bound, also where those are opposite.
    profile = result.profile(["spring.idle.x0"], points=3)["spring.idle.x0"]
    assert (profile.values[0], profile.values[-1]) == (-1.0, 1.0)
    np.testing.assert_allclose(profile.deviance, 0.0, atol=1e-6)
    assert profile.interval() is None


@pytest.mark.slow
def test_reverse_mode_gives_the_same_gradient(monkeypatch):
    task = prepare(oscillator(), measured(), FREE, solver=SOLVER)
    z = task.objective.layout.coordinates(np.array([[0.11, 5000.0, 0.0], [0.2, 4000.0, 0.1]]))
    forward = descents._value_and_gradient(task.objective, z)
    monkeypatch.setattr(descents, "FORWARD_UP_TO", 1)
    reverse = descents._value_and_gradient(task.objective, z)
    np.testing.assert_allclose(reverse[0], forward[0], rtol=1e-12)
    np.testing.assert_allclose(reverse[1], forward[1], rtol=1e-8, atol=1e-8)


BOUNCES = {
    "contact.e": jfric.Free(0.5, 0.99, init=0.9, scale="linear"),
    "delay": jfric.Free(0.0, 0.1, init=0.0, scale="linear"),
    "sensor.z.gain": jfric.Free(0.5, 2.0),
    "sensor.z.offset": jfric.Free(-1.0, 1.0, scale="linear"),
    "initial.q": jfric.Free(0.5, 2.0, per_experiment=True),
}


def ball_task(heights=(1.0, 0.8), counts=(80, 60)):
    """Two drops of different heights and lengths, each with more than ten impacts."""
    elements = {
        "mass": jfric.Mass("z", 1.0),
        "contact": jfric.Contact("z", e=0.9),
        "load": jfric.Load("z", -9.81),
    }
    problem = jfric.Problem(["z"], elements, time=7.0)
    data = [
        jfric.Experiment(
            np.linspace(0.02, 0.085 * m, m),
            y={"z": np.ones(m)},
            x0={"z": height},
            start=0.0,
            sigma=1e-3,
        )
        for height, m in zip(heights, counts, strict=True)
    ]
    return problem, data, prepare(problem, data, BOUNCES)


def ball(t, height, e, g=9.81):
    """Height after any number of impacts, and its derivatives by e and by the first height."""
    fall = np.sqrt(2.0 * height / g)
    speed = g * fall
    # Impact number i at fall (1 + 2 (e + ... + e^(i-1))); speed e^i v after it.
    i, start, slope = np.zeros(t.size, int), np.zeros(t.size), np.zeros(t.size)
    for n in range(1, 60):
        powers = e ** np.arange(1, n)
        at = fall * (1.0 + 2.0 * powers.sum())
        past = t >= at
        i[past], start[past] = n, at
        slope[past] = fall * 2.0 * (np.arange(1, n) * e ** (np.arange(1, n) - 1.0)).sum()
    s = t - start
    up = np.where(i > 0, speed * e**i, 0.0)
    z = np.where(i > 0, up * s, height) - 0.5 * g * s**2
    v = up - g * s
    by_e = np.where(i > 0, i * speed * e ** (i - 1.0) * s - v * slope, 0.0)
    by_height = np.where(i > 0, 0.5 * up * s / height - v * 0.5 * start / height, 1.0)
    return z, v, by_e, by_height, i


@pytest.mark.slow
def test_derivatives_through_ten_impacts_are_the_closed_form():
    _, data, task = ball_task()
    objective = task.objective
    assert objective.layout.names[-2:] == ("initial.z.q[1]", "initial.z.q[2]")
    delay, gain, offset = 0.01, 1.3, 0.2
    x = np.array([0.9, delay, gain, offset, 1.0, 0.8])
    found = objective.linearise(x[None])
    for k, (experiment, height) in enumerate(zip(data, (1.0, 0.8), strict=True)):
        m = experiment.t.size
        z, v, by_e, by_height, impacts = ball(experiment.t - delay, height, 0.9)
        assert impacts[-1] >= 10
        np.testing.assert_allclose(found.predicted[0, k, :m, 0], gain * z + offset, atol=1e-11)
        expected = np.stack([gain * by_e, -gain * v, z, np.ones(m), gain * by_height], axis=1)
        jacobian = found.jacobian[0, k, :m, 0] * 1e-3
        np.testing.assert_allclose(jacobian, expected, atol=1e-8 * np.abs(expected).max())
        # Behind the end of the shorter one nothing counts.
        assert np.all(found.residuals[0, k, m:] == 0.0)


@pytest.mark.slow
def test_sensor_and_initial_states_are_found_with_the_rest():
    problem, data, task = ball_task()
    truth = np.array([0.88, 0.01, 1.1, 0.05, 1.02, 0.79])
    predicted = task.objective.predict(truth[None])[0]
    noise = np.random.default_rng(5).normal(size=predicted.shape)
    measured = [
        jfric.Experiment(
            e.t, y={"z": (predicted + 1e-3 * noise)[k, : e.t.size, 0]}, sigma=1e-3,
            x0=e.x0, start=0.0,
        )
        for k, e in enumerate(data)
    ]  # fmt: skip
    # The gain cannot be told from the heights of the drops: it is known from a calibration.
    free = {**BOUNCES, "sensor.z.gain": jfric.Free(0.5, 2.0, prior=(1.1, 1e-4))}
    free["contact.e"] = jfric.Free(0.85, 0.91, init=0.885, scale="linear")
    free["delay"] = jfric.Free(0.0, 0.1, init=0.012, scale="linear")
    result = jfric.fit(problem, measured, free, starts=2)
    errors = np.array(list(result.covariance("gauss-newton").standard_errors.values()))
    assert np.all(np.abs(result.vector - truth) < 4.5 * errors)
    assert np.all(errors < [1e-3, 1e-2, 1e-2, 1e-2, 1e-2, 1e-2])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"y": {"u": np.zeros(399)}}, ["y.u", "399", "400"]),
        ({"y": {"u": np.where(np.arange(400) == 7, np.nan, 0.0)}}, ["y.u", "sample 7", "mask"]),
        ({"y": {"x": np.zeros(400)}}, ["y.x", "there are u"]),
        ({"t": T[::-1], "y": {"u": T}}, ["t:", "increase"]),
        ({"y": {"u": T}, "sigma": 0.0}, ["sigma.u", "positive"]),
        ({"y": {"u": T}, "x0": {"w": 1.0}}, ["x0.w", "degree of freedom"]),
        ({"y": {"u": T}, "u": {"load.G": T}}, ["u.load.G", "load.F"]),
        ({"y": {"u": T}, "mask": np.zeros(400, bool)}, ["mask", "no sample"]),
        ({"t": T - 1.0, "y": {"u": T}}, ["t:", "-1 s", "start"]),
    ],
)
def test_bad_data_are_refused_in_one_sentence(change, words):
    refused(words, lambda: jfric.Experiment(**({"t": T} | change)), FREE)


@pytest.mark.parametrize(
    ("free", "options", "words"),
    [
        ({}, {}, ["free", "no parameter"]),
        ({"friction.mo": FREE["friction.mu"]}, {}, ["friction.mo", "did you mean 'friction.mu'"]),
        ({"friction.mu": 0.1}, {}, ["friction.mu", "jfric.Free"]),
        (FREE, {"loss": "hubert"}, ["loss", "did you mean 'huber'"]),
        (FREE, {"optimiser": "lm"}, ["optimiser", "levenberg-marquardt"]),
        (FREE, {"observe": "v.u"}, ["observe", "measured are u"]),
        (FREE, {"starts": 0}, ["starts", "at least 1"]),
    ],
)
def test_bad_options_are_refused_in_one_sentence(free, options, words):
    refused(words, lambda: jfric.Experiment(T, y={"u": T}), free, **options)


def refused(words, experiment, free, **options):
    with pytest.raises(jfric.ProblemError) as error:
        jfric.fit(oscillator(), experiment(), free, **options)
    message = str(error.value)
    assert "\n" not in message
    assert all(word in message for word in words), message


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ((2.0, 1.0), "lower"),
        ((0.0, 1.0), "linear"),
        ((0.1, 1.0, 2.0), "init"),
        ((0.1, 1.0, None, "logarithmic"), "log"),
        ((0.1, np.inf), "finite"),
    ],
)
def test_bad_ranges_are_refused(arguments, word):
    with pytest.raises(jfric.ProblemError, match=word):
        jfric.Free(*arguments)


def test_a_record_of_a_few_values_has_no_scatter():
    """Values of steady states are one or two for each load: nothing is said of their noise."""
    for count in (1, 2, 4):
        values = np.ones((3, count))
        assert scatter(values, values > 0.0, 0.1) == 0.0
    values = np.random.default_rng(0).normal(size=(1, 4000))
    assert scatter(values, np.isfinite(values), 0.1) == pytest.approx(1.0, rel=0.1)


def test_each_record_starts_from_its_own_value():
    layout = ball_task()[2].objective.layout
    assert layout.init[-2:].tolist() == [1.0, 0.8]


def test_a_lower_bound_stays_one_in_json():
    at = np.array([-1, 0, 1])
    found = dataclasses.replace(fitted(), at_bound=at)
    assert jfric.FitResult.from_json(found.to_json()).at_bound.tolist() == at.tolist()
