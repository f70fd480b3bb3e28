"""Functions of time, for loads, normal forces, belts and supports; and expressions for numbers."""

from jfric.system.derived_functions import Clipped, Until
from jfric.system.expression import Expression
from jfric.system.functions import (
    AbstractFunction,
    Constant,
    Harmonic,
    PiecewiseLinear,
    Ramp,
    Steps,
    Sum,
)

__all__ = [
    "AbstractFunction",
    "Clipped",
    "Constant",
    "Expression",
    "Harmonic",
    "PiecewiseLinear",
    "Ramp",
    "Steps",
    "Sum",
    "Until",
]
