"""Delays, filters and steps of readings: against closed forms, finite differences, simulation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jfric
from jfric.fits.data.stacking import run_lengths, steps_of
from jfric.fits.measurement import (
    acting,
    at_times,
    filtered,
    measurement_parameters,
    shown,
    slopes,
    total_delay,
)
from jfric.fits.objective import LOSSES
from jfric.fits.recipe import prepare

T = np.linspace(0.0, 2.0, 41)
U = np.random.default_rng(0).normal(size=41)


def test_a_measurement_shows_things_as_they_are_unless_told_otherwise():
    values = measurement_parameters(("x",), ("load.F",))
    t, u = jnp.asarray(T), jnp.asarray(U)
    np.testing.assert_allclose(acting(t, u, "load.F", values, "zero"), U, atol=1e-14)
    np.testing.assert_allclose(acting(t, u, "load.F", values, "linear"), U, atol=1e-14)
    np.testing.assert_allclose(shown(t, u, "x", values), U, atol=1e-14)
    assert total_delay("x", values) == 0.0


@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_grows_as_its_slope_says(name):
    """Like the squared residual while that is small, and less beyond one, without a step."""
    s = jnp.asarray([1e-6, 0.1, 0.9, 1.1, 4.0, 25.0])
    value, slope = LOSSES[name].rho(s)
    by_derivative = jax.vmap(jax.grad(lambda s: LOSSES[name].rho(s)[0]))(s)
    np.testing.assert_allclose(slope, by_derivative, rtol=1e-12)
    assert float(value[0]) == pytest.approx(1e-6, rel=1e-5)
    assert (float(value[-1]) < 25.0) == (name != "linear")


def test_a_delayed_step_keeps_its_impulse():
    values = {"input.load.F.delay": 2.3 * 0.05}
    found = acting(jnp.asarray(T), jnp.asarray(U), "load.F", values, "zero")
    before = np.r_[np.full(3, U[0]), U]
    expected = 0.7 * before[1:-2] + 0.3 * before[:-3]
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_a_filtered_step_has_the_mean_of_the_exponential():
    u = np.where(T > 0.49, 1.0, 0.0)
    found = acting(jnp.asarray(T), jnp.asarray(u), "load.F", {"input.load.F.lag": 0.08}, "zero")
    first = 10  # the step comes at this sample
    a, b = T[first:-1] - T[first], T[first + 1 :] - T[first]
    mean = 1.0 - 0.08 * (np.exp(-a / 0.08) - np.exp(-b / 0.08)) / 0.05
    np.testing.assert_allclose(found[first:-1], mean, atol=1e-12)
    np.testing.assert_allclose(found[:first], 0.0, atol=1e-15)
    none = acting(jnp.asarray(T), jnp.asarray(U), "load.F", {"input.load.F.lag": 0.0}, "zero")
    np.testing.assert_allclose(none, U, atol=1e-15)


def test_a_filter_follows_a_ramp_one_lag_behind():
    t = np.sort(np.random.default_rng(1).uniform(0.0, 2.0, 30))
    np.testing.assert_allclose(filtered(t, 3.0 * t + 1.0, 0.2), 3.0 * (t - 0.2) + 1.0, atol=1e-12)


def test_between_samples_a_signal_is_a_cubic():
    t = np.sort(np.random.default_rng(1).uniform(0.0, 2.0, 30))
    at = np.random.default_rng(2).uniform(t[0], t[-1], 50)
    cubic, slope = (lambda x: x**3 - 2.0 * x), (lambda x: 3.0 * x**2 - 2.0)
    found = at_times(at, t, cubic(t), slope(t))
    np.testing.assert_allclose(found, cubic(at), atol=1e-12)


def test_slopes_of_samples_are_those_of_parabolas():
    """At the ends those of the lines to the neighbours."""
    t = np.sort(np.random.default_rng(3).uniform(0.0, 2.0, 12))
    found = np.asarray(slopes(t, t**2 - 3.0 * t))
    np.testing.assert_allclose(found[1:-1], 2.0 * t[1:-1] - 3.0, rtol=1e-12)
    ends = np.array([t[0] + t[1], t[-2] + t[-1]]) - 3.0
    np.testing.assert_allclose(found[[0, -1]], ends, rtol=1e-12)


@pytest.mark.parametrize("field", ["delay", "lag"])
@pytest.mark.parametrize("hold", ["zero", "linear"])
def test_derivatives_of_inputs(field, hold):
    def of(x):
        return acting(jnp.asarray(T), jnp.asarray(U), "load.F", {f"input.load.F.{field}": x}, hold)

    x, h = 0.137, 1e-6
    exact = jax.jacfwd(of)(x)
    np.testing.assert_allclose(exact, (of(x + h) - of(x - h)) / (2 * h), atol=1e-6)


def test_a_sensor_shows_gain_offset_and_lag():
    values = {"sensor.x.gain": 2.0, "sensor.x.offset": 0.5, "sensor.x.lag": 0.1}
    t = jnp.asarray(T)
    np.testing.assert_allclose(shown(t, t, "x", values), 2.0 * (T - 0.1) + 0.5, atol=1e-12)


PROBLEM = jfric.Problem(
    ("x",),
    {
        "mass": jfric.Mass("x", 2.0),
        "friction": jfric.Friction("x", limit=1.0),
        "load": jfric.Load("x", 0.0),
    },
    time=2.0,
)
LATE = {
    "input.load.F.delay": jfric.Free(0.0, 0.3, init=0.0, scale="linear"),
    "input.load.F.lag": jfric.Free(1e-3, 0.3),
    "sensor.x.delay": jfric.Free(0.0, 0.3, init=0.0, scale="linear"),
    "sensor.x.lag": jfric.Free(1e-3, 0.3),
}


def _derivatives(model):
    t = np.linspace(0.0, 2.0, 81)
    e = jfric.Experiment(t, {"load.F": 5.0 * np.sin(6.0 * t)}, {"x": t}, x0={"x": (0.0, 0.0)})
    objective = prepare(model, e, LATE).objective
    x = np.array([0.0913, 0.05, 0.063, 0.08])
    found = objective.linearise(x[None])
    exact = found.jacobian[0, 0, :, 0] / objective.weight[0, :, 0, None]
    step = 1e-6 * np.eye(4)
    off = [objective.predict(np.stack([x + s, x - s]))[:, 0, :, 0] for s in step]
    differences = np.stack([(a - b) / 2e-6 for a, b in off], axis=1)
    np.testing.assert_allclose(exact, differences, atol=2e-6)
    assert np.all(np.abs(exact).max(axis=0) > 1e-3)


@pytest.mark.slow
def test_derivatives_of_a_trajectory_from_sample_to_sample():
    _derivatives(jfric.SampledModel(PROBLEM))


@pytest.mark.slow
def test_derivatives_of_a_trajectory_from_event_to_event():
    _derivatives(PROBLEM)


def test_names_are_found_and_refused():
    t = np.linspace(0.0, 1.0, 30)
    e = jfric.Experiment(t, {"load.F": np.sin(t)}, {"x": t})
    with pytest.raises(jfric.ProblemError, match=r"no parameter 'input.load.G.delay'.*'input.load"):
        prepare(PROBLEM, e, {"input.load.G.delay": jfric.Free(0.0, 1.0, scale="linear")})
    with pytest.raises(jfric.ProblemError, match=r"input.load.F.lag.*must not be negative"):
        prepare(PROBLEM, e, {"input.load.F.lag": jfric.Free(-1.0, 1.0, scale="linear")})
    loop = jfric.SampledModel(PROBLEM, jfric.Controller("x", "load.F", kp=1.0))
    with pytest.raises(jfric.ProblemError, match=r"free controller\.delay instead"):
        loop.default("input.load.F.delay", e)


def test_equal_readings_in_a_row_are_one_error():
    np.testing.assert_array_equal(run_lengths(np.array([0.0, 0.0, 0.1, 0.1, 0.1, 0.2]), 0.1),
                                  [2, 2, 3, 3, 3, 1])  # fmt: skip
    e = jfric.Experiment(np.arange(6.0), y={"x": [0.0, 0.0, 0.1, 0.1, 0.1, 0.2]},
                         resolution={"x": 0.1})  # fmt: skip
    steps = steps_of([e], ("x",), np.ones((1, 6, 1), bool))
    np.testing.assert_allclose(steps.counted[0, :, 0], np.array([2, 2, 3, 3, 3, 1]) * 0.01 / 12)


def _coarse(seed, step=0.05, rest=60, samples=40):
    """Readings of a straight line that stops, of an encoder whose steps lie anywhere."""
    rng = np.random.default_rng(seed)
    t = np.arange(samples + rest) * 0.05
    true = np.minimum(t, 2.0)
    shift = rng.uniform(0.0, step)
    return t, step * np.round((true + shift) / step) - shift, true


def test_a_record_at_rest_does_not_count_for_more_than_it_says():
    """The mean position at rest: its error is that of one reading, whatever the samples."""
    off, claimed, naive = [], [], []
    for seed in range(400):
        t, y, true = _coarse(seed)
        steps = steps_of([jfric.Experiment(t, y={"x": y}, resolution={"x": 0.05})], ("x",),
                         np.ones((1, t.size, 1), bool))  # fmt: skip
        late = t > 2.5
        weight = 1.0 / steps.counted[0, late, 0]
        off.append(np.sum(weight * (y - true)[late]) / weight.sum())
        claimed.append(1.0 / weight.sum())
        naive.append(0.05**2 / 12 / late.sum())
    assert np.std(off) == pytest.approx(np.sqrt(np.mean(claimed)), rel=0.1)
    assert np.std(off) > 5.0 * np.sqrt(np.mean(naive))


def test_resolution_is_a_floor_of_the_noise():
    """Noise that is estimated is no less than the steps make; given noise grows by them."""
    t = np.linspace(0.0, 1.0, 50)
    y = 0.1 * np.round(t / 0.1)
    free = {"friction.limit": jfric.Free(0.1, 2.0)}
    e = jfric.Experiment(t, {"load.F": 0.0 * t}, {"x": y}, resolution={"x": 0.1}, sigma=0.02)
    task = prepare(PROBLEM, e, free)
    lengths = run_lengths(y, 0.1)
    expected = 1.0 / np.sqrt(0.02**2 + lengths * 0.1**2 / 12.0)
    np.testing.assert_allclose(task.objective.weight[0, :, 0], expected)
    assert task.noise()["x"] == pytest.approx(np.sqrt(0.02**2 + 0.1**2 / 12.0))
    with pytest.raises(jfric.ProblemError, match=r"resolution.x: found 0.0, must be a positive"):
        jfric.Experiment(t, y={"x": y}, resolution={"x": 0.0})
