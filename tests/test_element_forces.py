"""Forces and impulses of springs, dampers and stops: closed forms, balances, names."""

import jax.numpy as jnp
import numpy as np
import pytest

import jfric

EXACT = 1e-12


def stopped_mass(release="physical", c=0.0):
    """1 kg with 1 m/s against a stop of 100 N/m: in touch for pi/10 s without a damper."""
    elements = {
        "mass": jfric.Mass("x", 1.0),
        "stop": {"wall": jfric.Stop("x", k=100.0, gap=0.5, c=c, release=release)},
    }
    initial = {"x": jfric.InitialState(v=1.0)}
    return jfric.Problem(("x",), elements, time=2.0, initial=initial)


STOP_SOLVERS = [(jfric.EventDriven(), 1e-12), (jfric.EventDriven(flow="runge-kutta"), 1e-6)]


@pytest.mark.parametrize(("solver", "rtol"), [*STOP_SOLVERS, (jfric.MoreauJean(1e-4), 1e-3)])
def test_force_and_impulse_of_a_stop(solver, rtol):
    """Peak v sqrt(k m) = 10 N, impulse 2 m v, and the momentum comes from it."""
    names = "min.force.wall, max.force.stop, impulse.wall, impulse, final.v, force.wall(0.6)"
    found = jfric.observe(stopped_mass(), names, solver).values
    expected = [-10.0, 0.0, -2.0, -2.0, -1.0, -10.0 * np.sin(1.0)]
    for name, value in zip(names.split(", "), expected, strict=True):
        np.testing.assert_allclose(found[name], value, rtol=rtol, atol=rtol, err_msg=name)


@pytest.mark.slow
def test_a_damped_stop_changes_the_momentum():
    """The impulse is the change of momentum whatever the release; the force steps up at touch."""
    for release in ("physical", "adhesive"):
        problem = stopped_mass(release, c=4.0)
        names = "impulse.stop, final.v, event.force.stop(1), min.force.stop, max.force.stop"
        found = jfric.observe(problem, names).values
        np.testing.assert_allclose(found["impulse.stop"], found["final.v"] - 1.0, rtol=EXACT)
        np.testing.assert_allclose(found["event.force.stop(1)"], -4.0, rtol=EXACT)
        assert (float(found["max.force.stop"]) > 1e-3) == (release == "adhesive")


@pytest.mark.slow
def test_forces_of_all_elements_balance():
    """Springs with bases, dampers, diagrams, pendulum, polynomial and drag: m a is their sum."""
    elements = {
        "mass": jfric.Mass("x", 2.0),
        "base": {"floor": jfric.Base(jfric.Harmonic(0.3, 2.0))},
        "spring": {"a": jfric.Spring("x", 3.0, 0.2), "b": jfric.Spring(("floor", "x"), 5.0)},
        "damper": jfric.Damper(("floor", "x"), 0.7),
        "diagram_spring": jfric.DiagramSpring("x", [-1.0, 0.0, 1.0], [-1.0, 0.0, 4.0]),
        "gap_spring": jfric.GapSpring({"x": 2.0}, 8.0, 9.0, 0.1, 0.2),
        "pendulum": jfric.Pendulum("x", 0.3, 0.5),
        "polynomial_spring": jfric.PolynomialSpring({"x": 0.5}, [1.0, 0.0, 2.0]),
        "drag": jfric.Drag("x", 0.2),
    }
    initial = {"x": jfric.InitialState(q=0.4, v=1.0)}
    problem = jfric.Problem(("x",), elements, time=4.0, initial=initial)
    solution = jfric.simulate(problem, ts=np.linspace(0.0, 4.0, 41))
    forces = jfric.spring_forces(problem, solution)
    assert set(forces) == {
        *("spring.a", "spring.b", "damper", "diagram_spring", "gap_spring", "pendulum"),
        *("polynomial_spring", "drag"),
    }
    factor = {"gap_spring": 2.0, "polynomial_spring": 0.5}
    total = sum(factor.get(name, 1.0) * force for name, force in forces.items())
    np.testing.assert_allclose(total, 2.0 * solution.a[:, 0], rtol=1e-6, atol=1e-6)
    found = jfric.observe(problem, "impulse.a, mean.force.spring.a, final.force.damper").values
    np.testing.assert_allclose(found["impulse.a"], 4.0 * found["mean.force.spring.a"], rtol=EXACT)
    np.testing.assert_allclose(found["final.force.damper"], forces["damper"][-1], rtol=1e-6)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("max.force.wal", r"no quantity 'force.wal' \(did you mean 'force.stop.wall'"),
        ("impulse.x", "no quantity 'force.x'.*; there are force.stop"),
        ("max.lambda_n.wall", "there is no such contact"),
        ("fold_count", "which is no quantity of a trajectory"),
        ("event_time(99999999999999999999)", "events are numbered up to 2147483647"),
        ("before_event.force.wall(1)", "positions and velocities only are known before an event"),
    ],
)
def test_names_that_do_not_exist(name, sentence):
    with pytest.raises(jfric.ProblemError, match=sentence):
        jfric.observe(stopped_mass(), name)


@pytest.mark.parametrize("solver", [jfric.MoreauJean(1e-3), jfric.Midpoint(1e-3)])
def test_a_stop_never_pulls_between_outputs(solver):
    """It is touched between two of the outputs that the path is made of."""
    problem = jfric.set_parameters(stopped_mass(), {"stop.gap": 0.5013})
    found = jfric.observe(problem, "max.force.stop, min.force.stop", solver).values
    assert abs(float(found["max.force.stop"])) < EXACT
    np.testing.assert_allclose(found["min.force.stop"], -10.0, rtol=1e-3)


def test_forces_of_load_histories():
    """A support moves at 1 s by 2 m in no time: two springs in series share it, one with a gap."""
    elements = {
        "base": {"floor": jfric.Base(jfric.Steps([1.0], [0.0, 2.0]))},
        "spring": jfric.Spring(("floor", "x"), 3.0),
        "gap_spring": jfric.GapSpring("x", 1.0, 1.0, 0.5, 0.5),
        "friction": jfric.Friction("x", limit=0.5),
    }
    problem = jfric.Problem(("x",), elements, time=2.0)
    names = "max.force.spring, min.force.spring, min.force.gap_spring, impulse.spring, final.x"
    found = jfric.observe(problem, names, jfric.QuasiStatic()).values
    # 3 (2 - x) = 0.5 + (x - 0.5); it slides from 3 (2 - z) = 0.5 on.
    x = 1.5
    expected = [3.0 * (2.0 - x), 0.0, 0.5 - x, 3.0 * (2.0 - x), x]
    for name, value in zip(names.split(", "), expected, strict=True):
        np.testing.assert_allclose(found[name], value, rtol=EXACT, atol=EXACT, err_msg=name)


def test_forces_of_elements_in_a_sweep():
    elements = {"mass": jfric.Mass("x", 1.0), "spring": jfric.Spring("x", 1.0)}
    problem = jfric.Problem(("x",), elements, initial={"x": jfric.InitialState(q=1.0)}, time=4.0)
    found = jfric.sweep(problem, {"spring.k": [1.0, 4.0]}, "max.force.spring", progress=False)
    np.testing.assert_allclose(found["max.force.spring"], [1.0, 4.0], rtol=1e-12)


@pytest.mark.slow
def test_a_limited_stop_reports_the_force_that_acts():
    """Two of its segments have one name: the force is that of the one that holds."""
    stop = jfric.Stop("x", k=100.0, gap=0.1, c=20.0, release="limited")
    problem = jfric.Problem(
        ["x"],
        {"mass": jfric.Mass("x", 1.0), "stop": stop},
        initial={"x": jfric.InitialState(v=1.0)},
        time=0.6,
    )
    solution = jfric.simulate(problem, ts=jnp.linspace(0.0, 0.6, 61))
    force = jfric.spring_forces(problem, solution)["stop"]
    np.testing.assert_allclose(force, solution.a[:, 0], atol=1e-12)
    assert float(jfric.motion_residual(problem, solution).max()) < 1e-14
