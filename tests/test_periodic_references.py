"""What files expect of periodic motions without a closed form: series in extended precision."""

import numpy as np
import pytest
from references import den_hartog, duffing, weakening_belt

from jfric.files.read_toml import load_config


def expected(name: str) -> dict[str, float]:
    return {str(c.quantity): c.expected for c in load_config(f"configs/{name}.toml").checks}


def test_the_unstable_motion_of_the_duffing_oscillator():
    state, gain = duffing.orbit(0.05, 1.0, 0.1, 0.18, 1.2, (-1.7, -1.9))
    found = expected("p6_duffing")
    for quantity, value in (("orbit.x", state[0]), ("orbit.v.x", state[1])):
        assert found[quantity] == pytest.approx(float(value), abs=1e-15)
    for i, value in enumerate(duffing.multipliers(gain), start=1):
        assert found[f"multiplier({i})"] == pytest.approx(float(value), abs=1e-15)
    # Liouville's theorem: the product of both is known.
    decay = np.exp(-0.05 * 2.0 * np.pi / 1.2)
    assert float(np.prod(duffing.multipliers(gain))) == pytest.approx(decay, rel=1e-14)


def test_the_limit_cycle_on_a_belt_with_weakening_friction():
    period, slip, largest, smallest = (float(x) for x in weakening_belt.cycle(0.2))
    found = expected("c5_velocity_weakening")
    assert found["orbit.period"] == pytest.approx(period, abs=1e-14)
    assert found["orbit.max.x"] == pytest.approx(largest, abs=1e-15)
    assert found["orbit.min.x"] == pytest.approx(smallest, abs=1e-15)
    assert found["event_time(2)"] - found["event_time(1)"] == pytest.approx(slip, abs=1e-11)


def test_the_state_of_continuous_slip():
    numbers = 1.0, 0.1, 1.0, 0.2, 1.0, 0.8
    found = expected("p5_continuous_slip")
    state = den_hartog.state_at(*numbers, 0.0)
    assert (found["orbit.x"], found["orbit.v.x"]) == pytest.approx(state, abs=1e-15)
    # Both turning points are on it.
    X, at, _, _ = den_hartog.steady(*numbers)
    for t, x in ((at, X), (at + np.pi / 0.8, -X)):
        assert den_hartog.state_at(*numbers, t) == pytest.approx((x, 0.0), abs=1e-14)
