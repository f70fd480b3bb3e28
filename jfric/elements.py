"""Elements of one's own: what they are made from, what their fields hold, how they get a name."""

from jfric.system.bristle import AbstractBristle
from jfric.system.direction import as_direction
from jfric.system.fields import holds
from jfric.system.hysteresis import AbstractHysteresis, Branches
from jfric.system.nonlinear import AbstractForce
from jfric.system.registration import register

__all__ = [
    "AbstractBristle",
    "AbstractForce",
    "AbstractHysteresis",
    "Branches",
    "as_direction",
    "holds",
    "register",
]
