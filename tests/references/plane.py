"""A mass on springs, rubbing on several belts at once, event by event with SciPy: an own solution.

``m q'' = -k q - c q' + F(t) + sum_i lambda_i``, with ``|lambda_i| <= limit_i`` against the sliding
velocity ``gamma_i = q' - b_i`` on the belt ``i``. Sliding is integrated in a time scaled by the
smallest of the sliding speeds, in which a stop is infinitely far and the equations are regular;
sliding out of stick starts with two terms of its series and goes on with an implicit method.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

#: Sliding speed, relative to the largest, below which the rest is a straight line.
STOPPED = 1e-12
#: Length of the series at the start of sliding.
SERIES = 1e-4
#: Time after which sliding that has started is followed in scaled time.
AWAY = 2e-2


@dataclass
class Belts:
    """The system; ``force`` and its derivative in time, limits and velocities of the belts."""

    force: Callable
    force_rate: Callable
    limits: tuple[float, ...]
    belts: np.ndarray
    m: float = 1.0
    k: float = 1.0
    c: float = 0.0
    events: list = field(default_factory=list)

    def driving(self, t, q, v, but=None):
        """All forces but the friction on the belt ``but``."""
        f = self.force(t) - self.k * q - self.c * v
        for i, (limit, belt) in enumerate(zip(self.limits, self.belts, strict=True)):
            if i != but:
                gamma = v - belt
                f = f - limit * gamma / np.hypot(*gamma)
        return f

    def run(self, q, v, ts):
        """States at the times ``ts`` from a sliding start; fills ``events``."""
        t, found, stuck = 0.0, [], None
        times = list(ts)
        q, v = np.array(q, float), np.array(v, float)
        while times:
            phase = self._slide if stuck is None else self._stick
            t, q, v, stuck, seen = phase(t, q, v, times[-1], stuck)
            while times and times[0] <= t:
                found.append(seen(times.pop(0)))
        return np.array(found)

    def _slide(self, t0, q, v, end, _):
        def rate(t, y):
            return np.concatenate([y[2:4], self.driving(t, y[:2], y[2:4]) / self.m])

        pieces, started = [], bool(self.events)
        y = np.concatenate([q, v])
        if started:
            # Out of stick: stiff.
            upto = min(t0 + AWAY, end)
            soft = solve_ivp(
                rate, (t0, upto), y, method="Radau", rtol=1e-12, atol=1e-15, dense_output=True
            )
            pieces.append((upto, soft.sol))
            t0, y = upto, soft.y[:, -1]

        def speeds(y):
            return np.hypot(*(y[None, 2:4] - self.belts).T)

        def scaled(_, z):
            return np.concatenate([rate(z[4], z[:4]), [1.0]]) * speeds(z).min()

        def stops(_, z):
            return speeds(z).min() - STOPPED

        def ends(_, z):
            return z[4] - end

        stops.terminal = ends.terminal = True
        z = np.concatenate([y, [t0]])
        run = solve_ivp(
            scaled,
            (0, 1e6),
            z,
            method="DOP853",
            rtol=1e-12,
            atol=1e-14,
            events=(stops, ends),
            dense_output=True,
        )
        z, t = run.y[:, -1], run.y[4, -1]

        def seen(at):
            for upto, sol in pieces:
                if at <= upto:
                    return sol(at)
            s = (
                brentq(lambda s: run.sol(s)[4] - at, 0.0, run.t[-1], xtol=1e-15)
                if at < t
                else run.t[-1]
            )
            return run.sol(s)[:4]

        if not run.t_events[0].size:
            return t + 1e-12, z[:2], z[2:4], None, seen
        i = int(np.argmin(speeds(z)))
        gamma = z[2:4] - self.belts[i]
        a = self.driving(t, z[:2], z[2:4]) / self.m
        left = -(gamma @ gamma) / (gamma @ a)
        q, v = z[:2] + left * z[2:4], self.belts[i]
        needed = -self.driving(t + left, q, v, but=i)
        assert left >= 0
        assert np.hypot(*needed) < self.limits[i], "slides on"
        self.events.append((t + left, i, "stick", q))
        return t + left, q, v, i, seen

    def _stick(self, t0, q, v, end, i):
        belt = self.belts[i]

        def margin(t):
            f = self.driving(t, q + belt * (t - t0), belt, but=i)
            return self.limits[i] - np.hypot(*f)

        grid = np.arange(t0, end, 1e-3)
        below = next((j for j, t in enumerate(grid) if margin(t) < 0), None)
        if below is None:
            return end, q, v, i, lambda at: np.concatenate([q + belt * (at - t0), belt])
        t = brentq(margin, grid[below - 1], grid[below], xtol=1e-15)
        self.events.append((t, i, "slip", q + belt * (t - t0)))
        there = q + belt * (t - t0)
        f0 = self.driving(t, there, belt, but=i)
        f1 = self.force_rate(t) - self.k * belt
        u = f0 / np.hypot(*f0)
        c = f1 @ u / (2 * self.m)
        turn = (f1 - u * (u @ f1)) / self.limits[i]
        gamma = c * SERIES**2 * (u + SERIES * turn)
        start = t + SERIES

        def seen(at):
            return np.concatenate([q + belt * (at - t0), belt])

        return start, there + belt * SERIES + u * c * SERIES**3 / 3, belt + gamma, None, seen
