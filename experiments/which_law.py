"""Choice of a law: friction laws of the same limit in five situations, and their cost.

    python experiments/which_law.py [--law Coulomb,LuGre] [--json] [--out results/figures]

All laws have the kinetic limit 1 N; laws with a static limit have 1.5 N, with Stribeck's velocity
0.1 m/s; laws with bristles or springs have the stiffness 1000 N/m at rest.

- creep: 1 kg with a damper of 10 N s/m under 0.5 N and a dither of 0.3 N at 5 rad/s, always below
  every limit. Steady drift from cycle to cycle (cycles 20 to 30, and its change since cycles 10 to
  20), and its extrapolation to 10^6 s.
- loop: drawn to 4 mm, back to 2.5 mm, to 4 mm again, then to -4 mm and 4 mm, at 2 mm/s. Force at 4
  mm after the small loop minus the force before it (zero: the loop closes), and work over the small
  loop, which includes stored energy if the loop does not close.
- break-away: largest friction force on 1 kg under a load that grows by 0.1 to 100 N/s.
- lag: drawn at 0.05 + 0.04 sin(20 t) m/s without reversal; largest difference of friction at
  0.05 m/s between growing and falling speed, in the fourth cycle.
- cost: one trajectory of 1 kg on 5 N/m under 2.2 N at 3 rad/s and 1 N at 14 rad/s, 6 s long;
  event-driven, best of three runs after the one that compiles.
"""

import argparse
import json
import time
from pathlib import Path

import jax
import numpy as np
from common import BLUE, GOLD, GREEN, GREY, PURPLE, RED, TEAL, figure, print_table, save

import jfric

SIGMA, LIMIT, STATIC, V_S = 1000.0, 1.0, 1.5, 0.1
LUGRE = {"sigma0": SIGMA, "sigma1": 10.0, "F_c": LIMIT, "F_s": STATIC, "v_s": V_S}
#: Section, element along a direction, colour.
LAWS = {
    "Coulomb": ("friction", lambda w: jfric.Friction(w, jfric.Coulomb(LIMIT), N=1.0), GREY),
    "Stribeck": (
        "friction",
        lambda w: jfric.Friction(w, jfric.Stribeck(mu_s=STATIC, mu_d=LIMIT, v_s=V_S), N=1.0),
        "#000000",
    ),
    "Jenkins": ("jenkins", lambda w: jfric.Jenkins(w, k=SIGMA, R=LIMIT), BLUE),
    "Iwan": (
        "iwan",
        lambda w: jfric.Iwan(w, K_T=SIGMA, F_S=LIMIT, chi=-0.3, beta=0.5, count=20),
        TEAL,
    ),
    "Dahl": ("dahl", lambda w: jfric.Dahl(w, sigma=SIGMA, F_c=LIMIT), GREEN),
    "Bouc-Wen": (
        "bouc_wen",
        lambda w: jfric.BoucWen(w, k=SIGMA, beta=0.8 * SIGMA, gamma=0.2 * SIGMA),
        GOLD,
    ),
    "LuGre": ("lugre", lambda w: jfric.LuGre(w, **LUGRE), RED),
    "elasto-plastic LuGre": ("lugre", lambda w: jfric.LuGre(w, breakaway=0.7, **LUGRE), PURPLE),
}
HAND = ("u", "hand")
RATES = (0.1, 1.0, 10.0, 100.0)
DITHER = 5.0
SPEED = 2e-3
CORNERS = np.array([0.0, 4e-3, 2.5e-3, 4e-3, -4e-3, 4e-3])


def law_of(name: str, along) -> dict:
    section, element, _ = LAWS[name]
    return {section: element(along)}


def solved(problem: jfric.Problem, ts) -> jfric.Solution:
    found = jfric.simulate(problem, jfric.EventDriven(max_events=10_000), ts=ts)
    found.check()
    return found


def resistance(name: str, problem: jfric.Problem, solution: jfric.Solution) -> np.ndarray:
    """Force that resists forward motion [N]."""
    section = LAWS[name][0]
    if section == "friction":
        return -np.asarray(solution.lambda_t)[:, solution.names.index(section)]
    return -np.asarray(jfric.spring_forces(problem, solution)[section])


def creep(name: str) -> dict:
    period = 2.0 * np.pi / DITHER
    elements = {
        "mass": jfric.Mass("u", 1.0),
        "damper": jfric.Damper("u", 10.0),
        "load": {
            "mean": jfric.Load("u", jfric.PiecewiseLinear([0.0, 2.0, 1e3], [0.0, 0.5, 0.5])),
            "dither": jfric.Load("u", jfric.Harmonic(0.3, DITHER)),
        },
    }
    problem = jfric.Problem(["u"], elements | law_of(name, "u"), time=30 * period)
    u = np.asarray(solved(problem, period * np.array([10.0, 20.0, 30.0])).q)[:, 0]
    first, last = np.diff(u) / 10.0
    # Movement by rounding errors over ten cycles is no drift.
    first, last = (0.0 if abs(x) < 1e-12 else float(x) for x in (first, last))
    return {
        "per cycle [m]": last,
        "change since ten cycles [m]": last - first,
        "in 1e6 s, extrapolated [m]": last * 1e6 / period,
    }


def drawn(name: str, hand, end: float) -> jfric.Problem:
    """The law between a hand and a body that is held fast."""
    elements = {
        "mass": jfric.Mass("u", 1.0),
        "friction": {"held": jfric.Friction("u", limit=1e3)},
        "base": {"hand": jfric.Base(hand)},
    }
    own = law_of(name, HAND)
    if "friction" in own:
        own = {"friction": elements["friction"] | {"friction": own["friction"]}}
    return jfric.Problem(["u"], elements | own, time=end)


def loop(name: str) -> dict:
    ways, per = np.abs(np.diff(CORNERS)), 100
    corners = np.concatenate([[0.0], np.cumsum(ways)]) / SPEED
    hand = jfric.PiecewiseLinear(corners, CORNERS)
    problem = drawn(name, hand, corners[-1])
    # Forces of set-valued laws jump at the corners.
    near = 1e-9
    ends = zip(corners[:-1] + near, corners[1:] - near, strict=True)
    ts = np.concatenate([np.linspace(*pair, per) for pair in ends])
    force = resistance(name, problem, solved(problem, ts))
    x = np.interp(ts, corners, CORNERS)
    small = slice(per, 3 * per)
    work = float(np.trapezoid(force[small], x[small]))
    closes = float(force[3 * per - 1] - force[per - 1])
    return {
        "force after less before [N]": closes if abs(closes) > 1e-8 else 0.0,
        "work over the small loop [J]": work if abs(work) > 1e-12 else 0.0,
        "curve": (x.tolist(), force.tolist()),
    }


def breakaway(name: str) -> dict:
    found = {}
    for rate in RATES:
        # Long enough for a slip of some millimetres after the largest force.
        end = 3.0 / rate + 0.3
        elements = {
            "mass": jfric.Mass("u", 1.0),
            "load": jfric.Load("u", jfric.PiecewiseLinear([0.0, end], [0.0, rate * end])),
        }
        problem = jfric.Problem(["u"], elements | law_of(name, "u"), time=end)
        force = resistance(name, problem, solved(problem, np.linspace(0.0, end, 3001)))
        found[f"at {rate:g} N/s [N]"] = float(force.max())
    return found


def lag(name: str) -> dict:
    omega, per = 20.0, 400
    period = 2.0 * np.pi / omega
    way = jfric.PiecewiseLinear([0.0, 10.0], [0.0, 0.5])
    hand = jfric.functions.Sum([way, jfric.Harmonic(-0.04 / omega, omega, np.pi / 2.0)])
    problem = drawn(name, hand, 4.0 * period)
    # The speed 0.05 + 0.04 sin(omega t) is equal at s and at half a period minus s.
    s = np.linspace(-np.pi / 2.0, np.pi / 2.0, per)
    rising, falling = (6.0 * np.pi + x for x in (s, np.pi - s))
    ts = np.concatenate([rising, falling]) / omega
    order = np.argsort(ts)
    force = np.empty(ts.size)
    force[order] = resistance(name, problem, solved(problem, ts[order]))
    up, down = force[:per], force[per:]
    wide = np.abs(up - down)
    return {
        "difference at 0.05 m/s [N]": float(np.interp(0.0, s, wide)),
        "curve": (
            np.concatenate([v := 0.05 + 0.04 * np.sin(s), v[::-1]]).tolist(),
            np.concatenate([up, down[::-1]]).tolist(),
        ),
    }


def cost(name: str) -> dict:
    elements = {
        "mass": jfric.Mass("u", 1.0),
        "spring": jfric.Spring("u", 5.0),
        "load": {
            "slow": jfric.Load("u", jfric.Harmonic(2.2, 3.0)),
            "fast": jfric.Load("u", jfric.Harmonic(1.0, 14.0)),
        },
    }
    problem = jfric.Problem(["u"], elements | law_of(name, "u"), time=6.0)
    seconds = []
    for _ in range(4):
        start = time.perf_counter()
        found = jax.block_until_ready(solved(problem, np.array([6.0])))
        seconds.append(time.perf_counter() - start)
    return {"ms per simulated second": 1e3 * min(seconds[1:]) / 6.0, "passes": int(found.steps)}


PARTS = {"creep": creep, "loop": loop, "break-away": breakaway, "lag": lag, "cost": cost}


def draw(found: dict, path: Path) -> None:
    made, axes = figure(11.0, 7.6, 2, 2)
    names = list(found)
    colours = [LAWS[name][2] for name in names]
    for name, colour in zip(names, colours, strict=True):
        x, force = found[name]["loop"]["curve"]
        axes[0, 0].plot(1e3 * np.array(x), force, color=colour, lw=1.2, label=name)
        rates = list(found[name]["break-away"].values())
        axes[0, 1].semilogx(RATES, rates, "o-", color=colour, ms=4, lw=1.2, label=name)
        v, force = found[name]["lag"]["curve"]
        axes[1, 0].plot(v, force, color=colour, lw=1.2, label=name)
    creeps = [found[name]["creep"]["in 1e6 s, extrapolated [m]"] for name in names]
    axes[1, 1].barh(names, creeps, color=colours)
    axes[1, 1].set_xscale("symlog", linthresh=1e-3)
    axes[1, 1].invert_yaxis()
    for y, value in enumerate(creeps):
        axes[1, 1].text(0.0 if value <= 0 else value, y, f" {value:.3g} m", va="center", fontsize=8)
    axes[1, 1].set_xlim(0.0, 3e4)
    texts = {
        (0, 0): ("Hysteresis with a partial reversal", "way [mm]", "friction [N]"),
        (0, 1): ("Break-away force", "growth of the load [N/s]", "largest friction [N]"),
        (1, 0): ("Lag: speed that oscillates", "sliding velocity [m/s]", "friction [N]"),
        (1, 1): ("Creep under half the limit, trembling", "in 10$^6$ s, extrapolated [m]", ""),
    }
    for place, (title, along, up) in texts.items():
        axes[place].set_title(title, fontsize=10, loc="left")
        axes[place].set_xlabel(along)
        axes[place].set_ylabel(up)
    axes[0, 1].legend(frameon=False, fontsize=8)
    save(made, path, "Eight laws of friction with the same limit")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--law", default=",".join(LAWS), help="laws, comma separated")
    parser.add_argument("--json", action="store_true", help="print JSON, draw nothing")
    parser.add_argument("--out", type=Path, default=Path("results/figures"), help="folder")
    chosen = parser.parse_args()
    found = {
        name: {part: run(name) for part, run in PARTS.items()} for name in chosen.law.split(",")
    }
    if chosen.json:
        print(json.dumps(found, indent=2))
        return
    for part in PARTS:
        header = [key for key in next(iter(found.values()))[part] if key != "curve"]
        rows = [[name, *(f"{row[part][key]:.4g}" for key in header)] for name, row in found.items()]
        print_table(part, ["law", *header], rows)
    chosen.out.mkdir(parents=True, exist_ok=True)
    draw(found, chosen.out / "which_law.png")


if __name__ == "__main__":
    main()
