"""Parameters that trade: the data determine a combination of them, but not each of them.

The information about the parameters (initial states and the like removed) is scaled to a unit
diagonal; a condition index above 30 is a direction of little information, and the parameters most
of whose variance lies in it trade. Source: D. A. Belsley, E. Kuh, R. E. Welsch, Regression
Diagnostics (1980), section 3.2.

A parameter at its bound is left out of this. The parameters that would trade with it, if it were
free, depend on the value of the bound: they are named with it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jfric.fits.fit_result import FitResult
from jfric.fits.uncertainty.covariance import reached_bounds

#: Condition index from which on a direction is weak, and share of a variance that counts as most.
WEAK, SHARE = 30.0, 0.5
#: Relative size of directions that hold no information.
LEAST = 1e-14


@dataclass(frozen=True)
class Trade:
    """Parameters of which only a combination is known, with its condition index."""

    names: tuple[str, ...]
    condition: float

    def __str__(self) -> str:
        names = ", ".join(self.names)
        return f"{names} trade against each other (condition index {self.condition:.2g})"


@dataclass(frozen=True)
class AtBound:
    """A parameter that rests at its bound, and those that trade with it.

    ``side``: -1 at the lower bound, 1 at the upper one.
    """

    name: str
    value: float
    side: int
    names: tuple[str, ...]

    def __str__(self) -> str:
        bound = "lower" if self.side < 0 else "upper"
        trading = "trade" if len(self.names) > 1 else "trades"
        return (
            f"{self.name} rests at its {bound} bound, {self.value:.3g}, and "
            f"{', '.join(self.names)} {trading} with it: known is only what the bound leaves"
        )


def trades(result: FitResult) -> tuple[Trade, ...]:
    """Combinations of parameters of a fit that trade, the weakest first."""
    information, kept = _information(result, result.at_bound == 0)
    return weak_directions(information, tuple(result.names[i] for i in kept))


def at_bounds(result: FitResult) -> tuple[AtBound, ...]:
    """Parameters of a fit that rest at a bound while others trade with them."""
    everything = np.ones(len(result.names), bool)
    information, kept = _information(result, everything)
    names, sides = tuple(result.names[i] for i in kept), result.at_bound[kept]
    found = []
    for i in np.flatnonzero(sides):
        # The other bounds hold meanwhile.
        alone = (sides == 0) | (np.arange(len(kept)) == i)
        own = tuple(name for name, a in zip(names, alone, strict=True) if a)
        trading = trading_with(information[np.ix_(alone, alone)], own, names[i])
        if trading:
            value = float(result.vector[kept[i]])
            found.append(AtBound(names[i], value, int(sides[i]), trading))
    return tuple(found)


def trading_with(information: np.ndarray, names: tuple[str, ...], name: str) -> tuple[str, ...]:
    """Parameters of ``names`` that share most of their variance with ``name`` if all are free: the
    square of the correlation of the two estimates is above a half; the largest first."""
    names, values, vectors = _scaled(information, names)
    if name not in names or len(names) < 2:
        return ()
    covariance = (vectors / values) @ vectors.T
    i = names.index(name)
    share = covariance[i] ** 2 / (covariance[i, i] * np.diagonal(covariance))
    order = np.argsort(-share, kind="stable")
    return tuple(names[j] for j in order if j != i and share[j] > SHARE)


def starts_at_bounds(result: FitResult) -> list[str]:
    """Sentences on initial states that rest at a bound, which :func:`at_bounds` leaves out."""
    layout = result.objective.layout
    starts = np.array([name.startswith("initial.") for name in result.names])
    found = reached_bounds(result.names, np.where(starts, result.at_bound, 0), layout.bounds)
    return [f"{text}: widen it, or look for wrong readings there" for text, _ in found]


def _information(result: FitResult, which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Information about the parameters ``which`` of the model, initial states removed, and their
    numbers; both empty if the fit failed."""
    names = result.names
    hessian = result.objective.normal_at(result.vector).hessian
    if not np.all(np.isfinite(hessian)):
        return np.zeros((0, 0)), np.zeros(0, int)
    own = np.array(["[" not in name and not name.startswith("initial.") for name in names])
    kept, beside = np.flatnonzero(which & own), np.flatnonzero(which & ~own)
    information = hessian[np.ix_(kept, kept)]
    if beside.size:
        cross = hessian[np.ix_(kept, beside)]
        information = (
            information - cross @ np.linalg.pinv(hessian[np.ix_(beside, beside)]) @ cross.T
        )
    return information, kept


def _scaled(
    information: np.ndarray, names: tuple[str, ...]
) -> tuple[tuple[str, ...], np.ndarray, np.ndarray]:
    """Parameters that have information, and the eigenvalues and vectors of the information that is
    scaled to a unit diagonal."""
    size = np.sqrt(np.maximum(np.diagonal(information), 0.0))
    known = np.flatnonzero(size > 0.0)
    scaled = information[np.ix_(known, known)] / np.outer(size[known], size[known])
    values, vectors = np.linalg.eigh(0.5 * (scaled + scaled.T))
    least = LEAST * values.max(initial=0.0)
    return tuple(names[i] for i in known), np.maximum(values, least), vectors


def weak_directions(information: np.ndarray, names: tuple[str, ...]) -> tuple[Trade, ...]:
    """Combinations of ``names`` that trade, the weakest first, from the information (P, P)."""
    names, values, vectors = _scaled(information, names)
    if len(names) < 2:
        return ()
    variance = vectors**2 / values
    share = variance / variance.sum(axis=1, keepdims=True)
    weak = np.flatnonzero(np.sqrt(values[-1] / values) > WEAK)
    if not weak.size:
        return ()
    found, left = [], np.ones(len(names), bool)
    # Weak directions share variances: a parameter belongs to the first direction at which the sum
    # of its shares has reached most of its variance.
    for i, k in enumerate(weak):
        together = share[:, weak[: i + 1]].sum(axis=1)
        taking = left & (together > SHARE)
        if np.count_nonzero(taking) > 1:
            chosen = np.flatnonzero(taking)[np.argsort(-np.abs(vectors[taking, k]))]
            condition = float(np.sqrt(values[-1] / values[k]))
            found.append(Trade(tuple(names[j] for j in chosen), condition))
            left &= ~taking
    return tuple(found)
