"""States and forces by formulas that a user writes, such as a pressure or a magnet's pull."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, ClassVar, Literal, Self

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from jfric.system.description import AbstractProblem
from jfric.system.direction import Direction, as_direction
from jfric.system.fields import Scalar, holds, scalar, texts_by_name, written
from jfric.system.formula import read_formula
from jfric.system.line_elements import AbstractForce
from jfric.system.state_function import ChosenVelocities, chosen_velocities


class State(eqx.Module):
    """A state with an equation of its own, ``z' = rate(t, q, v, z, lambda)``, and its force.

    ``rate``: a text in degrees of freedom (``x``), velocities (``v.x``), states of elements by name
    (``z.NAME``), reactions and sliding velocities of contacts (``lambda_t.NAME``,
    ``lambda_n.NAME``, ``slip.NAME``), time ``t`` and shared parameters; or a JAX function ``(t, q,
    v, z, parameters)`` of positions and velocities (n,) and of ``z`` and ``parameters``, numbers by
    name, or ``(t, q, v, z, parameters, contacts)`` with the numbers of contacts by those names. The
    rate must be smooth where no contact changes its mode; impulses of impacts have no effect on it.
    ``z0``: the state at the start; ``unit``: its SI unit as text (``"Pa"``). ``force`` [N or N m],
    in the same form, acts along ``direction`` (as in :class:`jfric.Friction`); it cannot depend on
    contacts. ``stiff``: whether steps are implicit, as for :class:`jfric.LuGre`. Results have
    ``z.NAME``. Air that
    leaks from a cylinder::

        >>> cylinder = jfric.Problem(
        ...     ["x"],
        ...     {
        ...         "mass": jfric.Mass("x", 2.0),
        ...         "state": {
        ...             "p": jfric.State(
        ...                 rate="-z.p/T", z0=3e5, unit="Pa", force="A*z.p", direction="x"
        ...             )
        ...         },
        ...     },
        ...     parameters={"T": 0.5, "A": 1e-4},
        ... )
        >>> found = jfric.observe(cylinder, "final.z.p, final.v.x").values
        >>> {name: round(float(x), 6) for name, x in found.items()}
        {'final.v.x': 6.484985, 'final.z.p': 40600.584971}

    The heat of a brake, with the power of friction ``-lambda_t.brake*slip.brake``, is the kinetic
    energy that is lost::

        >>> braked = jfric.Problem(
        ...     ["x"],
        ...     {
        ...         "mass": jfric.Mass("x", 2.0),
        ...         "friction": {"brake": jfric.Friction("x", limit=4.0)},
        ...         "state": {"heat": jfric.State("-lambda_t.brake*slip.brake", unit="J")},
        ...     },
        ...     initial={"x": jfric.InitialState(v=3.0)},
        ...     time=2.0,
        ... )
        >>> round(float(jfric.observe(braked, "final.z.heat").values["final.z.heat"]), 9)
        9.0
    """

    rate: str | Callable = eqx.field(**written("formula"))
    z0: Scalar = eqx.field(converter=scalar, default=0.0)
    unit: str = eqx.field(default="", **written("text"))
    force: str | Callable | None = eqx.field(default=None, **written("formula"))
    direction: Direction | None = eqx.field(converter=as_direction, default=None)
    stiff: bool = eqx.field(default=False, **written("flag"))

    #: Name of the field with the state at the start.
    starts: ClassVar[str] = "z0"

    def start(self):
        """The state at the start."""
        return getattr(self, self.starts)


#: Quantities of a contact that a rate may name: friction, normal force, sliding velocity.
OF_CONTACTS = ("lambda_t", "lambda_n", "slip")


def reads_contacts(rate: str | Callable) -> bool:
    """Whether a rate depends on contacts."""
    if callable(rate):
        return len(inspect.signature(rate).parameters) == 6
    names = read_formula(rate).names.values()
    return any(name.partition(".")[0] in OF_CONTACTS for name in names)


class Force(AbstractForce):
    """A smooth force ``F(t, q, v, z)`` along a direction, by a formula.

    ``direction``: ``w``, as in :class:`jfric.Friction`. ``F`` [N or N m]: a text in degrees of
    freedom (``x``), velocities (``v.x``), states of elements by name (``z.NAME``), time ``t`` and
    shared parameters; or a JAX function ``(t, q, v, z, parameters)`` of positions and velocities
    (n,) and of ``z`` and ``parameters``, numbers by name. Friction, stops and other forces with
    corners are elements of their own, whose events are exact. A magnet that pulls the harder, the
    nearer the armature is to it, at rest where a spring balances it::

        >>> relay = jfric.Problem(
        ...     ["x"],
        ...     {
        ...         "mass": jfric.Mass("x", 0.1),
        ...         "spring": jfric.Spring("x", 4000.0),
        ...         "force": {"magnet": jfric.Force("x", "C/(gap - x)^2")},
        ...     },
        ...     parameters={"C": 64e-6, "gap": 5e-3},
        ...     initial={"x": 1e-3},
        ... )
        >>> found = jfric.observe(relay, "max.force.magnet, max.x").values
        >>> {name: round(float(x), 6) for name, x in found.items()}
        {'max.force.magnet': 4.0, 'max.x': 0.001}
    """

    direction: Direction = eqx.field(converter=as_direction)
    F: str | Callable = eqx.field(**written("formula"))
    symbol: ClassVar[str] = "load"

    def bound(self, problem):
        return BoundForce.of(problem, self)


class AbstractBound(AbstractForce):
    """An element with formulas in a resolved problem, whose parameters they may name."""

    parameters: dict[str, Any]
    chosen: tuple[ChosenVelocities, ...]
    n_dofs: int = eqx.field(static=True)

    @classmethod
    def of(cls, problem: AbstractProblem, *own: Any) -> Self:
        """An element, the first of its ``own`` fields, in a resolved ``problem``."""
        return cls(
            dict(problem.parameters), tuple(chosen_velocities(problem)), len(problem.dofs), *own
        )

    def value(self, what: str | Callable, axes, t, q, v, contacts: dict[str, Any] | None = None):
        """Value of the formula ``what`` at a state; ``contacts``: numbers by name."""
        n = self.n_dofs
        states = {axis.removeprefix("z."): x for axis, x in zip(axes[n:], v[n:], strict=True)}
        if callable(what):
            others = [] if contacts is None else [contacts]
            found = what(t, q[:n], v[:n], states, self.parameters, *others)
            return jnp.asarray(found, q.dtype)
        known = dict(self.parameters) | {"t": t} | dict(zip(axes[:n], q[:n], strict=True))
        known |= {f"v.{axis}": x for axis, x in zip(axes[:n], v[:n], strict=True)}
        for own in self.chosen:
            u = own.of(t, q[:n], v[:n])
            known |= {f"v.{name}": x for name, x in zip(own.names, u, strict=True)}
        known |= {f"z.{name}": x for name, x in states.items()} | (contacts or {})
        value = read_formula(what).value(known.__getitem__, self.parameters)
        return jnp.asarray(value, q.dtype)


class BoundForce(AbstractBound):
    """A :class:`Force` of a resolved problem."""

    element: Force

    def force(self, axes: tuple[str, ...], t, q, v) -> Float[Array, " n"]:
        return self.element.direction.vector(axes) * self.value(self.element.F, axes, t, q, v)


class BoundState(AbstractBound):
    """A state of a resolved problem as forces on coordinates, see :mod:`jfric.system.bristles`."""

    element: State
    place: int = eqx.field(static=True)

    @property
    def reacts(self) -> bool:
        """Whether the rate depends on contacts, and is then no part of :meth:`force`."""
        return reads_contacts(self.element.rate)

    def rate(self, axes: tuple[str, ...], t, q, v, contacts: dict[str, Any]):
        """The rate of a state that :attr:`reacts`; ``contacts``: numbers by name."""
        return self.value(self.element.rate, axes, t, q, v, contacts)

    def force(self, axes: tuple[str, ...], t, q, v) -> Float[Array, " n"]:
        """Forces on all coordinates; on that of the state its rate."""
        found = jnp.zeros_like(q)
        if not self.reacts:
            rate = self.value(self.element.rate, axes, t, q, v)
            found = found.at[self.place].set(rate)
        if self.element.force is None or self.element.direction is None:
            return found
        w = self.element.direction.vector(axes)
        return found + w * self.value(self.element.force, axes, t, q, v)


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
        converter=texts_by_name, **written("formulas")
    )
    v: Scalar = eqx.field(default=None, **holds("velocity", along="kind"))
    kind: Literal["translation", "rotation"] = eqx.field(static=True, default="translation")
