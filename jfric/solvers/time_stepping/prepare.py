"""Preparation of a run: all constants are computed once, before the loop."""

from __future__ import annotations

from dataclasses import replace

import equinox as eqx
import jax.numpy as jnp

from jfric.solvers.time_stepping.prepared import Prepared, contact_space, step_matrices
from jfric.solvers.time_stepping.scheme import Scheme
from jfric.system.assembly import assemble
from jfric.system.laws import Coulomb
from jfric.system.problem import Problem


def prepare(problem: Problem, scheme: Scheme, h, method: str) -> Prepared:
    """Assemble ``problem`` for steps of length ``h``."""
    problem = problem.resolved()
    mechanics = assemble(problem)
    space = contact_space(mechanics)
    if mechanics.varying is not None:
        # These fields hold at the start only; each step evaluates its own.
        mechanics = replace(mechanics, rate=None, bias=None, tied=None)
    dtype = mechanics.M.dtype
    h = jnp.asarray(h, dtype)
    changes = mechanics.has_curved_forces or mechanics.piecewise.count
    changes = changes or mechanics.varying is not None
    scheme = scheme._replace(theta=jnp.asarray(scheme.theta, dtype))
    matrices = None
    if not changes:
        matrices = step_matrices(scheme, h, mechanics.M, mechanics.C, mechanics.K, space["W"])
    return Prepared(
        mechanics=mechanics,
        scheme=scheme,
        h=h,
        **space,
        end=jnp.asarray(problem.time.end, dtype),
        constant=matrices,
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
    """Parts of ``prepared`` that depend on the length of the step."""
    return prepared.h, prepared.constant
