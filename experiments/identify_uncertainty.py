"""Six estimates of uncertainty for the same fits of VE0116: they should agree.

    python experiments/identify_uncertainty.py [--draws 100]

The true mu is 0.11; mu and k are free; 400 samples have independent normal noise of 1 % of the
peak: every method is valid here. The script prints standard errors (half the 95 % interval over
1.96 for profiles), averaged over the draws, with the spread of the estimates and the Cramer-Rao
bound.
"""

from __future__ import annotations

import json

import numpy as np
from identify_common import arguments, cramer_rao
from identify_ve0116 import study as ve0116

import jfric
from jfric.fits.uncertainty.posterior import sample_chains

#: Refits of each bootstrap; samples of each chain, and samples left out at its start.
REFITS, SAMPLES, WARMUP = 100, 1500, 300


def main() -> None:
    options = arguments(__doc__)
    count = min(options.draws, 100)
    study = ve0116()
    clean = study.experiment()
    samples = study.draws(clean, count, options.seed)
    batch = jfric.fit_batch(study.problem, clean, study.free, samples)
    names = batch.names
    found: dict[str, list[np.ndarray]] = {
        name: []
        for name in (
            "Gauss-Newton",
            "autoregressive",
            "HAC",
            "bootstrap",
            "profile",
            "posterior",
        )
    }

    def keep(method: str, table: dict[str, float]) -> None:
        found[method].append(np.array([table[n] for n in names]))

    for draw in range(count):
        data = {s: values[draw] for s, values in samples.items()}
        start = {
            n: jfric.Free(f.lower, f.upper, init=float(batch.estimates[draw, i]), scale=f.scale)
            for i, (n, f) in enumerate(study.free.items())
        }
        measured = jfric.Experiment(clean.t, y=data, sigma=clean.sigma)
        fit = jfric.fit(study.problem, measured, start, starts=1)
        keep("Gauss-Newton", fit.covariance("gauss-newton").standard_errors)
        keep("autoregressive", fit.covariance().standard_errors)
        keep("HAC", fit.covariance("hac").standard_errors)
        keep("bootstrap", fit.bootstrap(REFITS, seed=draw).standard_errors)
        intervals = {n: p.interval(0.95) for n, p in fit.profile(points=9).items()}
        keep("profile", {n: (i[1] - i[0]) / (2 * 1.959964) for n, i in intervals.items() if i})
    chains, _ = sample_chains(
        batch.objective,
        batch.estimates,
        batch.covariance,
        batch.measured,
        SAMPLES,
        WARMUP,
        options.seed,
    )
    found["posterior"] = list(np.std(chains, axis=1, ddof=1))

    table = {method: np.mean(values, axis=0) for method, values in found.items()}
    table["spread of the estimates"] = np.std(batch.estimates, axis=0, ddof=1)
    bound = cramer_rao(study, clean)
    if options.json:
        rows = {m: dict(zip(names, v.tolist(), strict=True)) for m, v in table.items()}
        print(json.dumps({"draws": count, "standard errors": rows, "bound": bound.tolist()}))
        return
    print(f"standard errors, mean of {count} draws (in brackets: over the Cramer-Rao bound)")
    for method, values in table.items():
        cells = [f"{n} {v:.4g} ({v / b:.3f})" for n, v, b in zip(names, values, bound, strict=True)]
        print(f"{method:24} {'  '.join(cells)}")


if __name__ == "__main__":
    main()
