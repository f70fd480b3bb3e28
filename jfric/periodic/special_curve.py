"""Curves of folds, flips and changes of events over a second parameter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from jfric.errors import ProblemError
from jfric.numerics.continuation import halved, run
from jfric.numerics.limits import require_count
from jfric.numerics.printing import printable
from jfric.periodic.continuation import rows_of
from jfric.periodic.path import OrbitKind, OrbitPoint
from jfric.periodic.path_kernel import Kernel, PathPoint, alone, corrected, moved
from jfric.periodic.path_start import PathProblem, begun_at
from jfric.periodic.special_points import tests
from jfric.statics.path_names import checked_path
from jfric.system.model import build
from jfric.system.naming import parameters, set_parameters
from jfric.system.problem import Problem
from jfric.system.validation import validate

#: Most steps of the secant rule, and change of place along the path below which it ends.
ROUNDS, LOCATED = 25, 1e-12
#: First distance along the path, in sizes of the motion and of the interval, and the farthest one
#: at which the change is searched.
FIRST, FARTHEST = 1e-4, 0.2
#: Halvings that narrow down a change of events.
HALVINGS = 45
#: Kinds of points whose curves can be followed.
FOLLOWED: tuple[OrbitKind, ...] = ("fold", "flip", "torus", "event change")
#: The orbit at a place along the path, or None.
At = Callable[[float], PathPoint | None]


@printable
@dataclass(frozen=True)
class SpecialCurve:
    """Special points of one kind over a second parameter, row by row.

    ``kind``; ``names``: full paths of both parameters; ``parameter``, ``second`` (r,) [SI]: their
    values; ``state`` (r, 2n), ``period`` (r,) [s], ``multipliers`` (r, 2n): the orbits; ``time``
    [s]: their start. ``remarks``: why the curve ends early, in words.
    Example: see :func:`jfric.continue_special`.
    """

    kind: OrbitKind
    names: tuple[str, str]
    parameter: np.ndarray
    second: np.ndarray
    state: np.ndarray
    period: np.ndarray
    multipliers: np.ndarray
    time: float
    remarks: tuple[str, ...] = ()


def continue_special(
    problem: Problem,
    path: str,
    point: OrbitPoint,
    second: str,
    stop: float,
    *,
    points: int = 21,
    span: float | None = None,
    segments: int = 1,
    **options: Any,
) -> SpecialCurve:
    """Curve of a fold, a flip, a torus or a change of events over two parameters.

    ``point``: one of a path of ``problem`` over the parameter ``path``. ``second``: another
    parameter, which goes from its value in the problem to ``stop`` [SI] in ``points`` equal steps.
    At each value orbits are taken on a plane at right angles to the path, and the place at which
    the tangent has no part along the parameter (fold), ``det(M + I) = 0`` (flip), a pair of
    multipliers has the size one (torus), or the sequence of events changes (grazing, a first
    stick) is found along the path by the secant rule, or by halving for events. Each search begins
    on the line through the last two points. ``span``: size of the first parameter to which
    distances are relative, by default its own value. ``segments``, ``options``: as for the path.

    A curve whose next point is not found ends early, with a remark; it is not followed round if it
    turns back in the second parameter. Raises :class:`jfric.ProblemError` for other kinds of points
    and unknown parameters. Source: Y. A. Kuznetsov, Elements of Applied Bifurcation Theory (2004).
    After the example of :func:`jfric.continue_orbit`, the friction at which a motion begins to
    stick, over the damping::

        >>> curve = jfric.continue_special(
        ...     shaken, "friction.mu", path.special[0], "damper.c", 0.12, points=3
        ... )
        >>> curve.second.round(9).tolist(), curve.parameter.round(6).tolist(), curve.remarks
        ([0.1, 0.11, 0.12], [0.729441, 0.721372, 0.713425], ())
    """
    problem = build(problem)
    name, other, first, span = _checked(problem, path, point, second, stop, points, span)
    path_problem = PathProblem(problem, name, (0.0, span), segments, options)
    kernel, start = alone(begun_at(path_problem, point))
    values = np.linspace(first, float(stop), points)
    rows: list[PathPoint] = []
    remarks: tuple[str, ...] = ()
    for value in values:
        changed = set_parameters(kernel.problem, {other: jnp.asarray(value)})
        found = _there(kernel._replace(problem=changed), point, rows, start)
        if found is None:
            remarks = (f"the {point.kind} was not found at {other} = {value:g}",)
            break
        rows.append(found)
    columns = rows_of(rows, len(start.orbit.state)).columns
    return SpecialCurve(
        kind=point.kind,
        names=(name, other),
        second=values[: len(rows)],
        **{k: columns[k] for k in ("parameter", "state", "period", "multipliers")},
        time=point.time,
        remarks=remarks,
    )


def _checked(
    problem: Problem, path: str, point: OrbitPoint, second: str, stop: float, points: int, span: Any
) -> tuple[str, str, float, float]:
    """Full paths of both parameters, the second one's value in the problem, and the first one's
    size."""
    name, other = checked_path(problem, path), checked_path(problem, second)
    if point.kind not in FOLLOWED:
        raise ProblemError(
            f"point: found one of the kind {point.kind!r}, followed are {', '.join(FOLLOWED)}"
        )
    if name == other:
        raise ProblemError(f"second: found {other}, which is the parameter of the path itself")
    require_count("points", points, 2, 10**5)
    first = float(np.asarray(parameters(problem)[other]))
    if not np.isfinite(stop) or stop == first:
        raise ProblemError(f"stop: found {stop:g}, must differ from {other} = {first:g}")
    validate(set_parameters(problem, {other: float(stop), name: point.parameter}))
    span = abs(point.parameter) or 1.0 if span is None else float(span)
    if not span > 0.0:
        raise ProblemError(f"span: found {span:g}, must be positive")
    return name, other, first, span


def _there(
    kernel: Kernel, point: OrbitPoint, rows: list[PathPoint], start: PathPoint
) -> PathPoint | None:
    """The special point for one value of the second parameter, on the line of the last points."""
    last = rows[-1] if rows else start
    guess = last.u if len(rows) < 2 else 2.0 * last.u - rows[-2].u
    tangent = last.tangent

    def at(s: float) -> PathPoint | None:
        z = moved(kernel, last.z, guess - last.u + s * tangent)
        return alone(corrected(kernel, z, last.phase, tangent, guess, s))

    if point.kind == "event change":
        return _changed(at, point.before)
    return _zero(at, lambda x: tests(x, None)[point.kind])


def _zero(at: At, off: Callable[[PathPoint], float]) -> PathPoint | None:
    """The orbit at which ``off`` is zero, by the secant rule."""
    old, new = at(0.0), at(FIRST)
    if old is None or new is None:
        return None
    a, b, f, g = 0.0, FIRST, off(old), off(new)
    for _ in range(ROUNDS):
        if g == f:
            return new if abs(b - a) <= LOCATED else None
        step = float(np.clip(-g * (b - a) / (g - f), -FARTHEST, FARTHEST))
        if abs(step) <= LOCATED:
            return new
        found = at(b + step)
        if found is None or abs(b + step) > FARTHEST:
            return None
        a, f, b, new = b, g, b + step, found
        g = off(found)
    return None


def _changed(at: At, events: tuple[str, ...]) -> PathPoint | None:
    """The last orbit with ``events``: the change is bracketed, then located by halving."""

    def same(s: float) -> bool:
        found = at(s)
        return found is not None and found.events == events

    inside, s = same(0.0), FIRST
    while s <= FARTHEST:
        for side in (s, -s):
            if same(side) != inside:
                low, high = (0.0, side) if inside else (side, 0.0)
                return at(run(halved(low, high, 0.0, 0.0, HALVINGS), same)[0])
        s *= 2.0
    return None
