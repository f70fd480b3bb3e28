"""The exact flow: Taylor form of modes with linear constant-coefficient equations.

Loads are part of the linear system ``dz/ds = A z``, so the Taylor coefficients are
``z_k = (h A)^k z_0 / k!``, to an order at which the remainder is below rounding error for steps
``h <= theta / omega``.
"""

from __future__ import annotations

import functools
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jfric.numerics.choice import select
from jfric.numerics.isolation import LEADING
from jfric.numerics.linear_algebra import matmul, matvec
from jfric.solvers.event_driven.constants import constants
from jfric.solvers.event_driven.first_event import Found, first_event
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
from jfric.solvers.event_driven.prepared import Prepared

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
