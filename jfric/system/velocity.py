"""Velocities that a user defines, as data: the degrees of freedom that each moves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

import equinox as eqx

from jfric.system.fields import Scalar, holds, optional, written


def _as_moves(value) -> Any:
    """Names with functions as pairs, which can be compared; numbers become texts."""
    if not isinstance(value, Mapping):
        return value
    return tuple(
        (dof, repr(float(x)) if isinstance(x, int | float) else x) for dof, x in value.items()
    )


class Velocity(eqx.Module):
    """A velocity ``u`` that the user defines: ``dq/dt = S(t, q) u`` with all such velocities.

    ``moves``: rates of degrees of freedom for ``u = 1``, a column of ``S``: each a number, a text
    in degrees of freedom, ``t`` and shared parameters (``"cos(theta)"``), or a JAX function ``(t,
    q, parameters)`` that returns one number. ``kind``: ``"translation"`` for a velocity in m/s,
    ``"rotation"`` in rad/s. ``v`` [m/s or rad/s]: value at the start. If one velocity has it, the
    others that move the same degrees of freedom start with zero, and the rates of these degrees of
    freedom follow.

    Texts name it ``v.NAME`` wherever they may name velocities (``dissipation``, ``sliding``, the
    ``constraint`` of a joint, events), and so do results. Degrees of freedom that no velocity moves
    keep their own rates. As many velocities as degrees of freedom that they move together are
    another description of the same motion (a body in its own frame). Fewer velocities constrain
    the motion (a blade, a wheel that does not slip), by reactions ``reaction.velocity.DOF`` without
    power::

        S^T M S du/dt = S^T (f - M dS/dt u)

    A blade that moves on, and turns by the mass that it carries ahead of it (Chaplygin's sleigh)::

        >>> sleigh = jfric.Problem(
        ...     {"x": "translation", "y": "translation", "theta": "rotation"},
        ...     {
        ...         "lagrangian": jfric.Lagrangian(
        ...             kinetic="0.5*m*((v.x - a*sin(theta)*v.theta)^2"
        ...             " + (v.y + a*cos(theta)*v.theta)^2) + 0.5*J*v.theta^2"
        ...         ),
        ...         "velocity": {
        ...             "forward": jfric.Velocity({"x": "cos(theta)", "y": "sin(theta)"}, v=1.0),
        ...             "turn": jfric.Velocity({"theta": 1}, v=1.0, kind="rotation"),
        ...         },
        ...     },
        ...     parameters={"m": 1.0, "J": 0.5, "a": 0.5},
        ... )
        >>> found = jfric.observe(sleigh, "final.v.forward, final.v.turn").values
        >>> {name: round(float(x), 6) for name, x in found.items()}
        {'final.v.forward': 1.261314, 'final.v.turn': 0.460561}

    Source of the equations: Yu. I. Neimark, N. A. Fufaev, Dynamics of nonholonomic systems (1972).
    """

    moves: tuple[tuple[str, str | Callable], ...] = eqx.field(
        converter=_as_moves, **written("formulas")
    )
    v: Scalar = eqx.field(default=None, **holds("velocity", along="kind", converter=optional))
    kind: Literal["translation", "rotation"] = eqx.field(static=True, default="translation")
