"""Controllers of a problem while it moves: their samples, and what they set until the next."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jfric.numerics.choice import select
from jfric.results.status import Flag
from jfric.solvers.records import Records
from jfric.system.control import command_places, in_order, slots_of
from jfric.system.controller import AbstractController, Reading
from jfric.system.functions import Held, hold
from jfric.system.problem import Problem

#: Parts of a sample, and of a step of resolution, that count as rounding.
WHOLE, EDGE = 1e-9, 1e-6


class Loops(NamedTuple):
    """State of all controllers between samples, in the order in which they act.

    ``memory``: of each controller; ``taken``, ``acted``: numbers of samples taken, and of outputs
    that have begun to act; ``pending``: outputs of each controller, newest first; ``held``: values
    that act now, by path; ``last``, ``next``: the last and the next instant [s] at which a sample
    is taken or an output begins to act.
    """

    memory: tuple[Any, ...]
    taken: Int[Array, " c"]
    acted: Int[Array, " c"]
    pending: tuple[Float[Array, "l d"], ...]
    held: dict[str, Float[Array, ""]]
    last: Float[Array, ""]
    next: Float[Array, ""]


def samples_of(state: Any) -> Int[Array, ""] | int:
    """Number of instants at which samples were taken or outputs began to act."""
    loops = getattr(state, "loops", None)
    return 0 if loops is None else jnp.sum(loops.taken + loops.acted, dtype=jnp.int32)


def outputs_are_too_late(problem: Problem) -> Bool[Array, ""]:
    """Whether a delay, as a sweep may set it, exceeds the outputs that its controller can keep."""
    found = jnp.asarray(False)
    for x in in_order(problem).values():
        late = jax.lax.stop_gradient(x.delay + x.dead_time / x.period)
        found = found | (late > float(x.longest) + WHOLE)
    return found


def start_loops(problem: Problem, state: Any) -> Loops | None:
    """Controllers before their first sample at or after the time of ``state``; None without any."""
    loops = list(in_order(problem).values())
    if not loops:
        return None
    t = state.t
    held = {path: jnp.zeros_like(t) for path in slots_of(problem)}
    problem = hold(problem, {path: Held(path, x) for path, x in held.items()})
    loops = list(in_order(problem).values())
    memory, taken = [], []
    for controller in loops:
        reading, rates = _reading(problem, controller, state, t)
        memory.append(controller.begin(reading, rates))
        passed = (t - problem.time.start - controller.phase) / controller.period
        taken.append(jnp.ceil(jnp.maximum(jax.lax.stop_gradient(passed), 0.0) - WHOLE))
    count = jnp.stack(taken).astype(jnp.int32)
    pending = tuple(jnp.zeros((c.longest + 1, len(c.targets)), t.dtype) for c in loops)
    found = Loops(tuple(memory), count, count, pending, held, t, t)
    return found._replace(next=_next(problem, loops, found))


def sampled(problem: Problem, state: Any) -> Any:
    """``state`` after the samples that are due at its time."""
    loops: Loops = state.loops
    held, flags = dict(loops.held), state.flags
    memory, pending = list(loops.memory), list(loops.pending)
    taken, acted, changed = loops.taken, loops.acted, jnp.asarray(False)
    names = list(in_order(problem))
    still = jax.lax.stop_gradient(state.t)
    for i, name in enumerate(names):
        # The reference may have been set by a controller before this one.
        now = hold(problem, {path: Held(path, x) for path, x in held.items()})
        controller = in_order(now)[name]
        due = still >= jax.lax.stop_gradient(_instant(problem, controller, taken[i]))
        reading, _ = _reading(now, controller, state, state.t)
        u, new = controller.command(memory[i], reading)
        u = jnp.asarray(u, still.dtype)
        memory[i] = _keep(due, new, memory[i])
        flags = select(due & _on_edge(controller, now, state), flags | int(Flag.TIE), flags)
        queue = jnp.concatenate([u[None], pending[i][:-1]])
        pending[i] = select(due, queue, pending[i])
        taken = taken.at[i].add(due.astype(jnp.int32))
        acts = (acted[i] < taken[i]) & (
            still >= jax.lax.stop_gradient(_effect(problem, controller, acted[i]))
        )
        row = jnp.clip(taken[i] - 1 - acted[i], 0, controller.longest)
        for j, path in enumerate(controller.targets):
            held[path] = select(acts, pending[i][row, j], held[path])
        acted = acted.at[i].add(acts.astype(jnp.int32))
        changed = changed | due | acts
    last = select(changed, still, loops.last)
    found = Loops(tuple(memory), taken, acted, tuple(pending), held, last, loops.next)
    controllers = list(in_order(problem).values())
    found = found._replace(next=_next(problem, controllers, found))
    return dataclasses.replace(state, loops=found, flags=flags.astype(state.flags.dtype))


def pieces(loops: Loops) -> dict[str, Held]:
    """The functions of time that controllers set, by path."""
    return {path: Held(path, x) for path, x in loops.held.items()}


def values_of(problem: Problem, loops: Loops) -> Float[Array, " c"]:
    """Values that controllers set, in the order of :func:`jfric.system.control.command_names`."""
    return jnp.stack([loops.held[path] for path in command_places(problem).values()])


def with_commands(problem: Problem, records: Records, before, loops: Loops, slots: int) -> Records:
    """``records`` with what controllers set, at the outputs that a pass has written since there
    were ``before``, at most ``slots``."""
    if not records.commands.shape[0] or not records.commands.shape[1]:
        return records
    rows = before + jnp.arange(slots, dtype=jnp.int32)
    block = select((rows < records.written)[:, None], values_of(problem, loops)[None], jnp.nan)
    start = (before, jnp.zeros_like(before))
    new = jax.lax.dynamic_update_slice(records.commands, block.astype(loops.last.dtype), start)
    return records._replace(commands=new)


def _keep(which, new, old):
    return jax.tree.map(lambda a, b: select(which, a, b), new, old)


def _instant(problem: Problem, controller: AbstractController, k) -> Float[Array, ""]:
    """Time of sample ``k`` [s]."""
    return problem.time.start + controller.phase + k.astype(float) * controller.period


def _effect(problem: Problem, controller: AbstractController, k) -> Float[Array, ""]:
    """Time [s] at which the output of sample ``k`` begins to act: that of a later sample, up to the
    bit, for a delay of whole samples."""
    late = controller.delay + controller.dead_time / controller.period
    whole = jnp.floor(jax.lax.stop_gradient(late) + WHOLE)
    part = late - whole
    part = select(jax.lax.stop_gradient(part) < WHOLE, 0.0 * part, part)
    after = k + whole.astype(jnp.int32)
    return _instant(problem, controller, after) + part * controller.period


def _next(problem: Problem, controllers: list[AbstractController], loops: Loops):
    found = []
    for i, controller in enumerate(controllers):
        found.append(_instant(problem, controller, loops.taken[i]))
        effect = _effect(problem, controller, loops.acted[i])
        found.append(select(loops.acted[i] < loops.taken[i], effect, jnp.inf))
    return jnp.min(jnp.stack(found)).astype(loops.last.dtype)


def _reading(problem: Problem, controller: AbstractController, state: Any, t):
    """Reading of ``controller`` at the state, and the rates of its signals."""
    q, v = _signals(problem, controller, state)
    if controller.resolution is not None:
        q = controller.resolution * jnp.round(q / controller.resolution)
    r = [f(t) for f in controller.references]
    rates = [[f.derivative(t, k) for f in controller.references] for k in (1, 2)]
    none = jnp.zeros((0,), t.dtype)
    r, rate, rate2 = (
        jnp.stack([jnp.asarray(x, t.dtype) for x in row]) if row else none for row in (r, *rates)
    )
    dt = jnp.asarray(controller.period, t.dtype)
    return Reading(t, dt, r, rate, rate2, q), v


def _signals(problem: Problem, controller: AbstractController, state: Any):
    """Values of the signals that ``controller`` reads, and their rates, zero where unknown."""
    axes = problem.axes
    values, rates = [], []
    for name in controller.signals:
        if name in problem.dofs:
            i = axes.index(name)
            values.append(state.q[i])
            rates.append(state.v[i])
        else:
            values.append(state.v[axes.index(name.removeprefix("v."))])
            rates.append(jnp.zeros_like(state.t))
    return jnp.stack(values), jnp.stack(rates)


def _on_edge(controller: AbstractController, problem: Problem, state: Any):
    """Whether a reading is rounded up or down by rounding errors."""
    if controller.resolution is None:
        return jnp.asarray(False)
    steps = jax.lax.stop_gradient(_signals(problem, controller, state)[0] / controller.resolution)
    return jnp.any(jnp.abs(steps - jnp.floor(steps) - 0.5) < EDGE)
