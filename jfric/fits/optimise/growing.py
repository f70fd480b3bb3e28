"""Starts of a fit: given values, little friction, a sample of all, and a search on growing parts of
the records.

The cost of a whole record has a minimum for each number of cycles that the model gains or loses on
the data. Its first part holds few cycles, and the valley that leads to the best parameters is wide.
Each part begins with a fresh sample of all parameters in addition to the results of the last part,
so that neither missing information nor a wrong turn in a short part decides.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Sequence

import jax.numpy as jnp
import numpy as np

from jfric.fits.free import Layout
from jfric.fits.objective import Objective, weighted
from jfric.fits.optimise.levenberg_marquardt import levenberg_marquardt

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


#: Parts of the records, unless a schedule is given.
SHARES = (0.125, 0.25, 0.5, 1.0)
#: Points of the sample for each start, and steps of a descent on a part.
SAMPLE, STEPS = 32, 15
#: Distance of coordinates, in parts of their range, below which two points are one start.
NEAR = 1e-3


def growing(
    objective: Objective,
    count: int,
    seed: int,
    shares: Sequence[float] = SHARES,
    more: np.ndarray | None = None,
) -> np.ndarray:
    """At most ``count`` starts (n, P) for the whole records, from descents on growing parts.

    ``shares``: parts of each record in turn, from its start; the last is 1. ``more`` (n, P): points
    that are tried in addition to the sample. Numbers that belong to one experiment, such as initial
    states of windows, begin at their first value.
    """
    layout = objective.layout
    points = _sample(layout, SAMPLE * count, seed)
    if more is not None:
        points = np.concatenate([more, points])
    found = points[:0]
    for share in shares:
        part = beginning(objective, share)
        pool = np.concatenate([found, points])
        x0 = distinct(layout, pool, part.normal(pool).cost, count)
        if share == shares[-1]:
            return x0
        members = levenberg_marquardt(
            lambda x, _, part=part: part.normal(x), layout, x0, max_iterations=STEPS
        )
        found = members.x[np.isfinite(members.cost)]
    return found


def beginning(objective: Objective, share: float) -> Objective:
    """The objective for the first ``share`` of each record, with the programs of the whole one."""
    if share >= 1.0:
        return objective
    data = objective.data
    t, start, end = (np.asarray(a) for a in (data.t, data.start, data.end))
    keep = t <= (start + share * (end - start))[:, None]
    # Two samples at least, so that a derivative exists.
    keep[:, :2] = np.isfinite(t[:, :2])
    last = np.max(np.where(keep, t, -np.inf), axis=1)
    part = copy.copy(objective)
    part.data = dataclasses.replace(
        data, t=jnp.asarray(np.where(keep, t, np.inf)), end=jnp.asarray(last)
    )
    part.weight = np.where(keep[..., None], objective.weight, 0.0)
    return part


def can_grow(objective: Objective) -> bool:
    """Whether a part of the records is a smaller fit: samples are compared one by one, in time."""
    return objective.residual is weighted and objective.model.runs_in_time


def distinct(layout: Layout, x: np.ndarray, cost: np.ndarray, count: int) -> np.ndarray:
    """The best ``count`` of parameters (B, P), without those that are next to a better one."""
    z = layout.coordinates(x) / np.pi
    chosen: list[int] = []
    for i in np.argsort(cost, kind="stable"):
        if len(chosen) == count or not np.isfinite(cost[i]):
            break
        if all(np.max(np.abs(z[i] - z[j])) > NEAR for j in chosen):
            chosen.append(int(i))
    return x[chosen] if chosen else layout.init[None]


def _sample(layout: Layout, count: int, seed: int) -> np.ndarray:
    """The first start, one with little friction, and a sample of what all experiments share."""
    own = np.bincount(layout.columns.ravel(), minlength=layout.size) < layout.columns.shape[0]
    points = global_sample(layout, count, seed)
    points = np.where(own, layout.init, points)
    return np.concatenate([layout.init[None], little_friction(layout)[None], points])
