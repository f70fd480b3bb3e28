"""Dynamics of the reduced structure: event-driven against Moreau-Jean.

The two blocks of ``two_blocks.py``, reduced to their contact nodes and a few interior modes (Craig
and Bampton), pressed together and shaken harmonically below their first resonance, so that contact
nodes slip and lift. The script prints differences between the solvers before and after the first
slip and the first lift-off as the step shrinks; energies over ten periods of the load; and cost
over the number of contact nodes, with and without mass redistribution.

    python experiments/dynamic_structure.py
    python experiments/dynamic_structure.py --nodes 5 10 20 30
"""

import argparse
import time

import common
import jax
import jax.numpy as jnp
import numpy as np
from two_blocks import structure

import jfric
from jfric.numerics.compilation import compile_quickly

compile_quickly()

MU, MODES, DAMPING, AMPLITUDE = 0.3, 6, 2e-5, 1.2


def shaken(nodes: int, redistribute: bool, periods: float):
    """The reduced structure, its problem and the period of the load [s]."""
    blocks = structure(nodes, 7)
    reduced = jfric.reduce_structure(blocks, MODES, mass_redistribution=redistribute)
    # Both blocks at rest under the pressure alone, as if they were glued.
    r = 2 * nodes
    stiffness = np.diag(np.asarray(reduced.K))[r:]
    start = np.concatenate([np.zeros(r), np.asarray(reduced.F)[0, r:] / stiffness])
    omega = 0.7 * _lowest(reduced)
    problem = reduced.problem(
        MU,
        [1.0, jfric.Harmonic(AMPLITUDE, omega)],
        time=periods * 2 * np.pi / omega,
        damping=DAMPING,
        initial=dict(zip(reduced.axes, start, strict=True)),
    )
    return reduced, problem, 2 * np.pi / omega


def _lowest(reduced: jfric.ReducedStructure) -> float:
    """Lowest frequency with all contacts open [rad/s]."""
    values = np.linalg.eigvals(np.linalg.solve(np.asarray(reduced.M), np.asarray(reduced.K)))
    return float(np.sqrt(values.real.min()))


def energy(reduced: jfric.ReducedStructure, solution) -> np.ndarray:
    """Kinetic and elastic energy at the outputs [J]."""
    q, v = np.asarray(solution.q), np.asarray(solution.v)
    M, K = np.asarray(reduced.M), np.asarray(reduced.K)
    return 0.5 * (np.einsum("ti,ij,tj->t", v, M, v) + np.einsum("ti,ij,tj->t", q, K, q))


def timed(problem, solver, ts=None):
    """The second of two runs, and its time [s]."""
    for _ in range(2):
        begun = time.perf_counter()
        solution = jax.block_until_ready(jfric.simulate(problem, solver, ts=ts))
        seconds = time.perf_counter() - begun
    return solution, seconds


EXACT = jfric.EventDriven(max_steps=400_000, max_events=100_000)


def convergence() -> None:
    """Print differences up to and through the first slip and the first lift-off."""
    reduced, problem, period = shaken(5, False, 10.0)
    ts = jnp.linspace(0.0, 10.0 * period, 2001)
    exact, _ = timed(problem, EXACT, ts)
    rows = exact.event_table()
    slip = next(row["time"] for row in rows if row["from"] == "stick")
    lift = next((row["time"] for row in rows if row["to"] == "open"), np.inf)
    impacts = sum(row["impact"] for row in rows)
    print(
        f"5 contacts, {len(reduced.axes)} degrees of freedom, 10 periods: {exact.outcome()}, "
        f"{len(rows)} changes of mode, {impacts} impacts; first slip at {slip / period:.4f} and "
        f"first lift-off at {lift / period:.4f} periods"
    )
    windows = {
        "before the first slip": (0.0, slip),
        "through it": (slip, min(slip + 0.1 * period, lift)),
        "before the first lift-off": (slip, lift),
        "through it ": (lift, lift + 0.1 * period),
        "ten periods": (0.0, 10.0 * period),
    }
    scale, reference = np.nanmax(np.abs(np.asarray(exact.q))), energy(reduced, exact)
    table = []
    for steps in (400, 1600, 6400, 25600):
        solver = jfric.MoreauJean(dt=period / steps, max_events=200_000)
        found, _ = timed(problem, solver, ts)
        error = np.max(np.abs(np.asarray(found.q) - np.asarray(exact.q)), axis=1) / scale
        cells = []
        for low, high in windows.values():
            inside = (np.asarray(ts) >= low) & (np.asarray(ts) <= high)
            cells.append(f"{error[inside].max():.1e}" if inside.any() else "-")
        off = np.max(np.abs(energy(reduced, found) - reference)) / np.max(reference)
        table.append((f"{steps}", *cells, f"{off:.1e}"))
    common.print_table(
        "Moreau-Jean against event-driven: largest difference of positions, relative",
        ("steps per period", *windows, "energy, ten periods"),
        table,
    )


def cost(nodes: list[int]) -> None:
    """Print the time of two periods over the number of contacts."""
    table = []
    for count in nodes:
        for redistribute in (False, True):
            _, problem, period = shaken(count, redistribute, 2.0)
            exact, seconds = timed(problem, EXACT)
            stepped, step_seconds = timed(
                problem, jfric.MoreauJean(dt=period / 2000, max_events=200_000)
            )
            off = np.max(np.abs(np.asarray(stepped.final.q) - np.asarray(exact.final.q)))
            table.append(
                (
                    f"{count}",
                    "yes" if redistribute else "no",
                    f"{int(exact.events.count)}",
                    f"{int(exact.steps)}",
                    f"{seconds:.2f}",
                    f"{step_seconds:.2f}",
                    f"{off / np.max(np.abs(np.asarray(exact.final.q))):.0e}",
                    exact.outcome(),
                )
            )
            print("  ".join(table[-1]), flush=True)
    common.print_table(
        "Two periods; Moreau-Jean with 2,000 steps per period",
        (
            "contacts",
            "redistributed",
            "changes of mode",
            "passes",
            "event-driven [s]",
            "Moreau-Jean [s]",
            "difference",
            "event-driven",
        ),
        table,
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, nargs="*", default=[5, 10, 20, 30])
    arguments = parser.parse_args()
    convergence()
    cost(arguments.nodes)


if __name__ == "__main__":
    main()
