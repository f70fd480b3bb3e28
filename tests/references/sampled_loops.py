"""Masses with static and dynamic friction under forces that are constant between instants: exact,
in plain Python, without a line of the package."""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg import expm


def moved(q: float, v: float, F: float, h: float, m: float, F_s: float, F_d: float):
    """Position and velocity after the time ``h`` under the constant force ``F``."""
    left = h
    for _ in range(4):
        if left <= 0.0:
            break
        if v == 0.0:
            if abs(F) <= F_s:
                break
            sign = math.copysign(1.0, F)
        else:
            sign = math.copysign(1.0, v)
        a = (F - sign * F_d) / m
        stop = -v / a if v * a < 0.0 else math.inf
        if stop >= left:
            q, v, left = q + v * left + 0.5 * a * left**2, v + a * left, 0.0
        else:
            q, v, left = q + 0.5 * v * stop, 0.0, left - stop
    return q, v


def pid_motion(
    *, m=1.0, F_s=0.0, F_d=0.0, kp, ki, kd, T, end, r, q=0.0, v=0.0, delay=0.0, limit=math.inf,
    step=0.0, load=0.0, old=None, integral=0.0, plant=None,
):  # fmt: skip
    """Positions, velocities and commands at the samples of a PID loop: backward difference of the
    reading, integral that stands still in saturation, ``delay`` in samples, readings rounded to
    ``step``. ``plant``: two masses in place of one, of which the first is driven and read."""
    count = round(end / T)
    read = (lambda x: step * round(x / step)) if step else (lambda x: x)
    old = read(q) - T * v if old is None else old
    whole = math.floor(delay + 1e-12)
    part = delay - whole
    given: list[float] = []
    state = (np.array([q, q]), np.array([v, v]), int(plant is not None and plant.gap == 0.0))
    rows = []
    for k in range(count):
        y = read(q)
        e = r(k * T) - y
        wanted = kp * e + ki * (integral + T * e) + kd * (old - y) / T
        u = min(max(wanted, -limit), limit)
        integral += T * e if u == wanted else 0.0
        old = y
        given.append(u)
        rows.append((q, v, u) if plant is None else (*state[0], *state[1], u))
        late = given[k - whole] if k >= whole else 0.0
        before = given[k - whole - 1] if k >= whole + 1 else 0.0
        for force, share in ((before, part), (late, 1.0 - part)):
            if share > 0.0 and plant is None:
                q, v = moved(q, v, force + load, share * T, m, F_s, F_d)
            elif share > 0.0:
                state = plant.step(*state[:2], force + load, share * T, state[2])
                q, v = state[0][0], state[1][0]
    rows.append((q, v, given[-1]) if plant is None else (*state[0], *state[1], given[-1]))
    return rows


class TwoMasses:
    """Two masses with friction, joined by a spring with play: exact under a constant force.

    In each mode (each mass sticks or slides one way; the spring is open or pressed on one side) the
    motion is linear, and a matrix exponential. The first change on a step is found between points
    that are close beside the motion's periods, and refined by halving.
    """

    def __init__(self, m, F_s, F_d, k, gap, points=24):
        self.m, self.F_s, self.F_d, self.k, self.gap = m, F_s, F_d, k, gap
        self.points = points

    def spring(self, q, side):
        return -side * self.k * (side * (q[0] - q[1]) - self.gap) if side else 0.0

    def forces(self, q, u, side):
        s = self.spring(q, side)
        return np.array([u + s, -s])

    def rate(self, mode, side, u):
        """Matrix of (q, v, 1) in a mode: -1, 1 slides, 0 sticks."""
        A = np.zeros((5, 5))
        A[0, 2] = A[1, 3] = 1.0
        for i in range(2):
            if mode[i] == 0:
                A[i, 2 + i] = 0.0
                continue
            row = np.zeros(5)
            row[4] = (u if i == 0 else 0.0) - mode[i] * self.F_d[i]
            if side:
                sign = 1.0 if i == 0 else -1.0
                row[0], row[1] = -sign * self.k, sign * self.k
                row[4] += sign * side * self.k * self.gap
            A[2 + i] = row / self.m[i]
        return A

    def side(self, q, v):
        x, speed = q[0] - q[1], v[0] - v[1]
        for s in (1, -1):
            if s * x > self.gap or (s * x == self.gap and s * speed > 0):
                return s
        return 0

    def step(self, q, v, u, h, side):
        left = h
        for _ in range(200):
            force = self.forces(q, u, side)
            mode = [
                int(np.sign(v[i]))
                if v[i] != 0
                else (0 if abs(force[i]) <= self.F_s[i] else int(np.sign(force[i])))
                for i in range(2)
            ]
            A = self.rate(mode, side, u)
            z = np.array([*q, *v, 1.0])

            def guards(z, mode=tuple(mode), side=side):
                """Positive while the mode lasts."""
                f = self.forces(z[:2], u, side)
                found = [
                    mode[i] * z[2 + i] if mode[i] else self.F_s[i] - abs(f[i]) for i in range(2)
                ]
                x = z[0] - z[1]
                found += [side * x - self.gap] if side else [self.gap - x, self.gap + x]
                return np.array(found)

            begins = guards(z)
            times = np.linspace(0.0, left, self.points + 1)
            P = expm(A * times[1])
            now, before = z, 0.0
            hit = None
            for t in times[1:]:
                after = P @ now
                g = guards(after)
                if np.any((g < 0) & ((begins > 0) | (guards(now) >= 0))):
                    hit = t
                    break
                now, before = after, t
            if hit is None:
                z = expm(A * left) @ z
                return (*self._held(z, q, mode), side)
            low, high = before, hit
            for _ in range(100):
                middle = 0.5 * (low + high)
                if np.all(guards(expm(A * middle) @ z) >= 0):
                    low = middle
                else:
                    high = middle
            end = expm(A * high) @ z
            g = guards(end)
            first = int(np.argmin(np.where(g < 0, g, np.inf)))
            q, v = self._held(end, q, mode)
            if first < 2 and mode[first]:
                v[first] = 0.0
            if first >= 2:
                # Without play the spring passes from one side to the other.
                opened = 0 if self.gap > 0 else -side
                side = opened if side else (1 if first == 2 else -1)
            if first < 2 and not mode[first]:
                # Breaks away: slides at once with a velocity of the right sign.
                force = self.forces(q, u, side)
                v[first] = np.sign(force[first]) * 1e-300
            left -= high
            if left <= 0:
                return q, v, side
        raise RuntimeError("too many changes")

    def _held(self, z, q, mode):
        new, v = z[:2].copy(), z[2:4].copy()
        for i in range(2):
            if mode[i] == 0:
                new[i], v[i] = q[i], 0.0
        return new, v
