"""Nodes without mass between springs and friction, under inputs increment by increment.

The state ``y`` minimises ``y^T K y/2 - f^T y + sum_j R_j |y_j - y_old_j|``: what friction costs is
linear in the way of an increment, so that the increment is exact where no node turns round within.
"""

import numpy as np


def follow(K, R, forces, y):
    """Positions (m, p) of the nodes under ``forces`` (m, p), from ``y`` on."""
    found = []
    for f in forces:
        y = _increment(K, R, f, y)
        found.append(y)
    return np.array(found)


def _increment(K, R, f, old, rounds=2000):
    y = old.copy()
    for _ in range(rounds):
        before = y.copy()
        for j in range(y.size):
            pull = f[j] - K[j] @ y + K[j, j] * (y[j] - old[j])
            y[j] = old[j] + np.sign(pull) * max(abs(pull) - R[j], 0.0) / K[j, j]
        if np.max(np.abs(y - before)) < 1e-16:
            break
    return y
