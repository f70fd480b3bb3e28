"""Explicit Runge-Kutta steps of a few degrees of freedom, their stages written out.

diffrax's tableaus and dense outputs. A dense output is a combination of the stages' slopes, and a
polynomial: its coefficients are the tableau's last table.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.polynomial import Chebyshev, Polynomial, chebyshev

from jfric.numerics.loops import once
from jfric.solvers.event_driven.runge_kutta_flow import METHODS
from jfric.solvers.event_driven.scalar_rows import total

#: What is below this in the tables is a rounding error.
NEGLIGIBLE = 1e-10


class Tables(NamedTuple):
    """Butcher tableau of a method of an ``order``; rows are over the stages."""

    nodes: list[float]
    stages: list[list[float]]
    end: list[float]
    error: list[float]
    #: Coefficients of the dense output in ``s``, from ``s^1`` on.
    dense: list[list[float]]
    order: int


@functools.cache
def tables(name: str) -> Tables:
    """Of diffrax's solver of this name."""
    method = METHODS[name]()
    tableau: Any = method.tableau
    count = tableau.num_stages
    points = 0.5 * (1.0 - np.cos(np.pi * np.arange(count + 1) / count))
    with jax.ensure_compile_time_eval(), jax.enable_x64(True):
        # One component for each stage, whose slope is one there.
        ends, slopes = jnp.asarray(tableau.b_sol), jnp.eye(count)
        zero, one = jnp.asarray(0.0), jnp.asarray(1.0)
        path = method.interpolation_cls(t0=zero, t1=one, y0=jnp.zeros(count), y1=ends, k=slopes)
        values = np.asarray(jax.vmap(path.evaluate)(jnp.asarray(points)))
    return Tables(
        nodes=[0.0, *tableau.c.tolist()],
        stages=[[], *(row.tolist() for row in tableau.a_lower)],
        end=tableau.b_sol.tolist(),
        error=tableau.b_error.tolist(),
        dense=_coefficients(points, values)[1:].tolist(),
        order=int(method.order(None) or 1),
    )


def _coefficients(points: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Of the polynomials of lowest degree through the ``values``, constant term first."""
    for degree in range(1, len(points)):
        series = chebyshev.chebfit(2.0 * points - 1.0, values, degree)
        missed = chebyshev.chebval(2.0 * points - 1.0, series).T - values
        if np.abs(missed).max() < NEGLIGIBLE * np.abs(values).max():
            break
    powers = [Chebyshev(c, [0.0, 1.0]).convert(kind=Polynomial).coef for c in series.T]
    found = np.array([np.pad(p, (0, degree + 1 - len(p))) for p in powers]).T
    return np.where(np.abs(found) < NEGLIGIBLE * np.abs(found).max(), 0.0, found)


class Stages(NamedTuple):
    """Motion at the end of a step, its error, and coefficients of the motion in ``s``."""

    q: list
    v: list
    q_error: list
    v_error: list
    q_dense: list[list]
    v_dense: list[list]
    #: Largest accelerations of the stages.
    fastest: list


def stages(method: Tables, acceleration: Callable, q: list, v: list, h, on) -> Stages:
    """A step of length ``h``; ``acceleration(s, q, v)`` at the time ``s`` after its start."""
    n = range(len(q))
    rates: list[list] = [[] for _ in n]
    slopes: list[list] = [[] for _ in n]
    for node, row in zip(method.nodes, method.stages, strict=True):
        q_here = [q[i] + h * _weighted(row, rates[i]) for i in n] if row else q
        v_here = [v[i] + h * _weighted(row, slopes[i]) for i in n] if row else v
        a = acceleration(node * h, q_here, v_here)
        v_here, a = once((v_here, a), on)
        for i in n:
            rates[i].append(v_here[i])
            slopes[i].append(a[i])

    def ended(start, slopes):
        return [start[i] + h * _weighted(method.end, slopes[i]) for i in n]

    def wrong(slopes):
        return [h * _weighted(method.error, slopes[i]) for i in n]

    def dense(start, slopes, end):
        found = [[start[i], *(h * _weighted(row, slopes[i]) for row in method.dense)] for i in n]
        # The last value to rounding, as the sums lose digits.
        return [[*p[:-1], end[i] - total(p[:-1])] for i, p in enumerate(found)]

    q_end, v_end = ended(q, rates), ended(v, slopes)
    q_error, v_error = wrong(rates), wrong(slopes)
    fastest = [functools.reduce(jnp.maximum, (jnp.abs(a) for a in slopes[i])) for i in n]
    return Stages(
        q_end,
        v_end,
        q_error,
        v_error,
        dense(q, rates, q_end),
        dense(v, slopes, v_end),
        fastest,
    )


def _weighted(weights: list[float], values: list):
    return total(w * x for w, x in zip(weights, values, strict=True) if w != 0.0)
