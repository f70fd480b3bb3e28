"""A solution as a labelled table, and its check."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jfric

TS = jnp.linspace(0.0, 1.0, 11)


@functools.cache
def _problem() -> jfric.Problem:
    """A sliding mass, a turning one, and a ball."""
    return jfric.Problem(
        {"u": "translation", "phi": "rotation", "z": "translation"},
        {
            "mass": {n: jfric.Mass(n, 1.0) for n in ("u", "phi", "z")},
            "friction": jfric.Friction("u", jfric.Coulomb(0.2), N=5.0),
            "contact": jfric.Contact("z"),
            "load": jfric.Load("z", -9.81),
        },
        initial={"u": jfric.InitialState(v=0.5), "z": jfric.InitialState(q=0.5)},
        time=1.0,
    )


def _run(mu):
    return jfric.simulate(jfric.set_parameters(_problem(), {"friction.mu": mu}), ts=TS)


@functools.cache
def _batch() -> jfric.Solution:
    """Three runs, of which the last two fail."""
    return jax.jit(jax.vmap(_run))(jnp.array([0.2, jnp.nan, jnp.nan]))


@pytest.mark.slow
def test_a_solution_is_a_labelled_table():
    solution = jax.tree.map(lambda x: x[0], _batch()).check()
    table = solution.to_xarray(_problem())
    np.testing.assert_array_equal(table["q"].sel(dof="u"), solution.q[:, 0])
    np.testing.assert_array_equal(table["time"], TS)
    assert table["time"].units == "s"
    assert table["v"].attrs["units"] == ["m/s", "rad/s", "m/s"]
    assert table["lambda_n"].attrs["units"] == "N"
    assert table["lambda_n"].sel(unilateral="contact").dims == ("time",)
    np.testing.assert_array_equal(
        table["mode"].sel(contact="friction"), solution.mode[:, solution.names.index("friction")]
    )
    assert table["event_v_before"].dims == ("event", "dof")
    assert int(table["event_count"]) == int(solution.events.count)
    assert int(table["status"]) == 0
    # Without the problem there are names, but no units.
    assert "units" not in solution.to_xarray()["q"].attrs


def test_a_batch_has_its_axes_in_front():
    batch = _batch()
    table = batch.to_xarray(_problem())
    assert table["q"].dims == ("batch", "time", "dof")
    assert table["event_time"].dims == ("batch", "event")
    np.testing.assert_array_equal(table["time"], TS)
    square = jax.tree.map(lambda x: x[None], batch).to_xarray()
    assert square["status"].dims == ("batch_0", "batch_1")


def test_check_names_what_failed():
    elements = {
        "mass": jfric.Mass("u", 1.0),
        "spring": jfric.Spring("u", 50.0),
        "friction": jfric.Friction("u", jfric.Coulomb(0.2), N=5.0),
    }
    problem = jfric.Problem(("u",), elements, initial={"u": jfric.InitialState(q=0.2)}, time=1.0)
    for solver, sentence in (
        (
            jfric.EventDriven(max_steps=2),
            "status max_steps: stopped before the end time",
        ),
        (jfric.EventDriven(max_events=1), "status max_events: event log full: raise max_events"),
    ):
        with pytest.raises(jfric.SimulationError, match=f"^{sentence}"):
            jfric.simulate(problem, solver).check()
    sentence = "^2 of 3 trajectories failed, first number 1, status non_finite: a number or a"
    with pytest.raises(jfric.SimulationError, match=sentence):
        _batch().check()
    with pytest.raises(jfric.ProblemError, match=r"^check: the status is not known while JAX tra"):
        jax.jit(lambda mu: _run(mu).check().q)(0.2)
