"""Every solver on every case that it can represent, judged by the same residuals.

The residuals (:func:`jfric.contact_residual`, :func:`jfric.motion_residual`) know positions,
velocities and forces only, not how they were computed; the exact motion comes from the
event-driven solver, which the verification list compares with closed forms. A solver joins by one
line in ``SOLVERS``, a case by one line in ``CASES``.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import pytest

import jfric
from jfric.files.read_toml import load_config
from jfric.verification.configs import shipped


class Entry(NamedTuple):
    """A solver and the errors allowed: of positions relative to the largest, of the contact laws
    and of the balance of forces (both relative)."""

    solver: Any
    position: float
    contact: float
    motion: float


#: Smoothed contacts, which need a stiffness, are left to their own tests.
SOLVERS = {
    "event-driven-exact": Entry(jfric.EventDriven(flow="exact"), 1e-14, 1e-11, 1e-11),
    "event-driven-runge-kutta": Entry(jfric.EventDriven(flow="runge-kutta"), 1e-7, 1e-7, 1e-9),
    "moreau-jean": Entry(jfric.MoreauJean(dt=1e-4), 1e-3, 1e-9, 5e-3),
    "midpoint": Entry(jfric.Midpoint(dt=1e-4, max_events=0), 1e-3, 1e-4, 5e-3),
    "stabilised-midpoint": Entry(jfric.StabilisedMidpoint(dt=1e-4), 1e-3, 1e-9, 5e-3),
    "smoothed": Entry(jfric.Smoothed(width=1e-4, rtol=1e-7, atol=1e-8), 2e-2, 5e-3, 1e-12),
}
#: Case to the time at which it is compared last [s].
CASES = {"ve0116": 3.5, "ve0119": 0.3, "sdnd106": 0.35, "c4_belt": 6.0, "janovsky_4_1": 8.0}
OUTPUTS = 29


@functools.cache
def problem_of(name: str) -> jfric.Problem:
    return jfric.set_parameters(load_config(shipped(name)).problem, {"time.end": CASES[name]})


@functools.cache
def case(name: str) -> tuple[jfric.Problem, np.ndarray, np.ndarray]:
    """The problem, output times away from its events, and the exact positions there."""
    problem = problem_of(name)
    ts = CASES[name] * (np.arange(OUTPUTS) + 0.5) / OUTPUTS
    return problem, ts, np.asarray(jfric.simulate(problem, ts=jnp.array(ts)).q)


def represents(solver: Any, name: str) -> bool:
    try:
        solver.require(problem_of(name))
    except jfric.ProblemError:
        return False
    return True


#: A stiffness is missing, and the plain midpoint rule has no rest for static friction.
LEFT_OUT = {("smoothed", "janovsky_4_1"), ("midpoint", "sdnd106"), ("midpoint", "c4_belt")}
PAIRS = [(s, c) for s in SOLVERS for c in CASES if (s, c) not in LEFT_OUT]
#: Every solver takes the first; the verification list runs all cases.
FAST = {("moreau-jean", "janovsky_4_1"), ("smoothed", "c4_belt"), ("stabilised-midpoint", "ve0119")}


def parameters():
    for solver, name in PAIRS:
        slow = name != "ve0116" and (solver, name) not in FAST
        yield pytest.param(solver, name, marks=[pytest.mark.slow] if slow else [])


def test_what_is_left_out():
    found = {(s, c) for s in SOLVERS for c in CASES if not represents(SOLVERS[s].solver, c)}
    assert found == LEFT_OUT


@pytest.mark.parametrize(("solver", "name"), list(parameters()))
def test_one_judge(solver, name):
    entry = SOLVERS[solver]
    problem, ts, exact = case(name)
    found = jfric.simulate(problem, entry.solver, ts=jnp.array(ts))
    assert found.outcome() == "ok"
    error = np.abs(np.asarray(found.q) - exact).max() / np.abs(exact).max()
    assert error <= entry.position
    assert jfric.contact_residual(problem, found).max(initial=0.0) <= entry.contact
    assert jfric.motion_residual(problem, found).max() <= entry.motion


@pytest.mark.slow
def test_quasi_static_is_the_limit_of_slow_loading():
    """VE0061 with a mass and damping, loaded over ever longer times."""
    load = lambda T: jfric.PiecewiseLinear([0.0, T, 2 * T], [0.0, 900.0, 0.0])  # noqa: E731
    problem = load_config(shipped("ve0061")).problem
    reference = jfric.simulate(problem, jfric.QuasiStatic(), ts=jnp.array([0.25, 0.8, 1.4, 1.9]))
    errors = []
    for T in (10.0, 40.0):
        elements = {
            **problem.elements,
            "mass": jfric.Mass("u", 1.0),
            "damper": jfric.Damper("u", 150.0),
            "load": jfric.Load("u", load(T)),
        }
        slow = jfric.Problem(problem.dofs, elements, time=2 * T)
        dynamic = jfric.simulate(slow, ts=T * reference.ts)
        errors.append(np.abs(np.asarray(dynamic.q - reference.q)).max())
    # What remains is the force of the damper, in proportion to the speed of loading.
    assert errors[1] == pytest.approx(errors[0] / 4, rel=0.01)
    assert errors[1] < 1e-4
