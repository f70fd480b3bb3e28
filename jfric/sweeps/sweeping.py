"""``jfric.sweep``: many trajectories, from parameter values to a labelled table."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np

from jfric.errors import ProblemError
from jfric.files.output import versions
from jfric.numerics.compilation import platform
from jfric.numerics.cores import MANY, cores, warn_idle_cores
from jfric.numerics.limits import DEVICES, TRAJECTORIES, require_count, require_sizes
from jfric.optional import import_xarray
from jfric.results.abstract_observables import Observable, own_run
from jfric.results.grammar import as_observables
from jfric.results.status import Status
from jfric.solvers.base import AbstractSolver, require_solver
from jfric.solvers.event_driven.solver import EventDriven
from jfric.solvers.simulation import warn_without_time
from jfric.sweeps.design import Design, by_path, check_values, make_design
from jfric.sweeps.observing import is_extreme, needs_log
from jfric.sweeps.progress import Progress
from jfric.sweeps.runner import Job, Results, Runner, on_cluster
from jfric.sweeps.table import (
    MemoryTable,
    Schema,
    ZarrTable,
    make_schema,
    read_layout,
    state_size,
)
from jfric.sweeps.tiles import PILOT, PILOT_PASSES, Layout, Tile, refined, start_layout
from jfric.system.expression import Expression
from jfric.system.model import build
from jfric.system.naming import path_dimension
from jfric.system.problem import Problem

if TYPE_CHECKING:
    import xarray

#: Bytes that all results together may take in memory.
LARGEST_IN_MEMORY = 8e9


def sweep(
    problem: Problem,
    vary: Mapping[str, Any],
    observe: str | Sequence[str | Observable] | Mapping[str, Observable | str],
    *,
    method: str = "grid",
    samples: int | None = None,
    seed: int = 0,
    times: Any = None,
    solver: AbstractSolver | None = None,
    store: str | os.PathLike[str] | None = None,
    chunk: int | None = None,
    block: int | None = None,
    devices: int | None = None,
    workers: int | None = None,
    scheduler: str | None = None,
    progress: bool | None = None,
    command: str = "",
) -> xarray.Dataset:
    """Simulate ``problem`` for many parameter values and return the observables as a table.

    ``vary``: parameter path to values [SI]: an array, or :class:`jfric.Range`. ``method``:
    ``"grid"`` (all combinations, one axis each), ``"zip"`` (in parallel), or ``samples`` points
    drawn from ranges: ``"random"``, ``"sobol"``, ``"latin-hypercube"``, with ``seed``.

    ``observe``: names such as ``"final.u"``, ``"max.v"``, ``"event_time(3)"``, ``"dissipated"``, or
    objects of :mod:`jfric.observables`. ``times`` [s]: those of ``"u(t)"``.

    ``solver``: :class:`jfric.EventDriven` (the default) or any other. With time stepping and
    smoothed laws, extrema and integrals come from 1,001 outputs and the events.

    ``store``: folder of a Zarr store. Finished tiles are kept there; the same call continues after
    an interruption, with bitwise equal results. Without ``store`` the table is in memory.

    ``chunk``: trajectories that step together; ``block``: those stored together; ``devices``:
    number of local devices (default: all). ``workers``: number of local processes to use instead,
    through Dask; ``scheduler``: address of a Dask cluster, or its scheduler file. ``progress``:
    show a bar (by default on a terminal). ``command``: text of the call, kept with the results.

    The table (an ``xarray.Dataset``, one axis for each varied parameter, named by its full path)
    holds the observables with their units (NaN where a trajectory failed), and for each trajectory
    ``status``, ``flags`` and ``steps``. Raises :class:`ProblemError` for bad input before anything
    is computed. With the problem of :class:`jfric.Problem`::

        >>> table = jfric.sweep(problem, {"friction.mu": [0.1, 0.2]}, "max.u", progress=False)
        >>> table["max.u"].dims, table["max.u"].values.round(6).tolist()
        (('friction.mu',), [0.56, 0.52])
    """
    prepared = prepare(
        problem,
        vary,
        observe,
        method=method,
        samples=samples,
        seed=seed,
        times=times,
        solver=solver,
        command=command,
    )
    table, _ = execute(
        prepared,
        store=store,
        chunk=chunk,
        block=block,
        devices=devices,
        workers=workers,
        scheduler=scheduler,
        progress=progress,
    )
    return table.dataset()


class Prepared(NamedTuple):
    """A sweep that was checked, with all names resolved."""

    job: Job
    design: Design
    schema: Schema
    identity: dict[str, Any]


class Summary(NamedTuple):
    """Summary of an execution: trajectories computed, how many of each status, and time [s]."""

    computed: int
    statuses: np.ndarray
    seconds: float


def prepare(
    problem: Problem,
    vary: Mapping[str, Any],
    observe: Any,
    *,
    method: str = "grid",
    samples: int | None = None,
    seed: int = 0,
    times: Any = None,
    solver: AbstractSolver | None = None,
    config: str | None = None,
    title: str = "",
    command: str = "",
    point_command: str = "",
) -> Prepared:
    """Check all parts of a sweep; see :func:`sweep`.

    ``config``: the system as TOML text (by default written from ``problem``). The results store
    ``command``, that of the sweep, and ``point_command``, which computes a point once the varied
    parameters are set.
    """
    problem = build(problem)
    import_xarray()
    design = make_design(by_path(problem, vary), method, samples, seed)
    # Where the end is varied, values at times that a trajectory does not reach are not numbers.
    varied = "time.end" in design.names or isinstance(problem.time.end, Expression)
    observables = tuple(as_observables(problem, observe, times, np.inf if varied else None))
    if not varied and own_run(observables) is None:
        warn_without_time(problem)
    for observable in observables:
        if observable.name in design.names:
            raise ProblemError(f"observe: {observable.name!r} is the name of a varied parameter")
    solver = _without_derivatives(solver if solver is not None else EventDriven(), observables)
    require_sizes(solver)
    solver.require(problem)
    check_values(problem, design, solver)
    solver = solver.for_batch(problem, design.size)
    job = Job(problem, design.names, observables, solver)
    settings: dict[str, Any] = {"name": solver.label}
    for f in dataclasses.fields(solver):  # pyright: ignore[reportArgumentType]
        value = getattr(solver, f.name)
        plain = isinstance(value, bool | int | float | str | None)
        settings[f.name] = value if plain else repr(value)
    text = config if config is not None else _as_text(problem)
    units = {name: _unit(problem, name) for name in design.names}
    attributes = {
        "title": title or "sweep with jfric",
        "command": command,
        "point_command": point_command,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "method": method,
        "parameters": list(design.names),
        "observables": [o.name for o in observables],
        "trajectories": design.size,
        "solver": json.dumps(settings),
        "config": text,
        "versions": " ".join(f"{k} {v}" for k, v in versions().items()),
    }
    identity = _identity(job, design, text, settings)
    return Prepared(job, design, make_schema(job, design, units, attributes), identity)


def execute(
    prepared: Prepared,
    *,
    store: str | os.PathLike[str] | None = None,
    chunk: int | None = None,
    block: int | None = None,
    devices: int | None = None,
    workers: int | None = None,
    scheduler: str | None = None,
    progress: bool | None = None,
) -> tuple[MemoryTable | ZarrTable, Summary]:
    """Compute the missing tiles; see :func:`sweep`."""
    job, design, schema, identity = prepared
    for name, value in (("chunk", chunk), ("block", block), ("workers", workers)):
        if value is not None:
            require_count(name, value, 1, DEVICES if name == "workers" else TRAJECTORIES)
    if workers is not None and scheduler is not None:
        raise ProblemError("workers: a cluster at 'scheduler' has its own; give one of the two")
    path = None if store is None else Path(store)
    layout = None if path is None else read_layout(path, identity)
    if layout is not None:
        devices = layout.devices
    away = workers is not None or scheduler is not None
    # By default one device for each process of a cluster.
    by_itself = devices is None and not away
    devices = _devices(1 if away and devices is None else devices)
    if path is None and design.size * schema.lane_bytes > LARGEST_IN_MEMORY:
        raise ProblemError(
            f"vary: found {design.size} points, their results take "
            f"{design.size * schema.lane_bytes / 1e9:.0f} GB; give 'store' a folder to write to"
        )
    if by_itself and jax.default_backend() == "cpu" and devices < cores() and design.size >= MANY:
        warn_idle_cores(devices, cores())
    with Progress(design.size, progress) as bar:
        runner = None
        if layout is None:
            layout, runner = _new_layout(prepared, devices, chunk, block)
        if path is None:
            table = MemoryTable(schema, layout)
        else:
            table = ZarrTable(path, schema, layout, identity)
        waiting = table.unfinished()
        there = design.size - sum(t.last - t.first for t in waiting)
        bar.show(there, design.size, "compiling", "")
        if away:
            results = on_cluster(job, layout, design, waiting, workers, scheduler)
        else:
            results = _locally(runner or Runner(job, layout), design, waiting)
        statuses = np.zeros(len(Status), int)
        computed = 0
        for tile, found in results:
            table.write(tile, found)
            statuses += np.bincount(found["status"], minlength=len(Status))
            computed += tile.last - tile.first
            bar.show(there + computed, design.size, "sweep")
        return table, Summary(computed, statuses, bar.seconds)


def _identity(job: Job, design: Design, text: str, settings: dict[str, Any]) -> dict[str, Any]:
    """Data that identify this sweep: only the same one may continue in a store."""
    return {
        "system": hashlib.sha256(_fingerprint(job.problem, text)).hexdigest(),
        "values": design.describe(),
        "observables": [repr(o) for o in job.observables],
        "solver": settings,
        "type": str(jax.numpy.result_type(float)),
    }


def _without_derivatives(solver: AbstractSolver, observables: tuple) -> AbstractSolver:
    """The solver without derivatives, with a log only where the observables need one."""
    require_solver(solver)
    of_events = [o.name for o in observables if needs_log(o)]
    if of_events and not solver.logs_events:
        raise ProblemError(
            f"observe: found {of_events[0]!r}, but the solver {solver.label} has no changes of mode"
        )
    logged = of_events or any(is_extreme(o) for o in observables)
    solver = solver.lean(events=bool(logged) and not solver.has_polynomials)
    # Plain numbers: a program is compiled for one solver.
    return jax.tree.map(lambda x: x.item() if hasattr(x, "item") else x, solver)


def _locally(
    runner: Runner, design: Design, waiting: Sequence[Tile]
) -> Iterator[tuple[Tile, Results]]:
    """Tiles in order with their results; the next is being computed while one is written."""
    launched = ((tile, runner.launch(design.values(tile.first, tile.last))) for tile in waiting)
    for (tile, running), _ in pairwise(chain(launched, [None])):  # pyright: ignore
        yield tile, runner.collect(running)


def _new_layout(
    prepared: Prepared, devices: int, chunk: int | None, block: int | None
) -> tuple[Layout, Runner | None]:
    """Layout of a new table, and the runner of a trial where that pays."""
    job, design, schema, _ = prepared
    layout = start_layout(
        design.shape,
        devices=devices,
        platform=platform(),
        small=job.solver.has_small_passes(job.problem),
        chunk=chunk,
        block=block,
        max_steps=job.most_passes,
        lane_bytes=schema.lane_bytes,
    )
    if job.most_passes <= 1 or design.size <= max(4 * layout.lanes * devices, 16 * PILOT):
        return layout, None
    runner, most = Runner(job, layout), job.solver.max_steps
    # Trajectories spread over the whole sweep.
    count = min(PILOT, layout.devices * layout.rows * layout.lanes)
    trajectories = ((np.arange(count) + 0.5) / count * design.size).astype(np.int64)
    values = np.concatenate([design.values(i, i + 1) for i in trajectories.tolist()])
    steps = runner.trial(values, min(most, PILOT_PASSES))["steps"]
    runner.layout = refined(layout, design.shape, steps, state_size(job.problem), most, block)
    return runner.layout, runner


def _devices(wanted: int | None) -> int:
    available = len(jax.local_devices())
    if wanted is None:
        return available
    if not 1 <= wanted <= available:
        raise ProblemError(
            f"devices: found {wanted}, but {available} "
            f"{'is' if available == 1 else 'are'} available (on a CPU call "
            f"jfric.use_cores({max(wanted, 1)}) first)"
        )
    return wanted


def _unit(problem: Problem, name: str) -> str:
    dimension = path_dimension(problem, name)
    return dimension.unit if dimension is not None else ""


def _as_text(problem: Problem) -> str:
    from jfric.files.write_toml import to_toml

    try:
        return to_toml(problem)
    except ProblemError:
        return ""  # holds Python code, which no file can


def _fingerprint(problem: Problem, text: str) -> bytes:
    """Bytes that differ for two different systems, every bit of their numbers included."""
    leaves, structure = jax.tree.flatten(problem)
    numbers = [repr(x) if isinstance(x, Expression) else np.asarray(x).tolist() for x in leaves]
    # Python code is known by its name only.
    shape = "" if text else re.sub(r" at 0x[0-9a-f]+", "", repr(structure))
    return repr((text, shape, numbers)).encode()
