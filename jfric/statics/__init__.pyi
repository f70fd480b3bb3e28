"""Equilibria with friction, their paths over a parameter, and limit loads."""

from .all_equilibria import Equilibria as Equilibria
from .all_equilibria import equilibria as equilibria
from .branch import Branch as Branch
from .branch import EquilibriumPath as EquilibriumPath
from .branch import SpecialPoint as SpecialPoint
from .path_tracing import trace as trace
from .rest_states import LimitLoad as LimitLoad
from .rest_states import RestStates as RestStates
from .rest_states import limit_load as limit_load
