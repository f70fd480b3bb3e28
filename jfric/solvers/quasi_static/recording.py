"""Outputs on the straight lines of the increments."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from jfric.contact import rules
from jfric.solvers.quasi_static.increment import Increment
from jfric.solvers.quasi_static.state import State
from jfric.solvers.records import Records
from jfric.system.mechanics import Mechanics


def shown(mechanics: Mechanics, state: State) -> Int[Array, " c"]:
    """Modes and segments as reported to users."""
    mode = rules.reported_mode(np.asarray(mechanics.frictionless, bool), state.mode)
    return jnp.concatenate([mode, mechanics.piecewise.shown(state.segment)])


def write_outputs(
    records: Records, ts, old: State, step: Increment, fraction, new: State, modes, on
) -> Records:
    """Write outputs on the line from ``old`` to ``new``, which is ``fraction`` of ``step``.

    At a jump of the load the values after it replace those before it.
    """
    count = ts.shape[0]
    if count == 0:
        return records
    jump = new.t == old.t
    inside = on & jnp.where(jump, ts == old.t, (ts > old.t) & (ts <= new.t))
    length = jnp.where(jump, 1.0, new.t - old.t)
    # On the edge a clipped place would have half its derivative.
    place = (ts - old.t) / length
    place = place + jax.lax.stop_gradient(jnp.clip(place, 0.0, 1.0) - place)
    share = fraction * jnp.where(jump, 1.0, place)

    def line(start, change):
        return start[None, :] + share[:, None] * change[None, :]

    rate = jnp.broadcast_to(new.v, (count, new.v.shape[0]))
    values = jnp.concatenate(
        [
            line(old.q, step.q),
            rate,
            jnp.zeros_like(rate),
            line(old.lambda_t, step.lambda_t),
            line(old.lambda_n, step.lambda_n),
        ],
        axis=1,
    )
    inside = inside[:, None]
    kept_values, kept_modes = records.output_values, records.output_modes
    return records._replace(
        output_values=kept_values.at[:count].set(jnp.where(inside, values, kept_values[:count])),
        output_modes=kept_modes.at[:count].set(
            jnp.where(inside, modes[None, :], kept_modes[:count])
        ),
    )
