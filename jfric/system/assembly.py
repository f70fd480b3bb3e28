"""A problem's elements as the arrays of :class:`jfric.system.mechanics.Mechanics`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jfric.numerics.compilation import brief_options
from jfric.numerics.kept_programs import Kept
from jfric.system.body import coordinates
from jfric.system.bristles import assemble_bristles
from jfric.system.contacts import (
    contact_rows,
    opposed_contacts,
    pin_friction,
    unilateral_contacts,
)
from jfric.system.description import AbstractProblem, state_axis
from jfric.system.elements import AXES, AbstractForce, Gap, Lagrangian
from jfric.system.joint_equations import joint_equations
from jfric.system.joints import joints_of
from jfric.system.laws import PerAxis
from jfric.system.load_friction import (
    assemble_carried,
    carried_loads,
)
from jfric.system.mechanics import Mechanics, inverse_of_mass
from jfric.system.piecewise import assemble_piecewise
from jfric.system.polygons import PolygonGap, gap_of, link_force, sliding_of
from jfric.system.position_functions import together
from jfric.system.start import started
from jfric.system.state import BoundState
from jfric.system.state_function import Rate, bound_to, is_rate, is_straight, linear_displacement
from jfric.system.surfaces import gap_in_space, sliding_in_space, together_in_space
from jfric.system.tree import Tree, tree_of
from jfric.system.varying import AbstractEnergies, Energies, Varying


def mass_matrix(problem: AbstractProblem) -> Float[Array, "n n"]:
    """Mass matrix of a resolved problem; at its start where the matrix depends on position."""
    result = _fixed_mass(problem)
    t, q, _ = problem.start()
    return sum((x.mass(t, q) for x in energies(problem).values()), result)


#: Mass matrix of a problem whose numbers are all known.
known_mass_matrix = Kept(mass_matrix, options=brief_options)


def _fixed_mass(problem: AbstractProblem) -> Float[Array, "n n"]:
    axes = problem.axes
    result = _matrix(problem.matrices.M, len(axes))
    for element in problem.section("mass").values():
        w = element.direction.vector(axes)
        result = result + element.m * jnp.outer(w, w)
    # States of elements are velocities of coordinates of mass one.
    behind = np.arange(len(axes)) >= len(problem.dofs)
    result = result + jnp.diag(jnp.asarray(behind, result.dtype))
    for name, body in problem.section("body").items():
        at = jnp.asarray([axes.index(dof) for dof in coordinates(name)])
        result = result.at[at, at].add(jnp.stack([body.m, body.m, body.J]))
    return result


def _weight(problem: AbstractProblem) -> Float[Array, " n"]:
    """Weight of all bodies."""
    result = jnp.zeros((len(problem.axes),))
    for gravity in problem.section("gravity").values():
        along, across = (0.0, 1.0)
        if gravity.tilt is not None:
            along, across = jnp.sin(gravity.tilt), jnp.cos(gravity.tilt)
        for name, body in problem.section("body").items():
            x, y, _ = (problem.axes.index(dof) for dof in coordinates(name))
            force = body.m * gravity.g
            result = result.at[x].add(along * force).at[y].add(-across * force)
    return result


def energies_of(problem: AbstractProblem, element: Lagrangian) -> Energies:
    """The energies of ``element``, with the parameters of ``problem``."""
    given = element.kinetic, element.potential, element.dissipation
    return Energies(*(None if what is None else bound_to(problem, what) for what in given))


def energies(problem: AbstractProblem) -> dict[str, AbstractEnergies]:
    """The parts of a resolved ``problem`` that are described by energies: elements by their labels,
    and the tree of all links."""
    found: dict[str, AbstractEnergies] = {
        label: energies_of(problem, x) for label, x in problem.labelled("lagrangian").items()
    }
    moves = any(x.joint != "fixed" for x in problem.section("link").values())
    return found | ({"links": tree_of(problem)} if moves else {})


def displacement_functions(
    problem: AbstractProblem, tree: Tree | None = None
) -> dict[str, tuple[int, Callable[..., Array]]]:
    """Displacements, and sliding velocities (:class:`Rate`), that are functions, by the path of the
    field: the row (among tangents, then normals) and the function. ``tree``: that of all links, if
    it is known."""
    if problem.section("body") or problem.section("link"):
        problem = problem.resolved()
    friction, contacts = problem.friction_rows(), unilateral_contacts(problem)
    nf, nt = len(friction), len(friction) + len(contacts)
    found: dict[str, tuple[int, Any]] = {}
    fields: list[tuple[str, int, Any]] = [
        (f"{label}.sliding", i, f.sliding) for i, (label, f) in enumerate(friction.items())
    ]
    for i, (label, c) in enumerate(contacts.items()):
        if c.partner is not None:
            if tree is None:
                tree = tree_of(problem)
            if c.frictionless or c.sliding == AXES[0]:
                touching = gap_in_space(problem, tree, c)
            found[f"{label}.gap"] = nt + i, touching
            if not c.frictionless:
                found[f"{label}.sliding"] = nf + i, Rate(sliding_in_space(touching, c))
            continue
        if c.point is not None:
            other = next(x for x in ("line", "circle", "polygon") if getattr(c, x) is not None)
            found[f"{label}.{other}"] = nt + i, gap_of(problem, c)
            if (sliding := sliding_of(problem, c)) is not None:
                found[f"{label}.point"] = nf + i, sliding
            continue
        gap = c.gap.function if isinstance(c.gap, Gap) else None
        fields += [(f"{label}.sliding", nf + i, c.sliding), (f"{label}.gap", nt + i, gap)]
    for label, row, what in fields:
        if what is not None:
            bound = bound_to(problem, what)
            found[label] = row, Rate(bound) if is_rate(what) else bound
    return found


class _Linear(NamedTuple):
    """Constant matrices, with rows for the coordinates and columns for these and for bases; and the
    energies that they do not contain: those of the mass matrix and of forces."""

    M: Float[Array, "n n"]
    C: Float[Array, "n nnb"]
    K: Float[Array, "n nnb"]
    f0: Float[Array, " n"]
    curved: tuple[AbstractEnergies, ...]
    forces: tuple[AbstractEnergies, ...]


def _linear(problem: AbstractProblem, known: dict[str, AbstractEnergies], t, q) -> _Linear:
    """Masses, springs, dampers and weight, with the energies that turn out to be linear."""
    axes, both = problem.axes, problem.axes + problem.bases
    n, width = len(axes), len(both)
    K = jnp.zeros((n, width)).at[:, :n].set(_matrix(problem.matrices.K, n))
    C = jnp.zeros((n, width)).at[:, :n].set(_matrix(problem.matrices.C, n))
    M, f0 = _fixed_mass(problem), _weight(problem)
    for spring in problem.section("spring").values():
        w = spring.direction.vector(both)
        K = K + spring.k * jnp.outer(w[:n], w)
        f0 = f0 + spring.k * spring.x0 * w[:n]
    for damper in problem.section("damper").values():
        w = damper.direction.vector(both)
        C = C + damper.c * jnp.outer(w[:n], w)
    for winding in problem.section("winding").values():
        C = C.at[:, :n].add(winding.damping(axes))
    curved, forces = [], []
    for part in known.values():
        if part.has_constant_mass():
            M = M + part.mass(t, q)
        else:
            curved.append(part)
        if part.has_linear_force():
            rest = jnp.zeros((n,))
            along_q, along_v = (
                jax.jacfwd(part.force, argnums=i)(axes, t, rest, rest) for i in (2, 3)
            )
            K, C = K.at[:, :n].add(-along_q), C.at[:, :n].add(-along_v)
            f0 = f0 + part.force(axes, t, rest, rest)
        else:
            forces.append(part)
    return _Linear(M, C, K, f0, tuple(curved), tuple(forces))


class _Directions(NamedTuple):
    """Directions of contacts as rows over coordinates and bases, gaps at the position zero; and
    displacements that are not linear, with their rows, by their labels."""

    W_T: Float[Array, "nt nnb"]
    W_N: Float[Array, "nu nnb"]
    gap0: Float[Array, " nu"]
    displacements: dict[str, tuple[int, Any]]


def _directions(problem: AbstractProblem, tree, tangents, normals, t) -> _Directions:
    """Directions of ``tangents`` and ``normals``, with the functions that turn out to be linear."""
    n, both = len(problem.axes), problem.axes + problem.bases
    W_T, W_N = (
        _rows([None if d is None else d.vector(both) for d in side], len(both))
        for side in (tangents, normals)
    )
    contacts = unilateral_contacts(problem).values()
    gap0 = _stack([jnp.zeros(()) if c.curved else c.gap for c in contacts])
    displacements = {}
    for label, (row, g) in displacement_functions(problem, tree).items():
        if not linear_displacement(g, n):
            displacements[label] = (row, g)
            continue
        rest, nt = jnp.zeros((n,)), W_T.shape[0]
        w = jax.jacfwd(g, argnums=1)(t, rest)
        if row < nt:
            W_T = W_T.at[row, :n].set(w)
        else:
            W_N, gap0 = W_N.at[row - nt, :n].set(w), gap0.at[row - nt].set(g(t, rest))
    return _Directions(W_T, W_N, gap0, displacements)


def _varying(linear: _Linear, M_inverse, displacements, equations, n: int) -> Varying | None:
    """Mass matrix, directions and joints that depend on the position; None if there are none."""
    curved = linear.curved
    if not (curved or displacements or equations):
        return None
    touching = together_in_space(displacements.values())
    in_space = () if touching is None else (*touching.gaps, *touching.slides)
    others = [x for x in displacements.values() if x[0] not in {row for row, *_ in in_space}]
    moved = [x for x in others if not isinstance(x[1], Rate)]
    rates = [x for x in others if isinstance(x[1], Rate)]
    names = tuple(dict.fromkeys(e.label for e in equations))
    return Varying(
        linear.M,
        M_inverse,
        curved,
        together([g for _, g in moved], n) if moved else None,
        rows=tuple(row for row, *_ in (*moved, *in_space, *rates)),
        labels=(*(["lagrangian.kinetic"] if curved else []), *displacements, *names),
        rates=tuple(g for _, g in rates),
        touching=touching,
        polygons=tuple(g for _, g in moved if isinstance(g, PolygonGap)),
        polygon_rows=tuple(row for row, g in moved if isinstance(g, PolygonGap)),
        joints=joints_of([e.function for e in equations], n) if equations else None,
        straight=not (curved or displacements)
        and all(is_straight(e.function, n) for e in equations),
    )


def _nonlinear(problem: AbstractProblem, forces: tuple[AbstractEnergies, ...]) -> tuple[Any, ...]:
    """Forces that are functions: of elements, springs between points, energies and states."""
    groups = (*problem.elements.values(), *problem.parts.values())
    elements = [e for group in groups for e in group.values()]
    return (
        *(e.bound(problem) for e in elements if isinstance(e, AbstractForce)),
        *(link_force(problem, x) for x in problem.section("link_spring").values()),
        *forces,
        *(
            BoundState.of(problem, e, problem.axes.index(state_axis(name)))
            for name, e in problem.section("state").items()
        ),
    )


def assemble(problem: AbstractProblem) -> Mechanics:
    """Assemble ``problem`` (expressions are resolved first, starts made to meet the joints)."""
    problem = started(problem)
    axes, (t, q, v) = problem.axes, problem.start()
    n = len(axes)
    friction, contacts = problem.friction_rows(), unilateral_contacts(problem)
    tangents = [f.direction for f in friction.values()] + [c.tangent for c in contacts.values()]
    normals = [c.normal for c in contacts.values()]
    known = energies(problem)
    linear = _linear(problem, known, t, q)
    W_T, W_N, gap0, displacements = _directions(problem, known.get("links"), tangents, normals, t)
    M_inverse = inverse_of_mass(linear.M)
    equations = [e for e in joint_equations(problem) if not e.rubs]
    varying = _varying(linear, M_inverse, displacements, equations, n)
    loads = problem.section("load").values()
    piecewise = assemble_piecewise(problem, carried_loads(problem))
    found = Mechanics(
        M=linear.M,
        M_inverse=M_inverse,
        C=linear.C[:, :n],
        K=linear.K[:, :n],
        f0=linear.f0,
        K_base=-linear.K[:, n:],
        C_base=-linear.C[:, n:],
        base_functions=tuple(b.displacement for b in problem.section("base").values()),
        load_directions=_rows([load.direction.vector(axes) for load in loads], n),
        load_functions=tuple(load.F for load in loads),
        W_T=W_T[:, :n],
        W_T_base=W_T[:, n:],
        reactions=_reactions(friction.values(), W_T[:, :n], axes),
        contacts=contact_rows(problem, friction, contacts),
        W_N=W_N[:, :n],
        W_N_base=W_N[:, n:],
        gap0=gap0,
        e=_stack([c.e for c in contacts.values()]),
        piecewise=piecewise,
        nonlinear=_nonlinear(problem, linear.forces),
        bristles=assemble_bristles(problem, piecewise.names),
        axes=axes,
        planes=tuple(plane for plane, _ in _planes(problem)),
        even=tuple(even for _, even in _planes(problem)),
        carried=assemble_carried(problem, friction, piecewise),
        opposed=opposed_contacts(problem),
        pins=pin_friction(problem, equations),
        varying=varying,
    )
    if varying is None:
        return found
    return found.at(t, q, v)


def _reactions(friction, W_T, axes):
    """Rows of ``R_T``, or None where all are those of ``W_T``."""
    if not any(f.redirected for f in friction):
        return None
    own = [
        f.reaction.vector(axes) if f.redirected else w for f, w in zip(friction, W_T, strict=False)
    ]
    return jnp.concatenate([jnp.stack(own), W_T[len(own) :]])


def _planes(problem: AbstractProblem) -> list[tuple[tuple[int, ...], bool]]:
    """Rows of the directions of each friction in a plane, spin included, and whether one law holds
    along all of them."""
    found = []
    for section, row in (("friction", 0), ("contact", len(problem.friction_rows()))):
        for element in problem.section(section).values():
            count = len(element.rows())
            if count > 1:
                law = element.coefficients if section == "friction" else element.law
                uneven = law is not None and bool(law.holding(PerAxis))
                found.append((tuple(range(row, row + count)), not uneven))
            row += count
    return found


def _matrix(entries, n: int):
    """Matrix (n, n) from ``entries`` for the degrees of freedom; zero for other coordinates."""
    if entries is None:
        return jnp.zeros((n, n))
    if isinstance(entries, (tuple, list)):
        entries = jnp.stack([jnp.stack([jnp.asarray(x) for x in row]) for row in entries])
    found = jnp.asarray(entries)
    missing = (0, n - found.shape[0])
    return jnp.pad(found, (missing, missing))


def _rows(rows: list, width: int):
    zero = jnp.zeros((width,))
    return jnp.stack([zero if r is None else r for r in rows]) if rows else jnp.zeros((0, width))


def _stack(values: list):
    return jnp.stack(values) if values else jnp.zeros((0,))


@functools.partial(Kept, options=brief_options)
def has_linear_modes(problem: AbstractProblem) -> bool:
    """Whether the equations of every mode are linear, with constant coefficients."""
    return assemble(problem).has_linear_modes
