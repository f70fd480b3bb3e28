"""Who is told how far a search has come."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

#: Told after each iteration: its number, the most there can be, the least cost so far and where.
Watch = Callable[[int, int, float, np.ndarray], None]


def nobody(iteration: int, most: int, cost: float, x: np.ndarray) -> None:
    """Nobody is told."""
