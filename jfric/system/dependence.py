"""Dependence of a function on time, positions and velocities, by the operations that give it."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax.interpreters.partial_eval import dce_jaxpr

from jfric.system.state_function import Rate


def linear_displacement(g: Callable, n: int) -> bool:
    """Whether ``g`` is a displacement linear in ``n`` positions and free of time, by structure."""
    return not isinstance(g, Rate) and is_linear(like(n, 1), g)


def is_straight(g: Callable, n: int) -> bool:
    """Whether an equation of a joint on ``n`` coordinates has directions and rates that never
    change, by structure: ``a . q + b t + c``, or ``a . v + c``."""
    if not isinstance(g, Rate):
        return is_affine(like(n, 1), g)
    shapes = like(n, 2)
    return is_affine(shapes, g) and not depends(shapes, g, 0, 1)


def linear_in_velocities(function: Callable, n: int) -> bool:
    """Whether a function ``(t, q, v)`` is linear in the ``n`` velocities, by structure."""
    return not depends(like(n, 2), jax.jacfwd(function, argnums=2), 2)


def depends_on_time(g: Callable, n: int) -> bool:
    """Whether a function of time and ``n`` positions depends on time, by structure."""
    return depends(like(n, 1), g, 0)


def like(n: int, rows: int):
    """Shapes of time and of ``rows`` vectors of ``n`` positions or velocities."""
    dtype = jnp.result_type(float)
    return jax.ShapeDtypeStruct((), dtype), *[jax.ShapeDtypeStruct((n,), dtype)] * rows


def depends(like, function: Callable, *arguments: int) -> bool:
    """Whether the value depends on any of the ``arguments``, by the operations that give it."""
    # Parameters may be tracers of an outer trace; here they are constants.
    jaxpr = jax.make_jaxpr(function)(*like).jaxpr
    used = dce_jaxpr(jaxpr, [True] * len(jaxpr.outvars))[1]
    return any(used[i] for i in arguments)


#: Operations whose result is constant in pieces: tangents do not show them.
_STEPS = {
    *("floor", "ceil", "round", "sign", "rem", "nextafter", "convert_element_type"),
    *("gt", "lt", "ge", "le", "eq", "ne", "argmax", "argmin", "stop_gradient"),
}


def _has_steps(jaxpr) -> bool:
    for equation in jaxpr.eqns:
        if equation.primitive.name in _STEPS:
            kinds = [x.aval.dtype.kind for x in (*equation.invars, *equation.outvars)]
            if equation.primitive.name != "convert_element_type" or set(kinds) != {"f"}:
                return True
        for value in equation.params.values():
            inner = getattr(value, "jaxpr", value)
            if hasattr(inner, "eqns") and _has_steps(inner):
                return True
    return False


def is_affine(like, function: Callable) -> bool:
    """Whether the tangents by all arguments are constant."""
    if _has_steps(jax.make_jaxpr(function)(*like).jaxpr):
        return False
    count = len(like)

    def tangent(*x):
        return jax.jvp(function, x[:count], x[count:])[1]

    return not depends((*like, *like), tangent, *range(count))


def is_linear(like, function: Callable) -> bool:
    """Whether the function does not depend on its first argument, time, and its tangents by the
    other arguments are constant."""
    if _has_steps(jax.make_jaxpr(function)(*like).jaxpr):
        return False
    count = len(like)

    def tangent(*x):
        at, along = x[:count], x[count:]
        zero = jnp.zeros_like(at[0])
        return jax.jvp(function, at, (zero, *along))[1]

    everywhere = not depends((*like, *like[1:]), tangent, *range(count))
    return everywhere and not depends(like, function, 0)
