"""Bootstrap: the fit repeated for resampled residuals or experiments, as one batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from jfric.errors import ProblemError, nearest
from jfric.fits.estimate import Estimate
from jfric.fits.optimise.levenberg_marquardt import Outcome, levenberg_marquardt
from jfric.fits.uncertainty.autocorrelation import bandwidth
from jfric.fits.uncertainty.residual_series import residual_series
from jfric.numerics.printing import printable


@printable
@dataclass(frozen=True)
class Bootstrap:
    """Estimates (n, P) from resampled data; refits that failed are left out and counted."""

    names: tuple[str, ...]
    estimates: np.ndarray
    failed: int
    #: Length of the resampled blocks of residuals; None if experiments were resampled.
    block: int | None

    @property
    def standard_errors(self) -> dict[str, float]:
        """Standard deviation of the estimates."""
        spread = np.std(self.estimates, axis=0, ddof=1)
        return dict(zip(self.names, spread.tolist(), strict=True))

    def intervals(self, level: float = 0.95) -> dict[str, tuple[float, float]]:
        """Percentile intervals of the estimates."""
        tail = 0.5 * (1.0 - level)
        low, high = np.quantile(self.estimates, [tail, 1.0 - tail], axis=0)
        pairs = zip(low.tolist(), high.tolist(), strict=True)
        return dict(zip(self.names, pairs, strict=True))


def bootstrap(
    fit: Estimate,
    count: int = 200,
    *,
    resample: Literal["blocks", "experiments"] = "blocks",
    block: int | None = None,
    seed: int = 0,
) -> Bootstrap:
    """Repeat ``fit`` for ``count`` resampled data sets.

    ``"blocks"``: residuals of each experiment in moving blocks of ``block`` samples (Kuensch 1989;
    by default from their autocorrelation, 1 without autocorrelation), added to the
    prediction. ``"experiments"``: experiments drawn with replacement; values that belong to one
    experiment have no meaning there.
    """
    if resample not in ("blocks", "experiments"):
        raise ProblemError(
            f"resample: found {resample!r}{nearest(resample, ('blocks', 'experiments'))}, allowed "
            "are 'blocks' and 'experiments'"
        )
    rng = np.random.default_rng(seed)
    objective = fit.objective
    measured, weight = None, None
    if resample == "experiments":
        runs = objective.weight.shape[0]
        if runs < 2:
            raise ProblemError("resample: found 1 experiment, at least 2 are needed to draw from")
        drawn = rng.multinomial(runs, np.full(runs, 1.0 / runs), size=count)
        weight = objective.weight * np.sqrt(drawn)[:, :, None, None]
        block = None
    else:
        measured, block = _resampled(fit, count, block, rng)

    def normal(x, members):
        own, counts = (a if a is None else a[members] for a in (measured, weight))
        return objective.normal(x, own, counts)

    start = np.tile(fit.vector, (count, 1))
    found = levenberg_marquardt(normal, objective.layout, start)
    good = np.isin(found.outcome, (Outcome.CONVERGED, Outcome.STALLED))
    return Bootstrap(fit.names, found.x[good], int(np.sum(~good)), block)


def _resampled(fit: Estimate, count: int, block: int | None, rng):
    """Measured values (n, E, m, k) of resampled residuals, and the length of blocks."""
    objective = fit.objective
    predicted = fit.linearised().predicted
    used = objective.weight > 0
    residuals = np.where(used, objective.measured - predicted, 0.0)
    if block is None:
        # A block has to cover the correlation: twice the window of the covariance estimate.
        block = max(1, 2 * max(bandwidth(s.scores(fit.vector.size)) for s in residual_series(fit)))
    measured = np.repeat(objective.measured[None], count, axis=0)
    for e in range(used.shape[0]):
        rows = np.flatnonzero(used[e].any(axis=1))
        length = min(block, rows.size)
        whole = -(-rows.size // length)
        first = rng.integers(0, rows.size, size=(count, whole))
        # Blocks continue at the start of the record, so that each residual is drawn equally often.
        index = (first[:, :, None] + np.arange(length)).reshape(count, -1)[:, : rows.size]
        own = residuals[e][rows]
        own = own - own.mean(axis=0)
        free = max(rows.size - fit.vector.size / used.shape[0], 1.0)
        own = own * np.sqrt(rows.size / free)
        drawn = own[index % rows.size]
        measured[:, e, rows] = np.where(used[e][rows], predicted[e][rows] + drawn, 0.0)
    return measured, block
