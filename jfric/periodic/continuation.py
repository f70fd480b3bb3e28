"""``continue_orbit``: periodic motions over a parameter, through folds and changes of events; how a
path goes on from where it was interrupted."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jfric.errors import ProblemError
from jfric.numerics.limits import require_count, require_part
from jfric.periodic.follower import FIRST, LONGEST, Follower
from jfric.periodic.guess import no_phase
from jfric.periodic.linearised import Scales
from jfric.periodic.orbit import PeriodicOrbit
from jfric.periodic.path import NUMBERS, SLOPE, OrbitPath, OrbitPoint, Part, Rows, Store, request_of
from jfric.periodic.path_kernel import (
    Computation,
    Kernel,
    PathPoint,
    alone,
    corrected,
    kernel_of,
    stacked,
)
from jfric.periodic.path_start import PathProblem, branched, first_point
from jfric.periodic.shooting import Phase, Shooting, Unknowns
from jfric.periodic.special_points import slope
from jfric.periodic.state_vector import axes_of
from jfric.statics.path_names import checked_interval, checked_path
from jfric.system.model import build
from jfric.system.problem import Problem

#: Number of orbits after which a path is saved on disk.
KEPT = 20


class Following(NamedTuple):
    """How paths are followed: in steps of at most ``max_step``, at most ``max_steps``.

    ``rows_of``: rows of points. ``store``: keeps each path every ``KEPT`` rows, and where it is
    interrupted. ``watch`` is called after each step with the number of the path, the covered part
    of the interval and the number of rows.
    """

    max_step: float
    max_steps: int
    rows_of: Callable[[list[PathPoint]], Rows]
    store: Store | None
    watch: Callable[[int, float, int], None]

    def begun(self, number: int) -> Part | None:
        """The part of a path that is stored, if any."""
        return None if self.store is None else self.store.begun(number)

    def finished(self, number: int) -> Part | None:
        """A path that is stored as a whole, if it is."""
        return None if self.store is None else self.store.finished(number)

    def kept(self, number: int, whole: Part) -> Part:
        """A finished path, stored as a whole."""
        if self.store is not None:
            self.store.keep(number, whole)
        return whole


def followed(
    begin: tuple[Kernel, PathPoint, float], limits: tuple[float, float], how: Following, number: int
) -> Computation[Part]:
    """A whole path, with the remarks on it as lines of its outcome.

    ``begin``: the equations, the first point and the first step; a continued path goes on from the
    equations of its last row.
    """
    before = how.begun(number)
    kernel, point, step = begin
    start, stop = limits
    # The row from which a path goes on exists already.
    again = 0 if before is None else 1
    offset = 0 if before is None else len(before.rows) - again
    furthest, following, last_kept = 0.0, step, 0

    def gathered(follower: Follower) -> tuple[Rows, list[OrbitPoint]]:
        if before is None:
            return how.rows_of(follower.rows), follower.special
        found = [dataclasses.replace(p, row=p.row + offset) for p in follower.special]
        new = follower.rows[again:]
        rows = before.rows.followed_by(how.rows_of(new)) if new else before.rows
        return rows, [*before.special, *found]

    def kept(follower: Follower) -> None:
        if how.store is not None and len(follower.rows) > 1:
            state = state_of(follower.kernel, follower.rows[-1], following)
            how.store.keep_part(number, Part(*gathered(follower), state))

    def told(follower: Follower, step: float) -> None:
        nonlocal furthest, following, last_kept
        following = step
        part = (follower.rows[-1].parameter - start) / (stop - start)
        furthest = max(furthest, min(part, 1.0))
        how.watch(number, furthest, offset + len(follower.rows))
        if len(follower.rows) - last_kept >= KEPT:
            kept(follower)
            last_kept = len(follower.rows)

    follower = Follower(kernel, limits, how.max_step, how.max_steps - offset - again, told)
    try:
        yield from follower.follow(point, step)
    except (KeyboardInterrupt, GeneratorExit):
        kept(follower)
        raise
    return how.kept(number, Part(*gathered(follower), {}, (0, "\n".join(follower.remarks))))


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
    orbits = stacked([point.orbit for point in points])
    numbers = {f"{NUMBERS}{i:04d}": np.asarray(x) for i, x in enumerate(jax.tree.leaves(orbits))}
    columns = rows_of(points, orbits.state.shape[-1]).columns
    return Rows(columns, {SLOPE: np.stack([slope(p) for p in points]), **numbers})


#: Most steps of a path by default.
MOST = 2_000


def continue_orbit(
    problem: Problem,
    path: str,
    start: float,
    stop: float,
    *,
    orbit: PeriodicOrbit | None = None,
    state: Any = None,
    from_: OrbitPoint | None = None,
    side: int = 1,
    max_step: float = LONGEST,
    max_steps: int = MOST,
    segments: int = 1,
    store: str | Path | None = None,
    title: str = "",
    watch: Callable[[float, int], None] | None = None,
    **options: Any,
) -> OrbitPath:
    """Periodic motions of ``problem`` over the parameter ``path``, from ``start`` to ``stop``.

    ``start``, ``stop``: values of the parameter [SI]. The path begins with the orbit at ``start``,
    from the guess ``orbit`` or ``state`` (2n,) or as :func:`jfric.periodic_orbit` finds it, which
    takes the further ``options``. Pseudo-arclength continuation follows it: with states, period and
    parameter unknown, Newton's method finds the orbit on a plane at right angles to the path, a
    step ahead. The path goes on around folds, where the parameter turns back, until it leaves the
    interval. Folds, flips (a multiplier of -1), crossings of the unit circle by a pair, and points
    where another path crosses are located along the path. A path of motions with unknown period
    ends at a Hopf point, where the motion shrinks to an equilibrium. Every **change of events** is
    located, too: where a period gets another sequence of events (a first stick or lift-off, a
    touch, one slip more) the path has a corner; the last orbit with the old sequence is found by
    halving, and the path goes on from the first one with the new sequence, with derivatives on both
    sides. If contacts can stick for the whole period at any place within an interval, and the path
    meets an end of that interval, it goes on from the middle.

    ``from_``: a flip or branch point of a path of the same problem: the path then begins close to
    this point, on the branch that leaves there (at a flip the motion of the doubled period), and
    goes away from it as long as the parameter is within the interval; ``side``, 1 or -1: the
    direction on the branch.

    ``max_step``: longest step, relative to the sizes of the motion and of the interval;
    ``max_steps``: most steps of the path; ``segments``: of multiple shooting. ``store``: a folder
    that keeps the path, so that the same call continues after an interruption; ``title``: written
    there. ``watch`` is called after each step with the covered part of the interval and the number
    of orbits. Raises :class:`jfric.ProblemError` for an unknown parameter, an empty interval and a
    folder that holds something else, :class:`jfric.SimulationError` where there is no orbit to
    begin with. Source:
    E. L. Allgower, K. Georg, Introduction to Numerical Continuation Methods (2003). A shaken mass
    that begins to stick as friction grows::

        >>> shaken = jfric.Problem(
        ...     ["x"],
        ...     {
        ...         "mass": jfric.Mass("x", 1.0),
        ...         "spring": jfric.Spring("x", 1.0),
        ...         "damper": jfric.Damper("x", 0.1),
        ...         "friction": jfric.Friction("x", jfric.Coulomb(0.2), N=1.0),
        ...         "load": jfric.Load("x", jfric.Harmonic(1.0, 0.8)),
        ...     },
        ... )
        >>> path = jfric.continue_orbit(shaken, "friction.mu", 0.7, 0.75)
        >>> [(p.kind, round(p.parameter, 8)) for p in path.special]
        [('event change', 0.72944127), ('end', 0.75)]
    """
    problem = build(problem)
    name = checked_path(problem, path)
    start, stop = checked_interval(problem, name, start, stop)
    require_count("max_steps", max_steps, 1, 10**6)
    require_part("max_step", max_step)
    if from_ is not None and (orbit is not None or state is not None):
        raise ProblemError("from_: found a point together with orbit or state; give one of them")
    limits, kept = (start, stop), None
    if store is not None:
        begins = {"orbit": orbit, "state": state, "from_": from_, "side": side}
        settings = [max_step, max_steps, segments]
        request = request_of(problem, name, limits, settings, begins | options)
        kept = Store(Path(store), request, title, "path")
    if orbit is not None or state is not None:
        options["start"] = state if orbit is None else orbit
    path_problem = PathProblem(problem, name, limits, segments, options)
    branch = None if from_ is None else branched(path_problem, from_, side)
    kernel, begin = alone(branch or first_point(path_problem))

    def told(_: int, part: float, rows: int) -> None:
        if watch is not None:
            watch(part, rows)

    how = Following(max_step, max_steps, rows_of_path, kept, told)
    whole, going = how.finished(0), (kernel, begin, FIRST)
    if whole is None:
        if before := how.begun(0):
            going = alone(resumed(kernel.shooting, kernel.problem, before.state))
        whole = alone(followed(going, limits, how, 0))
    return _path(whole, begin.orbit, problem, name, limits)


def _path(
    whole: Part, like: PeriodicOrbit, problem: Problem, name: str, limits: tuple[float, float]
) -> OrbitPath:
    """The path of all rows; ``like``: one of its orbits."""
    columns, more = whole.rows.columns, whole.rows.more
    numbers = [jnp.asarray(more[k]) for k in sorted(more) if k.startswith(NUMBERS)]
    orbits = jax.tree.unflatten(jax.tree.structure(like), numbers)
    return OrbitPath(
        name=name,
        start=limits[0],
        stop=limits[1],
        **{k: columns[k] for k in ("parameter", "state", "period", "multipliers", "events")},
        stable=np.asarray(orbits.stable),
        slope=more[SLOPE],
        special=tuple(whole.special),
        orbits=orbits,
        axes=axes_of(problem),
        remarks=tuple(whole.outcome[1].splitlines()),
    )
