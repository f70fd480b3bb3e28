"""Any mode on the smooth piece that a step begins in, as rows over ``z = (q, v, w, o)``.

``w`` is the basis of what is given, ``o`` what is not linear in the motion: forces of elements,
friction that depends on the sliding velocity, and what it changes where it enters the reactions.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jfric.numerics.isolation import LEADING
from jfric.numerics.linear_algebra import matmul, matvec
from jfric.results.modes import Mode
from jfric.solvers.event_driven.given import Given, basis_after
from jfric.solvers.event_driven.guards import Quantities
from jfric.solvers.event_driven.linear_system import LinearSystem, build
from jfric.solvers.event_driven.mode_equations import ModeEquations, mode_equations
from jfric.solvers.event_driven.prepared import Prepared
from jfric.solvers.event_driven.state import State
from jfric.system.laws import AbstractLaw
from jfric.system.mechanics import Mechanics


class SmoothPiece(eqx.Module):
    """The equations of a mode, continued beyond the piece's end where a step reaches it."""

    prepared: Prepared
    equations: ModeEquations
    g: Given
    state: State
    #: Forces (n, z) but for unknown reactions.
    forces: Float[Array, "n z"]
    system: LinearSystem

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
        """What is not linear, a time ``s`` after the start."""
        mechanics, state = self.prepared.mechanics, self.state
        found = jnp.zeros((0,), q.dtype)
        if mechanics.nonlinear:
            found = jnp.zeros_like(q)
        for element in mechanics.nonlinear:
            found = found + element.force(mechanics.axes, state.t + s, q, v)
        elements, contacts = by_velocity(mechanics)
        if not elements and not contacts:
            return found
        nt = self.prepared.nt
        gamma = matvec(self.prepared.W[:nt], v) - matvec(self.g.velocity[:nt], w)
        positive, negative = kinetic(self.prepared, state, gamma)
        if elements:
            at = jnp.asarray(elements)
            mode = state.mode[at]
            ratio = jnp.where(mode == Mode.SLIP_NEG, negative[at], 0.0)
            ratio = jnp.where(mode == Mode.SLIP_POS, -positive[at], ratio)
            # What others hold carries its static limit.
            change = jnp.where(self.equations.held[at], 0.0, ratio - self.equations.sliding[at])
            found = jnp.concatenate([found, change * matvec(self.g.normal, w)[at]])
        if not contacts:
            return found
        old = self.equations
        now = eqx.tree_at(
            lambda p: (p.kinetic_positive, p.kinetic_negative), self.prepared, (positive, negative)
        )
        now = mode_equations(now, state.mode, state.segment, old.held)
        z = jnp.concatenate([q, v, w, found])
        f, c = matvec(self.forces[:, : len(z)], z), matvec(self.g.acceleration, w)
        a = matvec(now.P - old.P, f) + matvec(now.PQ - old.PQ, c)
        reaction = matvec(now.L - old.L, f) + matvec(now.Q - old.Q, c)
        return jnp.concatenate([found, a, reaction])

    def at(self, s, q, v) -> Float[Array, " z"]:
        """``z`` a time ``s`` after the start."""
        w = basis_after(self.prepared, self.g, s)
        return jnp.concatenate([q, v, w, self.others(s, q, v, w)])

    def acceleration(self, s, q, v) -> Float[Array, " n"]:
        """Accelerations a time ``s`` after the start."""
        return matvec(self.rates, self.at(s, q, v))

    def derivatives(self, q, v) -> Float[Array, "5 z"]:
        """``z`` and its derivatives at the start: positions to the fourth, velocities to the third,
        what is not linear to the second, zeros beyond."""
        w = [self.g.w]
        for _ in range(LEADING - 1):
            w.append(matvec(self.g.A, w[-1]))

        def value(s, q, v):
            return self.others(s, q, v, basis_after(self.prepared, self.g, s))

        def along(function):
            def derivative(s, q, v):
                tangent = (jnp.ones_like(s), v, self.acceleration(s, q, v))
                return jax.jvp(function, (s, q, v), tangent)[1]

            return derivative

        start = (jnp.zeros_like(self.state.t), q, v)
        others = [value(*start)]
        nothing, none = jnp.zeros_like(others[0]), jnp.zeros_like(q)
        others += [nothing] * (LEADING - 1)
        if nothing.shape[0]:
            others[1], others[2] = along(value)(*start), along(along(value))(*start)
        motion, found = [q, v], []
        for k in range(LEADING):
            rate = motion[k + 1] if k + 1 < len(motion) else none
            found.append(jnp.concatenate([motion[k], rate, w[k], others[k]]))
            if k < 3:
                motion.append(matvec(self.rates, found[k]))
        return jnp.stack(found)

    def force_sizes(self, z: Float[Array, "5 z"]) -> Float[Array, "3 n"]:
        """Magnitudes of the forces but for unknown reactions, from the derivatives at the start."""
        return jnp.abs(matmul(z[:3], self.forces.T))

    def bending(self, z: Float[Array, "5 z"]) -> Float[Array, "3 m"] | float:
        """Magnitudes of relative accelerations that do not follow from accelerations, likewise."""
        del z
        return 0.0

    def quantities(self, z: Float[Array, "p z"]) -> Quantities:
        """What guards are made of, of rows of ``z``: points, or coefficients of polynomials."""
        return Quantities(*(matmul(z, x) for x in self.system.quantities))

    def magnitudes(self, z: Float[Array, "p z"]) -> Quantities:
        """The same from magnitudes of ``z``."""
        return Quantities(*(matmul(z, jnp.abs(x)) for x in self.system.quantities))


def smooth_piece(
    prepared: Prepared, equations: ModeEquations, g: Given, state: State, force
) -> SmoothPiece:
    """The piece of a mode that begins at the time of ``state``; ``force`` (n,): a constant extra
    force."""
    mechanics, dtype = prepared.mechanics, state.q.dtype
    n, m = mechanics.n, prepared.W.shape[0]
    elements, contacts = by_velocity(mechanics)
    # What is not linear: forces, friction of elements, then accelerations and reactions.
    sizes = [n * bool(mechanics.nonlinear), len(elements), n * contacts, m * contacts]
    count = sum(sizes)
    own = np.split(np.eye(count), np.cumsum(sizes)[:-1])
    by_force = jnp.zeros((n, count), dtype)
    by_acceleration, by_reaction = by_force, jnp.zeros((m, count), dtype)
    if mechanics.nonlinear:
        by_force = by_force + jnp.asarray(own[0], dtype)
    if elements:
        friction = jnp.asarray(own[1], dtype)
        by_force = by_force + matmul(mechanics.R_T[jnp.asarray(elements)].T, friction)
        by_reaction = by_reaction.at[jnp.asarray(elements)].set(friction)
    if contacts:
        by_acceleration = by_acceleration + jnp.asarray(own[2], dtype)
        by_reaction = by_reaction + jnp.asarray(own[3], dtype)
    wider = _with_columns(g, count)
    constant = jnp.arange(g.w.shape[0]) == 0
    given = g.force + jnp.where(constant, (equations.f + force)[:, None], 0.0)
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
    return SmoothPiece(prepared, equations, g, state, forces, system)


def by_velocity(mechanics: Mechanics) -> tuple[list[int], bool]:
    """Friction elements whose law depends on the sliding velocity, and whether there are contacts
    of that kind."""
    depends = [not law.velocity_independent for law in mechanics.laws]
    nf = mechanics.n_friction
    return [i for i in range(nf) if depends[i]], any(depends[nf:])


def _with_columns(g: Given, count: int) -> Given:
    """``g`` over a basis with ``count`` functions more, of which nothing given is made."""
    rows = {
        name: jnp.pad(getattr(g, name), ((0, 0), (0, count)))
        for name in Given._fields
        if name not in ("w", "A", "bound")
    }
    w, A = jnp.pad(g.w, (0, count)), jnp.pad(g.A, ((0, count), (0, count)))
    return g._replace(w=w, A=A, bound=None, **rows)


def kinetic(prepared: Prepared, state: State, gamma):
    """Coefficients of sliding (nt,) of all laws at the sliding velocities ``gamma`` (nt,)."""
    speed = jnp.where(state.mode == Mode.SLIP_NEG, -gamma, gamma)
    laws = prepared.mechanics.laws
    pairs = [continued(law, s) for law, s in zip(laws, speed, strict=True)]
    return jnp.stack([p[0] for p in pairs]), jnp.stack([p[1] for p in pairs])


def continued(law: AbstractLaw, speed):
    """Coefficients of sliding, with the tangent at zero for negative speeds: a step may overshoot
    the end of sliding, and derivatives there must be those of the law."""
    zero = jnp.zeros_like(speed)
    values = law.kinetic(jnp.where(speed >= 0, speed, zero))
    start, slope = jax.jvp(law.kinetic, (zero,), (jnp.ones_like(zero),))
    return tuple(
        jnp.where(speed >= 0, x, a + b * speed)
        for x, a, b in zip(values, start, slope, strict=True)
    )
