"""Share of records with a known law for which the comparison of laws recommends this law.

    python experiments/compare_rule.py [--seeds 20] [--only asymmetric] [--noise 0.05] [--json FILE]

The records are 6 s of a closed loop that follows two sines, 200 samples per second: positions in
steps of 1 um (``--reading``), the force with noise of 0.05 N, 1.2 % of it (``--noise``). Five laws
are fitted to the force and judged by all criteria on four folds. A recommended law is the true one,
a simpler one (earlier in the list) or a richer one. If the truth is asymmetric Coulomb and viscous
friction with a dip of 3 or 10 % behind rest, Stribeck's law, which can fall as well, counts as
simpler.

All rules use the same fits. They call a law as good as the best (1) within one standard error of
the difference; (2) within that, or within 0.1 % of the measured size; (3) within two; (4) within
two, but with at most twice the error of the best, as in `jfric compare`; (5) unless it is
significantly worse (Student's quantile for four folds, a level of 5 % shared by the four criteria).
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np

import jfric
from jfric.fits.comparison.result import Criterion, Differences, LawComparison, differences
from jfric.fits.recipe import prepare
from jfric.laws import Directional
from jfric.numerics.compilation import use_compilation_cache

jax.config.update("jax_enable_x64", True)
use_compilation_cache()

LAWS = ("Coulomb", "Coulomb + viscous", "asymmetric", "Stribeck", "curve")
SPEEDS = (0.0, 0.02, 0.06, 0.12, 0.3)
BACKWARD = (3.0, 3.1, 3.15, 3.2, 3.4)
#: Name of the truth: the number of the equivalent law in LAWS, and the law.
TRUTHS = {
    "Coulomb": ("Coulomb", jfric.Stribeck(3.5, 3.5, 1.0)),
    "Coulomb + viscous": ("Coulomb + viscous", jfric.Stribeck(3.5, 3.5, 1.0, mu_v=2.5)),
    "asymmetric": (
        "asymmetric",
        jfric.Stribeck(
            Directional(4.0, 3.0), Directional(4.0, 3.0), 1.0, mu_v=Directional(3.0, 2.0)
        ),
    ),
    "Stribeck": (
        "Stribeck",
        jfric.Stribeck(
            Directional(4.4, 3.4), Directional(4.0, 3.0), 0.05, mu_v=Directional(3.0, 2.0)
        ),
    ),
    "asymmetric Coulomb": (
        "asymmetric",
        jfric.Stribeck(Directional(4.0, 3.0), Directional(4.0, 3.0), 1.0),
    ),
    "dip of 3 %": (
        "curve",
        jfric.FrictionCurve(SPEEDS, Directional((4.0, 3.88, 4.0, 4.15, 4.5), BACKWARD)),
    ),
    "dip of 10 %": (
        "curve",
        jfric.FrictionCurve(SPEEDS, Directional((4.0, 3.6, 3.9, 4.2, 4.5), BACKWARD)),
    ),
}
MASS, STEP, SAMPLES, NOISE, READING = 2.0, 5e-3, 1200, 0.05, 1e-6
CONTROLLER = jfric.Controller("x", "load.F", kp=900.0, kd=60.0)
#: Ratio for four folds.
HELD_OVER_FITTED = 1.0 / 3.0


def within(d: Differences, errors: float, part: float = 0.0) -> np.ndarray:
    """Laws within ``errors`` standard errors of the best, or ``part``, or 1 % of its error."""
    allowed = np.maximum(errors * d.standard_error, part)
    return replace(d, standard_error=allowed).within


#: Rules for laws as good as the best, from differences and the measured size.
RULES: dict[str, Callable[[Differences, float], np.ndarray]] = {
    "one standard error": lambda d, size: within(d, 1.0),
    "or 0.1 % of what is measured": lambda d, size: within(d, 1.0, 1e-3 * size),
    "two standard errors": lambda d, size: within(d, 2.0),
    "two, up to twice the error (jfric compare)": lambda d, size: d.as_good,
    "not significantly worse, 5 %": lambda d, size: within(d, 4.18),
}


def problem(law=None, mass: float = 1.0) -> jfric.Problem:
    """A mass that a force moves against friction."""
    friction = (
        jfric.Friction("x", limit=3.0) if law is None else jfric.Friction("x", law, limit=1.0)
    )
    elements = {
        "mass": jfric.Mass("x", mass),
        "friction": friction,
        "load": jfric.Load("x", 0.0),
    }
    return jfric.Problem(("x",), elements, time=8.0)


def record(law, seed: int, noise: float = NOISE, reading: float = READING) -> jfric.Experiment:
    """Measured record of the loop with this law of friction."""
    t = STEP * np.arange(SAMPLES)
    r = (0.1 * np.sin(2.0 * t) + 0.03 * np.sin(5.3 * t)) * (1.0 - np.exp(-((t / 0.3) ** 2)))
    reference = {"controller.reference": r}
    blank = jfric.Experiment(t, reference, {"load.F": t, "x": t})
    model = jfric.SampledModel(problem(law), CONTROLLER)
    free = {"mass.m": jfric.Free(0.5 * MASS, 2.0 * MASS)}
    task = prepare(model, blank, free, observe=["x", "load.F"])
    x, force = task.objective.predict(np.array([[MASS]]))[0, 0].T
    noisy = force + noise * np.random.default_rng(seed).normal(size=SAMPLES)
    steps = {"x": reading} if reading > 0.0 else {}
    read = {"x": reading * np.round(x / reading) if steps else x, "load.F": noisy}
    return jfric.Experiment(t, reference | {"load.F": noisy}, read, resolution=steps)


def scores_of(found: LawComparison) -> dict[str, dict]:
    """All numbers from which laws are judged."""
    return {
        c.name: {
            "unit": c.unit,
            "size": c.size,
            "fitted": c.fitted,
            "scores": c.differences.scores.tolist(),
        }
        for c in found.criteria
    }


def judged(name: str, given: dict) -> Criterion:
    """A criterion from its numbers."""
    d = differences(np.array(given["scores"]), HELD_OVER_FITTED, given["size"])
    return Criterion(name, given["unit"], given["size"], given["fitted"], d)


def recommended(scores: dict[str, dict], rule: Callable[[Differences, float], np.ndarray]) -> str:
    """The simplest law as good as the best by all criteria, or by all that were not fitted."""
    criteria = [judged(name, given) for name, given in scores.items()]
    good = np.array([rule(c.differences, c.size) for c in criteria])
    others = np.array([not c.fitted for c in criteria])
    for common in (good.all(axis=0), good[others].all(axis=0)):
        if common.any():
            return LAWS[int(np.argmax(common))]
    return "none"


def kind(law: str, true: str) -> str:
    """Whether a recommendation is true, simpler or richer."""
    if law in ("none", true):
        return "none" if law == "none" else "true"
    return "simpler" if LAWS.index(law) < LAWS.index(true) else "richer"


def show(name: str, records: list[dict]) -> None:
    """Print the results of the rules for one truth, and the distances of laws from the best."""
    true, _ = TRUTHS[name]
    print(f"{name}, {len(records)} records")
    for title, rule in RULES.items():
        kinds = [kind(recommended(scores, rule), true) for scores in records]
        counts = ", ".join(f"{k} {kinds.count(k)}" for k in ("true", "simpler", "richer", "none"))
        print(f"  {title:42} {counts}")
    print("  from the best, median: % of the size, % of the error, standard errors (most of them)")
    for i, law in enumerate(LAWS):
        cells = []
        for criterion in records[0]:
            rows = []
            for scores in records:
                c = judged(criterion, scores[criterion])
                d, off = c.differences, c.differences.difference[i]
                error = d.standard_error[i] or 1.0
                rows.append((100.0 * off / c.size, 100.0 * off / d.mean[d.best], off / error))
            size, part, errors = np.median(rows, axis=0)
            most = np.max(rows, axis=0)[2]
            cells.append(f"{criterion} {size:.3f}, {part:.2f}, {errors:.1f} ({most:.1f})")
        print(f"    {law:18} " + "; ".join(cells), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=20, help="records of each truth")
    parser.add_argument("--first", type=int, default=0, help="seed of the first record")
    parser.add_argument("--noise", type=float, default=NOISE, help="of the force [N]")
    parser.add_argument("--reading", type=float, default=READING, help="steps of positions [m]")
    parser.add_argument("--only", choices=TRUTHS, action="append", help="repeatable")
    parser.add_argument("--json", type=Path, help="file for all scores")
    parser.add_argument("--read", type=Path, help="such a file: judge its scores, fit nothing")
    given = parser.parse_args()
    if given.read is not None:
        for name, records in json.loads(given.read.read_text()).items():
            show(name, records)
        return
    numbers: dict[str, list] = {name: [] for name in given.only or TRUTHS}
    for seed in range(given.first, given.first + given.seeds):
        for name, records in numbers.items():
            wall, own = time.perf_counter(), time.process_time()
            found = jfric.compare_laws(
                problem(),
                record(TRUTHS[name][1], seed, given.noise, given.reading),
                {"mass.m": jfric.Free(0.5, 8.0, init=3.0)},
                laws=LAWS,
                controller=CONTROLLER,
            )
            records.append(scores_of(found))
            wall, own = time.perf_counter() - wall, time.process_time() - own
            print(f"{name}, seed {seed}: {found.recommended} ({wall:.0f} s, processor {own:.0f} s)",
                  flush=True)  # fmt: skip
        if given.json is not None:
            given.json.write_text(json.dumps(numbers, indent=1))
    for name, records in numbers.items():
        show(name, records)


if __name__ == "__main__":
    main()
