"""Which solver takes what, from the table that solvers themselves ask."""

from __future__ import annotations

import jfric
from generators.rst import heading, table
from jfric.system.features import FEATURES

#: Features that the table must tell apart, although a message names the element and needs no more.
WORDS = {
    "limited": "a current limit (motor with V and i_max, without L)",
    "held": "a current limit of a winding (motor with V, L and i_max)",
    "sliders": "springs with sliders (jenkins, maxwell_slip, masing_spring, iwan)",
    "states": "states (dahl, bouc_wen, lugre, rate_state, directional_loss, state, motor with L)",
}
SOLVERS = (jfric.EventDriven, jfric.MoreauJean, jfric.Smoothed, jfric.QuasiStatic)


def page() -> str:
    """A row for each feature that not all solvers take."""
    solvers = {solver.name: solver.takes for solver in SOLVERS}
    rows = [
        [
            WORDS.get(name, feature.words),
            *("yes" if name in takes else "no" for takes in solvers.values()),
        ]
        for name, feature in FEATURES.items()
    ]
    return "\n".join(
        [
            heading("Which solver takes what", "="),
            "Everything else is taken by all; ``midpoint`` and ``stabilised-midpoint`` take what\n"
            "``moreau-jean`` does. What a solver does not take is refused in one\n"
            "sentence before anything is computed.\n",
            table(("A problem with", *solvers), rows),
        ]
    )
