"""Signs of a wrong fit: units wrong by about a thousand, readings that are none, and residuals far
above the noise."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb

import numpy as np
from jaxtyping import Bool, Float

from jfric.errors import ProblemError
from jfric.files.config import Config, time_span
from jfric.fits.data.experiment import Experiment
from jfric.fits.data.stacking import steps_of
from jfric.fits.objective import Objective, Squares
from jfric.fits.optimise.searches import AbstractSearch
from jfric.fits.readings import doubtful_readings, on_readings
from jfric.fits.task import Task

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
    # Wrong readings that count in full explain large residuals.
    explained = wrong and isinstance(loss, Squares)
    return said if explained else [*said, *_on_residuals(task, predicted, search)]


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


def _on_residuals(task: Task, predicted: np.ndarray, search: AbstractSearch) -> list[str]:
    """Remarks on signals whose residuals are far larger than the scatter of their samples."""
    other = "" if search.is_global else "another minimum (search: global), "
    return [
        f"residuals of {signal} are {ratio:,.0f} times the scatter of its samples, {noise:.2g}: "
        f"{other}another law or what is not modelled may explain them"
        for signal, (ratio, noise) in unexplained(
            task.objective, task.experiments, predicted
        ).items()
    ]


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
