"""Kind of a contact, and functions that all of its modes share."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from jaxtyping import Array, Bool

from jfric.numerics.choice import select
from jfric.results.modes import Mode

#: A fact about one contact that is known at compile time (a Python bool, which leaves no trace in
#: the compiled code), or one element for each of several contacts.
Flag: TypeAlias = bool | np.ndarray | Bool[Array, "*k"]


class Kind(NamedTuple):
    """Kind of a contact, whatever its motion.

    ``unilateral``: it may open; else friction with a given normal force. ``frictionless``: it has
    no tangent; a contact with a coefficient of zero has one. ``unlimited``: unilateral, and both
    its limits of friction are zero; its guards in stick are its friction, which must vanish, and
    its normal force.
    """

    unilateral: Flag
    frictionless: Flag = False
    unlimited: Flag = False


def chosen(flag: Flag, one, other):
    """The value ``one`` where ``flag``, else the ``other``."""
    if isinstance(flag, bool):
        return one if flag else other
    return select(flag, one, other)


def inverse(flag: Flag) -> Flag:
    """Logical ``not`` of a flag."""
    return not flag if isinstance(flag, bool) else ~flag


def slides(mode) -> Bool[Array, "*k"]:
    """Whether a mode is one of the two sliding ones."""
    return (mode == Mode.SLIP_POS) | (mode == Mode.SLIP_NEG)


def slip(forward):
    """The sliding mode with a positive sliding velocity where ``forward``, else the other."""
    return select(forward, Mode.SLIP_POS, Mode.SLIP_NEG)
