"""The table ``[solver]`` of a file; settings that are left out take the solver's defaults."""

from __future__ import annotations

from jfric.files.codec import Codec, Key
from jfric.files.scalar_codecs import Choice, Number, Real, Text, Whole
from jfric.files.solver_choice import FLOWS, NUMBERS, SOLVERS
from jfric.files.system_tables import TIME_UNIT
from jfric.files.table_codecs import Record
from jfric.numerics.limits import COUNTS
from jfric.solvers.smoothed.friction import CURVES

_MEANINGS = {
    "name": "which solver",
    "flow": "flow of the event-driven solver between events",
    "rtol": "relative tolerance of a step",
    "max_steps": "most passes or steps; the status is max_steps beyond",
    "max_events": "room in the event log",
    "increments": "parts of a quasi-static load history",
    "dt": "length of a step [s], of fixed-step solvers",
    "theta": "weight of the end of a step in the equation of motion",
    "sliding_weight": "weight of the end of a step in the friction law",
    "law": "curve that stands for the sign of the sliding velocity",
    "width": "sliding velocity over which that curve rises [m/s]",
    "contact_stiffness": "stiffness that stands for a rigid contact [N/m]",
    "method": "method for the contact problem of a step, or the Runge-Kutta method of the "
    "smoothed solver",
    "atol": "absolute tolerance of the smoothed solver",
    "dt0": "first step of the smoothed solver [s]",
    "accumulation": "share of the motion below which repeated impacts end",
    "energy_gain": "impacts that would add energy: stop or allow",
    "kernel": "form of the computation: auto, general, lowered or one-dof",
    "adjoint": "derivatives of a run: auto, forward, reverse or none",
}
_CODECS: dict[str, Codec] = {
    "name": Choice(*SOLVERS),
    "flow": Choice(*FLOWS),
    "law": Choice(*CURVES),
    **{name: Real(**limits) for name, limits in NUMBERS.items()},
    **{name: Whole(above=0, at_most=most) for name, (_, most) in COUNTS.items()},
    "sliding_weight": Real(above=0.0, at_most=1.0),
    "dt": Number("expected a time"),
}
_DEFAULTS = {"name": SOLVERS[0], "flow": FLOWS[0]}
SOLVER = Record(
    "SolverTable",
    "Settings of the solver; what is left out takes the solver's defaults.",
    {
        name: Key(_CODECS.get(name, Text()), meaning, _DEFAULTS.get(name))
        for name, meaning in _MEANINGS.items()
    },
)
SOLVER.table["dt"] = SOLVER.table["dt"]._replace(about=TIME_UNIT)
