"""Posterior sampling with blackjax (``pip install jfric[bayes]``).

The likelihood is that of the fit with its noise; the prior is uniform between the bounds on the
scale of each parameter, times the normal priors of the fit.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jfric.errors import ProblemError
from jfric.fits.data.stacking import Data
from jfric.fits.free import Layout
from jfric.fits.model import AbstractModel
from jfric.fits.objective import Misfit, Objective, experiment_cost
from jfric.fits.recipe import Estimate
from jfric.fits.uncertainty.covariance import covariance
from jfric.numerics.compilation import quick_options
from jfric.numerics.printing import printable

#: R-hat up to which chains agree, and number of independent samples that an interval needs.
AGREE, EFFECTIVE = 1.05, 200


@printable
@dataclass(frozen=True)
class Posterior:
    """Samples (chains, n, P) of the parameters.

    ``rhat`` (P,): agreement of the chains, near 1; ``effective`` (P,): effective sample size;
    ``acceptance``: part of the proposals that were accepted.
    """

    names: tuple[str, ...]
    samples: np.ndarray
    rhat: np.ndarray
    effective: np.ndarray
    acceptance: float

    @property
    def standard_errors(self) -> dict[str, float]:
        """Standard deviation of the samples."""
        spread = np.std(self.samples, axis=(0, 1), ddof=1)
        return dict(zip(self.names, spread.tolist(), strict=True))

    def intervals(self, level: float = 0.95) -> dict[str, tuple[float, float]]:
        """Central intervals that hold ``level`` of the samples."""
        tail = 0.5 * (1.0 - level)
        low, high = np.quantile(self.samples, [tail, 1.0 - tail], axis=(0, 1))
        pairs = zip(low.tolist(), high.tolist(), strict=True)
        return dict(zip(self.names, pairs, strict=True))

    def remarks(self) -> list[str]:
        """Reasons to doubt the samples: chains that do not agree, too few independent samples."""
        found = []
        apart = [
            f"{name} ({r:.2f})"
            for name, r in zip(self.names, self.rhat, strict=True)
            if not r <= AGREE
        ]
        if apart:
            found.append(
                f"the chains of the posterior do not agree, R-hat above {AGREE:g} for "
                f"{', '.join(apart)}: take more samples"
            )
        few = [
            f"{name} ({n:.0f})"
            for name, n in zip(self.names, self.effective, strict=True)
            if not n >= EFFECTIVE
        ]
        if few:
            found.append(
                f"fewer than {EFFECTIVE} independent samples of {', '.join(few)}: intervals of the "
                "posterior scatter, take more samples"
            )
        return found

    def to_dict(self) -> dict[str, Any]:
        """Mean, standard deviation, interval, R-hat and effective sample size of each parameter."""
        mean, errors = np.mean(self.samples, axis=(0, 1)), self.standard_errors
        intervals = self.intervals()
        return {
            name: {
                "mean": float(mean[i]),
                "standard_deviation": errors[name],
                "interval": list(intervals[name]),
                "rhat": float(self.rhat[i]),
                "effective": float(self.effective[i]),
            }
            for i, name in enumerate(self.names)
        }


def log_density(
    fit: Estimate,
) -> tuple[Callable[[Array], Array], Float[np.ndarray, " P"], Callable[[Array], Array]]:
    """The posterior for a user's own sampler: log density of an unbounded position (P,), the
    position of the fit, and the parameters (P,) at a position.

    The derivative of the density is computed forwards in every case (``jax.grad`` works).
    """
    density = _Density.of(fit.objective)
    measured, weight = jnp.asarray(fit.objective.measured), jnp.asarray(fit.objective.weight)

    @jax.custom_vjp
    def function(position):
        return density(position, measured, weight)

    def value_and_slope(position):
        def twice(p):
            value = density(p, measured, weight)
            return value, value

        slope, value = jax.jacfwd(twice, has_aux=True)(position)
        return value, slope

    function.defvjp(value_and_slope, lambda slope, change: (change * slope,))
    layout = fit.objective.layout
    return function, _position(layout, fit.vector), functools.partial(_parameters, layout)


def sample(
    fit: Estimate, count: int = 1000, *, warmup: int = 300, chains: int = 16, seed: int = 0
) -> Posterior:
    """``count`` samples of each of ``chains`` chains, after ``warmup``, as one batch.

    The sampler is a random walk whose steps follow the covariance of the fit: it needs no
    derivatives and tolerates kinks of the density. For other samplers see :func:`log_density`.
    """
    center = np.tile(fit.vector, (chains, 1))
    matrix = covariance(fit, "gauss-newton").matrix
    if not np.all(np.isfinite(matrix)):
        raise ProblemError(
            "sample: found a parameter at its bound or without influence, a random walk needs a "
            "finite covariance; change the bounds or fit fewer parameters"
        )
    found, accepted = sample_chains(
        fit.objective, center, np.tile(matrix, (chains, 1, 1)), None, count, warmup, seed
    )
    diagnostics = _blackjax().diagnostics
    return Posterior(
        fit.names,
        found,
        np.asarray(diagnostics.potential_scale_reduction(jnp.asarray(found))),
        np.asarray(diagnostics.effective_sample_size(jnp.asarray(found))),
        float(np.mean(accepted)),
    )


def sample_chains(
    objective: Objective,
    center: Float[np.ndarray, "B P"],
    covariance: Float[np.ndarray, "B P P"],
    measured: np.ndarray | None,
    count: int,
    warmup: int,
    seed: int,
) -> tuple[np.ndarray, np.ndarray]:
    """One chain for each member: samples (B, count, P) and acceptance (B,).

    ``measured`` (B, E, m, k): measured values of each member, None for those of the objective.
    """
    layout = objective.layout
    positions = _position(layout, center)
    # Covariance at the unbounded positions, and the scale of Roberts and Rosenthal (2001).
    slope = 1.0 / _slope(layout, positions)
    factor = np.linalg.cholesky(covariance * slope[:, :, None] * slope[:, None, :])
    factor *= 2.38 / np.sqrt(layout.size)
    own = objective.measured[None] if measured is None else measured
    keys = jax.random.split(jax.random.key(seed), positions.shape[0])
    numbers = map(jnp.asarray, (positions, factor, own, objective.weight))
    found, accepted = _chains(count, warmup)(_Density.of(objective), *numbers, keys)
    return np.asarray(_parameters(layout, found)), np.asarray(accepted)


class _Density(eqx.Module):
    """Log density of the posterior of an objective."""

    model: AbstractModel
    data: Data
    misfit: Misfit
    paths: tuple[str, ...] = eqx.field(static=True)
    columns: Array
    low: Array
    high: Array
    log: Array
    prior: Array

    @classmethod
    def of(cls, objective: Objective) -> _Density:
        own = objective.layout
        numbers = map(jnp.asarray, (own.columns, own.low, own.high, own.log, own.prior))
        return cls(objective.model, objective.data, objective.misfit, own.paths, *numbers)

    def __call__(self, position, measured, weight):
        """Log density of a position (P,) for measured values and weights (E, m, k)."""
        x = _parameters(self, position)
        cost = functools.partial(experiment_cost, self.model, self.misfit, self.paths)
        costs = jax.vmap(cost)(x[self.columns], self.data, measured, weight)
        mean, error = self.prior.T
        off = jnp.where(jnp.isfinite(mean), (x - mean) / error, 0.0)
        volume = jax.nn.log_sigmoid(position) + jax.nn.log_sigmoid(-position)
        return -jnp.sum(costs) - 0.5 * jnp.sum(off**2) + jnp.sum(volume)


@functools.cache
def _chains(count, warmup):
    blackjax = _blackjax()

    def one(density_of, position, factor, measured, weight, key):
        def density(p):
            return density_of(p, measured, weight)

        def propose(key, p):
            return factor @ jax.random.normal(key, p.shape, p.dtype)

        kernel = blackjax.additive_step_random_walk(density, propose)

        def step(state, key):
            state, info = kernel.step(key, state)
            return state, (state.position, info.is_accepted)

        first, second = jax.random.split(key)
        state = kernel.init(position)
        state, _ = jax.lax.scan(step, state, jax.random.split(first, warmup))
        _, (found, accepted) = jax.lax.scan(step, state, jax.random.split(second, count))
        return found, jnp.mean(accepted)

    def run(density, positions, factors, measured, weight, keys):
        shared = measured.shape[0] == 1 and positions.shape[0] > 1
        axes = (None, 0, 0, None if shared else 0, None, 0)
        measured = measured[0] if shared else measured
        return jax.vmap(one, in_axes=axes)(density, positions, factors, measured, weight, keys)

    return eqx.filter_jit(run, compiler_options=quick_options() or None)  # pyright: ignore


def _blackjax():
    try:
        return importlib.import_module("blackjax")
    except ImportError:
        raise ProblemError("sampling needs blackjax: pip install 'jfric[bayes]'") from None


def _parameters(layout, position):
    """Parameters (..., P) at unbounded positions: the logistic map on the scale of the bounds."""
    w = layout.low + (layout.high - layout.low) * jax.nn.sigmoid(position)
    return jnp.where(layout.log, jnp.exp(jnp.where(layout.log, w, 0.0)), w)


def _position(layout: Layout, x: np.ndarray) -> np.ndarray:
    fraction = np.clip(layout.fractions(x), 1e-6, 1.0 - 1e-6)
    return np.log(fraction / (1.0 - fraction))


def _slope(layout: Layout, position: np.ndarray) -> np.ndarray:
    """Derivatives of the parameters by their positions."""
    fraction = 1.0 / (1.0 + np.exp(-position))
    slope = (layout.high - layout.low) * fraction * (1.0 - fraction)
    return np.where(layout.log, np.asarray(_parameters(layout, position)) * slope, slope)
