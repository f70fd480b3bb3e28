"""The next record that would tell two laws apart: one of those there are, replayed in another size
and at another speed.

Both laws, with the values that were fitted, predict every replay from one initial state. The best
replay is the one at which the predictions of a signal differ most, in parts of the error that the
recommended law has on records that it was not fitted to. Replays are at most as large and at most
as fast as the record, whose machine has been through both.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from jfric.fits.comparison.criteria import CLOSED, Setting, predictions, unit_of
from jfric.fits.comparison.kinds import drives_of
from jfric.fits.data.experiment import Experiment
from jfric.system.problem import Problem

#: Sizes and speeds of replays, in parts of the record.
SIZES, SPEEDS = (1.0, 0.5, 0.25, 0.125), (1.0, 0.5, 2.0, 0.25, 4.0)


class Rival(NamedTuple):
    """A law with the values that were fitted."""

    name: str
    problem: Problem
    values: Mapping[str, float]


@dataclass(frozen=True)
class NextRecord:
    """A record to be made, at which two ``laws`` differ.

    ``record``: the one to be replayed, at ``size`` and ``speed`` in parts of it. ``there``,
    ``here``: root mean square difference of the predicted ``signal`` at the replay, and at the
    record itself, in parts of the error of the first law on records left out.
    """

    laws: tuple[str, str]
    record: str
    drives: tuple[str, ...]
    signal: str
    size: float
    speed: float
    there: float
    here: float

    @property
    def tells(self) -> bool:
        """Whether the replay tells both laws apart, and better than the record itself."""
        return self.there >= max(1.0, 2.0 * self.here)

    def __str__(self) -> str:
        which, here = " and ".join(self.laws), f"{self.here:.2g} times the error"
        if not self.tells:
            return (
                f"{which} differ by {here} at {self.record}, and hardly more at smaller and slower "
                "ones: plan another input with jfric.design_experiment(..., rival=...)"
            )
        what = ", ".join(self.drives) or "the initial state"
        return (
            f"{which} differ by {here} at {self.record}; a record tells them apart with {what} of "
            f"{self.size:g} of that size and {self.speed:g} of that speed: {self.signal} differs "
            f"there by {self.there:.2g} times the error"
        )


def next_record(
    criterion: str,
    laws: tuple[Rival, Rival],
    e: Experiment,
    error: float,
    setting: Setting,
) -> NextRecord | None:
    """The replay of a record ``e`` at which two laws differ most; ``error``: of the first law on
    what was left out. None where no prediction of both succeeds."""
    ways = [(a, b) for a, b in itertools.product(SIZES, SPEEDS) if a * b <= 1.0]
    drives = drives_of(e)
    if not drives:
        ways = [(a, 1.0) for a in SIZES]
    replays = [_replayed(e, *way, criterion == CLOSED) for way in ways]
    (data, used, one), (_, _, other) = (
        predictions(criterion, law.problem, law.values, replays, setting, given_start=True)
        for law in laws
    )
    off = np.where(used, one - other, 0.0)
    off = np.sqrt(np.sum(off**2, axis=1) / np.maximum(np.sum(used, axis=1), 1)) / error
    if unit_of(laws[0].problem, criterion) == "":
        off = off / [np.nanstd(e.y[name]) for name in data.signals]
    if not np.any(np.isfinite(off)):
        return None
    i, j = np.unravel_index(np.nanargmax(off), off.shape)
    names, record = (laws[0].name, laws[1].name), e.name or "the record"
    there, here = float(off[i, j]), float(off[0, j])
    return NextRecord(names, record, tuple(drives), data.signals[j], *ways[i], there, here)


def _replayed(e: Experiment, size: float, speed: float, loop: bool) -> Experiment:
    """A record whose drives, or whose initial state, are changed; a ``loop`` begins where its
    reference does. All samples count."""
    drives, t0 = drives_of(e), e.t[0]
    times = np.minimum(t0 + speed * (e.t - t0), e.t[-1])
    u = {k: size * np.interp(times, e.t, x) for k, x in drives.items()}
    x0 = dict(e.x0 or {})
    if loop or not drives:
        x0 = {k: (size * q, size * (speed if loop else 1.0) * v) for k, (q, v) in x0.items()}
    y = {k: np.nan_to_num(x) for k, x in e.y.items()}
    return replace(e, u={**(e.u or {}), **u}, x0=x0, mask=None, y=y)
