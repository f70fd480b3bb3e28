"""A whole response curve with stability, and the friction damper with the lowest peak.

The first table is a two-mass system with a gap to an elastic stop, followed through its resonance
over all frequencies: seconds with compilation, and of a second call. The second table is a mass
with a friction damper: the normal force with the lowest resonance peak by its derivative, compared
with a fine sweep over normal forces.

    python experiments/benchmarks/response.py [--count 41] [--json]
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np
from single_trajectory import machine

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))


def timed(work):
    start, used = time.perf_counter(), time.process_time()
    found = work()
    return found, time.perf_counter() - start, time.process_time() - used


def curve() -> dict[str, object]:
    from resonance_systems import with_a_stop

    import jfric

    problem = with_a_stop()

    def work():
        return jfric.frequency_response(problem, "load", 0.3, 1.2)

    found, first, first_used = timed(work)
    found, again, again_used = timed(work)
    (one,) = found.curves
    peak, further, _ = timed(lambda: found.peak("y"))
    return {
        "orbits of the curve": len(one.stable),
        "complete": bool(one.complete),
        "unstable orbits": int(np.sum(~np.asarray(one.stable))),
        "special points": len(one.special),
        "with compilation [s]": first,
        "with compilation, processor time [s]": first_used,
        "again [s]": again,
        "again, processor time [s]": again_used,
        "peak of y [m]": float(peak.value),
        "at [rad/s]": float(peak.frequency),
        "amplitudes and peak, first time [s]": further,
    }


def damper(count: int) -> dict[str, object]:
    from resonance_systems import with_a_damper

    import jfric

    problem, name, ends = with_a_damper(), "friction.N", ("load", 1.04, 1.15)
    low, high, more = 0.56, 0.66, {"transient": 30}

    def work():
        return jfric.minimise_peak(
            problem, ends[0], "x", name, low, high, *ends[1:], count=4, **more
        )

    best, seconds, _ = timed(work)
    values = np.linspace(low, high, count)
    family, swept, _ = timed(
        lambda: jfric.frequency_response(problem, *ends, over={name: values}, **more)
    )
    peaks = np.array([family.peak("x", (), i).value for i in range(count)])
    i = int(np.argmin(peaks))
    # The parabola through the three lowest points of the sweep.
    bend = np.polyfit(values[i - 1 : i + 2] - values[i], peaks[i - 1 : i + 2], 2)
    return {
        "lowest peak by derivative [m]": float(best.peak.value),
        "at normal force [N]": float(best.parameter),
        "derivative there [m/N]": float(best.peak.derivatives[name]),
        "by derivative [s]": seconds,
        "values of the sweep": count,
        "lowest peak of the sweep [m]": float(peaks[i]),
        "at normal force of the sweep [N]": float(values[i]),
        "at the bottom of its parabola [N]": float(values[i] - 0.5 * bend[1] / bend[0]),
        "sweep [s]": swept,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--count", type=int, default=41, help="normal forces of the sweep")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    arguments = parser.parse_args()
    import jax

    from jfric.numerics.compilation import compile_quickly

    compile_quickly()
    jax.config.update("jax_enable_x64", True)
    found = machine() | curve() | damper(arguments.count)
    if arguments.json:
        print(json.dumps(found))
        return
    for name, value in found.items():
        print(f"{name:40} {value:.12g}" if isinstance(value, float) else f"{name:40} {value}")


if __name__ == "__main__":
    main()
