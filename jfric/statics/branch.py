"""Results of tracing a path: branches, their special points, and the steps that were taken."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from jfric.numerics.printing import Shown, printable
from jfric.results.modes import Mode

#: Columns of one group of numbers in a print.
MAX_COLUMNS = 6

Kind = Literal["end", "mode change", "fold", "bifurcation", "vertical", "dead end", "asymptote"]


@printable
@dataclass(frozen=True)
class SpecialPoint:
    """A point at which a branch ends, changes its modes, or turns around.

    ``parameter`` and the state ``q`` (n,) [m, rad], ``lambda_t`` (nt,), ``lambda_n`` (nu,) [N].
    ``mode_before`` and ``mode_after`` (nt,), in the order in which the branch is traced, with the
    one-sided derivatives ``dq_before``, ``dq_after`` (n,) by the parameter in these modes; None
    where the branch ends. A two-sided derivative exists if ``differentiable``: never at a fold or a
    change of mode. ``row``: the row of the branch that ends here. ``kind``: ``"end"`` of the
    interval; ``"mode change"``; ``"fold"``, where the branch turns around; ``"bifurcation"``, where
    more than one branch goes on; ``"vertical"``, where a segment of solutions at one value of the
    parameter begins or ends; ``"asymptote"``, where the state grows without bound; ``"dead end"``,
    where no branch goes on. Example: see :func:`jfric.trace`.
    """

    kind: Kind
    parameter: float
    q: np.ndarray
    lambda_t: np.ndarray
    lambda_n: np.ndarray
    mode_before: np.ndarray | None
    mode_after: np.ndarray | None
    dq_before: np.ndarray | None
    dq_after: np.ndarray | None
    #: Names of the contacts that change their mode.
    contacts: tuple[str, ...]
    row: int

    @property
    def differentiable(self) -> bool:
        """Whether a two-sided derivative exists."""
        return self.kind == "end" and self.mode_before is not None

    def modes(self, side: Literal["before", "after"]) -> tuple[str, ...]:
        """Modes on one side as words."""
        mode = self.mode_before if side == "before" else self.mode_after
        return () if mode is None else tuple(Mode(int(m)).label for m in mode)


@dataclass(frozen=True)
class Step:
    """A step of the continuation: from ``parameter`` by ``size``, and whether it was accepted or
    refined."""

    parameter: float
    size: float
    accepted: bool


@printable
@dataclass(frozen=True)
class Branch:
    """A piecewise smooth branch, row by row in the order in which it is traced.

    ``parameter`` (r,) and the states ``q`` (r, n) [m, rad], ``lambda_t`` (r, nt), ``lambda_n`` (r,
    nu) [N] in the modes ``mode`` (r, nt); ``special``: its special points; ``steps``: those of the
    continuation. A change of mode appears as two rows with the same state: the last in the old
    modes and the first in the new ones. ``dq``, ``dlambda_t``, ``dlambda_n``: derivatives with
    respect to the parameter in the row's own modes, NaN on vertical segments. ``closed``: the
    branch is a loop. Example: see :func:`jfric.trace`.
    """

    parameter: np.ndarray
    q: np.ndarray
    lambda_t: np.ndarray
    lambda_n: np.ndarray
    mode: np.ndarray
    dq: np.ndarray
    dlambda_t: np.ndarray
    dlambda_n: np.ndarray
    special: tuple[SpecialPoint, ...]
    steps: tuple[Step, ...]
    closed: bool = False
    #: Reactions of joints (r, k) [N, N m] and their derivatives.
    reaction: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    dreaction: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))

    def segments(self) -> list[slice]:
        """Slices of rows in which no contact changes its mode."""
        changes = np.any(self.mode[1:] != self.mode[:-1], axis=1)
        steps = np.diff(self.parameter)
        turns = np.zeros(len(changes), bool)
        turns[1:] = steps[1:] * steps[:-1] < 0
        cuts = [0, *(np.flatnonzero(changes | turns) + 1).tolist(), len(self.parameter)]
        return [slice(a, b) for a, b in itertools.pairwise(cuts) if b > a]


@printable
@dataclass(frozen=True)
class EquilibriumPath:
    """All branches found between two values of a parameter.

    ``name``: full path of the parameter, between ``start`` and ``stop`` [SI]; ``branches``: all
    that were found; ``axes``, ``names``: degrees of freedom and contacts. Example: see
    :func:`jfric.trace`.
    """

    name: str
    start: float
    stop: float
    branches: tuple[Branch, ...]
    axes: tuple[str, ...]
    names: tuple[str, ...]
    #: Remarks on omissions: too many contacts at one point, too many steps.
    remarks: tuple[str, ...] = field(default=())
    #: Names of the equations of joints, whose reactions the branches have.
    joints: tuple[str, ...] = ()

    def _shown(self) -> Shown:
        count = len(self.branches)
        title = f"{count} branch{'' if count == 1 else 'es'} over {self.name} "
        title += f"from {self.start:.6g} to {self.stop:.6g}"
        columns = ("branch", ">parameter", "special point", "contacts", "from", "to")
        rows = [
            (
                str(row["branch"]),
                f"{row['parameter']:.12g}",
                row["kind"],
                ", ".join(row["contacts"]),
                listed(row["before"], row["after"]),
                listed(row["after"], row["before"]),
                *(f"{x:.10g}" for x in without_rounding(row["q"])[:MAX_COLUMNS]),
            )
            for row in self.special_table()
        ]
        return Shown(title, (*columns, *(f">{axis}" for axis in self.axes[:MAX_COLUMNS])), rows)

    @property
    def special(self) -> tuple[SpecialPoint, ...]:
        """Special points of all branches."""
        return tuple(point for branch in self.branches for point in branch.special)

    def special_table(self) -> list[dict[str, Any]]:
        """Special points as rows: branch, kind, parameter, contacts, modes, q."""
        return [
            {
                "branch": number,
                "kind": point.kind,
                "parameter": point.parameter,
                "contacts": point.contacts,
                "before": point.modes("before"),
                "after": point.modes("after"),
                "q": point.q,
            }
            for number, branch in enumerate(self.branches, start=1)
            for point in branch.special
        ]


def listed(modes: tuple[str, ...], other: tuple[str, ...] = ()) -> str:
    """Modes that differ from those of the ``other`` side; the first of all without such a side."""
    if not other:
        return ", ".join([*modes[:4], *(("...",) if len(modes) > 4 else ())])
    return ", ".join(a for a, b in zip(modes, other, strict=False) if a != b)


def without_rounding(values: Any) -> np.ndarray:
    """Values to print, with zero for those that are rounding errors compared with the largest."""
    values = np.asarray(values, float)
    largest = np.max(np.abs(values[np.isfinite(values)]), initial=0.0)
    return np.where(np.abs(values) <= 1e-14 * largest, 0.0, values)
