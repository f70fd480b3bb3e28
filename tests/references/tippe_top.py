"""A top of two spheres on a floor, while the first one touches it: an own solution with SciPy.

Newton's and Euler's equations of an axisymmetric body about its centre of mass, along fixed axes;
the height follows from the contact, whose normal force is one linear equation. Friction is that of
a disc under an even pressure: in closed form (:func:`references.disc.shares`) where it spins more
than half as fast as it slips, and by sums over the disc, whose integrand is smooth, elsewhere.
"""

from dataclasses import dataclass

import numpy as np
from scipy.integrate import solve_ivp

from references.disc import shares

_R, _W = np.polynomial.legendre.leggauss(24)
_R, _W = 0.5 * (_R + 1.0), _W * 0.5 * (_R + 1.0) / 64.0
_ANGLE = np.arange(64) * (2.0 * np.pi / 64.0)
_X, _Y = _R[:, None] * np.cos(_ANGLE), _R[:, None] * np.sin(_ANGLE)


def ratios(v: float, s: float) -> tuple[float, float]:
    """Force and torque over ``R`` of a disc, over ``mu N``, at slip ``v >= 0`` and rim speed."""
    if v < 2.0 * abs(s):
        force, torque = shares(v / abs(s))
        return force, torque * np.sign(s)
    along, across = v - s * _Y, s * _X
    speed = np.hypot(along, across)
    return np.sum(_W[:, None] * along / speed), np.sum(
        _W[:, None] * (_X * across - _Y * along) / speed
    )


@dataclass
class TippeTop:
    """A top: mass, both moments of inertia; the centre of its sphere on the axis and its radius;
    those of its stem; the coefficient and the radius of the contact."""

    m: float = 6e-3
    I1: float = 8e-7
    I3: float = 7e-7
    a: float = 3e-3
    r: float = 1.5e-2
    a_stem: float = 1.6e-2
    r_stem: float = 5e-3
    mu: float = 0.3
    radius: float = 5e-4
    g: float = 9.81

    def rates(self, _, y):
        """Rates of ``x``, ``y``, the quaternion, both velocities and the angular velocity."""
        q, (vx, vy), w = y[2:6], y[6:8], y[8:]
        n = axis(q)
        up = np.array([0.0, 0.0, 1.0])
        turn = np.cross(w, n)
        to = self.a * n - self.r * up
        slip = np.array([vx, vy, 0.0]) + np.cross(w, to) * [1.0, 1.0, 0.0]
        speed = np.hypot(slip[0], slip[1])
        force, torque = ratios(speed, self.radius * w[2])
        rub = up - (self.mu * force / speed if speed else 0.0) * slip
        moment = np.cross(to, rub) - self.mu * self.radius * torque * up
        along = np.outer(n, n)
        inverse = (np.eye(3) - along) / self.I1 + along / self.I3
        momentum = self.I1 * w + (self.I3 - self.I1) * (n @ w) * n
        by_force, free = inverse @ moment, -inverse @ np.cross(w, momentum)
        # z'' = -a n'' . up, and m z'' = N - m g.
        lifts = np.cross(by_force, n)[2]
        falls = (np.cross(free, n) + np.cross(w, turn))[2]
        N = self.m * (self.g - self.a * falls) / (1.0 + self.m * self.a * lifts)
        s, u = q[0], q[1:]
        quaternion = 0.5 * np.concatenate([[-w @ u], s * w + np.cross(w, u)])
        return np.concatenate([[vx, vy], quaternion, N * rub[:2] / self.m, free + N * by_force])

    def stem_height(self, q) -> float:
        """Gap of the stem while the sphere touches."""
        cos = axis(q)[2]
        return self.r - self.r_stem + (self.a_stem - self.a) * cos

    def motion(self, angle: float, spin: float, times):
        """Positions and angular velocities at ``times``, and the time at which the stem touches
        (NaN if it never does), for a start at rest but for a ``spin`` about the tilted axis."""

        def stem(_, y):
            return self.stem_height(y[2:6])

        stem.terminal, stem.direction = True, -1.0
        half = 0.5 * angle
        start = [0.0, 0.0, np.cos(half), np.sin(half), 0.0, 0.0, 0.0, 0.0]
        start += [0.0, -spin * np.sin(angle), spin * np.cos(angle)]
        how = {"method": "DOP853", "rtol": 1e-13, "atol": 1e-15, "events": stem}
        found = solve_ivp(self.rates, (0.0, times[-1]), start, t_eval=times, **how)
        return found.y, found.t_events[0][0] if found.t_events[0].size else np.nan


def axis(q):
    """Third axis of a body, by its quaternion."""
    s, x, y, z = q / np.linalg.norm(q)
    return np.array([2.0 * (x * z + s * y), 2.0 * (y * z - s * x), 1.0 - 2.0 * (x * x + y * y)])
