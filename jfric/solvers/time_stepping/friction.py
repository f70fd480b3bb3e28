"""Choice of the coefficients of friction that hold on a step: static or kinetic."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from jfric.contact import rules
from jfric.contact.closed_form import (
    Coefficients,
    contact_impulse,
    contact_numbers,
    element_impulse,
    frictionless_impulse,
)
from jfric.contact.contact_methods import Impulses, solve_impulses, solved_below
from jfric.contact.contact_problem import ContactProblem
from jfric.contact.natural_map import impulse_residual
from jfric.contact.reactions import active_rows, coupling, reaction_operator
from jfric.contact.resting import Basis, rest_basis, rest_impulses
from jfric.numerics.linear_algebra import matvec
from jfric.results.modes import Mode
from jfric.results.status import Flag, Status
from jfric.solvers.time_stepping.prepared import Prepared
from jfric.solvers.time_stepping.tolerance import moves


def coefficients(prepared: Prepared, speed: Float[Array, " nt"]) -> Coefficients:
    """Coefficients (nt,) of all contacts, the kinetic ones at sliding speeds ``speed >= 0``."""
    laws = prepared.mechanics.laws
    static = [law.static() for law in laws]
    kinetic = [law.kinetic(speed[i]) for i, law in enumerate(laws)]
    dtype = prepared.h.dtype

    def column(pairs, side):
        found = [jnp.asarray(p[side], dtype) for p in pairs]
        return jnp.stack(found) if found else jnp.zeros((0,), dtype)

    return Coefficients(
        column(static, 0), column(static, 1), column(kinetic, 0), column(kinetic, 1)
    )


def speeds(prepared: Prepared, before: Float[Array, " nt"]) -> Float[Array, " nt"]:
    """Sliding speeds of all contacts; in a plane the speed of both directions together."""
    found = jnp.abs(before)
    for i, j in prepared.mechanics.planes:
        squared = before[i] ** 2 + before[j] ** 2
        fast = squared > 0
        speed = jnp.where(fast, jnp.sqrt(jnp.where(fast, squared, 1.0)), 0.0)
        found = found.at[np.asarray([i, j])].set(speed)
    return found


def in_closed_form(
    prepared: Prepared,
    problem: Callable[..., ContactProblem],
    mode: Int[Array, " nt"],
    before: Float[Array, ""],
) -> Impulses:
    """Impulses of a single contact, with the limits that belong to them, without a search.

    ``mode``, ``before``: mode and sliding velocity at the start of the step. The status tells
    whether any mode obeys the laws; the residual of the impulses remains to be checked.
    """
    mechanics, nu = prepared.mechanics, prepared.nu
    yes, no = np.ones((1,), bool), np.zeros((1,), bool)
    p, static = problem(no, smooth=no), problem(yes, smooth=no)
    names = ("mu_positive", "mu_negative") if nu else ("cap_positive", "cap_negative")
    limit = Coefficients(*(getattr(side, name)[0] for side in (static, p) for name in names))
    direction = None
    if prepared.breakaway:
        direction = jnp.where(mode[0] == Mode.STICK, 0.0, before)
    solved = jnp.asarray(True)
    if nu == 0:
        d = p.D[0, 0]
        tangential, found = element_impulse(d, 1.0 / d, p.gamma[0], limit, direction)
        impulse = tangential[None]
    else:
        if mechanics.frictionless[0]:
            normal, found = frictionless_impulse(1.0 / p.D[1, 1], p.gamma[1])
            tangential = jnp.zeros_like(normal)
        else:
            numbers = contact_numbers(p.D, limit)
            if mechanics.smooth_impact[0]:
                # The choice between the two changes from step to step, their numbers seldom.
                bare = contact_numbers(p.D, Coefficients(*(jnp.zeros_like(x) for x in limit)))
                was_open = mode[0] == Mode.OPEN
                numbers = jax.tree.map(lambda a, b: jnp.where(was_open, a, b), bare, numbers)
            tangential, normal, found, solved = contact_impulse(
                numbers, p.gamma[0], p.gamma[1], direction
            )
        touching = p.touching[0]
        impulse = jnp.where(touching, jnp.stack([tangential, normal]), 0.0)
        found = jnp.where(touching, found, Mode.OPEN).astype(jnp.int32)
        solved = solved | ~touching
    judged = jax.lax.stop_gradient((problem((found == Mode.STICK)[None]), impulse))
    return Impulses(
        impulse=impulse,
        gamma=p.gamma + matvec(p.D, impulse),
        mode=found[None],
        iterations=jnp.asarray(1, jnp.int32),
        residual=impulse_residual(*judged),
        status=jnp.where(solved, int(Status.OK), int(Status.INCONSISTENT)).astype(jnp.int32),
    )


def shares(prepared: Prepared, mode: Int[Array, " nt"], gamma: Float[Array, " m"]):
    """Flags for the ``mode`` of a step that begins with relative velocities ``gamma``: whether the
    forces of its contacts are not unique, and whether the motion depends on how they share a load.

    The rule is that of the event-driven solver, which ends such a motion. Here forces and motion
    are those that the method finds, and derivatives belong to its choice.
    """
    mechanics, nf = prepared.mechanics, prepared.nf
    prepared, gamma = jax.lax.stop_gradient((prepared, gamma[: prepared.nt]))
    fast = speeds(prepared, gamma)
    now, planes = coefficients(prepared, fast), mechanics.contact_planes
    S = coupling(mode, now.kinetic_positive, now.kinetic_negative, nf, planes)
    for pair in map(np.asarray, planes):
        along = gamma[pair] / jnp.where(fast[pair] > 0, fast[pair], 1.0)
        ratio = jnp.where(rules.slides(mode[pair]), -now.kinetic_positive[pair] * along, 0.0)
        S = S._replace(ratio=S.ratio.at[pair - nf].set(ratio))
    rubs = ~np.asarray(mechanics.frictionless, bool)
    active = active_rows(mode, nf, planes) & np.append(rubs, np.ones(prepared.nu, bool))
    how = {"independent": False, "n_normals": prepared.nu, "size": prepared.D_size}
    R = reaction_operator(prepared.D_mass, active, S, **how)
    flags = jnp.where(R.redundant, int(Flag.REDUNDANT | Flag.ONE_SIDED), 0)
    return jnp.where(R.unique, flags, flags | int(Flag.SEVERAL_MOTIONS)).astype(jnp.int32)


class Limits(NamedTuple):
    """Choice of limits while it is being settled.

    ``holds`` (nt,): contacts with static coefficients; ``released``: those that slid nevertheless
    and never get static coefficients again. ``rests``: whether impulses with the ``basis`` of
    :mod:`jfric.contact.resting` hold all these contacts. ``changed``: whether to solve once more.
    """

    holds: Bool[Array, " nt"]
    released: Bool[Array, " nt"]
    mode: Int[Array, " nt"]
    iterations: Int[Array, ""]
    changed: Bool[Array, ""]
    rests: Bool[Array, ""]
    basis: Basis


def settled(
    prepared: Prepared,
    problem: Callable[[Bool[Array, " nt"]], ContactProblem],
    mode: Int[Array, " nt"],
    before: Float[Array, " nt"],
    parts: Float[Array, " m"],
) -> tuple[Impulses, Float[Array, " m"]]:
    """Impulses with the limits that belong to them, and signs of the relative velocities then.

    Contacts at rest hold up to the static limit; those that move nevertheless get the kinetic one,
    and the problem is solved again. The motion decides, not the mode that a method reports: where
    contacts are redundant, one that carries its limit need not move, and stick holds as long as any
    admissible impulses hold the body. ``mode``, ``before``: modes and sliding velocities at the
    start of the step; ``parts``: see :func:`moves`.
    """
    nt, nu = before.shape[0], before.shape[0] - prepared.nf
    # With friction in planes the computed impulses decide which contacts move.
    several = nu > 0 and nt > 1 and not prepared.mechanics.planes

    def solution(p: ContactProblem, start) -> Impulses:
        return solve_impulses(p, prepared.method, start)  # type: ignore[arg-type]

    def direction(p: ContactProblem, impulse, gamma):
        size = jnp.abs(p.gamma) + matvec(jnp.abs(p.D), jnp.abs(impulse))
        found = moves(gamma, size, parts)
        for pair in map(np.asarray, p.planes):
            # In a plane the sign shows whether the contact moves.
            found = found.at[pair].set(jnp.max(jnp.abs(found[pair])))
        return jax.lax.stop_gradient(found)

    def reverses(p: ContactProblem, now, gamma):
        product = gamma * earlier
        for pair in map(np.asarray, p.planes):
            product = product.at[pair].set(jnp.sum(product[pair]))
        return (now != 0) & (product < 0)

    def resting(p: ContactProblem, limits: Limits, tried: Impulses, moved) -> Limits:
        """Limits with other impulses, if these hold the contacts that move."""
        basis, found = rest_basis(p, limits.holds, tried.mode, needed=moved.any())
        impulse = rest_impulses(p, limits.holds, tried.mode, basis)
        now = direction(p, impulse, p.gamma + matvec(p.D, impulse))
        moves_still = limits.holds & (now[:nt] != 0)
        moves_still = moves_still.at[nt - nu :].set(
            moves_still[nt - nu :] | (limits.holds[nt - nu :] & p.touching & (now[nt:] != 0))
        )
        lawful = impulse_residual(p, impulse) <= solved_below(p.D.dtype)
        rests = moved.any() & found & lawful & ~moves_still.any()
        # Contacts that no impulses hold are released first: the others may rest without them.
        first = moved & moves_still
        released = jnp.where(first.any(), first, moved)
        return limits._replace(rests=rests, basis=basis, released=limits.released | released)

    none, zero = jnp.zeros((nt,), bool), jnp.asarray(0, jnp.int32)
    if not (prepared.breakaway or several):
        p = problem(none)
        solved = solution(p, mode)
        return solved, direction(p, solved.impulse, solved.gamma)
    stuck = mode == Mode.STICK
    earlier = jnp.where(stuck, 0.0, jax.lax.stop_gradient(before))

    def once(limits: Limits) -> Limits:
        # Decisions have no derivatives.
        p = jax.lax.stop_gradient(problem(limits.holds))
        tried = solution(p, limits.mode)
        now = direction(p, tried.impulse, tried.gamma)[:nt]
        moved = limits.holds & (now != 0)
        if several:
            limits = resting(p, limits, tried, moved)
        else:
            limits = limits._replace(released=limits.released | moved)
        back = reverses(p, now, tried.gamma[:nt])
        holds = rules.holds_next(limits.holds, back, limits.released)
        changed = (holds != limits.holds).any() & ~limits.rests
        return limits._replace(
            holds=jnp.where(limits.rests, limits.holds, holds),
            mode=tried.mode,
            iterations=limits.iterations + tried.iterations,
            changed=changed,
        )

    basis = Basis(*(jnp.zeros((k,), bool) for k in (nu, nu, nt - nu, nt - nu)))
    limits = Limits(stuck, none, mode, zero, jnp.asarray(True), jnp.asarray(False), basis)
    limits = jax.lax.while_loop(lambda limits: limits.changed, once, limits)
    p = problem(limits.holds)
    solved = solution(p, limits.mode)
    solved = solved._replace(iterations=solved.iterations + limits.iterations)
    if several:
        solved = _at_rest(p, limits, solved)
    return solved, direction(p, solved.impulse, solved.gamma)


def _at_rest(p: ContactProblem, limits: Limits, solved: Impulses) -> Impulses:
    """Impulses that keep the held contacts at rest where there are such, else ``solved``."""
    nu = p.touching.shape[0]
    impulse = rest_impulses(p, limits.holds, limits.mode, limits.basis)
    frozen = jax.lax.stop_gradient((p, impulse))
    carries = jnp.concatenate([jnp.ones((limits.holds.shape[0] - nu,), bool), p.touching])
    rest = solved._replace(
        impulse=impulse,
        gamma=p.gamma + matvec(p.D, impulse),
        mode=jnp.where(limits.holds & carries, Mode.STICK, limits.mode).astype(jnp.int32),
        residual=impulse_residual(*frozen),
        status=jnp.zeros_like(solved.status),
    )
    return jax.tree.map(lambda a, b: jnp.where(limits.rests, a, b), rest, solved)
