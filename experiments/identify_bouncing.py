"""Fits of a mass that bounces and slides: mu and the coefficient of restitution e.

    python experiments/identify_bouncing.py [--draws 1000]

The mass is thrown along a floor with Coulomb impacts; both displacements are known at 400 times on
0 to 1.4 s (four impacts), with normal noise of 1 % of their peaks.
"""

from identify_common import Study, arguments, report

import jfric


def study() -> Study:
    elements = {
        "mass": {"x": jfric.Mass("x", 1.0), "z": jfric.Mass("z", 1.0)},
        "contact": jfric.Contact("z", "x", jfric.Coulomb(0.2), e=0.7),
        "load": jfric.Load("z", -9.81),
    }
    thrown = {"x": jfric.InitialState(v=4.0), "z": jfric.InitialState(q=0.5)}
    return Study(
        title="Bouncing sliding mass: mu and e from both displacements",
        problem=jfric.Problem(["x", "z"], elements, initial=thrown, time=1.4),
        truth={"contact.mu": 0.2, "contact.e": 0.7},
        free={
            "contact.mu": jfric.Free(0.05, 0.6),
            "contact.e": jfric.Free(0.4, 0.95, scale="linear"),
        },
        signals=("x", "z"),
        samples=400,
        noise=0.01,
    )


if __name__ == "__main__":
    report(study(), arguments(__doc__))
