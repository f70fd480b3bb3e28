"""Friction laws, for the field ``law`` of :class:`jfric.Friction` and :class:`jfric.Contact`."""

from jfric.system.laws import (
    AbstractLaw,
    Coulomb,
    Directional,
    FrictionCurve,
    PerAxis,
    StaticDynamic,
    Stribeck,
    VelocityWeakening,
)

__all__ = [
    "AbstractLaw",
    "Coulomb",
    "Directional",
    "FrictionCurve",
    "PerAxis",
    "StaticDynamic",
    "Stribeck",
    "VelocityWeakening",
]
