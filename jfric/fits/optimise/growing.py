"""A global search on growing parts of the records: short ones first.

The cost of a whole record has a minimum for each number of cycles that the model gains or loses on
the data. Its first part holds few cycles, and the valley that leads to the best parameters is wide.
Each part begins with a fresh sample of all parameters in addition to the results of the last part,
so that neither missing information nor a wrong turn in a short part decides.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np

from jfric.fits.free import Layout
from jfric.fits.objective import Objective, weighted
from jfric.fits.optimise.levenberg_marquardt import levenberg_marquardt
from jfric.fits.optimise.starts import global_sample, little_friction

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
