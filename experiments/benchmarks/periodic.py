"""Periodic orbits per second: random oscillators with dry friction that never sticks, in a batch.

Each has its own mass, damping, stiffness, friction and frequency. All orbits come from one call of
``jfric.periodic_orbit``; amplitudes are compared with the closed form of Den Hartog (1931),
multipliers with products of matrix exponentials. With ``--contacts 2`` two masses with a friction
each, which may stick, are timed; there is no closed form. Without ``--devices`` all cores are used.

    python experiments/benchmarks/periodic.py [--count 4000] [--contacts 1] [--devices 2]
        [--kernel lowered] [--json]
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path

import numpy as np
from single_trajectory import machine

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
#: Periods before Newton's method, and room for events of a period.
TRANSIENT, EVENTS = 2, 8
#: The same numbers for two contacts: from nearer guesses no orbit of a row delays the others.
TRANSIENT_OF_TWO, EVENTS_OF_TWO = 5, 24


def oscillators(count: int) -> dict[str, np.ndarray]:
    """Random oscillators under a load of 1 N, without sticking by the closed form."""
    from references import den_hartog

    random, found = np.random.default_rng(0), []
    while sum(len(x) for x in found) < count:
        m, k = random.uniform(0.5, 2.0, (2, count))
        c, mu = random.uniform(0.02, 0.2, count), random.uniform(0.05, 0.3, count)
        w = np.sqrt(k / m) * random.uniform(0.5, 2.5, count)
        _, _, after, before = den_hartog.steady(m, c, k, mu, 1.0, w)
        # The mass leaves both ends of its motion with some force to spare.
        slides = (after < -1e-3) & (before < -1e-3)
        found.append(np.stack([m, c, k, mu, w], axis=1)[slides])
    columns = np.concatenate(found)[:count].T
    names = ("mass.m", "damper.c", "spring.k", "friction.mu", "load.F.omega")
    return dict(zip(names, columns, strict=True))


def two_contacts(count: int):
    """Two masses with a friction each, and random numbers for them by path."""
    import jfric

    problem = jfric.Problem(
        ("x", "y"),
        {
            "mass": {"a": jfric.Mass("x", 1.0), "b": jfric.Mass("y", 0.5)},
            "spring": {"a": jfric.Spring("x", 1.0), "b": jfric.Spring(("x", "y"), 0.6)},
            "damper": {"a": jfric.Damper("x", 0.05), "b": jfric.Damper(("x", "y"), 0.05)},
            "friction": {
                "a": jfric.Friction("x", jfric.Coulomb(0.2), N=1.0),
                "b": jfric.Friction(("x", "y"), jfric.Coulomb(0.1), N=1.0),
            },
            "load": jfric.Load("x", jfric.Harmonic(1.0, 0.8)),
        },
    )
    random = np.random.default_rng(0)
    ranges = {
        **{"load.F.omega": (0.5, 1.5), "spring.b.k": (0.4, 0.8)},
        **{"friction.a.mu": (0.05, 0.2), "friction.b.mu": (0.02, 0.1)},
    }
    return problem, {path: random.uniform(*ends, count) for path, ends in ranges.items()}


def measure(count: int, devices: int, contacts: int = 1, kernel: str = "auto") -> dict[str, object]:
    import jax

    from jfric.numerics.compilation import compile_quickly

    compile_quickly()
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_num_cpu_devices", devices)
    import jfric

    problem = jfric.Problem(
        ("x",),
        {
            "mass": jfric.Mass("x", 1.0),
            "damper": jfric.Damper("x", 0.1),
            "spring": jfric.Spring("x", 1.0),
            "friction": jfric.Friction("x", jfric.Coulomb(0.1), N=1.0),
            "load": jfric.Load("x", jfric.Harmonic(1.0, 1.0)),
        },
    )
    values, transient, events = oscillators(count), TRANSIENT, EVENTS
    if contacts == 2:
        problem, values = two_contacts(count)
        transient, events = TRANSIENT_OF_TWO, EVENTS_OF_TWO
    solver = jfric.EventDriven(max_events=events, kernel=kernel)

    def orbits():
        found = jfric.periodic_orbit(problem, values=values, transient=transient, solver=solver)
        return jax.block_until_ready(found)

    start = time.perf_counter()
    found = orbits()
    first = time.perf_counter() - start
    start, used = time.perf_counter(), time.process_time()
    found = orbits()
    wall, used = time.perf_counter() - start, time.process_time() - used
    return {
        "orbits": count,
        "contacts": contacts,
        "devices": devices,
        "first call [s]": first,
        "wall [s]": wall,
        "processor time [s]": used,
        "orbits per second": count / wall,
        "orbits per second of processor time": count / used,
        "converged": int(np.sum(found.converged)),
        **(errors(values, found) if contacts == 1 else {}),
    }


def errors(values: dict[str, np.ndarray], found) -> dict[str, float]:
    """Largest deviations from the closed form: relative amplitude, time of the largest position in
    periods, multipliers."""
    from references import den_hartog

    m, c, k, mu, w = values.values()
    X, at, after, before = den_hartog.steady(m, c, k, mu, 1.0, w)
    codes, times = np.asarray(found.event_codes), np.asarray(found.event_times)
    last = codes[:, 0, 2] == 3
    turns = np.where(last, times[:, 0], times[:, 1])
    late = (turns - at) * w / (2.0 * np.pi)
    ways = found.observe("max.x, min.x")
    amplitude = 0.5 * (np.asarray(ways["max.x"]) - np.asarray(ways["min.x"]))
    off = []
    for i in range(len(m)):
        exact = np.linalg.eigvals(den_hartog.monodromy(m[i], c[i], k[i], after[i], before[i], w[i]))
        mine = np.asarray(found.multipliers[i])
        off.append(np.max(np.abs(np.sort_complex(exact) - np.sort_complex(mine))))
    return {
        "amplitude": float(np.max(np.abs(amplitude / X - 1.0))),
        "time": float(np.max(np.abs(late - np.round(late)))),
        "multipliers": float(np.max(off)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--count", type=int, default=4000)
    parser.add_argument("--contacts", type=int, default=1, choices=(1, 2))
    parser.add_argument("--devices", type=int, default=CORES)
    parser.add_argument("--kernel", default="auto", help="of the event-driven solver")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    arguments = parser.parse_args()
    chosen = arguments.count, arguments.devices, arguments.contacts, arguments.kernel
    found = machine() | measure(*chosen)
    if arguments.json:
        print(json.dumps(found))
        return
    for name, value in found.items():
        print(f"{name:40} {value:.6g}" if isinstance(value, float) else f"{name:40} {value}")


if __name__ == "__main__":
    main()
