"""Layout of a sweep: tiles of its table, rows of trajectories that step together.

One call of the compiled program computes a tile, and one chunk of the stored arrays contains it. In
a tile, each device computes its rows one after another; the trajectories of a row share a loop. The
layout is stored with the results, so that a resumed sweep computes each trajectory exactly as
before.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from jfric.numerics.compilation import Platform

#: Vectorised arithmetic may round differently in batches smaller than this.
SHORTEST_ROW = 8
#: Passes times state size that a tile takes: about a second of work for each device.
TILE_WORK = 4e6
#: Bytes of results that one tile may hold.
TILE_BYTES = 2.0e8
#: Every row with a late trajectory runs up to the budget: a wide margin costs more than it saves.
MARGIN = 1.15
#: Number of trajectories of the first trial of passes, and largest number of their passes.
PILOT, PILOT_PASSES = 256, 20_000


@dataclass(frozen=True)
class Layout:
    """Shape of a tile, and of the programs that compute it on ``devices`` devices.

    Each device computes ``rows`` rows of ``lanes`` trajectories. A trajectory that needs more than
    ``budget`` passes is computed again in ``tail_rows`` rows of ``tail_lanes``.
    """

    tile: tuple[int, ...]
    devices: int
    rows: int
    lanes: int
    tail_rows: int
    tail_lanes: int
    budget: int


class Tile(NamedTuple):
    """A part of the table: its slices, and its trajectories ``first`` to ``last - 1``."""

    index: int
    region: tuple[slice, ...]
    first: int
    last: int


def tile_shape(shape: tuple[int, ...], most: int) -> tuple[int, ...]:
    """Shape of tiles of at most ``most`` trajectories, contiguous in their order."""
    tile = [1] * len(shape)
    room = max(most, 1)
    for axis in reversed(range(len(shape))):
        parts = math.ceil(shape[axis] / room)
        tile[axis] = math.ceil(shape[axis] / parts)
        if parts > 1:
            break
        room //= tile[axis]
    return tuple(tile)


def tiles(shape: tuple[int, ...], tile: tuple[int, ...]) -> list[Tile]:
    """All tiles of a table."""
    counts = [range(math.ceil(n / m)) for n, m in zip(shape, tile, strict=True)]
    result = []
    for index, corner in enumerate(itertools.product(*counts)):
        region = tuple(
            slice(i * m, min((i + 1) * m, n)) for i, m, n in zip(corner, tile, shape, strict=True)
        )
        first = int(np.ravel_multi_index([r.start for r in region], shape))
        size = math.prod(r.stop - r.start for r in region)
        result.append(Tile(index, region, first, first + size))
    return result


def start_layout(
    shape: tuple[int, ...],
    *,
    devices: int,
    platform: Platform,
    small: bool,
    chunk: int | None,
    block: int | None,
    max_steps: int,
    lane_bytes: int,
) -> Layout:
    """Layout of a table of ``shape`` before anything is known of its trajectories.

    ``small``: whether a pass holds few numbers of each trajectory; ``chunk``: trajectories of a
    row; ``block``: largest tile; by default from the platform and the size of the results.
    """
    size = math.prod(shape)
    pays = platform.small_row if small else platform.row
    most = pays if chunk is None else chunk
    # Powers: a table of another size is the same program, and empty rows cost nothing.
    trajectories = min(most, _power(2, math.ceil(size / devices)))
    trajectories = SHORTEST_ROW * math.ceil(trajectories / SHORTEST_ROW)
    together = trajectories * devices
    if block is None:
        block = max(min(platform.rows, int(TILE_BYTES / (lane_bytes * together))), 1) * together
    tile = tile_shape(shape, block)
    rows = math.ceil(math.prod(tile) / together)
    rows = min(_power(4, rows), math.ceil(block / together))
    return Layout(tile, devices, rows, trajectories, *platform.tail, max_steps)


def _power(base: int, count: int) -> int:
    """The smallest power of ``base`` that is not below ``count``."""
    return base ** next(k for k in itertools.count() if base**k >= count)


def refined(
    layout: Layout,
    shape: tuple[int, ...],
    steps: np.ndarray,
    state_size: int,
    max_steps: int,
    block: int | None,
) -> Layout:
    """Layout with a budget of passes, and tiles of about a second, from the passes ``steps`` of
    some trajectories. The shape of the program stays."""
    tile = layout.tile
    if block is None:
        together = layout.lanes * layout.devices
        work = max(float(np.mean(steps)), 1.0) * state_size
        rows = 2 ** math.ceil(math.log2(max(TILE_WORK / (work * layout.lanes), 1.0)))
        tile = tile_shape(shape, min(rows, layout.rows) * together)
    return dataclasses.replace(layout, tile=tile, budget=choose_budget(steps, max_steps))


def choose_budget(steps: np.ndarray, max_steps: int) -> int:
    """Number of passes after which a row no longer waits for its last trajectories.

    All trajectories of a row take as many passes as its slowest; those over the budget are computed
    again from the start, separately. The budget minimises the sum for the trajectories seen, with
    a margin.
    """
    candidates = np.unique(steps)
    costs = [c + 2.0 * np.mean(np.where(steps > c, steps, 0)) for c in candidates]
    best = float(candidates[int(np.argmin(costs))])
    return int(min(math.ceil(MARGIN * best) + 2, max_steps))
