"""Cores of this machine, between which batches are divided."""

from __future__ import annotations

import functools
import os
import warnings
from collections.abc import Callable
from typing import TypeVar

import jax
import numpy as np
from jax.sharding import AxisType, Mesh, PartitionSpec

from jfric.errors import ProblemError
from jfric.numerics.limits import DEVICES, require_count

#: Number of trajectories above which idle cores deserve a warning: they cost seconds.
MANY = 4096

Shared = TypeVar("Shared", bound=Callable)


def cores() -> int:
    """Number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def use_cores(count: int | None = None) -> int:
    """Divide sweeps and other batches of jfric between ``count`` cores; returns their number.

    The default is all cores that this process may use. JAX has one device on a CPU unless it is
    configured otherwise before the first array, which this function does. ``jax.vmap`` and
    ``jax.jit`` still use one device; ``jax.devices()`` lists as many as there are cores. Raises
    :class:`jfric.ProblemError` for an impossible number, and where JAX already uses its devices and
    their number differs. Call it first in a script::

        >>> jfric.compile_quickly()
        >>> jfric.use_cores(1)
        1
    """
    if count is not None:
        require_count("cores", count, 1, DEVICES)
    wanted = min(cores(), DEVICES) if count is None else count
    try:
        jax.config.update("jax_num_cpu_devices", wanted)
    except RuntimeError:
        found = jax.local_device_count("cpu")
        if found != wanted:
            raise ProblemError(
                f"cores: found {wanted}, but JAX uses {found} already; call jfric.use_cores before "
                "the first array, and before a system is read"
            ) from None
    return wanted


def on_all_devices(function: Shared, split: tuple[bool, ...]) -> Shared:
    """``function`` of batches with an equal share of rows on each device, whose loops stop
    independently; ``split``: for each argument, whether it has these rows or is the same
    everywhere."""
    devices = jax.local_devices()
    if len(devices) == 1:
        return function
    mesh = Mesh(np.asarray(devices), ("rows",), axis_types=(AxisType.Auto,))
    rows, same = PartitionSpec("rows"), PartitionSpec()
    specs = tuple(rows if part else same for part in split)
    return jax.shard_map(function, mesh=mesh, in_specs=specs, out_specs=rows, check_vma=False)


@functools.cache
def warn_idle_cores(devices: int, available: int) -> None:
    """Warn once that a large batch has fewer devices than the process has cores."""
    warnings.warn(
        f"a sweep runs on {devices} of {available} cores; for all of them call jfric.use_cores() "
        "first of all (devices=1 says that one is meant)",
        stacklevel=4,  # the call of the sweep
    )
