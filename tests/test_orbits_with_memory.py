"""Periodic motion of systems that remember: sliders behind springs, bristles, states of a user."""

import jax
import numpy as np
import pytest

import jfric
from jfric.errors import ProblemError
from jfric.periodic.state_vector import state_columns

OMEGA = 0.6
PERIOD = 2.0 * np.pi / OMEGA


def driven(c=0.1, **elements):
    return jfric.Problem(
        ["x"],
        {
            "mass": jfric.Mass("x", 1.0),
            "spring": jfric.Spring("x", 1.0),
            "damper": jfric.Damper("x", c),
            "load": jfric.Load("x", jfric.Harmonic(1.0, OMEGA)),
            **elements,
        },
    )


JENKINS = driven(jenkins=jfric.Jenkins("x", k=1.0, R=0.3))
WATCHED = driven(jenkins=jfric.Jenkins("x", k=1.0, R=0.3), event={"middle": jfric.Event("x")})
SYSTEMS = {
    "one slider": (WATCHED, ("z.jenkins",)),
    "three sliders": (
        driven(maxwell_slip=jfric.MaxwellSlip("x", k=[0.5, 0.3, 0.4], R=[0.1, 0.2, 0.5])),
        ("z.maxwell_slip.1", "z.maxwell_slip.2", "z.maxwell_slip.3"),
    ),
    "bristle": (driven(dahl=jfric.Dahl("x", sigma=10.0, F_c=0.3)), ("z.dahl",)),
    "state": (
        driven(0.3, state={"p": jfric.State("v.x - z.p", force="0.2*z.p", direction="x")}),
        ("z.p",),
    ),
}


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.slow) for name in SYSTEMS])
def test_the_orbit_is_where_a_long_transient_ends(name):
    """A period that began with springs without force was another motion's."""
    problem, states = SYSTEMS[name]
    found = jfric.periodic_orbit(problem).check()
    assert found.axes == ("x", *states)
    end = 80 * PERIOD
    run = jfric.simulate(
        problem, jfric.EventDriven(max_events=4000, max_steps=100_000), ts=np.array([end]), end=end
    ).check()
    # The slowest deviation has decayed to this.
    np.testing.assert_allclose(found.q[0], run.q[0, 0], atol=1e-9)
    np.testing.assert_allclose(found.v[0], run.v[0, 0], atol=1e-9)
    np.testing.assert_allclose(found.v[1:], run.z[0], atol=1e-9)
    again = jfric.simulate(found.problem, ts=np.array([3 * PERIOD]), end=3 * PERIOD).check()
    np.testing.assert_allclose(again.z[0], found.v[1:], atol=1e-12)
    np.testing.assert_allclose(again.q[0, 0], found.q[0], atol=1e-12)
    # Events carry the names that those of a run carry.
    words = [[(r["contact"], r["from"], r["to"]) for r in x.event_table()] for x in (found, again)]
    assert words[1] == 3 * words[0]
    # What a state is the velocity of means nothing.
    assert np.sum(np.asarray(found.multipliers) == 0.0) >= len(states)


@pytest.mark.slow
def test_derivatives_of_an_orbit_with_a_slider():
    def amplitude(R):
        problem = jfric.set_parameters(JENKINS, {"jenkins.R": R})
        return jfric.periodic_orbit(problem).q[0]

    slope = jax.grad(amplitude)(0.3)
    ends = [float(amplitude(0.3 + d)) for d in (1e-4, -1e-4)]
    np.testing.assert_allclose(slope, (ends[0] - ends[1]) / 2e-4, rtol=1e-6)


def test_a_start_names_its_states():
    with pytest.raises(ProblemError, match=r"start: .*then z.jenkins \(3,\)"):
        jfric.periodic_orbit(JENKINS, start=[0.1, 0.0])
    columns = state_columns(("x", "z.jenkins"), np.array([[1.0, 0.0, 2.0, 3.0]]))
    assert {k: v.tolist() for k, v in columns.items()} == {
        "x": [1.0],
        "v.x": [2.0],
        "z.jenkins": [3.0],
    }


def test_a_support_that_moves_for_ever():
    """Steady sliding is a motion of any period for those who feel the velocity of the support."""
    loads = {"base": {"plate": jfric.Base(jfric.Ramp(0.5))}}
    damper = jfric.Damper(("x", "plate"), 2.0)
    found = jfric.periodic_orbit(
        jfric.Problem(
            ["x"],
            {
                "mass": jfric.Mass("x", 1.0),
                "spring": jfric.Spring("x", 4.0),
                "damper": damper,
                **loads,
            },
        ),
        period=1.0,
        start=[0.2, 0.0],
    ).check()
    np.testing.assert_allclose(found.q, [2.0 * 0.5 / 4.0], rtol=1e-12)
    np.testing.assert_allclose(np.abs(found.multipliers), np.exp(-1.0), rtol=1e-12)
    pulled = jfric.Problem(
        ["x"],
        {"mass": jfric.Mass("x", 1.0), "spring": jfric.Spring(("x", "plate"), 4.0), **loads},
    )
    with pytest.raises(ProblemError, match=r"spring feels where this .* give friction a belt"):
        jfric.periodic_orbit(pulled, period=1.0)
    grows = jfric.Problem(
        ["x"],
        {
            "mass": jfric.Mass("x", 1.0),
            "spring": jfric.Spring("x", 4.0),
            "load": jfric.Load("x", jfric.Ramp(1.0)),
        },
    )
    with pytest.raises(ProblemError, match="grows without end"):
        jfric.periodic_orbit(grows, period=1.0)
