"""Scalar functions of time, positions and velocities: a text, or a function in Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.interpreters.partial_eval import dce_jaxpr
from jaxtyping import Array, Float

from jfric.numerics.linear_algebra import eliminate, inverse, matmul, matvec
from jfric.system.description import AbstractProblem
from jfric.system.expression import evaluated
from jfric.system.formula import read_formula


class StateFunction(eqx.Module):
    """A function in Python for given shared parameters; call it with ``(t, q)`` or ``(t, q, v)``.

    The function takes the degrees of freedom only, without the other coordinates.
    """

    what: Callable = eqx.field(static=True)
    n: int = eqx.field(static=True)
    parameters: dict[str, Any]

    def __call__(self, t, q, *v):
        q, *v = (x[: self.n] for x in (q, *v))
        return jnp.asarray(self.what(t, q, *v, self.parameters), q.dtype)


class TextFunction(eqx.Module):
    """A function given by a text, called like a :class:`StateFunction`."""

    #: See :class:`jfric.system.expression.Folded`; names are those of quantities of the motion.
    text: str = eqx.field(static=True)
    names: tuple[str, ...] = eqx.field(static=True)
    parts: tuple[Any, ...]
    dofs: tuple[str, ...] = eqx.field(static=True)
    #: Velocities that the user defines and the text names.
    chosen: tuple[ChosenVelocities, ...] = ()

    @property
    def n(self) -> int:
        """Number of degrees of freedom."""
        return len(self.dofs)

    def __call__(self, t, q, *v):
        q, *v = (x[: self.n] for x in (q, *v))
        known = {"t": t} | dict(zip(self.dofs, q, strict=True))
        if v:
            known |= {f"v.{dof}": x for dof, x in zip(self.dofs, v[0], strict=True)}
            for own in self.chosen:
                u = own.of(t, q, v[0])
                known |= {f"v.{name}": x for name, x in zip(own.names, u, strict=True)}
        return self.value([known[name] for name in self.names], q.dtype)

    def value(self, quantities, dtype):
        """Value for these ``quantities``, one for each of :attr:`names`."""
        parts = [x if isinstance(x, float) else jnp.asarray(x, dtype) for x in self.parts]
        return jnp.asarray(evaluated(self.text, [*quantities, *parts]), dtype)


def state_function(
    what: str | Callable, dofs: tuple[str, ...], parameters: dict[str, Any], chosen=()
) -> StateFunction | TextFunction:
    """The function ``what`` of the degrees of freedom ``dofs``, with numbers for the shared
    ``parameters``."""
    if not isinstance(what, str):
        return StateFunction(what, len(dofs), parameters)
    found = read_formula(what).folded(parameters, ("t", *dofs))
    return TextFunction(*found, dofs, chosen)


class ChosenVelocities(eqx.Module):
    """Velocities ``u`` (k,) that move the same degrees of freedom (m,): ``dq/dt = S(t, q) u``."""

    #: Entries of ``S`` that are given, and the row and column of each.
    functions: tuple[Callable, ...]
    places: tuple[tuple[int, int], ...] = eqx.field(static=True)
    names: tuple[str, ...] = eqx.field(static=True)
    #: The degrees of freedom: indices among all, and names.
    rows: tuple[int, ...] = eqx.field(static=True)
    dofs: tuple[str, ...] = eqx.field(static=True)

    @property
    def holds(self) -> bool:
        """Whether there are fewer velocities than degrees of freedom that they move."""
        return len(self.names) < len(self.dofs)

    def matrix(self, t, q) -> Float[Array, "m k"]:
        """The matrix ``S``."""
        found = jnp.zeros((len(self.dofs), len(self.names)), q.dtype)
        rows, columns = np.asarray(self.places).T
        return found.at[rows, columns].set(jnp.stack([f(t, q) for f in self.functions]))

    def of(self, t, q, v) -> Float[Array, " k"]:
        """Velocities ``u`` where the rates of all degrees of freedom are ``v`` (n,)."""
        S = self.matrix(t, q)
        if not self.holds:
            return matvec(inverse(S), v[np.asarray(self.rows)])
        gram = eliminate(matmul(S.T, S), 0.0).inverse
        return matvec(gram, matvec(S.T, v[np.asarray(self.rows)]))

    def off(self, t, q, v) -> Float[Array, " m"]:
        """Part of the rates ``v`` of the moved degrees of freedom that no ``u`` gives."""
        left = matvec(self.matrix(t, q), self.of(t, q, v))
        return v[np.asarray(self.rows)] - left


class Held(eqx.Module):
    """One component of :meth:`ChosenVelocities.off`, zero in every motion."""

    of: ChosenVelocities
    row: int = eqx.field(static=True)

    def __call__(self, t, q, v):
        return self.of.off(t, q, v)[self.row]


class Rate(eqx.Module):
    """A velocity ``(t, q, v)`` linear in ``v`` that need not be the rate of any displacement."""

    function: Callable

    def __call__(self, t, q, v):
        return self.function(t, q, v)


def is_rate(what: str | Callable) -> bool:
    """Whether a text names velocities."""
    if not isinstance(what, str):
        return False
    try:
        return any(name.startswith("v.") for name in read_formula(what).names.values())
    except ValueError:
        return False


def bound_to(problem: AbstractProblem, what: str | Callable) -> StateFunction | TextFunction:
    """The function ``what`` with the shared parameters of a resolved ``problem``."""
    own: tuple[ChosenVelocities, ...] = ()
    if problem.section("velocity") and isinstance(what, str):
        used = set(read_formula(what).names.values())
        chosen = chosen_velocities(problem)
        own = tuple(x for x in chosen if used & {f"v.{name}" for name in x.names})
    return state_function(what, tuple(problem.dofs), dict(problem.parameters), own)


def chosen_velocities(problem: AbstractProblem) -> list[ChosenVelocities]:
    """Velocities that the user defines in a resolved ``problem``, in groups that share degrees of
    freedom, directly or through others of the group."""
    groups: list[tuple[set[str], list[str]]] = []
    for name, element in problem.section("velocity").items():
        moved, names = {dof for dof, _ in element.moves}, []
        for own in [g for g in groups if g[0] & moved]:
            groups.remove(own)
            moved, names = moved | own[0], names + own[1]
        groups.append((moved, [*names, name]))
    found, known = [], tuple(problem.dofs)
    for moved, names in groups:
        dofs = tuple(dof for dof in known if dof in moved)
        entries = [
            ((dofs.index(dof), k), state_function(what, known, dict(problem.parameters)))
            for k, name in enumerate(names)
            for dof, what in problem.section("velocity")[name].moves
        ]
        places, functions = zip(*entries, strict=True)
        rows = tuple(map(known.index, dofs))
        found.append(ChosenVelocities(functions, places, tuple(names), rows, dofs))
    return found


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
