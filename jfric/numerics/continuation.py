"""Continuation of curves: steps along them, and places between two points.

Algorithms are generators: they yield a request for a computation and are sent the answer. They know
no equations and do not depend on who answers: a function (:func:`run`), another generator
(:func:`delegate`), or one batch for many curves (:func:`side_by_side`).
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Callable, Generator, Hashable, Sequence
from typing import Any, NamedTuple, TypeVar

Request = TypeVar("Request")
Answer = TypeVar("Answer")
Further = TypeVar("Further")
Reply = TypeVar("Reply")
Result = TypeVar("Result")

#: Reasons for the end of a curve that :func:`steps` itself gives.
STALLED, TOO_MANY = "stalled", "too many steps"
#: Rounds of Brent's method.
ROUNDS = 100


def run(
    generator: Generator[Request, Answer, Result], answer: Callable[[Request], Answer]
) -> Result:
    """Result of a generator whose requests the function ``answer`` computes."""
    try:
        request = next(generator)
        while True:
            try:
                found = answer(request)
            except BaseException as error:  # the generator may keep what it has
                request = generator.throw(error)
            else:
                request = generator.send(found)
    except StopIteration as end:
        return end.value


def delegate(
    generator: Generator[Request, Answer, Result],
    answer: Callable[[Request], Generator[Further, Reply, Answer]],
) -> Generator[Further, Reply, Result]:
    """Result of a generator whose requests are answered by other generators with their own
    requests."""
    try:
        request = next(generator)
        while True:
            request = generator.send((yield from answer(request)))
    except StopIteration as end:
        return end.value


def side_by_side(
    generators: Sequence[Generator[Request, Answer, Result]],
    kind: Callable[[Request], Hashable],
    compute: Callable[[list[Request]], Sequence[Answer]],
) -> list[Result]:
    """Results of all generators, whose requests are computed together.

    When every generator waits, ``compute`` answers the requests of the most frequent ``kind``. An
    error, or an interruption, closes all generators.
    """
    results: list[Any] = [None] * len(generators)
    waiting: dict[int, Request] = {}

    def advance(i: int, request: Callable[[], Request]) -> None:
        try:
            waiting[i] = request()
        except StopIteration as end:
            results[i] = end.value

    try:
        for i, generator in enumerate(generators):
            advance(i, lambda generator=generator: next(generator))
        while waiting:
            most = Counter(map(kind, waiting.values())).most_common(1)[0][0]
            chosen = [i for i, request in waiting.items() if kind(request) == most]
            answers = compute([waiting.pop(i) for i in chosen])
            for i, answer in zip(chosen, answers, strict=True):
                advance(i, lambda i=i, answer=answer: generators[i].send(answer))
    finally:
        for generator in generators:
            generator.close()
    return results


class Lengths(NamedTuple):
    """Longest step along a curve, and the length below which the curve ends."""

    longest: float
    shortest: float


class Trial(NamedTuple):
    """Request for a step of length ``size`` from the point ``here``; ``first``: whether no step
    from there was tried before."""

    here: Any
    size: float
    first: bool


class Advance(NamedTuple):
    """Outcome of a step: the point at its end, None where the step was too long, and the length of
    the next one; ``ended``: the reason why nothing follows."""

    point: Any
    size: float = 0.0
    ended: str = ""


def steps(here: Any, size: float, lengths: Lengths, most: int) -> Generator[Trial, Advance, str]:
    """Reason for the end of a curve after steps from the point ``here``, at most ``most``, the
    first of length ``size``."""
    for _ in range(most):
        first = True
        while True:
            advance = yield Trial(here, min(size, lengths.longest), first)
            if advance.ended:
                return advance.ended
            size, first = advance.size, False
            if advance.point is not None:
                break
            if size < lengths.shortest:
                return STALLED
        here = advance.point
    return TOO_MANY


def zero(
    low: tuple[float, float], high: tuple[float, float], accuracy: float
) -> Generator[float, float, float]:
    """Zero of a function between two places, each given with the value there, whose signs differ.

    Source: R. P. Brent, Algorithms for Minimization without Derivatives (1973), chapter 4.
    """
    (old, f_old), (x, f), (other, f_other) = low, high, low
    before = last = x - old
    for _ in range(ROUNDS):
        if f_old and f and (f_old < 0.0) != (f < 0.0):
            other, f_other = old, f_old
            before = last = x - old
        if abs(f_other) < abs(f):
            old, x, other = x, other, x
            f_old, f, f_other = f, f_other, f
        least = 0.5 * (accuracy + 4.0 * sys.float_info.epsilon * abs(x))
        half = 0.5 * (other - x)
        if f == 0.0 or abs(half) < least:
            break
        step = math.inf
        if abs(before) > least and abs(f) < abs(f_old):
            if old == other:
                step = -f * (x - old) / (f - f_old)
            else:
                by_old, by_other = (f_old - f) / (old - x), (f_other - f) / (other - x)
                step = -f * (f_other * by_other - f_old * by_old)
                step /= by_other * by_old * (f_other - f_old)
        if 2.0 * abs(step) < min(abs(before), 3.0 * abs(half) - least):
            before, last = last, step
        else:
            before = last = half
        old, f_old = x, f
        x += last if abs(last) > least else math.copysign(least, half)
        f = yield x
    return x


def halved(
    low: float, high: float, relative: float, absolute: float, most: int
) -> Generator[float, bool, tuple[float, float]]:
    """Two places between which a property ends, which holds at ``low`` and not at ``high``.

    Their distance is at most the larger of ``relative`` times ``high`` and ``absolute``, or the
    remainder after ``most`` halvings.
    """
    for _ in range(most):
        if abs(high - low) <= max(relative * abs(high), absolute):
            break
        middle = 0.5 * (low + high)
        if (yield middle):
            low = middle
        else:
            high = middle
    return low, high
