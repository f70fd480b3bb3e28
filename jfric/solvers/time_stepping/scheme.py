"""Weights and rules that distinguish the schemes, on one common step.

With ``h`` the step, ``P`` the impulses of the contacts, and all forces linearised::

    M (v+ - v) = h f_theta + W^T P,     q+ = q + h (theta v+ + (1 - theta) v)
    f_theta = f(t_theta, q + theta (q+ - q), v + theta (v+ - v))

    friction    gamma_T+ + kappa gamma_T  in  -N(P_T)        (Coulomb's law for impulses)
    contact     0 <= gamma_N+ + e gamma_N  _|_  P_N >= 0     (Newton's law, where the gap closes)
"""

from __future__ import annotations

from typing import NamedTuple

from jfric.system.fields import Scalar


class Scheme(NamedTuple):
    """Weights and rules of a scheme. ``theta``: weight of the end of the step.

    ``kappa``: weight of the sliding velocity at the start in the friction law, relative to that at
    the end: 0 where the law holds at the end, 1 where it holds in the middle
    (``gamma_T+ + gamma_T`` is twice the velocity there). ``middle``: loads are evaluated in the
    middle of the step, not at both ends. ``stops``: the end velocity of a sticking contact is set
    to zero.
    """

    theta: Scalar
    kappa: float
    middle: bool
    stops: bool

    @property
    def rests(self) -> bool:
        """Whether a contact that sticks has zero velocity at the end of a step."""
        return self.kappa == 0.0 or self.stops
