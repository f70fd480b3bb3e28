"""Oscillator with dry friction that slides without a stop: its amplitude in closed form.

``m x'' + k x + f sign(x') = F cos(omega t)`` without viscous damping. J. P. Den Hartog, Forced
vibrations with combined Coulomb and viscous friction, Trans. ASME 53 (1931), derived anew: between
two turning points the friction is constant and the motion that of the linear oscillator; position
``x0`` and ``-x0`` and velocity zero at both ends determine it.
"""

import numpy as np


def amplitude(m, k, f, F, omega):
    """Largest displacement, if the motion never stops."""
    own = np.sqrt(k / m)
    forced = F / (k - m * omega**2)
    turned = (f / k) * (own / omega) * np.tan(0.5 * np.pi * own / omega)
    return np.sqrt(forced**2 - turned**2)


def velocity(m, k, f, F, omega, phases):
    """Velocity at ``omega t`` in (0, pi) after the largest displacement; positive: it stops."""
    own = np.sqrt(k / m)
    forced = F / (k - m * omega**2)
    x0 = amplitude(m, k, f, F, omega)
    B = -(f / k) * np.tan(0.5 * np.pi * own / omega)
    sine = B * own / omega / forced
    angle = np.arctan2(sine, x0 / forced)
    t = np.asarray(phases) / omega
    free = f / k * own * np.sin(own * t) + B * own * np.cos(own * t)
    return free - forced * omega * np.sin(omega * t + angle)
