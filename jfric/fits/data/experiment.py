"""A measured trajectory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from jfric.errors import ProblemError
from jfric.numerics.printing import printable


@printable
@dataclass(frozen=True, eq=False)
class Experiment:
    """Samples of one run of a system, in SI units.

    ``t`` (m,) [s]: times of the samples, increasing strictly.
    ``y``: measured quantities by the names of their signals (``"u"``, ``"v.u"``, ``"a.u"``,
    ``"lambda_t.NAME"``, ...), each (m,).
    ``u``: measured inputs, each (m,), by the path that they drive: a load, belt, normal force
    or support of the problem (``"load.F"``).
    ``sigma``: standard deviation of the noise, one number for all of ``y`` or a mapping by the
    names of signals and inputs; noise that is not given is estimated from the residuals.
    ``x0``: initial state by degree of freedom, ``{"u": 0.1}`` or ``{"u": (0.1, 0.0)}`` (position,
    velocity); by default the problem's initial state.
    ``mask``: which samples count, (m,) of bool or a mapping like ``y``. Masked samples may be NaN.
    ``start`` [s]: where the simulation begins; by default at the first sample if ``x0`` is given,
    else at the problem's start.
    ``resolution``: step of the readings of a quantity, by name: the readings of an encoder are
    multiples of it. Its part of the noise is added to the given or estimated ``sigma``; see
    :mod:`jfric.fits.data.stacking`.
    ``known``: numbers of this run by the path of a parameter, in place of those of the problem
    (``{"controller.kp": 100.0}``).
    ``meta``: anything to be kept with the data; ``meta["name"]`` labels results.

    Raises :class:`jfric.ProblemError` for samples that cannot be used::

        >>> t = jnp.linspace(0.0, 1.0, 11)
        >>> jfric.Experiment(t, y={"u": 0.0 * t}, sigma=1e-3, meta={"name": "drop"}).name
        'drop'
    """

    t: np.ndarray
    u: Mapping[str, np.ndarray] | None = None
    y: Mapping[str, np.ndarray] = field(default_factory=dict)
    sigma: float | Mapping[str, float] | None = None
    x0: Mapping[str, Any] | None = None
    mask: Any = None
    meta: Mapping[str, Any] | None = None
    start: float | None = None
    resolution: Mapping[str, float] | None = None
    known: Mapping[str, float] | None = None

    def __post_init__(self):
        t = _samples("t", self.t)
        if t.size < 2:
            raise ProblemError(f"t: found {t.size} samples, at least 2 are needed")
        _require_finite("t", t)
        falls = np.flatnonzero(np.diff(t) <= 0)
        if falls.size:
            i = int(falls[0])
            raise ProblemError(
                f"t: found {t[i + 1]:g} s after {t[i]:g} s (sample {i + 1}), times must increase"
            )
        y = _channels("y", self.y, t)
        if not y:
            raise ProblemError("y: found no measured quantity, give one, such as y={'u': samples}")
        u = _channels("u", self.u or {}, t)
        for name, values in u.items():
            _require_finite(f"u.{name}", values)
        mask = self.mask
        if mask is not None:
            table = mask if isinstance(mask, Mapping) else dict.fromkeys(y, mask)
            mask = _channels("mask", table, t, bool)
            _known("mask", mask, y)
        for name, values in y.items():
            bad = ~np.isfinite(values) & (mask or {}).get(name, True)
            if bad.any():
                i = int(np.argmax(bad))
                raise ProblemError(
                    f"y.{name}: found {values[i]} at sample {i} (t = {t[i]:g} s), "
                    f"{int(bad.sum())} in all; leave missing samples out with mask"
                )
        if mask is not None and not any(np.any(mask.get(name, True)) for name in y):
            raise ProblemError("mask: found no sample that counts")
        sigma = self.sigma
        if sigma is not None:
            sigma = sigma if isinstance(sigma, Mapping) else dict.fromkeys(y, sigma)
            sigma = _positive("sigma", sigma, {**y, **u})
        resolution = _positive("resolution", self.resolution or {}, y)
        first = t[0] if self.start is None else float(self.start)
        if first > t[0]:
            raise ProblemError(
                f"start: found {first:g} s, must not be later than the first sample at {t[0]:g} s"
            )
        values = {"t": t, "y": y, "u": u, "mask": mask, "sigma": sigma}
        values["resolution"] = resolution or None
        values["known"] = _known_numbers(self.known)
        values["meta"] = dict(self.meta or {})
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def name(self) -> str | None:
        """Label of the experiment, if it has one."""
        return (self.meta or {}).get("name")

    def between(self, start: float, end: float, x0: Mapping[str, Any] | None = None) -> Experiment:
        """The samples with ``start <= t < end`` [s], an experiment that begins at the first one."""
        inside = (self.t >= start) & (self.t < end)
        if np.count_nonzero(inside) < 2:
            raise ProblemError(f"between: fewer than 2 samples from {start:g} s to {end:g} s")

        def cut(table):
            return None if table is None else {k: v[inside] for k, v in table.items()}

        t, tables = self.t[inside], {name: cut(getattr(self, name)) for name in ("u", "y", "mask")}
        return replace(self, t=t, **tables, x0=x0, start=float(t[0]))

    @property
    def remarks(self) -> tuple[str, ...]:
        """Remarks on what was done to the samples."""
        return tuple((self.meta or {}).get("remarks", ()))

    def with_remarks(self, *said: str) -> Experiment:
        """A copy with further remarks."""
        return replace(self, meta={**(self.meta or {}), "remarks": (*self.remarks, *said)})


def remarks_of(experiments: Iterable[Experiment]) -> list[str]:
    """Remarks on all records, each once: windows of one record repeat its remarks."""
    return list(dict.fromkeys(said for e in experiments for said in e.remarks))


def _samples(what: str, values: Any, kind: type = float) -> np.ndarray:
    try:
        found = np.array(values, dtype=kind)
    except (TypeError, ValueError):
        raise ProblemError(f"{what}: found {values!r}, needs a list of numbers") from None
    if found.ndim != 1:
        raise ProblemError(f"{what}: found an array of shape {found.shape}, needs one axis")
    return found


def _channels(what: str, table: Any, t: np.ndarray, kind: type = float) -> dict[str, np.ndarray]:
    if not isinstance(table, Mapping):
        raise ProblemError(
            f"{what}: found {type(table).__name__}, needs a mapping from names to samples"
        )
    result = {}
    for name, values in table.items():
        found = _samples(f"{what}.{name}", values, kind)
        if found.size != t.size:
            raise ProblemError(
                f"{what}.{name}: found {found.size} samples for {t.size} times in t, "
                "must be as many"
            )
        result[name] = found
    return result


def _require_finite(what: str, values: np.ndarray) -> None:
    if not np.all(np.isfinite(values)):
        i = int(np.argmax(~np.isfinite(values)))
        raise ProblemError(f"{what}: found {values[i]} at sample {i}, all must be finite")


def _positive(what: str, table: Mapping[str, Any], y: Mapping[str, Any]) -> dict[str, float]:
    found = {k: float(v) for k, v in table.items()}
    _known(what, found, y)
    for name, value in found.items():
        if not value > 0.0:
            raise ProblemError(f"{what}.{name}: found {value}, must be a positive number")
    return found


def _known_numbers(table: Any) -> dict[str, float] | None:
    found = {}
    for path, value in (table or {}).items():
        try:
            found[path] = float(value)
        except (TypeError, ValueError):
            found[path] = np.nan
        if not np.isfinite(found[path]):
            raise ProblemError(f"known.{path}: found {value!r}, must be a finite number")
    return found or None


def _known(what: str, table: Mapping[str, Any], y: Mapping[str, Any]) -> None:
    for name in table:
        if name not in y:
            raise ProblemError(f"{what}: found {name!r}, measured are {', '.join(y)}")
