"""Janovsky 2015, Example 4.1, contact for all time: Figures 6 and 7.

The paper's symbols: x3 = u_tau, x4 = u_tau', and lambda_nu <= 0 in contact; its lambda_nu is minus
the normal force of jfric.

    python experiments/janovsky_4_1.py [--out results/figures]
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from common import BLUE, RED, figure, folder, pieces, print_table, save
from common import problem as shipped_problem

import jfric

#: Times of some changes of mode, and (x3, x4) at some times, from the closed form.
EVENTS = {1: 0.1945047989759878, 2: 3.390419461374198, 5: 26.00770085258152, 15: 84.5907854355275}
STATES = {5.0: (0.08517875010072, 0.11812600063513), 100.0: (-0.57815461027678, -0.27074072032711)}
COLOURS = {"stick": RED, "slip+": BLUE, "slip-": BLUE}


def main() -> None:
    out = folder(__doc__)
    problem = shipped_problem("janovsky_4_1")
    end = float(problem.resolved().time.end)
    ts = np.union1d(np.linspace(0.0, end, 15001), list(STATES))
    solution = jfric.simulate(problem, ts=jnp.array(ts))
    events = solution.event_table()
    rows = [
        [f"time of event {i} ({events[i - 1]['from']} to {events[i - 1]['to']})", f"{t:.13f}",
         f"{events[i - 1]['time']:.13f}"]
        for i, t in EVENTS.items()
    ]  # fmt: skip
    for t, state in STATES.items():
        at = int(np.searchsorted(ts, t))
        rows.append([f"x3({t:g})", f"{state[0]:.13f}", f"{solution.q[at, 1]:.13f}"])
        rows.append([f"x4({t:g})", f"{state[1]:.13f}", f"{solution.v[at, 1]:.13f}"])
    rows.append(["changes of mode", "60", str(int(solution.events.count))])
    print_table("Janovsky, Example 4.1", ["", "closed form", "jfric"], rows)
    draw_motion(solution, out / "janovsky_figure_6.png")
    draw_forces(solution, out / "janovsky_figure_7.png")


def draw_motion(solution: jfric.Solution, path) -> None:
    """Draw figure 6: x4 over x3, and x4 over time. Stick is where x4 = 0."""
    made, (left, right) = figure(12.0, 4.8, 1, 2)
    for piece in pieces(solution, "ut"):
        colour = COLOURS[piece.label]
        if piece.label == "stick":
            left.plot(piece.q[:1], piece.v[:1], "o", color=colour, ms=4, zorder=4)
        else:
            left.plot(piece.q, piece.v, color=colour, lw=1.0)
        right.plot(piece.t, piece.v, color=colour, lw=1.6 if piece.label == "stick" else 1.0)
    left.set(xlabel="$x_3$", ylabel="$x_4$")
    right.set(xlabel="$t$", ylabel="$x_4$", xlim=(0, float(solution.ts[-1])))
    right.plot([], [], color=RED, label="contact-stick ($x_4 = 0$)")
    right.plot([], [], color=BLUE, label="contact-slip ($x_4 \\neq 0$)")
    right.legend(frameon=False, fontsize=8, loc="lower right", bbox_to_anchor=(1, 1), ncols=2)
    save(made, path, "Example 4.1, $f_\\nu = 1.3$ (Figure 6)")


def draw_forces(solution: jfric.Solution, path) -> None:
    """Draw figure 7: lambda_nu over time, and lambda_tau over time enlarged."""
    made, (left, right) = figure(12.0, 4.8, 1, 2)
    ts = np.asarray(solution.ts)
    left.plot(ts, -np.asarray(solution.lambda_n)[:, 0], color=BLUE, lw=1.0)
    left.set(xlabel="$t$", ylabel="$\\lambda_\\nu$", xlim=(0, ts[-1]))
    left.axhline(0.0, color="#000000", lw=0.8)
    zoom = ts <= 90.0
    mode = np.asarray(solution.mode)[:, 0]
    force = np.asarray(solution.lambda_t)[:, 0]
    for label, colour, width in (("stick", RED, 1.8), ("slip", BLUE, 1.1)):
        shown = (mode == jfric.Mode.STICK) == (label == "stick")
        right.plot(
            ts[zoom], np.where(shown, force, np.nan)[zoom], color=colour, lw=width,
            label=f"contact-{label}",
        )  # fmt: skip
    right.set(xlabel="$t$ (zoom)", ylabel="$\\lambda_\\tau$", xlim=(0, 90))
    right.legend(frameon=False, fontsize=8, loc="lower right", bbox_to_anchor=(1, 1), ncols=2)
    save(made, path, "Example 4.1, $f_\\nu = 1.3$ (Figure 7)")


if __name__ == "__main__":
    main()
