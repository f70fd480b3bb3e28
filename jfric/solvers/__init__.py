"""How it moves: solvers that take a problem and return a solution."""

from jfric.solvers.base import AbstractSolver
from jfric.solvers.bias_of_bristles import BristleBias, bristle_bias
from jfric.solvers.bias_of_smoothing import SmoothingBias, smoothing_bias
from jfric.solvers.event_driven.solver import EventDriven
from jfric.solvers.fixed_step import AbstractFixedStep
from jfric.solvers.quasi_static.solver import QuasiStatic
from jfric.solvers.simulation import simulate
from jfric.solvers.smoothed.solver import Smoothed
from jfric.solvers.states import Local
from jfric.solvers.time_stepping.schemes import Midpoint, MoreauJean, StabilisedMidpoint

__all__ = [
    "AbstractFixedStep",
    "AbstractSolver",
    "BristleBias",
    "EventDriven",
    "Local",
    "Midpoint",
    "MoreauJean",
    "QuasiStatic",
    "Smoothed",
    "SmoothingBias",
    "StabilisedMidpoint",
    "bristle_bias",
    "simulate",
    "smoothing_bias",
]
