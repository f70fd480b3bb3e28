"""A disc that slips along a line and spins, under an even pressure: an own solution with SciPy.

With ``s = R w`` and ``e = v/s`` friction is ``mu N f(e)``, its torque ``mu N R m(e)``. A slide is
followed in a time scaled by ``s``, in which its stop is infinitely far and the equations are
regular; sliding out of rest starts with the first terms of its series.
"""

from dataclasses import dataclass

import numpy as np
from scipy.integrate import solve_ivp
from scipy.optimize import brentq
from scipy.special import ellipe, ellipk, ellipkm1

#: Length of the series at the start of sliding [s], and the logarithm of ``s`` that is a stop.
SERIES, STOPPED = 1e-5, -32.0


def shares(e: float) -> tuple[float, float]:
    """``f`` and ``m`` for ``e > 0``, as Farkas and others print them."""
    if e == 1.0:
        return 8.0 / (3.0 * np.pi), 8.0 / (9.0 * np.pi)
    if e < 1.0:
        K, E = ellipkm1((1.0 - e) * (1.0 + e)), ellipe(e * e)
        force = ((e * e + 1.0) * E + (e * e - 1.0) * K) / e
        torque = (4.0 - 2.0 * e * e) * E + (e * e - 1.0) * K
    else:
        K, E = ellipk(1.0 / (e * e)), ellipe(1.0 / (e * e))
        force = (e * e + 1.0) * E - (e * e - 1.0) * K
        torque = (4.0 - 2.0 * e * e) * e * E + (e * e - 1.0) * (2.0 * e * e - 3.0) / e * K
    return 4.0 / (3.0 * np.pi) * force, 4.0 / (9.0 * np.pi) * torque


@dataclass
class Disc:
    """Mass, moment of inertia, radius, and the limit of the force where all slips."""

    m: float
    J: float
    R: float
    limit: float

    def in_proportion(self) -> float:
        """``e`` with which slip and spin end together."""
        bend = self.J / (self.m * self.R**2)

        def turns(e):
            force, torque = shares(e)
            return bend * force - e * torque

        return brentq(turns, 0.1, 0.95, xtol=1e-15, rtol=1e-14)

    def rates(self, e: float, force: float = 0.0, torque: float = 0.0) -> tuple[float, float]:
        """Accelerations of ``v`` and ``s`` under a force and a torque."""
        f, m = shares(e)
        slip = (force - self.limit * f) / self.m
        return slip, self.R * (torque - self.limit * self.R * m) / self.J

    def stop(self, v: float, s: float) -> np.ndarray:
        """Duration, way and angle of a free slide to its end."""

        def rate(_, y):
            e, s = y[0], np.exp(y[1])
            slip, spin = self.rates(e)
            return [slip - e * spin, spin, s, e * s * s, s * s / self.R]

        def slow(_, y):
            return y[1] - STOPPED

        slow.terminal = True
        start = [v / s, np.log(s), 0.0, 0.0, 0.0]
        how = {"method": "DOP853", "rtol": 1e-13, "atol": 1e-15, "events": slow}
        return solve_ivp(rate, (0.0, 1e4), start, **how).y[2:, -1]

    def broken_loose(self, e: float, rate: tuple[float, float], push: tuple[float, float], end):
        """Way, angle, ``v`` and ``s`` a time ``end`` after the limit is reached where its normal is
        ``e``: ``push`` are force and torque there, ``rate`` theirs in time."""
        step = 1e-6
        bends = (np.array(shares(e + step)) - np.array(shares(e - step))) / (2.0 * step)
        f, m = bends * self.limit * np.array([1.0, self.R])
        turn = rate[0] / self.m - e * self.R * rate[1] / self.J
        turn = turn / (f / self.m - e * self.R * m / self.J)
        grows = self.R * (rate[1] - m * turn) / self.J
        t, ratio = SERIES, e + turn * SERIES
        s = 0.5 * grows * t * t

        def along(t, y):
            slip, spin = self.rates(y[2] / y[3], push[0] + rate[0] * t, push[1] + rate[1] * t)
            return [y[2], y[3] / self.R, slip, spin]

        start = [ratio * s * t / 3.0, s * t / 3.0 / self.R, ratio * s, s]
        how = {"method": "Radau", "rtol": 1e-12, "atol": 1e-20}
        return solve_ivp(along, (t, end), start, **how).y[:, -1]
