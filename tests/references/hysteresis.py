"""Springs in series with sliders, written anew in NumPy and SciPy: driven, and on a mass."""

from __future__ import annotations

import numpy as np
from scipy.integrate import solve_ivp


def driven(k, R, path):
    """Force at the end of each straight piece of a ``path`` of elongations that begins at zero."""
    z, forces = np.zeros(len(k)), []
    slip = np.asarray(R) / np.asarray(k)
    for step in np.diff(path, prepend=0.0):
        z = np.clip(z + step, -slip, slip)
        forces.append(float(np.dot(k, z)))
    return np.asarray(forces)


def loss(k, R, amplitude):
    """Energy lost in a cycle between ``-amplitude`` and ``amplitude``."""
    slip = np.asarray(R) / np.asarray(k)
    return float(np.sum(4.0 * np.asarray(R) * np.maximum(amplitude - slip, 0.0)))


def oscillator(m, stiffness, k, R, load, q0, v0, end):
    """Mass on a spring with sliders under ``load(t)``: the state at the end and the events
    (time, slider or -1 for a reversal), event by event."""
    k, R = np.asarray(k), np.asarray(R)
    slip, anchor, way = R / k, np.full(len(k), q0), np.zeros(len(k), int)
    t, y, log = 0.0, np.array([q0, v0]), []
    while True:
        stuck = way == 0
        slope = stiffness + np.where(stuck, k, 0.0).sum()
        pull = np.where(stuck, -k * anchor, way * R).sum()

        def rate(t, y, slope=slope, pull=pull):
            return [y[1], (load(t) - slope * y[0] - pull) / m]

        guards, kinds = [], []
        for i in np.flatnonzero(stuck):
            for side in (1, -1):
                at = anchor[i] + side * slip[i]
                guards.append(lambda t, y, at=at, side=side: side * (at - y[0]))
                kinds.append((i, side))
        if not stuck.all():
            moving = way[~stuck][0]
            guards.append(lambda t, y, moving=moving: moving * y[1])
            kinds.append((-1, 0))
        for guard in guards:
            guard.terminal, guard.direction = True, -1
        found = solve_ivp(rate, (t, end), y, method="DOP853", rtol=1e-13, atol=1e-15, events=guards)
        t, y = found.t[-1], found.y[:, -1]
        if found.status == 0:
            return y, log
        which, side = next(x for x, e in zip(kinds, found.t_events, strict=True) if len(e))
        log.append((t, which))
        if which < 0:
            anchor = np.where(way != 0, y[0] - way * slip, anchor)
            way = np.zeros_like(way)
        else:
            way[which] = side
