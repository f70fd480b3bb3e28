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
    speed = select(state.mode == Mode.SLIP_NEG, -gamma, gamma)
    laws, planes = prepared.mechanics.laws, prepared.mechanics.planes
    in_planes, none = {row for rows in planes for row in rows}, jnp.zeros_like(gamma[0])
    pairs = [
        (none, none) if i in in_planes else continued(law, s)
        for i, (law, s) in enumerate(zip(laws, speed, strict=True))
    ]
    for k, rows in enumerate(planes):
        along = gamma[np.asarray(rows)]
        if onset is not None:
            own = components(prepared.mechanics)[k]
            along = select(onset.rests[k], onset.direction[own], along)
        ratio = plane_limits(prepared, k, gamma).kinetic(along)
        for row, component in zip(rows, ratio, strict=True):
            pairs[row] = component, component
    return jnp.stack([p[0] for p in pairs]), jnp.stack([p[1] for p in pairs])


def plane_limits(prepared: Prepared, k: int, gamma=None) -> rules.Ellipse | rules.Disc:
    """Limits of friction in a plane: static, or kinetic at the sliding velocities (nt,)."""
    rows = np.asarray(prepared.mechanics.planes[k])
    laws = [prepared.mechanics.laws[row] for row in rows]
    if gamma is None:
        mu = prepared.static_positive[rows]
    else:
        speed = rules.speed_of(gamma[rows[:2]])
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
