"""Explicit Runge-Kutta steps: diffrax's tableaus and dense outputs as tables of numbers.

A dense output is a combination of the stages' slopes, and a polynomial. The numbers are kept in a
file, as importing diffrax and evaluating its dense outputs take a second
(``tests/references/runge_kutta.py`` writes the file).
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from importlib.resources import files
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jfric.numerics.polynomials import nodes_and_fit

#: Explicit methods.
METHODS = ("dopri8", "dopri5", "tsit5")


class Tables(NamedTuple):
    """Butcher tableau of a method of an ``order``; columns are the stages (k)."""

    nodes: np.ndarray
    #: (k, k), zero from the diagonal on.
    stages: np.ndarray
    end: np.ndarray
    error: np.ndarray
    #: Coefficients (d, k) of the dense output in ``s``, from ``s^1`` on.
    dense: np.ndarray
    order: int


@functools.cache
def tables(name: str) -> Tables:
    """Tables of the method ``name`` of :data:`METHODS`."""
    kept = json.loads(files("jfric.numerics").joinpath("runge_kutta.json").read_text("utf-8"))[name]
    order = kept.pop("order")
    return Tables(**{k: np.asarray(x, float) for k, x in kept.items()}, order=order)


@functools.cache
def _dense(name: str, dtype: str) -> np.ndarray:
    """Coefficients (p, k) of the dense output, as many as the precision allows
    (:data:`jfric.numerics.polynomials.DEGREE`)."""
    nodes, fit = (x.astype(float) for x in nodes_and_fit(dtype))
    table = tables(name).dense
    table = np.concatenate([np.zeros_like(table[:1]), table])
    if len(table) > len(nodes):
        return fit @ np.vander(nodes, len(table), increasing=True) @ table
    return np.pad(table, ((0, len(nodes) - len(table)), (0, 0)))


class Stages(NamedTuple):
    """Step of ``dy/ds = f(s, y)``."""

    end: Float[Array, " y"]
    #: Estimate of the error at the end.
    error: Float[Array, " y"]
    #: Coefficients of the motion over the fraction of the step, constant term first.
    dense: Float[Array, "p y"]
    #: Slopes from which the end and its error are computed.
    slopes: Float[Array, "k y"]

    def split(self, count: int) -> tuple[Stages, Stages]:
        """The first ``count`` components, and the others."""
        first, others = (
            Stages(*(x[..., part] for x in self)) for part in (slice(count), slice(count, None))
        )
        return first, others


def stages(name: str, field: Callable, y: Float[Array, " y"], h) -> Stages:
    """Step of length ``h`` by the method with this name; ``field(s, y)``: rates at the time ``s``
    after its start."""
    method, dtype = tables(name), y.dtype
    rows, nodes = jnp.asarray(method.stages, dtype), jnp.asarray(method.nodes, dtype)

    def weighted(row, slopes):
        return jnp.sum(row[..., None] * slopes, axis=-2)

    def one(i, slopes):
        return slopes.at[i].set(field(nodes[i] * h, y + h * weighted(rows[i], slopes)))

    # A loop: if unrolled, it would take long to compile (the lowering unrolls it).
    slopes = jnp.zeros((len(nodes), y.shape[0]), dtype)
    slopes = jax.lax.fori_loop(0, len(nodes), one, slopes)
    end = y + h * weighted(jnp.asarray(method.end, dtype), slopes)
    table = jnp.asarray(_dense(name, dtype.name), dtype)
    dense = (h * (table @ slopes)).at[0].set(y)
    return Stages(
        end=end,
        error=h * weighted(jnp.asarray(method.error, dtype), slopes),
        # The end is met to rounding, as the sums lose digits.
        dense=dense.at[_last(name, dtype.name)].add(end - jnp.sum(dense, axis=0)),
        slopes=slopes[np.flatnonzero(np.abs(method.end) + np.abs(method.error))],
    )


def _last(name: str, dtype: str) -> int:
    """Number of the last coefficient of the dense output that is not zero."""
    return int(np.flatnonzero(np.abs(_dense(name, dtype)).max(axis=1))[-1])
