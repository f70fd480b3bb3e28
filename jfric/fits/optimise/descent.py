"""First-order optimisers of optax, for many parameters or many experiments.

Levenberg-Marquardt needs one forward derivative for each parameter. Here one reverse pass gives the
whole gradient, and Adam can use a few experiments in each step.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jfric.fits.objective import Objective, experiment_cost
from jfric.fits.optimise.levenberg_marquardt import (
    AbstractOptimiser,
    Members,
    Outcome,
    Watch,
    nobody,
    tell,
)
from jfric.numerics.compilation import quick_options

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
        return _lbfgs(objective, x0, self.max_iterations, TOLERANCE, watch)


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
        steps, rate = self.max_iterations, self.learning_rate
        return _adam(objective, x0, steps, rate, self.batch, seed, watch)


def _lbfgs(objective: Objective, x0, max_iterations, tolerance, watch: Watch) -> Members:
    layout = objective.layout
    z = layout.coordinates(np.asarray(x0, float))
    cost, g = _value_and_gradient(objective, z)
    outcome = np.where(np.isfinite(cost), Outcome.RUNNING, Outcome.FAILED)
    outcome[np.isfinite(cost) & (np.abs(g).max(axis=1) == 0.0)] = Outcome.NO_GRADIENT
    iterations = np.zeros(z.shape[0], int)
    first, direction = _memory()
    memory = first(z)
    for iteration in range(max_iterations):
        tell(watch, iteration, max_iterations, layout.values(z), cost)
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
        promised = -slope <= tolerance * np.maximum(before, 1e-300)
        settled = on & ~waiting & (before - cost <= tolerance * before)
        outcome[on & (promised | settled)] = Outcome.CONVERGED
        outcome[waiting & (outcome == Outcome.RUNNING)] = Outcome.STALLED
    outcome[outcome == Outcome.RUNNING] = Outcome.MAX_ITERATIONS
    x = layout.values(z)
    return Members(z, x, cost, outcome, iterations)


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


def _adam(
    objective: Objective, x0, max_iterations, learning_rate, batch, seed, watch: Watch
) -> Members:
    import optax  # slow to import

    layout = objective.layout
    z = layout.coordinates(np.asarray(x0, float))
    schedule = optax.cosine_decay_schedule(learning_rate, max_iterations)
    transform = optax.adam(schedule)
    state = transform.init(jnp.asarray(z))
    rng = np.random.default_rng(seed)
    runs = objective.weight.shape[0]
    best, least = z.copy(), np.full(z.shape[0], np.inf)
    flat = np.zeros(z.shape[0], bool)
    for step in range(max_iterations):
        chosen = None if batch is None or batch >= runs else rng.permutation(runs)[:batch]
        cost, g = _value_and_gradient(objective, z, chosen)
        tell(watch, step, max_iterations, layout.values(z), cost)
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
    iterations = np.full(z.shape[0], max_iterations)
    return Members(best, layout.values(best), least, outcome, iterations)


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
    model = objective.model.reverse() if reverse else objective.model
    own, *numbers = map(jnp.asarray, (x[:, columns], measured, weight, objective.loss.scale))
    functions = objective.residual, objective.loss.rho
    value, slope = _compiled()(model, data, own, layout.paths, *numbers, *functions, reverse)
    share = objective.weight.shape[0] / columns.shape[0]
    cost = share * np.sum(np.asarray(value), axis=1)
    gradient = np.zeros_like(x)
    for e, where in enumerate(columns):
        gradient[:, where] += share * np.asarray(slope)[:, e]
    prior_cost, prior_gradient, _ = layout.prior_terms(x)
    return cost + prior_cost, (gradient + prior_gradient) * layout.slopes(z)[0]


@functools.cache
def _compiled():
    def all_members(model, data, x, paths, measured, weight, scale, residual, rho, reverse):
        def one(x, data, measured, weight):
            def cost(x):
                found = experiment_cost(
                    model, data, x, paths, measured, weight, scale, residual, rho
                )
                return found, found

            derivative = jax.grad if reverse else jax.jacfwd
            slope, value = derivative(cost, has_aux=True)(x)
            return value, slope

        each = jax.vmap(one)
        return jax.vmap(lambda x: each(x, data, measured, weight))(x)

    return eqx.filter_jit(all_members, compiler_options=quick_options() or None)  # pyright: ignore
