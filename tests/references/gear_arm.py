"""An arm of two links in a plane whose gears lose a part of the torque that they transmit: SciPy.

Each joint has a rotor of inertia ``drive`` and friction with the limit ``limit + kappa |torque|``,
where ``torque = M a + h`` is what goes on to the links, which friction changes in turn. Modes
(rest, or the side of sliding) and the signs of the torques are those of all combinations that agree
with their own accelerations; changes of both are located as events.
"""

from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy.integrate import solve_ivp

#: Time after which modes are judged [s].
LATER = 1e-7


@dataclass
class GearArm:
    """Rods of length 1 with their mass ``m`` at the middle and the inertia ``J`` about it."""

    m: tuple[float, float] = (2.0, 1.0)
    J: tuple[float, float] = (0.1, 0.06)
    drive: tuple[float, float] = (0.4, 0.2)
    limit: tuple[float, float] = (2.0, 0.8)
    kappa: tuple[float, float] = (0.4, 0.3)
    g: float = 9.81

    def drives(self, t):
        """Torques of both motors."""
        return np.array([10.0 * np.sin(2.0 * t), 4.0 * np.sin(3.0 * t)])

    def links(self, q, v):
        """Mass matrix, and the torques of both links without accelerations; angles from below."""
        (m1, m2), (J1, J2) = self.m, self.J
        c, s = np.cos(q[1]), np.sin(q[1])
        second = J2 + 0.25 * m2
        M = np.array(
            [
                [J1 + 0.25 * m1 + m2 + second + m2 * c, second + 0.5 * m2 * c],
                [second + 0.5 * m2 * c, second],
            ]
        )
        h = 0.5 * m2 * s * np.array([-v[1] * (2.0 * v[0] + v[1]), v[0] ** 2])
        tip = 0.5 * m2 * self.g * np.sin(q[0] + q[1])
        weight = np.array([(0.5 * m1 + m2) * self.g * np.sin(q[0]) + tip, tip])
        return M, h + weight

    def motion_in(self, mode, signs, t, q, v):
        """Accelerations, torques and frictions in modes, with signs of the torques."""
        M, h = self.links(q, v)
        side, rests = np.array(mode), np.array(mode) == 0
        drive = self.drives(t)
        gain = 1.0 + side * np.array(self.kappa) * signs
        A = np.diag(self.drive) + gain[:, None] * M
        b = drive - side * self.limit - gain * h
        A[rests], b[rests] = np.eye(2)[rests], 0.0
        a = np.linalg.solve(A, b)
        torque = M @ a + h
        return a, torque, drive - torque - np.array(self.drive) * a

    def limits(self, torque):
        return np.array(self.limit) + np.array(self.kappa) * np.abs(torque)

    def modes(self, t, q, v):
        """Modes and signs that agree with the motion that they cause."""
        for mode, signs in product(product((0, 1, -1), repeat=2), product((1, -1), repeat=2)):
            if any(abs(x) > 1e-9 and np.sign(x) != s for x, s in zip(v, mode, strict=True)):
                continue
            # Judged a little later, as some number is zero at this instant.
            a = self.motion_in(mode, signs, t, q, v)[0]
            later = t + LATER, q + LATER * v, v + LATER * a
            a, torque, friction = self.motion_in(mode, signs, *later)
            fits = np.all(torque * signs > 0)
            for i, side in enumerate(mode):
                if side == 0:
                    fits &= abs(friction[i]) <= self.limits(torque)[i]
                elif abs(v[i]) <= 1e-9:
                    fits &= a[i] * side > 0
            if fits:
                return mode, signs
        raise ValueError(f"no modes at {t}")

    def run(self, q, end):
        """Times at which modes change, the modes that follow, and the state at the end."""
        t, y, found = 0.0, np.array([*q, 0.0, 0.0]), []
        while t < end:
            y[2:][np.abs(y[2:]) < 1e-9] = 0.0
            mode, signs = self.modes(t, y[:2], y[2:])
            if not found or found[-1][1] != mode:
                found.append((t, mode))

            def rate(t, y, mode=mode, signs=signs):
                return np.concatenate([y[2:], self.motion_in(mode, signs, t, y[:2], y[2:])[0]])

            events = [
                self._guard(mode, signs, i, kind) for i in (0, 1) for kind in ("torque", "mode")
            ]
            how = {"method": "DOP853", "rtol": 1e-12, "atol": 1e-13, "events": events}
            part = solve_ivp(rate, (t, end), y, max_step=0.02, **how)
            t, y = part.t[-1], part.y[:, -1].copy()
        return found, y

    def _guard(self, mode, signs, i, kind):
        def value(t, y):
            _, torque, friction = self.motion_in(mode, signs, t, y[:2], y[2:])
            if kind == "torque":
                return torque[i] * signs[i]
            if mode[i]:
                return y[2 + i] * mode[i]
            return self.limits(torque)[i] - abs(friction[i])

        value.terminal, value.direction = True, -1.0
        return value
