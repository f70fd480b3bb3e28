"""Levenberg-Marquardt for many members at once.

The loop over steps runs outside the compiled program: members that have finished leave the batch,
and one that fails rejects its step without touching the others. Damping follows Nielsen (1999),
scaling by the diagonal follows Moré (1978).
"""

from __future__ import annotations

import abc
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from jfric.fits.free import Layout
from jfric.fits.objective import Normal, Objective
from jfric.results.status import AbstractOutcome


class Outcome(AbstractOutcome):
    """Why a member ended."""

    RUNNING = 0, "running"
    CONVERGED = 1, "converged"
    #: Steps keep failing although the gradient is not zero: a jump, or a kink.
    STALLED = 2, "stalled: steps keep failing, the cost jumps or has a kink there"
    MAX_ITERATIONS = 3, "stopped after the allowed number of iterations"
    #: The simulation failed at the start.
    FAILED = 4, "the simulation failed at the start"
    #: The residuals do not depend on the free parameters there (all contacts stick, for example).
    NO_GRADIENT = 5, "the data do not depend on the parameters there"


@dataclass
class Members:
    """State of all members: coordinates (B, P), parameters (B, P), costs, outcomes, iterations."""

    z: np.ndarray
    x: np.ndarray
    cost: np.ndarray
    outcome: np.ndarray
    iterations: np.ndarray


#: Called after each iteration with its number, the largest possible number, the least cost and its
#: x.
Watch = Callable[[int, int, float, np.ndarray], None]


def nobody(iteration: int, most: int, cost: float, x: np.ndarray) -> None:
    """A watch that does nothing."""


class AbstractOptimiser(abc.ABC):
    """Optimiser: from starts to minima of a cost."""

    #: Name in files and commands.
    word: ClassVar[str]

    @abc.abstractmethod
    def minimise(
        self, objective: Objective, x0: np.ndarray, seed: int, watch: Watch = nobody
    ) -> Members:
        """The end points of members that start at ``x0`` (B, P)."""


@dataclass(frozen=True)
class LevenbergMarquardt(AbstractOptimiser):
    """Damped Gauss-Newton steps with exact derivatives; ``max_iterations``: their largest number.

    >>> jfric.LevenbergMarquardt().max_iterations
    60
    """

    word = "levenberg-marquardt"
    max_iterations: int = 60

    def minimise(self, objective, x0, seed, watch=nobody):
        del seed
        return levenberg_marquardt(
            lambda x, _: objective.normal(x),
            objective.layout,
            x0,
            max_iterations=self.max_iterations,
            watch=watch,
        )


#: Longest step of a coordinate; its range is pi.
LONGEST = 0.6


def levenberg_marquardt(
    normal: Callable[[np.ndarray, np.ndarray], Normal],
    layout: Layout,
    x0: np.ndarray,
    *,
    tolerance: float = 1e-10,
    max_iterations: int = 60,
    held: np.ndarray | None = None,
    watch: Watch = nobody,
) -> Members:
    """Minimise the cost of every member from ``x0`` (B, P).

    ``normal(x, members)``: normal equations of some members, given by number. ``tolerance``: a
    member has converged when its next step promises to lower the cost by less than this part.
    ``held`` (B, P): parameters that keep their value. ``watch`` is told after each iteration.
    """
    z = layout.coordinates(np.asarray(x0, float))
    count, size = z.shape
    free = np.ones((count, size), bool) if held is None else ~held
    x = np.where(free, layout.values(z), x0)
    found = normal(x, np.arange(count))
    cost, g, H = (np.array(a) for a in _in_coordinates(found, layout, z, free))
    outcome = np.where(np.isfinite(cost), Outcome.RUNNING, Outcome.FAILED)
    iterations, rejected = np.zeros(count, int), np.zeros(count, int)
    scale = np.maximum(np.einsum("bii->bi", H), 0.0)
    flat = np.isfinite(cost) & (np.max(scale * free, axis=1, initial=0.0) == 0.0)
    outcome[flat] = Outcome.NO_GRADIENT
    damping, growth = np.full(count, 1e-4), np.full(count, 2.0)
    for iteration in range(max_iterations):
        tell(watch, iteration, max_iterations, x, cost)
        on = np.flatnonzero(outcome == Outcome.RUNNING)
        if not on.size:
            break
        step, promised = _damped_step(g[on], H[on], scale[on], damping[on])
        # The promise of an undamped step decides: damping makes every promise small.
        small = promised * (1.0 + damping[on]) <= tolerance * cost[on]
        small |= np.abs(step).max(axis=1) <= 1e-12
        z_new = z[on] + step
        x_new = np.where(free[on], layout.values(z_new), x[on])
        trial = _in_coordinates(normal(x_new, on), layout, z_new, free[on])
        iterations[on] += 1
        ratio = (cost[on] - trial.cost) / np.maximum(promised, 1e-300)
        better = (trial.cost < cost[on]) & np.isfinite(trial.cost)
        went = on[better]
        z[went], x[went] = z_new[better], x_new[better]
        cost[went], g[went], H[went] = (a[better] for a in trial)
        scale[went] = np.maximum(scale[went], np.einsum("bii->bi", H[went]))
        shrink = np.maximum(1.0 / 3.0, 1.0 - (2.0 * ratio[better] - 1.0) ** 3)
        damping[went] = np.maximum(damping[went] * shrink, 1e-12)
        growth[went] = 2.0
        stuck = on[~better]
        rejected[stuck] += 1
        damping[stuck] *= growth[stuck]
        growth[stuck] *= 2.0
        outcome[on[small]] = Outcome.CONVERGED
        outcome[stuck[(damping[stuck] > 1e12) & ~small[~better]]] = Outcome.STALLED
    late = outcome == Outcome.RUNNING
    outcome[late & (rejected > 0.5 * iterations)] = Outcome.STALLED
    outcome[outcome == Outcome.RUNNING] = Outcome.MAX_ITERATIONS
    return Members(z, x, cost, outcome, iterations)


def tell(watch: Watch, iteration: int, most: int, x: np.ndarray, cost: np.ndarray) -> None:
    """Call ``watch`` with the least ``cost`` (B,) of members ``x`` (B, P)."""
    best = int(np.argmin(np.where(np.isfinite(cost), cost, np.inf)))
    watch(iteration, most, float(cost[best]), x[best])


def _damped_step(g, H, scale, damping) -> tuple[np.ndarray, np.ndarray]:
    """Steps of some members, none too long, and the fall of the cost that each promises."""
    diagonal = np.maximum(scale, 1e-12 * scale.max(axis=1, keepdims=True))
    damped = H + damping[:, None, None] * (diagonal[:, :, None] * np.eye(g.shape[1]))
    step = -np.linalg.solve(damped, g[..., None])[..., 0]
    step *= np.minimum(1.0, LONGEST / np.maximum(np.abs(step).max(axis=1), 1e-300))[:, None]
    bend = np.einsum("bi,bij,bj->b", step, H, step)
    return step, -np.einsum("bi,bi->b", step, g) - 0.5 * bend


def _in_coordinates(found: Normal, layout: Layout, z, free) -> Normal:
    """Normal equations by the coordinates ``z``; held parameters get a row of their own.

    The curvature of the map to the bounds is added where it is positive: at a bound the residuals'
    derivatives vanish, and only this curvature makes the step right.
    """
    first, second = layout.slopes(z)
    gradient = np.where(free, found.gradient * first, 0.0)
    hessian = found.hessian * first[:, :, None] * first[:, None, :]
    bend = np.maximum(np.where(free, found.gradient, 0.0) * second, 0.0)
    both = free[:, :, None] & free[:, None, :]
    eye = np.eye(layout.size)
    hessian = np.where(both, hessian, eye * ~free[:, :, None]) + bend[:, :, None] * eye
    bad = ~np.isfinite(found.cost)
    gradient[bad], hessian[bad] = 0.0, eye
    return Normal(found.cost, gradient, hessian)
