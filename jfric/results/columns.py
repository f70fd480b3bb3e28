"""A trajectory as a table: named columns and their units."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jfric.numerics.compilation import brief_options
from jfric.numerics.kept_programs import Kept
from jfric.system.assembly import assemble
from jfric.system.chosen_motion import chosen_motion, chosen_units
from jfric.system.control import command_places, command_units, driven
from jfric.system.forces import element_forces, force_keys, joint_reactions
from jfric.system.held import Held, hold
from jfric.system.joint_contacts import force_unit, normal_forces, unilateral_contacts
from jfric.system.joint_equations import reaction_units
from jfric.system.states import state_units

if TYPE_CHECKING:
    from jfric.results.solution import Solution
    from jfric.system.problem import Problem


def columns(
    problem: Problem, solution: Solution, rows: np.ndarray | slice = slice(None)
) -> dict[str, np.ndarray]:
    """The trajectory as named columns; modes and segments by their names.

    ``rows`` selects some of the requested times.
    """
    n_contacts = np.asarray(solution.mode).shape[-1]
    contacts, segments = solution.names[:n_contacts], solution.names[n_contacts:]
    table: dict[str, np.ndarray] = {"t": np.asarray(solution.ts)[rows]}
    for prefix in ("q", "v", "a"):
        values = np.asarray(getattr(solution, prefix))[rows]
        table |= {f"{prefix}.{axis}": values[:, i] for i, axis in enumerate(solution.axes)}
        if prefix != "q":
            table |= chosen_velocities_at_outputs(problem, solution, prefix, rows)
    normal = np.asarray(solution.lambda_n)[rows]
    table |= {f"lambda_n.{name}": normal[:, i] for name, i in normal_forces(problem).items()}
    tangential = np.asarray(solution.lambda_t)[rows]
    table |= {f"lambda_t.{name}": tangential[:, i] for i, name in enumerate(contacts)}
    table |= {f"force.{k}": x for k, x in spring_forces(problem, solution, rows).items()}
    table |= _reactions(problem, solution, rows)
    states = np.asarray(solution.z)[rows]
    table |= {f"z.{name}": states[:, i] for i, name in enumerate(solution.states)}
    if solution.command_names:
        commands = np.asarray(solution.commands)[rows]
        table |= {f"command.{x}": commands[:, i] for i, x in enumerate(solution.command_names)}
    mode = np.asarray(solution.mode)[rows]
    segment = np.asarray(solution.segment)[rows]
    for i, name in enumerate(contacts):
        table[f"mode.{name}"] = _labels(solution, i, mode[:, i])
    for i, name in enumerate(segments):
        table[f"segment.{name}"] = _labels(solution, n_contacts + i, segment[:, i])
    return table


def chosen_velocities_at_outputs(
    problem: Problem, solution: Solution, form: str, rows: np.ndarray | slice = slice(None)
) -> dict[str, np.ndarray]:
    """Velocities that the user has defined (``form`` v) or their rates (a) at the outputs."""
    motion = solution.ts, solution.q, solution.v
    motion = motion if form == "v" else (*motion, solution.a)
    found = {}
    for name in problem.section("velocity"):
        value = jax.vmap(functools.partial(chosen_motion, problem, name))(*motion)
        found[f"{form}.{name}"] = np.asarray(value)[rows]
    return found


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


def _reactions(problem: Problem, solution: Solution, rows) -> dict[str, np.ndarray]:
    """Reactions of joints at some ``rows`` of the outputs, by the names of their columns."""
    names = list(reaction_units(problem))
    found = np.asarray(reactions_at_outputs(problem, solution))[rows] if names else None
    return {} if found is None else {f"reaction.{x}": found[:, i] for i, x in enumerate(names)}


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


def forces_at_outputs(problem: Problem, solution: Solution) -> Float[Array, "m k"]:
    """Forces of elements, in the order of :func:`jfric.system.forces.force_keys`."""
    if not force_keys(problem):
        return jnp.zeros((solution.ts.shape[0], 0))
    s = solution
    return _forces_along(problem, (s.ts, s.q, s.v, s.segment, s.z))


@functools.partial(Kept, options=brief_options)
def _forces_along(problem: Problem, states):
    keys, mechanics = list(force_keys(problem).values()), assemble(problem)

    def at(t, q, v, segment, z):
        return element_forces(problem, mechanics, keys, t, q, v, segment, states=z)

    return jax.vmap(at)(*states)


def _labels(solution: Solution, contact: int, codes: np.ndarray) -> np.ndarray:
    return np.array([solution.mode_label(contact, c) for c in codes], dtype=object)


def has_friction(problem: Problem) -> dict[str, bool]:
    """Whether each contact (by the name used in :class:`Solution`) carries a friction force."""
    result = dict.fromkeys(problem.friction_rows(), True)
    return result | {k: c.law is not None for k, c in unilateral_contacts(problem).items()}


def column_units(problem: Problem, solution: Solution) -> dict[str, str]:
    """Unit of every column of the trajectory table, in its order."""
    units = {"t": "s"}
    for prefix, suffix in (("q", ""), ("v", "/s"), ("a", "/s^2")):
        for axis in solution.axes:
            base = "rad" if problem.dofs.get(axis) == "rotation" else "m"
            units[f"{prefix}.{axis}"] = base + suffix
        chosen = chosen_units(problem) if suffix else {}
        units |= {f"{prefix}.{name}": unit + suffix for name, unit in chosen.items()}
    n_contacts = np.asarray(solution.lambda_t).shape[-1]
    contacts = solution.names[:n_contacts]
    for name in normal_forces(problem):
        units[f"lambda_n.{name}"] = force_unit(problem, name, "normal")
    for name in contacts:
        units[f"lambda_t.{name}"] = force_unit(problem, name)
    for name in force_keys(problem):
        units[f"force.{name}"] = force_unit(problem, name)
    units |= {f"reaction.{name}": unit for name, unit in reaction_units(problem).items()}
    units |= {f"z.{name}": unit for name, unit in state_units(problem).items()}
    units |= {f"command.{name}": unit for name, unit in command_units(problem).items()}
    for name in contacts:
        units[f"mode.{name}"] = ""
    for name in solution.names[n_contacts:]:
        units[f"segment.{name}"] = ""
    return units
