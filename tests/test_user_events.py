"""Events of the user's own: found with the certificate, acted on, differentiated, written, read."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jfric
from jfric import Event, EventDriven, Flag, InitialState, Mass, Problem, ProblemError, Status
from jfric.files.read_toml import json_schema, loads
from jfric.fits.residuals import sampled_or_whole

RUNGE_KUTTA = EventDriven(flow="runge-kutta")


def oscillator(events, *, elements=None, end=7.0, **parameters):
    """``x = cos t``, with what is added."""
    held = {"mass": Mass("x", 1.0), "spring": jfric.Spring("x", 1.0), **(elements or {})}
    start = {"x": InitialState(1.0)}
    return Problem(("x",), held | {"event": events}, initial=start, time=end, parameters=parameters)


def ball(events, *, elements=None, end=3.0, height=5.0, v=0.0, **parameters):
    """A body that falls with 10 m/s^2."""
    held = {"mass": Mass("z", 1.0), "load": jfric.Load("z", -10.0)} | (elements or {})
    start = {"z": InitialState(height, v)}
    return Problem(("z",), held | {"event": events}, initial=start, time=end, parameters=parameters)


def times(solution, name=None):
    rows = solution.event_table()
    return [r["time"] for r in rows if name is None or r["contact"] == f"event.{name}"]


def limit(p):
    return p.problem.parameters["c"]


def squared(p):
    return p.q[0] ** 2 - 0.25


WATCHED = {
    "up": Event("x - 0.5 m", "up"),
    "down": Event("x - 0.5 m", "down"),
    "both": Event(squared, "both"),
    "t": Event("t - 2 s"),
    "force": Event("force.spring + v.x*(1 kg/s) - 1 N", "up"),
}


@pytest.mark.parametrize("kernel", ["general", pytest.param("lowered", marks=pytest.mark.slow)])
def test_times_are_exact_and_directions_kept(kernel):
    s = jfric.simulate(oscillator(WATCHED), EventDriven(kernel=kernel))
    third = np.pi / 3
    assert (int(s.status), int(s.flags)) == (0, 0)
    assert s.event_names == tuple(f"event.{name}" for name in WATCHED)
    np.testing.assert_allclose(times(s, "down"), [third], rtol=1e-14)
    np.testing.assert_allclose(times(s, "up"), [5 * third], rtol=1e-14)
    both = np.array([1, 2, 4, 5]) * third
    np.testing.assert_allclose(times(s, "both"), both, rtol=1e-14)
    assert times(s, "t") == [2.0]
    # -cos t - sin t - 1
    np.testing.assert_allclose(times(s, "force"), [np.pi], rtol=1e-14)
    row = s.event_table()[0]
    assert (row["from"], row["to"], row["impact"]) == ("above", "below", False)
    np.testing.assert_allclose([row["q"][0], row["v"][0]], [0.5, -np.sin(third)], rtol=1e-14)


@pytest.mark.slow
def test_runge_kutta_flow_lands_on_them():
    s = jfric.simulate(oscillator(WATCHED), RUNGE_KUTTA)
    assert (int(s.status), int(s.flags)) == (0, 0)
    np.testing.assert_allclose(times(s, "both"), np.array([1, 2, 4, 5]) * np.pi / 3, rtol=1e-9)


@pytest.mark.slow
def test_double_crossings_within_a_step_are_found():
    """``cos t`` is below -1 + depth for a short while about pi only; a step is 3.4 s long."""
    cubic = Event(lambda p: p.q[0] ** 3 + (1.0 - limit(p)) ** 3)
    p = oscillator({"line": Event("x + 1 m - $c"), "cubic": cubic}, end=5.0, c=0.1)
    for depth in (1e-3, 1e-6, 1e-9):
        s = jfric.simulate(jfric.set_parameters(p, {"parameters.c": depth}))
        half = 2 * np.arcsin(np.sqrt(0.5 * depth))
        assert int(s.status) == 0
        for name in ("line", "cubic"):
            found = times(s, name)
            np.testing.assert_allclose(found, [np.pi - half, np.pi + half], atol=1e-15 / half)


#: Depths at which ``x + 1`` and the like pass through zero about pi, or stay away from it.
DEPTHS = [s * m * 10.0**k for k in range(-17, -5) for m in (1, 2, 5) for s in (-1, 1)]


@pytest.mark.slow
@pytest.mark.parametrize("flow", ["exact", "runge-kutta"])
def test_a_touch_is_logged_once(flow):
    """Twice where it is a crossing that is resolved, once or as it is where that is flagged."""
    both = {
        "line": Event("x + 1 m - $c"),
        "bent": Event(lambda p: (p.q[0] + 1.0 - limit(p)) * (2.0 + p.q[0])),
    }
    p, c = oscillator(both, end=5.0, c=0.0), np.array([0.0, *DEPTHS])
    solver = EventDriven(flow=flow)
    s = jax.vmap(lambda c: jfric.simulate(jfric.set_parameters(p, {"parameters.c": c}), solver))(c)
    assert not s.status.any()
    grazes = (s.flags & int(Flag.GRAZING)) != 0
    held = np.arange(s.events.time.shape[1]) < s.events.count[:, None]
    for own in range(2):
        count = np.sum(held & (s.events.contact == own), axis=1)
        exact = np.where(c > 0, 2, 0)
        np.testing.assert_array_equal(count[~grazes], exact[~grazes])
        assert np.all((count == 1) | (count == exact))
        # Down to where a zero of a function is told from a touch.
        assert np.all(count[np.abs(c) < 1e-12] == 1)
    assert not grazes[np.abs(c) > (1e-9 if flow == "exact" else 6e-7)].any()


@pytest.mark.slow
def test_a_touch_at_the_resolution_is_one_event():
    s = jfric.simulate(oscillator({"e": Event("x + 1 m")}, end=5.0))
    assert len(times(s)) == 1
    assert Flag.GRAZING in Flag(int(s.flags))
    assert not bool(s.differentiable)


@pytest.mark.slow
def test_what_is_zero_at_the_start_fires_when_it_comes_back():
    s = jfric.simulate(oscillator({"v": Event("v.x"), "x": Event("x - 1 m")}, end=6.5))
    np.testing.assert_allclose(times(s, "v"), [np.pi, 2 * np.pi], rtol=1e-14)
    # It comes back to 1 by touching it.
    assert all(abs(t - 2 * np.pi) < 1e-5 for t in times(s, "x"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("direction", "velocity", "edge"),
    [("up", 1.0, True), ("up", -1.0, False), ("both", -1.0, True)],
)
def test_a_start_on_the_level_of_an_event_that_acts_is_an_edge(direction, velocity, edge):
    """From just before the level it would fire at once, from there it does not."""
    events = {"e": Event("x - $c", direction, change={"x": f"x + {velocity} mm"})}

    def run(c):
        held = {"mass": Mass("x", 1.0), "spring": jfric.Spring("x", 1.0), "event": events}
        start = {"x": InitialState(0.0, velocity)}
        return jfric.simulate(Problem(("x",), held, initial=start, time=0.5, parameters={"c": c}))

    at, before = run(0.0), run(1e-9 * velocity)
    assert (len(times(at)), len(times(before))) == (0, int(edge))
    assert bool(at.differentiable) is not edge
    assert (Flag.ONE_SIDED in Flag(int(at.flags))) is edge
    assert bool(before.differentiable)


@pytest.mark.slow
def test_a_start_on_the_level_of_an_event_that_is_only_logged_is_none():
    p = Problem(("x",), {"mass": Mass("x", 1.0), "event": {"e": Event("x")}},
                initial={"x": InitialState(0.0, 1.0)}, time=1.0)  # fmt: skip
    assert bool(jfric.simulate(p).differentiable)


@pytest.mark.slow
def test_a_kink_and_a_function_that_is_not_smooth():
    s = jfric.simulate(oscillator({"e": Event(lambda p: jnp.abs(p.q[0]) - 0.5)}))
    np.testing.assert_allclose(times(s), np.array([1, 2, 4, 5]) * np.pi / 3, rtol=1e-14)


@pytest.mark.slow
def test_a_stop_ends_the_run_with_status_ok():
    p = oscillator({"e": Event("x - $c", "down", "stop")}, c=0.25)
    s = jfric.simulate(p, ts=jnp.linspace(0.0, 7.0, 8), dense=True).check()
    end = np.arccos(0.25)
    assert Flag(int(s.flags)) == Flag.STOPPED
    assert bool(s.differentiable)
    np.testing.assert_allclose([s.final.t, s.final.q[0]], [end, 0.25], rtol=1e-14)
    assert np.isfinite(s.q[:2]).all()
    assert np.isnan(s.q[2:]).all()
    assert np.isnan(s.evaluate(2.0).q).all()
    np.testing.assert_allclose(s.evaluate(1.2).q, [np.cos(1.2)], rtol=1e-13)
    names = ["final.x", "mean.x", "event_time.e(1)"]
    found = jfric.observe(p, names).values
    exact = [0.25, np.sin(end) / end, end]
    np.testing.assert_allclose([found[name] for name in names], exact, rtol=1e-13)
    # The next run goes on behind it.
    further = jfric.simulate(p, start=s.final, end=8.0)
    np.testing.assert_allclose(further.final.t, end + 2 * np.pi, rtol=1e-14)


@pytest.mark.slow
def test_a_sliding_body_stops_the_run_where_it_comes_to_rest():
    """It then stays at rest: what is watched goes to zero and remains there."""
    p = Problem(
        ("x",),
        {
            "mass": Mass("x", 1.0),
            "friction": jfric.Friction("x", jfric.Coulomb(0.2), N=10.0),
            "event": {"rest": Event("v.x", "down", "stop")},
        },
        initial={"x": InitialState(0.0, 3.0)},
        time=5.0,
    )
    s = jfric.simulate(p).check()
    np.testing.assert_allclose([s.final.t, s.final.q[0]], [1.5, 2.25], rtol=1e-14)
    assert [r["contact"] for r in s.event_table()] == ["friction", "event.rest"]
    assert not int(s.flags) & int(Flag.SIMULTANEOUS)


@pytest.mark.parametrize(
    "solver",
    [
        EventDriven(),
        pytest.param(RUNGE_KUTTA, marks=pytest.mark.slow),
        pytest.param(EventDriven(adjoint="reverse"), marks=pytest.mark.slow),
        pytest.param(EventDriven(kernel="lowered"), marks=pytest.mark.slow),
    ],
)
def test_a_bouncing_ball_by_change_and_its_derivatives(solver):
    """Height h, restitution e: impacts at T, T + 2 e T, ... with T = sqrt(2 h / g)."""
    p = ball({"floor": Event("z", "down", change={"v.z": "-$e*v.z"})}, e=0.5, end=2.7)

    def run(x):
        q = jfric.set_parameters(p, {"initial.q": x[0], "parameters.e": x[1]})
        s = jfric.simulate(q, solver)
        return jnp.concatenate([s.events.time[:3], s.final.q, s.final.v, s.events.v[2]])

    def exact(x):
        h, e = x
        T, end = jnp.sqrt(h / 5.0), 2.7
        third = T + 2 * e * T + 2 * e**2 * T
        v = 10 * e**3 * T
        last = end - third
        return jnp.stack([T, T + 2 * e * T, third, v * last - 5 * last**2, v - 10 * last, v])

    x = jnp.array([5.0, 0.5])
    tight = solver.flow != "runge-kutta"
    np.testing.assert_allclose(run(x), exact(x), rtol=1e-13 if tight else 1e-10)
    D = jax.jacrev if solver.adjoint == "reverse" else jax.jacfwd
    np.testing.assert_allclose(D(run)(x), jax.jacfwd(exact)(x), rtol=1e-12 if tight else 1e-8)
    s = jfric.simulate(p)
    assert int(s.flags) == 0
    np.testing.assert_allclose(s.events.v_before[:3, 0], [-10.0, -5.0, -2.5], rtol=1e-14)


@pytest.mark.slow
def test_derivatives_through_a_stop_and_functions_that_are_not_linear():
    p = oscillator({"e": Event(lambda p: p.q[0] ** 3 - limit(p), action="stop")}, c=0.3)

    def run(c):
        s = jfric.simulate(jfric.set_parameters(p, {"parameters.c": c}))
        return jnp.stack([s.final.t, s.final.v[0]])

    def exact(c):
        t = jnp.arccos(c ** (1 / 3))
        return jnp.stack([t, -jnp.sin(t)])

    np.testing.assert_allclose(run(0.3), exact(0.3), rtol=1e-13)
    for derivative in (jax.jacfwd, jax.jacrev):
        np.testing.assert_allclose(derivative(run)(0.3), jax.jacfwd(exact)(0.3), rtol=1e-12)
    second = jax.jacfwd(jax.jacfwd(run))(0.3)
    np.testing.assert_allclose(second, jax.jacfwd(jax.jacfwd(exact))(0.3), rtol=1e-10)


@pytest.mark.slow
def test_an_impulse_clock_agrees_with_finite_differences():
    """Each time the pendulum passes its lowest point it is pushed, as an escapement does."""
    p = Problem(
        {"a": "rotation"},
        {
            "mass": Mass("a", 1.0),
            "pendulum": jfric.Pendulum("a", 1.0, 1.0),
            "damper": jfric.Damper("a", 0.3),
            "event": {
                "push": Event("a", change=lambda p: {"v.a": p.v[0] + limit(p) * jnp.sign(p.v[0])})
            },
        },
        initial={"a": InitialState(0.4)},
        time=4.0,
        parameters={"c": 0.2},
    )

    def run(push):
        s = jfric.simulate(jfric.set_parameters(p, {"parameters.c": push}))
        return jnp.stack([s.final.q[0], s.final.v[0]]), s

    d, s = jax.jacfwd(run, has_aux=True)(0.2)
    assert len(times(s)) == 4
    assert int(s.status) == 0
    difference = (run(0.2 + 1e-5)[0] - run(0.2 - 1e-5)[0]) / 2e-5
    np.testing.assert_allclose(d, difference, rtol=1e-6)


@pytest.mark.slow
def test_changes_of_position_and_the_modes_after_them():
    """A body at rest on a floor is put 5 m above it, and falls; or into the floor."""
    elements = {"contact": jfric.Contact("z")}
    move = Event("t - 1 s", "up", change={"z": "z + $up", "v.z": 0.0})
    p = ball({"move": move}, elements=elements, height=0.0, up=5.0)
    ts = jnp.array([0.5, 1.0, 1.5, 2.5])
    s = jfric.simulate(p, ts=ts).check()
    np.testing.assert_allclose(s.q[:, 0], [0.0, 0.0, 3.75, 0.0], atol=1e-13)
    rows = [(r["contact"], round(r["time"], 12)) for r in s.event_table()]
    assert rows == [("contact", 1.0), ("event.move", 1.0), ("contact", 2.0)]
    refused = jfric.simulate(jfric.set_parameters(p, {"parameters.up": -1.0}), ts=ts)
    assert int(refused.status) == int(Status.PENETRATION)
    assert np.isnan(refused.q[2:]).all()
    with pytest.raises(jfric.SimulationError, match="inside each other"):
        refused.check()


@pytest.mark.slow
def test_positions_before_a_change_and_before_an_impact_at_the_same_instant():
    """At 1 s the body is put 5 m higher; a jump into the floor makes an impact of it as well."""
    p = ball({"move": Event("t - 1 s", "up", change={"z": "z + $up"})}, up=5.0)
    names = ["before_event.z(1)", "event.z(1)", "before_event.v.z(1)"]
    found = jfric.observe(p, names).values
    np.testing.assert_allclose([found[n] for n in names], [0.0, 5.0, -10.0], atol=1e-13)

    def before(height):
        changed = jfric.set_parameters(p, {"initial.z.q": height})
        return jfric.observe(changed, "before_event.z(1)").values["before_event.z(1)"]

    np.testing.assert_allclose(jax.jvp(before, (5.0,), (1.0,)), [0.0, 1.0], atol=1e-13)
    elements = {"contact": jfric.Contact("z", e=0.5)}
    move = Event("t - 0.5 s", "up", change={"z": 0.0})
    down = ball({"move": move}, elements=elements, end=0.8)
    names = ["before_event.z(1)", "before_event.z(2)", "event.z(2)", "event.v.z(2)"]
    found = jfric.observe(down, names).values
    np.testing.assert_allclose([found[n] for n in names], [3.75, 3.75, 0.0, 2.5], atol=1e-12)


def data_of(problem, values, ts):
    s = jfric.simulate(jfric.set_parameters(problem, values), ts=ts)
    known = np.isfinite(s.q[:, 0])
    y = {problem.axes[0]: np.where(known, s.q[:, 0], 0.0)}
    return jfric.Experiment(ts, y=y, sigma=1e-3, mask=known)


@pytest.mark.slow
@pytest.mark.parametrize(
    "event",
    [
        Event("z", "down", change={"v.z": "-$e*v.z"}),
        Event("t - 1 s", "up", change={"z": "z + $e"}),
        Event("z - $e", "down", "stop"),
    ],
    ids=["velocity", "position", "stop"],
)
def test_a_fit_of_a_system_with_events(event):
    p = ball({"e": event}, e=0.7, end=2.7)
    free = {"initial.q": jfric.Free(3.0, 7.0)}
    if event.action != "stop":
        free["parameters.e"] = jfric.Free(0.2, 0.9)
    truth = {"initial.q": 5.0, "parameters.e": 0.5}
    found = jfric.fit(p, data_of(p, truth, np.linspace(0.013, 2.7, 40)), free, starts=4)
    np.testing.assert_allclose(found.vector, [5.0, 0.5][: len(free)], rtol=1e-9)


@pytest.mark.slow
def test_a_fit_says_which_samples_lie_beyond_the_stop_of_an_event():
    p = oscillator({"e": Event("x", "down", "stop")})
    t = np.linspace(0.0, 3.0, 31)
    data = jfric.Experiment(t, y={"x": np.cos(t)}, sigma=1e-3, meta={"name": "swing"})
    found = jfric.fit(p, data, {"spring.k": jfric.Free(0.5, 2.0, init=1.0)})
    assert found.outcome.name == "FAILED"
    expected = "experiment swing: x is not predicted from t = 1.6 s on; does an event stop the run"
    assert expected in str(found)


def test_a_model_from_sample_to_sample_refuses_events():
    """It does not locate them: with measured inputs the fit simulates by the solver that does."""
    load = {"load": jfric.Load("x", 0.0)}
    p = oscillator({"e": Event("x", "down", change={"v.x": 0.0})}, elements=load)
    t = np.linspace(0.0, 1.0, 50)
    data = jfric.Experiment(t, u={"load.F": 0.0 * t}, y={"x": np.cos(t)})
    assert sampled_or_whole(p, [data], None, "zero") is p
    free = {"spring.k": jfric.Free(0.5, 2.0)}
    with pytest.raises(ProblemError, match=r"event.e: .* a model that goes from sample to sample"):
        jfric.fit(jfric.SampledModel(p), data, free)


#: Height of the floor, height above it, restitution, acceleration.
BOUNCES = [
    (0.0, 5.0, 0.5, 10.0),
    (0.0, 1e-4, 0.5, 1.0),
    (-1.0, 1e-4, 0.5, 1.0),
    (-1.0, 1e-2, 0.9, 1.0),
    (100.0, 1e-4, 0.5, 1.0),
    (100.0, 1e-2, 0.1, 100.0),
    (-1e4, 1e-4, 0.7, 1.0),
    (-1e4, 1e-2, 0.5, 0.1),
    (-1e4, 1e-8, 0.5, 1.0),
]


def bounces(cases, solver, when="z - $floor", *, dtype: type = float):
    """Solutions of bodies that an event throws back from a floor, and when their bounces end."""
    floor, height, e, g = np.array(cases, dtype).T
    p = Problem(
        ("z",),
        {
            "mass": Mass("z", 1.0),
            "load": jfric.Load("z", "-$g"),
            "event": {"floor": Event(when, "down", change={"v.z": "-$e*v.z"})},
        },
        initial={"z": InitialState(1.0)},
        time=1.0,
        parameters={"floor": 0.0, "e": 0.5, "g": 1.0},
    )
    p = jax.tree.map(lambda x: jnp.asarray(x, dtype) if eqx.is_inexact_array(x) else x, p)
    ends = np.sqrt(2.0 * height / g) * (1.0 + e) / (1.0 - e)
    solver = dataclasses.replace(solver, adjoint="none", max_events=600)

    @jax.vmap
    def run(floor, height, e, g, end):
        values = {"parameters.floor": floor, "initial.z.q": floor + height, "time.end": end}
        values |= {"parameters.e": e, "parameters.g": g}
        return jfric.simulate(jfric.set_parameters(p, values), solver)

    return run(floor, height, e, g, 100.0 * ends), ends


@pytest.mark.parametrize(
    "solver",
    [
        EventDriven(),
        pytest.param(RUNGE_KUTTA, marks=pytest.mark.slow),
        pytest.param(EventDriven(kernel="lowered"), marks=pytest.mark.slow),
    ],
)
def test_changes_that_accumulate_end_with_a_status(solver):
    """However far from the origin: flights below the resolution of the value are the end."""
    found, ends = bounces(BOUNCES, solver)
    assert found.status.tolist() == [Status.ACCUMULATION] * len(BOUNCES)
    floor, height, e, g = np.array(BOUNCES).T
    lost = 64 * 2.2e-16 * (2 * np.abs(floor) + 2 * height)
    rest = 2.0 * np.sqrt(8.0 * lost / g) / (1.0 - e)
    assert np.all(np.abs(found.final.t - ends) <= rest + 1e-6 * ends)


@pytest.mark.slow
@pytest.mark.parametrize("solver", [EventDriven(), RUNGE_KUTTA])
@pytest.mark.parametrize("how", ["function of time", "single precision"])
def test_bounces_of_other_kinds_accumulate(solver, how):
    """Values that are interpolated, and single precision: never through the floor in silence."""
    rng = np.random.default_rng(45041)
    sizes = 10 ** rng.uniform([[-3], [-8], [-1]], [[4], [0], [2]], (3, 40))
    cases = np.stack([sizes[0] * rng.choice([-1, 1], 40), sizes[1], rng.uniform(0.05, 0.9, 40)])
    cases = np.concatenate([cases, sizes[2:]]).T
    if how == "single precision":
        cases = cases[cases[:, 1] > 1e-5 * np.abs(cases[:, 0])]
        found, _ = bounces(cases, solver, dtype=np.float32)
    else:
        found, _ = bounces(cases, solver, "(z - $floor)*(1 + t)")
    assert found.status.tolist() == [Status.ACCUMULATION] * len(cases)


@pytest.mark.slow
def test_a_body_that_an_event_stops_in_the_air_falls_on():
    """A rebound without velocity is none: what a little of it would change is flagged."""
    found, ends = bounces([(1.0, 1e-2, 0.0, 1.0)], EventDriven())
    assert found.status.tolist() == [Status.OK]
    assert found.flags.tolist() == [Flag.GRAZING]
    assert found.events.count.tolist() == [1]
    np.testing.assert_allclose(found.final.v[0, 0], -99.0 * ends[0], rtol=1e-12)


@pytest.mark.parametrize(
    "solver", [EventDriven(), pytest.param(RUNGE_KUTTA, marks=pytest.mark.slow)]
)
def test_events_at_the_instant_of_an_impact(solver):
    """The ball hits a real floor where an event looks, and its velocity jumps through zero."""
    elements = {"contact": jfric.Contact("z", e=0.5)}
    events = {
        "height": Event("z", "down"),
        "turns": Event("v.z", "up"),
        "falls": Event("v.z", "down"),
        "twice": Event(lambda p: p.q[0] * (2.0 + p.q[0]), "down"),
        "late": Event("z + 1 mm"),
    }
    s = jfric.simulate(ball(events, elements=elements, end=1.8), solver)
    assert int(s.status) == 0
    assert [r["contact"] for r in s.event_table()] == [
        "contact",
        "event.height",
        "event.turns",
        "event.twice",
        "event.falls",
    ]
    np.testing.assert_allclose(times(s), [1.0, 1.0, 1.0, 1.0, 1.5], rtol=1e-9)
    assert s.events.impact.sum() == 1
    np.testing.assert_allclose(s.events.v_before[:4, 0], -10.0, rtol=1e-9)
    np.testing.assert_allclose(s.events.v[:4, 0], 5.0, rtol=1e-9)


@pytest.mark.parametrize(
    "solver", [EventDriven(), pytest.param(RUNGE_KUTTA, marks=pytest.mark.slow)]
)
def test_what_a_small_change_moved_comes_back(solver):
    """Whether a value has left zero does not depend on how far the next step might go."""
    back = {"x": "x - $by"}
    problem = Problem(
        ("x",),
        {"mass": Mass("x", 1.0), "event": {"e": Event("x - $at", "up", "change", back)}},
        initial={"x": InitialState(v=1.0)},
        parameters={"by": 1e-5, "at": 1.0},
        time=10.0,
    )
    solver = dataclasses.replace(solver, max_steps=60, adjoint="none")

    @jax.vmap
    def run(by, at, v):
        values = {"parameters.by": by, "parameters.at": at, "initial.x.v": v}
        return jfric.simulate(jfric.set_parameters(problem, values), solver)

    by, at, v = np.array([[1e-5, 1e-7, 1e-2, 1e-11], [1.0, 1.0, 1e-2, 1.0], [1.0, 1.0, 1e6, 1.0]])
    found = run(by, at, v)
    # The run would take more passes, or what happens takes less time than can be followed.
    assert found.status.tolist() == [*[Status.MAX_STEPS] * 3, Status.ACCUMULATION]
    count = np.arange(10)
    expected = (at[:3, None] + by[:3, None] * count) / v[:3, None]
    np.testing.assert_allclose(found.events.time[:3, :10], expected, rtol=1e-13)
    assert np.all(np.asarray(found.final.q)[:, 0] <= at * (1 + 1e-12))


@pytest.mark.parametrize(
    "solver", [EventDriven(), pytest.param(RUNGE_KUTTA, marks=pytest.mark.slow)]
)
def test_an_event_close_behind_another_has_a_time_of_its_own(solver):
    """Fast motion takes long steps; what is near zero at their start is not zero."""
    problem = Problem(
        ("x",),
        {
            "mass": Mass("x", 1.0),
            "event": {"first": Event("x - 0.01"), "second": Event("x - 0.01 - 1e-6")},
        },
        initial={"x": InitialState(v=1e6)},
        time=10.0,
    )
    found = jfric.simulate(problem, solver)
    np.testing.assert_allclose(times(found), [1e-8, 1.0001e-8], rtol=1e-13)


@pytest.mark.slow
def test_several_changes_at_once_follow_the_order_of_the_description():
    events = {
        "a": Event("t - 1 s", "up", change={"v.x": "v.x + 1 m/s"}),
        "b": Event("t - 1 s", "up", "stop", change={"v.x": "2*v.x"}),
    }
    free = Problem(("x",), {"mass": Mass("x", 1.0), "event": events}, time=2.0)
    s = jfric.simulate(free)
    np.testing.assert_allclose([s.final.t, s.final.v[0]], [1.0, 2.0])
    assert [r["contact"] for r in s.event_table()] == ["event.a", "event.b"]
    assert int(s.flags) & int(Flag.SIMULTANEOUS)


@pytest.mark.slow
def test_reactions_are_watched():
    """A rising load lifts the body off after the normal force came to 3 N."""
    load = jfric.PiecewiseLinear([0.0, 10.0], [-10.0, 10.0])
    elements = {"contact": jfric.Contact("z"), "load": jfric.Load("z", load)}
    light = Event("lambda_n.contact - 3 N", "down", "stop")
    s = jfric.simulate(ball({"light": light}, elements=elements, height=0.0, end=9.0)).check()
    np.testing.assert_allclose(float(s.final.t), 3.5, rtol=1e-14)


def test_batches_and_one_trace():
    traces = []

    def watched(p):
        traces.append(1)
        return p.q[0] - p.problem.parameters["c"]

    p = oscillator({"e": Event(watched, "down", "stop")}, c=0.0)

    @jax.jit
    def run(c):
        return jfric.simulate(jfric.set_parameters(p, {"parameters.c": c}))

    run(0.1)
    before = len(traces)
    assert float(run(0.2).final.t) == pytest.approx(np.arccos(0.2))
    assert len(traces) == before
    c = jnp.linspace(-0.9, 0.9, 7)
    many = jax.vmap(run)(c)
    np.testing.assert_allclose(many.final.t, jnp.arccos(c), rtol=1e-13)
    assert many.flags.tolist() == [int(Flag.STOPPED)] * 7


@pytest.mark.slow
def test_a_sweep_observes_them():
    p = oscillator({"e": Event("x - $c"), "f": Event("x")}, c=0.0)
    names = ["event_time.e(2)", "event_time.f(1)"]
    table = jfric.sweep(p, {"parameters.c": [-0.5, 0.5]}, observe=names)
    exact = 2 * np.pi - np.arccos([-0.5, 0.5])
    np.testing.assert_allclose(table["event_time.e(2)"], exact, rtol=1e-13)
    np.testing.assert_allclose(table["event_time.f(1)"], np.pi / 2, rtol=1e-13)
    with pytest.raises(ProblemError, match=r"no event 'g'.*there are e, f"):
        jfric.observe(p, "event_time.g(1)")


def test_the_program_without_events_is_as_before():
    p = oscillator({}, end=1.0)
    prepared = EventDriven().prepare(p)
    assert prepared.events is None
    assert EventDriven().start(p, prepared).watch is None


FILE = """
dofs = ["x"]
parameters = { limit = "200 mm", r = 0.5 }
mass = { dof = "x", m = 1.0 }
spring = { dof = "x", k = 1.0 }
friction = { dof = "x", N = 1.0, mu = 0.05 }
time = { end = 20.0, outputs = 11 }
[initial.x]
q = 1.0
[event.passes]
when = "x - $limit + 10 mm"
direction = "down"
[event.kick]
when = "t - 2 s"
change = { "v.x" = "$r*v.x" }
[event.slow]
when = "v.x"
action = "stop"
[[check]]
quantity = "event_time.kick(1)"
expected = 2.0
tolerance = 1e-12
"""


@pytest.mark.slow
def test_a_file_holds_them(tmp_path):
    config = loads(FILE)
    s = jfric.simulate(config.problem).check()
    assert [r["contact"] for r in s.event_table() if "event" in r["contact"]] == [
        "event.passes",
        "event.kick",
        "event.slow",
    ]
    t = times(s, "passes")[0]
    assert 0.95 * np.cos(t) + 0.05 == pytest.approx(0.19, abs=1e-13)
    again = loads(jfric.to_toml(config.problem)).problem
    assert jax.tree.structure(again) == jax.tree.structure(config.problem)
    path = tmp_path / "own.toml"
    path.write_text(FILE)
    assert all(result.passed for result in jfric.verify([path]))
    lambdas = oscillator({"e": Event(squared)})
    with pytest.raises(ProblemError, match=r"event.e.when: a Python function"):
        jfric.to_toml(lambdas)
    assert "event" in json_schema()["properties"]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("10 mm", "10 mm/s", r"event.passes.when: .* adds \(a length\) and \(a velocity\)"),
        ("10 mm", "10 mmm", "event.passes.when: found the unknown unit 'mmm'"),
        ("x - $limit", "xx - $limit", r"event.passes.when: no quantity 'xx' \(did you mean 'x'"),
        ("$limit", "$limi", r"refers to the parameter 'limi'.*did you mean 'limit'"),
        ('"v.x" = "$r', '"w.x" = "$r', r"event.kick.change.w.x: .*did you mean 'v.x'"),
        ("$r*v.x", "x + 1 mm", r"event.kick.change.v.x: .*\(a length\), expected one in m/s"),
        ('"down"', '"dwn"', "did you mean 'down'"),
        ('"stop"', '"change"', "event.slow.change: found none"),
        ('when = "v.x"', 'wen = "v.x"', "event.slow.wen: unknown field.*did you mean 'when'"),
        ('when = "v.x"', 'when = "v.x +"', "event.slow.when: the formula 'v.x \\+' cannot be read"),
        ('when = "v.x"', 'when = "v.x(1)"', "event.slow.when: the formula .* cannot be read"),
    ],
)
def test_mistakes_in_a_file_get_a_sentence(old, new, said):
    assert old in FILE
    with pytest.raises(ProblemError, match=said):
        loads(FILE.replace(old, new))


def test_mistakes_in_python_get_a_sentence():
    with pytest.raises(ProblemError, match=r"event.e.when: found 3, expected a text"):
        oscillator({"e": Event(3)})
    with pytest.raises(ProblemError, match=r"event.e.direction: found 'upp' \(did you mean 'up'"):
        oscillator({"e": Event("x", "upp")})
    with pytest.raises(ProblemError, match=r"event.e.when: no quantity 'y'"):
        jfric.simulate(oscillator({"e": Event("y")}))
    with pytest.raises(ProblemError, match=r"event.e.when: found a value of shape \(1,\)"):
        jfric.simulate(oscillator({"e": Event(lambda p: p.q)}))
    bad = oscillator({"e": Event("x", change=lambda p: p.v)})
    with pytest.raises(ProblemError, match=r"event.e.change: the function returned .*by name"):
        jfric.simulate(bad)


@pytest.mark.parametrize(
    "solver", [jfric.MoreauJean(dt=1e-3), jfric.QuasiStatic(), jfric.Smoothed(width=1e-3)]
)
def test_other_solvers_refuse_them(solver):
    p = oscillator({"e": Event("x")})
    with pytest.raises(
        ProblemError, match=r"event.e: found an event of your own, which the .* cannot"
    ):
        jfric.simulate(p, solver)


@pytest.mark.slow
def test_the_closed_form_refuses_them():
    friction = jfric.Friction("x", jfric.Coulomb(0.1), N=1.0)
    p = oscillator({"e": Event("x")}, elements={"friction": friction})
    assert int(jfric.simulate(p).status) == 0
    with pytest.raises(ProblemError, match="'one-dof' does not locate events of your own"):
        jfric.simulate(p, EventDriven(kernel="one-dof"))


@pytest.mark.parametrize("limit", [0.6, 1.5])
@pytest.mark.parametrize("solver", [EventDriven(), RUNGE_KUTTA])
def test_a_new_position_stretches_a_slider_which_slips_where_its_limit_is_passed(solver, limit):
    """x = 1 at v = 2 becomes 2: the spring of 1 N/m holds 1 N or, at its limit, less."""
    jump = {"x": Event("x - 0.5", "up", change={"x": "x + 0.5"})}
    slider = jfric.Jenkins("x", k=1.0, R=limit)
    problem = Problem(
        ("x",), {"mass": Mass("x", 1.0), "jenkins": slider, "event": jump},
        initial={"x": InitialState(0.0, 2.0)}, time=1.0,
    )  # fmt: skip
    s = jfric.simulate(problem, solver)
    assert s.status == Status.OK
    t1 = np.arcsin(0.25)  # x = 2 sin t
    v1, t = 2 * np.cos(t1), 1.0 - t1
    if limit < 1.0:  # slips from the jump on
        q, v = 1.0 + v1 * t - limit * t**2 / 2, v1 - limit * t
    else:  # sticks until x = 1.5
        phase = np.arctan2(1.0, v1)
        size = np.hypot(1.0, v1)
        slipped = np.arcsin(limit / size) - phase
        v = size * np.cos(slipped + phase)
        rest = t - slipped
        q, v = limit + v * rest - limit * rest**2 / 2, v - limit * rest
    np.testing.assert_allclose([s.final.q[0], s.final.v[0]], [q, v], rtol=1e-7)


def test_a_function_sees_segments_by_their_names():
    def deep(p):
        return p.q[0] - jnp.where(p.segment[0] == 1, 0.01, 5.0)

    parts = {
        "mass": jfric.Mass("x", 1.0),
        "stop": jfric.Stop("x", k=100.0, c=5.0, gap=0.0, release="limited"),
        "event": {"deep": jfric.Event(deep, "up")},
    }
    start = {"x": jfric.InitialState(-0.1, 1.0)}
    s = jfric.simulate(jfric.Problem(["x"], parts, initial=start, time=0.15))
    (row,) = (row for row in s.event_table() if row["contact"] == "event.deep")
    assert row["q"][0] == pytest.approx(0.01, abs=1e-12)


def test_a_function_of_a_length_is_refused():
    parts = {"mass": jfric.Mass("x", 1.0), "event": {"a": jfric.Event("sin(x) - 0.5 m")}}
    with pytest.raises(jfric.ProblemError, match=r"found sin.* of something with a unit"):
        jfric.simulate(jfric.Problem(["x"], parts, time=1.0))
