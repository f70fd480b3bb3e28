"""Equations of motion in a fixed mode, with the reactions eliminated.

With ``f`` all forces except the unknown reactions, and ``c`` the prescribed relative accelerations
of active contacts::

    lambda = L f + Q c,    dv/dt = P f + MW Q c,    P = M^-1 + MW L,    L = -Q W M^-1

Where reactions share a load, ``lambda = L f + Q c + share (n, 1)`` with the given normal forces
``n`` keeps limits that are tight, or holds a preload (:mod:`jfric.contact.shared_loads`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from jfric.contact import rules
from jfric.contact.reactions import (
    Coupling,
    Reactions,
    coupling,
    no_coupling,
    reaction_operator,
    spread,
)
from jfric.contact.shared_loads import Room, Sharing, room, shared
from jfric.numerics.choice import select
from jfric.numerics.linear_algebra import matmul, matvec
from jfric.numerics.loops import where_any
from jfric.results.modes import Mode
from jfric.solvers.event_driven.guards import force_limits
from jfric.solvers.event_driven.prepared import Prepared
from jfric.solvers.event_driven.state import State, relative_velocities
from jfric.system.joints import off_velocity
from jfric.system.load_friction import CarriedRows
from jfric.system.mechanics import Mechanics
from jfric.system.piecewise import Inner


class CarriedMode(NamedTuple):
    """Loads on which friction depends, in a mode: their rows, and the share of each in the normal
    force of each friction element."""

    rows: CarriedRows
    share: Float[Array, "nf k"]

    def sized(self) -> CarriedMode:
        """Loads of the mode with the magnitudes of all rows and shares."""
        return CarriedMode(self.rows.sized(), jnp.abs(self.share))

    @property
    def q(self) -> Float[Array, "nf n"]:
        """Normal forces by positions."""
        return matmul(self.share, self.rows.q)

    @property
    def v(self) -> Float[Array, "nf n"]:
        """Normal forces by velocities."""
        return matmul(self.share, self.rows.v)


class ModeEquations(NamedTuple):
    """Matrices of one mode; see the module's equations."""

    #: Stiffness, damping and constant force, segments of piecewise-linear elements and sliding
    #: friction that grows with positions or velocities included.
    K: Float[Array, "n n"]
    C: Float[Array, "n n"]
    f: Float[Array, " n"]
    P: Float[Array, "n n"]
    PQ: Float[Array, "n m"]
    L: Float[Array, "m n"]
    Q: Float[Array, "m m"]
    #: Friction of sliding elements with a given normal force: ``lambda_T = factor * N(t)``.
    sliding: Float[Array, " nf"]
    #: Smallest relative pivot of the reaction equations.
    pivot: Float[Array, ""]
    #: Whether the forces of active contacts are not unique.
    redundant: Bool[Array, ""]
    #: Active rows whose prescribed accelerations the motion need not satisfy.
    dependent: Bool[Array, " m"]
    #: Whether the motion is unique nevertheless.
    unique: Bool[Array, ""]
    #: Contacts that carry their limit, but cannot slide because others stick.
    held: Bool[Array, " nt"]
    #: Forces of the piecewise-linear elements in their segments by elongations, and by rates.
    k: Float[Array, "n ns"]
    c: Float[Array, "n ns"]
    #: Loads on which friction depends, or None.
    carried: CarriedMode | None = None
    #: How contacts at rest share a load, where they may; else None, like all fields below.
    sharing: Sharing | None = None
    #: Parts of the reactions due to the given normal forces, and due to the preload.
    share: Float[Array, "m nf+1"] | None = None
    #: Reactions that balance each other.
    null: Float[Array, "m m"] | None = None
    #: Effect of self-balanced reactions on the limits where these may be tight, and magnitudes of
    #: all contributions to ``Q``, some of which cancel.
    room: Room | None = None
    Q_size: Float[Array, "m m"] | None = None


def mode_equations(
    prepared: Prepared,
    mode: Int[Array, " nt"],
    inner: Inner,
    held: Bool[Array, " nt"],
    sharing: Sharing | None = None,
    *,
    still: bool = False,
    forces: bool = True,
) -> ModeEquations:
    """Matrices for the given modes of contacts and the inner state of piecewise-linear elements.

    Contacts in ``held`` carry their static limits: they do not slide. ``still``: reactions and
    accelerations by forces have no derivatives; :mod:`jfric.solvers.event_driven.implicit` adds
    those of the equations that they solve. ``forces``: whether reactions are needed, not
    accelerations alone.
    """
    mechanics = prepared.mechanics
    own = jax.lax.stop_gradient(prepared) if still else prepared
    R = reactions_in_mode(own, mode, held, forces=forces)
    Q, shared = R.force, ()
    if forces and sharing is not None:
        Q, *shared = _shared(own, mode, inner, R, sharing)
    L = -matmul(Q, own.WM)
    PQ = matmul(own.MW, R.motion)
    P = own.mechanics.M_inverse - matmul(PQ, own.WM)
    P, PQ = _exact_rows(own, mode, R.dependent, P, PQ)
    given = forces_in_mode(prepared, mode, inner, held)
    names = ("share", "null", "room", "Q_size")
    of_sharing: dict[str, Any] = dict(zip(names, shared, strict=False))
    unique = R.unique & pins_are_unique(mechanics, L, given["sliding"])
    return ModeEquations(
        P=P,
        PQ=PQ,
        L=L,
        Q=Q,
        pivot=R.pivot,
        redundant=R.redundant,
        dependent=R.dependent,
        unique=unique,
        held=held,
        **given,
        sharing=sharing,
        **of_sharing,
    )


def forces_in_mode(
    prepared: Prepared, mode: Int[Array, " nt"], inner: Inner, held: Bool[Array, " nt"]
) -> dict[str, Any]:
    """Fields of :class:`ModeEquations` that give forces by the motion, by name."""
    mechanics, nf = prepared.mechanics, prepared.nf
    K, C, f, k, c = _segments(prepared, inner)
    element = mode[:nf]
    positive, negative = _limits(prepared, held)
    sliding = select(
        element == Mode.SLIP_POS,
        -positive[:nf],
        select(element == Mode.SLIP_NEG, negative[:nf], 0.0),
    )
    carried = carried_in_mode(prepared, inner.segment)
    if carried is not None:
        friction = mechanics.R_T[:nf].T * sliding[None, :]
        K, C = K - matmul(friction, carried.q), C - matmul(friction, carried.v)
    return {"K": K, "C": C, "f": f, "sliding": sliding, "k": k, "c": c, "carried": carried}


def reaction_sizes(
    prepared: Prepared, equations: ModeEquations
) -> tuple[Float[Array, "m n"], Float[Array, "m m"]]:
    """Magnitudes of all contributions to ``L`` and ``Q``."""
    Q = jnp.abs(equations.Q) if equations.Q_size is None else equations.Q_size
    if prepared.mechanics.tied is None and equations.Q_size is None:
        return jnp.abs(equations.L), Q
    # Joints and tight limits cancel a part of the forces.
    return matmul(Q, prepared.WM_size), Q


def _limits(prepared: Prepared, held) -> tuple[Float[Array, " nt"], Float[Array, " nt"]]:
    """Coefficients of contacts that slide, static ones where they are held."""
    positive = select(held, prepared.static_positive, prepared.kinetic_positive)
    negative = select(held, prepared.static_negative, prepared.kinetic_negative)
    return positive, negative


def coupling_in_mode(prepared: Prepared, mode, held) -> Coupling:
    """Coupling of the friction of contacts that slide to their normal forces."""
    planes = prepared.mechanics.contact_planes
    return coupling(mode, *_limits(prepared, held), prepared.nf, planes)


def reactions_in_mode(prepared: Prepared, mode, held, *, forces: bool = True) -> Reactions:
    """Operators of reactions in the given modes; arguments as in :func:`mode_equations`."""
    mechanics, causes = prepared.mechanics, None
    if mechanics.reactions is not None:
        causes = prepared.inertia_scale[:, None] * prepared.MW
    how = {"independent": prepared.regular, "n_normals": prepared.nu, "forces": forces}
    active, size = prepared.active_rows(mode), prepared.D_size
    if not prepared.nu or not all(mechanics.frictionless[prepared.nf :]):
        S = coupling_in_mode(prepared, mode, held)
        return reaction_operator(prepared.D, active, S, causes=causes, size=size, **how)
    # Tangents of contacts without friction never carry anything.
    acting = np.arange(prepared.D.shape[0])
    acting = acting[(acting < prepared.nf) | (acting >= prepared.nt)]
    none = no_coupling(prepared.D.dtype)
    causes = None if causes is None else causes[:, acting]
    size = None if size is None else size[acting]
    D = prepared.D[np.ix_(acting, acting)]
    found = reaction_operator(D, active[acting], none, causes=causes, size=size, **how)
    return spread(found, prepared.nf, prepared.nu)


def _shared(prepared: Prepared, mode, inner: Inner, R: Reactions, sharing: Sharing) -> tuple:
    """Operator of reactions, and fields of :class:`ModeEquations` on how they share a load."""
    m, none = prepared.D.shape[0], jnp.zeros((prepared.D.shape[0], prepared.nf), R.force.dtype)
    assert R.null is not None
    if sharing.tight is None:
        assert sharing.preload is not None
        return R.force, jnp.column_stack([none, sharing.preload]), R.null
    limits, normals = jnp.split(force_limits(prepared, mode, inner), [m], axis=1)
    own, tight, null = jnp.abs(R.force), sharing.tight, R.null

    def keep():
        space = room(prepared.D, null, limits)
        change, size = shared(space, tight)
        force = R.force + matmul(change, matmul(limits, R.force))
        share = jnp.pad(matmul(change, normals), ((0, 0), (0, 1)))
        return force, share, null, space, own + matmul(size, matmul(jnp.abs(limits), own))

    nothing = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), jax.eval_shape(keep))
    return where_any(R.redundant, keep, (R.force, *nothing[1:4], own))


def carried_in_mode(prepared: Prepared, segment: Int[Array, " ns"]) -> CarriedMode | None:
    """Loads on which friction depends, while piecewise-linear elements are in ``segment``."""
    mechanics = prepared.mechanics
    carried = mechanics.carried
    if carried is None:
        return None
    share = carried.spread(prepared.nf, mechanics.K.dtype) * carried.shares(segment)[None, :]
    return CarriedMode(carried.lines(mechanics.piecewise, segment), share)


def _segments(prepared: Prepared, inner: Inner):
    mechanics = prepared.mechanics
    piecewise = mechanics.piecewise
    if piecewise.count == 0:
        empty = jnp.zeros((mechanics.n, 0), mechanics.K.dtype)
        return mechanics.K, mechanics.C, mechanics.f0, empty, empty
    k, c, f = piecewise.line(inner)
    w = piecewise.directions
    pull, drag = w.T * k[None, :], w.T * c[None, :]
    cross = piecewise.cross_stiffness(inner)
    if cross is not None:
        pull = pull + matmul(w.T, cross)
    K, C = mechanics.K + matmul(pull, w), mechanics.C + matmul(drag, w)
    return K, C, mechanics.f0 - (w.T * f[None, :]).sum(axis=1), pull, drag


def _exact_rows(prepared: Prepared, mode, dependent, P, PQ):
    """Rows for degrees of freedom that one contact holds alone, free of rounding error.

    Elimination leaves 1e-17 where the acceleration is zero by construction; stick would creep.
    """
    at = held_alone(prepared, prepared.active_rows(mode) & ~dependent)
    held = at.any(axis=1)[:, None]
    P = select(held, 0.0, P)
    PQ = select(held, select(at, 1.0 / prepared.own_entry, 0.0), PQ)
    return P, PQ


def held_alone(prepared: Prepared, holds: Bool[Array, " m"]) -> Bool[Array, "n m"]:
    """Mask of the row, among those that ``holds`` marks, that holds each degree of freedom alone;
    of the last one if there are several."""
    dofs = prepared.mechanics.single_dofs
    own = np.zeros((prepared.mechanics.n, len(dofs)), bool)
    for row, dof in enumerate(dofs):
        if dof is not None:
            own[dof, row] = True
    at = jnp.asarray(own) & holds[None, :]
    if np.any(own.sum(axis=1) > 1):
        last = jnp.max(select(at, np.arange(len(dofs))[None, :], -1), axis=1, initial=-1)
        at = at & (np.arange(len(dofs))[None, :] == last[:, None])
    return at


def put_on_gaps(prepared: Prepared, q, gap, holds: Bool[Array, " m"]):
    """Positions with gaps of exactly zero where the normal of a contact that acts on one degree of
    freedom alone ``holds``."""
    nt = prepared.nt
    at = held_alone(prepared, holds & (np.arange(holds.shape[0]) >= nt))[:, nt:]
    exact = jnp.sum(select(at, -gap / prepared.own_entry[nt:], 0.0), axis=1)
    return select(at.any(axis=1), exact, q)


def project(prepared: Prepared, equations: ModeEquations, state, velocity, gap):
    """Project the state on the constraints of its mode, which it satisfies to rounding error.

    ``velocity`` (m,): prescribed for tangents and normals; ``gap`` (nu,): prescribed part of the
    gaps. Velocities of sticking and closed contacts and gaps of closed contacts become exact, to
    the last bit for contacts on a single degree of freedom.
    """
    mode, q, v = state.mode, state.q, state.v
    active = prepared.active_rows(mode)
    defect = select(active, velocity - matvec(prepared.W, v), 0.0)
    v = v + matvec(equations.PQ, defect)
    if prepared.nu:
        closed = mode[prepared.nf :] != Mode.OPEN
        missing = select(closed, -(gap + matvec(prepared.mechanics.W_N, q)), 0.0)
        q = q + matvec(equations.PQ[:, prepared.nt :], missing)
    holds = active & ~equations.dependent
    at = held_alone(prepared, holds)
    exact = jnp.sum(select(at, velocity / prepared.own_entry, 0.0), axis=1)
    v = select(at.any(axis=1), exact, v)
    return (put_on_gaps(prepared, q, gap, holds) if prepared.nu else q), v


def _by_torques(here: Mechanics, L: Float[Array, "m n"]) -> Float[Array, "k 2 k"]:
    """Reactions of the pins by unit torques in them."""
    assert here.tied is not None
    assert here.pins is not None
    torques, R = here.R_T[here.pins.at].T, jnp.concatenate([here.R_T, here.W_N])
    forces = torques + matmul(R.T, matmul(L, torques))
    return here.pins.of(-matmul(here.tied.force, matmul(here.tied.MJ.T, forces)))


def limits_of_pins(here: Mechanics, L, sliding, joint: Float[Array, " e"]) -> Float[Array, " nf"]:
    """Limits ``r |R|`` of the pins, zeros for all other friction elements. ``L``: reactions of
    contacts by forces; ``sliding`` (nf,): ratio of friction to its limit; ``joint``: reactions of
    all joints without the friction of pins that slide."""
    assert here.pins is not None
    ratio, free, pins = sliding[here.pins.at], here.pins.of(joint), here.pins
    found = rules.sliding_limits(free, _by_torques(here, L), ratio, pins.radius)
    return jnp.zeros_like(sliding).at[pins.at].set(found)


def pins_are_unique(here: Mechanics, L, sliding) -> Bool[Array, ""] | bool:
    """Whether reactions and friction of the pins are unique: joints are not redundant, and torques
    change the reactions by less than the reactions from which the torques follow."""
    if here.pins is None or here.tied is None:
        return True
    ratio, radius = sliding[here.pins.at], here.pins.radius
    unique = rules.limits_are_unique(_by_torques(here, L), ratio, radius)
    return unique & ~here.tied.redundant


def put_back(prepared: Prepared, state: State, t, q, v):
    """Position and velocity at ``t``, on a step from ``state``, corrected to the nearest ones in
    the metric of the masses that satisfy the constraints: joints, gaps of zero at closed contacts,
    and at sticking contacts the sliding displacement of the start of the step.

    No displacement is restored at contacts on a belt or a moving base, nor where the sliding
    velocity is not the rate of a displacement; only their velocity is held, where the next step
    begins (:func:`jfric.solvers.event_driven.mode_equations.project`).
    """
    mechanics = prepared.mechanics
    varying = mechanics.varying
    if varying is None or not (varying.rows or varying.joints):
        return q, v
    here = prepared.at(t, q, v)
    tied = here.mechanics.tied
    if varying.joints is not None and tied is not None:
        q = varying.joints.put_on(tied, t, q)
    held = _held(prepared, state)
    how = {"independent": prepared.regular, "size": here.D_size, "forces": False}
    R = reaction_operator(here.D, held, no_coupling(here.D.dtype), **how)

    def change(wanted):
        """The smallest change of position that displaces the held rows by ``wanted``."""
        return matvec(here.MW, matvec(R.motion, select(held, wanted, 0.0)))

    if held.shape[0]:
        nt = prepared.nt
        slid = mechanics.displacements(state.t, state.q)[:nt] - mechanics.displacements(t, q)[:nt]
        q = q + change(jnp.concatenate([slid, -mechanics.gaps(t, q)]))
    # Positions hardly moved: the operators of before suffice for the present directions, and what
    # they leave after a loose step falls by as much again in the second round.
    now = here.near(t, q, v)
    for _ in range(2):
        if now.mechanics.tied is not None:
            v = v + off_velocity(now.mechanics.tied, v)
        v = v - change(relative_velocities(now, t, v))
    return q, v


def _held(prepared: Prepared, state: State) -> Bool[Array, " m"]:
    """Rows whose displacement the contacts hold."""
    mechanics = prepared.mechanics
    held = prepared.active_rows(state.mode)
    anchored = [b is None and not mechanics.base_functions for b in mechanics.belts]
    anchored = np.asarray(anchored, bool)
    if mechanics.varying is not None:
        anchored[list(mechanics.varying.rolling)] = False
    return held.at[: prepared.nt].set(anchored & (state.mode == Mode.STICK))
