"""Comparison of one trajectory by several kernels of the computation, which must agree."""

from __future__ import annotations

import itertools

import numpy as np

from jfric.results.solution import Events
from jfric.verification.evaluate import Trajectory
from jfric.verification.jobs import Job
from jfric.verification.result import Result, judged, whole

#: Error relative to the scale of a quantity for jobs that do not state one.
UNKNOWN = 1e-7


def agreement(first: Job, expected: Trajectory, other: Job, found: Trajectory) -> list[Result]:
    """Checks that the trajectories of ``other`` and ``first`` agree: the same status, flags and
    changes of mode, at times and with positions that differ by no more than the errors of both."""
    a, b = expected.solution, found.solution
    about = {"case": other.case, "solver": other.label}
    than = f"than with the {first.kernel} kernel"
    results = [
        whole(quantity=f"other {name} {than}", value=float(value), **about)
        for name, value in (
            ("status", int(a.status) != int(b.status)),
            ("flags", int(a.flags) ^ int(b.flags)),
            ("events", _unlike(a.events.used(), b.events.used())),
        )
    ]
    scales = (
        ("event times", a.events.used().time, b.events.used().time, float(np.abs(a.ts).max())),
        ("positions", a.q, b.q, float(np.abs(a.q).max(initial=0.0))),
    )
    for name, x, y, scale in scales:
        count = min(len(x), len(y))
        difference = float(np.abs(x[:count] - y[:count]).max(initial=0.0))
        allowed = 2.0 * (other.relative or UNKNOWN) * scale
        results.append(
            judged(
                quantity=f"other {name} {than}",
                expected=0.0,
                value=difference,
                allowed=allowed,
                **about,
            )
        )
    return results


def _unlike(a: Events, b: Events) -> int:
    """Number of records of the logs that differ in contact, modes, or kind (impact or not)."""

    def records(log: Events):
        columns = (log.contact, log.from_mode, log.to_mode, log.impact)
        return zip(*(np.asarray(x).tolist() for x in columns), strict=True)

    return sum(x != y for x, y in itertools.zip_longest(records(a), records(b)))
