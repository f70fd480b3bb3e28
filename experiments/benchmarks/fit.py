"""Fits of mu and k to noisy displacements of VE0116: jfric compared with SciPy, lmfit and pyPESTO.

400 samples on 0 to 4 s, noise of 1 % of the peak, one start (mu = 0.1, k = 5 kN/m), both until a
step promises to lower the sum of squares by less than 1e-10 of it.

- jfric: one fit (``jfric.fit``, one start) and a batch of fits (``jfric.fit_batch``), exact
  derivatives; first calls include compilation.
- SciPy: ``least_squares`` (trust region, forward differences) driving ``solve_ivp`` (DOP853, rtol
  1e-9), which stops at every zero of the velocity and starts again in the next phase.
- lmfit (``leastsq``: Levenberg-Marquardt of MINPACK, its bounds) and pyPESTO (``ls_trf``), where
  they are installed, drive the same simulation.

The wall time of each fit is printed with the time of all processors, which other programs disturb
less.

    python experiments/benchmarks/fit.py [--json] [--draws 1024] [--scipy 5]
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import logging
import os
import platform
import time
from typing import NamedTuple

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


class Counted:
    """Residuals of one record by relative parameters, with a common count of simulations, since
    some programs copy their arguments."""

    calls = 0

    def __init__(self, y: np.ndarray, sigma: float):
        self.y, self.sigma = y, sigma

    def __call__(self, x) -> np.ndarray:
        Counted.calls += 1
        return (scipy_displacement(*(np.asarray(x) * START)) - self.y) / self.sigma


def by_scipy(residual: Counted) -> np.ndarray:
    # Parameters are scaled to equal size.
    scale = np.array(START)
    return least_squares(
        residual,
        np.ones(2),
        bounds=(np.array(LOWER) / scale, np.array(UPPER) / scale),
        ftol=TOLERANCE,
        xtol=TOLERANCE,
        gtol=TOLERANCE,
    ).x


def by_lmfit(residual: Counted) -> np.ndarray:
    import lmfit

    table = lmfit.Parameters()
    for name, low, high, start in zip(("mu", "k"), LOWER, UPPER, START, strict=True):
        table.add(name, value=1.0, min=low / start, max=high / start)
    found = lmfit.minimize(
        lambda p: residual([p["mu"].value, p["k"].value]),
        table,
        ftol=TOLERANCE,
        xtol=TOLERANCE,
        gtol=TOLERANCE,
    )
    return np.array([found.params["mu"].value, found.params["k"].value])


def by_pypesto(residual: Counted) -> np.ndarray:
    import pypesto
    from pypesto import optimize

    logging.getLogger("pypesto").setLevel(logging.ERROR)
    scale = np.array(START)
    problem = pypesto.Problem(
        pypesto.Objective(res=residual),
        lb=np.array(LOWER) / scale,
        ub=np.array(UPPER) / scale,
        x_guesses=np.ones((1, 2)),
    )
    # The equivalent of ``tol`` is SciPy's ``ftol``.
    others = {"xtol": TOLERANCE, "gtol": TOLERANCE}
    optimizer = optimize.ScipyOptimizer(method="ls_trf", tol=TOLERANCE, options=others)
    found = optimize.minimize(problem, optimizer=optimizer, n_starts=1, progress_bar=False)
    return found.optimize_result[0].x


#: The other fits, by the package that each needs.
PARTNERS = {
    "scipy": ("SciPy least_squares with solve_ivp", by_scipy),
    "lmfit": ("lmfit leastsq, same simulation", by_lmfit),
    "pypesto": ("pyPESTO ls_trf, same simulation", by_pypesto),
}


class Time(NamedTuple):
    """Seconds on the wall, and of all processors."""

    wall: float
    processor: float

    @staticmethod
    def since(begin: tuple[float, float]) -> Time:
        return Time(time.perf_counter() - begin[0], time.process_time() - begin[1])


def now() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()


def seconds(call, repeats: int):
    times = []
    for _ in range(repeats):
        begin = now()
        found = call()
        times.append(Time.since(begin))
    return Time(*np.median(np.array(times), axis=0).tolist()), found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--draws", type=int, default=1024, help="fits of the batch")
    parser.add_argument("--scipy", type=int, default=5, help="fits by each of the others")
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
    partners = {}
    for package, (name, fit) in PARTNERS.items():
        if importlib.util.find_spec(package) is None:
            continue
        fit(Counted(draws[0], sigma))  # imports
        Counted.calls, begin = 0, now()
        x = [fit(Counted(y, sigma)) * START for y in draws[: options.scipy]]
        spent = Time.since(begin)
        partners[name] = {
            "one fit [s]": spent.wall / options.scipy,
            "one fit, processor [s]": spent.processor / options.scipy,
            "simulations of a fit": Counted.calls / options.scipy,
            "largest relative difference of the estimates": float(
                np.abs(batch.estimates[: options.scipy] / np.array(x) - 1.0).max()
            ),
        }

    result = {
        "machine": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "versions": {"jax": jax.__version__},
        "jfric, first fit with compilation [s]": first,
        "jfric, first batch with compilation [s]": first_batch,
        "jfric, one fit [s]": one.wall,
        "jfric, one fit, processor [s]": one.processor,
        "jfric, batch of fits": options.draws,
        "jfric, fit in the batch [s]": many.wall / options.draws,
        "jfric, fit in the batch, processor [s]": many.processor / options.draws,
        "jfric, fits per second": options.draws / many.wall,
        **partners,
    }
    if options.json:
        print(json.dumps(result, indent=2))
        return
    rows = [
        *(
            (name, row["one fit [s]"], row["one fit, processor [s]"])
            for name, row in partners.items()
        ),
        ("jfric, one fit", one.wall, one.processor),
        (
            f"jfric, batch of {options.draws}",
            many.wall / options.draws,
            many.processor / options.draws,
        ),
    ]
    print(f"{'method':36} {'a fit [ms]':>10} {'processor [ms]':>14} {'fits per second':>16}")
    for name, wall, processor in rows:
        print(f"{name:36} {1e3 * wall:10.3f} {1e3 * processor:14.3f} {1.0 / wall:16.1f}")
    print(f"first calls, with compilation: {first:.1f} s (one fit), {first_batch:.1f} s (batch)")
    for name, row in partners.items():
        print(
            f"{name}: {row['simulations of a fit']:.0f} simulations of a fit, estimates differ by "
            f"{row['largest relative difference of the estimates']:.1e} at most"
        )


if __name__ == "__main__":
    main()
