"""Following a branch of states of a mechanism, through limit points and changes of mode."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jfric.statics.arc import Arc, PositionKernel
from jfric.statics.branch import Kind, SpecialPoint, Step
from jfric.statics.branch_point import BranchPoint
from jfric.statics.follow import MAX_STEPS, Row, Trace
from jfric.statics.mode_change import (
    MAX_COMBINATIONS,
    HalfBranch,
    Scales,
    half_branches,
    same_direction,
)
from jfric.statics.reading import AT_CHANGE, combinations, modes_of
from jfric.statics.smooth_step import smooth_step

#: First and longest steps along a branch, and the length of one below which it ends.
FIRST, LONGEST, SHORTEST = 0.05, 0.5, 1e-8
#: How far from where they were positions are followed, in lengths of the problem, or radians.
REACH = 20.0
#: States closer than this are the same.
SAME = 1e-7


class _At(NamedTuple):
    """Where a branch has come to, and the way on from there."""

    p: float
    x: np.ndarray
    way: HalfBranch


def follow_arc(
    kernel: PositionKernel,
    p: float,
    x: np.ndarray,
    way: HalfBranch,
    limits: tuple[float, float],
    scales: Scales,
) -> Trace:
    """Follow the half-branch ``way`` from the state ``x`` at ``p`` until it ends."""
    trace = Trace([], [], [], [], False, [])
    low_high = min(limits), max(limits)
    start = now = _At(p, x, way)
    while len(trace.steps) < MAX_STEPS:
        now, ended = _smooth(kernel, trace, now, start, low_high, scales)
        if ended == "closed":
            return trace._replace(closed=True)
        if ended is not None:
            trace.special.append(_special(kernel, ended, trace, now, None))
            return trace
        onward, remark = _ways_on(kernel, now, scales)
        if remark:
            trace.remarks.append(remark)
        following = onward[0] if onward else None
        trace.special.append(_special(kernel, _kind(now.way, onward), trace, now, following))
        trace.left.extend((now.p, now.x, other) for other in onward[1:])
        if following is None:
            return trace
        now = _At(now.p, now.x, following)
    trace.remarks.append(f"a branch was left after {MAX_STEPS} steps")
    return trace


def _smooth(kernel: PositionKernel, trace: Trace, now: _At, start: _At, limits, scales: Scales):
    """To the next change of mode: the state there, and how the branch ended (None: it goes on)."""
    h, turned, first = FIRST, 0.0, None
    while len(trace.steps) < MAX_STEPS:
        arc = _arc(kernel, now, limits, scales)
        begin = arc.at(0.0)
        if not np.all(np.isfinite(begin.x)):
            return now, "asymptote"
        if first is None:
            first = begin
            _append(trace, arc, begin)
            turned = arc.orientation(begin)
        found = smooth_step(arc.at, begin, h)
        trace.steps.append(Step(now.p, h, bool(found.points)))
        if not found.points:
            h *= 0.5
            if h < SHORTEST:
                return now, "asymptote"
            continue
        points, crossing = found.points, found.crossing
        fold = None if crossing else _limit_point(arc, begin, points[-1])
        if fold is not None:
            points = [fold]
        if _comes_back(arc, points[-1], start, now):
            _append(trace, arc, arc.at(_distance(arc, start)))
            return now, "closed"
        for point in points:
            _append(trace, arc, point)
        last = points[-1]
        came, now = now, _state(arc, last)
        if fold is not None:
            trace.special.append(_special(kernel, "fold", trace, now, now.way))
        sign = arc.orientation(last)
        if sign != turned and not crossing:
            trace.remarks.append(
                f"another branch crosses between {min(came.p, now.p):.6g} and "
                f"{max(came.p, now.p):.6g}, and is not followed"
            )
        turned = sign
        if crossing:
            return now, "end" if _at_limit(now, limits) else None
        far = np.abs((now.x - start.x) / scales.x)[: kernel.facts.n]
        if np.max(far, initial=0.0) > REACH:
            trace.remarks.append(
                f"a branch was left where positions are {REACH:.0f} lengths of the system, or "
                "radians, away from its start"
            )
            return now, "asymptote"
        h = min(2.0 * h, LONGEST)
    return now, "asymptote"


def _arc(kernel: PositionKernel, now: _At, limits, scales: Scales) -> Arc:
    d = np.append(now.way.dx / scales.x, now.way.dp / scales.p)
    return Arc(kernel, now.way.mode, now.x, now.p, d / np.linalg.norm(d), scales, limits)


def _state(arc: Arc, point: BranchPoint) -> _At:
    u, rate, scales = np.asarray(point.x), np.asarray(point.dx), arc.scales
    way = HalfBranch(arc.mode, rate[:-1] * scales.x, float(rate[-1] * scales.p))
    p = float(u[-1] * scales.p)
    nearest = min(arc.limits, key=lambda limit: abs(limit - p))
    rounds = 8.0 * np.finfo(float).eps * max(scales.p, *map(abs, arc.limits))
    return _At(nearest if abs(nearest - p) <= rounds else p, u[:-1] * scales.x, way)


def _append(trace: Trace, arc: Arc, point: BranchPoint) -> None:
    now, mode = _state(arc, point), arc.mode
    trace.rows.append(Row(now.p, now.x, _slope(now.way), mode))


def _slope(way: HalfBranch) -> np.ndarray:
    """Derivatives by the parameter; none where it stands still."""
    norm = np.linalg.norm(np.asarray(way.dx))
    if way.dp == 0.0 or abs(way.dp) <= AT_CHANGE * norm * 1e-3:
        return np.full_like(np.asarray(way.dx), np.nan)
    return np.asarray(way.dx) / way.dp


def _limit_point(arc: Arc, first: BranchPoint, last: BranchPoint) -> BranchPoint | None:
    """Where the parameter turns around between two points, if it does, by halving."""
    begin, end = float(first.dx[-1]), float(last.dx[-1])
    if abs(begin) <= AT_CHANGE or abs(end) <= AT_CHANGE or begin * end > 0:
        return None
    low, high, point = 0.0, float(last.p), last
    for _ in range(60):
        middle = 0.5 * (low + high)
        point = arc.at(middle)
        rate = float(point.dx[-1])
        if middle in (low, high) or rate == 0.0:
            break
        low, high = (middle, high) if rate * begin > 0 else (low, middle)
    return point


def _distance(arc: Arc, start: _At) -> float:
    """Where along the arc the start of the branch would be."""
    u = np.append(start.x / arc.scales.x, start.p / arc.scales.p)
    return float(arc.d @ (u - np.append(arc.x / arc.scales.x, arc.p / arc.scales.p)))


def _comes_back(arc: Arc, last: BranchPoint, start: _At, now: _At) -> bool:
    """Whether the branch goes through its start again on the way to ``last``."""
    if now is start or not np.array_equal(arc.mode, start.way.mode):
        return False
    s = _distance(arc, start)
    if not AT_CHANGE < s <= float(last.p):
        return False
    u = np.append(start.x / arc.scales.x, start.p / arc.scales.p)
    return bool(np.max(np.abs(np.asarray(arc.at(s).x) - u)) <= SAME)


def _at_limit(now: _At, limits: tuple[float, float]) -> bool:
    span = limits[1] - limits[0]
    outward = (now.p - limits[0], limits[1] - now.p)
    return (outward[0] <= AT_CHANGE * span and now.way.dp < 0) or (
        outward[1] <= AT_CHANGE * span and now.way.dp > 0
    )


def position_ways(
    kernel: PositionKernel, p: float, x: np.ndarray, scales: Scales
) -> tuple[list[HalfBranch], str]:
    """All half-branches that leave a state; a remark where there are too many combinations."""
    facts = kernel.facts
    length = AT_CHANGE * float(np.max(scales.x[: facts.n]))
    choices = modes_of(
        kernel.reading(p, x), facts.rubs, length, AT_CHANGE * float(np.max(scales.x[facts.n :]))
    )
    if np.prod([float(len(c)) for c in choices]) > MAX_COMBINATIONS:
        places = sum(len(c) > 1 for c in choices)
        return [], f"{places} contacts change at {p:.12g} at once: more than can be tried"
    known = combinations(choices, facts.opposed)
    return half_branches(known, lambda mode: kernel.linearise(p, mode, x), scales), ""


def _ways_on(kernel: PositionKernel, now: _At, scales: Scales):
    """Half-branches at a change of mode but the one that was come by."""
    ways, remark = position_ways(kernel, now.p, now.x, scales)
    size = np.linalg.norm(np.append(now.way.dx / scales.x, now.way.dp / scales.p))
    back = HalfBranch(now.way.mode, -now.way.dx / size, float(-now.way.dp / size))
    return [way for way in ways if not same_direction(way, back, scales)], remark


def _kind(came: HalfBranch, onward: list[HalfBranch]) -> Kind:
    if not onward:
        return "dead end"
    if len(onward) > 1:
        return "bifurcation"
    if onward[0].dp == 0.0:
        return "vertical"
    return "fold" if onward[0].dp * came.dp < 0 else "mode change"


def _special(kernel: PositionKernel, kind, trace: Trace, now: _At, onward) -> SpecialPoint:
    n, nt, nu = kernel.facts.n, kernel.facts.nt, kernel.facts.nu
    changed = () if onward is None else np.flatnonzero(now.way.mode != onward.mode)
    return SpecialPoint(
        kind=kind,
        parameter=now.p,
        q=now.x[:n],
        lambda_t=now.x[n : n + nt],
        lambda_n=now.x[n + nt : n + nt + nu],
        mode_before=now.way.mode,
        mode_after=None if onward is None else onward.mode,
        dq_before=_slope(now.way)[:n],
        dq_after=None if onward is None else _slope(onward)[:n],
        contacts=tuple(kernel.facts.names[i] for i in changed),
        row=len(trace.rows) - 1,
    )
