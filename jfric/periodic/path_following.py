"""A path of orbits that is followed and kept, from its beginning or from where it was left."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from jfric.periodic.follower import Follower
from jfric.periodic.lockstep import Computation
from jfric.periodic.path import OrbitPoint
from jfric.periodic.path_kernel import Kernel, PathPoint
from jfric.periodic.path_resume import state_of
from jfric.periodic.response_curve import joined

#: Orbits after which a path is kept on disk.
KEPT = 20


@dataclasses.dataclass(frozen=True)
class Rows:
    """Rows of a path: the columns of a curve, and further ones."""

    columns: dict[str, Any]
    more: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.columns["parameter"])

    def followed_by(self, other: Rows) -> Rows:
        """These rows and then others."""
        more = {k: np.concatenate([x, other.more[k]]) for k, x in self.more.items()}
        return Rows(joined([self.columns, other.columns]), more)


class Part(NamedTuple):
    """Part of a path that was interrupted: its rows and special points, and the ``state`` from
    which the path goes on."""

    rows: Rows
    special: list[OrbitPoint]
    state: dict[str, np.ndarray]


#: Takes what there is of a path.
Keep = Callable[[Rows, list[OrbitPoint], dict[str, np.ndarray]], None]


def followed(
    begin: tuple[Kernel, PathPoint, float],
    limits: tuple[float, float],
    max_step: float,
    max_steps: int,
    rows_of: Callable[[list[PathPoint]], Rows],
    *,
    before: Part | None = None,
    keep: Keep | None = None,
    watch: Callable[[float, int], None] | None = None,
) -> Computation[tuple[Rows, list[OrbitPoint], list[str]]]:
    """All rows of a path, its special points and remarks.

    ``begin``: the equations, the first point and the first step, of a path that goes on those of
    its last row; ``before``: what there was of it. ``keep`` is given what there is every ``KEPT``
    rows, and where the path is interrupted; ``watch`` is told after each step how far it has come,
    as a part of the interval, and the number of rows.
    """
    kernel, point, step = begin
    start, stop = limits
    # The row that a path goes on from is there already.
    again = 0 if before is None else 1
    offset = 0 if before is None else len(before.rows) - again
    furthest, following, last_kept = 0.0, step, 0

    def gathered(follower: Follower) -> tuple[Rows, list[OrbitPoint]]:
        if before is None:
            return rows_of(follower.rows), follower.special
        found = [dataclasses.replace(p, row=p.row + offset) for p in follower.special]
        new = follower.rows[again:]
        rows = before.rows.followed_by(rows_of(new)) if new else before.rows
        return rows, [*before.special, *found]

    def kept(follower: Follower) -> None:
        if keep is not None and len(follower.rows) > 1:
            state = state_of(follower.kernel, follower.rows[-1], following)
            keep(*gathered(follower), state)

    def told(follower: Follower, step: float) -> None:
        nonlocal furthest, following, last_kept
        following = step
        part = (follower.rows[-1].parameter - start) / (stop - start)
        furthest = max(furthest, min(part, 1.0))
        if watch is not None:
            watch(furthest, offset + len(follower.rows))
        if len(follower.rows) - last_kept >= KEPT:
            kept(follower)
            last_kept = len(follower.rows)

    follower = Follower(kernel, limits, max_step, max_steps - offset - again, told)
    try:
        yield from follower.follow(point, step)
    except (KeyboardInterrupt, GeneratorExit):
        kept(follower)
        raise
    return *gathered(follower), follower.remarks
