"""Of the orbits that sticking leaves open: the one in the middle of what friction allows.

A contact that sticks for the whole cycle may do so at any place within an interval, whose ends are
where it would slip to one side. Followed from the wrong place, a path would end there, though the
motion goes on: the interval shrinks to a point only where the contact slips to both sides. What
leads there is the middle of the interval.
"""

from __future__ import annotations

import numpy as np

from jfric.periodic.path_kernel import Kernel, PathPoint, corrected, moved

#: First distance tried, in sizes of the motion; the ends are found to this part of the interval.
FIRST, PART = 1e-9, 1e-6
#: Intervals shorter than this, in sizes of the motion, are a point.
POINT = 1e-7
#: Farthest end that is looked for, and halvings at most.
FARTHEST, HALVINGS = 10.0, 60
#: How far Newton's method may carry an orbit along what is open.
SAME = 1e-3


def in_the_middle(kernel: Kernel, point: PathPoint) -> PathPoint | None:
    """The orbit in the middle of those with the events of ``point`` that are open, at the same
    parameter, one direction after the other; None where they are no more than a point."""
    width, found = 0.0, point
    for direction in point.open:
        low, high = (_end(kernel, found, sign * direction) for sign in (-1.0, 1.0))
        if not np.isfinite(high + low):
            continue
        there = _shifted(kernel, found, 0.5 * (high - low) * direction)
        if there is not None:
            width, found = max(width, high + low), there
    return found if width > POINT else None


def _end(kernel: Kernel, point: PathPoint, direction: np.ndarray) -> float:
    """The distance at which the events change, found to a part of it."""
    low, high = 0.0, FIRST
    while _shifted(kernel, point, high * direction) is not None:
        low, high = high, 4.0 * high
        if high > FARTHEST:
            return np.inf
    for _ in range(HALVINGS):
        if high - low <= max(PART * high, PART * FIRST):
            break
        middle = 0.5 * (low + high)
        inside = _shifted(kernel, point, middle * direction) is not None
        low, high = (middle, high) if inside else (low, middle)
    return low


def _shifted(kernel: Kernel, point: PathPoint, step: np.ndarray) -> PathPoint | None:
    """The orbit a scaled ``step`` away, if it has the same events and is there."""
    fixed = np.zeros(point.u.shape)
    fixed[-1] = 1.0 if point.tangent[-1] >= 0 else -1.0
    found = corrected(kernel, moved(kernel, point.z, step), point.phase, fixed, point.u, 0.0)
    if found is None or found.events != point.events:
        return None
    size = np.linalg.norm(step)
    return found if np.linalg.norm(found.u - point.u - step) <= SAME * size + FIRST else None
