"""The verification list, read from ``data/cases.toml``: a system with changes and expected values.

A file in ``data/`` with the name of a case holds its exact values and its changes of mode; the
checks in the case's configuration file count as well.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_DATA = Path(__file__).resolve().parent / "data"
_CLOSED_FORM = "closed form"
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
    """A system, the changes in it, and the expected results.

    ``config``: name of a shipped file. ``set``: changed parameters, by path; the file's own checks
    are used if nothing is changed. ``relative``: error allowed with the exact flow, relative to the
    expected time or to the peak of the component. ``sequence``: changes of mode, such as ``"slip+ >
    stick"``, in order. ``flows``: each is run if it can represent the system. ``solver``: settings
    of another solver than the event-driven one, for which only the tolerances of ``expected``
    apply.
    """

    name: str
    config: str
    set: Mapping[str, float] = field(default_factory=dict)
    expected: tuple[Expected, ...] = ()
    sequence: tuple[str, ...] = ()
    relative: float = 1e-10
    flows: tuple[str, ...] = (EXACT, RUNGE_KUTTA)
    solver: Mapping[str, Any] = field(default_factory=dict)


def cases() -> list[Case]:
    """All cases, in the order of the table."""
    groups = tomllib.loads((_DATA / "cases.toml").read_text("utf-8"))["group"]
    return [case for group in groups for case in _of_group(**group)]


def _of_group(names: tuple[str, ...] = (), **given: Any) -> Iterator[Case]:
    """Cases of a group: the shipped systems ``names``, or the one case that is ``given``."""
    for name in names:
        path = _DATA / f"{name}.json"
        own = json.loads(path.read_text("utf-8")) if path.is_file() else {}
        yield _case(name=name, config=name, **own, **given)
    if not names:
        yield _case(**given)


def _case(
    expected: Mapping[str, Any] | None = None,
    source: str = _CLOSED_FORM,
    tolerance: float = 0.0,
    sequence: tuple[str, ...] = (),
    **settings: Any,
) -> Case:
    """A case whose ``expected`` values have one source and tolerance, but for those that are tables
    with their own."""
    common = {"tolerance": tolerance, "source": source}
    values = {q: x if isinstance(x, dict) else {"value": x} for q, x in (expected or {}).items()}
    found = tuple(Expected(q, **{**common, **x}) for q, x in values.items())
    return Case(expected=found, sequence=tuple(sequence), **settings)
