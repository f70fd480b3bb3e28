"""Tiles of a sweep on a Dask cluster: the workers compute, this process writes."""

from __future__ import annotations

import contextlib
import functools
import itertools
import pickle
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from jfric.errors import ProblemError, first_line
from jfric.optional import import_package
from jfric.sweeps.design import Design
from jfric.sweeps.runner import Job, Results, Runner
from jfric.sweeps.tiles import Layout, Tile

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
