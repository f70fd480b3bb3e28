"""Share of fits from random starts that find the best parameters.

    python experiments/global_search.py [--trials 200] [--systems belt rod]

The data are synthetic records (noise of 1 % of the peak) of the studies `identify_*.py`, of
stick-slip on a belt with three free parameters, and of a ball on a strongly shaken table, whose
motion is chaotic. Each trial begins at random values between the bounds, with another seed; it has
found the best if its cost is not above that of the true parameters. The script compares

    one        one descent from the random start
    starts     jfric.fit as it is, eight starts
    global     jfric.fit(search=jfric.Global())
    shooting   jfric.fit(search=jfric.Shooting()), where all positions are measured
"""

from __future__ import annotations

import argparse
import json
import time

import identify_bouncing
import identify_load
import identify_rod
import identify_sdnd106
import identify_ve0116
import numpy as np
from identify_common import Study

import jfric
from jfric.fits.recipe import prepare
from jfric.verification.configs import shipped

WAYS = {
    "one": {"starts": 1},
    "starts": {},
    "global": {"search": jfric.Global()},
    "shooting": {"search": jfric.Shooting()},
}


def belt() -> Study:
    return Study(
        title="stick-slip on a belt: mu_s, mu_d and k",
        problem=jfric.load(shipped("c4_belt")),
        truth={"friction.mu_s": 1.0, "friction.mu_d": 0.5, "spring.k": 1.0},
        free={
            "friction.mu_s": jfric.Free(0.6, 3.0),
            "friction.mu_d": jfric.Free(0.1, 0.6),
            "spring.k": jfric.Free(0.2, 5.0),
        },
        signals=("x",),
        samples=400,
        noise=0.01,
    )


def shaken_ball() -> Study:
    """Study of a ball on a table that moves at four times the acceleration of gravity."""
    table = jfric.Harmonic("$amplitude", 2.0 * np.pi, 1.0)
    elements = {
        "mass": jfric.Mass("z", 1.0),
        "load": jfric.Load("z", -9.81),
        "base": {"table": jfric.Base(table)},
        "contact": jfric.Contact(("table", "z"), e=0.8),
    }
    return Study(
        title="ball on a shaken table (chaotic): e and amplitude",
        problem=jfric.Problem(
            ["z"],
            elements,
            parameters={"amplitude": 1.0},
            initial={"z": jfric.InitialState(q=3.0)},
            time=15.0,
        ),
        truth={"contact.e": 0.8, "parameters.amplitude": 1.0},
        free={
            "contact.e": jfric.Free(0.4, 0.95, scale="linear"),
            "parameters.amplitude": jfric.Free(0.5, 2.0),
        },
        signals=("z",),
        samples=400,
        noise=0.01,
    )


SYSTEMS = {
    "ve0116": identify_ve0116.study,
    "sdnd106": identify_sdnd106.study,
    "bouncing": identify_bouncing.study,
    "rod": identify_rod.study,
    "load": identify_load.study,
    "belt": belt,
    "ball": shaken_ball,
}


def tried(study: Study, way: str, trials: int) -> dict[str, float]:
    """Successes and seconds of one search, without the first call."""
    clean = study.experiment()
    record = {s: y[0] for s, y in study.draws(clean, 1, 0).items()}
    data = jfric.Experiment(clean.t, y=record, sigma=clean.sigma)
    objective = prepare(study.problem, data, study.free).objective
    truth = np.array([[study.truth[name] for name in study.free]])
    allowed = float(objective.normal(truth).cost[0])
    layout = objective.layout
    fraction = np.random.default_rng(1).random((trials, layout.size))
    starts = layout.values(np.arcsin(2.0 * fraction - 1.0))
    costs, seconds = np.zeros(trials), np.zeros(trials)
    for i, start in enumerate(starts):
        free = {
            name: jfric.Free(item.lower, item.upper, init=float(x), scale=item.scale)
            for (name, item), x in zip(study.free.items(), start, strict=True)
        }
        begin = time.perf_counter()
        costs[i] = jfric.fit(study.problem, data, free, seed=i, **WAYS[way]).cost
        seconds[i] = time.perf_counter() - begin
    return {
        "found": float(np.mean(costs <= allowed)),
        "median seconds": float(np.median(seconds)),
        "first call [s]": float(seconds[0]),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=list(SYSTEMS))
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=["one", "starts", "global"])
    parser.add_argument("--json", action="store_true", help="print the numbers as JSON")
    options = parser.parse_args()
    table = {}
    for name in options.systems:
        study = SYSTEMS[name]()
        for way in options.ways:
            found = tried(study, way, options.trials)
            table[f"{name}, {way}"] = found
            if not options.json:
                print(
                    f"{study.title:52} {way:9} {100 * found['found']:6.1f} % of {options.trials}, "
                    f"{found['median seconds']:.2f} s each",
                    flush=True,
                )
    if options.json:
        print(json.dumps(table, indent=2))


if __name__ == "__main__":
    main()
