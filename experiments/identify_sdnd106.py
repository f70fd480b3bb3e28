"""Fits of SDND106 to its own noisy motion: mu_s, mu_d and k of the two masses.

    python experiments/identify_sdnd106.py [--draws 1000]

Both displacements are known at 400 times on 0 to 0.35 s, with normal noise of 1 % of their peaks.
The static coefficient affects only the instant at which the first mass begins to slip.
"""

from identify_common import Study, arguments, report

import jfric
from jfric.verification.configs import shipped


def study() -> Study:
    return Study(
        title="SDND106: mu_s, mu_d and k from both displacements",
        problem=jfric.load(shipped("sdnd106")),
        truth={"friction.mu_s": 0.3, "friction.mu_d": 0.2, "spring.k": 1e4},
        free={
            "friction.mu_s": jfric.Free(0.2, 0.45),
            "friction.mu_d": jfric.Free(0.1, 0.28),
            "spring.k": jfric.Free(7e3, 1.4e4),
        },
        signals=("x1", "x2"),
        samples=400,
        noise=0.01,
    )


if __name__ == "__main__":
    report(study(), arguments(__doc__))
