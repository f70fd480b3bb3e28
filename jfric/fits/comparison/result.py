"""Result of a comparison of laws."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jfric.fits.comparison.differences import Criterion, Verdict, shown
from jfric.fits.comparison.residual_tests import ResidualTest
from jfric.fits.comparison.trades import AtBound, Trade
from jfric.numerics.printing import printable
from jfric.system.problem import Problem


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
    fitted to all records, or None; ``remarks``: on the records.
    Example: see :func:`jfric.compare_laws`.
    """

    laws: tuple[LawResult, ...]
    criteria: tuple[Criterion, ...]
    folds: tuple[str, ...]
    fitted_to: str
    verdict: Verdict
    fitted: Fitted | None = None
    remarks: tuple[str, ...] = ()

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
        """Warnings: criteria that contradict each other, parameters that trade, remarks of any law,
        and effects missing in the recommended law, or in the last law if none is recommended."""
        said = [*self.remarks, *self.verdict.warnings]
        for law in self.laws:
            said += [f"{law.name}: {trade}" for trade in (*law.trades, *law.bounds)]
            said += [f"{law.name}: {remark}" for remark in law.remarks]
        law = self._looked_at
        said += [f"{law.name}: {test}" for test in law.tests if test.significant]
        return tuple(said)

    @property
    def _looked_at(self) -> LawResult:
        found = self.verdict.recommended
        return self.laws[-1 if found is None else found]

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
