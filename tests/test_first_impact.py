"""A contact that is closed at the start and approached there: the first event is its impact."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import jfric

jax.config.update("jax_enable_x64", True)

SOLVERS = [jfric.EventDriven(), jfric.MoreauJean(1e-4), jfric.StabilisedMidpoint(1e-4)]
NAMES = [type(solver).__name__ for solver in SOLVERS]


def _ball(feet: int = 1, e: float = 0.5) -> jfric.Problem:
    """A ball that hits the floor at t = 0; ``feet``: contacts of the same height."""
    contacts = {f"c{i}": jfric.Contact("y", e=e) for i in range(feet)}
    return jfric.Problem(
        ["y"],
        {"mass": jfric.Mass("y", 2.0), "load": jfric.Load("y", -2.0), "contact": contacts},
        initial={"y": jfric.InitialState(0.0, -1.0)},
        time=0.5,
    )


@pytest.mark.parametrize("solver", SOLVERS, ids=NAMES)
@pytest.mark.parametrize("feet", [1, 2])
def test_an_impact_at_the_start_is_logged(solver, feet):
    solution = jfric.simulate(_ball(feet), solver)
    assert int(solution.status) == 0
    impacts = np.asarray(solution.events.impact)[: int(solution.events.count)]
    times = np.asarray(solution.events.time)[: int(solution.events.count)]
    assert impacts.any()
    assert times[impacts][0] <= 1e-4
    # It leaves with 0.5, under the weight of a unit mass.
    assert float(solution.final.v[0]) == pytest.approx(0.5 - 0.5, abs=2e-4)


def _rod(v_x: float) -> jfric.Problem:
    """A rod that hits with its tip: with Newton's law and friction it gains energy (Kane)."""
    contact = jfric.Contact(
        {"y": 1.0, "phi": -0.5}, {"x": 1.0, "phi": 1.0}, jfric.Coulomb(0.5), e=0.9
    )
    mass = {d: jfric.Mass(d, m) for d, m in (("x", 1.0), ("y", 1.0), ("phi", 0.3))}
    return jfric.Problem(
        {"x": "translation", "y": "translation", "phi": "rotation"},
        {"mass": mass, "contact": contact},
        initial={
            "x": jfric.InitialState(0.0, v_x),
            "y": jfric.InitialState(0.0, -1.0),
        },
        time=0.01,
    )


@pytest.mark.parametrize("solver", SOLVERS, ids=NAMES)
def test_an_impact_at_the_start_must_not_gain_energy(solver):
    gains = [int(jfric.simulate(_rod(v), solver).status) for v in (0.5, 2.0)]
    assert gains == [int(jfric.Status.IMPACT_ENERGY), 0]


def test_rest_on_a_floor_that_sinks_is_no_impact():
    """Body and floor start with the same velocity."""
    problem = jfric.Problem(
        ["y"],
        {
            "mass": jfric.Mass("y", 1.0),
            "load": jfric.Load("y", -1.0),
            "base": {"floor": jfric.Base(jfric.PiecewiseLinear([0.0, 1.0], [0.0, -0.1]))},
            "contact": jfric.Contact(("floor", "y")),
        },
        initial={"y": jfric.InitialState(0.0, -0.1)},
        time=0.5,
    )
    solution = jfric.simulate(problem, jfric.MoreauJean(1e-3))
    assert int(solution.status) == int(solution.events.count) == 0
