"""Loops that work under ``vmap``, forward and reverse differentiation.

Only this module uses equinox's internal loops.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, get_args

import equinox as eqx
import equinox.internal as eqxi
import jax
import jax.numpy as jnp
from jax.core import eval_jaxpr

from jfric.errors import ProblemError, nearest
from jfric.numerics.choice import select
from jfric.numerics.lowering import Constants, Lowered
from jfric.numerics.tracing import traced_for

#: ``"auto"``: see :mod:`jfric.numerics.by_batch`, which runs the loop in forward mode.
Adjoint = Literal["auto", "forward", "reverse", "none"]


def require_adjoint(found: str) -> None:
    """Raise :class:`jfric.ProblemError` unless ``found`` is one of :data:`Adjoint`."""
    if found not in get_args(Adjoint):
        raise ProblemError(
            f"adjoint: found {found!r}{nearest(found, get_args(Adjoint))}, allowed are 'auto', "
            "'forward', 'reverse' and 'none'"
        )


#: Number of states stored in reverse mode; trajectories of fewer passes are not computed twice.
CHECKPOINTS = 128

#: Size of a buffer up to which a lowered loop computes with each of its numbers: choosing a place
#: among them is cheaper than writing into an array of a batch.
SHORT = 48


class Shared(NamedTuple):
    """Values that rounds of a loop share: ``make(state)``, as long as ``holds(made, state)``."""

    make: Callable[[Any], Any]
    holds: Callable[[Any, Any], Any]


def run_passes(
    body: Callable,
    active: Callable,
    state,
    buffers,
    *,
    max_steps: int,
    adjoint: Adjoint,
    given=None,
    constants: Constants | None = None,
    scalar_buffers: bool = False,
    kernels: bool = True,
    shared: Shared | None = None,
):
    """Repeat ``state, buffers = body(state, buffers, on)`` while ``active(state)``.

    ``given``: inputs of the body; the state will be batched and differentiated as they are.
    ``constants``: known entries of the arrays that the body uses; the loop is then lowered to
    scalars and has forward derivatives only. ``kernels``: whether many scalars then form one
    kernel; otherwise each is an operation of its own, for the compiler to join. ``scalar_buffers``:
    whether all buffers are then decomposed. ``shared``: fourth argument of the body, recomputed
    where it no longer holds for all trajectories of a batch; in reverse mode in every round.

    ``body`` receives whether this trajectory is still running and must leave the buffers unchanged
    where it is not: a batch then shares one loop without copying its output buffers in every pass.
    The state is packed into one vector for each type, so that its bookkeeping costs few operations.
    """
    if constants is not None:
        return _run_lowered(body, active, state, buffers, given, constants, scalar_buffers, kernels)
    pack, unpack = _packing(state)

    def step(carry, common=None):
        packed, buffers = carry
        old = unpack(packed)
        on = active(old)
        if shared is None:
            new, buffers = body(old, buffers, on)
        else:
            common = shared.make(old) if common is None else common
            new, buffers = body(old, buffers, on, common)
        packed = [select(on, a, b) for a, b in zip(pack(new), packed, strict=True)]
        return packed, buffers

    def running(carry):
        return eqxi.unvmap_any(active(unpack(carry[0])))

    def several(carry):
        """Run rounds as long as their shared values hold."""
        assert shared is not None
        common, still_holds = shared.make(unpack(carry[0])), shared.holds

        def goes_on(both):
            first, carry = both
            state = unpack(carry[0])
            on = active(state)
            holds = eqxi.unvmap_all(still_holds(common, state) | ~on) & eqxi.unvmap_any(on)
            return first | holds

        def one(both):
            return jnp.asarray(False), step(both[1], common)

        return jax.lax.while_loop(goes_on, one, (jnp.asarray(True), carry))[1]

    carry = _tied(pack(state), buffers, given)
    if adjoint != "reverse":
        carry = jax.lax.while_loop(running, step if shared is None else several, carry)
    else:
        # States are stored at up to CHECKPOINTS passes; those between are recomputed.
        carry = eqxi.while_loop(
            running,
            step,
            carry,
            kind="checkpointed",
            max_steps=max_steps,
            checkpoints=min(CHECKPOINTS, max_steps),
        )
    return unpack(carry[0]), carry[1]


def _run_lowered(
    body, active, state, buffers, given, constants: Constants, scalar_buffers: bool, kernels: bool
):
    """Loop of :func:`run_passes` in scalars; for kernels short buffers are decomposed, too."""
    leaves, structure = jax.tree.flatten(buffers)
    short = [kernels and (scalar_buffers or x.size <= SHORT) for x in leaves]

    def both(state, buffers):
        parts = list(zip(jax.tree.leaves(buffers), short, strict=True))
        return (state, [x for x, s in parts if s]), [x for x, s in parts if not s]

    def parts(both, rest):
        state, first = both
        first, rest = iter(first), iter(rest)
        return state, jax.tree.unflatten(structure, [next(first if s else rest) for s in short])

    def step(*carry):
        old, buffers = parts(*carry)
        on = active(old)
        new, buffers = body(old, buffers, on)
        return both(keep(on, new, old), buffers)

    state, buffers = both(state, buffers)
    low = Lowered.of_closure(step, state, buffers, constants, kernels=kernels)

    # Inputs of the end test are passed as arguments: a derivative rule sees nothing from outside.
    test = jax.make_jaxpr(active)(state[0])

    def goes_on(tested, both):
        (on,) = eval_jaxpr(test.jaxpr, tested, *jax.tree.leaves(both[0]))
        going = eqxi.unvmap_any(on)
        return _apart(going) if kernels else going

    entries, buffers = _tied(low.split(state), buffers, given)
    tested = [jax.lax.stop_gradient(jnp.asarray(x)) for x in test.consts]
    entries, buffers = low.repeat(goes_on, tested, low.given, entries, buffers)
    return parts(low.join(entries), buffers)


def _apart(going):
    """The flag ``going``, computed so that XLA does not compile the loop as one piece of code.

    In such a piece a kernel of many results is compiled twice, with a comparison of the places of
    any two of its arrays, which is more code than the kernel itself. XLA makes no such piece of
    loops that sort.
    """

    def sorted_flag(going):
        return jnp.sort(jnp.stack([going, jnp.zeros_like(going)]))[1]

    return sorted_flag(going) if traced_for() == "cpu" else going


def _tied(packed, buffers, given):
    """State and buffers, all batched and differentiated as any of ``packed`` or ``given`` is.

    ``jax`` traces the body of a loop repeatedly until it knows which parts of its carry are batched
    or have derivatives; here it knows at the first trace.
    """
    parts = jax.tree.leaves(eqx.filter((packed, given), eqx.is_inexact_array))
    first = sum(x.ravel()[0] for x in parts if x.size)
    always = (first == first) | True
    zero = select(always, 0.0, first)

    def tied(x):
        if jnp.issubdtype(x.dtype, jnp.inexact):
            return x + zero.astype(x.dtype)
        return select(always, x, x)

    return jax.tree.map(tied, (packed, buffers))


def _packing(tree):
    """Functions that pack a tree of arrays into one vector for each type, and unpack it."""
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
    """Leaves of ``new`` where the trajectory is running, else of ``old``."""
    return jax.tree.map(lambda a, b: select(on, a, b), new, old)


def unvmap_any(x):
    """Whether any element is true, over all trajectories of a batch."""
    return eqxi.unvmap_any(x)


def once(values, on):
    """``values``, computed once where any trajectory of the batch is ``on``.

    On a CPU the compiler repeats cheap operations at each use of their results, again and again
    along a chain of them, but does not look into the branches of a conditional.
    """

    def apart(values):
        nothing = jax.tree.map(jnp.zeros_like, values)
        return jax.lax.cond(eqxi.unvmap_any(on), lambda x, _: x, lambda _, y: y, values, nothing)

    if traced_for() != "cpu":
        return values
    arrays, rest = eqx.partition(values, eqx.is_array)
    return eqx.combine(apart(arrays), rest)


def where_any(needed, compute: Callable, otherwise):
    """Result of ``compute()`` if any trajectory of the batch needs it, else ``otherwise``.

    For expensive values that are seldom needed; trajectories that do not need one may get either.
    """
    return jax.lax.cond(eqxi.unvmap_any(needed), compute, lambda: otherwise)


def skipped(needed, compute: Callable, otherwise):
    """Result of :func:`where_any` on a CPU; always ``compute()`` on an accelerator and in kernels,
    where a branch costs more than it saves."""
    return where_any(needed, compute, otherwise) if traced_for() == "cpu" else compute()


def either(needed, compute: Callable, otherwise: Callable):
    """Result of ``compute()`` if any trajectory of the batch needs it, else of ``otherwise()``,
    which is as good for the others, and costs less."""
    return jax.lax.cond(eqxi.unvmap_any(needed), compute, otherwise)


def when_any(needed, compute: Callable):
    """Result of ``compute()`` if any trajectory of the batch needs it, else zeros."""
    nothing = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), jax.eval_shape(compute))
    return where_any(needed, compute, nothing)
