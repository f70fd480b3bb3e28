"""``jfric periodic``: a periodic motion of a system, and its path over a parameter."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from jfric.cli import options
from jfric.cli.app import command
from jfric.cli.options import setting


@dataclass(frozen=True, kw_only=True)
class PeriodicSettings(options.OnMotion):
    """Settings of ``jfric periodic``."""

    parameter: str | None = setting(
        "Follow the motion over this parameter; values may carry units. With --branch and --curve "
        "by default that of the file.",
        metavar="PATH=START:STOP",
        paths=True,
    )
    branch: str | None = setting(
        "Follow the branch that leaves this special point of the path as well: flip(1) or "
        "branch_point(1).",
        metavar="KIND(NUMBER)",
    )
    side: int = setting("To which side the branch leaves, 1 or -1.", 1, metavar="1|-1")
    curve: str | None = setting(
        "Follow this special point of the path over a second parameter: fold(1), flip(1), torus(1) "
        "or event_change(1).",
        metavar="KIND(NUMBER)",
    )
    over: str | None = setting(
        "The second parameter of --curve, from its value in the file to this one.",
        metavar="PATH=STOP[:COUNT]",
        paths=True,
    )
    show: str | None = setting(
        "Observables of a period to write and draw, separated by commas (max.x, rms.v.x).",
        metavar="NAMES",
    )
    out: Path | None = setting(
        "Folder of the result files, instead of results/<name of the file>, of a path with "
        "--parameter path-NNN there: the same command goes on after an interruption.",
        metavar="FOLDER",
    )
    plot: options.Plot = False

    @property
    def observed(self) -> list[str] | None:
        """Names of observables of a period."""
        from jfric.results.grammar import split

        return None if self.show is None else split(self.show)


@command(
    "Study",
    epilog="Example, after jfric init p1_ball: jfric periodic p1_ball.toml "
    "--parameter base.table.displacement.amplitude=0.1:0.3 --plot",
)
def periodic(given: PeriodicSettings) -> bool:
    """Find a periodic motion of a system, or follow it over a parameter.

    The table \\[periodic] of the file says how it is searched; a file without it is searched by the
    defaults. Prints its period, Floquet multipliers, stability, events and energy per cycle, and
    writes the motion over a period, or all motions over a parameter (CSV), those on a branch, and
    where a special point lies in two parameters. Exit status: 0, 1 where there is none, 2 for
    bad input.
    """
    from jfric.cli.orbits import find, follow

    alone = given.parameter is given.branch is given.curve is given.over is None
    return find(given) if alone else follow(given)
