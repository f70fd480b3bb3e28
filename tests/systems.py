"""Systems, and batches of runs, that several files of tests share."""

from __future__ import annotations

import functools

import jax
import numpy as np

import jfric


@functools.cache
def bouncing(time: float) -> jfric.Problem:
    """Slides both ways, sticks, falls on the ground and bounces: one contact."""
    return jfric.Problem(
        ("x", "z"),
        {
            "mass": {"x": jfric.Mass("x", 1.0), "z": jfric.Mass("z", 1.0)},
            "spring": jfric.Spring("x", 40.0),
            "contact": jfric.Contact("z", "x", jfric.StaticDynamic(0.4, 0.3), e=0.4),
            "load": {
                "weight": jfric.Load("z", -9.81),
                "shake": jfric.Load("x", jfric.Harmonic(8.0, 3.0)),
            },
        },
        initial={"x": jfric.InitialState(v=1.0), "z": jfric.InitialState(q=0.2)},
        time=time,
    )


@functools.cache
def simulated(solver: jfric.EventDriven, system, end: float):
    """A compiled batch of runs of ``system()`` for a dictionary of parameters; 25 outputs."""
    problem, ts = system(), np.linspace(0.0, end, 25)

    @jax.jit
    @jax.vmap
    def run(values):
        return jfric.simulate(jfric.set_parameters(problem, values), solver, ts=ts)

    return run


@functools.cache
def unloaded_spring() -> jfric.Problem:
    """Pulled to 10 m, let go against 30 N under a load that drops from 50 N to none at 1 s."""
    elements = {
        "spring": jfric.Spring("u", 10.0),
        "friction": jfric.Friction("u", jfric.Coulomb(0.3), N=100.0),
        "load": jfric.Load("u", jfric.Steps([1.0], [50.0, 0.0])),
    }
    initial = {"u": jfric.InitialState(q=10.0)}
    return jfric.Problem(("u",), elements, time=2.0, initial=initial)
