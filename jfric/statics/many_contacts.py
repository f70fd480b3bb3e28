"""Many contacts: semismooth Newton's method on the projection form, from many starts.

Equation (1) of Janovsky (2015), with ``r > 0`` and the limits ``c+-`` of the current normal
force::

    lambda_N = max(0, lambda_N - r g_N)
    lambda_T = clip(lambda_T - r s, -c+, c-)

A step of Newton's method is the linear system of the modes in which the arguments of the
projections lie. A few steps suffice from modes near a solution; from others it may cycle, and the
start is given up. Source: P. Alart, A. Curnier, A mixed formulation for frictional contact
problems prone to Newton like solution methods, Comput. Methods Appl. Mech. Engrg. 92 (1991).
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from jfric.contact import rules
from jfric.results.modes import Mode
from jfric.statics.candidate import ON_EDGE, Candidate
from jfric.statics.static_mode_equations import mode_equations, split, static_residual
from jfric.statics.static_problem import StaticProblem

#: Number of linear systems after which a start is given up.
STEPS = 60
#: Largest residual of a solution.
SOLVED = 1e-10


def from_many_starts(
    problem: StaticProblem, key, starts: int
) -> tuple[Candidate, Int[Array, "s nt"]]:
    """The end points of Newton's method from ``starts`` starts, and the modes there."""
    found = jax.lax.map(lambda mode: newton(problem, mode), start_modes(problem, key, starts))

    def as_candidate(result: NewtonResult) -> Candidate:
        x, equations = result.x, mode_equations(problem, result.mode)
        size = jnp.maximum(jnp.abs(x), 1e-6 * jnp.max(jnp.abs(x), initial=0.0))
        margin = equations.G @ x + equations.h
        zero = ON_EDGE * (jnp.abs(equations.G) @ size + jnp.abs(equations.h))
        solved, no = result.residual <= SOLVED, jnp.asarray(False)
        edge = solved & jnp.any(equations.used & (margin <= zero))
        return Candidate(x, x, x, x, size, solved, no, edge, no, result.residual)

    return jax.vmap(as_candidate)(found), found.mode


class NewtonResult(NamedTuple):
    """Unknowns (m,), the modes (nt,) they belong to, their residual, and linear systems solved."""

    x: Float[Array, " m"]
    mode: Int[Array, " nt"]
    residual: Float[Array, ""]
    steps: Int[Array, ""]


def newton(problem: StaticProblem, start: Int[Array, " nt"]) -> NewtonResult:
    """Result of semismooth Newton's method from the modes ``start``."""

    def step(following, steps):
        x = solve_mode(problem, following)
        residual = static_residual(problem, x)
        residual = jnp.where(jnp.isnan(residual), jnp.inf, residual)
        return NewtonResult(x, following, residual, steps + 1)

    def running(found: NewtonResult):
        return (found.residual > 0.01 * SOLVED) & (found.steps < STEPS)

    first = step(start, jnp.asarray(0, jnp.int32))
    return jax.lax.while_loop(
        running, lambda found: step(projected_modes(problem, found.x), found.steps), first
    )


def solve_mode(problem: StaticProblem, mode: Int[Array, " nt"]) -> Float[Array, " m"]:
    """Unknowns in the modes ``mode``; not finite where they are undetermined."""
    equations = mode_equations(problem, mode)
    x = jnp.linalg.solve(equations.A, equations.b)
    return x + jnp.linalg.solve(equations.A, equations.b - equations.A @ x)


def projected_modes(problem: StaticProblem, x: Float[Array, " m"]) -> Int[Array, " nt"]:
    """Modes in which the arguments of the projections lie."""
    p, nf = problem, problem.n_friction
    q, lambda_t, lambda_n = split(p, x)
    trial_n = lambda_n - _stiffness(p.K, p.W_N) * (p.gap0 + p.W_N @ q)
    normal_force = jnp.maximum(trial_n, 0.0)
    trial_t = lambda_t - _stiffness(p.K, p.W_T) * (p.W_T @ q - p.slip0)
    upper, lower = p.cap_static + p.mu_static * p.own_normal(normal_force)
    mode = rules.projected_mode(trial_t, upper, lower)
    mode = jnp.where(p.frictionless, Mode.CLOSED, mode)
    opened = jnp.concatenate([jnp.zeros((nf,), bool), ~(trial_n > 0.0)])
    return jnp.where(opened, Mode.OPEN, mode).astype(jnp.int32)


def _stiffness(K, W):
    """Stiffness along each row of ``W``: the parameter ``r`` of the projections."""
    size = jnp.sum(W * W, axis=1)
    along = jnp.sum((W @ K) * W, axis=1) / jnp.where(size > 0, size, 1.0) ** 2
    return jnp.where(along > 0, along, jnp.max(jnp.abs(K), initial=1e-300))


def start_modes(problem: StaticProblem, key, starts: int) -> Int[Array, "s nt"]:
    """Modes of the starts: all contacts alike, then zones of random length and mode."""
    nt = len(problem.names)
    alike = jnp.asarray([Mode.STICK, Mode.SLIP_POS, Mode.SLIP_NEG, Mode.OPEN], jnp.int32)
    first = jnp.broadcast_to(alike[:, None], (4, nt))
    where, what = jax.random.split(key)
    # Neighbouring contacts tend to share their mode: a new zone begins at one contact in four.
    begins = jax.random.bernoulli(where, 0.25, (starts, nt))
    zone = jnp.cumsum(begins, axis=1)
    drawn = jnp.take_along_axis(jax.random.randint(what, (starts, nt + 1), 0, 4), zone, axis=1)
    table = jnp.concatenate([first, alike[drawn]])[:starts]
    return jax.vmap(lambda mode: admissible(problem, mode))(table)


def admissible(problem: StaticProblem, mode: Int[Array, " nt"]) -> Int[Array, " nt"]:
    """``mode`` with modes that a contact cannot have replaced by possible ones."""
    unilateral = jnp.asarray(problem.unilateral, bool)
    mode = jnp.where((mode == Mode.OPEN) & ~unilateral, Mode.STICK, mode)
    frictionless = problem.frictionless & (mode != Mode.OPEN)
    return jnp.where(frictionless, Mode.CLOSED, mode).astype(jnp.int32)
