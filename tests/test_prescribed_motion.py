"""Belts and bases whose velocity jumps, clutches, and both flows on the same systems."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

import jfric
from jfric import Problem

FLOWS = ("exact", "runge-kutta")
G = 9.81


@pytest.mark.parametrize("flow", FLOWS)
def test_a_block_slides_when_its_belt_jumps_to_a_new_speed(flow: str) -> None:
    """At rest until 0.5 s, then dragged by mu g until it has the belt's 2 m/s."""
    problem = Problem(
        ["x"],
        {
            "mass": jfric.Mass("x", 1.0),
            "friction": jfric.Friction(
                "x", jfric.Coulomb(0.4), N=G, belt=jfric.Steps([0.5], [0.0, 2.0])
            ),
        },
        time=2.0,
    )
    solution = jfric.simulate(problem, jfric.EventDriven(flow=flow), ts=jnp.array([0.5, 1.0, 1.5]))
    drag = 2.0 / (0.4 * G)
    events = solution.event_table()
    assert [(e["from"], e["to"]) for e in events] == [("stick", "slip-"), ("slip-", "stick")]
    assert events[0]["time"] == 0.5
    assert events[1]["time"] == pytest.approx(0.5 + drag, rel=1e-10)
    half = 0.5 * 0.4 * G * 0.25
    np.testing.assert_allclose(solution.q[:, 0], [0.0, half, drag + 2.0 * (1.0 - drag)], rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("flow", FLOWS)
def test_a_ball_on_a_table_is_kicked_up_and_thrown(flow: str) -> None:
    """The table starts to rise at 1 m/s (impact), then falls at 0.4 m/s: the ball flies."""
    table = jfric.PiecewiseLinear([0.5, 1.0, 1.5], [0.0, 0.5, 0.3])
    problem = Problem(
        ["z"],
        {
            "mass": jfric.Mass("z", 2.0),
            "base": jfric.Base(table),
            "contact": jfric.Contact({"z": 1.0, "base": -1.0}),
            "load": jfric.Load("z", -2.0 * G),
        },
        time=2.5,
    )
    solution = jfric.simulate(
        problem, jfric.EventDriven(flow=flow), ts=jnp.array([0.25, 0.75, 1.05, 2.5])
    )
    events = solution.event_table()
    assert [(e["from"], e["to"], e["impact"]) for e in events] == [
        ("closed", "closed", True),
        ("closed", "open", False),
        ("open", "closed", True),
        ("closed", "closed", True),
    ]
    # Flight from the table's edge: relative speed 1.4 m/s.
    assert events[2]["time"] == pytest.approx(1.0 + 2.0 * 1.4 / G, rel=1e-10)
    flight = 0.5 + 0.05 - 0.5 * G * 0.05**2
    np.testing.assert_allclose(solution.q[:, 0], [0.0, 0.25, flight, 0.3], rtol=0, atol=1e-9)
    np.testing.assert_allclose(solution.v[:, 0], [0.0, 1.0, 1.0 - G * 0.05, 0.0], atol=1e-9)


@pytest.mark.slow
def test_both_flows_agree_on_a_shaken_system_with_a_diagram_spring_and_a_stop() -> None:
    """About 200 events; two different integrators, one decision logic."""
    problem = Problem(
        ["x", "y"],
        {
            "mass": {"x": jfric.Mass("x", 2.0), "y": jfric.Mass("y", 1.0)},
            "base": jfric.Base(jfric.Harmonic(0.05, 9.0)),
            "spring": {
                "b": jfric.Spring(("base", "x"), 200.0),
                "l": jfric.Spring(("x", "y"), 150.0),
            },
            "damper": jfric.Damper(("base", "x"), 1.5),
            "diagram_spring": jfric.DiagramSpring(
                "y", [-0.2, -0.05, 0.0, 0.03, 0.2], [-30.0, -4.0, 0.0, 1.0, 25.0]
            ),
            "friction": {
                "ground": jfric.Friction("x", jfric.Coulomb(jfric.Directional(0.1, 0.2)), N=8.0),
                "base": jfric.Friction(("base", "y"), jfric.StaticDynamic(0.3, 0.2), N=5.0),
            },
            "stop": jfric.Stop("x", k=4e3, gap=0.06, c=12.0),
        },
        time=8.0,
    )
    ts = jnp.linspace(0.0, 8.0, 61)
    exact, stepped = (
        jfric.simulate(problem, jfric.EventDriven(flow=flow), ts=ts) for flow in FLOWS
    )
    for solution in (exact, stepped):
        assert solution.status == jfric.Status.OK
    table = [
        [(e["contact"], e["from"], e["to"]) for e in s.event_table()] for s in (exact, stepped)
    ]
    assert table[0] == table[1]
    assert len(table[0]) > 150
    np.testing.assert_allclose(stepped.q, exact.q, rtol=0, atol=1e-8)
    np.testing.assert_allclose(stepped.v, exact.v, rtol=0, atol=1e-7)
    assert float(jnp.max(jfric.contact_residual(problem, exact))) < 1e-10
    assert float(jnp.max(jfric.motion_residual(problem, exact))) < 1e-10


def test_a_clutch_engages_and_lets_go_with_its_normal_force() -> None:
    """Two rotors, N(t) ramped up and down to zero: slip, stick, slip; momentum balance exact."""
    problem = Problem(
        {"a": "rotation", "b": "rotation"},
        {
            "mass": {"a": jfric.Mass("a", 0.5), "b": jfric.Mass("b", 1.0)},
            "friction": jfric.Friction(
                ("a", "b"),
                jfric.StaticDynamic(0.3, 0.25),
                N=jfric.PiecewiseLinear([0.5, 1.0, 3.0, 3.5], [0.0, 100.0, 100.0, 0.0]),
            ),
            "load": {
                "a": jfric.Load("a", 12.0),
                "b": jfric.Load("b", jfric.Steps([3.2], [-4.0, -9.0])),
            },
        },
        initial={"a": jfric.InitialState(0.0, 20.0)},
        time=5.0,
    )
    ts = jnp.array([0.5, 2.0, 3.0, 5.0])
    solution = jfric.simulate(problem, jfric.EventDriven(flow="exact"), ts=ts)
    assert [(e["from"], e["to"]) for e in solution.event_table()] == [
        ("slip-", "stick"),
        ("stick", "slip-"),
    ]
    assert jnp.all(solution.v[1, 0] == solution.v[1, 1])
    momentum = solution.v @ jnp.array([0.5, 1.0])
    impulse = 10.0 + 8.0 * ts - 5.0 * jnp.maximum(ts - 3.2, 0.0)
    np.testing.assert_allclose(momentum, impulse, rtol=1e-12)
    # No torque is left to carry at the end: the rotors run freely.
    np.testing.assert_allclose(solution.a[-1], [24.0, -9.0], rtol=1e-12)


@pytest.mark.slow
def test_a_ball_that_came_to_rest_on_a_table_stays() -> None:
    """After the accumulating impacts its velocity is zero to rounding: no jump of the table's."""
    problem = Problem(
        ["z"],
        {
            "mass": jfric.Mass("z", 1.120855016897357),
            "base": jfric.Base(jfric.PiecewiseLinear([0.5, 1.0, 1.5, 3.0], [0.0, 0.5, 0.3, 0.3])),
            "contact": jfric.Contact({"z": 1.0, "base": -1.0}, e=0.26835821654986275),
            "load": jfric.Load("z", -20.0),
        },
        time=4.0,
    )
    solution = jfric.simulate(problem, jfric.EventDriven(max_steps=1000))
    assert int(solution.status) == jfric.Status.OK
    assert solution.event_table()[-1]["to"] == "closed"
    assert int(solution.flags) & jfric.Flag.ZENO
    np.testing.assert_allclose(solution.final.q, 0.3, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("adjoint", ["none", "reverse"])
def test_a_step_that_ends_at_a_jump_does_not_see_it(adjoint) -> None:
    """Load, belt and normal force jump; Runge-Kutta stages at the jump belong to the time before.

    ``adjoint`` chooses between the pass in scalars and the general one.
    """
    load = jfric.Sum([jfric.Harmonic(1.5, 1.1), jfric.Steps([1.0, 2.0], [0.5, -2.0, 1.0])])
    belt = jfric.Steps([3.0], [0.1, 0.3])
    problem = Problem(
        ["x"],
        {
            "mass": jfric.Mass("x", 1.0),
            "spring": jfric.Spring("x", k=2.0),
            "friction": jfric.Friction(
                "x", jfric.Coulomb(0.3), N=jfric.Steps([1.5], [1.0, 1.2]), belt=belt
            ),
            "load": jfric.Load("x", load),
        },
        time=4.0,
    )
    expected = jfric.simulate(problem, jfric.EventDriven(adjoint="none"))
    found = jfric.simulate(problem, jfric.EventDriven(flow="runge-kutta", adjoint=adjoint))
    count = int(expected.events.count)
    assert int(found.events.count) == count >= 4
    np.testing.assert_allclose(found.events.time[:count], expected.events.time[:count], rtol=1e-8)
    np.testing.assert_allclose(found.final.q, expected.final.q, rtol=1e-8)
    assert found.flags == expected.flags
    # Steps that straddle a jump would be refused down to rounding error.
    assert found.steps < 60


def _on_a_table(displacement, **elements) -> Problem:
    return Problem(
        ["x"],
        {
            "mass": jfric.Mass("x", 1.0),
            "base": {"table": jfric.Base(displacement)},
            "spring": jfric.Spring(("table", "x"), 4.0),
            **elements,
        },
        time=2.0,
    )


ATTACHED = {
    "friction": jfric.Friction(("table", "x"), limit=0.5),
    "contact": jfric.Contact(("table", "x"), e=0.5, gap=1.0),
    "damper": jfric.Damper(("table", "x"), 0.5),
    "stop": jfric.Stop(("table", "x"), k=1.0, gap=3.0, c=1.0),
    "dahl": jfric.Dahl(("table", "x"), sigma=1e3, F_c=0.5),
}
JUMPS = {
    "steps": jfric.Steps([0.5, 1.0], [0.0, 0.0, 0.7]),
    "a pulse": jfric.functions.Until(0.7, end=1.0),
    "a sum": jfric.Sum([jfric.Harmonic(0.1, 2.0), jfric.Steps([1.0], [0.0, 0.7])]),
}
DYNAMIC = [jfric.EventDriven(), jfric.MoreauJean(1e-2), jfric.Smoothed(width=1e-2)]


@pytest.mark.parametrize("name", ATTACHED)
@pytest.mark.parametrize("jump", JUMPS)
@pytest.mark.parametrize("solver", DYNAMIC, ids=lambda s: s.label)
def test_a_table_that_jumps_takes_nothing_along_in_no_time(name, jump, solver):
    if name == "dahl" and solver is not DYNAMIC[0]:
        return
    with pytest.raises(
        jfric.ProblemError, match=r"base.table.displacement: found a jump from .* at 1 s, to which"
    ):
        jfric.simulate(_on_a_table(JUMPS[jump], **{name: ATTACHED[name]}), solver)


def test_a_stop_that_stays_in_touch_with_a_table_is_a_spring_and_a_damper():
    """Also of the table's motion it takes stiffness and damping."""
    table, pair = jfric.Harmonic(0.3, 2.0), ("table", "x")
    stop = {"stop": jfric.Stop(pair, k=3.0, gap=-5.0, c=0.7)}
    parts = {
        "spring": jfric.Spring(pair, 7.0),
        "damper": jfric.Damper(pair, 0.7),
        "load": jfric.Load("x", -15.0),
    }
    a, b = (jfric.simulate(_on_a_table(table, **x)) for x in (stop, parts))
    assert int(a.events.count) == int(b.events.count) == 0
    np.testing.assert_allclose(a.final.q, b.final.q, rtol=1e-12)
    np.testing.assert_allclose(a.final.v, b.final.v, rtol=1e-12)


@pytest.mark.slow
def test_springs_take_a_support_that_jumps():
    """Rest until 1 s, then 0.7 (1 - cos 2 (t - 1)); a jump before the start is none."""
    found = jfric.simulate(_on_a_table(JUMPS["steps"]))
    assert float(found.final.q[0]) == pytest.approx(0.7 * (1.0 - np.cos(2.0)), rel=1e-12)
    past = jfric.Steps([-1.0], [0.3, 0.0])
    jfric.EventDriven().require(_on_a_table(past, damper=ATTACHED["damper"]))
