"""Harmonic balance compared with closed forms and exact motions over the number of harmonics.

1. An oscillator with dry friction that slides without a stop: amplitude after Den Hartog (1931).
2. Two masses with a friction damper, which sticks and slips, and
3. two masses with a gap to an elastic stop, swept over frequency through resonance: at each
   frequency the last of 200 periods of the event-driven motion from rest is compared. Points whose
   motion has not settled by then, or does not have the period of the load, are left out.
4. Duffing's oscillator: both folds of its frequency response.

The friction force of 1 and 2 jumps: its harmonics fall with 1/k, and the error with 1/H.

    python experiments/harmonic_balance.py
"""

from __future__ import annotations

import time

import numpy as np
from common import print_table

import jfric

HARMONICS = (7, 21, 63)
PHASES = 2 * np.pi * np.arange(256) / 256
PERIODS = 200
COSINE = 0.5 * np.pi


def slider(omega: float) -> jfric.Problem:
    return jfric.Problem(
        ["x"],
        {
            "mass": jfric.Mass("x", 1.0),
            "spring": jfric.Spring("x", 1.0),
            "friction": jfric.Friction("x", limit=0.3),
            "load": jfric.Load("x", jfric.Harmonic(1.0, omega, COSINE)),
        },
    )


def two_masses(**elements) -> jfric.Problem:
    return jfric.Problem(
        ["a", "b"],
        {
            "mass": {"a": jfric.Mass("a", 1.0), "b": jfric.Mass("b", 0.3)},
            "spring": {
                "a": jfric.Spring("a", 1.0),
                "ab": jfric.Spring(("a", "b"), 0.5),
                "b": jfric.Spring("b", 0.2),
            },
            "damper": {"a": jfric.Damper("a", 0.05), "b": jfric.Damper("b", 0.05)},
            "load": jfric.Load("a", jfric.Harmonic(1.0, 1.0, COSINE)),
            **elements,
        },
    )


def duffing() -> jfric.Problem:
    return jfric.Problem(
        ["x"],
        {
            "mass": jfric.Mass("x", 1.0),
            "damper": jfric.Damper("x", 0.05),
            "polynomial_spring": jfric.PolynomialSpring("x", [1.0, 0.0, 0.1]),
            "load": jfric.Load("x", jfric.Harmonic(0.18, 1.0)),
        },
    )


def den_hartog(omega: float) -> float:
    """Amplitude for mass, stiffness and load 1 and friction 0.3."""
    return np.sqrt((1 / (1 - omega**2)) ** 2 - (0.3 / omega * np.tan(0.5 * np.pi / omega)) ** 2)


def settled(problem: jfric.Problem, omegas: np.ndarray):
    """The last of many periods at each frequency, and its distance from the period before."""
    solver = jfric.EventDriven(adjoint="none", max_events=0, max_steps=10**6)
    last, apart = [], []
    for omega in omegas:
        period = 2 * np.pi / omega
        changed = jfric.set_parameters(problem, {"load.F.omega": omega})
        begun = jfric.simulate(changed, solver, end=(PERIODS - 2) * period)
        phases = PHASES / (2 * np.pi)
        ts = period * (PERIODS - 2 + np.concatenate([phases, 1 + phases]))
        end = float(PERIODS * period)
        q = np.asarray(jfric.simulate(changed, solver, ts=ts, start=begun.final, end=end).q)
        last.append(q[PHASES.size :])
        apart.append(np.abs(q[PHASES.size :] - q[: PHASES.size]).max())
    return np.stack(last), np.array(apart)


def sweep(name: str, problem: jfric.Problem, omegas: np.ndarray) -> None:
    start = time.perf_counter()
    exact, rest = settled(problem, omegas)
    seconds = time.perf_counter() - start
    size = np.abs(exact).max(axis=(1, 2))
    use = rest < 1e-6 * size
    rows = []
    for harmonics in HARMONICS:
        start = time.perf_counter()
        found = jfric.harmonic_balance(problem, "load.F.omega", at=omegas, harmonics=harmonics)
        took = time.perf_counter() - start
        motions = np.stack([found.positions(dof, PHASES) for dof in found.axes], axis=2)
        away = np.abs(motions - exact).max(axis=(1, 2)) / size
        # If a contact sticks all the time, every position in an interval is a solution.
        held = (found.stick >= 1.0).any(axis=1)
        chosen = away[use & found.ok & ~held]
        rows.append(
            [
                str(harmonics),
                f"{int(found.ok.sum())} of {omegas.size}",
                f"{np.median(chosen):.1e}",
                f"{chosen.max():.1e}",
                f"{found.residual[found.ok].max():.0e}",
                f"{np.median(found.remainder[found.ok]):.1e}",
                f"{took:.1f}",
            ]
        )
    header = ["H", "solved", "median", "largest", "residual", "remainder", "s"]
    print_table(
        f"{name}: distance from the exact motion, relative ({int(use.sum())} of {omegas.size} "
        f"frequencies settled, {seconds:.1f} s for {PERIODS} periods each)",
        header,
        rows,
    )


def main() -> None:
    rows = []
    for harmonics in HARMONICS:
        row = [str(harmonics)]
        for omega in (1.2, 2.5):
            found = jfric.harmonic_balance(slider(omega), harmonics=harmonics)
            row.append(f"{abs(found.amplitude('x')[0] / den_hartog(omega) - 1):.1e}")
        rows.append(row)
    print_table("Continuous slip: relative error of the amplitude", ["H", "omega 1.2", "2.5"], rows)
    omegas = np.linspace(0.5, 1.7, 7)
    sweep("Friction damper", two_masses(friction=jfric.Friction("b", limit=0.4)), omegas)
    sweep("Gap to a stop", two_masses(stop=jfric.Stop("b", k=2.0, gap=0.6)), omegas)
    rows = []
    for harmonics in (3, 7, 21):
        start = time.perf_counter()
        found = jfric.harmonic_balance(duffing(), "load.F.omega", 0.6, 1.6, harmonics=harmonics)
        took = time.perf_counter() - start
        rows.append(
            [
                str(harmonics),
                *(f"{x:.9f}" for x in found.folds),
                *(f"{x:.8f}" for x in found.fold_amplitudes[:, 0]),
                str(found.parameter.size),
                f"{took:.1f}",
            ]
        )
    header = ["H", "upper fold", "lower", "amplitude", "amplitude", "points", "s"]
    print_table("Duffing: folds of the frequency response", header, rows)


if __name__ == "__main__":
    main()
