"""Periodic motion: orbits, their stability, and how they move with a parameter."""

from jfric.periodic.orbit import PeriodicOrbit
from jfric.periodic.orbit_status import OrbitStatus
from jfric.periodic.solving import periodic_orbit

__all__ = ["OrbitStatus", "PeriodicOrbit", "periodic_orbit"]
