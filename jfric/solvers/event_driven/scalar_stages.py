"""Explicit Runge-Kutta steps of a few degrees of freedom, their stages written out.

diffrax's tableaus and dense outputs. A dense output is a combination of the stages' slopes, and a
polynomial: its coefficients are the tableau's last table.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax.numpy as jnp

from jfric.numerics.loops import once
from jfric.solvers.event_driven.runge_kutta_stages import Tables, tables
from jfric.solvers.event_driven.scalar_rows import total

__all__ = ["Stages", "stages", "tables"]


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
    for k, node in enumerate(method.nodes.tolist()):
        row = method.stages[k, :k].tolist()
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


def _weighted(weights: Sequence[float], values: list):
    return total(float(w) * x for w, x in zip(weights, values, strict=True) if w != 0.0)
