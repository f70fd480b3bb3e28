"""Outcome of a trajectory: a code, never an exception inside a batch."""

from __future__ import annotations

from enum import IntEnum, IntFlag
from typing import Any, Self

#: Messages of codes, by their class.
_MESSAGES: dict[type, dict[int, str]] = {}


def _worded(cls: Any, code: int, message: str) -> Any:
    """A member of a class of codes, from its number and its message."""
    _MESSAGES.setdefault(cls, {})[code] = message
    member = int.__new__(cls, code)
    member._value_ = code
    return member


class AbstractOutcome(IntEnum):
    """Codes of outcomes, each with a message."""

    def __new__(cls, code: int, message: str) -> Self:
        """The member with a number and its message."""
        return _worded(cls, code, message)

    @property
    def message(self) -> str:
        """One line of explanation."""
        return _MESSAGES[type(self)][self]


class Status(AbstractOutcome):
    """Outcome of a trajectory. Codes other than ``OK`` say why it ended or is incomplete::

    >>> jfric.Status(2).message
    'stopped before the end time: raise max_steps'
    """

    OK = 0, "ok"
    #: More changes of mode than the event log holds; the motion itself is complete.
    MAX_EVENTS = 1, "event log full: raise max_events (the motion is complete)"
    #: The step budget ended before the end time.
    MAX_STEPS = 2, "stopped before the end time: raise max_steps"
    #: A state became infinite or NaN, or a number of the problem is so.
    NON_FINITE = 3, "a number or a state became infinite or NaN"
    #: No consistent mode, or more than one (Painleve); the trajectory ends there.
    INCONSISTENT = 4, "no unique consistent mode (Painleve or cycling); stopped there"
    #: An impact would have increased the energy; the trajectory ends there.
    IMPACT_ENERGY = 5, "an impact would increase the energy; stopped there"
    #: A rigid-body motion meets no resistance: there is no quasi-static equilibrium, or none with
    #: the reactions of smallest norm.
    SINGULAR = (
        6,
        "free to move without resistance (a spring or support is missing, or frictions that "
        "share a load do not hold with forces of smallest norm); stopped there",
    )
    #: The contact problem of a step was not solved within the iterations; the trajectory ends.
    UNSOLVED = 7, "the contact problem of a step was not solved; stopped there"
    #: The integrator could not continue: steps too small, or implicit equations not solved.
    STALLED = (
        8,
        "the integrator could not go on (steps too small, or implicit equations not solved)",
    )
    #: A given normal force or friction limit became negative; the trajectory ends there.
    NEGATIVE_FORCE = 9, "a given normal force or friction limit became negative; stopped there"
    #: The start, or a change by a user event, makes bodies penetrate; the trajectory ends there.
    PENETRATION = 10, "the start or an event's change puts bodies inside each other; stopped there"
    #: Changes by a user event accumulate; the trajectory ends there.
    ACCUMULATION = 11, "an event changes the state again and again in no time; stopped there"
    #: A number of the problem lies outside its bounds, or the end of the run is not after its
    #: start; nothing was computed.
    OUT_OF_BOUNDS = (
        12,
        "a number lies outside its bounds, or the end is not after the start; nothing was computed",
    )


class Flag(IntFlag):
    """Remarks on a trajectory whose status may still be ``OK``; bits that may be combined::

    >>> jfric.Flag.ZENO in jfric.Flag(int(jfric.Flag.ZENO | jfric.Flag.SIMULTANEOUS))
    True
    """

    def __new__(cls, code: int, message: str) -> Self:
        """The member with a number and its message."""
        return _worded(cls, code, message)

    #: Two crossings closer than 1e-7 of the natural step, a guard touched without crossing, or a
    #: change of mode exactly at a break of a function of time.
    GRAZING = (
        1,
        "a contact was touched without crossing, or two events (also breaks of functions of "
        "time) nearly coincide: a small change of the system may change what happens there",
    )
    #: A sticking contact carried exactly its limit, at an instant or for a time, and held.
    TIE = 2, "a decision lay exactly on the edge and was resolved to stick"
    #: Contact forces are not unique; those of minimum norm are reported where they keep all limits,
    #: and by time-stepping schemes any that keep them.
    #: Where some forces hold contacts at rest and others do not, they rest.
    REDUNDANT = (
        4,
        "contact forces are not unique; those of smallest norm are given, where they keep all "
        "limits",
    )
    #: An accumulating sequence of impacts was closed.
    ZENO = 8, "an accumulating sequence of impacts was closed at its end"
    #: Several contacts changed mode at the same instant, or shared an impact although nothing
    #: presses them. Reversals of sliding that one impact causes do not count, nor contacts whose
    #: sliding follows from that of others, as feet of one body. Also where several functions of
    #: time jump at one instant within a limit, or by the smoothed and quasi-static solvers: there
    #: are no derivatives by their times, and a slow history with friction depends on their order.
    SIMULTANEOUS = 16, "several contacts changed their mode, or hit, at the same instant"
    #: A change of mode was assigned to the end of a step, or a function of time jumps within one:
    #: derivatives lack the change of its time.
    STEP_RESOLUTION = (
        32,
        "changes of mode, and jumps of loads, are known to a step only; derivatives lack how "
        "their times move",
    )
    #: An impact increased the energy, as the chosen law requires and the solver's settings allow.
    ENERGY_GAIN = 64, "an impact increased the energy, as its law demands"
    #: The trajectory has more pieces than ``dense`` has reserved space for.
    DENSE_FULL = 128, "no room for all pieces of dense output: raise dense"
    #: A user event, or an observable that had seen enough, ended the run before its end time.
    STOPPED = (
        256,
        "an event of the description ended the run, or an observable that had seen enough",
    )
    #: In addition to ``INCONSISTENT``: no modes of the contacts, or no impulses of an impact, fit
    #: where the trajectory ends (Painleve's paradox without a solution).
    NO_MODE = (
        512,
        "no modes of the contacts, or no impulses of an impact, fit where the trajectory ends: "
        "no motion with finite forces follows",
    )
    #: In addition to ``INCONSISTENT``: several sets of contact forces fit their modes, and move the
    #: system differently (Painleve's paradox with several solutions). Time-stepping schemes go on
    #: by one of these motions, with status ok.
    SEVERAL_MOTIONS = (
        1024,
        "more than one motion follows, and the trajectory ends, or a scheme chose one: friction "
        "helps a contact to press, or to let go",
    )
    #: Values and derivatives at an instant are those of one side. One of these holds: an event lies
    #: exactly on an output, a sample of a controller or the end. An impact lies on the start or on
    #: a break of a function of time. The start lies on the level of an event that changes or ends
    #: the motion. Bodies that slide at once start with equal velocities that are not zero. The
    #: start is at rest where a spring's stiffness changes. Contacts hold a body that would slide if
    #: one of them had a clearance. A time-stepping scheme chose among forces that are not unique.
    #: An event at the end has not happened yet: derivatives by ``time.end`` are rates of the motion
    #: before it.
    ONE_SIDED = (
        2048,
        "an event lies exactly on an output, the end or the start, the start is at rest where a "
        "stiffness changes, contacts hold what would slide if one of them had a clearance, or a "
        "scheme chose among forces that are not unique: values and derivatives there are those "
        "of one side",
    )

    @property
    def message(self) -> str:
        """One line of explanation for a single flag."""
        return _MESSAGES[type(self)][self]


def flags_in(code: int) -> list[Flag]:
    """The single flags that are set in ``code``."""
    return [flag for flag in Flag if int(code) & flag]


#: Flags under which derivatives with respect to parameters need not exist.
NOT_DIFFERENTIABLE = (
    Flag.GRAZING | Flag.TIE | Flag.SIMULTANEOUS | Flag.STEP_RESOLUTION | Flag.ONE_SIDED
)
