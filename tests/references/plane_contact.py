"""A particle with a coupled mass matrix over a rough floor, event by event: an own solution.

``M v' = F + (lambda_x, lambda_y, N)`` with the gap ``z``. Flights are parabolas, impacts (Newton,
and Coulomb's law for impulses with an elliptic limit) are found by a scan over all directions of
sliding; sliding is integrated in a time scaled by its speed, in which a stop is infinitely far. It
ends where the particle stops and stays.
"""

from dataclasses import dataclass, field

import numpy as np
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

#: Sliding speed, relative to the largest, below which the rest is a straight line.
STOPPED = 1e-13


@dataclass
class Particle:
    """The system: mass matrix, constant force, coefficients along x and y, restitution."""

    M: np.ndarray
    F: np.ndarray
    mu: np.ndarray
    e: float = 0.0
    events: list = field(default_factory=list)

    def __post_init__(self):
        self.D = np.linalg.inv(self.M)

    def friction(self, gamma, normal):
        """Friction of sliding, ``gamma`` with any size but zero."""
        weighted = self.mu * gamma
        return -normal * self.mu * weighted / np.hypot(*weighted)

    def impulse(self, v):
        """Impulse (3,) at an impact with the velocity ``v`` before, and whether it ends sliding."""
        target = np.append(v[:2], (1.0 + self.e) * v[2])
        holding = -self.M @ target
        if np.hypot(*(holding[:2] / self.mu)) <= holding[2]:
            return holding, True
        turn = np.linspace(0.0, 2.0 * np.pi, 721)

        def sliding(angle):
            direction = np.array([np.cos(angle), np.sin(angle)])
            ratio = np.append(-self.mu * direction, 1.0)
            found = -target[2] / (self.D[2] @ ratio) * ratio
            after = self.mu * (v + self.D @ found)[:2]
            return found, direction @ after, direction[0] * after[1] - direction[1] * after[0]

        sides = [sliding(a)[2] for a in turn]
        ends = []
        for a, b, x, y in zip(turn[:-1], turn[1:], sides[:-1], sides[1:], strict=True):
            if x * y <= 0.0:
                found, ahead, _ = sliding(brentq(lambda a: sliding(a)[2], a, b, xtol=1e-15))
                if ahead > 0.0 and found[2] > 0.0:
                    ends.append(found)
        assert len(ends) == 1
        return ends[0], False

    def run(self, q, v):
        """Time and state at which the particle comes to rest; fills ``events``."""
        t, q, v = 0.0, np.array(q, float), np.array(v, float)
        while True:
            t, q, v, stuck = self._flight(t, q, v)
            if v[2] == 0.0:
                break
        if not stuck:
            t, q = self._slide(t, q, v)
            self.events.append((t, "stick"))
        return t, q

    def _flight(self, t, q, v):
        a = self.D @ self.F
        s = (v[2] + np.sqrt(v[2] ** 2 - 2.0 * a[2] * q[2])) / -a[2]
        q, v = q + s * v + 0.5 * s * s * a, v + s * a
        found, stuck = self.impulse(v)
        v = v + self.D @ found
        v[2] = 0.0 if self.e == 0.0 else v[2]
        q[2] = 0.0
        self.events.append((t + s, "stick" if stuck else "slip"))
        return t + s, q, v, stuck

    def _slide(self, t0, q, v):
        force = self.F

        def rate(gamma):
            # Normal force from the row of the normal, then the acceleration.
            ratio = np.append(self.friction(gamma, 1.0), 1.0)
            normal = -(self.D[2] @ force) / (self.D[2] @ ratio)
            assert normal > 0.0
            return (self.D @ (force + normal * ratio))[:2]

        def scaled(_, z):
            gamma = z[2:4]
            return np.concatenate([gamma, rate(gamma), [1.0]]) * np.hypot(*gamma)

        first = np.hypot(*v[:2])

        def stops(_, z):
            return np.hypot(*z[2:4]) - STOPPED * first

        stops.terminal = True
        start = np.concatenate([q[:2], v[:2], [t0]])
        run = solve_ivp(
            scaled, (0.0, 1e6), start, method="DOP853", rtol=1e-13, atol=1e-16, events=stops
        )
        z = run.y[:, -1]
        return z[4], np.append(z[:2], 0.0)
