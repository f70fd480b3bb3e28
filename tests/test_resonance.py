"""Two masses and a stop through resonance: what long runs, orbits on both sides of special points
and harmonic balance say of the exact response."""

from __future__ import annotations

import numpy as np
import pytest
from resonance import at_changes, at_folds, checked_by_transients
from resonance_harmonics import by_harmonic_balance
from resonance_systems import SYSTEMS

import jfric


@pytest.mark.slow
def test_a_response_is_what_independent_computations_say():
    make, *limits = SYSTEMS["gap to an elastic stop"]
    problem = make()
    (curve,) = jfric.frequency_response(problem, "load", *limits).curves
    assert curve.complete
    size = np.abs(curve.state).max(axis=0)

    runs = checked_by_transients(problem, curve, size, 200)
    assert runs["runs not ok"] == 0
    assert runs["stable"] < runs["orbits"]
    assert runs["stable ones, farthest after all periods"] < 1e-9
    # All approach or leave their orbit at the rate of its multiplier, unstable ones too.
    assert runs["rates measured"] == runs["orbits"]
    assert runs["of unstable ones"] == runs["orbits"] - runs["stable"]
    assert runs["rate against multiplier, largest"] < 1e-4

    found = at_folds(problem, curve, size)
    assert len(found) == 2
    for fold in found:
        assert fold["multiplier"] == pytest.approx(1.0, abs=1e-4)
        assert fold["ratio of distances, four times as far"] == pytest.approx(2.0, abs=1e-3)
        assert fold["orbits on the other side"] == 0

    changes = at_changes(problem, curve, size)
    assert len(changes) == 2
    for change in changes:
        assert change["before"] != change["after"]
        assert change["before, as found there"]
        assert change["after, as found there"]

    few, many = by_harmonic_balance(problem, curve, limits, (7, 21))
    assert many["largest"] < 0.1 * few["largest"] < 1e-3
