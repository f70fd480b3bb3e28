"""The Runge-Kutta flow: any system, through diffrax's explicit solvers.

A step is one call of the solver's own ``step``. Its dense output, sampled at Chebyshev-Lobatto
nodes, gives polynomials for motion, reactions and guards; the certificate holds for these,
widened by the solver's error estimate and the polynomials' own tail. Events found on them are
then landed on with real steps, so that the state at an event is the solver's, not the
interpolant's.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jfric.numerics.linear_algebra import matvec
from jfric.numerics.polynomials import nodes_and_fit, through_ends
from jfric.results.modes import Mode
from jfric.solvers.event_driven.constants import LEADING, constants
from jfric.solvers.event_driven.exact_flow import natural_step
from jfric.solvers.event_driven.flow_step import Step
from jfric.solvers.event_driven.given import Given, basis_after
from jfric.solvers.event_driven.guards import Quantities, guard_magnitudes, guards
from jfric.solvers.event_driven.mode_equations import ModeEquations, mode_equations
from jfric.solvers.event_driven.prepared import Prepared
from jfric.solvers.event_driven.state import State
from jfric.system.laws import AbstractLaw

METHODS: dict[str, type[diffrax.AbstractERK]] = {
    "dopri8": diffrax.Dopri8,
    "dopri5": diffrax.Dopri5,
    "tsit5": diffrax.Tsit5,
}
#: Relative threshold for leading coefficients that count as zero.
ZERO = 1e-11


class Local(NamedTuple):
    """Everything that guards and outputs are made of, at one instant."""

    f: Float[Array, " n"]
    a: Float[Array, " n"]
    lambda_t: Float[Array, " nt"]
    lambda_n: Float[Array, " nu"]
    normal: Float[Array, " nf"]
    prescribed_rate: Float[Array, " nt"]
    gamma: Float[Array, " nt"]
    gamma_rate: Float[Array, " nt"]
    gap: Float[Array, " nu"]
    gap_rate: Float[Array, " nu"]
    gap_acceleration: Float[Array, " nu"]
    elongation: Float[Array, " ns"]
    elongation_rate: Float[Array, " ns"]
    elongation_acceleration: Float[Array, " ns"]


class Piece(NamedTuple):
    """The equations of a mode and what is given, on the smooth piece that a step begins in."""

    prepared: Prepared
    equations: ModeEquations
    g: Given
    state: State
    force: Float[Array, " n"]

    def at(self, t, q, v) -> Local:
        """Forces, accelerations and reactions; where the piece ends, those just before."""
        w = basis_after(self.prepared, self.g, t - self.state.t)
        nt = self.prepared.nt
        gamma = self.prepared.W[:nt] @ v - self.g.velocity[:nt] @ w
        now = sliding_equations(self.prepared, self.equations, self.state, gamma)
        return _local(self, now, w, t, q, v)


def _local(piece: Piece, equations: ModeEquations, w, t, q, v) -> Local:
    """``equations``: with the friction at the present sliding velocity."""
    prepared, g = piece.prepared, piece.g
    mechanics, nt, nf = prepared.mechanics, prepared.nt, prepared.nf
    normal = g.normal @ w
    f = equations.f + piece.force + g.force @ w
    if equations is not piece.equations:
        changed = (equations.sliding - piece.equations.sliding) * normal
        f = f + matvec(mechanics.R_T[:nf].T, changed)
    f = f - matvec(equations.K, q) - matvec(equations.C, v)
    for element in mechanics.nonlinear:
        f = f + element.force(mechanics.axes, t, q, v)
    acceleration = g.acceleration @ w
    reaction = matvec(equations.L, f) + matvec(equations.Q, acceleration)
    a = matvec(equations.P, f) + matvec(equations.PQ, acceleration)
    relative = prepared.W @ v - g.velocity @ w
    relative_rate = prepared.W @ a - acceleration
    d = mechanics.piecewise.directions
    return Local(
        f=f,
        a=a,
        lambda_t=reaction[:nt].at[:nf].add(equations.sliding * normal),
        lambda_n=reaction[nt:],
        normal=normal,
        prescribed_rate=acceleration[:nt],
        gamma=relative[:nt],
        gamma_rate=relative_rate[:nt],
        gap=mechanics.W_N @ q + g.gap @ w,
        gap_rate=relative[nt:],
        gap_acceleration=relative_rate[nt:],
        elongation=d @ q + g.elongation @ w,
        elongation_rate=d @ v + g.elongation_rate @ w,
        elongation_acceleration=d @ a + (g.elongation_rate @ g.A) @ w,
    )


def sliding_equations(
    prepared: Prepared, equations: ModeEquations, state: State, gamma
) -> ModeEquations:
    """``equations`` with the friction of laws that depend on the sliding velocity as it is at
    ``gamma`` (nt,), in the modes of ``state``; themselves for all other laws."""
    mechanics, nf = prepared.mechanics, prepared.nf
    if all(law.velocity_independent for law in mechanics.laws):
        return equations
    speed = jnp.where(state.mode == Mode.SLIP_NEG, -gamma, gamma)
    pairs = [continued(law, s) for law, s in zip(mechanics.laws, speed, strict=True)]
    positive, negative = jnp.stack([p[0] for p in pairs]), jnp.stack([p[1] for p in pairs])
    if all(law.velocity_independent for law in mechanics.laws[nf:]):
        mode = state.mode[:nf]
        backwards = jnp.where(mode == Mode.SLIP_NEG, negative[:nf], 0.0)
        return equations._replace(
            sliding=jnp.where(mode == Mode.SLIP_POS, -positive[:nf], backwards)
        )
    at_speed = eqx.tree_at(
        lambda p: (p.kinetic_positive, p.kinetic_negative), prepared, (positive, negative)
    )
    return mode_equations(at_speed, state.mode, state.segment, equations.held)


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


class RungeKuttaFlow(eqx.Module):
    """Explicit Runge-Kutta steps with error control to the relative tolerance ``rtol``."""

    rtol: float = eqx.field(static=True)
    method: str = eqx.field(static=True, default="dopri8")
    #: Kind of loop over the stages: ``"lax"`` for forward, ``"checkpointed"`` for reverse mode.
    stages: Literal["lax", "checkpointed"] = eqx.field(static=True, default="lax")
    #: Events are landed on by real steps.
    lands: bool = eqx.field(static=True, default=True)
    #: Its programs are not lowered.
    lowered: bool = eqx.field(static=True, default=False)

    def zero(self, dtype) -> float:
        """Part of what a quantity is made of below which it counts as zero."""
        return threshold(smallest_tolerance(self, dtype), dtype)

    def natural_step(self, prepared, equations, state):
        """Longest sensible step [s]: a fraction of the linear part's time scale."""
        return 0.5 * natural_step(prepared, equations)

    def step(self, prepared, equations, g: Given, state, h, force) -> Step:
        """Polynomials on ``[t, t + h]``, and whether the error is acceptable."""
        solver = METHODS[self.method](scan_kind=self.stages)
        t = state.t

        at = Piece(prepared, equations, g, state, force).at

        def field(t, y, args):
            q, v = y
            return v, at(t, q, v).a

        terms = diffrax.ODETerm(field)
        y0 = (state.q, state.v)
        memory = solver.init(terms, t, t + h, y0, None)
        y1, error, dense, _, _ = solver.step(terms, t, t + h, y0, None, memory, made_jump=True)
        path = solver.interpolation_cls(t0=t, t1=t + h, **dense)
        nodes, fit = nodes_and_fit(state.q.dtype.name)
        inside = [path.evaluate(t + h * s) for s in nodes[1:-1]]
        points = [y0, *inside, y1]
        q = jnp.stack([p[0] for p in points])
        v = jnp.stack([p[1] for p in points])
        times = t + h * jnp.asarray(nodes, q.dtype)
        sampled = jax.vmap(at)(times, q, v)
        poly = jax.tree.map(lambda x: jnp.asarray(fit) @ x, sampled)
        q_poly, v_poly = (
            through_ends(jnp.asarray(fit) @ q, q),
            through_ends(jnp.asarray(fit) @ v, v),
        )
        one = (jnp.arange(len(nodes)) == 0).astype(q.dtype)[:, None]
        quantities = _quantities(one, poly)
        values = guards(prepared, state.mode, state.segment, quantities)
        rest = [poly.a, poly.lambda_t, poly.lambda_n, poly.normal, poly.prescribed_rate]
        leading, scales, relative, unbalanced = _start(prepared, equations, g, state, force, h)
        rtol = smallest_tolerance(self, state.q.dtype)
        ratio, bound = _error(prepared, rtol, state, y1, error, sampled.a, unbalanced, h)
        factor, accepted = factor_of_step(ratio, solver.order(terms) or 1)
        tail = jnp.abs(values[-1]) + jnp.abs(values[-2]) / 16
        zero = threshold(rtol, q.dtype)
        remainder = tail + bound * jnp.sum(scales[:2], axis=0)
        return Step(
            h=h,
            table=jnp.concatenate([q_poly, v_poly, *rest], axis=1),
            rows=None,
            guard_table=values,
            guard_rows=None,
            zero=zero * scales,
            leading=leading,
            unbalanced=unbalanced,
            relative_zero=zero * relative[1],
            relative_leading=relative[0],
            remainder=jax.lax.stop_gradient(remainder),
            accepted=accepted,
            h_next=jax.lax.stop_gradient(h * factor),
        )


def smallest_tolerance(flow: RungeKuttaFlow, dtype) -> float:
    """No tolerance below what the precision can resolve."""
    return max(flow.rtol, 64 * float(jnp.finfo(dtype).eps))


def threshold(rtol: float, dtype) -> float:
    """Leading coefficients of guards count as zero below this part of what they are made of.

    What the integration error hides does, or ties would be decided by it.
    """
    return max(ZERO, constants(dtype).zero, 30 * rtol)


def factor_of_step(ratio, order: int):
    """The next step over this one, and whether this one is accepted; ``ratio``: its error over the
    tolerance."""
    factor = 0.9 * jnp.exp(jnp.log(jnp.maximum(ratio, 1e-12)) / -order)
    accepted = jax.lax.stop_gradient(ratio <= 1.0)
    return jnp.where(accepted, jnp.clip(factor, 0.3, 6.0), jnp.clip(factor, 0.1, 0.8)), accepted


def _quantities(one, x: Local) -> Quantities:
    return Quantities(
        one=one,
        gamma=x.gamma,
        lambda_t=x.lambda_t,
        lambda_n=x.lambda_n,
        normal=x.normal,
        gap=x.gap,
        elongation=x.elongation,
        elongation_rate=x.elongation_rate,
    )


def _start(prepared, equations, g: Given, state: State, force, h):
    """Leading coefficients of the guards at the start of the step and their magnitudes.

    The flow is differentiated exactly: positions are known to their fourth derivative, velocities
    to the third, forces to the second; what is beyond counts as zero.
    """

    here = Piece(prepared, equations, g, state, force).at

    def along(function):
        def derivative(t, q, v):
            tangent = (jnp.ones_like(t), v, here(t, q, v).a)
            return jax.jvp(function, (t, q, v), tangent)[1]

        return derivative

    y = (state.t, state.q, state.v)
    d0, d1, d2 = here(*y), along(here)(*y), along(along(here))(*y)

    def series(*values):
        scaled = [x * h**k / math.factorial(k) for k, x in enumerate(values)]
        scaled += [jnp.zeros_like(values[0])] * (LEADING - len(values))
        return jnp.stack(scaled)

    one = (jnp.arange(LEADING) == 0).astype(h.dtype)[:, None]
    quantities = Quantities(
        one=one,
        gamma=series(d0.gamma, d0.gamma_rate, d1.gamma_rate, d2.gamma_rate),
        lambda_t=series(d0.lambda_t, d1.lambda_t, d2.lambda_t),
        lambda_n=series(d0.lambda_n, d1.lambda_n, d2.lambda_n),
        normal=series(d0.normal, d1.normal, d2.normal),
        gap=series(
            d0.gap, d0.gap_rate, d0.gap_acceleration, d1.gap_acceleration, d2.gap_acceleration
        ),
        elongation=series(
            d0.elongation,
            d0.elongation_rate,
            d0.elongation_acceleration,
            d1.elongation_acceleration,
            d2.elongation_acceleration,
        ),
        elongation_rate=series(
            d0.elongation_rate,
            d0.elongation_acceleration,
            d1.elongation_acceleration,
            d2.elongation_acceleration,
        ),
    )
    leading = guards(prepared, state.mode, state.segment, quantities)
    K, C, P = jnp.abs(equations.K), jnp.abs(equations.C), jnp.abs(prepared.mechanics.M_inverse)
    MW, L, Q = jnp.abs(prepared.MW), jnp.abs(equations.L), jnp.abs(equations.Q)
    bound = g.bound
    assert bound is not None
    given_now = bound.force @ bound.w
    forces = [
        jnp.abs(d0.f) + given_now + K @ state.q_scale + C @ state.v_scale,
        jnp.abs(d1.f) + K @ state.v_scale + C @ jnp.abs(d0.a),
        jnp.abs(d2.f) + K @ jnp.abs(d0.a) + C @ jnp.abs(d1.a),
    ]
    prescribed, w = bound.acceleration, bound.w
    drift = [prescribed @ w, prescribed @ bound.A @ w, prescribed @ bound.A @ bound.A @ w]
    reactions = [L @ f + Q @ x for f, x in zip(forces, drift, strict=True)]
    rates = [P @ f + MW @ r for f, r in zip(forces, reactions, strict=True)]
    relative = [jnp.abs(prepared.W) @ r + x for r, x in zip(rates, drift, strict=True)]
    nt = prepared.nt
    d = jnp.abs(prepared.mechanics.piecewise.directions)
    speed = jnp.abs(prepared.W) @ state.v_scale + bound.velocity @ w
    position = jnp.abs(prepared.mechanics.W_N) @ state.q_scale + bound.gap @ w
    length = d @ state.q_scale + bound.elongation @ w
    stretch = d @ state.v_scale + bound.elongation_rate @ w
    bounds = Quantities(
        one=one,
        gamma=series(speed[:nt], *(x[:nt] for x in relative)),
        lambda_t=series(*(x[:nt] for x in reactions)),
        lambda_n=series(*(x[nt:] for x in reactions)),
        normal=series(*(jnp.abs(x.normal) for x in (d0, d1, d2))),
        gap=series(position, speed[nt:], *(x[nt:] for x in relative)),
        elongation=series(length, stretch, *(d @ x for x in rates)),
        elongation_rate=series(stretch, *(d @ x for x in rates)),
    )
    scales = guard_magnitudes(prepared, state.mode, state.segment, bounds)
    watched = 0 if prepared.regular else prepared.W.shape[0]
    moves = jnp.concatenate(
        [quantities.gamma, series(d0.gap_rate, d0.gap_acceleration, d1.gap_acceleration)], axis=1
    )
    sizes = jnp.concatenate([bounds.gamma, series(speed[nt:], *(x[nt:] for x in relative))], axis=1)
    moving = moves[:, :watched], jax.lax.stop_gradient(sizes[:, :watched])
    return leading, jax.lax.stop_gradient(scales), moving, jax.lax.stop_gradient(rates[0])


def _error(prepared, rtol: float, state: State, y1, error, accelerations, unbalanced, h):
    """Error relative to tolerance and scale of each component, and relative to the scale.

    Velocities are not resolved below a thousandth of what forces and reactions would cause if
    they did not cancel (accelerations ``unbalanced``): rounding error would be mistaken for
    integration error.
    """
    (q1, v1), (dq, dv) = y1, error
    q_scale = jnp.maximum(jnp.maximum(jnp.abs(q1), state.q_scale), h * jnp.abs(v1))
    v_scale = jnp.maximum(jnp.abs(v1), state.v_scale)
    v_scale = jnp.maximum(v_scale, h * jnp.max(jnp.abs(accelerations), axis=0))
    v_scale = jnp.maximum(v_scale, 1e-3 * h * unbalanced)
    q_scale = jnp.maximum(q_scale, h * v_scale)
    tiny = jnp.finfo(q1.dtype).tiny
    relative = jnp.concatenate(
        [jnp.abs(dq) / jnp.maximum(q_scale, tiny), jnp.abs(dv) / jnp.maximum(v_scale, tiny)]
    )
    relative = jax.lax.stop_gradient(jnp.max(relative))
    relative = jnp.where(jnp.isfinite(relative), relative, 1e3)
    return relative / rtol, jnp.minimum(relative, rtol) * 10
