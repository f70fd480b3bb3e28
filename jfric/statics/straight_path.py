"""Paths of equilibria of systems whose equations are linear in each mode: compiled equations,
starts, and the test for known states."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np

from jfric.numerics.continuation import Lengths
from jfric.results.modes import Mode
from jfric.statics.all_equilibria import Equilibria, equilibria
from jfric.statics.branch import Branch
from jfric.statics.branch_point import BranchPoint, Linearised, branch_point, linearised
from jfric.statics.follower import Curves, Piece, Place
from jfric.statics.mode_change import HalfBranch, Scales, modes_at, scales_at
from jfric.statics.static_problem import StaticProblem, static_problem
from jfric.system.naming import set_parameters
from jfric.system.problem import Problem

#: Length, as a part of the interval, below which a step ends a branch.
SHORTEST = 1e-9


class Kernel(NamedTuple):
    """The problem as functions of the parameter: a point in given modes, the static problem, and
    the equations around a state."""

    point: Callable[[float, np.ndarray], BranchPoint]
    static: Callable[[float], StaticProblem]
    linearise: Callable[[float, np.ndarray, np.ndarray], Linearised]
    names: tuple[str, ...]
    n: int


class Straight(Piece):
    """A branch whose coordinate is the parameter, ahead of the place ``here``."""

    def __init__(self, kernel: Kernel, here: Place, limits: tuple[float, float]):
        self._kernel, self._mode = kernel, here.way.mode
        self._side = 1.0 if here.way.dp > 0 else -1.0
        self._target = limits[1] if self._side > 0 else limits[0]
        self._span = limits[1] - limits[0]
        self.begin = self.at(here.p)
        self.here = self.place(self.begin)

    def at(self, s: float) -> BranchPoint:
        """The point at the value ``s`` of the parameter."""
        return self._kernel.point(s, self._mode)

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
        self.kernel = _kernel(problem, name, t)
        self.n, self.names = self.kernel.n, self.kernel.names
        self.first, self.lengths = span, Lengths(span, SHORTEST * span)
        self.nu = len(problem.labelled("contact"))

    def equilibria(self, value: float) -> Equilibria:
        problem = set_parameters(self.problem, {self.name: value})
        found = equilibria(problem, t=self.t, starts=self.many)
        assert isinstance(found, Equilibria)
        return found

    def scales(self, value: float, x: np.ndarray, mode: np.ndarray) -> Scales:
        """Magnitudes of the unknowns around a state."""
        del x
        return scales_at(self.kernel.point(value, mode), self.kernel.n, self.span)

    def choices(self, p: float, x: np.ndarray, scales: Scales) -> list[tuple[Mode, ...]]:
        return modes_at(self.kernel.static(p), x, scales)

    def linearise(self, p: float, mode: np.ndarray, x: np.ndarray) -> Linearised:
        return self.kernel.linearise(p, mode, x)

    def piece(self, here: Place, limits: tuple[float, float], scales: Scales) -> Straight:
        del scales
        return Straight(self.kernel, here, limits)

    def upright(self, way: HalfBranch) -> bool:
        return way.dp == 0.0

    def larger(self, scales: Scales, last: BranchPoint) -> Scales:
        return scales_at(last, self.n, self.span, scales)

    def passes(self, branch: Branch, p: float, x: np.ndarray, ways: list, scales: Scales) -> bool:
        """Whether ``branch`` goes through the state ``x`` at ``p`` (and, if given, along
        ``ways[0]``)."""
        del scales
        return _passes(branch, self.kernel, p, x, ways)


def _kernel(problem: Problem, name: str, t) -> Kernel:
    static = eqx.filter_eval_shape(static_problem, problem)
    arrays, structure = eqx.partition((problem, t), eqx.is_array)
    leaves, tree = jax.tree.flatten(arrays)
    point_at, static_at, linearise_at = _compiled(tree, _Structure(structure), name)

    @functools.lru_cache(maxsize=512)
    def point(p: float, mode: bytes):
        # Arrays, because a Python number would be compiled in.
        found = point_at(leaves, np.asarray(p), np.frombuffer(mode, np.int32))
        return BranchPoint(*jax.device_get(found))

    return Kernel(
        point=lambda p, mode: point(p, np.asarray(mode, np.int32).tobytes()),
        static=lambda p: jax.device_get(static_at(leaves, np.asarray(p))),
        linearise=lambda p, mode, x: jax.device_get(linearise_at(leaves, np.asarray(p), mode, x)),
        names=static.names,
        n=len(static.axes),
    )


class _Structure:
    """Parts of a problem that are not arrays, hashed once instead of at every point."""

    def __init__(self, tree):
        self.tree = tree
        leaves, structure = jax.tree.flatten(tree)
        self.key = (tuple(leaves), structure)
        self.hash = hash(self.key)

    def __hash__(self):
        return self.hash

    def __eq__(self, other):
        return self.key == other.key


@functools.lru_cache(maxsize=16)
def _compiled(tree, structure: _Structure, name: str):
    """Point, static problem and linearised equations as compiled functions of the arrays."""

    def known(leaves) -> tuple[Problem, Any]:
        return eqx.combine(jax.tree.unflatten(tree, leaves), structure.tree)

    def point(leaves, p, mode):
        problem, t = known(leaves)
        return branch_point(problem, name, p, mode, t)

    def static(leaves, p):
        problem, t = known(leaves)
        return static_problem(set_parameters(problem, {name: p}), t)

    def linearise(leaves, p, mode, x):
        problem, t = known(leaves)
        return linearised(problem, name, p, mode, x, t)

    return jax.jit(point), jax.jit(static), jax.jit(linearise)


def _passes(branch: Branch, kernel: Kernel, p: float, x: np.ndarray, ways: list) -> bool:
    """Whether ``branch`` goes through the state ``x`` at ``p`` (and, if given, along
    ``ways[0]``)."""
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
        there = kernel.point(p, mode).x
        if np.all(np.abs(there - x) <= 1e-7 * np.maximum(scale, np.max(np.abs(x)))):
            return True
    return False
