"""The equations of a mode as rows over ``z = (q, v, w)``, ``w`` the basis of what is given.

A mode with linear equations is one system ``dz/ds = A z``, loads included. The same matrices with
the magnitudes of all contributions bound rounding errors.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from jfric.numerics.linear_algebra import matmul
from jfric.solvers.event_driven.given import Given
from jfric.solvers.event_driven.guards import Quantities, guard_magnitudes, guards
from jfric.solvers.event_driven.mode_equations import ModeEquations
from jfric.solvers.event_driven.prepared import Prepared
from jfric.solvers.event_driven.state import State


class LinearSystem(NamedTuple):
    """Generator, and rows of reactions and guards."""

    z: Float[Array, " z"]
    A: Float[Array, "z z"]
    #: lambda_t, lambda_n, normal forces of friction elements, prescribed rates of tangents.
    reactions: Float[Array, "r z"]
    guards: Float[Array, "g z"]
    #: Relative velocities of tangents and normals.
    relative: Float[Array, "m z"]
    #: What guards are made of, each of shape (z, ...).
    quantities: Quantities


def linear_system(
    prepared: Prepared, equations: ModeEquations, g: Given, state: State, force
) -> LinearSystem:
    """The system of the current mode; ``force`` (n,) is an extra constant force."""
    F = jnp.concatenate([(equations.f + force)[:, None] + g.force[:, :1], g.force[:, 1:]], axis=1)
    forces = jnp.concatenate([-equations.K, -equations.C, F], axis=1)
    z = jnp.concatenate([state.q, state.v, g.w])
    return build(
        prepared, equations, g, state, z, forces, equations.P, equations.L, magnitude=False
    )


def magnitude_system(
    prepared: Prepared, equations: ModeEquations, g: Given, state: State, force
) -> LinearSystem:
    """Magnitudes of all contributions to the same system."""
    bounded = g.bound
    assert bounded is not None
    constant = jnp.abs(equations.f) + jnp.abs(force)
    F = jnp.concatenate([constant[:, None] + bounded.force[:, :1], bounded.force[:, 1:]], axis=1)
    forces = jnp.concatenate([jnp.abs(equations.K), jnp.abs(equations.C), F], axis=1)
    z = jnp.concatenate([state.q_scale, state.v_scale, bounded.w])
    # The projector cancels: its contributions, not its entries, carry the rounding error.
    P = jnp.abs(prepared.mechanics.M_inverse) + matmul(jnp.abs(equations.PQ), jnp.abs(prepared.WM))
    magnitudes = (jnp.abs(x) for x in equations[:9])
    absolute = ModeEquations(*magnitudes, *equations[9:])  # pyright: ignore[reportCallIssue]
    return build(prepared, absolute, bounded, state, z, forces, P, absolute.L, magnitude=True)


def build(
    prepared, equations, g, state, z, forces, P, L, *, magnitude, own=(0.0, 0.0)
) -> LinearSystem:
    """The system of ``forces`` (n, z); ``own``: rows of accelerations (n, z) and reactions (m, z)
    that do not follow from forces."""
    n, nt, nf = prepared.mechanics.n, prepared.nt, prepared.nf
    size = z.shape[0]
    dtype = z.dtype
    minus = 1.0 if magnitude else -1.0

    def over_given(rows):
        return jnp.concatenate([jnp.zeros((rows.shape[0], 2 * n), dtype), rows], axis=1)

    def over_state(rows, offset):
        left = jnp.zeros((rows.shape[0], offset), dtype)
        right = jnp.zeros((rows.shape[0], size - offset - n), dtype)
        return jnp.concatenate([left, rows, right], axis=1)

    absolute = jnp.abs if magnitude else (lambda x: x)
    mechanics = prepared.mechanics
    acceleration = over_given(g.acceleration)
    rates = matmul(P, forces) + matmul(equations.PQ, acceleration) + own[0]
    A = jnp.concatenate([over_state(jnp.eye(n, dtype=dtype), n), rates, over_given(g.A)])
    reactions = matmul(L, forces) + matmul(equations.Q, acceleration) + own[1]
    lambda_t, lambda_n = reactions[:nt], reactions[nt:]
    if nf:
        given = lambda_t[:nf] + equations.sliding[:, None] * over_given(g.normal)
        lambda_t = jnp.concatenate([given, lambda_t[nf:]])
    relative = over_state(absolute(prepared.W), n) + minus * over_given(g.velocity)
    piecewise = mechanics.piecewise
    one = (jnp.arange(size) == 2 * n).astype(dtype)[:, None]
    quantities = Quantities(
        one=one,
        gamma=relative[:nt].T,
        lambda_t=lambda_t.T,
        lambda_n=lambda_n.T,
        normal=over_given(g.normal).T,
        gap=(over_state(absolute(mechanics.W_N), 0) + over_given(g.gap)).T,
        elongation=(over_state(absolute(piecewise.directions), 0) + over_given(g.elongation)).T,
        elongation_rate=(
            over_state(absolute(piecewise.directions), n) + over_given(g.elongation_rate)
        ).T,
    )
    make = guard_magnitudes if magnitude else guards
    return LinearSystem(
        z,
        A,
        jnp.concatenate([lambda_t, lambda_n, over_given(g.normal), acceleration[:nt]]),
        make(prepared, state.mode, state.segment, quantities).T,
        relative,
        quantities,
    )
