"""Sweeps: many trajectories, reduced to what is observed."""

from .design import Range as Range
from .observing import observe as observe
from .sweeping import sweep as sweep
from .table import open_sweep as open_sweep
