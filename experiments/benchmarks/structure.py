"""Many contacts: the shaken reduced structure of ``dynamic_structure.py``, event-driven.

Two blocks reduced to their contact nodes and six interior modes, pressed together and shaken for
two periods; contact nodes stick, slip and rattle. One trajectory on one processor, with the
settings of the command line: passes, changes of mode, compile time, and run time in seconds of
processor time, the best of some runs.

    python experiments/benchmarks/structure.py [--json] [--nodes 5 10 30] [--repeats 3]
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))


def measure(nodes: int, periods: float, repeats: int) -> dict:
    """Compile time, run time and counts for a number of contact nodes."""
    import jax
    from dynamic_structure import EXACT, shaken

    import jfric

    _, problem, _ = shaken(nodes, False, periods)

    def one(problem):
        found = jfric.simulate(problem, EXACT)
        final = found.final
        return final.q, found.status, found.flags, found.steps, found.events.count

    start = time.process_time()
    compiled = jax.jit(one).lower(problem).compile()
    compile_s = time.process_time() - start
    best = np.inf
    for _ in range(repeats):
        start = time.process_time()
        found = jax.block_until_ready(compiled(problem))
        best = min(best, time.process_time() - start)
    q, status, flags, steps, count = (np.asarray(x) for x in found)
    return {
        "nodes": nodes,
        "passes": int(steps),
        "changes_of_mode": int(count),
        "compile_s": compile_s,
        "run_s": best,
        "ms_per_pass": 1e3 * best / int(steps),
        "status": int(status),
        "flags": int(flags),
        "q": q.tolist(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--nodes", type=int, nargs="*", default=[5, 10, 30])
    parser.add_argument("--periods", type=float, default=2.0)
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    from jfric.numerics.compilation import compile_quickly

    compile_quickly()
    import jax

    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_enable_compilation_cache", False)
    rows = []
    if not arguments.json:
        print("nodes  passes  changes of mode  compile [s]  run [s]  ms/pass  status  flags")
    for nodes in arguments.nodes:
        row = measure(nodes, arguments.periods, arguments.repeats)
        rows.append(row)
        if not arguments.json:
            print(
                f"{row['nodes']:5d} {row['passes']:7d} {row['changes_of_mode']:16d} "
                f"{row['compile_s']:12.1f} {row['run_s']:8.2f} {row['ms_per_pass']:8.3f} "
                f"{row['status']:7d} {row['flags']:6d}",
                flush=True,
            )
    if arguments.json:
        print(json.dumps(rows))


if __name__ == "__main__":
    main()
