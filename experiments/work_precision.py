"""Error against cost of the solvers, on VE0116 (one oscillator) and SDND106 (two masses).

Each solver runs with several settings of its accuracy. The error is the largest difference from
closed-form positions, relative to the largest of them. The cost is the shortest of several runs of
the compiled program for one trajectory.

    python experiments/work_precision.py [--out results/figures]
"""

from __future__ import annotations

import time

import jax
import jax.numpy as jnp
import numpy as np
from common import BLUE, GOLD, GREEN, PURPLE, RED, figure, folder, print_table, save
from common import problem as shipped_problem

import jfric

#: Times, and positions at these times in closed form.
CASES = {
    "ve0116": {
        0.25: (0.3347958419934843,), 0.5: (0.5416168308177047,), 1.0: (0.1389304187383115,),
        1.5: (0.3806780696148372,), 2.0: (0.2805962394559113,), 2.5: (0.2889268724224285,),
        3.0: (0.3084942870869280,), 4.0: (0.32,),
    },
    "sdnd106": {
        0.05: (0.03542084262750056, 0.4862899710455480),
        0.10: (0.7719328867864169, 0.8193575835845323),
        0.15: (1.353337660892898, 1.807532466175952),
        0.20: (2.593088362758737, 2.637361421008014),
        0.25: (3.446413147161373, 3.603616293303278),
        0.30: (3.914131986543471, 3.955477110619080),
        0.35: (3.955605773497603, 3.965067852570425),
    },
}  # fmt: skip
WIDTHS = (1e-1, 1e-2, 1e-3, 1e-4)
#: Limit of steps: an implicit method may stall where the law is steep.
FEW = 20_000
#: Settings of each solver, from rough to fine.
FAMILIES = {
    "event-driven, exact flow": [("order 28", jfric.EventDriven(flow="exact"))],
    "event-driven, Runge-Kutta flow": [
        (f"rtol {r:g}", jfric.EventDriven(flow="runge-kutta", rtol=r))
        for r in (1e-4, 1e-6, 1e-8, 1e-10)
    ],
    "Moreau-Jean": [(f"dt {dt:g}", jfric.MoreauJean(dt=dt)) for dt in (1e-2, 1e-3, 1e-4, 1e-5)],
    "smoothed, tanh, Tsit5": [
        (f"width {w:g}", jfric.Smoothed(width=w, rtol=1e-6, atol=1e-3 * w)) for w in WIDTHS
    ],
    "smoothed, tanh, Kvaerno5": [
        (
            f"width {w:g}",
            jfric.Smoothed(width=w, method="kvaerno5", rtol=1e-6, atol=1e-3 * w, max_steps=FEW),
        )
        for w in WIDTHS
    ],
}
COLOURS = (BLUE, GREEN, RED, GOLD, PURPLE)
REPEATS = 7


def main() -> None:
    out = folder(__doc__)
    made, axes = figure(12.0, 4.8, 1, len(CASES), sharey=True)
    for axis, (name, positions) in zip(axes, CASES.items(), strict=True):
        problem, title = shipped_problem(name), name.upper()
        ts, exact = jnp.array(list(positions)), np.array(list(positions.values()))
        rows = []
        for (family, settings), colour in zip(FAMILIES.items(), COLOURS, strict=False):
            points = []
            for setting, solver in settings:
                solution, seconds = _timed(problem, solver, ts)
                error = np.abs(np.asarray(solution.q) - exact).max() / np.abs(exact).max()
                if int(solution.status) == jfric.Status.OK:
                    points.append((1e3 * seconds, max(float(error), 1e-16)))
                rows.append(
                    [f"{family}, {setting}", f"{error:.1e}", f"{1e3 * seconds:.3f}",
                     str(int(solution.steps)), solution.outcome()]
                )  # fmt: skip
            if not points:
                continue
            axis.loglog(*np.array(points).T, "o-", color=colour, ms=5, label=family)
        print_table(title, ["", "error", "time [ms]", "steps", "status"], rows)
        axis.set(xlabel="time for one trajectory [ms]", title=title)
    axes[0].set_ylabel("largest error / largest value")
    axes[1].legend(frameon=False, fontsize=8, loc="lower right")
    save(made, out / "work_precision.png", "Error against cost")


def _timed(problem, solver, ts):
    """Solution, and the shortest time of a warm run [s]."""

    def call():
        return jax.block_until_ready(run(problem, ts))

    run = jax.jit(lambda problem, ts: jfric.simulate(problem, solver, ts=ts))
    solution = call()
    best = np.inf
    for _ in range(REPEATS):
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return solution, best


if __name__ == "__main__":
    main()
