"""Moreau-Jean's scheme on a slider-crank with friction, compared with the same scheme in NumPy.

- bodies: three bodies, pins, and a guide with friction from its reaction.
- angle: the crank's angle alone, friction of the piston with a given normal force.

The script times ``jfric.simulate`` with positions at the end, one trajectory and a batch over the
coefficient of friction, after a run that compiles, and the reference of
``tests/references/moreau_crank.py``, step by step. It reports whether Siconos is installed, but
does not run it. The difference is the largest of all positions and velocities at all steps.

    python experiments/benchmarks/slider_crank.py [--json] [--steps 1500] [--lanes 1000]
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import sys
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
STEP = 2e-3
#: Normal force of the piston if only the angle is known [N].
NORMAL = 40.0


def problems(steps: int) -> dict:
    """The problems of both descriptions, by name."""
    from cranks import crank_by_angle, crank_by_bodies

    end = steps * STEP
    return {"bodies": crank_by_bodies(end), "angle": crank_by_angle(NORMAL, end)}


#: Paths of the coefficient of friction that a batch varies.
PATHS = {"bodies": "slider.mu", "angle": "friction.mu"}


def reference(name: str, steps: int):
    from references import moreau_crank

    crank = moreau_crank.Crank()
    if name == "bodies":
        return moreau_crank.bodies(crank, STEP, steps)
    a, w = moreau_crank.angle(crank, NORMAL, STEP, steps)
    return a[:, None], w[:, None]


def measured(call) -> tuple[float, float]:
    """Seconds of the first call, and the shortest of some further ones."""
    import jax

    def one() -> float:
        start = time.perf_counter()
        jax.block_until_ready(call())
        return time.perf_counter() - start

    return one(), min(one() for _ in range(5))


def rows_of(name: str, problem, steps: int, lanes: int) -> list[dict]:
    import jax
    import jax.numpy as jnp

    import jfric

    solver = jfric.MoreauJean(STEP)
    ts = STEP * jnp.arange(steps + 1)
    found = jfric.simulate(problem, solver, ts=ts)
    start = time.perf_counter()
    q, v = reference(name, steps)
    numpy = time.perf_counter() - start
    difference = max(float(np.abs(found.q - q).max()), float(np.abs(found.v - v).max()))

    def run(mu):
        moved = jfric.set_parameters(problem, {PATHS[name]: mu})
        return jfric.simulate(moved, solver).final.q

    single, batch = jax.jit(run), jax.jit(jax.vmap(run))
    first, one = measured(lambda: single(0.3))
    compiled, many = measured(lambda: batch(jnp.linspace(0.1, 0.5, lanes)))
    shared = {"system": name, "steps": steps}
    return [
        shared | {"method": "NumPy", "seconds": numpy, "difference": 0.0},
        shared
        | {
            "method": "jfric, one",
            "seconds": one,
            "ratio": numpy / one,
            "difference": difference,
            "compile_s": first - one,
        },
        shared
        | {
            "method": f"jfric, each of {lanes}",
            "seconds": many / lanes,
            "ratio": numpy * lanes / many,
            "compile_s": compiled - many,
        },
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--lanes", type=int, default=1000)
    parser.add_argument("--only", default="bodies,angle")
    arguments = parser.parse_args()
    sys.path.insert(0, str(ROOT / "tests"))
    import jax

    jax.config.update("jax_enable_x64", True)
    rows: list[dict] = []
    both = problems(arguments.steps)
    for name in arguments.only.split(","):
        for row in rows_of(name, both[name], arguments.steps, arguments.lanes):
            rows.append(row)
            if not arguments.json:
                ratio, off = (row.get(k, math.nan) for k in ("ratio", "difference"))
                note = f"compilation {row['compile_s']:.1f} s" if "compile_s" in row else ""
                each = 1e6 * row["seconds"] / row["steps"]
                print(
                    f"{name:<7} {row['method']:<20} {1e3 * row['seconds']:9.3f} ms "
                    f"{each:8.2f} us/step  {ratio:8.1f} times  {off:8.1e}  {note}"
                )
    there = importlib.util.find_spec("siconos") is not None
    if arguments.json:
        print(json.dumps({"siconos": there, "rows": rows}, indent=1))
    else:
        print(f"Siconos is {'' if there else 'not '}installed")


if __name__ == "__main__":
    main()
