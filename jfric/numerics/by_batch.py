"""Computations with one form for a single trajectory and another for batches.

Only ``vmap`` knows whether there is a batch: :class:`jax.custom_batching.custom_vmap` finds out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_batching import custom_vmap
from jax.custom_derivatives import SymbolicZero


class Sizes(NamedTuple):
    """Numbers of trajectories from which another form pays: in a batch of values or derivatives,
    whose program may be used again, and in a sweep."""

    values: int
    derivatives: int
    sweep: int


def by_batch(function: Callable, single: Any, batched: Any, sizes: Sizes) -> Any:
    """Result of ``function(*single)``, or of ``function(*batched)`` under ``vmap`` over enough
    trajectories.

    ``single`` and ``batched`` are tuples of any pytrees with the same arrays, which give the same
    results. There are forward derivatives of any order; only those of the arrays that have a
    tangent are computed.
    """
    arrays, rest = eqx.partition(single, eqx.is_array)
    leaves, structure = jax.tree.flatten(arrays)
    arrays, other = eqx.partition(batched, eqx.is_array)
    results: dict[str, Any] = {}

    def form(structure, static):
        def run(leaves, rates):
            del rates
            out = function(*eqx.combine(jax.tree.unflatten(structure, leaves), static))
            numbers, results["rest"] = eqx.partition(out, eqx.is_array)
            found, results["structure"] = jax.tree.flatten(numbers)
            return found

        return run

    found = _either(
        form(structure, rest), form(jax.tree.structure(arrays), other), leaves, [], sizes
    )
    return eqx.combine(jax.tree.unflatten(results["structure"], found), results["rest"])


def _either(single: Callable, batched: Callable, leaves: list, rates: list, sizes: Sizes) -> list:
    """Result of ``single(leaves, rates)``, or of ``batched`` where ``leaves`` are a batch; several
    ``rates`` of one trajectory are no batch."""

    @custom_vmap
    def chosen(leaves, rates):
        return single(leaves, rates)

    @chosen.def_vmap
    def _(size, in_batch, leaves, rates):
        axes = tuple(jax.tree.map(lambda b: 0 if b else None, in_batch))
        if any(jax.tree.leaves(in_batch[0])):
            enough = size >= (sizes.derivatives if rates else sizes.values)
            found = jax.vmap(batched if enough else single, in_axes=axes)(leaves, rates)
            return found, [True] * len(found)
        # Which results depend on the rates that are a batch (those of one trajectory do not).
        # Recorded at the first trace; later there may be tracers of other batches.
        varies: list[bool] = []

        def over_rates(form):
            def parts(leaves, rates):
                found = form(leaves, rates)
                if not varies:
                    varies[:] = [hasattr(x, "batch_dim") for x in found]
                moved = [x for x, v in zip(found, varies, strict=True) if v]
                return moved, [x for x, v in zip(found, varies, strict=True) if not v]

            def several(leaves, rates):
                moved, fixed = jax.vmap(parts, in_axes=axes, out_axes=(0, None))(leaves, rates)
                moved, fixed = iter(moved), iter(fixed)
                return [next(moved if v else fixed) for v in varies]

            return several

        found = _either(over_rates(single), over_rates(batched), leaves, rates, sizes)
        return found, varies

    @jax.custom_jvp
    def run(leaves, rates):
        return chosen(leaves, rates)

    def slopes(primals, tangents):
        changes = [dx for group in tangents for dx in group]
        moving = [i for i, dx in enumerate(changes) if not isinstance(dx, SymbolicZero)]
        forms = [_with_slopes(form, moving, len(primals[1])) for form in (single, batched)]
        rates = [*primals[1], *(changes[i] for i in moving)]
        both = _either(forms[0], forms[1], primals[0], rates, sizes)
        found = both[: len(both) - sum(map(_is_real, both)) // 2]
        change = iter(both[len(found) :])
        return found, [
            next(change) if _is_real(x) else np.zeros(x.shape, jax.dtypes.float0) for x in found
        ]

    run.defjvp(slopes, symbolic_zeros=True)
    return run(leaves, rates)


def _with_slopes(form: Callable, moving: list[int], held: int) -> Callable:
    """Function that gives the results of ``form`` with ``held`` rates, then its derivatives along
    further rates of the inputs ``moving``."""

    def both(leaves, rates):
        given, directions = [*leaves, *rates[:held]], rates[held:]

        def of(active):
            full = list(given)
            for i, x in zip(moving, active, strict=True):
                full[i] = x
            found = form(full[: len(leaves)], full[len(leaves) :])
            return [x for x in found if _is_real(x)], found

        _, change, found = jax.jvp(of, ([given[i] for i in moving],), (directions,), has_aux=True)
        return [*found, *change]

    return both


def with_rates(
    values: Callable, both: Callable, primals: list, rates: list, most: int
) -> tuple[list, list]:
    """Results of ``values(primals)``, and their derivatives along ``rates``.

    ``both(count)(primals, rates)`` gives both by one program, for ``count`` rates of one trajectory
    along the first axis, up to ``most``. The rates of ``jacfwd`` use such programs: they are no
    batch.
    """

    @custom_vmap
    def chosen(primals, rates):
        found, moved = both(1)(primals, [r[None] for r in rates])
        return found, [x[0] for x in moved]

    @chosen.def_vmap
    def _(size, in_batch, primals, rates):
        axes = tuple(jax.tree.map(lambda b: 0 if b else None, in_batch))
        if any(in_batch[0]):
            # The axis of the trajectories comes first, then that of the rates.
            def of_all(count):
                return jax.vmap(
                    both(count), (axes[0], [None if a is None else 1 for a in axes[1]]), (0, 1)
                )

            found = with_rates(jax.vmap(values, in_axes=axes[:1]), of_all, primals, rates, most)
            return found, ([True] * len(found[0]), [True] * len(found[1]))
        whole = [
            r if b else jnp.broadcast_to(r, (size, *r.shape))
            for r, b in zip(rates, in_batch[1], strict=True)
        ]
        found = _in_groups(both, size, primals, whole, most)
        return found, ([False] * len(found[0]), [True] * len(found[1]))

    @jax.custom_jvp
    def run(primals, rates):
        return chosen(primals, rates)

    @run.defjvp
    def _(point, change):
        def apart(p, r):
            return values(p), [x[0] for x in both(1)(p, [x[None] for x in r])[1]]

        return jax.jvp(apart, point, change)

    return run(primals, rates)


def _in_groups(
    both: Callable, size: int, primals: list, rates: list, most: int
) -> tuple[list, list]:
    """Results along ``size`` rates, as many at a time as one program takes."""
    groups = -(-size // most)
    count = -(-size // groups)
    if groups == 1:
        return both(size)(primals, rates)
    short = groups * count - size
    filled = [jnp.pad(r, ((0, short), *[(0, 0)] * (r.ndim - 1))) for r in rates]
    parts = [r.reshape(groups, count, *r.shape[1:]) for r in filled]
    found, moved = jax.lax.map(lambda r: both(count)(primals, r), parts)
    moved = [x.reshape(groups * count, *x.shape[2:])[:size] for x in moved]
    return [x[0] for x in found], moved


def _is_real(x) -> bool:
    return jnp.issubdtype(x.dtype, jnp.inexact)
