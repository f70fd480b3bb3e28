"""States of the static problem of a mechanism, by Newton's method in every combination of modes.

The search begins at the reference position and ends at the nearest solution in these modes, if it
finds one: there may be others.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from jfric.errors import ProblemError
from jfric.numerics.linear_algebra import matvec, singular_values
from jfric.statics.candidate import Candidate
from jfric.statics.position_problem import (
    AtRest,
    Facts,
    forces_at,
    linearise,
    position_equations,
)
from jfric.statics.reading import as_table, combinations, possible_modes

#: Most steps of Newton's method, and largest turn [rad] and movement (in lengths of the problem).
STEPS, TURN, MOVE = 60, 0.5, 1.0
#: Last step of Newton's method, relative to the magnitudes of the unknowns.
NEAR = 1e-7
#: Largest residual and negative margin of a solution, relative to their terms.
SOLVED = 1e-10
#: Part of the largest singular value below which equations leave a direction undetermined.
SINGULAR = 1e-11
#: Largest number of combinations of modes that are tried.
MAX_MODES = 1024


def position_modes(facts: Facts) -> np.ndarray:
    """All combinations of modes (c, nt); raises for too many."""
    each = possible_modes(facts.rubs, facts.nf)
    few = math.prod(map(len, each)) <= 64 * MAX_MODES
    table = combinations(each, facts.opposed) if few else []
    if not few or len(table) > MAX_MODES:
        raise ProblemError(
            f"contact: found {facts.nt} contacts and frictions on a mechanism, whose static "
            f"problem is computed for at most {MAX_MODES} combinations of their modes"
        )
    return as_table(table, facts.nt)


def scales_of(rest: AtRest, facts: Facts) -> Float[Array, " m"]:
    """Magnitudes of the unknowns: a length, one radian, a force."""
    q0, turns = rest.q0, np.asarray(facts.turns)
    force = jnp.max(jnp.abs(forces_at(rest, q0)), initial=0.0)
    stiffness = jnp.abs(jax.jacfwd(lambda q: forces_at(rest, q))(q0))
    force = jnp.maximum(force, jnp.max(jnp.where(turns[None, :], stiffness, 0.0), initial=0.0))
    force = jnp.where(force > 0, force, 1.0)
    length = jnp.max(jnp.where(turns, 0.0, jnp.abs(q0)), initial=0.0)
    stiffest = jnp.max(jnp.where(turns[None, :], 0.0, stiffness), initial=0.0)
    yields = jnp.where(stiffest > 0, force / _positive(stiffest), 1.0)
    length = jnp.where(length > 0, length, yields)
    positions = jnp.where(turns, 1.0, length)
    others = jnp.full((facts.nt + facts.nu + len(facts.joints),), force, q0.dtype)
    return jax.lax.stop_gradient(jnp.concatenate([positions, others]))


def position_candidates(rest: AtRest, facts: Facts, modes: Int[Array, "c nt"]) -> Candidate:
    """The end points of Newton's method in each of ``modes``."""
    scale = scales_of(rest, facts)
    start = jnp.zeros_like(scale).at[: facts.n].set(rest.q0)
    return jax.vmap(lambda mode: _candidate(rest, facts, mode, start, scale))(modes)


def _candidate(rest: AtRest, facts: Facts, mode, start, scale) -> Candidate:
    reach = jnp.where(np.asarray(facts.turns), TURN, MOVE) * scale[: facts.n]

    def equations(rest, x):
        """Equations, with rows and columns scaled to be comparable."""
        found, A, G = linearise(rest, facts, mode, x)
        A = A * scale
        row = _positive(jnp.sum(jnp.abs(A), axis=1))
        return found, A / row[:, None], row, G

    def step(found, parts, row):
        # The smallest step, where others solve the equations as well.
        u, values, vt = parts
        used = values > SINGULAR * jnp.max(values)
        turned = jnp.where(used, matvec(u.T, found.residual / row) / _positive(values), 0.0)
        return -scale * matvec(vt.T, turned)

    still = jax.lax.stop_gradient(rest)

    def improved(carry):
        i, x, _, _ = carry
        found, A, row, _ = equations(still, x)
        dx = step(found, singular_values(A), row)
        far = jnp.max(jnp.abs(dx[: facts.n]) / reach, initial=1.0)
        return i + 1, x + dx / far, x, jnp.max(jnp.abs(dx) / scale, initial=0.0)

    def goes_on(carry):
        return (carry[0] < STEPS) & (carry[3] > NEAR)

    begin = jnp.asarray(0, jnp.int32), jax.lax.stop_gradient(start)
    _, x, _, change = jax.lax.while_loop(
        goes_on, improved, (*begin, begin[1], jnp.asarray(jnp.inf, start.dtype))
    )
    # One step with the derivatives of the solution; at a solution the step itself is zero.
    found, A, row, G = equations(rest, x)
    A, row, G = jax.lax.stop_gradient((A, row, G))
    parts = singular_values(A)
    x = x + step(found, parts, row)
    found = position_equations(rest, facts, mode, x)
    regular = jnp.min(parts.values) > SINGULAR * jnp.max(parts.values)
    defect = jnp.max(jnp.abs(jax.lax.stop_gradient(found.residual / row)), initial=0.0)
    size = _positive(jnp.abs(G) @ (scale + jnp.abs(x)))
    off = jax.lax.stop_gradient(jnp.where(found.used, found.margin / size, 1.0))
    solved = jnp.all(jnp.isfinite(x)) & (defect <= SOLVED) & (change <= NEAR)
    kept = solved & regular & jnp.all(off >= -SOLVED)
    no = jnp.asarray(False)
    return Candidate(
        x=x,
        x_to=x,
        near=x,
        near_to=x,
        size=jax.lax.stop_gradient(jnp.maximum(jnp.abs(x), scale)),
        accepted=kept,
        continuum=no,
        boundary=kept & jnp.any(off <= SOLVED),
        unresolved=solved & ~regular,
        residual=jnp.maximum(defect, jnp.maximum(-jnp.min(off, initial=0.0), 0.0)),
    )


def _positive(x):
    return jnp.where(x > 0, x, 1.0)
