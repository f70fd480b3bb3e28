"""One sample from ``t`` to ``t + h``, with all stops, reversals and breakaways in it.

In a phase (sliding in one direction, or stick) the motion is one step of the classical Runge-Kutta
method of order 4, or an implicit one of order 5 where bristles make the equations stiff. The
velocity on this step is a cubic through its values and slopes at both ends;
if the cubic has no zero, the sample is one phase. Otherwise the phase ends at the first zero, found
by Newton's method on the Runge-Kutta step itself; the velocity is zero there, and the law decides
between stick and the other direction. Derivatives of the switching time follow from the implicit
function theorem. Without friction, where elements remember, there are phases as well, because their
equations differ between both directions; stick has no force then. Springs that begin to slip within
a phase are not events: the force has a kink there.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jfric.solvers.sampled.equations import Equations, State

#: Newton steps to a switching time; each is safeguarded by a bracket.
NEWTON = 8
#: Phases in one sample before the update gives up.
PHASES = 12


class Phase(NamedTuple):
    """State within a sample: elapsed time, state, number of phases.

    ``broken``: direction in which the last phase broke loose, else 0. The force is then at its
    limit, and rounding must not decide whether the limit is exceeded.
    """

    passed: jax.Array
    x: State
    broken: jax.Array
    count: jax.Array


@jax.jit
def advanced(equations: Equations, t, x: State, s, h) -> tuple[State, jax.Array]:
    """State after ``h``, sliding along ``s``, and the first acceleration."""
    q, v = x.q, x.v
    a1 = equations.acceleration(t, x, s)
    if x.bristles.shape[0]:
        return equations.implicit_step(t, x, s, h), a1

    def acceleration(t, q, v):
        return equations.acceleration(t, equations.at(x, q, v, x.bristles), s)

    v2 = v + 0.5 * h * a1
    a2 = acceleration(t + 0.5 * h, q + 0.5 * h * v, v2)
    v3 = v + 0.5 * h * a2
    a3 = acceleration(t + 0.5 * h, q + 0.5 * h * v2, v3)
    v4 = v + h * a3
    a4 = acceleration(t + h, q + h * v3, v4)
    q_new = q + h / 6.0 * (v + 2.0 * v2 + 2.0 * v3 + v4)
    v_new = v + h / 6.0 * (a1 + 2.0 * a2 + 2.0 * a3 + a4)
    return equations.at(x, q_new, v_new, x.bristles), a1


def update(equations: Equations, t, x: State, h) -> tuple[State, jax.Array]:
    """State after the sample, and whether it was completed."""
    v, w = x.v, equations.direction
    if equations.width is not None or not equations.turns:
        return advanced(equations, t, x, jnp.ones_like(v), h)[0], jnp.asarray(True)
    # Nearly all samples are one phase: the loop is entered only for the others.
    s = jnp.sign(w * v)
    s_safe = jnp.where(s == 0.0, 1.0, s)
    end, a_start = advanced(equations, t, x, s_safe, h)
    a_end = equations.acceleration(t + h, end, s_safe)
    quiet = (s != 0.0) & ~_reverses(s * w * v, s * w * end.v, s * w * a_start, s * w * a_end, h)[0]
    # Between two samples the force in stick is monotonic, so that both ends suffice.
    rests = (v == 0.0) & (_margin(equations, t, x) >= 0) & (_margin(equations, t + h, x) >= 0)
    start = Phase(
        jnp.where(quiet | rests, h, 0.0),
        _chosen(quiet, end, x.rests(rests)),
        jnp.zeros_like(v),
        jnp.zeros((), jnp.int32),
    )

    def unfinished(p: Phase):
        return (p.passed < h) & (p.count < PHASES)

    end = lax.while_loop(unfinished, lambda p: _phase(equations, t, h, p), start)
    return end.x, end.passed >= h


def _chosen(where, one: State, other: State) -> State:
    return jax.tree.map(lambda a, b: jnp.where(where, a, b), one, other)


@jax.jit
def _reverses(v0, v1, a0, a1, h):
    """Whether the cubic through (v0, a0) and (v1, a1) falls below zero, and a time after that.

    ``v0 >= 0``; a zero at the very start is the breakaway, not a reversal.
    """
    safe = jnp.where(h > 0, h, 1.0)
    slope = (v1 - v0) / safe
    c2 = (3.0 * slope - 2.0 * a0 - a1) / safe
    c3 = (a0 + a1 - 2.0 * slope) / safe**2
    discriminant = c2 * c2 - 3.0 * c3 * a0
    root = jnp.sqrt(jnp.where(discriminant > 0, discriminant, 1.0))
    below = c2 + root
    lowest = -a0 / jnp.where(below != 0, below, 1.0)
    dip = v0 + lowest * (a0 + lowest * (c2 + lowest * c3))
    dips = (discriminant > 0) & (below != 0) & (lowest > 0) & (lowest < h) & (dip < 0)
    return (v1 < 0) | dips, jnp.where(v1 < 0, h, jnp.where(dips, lowest, h))


def _phase(equations: Equations, t, h, p: Phase) -> Phase:
    """State after one phase of sliding or stick, at the end of the phase or of the sample."""
    w, x = equations.direction, p.x
    now, left = t + p.passed, h - p.passed
    push = equations.push(now, x)
    positive, negative = equations.stick_limits(now, x.q)
    beyond = jnp.where(push > positive, 1.0, jnp.where(push < -negative, -1.0, 0.0))
    s = jnp.where(p.broken != 0.0, p.broken, beyond)
    s = jnp.where(x.v == 0.0, s, jnp.sign(w * x.v))
    slides = s != 0.0
    s_safe = jnp.where(slides, s, 1.0)
    end, a_start = advanced(equations, now, x, s_safe, left)
    a_end = equations.acceleration(now + left, end, s_safe)
    turns, after = _reverses(
        s_safe * w * x.v, s_safe * w * end.v, s_safe * w * a_start, s_safe * w * a_end, left
    )

    def sliding(tau):
        """Speed after ``tau`` and its rate of change."""
        found, _ = advanced(equations, now, x, s_safe, tau)
        rate = equations.acceleration(now + tau, found, s_safe)
        return s_safe * w * found.v, s_safe * w * rate

    def sticking(tau):
        return jax.jvp(lambda at: _margin(equations, at, x), (now + tau,), (jnp.ones_like(tau),))

    breaks = _margin(equations, now + left, x) < 0
    push_end = equations.push(now + left, x)

    def guard(tau):
        return jax.tree.map(lambda a, b: jnp.where(slides, a, b), sliding(tau), sticking(tau))

    switches = jnp.where(slides, turns, breaks)
    tau = _first_zero(guard, jnp.where(slides, after, left), switches)
    turn, _ = advanced(equations, now, x, s_safe, tau)
    length = jnp.where(switches, tau, left)
    return Phase(
        jnp.where(switches, p.passed + length, h),
        _chosen(slides, _chosen(switches, turn, end), x).rests(~slides | switches),
        jnp.where(switches & ~slides, jnp.sign(push_end), 0.0),
        p.count + 1,
    )


@jax.jit
def _margin(equations: Equations, t, x: State):
    """Smaller distance of the force in stick from its two limits; negative where stick breaks."""
    force = equations.push(t, x)
    positive, negative = equations.stick_limits(t, x.q)
    return jnp.minimum(positive - force, negative + force)


def _first_zero(guard, hi, wanted):
    """First zero of ``guard(tau) -> (value, rate)`` in (0, hi], before which it is positive."""
    frozen = lax.stop_gradient

    def newton(_, bracket):
        lo, hi, tau = bracket
        value, rate = guard(tau)
        lo, hi = jnp.where(value > 0, tau, lo), jnp.where(value > 0, hi, tau)
        new = tau - value / jnp.where(rate != 0, rate, 1.0)
        inside = (new >= lo) & (new <= hi)
        new = jnp.where(inside, new, 0.5 * (lo + hi))
        return frozen(lo), frozen(hi), frozen(new)

    start = frozen(jnp.where(wanted, hi, 0.0))
    _, _, tau = lax.fori_loop(
        0,
        NEWTON,
        lambda i, b: jax.tree.map(frozen, newton(i, b)),
        (jnp.zeros_like(start), start, start),
    )
    tau = frozen(tau)
    # The implicit function theorem: the zero moves by -(change of the guard)/(its rate).
    value, rate = guard(tau)
    rate = frozen(jnp.where(rate != 0, rate, 1.0))
    return jnp.where(wanted, tau - (value - frozen(value)) / rate, 0.0)
