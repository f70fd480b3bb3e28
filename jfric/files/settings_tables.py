"""Tables of a file that say what is computed of a system: solver, equilibria, steady motions, fit
and optimisation; and its checks, whose quantities are resolved with the names of the problem."""

from __future__ import annotations

import math
from typing import Any

from jfric.errors import ProblemError, require_one_of
from jfric.files.codec import PLAIN, Choice, Codec, Flag, Key, Number, Place, Real, Text, Whole
from jfric.files.config import Check, outside, time_span
from jfric.files.measured_tables import DATA
from jfric.files.solver_choice import FLOWS, NUMBERS, SOLVERS
from jfric.files.system_tables import TIME_UNIT
from jfric.files.table_codecs import Either, List, Names, Record, SettingsTable
from jfric.numerics import limits
from jfric.results.quantity import (
    OUTCOMES,
    PERIODIC_KINDS,
    STATIC_KINDS,
    Quantity,
    parse_quantity,
    resolve,
)
from jfric.results.signals import look_up
from jfric.results.status import Status
from jfric.solvers.smoothed.friction import CURVES
from jfric.system.fields import About
from jfric.system.naming import find_path, path_dimension
from jfric.system.problem import Problem
from jfric.system.states import state_units
from jfric.system.units import DIMENSIONS, Dimension


class PathTable(SettingsTable):
    """A table that may name a parameter, ``vary``, whose values are among its numbers."""

    def of(self, raw: dict[str, Any], problem: Problem, where: str) -> dict[str, Any]:
        place = Place(where)
        if "vary" not in raw:
            return self.read(raw, place)
        with place.key("vary").within(KeyError):
            name = find_path(problem, raw["vary"])
        found = self.read(raw, place._replace(inside=path_dimension(problem, name)))
        return found | {"vary": name}


STATICS = PathTable(
    "StaticsTable",
    "The parameter that a path of equilibria, a limit load or the eigenvalues of steady sliding "
    "follow, and its interval.",
    {
        "vary": Key(Text(), "path of the parameter", needed=True),
        "start": Key(PLAIN, "its value where the path begins", needed=True),
        "stop": Key(PLAIN, "its value where the path ends", needed=True),
        "seeds": Key(
            Either(Whole(above=0, at_most=limits.SEEDS), List(PLAIN)),
            "values at which branches are looked for, or their number",
        ),
    },
)


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
    **{name: Real(**ends) for name, ends in NUMBERS.items()},
    **{name: Whole(above=0, at_most=most) for name, (_, most) in limits.COUNTS.items()},
    "sliding_weight": Real(above=0.0, at_most=1.0),
    "dt": Number("expected a time"),
}
_DEFAULTS = {"name": SOLVERS[0], "flow": FLOWS[0]}
SOLVER = SettingsTable(
    "SolverTable",
    "Settings of the solver; what is left out takes the solver's defaults.",
    {
        name: Key(_CODECS.get(name, Text()), meaning, _DEFAULTS.get(name))
        for name, meaning in _MEANINGS.items()
    },
)
SOLVER.table["dt"] = SOLVER.table["dt"]._replace(about=TIME_UNIT)


_RATE = About(("angular velocity", "angular velocity"))


class PeriodicTable(PathTable):
    """The table ``[periodic]``."""

    def of(self, raw: dict[str, Any], problem: Problem, where: str) -> dict[str, Any]:
        place = Place(where)
        for end in ("start", "stop"):
            if "vary" not in raw and end in raw:
                raise place.key(end).error("found one without vary, which names the parameter")
            if "vary" in raw and end not in raw:
                raise place.key(end).error("not given, vary needs both start and stop")
        found = super().of({k: x for k, x in raw.items() if k != "state"}, problem, where)
        if found.get("transient", 0.5).is_integer():
            # A number of periods if loads have one, else a time.
            found["transient"] = int(found["transient"])
        return found | ({"state": _state(raw["state"], problem)} if "state" in raw else {})


PERIODIC = PeriodicTable(
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
RESPONSE = SettingsTable(
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
LYAPUNOV = SettingsTable(
    "LyapunovTable",
    "How the largest Lyapunov exponent is computed.",
    {
        "interval": Key(Text(), f"after which deviations are measured: {_SECTION}"),
        "intervals": Key(_COUNT, "intervals in all"),
        "skip": Key(Whole(at_least=0, at_most=limits.STEPS), "intervals before them"),
        "parts": Key(_COUNT, "parts of a run, whose scatter tells the error"),
    },
)
BASINS = SettingsTable(
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


_NUMBER = Number("needs a number")
_FREE = Record(
    "FreeTable",
    "Settings of a parameter that a fit may change: bounds, and how its values are chosen.",
    {
        "between": Key(List(_NUMBER, 2, 2), "lower and upper bound", needed=True),
        "init": Key(_NUMBER, "first start"),
        "scale": Key(
            Choice("log", "linear"),
            "scale of starts and steps; log where the lower bound is positive",
        ),
        "prior": Key(List(_NUMBER, 2, 2), "mean and standard deviation of what is known already"),
        "each": Key(Flag(), "whether every record has a value of its own", False),
        "varies": Key(
            Flag(),
            "whether the values of the records scatter around a common mean, which is found with "
            "their scatter",
            False,
        ),
    },
)


class FitTable(SettingsTable):
    """The table ``[fit]``."""

    def of(self, raw: dict[str, Any], problem: Problem, where: str) -> dict[str, Any]:
        """Arguments of :class:`jfric.Free` by path, in SI, and the table of the file itself."""
        if not raw.get("free"):
            raise ProblemError(
                'fit.free: missing; give what is free, such as "friction.limit" = {between = '
                '["1 N", "100 N"]}'
            )
        free = {path: _free(item, path, problem) for path, item in raw["free"].items()}
        return {"free": free, "table": raw}

    def kept(self, value: Any) -> dict[str, Any]:
        return self.write(value["table"], Place("fit"))


FIT = FitTable(
    "FitTable",
    "Parameters that `jfric fit` and `jfric compare` are free to change.",
    {"free": Key(Names(_FREE), "parameters by path, {between = [LOW, HIGH]}")},
)


def _free(raw: dict[str, Any], path: str, problem: Problem) -> dict[str, Any]:
    place = Place(f"fit.free.{path}", inside=free_dimension(problem, path))
    given = _FREE.read(raw, place)
    low, high = given["between"]
    found: dict[str, Any] = {
        "lower": low,
        "upper": high,
        "scale": given.get("scale", "log" if low > 0.0 else "linear"),
        "per_experiment": given.get("each", False),
        "varies": given.get("varies", False),
    }
    found |= {"init": given["init"]} if "init" in given else {}
    return found | ({"prior": tuple(given["prior"])} if "prior" in given else {})


def free_dimension(problem: Problem, path: str) -> Dimension | None:
    """Dimension of the numbers at a path of a fit. Delays and lags are in seconds; other values of
    a sensor, an input or the controller have None, and the fit checks their names."""
    try:
        return path_dimension(problem, find_path(problem, path))
    except KeyError:
        word = path.partition(".")[0]
        late = path in ("delay", "controller.lag") or (
            word in ("sensor", "input") and path.endswith((".delay", ".lag"))
        )
        return DIMENSIONS["time"] if late else None


_BOUND = Either(PLAIN, List(PLAIN))
_UNKNOWN = Record(
    "UnknownTable",
    "A number, or a list of numbers, that an optimisation may change, from its own value on.",
    {
        "between": Key(
            List(_BOUND, 2, 2), "lower and upper bound, one for a whole list or a list of them"
        ),
        "scale": Key(Choice("log", "linear"), "scale of starts and steps", "linear"),
    },
)


class OptimiseTable(SettingsTable):
    """The table ``[optimise]``, with bounds by the full paths."""

    def of(self, raw: dict[str, Any], problem: Problem, where: str) -> dict[str, Any]:
        place, free = Place(where), {}
        for path, item in raw.get("free", {}).items():
            at = place.key("free").key(path)
            with at.within(KeyError):
                name = find_path(problem, path)
            free[name] = _UNKNOWN.read(item, at._replace(inside=path_dimension(problem, name)))
        rest = self.read({key: x for key, x in raw.items() if key != "free"}, place)
        return rest | ({"free": free} if free else {})


OPTIMISE = OptimiseTable(
    "OptimiseTable",
    "Numbers that `jfric optimise` is free to change, its objective and constraints.",
    {
        "objective": Key(Text(), "formula in observables and parameters, which becomes small"),
        "constraints": Key(List(Text()), "comparisons of such formulas by ==, <= or >="),
        "method": Key(Text(), "slsqp, trust-constr, adam, cobyqa or direct"),
        "starts": Key(Whole(above=0, at_most=limits.STARTS), "number of starts"),
        "seed": Key(Whole(at_least=0), "seed of further starts"),
        "iterations": Key(
            Whole(above=0, at_most=limits.STEPS), "largest number of iterations from each start"
        ),
        "observe": Key(Names(Text()), "observables by the names that formulas use for them"),
        "free": Key(Names(_UNKNOWN), "numbers and lists by path, {between = [LOW, HIGH]}"),
    },
)


#: All tables of settings by their names, in the order in which they are listed and written.
TABLES = {
    "solver": Key(SOLVER, "settings of the solver"),
    "statics": Key(STATICS, "what `jfric trace` and checks of limit loads follow"),
    "periodic": Key(PERIODIC, "what `jfric periodic` and checks of periodic motion look for"),
    "response": Key(RESPONSE, "what `jfric response` and checks of frequency responses look for"),
    "lyapunov": Key(LYAPUNOV, "how `jfric lyapunov` and checks of the exponent compute it"),
    "basins": Key(BASINS, "initial states of `jfric basins` and of checks of attractors"),
    "data": Key(DATA, "which columns of measured files hold what"),
    "fit": Key(FIT, "what `jfric fit` and `jfric compare` are free to change"),
    "optimise": Key(OPTIMISE, "what `jfric optimise` changes, and what for"),
}


CHECKS = List(
    Record(
        "CheckTable",
        "A number that a correct solution has.",
        {
            "quantity": Key(
                Text(), "the number that is checked, by the name it has in sweeps", needed=True
            ),
            "expected": Key(PLAIN, "its value", needed=True),
            "tolerance": Key(Real(at_least=0), "allowed error, absolute, in SI units; or relative"),
            "relative": Key(Real(at_least=0), "allowed error as a part of the value; or tolerance"),
            "source": Key(Text(), "where the value is from", ""),
        },
        ("tolerance", "relative"),
    ),
    words="a list of tables; write [[check]]",
)


def checks(raw: list[dict[str, Any]], problem: Problem) -> tuple[Check, ...]:
    """The checks in a file; raises :class:`jfric.ProblemError` for wrong ones."""
    return tuple(_check(table, Place("check").entry(i), problem) for i, table in enumerate(raw))


def _check(raw: dict[str, Any], place: Place, problem: Problem) -> Check:
    given, at = raw["quantity"], place.key("quantity")
    with at.within():
        quantity = resolve(parse_quantity(given), problem)
    if quantity.argument == "t":
        raise at.error(f"found {given!r}, a check takes one time")
    if isinstance(quantity.argument, float) and outside(problem, quantity.argument):
        start, end = time_span(problem)
        raise at.error(f"found {given!r}, the time must lie between {start:g} s and {end:g} s")
    if quantity.kind == "status" and isinstance(raw.get("expected"), str):
        raw = raw | {"expected": _status(raw["expected"], place)}
    found = CHECKS.of.read(raw, place._replace(inside=_dimension(quantity, problem)))
    if not math.isfinite(found["expected"]):
        raise place.key("expected").error(f"found {found['expected']}, must be finite")
    return Check(**found | {"quantity": quantity})


def _status(word: str, place: Place) -> int:
    """The number of a status by its name."""
    names = {status.name.lower(): int(status) for status in Status}
    require_one_of(place.key("expected").where, word, names)
    return names[word]


def _dimension(quantity: Quantity, problem: Problem) -> Dimension | None:
    if quantity.kind in ("event_time", "last_event_time", "stop_time"):
        return DIMENSIONS["time"]
    if quantity.kind in ("event_count", "impact_count", "stick_fraction", *OUTCOMES):
        return DIMENSIONS["pure number"]
    no_unit = "integral", "impulse", "dissipated", "derivative"
    if quantity.kind in (*STATIC_KINDS, *PERIODIC_KINDS, *no_unit):
        return None
    unit = look_up(problem, quantity.name)[1].unit.replace(" ", "*")
    return next((d for d in DIMENSIONS.values() if d.unit == unit), None)
