"""Explicit Runge-Kutta steps: diffrax's tableaus and dense outputs as tables of numbers.

A dense output is a combination of the stages' slopes, and a polynomial.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import eval_context
from jaxtyping import Array, Float
from numpy.polynomial import Chebyshev, Polynomial, chebyshev

from jfric.numerics.polynomials import nodes_and_fit

#: Explicit methods and their names in diffrax.
METHODS = {"dopri8": "Dopri8", "dopri5": "Dopri5", "tsit5": "Tsit5"}
#: Entries of the tables below this value are rounding errors.
NEGLIGIBLE = 1e-10


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
    """Tables of the method ``name`` of :data:`METHODS`, from diffrax."""
    import diffrax  # slow to import

    method: diffrax.AbstractERK = getattr(diffrax, METHODS[name])()
    tableau: Any = method.tableau
    count = tableau.num_stages
    points = 0.5 * (1.0 - np.cos(np.pi * np.arange(count + 1) / count))
    with eval_context(), jax.enable_x64(True):
        # One component for each stage, with slope one at this stage.
        ends, slopes = jnp.asarray(tableau.b_sol), jnp.eye(count)
        zero, one = jnp.asarray(0.0), jnp.asarray(1.0)
        path = method.interpolation_cls(t0=zero, t1=one, y0=jnp.zeros(count), y1=ends, k=slopes)
        values = np.asarray(jax.vmap(path.evaluate)(jnp.asarray(points)))
    stages = np.zeros((count, count))
    for i, row in enumerate(tableau.a_lower, 1):
        stages[i, : len(row)] = row
    return Tables(
        nodes=np.concatenate([[0.0], tableau.c]),
        stages=stages,
        end=np.asarray(tableau.b_sol),
        error=np.asarray(tableau.b_error),
        dense=_coefficients(points, values)[1:],
        order=int(method.order(None) or 1),
    )


def _coefficients(points: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Coefficients of the polynomials of lowest degree through ``values``, constant term first."""
    for degree in range(1, len(points)):
        series = chebyshev.chebfit(2.0 * points - 1.0, values, degree)
        missed = chebyshev.chebval(2.0 * points - 1.0, series).T - values
        if np.abs(missed).max() < NEGLIGIBLE * np.abs(values).max():
            break
    powers = [Chebyshev(c, [0.0, 1.0]).convert(kind=Polynomial).coef for c in series.T]
    found = np.array([np.pad(p, (0, degree + 1 - len(p))) for p in powers]).T
    return np.where(np.abs(found) < NEGLIGIBLE * np.abs(found).max(), 0.0, found)


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
