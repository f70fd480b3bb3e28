"""Degrees of freedom, time, starts, matrices and elements in a file, and the problem from them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from jfric.errors import ProblemError, first_line
from jfric.files.codec import NUMBER, Choice, Key, Number, Place, System, Text, Whole
from jfric.files.config import DEFAULT_OUTPUTS, outside, time_span
from jfric.files.element_codec import Section, element_codec, is_python_only
from jfric.files.function_codec import increase
from jfric.files.robots import ROBOT, robot_of
from jfric.files.table_codecs import Either, List, Names, Record
from jfric.numerics import limits
from jfric.results.formulas import require_formulas
from jfric.system.body import coordinates_of, dofs_of
from jfric.system.elements import SECTIONS
from jfric.system.fields import About, scalar
from jfric.system.functions_of_state import require_functions
from jfric.system.massless import eliminate_massless
from jfric.system.model import build
from jfric.system.naming import MATRICES, START, matrix_dimension
from jfric.system.problem import InitialState, Matrices, Problem, TimeSpan
from jfric.system.units import dimensionality, has_unit

TIME_UNIT = About(("time", "time"))


class Starts(Names):
    """Initial states by degree of freedom."""

    def read(self, raw: Any, place: Place) -> dict[str, InitialState]:
        """Initial states; those of unknown degrees of freedom are refused by the problem itself."""
        dofs = place.system.dofs
        at = {dof: place.key(dof)._replace(kind=dofs.get(dof)) for dof in raw}
        return {dof: InitialState(**self.of.read(raw[dof], at[dof])) for dof in raw}


class Matrix(Either):
    """A full matrix: rows, or the name of a file."""

    def read(self, raw: Any, place: Place) -> Any:
        dofs, name = place.system.dofs, place.where.rpartition(".")[2]
        n, kinds = len(dofs), list(dofs.values())
        if isinstance(raw, str):
            return _checked(_matrix_file(place.system.folder / raw, place), place, n)
        widths = sorted({len(row) for row in raw})
        if len(raw) != n or widths != [n]:
            found = f"{len(raw)} x {' or '.join(map(str, widths))}" if raw else "no"
            raise place.error(
                f"found {found} entries, needed are {n} x {n} "
                "(a row and a column for each degree of freedom)"
            )

        def entry(value: Any, i: int, j: int) -> Any:
            measures = matrix_dimension(name, kinds[i], kinds[j])
            return NUMBER.read(value, place.entry(i).entry(j)._replace(inside=measures))

        rows = [[entry(x, i, j) for j, x in enumerate(row)] for i, row in enumerate(raw)]
        if all(isinstance(x, float) for row in rows for x in row):
            return _checked(np.asarray(rows), place, n)
        return tuple(tuple(scalar(x) for x in row) for row in rows)


def _checked(matrix: np.ndarray, place: Place, n: int) -> Any:
    if matrix.shape != (n, n):
        raise place.error(f"found shape {matrix.shape}, needed is ({n}, {n})")
    return scalar(matrix)


def _matrix_file(path: Path, place: Place) -> np.ndarray:
    """A matrix from a NumPy (.npy) or Matrix Market (.mtx) file."""
    if path.suffix not in (".npy", ".mtx"):
        raise place.error(f"found {path.name!r}, allowed are files .npy and .mtx")
    if not path.is_file():
        raise place.error(f"no file {str(path)!r}")
    try:
        if path.suffix == ".npy":
            return np.asarray(np.load(path, allow_pickle=False), dtype=float)
        from scipy.io import mmread

        matrix = mmread(path)
        return np.asarray(matrix if isinstance(matrix, np.ndarray) else matrix.toarray(), float)
    except Exception as error:  # readers of formats raise anything for a damaged file
        raise place.error(f"cannot read {str(path)!r} ({first_line(error)})") from None


_NAMES = List(Text(), words='a list such as ["u"]')
_OUTPUTS = Either(
    Whole(strict=True, at_least=2, at_most=limits.OUTPUTS), List(Number("lists hold numbers only"))
)
TIME = Record(
    "Time",
    "Simulated time and outputs.",
    {
        "end": Key(NUMBER, "end of the simulated time [s]", None, True, TIME_UNIT),
        "start": Key(NUMBER, "its start [s]", 0.0, about=TIME_UNIT),
        "outputs": Key(
            _OUTPUTS,
            "number of outputs from start to end, or their times",
            DEFAULT_OUTPUTS,
            about=TIME_UNIT,
        ),
    },
    hints=True,
)
_STATE = Record(
    "Initial",
    "Initial position and velocity of a degree of freedom.",
    {
        "q": Key(NUMBER, "initial position", 0.0, about=START["q"]),
        "v": Key(NUMBER, "initial velocity", 0.0, about=START["v"]),
    },
    words="a table; write [initial.u] with q and v",
)
_MATRIX = Matrix(List(List(NUMBER)), Text())
_OF_MATRICES = {
    "M": "masses, added to those of the elements",
    "C": "damping, added to that of the elements",
    "K": "stiffness, added to that of the elements",
}
#: Keys of a file that describe the system, before and after its elements.
BEFORE = {
    "dofs": Key(
        Either(_NAMES, Names(Choice("translation", "rotation"))),
        'names of the degrees of freedom; {phi = "rotation"} for angles',
    ),
    "massless": Key(
        _NAMES,
        "which of them have no mass; springs and friction alone decide where they are, and they "
        "are left out exactly",
    ),
    "robot": Key(ROBOT, "a robot from a URDF or MJCF file"),
    "time": Key(TIME, "simulated time and outputs", needed=True),
    "parameters": Key(
        Names(Number("parameters hold numbers and quantities only")),
        'shared values, used as "$name" in expressions',
    ),
}
BEHIND = {
    "initial": Key(
        Starts(_STATE), "initial position and velocity of degrees of freedom, by their names"
    ),
    "matrices": Key(
        Record(
            "MatricesTable",
            "Full matrices: rows, or the path of a file (.npy, .mtx).",
            {name: Key(_MATRIX, _OF_MATRICES[name]) for name in MATRICES},
        ),
        "full matrices beside the elements",
    ),
}


def sections() -> dict[str, Section]:
    """Codecs of the sections of elements that a file can hold."""
    names = [name for name, cls in SECTIONS.items() if not is_python_only(cls)]
    return {name: Section(element_codec(name)) for name in names}


def problem(raw: dict[str, Any], folder: Path) -> Problem:
    """The problem that a file of a good shape describes; raises :class:`jfric.ProblemError`."""
    robot = robot_of(raw, folder)
    dofs, parameters = _dofs(raw), raw.get("parameters", {})
    values = BEFORE["parameters"].codec.read(parameters, Place("parameters"))
    codecs = {name: codec for name, codec in sections().items() if name in raw}
    named = {
        name: [name] if codec.is_flat(raw[name]) else list(raw[name])
        for name, codec in codecs.items()
    }
    # Degrees of freedom that are also declared are checked with the problem.
    declared = dofs_of(dict.fromkeys(named.get("body", ())))
    declared |= {} if robot is None else robot.dofs
    for name in named.get("link", ()):
        table = raw["link"] if codecs["link"].is_flat(raw["link"]) else raw["link"][name]
        declared |= coordinates_of(
            name, table.get("joint", "revolute"), table.get("dof"), "radius" in table
        )
    dofs |= {k: v for k, v in declared.items() if k not in dofs}
    lengths = [name for name, value in parameters.items() if has_unit(value)]
    system = System(dofs, tuple(named.get("base", ())), lengths, folder)

    def read(key: Key, name: str) -> Any:
        return key.codec.read(raw.get(name, {}), Place(name, system=system))

    # In the order of the file, which names of parameters and of contacts follow.
    elements = {s: codecs[s].read(raw[s], Place(s, system=system)) for s in raw if s in codecs}
    initial = read(BEHIND["initial"], "initial")
    if robot is not None:
        own = robot.elements
        elements = {s: own.get(s, {}) | elements.get(s, {}) for s in (own | elements)}
        initial = robot.initial | initial
    time = TIME.read({k: v for k, v in raw["time"].items() if k != "outputs"}, Place("time"))
    found = Problem(
        dofs,
        elements,
        initial=initial,
        time=TimeSpan(time["end"], time.get("start", 0.0)),
        parameters=values,
        matrices=Matrices(**read(BEHIND["matrices"], "matrices")),
    )
    require_formulas(found)
    with_units = {k: dimensionality(v) for k, v in parameters.items() if isinstance(v, str)}
    if with_units:
        require_functions(found, {k: v for k, v in with_units.items() if v is not None})
    return build(_without_massless(found, raw.get("massless", [])))


def _dofs(raw: dict[str, Any]) -> dict[str, str]:
    given = raw.get("dofs")
    if isinstance(given, list):
        double = next((d for i, d in enumerate(given) if d in given[:i]), None)
        if double is not None:
            raise ProblemError(f"dofs: found {double!r} twice, names must differ")
        given = dict.fromkeys(given, "translation")
    if not given and not raw.get("body") and not raw.get("link") and "robot" not in raw:
        if given is None:
            raise ProblemError('dofs: missing; give dofs = ["u"], or a [body], [link] or [robot]')
        raise ProblemError("dofs: found none, at least one degree of freedom is needed")
    return dict(given or {})


def _without_massless(found: Problem, dofs: list[str]) -> Problem:
    if not dofs:
        return found
    try:
        return eliminate_massless(found, *dofs).problem
    except ProblemError as error:
        raise ProblemError(re.sub("^eliminate_massless:", "massless:", str(error))) from None


def outputs(raw: dict[str, Any], found: Problem) -> int | tuple[float, ...]:
    """Number of outputs, or their times [s], from the table ``[time]``."""
    place = Place("time.outputs", TIME_UNIT)
    times = _OUTPUTS.read(raw.get("outputs", DEFAULT_OUTPUTS), place)
    if isinstance(times, int):
        return times
    if not times or not increase(times):
        raise place.error(f"found {times}, times must increase strictly")
    if outside(found, times).any():
        start, end = time_span(found)
        raise place.error(
            f"found times from {times[0]:g} s to {times[-1]:g} s, "
            f"must lie between {start:g} s and {end:g} s"
        )
    return tuple(times)
