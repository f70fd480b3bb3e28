"""The tables ``[periodic]``, ``[response]``, ``[lyapunov]`` and ``[basins]`` of a file: the steady
motions to be found, and the parameter over which they are followed."""

from __future__ import annotations

from typing import Any

from jfric.files.codec import Key, Place
from jfric.files.scalar_codecs import PLAIN, Text, Whole
from jfric.files.statics_table import PathTable
from jfric.files.system_tables import TIME_UNIT
from jfric.files.table_codecs import List, Record
from jfric.numerics import limits
from jfric.system.fields import About
from jfric.system.problem import Problem
from jfric.system.states import state_units
from jfric.system.units import DIMENSIONS

_RATE = About(("angular velocity", "angular velocity"))
PERIODIC = PathTable(
    "PeriodicTable",
    "The periodic motion that is looked for, and the parameter over which it is followed.",
    {
        "period": Key(PLAIN, "period [s]; that of the loads unless given", about=TIME_UNIT),
        "state": Key(List(PLAIN), "positions, then velocities, near the orbit"),
        "transient": Key(
            PLAIN,
            "time [s] simulated before the search; a whole number counts periods where loads have "
            "one",
            about=TIME_UNIT,
        ),
        "section": Key(Text(), "formula whose zero closes a cycle without periodic loads"),
        "cycles": Key(
            Whole(above=0, at_most=limits.STEPS),
            "periods of the load in one orbit; 1 without periodic loads",
        ),
        "segments": Key(
            Whole(above=0, at_most=256), "parts of the cycle that are solved side by side"
        ),
        "harmonics": Key(Whole(above=0, at_most=500), "number of harmonics, for harmonic balance"),
        "vary": Key(Text(), "path of a parameter over which orbits are followed"),
        "start": Key(PLAIN, "its value where the path begins"),
        "stop": Key(PLAIN, "its value where the path ends"),
    },
)
RESPONSE = Record(
    "ResponseTable",
    "The steady states over the frequency of a load, and the quantity whose peak counts.",
    {
        "load": Key(Text(), "load, support or belt whose frequency varies", needed=True),
        "start": Key(PLAIN, "first frequency [rad/s]", needed=True, about=_RATE),
        "stop": Key(PLAIN, "last frequency [rad/s]", needed=True, about=_RATE),
        "quantity": Key(
            Text(),
            "what the peak is of; the amplitude of the first degree of freedom unless given",
        ),
    },
)
_COUNT, _SECTION = Whole(above=0, at_most=limits.STEPS), "period of the loads, or a time"
LYAPUNOV = Record(
    "LyapunovTable",
    "How the largest Lyapunov exponent is computed.",
    {
        "interval": Key(Text(), f"after which deviations are measured: {_SECTION}"),
        "intervals": Key(_COUNT, "intervals in all"),
        "skip": Key(Whole(at_least=0, at_most=limits.STEPS), "intervals before them"),
        "parts": Key(_COUNT, "parts of a run, whose scatter tells the error"),
    },
)
BASINS = Record(
    "BasinsTable",
    "The initial states whose attractors are found, and how these are recognised.",
    {
        "plane": Key(List(Text()), "initial states, PATH=LOW:HIGH:COUNT each", needed=True),
        "section": Key(Text(), f"where motions are compared: {_SECTION}, impact or event.NAME"),
        "longest": Key(_COUNT, "longest period in returns"),
        "tolerance": Key(PLAIN, "relative distance below which a state comes back"),
        "give_up": Key(_COUNT, "returns after which nothing is recognised"),
        "method": Key(Text(), "grid, zip, random, sobol or latin-hypercube"),
        "samples": Key(_COUNT, "number of points of a sampled method"),
        "seed": Key(Whole(at_least=0), "seed of a sampled method"),
    },
)


def periodic(raw: dict[str, Any], problem: Problem) -> dict[str, Any]:
    """Settings in the table ``[periodic]``, in SI units."""
    place = Place("periodic")
    for end in ("start", "stop"):
        if "vary" not in raw and end in raw:
            raise place.key(end).error("found one without vary, which names the parameter")
        if "vary" in raw and end not in raw:
            raise place.key(end).error("not given, vary needs both start and stop")
    found = PERIODIC.of({k: x for k, x in raw.items() if k != "state"}, problem, "periodic")
    if found.get("transient", 0.5).is_integer():
        # A number of periods if loads have one, else a time.
        found["transient"] = int(found["transient"])
    return found | ({"state": _state(raw["state"], problem)} if "state" in raw else {})


def _state(raw: list[Any], problem: Problem) -> list[float]:
    """A state: positions, velocities, then states of elements."""
    place = Place("periodic.state")
    kinds, states = list(problem.dofs.values()), state_units(problem)
    if len(raw) != 2 * len(kinds) + len(states):
        behind = "".join(f", then z.{name}" for name in states)
        raise place.error(
            f"found {len(raw)} numbers, needs {len(kinds)} positions and "
            f"{len(kinds)} velocities{behind}"
        )
    units = {"translation": ("m", "m/s"), "rotation": ("rad", "rad/s")}
    names = [units[kind][i] for i in (0, 1) for kind in kinds] + list(states.values())
    every = {d.unit: d for d in DIMENSIONS.values()}
    return [
        PLAIN.read(x, place.entry(i)._replace(inside=every.get(unit)))
        for i, (x, unit) in enumerate(zip(raw, names, strict=True))
    ]
