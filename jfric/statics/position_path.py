"""Paths of equilibria of mechanisms: curves of states in fixed modes, followed by their arc.

With ``u = (x / scale, p / span)`` the point at the distance ``s`` from ``u_0`` satisfies::

    F(x, p) = 0,    d . (u - u_0) = s

``d`` is the tangent at ``u_0``. The curve may turn around in the parameter (a limit point), which
needs no special treatment here.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jfric.numerics.continuation import Lengths, run, zero
from jfric.results.modes import Mode
from jfric.statics.all_equilibria import Equilibria, position_equilibria
from jfric.statics.branch import Branch
from jfric.statics.branch_point import BranchPoint, Linearised
from jfric.statics.follower import Curves, Piece, Place
from jfric.statics.mode_change import HalfBranch, Scales
from jfric.statics.position_problem import Facts, at_rest, facts_of, linearise, state_equations
from jfric.statics.position_search import scales_of
from jfric.statics.reading import AT_CHANGE, Reading, modes_of
from jfric.system.naming import set_parameters
from jfric.system.problem import Problem

#: Most steps of Newton's method, and size of its last one.
STEPS, NEAR = 12, 1e-11
#: Distance below which states are the same.
SAME = 1e-7


class PositionKernel(NamedTuple):
    """A mechanism as functions of the parameter and the state: equations around the state, readings
    of the contacts there, and the magnitudes of the unknowns."""

    linearise: Callable[[float, np.ndarray, np.ndarray], Linearised]
    reading: Callable[[float, np.ndarray], Reading]
    scales: Callable[[float], np.ndarray]
    facts: Facts


class Arc(Piece):
    """The curve near the place ``here``."""

    def __init__(
        self,
        kernel: PositionKernel,
        here: Place,
        scales: Scales,
        limits: tuple[float, float],
    ):
        self.kernel, self.here, self.scales, self.limits = kernel, here, scales, limits
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
            row = np.maximum(np.sum(np.abs(A), axis=1), 1e-300)
            defect = np.append(np.asarray(at.defect), self.d @ (u - begin) - s)
            if not (np.all(np.isfinite(A)) and np.all(np.isfinite(defect))):
                return self._nowhere(u, at)
            try:
                du = -np.linalg.solve(A / row[:, None], defect / row)
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
        A = self._bordered(at)
        row = np.maximum(np.sum(np.abs(A), axis=1), 1e-300)
        rate = np.linalg.solve(A / row[:, None], np.append(np.zeros(len(u) - 1), 1.0) / row)
        return self._point(s, u, rate, at)

    def _linearised(self, u: np.ndarray) -> Linearised:
        return self.kernel.linearise(u[-1] * self.scales.p, self.mode, u[:-1] * self.scales.x)

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
        return float(
            np.linalg.slogdet(A / np.maximum(np.sum(np.abs(A), axis=1), 1e-300)[:, None])[0]
        )


class PositionPaths(Curves):
    """The branches of a mechanism over the parameter ``name``, by their arc."""

    first, lengths, anew = 0.05, Lengths(0.5, 1e-8), True
    #: In lengths of the problem, or radians.
    reach = 20.0

    def __init__(self, problem: Problem, name: str, t, span: float):
        super().__init__(problem, name, t, span)
        self.kernel = _kernel(problem, name, t)
        facts = self.kernel.facts
        self.n, self.names, self.joints = facts.n, facts.names, facts.joints
        self.nu, self.opposed = facts.nu, facts.opposed

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
        known, turns = self.kernel.scales(value).copy(), np.asarray(self.kernel.facts.turns)
        lengths = np.append(~turns, np.zeros(len(x) - len(turns), bool))
        forces = np.arange(len(x)) >= len(turns)
        for group in (lengths, forces):
            largest = np.max(np.maximum(known, np.abs(x))[group], initial=0.0)
            known[group] = largest
        return Scales(known, self.span)

    def choices(self, p: float, x: np.ndarray, scales: Scales) -> list[tuple[Mode, ...]]:
        facts = self.kernel.facts
        length, force = (np.max(part) for part in (scales.x[: self.n], scales.x[self.n :]))
        reading = self.kernel.reading(p, x)
        return modes_of(reading, facts.rubs, AT_CHANGE * length, AT_CHANGE * force)

    def linearise(self, p: float, mode: np.ndarray, x: np.ndarray) -> Linearised:
        return self.kernel.linearise(p, mode, x)

    def piece(self, here: Place, limits: tuple[float, float], scales: Scales) -> Arc:
        return Arc(self.kernel, here, scales, limits)

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
            arc = Arc(self.kernel, here, scales, (p, p))
            if np.max(np.abs(np.asarray(arc.at(along).x) - u)) <= SAME:
                return True
        return False


def _kernel(problem: Problem, name: str, t) -> PositionKernel:
    arrays, structure = eqx.partition((problem, t), eqx.is_array)
    known: list[Facts] = []

    def parts(arrays, p) -> Any:
        problem, t = eqx.combine(arrays, structure)
        problem = set_parameters(problem, {name: p})
        rest = at_rest(problem, t)
        known.append(facts_of(problem, rest.mechanics))
        return rest

    jax.eval_shape(parts, arrays, jnp.zeros(()))
    facts = known[0]

    @jax.jit
    def linearised(arrays, p, mode, x):
        def along(p):
            found, A, G = linearise(parts(arrays, p), facts, mode, x)
            return (found.residual, found.margin), (A, G, found.used)

        p = jnp.asarray(p, jnp.result_type(float))
        (F, margin), (r, drift), (A, G, used) = jax.jvp(
            along, (p,), (jnp.ones_like(p),), has_aux=True
        )
        return Linearised(A=A, r=r, defect=F, G=G, margin=margin, drift=drift, used=used)

    @jax.jit
    def reading(arrays, p, x):
        return state_equations(parts(arrays, p), x)[2]

    @jax.jit
    def scales(arrays, p):
        return scales_of(parts(arrays, p), facts)

    @functools.lru_cache(maxsize=512)
    def at(p: float, mode: bytes, x: bytes) -> Linearised:
        own = np.frombuffer(mode, np.int32), np.frombuffer(x)
        return jax.device_get(linearised(arrays, np.asarray(p), *own))

    return PositionKernel(
        linearise=lambda p, mode, x: at(
            float(p), np.asarray(mode, np.int32).tobytes(), np.asarray(x, float).tobytes()
        ),
        reading=lambda p, x: jax.device_get(reading(arrays, np.asarray(p), x)),
        scales=lambda p: np.array(scales(arrays, np.asarray(p))),
        facts=facts,
    )
