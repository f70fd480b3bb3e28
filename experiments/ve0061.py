"""Verification example VE0061, cyclically loaded system with friction: the load-displacement loop.

The source prints k = 0.600 kN/m, but its answers of 0.100 m and 0.050 m need 6.000 kN/m; both are
computed. The loop is drawn for the load of the source, applied and removed, and then reversed:
the path is closed from the second cycle on, and its area is the work of friction.

    python experiments/ve0061.py [--out results/figures]
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from common import BLUE, GREY, RED, figure, folder, print_table, save
from common import problem as shipped_problem

import jfric

#: The script is short enough to be run for the site.
GALLERY = True


def main() -> None:
    out = folder(__doc__)
    problem = shipped_problem("ve0061")
    rows = []
    for k, published in ((6000.0, ("0.100", "0.050")), (600.0, ("not printed", "not printed"))):
        changed = jfric.set_parameters(problem, {"spring.k": k})
        found = jfric.simulate(changed, jfric.QuasiStatic(), ts=jnp.array([1.0, 2.0]))
        rows += [
            [f"k = {k / 1e3:g} kN/m, load step {i + 1}", f"{u:.15g}", printed]
            for i, (u, printed) in enumerate(zip(found.q[:, 0], published, strict=True))
        ]
    print_table("VE0061: movement of the node [m]", ["", "jfric", "published"], rows)
    dynamic = _suddenly(problem)
    print(f"The force removed suddenly, with a mass of 100 kg: rests at {dynamic:z.6f} m instead.")
    draw(problem, out / "ve0061_loop.png")


def _suddenly(problem: jfric.Problem) -> float:
    """Rest position if the force is removed suddenly, so that inertia plays a role."""
    elements = dict(problem.elements)
    elements["mass"] = jfric.Mass("u", 100.0)
    elements.pop("load")
    start = {"u": jfric.InitialState(q=0.1)}
    released = jfric.Problem(problem.dofs, elements, time=5.0, initial=start)
    return float(jfric.simulate(released).final.q[0])


def draw(problem: jfric.Problem, path) -> None:
    """Draw load over displacement, and displacement over the load history."""
    peak = 900.0
    history = jfric.PiecewiseLinear(
        [0.0, 1.0, 2.0, 3.0, 4.0, 5.0], [0.0, peak, 0.0, -peak, 0.0, peak]
    )
    elements = {**problem.elements, "load": jfric.Load("u", history)}
    cycles = jfric.Problem(problem.dofs, elements, time=5.0)
    ts = jnp.linspace(0.0, 5.0, 1001)
    solution = jfric.simulate(cycles, jfric.QuasiStatic(), ts=ts)
    load = np.array([float(history(t)) for t in ts])
    u = 1e3 * np.asarray(solution.q)[:, 0]
    source = np.asarray(ts) <= 2.0
    made, (left, right) = figure(11.0, 4.6, 1, 2)
    left.plot(u, load, color=GREY, lw=1.2, label="load reversed and applied again")
    left.plot(u[source], load[source], color=BLUE, lw=2.2, label="loaded and unloaded (source)")
    left.plot([100.0, 50.0], [peak, 0.0], "o", color=RED, ms=6, label="published")
    left.set(xlabel="displacement u [mm]", ylabel="load F [N]")
    left.legend(frameon=False, fontsize=8, loc="upper left")
    events = solution.event_table()
    right.plot(ts, u, color=BLUE, lw=1.6, label="displacement [mm]")
    right.plot(ts, load / 10.0, color=GREY, lw=1.2, ls="--", label="load [10 N]")
    right.plot(
        [row["time"] for row in events],
        [1e3 * row["q"][0] for row in events],
        "o", color=BLUE, ms=4, mfc="white", label="stick and slip change",
    )  # fmt: skip
    right.set(xlabel="load step", xlim=(0, 5))
    right.legend(frameon=False, fontsize=8, loc="lower left")
    save(made, path, "VE0061: cyclically loaded system with friction")


if __name__ == "__main__":
    main()
