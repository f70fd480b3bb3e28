"""The state of an orbit as one vector: positions and velocities, then states of elements.

Each state of an element (of a bristle, of a spring in series with a slider, ...) is one more
velocity; its position has no meaning and is zero.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from jfric.errors import ProblemError
from jfric.system.bristle import BRISTLES
from jfric.system.description import state_axis
from jfric.system.hysteresis import HYSTERESIS
from jfric.system.motor import Motor
from jfric.system.naming import with_numbers
from jfric.system.problem import Problem
from jfric.system.states import state_units


def axes_of(problem: Problem) -> tuple[str, ...]:
    """Names of the coordinates of an orbit: degrees of freedom, and one for each state of an
    element, which stands among the velocities (bristles, springs in series with sliders, ...)."""
    return (*problem.dofs, *(state_axis(name) for name in state_units(problem)))


def joined(q, v, z):
    """The state of positions, velocities and states of elements, each with the last axis."""
    return jnp.concatenate([q, jnp.zeros_like(z), v, z], axis=-1)


def at_start(problem: Problem) -> Float[Array, " x"]:
    """The state at the start of a resolved problem."""
    _, q, v = problem.start()
    n, states = len(problem.dofs), []
    for _, _, element, count, field in _with_states(problem):
        start = element.start_of(field) if isinstance(element, Motor) else getattr(element, field)
        states.append(jnp.broadcast_to(jnp.asarray(start), (count,)))
    z = jnp.concatenate([jnp.zeros((0,), q.dtype), *states]).astype(q.dtype)
    return joined(q[:n], v[:n], z)


def sizes_of_states(problem: Problem) -> Float[Array, " z"]:
    """Sizes of the states of elements in gross sliding; zero if unknown."""
    resolved, found = problem.resolved(), []
    for section, _, element, count, _ in _with_states(resolved):
        if section in HYSTERESIS:
            found.append(jnp.sort(element.branches().slip))
        else:
            found.append(jnp.broadcast_to(getattr(element, "size", 0.0), (count,)))
    return jnp.concatenate([jnp.zeros((0,)), *found])


def _with_states(problem: Problem) -> list[tuple[str, str, Any, int, str]]:
    """Elements with states in the order of the state vector: section, name, element, number of
    states, and the field with these at the start."""
    found = [
        (section, name, element, getattr(element, "sliders", 1), element.starts)
        for section in (*HYSTERESIS, *BRISTLES, "state")
        for name, element in problem.section(section).items()
    ]
    motors = problem.section("motor").items()
    return found + [("motor", name, x, 1, field) for name, x in motors for field in x.starts]


def with_start(problem: Problem, t, state: Float[Array, " x"]) -> Problem:
    """``problem`` started from the state (q, v), with states of elements among the velocities, at
    the time ``t`` [s]."""
    n, nd = state.shape[0] // 2, len(problem.dofs)
    values: dict[str, object] = {}
    for i, dof in enumerate(problem.dofs):
        values |= {f"initial.{dof}.q": state[i], f"initial.{dof}.v": state[n + i]}
    # Starts that are expressions become numbers, which can be set.
    resolved = problem.resolved()
    begun = eqx.tree_at(lambda p: (p.initial, p.time), problem, (resolved.initial, resolved.time))
    begun = with_numbers(begun, values)
    at, holders, states = n + nd, [], []
    for section, name, _, count, field in _with_states(problem):
        holders.append((section, name, field))
        states.append(state[at] if count == 1 else state[at : at + count])
        at += count
    if holders:
        begun = eqx.tree_at(
            lambda p: [getattr(p.elements[s][name], field) for s, name, field in holders],
            begun,
            states,
            is_leaf=lambda x: x is None,
        )
    return eqx.tree_at(lambda p: p.time.start, begun, jnp.asarray(t))


def checked_start(problem: Problem, start: Any) -> Float[Array, "*k x"]:
    """The state or states of a user: positions, velocities, states of elements, or the layout of an
    orbit. Raises :class:`jfric.ProblemError` for others."""
    n, states = len(problem.dofs), list(state_units(problem))
    size = 2 * n + len(states)
    start = jnp.asarray(start, float)
    if start.ndim not in (1, 2) or start.shape[-1] not in (size, 2 * (n + len(states))):
        behind = f", then {', '.join(f'z.{name}' for name in states)}" if states else ""
        raise ProblemError(
            f"start: found an array of shape {start.shape}, needs positions and velocities{behind} "
            f"({size},), or (k, {size}) for a batch"
        )
    if states and start.shape[-1] == size:
        start = joined(start[..., :n], start[..., n : 2 * n], start[..., 2 * n :])
    if not isinstance(start, Tracer) and not np.all(np.isfinite(np.asarray(start))):
        raise ProblemError("start: found numbers that are not finite")
    return start


def state_columns(axes: tuple[str, ...], states: np.ndarray) -> dict[str, np.ndarray]:
    """Columns of states (k, 2n) by name: ``x``, ``v.x``, and ``z.NAME`` of states of elements."""
    found, n = {}, len(axes)
    for i, axis in enumerate(axes):
        if axis.startswith(state_axis("")):
            found[axis] = states[:, n + i]
        else:
            found |= {axis: states[:, i], f"v.{axis}": states[:, n + i]}
    return found
