"""Positions that drift off what contacts hold, where that is curved."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from jfric.contact.reactions import active_rows, no_coupling, reaction_operator
from jfric.numerics.linear_algebra import matvec
from jfric.results.modes import Mode
from jfric.solvers.event_driven.advance import Advance
from jfric.solvers.event_driven.prepared import Prepared
from jfric.solvers.event_driven.state import State


def put_back(prepared: Prepared, state: State, ahead: Advance) -> Advance:
    """The end of a step with closed contacts on gaps of zero, and sticking ones on the sliding
    displacement that they had at its start: the nearest position in the metric of the masses.

    Contacts on a belt or a moving base have no displacement to go back to; their velocity alone is
    held (:func:`jfric.solvers.event_driven.mode_equations.project`).
    """
    mechanics = prepared.mechanics
    if mechanics.varying is None or not mechanics.varying.rows:
        return ahead
    nt, t, q = prepared.nt, ahead.t, ahead.q
    here = prepared.at(t, q, ahead.v)
    anchored = np.asarray([b is None and not mechanics.base_functions for b in mechanics.belts])
    slid = mechanics.displacements(state.t, state.q)[:nt] - mechanics.displacements(t, q)[:nt]
    missing = jnp.concatenate([slid, -here.mechanics.gaps(t, q)])
    held = active_rows(state.mode, prepared.nf)
    held = held.at[:nt].set(anchored & (state.mode == Mode.STICK))
    none = no_coupling(here.D.dtype)
    R = reaction_operator(here.D, held, none, independent=prepared.regular)
    missing = jnp.where(held, missing, 0.0)
    return ahead._replace(q=q + matvec(here.MW, matvec(R.motion, missing)))
