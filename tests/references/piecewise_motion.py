"""One axis with friction whose limit depends on everything, with further states, by SciPy.

``m q'' = push(t, y) + lambda``, ``y = (q, v, states)``, with ``|lambda| <= limit`` at rest and
``-s limit(t, y, s)`` in sliding. Pieces end at stops, at break-aways, at the zeros of ``kinks`` and
at ``jumps`` in time.
"""

from __future__ import annotations

import numpy as np
from scipy.integrate import solve_ivp

TIGHT = {"method": "DOP853", "rtol": 1e-12, "atol": 1e-13, "first_step": 1e-5}


def slid(push, limit, mass, start, end, states=lambda t, y: [], kinks=(), jumps=(), step=0.01):
    """Final state (q, v, ...), and times of stops, reversals and break-aways."""
    t, y, times = 0.0, np.asarray(start, float), []
    s = int(np.sign(y[1])) or _direction(push, limit, t, y)
    while t < end - 1e-12:
        until = min([x for x in jumps if x > t + 1e-12] + [end])
        # Right after a jump in time, and on either side of a kink, values are those of the piece.
        inside = t + 1e-10

        def rate(t, y, s=s):
            a = 0.0 if s == 0 else (push(t, y) - s * limit(t, y, s)) / mass
            return [y[1] if s else 0.0, a, *states(t, y)]

        signs = [np.sign(k(inside + 1e-9, y + 1e-9 * np.asarray(rate(inside, y)))) for k in kinks]
        guards = [(lambda t, y, k=k, g=g: g * k(t, y)) for k, g in zip(kinks, signs, strict=True)]
        if s:
            guards.append(lambda t, y, s=s: s * y[1])
        else:
            guards.append(lambda t, y: limit(t, y, 0) - push(t, y))
            guards.append(lambda t, y: limit(t, y, 0) + push(t, y))
        guards = [_after(g, t + 1e-8) for g in guards]
        found = solve_ivp(rate, (t, until), y, events=guards, max_step=step, **TIGHT)
        t, y = found.t[-1], found.y[:, -1]
        fired = [len(x) > 0 for x in found.t_events]
        own = fired[len(kinks) :]
        before = s
        if s and any(own):
            y[1] = 0.0
            s = _direction(push, limit, t + 1e-9, y)
        elif not s and any(own):
            s = 1 if own[0] else -1
        elif not s and not any(fired):
            s = _direction(push, limit, t + 1e-9, y)  # a jump in time
        if s != before and t < end - 1e-12:
            times.append(t)
    return *y, times


def _direction(push, limit, t, y) -> int:
    force, most = push(t, y), limit(t, y, 0)
    return 1 if force > most else -1 if force < -most else 0


def _after(guard, begin):
    def seen(t, y):
        return guard(t, y) if t > begin else 1.0

    seen.terminal, seen.direction = True, -1
    return seen
