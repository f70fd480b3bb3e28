"""One side of a comparison: the installed jfric answers questions about systems.

The script is a separate process that reads jobs, one JSON object per line, and writes a line when
each is done. Systems are read from TOML text by ``jfric.load``; systems of one structure share one
program. Only public names of jfric are used, so that other commits understand the same jobs.
"""

from __future__ import annotations

import functools
import json
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

#: Arrays of the answer about one system, by name.
Answer = dict[str, np.ndarray]
#: Output times that nobody would type, as parts of the time.
OUTPUTS = (np.arange(24) + 0.63) / 24
EVENTS = 128
#: Number of systems that step together.
ROW = 8
#: Part of the time after which a restarted motion starts again.
RESTART = 0.4731


class Job(NamedTuple):
    """Systems, and the questions about them; ``nudge``: relative change of all their numbers.

    A question about a motion is the name of a solver, optionally followed by ``batched`` (systems
    step together instead of one after the other) or ``restarted`` (in two parts).
    """

    texts: list[str]
    question: str
    path: str
    nudge: float = 0.0


def solver(name: str) -> Any:
    """The solver for a question about a motion."""
    import jfric

    limits: dict[str, Any] = {"max_steps": 4000, "max_events": EVENTS, "adjoint": "none"}
    made: dict[str, Callable[[], Any]] = {
        "event-driven": lambda: jfric.EventDriven(**limits),
        "general": lambda: jfric.EventDriven(kernel="general", **limits),
        "lowered": lambda: jfric.EventDriven(kernel="lowered", **limits),
        "runge-kutta": lambda: jfric.EventDriven(flow="runge-kutta", **limits),
        "loose": lambda: jfric.EventDriven(flow="runge-kutta", rtol=1e-4, **limits),
        "moreau-jean": lambda: jfric.MoreauJean(dt=2e-3),
        "quasi-static": lambda: jfric.QuasiStatic(increments=100),
        "smoothed": lambda: jfric.Smoothed(width=1e-2, max_steps=20_000),
    }
    return made[name]()


def question(name: str) -> Callable[[Any], dict[str, Any]]:
    """A traceable function of a problem that returns arrays by name."""
    import jax.numpy as jnp

    import jfric

    if name == "equilibria":
        return lambda p: _named(
            jfric.equilibria(p), "count unresolved exists mode q lambda_t lambda_n"
        )
    if name == "rest":
        return lambda p: _named(
            jfric.equilibria(p, meaning="rest"), "count exists q_low q_high lambda_t_low"
        )
    if name == "orbit":
        return lambda p: _named(
            jfric.periodic_orbit(p), "status flags event_count period state multipliers"
        )
    asked, _, way = name.partition(" ")
    chosen = solver(asked)
    first = OUTPUTS < RESTART

    def restarted(problem: Any) -> dict[str, Any]:
        end = problem.time.end
        one = jfric.simulate(problem, chosen, ts=OUTPUTS[first] * end, end=RESTART * end)
        two = jfric.simulate(problem, chosen, start=one.final, ts=OUTPUTS[~first] * end)
        found = {k: jnp.concatenate([getattr(one, k), getattr(two, k)]) for k in ("q", "v")}
        status = jnp.where(one.status == 0, two.status, one.status)
        return found | {"status": status, "flags": one.flags | two.flags}

    def motion(problem: Any) -> dict[str, Any]:
        if way == "restarted":
            return restarted(problem)
        r = jfric.simulate(problem, chosen, ts=jnp.asarray(OUTPUTS) * problem.time.end)
        found = _named(r, "status flags q v z lambda_n lambda_t mode segment")
        events = _named(r.events, "count time contact from_mode to_mode impact")
        return found | {f"events.{k}": v for k, v in events.items()}

    return motion


def _in_rows(one: Callable, stacked: list) -> Any:
    """Result of ``one`` for all systems, in rows that step together."""
    import jax

    rows = stacked[0].shape[0] // ROW
    found = jax.lax.map(jax.vmap(one), [x.reshape(rows, ROW, *x.shape[1:]) for x in stacked])
    return jax.tree.map(lambda x: x.reshape(rows * ROW, *x.shape[2:]), found)


def _named(result: Any, names: str) -> dict[str, Any]:
    # Commits without one of these fields are compared by the others.
    return {k: getattr(result, k) for k in names.split() if hasattr(result, k)}


def answers(job: Job) -> tuple[list[str], list[Answer]]:
    """The outcome of each system (``answered`` or the reason why not) and its arrays."""
    import jax

    outcomes, found = ["" for _ in job.texts], [Answer() for _ in job.texts]
    batches: dict[Any, list[tuple[int, list]]] = {}
    for i, text in enumerate(job.texts):
        try:
            leaves, structure = jax.tree.flatten(read(text))
        except Exception as error:
            outcomes[i] = reason(error)
            continue
        rng = np.random.default_rng(i)
        leaves = [_nudged(np.asarray(x), job.nudge, rng) for x in leaves]
        key = structure, tuple((x.shape, x.dtype) for x in leaves)
        batches.setdefault(key, []).append((i, leaves))
    for (structure, _), members in batches.items():
        asked = question(job.question)

        def one(leaves, structure=structure, asked=asked):
            return asked(jax.tree.unflatten(structure, leaves))

        together = functools.partial(
            _in_rows if job.question.endswith(" batched") else jax.lax.map, one
        )
        filled = [leaves for _, leaves in members]
        filled += filled[-1:] * (-len(filled) % ROW)
        try:
            stacked = [np.stack(x) for x in zip(*filled, strict=True)]
            computed = {k: np.asarray(v) for k, v in jax.jit(together)(stacked).items()}
        except Exception as error:
            for i, _ in members:
                outcomes[i] = reason(error)
            continue
        for row, (i, _) in enumerate(members):
            outcomes[i], found[i] = "answered", {k: v[row] for k, v in computed.items()}
    return outcomes, found


@functools.lru_cache(maxsize=128)
def read(text: str) -> Any:
    """The problem of a TOML text."""
    import jfric

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "system.toml"
        path.write_text(text, "utf-8")
        return jfric.load(path)


def _nudged(x: np.ndarray, nudge: float, rng: np.random.Generator) -> np.ndarray:
    if not nudge or not np.issubdtype(x.dtype, np.floating):
        return x
    return x * (1.0 + nudge * rng.uniform(-1.0, 1.0, x.shape))


def reason(error: Exception) -> str:
    """The reason for a missing answer: a refusal with a sentence, or another error."""
    kind = type(error).__name__
    words = str(error).strip().splitlines() or [""]
    # The file named in a refusal is a temporary one.
    sentence = words[0].split("system.toml: ")[-1][:300]
    return f"refused: {sentence}" if kind == "ProblemError" else f"traceback: {kind}: {sentence}"


def save(path: str, outcomes: list[str], found: list[Answer]) -> None:
    """Write answers so that a killed process leaves no incomplete file."""
    arrays: dict[str, Any] = {
        f"{i}/{k}": v for i, answer in enumerate(found) for k, v in answer.items()
    }
    with open(f"{path}.part", "wb") as file:
        np.savez(file, outcomes=np.array(outcomes), **arrays)
    os.replace(f"{path}.part", path)


def loaded(path: str | os.PathLike[str]) -> tuple[list[str], list[Answer]]:
    """Outcomes and answers from a file."""
    with np.load(path) as table:
        outcomes = [str(x) for x in table["outcomes"]]
        found = [Answer() for _ in outcomes]
        for key in table.files:
            number, _, name = key.partition("/")
            if name:
                found[int(number)][name] = table[key]
    return outcomes, found


def main() -> None:
    """Answer jobs until there are none; the first line names this version of jfric."""
    channel = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    from jfric.numerics.compilation import compile_quickly, use_compilation_cache

    compile_quickly()
    import jax

    import jfric

    jax.config.update("jax_enable_x64", True)
    use_compilation_cache()
    print(json.dumps(os.path.dirname(os.path.dirname(jfric.__file__))), file=channel, flush=True)
    for line in sys.stdin:
        job = Job(**json.loads(line))
        save(job.path, *answers(job))
        # Programs of other structures are no longer needed.
        jax.clear_caches()
        print("done", file=channel, flush=True)


if __name__ == "__main__":
    main()
