"""Comparison of a fit with its data: each signal of each record, measured and predicted."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from jfric.fits.fit_result import FitResult


class Series(NamedTuple):
    """One signal of one record: the samples that count, measured and predicted."""

    record: str
    signal: str
    t: np.ndarray
    measured: np.ndarray
    predicted: np.ndarray
    position: np.ndarray | None
    velocity: np.ndarray | None
    #: The degree of freedom that both are of, the first one that was measured.
    dof: str | None
    #: Standard deviation of a new sample: of the prediction, with the estimates, and of the noise.
    spread: np.ndarray

    @property
    def residual(self) -> np.ndarray:
        """Predicted minus measured."""
        return self.predicted - self.measured


def series(result: FitResult) -> list[Series]:
    """All signals of all records at the fit."""
    from jfric.fits.data.stacking import labels

    linearised = result.linearised()
    predicted, spread = linearised.predicted, _spread(result, linearised.jacobian)
    weight, measured = result.objective.weight, np.asarray(result.objective.measured)
    found = []
    for i, (e, label) in enumerate(
        zip(result.experiments, labels(result.experiments), strict=True)
    ):
        dof = next((name for name in e.y if "." not in name), None)
        q = None if dof is None else e.y[dof]
        v = None if q is None else np.gradient(q, e.t)
        for j, signal in enumerate(result.objective.data.signals):
            used = weight[i, : e.t.size, j] > 0
            if not np.any(used):
                continue
            found.append(
                Series(
                    label,
                    signal,
                    e.t[used],
                    measured[i, : e.t.size, j][used],
                    predicted[i, : e.t.size, j][used],
                    None if q is None else q[used],
                    None if v is None else v[used],
                    dof,
                    spread[i, : e.t.size, j][used],
                )
            )
    return found


def _spread(result: FitResult, jacobian: np.ndarray) -> np.ndarray:
    """Standard deviation of new samples (E, m, k), zero where unknown; estimates without a finite
    error are taken as exact."""
    weight, layout = result.objective.weight, result.objective.layout
    sigma = np.where(weight > 0, 1.0 / np.where(weight > 0, weight, 1.0), 0.0)
    if jacobian.shape[:3] != weight.shape:  # a user's own residual
        return sigma
    matrix = result.covariance().matrix
    known = np.isfinite(np.diagonal(matrix))
    matrix = np.where(np.outer(known, known) & np.isfinite(matrix), matrix, 0.0)
    variance = np.stack(
        [
            np.einsum("mkl,ln,mkn->mk", own, matrix[np.ix_(columns, columns)], own, optimize=True)
            for own, columns in zip(jacobian, layout.columns, strict=True)
        ]
    )
    return sigma * np.sqrt(1.0 + np.maximum(variance, 0.0))
