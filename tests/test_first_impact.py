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


@pytest.mark.slow
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


def _end(q, gap, v, solver):
    """Where a ball is at 0.8 s that hits the floor at the start."""
    values = {"initial.y.q": q, "contact.gap": gap, "initial.y.v": v}
    problem = jfric.Problem(
        ["y"],
        {
            "mass": jfric.Mass("y", 2.0),
            "load": jfric.Load("y", -2.0),
            "contact": jfric.Contact("y", e=0.5),
        },
        time=0.8,
    )
    solution = jfric.simulate(jfric.set_parameters(problem, values), solver)
    return solution.final.q[0], solution.differentiable


@pytest.mark.parametrize("mode", ["forward", pytest.param("reverse", marks=pytest.mark.slow)])
def test_an_impact_at_the_start_has_the_derivatives_of_the_possible_side(mode):
    """From the gap h it hits at T with w: w^2 = v^2 + 2 h, T = w + v; then q = w s/2 - s^2/2 - gap
    with s = 0.8 - T. At h = 0, v = -1: dw/dh = 1, dT/dh = 1."""
    gradient = jax.grad if mode == "reverse" else jax.jacfwd
    solver = jfric.EventDriven(adjoint=mode)
    (dq, dgap, dv), differentiable = gradient(_end, (0, 1, 2), has_aux=True)(0.0, 0.0, -1.0, solver)
    side = 0.5 * 0.8 * 1.0 + (0.5 - 0.8) * -1.0
    np.testing.assert_allclose([dq, dgap, dv], [side, side - 1.0, -0.4], atol=1e-12)
    assert not bool(differentiable)


@pytest.mark.slow
def test_balls_in_a_row_that_touch_are_an_edge():
    """With a gap ever so small they hit one after the other."""
    balls = {x: jfric.Mass(x, 1.0) for x in "abc"}
    contacts = {
        "ab": jfric.Contact({"b": 1.0, "a": -1.0}, e=1.0, gap=1.0),
        "bc": jfric.Contact({"c": 1.0, "b": -1.0}, e=1.0, gap=1.0),
    }
    problem = jfric.Problem(
        list("abc"),
        {"mass": balls, "contact": contacts},
        initial={"a": jfric.InitialState(0.0, 1.0)},
        time=3.0,
    )

    @jax.jit
    @jax.vmap
    def run(gap):
        return jfric.simulate(jfric.set_parameters(problem, {"contact.bc.gap": gap}))

    found = run(np.asarray([0.0, 1e-9]))
    assert found.differentiable.tolist() == [False, True]
    np.testing.assert_allclose(found.final.v, [[-1 / 3, 2 / 3, 2 / 3], [0, 0, 1]], atol=1e-12)


@pytest.mark.slow
def test_a_bounce_leaves_the_flight_of_another_ball_alone():
    """Two balls fall with 1 m/s^2 from 0.5 m and 1.5 m: the impact of one tells nothing of where
    the other is, which lands a root of three from its start."""
    balls = jfric.Problem(
        ["x", "y"],
        {
            "mass": {"x": jfric.Mass("x", 1.0), "y": jfric.Mass("y", 1.0)},
            "load": {"x": jfric.Load("x", -1.0), "y": jfric.Load("y", -1.0)},
            "contact": {"x": jfric.Contact("x", e=0.5), "y": jfric.Contact("y", e=0.5)},
        },
        initial={"x": jfric.InitialState(q=0.5), "y": jfric.InitialState(q=1.5)},
        time=2.2,
    )
    solution = jfric.simulate(balls).check()
    assert int(solution.flags) == 0
    count = int(solution.events.count)
    np.testing.assert_allclose(solution.events.time[:count], [1.0, 3.0**0.5, 2.0], rtol=1e-12)
    later = 2.2 - 3.0**0.5
    y = 0.5 * 3.0**0.5 * later - 0.5 * later**2
    np.testing.assert_allclose(solution.final.q, [0.25 * 0.2 - 0.02, y], rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("kernel", ["general", "lowered"])
def test_an_output_at_an_impact_is_one_sided(kernel):
    """A ball that falls 1 m under 2 m/s^2 hits at 1 s."""
    solver = jfric.EventDriven(kernel=kernel, adjoint="none")
    problem = jfric.Problem(
        ["y"],
        {
            "mass": jfric.Mass("y", 1.0),
            "load": jfric.Load("y", -2.0),
            "contact": jfric.Contact("y", e=0.5),
        },
        initial={"y": jfric.InitialState(1.0)},
        time=1.2,
    )

    @jax.jit
    @jax.vmap
    def run(y, output, end):
        changed = jfric.set_parameters(problem, {"initial.y.q": y, "time.end": end})
        return jfric.simulate(changed, solver, ts=output[None])

    cases = [[1.0, 1.0, 1.2], [1.0, 0.9, 1.0], [1.0, 0.9, 1.2], [1.01, 1.0, 1.2]]
    y, output, end = np.asarray(cases).T
    assert run(y, output, end).differentiable.tolist() == [False, False, True, True]
    at, before = (jfric.simulate(problem, solver, ts=np.array([t])) for t in (1.0, 0.9))
    assert [(row["contact"], row["time"]) for row in at.one_sided_events()] == [("contact", 1.0)]
    assert before.one_sided_events() == []


@pytest.mark.parametrize(
    ("element", "at", "exists"),
    [
        (jfric.DiagramSpring("u", [-0.4, 0.0, 0.2], [-2.0, 0.0, 1.5]), 0.0, False),
        (jfric.DiagramSpring("u", [-0.4, 0.0, 0.2], [-3.0, 0.0, 1.5]), 0.0, True),
        (jfric.DiagramSpring("u", [-0.4, 0.0, 0.2], [-2.0, 0.0, 1.5]), 0.01, True),
        (jfric.GapSpring("u", 4.0, 4.0, 0.1, 0.1), 0.1, False),
    ],
    ids=["kink", "straight", "beside", "gap"],
)
def test_rest_where_a_stiffness_changes_is_an_edge(element, at, exists):
    """A push to one side meets another stiffness than a push to the other."""
    name = "gap_spring" if isinstance(element, jfric.GapSpring) else "diagram_spring"
    problem = jfric.Problem(
        ["u"],
        {"mass": jfric.Mass("u", 0.5), name: element},
        initial={"u": jfric.InitialState(at, 0.0)},
        time=1.0,
    )
    solution = jfric.simulate(problem)
    assert bool(solution.differentiable) is exists
    if not exists:
        np.testing.assert_array_equal(solution.final.q, [at])


@pytest.mark.parametrize(
    ("belt", "v", "load", "exists"),
    [(0.5, 0.5, 3.0, False), (0.5, 0.4, 3.0, True), (0.5, 0.5, 0.3, True), (0.0, 0.0, 3.0, True)],
    ids=["with it", "slower", "stuck", "rest"],
)
def test_a_start_with_the_velocity_of_the_belt_is_an_edge(belt, v, load, exists):
    """A body that is faster than the belt at first slides the other way; bodies at rest are not
    there by coincidence."""
    parts = {
        "mass": jfric.Mass("x", 1.0),
        "load": jfric.Load("x", -load),
        "friction": jfric.Friction("x", jfric.Coulomb(0.5), N=1.0, belt=belt),
    }
    start = {"x": jfric.InitialState(v=v)}
    solution = jfric.simulate(jfric.Problem(["x"], parts, initial=start, time=0.5))
    assert bool(solution.differentiable) is exists


@pytest.mark.parametrize(
    ("load", "gap", "exists", "x"),
    [(0.3, 0.1, True, 0.0), (0.7, 0.0, False, 0.0), (0.7, 1e-9, True, 0.1)],
    ids=["floor", "squeezed", "clearance"],
)
def test_what_holds_without_clearance_alone_is_an_edge(load, gap, exists, x):
    """A body of 1 kg under 1 N between floor and ceiling: the floor's friction holds 0.5 N."""
    friction = {"tangent": "x", "law": jfric.Coulomb(0.5)}
    problem = jfric.Problem(
        ["x", "y"],
        {
            "mass": {"mx": jfric.Mass("x", 1.0), "my": jfric.Mass("y", 1.0)},
            "load": {"weight": jfric.Load("y", -1.0), "side": jfric.Load("x", load)},
            "contact": {
                "floor": jfric.Contact("y", **friction),
                "ceiling": jfric.Contact({"y": -1.0}, gap=gap, **friction),
            },
        },
        time=1.0,
    )
    solution = jfric.simulate(problem)
    assert bool(solution.differentiable) is exists
    np.testing.assert_allclose(solution.final.q, [x, 0.0], atol=1e-12)
