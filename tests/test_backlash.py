"""Play between teeth: elastic flanks with damping that never pull, rigid ones with restitution."""

from __future__ import annotations

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from references.backlash import Teeth

import jfric

jax.config.update("jax_enable_x64", True)

END = 1.0


def elastic(J1, J2, k, c, b, speed, release="physical"):
    """Two free inertias, the first of which moves towards a flank."""
    teeth = {
        "forward": jfric.Stop(("second", "first"), k, b, c, release=release),
        "backward": jfric.Stop(("first", "second"), k, b, c, release=release),
    }
    return jfric.Problem(
        {"first": "rotation", "second": "rotation"},
        {"mass": {"first": jfric.Mass("first", J1), "second": jfric.Mass("second", J2)},
         "stop": teeth},
        initial={"first": jfric.InitialState(v=speed)},
        time=END,
    )  # fmt: skip


@functools.cache
def simulated():
    """Events of the motion over all numbers, compiled once."""
    solver = jfric.EventDriven(max_events=512)
    names = [f"max.force.stop.{side}" for side in ("forward", "backward")]

    def run(numbers):
        problem = elastic(*numbers)
        pull = jfric.observe(problem, names, solver).values
        return jfric.simulate(problem, solver, ts=jnp.zeros((0,))), jnp.stack(list(pull.values()))

    return jax.jit(run)


@settings(max_examples=25, deadline=None)
@given(
    inertias=st.tuples(*[st.floats(0.2, 5.0)] * 2),
    k=st.floats(1e3, 1e5),
    damping=st.floats(0.0, 0.8),
    b=st.floats(1e-3, 5e-2),
    speed=st.floats(0.5, 2.0),
)
def test_three_contacts_are_those_of_the_closed_form(inertias, k, damping, b, speed):
    J = inertias[0] * inertias[1] / sum(inertias)
    teeth = Teeth(*inertias, k, 2.0 * damping * math.sqrt(k * J), b)
    expected = teeth.events(speed, 3)
    expected = [x for x in expected if x[0] < END - 1e-9]
    numbers = jnp.asarray([*inertias, k, teeth.c, b, speed])
    solution, pull = simulated()(numbers)
    assert int(solution.status) == 0
    table = solution.event_table()[: len(expected)]
    assert len(table) == len(expected)
    for found, (t, relative, rate) in zip(table, expected, strict=True):
        q, v = found["q"], found["v"]
        assert found["time"] == pytest.approx(t, rel=1e-12, abs=1e-13)
        assert q[0] - q[1] == pytest.approx(relative, rel=1e-10, abs=1e-13)
        assert v[0] - v[1] == pytest.approx(rate, rel=1e-11)
        np.testing.assert_allclose(q, teeth.angles(speed, t, relative), rtol=1e-11, atol=1e-13)
    # Teeth push, and never pull.
    assert float(jnp.max(pull)) <= 1e-9 * k * b


def test_adhesive_teeth_would_pull():
    """What the choice of the release is about: with damping, teeth that hold until the compression
    is gone pull before they let go."""
    problem = elastic(1.0, 1.0, 1e4, 60.0, 0.01, 1.0, release="adhesive")
    pull = jfric.observe(problem, "max.force.stop.forward").values
    assert float(pull["max.force.stop.forward"]) > 1.0


def test_an_adhesive_stop_lets_go_where_it_was_touched():
    elements = {
        "mass": jfric.Mass("u", 1.0),
        "stop": jfric.Stop("u", 100.0, c=4.0, gap=0.1, release="adhesive"),
    }
    start = {"u": jfric.InitialState(v=1.0)}
    solution = jfric.simulate(jfric.Problem(["u"], elements, initial=start, time=2.0))
    touch, free = solution.event_table()
    assert (touch["to"], free["to"]) == ("touch", "free")
    # Half a period of the damped oscillation lies between them.
    half = math.pi / math.sqrt(100.0 - 4.0)
    assert free["time"] - touch["time"] == pytest.approx(half, rel=1e-12)
    np.testing.assert_allclose([touch["q"][0], free["q"][0]], 0.1, rtol=1e-12)
    assert free["v"][0] == pytest.approx(-math.exp(-2.0 * half), rel=1e-12)


@pytest.mark.slow
def test_derivatives_of_three_contacts():
    """Of the final relative displacement, with respect to all numbers, against differences of the
    closed form."""
    numbers = np.array([1.0, 2.0, 1e4, 30.0, 0.01, 1.0])

    def closed(x):
        teeth = Teeth(*x[:5])
        t, relative, rate = teeth.events(x[5], 3)[-1]
        assert t < 0.2 < t + 2.0 * x[4] / abs(rate)
        return relative + rate * (0.2 - t)

    def final(x):
        problem = elastic(*x)
        end = jfric.simulate(problem, ts=jnp.asarray([0.2])).q[0]
        return end[0] - end[1]

    expected = []
    for i in range(6):
        h = 1e-6 * numbers[i] * np.eye(6)[i]
        expected.append((closed(numbers + h) - closed(numbers - h)) / (2e-6 * numbers[i]))
    value, slope = jax.jit(jax.value_and_grad(final))(jnp.asarray(numbers))
    assert float(value) == pytest.approx(closed(numbers), rel=1e-11)
    np.testing.assert_allclose(slope, expected, rtol=1e-6)


@pytest.mark.slow
def test_rigid_teeth_rattle():
    """Restitution e on both flanks: times and velocities of a ball between two walls, and the same
    motion of the centre."""
    b, e, speed = 0.01, 0.6, 1.0
    flank = {
        "forward": jfric.Contact(("first", "second"), gap=b, e=e),
        "backward": jfric.Contact(("second", "first"), gap=b, e=e),
    }
    problem = jfric.Problem(
        {"first": "rotation", "second": "rotation"},
        {"mass": {"first": jfric.Mass("first", 1.0), "second": jfric.Mass("second", 3.0)},
         "contact": flank},
        initial={"first": jfric.InitialState(v=speed)},
        time=0.3,
    )  # fmt: skip
    solution = jfric.simulate(problem, ts=jnp.asarray([0.3]))
    times = np.cumsum([b / speed, *(2.0 * b / (speed * e**n) for n in range(1, 5))])
    table = solution.event_table()
    np.testing.assert_allclose([x["time"] for x in table], times[times < 0.3], rtol=1e-13)
    for n, x in enumerate(table, 1):
        assert x["v"][0] - x["v"][1] == pytest.approx((-1) ** n * speed * e**n, rel=1e-13)
        assert x["v"][0] + 3.0 * x["v"][1] == pytest.approx(speed, rel=1e-13)
