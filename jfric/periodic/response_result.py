"""Result of :func:`jfric.frequency_response`: curves, their quantities and peaks, and tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jfric.errors import ProblemError
from jfric.files.output import write_trajectory
from jfric.numerics.printing import printable
from jfric.optional import import_xarray
from jfric.periodic.cycle_quantities import (
    CycleQuantity,
    Drive,
    Driven,
    measure,
    parse_cycle_quantities,
)
from jfric.periodic.path import ResponseCurve
from jfric.periodic.response_peak import ResponsePeak, largest_peak
from jfric.periodic.shooting import Shooting
from jfric.periodic.state_vector import axes_of
from jfric.results.grammar import split
from jfric.system.problem import Problem

if TYPE_CHECKING:
    import xarray

#: Status of the points that a shorter curve lacks compared with the longest one.
MISSING = -1


@printable
@dataclass(frozen=True)
class FrequencyResponse:
    """Steady states over the frequency of a load: one curve, or a family.

    ``problem``; ``drive``: the load and the path of its frequency; ``shooting``: the equations of
    the orbits; ``_known``: quantities measured so far.
    ``over``: further parameters by path with their values, one axis of the family each; ``curves``:
    all curves, the last parameter changing fastest. ``limits``: first and last frequency [rad/s].
    Arrays have the axes of the family in front and that of the points ``p`` of the longest curve
    behind them; points that a curve does not have are NaN (one curve has ``(p,)``). Quantities are
    named as everywhere (``"x"``, ``"v.x"``, ``"force.spring"``), and reduced to a number of the
    cycle: ``"amplitude.x"`` or ``"x"``, ``"harmonic.x(3)"``, ``"phase.x"`` (of the harmonic of the
    load, relative to it, negative where the motion lags), ``"rms.x"``, ``"max.x"``,
    ``"energy_loss"`` and all other observables. Example: see :func:`jfric.frequency_response`.
    """

    problem: Problem
    drive: Drive
    limits: tuple[float, float]
    over: dict[str, np.ndarray]
    curves: tuple[ResponseCurve, ...]
    shooting: Shooting
    _known: dict[tuple[int, CycleQuantity], np.ndarray] = field(
        default_factory=dict, repr=False, compare=False
    )

    @property
    def driven(self) -> Driven:
        """The orbits' equations, the system and the load."""
        return Driven(self.shooting, self.problem, self.drive)

    @property
    def axes(self) -> tuple[str, ...]:
        """Names of the degrees of freedom."""
        return axes_of(self.problem)

    @property
    def shape(self) -> tuple[int, ...]:
        """Numbers of values of the further parameters."""
        return tuple(len(x) for x in self.over.values())

    @property
    def frequency(self) -> np.ndarray:
        """Frequency of the load (..., p) [rad/s]."""
        return self._padded([c.parameter for c in self.curves])

    @property
    def stable(self) -> np.ndarray:
        """Whether no small deviation grows (..., p), see :attr:`jfric.PeriodicOrbit.stable`."""
        return self._padded([c.stable for c in self.curves], False)

    @property
    def status(self) -> np.ndarray:
        """:class:`jfric.OrbitStatus` of each point (..., p), -1 for points that a curve does not
        have; a curve without a first orbit has its status in the first place."""
        rows = [np.zeros(len(c), int) if len(c) else np.array([c.status]) for c in self.curves]
        return self._padded(rows, MISSING)

    @property
    def special(self) -> tuple[tuple[int, Any], ...]:
        """Special points of all curves, each with the number of its curve."""
        return tuple((i, p) for i, c in enumerate(self.curves) for p in c.special)

    def label(self, curve: int) -> str:
        """The further parameters of a curve in words."""
        values = self.curves[curve].values
        return ", ".join(f"{path} = {value:g}" for path, value in values.items())

    def _padded(self, rows: Sequence[np.ndarray], fill: Any = np.nan) -> np.ndarray:
        longest = max((len(x) for x in rows), default=0)
        dtype = np.result_type(*rows, np.asarray(fill))
        table = np.full((len(rows), longest), fill, dtype)
        for i, x in enumerate(rows):
            table[i, : len(x)] = x
        return table.reshape(*self.shape, longest)

    def observe(self, quantities: str | Sequence[str]) -> dict[str, np.ndarray]:
        """Quantities (..., p) by name."""
        chosen = parse_cycle_quantities(self.problem, quantities)
        rows = [self.of_curve(i, chosen) for i in range(len(self.curves))]
        return {q.text: self._padded([r[:, k] for r in rows]) for k, q in enumerate(chosen)}

    def _observed(self, quantity: str) -> np.ndarray:
        return self.observe([quantity])[quantity]

    def of_curve(self, curve: int, quantities: Sequence[CycleQuantity]) -> np.ndarray:
        """Quantities (r, k) of one curve."""
        chosen, known = self.curves[curve], self._known
        missing = tuple(q for q in quantities if (curve, q) not in known)
        if missing and len(chosen):
            values = {k: np.full(len(chosen), x) for k, x in chosen.values.items()}
            values[self.drive.path] = chosen.parameter
            found = measure(self.driven, missing, values, chosen.begins, chosen.state)
            known.update({(curve, q): found[:, k] for k, q in enumerate(missing)})
        if not len(chosen):
            return np.zeros((0, len(quantities)))
        return np.stack([known[curve, q] for q in quantities], axis=1)

    def amplitude(self, signal: str, harmonic: int | None = None) -> np.ndarray:
        """Half of the distance between the largest and the smallest value of a signal in a cycle
        (..., p); for one ``harmonic`` its size."""
        one = f"amplitude.{signal}" if harmonic is None else f"harmonic.{signal}({harmonic})"
        return self._observed(one)

    def phase(self, signal: str, harmonic: int | None = None) -> np.ndarray:
        """Angle (..., p) [rad] of a signal's harmonic, by default that of the load, relative to the
        load; negative where the signal lags."""
        return self._observed(f"phase.{signal}" + ("" if harmonic is None else f"({harmonic})"))

    def rms(self, signal: str) -> np.ndarray:
        """Root mean square of a signal over a cycle (..., p)."""
        return self._observed(f"rms.{signal}")

    def energy_loss(self) -> np.ndarray:
        """Energy lost in a cycle (..., p) [J]: the work of loads and belts."""
        return self._observed("energy_loss")

    def peak(self, quantity: str, by: str | Sequence[str] = (), curve: int = 0) -> ResponsePeak:
        """The largest value of a ``quantity`` on a curve, see :class:`jfric.ResponsePeak`; ``by``:
        parameters by which derivatives are requested."""
        if not 0 <= curve < len(self.curves):
            raise ProblemError(f"curve: found {curve}, there are {len(self.curves)} from 0 on")
        (chosen,) = parse_cycle_quantities(self.problem, [quantity])
        values = self.of_curve(curve, [chosen])[:, 0]
        paths = split(by) if isinstance(by, str) else list(by)
        return largest_peak(self.driven, self.curves[curve], chosen, values, paths)

    def backbone(self, quantity: str, by: str | Sequence[str] = ()) -> dict[str, np.ndarray]:
        """Peaks of all curves as columns: the further parameters, ``frequency`` [rad/s], the
        quantity, whether the peak is ``exact``, and ``d(quantity)/d(parameter)`` for each of
        ``by``."""
        peaks = [self.peak(quantity, by, i) for i in range(len(self.curves))]
        found = {path: np.asarray([c.values[path] for c in self.curves]) for path in self.over}
        found["frequency"] = np.asarray([p.frequency for p in peaks])
        found[quantity] = np.asarray([p.value for p in peaks])
        found["exact"] = np.asarray([p.kind == "smooth" for p in peaks])
        for path in peaks[0].derivatives if peaks else ():
            found[f"d({quantity})/d({path})"] = np.asarray([p.derivatives[path] for p in peaks])
        return found

    def columns(self, quantities: str | Sequence[str]) -> dict[str, np.ndarray]:
        """A table, one row for each point: number of the curve, further parameters, frequency
        [rad/s], quantities, stability, largest multiplier, flags."""
        chosen = parse_cycle_quantities(self.problem, quantities)
        rows = [self.of_curve(i, chosen) for i in range(len(self.curves))]
        count = [len(c) for c in self.curves]
        found = {"curve": np.repeat(np.arange(1, len(count) + 1), count)}
        for path in self.over:
            found[path] = np.repeat([c.values[path] for c in self.curves], count)
        found["frequency"] = np.concatenate([c.parameter for c in self.curves])
        for k, q in enumerate(chosen):
            found[q.text] = np.concatenate([r[:, k] for r in rows])
        found["stable"] = np.concatenate([c.stable.astype(int) for c in self.curves])
        found["multiplier"] = np.concatenate([c.largest_multiplier for c in self.curves])
        found["flags"] = np.concatenate([c.flags for c in self.curves])
        return found

    def units(self, quantities: str | Sequence[str]) -> dict[str, str]:
        """Units of the columns that have one."""
        chosen = parse_cycle_quantities(self.problem, quantities)
        return {"frequency": "rad/s"} | {q.text: q.unit for q in chosen if q.unit}

    def to_xarray(self, quantities: str | Sequence[str]) -> xarray.Dataset:
        """A data set over the further parameters and ``point``; missing points of a curve are NaN
        with the status -1."""
        xarray = import_xarray()
        dims, units = (*self.over, "point"), self.units(quantities)
        arrays: dict[str, Any] = {"frequency": self.frequency} | self.observe(quantities)
        arrays |= {"stable": self.stable, "status": self.status}
        arrays["multiplier"] = self._padded([c.largest_multiplier for c in self.curves])
        return xarray.Dataset(
            {k: (dims, x, {"units": units[k]} if k in units else {}) for k, x in arrays.items()},
            coords=dict(self.over),
            attrs={"load": self.drive.path, "start": self.limits[0], "stop": self.limits[1]},
        )

    def save(self, path: str | Path, quantities: str | Sequence[str]) -> None:
        """Write :meth:`columns` to a new file that ends in ``.csv`` or ``.parquet``, or
        :meth:`to_xarray` to a folder that ends in ``.zarr``."""
        path = Path(path)
        if path.suffix == ".zarr":
            self.to_xarray(quantities).to_zarr(path, mode="w-")
            return
        if path.suffix not in (".csv", ".parquet"):
            raise ProblemError(f"path: found {str(path)!r}, must end in .csv, .parquet or .zarr")
        write_trajectory(path, self.columns(quantities), self.units(quantities))
