"""One mass with static and dynamic friction under a force that is constant between instants: exact,
in plain Python, without a line of the package."""

from __future__ import annotations

import math


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
    *, m, F_s, F_d, kp, ki, kd, T, end, r, q=0.0, v=0.0, delay=0.0, limit=math.inf, step=0.0,
    load=0.0, old=None, integral=0.0,
):  # fmt: skip
    """Positions, velocities and commands at the samples of a PID loop: backward difference of the
    reading, integral that stands still in saturation, ``delay`` in samples, readings rounded to
    ``step``."""
    count = round(end / T)
    read = (lambda x: step * round(x / step)) if step else (lambda x: x)
    old = read(q) - T * v if old is None else old
    whole = math.floor(delay + 1e-12)
    part = delay - whole
    given: list[float] = []
    rows = []
    for k in range(count):
        y = read(q)
        e = r(k * T) - y
        wanted = kp * e + ki * (integral + T * e) + kd * (old - y) / T
        u = min(max(wanted, -limit), limit)
        integral += T * e if u == wanted else 0.0
        old = y
        given.append(u)
        rows.append((q, v, u))
        late = given[k - whole] if k >= whole else 0.0
        before = given[k - whole - 1] if k >= whole + 1 else 0.0
        if part > 0.0:
            q, v = moved(q, v, before + load, part * T, m, F_s, F_d)
        q, v = moved(q, v, late + load, (1.0 - part) * T, m, F_s, F_d)
    rows.append((q, v, given[-1]))
    return rows
