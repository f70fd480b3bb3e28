"""Springs in series with sliders: hysteresis that does not depend on the rate, as pure data."""

from __future__ import annotations

import abc
from collections.abc import Iterator
from typing import ClassVar, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.core import eval_context
from jaxtyping import Array, Float

from jfric.errors import ProblemError, nearest
from jfric.system.description import AbstractProblem, element_label
from jfric.system.direction import Direction, as_direction
from jfric.system.fields import Scalar, holds, written


class Branches(NamedTuple):
    """Springs in series with sliders, in parallel.

    ``k``, ``slip`` (N,): stiffnesses [N/m or N m/rad], and elongations at which the sliders slip
    [m or rad]. ``residual``: stiffness of a parallel spring. ``z0``: elongation of all springs
    at the start. Example: see :class:`jfric.Iwan`.
    """

    k: Float[Array, " N"]
    slip: Float[Array, " N"]
    residual: Float[Array, ""]
    z0: Float[Array, ""]


class AbstractHysteresis(eqx.Module):
    """Springs in series with sliders, in parallel along one direction.

    ``direction``: ``w``, as in :class:`jfric.Friction`. A user's class defines ``sliders``, their
    number, and ``branches``. Example: see :class:`jfric.Iwan`.
    """

    direction: eqx.AbstractVar[Direction]
    #: Name of the field with the states at the start.
    starts: ClassVar[str] = "z0"
    symbol: ClassVar[str] = "spring and slider"

    @property
    @abc.abstractmethod
    def sliders(self) -> int:
        """Number of sliders."""

    @abc.abstractmethod
    def branches(self) -> Branches:
        """The springs and sliders."""

    def problems(self) -> Iterator[tuple[str, str]]:
        """Field and message for each number that the element cannot have; numbers are known."""
        return iter(())


class Jenkins(AbstractHysteresis):
    """Jenkins element: a spring in series with a slider, with a massless node between them.

    ``x = w^T q`` is the elongation of both, ``z`` that of the spring; the force along ``w`` is
    ``-k z``::

        z' = x'   while |k z| <= R (stick),      k z = R sign(x')   while the slider slips

    ``direction``: ``w``, as in :class:`jfric.Friction`; it may end at a support
    (:class:`jfric.Base`). ``k`` [N/m or N m/rad] and ``R`` [N or N m]: positive. ``z0`` [m or rad]:
    ``z`` at the start, ``|k z0| <= R``. The force does not depend on the rate; a cycle of the
    amplitude ``X > R/k`` takes the energy ``4 R (X - R/k)``. Changes between stick and slip are
    events, the motion between them is exact. Results have ``z`` as the quantity ``z.jenkins``.

    Source: W. D. Iwan, "A distributed-element model for hysteresis and its steady-state dynamic
    response", J. Applied Mechanics 33 (1966); the element is due to G. M. Jenkins (1962). A support
    that moves to 0.03 m pulls with the limit::

        >>> pulled = jfric.Problem(
        ...     ["u"],
        ...     {
        ...         "mass": jfric.Mass("u", 1.0),
        ...         "base": {"hand": jfric.Base(jfric.PiecewiseLinear([0.0, 1.0], [0.0, 0.03]))},
        ...         "spring": jfric.Spring("u", 1e4),
        ...         "jenkins": jfric.Jenkins(("u", "hand"), k=100.0, R=2.0),
        ...     },
        ... )
        >>> found = jfric.observe(pulled, "final.z.jenkins, final.force.jenkins").values
        >>> {name: round(float(x), 9) for name, x in found.items()}
        {'final.force.jenkins': -2.0, 'final.z.jenkins': 0.02}
    """

    direction: Direction = eqx.field(converter=as_direction)
    k: Scalar = eqx.field(**holds("stiffness", above=0.0))
    R: Scalar = eqx.field(**holds("force", above=0.0))
    z0: Scalar = eqx.field(default=0.0, **holds("length"))
    shown: ClassVar[tuple[str, ...]] = ("k", "R")

    @property
    def sliders(self) -> int:
        return 1

    def branches(self) -> Branches:
        return Branches(self.k[None], (self.R / self.k)[None], jnp.zeros_like(self.k), self.z0)


class JenkinsCoupling(eqx.Module):
    """Stiffness between the springs of two Jenkins elements, whose nodes have no mass.

    ``elements``: names of two :class:`Jenkins` elements ``i`` and ``j``; ``k`` [N/m, N m/rad, or N
    where one of them turns], of either sign: the spring of each also pulls with ``k`` times the
    elongation of the other::

        F_i = k_i z_i + k z_j,   F_j = k_j z_j + k z_i,   |F_i| <= R_i,   |F_j| <= R_j

    The matrix of all stiffnesses must be positive definite, so that the motion is unique. A spring
    ``c`` between the nodes of two elements is the coupling ``-c``, with ``c`` added to the ``k`` of
    both; :func:`jfric.eliminate_massless` finds these numbers.

    Source: static condensation, see :func:`jfric.eliminate_massless`. A support pulls two elements
    as far as 0.03 m; the spring of the one that slips with 2 N relieves the other::

        >>> own = jfric.Jenkins(("u", "hand"), k=100.0, R=2.0)
        >>> pulled = jfric.Problem(
        ...     ["u"],
        ...     {
        ...         "mass": jfric.Mass("u", 1.0),
        ...         "base": {"hand": jfric.Base(jfric.PiecewiseLinear([0.0, 1.0], [0.0, 0.03]))},
        ...         "friction": jfric.Friction("u", limit=1e3),
        ...         "jenkins": {"a": own, "b": jfric.Jenkins(("u", "hand"), k=100.0, R=9.0)},
        ...         "jenkins_coupling": jfric.JenkinsCoupling(("a", "b"), k=-20.0),
        ...     },
        ... )
        >>> found = jfric.observe(pulled, "final.z.jenkins.a, final.z.jenkins.b").values
        >>> {name: round(float(x), 9) for name, x in found.items()}
        {'final.z.jenkins.a': 0.026, 'final.z.jenkins.b': 0.03}
    """

    elements: tuple[str, ...] = eqx.field(converter=tuple, **written("texts"))
    k: Scalar = eqx.field(**holds("stiffness"))


class MasingSpring(AbstractHysteresis):
    """Spring with hysteresis whose initial curve goes through the points ``(x[i], F[i])``.

    Loading from rest follows the curve from the origin, ``F(-x) = -F(x)``, and beyond the last
    point the last line. After a reversal it follows the same curve scaled by two, until it meets a
    branch that was left before (Masing's rules). The element consists of springs in series with
    sliders, in parallel (generalised Maxwell slip), of which one slips at each ``x[i]`` but the
    last, and a spring for the last line.

    ``direction``: ``w``, as in :class:`jfric.Friction`. ``x`` (p,) [m or rad] and ``F`` (p,)
    [N or N m]: increasing strictly from above zero, with slopes that fall and are not negative.
    ``z0`` [m or rad]: elongation of the springs at the start; those that slip before it start at
    their limits.

    Source: G. Masing, "Eigenspannungen und Verfestigung beim Messing", Proc. 2nd Int. Congress of
    Applied Mechanics (1926). The last slope is that of the parallel spring::

        >>> spring = jfric.MasingSpring("u", x=[0.01, 0.03], F=[2.0, 3.0])
        >>> branches = spring.branches()
        >>> [round(float(k), 9) for k in (branches.k[0], branches.residual)]
        [150.0, 50.0]
    """

    direction: Direction = eqx.field(converter=as_direction)
    x: Scalar = eqx.field(**holds("length", above=0.0, form="list"))
    F: Scalar = eqx.field(**holds("force", above=0.0, form="list"))
    z0: Scalar = eqx.field(default=0.0, **holds("length"))

    @property
    def sliders(self) -> int:
        return self.x.shape[0] - 1

    def branches(self) -> Branches:
        slopes = jnp.diff(self.F, prepend=0.0) / jnp.diff(self.x, prepend=0.0)
        return Branches(slopes[:-1] - slopes[1:], self.x[:-1], slopes[-1], self.z0)

    def problems(self):
        x, F = np.asarray(self.x), np.asarray(self.F)
        if x.ndim != 1 or x.shape != F.shape or x.size < 2:
            found = f"found {F.size} forces for {x.size} elongations"
            yield "F", f"{found}, as many of both are needed, and at least two"
            return
        if np.any(np.diff(x, prepend=0.0) <= 0):
            yield "x", f"found {x.tolist()}, must increase from above zero"
        slopes = np.diff(F, prepend=0.0) / np.diff(x, prepend=0.0)
        if np.any(np.diff(slopes) >= 0) or slopes[-1] < 0:
            found = f"found the slopes {', '.join(f'{s:g}' for s in slopes)} from the origin on"
            yield "F", f"{found}, must fall from point to point and not be negative"


class MaxwellSlip(AbstractHysteresis):
    """Jenkins elements in parallel: generalised Maxwell slip with elastic branches.

    The force along ``w`` is the sum of those of ``N`` elements with the stiffnesses ``k`` (N,)
    [N/m or N m/rad] and limits ``R`` (N,) [N or N m], all positive, in any order. Whatever their
    number, only two events can be the next one. ``direction``: ``w``, as in
    :class:`jfric.Friction`; ``z0`` [m or rad]: elongation of the springs at the start; those whose
    limit is below it start at the limit. Results have ``z.NAME.1`` and so on, in the order of
    slipping.

    Source: F. Al-Bender, V. Lampaert, J. Swevers, "The generalized Maxwell-slip model", IEEE Trans.
    Automatic Control 50 (2005), without its rate-dependent part::

        >>> jfric.MaxwellSlip("u", k=[10.0, 20.0], R=[1.0, 3.0]).sliders
        2
    """

    direction: Direction = eqx.field(converter=as_direction)
    k: Scalar = eqx.field(**holds("stiffness", above=0.0, form="list"))
    R: Scalar = eqx.field(**holds("force", above=0.0, form="list"))
    z0: Scalar = eqx.field(default=0.0, **holds("length"))

    @property
    def sliders(self) -> int:
        return self.k.shape[0]

    def branches(self) -> Branches:
        return Branches(self.k, self.R / self.k, jnp.zeros_like(self.k[0]), self.z0)

    def problems(self):
        k, R = np.asarray(self.k), np.asarray(self.R)
        if k.ndim != 1 or k.shape != R.shape or k.size == 0:
            found = f"found {R.size} limits for {k.size} stiffnesses"
            yield "R", f"{found}, one for each is needed"


class Iwan(AbstractHysteresis):
    """Iwan's model of a joint with the four parameters of Segalman, discretised.

    Sliders of the strengths ``phi`` with the density ``R phi^chi`` on ``(0, phi_max)`` and a mass
    point ``S`` at ``phi_max``, each in series with a spring of the stiffness 1::

        F(x) = int_0^x rho phi dphi + x int_x^phi_max rho dphi + S min(x, phi_max)

    ``direction``: ``w``, as in :class:`jfric.Friction`.
    ``K_T`` [N/m or N m/rad]: stiffness of the stuck joint, ``F_S`` [N or N m]: force of macroslip,
    ``chi`` (``-1 < chi``, the loss in microslip grows with the amplitude to the power ``3 + chi``)
    and ``beta >= 0`` (ratio of the stiffness of the point to that of the density).
    ``count``: number of sliders. ``(0, phi_max)`` is divided into ``count - 1`` equal parts, and
    each slider has the stiffness and the strength of its part, so that the force is exact at the
    ends of parts; the force between them and the loss have errors of second order. The last slider
    is the mass point.
    ``z0`` [m or rad] as in :class:`jfric.MaxwellSlip`.

    Source: D. J. Segalman, "A four-parameter Iwan model for lap-type joints", J. Applied Mechanics
    72 (2005)::

        >>> joint = jfric.Iwan("u", K_T=2.0, F_S=3.0, chi=-0.1, beta=0.1, count=40)
        >>> branches = joint.branches()
        >>> round(float(branches.k.sum()), 9), round(float(branches.k @ branches.slip), 9)
        (2.0, 3.0)
        >>> round(float(joint.phi_max), 9)
        2.876146789
    """

    direction: Direction = eqx.field(converter=as_direction)
    K_T: Scalar = eqx.field(**holds("stiffness", above=0.0))
    F_S: Scalar = eqx.field(**holds("force", above=0.0))
    chi: Scalar = eqx.field(**holds("pure number", above=-1.0))
    beta: Scalar = eqx.field(**holds("pure number", at_least=0.0))
    count: int = eqx.field(default=40, **written("count"))
    z0: Scalar = eqx.field(default=0.0, **holds("length"))

    @property
    def sliders(self) -> int:
        return self.count

    @property
    def phi_max(self):
        """Displacement at which the last slider slips [m or rad]."""
        ratio = (self.chi + 1.0) / (self.chi + 2.0)
        return self.F_S * (1.0 + self.beta) / (self.K_T * (self.beta + ratio))

    def branches(self) -> Branches:
        c, b, top = self.chi, self.beta, self.phi_max
        u = jnp.linspace(0.0, 1.0, self.count)
        weight = self.F_S / (top * (b + (c + 1.0) / (c + 2.0)))
        k, moment = (jnp.diff(u ** (c + p)) for p in (1.0, 2.0))
        slip = top * (c + 1.0) / (c + 2.0) * moment / k
        k, slip = jnp.append(weight * k, weight * b), jnp.append(slip, top)
        return Branches(k, slip, jnp.zeros_like(weight), self.z0)

    def problems(self):
        if self.count < 2:
            yield "count", f"found {self.count}, needed are at least 2"


#: Sections of springs in series with sliders.
HYSTERESIS: dict[str, type[AbstractHysteresis]] = {
    "jenkins": Jenkins,
    "maxwell_slip": MaxwellSlip,
    "masing_spring": MasingSpring,
    "iwan": Iwan,
}

#: Part of a slider's limit by which its spring may be beyond it, for rounding.
ROUNDING = 1e-9
#: Smallest eigenvalue of the matrix of stiffnesses, scaled to a diagonal of ones.
SINGULAR = 1e-12


def require_coupling(problem: AbstractProblem, where: str, coupling: JenkinsCoupling) -> None:
    """Raise :class:`ProblemError` unless a coupling names two different elements that exist."""
    known = problem.section("jenkins")
    if len(coupling.elements) != 2 or len(set(coupling.elements)) != 2:
        raise ProblemError(
            f"{where}.elements: found {list(coupling.elements)}, needed are two different "
            "elements of [jenkins]"
        )
    for name in coupling.elements:
        if name not in known:
            raise ProblemError(
                f"{where}.elements: no element jenkins.{name}{nearest(name, known)}; "
                f"declared are {', '.join(known) or 'none'}"
            )


def springs_of_sliders(problem: AbstractProblem) -> tuple[Array, Array, Array]:
    """Stiffnesses (j, j) of the springs of Jenkins elements and their couplings, elongations of the
    springs at the start (j,) and limits of the sliders (j,)."""
    own: dict[str, Jenkins] = dict(problem.section("jenkins"))
    names = list(own)
    k, z0, limits = (jnp.stack([getattr(x, f) for x in own.values()]) for f in ("k", "z0", "R"))
    K = jnp.diag(k)
    for coupling in problem.section("jenkins_coupling").values():
        i, j = (names.index(name) for name in coupling.elements)
        K = K.at[i, j].add(coupling.k).at[j, i].add(coupling.k)
    return K, z0, limits


def smallest_eigenvalue(K) -> Float[Array, ""]:
    """Smallest eigenvalue of the stiffnesses ``K`` (j, j), scaled to a diagonal of ones."""
    size = 1.0 / jnp.sqrt(jnp.diagonal(K))
    return jnp.linalg.eigvalsh(K * size[:, None] * size[None, :])[0]


def require_springs_within_limits(problem: AbstractProblem) -> None:
    """Raise :class:`ProblemError` where springs of Jenkins elements start beyond the limits of
    their sliders, or where coupled ones are not held; ``problem``: resolved, with numbers."""
    own: dict[str, Jenkins] = dict(problem.section("jenkins"))
    if not own:
        return
    with eval_context():
        K, z0, _ = (np.asarray(x) for x in springs_of_sliders(problem))
        smallest = float(smallest_eigenvalue(K))
    if smallest < SINGULAR:
        raise ProblemError(
            "jenkins_coupling: the matrix of the stiffnesses of jenkins and jenkins_coupling must "
            f"be positive definite, found the eigenvalue {smallest:.3g} (scaled to a diagonal of "
            "ones); make the couplings smaller"
        )
    joined = {name for x in problem.section("jenkins_coupling").values() for name in x.elements}
    for (name, element), force in zip(own.items(), K @ z0, strict=True):
        limit = float(element.R)
        if abs(force) <= limit * (1.0 + ROUNDING):
            continue
        where = element_label("jenkins", name)
        if name not in joined:
            raise ProblemError(
                f"{where}.z0: found {float(element.z0):g}, the slider slips at "
                f"{limit / float(element.k):g} (R/k); start there or nearer to zero"
            )
        raise ProblemError(
            f"{where}.z0: found {float(element.z0):g}, where the springs pull with {abs(force):g} "
            f"and the slider slips at {limit:g} (R); start nearer to zero"
        )
