"""Velocities that the user defines, along a motion, and their units."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jfric.system.description import AbstractProblem
from jfric.system.state_function import bound_to


def chosen_units(problem: AbstractProblem) -> dict[str, str]:
    """Units of the velocities that the user defines, each without its factor ``1/s``."""
    return {
        name: "rad" if element.kind == "rotation" else "m"
        for name, element in problem.section("velocity").items()
    }


def chosen_motion(problem: AbstractProblem, name: str, t, q, v, a=None) -> Float[Array, ""]:
    """The velocity ``name`` that the user defines, for positions ``q`` (n,) and velocities ``v``
    (n,) of the degrees of freedom; with the accelerations ``a`` (n,) its rate."""
    problem = problem.resolved()
    function = bound_to(problem, f"v.{name}")
    if a is None:
        return function(t, q, v)
    along = jnp.ones_like(t), v, a
    return jax.jvp(function, (t, q, v), along)[1]
