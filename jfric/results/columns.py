"""A trajectory as tables: named columns with their units, labelled arrays (xarray), prints."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jfric.numerics.compilation import brief_options
from jfric.numerics.kept_programs import Kept
from jfric.numerics.printing import Shown
from jfric.numerics.tracing import is_traced
from jfric.optional import import_xarray
from jfric.results.modes import Mode
from jfric.system.assembly import assemble
from jfric.system.contacts import force_unit, normal_forces, unilateral_contacts
from jfric.system.control import command_places, command_units, driven
from jfric.system.forces import element_forces, force_keys, joint_reactions
from jfric.system.functions import Held, hold
from jfric.system.joint_equations import reaction_units
from jfric.system.state_function import chosen_motion, chosen_units
from jfric.system.states import state_units

if TYPE_CHECKING:
    import xarray

    from jfric.results.solution import Solution
    from jfric.system.problem import Problem


#: Forces are computed for a multiple of this number of states.
OUTPUTS = 512
#: Events with a line of their own in a print.
MOST_EVENTS = 20


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


def labelled(solution: Solution, problem: Problem | None = None) -> xarray.Dataset:
    """Solution as a labelled table, see :meth:`jfric.Solution.to_xarray`."""
    xarray = import_xarray()
    status = np.asarray(solution.status)
    batch = ["batch"] if status.ndim == 1 else [f"batch_{i}" for i in range(status.ndim)]
    nt, nu = solution.mode.shape[-1], solution.lambda_n.shape[-1]
    contacts, segments = solution.names[:nt], solution.names[nt:]
    units = {"t": ["s"]}
    for column in described(problem, solution) if problem is not None else ():
        units.setdefault(column.name.partition(".")[0], []).append(column.unit)
    meanings = {"meanings": [f"{int(m)}: {m.label}" for m in Mode]}

    def about(kind: str) -> dict[str, Any]:
        found = [u for u in units.get(kind, []) if u]
        if not found:
            return {}
        return {"units": found[0] if len(set(found)) == 1 else found}

    table: dict[str, Any] = {
        name: ([*batch, "time", axis], np.asarray(getattr(solution, name)), about(name))
        for name, axis in (
            *(("q", "dof"), ("v", "dof"), ("a", "dof")),
            *(("lambda_t", "contact"), ("lambda_n", "unilateral")),
        )
    }
    table["mode"] = ([*batch, "time", "contact"], np.asarray(solution.mode), meanings)
    table["segment"] = ([*batch, "time", "element"], np.asarray(solution.segment))
    table["z"] = ([*batch, "time", "state"], np.asarray(solution.z))
    log = solution.events
    for name in ("time", "contact", "from_mode", "to_mode", "impact", "q", "v", "v_before"):
        values = np.asarray(getattr(log, name))
        axes = [*batch, "event"] if values.ndim == status.ndim + 1 else [*batch, "event", "dof"]
        of = {"time": "t", "v_before": "v"}.get(name, name)
        table[f"event_{name}"] = (axes, values, about(of))
    table["event_count"] = (batch, np.asarray(log.count))
    for name in ("status", "flags", "steps"):
        table[name] = (batch, np.asarray(getattr(solution, name)))
    ts = np.asarray(solution.ts)
    rows = ts.reshape(-1, ts.shape[-1])
    same = len(rows) > 0 and bool(np.all(rows == rows[0]))
    coordinates: dict[str, Any] = {
        "dof": list(solution.axes),
        "contact": list(contacts),
        "unilateral": list(contacts[nt - nu :]),
        "element": list(segments),
        "state": list(solution.states),
    }
    # Times that differ between trajectories cannot be an index.
    if same:
        coordinates["time"] = ("time", rows[0], {"units": "s"})
    else:
        coordinates["t"] = ([*batch, "time"], ts, {"units": "s"})
    return xarray.Dataset(table, coordinates)


def number(value: Any) -> str:
    """Ten significant digits, enough to see an error of 1e-9."""
    return f"{float(value):.10g}"


def state_shown(problem: Problem, solution: Solution) -> Shown:
    """State at the last output, with units."""
    units = column_units(problem, solution)
    q, v = np.asarray(solution.q)[-1], np.asarray(solution.v)[-1]
    rows = [
        (axis, number(q[i]), units[f"q.{axis}"], number(v[i]), units[f"v.{axis}"])
        for i, axis in enumerate(solution.axes)
    ]
    title = f"State at t = {float(solution.ts[-1]):.6g} s"
    return Shown(title, ("", ">position", "", ">velocity", ""), rows)


def contacts_shown(problem: Problem, solution: Solution) -> Shown:
    """Modes and forces at the last output, and segments of elements that are no contacts."""
    units = column_units(problem, solution)
    mode, lambda_t = np.asarray(solution.mode)[-1], np.asarray(solution.lambda_t)[-1]
    lambda_n = np.asarray(solution.lambda_n)[-1]
    first = mode.size - lambda_n.size
    # Both components of friction in a plane belong to one normal force.
    places = {first + at: name for name, at in normal_forces(problem).items()}
    pins = problem.bearings()
    columns = ("element", "segment")
    if mode.size:
        columns = ("contact", "mode", ">friction force", "", ">normal force", "")
    rows = []
    for i, name in enumerate(solution.names):
        if i < mode.size:
            known = "reaction" if name in pins else "given"
            normal = number(lambda_n[i - first]) if i in places else "" if i >= first else known
            friction = number(lambda_t[i]), units[f"lambda_t.{name}"]
            unit = units.get(f"lambda_n.{places.get(i, name)}", "")
            rows.append((name, solution.mode_label(i, mode[i]), *friction, normal, unit))
        else:
            code = np.asarray(solution.segment)[-1, i - mode.size]
            label = solution.mode_label(i, code).replace("_", " ")
            rows.append((name, label, *[""] * (len(columns) - 2)))
    return Shown("", columns, rows)


def own_events_shown(solution: Solution) -> Shown:
    """Events of the description in order of time, the first of them only where there are many."""
    own = [r for r in solution.event_table() if r["contact"] in solution.event_names]
    rows = [(r["contact"], number(r["time"]), "s", r["from"], r["to"]) for r in own[:MOST_EVENTS]]
    below = f"and {len(own) - MOST_EVENTS} more" if len(own) > MOST_EVENTS else ""
    return Shown("", ("event", ">time", "", "from", "to"), rows, below)
