"""Impulses of contacts with friction in planes: second-order cones, several contacts at once.

``newton``: semismooth Newton's method. ``gauss-seidel``: sweeps. ``auto``: sweeps first, and again
where a Newton step reduces the residual too little. Lines are cones of one dimension.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from jfric.contact.contact_problem import ContactProblem
from jfric.contact.gauss_seidel import gauss_seidel, sweep
from jfric.contact.natural_map import natural_map, residual_in_units
from jfric.contact.semismooth_newton import differentiable, newton_step
from jfric.numerics.choice import select
from jfric.numerics.linear_algebra import matvec

#: Rounds after which the method gives up; a round is one Newton step or a group of sweeps.
ROUNDS = 100
#: Sweeps in a round, and the part of the residual by which a Newton step must reduce it to count.
SOME, ENOUGH = 20, 0.1


def cone_impulses(
    problem: ContactProblem, method: str, tolerance: float, *, exact: bool = False
) -> tuple[Float[Array, " m"], Int[Array, ""]]:
    """Impulses (m,) of a problem in units, with their derivatives, and the number of rounds.

    ``exact``: one more round follows after the tolerance is reached, down to rounding errors.
    """
    frozen = jax.lax.stop_gradient(problem)
    if problem.nt == 1 + len(problem.planes) and not problem.touching.shape[0]:
        # One friction element with a given limit: a single sweep is exact.
        found, rounds = sweep(frozen, jnp.zeros_like(frozen.gamma)), jnp.asarray(1, jnp.int32)
    elif method == "gauss-seidel":
        found, rounds = gauss_seidel(frozen, tolerance)
    else:
        found, rounds = _rounds(frozen, tolerance, sweeps=method == "auto", exact=exact)
    return differentiable(problem, found), rounds


def _rounds(p: ContactProblem, tolerance: float, *, sweeps: bool, exact: bool):
    def missed(x):
        return natural_map(p, x, p.gamma + matvec(p.D, x))

    def running(carry):
        _, now, before, rounds = carry
        return ((before if exact else now) > tolerance) & (rounds < ROUNDS)

    def swept(x):
        x = jax.lax.fori_loop(0, SOME, lambda _, x: sweep(p, x), x)
        return x, residual_in_units(p, x)

    def one_round(carry):
        x, now, _, rounds = carry
        following = newton_step(missed, x)
        after = residual_in_units(p, following)
        better = after < now
        found = select(better, following, x), select(better, after, now)
        if sweeps:
            lost = ~(after < (1.0 - ENOUGH) * now) & (now > tolerance)
            found = jax.lax.cond(lost | (rounds == 0), swept, lambda _: found, x)
        return *found, now, rounds + 1

    x = jnp.zeros_like(p.gamma)
    now = residual_in_units(p, x)
    x, _, _, rounds = jax.lax.while_loop(
        running, one_round, (x, now, now, jnp.asarray(0, jnp.int32))
    )
    return x, rounds
