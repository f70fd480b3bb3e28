"""Rules of friction in pins: the limit of the torque is ``mu r |R|``, with the pin's own reaction
``R``, which depends on the torques.

For all pins at once: with the reactions ``free`` (k, 2) without friction in them, their change
``by_torque`` (k, 2, k) by unit torques, and ``ratio`` (k,) of each torque to ``L = r |R|``::

    L_i = r_i |free_i + sum_j by_torque_ij ratio_j L_j|

The right-hand side contracts, in some weighted maximum norm, if the spectral radius of ``A_ij = r_i
|by_torque_ij ratio_j|`` is below one: then there is one solution.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from jfric.numerics.choice import select
from jfric.numerics.linear_algebra import inverse, matvec

#: Newton steps (for one pin they converge from one side), and those after them that carry
#: derivatives; each of these doubles the order of the derivatives.
NEWTON = 8
DIFFERENTIATED = 2


def pin_limits(reaction: Float[Array, "k 2"], radius: Float[Array, " k"]) -> Float[Array, " k"]:
    """Limits ``r |R|`` of the torques without their coefficients [N m]."""
    squared = jnp.sum(reaction * reaction, axis=-1)
    loaded = squared > 0
    return radius * select(loaded, jnp.sqrt(select(loaded, squared, 1.0)), 0.0)


def sliding_limits(
    free: Float[Array, "k 2"],
    by_torque: Float[Array, "k 2 k"],
    ratio: Float[Array, " k"],
    radius: Float[Array, " k"],
) -> Float[Array, " k"]:
    """Solution ``L`` of the module's equation by Newton's method; NaN if that does not converge."""
    response, one = by_torque * ratio, jnp.eye(radius.shape[0], dtype=free.dtype)

    def right(L):
        return pin_limits(free + jnp.sum(response * L, axis=-1), radius)

    def step(L, free, response):
        def right(L):
            return pin_limits(free + jnp.sum(response * L, axis=-1), radius)

        return L + matvec(inverse(one - jax.jacfwd(right)(L)), right(L) - L)

    still = jax.lax.stop_gradient((free, response))
    L = jax.lax.stop_gradient(pin_limits(free, radius))
    L = jax.lax.fori_loop(0, NEWTON, lambda _, L: step(L, *still), L)
    for _ in range(DIFFERENTIATED):
        L = step(L, free, response)
    missed = jnp.max(jnp.abs(jax.lax.stop_gradient(right(L) - L)))
    found = missed <= jnp.finfo(L.dtype).eps ** 0.5 * jnp.max(jax.lax.stop_gradient(L))
    return select(found, L, jnp.nan)


def limits_are_unique(
    by_torque: Float[Array, "k 2 k"], ratio: Float[Array, " k"], radius: Float[Array, " k"]
) -> Bool[Array, ""]:
    """Whether the module's equation has one solution, whatever ``free`` is."""
    A = jnp.sqrt(jnp.sum((by_torque * ratio) ** 2, axis=1)) * radius[:, None]
    one = jnp.ones_like(radius)
    # For A >= 0 the inverse of I - A is nonnegative exactly if the spectral radius is below one.
    x = matvec(inverse(jnp.eye(len(radius), dtype=A.dtype) - A), one)
    return jnp.all(x > 0)
