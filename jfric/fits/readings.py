"""Readings that are no measurements: single ones far from the rest, and missing values that were
written as zeros or as the last value.

Both are judged by residuals, from which the motion is taken away. A jump of the motion that is
predicted a sample early or late is no outlier. The scatter is that of
residuals beside the median of their neighbours; as a median it does not depend on a few wrong
readings, nor on errors of the model that are slow beside the samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from jfric.fits.data.experiment import Experiment
from jfric.fits.objective import AbstractLoss, Objective, Squares

#: Distance from the neighbours, in parts of the scatter, from which on a reading stands alone.
FAR = 12.0
#: The same as a part of the spread of the signal, and in steps of readings.
LEAST, STEPS = 1e-2, 3.0
#: Samples of a median; up to a third of them may be wrong.
NEIGHBOURS = 7
#: Distance that counts beside a jump of the prediction nearby, as a multiple of it, and how far a
#: jump lies above the median of second differences.
JUMP, SMOOTH = 2.0, 10.0
#: Equal readings in a row that may stand for missing values, and how far they are off, beside the
#: median of all.
RUN, OFF = 3, 3.0
#: Samples from which on the scatter is known, and times that are named.
ENOUGH, NAMED = 30, 5


class Doubtful(NamedTuple):
    """Readings of one signal: ``rows`` (n, 2) of record and sample, ``times`` (n,) [s]; ``value``,
    if all are equal; ``far``: largest distance in parts of the scatter."""

    signal: str
    rows: np.ndarray
    times: np.ndarray
    value: float | None
    far: float

    def __str__(self) -> str:
        count = len(self.rows)
        if self.value is not None:
            runs = np.flatnonzero(np.r_[True, np.any(np.diff(self.rows, axis=0) != [0, 1], axis=1)])
            ends = np.r_[runs[1:], count] - 1
            pairs = zip(self.times[runs], self.times[ends], strict=True)
            where = [f"{a:.6g} s" if a == b else f"{a:.6g} s to {b:.6g} s" for a, b in pairs]
            return (
                f"{count:,} readings of {self.signal} are {self.value:g} while the motion goes on "
                f"(t = {_some(where)}): are values missing there? Leave them out with mask"
            )
        where = [f"{t:.6g} s" for t in self.times]
        stand = (
            f"readings of {self.signal} stand" if count > 1 else f"reading of {self.signal} stands"
        )
        return (
            f"{count:,} {stand} alone, up to {self.far:,.0f} times the scatter from the others "
            f"(t = {_some(where)})"
        )


def _some(where: Sequence[str]) -> str:
    more = f", and {len(where) - NAMED:,} more" if len(where) > NAMED else ""
    return ", ".join(where[:NAMED]) + more


def doubtful_readings(
    objective: Objective, experiments: Sequence[Experiment], predicted: Float[np.ndarray, "E m k"]
) -> list[Doubtful]:
    """Readings that are no measurements, by signal, with the ``predicted`` samples of a fit."""
    found = []
    for j, signal in enumerate(objective.data.signals if objective.model.runs_in_time else ()):
        used = (objective.weight[..., j] > 0) & np.isfinite(predicted[..., j])
        if signal.partition(".")[0] != "force" and used.sum() >= ENOUGH:
            y, off = objective.measured[..., j], (objective.measured - predicted)[..., j]
            step = max((e.resolution or {}).get(signal, 0.0) for e in experiments)
            found += _of_signal(signal, np.asarray(objective.data.t), y, off, used, step)
    return found


def on_readings(found: Sequence[Doubtful], loss: AbstractLoss) -> list[str]:
    """Sentences on doubtful readings, with the robust loss as a remedy."""
    if isinstance(loss, Squares):
        more = "; loss=jfric.Cauchy() (--loss cauchy) makes them count little"
    else:
        more = f"; under the loss {loss.word!r} they count little"
    return [f"{one}{more}" for one in found]


def mask_of(found: Sequence[Doubtful], objective: Objective) -> Bool[np.ndarray, "E m k"]:
    """Which samples are among the doubtful ones."""
    mask = np.zeros(objective.weight.shape, bool)
    for one in found:
        mask[one.rows[:, 0], one.rows[:, 1], objective.data.signals.index(one.signal)] = True
    return mask


def _of_signal(signal, t, y, off, used, step) -> list[Doubtful]:
    """The doubtful readings ``y`` (E, m) of one signal, ``off`` (E, m) from the predicted ones."""
    beside, jumps = np.zeros(used.shape), np.zeros(used.shape)
    stuck, single = np.zeros(used.shape, bool), np.zeros(used.shape, bool)
    size, usual = 0.0, OFF * float(np.median(np.abs(off[used])))
    for _ in range(2):  # again without what is missing, whose neighbours are then judged by others
        rows = [np.flatnonzero(own) for own in used & ~stuck]
        for e, r in enumerate(rows):
            beside[e, r], jumps[e, r] = _beside(off[e, r]), _jumps((y - off)[e, r])
        there = used & ~stuck
        size = 1.4826 * float(np.median(np.abs(beside[there])))
        spread = LEAST * float(np.std(y[there]))
        least = max(FAR * size, spread, STEPS * _step(y[there], step))
        far = np.abs(beside) > np.maximum(max(least, usual), JUMP * jumps)
        single = there & far
        for e, r in enumerate(rows):
            stuck[e, r] |= _stuck(y[e, r], off[e, r], least, max(usual, least))
        # Single readings that are all equal are missing values, too.
        values, counts = np.unique(y[single], return_counts=True)
        if counts.size and counts.max() >= RUN:
            stuck |= single & (y == values[np.argmax(counts)])
        single &= ~stuck
        size = size or least / FAR
    found = []
    for value in np.unique(y[stuck]):
        place = np.argwhere(stuck & (y == value))
        found.append(Doubtful(signal, place, t[tuple(place.T)], float(value), 0.0))
    if single.any():
        place = np.argwhere(single)
        most = float(np.max(np.abs(beside[single]))) / size
        found.append(Doubtful(signal, place, t[tuple(place.T)], None, most))
    return found


def _beside(values: Float[np.ndarray, " m"]) -> Float[np.ndarray, " m"]:
    """Distance of each value from the median of its neighbours."""
    if values.size < NEIGHBOURS:
        return np.zeros(values.shape)
    wide = np.pad(values, NEIGHBOURS // 2, mode="edge")
    return values - np.median(np.lib.stride_tricks.sliding_window_view(wide, NEIGHBOURS), axis=-1)


def _jumps(predicted: Float[np.ndarray, " m"]) -> Float[np.ndarray, " m"]:
    """The largest second difference of a prediction among the neighbours of each sample, if it is
    far larger than is usual for this motion."""
    if predicted.size < NEIGHBOURS:
        return np.full(predicted.shape, np.inf)
    bends = np.abs(np.diff(np.pad(predicted, 1, mode="edge"), 2))
    bends = np.where(bends > SMOOTH * float(np.median(bends)), bends, 0.0)
    wide = np.pad(bends, NEIGHBOURS // 2, mode="edge")
    return np.max(np.lib.stride_tricks.sliding_window_view(wide, NEIGHBOURS), axis=-1)


def _step(readings: np.ndarray, known: float) -> float:
    """Step of readings: the given one, or the least difference where readings repeat."""
    values = np.unique(readings)
    if known or 2 * values.size > readings.size or values.size < 2:
        return known
    return float(np.median(np.diff(values)))


def _stuck(y, off, least: float, usual: float) -> Bool[np.ndarray, " m"]:
    """Runs of equal readings that begin or end with a jump which the motion does not have, and are
    far off in between."""
    found = np.zeros(y.size, bool)
    starts = np.flatnonzero(np.r_[True, np.diff(y) != 0.0])
    for a, b in zip(starts, np.r_[starts[1:], y.size], strict=True):
        if b - a < RUN:
            continue
        ends = [i for i in (a, b) if 0 < i < y.size]
        jumps = any(min(abs(y[i] - y[i - 1]), abs(off[i] - off[i - 1])) > least for i in ends)
        found[a:b] = jumps and float(np.median(np.abs(off[a:b]))) > usual
    return found
