"""All elements with a state in a system, as forces on coordinates.

A state ``z`` is the velocity of a coordinate of mass one that follows the degrees of freedom, and
its rate is the force on that coordinate. Other modules need to know nothing of states.
"""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from jfric.numerics.choice import select
from jfric.system.bristle import BRISTLES, AbstractBristle
from jfric.system.description import AbstractProblem, state_axis
from jfric.system.load_friction import carried_loads


class Bristles(eqx.Module):
    """The ``b`` elements with a state, in the order of the states."""

    elements: tuple[AbstractBristle, ...]
    directions: Float[Array, "b n"]
    #: Coordinates of the states, and indices among the piecewise-linear elements, which give the
    #: sign of the sliding velocity.
    states: tuple[int, ...] = eqx.field(static=True)
    places: tuple[int, ...] = eqx.field(static=True)
    #: Index of the load of each among those of friction, or None.
    loads: tuple[int | None, ...] = eqx.field(static=True)

    @property
    def stiff(self) -> bool:
        """Whether explicit steps would be short."""
        return any(e.stiff for e in self.elements)

    @property
    def sizes(self) -> Float[Array, " b"]:
        """Sizes of the states in gross sliding."""
        return jnp.stack([jnp.asarray(e.size, self.directions.dtype) for e in self.elements])

    def sides(self, segment: Int[Array, " ns"]) -> Float[Array, " b"]:
        """Signs of the sliding velocities in the segments of all piecewise-linear elements."""
        own = segment[jnp.asarray(self.places)]
        return select(own == 0, 1.0, -1.0).astype(self.directions.dtype)

    def friction(self, rate, v, side, loads=None) -> Float[Array, " b"]:
        """Forces and torques that resist sliding, at the rates of elongation ``rate`` (ns,);
        ``loads`` (2, k): loads of friction and their magnitudes, where :attr:`depend`."""
        found = []
        for i, (e, place, state) in self._numbered():
            at = self.loads[i]
            more = [] if at is None or loads is None else [x[at] for x in loads]
            found.append(e.friction(rate[place], v[state], side[i], *more))
        return jnp.stack(found)

    @property
    def depend(self) -> bool:
        """Whether any depends on a load of friction."""
        return any(at is not None for at in self.loads)

    def force(self, rate, v, side, loads=None) -> Float[Array, " n"]:
        """Forces on all coordinates, those of the states included; arguments as in
        :meth:`friction`."""
        found = -self.directions.T @ self.friction(rate, v, side, loads)
        for i, (e, place, state) in self._numbered():
            found = found.at[state].add(e.rate(rate[place], v[state], side[i]))
        return found

    def _numbered(self):
        return enumerate(zip(self.elements, self.places, self.states, strict=True))


def assemble_bristles(problem: AbstractProblem, names: tuple[str, ...]) -> Bristles | None:
    """Bristles of a resolved problem, or None; ``names``: all piecewise-linear elements."""
    found = problem.labelled(*BRISTLES)
    if not found:
        return None
    axes, carried = problem.axes, list(carried_loads(problem))
    signs = {label: f"{label}.{growth.name}" for label, e in found.items() for growth in e.growth()}
    return Bristles(
        elements=tuple(found.values()),
        directions=jnp.stack([e.direction.vector(axes) for e in found.values()]),
        states=tuple(axes.index(state_axis(label)) for label in found),
        places=tuple(names.index(label) for label in found),
        loads=tuple(carried.index(signs[k]) if k in signs else None for k in found),
    )
