"""Friction and stiffness of a damper from its frequency response at several load levels.

    python experiments/identify_steady.py [--draws 200] [--json]

The data are amplitudes and phases of the steady motion of an oscillator with dry friction, at 7
frequencies around resonance and 2 levels of the load, with normal noise of 1 % of the largest
amplitude and of 0.02 rad. Every draw is fitted; the script prints bias, spread compared with the
Cramer-Rao bound, and coverage of the 95 % intervals.
"""

from __future__ import annotations

import numpy as np
from identify_common import Study, arguments, judged

import jfric
from jfric.fits.recipe import prepare

NOISE = {"amplitude.x": 0.05, "phase.x": 0.02}
OMEGA, LEVELS = np.linspace(0.7, 1.3, 7), (0.8, 1.2)


def study() -> Study:
    return Study(
        title="oscillator with dry friction, amplitudes and phases of 14 steady states",
        problem=jfric.Problem(
            ("x",),
            {
                "mass": jfric.Mass("x", 1.0),
                "spring": jfric.Spring("x", 1.2),
                "damper": jfric.Damper("x", 0.1),
                "friction": jfric.Friction("x", jfric.Coulomb(0.15), N=1.0),
                "load": jfric.Load("x", jfric.Harmonic(1.0, 1.0)),
            },
        ),
        truth={"friction.mu": 0.2, "spring.k": 1.0},
        free={"friction.mu": jfric.Free(0.05, 0.5), "spring.k": jfric.Free(0.5, 2.0)},
        signals=tuple(NOISE),
        samples=OMEGA.size * len(LEVELS),
        noise=0.01,
    )


def rows(y) -> jfric.Experiment:
    conditions = {
        "load.F.omega": np.tile(OMEGA, len(LEVELS)),
        "load.F.amplitude": np.repeat(LEVELS, OMEGA.size),
    }
    return jfric.steady_states(conditions, y, sigma=NOISE)


def main() -> None:
    options = arguments(__doc__)
    chosen = study()
    nothing = rows(dict.fromkeys(NOISE, np.zeros(chosen.samples)))
    # Predictions at the truth are the data without noise, and their derivatives give the bound.
    names = tuple(chosen.free)
    truth = np.array([[chosen.truth[name] for name in names]])
    at = prepare(chosen.problem, nothing, chosen.free, residual=jfric.SteadyStates()).objective
    found = at.linearise(truth)
    exact = found.predicted[0, 0]
    jacobian = found.jacobian[0, 0].reshape(-1, len(names))
    bound = np.sqrt(np.diagonal(np.linalg.inv(jacobian.T @ jacobian)))
    clean = rows(dict(zip(NOISE, exact.T, strict=True)))
    samples = chosen.draws(clean, options.draws, options.seed)
    judged(chosen, clean, samples, bound, options, residual=jfric.SteadyStates(), starts=8)


if __name__ == "__main__":
    main()
