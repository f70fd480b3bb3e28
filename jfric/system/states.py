"""States of elements: their names, units and passivity."""

from __future__ import annotations

from typing import Any

from jfric.system.bristle import BRISTLES
from jfric.system.description import AbstractProblem
from jfric.system.direction import kind
from jfric.system.hysteresis import HYSTERESIS


def state_units(problem: AbstractProblem) -> dict[str, str]:
    """Units of all states, by their names in results: the label of the element, with a number where
    it has several."""

    def along(element: Any) -> str:
        return "rad" if kind(element.direction, problem.dofs) == "rotation" else "m"

    found = {}
    for label, element in problem.labelled(*HYSTERESIS).items():
        count = element.sliders
        names = [label] if count == 1 else [f"{label}.{i}" for i in range(1, count + 1)]
        found |= dict.fromkeys(names, along(element))
    for label, element in problem.states().items():
        found[label] = along(element) if element.unit is None else element.unit
    return found


def passivity_remarks(problem: AbstractProblem) -> list[str]:
    """One sentence for each element of a resolved problem that may give energy to a motion."""
    found = {label: x.remark() for label, x in problem.labelled(*BRISTLES).items()}
    return [f"{label}: is not passive, {said}" for label, said in found.items() if said]
