"""Joints by their equations, as data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx

from jfric.system.fields import written
from jfric.system.laws import AbstractLaw, as_law


def _several(constraint) -> Any:
    """One or more functions as a tuple, which can be compared."""
    return tuple(constraint) if isinstance(constraint, (tuple, list)) else (constraint,)


class Joint(eqx.Module):
    """Bilateral constraints ``phi(t, q) = 0``, with reactions of any sign.

    ``constraint``: one or more of them, each a text in degrees of freedom, ``t`` and shared
    parameters (``"x - l*cos(theta)"``), or a JAX function ``(t, q, parameters)`` that returns one
    number. A text that is linear in velocities (``"cos(phi)*v.y - sin(phi)*v.x"``, a blade) holds
    no position. Derivatives are computed. A constraint that depends on time prescribes a motion::

        M dv/dt = f + (dphi/dq)^T lambda

    ``lambda`` is the quantity ``reaction.NAME`` (for several equations ``reaction.NAME.1`` and so
    on), in N where the equation measures a length, in N m where it measures an angle. Positions and
    velocities at the start must meet the equations to a millionth. Equations that follow from
    others leave the motion unique, and set the flag ``REDUNDANT``. ``law`` and ``sliding`` give a
    single equation friction with the magnitude of the reaction as normal force, along a
    displacement as in :class:`jfric.Contact`. Results then show its two sides as contacts,
    ``joint.NAME.positive`` where ``lambda`` is positive, and ``joint.NAME.negative``. A pendulum as
    a point on a circle, which hangs at rest::
    which hangs at rest::

        >>> pendulum = jfric.Problem(
        ...     ["x", "y"],
        ...     {
        ...         "mass": {"x": jfric.Mass("x", 2.0), "y": jfric.Mass("y", 2.0)},
        ...         "load": jfric.Load("y", -20.0),
        ...         "joint": {"rod": jfric.Joint("sqrt(x^2 + y^2) - l")},
        ...     },
        ...     parameters={"l": 0.5},
        ...     initial={"y": jfric.InitialState(q=-0.5)},
        ... )
        >>> found = jfric.observe(pendulum, "final.reaction.rod, max.y").values
        >>> {name: round(float(x), 9) for name, x in found.items()}
        {'final.reaction.rod': -20.0, 'max.y': -0.5}
    """

    constraint: tuple[str | Callable, ...] = eqx.field(
        converter=_several, **written("formula or several")
    )
    law: AbstractLaw | None = eqx.field(converter=as_law, default=None)
    sliding: str | Callable | None = eqx.field(default=None, **written("formula"))
