"""A given normal force is never negative: refused where its numbers are known, else a status."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jfric
from jfric.system.smallest_value import find_negative

jax.config.update("jax_enable_x64", True)


def _rubbed(normal, end: float = 10.0, start: float = 0.0) -> jfric.Problem:
    return jfric.Problem(
        ["x"],
        {
            "mass": jfric.Mass("x", 1.0),
            "friction": jfric.Friction("x", jfric.Coulomb(0.3), N=normal),
        },
        initial={"x": jfric.InitialState(0.0, 0.52)},
        time=jfric.TimeSpan(end, start),
    )


NEGATIVE = {
    "slow and fast": jfric.Sum([1.0, jfric.Harmonic(3.0, 1.0), jfric.Harmonic(0.01, 1000.0)]),
    # 1 - 0.995 - 0.01 only where both are at their minimum.
    "both at once": jfric.Sum([1.0, jfric.Harmonic(0.995, 1.0), jfric.Harmonic(0.01, 977.0)]),
    "a beat": jfric.Sum([1.9999, jfric.Harmonic(1.0, 50.0), jfric.Harmonic(1.0, 50.3)]),
    "a ramp": jfric.Sum([jfric.PiecewiseLinear([0.0, 10.0], [2.0, 0.9]), jfric.Harmonic(1.0, 7.0)]),
    "a step": jfric.Sum([jfric.Steps([3.0, 3.1], [2.0, 0.5, 2.0]), jfric.Harmonic(1.0, 400.0)]),
    "a corner": jfric.PiecewiseLinear([0.0, 4.0, 8.0], [1.0, -1e-3, 1.0]),
}


@pytest.mark.parametrize("name", NEGATIVE)
def test_a_force_that_becomes_negative_is_refused(name):
    with pytest.raises(jfric.ProblemError, match=r"friction.N: found -\S+ at t = \S+ s, must not"):
        _rubbed(NEGATIVE[name], end=30.0)


POSITIVE = {
    "to zero": jfric.Sum([1.0, jfric.Harmonic(1.0, 3.0)]),
    "to zero together": jfric.Sum([0.3, jfric.Harmonic(0.1, 3.0), jfric.Harmonic(0.2, 3.0)]),
    "a fast part": jfric.Sum([1.02, jfric.Harmonic(1.0, 1.0), jfric.Harmonic(0.01, 1e6)]),
    "a ramp to zero": jfric.PiecewiseLinear([0.0, 30.0], [1.0, 0.0]),
    "negative after the end": jfric.PiecewiseLinear([0.0, 30.0, 60.0], [1.0, 0.0, -1.0]),
    "negative before the start": jfric.PiecewiseLinear([-5.0, 0.0], [-1.0, 1.0]),
}


@pytest.mark.parametrize("name", POSITIVE)
def test_a_force_that_stays_positive_is_accepted(name):
    _rubbed(POSITIVE[name], end=30.0)


@pytest.mark.parametrize("seed", range(20))
def test_random_sums_of_harmonics_against_dense_samples(seed):
    random = np.random.default_rng(seed)
    waves = [jfric.Harmonic(*random.uniform([0.0, 0.1, 0.0], [1.0, 40.0, 6.0])) for _ in range(3)]
    t = np.linspace(0.0, 5.0, 400_001)
    lowest = sum(
        float(w.amplitude) * np.sin(float(w.omega) * t + float(w.phase)) for w in waves
    ).min()
    assert find_negative(jfric.Sum([1e-6 - lowest, *waves]), 0.0, 5.0) is None
    found = find_negative(jfric.Sum([-1e-6 - lowest, *waves]), 0.0, 5.0)
    assert found is not None
    assert found.value < 0.0


@pytest.mark.parametrize("solver", [jfric.MoreauJean(1e-3), jfric.MoreauJean(1e-3, method="lemke")])
def test_what_is_traced_is_watched_during_the_run(solver):
    """In scalars, and in the general step."""
    problem = _rubbed(jfric.Sum([1.0, jfric.Harmonic(0.5, 1.0)]))

    @eqx.filter_jit
    @jax.vmap
    def run(amplitude):
        changed = jfric.set_parameters(problem, {"friction.N.1.amplitude": amplitude})
        final = jfric.simulate(changed, solver)
        return final.status, final.final.t

    status, t = run(jnp.asarray([0.5, 1.0, 2.0]))
    assert status.tolist() == [0, 0, int(jfric.Status.NEGATIVE_FORCE)]
    # 1 + 2 sin t = 0 at 7 pi / 6.
    assert float(t[2]) == pytest.approx(7.0 * np.pi / 6.0, abs=2e-3)
