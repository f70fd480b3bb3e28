"""Verification example VE0116, vibrations with Coulomb friction: Figure 2 and the results tables.

The source compares its analytical solution with RFEM 5 (explicit, implicit Newmark) and RSTAB 8
(explicit). The script computes these numbers with all solvers of jfric, and draws the figure with
the published points. The source's last ratio of RSTAB 8 for u(1) is a misprint: 138.642/138.930 =
0.998, printed 1.000.

    python experiments/ve0116.py [--out results/figures]
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from common import (
    BLUE,
    GOLD,
    GREEN,
    PURPLE,
    RED,
    figure,
    folder,
    phase_legend,
    pieces,
    print_table,
    save,
    shade,
)
from common import problem as shipped_problem
from solvers import SOLVERS

import jfric

TIMES = (1.0, 2.0, 4.0)
#: Published displacements in mm at 1 s, 2 s and 4 s.
PUBLISHED = {
    "analytical solution": (138.930, 280.596, 320.000),
    "RFEM 5, explicit": (143.780, 281.484, 309.011),
    "RFEM 5, implicit Newmark": (134.923, 279.921, 314.470),
    "RSTAB 8, explicit": (138.642, 280.097, 320.000),
}
MARKS = {
    "RFEM 5, explicit": ("^", RED),
    "RFEM 5, implicit Newmark": ("v", GREEN),
    "RSTAB 8, explicit": ("s", GOLD),
}


def main() -> None:
    out = folder(__doc__)
    problem = shipped_problem("ve0116")
    rows = [_row(name, values) for name, values in PUBLISHED.items()]
    for name, solver in SOLVERS.items():
        found = jfric.simulate(problem, solver, ts=jnp.array(TIMES))
        rows.append(_row(f"jfric, {name}", 1e3 * np.asarray(found.q)[:, 0], digits=6))
    header = ["", "u(1) [mm]", "ratio", "u(2) [mm]", "ratio", "u_res [mm]", "ratio"]
    print_table("VE0116: deflection, and its ratio to the published solution", header, rows)
    draw(problem, out / "ve0116_figure_2.png")


def _row(name: str, values, digits: int = 3) -> list[str]:
    cells = [name]
    for value, reference in zip(values, PUBLISHED["analytical solution"], strict=True):
        cells += [f"{value:.{digits}f}", f"{value / reference:.3f}"]
    return cells


def draw(problem: jfric.Problem, path) -> None:
    """Draw figure 2 of the source, and its end enlarged: stick, and creep of smoothed laws."""
    ts = jnp.linspace(0.0, 4.0, 2001)
    exact = jfric.simulate(problem, ts=ts)
    made, (left, right) = figure(12.0, 4.6, 1, 2, width_ratios=(1.6, 1.0))
    shade(left, exact)
    for piece in pieces(exact, "u"):
        left.plot(piece.t, 1e3 * piece.q, color=BLUE, lw=1.6)
    turning = exact.event_table()
    left.plot(
        [row["time"] for row in turning],
        [1e3 * row["q"][0] for row in turning],
        "o", color=BLUE, ms=4, mfc="white", label="turning points and stop (exact)",
    )  # fmt: skip
    for name, (mark, colour) in MARKS.items():
        left.plot(TIMES, PUBLISHED[name], mark, color=colour, ms=7, mfc="none", mew=1.4, label=name)
    left.set(xlim=(0, 4.05), xlabel="time [s]", ylabel="deflection u [mm]")
    phase_legend(left, ("slip+", "slip-", "stick"), loc="upper right", ncols=2)
    shade(right, exact)
    right.plot(ts, 1e3 * exact.q[:, 0], color=BLUE, lw=1.8, label="exact: sticks at 320 mm")
    for width, colour in ((1e-1, RED), (1e-2, PURPLE), (1e-3, GREEN)):
        smoothed = jfric.simulate(problem, jfric.Smoothed(width=width), ts=ts)
        right.plot(
            ts, 1e3 * smoothed.q[:, 0], "--", color=colour, lw=1.3, label=f"tanh, {width:g} m/s"
        )
    right.set(xlim=(2.6, 4.0), ylim=(280, 330), xlabel="time [s]")
    right.set_title("the stop: smoothed laws creep", fontsize=9, loc="left")
    right.legend(frameon=False, fontsize=8, loc="lower right")
    save(made, path, "VE0116: vibrations with Coulomb friction")


if __name__ == "__main__":
    main()
