"""Flow in closed form: one degree of freedom, at most one friction element, piecewise-linear
elements and sliders, loads constant between steps."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from jfric.contact import rules
from jfric.numerics.choice import select
from jfric.numerics.linear_algebra import matvec
from jfric.numerics.loops import once
from jfric.numerics.oscillator import (
    Motion,
    Oscillator,
    Reached,
    Search,
    corrected,
    first_zero,
    motion,
    propagator,
    series,
)
from jfric.numerics.polynomials import horner
from jfric.results.modes import Mode
from jfric.solvers.event_driven.constants import constants
from jfric.solvers.event_driven.exact_flow import natural_step, step_of_rows, taylor_coefficients
from jfric.solvers.event_driven.first_event import Found, limits_of_stick
from jfric.solvers.event_driven.flow_step import Step
from jfric.solvers.event_driven.inputs import Given
from jfric.solvers.event_driven.prepared import Prepared

#: Under constant loads a guard is zero identically if its value and two derivatives are zero: it
#: obeys an equation of second order.
VANISHING = 3
#: Order of the derivatives of an event time.
DERIVATIVES = 3


def is_one_dof(prepared: Prepared) -> bool:
    """Whether this flow applies; decided from the structure of the problem alone."""
    mechanics = prepared.mechanics
    belts = [b for b in mechanics.belts if b is not None]
    constant = (*mechanics.load_functions, *mechanics.normal_forces, *belts)
    return (
        mechanics.n == 1
        and prepared.nt == prepared.nf <= 1
        and prepared.n_guards > 0
        and not mechanics.redirected
        and mechanics.has_linear_modes
        and mechanics.varying is None
        and mechanics.carried is None
        and not mechanics.piecewise.has_couplings
        and not mechanics.base_functions
        and all(_is_constant(f) for f in constant)
        and not any(b.breakpoints().shape[0] for b in belts)
    )


def _is_constant(function) -> bool:
    """Whether a function of time is constant between its breakpoints."""
    parts = function.components(0.0)
    return len(parts.polynomial) <= 1 and not parts.harmonics


class _Motion(NamedTuple):
    """``z = (q, v, 1)`` with ``dz/dt = A z``."""

    A: Float[Array, "z z"]
    z: Float[Array, " z"]
    h: Float[Array, ""]

    def oscillator(self) -> tuple[Oscillator, Motion]:
        """The equation of the motion, and its derivatives at the start of the step."""
        row = self.A[1]
        x = Oscillator(-row[0], -row[1])
        return x, motion(x, self.z[0], self.z[1], matvec(row[None], self.z)[0])

    def __call__(self, s) -> Float[Array, " z"]:
        x, start = self.oscillator()
        step = propagator(x, s * self.h, constants(self.h.dtype).order)
        u, v, _ = start.after(once(step, self.h > 0))  # used by several outputs
        return jnp.stack([u, v, jnp.ones_like(u)])

    def table(self) -> Float[Array, "p z"]:
        return taylor_coefficients(1, self.A, self.z, self.h, constants(self.h.dtype).order)


class ClosedFlow(eqx.Module):
    """Motion in closed form. The end of sliding is found on this motion
    (:mod:`jfric.numerics.oscillator`); limits of friction are linear in time while a contact
    sticks."""

    #: Whether there will be derivatives (in forward mode).
    derivatives: bool = eqx.field(static=True, default=True)
    lands: ClassVar[bool] = False
    lowered: ClassVar[bool] = False
    #: Sticking contacts are examined before each pass, as the equations cost so little.
    looks_first: ClassVar[bool] = True

    def zero(self, dtype) -> float:
        """Fraction of the sum of its contributions below which a quantity counts as zero."""
        return constants(dtype).zero

    def natural_step(self, prepared, equations, state):
        """Longest sensible step [s]."""
        return natural_step(prepared, equations)

    def step(self, prepared, equations, g: Given, state, h, force, still=None, pieces=None) -> Step:
        """The motion on ``[t, t + h]``; ``still``: as in :class:`ExactFlow`."""
        del pieces
        step, system = step_of_rows(
            prepared, equations, g, state, h, force, still, VANISHING - 1, VANISHING
        )
        return step._replace(motion=_Motion(system.A, system.z, h))

    def first_event(
        self,
        prepared,
        state,
        step: Step,
        signs,
        natural,
        on,
        refine=None,
        degree: int = 0,
        breaks=None,
    ) -> Found:
        """The earliest event on a step."""
        h = step.h
        assert isinstance(step.motion, _Motion)
        x, start = step.motion.oscillator()
        find = _of_many if prepared.mechanics.piecewise.count else _of_friction
        reached, fired = find(state, step, signs, on)
        # The root that is found has no derivatives; the correction below adds them.
        s = jax.lax.stop_gradient(reached.s)
        if breaks is not None and prepared.nt:
            # A sticking contact moves at constant speed: its limits are straight lines.
            limits = limits_of_stick(prepared, state, fired.shape[0])
            at_end = jnp.sum(step.leading[:2], axis=0) >= -step.zero[0]
            s = select(breaks & jnp.any(fired & limits & at_end), h, s)
        if self.derivatives:
            s = select(s >= h, h, s)
        u, v, a = start.after(once(propagator(x, s, constants(h.dtype).order), on))
        further = jnp.zeros_like(s)
        if self.derivatives:
            path = series(x, (u, v, a), DERIVATIVES + 1)
            rates = [(k + 1) * y for k, y in enumerate(path[1:])]
            assert step.guard_rows is not None
            row = jnp.sum(select(fired[:, None], step.guard_rows, 0.0), axis=0)
            guard = [row[0] * y + row[1] * z for y, z in zip(path, rates, strict=False)]
            guard[0] = guard[0] + row[2]
            turned = reached.found & ~reached.grazes
            further = select(turned, corrected(guard), 0.0)
            u, v = horner(path, further), horner(rates, further)
        values = step.split(prepared, jnp.stack([u, v, jnp.ones_like(u)]))
        rate = h * jnp.abs(start.a)
        largest_v = jnp.abs(start.v) + rate
        largest = jnp.stack([jnp.abs(start.u) + h * largest_v, largest_v])
        return Found(
            s=(s + further) / h,
            event=reached.found,
            fired=fired,
            grazing=reached.grazes,
            values=values,
            guards=jnp.zeros((0,), s.dtype),
            largest=jax.lax.stop_gradient(largest),
            accepted=jnp.asarray(True),
            h_next=step.h_next,
        )


def _search(step: Step, signs, rows, which, wanted) -> Reached:
    """First zeros of guards with these ``rows`` (..., 3) over ``(u, v, 1)``."""
    assert isinstance(step.motion, _Motion)
    x, start = step.motion.oscillator()
    of_u, of_v, constant = jnp.moveaxis(rows, -1, 0)
    g = motion(
        x,
        of_u * start.u + of_v * start.v + constant,
        of_u * start.v + of_v * start.a,
        of_u * start.a + of_v * start.jerk,
    )
    c = constants(step.h.dtype)
    size = jnp.abs(of_u * start.u) + jnp.abs(of_v * start.v) + jnp.abs(constant)
    # Where a guard is zero, its varying part is as large as its constant part.
    zero = c.zero * 2.0 * jnp.abs(constant)
    order = signs.order[which]
    return first_zero(x, g, Search(order, wanted, c.order, size, zero, rules.turns_at_zero), step.h)


def _of_friction(state, step: Step, signs, on) -> tuple[Reached, Bool[Array, " g"]]:
    """First event of friction alone: while it sticks, its limits are linear in time."""
    del on
    assert step.guard_rows is not None
    h, sticks = step.h, state.mode[0] == Mode.STICK
    at = [_falls_to_zero(step.leading[:2, i], signs.null[i]) for i in (0, 1)]
    stop = _search(step, signs, step.guard_rows[0], 0, ~sticks)
    s = select(sticks, h * jnp.minimum(jnp.minimum(*at), 1.0), stop.s)
    first = select(sticks, (at[0] <= 1.0) & (at[0] <= at[1]), stop.found)
    second = sticks & (at[1] <= 1.0) & ~first
    return Reached(s, first | second, ~sticks & stop.grazes), jnp.stack([first, second])


def _of_many(state, step: Step, signs, on) -> tuple[Reached, Bool[Array, " g"]]:
    """First event of all guards, evaluated together."""
    del state
    assert step.guard_rows is not None
    moves = jnp.any(step.guard_rows[:, :2] != 0.0, axis=1)
    found = _search(step, signs, step.guard_rows, slice(None), on & moves & ~signs.null)
    s = select(moves & ~signs.null, found.s, step.h)
    first = jnp.min(s)
    at = found.found & (s == first)
    fired = at & (jnp.arange(s.shape[0]) == jnp.argmax(at))
    return Reached(first, jnp.any(fired), jnp.any(fired & found.grazes)), fired


def _falls_to_zero(leading, null):
    """Fraction of the step after which a guard of a sticking contact is zero."""
    value, rate = leading
    falls = (rate < 0) & ~null
    return select(falls, jnp.maximum(value, 0.0) / select(falls, -rate, 1.0), jnp.inf)
