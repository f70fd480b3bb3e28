"""Tables of a file that are no elements, as they are written."""

from __future__ import annotations

import dataclasses
from typing import Any

import equinox as eqx

from jfric.system.controller import Controller


def controller_table(controller: Controller) -> dict[str, Any]:
    """Numbers and choices that differ from the defaults."""
    result: dict[str, Any] = {}
    for f in dataclasses.fields(controller):
        value = getattr(controller, f.name)
        value = float(value) if eqx.is_array(value) else value
        if f.name != "longest" and value != f.default:
            result[f.name] = value
    return result


def check_table(check) -> dict[str, Any]:
    """A check, with what it does not leave open."""
    result = {"quantity": str(check.quantity), "expected": check.expected}
    for key in ("tolerance", "relative", "source"):
        if getattr(check, key) not in (None, ""):
            result[key] = getattr(check, key)
    return result
