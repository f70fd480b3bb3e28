"""Checks of springs in series with sliders."""

from __future__ import annotations

import numpy as np

from jfric.errors import ProblemError
from jfric.system.hysteresis import (
    AbstractHysteresis,
    Iwan,
    MasingSpring,
    MaxwellSlip,
)


def require_hysteresis(where: str, element: AbstractHysteresis) -> None:
    """Raise :class:`ProblemError` for numbers that springs with sliders cannot have."""
    if isinstance(element, MaxwellSlip):
        k, R = np.asarray(element.k), np.asarray(element.R)
        if k.ndim != 1 or k.shape != R.shape or k.size == 0:
            raise ProblemError(
                f"{where}.R: found {R.size} limits for {k.size} stiffnesses, one for each is needed"
            )
    if isinstance(element, MasingSpring):
        _require_curve(where, element)
    if isinstance(element, Iwan) and element.count < 2:
        raise ProblemError(f"{where}.count: found {element.count}, needed are at least 2")


def _require_curve(where: str, spring: MasingSpring) -> None:
    x, F = np.asarray(spring.x), np.asarray(spring.F)
    if x.ndim != 1 or x.shape != F.shape or x.size < 2:
        raise ProblemError(
            f"{where}.F: found {F.size} forces for {x.size} elongations, as many of both are "
            "needed, and at least two"
        )
    if np.any(np.diff(x, prepend=0.0) <= 0):
        raise ProblemError(f"{where}.x: found {x.tolist()}, must increase from above zero")
    slopes = np.diff(F, prepend=0.0) / np.diff(x, prepend=0.0)
    if np.any(np.diff(slopes) >= 0) or slopes[-1] < 0:
        raise ProblemError(
            f"{where}.F: found the slopes {', '.join(f'{s:g}' for s in slopes)} from the origin "
            "on, must fall from point to point and not be negative"
        )
