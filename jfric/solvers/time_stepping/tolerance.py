"""Tolerances for zero in a step, always relative to the magnitudes of the contributions."""

from __future__ import annotations

import jax.numpy as jnp

from jfric.contact import rules
from jfric.numerics.tolerances import tolerance_of

#: Rounding of gaps and velocities relative to the sum of their contributions.
RELATIVE = 1e-12
#: Gaps below this fraction of the path of a step count as closed; impacts are late by whole steps.
OF_A_STEP = 1e-9
#: Sliding velocities, and pivots of a unit diagonal, that a contact problem leaves at zero.
DEPENDENT = 1e-10


def touches(gap, size, way):
    """Whether a gap, were the contact to close in this step, is closed at its end.

    ``size``: magnitude of the terms of the gap; ``way``: change of the gap in a step without
    contacts. A contact at rest keeps its gap only to the rounding of these: one with a gap of
    rounding errors alone would otherwise open, and its neighbours would slide without its share of
    the load.
    """
    # In float32 the gap itself is not known better than its rounding error.
    eps = jnp.finfo(jnp.result_type(gap)).eps
    known, moved = jnp.maximum(RELATIVE, 16 * eps), jnp.maximum(OF_A_STEP, 16 * eps)
    return gap <= known * size + moved * way


def moves(gamma, size, parts):
    """Sign of the relative velocities ``gamma`` after the impulses, zero for those at rest.

    ``size``: magnitude of the terms that the contact problem sums to ``gamma``; ``parts``:
    magnitude of the velocities of which relative velocities are sums.
    """
    eps = jnp.finfo(jnp.result_type(gamma)).eps
    solved, rounding = jnp.maximum(DEPENDENT, 128 * eps), jnp.maximum(RELATIVE, 16 * eps)
    return jnp.where(jnp.abs(gamma) <= solved * size + rounding * parts, 0.0, jnp.sign(gamma))


def is_negative(force, magnitude):
    """Whether a given normal force is negative beyond the rounding of its parts."""
    return force < -tolerance_of(jnp.result_type(force), OF_A_STEP) * magnitude


def gains_energy(impulse, before, after):
    """Whether impulses (m,) feed energy into relative velocities ``before`` and ``after``."""
    # An elastic impact leaves rounding errors only, relative to the terms that cancel.
    parts = rules.impulse_energy(jnp.abs(impulse), jnp.abs(before), jnp.abs(after))
    energy = jnp.sum(rules.impulse_energy(impulse, before, after))
    return rules.energy_gain(energy, jnp.sum(parts)) > 0.0
