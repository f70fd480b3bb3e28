"""Solutions of harmonic balance: by Newton's method at one place, and along a curve, with folds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from jfric.numerics.continuation import TOO_MANY, Advance, Lengths, Trial, run, steps, zero
from jfric.periodic.harmonic_balance_equations import Setting, residual
from jfric.system.problem import Problem

#: Most Newton steps, and number of steps without progress that ends them.
STEPS, STUCK = 60, 6
#: Parts of a Newton step that are tried.
PARTS = tuple(0.5**i for i in range(8))
#: Relative residual of a solution, in units of rounding, and one that needs no further step.
TOLERANCE, ENOUGH = 2e5, 5e2
#: Relative size of directions that nothing determines (mean reactions of contacts that never
#: slide): these stay unchanged.
UNDETERMINED = 1e-10


class Corrected(NamedTuple):
    """A solution ``u`` (w,), if ``converged``: coefficients, and the value of the parameter as the
    last number; with the tangent (w,) of the curve there. Arrays of JAX within a search, of NumPy
    behind it."""

    u: Any
    tangent: Any
    #: Largest of the relative residuals.
    residual: Float[Array, ""]
    converged: Bool[Array, ""]
    iterations: Int[Array, ""]


class Carry(NamedTuple):
    """State of Newton's method between two steps."""

    u: Float[Array, " w"]
    worst: Float[Array, ""]
    merit: Float[Array, ""]
    count: Int[Array, ""]
    stuck: Int[Array, ""]


def correct(problem: Problem, setting: Setting, start, along, unit, level, steep) -> Corrected:
    """The solution on the plane through ``start`` (w,) at right angles to ``along`` (w,).

    ``unit`` (w,): units of coefficients and parameter. With ``along`` in the direction of the
    parameter alone, the result is the solution at the parameter of ``start``. ``level``: number of
    harmonics used, the others are zero. ``steep``: see :func:`motion`.
    """
    normal = along / unit**2
    eps = float(jnp.finfo(start.dtype).eps)
    tolerance, enough = TOLERANCE * eps, ENOUGH * eps

    orders = np.r_[0, np.tile(np.arange(1, setting.harmonics + 1), 2)]
    part = jnp.asarray(np.repeat(orders, (len(start) - 1) // orders.size), jnp.int32) <= level

    def equations(u):
        found, scale = residual(problem, setting, u[:-1], u[-1], steep)
        return jnp.where(part, found / scale, u[:-1])

    def jacobian(u):
        found = jax.jacfwd(equations)(u)
        scale = residual(problem, setting, u[:-1], u[-1], steep)[1]
        free = part & jnp.isinf(unit[:-1])
        fixed = jnp.where(free, UNDETERMINED / scale, 0.0)
        return jnp.vstack([found, normal[None, :]]).at[:-1, :-1].add(jnp.diag(fixed))

    def measured(u):
        found = equations(u)
        size = jnp.max(jnp.abs(found))
        return jnp.where(jnp.isfinite(size), size, jnp.inf), jnp.sqrt(jnp.sum(found * found))

    def goes_on(c: Carry):
        patience = jnp.where(c.worst > tolerance, STUCK, 1)
        return (c.worst > enough) & (c.count < STEPS) & (c.stuck < patience)

    def step(c: Carry) -> Carry:
        left = jnp.append(equations(c.u), jnp.sum(normal * (c.u - start)))
        move = jnp.linalg.solve(jacobian(c.u), left)
        parts = jnp.asarray(PARTS, c.u.dtype)
        tried = c.u[None, :] - parts[:, None] * move[None, :]
        return _best_of(tried, *jax.vmap(measured)(tried), c)

    first = Carry(start, *measured(start), jnp.asarray(0, jnp.int32), jnp.asarray(0, jnp.int32))
    # A start that solves the equations lies on the plane.
    end = jax.lax.while_loop(goes_on, step, first)
    matrix = jacobian(end.u)
    tangent = jnp.linalg.solve(matrix, jnp.zeros_like(end.u).at[-1].set(1.0))
    tangent = tangent / jnp.sqrt(jnp.sum((tangent / unit) ** 2))
    ok = (end.worst <= tolerance) & jnp.all(jnp.isfinite(end.u))
    return Corrected(end.u, tangent, end.worst, ok, end.count)


def _best_of(tried, worst, merit, before: Carry) -> Carry:
    """The best of the ``tried`` points, by their largest residuals and merits."""
    merit = jnp.where(jnp.isfinite(merit), merit, jnp.inf)
    best = jnp.argmin(merit)
    stuck = jnp.where(merit[best] < 0.9 * before.merit, 0, before.stuck + 1)
    return Carry(tried[best], worst[best], merit[best], before.count + 1, stuck)


@eqx.filter_jit
def correct_many(
    problem: Problem, setting: Setting, starts, along, unit, level, steep
) -> Corrected:
    """Solutions of :func:`correct` from many starts (b, w), side by side."""
    return jax.vmap(lambda start: correct(problem, setting, start, along, unit, level, steep))(
        starts
    )


#: Steps along the curve, in the units of the unknowns: first and smallest.
FIRST, SMALLEST = 0.005, 1e-6
#: Numbers of Newton steps below which the next step is longer, and above which it is shorter.
FEW, MANY = 5, 15
#: Cosine of the angle between two tangents below which the curve bends too much in one step.
BEND = 0.7
#: Accuracy of folds, as a part of a step.
LOCATED = 1e-13

Ended = Literal["stop", "start", "max_points", "stalled", "points"]


class Curve(NamedTuple):
    """Solutions along the curve, those at folds, and how it ended."""

    spots: list[Corrected]
    folds: list[Corrected]
    ended: Ended


#: ``correct(u, along)``: the solution on the plane through ``u`` at right angles to ``along``.
Correct = Callable[[np.ndarray, np.ndarray], Corrected]


class _Ahead:
    """The curve ahead of the solution ``here``, along its tangent ``d``, which has unit length in
    the units ``unit`` of coefficients and parameter."""

    def __init__(self, correct: Correct, here: Corrected, unit: np.ndarray):
        self._correct, self._here, self._unit = correct, here, unit
        self.d = here.tangent / np.linalg.norm(here.tangent / unit)

    def at(self, s: float) -> Corrected:
        """The solution on the plane at the distance ``s``."""
        return self._correct(self._here.u + s * self.d, self.d)

    def at_parameter(self, p: float, side: float) -> Corrected:
        """The solution at a value of the parameter."""
        u, along = self._here.u, np.zeros_like(self.d)
        guess = u + (p - u[-1]) / self.d[-1] * self.d
        guess[-1], along[-1] = p, side
        return self._correct(guess, along)

    def leads_to(self, found: Corrected) -> bool:
        """Whether the solution ``found`` is the next one on the curve."""
        turned = found.tangent / self._unit
        cosine = turned @ (self.d / self._unit) / np.linalg.norm(turned)
        # Short steps pass the kinks that nonsmooth laws make: no angle counts there.
        near = np.linalg.norm((found.u - self._here.u) / self._unit) < 100 * SMALLEST
        return bool(found.converged and (abs(cosine) > BEND or near))


def follow(
    correct: Correct,
    first: Corrected,
    stop: float,
    unit: Callable[[np.ndarray], np.ndarray],
    *,
    largest: float,
    max_points: int,
) -> Curve:
    """Solutions from ``first`` to the point where the parameter is ``stop``, or back at the start.

    ``unit``: of the unknowns at a solution, infinite for those that do not count. ``largest``:
    longest step.
    """
    start = float(first.u[-1])
    side = np.sign(stop - start)
    turned = side if first.tangent[-1] >= 0 else -side
    first = first._replace(tangent=turned * first.tangent)
    spots, folds = [first], []

    def step(trial: Trial) -> Advance:
        here, size = trial.here, trial.size
        ahead = _Ahead(correct, here, unit(here.u))
        p = here.u[-1] + size * ahead.d[-1]
        over = (p - stop) * side >= 0.0
        if over or (p - start) * side < 0.0:
            # The last point lies on the border, which the curve meets at an angle.
            end = ahead.at_parameter(stop if over else start, side)
            if size > 2.0 * SMALLEST and not ahead.leads_to(end):
                return Advance(None, 0.5 * size)
            if end.converged:
                spots.append(end)
            return Advance(None, ended="stop" if over else "start")
        found = ahead.at(size)
        if not ahead.leads_to(found):
            return Advance(None, 0.5 * size)
        before, after = float(here.tangent[-1]), float(found.tangent[-1])
        if before * after < 0.0:
            # At a fold the tangent has no part along the parameter.
            search = zero((0.0, before), (size, after), LOCATED * size)
            fold = ahead.at(run(search, lambda s: float(ahead.at(s).tangent[-1])))
            folds.extend([fold] if fold.converged else [])
        spots.append(found)
        factor = 1.5 if found.iterations <= FEW else 0.7 if found.iterations > MANY else 1.0
        return Advance(found, factor * size)

    ended = run(steps(first, FIRST, Lengths(largest, SMALLEST), max_points - 1), step)
    return Curve(spots, folds, cast("Ended", "max_points" if ended == TOO_MANY else ended))
