"""Free parameters of a fit, and checks of the bounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from jfric.errors import ProblemError, nearest, require_no_text
from jfric.system.bounds import bounds_of
from jfric.system.expression import Expression
from jfric.system.inertia import has_inertia
from jfric.system.naming import parameters, with_numbers
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
        if self.scale not in ("log", "linear"):
            hint = nearest(self.scale, ("log", "linear"))
            raise ProblemError(f"scale: found {self.scale!r}{hint}, allowed are 'log' and 'linear'")
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
