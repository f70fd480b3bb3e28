"""Preparing a run: everything that stays the same is computed once, before the loop."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp

from jfric.numerics.linear_algebra import matmul
from jfric.solvers.time_stepping.prepared import Prepared, step_matrices
from jfric.solvers.time_stepping.scheme import Scheme
from jfric.system.assembly import assemble
from jfric.system.laws import Coulomb
from jfric.system.problem import Problem


def prepare(problem: Problem, scheme: Scheme, h, method: str) -> Prepared:
    """Assemble ``problem`` for steps of length ``h``."""
    problem = problem.resolved()
    mechanics = assemble(problem)
    W = jnp.concatenate([mechanics.W_T, mechanics.W_N])
    MW = matmul(mechanics.M_inverse, W.T)
    dtype = mechanics.M.dtype
    h = jnp.asarray(h, dtype)
    fixed = not mechanics.nonlinear and mechanics.piecewise.count == 0
    scheme = scheme._replace(theta=jnp.asarray(scheme.theta, dtype))
    matrices = step_matrices(scheme, h, mechanics.M, mechanics.C, mechanics.K, W)
    return Prepared(
        mechanics=mechanics,
        scheme=scheme,
        h=h,
        W=W,
        MW=MW,
        D_mass=matmul(W, MW),
        end=jnp.asarray(problem.time.end, dtype),
        constant=matrices if fixed else None,
        breakaway=not all(isinstance(law, Coulomb) for law in mechanics.laws),
        method=method,
    )


def with_step(prepared: Prepared, h) -> Prepared:
    """A copy of ``prepared`` for steps of length ``h``."""
    mechanics = prepared.mechanics
    h = jnp.asarray(h, prepared.h.dtype)
    matrices = prepared.constant
    if matrices is not None:
        matrices = step_matrices(
            prepared.scheme, h, mechanics.M, mechanics.C, mechanics.K, prepared.W
        )
    return eqx.tree_at(changing, prepared, (h, matrices), is_leaf=lambda x: x is None)


def changing(prepared: Prepared):
    """The parts of ``prepared`` that depend on the length of the step."""
    return prepared.h, prepared.constant
