"""Paths of equilibria of mechanisms: compiled equations, starts, and the test for known states."""

from __future__ import annotations

import functools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jfric.numerics.continuation import Lengths
from jfric.results.modes import Mode
from jfric.statics.all_equilibria import Equilibria, position_equilibria
from jfric.statics.arc import SAME, Arc, PositionKernel
from jfric.statics.branch import Branch
from jfric.statics.branch_point import Linearised
from jfric.statics.follower import Curves, Place
from jfric.statics.mode_change import HalfBranch, Scales
from jfric.statics.position_problem import Facts, at_rest, facts_of, linearise, state_equations
from jfric.statics.position_search import scales_of
from jfric.statics.reading import AT_CHANGE, modes_of
from jfric.system.naming import set_parameters
from jfric.system.problem import Problem


class PositionPaths(Curves):
    """The branches of a mechanism over the parameter ``name``, by their arc."""

    first, lengths, anew = 0.05, Lengths(0.5, 1e-8), True
    #: In lengths of the problem, or radians.
    reach = 20.0

    def __init__(self, problem: Problem, name: str, t, span: float):
        self.problem, self.name, self.t, self.span = problem, name, t, span
        self.kernel = _kernel(problem, name, t)
        facts = self.kernel.facts
        self.n, self.names, self.joints = facts.n, facts.names, facts.joints
        self.nu, self.opposed = facts.nu, facts.opposed
        self.remarks: list[str] = []

    def starting(self, value: float) -> list[tuple[np.ndarray, np.ndarray]]:
        """Equilibria at a value of the parameter, and their modes."""
        found = position_equilibria(set_parameters(self.problem, {self.name: value}), self.t)
        assert isinstance(found, Equilibria)
        if bool(found.unresolved):
            self.remarks.append(
                f"at {value:.6g} some modes leave positions or reactions open, and are left out"
            )
        parts = (found.q, found.lambda_t, found.lambda_n, found.reaction)
        return [
            (np.concatenate([np.asarray(part[row]) for part in parts]), np.asarray(found.mode[row]))
            for row in np.flatnonzero(np.asarray(found.exists))
        ]

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
