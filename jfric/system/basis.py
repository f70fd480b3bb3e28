"""Functions of time on a smooth piece, as combinations of few basis functions ``w(s)``.

These are powers of the time ``s`` since the start of the piece, and a sine and cosine for each
harmonic term. They obey ``dw/ds = A w``, so that given functions can be part of a linear system.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from jfric.system.functions import AbstractFunction


class Basis(NamedTuple):
    """Basis at the start of a piece, its generator, one row for each function, and the magnitudes
    of these rows. ``powers``: number of powers of time, which come first."""

    w: Float[Array, " b"]
    A: Float[Array, "b b"]
    rows: Float[Array, "f b"]
    sizes: Float[Array, "f b"]
    powers: int


def basis(functions: Sequence[AbstractFunction], t, dtype) -> Basis:
    """The basis of all ``functions`` on the piece that begins at or contains ``t``."""
    parts = [f.components(t) for f in functions]
    powers = powers_of_time(functions)
    harmonics = [(i, h) for i, p in enumerate(parts) for h in p.harmonics]
    size = powers + 2 * len(harmonics)
    zero = jnp.zeros((), dtype)
    w = [zero + 1.0] + [zero] * (powers - 1)
    A = [[zero] * size for _ in range(size)]

    def filled(polynomial):
        short = [jnp.asarray(p, dtype) for p in polynomial]
        return short + [zero] * (size - len(short))

    rows = [filled(p.polynomial) for p in parts]
    sizes = [filled(f.magnitudes(t)) for f in functions]
    for j in range(1, powers):
        A[j][j - 1] = zero + float(j)
    for k, (i, (amplitude, angle, omega)) in enumerate(harmonics):
        at = powers + 2 * k
        w += [jnp.sin(angle) + zero, jnp.cos(angle) + zero]
        A[at][at + 1] = omega + zero
        A[at + 1][at] = -omega + zero
        rows[i][at] = amplitude + zero
        sizes[i][at] = jnp.abs(rows[i][at])

    def table(rows):
        return jnp.stack([jnp.stack(r) for r in rows]) if rows else jnp.zeros((0, size), dtype)

    return Basis(jnp.stack(w), table(A), table(rows), table(sizes), powers)


def powers_of_time(functions: Sequence[AbstractFunction]) -> int:
    """Number of powers of time with which the basis of ``functions`` begins."""
    return max([1, *(len(f.components(0.0).polynomial) for f in functions)])


def functions_after(powers: int, omegas: list, waves: list, s) -> list:
    """Powers of ``s``, and each sine and cosine of ``waves`` after the time ``s``."""
    result = [jnp.ones_like(s)]
    for _ in range(1, powers):
        result.append(result[-1] * s)
    for omega, sine, cosine in zip(omegas, waves[::2], waves[1::2], strict=True):
        sin, cos = jnp.sin(omega * s), jnp.cos(omega * s)
        result += [sine * cos + cosine * sin, cosine * cos - sine * sin]
    return result
