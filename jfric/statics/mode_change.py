"""Half-branches that go on from a point where modes meet, by complementarity pivoting.

At such a point some contacts are in several modes at once (stick at the limit of friction is also
sliding). Each combination of these modes is a smooth branch through the point; a half of it
continues the path if the inequalities that hold with equality do not become violated along it.
With one contact and no degeneracy exactly one half-branch goes on; it may go back in the parameter
(a fold). Source: J. Haslinger, V. Janovsky, T. Ligursky, Qualitative analysis of solutions to
discrete static contact problems with Coulomb friction, Comp. Meth. Appl. Mech. Engrg. 205-208
(2012).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from jfric.results.modes import Mode
from jfric.statics.branch_point import BranchPoint, Linearised
from jfric.statics.reading import AT_CHANGE, Reading, modes_of
from jfric.statics.static_problem import StaticProblem

#: Smallest reciprocal condition number of equations that determine the state.
REGULAR = 1e-11
#: Largest number of combinations of modes at one point; with more the point is given up.
MAX_COMBINATIONS = 256


class HalfBranch(NamedTuple):
    """Half-branch from a point where modes meet: modes and tangent ``(x', p')``; ``p' = 0``:
    vertical."""

    mode: np.ndarray
    dx: np.ndarray
    dp: float


class Scales(NamedTuple):
    """Magnitude of the unknowns (m,), one for all positions and one for all forces, and the length
    of the parameter's interval."""

    x: np.ndarray
    p: float


def scales_at(point: BranchPoint, n: int, span: float, known: Scales | None = None) -> Scales:
    """Scales from the terms at a point with ``n`` positions, never below the ``known`` scales."""
    size = np.where(np.isfinite(point.size), point.size, 0.0)
    length, force = np.max(size[:n], initial=0.0), np.max(size[n:], initial=0.0)
    x = np.where(np.arange(size.size) < n, length, force)
    if known is not None:
        x = np.maximum(x, known.x)
    return Scales(np.where(x > 0, x, 1.0), span)


def modes_at(problem: StaticProblem, x: np.ndarray, scales: Scales) -> list[tuple[Mode, ...]]:
    """The possible modes of each contact at the state ``x``; several where modes meet."""
    p = problem
    n, nt, nf = p.K.shape[0], len(p.names), p.n_friction
    q, lambda_t, lambda_n = x[:n], x[n : n + nt], x[n + nt :]
    normal = np.concatenate([np.zeros(nf), lambda_n])
    reading = Reading(
        slip=np.asarray(p.W_T) @ q - np.asarray(p.slip0),
        gap=np.asarray(p.gap0) + np.asarray(p.W_N) @ q,
        lambda_t=lambda_t,
        lambda_n=lambda_n,
        static=np.asarray(p.cap_static) + np.asarray(p.mu_static) * normal,
        kinetic=np.asarray(p.cap_kinetic) + np.asarray(p.mu_kinetic) * normal,
    )
    return modes_of(reading, p.rubs, AT_CHANGE * scales.x[0], AT_CHANGE * scales.x[-1])


def half_branches(
    combinations: Iterable[tuple[Mode, ...]],
    linearise: Callable[[np.ndarray], Linearised],
    scales: Scales,
) -> list[HalfBranch]:
    """All half-branches that leave a point in any of the ``combinations`` of modes."""
    found: list[HalfBranch] = []
    for combination in combinations:
        mode = np.asarray(combination, np.int32)
        at = linearise(mode)
        for tangent in _tangents(at, scales):
            if _admissible(at, tangent, scales) and not any(
                _parallel(tangent, (other.dx, other.dp), scales) for other in found
            ):
                found.append(HalfBranch(mode, *tangent))
    return found


def _tangents(at: Linearised, scales: Scales) -> list[tuple[np.ndarray, float]]:
    """The two directions of the line ``A x' + r p' = 0``; empty if the solutions are no line."""
    A, r = np.asarray(at.A), np.asarray(at.r)
    full = np.concatenate([A * scales.x, (r * scales.p)[:, None]], axis=1)
    row = np.max(np.abs(full), axis=1)
    full = full / np.where(row > 0, row, 1.0)[:, None]
    v = _kernel_vector(full)
    if v is None:
        return []
    if abs(v[-1]) <= AT_CHANGE:
        v = np.append(v[:-1], 0.0)
    return [(side * v[:-1] * scales.x, side * v[-1] * scales.p) for side in (1.0, -1.0)]


def _kernel_vector(full: np.ndarray) -> np.ndarray | None:
    """The unit vector that ``full`` (m, m + 1) maps to zero; None if there are several."""
    square: Any = full[:, :-1]
    condition = np.linalg.cond(square, 1)
    if condition * REGULAR < 1.0:
        v = np.append(-np.linalg.solve(square, full[:, -1]), 1.0)
        return v / np.linalg.norm(v)
    _, s, vt = np.linalg.svd(full)
    return None if s[-1] <= 1e-11 * s[0] else vt[-1]


def _admissible(at: Linearised, tangent: tuple[np.ndarray, float], scales: Scales) -> bool:
    dx, dp = tangent
    G, margin, used = np.asarray(at.G), np.asarray(at.margin), np.asarray(at.used)
    rate = G @ dx + np.asarray(at.drift) * dp
    size = np.abs(G) @ scales.x
    zero = used & (np.abs(margin) <= AT_CHANGE * np.where(size > 0, size, 1.0))
    speed = np.abs(G) @ np.abs(dx) + np.abs(np.asarray(at.drift) * dp)
    return bool(np.all(rate[zero] >= -1e-7 * speed[zero]))


def _parallel(one: tuple[np.ndarray, float], other: tuple[np.ndarray, float], scales) -> bool:
    a, b = (np.append(dx / scales.x, dp / scales.p) for dx, dp in (one, other))
    return bool(np.linalg.norm(a - b) <= 1e-7)


def same_direction(one: HalfBranch, other: HalfBranch, scales: Scales) -> bool:
    """Whether two half-branches have the same tangent."""
    return _parallel((one.dx, one.dp), (other.dx, other.dp), scales)
