"""Folds that are left out in turns: whole records, or pieces of records."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jfric.errors import ProblemError
from jfric.fits.data.experiment import Experiment
from jfric.fits.residuals import windows

#: Pieces of each record where there are too few records to leave whole ones out.
PIECES = 4
#: Number of records from which whole records are left out, and of folds that they are dealt to.
ENOUGH_RECORDS, MOST_FOLDS = 3, 8

Fold = tuple[Experiment, ...]


def laps(experiment: Experiment, dofs: Sequence[str], count: int) -> list[Experiment]:
    """``count`` pieces of equal length, each starting from its measured state."""
    length = (experiment.t[-1] - experiment.t[0]) / count
    return windows(experiment, dofs, length)[:count]


def folds_of(
    experiments: Sequence[Experiment],
    dofs: Sequence[str],
    count: int | None = None,
    lap: float | None = None,
) -> list[Fold]:
    """Groups of pieces, each of which is left out once; every piece starts from its measured state.

    ``count`` pieces of each record, or laps of ``lap`` [s]: with ``count``, the pieces at the same
    place of all records form a fold; every lap is a fold of its own. By default whole records,
    dealt out to at most eight folds, if there are at least three, else four pieces of each. Raises
    :class:`jfric.ProblemError` for fewer than two folds.
    """
    if lap is not None:
        if count is not None:
            raise ProblemError("lap: give it or folds, not both")
        found = [(piece,) for e in experiments for piece in windows(e, dofs, lap)]
    elif count is None and len(experiments) >= ENOUGH_RECORDS:
        whole = [piece for e in experiments for piece in laps(e, dofs, 1)]
        size = min(len(whole), MOST_FOLDS)
        found = [tuple(whole[i::size]) for i in range(size)]
    else:
        count = PIECES if count is None else count
        if count < 2:
            raise ProblemError(f"folds: found {count}, at least 2 are needed")
        found = list(zip(*(laps(e, dofs, count) for e in experiments), strict=True))
    if len(found) < 2:
        raise ProblemError(f"lap: found {len(found)} of {lap:g} s, at least 2 are needed")
    return found


def held_out_over_fitted(folds: Sequence[Fold]) -> float:
    """Average ratio of the samples of a fold to the samples that its candidates are fitted to."""
    sizes = np.array([sum(e.t.size for e in fold) for fold in folds], float)
    return float(np.mean(sizes / (sizes.sum() - sizes)))
