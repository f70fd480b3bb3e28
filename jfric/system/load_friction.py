"""Friction that grows with a load: ``N(t) + kappa |load|``.

The load is a sum of forces of other elements. If it consists of straight lines in time, its
magnitude is a function of time with breakpoints. Any other load, except for forces of nonlinear
elements, is linear in positions, velocities and given functions as long as its sign and the
segments of piecewise-linear elements last. The sign is the segment of an additional
piecewise-linear element, which has no force, and whose elongation is the load.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from jfric.errors import ProblemError, nearest
from jfric.numerics.linear_algebra import matmul, matvec
from jfric.system.composite import AbstractComposite
from jfric.system.description import AbstractProblem, accepted_labels, element_label
from jfric.system.direction import Direction
from jfric.system.elements import curved_sections
from jfric.system.friction import Friction
from jfric.system.functions import AbstractFunction, Sum
from jfric.system.magnitude import Combination, Magnitude, has_lines
from jfric.system.nonlinear import AbstractForce
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


class Carried(eqx.Module):
    """The ``k`` loads that friction grows with, except straight lines in time."""

    rows: CarriedRows
    #: Factors on the forces of the piecewise-linear elements from tables.
    of_segments: Float[Array, "k nd"]
    kappa: Float[Array, " k"]
    curved: tuple[CurvedPart, ...]
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
        return jnp.where(segment[self.places] == 0, self.kappa, -self.kappa)

    def spread(self, n_friction: int, dtype: Any) -> Float[Array, "nf k"]:
        """Matrix with ones where a load acts on a friction element."""
        found = np.zeros((n_friction, self.count))
        for i, rows in enumerate(self.friction):
            found[list(rows), i] = 1.0
        return jnp.asarray(found, dtype)


def carried_label(label: str) -> str:
    """Name in results of the sign of the load of the friction element ``label``."""
    return f"{label}.load"


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
    if not load.names:
        raise ProblemError(f"{where}.load: found no element; give a name such as 'load.motor'")
    known = accepted(problem)
    for name in load.names:
        if name in known:
            continue
        if name.partition(".")[0] in ("joint", "contact"):
            raise ProblemError(
                f"{where}.load: found {name!r}, whose reaction friction changes: give it mu and "
                "the direction of sliding itself, beside this element for what does not grow"
            )
        found = ", ".join(dict.fromkeys(known.values())) or "none here"
        raise ProblemError(
            f"{where}.load: no element {name!r}{nearest(name, known)} with a force; there are "
            f"{found}"
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


def _parts(problem: AbstractProblem, load: Direction) -> list[tuple[str, str, Any]]:
    """Section and name of the elements of a load, and their factors; those of a composite are its
    parts."""
    known, composites = accepted(problem), problem.composites()
    sections = (*carrying_sections(), "winding")
    places = {element_label(s, n): (s, n) for s in sections for n in problem.section(s)}
    factors, found = load.vector(load.names), []
    for factor, label in zip(factors, map(known.__getitem__, load.names), strict=True):
        labels = composites[label].carried(label) if label in composites else (label,)
        found += [(*places[part], factor) for part in labels]
    return found


def _in_time(problem: AbstractProblem, load: Direction) -> AbstractFunction | None:
    """The load as a function of time if it is made of straight lines, else None."""
    parts = _parts(problem, load)
    if any(section != "load" for section, *_ in parts):
        return None
    functions = tuple(problem.section("load")[name].F for _, name, _ in parts)
    if not all(map(has_lines, functions)):
        return None
    return Combination(functions, tuple(factor for *_, factor in parts))


def _kappa(friction: Friction):
    return jnp.ones(()) if friction.kappa is None else friction.kappa


def given_normal_forces(
    problem: AbstractProblem, friction: Iterable[Friction]
) -> tuple[AbstractFunction, ...]:
    """Normal forces that are functions of time, those from loads of straight lines included."""
    found = []
    for element in friction:
        normal = element.normal_force
        in_time = None if element.load is None else _in_time(problem, element.load)
        if in_time is not None:
            grown = Combination((Magnitude(in_time),), (_kappa(element),))
            normal = grown if element.N is None and element.limit is None else Sum([normal, grown])
        found.append(normal)
    return tuple(found)


def carried_loads(problem: AbstractProblem) -> dict[str, Friction]:
    """Friction elements by label whose load is not made of straight lines in time."""
    return {
        label: element
        for label, element in problem.labelled("friction").items()
        if element.load is not None and _in_time(problem, element.load) is None
    }


def assemble_carried(
    problem: AbstractProblem, rows: Mapping[str, Friction], piecewise: PiecewiseElements
) -> Carried | None:
    """Loads of a resolved problem; ``rows``: its friction elements by component."""
    carried = carried_loads(problem)
    if not carried:
        return None
    names, found = list(rows), [_load(problem, f.load, piecewise) for f in carried.values()]
    curved = [
        _curved(problem, part, i)
        for i, f in enumerate(carried.values())
        for part in _of(f, problem)
    ]
    components = [
        tuple(i for i, name in enumerate(names) if name == label or name.startswith(f"{label}."))
        if element.plane is not None
        else (names.index(label),)
        for label, element in carried.items()
    ]
    lines = CarriedRows(*(jnp.stack(x) for x in zip(*(line for line, _ in found), strict=True)))
    return Carried(
        rows=lines,
        of_segments=jnp.stack([factors for _, factors in found]),
        kappa=jnp.stack([jnp.asarray(_kappa(f), lines.q.dtype) for f in carried.values()]),
        curved=tuple(part for part in curved if part is not None),
        friction=tuple(components),
        first=piecewise.tables - len(carried),
    )


def _of(friction: Friction, problem: AbstractProblem) -> list[tuple[str, str, Any]]:
    assert friction.load is not None
    return _parts(problem, friction.load)


def _curved(problem: AbstractProblem, part: tuple[str, str, Any], load: int) -> CurvedPart | None:
    section, name, factor = part
    if section not in curved_sections():
        return None
    element = problem.section(section)[name]
    w = element.direction.vector(problem.axes)
    return CurvedPart(element, factor * w / jnp.sum(w * w), load)


def _load(
    problem: AbstractProblem, load: Direction | None, piecewise: PiecewiseElements
) -> tuple[CarriedRows, Float[Array, " nd"]]:
    """Coefficients of one load, and its factors on the forces of piecewise-linear elements."""
    assert load is not None
    n, nb, dtype = len(problem.axes), len(problem.bases), jnp.result_type(float)
    q, v = jnp.zeros((n + nb,), dtype), jnp.zeros((n + nb,), dtype)
    loads = list(problem.section("load"))
    given, constant = jnp.zeros((len(loads),), dtype), jnp.zeros((), dtype)
    factors = jnp.zeros((piecewise.tables,), dtype)
    for section, name, factor in _parts(problem, load):
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
