"""A point of a branch: the state in given modes at a value of the parameter, its derivative, and
the half-branches that leave it.

In one combination of modes ``A(p) x = b(p)`` and ``margins = G(p) x + h(p)``, hence::

    A dx/dp = db/dp - dA/dp x
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from jfric.results.modes import Mode
from jfric.statics.static_problem import (
    AT_CHANGE,
    Equations,
    StaticProblem,
    in_modes,
    mode_equations,
    with_derivatives,
)
from jfric.system.naming import set_parameters
from jfric.system.problem import Problem


class BranchPoint(NamedTuple):
    """Unknowns ``x = (q, lambda_T, lambda_N)`` with their derivative, and margins with theirs.

    ``size`` and ``margin_size``: magnitudes of the terms of unknowns and margins. ``turn``: sign of
    the determinant of ``A``. ``A`` and ``r = dA/dp x - db/dp``: the tangent ``(x', p')`` of the
    branch satisfies ``A x' + r p' = 0``.
    """

    p: Float[Array, ""]
    mode: Int[Array, " nt"]
    x: Float[Array, " m"]
    dx: Float[Array, " m"]
    size: Float[Array, " m"]
    margin: Float[Array, " g"]
    rate: Float[Array, " g"]
    margin_size: Float[Array, " g"]
    used: Bool[Array, " g"]
    turn: Float[Array, ""]


class Linearised(NamedTuple):
    """``A x' + r p' = 0`` at a state ``x``, with margins and their derivatives in x and p."""

    A: Float[Array, "m m"]
    r: Float[Array, " m"]
    defect: Float[Array, " m"]
    G: Float[Array, "g m"]
    margin: Float[Array, " g"]
    drift: Float[Array, " g"]
    used: Bool[Array, " g"]


def linearised(equations: Callable[..., Callable[[Array], Equations]], p, x) -> Linearised:
    """The ``equations(p)`` of given modes around the state ``x`` at ``p``."""

    def along(p):
        found, A, G = with_derivatives(equations(p), x)
        return (found.residual, found.margin), (A, G, found.used)

    p = jnp.asarray(p, jnp.result_type(float))
    (F, margin), (r, drift), (A, G, used) = jax.jvp(along, (p,), (jnp.ones_like(p),), has_aux=True)
    return Linearised(A=A, r=r, defect=F, G=G, margin=margin, drift=drift, used=used)


def branch_point(static: Callable[..., StaticProblem], p, mode: Int[Array, " nt"]) -> BranchPoint:
    """The point of the problem ``static(p)`` in the modes ``mode``; not finite if they leave the
    state undetermined."""
    equations = mode_equations(static(p), mode)
    A, b, n = equations.A, equations.b, len(static(p).axes)
    inverse = jnp.linalg.inv(A)
    x = inverse @ b
    x = x + inverse @ (b - A @ x)
    size = jnp.maximum(jnp.abs(inverse) @ jnp.abs(b), jnp.abs(x))
    # If nothing moves, rounding errors are no lengths: use the forces over the largest stiffness.
    stiffest = jnp.max(jnp.abs(A[:n, :n]))
    least = jnp.max(size[n:], initial=0.0) / jnp.where(stiffest > 0, stiffest, jnp.inf)
    size = size.at[:n].set(jnp.maximum(size[:n], least))
    here = linearised(lambda p: lambda x: in_modes(*static(p).reading(x), mode), p, x)
    dx = -inverse @ here.r
    return BranchPoint(
        p=jnp.asarray(p, A.dtype),
        mode=mode,
        x=x,
        dx=dx,
        size=size,
        margin=here.margin,
        rate=here.G @ dx + here.drift,
        margin_size=jnp.abs(here.G) @ size + jnp.abs(equations.h),
        used=here.used,
        turn=jnp.linalg.slogdet(A)[0],
    )


def on_host(function: Callable[..., Any], problem: Problem, name: str, t) -> Callable[..., Any]:
    """``function(problems, t, p, *arrays)`` as a function of ``p`` and the arrays, compiled, which
    gives arrays of NumPy and remembers the last calls. ``problems``: ``problem`` as a function of
    its parameter ``name``."""
    arrays, structure = eqx.partition((problem, t), eqx.is_array)
    leaves, tree = jax.tree.flatten(arrays)
    others, frame = jax.tree.flatten(structure)
    run = _compiled(function, tree, tuple(others), frame, name)

    @functools.lru_cache(maxsize=512)
    def known(p: float, *given: tuple[bytes, str]):
        # Arrays, because a Python number would be compiled in.
        return jax.device_get(run(leaves, np.asarray(p), *(np.frombuffer(*x) for x in given)))

    def call(p, *given):
        return known(float(p), *((x.tobytes(), x.dtype.str) for x in map(np.asarray, given)))

    return call


@functools.lru_cache(maxsize=64)
def _compiled(function: Callable[..., Any], tree, others: tuple, frame, name: str):
    """``function`` of arrays alone: one program for all problems of one structure."""

    @jax.jit
    def run(leaves, p, *given):
        arrays, structure = jax.tree.unflatten(tree, leaves), jax.tree.unflatten(frame, others)
        problem, t = eqx.combine(arrays, structure)
        return function(lambda p: set_parameters(problem, {name: p}), t, p, *given)

    return run


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


def half_branches(
    combinations: Iterable[tuple[Mode, ...]],
    linearise: Callable[[np.ndarray], Linearised],
    scales: Scales,
) -> list[HalfBranch]:
    """All half-branches that leave a point in any of the ``combinations`` of modes.

    Where modes meet, some contacts are in several modes at once (stick at the limit of friction is
    also sliding). Each combination of these modes is a smooth branch through the point; a half of
    it continues the path if the inequalities that hold with equality do not become violated along
    it. With one contact and no degeneracy exactly one half-branch goes on; it may go back in the
    parameter (a fold). Source: J. Haslinger, V. Janovsky, T. Ligursky, Qualitative analysis of
    solutions to discrete static contact problems with Coulomb friction, Comp. Meth. Appl. Mech.
    Engrg. 205-208 (2012).
    """
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
