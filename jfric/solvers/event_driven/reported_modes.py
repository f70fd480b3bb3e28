"""Modes as they are reported to users."""

from __future__ import annotations

from jaxtyping import Array, Int

from jfric.contact import rules
from jfric.solvers.event_driven.prepared import Prepared
from jfric.solvers.event_driven.transitions import Signs


def reported_modes(prepared: Prepared, mode, signs: Signs) -> Int[Array, " nt"]:
    """Modes as reported to users, see :func:`jfric.contact.rules.reported_mode`."""
    null, in_plane = signs.null[: prepared.nt], prepared.mechanics.in_plane
    return rules.reported_mode(prepared.kind.frictionless, mode, null, in_plane)
