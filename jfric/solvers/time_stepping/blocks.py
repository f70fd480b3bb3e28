"""Many steps in one scan: a block, and what its steps leave behind."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jfric.linear_algebra import matmul
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
from jfric.status import Status


class Motions(NamedTuple):
    """Motion at the ends of the steps of a block and before them, and impulses (m,)."""

    q: Float[Array, "L n"]
    v: Float[Array, "L n"]
    q_before: Float[Array, "L n"]
    v_before: Float[Array, "L n"]
    impulse: Float[Array, "L m"]


class Steps(NamedTuple):
    """What the steps of a block did."""

    motions: Motions
    mode: Int[Array, "L nt"]
    mode_before: Int[Array, "L nt"]
    segment: Int[Array, "L ns"]
    segment_before: Int[Array, "L ns"]
    impact: Bool[Array, "L nu"]
    status: Int[Array, " L"]


class Block(NamedTuple):
    """The steps of a block; most blocks hold no event and no output.

    Taking their columns apart would cost as much as the steps: ``steps()`` and ``motions()`` are
    called only where ``quiet`` is False (something happened: a change of mode, an impact, trouble)
    and where outputs lie. ``at(row)``: position, velocity, mode and segment after a step.
    """

    times: Float[Array, " L"]
    quiet: Bool[Array, ""]
    steps: Callable[[], Steps]
    motions: Callable[[], Motions]
    at: Callable[[Int[Array, ""]], Motion]
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
        return _in_scalars(prepared, motion, times, inputs, pushes)
    _, rows = jax.lax.scan(lambda m, x: several_contacts.step(prepared, m, x), motion, inputs)

    def motions():
        before = _before(motion.q, rows.q), _before(motion.v, rows.v)
        return Motions(rows.q, rows.v, *before, rows.impulse)

    def steps():
        finite = jnp.all(jnp.isfinite(rows.q) & jnp.isfinite(rows.v), axis=1)
        return Steps(
            motions=motions(),
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
    return Block(
        times=times,
        quiet=~changed & ~happened & finite,
        steps=steps,
        motions=motions,
        at=lambda row: Motion(rows.q[row], rows.v[row], rows.mode[row], rows.segment[row]),
        residual=jax.lax.stop_gradient(rows.residual),
        iterations=rows.iterations,
    )


def _before(first, rows):
    return jnp.concatenate([first[None], rows[:-1]])


def _in_scalars(prepared: Prepared, motion: Motion, times, inputs: StepInputs, pushes) -> Block:
    start = one_contact.pack(prepared, motion.q, motion.v, motion.mode)
    ends = one_contact.run_steps(prepared, start, inputs, pushes)
    count, n = times.shape[0], prepared.mechanics.n
    frozen = jax.lax.stop_gradient(ends)

    def motions():
        now = one_contact.unpack(prepared, ends)
        earlier = one_contact.unpack(prepared, _before(start, ends))
        return Motions(now.q, now.v, earlier.q, earlier.v, now.impulse)

    def steps():
        columns = one_contact.unpack(prepared, frozen)
        mode = columns.mode.astype(jnp.int32)[:, None]
        failed = columns.happened >= one_contact.FAILED
        status = jnp.where(failed, int(Status.INCONSISTENT), int(Status.OK))
        impact, none = jnp.zeros((count, 0), bool), jnp.zeros((count,), bool)
        if prepared.nu:
            hit = columns.happened - jnp.where(failed, one_contact.FAILED, 0.0) >= one_contact.HIT
            impact = hit[:, None]

            def gains():
                x = jax.lax.stop_gradient(motions())
                before = matmul(x.v_before, prepared.W.T) - inputs.before
                after = matmul(x.v, prepared.W.T) - inputs.after
                return hit & jax.vmap(gains_energy)(x.impulse, before, after)

            gained = jax.lax.cond(hit.any(), gains, lambda: none)
            status = jnp.where(gained, int(Status.IMPACT_ENERGY), status)
        broken = jax.lax.cond(
            jnp.all(jnp.isfinite(frozen[-1])),
            lambda: none,
            lambda: ~jnp.all(jnp.isfinite(frozen), axis=1),
        )
        status = jnp.where(broken, int(Status.NON_FINITE), status)
        return Steps(
            motions=motions(),
            mode=mode,
            mode_before=_before(motion.mode, mode),
            segment=jnp.zeros((count, 0), jnp.int32),
            segment_before=jnp.zeros((count, 0), jnp.int32),
            impact=impact,
            status=status.astype(jnp.int32),
        )

    def at(row):
        z = ends[row]
        mode = jax.lax.stop_gradient(z[-1:]).astype(jnp.int32)
        return Motion(z[:n], z[n : 2 * n], mode, motion.segment)

    same = jnp.all(frozen[1:, -1] == frozen[:-1, -1]) & (frozen[0, -1] == start[-1])
    nothing = jnp.all(frozen[:, -2] == 0.0) if prepared.nu else True
    return Block(
        times=times,
        # What is not finite stays so: the last row tells.
        quiet=same & nothing & jnp.all(jnp.isfinite(frozen[-1])),
        steps=steps,
        motions=motions,
        at=at,
        residual=None,
        iterations=None,
    )
