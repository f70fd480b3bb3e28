"""Contact problems without iteration: one contact in closed form, several by pivoting."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from jfric.contact.contact_problem import ContactProblem
from jfric.numerics.choice import select
from jfric.numerics.lemke import lemke
from jfric.numerics.linear_algebra import matmul, matvec
from jfric.results.modes import Mode


class Coefficients(NamedTuple):
    """Limits of one contact for the two directions of sliding: coefficients, or impulses."""

    static_positive: Any
    static_negative: Any
    kinetic_positive: Any
    kinetic_negative: Any


class ContactNumbers(NamedTuple):
    """Constants of a unilateral contact with friction, computed once from ``D`` and ``mu``.

    Stick: ``lambda_T = tt gamma_T + tn gamma_N``, ``lambda_N = nt gamma_T + nn gamma_N``. Sliding
    to the side ``s``: ``lambda_N = press_s gamma_N``, ``gamma_T+ = gamma_T + shift_s gamma_N``.
    """

    tt: Any
    tn: Any
    nt: Any
    nn: Any
    press_positive: Any
    press_negative: Any
    shift_positive: Any
    shift_negative: Any
    mu: Coefficients


def contact_numbers(D, mu: Coefficients) -> ContactNumbers:
    """Constants of a contact with the matrix ``D = ((tt, tn), (nt, nn))``."""
    (tt, tn), (nt, nn) = D
    inverse = 1.0 / (tt * nn - tn * nt)
    press_p = -1.0 / (nn - mu.kinetic_positive * nt)
    press_n = -1.0 / (nn + mu.kinetic_negative * nt)
    return ContactNumbers(
        tt=-nn * inverse,
        tn=tn * inverse,
        nt=nt * inverse,
        nn=-tt * inverse,
        press_positive=press_p,
        press_negative=press_n,
        shift_positive=(tn - mu.kinetic_positive * tt) * press_p,
        shift_negative=(tn + mu.kinetic_negative * tt) * press_n,
        mu=mu,
    )


def element_impulse(d, inverse, gamma, limit: Coefficients, direction=None):
    """Impulse and mode of friction with given limits: ``gamma + d lambda`` obeys Coulomb's law.

    ``inverse = 1/d``. ``direction``: sign of the sliding velocity so far, 0 in stick; None where
    static and kinetic coefficients are the same.
    """
    holding = -gamma * inverse
    sticks = (holding >= -limit.static_positive) & (holding <= limit.static_negative)
    forward = holding < 0.0
    if direction is not None:
        ahead = (direction > 0) & (gamma > d * limit.kinetic_positive)
        back = (direction < 0) & (gamma < -d * limit.kinetic_negative)
        sticks = sticks & ~ahead & ~back
        forward = ahead | (forward & ~back)
    sliding = select(forward, -limit.kinetic_positive, limit.kinetic_negative)
    mode = select(sticks, Mode.STICK, select(forward, Mode.SLIP_POS, Mode.SLIP_NEG))
    return select(sticks, holding, sliding), mode.astype(jnp.int32)


def contact_impulse(c: ContactNumbers, gamma_t, gamma_n, direction=None):
    """Impulses (tangential, normal) and mode of one unilateral contact with friction, and whether
    they obey the laws (large friction may leave no solution)."""
    mu = c.mu
    hold_t = c.tt * gamma_t + c.tn * gamma_n
    hold_n = c.nt * gamma_t + c.nn * gamma_n
    sticks = (hold_t >= -mu.static_positive * hold_n) & (hold_t <= mu.static_negative * hold_n)
    after_p = gamma_t + c.shift_positive * gamma_n
    after_n = gamma_t + c.shift_negative * gamma_n
    forward = after_p > 0.0
    if direction is not None:
        ahead, back = (direction > 0) & forward, (direction < 0) & (after_n < 0.0)
        sticks = sticks & ~ahead & ~back
        forward = forward & ~back
    is_open = gamma_n >= 0.0
    press = gamma_n * select(forward, c.press_positive, c.press_negative)
    slide = press * select(forward, -mu.kinetic_positive, mu.kinetic_negative)
    normal = select(sticks, hold_n, press)
    mode = select(sticks, Mode.STICK, select(forward, Mode.SLIP_POS, Mode.SLIP_NEG))
    solved = is_open | ((normal >= 0.0) & (sticks | forward | (after_n <= 0.0)))
    return (
        select(is_open, 0.0, select(sticks, hold_t, slide)),
        select(is_open, 0.0, normal),
        select(is_open, Mode.OPEN, mode).astype(jnp.int32),
        solved,
    )


def frictionless_impulse(inverse, gamma):
    """Impulse and mode (open, or closed) of a unilateral contact without friction."""
    is_open = gamma >= 0.0
    impulse = select(is_open, 0.0, -gamma * inverse)
    return impulse, select(is_open, Mode.OPEN, Mode.CLOSED).astype(jnp.int32)


def closed_form(problem: ContactProblem) -> Int[Array, " nt"]:
    """Mode of the only contact of ``problem``; the residual tells whether it obeys the laws.

    Every candidate (open, stick, sliding to either side) is computed, and the first one that obeys
    the laws is taken. A contact that slides feels the kinetic coefficients until its sliding
    velocity is zero; one that sticks holds up to the static ones.
    """
    p, nu = problem, problem.touching.shape[0]
    kept = select(p.sliding < 0, Mode.SLIP_NEG, Mode.SLIP_POS).astype(jnp.int32)
    if nu == 0:
        limit = Coefficients(*(p.cap_positive[0], p.cap_negative[0]) * 2)
        d = select(p.D[0, 0] > 0, p.D[0, 0], 1.0)
        _, mode = element_impulse(d, 1.0 / d, p.gamma[0], limit)
        return select(p.decided, mode, kept)
    mu = Coefficients(*(p.mu_positive[0], p.mu_negative[0]) * 2)
    # Without friction there is no tangent; a decoupled one with unit mobility takes its place.
    rubs = p.decided[0] & (p.D[0, 0] > 0)
    tt, coupling = select(rubs, p.D[0, 0], 1.0), select(rubs, p.D[0, 1], 0.0)
    numbers = contact_numbers(((tt, coupling), (coupling, p.D[1, 1])), mu)
    _, _, mode, _ = contact_impulse(numbers, p.gamma[0], p.gamma[1])
    mode = select(p.decided | (mode == Mode.OPEN), mode, kept)
    return select(p.touching, mode, Mode.OPEN).astype(jnp.int32)


class ContactSolution(NamedTuple):
    """Modes that obey all laws (if ``solved``), and the number of pivots."""

    mode: Int[Array, " nt"]
    solved: Bool[Array, ""]
    pivots: Int[Array, ""]


def solve_contacts(problem: ContactProblem, *, needed: Bool[Array, ""] | bool = True):
    """Modes of all contacts by Lemke's method; see :class:`ContactSolution`.

    Friction along lines is a linear complementarity problem. In the symbols of
    :mod:`jfric.contact.contact_problem`, with ``a = lambda_T + c+`` and ``gamma_T = p - n``::

        0 <= xi_N = gamma_N         _|_  lambda_N >= 0
        0 <= p    = gamma_T + n     _|_  a >= 0
        0 <= b    = c+ + c- - a     _|_  n >= 0

    Source: Pfeiffer, Glocker, Multibody Dynamics with Unilateral Contacts, section 5.3.
    Friction elements that are not decided keep their sliding direction; unilateral contacts that
    do not touch are open.
    """
    p, _ = problem.in_units()
    nt, nf, nu, D = p.nt, p.nf, p.touching.shape[0], p.D
    mu_p, mu_n, cap_p, cap_n = p.mu_positive, p.mu_negative, p.cap_positive, p.cap_negative
    # lambda_T = a - ratio lambda_N - fixed
    slides = select(p.decided, 1.0, p.sliding)
    ratio = select(slides[nf:] > 0, mu_p, select(slides[nf:] < 0, -mu_n, 0.0))
    fixed = select(slides > 0, cap_p, select(slides < 0, -cap_n, 0.0))
    own = jnp.concatenate([jnp.zeros((nf, nu), D.dtype), jnp.eye(nu, dtype=D.dtype)])
    push = jnp.concatenate([-own * ratio[None, :], jnp.eye(nu, dtype=D.dtype)])
    gamma = p.gamma - matvec(D[:, :nt], fixed)
    normal = matmul(D, push)

    active = jnp.concatenate([p.touching, p.decided, p.decided])
    zero, unit = jnp.zeros((nt, nt), D.dtype), jnp.eye(nt, dtype=D.dtype)
    M = jnp.block(
        [
            [normal[nt:], D[nt:, :nt], jnp.zeros((nu, nt), D.dtype)],
            [normal[:nt], D[:nt, :nt], unit],
            [own * (mu_p + mu_n)[None, :], -unit, zero],
        ]
    )
    M = select(active[:, None] & active[None, :], M, 0.0)
    q = jnp.concatenate([gamma[nt:], gamma[:nt], jnp.zeros_like(cap_p)])
    # Rows without a decision may be much larger than the others and must not set the scale.
    speed = jnp.max(jnp.abs(select(active, q, 0.0)), initial=0.0)
    speed = jnp.maximum(speed, jnp.finfo(D.dtype).tiny)
    q = q.at[nu + nt :].set(cap_p + cap_n) / speed
    result = lemke(M, select(active, q, 1.0), needed=needed)

    a, n = result.basic[nu : nu + nt], result.basic[nu + nt :]
    mode = select(a, select(n, Mode.SLIP_NEG, Mode.STICK), Mode.SLIP_POS)
    kept = select(p.sliding < 0, Mode.SLIP_NEG, Mode.SLIP_POS)
    mode = select(p.decided, mode, kept)
    closed = jnp.concatenate([jnp.ones((nf,), bool), result.basic[:nu]])
    mode = select(closed, mode, Mode.OPEN).astype(jnp.int32)
    return ContactSolution(mode, result.solved, result.pivots)
