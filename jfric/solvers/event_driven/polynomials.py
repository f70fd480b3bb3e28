"""What a flow hands to the rest of the solver: polynomials on one step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from jfric.linear_algebra import matmul, matvec
from jfric.solvers.event_driven.prepared import Prepared


def horner(coefficients: Float[Array, "p ..."] | Sequence, s) -> Float[Array, ...]:
    """Value at ``s`` of the polynomial with the given coefficients, constant term first."""
    value = coefficients[-1]
    for k in range(len(coefficients) - 2, -1, -1):
        value = value * s + coefficients[k]
    return value


def powers(s, count: int) -> Float[Array, " p"]:
    """``1, s, ..., s^(count - 1)``; at least two."""
    table = jnp.stack([jnp.ones_like(s), s])
    while table.shape[0] < count:
        table = jnp.concatenate([table, table * (table[-1] * s)])
    return table[:count]


@jax.custom_jvp
def evaluate(coefficients: Float[Array, "p k"], s) -> Float[Array, " k"]:
    """Values at ``s`` of several polynomials that many others use.

    The loop keeps the compiler from repeating the evaluation in each of its uses; it needs two
    rounds, as one would be written out.
    """

    def body(i, _):
        # Depends on the round, or the evaluation would be moved out of the loop.
        return horner(coefficients, jnp.where(i < 2, s, 0.0))

    return jax.lax.fori_loop(0, 2, body, jnp.zeros_like(coefficients[0]))


@evaluate.defjvp
def _evaluate_jvp(primals, tangents):
    (coefficients, s), (change, ds) = primals, tangents
    value, slope = horner_with_slope(coefficients, s)
    return value, horner(change, s) + slope * ds


def horner_with_slope(coefficients: Float[Array, "p ..."] | Sequence, s):
    """Value and first derivative at ``s``."""
    value, slope = coefficients[-1], jnp.zeros_like(coefficients[-1])
    for k in range(len(coefficients) - 2, -1, -1):
        slope = slope * s + value
        value = value * s + coefficients[k]
    return value, slope


def combine(
    coefficients: Float[Array, "p k"], rows: Float[Array, "g k"] | None
) -> Float[Array, "p g"]:
    """Polynomials that are linear combinations of others; None: these themselves."""
    return coefficients if rows is None else matmul(coefficients, rows.T)


def pick(
    coefficients: Float[Array, "p k"], rows: Float[Array, "g k"] | None, chosen: Bool[Array, " g"]
) -> Float[Array, " p"]:
    """The combination named by ``chosen`` (one is True at most)."""
    if rows is None:
        return jnp.sum(jnp.where(chosen, coefficients, 0.0), axis=1)
    return matvec(coefficients, jnp.sum(jnp.where(chosen[:, None], rows, 0.0), axis=0))


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


class Step(NamedTuple):
    """Motion, reactions and guards on a step, as polynomials in ``s = (time - t) / h``.

    Few polynomials are kept; everything else is a linear combination of them. Coefficients come
    first, constant term first.
    """

    h: Float[Array, ""]
    #: q, v, and what the rest is made of.
    table: Float[Array, "p k"]
    #: The other fields of ``Values`` over the columns of ``table``; None: its columns after v.
    rows: Float[Array, "r k"] | None
    #: Guards over the columns of ``guard_table``; None: its columns.
    guard_table: Float[Array, "p c"]
    guard_rows: Float[Array, "g c"] | None
    #: Magnitude below which a leading coefficient of a guard counts as zero.
    zero: Float[Array, "l g"]
    #: Leading coefficients of the guards at the start of the step, exact to rounding.
    leading: Float[Array, "l g"]
    #: The same of the relative velocities of tangents and normals (no columns where reactions are
    #: always unique).
    relative_zero: Float[Array, "l m"]
    relative_leading: Float[Array, "l m"]
    #: Accelerations that forces and reactions would cause if they did not cancel.
    unbalanced: Float[Array, " n"]
    #: Bound on what the guards' polynomials leave out.
    remainder: Float[Array, " g"]
    #: Whether the step's error is acceptable; otherwise ``h_next`` is tried again.
    accepted: Bool[Array, ""]
    h_next: Float[Array, ""]

    def at(self, prepared: Prepared, s) -> Values:
        """Motion and reactions at ``s``."""
        return self.split(prepared, evaluate(self.table, s))

    def split(self, prepared: Prepared, z: Float[Array, " k"]) -> Values:
        """Motion and reactions from the values of the polynomials in ``table``."""
        n = prepared.mechanics.n
        rest = z[2 * n :] if self.rows is None else matvec(self.rows, z)
        return Values(z[:n], z[n : 2 * n], *_parts(prepared, rest))

    def polynomials(self, prepared: Prepared) -> Values:
        """Motion and reactions as polynomials: arrays (p, ...)."""
        n, table = prepared.mechanics.n, self.table
        rest = table[:, 2 * n :] if self.rows is None else combine(table, self.rows)
        parts = (x.T for x in _parts(prepared, rest.T))
        return Values(table[:, :n], table[:, n : 2 * n], *parts)


def step_without_guards(h, table: Float[Array, "p k"]) -> Step:
    """A step whose events are known: motion and reactions alone, one column each."""
    nothing = jnp.zeros((table.shape[0], 0), table.dtype)
    return Step(
        h=h,
        table=table,
        rows=None,
        guard_table=nothing,
        guard_rows=None,
        zero=nothing,
        leading=nothing,
        relative_zero=nothing,
        relative_leading=nothing,
        unbalanced=nothing[0],
        remainder=jnp.zeros((0,), table.dtype),
        accepted=jnp.asarray(True),
        h_next=jnp.asarray(jnp.inf, table.dtype),
    )


def _parts(prepared: Prepared, rest) -> list[Array]:
    sizes = (prepared.mechanics.n, prepared.nt, prepared.nu, prepared.nf, prepared.nt)
    ends = np.cumsum(sizes)
    return [rest[end - size : end] for size, end in zip(sizes, ends, strict=True)]
