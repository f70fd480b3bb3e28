"""Phases of a trajectory: intervals in which a contact keeps its mode."""

from __future__ import annotations

from collections.abc import Sequence
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
