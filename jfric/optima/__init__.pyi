"""Optimal inputs, gains and dimensions, by exact derivatives through stick and slip."""

from .optimise import optimise as optimise
from .result import Optimum as Optimum
