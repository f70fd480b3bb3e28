"""Inertias of 1 in a row with clutches between them, in closed form from event to event."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.optimize import brentq

SLIDING, STATIC = 0.5, 0.55
#: Times at which normal forces jump, or have a corner, and the end.
BREAKS = (0.4, 0.9, 1.25, 1.5)
#: Distance from a break at which a normal force is taken, on either side.
BESIDE = 1e-12


def normal_force(clutch: int, t: float) -> float:
    if clutch == 0:
        return 20.0 * np.cos(0.4 * np.pi * t) if t < 1.25 else 0.0
    return 20.0 * (t >= BREAKS[clutch - 1])


def _impulse(clutch: int, a: float, b: float) -> float:
    """Integral of the normal force; no break lies between ``a`` and ``b``."""
    if clutch or a + b > 2.5:
        return normal_force(clutch, 0.5 * (a + b)) * (b - a)
    return 50.0 / np.pi * (np.sin(0.4 * np.pi * b) - np.sin(0.4 * np.pi * a))


def _shared(on_each: np.ndarray, mode: Sequence[int]) -> np.ndarray:
    """Means over inertias that stick together."""
    cuts = [i + 1 for i, m in enumerate(mode) if m]
    return np.concatenate([np.full(len(g), g.mean()) for g in np.split(on_each, cuts)])


def _speeds(w, mode, begin, t):
    on_each = np.array(
        [(np.cos(10 * np.pi * begin) - np.cos(10 * np.pi * t)) / np.pi, 0.0, 0.0, 0.0]
    )
    for i, m in enumerate(mode):
        on_each[i : i + 2] += SLIDING * m * _impulse(i, begin, t) * np.array([-1.0, 1.0])
    return w + _shared(on_each, mode)


def _torques(mode, t, side):
    """Torques of the clutches, those that stick as well."""
    on_each = np.array([10.0 * np.sin(10.0 * np.pi * t), 0.0, 0.0, 0.0])
    sliding = [SLIDING * m * normal_force(i, t + side) for i, m in enumerate(mode)]
    for i, torque in enumerate(sliding):
        on_each[i : i + 2] += np.array([-torque, torque])
    carried = np.cumsum(on_each - _shared(on_each, mode))[:3]
    return np.where(np.array(mode) == 0, carried, sliding)


def _excess(clutch, mode, t, side):
    return abs(_torques(mode, t, side)[clutch]) - STATIC * normal_force(clutch, t + side)


def _released(mode, t, events):
    """Modes after clutches that cannot hold have let go."""
    mode = list(mode)
    while over := [i for i in range(3) if not mode[i] and _excess(i, mode, t, BESIDE) > 1e-12]:
        mode[over[0]] = int(np.sign(_torques(mode, t, BESIDE)[over[0]]))
        events.append((t, over[0], mode[over[0]]))
    return mode


def _first(w, mode, begin, end):
    """The first event before ``end``: its time, the clutch and its mode (None without one)."""
    found = []
    for i, m in enumerate(mode):

        def guard(t, i=i, m=m):
            if not m:
                return _excess(i, mode, t, -BESIDE)
            w_now = _speeds(w, mode, begin, t)
            return -m * (w_now[i] - w_now[i + 1])

        ts = np.linspace(begin, end, 2001)[1:]
        values = np.array([guard(t) for t in ts])
        at = np.flatnonzero((values[:-1] < 0.0) & (values[1:] >= 0.0))
        if at.size:
            t = brentq(guard, ts[at[0]], ts[at[0] + 1], xtol=1e-16, rtol=1e-15)
            after = 0 if m else int(np.sign(_torques(mode, t, -BESIDE)[i]))
            found.append((t, i, after))
    return min(found, default=None)


def run():
    """Events (time, clutch, mode) from the first break on, and the speeds at the end."""
    w, t, events = np.array([10.0, 0.0, 0.0, 0.0]), 0.0, []
    mode = _released([1, 0, 0], t, events)
    for end in BREAKS:
        while event := _first(w, mode, t, end):
            w, t = _speeds(w, mode, t, event[0]), event[0]
            mode[event[1]] = event[2]
            events.append(event)
            mode = _released(mode, t, events)
        w, t = _speeds(w, mode, t, end), end
        mode = _released(mode, t, events)
    return [e for e in events if e[0] >= BREAKS[0]], w
