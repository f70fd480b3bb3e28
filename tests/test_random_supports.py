"""Random bodies on several supports: frictions on moving belts, and corners that hit at once."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from references import belts as reference

import jfric
from jfric import Flag, Status

END, OUTPUTS = 5.0, 11
TIMES = np.linspace(0.0, END, OUTPUTS)
SOLVERS = {
    "general": jfric.EventDriven(adjoint="reverse", max_steps=3000),
    "lowered": jfric.EventDriven(kernel="lowered", adjoint="none", max_steps=3000),
    "runge-kutta": jfric.EventDriven(flow="runge-kutta", adjoint="none", max_steps=3000),
    "moreau-jean": jfric.MoreauJean(5e-4),
}


def _stacked(problems):
    return jax.tree.map(lambda *x: jnp.stack([jnp.asarray(y) for y in x]), *problems)


def _on_belts(rng, count: int):
    """Numbers, and the problem, of one body with ``count`` frictions."""
    quarters = np.array([-0.5, 0.0, 0.5, 1.0]) * math.pi
    limits = np.where(rng.random(count) < 0.5, rng.uniform(0.2, 3.0, count), 1.0)
    belts = np.stack(
        [
            np.where(rng.random(count) < 0.7, rng.uniform(0.1, 1.0, count), 0.0),
            np.where(rng.random(count) < 0.5, rng.uniform(0.5, 3.0, count), 1.0),
            np.where(rng.random(count) < 0.5, rng.uniform(0.0, 6.0, count), rng.choice(quarters)),
            np.where(rng.random(count) < 0.5, rng.uniform(-0.5, 0.5, count), 0.0),
        ],
        axis=1,
    )
    push = rng.choice([0.0, 0.5, 1.0, 2.0]), rng.uniform(0.5, 3.0), rng.choice(quarters)
    v0 = rng.choice([0.0, 0.0, 0.5])
    friction = {
        f"c{i}": jfric.Friction(
            "x", limit=c, belt=jfric.Sum([jfric.Harmonic(a, w, p), jfric.Constant(mean)])
        )
        for i, (c, (a, w, p, mean)) in enumerate(zip(limits, belts, strict=True))
    }
    problem = jfric.Problem(
        ("x",),
        {
            "mass": jfric.Mass("x", 1.0),
            "friction": friction,
            "load": jfric.Load("x", jfric.Harmonic(*push)),
        },
        initial={"x": jfric.InitialState(q=0.0, v=v0)},
        time=END,
    )
    return (limits, belts, push, 0.0, v0), problem


@pytest.mark.slow
@pytest.mark.parametrize(
    ("solver", "count"),
    [
        *(("general", count) for count in (2, 3, 4)),
        ("lowered", 2),
        *(("runge-kutta", count) for count in (2, 4)),
        ("moreau-jean", 3),
    ],
)
def test_frictions_on_belts_of_random_motion(solver, count):
    rng = np.random.default_rng(count)
    systems = [_on_belts(rng, count) for _ in range(30)]
    run = jax.jit(jax.vmap(lambda p: jfric.simulate(p, SOLVERS[solver], ts=TIMES)))
    batch = _stacked([problem for _, problem in systems])
    runs = run(batch)
    np.testing.assert_array_equal(runs.status, Status.OK)
    expected = np.array([reference.simulate(*x, END, OUTPUTS) for x, _ in systems])
    np.testing.assert_allclose(runs.q[..., 0], expected, atol=5e-3 if "moreau" in solver else 1e-3)
    if "moreau" not in solver:
        limit = 1e-7 if solver == "runge-kutta" else 1e-10
        assert float(jax.vmap(jfric.motion_residual)(batch, runs).max()) < limit
        assert float(jax.vmap(jfric.contact_residual)(batch, runs).max()) < limit


@pytest.mark.slow
@pytest.mark.parametrize("kernel", ["general", pytest.param("lowered", marks=pytest.mark.slow)])
def test_symmetric_impacts_stay_symmetric(kernel):
    """Blocks of random shape and restitution fall flat on two corners, and rest when a ball would;
    they tilt by rounding errors alone."""
    rng = np.random.default_rng(0)
    numbers = [
        (
            rng.uniform(0.3, 3.0),
            rng.uniform(0.005, 1.0),
            rng.uniform(0.2, 2.0),
            rng.uniform(0.1, 0.9),
        )
        for _ in range(40)
    ]
    problems = [
        jfric.Problem(
            ("y", "a"),
            {
                "mass": {"y": jfric.Mass("y", m), "a": jfric.Mass("a", inertia)},
                "contact": {
                    "left": jfric.Contact({"y": 1.0, "a": -arm}, e=e),
                    "right": jfric.Contact({"y": 1.0, "a": arm}, e=e),
                },
                "load": jfric.Load("y", -10.0 * m),
            },
            initial={
                "y": jfric.InitialState(q=1.0, v=0.0),
                "a": jfric.InitialState(q=0.0, v=0.0),
            },
            time=12.0,
        )
        for m, inertia, arm, e in numbers
    ]
    solver = jfric.EventDriven(adjoint="none", kernel=kernel, max_events=400)
    runs = jax.jit(jax.vmap(lambda p: jfric.simulate(p, solver)))(_stacked(problems))
    np.testing.assert_array_equal(runs.status, Status.OK)
    assert np.all(np.asarray(runs.flags) & Flag.ZENO)
    counts = np.asarray(runs.events.count)
    rests = np.array([t[n - 1] for t, n in zip(np.asarray(runs.events.time), counts, strict=True)])
    expected = np.array([math.sqrt(0.2) * (1.0 + e) / (1.0 - e) for *_, e in numbers])
    np.testing.assert_allclose(rests, expected, atol=1e-9)
    tilt = np.nanmax(np.abs(np.asarray(runs.events.q)[..., 1]), axis=1)
    assert tilt.max() < 1e-12


def _sliding_on_four(rng):
    """A point in six dimensions on four rough planes: it rests on one and slides on the others."""
    normal, tangent = rng.normal(size=(2, 4, 6))
    tangent -= np.sum(tangent * normal, axis=1, keepdims=True) * normal / 6.0
    held = np.concatenate([normal, tangent[:1]])
    v = np.linalg.svd(held)[2][-1]
    dofs = tuple("abcdef")
    push = normal.T @ rng.uniform(-1.5, 0.5, 4) + tangent.T @ rng.uniform(-1.0, 1.0, 4)
    contacts = {
        f"c{i}": jfric.Contact(
            normal=dict(zip(dofs, normal[i].tolist(), strict=True)),
            tangent=dict(zip(dofs, tangent[i].tolist(), strict=True)),
            law=jfric.Coulomb(rng.uniform(0.2, 1.5)),
        )
        for i in range(4)
    }
    return jfric.Problem(
        dofs,
        {
            "mass": {x: jfric.Mass(x, rng.uniform(0.5, 2.0)) for x in dofs},
            "contact": contacts,
            "load": {x: jfric.Load(x, f) for x, f in zip(dofs, push.tolist(), strict=True)},
        },
        initial={x: jfric.InitialState(0.0, y) for x, y in zip(dofs, v.tolist(), strict=True)},
        time=1e-3,
    )


@pytest.mark.slow
def test_modes_that_all_contacts_decide_together_fit():
    """Forces of sliding contacts change what the others decide: where no single change of mode
    helps, all are decided at once. What is called ok meets the laws."""
    rng = np.random.default_rng(2811)
    batch = _stacked([_sliding_on_four(rng) for _ in range(512)])
    run = jax.jit(
        jax.vmap(lambda p: jfric.simulate(p, SOLVERS["general"], ts=np.array([0.0, 1e-3])))
    )
    runs = run(batch)
    ok = runs.status == Status.OK
    assert int(jnp.sum(ok)) > 100
    residual = jnp.max(jax.vmap(jfric.contact_residual)(batch, runs), axis=(1, 2))
    assert float(jnp.max(jnp.where(ok, residual, 0.0))) < 1e-8
