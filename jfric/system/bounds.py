"""Bounds of parameters, as far as they follow from the path alone."""

from __future__ import annotations

import re
from collections import ChainMap
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool

from jfric.numerics import cubic
from jfric.system.bristle import AbstractBristle, LuGre
from jfric.system.description import AbstractProblem
from jfric.system.direction import Direction
from jfric.system.elements import SECTIONS
from jfric.system.fields import Bounds, about
from jfric.system.hysteresis import (
    ROUNDING,
    SINGULAR,
    MasingSpring,
    smallest_eigenvalue,
    springs_of_sliders,
)
from jfric.system.laws import (
    LAWS,
    FrictionCurve,
    PerAxis,
    StaticDynamic,
    VelocityWeakening,
    sides,
)
from jfric.system.naming import parameters
from jfric.system.position_factor import PeriodicFactor, SplineFactor

#: Lists whose numbers increase.
INCREASING = ("times", "x")
#: Numbers that are not part of the system: of the sensors of a fit.
_OTHERS = ("delay",)
_CHANNELS, _LATE = ("sensor", "input"), ("delay", "lag")

#: End of a path to a number of a law or a factor, below the field itself: friction.curve.3,
#: friction.mu.positive.
_BELOW = re.compile(r"(\.(\d+|positive|negative|first|second))+$")
#: End of a path to a number of one direction of a plane, where friction differs along them.
_OF_AXES = re.compile(r"\.(first|second)$")

#: Fields that are directions.
_DIRECTIONS = ("normal", "tangent", "reaction")


def bounds_of(path: str) -> Bounds:
    """The bounds of the parameter at the full ``path`` (``friction.mu``)."""
    section, _, rest = path.partition(".")
    if _is_weight(rest.split(".")):
        return Bounds()
    field = rest.rpartition(".")[2]
    if path in _OTHERS or (section in _CHANNELS and field in _LATE):
        return Bounds(0.0)
    if section not in SECTIONS:
        return Bounds()
    # A function of time is bounded by its values, not by each of its numbers.
    known = about(SECTIONS[section])
    # Fields of laws and of factors appear in paths as if they were the element's own.
    classes = (PeriodicFactor, SplineFactor, *LAWS.values()) if "law" in known else ()
    inside = ChainMap(*map(about, classes))
    found = known.get(field) or inside.get(_BELOW.sub("", f".{rest}").rpartition(".")[2])
    bounds = Bounds() if found is None else found.bounds
    # Numbers that differ along both directions of a plane are divided by.
    positive = bounds == Bounds(0.0) and _OF_AXES.search(rest)
    return bounds._replace(closed=False) if positive else bounds


def numbers_hold(problem: AbstractProblem) -> tuple[Bool[Array, ""], Bool[Array, ""]]:
    """Whether all numbers of ``problem`` are finite, and whether all are within their bounds, for
    numbers that are known only while a program runs. Neither result has a derivative."""
    problem, dtype = jax.lax.stop_gradient(problem.resolved()), jnp.result_type(float)
    values, low, closed, high, pairs = [], [], [], [], []
    for path, value in parameters(problem).items():
        value, bounds = jnp.asarray(value), bounds_of(path)
        if path.startswith("friction.") and path.endswith((".N", ".limit")):
            bounds = Bounds()  # a force that is negative ends the run where that happens
        if not jnp.issubdtype(value.dtype, jnp.floating):
            continue
        values.append(jnp.ravel(value).astype(dtype))
        low.append(np.full((value.size,), bounds.low, dtype))
        closed.append(np.full((value.size,), bounds.closed))
        high.append(np.full((value.size,), bounds.high, dtype))
        if value.ndim == 1 and path.rpartition(".")[2] in INCREASING:
            pairs.append(jnp.all(jnp.diff(value) > 0))
    for element in problem.labelled().values():
        pairs += _relations(element)
    if problem.section("jenkins"):
        K, z0, limits = springs_of_sliders(problem)
        pairs.append(jnp.all(jnp.abs(K @ z0) <= limits * (1.0 + ROUNDING)))
        if problem.section("jenkins_coupling"):
            pairs.append(smallest_eigenvalue(K) >= SINGULAR)
    x = jnp.concatenate(values)
    # Open bounds need ">": the processor would take the next number above zero for zero.
    above = (x > np.concatenate(low)) | (np.concatenate(closed) & (x == np.concatenate(low)))
    inside = jnp.all(above & (x <= np.concatenate(high)))
    return jnp.isfinite(x).all(), jnp.stack([inside, *pairs]).all()


def _relations(element: Any) -> list[Bool[Array, ""]]:
    """Conditions between numbers of an ``element``, each true where it holds."""
    law = getattr(element, "law", None)
    fields = (getattr(element, field, None) for field in ("direction", *_DIRECTIONS))
    weights = [x.coefficients for x in fields if isinstance(x, Direction) and x.coefficients]
    found = [jnp.any(jnp.stack(list(w.values())) != 0) for w in weights]
    if isinstance(law, StaticDynamic | VelocityWeakening):
        both = [law.along(0), law.along(1)] if law.holding(PerAxis) else [law]
        sides_of = [zip(sides(x.mu_s), sides(x.mu_d), strict=True) for x in both]
        found += [jnp.all(d <= s) for axis in sides_of for s, d in axis]
    if isinstance(law, FrictionCurve):
        curve = law.prepared()
        found += [law.speeds[0] == 0, jnp.all(jnp.diff(curve.x) > 0)]
        found.append(jnp.all(jnp.stack(law.static()) >= curve.y[:, 0]))
        for y, slopes in zip(curve.y, curve.slopes, strict=True):
            found.append(cubic.least(curve.x, y, slopes)[1] >= 0)
    factor = getattr(element, "position", None)
    if isinstance(factor, SplineFactor):
        found.append(jnp.all(jnp.diff(jnp.stack(factor.x)) > 0))
    if isinstance(factor, PeriodicFactor | SplineFactor):
        found.append(factor.least()[1] >= 0)
    if isinstance(element, MasingSpring):
        x, F = (jnp.diff(y, prepend=0.0) for y in (element.x, element.F))
        slopes = F / x
        found += [jnp.all(x > 0), jnp.all(jnp.diff(slopes) < 0), slopes[-1] >= 0]
    if isinstance(element, AbstractBristle):
        limit = element.largest()
        found += [] if limit is None else [jnp.abs(element.start()) <= limit]
    if isinstance(element, LuGre):
        found.append(element.F_s >= element.F_c)
    return found


def _is_weight(parts: list[str]) -> bool:
    """Whether the path ``parts`` ends at a coefficient of a direction, whatever the degree of
    freedom is called. An element may be called ``normal``, but not ``direction``."""
    if len(parts) < 2:
        return False
    return parts[-2] == "direction" or (len(parts) > 2 and parts[-2] in _DIRECTIONS)
