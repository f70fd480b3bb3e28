"""A branch from what was followed in both directions from one of its states."""

from __future__ import annotations

import numpy as np

from jfric.statics.branch import Branch, SpecialPoint
from jfric.statics.follower import Trace


def joined(parts: list[Trace], n: int, nt: int, nu: int) -> Branch:
    """One branch from what was followed in one or both directions, of ``n`` degrees of freedom,
    ``nt`` contacts and ``nu`` normal forces."""
    ahead = parts[0]
    rows, special = list(ahead.rows), list(ahead.special)
    steps = list(ahead.steps)
    if len(parts) > 1:
        back = parts[1]
        # The start itself is the first row of both.
        shift = len(back.rows)
        rows = [*back.rows[::-1], *rows]
        special = [
            *(_reversed(point, shift) for point in back.special[::-1]),
            *(_shifted(point, shift) for point in special),
        ]
        steps = [*back.steps, *steps]
    ends = np.cumsum([n, nt, nu])

    def column(pick) -> np.ndarray:
        return np.stack([pick(row) for row in rows])

    def parts_of(field: str):
        return np.split(column(lambda row: getattr(row, field)), ends, axis=1)

    q, lambda_t, lambda_n, reaction = parts_of("x")
    dq, dlambda_t, dlambda_n, dreaction = parts_of("dx")
    return Branch(
        parameter=np.asarray([row.p for row in rows]),
        q=q,
        lambda_t=lambda_t,
        lambda_n=lambda_n,
        mode=column(lambda row: row.mode),
        dq=dq,
        dlambda_t=dlambda_t,
        dlambda_n=dlambda_n,
        special=tuple(special),
        steps=tuple(steps),
        closed=ahead.closed,
        reaction=reaction,
        dreaction=dreaction,
    )


def _shifted(point: SpecialPoint, shift: int) -> SpecialPoint:
    return SpecialPoint(**{**vars(point), "row": point.row + shift})


def _reversed(point: SpecialPoint, count: int) -> SpecialPoint:
    """The special point as met in the opposite direction of a trace with ``count`` rows."""
    return SpecialPoint(
        **{
            **vars(point),
            "mode_before": point.mode_after,
            "mode_after": point.mode_before,
            "dq_before": point.dq_after,
            "dq_after": point.dq_before,
            "row": count - 1 - point.row - (0 if point.mode_after is None else 1),
        }
    )
