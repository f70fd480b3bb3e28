"""Poincare sections: observation of trajectories once in each period or at events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jfric.errors import ProblemError, nearest, within
from jfric.numerics.limits import OUTPUTS, require_count
from jfric.numerics.printing import printable
from jfric.periodic.forcing import carrier, frequencies
from jfric.periodic.harmonic_balance_equations import finite_numbers
from jfric.results.abstract_observables import Observable
from jfric.results.grammar import split
from jfric.results.pieces import Function, Piece, Point
from jfric.results.signals import Signal, look_up
from jfric.solvers.base import AbstractSolver
from jfric.solvers.event_driven.solver import EventDriven
from jfric.sweeps.observing import observe as observed
from jfric.sweeps.sweeping import sweep
from jfric.system.assembly import assemble
from jfric.system.expression import Expression
from jfric.system.mechanics import Mechanics
from jfric.system.model import build
from jfric.system.naming import find_path, set_parameters
from jfric.system.problem import Problem
from jfric.system.states import state_units

if TYPE_CHECKING:
    import xarray


#: Sections that need no further name.
KINDS = ("period", "impact")


@printable
@dataclass(frozen=True)
class Section:
    """Observation of a trajectory at equal intervals from the start, or just after events.

    ``kind``: ``"period"`` of the loads (or of ``seconds``, if given), ``"impact"``, or ``"event"``,
    the user's event with the index ``own``. ``carrier``: number of the frequency that gives the
    period, and its divisor.
    """

    kind: Literal["period", "impact", "event"]
    own: int | None = None
    carrier: tuple[int, float] | None = None
    seconds: float | None = None

    def period(self, mechanics: Mechanics) -> Float[Array, ""]:
        """The interval [s]; NaN if the section has none."""
        dtype = mechanics.K.dtype
        if self.seconds is not None:
            return jnp.asarray(self.seconds, dtype)
        if self.carrier is None:
            return jnp.full((), jnp.nan, dtype)
        index, divisor = self.carrier
        return jnp.asarray(2.0 * jnp.pi * divisor / frequencies(mechanics)[index], dtype)


class Visit(NamedTuple):
    """Whether a piece meets a section, the trajectory there, and whether it meets it once."""

    hit: Bool[Array, ""]
    point: Point
    once: Bool[Array, ""]
    count: Int[Array, ""]


def visit(section: Section, problem: Problem, count: Int[Array, ""], piece: Piece) -> Visit:
    """The first meeting of ``piece`` with ``section``, after ``count`` earlier meetings."""
    if section.kind == "period":
        period = section.period(piece.mechanics)
        start = jnp.asarray(problem.time.start, piece.t.dtype)
        # A piece that ends at the section holds the motion just before any change there.
        slack = 4 * jnp.finfo(piece.t.dtype).eps * jnp.abs(piece.end)
        passed = jnp.floor((piece.end + slack - start) / period).astype(count.dtype)
        hit = (passed > count) & (piece.h > 0)
        at = start + passed.astype(piece.t.dtype) * period
        length = jnp.where(piece.h > 0, piece.h, 1.0)
        s = jnp.where(hit, jnp.clip((at - piece.t) / length, 0.0, 1.0), 0.0)
        return Visit(hit, piece.at(s), passed <= count + 1, jnp.maximum(passed, count))
    if section.kind == "impact":
        more = (piece.impacts > 0).astype(count.dtype)
    else:
        assert piece.own is not None
        before, after = piece.own
        more = (after[section.own] - before[section.own]).astype(count.dtype)
    hit = more > 0
    zero = jnp.zeros((), piece.t.dtype)
    return Visit(hit, piece.at(zero), jnp.asarray(True), count + hit.astype(count.dtype))


def make_section(
    problem: Problem, name: str | float, path: str | None = None, values: Any = ()
) -> Section:
    """The section that ``name`` means: ``"period"``, ``"impact"``, the name of a user's event, or
    an interval [s].

    ``path``, ``values``: a parameter that varies. Raises :class:`ProblemError` for an unknown name,
    an interval that is not positive, and loads without a period.
    """
    if isinstance(name, int | float):
        if not name > 0.0 or name == float("inf"):
            raise ProblemError(f"section: found an interval of {name:g} s, must be positive")
        return Section("period", seconds=float(name))
    if name == "period":
        found = carrier(problem, path, [float(v) for v in values] if path else [0.0])
        return Section("period", carrier=found)
    if name == "impact":
        if not problem.section("contact"):
            raise ProblemError("section: found 'impact', but there is no contact")
        return Section("impact")
    events = [*problem.section("event")]
    own = name.removeprefix("event.")
    if own not in events:
        known = [*KINDS, *(f"event.{e}" for e in events)]
        raise ProblemError(
            f"section: found {name!r}{nearest(name, known)}, allowed are {', '.join(known)}, or an "
            "interval in seconds"
        )
    return Section("event", own=events.index(own))


@dataclass(frozen=True)
class Returns(Observable):
    """Last values of a quantity at its returns to a section, and the end of the run there.

    ``function`` of a point at the last ``count`` of ``skip + count`` returns to ``section``; NaN
    for missing returns. The run ends after them.
    """

    function: Function
    section: Section
    count: int
    skip: int = 0
    name: str = "returns"
    unit: str = ""

    @property
    def dims(self):
        return (("return", tuple(float(i) for i in range(self.count)), ""),)

    def start(self, problem, mechanics, dtype):
        return jnp.asarray(0, jnp.int32), jnp.full((self.count,), jnp.nan, dtype)

    def update(self, carry, piece):
        number, values = carry
        here = visit(self.section, piece.problem, number, piece)
        # Returns beyond the last one do not count.
        hit = here.hit & (number < self.skip + self.count)
        value = jnp.asarray(self.function(here.point), values.dtype)
        moved = jnp.concatenate([values[1:], value[None]])
        # Values in a piece that passes the section more than once are unknown.
        moved = jnp.where(here.once, moved, jnp.full_like(values, jnp.nan).at[-1].set(value))
        return jnp.where(hit, here.count, number), jnp.where(hit, moved, values)

    def enough(self, carry):
        return carry[0] >= self.skip + self.count

    def finish(self, carry, q, v, duration):
        return carry[1]


#: Number of periods after its last return at which a run ends.
SPARE = 0.25


class PoincareSection(NamedTuple):
    """Last returns of one motion to a section, in their order.

    ``q``, ``v`` (r, n) [m, rad; m/s, rad/s] and ``z`` (r, k), states of elements in the order of
    :attr:`jfric.Solution.states`; NaN for missing returns. ``status`` and ``flags`` of the run
    (:class:`jfric.Status`, :class:`jfric.Flag`).
    Example: see :func:`jfric.poincare_section`.
    """

    q: Float[Array, "r n"]
    v: Float[Array, "r n"]
    z: Float[Array, "r k"]
    status: Int[Array, ""]
    flags: Int[Array, ""]


def poincare_section(
    problem: Problem,
    section: str | float = "period",
    *,
    returns: int = 100,
    skip: int = 0,
    solver: AbstractSolver | None = None,
) -> PoincareSection:
    """States of a motion of ``problem`` at its returns to a section.

    ``section``: ``"period"`` of the loads, from the start on; ``"impact"``; ``"event.NAME"``, a
    user's event (a :class:`jfric.Event` with ``action="record"``); or an interval [s]. The first
    ``skip`` returns are left out, the next ``returns`` kept. With sections at events the run ends
    at the problem's end at the latest. ``solver``: one with polynomials, by default
    :class:`jfric.EventDriven`. Raises :class:`jfric.ProblemError` for an unknown section and loads
    without a period. Source: J. Guckenheimer, P. Holmes, Nonlinear Oscillations, Dynamical Systems,
    and Bifurcations of Vector Fields (1983), section 1.5. A linear oscillator settles on its
    response::

        >>> oscillator = jfric.Problem(
        ...     ["x"],
        ...     {
        ...         "mass": jfric.Mass("x", 1.0),
        ...         "spring": jfric.Spring("x", 1.0),
        ...         "damper": jfric.Damper("x", 1.0),
        ...         "load": jfric.Load("x", jfric.Harmonic(1.0, omega=1.0)),
        ...     },
        ... )
        >>> found = jfric.poincare_section(oscillator, returns=2, skip=20)
        >>> found.q.round(9).tolist()
        [[-1.0], [-1.0]]
    """
    problem = build(problem)
    solver = _checked(solver, returns, skip)
    chosen = make_section(problem, section)
    problem = lasting(problem, chosen, returns + skip)
    names = {"q": problem.dofs, "v": problem.dofs, "z": state_units(problem)}
    seen = [
        Returns(Signal(field, i, ""), chosen, returns, skip, name=f"{field}.{name}")
        for field, own in names.items()
        for i, name in enumerate(own)
    ]
    found = observed(problem, seen, solver)
    rows = [jnp.zeros((returns, 0)), *(found.values[x.name][:, None] for x in seen)]
    table, n = jnp.concatenate(rows, axis=1), len(problem.dofs)
    q, v, z = jnp.split(table, (n, 2 * n), axis=1)
    return PoincareSection(q, v, z, found.status, found.flags)


def bifurcation_diagram(
    problem: Problem,
    path: str,
    values: Any,
    observe: str,
    *,
    section: str | float = "period",
    returns: int = 50,
    skip: int = 200,
    solver: AbstractSolver | None = None,
    **execution: Any,
) -> xarray.Dataset:
    """The last returns of motions of ``problem`` over a parameter, by brute force: a sweep.

    ``path``: the parameter, which takes the ``values`` (p,) [SI]; every motion begins at the
    problem's start. ``observe``: quantities such as ``"u"`` or ``"v.u, u"``; the last ``returns``
    of each after ``skip`` returns to ``section`` are kept, see :func:`jfric.poincare_section`.
    ``solver``: one with polynomials, by default :class:`jfric.EventDriven`. ``execution``:
    ``store``, ``devices``, ``workers`` and the other options of :func:`jfric.sweep`.

    Returns a table as :func:`jfric.sweep` does, with the axis ``return``. Raises
    :class:`jfric.ProblemError` as these functions do. After the example of
    :func:`jfric.poincare_section`, the response of a linear oscillator has one value::

        >>> table = jfric.bifurcation_diagram(
        ...     oscillator, "load.F.omega", [1.0, 2.0], "x", returns=3, skip=30, progress=False
        ... )
        >>> table["x"].dims, table["x"].values.round(6).tolist()
        (('load.F.omega', 'return'), [[-1.0, -1.0, -1.0], [-0.153846, -0.153846, -0.153846]])
    """
    problem = build(problem)
    solver = _checked(solver, returns, skip)
    with within("path: ", KeyError):
        name = find_path(problem, path)
    numbers = finite_numbers("values", values)
    ends = sorted({float(numbers.min()), float(numbers.max())})
    chosen = make_section(problem, section, name, ends)
    problem = lasting(problem, chosen, returns + skip, name, numbers)
    seen = []
    for text in split(observe):
        with within("observe: "):
            full, quantity = look_up(problem, text)
        seen.append(Returns(quantity, chosen, returns, skip, name=full, unit=quantity.unit))
    return sweep(problem, {name: numbers}, seen, solver=solver, **execution)


def _checked(solver: AbstractSolver | None, returns: int, skip: int) -> AbstractSolver:
    require_count("returns", returns, 1, OUTPUTS)
    require_count("skip", skip, 0, OUTPUTS)
    return with_polynomials(solver)


def with_polynomials(solver: AbstractSolver | None) -> AbstractSolver:
    """The solver, by default the event-driven one; raises :class:`ProblemError` for a solver
    without polynomials between events."""
    solver = EventDriven() if solver is None else solver
    if not solver.has_polynomials:
        raise ProblemError(
            f"solver: {solver.label} knows its motion at outputs only; sections need event-driven"
        )
    return solver


def lasting(
    problem: Problem, section: Section, count: int, path: str | None = None, values: Any = ()
) -> Problem:
    """``problem`` with an end after ``count`` returns, if they come at equal intervals."""
    if section.kind != "period":
        return problem
    if isinstance(problem.time.end, Expression):
        raise ProblemError(
            "time.end: found an expression; here the end follows from the number of returns, give "
            "a number"
        )
    period = _longest(problem, section, path, jnp.asarray(values, jnp.result_type(float)))
    start = float(problem.resolved().time.start)
    return set_parameters(problem, {"time.end": start + (count + SPARE) * float(period)})


@eqx.filter_jit
def _longest(problem: Problem, section: Section, path: str | None, values) -> Float[Array, ""]:
    if path is None:
        return section.period(assemble(problem))

    def at(value):
        return section.period(assemble(set_parameters(problem, {path: value})))

    return jnp.max(jax.vmap(at)(values))
