"""One run of a configuration, with separate times for compilation and computation."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from jfric.errors import ProblemError
from jfric.files.config import Config, time_span
from jfric.results.quantity import Quantity
from jfric.results.solution import Solution, reached
from jfric.solvers.base import AbstractSolver
from jfric.verification.evaluate import Trajectory, evaluate
from jfric.verification.job_lists import output_times
from jfric.verification.jobs import padded, single_motion
from jfric.verification.result import Result, compare
from jfric.verification.system_checks import is_static, system_jobs, system_results

#: Number of evenly spaced times of a smooth figure. Every run has them, so that runs with and
#: without a figure are the same compiled program.
FIGURE_POINTS = 2001
#: The number of times is a multiple of this one, so that another end is no other program.
TIMES = 512


@dataclass(frozen=True)
class Outcome:
    """Outcome of a run, up to the time reached. ``solution`` also holds the times of checks and of
    a figure; ``rows``: indices of the requested outputs among all times."""

    solution: Solution
    rows: np.ndarray
    checks: list[Result]
    compile_seconds: float
    run_seconds: float
    further: dict[str, float]


def run_config(
    config: Config,
    solver: AbstractSolver,
    announce: Callable[[str], None] = lambda stage: None,
    *,
    judged: bool = True,
    further: Sequence[Quantity] = (),
) -> Outcome:
    """Simulate ``config`` and evaluate its checks and ``further`` quantities; ``announce`` is
    called with each stage.

    Checks that are not ``judged`` are computed, too, because other numbers are no other program.
    """
    outputs = np.unique(config.times())
    start_time, end_time = time_span(config.problem)
    if outputs.size and not start_time <= outputs[0] <= outputs[-1] <= end_time:
        raise ProblemError(
            f"time.outputs: found times from {outputs[0]:g} s to {outputs[-1]:g} s, they must lie "
            f"inside the time span from {start_time:g} s to {end_time:g} s"
        )
    solver.require_duration(end_time - start_time)
    checks = [check for check in config.checks if not is_static(check)]
    ts = np.union1d(outputs, output_times(config, [c.quantity for c in checks]))
    ts = np.union1d(ts, np.linspace(start_time, end_time, FIGURE_POINTS))
    ts = padded(ts, -(-ts.size // TIMES) * TIMES)

    announce("compiling")
    start = time.perf_counter()
    problem = jax.tree.map(jnp.asarray, config.problem)
    quantities = (*(check.quantity for check in checks), *further)
    call = single_motion.ready(problem, jnp.asarray(ts), solver, quantities)
    compile_seconds = time.perf_counter() - start
    announce("running")
    start = time.perf_counter()
    found = jax.block_until_ready(call())
    run_seconds = time.perf_counter() - start
    trajectory = Trajectory(config.problem, *jax.tree.map(np.asarray, found))
    judged_at_rest = tuple(filter(is_static, config.checks)) if judged else ()
    static = system_jobs(Path(config.path).stem, config, judged_at_rest)
    known = reached(trajectory.solution)
    return Outcome(
        solution=known,
        rows=np.flatnonzero(np.isin(known.ts, outputs)),
        checks=[
            *(
                compare(c.quantity, c.expected, trajectory, tolerance=c.allowed, source=c.source)
                for c in (checks if judged else ())
            ),
            *(result for job in static for result in system_results(job)[1]),
        ],
        compile_seconds=compile_seconds,
        run_seconds=run_seconds,
        further={str(q): evaluate(q, trajectory) for q in further},
    )
