"""What solvers and analyses take: one table, asked by all of them."""

import jax
import pytest

import jfric
from jfric.system.features import CONSTANT, FEATURES, require_features

U = {"mass": jfric.Mass("u", 1.0), "spring": jfric.Spring("u", 1.0)}
XY = {"mass": {"x": jfric.Mass("x", 1.0), "y": jfric.Mass("y", 1.0)}}
FRICTION = {"N": 1.0}


def one(**elements) -> jfric.Problem:
    return jfric.Problem(["u"], U | elements, time=0.1)


def two(**elements) -> jfric.Problem:
    return jfric.Problem(["x", "y"], XY | elements, time=0.1)


def pinned() -> jfric.Problem:
    body = jfric.Body(1.0, 0.1, at=(0, -1), points={"top": (0, 1)})
    pin = jfric.Pin(("rod.top", "ground"), jfric.Coulomb(0.1), radius=0.01)
    return jfric.Problem([], {"body": {"rod": body}, "pin": pin}, time=0.1)


def swinging() -> jfric.Problem:
    energies = jfric.Lagrangian(kinetic="0.5*(1 + u^2)*v.u^2")
    return jfric.Problem(["u"], {"lagrangian": energies}, time=0.1)


#: A problem with each feature, and where it is found.
WITH = {
    "reactions": (
        two(friction=jfric.Friction("x", 0.1, reaction={"x": 1.0, "y": 0.5}, **FRICTION)),
        "friction.reaction",
    ),
    "events": (one(event=jfric.Event("u - 1")), "event"),
    "controllers": (
        one(
            load={"push": jfric.Load("u", 0.0)},
            controller=jfric.Controller("u", "load.push", kp=1.0, period=0.01),
        ),
        "controller",
    ),
    "carried": (
        one(friction=jfric.Friction("u", limit=1.0, kappa=0.1, load="spring")), "friction.load",
    ),
    "fading": (
        one(transmission=jfric.elements.Transmission("u", stribeck=1.0, v_s=0.1)),
        "transmission.loss",
    ),
    "position": (
        one(friction=jfric.Friction("u", 0.1, position=jfric.PeriodicFactor(1.0), **FRICTION)),
        "friction.position",
    ),
    "planes": (two(friction=jfric.Friction(plane=["x", "y"], law=0.1, N=1.0)), "friction.plane"),
    "pins": (pinned(), "pin.mu"),
    "belts": (one(friction=jfric.Friction("u", 0.1, belt=0.1, **FRICTION)), "friction.belt"),
    "limited": (one(motor=jfric.elements.Motor("u", 1.0, V=2.0, R=1.0, i_max=1.0)), "motor.i_max"),
    "held": (
        one(motor=jfric.elements.Motor("u", 1.0, V=2.0, R=1.0, L=0.1, i_max=1.0)), "motor.i_max",
    ),
    "sliders": (one(jenkins=jfric.Jenkins("u", k=1.0, R=1.0)), "jenkins"),
    "states": (one(dahl=jfric.Dahl("u", sigma=1.0, F_c=1.0)), "dahl"),
    "reacting": (
        one(
            friction=jfric.Friction("u", 0.1, **FRICTION),
            state={"heat": jfric.State("-lambda_t.friction*slip.friction")},
        ),
        "state.heat.rate",
    ),
    "joints": (two(joint=jfric.Joint("x - y")), "joint"),
    "velocities": (two(velocity=jfric.Velocity({"x": "1", "y": "2"})), "velocity"),
    "varying": (swinging(), "lagrangian.kinetic"),
    "forces": (one(lagrangian=jfric.Lagrangian(potential="0.25*u^4")), "lagrangian"),
}  # fmt: skip
SOLVERS = (
    jfric.EventDriven(), jfric.MoreauJean(dt=1e-2), jfric.Midpoint(dt=1e-2),
    jfric.StabilisedMidpoint(dt=1e-2), jfric.Smoothed(), jfric.QuasiStatic(),
)  # fmt: skip


def test_every_feature_has_a_problem():
    assert WITH.keys() == FEATURES.keys()
    assert FEATURES.keys() > CONSTANT
    assert jfric.EventDriven.takes == FEATURES.keys()
    named = {solver for feature in FEATURES.values() for solver in feature.solvers}
    assert named <= {solver.label for solver in SOLVERS}


@pytest.mark.parametrize("name", FEATURES)
def test_a_feature_is_found_where_it_is_and_refused_in_one_sentence(name):
    problem, where = WITH[name]
    assert set(FEATURES[name].found(problem)) == {where}
    require_features(problem, "a friend", FEATURES)
    with pytest.raises(jfric.ProblemError) as error:
        require_features(problem, "a friend", FEATURES.keys() - {name})
    assert str(error.value) == (
        f"{where}: found {FEATURES[name].words}, which a friend cannot represent; use the solver "
        f"{' or '.join(FEATURES[name].solvers)}"
    )


@pytest.mark.parametrize("solver", SOLVERS, ids=lambda s: s.label)
@pytest.mark.parametrize("name", FEATURES)
def test_solvers_take_what_they_say(name, solver):
    """What is taken can be traced; what is not is named."""
    problem, where = WITH[name]
    if name in solver.takes:
        jax.eval_shape(lambda p: jfric.simulate(p, solver).q, problem)
    else:
        with pytest.raises(jfric.ProblemError, match=f"cannot represent; use the solver|{where}"):
            jfric.simulate(problem, solver)


def test_an_unknown_feature_is_named():
    with pytest.raises(jfric.ProblemError, match="takes: found 'plane', features are reactions"):
        require_features(WITH["events"][0], "a friend", ["plane"])
