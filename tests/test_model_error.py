"""What a fit says about errors of its model and wrong readings, on records whose truth is known.

The system is a mass on a spring with Coulomb friction under a harmonic load, which slides and turns
for 6 s. Each record has one effect that the fitted model lacks, or noise of some colour and none.
"""

import functools
import types
import warnings
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.signal import lfilter

import jfric
from jfric.fits.objective import AbstractLoss, Normal, Objective, Point
from jfric.fits.plausibility import doubtful_readings
from jfric.fits.uncertainty.covariance import Covariance, covariance
from jfric.fits.uncertainty.model_error import _refined
from jfric.fits.uncertainty.noise_tests import repeated, whiteness
from jfric.fits.uncertainty.residual_series import ResidualSeries

T = np.linspace(0.05, 6.0, 400)
MU, NOISE = 0.05, 1e-4
FREE = {"friction.mu": jfric.Free(0.01, 1.0)}
FORCE = jfric.Harmonic(5.0, 7.0)
STRIBECK = jfric.Friction("x", jfric.Stribeck(mu_s=0.12, mu_d=MU, v_s=0.3), N=9.81)
#: What the truth has and the model does not.
TRUTHS = {
    "viscous": {"damper": jfric.Damper("x", 0.5)},
    "asymmetry": {"load": {"load": jfric.Load("x", FORCE), "more": jfric.Load("x", 0.3)}},
    "position": {"spring": jfric.Spring("x", 102.0)},
    "mass": {"mass": jfric.Mass("x", 1.02)},
}


def oscillator(start: float = 0.2, **more) -> jfric.Problem:
    elements = {
        "mass": jfric.Mass("x", 1.0),
        "spring": jfric.Spring("x", 100.0),
        "friction": jfric.Friction("x", jfric.Coulomb(MU), N=9.81),
        "load": jfric.Load("x", FORCE),
    }
    return jfric.Problem(["x"], {**elements, **more}, initial={"x": start}, time=6.0)


@functools.cache
def motion(kind: str | None = None) -> np.ndarray:
    problem = oscillator(**TRUTHS.get(kind or "", {}))
    if kind == "initial state":
        problem = oscillator(0.21)
    elif kind == "Stribeck":
        problem = oscillator(friction=STRIBECK)
    late = 0.01 if kind == "delay" else 0.0
    return np.asarray(jfric.simulate(problem, ts=jnp.asarray(T - late)).q[:, 0])


def noise(seed: int, past: float = 0.0, size: float = NOISE) -> np.ndarray:
    white = np.random.default_rng(seed).normal(size=T.size + 500)
    return size * lfilter([1.0], [1.0, -past], white)[500:]


def fitted(y: np.ndarray, loss: AbstractLoss | None = None, **record) -> jfric.FitResult:
    data = jfric.Experiment(T, y={"x": y}, **record)
    return jfric.fit(oscillator(), data, FREE, starts=1, loss=loss)


def holds(result: jfric.FitResult) -> bool:
    """Whether the interval holds the true coefficient of friction."""
    low, high = result.intervals()["friction.mu"]
    return low <= MU <= high


@pytest.mark.parametrize(
    ("kind", "path", "value"),
    [
        pytest.param("asymmetry", "load.not_modelled_x.F", 0.3, marks=pytest.mark.slow),
        pytest.param("viscous", "damper.not_modelled_x.c", 0.5, marks=pytest.mark.slow),
        pytest.param("position", "spring.not_modelled_x.k", 2.0, marks=pytest.mark.slow),
        pytest.param("mass", "mass.m", 1.02, marks=pytest.mark.slow),
        pytest.param("delay", "delay", 0.01, marks=pytest.mark.slow),
        pytest.param("initial state", "initial.x.q[1]", 0.21, marks=pytest.mark.slow),
    ],
)
def test_what_a_model_lacks_is_named_and_measured(kind, path, value):
    """The first effect is the true one, its parameter has the true value, the widened interval
    holds the true friction, and no longer record is asked for."""
    result = fitted(motion(kind) + noise(1))
    error = result.model_error
    assert error.effects[0].kind == kind
    assert error.effects[0].share > 0.99
    assert error.effects[0].values[path] == pytest.approx(value, rel=0.02)
    assert holds(result)
    said = str(result)
    assert "model error: " in said
    assert "intervals are widened by what that would change: friction.mu by " in said
    assert "longer record" not in said
    candidate = {"viscous": "Coulomb + viscous", "asymmetry": "asymmetric"}.get(kind)
    assert (f"compare_laws has it in {candidate!r}" in said) == (candidate is not None)


class Bent(Objective):
    """Residuals ``10 (y - x^2)`` and ``1 - x``, in whose valley a full step overshoots."""

    def __init__(self):
        self.layout = types.SimpleNamespace(bounds=(np.full(2, -9.0), np.full(2, 9.0)))

    def normal(self, x, measured=None, weight=None, chunk=None):
        del measured, weight, chunk
        x, y = x.T
        r = np.stack([10.0 * (y - x**2), 1.0 - x], axis=1)
        J = np.stack([-20.0 * x, 0 * x + 10.0, 0 * x - 1.0, 0 * x], axis=1).reshape(-1, 2, 2)
        gradient, hessian = np.einsum("gri,gr->gi", J, r), np.einsum("gri,grj->gij", J, J)
        return Normal(0.5 * np.sum(r**2, axis=1), gradient, hessian)


def test_a_step_that_overshoots_is_tried_shorter():
    point = Point(Bent(), np.array([-1.2, 1.0]))
    active = np.ones(2, bool)
    found = Bent().normal(_refined(point, active, active[None]))
    assert float(found.cost[0]) < 0.2 * float(point.normal.cost)


def test_coulomb_alone_on_viscous_truth():
    """The interval without its widening does not hold the truth; with the effect, the friction that
    is left is the true one."""
    result = fitted(motion("viscous") + noise(1))
    low, high = covariance(result).intervals()["friction.mu"]
    assert not low <= MU <= high
    moved = result.model_error.moved
    assert result.values["friction.mu"] + moved[0] == pytest.approx(MU, rel=0.01)


@pytest.mark.slow
def test_a_falling_friction_leaves_what_follows_the_velocity():
    """No effect is a curve of friction; what is left follows the rate of the motion."""
    result = fitted(motion("Stribeck") + noise(1))
    rest = result.model_error.dependences
    assert "rate of x" in min(rest, key=lambda name: rest[name].p)
    assert "another curve of friction (compare_laws: 'Stribeck', 'curve')" in str(result)


def accused(count: int, record) -> int:
    """How many of ``count`` correct models are accused; their intervals hold the truth in all but a
    few draws."""
    results = [fitted(**record(seed)) for seed in range(count)]
    assert sum(holds(result) for result in results) >= 0.85 * count - 1
    return sum("model error" in str(result) for result in results)


def with_noise(past):
    return lambda seed: {"y": motion() + noise(100 + seed, past, 1e-3)}


def by_encoder(known):
    """Readings in steps of 4 mm, which begin anywhere."""

    def record(seed):
        step = 4e-3
        begin = step * np.random.default_rng(seed).random()
        y = step * np.round((motion() + begin) / step) - begin
        return {"y": y, "resolution": {"x": step} if known else None}

    return record


@pytest.mark.parametrize("past", [0.0, 0.85])
def test_noise_of_a_colour_accuses_no_model(past):
    assert accused(4, with_noise(past)) == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "record",
    [with_noise(0.0), with_noise(0.85), with_noise(0.97), by_encoder(True), by_encoder(False)],
)
def test_few_correct_models_are_accused(record):
    """Levels are 0.1 % for all effects and 0.1 % for all signals that the rest may follow."""
    assert accused(40, record) <= 1


def test_whiteness_is_a_p_value():
    """Its distribution under white noise with gaps, and its power."""
    rng = np.random.default_rng(3)

    def p(past):
        e = lfilter([1.0], [1.0, -past], rng.normal(size=300))[:, None]
        used = rng.random(e.shape) > 0.1
        return whiteness([ResidualSeries(e * used, e[..., None], np.arange(1), used, 0.1)])

    found = np.array([p(0.0) for _ in range(400)])
    for level in (0.05, 0.5):
        assert np.mean(found < level) == pytest.approx(level, abs=3.0 * np.sqrt(level / 400))
    assert max(p(0.6) for _ in range(20)) < 1e-3


def test_the_common_part_of_repeated_records_is_told_from_noise():
    """Slow noise of unit size, alone and above a common part whose share is 20 %."""
    size = np.sqrt(1.0 - 0.97**2)
    data = [jfric.Experiment(T, y={"x": T}) for _ in range(5)]
    objective: Any = types.SimpleNamespace(weight=np.ones((5, T.size, 1)))
    p = {0.0: [], 0.5: []}
    for draw in range(20):
        e = np.stack([noise(100 * draw + i, 0.97, size) for i in range(5)])
        for common, found in p.items():
            residuals = (e + common * np.sqrt(2.0) * np.sin(3.0 * T))[..., None]
            part = repeated(data, objective, residuals)
            assert part is not None
            found.append(part)
    assert np.mean([part.p < 0.05 for part in p[0.0]]) <= 0.15
    assert np.median([part.p for part in p[0.5]]) < 1e-2
    assert np.mean([part.share for part in p[0.5]]) == pytest.approx(0.2, abs=0.05)
    assert repeated(data[:2], objective, residuals) is None


@pytest.mark.slow
def test_records_that_repeat_share_an_error_of_the_model_but_no_noise():
    """Three records of one motion under slow noise, with an error of the model and without."""
    for kind in ("Stribeck", None):
        y = [motion(kind) + noise(10 + i, 0.97, 2e-4) for i in range(3)]
        data = [jfric.Experiment(T, y={"x": v}) for v in y]
        said = str(jfric.fit(oscillator(), data, FREE, starts=1))
        common = "of the squared residuals are the same in records that repeat each other"
        assert (common in said) == (kind is not None)


# Wrong readings.


def test_readings_far_from_the_rest_are_named_by_time():
    """Two readings 75 standard deviations off."""
    y = motion() + noise(2)
    places = [120, 301]
    y[places] += np.array([75.0, -75.0]) * NOISE
    result = fitted(y)
    (said,) = [r for r in result.remarks if "alone" in r]
    assert said.startswith("2 readings of x stand alone, up to ")
    for i in places:
        assert f"{T[i]:.6g} s" in said
    assert "loss=jfric.Cauchy() (--loss cauchy)" in said
    assert holds(result)
    assert "leaving out 2 doubtful readings" in str(result)
    robust = fitted(y, jfric.Cauchy())
    assert holds(robust)
    assert not any("loss=jfric.Cauchy()" in r for r in robust.remarks)


@pytest.mark.parametrize("how", ["runs of zeros", "single zeros", "held"])
def test_missing_values_that_were_written_are_named(how):
    """A tenth of the readings are zeros, or the last one before the gap."""
    y, lost = motion() + noise(3), np.zeros(T.size, bool)
    if how == "single zeros":
        lost[np.random.default_rng(1).permutation(T.size)[:40]] = True
    else:
        lost[60:80] = lost[250:270] = True
    if how == "held":
        y[60:80], y[250:270] = y[60], y[250]
    else:
        y[lost] = 0.0
    result = fitted(y)
    found = doubtful_readings(
        result.objective, result.experiments, result.objective.predict(result.vector[None])[0]
    )
    named = np.zeros(T.size, bool)
    named[np.concatenate([one.rows[:, 1] for one in found])] = True
    # Zeros where the motion passes zero are none that can be seen.
    seen = lost & (np.abs(motion() - y) > 0.05)
    assert np.all(named[seen])
    assert not np.any(named & ~lost)
    assert any("while the motion goes on" in r and "mask" in r for r in result.remarks)
    assert holds(result)
    assert fitted(y, jfric.Cauchy()).values["friction.mu"] == pytest.approx(MU, rel=0.02)


def test_correct_readings_are_not_doubted():
    """White and coloured noise, an encoder, and a velocity that jumps."""
    for record in (with_noise(0.0)(1), with_noise(0.97)(1), by_encoder(True)(1)):
        assert not [r for r in fitted(**record).remarks if "alone" in r or "goes on" in r]


# Remarks that were false.


def at_rest() -> jfric.Problem:
    """Friction of 9.81 N under a load of 0.1 N."""
    load = jfric.Load("x", jfric.Harmonic(0.1, 7.0))
    return oscillator(0.0, load=load, friction=jfric.Friction("x", jfric.Coulomb(1.0), N=9.81))


def test_a_record_at_rest_has_no_doubtful_unit():
    """The predicted motion is rounding, so that the ratio of spreads was 1e15."""
    rest = at_rest()
    for size, moves in ((1e-5, False), (0.0, True)):
        y = size * np.random.default_rng(0).normal(size=T.size)
        y = y + 0.1 * np.sin(T) + noise(1) if moves else y
        free = {"friction.mu": jfric.Free(0.5, 2.0)}
        result = jfric.fit(rest, jfric.Experiment(T, y={"x": y}), free, starts=1)
        said = " ".join(result.remarks)
        assert "times as far" not in said
        assert ("the predicted x stands still while the measured one moves" in said) == moves


def test_a_standstill_with_a_resolution_is_a_record():
    rest = at_rest()
    free = {"friction.mu": jfric.Free(0.5, 2.0)}
    data = jfric.Experiment(T, y={"x": 0.0 * T}, resolution={"x": 1e-4})
    result = jfric.fit(rest, data, free, starts=1)
    assert result.intervals()["friction.mu"] is None
    with pytest.raises(jfric.ProblemError, match="give sigma or resolution"):
        jfric.fit(rest, jfric.Experiment(T, y={"x": 0.0 * T}), free, starts=1)


def test_bounds_that_initial_states_reach_are_said():
    """One sentence for each parameter and bound, however many records."""
    names = ("friction.mu", "initial.x.q[1]", "initial.x.q[2]", "initial.x.q[3]", "initial.x.v[1]")
    found = Covariance(
        names, np.zeros(5), np.eye(5), "autoregressive", np.array([0, 1, 0, 1, -1]),
        np.zeros(5, bool), (np.full(5, -2.0), np.full(5, 0.1)), (),
    )  # fmt: skip
    assert found.remarks() == [
        "initial.x.q is at its upper bound 0.1 in 2 of 3 records: their intervals have one side",
        "initial.x.v[1] is at its lower bound -2: its interval has one side",
    ]


def test_a_start_may_be_a_number_or_a_pair():
    for given, expected in ((0.2, (0.2, 0.0)), ((0.2, -1.0), (0.2, -1.0)), ("5 mm", None)):
        state = oscillator(given).initial["x"]
        if expected is not None:
            assert (float(state.q), float(state.v)) == expected
    for wrong in ((1.0, 2.0, 3.0), None, [], {"q": 1.0}):
        with pytest.raises(jfric.ProblemError, match=r"initial\.x: found .*, a position or a pair"):
            oscillator(wrong)


def test_warnings_of_arithmetic_do_not_escape():
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        str(fitted(motion("viscous") + noise(5)))
