"""Between which numbers a parameter may lie, as far as that follows from its path alone."""

from __future__ import annotations

import math
import re
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool

from jfric.system.bristle import BRISTLES
from jfric.system.description import AbstractProblem
from jfric.system.elements import SECTIONS
from jfric.system.hysteresis import HYSTERESIS
from jfric.system.laws import PerAxis, StaticDynamic, Stribeck, VelocityWeakening, sides
from jfric.system.naming import parameters

#: Fields of elements that must not be negative, friction laws included.
_NOT_NEGATIVE = {
    *("m", "k", "c", "k_positive", "k_negative", "gap_positive", "gap_negative", "L"),
    *("radius", "circle_radius", "kappa"),
    *("mu", "mu_s", "mu_d", "mu_v", "positive", "negative"),
    *("first", "second", "curve", "speeds", "factor"),
}
#: Fields of friction laws that must be positive.
_POSITIVE = ("v_s", "exponent", "J", "period")
#: Lists whose numbers increase.
_INCREASING = ("times", "x")
#: Sections whose fields are coefficients of any sign.
_ANY_SIGN = ("jenkins_coupling", "polynomial_spring", "force_field")
#: Numbers beside those of the system: of the controller and of the sensors of a fit.
_OTHERS = ("delay", "controller.delay", "controller.lag", "controller.limit")
_CHANNELS, _LATE = ("sensor", "input"), ("delay", "lag")

#: A number at a knot of a friction curve: friction.curve.3, friction.curve.positive.3.
_KNOT = re.compile(r"((?:^|\.)(?:speeds|curve|factor|curve\.positive|curve\.negative))\.\d+$")


#: Fields that are directions.
_DIRECTIONS = ("normal", "tangent", "reaction")


class Bounds(NamedTuple):
    """``low`` and ``high``, and whether ``low`` itself is allowed."""

    low: float = -math.inf
    high: float = math.inf
    closed: bool = True

    def message(self, low: float, high: float) -> str | None:
        """What is wrong with the values from ``low`` to ``high``, if anything is."""
        if low < self.low or (low == self.low and not self.closed):
            if self.low != 0.0:
                return f"must be {'at least' if self.closed else 'above'} {self.low:g}"
            return "must not be negative" if self.closed else "must be positive"
        return f"must not be larger than {self.high:g}" if high > self.high else None


#: Fields of elements with a state, where they need not be positive.
_OF_BRISTLES = {
    **dict.fromkeys(("z0", "psi0", "beta", "gamma", "mu0"), Bounds()),
    **dict.fromkeys(("sigma1", "sigma2", "b"), Bounds(0.0)),
    "breakaway": Bounds(0.0, 1.0),
}


def bounds_of(path: str) -> Bounds:
    """The bounds of the parameter at the full ``path`` (``friction.mu``)."""
    section, _, rest = path.partition(".")
    if _is_weight(rest.split(".")):
        return Bounds()
    field = _KNOT.sub(r"\1", rest).rpartition(".")[2]
    if path in _OTHERS or (section in _CHANNELS and field in _LATE):
        return Bounds(0.0)
    if section not in SECTIONS or section in _ANY_SIGN:
        return Bounds()
    if section == "contact" and field == "e":
        return Bounds(0.0, 1.0)
    # A function of time is bounded by its values, not by each of its numbers.
    if section == "friction" and field in ("N", "limit"):
        return Bounds(0.0)
    if section in HYSTERESIS and field != "z0":
        low = {"chi": -1.0}.get(field, 0.0)
        return Bounds(low, closed=field == "beta")
    if section in BRISTLES:
        return _OF_BRISTLES.get(field, Bounds(0.0, closed=False))
    if "peak" in rest.split("."):
        return Bounds(1.0)
    if field in _POSITIVE or (section, field) in (("body", "m"), ("friction", "radius")):
        return Bounds(0.0, closed=False)
    return Bounds(0.0) if field in _NOT_NEGATIVE else Bounds()


def numbers_hold(problem: AbstractProblem) -> tuple[Bool[Array, ""], Bool[Array, ""]]:
    """Whether all numbers of ``problem`` are finite, and whether all are within their bounds: for
    numbers that are known only while a program runs. Neither has a derivative."""
    problem, dtype = jax.lax.stop_gradient(problem.resolved()), jnp.result_type(float)
    values, low, high, pairs = [], [], [], []
    for path, value in parameters(problem).items():
        value, bounds = jnp.asarray(value), bounds_of(path)
        if path.startswith("friction.") and path.endswith((".N", ".limit")):
            bounds = Bounds()  # a force that is negative ends the run where it is
        if not jnp.issubdtype(value.dtype, jnp.floating):
            continue
        # What lies above a bound that is not allowed itself: it need not be a normal number.
        least = bounds.low if bounds.closed else np.nextafter(dtype.type(bounds.low), dtype.type(1))
        values.append(jnp.ravel(value).astype(dtype))
        low.append(np.full((value.size,), least, dtype))
        high.append(np.full((value.size,), bounds.high, dtype))
        if value.ndim == 1 and path.rpartition(".")[2] in _INCREASING:
            pairs.append(jnp.all(jnp.diff(value) > 0))
    for element in problem.labelled().values():
        law = getattr(element, "law", None)
        if isinstance(law, StaticDynamic | Stribeck | VelocityWeakening):
            both = [law.along(0), law.along(1)] if law.holding(PerAxis) else [law]
            sides_of = [zip(sides(x.mu_s), sides(x.mu_d), strict=True) for x in both]
            pairs += [jnp.all(d <= s) for axis in sides_of for s, d in axis]
    x = jnp.concatenate(values)
    inside = jnp.all((x >= np.concatenate(low)) & (x <= np.concatenate(high)))
    return jnp.isfinite(x).all(), jnp.stack([inside, *pairs]).all()


def _is_weight(parts: list[str]) -> bool:
    """Whether a number says how much of a degree of freedom, whatever its name, a direction has.
    An element may be called ``normal``, but not ``direction``."""
    if len(parts) < 2:
        return False
    return parts[-2] == "direction" or (len(parts) > 2 and parts[-2] in _DIRECTIONS)
