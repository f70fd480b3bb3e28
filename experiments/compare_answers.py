"""Differences of two answers about a system, and the smallest system with a difference."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tomlkit
from answer_systems import Answer

MOTION = ("q", "v", "z", "period", "state", "q_low", "q_high", "multipliers")
FORCES = ("lambda_n", "lambda_t", "lambda_t_low")


def difference(one: tuple[str, Answer], two: tuple[str, Answer], tolerance: float) -> str:
    """The class of the gravest difference of two answers; empty if they agree."""
    (outcome, a), (other, b) = one, two
    if outcome != other:
        words = outcome.split(":")[0], other.split(":")[0]
        return f"outcome: {words[0]} -> {words[1]}" if words[0] != words[1] else f"other {words[0]}"
    if "status" in a and "status" in b and a["status"] != b["status"]:
        return f"status: {status_name(a['status'])} -> {status_name(b['status'])}"
    names = [k for k in a if k in b]
    if not all(close(a[k], b[k], tolerance) for k in names if k in MOTION):
        return "motion"
    whole = [k for k in names if a[k].dtype.kind in "iub" and k != "flags" and "." not in k]
    if not all(np.array_equal(a[k], b[k]) for k in whole):
        return "modes"
    if any(k.startswith("events.") for k in names) and not _same_events(a, b, tolerance):
        return "events"
    if "flags" in names and a["flags"] != b["flags"]:
        return f"flags: {_flags(int(a['flags']), int(b['flags']))}"
    if not all(close(a[k], b[k], tolerance) for k in names if k in FORCES):
        return "forces"
    return ""


def close(a: np.ndarray, b: np.ndarray, tolerance: float) -> bool:
    """Whether two arrays agree to a part of their largest number, or of one thousandth."""
    if a.shape != b.shape or not np.array_equal(np.isnan(a), np.isnan(b)):
        return False
    size = max(np.nanmax(np.abs(x), initial=1e-3, where=np.isfinite(x)) for x in (a, b))
    # Infinities are equal only to themselves.
    return bool(np.all((a == b) | np.isnan(a) | (np.abs(a - b) <= tolerance * size)))


def _same_events(a: Answer, b: Answer, tolerance: float) -> bool:
    if a["events.count"] != b["events.count"]:
        return False
    first = slice(0, int(a["events.count"]))
    exact = ("contact", "from_mode", "to_mode", "impact")
    return close(a["events.time"][first], b["events.time"][first], tolerance) and all(
        np.array_equal(a[f"events.{k}"][first], b[f"events.{k}"][first]) for k in exact
    )


def status_name(code: Any) -> str:
    import jfric

    names = {int(x): x.name.lower() for x in jfric.Status}
    return names.get(int(code), str(code))


def _flags(one: int, other: int) -> str:
    import jfric

    def names(bits: int, sign: str) -> list[str]:
        known = [x for x in jfric.Flag if bits & int(x)]
        return [f"{sign}{x.name}" for x in known] or ([f"{sign}{bits}"] if bits else [])

    return " ".join(names(other & ~one, "+") + names(one & ~other, "-"))


# The smallest system.


def smaller(text: str, chunk: int) -> Iterator[str]:
    """The system without some of its elements, or without a degree of freedom."""
    table = tomllib.loads(text)
    fixed = ("dofs", "time", "parameters", "massless", "gravity")
    names = [
        (section, name)
        for section, group in table.items() if section not in fixed
        for name in group if isinstance(group[name], dict)
    ]  # fmt: skip
    for i in range(0, len(names), chunk):
        yield _without(table, names[i : i + chunk])
    dofs = [*table.get("dofs", ())]
    for dof in dofs if chunk == 1 and len(dofs) > 1 else ():
        # Together with all elements that name it.
        named = [
            (s, n) for s, n in names
            if n == dof or re.search(rf"\b{dof}\b", json.dumps(table[s][n]))
        ]  # fmt: skip
        left = dict(table)
        kept = [x for x in dofs if x != dof]
        left["dofs"] = (
            {x: table["dofs"][x] for x in kept} if isinstance(table["dofs"], dict) else kept
        )
        yield _without(left, named)


def _without(table: dict[str, Any], names: list[tuple[str, str]]) -> str:
    left = {
        s: {k: v for k, v in group.items() if (s, k) not in names}
        if isinstance(group, dict)
        else group
        for s, group in table.items()
    }
    return tomlkit.dumps({s: group for s, group in left.items() if group != {}})


def shrunk(text: str, differs: Callable[[str], bool], trials: int) -> str:
    """The system with as few elements as show a difference, found in at most ``trials`` trials."""
    chunk = 4
    while trials > 0:
        for candidate in smaller(text, chunk):
            trials -= 1
            if differs(candidate):
                text = candidate
                break
            if trials <= 0:
                break
        else:
            if chunk == 1:
                break
            chunk //= 2
    return text
