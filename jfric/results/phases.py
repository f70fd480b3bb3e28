"""Phases of a trajectory: intervals in which a contact keeps its mode."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from jfric.results.solution import Solution


class Phase(NamedTuple):
    """An interval of time in which one contact (or piecewise-linear element) keeps its mode."""

    start: float
    end: float
    label: str


def phases(solution: Solution, contact: int) -> list[Phase]:
    """Phases of ``solution.names[contact]`` over the requested times, from the event log.

    Where the log has overflowed, the modes at the requested times are used beyond its end.
    """
    ts = np.asarray(solution.ts)
    if ts.size == 0:
        return []
    sampled = _sampled_modes(solution, contact)
    log = solution.events.used()
    held = len(log.time)
    overflowed = int(log.count) > held
    mine = [i for i in range(held) if int(log.contact[i]) == contact]
    code = int(log.from_mode[mine[0]]) if mine else int(sampled[0])
    switches = [(float(log.time[i]), int(log.to_mode[i])) for i in mine]
    if overflowed:
        last = float(log.time[held - 1])
        switches += [
            (float(ts[i]), int(sampled[i]))
            for i in range(1, ts.size)
            if ts[i] > last and sampled[i] != sampled[i - 1]
        ]
    result: list[Phase] = []
    start = float(ts[0])
    for time, following in switches:
        if time > ts[-1]:
            break
        _append(result, start, time, solution.mode_label(contact, code))
        start, code = max(time, float(ts[0])), following
    _append(result, start, float(ts[-1]), solution.mode_label(contact, code))
    return result


def _append(result: list[Phase], start: float, end: float, label: str) -> None:
    if end <= start:
        return
    if result and result[-1].label == label:
        result[-1] = Phase(result[-1].start, end, label)
    else:
        result.append(Phase(start, end, label))


def _sampled_modes(solution: Solution, contact: int) -> np.ndarray:
    n_contacts = len(solution.names) - len(solution.segment_labels)
    table = solution.mode if contact < n_contacts else solution.segment
    return np.asarray(table)[:, contact if contact < n_contacts else contact - n_contacts]
