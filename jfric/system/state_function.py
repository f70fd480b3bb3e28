"""Scalar functions of time, positions and velocities: a text, or a function in Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
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
