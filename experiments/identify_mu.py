"""The coefficient of friction of VE0116 from one noisy trajectory.

    python experiments/identify_mu.py

The data are simulated with mu = 0.11 and k = 5 kN/m: 400 displacements on 0 to 4 s with normal
noise of 1 % of the peak. The fit starts where everything sticks (mu = 1.7).
"""

import numpy as np
from identify_ve0116 import study as ve0116

import jfric


def main() -> None:
    study = ve0116()
    clean = study.experiment()
    noisy = {"u": study.draws(clean, 1, seed=0)["u"][0]}
    experiment = jfric.Experiment(clean.t, y=noisy)
    free = {
        "friction.mu": jfric.Free(0.01, 2.0, init=1.7),
        "spring.k": jfric.Free(1e3, 2e4),
    }
    result = jfric.fit(study.problem, experiment, free)
    print("VE0116 from one noisy trajectory:", result)
    reached = sum(np.isclose(w["cost"], result.waterfall[0]["cost"]) for w in result.waterfall)
    print(f"{reached} of {len(result.waterfall)} starts end there; true values 0.11 and 5000")


if __name__ == "__main__":
    main()
