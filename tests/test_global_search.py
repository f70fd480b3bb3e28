"""Fits that find the best of many minima: growing parts of a record, windows, schedules."""

import functools

import jax.numpy as jnp
import numpy as np
import pytest

import jfric
from jfric.fits.model import AbstractModel, Prediction
from jfric.fits.optimise.searches import SHARES, beginning, can_grow, distinct, growing
from jfric.fits.recipe import prepare

T = np.linspace(0.0, 40.0, 300)
NOISE = 0.05
TRUTH = {"omega": 9.3, "rate": 0.02}


class Tone(AbstractModel):
    """``u = exp(-rate t) sin(omega t)``: over sixty cycles the cost has as many minima."""

    def default(self, path, experiment):
        return 3.0 if path == "omega" else 0.1

    def initial(self, experiment):
        return 0.0, {}

    def simulate_outputs(self, values, data):
        t = jnp.where(jnp.isfinite(data.t), data.t, 0.0)
        u = jnp.exp(-values["rate"] * t) * jnp.sin(values["omega"] * t)
        return Prediction(u[:, None], jnp.asarray(0))


FREE = {"omega": jfric.Free(1.0, 60.0), "rate": jfric.Free(1e-3, 1.0)}


@functools.cache
def measured():
    u = np.exp(-TRUTH["rate"] * T) * np.sin(TRUTH["omega"] * T)
    u = u + NOISE * np.random.default_rng(0).normal(size=T.size)
    return jfric.Experiment(T, y={"u": u}, sigma=NOISE)


@functools.cache
def objective():
    return prepare(Tone(), measured(), FREE).objective


def found(**options) -> np.ndarray:
    """Which of eight random starts find the best."""
    allowed = objective().normal(np.array([list(TRUTH.values())])).cost[0]
    return np.array(
        [jfric.fit(Tone(), measured(), FREE, seed=s, **options).cost <= allowed for s in range(8)]
    )


@pytest.mark.slow
def test_growing_parts_find_what_a_few_starts_miss():
    assert np.mean(found(starts=4)) < 0.8
    assert np.all(found(search=jfric.Global(), starts=4))
    assert np.all(found(search=jfric.Global([3.0, 10.0, 25.0]), starts=4))


def test_a_part_is_the_beginning_of_each_record():
    part = beginning(objective(), 0.25)
    kept = np.isfinite(np.asarray(part.data.t))[0]
    np.testing.assert_array_equal(kept, T <= 10.0)
    np.testing.assert_array_equal(part.weight[0, :, 0] > 0, kept)
    assert float(part.data.end[0]) == pytest.approx(T[kept][-1])
    x = np.array([[9.0, 0.05]])
    u = np.exp(-0.05 * T) * np.sin(9.0 * T) - measured().y["u"]
    assert part.normal(x).cost[0] == pytest.approx(0.5 * np.sum((u[kept] / NOISE) ** 2))
    assert np.isfinite(np.asarray(objective().data.t)).all()


def test_starts_are_apart_and_finite():
    layout = objective().layout
    x = np.array([[9.0, 0.02], [9.0 + 1e-6, 0.02], [30.0, 0.02], [20.0, 0.1]])
    cost = np.array([2.0, 1.0, np.inf, 3.0])
    np.testing.assert_array_equal(distinct(layout, x, cost, 4), x[[1, 3]])
    starts = growing(objective(), 5, 0, SHARES)
    assert starts.shape == (5, 2)
    lower, upper = layout.bounds
    assert np.all((starts >= lower) & (starts <= upper))


def test_what_is_compared_as_a_whole_does_not_grow():
    def whole(predicted, measured, weight):
        return weight * (predicted - measured)

    task = prepare(Tone(), measured(), FREE, residual=whole)
    assert can_grow(objective())
    assert not can_grow(task.objective)


def oscillator(**initial):
    """A mass that slides on a rough floor until it stops."""
    elements = {
        "mass": jfric.Mass("x", 1.0),
        "spring": jfric.Spring("x", 100.0),
        "friction": jfric.Friction("x", jfric.Coulomb(0.2), N=1.0),
    }
    return jfric.Problem(["x"], elements, initial={"x": jfric.InitialState(**initial)}, time=4.0)


@pytest.mark.slow
def test_windows_find_stiffness_friction_and_start():
    t = np.linspace(0.0, 4.0, 400)
    x = np.asarray(jfric.simulate(oscillator(q=0.1), ts=t).q[:, 0])
    data = jfric.Experiment(t, y={"x": x + 1e-4 * np.random.default_rng(1).normal(size=t.size)})
    free = {
        "spring.k": jfric.Free(5.0, 2000.0, init=10.0),
        "friction.mu": jfric.Free(0.01, 2.0, init=1.0),
        "initial.x.q": jfric.Free(-1.0, 1.0, init=-0.5, scale="linear"),
    }
    problem = oscillator(q=-0.5)
    task = prepare(problem, data, free)
    starts = jfric.Shooting().ends_of_windows(task.setup, task.objective.layout, 4, 0)
    np.testing.assert_allclose(starts[0], [100.0, 0.2, 0.1], rtol=0.05)
    result = jfric.fit(problem, data, free, search=jfric.Shooting(), starts=4)
    np.testing.assert_allclose(result.vector, [100.0, 0.2, 0.1], rtol=2e-3)
    kept = jfric.FitResult.from_json(result.to_json())
    assert kept.recipe is not None
    assert kept.recipe.search == jfric.Shooting()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"search": "globl"}, "search: found 'globl' (did you mean 'global'?), allowed are starts"),
        ({"search": "global", "schedule": [3.0, 2.0]}, "schedule: found [3.0, 2.0], needs lengths"),
        ({"search": "global", "schedule": 50.0}, "up to that of the record, 40 s"),
        ({"search": "global", "schedule": ["soon"]}, "schedule: found ['soon'], needs lengths"),
        ({"schedule": [3.0]}, "schedule: has no meaning for search='starts', take 'global'"),
        ({"search": "shooting"}, "'shooting' cuts records of signals into windows"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*settings of a fit are objects:DeprecationWarning")
def test_bad_options_have_one_sentence(options, words):
    with pytest.raises(jfric.ProblemError) as error:
        jfric.fit(Tone(), measured(), FREE, **options)
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_windows_need_measured_positions():
    data = jfric.Experiment(T, y={"v.x": T}, sigma=1.0)
    with pytest.raises(jfric.ProblemError, match="'x' is not measured; take search='global'"):
        jfric.fit(oscillator(), data, {"spring.k": jfric.Free(1.0, 9.0)}, search=jfric.Shooting())
