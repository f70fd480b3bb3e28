"""Friction that grows with a load: ``N(t) + kappa |load|``.

The load is a sum of forces of other elements. If it consists of straight lines in time, its
magnitude is a function of time with breakpoints. Any other load, except for forces of nonlinear
elements, is linear in positions, velocities and given functions as long as its sign and the
segments of piecewise-linear elements last. The sign is the segment of an additional
piecewise-linear element, which has no force, and whose elongation is the load. Friction may grow
with several loads. Parts that fade as sliding gets faster, and squares of loads, are not linear in
the motion; they are an excess over the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from jfric.errors import ProblemError, nearest
from jfric.numerics.choice import select
from jfric.numerics.linear_algebra import matmul, matvec
from jfric.system.bristle import BRISTLES
from jfric.system.derived_functions import Combination, Magnitude, has_lines
from jfric.system.description import (
    AbstractComposite,
    AbstractProblem,
    accepted_labels,
    element_label,
)
from jfric.system.direction import Direction
from jfric.system.elements import curved_sections
from jfric.system.fields import Scalar
from jfric.system.friction import Friction, Growth
from jfric.system.functions import AbstractFunction, Sum
from jfric.system.line_elements import AbstractForce
from jfric.system.piecewise import FORMS, PiecewiseElements


def carrying_sections() -> tuple[str, ...]:
    """Sections whose elements have a force that may be a load."""
    return ("load", "spring", "damper", *FORMS, *curved_sections())


class CarriedRows(NamedTuple):
    """Coefficients of loads (k,) in given segments: ``q`` and ``v`` of the motion, ``z`` and
    ``z_dot`` of that of the bases, ``given`` of the functions of loads, and a constant."""

    q: Float[Array, "k n"]
    v: Float[Array, "k n"]
    z: Float[Array, "k nb"]
    z_dot: Float[Array, "k nb"]
    given: Float[Array, "k nl"]
    constant: Float[Array, " k"]

    def sized(self) -> CarriedRows:
        """Rows of the magnitudes of all entries."""
        return CarriedRows(*map(jnp.abs, self))


class CurvedPart(eqx.Module):
    """A nonlinear element in a load: its force along its direction ``w``, times a factor."""

    element: AbstractForce
    #: The row ``factor w / w^T w``.
    row: Float[Array, " n"]
    load: int = eqx.field(static=True)


class Squares(eqx.Module):
    """Part of a normal force where two loads, of which one is driven by the other, have different
    signs: ``coefficient load^2`` of the smaller one."""

    coefficients: tuple[Scalar, Scalar]
    #: Row among friction elements, and index of the first load; the second load and the sum follow.
    row: int = eqx.field(static=True)
    first: int = eqx.field(static=True)

    def value(self, loads: Float[Array, " k"], positive: Bool[Array, " k"]) -> Float[Array, ""]:
        """The part at ``loads`` of these signs."""
        i = self.first
        own, other = (c * loads[i + j] ** 2 for j, c in enumerate(self.coefficients))
        # The sum has the sign of the larger one.
        smaller = select(positive[i + 2] == positive[i + 1], own, other)
        return select(positive[i] != positive[i + 1], smaller, 0.0)


class Carried(eqx.Module):
    """The ``k`` loads that friction grows with, except straight lines in time."""

    rows: CarriedRows
    #: Factors on the forces of the piecewise-linear elements from tables.
    of_segments: Float[Array, "k nd"]
    kappa: Float[Array, " k"]
    curved: tuple[CurvedPart, ...]
    squares: tuple[Squares, ...]
    #: Whether the part of each load fades as sliding gets faster.
    fades: tuple[bool, ...] = eqx.field(static=True)
    #: Indices of the friction elements on which each load acts.
    friction: tuple[tuple[int, ...], ...] = eqx.field(static=True)

    #: Index among the piecewise-linear elements of the first load's sign; the others follow.
    first: int = eqx.field(static=True)

    @property
    def count(self) -> int:
        """Number of loads."""
        return len(self.friction)

    @property
    def places(self) -> slice:
        """Indices of the signs of the loads among the piecewise-linear elements."""
        return slice(self.first, self.first + self.count)

    def lines(self, piecewise: PiecewiseElements, segment: Int[Array, " ns"]) -> CarriedRows:
        """Coefficients of the loads while piecewise-linear elements are in ``segment``."""
        nd = piecewise.tables
        if nd == self.count:
            return self.rows
        rows, factor = self.rows, self.of_segments
        k, c, f = (piecewise.at(segment[:nd], name) for name in ("k", "c", "f"))
        w, base = piecewise.directions[:nd], piecewise.base_directions[:nd]
        return rows._replace(
            q=rows.q - matmul(factor * k[None, :], w),
            v=rows.v - matmul(factor * c[None, :], w),
            z=rows.z - matmul(factor * k[None, :], base),
            z_dot=rows.z_dot - matmul(factor * c[None, :], base),
            constant=rows.constant - matvec(factor, f),
        )

    def of_curved(self, axes: tuple[str, ...], t, q, v) -> Float[Array, " k"]:
        """Parts of the loads that nonlinear elements add."""
        found = jnp.zeros_like(self.kappa)
        for part in self.curved:
            found = found.at[part.load].add(part.row @ part.element.force(axes, t, q, v))
        return found

    def shares(self, segment: Int[Array, " ns"]) -> Float[Array, " k"]:
        """Growth of normal forces per load: ``kappa`` with the sign of the load in ``segment``."""
        return select(segment[self.places] == 0, self.kappa, -self.kappa)

    def parts(
        self, grown: Float[Array, "nf k"], loads: Float[Array, " k"], positive: Bool[Array, " k"]
    ) -> tuple[Float[Array, " nf"], Float[Array, " nf"]]:
        """Parts of the normal forces that fade, and squares; ``grown``: parts by load."""
        fading = jnp.sum(select(np.asarray(self.fades), grown, 0.0), axis=1)
        squares = jnp.zeros_like(fading)
        for part in self.squares:
            squares = squares.at[part.row].add(part.value(loads, positive))
        return fading, squares

    def spread(self, n_friction: int, dtype: Any) -> Float[Array, "nf k"]:
        """Matrix with ones where a load acts on a friction element."""
        found = np.zeros((n_friction, self.count))
        for i, rows in enumerate(self.friction):
            found[list(rows), i] = 1.0
        return jnp.asarray(found, dtype)


class Carrying(NamedTuple):
    """A load that friction grows with, and the label of the friction."""

    friction: str
    growth: Growth
    #: Whether the friction is one in a plane.
    in_plane: bool


def require_load(problem: AbstractProblem, where: str, friction: Friction) -> None:
    """Raise :class:`ProblemError` for a load without a valid element, or ``kappa`` without one."""
    load = friction.load
    if load is None:
        if friction.kappa is not None:
            raise ProblemError(
                f"{where}.kappa: is given without load; name the forces that friction grows with, "
                'such as load = "load.motor"'
            )
        return
    require_forces(problem, f"{where}.load", load)


def require_forces(problem: AbstractProblem, where: str, load: Direction) -> None:
    """Raise :class:`ProblemError` for a load without an element, or one without a force."""
    if not load.names:
        raise ProblemError(f"{where}: found no element; give a name such as 'load.motor'")
    known = accepted(problem)
    for name in load.names:
        if name in known:
            continue
        if name.partition(".")[0] in ("joint", "contact"):
            raise ProblemError(
                f"{where}: found {name!r}, whose reaction friction changes: give "
                "that element mu and the direction of sliding; this one keeps the friction that "
                "does not grow with a load"
            )
        found = ", ".join(dict.fromkeys(known.values())) or "none here"
        raise ProblemError(
            f"{where}: no element {name!r}{nearest(name, known)} with a force; there are {found}"
        )


def accepted(problem: AbstractProblem) -> dict[str, str]:
    """Names of elements whose force may be a load, and the label of each."""
    found = {}
    for section in carrying_sections():
        found |= accepted_labels(section, problem.section(section))
    for section, group in problem.elements.items():
        own = {k: x for k, x in group.items() if isinstance(x, AbstractComposite)}
        found |= accepted_labels(section, own)
    return found


def _parts(problem: AbstractProblem, growth: Growth) -> list[tuple[str, str, Any]]:
    """Section and name of the elements of a load, and their factors; those of a composite are its
    parts."""
    load, along = growth.load, growth.along
    known, composites = accepted(problem), problem.composites()
    places = {element_label(s, n): (s, n) for s in carrying_sections() for n in problem.section(s)}
    places |= {name: ("winding", name) for name in problem.section("winding")}
    factors, found = load.vector(load.names), []
    for factor, label in zip(factors, map(known.__getitem__, load.names), strict=True):
        labels = composites[label].carried(label) if label in composites else (label,)
        for section, name in map(places.__getitem__, labels):
            own = 1.0
            if along is not None:
                w, axes = along.vector(problem.axes), problem.axes
                direction = problem.section(section)[name].direction
                own = direction.vector(axes) @ w / (w @ w)
            found.append((section, name, factor * own))
    return found


def _in_time(problem: AbstractProblem, growth: Growth) -> AbstractFunction | None:
    """The load as a function of time if it is made of straight lines and the normal force grows
    with its magnitude alone, else None."""
    if growth.fades or growth.kappa is None:
        return None
    parts = _parts(problem, growth)
    if any(section != "load" for section, *_ in parts):
        return None
    functions = tuple(problem.section("load")[name].F for _, name, _ in parts)
    if not all(map(has_lines, functions)):
        return None
    return Combination(functions, tuple(factor for *_, factor in parts))


def given_normal_forces(
    problem: AbstractProblem, friction: Iterable[Friction]
) -> tuple[AbstractFunction, ...]:
    """Normal forces that are functions of time, those from loads of straight lines included."""
    found = []
    for element in friction:
        normal, is_given = element.normal_force, not (element.N is None and element.limit is None)
        for growth in element.growth():
            in_time = _in_time(problem, growth)
            if in_time is not None:
                grown = Combination((Magnitude(in_time),), (growth.kappa,))
                normal = Sum([normal, grown]) if is_given else grown
                is_given = True
        found.append(normal)
    return tuple(found)


def carried_loads(problem: AbstractProblem) -> dict[str, Carrying]:
    """Loads that friction grows with and that are not made of straight lines in time, by the name
    of their sign in results."""
    return {
        f"{label}.{growth.name}": Carrying(
            label, growth, getattr(element, "plane", None) is not None
        )
        for label, element in problem.labelled("friction", *BRISTLES).items()
        for growth in element.growth()
        if _in_time(problem, growth) is None
    }


def assemble_carried(
    problem: AbstractProblem, rows: Mapping[str, Friction], piecewise: PiecewiseElements
) -> Carried | None:
    """Loads of a resolved problem; ``rows``: its friction elements by component."""
    carried = list(carried_loads(problem).values())
    if not carried:
        return None
    names, growths = list(rows), [x.growth for x in carried]
    found = [_load(problem, growth, piecewise) for growth in growths]
    curved = [
        _curved(problem, part, i)
        for i, growth in enumerate(growths)
        for part in _parts(problem, growth)
    ]
    # Friction with a state is no row, and takes the load itself.
    components = [
        tuple(
            i
            for i, name in enumerate(names)
            if name == x.friction or (x.in_plane and name.startswith(f"{x.friction}."))
        )
        for x in carried
    ]
    squares = []
    for label, element in rows.items():
        if element.squares is not None:
            first = next(i for i, x in enumerate(carried) if x[0] == label and x[1].kappa is None)
            squares.append(Squares(element.squares, names.index(label), first))
    lines = CarriedRows(*(jnp.stack(x) for x in zip(*(line for line, _ in found), strict=True)))
    kappa = [0.0 if growth.kappa is None else growth.kappa for growth in growths]
    return Carried(
        rows=lines,
        of_segments=jnp.stack([factors for _, factors in found]),
        kappa=jnp.stack([jnp.asarray(x, lines.q.dtype) for x in kappa]),
        curved=tuple(part for part in curved if part is not None),
        squares=tuple(squares),
        fades=tuple(growth.fades for growth in growths),
        friction=tuple(components),
        first=piecewise.tables - len(carried),
    )


def _curved(problem: AbstractProblem, part: tuple[str, str, Any], load: int) -> CurvedPart | None:
    section, name, factor = part
    if section not in curved_sections():
        return None
    element = problem.section(section)[name]
    w = element.direction.vector(problem.axes)
    return CurvedPart(element.bound(problem), factor * w / jnp.sum(w * w), load)


def _load(
    problem: AbstractProblem, growth: Growth, piecewise: PiecewiseElements
) -> tuple[CarriedRows, Float[Array, " nd"]]:
    """Coefficients of one load, and its factors on the forces of piecewise-linear elements."""
    n, nb, dtype = len(problem.axes), len(problem.bases), jnp.result_type(float)
    q, v = jnp.zeros((n + nb,), dtype), jnp.zeros((n + nb,), dtype)
    loads = list(problem.section("load"))
    given, constant = jnp.zeros((len(loads),), dtype), jnp.zeros((), dtype)
    factors = jnp.zeros((piecewise.tables,), dtype)
    for section, name, factor in _parts(problem, growth):
        element: Any = problem.section(section)[name]
        if section in curved_sections():
            continue
        if section == "load":
            given = given.at[loads.index(name)].add(factor)
            continue
        if section in FORMS:
            index = piecewise.names.index(element_label(section, name))
            factors = factors.at[index].add(factor)
            continue
        if section == "winding":
            v = v.at[:n].add(factor * element.torque(problem.axes))
            continue
        w = element.direction.vector(problem.axes + problem.bases)
        if section == "spring":
            q, constant = q - factor * element.k * w, constant + factor * element.k * element.x0
        else:
            v = v - factor * element.c * w
    return CarriedRows(q[:n], v[:n], q[n:], v[n:], given, constant), factors
