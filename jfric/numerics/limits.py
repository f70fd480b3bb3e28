"""Limits on counts, and the error message for a count beyond them: memory and time are finite."""

from __future__ import annotations

from numbers import Integral
from typing import Any

from jfric.errors import ProblemError, quoted

#: Outputs of a run: each takes some hundred bytes.
OUTPUTS = 10_000_000
#: Rows of the event log.
EVENTS = 10_000_000
#: Passes, steps and events are counted in 32 bits.
STEPS = 2**31 - 1
#: Straight lines for harmonic functions of time.
INCREMENTS = 10_000_000
#: Trajectories of a sweep.
TRAJECTORIES = 10**10
#: Starts of an optimiser, or of Newton's method.
STARTS = 100_000
#: Values of a parameter at which branches are searched.
SEEDS = 10_000
#: Devices between which the processors are divided, and processes.
DEVICES = 256
#: Samples that a controller remembers.
SAMPLES = 1_000_000
#: Sliders of one element.
PARTS = 10_000

#: Settings of solvers that count something: least and most.
COUNTS = {"max_steps": (1, STEPS), "max_events": (0, EVENTS), "increments": (1, INCREMENTS)}


def require_double(what: str) -> None:
    """Raise :class:`ProblemError` where JAX uses single precision, in which ``what`` (in the
    plural) cannot be found."""
    import jax

    if not jax.config.read("jax_enable_x64"):
        raise ProblemError(
            f"precision: found float32, {what} need float64: call "
            "jax.config.update('jax_enable_x64', True) before anything else"
        )


def require_count(where: str, value: Any, least: int, most: int) -> None:
    """Raise :class:`ProblemError` unless ``value`` is a whole number from ``least`` to ``most``."""
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if whole and least <= int(value) <= most:
        return
    found = quoted(value) if isinstance(value, str) else short(value)
    raise ProblemError(
        f"{where}: found {found}, expected a whole number, at least {least} and at most {most}"
    )


def require_part(where: str, value: float) -> None:
    """Raise :class:`ProblemError` unless ``value`` lies above 0 and up to 1."""
    if not 0.0 < value <= 1.0:
        raise ProblemError(f"{where}: found {value}, must be above 0 and at most 1")


def parse_count(text: str, where: str, least: int, most: int) -> int:
    """Whole number written in ``text``; raises :class:`ProblemError` like :func:`require_count`."""
    digits = text.strip().replace("_", "")
    # No count has twenty digits, and Python refuses to read thousands of them.
    value: Any = int(digits) if digits.isdecimal() and len(digits) <= 20 else text.strip()
    require_count(where, value, least, most)
    return value


def short(value: Any) -> str:
    """Text for a number, short however large the number is."""
    if isinstance(value, int) and abs(value) >= 10**20:
        return f"a number of {value.bit_length()} bits"
    return str(value)


def require_sizes(solver: Any) -> None:
    """Raise :class:`ProblemError` where a solver's steps or events cannot be counted or stored."""
    for name, (least, most) in COUNTS.items():
        value = getattr(solver, name, None)
        if value is not None:
            require_count(name, value, least, most)


def require_step(dt: Any, span: float) -> None:
    """Raise :class:`ProblemError` where the steps ``dt`` [s] in ``span`` [s] cannot be counted."""
    if getattr(dt, "ndim", 0) == 0 and float(dt) > 0.0 and not span / float(dt) < STEPS:
        raise ProblemError(
            f"dt: found {float(dt):g} s, the {span:g} s to be simulated are more than {STEPS} "
            f"steps of it; must be at least {span / STEPS:.2g} s"
        )
