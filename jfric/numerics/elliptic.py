"""Complete elliptic integrals, without loss of digits for small moduli."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

#: Rounds of the mean; enough for the smallest complement.
ROUNDS = 8
#: Complements below this value count as zero.
SMALLEST = 1e-30


class Elliptic(NamedTuple):
    """Integrals over ``0 <= x <= pi/2`` with ``D = sqrt(1 - m sin^2 x)``: of ``cos^2 x / D``, of
    ``sin^2 x / D``, and of ``sin^2 x cos^2 x / D^3``.

    ``K = B + D``, ``E = B + (1 - m) D`` are those of the first and second kind; ``D - B = m C``.
    """

    B: Float[Array, ""]
    D: Float[Array, ""]
    C: Float[Array, ""]


def elliptic(m, complement) -> Elliptic:
    """Integrals for the parameter ``0 <= m <= 1`` and its ``complement`` ``1 - m``, which is more
    accurate than by subtraction. ``D`` and ``C`` grow like the logarithm of the complement.

    The method is the arithmetic-geometric mean; the sum runs over its differences divided by ``m``,
    so that ``B``, ``D`` and ``C`` have all digits where they are nearly those of a circle. Source:
    R. Bulirsch, Numerical calculation of elliptic integrals and elliptic functions, Numer. Math. 7
    (1965)::

        >>> found = elliptic(jnp.asarray(0.0), jnp.asarray(1.0))
        >>> [round(float(x) * 16 / np.pi, 9) for x in found]
        [4.0, 4.0, 1.0]
    """
    b = jnp.sqrt(jnp.maximum(complement, SMALLEST))
    a, difference = 0.5 * (1.0 + b), 0.5 / (1.0 + b)
    total, b = difference * difference, jnp.sqrt(b)

    def narrowed(_, means):
        a, b, difference, weight, total = means
        a, b = 0.5 * (a + b), jnp.sqrt(a * b)
        difference, weight = 0.25 * m * difference * difference / a, 2.0 * weight
        return a, b, difference, weight, total + weight * difference * difference

    # An unrolled loop would take most of the compile time of programs that differentiate it often.
    means = a, b, difference, jnp.ones_like(a), total
    a, *_, total = jax.lax.fori_loop(0, ROUNDS, narrowed, means)
    K = 0.5 * np.pi / a
    return Elliptic(K * (0.5 - m * total), K * (0.5 + m * total), 2.0 * total * K)
