"""Errors that a user can mend."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class ProblemError(ValueError):
    """A description that cannot be simulated. One sentence: the field, what was found, what is
    allowed and, where there is one, the nearest valid choice."""


def nearest(found: str, allowed: Iterable[str]) -> str:
    """`` (did you mean 'x'?)`` for the closest of ``allowed``, or nothing."""
    close = difflib.get_close_matches(str(found), list(allowed), n=1, cutoff=0.4)
    return f" (did you mean {close[0]!r}?)" if close else ""
