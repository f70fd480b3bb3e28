"""The shape of a file: its sections by the classes of elements, and the tables of every file.

Only shapes are checked here: keys, types, choices. Numbers and units are read afterwards, and their
meaning is checked in :mod:`jfric.system.validation`.
"""

from __future__ import annotations

from typing import Any

from jfric.errors import ProblemError
from jfric.files.checks import CHECKS
from jfric.files.codec import Key, Place, did_you_mean
from jfric.files.measured_tables import DATA
from jfric.files.scalar_codecs import Text
from jfric.files.settings_tables import (
    BASINS,
    FIT,
    LYAPUNOV,
    OPTIMISE,
    PERIODIC,
    RESPONSE,
    SOLVER,
    STATICS,
)
from jfric.files.system_tables import BEFORE, BEHIND, sections
from jfric.files.table_codecs import Record
from jfric.system.elements import SECTIONS


class File(Record):
    """A whole file."""

    def hint(self, key: Key, place: Place) -> str:
        return '; give [time] end = "4 s"'

    def unknown(self, name: str, value: Any, place: Place) -> str:
        if name in SECTIONS:
            return "can only be given in Python, a file cannot hold a function"
        names = list(self.table)
        return f"unknown section{did_you_mean(name, names)}, allowed are {', '.join(names)}"


def file_codec() -> File:
    """The shape of a file, with the sections and laws that are registered now."""
    keys = {
        "title": Key(Text(), "one line that says what the system is", ""),
        "source": Key(Text(), "who published it, where", ""),
        "description": Key(Text(), "anything else, for readers", ""),
        **BEFORE,
        **{name: Key(section) for name, section in sections().items()},
        **BEHIND,
        "solver": Key(SOLVER, "settings of the solver"),
        "statics": Key(STATICS, "what `jfric trace` and checks of limit loads follow"),
        "periodic": Key(PERIODIC, "what `jfric periodic` and checks of periodic motion look for"),
        "response": Key(
            RESPONSE, "what `jfric response` and checks of frequency responses look for"
        ),
        "lyapunov": Key(LYAPUNOV, "how `jfric lyapunov` and checks of the exponent compute it"),
        "basins": Key(BASINS, "initial states of `jfric basins` and of checks of attractors"),
        "data": Key(DATA, "which columns of measured files hold what"),
        "fit": Key(FIT, "what `jfric fit` and `jfric compare` are free to change"),
        "optimise": Key(OPTIMISE, "what `jfric optimise` changes, and what for"),
        "check": Key(CHECKS, "numbers that a correct solution has, for `jfric verify`"),
    }
    return File("File", "A mechanical system with friction, gaps and impacts.", keys)


def shape_error(raw: dict[str, Any]) -> ProblemError | None:
    """The first mistake in the shape of a file; unknown keys come before keys that are missing."""
    mistakes = [*file_codec().mistakes(raw, Place())]
    first = sorted(mistakes, key=lambda mistake: not mistake.unknown)[:1]
    return ProblemError(first[0].sentence) if first else None


def json_schema() -> dict[str, Any]:
    """The JSON schema of a file, for completion and checks in editors."""
    definitions: dict[str, Any] = {}
    shape = file_codec().shape(definitions)
    return {"title": "File", **shape, "$defs": dict(sorted(definitions.items()))}
