"""Moreau-Jean's scheme for a slider-crank in NumPy: by its bodies, and by the crank's angle.

All is seen at the predicted position ``q + h v/2`` (``theta = 1/2``); relative velocities at the
end of a step are ``J v + h c/2``, where ``c`` is the acceleration of a motion without acceleration.
Independent of jfric: equations of joints, reduced inertia and their derivatives are written out.

- Bodies: crank, rod and piston, nine coordinates; pins, a guide that keeps the piston upright, with
  Coulomb friction on its reaction of either sign. The state of the guide is found by trial.
  Positions are put on the joints by Newton's method in the metric of the masses.
- Angle: one coordinate, friction of the piston with a given normal force.

Source: V. Acary, B. Brogliato, Numerical methods for nonsmooth dynamical systems (2008), chapter
10.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

G = 9.81


@dataclass(frozen=True)
class Crank:
    """Radius and length [m]; masses [kg] and moments of inertia [kg m^2] of crank, rod, piston,
    whose centres are in the middle; coefficient of friction, and start of the crank."""

    r: float = 0.2
    l: float = 0.7
    m: tuple[float, float, float] = (2.0, 1.0, 3.0)
    J: tuple[float, float, float] = (0.02, 0.05, 0.01)
    mu: float = 0.3
    angle: float = 0.4
    omega: float = 5.0


# Bodies.


def bodies(p: Crank, h: float, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Positions and velocities (step, 9) of ``x, y, phi`` of crank, rod and piston."""
    M = np.diag(np.array([(m, m, J) for m, J in zip(p.m, p.J, strict=True)]).ravel())
    inverse = np.linalg.inv(M)
    force = -G * np.array([(0.0, m, 0.0) for m in p.m]).ravel()
    q, v = _start(p)
    side, found = 1.0, [(q, v)]
    for _ in range(steps):
        J, c = _constraints(p, q + 0.5 * h * v, v)[1:]
        # Rows: seven equations, the guide's normal, sliding along it.
        free = v + h * inverse @ force
        D = J @ inverse @ J.T
        gamma = J @ free + 0.5 * h * c
        P, side = _guided(D, gamma, p.mu, side)
        v_new = free + inverse @ J.T @ P
        q = q + 0.5 * h * (v + v_new)
        hold = J[:-1]
        back = inverse @ hold.T @ np.linalg.inv(D[:-1, :-1])
        for _ in range(6):
            q = q - back @ _constraints(p, q, v)[0][:-1]
        v = v_new
        found.append((q, v))
    q, v = zip(*found, strict=True)
    return np.array(q), np.array(v)


def _start(p: Crank):
    a, w = p.angle, p.omega
    b = -np.arcsin(p.r * np.sin(a) / p.l)
    b_dot = -p.r * np.cos(a) * w / (p.l * np.cos(b))
    tip = p.r * np.array([np.cos(a), np.sin(a)])
    tip_dot = p.r * w * np.array([-np.sin(a), np.cos(a)])
    half = 0.5 * p.l * np.array([np.cos(b), np.sin(b)])
    half_dot = 0.5 * p.l * b_dot * np.array([-np.sin(b), np.cos(b)])
    piston, piston_dot = tip + 2 * half, tip_dot + 2 * half_dot
    q = [*(0.5 * tip), a, *(tip + half), b, *piston, 0.0]
    v = [*(0.5 * tip_dot), w, *(tip_dot + half_dot), b_dot, *piston_dot, 0.0]
    return np.array(q), np.array(v)


def _constraints(p: Crank, q, v):
    """Values, directions (9, 9) and what the motion alone adds to the rates of their rates."""
    a, b, a_dot, b_dot = q[2], q[5], v[2], v[5]
    r, l = 0.5 * p.r, 0.5 * p.l
    value, J, c = np.zeros(9), np.zeros((9, 9)), np.zeros(9)
    value[0], value[1] = q[0] - r * np.cos(a), q[1] - r * np.sin(a)
    value[2] = q[0] + r * np.cos(a) - q[3] + l * np.cos(b)
    value[3] = q[1] + r * np.sin(a) - q[4] + l * np.sin(b)
    value[4], value[5] = q[3] + l * np.cos(b) - q[6], q[4] + l * np.sin(b) - q[7]
    value[6], value[7], value[8] = q[8], q[7], q[6]
    for row, column, x in ((0, 0, 1), (1, 1, 1), (2, 0, 1), (2, 3, -1), (3, 1, 1), (3, 4, -1)):
        J[row, column] = x
    for row, column, x in ((4, 3, 1), (4, 6, -1), (5, 4, 1), (5, 7, -1), (6, 8, 1)):
        J[row, column] = x
    J[7, 7] = J[8, 6] = 1
    J[0, 2], J[1, 2] = r * np.sin(a), -r * np.cos(a)
    J[2, 2], J[3, 2] = -r * np.sin(a), r * np.cos(a)
    J[2, 5], J[3, 5] = -l * np.sin(b), l * np.cos(b)
    J[4, 5], J[5, 5] = -l * np.sin(b), l * np.cos(b)
    crank = r * a_dot**2 * np.array([np.cos(a), np.sin(a)])
    rod = l * b_dot**2 * np.array([np.cos(b), np.sin(b)])
    c[0:2], c[2:4], c[4:6] = crank, -crank - rod, -rod
    return value, J, c


def _guided(D, gamma, mu: float, side: float):
    """Impulses (9,) that leave no velocity along the first eight rows, with friction on the last;
    the side that carries."""
    held = np.linalg.solve(D, -gamma)
    if abs(held[8]) <= mu * abs(held[7]):
        return held, np.sign(held[7])
    for s in (side, -side):
        for slides in (1.0, -1.0):
            # The last impulse is -slides mu s times the one before.
            columns = D[:, :8].copy()
            columns[:, 7] -= slides * mu * s * D[:, 8]
            P = np.linalg.solve(columns[:8], -gamma[:8])
            after = gamma[8] + columns[8] @ P
            if s * P[7] >= 0 and slides * after >= 0:
                return np.append(P, -slides * mu * s * P[7]), s
    raise ArithmeticError("no state of the guide fits")


# The crank's angle.


@dataclass(frozen=True)
class Jet:
    """A value with two derivatives by the angle."""

    x: float
    d: float = 0.0
    dd: float = 0.0

    def __add__(self, other):
        other = _jet(other)
        return Jet(self.x + other.x, self.d + other.d, self.dd + other.dd)

    def __mul__(self, other):
        o = _jet(other)
        mixed = self.dd * o.x + 2 * self.d * o.d + self.x * o.dd
        return Jet(self.x * o.x, self.d * o.x + self.x * o.d, mixed)

    __radd__, __rmul__ = __add__, __mul__

    def power(self, k: float) -> Jet:
        first = k * self.x ** (k - 1)
        second = k * (k - 1) * self.x ** (k - 2)
        return Jet(self.x**k, first * self.d, second * self.d**2 + first * self.dd)


def _jet(value) -> Jet:
    return value if isinstance(value, Jet) else Jet(float(value))


def angle(p: Crank, N: float, h: float, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Angle and speed (step,) of the crank; the piston feels friction under the force ``N``."""
    a, w, found = p.angle, p.omega, [(p.angle, p.omega)]
    weight = -0.5 * G * (p.m[0] + p.m[1]) * p.r
    for _ in range(steps):
        ahead = a + 0.5 * h * w
        inertia, path = _reduced(p, ahead)
        force = weight * np.cos(ahead) - 0.5 * inertia.d * w * w
        K = weight * np.sin(ahead) + 0.5 * inertia.dd * w * w
        C = inertia.d * w
        # Linear about the predicted position and the velocity at the start.
        A = inertia.x + 0.5 * h * C + 0.25 * h * h * K
        free = w + h * force / A
        W, bias = path.d, path.dd * w * w
        D, gamma = W * W / A, W * free + 0.5 * h * bias
        P = np.clip(-gamma / D, -h * p.mu * N, h * p.mu * N)
        new = free + W * P / A
        a, w = a + 0.5 * h * (w + new), new
        found.append((a, w))
    a, w = zip(*found, strict=True)
    return np.array(a), np.array(w)


def _reduced(p: Crank, a: float) -> tuple[Jet, Jet]:
    """Moment of inertia reduced to the crank, and place of the piston."""
    c, s = (
        Jet(np.cos(a), -np.sin(a), -np.cos(a)),
        Jet(np.sin(a), np.cos(a), -np.sin(a)),
    )
    height = (-(p.r**2) * s * s + p.l**2).power(0.5)
    ratio = p.r * c * height.power(-1.0)
    rod = (p.r * s * (0.5 * ratio + 1.0)).power(2) + (0.5 * p.r * c).power(2)
    inertia = p.J[1] * ratio * ratio + p.m[1] * rod
    inertia = inertia + p.m[2] * (p.r * s * (ratio + 1.0)).power(2)
    return inertia + (p.J[0] + p.m[0] * (p.r / 2) ** 2), p.r * c + height
