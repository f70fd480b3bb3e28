"""Branches of equilibria over a parameter: of systems whose equations are linear in each mode, and
of mechanisms, by their arc."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float

from jfric.numerics.continuation import Lengths, run, zero
from jfric.statics.all_equilibria import Equilibria, equilibria, position_equilibria
from jfric.statics.branch import Branch
from jfric.statics.branch_point import (
    BranchPoint,
    HalfBranch,
    Linearised,
    Scales,
    branch_point,
    linearised,
    on_host,
    scales_at,
)
from jfric.statics.follower import Curves, Piece, Place
from jfric.statics.position_problem import (
    at_rest,
    position_equations,
    scales_of,
    state_equations,
)
from jfric.statics.static_problem import AT_CHANGE, Reading, in_modes, static_problem
from jfric.system.naming import set_parameters
from jfric.system.problem import Problem

PointAt = Callable[[float, np.ndarray], BranchPoint]

#: Length, as a part of the interval, below which a step ends a branch.
SHORTEST = 1e-9


class Straight(Piece):
    """A branch whose coordinate is the parameter, ahead of the place ``here``."""

    def __init__(self, point: PointAt, here: Place, limits: tuple[float, float]):
        self._point, self._mode = point, here.way.mode
        self._side = 1.0 if here.way.dp > 0 else -1.0
        self._target = limits[1] if self._side > 0 else limits[0]
        self._span = limits[1] - limits[0]
        self.begin = self.at(here.p)
        self.here = self.place(self.begin)

    def at(self, s: float) -> BranchPoint:
        """The point at the value ``s`` of the parameter."""
        return self._point(s, self._mode)

    def step(self, size: float) -> float:
        p = self.here.p
        room = abs(self._target - p)
        if room <= 1e-14 * max(self._span, abs(p)):
            return 0.0
        return self._side * min(size, room)

    def place(self, point: BranchPoint) -> Place:
        x, dx = np.asarray(point.x), np.asarray(point.dx)
        dx = dx if np.all(np.isfinite(dx)) else np.zeros_like(x)
        return Place(float(point.p), x, HalfBranch(self._mode, self._side * dx, self._side))

    def passed(self, start: Place, last: BranchPoint) -> BranchPoint | None:
        low, high = sorted((self.here.p, float(last.p)))
        same = np.array_equal(self._mode, start.way.mode) and self._side * start.way.dp > 0
        return self.at(start.p) if same and low < start.p < high else None


class StraightPaths(Curves):
    """The branches over the parameter ``name``, each followed by the parameter itself."""

    def __init__(self, problem: Problem, name: str, t, span: float, starts: int):
        super().__init__(problem, name, t, span)
        self.many = starts
        self.point = on_host(_linear_point, problem, name, t)
        self.reading = on_host(_linear_reading, problem, name, t)
        self.linearise = on_host(_linear_equations, problem, name, t)
        static = eqx.filter_eval_shape(static_problem, problem)
        self.parts, self.names, self.rubs = static.parts, static.names, static.rubs
        self.first, self.lengths = span, Lengths(span, SHORTEST * span)

    def equilibria(self, value: float) -> Equilibria:
        problem = set_parameters(self.problem, {self.name: value})
        found = equilibria(problem, t=self.t, starts=self.many)
        assert isinstance(found, Equilibria)
        return found

    def scales(self, value: float, x: np.ndarray, mode: np.ndarray) -> Scales:
        """Magnitudes of the unknowns around a state."""
        del x
        return scales_at(self.point(value, mode), self.parts.n, self.span)

    def piece(self, here: Place, limits: tuple[float, float], scales: Scales) -> Straight:
        del scales
        return Straight(self.point, here, limits)

    def upright(self, way: HalfBranch) -> bool:
        return way.dp == 0.0

    def larger(self, scales: Scales, last: BranchPoint) -> Scales:
        return scales_at(last, self.parts.n, self.span, scales)

    def passes(self, branch: Branch, p: float, x: np.ndarray, ways: list, scales: Scales) -> bool:
        """Whether ``branch`` goes through the state ``x`` at ``p`` (and, if given, along
        ``ways[0]``)."""
        del scales
        size = np.maximum(np.abs(x), 1e-6 * np.max(np.abs(x), initial=0.0))
        scale = np.where(size > 0, size, 1.0)
        for part in branch.segments():
            low, high = np.min(branch.parameter[part]), np.max(branch.parameter[part])
            slack = 1e-9 * max(abs(low), abs(high), 1e-300)
            if not low - slack <= p <= high + slack:
                continue
            mode = branch.mode[part.start]
            if low == high:
                continue
            if ways:
                side = ways[0].dp
                if not np.array_equal(mode, ways[0].mode) or not low <= p + side * slack <= high:
                    continue
            there = self.point(p, mode).x
            if np.all(np.abs(there - x) <= 1e-7 * np.maximum(scale, np.max(np.abs(x)))):
                return True
        return False


def _linear_point(problems, t, p, mode) -> BranchPoint:
    return branch_point(lambda p: static_problem(problems(p), t), p, mode)


def _linear_reading(problems, t, p, x) -> Reading:
    return static_problem(problems(p), t).reading(x)[1]


def _linear_equations(problems, t, p, mode, x) -> Linearised:
    def equations(p):
        static = static_problem(problems(p), t)
        return lambda x: in_modes(*static.reading(x), mode)

    return linearised(equations, p, x)


LineariseAt = Callable[[float, np.ndarray, np.ndarray], Linearised]

#: Most steps of Newton's method, and size of its last one.
STEPS, NEAR = 12, 1e-11
#: Distance below which states are the same.
SAME = 1e-7


class Arc(Piece):
    """The curve of states in fixed modes near the place ``here``.

    With ``u = (x / scale, p / span)`` the point at the distance ``s`` from ``u_0`` satisfies::

        F(x, p) = 0,    d . (u - u_0) = s

    ``d`` is the tangent at ``u_0``. The curve may turn around in the parameter (a limit point),
    which needs no special treatment here.
    """

    def __init__(
        self,
        linearise: LineariseAt,
        here: Place,
        scales: Scales,
        limits: tuple[float, float],
    ):
        self.linearise, self.here, self.scales, self.limits = linearise, here, scales, limits
        self.mode = here.way.mode
        d = np.append(here.way.dx / scales.x, here.way.dp / scales.p)
        #: Unit tangent (m + 1,) at ``u0``.
        self.d = d / np.linalg.norm(d)
        self.u0 = self._scaled(here)
        self.begin = self.at(0.0)

    def _scaled(self, place: Place) -> np.ndarray:
        return np.append(place.x / self.scales.x, place.p / self.scales.p)

    def at(self, s: float) -> BranchPoint:
        """The point at the distance ``s``; NaN if there is none. Its unknowns are ``u``, with
        derivatives by ``s``, and its margins end with those of the parameter."""
        begin = self.u0
        u = begin + s * self.d
        at, change = self._linearised(u), np.inf
        for _ in range(STEPS):
            at = self._linearised(u)
            A = self._bordered(at)
            defect = np.append(np.asarray(at.defect), self.d @ (u - begin) - s)
            if not (np.all(np.isfinite(A)) and np.all(np.isfinite(defect))):
                return self._nowhere(u, at)
            try:
                du = -_solved(A, defect)
            except np.linalg.LinAlgError:
                return self._nowhere(u, at)
            last, change = change, float(np.max(np.abs(du)))
            if change > 2.0 * last + NEAR or change > 1.0 + abs(s):
                return self._nowhere(u, at)
            u = u + du
            if change <= NEAR * (1.0 + float(np.max(np.abs(u)))):
                break
        else:
            return self._nowhere(u, at)
        at = self._linearised(u)
        rate = _solved(self._bordered(at), np.append(np.zeros(len(u) - 1), 1.0))
        return self._point(s, u, rate, at)

    def _linearised(self, u: np.ndarray) -> Linearised:
        return self.linearise(u[-1] * self.scales.p, self.mode, u[:-1] * self.scales.x)

    def _bordered(self, at: Linearised) -> np.ndarray:
        r = np.asarray(at.r)[:, None] * self.scales.p
        return np.vstack([np.hstack([np.asarray(at.A) * self.scales.x, r]), self.d])

    def _point(self, s: float, u, rate, at: Linearised) -> BranchPoint:
        G = np.asarray(at.G) * self.scales.x
        drift = np.asarray(at.drift) * self.scales.p
        size = np.sum(np.abs(G), axis=1) + np.abs(drift) + np.abs(np.asarray(at.margin))
        low, high = (p / self.scales.p for p in self.limits)
        room = np.asarray([u[-1] - low, high - u[-1]])
        fields: Any = {
            "p": np.float64(s),
            "mode": self.mode,
            "x": u,
            "dx": rate,
            "size": np.maximum(np.abs(u), 1.0),
            "margin": np.append(at.margin, room),
            "rate": np.append(G @ rate[:-1] + drift * rate[-1], [rate[-1], -rate[-1]]),
            "margin_size": np.append(np.where(size > 0, size, 1.0), [1.0, 1.0]),
            "used": np.append(at.used, [True, True]),
            "turn": 1.0,
        }
        return BranchPoint(**fields)

    def _nowhere(self, u, at: Linearised) -> BranchPoint:
        return self._point(0.0, np.full_like(u, np.nan), np.full_like(u, np.nan), at)

    def step(self, size: float) -> float:
        return size

    def place(self, point: BranchPoint) -> Place:
        """The place of a point, set exactly to an end of the interval if it lies within rounding of
        it."""
        u, rate, scales = np.asarray(point.x), np.asarray(point.dx), self.scales
        way = HalfBranch(self.mode, rate[:-1] * scales.x, float(rate[-1] * scales.p))
        p = float(u[-1] * scales.p)
        nearest = min(self.limits, key=lambda limit: abs(limit - p))
        rounds = 8.0 * np.finfo(float).eps * max(scales.p, *map(abs, self.limits))
        return Place(nearest if abs(nearest - p) <= rounds else p, u[:-1] * scales.x, way)

    def limit_point(self, last: BranchPoint) -> BranchPoint | None:
        begin, end = float(self.begin.dx[-1]), float(last.dx[-1])
        if abs(begin) <= AT_CHANGE or abs(end) <= AT_CHANGE or begin * end > 0:
            return None
        s = run(zero((0.0, begin), (float(last.p), end), 0.0), lambda s: float(self.at(s).dx[-1]))
        return self.at(s)

    def passed(self, start: Place, last: BranchPoint) -> BranchPoint | None:
        if not np.array_equal(self.mode, start.way.mode):
            return None
        u = self._scaled(start)
        s = float(self.d @ (u - self.u0))
        if not AT_CHANGE < s <= float(last.p):
            return None
        there = self.at(s)
        return there if np.max(np.abs(there.x - u)) <= SAME else None

    def leaves(self, last: BranchPoint) -> bool:
        p, _, way = self.place(last)
        low, high = self.limits
        near = AT_CHANGE * (high - low)
        return (p - low <= near and way.dp < 0) or (high - p <= near and way.dp > 0)

    def remark(self, last: BranchPoint) -> str:
        if self._orientation(self.begin) == self._orientation(last):
            return ""
        low, high = sorted((self.here.p, self.place(last).p))
        return f"another branch crosses between {low:.6g} and {high:.6g}, and is not followed"

    def _orientation(self, point: BranchPoint) -> float:
        """A sign that changes where another branch crosses."""
        u, rate = np.asarray(point.x), np.asarray(point.dx)
        A = self._bordered(self._linearised(u))
        A[-1] = rate
        return float(np.linalg.slogdet(A / _sizes(A)[:, None])[0])


def _sizes(A: np.ndarray) -> np.ndarray:
    """Sizes of the rows of a matrix."""
    return np.maximum(np.sum(np.abs(A), axis=1), 1e-300)


def _solved(A: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Solution of ``A x = right``, whose rows have different units."""
    rows = _sizes(A)
    return np.linalg.solve(A / rows[:, None], right / rows)


class PositionPaths(Curves):
    """The branches of a mechanism over the parameter ``name``, by their arc."""

    first, lengths, anew = 0.05, Lengths(0.5, 1e-8), True
    #: In lengths of the problem, or radians.
    reach = 20.0

    def __init__(self, problem: Problem, name: str, t, span: float):
        super().__init__(problem, name, t, span)
        self.reading = on_host(_reading, problem, name, t)
        self.linearise = on_host(_linearised, problem, name, t)
        self.known_scales = on_host(_scales, problem, name, t)
        rest = eqx.filter_eval_shape(at_rest, problem, t)
        self.turns, self.rubs = np.asarray(rest.turns), rest.rubs
        self.names, self.joints = rest.mechanics.contact_names, rest.joints
        self.parts, self.opposed = rest.parts, rest.mechanics.opposed

    def equilibria(self, value: float) -> Equilibria:
        found = position_equilibria(set_parameters(self.problem, {self.name: value}), self.t)
        if bool(found.unresolved):
            self.remarks.append(
                f"at {value:.6g} some modes leave positions or reactions open, and are left out"
            )
        return found

    def scales(self, value: float, x: np.ndarray, mode: np.ndarray) -> Scales:
        """Magnitudes of the unknowns around a state."""
        del mode
        known, turns = np.array(self.known_scales(value)), self.turns
        lengths = np.append(~turns, np.zeros(len(x) - len(turns), bool))
        forces = np.arange(len(x)) >= len(turns)
        for group in (lengths, forces):
            largest = np.max(np.maximum(known, np.abs(x))[group], initial=0.0)
            known[group] = largest
        return Scales(known, self.span)

    def piece(self, here: Place, limits: tuple[float, float], scales: Scales) -> Arc:
        return Arc(self.linearise, here, scales, limits)

    def passes(self, branch: Branch, p: float, x: np.ndarray, ways: list, scales: Scales) -> bool:
        """Whether ``branch`` goes through the state ``x`` at ``p`` (and, if given, along
        ``ways[0]``)."""
        u = np.append(x / scales.x, p / scales.p)
        parts = (branch.q, branch.lambda_t, branch.lambda_n, branch.reaction)
        rows = np.concatenate(parts, axis=1) / scales.x
        rows = np.concatenate([rows, branch.parameter[:, None] / scales.p], axis=1)
        for i in range(len(rows) - 1):
            mode, chord = branch.mode[i], rows[i + 1] - rows[i]
            length = float(np.linalg.norm(chord))
            if length == 0.0 or not np.array_equal(mode, branch.mode[i + 1]):
                continue
            if ways and not np.array_equal(mode, ways[0].mode):
                continue
            d = chord / length
            along = float(d @ (u - rows[i]))
            if not -SAME <= along <= length + SAME or np.max(np.abs(u - rows[i])) > 2.0 * length:
                continue
            way = HalfBranch(mode, d[:-1] * scales.x, float(d[-1] * scales.p))
            here = Place(float(branch.parameter[i]), rows[i][:-1] * scales.x, way)
            arc = Arc(self.linearise, here, scales, (p, p))
            if np.max(np.abs(np.asarray(arc.at(along).x) - u)) <= SAME:
                return True
        return False


def _reading(problems, t, p, x) -> Reading:
    return state_equations(at_rest(problems(p), t), x)[2]


def _scales(problems, t, p) -> Float[Array, " m"]:
    return scales_of(at_rest(problems(p), t))


def _linearised(problems, t, p, mode, x) -> Linearised:
    def equations(p):
        rest = at_rest(problems(p), t)
        return lambda x: position_equations(rest, mode, x)

    return linearised(equations, p, x)
