"""Sweeps: many trajectories, reduced to what is observed."""

from jfric.sweeps.observing import observe
from jfric.sweeps.ranges import Range
from jfric.sweeps.store import open_sweep
from jfric.sweeps.sweeping import sweep

__all__ = [
    "Range",
    "observe",
    "open_sweep",
    "sweep",
]
