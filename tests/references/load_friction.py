"""One degree of freedom with friction that grows with a load, by SciPy and root finding.

``m q'' = f(t, q, v) + lambda`` with ``lambda`` in ``[-mu_s+ G, mu_s- G]`` at rest and
``-s mu(|v|) G`` in sliding, ``G = c + kappa |L(t, q, v)|``. Each piece has a constant direction of
sliding and sign of the load.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

TIGHT = {"method": "DOP853", "rtol": 1e-12, "atol": 1e-13, "dense_output": True}


@dataclass(frozen=True)
class System:
    """Mass, all other forces, load, and the coefficients of sliding by direction."""

    m: float
    force: Callable[[float, float, float], float]
    load: Callable[[float, float, float], float]
    c: float
    kappa: float
    static: tuple[float, float]
    kinetic: Callable[[float, int], float]

    def limit(self, t, q, v) -> float:
        return self.c + self.kappa * abs(self.load(t, q, v))


def simulate(x: System, q: float, v: float, end: float, first: float = 1e-3):
    """Final position and velocity, and times of stops, reversals and break-aways."""
    t, times = 0.0, []
    while t < end:
        s = int(np.sign(v))
        if s == 0:
            push, limit = x.force(t, q, 0.0), x.limit(t, q, 0.0)
            s = 1 if push > x.static[0] * limit else -1 if push < -x.static[1] * limit else 0
        if s == 0:
            t = _stays(x, t, q, end, first)
            if t < end:
                times.append(t)
                # Where motion begins the push may vanish.
                push = x.force(t + first, q, 0.0)
                t, q, v, stopped = _slides(x, t, q, 0.0, int(np.sign(push)), end)
        else:
            t, q, v, stopped = _slides(x, t, q, v, s, end)
            if stopped:
                times.append(t)
    return q, v, times


def _stays(x: System, t, q, end, step) -> float:
    def margin(t):
        push, limit = x.force(t, q, 0.0), x.limit(t, q, 0.0)
        return min(x.static[0] * limit - push, x.static[1] * limit + push)

    grid = np.append(np.arange(t + step, end, step), end)
    before = t
    for now in grid:
        if margin(now) < 0.0:
            return brentq(margin, before, now, xtol=1e-15) if margin(before) > 0.0 else before
        before = now
    return end


def _slides(x: System, t, q, v, s, end):
    """Until it stops; restarts at each zero of the load, so that no piece has a kink inside."""
    while t < end:
        sign = np.sign(x.load(t + 1e-9, q, v)) or 1.0

        def field(t, y, sign=sign):
            grown = x.c + x.kappa * sign * x.load(t, *y)
            return [y[1], (x.force(t, *y) - s * x.kinetic(s * y[1], s) * grown) / x.m]

        def stop(t, y, begin=t):
            return s * y[1] if t > begin + 1e-9 else 1.0

        def kink(t, y, sign=sign, begin=t):
            return sign * x.load(t, *y) if t > begin + 1e-9 else 1.0

        stop.terminal = kink.terminal = True
        stop.direction = kink.direction = -1
        found = solve_ivp(
            field, (t, end), [q, v], events=[stop, kink], first_step=1e-4, max_step=0.02, **TIGHT
        )
        t, (q, v) = found.t[-1], found.y[:, -1]
        if found.t_events[0].size:
            return t, q, 0.0, True
    return t, q, v, False
