"""A body that bounces on a carriage with dry friction: phases of constant acceleration, exact in
each of them, with sixty digits.

    gap = g + w_a a + w_b b >= 0,  m_a a'' = F_a + w_a lambda - mu N sign(a'),  m_b b'' = F_b + w_b lambda

An instant with the contact closed or open and the carriage at rest or sliding has accelerations of
its own; those that keep within the laws hold (one set does: friction is Coulomb's, the contact has
no friction). Newton's law at impacts. Independent of jfric.
"""  # noqa: E501

from __future__ import annotations

import itertools
from decimal import Decimal, localcontext

#: Gap rates up to which a bounce is none.
NO_BOUNCE = Decimal("1e-15")


def simulate(masses, normal, gap, e, friction, loads, end):
    """Positions and velocities of both at the end; number of impacts. From rest."""
    with localcontext() as context:
        context.prec = 60
        numbers = [tuple(map(Decimal, map(str, x))) for x in (masses, normal, loads)]
        scalars = [Decimal(str(x)) for x in (gap, e, friction, end)]
        q, v, count = _run(*numbers, *scalars)
        return [float(x) for x in q], [float(x) for x in v], count


def _run(m, w, F, gap, e, limit, end):
    t, q, v, count = Decimal(0), [Decimal(0)] * 2, [Decimal(0)] * 2, 0
    inverse = w[0] ** 2 / m[0] + w[1] ** 2 / m[1]
    closed = False
    while True:
        a, closed = _accelerations(m, w, F, limit, v, closed)
        # The next end of sliding, and the next impact.
        times = [end - t]
        if v[0] and a[0] and -v[0] / a[0] > 0:
            times.append(-v[0] / a[0])
        here, rate = gap + w[0] * q[0] + w[1] * q[1], w[0] * v[0] + w[1] * v[1]
        pull = w[0] * a[0] + w[1] * a[1]
        falls = None
        if not closed:
            falls = _first_root(here, rate, pull)
            times += [] if falls is None else [falls]
        h = min(times)
        q = [x + y * h + z * h * h / 2 for x, y, z in zip(q, v, a, strict=True)]
        stops = v[0] and a[0] and h == -v[0] / a[0]
        v = [y + z * h for y, z in zip(v, a, strict=True)]
        if stops:
            v[0] = Decimal(0)
        t += h
        if t >= end:
            return q, v, count
        if falls is not None and h == falls:
            q[1] = -(gap + w[0] * q[0]) / w[1]
            rate = w[0] * v[0] + w[1] * v[1]
            bounces = e if -rate > NO_BOUNCE else Decimal(0)
            impulse = -(1 + bounces) * rate / inverse
            v = [y + x * impulse / z for y, x, z in zip(v, w, m, strict=True)]
            closed = not bounces
            count += 1


def _accelerations(m, w, F, limit, v, closed):
    """The only ones that the laws allow, and whether the contact stays closed."""
    for stays, slides in itertools.product((True, False), (0, 1, -1)):
        if (stays and not closed) or (v[0] and slides != (1 if v[0] > 0 else -1)):
            continue
        own = F[0] - slides * limit
        if not slides:
            b = F[1] / m[1]
            force = Decimal(0)
            if stays:
                b, force = Decimal(0), -F[1] / w[1]
            held = F[0] + w[0] * force
            a = (Decimal(0), b)
            if abs(held) > limit:
                continue
        else:
            force = Decimal(0)
            if stays:
                free = w[0] * own / m[0] + w[1] * F[1] / m[1]
                force = -free / (w[0] ** 2 / m[0] + w[1] ** 2 / m[1])
            a = ((own + w[0] * force) / m[0], (F[1] + w[1] * force) / m[1])
            if not v[0] and a[0] * slides <= 0:
                continue
        if stays and force < 0:
            continue
        if not stays and closed and w[0] * a[0] + w[1] * a[1] < 0:
            continue
        return a, stays
    raise ValueError("no motion")


def _first_root(here, rate, pull):
    """When the gap ``here + rate s + pull s^2 / 2`` is next zero from above."""
    if not pull:
        return -here / rate if rate < 0 else None
    inside = rate * rate - 2 * pull * here
    if inside < 0:
        return None
    root = inside.sqrt()
    found = [s for s in ((-rate - root) / pull, (-rate + root) / pull) if s > 0]
    if here == 0 or abs(here) < Decimal("1e-50"):
        found = [s for s in found if s > abs(rate / pull)]
    return min(found) if found else None
