"""Signs of a wrong fit: units wrong by about a thousand, readings that are none, and residuals far
above the noise.

Readings are no measurements where single ones lie far from the rest, and where missing values were
written as zeros or as the last value. Both are judged by residuals, from which the motion is taken
away. A jump of the motion that is predicted a sample early or late is no outlier. The scatter is
that of residuals around the median of their neighbours; as a median it does not depend on a few
wrong readings, nor on errors of the model that are slow compared with the samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from jfric.errors import ProblemError
from jfric.files.config import Config, time_span
from jfric.fits.data.experiment import Experiment
from jfric.fits.data.stacking import steps_of
from jfric.fits.objective import AbstractLoss, Objective, Squares
from jfric.fits.optimise.searches import AbstractSearch
from jfric.fits.task import Task

#: Distance from the neighbours, in parts of the scatter, from which on a reading stands alone.
FAR = 12.0
#: The same as a part of the spread of the signal, and in steps of readings.
LEAST, STEPS = 1e-2, 3.0
#: Samples of a median; up to a third of them may be wrong.
NEIGHBOURS = 7
#: Distance that counts near a jump of the prediction, as a multiple of that jump, and how far a
#: jump lies above the median of second differences.
JUMP, SMOOTH = 2.0, 10.0
#: Equal readings in a row that may stand for missing values, and how far they are off, in
#: multiples of the median of all.
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


#: Units are usually wrong by a thousand: a ratio above this one is suspicious.
SUSPICIOUS = 300.0
#: Ratio between the spreads of predicted and measured signals from which on a unit is doubtful.
SPREAD = 100.0
#: Spread of a prediction, as a part of its size, that is rounding.
ROUNDED = 1e-9
#: Ratio of residuals to the scatter of neighbouring samples from which on they are not noise,
#: unless the noise is far slower than the samples; and the part of a signal's spread at which they
#: matter.
UNEXPLAINED, VISIBLE = 10.0, 1e-3
#: Order of the differences that separate noise from a smooth signal.
ORDER = 4
ENLARGED = float(np.sqrt(sum(comb(ORDER, i) ** 2 for i in range(ORDER + 1))))


def require_span(config: Config, experiment: Experiment) -> None:
    """Raise :class:`jfric.ProblemError` for a record far longer or shorter than the problem, or
    that begins before or after it."""
    start, end = time_span(config.problem)
    first, length, span = float(experiment.t[0]), float(np.ptp(experiment.t)), end - start
    if 1.0 / SUSPICIOUS < length / span < SUSPICIOUS:
        if start <= first < end:
            return
        raise ProblemError(
            f"{experiment.name}: found a first sample at {first:g} s, the problem goes from "
            f"{start:g} s to {end:g} s; set time.start to the time whose state is [initial]"
        )
    raise ProblemError(
        f"{experiment.name}: found times from {experiment.t[0]:g} s to {experiment.t[-1]:g} s, the "
        f"problem lasts {span:g} s; give the right unit in data.time, or set time.end near the end "
        "of the record"
    )


def remarks(task: Task, x: np.ndarray, predicted: np.ndarray, search: AbstractSearch) -> list[str]:
    """Remarks on a fit ``x`` (P,) with its ``predicted`` samples (E, m, k), found by ``search``:
    doubtful units, doubtful readings, large residuals."""
    loss = task.objective.loss
    wrong = doubtful_readings(task.objective, task.experiments, predicted)
    said = [*_on_units(task, x, predicted), *on_readings(wrong, loss)]
    if wrong and isinstance(loss, Squares):
        return said  # wrong readings that count in full explain large residuals
    other = "" if search.is_global else "another minimum (search: global), "
    far = unexplained(task.objective, task.experiments, predicted)
    return said + [
        f"residuals of {signal} are {ratio:,.0f} times the scatter of its samples, {noise:.2g}: "
        f"{other}another law or what is not modelled may explain them"
        for signal, (ratio, noise) in far.items()
    ]


def _on_units(task: Task, x: np.ndarray, predicted: np.ndarray) -> list[str]:
    """Remarks on values far from those of the problem, and on signals that spread far more or less
    than predicted."""
    objective, said = task.objective, []
    layout = objective.layout
    first = task.experiments[0]
    for path, column in zip(layout.paths, layout.columns[0], strict=True):
        own = objective.model.default(path, first)
        factor = x[column] / own if own else 0.0
        if factor > 0.0 and not 1.0 / SUSPICIOUS < factor < SUSPICIOUS:
            times = f"{factor:,.0f} times" if factor > 1.0 else f"1/{1.0 / factor:,.0f} of"
            said.append(f"{path} is {times} the value of the problem: is a unit of the data wrong?")
    for j, signal in enumerate(objective.data.signals):
        used = task.used[..., j]
        values = objective.measured[..., j][used], predicted[..., j][used]
        measured, found = (float(np.std(v)) for v in values)
        if found <= ROUNDED * float(np.max(np.abs(values), initial=0.0)):
            # No ratio of spreads: the predicted one is rounding.
            noise = scatter(objective.measured[..., j], used, 0.0)
            if measured > UNEXPLAINED * noise > 0.0:
                said.append(
                    f"the predicted {signal} stands still while the measured one moves by "
                    f"{float(np.ptp(values[0])):.3g}: is a unit wrong, or friction too high?"
                )
        elif np.isfinite(found) and not 1 / SPREAD < measured / found < SPREAD:
            said.append(
                f"the measured {signal} spreads {measured / found:.3g} times as far as the "
                "predicted one: is its unit right?"
            )
    return said


def unexplained(
    objective: Objective, experiments: Sequence[Experiment], predicted: np.ndarray
) -> dict[str, tuple[float, float]]:
    """Signals whose residuals are far larger than the scatter of their samples: how many times, and
    the scatter."""
    found, signals = {}, objective.data.signals
    steps = steps_of(experiments, signals, objective.weight > 0).variance
    for j, signal in enumerate(signals):
        used, measured = objective.weight[..., j] > 0, objective.measured[..., j]
        off = (predicted[..., j] - measured)[used]
        left = float(np.sqrt(np.mean(off**2))) if off.size else 0.0
        noise = scatter(measured, used, float(np.mean(steps[..., j][used] ** 0.5)))
        visible = left > VISIBLE * float(np.std(measured[used])) if off.size else False
        if not (noise > 0.0 and visible and left > UNEXPLAINED * noise):
            continue
        found[signal] = left / noise, noise
    return found


def scatter(
    measured: Float[np.ndarray, "E m"], used: Bool[np.ndarray, "E m"], least: float
) -> float:
    """Standard deviation of the noise of a signal that is smooth at all but a few samples, from the
    median of differences of fourth order; 0 if there are too few samples. ``least``: standard
    deviation of readings in steps."""
    if measured.shape[-1] <= ORDER:
        return 0.0
    differences = np.diff(measured, ORDER, axis=-1)
    whole = np.lib.stride_tricks.sliding_window_view(used, ORDER + 1, axis=-1).all(axis=-1)
    found = np.abs(differences[whole])
    return max(1.4826 * float(np.median(found)) / ENLARGED, least) if found.size > ORDER else 0.0
