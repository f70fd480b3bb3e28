"""A relief valve by SciPy: each flight integrated to its impact on the seat, closed phases exactly.

G. Licsko, A. Champneys, C. Hos, Nonlinear analysis of a single stage pressure relief valve, IAENG
International Journal of Applied Mathematics 39 (2009)::

    y'' + kappa y' + y + delta = p,    p' = beta (q - y sqrt(p)),    y >= 0,    y' -> -r y' at y = 0
"""

from __future__ import annotations

import numpy as np
from scipy.integrate import solve_ivp

R, KAPPA, DELTA, BETA = 0.8, 1.25, 10.0, 20.0
OPTIONS = {"method": "DOP853", "rtol": 1e-13, "atol": 1e-13}
#: What is left of a sequence of impacts that counts as none [s].
CLOSED = 1e-9


def flight(q, v, p, end):
    """From the seat with the speed ``v`` to the next impact, or for the time ``end``."""

    def rate(t, s):
        return [
            s[1],
            s[2] - DELTA - s[0] - KAPPA * s[1],
            BETA * (q - s[0] * np.sqrt(max(s[2], 0.0))),
        ]

    def hits(t, s):
        # The zero at the start divided out.
        return s[0] / t if t > 0 else max(v, 1e-300)

    def turns(t, s):
        return s[1]

    hits.terminal = True
    return solve_ivp(rate, (0.0, end), [0.0, v, p], events=[hits, turns], **OPTIONS)


def motion(q, v, p, end):
    """Lift, its rate and the pressure at ``end``, and the times of all impacts.

    ``v`` and ``p`` are those of the start, on the seat.
    """
    t, y, impacts = 0.0, 0.0, []
    while t < end:
        if v == 0.0 and p < DELTA:
            wait = (DELTA - p) / (BETA * q)
            p = min(DELTA, p + BETA * q * (end - t))
            t += wait
            continue
        found = flight(q, v, p, end - t)
        t += found.t[-1]
        y, v, p = found.y[:, -1]
        if found.status == 1:
            impacts.append(t)
            y, v = 0.0, -R * v
            pull = DELTA + KAPPA * v - p
            if pull > 0 and 2 * v / pull / (1 - R) < CLOSED:
                v = 0.0
    return np.array([y, v, p]), np.array(impacts)


def orbit(q, v=-3.0, p=8.0, rounds=60):
    """The motion with one impact in a period: its period, the largest lift, and the multipliers of
    the map from impact to impact, from speed and pressure right before them."""

    def after(x):
        found = flight(q, -R * x[0], x[1], 50.0)
        return found.y[1:, -1], found

    x = np.array([v, p])
    for _ in range(rounds):
        x = after(x)[0]
    h, unit = 1e-3, np.eye(2)

    def jacobian(x):
        def along(d):
            return after(x + d)[0] - after(x - d)[0]

        return np.stack([(8 * along(h * d) - along(2 * h * d)) / (12 * h) for d in unit], axis=1)

    for _ in range(3):
        x = x - np.linalg.solve(jacobian(x) - unit, after(x)[0] - x)
    found = after(x)[1]
    return found.t[-1], found.y_events[1][:, 0].max(), np.linalg.eigvals(jacobian(x))
