"""Modes of contacts, as integers for arrays and as names for people."""

from __future__ import annotations

from enum import IntEnum


class Mode(IntEnum):
    """Mode of a contact.

    ``CLOSED`` is a frictionless contact that presses, ``SLIP`` sliding in a plane::

    >>> [mode.label for mode in jfric.Mode]
    ['open', 'stick', 'slip+', 'slip-', 'closed', 'slip']
    """

    OPEN = 0
    STICK = 1
    SLIP_POS = 2
    SLIP_NEG = 3
    CLOSED = 4
    SLIP = 5

    @property
    def label(self) -> str:
        """Name used in tables: ``open``, ``stick``, ``slip+``, ``slip-``, ``closed``,
        ``slip``."""
        return ("open", "stick", "slip+", "slip-", "closed", "slip")[self]
