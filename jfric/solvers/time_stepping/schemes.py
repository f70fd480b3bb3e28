"""The schemes: Moreau-Jean, the midpoint rule, and the stabilised midpoint rule."""

from __future__ import annotations

from typing import ClassVar

import equinox as eqx

from jfric.contact.contact_methods import Method
from jfric.numerics.loops import Adjoint
from jfric.solvers.time_stepping.scheme import Scheme
from jfric.solvers.time_stepping.solver import AbstractTimeStepping
from jfric.system.fields import Scalar, scalar


class MoreauJean(AbstractTimeStepping):
    """Moreau-Jean theta scheme with the fixed step ``dt`` [s]::

        M (v+ - v) = h f_theta + W^T P,     q+ = q + h (theta v+ + (1 - theta) v)
        -P_T in N(P_N) Sign(gamma_T+),      0 <= gamma_N+ + e gamma_N  _|_  P_N >= 0

    Loads and linear forces are weighted ``theta`` at the end and ``1 - theta`` at the start of the
    step; ``theta``: 1/2 (second order between switches, no numerical damping) to 1 (damps).
    ``sliding_weight``: weight ``w`` of the end of the step in the friction law, which then holds
    for ``w gamma_T+ + (1 - w) gamma_T``; by default 1. A weight below 1 (``w = theta``, say, so
    that a sticking contact keeps its position) needs laws without separate static limits. The
    normal law holds for contacts whose gap would be closed at the end of the step. No events are
    located: any number of contacts and switches cost the same. The error is of first order in
    ``dt`` through switches and impacts, and a gap closes only to ``dt`` times its velocity.

    Masses and directions that depend on position are those of the predicted position
    ``q + h theta v``; relative velocities at the ends of a step are known to second order, joints
    hold at its end, and positions are projected on joints and lasting contacts. Between switches
    ``theta = 1/2`` thus keeps second order. Friction in a plane obeys its law at the end of the
    step, which makes it first order while its direction turns; :class:`StabilisedMidpoint` is of
    second order there.

    Where friction leaves no solution with finite forces (self-locking, Painleve), there is still
    one with impulses: sliding stops within a step (D. E. Stewart, SIAM Review 42 (2000), section
    5).

    ``method``: method for the contact problem of a step, see
    :func:`jfric.contact.contact_methods.solve_impulses`. ``max_steps``: bound on the number of
    steps. ``max_events``: capacity of the event log. ``adjoint``: see
    :class:`jfric.AbstractSolver`; ``"reverse"`` stores one state for 128 steps (1,024 in small
    systems with one contact), so give a realistic ``max_steps``.

    Do not trust derivatives through changes of mode: they lack the term of the switching time,
    at any step, and may be wrong by a third or in sign. :class:`jfric.EventDriven` gives exact
    ones. The problem of :class:`jfric.Problem`, with an error that falls with ``dt``::

        >>> solution = jfric.simulate(problem, jfric.MoreauJean(dt=1e-3))
        >>> int(solution.steps), bool(abs(solution.final.q[0] - 0.32) < 1e-4)
        (4000, True)

    Source: J. J. Moreau, Unilateral contact and dry friction in finite freedom dynamics (1988);
    M. Jean, The non-smooth contact dynamics method (1999); mechanisms: V. Acary, B. Brogliato,
    Numerical methods for nonsmooth dynamical systems (2008), chapter 10, and for the projection V.
    Acary, Projected event-capturing time-stepping schemes, Comput. Methods Appl. Mech. Engrg. 256
    (2013).
    """

    name: ClassVar[str] = "moreau-jean"

    dt: Scalar = eqx.field(converter=scalar)
    theta: Scalar = eqx.field(converter=scalar, default=0.5)
    sliding_weight: float = eqx.field(static=True, default=1.0)
    method: Method = eqx.field(static=True, default="auto")
    max_steps: int = eqx.field(static=True, default=1_000_000)
    max_events: int = eqx.field(static=True, default=256)
    adjoint: Adjoint = eqx.field(static=True, default="auto")

    @property
    def scheme(self) -> Scheme:
        # The sum gamma_T+ + kappa gamma_T has the sign of the weighted mean.
        kappa = (1.0 - self.sliding_weight) / self.sliding_weight
        return Scheme(self.theta, kappa=kappa, middle=False, stops=False)


class Midpoint(AbstractTimeStepping):
    """Midpoint rule with the fixed step ``dt`` [s], as published, without stabilisation::

        M (v+ - v) = h f(t + h/2, (q + q+)/2, (v + v+)/2) + W^T P,     q+ = q + h (v + v+)/2
        -P_T in N(P_N) Sign(gamma_T + gamma_T+)

    Newton's law for the normals is that of :class:`MoreauJean`. A sticking contact keeps its
    position, but its velocity changes sign in every step instead of being zero: the modes chatter.
    Use :class:`StabilisedMidpoint`, unless you want to see this effect. Laws whose static limit
    differs from the sliding friction need stick at rest and are refused.

    ``method``, ``max_steps``, ``max_events``, ``adjoint`` and derivatives: see :class:`MoreauJean`.
    Source: T. Ligursky, Y. Renard, A well-posed semi-discretization of elastodynamic contact
    problems with friction, Quart. J. Mech. Appl. Math. 64 (2011), as used in V. Janovsky (2015),
    section 5. The velocity never becomes exactly zero::

        >>> solution = jfric.simulate(problem, jfric.Midpoint(dt=1e-3))
        >>> 0.0 < abs(float(solution.final.v[0]))
        True
    """

    name: ClassVar[str] = "midpoint"

    dt: Scalar = eqx.field(converter=scalar)
    method: Method = eqx.field(static=True, default="auto")
    max_steps: int = eqx.field(static=True, default=1_000_000)
    max_events: int = eqx.field(static=True, default=256)
    adjoint: Adjoint = eqx.field(static=True, default="auto")

    @property
    def scheme(self) -> Scheme:
        return Scheme(0.5, kappa=1.0, middle=True, stops=False)


class StabilisedMidpoint(AbstractTimeStepping):
    """Midpoint rule that stops: a sticking contact gets zero sliding velocity.

    The step is that of :class:`Midpoint`, of length ``dt`` [s]; then the sliding velocities of
    sticking contacts are set to zero. Stick is exact, positions do not creep. ``method``,
    ``max_steps``, ``max_events``, ``adjoint`` and derivatives: see :class:`MoreauJean`. Source: V.
    Janovsky, Numerical analysis of a lumped parameter friction model, Applications of Mathematics
    2015, section 5. The mass stands still where it stops::

        >>> solution = jfric.simulate(problem, jfric.StabilisedMidpoint(dt=1e-3))
        >>> float(solution.final.v[0]), bool(abs(solution.final.q[0] - 0.32) < 1e-4)
        (0.0, True)
    """

    name: ClassVar[str] = "stabilised-midpoint"

    dt: Scalar = eqx.field(converter=scalar)
    method: Method = eqx.field(static=True, default="auto")
    max_steps: int = eqx.field(static=True, default=1_000_000)
    max_events: int = eqx.field(static=True, default=256)
    adjoint: Adjoint = eqx.field(static=True, default="auto")

    @property
    def scheme(self) -> Scheme:
        return Scheme(0.5, kappa=1.0, middle=True, stops=True)
