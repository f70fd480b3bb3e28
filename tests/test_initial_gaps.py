"""Small penetrations at the start are taken out with a remark; deep ones are refused."""

from __future__ import annotations

import warnings

import jax
import numpy as np
import pytest

import jfric

jax.config.update("jax_enable_x64", True)


def _stack(y, gap: float = 1.0) -> jfric.Model:
    """A body over a floor at y = -gap."""
    problem = jfric.Problem(
        ["x", "y"],
        {
            "mass": {d: jfric.Mass(d, 1.0) for d in ("x", "y")},
            "contact": jfric.Contact("y", "x", jfric.Coulomb(0.3), gap=gap),
            "load": jfric.Load("y", -10.0),
        },
        initial={"x": jfric.InitialState(0.5, 1.0), "y": jfric.InitialState(y)},
        time=0.1,
        parameters={"height": -1.0000005},
    )
    return jfric.build(problem)


@pytest.mark.parametrize("solver", [jfric.EventDriven(), jfric.MoreauJean(1e-3)])
def test_a_small_penetration_is_projected(solver):
    with pytest.warns(
        UserWarning, match=r"contact started with a gap of -5e-07 .* was moved"
    ) as said:
        problem = _stack(-1.0000005)
    assert said[0].filename == __file__
    assert float(problem.initial["y"].q) == pytest.approx(-1.0, abs=1e-15)
    assert float(problem.initial["x"].q) == 0.5
    assert float(problem.initial["x"].v) == 1.0
    solution = jfric.simulate(problem, solver)
    assert int(solution.status) == 0
    # It slides on the floor from the start: mu g = 3.
    assert float(solution.final.v[0]) == pytest.approx(1.0 - 3.0 * 0.1, abs=1e-9)


def test_deep_ones_and_those_by_expression_are_refused():
    with pytest.raises(jfric.ProblemError, match=r"gap of -0.001, must not be negative"):
        _stack(-1.001)
    with pytest.raises(jfric.ProblemError, match=r"gap of -5e-07, must not be negative"):
        _stack("$height")


def test_nothing_is_said_without_penetration():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert float(_stack(-1.0).initial["y"].q) == -1.0
        assert float(_stack(-0.9999999).initial["y"].q) == -0.9999999


def test_all_but_rounding_errors_are_projected():
    """Of lengths of a metre, a hundredth of a nanometre is a penetration."""
    with pytest.warns(UserWarning, match=r"contact started with a gap of -1e-11 .* was moved"):
        assert float(_stack(-1.0 - 1e-11).initial["y"].q) == pytest.approx(-1.0, abs=1e-15)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert float(_stack(-1.0 - 1e-13).initial["y"].q) == -1.0 - 1e-13


def test_several_contacts_move_as_little_as_possible():
    """A corner: floor and wall, both penetrated; and a third contact that stays open."""
    with pytest.warns(UserWarning, match="contact.floor, contact.wall"):
        problem = jfric.build(
            jfric.Problem(
                ["x", "y"],
                {
                    "mass": {d: jfric.Mass(d, 1.0) for d in ("x", "y")},
                    "contact": {
                        "floor": jfric.Contact("y", gap=1.0),
                        "wall": jfric.Contact({"x": 0.6, "y": 0.8}, gap=2.0),
                        "far": jfric.Contact("x", gap=5.0),
                    },
                },
                initial={
                    "x": jfric.InitialState(-2.0 - 2e-7),
                    "y": jfric.InitialState(-1.0 - 1e-7),
                },
            )
        )
    x, y = (float(problem.initial[d].q) for d in ("x", "y"))
    np.testing.assert_allclose([y, 0.6 * x + 0.8 * y], [-1.0, -2.0], atol=1e-14)
