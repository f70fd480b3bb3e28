"""A problem is data; what depends on its start alone is computed when it is built."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax._src import monitoring

import jfric
from jfric.files.read_toml import loads
from jfric.system.model import _BUILT, Model


def pendulum(**start) -> jfric.Problem:
    """A rod on a pin at its top."""
    rod = jfric.Body(1.0, 0.1, points={"top": (0.0, 1.0)}, **start)
    return jfric.Problem(
        [],
        {
            "body": {"rod": rod},
            "ground": jfric.Ground({"o": (0.0, 0.0)}),
            "pin": jfric.Pin(("ground.o", "rod.top")),
            "gravity": jfric.Gravity(9.81),
        },
        time=0.5,
    )


def sunk(y=-1.5) -> jfric.Problem:
    """A body on a spring, half a metre deep in the floor."""
    return jfric.Problem(
        ["y"],
        {
            "mass": jfric.Mass("y", 1.0),
            "spring": jfric.Spring("y", 1.0),
            "contact": jfric.Contact("y", gap=1.0),
            "load": jfric.Load("y", jfric.Harmonic(1.0, 2.0)),
        },
        initial={"y": jfric.InitialState(y)},
        time=1.0,
    )


@pytest.fixture
def compiled():
    """Names of what is compiled meanwhile."""
    found = []

    def listen(name, _, **__):
        if "backend_compile" in name:
            found.append(name)

    monitoring.register_event_duration_secs_listener(listen)
    yield found
    monitoring.unregister_event_duration_listener(listen)


def test_a_problem_computes_nothing(compiled):
    # Numbers of a size that no other test has, so that nothing is compiled already.
    problem = pendulum(angle=0.3)
    assert compiled == []
    assert float(problem.initial["rod_y"].q) == 0.0
    model = jfric.build(problem)
    np.testing.assert_allclose(model.initial["rod_x"].q, np.sin(0.3), atol=1e-14)
    np.testing.assert_allclose(model.initial["rod_y"].q, -np.cos(0.3), atol=1e-14)
    assert float(problem.initial["rod_y"].q) == 0.0


def test_a_model_is_taken_as_it_is(compiled):
    problem = pendulum(angle=0.3, omega=1.0)
    model = jfric.build(problem)
    assert jfric.build(model) is model
    found = jfric.simulate(model).check()
    np.testing.assert_array_equal(found.final.q, jfric.simulate(problem).final.q)
    assert jfric.to_toml(model) == jfric.to_toml(problem)
    before = len(compiled)
    jfric.simulate(jfric.set_parameters(model, {"body.rod.m": 2.0}))
    assert len(compiled) == before


def test_a_description_is_built_once_while_it_lives_and_stays_the_same():
    problem = sunk(-1.0)
    model = jfric.build(problem)
    assert jfric.build(problem) is model
    assert jfric.build(sunk(-1.0)) is not model
    problem.initial["y"] = jfric.InitialState(0.5)
    assert float(jfric.build(problem).initial["y"].q) == 0.5
    known = len(_BUILT)
    del problem
    assert len(_BUILT) == known - 1


def test_the_start_follows_where_a_model_changes():
    def height(angle):
        changed = jfric.set_parameters(model, {"initial.rod_phi.q": angle})
        assert isinstance(changed, Model)
        return jfric.simulate(changed, end=1e-9).final.q[1]

    model = jfric.build(pendulum(angle=0.3))
    angles = jnp.array([0.2, 1.0, 2.5])
    found, slopes = jax.vmap(jax.value_and_grad(height))(angles)
    np.testing.assert_allclose(found, -np.cos(angles), atol=1e-8)
    np.testing.assert_allclose(slopes, np.sin(angles), atol=1e-7)


@pytest.mark.slow  # its sibling: starts that follow where a model changes
def test_bodies_of_unknown_angle_are_put_together_while_traced_as_well():
    """A centre of mass above the pin turns the rod by half a turn: at the angle zero Newton's step
    is zero, only turned rods lead there."""
    upright = jfric.build(pendulum(at=(0.0, 1.0)))
    np.testing.assert_allclose(np.abs(upright.initial["rod_phi"].q), np.pi, atol=1e-8)

    def angle(x):
        found = jfric.simulate(pendulum(at=(x, 1.0)), jfric.EventDriven(adjoint="none"), end=1e-9)
        return found.final.q[2], found.status

    phi, status = jax.jit(jax.vmap(angle))(jnp.zeros(2))
    assert not status.any()
    np.testing.assert_allclose(np.abs(phi), np.pi, atol=1e-8)


@pytest.mark.parametrize(
    "problem",
    [pytest.param(pendulum(angle=0.3), marks=pytest.mark.slow), sunk(-1.0)],
    ids=["joint", "contact"],
)
def test_a_concrete_problem_is_built_while_something_else_is_traced(problem):
    alone = jfric.simulate(problem, end=0.1).final.q
    found = jax.jit(lambda end: jfric.simulate(problem, end=end).final.q)(0.1)
    np.testing.assert_allclose(found, alone, rtol=1e-12, atol=1e-14)


DOORS = {
    "build": jfric.build,
    "simulate": jfric.simulate,
    "observe": lambda p: jfric.observe(p, ["max.y"]),
    "sweep": lambda p: jfric.sweep(p, {"mass.m": [1.0, 2.0]}, ["max.y"], progress=False),
    "init": lambda p: jfric.EventDriven().init(p),
    "equilibria": jfric.equilibria,
    "trace": lambda p: jfric.trace(p, "spring.k", 1.0, 2.0),
    "limit load": lambda p: jfric.limit_load(p, "spring.k", 1.0, 2.0),
    "orbit": jfric.periodic_orbit,
    "path of orbits": lambda p: jfric.continue_orbit(p, "spring.k", 1.0, 2.0),
    "response": lambda p: jfric.frequency_response(p, "load", 1.0, 2.0),
    "balance": lambda p: jfric.harmonic_balance(p, "load.F.omega", 1.0, 2.0),
    "section": lambda p: jfric.poincare_section(p, returns=2),
    "diagram": lambda p: jfric.bifurcation_diagram(p, "spring.k", [1.0, 2.0], "q.y"),
    "exponent": jfric.lyapunov_exponent,
    "basins": lambda p: jfric.basins(p, {"initial.y.v": [0.0, 1.0]}, progress=False),
    "fit": lambda p: jfric.fit(p, record(), {"spring.k": jfric.Free(0.5, 2.0)}),
    "file": lambda p: loads(jfric.to_toml(p)),
}


def record() -> jfric.Experiment:
    return jfric.Experiment(np.arange(3.0), y={"y": np.zeros(3)})


@pytest.mark.parametrize("door", DOORS)
def test_every_door_judges_the_start(door):
    with pytest.raises(jfric.ProblemError, match=r"contact 'contact' starts with a gap of -0\.5"):
        DOORS[door](sunk())


def test_a_model_shows_its_contacts():
    model = jfric.build(
        jfric.Problem(
            ["x", "y"],
            {
                "mass": {d: jfric.Mass(d, 1.0) for d in ("x", "y")},
                "friction": jfric.Friction(("x", "y"), 0.3, N=2.0, belt=0.1),
                "contact": {
                    "floor": jfric.Contact("y", "x", jfric.StaticDynamic(0.5, 0.4)),
                    "wall": jfric.Contact(gap="2 - x*y"),
                },
            },
        )
    )
    first, floor, wall = model.contacts
    assert first == ("friction", "friction", "", "y - x", "Coulomb", "Constant")
    assert floor == ("contact.floor", "unilateral", "y", "x", "StaticDynamic", "")
    assert wall == ("contact.wall", "unilateral", "2 - x*y", "", "", "")
    assert str(model).splitlines()[0] == "Model: x, y; contacts: 3"
    assert "contact.wall   unilateral  2 - x*y" in str(model)


def test_only_a_problem_is_built():
    with pytest.raises(jfric.ProblemError, match=r"problem: found str, needs a jfric.Problem"):
        jfric.build("slider_crank.toml")
