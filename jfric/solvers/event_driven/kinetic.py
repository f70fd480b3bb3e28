"""Coefficients of sliding at the velocities of a motion, along lines and in planes."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from jfric.contact import rules
from jfric.numerics.choice import select
from jfric.numerics.linear_algebra import picked
from jfric.results.modes import Mode
from jfric.solvers.event_driven.prepared import Prepared
from jfric.solvers.event_driven.state import State
from jfric.system.laws import AbstractLaw
from jfric.system.mechanics import Mechanics


class Onset(NamedTuple):
    """Planes that begin to slide from rest, the direction of this sliding in all components of all
    planes, and whether friction could hold the planes."""

    rests: Bool[Array, " np"]
    direction: Float[Array, " k"]
    holds: Bool[Array, " np"]


def kinetic(prepared: Prepared, state: State, gamma, onset: Onset | None = None):
    """Coefficients of sliding (nt,) of all laws at the sliding velocities ``gamma`` (nt,), for the
    two directions; in a plane both are the components of ``-lambda_T / N``."""
    laws, planes = prepared.mechanics.laws, prepared.mechanics.planes
    lines = [i for i in range(len(laws)) if not any(i in rows for rows in planes)]
    found: dict[int, tuple[Array, Array]] = {}
    if lines:
        speed = select(state.mode == Mode.SLIP_NEG, -gamma, gamma)
        for i in lines:
            positive, negative = continued(laws[i], speed[i])
            found[i] = positive[None], negative[None]
    for k, rows in enumerate(planes):
        along = picked(gamma, rows)
        if onset is not None:
            own = components(prepared.mechanics)[k]
            along = select(onset.rests[k], onset.direction[own], along)
        ratio = plane_limits(prepared, k, gamma).kinetic(along)
        found[rows[0]] = ratio, ratio
    # The rows of a plane follow each other.
    in_order = [found[i] for i in sorted(found)]
    positive, negative = (jnp.concatenate(x) for x in zip(*in_order, strict=True))
    return positive, negative


def plane_limits(prepared: Prepared, k: int, gamma=None) -> rules.Ellipse | rules.Disc:
    """Limits of friction in a plane: static, or kinetic at the sliding velocities (nt,)."""
    rows, two = prepared.mechanics.planes[k], prepared.mechanics.planes[k][:2]
    own = rows[:1] if prepared.mechanics.even[k] else rows
    laws = [prepared.mechanics.laws[row] for row in own]
    if gamma is None:
        mu = picked(prepared.static_positive, own)
    else:
        speed = rules.speed_of(picked(gamma, two))
        mu = jnp.stack([law.kinetic(speed)[0] for law in laws])
    # With a third component the limits are those of a disc.
    return rules.Ellipse(mu) if len(rows) == 2 else rules.Disc(mu[0], laws[0].spins_within)


def components(mechanics: Mechanics) -> list[slice]:
    """Slices of the components of each plane among those of all planes."""
    ends = np.cumsum([0, *map(len, mechanics.planes)])
    return [slice(int(a), int(b)) for a, b in itertools.pairwise(ends)]


def continued(law: AbstractLaw, speed):
    """Coefficients of sliding, continued by their tangent at zero to negative speeds: a step may
    overshoot the end of sliding, and the derivatives there must be those of the law."""
    zero = jnp.zeros_like(speed)
    values = law.kinetic(select(speed >= 0, speed, zero))
    start, slope = jax.jvp(law.kinetic, (zero,), (jnp.ones_like(zero),))
    return tuple(
        select(speed >= 0, x, a + b * speed) for x, a, b in zip(values, start, slope, strict=True)
    )
