"""Simulation from sample to sample: closed forms, the event-driven solver, derivatives."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jfric
from jfric.fits.data.stacking import function_paths
from jfric.solvers.sampled.run import run_sampled
from jfric.system.controller import Controller

STEP = 0.015
TIMES = jnp.arange(200) * STEP
#: Pushed and pulled, then left alone until it stops.
PUSH = 16.0 * jnp.sin(3.0 * TIMES) * (TIMES < 2.2)


@functools.cache
def problem(mu_s=1.0, mu_d=0.6):
    law = jfric.StaticDynamic(mu_s, mu_d)
    elements = {
        "mass": jfric.Mass("x", 2.0),
        "spring": jfric.Spring("x", 40.0),
        "damper": jfric.Damper("x", 0.5),
        "friction": jfric.Friction("x", law, N=10.0),
        "load": jfric.Load("x", 0.0),
    }
    start = {"x": jfric.InitialState(q=0.3, v=0.0)}
    return jfric.Problem(["x"], elements, initial=start, time=float(TIMES[-1]))


@eqx.filter_jit
def sampled(problem, push, linear=False, substeps=1, **options):
    slots = {"load.F": function_paths(problem)["load.F"]}
    return run_sampled(
        problem, TIMES, {"load.F": push}, slots, linear=linear, substeps=substeps, **options
    )


@functools.cache
def event_driven(linear):
    function = jfric.PiecewiseLinear(TIMES, PUSH) if linear else jfric.Steps(TIMES[1:], PUSH)
    changed = eqx.tree_at(lambda p: p.elements["load"]["load"].F, problem(), function)
    return jfric.simulate(changed, ts=TIMES)


@pytest.mark.parametrize("linear", [False, True])
def test_agrees_with_the_event_driven_solver(linear):
    exact = event_driven(linear)
    found = sampled(problem(), PUSH, linear)
    assert int(found.status) == 0
    assert jnp.sum(exact.mode[:, 0] == jfric.Mode.STICK) > 20
    assert jnp.sum(exact.mode[:, 0] == jfric.Mode.SLIP_POS) > 20
    assert jnp.max(jnp.abs(found.q - exact.q[:, 0])) < 1e-6
    assert jnp.array_equal(found.v == 0.0, exact.v[:, 0] == 0.0)


def test_order_four():
    exact = event_driven(True).q[:, 0]
    errors = [float(jnp.max(jnp.abs(sampled(problem(), PUSH, True, n).q - exact))) for n in (1, 2)]
    assert 12.0 < errors[0] / errors[1] < 20.0


def test_sticks_exactly():
    found = sampled(problem(), 0.0 * PUSH)
    resting = found.v == 0.0
    assert resting[-1]
    assert jnp.all(found.q[jnp.argmax(resting & (TIMES > 0.1)) :] == found.q[-1])


def test_derivatives_through_stops_and_breakaways():
    names = ["mass.m", "spring.k", "friction.mu_s", "friction.mu_d", "initial.v"]

    @jax.jit
    def motion(theta):
        changed = jfric.set_parameters(problem(), dict(zip(names, theta, strict=True)))
        return sampled(changed, PUSH, True).q

    theta = jnp.array([2.0, 40.0, 1.0, 0.6, 0.1])
    jacobian = jax.jit(jax.jacfwd(motion))(theta)
    for i in range(len(names)):
        h = 1e-6 * float(theta[i])
        difference = (motion(theta.at[i].add(h)) - motion(theta.at[i].add(-h))) / (2.0 * h)
        scale = float(jnp.max(jnp.abs(difference)))
        assert scale > 0.0
        assert jnp.max(jnp.abs(jacobian[:, i] - difference)) < 1e-6 * scale


def test_smoothed_law_on_request():
    smooth = sampled(problem(0.6, 0.6), PUSH, substeps=4, width=1e-3)
    exact = sampled(problem(0.6, 0.6), PUSH)
    assert 1e-6 < jnp.max(jnp.abs(smooth.q - exact.q)) < 2e-3


def test_controller_is_the_stated_difference_equation():
    kp, ki, kd, limit, gain = 300.0, 50.0, 30.0, 5.0, 0.8
    controller = Controller("x", "load.F", kp, ki, kd, limit=limit, gain=gain, delay=1.0, mean=2)
    reference = 0.2 * jnp.sin(2.0 * TIMES)
    free = jfric.Problem(
        ["x"], {"mass": jfric.Mass("x", 2.0), "load": jfric.Load("x", 0.0)}, time=1.0
    )
    slots = {"load.F": function_paths(free)["load.F"]}
    found = eqx.filter_jit(run_sampled)(
        free, TIMES, {}, slots, controller=controller, reference=reference
    )
    q, v, integral = 0.0, 0.0, 0.0
    seen, outputs, forces = [0.0, 0.0], [], []
    for r in np.asarray(reference):
        mean_now, mean_before = 0.5 * (q + seen[-1]), 0.5 * (seen[-1] + seen[-2])
        tried = integral + STEP * (r - q)
        u = kp * (r - q) + ki * tried - kd * (mean_now - mean_before) / STEP
        integral = integral if abs(u) > limit else tried
        outputs.append(min(max(u, -limit), limit))
        forces.append(gain * outputs[max(len(outputs) - 2, 0)])
        seen.append(q)
        q, v = q + STEP * v + 0.5 * STEP**2 * forces[-1] / 2.0, v + STEP * forces[-1] / 2.0
    assert np.max(np.abs(outputs)) == limit
    np.testing.assert_allclose(found.inputs["load.F"], forces, rtol=1e-9, atol=1e-9)


def test_a_drive_with_a_filter_keeps_the_impulse_of_every_sample():
    """Exact means over the samples of ``lag dw/dt + w = u[k - 1]``, for steps of the output."""
    lag, kp = 0.7 * STEP, 10.0
    controller = Controller("x", "load.F", kp, gain=2.0, delay=1.0, lag=lag)
    references = [0.0, 1.0, 0.3, 0.3, -0.5, 0.0]
    memory = controller.start(0.0, jnp.asarray(0.0), 0.0, STEP)
    found = []
    for r in references:
        force, memory = controller.step(memory, r, jnp.asarray(0.0), STEP)
        found.append(float(force))
    wanted, w, fine = [], 0.0, np.linspace(0.0, STEP, 2001)
    for u in kp * np.array([0.0, *references[:-1]]):
        inside = u + (w - u) * np.exp(-fine / lag)
        wanted.append(2.0 * np.trapezoid(inside, fine) / STEP)
        w = inside[-1]
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-9)

    def third(lag):
        drive = eqx.tree_at(lambda c: c.lag, controller, lag)
        memory = drive.start(0.0, jnp.asarray(0.0), 0.0, STEP)
        for r in references[:3]:
            force, memory = drive.step(memory, r, jnp.asarray(0.0), STEP)
        return force

    slope = (third(lag + 1e-7) - third(lag - 1e-7)) / 2e-7
    assert float(jax.grad(third)(lag)) == pytest.approx(float(slope), rel=1e-6)
    # Without a filter the output of one sample ago; a short one takes its part of the step.
    assert float(third(0.0)) == pytest.approx(20.0)
    assert float(jax.grad(third)(0.0)) == pytest.approx(-20.0 / STEP)


def test_what_it_cannot_hold_is_refused():
    two = jfric.Problem(
        ["x", "y"], {"mass": {"x": jfric.Mass("x", 1.0), "y": jfric.Mass("y", 1.0)}}, time=1.0
    )
    with pytest.raises(jfric.ProblemError, match="found 2 degrees of freedom"):
        run_sampled(two, TIMES, {}, {})
