"""The piece of a mode whose mass matrix or directions depend on position, or that has joints.

Accelerations, reactions, relative velocities and gaps follow from the equations of the mode with
the matrices of each instant. ``o`` in ``z = (q, v, w, o)`` contains all of them, and rows over
``z`` select one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import NamedTuple, Self, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jfric.contact import rules
from jfric.numerics.choice import select
from jfric.numerics.isolation import LEADING
from jfric.numerics.linear_algebra import matmul, matvec
from jfric.solvers.event_driven.guards import Quantities
from jfric.solvers.event_driven.implicit import Sides, solved
from jfric.solvers.event_driven.inputs import Given, basis_after
from jfric.solvers.event_driven.linear_system import LinearSystem
from jfric.solvers.event_driven.mode_equations import (
    ModeEquations,
    coupling_in_mode,
    forces_in_mode,
    limits_of_pins,
    mode_equations,
)
from jfric.solvers.event_driven.prepared import Prepared
from jfric.solvers.event_driven.smooth_piece import (
    SmoothPiece,
    by_velocity,
    curved_forces,
    rates_of,
)
from jfric.solvers.event_driven.state import Onset, State, kinetic
from jfric.system.mechanics import Mechanics
from jfric.system.varying import AbstractEnergies


class _Moved(NamedTuple):
    """Motion and reactions at an instant, of joints one set that causes this motion."""

    now: Prepared
    a: Float[Array, " n"]
    reaction: Float[Array, " m"]
    joint: Float[Array, " k"] | None
    relative: Float[Array, " m"]
    demanded: Float[Array, " m"]
    normal: Float[Array, " nf"]
    curved: Float[Array, " l"]


Piece = TypeVar("Piece", bound="VaryingPiece")


class VaryingPiece(SmoothPiece):
    """Smooth piece of a mode with equations whose matrices depend on position."""

    #: Extra constant force.
    extra: Float[Array, " n"]
    #: Accelerations alone, and :meth:`instant`, each traced once for all stages and nodes.
    compiled: tuple[Callable, Callable] | None = eqx.field(static=True, default=None)
    #: Whether the piece is a constant of other derivatives: those along its own motion are then
    #: those of the equations that reactions solve.
    still: bool = eqx.field(static=True, default=False)
    #: Whether only its start is evaluated, where the solution operators are known.
    begins: bool = eqx.field(static=True, default=False)

    def others(self, s, q, v, w) -> Float[Array, " o"]:
        """Vector ``o`` a time ``s`` after the start: accelerations, reactions, relative velocities,
        gaps, prescribed accelerations, margins of friction in planes, limits of pins, reactions of
        joints, additions of nonlinear elements to loads and the inequalities of polygons."""
        return (self.compiled[1] if self.compiled else self.instant)(s, q, v, w)

    def _moved(self, s, q, v, w, *, forces: bool = True) -> _Moved:
        """Motion and reactions of the system at an instant; without ``forces``, those of contacts
        that share a load may be any that cause this motion."""
        start, g = self.prepared.mechanics, self.g
        t, nf, nt = self.state.t + s, self.prepared.nf, self.prepared.nt
        elements, contacts = by_velocity(start)
        # For these, velocities decide how friction follows from normal forces.
        known = self.begins and not (contacts or start.planes or start.pins is not None)
        now = (self.prepared.near if known else self.prepared.at)(t, q, v)
        here = now.mechanics
        # The inputs contain both as they are at the start.
        prescribed = matvec(g.velocity, w) + (start.rate - here.rate)
        demanded = matvec(g.acceleration, w) + (start.bias - here.bias)
        relative = matvec(now.W, v) - prescribed
        if elements or contacts or here.planes:
            pair = kinetic(now, self.state, relative[:nt], self.onset)
            now = eqx.tree_at(lambda p: (p.kinetic_positive, p.kinetic_negative), now, pair)
        of_mode = self.state.mode, self.state.inner, self.equations.held
        # Friction in pins follows reactions by operators of its own.
        still = self.still and here.pins is None
        if known:
            e = self.equations._replace(**forces_in_mode(now, *of_mode))
        else:
            # Derivatives of the equations, limits of pins and rates of states follow reactions.
            forces = forces or self.still or here.pins is not None or bool(here.reacting)
            how = {"still": still, "forces": forces}
            e = mode_equations(now, *of_mode, self.equations.sharing, **how)
        S = coupling_in_mode(now, self.state.mode, self.equations.held)
        f = e.f + self.extra - matvec(e.K, q) - matvec(e.C, v) + matvec(g.applied, w)
        f = f + curved_forces(here, self.state, g, t, q, v, w)
        friction, normal = jnp.zeros((0,), q.dtype), matvec(g.normal, w)
        curved = normal[:0]
        if nf:
            # The part that grows with the motion belongs to the stiffness.
            own, all_of_it = normal, self.normal_forces(q, v, w)
            if here.carried is not None and e.carried is not None:
                curved = here.carried.of_curved(here.axes, t, q, v)
                own, all_of_it = (x + matvec(e.carried.share, curved) for x in (own, all_of_it))
            f = f + matvec(here.R_T[:nf].T, e.sliding * own)
            normal = all_of_it
            friction = e.sliding * normal
        sides = Sides(f, demanded, None if here.tied is None else -here.tied.bias)
        x = solved(now, e, S, sides, still=still)
        if here.pins is not None and x.joint is not None:
            assert here.tied is not None
            limits = limits_of_pins(here, e.L, e.sliding, here.tied.least(x.joint))
            # If the reactions are not unique at the start, the run ends there, with finite numbers.
            normal = normal + select(self.equations.unique, limits, 0.0)
            friction, before = e.sliding * normal, friction
            f = f + matvec(here.R_T[:nf].T, friction - before)
            x = solved(now, e, S, sides._replace(f=f), still=still)
        a, reaction = x.a, x.reaction
        if e.share is not None:
            reaction = reaction + matvec(e.share, jnp.append(normal, 1.0))
        reaction = reaction + jnp.pad(friction, (0, reaction.shape[0] - nf))
        if here.reacting:
            # Nothing else acts on the coordinates of states, whose masses are one.
            sliding = rules.sliding_in_mode(self.state.mode, relative[:nt])
            rates = here.rates_by_contacts(t, q, v, reaction[:nt], reaction[nt:], sliding)
            a = a + here.reaction_to_rates(rates)
        return _Moved(now, a, reaction, x.joint, relative, demanded, normal, curved)

    def instant(self, s, q, v, w) -> Float[Array, " o"]:
        """Vector of :meth:`others`, not compiled separately."""
        return self._seen(self._moved(s, q, v, w), s, q, v, w)

    def _seen(self, x: _Moved, s, q, v, w) -> Float[Array, " o"]:
        """Vector of :meth:`others` for a system that moves as in ``x``."""
        here, t, nt = x.now.mechanics, self.state.t + s, self.prepared.nt
        gap = matvec(here.W_N, q) + matvec(self.g.gap, w)
        gap = select(_own_rows(x.now)[nt:], here.displacements(t, q)[nt:], gap)
        margin = joint = own = gap[:0]
        if here.tied is not None and x.joint is not None:
            tied = jax.lax.stop_gradient(here.tied) if self.still else here.tied
            joint = tied.least(x.joint)
        if here.planes:
            pressed = jnp.concatenate([x.normal, x.reaction[nt:]])
            margin = self.margins(x.reaction[:nt], pressed)
        if here.pins is not None:
            own = x.normal[here.pins.at]
        found = [x.a, x.reaction, x.relative, gap, x.demanded[:nt], margin, own, joint, x.curved]
        return jnp.concatenate([*found, regions_of(here, q)])

    def beginning(self, onset: Onset) -> Self:
        return dataclasses.replace(self, onset=onset, compiled=None)

    def acceleration(self, s, q, v) -> Float[Array, " n"]:
        """Accelerations a time ``s`` after the start."""
        if self.compiled:
            return self.compiled[0](s, q, v)
        w = basis_after(self.prepared, self.g, s)
        return self._moved(s, q, v, w, forces=False).a

    def linearised(self) -> ModeEquations:
        """The equations of the mode with the stiffness and damping of small changes."""
        zero, n = jnp.zeros_like(self.state.t), self.state.q.shape[0]
        still = self._beginning()
        along = jax.jacfwd(still.acceleration, argnums=(1, 2))(zero, self.state.q, self.state.v)
        one = jnp.eye(n, dtype=self.state.q.dtype)
        return self.equations._replace(P=one, K=-along[0], C=-along[1])

    def derivatives(self, q, v, frozen: Self | None = None) -> Float[Array, "5 z"]:
        """``z`` and its derivatives at the start: positions and gaps to the fourth, velocities to
        the third, forces to the second, zeros beyond.

        They are used for decisions and have no derivatives, except the accelerations of gaps: the
        end of accumulating impacts depends on these. ``frozen``: this piece as a constant, where it
        is known.
        """
        still = self._beginning(frozen)
        found = still._derivatives(*jax.lax.stop_gradient((q, v)))
        if not self.prepared.nu:
            return found
        # With the operators of the start; its derivatives are those of the equations.
        now = dataclasses.replace(self, compiled=None, still=True, begins=True)
        a = now.acceleration(jnp.zeros_like(self.state.t), q, v)
        rows = slice(self.prepared.nt, None)
        pull = matvec(self.prepared.W[rows], a) - matvec(self.g.acceleration[rows], self.g.w)
        sizes = self._sizes()[1]
        ahead = found.shape[1] - sum(sizes[3:])
        pull = pull - jax.lax.stop_gradient(pull)
        return found.at[2, ahead : ahead + pull.shape[0]].add(pull)

    def _beginning(self, frozen: Self | None = None) -> Self:
        return dataclasses.replace(frozen or self.frozen(), compiled=None, begins=True)

    def frozen(self, still: tuple | None = None) -> Self:
        """This piece as a constant of derivatives."""
        if self.still:
            return self
        alone = dataclasses.replace(self, compiled=None, still=True)
        return _compiled(super(VaryingPiece, alone).frozen(still))

    def _derivatives(self, q, v) -> Float[Array, "5 z"]:
        nt, m = self.prepared.nt, self.prepared.W.shape[0]
        w = [self.g.w]
        for _ in range(LEADING - 1):
            w.append(matvec(self.g.A, w[-1]))

        def value(s, q, v):
            """Vector of :meth:`others`, followed by the relative accelerations."""
            w = basis_after(self.prepared, self.g, s)
            x = self._moved(s, q, v, w)
            pull = matvec(x.now.W, x.a) - x.demanded
            return jnp.concatenate([self._seen(x, s, q, v, w), pull])

        start, one = jnp.zeros_like(self.state.t), jnp.ones_like(self.state.t)
        a = self.acceleration(start, q, v)
        # The derivatives of a linearisation would be those without the rules of :func:`solved`.
        first, change, values = jax.linearize(rates_of(value), start, q, v, a, has_aux=True)
        values = jnp.stack([values, first, change(one, v, a, first[: q.shape[0]])])
        own, pull = jnp.split(values, [values.shape[1] - m], axis=1)
        motion = [q, v, *own[:, : q.shape[0]]]
        # Accelerations of contacts are rates of their velocities, and these are rates of gaps.
        _, _, relative, gap, *_ = self._split(own[0])
        none = jnp.zeros_like(relative)
        relative = [relative, *pull, none]
        gap = [gap, *(x[nt:] for x in relative[:-1])]
        none, found = jnp.zeros_like(q), []
        for k in range(LEADING):
            values = own[k] if k < 3 else jnp.zeros_like(own[0])
            a, reaction, _, _, demanded, *others = self._split(values)
            rate = motion[k + 1] if k + 1 < len(motion) else none
            parts = motion[k], rate, w[k], a, reaction, relative[k], gap[k], demanded
            found.append(jnp.concatenate([*parts, *others]))
        return jnp.stack(found)

    def force_sizes(self, z: Float[Array, "5 z"]) -> Float[Array, "3 n"]:
        """Magnitudes of the forces except unknown reactions, from the derivatives at the start."""
        mechanics, n = self.prepared.mechanics, self.prepared.mechanics.n
        size = z.shape[1] - self._sizes()[0]
        R = jnp.concatenate([mechanics.R_T, mechanics.W_N])
        found = []
        for k in range(3):
            a, reaction, *_, joint, _, _ = self._split(z[k, size:])
            found.append(jnp.abs(matvec(mechanics.M, a) - matvec(R.T, reaction)))
            if mechanics.tied is not None:
                found[k] = found[k] + matvec(jnp.abs(mechanics.tied.J.T), jnp.abs(joint))
        # Terms that cancel in the forces of energies.
        q, v = z[0, :n], z[0, n : 2 * n]
        for element in mechanics.nonlinear:
            if isinstance(element, AbstractEnergies):
                found[0] = found[0] + sum(map(jnp.abs, element.parts(self.state.t, q, v)))
        return jnp.stack(found)

    def bending(self, z: Float[Array, "5 z"]) -> Float[Array, "3 m"]:
        """Magnitudes of relative accelerations that do not follow from accelerations."""
        size = z.shape[1] - self._sizes()[0]
        parts = [self._split(row) for row in z[:, size:]]
        W = self.prepared.W
        return jnp.stack([jnp.abs(parts[k + 1][2] - matvec(W, parts[k][0])) for k in range(3)])

    def _sizes(self) -> tuple[int, list[int]]:
        n, m, p = self.prepared.mechanics.n, self.prepared.W.shape[0], self.prepared
        sizes = [n, m, m, p.nu, p.nt, len(p.mechanics.planes), pin_count(p), joint_count(p)]
        sizes += [load_count(p), 2 * len(p.mechanics.polygons)]
        return sum(sizes), sizes

    def _split(self, o: Float[Array, " o"]) -> list[Array]:
        """Parts of ``o``: accelerations, reactions, relative velocities, gaps, prescribed
        accelerations, margins of friction in planes, limits of pins, reactions of joints, additions
        of nonlinear elements to loads, inequalities of the regions of polygons."""
        return jnp.split(o, np.cumsum(self._sizes()[1])[:-1])


def joint_count(prepared: Prepared) -> int:
    """Number of equations of joints."""
    tied = prepared.mechanics.tied
    return 0 if tied is None else tied.value.shape[0]


def regions_of(mechanics: Mechanics, q) -> Float[Array, " nr"]:
    """Values of the two inequalities of each polygon's region, positive inside the region: the
    first of all polygons, then the second."""
    found = [p.inside(q) for p in mechanics.polygons]
    return jnp.stack(found, axis=1).ravel() if found else jnp.zeros((0,), q.dtype)


def load_count(prepared: Prepared) -> int:
    """Number of loads on which friction depends, unless they are part of the inputs."""
    return 0 if prepared.mechanics.carried is None else prepared.mechanics.carried.count


def pin_count(prepared: Prepared) -> int:
    """Number of pins with friction."""
    return 0 if prepared.mechanics.pins is None else len(prepared.mechanics.pins.rows)


def _own_rows(prepared: Prepared) -> np.ndarray:
    """Rows (m,) whose displacement depends on position."""
    varying = prepared.mechanics.varying
    found = np.zeros(prepared.W.shape[0], bool)
    if varying is not None and varying.rows:
        found[np.asarray(varying.rows)] = True
    return found


def varying_piece(
    prepared: Prepared, equations: ModeEquations, g: Given, state: State, force
) -> VaryingPiece:
    """Smooth piece of a mode that begins at the time of ``state``; ``prepared``: the system as
    evaluated at the state; ``force`` (n,): a constant extra force."""
    mechanics, dtype = prepared.mechanics, state.q.dtype
    n, m, nt, nu = mechanics.n, prepared.W.shape[0], prepared.nt, prepared.nu
    b = g.w.shape[0]
    planes, pins = len(mechanics.planes), pin_count(prepared)
    polygons = 2 * len(mechanics.polygons)
    counts = [n, n, b, n, m, m, nu, nt, planes, pins, joint_count(prepared), load_count(prepared)]
    ends = np.cumsum([*counts, polygons])
    size = int(ends[-1])
    eye = jnp.eye(size, dtype=dtype)
    q, v, w, a, reaction, relative, gap, demanded, margin, pressed, _, curved, region = jnp.split(
        eye, ends[:-1]
    )
    normal, carried = matmul(g.normal, w), equations.carried
    directions, nd = mechanics.piecewise.directions, mechanics.piecewise.tables
    elongation = matmul(directions, q) + matmul(g.elongation, w)
    if carried is not None and mechanics.carried is not None:
        normal = normal + matmul(carried.q, q) + matmul(carried.v, v)
        normal = normal + matmul(carried.share, curved)
        loads = matmul(carried.rows.q, q) + matmul(carried.rows.v, v) + curved
        elongation = elongation.at[mechanics.carried.places].add(loads)
    if mechanics.pins is not None:
        normal = normal.at[mechanics.pins.at].set(pressed)
    one = w[:1]
    system = LinearSystem(
        z=jnp.concatenate([state.q, state.v, g.w]),
        A=jnp.concatenate([v, a]),
        reactions=jnp.concatenate([reaction, normal, demanded, elongation[nd:]]),
        guards=jnp.zeros((0, size), dtype),
        relative=relative,
        quantities=Quantities(
            one=one.T,
            gamma=relative[:nt].T,
            lambda_t=reaction[:nt].T,
            lambda_n=reaction[nt:].T,
            normal=normal.T,
            gap=gap.T,
            elongation=elongation.T,
            elongation_rate=(matmul(directions, v) + matmul(g.elongation_rate, w)).T,
            margin=margin.T,
            region=region.T,
        ),
    )
    forces = jnp.zeros((n, size), dtype)
    return _compiled(VaryingPiece(prepared, equations, g, state, forces, system, force))


def _compiled(piece: Piece) -> Piece:
    alone = jax.jit(lambda *x: piece.acceleration(*x))
    whole = jax.jit(lambda *x: piece.instant(*x))
    return dataclasses.replace(piece, compiled=(alone, whole))
