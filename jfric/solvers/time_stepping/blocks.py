"""Blocks of many steps in one scan, and the results of their steps."""

from __future__ import annotations

import copy
import functools
import operator
from collections.abc import Callable
from typing import Any, NamedTuple, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from jfric.numerics.lowering import Scalars
from jfric.results.status import Status
from jfric.solvers.time_stepping.inputs import (
    StepInputs,
    Table,
    block_inputs,
    block_pushes,
    load_means,
)
from jfric.solvers.time_stepping.prepared import Motion, Prepared, Row
from jfric.solvers.time_stepping.step import step


class Motions(NamedTuple):
    """Motion after and before some steps of a block."""

    q: Float[Array, "k n"]
    v: Float[Array, "k n"]
    q_before: Float[Array, "k n"]
    v_before: Float[Array, "k n"]


class Steps(NamedTuple):
    """Result of all steps of a block: modes and segments after and before, impacts, statuses."""

    mode: Int[Array, "L nt"]
    mode_before: Int[Array, "L nt"]
    segment: Int[Array, "L ns"]
    segment_before: Int[Array, "L ns"]
    impact: Bool[Array, "L nu"]
    status: Int[Array, " L"]


class Block(NamedTuple):
    """Steps of a block; most blocks contain no event and no output.

    ``steps()`` is called only where ``quiet`` is False: after a change of mode, an impact or
    trouble. ``motions(index)`` and ``rows(index)``: results of the steps with the numbers ``index``
    (k,).
    """

    times: Float[Array, " L"]
    quiet: Bool[Array, ""]
    steps: Callable[[], Steps]
    motions: Callable[[Int[Array, " k"]], Motions]
    rows: Callable[[Int[Array, " k"]], Row]
    #: Residuals (None: only those of ``rows(index)``), and iterations (None: one in each step).
    residual: Float[Array, " L"] | None
    iterations: Int[Array, " L"] | None
    #: Remarks on the modes of each step; None where there are none.
    flags: Int[Array, " L"] | None = None


def run_block(
    prepared: Prepared, motion: Motion, times, force, tables: list[Table | None]
) -> Block:
    """Block of the steps that begin at ``times`` (L,), under an extra constant ``force`` (n,)."""
    mechanics, h = prepared.mechanics, prepared.h
    means = load_means(mechanics, tables, times)
    inputs = block_inputs(mechanics, prepared.scheme, means, times, h, force)
    pushed = None
    if prepared.constant is not None:
        pushed = block_pushes(mechanics, inputs, means, h, force, prepared.constant.push)
    if prepared.in_scalars:
        assert pushed is not None
        return _watched(_in_scalars(prepared, motion, times, inputs, pushed), prepared, inputs)

    def following(motion: Motion, given):
        row = step(prepared, motion, *given)
        return Motion(row.q, row.v, row.mode, row.segment, motion.settled | True), row

    _, rows = jax.lax.scan(following, motion, (inputs, pushed))
    q_before, v_before = _before(motion.q, rows.q), _before(motion.v, rows.v)
    mode_before = _before(motion.mode, rows.mode)

    def motions(index):
        return Motions(*(column[index] for column in (rows.q, rows.v, q_before, v_before)))

    def steps():
        finite = jnp.all(jnp.isfinite(rows.q) & jnp.isfinite(rows.v), axis=1)
        return Steps(
            mode=rows.mode,
            mode_before=mode_before,
            segment=rows.segment,
            segment_before=_before(motion.segment, rows.segment),
            impact=rows.impact,
            status=_status(rows.status, rows.gains, finite),
        )

    changed = (rows.mode != mode_before).any()
    changed = changed | (rows.segment != _before(motion.segment, rows.segment)).any()
    happened = rows.impact.any() | (rows.status != int(Status.OK)).any()
    finite = jnp.all(jnp.isfinite(rows.q[-1]) & jnp.isfinite(rows.v[-1]))
    block = Block(
        times=times,
        quiet=~changed & ~happened & finite,
        steps=steps,
        motions=motions,
        rows=lambda index: jax.tree.map(lambda column: column[index], rows),
        residual=jax.lax.stop_gradient(rows.residual),
        iterations=rows.iterations,
        flags=rows.flags,
    )
    return _watched(block, prepared, inputs)


def _watched(block: Block, prepared: Prepared, inputs: StepInputs) -> Block:
    """Copy of ``block`` with a status where a given normal force is negative."""
    if prepared.nf == 0:
        return block

    def steps() -> Steps:
        made = block.steps()
        # The negative force causes all other findings of the step.
        status = jnp.where(inputs.negative, int(Status.NEGATIVE_FORCE), made.status)
        return made._replace(status=status.astype(jnp.int32))

    return block._replace(quiet=block.quiet & ~inputs.negative.any(), steps=steps)


def _before(first, rows):
    return jnp.concatenate([first[None], rows[:-1]])


def _status(status, gains, finite):
    status = jnp.where(gains, int(Status.IMPACT_ENERGY), status)
    return jnp.where(finite, status, int(Status.NON_FINITE)).astype(jnp.int32)


def _in_scalars(prepared: Prepared, motion: Motion, times, inputs: StepInputs, pushed) -> Block:
    n, final = prepared.mechanics.n, times.shape[0] - 1
    every = jnp.arange(times.shape[0], dtype=jnp.int32)
    made = StepsInScalars(prepared, inputs, pushed)
    starts, last = made.run(motion)
    # Modes have no derivatives.
    frozen = made.frozen()
    finite = jnp.all(jnp.isfinite(jax.lax.stop_gradient(last)))

    @functools.partial(jax.jit, static_argnums=0)
    def look(names, starts, mode):
        return frozen.look(starts, every, mode, operator.attrgetter(*names))

    def motions(index):
        before, following = starts[index], starts[jnp.minimum(index + 1, final)]
        after = jnp.where((index == final)[:, None], last, following)
        return Motions(after[:, :n], after[:, n : 2 * n], before[:, :n], before[:, n : 2 * n])

    def steps():
        # Evaluated again, as everything that a branch uses is computed before the branch.
        mode = _before(motion.mode, look(("mode",), still, motion.mode))
        following, impact, gains, status = look(("mode", "impact", "gains", "status"), still, mode)

        def broken():
            holds = jnp.all(jnp.isfinite(still), axis=1)
            return ~jnp.append(holds[1:], finite)

        none = jnp.zeros(times.shape, bool)
        broke = jax.lax.cond(finite, lambda: none, broken)
        segment = jnp.zeros((times.shape[0], 0), jnp.int32)
        return Steps(
            mode=following,
            mode_before=mode,
            segment=segment,
            segment_before=segment,
            impact=impact,
            status=_status(status, gains, ~broke),
        )

    # As long as nothing has happened, the mode before each step is the first one.
    still = jax.lax.stop_gradient(starts)
    mode, impact, status = look(("mode", "impact", "status"), still, motion.mode)
    same = (
        (mode == motion.mode[None, :]).all(axis=1)
        & ~impact.any(axis=1)
        & (status == int(Status.OK))
    )
    return Block(
        times=times,
        # A number that is not finite remains so: the last row suffices.
        quiet=same.all() & finite,
        steps=steps,
        motions=motions,
        rows=lambda index: made.look(starts[index], index, motion.mode, lambda row: row),
        residual=None,
        iterations=None,
    )


class _Results(NamedTuple):
    """Positions and velocities (2n,), these and the modes (2n+nt,), and the complete row."""

    moved: Array
    with_mode: Array
    row: Row


class StepsInScalars:
    """Steps of small linear systems with one contact, decomposed into scalars.

    One short vector goes from step to step: compiled, a step is then one kernel, and the compiler
    makes the whole loop one piece of machine code. What the next step does not need (modes,
    impulses, events) is found afterwards, for many steps at once.

    ``inputs`` (L, ...): inputs of the steps; ``pushed`` (L, n): velocities that the loads cause.

    Packed motions contain positions and velocities, and the modes if steps depend on them.
    """

    def __init__(self, prepared: Prepared, inputs: StepInputs, pushed: Float[Array, "L n"]):
        self.inputs = inputs, pushed
        arrays, rest = eqx.partition(prepared, eqx.is_array)
        mechanics, n = prepared.mechanics, prepared.mechanics.n
        dofs = mechanics.single_dofs
        acts = np.array([[dof is None or dof == i for i in range(n)] for dof in dofs])

        def one(arrays, z, mode, x: StepInputs, pushed):
            # Known zeros leave no operations in the program.
            p = eqx.combine(arrays, rest)
            p = eqx.tree_at(lambda p: p.W, p, jnp.where(acts, p.W, 0.0))
            if not p.partners_move:
                none = jnp.zeros(x.before.shape, z.dtype)
                x = x._replace(before=none, after=none, gap=p.mechanics.gap0)
            motion = Motion(z[:n], z[n:], mode, jnp.zeros((0,), jnp.int32))
            row = step(p, motion, x, pushed)
            moved = jnp.concatenate([row.q, row.v])
            return _Results(moved, jnp.concatenate([moved, row.mode.astype(z.dtype)]), row)

        def shape(x):
            return jax.ShapeDtypeStruct(x.shape, x.dtype)

        first = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape[1:], x.dtype), (inputs, pushed))
        z = jax.ShapeDtypeStruct((2 * n,), pushed.dtype)
        mode = jax.ShapeDtypeStruct((prepared.nt,), np.dtype(np.int32))
        self._program = Scalars(one, jax.tree.map(shape, arrays), z, mode, *first)
        self._size, self._numbers = 2 * n, self._program.prepare(arrays)
        moved = self._program.part(lambda r: r.moved)
        #: Whether a step depends on the mode before it.
        self.remembers = moved.uses(2)
        self._moved = self._program.part(lambda r: r.with_mode) if self.remembers else moved

    def frozen(self) -> Self:
        """Copy of the steps whose inputs and numbers have no derivatives."""
        other = copy.copy(self)
        other.inputs, other._numbers = jax.lax.stop_gradient((self.inputs, self._numbers))
        return other

    def pack(self, motion: Motion) -> Float[Array, " z"]:
        """Motion packed into one vector."""
        mode = [motion.mode.astype(motion.q.dtype)] if self.remembers else []
        return jnp.concatenate([motion.q, motion.v, *mode])

    def run(self, motion: Motion) -> tuple[Float[Array, "L z"], Float[Array, " z"]]:
        """Packed motions before each step, and after the last one."""

        def following(z, x):
            mode = z[self._size :].astype(jnp.int32) if self.remembers else motion.mode
            return self._moved(self._numbers, z[: self._size], mode, *x), z

        last, starts = jax.lax.scan(following, self.pack(motion), self.inputs)
        return starts, last

    def look(self, starts: Float[Array, "k z"], index, mode: Int[Array, "*k nt"], chosen) -> Any:
        """Parts ``chosen(row)`` of the steps with numbers ``index`` from ``starts``, all at once.
        ``mode``: modes before these steps, unless packed motions contain the modes."""
        if self.remembers:
            mode = starts[:, self._size :].astype(jnp.int32)
        mode = jnp.broadcast_to(mode, (starts.shape[0], mode.shape[-1]))
        inputs = jax.tree.map(lambda column: column[index], self.inputs)
        part = self._program.part(lambda r: chosen(r.row))
        each = jax.vmap(lambda *x: part(self._numbers, *x))
        return each(starts[:, : self._size], mode, *inputs)
