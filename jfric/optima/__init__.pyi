"""Optimal inputs, gains and dimensions, by exact derivatives through stick and slip."""

from .optimise import Optimum as Optimum
from .optimise import optimise as optimise
