"""Two masses through resonance, with a gap to an elastic stop and with a friction damper.

The script computes the frequency response of each, stable and unstable parts, and compares it with
independent computations:

1. every tenth orbit as the start of 1,000 periods of the event-driven motion: the motion stays on a
   stable orbit, and from a point close to a stable or unstable one it approaches or leaves the
   orbit at the rate of its largest multiplier;
2. folds: two orbits on one side, whose distance grows like the root of the distance from the fold,
   and none on the other side; changes of the sequence of events: orbits with the two sequences on
   the two sides;
3. harmonic balance with 7, 21 and 63 harmonics at every tenth orbit outside the folds, and the
   folds of its own curve: its distance from the orbits falls;
4. pyHarm (PyPI: pyharm-os), another harmonic balance, with its time, if ``--pyharm`` names a Python
   that has it.

    python experiments/resonance.py [--periods 1000] [--pyharm /path/to/python]
        [--pyharm-limit 900] [--json]
"""

from __future__ import annotations

import argparse
import json
import time

import jax
import jax.numpy as jnp
import numpy as np
from common import print_table
from resonance_harmonics import by_harmonic_balance, by_pyharm
from resonance_systems import SYSTEMS, begun

import jfric
from jfric.numerics.compilation import compile_quickly
from jfric.periodic.orbit import NEUTRAL

#: Distance of a start close to an orbit, and distances from it within which motions are followed,
#: all in sizes of the motion.
BESIDE, NEAR, FAR = 1e-7, 1e-10, 1e-6
#: Distance beyond folds and changes of events, in rad/s.
BEHIND = 1e-6


def transients(problem, omegas, begins, states, periods: int):
    """States after each of many periods (k, periods + 1, 2n), and the statuses."""
    solver = jfric.EventDriven(adjoint="none", max_events=0, max_steps=10**7)

    @jax.jit
    def all_of_them(omegas, begins, states):
        def one(omega, begins, state):
            ts = begins + 2 * jnp.pi / omega * jnp.arange(periods + 1)
            there = begun(problem, omega, begins, state)
            found = jfric.simulate(there, solver, ts=ts, end=ts[-1])
            return jnp.concatenate([found.q, found.v], axis=1), found.status

        return jax.vmap(one)(omegas, begins, states)

    found, status = all_of_them(*(jnp.asarray(x) for x in (omegas, begins, states)))
    return np.asarray(found), np.asarray(status)


def rate(deviations: np.ndarray) -> float:
    """Largest growth in a period of deviations (periods, 2n) between rounding and the end of
    linearity, by the linear map that fits best from each deviation to the next; NaN for few
    deviations."""
    distance = np.linalg.norm(deviations, axis=1)
    inside = np.flatnonzero((distance > NEAR) & (distance < FAR))
    if not len(inside):
        return np.nan
    end = inside[0] + np.argmax(np.diff(np.append(inside, -1)) != 1)
    chosen = deviations[inside[0] : end + 1]
    if len(chosen) <= deviations.shape[1] + 1:
        return np.nan
    first = (chosen[:-1] / np.linalg.norm(chosen[:-1], axis=1, keepdims=True)).T
    following = (chosen[1:] / np.linalg.norm(chosen[:-1], axis=1, keepdims=True)).T
    map_ = following @ np.linalg.pinv(first, rcond=1e-4)
    return float(np.abs(np.linalg.eigvals(map_)).max())


def checked_by_transients(problem, curve, size, periods: int) -> dict:
    """Motions 1,000 periods after every tenth orbit, and after starts close to it."""
    rows = np.arange(0, len(curve), 10)
    omegas, begins, states = (x[rows] for x in (curve.parameter, curve.begins, curve.state))
    largest = np.abs(curve.multipliers[rows]).max(axis=1)
    # If a contact sticks all the time, every place in an interval is an orbit: the motion stays
    # there.
    held = np.abs(largest - 1.0) <= NEUTRAL
    stable = curve.stable[rows]
    unstable = ~stable
    start = time.perf_counter()
    from_it, status = transients(problem, omegas, begins, states, periods)
    away = np.abs((from_it - states[:, None]) / size).max(axis=2)
    aside = BESIDE * size * np.random.default_rng(1).normal(size=states.shape)
    # Not along sticking directions: there a start close to the orbit stays close to it for ever.
    aside = np.where(np.abs(states) < 1e-12, 0.0, aside)
    from_beside, also = transients(problem, omegas, begins, states + aside, periods)
    gone = np.abs((from_beside - states[:, None]) / size).max(axis=(1, 2))
    seconds = time.perf_counter() - start
    rates = np.array([rate(d) for d in (from_beside - states[:, None]) / size])
    off = np.abs(rates / largest - 1.0)
    # Near a change of events a motion close to the orbit has the other events.
    changes = [p.parameter for p in curve.special if p.kind == "event change"]
    apart = np.min(np.abs(omegas[:, None] - np.array(changes)), axis=1, initial=np.inf)
    known = np.isfinite(off) & (apart > BEHIND)
    return {
        "orbits": len(rows),
        "stable": int(stable.sum()),
        "of these held all the time": int(held.sum()),
        "runs not ok": int(np.sum(status != 0) + np.sum(also != 0)),
        "stable ones, farthest after all periods": float(away[stable].max()),
        "close to unstable ones, least distance reached": float(gone[unstable].min(initial=np.inf)),
        "rates measured": int(known.sum()),
        "of unstable ones": int(known[unstable].sum()),
        "rate against multiplier, median": float(np.median(off[known])),
        "rate against multiplier, largest": float(off[known].max()),
        "periods": periods,
        "seconds": seconds,
    }


def orbits_at(problem, omega: float, begins: float, starts: np.ndarray):
    """Orbits from several guesses at one frequency."""
    there = begun(problem, omega, begins, starts[0])
    return jfric.periodic_orbit(there, start=jnp.asarray(starts))


def at_folds(problem, curve, size) -> list[dict]:
    """Two orbits on one side of each fold, none on the other."""
    found = []
    for point in curve.special:
        if point.kind != "fold":
            continue
        # The rows before and after the fold lie on its two branches.
        first, last = curve.state[point.row], curve.state[point.row + 1]
        side = np.sign(curve.parameter[point.row] - point.parameter)
        across = (last - first) / np.linalg.norm((last - first) / size)
        apart = []
        for behind in (BEHIND, 4 * BEHIND):
            root = np.sqrt(behind) * np.array([[-1.0], [1.0]])
            both = orbits_at(
                problem, point.parameter + side * behind, point.time, point.state + root * across
            )
            ok = np.asarray(both.status == 0).all()
            states = np.asarray(both.state)
            apart.append(np.linalg.norm((states[1] - states[0]) / size) if ok else np.nan)
        none = orbits_at(
            problem, point.parameter - side * BEHIND, point.time, point.state + root * across
        )
        near = np.linalg.norm((np.asarray(none.state) - point.state) / size, axis=1) < 0.1
        found.append(
            {
                "fold": point.parameter,
                "multiplier": float(
                    np.real(point.multipliers[np.argmin(abs(point.multipliers - 1))])
                ),
                "two orbits, distance": float(apart[0]),
                "ratio of distances, four times as far": float(apart[1] / apart[0]),
                "orbits on the other side": int(np.sum((np.asarray(none.status) == 0) & near)),
            }
        )
    return found


def words(events: tuple[str, ...] | None) -> str:
    return f"{len(events)} events" if events else "no event"


def at_changes(problem, curve, size) -> list[dict]:
    """Sequences of events on both sides of each change."""
    from jfric.periodic.path_kernel import event_words

    found = []
    for point in curve.special:
        if point.kind != "event change":
            continue
        entry: dict = {"change": point.parameter}
        ahead = np.sign(curve.parameter[point.row + 1] - curve.parameter[point.row])
        for name, side, events in (("before", -1, point.before), ("after", 1, point.after)):
            omega = point.parameter + side * ahead * 10 * BEHIND
            orbit = jfric.periodic_orbit(
                begun(problem, omega, point.time, point.state), start=jnp.asarray(point.state)
            )
            ok = int(orbit.status) == 0 and event_words(orbit) == events
            entry[name] = words(events)
            entry[f"{name}, as found there"] = bool(ok)
            away = np.abs((np.asarray(orbit.state) - point.state) / size).max()
            entry[f"{name}, distance"] = float(away)
        found.append(entry)
    return found


def study(name: str, periods: int) -> tuple[dict, jfric.FrequencyResponse]:
    make, *limits = SYSTEMS[name]
    problem = make()
    seconds = []
    for _ in range(2):
        start = time.perf_counter()
        found = jfric.frequency_response(problem, "load", *limits)
        seconds.append(time.perf_counter() - start)
    (curve,) = found.curves
    size = np.abs(curve.state).max(axis=0)
    return {
        "curve": {
            "orbits": len(curve),
            "unstable": int(np.sum(~curve.stable)),
            "complete": curve.complete,
            "s": seconds[0],
            "again [s]": seconds[1],
        },
        "transients": checked_by_transients(problem, curve, size, periods),
        "folds": at_folds(problem, curve, size),
        "changes": at_changes(problem, curve, size),
        "harmonic balance": by_harmonic_balance(problem, curve, limits),
    }, found


def text(value) -> str:
    if value is None:
        return "-"
    return f"{value:.10g}" if isinstance(value, (float, np.floating)) else str(value)


def show(name: str, parts: dict) -> None:
    """Print the parts as tables."""
    for title, part in parts.items():
        if isinstance(part, dict):
            print_table(f"{name}: {title}", ["", ""], [[k, text(v)] for k, v in part.items()])
        elif part:
            table = [[text(v) for v in row.values()] for row in part]
            print_table(f"{name}: {title}", list(part[0]), table)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--periods", type=int, default=1000)
    parser.add_argument("--pyharm", help="a Python that has pyharm-os")
    parser.add_argument(
        "--pyharm-limit", type=float, default=900.0, help="seconds after which a curve is left"
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    arguments = parser.parse_args()
    compile_quickly()
    jax.config.update("jax_enable_x64", True)
    results, curves = {}, {}
    for name in SYSTEMS:
        results[name], curves[name] = study(name, arguments.periods)
        if not arguments.json:
            show(name, results[name])
    if arguments.pyharm:
        found = by_pyharm(arguments.pyharm, curves, arguments.pyharm_limit)
        for name in SYSTEMS:
            results[name]["pyHarm"] = found[name]
            if not arguments.json:
                show(name, {"pyHarm": found[name]})
    if arguments.json:
        print(json.dumps(results))


if __name__ == "__main__":
    main()
