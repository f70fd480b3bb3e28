"""Curves of a trajectory, drawn exactly at its events, and its phases: intervals of one mode."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from jfric.results.columns import column_units, has_friction

if TYPE_CHECKING:
    from jfric.results.solution import Solution
    from jfric.system.problem import Problem


def motion_curve(solution: Solution, name: str, column: int) -> tuple[np.ndarray, np.ndarray]:
    """Samples of ``q`` or ``v`` joined by the states at events, before and after each."""
    log, ts = solution.events.used(), np.asarray(solution.ts)
    time = np.asarray(log.time)
    inside = (time >= ts[0]) & (time <= ts[-1]) if ts.size else np.zeros(time.size, bool)
    after = np.asarray(getattr(log, name))[inside, column]
    before = np.asarray(log.v_before)[inside, column] if name == "v" else after
    values = np.asarray(getattr(solution, name))[:, column]
    times, values = joined(ts, time[inside], (values, before, after))
    return times, values


def joined(
    ts: np.ndarray, times: np.ndarray, *curves: tuple[np.ndarray, np.ndarray, np.ndarray]
) -> tuple[np.ndarray, ...]:
    """Times in order, and ``curves`` there: values at the samples ``ts``, before and after the
    events at ``times``. A sample exactly at the time of an event counts as after the event."""
    every = np.concatenate([ts, times, times])
    rank = np.concatenate([np.full(ts.size, 2), np.zeros(times.size), np.ones(times.size)])
    order = np.lexsort((rank, every))
    return every[order], *(np.concatenate(curve)[order] for curve in curves)


class ForceCurve(NamedTuple):
    """Force of one contact at the requested times, with its label and unit."""

    contact: int
    name: str
    values: np.ndarray
    label: str
    unit: str


def force_curves(solution: Solution, problem: Problem) -> list[ForceCurve]:
    """Friction force of each contact; normal forces if no contact has friction."""
    units = column_units(problem, solution)
    rubs = has_friction(problem)
    lambda_t, lambda_n = np.asarray(solution.lambda_t), np.asarray(solution.lambda_n)
    lines = []
    for i, name in enumerate(solution.names[: lambda_t.shape[1]]):
        if rubs.get(name):
            unit = units[f"lambda_t.{name}"]
            label = "friction torque" if unit == "N m" else "friction force"
            lines.append(ForceCurve(i, name, lambda_t[:, i], label, unit))
    if lines:
        return lines
    first = lambda_t.shape[1] - lambda_n.shape[1]
    return [
        ForceCurve(first + i, name, lambda_n[:, i], "normal force", units[f"lambda_n.{name}"])
        for i, name in enumerate(solution.names[first : lambda_t.shape[1]])
    ]


def force_points(solution: Solution, line: ForceCurve) -> tuple[np.ndarray, np.ndarray]:
    """Samples of a force, with vertical lines for its jumps at the contact's own events."""
    log, values = solution.events.used(), np.array(line.values, float)
    values[~np.isfinite(values)] = np.nan
    own = np.asarray(log.time)[np.asarray(log.contact) == line.contact]
    return upright(np.asarray(solution.ts), values, own)


def upright(ts: np.ndarray, values: np.ndarray, own: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Samples ``values`` at the times ``ts``, with a vertical line at each of the times ``own``."""
    own = own[(own > ts[0]) & (own <= ts[-1])] if ts.size else own[:0]
    after = np.searchsorted(ts, own)
    pairs = np.stack([values[after - 1], values[after]], axis=1).ravel()
    twice = np.repeat(after, 2)
    return np.insert(ts, twice, np.repeat(own, 2)), np.insert(values, twice, pairs)


class Phase(NamedTuple):
    """An interval of time in which one contact (or piecewise-linear element) keeps its mode."""

    start: float
    end: float
    label: str


def phases(solution: Solution, contact: int) -> list[Phase]:
    """Phases of ``solution.names[contact]`` over the requested times, from the event log.

    Where the log has overflowed, the modes at the requested times are used beyond its end.
    """
    log, label = solution.events.used(), solution.mode_label
    n_contacts = len(solution.names) - len(solution.segment_labels)
    table, column = (
        (solution.mode, contact)
        if contact < n_contacts
        else (solution.segment, contact - n_contacts)
    )
    own = np.asarray(log.contact) == contact
    before, after = (
        [label(contact, int(code)) for code in np.asarray(codes)[own]]
        for codes in (log.from_mode, log.to_mode)
    )
    changes = list(zip(np.asarray(log.time)[own].tolist(), before, after, strict=True))
    until = float(log.time[-1]) if int(log.count) > len(log.time) else np.inf
    sampled = [label(contact, code) for code in np.asarray(table)[:, column]]
    return phases_of(np.asarray(solution.ts), sampled, changes, until)


def phases_of(
    ts: np.ndarray, sampled: Sequence[str], changes: Sequence[tuple[float, str, str]], until: float
) -> list[Phase]:
    """Phases from the modes ``sampled`` at the times ``ts`` and from ``changes``: time, mode before
    and after. Later than ``until``, the last logged change, the sampled modes alone count."""
    if not len(ts):
        return []
    switches = [(time, after) for time, _, after in changes]
    switches += [
        (float(t), after)
        for t, before, after in zip(ts[1:], sampled, sampled[1:], strict=False)
        if t > until and after != before
    ]
    found: list[Phase] = []
    start, now = float(ts[0]), changes[0][1] if changes else sampled[0]
    for time, following in [*switches, (float(ts[-1]), "")]:
        end = min(time, float(ts[-1]))
        if end > start and found and found[-1].label == now:
            found[-1] = Phase(found[-1].start, end, now)
        elif end > start:
            found.append(Phase(start, end, now))
        start, now = max(end, start), following
    return found
