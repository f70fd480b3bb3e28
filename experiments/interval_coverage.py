"""Coverage of 95 % intervals when the noise of the samples is coloured.

    python experiments/interval_coverage.py [--draws 1000] [--samples 400 1000] [--json]

There are three systems (an oscillator that dry friction stops, stick-slip on a belt, a linear
oscillator as control), five kinds of noise of 1 % of the peak, and 200 to 20,000 samples of the
same motion. A draw is one Gauss-Newton step from the true parameters with the exact derivatives;
the error of this step is printed for some draws, which are fitted in full. The script compares

    white           independent residuals, their variance estimated
    hac             Newey and West (1987), lags by Andrews (1991), normal quantiles
    prewhitened     the same behind a first-order autoregression (Andrews and Monahan 1992) with
                    quantiles for a fixed part of the record (Kiefer and Vogelsang 2005)
    blocks          moving blocks of residuals (Kuensch 1989), refits by the same step; few draws
    autoregressive  the default of a fit: jfric.fits.uncertainty.noise_model

`--samples 50 100 200 --noise "AR(1) 0.9" "AR(1) 0.98"` shows where the default begins to fail.
``degrees``: median degrees of freedom of the last method, the smaller value of both parameters.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np
from scipy.signal import lfilter
from scipy.special import stdtrit

import jfric
from jfric.fits.recipe import prepare
from jfric.fits.uncertainty.noise_model import autoregressive_covariance
from jfric.fits.uncertainty.residual_series import ResidualSeries, bandwidth, long_run_covariance
from jfric.numerics.compilation import compile_quickly, use_compilation_cache
from jfric.verification.configs import shipped

jax.config.update("jax_enable_x64", True)
compile_quickly()
use_compilation_cache()

LEVEL, NORMAL = 0.95, 1.959964
PART_OF_PEAK = 0.01
SAMPLES = (200, 400, 1000, 5000, 20000)
#: Coefficients of past values.
NOISE = {
    "white": (),
    "AR(1) 0.3": (0.3,),
    "AR(1) 0.6": (0.6,),
    "AR(1) 0.9": (0.9,),
    "AR(2) resonance": (2.0 * 0.95 * np.cos(0.3), -(0.95**2)),
    "AR(1) 0.98": (0.98,),
}
#: The last kind of noise is too slow for records of a few hundred samples.
USUAL = tuple(NOISE)[:-1]
#: Draws by blocks and their resamples; longest records for them; number of draws fitted in full.
BLOCK_DRAWS, RESAMPLES, BLOCK_SAMPLES, FULL = 200, 199, 1000, 10


class System(NamedTuple):
    title: str
    problem: jfric.Problem
    truth: dict[str, float]
    signal: str


def systems() -> list[System]:
    elements = {
        "mass": jfric.Mass("u", 1.0),
        "spring": jfric.Spring("u", 100.0),
        "damper": jfric.Damper("u", 0.6),
        "load": jfric.Load("u", 10.0),
    }
    linear = jfric.Problem(["u"], elements, time=8.0)
    oscillator, belt = (jfric.load(shipped(name)) for name in ("ve0116", "c4_belt"))
    return [
        System("dry friction", oscillator, {"friction.mu": 0.11, "spring.k": 5000.0}, "u"),
        System("stick-slip", belt, {"friction.mu_d": 0.5, "spring.k": 1.0}, "x"),
        System("linear", linear, {"damper.c": 0.6, "spring.k": 100.0}, "u"),
    ]


class Plan(NamedTuple):
    """A record to be fitted: the data without noise, and the derivatives over the noise (m, P)."""

    system: System
    experiment: jfric.Experiment
    jacobian: np.ndarray


def plan(system: System, samples: int) -> Plan:
    t = np.linspace(0.0, float(system.problem.time.end), samples)
    true = jfric.set_parameters(system.problem, system.truth)
    name = f"{system.signal}(t)"
    y = np.asarray(jfric.observe(true, [name], times=t).values[name])
    sigma = PART_OF_PEAK * float(np.abs(y).max())
    experiment = jfric.Experiment(t, y={system.signal: y}, sigma=sigma)
    task = prepare(system.problem, experiment, free(system))
    found = task.objective.linearise(np.array([list(system.truth.values())]))
    return Plan(system, experiment, found.jacobian[0, 0, :, 0])


def free(system: System) -> dict[str, jfric.Free]:
    return {k: jfric.Free(0.5 * x, 2.0 * x, init=x) for k, x in system.truth.items()}


def noise(past: tuple[float, ...], samples: int, rng) -> np.ndarray:
    """Noise of unit variance, long after its start."""
    taps = np.r_[1.0, -np.asarray(past)]
    response = lfilter([1.0], taps, np.r_[1.0, np.zeros(4000)])
    begun = lfilter([1.0], taps, rng.normal(size=samples + 2000))[2000:]
    return begun / np.linalg.norm(response)


class Draw(NamedTuple):
    """One data set: error of the estimate (P,), residuals (m,), and their derivatives."""

    off: np.ndarray
    residuals: np.ndarray
    jacobian: np.ndarray
    inverse: np.ndarray


def white(draw: Draw) -> np.ndarray:
    free_samples = draw.residuals.size - draw.off.size
    variance = draw.residuals @ draw.residuals / free_samples
    return NORMAL * np.sqrt(variance * np.diagonal(draw.inverse))


def hac(draw: Draw) -> np.ndarray:
    scores = draw.residuals[:, None] * draw.jacobian
    middle = long_run_covariance(scores, bandwidth(scores))
    scale = draw.residuals.size / (draw.residuals.size - draw.off.size)
    return NORMAL * _errors(draw.inverse, scale * middle)


def prewhitened(draw: Draw) -> np.ndarray:
    scores = draw.residuals[:, None] * draw.jacobian
    before, after = scores[:-1], scores[1:]
    a = np.linalg.lstsq(before, after, rcond=None)[0].T
    u, s, v = np.linalg.svd(a)
    a = (u * np.minimum(s, 0.97)) @ v
    rest = after - before @ a.T
    lags = bandwidth(rest)
    back = np.linalg.inv(np.eye(a.shape[0]) - a)
    middle = back @ long_run_covariance(rest, lags) @ back.T
    b = (lags + 1) / rest.shape[0]
    quantile = NORMAL + 2.9694 * b + 0.4160 * b**2 - 0.5324 * b**3
    return quantile * _errors(draw.inverse, middle)


def blocks(draw: Draw) -> np.ndarray:
    scores = draw.residuals[:, None] * draw.jacobian
    m, rng = draw.residuals.size, np.random.default_rng(0)
    length = max(1, 2 * bandwidth(scores))
    first = rng.integers(0, m, size=(RESAMPLES, -(-m // length)))
    index = (first[:, :, None] + np.arange(length)).reshape(RESAMPLES, -1)[:, :m] % m
    own = (draw.residuals - draw.residuals.mean()) * np.sqrt(m / (m - draw.off.size))
    refits = own[index] @ draw.jacobian @ draw.inverse
    low, high = np.quantile(refits, [0.5 - 0.5 * LEVEL, 0.5 + 0.5 * LEVEL], axis=0)
    # Half widths of the percentile intervals on the side of the truth.
    return np.where(draw.off > 0, -low, high)


def _errors(inverse, middle):
    return np.sqrt(np.diagonal(inverse @ middle @ inverse))


METHODS: dict[str, Callable[[Draw], np.ndarray]] = {
    "white": white, "hac": hac, "prewhitened": prewhitened, "blocks": blocks,
}  # fmt: skip


def cell(made: Plan, kind: str, draws: int, seed: int) -> dict:
    """Coverage of all methods for one system, number of samples and noise."""
    jacobian, samples = made.jacobian, made.experiment.t.size
    inverse = np.linalg.inv(jacobian.T @ jacobian)
    rng = np.random.default_rng(
        [seed, samples, list(NOISE).index(kind), *made.system.title.encode()]
    )
    hits = {name: [] for name in (*METHODS, "autoregressive")}
    degrees = []
    columns, used = np.arange(jacobian.shape[1]), np.ones((samples, 1), bool)
    for i in range(draws):
        e = noise(NOISE[kind], samples, rng)
        off = inverse @ (jacobian.T @ e)
        draw = Draw(off, e - jacobian @ off, jacobian, inverse)
        for name, width in METHODS.items():
            if name != "blocks" or (i < BLOCK_DRAWS and samples <= BLOCK_SAMPLES):
                hits[name].append(np.abs(off) <= width(draw))
        series = ResidualSeries(draw.residuals[:, None], jacobian[:, None], columns, used, 1.0)
        found = autoregressive_covariance([series], inverse)
        quantile = stdtrit(np.maximum(found.degrees, 1.0), 0.5 + 0.5 * LEVEL)
        hits["autoregressive"].append(np.abs(off) <= quantile * np.sqrt(np.diagonal(found.matrix)))
        degrees.append(found.degrees)
    own = np.array(degrees)
    return {
        "system": made.system.title,
        "samples": samples,
        "noise": kind,
        "coverage": {
            name: np.mean(held, axis=0).tolist() if held else None for name, held in hits.items()
        },
        "degrees": np.median(own, axis=0).tolist(),
        "held_by_degrees": _by_degrees(own, np.array(hits["autoregressive"])),
    }


#: Classes of degrees of freedom in which intervals are counted.
CLASSES = (0, 2, 4, 6, 8, 12, 20, 50, np.inf)


def _by_degrees(degrees, held) -> list[list[int]]:
    """Numbers of intervals, and of those that held the truth, by class of degrees of freedom."""
    place = np.digitize(degrees, CLASSES[1:-1])
    return [
        [int(np.sum(place == i)), int(np.sum(held[place == i]))] for i in range(len(CLASSES) - 1)
    ]


def full(made: Plan, kind: str, count: int, seed: int) -> float:
    """Largest difference between estimates of one step and of full fits, and between their
    intervals, in standard errors."""
    system, jacobian = made.system, made.jacobian
    inverse = np.linalg.inv(jacobian.T @ jacobian)
    rng = np.random.default_rng([seed, 7])
    truth, worst = np.array(list(system.truth.values())), 0.0
    sigma = made.experiment.sigma[system.signal]
    columns, used = np.arange(truth.size), np.ones((made.experiment.t.size, 1), bool)
    for _ in range(count):
        e = noise(NOISE[kind], made.experiment.t.size, rng)
        y = made.experiment.y[system.signal] + sigma * e
        data = jfric.Experiment(made.experiment.t, y={system.signal: y}, sigma=sigma)
        found = jfric.fit(system.problem, data, free(system), starts=1)
        off = inverse @ (jacobian.T @ e)
        rest = e - jacobian @ off
        series = ResidualSeries(rest[:, None], jacobian[:, None], columns, used, 1.0)
        sd = np.sqrt(np.diagonal(autoregressive_covariance([series], inverse).matrix))
        errors = np.array(list(found.covariance().standard_errors.values()))
        worst = max(worst, float(np.max(np.abs(found.vector - truth - off) / sd)))
        worst = max(worst, float(np.max(np.abs(errors / sd - 1.0))))
    return worst


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--samples", type=int, nargs="+", default=list(SAMPLES))
    parser.add_argument("--noise", nargs="+", default=list(USUAL), choices=list(NOISE))
    titles = [system.title for system in systems()]
    parser.add_argument("--systems", nargs="+", default=titles, choices=titles)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="print the numbers as JSON")
    options = parser.parse_args()
    rows, checks = [], {}
    chosen = [s for s in systems() if s.title in options.systems]
    for samples in options.samples:
        for system in chosen:
            made = plan(system, samples)
            if samples <= BLOCK_SAMPLES:
                checks[f"{system.title}, {samples} samples"] = full(
                    made, "AR(1) 0.9", FULL, options.seed
                )
            for kind in options.noise:
                rows.append(cell(made, kind, options.draws, options.seed))
                print(_line(rows[-1]), file=sys.stderr if options.json else sys.stdout, flush=True)
    if options.json:
        print(json.dumps({"draws": options.draws, "full fits": checks, "cells": rows}, indent=1))
        return
    print(f"\nfull fits of {FULL} draws and one step, largest difference in standard errors")
    for name, worst in checks.items():
        print(f"{name}: {worst:.3f}")
    total = np.sum([row["held_by_degrees"] for row in rows], axis=0)
    print("\nintervals of the default by their degrees of freedom")
    for low, high, (count, held) in zip(CLASSES, CLASSES[1:], total, strict=False):
        if count:
            print(f"{low:g} to {high:g}: {count} intervals, {100 * held / count:.1f} % hold")


def _line(row: dict) -> str:
    def shown(values) -> str:
        return "-" if values is None else "/".join(f"{100 * v:.1f}" for v in values)

    cells = "  ".join(f"{name} {shown(v)}" for name, v in row["coverage"].items())
    head = f"{row['system']:12} {row['samples']:6} {row['noise']:16}"
    return f"{head} {cells}  degrees {min(row['degrees']):.0f}"


if __name__ == "__main__":
    main()
