"""Loops that work under ``vmap``, forward and reverse differentiation.

The one module that uses equinox's internal loops.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal, get_args

import equinox.internal as eqxi
import jax
import jax.numpy as jnp

from jfric.errors import ProblemError

#: ``"auto"``: as :mod:`jfric.solvers.sensitivities`, which runs the loop in forward mode.
Adjoint = Literal["auto", "forward", "reverse"]


def require_adjoint(found: str) -> None:
    """Raise :class:`jfric.ProblemError` unless ``found`` is one of :data:`Adjoint`."""
    if found not in get_args(Adjoint):
        raise ProblemError(f"adjoint: found {found!r}, allowed are 'auto', 'forward' and 'reverse'")


#: States stored in reverse mode; trajectories of fewer passes are not computed twice.
CHECKPOINTS = 128


def run_passes(
    body: Callable,
    active: Callable,
    state,
    buffers,
    *,
    max_steps: int,
    adjoint: Adjoint,
):
    """Repeat ``state, buffers = body(state, buffers, on)`` while ``active(state)``.

    ``body`` receives whether this trajectory is still running and must leave the buffers
    unchanged where it is not: a batch then shares one loop without copying its output buffers in
    every pass. The state is kept here, packed into one vector for each type: a pass costs few
    operations for its bookkeeping.
    """
    pack, unpack = _packing(state)

    def step(carry):
        packed, buffers = carry
        old = unpack(packed)
        on = active(old)
        new, buffers = body(old, buffers, on)
        packed = [jnp.where(on, a, b) for a, b in zip(pack(new), packed, strict=True)]
        return packed, buffers

    def running(carry):
        return eqxi.unvmap_any(active(unpack(carry[0])))

    carry = _tied(pack(state), buffers)
    if adjoint != "reverse":
        carry = jax.lax.while_loop(running, step, carry)
    else:
        # States are stored at up to CHECKPOINTS passes; those between are computed again.
        carry = eqxi.while_loop(
            running,
            step,
            carry,
            kind="checkpointed",
            max_steps=max_steps,
            checkpoints=min(CHECKPOINTS, max_steps),
        )
    return unpack(carry[0]), carry[1]


def _tied(packed, buffers):
    """The same values, all batched and differentiated as the first of them is.

    ``jax`` traces the body of a loop again and again until it knows which parts of its carry are
    batched or have derivatives; this tells it at once.
    """
    first = next(x for x in packed if jnp.issubdtype(x.dtype, jnp.inexact))[0]
    always = (first == first) | True
    zero = jnp.where(always, 0.0, first)

    def tied(x):
        if jnp.issubdtype(x.dtype, jnp.inexact):
            return x + zero.astype(x.dtype)
        return jnp.where(always, x, x)

    return jax.tree.map(tied, (packed, buffers))


def _packing(tree):
    """Functions from a tree of arrays to one vector for each type, and back."""
    leaves, structure = jax.tree.flatten(tree)
    shapes = [x.shape for x in leaves]
    types = list(dict.fromkeys(x.dtype for x in leaves))
    groups = [[i for i, x in enumerate(leaves) if x.dtype == d] for d in types]

    def pack(tree):
        leaves = jax.tree.leaves(tree)
        return [jnp.concatenate([leaves[i].ravel() for i in group]) for group in groups]

    def unpack(vectors):
        result = [None] * len(shapes)
        for vector, group in zip(vectors, groups, strict=True):
            start = 0
            for i in group:
                size = math.prod(shapes[i])
                result[i] = vector[start : start + size].reshape(shapes[i])
                start += size
        return jax.tree.unflatten(structure, result)

    return pack, unpack


def keep(on, new, old):
    """``new`` where the trajectory is running, else ``old``, leaf by leaf."""
    return jax.tree.map(lambda a, b: jnp.where(on, a, b), new, old)
