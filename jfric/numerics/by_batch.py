"""Computations with one form for a single trajectory and another for batches.

Only ``vmap`` knows whether there is a batch: :class:`jax.custom_batching.custom_vmap` finds out.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import equinox.internal as eqxi
import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_batching import custom_vmap
from jax.custom_derivatives import SymbolicZero

from jfric.errors import ProblemError


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
        found = both[: len(both) - sum(map(is_real, both)) // 2]
        change = iter(both[len(found) :])
        return found, [
            next(change) if is_real(x) else np.zeros(x.shape, jax.dtypes.float0) for x in found
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
            return [x for x in found if is_real(x)], found

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


def is_real(x) -> bool:
    """Whether the numbers of an array, or of a node of a program, have derivatives."""
    return jnp.issubdtype(x.dtype, jnp.inexact)


#: Largest number of numbers with derivatives for which this is done; beyond, forward mode only.
MOST = 16
#: Error of reverse mode where there is none.
NO_REVERSE = (
    "adjoint: {} has derivatives by jax.jvp and jax.jacfwd only; choose 'reverse' for jax.grad and "
    "jax.jacrev"
)


def with_sensitivities(function: Callable, *arguments: Any, plain: Callable | None = None) -> Any:
    """Result of ``function(*arguments)``, with derivatives by one forward run, for few parameters.

    The derivatives ``J = d out / d p`` of a simulation with respect to every number ``p`` that
    needs a derivative are computed in one forward run; the requested ``J dp`` or ``w^T J`` is a
    product. One run then serves ``jvp``, ``jacfwd``, ``grad`` and ``jacrev`` at the cost of forward
    mode, as long as the numbers are few.

    Arguments and results are any pytrees. ``plain``: the function without derivatives, called where
    none are needed.
    """
    arrays, rest = eqx.partition(arguments, eqx.is_array)
    leaves, structure = jax.tree.flatten(arrays)
    results: dict[str, Any] = {}

    def run(leaves, function=function):
        out = function(*eqx.combine(jax.tree.unflatten(structure, leaves), rest))
        numbers, others = eqx.partition(out, eqx.is_array)
        found, results["structure"] = jax.tree.flatten(numbers)
        results["rest"] = others
        return found

    def rule(primals, tangents):
        (values,), (changes,) = primals, tangents
        chosen = [
            i
            for i, (x, dx) in enumerate(zip(values, changes, strict=True))
            if is_real(x) and not isinstance(dx, SymbolicZero)
        ]

        def of(active):
            full = list(values)
            for i, x in zip(chosen, active, strict=True):
                full[i] = x
            found = run(full)
            return [x if is_real(x) else None for x in found], found

        active, change = [values[i] for i in chosen], [changes[i] for i in chosen]
        if (count := sum(x.size for x in active)) > MOST:
            _, slopes, found = jax.jvp(of, (active,), (change,), has_aux=True)
            slopes = forward_only(slopes, NO_REVERSE.format(f"'auto' with {count} numbers"))
            slopes = [_zero(x) if dx is None else dx for x, dx in zip(found, slopes, strict=True)]
            return found, slopes

        def column(direction):
            return jax.jvp(of, (active,), (direction,), has_aux=True)[1:]

        columns, found = jax.vmap(column, out_axes=(0, None))(_unit_vectors(active))
        dp = jnp.concatenate([dx.ravel() for dx in change])
        slopes = [
            _zero(x) if J is None else _product(dp.astype(x.dtype), J, x)
            for x, J in zip(found, columns, strict=True)
        ]
        return found, slopes

    call = jax.custom_jvp(functools.partial(run, function=plain or function))
    call.defjvp(rule, symbolic_zeros=True)
    found = call(leaves)
    return eqx.combine(jax.tree.unflatten(results["structure"], found), results["rest"])


def without_derivatives(function: Callable, *arguments: Any) -> Any:
    """Result of ``function(*arguments)``; raises :class:`jfric.ProblemError` for a derivative."""

    def refuse(*_):
        raise ProblemError(
            "adjoint: found 'none', but derivatives are asked for; "
            "allowed are 'auto', 'forward' and 'reverse'"
        )

    return with_sensitivities(refuse, *arguments, plain=function)


def forward_only(values, told: str):
    """``values``, whose derivatives exist in forward mode; reverse mode raises the error ``told``
    in place of one about loops."""
    return eqxi.nondifferentiable_backward(values, msg=told)


def _zero(x) -> Any:
    return np.zeros(x.shape, jax.dtypes.float0)


def _unit_vectors(active: list) -> list:
    """All directions that change a single number: arrays (p, ...)."""
    count, first, directions = sum(x.size for x in active), 0, []
    for x in active:
        rows = jnp.zeros((count, x.size), x.dtype)
        rows = rows.at[first + jnp.arange(x.size), jnp.arange(x.size)].set(1)
        directions.append(rows.reshape(count, *x.shape))
        first += x.size
    return directions


def _product(dp, J, x):
    """Product ``J dp``. Results that are NaN (outputs that were never reached) have no derivatives:
    in reverse mode their zero weights would turn the sum into NaN."""
    J = jnp.where(jnp.isfinite(x), J, 0.0)
    return jnp.tensordot(dp, J, axes=1)
