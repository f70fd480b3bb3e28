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


class Place(NamedTuple):
    """Coefficients ``y`` (u,) and the value ``p`` of the parameter, or a direction of both; arrays
    of JAX within a search, of NumPy behind it."""

    y: Any
    p: Any


class Corrected(NamedTuple):
    """A solution, if ``converged``, with the tangent of the curve there."""

    at: Place
    tangent: Place
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


def correct(
    problem: Problem, setting: Setting, start: Place, along: Place, unit: Place, level, steep
) -> Corrected:
    """The solution on the plane through ``start`` at right angles to ``along``.

    ``unit``: units of coefficients (u,) and parameter. With ``along`` in the direction of the
    parameter alone, the result is the solution at the parameter of ``start``. ``level``: number of
    harmonics used, the others are zero. ``steep``: see :func:`motion`.
    """
    split = start.y.shape[0]
    normal = jnp.append(along.y / unit.y**2, along.p / unit.p**2)
    origin = jnp.append(start.y, start.p)
    eps = float(jnp.finfo(start.y.dtype).eps)
    tolerance, enough = TOLERANCE * eps, ENOUGH * eps

    orders = np.r_[0, np.tile(np.arange(1, setting.harmonics + 1), 2)]
    part = jnp.asarray(np.repeat(orders, split // orders.size), jnp.int32) <= level

    def equations(u):
        found, scale = residual(problem, setting, u[:split], u[split], steep)
        return jnp.where(part, found / scale, u[:split])

    def jacobian(u):
        found = jax.jacfwd(equations)(u)
        scale = residual(problem, setting, u[:split], u[split], steep)[1]
        fixed = jnp.where(part, UNDETERMINED * jnp.where(jnp.isinf(unit.y), 1.0 / scale, 0.0), 0.0)
        return jnp.vstack([found, normal[None, :]]).at[:-1, :-1].add(jnp.diag(fixed))

    def measured(u):
        found = equations(u)
        size = jnp.max(jnp.abs(found))
        return jnp.where(jnp.isfinite(size), size, jnp.inf), jnp.sqrt(jnp.sum(found * found))

    def goes_on(c: Carry):
        patience = jnp.where(c.worst > tolerance, STUCK, 1)
        return (c.worst > enough) & (c.count < STEPS) & (c.stuck < patience)

    def step(c: Carry) -> Carry:
        left = jnp.append(equations(c.u), jnp.sum(normal * (c.u - origin)))
        move = jnp.linalg.solve(jacobian(c.u), left)
        parts = jnp.asarray(PARTS, c.u.dtype)
        tried = c.u[None, :] - parts[:, None] * move[None, :]
        return _best_of(tried, *jax.vmap(measured)(tried), c)

    first = Carry(origin, *measured(origin), jnp.asarray(0, jnp.int32), jnp.asarray(0, jnp.int32))
    # A start that solves the equations lies on the plane.
    end = jax.lax.while_loop(goes_on, step, first)
    matrix = jacobian(end.u)
    tangent = jnp.linalg.solve(matrix, jnp.zeros_like(end.u).at[-1].set(1.0))
    length = jnp.sqrt(jnp.sum((tangent / jnp.append(unit.y, unit.p)) ** 2))
    tangent = tangent / length
    ok = (end.worst <= tolerance) & jnp.all(jnp.isfinite(end.u))
    return Corrected(
        Place(end.u[:split], end.u[split]),
        Place(tangent[:split], tangent[split]),
        end.worst,
        ok,
        end.count,
    )


def _best_of(tried, worst, merit, before: Carry) -> Carry:
    """The best of the ``tried`` points, by their largest residuals and merits."""
    merit = jnp.where(jnp.isfinite(merit), merit, jnp.inf)
    best = jnp.argmin(merit)
    stuck = jnp.where(merit[best] < 0.9 * before.merit, 0, before.stuck + 1)
    return Carry(tried[best], worst[best], merit[best], before.count + 1, stuck)


@eqx.filter_jit
def correct_many(
    problem: Problem, setting: Setting, starts: Place, along: Place, unit: Place, level, steep
) -> Corrected:
    """Solutions of :func:`correct` from many starts (b, u), side by side."""
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

Ended = Literal["stop", "start", "max_points", "stalled"]


class Curve(NamedTuple):
    """Solutions along the curve, those at folds, and how it ended."""

    spots: list[Corrected]
    folds: list[Corrected]
    ended: Ended


#: ``correct(y, p, dy, dp)``: the solution on the plane through ``(y, p)`` normal to ``(dy, dp)``.
Correct = Callable[[np.ndarray, float, np.ndarray, float], Corrected]


class _Ahead:
    """The curve ahead of the solution ``here``, along its tangent, which has unit length in the
    units ``scale`` and ``span`` of the unknowns and the parameter."""

    def __init__(self, correct: Correct, here: Corrected, scale: np.ndarray, span: float):
        self._correct, self._here, self._scale, self._span = correct, here, scale, span
        norm = self._length(*here.tangent)
        self.dy, self.dp = here.tangent.y / norm, here.tangent.p / norm

    def _length(self, dy: np.ndarray, dp: float) -> float:
        return float(np.sqrt(np.sum((dy / self._scale) ** 2) + (dp / self._span) ** 2))

    def at(self, s: float) -> Corrected:
        """The solution on the plane at the distance ``s``."""
        y, p = self._here.at
        return self._correct(y + s * self.dy, p + s * self.dp, self.dy, self.dp)

    def at_parameter(self, p: float, side: float) -> Corrected:
        """The solution at a value of the parameter."""
        y = self._here.at.y + (p - self._here.at.p) / self.dp * self.dy
        return self._correct(y, p, np.zeros_like(y), side)

    def leads_to(self, found: Corrected) -> bool:
        """Whether the solution ``found`` is the next one on the curve."""
        dy, dp = found.tangent
        cosine = np.sum(dy / self._scale * self.dy / self._scale)
        cosine = (cosine + dp * self.dp / self._span**2) / self._length(dy, dp)
        # Short steps pass the kinks that nonsmooth laws make: no angle counts there.
        moved = found.at.y - self._here.at.y, found.at.p - self._here.at.p
        near = self._length(*moved) < 100 * SMALLEST
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
    start, dp = float(first.at.p), first.tangent.p
    span, side = abs(stop - start), np.sign(stop - start)
    turned = side if dp >= 0 else -side
    first = first._replace(tangent=Place(turned * first.tangent.y, turned * dp))
    spots, folds = [first], []

    def step(trial: Trial) -> Advance:
        here, size = trial.here, trial.size
        ahead = _Ahead(correct, here, unit(here.at.y), span)
        p = here.at.p + size * ahead.dp
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
        before, after = here.tangent.p, found.tangent.p
        if before * after < 0.0:
            # At a fold the tangent has no part along the parameter.
            search = zero((0.0, float(before)), (size, float(after)), LOCATED * size)
            fold = ahead.at(run(search, lambda s: float(ahead.at(s).tangent.p)))
            folds.extend([fold] if fold.converged else [])
        spots.append(found)
        factor = 1.5 if found.iterations <= FEW else 0.7 if found.iterations > MANY else 1.0
        return Advance(found, factor * size)

    ended = run(steps(first, FIRST, Lengths(largest, SMALLEST), max_points - 1), step)
    return Curve(spots, folds, cast("Ended", "max_points" if ended == TOO_MANY else ended))
