"""The earliest zero of random guards of the solver's own degree, under the solver's own rule.

Three guards at once on 9,000 steps, and on 36,000 with the slow tests: pairs of zeros down to 1e-6
of the step apart, minima just above zero, zeros at the start of known multiplicity, sines.
"""

from __future__ import annotations

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jfric.numerics.isolation import isolate
from jfric.solvers.event_driven.prepared import SMALLEST_FRACTION, constants

CONSTANTS = constants(jnp.float64)
ORDER = CONSTANTS.order
#: Largest phase of a step of the solver, in which its Taylor forms are exact to rounding.
PHASE = CONSTANTS.theta
GUARDS, CHUNK = 3, 3_000
FAMILIES = ("pair", "grazing", "known", "sine", "single", "none")
NEVER = 2.0
#: Terms of the exponential of a whole step's phase.
_SIZE = np.array([PHASE**k / math.factorial(k) for k in range(ORDER + 1)])


def _smooth(rng: np.random.Generator, count: int, degree: int) -> np.ndarray:
    """Positive factors whose coefficients fall like those of a solution's Taylor form."""
    a = rng.uniform(-1.0, 1.0, (count, degree + 1)) * _SIZE[: degree + 1]
    a[:, 0] = 1.0
    a[:, 1:] *= 0.9 / np.abs(a[:, 1:]).sum(1, keepdims=True)
    return a


def _times(a: np.ndarray, factor: np.ndarray) -> np.ndarray:
    """Products of polynomials, row by row."""
    result = np.zeros((a.shape[0], a.shape[1] + factor.shape[1] - 1))
    for k in range(factor.shape[1]):
        result[:, k : k + a.shape[1]] += factor[:, k : k + 1] * a
    return result


def _line(root: np.ndarray) -> np.ndarray:
    return np.stack([root, -np.ones_like(root)], 1)


def _guards(rng: np.random.Generator, count: int):
    """Coefficients, multiplicity of the zero at the start, first zero, and its difficulty:
    the distance to a second one."""
    family = rng.integers(0, len(FAMILIES), count)
    name = np.array(FAMILIES)[family]
    lead = np.where(name == "known", rng.integers(1, 4, count), 0)
    apart = 10.0 ** rng.uniform(-6.0, -0.5, count)
    first = rng.uniform(0.02, 1.3, count)
    later = first + np.where(np.isin(name, ("pair", "known")), apart, 10.0)
    p = _times(_smooth(rng, count, ORDER - 5), _line(first))
    p = _times(p, _line(later) / np.where(later > 5.0, later, 1.0)[:, None])
    # A minimum above zero before the zero: (s - a)^2 + epsilon^2.
    touch, epsilon = first * rng.uniform(0.1, 0.9, count), 10.0 ** rng.uniform(-6.0, -2.0, count)
    hump = np.stack([touch**2 + epsilon**2, -2.0 * touch, np.ones(count)], 1)
    flat = np.stack([np.ones(count), np.zeros(count), np.zeros(count)], 1)
    grazing = name == "grazing"
    p = np.pad(_times(p, np.where(grazing[:, None], hump, flat)), ((0, 0), (0, 1)))
    for order in (1, 2, 3):
        shifted = np.pad(p, ((0, 0), (order, 0)))[:, : ORDER + 1]
        p = np.where((lead == order)[:, None], shifted, p)
    # cos(angle + PHASE s) + cos(d): negative between angle + PHASE s = pi - d and pi + d.
    d = 0.5 * PHASE * apart
    angle = np.pi - d - PHASE * first
    k = np.arange(ORDER + 1)
    sine = np.cos(angle[:, None] + 0.5 * np.pi * k) * _SIZE
    sine[:, 0] += np.cos(d)
    # The dip before: it ends at angle + PHASE s = d - pi.
    before = (d - np.pi - angle) / PHASE
    is_sine = (name == "sine") & (before < 0.0)
    p = np.where(is_sine[:, None], sine, p)
    single = (name == "sine") & ~is_sine
    none = name == "none"
    p = np.where((none | single)[:, None], _smooth(rng, count, ORDER), p)
    exact = np.where(none | single | (first > 1.0), NEVER, first)
    spread = np.where(
        grazing, epsilon, np.where(np.isin(name, ("pair", "known", "sine")), apart, 1)
    )
    return p, lead, exact, np.where(none | single, 1.0, spread)


_POWERS = np.arange(ORDER + 1)
_BINOMIAL = np.array([[math.comb(k, j) for k in _POWERS] for j in _POWERS], float)


# These run for longer than they compile.
@functools.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 3})
@jax.vmap
def _earliest(coefficients: jax.Array, lead: jax.Array):
    """First zero of any guard, coefficients (g, p): steps are shortened until the certificate
    decides, down to the fraction at which the solver gives up, and grow again."""

    def local(start, h):
        shift = _BINOMIAL * start ** np.maximum(_POWERS - _POWERS[:, None], 0)
        here = shift @ coefficients.T
        return jnp.where(start == 0.0, coefficients.T, here) * (h**_POWERS)[:, None]

    def body(carry):
        start, h, _, passes = carry
        guards = local(start, h)
        found = isolate(
            guards, jnp.where(start == 0.0, lead, 0), jnp.zeros(guards.shape[1]),
            certificate_order=CONSTANTS.certificate_order, rounding=CONSTANTS.rounding,
            newton=CONSTANTS.newton,
        )  # fmt: skip
        gives_up = ~found.decided & (h <= SMALLEST_FRACTION)
        crossed = jnp.any(found.undecided & (jnp.sum(guards, axis=0) < 0.0))
        event = jnp.where(gives_up, crossed, found.decided & (found.root <= 1.0))
        accepted = found.decided | gives_up
        root = jnp.where(event, start + h * jnp.where(gives_up, 1.0, found.root), NEVER)
        following = jnp.where(accepted, start + h, start)
        longer = jnp.minimum(2.0 * h, 1.0 - following)
        h = jnp.where(accepted, longer, found.retry * h)
        return following, h, root, passes + 1

    def running(carry):
        start, _, root, passes = carry
        return (start < 1.0) & (root == NEVER) & (passes < 1000)

    start = (jnp.zeros(()), jnp.ones(()), jnp.full((), NEVER), 0)
    end, _, root, passes = jax.lax.while_loop(running, body, start)
    return root, passes, (end >= 1.0) | (root < NEVER)


@pytest.mark.slow
@pytest.mark.parametrize("steps", [9_000, pytest.param(36_000, marks=pytest.mark.slow)])
def test_the_earliest_zero_is_found_every_time(steps):
    rng = np.random.default_rng(2024)
    p, lead, exact, spread = (x.reshape(steps, GUARDS, *x.shape[1:]) for x in
                              _guards(rng, steps * GUARDS))  # fmt: skip
    first, hardest = exact.min(1), spread.min(1)
    # Batches of equal difficulty do not wait for each other.
    order = np.argsort(hardest)
    found, ended = np.empty(steps), np.empty(steps, bool)
    for rows in order.reshape(-1, CHUNK):
        found[rows], _, ended[rows] = _earliest(jnp.asarray(p[rows]), jnp.asarray(lead[rows]))
    assert np.all(ended)
    assert 0.7 < np.mean(first < NEVER) < 0.99
    # Zeros beyond the end of the step do not count; one at the end may.
    inside = np.minimum(found, NEVER)
    wrong = np.abs(inside - first) > 1e-8
    assert int(wrong.sum()) == 0
    # A simple zero is exact; one of a pair is as good as its slope.
    clear = hardest > 1e-2
    assert np.abs(found - first)[clear].max() < 1e-11


def test_the_form_to_be_lowered_decides_the_same():
    """Two guards on one step: zeros, doubts and shorter steps of both forms."""
    rng = np.random.default_rng(11)
    count = 20_000
    p, lead, _, _ = _guards(rng, 2 * count)
    p, lead = p.reshape(count, 2, ORDER + 1), lead.reshape(count, 2).astype(np.int32)
    # Zeros just after the start, too near for Newton's method.
    p[:100, 0, 0] = 10.0 ** rng.uniform(-25.0, -5.0, 100) * np.abs(p[:100, 0, 1])
    p[:100, 0, 1] = -np.abs(p[:100, 0, 1])
    lead[:100, 0] = 0

    def both(p, lead):
        return [
            isolate(
                p.T, lead, jnp.zeros(2), certificate_order=CONSTANTS.certificate_order,
                rounding=CONSTANTS.rounding, newton=CONSTANTS.newton, apart=apart,
            )
            for apart in (False, True)
        ]  # fmt: skip

    one, other = jax.jit(jax.vmap(both))(p, lead)
    same = np.asarray(one.decided) == np.asarray(other.decided)
    # Coefficients at the edge of rounding may be told apart in one order of sums alone.
    assert np.mean(same) > 0.999
    sure = np.asarray(one.decided & other.decided)
    assert 0.1 < np.mean(sure) < 0.9
    np.testing.assert_allclose(other.root[sure], np.asarray(one.root)[sure], rtol=1e-11)
    assert np.array_equal(np.asarray(other.guard)[sure], np.asarray(one.guard)[sure])
    assert np.array_equal(np.asarray(other.undecided)[same], np.asarray(one.undecided)[same])
    assert np.mean(np.asarray(one.near) == np.asarray(other.near)) > 0.999
    assert np.any(one.near)
    assert np.all(np.asarray(other.retry) > 0.0)


def test_a_zero_just_before_the_end_of_a_step_is_not_taken_for_none():
    """Sines that are below zero at the end alone, by less than the terms of high degree."""
    rng = np.random.default_rng(5)
    zero = 1.0 - 10.0 ** rng.uniform(-10.0, -6.0, 2_000)
    # At the beginning the sine is positive, with a phase of its own below half a turn.
    phase = rng.uniform(0.3, np.pi - 0.1, zero.size)
    k = np.arange(ORDER + 1)
    # sin(phase - rate s)
    rate = (phase / zero)[:, None]
    p = np.sin(phase[:, None] - 0.5 * np.pi * k) * rate**k
    p /= np.array([math.factorial(i) for i in k], float)
    decided, root = jax.jit(jax.vmap(_alone))(jnp.asarray(p))
    assert np.mean(decided) > 0.5
    assert not np.any(np.asarray(decided) & (np.asarray(root) > 1.0))


def _alone(p):
    found = isolate(
        p[:, None], jnp.zeros(1, jnp.int32), jnp.zeros(1),
        certificate_order=CONSTANTS.certificate_order, rounding=CONSTANTS.rounding,
        newton=CONSTANTS.newton,
    )  # fmt: skip
    return found.decided, found.root
