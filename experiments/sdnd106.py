"""code_aster SDND106, two masses with dry friction: phases, transition times and positions.

The first mass sticks until the spring carries mu_S F_N, slips under mu_D F_N, and sticks again
after the force on the second mass has been switched off. The script compares published values and
those of code_aster's own (penalised) computation with those of jfric. The source says "0.34 s", but
its values are those at 0.339965 s.

    python experiments/sdnd106.py [--out results/figures]
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from common import BLUE, GREY, RED, figure, folder, phase_legend, pieces, print_table, save, shade
from common import problem as shipped_problem
from solvers import SOLVERS

import jfric

#: Quantity, exact value, published reference, code_aster (penalised).
TABLE = (
    ("t1, first slip [s]", 0.03512407365520363, 0.03512, 0.03520),
    ("t3, stick again [s]", 0.3149232754474865, 0.31492, 0.31500),
    ("x2(0.02) [m]", 0.1122103126407706, 0.11221, 0.11221),
    ("x1(0.15) [m]", 1.353337660892898, 1.35332, 1.35329),
    ("x2(0.15) [m]", 1.807532466175952, 1.80751, 1.80751),
    ("x2(0.339965) [m]", 3.968131226704544, 3.96813, 3.97011),
    ("x1 at the end [m]", 3.955605773497603, float("nan"), float("nan")),
)
TIMES = (0.02, 0.15, 0.339965, 0.35)


def main() -> None:
    out = folder(__doc__)
    problem = shipped_problem("sdnd106")
    header = ["", "closed form", "published", "code_aster"]
    rows = [
        [name, f"{exact:.10f}", *("-" if np.isnan(x) else f"{x:.5f}" for x in rest)]
        for name, exact, *rest in TABLE
    ]
    for name, solver in SOLVERS.items():
        header.append(name)
        for row, value in zip(rows, _values(problem, solver), strict=True):
            row.append("-" if np.isnan(value) else f"{value:.10f}")
    print_table("SDND106: transition times and positions", header, rows)
    draw(problem, out / "sdnd106.png")


def _values(problem: jfric.Problem, solver) -> list[float]:
    found = jfric.simulate(problem, solver, ts=jnp.array(TIMES))
    x1, x2 = np.asarray(found.q).T
    times = np.asarray(found.events.time)[: int(found.events.count)]
    # A smoothed law has no changes of mode.
    t1, t3 = times[:2] if times.size >= 2 else (np.nan, np.nan)
    return [t1, t3, x2[0], x1[1], x2[1], x2[2], x1[3]]


def draw(problem: jfric.Problem, path) -> None:
    """Draw positions, velocities and the friction force, with the phases of the first mass."""
    ts = jnp.linspace(0.0, 0.35, 1401)
    solution = jfric.simulate(problem, ts=ts)
    made, axes = figure(10.0, 7.5, 3, 1, sharex=True)
    for axis in axes:
        shade(axis, solution)
        axis.axvline(0.2, color=GREY, lw=1.0, ls="--", zorder=1)
    for name, colour, label in (("x1", BLUE, "first mass"), ("x2", RED, "second mass")):
        for number, piece in enumerate(pieces(solution, name)):
            one = {"label": label} if number == 0 else {}
            axes[0].plot(piece.t, piece.q, color=colour, lw=1.5, **one)
            axes[1].plot(piece.t, piece.v, color=colour, lw=1.5, **one)
    axes[2].plot(ts, 1e-3 * solution.lambda_t[:, 0], color=BLUE, lw=1.5)
    for row in solution.event_table():
        axes[0].plot(row["time"], row["q"][0], "o", color=BLUE, ms=5, mfc="white", zorder=5)
    axes[0].set_ylabel("position [m]")
    axes[1].set_ylabel("velocity [m/s]")
    axes[2].set(
        ylabel="friction force [kN]", xlabel="time [s]; dashed: the force is switched off",
        xlim=(0, 0.35),
    )  # fmt: skip
    phase_legend(axes[0], ("stick", "slip+"), loc="upper left")
    save(made, path, "SDND106: two masses, stick and slip")


if __name__ == "__main__":
    main()
