"""Poincare sections: observation of trajectories once in each period or at events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jfric.errors import ProblemError, nearest
from jfric.numerics.printing import printable
from jfric.periodic.harmonic_balance_checks import carrier
from jfric.periodic.harmonic_balance_equations import frequencies
from jfric.results.abstract_observables import Observable
from jfric.results.pieces import Function, Piece, Point
from jfric.system.mechanics import Mechanics
from jfric.system.problem import Problem

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
