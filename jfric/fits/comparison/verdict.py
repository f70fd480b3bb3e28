"""Verdict of a comparison of laws: winners by criterion, contradictions, a recommendation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jfric.fits.comparison.differences import Differences


@dataclass(frozen=True)
class Criterion:
    """Scores of all laws by one criterion.

    ``unit``: of the scores, which are root mean square errors on held-out data; ``size``: root mean
    square of the predicted signals, in the same unit; ``fitted``: whether the laws were fitted to
    this criterion (on other folds).
    """

    name: str
    unit: str
    size: float
    fitted: bool
    differences: Differences

    @property
    def simplest(self) -> int | None:
        """The simplest law within one standard error of the best; None where all have failed."""
        within = np.flatnonzero(self.differences.within)
        return int(within[0]) if within.size else None


@dataclass(frozen=True)
class Verdict:
    """The recommended law (its number, or None), the reason for it, and contradictions."""

    recommended: int | None
    reason: str
    warnings: tuple[str, ...]


def verdict(laws: Sequence[str], criteria: Sequence[Criterion]) -> Verdict:
    """Judge ``laws``, the simplest first.

    The recommendation is the simplest law within two standard errors of the best, and with at most
    twice its error (or within 1 % of its error), by all criteria, else by all to which no law was
    fitted. A law that is best only by the criterion to which it was fitted is never
    recommended.
    """
    others = [c for c in criteria if not c.fitted]
    warnings = _contradictions(laws, criteria)
    if not others:
        own = criteria[0]
        best = "none" if own.simplest is None else laws[own.simplest]
        names = ", ".join(c.name for c in criteria)
        return Verdict(
            None,
            f"no law is recommended: all were judged only by what they were fitted to, {names}; "
            f"the simplest that is as good as the best by {own.name} is {best}",
            warnings,
        )
    for chosen, said in ((criteria, "all criteria"), (others, "all criteria that were not fitted")):
        common = np.all([c.differences.as_good for c in chosen], axis=0)
        if common.any():
            law = int(np.flatnonzero(common)[0])
            names = ", ".join(c.name for c in chosen)
            reason = f"the simplest within two standard errors of the best by {said} ({names})"
            return Verdict(law, reason, warnings)
    return Verdict(
        None,
        "no law is recommended: none is within two standard errors of the best by all criteria "
        f"that were not fitted ({', '.join(c.name for c in others)})",
        warnings,
    )


def _contradictions(laws: Sequence[str], criteria: Sequence[Criterion]) -> tuple[str, ...]:
    """Laws that win by one criterion and lose by another."""
    found = []
    for one in criteria:
        winner = one.differences.best
        for other in criteria:
            d = other.differences
            if other is one or not np.isfinite(one.differences.mean[winner]) or d.as_good[winner]:
                continue
            off = shown(d.difference[winner], other)
            found.append(
                f"{laws[winner]} wins by {one.name}{' (fitted)' if one.fitted else ''}, and is "
                f"worse than {laws[d.best]} by {other.name}: by {off} (standard error "
                f"{shown(d.standard_error[winner], other)})"
            )
    return tuple(found)


def shown(value: float, criterion: Criterion) -> str:
    """A score or a difference with its unit; forces relative to the measured ones."""
    if not np.isfinite(value):
        return "failed"
    if criterion.unit in ("N", "N m", ""):
        return f"{100 * value / criterion.size:.3g} %"
    for factor, prefix in ((1.0, ""), (1e3, "m"), (1e6, "u")):
        if abs(value) * factor >= 1.0 or prefix == "u":
            return f"{value * factor:.3g} {prefix}{criterion.unit}"
    raise AssertionError
