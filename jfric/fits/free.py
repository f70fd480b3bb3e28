"""Free parameters of a fit, their bounds and their vector; full paths in the arguments of a fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from jfric.errors import ProblemError, require_no_text, require_one_of
from jfric.fits.data.experiment import Experiment
from jfric.system.bounds import bounds_of
from jfric.system.control import controllers, target
from jfric.system.controller import Controller
from jfric.system.expression import Expression
from jfric.system.inertia import has_inertia
from jfric.system.naming import find_function, find_path, parameters, with_numbers
from jfric.system.problem import Problem

Scale = Literal["log", "linear"]


@dataclass(frozen=True)
class Free:
    """A parameter to be found between ``lower`` and ``upper`` (SI).

    ``init``: first start; by default the problem's own value if it lies inside, else the middle.
    ``scale``: ``"log"`` for positive quantities known to an order of magnitude, else ``"linear"``;
    starts are drawn and steps are taken on this scale. ``prior``: (mean, standard deviation) of a
    normal distribution that is added to the data, or None. ``per_experiment``: one value for each
    experiment instead of one for all. ``varies``: the values of the experiments scatter around a
    common mean, see :func:`jfric.fit_hierarchical`. Raises :class:`jfric.ProblemError` for bounds
    that hold no value::

        >>> jfric.Free(1e3, 1e4, init=5e3).scale
        'log'
    """

    lower: float
    upper: float
    init: float | None = None
    scale: Scale = "log"
    prior: tuple[float, float] | None = None
    per_experiment: bool = False
    varies: bool = False

    def __post_init__(self):
        require_one_of("scale", self.scale, ("log", "linear"))
        for field in ("lower", "upper", "init"):
            require_no_text(field, getattr(self, field))
        if not (np.isfinite(self.lower) and np.isfinite(self.upper) and self.lower < self.upper):
            raise ProblemError(
                f"bounds: found {self.lower} and {self.upper}, lower must be below upper and both "
                "finite"
            )
        if self.scale == "log" and not self.lower > 0:
            raise ProblemError(
                f"lower: found {self.lower:g}, must be positive on the scale 'log'; "
                "use scale='linear'"
            )
        if self.init is not None and not self.lower <= self.init <= self.upper:
            raise ProblemError(
                f"init: found {self.init:g}, must lie between {self.lower:g} and {self.upper:g}"
            )
        if self.prior is not None and not (len(self.prior) == 2 and self.prior[1] > 0):
            raise ProblemError(
                f"prior: found {self.prior}, needs (mean, standard deviation) with a positive "
                "standard deviation"
            )


def read_free(table: Mapping[str, Any]) -> Free:
    """The free parameter whose fields were written as JSON."""
    prior = table["prior"]
    return Free(**{**table, "prior": None if prior is None else tuple(prior)})


def beginning_at(free: Mapping[str, Free], values: Mapping[str, float]) -> dict[str, Free]:
    """``free`` with starts at ``values``, moved into the bounds; others keep their starts."""
    return {
        path: replace(item, init=float(np.clip(values[path], item.lower, item.upper)))
        if path in values
        else item
        for path, item in free.items()
    }


def check_free(problem: object, free: Mapping[str, Free]) -> None:
    """Raise :class:`ProblemError` for bounds that include values that no system can have.

    Each bound is checked separately; limits that parameters set for each other are not checked.
    """
    for path, item in free.items():
        if not isinstance(item, Free):
            continue  # has its sentence where the vector is laid out
        wrong = bounds_of(path).message(item.lower, item.upper)
        if wrong:
            raise ProblemError(
                f"free.{path}: found the bounds {item.lower:g} and {item.upper:g}, {wrong}"
            )
        if isinstance(problem, Problem):
            for value in (item.lower, item.upper):
                _check_value(problem, path, value)


def _check_value(problem: Problem, path: str, value: float) -> None:
    """Raise :class:`ProblemError` for a bound with which a computed field or a mass is wrong."""
    leaf = parameters(problem).get(path)
    if leaf is None or isinstance(leaf, Expression) or np.ndim(leaf):
        return
    changed = with_numbers(problem, {path: value}).resolved()
    for other, number in parameters(changed).items():
        array = np.asarray(number)
        wrong = array.size and bounds_of(other).message(float(array.min()), float(array.max()))
        if wrong or not np.all(np.isfinite(array)):
            found = float(array.min()) if array.size else array
            raise ProblemError(
                f"free.{path}: with {value:g}, {other} is {found:g}, {wrong or 'must be finite'}"
            )
    if has_inertia(problem) and not has_inertia(changed):
        raise ProblemError(
            f"free.{path}: with {value:g}, a degree of freedom has no mass; choose other bounds"
        )


def on_scale(x: np.ndarray, log: np.ndarray) -> np.ndarray:
    """Numbers on their scales: logarithms where ``log``."""
    return np.where(log, np.log(np.where(log, x, 1.0)), x)


def off_scale(w: np.ndarray, log: np.ndarray) -> np.ndarray:
    """Numbers whose values on their scales are ``w``."""
    return np.where(log, np.exp(np.where(log, w, 0.0)), w)


#: Part of the range by which starts stay away from bounds, where the map to the range is flat.
MARGIN = 1e-3


@dataclass(frozen=True)
class Layout:
    """Free parameters as a vector of ``P`` numbers.

    Steps are taken in coordinates without bounds: ``w = low + (high - low)(1 + sin z)/2`` with
    ``w = x`` or ``w = log x``, so that every ``z`` lies within the bounds and a bound is reached
    at a finite ``z``.
    """

    #: (P,) ``friction.mu``, or ``initial.z.q[drop 2]`` for a value of one experiment.
    names: tuple[str, ...]
    #: (L,) Parameters as one experiment uses them, and (E, L) places of their values in the vector.
    paths: tuple[str, ...]
    columns: np.ndarray
    #: (P,) Bounds on the scale of ``w``, whether the scale is logarithmic, and the first start.
    low: np.ndarray
    high: np.ndarray
    log: np.ndarray
    init: np.ndarray
    #: (P, 2) Mean and standard deviation of the priors; NaN for parameters without prior.
    prior: np.ndarray

    @property
    def size(self) -> int:
        """Number of free numbers."""
        return len(self.names)

    def values(self, z: np.ndarray) -> np.ndarray:
        """Parameters (..., P) from coordinates."""
        return off_scale(self.low + 0.5 * (self.high - self.low) * (1.0 + np.sin(z)), self.log)

    def slopes(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """First and second derivatives of the parameters by their coordinates."""
        half = 0.5 * (self.high - self.low)
        first, second = half * np.cos(z), -half * np.sin(z)
        x = self.values(z)
        return np.where(self.log, x * first, first), np.where(
            self.log, x * (second + first**2), second
        )

    def fractions(self, x: np.ndarray) -> np.ndarray:
        """Places of parameters (..., P) in their ranges: 0 at the lower bound, 1 at the upper."""
        return (on_scale(x, self.log) - self.low) / (self.high - self.low)

    def coordinates(self, x: np.ndarray) -> np.ndarray:
        """Coordinates of parameters (..., P), a little inside the bounds."""
        return np.arcsin(2.0 * np.clip(self.fractions(x), MARGIN, 1.0 - MARGIN) - 1.0)

    def at_bound(self, x: np.ndarray) -> np.ndarray:
        """-1 at the lower bound, 1 at the upper, else 0 (within 1e-4 of the range)."""
        fraction = self.fractions(x)
        return np.where(fraction < 1e-4, -1, np.where(fraction > 1.0 - 1e-4, 1, 0))

    def ranges(self, x: np.ndarray) -> np.ndarray:
        """Widths of the bounds; on logarithmic scales those of the tangent at ``x``."""
        width = self.high - self.low
        return np.where(self.log, x * width, width)

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper bounds of the parameters, each (P,)."""
        return off_scale(self.low, self.log), off_scale(self.high, self.log)

    def prior_terms(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Parts of the cost, its gradient and its curvature (P,) from the priors at ``x`` (B,
        P)."""
        has = np.isfinite(self.prior[:, 0])
        mean = np.where(has, self.prior[:, 0], 0.0)
        information = np.where(has, 1.0 / np.where(has, self.prior[:, 1], 1.0) ** 2, 0.0)
        off = x - mean
        return 0.5 * np.sum(off**2 * information, axis=-1), off * information, information

    def local(self, x: np.ndarray) -> np.ndarray:
        """Values (..., E, L) of each experiment from parameters (..., P)."""
        return x[..., self.columns]


def lay_out(
    free: Mapping[str, Free], defaults: Mapping[str, np.ndarray], labels: Sequence[str]
) -> Layout:
    """The layout of ``free``; ``defaults``: value of each path in each experiment (E,)."""
    if not free:
        raise ProblemError("free: found no parameter, give one, such as {'friction.mu': Free(...)}")
    names, columns, rows = [], [], []
    count = len(labels)
    for path, item in free.items():
        if not isinstance(item, Free):
            raise ProblemError(f"free.{path}: found {item!r}, needs a jfric.Free(lower, upper)")
        own = defaults[path]
        if item.per_experiment:
            columns.append(len(names) + np.arange(count))
            names += [f"{path}[{label}]" for label in labels]
            rows += [(item, own[i]) for i in range(count)]
        else:
            columns.append(np.full(count, len(names)))
            names.append(path)
            rows.append((item, own[0]))
    log = np.array([item.scale == "log" for item, _ in rows])
    return Layout(
        names=tuple(names),
        paths=tuple(free),
        columns=np.stack(columns, axis=1),
        low=on_scale(np.array([item.lower for item, _ in rows], float), log),
        high=on_scale(np.array([item.upper for item, _ in rows], float), log),
        log=log,
        init=np.array([_start(item, value) for item, value in rows]),
        prior=np.array([item.prior or (np.nan, np.nan) for item, _ in rows], float),
    )


def _start(item: Free, value: float) -> float:
    if item.init is not None:
        return item.init
    if item.lower <= value <= item.upper:
        return float(value)
    if item.scale == "log":
        return float(np.sqrt(item.lower * item.upper))
    return 0.5 * (item.lower + item.upper)


def full_path(problem: Problem, path: str) -> str:
    """The full form of the path of a parameter; ``path`` itself if it names no parameter of the
    problem but one of a sensor or the controller."""
    word, _, rest = path.partition(".")
    if word == "input":
        place, _, field = rest.rpartition(".")
        return f"input.{find_function(problem, place) or place}.{field}"
    try:
        return find_path(problem, path)
    except KeyError:
        return path


def full_free(problem: Problem, free: Mapping[str, Free]) -> dict[str, Free]:
    """``free`` by full paths; raises :class:`jfric.ProblemError` for a parameter named twice."""
    found: dict[str, Free] = {}
    for path, item in free.items():
        name = full_path(problem, path)
        if name in found:
            raise ProblemError(f"free: found {name!r} twice")
        found[name] = item
    return found


def full_signals(problem: Problem, names: Any) -> Any:
    """Names of measured signals, with those that are inputs replaced by their full paths."""
    if isinstance(names, str) or not isinstance(names, Sequence):
        return names
    return [find_function(problem, name) or name for name in names]


def full_experiment(problem: Problem, experiment: Experiment) -> Experiment:
    """``experiment`` with its inputs, and inputs among its signals, by their full paths."""

    def named(table: Any) -> Any:
        if not isinstance(table, Mapping):
            return table
        return {_function(problem, name): x for name, x in table.items()}

    fields = ("u", "y", "sigma", "mask", "resolution")
    known = {full_path(problem, path): x for path, x in (experiment.known or {}).items()}
    tables = {name: named(getattr(experiment, name)) for name in fields}
    return replace(experiment, **tables, known=known)


def _function(problem: Problem, name: str) -> str:
    """The full path of a function of time; of the load that a controller sets, also by the name of
    the load."""
    sets = {
        path
        for c in controllers(problem).values()
        for given in c.targets
        if (path := target(problem, given)) is not None
    }
    own = target(problem, name) if name not in problem.dofs else None
    return own if own in sets else find_function(problem, name) or name  # pyright: ignore


def full_controller(problem: Problem, controller: Controller) -> Controller:
    """``controller`` with the full path of the load that it drives."""
    drives = controller.drives
    return replace(controller, drives=target(problem, drives) or drives)
