"""Friction with memory: its cost compared with SciPy and time stepping, and in batches.

- lugre: ``configs/m5_lugre.toml``, stick-slip over 30 s at 1e5 N/m: the event-driven solver (Radau
  IIA of order 13 under error control), SciPy's ``Radau`` sign by sign, both to 1e-10; and
  Moreau-Jean steps of the set-valued Stribeck law that LuGre tends to, which is another model.
- limit: distance of LuGre from that law as its stiffness ``sigma0`` grows (``sigma1`` with its
  root): of the position over 15 s, in its largest value, and of the time of the first slip's end.
- iwan: errors of force and loss of Iwan's joint with ever more sliders, over amplitudes up to
  macroslip, compared with Segalman's integrals, and the order of these errors.
- batch: trajectories per second, and per second of processor time of all cores, which other work
  on the machine does not change: ``jfric.sweep`` over the mass after one that compiles where that
  takes less than a minute, 16 Jenkins elements side by side, Dahl, Bouc-Wen and LuGre (a tenth of
  the trajectories) on the oscillator of ``configs/ve0116.toml``; passes of a trajectory.

    python experiments/benchmarks/bristles.py [--json] [--lanes 100000] [--only lugre,limit,iwan]
        [--laws Dahl,LuGre]
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
END = 30.0


def drawn(sigma0: float | None, end: float):
    """A mass of 1 kg drawn by a spring, with LuGre's friction, or the set-valued law for None."""
    import jfric

    elements = {
        "mass": jfric.Mass("u", 1.0),
        "base": {"hand": jfric.Base(jfric.PiecewiseLinear([0.0, 100.0], [0.0, 10.0]))},
        "spring": jfric.Spring(("u", "hand"), k=2.0),
    }
    if sigma0 is None:
        law = jfric.Stribeck(mu_s=1.5, mu_d=1.0, v_s=1e-3)
        elements |= {"friction": jfric.Friction("u", law, N=1.0), "damper": jfric.Damper("u", 0.4)}
    else:
        elements["lugre"] = jfric.LuGre(
            "u", sigma0=sigma0, sigma1=sigma0**0.5, sigma2=0.4, F_c=1.0, F_s=1.5, v_s=1e-3
        )
    return jfric.Problem(["u"], elements, time=end)


def timed(run, repeat: int = 3):
    """The result of ``run``, the time of its first call and the best of further calls [s]."""
    start = time.perf_counter()
    found = run()
    first, best = time.perf_counter() - start, np.inf
    for _ in range(repeat):
        start = time.perf_counter()
        found = run()
        best = min(best, time.perf_counter() - start)
    return found, first, best


def lugre() -> dict:
    import jax
    from references import lugre as reference

    import jfric

    problem, ts = drawn(1e5, END), np.array([END])

    def exact():
        return jax.block_until_ready(jfric.simulate(problem, jfric.EventDriven(rtol=1e-10), ts=ts))

    found, first, best = timed(exact)
    start = time.perf_counter()
    _, times = reference.drawn(END)
    scipy = time.perf_counter() - start
    events = [e["time"] for e in found.event_table()]
    distance = max(abs(a - b) for a, b in zip(events, times, strict=True))
    rigid, dt = drawn(None, END), 1e-4

    def steps():
        return jax.block_until_ready(jfric.simulate(rigid, jfric.MoreauJean(dt=dt), ts=ts))

    _, _, moreau = timed(steps)
    return {
        "jfric [s]": best,
        "jfric with compilation [s]": first,
        "steps": int(found.steps),
        "SciPy Radau [s]": scipy,
        "SciPy / jfric": scipy / best,
        "distance of event times [s]": distance,
        f"Moreau-Jean, set-valued, dt = {dt:g} [s]": moreau,
    }


def limit() -> list[dict]:
    import jfric

    ts = np.linspace(0.0, 15.0, 1501)
    rigid = jfric.simulate(drawn(None, 15.0), jfric.EventDriven(rtol=1e-10), ts=ts)
    stop = next(e["time"] for e in rigid.event_table() if e["to"] == "stick")
    rows = []
    for sigma0 in 10.0 ** np.arange(3, 9):
        solver = jfric.EventDriven(rtol=1e-10, max_steps=200_000)
        found = jfric.simulate(drawn(float(sigma0), 15.0), solver, ts=ts)
        found.check()
        first = [e["time"] for e in found.event_table() if e["to"] == "backward"][:1]
        rows.append(
            {
                "sigma0 [N/m]": sigma0,
                "distance [m]": float(np.abs(found.q - rigid.q).max()),
                "end of the first slip, later by [s]": first[0] - stop if first else np.nan,
                "steps": int(found.steps),
            }
        )
    for before, row in zip([None, *rows[:-1]], rows, strict=True):
        ratio = np.nan if before is None else before["distance [m]"] / row["distance [m]"]
        row["order"] = float(np.log10(ratio))
    return rows


def iwan() -> list[dict]:
    import jfric

    four = {"K_T": 2.0, "F_S": 3.0, "chi": -0.1, "beta": 0.1}
    c, b = four["chi"], four["beta"]
    rows = []
    for count in 5 * 2 ** np.arange(1, 8) + 1:
        joint = jfric.Iwan("u", count=int(count), **four)
        parts, top = joint.branches(), float(joint.phi_max)
        k, slip = np.asarray(parts.k), np.asarray(parts.slip)
        # Density R phi^chi and the mass point S of the article, at amplitudes below macroslip.
        R = four["F_S"] * (c + 1) / (top ** (c + 2) * (b + (c + 1) / (c + 2)))
        S = four["F_S"] / top * b / (b + (c + 1) / (c + 2))
        X = top * np.linspace(0.05, 0.999, 1000)
        force = R * (X ** (c + 2) / (c + 2) + X * (top ** (c + 1) - X ** (c + 1)) / (c + 1)) + S * X
        lost = 4.0 * R * X ** (c + 3) / ((c + 2) * (c + 3))
        over = np.maximum(X[:, None] - slip, 0.0)
        found = (k * np.minimum(X[:, None], slip)).sum(axis=1), (4.0 * k * slip * over).sum(axis=1)
        rows.append(
            {
                "sliders": int(count),
                "force, of macroslip": float(np.abs(found[0] - force).max() / four["F_S"]),
                "loss, of the largest": float(np.abs(found[1] - lost).max() / lost.max()),
            }
        )
    for before, row in zip([None, *rows[:-1]], rows, strict=True):
        for name in ("force, of macroslip", "loss, of the largest"):
            ratio = np.nan if before is None else before[name] / row[name]
            parts = np.nan if before is None else (row["sliders"] - 1) / (before["sliders"] - 1)
            row[f"order of {name.split(',')[0]}"] = float(np.log(ratio) / np.log(parts))
    return rows


def batch(lanes: int, laws: str) -> list[dict]:
    import jfric

    base = jfric.load(ROOT / "configs" / "ve0116.toml")
    others = {k: v for k, v in base.elements.items() if k != "friction"}
    k = np.linspace(1000.0, 3000.0, 16) / 16
    elements = {
        "16 Jenkins elements": jfric.MaxwellSlip("u", k=4.0 * k, R=np.linspace(2.0, 12.0, 16)),
        "Dahl": jfric.Dahl("u", sigma=1e4, F_c=100.0),
        "Bouc-Wen": jfric.BoucWen("u", k=1e4, beta=60.0, gamma=40.0),
        "LuGre": jfric.LuGre(
            "u", sigma0=1e5, sigma1=600.0, sigma2=10.0, F_c=90.0, F_s=110.0, v_s=0.01
        ),
    }
    wanted = laws.split(",") if laws else list(elements)
    if unknown := [name for name in wanted if name not in elements]:
        raise SystemExit(f"--laws: {unknown[0]!r} is none of {', '.join(elements)}")
    sections = {"16 Jenkins elements": "maxwell_slip", "Dahl": "dahl", "Bouc-Wen": "bouc_wen"}
    rows = []
    for name, element in elements.items():
        if name not in wanted:
            continue
        own = others | {sections.get(name, "lugre"): element}
        problem = jfric.Problem(base.dofs, own, initial=base.initial, time=base.time)
        count = lanes if name != "LuGre" else max(lanes // 10, 1)

        def run(n, problem=problem):
            vary = {"mass.m": jfric.Range(90.0, 110.0, n)}
            return jfric.sweep(problem, vary, observe="final.u", progress=False)

        wall = 0.0
        # The first run compiles; if that takes a good part of its time, the second run counts.
        for _ in range(2):
            if wall < 60.0:
                start, used = time.perf_counter(), time.process_time()
                table = run(count)
                wall, used = time.perf_counter() - start, time.process_time() - used
        rows.append(
            {
                "law": name,
                "trajectories": count,
                "time [s]": wall,
                "per second": count / wall,
                "per second of one core": count / used,
                "passes": float(np.asarray(table["steps"]).mean()),
                "not ok": int((np.asarray(table["status"]) != 0).sum()),
            }
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--lanes", type=int, default=100_000, help="trajectories of a batch")
    parser.add_argument("--laws", default="", help="of the batch, comma separated; by default all")
    parser.add_argument("--only", default="lugre,limit,iwan,batch", help="parts, comma separated")
    chosen = parser.parse_args()
    import jax

    from jfric.numerics.compilation import compile_quickly

    compile_quickly()
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_num_cpu_devices", os.cpu_count() or 1)
    parts = {
        "lugre": lugre,
        "limit": limit,
        "iwan": iwan,
        "batch": lambda: batch(chosen.lanes, chosen.laws),
    }
    found = {name: parts[name]() for name in chosen.only.split(",")}
    if chosen.json:
        print(json.dumps(found, indent=2))
        return
    for name, rows in found.items():
        print(f"\n{name}")
        for row in rows if isinstance(rows, list) else [rows]:
            cells = (f"{k} {v:.6g}" if isinstance(v, float) else f"{k} {v}" for k, v in row.items())
            print("  " + ", ".join(cells))


if __name__ == "__main__":
    main()
