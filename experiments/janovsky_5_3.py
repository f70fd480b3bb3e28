"""Janovsky 2015, Example 5.3, time stepping with dt = 0.001: Figures 10 and 11, switch counts.

The midpoint rule as published lets the velocity of a sticking contact change its sign in every
step, and the modes chatter; the stabilised rule sets it to zero. The paper's symbols: x3 = u_tau,
x4 = u_tau'.

    python experiments/janovsky_5_3.py [--out results/figures]
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from common import BLUE, RED, figure, folder, print_table, save
from common import problem as shipped_problem

import jfric

DT = 1e-3
#: Displacements x3 at some times, from the closed form of Example 4.1.
STATES = {10.0: 0.33939342027690417, 100.0: -0.57815461027678, 300.0: -0.45787500187309704}


def main() -> None:
    out = folder(__doc__)
    problem = shipped_problem("janovsky_4_1")
    # Every step up to t = 9 and in a part of the limit cycle, and the times above.
    start, cycle = np.arange(0.0, 9.0, DT), np.arange(250.0, 350.0, 10 * DT)
    ts = np.union1d(np.union1d(start, cycle), list(STATES))
    solvers = {
        "plain": jfric.Midpoint(DT, max_events=30_000),
        "stabilised": jfric.StabilisedMidpoint(DT),
        "event-driven": jfric.EventDriven(),
    }
    solutions = {k: jfric.simulate(problem, s, ts=jnp.asarray(ts)) for k, s in solvers.items()}
    rows = [
        ["changes of mode", "about 23,000, 60, 60"]
        + [str(int(s.events.count)) for s in solutions.values()],
        ["steps", "", *(str(int(s.steps)) for s in solutions.values())],
    ]
    for t, x3 in STATES.items():
        at = int(np.searchsorted(ts, t))
        values = [f"{float(s.q[at, 1]) - x3:.1e}" for s in solutions.values()]
        rows.append([f"error of x3({t:g})", "", *values])
    print_table("Janovsky, Example 5.3, dt = 0.001", ["", "expected", *solutions], rows)
    draw_plain(ts, solutions["plain"], out / "janovsky_figure_10.png")
    draw_stabilised(ts, solutions["stabilised"], out / "janovsky_figure_11.png")


def _split(ts, solution, first, last):
    """Times, x4, and whether the contact sticks, between two times."""
    part = (ts >= first) & (ts <= last)
    mode = np.asarray(solution.mode)[part, 0]
    return ts[part], np.asarray(solution.v)[part, 1], mode == jfric.Mode.STICK


def draw_plain(ts, solution: jfric.Solution, path) -> None:
    """Draw figure 10: x4 over time by the midpoint rule, and enlarged where it should be zero."""
    made, (left, right) = figure(12.0, 4.8, 1, 2)
    t, x4, _ = _split(ts, solution, 0.0, 8.0)
    left.plot(t, x4, color=BLUE, lw=1.0)
    left.set(xlabel="$t$", ylabel="$x_4$", xlim=(0, 8))
    t, x4, sticks = _split(ts, solution, 0.19, 0.205)
    right.plot(t[~sticks], x4[~sticks], "o", color=BLUE, ms=4, label="contact-slip")
    right.plot(t[sticks], x4[sticks], "o", color=RED, ms=4, label="contact-stick")
    right.axhline(0.0, color="#000000", lw=0.8)
    right.set(xlabel="$t$ (zoom)", ylabel="$x_4$", ylim=(-1.2e-3, 3e-3))
    right.legend(frameon=False, fontsize=8)
    save(made, path, "Example 5.3, midpoint rule, dt = 0.001 (Figure 10)")


def draw_stabilised(ts, solution: jfric.Solution, path) -> None:
    """Draw figure 11: x4 over time by the stabilised rule, first stages and limit cycle."""
    made, (left, right) = figure(12.0, 4.8, 1, 2)
    for axis, first, last in ((left, 0.0, 9.0), (right, 250.0, 350.0)):
        t, x4, sticks = _split(ts, solution, first, last)
        axis.plot(t, np.where(sticks, np.nan, x4), "--", color=BLUE, lw=1.1, label="contact-slip")
        axis.plot(t, np.where(sticks, x4, np.nan), color=RED, lw=1.8, label="contact-stick")
        axis.set(xlabel="$t$", ylabel="$x_4$", xlim=(first, last))
    left.legend(frameon=False, fontsize=8, loc="upper left")
    save(made, path, "Example 5.3, stabilised midpoint rule, dt = 0.001 (Figure 11)")


if __name__ == "__main__":
    main()
