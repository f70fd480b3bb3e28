"""Equilibria with friction, their paths over a parameter, and limit loads."""

from jfric.statics.all_equilibria import Equilibria, equilibria
from jfric.statics.branch import Branch, EquilibriumPath, SpecialPoint
from jfric.statics.limit_loads import LimitLoad, limit_load
from jfric.statics.path_tracing import trace
from jfric.statics.rest_states import RestStates

__all__ = [
    "Branch",
    "Equilibria",
    "EquilibriumPath",
    "LimitLoad",
    "RestStates",
    "SpecialPoint",
    "equilibria",
    "limit_load",
    "trace",
]
