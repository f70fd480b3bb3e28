"""Fits of friction with memory: Dahl, Bouc-Wen, LuGre and Iwan's with four parameters.

    python experiments/identify_memory.py [--law dahl,bouc_wen,lugre,iwan] [--draws 200] [--json]

1 kg on a spring starts at rest and is driven by two sines, a slow one that lets it slide both ways
and a faster one that reverses it before it slides: the motion shows the bristles as well as the
limit. Position and velocity are measured at 300 times on 0 to 6 s with normal noise of 0.3 % of
their peaks; for Iwan's joint, whose slip hardly reaches its limit, on 0 to 10 s with 0.1 %. ``A``
of Bouc-Wen is kept at 1 (``k``, ``A``, ``beta`` and ``gamma`` are one too many), the slope ``v_s``
of LuGre's Stribeck curve at its true value.
"""

import argparse
import json

from identify_common import Study, compared, print_report

import jfric

LAWS = {
    "dahl": (
        jfric.Dahl("u", sigma=200.0, F_c=1.0),
        {"sigma": (60.0, 600.0), "F_c": (0.4, 2.5)},
    ),
    "bouc_wen": (
        jfric.BoucWen("u", k=200.0, beta=120.0, gamma=80.0),
        {"k": (60.0, 600.0), "beta": (60.0, 300.0), "gamma": (20.0, 200.0)},
    ),
    "lugre": (
        jfric.LuGre("u", sigma0=200.0, sigma1=3.0, sigma2=0.5, F_c=1.0, F_s=1.5, v_s=0.2),
        {
            "sigma0": (60.0, 600.0),
            "sigma1": (0.5, 15.0),
            "sigma2": (0.1, 2.0),
            "F_c": (0.6, 1.24),
            "F_s": (1.25, 2.0),
        },
    ),
    "iwan": (
        jfric.Iwan("u", F_S=1.0, K_T=20.0, chi=-0.3, beta=0.5, count=12),
        {"F_S": (0.5, 2.0), "K_T": (10.0, 40.0), "chi": (-0.7, 0.3), "beta": (0.2, 1.2)},
    ),
}
#: Parameters that may be of either sign.
SIGNED = ("chi",)
#: Amplitude [N] and angular frequency [rad/s] of both sines, length [s], and noise as a part of the
#: peak. The beginning of slip in a joint has little effect on the motion.
SLIDING = (((2.2, 3.0), (1.0, 14.0)), 6.0, 0.003)
DRIVES = {"iwan": (((1.2, 3.0), (0.5, 7.0)), 10.0, 0.001)}


def study(law: str) -> Study:
    element, free = LAWS[law]
    sines, end, noise = DRIVES.get(law, SLIDING)
    drive, tremble = (jfric.Harmonic(*sine) for sine in sines)
    elements = {
        "mass": jfric.Mass("u", 1.0),
        "spring": jfric.Spring("u", 5.0),
        "load": {"drive": jfric.Load("u", drive), "tremble": jfric.Load("u", tremble)},
        law: element,
    }
    return Study(
        title=f"{type(element).__name__}: from position and velocity under two sines",
        problem=jfric.Problem(["u"], elements, time=end),
        truth={f"{law}.{name}": float(getattr(element, name)) for name in free},
        free={
            f"{law}.{name}": jfric.Free(*bounds, scale="linear" if name in SIGNED else "log")
            for name, bounds in free.items()
        },
        signals=("u", "v.u"),
        samples=300,
        noise=noise,
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--law", default=",".join(LAWS), help=f"of {', '.join(LAWS)}, with commas")
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="print the numbers as JSON")
    options = parser.parse_args()
    found = {}
    for law in options.law.split(","):
        found[law] = compared(study(law), options)
        if not options.json:
            print_report(found[law])
    if options.json:
        print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
