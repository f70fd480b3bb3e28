"""Comparison of motions of random systems with a second program and with equivalent systems.

    python experiments/judge_systems.py [--systems 3000] [--seed 1] [--kinds limits,shared]

Systems come from ``random_systems.py``. The motion of each system by the event-driven solver is
compared with that of ``stepped_systems.py``, which shares no code with jfric, and with its own
motion after changes that must have no effect: by the other kernels, by the Runge-Kutta flow with
its own and with a loose tolerance, restarted in the middle, in a batch instead of alone, with a
mirrored degree of freedom, in another order, in other units.

Motions with status ``ok`` that differ are wrong, unless a flag says that a decision lay on an edge;
so is one end with ``ok`` and one with another status. Two different error statuses are no mistake.
Answers are stored in ``--out``, so that an interrupted run can be continued. The exit status is 0
if none is wrong.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import copy
import json
import re
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import random_systems
from answer_systems import OUTPUTS, Answer
from compare_answers import status_name
from compare_commits import ROOT, Side, groups
from random_systems import Quantity, Table

#: Kinds of systems of masses along lines.
KINDS = (*random_systems.PARTS, "impacts", "limits", "shared", "far", "rows")
#: Units of mass, length and time in which a system is computed again.
UNITS = (1e-3, 1e-2, 60.0)
WAYS = (
    "stepped", "general", "lowered", "runge-kutta", "loose", "restarted", "batched", "mirrored",
    "reordered", "units",
)  # fmt: skip
#: Flags of motions that a small change may change; motions with other flags are unique.
EDGES = ("GRAZING", "TIE", "SIMULTANEOUS", "ONE_SIDED")
#: Differences that do not count, relative to the largest number: of rounding; by Runge-Kutta flow.
ROUNDING = 1e-6
TOLERANCES = {"runge-kutta": 1e-4, "loose": 1e-2}


# Systems with the same motion.


def mirrored(table: Table, dof: str = "a") -> Table:
    """A copy of the system with a degree of freedom that points the other way."""
    table = copy.deepcopy(table)

    def negative(x: Any) -> Any:
        if isinstance(x, dict):
            return {
                k: negative(v) if k not in ("times", "omega", "phase") else v for k, v in x.items()
            }
        if isinstance(x, list):
            return [negative(v) for v in x]
        return x.of(-1.0) if isinstance(x, Quantity) else -x

    def turned(w: Any) -> Any:
        if isinstance(w, list):
            return [turned(x) for x in w]
        if isinstance(w, str):
            w = {w: 1.0}
        if "between" in w:
            w = {w["between"][0]: -1.0, w["between"][1]: 1.0}
        return {x: negative(part) if x == dof else part for x, part in w.items()}

    def text(formula: str) -> str:
        return re.sub(rf"(?<![\w.$])(v\.)?{dof}(?![\w.])", lambda m: f"(-{m[0]})", formula)

    for section, group in table.items():
        if section in ("dofs", "massless", "time", "mass", "parameters", "base"):
            continue
        for own in group.values():
            if "between" in own:
                own["direction"] = turned({"between": own.pop("between")})
            elif "dof" in own and section != "event":
                own["direction"] = turned(own.pop("dof"))
            else:
                for key in ("direction", "normal", "tangent", "plane"):
                    if key in own and section != "event":
                        own[key] = turned(own[key])
            for key in ("constraint", "when", "rate"):
                if key in own:
                    own[key] = text(own[key])
            for key, formula in own.get("change", {}).items():
                mine = key in (dof, f"v.{dof}")
                own["change"][key] = f"-({text(formula)})" if mine else text(formula)
            if own.get("sliding") == dof:
                own["sliding"] = f"-{dof}"
    if dof in table.get("initial", {}):
        table["initial"][dof] = {k: negative(x) for k, x in table["initial"][dof].items()}
    return table


def reordered(table: Table) -> Table:
    """A copy of the system with its degrees of freedom and elements in the opposite order."""
    keep = ("time", "parameters", "gravity")
    turned = {
        k: dict(reversed(x.items())) if isinstance(x, dict) and k not in keep else x
        for k, x in table.items()
    }
    return turned | {"dofs": table["dofs"][::-1]}


class Way(NamedTuple):
    """Texts to answer, the question, and the function that turns answers back."""

    texts: list[str]
    question: str
    scale: Any
    tolerance: float = ROUNDING


def way(name: str, tables: list[Table]) -> Way:
    """Texts and question for one way of computing the systems."""
    texts = [random_systems.text(t) for t in tables]
    # Massless degrees of freedom are not reported.
    dofs = [x for x in tables[0]["dofs"] if x not in tables[0].get("massless", ())]
    same = (np.arange(len(dofs)), np.ones(len(dofs)), 1.0, 1.0)
    if name in ("general", "lowered", *TOLERANCES):
        return Way(texts, name, same, TOLERANCES.get(name, ROUNDING))
    if name in ("restarted", "batched"):
        return Way(texts, f"event-driven {name}", same)
    if name == "mirrored":
        texts = [random_systems.text(mirrored(t)) for t in tables]
        signs = np.where(np.array(dofs) == "a", -1.0, 1.0)
        return Way(texts, "event-driven", (same[0], signs, 1.0, 1.0))
    if name == "reordered":
        texts = [random_systems.text(reordered(t)) for t in tables]
        return Way(texts, "event-driven", (same[0][::-1], same[1], 1.0, 1.0))
    if name == "units":
        texts = [random_systems.text(t, UNITS) for t in tables]
        return Way(texts, "event-driven", (*same[:2], UNITS[1], UNITS[1] / UNITS[2]))
    return Way(texts, "event-driven", same)


def back(answer: Answer, scale: Any) -> Answer:
    """An answer in the coordinates of the original system."""
    order, signs, length, velocity = scale
    if "q" not in answer or answer["q"].shape[-1] != len(order):
        return answer
    turned = {"q": answer["q"][:, order] * signs * length}
    turned["v"] = answer["v"][:, order] * signs * velocity
    return answer | turned


# Judgement.


def flagged(answer: Answer) -> bool:
    """Whether a flag says that a decision lay on an edge."""
    import jfric

    return any(int(answer["flags"]) & int(getattr(jfric.Flag, name, 0)) for name in EDGES)


def apart(one: np.ndarray, other: np.ndarray) -> float:
    """The largest distance of two arrays, as a part of the largest number."""
    both = np.isfinite(one) & np.isfinite(other)
    size = max(np.max(np.abs(x), initial=1e-3, where=both) for x in (one, other))
    return float(np.max(np.abs(one - other), initial=0.0, where=both) / size)


def judge(base: tuple[str, Answer], other: tuple[str, Answer], tolerance: float) -> str:
    """An empty text, or how two answers differ; the first word is ``WRONG`` if no flag says so.

    A full log of events, which two parts of a run have twice, is no reason for another motion.
    """
    from jfric import Status

    (outcome, a), (second, b) = base, other
    words = [x.split(":")[0] for x in (outcome, second)]
    if "traceback" in words or "crash" in words:
        return f"WRONG outcome: {outcome[:80]} -> {second[:80]}"
    if words[0] != words[1]:
        return f"outcome: {outcome[:60]} -> {second[:60]}"
    if outcome != "answered":
        return ""
    full = {int(a["status"]), int(b["status"])} == {int(Status.OK), int(Status.MAX_EVENTS)}
    if a["status"] != b["status"] and not full:
        honest = flagged(a) or flagged(b) or int(a["status"]) * int(b["status"]) != 0
        names = f"{status_name(a['status'])} -> {status_name(b['status'])}"
        return f"{'edge' if honest else 'WRONG'} status: {names}"
    if int(a["status"]) != 0 and not full:
        return ""
    if apart(a["q"], b["q"]) <= tolerance and a["flags"] == b["flags"]:
        return ""
    if apart(a["q"], b["q"]) <= tolerance:
        return "flags alone"
    return "edge motion" if flagged(a) or flagged(b) else "WRONG motion"


def impacts_follow(answer: Answer, step: float) -> bool:
    """Whether two contacts close within a ``step`` [s], which then has the impacts of both at once
    where one follows from the other."""
    if "events.impact" not in answer:
        return False
    own = answer["events.impact"].astype(bool)
    times, contacts = answer["events.time"][own], answer["events.contact"][own]
    after = np.diff(times)
    return bool(np.any((after > 0.0) & (after < step) & (np.diff(contacts) != 0)))


def stepped(text: str, answer: Answer, steps: int) -> str:
    """Difference of the motion from that in small steps; more steps if these are too coarse."""
    import stepped_systems  # which needs numba

    try:
        end = stepped_systems.System(text).end
    except stepped_systems.Unknown:
        return "not stepped"
    said = ""
    for count in (steps, 8 * steps, 64 * steps):
        coarse, until = stepped_systems.motion(text, count, OUTPUTS * end)
        fine, last = stepped_systems.motion(text, 4 * count, OUTPUTS * end)
        if np.isnan(until) or np.isnan(last):
            return "not stepped"
        error = apart(coarse[:, 0], fine[:, 0])
        found = apart(answer["q"], fine[:, 0])
        if found <= 3.0 * error + 1e-4 and error < 0.02:
            return ""
        said = f"{found:.1e} apart, steps {error:.1e}"
    if found <= 3.0 * error + 1e-4:
        return "steps too coarse"
    if impacts_follow(answer, end / (4 * count)):
        return "several impacts in a step"
    return f"{'edge' if flagged(answer) else 'WRONG'} motion ({said})"


def main(arguments: list[str] | None = None) -> int:
    """Ask, judge, print and store."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--systems", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--size", type=int, default=60, help="systems of a structure")
    parser.add_argument("--typed", type=float, default=0.7, help="share with typed numbers")
    parser.add_argument("--steps", type=int, default=4000, help="of the stepping, at first")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for a system alone")
    parser.add_argument("--out", type=Path, default=Path("results/judge"))
    options = parser.parse_args(arguments)
    kinds, ways = options.kinds.split(","), options.ways.split(",")
    for given, allowed, what in ((kinds, KINDS, "kinds"), (ways, WAYS, "ways")):
        for name in given:
            if name not in allowed:
                raise SystemExit(f"--{what}: found {name!r}, allowed: {', '.join(allowed)}")
    folder = options.out.resolve()
    every = groups(options.systems, options.seed, kinds, options.size, options.typed)
    side = Side("this", ROOT, sys.executable, folder / "xla")
    counts: dict[str, collections.Counter[str]] = {name: collections.Counter() for name in ways}
    statuses: collections.Counter[str] = collections.Counter()
    wrong: list[str] = []
    begun = time.perf_counter()
    with contextlib.ExitStack() as ending:
        ending.callback(side.stop)
        for number, group in enumerate(every):
            tables = [
                random_systems.system(options.seed, group.structure, j, group.kind, options.typed)
                for j in range(len(group.texts))
            ]
            keep = folder / f"{side.key}-{options.seed}"
            keep.mkdir(parents=True, exist_ok=True)

            def ask(name: str, number=number, tables=tables, group=group, keep=keep):
                asked = way(name, tables)
                place = keep / f"{group.kind}-{number:03d}-{len(tables)}-{name}.npz"
                found = side.answers(asked.texts, asked.question, place, options.limit)
                turned = [back(x, asked.scale) for x in found[1]]
                return list(zip(found[0], turned, strict=True)), asked.tolerance

            base, _ = ask("base")
            for outcome, answer in base:
                word = outcome.split(":")[0]
                word = status_name(answer["status"]) if "status" in answer else word
                edge = word == "ok" and flagged(answer)
                statuses[f"{word}, on an edge" if edge else word] += 1
            for name in ways:
                others, tolerance = (base, 0.0) if name == "stepped" else ask(name)
                for j, (one, other) in enumerate(zip(base, others, strict=True)):
                    if name == "stepped":
                        ok = one[0] == "answered" and int(one[1]["status"]) == 0
                        said = stepped(group.texts[j], one[1], options.steps) if ok else ""
                    else:
                        said = judge(one, other, tolerance)
                    counts[name][said.split(" (")[0]] += 1
                    if said.startswith("WRONG"):
                        line = f"{name}: {said}; {group.kind}, structure {group.structure}, {j}"
                        wrong.append(f"# {line}\n{group.texts[j]}")
                        print(line, flush=True)
            passed = time.perf_counter() - begun
            print(f"{number + 1}/{len(every)} {group.kind}, {passed:.0f} s", file=sys.stderr)
            (folder / "wrong.toml").write_text("\n".join(wrong), "utf-8")
    print(json.dumps(statuses.most_common()))
    for name, found in counts.items():
        print(f"{name:12} " + ", ".join(f"{k or 'equal'} {n}" for k, n in found.most_common()))
    print(f"{sum(statuses.values())} systems, {len(wrong)} wrong, seed {options.seed}; {folder}")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
