"""The closed form: one degree of freedom, one friction element, loads constant between steps."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jfric.contact import rules
from jfric.numerics.linear_algebra import matvec
from jfric.numerics.loops import once
from jfric.numerics.oscillator import Motion, Oscillator, Search, first_zero, motion, propagator
from jfric.results.modes import Mode
from jfric.solvers.event_driven.constants import constants
from jfric.solvers.event_driven.exact_flow import natural_step, step_of_rows, taylor_coefficients
from jfric.solvers.event_driven.first_event import Found
from jfric.solvers.event_driven.flow_step import Step
from jfric.solvers.event_driven.given import Given
from jfric.solvers.event_driven.prepared import Prepared

#: Under constant loads a guard is zero identically if it and two derivatives are: the sliding
#: velocity, acceleration and jerk; a limit of friction and its rate.
VANISHING = 3


def is_one_dof(prepared: Prepared) -> bool:
    """Whether this flow applies; decided from the structure of the problem alone."""
    mechanics = prepared.mechanics
    belts = [b for b in mechanics.belts if b is not None]
    constant = (*mechanics.load_functions, *mechanics.normal_forces, *belts)
    return (
        mechanics.n == 1
        and prepared.nt == prepared.nf == 1
        and not any(mechanics.redirected)
        and mechanics.has_linear_modes
        and mechanics.piecewise.count == 0
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
        u, v, _ = start.after(propagator(x, s * self.h, constants(self.h.dtype).order))
        # Each is used by several outputs.
        u, v = once((u, v), self.h > 0)
        return jnp.stack([u, v, jnp.ones_like(u)])

    def table(self) -> Float[Array, "p z"]:
        return taylor_coefficients(1, self.A, self.z, self.h, constants(self.h.dtype).order)


class ClosedFlow(eqx.Module):
    """Motion in closed form. The end of sliding is found on it (:mod:`jfric.numerics.oscillator`);
    limits of friction are linear in time while a contact sticks."""

    #: Whether there will be derivatives (in forward mode).
    derivatives: bool = eqx.field(static=True, default=True)
    lands: ClassVar[bool] = False
    lowered: ClassVar[bool] = False
    #: What sticks is looked at before each pass, as equations cost so little.
    looks_first: ClassVar[bool] = True

    def zero(self, dtype) -> float:
        """Part of what a quantity is made of below which it counts as zero."""
        return constants(dtype).zero

    def natural_step(self, prepared, equations, state):
        """Longest sensible step [s]."""
        return natural_step(prepared, equations)

    def step(self, prepared, equations, g: Given, state, h, force) -> Step:
        """The motion on ``[t, t + h]``."""
        step, system = step_of_rows(
            prepared, equations, g, state, h, force, VANISHING - 1, VANISHING
        )
        return step._replace(motion=_Motion(system.A, system.z, h))

    def first_event(
        self, prepared, state, step: Step, signs, natural, on, refine=None, degree: int = 0
    ) -> Found:
        """The earliest event on a step."""
        h = step.h
        assert isinstance(step.motion, _Motion)
        assert step.guard_rows is not None
        x, start = step.motion.oscillator()
        sticks = state.mode[0] == Mode.STICK
        c = constants(h.dtype)
        # The first guard in slip is w v + offset.
        w, offset = step.guard_rows[0, 1], step.guard_rows[0, 2]
        # Where it is zero, body and belt are as fast.
        zero = jax.lax.stop_gradient(c.zero * 2.0 * jnp.abs(offset))
        way = Search(offset, signs.order[0], ~sticks, c.order, zero, rules.turns_at_zero)
        along = Motion(*(w * y for y in start))
        stop = first_zero(x, along, way, h, derivatives=self.derivatives)
        at = [_falls_to_zero(step.leading[:2, i], signs.null[i]) for i in (0, 1)]
        s = jnp.where(sticks, jnp.minimum(jnp.minimum(*at), 1.0), stop.s / h)
        first = jnp.where(sticks, (at[0] <= 1.0) & (at[0] <= at[1]), stop.found)
        second = sticks & (at[1] <= 1.0) & ~first
        safe = jnp.where(sticks, 1.0, w)
        u = jnp.where(sticks, start.u + start.v * (s * h), stop.u / safe)
        v = jnp.where(sticks, start.v, stop.v / safe)
        values = step.split(prepared, jnp.stack([u, v, jnp.ones_like(u)]))
        rate = h * jnp.abs(start.a)
        largest_v = jnp.abs(start.v) + rate
        largest = jnp.stack([jnp.abs(start.u) + h * largest_v, largest_v])
        fired = jnp.stack([first, second])
        return Found(
            s=s,
            event=first | second,
            fired=fired,
            grazing=~sticks & stop.grazes,
            values=values,
            largest=jax.lax.stop_gradient(largest),
            accepted=jnp.asarray(True),
            h_next=step.h_next,
        )


def _falls_to_zero(leading, null):
    """Part of the step after which a guard of a sticking contact is zero."""
    value, rate = leading
    falls = (rate < 0) & ~null
    return jnp.where(falls, jnp.maximum(value, 0.0) / jnp.where(falls, -rate, 1.0), jnp.inf)
