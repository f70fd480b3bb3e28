"""Contacts of a problem, including those that represent friction on a joint's reaction, and
friction in pins; contacts as rows of the equations of motion.

A bilateral constraint with friction is two contacts at one place, which push in opposite
directions. Which of them carries is decided as for any contacts, and its force is the normal force.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jfric.errors import ProblemError
from jfric.system.body import Link
from jfric.system.description import (
    AbstractProblem,
    is_state_axis,
    with_components,
    with_short_names,
)
from jfric.system.direction import Direction, kind
from jfric.system.elements import AXES, Contact, Gap
from jfric.system.fields import Scalar
from jfric.system.functions import AbstractFunction
from jfric.system.law_checks import refuse_axes
from jfric.system.laws import AbstractLaw, Coulomb
from jfric.system.linkage import Joint, Pin
from jfric.system.load_friction import given_normal_forces
from jfric.system.position_factor import AbstractPositionFactor

#: Names in results of the two sides of a joint with friction.
SIDES = ("positive", "negative")


@dataclass(frozen=True)
class Negative:
    """The negative of a function of time, positions and shared parameters."""

    function: Callable

    def __call__(self, *arguments: Any) -> Any:
        return -self.function(*arguments)


def unilateral_contacts(problem: AbstractProblem) -> dict[str, Contact]:
    """Unilateral contacts by their labels, in the solver's order: those of the description, both
    components of one with friction in a plane, then two for each joint with friction."""
    found = {}
    for label, contact in problem.labelled("contact").items():
        found |= with_components(label, contact)
    for label, joint in problem.labelled("joint").items():
        if joint.law is not None:
            for side, contact in zip(SIDES, _sides(joint), strict=True):
                found[f"{label}.{side}"] = contact
    for label, slider in problem.labelled("slider").items():
        if slider.law is not None:
            name = label if slider.turns else f"{label}.normal"
            for side in SIDES:
                found[f"{name}.{side}"] = Contact(
                    point=slider.point,
                    line=slider.line,
                    law=slider.law,
                    inside=side == "negative",
                )
    return found


def opposed_contacts(problem: AbstractProblem) -> tuple[tuple[int, int], ...]:
    """The two contacts of each joint with friction, by their indices among all contacts."""
    elements = [*problem.section("joint").values(), *problem.section("slider").values()]
    count = len(unilateral_contacts(problem))
    first = count - 2 * sum(x.law is not None for x in elements)
    return tuple((i, i + 1) for i in range(first, count, 2))


def normal_forces(problem: AbstractProblem) -> dict[str, int]:
    """Names of the normal forces and their indices among those of all unilateral contacts: both
    components of friction in a plane have one, that of the contact itself."""
    found, row = {}, 0
    for label, contact in problem.labelled("contact").items():
        found[label] = row
        row += len(contact.rows())
    others = list(unilateral_contacts(problem))[row:]
    return found | {label: row + i for i, label in enumerate(others)}


#: Unit of the sliding velocity of a contact, by that of its force.
SLIPS = {"N": "m/s", "N m": "rad/s", "A/s": "A"}


def force_unit(problem: AbstractProblem, contact: str, field: str = "tangent") -> str:
    """Unit of a contact's force: N m where its direction measures an angle, else N; A/s for what
    holds a current."""
    rows = problem.friction_rows() | unilateral_contacts(problem)
    element = (problem.labelled(*problem.elements, *problem.parts) | rows)[contact]
    direction = getattr(element, "direction", None) or getattr(element, field, None)
    if direction and any(map(is_state_axis, direction.names)):
        return "A/s"
    spins = field == "tangent" and getattr(element, "sliding", None) == AXES[-1]
    turns = direction and kind(direction, problem.dofs) == "rotation"
    return "N m" if turns or spins else "N"


def contact_units(problem: AbstractProblem) -> dict[str, str]:
    """Units of frictions, sliding velocities and normal forces of all contacts by their names."""
    found = {}
    for label in (*problem.friction_rows(), *unilateral_contacts(problem)):
        unit = force_unit(problem, label)
        found |= {f"lambda_t.{label}": unit, f"slip.{label}": SLIPS[unit]}
    for label in unilateral_contacts(problem):
        found[f"lambda_n.{label}"] = force_unit(problem, label, "normal")
    return with_short_names(found)


def _sides(joint: Joint) -> tuple[Contact, Contact]:
    (phi,) = joint.constraint
    opposite = f"-({phi})" if isinstance(phi, str) else Negative(phi)
    own = {"sliding": joint.sliding, "law": joint.law}
    return Contact(gap=Gap(phi), **own), Contact(gap=Gap(opposite), **own)


class PinFriction(eqx.Module):
    """The ``k`` pins, and bearings of links, with friction of a system."""

    radius: Float[Array, " k"]
    #: Row of each pin among friction elements.
    rows: tuple[int, ...] = eqx.field(static=True)
    #: Index of the first of the two equations of each pin among those of joints.
    first: tuple[int, ...] = eqx.field(static=True)

    @property
    def at(self) -> np.ndarray:
        """Rows of the pins among friction elements, as an array."""
        return np.asarray(self.rows)

    def of(self, joints: Float[Array, "e ..."]) -> Float[Array, "k 2 ..."]:
        """Reactions of the pins with friction, out of the reactions of all ``joints``."""
        return joints[np.asarray(self.first)[:, None] + np.arange(2)]


def pin_friction(problem: AbstractProblem, equations: list) -> PinFriction | None:
    """Pins with friction of a resolved problem; ``equations``: those that are eliminated."""
    rows, labels = list(problem.friction_rows()), [e.label for e in equations]
    pins = problem.bearings()
    if not pins:
        return None
    radii = [jnp.asarray(pin.radius, jnp.result_type(float)) for pin, _ in pins.values()]
    radius = jnp.stack(radii)
    return PinFriction(radius, tuple(map(rows.index, pins)), tuple(map(labels.index, pins)))


def require_pin(problem: AbstractProblem, where: str, pin: Pin | Link) -> None:
    """Raise :class:`ProblemError` for a pin, or the bearing of a link, with incomplete friction, or
    in a system with contacts whose impacts would cause impulses of its torque."""
    if (pin.law is None) != (pin.radius is None):
        found, missing = ("radius", "mu") if pin.law is None else ("mu", "radius")
        raise ProblemError(
            f"{where}: {found} is given without {missing}; give both, or neither for a pin "
            "without friction"
        )
    if pin.law is None:
        return
    refuse_axes(where, pin.law)
    for contact in problem.labelled("contact") if pin.impact != "none" else ():
        raise ProblemError(
            f"{where}.impact: found friction in a pin together with {contact}, whose impacts "
            "would go through the pin, which no solver can represent; give impact = 'none' for "
            "impacts without an impulse of the pin's torque"
        )


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
