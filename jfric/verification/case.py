"""Entries of the verification list: systems, changes in them and expected values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

EXACT, RUNGE_KUTTA = "exact", "runge-kutta"


@dataclass(frozen=True)
class Expected:
    """A published or closed-form value of a quantity.

    Without ``tolerance`` (absolute, SI) the tolerance follows from the case and the flow. It is
    given where the source prints fewer digits.
    """

    quantity: str
    value: float
    tolerance: float = 0.0
    source: str = ""


@dataclass(frozen=True)
class Case:
    """A system, what is changed in it, and what must come out.

    ``config``: name of a shipped file. ``set``: parameters changed, by path; the file's own
    checks are used where nothing is changed. ``relative``: error allowed with the exact flow,
    relative to the expected time or to the peak of the component. ``sequence``: changes of mode,
    such as ``"slip+ > stick"``, in order. ``flows``: each is run if it can represent the system.
    ``solver``: settings of another solver than the event-driven one; it is held to the tolerances
    of ``expected`` alone.
    """

    name: str
    config: str
    set: Mapping[str, float] = field(default_factory=dict)
    expected: tuple[Expected, ...] = ()
    sequence: tuple[str, ...] = ()
    relative: float = 1e-10
    flows: tuple[str, ...] = (EXACT, RUNGE_KUTTA)
    solver: Mapping[str, Any] = field(default_factory=dict)
