"""Compiled program of a sweep, the separate computation of trajectories that take long, and tiles
on a Dask cluster: the workers compute, this process writes.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from jfric.errors import ProblemError, first_line
from jfric.numerics.kept_programs import Kept
from jfric.optional import import_package
from jfric.results.abstract_observables import Observable, own_run
from jfric.results.status import Status
from jfric.solvers.base import AbstractSolver
from jfric.sweeps.design import Design
from jfric.sweeps.observing import Observed, run
from jfric.sweeps.tiles import Layout, Tile
from jfric.system.naming import with_numbers
from jfric.system.problem import Problem

#: Factor of the budget of passes each time that trajectories are computed again.
GROWTH = 8

Results = dict[str, np.ndarray]


@dataclass(frozen=True)
class Job:
    """Settings for each trajectory: the problem with the parameters ``names`` set."""

    problem: Problem
    names: tuple[str, ...]
    observables: tuple[Observable, ...]
    solver: AbstractSolver

    @property
    def most_passes(self) -> int:
        """Budget of passes of a trajectory; 1 for solvers without polynomials and for observables
        that run the solver by themselves."""
        counted = self.solver.has_polynomials and own_run(self.observables) is None
        return self.solver.max_steps if counted else 1

    def shapes(self) -> Observed:
        """Shapes and types of the results of one trajectory, without computing them."""
        values = jax.ShapeDtypeStruct((len(self.names),), jnp.result_type(float))
        budget = jax.ShapeDtypeStruct((), jnp.int32)
        return _trajectory.eval_shape(
            self.problem, values, budget, self.names, self.observables, self.solver
        )


class Runner:
    """Computes trajectories of a job on the devices of this process."""

    def __init__(self, job: Job, layout: Layout):
        self.job, self.layout = job, layout
        self.devices = tuple(jax.local_devices()[: layout.devices])

    @property
    def _shape(self) -> tuple[int, int]:
        """Number of rows of a tile on all devices, and of trajectories in each."""
        return self.layout.devices * self.layout.rows, self.layout.lanes

    def _places(self, count: int, shape: tuple[int, int] | None = None) -> np.ndarray:
        """Places of trajectories in the rows: row by row, each device in turn."""
        rows, trajectories = shape or self._shape
        row = np.arange(-(-count // trajectories))
        share = rows // self.layout.devices
        row = row % self.layout.devices * share + row // self.layout.devices
        return (row[:, None] * trajectories + np.arange(trajectories)).reshape(-1)[:count]

    def launch(self, values: np.ndarray) -> tuple[np.ndarray, Any]:
        """Start computing trajectories with these parameter values; returns at once."""
        return values, self._call(values, self.layout.budget, self._shape)

    def collect(self, launched: tuple[np.ndarray, Any]) -> Results:
        """Results of launched trajectories, including those over the budget."""
        values, pending = launched
        results = _on_host(pending, self._places(values.shape[0]))
        budget, most = self.layout.budget, self.job.most_passes
        while budget < most:
            late = np.flatnonzero(results["status"] == int(Status.MAX_STEPS))
            if not late.size:
                break
            budget = min(GROWTH * budget, most)
            for part in np.split(late, range(self.tail_size, late.size, self.tail_size)):
                # In rows so small that waiting for each other costs little.
                late_ones = self.trial(values[part], budget, self._tail_shape)
                for name, found in late_ones.items():
                    results[name][part] = found
        return results

    def trial(
        self, values: np.ndarray, budget: int, shape: tuple[int, int] | None = None
    ) -> Results:
        """Results of few trajectories, after at most ``budget`` passes, by the tiles' program, or
        by that for rows of another ``shape``."""
        shape = shape or self._shape
        return _on_host(self._call(values, budget, shape), self._places(values.shape[0], shape))

    @property
    def _tail_shape(self) -> tuple[int, int]:
        """Number of rows and of trajectories in each; those of all tiles where these are as small,
        as another shape would be another program."""
        layout = self.layout
        if layout.lanes <= layout.tail_lanes:
            return self._shape
        return layout.devices * layout.tail_rows, layout.tail_lanes

    @property
    def tail_size(self) -> int:
        """Largest number of trajectories in one call of the program for late trajectories."""
        rows, trajectories = self._tail_shape
        return rows * trajectories

    def _call(self, values: np.ndarray, budget: int, shape: tuple[int, int]) -> Observed:
        """Call the program, with padding to whole rows that has no passes to spend."""
        places, (rows, trajectories) = self._places(values.shape[0], shape), shape
        filled = np.repeat(values[-1:], rows * trajectories, axis=0)
        filled[places] = values
        filled = filled.reshape(rows, trajectories, -1)
        budgets = np.zeros(rows * trajectories, int)
        budgets[places] = budget
        budgets = budgets.reshape(rows, trajectories)
        job = self.job
        where = NamedSharding(_mesh(self.devices), PartitionSpec("trajectories"))
        return _rows(
            job.problem,
            jax.device_put(filled.astype(jnp.result_type(float)), where),
            jax.device_put(budgets.astype(np.int32), where),
            job.names,
            job.observables,
            job.solver,
            self.devices,
        )


def _on_host(pending: Observed, places: np.ndarray) -> Results:
    """Results by name, without the padding."""

    def trajectories(x):
        return np.array(x).reshape(-1, *x.shape[2:])[places]

    results = {name: trajectories(x) for name, x in pending.values.items()}
    return results | {
        name: trajectories(getattr(pending, name)) for name in ("status", "flags", "steps")
    }


@functools.cache
def _mesh(devices: tuple) -> Mesh:
    return Mesh(np.asarray(devices), ("trajectories",), axis_types=(AxisType.Auto,))


@Kept
def _rows(problem, values, budgets, names, observables, solver, devices) -> Observed:
    """Observables of all rows (r, l, parameters), which are divided between the devices.

    Each device stops its loops independently: the loops share nothing.
    """

    def row(problem, part):
        def trajectory(x, budget):
            return _trajectory(problem, x, budget, names, observables, solver)

        def nothing(values, budgets):
            shapes = jax.eval_shape(jax.vmap(trajectory), values, budgets)
            return jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes)

        # Rows of padding are not computed.
        return jax.lax.cond(jnp.any(part[1] > 0), jax.vmap(trajectory), nothing, *part)

    def share(problem, values, budgets):
        if values.shape[0] == 1:
            found = row(problem, (values[0], budgets[0]))
            return jax.tree.map(lambda x: x[None], found)
        return jax.lax.map(functools.partial(row, problem), (values, budgets))

    trajectories, same = PartitionSpec("trajectories"), PartitionSpec()
    return jax.shard_map(
        share,
        mesh=_mesh(devices),
        in_specs=(same, trajectories, trajectories),
        out_specs=trajectories,
        check_vma=False,
    )(problem, values, budgets)


@functools.partial(jax.jit, static_argnums=(3, 4, 5))
def _trajectory(problem, x, budget, names, observables, solver) -> Observed:
    values: Mapping[str, Any] = {name: x[i] for i, name in enumerate(names)}
    return run(with_numbers(problem, values), observables, solver, budget)


#: Time that a scheduler may take to answer.
PATIENCE = "10s"
#: Tiles in progress for each thread: one is computed while the next waits.
AHEAD = 2


def on_cluster(
    job: Job,
    layout: Layout,
    design: Design,
    waiting: Sequence[Tile],
    workers: int | None,
    scheduler: str | None,
) -> Iterator[tuple[Tile, Results]]:
    """Finished tiles with results, by ``workers`` local processes or the cluster at ``scheduler``.

    If a worker is lost, another one computes its tile.
    """
    distributed = import_package("distributed", "workers: a cluster", "cluster")
    # Functions of the user's script are included.
    import cloudpickle

    package = cloudpickle.dumps(job)
    with _connected(distributed, workers, scheduler) as client:
        tiles = iter(waiting)

        def submit(tile: Tile):
            values = design.values(tile.first, tile.last)
            task = client.submit(
                compute,
                package,
                layout,
                values,
                bool(jax.config.read("jax_enable_x64")),
                pure=False,
            )
            running[task] = tile
            return task

        def more() -> list[Any]:
            # Workers may come and go.
            threads = max(sum(client.nthreads().values()), workers or 1)
            return [
                submit(t) for t in itertools.islice(tiles, max(AHEAD * threads - len(running), 0))
            ]

        running: dict[Any, Tile] = {}
        finished = distributed.as_completed(more())
        for task in finished:
            tile = running.pop(task)
            try:
                results = task.result()
            except (distributed.KilledWorker, distributed.CancelledError) as error:
                raise ProblemError(
                    f"scheduler: a tile was lost with its workers again and again ({error}); "
                    "tiles that are finished are kept, the same call goes on from there"
                ) from error
            for following in more():
                finished.add(following)
            yield tile, results


def compute(package: bytes, layout: Layout, values: np.ndarray, x64: bool) -> Results:
    """Results of one tile, computed in a worker."""
    runner = _runner(package, layout, x64)
    return runner.collect(runner.launch(values))


@functools.lru_cache(maxsize=4)
def _runner(package: bytes, layout: Layout, x64: bool) -> Runner:
    from jfric.numerics.compilation import use_compilation_cache

    jax.config.update("jax_enable_x64", x64)
    if layout.devices > 1:
        with contextlib.suppress(RuntimeError):  # the worker has begun to use its devices
            jax.config.update("jax_num_cpu_devices", layout.devices)
    use_compilation_cache()
    found = len(jax.local_devices())
    if found < layout.devices:
        raise ProblemError(
            f"devices: the sweep is laid out for {layout.devices} devices in each process, "
            f"a worker has {found}"
        )
    return Runner(pickle.loads(package), layout)


@contextlib.contextmanager
def _connected(distributed: Any, workers: int | None, scheduler: str | None) -> Iterator[Any]:
    if scheduler is not None:
        # Schedulers of batch systems leave their address in a file.
        where = (
            {"scheduler_file": scheduler} if Path(scheduler).is_file() else {"address": scheduler}
        )
        try:
            client = distributed.Client(**where, timeout=PATIENCE)
        except Exception as error:  # whatever Dask says of an address or a damaged file
            raise ProblemError(
                f"scheduler: no Dask scheduler answers at {scheduler!r} ({first_line(error)})"
            ) from None
        with client:
            yield client
        return
    with (
        distributed.LocalCluster(
            n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client
