"""Differences of scores over folds, and which laws are as good as the best.

A score is one number for each fold: whatever correlation residuals have within a fold, long as it
may be, is in the scatter of these numbers. Two laws are compared on the same folds, by the
differences of their scores (Breiman, Friedman, Olshen, Stone, Classification and Regression Trees,
1984; the standard error is that of the difference here, not of a score). Theirs is the rule of one
standard error, for one criterion. Where several have to agree, the true law is farther from the
best by one of them in a fifth of records, and by two standard errors hardly ever. The
fits of different folds share data: the variance of a mean over ``k`` folds is taken as
``s^2 (1/k + n_held/n_fitted)`` instead of ``s^2/k`` (C. Nadeau, Y. Bengio, Inference for the
generalization error, Machine Learning 52, 2003). ``experiments/compare_rule.py`` judges the rule on
records whose law is known.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

#: A law whose error is larger by less than this part is as good, however certain that is.
NEGLIGIBLE = 0.01
#: Standard errors within which a law is as good as the best where several criteria have to agree,
#: as long as its error is not more than twice the least: folds that differ much would let pass any.
TOGETHER = 2.0
#: Parts of what is measured that no comparison resolves: fits end where a step promises to lower
#: the cost by less than 1e-10 of it, and simulations have tolerances of their own. Without noise
#: the errors of the true law and of all that hold it are no larger, and rounding would decide.
UNRESOLVED = 1e-5


@dataclass(frozen=True)
class Differences:
    """Scores (L, F) of laws on folds, compared with the best law.

    ``mean`` (L,): over the folds; ``best``: the law of the least; ``difference``,
    ``standard_error`` (L,): from the best one, zero there; infinite where a prediction failed.
    ``unresolved``: what is no difference, in the unit of the scores.
    """

    scores: np.ndarray
    mean: np.ndarray
    best: int
    difference: np.ndarray
    standard_error: np.ndarray
    unresolved: float = 0.0

    @property
    def within(self) -> np.ndarray:
        """Which laws (L,) are within one standard error of the best one, or hardly worse."""
        return self._within(self.standard_error)

    @property
    def as_good(self) -> np.ndarray:
        """Which laws (L,) are as good as the best one where several criteria have to agree."""
        wider = np.minimum(TOGETHER * self.standard_error, self.mean[self.best])
        return self._within(np.maximum(self.standard_error, wider))

    def _within(self, allowed: np.ndarray) -> np.ndarray:
        good = np.isfinite(self.mean)
        least = max(NEGLIGIBLE * float(self.mean[self.best]), self.unresolved)
        allowed = np.maximum(allowed, least)
        return good & (self.difference <= np.where(good, allowed, 0.0))


def differences(scores: np.ndarray, held_over_fitted: float, size: float = 0.0) -> Differences:
    """Compare ``scores`` (L, F), the least are best; ``held_over_fitted``: samples of a fold over
    those that were fitted for it; ``size``: root mean square of what is predicted."""
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
