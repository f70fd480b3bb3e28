"""The modes that the contacts of a static problem can have."""

from __future__ import annotations

import itertools

import numpy as np

from jfric.results.modes import Mode
from jfric.statics.static_problem import StaticProblem

_WITH_FRICTION = (Mode.STICK, Mode.SLIP_POS, Mode.SLIP_NEG)


def contact_modes(problem: StaticProblem, contact: int) -> tuple[Mode, ...]:
    """Modes of one contact."""
    if not problem.unilateral[contact]:
        return _WITH_FRICTION
    return (Mode.OPEN, *(_WITH_FRICTION if problem.rubs[contact] else (Mode.CLOSED,)))


def mode_count(problem: StaticProblem) -> int:
    """Number of combinations of modes."""
    return int(np.prod([float(len(contact_modes(problem, i))) for i in range(len(problem.names))]))


def all_modes(problem: StaticProblem) -> np.ndarray:
    """All combinations of modes (c, nt), the first contact varying slowest."""
    each = [contact_modes(problem, i) for i in range(len(problem.names))]
    table = list(itertools.product(*each))
    return np.asarray(table, np.int32).reshape(len(table), len(each))
