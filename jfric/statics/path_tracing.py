"""``trace``: equilibria as piecewise smooth branches over a parameter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from jfric.errors import ProblemError
from jfric.numerics.limits import SEEDS, STARTS, require_count
from jfric.statics.branch import Branch, EquilibriumPath, SpecialPoint
from jfric.statics.curves import PositionPaths, StraightPaths
from jfric.statics.follower import Place, Trace
from jfric.statics.path_names import checked_interval, checked_path
from jfric.statics.position_problem import require_reference
from jfric.statics.static_problem import Parts
from jfric.system.model import build
from jfric.system.problem import Problem

#: Number of branches after which the search for further ones stops.
MAX_BRANCHES = 64


def trace(
    problem: Problem,
    path: str,
    start: float,
    stop: float,
    *,
    seeds: int | Sequence[float] = 5,
    starts: int = 16,
    t=None,
) -> EquilibriumPath:
    """All branches of equilibria of ``problem`` between two values of the parameter ``path``.

    ``start``, ``stop``: the two values [SI]. The equilibria of the static problem (see
    :func:`jfric.equilibria`) are computed at ``seeds`` values of the parameter (a number of them,
    evenly spaced, or the values) and followed in both directions: smoothly within one combination
    of modes (a straight line where the parameter is a load), to the exact point where a contact
    changes its mode, and on along the half-branch that complementarity pivoting finds, which may
    turn around (a fold). Branches that no seed meets are not found. Branches of a mechanism are
    followed by their arc, also where they turn around in the parameter without any change of mode
    (a fold), until no equilibrium is left; equilibria may be unstable on the way. ``starts``:
    starts of Newton's method for each seed, with many contacts. ``t`` [s]: time at which loads are
    taken (default: the start).

    Raises :class:`jfric.ProblemError` for unknown parameters, elements with kinks or a memory,
    belts, pins with friction, and laws whose friction drops when sliding begins. Source: J.
    Haslinger, V. Janovsky, R. Kucera, Path-following the static contact problem with Coulomb
    friction, Applications of Mathematics 2013. The block of :class:`jfric.Problem` sticks until the
    load equals the limit of friction::

        >>> path = jfric.trace(problem, "load.F", 0.0, 500.0, seeds=1)
        >>> [(p.kind, round(float(p.parameter), 6)) for p in path.branches[0].special]
        [('end', 0.0), ('mode change', 100.0), ('end', 500.0)]
    """
    problem = build(problem)
    name = checked_path(problem, path)
    curved = require_reference(problem)
    _require_continuous(problem)
    start, stop = checked_interval(problem, name, start, stop)
    require_count("starts", starts, 1, STARTS)
    values = _seed_values(seeds, start, stop)
    if curved:
        paths = PositionPaths(problem, name, t, abs(stop - start))
    else:
        paths = StraightPaths(problem, name, t, abs(stop - start), starts)
    found = _branches(paths, values, start, stop)
    return EquilibriumPath(
        name,
        start,
        stop,
        tuple(found),
        problem.axes,
        paths.names,
        tuple(dict.fromkeys(paths.remarks)),
        paths.joints,
    )


def _seed_values(seeds: int | Sequence[float], start: float, stop: float) -> np.ndarray:
    """Values of the parameter at which the search for branches begins."""
    if isinstance(seeds, int):
        require_count("seeds", seeds, 1, SEEDS)
    values = np.linspace(start, stop, seeds) if isinstance(seeds, int) else np.asarray(seeds, float)
    if values.size == 0 or not np.all((values - start) * (values - stop) <= 0):
        raise ProblemError(f"seeds: found {values.tolist()}, need values from start to stop")
    return values


def _branches(
    paths: PositionPaths | StraightPaths, values: np.ndarray, start: float, stop: float
) -> list[Branch]:
    """The branches that meet one of the ``values``, and those that leave them."""
    found: list[Branch] = []
    waiting: list[tuple[float, np.ndarray, list]] = []
    for value in map(float, values):
        for x, mode in paths.starting(value):
            scales = paths.scales(value, x, mode)
            waiting.append((value, x, []))
            while waiting and len(found) < MAX_BRANCHES:
                p, x, ways = waiting.pop()
                if any(paths.passes(branch, p, x, ways, scales) for branch in found):
                    continue
                ways = ways or paths.ways(p, x, scales)[0]
                if not ways:
                    continue
                ways = sorted(ways, key=lambda way: -way.dp * (stop - start))
                parts: list[Trace] = []
                for way in ways[:2]:
                    trace = Trace(paths, Place(p, x, way), (start, stop), scales)
                    parts.append(trace.follow())
                    if trace.closed:
                        break
                waiting.extend((p, x, [way]) for way in ways[2:])
                for part in parts:
                    paths.remarks.extend(part.remarks)
                    waiting.extend((p, x, [way]) for p, x, way in part.left)
                found.append(_joined(parts, paths.parts))
    return found


def _joined(parts: list[Trace], unknowns: Parts) -> Branch:
    """One branch from the traces in one or both directions."""
    ahead = parts[0]
    rows, special = list(ahead.rows), list(ahead.special)
    steps = list(ahead.steps)
    if len(parts) > 1:
        back = parts[1]
        # The start itself is the first row of both traces.
        shift = len(back.rows)
        rows = [*back.rows[::-1], *rows]
        special = [
            *(_reversed(point, shift) for point in back.special[::-1]),
            *(replace(point, row=point.row + shift) for point in special),
        ]
        steps = [*back.steps, *steps]
    p, x, dx, mode = map(np.stack, zip(*rows, strict=True))
    q, lambda_t, lambda_n, reaction = unknowns.of(x)
    dq, dlambda_t, dlambda_n, dreaction = unknowns.of(dx)
    return Branch(
        parameter=p,
        q=q,
        lambda_t=lambda_t,
        lambda_n=lambda_n,
        mode=mode,
        dq=dq,
        dlambda_t=dlambda_t,
        dlambda_n=dlambda_n,
        special=tuple(special),
        steps=tuple(steps),
        closed=ahead.closed,
        reaction=reaction,
        dreaction=dreaction,
    )


def _reversed(point: SpecialPoint, count: int) -> SpecialPoint:
    """The special point as seen in the opposite direction of a trace with ``count`` rows."""
    return replace(
        point,
        mode_before=point.mode_after,
        mode_after=point.mode_before,
        dq_before=point.dq_after,
        dq_after=point.dq_before,
        row=count - 1 - point.row - (0 if point.mode_after is None else 1),
    )


def _require_continuous(problem: Problem) -> None:
    for where, element in problem.labelled("friction", "contact", "joint", "slider").items():
        if element.law is not None and element.law.drops_at_onset:
            raise ProblemError(
                f"{where}: with {type(element.law).__name__} friction drops when sliding "
                "begins, and branches have gaps; a path takes laws without such a drop, as mu"
            )
