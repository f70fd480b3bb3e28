"""How it moves: solvers that take a problem and return a solution."""

from .base import AbstractSolver as AbstractSolver
from .bias import BristleBias as BristleBias
from .bias import SmoothingBias as SmoothingBias
from .bias import bristle_bias as bristle_bias
from .bias import smoothing_bias as smoothing_bias
from .event_driven.solver import EventDriven as EventDriven
from .fixed_step import AbstractFixedStep as AbstractFixedStep
from .quasi_static.solver import QuasiStatic as QuasiStatic
from .simulation import simulate as simulate
from .smoothed.solver import Smoothed as Smoothed
from .states import Local as Local
from .time_stepping.schemes import Midpoint as Midpoint
from .time_stepping.schemes import MoreauJean as MoreauJean
from .time_stepping.schemes import StabilisedMidpoint as StabilisedMidpoint
