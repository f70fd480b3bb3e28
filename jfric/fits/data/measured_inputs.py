"""Measured inputs as functions of time in a problem."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax.numpy as jnp

from jfric.errors import ProblemError, nearest
from jfric.system.functions import AbstractFunction, PiecewiseLinear, Steps
from jfric.system.naming import function_paths
from jfric.system.problem import Problem

HOLDS = ("zero", "linear")


def with_inputs(problem: Problem, t, u: Mapping[str, Any], hold: str = "zero") -> Problem:
    """``problem`` with the functions of time at the paths of ``u`` replaced by samples (m,) at the
    times ``t``, held (``"zero"``) or connected by straight lines (``"linear"``)."""
    if not u:
        return problem
    slots = function_paths(problem)
    # Samples behind the end are never reached; their times only need to increase.
    index = jnp.arange(t.shape[0])
    finite = jnp.isfinite(t)
    last = jnp.max(jnp.where(finite, t, -jnp.inf))
    times = jnp.where(finite, t, last + 1.0 + index)

    def replaced(values):
        if hold == "zero":
            return Steps(times[1:], values)
        return PiecewiseLinear(times, values)

    chosen = [slots[path] for path in u]

    def where(p):
        return [getattr(p.elements[s][n], f) for s, n, f in chosen]

    return eqx.tree_at(
        where,
        problem,
        [replaced(values) for values in u.values()],
        is_leaf=lambda x: isinstance(x, AbstractFunction),
    )


def check_inputs(problem: Problem, names: tuple[str, ...], hold: str) -> None:
    """Raise :class:`jfric.ProblemError` for an input that drives nothing in ``problem``."""
    if hold not in HOLDS:
        raise ProblemError(
            f"hold: found {hold!r}{nearest(hold, HOLDS)}, allowed are 'zero' and 'linear'"
        )
    slots = function_paths(problem)
    for name in names:
        if name not in slots:
            raise ProblemError(
                f"u.{name}: no function of time {name!r}{nearest(name, slots)}; there are "
                + ", ".join(slots)
            )
