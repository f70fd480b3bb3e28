"""Functions of time, for loads, normal forces, belts and supports; and expressions for numbers."""

from jfric.system.expression import Expression
from jfric.system.functions import AbstractFunction, Constant, Harmonic, PiecewiseLinear, Steps, Sum
from jfric.system.wrapped import Clipped, Until

__all__ = [
    "AbstractFunction",
    "Clipped",
    "Constant",
    "Expression",
    "Harmonic",
    "PiecewiseLinear",
    "Steps",
    "Sum",
    "Until",
]
