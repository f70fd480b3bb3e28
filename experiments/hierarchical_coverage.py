"""Coverage of the intervals of hierarchical fits: mean, scatter, single runs.

    python experiments/hierarchical_coverage.py [--runs 8] [--repetitions 200]

A mass on a spring is stopped by dry friction whose coefficient differs from run to run; the
stiffness is common. Each repetition draws new coefficients and new noise. For comparison the script
prints how often the intervals of separate fits of each run hold their coefficient, and the errors
of both.
"""

from __future__ import annotations

import argparse
import time

import jax
import numpy as np

import jfric
from jfric.numerics.compilation import compile_quickly, use_compilation_cache

jax.config.update("jax_enable_x64", True)
compile_quickly()
use_compilation_cache()

MU, SCATTER, STIFFNESS = 0.2, 0.02, 50.0
SAMPLES, NOISE = 60, 0.08
FREE = {
    "friction.mu": jfric.Free(0.01, 1.0, init=0.2, scale="linear", varies=True),
    "spring.k": jfric.Free(20.0, 100.0, init=50.0),
}


def oscillator() -> jfric.Problem:
    return jfric.Problem(
        ("x",),
        {
            "mass": jfric.Mass("x", 1.0),
            "spring": jfric.Spring("x", STIFFNESS),
            "friction": jfric.Friction("x", jfric.Coulomb(MU), N=10.0),
        },
        initial={"x": jfric.InitialState(q=1.0)},
        time=3.0,
    )


def clean(problem: jfric.Problem, times: np.ndarray):
    """The motion for any coefficient, as one compiled function."""

    @jax.jit
    def run(mu):
        changed = jfric.set_parameters(problem, {"friction.mu": mu})
        return jfric.simulate(changed, ts=times).q[:, 0]

    return jax.jit(jax.vmap(run))


def study(runs: int, repetitions: int, seed: int) -> dict[str, float]:
    problem, t = oscillator(), np.linspace(0.05, 3.0, SAMPLES)
    motion, rng = clean(problem, t), np.random.default_rng(seed)
    held = {"mean": [], "scatter": [], "single runs": [], "stiffness": []}
    off, alone, scatters = [], [], []
    for _ in range(repetitions):
        mu = MU + SCATTER * rng.normal(size=runs)
        x = np.asarray(motion(mu)) + NOISE * rng.normal(size=(runs, SAMPLES))
        records = [
            jfric.Experiment(t, y={"x": own}, sigma=NOISE, x0={"x": (1.0, 0.0)}, start=0.0)
            for own in x
        ]
        found = jfric.fit_hierarchical(problem, records, FREE, starts=1)
        low, high = found.mean_intervals()["friction.mu"]
        held["mean"].append(low <= MU <= high)
        low, high = found.scatter_intervals()["friction.mu"]
        held["scatter"].append(low <= SCATTER <= high)
        low, high = found.common_intervals()["spring.k"]
        held["stiffness"].append(low <= STIFFNESS <= high)
        intervals = list(found.run_intervals()["friction.mu"].values())
        held["single runs"] += [a <= m <= b for (a, b), m in zip(intervals, mu, strict=True)]
        values = np.array(list(found.runs["friction.mu"].values()))
        off.append(values - mu)
        scatters.append(found.scatter["friction.mu"])
        each = {k: jfric.Free(f.lower, f.upper, f.init, f.scale, per_experiment=f.varies)
                for k, f in FREE.items()}  # fmt: skip
        separate = jfric.fit(problem, records, each, starts=1)
        alone.append(separate.vector[:runs] - mu)
    result = {f"{name}: intervals of 95 % hold [%]": 100 * float(np.mean(h))
              for name, h in held.items()}  # fmt: skip
    rms = [float(np.sqrt(np.mean(np.square(x)))) for x in (off, alone)]
    return {
        **result,
        "mean of the scatters found": float(np.mean(scatters)),
        "median of the scatters found": float(np.median(scatters)),
        "rms error of the runs": rms[0],
        "rms error of the runs, each fitted alone": rms[1],
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=8)
    parser.add_argument("--repetitions", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    began = time.perf_counter()
    found = study(given.runs, given.repetitions, given.seed)
    print(
        f"{given.runs} runs, {given.repetitions} repetitions in {time.perf_counter() - began:.0f} "
        f"s; true mean {MU}, scatter {SCATTER}"
    )
    for name, value in found.items():
        print(f"{name:45} {value:.4g}")


if __name__ == "__main__":
    main()
