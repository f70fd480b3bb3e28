"""Increments as pieces of the trajectory."""

from __future__ import annotations

import jax.numpy as jnp

from jfric.results.pieces import Piece
from jfric.solvers.quasi_static.state import State
from jfric.system.forces import element_forces, force_keys
from jfric.system.mechanics import Mechanics
from jfric.system.problem import Problem


def increment_as_piece(
    problem: Problem, mechanics: Mechanics, old: State, new: State, slip
) -> Piece:
    """Piece on the straight line between two states, on which contacts slide by ``slip`` (nt,)."""
    nt = mechanics.n_contacts
    h = new.t - old.t
    events = new.event_count - old.event_count
    keys = list(force_keys(problem).values())
    rate = jnp.where(h > 0, (new.z - old.z) / jnp.where(h > 0, h, 1.0), 0.0)

    def line(a, b):
        return jnp.stack([a, b - a])

    def forces(s):
        # A support that jumps moves in proportion to the increment, like the system.
        base = (s.z, rate)
        return element_forces(problem, mechanics, keys, s.t, s.q, new.v, new.segment, base)

    return Piece(
        t=old.t,
        end=new.t,
        h=h,
        q=line(old.q, new.q),
        v=new.v[None],
        a=jnp.zeros_like(new.v)[None],
        lambda_t=line(old.lambda_t, new.lambda_t),
        lambda_n=line(old.lambda_n, new.lambda_n),
        mode=new.recorded[:nt],
        segment=new.recorded[nt:],
        events_before=old.event_count,
        events=events,
        impacts=jnp.zeros_like(events),
        event_time=old.t,
        problem=problem,
        mechanics=mechanics,
        v_before=old.v,
        slip=slip,
        jumps=~old.stage.on_line,
        forces=line(forces(old), forces(new)) if keys else None,
    )
