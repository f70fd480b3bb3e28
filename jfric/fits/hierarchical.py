"""``fit_hierarchical``: parameters that vary from run to run around a common mean."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from jfric.errors import ProblemError
from jfric.fits.data.experiment import Experiment
from jfric.fits.data.stacking import labels
from jfric.fits.fit_result import FitResult
from jfric.fits.free import Free, beginning_at, full_free
from jfric.fits.minimise import Watch
from jfric.fits.model import AbstractModel
from jfric.fits.random_effects import RandomEffects
from jfric.fits.recipe import Recipe
from jfric.fits.uncertainty.residual_series import correlation_time, cost_of_data
from jfric.numerics.printing import printable
from jfric.system.problem import Problem

#: Most fits, each with the mean and scatter of the last one; and the change that ends them: of the
#: logarithm of the scatter, and of the mean in units of the scatter.
ROUNDS, SETTLED = 12, 0.02
#: Fewest runs for which a scatter has a meaning.
LEAST_RUNS = 3

Interval = tuple[float, float]


@printable
@dataclass
class HierarchicalFit:
    """Common mean and scatter of parameters that vary from run to run, and their values in each.

    ``mean``, ``scatter``: by path; ``runs``: values by path and name of the run, drawn towards the
    mean in proportion to their uncertainty; ``common``: parameters that all runs share. ``fit``:
    the last fit, with the runs' values under their prior; ``rounds``: scatters of each round;
    ``remarks``: limits of the result; ``effects``: the quadratic cost from which the intervals
    follow.
    Example: see :func:`jfric.fit_hierarchical`.
    """

    mean: dict[str, float]
    scatter: dict[str, float]
    runs: dict[str, dict[str, float]]
    common: dict[str, float]
    fit: FitResult
    rounds: tuple[dict[str, float], ...]
    remarks: tuple[str, ...]
    effects: RandomEffects = field(repr=False)

    @property
    def _tau(self) -> np.ndarray:
        return np.array(list(self.scatter.values()))

    def mean_intervals(self, level: float = 0.95) -> dict[str, Interval]:
        """Intervals of the means: by Student's distribution with degrees of freedom that allow for
        the uncertain scatter."""
        from scipy.stats import t

        tau = self._tau
        error = np.sqrt(self.effects.mean_variances(tau))
        half = t.ppf(0.5 + 0.5 * level, self.effects.mean_degrees(tau)) * error
        return _around(self.mean, half)

    def scatter_intervals(self, level: float = 0.95) -> dict[str, Interval]:
        """Intervals of the scatters, by the profile of their marginal likelihood."""
        tau = self._tau
        return {
            path: self.effects.scatter_interval(tau, j, level)
            for j, path in enumerate(self.scatter)
        }

    def run_intervals(self, level: float = 0.95) -> dict[str, dict[str, Interval]]:
        """Intervals of the values of each run, given all runs; they allow for the uncertain
        scatter."""
        half, groups = self._half(level), self.effects.groups
        rows = zip(self.runs.items(), groups, strict=True)
        return {path: _around(values, half[group]) for (path, values), group in rows}

    def common_intervals(self, level: float = 0.95) -> dict[str, Interval]:
        """Intervals of the parameters that all runs share."""
        half = self._half(level)
        return _around(self.common, [half[self.fit.names.index(name)] for name in self.common])

    def _half(self, level: float) -> np.ndarray:
        from scipy.special import ndtri

        return float(ndtri(0.5 + 0.5 * level)) * self.effects.errors(self._tau)

    def to_dict(self) -> dict[str, Any]:
        """Values and 95 % intervals of all parameters, for JSON."""
        return {
            "mean": self.mean,
            "mean_intervals": self.mean_intervals(),
            "scatter": self.scatter,
            "scatter_intervals": self.scatter_intervals(),
            "runs": self.runs,
            "run_intervals": self.run_intervals(),
            "common": self.common,
            "common_intervals": self.common_intervals(),
            "remarks": list(self.remarks),
        }

    def __str__(self) -> str:
        means, scatters = self.mean_intervals(), self.scatter_intervals()
        runs = self.run_intervals()
        lines = [
            f"{self.fit.outcome.message}; {len(self.rounds)} rounds, 95 % intervals",
        ]
        for path, x in self.mean.items():
            low, high = means[path]
            below, above = scatters[path]
            lines.append(f"{path}: mean {x:.6g} [{low:.6g}, {high:.6g}]")
            lines.append(f"  scatter {self.scatter[path]:.3g} [{below:.3g}, {above:.3g}]")
            lines += [
                f"  {name}  {value:.6g} [{runs[path][name][0]:.6g}, {runs[path][name][1]:.6g}]"
                for name, value in self.runs[path].items()
            ]
        for name, (low, high) in self.common_intervals().items():
            lines.append(f"{name}: {self.common[name]:.6g} [{low:.6g}, {high:.6g}]")
        return "\n".join([*lines, *self.remarks])


def fit_hierarchical(
    problem: Problem | AbstractModel,
    experiments: Sequence[Experiment],
    free: Mapping[str, Free],
    *,
    starts: int = 8,
    watch: Watch | None = None,
    **options: Any,
) -> HierarchicalFit:
    """Parameters that vary from run to run, with the mean and the scatter of all runs.

    ``problem``: as in :func:`jfric.fit`, or a model. ``free``: as in :func:`jfric.fit`; those with
    ``varies=True`` have a value in each of the ``experiments``, at least three, that is normal
    around a common mean. Mean and standard deviation (the scatter) are found together with the
    values: runs with little information are drawn towards the mean, runs with much are not.
    ``starts``: of the first fit; ``watch`` and ``options``: as in :func:`jfric.fit`, without
    windows.

    The scatter has the largest marginal likelihood, with mean and common parameters integrated out,
    by Laplace's approximation around each fit in turn (restricted maximum likelihood); the number
    of samples is reduced to the independent ones by the autocorrelation of the residuals. For few
    runs this is less biased than maximum likelihood, by EM or otherwise, and it needs no sampling.
    Source: Laird and Ware (1982), Lindstrom and Bates (1990), see :mod:`jfric.fits.random_effects`.

    Raises :class:`jfric.ProblemError` for models and data that cannot be fitted. Three slides from
    2 m/s, stopped by different friction::

        >>> elements = {"mass": jfric.Mass("x", 1.0), "friction": jfric.Friction("x", limit=1.0)}
        >>> slide = jfric.Problem(["x"], elements)
        >>> t = jnp.linspace(0.0, 1.5, 31)
        >>> runs = [
        ...     jfric.Experiment(t, y={"x": 2.0 * t - 0.5 * limit * t**2}, sigma=0.01,
        ...                      x0={"x": (0.0, 2.0)}, meta={"name": f"run {limit}"})
        ...     for limit in (0.8, 1.0, 1.2)
        ... ]
        >>> free = {"friction.limit": jfric.Free(0.1, 3.0, scale="linear", varies=True)}
        >>> found = jfric.fit_hierarchical(jfric.SampledModel(slide), runs, free, starts=1)
        >>> round(found.mean["friction.limit"], 3), round(found.scatter["friction.limit"], 3)
        (1.0, 0.199)
        >>> {run: round(x, 2) for run, x in found.runs["friction.limit"].items()}
        {'run 0.8': 0.8, 'run 1.0': 1.0, 'run 1.2': 1.2}
    """
    recipe = Recipe.of(problem, list(experiments), free, starts=starts, **options)
    rounds = _Rounds(recipe, *_free_of_runs(recipe, free), labels(recipe.setup.experiments), watch)
    return rounds.result(*rounds.settled(starts))


def _around(values: Mapping[str, float], half: Iterable[float]) -> dict[str, Interval]:
    """Intervals of half a width around values, by name."""
    rows = zip(values.items(), half, strict=True)
    return {name: (x - float(h), x + float(h)) for (name, x), h in rows}


def _free_of_runs(recipe: Recipe, free: Mapping[str, Free]) -> tuple[dict[str, Free], list[str]]:
    """``free`` by full paths, with a value for each run where values vary, and the paths of these;
    raises :class:`ProblemError` for what has no scatter."""
    setup = recipe.setup
    if setup.system is not None:
        free = full_free(setup.system, free)
    varying = [path for path, item in free.items() if item.varies]
    if not varying:
        raise ProblemError(
            "free: found nothing that varies, such as jfric.Free(lower, upper, varies=True)"
        )
    count = len(setup.experiments)
    if count < LEAST_RUNS:
        raise ProblemError(
            f"experiments: found {count}, at least {LEAST_RUNS} show how they scatter"
        )
    if not setup.residual.of_runs:
        raise ProblemError(
            f"residual: found {setup.residual.word!r}, whose pieces are no runs; take 'output', "
            "'input' or 'inverse'"
        )
    for path in varying:
        if free[path].prior is not None:
            raise ProblemError(f"free.{path}: found a prior, mean and scatter are its prior")
    each = {path: replace(free[path], varies=False, per_experiment=True) for path in varying}
    return {**free, **each}, varying


@dataclass
class _Rounds:
    """Fits in turn, each with the mean and the scatter of the one before as a prior of the runs."""

    recipe: Recipe
    free: dict[str, Free]
    varying: list[str]
    names: tuple[str, ...]
    watch: Watch | None
    scatters: list[dict[str, float]] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    def fitted(self, free: Mapping[str, Free], starts: int) -> tuple[FitResult, RandomEffects]:
        """A fit, and the cost of its data without the priors of the runs."""
        found = FitResult.of(self.recipe.again(free, starts), self.watch)
        groups = [
            np.array([found.names.index(f"{path}[{name}]") for name in self.names])
            for path in self.varying
        ]
        cost = cost_of_data(found, np.concatenate(groups))
        return found, RandomEffects(found.vector, *cost, groups)

    def settled(self, starts: int) -> tuple[FitResult, RandomEffects, np.ndarray, np.ndarray]:
        """The last fit, the cost of its data, and mean and scatter of the runs."""
        found, effects = self.fitted(self.free, starts)
        tau, mean, settled = np.zeros(0), np.zeros(0), False
        for _ in range(ROUNDS):
            new = effects.scatter()
            means = effects.means(new)
            self.scatters.append(dict(zip(self.varying, new.tolist(), strict=True)))
            if tau.size:
                change = np.abs(np.log(new / tau))
                change[_none(effects, new) & _none(effects, tau)] = 0.0
                moved = np.abs(means - mean)
                settled = bool(np.all(change < SETTLED) and np.all(moved < SETTLED * new))
            tau, mean = new, means
            if settled or not np.isfinite(found.cost):
                break
            # The prior is weighed against all samples there, dependent ones included.
            sd = tau / np.sqrt(correlation_time(found))
            known = found.values | dict(zip(self.varying, mean, strict=True))
            again = beginning_at(self.free, known)
            for path, m, s in zip(self.varying, mean, sd, strict=True):
                again[path] = replace(again[path], prior=(float(m), float(s)))
            found, effects = self.fitted(again, 1)
        if not settled:
            said = f"mean and scatter have not settled after {len(self.scatters)} rounds"
            self.remarks.append(said)
        return found, effects, mean, tau

    def result(
        self, found: FitResult, effects: RandomEffects, mean: np.ndarray, tau: np.ndarray
    ) -> HierarchicalFit:
        """The result from what :meth:`settled` gives."""
        best, rows = effects.best(tau), zip(self.varying, effects.groups, strict=True)
        for path, none in zip(self.varying, _none(effects, tau), strict=True):
            if none:
                self.remarks.append(f"{path}: the runs differ by no more than their noise")
        runs = {path: dict(zip(self.names, best[g].tolist(), strict=True)) for path, g in rows}
        beside = {f"{path}[{name}]" for path in self.varying for name in self.names}
        return HierarchicalFit(
            dict(zip(self.varying, mean.tolist(), strict=True)),
            dict(zip(self.varying, tau.tolist(), strict=True)),
            runs,
            {n: float(best[i]) for i, n in enumerate(found.names) if n not in beside},
            found,
            tuple(self.scatters),
            (*self.remarks, *found.remarks),
            effects,
        )


def _none(effects: RandomEffects, tau: np.ndarray) -> np.ndarray:
    """Whether each scatter counts as zero: it is far below the uncertainty of one run."""
    noise = [np.sqrt(1.0 / np.maximum(np.median(effects.hessian[g, g]), 1e-300))
             for g in effects.groups]  # fmt: skip
    return tau < 0.05 * np.array(noise) / np.sqrt([g.size for g in effects.groups])
