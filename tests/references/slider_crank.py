"""A slider-crank by one coordinate, the crank's angle, integrated by SciPy."""

import numpy as np
from scipy.integrate import solve_ivp

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
