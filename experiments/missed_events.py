"""Events missed by detectors that use only the signs at the ends of steps.

There are 1,000 random cases on the span 0 <= t <= 1 of an oscillator ``u" = -u``, which integrators
cross in one to a few steps of their choice. The guards are polynomials in t, positive at the start
(or zero there, with known multiplicity, and positive after); the event is the earliest zero at
which any guard becomes negative:

- pair: two zeros, between 1e-6 and 0.5 apart;
- grazing: a minimum that stays positive by 1e-12 to 1e-4 of the guard's size, then one zero;
- several: three guards at once, with pairs or single zeros, in random order;
- known: a zero of order 1 to 3 at the start (a contact that has just begun to slide or opened),
  then a pair.

A case counts as right if the time found is within 2e-6 of the exact one; "missed": no zero or a
later one was reported, "false": an earlier time was reported.

    python experiments/missed_events.py [--json] [--cases 1000] [--seed 0]
"""

from __future__ import annotations

import argparse
import json
import math
from typing import NamedTuple

import numpy as np

FAMILIES = ("pair", "grazing", "several", "known")
GUARDS, DEGREE = 3, 12
TOLERANCE = 2e-6


class Case(NamedTuple):
    """Guards ``sum_k c[i, k] t^k``, multiplicity of each at t = 0, and the first zero."""

    family: str
    coefficients: np.ndarray
    lead: np.ndarray
    first: float


def _positive(rng) -> np.ndarray:
    """A polynomial of degree 4 without zeros near [0, 1]."""
    result = np.array([1.0])
    for _ in range(2):
        a, b = rng.uniform(-0.5, 1.5), rng.uniform(0.4, 1.5)
        result = np.convolve(result, [a * a + b * b, -2.0 * a, 1.0])
    return result


def _zeros(rng, roots) -> np.ndarray:
    """A guard that is positive before the first of ``roots`` and changes sign at each."""
    result = _positive(rng)
    for root in roots:
        result = np.convolve(result, [root, -1.0])
    return result


def _pair(rng) -> tuple[float, float]:
    apart = 10.0 ** rng.uniform(-6.0, math.log10(0.5))
    first = rng.uniform(0.02, 0.98 - apart)
    return first, first + apart


def make_case(rng, family: str) -> Case:
    coefficients = np.zeros((GUARDS, DEGREE + 1))
    lead = np.zeros(GUARDS, int)
    coefficients[:, 0] = 1.0

    def put(i, polynomial):
        coefficients[i] = 0.0
        coefficients[i, : polynomial.size] = polynomial / np.abs(polynomial).max()

    if family == "pair":
        roots = _pair(rng)
        put(0, _zeros(rng, roots))
        first = roots[0]
    elif family == "grazing":
        a, first = np.sort(rng.uniform(0.05, 0.95, 2))
        epsilon = 10.0 ** rng.uniform(-6.0, -2.0)
        put(0, np.convolve(_zeros(rng, [first]), [a * a + epsilon**2, -2.0 * a, 1.0]))
    elif family == "several":
        chosen = [_pair(rng) if rng.random() < 0.5 else (rng.uniform(0.02, 0.98),)
                  for _ in range(GUARDS)]  # fmt: skip
        for i, roots in enumerate(chosen):
            put(i, _zeros(rng, roots))
        first = min(roots[0] for roots in chosen)
    else:
        order = int(rng.integers(1, 4))
        roots = _pair(rng)
        put(0, np.convolve(_zeros(rng, roots), np.eye(order + 1)[order]))
        lead[0], first = order, roots[0]
    return Case(family, coefficients, lead, float(first))


def make_cases(count: int, seed: int) -> list[Case]:
    rng = np.random.default_rng(seed)
    return [make_case(rng, FAMILIES[i % len(FAMILIES)]) for i in range(count)]


def scipy_earliest(cases: list[Case], method: str) -> np.ndarray:
    """First event of ``solve_ivp``, one event function for each guard; inf if none."""
    from numpy.polynomial.polynomial import polyval
    from scipy.integrate import solve_ivp

    found = np.full(len(cases), np.inf)
    for j, case in enumerate(cases):
        events = []
        for c in case.coefficients:

            def guard(t, y, c=c):
                return polyval(t, c)

            guard.terminal, guard.direction = True, -1
            events.append(guard)
        solution = solve_ivp(
            lambda t, y: (y[1], -y[0]), (0.0, 1.0), (1.0, 0.0), method=method,
            rtol=1e-10, atol=1e-12, events=events,
        )  # fmt: skip
        times = [t for group in solution.t_events for t in group]
        found[j] = min(times, default=np.inf)
    return found


def diffrax_earliest(cases: list[Case]) -> np.ndarray:
    """First event of ``diffeqsolve`` with ``Event``, a condition for each guard; inf if none."""
    import diffrax
    import jax
    import jax.numpy as jnp
    import optimistix

    def condition(i):
        def value(t, y, args, **kwargs):
            return jnp.polyval(args[i][::-1], t)

        return value

    event = diffrax.Event(
        [condition(i) for i in range(GUARDS)],
        optimistix.Newton(rtol=1e-10, atol=1e-12),
        direction=False,
    )

    def solve(coefficients):
        solution = diffrax.diffeqsolve(
            diffrax.ODETerm(lambda t, y, args: jnp.stack([y[1], -y[0]])),
            diffrax.Dopri8(), 0.0, 1.0, None, jnp.array([1.0, 0.0]), args=coefficients,
            stepsize_controller=diffrax.PIDController(rtol=1e-10, atol=1e-12),
            event=event, throw=False,
        )  # fmt: skip
        happened = jnp.any(jnp.stack(solution.event_mask))
        return jnp.where(happened, solution.ts[-1], jnp.inf)

    return np.asarray(jax.jit(jax.vmap(solve))(jnp.stack([c.coefficients for c in cases])))


def jfric_earliest(coefficients: np.ndarray, lead: np.ndarray) -> np.ndarray:
    """First zero of any guard by jfric's certified isolation.

    ``coefficients`` (cases, guards, k): powers of t on the step [0, 1]; ``lead`` (cases, guards):
    multiplicity of the known zero at the start. Returns (cases,), inf if there is none.

    As in the solver's loop, an undecided step is shortened by the certificate and tried again, and
    the next one may be twice as long; a step is not shortened below 1e-7.
    """
    import jax
    import jax.numpy as jnp

    from jfric.numerics.isolation import isolate
    from jfric.solvers.event_driven.prepared import SMALLEST_FRACTION, constants

    chosen = constants(jnp.float64)

    @jax.jit
    @jax.vmap
    def certify(c, lead):
        return isolate(
            c.T, lead, jnp.zeros(c.shape[0]), certificate_order=chosen.certificate_order,
            rounding=chosen.rounding, newton=chosen.newton,
        )  # fmt: skip

    count, power = coefficients.shape[0], np.arange(coefficients.shape[2])
    binomial = np.array([[math.comb(j, k) for j in power] for k in power], float)
    start, length = np.zeros(count), np.ones(count)
    found, active = np.full(count, np.inf), np.ones(count, bool)
    while np.any(active):
        # Coefficients of the guards as functions of s in t = start + length s.
        shift = binomial * start[:, None, None] ** np.maximum(power - power[:, None], 0)
        shift = shift * (length[:, None] ** power)[:, :, None]
        local = np.einsum("ckj,cgj->cgk", shift, coefficients)
        known = np.where(start[:, None] == 0.0, lead, 0)
        step = certify(jnp.asarray(local), jnp.asarray(known))
        decided = np.asarray(step.decided)
        # Too short to be divided further: an undecided guard that is negative at the end fires
        # there.
        crossed = np.any(np.asarray(step.undecided) & (local.sum(-1) < 0.0), axis=1)
        root = np.where(decided, step.root, np.where(crossed, 1.0, 2.0))
        accepted = decided | (length <= SMALLEST_FRACTION)
        hit = active & accepted & (root <= 1.0)
        found = np.where(hit, start + length * root, found)
        start = np.where(active & accepted & ~hit, start + length, start)
        shorter = np.asarray(step.retry) * length
        length = np.where(accepted, np.minimum(2.0 * length, 1.0 - start), shorter)
        active &= ~hit & (start < 1.0)
    return found


def judge(cases: list[Case], found: np.ndarray) -> dict[str, dict[str, int]]:
    """Counts of cases, missed and false events for each family and in total."""
    exact = np.array([c.first for c in cases])
    family = np.array([c.family for c in cases])
    # NaN compares as neither: it counts as missed.
    found = np.where(np.isnan(found), np.inf, found)
    counts = {}
    for name in (*FAMILIES, "all"):
        of = np.ones(len(cases), bool) if name == "all" else family == name
        counts[name] = {
            "cases": int(of.sum()),
            "missed": int((found[of] > exact[of] + TOLERANCE).sum()),
            "false": int((found[of] < exact[of] - TOLERANCE).sum()),
        }
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    import jax

    jax.config.update("jax_enable_x64", True)
    cases = make_cases(arguments.cases, arguments.seed)
    detectors = {
        "SciPy solve_ivp, DOP853": lambda: scipy_earliest(cases, "DOP853"),
        "SciPy solve_ivp, RK45": lambda: scipy_earliest(cases, "RK45"),
        "diffrax Event, Dopri8": lambda: diffrax_earliest(cases),
        "jfric, certified isolation": lambda: jfric_earliest(
            np.stack([c.coefficients for c in cases]), np.stack([c.lead for c in cases])
        ),
    }
    results: dict[str, dict] = {}
    for name, detector in detectors.items():
        results[name] = judge(cases, detector())
    if arguments.json:
        print(json.dumps(results, indent=1))
        return
    print(f"{len(cases)} cases, seed {arguments.seed}; missed + false of cases")
    print(f"{'':28}" + "".join(f"{f:>18}" for f in (*FAMILIES, "all")))
    for name, counts in results.items():
        cells = (f"{c['missed']} + {c['false']} of {c['cases']}" for c in counts.values())
        print(f"{name:28}" + "".join(f"{c:>18}" for c in cells))


if __name__ == "__main__":
    main()
