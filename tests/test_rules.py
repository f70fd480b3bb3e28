"""The rules of one contact against tables of what mechanics demands, on numbers and on arrays.

Expected values are written out, or stated anew in plain Python; no rule is asked twice.
"""

from __future__ import annotations

import itertools
import math
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jfric.contact import rules
from jfric.contact.rules import GuardSign, Kind
from jfric.numerics.tolerances import DOUBLE, SINGLE, tolerances
from jfric.results.modes import Mode

OPEN, STICK, POS, NEG, CLOSED = Mode.OPEN, Mode.STICK, Mode.SLIP_POS, Mode.SLIP_NEG, Mode.CLOSED
MODES = (OPEN, STICK, POS, NEG)
BOTH = (False, True)
INF = math.inf
DTYPES = (np.float64, np.float32)
each_precision = pytest.mark.parametrize("dtype", DTYPES)


def leaves(result) -> list[np.ndarray]:
    """The arrays of a result of a rule."""
    return [np.asarray(x) for x in jax.tree.leaves(result)]


def check(rule, rows, expected, dtype=np.float64):
    """``rule`` of each of the ``rows`` is what is ``expected`` of it.

    All rows are asked as arrays of shape (k,), one of them as numbers.
    """
    columns = [np.asarray(c) for c in zip(*rows, strict=True)]
    types = {"f": dtype, "i": np.int32}
    columns = [jnp.asarray(c, types.get(c.dtype.kind, c.dtype)) for c in columns]
    wanted = [np.asarray(c) for c in zip(*expected, strict=True)]
    found = leaves(rule(*columns))
    assert len(found) == len(wanted)
    for part, (a, b) in enumerate(zip(found, wanted, strict=True)):
        a = np.broadcast_to(a, b.shape)
        wrong = [i for i in range(len(rows)) if a[i] != b[i]]
        assert not wrong, f"part {part} of {rows[wrong[0]]}: {a[wrong[0]]}, not {b[wrong[0]]}"
        assert a.dtype.kind == b.dtype.kind
    middle = len(rows) // 2
    alone = leaves(rule(*(c[middle] for c in columns)))
    for a, b in zip(alone, wanted, strict=True):
        assert a.shape == ()
        assert a == b[middle]


def sign(code):
    """A guard's sign from its place in :data:`SIGNS`."""
    order, null, violated = (np.asarray(x)[code] for x in zip(*SIGNS, strict=True))
    return GuardSign(jnp.asarray(order, jnp.int32), jnp.asarray(null), jnp.asarray(violated))


#: Orders, identically zero or not, violated or not.
SIGNS = [(k, False, v) for k in (0, 1, 2) for v in BOTH] + [(5, True, False)]
KINDS = {
    "friction": Kind(False),
    "unilateral": Kind(True),
    "frictionless": Kind(True, True),
}


def test_what_is_not_said_of_a_contact_is_not_so():
    assert Kind(True) == (True, False, False)


# The sign of a guard.


def first_coefficient(leading, zero, known, of_force, limits):
    """Order, null, violated: the law in plain Python."""
    count = len(leading)
    for k in range(count):
        c, size = abs(leading[k]), zero[k]
        if c <= size:
            continue
        if k < known and not (of_force and c > limits.known * size):
            continue
        if of_force and 1 <= k < count - 1 and leading[k] < 0 < leading[k + 1]:
            # Least value of c s^k + d s^(k+1) for s > 0.
            s = k * c / ((k + 1) * leading[k + 1])
            if -(leading[k] * s**k + leading[k + 1] * s ** (k + 1)) <= zero[0]:
                continue
        return k, False, leading[k] < 0
    return count, True, False


@each_precision
def test_guard_sign(dtype):
    limits = tolerances(dtype)
    size = 2.0**-10
    levels = [0.0, size, -size, 2 * size, -2 * size]
    far = limits.known * size
    levels += [far, 2 * far, -2 * far]
    rows = []
    for leading in itertools.product(levels, levels, [0.0, -2 * size, 2 * far], [0.0, 3 * far]):
        for known, of_force in itertools.product((0, 1, 2), BOTH):
            rows.append((*leading, known, of_force))
    zero = [size] * 4
    expected = [first_coefficient(row[:4], zero, row[4], row[5], limits) for row in rows]

    def rule(a, b, c, d, known, of_force):
        zeros = jnp.asarray([size] * 4, dtype)
        return rules.guard_sign([a, b, c, d], zeros, known=known, of_force=of_force)

    check(rule, rows, expected, dtype)
    # What is known while tracing: both, or whether it is a force.
    for known, of_force in itertools.product((0, 1, None), BOTH):
        some = [i for i, row in enumerate(rows) if known in (row[4], None) and row[5] == of_force]

        def static(*row, known=known, of_force=of_force):
            zeros = jnp.asarray([size] * 4, dtype)
            known = row[4] if known is None else known
            return rules.guard_sign(row[:4], zeros, known=known, of_force=of_force)

        check(static, [rows[i] for i in some], [expected[i] for i in some], dtype)


@each_precision
def test_a_limit_that_turns_in_time_is_touched(dtype):
    """``-a s + b s^2`` is least at ``a/(2b)``, by ``a^2/(4b)``: half of that is beyond what counts
    as zero, all of it within. So for order 2: ``4 a^3/(27 b^2)``."""
    a, b = 0.25, 0.5
    depth = {1: a**2 / (4 * b), 2: 4 * a**3 / (27 * b**2)}
    assert rules.touches_limit(jnp.asarray(-a, dtype), jnp.asarray(b, dtype), 1, depth[1])
    for k, least in depth.items():
        rows = [
            (-a, b, 1.001 * least),
            (-a, b, 0.999 * least),
            (a, b, 2 * least),
            (0.0, b, 2 * least),
            (-a, -b, 2 * least),
            (-a, 0.0, 2 * least),
        ]
        expected = [(True,), (False,), (False,), (False,), (False,), (False,)]
        check(lambda x, y, z, k=k: rules.touches_limit(x, y, k, z), rows, expected, dtype)


def test_what_may_stay_at_zero():
    """All but the gap of a contact that has just bounced."""
    rows = [(0, False, False), (0, False, True), (1, False, False), (1, False, True)]
    rows += [(2, False, True), (5, True, False), (5, True, True)]

    def rule(order, null, bounced):
        sign = rules.GuardSign(order, null, jnp.asarray(False))
        return rules.may_stay_at_zero(sign, bounced)

    expected = [(False,), (False,), (True,), (False,), (True,), (True,), (True,)]
    check(rule, rows, expected)


def test_a_touch_counts_from_the_first_order_on_and_needs_a_next_one():
    """A value is no touch, nor is the last coefficient, of which nothing more is known."""
    rows = [(-1e-3, 1.0, 1.0), (0.0, -1e-3, 1.0), (0.0, 0.0, -1e-3)]
    zero = [1e-4, 1e-9, 1e-9]
    expected = [(0, False, True), (2, False, False), (2, False, True)]
    check(lambda *c: rules.guard_sign(c, zero, of_force=True), rows, expected)
    # The velocity of sliding is no force: it is not held by anything.
    expected[1] = (1, False, True)
    check(lambda *c: rules.guard_sign(c, zero), rows, expected)


def test_each_coefficient_has_its_own_zero():
    with pytest.raises(ValueError, match="shorter"):
        rules.guard_sign(jnp.ones((3,)), jnp.ones((2,)))


@each_precision
def test_what_counts_as_no_acceleration_when_sliding_begins_from_rest(dtype):
    """More than the rounding of its own terms; in other modes, and in motion, no more."""
    rows = [(mode, known) for mode in Mode for known in (0, 1, 2)]
    sliding = (Mode.SLIP_POS, Mode.SLIP_NEG)
    expected = [(10.0 if mode in sliding and known == 1 else 1.0,) for mode, known in rows]
    check(lambda mode, known: rules.zero_acceleration(1.0, mode, known), rows, expected, dtype)


@each_precision
def test_a_double_root_turns_at_zero(dtype):
    """``g = c/2 (s - r)^2 - d``: least value ``-d``, whatever the place it is looked at from."""
    rows, expected = [], []
    for c, d, s in itertools.product((2.0, 0.5, -2.0), (-2e-3, -0.5e-3, 0.5e-3, 2e-3), (0.0, 0.25)):
        value, slope = 0.5 * c * s * s - d, -c * s
        rows.append((slope, c, 1e-3, value))
        # Of a guard that bends down the extreme value is its largest: within zero from below.
        expected.append(((d if c > 0 else -d) <= 1e-3,))
    check(rules.turns_at_zero, rows, expected, dtype)
    # At a zero: c/2 s^2 = d.
    rows = [(0.1, 1.0, 0.0049), (0.1, 1.0, 0.0051), (-0.1, -1.0, 0.0051), (0.0, 1.0, 0.0)]
    expected = [(False,), (True,), (True,), (True,)]
    check(rules.turns_at_zero, rows, expected, dtype)


def test_a_zero_that_no_event_made():
    falls = [(1, False, True), (2, False, True)]
    rows = list(itertools.product(MODES, range(len(SIGNS)), (0, 1, 2)))
    expected = [(SIGNS[c] in falls and known == 0,) for _, c, known in rows]
    check(lambda _, c, known: rules.arrives_unseen(sign(c), known), rows, expected)
    # A sliding velocity of zero is rest, whatever follows.
    expected = [(m in (POS, NEG) and SIGNS[c][0] > 0 and known == 0,) for m, c, known in rows]
    check(lambda m, c, known: rules.comes_to_rest(m, sign(c), known), rows, expected)


def test_tie():
    """A limit that is zero for a time, or alone at an instant; both are where nothing presses."""
    codes = range(len(SIGNS))
    rows = list(itertools.product(MODES, codes, codes))
    never, zero = SIGNS.index((5, True, False)), [c for c in codes if SIGNS[c][0] > 0]
    expected = [
        (m == STICK and (never in (a, b) or (a in zero) != (b in zero)),) for m, a, b in rows
    ]
    check(lambda m, a, b: rules.is_tie(m, sign(a), sign(b)), rows, expected)


# Modes.


@each_precision
def test_closed_mode(dtype):
    rows = [(0.0, 0.0), (1.0, 1.0), (-1.0, 1.0), (2.0, 1.0), (-2.0, 1.0), (1e-6, 0.0), (-1e-6, 0.0)]
    expected = [STICK, STICK, STICK, POS, NEG, POS, NEG]
    check(lambda g, s: rules.closed_mode(False, g, s), rows, [(m,) for m in expected], dtype)
    check(lambda g, s: rules.closed_mode(True, g, s), rows, [(POS,)] * len(rows), dtype)
    flags = [(*row, i % 2 == 0) for i, row in enumerate(rows)]
    mixed = [(POS if i % 2 == 0 else m,) for i, m in enumerate(expected)]
    check(lambda g, s, f: rules.closed_mode(f, g, s), flags, mixed, dtype)


def following(kind, mode, a, b, closed, tangent=0, normal=0):
    """Mode, hits, touching, pressed: the law in plain Python."""
    order, null, violated = a
    unilateral, _, unlimited = kind
    beyond = b[2]
    hits = pressed = False
    touching = unilateral and (mode != OPEN or order >= 1 or violated)
    if mode == OPEN:
        if unilateral and violated:
            return closed, order <= 1, touching, False
        # A contact that cannot open is never open; its rules say nothing.
        return OPEN, False, touching, False
    if mode == STICK:
        if unlimited:
            after = POS if violated else STICK if null else NEG
            lifts = beyond
        else:
            after = POS if violated else NEG if beyond else STICK
            lifts = violated and beyond
        if tangent:
            after = POS if tangent > 0 else NEG
    else:
        after = mode
        if violated:
            after = (NEG if mode == POS else POS) if order == 0 else STICK
        lifts = beyond
    if unilateral:
        if lifts or normal > 0:
            after = OPEN
        pressed = normal < 0
    return after, hits, touching, pressed


def table(kind):
    """All modes and signs of two guards that a contact can have."""
    modes = MODES if kind.unilateral else MODES[1:]
    return list(itertools.product(modes, range(len(SIGNS)), range(len(SIGNS)), (STICK, POS, NEG)))


@pytest.mark.parametrize("name", KINDS)
def test_next_mode(name):
    kind = KINDS[name]
    rows = table(kind)
    expected = [following(kind, m, SIGNS[a], SIGNS[b], closed) for m, a, b, closed in rows]

    def rule(mode, a, b, closed):
        return rules.next_mode(kind, mode, sign(a), sign(b), closed)

    check(rule, rows, expected)


def test_next_mode_of_several_kinds_and_with_drift():
    """Facts as arrays, and redundant contacts that move against their mode."""
    rows, expected = [], []
    for u, unlimited, t, n in itertools.product(BOTH, BOTH, (-1, 0, 1), (-1, 0, 1)):
        if (unlimited or n) and not u:
            continue
        kind = Kind(u, False, unlimited)
        for m, a, b, closed in table(kind)[::3]:
            rows.append((m, a, b, closed, u, unlimited, t, n))
            wanted = following(kind, m, SIGNS[a], SIGNS[b], closed, t, n)
            # What is touching is of interest for unilateral contacts only.
            expected.append((*wanted[:2], True if not u else wanted[2], wanted[3]))

    def rule(m, a, b, closed, u, unlimited, t, n):
        kind, drift = Kind(u, False, unlimited), rules.Drift(t, n)
        found = rules.next_mode(kind, m, sign(a), sign(b), closed, drift=drift)
        return found._replace(touching=found.touching | ~u)

    check(rule, rows, expected)


def test_without_limits_the_normal_force_alone_opens():
    """The one flag that is true of all contacts: a Python bool stands for it."""
    kind = Kind(True, False, True)
    rows = [(STICK, a, b, POS) for a in range(len(SIGNS)) for b in range(len(SIGNS))]
    expected = [following(kind, m, SIGNS[a], SIGNS[b], c) for m, a, b, c in rows]
    check(lambda m, a, b, c: rules.next_mode(kind, m, sign(a), sign(b), c), rows, expected)


def test_known_zeros():
    rows = list(itertools.product(MODES, MODES, (0, 1, 2), (0, 1), BOTH))
    expected = []
    for mode, after, first, second, at_rest in rows:
        if mode == after:
            expected.append((first, second))
        elif after == OPEN:
            # Gap and rate: it was in contact until now.
            expected.append((2, 0))
        elif after == STICK:
            # Limits of a force, of which nothing is known.
            expected.append((0, 0))
        else:
            rested = mode == STICK or at_rest or (mode in (POS, NEG) and first >= 1)
            expected.append((1 if rested else 0, 0))

    def rule(mode, after, first, second, at_rest):
        return rules.known_zeros(mode, after, (first, second), at_rest)

    check(rule, rows, expected)


@each_precision
def test_predicted_mode(dtype):
    """A body of compliance 0.5 that slides: ``friction - a / 0.5`` would hold it, at most
    0.3 * 10 forwards and 0.6 * 10 back."""
    holds = {-6.5: POS, -5.99: STICK, 0.0: STICK, 2.99: STICK, 3.01: NEG, 6.5: NEG}
    edge = 0.5 * tolerances(dtype).excess
    holds |= {-6.0 * (1 + edge): STICK, 3.0 * (1 + edge): STICK}
    holds |= {-6.0 * (1 + 8 * edge): POS, 3.0 * (1 + 8 * edge): NEG}
    rows, expected = [], []
    for mode, one, other, needed in itertools.product(MODES, BOTH, BOTH, holds):
        friction = -1.0
        rows.append((mode, one, other, friction, (friction - needed) * 0.5))
        after = mode
        if mode in (POS, NEG):
            after = OPEN if other else holds[needed] if one else mode
        if mode == STICK:
            after = NEG if other else POS if one else mode
        expected.append((after,))

    def rule(mode, one, other, friction, acceleration):
        normal, compliance = jnp.asarray(10.0, dtype), jnp.asarray(0.5, dtype)
        alone = 2.0 * compliance
        trial = rules.Trial(friction, normal, acceleration, compliance, alone, 0.6, 0.3)
        return rules.predicted_mode(mode, one, other, trial)

    check(rule, rows, expected, dtype)
    # Where what is known does not tell what follows, what sticks or stops sticks.
    stays = [
        (STICK if m == STICK or (m in (POS, NEG) and one and not other) else after,)
        for (m, one, other, *_), (after,) in zip(rows, expected, strict=True)
    ]

    def undecided(mode, one, other, friction, acceleration):
        given = friction, jnp.asarray(10.0, dtype), acceleration, jnp.asarray(0.5, dtype), 1.0, 0.6
        return rules.predicted_mode(mode, one, other, rules.Trial(*given, 0.3), True)

    check(undecided, rows, stays, dtype)
    # A force that moves nothing against the others, but for rounding: they carry the contact.
    small = tolerances(dtype).pivot
    wanted = {1.2: POS, -1.2: NEG, 0.0: STICK}
    for mode, compliance, a in itertools.product((POS, NEG), (0.0, -1.0, small), wanted):
        given = (jnp.asarray(x, dtype) for x in (1.0, 1.0, a, compliance, 1.0))
        trial = rules.Trial(*given, 0.6, 0.3)
        assert rules.predicted_mode(jnp.asarray(mode), True, False, trial) == wanted[a]
    # Nothing to hold, nothing to hold it: stick.
    zero, one = jnp.zeros((), dtype), jnp.ones((), dtype)
    nothing = rules.Trial(zero, zero, zero, one, one, 0.6, 0.3)
    assert rules.predicted_mode(jnp.asarray(NEG), True, False, nothing) == STICK


@each_precision
def test_has_jumped(dtype):
    limits = tolerances(dtype)
    edge = limits.jump / limits.zero * 3.0
    rows = [(0.9 * edge, 3.0), (1.1 * edge, 3.0), (-1.1 * edge, 3.0), (0.0, 0.0), (-1.0, 0.0)]
    check(rules.has_jumped, rows, [(False,), (True,), (True,), (False,), (True,)], dtype)


def release(kind, mode, known, gamma, jumped, opened):
    """Mode and known zeros of the first guard: the law in plain Python."""
    if mode != OPEN and jumped and not kind.frictionless:
        mode, known = POS if gamma > 0 else NEG, 0
    if mode != OPEN and opened and kind.unilateral:
        mode, known = OPEN, 1
    return mode, known


@pytest.mark.parametrize("name", KINDS)
def test_released(name):
    kind = KINDS[name]
    rows = list(itertools.product(MODES, (0, 1, 2), (-1.0, 0.0, 1.0), BOTH, BOTH))
    expected = [release(kind, *row) for row in rows]
    check(lambda *row: rules.released(kind, *row), rows, expected)
    # Where nothing is said of the normal velocity it has not jumped.
    some = [i for i, row in enumerate(rows) if not row[4]]
    rows, expected = [rows[i][:4] for i in some], [expected[i] for i in some]
    check(lambda *row: rules.released(kind, *row), rows, expected)


def test_released_of_several_kinds():
    rows = list(itertools.product(BOTH, BOTH, MODES, (0, 2), (-1.0, 1.0), BOTH, BOTH))
    expected = [release(Kind(*row[:2]), *row[2:]) for row in rows]
    check(lambda u, f, *row: rules.released(Kind(u, f), *row), rows, expected)


def test_starts_open():
    rows = [(0.0, 0.0, 0.0, 0.0), (1.0, 1.0, 2.0, 2.0), (-1.0, 0.5, -2.0, 2.0)]
    rows += [(1.1, 1.0, 0.0, 0.0), (0.0, 1.0, 0.1, 0.0), (0.0, 1.0, -0.1, 0.05)]
    check(rules.starts_open, rows, [(False,)] * 3 + [(True,)] * 3)
    check(rules.starts_open, [(0.0, 1.0, 0.5), (0.0, 1.0, 0.0)], [(True,), (False,)])
    pairs = [(1.0, 1.0), (1.1, 1.0), (-1.0, 0.0)]
    check(rules.starts_open, pairs, [(False,), (True,), (False,)])


def test_reported_mode():
    rows = list(itertools.product(MODES, BOTH, BOTH))
    expected = []
    for mode, null, frictionless in rows:
        shown = mode
        if mode in (POS, NEG):
            shown = CLOSED if frictionless else STICK if null else mode
        expected.append((shown,))
    check(lambda m, null, f: rules.reported_mode(f, m, null), rows, expected)
    for flag in BOTH:
        some = [i for i, row in enumerate(rows) if row[2] == flag and not row[1]]
        wanted = [expected[i] for i in some]
        check(
            lambda m, flag=flag: rules.reported_mode(flag, m), [rows[i][:1] for i in some], wanted
        )


# Impacts.


@each_precision
def test_restitution_and_time_of_bounces(dtype):
    rows = [(3.0, -4.0, 0.5), (2.0, -4.0, 0.5), (0.0, -4.0, 0.0), (-4.0, -4.0, 1.0)]
    check(rules.restitution, rows, [(1.0,), (0.0,), (0.0,), (-8.0,)], dtype)
    # 2 e v / a (1 + e + e^2 + ...) by summing the flights.
    rows = [(4.0, 2.0, 0.5), (4.0, 8.0, 0.25), (1.0, 1.0, 0.0)]
    for row in rows:
        v, a, e = row
        flights = sum(2 * v * e**k / a for k in range(1, 80))
        found = rules.time_of_bounces(*(jnp.asarray(x, dtype) for x in row))
        assert float(found) == pytest.approx(flights, rel=1e-6)
    never = [(4.0, 0.0, 0.5), (4.0, -1.0, 0.5), (0.0, 1.0, 0.5), (-1.0, 1.0, 0.5), (4.0, 1.0, 1.0)]
    never += [(4.0, 1.0, 1.5), (-4.0, -1.0, 1.5), (4.0, 0.0, 0.0)]
    check(rules.time_of_bounces, never, [(INF,)] * len(never), dtype)


@each_precision
def test_drowns(dtype):
    """A flight that fell too far comes back as high as it was: the edge. It falls further by what
    counts as zero where an impact was found late, by rounding otherwise."""
    late = tolerances(dtype).late
    rows, expected = [], []
    for e, pull, share, size, gap in itertools.product(
        (0.0, 0.25, 0.5, 1.0, 2.0),
        (-2.0, 2.0),
        (0.99, 1.01),
        (4.0, 4.0 * late),
        (0.0, late, 2.0 * late, -1.0),
    ):
        squared = 2.0 * abs(pull) * size / (1.0 - e * e) / max(e, 0.1) ** 2 if e != 1 else 1.0
        approach = share * abs(squared) ** 0.5
        rows.append((approach, pull, e, 4.0 * gap, 4.0))
        # After it: e v upwards, and then as much as falls further with the acceleration 2.
        further = 4.0 if abs(gap) > late else 4.0 * late
        up = (e * approach) ** 2
        expected.append((e < 1 and pull > 0 and up <= e**2 * up + 2.0 * pull * further,))
    # The edge itself, in numbers without rounding.
    rows.append((4.0, 0.375, 0.5, 4.0, 4.0))
    expected.append((True,))
    check(rules.drowns, rows, expected, dtype)


@each_precision
def test_hit(dtype):
    rows, expected = [], []
    for mode, touching, approach, pull, e, negligible, gap in itertools.product(
        MODES,
        BOTH,
        (-4.0, 0.5, 1.0, 4.0),
        (-2.0, 2.0),
        (0.0, 0.5, 1.0),
        (0.25, 1.0, 4.0, 8.0),
        (0.0, 1.0),
    ):
        rows.append((mode, touching, approach, 1.0, pull, e, negligible, gap))
        hits = touching and approach > 1.0
        rest = 2 * e * approach / pull / (1 - e) if pull > 0 and approach > 0 and e < 1 else INF
        drowns = bool(rules.drowns(*(jnp.asarray(x, dtype) for x in (approach, pull, e, gap, 1.0))))
        ends = hits and e > 0 and (rest <= negligible or drowns)
        holds = 0.0 if ends or mode != OPEN else e
        expected.append((hits, ends, holds, rest, 2.0 + rest if ends else -INF))
    assert any(
        row[-1] and found[1] and found[3] > row[-2]
        for row, found in zip(rows, expected, strict=True)
    )

    def rule(mode, touching, approach, small, pull, e, negligible, gap):
        limits = {"negligible": negligible, "gap": gap, "resolution": jnp.ones((), dtype)}
        found = rules.hit(mode, touching, approach, small, pull=pull, e=e, **limits)
        return (*found, found.due(jnp.asarray(2.0, dtype)))

    check(rule, rows, expected, dtype)


@each_precision
def test_ends_chatter(dtype):
    c = tolerances(dtype)
    rows = []
    for fast, late in itertools.product((0.0, 0.9, -0.9, 1.1, -1.1), (0.0, 0.9, 1.1)):
        velocity, since = fast * c.chatter_velocity * 3.0, late * c.chatter_time * 5.0
        rows.append((velocity, 3.0, since, 5.0))
    expected = [
        (abs(f) < 1 and late < 1,)
        for f, late in itertools.product((0.0, 0.9, -0.9, 1.1, -1.1), (0.0, 0.9, 1.1))
    ]
    check(rules.ends_chatter, rows, expected, dtype)
    # At once, and at rest.
    assert rules.ends_chatter(*(jnp.zeros((), dtype) for _ in range(4)))


def impact_rows() -> list[tuple[Any, ...]]:
    """Ways a unilateral contact may leave an impact."""
    found = (OPEN, STICK, POS, CLOSED)
    speeds = (-2.0, -1.0, 0.5, 2.0)
    return list(itertools.product(found, BOTH, speeds, speeds, (0.0, 0.5)))


def after_impact(row, *, frictionless=False, smooth=False, ends=(False, False)):
    """Mode, and whether it chatters: the law in plain Python."""
    found, touching, tangent, normal, e = row
    mode = STICK if abs(tangent) <= 1.0 else POS if tangent > 0 else NEG
    if frictionless:
        mode = POS
    elif ends[0] or (found == STICK and not smooth):
        mode = STICK
    rests = touching and (abs(normal) <= 1.0 or (found != OPEN and e == 0))
    chatters = touching and not rests and ends[1]
    return mode if rests or chatters else OPEN, chatters


@pytest.mark.parametrize(("frictionless", "smooth"), [(False, False), (True, False), (False, True)])
def test_mode_after_impact(frictionless, smooth):
    rows = impact_rows()

    def rule(found, touching, tangent, normal, e):
        return rules.mode_after_impact(
            frictionless, found, touching, (tangent, normal), (1.0, 1.0), e, smooth=smooth
        )

    expected = [after_impact(r, frictionless=frictionless, smooth=smooth) for r in rows]
    check(rule, rows, expected)


def test_mode_after_impact_of_several_kinds_at_the_end_of_a_sequence():
    rows = [(*row, *flags) for row in impact_rows() for flags in itertools.product(BOTH, repeat=4)]
    expected = [
        after_impact(row[:5], frictionless=row[5], smooth=row[6], ends=row[7:]) for row in rows
    ]

    def rule(found, touching, tangent, normal, e, frictionless, smooth, one, other):
        return rules.mode_after_impact(
            frictionless,
            found,
            touching,
            (tangent, normal),
            (1.0, 1.0),
            e,
            smooth=smooth,
            ends=(one, other),
        )

    check(rule, rows, expected)


def test_each_direction_has_its_own_zero_after_an_impact():
    row = (jnp.asarray(POS), jnp.asarray(True), (1.5, 1.5))
    for small, mode in (((1.0, 2.0), POS), ((2.0, 2.0), STICK), ((2.0, 1.0), OPEN)):
        assert rules.mode_after_impact(False, *row, small, 0.5).mode == mode
    # A contact has friction in an impact unless something else is said.
    row = (jnp.asarray(STICK), *row[1:])
    assert rules.mode_after_impact(False, *row, (1.0, 2.0), 0.5).mode == STICK


def test_element_after_impact():
    rows = list(itertools.product(MODES[1:], (0.0, 3.0), (0.5, -0.5, 1.0, 3.5, 4.5, -2.0), BOTH))
    expected = []
    for mode, before, after, ends in rows:
        if abs(after - before) <= 1.0:
            expected.append((mode,))
        elif ends or abs(after) <= 1.0:
            expected.append((STICK,))
        else:
            expected.append((POS if after > 0 else NEG,))

    def rule(mode, before, after, ends):
        return rules.element_after_impact(mode, before, after, 1.0, ends)

    check(rule, rows, expected)
    some = [i for i, row in enumerate(rows) if not row[3]]
    static = [rows[i][:3] for i in some]
    wanted = [expected[i] for i in some]
    check(lambda m, a, b: rules.element_after_impact(m, a, b, 1.0), static, wanted)


def test_known_after_impact():
    rows = list(itertools.product(MODES, MODES, BOTH, (0, 1, 2)))
    expected = [
        (int(touching and after == OPEN), known if mode == after else 0)
        for mode, after, touching, known in rows
    ]
    check(rules.known_after_impact, rows, expected)


@each_precision
def test_energy_of_impulses(dtype):
    """A mass of 2 from -3 to 1 by an impulse of 8: 1 - 9 J."""
    check(rules.impulse_energy, [(8.0, -3.0, 1.0), (8.0, 1.0, 2.0)], [(-8.0,), (12.0,)], dtype)
    part = tolerances(dtype).energy
    rows = [(-1.0, 4.0), (0.0, 4.0), (0.9 * part * 4.0, 4.0), (1.0, 4.0), (1e-3, 0.0)]
    expected = [(0.0,), (0.0,), (0.0,), (1.0,), (float(dtype(1e-3)),)]
    check(rules.energy_gain, rows, expected, dtype)
    assert rules.energy_gain(jnp.asarray(4.4 * part, dtype), 4.0) > 0
    assert rules.energy_gain(jnp.asarray(part, dtype), 1.0) == 0


@each_precision
def test_pivots(dtype):
    edge = tolerances(dtype).pivot
    rows = [(1.0,), (0.0,), (-0.9 * edge,), (-1.1 * edge,), (-1.0,), (math.nan,)]
    expected = [(True,), (True,), (True,), (False,), (False,), (False,)]
    check(rules.is_unique, rows, expected, dtype)
    assert rules.is_unique(jnp.asarray(-edge, dtype))


def test_fast_sliding_goes_on():
    rows = [(1.01e4, 1.0), (0.99e4, 1.0), (1.0, 0.0), (0.0, 0.0)]
    check(rules.slides_through, rows, [(True,), (False,), (True,), (False,)])


def test_contacts_in_a_time_step():
    rows = list(itertools.product((-1.0, 0.0, 1.0), (-1.0, 0.0, 1.0)))
    check(rules.hits_in_step, rows, [(b < 0 and p > 0,) for b, p in rows])
    # Rebound 0.5 * 2 = 1 against what the forces take back: -2 - (-2.5) = 0.5, or 1, or 2, or none.
    rows = [(-2.0, after, 0.5) for after in (-2.5, -3.0, -4.0, -2.0, 1.0)]
    rows += [(-2.0, 1.0, 0.0), (1.0, 5.0, 0.5)]
    expected = [(False,), (True,), (True,), (False,), (False,), (True,), (True,)]
    check(rules.rests_after_step, rows, expected)


def test_slides_and_slip():
    check(rules.slides, [(m,) for m in Mode], [(m in (POS, NEG),) for m in Mode])
    check(rules.slip, [(True,), (False,)], [(POS,), (NEG,)])


# Tolerances.


def test_tolerances_by_precision():
    """Nothing counts as nonzero that rounding alone may make so, and thresholds that follow each
    other keep their order in both precisions."""
    assert tolerances(np.float64) is DOUBLE
    assert tolerances(np.float32) is SINGLE
    for dtype in DTYPES:
        c, eps = SimpleNamespace(**tolerances(dtype)._asdict()), np.finfo(dtype).eps
        assert all(64 * eps < x for x in (c.zero, c.pivot, c.energy, c.jump, c.excess))
        assert c.zero < c.zero * c.known < 1e-2
        assert c.zero < c.jump < 1e-2
        assert c.energy < 1e-4


def test_holds_next():
    """All combinations: held is what was or would reverse, unless it has been released."""
    table = np.asarray(list(itertools.product([False, True], repeat=3)))
    found = rules.holds_next(*jnp.asarray(table).T)
    expected = [False, False, True, False, True, False, True, False]
    np.testing.assert_array_equal(found, expected)
