"""Starts of a fit: the given values, little friction, and the best of a global sample."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from jfric.fits.free import Layout

#: Candidates for each start.
CANDIDATES = 8
#: Coefficients of friction of the low-friction start, as a part of their range.
LOW = 0.1


def starts(
    cost: Callable[[np.ndarray], np.ndarray], layout: Layout, count: int, seed: int
) -> np.ndarray:
    """``count`` starts (count, P): the first is the given one.

    The second has little friction: with too much everything sticks and no derivative shows the way
    out. The others are the best of ``CANDIDATES`` times as many points of a Sobol sequence.
    """
    chosen = [layout.init]
    if count > 1:
        chosen.append(little_friction(layout))
    if count > 2:
        points = global_sample(layout, CANDIDATES * count, seed)
        best = np.argsort(cost(points), kind="stable")[: count - 2]
        chosen += list(points[best])
    return np.stack(chosen)


def little_friction(layout: Layout) -> np.ndarray:
    """The first start (P,) with small coefficients of friction."""
    friction = np.array([n.split(".")[0] in ("friction", "contact") for n in layout.names])
    return np.where(friction, _at(layout, np.full(layout.size, LOW)), layout.init)


def global_sample(layout: Layout, count: int, seed: int) -> np.ndarray:
    """``count`` points (count, P) of a Sobol sequence over the ranges."""
    return _at(layout, sobol(layout.size, count, seed))


def sobol(size: int, count: int, seed: int) -> np.ndarray:
    """``count`` points (count, size) of a Sobol sequence over the unit cube."""
    from scipy.stats import qmc  # slow to import

    sampler = qmc.Sobol(size, rng=np.random.default_rng(seed))
    return sampler.random_base2(int(np.ceil(np.log2(count))))[:count]


def nearby(
    cost: Callable[[np.ndarray], np.ndarray],
    layout: Layout,
    x: np.ndarray,
    count: int,
    seed: int,
) -> np.ndarray:
    """``count`` starts around the parameters ``x`` (P,): the best of a cloud of many widths.

    A cost with friction has a minimum for each number of half cycles, and the best one often lies
    next to the one found.
    """
    rng = np.random.default_rng(seed + 1)
    size = CANDIDATES * count
    width = 10.0 ** rng.uniform(-3.0, -0.5, size=(size, 1))
    z = layout.coordinates(x) + width * rng.normal(size=(size, layout.size))
    points = layout.values(np.clip(z, -0.5 * np.pi, 0.5 * np.pi))
    return points[np.argsort(cost(points), kind="stable")[:count]]


def _at(layout: Layout, fraction: np.ndarray) -> np.ndarray:
    """Parameters at the given parts of their ranges."""
    return layout.values(np.arcsin(2.0 * fraction - 1.0))
