"""Which coefficients hold on a step with friction in planes: static or kinetic."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from jfric.contact import rules
from jfric.contact.cones import solve_cones
from jfric.contact.contact_lcp import ContactProblem
from jfric.contact.contact_methods import Impulses
from jfric.numerics.linear_algebra import matvec
from jfric.results.modes import Mode
from jfric.solvers.time_stepping.prepared import Prepared
from jfric.solvers.time_stepping.tolerance import moves


def in_both_directions(prepared: Prepared, x: Array) -> Array:
    """For each tangent (nt,) the largest of ``x`` in its plane; ``x`` itself where it is alone."""
    for i, j in prepared.mechanics.planes:
        x = x.at[np.asarray([i, j])].set(jnp.maximum(x[i], x[j]))
    return x


def speeds(prepared: Prepared, before: Float[Array, " nt"]) -> Float[Array, " nt"]:
    """Sliding speeds, in a plane that of both directions."""
    found = jnp.abs(before)
    for i, j in prepared.mechanics.planes:
        squared = before[i] ** 2 + before[j] ** 2
        fast = squared > 0
        speed = jnp.where(fast, jnp.sqrt(jnp.where(fast, squared, 1.0)), 0.0)
        found = found.at[np.asarray([i, j])].set(speed)
    return found


def settled_in_cones(
    prepared: Prepared,
    problem: Callable[[Bool[Array, " nt"]], ContactProblem],
    mode: Int[Array, " nt"],
    before: Float[Array, " nt"],
    parts: Float[Array, " m"],
) -> tuple[Impulses, Float[Array, " m"]]:
    """Impulses, and signs of motion, where friction acts in planes; arguments: as for
    ``friction.settled``. Where reactions are redundant, the impulses found decide who moves."""
    nt, planes = before.shape[0], prepared.mechanics.planes

    def solution(p: ContactProblem) -> Impulses:
        return solve_cones(p, planes, prepared.method)  # type: ignore[arg-type]

    def direction(p: ContactProblem, solved: Impulses):
        size = jnp.abs(p.gamma) + matvec(jnp.abs(p.D), jnp.abs(solved.impulse))
        found = moves(solved.gamma, size, parts)
        moving = in_both_directions(prepared, jnp.abs(found[:nt]))
        # In a plane the sign says whether it moves.
        rows = np.asarray(planes).ravel()
        tangents = found[:nt].at[rows].set(moving[rows])
        return jax.lax.stop_gradient(jnp.concatenate([tangents, found[nt:]]))

    none = jnp.zeros((nt,), bool)
    if not prepared.breakaway:
        p = problem(none)
        solved = solution(p)
        return solved, direction(p, solved)
    stuck = mode == Mode.STICK
    earlier = jnp.where(stuck, 0.0, jax.lax.stop_gradient(before))

    def reverses(gamma):
        product = gamma * earlier
        for i, j in planes:
            product = product.at[np.asarray([i, j])].set(product[i] + product[j])
        return product < 0

    def once(carry):
        holds, released, iterations, _ = carry
        p = jax.lax.stop_gradient(problem(holds))
        tried = solution(p)
        moving = direction(p, tried)[:nt] != 0
        released = released | (holds & moving)
        following = rules.holds_next(holds, moving & reverses(tried.gamma[:nt]), released)
        changed = (following != holds).any()
        return following, released, iterations + tried.iterations, changed

    start = (stuck, none, jnp.asarray(0, jnp.int32), jnp.asarray(True))
    holds, _, iterations, _ = jax.lax.while_loop(lambda c: c[3], once, start)
    p = problem(holds)
    solved = solution(p)
    return solved._replace(iterations=solved.iterations + iterations), direction(p, solved)
