"""Steady sliding: the state, and the eigenvalues of small motions around it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool, Complex, Float, Int

from jfric.errors import ProblemError, require_one_of
from jfric.numerics.linear_algebra import eigenvalues, matvec
from jfric.numerics.printing import Shown, printable, short
from jfric.periodic.forcing import periodic_functions
from jfric.periodic.state_vector import at_start, axes_of, with_start
from jfric.results.modes import Mode
from jfric.solvers.event_driven.guards import Quantities
from jfric.solvers.event_driven.in_mode import held_by_others
from jfric.solvers.event_driven.inputs import given
from jfric.solvers.event_driven.mode_equations import mode_equations
from jfric.solvers.event_driven.prepared import Prepared, prepare
from jfric.solvers.event_driven.smooth_piece import smooth_piece
from jfric.solvers.event_driven.solver import EventDriven
from jfric.solvers.event_driven.state import State, closed_modes, initial_state, together
from jfric.solvers.event_driven.varying_piece import varying_piece
from jfric.system.control import refuse_controllers
from jfric.system.features import FEATURES, require_features
from jfric.system.model import build
from jfric.system.problem import Problem

#: Name of this computation in messages.
WHO = "steady sliding"
#: Most steps of Newton's method, and size of its last one.
STEPS, NEAR = 60, 1e-12
#: Relative size of a step that counts as converged at the end, and of a reaction, a gap or a
#: constraint that counts as zero.
CONVERGED, ZERO = 1e-8, 1e-9
#: Part of the largest eigenvalue below which growth is none: eigenvalues that meet are known to the
#: root of rounding.
NEUTRAL = 1e-7


@printable
class SteadySliding(eqx.Module):
    """A state of steady sliding and the eigenvalues of small motions around it.

    ``q``, ``v`` (n,) [m, m/s or rad, rad/s]: the state of ``axes`` (states of elements are
    velocities of axes ``z.NAME``); ``lambda_t`` (nt,), ``lambda_n`` (nu,) [N]: friction and normal
    forces of the contacts ``names``, the unilateral ones last, in their modes ``mode`` (nt,);
    ``segment``: those of piecewise-linear elements. ``eigenvalues`` (2n,) [rad/s], by ascending
    frequency, NaN behind for directions that contacts and joints hold; ``vectors`` (2n, 2n): small
    motions (q, v) as columns; ``matrix`` (2n, 2n): the matrix ``A``, with a large negative number
    across these directions. ``exists``: whether Newton's method converged to a state that obeys
    all laws; ``residual``: its last step, relative. Under ``vmap`` arrays have the batch axis in
    front; derivatives are those of the implicit function theorem. Example: see
    :func:`jfric.steady_sliding`.
    """

    q: Float[Array, " n"]
    v: Float[Array, " n"]
    lambda_t: Float[Array, " nt"]
    lambda_n: Float[Array, " nu"]
    mode: Int[Array, " nt"]
    segment: Int[Array, " ns"]
    eigenvalues: Complex[Array, " x"]
    vectors: Complex[Array, "x x"]
    matrix: Float[Array, "x x"]
    exists: Bool[Array, ""]
    residual: Float[Array, ""]
    axes: tuple[str, ...] = eqx.field(static=True)
    names: tuple[str, ...] = eqx.field(static=True)

    @property
    def growth(self) -> Float[Array, ""]:
        """Largest growth rate [1/s]: real part of an eigenvalue; NaN where no state exists."""
        held = jnp.isnan(self.eigenvalues.real)
        largest = jnp.max(jnp.where(held, -jnp.inf, self.eigenvalues.real), axis=-1)
        return jnp.where(self.exists, largest, jnp.nan)

    @property
    def stable(self) -> Bool[Array, ""]:
        """Whether no small motion grows; rounding errors of eigenvalues that meet do not count."""
        return self.growth <= NEUTRAL * jnp.nanmax(jnp.abs(self.eigenvalues), axis=-1)

    def modes(self) -> list[dict[str, float]]:
        """Frequency [rad/s] and growth rate [1/s] of each mode, by ascending frequency, of one
        state: of a pair of eigenvalues once, and of real ones with the frequency zero."""
        values = np.asarray(self.eigenvalues)
        values = values[np.isfinite(values) & (np.imag(values) >= 0.0)]
        return [{"frequency": float(x.imag), "growth": float(x.real)} for x in values]

    def _shown(self) -> Shown:
        if isinstance(self.exists, Tracer) or self.exists.ndim:
            names = "q", "growth", "exists"
            return Shown("SteadySliding", (), [(n, short(getattr(self, n))) for n in names])
        word = ("stable" if self.stable else "unstable") if self.exists else "not found"
        rows = [(f"{x['frequency']:.9g}", f"{x['growth']:.6g}") for x in self.modes()]
        contacts = ", ".join(
            f"{name} {Mode(int(m)).label}" for name, m in zip(self.names, self.mode, strict=True)
        )
        return Shown(f"SteadySliding: {word}", (">frequency", ">growth"), rows, contacts)


def steady_sliding(problem: Problem, *, t=None, moving: Sequence[str] = ()) -> SteadySliding:
    """Steady sliding of ``problem``, and the eigenvalues of small motions around it.

    In the modes of its contacts the motion obeys ``M dv/dt = f(q, v)`` with friction that follows
    velocities and normal forces. The steady state has ``dv/dt = 0`` and ``v = 0``, except for the
    axes ``moving``, whose velocities are unknown and on whose positions nothing depends (a rotor).
    Around it ``dx/dt = A x`` for small ``x = (q, v)`` that keep closed contacts closed and sticking
    ones where they are; the eigenvalues of ``A`` are growth rates (real parts, [1/s]) and
    frequencies (imaginary parts, [rad/s]). ``A`` is the exact derivative of the equations of the
    event-driven solver, so everything that this solver takes may be in the problem, except for
    springs in series with sliders, whose force at rest depends on the motion before.

    Newton's method starts from the initial state of ``problem``. Partners move by their belts;
    their velocity gives the direction of sliding. Contacts open and close until forces and gaps
    have the right sign. Loads and belts count as constants, with their values at the time ``t`` [s]
    (default: the start). Sticking contacts keep their initial position.

    Works under ``jit``, ``vmap`` and derivatives. Raises :class:`jfric.ProblemError` for
    controllers, sliders, harmonic loads, and unknown axes. Source: N. Hoffmann, M. Fischer, R.
    Allgaier, L. Gaul, A minimal model for studying properties of the mode-coupling type instability
    in friction induced oscillations, Mech. Res. Commun. 29 (2002). A mass on a belt that presses it
    the harder, the more friction lifts it::

        >>> brake = jfric.Problem(
        ...     ["x", "y"],
        ...     {
        ...         "mass": {"x": jfric.Mass("x", 1.0), "y": jfric.Mass("y", 1.0)},
        ...         "spring": {
        ...             "tilted": jfric.Spring({"x": 1.0, "y": 0.5}, k=3.0),
        ...             "y": jfric.Spring("y", k=0.25),
        ...         },
        ...         "stop": jfric.Stop("y", k=4 / 3, gap=0.0),
        ...         "load": jfric.Load("y", 1.0),
        ...         "friction": jfric.Friction("x", 1.0, N=0.0, load="stop", belt=1.0),
        ...     },
        ... )
        >>> state = jfric.steady_sliding(brake)
        >>> [round(row["frequency"], 6) for row in state.modes()], bool(state.stable)
        ([1.437269, 1.807648], True)
    """
    problem = build(problem)
    require_steady(problem, moving)
    t = problem.resolved().time.start if t is None else t
    return solved(problem, jnp.asarray(t, jnp.result_type(float)), tuple(moving))


def require_steady(problem: Problem, moving: Sequence[str]) -> None:
    """Raise :class:`ProblemError` for systems that cannot slide steadily."""
    EventDriven().require(problem)
    refuse_controllers(problem, WHO)
    require_features(problem, WHO, FEATURES.keys() - {"sliders"})
    for label in periodic_functions(problem):
        raise ProblemError(
            f"{label}: found a harmonic function of time, steady sliding needs constant loads; ask "
            "for the periodic motion (jfric.periodic_orbit)"
        )
    axes = axes_of(problem)
    for name in moving:
        require_one_of("moving", name, axes, "axes are")


class _Seen(NamedTuple):
    """The system at a state, in its modes: accelerations, rows that modes hold, and what they
    demand of positions."""

    prepared: Prepared
    state: State
    a: Float[Array, " n"]
    held: Float[Array, "m n"]
    demanded: Float[Array, " d"]
    quantities: Quantities


def _seen(problem: Problem, t, x, closed: Bool[Array, " nu"]) -> _Seen:
    """The system at the state ``x`` with the unilateral contacts ``closed``; all others are
    open."""
    begun = with_start(problem, t, x)
    everywhere = prepare(begun)
    state = initial_state(begun, everywhere)
    prepared = everywhere.in_regions(state.region).at(state.t, state.q, state.v)
    nf, nt = prepared.nf, prepared.nt
    mode = closed_modes(prepared, state.t, state.v)
    mode = mode.at[nf:].set(jnp.where(closed, mode[nf:], int(Mode.OPEN)))
    state = dataclasses.replace(state, mode=together(prepared, mode).astype(jnp.int32))
    held = held_by_others(prepared, state.mode, state.t)
    equations = mode_equations(prepared, state.mode, state.inner, held, state.sharing)
    make = smooth_piece if prepared.mechanics.varying is None else varying_piece
    g, zero = given(prepared, equations, state.t), jnp.zeros_like(state.t)
    piece = make(prepared, equations, g, state, jnp.zeros_like(state.q))
    found = piece.quantities(piece.at(zero, state.q, state.v)[None])
    active = prepared.active_rows(state.mode)
    rows = jnp.where(active[:, None], prepared.W, 0.0)
    moved = state.q - jax.lax.stop_gradient(at_start(problem.resolved())[: len(state.q)])
    slip = jnp.where(active[:nt], matvec(prepared.W[:nt], moved), 0.0)
    gap = jnp.where(active[nt:], found.gap[0], 0.0)
    tied = prepared.mechanics.tied
    if tied is not None:
        rows = jnp.concatenate([rows, tied.J])
    a = piece.acceleration(zero, state.q, state.v)
    return _Seen(prepared, state, a, rows, jnp.concatenate([slip, gap]), found)


class _Search(NamedTuple):
    """State of Newton's method: unknowns, closed contacts, size of the last step, rounds."""

    y: Float[Array, " n"]
    closed: Bool[Array, " nu"]
    size: Float[Array, ""]
    rounds: Int[Array, ""]
    done: Bool[Array, ""]


@eqx.filter_jit
def solved(problem: Problem, t, moving: tuple[str, ...]) -> SteadySliding:
    """Steady sliding of a checked problem."""
    axes, n = axes_of(problem), len(axes_of(problem))
    start = at_start(problem.resolved())
    # States of elements are velocities, and always unknown.
    runs = np.asarray([i >= len(problem.dofs) or x in moving for i, x in enumerate(axes)])

    def state_of(y):
        return jnp.concatenate([jnp.where(runs, start[:n], y), jnp.where(runs, y, 0.0)])

    def left_sides(y, closed):
        seen = _seen(problem, t, state_of(y), closed)
        left = jnp.concatenate([seen.a, seen.demanded])
        return left, (left, seen)

    def newton(y, closed):
        by_y, (left, seen) = jax.jacfwd(left_sides, has_aux=True)(y, closed)
        return -matvec(_inverse(jax.lax.stop_gradient(by_y)), left), seen

    def search(s: _Search) -> _Search:
        step, seen = newton(s.y, s.closed)
        size = jnp.max(jnp.abs(step)) / jnp.maximum(jnp.max(jnp.abs(s.y)), 1e-300)
        wrong, near = _violated(seen, s), size <= NEAR
        closed, y = s.closed ^ (wrong & near), s.y + jnp.where(near & wrong.any(), 0.0, step)
        return _Search(y, closed, size, s.rounds + 1, near & ~wrong.any())

    def goes_on(s: _Search):
        return ~s.done & (s.rounds < STEPS) & jnp.all(jnp.isfinite(s.y))

    prepared = prepare(problem)
    touches = initial_state(problem, prepared).mode[prepared.nf :] != int(Mode.OPEN)
    y = jnp.where(runs, start[n:], start[:n])
    first = _Search(y, touches, jnp.full_like(y[0], jnp.inf), jnp.asarray(0), jnp.asarray(False))
    last = jax.lax.while_loop(goes_on, search, jax.lax.stop_gradient(first))
    last = jax.lax.stop_gradient(last)
    # One more step from the solution, with a frozen matrix, has its derivatives.
    y = last.y + newton(last.y, last.closed)[0]
    return _result(problem, t, state_of(y), last, runs)


def _result(problem: Problem, t, x, last: _Search, runs: np.ndarray) -> SteadySliding:
    """Steady sliding in the state ``x``, where the search has ended."""
    n = len(runs)

    def motion(x):
        seen = _seen(problem, t, x, last.closed)
        return jnp.concatenate([seen.state.v, seen.a, matvec(seen.held, seen.state.v)]), seen

    by_x, seen = jax.jacfwd(motion, has_aux=True)(x)
    A, held = by_x[: 2 * n], seen.held
    # Positions of axes that move, on which nothing depends, and those of states.
    idle = jnp.eye(2 * n, dtype=x.dtype)[np.flatnonzero(runs)]
    N = jnp.concatenate([jnp.pad(held, ((0, 0), (0, n))), by_x[2 * n :], idle])
    matrix, values, vectors = _on_constraints(A, N)
    depends = jnp.max(jnp.abs(A[:, :n][:, runs]), initial=0.0) > ZERO * jnp.max(jnp.abs(A))
    limits = seen.prepared.static_positive, seen.prepared.static_negative
    holds = _sticks(seen, *limits) & ~_violated(seen, last).any() & ~depends
    return SteadySliding(
        q=x[:n],
        v=x[n:],
        lambda_t=seen.quantities.lambda_t[0],
        lambda_n=seen.quantities.lambda_n[0],
        mode=seen.state.mode,
        segment=seen.state.segment,
        eigenvalues=values,
        vectors=vectors,
        matrix=matrix,
        exists=(last.size <= CONVERGED) & holds,
        residual=last.size,
        axes=axes_of(problem),
        names=seen.prepared.mechanics.contact_names,
    )


def _on_constraints(A: Float[Array, "x x"], N: Float[Array, "c x"]):
    """The matrix ``A`` on the null space of ``N``, from which it does not lead, with a large
    negative number across, its eigenvalues (NaN behind for the directions across), and
    eigenvectors."""
    size = A.shape[0]
    across = jnp.linalg.pinv(N, rtol=ZERO) @ N
    along = jnp.eye(size, dtype=A.dtype) - across
    norm = jax.lax.stop_gradient(jnp.sqrt(jnp.sum(A * A)))
    # A mark that no eigenvalue on the null space can have.
    mark = -4.0 * jnp.where(norm > 0.0, norm, 1.0)
    matrix = along @ A @ along + mark * across
    values, vectors = eigenvalues(matrix)
    marked = jnp.abs(values - mark) < 0.5 * jnp.abs(mark)
    height = jnp.where(marked, jnp.inf, jnp.abs(values.imag))
    order = jnp.argsort(jax.lax.stop_gradient(height), stable=True)
    values = jnp.where(marked, jnp.nan, values)[order]
    return matrix, values, vectors[:, order]


def _inverse(a: Float[Array, "e n"]) -> Float[Array, "n e"]:
    """Matrix of the shortest step that solves ``a x = b`` as well as possible, in the sizes of its
    rows and columns."""
    a = jnp.where(jnp.isfinite(a), a, 0.0)
    columns = jnp.max(jnp.abs(a), axis=0)
    columns = jnp.where(columns > 0.0, columns, 1.0)
    rows = jnp.max(jnp.abs(a / columns), axis=1)
    rows = jnp.where(rows > 0.0, rows, 1.0)
    scaled = jnp.linalg.pinv(a / columns / rows[:, None], rtol=ZERO)
    return scaled / columns[:, None] / rows


def _violated(seen: _Seen, last: _Search) -> Bool[Array, " nu"]:
    """Closed contacts that pull, and open ones inside another body."""
    pressed, gap = seen.quantities.lambda_n[0], seen.quantities.gap[0]
    forces = jnp.max(jnp.abs(jnp.concatenate([pressed, seen.quantities.lambda_t[0]])), initial=0.0)
    length = jnp.max(jnp.abs(seen.state.q), initial=0.0)
    return jnp.where(last.closed, pressed < -ZERO * forces, gap < -ZERO * length)


def _sticks(seen: _Seen, positive, negative) -> Bool[Array, ""]:
    """Whether all contacts that stick stay within their limits."""
    mode, x = seen.state.mode, seen.quantities
    normal = jnp.concatenate([x.normal[0], x.lambda_n[0]])
    slack = ZERO * jnp.max(jnp.abs(x.lambda_t[0]), initial=0.0)
    inside = (x.lambda_t[0] <= negative * normal + slack) & (
        x.lambda_t[0] >= -positive * normal - slack
    )
    plane = jnp.asarray(seen.prepared.mechanics.in_plane)
    inside = inside | (mode != int(Mode.STICK)) | plane
    return inside.all() & jnp.all(x.margin[0] >= 0.0)
