"""Fits of a joint whose loss grows with the torque that it carries: both parts of the limit.

    python experiments/identify_load.py [--draws 1000]

A motor goes up and down twice against a weight; the joint slides both ways, reverses and sticks.
Free parameters are the constant part of the friction limit, the lost share of the transmitted
torque, and viscous damping. The angle is known at 400 times on 0 to 8 s with normal noise of 1 % of
its peak.
"""

from identify_common import Study, arguments, report

import jfric


def study() -> Study:
    motor = jfric.PiecewiseLinear([0.0, 1.0, 3.0, 5.0, 7.0, 8.0], [0.0, 2.5, -2.0, 2.5, -2.0, 0.0])
    carried = {"load.motor": 1.0, "load.weight": -1.0}
    elements = {
        "mass": jfric.Mass("q", 1.0),
        "damper": jfric.Damper("q", 0.3),
        "load": {"motor": jfric.Load("q", motor), "weight": jfric.Load("q", -0.5)},
        "friction": jfric.Friction("q", limit=0.1, kappa=0.2, load=carried),
    }
    return Study(
        title="Joint: constant and load-dependent friction, and damping, from the angle",
        problem=jfric.Problem({"q": "rotation"}, elements, time=8.0),
        truth={"friction.limit": 0.1, "friction.kappa": 0.2, "damper.c": 0.3},
        free={
            "friction.limit": jfric.Free(0.02, 0.5),
            "friction.kappa": jfric.Free(0.02, 0.8),
            "damper.c": jfric.Free(0.05, 1.0),
        },
        signals=("q",),
        samples=400,
        noise=0.01,
    )


if __name__ == "__main__":
    report(study(), arguments(__doc__))
