"""Descents for many starts at once: Levenberg-Marquardt, and first-order optimisers of optax.

The loops over steps run outside the compiled programs. In Levenberg-Marquardt members that have
finished leave the batch, and one that fails rejects its step without touching the others. Damping
follows Nielsen (1999), scaling by the diagonal follows Moré (1978).

Levenberg-Marquardt needs one forward derivative for each parameter. For many parameters or many
experiments one reverse pass gives the whole gradient, and Adam can use a few experiments in each
step.
"""

from __future__ import annotations

import abc
import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jfric.fits.free import Layout
from jfric.fits.objective import Normal, Objective, experiment_cost
from jfric.numerics.compilation import quick_options
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


#: Number of parameters of one experiment above which the gradient is computed in reverse.
FORWARD_UP_TO = 12
#: Halvings of a step before a member counts as stalled.
HALVINGS = 20
#: Relative fall of the cost per step below which the search ends.
TOLERANCE = 1e-10


@dataclass(frozen=True)
class LBFGS(AbstractOptimiser):
    """Limited-memory BFGS of optax: for many parameters.

    A step is halved until the cost falls enough (Armijo); ``max_iterations``: steps at most::

        >>> jfric.LBFGS().max_iterations
        200
    """

    word = "l-bfgs"
    max_iterations: int = 200

    def minimise(self, objective, x0, seed, watch=nobody):
        del seed
        layout = objective.layout
        z = layout.coordinates(np.asarray(x0, float))
        cost, g = _value_and_gradient(objective, z)
        outcome = np.where(np.isfinite(cost), Outcome.RUNNING, Outcome.FAILED)
        outcome[np.isfinite(cost) & (np.abs(g).max(axis=1) == 0.0)] = Outcome.NO_GRADIENT
        iterations = np.zeros(z.shape[0], int)
        first, direction = _memory()
        memory = first(z)
        for iteration in range(self.max_iterations):
            tell(watch, iteration, self.max_iterations, layout.values(z), cost)
            on = outcome == Outcome.RUNNING
            if not on.any():
                break
            step, memory = (jax.tree.map(np.asarray, a) for a in direction(g, memory, z))
            slope = np.einsum("bi,bi->b", step, g)
            # Where the memory gives no descent, the step is straight down.
            step = np.where((slope < 0)[:, None], step, -g)
            slope = np.einsum("bi,bi->b", step, g)
            size = np.abs(step).max(axis=1)
            length = np.minimum(1.0, 0.3 / np.maximum(size, 1e-300))
            waiting = on.copy()
            before = cost.copy()
            for _ in range(HALVINGS):
                trial = np.where(waiting[:, None], z + length[:, None] * step, z)
                value, gradient = _value_and_gradient(objective, trial)
                enough = waiting & (value <= cost + 1e-4 * length * slope)
                z[enough], cost[enough], g[enough] = trial[enough], value[enough], gradient[enough]
                waiting &= ~enough
                if not waiting.any():
                    break
                length = np.where(waiting, 0.5 * length, length)
            iterations[on] += 1
            promised = -slope <= TOLERANCE * np.maximum(before, 1e-300)
            settled = on & ~waiting & (before - cost <= TOLERANCE * before)
            outcome[on & (promised | settled)] = Outcome.CONVERGED
            outcome[waiting & (outcome == Outcome.RUNNING)] = Outcome.STALLED
        outcome[outcome == Outcome.RUNNING] = Outcome.MAX_ITERATIONS
        x = layout.values(z)
        return Members(z, x, cost, outcome, iterations)


@dataclass(frozen=True)
class Adam(AbstractOptimiser):
    """Adam of optax: for many parameters and, by ``batch``, many experiments.

    ``max_iterations`` steps of ``learning_rate`` (coordinates have a range of pi) shrink to zero
    along a cosine; each uses ``batch`` experiments, all by default::

        >>> jfric.Adam(batch=2).learning_rate
        0.02
    """

    word = "adam"
    max_iterations: int = 200
    learning_rate: float = 0.02
    batch: int | None = None

    def minimise(self, objective, x0, seed, watch=nobody):
        import optax  # slow to import

        layout, steps = objective.layout, self.max_iterations
        z = layout.coordinates(np.asarray(x0, float))
        schedule = optax.cosine_decay_schedule(self.learning_rate, steps)
        transform = optax.adam(schedule)
        state = transform.init(jnp.asarray(z))
        rng = np.random.default_rng(seed)
        runs = objective.weight.shape[0]
        some = self.batch is not None and self.batch < runs
        best, least = z.copy(), np.full(z.shape[0], np.inf)
        flat = np.zeros(z.shape[0], bool)
        for step in range(steps):
            chosen = rng.permutation(runs)[: self.batch] if some else None
            cost, g = _value_and_gradient(objective, z, chosen)
            tell(watch, step, steps, layout.values(z), cost)
            if step == 0:
                flat = np.isfinite(cost) & (np.abs(g).max(axis=1) == 0.0)
            if chosen is None:
                better = cost < least
                best[better], least[better] = z[better], cost[better]
            # A member that fails waits there and does not disturb the others.
            g = np.where(np.isfinite(cost)[:, None] & np.isfinite(g), g, 0.0)
            change, state = transform.update(jnp.asarray(g), state)
            z = z + np.asarray(change)
        cost, _ = _value_and_gradient(objective, z)
        better = cost < least
        best[better], least[better] = z[better], cost[better]
        outcome = np.where(np.isfinite(least), Outcome.MAX_ITERATIONS, Outcome.FAILED)
        outcome[flat] = Outcome.NO_GRADIENT
        iterations = np.full(z.shape[0], steps)
        return Members(best, layout.values(best), least, outcome, iterations)


@functools.cache
def _memory():
    """Functions that create and apply the memory of all members."""
    import optax  # slow to import

    transform: Any = optax.scale_by_lbfgs(memory_size=10)

    @jax.jit
    def direction(gradient, memory, z):
        step, memory = jax.vmap(transform.update)(gradient, memory, z)
        return -step, memory

    return jax.jit(jax.vmap(transform.init)), direction


def _value_and_gradient(objective: Objective, z: np.ndarray, chosen: np.ndarray | None = None):
    """Costs (B,) and gradients (B, P) by the coordinates, for all or some experiments."""
    layout = objective.layout
    x = layout.values(z)
    reverse = len(layout.paths) > FORWARD_UP_TO
    if chosen is None and not reverse:
        found = objective.normal(x)
        return found.cost.copy(), found.gradient * layout.slopes(z)[0]
    columns = layout.columns
    data, measured, weight = objective.data, objective.measured, objective.weight
    if chosen is not None:
        data = jax.tree.map(lambda a: np.asarray(a)[chosen], data)
        measured, weight, columns = measured[chosen], weight[chosen], columns[chosen]
    model = objective.model.with_adjoint("reverse") if reverse else objective.model
    numbers = map(jnp.asarray, (measured, weight))
    own = jnp.asarray(x[:, columns])
    value, slope = _compiled()(model, objective.misfit, layout.paths, reverse, own, data, *numbers)
    share = objective.weight.shape[0] / columns.shape[0]
    cost = share * np.sum(np.asarray(value), axis=1)
    gradient = np.zeros_like(x)
    for e, where in enumerate(columns):
        gradient[:, where] += share * np.asarray(slope)[:, e]
    prior_cost, prior_gradient, _ = layout.prior_terms(x)
    return cost + prior_cost, (gradient + prior_gradient) * layout.slopes(z)[0]


@functools.cache
def _compiled():
    def all_members(model, misfit, paths, reverse, x, data, measured, weight):
        def one(x, *data):
            def cost(x):
                found = experiment_cost(model, misfit, paths, x, *data)
                return found, found

            derivative = jax.grad if reverse else jax.jacfwd
            slope, value = derivative(cost, has_aux=True)(x)
            return value, slope

        each = jax.vmap(one)
        return jax.vmap(lambda x: each(x, data, measured, weight))(x)

    return eqx.filter_jit(all_members, compiler_options=quick_options() or None)  # pyright: ignore
