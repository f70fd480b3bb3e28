"""Janovsky 2015, Example 4.2, contact and no contact: Figures 8 and 9, with both impact laws.

The paper does not define the effect of an impact on the tangential velocity. "none" is its literal
reading (no tangential impulse), "coulomb" is Moreau's law. The paper's symbols: x1 = u_nu <= 0,
x2 = u_nu', x3 = u_tau, x4 = u_tau', lambda_nu <= 0; those of jfric are g_N = -u_nu and
lambda_N = -lambda_nu.

    python experiments/janovsky_4_2.py [--out results/figures]
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from common import GREY, figure, folder, pieces, print_table, save
from common import problem as shipped_problem

import jfric

BLACK = "#111111"
#: Quantity by impact law: closed form.
EXPECTED = {
    "none": {"changes of mode": 81, "impacts": 10, "event 8": 35.29427762730405,
             "event 9": 36.82523287041375, "x3(200)": 0.60213982059026,
             "x4(300)": 0.64103898513581},
    "coulomb": {"changes of mode": 74, "impacts": 10, "event 8": 35.29427762730405,
                "event 9": 36.91163182230757, "x3(200)": 0.56679643990937,
                "x4(300)": 0.53576742503434},
}  # fmt: skip


def main() -> None:
    out = folder(__doc__)
    solutions = {law: _simulate(law) for law in EXPECTED}
    for law, solution in solutions.items():
        found = _values(solution)
        rows = [
            [name, f"{value:.14g}", f"{found[name]:.14g}"] for name, value in EXPECTED[law].items()
        ]
        print_table(f"Janovsky, Example 4.2, impact law {law}", ["", "closed form", "jfric"], rows)
    draw_phases(solutions, out / "janovsky_figure_8.png")
    draw_forces(solutions, out / "janovsky_figure_9.png")


def _simulate(law: str) -> jfric.Solution:
    problem = shipped_problem(f"janovsky_4_2_{law}")
    end = float(problem.resolved().time.end)
    ts = np.union1d(np.linspace(0.0, end, 15001), [200.0, 300.0])
    return jfric.simulate(problem, ts=jnp.array(ts))


def _values(solution: jfric.Solution) -> dict[str, float]:
    ts, log = np.asarray(solution.ts), solution.events
    count = int(log.count)
    return {
        "changes of mode": count,
        "impacts": int(np.asarray(log.impact)[:count].sum()),
        "event 8": float(log.time[7]),
        "event 9": float(log.time[8]),
        "x3(200)": float(solution.q[np.searchsorted(ts, 200.0), 1]),
        "x4(300)": float(solution.v[np.searchsorted(ts, 300.0), 1]),
    }


def _colour(label: str) -> str:
    return GREY if label == "open" else BLACK


def _legend(axis) -> None:
    axis.plot([], [], color=BLACK, label="contact")
    axis.plot([], [], color=GREY, label="no contact")
    axis.legend(frameon=False, fontsize=8, loc="best")


def draw_phases(solutions: dict[str, jfric.Solution], path) -> None:
    """Draw figure 8: x1 over x2 with impacts at x1 = 0, and x3 over x4."""
    made, axes = figure(11.0, 9.0, 2, 2)
    for (left, right), (law, solution) in zip(axes, solutions.items(), strict=True):
        for name, axis in (("un", left), ("ut", right)):
            # An impact is a jump in velocity at x1 = 0.
            for piece in pieces(solution, name):
                axis.plot(piece.v, piece.q, color=_colour(piece.label), lw=0.9)
        for row in solution.event_table():
            if row["impact"]:
                left.plot([row["v_before"][0], row["v"][0]], [0, 0], ":", color=BLACK, lw=1.0)
                ends = [row["v_before"][1], row["v"][1]]
                right.plot(ends, [row["q"][1]] * 2, ":", color=BLACK, lw=1.0)
        left.plot(0.0, 0.0, "o", color=BLACK, ms=5, zorder=4)
        left.set(xlabel="$x_2$", ylabel="$x_1$", title=f"impact law {law}; dot: contact")
        right.set(xlabel="$x_4$", ylabel="$x_3$", title="dotted: impacts")
        _legend(right)
    save(made, path, "Example 4.2, $f_\\nu = 0.5$ (Figure 8)")


def draw_forces(solutions: dict[str, jfric.Solution], path) -> None:
    """Draw figure 9: lambda_nu over time, and lambda_tau over time enlarged."""
    made, axes = figure(12.0, 8.0, 2, 2)
    for (left, right), (law, solution) in zip(axes, solutions.items(), strict=True):
        ts = np.asarray(solution.ts)
        is_open = np.asarray(solution.mode)[:, 0] == jfric.Mode.OPEN
        for axis, values in (
            (left, -np.asarray(solution.lambda_n)[:, 0]),
            (right, np.asarray(solution.lambda_t)[:, 0]),
        ):
            axis.plot(ts, np.where(is_open, values, np.nan), color=GREY, lw=1.6)
            axis.plot(ts, np.where(is_open, np.nan, values), color=BLACK, lw=1.0)
        left.set(xlabel="$t$", ylabel="$\\lambda_\\nu$", xlim=(0, ts[-1]))
        left.set_title(f"impact law {law}", fontsize=10)
        right.set(xlabel="$t$ (zoom)", ylabel="$\\lambda_\\tau$", xlim=(0, 80))
        _legend(right)
    save(made, path, "Example 4.2, $f_\\nu = 0.5$ (Figure 9)")


if __name__ == "__main__":
    main()
