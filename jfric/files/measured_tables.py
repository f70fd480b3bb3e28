"""The table ``[data]``: the map from columns of measured files to a system."""

from __future__ import annotations

import math
from typing import Any

from jfric.errors import nearest
from jfric.files.codec import NUMBER, Choice, Key, Place, Text
from jfric.files.config import Beside, Column, Measured
from jfric.files.system_tables import TIME_UNIT
from jfric.files.table_codecs import Either, Names, Record, SettingsTable
from jfric.system.expression import Expression
from jfric.system.naming import find_function, find_path, parameters, path_dimension
from jfric.system.problem import Problem
from jfric.system.units import DIMENSIONS, Dimension

_COLUMN = Either(
    Text(),
    Record(
        "ColumnTable",
        "A column of a measured file: its unit, which may carry a factor, what is added in SI, "
        "the step of what was read, and where a position begins anew.",
        {
            "column": Key(Text(), "name of the column", needed=True),
            "unit": Key(Text(), 'its unit, with a factor if need be ("35.15 N")', ""),
            "offset": Key(NUMBER, "added to the value in SI units", 0.0),
            "resolution": Key(NUMBER, "step of what was read, such as that of an encoder"),
            "wraps_at": Key(
                NUMBER, "distance after which a position begins anew; 0: never (default: found)"
            ),
        },
    ),
)
_QUANTITIES = {
    "y": Key(Names(_COLUMN), "measured quantities by name"),
    "u": Key(Names(_COLUMN), "measured inputs by the path of the load"),
}
_BESIDE = Record(
    "BesideTable",
    "A second file of the same run, from a device with a clock of its own.",
    {
        "file": Key(Text(), 'its name; * is that of the first: "*_scope.csv"', needed=True),
        "join": Key(Text(), "the quantity that both measure, which gives the clock", needed=True),
        "time": Key(_COLUMN, "column of the times", needed=True),
        **_QUANTITIES,
    },
)


class DataTable(SettingsTable):
    """The table ``[data]``."""

    def of(self, raw: dict[str, Any], problem: Problem, where: str) -> Measured:
        place, time = Place(where), DIMENSIONS["time"]
        if not raw.get("y"):
            raise place.key("y").error('missing; give a measured quantity such as u = "column"')
        for name in ("start", "end"):
            if "time" not in raw and name in raw:
                raise place.key(name).error("found one without data.time; rows are steady states")
        if "time" not in raw and not raw.get("u"):
            raise place.key("time").error(
                "missing; give the column of the times, or in data.u what was set in each "
                'row, such as "load.F.omega", where rows are steady states'
            )
        instants = {
            name: _plain(raw[name], place.key(name, TIME_UNIT), problem)
            for name in ("start", "end")
            if name in raw
        }

        return Measured(
            time=_column(raw["time"], place.key("time"), time, problem) if "time" in raw else None,
            y=_columns(raw, "y", place, problem),
            u=_columns(raw, "u", place, problem),
            beside=_beside(raw, place, problem),
            records=raw.get("records"),
            known=_known(raw.get("known", {}), place.key("known"), problem),
            missing_inputs=raw.get("missing_inputs", "refuse"),
            table=raw,
            **instants,
        )

    def kept(self, value: Any) -> dict[str, Any]:
        return self.write(value.table, Place("data"))


DATA = DataTable(
    "DataTable",
    "Columns of measured files: time, measured quantities (y) and inputs (u).\n\n"
    "Without time rows are steady states.",
    {
        "time": Key(_COLUMN, "column of the times; without it rows are steady states"),
        **_QUANTITIES,
        "beside": Key(_BESIDE, "a second file of the same run, with a clock of its own"),
        "records": Key(Text(), "pattern of the names of records in one file"),
        "known": Key(
            Names(Names(NUMBER)),
            "numbers of single records: by pattern of their names, then by path of the parameter",
        ),
        "start": Key(NUMBER, "first time that is used [s]", about=TIME_UNIT),
        "end": Key(NUMBER, "last time that is used [s]", about=TIME_UNIT),
        "missing_inputs": Key(
            Choice("refuse", "hold"), "what happens to missing samples of inputs", "refuse"
        ),
    },
)


def _columns(raw: dict[str, Any], letter: str, place: Place, problem: Problem):
    given = {find_function(problem, k) or k: c for k, c in raw.get(letter, {}).items()}
    at = place.key(letter)
    return {k: _column(c, at.key(k), _measures(problem, k), problem) for k, c in given.items()}


def _beside(raw: dict[str, Any], place: Place, problem: Problem) -> Beside | None:
    """The table ``[data.beside]``."""
    if "beside" not in raw:
        return None
    own, at = raw["beside"], place.key("beside")
    for name in ("time", "records"):
        if (name in raw) != (name == "time"):
            raise at.error(
                f"found one {'without' if name == 'time' else 'with'} data.{name}; a second file "
                "belongs to one record with times"
            )
    time = _column(own["time"], at.key("time"), DIMENSIONS["time"], problem)
    y, u = (_columns(own, letter, at, problem) for letter in ("y", "u"))
    join = find_function(problem, own["join"]) or own["join"]
    first = [k for letter in ("y", "u") for k in _columns(raw, letter, place, problem)]
    for table, names in (("data", first), ("data.beside", (*y, *u))):
        if join not in names:
            raise at.key("join").error(
                f"found {join!r}{nearest(join, names)}, {table} has " + (", ".join(names) or "none")
            )
    # A signal of neither the motion nor the loads, such as a trigger, only gives the clock.
    keeps = _measures(problem, join) is not None or join == "controller.reference"
    return Beside(own["file"], join, keeps, Measured(time, y, u))


def _known(raw: dict[str, Any], place: Place, problem: Problem) -> dict[str, dict[str, float]]:
    """Numbers of single records, by pattern and full path."""
    found: dict[str, dict[str, float]] = {}
    for pattern, table in raw.items():
        own = found.setdefault(pattern, {})
        for path, value in table.items():
            at = place.key(pattern).key(path)
            try:
                full = find_path(problem, path)
            except KeyError:
                known = parameters(problem)
                raise at.error(f"no parameter {path!r}{nearest(path, known)}") from None
            own[full] = _plain(value, at._replace(inside=path_dimension(problem, full)), problem)
    return found


def _column(raw: Any, place: Place, measures: Dimension | None, problem: Problem) -> Column:
    if isinstance(raw, str):
        return Column(raw, measures=measures)
    unit, place = raw.get("unit", ""), place._replace(inside=measures)
    # A unit may contain a factor: "35.15 N" is the force of one volt.
    text = unit if unit[:1].isdigit() or unit[:1] in "+-." else f"1 {unit}"
    factor = _plain(text, place.key("unit"), problem) if unit else 1.0
    if factor == 0.0:
        raise place.key("unit").error(f"found {unit!r}, must not be zero")
    offset = _plain(raw.get("offset", 0.0), place.key("offset"), problem)
    found: dict[str, float] = {}
    for key, least in (("resolution", "positive"), ("wraps_at", "zero or positive")):
        if key in raw:
            found[key] = _plain(raw[key], place.key(key), problem)
            if found[key] < 0.0 or (found[key] == 0.0 and least == "positive"):
                raise place.key(key).error(f"found {found[key]:g}, must be {least}")
    return Column(raw["column"], factor, offset, unit, measures, **found)


def _plain(raw: Any, place: Place, problem: Problem) -> float:
    found = NUMBER.read(raw, place)
    if isinstance(found, Expression):
        try:
            found = float(found.value(problem.parameters))
        except KeyError as error:
            name = str(error.args[0])
            raise place.error(f"no parameter {name!r}{nearest(name, problem.parameters)}") from None
    if not math.isfinite(found):
        raise place.error(f"found {found}, must be finite")
    return found


def _measures(problem: Problem, name: str) -> Dimension | None:
    """Dimension of the quantity ``name``: a position, velocity or function of time; or None."""
    word, _, signal = name.partition("(")[0].partition(".")
    if name == "period":
        return DIMENSIONS["time"]
    if word == "phase":
        return DIMENSIONS["angle"]
    if word in ("amplitude", "mean"):
        return _measures(problem, signal)
    prefix, _, dof = name.rpartition(".")
    rotates = problem.dofs.get(dof) == "rotation"
    kinds = {
        "": ("length", "angle"),
        "v": ("velocity", "angular velocity"),
        "controller": ("length", "angle"),
    }
    if dof in problem.dofs and prefix in ("", "v"):
        return DIMENSIONS[kinds[prefix][rotates]]
    if name == "controller.reference":
        return None
    try:
        return path_dimension(problem, name)
    except (KeyError, IndexError):
        return None
