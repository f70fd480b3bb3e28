"""What a fit may change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from jfric.errors import ProblemError, nearest

Scale = Literal["log", "linear"]


@dataclass(frozen=True)
class Free:
    """A parameter to be found between ``lower`` and ``upper`` (SI).

    ``init``: first start; None: the problem's own value if it lies inside, else the middle.
    ``scale``: ``"log"`` for positive quantities known to an order of magnitude, else ``"linear"``;
    starts are drawn and steps are taken on this scale. ``prior``: (mean, standard deviation) of a
    normal distribution that is added to the data; None: none. ``per_experiment``: one value for
    each experiment instead of one for all.
    """

    lower: float
    upper: float
    init: float | None = None
    scale: Scale = "log"
    prior: tuple[float, float] | None = None
    per_experiment: bool = False

    def __post_init__(self):
        if self.scale not in ("log", "linear"):
            hint = nearest(self.scale, ("log", "linear"))
            raise ProblemError(f"scale: found {self.scale!r}{hint}, allowed are 'log' and 'linear'")
        if not (np.isfinite(self.lower) and np.isfinite(self.upper) and self.lower < self.upper):
            raise ProblemError(
                f"bounds: found {self.lower} and {self.upper}, lower must be below upper and both "
                "finite"
            )
        if self.scale == "log" and not self.lower > 0:
            raise ProblemError(
                f"lower: found {self.lower:g}, must be positive on the scale 'log'; "
                "use scale='linear'"
            )
        if self.init is not None and not self.lower <= self.init <= self.upper:
            raise ProblemError(
                f"init: found {self.init:g}, must lie between {self.lower:g} and {self.upper:g}"
            )
        if self.prior is not None and not (len(self.prior) == 2 and self.prior[1] > 0):
            raise ProblemError(
                f"prior: found {self.prior}, needs (mean, standard deviation) with a positive "
                "standard deviation"
            )
