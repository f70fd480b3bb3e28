"""Branches of equilibria, followed in one direction through all changes of mode."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from jfric.numerics.continuation import STALLED, TOO_MANY, Advance, Lengths, Trial, run, steps
from jfric.results.modes import Mode
from jfric.statics.all_equilibria import Equilibria
from jfric.statics.branch import Kind, SpecialPoint, Step
from jfric.statics.branch_point import (
    MAX_COMBINATIONS,
    BranchPoint,
    HalfBranch,
    Linearised,
    Scales,
    half_branches,
    same_direction,
)
from jfric.statics.static_problem import AT_CHANGE, Parts, Reading, combinations, modes_of
from jfric.system.problem import Problem

MAX_STEPS = 20_000
#: Part of the parameter in a scaled tangent below which the parameter does not change.
UPRIGHT = 1e-3 * AT_CHANGE


class Place(NamedTuple):
    """A state ``x`` at the parameter ``p``, and the direction in which the branch leaves it."""

    p: float
    x: np.ndarray
    way: HalfBranch


class Row(NamedTuple):
    """One row of a branch."""

    p: float
    x: np.ndarray
    dx: np.ndarray
    mode: np.ndarray


class Piece(ABC):
    """A branch in fixed modes ahead of the place ``here``, where its first point ``begin`` lies."""

    here: Place
    begin: BranchPoint

    @abstractmethod
    def at(self, s: float) -> BranchPoint:
        """The point at the coordinate ``s``; NaN if there is none."""

    @abstractmethod
    def step(self, size: float) -> float:
        """Change of the coordinate in a step of this size; zero at the end of the interval."""

    @abstractmethod
    def place(self, point: BranchPoint) -> Place:
        """The place of a point."""

    @abstractmethod
    def passed(self, start: Place, last: BranchPoint) -> BranchPoint | None:
        """The point at ``start``, if the branch comes back to it on the way to ``last``."""

    def limit_point(self, last: BranchPoint) -> BranchPoint | None:
        """The point before ``last`` where the parameter turns around, or None."""
        del last
        return None

    def leaves(self, last: BranchPoint) -> bool:
        """Whether the zero at ``last`` is the end of the interval."""
        del last
        return False

    def remark(self, last: BranchPoint) -> str:
        """Remark on the piece up to ``last``, or an empty text."""
        del last
        return ""


class Curves(ABC):
    """All branches of equilibria over a parameter; contacts ``names``, reactions of ``joints``."""

    #: Numbers of unknowns of each kind.
    parts: Parts
    names: tuple[str, ...]
    joints: tuple[str, ...] = ()
    #: Whether each contact has a tangent.
    rubs: tuple[bool, ...]
    #: Equations around a state, by parameter, modes and state; contacts at a state.
    linearise: Callable[[float, np.ndarray, np.ndarray], Linearised]
    reading: Callable[[float, np.ndarray], Reading]
    #: Contacts that are two sides of one joint.
    opposed: tuple[tuple[int, int], ...] = ()
    #: Lengths of steps, and whether they begin anew in other modes.
    first: float
    lengths: Lengths
    anew: bool = False
    #: Distance from its start, in scales, beyond which a branch is left.
    reach: float = np.inf

    def __init__(self, problem: Problem, name: str, t, span: float):
        self.problem, self.name, self.t, self.span = problem, name, t, span
        self.remarks: list[str] = []

    @abstractmethod
    def equilibria(self, value: float) -> Equilibria:
        """Equilibria at a value of the parameter."""

    def starting(self, value: float) -> list[tuple[np.ndarray, np.ndarray]]:
        """Isolated equilibria at a value of the parameter, and their modes."""
        at = self.equilibria(value)
        parts = (at.q, at.lambda_t, at.lambda_n, at.reaction)
        return [
            (np.concatenate([np.asarray(part[row]) for part in parts]), np.asarray(at.mode[row]))
            for row in np.flatnonzero(np.asarray(at.exists & ~at.continuum))
        ]

    def choices(self, p: float, x: np.ndarray, scales: Scales) -> list[tuple[Mode, ...]]:
        """The possible modes of each contact at a state; several where modes meet."""
        n = self.parts.n
        sizes = (np.max(part, initial=0.0) for part in (scales.x[:n], scales.x[n:]))
        return modes_of(self.reading(p, x), self.rubs, *(AT_CHANGE * size for size in sizes))

    @abstractmethod
    def piece(self, here: Place, limits: tuple[float, float], scales: Scales) -> Piece:
        """The smooth piece ahead of a place."""

    def upright(self, way: HalfBranch) -> bool:
        """Whether a way is a straight line at one value of the parameter."""
        del way
        return False

    def larger(self, scales: Scales, last: BranchPoint) -> Scales:
        """Scales for other modes after the point ``last``."""
        del last
        return scales

    def ways(self, p: float, x: np.ndarray, scales: Scales) -> tuple[list[HalfBranch], str]:
        """All half-branches that leave a state, two from a point inside one combination of modes;
        and a remark if there are too many combinations."""
        choices = self.choices(p, x, scales)
        if np.prod([float(len(c)) for c in choices]) > MAX_COMBINATIONS:
            places = sum(len(c) > 1 for c in choices)
            return [], f"{places} contacts change at {p:.12g} at once: more than can be tried"
        known = combinations(choices, self.opposed)
        return half_branches(known, lambda mode: self.linearise(p, mode, x), scales), ""


class Trace:
    """A branch followed in one direction: rows, special points and steps; half-branches that leave
    it elsewhere, with the places where they start; whether it came back to its start."""

    def __init__(self, curves: Curves, start: Place, limits: tuple[float, float], scales: Scales):
        self.rows: list[Row] = []
        self.special: list[SpecialPoint] = []
        self.steps: list[Step] = []
        self.left: list[Place] = []
        self.remarks: list[str] = []
        self.closed = False
        self._curves, self._start, self._scales = curves, start, scales
        self._limits = min(limits), max(limits)
        self._piece: Piece | None = None
        self._enters = True

    def follow(self) -> Trace:
        """The trace itself, after its branch has been followed to its end."""
        curves = self._curves
        ended = run(steps(self._start, curves.first, curves.lengths, MAX_STEPS), self._step)
        if ended == STALLED and self._piece is not None:
            self._end("asymptote", self._piece.here)
        if ended == TOO_MANY:
            self.remarks.append(f"a branch was left after {MAX_STEPS} steps")
        return self

    def _step(self, trial: Trial) -> Advance:
        curves, here = self._curves, trial.here
        if curves.upright(here.way):
            return self._upright(here, trial.size)
        if trial.first or self._piece is None:
            self._piece = curves.piece(here, self._limits, self._scales)
        piece = self._piece
        if self._enters:
            self._append(piece.here)
            self._enters = False
        h = piece.step(trial.size)
        if h == 0.0:
            return self._end("end", piece.here)
        if not np.all(np.isfinite(piece.begin.x)):
            return self._end("asymptote", here)
        found = smooth_step(piece.at, piece.begin, h)
        self.steps.append(Step(here.p, h, bool(found.points)))
        if not found.points:
            return Advance(None, 0.5 * abs(h))
        fold = None if found.crossing else piece.limit_point(found.points[-1])
        points = found.points if fold is None else [fold]
        start = None if here is self._start else piece.passed(self._start, points[-1])
        if start is not None:
            self._append(piece.place(start))
            self.closed = True
            return Advance(None, ended="closed")
        for point in points:
            self._append(piece.place(point))
        last = piece.place(points[-1])
        if fold is not None:
            self._mark("fold", last, last.way)
        if found.crossing:
            if piece.leaves(points[-1]):
                return self._end("end", last)
            self._scales = curves.larger(self._scales, points[-1])
            return self._onward(last, curves.first if curves.anew else trial.size)
        self._remark(piece.remark(points[-1]))
        far = np.abs((last.x - self._start.x) / self._scales.x)[: curves.parts.n]
        if np.max(far, initial=0.0) > curves.reach:
            self._remark(
                f"a branch was left where positions are {curves.reach:.0f} lengths of the system, "
                "or radians, away from its start"
            )
            return self._end("asymptote", last)
        return Advance(last, 2.0 * abs(h) if abs(h) >= trial.size else trial.size)

    def _upright(self, here: Place, size: float) -> Advance:
        """Follow a segment of solutions at one value of the parameter to its end."""
        p, x, way = here
        at = self._curves.linearise(p, way.mode, x)
        margin, rate = np.asarray(at.margin), np.asarray(at.G) @ way.dx
        span = np.abs(np.asarray(at.G)) @ np.abs(way.dx)
        falls = np.asarray(at.used) & (rate < -1e-9 * span)
        self._append(here)
        if not falls.any():
            return self._end("asymptote", here)
        length = np.min(np.maximum(margin[falls], 0.0) / -rate[falls])
        there = here._replace(x=x + length * way.dx)
        self._append(there)
        return self._onward(there, size)

    def _onward(self, here: Place, size: float) -> Advance:
        """Choose the way on where modes change. The way back to the branch is not taken, and the
        old direction comes last."""
        ways, remark = self._curves.ways(here.p, here.x, self._scales)
        self._remark(remark)
        came, scales = here.way, self._scales
        length = np.linalg.norm(np.append(came.dx / scales.x, came.dp / scales.p))
        back = HalfBranch(came.mode, -came.dx / length, float(-came.dp / length))
        onward = [way for way in ways if not same_direction(way, back, scales)]
        self._mark(_kind(came, onward), here, onward[0] if onward else None)
        self.left.extend(here._replace(way=other) for other in onward[1:])
        if not onward:
            return Advance(None, ended="dead end")
        self._enters = True
        return Advance(here._replace(way=onward[0]), size)

    def _end(self, kind: Kind, here: Place) -> Advance:
        self._mark(kind, here, None)
        return Advance(None, ended=kind)

    def _remark(self, remark: str) -> None:
        if remark:
            self.remarks.append(remark)

    def _append(self, place: Place) -> None:
        self.rows.append(Row(place.p, place.x, self._slope(place.way), place.way.mode))

    def _slope(self, way: HalfBranch) -> np.ndarray:
        """Derivatives by the parameter; NaN where it does not change."""
        size = np.linalg.norm(way.dx / self._scales.x)
        if abs(way.dp) / self._scales.p <= UPRIGHT * size:
            return np.full_like(way.dx, np.nan)
        return way.dx / way.dp

    def _mark(self, kind: Kind, here: Place, onward: HalfBranch | None) -> None:
        """Add a special point."""
        came = here.way
        q, lambda_t, lambda_n, _ = self._curves.parts.of(here.x)
        changed = () if onward is None else np.flatnonzero(came.mode != onward.mode)
        self.special.append(
            SpecialPoint(
                kind=kind,
                parameter=here.p,
                q=q,
                lambda_t=lambda_t,
                lambda_n=lambda_n,
                mode_before=came.mode,
                mode_after=None if onward is None else onward.mode,
                dq_before=self._slope(came)[: len(q)],
                dq_after=None if onward is None else self._slope(onward)[: len(q)],
                contacts=tuple(self._curves.names[i] for i in changed),
                row=len(self.rows) - 1,
            )
        )


def _kind(came: HalfBranch, onward: list[HalfBranch]) -> Kind:
    if not onward:
        return "dead end"
    if len(onward) > 1:
        return "bifurcation"
    if came.dp == 0.0 or onward[0].dp == 0.0:
        return "vertical"
    return "fold" if onward[0].dp * came.dp < 0 else "mode change"


#: Largest error of the cubic in the middle of a step, relative to the magnitude of the numbers.
TOLERANCE = 1e-6
_NEWTON = 60
#: Moves of a zero that rounding errors may cause, as a part of the parameter.
ROUNDED = 1e-11

At = Callable[[float], BranchPoint]


class Outcome(NamedTuple):
    """Points of an accepted step, the last one at its end; ``crossing``: a margin is zero there.

    The list is empty if the step was too long.
    """

    points: list[BranchPoint]
    crossing: bool


def smooth_step(at: At, first: BranchPoint, h: float) -> Outcome:
    """The step from ``first`` by ``h``, or up to the first zero of a margin; ``at``: the point of
    the branch at a value of the parameter.

    Between two points the state is a cubic polynomial through values and derivatives at both ends;
    the true state in the middle gives its error. Margins are such cubics as well: their Bernstein
    coefficients prove that there is no zero; otherwise the first zero is located on the branch.
    """
    p = float(first.p)
    last, middle = at(p + h), at(p + 0.5 * h)
    if not _smooth(first, middle, last, h):
        return Outcome([], crossing=False)
    coefficients = _bernstein(first.margin, first.rate, last.margin, last.rate, h)
    zero = 1e-13 * np.maximum(first.margin_size, last.margin_size)
    doubt = np.abs(middle.margin - coefficients @ np.array([1, 3, 3, 1]) / 8)
    # A margin that is zero at the start leaves zero or stays there.
    begins = np.abs(first.margin) <= AT_CHANGE * first.margin_size
    low = np.min(
        coefficients - doubt[:, None], axis=1, initial=np.inf, where=~begins[:, None] | _LATER
    )
    suspects = [int(i) for i in np.flatnonzero(first.used & (low < -zero))]
    roots = {i: r for i in suspects if (r := _root(coefficients[i], bool(begins[i]))) is not None}
    if not roots:
        return _checked([middle, last], crossing=False)
    earliest = min(roots, key=lambda i: roots[i])
    crossing = _locate(at, first, last, earliest, p + roots[earliest] * h)
    if crossing is None:
        return _checked([middle, last], crossing=False)
    before = at(0.5 * (p + float(crossing.p)))
    return _checked([before, crossing], crossing=True)


def _checked(points: list[BranchPoint], *, crossing: bool) -> Outcome:
    """The outcome, or a refusal if an earlier zero was skipped."""
    for point in points:
        if np.any(point.used & (point.margin < -AT_CHANGE * point.margin_size)):
            return Outcome([], crossing=False)
    return Outcome(points, crossing)


#: All Bernstein coefficients but the first.
_LATER = np.array([False, True, True, True])


def _smooth(first: BranchPoint, middle: BranchPoint, last: BranchPoint, h: float) -> bool:
    if not all(np.all(np.isfinite(point.x)) for point in (middle, last)):
        return False
    if not first.turn == middle.turn == last.turn:
        return False
    predicted = 0.5 * (first.x + last.x) + h * (first.dx - last.dx) / 8
    size = np.maximum(first.size, last.size)
    return bool(
        np.all(np.abs(predicted - middle.x) <= TOLERANCE * np.maximum(size, np.max(size) * 1e-6))
    )


def _bernstein(g0, d0, g1, d1, h: float) -> np.ndarray:
    """Coefficients (g, 4) of the cubic with values ``g`` and derivatives ``d`` at both ends."""
    return np.stack([g0, g0 + h * d0 / 3, g1 - h * d1 / 3, g1], axis=1)


def _root(b: np.ndarray, begins: bool) -> float | None:
    """First zero in (0, 1] at which the cubic falls below zero, apart from a known one at 0."""
    if begins:
        # Division by s leaves a quadratic with the same further zeros.
        b = np.array([3 * b[1], 1.5 * b[2], b[3]])
        power = np.array([b[0] - 2 * b[1] + b[2], 2 * (b[1] - b[0]), b[0]])
    else:
        power = np.array(
            [
                b[3] - 3 * b[2] + 3 * b[1] - b[0],
                3 * (b[2] - 2 * b[1] + b[0]),
                3 * (b[1] - b[0]),
                b[0],
            ]
        )
    roots = np.roots(power) if np.any(power) else np.zeros(0)
    real = np.sort(roots.real[np.abs(roots.imag) <= 1e-9])
    falling = [s for s in real if 0.0 < s <= 1.0 + 1e-9 and np.polyval(np.polyder(power), s) <= 0]
    if falling:
        return min(float(falling[0]), 1.0)
    return 1.0 if b[-1] < 0 else None


def _locate(
    at: At, first: BranchPoint, last: BranchPoint, i: int, guess: float
) -> BranchPoint | None:
    """The point where margin ``i`` is zero, by Newton's method within the step."""
    low, high = sorted((float(first.p), float(last.p)))
    size, p, before = max(abs(low), abs(high)), guess, np.inf
    for _ in range(_NEWTON):
        point = at(p)
        if not np.isfinite(point.rate[i]) or point.rate[i] == 0.0:
            return None
        change = -point.margin[i] / point.rate[i]
        following = min(max(float(p + change), low), high)
        move = abs(following - p)
        # Rounding errors of a margin may move its zero back and forth.
        done = move <= 4 * np.finfo(float).eps * size or before <= move <= ROUNDED * size
        if done:
            return at(following)
        p, before = following, move
    return None
