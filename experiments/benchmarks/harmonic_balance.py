"""Harmonic balance in jfric and in pyHarm (PyPI: pyharm-os): values and times of two responses.

1. Duffing's oscillator with 21 harmonics, from 0.6 to 1.6 rad/s round both folds.
2. Two masses with a friction damper and 7 harmonics, from 0.5 to 1.7 rad/s. pyHarm's dynamic
   Lagrangian elements correct friction in a march through the period, which remembers where a
   contact stuck; jfric's projections use velocities only. With few harmonics both are approximate.

The script compares the amplitude of the first harmonic at pyHarm's own points outside the folds,
and for system 2 both amplitudes with the event-driven motion. Times include compilation; each
package chooses its own steps.

pyHarm runs in the Python of ``--pyharm`` (a separate environment); if that is missing, or pyHarm is
not installed there, the comparison is skipped with a sentence.

    python experiments/benchmarks/harmonic_balance.py [--pyharm /path/to/python]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

#: Program for pyHarm: a system comes as JSON; its curve is returned as JSON with frequencies,
#: amplitudes of the first harmonic of each degree of freedom, seconds, and seconds of processor
#: time.
PYHARM = """
import json, logging, sys, time, warnings
import numpy as np
warnings.simplefilter("ignore")
logging.disable(logging.CRITICAL)
from pyHarm.Maestro import Maestro

def run(harmonics, low, high, matrices, connectors, step):
    count = len(matrices["M"])
    matrix = {k: np.array(x) for k, x in matrices.items()} | {"G": np.zeros((count, count))}
    analysis = {"study": "frf", "puls_inf": low, "puls_sup": high, "ds_max": step,
                "ds0": 0.01, "ds_min": 1e-7, "verbose": False}
    data = {"analysis": {"frf": analysis}, "system": {"type": "Base", "nh": harmonics, "nti": 512},
            "substructures": {"sub": {"matrix": matrix, "ndofs": 1}},
            "connectors": connectors, "kinematics": {}}
    start, used = time.perf_counter(), time.process_time()
    maestro = Maestro(data)
    maestro.operate()
    took, used = time.perf_counter() - start, time.process_time() - used
    x = np.array([s.x for s in maestro.nls["frf"].SolList if s.flag_accepted])
    first = np.hypot(x[:, count:2 * count], x[:, 2 * count:3 * count])
    return {"omega": x[:, -1].tolist(), "first": first.tolist(), "seconds": took, "processor": used}

print("RESULT" + json.dumps(run(**json.load(sys.stdin))))
"""


def force(amplitude: float) -> dict:
    """A load on the first degree of freedom, for pyHarm."""
    return {"type": "CosinusForcing", "connect": {"sub": [0]}, "dirs": [0], "amp": amplitude}


def ground(kind: str, node: int, **numbers: float) -> dict:
    """An element between a degree of freedom and the ground, for pyHarm."""
    return {"type": kind, "connect": {"sub": [node], "GROUND": [0]}, "dirs": [0], **numbers}


def systems() -> dict[str, dict]:
    """Both systems in the notation of pyHarm."""
    return {
        "duffing": {
            "harmonics": 21,
            "low": 0.6,
            "high": 1.6,
            "matrices": {"M": [[1.0]], "C": [[0.05]], "K": [[1.0]]},
            "connectors": {"force": force(0.18), "cubic": ground("CubicSpring", 0, k=0.1)},
            "step": 0.05,
        },
        "damper": {
            "harmonics": 7,
            "low": 0.5,
            "high": 1.7,
            "matrices": {
                "M": [[1.0, 0.0], [0.0, 0.3]],
                "C": [[0.05, 0.0], [0.0, 0.05]],
                "K": [[1.5, -0.5], [-0.5, 0.7]],
            },
            "connectors": {
                "force": force(1.0),
                "pad": ground("DLFTFriction", 1, mu=0.4, N0=1.0, eps=5.0),
            },
            "step": 0.1,
        },
    }


def in_pyharm(python: str, systems: dict[str, dict], limit: float = 900.0) -> dict[str, dict]:
    """The curves of pyHarm, each from a separate process of at most ``limit`` seconds; a sentence
    gives the reason for a missing one."""
    found = {}
    for name, system in systems.items():
        try:
            # pyHarm leaves a folder in the working directory.
            with tempfile.TemporaryDirectory() as folder:
                done = subprocess.run(
                    [python, "-c", PYHARM],
                    input=json.dumps(system),
                    capture_output=True,
                    text=True,
                    timeout=limit,
                    check=False,
                    cwd=folder,
                )
        except OSError as error:
            print(f"pyHarm: not compared, {python} does not run ({error.strerror})")
            return found
        except subprocess.TimeoutExpired:
            print(f"pyHarm, {name}: no whole curve after {limit:g} s, not compared", flush=True)
            continue
        lines = [line for line in done.stdout.splitlines() if line.startswith("RESULT")]
        if not lines:
            reason = (done.stderr.strip().splitlines() or ["no output"])[-1]
            print(f"pyHarm, {name}: not compared, {python} has none that runs ({reason})")
            continue
        found[name] = json.loads(lines[-1].removeprefix("RESULT"))
    return found


def timed(call):
    start = time.perf_counter()
    found = call()
    return found, time.perf_counter() - start


def distance(values: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Distance of amplitudes (p, n) from the reference, relative to the largest at each point."""
    return np.abs(values - reference).max(axis=1) / np.abs(reference).max(axis=1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pyharm", default=sys.executable, help="Python that has pyharm-os")
    arguments = parser.parse_args()

    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    import harmonic_balance as cases

    import jfric

    damper = cases.two_masses(friction=jfric.Friction("b", limit=0.4))
    runs = {
        "duffing": (cases.duffing(), 21, 0.6, 1.6),
        "damper": (damper, 7, 0.5, 1.7),
    }
    other = in_pyharm(arguments.pyharm, systems())
    for name, (problem, harmonics, low, high) in runs.items():

        def curve(problem=problem, harmonics=harmonics, low=low, high=high):
            return jfric.harmonic_balance(problem, "load.F.omega", low, high, harmonics=harmonics)

        found, cold = timed(curve)
        _, warm = timed(curve)
        print(
            f"{name}, H = {harmonics}: jfric {found.parameter.size} points in {cold:.1f} s, again "
            f"{warm:.1f} s, folds {np.round(found.folds, 8).tolist()}, all solved "
            f"{bool(found.ok.all())}"
        )
        if name not in other:
            continue
        theirs = other[name]
        omega, first = np.array(theirs["omega"]), np.array(theirs["first"])
        print(
            f"  pyHarm {omega.size} points in {theirs['seconds']:.1f} s, to {omega[-1]:.4f} rad/s"
        )
        chosen = (omega >= low) & (omega <= high)
        if found.folds.size:
            inside = (omega > found.folds.min() - 0.01) & (omega < found.folds.max() + 0.01)
            chosen &= ~inside
        places = np.flatnonzero(chosen)[:: max(int(chosen.sum()) // 12, 1)]
        same = jfric.harmonic_balance(
            problem, "load.F.omega", at=omega[places], harmonics=harmonics
        )
        ours = np.stack([same.amplitude(dof, 1) for dof in same.axes], axis=1)
        apart = distance(ours, first[places])[same.ok]
        print(
            f"  first harmonic at {apart.size} of its points: median {np.median(apart):.1e}, "
            f"largest {apart.max():.1e} apart, relative"
        )
        if name == "damper":
            exact, rest = cases.settled(problem, omega[places])
            waves = np.exp(-1j * cases.PHASES)
            reference = np.abs(2 * np.mean(exact * waves[None, :, None], axis=1))
            use = (rest < 1e-6) & same.ok
            for who, values in (("jfric", ours), ("pyHarm", first[places])):
                away = distance(values, reference)[use]
                print(
                    f"  {who} from the event-driven motion at {int(use.sum())} of them: median "
                    f"{np.median(away):.1e}, largest {away.max():.1e}"
                )


if __name__ == "__main__":
    main()
