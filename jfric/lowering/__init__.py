"""Lowering: small array programs as kernels of scalars, for loops that run in large batches."""

from jfric.lowering.lowered import Lowered
from jfric.lowering.structure import Constants, Known, constants_of

__all__ = ["Constants", "Known", "Lowered", "constants_of"]
