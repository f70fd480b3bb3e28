"""Tables for people: checks, outcome, elements, parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from rich.table import Table
from rich.text import Text

from jfric.results.columns import column_units
from jfric.results.status import Status
from jfric.system.direction import Direction
from jfric.system.event import Event
from jfric.system.expression import Expression
from jfric.system.functions_of_state import functions_of
from jfric.system.joint_contacts import normal_forces
from jfric.system.naming import parameters, path_dimension

if TYPE_CHECKING:
    from jfric.results.solution import Solution
    from jfric.solvers.bias_of_bristles import BristleBias
    from jfric.solvers.bias_of_smoothing import SmoothingBias
    from jfric.system.problem import Problem
    from jfric.verification.result import Result


#: Events that are printed.
MAX_ROWS = 20


def plain_table(title: str, *columns: str) -> Table:
    """A table whose columns starting with ``>`` are aligned to the right."""
    table = Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=None,
        header_style="bold",
        pad_edge=False,
        padding=(0, 2, 0, 0),
    )
    for column in columns:
        right = column.startswith(">")
        table.add_column(
            column.removeprefix(">"),
            justify="right" if right else "left",
            overflow="fold",
            no_wrap=right,
        )
    return table


def _passed(result: Result) -> Text:
    return Text("passed", "green") if result.passed else Text("FAILED", "bold red")


def checks_table(results: Sequence[Result], title: str = "Checks") -> Table:
    """Computed values beside the expected ones, for one run."""
    table = plain_table(
        title, "quantity", ">computed", ">expected", ">error", ">allowed", "", "source"
    )
    for r in results:
        table.add_row(
            Text(r.quantity),
            number(r.value),
            number(r.expected),
            f"{r.error:.1e}",
            f"{r.tolerance:.1e}",
            _passed(r),
            Text(r.source),
        )
    return table


def verification_table(results: Sequence[Result]) -> Table:
    """One row for each case and solver: checks passed, and the one nearest its tolerance."""
    table = plain_table(
        "Verification",
        "case",
        "solver",
        ">passed",
        "closest to its tolerance",
        ">error",
        ">allowed",
        "",
    )
    groups: dict[tuple[str, str], list[Result]] = {}
    for r in results:
        groups.setdefault((r.case, r.solver), []).append(r)
    for (case, solver), group in groups.items():
        worst = max(group, key=_closeness)
        good = sum(r.passed for r in group)
        table.add_row(
            Text(case),
            solver,
            f"{good}/{len(group)}",
            Text(worst.quantity),
            f"{worst.error:.1e}",
            f"{worst.tolerance:.1e}",
            _passed(worst),
        )
    return table


def failures_table(results: Sequence[Result]) -> Table:
    """All failed checks of a verification in full."""
    table = plain_table(
        "Failed checks", "case", "solver", "quantity", ">value", ">expected", ">error", ">allowed"
    )
    for r in results:
        if not r.passed:
            table.add_row(
                Text(r.case),
                r.solver,
                Text(r.quantity),
                number(r.value),
                number(r.expected),
                f"{r.error:.1e}",
                f"{r.tolerance:.1e}",
            )
    return table


def _closeness(result: Result) -> tuple[bool, float]:
    if not result.passed:
        return True, result.error if np.isfinite(result.error) else np.inf
    return False, result.error / result.tolerance if result.tolerance else 0.0


def bias_table(bias: SmoothingBias) -> Table:
    """Distance to the exact motion, creep in stick and steps for each smoothing width."""
    several = len(bias.axes) > 1
    distances = [f">distance {axis}" if several else ">distance" for axis in bias.axes]
    creeps = [f">creep {name}" for name in bias.contacts]
    table = plain_table("Smoothing bias", ">width", *distances, *creeps, ">steps", "status")
    for i, width in enumerate(bias.widths):
        table.add_row(
            f"{width:g}",
            *(f"{x:.3e}" for x in bias.distance[i]),
            *(f"{x:.3e}" for x in bias.creep[i]),
            str(bias.steps[i]),
            Text(Status(int(bias.status[i])).message),
        )
    table.caption = f"exact: {bias.exact_steps} passes of the event-driven solver"
    table.caption_justify = "left"
    return table


def bristle_table(bias: BristleBias) -> Table:
    """Distance of bristles to the set-valued motion, and its order in the stiffness."""
    several = len(bias.axes) > 1
    names = [(f" {axis}" if several else "") for axis in bias.axes]
    columns = [f">{what}{name}" for name in names for what in ("distance", "relative")]
    table = plain_table("Bias of bristles", ">sigma0", *columns, ">order", ">steps", "status")
    worst = bias.relative.max(axis=1)
    for i, stiffness in enumerate(bias.sigma0):
        order = ""
        if i and min(worst[i - 1], worst[i]) > 0 and stiffness != bias.sigma0[i - 1]:
            fall = np.log(worst[i - 1] / worst[i])
            order = f"{fall / np.log(stiffness / bias.sigma0[i - 1]):.2f}"
        pairs = zip(bias.distance[i], bias.relative[i], strict=True)
        cells = (f"{x:.3e}" for pair in pairs for x in pair)
        message = Text(Status(int(bias.status[i])).message)
        table.add_row(f"{stiffness:g}", *cells, order, str(bias.steps[i]), message)
    table.caption = f"set-valued: {bias.exact_steps} passes of the event-driven solver"
    table.caption_justify = "left"
    return table


def number(value: float) -> str:
    """Ten significant digits, enough to see an error of 1e-9."""
    return f"{float(value):.10g}"


def state_table(problem: Problem, solution: Solution) -> Table:
    """State at the last output, with units, and the mode of each contact."""
    units = column_units(problem, solution)
    time = float(np.asarray(solution.ts)[-1])
    table = plain_table(f"State at t = {time:.6g} s", "", ">position", "", ">velocity", "")
    for i, axis in enumerate(solution.axes):
        table.add_row(
            Text(axis),
            number(np.asarray(solution.q)[-1, i]),
            units[f"q.{axis}"],
            number(np.asarray(solution.v)[-1, i]),
            units[f"v.{axis}"],
        )
    return table


def contacts_table(problem: Problem, solution: Solution) -> Table:
    """Modes and forces at the last output."""
    units = column_units(problem, solution)
    mode, lambda_t = np.asarray(solution.mode)[-1], np.asarray(solution.lambda_t)[-1]
    lambda_n = np.asarray(solution.lambda_n)[-1]
    first = mode.size - lambda_n.size
    # Both components of friction in a plane belong to one normal force.
    places = {first + at: name for name, at in normal_forces(problem).items()}
    if not mode.size:
        table = plain_table("", "element", "segment")
    else:
        table = plain_table("", "contact", "mode", ">friction force", "", ">normal force", "")
    for i, name in enumerate(solution.names):
        if i < mode.size:
            normal = number(lambda_n[i - first]) if i in places else "" if i >= first else "given"
            table.add_row(
                Text(name),
                solution.mode_label(i, mode[i]),
                number(lambda_t[i]),
                units[f"lambda_t.{name}"],
                normal,
                units.get(f"lambda_n.{places.get(i, name)}", ""),
            )
        else:
            code = np.asarray(solution.segment)[-1, i - mode.size]
            table.add_row(Text(name), solution.mode_label(i, code).replace("_", " "))
    return table


def own_events_table(solution: Solution) -> Table:
    """Events of the description in order of time, the first of them only where there are many."""
    rows = [r for r in solution.event_table() if r["contact"] in solution.event_names]
    table = plain_table("", "event", ">time", "", "from", "to")
    for row in rows[:MAX_ROWS]:
        table.add_row(Text(row["contact"]), number(row["time"]), "s", row["from"], row["to"])
    if len(rows) > MAX_ROWS:
        table.caption = f"and {len(rows) - MAX_ROWS} more"
        table.caption_justify = "left"
    return table


def elements_table(problem: Problem) -> Table:
    """All elements and what they act on."""
    table = plain_table("Elements", "section", "name", "acts on", "settings")
    for section, group in problem.elements.items():
        for name, element in group.items():
            directions = {
                field: getattr(element, field)
                for field in ("direction", "normal", "tangent", "reaction")
                if isinstance(getattr(element, field, None), Direction)
            }
            acts = ", ".join(
                _direction(d) if field == "direction" else f"{field} {_direction(d)}"
                for field, d in directions.items()
            )
            functions = functions_of(element)
            if functions:
                texts = [f"{k} = {w if isinstance(w, str) else '(Python)'}" for k, w in functions]
                acts = ", ".join([acts, *texts] if acts else texts)
            settings = [
                f"{field}={getattr(element, field)}"
                for field in ("release", "impact")
                if hasattr(element, field)
            ]
            law = getattr(element, "law", None)
            if law is not None:
                settings.insert(0, f"law={type(law).__name__}")
            if isinstance(element, Event):
                acts = element.when if isinstance(element.when, str) else "a function"
                settings = [f"direction={element.direction}", f"action={element.action}"]
            table.add_row(section, Text(name), Text(acts), Text(", ".join(settings)))
    return table


def _direction(direction: Direction) -> str:
    """``x2 - x1``, ``0.6 x + 0.8 y``."""
    if direction.signs is not None:
        entries = dict(zip(direction.names, direction.signs, strict=True))
    else:
        entries = direction.coefficients or {}
    terms = [_term(name, value) for name, value in entries.items()]
    text = " ".join(terms).removeprefix("+ ")
    return f"-{text[2:]}" if text.startswith("- ") else text


def _term(name: str, value: object) -> str:
    if isinstance(value, Expression):
        return f"+ ({value.text}) {name}"
    number = float(np.asarray(value))
    size = "" if abs(number) == 1.0 else f"{abs(number):.6g} "
    return f"{'-' if number < 0 else '+'} {size}{name}"


def parameters_table(problem: Problem) -> Table:
    """Every parameter by the path that ``--set`` takes, with its value, its unit and, where it is
    computed from shared parameters, how."""
    table = plain_table("Parameters", "path", ">value", "unit", "computed as")
    resolved = parameters(problem.resolved())
    for path, value in parameters(problem).items():
        dimension = path_dimension(problem, path)
        unit = "" if dimension is None else dimension.unit
        formula = value.text if isinstance(value, Expression) else ""
        text = parameter_text(resolved[path])
        table.add_row(Text(path), Text(text), Text(unit), Text(formula))
    return table


def parameter_text(value: object) -> str:
    """A parameter's value: a number or a list."""
    array = np.asarray(value)
    if array.ndim == 0:
        return f"{float(array):.12g}"
    if array.size > 6:
        return f"{array.size} values, {array.min():.6g} to {array.max():.6g}"
    return "[" + ", ".join(f"{x:.6g}" for x in array.ravel()) + "]"
