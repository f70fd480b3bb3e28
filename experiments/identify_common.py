"""Common parts of the studies of fits to synthetic data."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

import jfric
from jfric.numerics.compilation import compile_quickly, use_compilation_cache

jax.config.update("jax_enable_x64", True)
compile_quickly()
use_compilation_cache()


@dataclass(frozen=True)
class Study:
    """A system with known parameters, its measured signals, and its free parameters."""

    title: str
    problem: jfric.Problem
    truth: Mapping[str, float]
    free: Mapping[str, jfric.Free]
    signals: tuple[str, ...]
    samples: int
    #: Standard deviation of the noise, as a part of the peak of each signal.
    noise: float

    @property
    def true_problem(self) -> jfric.Problem:
        return jfric.set_parameters(self.problem, self.truth)

    def experiment(self) -> jfric.Experiment:
        """The record without noise; its ``sigma`` is that of the noise."""
        end = float(self.problem.time.end)
        t = np.linspace(0.0, end, self.samples)
        observed = jfric.observe(self.true_problem, [f"{s}(t)" for s in self.signals], times=t)
        y = {s: np.asarray(observed.values[f"{s}(t)"]) for s in self.signals}
        sigma = {s: self.noise * float(np.abs(v).max()) for s, v in y.items()}
        return jfric.Experiment(t, y=y, sigma=sigma)

    def draws(self, clean: jfric.Experiment, count: int, seed: int) -> dict[str, np.ndarray]:
        """Measured values (count, samples) of each signal."""
        rng = np.random.default_rng(seed)
        return {
            s: clean.y[s] + clean.sigma[s] * rng.normal(size=(count, self.samples))
            for s in self.signals
        }


def arguments(text: str | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=text, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="print the numbers as JSON")
    return parser.parse_args()


def cramer_rao(study: Study, clean: jfric.Experiment) -> np.ndarray:
    """Smallest possible standard deviations (P,): derivatives at the truth by ``jfric.observe``."""
    names = tuple(study.free)
    times = np.asarray(clean.t)

    def signals(x):
        changed = jfric.set_parameters(study.problem, dict(zip(names, x, strict=True)))
        found = jfric.observe(changed, [f"{s}(t)" for s in study.signals], times=times)
        return jnp.concatenate([found.values[f"{s}(t)"] / clean.sigma[s] for s in study.signals])

    J = np.asarray(jax.jacfwd(signals)(jnp.asarray([study.truth[n] for n in names])))
    return np.sqrt(np.diagonal(np.linalg.inv(J.T @ J)))


def compared(study: Study, options: argparse.Namespace) -> dict:
    """Comparison of the fits of all draws with truth and bound."""
    clean = study.experiment()
    samples = study.draws(clean, options.draws, options.seed)
    return judged(study, clean, samples, cramer_rao(study, clean), options)


def judged(
    study: Study,
    clean: jfric.Experiment,
    samples: Mapping[str, np.ndarray],
    bound: np.ndarray,
    options: argparse.Namespace,
    **fit,
) -> dict:
    """Comparison for given draws and a given bound (P,); ``fit``: options of the fits."""
    seconds = []
    for _ in range(2):
        begin = time.perf_counter()
        found = jfric.fit_batch(study.problem, clean, study.free, samples, **fit)
        seconds.append(time.perf_counter() - begin)
    names = found.names
    truth = np.array([study.truth[n] for n in names])
    good = np.isfinite(found.cost)
    x, sd = found.estimates[good], found.standard_errors[good]
    log = np.array([study.free[n].scale == "log" for n in names])
    # Intervals as the fit computes them: symmetric on the scale of the parameter.
    low = np.where(log, x * np.exp(-1.959964 * sd / x), x - 1.959964 * sd)
    high = np.where(log, x * np.exp(1.959964 * sd / x), x + 1.959964 * sd)
    covered = np.mean((low <= truth) & (truth <= high), axis=0)
    spread = np.std(x, axis=0, ddof=1)
    off = (np.mean(x, axis=0) - truth) / (spread / np.sqrt(x.shape[0]))
    table = {
        name: {
            "truth": truth[i],
            "mean": float(np.mean(x[:, i])),
            "bias in standard errors": float(off[i]),
            "spread": float(spread[i]),
            "spread over Cramer-Rao": float(spread[i] / bound[i]),
            "coverage of 95 % intervals": float(covered[i]),
        }
        for i, name in enumerate(names)
    }
    return {
        "study": study.title,
        "fits": options.draws,
        "failed": int(np.sum(~good)),
        "iterations": float(np.mean(found.iterations)),
        "first run, with compilation [s]": seconds[0],
        "second run [s]": seconds[1],
        "fits per second": options.draws / seconds[1],
        "parameters": table,
    }


def print_report(result: dict) -> None:
    """Print the comparison in sentences."""
    print(result["study"])
    print(
        f"{result['fits']} fits, {result['failed']} failed, {result['iterations']:.1f} steps each; "
        f"first run {result['first run, with compilation [s]']:.1f} s, then "
        f"{result['second run [s]']:.3f} s: {result['fits per second']:.0f} fits per second"
    )
    for name, row in result["parameters"].items():
        print(
            f"{name:14} true {row['truth']:.6g}, mean {row['mean']:.6g} "
            f"({row['bias in standard errors']:+.2f} standard errors), spread {row['spread']:.3g} "
            f"= {row['spread over Cramer-Rao']:.3f} of the bound, 95 % intervals cover "
            f"{100 * row['coverage of 95 % intervals']:.1f} %"
        )


def report(study: Study, options: argparse.Namespace) -> None:
    """Fit all draws and print the comparison."""
    result = compared(study, options)
    if options.json:
        print(json.dumps(result, indent=2))
    else:
        print_report(result)
