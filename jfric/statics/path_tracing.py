"""``trace``: equilibria as piecewise smooth branches over a parameter."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import numpy as np

from jfric.errors import ProblemError
from jfric.numerics.limits import SEEDS, STARTS, require_count
from jfric.statics.all_equilibria import Equilibria, equilibria
from jfric.statics.branch import Branch, EquilibriumPath, SpecialPoint
from jfric.statics.branch_point import BranchPoint, branch_point, linearised
from jfric.statics.follow import Kernel, Trace, first_ways, follow
from jfric.statics.mode_change import scales_at
from jfric.statics.path_names import checked_path
from jfric.statics.static_problem import require_no_belt, require_static, static_problem
from jfric.system.naming import set_parameters
from jfric.system.problem import Problem
from jfric.system.validation import validate

#: Branches after which the search for further ones stops.
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
    changes its mode, and on along the way that complementarity pivoting finds, which may turn
    around (a fold). Branches that no seed meets are not found. ``starts``: starts of Newton's
    method for each seed, with many contacts. ``t`` [s]: time at which loads are taken (default: the
    start).

    Raises :class:`jfric.ProblemError` for unknown parameters, nonlinear elements, belts, and laws
    whose friction drops when sliding begins. Source: J. Haslinger, V. Janovsky, R. Kucera,
    Path-following the static contact problem with Coulomb friction, Applications of Mathematics
    2013. The block of :class:`jfric.Problem` sticks until the load is that of friction::

        >>> path = jfric.trace(problem, "load.F", 0.0, 500.0, seeds=1)
        >>> [(p.kind, round(float(p.parameter), 6)) for p in path.branches[0].special]
        [('end', 0.0), ('mode change', 100.0), ('end', 500.0)]
    """
    name = checked_path(problem, path)
    require_static(problem)
    require_no_belt(problem)
    _require_continuous(problem)
    start, stop = float(start), float(stop)
    if not np.isfinite([start, stop]).all() or start == stop:
        raise ProblemError(f"stop: found {stop:g}, must differ from start ({start:g})")
    for value in (start, stop):
        validate(set_parameters(problem, {name: value}))
    require_count("starts", starts, 1, STARTS)
    if isinstance(seeds, int):
        require_count("seeds", seeds, 1, SEEDS)
    values = np.linspace(start, stop, seeds) if isinstance(seeds, int) else np.asarray(seeds, float)
    if values.size == 0 or not np.all((values - start) * (values - stop) <= 0):
        raise ProblemError(f"seeds: found {values.tolist()}, need values from start to stop")
    kernel = _kernel(problem, name, t)
    found: list[Branch] = []
    remarks: list[str] = []
    waiting: list[tuple[float, np.ndarray, list]] = []
    for value in values:
        at = equilibria(set_parameters(problem, {name: value}), t=t, starts=starts)
        assert isinstance(at, Equilibria)
        for row in np.flatnonzero(np.asarray(at.exists & ~at.continuum)):
            x = np.concatenate([np.asarray(part[row]) for part in (at.q, at.lambda_t, at.lambda_n)])
            mode = np.asarray(at.mode[row])
            scales = scales_at(kernel.point(float(value), mode), kernel.n, abs(stop - start))
            waiting.append((float(value), x, []))
            while waiting and len(found) < MAX_BRANCHES:
                p, x, ways = waiting.pop()
                if any(_passes(branch, kernel, p, x, ways) for branch in found):
                    continue
                ways = ways or first_ways(kernel, p, x, scales)
                if not ways:
                    continue
                ways = sorted(ways, key=lambda way: -way.dp * (stop - start))
                parts = [follow(kernel, p, x, ways[0], (start, stop), scales)]
                if not parts[0].closed and len(ways) > 1:
                    parts.append(follow(kernel, p, x, ways[1], (start, stop), scales))
                waiting.extend((p, x, [way]) for way in ways[2:])
                for part in parts:
                    remarks.extend(part.remarks)
                    waiting.extend((p, x, [way]) for p, x, way in part.left)
                found.append(_joined(parts, kernel))
    return EquilibriumPath(
        name, start, stop, tuple(found), problem.axes, kernel.names, tuple(dict.fromkeys(remarks))
    )


def _require_continuous(problem: Problem) -> None:
    for where, element in problem.labelled("friction", "contact").items():
        if element.law is not None and element.law.drops_at_onset:
            raise ProblemError(
                f"{where}: with {type(element.law).__name__} friction drops when sliding "
                "begins, and branches have gaps; a path takes laws without such a drop, as mu"
            )


def _kernel(problem: Problem, name: str, t) -> Kernel:
    static = eqx.filter_eval_shape(static_problem, problem)
    arrays, structure = eqx.partition((problem, t), eqx.is_array)
    leaves, tree = jax.tree.flatten(arrays)
    point_at, static_at, linearise_at = _compiled(tree, _Structure(structure), name)

    @functools.lru_cache(maxsize=512)
    def point(p: float, mode: bytes):
        # Arrays: a Python number would be compiled in.
        found = point_at(leaves, np.asarray(p), np.frombuffer(mode, np.int32))
        return BranchPoint(*jax.device_get(found))

    return Kernel(
        point=lambda p, mode: point(p, np.asarray(mode, np.int32).tobytes()),
        static=lambda p: jax.device_get(static_at(leaves, np.asarray(p))),
        linearise=lambda p, mode, x: jax.device_get(linearise_at(leaves, np.asarray(p), mode, x)),
        names=static.names,
        n=len(static.axes),
    )


class _Structure:
    """What is not an array in a problem, hashed once instead of at every point."""

    def __init__(self, tree):
        self.tree = tree
        leaves, structure = jax.tree.flatten(tree)
        self.key = (tuple(leaves), structure)
        self.hash = hash(self.key)

    def __hash__(self):
        return self.hash

    def __eq__(self, other):
        return self.key == other.key


@functools.lru_cache(maxsize=16)
def _compiled(tree, structure: _Structure, name: str):
    """Point, static problem and linearised equations as compiled functions of the arrays."""

    def known(leaves) -> tuple[Problem, Any]:
        return eqx.combine(jax.tree.unflatten(tree, leaves), structure.tree)

    def point(leaves, p, mode):
        problem, t = known(leaves)
        return branch_point(problem, name, p, mode, t)

    def static(leaves, p):
        problem, t = known(leaves)
        return static_problem(set_parameters(problem, {name: p}), t)

    def linearise(leaves, p, mode, x):
        problem, t = known(leaves)
        return linearised(problem, name, p, mode, x, t)

    return jax.jit(point), jax.jit(static), jax.jit(linearise)


def _passes(branch: Branch, kernel: Kernel, p: float, x: np.ndarray, ways: list) -> bool:
    """Whether ``branch`` goes through the state ``x`` at ``p`` (and, where given, this way)."""
    size = np.maximum(np.abs(x), 1e-6 * np.max(np.abs(x), initial=0.0))
    scale = np.where(size > 0, size, 1.0)
    for part in branch.segments():
        low, high = np.min(branch.parameter[part]), np.max(branch.parameter[part])
        slack = 1e-9 * max(abs(low), abs(high), 1e-300)
        if not low - slack <= p <= high + slack:
            continue
        mode = branch.mode[part.start]
        if low == high:
            continue
        if ways:
            side = ways[0].dp
            if not np.array_equal(mode, ways[0].mode) or not low <= p + side * slack <= high:
                continue
        there = kernel.point(p, mode).x
        if np.all(np.abs(there - x) <= 1e-7 * np.maximum(scale, np.max(np.abs(x)))):
            return True
    return False


def _joined(parts: list[Trace], kernel: Kernel) -> Branch:
    """One branch from what was followed in one or both directions."""
    ahead = parts[0]
    rows, special = list(ahead.rows), list(ahead.special)
    steps = list(ahead.steps)
    if len(parts) > 1:
        back = parts[1]
        # The start itself is the first row of both.
        shift = len(back.rows)
        rows = [*back.rows[::-1], *rows]
        special = [
            *(_reversed(point, shift) for point in back.special[::-1]),
            *(_shifted(point, shift) for point in special),
        ]
        steps = [*back.steps, *steps]
    n, nt = kernel.n, len(kernel.names)

    def column(pick) -> np.ndarray:
        return np.stack([pick(row) for row in rows])

    def parts_of(field: str):
        table = column(lambda row: getattr(row, field))
        return table[:, :n], table[:, n : n + nt], table[:, n + nt :]

    q, lambda_t, lambda_n = parts_of("x")
    dq, dlambda_t, dlambda_n = parts_of("dx")
    return Branch(
        parameter=np.asarray([row.p for row in rows]),
        q=q,
        lambda_t=lambda_t,
        lambda_n=lambda_n,
        mode=column(lambda row: row.mode),
        dq=dq,
        dlambda_t=dlambda_t,
        dlambda_n=dlambda_n,
        special=tuple(special),
        steps=tuple(steps),
        closed=ahead.closed,
    )


def _shifted(point: SpecialPoint, shift: int) -> SpecialPoint:
    return SpecialPoint(**{**vars(point), "row": point.row + shift})


def _reversed(point: SpecialPoint, count: int) -> SpecialPoint:
    """The same point met from the other side."""
    return SpecialPoint(
        **{
            **vars(point),
            "mode_before": point.mode_after,
            "mode_after": point.mode_before,
            "dq_before": point.dq_after,
            "dq_after": point.dq_before,
            "row": count - 1 - point.row - (0 if point.mode_after is None else 1),
        }
    )
