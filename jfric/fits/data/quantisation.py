"""Noise of readings in steps, such as those of an encoder.

A reading is off by up to half a step ``D``. While the motion goes through steps the errors are
nearly independent from sample to sample and uniform, of variance ``D^2/12``, uncorrelated with the
motion (B. Widrow, I. Kollar, Quantization Noise, 2008, chapter 5). ``n`` samples in a row with the
same reading share one error: their mean has the variance ``sigma^2/n + D^2/12`` with other noise
``sigma``. Each sample counts with the variance ``sigma^2 + n D^2/12``, as if it were independent,
which gives that mean the same variance; a record at rest does not count for more than it tells.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from jfric.fits.data.experiment import Experiment


class Steps(NamedTuple):
    """Variances (E, m, k): of the errors of single readings, and as used in a fit."""

    variance: np.ndarray
    counted: np.ndarray

    @property
    def more(self) -> np.ndarray:
        """Variance (E, m, k) used in a fit in excess of that of single readings."""
        return self.counted - self.variance


def steps_of(experiments: Sequence[Experiment], signals: Sequence[str], used: np.ndarray) -> Steps:
    """Variances that the resolution of readings adds to the noise; zero without one."""
    variance, counted = np.zeros(used.shape), np.zeros(used.shape)
    for i, e in enumerate(experiments):
        for j, name in enumerate(signals):
            step = (e.resolution or {}).get(name)
            if step is None or name not in e.y:
                continue
            there = np.flatnonzero(used[i, : e.t.size, j])
            variance[i, there, j] = step**2 / 12.0
            counted[i, there, j] = run_lengths(e.y[name][there], step) * step**2 / 12.0
    return Steps(variance, counted)


def run_lengths(values: np.ndarray, step: float) -> np.ndarray:
    """Number of samples in a row with the same reading, for each sample (m,)."""
    if not values.size:
        return np.zeros(0)
    starts = np.flatnonzero(np.r_[True, np.abs(np.diff(values)) > 0.5 * step])
    lengths = np.diff(np.r_[starts, values.size])
    return np.repeat(lengths, lengths)
