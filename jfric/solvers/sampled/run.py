"""Loop over the samples, and the phases within a sample."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

from jfric.results.status import Status
from jfric.solvers.given_forces import first_negative_force, status_of_numbers
from jfric.solvers.sampled.equations import Equations, State, require_one_degree
from jfric.system.assembly import assemble
from jfric.system.controller import Controller
from jfric.system.functions import Held, hold, with_held
from jfric.system.problem import Problem


class SampledMotion(NamedTuple):
    """Motion at the samples, and the inputs that acted from each sample to the next."""

    q: Float[Array, " m"]
    v: Float[Array, " m"]
    #: Inputs by path, with the load of the controller.
    inputs: dict[str, Float[Array, " m"]]
    #: :class:`jfric.Status` code.
    status: Int[Array, ""]


def run_sampled(
    problem: Problem,
    t: Float[Array, " m"],
    inputs: Mapping[str, Float[Array, " m"]],
    slots: Mapping[str, tuple[str, str, str]],
    *,
    controller: Controller | None = None,
    reference: Float[Array, " m"] | None = None,
    linear: bool = False,
    substeps: int = 1,
    width: float | None = None,
    states: tuple[Float[Array, "e N"], Float[Array, " b"]] | None = None,
) -> SampledMotion:
    """Motion of a system with one degree of freedom at the samples ``t`` [s].

    ``inputs``: samples of functions of time by path, held until the next sample or, if ``linear``,
    connected by straight lines; ``slots``: section, name and field of every driven path, including
    that of the controller. The motion is unknown (NaN) from the sample on at which a given normal
    force has become negative. Times that are not finite lie after the end, where the motion stands
    still. ``substeps``: steps of the integrator in a sample. ``width``: see :class:`Equations`.
    ``states``: elongations of springs with sliders and states of bristles at the start, in place of
    those of the problem.
    """
    mechanics = assemble(with_held(problem, slots))
    require_one_degree(mechanics)
    start = problem.resolved().initial[problem.axes[0]]
    finite = jnp.isfinite(t)
    t = jnp.where(finite, t, jnp.max(jnp.where(finite, t, -jnp.inf)))
    dt = jnp.diff(t, append=t[-1:])
    q0 = jnp.asarray(start.q, t.dtype)
    v0 = jnp.asarray(start.v, t.dtype)
    sliders = mechanics.piecewise.sliders
    if states is None:
        springs = jnp.zeros((0, 0), t.dtype) if sliders is None else sliders.z0
        states = springs, problem.resolved().start()[2][1:]
    x0 = State(q0, v0, *states)
    rate = jnp.where(dt > 0, dt, 1.0)
    given = {
        path: (u, (jnp.diff(u, append=u[-1:]) / rate) if linear else jnp.zeros_like(u))
        for path, u in inputs.items()
    }
    memory = None
    if controller is not None and reference is not None:
        memory = controller.start(reference[0], q0, v0, dt[0])
    r = t if reference is None else reference

    def one(carry, row):
        x, memory, complete, lawful = carry
        t, h, r, given = row
        pieces = {path: Held(path, value, slope, t) for path, (value, slope) in given.items()}
        if controller is not None:
            force, moved = controller.step(memory, r, x.q, jnp.where(h > 0, h, dt[0]))
            # After the end the controller stands still, too.
            memory = jax.tree.map(lambda a, b: jnp.where(h > 0, a, b), moved, memory)
            pieces[controller.drives] = Held(controller.drives, force, jnp.zeros_like(force), t)
        held = hold(mechanics, pieces)
        equations = Equations(held, width)
        after = x
        for i in range(substeps):
            after, done = update(equations, t + i * h / substeps, after, h / substeps)
            complete = complete & done
        seen = {path: piece.value for path, piece in pieces.items()}
        row = jnp.where(lawful, x.q, jnp.nan), jnp.where(lawful, x.v, jnp.nan), seen
        lawful = lawful & ~(first_negative_force(held, t, t + h) < t + h)
        return (after, memory, complete, lawful), row

    wrong = status_of_numbers(problem, mechanics, t[0], t[0] + 1.0)
    allowed = wrong == int(Status.OK)
    first = (x0, memory, jnp.asarray(True), allowed)
    (_, _, complete, lawful), (q, v, seen) = lax.scan(one, first, (t, dt, r, given))
    status = jnp.where(complete, int(Status.OK), int(Status.STALLED))
    broken = ~(jnp.all(jnp.isfinite(q)) & jnp.all(jnp.isfinite(v)))
    status = jnp.where(broken, int(Status.NON_FINITE), status)
    status = jnp.where(lawful, status, int(Status.NEGATIVE_FORCE))
    status = jnp.where(allowed, status, wrong)
    return SampledMotion(q, v, seen, status)


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
    """State at ``t + h``, with all stops, reversals and breakaways in between, and whether the
    sample was completed.

    In a phase (sliding in one direction, or stick) the motion is one step of the classical
    Runge-Kutta method of order 4, or an implicit one of order 5 where bristles make the equations
    stiff. The velocity on this step is a cubic through its values and slopes at both ends; if the
    cubic has no zero, the sample is one phase. Otherwise the phase ends at the first zero, found by
    Newton's method on the Runge-Kutta step itself; the velocity is zero there, and the law decides
    between stick and the other direction. Derivatives of the switching time follow from the
    implicit function theorem. Without friction, where elements remember, there are phases as well,
    because their equations differ between both directions; stick has no force then. Springs that
    begin to slip within a phase are not events: the force has a kink there.
    """
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
