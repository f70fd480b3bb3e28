"""Differences of scores over folds, and which laws are as good as the best.

A score is one number for each fold, so correlation of the residuals within a fold, however long, is
part of the scatter of these numbers. Two laws are compared on the same folds, by the differences of
their scores (Breiman, Friedman, Olshen, Stone, Classification and Regression Trees, 1984; the
standard error is that of the difference here, not of a score). They use one standard error, for one
criterion. Where several criteria have to agree, the true law is more than one standard error from
the best by one of them in a fifth of records, and more than two hardly ever. The fits of different
folds share data: the variance of a mean over ``k`` folds is taken as
``s^2 (1/k + n_held/n_fitted)`` instead of ``s^2/k`` (C. Nadeau, Y. Bengio, Inference for the
generalization error, Machine Learning 52, 2003). ``experiments/compare_rule.py`` judges the rule on
records whose law is known.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

#: Relative difference of errors below which two laws are equally good, however certain it is.
NEGLIGIBLE = 0.01
#: Standard errors within which a law is as good as the best where several criteria have to agree,
#: if its error is at most twice the least: folds that differ much would let any law pass.
TOGETHER = 2.0
#: Relative size of differences that no comparison resolves: fits end where a step promises to lower
#: the cost by less than 1e-10 of it, and simulations have tolerances. Without noise, the true law
#: and all laws that contain it have errors below this size, and rounding would decide.
UNRESOLVED = 1e-5


@dataclass(frozen=True)
class Differences:
    """Scores (L, F) of laws on folds, compared with the best law.

    ``mean`` (L,): over the folds; ``best``: the law with the least mean; ``difference``,
    ``standard_error`` (L,): relative to the best law, zero for that law; infinite where a
    prediction failed. ``unresolved``: size below which a difference does not count, in the unit of
    the scores.
    """

    scores: np.ndarray
    mean: np.ndarray
    best: int
    difference: np.ndarray
    standard_error: np.ndarray
    unresolved: float = 0.0

    @property
    def within(self) -> np.ndarray:
        """Whether each law (L,) is within one standard error of the best one, or hardly worse."""
        return self._within(self.standard_error)

    @property
    def as_good(self) -> np.ndarray:
        """Whether each law (L,) is as good as the best one where several criteria have to agree."""
        return self._within(np.minimum(TOGETHER * self.standard_error, self.mean[self.best]))

    def _within(self, allowed: np.ndarray) -> np.ndarray:
        good = np.isfinite(self.mean)
        least = max(NEGLIGIBLE * float(self.mean[self.best]), self.unresolved)
        allowed = np.maximum(allowed, least)
        return good & (self.difference <= np.where(good, allowed, 0.0))


def differences(scores: np.ndarray, held_over_fitted: float, size: float = 0.0) -> Differences:
    """Compare ``scores`` (L, F), of which the least is best; ``held_over_fitted``: ratio of the
    samples of a fold to the samples fitted for it; ``size``: root mean square of the predicted
    signals."""
    mean = np.mean(scores, axis=1)
    best = int(np.argmin(mean))
    good: np.ndarray = np.all(np.isfinite(scores), axis=1)
    folds = scores.shape[1]
    difference, error = np.full(mean.shape, np.inf), np.full(mean.shape, np.inf)
    if good[best]:
        off = scores[good] - scores[best]
        difference[good] = off.mean(axis=1)
        error[good] = off.std(axis=1, ddof=1) * np.sqrt(1.0 / folds + held_over_fitted)
    unresolved = UNRESOLVED * size if np.isfinite(size) else 0.0
    return Differences(scores, mean, best, difference, error, unresolved)
