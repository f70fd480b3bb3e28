"""Fits of VE0116 to its own noisy motion: estimates against truth, Cramer-Rao bound and coverage.

    python experiments/identify_ve0116.py [--draws 1000]

The true mu is 0.11; mu and k are free; the displacement is known at 400 times on 0 to 4 s with
normal noise of 1 % of its peak. All draws are fitted as one batch.
"""

from identify_common import Study, arguments, report

import jfric
from jfric.verification.configs import shipped


def study() -> Study:
    problem = jfric.load(shipped("ve0116"))
    return Study(
        title="VE0116: mu and k from the displacement",
        problem=problem,
        truth={"friction.mu": 0.11, "spring.k": 5000.0},
        free={"friction.mu": jfric.Free(0.05, 0.3), "spring.k": jfric.Free(3e3, 8e3)},
        signals=("u",),
        samples=400,
        noise=0.01,
    )


if __name__ == "__main__":
    report(study(), arguments(__doc__))
