"""Two free inertias, play ``2 b`` between teeth of stiffness ``k`` and damping ``c``: closed form.

With the reduced inertia ``J = J1 J2/(J1 + J2)``, ``d = c/(2 J)``, ``w = sqrt(k/J - d^2)`` and the
relative velocity ``u`` at touch, the teeth are compressed by ``p = u/w exp(-d t) sin(w t)``. Teeth
do not pull: they let go where ``k p + c p' = 0``, at

    tan(w t) = -c w/(k - c d),    p = u P,    p' = -u e

with ``P`` and ``e`` the same in every contact: a coefficient of restitution. The way to the other
flank is ``2 b`` and the rest of the compression.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Teeth:
    """SI units."""

    J1: float
    J2: float
    k: float
    c: float
    b: float

    @property
    def J(self) -> float:
        return self.J1 * self.J2 / (self.J1 + self.J2)

    def contact(self) -> tuple[float, float, float]:
        """Duration, compression left at the end over ``u``, and restitution."""
        d = self.c / (2.0 * self.J)
        w = math.sqrt(self.k / self.J - d * d)
        t = math.atan2(self.c * w, -(self.k - self.c * d)) / w
        fade = math.exp(-d * t)
        left = fade * math.sin(w * t) / w
        return t, left, -fade * (math.cos(w * t) - d / w * math.sin(w * t))

    def events(self, u: float, contacts: int) -> list[tuple[float, float, float]]:
        """Time, relative displacement and velocity at each touch and release, from the middle of
        the play with the relative velocity ``u > 0``."""
        length, left, e = self.contact()
        t, side, way, found = 0.0, 1.0, self.b, []
        for _ in range(contacts):
            t += way / u
            found.append((t, side * self.b, side * u))
            t += length
            rest = u * left
            found.append((t, side * (self.b + rest), -side * u * e))
            u, way, side = u * e, 2.0 * self.b + rest, -side
        return found

    def angles(self, start: float, t: float, relative: float) -> tuple[float, float]:
        """Both angles, the first of which started at the velocity ``start``, from their
        difference: their centre moves evenly."""
        centre = self.J1 * start * t / (self.J1 + self.J2)
        share = self.J2 / (self.J1 + self.J2)
        return centre + share * relative, centre - (1.0 - share) * relative
