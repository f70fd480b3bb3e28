"""Verification example VE0119, spring with clearance: Figure 4 and the tables at 0.25 s.

The printed reference solution itself has an error of 0.4 % (1.5 % in velocity): it comes from a
Runge-Kutta integration with loose tolerance. The exact values are printed next to it.

    python experiments/ve0119.py [--out results/figures]
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from common import BLUE, GOLD, GREEN, GREY, PURPLE, RED, figure, folder, print_table, save
from common import problem as shipped_problem
from solvers import SOLVERS

import jfric

#: The script is short enough to be run for the site.
GALLERY = True
#: Deflection [mm], velocity [m/s] and acceleration [m/s^2] at 0.25 s.
PUBLISHED = {
    "published reference": (-20.434, -0.098, 15.434),
    "RFEM 5, explicit": (-20.486, -0.097, 15.485),
    "RFEM 5, implicit Newmark": (-20.432, -0.106, 15.432),
    "RSTAB 8, explicit": (-20.474, -0.097, 15.473),
}
EXACT = (-20.51402009003516, -0.09651518349972381, 15.51402009003516)
MARKS = (("D", PURPLE), ("^", RED), ("v", GREEN), ("s", GOLD))
TIME = 0.25


def main() -> None:
    out = folder(__doc__)
    problem = shipped_problem("ve0119")
    rows = [_row(name, values, 3) for name, values in PUBLISHED.items()]
    rows.append(_row("closed form", EXACT, 9))
    for name, solver in SOLVERS.items():
        found = jfric.simulate(problem, solver, ts=jnp.array([TIME]))
        values = (1e3 * float(found.q[0, 0]), float(found.v[0, 0]), float(found.a[0, 0]))
        rows.append(_row(f"jfric, {name}", values, 9))
    header = ["", "u [mm]", "ratio", "v [m/s]", "ratio", "a [m/s^2]", "ratio"]
    print_table("VE0119 at 0.25 s, and the ratio to the closed form", header, rows)
    print("No friction: the smoothed solver integrates the same gap spring, whatever its width.")
    draw(problem, out / "ve0119_figure_4.png")


def _row(name: str, values, digits: int) -> list[str]:
    cells = [name]
    for value, reference in zip(values, EXACT, strict=True):
        cells += [f"{value:.{digits}f}", f"{value / reference:.4f}"]
    return cells


def draw(problem: jfric.Problem, path) -> None:
    """Draw figure 4 of the source: deflection, velocity and acceleration over time."""
    ts = jnp.linspace(0.0, 0.5, 2001)
    solution = jfric.simulate(problem, ts=ts)
    made, axes = figure(10.0, 7.0, 3, 1, sharex=True)
    curves = (1e3 * solution.q[:, 0], solution.v[:, 0], solution.a[:, 0])
    labels = ("deflection [mm]", "velocity [m/s]", "acceleration [m/s²]")
    for i, (axis, curve, label) in enumerate(zip(axes, curves, labels, strict=True)):
        axis.plot(ts, curve, color=BLUE, lw=1.6, label="exact")
        for (name, values), (mark, colour) in zip(PUBLISHED.items(), MARKS, strict=True):
            axis.plot(TIME, values[i], mark, color=colour, ms=6, mfc="none", label=name)
        axis.set_ylabel(label)
    for touch in (-5.0, 5.0):
        axes[0].axhline(touch, color=GREY, lw=0.8, ls=":")
    count = min(int(solution.events.count), solution.events.time.shape[0])
    for time in np.asarray(solution.events.time)[:count]:
        if time <= float(ts[-1]):
            for axis in axes:
                axis.axvline(time, color=GREY, lw=0.6, alpha=0.6, zorder=0)
    axes[0].legend(frameon=False, fontsize=8, ncols=5, loc="lower left", bbox_to_anchor=(0, 1.0))
    axes[2].set(xlim=(0, float(ts[-1])), xlabel="time [s]; grey lines: touch and release")
    save(made, path, "VE0119: spring with clearance")


if __name__ == "__main__":
    main()
