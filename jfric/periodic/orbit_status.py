"""Outcomes of the search for a periodic motion: a code for each motion, never an exception in a
batch."""

from __future__ import annotations

from enum import IntEnum


class OrbitStatus(IntEnum):
    """Outcome of the search for a periodic motion.

    >>> jfric.OrbitStatus(1).message
    'no convergence: give a better start, a longer transient or more segments'
    """

    CONVERGED = 0
    #: Newton's method did not bring the residual down to rounding.
    NO_CONVERGENCE = 1
    #: The transient for the first guess ended early, see ``run_status``.
    TRANSIENT_FAILED = 2
    #: The motion over a period ended early, see ``run_status``.
    MOTION_FAILED = 3
    #: More events in a period than there is room for.
    TOO_MANY_EVENTS = 4
    #: An autonomous motion without a recurring event: its period cannot be guessed.
    NO_RECURRENCE = 5
    #: The period became zero or negative: the motion found stands still.
    STANDS_STILL = 6
    #: An event coincides with the start of the orbit: the motion is found, but its derivative by
    #: the state has two sides there.
    STARTS_ON_EVENT = 7

    @property
    def message(self) -> str:
        """One line for a person."""
        return {
            OrbitStatus.CONVERGED: "converged",
            OrbitStatus.NO_CONVERGENCE: "no convergence: give a better start, a longer transient "
            "or more segments",
            OrbitStatus.TRANSIENT_FAILED: "the transient that gives the first guess ended early",
            OrbitStatus.MOTION_FAILED: "the motion over a period ended early",
            OrbitStatus.TOO_MANY_EVENTS: "more events in a period than max_events of the solver",
            OrbitStatus.NO_RECURRENCE: "no event of the transient recurs: give a section, or a "
            "longer transient",
            OrbitStatus.STANDS_STILL: "the motion that was found stands still",
            OrbitStatus.STARTS_ON_EVENT: "an event coincides with the start, where multipliers "
            "are not defined: start the problem at another time",
        }[self]
