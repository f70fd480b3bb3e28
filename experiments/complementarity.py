"""Random contact problems of 1 to 200 contacts: iterations, time and residual of each method.

Each problem has friction with given limits, unilateral contacts with friction, or both, on shared
bodies; sizes are padded, so that each method compiles once for each size. A problem counts as
solved if its residual is below 1e-10; all others must carry a status, or the script fails.

    python experiments/complementarity.py [--problems 10000] [--json] [--seed 0]
"""

from __future__ import annotations

import argparse
import json
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np

from jfric.contact.contact_methods import solve_impulses
from jfric.contact.contact_problem import ContactProblem, impulse_residual
from jfric.results.status import Status

#: (given limits, unilateral contacts) of a padded problem, and its share of all problems.
SIZES = {(0, 1): 0.3, (1, 3): 0.3, (5, 15): 0.25, (15, 45): 0.1, (30, 90): 0.03, (50, 150): 0.02}
METHODS = ("auto", "closed-form", "lemke", "newton", "gauss-seidel")


def random_problem(
    rng: np.random.Generator, elements: int, nu: int, kind: int | None = None
) -> ContactProblem:
    """Some of the contacts on bodies that they share: of both sorts (``kind`` 0), or of one."""
    slots = elements + nu
    bodies = max(2, int(1.3 * (slots + nu)))
    W = rng.standard_normal((slots + nu, bodies)) * (rng.random((slots + nu, bodies)) < 0.3)
    W[np.arange(slots + nu), rng.permutation(bodies)[: slots + nu]] += 1.0
    active = rng.random(slots) < rng.uniform(0.1, 1.0)
    kind = int(rng.integers(3)) if kind is None else kind
    if slots > 1 and kind:
        active &= (np.arange(slots) < elements) == (kind == 1)
    active[rng.integers(slots)] = True
    gamma = rng.standard_normal(slots + nu)
    gamma[slots:] -= 0.5
    mu = rng.uniform(0.0, 0.6, nu)
    cap = np.where(np.arange(slots) < elements, rng.exponential(0.5, slots), 0.0) * active
    return ContactProblem(
        D=W @ W.T,
        gamma=gamma,
        decided=active,
        touching=active[elements:],
        sliding=np.zeros(slots),
        mu_positive=mu,
        mu_negative=mu * rng.uniform(0.5, 1.5, nu),
        cap_positive=cap,
        cap_negative=cap * rng.uniform(0.5, 1.5, slots),
    )


def run(method: str, problems: list[ContactProblem]) -> dict:
    solve = jax.jit(lambda problem: solve_impulses(problem, method))  # type: ignore[arg-type]
    judge = jax.jit(impulse_residual)
    jax.block_until_ready(solve(problems[0]))
    iterations, residuals, status, seconds = [], [], [], 0.0
    for problem in problems:
        start = time.perf_counter()
        result = jax.block_until_ready(solve(problem))
        seconds += time.perf_counter() - start
        iterations.append(int(result.iterations))
        residuals.append(float(judge(problem, result.impulse)))
        status.append(int(result.status))
    solved = np.array(status) == Status.OK
    residuals = np.array(residuals)
    return {
        "method": method,
        "contacts": int(problems[0].decided.shape[0]),
        "problems": len(problems),
        "solved": int(solved.sum()),
        "silent": int(np.sum(solved & ~(residuals < 1e-10))),
        "iterations_mean": float(np.mean(iterations)),
        "iterations_max": int(np.max(iterations)),
        "us": 1e6 * seconds / len(problems),
        "residual_max": float(residuals[solved].max()) if solved.any() else float("nan"),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", type=int, default=10_000, help="problems in all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    arguments = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    rng = np.random.default_rng(arguments.seed)
    rows = []
    if not arguments.json:
        print(
            f"{'contacts':>8} {'method':13} {'problems':>8} {'solved':>7} {'silent':>6} "
            f"{'iterations':>10} {'most':>6} {'time':>10} {'residual':>9}"
        )
    for size, share in SIZES.items():
        count = max(1, round(share * arguments.problems))
        problems = [jax.tree.map(jnp.asarray, random_problem(rng, *size)) for _ in range(count)]
        for method in METHODS:
            if method == "closed-form" and sum(size) > 1:
                continue
            # Sweeps over many contacts take long, and a part of the problems is enough.
            part = problems[: max(1, count // 10)] if method == "gauss-seidel" else problems
            row = run(method, part)
            rows.append(row)
            if not arguments.json:
                print(
                    f"{row['contacts']:8} {method:13} {row['problems']:8} {row['solved']:7} "
                    f"{row['silent']:6} {row['iterations_mean']:10.1f} {row['iterations_max']:6} "
                    f"{row['us']:8.0f}us {row['residual_max']:9.1e}",
                    flush=True,
                )
    if arguments.json:
        print(json.dumps(rows, indent=1))
    if any(row["silent"] for row in rows):
        sys.exit("a problem was called solved that is not")


if __name__ == "__main__":
    main()
