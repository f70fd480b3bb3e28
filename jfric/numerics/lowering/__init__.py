"""Lowering: small array programs as kernels of scalars, for loops that run in large batches."""

from jfric.numerics.lowering.lowered import Lowered
from jfric.numerics.lowering.scalars import Scalars
from jfric.numerics.lowering.structure import Constants, Known, constants_of

__all__ = ["Constants", "Known", "Lowered", "Scalars", "constants_of"]
