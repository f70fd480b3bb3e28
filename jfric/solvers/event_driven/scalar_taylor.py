"""The exact flow in scalars: see :mod:`jfric.solvers.event_driven.exact_flow`."""

from __future__ import annotations

import functools

import jax.numpy as jnp

from jfric.contact import rules
from jfric.numerics.loops import once
from jfric.results.modes import Mode
from jfric.solvers.event_driven.constants import LEADING, constants
from jfric.solvers.event_driven.flow_step import Step, step_without_guards
from jfric.solvers.event_driven.isolation import watched_zero
from jfric.solvers.event_driven.prepared import Prepared
from jfric.solvers.event_driven.scalar_equations import magnitude_rows
from jfric.solvers.event_driven.scalar_isolation import Guard
from jfric.solvers.event_driven.scalar_rows import dot
from jfric.solvers.event_driven.scalar_series import (
    Series,
    bound,
    combination,
    listed,
    rounding_series,
    series,
    sizes,
    value,
    value_and_slope,
)
from jfric.solvers.event_driven.scalar_step import ScalarStep, Start
from jfric.solvers.event_driven.state import State


def taylor_step(prepared: Prepared, start: Start, state: State, h, on, frozen) -> ScalarStep:
    """Taylor series of the motion. ``frozen`` takes the derivatives away."""
    c = constants(h.dtype)
    g, y, rows = start.g, start.y, start.guards
    x = series(y.a, rows, start.q, start.v, g.basis, h, c.order)
    zero, unbalanced = _rounding(*frozen((prepared, start, state, h)))
    count = c.order + 1
    positions, waves = [listed(u) for u in x.q], [listed(u)[:count] for u in x.w]
    guards = [listed(p)[:count] for p in x.rows]
    still_rows = frozen(rows)
    bounced = [(start.mode == Mode.OPEN) & (state.known[0] > 0), False]
    whole, last = once(sizes(*frozen((positions, waves, x.powers, x.h))), on)

    def watched(signs) -> list[Guard]:
        return [
            Guard(
                p,
                jnp.where(sign.null, 0, sign.order),
                sign.null,
                bound(row, last),
                bound(row, whole),
                watched_zero(p[: len(size)], size, sign.null),
                rules.may_stay_at_zero(sign, is_after_bounce),
            )
            for p, row, sign, size, is_after_bounce in zip(
                frozen(guards), still_rows, signs, zero, bounced, strict=True
            )
        ]

    def at(s):
        moved = [value_and_slope(u, s) for u in positions]
        w = [s**j * p for j, p in enumerate(x.powers)] + [value(u, s) for u in waves]
        return [e[0] for e in moved], [e[1] / h for e in moved], w

    return ScalarStep(
        h=h,
        guards=guards,
        leading=[p[:LEADING] for p in guards],
        zero=zero,
        watched=watched,
        at=at,
        q_scale=whole.q,
        v_scale=whole.v,
        unbalanced=unbalanced,
        accepted=jnp.asarray(True),
        h_next=jnp.asarray(jnp.inf, h.dtype),
        looked=sum(u[-1] for u in x.q) + x.rows[0][0] + x.rows[1][0],
        whole=functools.partial(_as_step, prepared, start, x),
    )


def _rounding(prepared: Prepared, start: Start, state: State, h):
    """For each guard, magnitudes below which its leading coefficients count as zero; and the
    accelerations by magnitudes."""
    sizes = magnitude_rows(prepared, start.absolute, start.g, start.X, start.mode)
    scale = list(state.q_scale), list(state.v_scale)
    zero = constants(h.dtype).zero
    found = rounding_series(sizes.y.a, sizes.guards, *scale, sizes.g.basis, h, LEADING - 1)
    z = [*scale[0], *scale[1], *sizes.g.basis.w]
    unbalanced = [dot(row, z) + jnp.zeros_like(h) for row in sizes.y.a]
    return [[zero * size for size in row] for row in found], unbalanced


def _as_step(prepared: Prepared, start: Start, x: Series) -> Step:
    """The motion as polynomials, for outputs and observables."""
    h, n, y = x.h, prepared.mechanics.n, start.y
    count = x.q[0].shape[0] - 1
    k = jnp.arange(1, count + 1, dtype=h.dtype)
    rates = [u[1:] * k / h for u in x.q]
    # The acceleration's last coefficient is below rounding.
    rise = [jnp.concatenate([u[1:] * k[:-1] / h, jnp.zeros((1,), h.dtype)]) for u in rates]
    empty = [0.0] * (2 * n)
    others = [y.friction, y.normal_force, [*empty, *start.g.acceleration[0]]]
    others = [combination(row, x, rates) for row in others]
    columns = [*(u[:count] for u in x.q), *rates, *rise, *others]
    return step_without_guards(h, jnp.stack(columns, axis=1))
