"""Elements of a system, and what an element of one's own is made from.

Laws of friction are in :mod:`jfric.laws`, functions of time in :mod:`jfric.functions`.
"""

from jfric.system.body import Body, Gravity, Ground, Link, LinkSpring
from jfric.system.bristle import AbstractBristle, BoucWen, Dahl, DirectionalLoss, LuGre, RateState
from jfric.system.controller import (
    AbstractController,
    Controller,
    Reading,
    StateFeedback,
    StepController,
)
from jfric.system.direction import Direction, along, as_direction, between
from jfric.system.elements import (
    Base,
    Contact,
    Damper,
    DiagramSpring,
    Friction,
    GapSpring,
    Lagrangian,
    Load,
    Mass,
    Spring,
    Stop,
    Velocity,
    register,
)
from jfric.system.event import Event
from jfric.system.fields import holds
from jfric.system.hysteresis import (
    AbstractHysteresis,
    Branches,
    Iwan,
    Jenkins,
    JenkinsCoupling,
    MasingSpring,
    MaxwellSlip,
)
from jfric.system.line_elements import AbstractForce, Drag, ForceField, Pendulum, PolynomialSpring
from jfric.system.linkage import Gear, Joint, Pin, Rolling, Slider, Weld
from jfric.system.motor import Motor
from jfric.system.state import Force, State
from jfric.system.transmission import Transmission

__all__ = [  # noqa: RUF022
    # Masses, springs, dampers, forces.
    "Mass", "Spring", "Damper", "PolynomialSpring", "DiagramSpring", "GapSpring", "Stop", "Drag",
    "Force", "ForceField", "Lagrangian", "Pendulum", "Load", "Base", "Motor", "Transmission",
    # Controllers.
    "Controller", "StateFeedback", "StepController", "AbstractController", "Reading",
    # Friction, contact, and what is held.
    "Friction", "Contact", "Joint", "Velocity", "Event",
    # Friction with memory, and other states.
    "Jenkins", "JenkinsCoupling", "MaxwellSlip", "MasingSpring", "Iwan", "Dahl", "BoucWen", "LuGre",
    "RateState", "DirectionalLoss", "State",
    # Bodies in the plane, and what joins them.
    "Body", "Ground", "Gravity", "LinkSpring", "Pin", "Slider", "Weld", "Gear", "Rolling",
    # Bodies in space.
    "Link",
    # Along what they act.
    "Direction", "along", "between",
    # One's own.
    "AbstractBristle", "AbstractForce", "AbstractHysteresis", "Branches", "as_direction", "holds",
    "register",
]  # fmt: skip
