"""A four-bar linkage by one coordinate, the crank's angle, integrated by SciPy event by event."""

from __future__ import annotations

import numpy as np
from scipy.integrate import DOP853
from scipy.optimize import brentq

#: Lengths of ground, crank, coupler and rocker; masses and moments of inertia of the last three,
#: whose centres are in the middle; weight, and limit of the friction torque on the rocker.
GROUND, CRANK, COUPLER, ROCKER = 1.0, 0.3, 0.9, 0.7
MASSES, INERTIAS, G, LIMIT = (1.0, 2.0, 1.5), (0.01, 0.14, 0.06), 9.81, 0.8
WEIGHTS = np.concatenate([(m, m, J) for m, J in zip(MASSES, INERTIAS, strict=True)])


def angles(a):
    """Angles of coupler and rocker."""
    x, y = CRANK * np.cos(a) - GROUND, CRANK * np.sin(a)
    far = np.sqrt(x**2 + y**2)
    # Between the lines from the rocker's pin to the crank's tip and along the rocker.
    at = np.arccos((ROCKER**2 + far**2 - COUPLER**2) / (2 * ROCKER * far))
    rocker = np.arctan(y / x) + np.pi - at
    return np.arctan((ROCKER * np.sin(rocker) - y) / (ROCKER * np.cos(rocker) - x)), rocker


def places(a):
    """Centres and angles of the three bodies (9,)."""
    b, c = angles(a)
    x, y = CRANK * np.cos(a), CRANK * np.sin(a)
    coupler = x + COUPLER / 2 * np.cos(b), y + COUPLER / 2 * np.sin(b), b
    rocker = GROUND + ROCKER / 2 * np.cos(c), ROCKER / 2 * np.sin(c), c
    return np.array([x / 2, y / 2, a, *coupler, *rocker])


def rates(a):
    """Their derivatives by the crank's angle: ``a`` may be complex."""
    b, c = angles(a)
    turn = -CRANK * np.sin(a - c) / (COUPLER * np.sin(b - c))
    swing = CRANK * np.sin(a - b) / (ROCKER * np.sin(c - b))
    x, y = -CRANK * np.sin(a), CRANK * np.cos(a)
    coupler = x - COUPLER / 2 * np.sin(b) * turn, y + COUPLER / 2 * np.cos(b) * turn, turn
    rocker = -ROCKER / 2 * np.sin(c) * swing, ROCKER / 2 * np.cos(c) * swing, swing
    return np.array([x / 2, y / 2, np.ones_like(a), *coupler, *rocker])


def acceleration(a, w, side=0.0):
    """d'Alembert's principle with friction on the rocker against the direction ``side``."""
    way, bend = rates(a), np.imag(rates(a + 1e-30j)) / 1e-30
    weight = -G * np.dot(np.repeat(MASSES, 3) * np.tile([0, 1, 0], 3), way)
    force = weight - LIMIT * side * way[8] - np.dot(WEIGHTS * way, bend) * w**2
    return force / np.dot(WEIGHTS * way, way)


def motion(a, w, end, step=0.005):
    """Dense pieces ``(until, solution)`` and events ``(time, what)``: the crank turns back
    ("turns"), stops for good ("rests"), or the rocker turns back while the crank goes on."""
    t, way, pieces, events = 0.0, np.sign(w), [], []
    while t < end:
        side = way * np.sign(rates(a + 1e-7 * way)[8])
        solver = DOP853(
            lambda t, x, side=side: [x[1], acceleration(x[0], x[1], side)],
            t, [a, w], end, rtol=1e-13, atol=1e-14, max_step=step,
        )  # fmt: skip
        what = ""
        while solver.status == "running" and not what:
            solver.step()
            dense, late = solver.dense_output(), solver.t
            guards = {
                "turns": lambda s, x=dense, way=way: way * x(s)[1],
                "rocker": lambda s, x=dense, way=way * side: way * rates(x(s)[0])[8],
            }
            for name, guard in guards.items():
                early = max(dense.t_min, t + 1e-6)
                if late > early and guard(late) < 0.0 < guard(early):
                    what, late = name, brentq(guard, early, late, xtol=1e-15, rtol=1e-15)
            pieces.append((late, dense))
        t, (a, w) = late, dense(late)
        if what == "turns":
            w, pushes = 0.0, [s for s in (1.0, -1.0) if s * acceleration(a, 0.0, s * _side(a)) > 0]
            if not pushes:
                return pieces, [*events, (t, "rests")]
            way = pushes[0]
        if what:
            events.append((t, what))
    return pieces, events


def _side(a):
    """Direction of the rocker when the crank turns forward."""
    return np.sign(rates(a)[8])
