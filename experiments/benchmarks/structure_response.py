"""A shaken joint of many contacts: its frequency response, compared with time stepping.

Two elastic blocks, pressed together over ten contact nodes, reduced to these and twenty interior
modes (Craig and Bampton), and sheared harmonically through the first resonance so that nodes stick
and slip in turn: forty degrees of freedom, ten contacts.

1. The orbits at all frequencies in one call of ``jfric.periodic_orbit``: Newton's method on the
   event-driven motion, from the state after a few periods, with multipliers.
2. Moreau-Jean from the same start to steady state, at some of these frequencies, side by side: the
   distance of a state from that of the period before, and from the orbit.

Times are in seconds, and in seconds of processor time, which other work on the machine does not
affect.

    python experiments/benchmarks/structure_response.py [--frequencies 200] [--stepped 8]
        [--again] [--json]
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np
from periodic import CORES
from single_trajectory import machine

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

#: Friction, damping C = DAMPING K [s], amplitude as a part of the shear load.
MU, DAMPING, AMPLITUDE = 0.3, 1e-4, 0.2
#: Rows of nodes in each block, and frequencies as parts of the first one of the glued blocks.
ROWS, LOW, HIGH = 7, 0.5, 1.3
#: Periods before Newton's method, and room for events of a period.
TRANSIENT, EVENTS = 20, 256
#: Instants of the last period of a stepped motion.
SAMPLES = 64
OMEGA = "load.load2.F.omega"


def joint(nodes: int, modes: int):
    """The reduced blocks and their problem; the first frequency with glued contacts [rad/s]."""
    from plane_strain import Block, two_blocks
    from two_blocks import DENSITY, HEIGHT, POISSON, YOUNG, bottom, left, pressing, top

    import jfric

    def nowhere(points):
        return np.zeros(points[0].shape, bool)

    def shearing(points):
        return np.stack([np.full_like(points[0], 4e5), np.zeros_like(points[0])])

    x = np.linspace(0.0, 1.0, nodes)
    of_both = YOUNG, POISSON, DENSITY
    # Held sideways only, so that the pressure reaches every contact node.
    upper = Block(
        x,
        np.linspace(0.0, HEIGHT, ROWS),
        *of_both,
        held=(left, nowhere),
        tractions=[(top, pressing), (top, shearing)],
    )
    lower = Block(x, np.linspace(-HEIGHT, 0.0, ROWS), *of_both, held=(bottom, bottom))
    reduced = jfric.reduce_structure(two_blocks(upper, lower), modes)
    r = 2 * nodes
    M, K, F = (np.asarray(part) for part in (reduced.M, reduced.K, reduced.F))
    squared = np.linalg.eigvals(np.linalg.solve(M[r:, r:], K[r:, r:]))
    first = float(np.sqrt(squared.real.min()))
    # Both blocks at rest under the pressure alone, as if they were glued.
    start = np.concatenate([np.zeros(r), F[0, r:] / np.diag(K)[r:]])
    problem = reduced.problem(
        MU,
        [1.0, jfric.Harmonic(AMPLITUDE, first)],
        time=2.0 * np.pi / first,
        damping=DAMPING,
        initial=dict(zip(reduced.axes, start, strict=True)),
    )
    return problem, first


def orbits(problem, omegas: np.ndarray, again: bool) -> tuple[dict, np.ndarray]:
    """The orbits at all frequencies in one call (``again``: a second call, which compiles nothing),
    and amplitudes of the first harmonic of the first mode."""
    import jax

    import jfric

    solver = jfric.EventDriven(max_events=EVENTS)
    values = {OMEGA: omegas}
    name = first_mode(problem)

    def found():
        orbits = jfric.periodic_orbit(problem, values=values, transient=TRANSIENT, solver=solver)
        return jax.block_until_ready(orbits)

    wall, used, orbit = timed(found)
    first = {}
    if again:
        first = {"first call [s]": wall, "first call, processor time [s]": used}
        wall, used, orbit = timed(found)
    further, _, harmonics = timed(lambda: np.asarray(orbit.harmonics(name, 1)))
    ok = np.asarray(orbit.converged)
    events = np.asarray(orbit.event_count)[ok]
    impacts = np.asarray(orbit.event_codes)[ok][:, :, 3] == 1
    known = {
        "frequencies": len(omegas),
        "converged": int(ok.sum()),
        "stable": int(np.asarray(orbit.stable)[ok].sum()),
        "fewest events of a period": int(events.min()),
        "most events of a period": int(events.max()),
        "orbits with impacts": int(impacts.any(axis=1).sum()),
        "evaluations of derivatives, median": float(np.median(np.asarray(orbit.iterations)[ok])),
        "evaluations of derivatives, most": int(np.asarray(orbit.iterations)[ok].max()),
        **first,
        "orbits [s]": wall,
        "orbits, processor time [s]": used,
        "processor time of an orbit [s]": used / len(omegas),
        "harmonics, with compilation [s]": further,
    }
    return known, np.where(ok, np.abs(harmonics[:, 1]), np.nan)


def stepped(problem, omegas: np.ndarray, periods: int, steps: int) -> tuple[dict, np.ndarray]:
    """Moreau-Jean from the problem's start at each frequency, and the same amplitudes."""
    import jax
    import jax.numpy as jnp

    import jfric

    place = problem.axes.index(first_mode(problem))
    samples = periods - 1 + np.arange(1, SAMPLES + 1) / SAMPLES
    cycles = np.concatenate([np.arange(periods), samples])

    def one(omega):
        period = 2.0 * jnp.pi / omega
        solver = jfric.MoreauJean(
            dt=period / steps, max_events=0, max_steps=2 * periods * steps, adjoint="none"
        )
        there = jfric.set_parameters(problem, {OMEGA: omega})
        ts = period * cycles
        found = jfric.simulate(there, solver, ts=ts, end=ts[-1])
        return jnp.concatenate([found.q, found.v], axis=1), found.status

    def run():
        return jax.block_until_ready(all_of_them(jnp.asarray(omegas)))

    all_of_them = jax.jit(jax.vmap(one))
    first, _, _ = timed(run)
    wall, used, (states, status) = timed(run)
    states = np.asarray(states)
    returns = np.concatenate([states[:, :periods], states[:, -1:]], axis=1)
    sizes = np.abs(returns).max(axis=1, keepdims=True)
    away = np.abs(np.diff(returns, axis=1) / np.where(sizes > 0.0, sizes, 1.0)).max(axis=2)
    wave = np.exp(-2j * np.pi * samples)
    motion = states[:, -SAMPLES:, place]
    known = {
        "stepped frequencies": len(omegas),
        "of these ok": int(np.sum(np.asarray(status) == 0)),
        "periods": periods,
        "steps of a period": steps,
        "stepping, first call [s]": first,
        "stepping, again [s]": wall,
        "stepping, processor time [s]": used,
        "processor time of a frequency [s]": used / len(omegas),
        "from period to period at the end": float(away[:, -1].max()),
    }
    return known, np.abs(2.0 * np.mean(motion * wave, axis=1))


def first_mode(problem) -> str:
    """Name of the first interior mode: contacts have two names each."""
    return problem.axes[2 * len(problem.section("contact"))]


def timed(work):
    start, used = time.perf_counter(), time.process_time()
    found = work()
    return time.perf_counter() - start, time.process_time() - used, found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--nodes", type=int, default=10, help="contact nodes")
    parser.add_argument("--modes", type=int, default=20, help="interior modes")
    parser.add_argument("--frequencies", type=int, default=200)
    parser.add_argument("--stepped", type=int, default=8, help="frequencies that are stepped")
    parser.add_argument("--periods", type=int, default=60, help="periods to steady state")
    parser.add_argument("--steps", type=int, default=1000, help="steps of a period")
    parser.add_argument("--again", action="store_true", help="time the orbits without compilation")
    parser.add_argument("--devices", type=int, default=CORES)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    arguments = parser.parse_args()
    import jax

    from jfric.numerics.compilation import compile_quickly

    compile_quickly()
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_num_cpu_devices", arguments.devices)
    problem, first = joint(arguments.nodes, arguments.modes)
    omegas = first * np.linspace(LOW, HIGH, arguments.frequencies)
    found, amplitudes = orbits(problem, omegas, arguments.again)
    some = np.linspace(0, len(omegas) - 1, arguments.stepped).round().astype(int)
    also, theirs = stepped(problem, omegas[some], arguments.periods, arguments.steps)
    off = np.abs(theirs / amplitudes[some] - 1.0)
    found = machine() | {"contact nodes": arguments.nodes, "modes": arguments.modes} | found | also
    found |= {
        "largest amplitude of the first mode": float(np.nanmax(amplitudes)),
        "at a part of the first frequency": float(omegas[np.nanargmax(amplitudes)] / first),
        "amplitudes apart, median": float(np.nanmedian(off)),
        "amplitudes apart, largest": float(np.nanmax(off)),
        "all frequencies by stepping, processor time [s]": len(omegas)
        * also["processor time of a frequency [s]"],
    }
    if arguments.json:
        print(json.dumps(found))
        return
    for name, value in found.items():
        print(f"{name:50} {value:.6g}" if isinstance(value, float) else f"{name:50} {value}")


if __name__ == "__main__":
    main()
