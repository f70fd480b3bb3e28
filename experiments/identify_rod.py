"""Fits of a rod that hits the floor: mu, e and the rod's length.

    python experiments/identify_rod.py [--draws 1000]

A rod, thrown with a spin, hits a rough floor with one end, slides through the impact, and flies
off. The place of its centre and its angle are known at 200 times on 0 to 0.5 s, with normal noise
of 1 % of their peaks.
"""

from identify_common import Study, arguments, report

import jfric


def study() -> Study:
    rod = jfric.Body(
        1.0,
        "$l**2/12",
        at=(0.0, 0.65),
        angle=1.3,
        v=(-3.0, 0.0),
        omega=1.0,
        points={"tip": ("-$l/2", 0.0)},
    )
    floor = jfric.Contact(point="rod.tip", line="ground", law=jfric.Coulomb(0.2), e=0.6)
    elements = {"body": {"rod": rod}, "gravity": jfric.Gravity(9.81), "contact": floor}
    return Study(
        title="Rod on a floor: mu, e and length from its motion",
        problem=jfric.Problem([], elements, parameters={"l": 1.0}, time=0.5),
        truth={"contact.mu": 0.2, "contact.e": 0.6, "parameters.l": 1.0},
        free={
            "contact.mu": jfric.Free(0.1, 0.25),
            "contact.e": jfric.Free(0.3, 0.9, scale="linear"),
            "parameters.l": jfric.Free(0.8, 1.1),
        },
        signals=("rod_x", "rod_y", "rod_phi"),
        samples=200,
        noise=0.01,
    )


if __name__ == "__main__":
    report(study(), arguments(__doc__))
