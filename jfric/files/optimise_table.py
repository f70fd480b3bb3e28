"""The table ``[optimise]`` of a file: what is free, and what is to be brought about."""

from __future__ import annotations

from typing import Any

from jfric.files.codec import Key, Place
from jfric.files.scalar_codecs import PLAIN, Choice, Text, Whole
from jfric.files.table_codecs import Either, List, Names, Record
from jfric.numerics import limits
from jfric.system.naming import find_path, path_dimension
from jfric.system.problem import Problem

_BOUND = Either(PLAIN, List(PLAIN))
_FREE = Record(
    "UnknownTable",
    "A number, or a list of numbers, that an optimisation may change, from its own value on.",
    {
        "between": Key(
            List(_BOUND, 2, 2), "lower and upper bound, one for a whole list or a list of them"
        ),
        "scale": Key(Choice("log", "linear"), "scale of starts and steps", "linear"),
    },
)
OPTIMISE = Record(
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
        "free": Key(Names(_FREE), "numbers and lists by path, {between = [LOW, HIGH]}"),
    },
)


def optimise_settings(raw: dict[str, Any], problem: Problem) -> dict[str, Any]:
    """Settings in the table ``[optimise]``, with bounds in SI units by the full paths."""
    place, free = Place("optimise"), {}
    for path, item in raw.get("free", {}).items():
        at = place.key("free").key(path)
        with at.within(KeyError):
            name = find_path(problem, path)
        free[name] = _FREE.read(item, at._replace(inside=path_dimension(problem, name)))
    rest = OPTIMISE.read({key: x for key, x in raw.items() if key != "free"}, place)
    return rest | ({"free": free} if free else {})
