"""Basins of attraction: initial states per second.

An oscillator driven against a rigid stop has two motions, with one and with two impacts. The script
finds which of them each state of a grid reaches. A run ends when its returns repeat. Times are
those of a second call, which compiles nothing; processor time is not affected by other work on the
machine.

    python experiments/benchmarks/basins.py [--side 1000] [--tolerance 1e-4] [--devices 2] [--json]
"""

from __future__ import annotations

import argparse
import json
import time

import numpy as np
from periodic import CORES
from single_trajectory import machine


def problem():
    import jfric

    return jfric.Problem(
        ["x"],
        {
            "mass": jfric.Mass("x", 1.0),
            "spring": jfric.Spring("x", 1.0),
            "damper": jfric.Damper("x", 0.1),
            "load": jfric.Load("x", jfric.Harmonic(1.0, 2.6)),
            "contact": jfric.Contact({"x": -1.0}, gap=0.5, e=0.7),
        },
    )


def measure(side: int, tolerance: float, devices: int) -> dict[str, object]:
    import jax

    from jfric.numerics.compilation import compile_quickly

    compile_quickly()
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_num_cpu_devices", devices)
    import jfric

    plane = {
        "initial.x.q": jfric.Range(-4.0, 0.5, side),
        "initial.x.v": jfric.Range(-4.0, 4.0, side),
    }
    seconds, found = [], None
    for _ in range(2):
        start, used = time.perf_counter(), time.process_time()
        found = jfric.basins(problem(), plane, tolerance=tolerance, devices=devices, progress=False)
        seconds.append((time.perf_counter() - start, time.process_time() - used))
    assert found is not None
    (first, _), (wall, used) = seconds
    returns = sum(a.count * a.returns for a in found.attractors) / found.labels.size
    return {
        "initial states": found.labels.size,
        "devices": devices,
        "first call [s]": first,
        "wall [s]": wall,
        "processor time [s]": used,
        "processor time of 10^6 states [s]": used / found.labels.size * 1e6,
        "periods until recognised, mean": returns,
        **{
            f"attractor {i}": f"period {a.period}, share {a.share:.6f} +- {a.error:.6f}"
            for i, a in enumerate(found.attractors, start=1)
        },
        "not recognised": int(np.sum(found.labels == 0)),
        "failed": found.failed,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--side", type=int, default=1000, help="states along each axis")
    parser.add_argument("--tolerance", type=float, default=1e-4, help="of returns that repeat")
    parser.add_argument("--devices", type=int, default=CORES)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    arguments = parser.parse_args()
    found = machine() | measure(arguments.side, arguments.tolerance, arguments.devices)
    if arguments.json:
        print(json.dumps(found))
        return
    for name, value in found.items():
        print(f"{name:40} {value:.6g}" if isinstance(value, float) else f"{name:40} {value}")


if __name__ == "__main__":
    main()
