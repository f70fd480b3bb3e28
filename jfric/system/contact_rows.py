"""Contacts of the equations of motion as rows of one table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import equinox as eqx

from jfric.system.description import AbstractProblem
from jfric.system.direction import Direction
from jfric.system.fields import Scalar
from jfric.system.functions import AbstractFunction
from jfric.system.laws import AbstractLaw, Coulomb
from jfric.system.load_friction import given_normal_forces
from jfric.system.position_factor import AbstractPositionFactor


class Attached(NamedTuple):
    """Degrees of freedom that a direction acts on, by number, where they are few.

    ``single``: the only coordinate, where the direction is that one; ``pair``: both coordinates of
    a difference; ``only``: the only degree of freedom, whatever bases take part as well.
    """

    single: int | None
    pair: tuple[int, int] | None
    only: int | None

    @classmethod
    def of(cls, direction: Direction | None, axes: tuple[str, ...]) -> Attached:
        """Numbers of the degrees of freedom of ``direction``; none where that is a function."""
        if direction is None:
            return cls(None, None, None)
        dofs = tuple(axes.index(name) for name in direction.names if name in axes)
        single = dofs[0] if direction.is_single and dofs else None
        pair = None
        if direction.signs == (-1, 1) and len(dofs) == 2:
            pair = (dofs[0], dofs[1])
        return cls(single, pair, dofs[0] if len(dofs) == 1 else None)


class ContactRow(eqx.Module):
    """One contact: friction with a given normal force, or a unilateral contact.

    ``normal_force``: None for a unilateral contact, whose normal force is a reaction; zero for a
    pin; without the part that grows with a carried load. ``factor``: dependence on position.
    """

    law: AbstractLaw
    belt: AbstractFunction | None
    normal_force: AbstractFunction | None
    factor: AbstractPositionFactor | None
    #: Law whose coefficient is a factor on a part of the normal force, and the constant part of it.
    fade: AbstractLaw | None
    fading: Scalar
    name: str = eqx.field(static=True)
    tangent: Attached = eqx.field(static=True)
    normal: Attached = eqx.field(static=True)
    #: Whether the contact has no tangent direction.
    frictionless: bool = eqx.field(static=True)
    #: Whether friction acts along another direction than that of sliding.
    redirected: bool = eqx.field(static=True)
    #: Whether impacts carry no tangential impulse.
    smooth_impact: bool = eqx.field(static=True)


def contact_rows(
    problem: AbstractProblem, friction: Mapping[str, Any], contacts: Mapping[str, Any]
) -> tuple[ContactRow, ...]:
    """Rows of ``friction`` elements, then of unilateral ``contacts``, by their names; a plane has
    two rows, with a belt each."""
    axes, nothing = problem.axes, Attached(None, None, None)
    forces = given_normal_forces(problem, friction.values())
    rows = [
        ContactRow(
            law=f.coefficients.prepared(),
            belt=f.belt,
            normal_force=force,
            factor=None if f.position is None else f.position.prepared(),
            fade=f.fade,
            fading=f.fading,
            name=name,
            tangent=Attached.of(f.direction, axes),
            normal=nothing,
            frictionless=False,
            redirected=f.redirected,
            smooth_impact=False,
        )
        for (name, f), force in zip(friction.items(), forces, strict=True)
    ]
    rows += [
        ContactRow(
            law=Coulomb(0.0) if c.law is None else c.law.prepared(),
            belt=c.belt,
            normal_force=None,
            factor=None,
            fade=None,
            fading=0.0,
            name=name,
            tangent=Attached.of(c.tangent, axes),
            normal=Attached.of(c.normal, axes),
            frictionless=c.frictionless,
            redirected=False,
            smooth_impact=c.impact == "none",
        )
        for name, c in contacts.items()
    ]
    return tuple(rows)
