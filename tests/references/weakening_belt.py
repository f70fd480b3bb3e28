"""Stick-slip of a mass on a belt whose friction falls with the velocity, by Taylor series.

``x'' + x = 1 / (1 + 3 (v - x'))`` while the mass slips back relative to the belt, which begins at
``x = 1``, ``x' = v`` and ends where ``x' = v`` again: mass, stiffness and the limit of friction are
one. R. I. Leine, D. H. van Campen, A. de Kraker, L. van den Steen, Stick-slip vibrations induced by
alternate friction models, Nonlinear Dynamics 16 (1998).
Extended precision where the machine has it.
"""

from __future__ import annotations

import numpy as np

ORDER, STEP = 30, "0.03125"
REAL = np.longdouble


def cycle(v):
    """Period, time of slipping, and the largest and the smallest position."""
    v, h = REAL(repr(float(v))), REAL(STEP)
    x, rate, t, extremes = REAL(1), v, REAL(0), []
    while True:
        X, V = _coefficients(v, x, rate)
        # The velocity begins and ends at that of the belt; it is zero at the extremes.
        turn = _zero(V, h)
        if turn is not None:
            extremes.append(_at(X, turn))
        V[0] -= v
        end = _zero(V, h) if t > 0 else None
        if end is not None:
            slip = t + end
            return slip + (1 - _at(X, end)) / v, slip, max(extremes), min(extremes)
        x, rate, t = _at(X, h), v + _at(V, h), t + h


def _coefficients(v, x, rate):
    X, V, W, U = (np.zeros(ORDER + 2, REAL) for _ in range(4))
    X[0], V[0] = x, rate
    for n in range(ORDER + 1):
        W[n] = 1 + 3 * (v - rate) if n == 0 else -3 * V[n]
        U[n] = 1 / W[0] if n == 0 else -(W[1 : n + 1] @ U[n - 1 :: -1][:n]) / W[0]
        X[n + 1] = V[n] / (n + 1)
        V[n + 1] = (U[n] - X[n]) / (n + 1)
    return X, V


def _at(coefficients, s):
    return coefficients @ s ** np.arange(len(coefficients))


def _zero(coefficients, h):
    """Where a series changes its sign within a step, by Newton's method."""
    if _at(coefficients, REAL(0)) * _at(coefficients, h) >= 0:
        return None
    slopes = coefficients[1:] * np.arange(1, len(coefficients))
    s = h / 2
    for _ in range(30):
        s = s - _at(coefficients, s) / _at(slopes, s)
    return s
