"""Random systems in other units of mass, length and time: the same motions and statuses.

What is decided on the edge by rounding is decided otherwise in other units, which are no powers of
two: this is how friction was found that let go of a belt for no reason.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from random_systems import END, KINDS, system, text

import jfric
from jfric.files.read_toml import loads

OUTPUTS = 31
#: Grams, hundredths of a millimetre and milliseconds; tons, tens of kilometres and minutes or so.
UNITS = ((1e-3, 1e-5, 1e-3), (1e3, 1e4, 1e2))
SOLVER = jfric.EventDriven(kernel="general", adjoint="none", max_events=1024, max_steps=20_000)
#: Numbers drawn freely: typed ones meet edges on purpose.
GENERIC = 0.0


@pytest.mark.parametrize(
    ("kind", "structure", "lanes"),
    [
        pytest.param("belts", 1, 12, marks=pytest.mark.slow),
        *(
            pytest.param(kind, structure, 64, marks=pytest.mark.slow)
            for structure in range(3)
            for kind in ("statics", "belts", "bases", "supports", "contacts", "memory", "carried")
        ),
    ],
)
def test_other_units_change_nothing(kind, structure, lanes):
    number = 100 * KINDS.index(kind) + structure
    tables = [system(7, number, i, kind, typed=GENERIC) for i in range(lanes)]

    @jax.jit
    @jax.vmap
    def run(problem):
        ts = jnp.linspace(0.0, 1.0, OUTPUTS) * problem.time.end
        found = jfric.simulate(problem, SOLVER, ts=ts)
        return found.q, found.v, found.status, found.flags

    def of(units):
        problems = [loads(text(table, units)).problem for table in tables]
        stacked = jax.tree.map(lambda *x: np.stack([np.asarray(y) for y in x]), *problems)
        q, v, status, flags = (np.asarray(x) for x in run(stacked))
        _, length, time = units
        return q * length, v * length / time, status, flags

    assert float(loads(text(tables[0], UNITS[0])).problem.time.end) == END / UNITS[0][2]
    q, v, status, flags = of((1.0, 1.0, 1.0))
    assert (status == 0).mean() > 0.5
    for units in UNITS:
        own_q, own_v, own_status, own_flags = of(units)
        np.testing.assert_array_equal(own_status, status)
        # Where several contacts share a decision, static limits may leave several motions; without
        # losses a mass comes back to where an impact left it, and grazes.
        grazes = (flags | own_flags) & int(jfric.Flag.GRAZING) > 0
        edge = grazes | ((flags | own_flags) & int(jfric.Flag.SIMULTANEOUS) > 0)
        off = np.abs(own_q - q).max(axis=(1, 2)), np.abs(own_v - v).max(axis=(1, 2))
        good = (status == 0) & (off[0] < 1e-8) & (off[1] < 1e-6)
        assert good[(status == 0) & ~edge].all(), np.flatnonzero((status == 0) & ~edge & ~good)
        assert good[(status == 0) & ~grazes].mean() > 0.95


@pytest.mark.slow
def test_steps_beside_states_of_elements_do_not_depend_on_units():
    """States have no mass: the estimate of the longest step took their own units for one, and a
    joint's reactions carried them to all bodies (1,416 steps instead of 276)."""
    mass, time = 1e-3, 60.0
    steps = []
    for m, t in ((1.0, 1.0), (mass, time)):
        elements = {
            "mass": {"a": jfric.Mass("a", 1.4 / m), "b": jfric.Mass("b", 0.7 / m)},
            "spring": {
                "a": jfric.Spring("a", 7.9 / m * t**2),
                "b": jfric.Spring("b", 3.4 / m * t**2),
            },
            "bouc_wen": jfric.BoucWen("a", k=12.6 / m * t**2, n=1.0, A=1.0, beta=7.7, gamma=7.7),
            "joint": jfric.Joint("a - 2*b"),
        }
        start = {"a": jfric.InitialState(v=2.0 * t), "b": jfric.InitialState(v=1.0 * t)}
        problem = jfric.Problem(["a", "b"], elements, initial=start, time=4.0 / t)
        found = jfric.simulate(problem, jfric.EventDriven(adjoint="none"))
        found.check()
        steps.append(int(found.steps))
    assert max(steps) < 1.5 * min(steps), steps


@pytest.mark.parametrize("mass", [1.0, 1e3])
def test_a_joint_holds_for_velocities_that_are_rounding_errors(mass):
    """A floor turns round at the start, with the velocity that rounding leaves of cos(pi/2), and
    friction moves two coordinates with it that a joint ties."""
    elements = {
        "mass": {x: jfric.Mass(x, 2.0 * mass) for x in "abc"},
        "spring": jfric.Spring(("floor", "a"), 7.0 * mass),
        "base": {"floor": jfric.Base(jfric.Harmonic(0.25, 3.0, np.pi / 2))},
        "friction": jfric.Friction({"a": 1.0, "c": -0.5, "floor": -1.0}, 0.75, N=2.5 * mass),
        "joint": jfric.Joint("a - b"),
    }
    s = jfric.simulate(jfric.Problem(["a", "b", "c"], elements, time=0.1), ts=jnp.zeros(1))
    assert s.outcome() == "ok"
    # On a: (7 * 0.25 - 1.875)/4, as b is moved along; on c half of the friction.
    np.testing.assert_allclose(s.a[0], [-0.03125, -0.03125, 0.46875], rtol=1e-12)
    np.testing.assert_allclose(s.lambda_t[0], [-0.75 * 2.5 * mass], rtol=1e-12)
