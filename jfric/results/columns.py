"""A trajectory as a table: named columns and their units."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jfric.numerics.compilation import brief_options
from jfric.numerics.kept_programs import Kept
from jfric.numerics.tracing import is_traced
from jfric.system.assembly import assemble
from jfric.system.contacts import force_unit, normal_forces, unilateral_contacts
from jfric.system.control import command_places, command_units, driven
from jfric.system.forces import element_forces, force_keys, joint_reactions
from jfric.system.functions import Held, hold
from jfric.system.joint_equations import reaction_units
from jfric.system.state_function import chosen_motion, chosen_units
from jfric.system.states import state_units

if TYPE_CHECKING:
    from jfric.results.solution import Solution
    from jfric.system.problem import Problem


#: Forces are computed for a multiple of this number of states.
OUTPUTS = 512


class Column(NamedTuple):
    """A column of the table: its name and unit, and its ``place`` in a ``field`` of the solution or
    in what is computed from it."""

    name: str
    unit: str
    field: str
    place: int


def described(problem: Problem, solution: Solution) -> Iterator[Column]:
    """All columns behind that of the times, in their order."""
    for form, per in (("q", ""), ("v", "/s"), ("a", "/s^2")):
        for i, axis in enumerate(solution.axes):
            base = "rad" if problem.dofs.get(axis) == "rotation" else "m"
            yield Column(f"{form}.{axis}", base + per, form, i)
        for i, (name, unit) in enumerate(chosen_units(problem).items() if per else ()):
            yield Column(f"{form}.{name}", unit + per, f"chosen {form}", i)
    for name, i in normal_forces(problem).items():
        yield Column(f"lambda_n.{name}", force_unit(problem, name, "normal"), "lambda_n", i)
    n_contacts = np.asarray(solution.lambda_t).shape[-1]
    contacts, segments = solution.names[:n_contacts], solution.names[n_contacts:]
    groups = (
        ("lambda_t", "lambda_t", {name: force_unit(problem, name) for name in contacts}),
        ("force", "force", {name: force_unit(problem, name) for name in force_keys(problem)}),
        ("reaction", "reaction", reaction_units(problem)),
        ("z", "z", {name: state_units(problem)[name] for name in solution.states}),
        ("command", "commands", {x: command_units(problem)[x] for x in solution.command_names}),
        ("mode", "mode", dict.fromkeys(contacts, "")),
        ("segment", "segment", dict.fromkeys(segments, "")),
    )
    for word, field, units in groups:
        for i, (name, unit) in enumerate(units.items()):
            yield Column(f"{word}.{name}", unit, field, i)


def columns(
    problem: Problem, solution: Solution, rows: np.ndarray | slice = slice(None)
) -> dict[str, np.ndarray]:
    """The trajectory as named columns; modes and segments by their names.

    ``rows`` selects some of the requested times.
    """
    computed = {
        "chosen v": lambda: chosen_velocities_at_outputs(problem, solution, "v"),
        "chosen a": lambda: chosen_velocities_at_outputs(problem, solution, "a"),
        "force": lambda: forces_at_outputs(problem, solution),
        "reaction": lambda: reactions_at_outputs(problem, solution),
    }
    known: dict[str, np.ndarray] = {}
    table: dict[str, np.ndarray] = {"t": np.asarray(solution.ts)[rows]}
    first = {"mode": 0, "segment": np.asarray(solution.mode).shape[-1]}
    for name, _, field, i in described(problem, solution):
        if field not in known:
            found = computed[field]() if field in computed else getattr(solution, field)
            known[field] = np.asarray(found)[rows]
        values = known[field][:, i]
        if field in first:
            labels = [solution.mode_label(first[field] + i, code) for code in values]
            values = np.array(labels, dtype=object)
        table[name] = values
    return table


def column_units(problem: Problem, solution: Solution) -> dict[str, str]:
    """Unit of every column of the trajectory table, in its order."""
    return {"t": "s"} | {column.name: column.unit for column in described(problem, solution)}


def chosen_velocities_at_outputs(problem: Problem, solution: Solution, form: str) -> np.ndarray:
    """Velocities (m, k) that the user has defined (``form`` v), or their rates (a), at outputs."""
    motion = solution.ts, solution.q, solution.v
    motion = motion if form == "v" else (*motion, solution.a)
    found = [
        jax.vmap(functools.partial(chosen_motion, problem, name))(*motion)
        for name in problem.section("velocity")
    ]
    return np.stack(found, axis=1)


def spring_forces(
    problem: Problem, solution: Solution, rows: np.ndarray | slice = slice(None)
) -> dict[str, np.ndarray]:
    """Forces of springs, dampers and stops along their directions [N, N m], by their names.

    The values are those at the outputs of the ``solution`` of ``problem``, or at some ``rows`` of
    them: arrays (m,), positive where the element pushes the system along its direction::

        >>> solution = jfric.simulate(problem, ts=jnp.linspace(0.0, 4.0, 5))
        >>> round(float(jfric.spring_forces(problem, solution)["spring"][-1]), 6)
        -1600.0
    """
    names = list(force_keys(problem))
    forces = np.asarray(forces_at_outputs(problem, solution))[rows]
    return {name: forces[:, i] for i, name in enumerate(names)}


def reactions_at_outputs(problem: Problem, solution: Solution) -> Float[Array, "m k"]:
    """Reactions of joints, in the order of :func:`jfric.system.assembly.reaction_units`."""
    s = solution
    commands = s.commands if s.command_names else jnp.zeros((s.ts.shape[0], 0))
    states = s.ts, s.q, s.v, s.lambda_t, s.lambda_n, s.segment, s.z
    return _reactions_along(problem, states, commands)


@functools.partial(Kept, options=brief_options)
def _reactions_along(problem: Problem, states, commands):
    paths = list(command_places(problem).values())
    open_loop = driven(problem)
    mechanics = assemble(open_loop)

    def at(state, command):
        held = {path: Held(path, x) for path, x in zip(paths, command, strict=True)}
        return joint_reactions(*hold((open_loop, mechanics), held), *state)

    return jax.vmap(at)(states, commands)


def forces_at_outputs(problem: Problem, solution: Solution) -> Float[Array | np.ndarray, "m k"]:
    """Forces of elements, in the order of :func:`jfric.system.forces.force_keys`."""
    if not force_keys(problem):
        return jnp.zeros((solution.ts.shape[0], 0))
    s, count = solution, solution.ts.shape[0]
    states = s.ts, s.q, s.v, s.segment, s.z
    if is_traced((problem, states)) or count == 0:
        return _forces_along(problem, states)
    # The last state again and again: another number of outputs is no other program.
    at = np.minimum(np.arange(-(-count // OUTPUTS) * OUTPUTS), count - 1)
    repeated = jax.tree.map(lambda x: np.asarray(x)[at], states)
    return np.asarray(_forces_along(problem, repeated))[:count]


@functools.partial(Kept, options=brief_options)
def _forces_along(problem: Problem, states):
    keys, mechanics = list(force_keys(problem).values()), assemble(problem)

    def at(t, q, v, segment, z):
        return element_forces(problem, mechanics, keys, t, q, v, segment, states=z)

    return jax.vmap(at)(*states)


def has_friction(problem: Problem) -> dict[str, bool]:
    """Whether each contact (by the name used in :class:`Solution`) carries a friction force."""
    result = dict.fromkeys(problem.friction_rows(), True)
    return result | {k: c.law is not None for k, c in unilateral_contacts(problem).items()}
