"""Following of a path of orbits, from its beginning or from where it was interrupted: its rows, and
the state from which it goes on."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jfric.errors import ProblemError
from jfric.periodic.follower import Follower
from jfric.periodic.guess import no_phase
from jfric.periodic.linearised import Scales
from jfric.periodic.lockstep import Computation
from jfric.periodic.path import OrbitPoint
from jfric.periodic.path_kernel import Kernel, PathPoint, corrected, kernel_of, stacked
from jfric.periodic.path_store import NUMBERS, SLOPE, Part, Rows, Store
from jfric.periodic.shooting import Phase, Shooting, Unknowns
from jfric.periodic.special_points import slope
from jfric.system.problem import Problem

#: Number of orbits after which a path is saved on disk.
KEPT = 20


def followed(
    begin: tuple[Kernel, PathPoint, float],
    limits: tuple[float, float],
    max_step: float,
    max_steps: int,
    rows_of: Callable[[list[PathPoint]], Rows],
    *,
    store: Store | None = None,
    number: int = 0,
    watch: Callable[[float, int], None] | None = None,
) -> Computation[tuple[Rows, list[OrbitPoint], list[str]]]:
    """All rows of a path, its special points and remarks.

    ``begin``: the equations, the first point and the first step; a continued path goes on from the
    equations of its last row. ``store``: keeps the path of this ``number`` every ``KEPT`` rows, and
    where it is interrupted; its earlier part may be there. ``watch`` is called after each step with
    the covered part of the interval and the number of rows.
    """
    before = None if store is None else store.begun(number)
    kernel, point, step = begin
    start, stop = limits
    # The row from which a path goes on exists already.
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
        if store is not None and len(follower.rows) > 1:
            state = state_of(follower.kernel, follower.rows[-1], following)
            store.keep_part(number, Part(*gathered(follower), state))

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


def state_of(kernel: Kernel, last: PathPoint, step: float) -> dict[str, np.ndarray]:
    """The ``last`` point of a path, the numbers of its equations, and the next step."""
    kept = {
        "last_tangent": last.tangent * last.sizes / kernel.sizes,
        "last_step": np.asarray(step),
        "begins_last": np.asarray(last.orbit.problem.time.start),
    }
    parts = (("last", last.z), ("scales", kernel.scales), ("phase", last.phase))
    return kept | {
        f"{name}_{key}": np.asarray(value)
        for name, part in parts
        for key, value in part._asdict().items()
    }


def resumed(
    shooting: Shooting, problem: Problem, kept: dict[str, np.ndarray]
) -> Computation[tuple[Kernel, PathPoint, float]]:
    """The equations, the point and the next step with which a path goes on; ``problem``: the one at
    the beginning of the path."""
    scales = Scales(*(jnp.asarray(kept[f"scales_{k}"], float) for k in Scales._fields))
    begins = jnp.asarray(kept["begins_last"], float)
    problem = eqx.tree_at(lambda p: p.time.start, problem, begins)
    kernel = kernel_of(shooting, problem, scales)
    z = Unknowns(*(jnp.asarray(kept[f"last_{k}"], float) for k in Unknowns._fields))
    phase = no_phase(z.states.shape[1])
    if "phase_event" in kept:  # earlier versions saved motions under loads only
        phase = Phase(*(jnp.asarray(kept[f"phase_{k}"]) for k in Phase._fields))
    tangent = kept["last_tangent"]
    point = yield from corrected(kernel, z, phase, tangent)
    if point is None:
        raise ProblemError("store: the last orbit that was kept is none of this problem")
    return kernel, point.along(tangent), float(kept["last_step"])


def rows_of(points: list[PathPoint], size: int) -> Rows:
    """Rows of points of a path; ``size``: of a state."""

    def table(values, *shape, dtype: Any = float):
        return np.asarray(values, dtype).reshape(len(points), *shape)

    orbits = [point.orbit for point in points]
    columns = {
        "parameter": table([p.parameter for p in points]),
        "period": table([o.period for o in orbits]),
        "begins": table([o.problem.time.start for o in orbits]),
        "state": table([np.asarray(o.state) for o in orbits], size),
        "multipliers": table([p.multipliers for p in points], size, dtype=complex),
        "flags": table([o.flags for o in orbits], dtype=int),
        "events": tuple(p.events for p in points),
    }
    return Rows(columns)


def rows_of_path(points: list[PathPoint]) -> Rows:
    """Rows of points with slopes, and with the complete orbits."""
    orbits = stacked(points)
    numbers = {f"{NUMBERS}{i:04d}": np.asarray(x) for i, x in enumerate(jax.tree.leaves(orbits))}
    columns = rows_of(points, orbits.state.shape[-1]).columns
    return Rows(columns, {SLOPE: np.stack([slope(p) for p in points]), **numbers})
