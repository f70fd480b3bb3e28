"""Search without derivatives: for costs that jump, where the number of impacts changes.

The cross-entropy method (Rubinstein 1999) with full covariance: each generation is one batch of
points drawn around the best of the last one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from jfric.fits.free import Layout
from jfric.fits.objective import Normal, Objective
from jfric.fits.optimise.descents import (
    AbstractOptimiser,
    Members,
    Outcome,
    Watch,
    nobody,
)
from jfric.fits.optimise.searches import SHARES, beginning, can_grow, global_sample, shared

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
        layout, most, costs = objective.layout, self.max_iterations, objective.costs
        found = [
            direct_search(
                costs, layout, x, seed=seed + i, generations=most, width=WIDE, watch=watch
            )
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


#: Finite changes, in parts of the range of a coordinate; the part by which a change may differ from
#: that which derivatives foresee; the part of the cost from which on it counts.
CHANGES, FORESEEN, COUNTS = (1e-4, 1e-3, 1e-2), 0.5, 1e-8
#: Most parameters of a search without derivatives; points of its first sample; width of its first
#: cloud in parts of the range; generations on each part of the records.
MOST, SAMPLE, WIDTH, GENERATIONS = 12, 256, 0.1, (24, 16, 16, 24)
#: Points of a generation; generations that count; effective numbers of points that a cloud keeps,
#: and that a finished one has; variance of a draw relative to that of the cloud, and of a
#: tenth of it.
DRAWN, KEPT, LEAST, ENOUGH, WIDER, TAILS = 64, 3, 16.0, 80.0, 1.3, 9.0
#: Least width of a cloud, in parts of the range.
NARROW = 1e-9


def stepped(objective: Objective, x: np.ndarray) -> np.ndarray:
    """Whether each parameter (P,) acts in steps at all the points ``x`` (n, P) that have a cost.

    The smallest finite change that alters the cost decides. Parameters of single experiments are
    left out, and so are problems of more than ``MOST`` parameters that experiments share.
    """
    layout = objective.layout
    which = np.flatnonzero(shared(layout))
    found = np.zeros(layout.size, bool)
    if not which.size or which.size > MOST:
        return found
    z = layout.coordinates(x)
    start = objective.normal(layout.values(z))
    good = np.isfinite(start.cost)
    if not good.any():
        return found
    z, start = z[good], Normal(*(a[good] for a in start))
    first, second = layout.slopes(z)
    slope = start.gradient * first
    bend = np.einsum("bii->bi", start.hessian) * first**2 + start.gradient * second
    h = np.pi * np.array([s for c in CHANGES for s in (c, -c)])
    moved = (
        np.repeat(z[:, None, None], which.size, 1) + h[:, None] * np.eye(layout.size)[which, None]
    )
    cost = objective.normal(layout.values(moved.reshape(-1, layout.size))).cost
    actual = cost.reshape(moved.shape[:3]) - start.cost[:, None, None]
    expected = slope[:, which, None] * h + 0.5 * bend[:, which, None] * h**2
    size = np.maximum(np.abs(actual), np.abs(expected))
    counts = np.isfinite(actual) & (size > COUNTS * start.cost[:, None, None])
    with np.errstate(invalid="ignore"):
        off = counts & (np.abs(actual - expected) > FORESEEN * size)
    by_change = (*moved.shape[:2], len(CHANGES), 2)
    counts, off = counts.reshape(by_change), off.reshape(by_change)
    # The smallest change that counts, and whether both of its signs are off.
    any_ = counts.any(axis=3)
    smallest = np.argmax(any_, axis=2)[..., None]
    wrong = np.take_along_axis(np.all(off | ~counts, axis=3), smallest, 2)[..., 0]
    found[which] = np.all(wrong & np.any(any_, axis=2), axis=0)
    return found


class Cloud(NamedTuple):
    """Points (n, P) of parameters with weights (n,).

    ``settled``: whether they cover the range in which the cost grows by no more than noise
    explains; else they are where the search ended. ``explained``: whether the residuals are no
    larger than noise.
    """

    x: np.ndarray
    weight: np.ndarray
    settled: bool
    explained: bool = True

    @property
    def covariance(self) -> np.ndarray:
        """Covariance (P, P) of the parameters."""
        off = self.x - self.weight @ self.x
        return (self.weight[:, None] * off).T @ off

    def quantile(self, level: float) -> np.ndarray:
        """Values (P,) below which the part ``level`` of the weight lies, parameter by parameter."""
        found = []
        for column in self.x.T:
            order = np.argsort(column)
            total = np.cumsum(self.weight[order]) - 0.5 * self.weight[order]
            found.append(np.interp(level, total, column[order]))
        return np.array(found)


def search_in_steps(
    objective: Objective, points: np.ndarray, known: bool, seed: int, watch: Watch = nobody
) -> tuple[np.ndarray, Cloud]:
    """The best parameters (P,) and the cloud around them, by a search without derivatives on
    growing parts of the records from ``points`` (n, P) and a sample. ``known``: whether weights
    have the units of the noise."""
    layout = objective.layout
    free = _searched(layout)
    pool = np.where(free, global_sample(layout, SAMPLE, seed), points[0])
    pool = np.concatenate([points, pool])
    shares = SHARES if can_grow(objective) else (1.0,)
    x, cloud = pool[np.argmin(beginning(objective, shares[0]).costs(pool))], None
    for i, share in enumerate(shares):
        part, most = beginning(objective, share), GENERATIONS[i if share < 1.0 else -1]
        x, cloud = explored(part, x, cloud, known, seed + i, generations=most, watch=watch)
    assert cloud is not None
    return x, cloud


def explored(
    objective: Objective,
    x: np.ndarray,
    cloud: Cloud | None,
    known: bool,
    seed: int,
    *,
    generations: int = GENERATIONS[-1],
    watch: Watch = nobody,
    warmth: float = 1.0,
) -> tuple[np.ndarray, Cloud]:
    """The best parameters (P,) around ``x`` (P,) and the cloud there. ``cloud``: from which the
    first generation is drawn; ``warmth``: variance of a sum of residuals relative to that of
    independent ones."""
    layout, rng = objective.layout, np.random.default_rng(seed)
    which = np.flatnonzero(_searched(layout))
    size, samples = which.size, max(int(np.count_nonzero(objective.weight)), 1)
    center = layout.coordinates(x)
    spread = (np.pi * WIDTH) ** 2 * np.eye(size)
    if cloud is not None:
        old = layout.coordinates(cloud.x)[:, which]
        old = old - cloud.weight @ old
        spread = WIDER * (cloud.weight[:, None] * old).T @ old
    rows: list[tuple[np.ndarray, ...]] = []
    best, least = x, float(objective.costs(x[None])[0])
    for generation in range(generations):
        watch(generation, generations, least, best)
        spread = spread + (np.pi * NARROW) ** 2 * np.eye(size)
        root = np.linalg.cholesky(spread)
        tail = np.where(rng.uniform(size=(DRAWN, 1)) < 0.1, np.sqrt(TAILS), 1.0)
        z = np.tile(center, (DRAWN, 1))
        z[:, which] += tail * rng.normal(size=(DRAWN, size)) @ root.T
        z = np.clip(z, -0.5 * np.pi, 0.5 * np.pi)
        cost = objective.costs(layout.values(z))
        rows = [*rows, (z, cost, center[which], root)][-KEPT:]
        if np.min(cost) < least:
            best, least = layout.values(z)[np.argmin(cost)], float(np.min(cost))
        z, cost = (np.concatenate([row[i] for row in rows]) for i in (0, 1))
        noise = 2.0 * least / samples
        coldest = warmth * (max(noise, 1.0) if known else noise)
        weight, temperature = _weights(cost - least, coldest)
        effective = 0.0
        if temperature == coldest:
            density = _density(z[:, which], [row[2:] for row in rows])
            # Flat on the scale of the parameters, whose bounds are at +-pi/2.
            flat = np.sum(np.log(np.maximum(np.cos(z[:, which]), 1e-12)), axis=1) - density
            drawn = _normalised(flat - (cost - least) / coldest)
            effective = 1.0 / np.sum(drawn**2)
            weight = drawn if effective >= LEAST else weight
        center = center.copy()
        center[which] = weight @ z[:, which]
        off = z[:, which] - center[which]
        own = (weight[:, None] * off).T @ off
        spread = WIDER * own
        settled = bool(effective >= ENOUGH)
        cloud = Cloud(layout.values(z), weight, settled)
        if settled:
            break
    assert cloud is not None
    return best, cloud


def _weights(cost: np.ndarray, coldest: float) -> tuple[np.ndarray, float]:
    """Weights ``exp(-cost/T)`` and the lowest ``T`` from ``coldest`` on at which enough points
    count, or all that have a cost."""
    temperature, enough = coldest, min(LEAST, 0.9 * np.count_nonzero(np.isfinite(cost)))
    while True:
        weight = _normalised(-cost / temperature)
        if 1.0 / np.sum(weight**2) >= enough:
            return weight, temperature
        temperature *= 1.5


def _normalised(log: np.ndarray) -> np.ndarray:
    weight = np.exp(log - np.max(log))
    return weight / np.sum(weight)


def _density(z: np.ndarray, draws) -> np.ndarray:
    """Logarithm of the density of all draws together, up to a constant, at ``z`` (n, k)."""
    found = []
    for center, root in draws:
        off = np.linalg.solve(root, (z - center).T)
        square, scale = np.sum(off**2, axis=0), np.sum(np.log(np.diag(root)))
        normal = 0.9 * np.exp(-0.5 * square)
        normal += 0.1 * TAILS ** (-0.5 * z.shape[1]) * np.exp(-0.5 * square / TAILS)
        found.append(np.log(np.maximum(normal, 1e-300)) - scale)
    return np.logaddexp.reduce(found, axis=0)


def _searched(layout: Layout) -> np.ndarray:
    """Which parameters (P,) the search changes: all, or those of all experiments if there are
    many."""
    return np.ones(layout.size, bool) if layout.size <= MOST else shared(layout)
