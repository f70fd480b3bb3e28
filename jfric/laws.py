"""Friction laws, for the field ``law`` of :class:`jfric.Friction` and :class:`jfric.Contact`."""

from jfric.system.laws import (
    AbstractLaw,
    Contensou,
    Coulomb,
    Directional,
    FrictionCurve,
    PerAxis,
    StaticDynamic,
    Stribeck,
    VelocityWeakening,
)
from jfric.system.position_factor import AbstractPositionFactor, PeriodicFactor, SplineFactor

__all__ = [
    "AbstractLaw",
    "AbstractPositionFactor",
    "Contensou",
    "Coulomb",
    "Directional",
    "FrictionCurve",
    "PerAxis",
    "PeriodicFactor",
    "SplineFactor",
    "StaticDynamic",
    "Stribeck",
    "VelocityWeakening",
]
