"""Errors that a user can mend."""

from __future__ import annotations

import contextlib
import difflib
import sys
import warnings
from collections.abc import Iterable, Iterator

#: Longest text that a message repeats, and for which a similar name is looked for.
LONGEST = 60


class ProblemError(ValueError):
    """A description that cannot be simulated.

    One sentence: the field, what was found, what is allowed and, where there is one, the nearest
    valid choice. As text::

        >>> try:
        ...     jfric.Problem(["u"], {"mass": jfric.Mass("w", 1.0)})
        ... except jfric.ProblemError as error:
        ...     print(error)
        mass.direction: no degree of freedom 'w'; declared are u
    """


class SimulationError(RuntimeError):
    """A simulation that did not reach its end; one sentence with what its status means.

    >>> elements = {"mass": jfric.Mass("u", 1.0), "spring": jfric.Spring("u", 9.0)}
    >>> start = {"u": jfric.InitialState(q=0.1)}
    >>> problem = jfric.Problem(["u"], elements, initial=start, time=20.0)
    >>> solution = jfric.simulate(problem, jfric.EventDriven(max_steps=2))
    >>> try:
    ...     solution.check()
    ... except jfric.SimulationError as error:
    ...     print(error)
    status max_steps: stopped before the end time: raise max_steps
    """


def require_no_text(where: str, value: object) -> None:
    """Raise :class:`ProblemError` for a text where only a number is taken: the field that would
    say what its unit must be is not known there."""
    if isinstance(value, str):
        raise ProblemError(
            f"{where}: found the text {quoted(value)}, expected a number in SI units"
        )


def require_one_of(
    where: str, found: object, allowed: Iterable[str], are: str = "allowed are"
) -> None:
    """Raise :class:`ProblemError`, with the nearest choice, for what is not ``allowed``. ``are``:
    words before the list of what is."""
    names = list(allowed)
    if found not in names:
        near = nearest(str(found), names)
        raise ProblemError(f"{where}: found {found!r}{near}, {are} {', '.join(names)}")


def require_known(
    where: str, what: str, name: str, known: Iterable[str], say: str = "there are"
) -> None:
    """Raise :class:`ProblemError`, with the nearest choice, for a ``name`` of a ``what`` that is
    not among the ``known`` ones. ``where``: begin of the sentence; empty within another one."""
    names = list(known)
    if name not in names:
        found = f"no {what} {name!r}{nearest(name, names)}"
        raise ProblemError(
            f"{where}{': ' if where else ''}{found}; {say} {', '.join(names) or 'none'}"
        )


@contextlib.contextmanager
def within(where: str, *kinds: type[Exception]) -> Iterator[None]:
    """Block whose errors, those of ``kinds`` as well, are :class:`ProblemError` that begin with
    ``where``."""
    try:
        yield
    except (ProblemError, *kinds) as error:
        said = error.args[0] if isinstance(error, KeyError) else error
        raise ProblemError(f"{where}{said}") from None


@contextlib.contextmanager
def writing(where: str, place: object, *kinds: type[Exception]) -> Iterator[None]:
    """Block whose errors of the file system, those of ``kinds`` as well, are one sentence: what
    ``where`` asks for cannot be written to ``place``."""
    try:
        yield
    except (OSError, *kinds) as error:
        reason = getattr(error, "strerror", None) or error
        raise ProblemError(f"{where}: cannot write to {place} ({reason})") from None


def warn(text: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line of the program that called the package, however deep in it."""
    outside, level, frame = 1, 1, sys._getframe()
    while frame is not None:
        # Other packages call this one back: the outermost call of all counts.
        if str(frame.f_globals.get("__name__")).startswith("jfric."):
            outside = level + 1
        level, frame = level + 1, frame.f_back
    warnings.warn(text, category, stacklevel=outside)


def nearest(found: str, allowed: Iterable[str]) -> str:
    """`` (did you mean 'x'?)`` for the closest of ``allowed``, or nothing."""
    close = close_matches(found, allowed)
    return f" (did you mean {close[0]!r}?)" if close else ""


def close_matches(found: object, allowed: Iterable[str], cutoff: float = 0.4) -> list[str]:
    """The closest of ``allowed``, if any; none for a text that is no name by its length."""
    text = str(found)
    if len(text) > LONGEST:
        return []  # comparing takes time with the square of the length
    names = list(allowed)
    # Capitals tell symbols apart (``f``, ``F``): another case is the nearest there is.
    same = [name for name in names if name.lower() == text.lower()]
    same = same or [name for name in names if name.endswith(f".{text}")]  # the end of a path
    return same[:1] or difflib.get_close_matches(text, names, n=1, cutoff=cutoff)


def first_line(error: BaseException) -> str:
    """First line of the message of another library's error, cut after 200 characters."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0] if len(lines[0]) <= 200 else f"{lines[0][:200]}..."


def quoted(text: str) -> str:
    """``text`` in quotation marks, its end left out where it is long."""
    return repr(text) if len(text) <= LONGEST else f"{text[:LONGEST]!r}..."
