"""The problem of a step with friction in planes: cones of second order, several contacts at once.

Impulses ``P`` and relative velocities ``gamma = gamma_0 + D P`` obey the laws where they solve the
equations of projection, which also judge every candidate (the natural map)::

    F(P) = P - proj(P - gamma) = 0
    normals       proj(x) = max(x, 0)
    one tangent   proj(x) = x clipped to the limits of friction
    a plane       proj(x) = the point of the disc nearest to x, of radius mu max(P_N - gamma_N, 0)

in units in which ``D`` has a diagonal of ones, and elliptic limits are circles: for the half axes
``mu_i N`` the components ``y = E^-1 P``, ``E gamma`` obey the laws with a circle.

``newton``: the generalised derivative of ``F``, with the best of some lengths of each step, and
steps of least squares where reactions are redundant. ``gauss-seidel``: contact after contact, each
friction in a plane exactly. ``auto``: sweeps first, and again where steps of Newton's method do not
help.

Source: P. Alart, A. Curnier, A mixed formulation for frictional contact problems prone to Newton
like solution methods, Comput. Methods Appl. Mech. Engrg. 92 (1991); V. Acary, M. Bremond, O. Huber,
On solving contact problems with Coulomb friction: formulations and numerical comparisons, in:
Advanced Topics in Nonsmooth Dynamics (2018).
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from jfric.contact import rules
from jfric.contact.contact_lcp import ContactProblem
from jfric.contact.contact_methods import Impulses, Method, solved_below
from jfric.contact.gauss_seidel import SWEEPS
from jfric.errors import ProblemError
from jfric.numerics.linear_algebra import diagonal_of, matvec
from jfric.results.modes import Mode
from jfric.results.status import Status

#: Methods that take friction in a plane.
METHODS: tuple[Method, ...] = ("auto", "newton", "gauss-seidel")
Planes = tuple[tuple[int, int], ...]
#: Rounds after which the method gives up: one step of Newton's method, or sweeps, each.
ROUNDS = 100
#: Sweeps at once; steps of Newton's method that reduce the residual by less than this part are
#: none.
SOME, ENOUGH = 20, 0.1
#: Lengths of steps that are tried.
LENGTHS = 0.5 ** np.arange(8)
#: Least-squares steps: what is added to the squares of singular values, relative to the largest.
REGULAR = 1e-13


class _Round(NamedTuple):
    """Tangents (nt) and normals (nn) of a problem in units in which limits are circles.

    ``own``: the normal of each tangent, or ``nn`` for given limits.
    """

    D: Float[Array, "m m"]
    gamma: Float[Array, " m"]
    touching: Bool[Array, " nn"]
    rubs: Bool[Array, " nt"]
    mu: Float[Array, "nt 2"]
    cap: Float[Array, "nt 2"]


class _Layout(NamedTuple):
    """Structure of a :class:`_Round`, as arrays of row numbers."""

    nt: int
    #: Normals of the full problem that are kept: one for each contact.
    kept: np.ndarray
    own: np.ndarray
    planes: Planes

    @property
    def partner(self) -> np.ndarray:
        """The other direction of each tangent in a plane; itself for one alone."""
        found = np.arange(self.nt)
        for i, j in self.planes:
            found[i], found[j] = j, i
        return found

    @property
    def alone(self) -> np.ndarray:
        """Which tangents are alone."""
        return self.partner == np.arange(self.nt)

    @property
    def leads(self) -> np.ndarray:
        """One tangent of each contact."""
        return np.flatnonzero(np.arange(self.nt) <= self.partner)


def require_cone_method(method: str) -> None:
    """Raise :class:`jfric.ProblemError` for a method that takes friction along lines alone."""
    if method not in METHODS:
        raise ProblemError(
            f"method: {method!r} takes friction along lines, found friction in a plane; allowed "
            f"are {', '.join(METHODS)}"
        )


def solve_cones(problem: ContactProblem, planes: Planes, method: Method = "auto") -> Impulses:
    """Impulses that obey the laws of contact, and of friction along lines and in ``planes``.

    ``problem``: as for lines, with a row for each direction; ``planes``: tangents that belong
    together. Both of a unilateral contact have its normal among theirs: the first one carries, the
    other has no impulse. Limits of the two are the half axes of the ellipse, the same both ways.

    Derivatives are those of the solution (implicit function theorem). Raises
    :class:`jfric.ProblemError` for a method that does not fit.
    """
    require_cone_method(method)
    layout = _layout(problem, planes)
    scaled, weight = _circles(problem, layout)
    frozen, tolerance = jax.lax.stop_gradient(scaled), solved_below(problem.D.dtype)
    found, rounds = _solved(frozen, layout, method, 0.01 * tolerance)
    defect = _map(scaled, layout, found)
    slope = jax.lax.stop_gradient(jax.jacfwd(lambda x: _map(frozen, layout, x))(found))
    # Zero, with the derivatives of the solution.
    change = defect - jax.lax.stop_gradient(defect)
    found = jax.lax.stop_gradient(found) - _step(slope, change)
    still = jax.lax.stop_gradient(found)
    residual = _residual(frozen, layout, still)
    solved = residual <= tolerance
    impulse = _full(problem, layout, found * weight)
    status = jnp.where(solved, int(Status.OK), int(Status.UNSOLVED)).astype(jnp.int32)
    gamma = problem.gamma + matvec(problem.D, impulse)
    mode = _modes(frozen, layout, still)
    return Impulses(impulse, gamma, mode, rounds, residual, status)


def cone_residual(
    problem: ContactProblem, planes: Planes, impulse: Float[Array, " m"]
) -> Float[Array, ""]:
    """Violation of the laws by ``impulse``: the largest entry of the natural map as a relative
    velocity, divided by the largest of those without impulses and those that impulses cause; zero
    is exact. Arguments as in :func:`solve_cones`."""
    layout = _layout(problem, planes)
    scaled, weight = _circles(problem, layout)
    rows = np.concatenate([np.arange(layout.nt), layout.nt + layout.kept])
    return _residual(scaled, layout, impulse[rows] / weight)


def _layout(problem: ContactProblem, planes: Planes) -> _Layout:
    nt, nu = problem.decided.shape[0], problem.touching.shape[0]
    nf = nt - nu
    second = {j - nf for i, j in planes if i >= nf}
    kept = np.asarray([i for i in range(nu) if i not in second], int)
    own = np.full((nt,), kept.shape[0])
    own[nf + kept] = np.arange(kept.shape[0])
    for i, j in planes:
        own[j] = own[i]
    return _Layout(nt, kept, own, planes)


def _circles(p: ContactProblem, layout: _Layout) -> tuple[_Round, Float[Array, " k"]]:
    """The problem in units in which limits are circles, and the factor from its impulses."""
    nt, kept = layout.nt, layout.kept
    nf = nt - p.touching.shape[0]
    rows = np.concatenate([np.arange(nt), nt + kept])
    D, gamma = p.D[np.ix_(rows, rows)], p.gamma[rows]
    nothing = jnp.zeros((nf, 2), D.dtype)
    mu = jnp.stack([p.mu_positive, p.mu_negative], axis=1)
    mu, cap = jnp.concatenate([nothing, mu]), jnp.stack([p.cap_positive, p.cap_negative], axis=1)
    limit, stretch = mu[:, 0] + cap[:, 0], jnp.ones((rows.shape[0],), D.dtype)
    for i, j in layout.planes:
        stretch = stretch.at[j].set(rules.ratio_of(jnp.stack([limit[i], limit[j]])))
    D, gamma = D * stretch[:, None] * stretch[None, :], gamma * stretch
    diagonal = diagonal_of(D)
    mean = diagonal.at[:nt].set(0.5 * (diagonal[:nt] + diagonal[layout.partner]))
    weight = jnp.where(mean > 0, mean, 1.0) ** -0.5
    # In units of its own a tangent's limit is that times the unit of the normal.
    normal = jnp.append(weight[nt:], 1.0)[layout.own]
    ratio = normal / (weight[:nt] * stretch[:nt])
    touching = p.touching[kept]
    scaled = _Round(
        D=D * weight[:, None] * weight[None, :],
        gamma=gamma * weight,
        touching=touching,
        rubs=p.decided,
        mu=mu * ratio[:, None],
        cap=cap / (weight[:nt] * stretch[:nt])[:, None],
    )
    return scaled, weight * stretch


def _full(p: ContactProblem, layout: _Layout, impulse):
    nt, nu = layout.nt, p.touching.shape[0]
    normal = jnp.zeros((nu,), impulse.dtype).at[layout.kept].set(impulse[nt:])
    return jnp.concatenate([impulse[:nt], normal])


def _limits(p: _Round, layout: _Layout, normal):
    """Limits (nt, 2) under the normal impulses."""
    return jnp.where(
        p.rubs[:, None], p.cap + p.mu * jnp.append(normal, 0.0)[layout.own][:, None], 0.0
    )


def _projected(p: _Round, layout: _Layout, trial):
    """The impulses that obey the limits and are nearest to ``trial``."""
    nt = layout.nt
    normal = jnp.where(p.touching, jnp.maximum(trial[nt:], 0.0), 0.0)
    limit, tangent = _limits(p, layout, normal), trial[:nt]
    clipped = jnp.clip(tangent, -limit[:, 0], limit[:, 1])
    squared = tangent**2 + tangent[layout.partner] ** 2
    outside = squared > limit[:, 0] ** 2
    length = jnp.sqrt(jnp.where(outside, squared, 1.0))
    disc = jnp.where(outside, tangent * limit[:, 0] / length, tangent)
    return jnp.concatenate([jnp.where(layout.alone, clipped, disc), normal])


def _map(p: _Round, layout: _Layout, impulse):
    trial = impulse - (p.gamma + p.D @ impulse)
    return impulse - _projected(p, layout, trial)


def _residual(p: _Round, layout: _Layout, impulse) -> Float[Array, ""]:
    involved = jnp.concatenate([p.rubs, p.touching])
    speeds = jnp.maximum(jnp.abs(p.gamma), jnp.abs(p.D @ impulse))
    scale = jnp.max(jnp.where(involved, speeds, 0.0), initial=jnp.finfo(p.D.dtype).tiny)
    worst = jnp.max(jnp.abs(_map(p, layout, impulse)), initial=0.0) / scale
    return jnp.where(jnp.isnan(worst), jnp.inf, worst)


def _modes(p: _Round, layout: _Layout, impulse) -> Int[Array, " nt"]:
    nt = layout.nt
    trial = impulse - (p.gamma + p.D @ impulse)
    limit = _limits(p, layout, jnp.maximum(trial[nt:], 0.0))
    tangent = trial[:nt]
    one = jnp.where(
        tangent < -limit[:, 0],
        Mode.SLIP_POS,
        jnp.where(tangent > limit[:, 1], Mode.SLIP_NEG, Mode.STICK),
    )
    squared = tangent**2 + tangent[layout.partner] ** 2
    both = jnp.where(squared > limit[:, 0] ** 2, Mode.SLIP_POS, Mode.STICK)
    mode = jnp.where(layout.alone, one, both)
    mode = jnp.where(p.rubs, mode, Mode.SLIP_POS)
    closed = jnp.append(p.touching & (trial[nt:] > 0.0), True)[layout.own]
    return jnp.where(closed, mode, Mode.OPEN).astype(jnp.int32)


def _solved(p: _Round, layout: _Layout, method: Method, tolerance: float):
    """Impulses, and rounds that they took."""
    if layout.kept.size == 0 and layout.leads.size == 1:
        # One friction with a given limit: a sweep is exact.
        return _sweep(p, layout, jnp.zeros_like(p.gamma)), jnp.asarray(1, jnp.int32)
    newton, sweeps = method != "gauss-seidel", method != "newton"
    limit = ROUNDS if newton else SWEEPS // SOME

    def running(carry):
        _, best, rounds, _ = carry
        return (best > tolerance) & (rounds < limit)

    def swept(x):
        return jax.lax.fori_loop(0, SOME, lambda _, x: _sweep(p, layout, x), x)

    def one_round(carry):
        x, best, rounds, stalls = carry
        following, lost = x, stalls
        if newton:
            following = _newton(p, layout, x)
            lost = stalls | ~(_residual(p, layout, following) < (1.0 - ENOUGH) * best)
        if sweeps:
            following = jax.lax.cond(lost | (rounds == 0), swept, lambda _: following, x)
            lost = lost & False
        now = _residual(p, layout, following)
        # Sweeps may get worse for a while; what Newton's method finds alone may not.
        better = jnp.asarray(sweeps) | (now < best)
        x, best = jnp.where(better, following, x), jnp.where(better, now, best)
        return x, best, rounds + 1, lost

    x = jnp.zeros_like(p.gamma)
    start = (x, _residual(p, layout, x), jnp.asarray(0, jnp.int32), jnp.asarray(not newton))
    x, _, rounds, _ = jax.lax.while_loop(running, one_round, start)
    return x, rounds


def _step(slope, defect):
    """``slope^-1 defect``; of least squares where there is no inverse."""
    inverse = jnp.linalg.inv(slope)
    exact = inverse @ defect
    square = slope.T @ slope
    size = REGULAR * jnp.trace(square) * jnp.eye(square.shape[0], dtype=square.dtype)
    nearly = jnp.linalg.solve(square + size, slope.T @ defect)
    regular = jnp.max(jnp.abs(inverse)) < 1.0 / jnp.sqrt(jnp.finfo(slope.dtype).eps)
    return jnp.where(regular, exact, nearly)


def _newton(p: _Round, layout: _Layout, x):
    """The best of some steps along the direction of Newton's method."""
    slope = jax.jacfwd(lambda x: _map(p, layout, x))(x)
    step = _step(slope, _map(p, layout, x))
    tried = x[None, :] - jnp.asarray(LENGTHS, x.dtype)[:, None] * step[None, :]
    defects = jax.vmap(lambda x: jnp.sum(_map(p, layout, x) ** 2))(tried)
    return tried[jnp.argmin(jnp.where(jnp.isnan(defects), jnp.inf, defects))]


def _sweep(p: _Round, layout: _Layout, x):
    """Contact after contact, each with the impulses of all others held."""
    nt, nn = layout.nt, layout.kept.shape[0]
    leads = layout.leads
    diagonal = diagonal_of(p.D)
    diagonal = jnp.where(diagonal > 0, diagonal, 1.0)
    own, partner = jnp.asarray(layout.own), jnp.asarray(layout.partner)
    alone = jnp.asarray(layout.alone)

    def one(k, x):
        i = jnp.asarray(leads)[k]
        j, n = partner[i], jnp.minimum(own[i], max(nn - 1, 0))
        normal = jnp.zeros((), x.dtype)
        if nn:
            row = nt + n
            press = jnp.maximum(x[row] - (p.gamma[row] + p.D[row] @ x) / diagonal[row], 0.0)
            press = jnp.where(p.touching[n], press, 0.0)
            normal = jnp.where(own[i] < nn, press, 0.0)
            x = x.at[row].set(jnp.where(own[i] < nn, press, x[row]))
        limit = jnp.where(p.rubs[i], p.cap[i] + p.mu[i] * normal, 0.0)
        line = jnp.clip(x[i] - (p.gamma[i] + p.D[i] @ x) / diagonal[i], -limit[0], limit[1])
        if layout.planes:
            at = jnp.stack([i, j])
            block = p.D[at][:, at]
            free = p.gamma[at] + p.D[at] @ x - block @ x[at]
            both = rules.holding_friction(block, free, jnp.ones((2,), x.dtype), limit[0])
            x = jnp.where(alone[i], x, x.at[at].set(both))
        return x.at[i].set(jnp.where(alone[i], line, x[i]))

    return jax.lax.fori_loop(0, leads.shape[0], one, x)
