"""Recognition of the attractor of a motion: its returns to a section repeat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from jfric.periodic.sections import Section, visit
from jfric.results.abstract_observables import Observable

#: Number of consecutive returns that have to repeat an earlier one.
CONFIRM = 3
#: Distance, in tolerances, below which points of a cycle coincide, so that its period is shorter.
COARSE = 100.0
#: Places of the first values in the result.
PERIOD, RETURNS, STATE = 0, 1, 2
#: Weights of the coordinates by which one point of a cycle is chosen: no two are in a simple ratio.
WEIGHTS = (np.sqrt(2.0), np.sqrt(3.0), np.sqrt(5.0), np.sqrt(7.0), np.sqrt(11.0), np.sqrt(13.0))


class Memory(NamedTuple):
    """Record of a motion: its last returns, newest last, and how well they repeat."""

    number: Int[Array, ""]
    states: Float[Array, "p x"]
    #: Largest magnitude of each coordinate.
    size: Float[Array, " x"]
    #: How many returns in a row were near the one ``1 .. p`` returns before.
    near: Int[Array, " p"]
    #: Returns after which the motion repeats, 0 while none is known, and a point of the cycle.
    period: Int[Array, ""]
    state: Float[Array, " x"]


@dataclass(frozen=True)
class Attractor(Observable):
    """The attractor that a motion reaches, and the end of the run there.

    Positions and velocities at returns to ``section`` are compared with those ``1 .. most`` returns
    before: where they differ by less than ``tolerance``, relative to the largest of the motion,
    three times in a row, they repeat; the period is the smallest number of returns after which they
    are within 100 times that tolerance. The search ends after ``give_up`` returns. The result has
    the period in returns (0: none was recognised), the number of returns until then, the positions
    and velocities of one point of the cycle, and their largest magnitudes.
    """

    section: Section
    dofs: int
    most: int = 8
    tolerance: float = 1e-7
    give_up: int = 500
    name: str = "attractor"
    unit: str = ""

    @property
    def dims(self):
        return (("entry", tuple(float(i) for i in range(STATE + 4 * self.dofs)), ""),)

    def start(self, problem, mechanics, dtype):
        coordinates = 2 * self.dofs
        none = jnp.asarray(0, jnp.int32)
        return Memory(
            number=none,
            states=jnp.full((self.most, coordinates), jnp.inf, dtype),
            size=jnp.abs(jnp.concatenate(problem.start()[1:])).astype(dtype),
            near=jnp.zeros((self.most,), jnp.int32),
            period=none,
            state=jnp.full((coordinates,), jnp.nan, dtype),
        )

    def update(self, carry: Memory, piece):
        here = visit(self.section, piece.problem, carry.number, piece)
        hit = here.hit & ~self.enough(carry)
        x = jnp.concatenate([here.point.q, here.point.v])
        size = jnp.maximum(carry.size, jnp.abs(x))
        floor = jnp.finfo(x.dtype).tiny
        apart = jnp.abs(carry.states - x[None, :]) / jnp.maximum(size, floor)[None, :]
        # The last row is the state one return before.
        distances = jnp.max(apart, axis=1)[::-1]
        repeats = (distances <= self.tolerance) & here.once
        near = jnp.where(repeats, carry.near + 1, 0)
        states = jnp.concatenate([carry.states[1:], x[None, :]])
        # A multiple of the period may be confirmed first.
        alike = distances <= COARSE * self.tolerance
        period = jnp.where(jnp.any(near >= CONFIRM), jnp.argmax(alike).astype(jnp.int32) + 1, 0)
        return Memory(
            number=jnp.where(hit, here.count, carry.number),
            states=jnp.where(hit, states, carry.states),
            size=jnp.where(hit, size, carry.size),
            near=jnp.where(hit, near.astype(jnp.int32), carry.near),
            period=jnp.where(hit, period, carry.period).astype(jnp.int32),
            state=jnp.where(hit, _chosen(states, size, period), carry.state),
        )

    def enough(self, carry: Memory) -> Bool[Array, ""]:
        return (carry.period != 0) | (carry.number >= self.give_up)

    def finish(self, carry: Memory, q, v, duration):
        dtype = carry.state.dtype
        head = jnp.stack([carry.period.astype(dtype), carry.number.astype(dtype)])
        state = jnp.where(carry.period > 0, carry.state, jnp.nan)
        return jnp.concatenate([head, state, carry.size])


def _chosen(states, size, period) -> Float[Array, " x"]:
    """One point of the cycle of the last ``period`` states, whichever of them came last."""
    most, coordinates = states.shape
    weights = np.resize(np.asarray(WEIGHTS), coordinates) * (1 + np.arange(coordinates) // 6)
    floor = jnp.finfo(states.dtype).tiny
    scaled = states / jnp.maximum(size, floor)[None, :]
    rank = jnp.sum(scaled * jnp.asarray(weights, states.dtype)[None, :], axis=1)
    inside = jnp.arange(most, dtype=jnp.int32) >= most - period
    best = jnp.argmax(jnp.where(inside & jnp.isfinite(rank), rank, -jnp.inf))
    place = jnp.arange(most, dtype=best.dtype) == best
    return jnp.sum(jnp.where(place[:, None], states, 0.0), axis=0)
