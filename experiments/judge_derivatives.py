"""Comparison of derivatives of random systems with differences of their motions.

    python experiments/judge_derivatives.py [--systems 300] [--seed 1] [--kinds limits,shared]

Systems come from ``random_systems.py``. For each of them the end of the motion (positions and
velocities) is differentiated with respect to randomly drawn numbers, forwards and, for some
structures, in reverse. Differences to both sides, at two distances, show whether there is a
derivative: there is one if both sides agree ever better as the distance shrinks, and none on the
edge between two motions.

A derivative is wrong if it differs while ``differentiable`` is True, on an edge or not. The exit
status is 0 if none is.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import sys
import time
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from compare_commits import Group, groups
from judge_systems import KINDS

import jfric
from jfric.files.read_toml import loads

#: Distances of differences, as parts of a number: errors of the motion are 1e-10 of it.
NEAR, FAR = 1e-5, 4e-5
#: Distance small enough that an edge nearby is not met.
TINY = 1e-8
#: Difference, as a part of the largest value of its row, above which a derivative is wrong.
TOLERANCE = 1e-3
#: Number of parameters with respect to which one system is differentiated.
PARAMETERS = 3


class Found(NamedTuple):
    """End of motions (n,), status, and whether the derivative exists."""

    end: Any
    status: Any
    differentiable: Any


def drawn(problems: list[jfric.Problem], rng: np.random.Generator) -> list[str]:
    """Paths of randomly drawn numbers that all the problems have."""
    first = jfric.parameters(problems[0])
    paths = [k for k, x in first.items() if np.ndim(x) == 0 and not k.startswith("time.")]
    used = [k for k in paths if any(float(jfric.parameters(p)[k]) != 0.0 for p in problems)]
    return list(rng.permutation(used)[:PARAMETERS])


def judge(group: Group, rng: np.random.Generator, *, reverse: bool) -> collections.Counter[str]:
    """The number of correct derivatives of a structure, and descriptions of the others."""
    problems = []
    for text in group.texts:
        with contextlib.suppress(jfric.ProblemError):
            problems.append(loads(text).problem)
    if not problems:
        return collections.Counter(refused=len(group.texts))
    paths = drawn(problems, rng)
    values = np.array([[float(jfric.parameters(p)[k]) for k in paths] for p in problems])
    batch = jax.tree.map(lambda *x: jnp.stack([jnp.asarray(y) for y in x]), *problems)

    def motion(problem, x, adjoint="forward") -> Found:
        changed = jfric.set_parameters(problem, dict(zip(paths, x, strict=True)))
        s = jfric.simulate(changed, jfric.EventDriven(adjoint=adjoint))
        end = jnp.concatenate([s.final.q, s.final.v])
        return Found(end, s.status, s.differentiable)

    def slope(problem, x):
        def of(x):
            found = motion(problem, x)
            return found.end, found

        return jax.jacfwd(of, has_aux=True)(x)

    forward, base = eqx.filter_jit(eqx.filter_vmap(slope))(batch, jnp.asarray(values))
    moved = eqx.filter_jit(eqx.filter_vmap(motion))
    sizes = np.maximum(np.abs(values), 1e-2)
    one_sided = {}
    for distance in (TINY, NEAR, FAR):
        for sign in (1.0, -1.0):
            columns = []
            for i in range(len(paths)):
                step = np.zeros_like(values)
                step[:, i] = sign * distance * sizes[:, i]
                found = moved(batch, jnp.asarray(values + step))
                # Numbers that no system can have, such as a static coefficient below the kinetic
                # one.
                end = np.where(np.asarray(found.status)[:, None] == 0, found.end, np.nan)
                columns.append((end - base.end) / step[:, i : i + 1])
            one_sided[distance, sign] = np.stack(columns, axis=2)
    said = compared(np.asarray(forward), base, one_sided, sizes)
    if reverse:
        said += backward(motion, batch, values, np.asarray(forward), base, rng)
    for line in (x for x in said if x.startswith("WRONG")):
        print(f"{line}; {group.kind}, structure {group.structure}: {', '.join(paths)}", flush=True)
    refused = collections.Counter(refused=len(group.texts) - len(problems))
    return +refused + collections.Counter(x.split(":")[0] for x in said)


def compared(forward, base: Found, one_sided, sizes) -> list[str]:
    """Verdict on each system's derivatives."""
    above, below = one_sided[NEAR, 1.0], one_sided[NEAR, -1.0]
    farther = one_sided[FAR, 1.0], one_sided[FAR, -1.0]
    said = []
    for j in range(len(forward)):
        if int(base.status[j]) != 0:
            said.append("did not end well")
            continue
        if not all(np.all(np.isfinite(x[j])) for x in one_sided.values()):
            said.append("with another status")
            continue
        # In units of the numbers, so that they are comparable.
        unit = sizes[j][None, :]
        slope, plus, minus = (x[j] * unit for x in (forward, above, below))
        scale = 1e-6 + max(np.max(np.abs(x)) for x in (plus, minus))
        gap, wider = plus - minus, (farther[0][j] - farther[1][j]) * unit
        # The two sides of a smooth motion approach each other as their distance shrinks.
        smooth = np.max(np.abs(gap)) <= np.maximum(0.5 * np.max(np.abs(wider)), TOLERANCE * scale)
        tiny = [one_sided[TINY, sign][j] * unit for sign in (1.0, -1.0)]
        most = 1e-6 + max(np.max(np.abs(x)) for x in tiny)
        if not smooth and np.max(np.abs(tiny[0] - tiny[1])) <= 0.1 * most:
            said.append("edge nearby")
            continue
        if not smooth:
            word = "WRONG on an edge" if bool(base.differentiable[j]) else "edge"
            said.append(f"{word}: system {j}, sides {np.max(np.abs(gap)):.1e} apart")
            continue
        curved = np.max(np.abs(wider)) if np.max(np.abs(gap)) > TOLERANCE * scale else 0.0
        off = np.max(np.abs(slope - 0.5 * (plus + minus)))
        if off <= TOLERANCE * scale + curved:
            said.append("right")
        elif bool(base.differentiable[j]):
            said.append(f"WRONG: system {j}, {off:.1e} of {scale:.1e}")
        else:
            said.append("flagged")
    return said


def backward(motion, batch, values, forward, base: Found, rng) -> list[str]:
    """Compare derivatives in reverse with those forwards."""
    weights = rng.normal(size=forward.shape[1])

    def cost(x, problem):
        return jnp.asarray(weights) @ motion(problem, x, "reverse").end

    found = eqx.filter_jit(eqx.filter_vmap(jax.grad(cost)))(jnp.asarray(values), batch)
    expected = np.einsum("i,kij->kj", weights, forward)
    said = []
    for j in np.flatnonzero(np.asarray(base.status) == 0):
        off = np.max(np.abs(found[j] - expected[j]))
        right = off <= 1e-7 * (1.0 + np.max(np.abs(forward[j])))
        said.append("reverse, right" if right else f"WRONG in reverse: system {j}, {off:.1e}")
    return said


def main(arguments: list[str] | None = None) -> int:
    """Judge structure by structure, and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--systems", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--size", type=int, default=20, help="systems of a structure")
    parser.add_argument("--typed", type=float, default=0.5, help="share with typed numbers")
    parser.add_argument("--reverse", type=int, default=5, help="every how manieth structure")
    options = parser.parse_args(arguments)
    jax.config.update("jax_enable_x64", True)
    jfric.compile_quickly()
    rng, counts = np.random.default_rng(options.seed), collections.Counter()
    kinds = options.kinds.split(",")
    begun = time.perf_counter()
    every = groups(options.systems, options.seed, kinds, options.size, options.typed)
    for number, group in enumerate(every):
        counts += judge(group, rng, reverse=number % options.reverse == 0)
        passed = time.perf_counter() - begun
        print(
            f"{number + 1}/{len(every)} {group.kind}, {passed:.0f} s", file=sys.stderr, flush=True
        )
    print(", ".join(f"{k} {n}" for k, n in counts.most_common()) + f", seed {options.seed}")
    return int(any(k.startswith("WRONG") for k in counts))


if __name__ == "__main__":
    sys.exit(main())
