"""Objective and constraints of an optimisation, and their derivatives through the motion."""

from __future__ import annotations

import dataclasses
import threading
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jfric.optima.goals import Goals
from jfric.optima.unknowns import Unknowns, by_path
from jfric.results.status import Status
from jfric.solvers.base import AbstractSolver
from jfric.solvers.simulation import call_compiled
from jfric.sweeps.observing import observe
from jfric.system.naming import with_numbers
from jfric.system.problem import Problem

#: Members of one call without derivatives.
CHUNK = 64


class Evaluation(NamedTuple):
    """Objective and constraints (k,) at a point, their derivatives (k, P) by the coordinates of the
    unknowns, and the outcome of the motion."""

    values: np.ndarray
    slopes: np.ndarray
    status: int
    flags: int

    @property
    def known(self) -> bool:
        """Whether the motion reached its end and all numbers exist."""
        finite = np.isfinite(self.values).all() and np.isfinite(self.slopes).all()
        return self.status == int(Status.OK) and bool(finite)


class Evaluator:
    """Evaluates the goals of one optimisation, and counts how often."""

    def __init__(self, problem: Problem, unknowns: Unknowns, goals: Goals, solver: AbstractSolver):
        self.problem, self.unknowns, self.goals = problem, unknowns, goals
        self.solver = dataclasses.replace(solver, adjoint="forward")
        self.plain = dataclasses.replace(solver, adjoint="none")
        self.rows, self.least = unknowns.order()
        #: Motions that were computed, with and without derivatives.
        self.derivatives = self.motions = 0
        self._lock = threading.Lock()

    @property
    def equal(self) -> np.ndarray:
        """Which constraints (k - 1,) are equalities; the last ones keep lists in order."""
        return np.asarray([*self.goals.equal, *[False] * self.least.size], bool)

    def at(self, y: np.ndarray, *, exact: bool = True) -> Evaluation:
        """Values at coordinates ``y`` (P,) and, if ``exact``, their derivatives; else zeros."""
        unknowns = self.unknowns
        x = unknowns.unscaled(y)
        with self._lock:
            self.derivatives += exact
            self.motions += not exact
        if not exact:
            found = self._run(_plainly, self.plain, x)
            slopes = np.zeros((len(self.goals.texts), y.size))
        else:
            found, slopes = self._run(_with_slopes, self.solver, x)
        order = self.rows @ unknowns.whole(x) - self.least
        slopes = np.concatenate([slopes, self.rows[:, unknowns.columns]]) * unknowns.slopes(x)
        values = np.concatenate([found.values, order])
        return Evaluation(values, slopes, int(found.status), int(found.flags))

    def many(self, x: np.ndarray) -> np.ndarray:
        """Values (n, k) for free numbers ``x`` (n, P); NaN where a motion fails."""
        found = []
        for first in range(0, len(x), CHUNK):
            part = x[np.minimum(np.arange(first, first + CHUNK), len(x) - 1)]
            seen = self._run(_of_many, self.plain, part)
            ok = seen.status == int(Status.OK)
            found.append(np.where(ok[:, None], seen.values, np.nan)[: len(x) - first])
        with self._lock:
            self.motions += len(x)
        whole = np.stack([self.unknowns.whole(row) for row in x])
        return np.concatenate([np.concatenate(found), whole @ self.rows.T - self.least], axis=1)

    def _run(self, function: Any, solver: AbstractSolver, x: np.ndarray) -> Any:
        """Result of ``function`` for free numbers ``x``, as arrays on the host."""
        unknowns = self.unknowns
        given, columns = jnp.asarray(unknowns.given), tuple(unknowns.columns.tolist())
        numbers = self.problem, jnp.asarray(x), given
        found = call_compiled(
            function, solver, None, *numbers, columns, unknowns.places, self.goals
        )
        return jax.tree.map(np.asarray, found)


class _Values(NamedTuple):
    values: Any
    status: Any
    flags: Any


def _plainly(solver, end, problem, x, given, columns, places, goals) -> _Values:
    del end
    changed = with_numbers(problem, by_path(places, given.at[jnp.asarray(columns)].set(x)))
    if not goals.observables:
        zero = jnp.asarray(0)
        return _Values(goals.values(changed, {}), zero, zero)
    found = observe(changed, list(goals.observables), solver)
    return _Values(goals.values(changed, found.values), found.status, found.flags)


def _with_slopes(solver, end, problem, x, *rest) -> tuple[_Values, Any]:
    def of(x):
        found = _plainly(solver, end, problem, x, *rest)
        return found.values, found

    slopes, found = jax.jacfwd(of, has_aux=True)(x)
    return found, slopes


def _of_many(solver, end, problem, x, *rest) -> _Values:
    return jax.vmap(lambda row: _plainly(solver, end, problem, row, *rest))(x)
