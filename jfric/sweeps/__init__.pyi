"""Sweeps: many trajectories, reduced to what is observed."""

from .observing import observe as observe
from .ranges import Range as Range
from .sweeping import sweep as sweep
from .table import open_sweep as open_sweep
