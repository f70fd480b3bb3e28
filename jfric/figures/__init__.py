"""All figures: of trajectories, sweeps, paths, structures, fits."""

from jfric.figures.path_figure import plot_path
from jfric.figures.sweep_figure import plot_sweep
from jfric.figures.trajectory_figure import plot

__all__ = [
    "plot",
    "plot_path",
    "plot_sweep",
]
