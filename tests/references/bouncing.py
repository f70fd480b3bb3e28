"""Motion of a body that bounces on a floor, by SciPy between the impacts."""

from __future__ import annotations

import numpy as np
from scipy.integrate import solve_ivp


def bounced(rate, start, end, *, e):
    """``start`` moved by ``rate(t, y)`` to ``end``: the position first, its velocity second, which
    the floor at 0 turns round."""

    def touches(t, y):
        return y[0]

    touches.terminal, touches.direction = True, -1
    t, y = 0.0, np.asarray(start, float)
    while t < end:
        found = solve_ivp(
            rate, (t, end), y, events=touches, method="DOP853", rtol=1e-11, atol=1e-13,
            max_step=2e-3,
        )  # fmt: skip
        t, y = found.t[-1], found.y[:, -1]
        if found.status == 1:
            y[1] *= -e
    return y
