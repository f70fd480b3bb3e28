"""LuGre's friction on a mass that a spring draws, by SciPy's Radau method, sign by sign."""

from __future__ import annotations

import numpy as np
from scipy.integrate import solve_ivp

#: Parameters of Canudas de Wit and others (1995).
S0, S1, S2, F_C, F_S, V_S = 1e5, 1e5**0.5, 0.4, 1.0, 1.5, 1e-3


def drawn(end, *, k=2.0, speed=0.1, rtol=1e-10):
    """1 kg from rest: state (x, v, z) at ``end`` and times at which ``v`` changes its sign."""

    def rate(t, y, side):
        x, v, z = y
        bend = v - side * S0 * v * z / (F_C + (F_S - F_C) * np.exp(-((v / V_S) ** 2)))
        return [v, k * (speed * t - x) - S0 * z - S1 * bend - S2 * v, bend]

    t, y, side, times = 0.0, np.zeros(3), 1.0, []
    options = {"method": "Radau", "rtol": rtol, "atol": rtol * 1e-4}
    while t < end:
        # Away from the zero that it begins with.
        first = solve_ivp(rate, (t, min(t + 1e-5, end)), y, args=(side,), **options)
        t, y = first.t[-1], first.y[:, -1]

        def turns(t, y, side):
            return side * y[1]

        turns.terminal, turns.direction = True, -1
        found = solve_ivp(rate, (t, end), y, args=(side,), events=turns, **options)
        t, y = found.t[-1], found.y[:, -1]
        if found.status == 0:
            break
        times.append(t)
        side = -side
    return y, times
