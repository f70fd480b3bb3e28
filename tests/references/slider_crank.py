"""A slider-crank by one coordinate, the crank's angle, integrated by SciPy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.integrate import DOP853, solve_ivp
from scipy.optimize import brentq

R, L, G = 0.2, 0.7, 9.81
#: Masses and moments of inertia of crank, rod and slider; their centres are in the middle.
MASSES, INERTIAS = (2.0, 1.0, 3.0), (0.02, 0.05, 0.01)


def inertia(a):
    """Reduced moment of inertia: kinetic energy is half of it times the squared speed."""
    c, s = np.cos(a), np.sin(a)
    h = np.sqrt(L**2 - (R * s) ** 2)
    crank = INERTIAS[0] + MASSES[0] * (R / 2) ** 2
    rod = INERTIAS[1] * (R * c / h) ** 2
    rod = rod + MASSES[1] * ((R * s * (1 + R * c / (2 * h))) ** 2 + (R * c / 2) ** 2)
    return crank + rod + MASSES[2] * (R * s * (1 + R * c / h)) ** 2


def acceleration(a, w):
    """Lagrange's equation; the slope of the inertia by a complex step."""
    slope = np.imag(inertia(a + 1e-30j)) / 1e-30
    torque = -G * (MASSES[0] + MASSES[1]) * R / 2 * np.cos(a)
    return (torque - 0.5 * slope * w**2) / inertia(a)


def motion(times, a=0.4, w=5.0):
    """Angle and speed of the crank at ``times`` (m,): an array (2, m)."""
    found = solve_ivp(
        lambda t, x: [x[1], acceleration(x[0], x[1])],
        (0.0, times[-1]),
        [a, w],
        t_eval=times,
        method="DOP853",
        rtol=1e-13,
        atol=1e-14,
    )
    return found.y


@dataclass(frozen=True)
class Rubbing:
    """The same with friction at the slider (``mu``) and in the three pins (``pins`` with a radius
    of ``radius``), and a torque ``drive(t)`` on the crank: Newton's and Euler's equations of the
    three bodies, with reactions as unknowns."""

    mu: float = 0.0
    pins: float = 0.0
    radius: float = 0.0
    drive: Callable = lambda t: 0.0

    def turning(self, a):
        """Rates of the sliding by the crank's angle: shaft, big and small pin, slider; the angle of
        the rod."""
        b = -np.arcsin(R * np.sin(a) / L)
        rod = -R * np.cos(a) / (L * np.cos(b))
        return np.array([1.0, 1.0 - rod, rod, -R * np.sin(a) - L * np.sin(b) * rod]), b

    def solved(self, t, a, w, sides, press):
        """Angular acceleration of the crank and reactions (shaft, big, small pin, normal force and
        torque of the guide) for friction against the signs ``sides`` (4,) and a normal force of the
        sign ``press``."""
        (_, _, rate, _), b = self.turning(a)
        rod = rate * w
        c, s, cb, sb = np.cos(a), np.sin(a), np.cos(b), np.sin(b)
        # Accelerations of each body (x, y, angle) as ``slope alpha + rest``.
        turn = rate, (R / L * s * w**2 + sb * rod**2) / cb
        crank = [(-R / 2 * s, -R / 2 * c * w**2), (R / 2 * c, -R / 2 * s * w**2), (1.0, 0.0)]

        def along(part):
            x = -R * s - part * L * sb * turn[0]
            y = R * c + part * L * cb * turn[0]
            x0 = -R * c * w**2 - part * L * (cb * rod**2 + sb * turn[1])
            y0 = -R * s * w**2 - part * L * (sb * rod**2 - cb * turn[1])
            return [(x, x0), (y, y0)]

        moves = [crank, [*along(0.5), turn], [along(1.0)[0], (0.0, 0.0), (0.0, 0.0)]]
        # Unknowns: alpha, three forces in pins on the first body of each, guide, its torque.
        A, right = np.zeros((9, 9)), np.zeros(9)
        places = [(0.5 * R * c, 0.5 * R * s), (0.5 * L * cb, 0.5 * L * sb), (0.0, 0.0)]
        of_bodies = [[(0, 1, -1.0), (1, 1, 1.0)], [(1, -1, -1.0), (2, 1, 1.0)], [(2, -1, 0.0)]]
        for i, (m, J) in enumerate(zip(MASSES, INERTIAS, strict=True)):
            for k, inertia in enumerate((m, m, J)):
                A[3 * i + k, 0] = inertia * moves[i][k][0]
                right[3 * i + k] = -inertia * moves[i][k][1]
            right[3 * i + 1] -= m * G
            for pin, sign, side in of_bodies[i]:
                d = side * np.array(places[i])
                x, y = 1 + 2 * pin, 2 + 2 * pin
                A[3 * i, x] -= sign
                A[3 * i + 1, y] -= sign
                A[3 * i + 2, x] += sign * d[1]
                A[3 * i + 2, y] -= sign * d[0]
        right[2] += self.drive(t)
        A[7, 7] -= 1.0
        A[8, 8] -= 1.0
        A[6, 7] += self.mu * press * sides[3]
        torque = np.zeros(3)
        inverse = np.linalg.inv(A)
        while True:
            # Of the shaft on the crank, of the crank's tip on both, of the rod's end on both.
            own = np.zeros(9)
            own[2] = torque[0] + torque[1]
            own[5] = -torque[1] + torque[2]
            own[8] = -torque[2]
            x = inverse @ (right + own)
            size = np.hypot(x[1:7:2], x[2:7:2])
            new = -self.pins * self.radius * size * sides[:3]
            if np.max(np.abs(new - torque)) <= 1e-15 * (1.0 + np.max(np.abs(new))):
                return x[0], x[1:]
            torque = new

    def motion(self, a, w, end):
        """Dense pieces and events ``(time, what, a, w)`` from the crank's angle and speed."""
        t, pieces, events = 0.0, [], []
        still = False
        press = None
        while t < end:
            rates = self.turning(a)[0]
            if still or w == 0.0:
                # It goes where it would be accelerated against friction, or rests.
                for way in (1.0, -1.0):
                    sides = np.sign(way * rates)
                    press = self._press(t, a, 0.0, sides)
                    if way * self.solved(t, a, 0.0, sides, press)[0] > 1e-9:
                        break
                else:
                    way = 0.0
            else:
                way = np.sign(w)
            if way == 0.0:
                t, press = self._breaks_away(t, a, end)
                pieces.append((lambda s, a=a: np.array([a, 0.0]), t))
                if t < end:
                    events.append((t, "starts", a, 0.0))
                    # Just behind the root.
                    way = press[0]
                    sides = np.sign(way * rates)
                    press = press[1]
                    still = False
                else:
                    break
            else:
                # Behind zeros of the rates, to the side where it goes.
                sides = np.sign(way * self.turning(a + 1e-7 * way)[0])
                swaps = bool(events) and events[-1][0] == t and events[-1][1] == "other side"
                press = -press if swaps else self._press(t, a + 1e-7 * way, w, sides)
            t, a, w, what = self._slides(t, a, w, way, sides, press, end, pieces)
            still = what == "stops"
            if what:
                events.append((t, what, a, w))
        return pieces, events

    def _press(self, t, a, w, sides):
        """The sign of the normal force that agrees with itself."""
        good = [p for p in (1.0, -1.0) if p * self.solved(t, a, w, sides, p)[1][6] > 0.0]
        assert len(good) == 1, good
        return good[0]

    def _breaks_away(self, t, a, end):
        rates = self.turning(a)[0]
        ways = []
        for way in (1.0, -1.0):
            sides = np.sign(way * rates)

            def pull(s, way=way, sides=sides):
                press = self._press(s, a, 0.0, sides)
                return way * self.solved(s, a, 0.0, sides, press)[0]

            grid = np.linspace(t, end, 2001)
            values = np.array([pull(s) for s in grid])
            k = int(np.argmax(values > 1e-9))
            if values[k] > 1e-9:
                root = brentq(pull, grid[k - 1], grid[k], xtol=1e-15, rtol=1e-15)
                ways.append((root, (way, self._press(root, a, 0.0, sides))))
        return min(ways) if ways else (end, None)

    def _slides(self, t, a, w, way, sides, press, end, pieces):
        def rates(t, y):
            return [y[1], self.solved(t, *y, sides, press)[0]]

        def turns(k, t, y):
            return sides[k] * self.turning(y[0])[0][k] * way

        guards = [
            (lambda t, y: way * y[1], "stops"),
            (lambda t, y: turns(2, t, y), "small pin"),
            (lambda t, y: turns(3, t, y), "slider"),
            (lambda t, y: press * self.solved(t, *y, sides, press)[1][6], "other side"),
        ]
        solver = DOP853(rates, t, [a, w], end, rtol=1e-12, atol=1e-13, max_step=0.01)
        while solver.status == "running":
            solver.step()
            dense, hit = solver.dense_output(), None
            pieces.append((dense, dense.t_max))
            grid = np.linspace(max(dense.t_min, t + 1e-6), dense.t_max, 5)
            for guard, what in guards:
                values = [guard(s, dense(s)) for s in grid]
                if min(values) < 0.0:
                    k = int(np.argmax(np.array(values) < 0.0))
                    assert k > 0, what
                    root = brentq(
                        lambda s, guard=guard, dense=dense: guard(s, dense(s)),
                        grid[k - 1],
                        grid[k],
                        xtol=1e-15,
                        rtol=1e-15,
                    )
                    if hit is None or root < hit[0]:
                        hit = root, what
            if hit is not None:
                a, w = dense(hit[0])
                pieces[-1] = (dense, hit[0])
                return hit[0], a, 0.0 if hit[1] == "stops" else w, hit[1]
        return end, *solver.y, ""
