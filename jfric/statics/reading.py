"""Displacements, forces and limits of contacts at a state, and the modes possible there."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from jfric.results.modes import Mode

#: Size, relative to the largest force or length, below which a value counts as zero where modes
#: meet.
AT_CHANGE = 1e-9


class Reading(NamedTuple):
    """Sliding distances (nt,), gaps (nu,), forces, and limits of friction (2, nt), static and
    kinetic, for both directions of sliding."""

    slip: Any
    gap: Any
    lambda_t: Any
    lambda_n: Any
    static: Any
    kinetic: Any


def possible_modes(rubs: Sequence[bool], nf: int) -> list[tuple[Mode, ...]]:
    """The modes that each contact can have; ``rubs``: whether it has a tangent; those from number
    ``nf`` on can open."""
    with_friction = (Mode.STICK, Mode.SLIP_POS, Mode.SLIP_NEG)
    return [
        (*((Mode.OPEN,) if i >= nf else ()), *(with_friction if own else (Mode.CLOSED,)))
        for i, own in enumerate(rubs)
    ]


def as_table(modes: Sequence[tuple[Mode, ...]], contacts: int) -> np.ndarray:
    """Combinations of modes as an array (c, contacts)."""
    return np.asarray(modes, np.int32).reshape(len(modes), contacts)


def modes_of(
    reading: Reading, rubs: tuple[bool, ...], length: float, force: float
) -> list[tuple[Mode, ...]]:
    """The possible modes of each contact; several where modes meet.

    ``rubs`` (nt,): contacts that have a tangent; ``length``, ``force``: sizes that count as zero.
    """
    slip, lambda_t = np.asarray(reading.slip), np.asarray(reading.lambda_t)
    upper, lower = np.asarray(reading.static)
    nf = len(rubs) - len(reading.gap)
    result = []
    for i, has_tangent in enumerate(rubs):
        found = []
        unilateral = i >= nf
        if unilateral and reading.lambda_n[i - nf] <= force and abs(lambda_t[i]) <= force:
            found.append(Mode.OPEN)
        if not unilateral or abs(reading.gap[i - nf]) <= length:
            if not has_tangent:
                found.append(Mode.CLOSED)
            else:
                if abs(slip[i]) <= length:
                    found.append(Mode.STICK)
                if slip[i] >= -length and abs(lambda_t[i] + upper[i]) <= force:
                    found.append(Mode.SLIP_POS)
                if slip[i] <= length and abs(lambda_t[i] - lower[i]) <= force:
                    found.append(Mode.SLIP_NEG)
        result.append(tuple(found))
    return result


def combinations(
    choices: Sequence[Sequence[Mode]], opposed: Sequence[tuple[int, int]] = ()
) -> list[tuple[Mode, ...]]:
    """All combinations of the modes ``choices`` of each contact, the first varying slowest, in
    which one of the two ``opposed`` sides of each joint carries."""
    found = itertools.product(*choices)
    return [c for c in found if all((c[i] == Mode.OPEN) != (c[j] == Mode.OPEN) for i, j in opposed)]
