"""Periodic motion of a forced Duffing oscillator by Taylor series, in extended precision.

``x'' + c x' + k x + k3 x**3 = F sin(w t)``. The coefficients of a step follow from each other,
those of the derivatives by the start likewise; with 30 of them and 64 steps of a period what is
left out is below rounding. Newton's method on the map over a period has the exact derivative.
"""

from __future__ import annotations

import numpy as np

ORDER, STEPS = 30, 64
#: Extended where the machine has it.
REAL = np.longdouble
PI = REAL("3.14159265358979323846264338327950288")


def orbit(c, k, k3, F, w, guess):
    """State (x, v) at ``t = 0`` of the periodic motion near ``guess``, and the derivative (2, 2) of
    the state after a period."""
    c, k, k3, F, w = (REAL(repr(float(number))) for number in (c, k, k3, F, w))
    z = np.array(guess, REAL)
    for _ in range(12):
        end, gain = _period(c, k, k3, F, w, z)
        off = end - z
        a = gain - np.eye(2, dtype=REAL)
        det = a[0, 0] * a[1, 1] - a[0, 1] * a[1, 0]
        step = np.array([a[1, 1] * off[0] - a[0, 1] * off[1], a[0, 0] * off[1] - a[1, 0] * off[0]])
        z = z - step / det
    return z, _period(c, k, k3, F, w, z)[1]


def multipliers(gain):
    """Eigenvalues of a derivative (2, 2) with real ones, the larger first."""
    half = (gain[0, 0] + gain[1, 1]) / 2
    det = gain[0, 0] * gain[1, 1] - gain[0, 1] * gain[1, 0]
    root = np.sqrt(half * half - det)
    return half + root, half - root


def _period(c, k, k3, F, w, z):
    h = 2 * PI / w / STEPS
    # Rows: the motion, and its derivatives by position and velocity at the start.
    x = np.array([z[0], REAL(1), REAL(0)])
    v = np.array([z[1], REAL(0), REAL(1)])
    for i in range(STEPS):
        x, v = _step(c, k, k3, F, w, i * h, h, x, v)
    return np.array([x[0], v[0]]), np.array([x[1:], v[1:]])


def _step(c, k, k3, F, w, t, h, x, v):
    X, V = np.zeros((ORDER + 2, 3), REAL), np.zeros((ORDER + 2, 3), REAL)
    square = np.zeros(ORDER + 1, REAL)
    X[0], V[0] = x, v
    load = F
    for n in range(ORDER + 1):
        square[n] = X[: n + 1, 0] @ X[n::-1, 0]
        cube = np.array([square[: n + 1] @ X[n::-1, 0], *(3 * (square[: n + 1] @ X[n::-1, 1:]))])
        force = -c * V[n] - k * X[n] - k3 * cube
        # The n-th derivative of sin(w t), over n!.
        force[0] += load * np.sin(w * t + n * PI / 2)
        load = load * w / (n + 1)
        X[n + 1] = V[n] / (n + 1)
        V[n + 1] = force / (n + 1)
    powers = h ** np.arange(ORDER + 2)
    return powers @ X, powers @ V
