"""The table ``[statics]`` of a file: the parameter that a path, a limit load or the eigenvalues of
steady sliding follow."""

from __future__ import annotations

from typing import Any

from jfric.files.codec import Key, Place
from jfric.files.scalar_codecs import PLAIN, Text, Whole
from jfric.files.table_codecs import Either, List, Record
from jfric.numerics import limits
from jfric.system.naming import find_path, path_dimension
from jfric.system.problem import Problem


class PathTable(Record):
    """A table that may name a parameter, ``vary``, whose values are among its numbers."""

    def of(self, raw: dict[str, Any], problem: Problem, where: str) -> dict[str, Any]:
        """Numbers of the table in SI units, and the full path of the parameter."""
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
