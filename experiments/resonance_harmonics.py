"""Harmonic balance of jfric and pyHarm, compared with the exact orbits of ``resonance.py``."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import jax.numpy as jnp
import numpy as np
from resonance_systems import FREQUENCY, SYSTEMS, begun

import jfric

HARMONICS = (7, 21, 63)
#: Numbers of harmonics for pyHarm, and stiffnesses of its sticking contact.
PYHARM = {"gap to an elastic stop": (7, 21), "friction damper": (7, 21)}
STIFFNESSES = (5.0, 50.0, 500.0)
PHASES = 2 * np.pi * np.arange(256) / 256


def between_folds(curve) -> tuple[float, float]:
    folds = [p.parameter for p in curve.special if p.kind == "fold"]
    return (min(folds), max(folds)) if folds else (np.inf, -np.inf)


def by_harmonic_balance(problem, curve, limits, counts=HARMONICS) -> list[dict]:
    """Distances of harmonic balance from the orbits, and of its folds, for these ``counts`` of
    harmonics."""
    low, high = between_folds(curve)
    stick = np.array([len(e) == 0 for e in curve.events])
    friction = "friction" in problem.elements
    rows = np.arange(0, len(curve), 10)
    omegas = curve.parameter[rows]
    keep = ((omegas < low) | (omegas > high)) & ~(stick[rows] & friction)
    rows, omegas = rows[keep], omegas[keep]
    solver = jfric.EventDriven(adjoint="none", max_events=0, max_steps=10**6)
    exact = []
    for row in rows:
        omega, start = curve.parameter[row], curve.begins[row]
        there = begun(problem, omega, start, curve.state[row])
        angle = np.mod(PHASES - omega * start, 2 * np.pi)
        order = np.argsort(angle)
        q = np.empty((len(PHASES), len(problem.dofs)))
        ts = start + angle[order] / omega
        q[order] = np.asarray(jfric.simulate(there, solver, ts=ts, end=float(ts[-1])).q)
        exact.append(q)
    exact = np.stack(exact)
    size = np.abs(exact).max(axis=(1, 2))
    found = []
    for harmonics in counts:
        start = time.perf_counter()
        at = jfric.harmonic_balance(problem, FREQUENCY, at=omegas, harmonics=harmonics)
        took = time.perf_counter() - start
        motions = np.stack([at.positions(dof, PHASES) for dof in at.axes], axis=2)
        away = (np.abs(motions - exact).max(axis=(1, 2)) / size)[at.ok]
        start = time.perf_counter()
        whole = jfric.harmonic_balance(problem, FREQUENCY, *limits, harmonics=harmonics)
        curve_took = time.perf_counter() - start
        folds = sorted(p.parameter for p in curve.special if p.kind == "fold")
        theirs = np.sort(np.asarray(whole.folds))
        same = len(theirs) == len(folds) > 0
        apart = float(np.abs(theirs - folds).max()) if same else None
        found.append(
            {
                "harmonics": harmonics,
                "solved": f"{int(at.ok.sum())} of {len(rows)}",
                "median": float(np.median(away)),
                "largest": float(away.max()),
                "s": took,
                "folds off [rad/s]": apart,
                "curve, points": int(whole.parameter.size),
                "curve [s]": curve_took,
            }
        )
    return found


def by_pyharm(python: str, curves: dict, limit: float = 900.0) -> dict[str, list[dict]]:
    """pyHarm on both systems: times, and first harmonics compared with orbits at its frequencies.
    ``limit``: seconds after which one of its curves is stopped."""
    sys.path.insert(0, str(Path(__file__).parent / "benchmarks"))
    from harmonic_balance import distance, force, ground, in_pyharm

    cases = {}
    for name, (_, low, high) in SYSTEMS.items():
        stop = name.startswith("gap")
        c, b, m, load = (0.08, 0.05, 0.5, 0.2) if stop else (0.05, 0.05, 0.1, 0.3)
        shared = {
            "low": low,
            "high": high,
            "matrices": {
                "M": [[1.0, 0.0], [0.0, m]],
                "C": [[c + b, -b], [-b, b]],
                "K": [[1.6, -0.6], [-0.6, 0.6]],
            },
            "step": 0.05,
        }
        for harmonics in PYHARM[name]:
            # Its sticking contact is a spring of stiffness eps: a rigid contact is the limit.
            for eps in (None,) if stop else STIFFNESSES:
                element = (
                    ground("PenaltyUnilateralGap", 1, g=1.0, k=1.0)
                    if stop
                    else ground("DLFTFriction", 1, mu=0.4, N0=0.6, eps=eps)
                )
                connectors = {"force": force(load), "element": element}
                key = (name, harmonics, eps)
                cases[key] = {**shared, "harmonics": harmonics, "connectors": connectors}
    found = in_pyharm(python, {json.dumps(key): case for key, case in cases.items()}, limit)
    rows: dict[str, list[dict]] = {name: [] for name in SYSTEMS}
    for text_key, theirs in found.items():
        name, harmonics, eps = json.loads(text_key)
        problem, curve = SYSTEMS[name][0](), curves[name].curves[0]
        omega, first = np.array(theirs["omega"]), np.array(theirs["first"])
        low, high = between_folds(curve)
        inside = (omega >= curve.parameter.min()) & (omega <= curve.parameter.max())
        inside &= (omega < low - 0.01) | (omega > high + 0.01)
        away = distance(first[inside], first_harmonics(problem, curve, omega[inside]))
        away = away[np.isfinite(away)]
        rows[name].append(
            {
                "harmonics": harmonics,
                "stiffness in stick": eps,
                "points": int(omega.size),
                "to [rad/s]": float(omega[-1]),
                "s": theirs["seconds"],
                "processor time [s]": theirs["processor"],
                "compared": int(away.size),
                "first harmonics, median": float(np.median(away)),
                "largest": float(away.max()),
            }
        )
    return rows


def first_harmonics(problem, curve, omegas: np.ndarray) -> np.ndarray:
    """Amplitudes (k, n) of exact orbits at ``omegas``, from the nearest orbit of the curve, all in
    one batch; NaN if there is none."""
    rows = np.argmin(np.abs(curve.parameter[:, None] - omegas), axis=0)
    orbits = jfric.periodic_orbit(
        problem,
        values={FREQUENCY: omegas, "time.start": curve.begins[rows]},
        start=jnp.asarray(curve.state[rows]),
    )
    first = [np.abs(np.asarray(orbits.harmonics(dof, 1)))[:, 1] for dof in problem.dofs]
    return np.where(np.asarray(orbits.status)[:, None] == 0, np.stack(first, axis=1), np.nan)
