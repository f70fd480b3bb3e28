"""Steps along curves, zeros, and computations side by side, without any equations."""

import math

import pytest
from scipy.optimize import brentq

from jfric.numerics.continuation import (
    STALLED,
    TOO_MANY,
    Advance,
    Lengths,
    delegate,
    halved,
    run,
    side_by_side,
    steps,
    zero,
)


def test_a_zero_is_found_where_brent_finds_it():
    for function, low, high in (
        (math.cos, 0.0, 3.0),
        (lambda x: x**9 - 0.1, -1.0, 1.5),
        (lambda x: math.exp(-40.0 * x) - 1e-3, 0.0, 1.0),
        (lambda x: -1.0 if x < 0.3 else 1.0, 0.0, 1.0),
    ):
        asked = []

        def answer(x, function=function, asked=asked):
            asked.append(x)
            return function(x)

        found = run(zero((low, function(low)), (high, function(high)), 1e-13), answer)
        known, report = brentq(function, low, high, xtol=1e-13, full_output=True)
        assert found == known
        assert len(asked) == report.function_calls - 2


def test_halving_ends_at_the_accuracy_asked_for():
    low, high = run(halved(0.0, 2.0, 1e-9, 0.0, 100), lambda x: x < 0.7)
    assert low < 0.7 <= high
    assert high - low <= 1e-9 * high
    low, high = run(halved(0.0, -2.0, 0.0, 0.0, 3), lambda x: x > -0.7)
    assert (low, high) == (-0.5, -0.75)


def test_steps_shrink_until_they_hold_and_end_with_a_reason():
    def answer(trial):
        if trial.here == 5:
            return Advance(None, ended="arrived")
        return (
            Advance(trial.here + 1, 2.0 * trial.size) if trial.size <= 0.5 else Advance(None, 0.4)
        )

    lengths = Lengths(longest=1.0, shortest=1e-3)
    sizes = []
    assert run(steps(0, 9.0, lengths, 10), lambda t: sizes.append(t.size) or answer(t)) == "arrived"
    assert sizes[:4] == [1.0, 0.4, 0.8, 0.4]
    assert run(steps(0, 1.0, lengths, 2), answer) == TOO_MANY
    assert run(steps(0, 1.0, lengths, 2), lambda t: Advance(None, 0.5 * t.size)) == STALLED


def test_what_many_wait_for_is_computed_together_and_an_error_closes_all():
    batches, closed = [], []

    def squares(count, kind):
        try:
            total = 0
            for i in range(count):
                total += yield from delegate(pairs(i), lambda x: ask(x, kind))
            return total
        finally:
            closed.append(count)

    def pairs(i):
        return (yield i) + (yield i + 1)

    def ask(x, kind):
        return (yield kind, x)

    def compute(requests):
        batches.append([kind for kind, _ in requests])
        return [x**2 for _, x in requests]

    tasks = [squares(count, kind) for count, kind in ((2, "a"), (3, "b"), (3, "b"))]
    assert side_by_side(tasks, lambda request: request[0], compute) == [6, 19, 19]
    assert batches == [["b"] * 2] * 6 + [["a"]] * 4

    def fails(requests):
        raise FloatingPointError

    closed.clear()
    with pytest.raises(FloatingPointError):
        side_by_side([squares(n, "a") for n in (1, 2)], lambda request: request[0], fails)
    assert sorted(closed) == [1, 2]
