"""What every solver returns, and what is observed of it by name."""

from jfric.results import observables
from jfric.results.columns import spring_forces
from jfric.results.dense import Moment
from jfric.results.modes import Mode
from jfric.results.solution import Events, Solution
from jfric.results.status import Flag, Status

__all__ = [
    "Events",
    "Flag",
    "Mode",
    "Moment",
    "Solution",
    "Status",
    "observables",
    "spring_forces",
]
