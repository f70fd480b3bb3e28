"""The arguments of a fit."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from jfric.fits.data.experiment import Experiment
from jfric.fits.free import Free

#: Options of a fit that say how the minimum is looked for, not what is minimised.
SEARCH = (
    "search", "schedule", "starts", "optimiser", "max_iterations", "learning_rate", "batch", "seed",
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Recipe:
    """The arguments of :func:`jfric.fit`, with which it can be repeated."""

    problem: Any
    experiments: tuple[Experiment, ...]
    free: Mapping[str, Free]
    options: Mapping[str, Any]
