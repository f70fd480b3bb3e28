"""Steady motion of an oscillator with Coulomb friction that never sticks, in closed form.

``m x'' + c x' + k x + R sgn x' = P sin(w t)``. From its largest position ``X`` the mass goes to
``-X`` in half a period under a friction force of one sign: that is a linear motion, whose ends are
each other's opposites (J. P. Den Hartog, Trans. ASME 53 (1931), here with viscous damping).
"""

from __future__ import annotations

import numpy as np


def steady(m, c, k, R, P, w):
    """Amplitude, time of the largest position, and the acceleration just after and before it; NaN
    where there is no such motion. Arrays of one shape."""
    X, at, after, before, _ = _solved(m, c, k, R, P, w)
    return X, at, after, before


def state_at(m, c, k, R, P, w, t):
    """Position and velocity at the time ``t``, of numbers."""
    _, at, _, _, (a, b, C, S) = _solved(m, c, k, R, P, w)
    half, decay = np.pi / w, 0.5 * c / m
    natural = np.sqrt(k / m - decay**2)
    since = np.mod(t - at, 2.0 * half)
    # The way up is that down, turned round.
    side, s = (1.0, since) if since < half else (-1.0, since - half)
    co, si = np.cos(natural * s), np.sin(natural * s)
    x = R / k + np.exp(-decay * s) * (a * co + b * si) + C * np.cos(w * s) - S * np.sin(w * s)
    free = natural * (b * co - a * si) - decay * (a * co + b * si)
    v = np.exp(-decay * s) * free - w * (C * np.sin(w * s) + S * np.cos(w * s))
    return side * x, side * v


def _solved(m, c, k, R, P, w):
    decay, half = 0.5 * c / m, np.pi / w
    natural = np.sqrt(k / m - decay**2)
    e, co, si = np.exp(-decay * half), np.cos(natural * half), np.sin(natural * half)
    # Free part exp(-decay s) (a cos + b sin), with s from the largest position on.
    rows = np.array(
        [
            [1.0 + e * co, e * si],
            [-decay - e * (decay * co + natural * si), natural + e * (natural * co - decay * si)],
        ]
    )
    det = rows[0, 0] * rows[1, 1] - rows[0, 1] * rows[1, 0]
    offset = R / k
    a = -2.0 * offset * rows[1, 1] / det
    b = 2.0 * offset * rows[1, 0] / det
    # Forced part C cos(w s) - S sin(w s), of the amplitude that it has without friction.
    size = P / np.hypot(k - m * w**2, c * w)
    S = (-decay * a + natural * b) / w
    with np.errstate(invalid="ignore"):
        C = np.sqrt(size**2 - S**2)
    X = C + offset + a
    # The forced part lags the load by atan2(c w, k - m w^2): P sin(w t) = P cos(w t - pi / 2).
    angle = np.arctan2(S, C) + np.arctan2(c * w, k - m * w**2)
    at = np.mod(0.5 * np.pi + angle, 2.0 * np.pi) / w
    load = P * np.cos(angle)
    after = (load - k * X + R) / m
    before = (load - k * X - R) / m
    return X, at, after, before, (a, b, C, S)


def monodromy(m, c, k, after, before, w):
    """Derivative of the state after half a period, twice: the linear motion, then the jump of the
    acceleration where the velocity is zero."""
    from scipy.linalg import expm

    A = np.array([[0.0, 1.0], [-k / m, -c / m]])
    jump = np.diag([1.0, after / before])
    half = jump @ expm(A * np.pi / w)
    return half @ half
