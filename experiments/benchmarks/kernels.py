"""One to four coupled contacts: the general pass on small arrays and its lowering to scalars.

Each system is run for many values of one coefficient of friction through
``jit(lax.map(vmap(...)))`` on one processor, with the settings of the command line. Rates are per
second of processor time, the best of four runs; final positions, statuses and numbers of passes are
compared. With ``--derivatives 1,2,4`` the script measures derivatives of the final positions with
respect to these numbers of parameters, by ``jacfwd``.

    python experiments/benchmarks/kernels.py [--json] [--lanes 1024] [--only chain2,block]
        [--derivatives 1,2,4]
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
WIDTH = 64


def systems(jfric) -> dict:
    """Problems by name, with parameters, of which the first is varied."""

    def chain(n: int):
        names = tuple("abcd"[:n])
        springs = {
            x: jfric.Spring(x if i == 0 else (names[i - 1], x), 50.0 - 5.0 * i)
            for i, x in enumerate(names)
        }
        elements = {
            "mass": {x: jfric.Mass(x, 1.0 + i) for i, x in enumerate(names)},
            "spring": springs,
            "friction": {x: jfric.Friction(x, law=jfric.Coulomb(0.3), N=10.0) for x in names},
            "load": jfric.Load(names[-1], jfric.Harmonic(20.0, 5.0)),
        }
        initial = {x: jfric.InitialState(q=0.0, v=0.0) for x in names}
        return jfric.Problem(names, elements, initial=initial, time=10.0)

    feet = {
        name: jfric.Contact({"y": 1.0, "a": side}, {"x": 1.0, "a": 0.3}, jfric.Coulomb(0.3), e=0.3)
        for name, side in (("l", -0.5), ("r", 0.5))
    }
    block = jfric.Problem(
        ("x", "y", "a"),
        {
            "mass": {
                "x": jfric.Mass("x", 1.0),
                "y": jfric.Mass("y", 1.0),
                "a": jfric.Mass("a", 0.1),
            },
            "contact": feet,
            "load": {"g": jfric.Load("y", -9.81), "f": jfric.Load("x", jfric.Harmonic(5.0, 7.0))},
        },
        initial={
            "x": jfric.InitialState(q=0.0, v=0.0),
            "y": jfric.InitialState(q=0.05, v=0.0),
            "a": jfric.InitialState(q=0.0, v=0.0),
        },
        time=3.0,
    )
    of_chain = ("friction.a.mu", "friction.b.mu", "spring.a.k", "mass.a.m")
    sdnd106 = jfric.load(ROOT / "configs" / "sdnd106.toml")
    return {
        "sdnd106": (sdnd106, ("friction.mu_d", "friction.mu_s", "spring.k", "friction.N")),
        "chain2": (chain(2), of_chain),
        "chain3": (chain(3), of_chain),
        "chain4": (chain(4), of_chain),
        "block": (block, ("contact.l.mu", "contact.r.mu", "mass.x.m", "mass.a.m")),
    }


def measure(jfric, problem, paths, kernel: str, lanes: int, count: int) -> tuple[dict, tuple]:
    """Rate and compile time of one kernel, and its result: final positions, or their derivatives
    with respect to ``count`` parameters."""
    import jax
    import jax.numpy as jnp

    solver = jfric.EventDriven(kernel=kernel, adjoint="auto" if count else "none", max_events=0)
    known = jfric.parameters(problem)
    base = jnp.asarray([float(known[path]) for path in paths[: max(count, 1)]])

    def one(x):
        changed = jfric.set_parameters(problem, dict(zip(paths, x, strict=False)))
        solution = jfric.simulate(changed, solver)
        return solution.final.q, (solution.status, solution.steps)

    derivative = jax.jacfwd(one, has_aux=True) if count else one
    factors = jnp.ones((lanes, len(base))).at[:, 0].set(jnp.linspace(0.5, 1.45, lanes))
    values = (factors * base).reshape(-1, WIDTH, len(base))
    start = time.perf_counter()
    run = jax.jit(lambda x: jax.lax.map(jax.vmap(derivative), x))
    compiled = run.lower(values).compile()
    compile_s = time.perf_counter() - start
    found = jax.block_until_ready(compiled(values))
    best = np.inf
    for _ in range(4):
        start = time.process_time()
        jax.block_until_ready(compiled(values))
        best = min(best, time.process_time() - start)
    if count:  # by relative changes of the parameters
        found = (found[0] * base, found[1])
    row = {"parameters": count, "kernel": kernel, "per_second": lanes / best}
    return row | {"compile_s": compile_s}, tuple(np.asarray(x) for x in jax.tree.leaves(found))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--lanes", type=int, default=1024)
    parser.add_argument("--only", default="chain2,chain3,chain4,block")
    parser.add_argument("--derivatives", default="0", help="numbers of parameters")
    arguments = parser.parse_args()
    from jfric.numerics.compilation import compile_quickly

    compile_quickly()
    import jax

    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_num_cpu_devices", 1)
    jax.config.update("jax_enable_compilation_cache", False)
    import jfric

    lanes = -(-arguments.lanes // WIDTH) * WIDTH
    rows = []
    asked = [
        (n, int(c)) for n in arguments.only.split(",") for c in arguments.derivatives.split(",")
    ]
    for name, count in asked:
        problem, paths = systems(jfric)[name]
        general, expected = measure(jfric, problem, paths, "general", lanes, count)
        lowered, found = measure(jfric, problem, paths, "lowered", lanes, count)
        lowered["ratio"] = lowered["per_second"] / general["per_second"]
        scale = np.abs(expected[0]).max() if count else 1.0
        difference = np.abs(found[0] - expected[0]) / scale
        lowered["largest_difference"] = float(difference.max())
        lowered["same_status_and_passes"] = all(
            bool((a == b).all()) for a, b in zip(found[1:], expected[1:], strict=True)
        )
        rows += [{"system": name, **general}, {"system": name, **lowered}]
        if not arguments.json:
            for row in rows[-2:]:
                print(
                    f"{row['system']:8s} {row['parameters'] or ' '} {row['kernel']:8s} "
                    f"{row['per_second']:10.0f}/s   compile {row['compile_s']:6.1f} s   "
                    + (
                        f"{row['ratio']:.1f} times; largest difference "
                        f"{row['largest_difference']:.1e}; same statuses and passes: "
                        f"{row['same_status_and_passes']}"
                        if "ratio" in row
                        else ""
                    ),
                    flush=True,
                )
    if arguments.json:
        print(json.dumps(rows))


if __name__ == "__main__":
    main()
