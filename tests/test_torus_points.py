"""Where a pair of multipliers leaves the unit circle, against closed forms."""

from __future__ import annotations

import numpy as np
import pytest

import jfric

ALONG = "force_field.parameters.gain"
#: Damping of the two masses, which do not feel each other.
FIRST, SECOND = 0.1, 0.16


def driven(second=SECOND):
    """Two masses whose dampers are overcome, one after the other, by a force along the velocity;
    the multipliers of each have the size ``exp((gain - c) T/2)``."""
    return jfric.Problem(
        ["x", "y"],
        {
            "mass": {"a": jfric.Mass("x", 1.0), "b": jfric.Mass("y", 1.0)},
            "spring": {"a": jfric.Spring("x", 1.0), "b": jfric.Spring("y", 2.0)},
            "damper": {"a": jfric.Damper("x", FIRST), "b": jfric.Damper("y", second)},
            "force_field": jfric.ForceField(lambda t, q, v, p: p["gain"] * v, {"gain": 0.05}),
            "load": jfric.Load("x", jfric.Harmonic(1.0, 0.8)),
        },
    )


def paths(problem):
    return jfric.continue_orbit(
        problem, ALONG, 0.05, 0.2, state=np.zeros(4), solver=jfric.EventDriven(rtol=1e-12)
    )


@pytest.mark.slow
def test_each_pair_that_leaves_the_circle_is_found():
    path = paths(driven())
    points = path.points("torus")
    np.testing.assert_allclose([p.parameter for p in points], [FIRST, SECOND], atol=1e-9)
    assert [p.kind for p in path.special] == ["torus", "torus", "end"]
    for point in points:
        sizes = np.abs(point.multipliers)
        assert np.min(np.abs(sizes - 1.0)) < 1e-8
    outside = path.parameter > FIRST
    np.testing.assert_array_equal(path.stable, ~outside)
    # The second one over its own damper: that of the first stays where it is.
    curve = jfric.continue_special(
        driven(),
        ALONG,
        points[1],
        "damper.b.c",
        0.2,
        points=3,
        solver=jfric.EventDriven(rtol=1e-12),
    )
    assert not curve.remarks
    np.testing.assert_allclose(curve.parameter, curve.second, atol=1e-9)


@pytest.mark.slow
def test_pairs_that_leave_the_circle_together_are_one_point():
    path = paths(driven(FIRST))
    (point,) = path.points("torus")
    assert point.parameter == pytest.approx(FIRST, abs=1e-9)
