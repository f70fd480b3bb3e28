"""One curve of a frequency response: its orbits and special points."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jfric.numerics.printing import printable
from jfric.periodic.multipliers import none_grows
from jfric.periodic.orbit_status import OrbitStatus
from jfric.periodic.path import OrbitPoint


@printable
@dataclass(frozen=True)
class ResponseCurve:
    """Orbits along the frequency, in the order in which they were followed.

    ``values``: the further parameters of this curve by path. ``parameter`` (r,): frequency of the
    load [rad/s]; ``period`` (r,) [s]; ``begins`` (r,) [s] and ``state`` (r, 2n): start of each
    orbit; ``multipliers`` (r, 2n); ``flags`` (r,): :class:`jfric.Flag` bits; ``events``: the
    sequence of events of each orbit in words. ``special``: folds, flips, crossings of the unit
    circle by a pair, branch points and changes of events. ``status``: :class:`jfric.OrbitStatus` of
    the whole curve, which has no rows without a first orbit. ``outcome``: the end of the curve, in
    words. Example: see :func:`jfric.frequency_response`.
    """

    values: dict[str, float]
    parameter: np.ndarray
    period: np.ndarray
    begins: np.ndarray
    state: np.ndarray
    multipliers: np.ndarray
    flags: np.ndarray
    events: tuple[tuple[str, ...], ...]
    special: tuple[OrbitPoint, ...]
    status: int = int(OrbitStatus.CONVERGED)
    outcome: str = ""

    @property
    def stable(self) -> np.ndarray:
        """Whether no small deviation grows (r,): see :attr:`jfric.PeriodicOrbit.stable`."""
        return none_grows(np.max(np.abs(self.multipliers), axis=1, initial=0.0))

    @property
    def complete(self) -> bool:
        """Whether the curve reaches the end of the interval."""
        return any(point.kind == "end" for point in self.special)

    def __len__(self) -> int:
        return len(self.parameter)
