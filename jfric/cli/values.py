"""Values of options: intervals of parameters, and times."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jfric.errors import ProblemError, within
from jfric.numerics.limits import OUTPUTS, parse_count

if TYPE_CHECKING:
    import numpy as np

    from jfric.files.config import Config
    from jfric.system.problem import Problem

INTERVAL_FORM = "path=start:stop such as contact.mu=0:1.5"


def parse_path(problem: Problem, text: str, option: str) -> str:
    """The full path of a parameter that a path follows."""
    from jfric.statics.path_names import checked_path

    with within(f"{option}: "):
        return checked_path(problem, text)


def parse_interval(problem: Problem, text: str, option: str = "--vary") -> dict[str, Any]:
    """``PATH=START:STOP``, where the values may carry units."""
    from jfric.sweeps.texts import parse_number, split_vary

    path, interval = split_vary(text, INTERVAL_FORM, option)
    ends = interval.split(":")
    if len(ends) != 2:
        raise ProblemError(f"{option}: found {text!r}, expected {INTERVAL_FORM}")
    name = parse_path(problem, path, option)
    start, stop = (parse_number(problem, name, end, option) for end in ends)
    return {"vary": name, "start": start, "stop": stop}


def followed(config: Config, text: str | None) -> dict[str, Any]:
    """The parameter and its interval: those of the option ``--vary``, or else of the file."""
    wanted = dict(config.statics) if text is None else parse_interval(config.problem, text)
    if not wanted:
        raise ProblemError(
            "--vary: not given, and the file has no table [statics]; give --vary PATH=START:STOP"
        )
    return wanted


def names_in(text: str | None) -> list[str]:
    """Names of an option, separated by commas; none without the option."""
    return [name.strip() for name in (text or "").split(",") if name.strip()]


def parse_times(text: str) -> int | np.ndarray:
    """A number of times, or the times of a list such as ``0.5, 20 ms`` in their order."""
    import numpy as np

    from jfric.system.units import DIMENSIONS, UnitError, to_si

    if text.strip().isdecimal():
        return parse_count(text, "--times", 2, OUTPUTS)
    with within("--times: ", UnitError, TypeError, ValueError):
        values = [to_si(part.strip(), DIMENSIONS["time"]) for part in text.split(",")]
        return np.unique(np.array(values, float))


def to_seconds(text: str | None, option: str) -> float | None:
    """The time of an option in seconds; None without the option."""
    from jfric.sweeps.texts import parse_time

    return None if text is None else parse_time(text, option)
