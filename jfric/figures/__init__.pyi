"""All figures: of trajectories, sweeps, paths, structures, fits."""

from .friction_curve_figure import plot_friction_curve as plot_friction_curve
from .mechanism_figure import animate as animate
from .mechanism_figure import plot_mechanism as plot_mechanism
from .path_figure import plot_path as plot_path
from .steady_figure import plot_basins as plot_basins
from .steady_figure import plot_flutter as plot_flutter
from .steady_figure import plot_orbits as plot_orbits
from .steady_figure import plot_response as plot_response
from .sweep_figure import plot_returns as plot_returns
from .sweep_figure import plot_sweep as plot_sweep
from .trajectory_figure import plot as plot
