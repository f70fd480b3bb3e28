"""The Runge-Kutta flow in scalars: see :mod:`jfric.solvers.event_driven.runge_kutta_flow`.

Forces that are not linear in the motion are further functions of the basis: all else is a row over
``(q, v, w)``.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jfric.contact import rules
from jfric.numerics.loops import once
from jfric.numerics.polynomials import horner, nodes_and_fit
from jfric.results.modes import Mode
from jfric.solvers.event_driven.constants import LEADING
from jfric.solvers.event_driven.flow_step import Step, step_without_guards
from jfric.solvers.event_driven.isolation import watched_zero
from jfric.solvers.event_driven.prepared import Prepared
from jfric.solvers.event_driven.runge_kutta_flow import (
    RungeKuttaFlow,
    factor_of_step,
    smallest_tolerance,
    threshold,
)
from jfric.solvers.event_driven.scalar_equations import magnitude_rows
from jfric.solvers.event_driven.scalar_isolation import Guard
from jfric.solvers.event_driven.scalar_rows import Row, dot, is_zero, magnitudes, times, total
from jfric.solvers.event_driven.scalar_stages import Stages, stages, tables
from jfric.solvers.event_driven.scalar_step import End, ScalarStep, Start
from jfric.solvers.event_driven.smooth_piece import continued
from jfric.solvers.event_driven.state import State


def other_forces(prepared: Prepared) -> int:
    """Number of forces that the rows leave to :meth:`_Flow.others`."""
    mechanics = prepared.mechanics
    if mechanics.has_linear_modes:
        return 0
    by_velocity = not all(law.velocity_independent for law in mechanics.laws)
    return mechanics.n + int(by_velocity)


class _Flow(NamedTuple):
    """The motion as an ordinary differential equation on a smooth piece."""

    prepared: Prepared
    start: Start
    t: jax.Array

    def others(self, s, q: list, v: list, w: Row) -> list:
        """Forces that depend on the motion: nonlinear elements, then friction by velocity."""
        count, mechanics = self.start.g.basis.others, self.prepared.mechanics
        if not count:
            return []
        n = mechanics.n
        forces = [0.0 * s] * n
        for element in mechanics.nonlinear:
            f = element.force(mechanics.axes, self.t + s, jnp.stack(q), jnp.stack(v))
            forces = [forces[i] + f[i] for i in range(n)]
        if count == n:
            return forces
        g, mode = self.start.g, self.start.mode
        gamma = total(self.prepared.W[0, i] * v[i] for i in range(n))
        gamma = gamma - dot(g.velocity[0][: len(w)], w)
        speed = jnp.where(mode == Mode.SLIP_NEG, -gamma, gamma)
        positive, negative = continued(mechanics.laws[0], speed)
        ratio = jnp.where(mode == Mode.SLIP_POS, -positive, 0.0)
        ratio = jnp.where(mode == Mode.SLIP_NEG, negative, ratio)
        return [*forces, ratio * dot(g.normal[: len(w)], w)]

    def all(self, s, q: list, v: list) -> Row:
        """``(q, v, w)`` at the time ``s`` after the start."""
        w = self.start.g.basis.at(s)
        return [*q, *v, *w, *self.others(s, q, v, w)]

    def rates(self, z: Row) -> list:
        """Accelerations from ``(q, v, w)``."""
        return [dot(row, z) for row in self.start.y.a]


def runge_kutta_step(
    flow: RungeKuttaFlow, prepared: Prepared, start: Start, state: State, h, on, frozen
) -> ScalarStep:
    """One step of the flow's method. ``frozen`` takes the derivatives away."""
    ode = _Flow(prepared, start, state.t)
    acceleration = jax.jit(lambda s, q, v: ode.rates(ode.all(s, q, v)))
    n, dtype = prepared.mechanics.n, h.dtype
    method = tables(flow.method)
    x = once(stages(method, acceleration, start.q, start.v, h, on), on)
    path = once(_Path(x.q_dense, x.v_dense, *_fitted_basis(ode, x, h)), on)
    guards, missed = zip(*(path.combination(row) for row in start.guards), strict=True)
    guards = once(list(guards), on)

    leading, sizes, unbalanced = once(_start(ode, state, h, frozen), on)
    rtol = smallest_tolerance(flow, dtype)
    ratio, bound = _error(rtol, state, *frozen((x, unbalanced, h)))
    factor, accepted = once(factor_of_step(ratio, method.order), on)
    zero = threshold(rtol, dtype)
    limit = [
        rest + bound * (row[0] + row[1]) for rest, row in zip(frozen(missed), sizes, strict=True)
    ]
    still = frozen(guards)
    bounced = [(start.mode == Mode.OPEN) & (state.known[0] > 0), False]

    def watched(signs) -> list[Guard]:
        return [
            Guard(
                p,
                jnp.where(sign.null, 0, sign.order),
                sign.null,
                rest,
                total(jnp.abs(c) for c in p),
                watched_zero(first, [zero * x for x in row], sign.null),
                rules.may_stay_at_zero(sign, is_after_bounce),
            )
            for p, first, rest, sign, row, is_after_bounce in zip(
                still, frozen(leading), limit, signs, sizes, bounced, strict=True
            )
        ]

    def at(s):
        q, v = [horner(p, s) for p in x.q_dense], [horner(p, s) for p in x.v_dense]
        return q, v, ode.all(s * h, q, v)[2 * n :]

    def largest(dense):
        return [jax.lax.stop_gradient(total(jnp.abs(c) for c in p)) for p in dense]

    jerk = [total(k * (k - 1.0) * c for k, c in enumerate(p)) / (h * h) for p in x.v_dense]
    end = once(End(x.q, x.v, ode.all(h, x.q, x.v)[2 * n :], jerk), on)
    q_scale, v_scale = once((largest(x.q_dense), largest(x.v_dense)), on)
    return ScalarStep(
        h=h,
        guards=guards,
        leading=leading,
        zero=[[zero * size for size in row] for row in sizes],
        watched=watched,
        at=at,
        q_scale=q_scale,
        v_scale=v_scale,
        unbalanced=unbalanced,
        accepted=accepted,
        h_next=jax.lax.stop_gradient(h * factor),
        looked=total([*x.q, *x.v, guards[0][0], guards[1][0]]),
        whole=functools.partial(_as_step, ode, path, h),
        end=end,
    )


class _Path(NamedTuple):
    """The motion and the basis on a step as polynomials in ``s``, constant term first."""

    q: list[list]
    v: list[list]
    #: Coefficients of the powers of time: one number each.
    powers: list
    #: All other functions of the basis, and bounds on what their polynomials leave out.
    others: list[list]
    missed: list

    def combination(self, row: Row) -> tuple[list, Any]:
        """The coefficients of a row over ``(q, v, w)``, and a bound on what they leave out."""
        n, p = len(self.q), len(self.powers)
        sized = [*zip(row[:n], self.q, strict=True), *zip(row[n : 2 * n], self.v, strict=True)]
        fitted = row[2 * n + p :]
        sized += zip(fitted, self.others, strict=True)
        count = max(LEADING, p, *(len(y) for _, y in sized))
        zero = 0.0 * self.q[0][0]
        result = []
        for k in range(count):
            terms = [times(c, y[k]) for c, y in sized if k < len(y)]
            terms += [times(row[2 * n + k], self.powers[k])] if k < p else []
            result.append(total(terms) + zero)
        sizes = [c if is_zero(c) else jnp.abs(c) for c in fitted]
        return result, dot(sizes, self.missed) + zero


def _fitted_basis(ode: _Flow, x: Stages, h):
    """The basis on the step: powers of time, polynomials through all else, their last terms."""
    g, n = ode.start.g, ode.prepared.mechanics.n
    p = g.basis.powers
    powers: list = [jnp.ones_like(h)]
    for _ in range(1, p):
        powers.append(powers[-1] * h)
    if g.basis.size == p:
        return powers, [], []
    nodes, fit = nodes_and_fit(h.dtype.name)

    # A loop: written out, these functions would be most of the program.
    def sample(_, s):
        q, v = ([horner(y, s) for y in dense] for dense in (x.q_dense, x.v_dense))
        return None, ode.all(s * h, q, v)[2 * n + p :]

    sampled = jax.lax.scan(sample, None, jnp.asarray(nodes))[1]
    columns = [_fitted(fit, [values[k] for k in range(len(nodes))]) for values in sampled]
    missed = [jnp.abs(y[-1]) + jnp.abs(y[-2]) / 16 for y in columns]
    return powers, columns, missed


def _fitted(fit: np.ndarray, values: list) -> list:
    """Coefficients of the polynomial through the ``values`` at the nodes; ends exact."""
    rows = fit[1:-1].tolist()
    inner = [total(c * y for c, y in zip(row, values, strict=True)) for row in rows]
    return [values[0], *inner, values[-1] - total([values[0], *inner])]


def _start(ode: _Flow, state: State, h, frozen):
    """Leading coefficients of the guards, their sizes and the accelerations by magnitudes.

    See :func:`jfric.solvers.event_driven.runge_kutta_flow._start`: forces are known to their second
    derivative, velocities to the third, gaps to the fourth; what is beyond counts as zero.
    """
    prepared, start = ode.prepared, ode.start
    g, mode, n = start.g, start.mode, prepared.mechanics.n
    q, v = start.q, start.v
    w = g.basis.derivatives(LEADING - 1)
    count = g.basis.others
    others = _derivatives_of_others(ode, h)
    others += [[0.0] * count] * (LEADING - len(others))
    motion = [q, v]
    z = []
    for k in range(LEADING):
        rate = motion[k + 1] if k + 1 < len(motion) else [0.0] * n
        z.append([*motion[k], *rate, *w[k], *others[k]])
        if k < 3:
            motion.append(ode.rates(z[k]))
    stick, is_open = mode == Mode.STICK, mode == Mode.OPEN
    exact = [jnp.where(stick, 3, jnp.where(is_open, 5, 4)), jnp.where(stick | ~is_open, 3, 1)]
    scales = [h**k / math.factorial(k) for k in range(LEADING)]
    leading = [
        [jnp.where(k < known, scales[k] * dot(row, z[k]), 0.0) for k in range(LEADING)]
        for row, known in zip(start.guards, exact, strict=True)
    ]

    sized = frozen(magnitude_rows(prepared, start.absolute, g, start.X, mode))
    q_scale, v_scale = list(state.q_scale), list(state.v_scale)
    a = [[jnp.abs(u) for u in row] for row in frozen(motion[2:4])]
    given = frozen([[*g.basis.sizes(k), *magnitudes(others[k])] for k in range(LEADING)])
    # Forces by what causes them; velocities and gaps by what the forces cause.
    caused = [q_scale, v_scale]
    forces, others_sizes = [], []
    pairs = [(q_scale, v_scale), (v_scale, a[0]), (a[0], a[1])]
    for k, (first, second) in enumerate(pairs):
        forces.append([*first, *second, *given[k]])
        caused.append([dot(row, forces[k]) for row in sized.y.a])
    for k in range(LEADING):
        rate = caused[k + 1] if k + 1 < len(caused) else [0.0] * n
        others_sizes.append([*caused[k], *rate, *given[k]])
    forces += others_sizes[len(forces) :]
    scales = frozen(scales)
    sizes = []
    for row, force, known in zip(sized.guards, (stick, jnp.asarray(True)), exact, strict=True):
        found = [
            jnp.where(force, dot(row, forces[k]), dot(row, others_sizes[k])) for k in range(LEADING)
        ]
        sizes.append([jnp.where(k < known, scales[k] * found[k], 0.0) for k in range(LEADING)])
    return leading, sizes, caused[2]


def _derivatives_of_others(ode: _Flow, h) -> list[list]:
    """Of the forces that depend on the motion: values, first and second derivatives."""
    if not ode.start.g.basis.others:
        return [[], [], []]

    def value(s, q, v):
        w = ode.start.g.basis.at(s)
        return ode.others(s, q, v, w)

    def along(function):
        def derivative(s, q, v):
            tangent = (jnp.ones_like(s), v, ode.rates(ode.all(s, q, v)))
            return jax.jvp(function, (s, q, v), tangent)[1]

        return derivative

    at = (jnp.zeros_like(h), ode.start.q, ode.start.v)
    return [value(*at), along(value)(*at), along(along(value))(*at)]


def _error(rtol: float, state: State, x: Stages, unbalanced, h):
    """See :func:`jfric.solvers.event_driven.runge_kutta_flow._error`."""
    tiny = jnp.finfo(h.dtype).tiny
    relative = []
    for i in range(len(x.q)):
        speed = jnp.maximum(jnp.abs(x.v[i]), state.v_scale[i])
        speed = jnp.maximum(speed, h * x.fastest[i])
        speed = jnp.maximum(speed, 1e-3 * h * unbalanced[i])
        reach = jnp.maximum(jnp.maximum(jnp.abs(x.q[i]), state.q_scale[i]), h * speed)
        relative.append(jnp.abs(x.q_error[i]) / jnp.maximum(reach, tiny))
        relative.append(jnp.abs(x.v_error[i]) / jnp.maximum(speed, tiny))
    largest = functools.reduce(jnp.maximum, relative)
    largest = jax.lax.stop_gradient(jnp.where(jnp.isfinite(largest), largest, 1e3))
    return largest / rtol, jnp.minimum(largest, rtol) * 10


def _as_step(ode: _Flow, path: _Path, h) -> Step:
    """The motion as polynomials, for outputs and observables."""
    y, g, n = ode.start.y, ode.start.g, ode.prepared.mechanics.n
    rows = [*y.a, y.friction, y.normal_force, [*[0.0] * (2 * n), *g.acceleration[0]]]
    columns = [*path.q, *path.v, *(path.combination(row)[0] for row in rows)]
    zeros = [jnp.zeros_like(h)] * max(len(p) for p in columns)
    filled = [jnp.stack([*p, *zeros[len(p) :]]) for p in columns]
    return step_without_guards(h, jnp.stack(filled, axis=1))
