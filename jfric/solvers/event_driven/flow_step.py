"""Interface between a flow and the rest of the solver: polynomials on one step."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple, Protocol

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from jfric.numerics.linear_algebra import matvec
from jfric.numerics.loops import once, when_any
from jfric.numerics.polynomials import combine, evaluate
from jfric.solvers.event_driven.prepared import Prepared


class Values(NamedTuple):
    """Motion and reactions at one instant."""

    q: Float[Array, " n"]
    v: Float[Array, " n"]
    a: Float[Array, " n"]
    lambda_t: Float[Array, " nt"]
    lambda_n: Float[Array, " nu"]
    #: Normal forces of friction elements.
    normal: Float[Array, " nf"]
    #: Prescribed accelerations along the tangents.
    prescribed_rate: Float[Array, " nt"]
    #: Elongations of elements with sliders.
    elongation: Float[Array, " e"]


class ClosedMotion(Protocol):
    """Motion in closed form, without a series. A call gives the columns of ``table`` at a fraction
    ``s`` of the step; ``table`` itself is for callers that need polynomials."""

    def __call__(self, s) -> Float[Array, " k"]: ...

    def table(self) -> Float[Array, "p k"]:
        """All coefficients of the motion."""
        ...


class Step(NamedTuple):
    """Motion, reactions and guards on a step, as polynomials in ``s = (time - t) / h``.

    Few polynomials are kept; everything else is a linear combination of them. Coefficients come
    first, constant term first.
    """

    h: Float[Array, ""]
    #: q, v, and the quantities that ``rows`` combine.
    table: Float[Array, "p k"]
    #: The other fields of ``Values`` over the columns of ``table``; None if they are its columns
    #: after v.
    rows: Float[Array, "r k"] | None
    #: Guards over the columns of ``guard_table``; None if they are its columns.
    guard_table: Float[Array, "p c"]
    guard_rows: Float[Array, "g c"] | None
    #: Magnitude below which a leading coefficient of a guard counts as zero.
    zero: Float[Array, "l g"]
    #: Leading coefficients of the guards at the start of the step, exact to rounding.
    leading: Float[Array, "l g"]
    #: Corresponding magnitudes and coefficients of the relative velocities of tangents and normals
    #: (no columns where reactions are always unique).
    relative_zero: Float[Array, "l m"]
    relative_leading: Float[Array, "l m"]
    #: Accelerations that forces and reactions would cause if they did not cancel.
    unbalanced: Float[Array, " n"]
    #: Bound on the part of the guards that their polynomials leave out.
    remainder: Float[Array, " g"]
    #: Whether the step's error is acceptable; otherwise a step of ``h_next`` is tried.
    accepted: Bool[Array, ""]
    h_next: Float[Array, ""]
    #: Function that gives ``table``, ``guard_table`` and ``remainder`` up to an order, where they
    #: are computed later.
    later: Callable[[int], tuple[Array, Array, Array]] | None = None
    #: Smallest pivot of reactions that friction in planes changes at the start; else None.
    pivot: Float[Array, ""] | None = None
    #: The motion in closed form; ``table`` then holds its leading coefficients alone.
    motion: ClosedMotion | None = None
    #: The small change carried along with the step, at its end; None where there is none.
    change: Float[Array, " y"] | None = None

    def smallest_pivot(self, others: Float[Array, ""]) -> Float[Array, ""]:
        """The smallest pivot of all reactions, given that of the ``others``."""
        return others if self.pivot is None else jnp.minimum(others, self.pivot)

    def judged_once(self, on: Bool[Array, ""]) -> Step:
        """This step, with the fields that decide about guards computed once where ``on``."""
        names = "zero", "leading", "relative_zero", "relative_leading", "unbalanced", "remainder"
        judged = once([getattr(self, x) for x in names], on)
        return self._replace(**dict(zip(names, judged, strict=True)))

    def with_later(self, found: tuple[Array, Array, Array]) -> Step:
        """Copy with the arrays ``found`` that ``later`` gave."""
        table, guards, remainder = found
        return self._replace(table=table, guard_table=guards, remainder=remainder, later=None)

    def completed(self, needed: Bool[Array, ""], order: int) -> Step:
        """Step with all polynomials; they may be zero where they are not ``needed``."""
        if self.later is None:
            return self
        return self.with_later(when_any(needed, functools.partial(self.later, order)))

    def at(self, prepared: Prepared, s) -> Values:
        """Motion and reactions at ``s``."""
        z = evaluate(self.table, s) if self.motion is None else self.motion(s)
        return self.split(prepared, z)

    def split(self, prepared: Prepared, z: Float[Array, " k"]) -> Values:
        """Motion and reactions from the values of the polynomials in ``table``."""
        n = prepared.mechanics.n
        rest = z[2 * n :] if self.rows is None else matvec(self.rows, z)
        return Values(z[:n], z[n : 2 * n], *_parts(prepared, rest))

    def as_polynomials(self) -> Step:
        """Step with all coefficients in ``table``, also where its motion is in closed form."""
        return self if self.motion is None else self._replace(table=self.motion.table())

    def polynomials(self, prepared: Prepared) -> Values:
        """Motion and reactions as polynomials: arrays (p, ...)."""
        n, table = prepared.mechanics.n, self.table
        rest = table[:, 2 * n :] if self.rows is None else combine(table, self.rows)
        parts = (x.T for x in _parts(prepared, rest.T))
        return Values(table[:, :n], table[:, n : 2 * n], *parts)


def _parts(prepared: Prepared, rest) -> list[Array]:
    mechanics = prepared.mechanics
    with_sliders = mechanics.piecewise.count - mechanics.piecewise.tables
    sizes = (mechanics.n, prepared.nt, prepared.nu, prepared.nf, prepared.nt, with_sliders)
    ends = np.cumsum(sizes)
    return [rest[end - size : end] for size, end in zip(sizes, ends, strict=True)]
