"""Following one branch from a point in one direction, through all changes of mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from jfric.statics.branch import SpecialPoint, Step
from jfric.statics.branch_point import BranchPoint, Linearised
from jfric.statics.mode_change import (
    MAX_COMBINATIONS,
    HalfBranch,
    Scales,
    half_branches,
    modes_at,
    same_direction,
    scales_at,
)
from jfric.statics.reading import combinations
from jfric.statics.smooth_step import smooth_step
from jfric.statics.static_problem import StaticProblem

#: Steps shorter than this fraction of the interval end a branch.
SHORTEST = 1e-9
MAX_STEPS = 20_000


class Kernel(NamedTuple):
    """The problem as functions of the parameter: a point in given modes, the static problem, and
    the equations around a state."""

    point: Callable[[float, np.ndarray], BranchPoint]
    static: Callable[[float], StaticProblem]
    linearise: Callable[[float, np.ndarray, np.ndarray], Linearised]
    names: tuple[str, ...]
    n: int


class Row(NamedTuple):
    """One row of a branch."""

    p: float
    x: np.ndarray
    dx: np.ndarray
    mode: np.ndarray


class Trace(NamedTuple):
    """Rows, special points and steps of a branch followed in one direction; half-branches that
    leave it elsewhere, with the place they start from; whether it came back to its start."""

    rows: list[Row]
    special: list[SpecialPoint]
    steps: list[Step]
    left: list[tuple[float, np.ndarray, HalfBranch]]
    closed: bool
    remarks: list[str]


def follow(
    kernel: Kernel,
    p: float,
    x: np.ndarray,
    way: HalfBranch,
    limits: tuple[float, float],
    scales: Scales,
) -> Trace:
    """Follow the half-branch ``way`` from the state ``x`` at ``p`` until it ends."""
    trace = Trace([], [], [], [], False, [])
    low, high = min(limits), max(limits)
    span = high - low
    step, begin = span, (p, way)
    while len(trace.steps) < MAX_STEPS:
        mode = way.mode
        if way.dp == 0.0:
            x, ended = _vertical(kernel, trace, p, x, way)
            point = None
        else:
            side = 1.0 if way.dp > 0 else -1.0
            point = kernel.point(p, mode)
            _append(trace, point)
            point, ended, step = _smooth(kernel, trace, point, side, (low, high), step, begin)
            p, x = float(point.p), np.asarray(point.x)
            scales = scales_at(point, kernel.n, span, scales)
            dx = point.dx if np.all(np.isfinite(point.dx)) else np.zeros_like(x)
            way = HalfBranch(mode, side * np.asarray(dx), side)
        if ended is not None:
            kind, closed = ("end", True) if ended == "closed" else (ended, False)
            if not closed:
                trace.special.append(_special(kernel, kind, trace, p, x, way, None))
            return trace._replace(closed=closed)
        onward, remark = _ways_on(kernel, p, x, way, scales)
        if remark:
            trace.remarks.append(remark)
        kind = _kind(way, onward)
        following = onward[0] if onward else None
        trace.special.append(_special(kernel, kind, trace, p, x, way, following))
        trace.left.extend((p, x, other) for other in onward[1:])
        if following is None:
            return trace
        way = following
    trace.remarks.append(f"a branch was left after {MAX_STEPS} steps")
    return trace


def _append(trace: Trace, point: BranchPoint) -> None:
    x, dx, mode = (np.asarray(part) for part in (point.x, point.dx, point.mode))
    trace.rows.append(Row(float(point.p), x, dx, mode))


def _smooth(kernel: Kernel, trace: Trace, point, side, limits, step, begin):
    """Steps up to the next change of mode: the last point, how the branch ended (None: it goes
    on), and the length of step that served."""
    span = limits[1] - limits[0]
    mode = point.mode

    def at(p: float) -> BranchPoint:
        return kernel.point(p, mode)

    while True:
        target = limits[1] if side > 0 else limits[0]
        p = float(point.p)
        room = abs(target - p)
        if room <= 1e-14 * max(span, abs(p)):
            return point, "end", step
        h = side * min(step, room)
        outcome = smooth_step(at, point, h)
        trace.steps.append(Step(p, h, bool(outcome.points)))
        if not outcome.points:
            step = 0.5 * abs(h)
            if step < SHORTEST * span:
                return point, "asymptote", span
            continue
        start, way = begin
        passed = min(p, float(outcome.points[-1].p)) < start < max(p, float(outcome.points[-1].p))
        if passed and np.array_equal(mode, way.mode) and side * way.dp > 0:
            _append(trace, at(start))
            return at(start), "closed", step
        for reached in outcome.points:
            _append(trace, reached)
        point = outcome.points[-1]
        if outcome.crossing:
            return point, None, max(step, abs(h))
        step = min(2.0 * abs(h), span) if abs(h) >= step else step
        if len(trace.steps) >= MAX_STEPS:
            return point, "asymptote", step


def _vertical(kernel: Kernel, trace: Trace, p: float, x: np.ndarray, way: HalfBranch):
    """To the end of a segment of solutions at one value of the parameter."""
    at = kernel.linearise(p, way.mode, x)
    margin, rate = np.asarray(at.margin), np.asarray(at.G) @ way.dx
    size = np.abs(np.asarray(at.G)) @ np.abs(way.dx)
    falls = np.asarray(at.used) & (rate < -1e-9 * size)
    unknown = np.full_like(x, np.nan)
    trace.rows.append(Row(p, x, unknown, way.mode))
    if not falls.any():
        return x, "asymptote"
    length = np.min(np.maximum(margin[falls], 0.0) / -rate[falls])
    x = x + length * way.dx
    trace.rows.append(Row(p, x, unknown, way.mode))
    return x, None


def _ways_on(kernel: Kernel, p: float, x: np.ndarray, came: HalfBranch, scales: Scales):
    """Half-branches at a mode-change point but the one that was come by, those in the old direction
    last; and a remark where there are too many combinations."""
    choices = modes_at(kernel.static(p), x, scales)
    if np.prod([float(len(c)) for c in choices]) > MAX_COMBINATIONS:
        places = sum(len(c) > 1 for c in choices)
        return [], f"{places} contacts change at {p:.12g} at once: more than can be tried"
    ways = half_branches(combinations(choices), lambda mode: kernel.linearise(p, mode, x), scales)
    back = HalfBranch(came.mode, -came.dx, -came.dp)
    size = np.linalg.norm(np.append(back.dx / scales.x, back.dp / scales.p))
    back = HalfBranch(back.mode, back.dx / size, float(back.dp / size))
    return [way for way in ways if not same_direction(way, back, scales)], ""


def _kind(came: HalfBranch, onward: list[HalfBranch]):
    if not onward:
        return "dead end"
    if len(onward) > 1:
        return "bifurcation"
    if came.dp == 0.0 or onward[0].dp == 0.0:
        return "vertical"
    return "fold" if onward[0].dp * came.dp < 0 else "mode change"


def _special(kernel: Kernel, kind, trace: Trace, p, x, came, onward) -> SpecialPoint:
    n, nt = kernel.n, len(kernel.names)

    def slope(way: HalfBranch | None):
        if way is None:
            return None
        return way.dx[:n] / way.dp if way.dp else np.full(n, np.nan)

    changed = () if onward is None else np.flatnonzero(came.mode != onward.mode)
    return SpecialPoint(
        kind=kind,
        parameter=p,
        q=x[:n],
        lambda_t=x[n : n + nt],
        lambda_n=x[n + nt :],
        mode_before=came.mode,
        mode_after=None if onward is None else onward.mode,
        dq_before=slope(came),
        dq_after=slope(onward),
        contacts=tuple(kernel.names[i] for i in changed),
        row=len(trace.rows) - 1,
    )


def first_ways(kernel: Kernel, p: float, x: np.ndarray, scales: Scales) -> list[HalfBranch]:
    """All half-branches that leave a state: two from a point inside one combination of modes."""
    choices = modes_at(kernel.static(p), x, scales)
    if np.prod([float(len(c)) for c in choices]) > MAX_COMBINATIONS:
        return []
    ways = half_branches(combinations(choices), lambda mode: kernel.linearise(p, mode, x), scales)
    return ways
