"""Many contacts: semismooth Newton's method on the projection equations.

The laws of contact and friction are ``lambda = proj(lambda - gamma / diag(D))`` with the limits
of friction taken from the normal impulse. A step of Newton's method on these piecewise-linear
equations is the linear system of the modes in which the argument of the projection lies: a few
steps suffice from good modes, and there is no guarantee from bad ones.

Source: P. Alart, A. Curnier, A mixed formulation for frictional contact problems prone to Newton
like solution methods, Comput. Methods Appl. Mech. Engrg. 92 (1991).
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from jfric.contact.contact_lcp import ContactProblem
from jfric.contact.impulses import impulses_in_mode, modes_of
from jfric.contact.residual import impulse_residual
from jfric.numerics.linear_algebra import matvec

#: Linear systems after which the method gives up.
STEPS = 30


def semismooth_newton(
    problem: ContactProblem, start: Int[Array, " nt"], tolerance: float
) -> tuple[Int[Array, " nt"], Bool[Array, ""], Int[Array, ""]]:
    """Modes, whether they obey the laws to ``tolerance``, and steps made, from modes to start."""

    def running(carry):
        _, done, steps, lost = carry
        return ~done & ~lost & (steps < STEPS)

    def body(carry):
        mode, _, steps, _ = carry
        impulse = impulses_in_mode(problem, mode)
        done = impulse_residual(problem, impulse) <= tolerance
        following = modes_of(problem, impulse, problem.gamma + matvec(problem.D, impulse))
        # Modes that leave the impulses undetermined tell nothing about the next ones.
        lost = ~jnp.all(jnp.isfinite(impulse))
        return jnp.where(done, mode, following), done, steps + 1, lost

    no = jnp.asarray(False)
    carry = (start.astype(jnp.int32), no, jnp.asarray(0, jnp.int32), no)
    return jax.lax.while_loop(running, body, carry)[:3]
