"""Parameters that trade against each other: the data know a combination of them, not each.

The information about the parameters (initial states and the like taken out) is scaled to a unit
diagonal; a condition index above 30 is a direction of little information, and the parameters most
of whose variance lies in it trade. Source: D. A. Belsley, E. Kuh, R. E. Welsch, Regression
Diagnostics (1980), section 3.2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jfric.fits.fit_result import FitResult

#: Condition index from which on a direction is weak, and the share of a variance that counts.
WEAK, SHARE = 30.0, 0.5
#: Ranges of directions that hold nothing at all.
LEAST = 1e-14


@dataclass(frozen=True)
class Trade:
    """Parameters of which a combination is known only, with its condition index."""

    names: tuple[str, ...]
    condition: float

    def __str__(self) -> str:
        names = ", ".join(self.names)
        return f"{names} trade against each other (condition index {self.condition:.2g})"


def trades(result: FitResult) -> tuple[Trade, ...]:
    """Combinations of parameters of a fit that trade, the weakest first."""
    names = result.names
    normal = result.objective.normal(result.vector[None])
    hessian = normal.hessian[0]
    if not np.all(np.isfinite(hessian)):
        return ()
    inside = result.at_bound == 0
    own = np.array(["[" not in name and not name.startswith("initial.") for name in names])
    kept, beside = np.flatnonzero(inside & own), np.flatnonzero(inside & ~own)
    information = hessian[np.ix_(kept, kept)]
    if beside.size:
        cross = hessian[np.ix_(kept, beside)]
        information = (
            information - cross @ np.linalg.pinv(hessian[np.ix_(beside, beside)]) @ cross.T
        )
    return weak_directions(information, tuple(names[i] for i in kept))


def weak_directions(information: np.ndarray, names: tuple[str, ...]) -> tuple[Trade, ...]:
    """The same from the information (P, P) of the parameters ``names``."""
    size = np.sqrt(np.diagonal(information))
    known = size > 0.0
    if np.count_nonzero(known) < 2:
        return ()
    scaled = (information / np.where(known, size, 1.0)[:, None] / np.where(known, size, 1.0))[
        np.ix_(known, known)
    ]
    names = tuple(name for name, k in zip(names, known, strict=True) if k)
    values, vectors = np.linalg.eigh(0.5 * (scaled + scaled.T))
    values = np.maximum(values, LEAST * values[-1])
    variance = vectors**2 / values
    share = variance / variance.sum(axis=1, keepdims=True)
    weak = np.flatnonzero(np.sqrt(values[-1] / values) > WEAK)
    if not weak.size:
        return ()
    found, left = [], np.ones(len(names), bool)
    # Weak directions share variances: a parameter counts for the first one that has most of it,
    # all of them together.
    for i, k in enumerate(weak):
        together = share[:, weak[: i + 1]].sum(axis=1)
        taking = left & (together > SHARE)
        if np.count_nonzero(taking) > 1:
            chosen = np.flatnonzero(taking)[np.argsort(-np.abs(vectors[taking, k]))]
            condition = float(np.sqrt(values[-1] / values[k]))
            found.append(Trade(tuple(names[j] for j in chosen), condition))
            left &= ~taking
    return tuple(found)
