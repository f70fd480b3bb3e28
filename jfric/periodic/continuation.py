"""``continue_orbit``: periodic motions over a parameter, through folds and changes of events."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jfric.errors import ProblemError
from jfric.numerics.limits import require_count, require_part
from jfric.periodic.follower import FIRST, LONGEST
from jfric.periodic.lockstep import alone
from jfric.periodic.orbit import PeriodicOrbit
from jfric.periodic.path import OrbitPath, OrbitPoint
from jfric.periodic.path_following import followed, resumed, rows_of_path
from jfric.periodic.path_start import branched, first_point
from jfric.periodic.path_store import NUMBERS, SLOPE, Part, Store, request_of
from jfric.periodic.state_vector import axes_of
from jfric.statics.path_names import checked_interval, checked_path
from jfric.system.model import build
from jfric.system.problem import Problem

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
        raise ProblemError("from_: found a point beside orbit or state, give one of them")
    limits, kept = (start, stop), None
    if store is not None:
        begins = {"orbit": orbit, "state": state, "from_": from_, "side": side}
        settings = [max_step, max_steps, segments]
        request = request_of(problem, name, limits, settings, begins | options)
        kept = Store(Path(store), request, title, "path")
    if from_ is not None:
        beginning = branched(problem, name, from_, limits, side, segments, options)
    else:
        if orbit is not None or state is not None:
            options["start"] = state if orbit is None else orbit
        beginning = first_point(problem, name, limits, segments, options)
    kernel, begin = alone(beginning)
    whole, like = None if kept is None else kept.finished(0), begin.orbit
    if whole is None:
        before, going = None if kept is None else kept.begun(0), (kernel, begin, FIRST)
        if before is not None:
            going = alone(resumed(kernel.shooting, kernel.problem, before.state))
        settings = limits, max_step, max_steps, rows_of_path
        rows, points, remarks = alone(followed(going, *settings, store=kept, watch=watch))
        whole = Part(rows, points, {}, (0, "\n".join(remarks)))
        if kept is not None:
            kept.keep(0, whole)
    return _path(whole, like, problem, name, limits)


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
