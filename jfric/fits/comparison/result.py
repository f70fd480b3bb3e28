"""Result of a comparison of laws: which are as good as the best, and which is recommended.

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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jfric.fits.comparison.diagnostics import AtBound, ResidualTest, Trade
from jfric.fits.comparison.next_record import NextRecord
from jfric.numerics.printing import printable
from jfric.system.problem import Problem

#: Name of the law without friction that has any other linear force.
LINEAR = "linear"
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


@dataclass(frozen=True)
class LawResult:
    """Result of one law in a comparison.

    ``parameters``: number of free parameters, those common to all laws included; ``values``: fitted
    values for each fold that was left out; ``trades``: parameters of which the records determine
    only a combination; ``bounds``: parameters at a bound that other parameters trade with;
    ``tests``: dependences of the residual force; the last three are those of the first fold's fit.
    ``problems``: the system with this law and the values found for each fold. ``remarks``: failures
    and warnings.
    """

    name: str
    parameters: int
    values: tuple[Mapping[str, float], ...]
    trades: tuple[Trade, ...]
    tests: tuple[ResidualTest, ...]
    problems: tuple[Problem, ...]
    remarks: tuple[str, ...] = ()
    bounds: tuple[AtBound, ...] = ()


@dataclass(frozen=True)
class Fitted:
    """A law fitted to all records: the system with its ``values``, and 95 % intervals, None where
    the records do not determine a number."""

    problem: Problem
    values: Mapping[str, float]
    intervals: Mapping[str, tuple[float, float] | None]


@printable
@dataclass(frozen=True)
class LawComparison:
    """Friction laws compared on data held out from their fits; see :func:`jfric.compare_laws`.

    ``laws``: the simplest first; ``criteria``: scores by each criterion, with the differences from
    the best law; ``folds``: the data that each fit left out; ``fitted_to``: the criterion that was
    minimised; ``verdict``: recommendation and contradictions; ``fitted``: the recommended law,
    fitted to all records, or None; ``remarks``: on the records; ``next_record``: what would tell
    two laws apart that the records do not.
    Example: see :func:`jfric.compare_laws`.
    """

    laws: tuple[LawResult, ...]
    criteria: tuple[Criterion, ...]
    folds: tuple[str, ...]
    fitted_to: str
    verdict: Verdict
    fitted: Fitted | None = None
    remarks: tuple[str, ...] = ()
    next_record: NextRecord | None = None

    @property
    def recommended(self) -> str | None:
        """Name of the recommended law; None where no law can be recommended."""
        found = self.verdict.recommended
        return None if found is None else self.laws[found].name

    def criterion(self, name: str) -> Criterion:
        """The scores by one criterion."""
        return next(c for c in self.criteria if c.name == name)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings: records of one kind, criteria that contradict each other, parameters that
        trade, remarks of any law, and effects missing in the recommended law, or in the last law if
        none is recommended."""
        said = [*self.remarks, *filter(None, [self.next_record]), *self.verdict.warnings]
        said = [str(text) for text in said]
        for law in self.laws:
            said += [f"{law.name}: {trade}" for trade in (*law.trades, *law.bounds)]
            said += [f"{law.name}: {remark}" for remark in law.remarks]
        found = self.verdict.recommended
        law = self.laws[-1 if found is None else found]
        said += [f"{law.name}: {test}" for test in law.tests if test.significant]
        return tuple(said)

    @property
    def worth(self) -> str | None:
        """A sentence with the errors of the linear model beside those of the recommended law, so
        that one sees what friction buys; None where either is missing."""
        names = [law.name for law in self.laws]
        if LINEAR not in names or self.recommended in (None, LINEAR):
            return None
        one, other = names.index(LINEAR), names.index(str(self.recommended))
        means = {c.name: c.differences.mean for c in self.criteria}
        times = [
            f"{mean[one] / mean[other]:.3g} by {name}"
            for name, mean in means.items()
            if np.isfinite(mean[one]) and mean[other] > 0.0
        ]
        if not times:
            return None
        return f"errors of a linear model in parts of those of this law: {', '.join(times)}"

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Header and rows: mean error of each law by each criterion, and its difference from the
        best law with the standard error of that difference."""
        header = ["law", "free"]
        for c in self.criteria:
            header += [c.name + (" (fitted)" if c.fitted else ""), "from best"]
        rows = []
        for i, law in enumerate(self.laws):
            row = [law.name, str(law.parameters)]
            for c in self.criteria:
                d = c.differences
                mark = " *" if c.simplest == i else ""
                row.append(shown(d.mean[i], c) + mark)
                if not np.isfinite(d.difference[i]):
                    row.append("")
                elif i == d.best:
                    row.append("best")
                else:
                    error = shown(d.standard_error[i], c)
                    row.append(f"+{shown(d.difference[i], c)} ({error})")
            rows.append(row)
        return header, rows

    def __str__(self) -> str:
        header, rows = self.table()
        lines = [
            f"{len(self.laws)} laws fitted to {self.fitted_to}, each judged on what was left out: "
            f"{len(self.folds)} folds",
            *aligned(header, rows),
            "* simplest within one standard error of the best",
        ]
        name = self.recommended
        if name is None:
            lines.append(self.verdict.reason)
        else:
            lines.append(f"recommended: {name}, {self.verdict.reason}")
            lines += filter(None, [self.worth])
        if self.fitted is not None:
            lines += ["fitted to all records, with 95 % intervals:", *aligned_values(self.fitted)]
        return "\n".join([*lines, *(f"- {said}" for said in self.warnings)])

    def to_dict(self) -> dict[str, Any]:
        """The comparison as numbers, strings, lists and mappings, for JSON."""
        return {
            "recommended": self.recommended,
            "reason": self.verdict.reason,
            "fitted": None
            if self.fitted is None
            else {
                "values": dict(self.fitted.values),
                "intervals": dict(self.fitted.intervals),
            },
            "warnings": list(self.warnings),
            "next_record": None if self.next_record is None else vars(self.next_record),
            "table": self.table(),
            "fitted_to": self.fitted_to,
            "folds": list(self.folds),
            "criteria": {
                c.name: {
                    "unit": c.unit,
                    "size": c.size,
                    "fitted": c.fitted,
                    "laws": {
                        law.name: {
                            "scores": c.differences.scores[i].tolist(),
                            "mean": float(c.differences.mean[i]),
                            "difference": float(c.differences.difference[i]),
                            "standard_error": float(c.differences.standard_error[i]),
                            "within": bool(c.differences.within[i]),
                        }
                        for i, law in enumerate(self.laws)
                    },
                }
                for c in self.criteria
            },
            "laws": {
                law.name: {
                    "parameters": law.parameters,
                    "values": [dict(v) for v in law.values],
                    "trades": [
                        {"names": list(t.names), "condition": t.condition} for t in law.trades
                    ],
                    "bounds": [vars(b) | {"names": list(b.names)} for b in law.bounds],
                    "tests": [vars(t) for t in law.tests],
                    "remarks": list(law.remarks),
                }
                for law in self.laws
            },
        }


def aligned_values(fitted: Fitted) -> list[str]:
    """Lines of values and intervals."""
    width = max(map(len, fitted.values))
    pairs = {k: f"[{p[0]:.6g}, {p[1]:.6g}]" if p else "" for k, p in fitted.intervals.items()}
    return [f"  {k:{width}}  {x:.6g}  {pairs[k]}".rstrip() for k, x in fitted.values.items()]


def aligned(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a table whose columns are as wide as they have to be."""
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    return [
        "  ".join(cell.ljust(w) if i == 0 else cell.rjust(w)
                  for i, (cell, w) in enumerate(zip(row, widths, strict=True)))
        for row in [header, *rows]
    ]  # fmt: skip
