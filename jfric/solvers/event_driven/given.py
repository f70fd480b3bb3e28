"""What is given from outside: loads, normal forces, and motion prescribed by bases and belts.

On a smooth piece every function of time is a combination of few basis functions ``w(s)``: powers
of the time ``s`` since the start of the step, and a sine and cosine for each harmonic term. They
obey ``dw/ds = A w``, so that loads become part of a linear system.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from jfric.linear_algebra import matmul
from jfric.solvers.event_driven.mode_equations import ModeEquations
from jfric.solvers.event_driven.prepared import Prepared
from jfric.system.functions import Components


class Given(NamedTuple):
    """Rows over the basis: a quantity is ``rows @ w``.

    ``velocity`` and ``acceleration`` (m,): what bases and belts prescribe for tangents and
    normals; ``W v`` of an active contact must equal the velocity. ``gap``: the part of the gaps
    that does not depend on ``q``; ``elongation``: the same for piecewise-linear elements.
    ``friction``: magnitude of the friction that elements with a given normal force may carry.
    """

    w: Float[Array, " b"]
    #: Generator: ``dw/ds = A w``.
    A: Float[Array, "b b"]
    force: Float[Array, "n b"]
    force_magnitude: Float[Array, "n b"]
    normal: Float[Array, "nf b"]
    velocity: Float[Array, "m b"]
    acceleration: Float[Array, "m b"]
    gap: Float[Array, "nu b"]
    elongation: Float[Array, "ns b"]
    elongation_rate: Float[Array, "ns b"]


def given(prepared: Prepared, equations: ModeEquations, t) -> Given:
    """Everything that is given, on the smooth piece that begins at or holds ``t``."""
    mechanics, nf = prepared.mechanics, prepared.nf
    dtype = mechanics.K.dtype
    belts = [b for b in mechanics.belts if b is not None]
    groups = [mechanics.base_functions, mechanics.load_functions, belts, mechanics.normal_forces]
    parts = [[f.components(t) for f in group] for group in groups]
    w, A, rows = _basis([p for group in parts for p in group], dtype)
    size = w.shape[0]
    split, start = [], 0
    for group in groups:
        split.append(rows[start : start + len(group)])
        start += len(group)
    base, load, belt, normal = split
    rate = matmul(base, A)
    constant = jnp.arange(size) == 0

    force = matmul(mechanics.load_directions.T, load)
    magnitude = matmul(jnp.abs(mechanics.load_directions.T), jnp.abs(load))
    if nf:
        W = mechanics.W_T[:nf]
        force = force + matmul(W.T * equations.sliding, normal)
        # In stick the reaction may be as large: it belongs to the scale in either case.
        largest = jnp.maximum(prepared.static_positive, prepared.static_negative)[:nf]
        magnitude = magnitude + matmul(jnp.abs(W.T) * largest, jnp.abs(normal))
    gap = jnp.where(constant, mechanics.gap0[:, None], 0.0)
    velocity = jnp.zeros((prepared.W.shape[0], size), dtype)
    if belts:
        index = jnp.asarray([i for i, b in enumerate(mechanics.belts) if b is not None])
        velocity = velocity.at[index].add(belt)
    piecewise = mechanics.piecewise
    elongation = jnp.zeros((piecewise.count, size), dtype)
    elongation_rate = elongation
    if mechanics.base_functions:
        K_base, C_base = mechanics.K_base, mechanics.C_base
        if piecewise.count:
            d, db = piecewise.directions, piecewise.base_directions
            K_base = K_base - (d.T * equations.k) @ db
            C_base = C_base - (d.T * equations.c) @ db
            elongation, elongation_rate = db @ base, db @ rate
        force = force + K_base @ base + C_base @ rate
        magnitude = magnitude + jnp.abs(K_base) @ jnp.abs(base) + jnp.abs(C_base) @ jnp.abs(rate)
        gap = gap + mechanics.W_N_base @ base
        velocity = velocity - prepared.W_base @ rate
    return Given(
        w=w,
        A=A,
        force=force,
        force_magnitude=magnitude,
        normal=normal,
        velocity=velocity,
        acceleration=matmul(velocity, A),
        gap=gap,
        elongation=elongation,
        elongation_rate=elongation_rate,
    )


def basis_after(prepared: Prepared, g: Given, s) -> Float[Array, " b"]:
    """The basis of ``g`` a time ``s`` later, on the same smooth piece: also where that has just
    ended."""
    functions = prepared.mechanics.functions()
    powers = max([1, *(len(f.components(0.0).polynomial) for f in functions)])
    index = range(powers, g.w.shape[0], 2)
    omegas = [g.A[k, k + 1] for k in index]
    waves = [g.w[j] for k in index for j in (k, k + 1)]
    return jnp.stack(functions_after(powers, omegas, waves, s))


def functions_after(powers: int, omegas: list, waves: list, s) -> list:
    """Powers of ``s``, and each sine and cosine of ``waves`` a time ``s`` later."""
    result = [jnp.ones_like(s)]
    for _ in range(1, powers):
        result.append(result[-1] * s)
    for omega, sine, cosine in zip(omegas, waves[::2], waves[1::2], strict=True):
        sin, cos = jnp.sin(omega * s), jnp.cos(omega * s)
        result += [sine * cos + cosine * sin, cosine * cos - sine * sin]
    return result


def _basis(parts: list[Components], dtype):
    """Initial basis values, their generator, and one row of coefficients for each function."""
    powers = max([1, *(len(p.polynomial) for p in parts)])
    harmonics = [(i, h) for i, p in enumerate(parts) for h in p.harmonics]
    size = powers + 2 * len(harmonics)
    zero = jnp.zeros((), dtype)
    w = [zero + 1.0] + [zero] * (powers - 1)
    A = [[zero] * size for _ in range(size)]
    rows = [
        [
            jnp.asarray(p.polynomial[j], dtype) if j < len(p.polynomial) else zero
            for j in range(powers)
        ]
        + [zero] * (2 * len(harmonics))
        for p in parts
    ]
    for j in range(1, powers):
        A[j][j - 1] = zero + float(j)
    for k, (i, (amplitude, angle, omega)) in enumerate(harmonics):
        at = powers + 2 * k
        w += [jnp.sin(angle) + zero, jnp.cos(angle) + zero]
        A[at][at + 1] = omega + zero
        A[at + 1][at] = -omega + zero
        rows[i][at] = amplitude + zero
    table = jnp.stack([jnp.stack(r) for r in rows]) if rows else jnp.zeros((0, size), dtype)
    return jnp.stack(w), jnp.stack([jnp.stack(r) for r in A]), table
