"""Two to four coupled contacts: the general pass on small arrays and its lowering to scalars.

Each system is run for many values of one coefficient of friction through
``jit(lax.map(vmap(...)))`` on one processor, with the settings of the command line. Rates are per
second of processor time, the best of four runs; final positions, statuses and numbers of passes are
compared.

    python experiments/benchmarks/kernels.py [--json] [--lanes 1024] [--only chain2,block]
"""

from __future__ import annotations

import argparse
import json
import time

import numpy as np

WIDTH = 64


def systems(jfric) -> dict:
    """Problems by name, with the parameter that is varied."""

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
    return {
        "chain2": (chain(2), "friction.a.mu"),
        "chain3": (chain(3), "friction.a.mu"),
        "chain4": (chain(4), "friction.a.mu"),
        "block": (block, "contact.l.mu"),
    }


def measure(jfric, problem, path: str, kernel: str, lanes: int) -> tuple[dict, tuple]:
    """Rate and compile time of one kernel, and what it gives."""
    import jax
    import jax.numpy as jnp

    solver = jfric.EventDriven(kernel=kernel, adjoint="none", max_events=0)

    def one(mu):
        solution = jfric.simulate(jfric.set_parameters(problem, {path: mu}), solver)
        return solution.final.q, solution.status, solution.steps

    values = jnp.linspace(0.1, 0.5, lanes)
    start = time.perf_counter()
    run = jax.jit(lambda x: jax.lax.map(jax.vmap(one), x.reshape(-1, WIDTH)))
    compiled = run.lower(values).compile()
    compile_s = time.perf_counter() - start
    found = jax.block_until_ready(compiled(values))
    best = np.inf
    for _ in range(4):
        start = time.process_time()
        jax.block_until_ready(compiled(values))
        best = min(best, time.process_time() - start)
    row = {"kernel": kernel, "per_second": lanes / best, "compile_s": compile_s}
    return row, tuple(np.asarray(x) for x in found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--lanes", type=int, default=1024)
    parser.add_argument("--only", default="chain2,chain3,chain4,block")
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
    for name in arguments.only.split(","):
        problem, path = systems(jfric)[name]
        general, expected = measure(jfric, problem, path, "general", lanes)
        lowered, found = measure(jfric, problem, path, "lowered", lanes)
        lowered["ratio"] = lowered["per_second"] / general["per_second"]
        lowered["largest_difference"] = float(np.abs(found[0] - expected[0]).max())
        lowered["same_status_and_passes"] = all(
            bool((a == b).all()) for a, b in zip(found[1:], expected[1:], strict=True)
        )
        rows += [{"system": name, **general}, {"system": name, **lowered}]
        if not arguments.json:
            for row in rows[-2:]:
                print(
                    f"{row['system']:8s} {row['kernel']:8s} {row['per_second']:10.0f}/s   "
                    f"compile {row['compile_s']:6.1f} s   "
                    + (
                        f"{row['ratio']:.1f} times; largest difference "
                        f"{row['largest_difference']:.1e} m; same statuses and passes: "
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
