"""Step of small linear systems with one contact, decomposed into scalars.

One short vector goes from step to step: compiled, a step is then one kernel, and the compiler makes
the whole loop one piece of machine code. Each number of the vector is computed by itself.
Everything that the next step does not need (modes, impulses, events) is therefore found afterwards,
for many steps at once.
"""

from __future__ import annotations

import copy
from typing import Any, NamedTuple, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from jfric.numerics.lowering import Scalars
from jfric.solvers.time_stepping.inputs import StepInputs
from jfric.solvers.time_stepping.prepared import Prepared
from jfric.solvers.time_stepping.rows import Row
from jfric.solvers.time_stepping.state import Motion
from jfric.solvers.time_stepping.step import step


class _Results(NamedTuple):
    """Positions and velocities (2n,), these and the modes (2n+nt,), and the complete row."""

    moved: Array
    with_mode: Array
    row: Row


class StepsInScalars:
    """Steps with given ``inputs`` (L, ...) and velocities ``pushed`` (L, n) that the loads cause.

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
