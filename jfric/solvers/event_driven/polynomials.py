"""What a flow hands to the rest of the solver: polynomials on one step."""

from __future__ import annotations

from typing import NamedTuple

from jaxtyping import Array, Bool, Float


class Step(NamedTuple):
    """Motion, reactions and guards on a step, as polynomials in ``s = (time - t) / h``.

    Coefficients come first, constant term first.
    """

    h: Float[Array, ""]
    q: Float[Array, "p n"]
    v: Float[Array, "p n"]
    #: Accelerations; may have fewer coefficients.
    a: Float[Array, "r n"]
    lambda_t: Float[Array, "p nt"]
    lambda_n: Float[Array, "p nu"]
    #: Normal forces of friction elements.
    normal: Float[Array, "p nf"]
    #: Prescribed accelerations along the tangents.
    prescribed_rate: Float[Array, "p nt"]
    guards: Float[Array, "p g"]
    #: Magnitude below which a leading coefficient of a guard counts as zero.
    zero: Float[Array, "l g"]
    #: Leading coefficients of the guards at the start of the step, exact to rounding.
    leading: Float[Array, "l g"]
    #: Bound on what the guards' polynomials leave out.
    remainder: Float[Array, " g"]
    #: Whether the step's error is acceptable; otherwise ``h_next`` is tried again.
    accepted: Bool[Array, ""]
    h_next: Float[Array, ""]
