"""Piece of the trajectory that a pass covers."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from jfric.numerics.choice import select
from jfric.numerics.polynomials import powers
from jfric.results.pieces import Piece
from jfric.solvers.event_driven.flow_step import Step, Values
from jfric.solvers.event_driven.prepared import Prepared
from jfric.solvers.event_driven.state import State, unlogged
from jfric.system.problem import Problem


def piece_of_pass(
    problem: Problem, prepared: Prepared, step: Step, old: State, new: State
) -> Piece:
    """The part of ``step`` between two states, with its coefficients scaled to ``[0, 1]``."""
    nt, nd = prepared.nt, prepared.mechanics.n_dofs
    step = step.as_polynomials()
    h = new.t - old.t
    # A step that was not taken may be infinitely long.
    moved = h > 0
    fraction = select(moved, h / select(moved, step.h, 1.0), 0.0)
    scale = powers(fraction, step.table.shape[0])[:, None]
    p = step.polynomials(prepared)

    events = new.event_count - old.event_count
    recorded = old.impacted & (old.due <= old.t)
    own = q_before = None
    if old.watch is not None and new.watch is not None:
        own = old.watch.count, new.watch.count
        q_before = select(unlogged(old), old.watch.q_before, old.q)[:nd]
    return Piece(
        t=old.t,
        end=new.t,
        h=h,
        q=p.q[:, :nd] * scale,
        v=p.v[:, :nd] * scale,
        a=p.a[:, :nd] * scale,
        lambda_t=p.lambda_t * scale,
        lambda_n=p.lambda_n * scale,
        mode=new.recorded[:nt],
        segment=new.recorded[nt:],
        events_before=old.event_count,
        events=events,
        impacts=select(events > 0, jnp.sum(recorded, dtype=jnp.int32), 0),
        event_time=old.t,
        problem=problem,
        mechanics=prepared.mechanics,
        v_before=select(unlogged(old), old.v_before, old.v)[:nd],
        own=own,
        q_before=q_before,
        z=_states(prepared, old, p) * scale if prepared.mechanics.states else None,
    )


def _states(prepared: Prepared, old: State, p: Values):
    """States of elements as polynomials on the step."""
    own = p.v[:, prepared.mechanics.n_dofs :]
    if not p.elongation.shape[1]:
        return own
    # First the constant terms, then those that vanish at the start.
    piecewise = prepared.mechanics.piecewise
    first = piecewise.elongations(old.inner, p.elongation[0])
    inner = old.inner._replace(anchor=jnp.zeros_like(old.anchor))
    rest = jax.vmap(lambda x: piecewise.elongations(inner, x))(p.elongation[1:])
    nothing = jax.vmap(lambda x: piecewise.elongations(inner, x))(jnp.zeros_like(p.elongation[1:]))
    return jnp.concatenate([jnp.concatenate([first[None], rest - nothing]), own], axis=1)
