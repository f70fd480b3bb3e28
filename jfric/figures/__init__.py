"""All figures: of trajectories, sweeps, paths, structures, fits."""

from jfric.figures.basins_figure import plot_basins
from jfric.figures.friction_curve_figure import plot_friction_curve
from jfric.figures.mechanism_figure import animate, plot_mechanism
from jfric.figures.orbit_figure import plot_orbits
from jfric.figures.path_figure import plot_path
from jfric.figures.response_figure import plot_response
from jfric.figures.returns_figure import plot_returns
from jfric.figures.sweep_figure import plot_sweep
from jfric.figures.trajectory_figure import plot

__all__ = [
    "animate",
    "plot",
    "plot_basins",
    "plot_friction_curve",
    "plot_mechanism",
    "plot_orbits",
    "plot_path",
    "plot_response",
    "plot_returns",
    "plot_sweep",
]
