"""A solver of one's own: it fits into everything that takes a solver."""

from __future__ import annotations

import functools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jfric
from jfric.fits.identifiability import check
from jfric.system.forces import applied_force


class SemiImplicitEuler(jfric.AbstractFixedStep):
    """``v+ = v + h M^-1 f(t, q, v)``, ``q+ = q + h v+``, with friction ``-mu N tanh(gamma/w)``."""

    dt: Any
    width: float = eqx.field(static=True, default=1e-3)
    max_steps: int = eqx.field(static=True, default=100_000)
    adjoint: str = eqx.field(static=True, default="auto")

    def motion(self, prepared, t, q, v, h, force):
        a = self.local(prepared, t, q, v).a + prepared.mechanics.M_inverse @ force
        return q + h * (v + h * a), v + h * a

    def local(self, prepared, t, q, v):
        m = prepared.mechanics
        gamma = m.sliding_velocities(t, v)
        limits = jnp.stack(
            [law.kinetic(0.0)[0] * n(t) for law, n in zip(m.laws, m.normal_forces, strict=True)]
        )
        lambda_t = -limits * jnp.tanh(gamma / self.width)
        segment = jnp.zeros((0,), jnp.int32)
        f = applied_force(m, t, q, v, segment) + m.W_T.T @ lambda_t
        sliding = jnp.where(gamma > 0, jfric.Mode.SLIP_POS, jfric.Mode.SLIP_NEG)
        mode = jnp.where(jnp.abs(gamma) <= self.width, jfric.Mode.STICK, sliding)
        return jfric.Local(m.M_inverse @ f, lambda_t, jnp.zeros((0,)), mode, segment)


STEP = 2e-4
TIMES = np.linspace(0.0, 1.0, 21)


@functools.cache
def _problem() -> jfric.Problem:
    """Slides, turns and slides back."""
    return jfric.Problem(
        ("u",),
        {
            "mass": jfric.Mass("u", 1.0),
            "spring": jfric.Spring("u", 50.0),
            "friction": jfric.Friction("u", jfric.Coulomb(0.2), N=5.0),
        },
        initial={"u": jfric.InitialState(q=0.2)},
        time=1.0,
    )


def _run(mu, adjoint="auto"):
    changed = jfric.set_parameters(_problem(), {"friction.mu": mu})
    return jfric.simulate(changed, SemiImplicitEuler(STEP, adjoint=adjoint), ts=TIMES)


@functools.cache
def _exact() -> jfric.Solution:
    return jfric.simulate(_problem(), ts=TIMES)


def test_it_simulates_in_batches_and_with_derivatives():
    exact = _exact()
    solution = _run(0.2).check()
    assert int(solution.steps) >= 5000
    assert float(solution.final.t) == 1.0
    np.testing.assert_allclose(solution.q, exact.q, atol=2e-3)
    np.testing.assert_allclose(solution.lambda_t[3], exact.lambda_t[3], atol=1e-9)
    assert float(jnp.max(jnp.abs(solution.q - exact.q))) > 1e-6  # first order, not exact
    mus = jnp.array([0.2, 0.3])
    batch = jax.jit(jax.vmap(_run))(mus)
    np.testing.assert_allclose(batch.q[0], solution.q, atol=1e-12)
    slope = jax.jit(jax.grad(lambda mu: _run(mu).final.q[0]))(0.2)
    h = 1e-5
    difference = (_run(0.2 + h).final.q - _run(0.2 - h).final.q)[0] / (2 * h)
    assert float(slope) == pytest.approx(float(difference), rel=1e-5)


@pytest.mark.slow  # its sibling: forward mode
def test_it_has_derivatives_in_reverse():
    reverse = jax.grad(lambda mu: _run(mu, "reverse").q[5, 0])
    forward = jax.jacfwd(lambda mu: _run(mu).q[5, 0])
    assert float(reverse(0.2)) == pytest.approx(float(forward(0.2)), rel=1e-9)


def test_it_restarts_and_steps():
    solver, problem = SemiImplicitEuler(STEP), _problem()
    half = jfric.simulate(problem, solver, end=0.5)
    again = jfric.simulate(problem, solver, start=half.final)
    np.testing.assert_allclose(again.final.q, _run(0.2).final.q, atol=1e-12)
    state, info = jax.jit(solver.step)(problem, solver.init(problem))
    assert float(info.h) == STEP
    assert bool(info.advanced)
    advanced = jax.jit(solver.advance)(problem, state, 0.5)
    np.testing.assert_allclose(advanced.q, half.final.q, atol=1e-12)
    short = jfric.simulate(problem, SemiImplicitEuler(STEP, max_steps=10), ts=TIMES)
    assert int(short.status) == jfric.Status.MAX_STEPS
    assert np.isnan(short.q[-1]).all()
    with pytest.raises(jfric.ProblemError, match="of an earlier run with EventDriven"):
        jfric.simulate(problem, start=half.final)


@pytest.mark.slow
def test_it_sweeps_and_observes():
    mus = np.array([0.2, 0.3])
    vary = {"friction.mu": mus}
    table = jfric.sweep(
        _problem(), vary, "final.u, max.v, dissipated", solver=SemiImplicitEuler(STEP)
    )
    exact = jfric.sweep(_problem(), vary, "final.u, max.v, dissipated")
    assert np.all(table["status"] == jfric.Status.OK)
    for name in ("final.u", "max.v", "dissipated"):
        np.testing.assert_allclose(table[name], exact[name], rtol=1e-2, err_msg=name)
    found = jfric.observe(_problem(), "final.u", SemiImplicitEuler(STEP))
    np.testing.assert_allclose(found.values["final.u"], table["final.u"][0], rtol=1e-12)
    with pytest.raises(jfric.ProblemError, match="the solver SemiImplicitEuler has no changes of"):
        jfric.sweep(_problem(), vary, "stop_time", solver=SemiImplicitEuler(STEP))
    with pytest.raises(jfric.ProblemError, match="are more than 2147483647 steps of it"):
        jfric.sweep(_problem(), vary, "final.u", solver=SemiImplicitEuler(1e-12))


@pytest.mark.slow
def test_it_fits():
    t = TIMES[1:]
    measured = jfric.Experiment(t, y={"u": np.asarray(_run(0.25).q[1:, 0])})
    free = {"friction.mu": jfric.Free(0.05, 0.6, init=0.15)}
    solver = SemiImplicitEuler(1e-3, width=1e-2)
    result = jfric.fit(_problem(), measured, free, solver=solver, starts=1)
    assert result.values["friction.mu"] == pytest.approx(0.25, rel=0.02)
    report = check(_problem(), measured, free, solver=solver)
    assert not report.findings
    assert 0.0 < report.step_error < np.inf


def test_what_is_no_solver_is_refused():
    for call in (
        lambda: jfric.simulate(_problem(), "euler"),
        lambda: jfric.observe(_problem(), "final.u", "euler"),
        lambda: jfric.sweep(_problem(), {"friction.mu": [0.1]}, "final.u", solver="euler"),
    ):
        with pytest.raises(jfric.ProblemError, match="solver: found 'euler', must be a solver"):
            call()
    with pytest.raises(jfric.ProblemError, match=r"adjoint: found 'forwards' \(did you mean"):
        jfric.simulate(_problem(), SemiImplicitEuler(STEP, adjoint="forwards"))
    with pytest.raises(jfric.ProblemError, match="dt: found -1, must be positive, in seconds"):
        jfric.simulate(_problem(), SemiImplicitEuler(-1.0))
    # Steps of unknown length would be those of another system.
    with pytest.raises(TypeError, match="dt"):
        jfric.MoreauJean()  # pyright: ignore
