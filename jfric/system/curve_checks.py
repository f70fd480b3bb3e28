"""Checks of friction curves."""

from __future__ import annotations

from typing import Any

import numpy as np

from jfric.errors import ProblemError
from jfric.numerics import cubic
from jfric.system.laws import Directional, FrictionCurve, sides

_SIDES = ("positive", "negative")


def require_knots(where: str, law: FrictionCurve) -> None:
    """Raise :class:`ProblemError` unless there are at least two knots, and a value for each."""
    if not isinstance(law.speeds, tuple) or len(law.speeds) < 2:
        found = len(law.speeds) if isinstance(law.speeds, tuple) else "no list"
        raise ProblemError(
            f"{where}.speeds: found {found}, a friction curve needs at least two knots, such as "
            "[0, 0.01, 0.1]"
        )
    for side, values in _sides(law):
        found = len(values) if isinstance(values, tuple) else "no list"
        if found != len(law.speeds):
            raise ProblemError(
                f"{where}.{side}: found {found} values, needed are {len(law.speeds)}, one for "
                "each of speeds"
            )


def require_curve(where: str, law: FrictionCurve) -> None:
    """Raise :class:`ProblemError` for knots out of order, a static limit below the curve, and a
    curve that is negative."""
    speeds = np.array([float(x) for x in law.speeds])
    prepared = law.prepared()
    # Increasing speeds may become one knot after the logarithm.
    if speeds[0] != 0.0 or not np.all(np.diff(np.asarray(prepared.x)) > 0):
        raise ProblemError(
            f"{where}.speeds: found {speeds.tolist()}, must begin with 0 and increase strictly"
        )
    limits = [float(x) for x in law.static()]
    for i, (side, _) in enumerate(_sides(law)):
        start = float(prepared.y[i, 0])
        if limits[i] < start:
            raise ProblemError(
                f"{where}.mu_s: found {limits[i]:g}, must be at least {start:g}, the first value "
                f"of {side}"
            )
        place, least = cubic.least(prepared.x, prepared.y[i], prepared.slopes[i])
        at = float(prepared.first) * float(np.expm1(place))
        if float(least) < 0.0:
            raise ProblemError(
                f"{where}.{side}: the curve is negative between its knots, {least:.3g} at the "
                f"speed {at:.4g}; add a knot there, or set monotone = true"
            )


def _sides(law: FrictionCurve) -> list[tuple[str, Any]]:
    """Names of the curves of a law in files, and values of the curves."""
    if isinstance(law.curve, Directional):
        return [(f"curve.{s}", getattr(law.curve, s)) for s in _SIDES]
    return [("curve", sides(law.curve)[0])]
