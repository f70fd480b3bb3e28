"""The earliest event on a step, found on its polynomials."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from jfric.contact import rules
from jfric.numerics.choice import select
from jfric.numerics.isolation import isolate, watched_zero, with_root_derivative
from jfric.numerics.linear_algebra import matvec
from jfric.numerics.polynomials import horner_with_slope, pick, with_derivatives
from jfric.numerics.tolerances import ROUNDINGS
from jfric.results.modes import Mode
from jfric.solvers.event_driven.flow_step import Step, Values
from jfric.solvers.event_driven.prepared import SMALLEST_FRACTION, Prepared, constants
from jfric.solvers.event_driven.state import State
from jfric.solvers.event_driven.transitions import Signs


class Found(NamedTuple):
    """Place at which a step ends, and the reason.

    ``s``: the place on the step, with its derivatives; ``event``: whether a guard is zero there,
    which is marked in ``fired``. ``grazing``: whether the guard turns there, as far as can be
    resolved.
    """

    s: Float[Array, ""]
    event: Bool[Array, ""]
    fired: Bool[Array, " g"]
    grazing: Bool[Array, ""]
    #: Motion and reactions at ``s``, and the largest magnitudes of q and v on the step.
    values: Values
    #: Values of the guards at ``s``; none where at most one contact is watched.
    guards: Float[Array, " g"]
    largest: Float[Array, " k"]
    #: Whether the step may be taken, and the longest step to try next.
    accepted: Bool[Array, ""]
    h_next: Float[Array, ""]


def resolvable(t, h) -> Bool[Array, ""]:
    """Whether a step of length ``h`` is much longer than the rounding error of time."""
    return h > ROUNDINGS * jnp.finfo(h.dtype).eps * jnp.abs(t)


def first_event(
    prepared: Prepared,
    state: State,
    step: Step,
    signs: Signs,
    natural,
    on: Bool[Array, ""],
    *,
    refine: Callable | None = None,
    apart: bool = False,
    degree: int = 0,
    breaks: Bool[Array, ""] | None = None,
) -> Found:
    """Isolate the earliest event on a step.

    A step that the certificate cannot decide is not accepted; a shorter one follows.
    ``on``: whether the trajectory is running. ``refine(fired, s)``: a better place of the zero
    found. ``apart``, ``degree``: as in :func:`jfric.numerics.isolation.isolate`.
    ``breaks``: whether a function of time has a breakpoint at the end of the step.
    """
    c = constants(step.table.dtype)
    order = select(signs.null, 0, signs.order)
    if step.leading.shape[1]:
        still = jax.lax.stop_gradient(step)
        bounced = (state.mode == Mode.OPEN) & (state.known[: prepared.nt] > 0)
        own = jnp.zeros((0,), bool) if state.watch is None else state.watch.begins(state.steps)
        others = jnp.zeros((order.shape[0] - prepared.nt - own.shape[0],), bool)
        bounced = jnp.concatenate([bounced, others, own])
        ending = None
        if breaks is not None:
            limits = limits_of_stick(prepared, state, order.shape[0])
            ending = select(limits & breaks, c.zero, 0.0)
        found = isolate(
            still.guard_table,
            order,
            still.remainder,
            watched_zero(still.leading, still.zero, signs.null),
            rows=still.guard_rows,
            null=signs.null,
            stays=rules.may_stay_at_zero(signs.of(slice(None)), bounced),
            ending=ending,
            certificate_order=c.certificate_order,
            degree=degree,
            rounding=c.rounding,
            newton=c.newton,
            apart=apart,
            on=on,
        )
        last = jnp.sum(still.guard_table, axis=0)
        rows = still.guard_rows
        at_end = last if rows is None else matvec(rows, last)
        reference = jnp.minimum(natural, prepared.end - state.start)
        smallest = step.h <= SMALLEST_FRACTION * reference
        # Too short to resolve further: a guard that comes so close to zero counts as reaching it;
        # one that starts at zero does so only if it is negative at the end.
        crossed = found.undecided & ~signs.null & ((at_end < 0) | (order == 0))
        gives_up = ~found.decided & smallest & ~(found.near & resolvable(state.t, step.h))
        event = select(gives_up, jnp.any(crossed), found.root <= 1.0)
        first = jnp.arange(crossed.shape[0]) == jnp.argmax(crossed)
        fired = select(gives_up, crossed & first, found.guard) & event
        earliest = select(gives_up, 1.0, found.root)
        guard = pick(step.guard_table, step.guard_rows, fired)
        known = jnp.arange(guard.shape[0]) < jnp.sum(select(fired, order, 0))
        guard = select(known, 0.0, guard)
        s = with_root_derivative(guard, earliest)
        s = select(event, s if refine is None else refine(fired, s), 1.0)
        # Zeros far inside the step are located again on a shorter one, for full precision.
        coarse = event & (earliest < 1.0 / 64) & ~smallest
        accepted = step.accepted & (found.decided | gives_up) & ~coarse
        # Impacts that accumulate become slower and slower; a gap that turns is a gap that closes.
        nt = prepared.nt
        impact = jnp.any(fired[:nt] & (state.mode == Mode.OPEN))
        grazing = gives_up | (event & ~impact & grazes(found.chosen, earliest, found.resolution))
        retry = select(coarse & found.decided, 4.0 * earliest, found.retry) * step.h
        there = select(gives_up, last, found.values)
        watched = there if rows is None else matvec(rows, there)
    else:
        s = jnp.ones((), step.table.dtype)
        event, accepted = jnp.asarray(False), step.accepted
        fired, grazing = jnp.zeros((0,), bool), jnp.asarray(False)
        retry, watched = step.h_next, jnp.zeros((0,), step.table.dtype)
    retry = select(step.accepted, retry, step.h_next)
    grown = jnp.minimum(16.0 * s * step.h, step.h_next)
    grown = jnp.maximum(grown, select(event, 0.0, 16.0 * step.h))
    n = prepared.mechanics.n
    if step.leading.shape[1] and step.guard_table is step.table and refine is None:
        # Values that the search for the zero has evaluated, with their derivatives.
        values = step.split(prepared, with_derivatives(step.table, s, there))
    else:
        values = step.at(prepared, s)
    largest = jax.lax.stop_gradient(jnp.sum(jnp.abs(step.table[:, : 2 * n]), axis=0))
    h_next = select(accepted, jnp.minimum(grown, step.h_next), retry)
    return Found(
        s=s,
        event=event,
        fired=fired,
        grazing=grazing,
        values=values,
        guards=watched,
        largest=largest,
        accepted=accepted,
        h_next=jax.lax.stop_gradient(h_next),
    )


def limits_of_stick(prepared: Prepared, state: State, count: int) -> Bool[Array, " g"]:
    """Mask of those of ``count`` guards that are limits of contacts that stick.

    Whether a limit that is reached at a break of a load is passed depends on its change after the
    break: rounding must not put its zero just before the break.
    """
    sticks = state.mode == Mode.STICK
    others = jnp.zeros((count - 2 * prepared.nt,), bool)
    return jnp.concatenate([sticks, sticks, others])


def grazes(guard, s, resolution) -> Bool[Array, ""]:
    """Whether a guard that is zero at ``s`` turns there, as far as can be resolved."""
    rates = [k * guard[k] for k in range(1, len(guard))]
    slope, curvature = jax.lax.stop_gradient(horner_with_slope(rates, s))
    return rules.turns_at_zero(slope, curvature, resolution)
