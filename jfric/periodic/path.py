"""Paths of periodic motions over a parameter: orbits, row by row, and special points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from jfric.numerics.printing import printable
from jfric.periodic.multipliers import none_grows
from jfric.periodic.orbit import OrbitStatus, PeriodicOrbit

OrbitKind = Literal[
    "end", "fold", "flip", "torus", "branch point", "hopf", "event change", "dead end"
]


@printable
@dataclass(frozen=True)
class OrbitPoint:
    """A point at which a path of orbits ends, turns around, or changes its stability or events.

    ``parameter``, the ``state`` (2n,) at the start, which is at ``time`` [s], and the ``period``
    [s]. ``kind``: ``"end"`` of the interval; ``"fold"``, where the path turns around; ``"flip"``,
    where a motion of the doubled period branches off; ``"torus"``, where a pair of multipliers
    leaves the unit circle; ``"branch point"``, where another path crosses; ``"hopf"``, where the
    motion has shrunk to an equilibrium, at which the path ends; ``"event change"``, from which on a
    period has other events; ``"dead end"``, where no further orbit was found. ``multipliers``
    (2n,). For an event change: the sequences of events ``before`` and ``after`` it, and the
    derivatives ``slope_before``, ``slope_after`` of the state (2n,) by the parameter on both sides,
    None if the path ends there. ``row``: the row of the path at or before the point. Example: see
    :func:`jfric.continue_orbit`.
    """

    kind: OrbitKind
    parameter: float
    state: np.ndarray
    period: float
    multipliers: np.ndarray
    row: int
    before: tuple[str, ...] = ()
    after: tuple[str, ...] | None = None
    slope_before: np.ndarray | None = None
    slope_after: np.ndarray | None = None
    time: float = 0.0


@printable
@dataclass(frozen=True)
class OrbitPath:
    """Periodic motions over a parameter, row by row in the order in which they were followed.

    ``name``: full path of the parameter, between ``start`` and ``stop`` [SI]; ``parameter`` (r,);
    ``state`` (r, 2n): positions and velocities at the start of each orbit; ``period`` (r,) [s];
    ``multipliers`` (r, 2n); ``stable`` (r,); ``slope`` (r, 2n): derivatives of the state by the
    parameter; ``events``: the sequence of events of each orbit, in words; ``special``: special
    points. ``orbits``: all of them as one batch; ``axes``: names of the degrees of freedom.
    ``remarks``: parts that were left out, in words. Example: see :func:`jfric.continue_orbit`.
    """

    name: str
    start: float
    stop: float
    parameter: np.ndarray
    state: np.ndarray
    period: np.ndarray
    multipliers: np.ndarray
    stable: np.ndarray
    slope: np.ndarray
    events: tuple[tuple[str, ...], ...]
    special: tuple[OrbitPoint, ...]
    orbits: PeriodicOrbit
    axes: tuple[str, ...]
    remarks: tuple[str, ...] = ()

    def points(self, kind: OrbitKind) -> tuple[OrbitPoint, ...]:
        """The special points of one kind, in the order along the path."""
        return tuple(point for point in self.special if point.kind == kind)

    def special_table(self) -> list[dict[str, Any]]:
        """Special points as rows: kind, parameter, period, largest multiplier, events."""
        return [
            {
                "kind": point.kind,
                "parameter": point.parameter,
                "period": point.period,
                "multiplier": float(np.max(np.abs(point.multipliers), initial=0.0)),
                "before": point.before,
                "after": point.after,
            }
            for point in self.special
        ]

    def observe(self, observables: Any) -> dict[str, np.ndarray]:
        """Observables of each orbit (r,), see :meth:`PeriodicOrbit.observe`."""
        return {k: np.asarray(x) for k, x in self.orbits.observe(observables).items()}

    def harmonics(self, signal: str, count: int = 1) -> np.ndarray:
        """Fourier coefficients (r, count + 1) of a quantity, see
        :meth:`PeriodicOrbit.harmonics`."""
        return np.asarray(self.orbits.harmonics(signal, count))


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
    def largest_multiplier(self) -> np.ndarray:
        """Largest magnitude of a multiplier (r,)."""
        return np.max(np.abs(self.multipliers), axis=1, initial=0.0)

    @property
    def stable(self) -> np.ndarray:
        """Whether no small deviation grows (r,): see :attr:`jfric.PeriodicOrbit.stable`."""
        return none_grows(self.largest_multiplier)

    @property
    def complete(self) -> bool:
        """Whether the curve reaches the end of the interval."""
        return any(point.kind == "end" for point in self.special)

    def __len__(self) -> int:
        return len(self.parameter)
