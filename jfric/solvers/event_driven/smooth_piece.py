"""Any mode on the smooth piece in which a step begins, as rows over ``z = (q, v, w, o)``.

``w`` is the basis of the inputs. ``o`` holds everything that is not linear in the motion: forces of
elements, friction that depends on the sliding velocity, and its effect where it enters the
reactions.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jfric.contact import rules
from jfric.numerics.choice import select
from jfric.numerics.isolation import LEADING
from jfric.numerics.linear_algebra import inverse, matmul, matvec, picked
from jfric.results.modes import Mode
from jfric.solvers.event_driven.guards import Quantities
from jfric.solvers.event_driven.inputs import Given, basis_after
from jfric.solvers.event_driven.linear_system import LinearSystem, build
from jfric.solvers.event_driven.mode_equations import ModeEquations, mode_equations
from jfric.solvers.event_driven.prepared import Prepared
from jfric.solvers.event_driven.state import Onset, State, continued, kinetic, plane_limits
from jfric.system.mechanics import Mechanics


class SmoothPiece(eqx.Module):
    """Equations of a mode, continued beyond the smooth piece's end where a step reaches it."""

    prepared: Prepared
    equations: ModeEquations
    g: Given
    state: State
    #: Forces (n, z) except unknown reactions.
    forces: Float[Array, "n z"]
    system: LinearSystem
    #: How planes begin to slide, for values right at the start.
    onset: Onset | None = eqx.field(default=None, kw_only=True)

    @property
    def rates(self) -> Float[Array, "n z"]:
        """Accelerations."""
        n = self.prepared.mechanics.n
        return self.system.A[n : 2 * n]

    @property
    def rows(self) -> Float[Array, "r z"]:
        """Accelerations, reactions, normal forces, prescribed rates."""
        return jnp.concatenate([self.rates, self.system.reactions])

    def others(self, s, q, v, w) -> Float[Array, " o"]:
        """The part ``o`` of ``z``, not linear in the motion, a time ``s`` after the start."""
        found, normal = self._forces(s, q, v, w)
        return self._with_margins(q, v, w, found, normal)

    def _forces(self, s, q, v, w) -> tuple[Float[Array, " p"], Float[Array, " nf"]]:
        """Part of ``o`` on which accelerations depend (all except margins), and normal forces of
        friction."""
        mechanics, state = self.prepared.mechanics, self.state
        found = jnp.zeros((0,), q.dtype)
        if mechanics.has_curved_forces:
            found = curved_forces(mechanics, state, self.g, state.t + s, q, v, w)
        curved, carried = None, mechanics.carried
        if carried is not None and carried.curved:
            curved = carried.of_curved(mechanics.axes, state.t + s, q, v)
            found = jnp.concatenate([found, curved])
        gamma = matvec(self.prepared.W[: self.prepared.nt], v)
        gamma = gamma - matvec(self.g.velocity[: self.prepared.nt], w)
        normal = self.normal_forces(q, v, w, curved)
        if mechanics.modulated:
            excess = self._excess(s, q, v, w, gamma, normal, curved)
            own = picked(excess, mechanics.modulated)
            found, normal = jnp.concatenate([found, own]), normal + excess
        elements, contacts = by_velocity(mechanics)
        if not elements and not contacts and not mechanics.contact_planes:
            return self._with_rates(s, q, v, w, found, gamma), normal
        positive, negative = kinetic(self.prepared, state, gamma, self.onset)
        if elements:
            mode, e = picked(state.mode, elements), self.equations
            ratio = select(mode == Mode.SLIP_NEG, picked(negative, elements), 0.0)
            ratio = select(mode == Mode.SLIP_POS, -picked(positive, elements), ratio)
            # A contact that others hold carries its static limit.
            change = ratio - picked(e.sliding, elements)
            change = select(picked(e.held, elements), 0.0, change)
            found = jnp.concatenate([found, change * picked(normal, elements)])
        old = now = self.equations
        if contacts:
            now = eqx.tree_at(
                lambda p: (p.kinetic_positive, p.kinetic_negative),
                self.prepared,
                (positive, negative),
            )
            now = mode_equations(now, state.mode, state.inner, old.held, old.sharing)
        c = matvec(self.g.acceleration, w)
        if mechanics.contact_planes:
            z = jnp.concatenate([q, v, w, found])
            f = matvec(self.forces[:, : len(z)], z)
            found = jnp.concatenate([found, self._rubbing(now, positive, f, c)])
        if contacts:
            z = jnp.concatenate([q, v, w, found])
            f = matvec(self.forces[:, : len(z)], z)
            a = matvec(now.P - old.P, f) + matvec(now.PQ - old.PQ, c)
            reaction = matvec(now.L - old.L, f) + matvec(now.Q - old.Q, c)
            if now.share is not None and old.share is not None:
                reaction = reaction + matvec(now.share - old.share, jnp.append(normal, 1.0))
            found = jnp.concatenate([found, a, reaction])
        return self._with_rates(s, q, v, w, found, gamma), normal

    def normal_forces(self, q, v, w, curved=None) -> Float[Array, " nf"]:
        """Normal forces of friction elements, including those that grow with loads, to which
        nonlinear elements add ``curved`` (k,)."""
        normal, carried = matvec(self.g.normal, w), self.equations.carried
        if carried is None:
            return normal
        normal = normal + matvec(carried.q, q) + matvec(carried.v, v)
        return normal if curved is None else normal + matvec(carried.share, curved)

    def _excess(self, s, q, v, w, gamma, normal, curved) -> Float[Array, " nf"]:
        """Parts of the normal forces of friction elements that are not linear in the motion;
        ``normal``: the others."""
        mechanics, state, carried = self.prepared.mechanics, self.state, self.equations.carried
        fading = squares = jnp.zeros_like(normal)
        if carried is not None and mechanics.carried is not None:
            places = mechanics.carried.places
            loads = matvec(carried.rows.q, q) + matvec(carried.rows.v, v)
            loads = loads + matvec(self.g.elongation[places], w)
            loads = loads if curved is None else loads + curved
            grown, positive = carried.share * loads[None, :], state.segment[places] == 0
            fading, squares = mechanics.carried.parts(grown, loads, positive)
        one, mode = jnp.ones_like(normal[0]), state.mode[: self.prepared.nf]
        speed = select(mode == Mode.SLIP_NEG, -1.0, 1.0) * gamma[: self.prepared.nf]
        left = [
            # Rounding errors of a contact that sticks are no sliding.
            one if law is None else select(mode[i] == Mode.STICK, 1.0, continued(law, x)[0])
            for i, (law, x) in enumerate(zip(mechanics.fades, speed, strict=True))
        ]
        return mechanics.excess(state.t + s, q, normal, fading, squares, jnp.stack(left))

    def _rubbing(self, equations: ModeEquations, ratio, f, c) -> Float[Array, " k"]:
        """Friction of contacts that slide in planes: ``ratio`` (nt,) times their normal forces,
        which the friction changes in turn. ``f``: all other forces; ``c``: prescribed
        accelerations."""
        rows, normals = self.plane_rows
        slid = rules.slides(self.state.mode[rows]) & (self.state.mode[rows] != Mode.OPEN)
        ratio = select(slid, -ratio[rows], 0.0)
        alone = matvec(equations.L[normals], f) + matvec(equations.Q[normals], c)
        gain = self.gain(equations, ratio)
        pressed = alone / gain[0] if len(alone) == 1 else matvec(inverse(gain), alone)
        return ratio * pressed.reshape(-1)[self.plane_owners]

    @property
    def plane_rows(self) -> tuple[np.ndarray, np.ndarray]:
        """Tangents of contacts in planes, and the normals of these among all rows."""
        mechanics = self.prepared.mechanics
        first = np.asarray([own[0] for own in mechanics.contact_planes], int)
        return mechanics.rubbing, self.prepared.nt + first - self.prepared.nf

    @property
    def plane_owners(self) -> np.ndarray:
        """Contact in a plane that each of these tangents belongs to."""
        planes = self.prepared.mechanics.contact_planes
        return np.repeat(np.arange(len(planes)), [len(own) for own in planes])

    def gain(self, equations: ModeEquations, ratio) -> Float[Array, "k k"]:
        """Matrix from the normal forces (k,) of contacts in planes, with friction of ``ratio``
        (r,) times these forces, to the normal forces without friction."""
        rows, normals = self.plane_rows
        presses = matmul(equations.L[normals], self.prepared.W[rows].T) * ratio
        own = (self.plane_owners[:, None] == np.arange(len(normals))).astype(presses.dtype)
        return jnp.eye(len(normals), dtype=presses.dtype) - matmul(presses, own)

    def _with_rates(self, s, q, v, w, found, gamma):
        """``found`` with the rates of states that depend on contacts."""
        mechanics = self.prepared.mechanics
        if not mechanics.reacting:
            return found
        z = jnp.concatenate([q, v, w, found])
        x = self.system.quantities
        friction, pressed = (matvec(rows[: len(z)].T, z) for rows in (x.lambda_t, x.lambda_n))
        t, gamma = self.state.t + s, rules.sliding_in_mode(self.state.mode, gamma)
        rates = mechanics.rates_by_contacts(t, q, v, friction, pressed, gamma)
        return jnp.concatenate([found, rates])

    def _with_margins(self, q, v, w, found, given):
        if not self.prepared.mechanics.planes:
            return found
        z = jnp.concatenate([q, v, w, found])
        x = self.system.quantities
        friction, pressed = (matvec(rows[: len(z)].T, z) for rows in (x.lambda_t, x.lambda_n))
        normal = jnp.concatenate([given, pressed])
        return jnp.concatenate([found, self.margins(friction, normal)])

    def beginning(self, onset: Onset) -> Self:
        """Copy of this piece for its start, where planes begin to slide as ``onset`` describes."""
        return dataclasses.replace(self, onset=onset)

    def margins(self, friction: Float[Array, " nt"], normal: Float[Array, " nt"]):
        """Margins (np,) of friction in planes to its limits. The margin of sliding is positive by
        definition, unless sliding begins while friction can hold."""
        found, nf = [], self.prepared.nf
        for k, rows in enumerate(map(np.asarray, self.prepared.mechanics.planes)):
            limits, i = plane_limits(self.prepared, k), rows[0]
            margin = limits.margin(normal[i], friction[rows])
            size = limits.limit(normal[i]) if i < nf else jnp.ones_like(margin)
            if self.onset is not None:
                size = select(self.onset.rests[k] & self.onset.holds[k], -size, size)
            found.append(select(self.state.mode[i] == Mode.STICK, margin, size))
        return jnp.stack(found)

    def at(self, s, q, v) -> Float[Array, " z"]:
        """Vector ``z`` a time ``s`` after the start."""
        w = basis_after(self.prepared, self.g, s)
        return jnp.concatenate([q, v, w, self.others(s, q, v, w)])

    def acceleration(self, s, q, v) -> Float[Array, " n"]:
        """Accelerations a time ``s`` after the start."""
        w = basis_after(self.prepared, self.g, s)
        z = jnp.concatenate([q, v, w, self._forces(s, q, v, w)[0]])
        return matvec(self.rates[:, : len(z)], z)

    def derivatives(self, q, v, frozen: Self | None = None) -> Float[Array, "5 z"]:
        """Vector ``z`` and its derivatives at the start: positions to the fourth, velocities to the
        third, the part not linear in the motion to the second, zeros beyond. ``frozen``: this piece
        as a constant, where it is known and useful."""
        del frozen
        w = [self.g.w]
        for _ in range(LEADING - 1):
            w.append(matvec(self.g.A, w[-1]))

        def value(s, q, v):
            return self.others(s, q, v, basis_after(self.prepared, self.g, s))

        start, none = jnp.zeros_like(self.state.t), jnp.zeros_like(q)
        motion, others = [q, v], []
        nothing = jnp.zeros((self.rates.shape[1] - 2 * len(q) - len(w[0]),), q.dtype)
        if len(nothing):
            # Derivatives of order k follow from the motion up to order k + 1.
            one, a = jnp.ones_like(start), self.acceleration(start, q, v)
            jerk = jax.jvp(self.acceleration, (start, q, v), (one, v, a))[1]
            motion += [a, jerk]
            at, along = (start, q, v, a), (one, v, a, jerk)
            first, second, values = jax.jvp(rates_of(value), at, along, has_aux=True)
            others = [values, first, second]
        for k in range(len(motion) - 2, 3):
            z = jnp.concatenate([motion[k], motion[k + 1], w[k], *others[k : k + 1]])
            motion.append(matvec(self.rates, z))
        others += [nothing] * (LEADING - len(others))
        found = zip(motion, [*motion[1:], none], w, others, strict=True)
        return jnp.stack([jnp.concatenate(parts) for parts in found])

    def frozen(self, still: tuple | None = None) -> Self:
        """The piece without derivatives; ``still``: the system, the equations and the state without
        derivatives, where they are known."""
        if still is None:
            return jax.lax.stop_gradient(self)
        known = dict(zip(("prepared", "equations", "state"), still, strict=True))
        fields = [f for f in dataclasses.fields(self) if not f.metadata.get("static")]
        own = {f.name: getattr(self, f.name) for f in fields if f.name not in known}
        return dataclasses.replace(self, **known, **jax.lax.stop_gradient(own))

    def force_sizes(self, z: Float[Array, "5 z"]) -> Float[Array, "3 n"]:
        """Magnitudes of the forces except unknown reactions, from the derivatives at the start."""
        return jnp.abs(matmul(z[:3], self.forces.T))

    def bending(self, z: Float[Array, "5 z"]) -> Float[Array, "3 m"] | float:
        """Magnitudes of relative accelerations that do not follow from accelerations."""
        del z
        return 0.0

    def quantities(self, z: Float[Array, "p z"]) -> Quantities:
        """Quantities of guards from rows of ``z``: points or coefficients of polynomials."""
        return Quantities(*(matmul(z, x) for x in self.system.quantities))

    def magnitudes(self, z: Float[Array, "p z"]) -> Quantities:
        """Magnitudes of the quantities of guards, from magnitudes of ``z``."""
        return Quantities(*(matmul(z, jnp.abs(x)) for x in self.system.quantities))


def rates_of(function: Callable) -> Callable:
    """Rates of ``function(s, q, v)`` in a motion with the accelerations ``a``, and its values, as a
    function of ``s``, ``q``, ``v`` and ``a``."""

    def rates(s, q, v, a):
        values, found = jax.jvp(function, (s, q, v), (jnp.ones_like(s), v, a))
        return found, values

    return rates


def smooth_piece(
    prepared: Prepared, equations: ModeEquations, g: Given, state: State, force
) -> SmoothPiece:
    """Smooth piece of a mode that begins at the time of ``state``; ``force`` (n,): a constant extra
    force."""
    mechanics, dtype = prepared.mechanics, state.q.dtype
    n, m = mechanics.n, prepared.W.shape[0]
    elements, contacts = by_velocity(mechanics)
    # Nonlinear parts: forces, friction of elements and in planes, then accelerations and reactions,
    # and rates of states that depend on these.
    planes = len(mechanics.planes)
    rubbing = mechanics.rubbing
    loads, carried = 0, equations.carried
    if mechanics.carried is not None and mechanics.carried.curved:
        loads = mechanics.carried.count
    modulated = np.asarray(mechanics.modulated, int)
    sizes = [n * mechanics.has_curved_forces, loads, len(modulated), len(elements), len(rubbing)]
    reacting = [e.place for e in mechanics.reacting]
    sizes += [n * contacts, m * contacts, len(reacting), planes]
    count = sum(sizes)
    own = np.split(np.eye(count), np.cumsum(sizes)[:-1])
    by_force = jnp.zeros((n, count), dtype)
    by_acceleration, by_reaction = by_force, jnp.zeros((m, count), dtype)
    if mechanics.has_curved_forces:
        by_force = by_force + jnp.asarray(own[0], dtype)
    of_loads = jnp.asarray(own[1], dtype)
    if loads and carried is not None:
        friction = equations.sliding[:, None] * matmul(carried.share, of_loads)
        by_force = by_force + matmul(mechanics.R_T[: prepared.nf].T, friction)
    excess = jnp.zeros((prepared.nf, count), dtype)
    if len(modulated):
        excess = excess.at[modulated].set(jnp.asarray(own[2], dtype))
        friction = equations.sliding[:, None] * excess
        by_force = by_force + matmul(mechanics.R_T[: prepared.nf].T, friction)
    if elements:
        friction = jnp.asarray(own[3], dtype)
        by_force = by_force + matmul(mechanics.R_T[jnp.asarray(elements)].T, friction)
        by_reaction = by_reaction.at[jnp.asarray(elements)].set(friction)
    if len(rubbing):
        friction = jnp.asarray(own[4], dtype)
        by_force = by_force + matmul(mechanics.R_T[rubbing].T, friction)
        by_reaction = by_reaction.at[rubbing].add(friction)
    if contacts:
        by_acceleration = by_acceleration + jnp.asarray(own[5], dtype)
        by_reaction = by_reaction + jnp.asarray(own[6], dtype)
    if reacting:
        by_force = by_force.at[jnp.asarray(reacting)].add(jnp.asarray(own[7], dtype))
    wider = _with_columns(g, count)
    if len(modulated):
        at = wider.w.shape[0] - count
        wider = wider._replace(normal=wider.normal.at[:, at:].add(excess))
    if loads and carried is not None and mechanics.carried is not None:
        at = wider.w.shape[0] - count
        wider = wider._replace(
            normal=wider.normal.at[:, at:].add(matmul(carried.share, of_loads)),
            elongation=wider.elongation.at[mechanics.carried.places, at:].add(of_loads),
        )
    constant = jnp.arange(g.w.shape[0]) == 0
    given = g.force + select(constant, (equations.f + force)[:, None], 0.0)
    forces = jnp.concatenate([-equations.K, -equations.C, given, by_force], axis=1)
    before = ((0, 0), (forces.shape[1] - count, 0))
    system = build(
        prepared,
        equations,
        wider,
        state,
        jnp.concatenate([state.q, state.v, wider.w]),
        forces,
        equations.P,
        magnitude=False,
        own=(jnp.pad(by_acceleration, before), jnp.pad(by_reaction, before)),
    )
    if planes:
        margin = jnp.eye(forces.shape[1], dtype=dtype)[:, forces.shape[1] - planes :]
        system = system._replace(quantities=system.quantities._replace(margin=margin))
    return SmoothPiece(prepared, equations, g, state, forces, system)


def curved_forces(mechanics: Mechanics, state: State, g: Given, t, q, v, w) -> Float[Array, " n"]:
    """Forces that are not linear in the motion, in the segments of ``state``; ``w``: the basis."""
    found = jnp.zeros_like(q)
    for element in mechanics.nonlinear:
        found = found + element.force(mechanics.axes, t, q, v)
    if mechanics.bristles is None:
        return found
    rate = matvec(mechanics.piecewise.directions, v) + matvec(g.elongation_rate, w)
    bristles, carried, loads = mechanics.bristles, mechanics.carried, None
    if bristles.depend and carried is not None:
        rows, places = carried.lines(mechanics.piecewise, state.segment), carried.places
        load = matvec(rows.q, q) + matvec(rows.v, v) + matvec(g.elongation[places], w)
        load = load + carried.of_curved(mechanics.axes, t, q, v)
        loads = load, select(state.segment[places] == 0, load, -load)
    return found + bristles.force(rate, v, bristles.sides(state.segment), loads)


def by_velocity(mechanics: Mechanics) -> tuple[list[int], bool]:
    """Friction elements whose force depends on the sliding velocity (always so in a plane), and
    whether any contact along a line is of that kind."""
    depends = [not law.velocity_independent for law in mechanics.laws]
    nf = mechanics.n_friction
    for row in (row for plane in mechanics.planes for row in plane):
        depends[row] = row < nf
    return [i for i in range(nf) if depends[i]], any(depends[nf:])


def _with_columns(g: Given, count: int) -> Given:
    """``g`` over a basis with ``count`` more functions, which no input contains."""
    rows = {
        name: jnp.pad(getattr(g, name), ((0, 0), (0, count)))
        for name in Given._fields
        if name not in ("w", "A", "bound")
    }
    w, A = jnp.pad(g.w, (0, count)), jnp.pad(g.A, ((0, count), (0, count)))
    return g._replace(w=w, A=A, bound=None, **rows)
