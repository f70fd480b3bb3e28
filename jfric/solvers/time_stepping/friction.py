"""Choice of the coefficients of friction that hold on a step: static or kinetic."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from jfric.contact import rules
from jfric.contact.contact_methods import Impulses, solve_impulses, solved_below
from jfric.contact.contact_problem import ContactProblem, impulse_residual
from jfric.contact.direct_methods import (
    Coefficients,
    contact_impulse,
    contact_numbers,
    element_impulse,
    frictionless_impulse,
)
from jfric.contact.iterative_methods import solve_linear
from jfric.contact.reactions import active_rows, coupling, reaction_operator
from jfric.numerics.choice import select
from jfric.numerics.lemke import lemke
from jfric.numerics.linear_algebra import matmul, matvec
from jfric.results.modes import Mode
from jfric.results.status import Flag, Status
from jfric.solvers.time_stepping.prepared import Prepared, moves


class Basis(NamedTuple):
    """Multipliers that carry: first and second edge of each unilateral contact's cone, friction
    elements inside their limits, and those at the upper one."""

    first: Bool[Array, " nu"]
    second: Bool[Array, " nu"]
    inside: Bool[Array, " nf"]
    upper: Bool[Array, " nf"]


class _Edges(NamedTuple):
    """``lambda = fixed + E a`` and the rows ``R gamma`` that complement ``a >= 0``: both edges of
    each cone, then friction elements from the lower limit on; ``used`` marks those that exist."""

    E: Float[Array, "m k"]
    R: Float[Array, "k m"]
    fixed: Float[Array, " m"]
    used: Bool[Array, " k"]
    span: Float[Array, " nf"]


def _edges(p: ContactProblem, held: Bool[Array, " nt"], mode: Int[Array, " nt"]) -> _Edges:
    nt, nu = p.decided.shape[0], p.touching.shape[0]
    nf, dtype = nt - nu, p.D.dtype
    side = select(mode == Mode.SLIP_POS, 1, select(mode == Mode.SLIP_NEG, -1, 0))
    held = held | (side == 0)
    own, slides = held[nf:], select(side[nf:] > 0, -p.mu_positive, p.mu_negative)
    slides = select(p.decided[nf:], slides, 0.0)
    rubs = own & p.decided[nf:]
    first = select(rubs, -p.mu_positive, select(own, 0.0, slides))
    second = select(rubs, p.mu_negative, 0.0)
    unit = jnp.eye(nu, dtype=dtype)
    zero = jnp.zeros((nf, nu), dtype)
    edge = [jnp.concatenate([zero, unit * mu[None, :], unit]) for mu in (first, second)]
    # Velocities of held contacts count along their edges, those of the others along the normals.
    row = [
        jnp.concatenate([zero, unit * select(rubs, mu, 0.0)[None, :], unit])
        for mu in (first, second)
    ]
    friction = jnp.eye(nt + nu, nf, dtype=dtype)
    at_limit = select(side > 0, -p.cap_positive, p.cap_negative)[:nf]
    lower = select(held[:nf], -p.cap_positive[:nf], at_limit)
    return _Edges(
        E=jnp.concatenate([*edge, friction], axis=1),
        R=jnp.concatenate([*row, friction], axis=1).T,
        fixed=jnp.concatenate([lower, jnp.zeros((2 * nu,), dtype)]),
        used=jnp.concatenate([p.touching, p.touching & rubs, held[:nf]]),
        span=(p.cap_positive + p.cap_negative)[:nf],
    )


def rest_basis(
    problem: ContactProblem, held: Bool[Array, " nt"], mode: Int[Array, " nt"], needed=True
) -> tuple[Basis, Bool[Array, ""]]:
    """Basis that keeps the contacts ``held`` at rest if any does, and whether one was found. Other
    contacts slide to the side of their ``mode``.

    With Coulomb's law a body on redundant contacts may have a solution that slides next to one that
    rests: the normal forces are not unique, and another distribution finds less friction. Rest is
    then the answer, as for limit loads. It is found by the *associated* problem: impulses of the
    held contacts in their friction cone ``K``, relative velocities in the dual cone::

        lambda in K,   gamma = gamma_0 + D lambda in K*,   lambda^T gamma = 0

    These are the conditions of a minimum of ``lambda^T D lambda / 2 + gamma_0^T lambda``, which has
    ``gamma = 0`` if any impulse in ``K`` has. ``K`` is spanned by its two edges
    ``lambda_T = -mu+`` and ``lambda_T = +mu-`` for ``lambda_N = 1``.
    """
    p, nu = problem, problem.touching.shape[0]
    e = _edges(p, held, mode)
    nf = e.span.shape[0]
    inner = select(e.used[:, None] & e.used[None, :], matmul(e.R, matmul(p.D, e.E)), 0.0)
    right = matvec(e.R, p.gamma + matvec(p.D, e.fixed))
    speed = jnp.max(jnp.abs(select(e.used, right, 0.0)), initial=jnp.finfo(p.D.dtype).tiny)
    right = select(e.used, right / speed, 1.0)
    size = 2 * nu + nf
    bounded = select(e.used[2 * nu :], 1.0, 0.0)[:, None] * jnp.eye(nf, size, 2 * nu)
    M = jnp.block([[inner, bounded.T], [-bounded, jnp.zeros((nf, nf))]]).astype(p.D.dtype)
    limit = select(e.used[2 * nu :], e.span / speed, 1.0)
    found = lemke(M, jnp.concatenate([right, limit]), needed=needed)
    basic, upper = found.basic[:size] & e.used, found.basic[size:]
    inside = basic[2 * nu :] & ~upper
    return Basis(basic[:nu], basic[nu : 2 * nu], inside, upper), found.solved


def rest_impulses(
    problem: ContactProblem, held: Bool[Array, " nt"], mode: Int[Array, " nt"], basis: Basis
) -> Float[Array, " m"]:
    """Impulses (m,) of the multipliers in ``basis``, by one linear system; differentiable."""
    p, e = problem, _edges(problem, held, mode)
    carry = jnp.concatenate([basis.first, basis.second, basis.inside])
    above = select(basis.upper, e.span, 0.0)
    fixed = e.fixed.at[: above.shape[0]].add(above)
    mask = carry[:, None] & carry[None, :]
    identity = jnp.eye(carry.shape[0], dtype=p.D.dtype)
    system = select(mask, matmul(e.R, matmul(p.D, e.E)), identity)
    right = -matvec(e.R, p.gamma + matvec(p.D, fixed))
    return fixed + matvec(e.E, solve_linear(system, select(carry, right, 0.0)))


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
    and never get static coefficients again. ``rests``: whether impulses with the ``basis``
    of :func:`rest_basis` hold all these contacts. ``changed``: whether to solve once more.
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
