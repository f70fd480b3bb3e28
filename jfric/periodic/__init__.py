"""Periodic motion: orbits, their stability, and how they move with a parameter."""

from jfric.periodic.continuation import continue_orbit
from jfric.periodic.orbit import PeriodicOrbit
from jfric.periodic.orbit_status import OrbitStatus
from jfric.periodic.path import OrbitPath, OrbitPoint
from jfric.periodic.solving import periodic_orbit

__all__ = [
    "OrbitPath",
    "OrbitPoint",
    "OrbitStatus",
    "PeriodicOrbit",
    "continue_orbit",
    "periodic_orbit",
]
