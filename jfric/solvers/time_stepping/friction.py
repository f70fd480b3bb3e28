"""Which coefficients of friction hold on a step: static or kinetic."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jfric.complementarity.closed_form import Coefficients
from jfric.complementarity.contact_lcp import ContactProblem
from jfric.complementarity.contact_methods import Impulses, solve_impulses
from jfric.linear_algebra import matvec
from jfric.modes import Mode
from jfric.solvers.time_stepping.prepared import Prepared
from jfric.solvers.time_stepping.tolerance import moves


def coefficients(prepared: Prepared, speed: Float[Array, " nt"]) -> Coefficients:
    """Coefficients (nt,) of all contacts, the kinetic ones at sliding speeds ``speed >= 0``."""
    laws = prepared.mechanics.laws
    static = [law.static() for law in laws]
    kinetic = [law.kinetic(speed[i]) for i, law in enumerate(laws)]
    dtype = prepared.h.dtype

    def column(pairs, side):
        return jnp.stack([jnp.asarray(p[side], dtype) for p in pairs])

    return Coefficients(
        column(static, 0), column(static, 1), column(kinetic, 0), column(kinetic, 1)
    )


class Limits(NamedTuple):
    """Which limits hold, while they are being settled.

    ``holds`` (nt,): contacts with static coefficients; ``released``: those that slid in spite of
    them and never get them again. ``changed``: whether the contact problem must be solved again.
    """

    holds: Bool[Array, " nt"]
    released: Bool[Array, " nt"]
    mode: Int[Array, " nt"]
    iterations: Int[Array, ""]
    changed: Bool[Array, ""]


def settled(
    prepared: Prepared,
    problem: Callable[[Bool[Array, " nt"]], ContactProblem],
    mode: Int[Array, " nt"],
    before: Float[Array, " nt"],
    parts: Float[Array, " m"],
) -> tuple[Impulses, Float[Array, " m"]]:
    """Impulses with the limits that belong to them, and signs of the relative velocities then.

    Contacts at rest hold up to the static limit; those that move in spite of it get the kinetic
    one, and everything is solved again. What counts is motion, not the mode that a method reports:
    where contacts are redundant, one that carries its limit need not move, and stick holds as long
    as any admissible impulses hold the body. ``mode``, ``before``: modes and sliding velocities at
    the start of the step; ``parts``: see :func:`moves`.
    """
    nt = before.shape[0]

    def solution(p: ContactProblem, start):
        return solve_impulses(p, prepared.method, start)  # type: ignore[arg-type]

    def direction(p: ContactProblem, impulses: Impulses):
        size = jnp.abs(p.gamma) + matvec(jnp.abs(p.D), jnp.abs(impulses.impulse))
        return jax.lax.stop_gradient(moves(impulses.gamma, size, parts))

    holds = jnp.zeros((nt,), bool)
    if prepared.breakaway:
        stuck = mode == Mode.STICK
        earlier = jnp.where(stuck, 0.0, jnp.sign(jax.lax.stop_gradient(before)))

        def once(limits: Limits) -> Limits:
            # Decisions have no derivatives.
            p = jax.lax.stop_gradient(problem(limits.holds))
            tried = solution(p, limits.mode)
            return next_limits(limits, tried, direction(p, tried)[:nt], earlier)

        none, zero = jnp.zeros((nt,), bool), jnp.asarray(0, jnp.int32)
        first = Limits(stuck, none, mode, zero, jnp.asarray(True))
        limits = jax.lax.while_loop(lambda limits: limits.changed, once, first)
        holds, mode = limits.holds, limits.mode
    p = problem(holds)
    solved = solution(p, mode)
    if prepared.breakaway:
        solved = solved._replace(iterations=solved.iterations + limits.iterations)
    return solved, direction(p, solved)


def next_limits(limits: Limits, tried: Impulses, now, earlier) -> Limits:
    """Limits after impulses ``tried``: of contacts that move (sign ``now``), and moved ``earlier``.

    One that was held and moves takes the kinetic coefficient for good; one whose sliding would
    reverse within the step is held first. Each contact changes at most twice, so that this ends.
    """
    released = limits.released | (limits.holds & (now != 0))
    holds = (limits.holds | (now * earlier < 0)) & ~released
    return Limits(
        holds,
        released,
        tried.mode,
        limits.iterations + tried.iterations,
        (holds != limits.holds).any(),
    )
