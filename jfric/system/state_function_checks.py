"""Checks of functions of the state."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jfric.errors import ProblemError, first_line, nearest, require_known
from jfric.system.description import AbstractProblem, element_label
from jfric.system.elements import Lagrangian
from jfric.system.formula import Formula, read_formula, require_formula
from jfric.system.start import started
from jfric.system.state_function import ChosenVelocities, chosen_velocities
from jfric.system.units import UnitError, dimensions_of, named


def require_state_function(
    problem: AbstractProblem,
    where: str,
    what: Any,
    units: tuple[str, ...],
    example: str,
    *,
    velocities: bool = False,
    displaces: bool = False,
    known: Mapping[str, Any] | None = None,
    states: Mapping[str, str] | None = None,
    contacts: Mapping[str, str] | None = None,
) -> None:
    """Raise :class:`jfric.ProblemError`, which starts with ``where``, unless ``what`` is a function
    that the problem can have.

    ``units``: those that it may have; ``displaces``: whether it must name a degree of freedom;
    ``known``: dimensions of shared parameters that have one; ``states``: units of states of
    elements that it may name; ``contacts``: units of frictions, normal forces and sliding
    velocities.
    """
    arguments = "(t, q, v, parameters)" if velocities else "(t, q, parameters)"
    arguments = arguments if states is None else "(t, q, v, z, parameters)"
    if isinstance(what, str):
        others = {f"z.{name}": unit for name, unit in (states or {}).items()} | dict(contacts or {})
        formula = _read(problem, where, what, velocities, others)
        named_dofs = {name.removeprefix("v.") for name in formula.names.values()}
        movable = {*problem.dofs, *problem.section("velocity")}
        if displaces and not named_dofs & movable:
            raise ProblemError(
                f"{where}: {what!r} names no degree of freedom; declared are "
                f"{', '.join(problem.dofs)}"
            )
        # Bare numbers may stand for anything where nothing else carries a unit.
        used = [name.removeprefix("$") for name in (*formula.names.values(), *formula.references)]
        if not formula.quantities and not any(name in (known or {}) for name in used):
            return
        try:
            units_of = {name: dimensions_of(unit) for name, unit in others.items()}
            found = formula.measured(
                lambda n: _dimension(problem, n, {**(known or {}), **units_of})
            )
        except UnitError as error:
            raise ProblemError(f"{where}: {what!r} {error}") from None
        if found is not None and found not in [dimensions_of(unit) for unit in units]:
            allowed = " or ".join(units)
            raise ProblemError(f"{where}: found {what!r}{named(found)}, expected one in {allowed}")
    elif callable(what):
        _call(problem, where, what, velocities, arguments, states, contacts)
    else:
        raise ProblemError(
            f"{where}: found {what!r}, expected a text such as {example!r} or a function "
            f"of {arguments}"
        )


def _read(
    problem: AbstractProblem, where: str, text: str, velocities: bool, others: Mapping[str, str]
) -> Formula:
    formula = require_formula(where, text, problem.parameters)
    chosen = problem.section("velocity")
    rates = [f"v.{name}" for name in (*problem.dofs, *chosen)] if velocities else []
    rates += list(others)
    allowed = list(dict.fromkeys([*problem.dofs, *rates, "t", *problem.parameters]))
    for name in formula.names.values():
        if name not in allowed:
            raise ProblemError(
                f"{where}: {text!r} names {name!r}, which is not known"
                f"{nearest(name, allowed)}; there are {', '.join(allowed)}"
            )
    return formula


def _dimension(problem: AbstractProblem, name: str, known: Mapping[str, Any]) -> Any:
    """Dimensionality of the quantity ``name``; None where it is not known."""
    form, _, axis = name.rpartition(".")
    if name not in problem.dofs and form != "v":
        if form:
            return known.get(name)
        return dimensions_of("s") if name == "t" else known.get(name.removeprefix("$"))
    chosen = problem.section("velocity")
    of_kind = problem.dofs.get(axis) or chosen[axis].kind
    length = "m" if of_kind == "translation" else "rad"
    return dimensions_of(f"{length}/s" if form else length)


def _call(
    problem: AbstractProblem,
    where: str,
    what: Callable,
    velocities: bool,
    arguments: str,
    states: Mapping[str, str] | None,
    contacts: Mapping[str, str] | None,
) -> None:
    number = jax.ShapeDtypeStruct((), jnp.result_type(float))
    row = jax.ShapeDtypeStruct((len(problem.dofs),), number.dtype)
    like = dict.fromkeys(problem.parameters, number)
    try:
        others = [row] * velocities + ([] if states is None else [dict.fromkeys(states, number)])
        last = []
        if contacts is not None and len(inspect.signature(what).parameters) == 6:
            last = [dict.fromkeys(contacts, number)]
        found = jax.eval_shape(what, number, row, *others, like, *last)
    except (TypeError, KeyError, IndexError, AttributeError, ValueError) as error:
        reason = f"{type(error).__name__}: {first_line(error)}"
        raise ProblemError(f"{where}: the function fails for {arguments} ({reason})") from None
    shape = getattr(found, "shape", None)
    if shape != ():
        what_came = f"shape {shape}" if shape is not None else type(found).__name__
        raise ProblemError(f"{where}: the function gives {what_came}, expected one number")


#: Part of the largest singular value, of columns of length one, that counts as zero.
DEPENDENT = 1e-9
#: Units of an entry, by the kinds of the degree of freedom and of the velocity.
_UNITS = {
    ("translation", "translation"): "",
    ("translation", "rotation"): "m/rad",
    ("rotation", "translation"): "rad/m",
    ("rotation", "rotation"): "",
}


def require_velocities(problem: AbstractProblem, known: Mapping[str, Any] | None = None) -> None:
    """Raise :class:`ProblemError` for velocities that move nothing that exists, or are more than
    the degrees of freedom. ``known``: dimensions of shared parameters that have one."""
    for name, element in problem.section("velocity").items():
        where = element_label("velocity", name)
        if name in problem.dofs:
            raise ProblemError(f"{where}: {name!r} is a degree of freedom as well; rename it")
        if not isinstance(element.moves, tuple) or not element.moves:
            raise ProblemError(
                f"{where}.moves: found {element.moves!r}, expected rates of degrees of freedom by "
                "name, such as {'x': 'cos(theta)', 'y': 'sin(theta)'}"
            )
        for dof, what in element.moves:
            at = f"{where}.moves.{dof}"
            require_known(at, "degree of freedom", dof, problem.dofs, "declared are")
            units = (_UNITS[problem.dofs[dof], element.kind],)
            require_state_function(problem, at, what, units, "cos(theta)", known=known)
    for own in chosen_velocities(problem):
        if len(own.names) > len(own.dofs):
            raise ProblemError(
                f"velocity: found {', '.join(own.names)}, {len(own.names)} velocities that move "
                f"{', '.join(own.dofs)}; there cannot be more than degrees of freedom"
            )


def require_kinetic(problem: AbstractProblem, where: str, element: Lagrangian) -> None:
    """Raise :class:`ProblemError` for a kinetic energy in velocities that are fewer than the
    degrees of freedom they move: it lacks the held motion, on which the equations depend."""
    if not isinstance(element.kinetic, str):
        return
    named = set(read_formula(element.kinetic).names.values())
    for own in chosen_velocities(problem):
        found = [name for name in own.names if f"v.{name}" in named]
        if own.holds and found:
            raise ProblemError(
                f"{where}.kinetic: found 'v.{found[0]}', which with {len(own.names)} of "
                f"{len(own.dofs)} velocities does not tell how energy depends on the motion that "
                f"is held; write it in {', '.join(f'v.{dof}' for dof in own.dofs)}"
            )


def require_independent(problem: AbstractProblem) -> None:
    """Raise :class:`ProblemError` for velocities that are not independent at the start, or move
    nothing there. All numbers are known."""
    if not problem.section("velocity"):
        return
    problem = started(problem)
    t, q, _ = problem.start()
    for own in chosen_velocities(problem):
        _independent(own, np.asarray(own.matrix(t, jnp.asarray(q))))


def _independent(own: ChosenVelocities, S: np.ndarray) -> None:
    for name, column in zip(own.names, S.T, strict=True):
        where = element_label("velocity", name)
        if not np.all(np.isfinite(column)):
            raise ProblemError(
                f"{where}.moves: is not finite at the start, found {column.tolist()}"
            )
        if not np.any(column):
            raise ProblemError(f"{where}.moves: moves nothing at the start")
    unit = S / np.linalg.norm(S, axis=0)
    if np.linalg.matrix_rank(unit, tol=DEPENDENT) < len(own.names):
        raise ProblemError(
            f"velocity: {', '.join(own.names)} are not independent at the start, where one of them "
            "moves what the others do; leave one out"
        )
