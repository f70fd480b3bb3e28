"""Drift of joints over a long time.

The slider-crank of ``configs/slider_crank.toml``, three bodies with three pins and a guide, swings
to and fro for 10,000 periods of 1.9 s, with fairly long steps (a relative tolerance of 1e-4). The
script prints the largest violations of the joints' equations and of their rates at 4,001 instants,
relative to the length of the rod and to the largest velocity, and the time of the processors. The
exit status is 1 if the first violation is above 1e-12.

    python experiments/joint_drift.py [--json] [--periods 10000] [--rtol 1e-4]
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
#: Time of a swing to and fro [s], length of the rod [m], and allowed drift, relative to the length.
PERIOD, LENGTH, ALLOWED = 1.9, 0.7, 1e-12
OUTPUTS = 4001


def measured(periods: float, rtol: float) -> dict[str, float]:
    """Violations, relative to the rod and to the largest velocity; steps; seconds."""
    import jax
    import jax.numpy as jnp

    import jfric
    from jfric.system.joint_equations import joint_equations

    end = periods * PERIOD
    problem = jfric.load(ROOT / "configs" / "slider_crank.toml")
    problem = jfric.set_parameters(problem, {"time.end": end})
    solver = jfric.EventDriven(rtol=rtol, max_steps=2_000_000)
    start = time.process_time()
    solution = jfric.simulate(problem, solver, ts=jnp.linspace(0.0, end, OUTPUTS)).check()
    seconds = time.process_time() - start
    equations = [e.function for e in joint_equations(problem.resolved())]

    def left(t, q, v):
        of = jax.jvp(lambda t, q: jnp.stack([f(t, q) for f in equations]), (t, q), (1.0, v))
        return jnp.stack(of)

    found = np.abs(jax.vmap(left)(solution.ts, solution.q, solution.v)).max(axis=(0, 2))
    return {
        "periods": periods,
        "steps": int(solution.steps),
        "drift": float(found[0]) / LENGTH,
        "drift_of_rates": float(found[1] / np.abs(solution.v).max()),
        "processor_s": seconds,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--periods", type=float, default=10_000.0)
    parser.add_argument("--rtol", type=float, default=1e-4)
    arguments = parser.parse_args()
    from jfric.numerics.compilation import compile_quickly

    compile_quickly()
    import jax

    jax.config.update("jax_enable_x64", True)
    found = measured(arguments.periods, arguments.rtol)
    if arguments.json:
        print(json.dumps(found, indent=1))
    else:
        print(
            f"{found['periods']:g} periods, {found['steps']} steps: joints off by "
            f"{found['drift']:.1e} of the rod, rates by {found['drift_of_rates']:.1e} of the "
            f"largest; {found['processor_s']:.0f} s of the processors"
        )
    return int(found["drift"] > ALLOWED)


if __name__ == "__main__":
    sys.exit(main())
