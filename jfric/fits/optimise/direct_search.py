"""Search without derivatives: for costs that jump, where the number of impacts changes.

The cross-entropy method (Rubinstein 1999) with full covariance: each generation is one batch of
points drawn around the best of the last one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from jfric.fits.free import Layout
from jfric.fits.optimise.levenberg_marquardt import (
    AbstractOptimiser,
    Members,
    Outcome,
    Watch,
    nobody,
)

#: Points of a generation, number of the best that define the next, weight of the old distribution.
POINTS, BEST, MEMORY = 64, 12, 0.3
#: Width of the first generation, as a part of the range of a coordinate, and of the last.
FIRST, LAST = 0.05, 1e-7
#: Width of the first generation where nothing is known of the minimum.
WIDE = 0.2


@dataclass(frozen=True)
class DirectSearch(AbstractOptimiser):
    """Search without derivatives, by the cross-entropy method; ``max_iterations``: generations.

    >>> jfric.DirectSearch().max_iterations
    200
    """

    word = "direct"
    max_iterations: int = 200

    def minimise(self, objective, x0, seed, watch=nobody):
        layout, most = objective.layout, self.max_iterations

        def cost(x):
            return objective.normal(x).cost

        found = [
            direct_search(cost, layout, x, seed=seed + i, generations=most, width=WIDE, watch=watch)
            for i, x in enumerate(x0)
        ]
        x, least = np.stack([f[0] for f in found]), np.array([f[1] for f in found])
        used = np.array([f[2] for f in found])
        outcome = np.where(used < most, Outcome.CONVERGED, Outcome.MAX_ITERATIONS)
        outcome[~np.isfinite(least)] = Outcome.FAILED
        return Members(layout.coordinates(x), x, least, outcome, used)


def direct_search(
    cost: Callable[[np.ndarray], np.ndarray],
    layout: Layout,
    x: np.ndarray,
    *,
    seed: int = 0,
    generations: int = 60,
    width: float = FIRST,
    watch: Watch = nobody,
) -> tuple[np.ndarray, float, int]:
    """The best parameters (P,) found around ``x`` (P,), their cost, and the generations used.

    ``cost``: of parameters (B, P), infinite where a simulation fails. The result is never worse
    than ``x``.
    """
    rng = np.random.default_rng(seed)
    center = layout.coordinates(x)
    best, least = np.asarray(x, float), float(cost(x[None])[0])
    spread = (np.pi * width) ** 2 * np.eye(layout.size)
    used = 0
    while used < generations:
        watch(used, generations, least, best)
        used += 1
        root = np.linalg.cholesky(spread + 1e-18 * np.eye(layout.size))
        z = center + rng.normal(size=(POINTS, layout.size)) @ root.T
        z = np.clip(z, -0.5 * np.pi, 0.5 * np.pi)
        points = layout.values(z)
        found = cost(points)
        order = np.argsort(found, kind="stable")[:BEST]
        order = order[np.isfinite(found[order])]
        if not order.size:
            spread *= 0.25
            continue
        if found[order[0]] < least:
            best, least = points[order[0]], float(found[order[0]])
        chosen = z[order]
        moved = chosen.mean(axis=0)
        # Relative to the old centre, so that the cloud stretches along its way.
        around = (chosen - center).T @ (chosen - center) / order.size
        center = moved
        spread = MEMORY * spread + (1.0 - MEMORY) * around
        if np.sqrt(np.max(np.diagonal(spread))) < np.pi * LAST:
            break
    return best, least, used
