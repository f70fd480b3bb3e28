"""Lowering: small array programs as kernels of scalars, for loops that run in large batches."""

from jfric.numerics.lowering.lowered import Constants, Known, Lowered, constants_of
from jfric.numerics.lowering.scalars import Scalars

__all__ = ["Constants", "Known", "Lowered", "Scalars", "constants_of"]
