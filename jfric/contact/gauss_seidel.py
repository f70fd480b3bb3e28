"""Projected Gauss-Seidel: contact after contact, each with the impulses of all others held.

Simple, needs little memory and never fails badly, but converges linearly and slowly where
contacts are strongly coupled.

Source: M. Jean, The non-smooth contact dynamics method, Comput. Methods Appl. Mech. Engrg. 177
(1999).
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from jfric.contact.contact_lcp import ContactProblem
from jfric.contact.residual import impulse_residual

#: Sweeps over all contacts after which the method gives up.
SWEEPS = 2000


def gauss_seidel(
    problem: ContactProblem, tolerance: float
) -> tuple[Float[Array, " m"], Int[Array, ""]]:
    """Impulses (m,) after as many sweeps as ``tolerance`` takes, and their number.

    ``problem`` has a unit diagonal.
    """
    p, nt, nu = problem, problem.decided.shape[0], problem.touching.shape[0]
    nf = nt - nu

    def relaxed(impulse, row):
        return impulse[row] - (p.gamma[row] + p.D[row] @ impulse)

    def one_contact(i, impulse):
        upper, lower = p.cap_positive[i], p.cap_negative[i]
        if nu:
            j = jnp.maximum(i - nf, 0)
            press = jnp.where(p.touching[j], jnp.maximum(relaxed(impulse, nt + j), 0.0), 0.0)
            press = jnp.where(i >= nf, press, impulse[nt + j])
            impulse = impulse.at[nt + j].set(press)
            upper = upper + jnp.where(i >= nf, p.mu_positive[j] * press, 0.0)
            lower = lower + jnp.where(i >= nf, p.mu_negative[j] * press, 0.0)
        side = p.sliding[i]
        kept = jnp.where(side > 0, -upper, jnp.where(side < 0, lower, 0.0))
        friction = jnp.clip(relaxed(impulse, i), -upper, lower)
        return impulse.at[i].set(jnp.where(p.decided[i], friction, kept))

    def running(carry):
        impulse, sweeps = carry
        return (impulse_residual(p, impulse) > tolerance) & (sweeps < SWEEPS)

    def sweep(carry):
        impulse, sweeps = carry
        return jax.lax.fori_loop(0, nt, one_contact, impulse), sweeps + 1

    start = (jnp.zeros((nt + nu,), p.D.dtype), jnp.asarray(0, jnp.int32))
    return jax.lax.while_loop(running, sweep, start)
