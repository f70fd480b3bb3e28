"""Tables of a trajectory: the state, contacts at the last output, events of the description."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from jfric.numerics.printing import Shown
from jfric.results.columns import column_units
from jfric.system.contacts import normal_forces

if TYPE_CHECKING:
    from jfric.results.solution import Solution
    from jfric.system.problem import Problem

#: Events with a line of their own.
MOST_EVENTS = 20


def number(value: Any) -> str:
    """Ten significant digits, enough to see an error of 1e-9."""
    return f"{float(value):.10g}"


def state_shown(problem: Problem, solution: Solution) -> Shown:
    """State at the last output, with units."""
    units = column_units(problem, solution)
    q, v = np.asarray(solution.q)[-1], np.asarray(solution.v)[-1]
    rows = [
        (axis, number(q[i]), units[f"q.{axis}"], number(v[i]), units[f"v.{axis}"])
        for i, axis in enumerate(solution.axes)
    ]
    title = f"State at t = {float(solution.ts[-1]):.6g} s"
    return Shown(title, ("", ">position", "", ">velocity", ""), rows)


def contacts_shown(problem: Problem, solution: Solution) -> Shown:
    """Modes and forces at the last output, and segments of elements that are no contacts."""
    units = column_units(problem, solution)
    mode, lambda_t = np.asarray(solution.mode)[-1], np.asarray(solution.lambda_t)[-1]
    lambda_n = np.asarray(solution.lambda_n)[-1]
    first = mode.size - lambda_n.size
    # Both components of friction in a plane belong to one normal force.
    places = {first + at: name for name, at in normal_forces(problem).items()}
    pins = problem.labelled("pin")
    columns = ("element", "segment")
    if mode.size:
        columns = ("contact", "mode", ">friction force", "", ">normal force", "")
    rows = []
    for i, name in enumerate(solution.names):
        if i < mode.size:
            known = "reaction" if name in pins else "given"
            normal = number(lambda_n[i - first]) if i in places else "" if i >= first else known
            friction = number(lambda_t[i]), units[f"lambda_t.{name}"]
            unit = units.get(f"lambda_n.{places.get(i, name)}", "")
            rows.append((name, solution.mode_label(i, mode[i]), *friction, normal, unit))
        else:
            code = np.asarray(solution.segment)[-1, i - mode.size]
            label = solution.mode_label(i, code).replace("_", " ")
            rows.append((name, label, *[""] * (len(columns) - 2)))
    return Shown("", columns, rows)


def own_events_shown(solution: Solution) -> Shown:
    """Events of the description in order of time, the first of them only where there are many."""
    own = [r for r in solution.event_table() if r["contact"] in solution.event_names]
    rows = [(r["contact"], number(r["time"]), "s", r["from"], r["to"]) for r in own[:MOST_EVENTS]]
    below = f"and {len(own) - MOST_EVENTS} more" if len(own) > MOST_EVENTS else ""
    return Shown("", ("event", ">time", "", "from", "to"), rows, below)
