"""Linear programs by Lemke's method: maximise ``c^T z`` subject to ``A z + b >= 0``.

With ``z = u - v`` and multipliers ``y`` the conditions of an optimum are complementary::

    0 <= u  _|_  -c - A^T y >= 0,   0 <= v  _|_  c + A^T y >= 0,   0 <= y  _|_  A z + b >= 0

Source: Cottle, Pang, Stone, The Linear Complementarity Problem, section 1.2.
"""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from jfric.numerics.elimination import equilibrate
from jfric.numerics.lemke import lemke


def maximise(
    c: Float[Array, " d"], A: Float[Array, "g d"], b: Float[Array, " g"]
) -> tuple[Float[Array, " d"], Bool[Array, ""]]:
    """Optimal ``z``, and whether there is one.

    There is none where no ``z`` is feasible, and where the maximum is infinite; with ``c = 0`` the
    second result tells whether there is a feasible ``z``.
    """
    g, d = A.shape
    row, column = equilibrate(A)
    scaled = A * row[:, None] * column
    right, aim = row * b, column * c
    size = jnp.max(jnp.abs(right), initial=0.0)
    right = right / jnp.where(size > 0, size, 1.0)
    wanted = jnp.max(jnp.abs(aim), initial=0.0)
    aim = aim / jnp.where(wanted > 0, wanted, 1.0)
    M = jnp.block(
        [
            [jnp.zeros((2 * d, 2 * d), A.dtype), jnp.concatenate([-scaled.T, scaled.T])],
            [scaled, -scaled, jnp.zeros((g, g), A.dtype)],
        ]
    )
    result = lemke(M, jnp.concatenate([-aim, aim, right]))
    z = result.z[:d] - result.z[d : 2 * d]
    return z * column * jnp.where(size > 0, size, 1.0), result.solved
