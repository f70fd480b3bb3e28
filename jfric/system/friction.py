"""Friction with a given normal force, along a line or in a plane."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple, Self

import equinox as eqx

from jfric.system.direction import Direction, as_direction
from jfric.system.fields import Scalar, holds, written
from jfric.system.functions import AbstractFunction, as_function
from jfric.system.laws import AbstractLaw, Coulomb, as_law
from jfric.system.position_factor import AbstractPositionFactor


def as_plane(value) -> Any:
    """Directions of a plane; other values are left to the checks of a problem."""
    return tuple(map(as_direction, value)) if isinstance(value, (list, tuple)) else value


def as_belt(value) -> Any:
    """A velocity, or one for each direction of a plane."""
    return (
        tuple(map(as_function, value)) if isinstance(value, (list, tuple)) else as_function(value)
    )


def as_load(value) -> Any:
    """Names of elements with factors, from one name, a list of names or a mapping."""
    if isinstance(value, (list, tuple)):
        return Direction(tuple(value), (1,) * len(value))
    return as_direction(value)


def along_plane(element) -> list[tuple[Any, dict[str, Any]]]:
    """The directions of the plane of an element, spin included, each with its other fields."""
    along, spin = element.plane, getattr(element, "spin", None)
    own: dict[str, Any] = {"plane": None}
    if spin is not None:
        along, own["spin"] = (*along, spin), None
    belts: Any = element.belt if element.belt is not None else (None,) * len(along)
    found = []
    for i, (direction, belt) in enumerate(zip(along, belts, strict=True)):
        law = None if element.law is None else element.law.along(i)
        found.append((direction, own | {"belt": belt, "law": law}))
    return found


class Growth(NamedTuple):
    """Part ``kappa |load|`` of the normal force of friction; the sign of the load alone where there
    is no ``kappa``."""

    #: Name of the sign in results, after that of the friction.
    name: str
    load: Direction
    kappa: Any
    #: Whether the part fades as sliding gets faster, like :attr:`Friction.fade`.
    fades: bool = False
    #: Direction along which the forces of the load are measured, if not each along its own.
    along: Direction | None = None


class Friction(eqx.Module):
    """Friction with a given normal force: ``lambda_T in -mu N Sign(gamma_T)``.

    ``gamma_T = w^T v - belt``. Exactly one of ``N`` (normal force [N], a function of time, never
    negative) and ``limit`` (the friction limit itself [N or N m]; the law's coefficients are then
    factors on it, 1 by default) is given.

    ``reaction``: the direction ``r`` in which ``lambda_T`` acts on the degrees of freedom, with the
    force ``r lambda_T``; by default ``w``. Relays are such elements: ``x' = A x + B lambda``,
    ``y = C x`` has ``C`` for ``w`` and ``B`` for ``r``. ``w^T M^-1 r`` must be positive.

    ``load``, in place of both or in addition to one: forces of other elements whose sum increases
    friction, as a name (``"load.motor"``), a list of names, or names with factors
    (``{"load.motor": 1, "load.external": -1}``)::

        N = N(t) + kappa |load|        or  limit(t) + kappa |load|

    This friction is decided like any other, with the law's coefficients as factors on it. The
    elements are loads, springs, dampers, springs with clearance or a diagram, stops, and nonlinear
    elements along one direction, each with its force along its own direction. ``kappa``: not
    negative, by default 1; as part of a limit ``kappa >= 1`` locks the joint against the load
    alone. With loads made of straight lines in time the whole is a given normal force, which every
    solver takes. The solvers event-driven (the sign of the load is an event,
    ``friction.NAME.load``) and smoothed take any load. Friction changes reactions; friction on a
    reaction therefore belongs to a joint (:class:`jfric.Joint`) or contact, next to this element
    for the part that does not grow.

    ``position``: a factor on all of this friction that depends on the displacement along
    ``direction``, :class:`jfric.laws.PeriodicFactor` or :class:`jfric.laws.SplineFactor`::

        N = f(s) (N(t) + kappa |load|),    s = w^T q

    for the solvers event-driven and smoothed, and for fits.

    ``direction``: the name of a degree of freedom, a pair of names (relative motion), a mapping
    from names to coefficients, or a :class:`jfric.Direction`. ``sliding``, in its place: a
    displacement that depends on position, as in :class:`jfric.Contact`. ``belt``: velocity of the
    partner's surface [m/s or rad/s], a number or a function of time. ``law``:
    :mod:`jfric.laws`; a number is Coulomb's coefficient.

    ``plane``, in place of ``direction``: two directions, for friction in a plane. With
    ``gamma_T = (w_1^T v, w_2^T v) - belt`` and the mean size of the coefficients ``mu``::

        stick    |lambda_T| <= mu_s N,    sliding    lambda_T = -mu_d(|gamma_T|) N gamma_T/|gamma_T|

    The two directions are at right angles to each other in this plane. With a pair of coefficients,
    one for each direction, limits form an ellipse, and friction dissipates as much as it can: with
    ``E = diag(mu_1, mu_2)`` stick lasts while ``|E^-1 lambda_T| <= N``, and
    sliding feels ``lambda_T = -N E^2 gamma_T / |E gamma_T|``. ``belt`` is then a pair, too. Results
    call the two components ``friction.1`` and ``friction.2``. Source for the ellipse: S. Goyal,
    A. Ruina, J. Papadopoulos, Planar sliding with dry friction, Wear 143 (1991).

    ``spin``, in addition to ``plane``: an angle, for the law :class:`jfric.laws.Contensou` of a
    disc whose centre slips in the plane while it turns; the torque is the component ``friction.3``,
    and a ``belt`` has three velocities, the last an angular one.

    Raises (in :class:`jfric.Problem`) :class:`jfric.ProblemError` unless there is one of ``N`` and
    ``limit``, or a load, and for negative values. A brake on the relative motion of two bodies::

        >>> pressed = jfric.Steps([1.0], [0.0, 20.0])
        >>> brake = jfric.Friction(("a", "b"), jfric.Coulomb(0.3), N=pressed)
        >>> float(brake.normal_force(2.0)), brake.redirected
        (20.0, False)

    A block on a table, with more friction along ``x`` than along ``y``::

        >>> pad = jfric.Friction(plane=["x", "y"], law=jfric.Coulomb([0.4, 0.2]), N=10.0)
        >>> [float(row.law.mu) for row in pad.rows()]
        [0.4, 0.2]

    A puck that slips and spins on ice: two components of a force, and a torque::

        >>> puck = jfric.Friction(
        ...     plane=["x", "y"], spin="theta", law=jfric.laws.Contensou(0.1, 0.038), N=1.7
        ... )
        >>> len(puck.rows())
        3

    A gear that loses 0.1 N m and a fifth of the torque it carries, which locks up to 1.625 N m::

        >>> gear = jfric.Friction(
        ...     "q", limit=0.1, kappa=0.2, load={"load.motor": 1.0, "load.weight": -1.0}
        ... )
        >>> lift = jfric.Problem(
        ...     {"q": "rotation"},
        ...     {
        ...         "mass": jfric.Mass("q", 1.0),
        ...         "load": {"motor": jfric.Load("q", 1.62), "weight": jfric.Load("q", -1.0)},
        ...         "friction": gear,
        ...     },
        ... )
        >>> float(jfric.simulate(lift).final.q[0])
        0.0
    """

    direction: Direction | None = eqx.field(converter=as_direction, default=None)
    law: AbstractLaw | None = eqx.field(converter=as_law, default=None)
    N: AbstractFunction | None = eqx.field(
        converter=as_function, default=None, **holds("force", at_least=0.0, converter=None)
    )
    limit: AbstractFunction | None = eqx.field(
        converter=as_function, default=None, **holds("force", at_least=0.0, converter=None)
    )
    belt: AbstractFunction | tuple[AbstractFunction, ...] | None = eqx.field(
        default=None, **holds("velocity", form="belt", converter=as_belt)
    )
    reaction: Direction | None = eqx.field(converter=as_direction, default=None)
    sliding: str | Callable | None = eqx.field(default=None, **written("formula"))
    plane: tuple[Direction, ...] | None = eqx.field(
        default=None, **holds(form="plane", converter=as_plane)
    )
    load: Direction | None = eqx.field(default=None, **holds(form="elements", converter=as_load))
    kappa: Scalar = eqx.field(default=None, **holds(at_least=0.0))
    position: AbstractPositionFactor | None = eqx.field(
        default=None, **holds("length", form="factor", converter=None)
    )
    spin: Direction | None = eqx.field(converter=as_direction, default=None)
    symbol: ClassVar[str] = "slider"
    shown: ClassVar[tuple[str, ...]] = ("mu", "mu_s", "limit")

    def rows(self) -> list[Self]:
        """One element for each direction of sliding: this one, or those of a plane."""
        if self.plane is None:
            return [self]
        return [replace(self, direction=d, **own) for d, own in along_plane(self)]

    def growth(self) -> list[Growth]:
        """Parts of the normal force that grow with loads."""
        if self.load is None:
            return []
        return [Growth("load", self.load, 1.0 if self.kappa is None else self.kappa)]

    @property
    def fade(self) -> AbstractLaw | None:
        """Law whose coefficient, one at rest, is a factor on parts of the normal force."""
        return None

    @property
    def fading(self) -> Any:
        """The constant part of the normal force with this factor."""
        return 0.0

    @property
    def squares(self) -> tuple[Any, Any] | None:
        """Coefficients of the squares of two loads, whose signs and sum :meth:`growth` lists."""
        return None

    @property
    def redirected(self) -> bool:
        """Whether the reaction has a direction of its own, by structure."""
        r, w = self.reaction, self.direction
        if r is None or w is None:
            return False
        return r.signs is None or (r.names, r.signs) != (w.names, w.signs)

    @property
    def coefficients(self) -> AbstractLaw:
        """The law, or the unit law of a friction limit."""
        return self.law if self.law is not None else Coulomb(1.0)

    @property
    def normal_force(self) -> AbstractFunction:
        """Normal force ``N(t)``, or the limit (the coefficients are then factors); zero where all
        friction comes from a load."""
        given = self.N if self.N is not None else self.limit
        return given if given is not None else as_function(0.0)
