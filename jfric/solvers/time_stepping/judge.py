"""The residual of steps that were made in closed form, from what they left behind."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from jfric.contact.contact_lcp import ContactProblem
from jfric.contact.residual import impulse_residual
from jfric.numerics.linear_algebra import matvec
from jfric.results.modes import Mode
from jfric.solvers.time_stepping.blocks import Block, Steps
from jfric.solvers.time_stepping.friction import coefficients
from jfric.solvers.time_stepping.inputs import step_inputs
from jfric.solvers.time_stepping.prepared import Prepared
from jfric.solvers.time_stepping.tolerance import touches


def residuals(
    prepared: Prepared, b: Block, s: Steps, index: Int[Array, " k"], force
) -> Float[Array, " k"]:
    """Violation of the discrete laws by the impulses of the steps ``index`` of ``b``."""
    x, impulse = b.motions(index), b.outcomes(index).impulse
    modes = s.mode_before[index], s.mode[index]
    each = jax.vmap(lambda *x: _residual(prepared, force, *x))
    take = (b.times[index], x.q_before, x.v_before, *modes, impulse)
    return each(*jax.lax.stop_gradient(take))


def _residual(prepared: Prepared, force, t, q, v, mode_before, mode, impulse):
    scheme, mechanics, h = prepared.scheme, prepared.mechanics, prepared.h
    nt, nf, a = prepared.nt, prepared.nf, prepared.constant
    assert a is not None
    x = step_inputs(mechanics, scheme, t, h, force)
    free = matvec(a.Bq, q) + matvec(a.Bv, v) + matvec(a.push, x.impulse)
    before = matvec(prepared.W, v) - x.before
    old = jnp.concatenate([jnp.full((nt,), scheme.kappa, v.dtype), mechanics.e])
    after = matvec(prepared.W, free) - x.after
    gamma = after + old * before
    gap = x.gap + matvec(mechanics.W_N, q)
    size = jnp.abs(x.gap) + matvec(jnp.abs(mechanics.W_N), jnp.abs(q))
    way = h * (jnp.abs(before[nt:]) + jnp.abs(after[nt:]))
    touching = touches(gap + (1.0 - scheme.theta) * h * before[nt:], size, way)
    friction = coefficients(prepared, jnp.abs(before[:nt]))
    # What holds may use the static coefficients; what slides has the kinetic ones.
    holds = mode == Mode.STICK
    smooth = jnp.asarray((False,) * nf + mechanics.smooth_impact) & (mode_before == Mode.OPEN)
    pressing = jnp.concatenate([x.normal, jnp.ones((prepared.nu,), v.dtype)])
    pressing = jnp.where(smooth, 0.0, pressing)
    upper = jnp.where(holds, friction.static_positive, friction.kinetic_positive) * pressing
    lower = jnp.where(holds, friction.static_negative, friction.kinetic_negative) * pressing
    own = jnp.arange(nt) < nf
    closed = jnp.concatenate([jnp.ones((nf,), bool), touching])
    problem = ContactProblem(
        D=a.D,
        gamma=gamma,
        decided=closed & ~jnp.asarray(mechanics.frictionless),
        touching=touching,
        sliding=jnp.zeros((nt,), v.dtype),
        mu_positive=upper[nf:],
        mu_negative=lower[nf:],
        cap_positive=jnp.where(own, upper, 0.0),
        cap_negative=jnp.where(own, lower, 0.0),
    )
    return impulse_residual(problem, impulse)
