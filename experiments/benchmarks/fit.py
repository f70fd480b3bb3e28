"""Fits of mu and k to noisy displacements of VE0116: jfric beside SciPy.

400 samples on 0 to 4 s, noise of 1 % of the peak, one start (mu = 0.1, k = 5 kN/m), both until a
step promises to lower the sum of squares by less than 1e-10 of it.

- jfric: one fit (``jfric.fit``, one start) and a batch of fits (``jfric.fit_batch``), exact
  derivatives; first calls include compilation.
- SciPy: ``least_squares`` (trust region, forward differences) driving ``solve_ivp`` (DOP853, rtol
  1e-9), which stops at every zero of the velocity and starts again in the next phase.

    python experiments/benchmarks/fit.py [--json] [--draws 1024] [--scipy 5]
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time

import jax
import numpy as np
from scipy.integrate import solve_ivp
from scipy.optimize import least_squares

import jfric
from jfric.numerics.compilation import compile_quickly
from jfric.verification.configs import shipped

jax.config.update("jax_enable_x64", True)
compile_quickly()

M, FX, FZ, END, SAMPLES = 100.0, 1500.0, 1000.0, 4.0, 400
TRUTH, START = (0.11, 5000.0), (0.1, 5000.0)
LOWER, UPPER = (0.01, 1e3), (1.0, 2e4)
TOLERANCE = 1e-10
TS = np.linspace(0.0, END, SAMPLES)


def scipy_displacement(mu: float, k: float) -> np.ndarray:
    """Displacements at ``TS``, phase by phase."""
    u = np.full(TS.size, np.nan)
    t, state = 0.0, np.zeros(2)
    while t < END:
        pull = FX - k * state[0]
        if abs(pull) <= mu * FZ:
            u[t <= TS] = state[0]
            break
        sign = np.sign(pull)

        def motion(_, y, sign=sign):
            return [y[1], (FX - k * y[0] - sign * mu * FZ) / M]

        def turns(_, y):
            return y[1]

        turns.terminal, turns.direction = True, -sign
        inside = TS[t <= TS]
        phase = solve_ivp(
            motion, (t, END), state, "DOP853", inside, events=turns, rtol=1e-9, atol=1e-12
        )
        u[np.searchsorted(TS, phase.t)] = phase.y[0]
        if not phase.t_events[0].size:
            break
        t, state = float(phase.t_events[0][0]), np.array([phase.y_events[0][0][0], 0.0])
    return u


def scipy_fit(y: np.ndarray, sigma: float):
    # SciPy is given parameters of equal size.
    scale = np.array(START)
    return least_squares(
        lambda x: (scipy_displacement(*(x * scale)) - y) / sigma,
        np.ones(2),
        bounds=(np.array(LOWER) / scale, np.array(UPPER) / scale),
        ftol=TOLERANCE,
        xtol=1e-10,
        gtol=1e-10,
    )


def seconds(call, repeats: int):
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        found = call()
        times.append(time.perf_counter() - begin)
    return float(np.median(times)), found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--draws", type=int, default=1024, help="fits of the batch")
    parser.add_argument("--scipy", type=int, default=5, help="fits by SciPy")
    options = parser.parse_args()

    problem = jfric.load(shipped("ve0116"))
    clean = scipy_displacement(*TRUTH)
    sigma = 0.01 * float(np.abs(clean).max())
    draws = clean + sigma * np.random.default_rng(0).normal(size=(options.draws, SAMPLES))
    free = {
        name: jfric.Free(low, high, init=start)
        for name, low, high, start in zip(
            ("friction.mu", "spring.k"), LOWER, UPPER, START, strict=True
        )
    }
    experiments = [jfric.Experiment(TS, y={"u": y}, sigma=sigma) for y in draws[: options.scipy]]

    begin = time.perf_counter()
    jfric.fit(problem, experiments[0], free, starts=1)
    first = time.perf_counter() - begin
    begin = time.perf_counter()
    jfric.fit_batch(problem, experiments[0], free, {"u": draws}, starts=1)
    first_batch = time.perf_counter() - begin
    one, _ = seconds(lambda: jfric.fit(problem, experiments[0], free, starts=1), 5)
    many, batch = seconds(
        lambda: jfric.fit_batch(problem, experiments[0], free, {"u": draws}, starts=1), 5
    )
    begin = time.perf_counter()
    scipy_found = [scipy_fit(y, sigma) for y in draws[: options.scipy]]
    scipy_one = (time.perf_counter() - begin) / options.scipy
    x = np.array([f.x * START for f in scipy_found])
    apart = np.abs(batch.estimates[: options.scipy] / x - 1.0).max()
    calls = float(np.mean([f.nfev * 3 for f in scipy_found]))

    result = {
        "machine": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "versions": {"jax": jax.__version__},
        "jfric, first fit with compilation [s]": first,
        "jfric, first batch with compilation [s]": first_batch,
        "jfric, one fit [s]": one,
        "jfric, batch of fits": options.draws,
        "jfric, fit in the batch [s]": many / options.draws,
        "jfric, fits per second": options.draws / many,
        "SciPy, one fit [s]": scipy_one,
        "SciPy, simulations of a fit": calls,
        "largest relative difference of the estimates": float(apart),
    }
    if options.json:
        print(json.dumps(result, indent=2))
        return
    rows = [
        ("SciPy least_squares with solve_ivp", scipy_one, 1.0 / scipy_one),
        ("jfric, one fit", one, 1.0 / one),
        (f"jfric, batch of {options.draws}", many / options.draws, options.draws / many),
    ]
    print(f"{'method':36} {'time of a fit [ms]':>18} {'fits per second':>16}")
    for name, time_of_one, rate in rows:
        print(f"{name:36} {1e3 * time_of_one:18.3f} {rate:16.1f}")
    print(
        f"first calls, with compilation: {first:.1f} s (one fit), {first_batch:.1f} s (batch); "
        f"estimates differ by {apart:.1e} at most"
    )


if __name__ == "__main__":
    main()
