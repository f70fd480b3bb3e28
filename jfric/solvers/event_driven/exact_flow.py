"""Exact flows: Taylor form of modes with linear constant-coefficient equations, and motion of one
degree of freedom in closed form.

Loads are part of the linear system ``dz/ds = A z``, so the Taylor coefficients are
``z_k = (h A)^k z_0 / k!``, to an order at which the remainder is below rounding error for steps
``h <= theta / omega``.
"""

from __future__ import annotations

import functools
from typing import ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from jfric.contact import rules
from jfric.numerics.choice import select
from jfric.numerics.isolation import LEADING
from jfric.numerics.linear_algebra import matmul, matvec
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
)
from jfric.numerics.oscillator import series as further_rates
from jfric.numerics.polynomials import horner
from jfric.results.modes import Mode
from jfric.solvers.event_driven.first_event import Found, first_event, limits_of_stick
from jfric.solvers.event_driven.flow_step import Step
from jfric.solvers.event_driven.inputs import Given
from jfric.solvers.event_driven.linear_system import (
    LinearSystem,
    linear_system,
    magnitude_system,
    magnitudes_by_order,
    make,
    series,
    sizes_of,
)
from jfric.solvers.event_driven.mode_equations import ModeEquations
from jfric.solvers.event_driven.prepared import Prepared, constants

#: Larger systems do not use rows over the whole state, which cost products of matrices.
LARGE = 24


class ExactFlow(eqx.Module):
    """Flow of linear modes with constant coefficients, exact to rounding error."""

    #: Events are found on the flow itself: no landing is needed.
    lands: bool = eqx.field(static=True, default=False)
    #: For a program that will be lowered: guards are searched one by one.
    lowered: bool = eqx.field(static=True, default=False)
    looks_first: ClassVar[bool] = False

    def zero(self, dtype) -> float:
        """Fraction of the sum of its contributions below which a quantity counts as zero."""
        return constants(dtype).zero

    def natural_step(self, prepared, equations, state):
        """Longest sensible step [s]."""
        return natural_step(prepared, equations)

    def first_event(
        self, prepared, state, step, signs, natural, on, refine=None, degree: int = 0, breaks=None
    ) -> Found:
        """The earliest event on a step."""
        how = {"refine": refine, "apart": self.lowered, "degree": degree, "breaks": breaks}
        return first_event(prepared, state, step, signs, natural, on, **how)

    def step(self, prepared, equations, g: Given, state, h, force, still=None, pieces=None) -> Step:
        """Polynomials on ``[t, t + h]``; ``still``: the system, the equations and the state without
        derivatives, where they are known."""
        del pieces
        if 2 * state.q.shape[0] + g.w.shape[0] > LARGE and not self.lowered:
            return _step_by_orders(prepared, equations, g, state, h, force, still)
        order = constants(state.q.dtype).order
        return step_of_rows(prepared, equations, g, state, h, force, still, order)[0]


def step_of_rows(
    prepared, equations, g: Given, state, h, force, still, order: int, leading: int = LEADING
) -> tuple[Step, LinearSystem]:
    """A step whose guards and reactions are rows over the motion, a series of this ``order``.

    ``leading``: number of leading coefficients of guards that decide.
    """
    c = constants(state.q.dtype)
    n = prepared.mechanics.n
    system = linear_system(prepared, equations, g, state, force)
    z = taylor_coefficients(n, system.A, system.z, h, order)
    # Magnitudes only decide: they have no derivatives.
    frozen = _without_derivatives(prepared, equations, g, state, force, still)
    bounds = magnitude_system(*frozen)
    sizes = taylor_coefficients(n, bounds.A, bounds.z, jax.lax.stop_gradient(h), leading - 1)
    last = jax.lax.stop_gradient(jnp.abs(z[-1]) + jnp.abs(z[-2]))
    watched = 0 if prepared.regular else system.relative.shape[0]
    step = Step(
        h=h,
        table=z,
        rows=jnp.concatenate([system.A[n : 2 * n], system.reactions]),
        guard_table=z,
        guard_rows=system.guards,
        zero=c.zero * matmul(sizes, bounds.guards.T),
        leading=matmul(z[:leading], system.guards.T),
        unbalanced=matvec(bounds.A[n : 2 * n], bounds.z),
        relative_zero=c.zero * matmul(sizes, bounds.relative[:watched].T),
        relative_leading=matmul(z[:leading], system.relative[:watched].T),
        remainder=matvec(jnp.abs(jax.lax.stop_gradient(system.guards)), last),
        accepted=jnp.asarray(True),
        h_next=jnp.asarray(jnp.inf, z.dtype),
    )
    return step, system


def _without_derivatives(prepared, equations, g: Given, state, force, still):
    """The arguments as constants; ``still``: those of them that are known."""
    if still is None:
        still = jax.lax.stop_gradient((prepared, equations, state))
    prepared, equations, state = still
    return prepared, equations, jax.lax.stop_gradient(g), state, jax.lax.stop_gradient(force)


def _step_by_orders(prepared, equations, g: Given, state, h, force, still) -> Step:
    """A step without rows: each combination of the motion has its own coefficients. Those beyond
    the leading ones are computed later, where they are needed."""
    c = constants(state.q.dtype)
    recurrence = series(equations, g, force, h)
    made = functools.partial(make, prepared, equations, g, state, magnitude=False)
    begun, leading = recurrence.coefficients((state.q, state.v, g.w), 0, LEADING - 1, made)
    frozen = _without_derivatives(prepared, equations, g, state, force, still)
    sizes, bounds = magnitudes_by_order(*frozen, jax.lax.stop_gradient(h), LEADING)
    watched = 0 if prepared.regular else leading.relative.shape[1]

    def later(order: int):
        rest = recurrence.coefficients(recurrence.after(begun), LEADING, order, made)
        first = begun, leading
        x, found = jax.tree.map(lambda a, b: jnp.concatenate([a, b]), first, rest)
        # The truncated terms, and the rounding errors of all sums.
        left_out = [jnp.abs(jax.lax.stop_gradient(p)) for p in (x.q, x.v, x.w)]
        left_out = [(p[-1] + p[-2] + c.rounding * jnp.sum(p, axis=0))[None] for p in left_out]
        remainder = sizes_of(*frozen, *left_out).guards[0]
        return jnp.concatenate([x.q, x.v, x.a, found.reactions], axis=1), found.guards, remainder

    empty = jnp.zeros((0,), state.q.dtype)
    return Step(
        h=h,
        table=empty[None],
        rows=None,
        guard_table=empty[None],
        guard_rows=None,
        zero=c.zero * bounds.guards,
        leading=leading.guards,
        unbalanced=sizes.a[0],
        relative_zero=c.zero * bounds.relative[:, :watched],
        relative_leading=leading.relative[:, :watched],
        remainder=empty,
        accepted=jnp.asarray(True),
        h_next=jnp.asarray(jnp.inf, state.q.dtype),
        later=later,
    )


def natural_step(prepared: Prepared, equations: ModeEquations) -> Float[Array, ""]:
    """Largest step [s] at which the Taylor form is exact to rounding; infinite without a time
    scale.

    The spectral scale is bounded by the companion matrix of the norms of ``P K`` and ``P C`` in
    coordinates scaled by the square roots of the inertias.
    """
    K, C = (jnp.abs(matmul(equations.P, A)) for A in (equations.K, equations.C))
    d = _scales(prepared, C)
    a0, a1 = _norm(d, K), _norm(d, C)
    omega = 0.5 * (a1 + jnp.sqrt(a1 * a1 + 4.0 * a0))
    omega = jnp.maximum(omega, prepared.frequency)
    theta = constants(prepared.D.dtype).theta
    return select(omega > 0, theta / select(omega > 0, omega, 1.0), jnp.inf)


def _scales(prepared: Prepared, C: Float[Array, "n n"]) -> Float[Array, " n"]:
    """Square roots of inertias. States of elements have no inertia: their scales make their effect
    on the motion and the effect of the motion on them equal, in whatever units."""
    d, nd = prepared.inertia_scale, prepared.mechanics.n_dofs
    if not prepared.mechanics.n_states:
        return d
    acts = jnp.sum(C[:nd, nd:] * d[:nd, None], axis=0)
    follows = jnp.sum(C[nd:, :nd] / d[None, :nd], axis=1)
    both = (acts > 0) & (follows > 0)
    ratio = select(both, acts, 1.0) / select(both, follows, 1.0)
    return d.at[nd:].set(select(both, jnp.sqrt(ratio), d[nd:]))


def _norm(d, A):
    if d.shape[0] == 1:
        return A[0, 0]
    scaled = A * d[:, None] / d[None, :]
    return jnp.max(jnp.sum(scaled, axis=1))


def taylor_coefficients(
    n: int, A: Float[Array, "z z"], z: Float[Array, " z"], h: Float[Array, ""], order: int
) -> Float[Array, "p z"]:
    """``(h A)^k z / k!`` for ``k = 0 .. order`` and ``z = (q, v, w)``, where ``q' = v`` and ``w'``
    depends on ``w`` alone.

    A loop: as much code as one product, and less work than by squares of ``A``. The lowering
    writes it out, with the zeros of the system's structure.
    """
    rates, basis = A[n : 2 * n], A[2 * n :, 2 * n :]

    def following(z, factor):
        moved = [z[n : 2 * n], matvec(rates, z), matvec(basis, z[2 * n :])]
        # The loop stores its input: the compiler would compute a stored output twice.
        return factor * h * jnp.concatenate(moved), z

    factors = np.asarray([1.0 / k for k in range(1, order + 2)], z.dtype)
    return jax.lax.scan(following, z, factors)[1]


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
    """Motion in closed form: one degree of freedom, at most one friction element, piecewise-linear
    elements and sliders, loads constant between steps.

    The end of sliding is found on this motion (:mod:`jfric.numerics.oscillator`); limits of
    friction are linear in time while a contact sticks.
    """

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
            path = further_rates(x, (u, v, a), DERIVATIVES + 1)
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
