"""Result of the design of an experiment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from jfric.numerics.printing import printable
from jfric.system.problem import Problem


@printable
@dataclass(frozen=True)
class ExperimentDesign:
    """The next experiment and the certainty expected from it, compared with the present one.

    ``inputs``: its numbers by path; ``problem``: the given problem with these inputs. ``before``,
    ``after``: standard deviations of each parameter by the present and by the new experiment
    (bounds of Cramer and Rao, root mean square over where the estimates will fall); infinite for
    parameters that are not determined. ``condition``: ratios of the largest to the smallest
    eigenvalue of the information, in parts of the parameters' sizes, before and after. ``merit``:
    logarithms of the maximised criterion at the given values of the parameters, before and after.
    ``evaluations``: number of simulated experiments. ``remarks``: limits of these numbers. Example:
    see :func:`jfric.design_experiment`.
    """

    inputs: Mapping[str, float | np.ndarray]
    before: Mapping[str, float]
    after: Mapping[str, float]
    condition: tuple[float, float]
    merit: tuple[float, float]
    evaluations: int
    problem: Problem = field(repr=False)
    remarks: tuple[str, ...] = ()

    @property
    def information_ratio(self) -> dict[str, float]:
        """Information about each parameter, new over present: ``(before/after)^2``."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return {
                name: float(np.divide(old, self.after[name]) ** 2)
                for name, old in self.before.items()
            }

    def table(self) -> list[dict[str, Any]]:
        """One row for each parameter: its standard deviations and their ratio."""
        return [
            {
                "parameter": name,
                "before": old,
                "after": self.after[name],
                "shrinks to": float(np.divide(self.after[name], old)),
                "information ratio": self.information_ratio[name],
            }
            for name, old in self.before.items()
        ]

    def __str__(self) -> str:
        lines = [f"{path} = {_shown(x)}" for path, x in self.inputs.items()]
        width = max(len(name) for name in self.before)
        lines += [
            f"{row['parameter']:{width}}  standard deviation {row['before']:.3g} -> "
            f"{row['after']:.3g}, intervals shrink to {100 * row['shrinks to']:.0f} %"
            for row in self.table()
        ]
        lines.append(f"condition {self.condition[0]:.2g} -> {self.condition[1]:.2g}")
        return "\n".join([*lines, *self.remarks])


def _shown(x) -> str:
    return np.array2string(np.asarray(x), precision=6, separator=", ", max_line_width=90)
