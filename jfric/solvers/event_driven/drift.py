"""Correction of positions that drift off curved constraints of joints and contacts."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool

from jfric.contact.reactions import no_coupling, reaction_operator
from jfric.numerics.choice import select
from jfric.numerics.linear_algebra import matvec
from jfric.results.modes import Mode
from jfric.solvers.event_driven.prepared import Prepared
from jfric.solvers.event_driven.state import State, relative_velocities
from jfric.system.joints import off_velocity


def put_back(prepared: Prepared, state: State, t, q, v):
    """Position and velocity at ``t``, on a step from ``state``, corrected to the nearest ones in
    the metric of the masses that satisfy the constraints: joints, gaps of zero at closed contacts,
    and at sticking contacts the sliding displacement of the start of the step.

    No displacement is restored at contacts on a belt or a moving base, nor where the sliding
    velocity is not the rate of a displacement; only their velocity is held, where the next step
    begins (:func:`jfric.solvers.event_driven.mode_equations.project`).
    """
    mechanics = prepared.mechanics
    varying = mechanics.varying
    if varying is None or not (varying.rows or varying.joints):
        return q, v
    here = prepared.at(t, q, v)
    tied = here.mechanics.tied
    if varying.joints is not None and tied is not None:
        q = varying.joints.put_on(tied, t, q)
    held = _held(prepared, state)
    independent = prepared.regular
    none, size = no_coupling(here.D.dtype), here.D_size
    R = reaction_operator(here.D, held, none, independent=independent, size=size)

    def change(wanted):
        """The smallest change of position that displaces the held rows by ``wanted``."""
        return matvec(here.MW, matvec(R.motion, select(held, wanted, 0.0)))

    if held.shape[0]:
        nt = prepared.nt
        slid = mechanics.displacements(state.t, state.q)[:nt] - mechanics.displacements(t, q)[:nt]
        q = q + change(jnp.concatenate([slid, -mechanics.gaps(t, q)]))
    # Positions hardly moved: the operators of before suffice for the present directions, and what
    # they leave after a loose step falls by as much again in the second round.
    now = here.near(t, q, v)
    for _ in range(2):
        if now.mechanics.tied is not None:
            v = v + off_velocity(now.mechanics.tied, v)
        v = v - change(relative_velocities(now, t, v))
    return q, v


def _held(prepared: Prepared, state: State) -> Bool[Array, " m"]:
    """Rows whose displacement the contacts hold."""
    mechanics = prepared.mechanics
    held = prepared.active_rows(state.mode)
    anchored = [b is None and not mechanics.base_functions for b in mechanics.belts]
    anchored = np.asarray(anchored, bool)
    if mechanics.varying is not None:
        anchored[list(mechanics.varying.rolling)] = False
    return held.at[: prepared.nt].set(anchored & (state.mode == Mode.STICK))
