"""Rate of a controlled axis with dry friction, next to a Python loop over SciPy.

    python experiments/benchmarks/sampled_loops.py [--samples 1000000] [--scipy 2000]

One axis with static and dynamic friction, PID at 10 kHz, zero-order hold. SciPy integrates from
sample to sample with an event at the end of sliding, as one would write the loop by hand; both
positions are compared at the end of its span.
"""

from __future__ import annotations

import argparse
import resource
import time

import jax
import jax.numpy as jnp
import numpy as np
from scipy.integrate import solve_ivp

import jfric

jax.config.update("jax_enable_x64", True)

M, F_S, F_D, KP, KI, KD, T, R = 0.05, 0.6, 0.4, 5.0, 20.0, 0.5, 1e-4, 0.5


def problem(end: float) -> jfric.Problem:
    """The axis and its loop."""
    return jfric.Problem(
        {"x": "rotation"},
        {
            "mass": jfric.Mass("x", M),
            "friction": jfric.Friction("x", jfric.StaticDynamic(F_S, F_D), limit=1.0),
            "load": {"motor": jfric.Load("x", 0.0)},
            "controller": jfric.Controller(
                "x", "load.motor", kp=KP, ki=KI, kd=KD, period=T, reference=R
            ),
        },
        time=end,
    )


def by_scipy(count: int) -> float:
    """Position after ``count`` samples, from sample to sample."""

    def stops(_, y):
        return y[1]

    stops.terminal = True
    q, v, old, integral = 0.0, 0.0, 0.0, 0.0
    for _ in range(count):
        e = R - q
        integral += T * e
        u = KP * e + KI * integral + KD * (old - q) / T
        old, left = q, T
        while left > 0.0:
            if v == 0.0 and abs(u) <= F_S:
                break
            sign = np.sign(v) if v != 0.0 else np.sign(u)
            a = (u - sign * F_D) / M
            stops.direction = -sign
            found = solve_ivp(
                lambda t, y, a=a: (y[1], a), (0.0, left), (q, v), rtol=1e-10, atol=1e-12,
                events=stops if v != 0.0 else None,
            )  # fmt: skip
            q, v = found.y[:, -1]
            left = 0.0 if found.status == 0 else left - found.t[-1]
            v = 0.0 if found.status == 1 else v
    return q


def main() -> None:
    """Print rates, memory and the difference."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=1_000_000)
    parser.add_argument("--scipy", type=int, default=2_000)
    given = parser.parse_args()

    def final(count: int):
        return jax.block_until_ready(jfric.simulate(problem(count * T)).check().final.q[0])

    begun = time.perf_counter()
    final(10)
    print(f"first result: {time.perf_counter() - begun:.1f} s, compilation included")
    begun = time.process_time()
    final(given.samples)
    rate = given.samples / (time.process_time() - begun)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"jfric: {rate:,.0f} samples per second of processor time, {memory:.0f} MiB at most")
    begun = time.process_time()
    expected = by_scipy(given.scipy)
    other = given.scipy / (time.process_time() - begun)
    off = abs(float(final(given.scipy)) - expected)
    print(f"SciPy: {other:,.0f} samples per second; ratio {rate / other:.0f}, difference {off:.1e}")
    gains = jnp.linspace(10.0, 30.0, 10_000)
    short = problem(0.5)
    begun = time.perf_counter()
    table = jfric.sweep(short, {"controller.ki": gains}, "final.x")
    passed = time.perf_counter() - begun
    count = gains.size * round(0.5 / T)
    print(
        f"sweep of {gains.size:,} gains, 0.5 s each: {passed:.0f} s, compilation included, "
        f"{count / passed:,.0f} samples per second; all ok: {bool((table['status'] == 0).all())}"
    )


if __name__ == "__main__":
    main()
