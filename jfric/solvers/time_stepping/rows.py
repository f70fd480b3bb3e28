"""Results of a step, as a row for the records."""

from __future__ import annotations

from typing import NamedTuple

from jaxtyping import Array, Bool, Float, Int


class Row(NamedTuple):
    """End of a step and actions of its contacts. Rows (m,): tangents, then normals."""

    q: Float[Array, " n"]
    v: Float[Array, " n"]
    mode: Int[Array, " nt"]
    segment: Int[Array, " ns"]
    impulse: Float[Array, " m"]
    #: Unilateral contacts that closed with an approach velocity.
    impact: Bool[Array, " nu"]
    #: Whether the impulses of impacts feed energy into the motion.
    gains: Bool[Array, ""]
    #: Remarks on new modes (:class:`jfric.results.status.Flag`); None where there are none.
    flags: Int[Array, ""] | None
    #: Residual of the contact problem, iterations, and status.
    residual: Float[Array, ""]
    iterations: Int[Array, ""]
    status: Int[Array, ""]
