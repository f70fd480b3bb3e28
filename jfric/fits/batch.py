"""Many data sets of one plan of measurement, fitted as one batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from jfric.errors import ProblemError
from jfric.fits.data.experiment import Experiment
from jfric.fits.free import Free
from jfric.fits.objective import Objective, chunk_of, weighted
from jfric.fits.optimise.descents import Members, Outcome, levenberg_marquardt
from jfric.fits.optimise.searches import global_sample
from jfric.fits.recipe import prepare
from jfric.numerics.printing import printable
from jfric.system.problem import Problem


@printable
@dataclass(frozen=True)
class BatchFit:
    """Estimates from many data sets.

    ``estimates``, ``standard_errors`` (B, P): values of the free parameters ``names`` and their
    Gauss-Newton standard errors; ``cost``, ``outcome``, ``iterations`` (B,).
    """

    names: tuple[str, ...]
    estimates: np.ndarray
    standard_errors: np.ndarray
    #: Gauss-Newton covariance of each (B, P, P).
    covariance: np.ndarray
    cost: np.ndarray
    outcome: np.ndarray
    iterations: np.ndarray
    #: Measured values of each member (B, E, m, k), and the objective of all fits.
    measured: np.ndarray
    objective: Objective


def fit_batch(
    problem: Problem,
    experiments: Experiment | Sequence[Experiment],
    free: Mapping[str, Free],
    samples: Mapping[str, Float[np.ndarray, "B m"]] | Sequence[Mapping[str, np.ndarray]],
    *,
    starts: int = 64,
    max_iterations: int = 60,
    seed: int = 0,
    **options: Any,
) -> BatchFit:
    """Fit ``B`` data sets that share times, inputs, initial states and noise of ``experiments``.

    ``problem``, ``free``, ``max_iterations``, ``seed``: as in :func:`jfric.fit`. ``samples``:
    measured values (B, m) of each signal, for each experiment. Predictions do not depend on
    measured values, so ``starts`` points are simulated once for all data sets, and each data set
    starts at the point that suits it best. After the fits every data set also tries the results of
    the others. ``options``: those of :func:`jfric.fit`; the noise has to be given.
    Two data sets, of two coefficients of friction::

        >>> t = jnp.linspace(0.1, 2.0, 20)
        >>> measured = [
        ...     jfric.simulate(jfric.set_parameters(problem, {"friction.mu": mu}), ts=t).q[:, 0]
        ...     for mu in (0.1, 0.2)
        ... ]
        >>> data = jfric.Experiment(t, y={"u": measured[0]}, sigma=1e-3)
        >>> free = {"friction.mu": jfric.Free(0.05, 0.3)}
        >>> found = jfric.fit_batch(problem, data, free, {"u": jnp.stack(measured)}, starts=4)
        >>> found.estimates.round(6).tolist()
        [[0.1], [0.2]]
    """
    task = prepare(problem, experiments, free, **options)
    objective, layout = task.objective, task.objective.layout
    if objective.residual is not weighted:
        raise ProblemError("residual: a batch of fits compares signals as they are measured")
    if not task.noise_is_known:
        raise ProblemError("sigma: a batch of fits needs the noise of every signal")
    measured = _measured(task.experiments, objective, samples)
    points = layout.init[None]
    if starts > 1:
        points = np.concatenate([points, global_sample(layout, starts - 1, seed)])

    # One compiled program for all data sets.
    chunk = chunk_of(measured.shape[0])

    def fitted(x, members) -> Members:
        def own(x, which):
            return objective.normal(x, measured[members[which]], chunk=chunk)

        return levenberg_marquardt(own, layout, x, max_iterations=max_iterations)

    found = fitted(points[_best(objective, points, measured, chunk)], np.arange(len(measured)))
    other = _best(objective, found.x, measured, chunk)
    members = np.flatnonzero((other != np.arange(other.size)) & (starts > 1))
    if members.size:
        again = fitted(found.x[other[members]], members)
        better = ~(again.cost >= found.cost[members])
        for name in ("z", "x", "cost", "outcome", "iterations"):
            getattr(found, name)[members[better]] = getattr(again, name)[better]
    return _result(objective, found, measured, chunk)


def _result(objective: Objective, found: Members, measured: np.ndarray, chunk: int) -> BatchFit:
    """The estimates with their Gauss-Newton covariance, NaN where a fit failed."""
    layout = objective.layout
    hessian = objective.normal(found.x, measured, chunk=chunk).hessian
    good = np.isfinite(found.cost)
    eye = np.eye(layout.size)
    covariance = np.linalg.pinv(np.where(good[:, None, None], hessian, eye), hermitian=True)
    covariance[~good] = np.nan
    return BatchFit(
        layout.names,
        found.x,
        np.sqrt(np.einsum("bii->bi", covariance)),
        covariance,
        found.cost,
        np.array([Outcome(int(o)) for o in found.outcome]),
        found.iterations,
        measured,
        objective,
    )


def _measured(experiments, objective: Objective, samples) -> np.ndarray:
    tables = [samples] if isinstance(samples, Mapping) else list(samples)
    if len(tables) != len(experiments):
        raise ProblemError(
            f"samples: found {len(tables)} tables for {len(experiments)} experiments, must be as "
            "many"
        )
    counts = {np.shape(values)[0] for table in tables for values in table.values()}
    if len(counts) != 1:
        raise ProblemError(f"samples: found {sorted(counts)} data sets, must be as many of all")
    measured = np.repeat(objective.measured[None], counts.pop(), axis=0)
    for e, (experiment, table) in enumerate(zip(experiments, tables, strict=True)):
        for j, name in enumerate(objective.data.signals):
            if name not in experiment.y:
                continue
            if name not in table:
                raise ProblemError(f"samples: found no {name!r}, which the experiment measures")
            values = np.asarray(table[name], float)
            size = experiment.t.size
            if values.ndim != 2 or values.shape[1] != size:
                raise ProblemError(
                    f"samples.{name}: found shape {values.shape}, needs (data sets, {size})"
                )
            measured[:, e, :size, j] = values
    return np.where(objective.weight > 0, measured, 0.0)


def _best(objective: Objective, points, measured, chunk: int) -> np.ndarray:
    """For each data set, the number of the point (of ``points`` (N, P)) with the least cost."""
    if points.shape[0] == 1:
        return np.zeros(measured.shape[0], int)
    weight, predicted = objective.weight, objective.predict(points, chunk)
    w = np.where(weight > 0, weight * predicted, 0.0).reshape(points.shape[0], -1)
    y = (weight * measured).reshape(measured.shape[0], -1)
    squares = np.einsum("nm,nm->n", w, w)
    failed = ~np.isfinite(squares)
    squares[failed], w[failed] = np.inf, 0.0
    return np.argmin(squares - 2.0 * y @ w.T, axis=1)
