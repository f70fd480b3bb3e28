"""Choice of an orbit that sticking leaves open: the one in the middle of the possible orbits.

A contact that sticks for the whole cycle may stick at any place within an interval, at whose ends
it would slip to one side. A path followed from another place would end at an end of the interval,
though the motion goes on: the interval shrinks to a point only where the contact slips to both
sides. The middle of the interval leads to that point.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jfric.numerics.continuation import delegate, halved
from jfric.periodic.path_kernel import Computation, Kernel, PathPoint, corrected, moved

#: First distance tried, in sizes of the motion, and accuracy of the ends as a part of the interval.
FIRST, PART = 1e-9, 1e-6
#: Length, in sizes of the motion, below which an interval is a point.
POINT = 1e-7
#: Farthest end that is searched for, and most halvings.
FARTHEST, HALVINGS = 10.0, 60
#: Distances beyond a change of events, in sizes of the interval, at which orbits that stick are
#: searched.
BEHIND = (1e-6, 1e-5)
#: Secants to the point where that interval closes, the first step in parts of the distance, and the
#: part of the rest that each next step covers.
SECANTS, TOWARDS, NEARLY = 3, 0.05, 0.95
#: Largest shift of an orbit by Newton's method along the open directions.
SAME = 1e-3


def in_the_middle(kernel: Kernel, point: PathPoint) -> Computation[PathPoint | None]:
    """The orbit in the middle of the open orbits with the events of ``point``, at the same
    parameter, one direction after the other; None if they are only a point."""
    widths, found = yield from _middle(kernel, point)
    return found if max(widths, default=0.0) > POINT else None


def _middle(kernel: Kernel, point: PathPoint) -> Computation[tuple[list[float], PathPoint]]:
    """The middle orbit, and the widths of the open orbits in each direction with two ends."""
    widths, found = [], point
    for direction in point.open:
        low = yield from _end(kernel, found, -direction)
        high = yield from _end(kernel, found, direction)
        if not np.isfinite(high + low):
            continue
        there = yield from _shifted(kernel, found, 0.5 * (high - low) * direction)
        if there is not None:
            widths.append(high + low)
            found = there
    return widths, found


def held_behind(
    kernel: Kernel, point: PathPoint
) -> Computation[tuple[dict[str, Any], PathPoint] | None]:
    """End of slip to both sides beyond ``point``, the last orbit found that slips: parameter and
    state of the orbit at which the interval of possible places of sticking closes, and the middle
    of that interval a little further; None if there is no such interval.

    The last orbit that slips lies within the interval. A straight step ahead from the orbits that
    slip does not: it would lead Newton's method to the edge, where slips too short to be told from
    rounding seem to close. For the same reason the interval gives the best estimate of its end.
    """
    for distance in BEHIND:
        fixed = kernel.axis(point.tangent[-1])
        found = yield from _held(kernel, point, distance * fixed)
        if found is None or found.events == point.events or not len(found.open):
            continue
        widths, held = yield from _middle(kernel, found)
        if widths and max(widths) > POINT:
            return (yield from _closed(kernel, held, min(widths), -distance * fixed)), held
    return None


def _closed(
    kernel: Kernel, held: PathPoint, width: float, step: np.ndarray
) -> Computation[dict[str, Any]]:
    """Parameter and state of the orbit at which the ``width`` around ``held`` becomes zero, within
    a ``step``, by secants, because the width is a smooth function of the parameter."""
    points, widths, part = [held], [width], TOWARDS
    for _ in range(SECANTS):
        found = yield from _held(kernel, points[-1], part * step)
        if found is None or found.events != held.events or not len(found.open):
            break
        open_here, middle = yield from _middle(kernel, found)
        if not open_here:
            break
        points.append(middle)
        widths.append(min(open_here))
        falls = widths[-2] - widths[-1]
        if falls <= 0.0:
            break
        # The next step stops short of the zero, beyond which no contact sticks.
        part *= NEARLY * widths[-1] / falls
    if len(points) < 2 or not widths[-2] > widths[-1]:
        return {"parameter": held.parameter, "state": np.asarray(held.orbit.state)}
    (a, b), (wide, narrow) = points[-2:], widths[-2:]
    beyond = narrow / (wide - narrow)

    def there(x, y):
        return y + beyond * (y - x)

    state = there(np.asarray(a.orbit.state), np.asarray(b.orbit.state))
    return {"parameter": there(a.parameter, b.parameter), "state": state}


def _held(kernel: Kernel, point: PathPoint, step: np.ndarray) -> Computation[PathPoint | None]:
    """The orbit from the same state at another parameter."""
    z, fixed = moved(kernel, point.z, step), kernel.axis(point.tangent[-1])
    return corrected(kernel, z, point.phase, fixed, point.u + step)


def _end(kernel: Kernel, point: PathPoint, direction: np.ndarray) -> Computation[float]:
    """The distance at which the events change, with a relative accuracy of ``PART``."""

    def inside(s: float) -> Computation[bool]:
        return (yield from _shifted(kernel, point, s * direction)) is not None

    low, high = 0.0, FIRST
    while (yield from inside(high)):
        low, high = high, 4.0 * high
        if high > FARTHEST:
            return np.inf
    halving = halved(low, high, PART, PART * FIRST, HALVINGS)
    return (yield from delegate(halving, inside))[0]


def _shifted(kernel: Kernel, point: PathPoint, step: np.ndarray) -> Computation[PathPoint | None]:
    """The orbit a scaled ``step`` away, if one is close to that place and has the same events."""
    z, fixed = moved(kernel, point.z, step), kernel.axis(point.tangent[-1])
    found = yield from corrected(kernel, z, point.phase, fixed, point.u)
    if found is None or found.events != point.events:
        return None
    size = np.linalg.norm(step)
    return found if np.linalg.norm(found.u - point.u - step) <= SAME * size + FIRST else None
