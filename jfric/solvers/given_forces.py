"""Given normal forces and friction limits during a run: where one becomes negative it ends.

Numbers are checked before a run; those that a sweep or a fit varies are known inside it only.
"""

from __future__ import annotations

from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from jfric.numerics.loops import keep
from jfric.results.status import Status
from jfric.system.first_negative import negative_from
from jfric.system.mechanics import Mechanics


def first_negative_force(mechanics: Mechanics, t, until) -> Float[Array, ""]:
    """Instant [s] between ``t`` and ``until`` from which on a given normal force is negative;
    infinite if none is."""
    return negative_from(mechanics.normal_forces, t, until).astype(mechanics.K.dtype)


def ending_at(moment, mechanics: Mechanics, until, call: Callable) -> Callable:
    """One pass ``(state, records, on, *shared)`` of a run that ends at ``moment`` [s].

    ``call(state, records, on, until, *shared)``: a pass of the solver, and what gives its piece for
    the state after it.
    """

    def one_pass(state, records, on, *shared):
        if not mechanics.n_friction:
            new, records, piece = call(state, records, on, until, *shared)
            return new, records, lambda: piece(new)
        over = state.t >= moment
        # A pass needs a way ahead, even if nobody takes it.
        reach = jnp.where(over, until, jnp.minimum(until, moment))
        new, records, piece = call(state, records, on & ~over, reach, *shared)
        code = jnp.asarray(int(Status.NEGATIVE_FORCE), jnp.int32)
        new = keep(~over, new, eqx.tree_at(lambda s: s.status, state, code))
        return new, records, lambda: piece(new)

    return one_pass
