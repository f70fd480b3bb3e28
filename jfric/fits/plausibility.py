"""Signs of a wrong unit: what differs by about a thousand."""

from __future__ import annotations

import numpy as np

from jfric.errors import ProblemError
from jfric.files.config import Config, time_span
from jfric.fits.data.experiment import Experiment
from jfric.fits.task import Task

#: Units are usually wrong by a thousand; half of that on a scale of factors is suspicious.
SUSPICIOUS = 300.0
#: Predicted and measured signals of a fit hardly differ so much in their spread.
SPREAD = 100.0


def require_span(config: Config, experiment: Experiment) -> None:
    """Raise :class:`jfric.ProblemError` for a record far longer or shorter than the problem."""
    start, end = time_span(config.problem)
    length, span = float(np.ptp(experiment.t)), end - start
    if 1.0 / SUSPICIOUS < length / span < SUSPICIOUS:
        return
    raise ProblemError(
        f"{experiment.name}: found times from {experiment.t[0]:g} s to {experiment.t[-1]:g} s, the "
        f"problem lasts {span:g} s; give the right unit in data.time, or set time.end near the end "
        "of the record"
    )


def remarks_on_units(task: Task, x: np.ndarray) -> list[str]:
    """What a fit ``x`` (P,) says of units: values far from those of the problem, and signals that
    spread far more or less than predicted."""
    objective, said = task.objective, []
    layout = objective.layout
    first = task.experiments[0]
    for path, column in zip(layout.paths, layout.columns[0], strict=True):
        own = objective.model.default(path, first)
        factor = x[column] / own if own else 0.0
        if factor > 0.0 and not 1.0 / SUSPICIOUS < factor < SUSPICIOUS:
            times = f"{factor:,.0f} times" if factor > 1.0 else f"1/{1.0 / factor:,.0f} of"
            said.append(f"{path} is {times} the value of the problem: is a unit of the data wrong?")
    predicted = objective.predict(x[None])[0]
    for j, signal in enumerate(objective.data.signals):
        used = task.used[..., j]
        measured, found = (np.std(v[..., j][used]) for v in (objective.measured, predicted))
        if found > 0.0 and np.isfinite(found) and not 1 / SPREAD < measured / found < SPREAD:
            said.append(
                f"the measured {signal} spreads {measured / found:.3g} times as far as the "
                "predicted one: is its unit right?"
            )
    return said
