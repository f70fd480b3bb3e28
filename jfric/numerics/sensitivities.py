"""Reverse mode by forward derivatives, for few parameters.

The derivatives ``J = d out / d p`` of a simulation with respect to every number ``p`` that needs a
derivative are computed in one forward run; the requested ``J dp`` or ``w^T J`` is a product. One
run then serves ``jvp``, ``jacfwd``, ``grad`` and ``jacrev`` at the cost of forward mode, as long as
the numbers are few.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_derivatives import SymbolicZero

from jfric.errors import ProblemError

#: Largest number of numbers with derivatives for which this is done; beyond, forward mode only.
MOST = 16


def with_sensitivities(function: Callable, *arguments: Any, plain: Callable | None = None) -> Any:
    """Result of ``function(*arguments)``, with derivatives by one forward run.

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
            if _is_real(x) and not isinstance(dx, SymbolicZero)
        ]

        def of(active):
            full = list(values)
            for i, x in zip(chosen, active, strict=True):
                full[i] = x
            found = run(full)
            return [x if _is_real(x) else None for x in found], found

        active, change = [values[i] for i in chosen], [changes[i] for i in chosen]
        if sum(x.size for x in active) > MOST:
            _, slopes, found = jax.jvp(of, (active,), (change,), has_aux=True)
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


def _is_real(x) -> bool:
    return jnp.issubdtype(x.dtype, jnp.inexact)


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
