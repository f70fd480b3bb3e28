"""Many steps in one scan: a block, and what its steps leave behind."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jfric.numerics.linear_algebra import matmul
from jfric.results.modes import Mode
from jfric.results.status import Status
from jfric.solvers.time_stepping import one_contact, several_contacts
from jfric.solvers.time_stepping.inputs import (
    StepInputs,
    Table,
    block_inputs,
    block_pushes,
    load_means,
)
from jfric.solvers.time_stepping.prepared import Prepared
from jfric.solvers.time_stepping.state import Motion
from jfric.solvers.time_stepping.tolerance import gains_energy


class Motions(NamedTuple):
    """Motion after and before some steps of a block."""

    q: Float[Array, "k n"]
    v: Float[Array, "k n"]
    q_before: Float[Array, "k n"]
    v_before: Float[Array, "k n"]


class Outcomes(NamedTuple):
    """Impulses of some steps of a block, modes and segments after them."""

    impulse: Float[Array, "k m"]
    mode: Int[Array, "k nt"]
    segment: Int[Array, "k ns"]


class Steps(NamedTuple):
    """What all steps of a block did."""

    mode: Int[Array, "L nt"]
    mode_before: Int[Array, "L nt"]
    segment: Int[Array, "L ns"]
    segment_before: Int[Array, "L ns"]
    impact: Bool[Array, "L nu"]
    status: Int[Array, " L"]


class Block(NamedTuple):
    """The steps of a block; most blocks hold no event and no output.

    ``steps()`` is called only where ``quiet`` is False: something happened, a change of mode, an
    impact or trouble. ``motions(index)`` and ``outcomes(index)``: of the steps with the numbers
    ``index`` (k,).
    """

    times: Float[Array, " L"]
    quiet: Bool[Array, ""]
    steps: Callable[[], Steps]
    motions: Callable[[Int[Array, " k"]], Motions]
    outcomes: Callable[[Int[Array, " k"]], Outcomes]
    #: Residuals (zero where they are judged on demand), and iterations; None: one in each step.
    residual: Float[Array, " L"] | None
    iterations: Int[Array, " L"] | None


def run_block(
    prepared: Prepared, motion: Motion, times, force, tables: list[Table | None]
) -> Block:
    """Steps that begin at ``times`` (L,), under an extra constant ``force`` (n,)."""
    mechanics, h = prepared.mechanics, prepared.h
    means = load_means(mechanics, tables, times)
    inputs = block_inputs(mechanics, prepared.scheme, means, times, h, force)
    if prepared.in_scalars:
        assert prepared.constant is not None
        pushes = block_pushes(mechanics, inputs, means, h, force, prepared.constant.push)
        return _watched(_in_scalars(prepared, motion, times, inputs, pushes), prepared, inputs)
    _, rows = jax.lax.scan(lambda m, x: several_contacts.step(prepared, m, x), motion, inputs)

    q_before, v_before = _before(motion.q, rows.q), _before(motion.v, rows.v)

    def motions(index):
        return Motions(*(column[index] for column in (rows.q, rows.v, q_before, v_before)))

    def outcomes(index):
        return Outcomes(*(column[index] for column in (rows.impulse, rows.mode, rows.segment)))

    def steps():
        finite = jnp.all(jnp.isfinite(rows.q) & jnp.isfinite(rows.v), axis=1)
        return Steps(
            mode=rows.mode,
            mode_before=_before(motion.mode, rows.mode),
            segment=rows.segment,
            segment_before=_before(motion.segment, rows.segment),
            impact=rows.impact,
            status=jnp.where(finite, rows.status, int(Status.NON_FINITE)).astype(jnp.int32),
        )

    changed = (rows.mode != _before(motion.mode, rows.mode)).any()
    changed = changed | (rows.segment != _before(motion.segment, rows.segment)).any()
    happened = rows.impact.any() | (rows.status != int(Status.OK)).any()
    finite = jnp.all(jnp.isfinite(rows.q[-1]) & jnp.isfinite(rows.v[-1]))
    block = Block(
        times=times,
        quiet=~changed & ~happened & finite,
        steps=steps,
        motions=motions,
        outcomes=outcomes,
        residual=jax.lax.stop_gradient(rows.residual),
        iterations=rows.iterations,
    )
    return _watched(block, prepared, inputs)


def _watched(block: Block, prepared: Prepared, inputs: StepInputs) -> Block:
    """``block`` with a status where a given normal force is negative."""
    if prepared.nf == 0:
        return block

    def steps() -> Steps:
        made = block.steps()
        # It is the cause of whatever else the step reports.
        status = jnp.where(inputs.negative, int(Status.NEGATIVE_FORCE), made.status)
        return made._replace(status=status.astype(jnp.int32))

    return block._replace(quiet=block.quiet & ~inputs.negative.any(), steps=steps)


def _before(first, rows):
    return jnp.concatenate([first[None], rows[:-1]])


def _in_scalars(prepared: Prepared, motion: Motion, times, inputs: StepInputs, pushes) -> Block:
    n, count = prepared.mechanics.n, times.shape[0]
    start = one_contact.pack(prepared, motion.q, motion.v, motion.mode)
    given = one_contact.given(prepared, inputs, pushes)
    starts, last = one_contact.run_steps(prepared, start, given)
    # Modes have no derivatives.
    arrays, rest = eqx.partition((prepared, starts, given), eqx.is_array)
    frozen = eqx.combine(jax.lax.stop_gradient(arrays), rest)
    finite = jnp.all(jnp.isfinite(jax.lax.stop_gradient(last)))

    @jax.jit
    def look(starts, given):
        return one_contact.look(frozen[0], starts, given)

    def motions(index):
        before, following = starts[index], starts[jnp.minimum(index + 1, count - 1)]
        after = jnp.where((index == count - 1)[:, None], last, following)
        return Motions(after[:, :n], after[:, n : 2 * n], before[:, :n], before[:, n : 2 * n])

    def outcomes(index):
        take = jax.tree.map(lambda column: column[index], (starts, given))
        here = one_contact.look(prepared, *take)
        segment = jnp.broadcast_to(motion.segment, (index.shape[0], *motion.segment.shape))
        return Outcomes(here.impulse, here.mode[:, None], segment)

    def steps():
        # Again, as all that a branch uses is computed in front of it.
        looked, none = look(*frozen[1:]), jnp.zeros((count,), bool)
        before = jnp.concatenate([motion.mode, looked.mode[:-1]])
        status = jnp.where(looked.failed, int(Status.INCONSISTENT), int(Status.OK))
        impact = jnp.zeros((count, 0), bool)
        if prepared.nu:
            hit = looked.bounces & (before == Mode.OPEN)
            impact = hit[:, None]

            def gains():
                x = jax.lax.stop_gradient(motions(jnp.arange(count)))
                before = matmul(x.v_before, prepared.W.T) - inputs.before
                after = matmul(x.v, prepared.W.T) - inputs.after
                return hit & jax.vmap(gains_energy)(looked.impulse, before, after)

            gained = jax.lax.cond(hit.any(), gains, lambda: none)
            status = jnp.where(gained, int(Status.IMPACT_ENERGY), status)

        def broken():
            still = jnp.all(jnp.isfinite(frozen[1]), axis=1)
            return ~jnp.append(still[1:], finite)

        status = jnp.where(
            jax.lax.cond(finite, lambda: none, broken), int(Status.NON_FINITE), status
        )
        return Steps(
            mode=looked.mode[:, None],
            mode_before=before[:, None],
            segment=jnp.zeros((count, 0), jnp.int32),
            segment_before=jnp.zeros((count, 0), jnp.int32),
            impact=impact,
            status=status.astype(jnp.int32),
        )

    looked = look(*frozen[1:])
    same = (looked.mode == motion.mode) & ~looked.failed
    if prepared.nu:
        same = same & ~(looked.bounces & (motion.mode == Mode.OPEN))
    return Block(
        times=times,
        # What is not finite stays so: the last row tells.
        quiet=jnp.all(same) & finite,
        steps=steps,
        motions=motions,
        outcomes=outcomes,
        residual=None,
        iterations=None,
    )
