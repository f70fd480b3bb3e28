"""A friction curve as a straight line plus bends; in a smooth curve the bends are small.

Over ``x = ln(1 + v/speeds[1])`` the values at the knots are::

    y = start + (end - start) x/x_n + B b,    b_i = (y_i+1 - y_i)/h_i - (y_i - y_i-1)/h_i-1

with ``B b`` zero at both ends. The bends ``b`` are independent and normal, with mean zero and one
standard deviation ``tau``; the line is free. This writes the penalty of second differences ``sum
b^2 / (2 tau^2)`` as a prior of single numbers, as fits take it. Source: G. Wahba, Spline Models for
Observational Data (1990); P. H. C. Eilers, B. D. Marx, Flexible smoothing with B-splines and
penalties, Statistical Science 11 (1996).
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jfric.errors import ProblemError, nearest
from jfric.fits.free import Free
from jfric.system.friction import Friction
from jfric.system.laws import Directional, FrictionCurve
from jfric.system.problem import Problem

#: Most knots: a value is written as a sum over all bends, and the length of a text is limited.
MOST_KNOTS = 24
#: Limit of values at the ends and of slopes, as a multiple of those of the problem's curve.
REACH = 20.0


@dataclass(frozen=True)
class Side:
    """One curve: names of its parameters, and the matrix to the values at its knots (k,)."""

    field: str
    names: tuple[str, ...]
    matrix: np.ndarray
    start: np.ndarray

    @property
    def bends(self) -> tuple[str, ...]:
        """Paths of the bends."""
        return tuple(f"parameters.{name}" for name in self.names[2:])

    @property
    def paths(self) -> tuple[str, ...]:
        """Paths of all parameters of the curve."""
        return tuple(f"parameters.{name}" for name in self.names)


def find_curve(problem: Problem, element: str | None) -> tuple[str, str, FrictionCurve]:
    """Section and name of the element whose law is the curve to be fitted, and the curve."""
    found = {
        label: (section, name, part.law)
        for section in ("friction", "contact")
        for label, (name, part) in _labelled(problem, section).items()
        if isinstance(part.law, FrictionCurve)
    }
    if element is None and len(found) == 1:
        return next(iter(found.values()))
    if element not in found:
        there = ", ".join(found) or "none; give a jfric.FrictionCurve as the law of a friction"
        raise ProblemError(
            f"element: found {element!r}{nearest(str(element), found)}, elements with a friction "
            f"curve are {there}"
        )
    return found[element]


def _labelled(problem: Problem, section: str) -> dict:
    names = problem.section(section)
    labels = problem.labelled(section)
    return dict(zip(labels, names.items(), strict=True))


def with_bends(problem: Problem, element: str | None) -> tuple[Problem, list[Side]]:
    """The problem with the knots of its curve as expressions of start, end and bends."""
    section, name, law = find_curve(problem, element)
    known = problem.resolved().section(section)[name].law
    speeds = np.array([float(v) for v in known.speeds])
    if not 3 <= speeds.size <= MOST_KNOTS:
        raise ProblemError(
            f"speeds: found {speeds.size} knots, a curve is found at 3 to {MOST_KNOTS} of them"
        )
    x = np.log1p(speeds / speeds[1])
    matrix = _matrix(x)
    sides, numbers = [], {}
    curves = (
        {"_positive": known.curve.positive, "_negative": known.curve.negative}
        if isinstance(known.curve, Directional)
        else {"": known.curve}
    )
    for suffix, values in curves.items():
        y = np.array([float(value) for value in values])
        own = ["start", "end", *(f"bend_{i}" for i in range(1, x.size - 1))]
        names = tuple(f"curve{suffix}_{part}" for part in own)
        for taken in set(names) & set(problem.parameters):
            raise ProblemError(f"parameters.{taken}: the fit of a curve uses this name; rename it")
        sides.append(Side(suffix[1:], names, matrix, np.linalg.solve(matrix, y)))
        # Far above any bend, so that no bound of a single bend leaves a knot negative.
        high = 2.0 * np.abs(matrix[:, 2:]).max() * _largest_bend(x, y)
        numbers |= dict(zip(names, [high, high, *[0.0] * (x.size - 2)], strict=True))
    texts = [_texts(side) for side in sides]
    curve = Directional(*texts) if len(texts) == 2 else texts[0]
    part: Friction = problem.section(section)[name]
    part = replace(part, law=replace(law, curve=curve, mu_s=None))
    numbers = {**problem.parameters, **numbers}
    return with_elements(problem, {section: {name: part}}, numbers), sides


def with_elements(
    problem: Problem,
    changed: Mapping[str, Mapping[str, Any]],
    parameters: Mapping[str, Any] | None = None,
    without: Container[str] = (),
) -> Problem:
    """``problem`` with new or ``changed`` elements by section and name, ``without`` some sections,
    and with other shared ``parameters``."""
    elements = {k: dict(group) for k, group in problem.elements.items() if k not in without}
    for section, group in changed.items():
        elements[section] = {**elements.get(section, {}), **group}
    return Problem(
        problem.dofs,
        elements,
        initial=problem.initial,
        time=problem.time,
        parameters=problem.parameters if parameters is None else parameters,
        matrices=problem.matrices,
        follows=problem.follows,
    )


def free_of(
    side: Side, speeds: np.ndarray, tau: float, start: Mapping[str, float] | None = None
) -> dict[str, Free]:
    """Free parameters of a curve, with bends of the standard deviation ``tau``, starting from
    ``start`` or from the curve of the problem."""
    x = np.log1p(speeds / speeds[1])
    y = side.matrix @ side.start
    begin = dict(zip(side.paths, side.start, strict=True)) if start is None else start
    high, bend = REACH * float(y.max()), _largest_bend(x, y)
    found = {}
    for i, path in enumerate(side.paths):
        low, up = (0.0, high) if i < 2 else (-bend, bend)
        init = float(np.clip(begin[path], low, up))
        prior = None if i < 2 else (0.0, tau)
        found[path] = Free(low, up, init=init, scale="linear", prior=prior)
    return found


def _largest_bend(x: np.ndarray, y: np.ndarray) -> float:
    return REACH * float(y.max()) / float(np.diff(x).min())


def _matrix(x: np.ndarray) -> np.ndarray:
    """Matrix from start, end and bends to the values at the knots."""
    h, k = np.diff(x), x.size
    bends = np.zeros((k - 2, k))
    for i in range(k - 2):
        bends[i, i : i + 3] = 1.0 / h[i], -1.0 / h[i] - 1.0 / h[i + 1], 1.0 / h[i + 1]
    matrix = np.zeros((k, k))
    matrix[:, 1] = (x - x[0]) / (x[-1] - x[0])
    matrix[:, 0] = 1.0 - matrix[:, 1]
    matrix[1:-1, 2:] = np.linalg.inv(bends[:, 1:-1])
    return matrix


def _texts(side: Side) -> tuple[str, ...]:
    """Expression of each value in the parameters."""
    rows = (zip(row, side.names, strict=True) for row in side.matrix)
    return tuple("".join(f"{x:+.12g}*${name}" for x, name in row if x) for row in rows)
