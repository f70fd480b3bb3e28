"""Inputs from outside: loads, normal forces, and motion prescribed by bases and belts.

All are combinations of the basis functions ``w(s)`` of :mod:`jfric.system.functions`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from jfric.numerics.choice import select
from jfric.numerics.linear_algebra import matmul, matvec
from jfric.solvers.event_driven.mode_equations import ModeEquations
from jfric.solvers.event_driven.prepared import Prepared
from jfric.solvers.event_driven.state import State
from jfric.system.functions import basis, functions_after, powers_of_time
from jfric.system.mechanics import Mechanics


class Given(NamedTuple):
    """Rows over the basis: a quantity is ``rows @ w``.

    ``velocity`` and ``acceleration`` (m,): motion of tangents and normals prescribed by bases,
    belts and position-dependent shapes; ``W v`` of an active contact must equal the velocity.
    ``gap``, ``elongation``: the parts of the gaps, and of the elongations of piecewise-linear
    elements, that do not depend on ``q``.
    """

    w: Float[Array, " b"]
    #: Generator: ``dw/ds = A w``.
    A: Float[Array, "b b"]
    force: Float[Array, "n b"]
    #: Applied forces without those of friction elements.
    applied: Float[Array, "n b"]
    #: Normal forces of friction elements.
    normal: Float[Array, "nf b"]
    velocity: Float[Array, "m b"]
    acceleration: Float[Array, "m b"]
    gap: Float[Array, "nu b"]
    elongation: Float[Array, "ns b"]
    elongation_rate: Float[Array, "ns b"]
    #: Bound on each of these, from the magnitudes of all contributions; friction of elements is
    #: taken as large as in stick. Rounding errors are relative to this bound.
    bound: Given | None = None


def given(prepared: Prepared, equations: ModeEquations, t) -> Given:
    """Rows of all inputs, on the smooth piece that begins at ``t`` or contains it."""
    mechanics = prepared.mechanics
    belts = [b for b in mechanics.belts if b is not None]
    groups = [mechanics.base_functions, mechanics.load_functions, belts, mechanics.normal_forces]
    functions = [f for group in groups for f in group]
    w = basis(functions, t, mechanics.K.dtype)
    ends = np.cumsum([len(group) for group in groups])[:-1]
    w_size = w.w.at[w.powers :].set(1.0)
    sizes = _given(prepared, equations, w_size, jnp.abs(w.A), jnp.split(w.sizes, ends), True)
    signed = _given(prepared, equations, w.w, w.A, jnp.split(w.rows, ends), False)
    return signed._replace(bound=sizes)


def _largest(prepared: Prepared, sliding: Float[Array, " nf"]) -> Float[Array, " nf"]:
    """Coefficients of the largest forces of friction in any mode.

    In stick the reaction may be as large to either side. What resists one way only is no friction,
    and its limit may be far away.
    """
    nf = sliding.shape[0]
    limits = prepared.static_positive[:nf], prepared.static_negative[:nf]
    return select(jnp.minimum(*limits) == 0.0, jnp.abs(sliding), jnp.maximum(*limits))


def _given(prepared: Prepared, equations: ModeEquations, w, A, rows: list, absolute: bool) -> Given:
    """Inputs from rows of bases, loads, belts and normal forces; magnitudes if ``absolute``."""
    mechanics, nf = prepared.mechanics, prepared.nf
    base, load, belt, normal = rows
    sized = jnp.abs if absolute else (lambda x: x)
    minus = 1.0 if absolute else -1.0
    constant = jnp.arange(w.shape[0]) == 0
    rate = matmul(base, A)
    applied = matmul(sized(mechanics.load_directions.T), load)
    force, carried = applied, equations.carried
    loads = applied[:0]
    if carried is not None:
        carried = carried.sized() if absolute else carried
        x = carried.rows
        loads = matmul(x.given, load) + matmul(x.z, sized(base)) + matmul(x.z_dot, sized(rate))
        loads = loads + select(constant[None, :], x.constant[:, None], 0.0)
        normal = normal + matmul(carried.share, loads)
    if nf:
        sliding = equations.sliding
        if absolute:
            sliding = _largest(prepared, sliding)
        force = force + matmul(sized(mechanics.R_T[:nf].T) * sliding[None, :], normal)
    gap = select(constant[None, :], sized(mechanics.gap0)[:, None], 0.0)
    velocity = jnp.zeros((prepared.W.shape[0], w.shape[0]), w.dtype)
    index = [i for i, b in enumerate(mechanics.belts) if b is not None]
    if index:
        velocity = velocity.at[jnp.asarray(index)].add(belt)
    piecewise = mechanics.piecewise
    elongation = jnp.zeros((piecewise.count, w.shape[0]), w.dtype)
    elongation_rate = elongation
    if mechanics.base_functions:
        K_base, C_base = mechanics.K_base, mechanics.C_base
        if piecewise.count:
            db = piecewise.base_directions
            K_base = K_base - equations.k @ db
            C_base = C_base - equations.c @ db
            elongation, elongation_rate = sized(db) @ base, sized(db) @ rate
        applied, force = (x + sized(K_base) @ base + sized(C_base) @ rate for x in (applied, force))
        gap = gap + sized(mechanics.W_N_base) @ base
        velocity = velocity + minus * (sized(prepared.W_base) @ rate)
    if mechanics.carried is not None:
        elongation = elongation.at[mechanics.carried.places].set(loads)
    acceleration = matmul(velocity, A)
    if mechanics.varying is not None:
        own = (minus * sized(x)[:, None] for x in (mechanics.rate, mechanics.bias))
        of_time, of_motion = (select(constant, x, 0.0) for x in own)
        velocity, acceleration = velocity + of_time, acceleration + of_motion
    return Given(
        w=w,
        A=A,
        force=force,
        applied=applied,
        normal=normal,
        velocity=velocity,
        acceleration=acceleration,
        gap=gap,
        elongation=elongation,
        elongation_rate=elongation_rate,
    )


def with_late_jumps(prepared: Prepared, equations: ModeEquations, state: State) -> State:
    """A ``state`` of the same values whose velocities have the derivatives by the times of several
    functions that jump at its instant; these times need not move together. Bases do not jump, and a
    belt moves what sticks to it by its new velocity."""
    mechanics, t = prepared.mechanics, state.t
    if not _may_jump_together(mechanics):
        return state
    functions = (*mechanics.load_functions, *mechanics.normal_forces)
    late = jnp.stack([jnp.asarray(f.late(t), mechanics.K.dtype) for f in functions])
    rubs = mechanics.R_T[: prepared.nf] * equations.sliding[:, None]
    rows = jnp.concatenate([mechanics.load_directions, rubs])
    late = matvec(equations.P, matvec(rows.T, late))
    return replace(state, v=state.v + late)


def _may_jump_together(mechanics: Mechanics) -> bool:
    return sum(f.jumping for f in mechanics.functions()) > 1


def tangled(mechanics: Mechanics, t) -> Bool[Array, ""]:
    """Whether functions jump at ``t`` of which none has a share of its own, as in a clipped sum."""
    found = jnp.asarray(False)
    if _may_jump_together(mechanics):
        for function in mechanics.functions():
            found = found | function.tangled(t)
    return found


def basis_after(prepared: Prepared, g: Given, s) -> Float[Array, " b"]:
    """Basis of ``g`` a time ``s`` later, on the same smooth piece, even if this piece has just
    ended."""
    powers = powers_of_time(prepared.mechanics.functions())
    index = range(powers, g.w.shape[0], 2)
    omegas = [g.A[k, k + 1] for k in index]
    waves = [g.w[j] for k in index for j in (k, k + 1)]
    return jnp.stack(functions_after(powers, omegas, waves, s))
