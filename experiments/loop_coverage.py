"""Coverage of intervals from a hunting loop: stiction, sliding friction and inertia of a wheel.

A PID loop at 1 kHz hunts about its reference. Each repetition draws the true numbers and the white
noise of the encoder, rounds the readings to its steps, fits them by default, and counts which 95 %
intervals hold the truth:

    python experiments/loop_coverage.py --count 100
"""

import argparse
import time

import jax
import numpy as np

import jfric

#: True numbers, and the part by which those of a repetition differ.
TRUE, SCATTER = {"friction.mu_s": 0.6, "friction.mu_d": 0.4, "mass.m": 0.05}, 0.02
#: Step of the encoder and standard deviation of the noise before rounding [rad].
STEP, NOISE = 1e-4, 1e-4


def loop(seconds: float) -> jfric.Problem:
    """The wheel in its loop, with the true numbers."""
    return jfric.Problem(
        {"x": "rotation"},
        {
            "mass": jfric.Mass("x", TRUE["mass.m"]),
            "friction": jfric.Friction("x", jfric.StaticDynamic(0.6, 0.4), limit=1.0),
            "load": {"motor": jfric.Load("x", 0.0)},
            "controller": jfric.Controller(
                "x", "load.motor", kp=5.0, ki=20.0, kd=0.5, period=1e-3, reference=0.5
            ),
        },
        time=seconds,
    )


def main() -> None:
    """Fit noisy records of drawn wheels, and print how many intervals hold the truth."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=20, help="repetitions")
    parser.add_argument("--seconds", type=float, default=10.0, help="length of a record")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    rng = np.random.default_rng(given.seed)
    problem, t = loop(given.seconds), np.arange(round(given.seconds / 1e-3)) * 1e-3
    free = {path: jfric.Free(0.2 * x, 5.0 * x, init=1.5 * x) for path, x in TRUE.items()}
    held, open_, began = dict.fromkeys(TRUE, 0), dict.fromkeys(TRUE, 0), time.perf_counter()
    for i in range(given.count):
        true = {k: x * (1.0 + SCATTER * rng.uniform(-1.0, 1.0)) for k, x in TRUE.items()}
        motion = jfric.simulate(jfric.set_parameters(problem, true), ts=t).check()
        x = np.asarray(motion.q[:, 0]) + NOISE * rng.normal(size=t.size)
        y = STEP * np.round(x / STEP)
        record = jfric.Experiment(t, y={"x": y}, resolution={"x": STEP})
        result = jfric.fit(problem, record, free, seed=i)
        for name, pair in result.intervals().items():
            open_[name] += pair is None
            held[name] += pair is not None and pair[0] <= true[name] <= pair[1]
        done = ", ".join(f"{name} {held[name]}" for name in TRUE)
        print(f"{i + 1} fits, intervals that hold the truth: {done}", flush=True)
    for name in TRUE:
        share = 100.0 * held[name] / given.count
        print(f"{name}: {share:.1f} % of {given.count}, {open_[name]} without an interval")
    print(f"{(time.perf_counter() - began) / given.count:.1f} s for each fit")


if __name__ == "__main__":
    main()
