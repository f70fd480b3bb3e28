"""Elements in systems of every kind, two by two, under every solver: a result or one sentence.

    python experiments/pair_elements.py [--pairs 60] [--seed 1] [--systems sleigh,rod]

Each system gets two elements at random. Solvers, periodic orbits and steady sliding trace it:
what they cannot represent is one sentence (:class:`jfric.ProblemError`), and anything else that is
raised is a failure. The exit status is 0 without failures.
"""

from __future__ import annotations

import argparse
import random
import sys
import traceback
import warnings
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

import jfric
from jfric import elements

jax.config.update("jax_enable_x64", True)

#: Elements take what their converters take, which checkers of types do not know.
of: Any = elements
law: Any = jfric

#: Sections of elements, each with the elements by name.
Sections = dict[str, dict[str, Any]]


class System(NamedTuple):
    """A system to which elements are added along the coordinates ``a`` and ``b``."""

    dofs: dict[str, str]
    elements: Sections
    a: str
    b: str
    initial: Mapping[str, Any] = MappingProxyType({})
    parameters: Mapping[str, float] = MappingProxyType({})


_LINE = {"x": "translation", "y": "translation"}
_ARM: dict[str, Any] = {
    "m": 1.0,
    "J": (0.1, 0.1, 0.1, 0.0, 0.0, 0.0),
    "axis": (0, 1, 0),
    "com": (0, 0, -0.5),
}
_START = {"x": jfric.InitialState(q=0.1, v=0.3)}
SYSTEMS = {
    "line": System(
        _LINE,
        {
            "mass": {"x": jfric.Mass("x", 1.0), "y": jfric.Mass("y", 2.0)},
            "spring": {"x": jfric.Spring("x", 30.0)},
        },
        "x", "y", _START,
    ),
    # Its start follows from the pin.
    "rod": System(
        {},
        {
            "body": {"rod": jfric.Body(2.0, 0.2, points={"top": (0, 1), "tip": (0, -1)})},
            "gravity": {"gravity": jfric.Gravity(10.0)},
            "pin": {"top": jfric.Pin(("rod.top", "ground"))},
        },
        "rod_phi", "rod_x",
    ),
    "links": System(
        {},
        {
            "link": {
                "upper": jfric.Link(**_ARM),
                "lower": jfric.Link(parent="upper", at=(0, 0, -1.0), **_ARM),
            },
            "gravity": {"gravity": jfric.Gravity(10.0)},
        },
        "lower", "upper", {"upper": jfric.InitialState(q=0.1)},
    ),
    "sleigh": System(
        {"x": "translation", "y": "translation", "theta": "rotation"},
        {
            "lagrangian": {
                "kinetic": jfric.Lagrangian(
                    kinetic="0.5*m*((v.x - a*sin(theta)*v.theta)^2"
                    " + (v.y + a*cos(theta)*v.theta)^2) + 0.5*J*v.theta^2"
                )
            },
            "velocity": {
                "forward": jfric.Velocity({"x": "cos(theta)", "y": "sin(theta)"}, v=1.0),
                "turn": jfric.Velocity({"theta": 1}, v=1.0, kind="rotation"),
            },
        },
        "theta", "x", {}, {"m": 1.0, "J": 0.5, "a": 0.5},
    ),
    "varying": System(
        _LINE,
        {
            "lagrangian": {
                "both": jfric.Lagrangian(
                    kinetic="0.5*(1 + x^2)*v.x^2 + 0.5*v.y^2", potential="2*x^2"
                )
            }
        },
        "x", "y", _START,
    ),
}  # fmt: skip


def _load(a: str) -> jfric.Load:
    return jfric.Load(a, jfric.Harmonic(3.0, omega=4.0))


def _friction(mu: Any, **more: Any) -> Callable[[str, str], Sections]:
    return lambda a, b: {"friction": {"f": of.Friction(a, mu, N=2.0, **more)}}


def _motor(**more: Any) -> Callable[[str, str], Sections]:
    return lambda a, b: {"motor": {"m": of.Motor(a, kt=0.5, V=2.0, R=1.0, **more)}}


_WINDING: dict[str, Any] = {"L": 0.01, "C_th": 10.0, "R_th": 2.0, "alpha": 0.004}
_PID: dict[str, Any] = {"kp": 5.0, "kd": 0.5, "reference": 0.2}
#: Elements by name, along the coordinates ``a`` and ``b``.
ELEMENTS: dict[str, Callable[[str, str], Sections]] = {
    "coulomb": _friction(0.2),
    "static": _friction(jfric.StaticDynamic(0.3, 0.2)),
    "stribeck": _friction(jfric.Stribeck(0.3, 0.2, v_s=0.1)),
    "belt": _friction(0.2, belt=0.1),
    "curve": _friction(law.FrictionCurve([0.0, 0.1, 1.0], [0.3, 0.2, 0.25])),
    "position": _friction(0.2, position=jfric.PeriodicFactor(1.0)),
    "carried": lambda a, b: {
        "load": {"carried": _load(a)},
        "friction": {"c": of.Friction(a, limit=0.3, kappa=0.2, load="load.carried")},
    },
    "plane": lambda a, b: {"friction": {"p": of.Friction(plane=[a, b], law=0.2, N=1.0)}},
    "contact": lambda a, b: {"contact": {"c": jfric.Contact(a, gap=0.5, e=0.5)}},
    "stop": lambda a, b: {"stop": {"s": jfric.Stop(a, k=500.0, gap=0.15)}},
    "clearance": lambda a, b: {"gap_spring": {"g": of.GapSpring(a, 100.0, 100.0, 0.05, 0.05)}},
    "jenkins": lambda a, b: {"jenkins": {"j": of.Jenkins(a, k=20.0, R=0.4)}},
    "maxwell": lambda a, b: {"maxwell_slip": {"m": of.MaxwellSlip(a, k=[10, 20], R=[0.2, 0.3])}},
    "masing": lambda a, b: {"masing_spring": {"m": of.MasingSpring(a, x=[0.1, 0.3], F=[1, 1.5])}},
    "dahl": lambda a, b: {"dahl": {"d": of.Dahl(a, sigma=50.0, F_c=0.4)}},
    "lugre": lambda a, b: {
        "lugre": {
            "l": of.LuGre(a, sigma0=50.0, sigma1=1.0, sigma2=0.4, F_c=0.3, F_s=0.4, v_s=0.1)
        }
    },
    "state": lambda a, b: {
        "state": {"lag": jfric.State(f"{a} - z.lag", force="-z.lag", direction=a)}
    },
    "heat": lambda a, b: {
        "friction": {"brake": of.Friction(a, 0.2, N=1.0)},
        "state": {"heat": jfric.State("-lambda_t.brake*slip.brake", unit="J")},
    },
    "motor": _motor(),
    "winding": _motor(**_WINDING),
    "drive": _motor(L=0.01, i_max=1.0),
    "limited": _motor(i_max=1.0),
    "gear": lambda a, b: {
        "load": {"gear": _load(a)},
        "transmission": {
            "g": of.Transmission(a, motor="load.gear", limit=0.1, km=0.2, kms=0.1, v_s=0.1)
        },
    },
    "sampled": lambda a, b: {
        "load": {"pid": jfric.Load(a, 0.0)},
        "controller": {"pid": jfric.Controller(a, "load.pid", period=0.02, ki=1.0, **_PID)},
    },
    "continuous": lambda a, b: {
        "load": {"pd": jfric.Load(a, 0.0)},
        "controller": {"pd": jfric.Controller(a, "load.pd", **_PID)},
    },
    "support": lambda a, b: {
        "base": {"wall": jfric.Base(jfric.Harmonic(0.1, omega=5.0))},
        "spring": {"wall": jfric.Spring({a: 1.0, "wall": -1.0}, 20.0)},
    },
    "event": lambda a, b: {"event": {"e": jfric.Event(f"{a} - 0.12")}},
    "end": lambda a, b: {"event": {"s": jfric.Event(f"{a} - 0.12", action="stop")}},
    "drag": lambda a, b: {"drag": {"d": of.Drag(a, c=0.5)}},
    "cubic": lambda a, b: {"polynomial_spring": {"p": of.PolynomialSpring(a, [5.0, 0.0, 3.0])}},
    "force": lambda a, b: {"force": {"f": jfric.Force(a, f"-0.3*v.{a}*{a}^2")}},
    "potential": lambda a, b: {"lagrangian": {"p": jfric.Lagrangian(potential=f"0.75*{a}^4")}},
    "harmonic": lambda a, b: {"load": {"h": _load(a)}},
    "steps": lambda a, b: {"load": {"s": jfric.Load(a, jfric.Steps([0.2, 0.4], [0, 2.0, -1.0]))}},
    "joint": lambda a, b: {"joint": {"j": jfric.Joint(f"{a} - {b}")}},
}  # fmt: skip


def made(system: str, *names: str) -> jfric.Problem:
    """The system with the elements ``names``."""
    dofs, given, a, b, initial, parameters = SYSTEMS[system]
    elements = {section: dict(group) for section, group in given.items()}
    for name in names:
        for section, group in ELEMENTS[name](a, b).items():
            elements.setdefault(section, {}).update(group)
    return jfric.Problem(
        dofs, elements, initial=dict(initial), parameters=dict(parameters), time=0.5
    )


_SOLVERS = (
    jfric.EventDriven(), jfric.MoreauJean(dt=1e-2), jfric.Midpoint(dt=1e-2), jfric.Smoothed(),
    jfric.QuasiStatic(),
)  # fmt: skip
#: What is asked of each problem, by name.
WAYS: dict[str, Callable[[jfric.Problem], Any]] = {
    solver.label: lambda p, solver=solver: jfric.simulate(p, solver).q for solver in _SOLVERS
} | {
    "outputs": lambda p: jfric.simulate(p, ts=jnp.linspace(0.0, 0.5, 5)).a,
    "periodic": lambda p: jfric.periodic_orbit(p).state,
    "steady sliding": lambda p: jfric.steady_sliding(p).q,
}


def failures(system: str, names: tuple[str, ...]) -> dict[str, str]:
    """What fails with something else than a sentence, and how."""
    found: dict[str, str] = {}
    try:
        problem = made(system, *names)
    except jfric.ProblemError:
        return found
    for way, ask in WAYS.items():
        try:
            jax.eval_shape(ask, problem)
        except (jfric.ProblemError, jfric.SimulationError):
            continue
        except Exception as error:  # any other is what is looked for
            frames = traceback.extract_tb(error.__traceback__)
            own = [f"{x.name}:{x.lineno}" for x in frames if "/jfric/" in x.filename]
            said = str(error).splitlines()[0]
            found[way] = f"{type(error).__name__}: {said} ({', '.join(own[-3:])})"
    return found


def main() -> int:
    """Run the command line; 1 if anything failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--pairs", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--systems", default=",".join(SYSTEMS))
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    rng, failed = random.Random(given.seed), 0
    for _ in range(given.pairs):
        system = rng.choice(given.systems.split(","))
        names = tuple(rng.sample(list(ELEMENTS), 2))
        for way, how in failures(system, names).items():
            failed += 1
            print(f"{system} with {' and '.join(names)}, {way}: {how}", flush=True)
    print(f"{given.pairs} pairs, {failed} failures")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
