"""``jfric.basins``: which attractor each of many initial states reaches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from jfric.errors import ProblemError
from jfric.numerics.limits import OUTPUTS, require_count
from jfric.numerics.loops import keep
from jfric.numerics.printing import printable
from jfric.periodic.sections import Section, lasting, make_section, visit, with_polynomials
from jfric.results.abstract_observables import Observable
from jfric.results.status import Status
from jfric.solvers.base import AbstractSolver
from jfric.sweeps.design import by_path
from jfric.sweeps.sweeping import Prepared, Summary, execute, prepare
from jfric.system.model import build
from jfric.system.problem import Problem
from jfric.system.states import state_units

if TYPE_CHECKING:
    import xarray

#: Number of consecutive returns that have to repeat an earlier one.
CONFIRM = 3
#: Distance, in tolerances, below which points of a cycle coincide, so that its period is shorter.
COARSE = 100.0
#: Places of the first values in the result.
PERIOD, RETURNS, STATE = 0, 1, 2
#: Weights of the coordinates by which one point of a cycle is chosen: no two are in a simple ratio.
WEIGHTS = (np.sqrt(2.0), np.sqrt(3.0), np.sqrt(5.0), np.sqrt(7.0), np.sqrt(11.0), np.sqrt(13.0))


class Memory(NamedTuple):
    """Record of a motion: its last returns, newest last, and how well they repeat."""

    number: Int[Array, ""]
    states: Float[Array, "p x"]
    #: Largest magnitude of each coordinate.
    size: Float[Array, " x"]
    #: How many returns in a row were near the one ``1 .. p`` returns before.
    near: Int[Array, " p"]
    #: Returns after which the motion repeats, 0 while none is known, and a point of the cycle.
    period: Int[Array, ""]
    state: Float[Array, " x"]


@dataclass(frozen=True)
class Attractor(Observable):
    """The attractor that a motion reaches, and the end of the run there.

    Positions, velocities and states of elements at returns to ``section`` are compared with those
    ``1 .. most`` returns before: where they differ by less than ``tolerance``, relative to the
    largest of the motion, three times in a row, they repeat; the period is the smallest number of
    returns after which they are within 100 times that tolerance. The search ends after ``give_up``
    returns. The result has the period in returns (0: none was recognised), the number of returns
    until then, one point of the cycle (positions, velocities, states), and the largest magnitudes
    of its numbers.
    """

    section: Section
    dofs: int
    states: int = 0
    most: int = 8
    tolerance: float = 1e-7
    give_up: int = 500
    name: str = "attractor"
    unit: str = ""

    @property
    def dims(self):
        count = STATE + 2 * self.coordinates
        return (("entry", tuple(float(i) for i in range(count)), ""),)

    @property
    def coordinates(self) -> int:
        """Number of positions, velocities and states of elements."""
        return 2 * self.dofs + self.states

    def start(self, problem, mechanics, dtype):
        coordinates, n = self.coordinates, self.dofs
        size = jnp.abs(jnp.concatenate([x[:n] for x in problem.start()[1:]]))
        none = jnp.asarray(0, jnp.int32)
        return Memory(
            number=none,
            states=jnp.full((self.most, coordinates), jnp.inf, dtype),
            size=jnp.pad(size, (0, self.states)).astype(dtype),
            near=jnp.zeros((self.most,), jnp.int32),
            period=none,
            state=jnp.full((coordinates,), jnp.nan, dtype),
        )

    def update(self, carry: Memory, piece):
        here = visit(self.section, piece.problem, carry.number, piece)
        hit = here.hit & ~self.enough(carry)
        point = here.point
        x = jnp.concatenate([point.q, point.v, *([] if point.z is None else [point.z])])
        size = jnp.maximum(carry.size, jnp.abs(x))
        floor = jnp.finfo(x.dtype).tiny
        apart = jnp.abs(carry.states - x[None, :]) / jnp.maximum(size, floor)[None, :]
        # The last row is the state one return before.
        distances = jnp.max(apart, axis=1)[::-1]
        repeats = (distances <= self.tolerance) & here.once
        near = jnp.where(repeats, carry.near + 1, 0)
        states = jnp.concatenate([carry.states[1:], x[None, :]])
        # A multiple of the period may be confirmed first.
        alike = distances <= COARSE * self.tolerance
        period = jnp.where(jnp.any(near >= CONFIRM), jnp.argmax(alike).astype(jnp.int32) + 1, 0)
        near, period = near.astype(jnp.int32), period.astype(jnp.int32)
        state = _chosen(states, size, period)
        return keep(hit, Memory(here.count, states, size, near, period, state), carry)

    def enough(self, carry: Memory) -> Bool[Array, ""]:
        return (carry.period != 0) | (carry.number >= self.give_up)

    def finish(self, carry: Memory, q, v, duration):
        dtype = carry.state.dtype
        head = jnp.stack([carry.period.astype(dtype), carry.number.astype(dtype)])
        state = jnp.where(carry.period > 0, carry.state, jnp.nan)
        return jnp.concatenate([head, state, carry.size])


def _chosen(states, size, period) -> Float[Array, " x"]:
    """One point of the cycle of the last ``period`` states, whichever of them came last."""
    most, coordinates = states.shape
    weights = np.resize(np.asarray(WEIGHTS), coordinates) * (1 + np.arange(coordinates) // 6)
    floor = jnp.finfo(states.dtype).tiny
    scaled = states / jnp.maximum(size, floor)[None, :]
    rank = jnp.sum(scaled * jnp.asarray(weights, states.dtype)[None, :], axis=1)
    inside = jnp.arange(most, dtype=jnp.int32) >= most - period
    best = jnp.argmax(jnp.where(inside & jnp.isfinite(rank), rank, -jnp.inf))
    place = jnp.arange(most, dtype=best.dtype) == best
    return jnp.sum(jnp.where(place[:, None], states, 0.0), axis=0)


#: Labels of states that reached no attractor: the run failed or cannot start; none was recognised.
FAILED, UNRECOGNISED = -1, 0
#: Distance, relative to the largest state, within which motions share an attractor.
NEAR = 1e-3
#: Most attractors: in a continuum of them (positions held by friction) each one counts.
MOST_ATTRACTORS = 100
#: Longest cycle that is searched for, in returns.
LONGEST = 64


@printable
@dataclass(frozen=True)
class FoundAttractor:
    """An attractor: a cycle of ``period`` returns (1: one point), and a point of it.

    ``q``, ``v`` (n,) and ``z`` (k,), the states of elements: that point, the mean over the motions
    that reached it; ``spread``: their
    largest distance from it, relative to the largest state. ``share``: part of the initial states
    that reach it; ``error``: standard error of the share for as many states drawn at random (an
    upper estimate for a grid). ``count``: number of these states; ``returns``: mean number of
    returns until recognition. Example: see :func:`jfric.basins`.
    """

    period: int
    q: Float[np.ndarray, " n"]
    v: Float[np.ndarray, " n"]
    z: Float[np.ndarray, " k"]
    share: float
    error: float
    count: int
    spread: float
    returns: float


@printable
@dataclass(frozen=True)
class Basins:
    """Basins of attraction: a label for each initial state, and the attractors.

    ``labels``: shape of the table's axes; 1 is the attractor with the largest share, 2 the next;
    0: not recognised (chaotic, slow, or with a longer period); -1: the run failed, or a contact
    starts with a negative gap. ``attractors``
    in the order of their labels. ``table``: the sweep, with the axes ``dims`` of the labels;
    ``axes``: degrees of freedom. Example: see :func:`jfric.basins`.
    """

    labels: Int[np.ndarray, ...]
    attractors: tuple[FoundAttractor, ...]
    table: xarray.Dataset
    dims: tuple[str, ...]
    axes: tuple[str, ...]

    def share(self, label: int) -> tuple[float, float]:
        """Share of the initial states with a label, and its standard error."""
        return _share(int(np.sum(self.labels == label)), self.labels.size)

    @property
    def unrecognised(self) -> tuple[float, float]:
        """Share of the states without an attractor, and its standard error."""
        return self.share(UNRECOGNISED)

    @property
    def failed(self) -> int:
        """Number of runs that failed."""
        return int(np.sum(self.labels == FAILED))


def basins(
    problem: Problem,
    plane: Mapping[str, Any],
    *,
    section: str | float = "period",
    longest: int = 8,
    tolerance: float = 1e-7,
    give_up: int = 500,
    method: str = "grid",
    samples: int | None = None,
    seed: int = 0,
    solver: AbstractSolver | None = None,
    **execution: Any,
) -> Basins:
    """Labels of the attractor that each of many initial states of ``problem`` reaches.

    ``plane``: paths of initial states (``"initial.x.q"``) or other parameters to their values, as
    in :func:`jfric.sweep`, with its ``method`` (``"grid"``; or ``samples`` points at random with a
    ``seed``, for shares of many dimensions). Each motion is observed once in each period of the
    loads or at another ``section``, as in :func:`jfric.poincare_section` (an interval in seconds
    for systems without loads). A motion is recognised, and ends, when its states come back within
    ``tolerance``, relative to its largest state, after 1 to ``longest`` returns, three times in a
    row; after ``give_up`` returns it counts as not recognised. Recognised motions share an
    attractor if they have the same period and their states agree to a thousandth.

    ``solver``: one with polynomials, by default :class:`jfric.EventDriven`. ``execution``:
    ``store`` (a folder: a run that is killed goes on with the same call), ``devices``, ``workers``,
    ``chunk`` and the other options of :func:`jfric.sweep`. Returns
    :class:`jfric.Basins`. Raises :class:`jfric.ProblemError` as :func:`jfric.sweep` and for loads
    without a period. Sources: G. Datseris, A. Wagemakers, Effortless estimation of basins of
    attraction, Chaos 32 (2022), for recognition by returns; P. J. Menck et al., Nature Physics 9
    (2013), for shares and their error. An oscillator between two magnets::

        >>> magnets = jfric.Problem(
        ...     ["x"],
        ...     {
        ...         "mass": jfric.Mass("x", 1.0),
        ...         "damper": jfric.Damper("x", 1.0),
        ...         "polynomial_spring": jfric.PolynomialSpring("x", [-1.0, 0.0, 1.0]),
        ...     },
        ... )
        >>> starts = {"initial.x.q": [-1.5, -0.5, 0.5, 1.5]}
        >>> found = jfric.basins(magnets, starts, section=1.0, progress=False)
        >>> found.labels.tolist(), [round(float(a.q[0]), 6) for a in found.attractors]
        ([1, 1, 2, 2], [-1.0, 1.0])
    """
    problem = build(problem)
    made = prepare_basins(
        problem,
        plane,
        section=section,
        longest=longest,
        tolerance=tolerance,
        give_up=give_up,
        method=method,
        samples=samples,
        seed=seed,
        solver=solver,
    )
    return run_basins(made, **execution)[0]


def prepare_basins(
    problem: Problem,
    plane: Mapping[str, Any],
    *,
    section: str | float = "period",
    longest: int = 8,
    tolerance: float = 1e-7,
    give_up: int = 500,
    solver: AbstractSolver | None = None,
    title: str = "",
    **design: Any,
) -> Prepared:
    """The checked sweep that :func:`basins` runs; ``design``: further settings of a sweep."""
    require_count("longest", longest, 1, LONGEST)
    require_count("give_up", give_up, longest + 3, OUTPUTS)
    if not 0.0 < tolerance < NEAR:
        raise ProblemError(f"tolerance: found {tolerance:g}, must lie between 0 and {NEAR:g}")
    solver = with_polynomials(solver)
    chosen = make_section(problem, section)
    moved = [path for path in by_path(problem, plane) if not path.startswith("initial.")]
    if moved and chosen.carrier is not None:
        raise ProblemError(
            f"plane: found {moved[0]!r}, a parameter that may change the period of the loads; give "
            "section an interval in seconds, or initial states only"
        )
    problem = lasting(problem, chosen, give_up)
    count = len(problem.dofs), len(state_units(problem))
    seen = Attractor(chosen, *count, longest, tolerance, give_up)
    title = title or "basins with jfric"
    return prepare(problem, plane, [seen], solver=solver, title=title, **design)


def run_basins(prepared: Prepared, **execution: Any) -> tuple[Basins, Summary]:
    """The basins, and the settings and results of the sweep behind them."""
    sink, summary = execute(prepared, **execution)
    return from_table(sink.dataset(), tuple(prepared.job.problem.dofs)), summary


def from_table(table: xarray.Dataset, axes: tuple[str, ...]) -> Basins:
    """Attractors and labels from a table of recognised motions."""
    status = np.asarray(table["status"])
    found = np.asarray(table["attractor"]).reshape(status.size, -1)
    labels, attractors = _clustered(status.reshape(-1), found, len(axes))
    dims = tuple(str(d) for d in table["status"].dims)
    return Basins(labels.reshape(status.shape), attractors, table, dims, axes)


def _clustered(
    status: np.ndarray, found: np.ndarray, n: int
) -> tuple[np.ndarray, tuple[FoundAttractor, ...]]:
    ok = status == int(Status.OK)
    labels = np.where(ok, UNRECOGNISED, FAILED)
    period = np.where(ok, found[:, PERIOD], 0.0)
    waiting = np.flatnonzero(period > 0)
    states, sizes = np.split(found[:, STATE:], 2, axis=1)
    # Velocities at rest are rounding errors: they are compared with the motion before.
    size = np.maximum(sizes[waiting].max(axis=0, initial=0.0), np.finfo(float).tiny)
    groups: list[np.ndarray] = []
    while waiting.size and len(groups) < MOST_ATTRACTORS:
        leader = waiting[0]
        apart = np.abs(states[waiting] - states[leader]) / size
        same = (apart.max(axis=1) <= NEAR) & (period[waiting] == period[leader])
        groups.append(waiting[same])
        waiting = waiting[~same]
    groups.sort(key=len, reverse=True)
    attractors = []
    for number, rows in enumerate(groups, start=1):
        labels[rows] = number
        centre = states[rows].mean(axis=0)
        share, error = _share(rows.size, status.size)
        attractors.append(
            FoundAttractor(
                period=int(period[rows[0]]),
                q=centre[:n],
                v=centre[n : 2 * n],
                z=centre[2 * n :],
                share=share,
                error=error,
                count=int(rows.size),
                spread=float((np.abs(states[rows] - centre) / size).max()),
                returns=float(found[rows, RETURNS].mean()),
            )
        )
    return labels, tuple(attractors)


def _share(count: int, total: int) -> tuple[float, float]:
    share = count / total
    return share, float(np.sqrt(share * (1.0 - share) / total))
