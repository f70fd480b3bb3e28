"""Friction in pins, as rows among those of friction elements: torques along relative angles."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jfric.errors import ProblemError
from jfric.system.description import AbstractProblem
from jfric.system.linkage import Pin
from jfric.system.planes import refuse_axes


class PinFriction(eqx.Module):
    """The ``k`` pins with friction of a system."""

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
    pins = {label: pin for label, pin in problem.labelled("pin").items() if pin.law is not None}
    if not pins:
        return None
    radius = jnp.stack([jnp.asarray(pin.radius, jnp.result_type(float)) for pin in pins.values()])
    return PinFriction(radius, tuple(map(rows.index, pins)), tuple(map(labels.index, pins)))


def require_pin(problem: AbstractProblem, where: str, pin: Pin) -> None:
    """Raise :class:`ProblemError` for a pin with incomplete friction, or in a system with contacts
    whose impacts would cause impulses of its torque."""
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
            f"{where}.impact: found friction in a pin beside {contact}, whose impacts would go "
            "through it, which no solver can represent; give impact = 'none' for impacts without "
            "an impulse of the pin's torque"
        )
