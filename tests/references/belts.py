"""One body with several frictions, each on a belt of its own: small steps, exact in each of them.

A step from ``v`` to ``v+`` with limits ``c_i`` and belt velocities ``b_i`` minimises the convex
function ``m (v+ - v - h F)^2 / 2 + h sum_i c_i |v+ - b_i|``. Its minimum is at a belt velocity, or
between two of them. Independent of jfric.
"""

from __future__ import annotations

import numpy as np


def simulate(limits, belts, push, q0: float, v0: float, end: float, outputs: int, h: float = 1e-4):
    """Positions of a unit mass; ``belts``: (amplitude, omega, phase, mean) each."""
    limits, belts = np.asarray(limits, float), np.asarray(belts, float)
    every = round(end / h / (outputs - 1))
    q, v, result = q0, v0, [q0]
    for k in range(every * (outputs - 1)):
        t = (k + 0.5) * h
        b = belts[:, 0] * np.sin(belts[:, 1] * (t + 0.5 * h) + belts[:, 2]) + belts[:, 3]
        order = np.argsort(b)
        b, c = b[order], limits[order]
        free = v + h * push[0] * np.sin(push[1] * t + push[2])
        # Velocities if the body is slower than none, one, two, ... of the belts.
        slower = np.concatenate([[0.0], np.cumsum(c)])
        between = free + h * (slower[-1] - 2.0 * slower)
        low = np.concatenate([[-np.inf], b])
        high = np.concatenate([b, [np.inf]])
        inside = np.flatnonzero((between > low) & (between < high))
        if inside.size:
            new = between[inside[0]]
        else:
            # At the belt where the force that is needed changes sign.
            new = b[np.flatnonzero((between[:-1] >= b) & (between[1:] <= b))[0]]
        q, v = q + 0.5 * h * (v + new), new
        if (k + 1) % every == 0:
            result.append(q)
    return np.array(result)
