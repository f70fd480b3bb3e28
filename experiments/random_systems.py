"""Random systems as TOML text: structures by the dozen, numbers for each by the hundred.

A structure (the elements and their places) follows from the seed and its number, the numbers of a
system follow from these and the number of the system; systems of one structure can run as one
batch. A share of the systems has only numbers that people type, small whole ones and halves:
several events then happen at once, and limits are met exactly. Quantities have dimensions:
``text(table, units=...)`` gives the same system in other units.

    python experiments/random_systems.py --seed 3 --kinds joints,planes --count 2
"""

from __future__ import annotations

import argparse
import itertools
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

#: End of all motions [s], and the share of systems with typed numbers.
END, TYPED = 4.0, 0.5

#: Powers of mass, length and time.
DIMENSIONS = {
    "pure": (0, 0, 0), "mass": (1, 0, 0), "length": (0, 1, 0), "time": (0, 0, 1),
    "velocity": (0, 1, -1), "acceleration": (0, 1, -2), "inverse velocity": (0, -1, 1),
    "frequency": (0, 0, -1), "force": (1, 1, -2), "stiffness": (1, 0, -2), "damping": (1, 0, -1),
    "drag": (1, -1, 0), "cubic": (1, -2, -2), "inertia": (1, 2, 0), "torque": (1, 2, -2),
    "rotational damping": (1, 2, -1), "softening": (0, -1, 0),
}  # fmt: skip


class Quantity(NamedTuple):
    """A number in SI units, and the name of its dimension."""

    value: float
    measures: str

    def of(self, factor: float) -> Quantity:
        """The quantity multiplied by ``factor``."""
        return Quantity(factor * self.value, self.measures)


Table = dict[str, Any]


class Draw:
    """Choices of a structure, common to all its systems, and the numbers of one system."""

    def __init__(self, seed: int, structure: int, system: int, typed: float = TYPED):
        self.shape = np.random.default_rng([seed, structure])
        self.rng = np.random.default_rng([seed, structure, 1 + system])
        self.typed = bool(self.rng.random() < typed)

    def one(self, *choices: Any) -> Any:
        """One of the choices, drawn for the structure."""
        return choices[self.shape.integers(len(choices))]

    def chance(self, probability: float) -> bool:
        """Whether the structure has a property of this probability."""
        return bool(self.shape.random() < probability)

    def some(self, choices: Any, count: int) -> list:
        """``count`` different ones of the choices, drawn for the structure."""
        chosen = self.shape.choice(len(choices), size=min(count, len(choices)), replace=False)
        return [choices[i] for i in sorted(chosen)]

    def value(self, *choices: float) -> float:
        """One of the numbers, drawn for the system."""
        return float(self.rng.choice(choices))

    def number(self, low: float, high: float, measures: str = "pure") -> Quantity:
        """A number between two limits; a typed one is a multiple of the coarsest step that fits."""
        if not self.typed:
            return Quantity(float(self.rng.uniform(low, high)), measures)
        step = next(s for s in (1.0, 0.5, 0.25, 0.1, 0.05, 0.01, 1e-3, 1e-4) if high - low >= 2 * s)
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        return Quantity(round(step * int(self.rng.integers(first, last + 1)), 9), measures)

    def signed(self, low: float, high: float, measures: str = "pure") -> Quantity:
        """A number of either sign; a typed one is sometimes zero."""
        sign = self.value(-1, 0, 1, 1) if self.typed else self.value(-1, 1)
        return self.number(low, high, measures).of(sign)

    def direction(self, dofs: list[str], base: bool = False) -> Table:
        """A direction along one of the degrees of freedom, or a combination of two."""
        own = self.some(dofs, self.one(1, 1, 2))
        found = {name: self.number(0.5, 1.5).of(self.value(1, 1, -1)) for name in own}
        return found | ({"floor": Quantity(-1.0, "pure")} if base else {})

    def function(
        self, size: float, measures: str, kinds: str = "constant harmonic steps linear sum"
    ):
        """A function of time of about this size."""
        kind = self.one(*kinds.split())
        level = self.signed(0.25 * size, size, measures)
        if kind == "constant":
            return level
        if kind == "sum":
            return {"sum": [level, {"harmonic": self.wave(0.5 * size, measures)}]}
        if kind == "harmonic":
            return {"harmonic": self.wave(size, measures)}
        levels = [level, *(self.signed(0.25 * size, size, measures) for _ in range(2))]
        if kind == "steps":
            times = [self.number(0.5, 1.5, "time"), self.number(2.0, 3.5, "time")]
            return {"steps": {"times": times, "values": levels}}
        times = [Quantity(0.0, "time"), self.number(0.5, 1.5, "time"), self.number(2, 3.5, "time")]
        return {"linear": {"times": times, "values": levels}}

    def positive_function(self, size: float, measures: str) -> Any:
        """A function of time that stays positive, for a normal force."""
        kind = self.one("constant", "constant", "harmonic", "steps", "linear")
        level = self.number(0.5 * size, size, measures)
        if kind == "constant":
            return level
        if kind == "harmonic":
            wave = self.wave(size, measures) | {"amplitude": level.of(self.value(0.25, 0.5))}
            return {"sum": [level, {"harmonic": wave}]}
        other = self.number(0.5 * size, size, measures)
        if kind == "steps":
            return {"steps": {"times": [self.number(1, 3, "time")], "values": [level, other]}}
        times = [self.number(0.5, 1.5, "time"), self.number(2.0, 3.5, "time")]
        return {"linear": {"times": times, "values": [level, other]}}

    def wave(self, size: float, measures: str) -> Table:
        """A harmonic function of time."""
        phase = self.value(0.0, 0.5 * math.pi, math.pi) if self.typed else self.rng.uniform(0, 6)
        return {
            "amplitude": self.number(0.5 * size, size, measures),
            "omega": self.number(0.5, 3.0, "frequency"),
            "phase": float(phase),
        }

    def law(self, kinds: str = "mu mu static static directional", low: float = 0.25) -> Table:
        """A friction law: Coulomb's, one with two coefficients, or one for each direction."""
        kind = self.one(*kinds.split())
        mu = self.number(low, 0.75)
        if kind == "mu":
            return {"mu": mu}
        if kind == "static":
            return {"mu_s": mu, "mu_d": mu.of(self.value(0.5, 0.75, 1.0))}
        if kind == "directional":
            return {"mu": {"positive": mu, "negative": self.number(low, 0.75)}}
        own = {"mu_s": mu, "mu_d": mu.of(0.5), "v_s": self.number(0.25, 1.0, "velocity")}
        return own | ({"law": "velocity-weakening"} if kind == "weakening" else {})


# Systems of masses, springs and loads along lines, and their possible additions.


def add(table: Table, section: str, element: Table, name: str | None = None) -> str:
    """Add an element to a section; returns its name."""
    group = table.setdefault(section, {})
    name = name or f"{section[0]}{len(group)}"
    group[name] = element
    return name


def masses(d: Draw, most: int = 3, least: int = 1, springs: float = 0.7) -> Table:
    """Add up to three masses with springs, dampers, loads and a start."""
    dofs = list("abc"[: d.one(*range(least, most + 1))])
    table: Table = {"dofs": dofs, "time": {"end": Quantity(END, "time")}, "mass": {}}
    for x in dofs:
        add(table, "mass", {"dof": x, "m": d.number(0.5, 2.0, "mass")}, f"m{x}")
        if d.chance(springs):
            add(table, "spring", {"dof": x, "k": d.number(1, 8, "stiffness")})
        if d.chance(0.3):
            add(table, "damper", {"dof": x, "c": d.number(0.1, 1.0, "damping")})
        if d.chance(0.8):
            add(table, "load", {"dof": x, "F": d.function(2.0, "force")}, f"l{x}")
        table.setdefault("initial", {})[x] = {
            "q": Quantity(0.0, "length"),
            "v": d.signed(0.5, 1.5, "velocity") if d.chance(0.6) else Quantity(0.0, "velocity"),
        }
    if len(dofs) > 1 and d.chance(0.6):
        add(table, "spring", {"between": dofs[:2], "k": d.number(1, 8, "stiffness")})
    return table


def base(d: Draw, table: Table) -> None:
    """Add a moving support, a spring to it, and possibly more."""
    if "base" in table:
        return
    kind = d.one("harmonic", "linear")
    table["base"] = {"floor": {"displacement": d.function(0.25, "length", kind)}}
    spring = {"between": ["floor", d.one(*table["dofs"])], "k": d.number(2, 8, "stiffness")}
    add(table, "spring", spring)
    for _ in range(d.one(0, 1)):
        add(table, "friction", friction(d, d.direction(table["dofs"], base=True)))


def friction(d: Draw, direction: Table, **law: Any) -> Table:
    """Friction element with a given normal force."""
    return {"direction": direction, **(law or d.law()), "N": d.positive_function(3.0, "force")}


def frictions(d: Draw, table: Table) -> None:
    """Add one or two friction elements, with or without static limits."""
    for _ in range(d.one(1, 1, 2)):
        add(table, "friction", friction(d, d.direction(table["dofs"])))


def belt(d: Draw, table: Table) -> None:
    """Add friction on a belt, which sometimes accelerates."""
    own = friction(d, d.direction(table["dofs"]))
    add(table, "friction", own | {"belt": d.function(0.5, "velocity")})


def supports(d: Draw, table: Table) -> None:
    """Add stops, springs with clearance, and springs with a diagram."""
    dofs = table["dofs"]
    for kind in d.some(("stop", "gap_spring", "diagram_spring"), d.one(1, 2)):
        own: Table = {"direction": d.direction(dofs, base="base" in table and d.chance(0.4))}
        if kind == "stop":
            own |= {"k": d.number(20, 80, "stiffness"), "gap": d.number(0.0, 0.3, "length")}
            own |= {"c": d.number(0.5, 2, "damping")} if d.chance(0.6) else {}
            own |= {"release": d.one("physical", "adhesive", "limited")}
        elif kind == "gap_spring":
            own |= {f"k_{s}": d.number(10, 40, "stiffness") for s in ("positive", "negative")}
            own |= {f"gap_{s}": d.number(0.0, 0.3, "length") for s in ("positive", "negative")}
        else:
            knots = [d.number(0.1, 0.5, "length").of(s) for s in (-1, 1)]
            forces = [d.number(0.5, 2, "force").of(s) for s in (-1, 1)]
            zero = Quantity(0.0, "length"), Quantity(0.0, "force")
            own |= {"x": [knots[0], zero[0], knots[1]], "F": [forces[0], zero[1], forces[1]]}
        add(table, kind, own)


def contacts(d: Draw, table: Table) -> None:
    """Add unilateral contacts with restitution, with or without friction."""
    dofs = table["dofs"]
    for _ in range(d.one(1, 1, 2)):
        own: Table = {"normal": d.direction(dofs, base="base" in table and d.chance(0.3))}
        tangent = d.direction(dofs)
        if d.chance(0.6):
            own |= {"tangent": tangent} | d.law("mu mu static")
            own |= {"belt": d.function(0.5, "velocity")} if d.chance(0.3) else {}
        own |= {"e": d.value(0, 0, 0.5, 0.7), "gap": d.number(0.0, 0.4, "length")}
        add(table, "contact", own)


def memory(d: Draw, table: Table) -> None:
    """Add springs in series with sliders, bristles, and hysteresis."""
    kind = d.one("jenkins", "maxwell_slip", "iwan", "masing_spring", "dahl", "bouc_wen", "lugre")
    own: Table = {"direction": d.direction(table["dofs"], base="base" in table and d.chance(0.5))}
    k, R = d.number(5, 20, "stiffness"), d.number(0.5, 1.5, "force")
    more: dict[str, Callable[[], Table]] = {
        "jenkins": lambda: {"k": k, "R": R},
        "maxwell_slip": lambda: {"k": [k, k.of(0.5)], "R": [R, R.of(2.0)]},
        "iwan": lambda: {"K_T": k, "F_S": R, "chi": -0.5, "beta": 0.5, "count": 4},
        "masing_spring": lambda: {
            "x": [Quantity(R.value / k.value, "length"), Quantity(4 * R.value / k.value, "length")],
            "F": [R, R.of(1.5)],
        },
        "dahl": lambda: {"sigma": k, "F_c": R},
        "bouc_wen": lambda: {
            "k": k, "n": 1.0, "A": 1.0, "beta": Quantity(k.value / R.value / 2, "softening"),
            "gamma": Quantity(k.value / R.value / 2, "softening"),
        },
        "lugre": lambda: {
            "sigma0": k.of(10), "sigma1": d.number(0.5, 2, "damping"), "F_c": R,
            "sigma2": d.number(0.1, 0.5, "damping"), "F_s": R.of(1.5),
            "v_s": d.number(0.05, 0.2, "velocity"),
        },
    }  # fmt: skip
    add(table, kind, own | more[kind]())


def carried(d: Draw, table: Table) -> None:
    """Add friction that grows with the force of a spring, a stop or a load."""
    dofs = table["dofs"]
    kind = d.one("spring", "stop", "load")
    if kind == "load":
        name = add(table, "load", {"dof": d.one(*dofs), "F": d.function(2.0, "force")})
    else:
        own: Table = {"direction": d.direction(dofs, base="base" in table)}
        own |= {"k": d.number(2, 20, "stiffness")}
        if kind == "stop":
            own |= {"gap": d.number(0.0, 0.2, "length"), "c": d.number(0.0, 1.0, "damping")}
        name = add(table, kind, own)
    own = {"dof": d.one(*dofs), "kappa": d.number(0.1, 0.4), "load": {f"{kind}.{name}": 1.0}}
    add(table, "friction", own | {"limit": d.number(0.1, 0.5, "force")})


def plane(d: Draw, table: Table) -> None:
    """Add friction in the plane of the first two degrees of freedom, sometimes next to a wall."""
    if len(table["dofs"]) < 2:
        return
    own: Table = {"plane": table["dofs"][:2]} | d.law("mu mu static")
    own |= {"N": d.positive_function(3.0, "force")}
    if d.chance(0.3):
        own["belt"] = [d.function(0.5, "velocity", "constant harmonic") for _ in range(2)]
    add(table, "friction", own)
    _no_wedge(table)
    if d.chance(0.4):
        wall = {"normal": {d.one(*table["dofs"][:2]): d.value(1, -1)}, "e": d.value(0.0, 0.5)}
        add(table, "contact", wall | {"gap": d.number(0.0, 0.3, "length")})


def floor(d: Draw, table: Table) -> None:
    """Add contact with friction in a plane."""
    if len(table["dofs"]) < 3:
        return
    own: Table = {"normal": "c", "plane": ["a", "b"]} | d.law("mu mu static")
    add(table, "contact", own | {"gap": d.number(0.0, 0.3, "length"), "e": d.value(0.0, 0.5)})
    add(table, "load", {"dof": "c", "F": d.number(2.0, 5.0, "force").of(-1)}, "weight")


def joint(d: Draw, table: Table) -> None:
    """Tie two masses to each other, with or without friction from the reaction."""
    if len(table["dofs"]) < 2:
        return
    ratio = d.number(0.5, 2.0)
    table.setdefault("parameters", {})["ratio"] = ratio
    own: Table = {"constraint": "a - $ratio*b"}
    own |= {"mu": d.number(0.1, 0.3), "sliding": "a"} if d.chance(0.4) else {}
    add(table, "joint", own)
    _no_wedge(table)
    table["initial"]["a"]["v"] = table["initial"]["b"]["v"].of(ratio.value)


def _no_wedge(table: Table) -> None:
    """Remove friction from a joint's reaction if there is friction in a plane. Such friction may
    press the joint, which then holds, while another program finds the other motion that satisfies
    the laws."""
    if any("plane" in own for own in table.get("friction", {}).values()):
        for own in table.get("joint", {}).values():
            for key in ("mu", "sliding"):
                own.pop(key, None)


def massless(d: Draw, table: Table) -> None:
    """Add a node without mass between springs, with friction."""
    table["dofs"] = [*table["dofs"], "n"]
    table["massless"] = ["n"]
    near, own = d.number(5, 20, "stiffness"), d.number(2, 10, "stiffness")
    add(table, "spring", {"between": ["n", "a"], "k": near})
    add(table, "spring", {"dof": "n", "k": own})
    add(table, "friction", {"dof": "n", "limit": d.number(0.25, 1.0, "force")})
    if d.chance(0.5):
        away = table["initial"]["a"]["q"] = d.signed(0.1, 0.3, "length")
        # The place at which the springs exert no force on the node.
        table["initial"]["n"] = {"q": away.of(near.value / (near.value + own.value))}


def state(d: Draw, table: Table) -> None:
    """Add a pressure driven by the motion, or the heat of a friction."""
    own: Table = {"z0": 0.0}
    parameters = table.setdefault("parameters", {})
    rubs = [x for x, f in table.get("friction", {}).items() if "plane" not in f]
    if rubs and d.chance(0.5):
        own |= {"rate": f"-lambda_t.friction.{rubs[0]}*slip.friction.{rubs[0]}"}
    else:
        parameters |= {"T": d.number(0.5, 2, "time"), "g": d.number(0.5, 2, "stiffness")}
        # The state is itself a force, driven by the velocity.
        own |= {"rate": "$g*v.a - z.p/$T", "force": "-z.p", "dof": "a"}
    table["state"] = {"p": own}


def nonlinear(d: Draw, table: Table) -> None:
    """Add a stiffening spring, drag, or both, which need the Runge-Kutta flow."""
    zero = Quantity(0.0, "stiffness")
    cubic = [d.number(1, 3, "stiffness"), zero, d.number(1, 10, "cubic")]
    for kind in d.some(("polynomial_spring", "drag"), d.one(1, 2)):
        own = {"k": cubic} if kind == "polynomial_spring" else {"c": d.number(0.1, 1, "drag")}
        add(table, kind, {"dof": d.one(*table["dofs"])} | own)


def curve(d: Draw, table: Table) -> None:
    """Add friction that falls with the velocity."""
    own = friction(d, d.direction(table["dofs"]), **d.law("stribeck weakening"))
    add(
        table, "friction", own | ({"belt": d.number(0.1, 0.5, "velocity")} if d.chance(0.5) else {})
    )


def event(d: Draw, table: Table) -> None:
    """Add events that are logged, change the motion (sometimes slightly), or end it."""
    p = table.setdefault("parameters", {})
    p["level"] = d.number(-0.2, 0.4, "length")
    kind = d.one("jump", "kick", "record", "stop", "jump")
    own: Table = {"when": "a - $level", "direction": d.one("up", "down", "both")}
    if kind == "jump":
        p["jump"] = Quantity(d.value(-1, 1) * 10.0 ** -d.value(1, 3, 5, 7, 9), "length")
        own |= {"change": {"a": "a + $jump"}}
    elif kind == "kick":
        p["kick"] = d.number(-0.5, 0.5, "velocity")
        own |= {"change": {"v.a": "v.a + $kick"}}
    elif kind == "stop":
        own |= {"action": "stop"}
    add(table, "event", own)


# Systems of other kinds.


def impact(d: Draw) -> Table:
    """A falling and bouncing mass that has an element with a memory or with a sign."""
    table = masses(d, springs=0.4)
    add(table, "load", {"dof": "a", "F": d.number(1.0, 4.0, "force").of(-1)}, "weight")
    own: Table = {"normal": {"a": d.number(0.5, 1.5)}, "e": d.value(0.5, 0.7, 0.9)}
    own |= {"gap": d.number(0.0, 0.4, "length")}
    if d.chance(0.4) and len(table["dofs"]) > 1:
        # The tangent does not lean on the normal, where a contact may hold itself.
        own |= {"tangent": d.direction(table["dofs"][1:])} | d.law("mu mu static")
    add(table, "contact", own)
    signs = ("memory", "memory", "carried", "supports", "bases", "belts", "joints", "curves")
    for name in sorted({d.one(*signs), d.one(*signs)}, key=list(PARTS).index):
        PARTS[name](d, table)
    return table


def limit(d: Draw) -> Table:
    """Static limits reached exactly by a load or a kinked normal force, alone or shared."""
    table = masses(d, most=2, springs=0.2)
    table.pop("load", None)
    table["initial"] = {x: {"q": Quantity(0.0, "length")} for x in table["dofs"]}
    several = d.one(1, 1, 2)
    held, N = 0.0, d.value(1.0, 2.0)
    for i in range(several):
        mu = d.value(0.5, 1.0)
        drops = i == 0 and d.chance(0.3)
        normal = {
            "linear": {
                "times": [Quantity(0.0, "time"), Quantity(1.0, "time")],
                "values": [Quantity(2 * N, "force"), Quantity(N, "force")],
            }
        }
        own = {"dof": "a", "mu_s": mu, "mu_d": mu * d.value(0.5, 1.0)}
        add(table, "friction", own | {"N": normal if drops else Quantity(N, "force")})
        held += mu * N
    # Exactly at the limit, or close to it.
    top = Quantity(held * d.value(1.0, 1.0, 1.0, 1.0 + 1e-6, 1.0 - 1e-6, 1.1, 0.9), "force")
    after = d.value(0.0, 0.5, 1.0)
    kind = d.one("linear", "linear", "steps", "harmonic", "constant")
    times = [Quantity(t, "time") for t in (0.0, 1.0, 2.0)]
    loads: dict[str, Any] = {
        "constant": top,
        "linear": {"linear": {"times": times, "values": [top.of(0.0), top, top.of(after)]}},
        "steps": {"steps": {"times": times[1:], "values": [top.of(0.5), top, top.of(after)]}},
        "harmonic": {"harmonic": {"amplitude": top, "omega": d.number(1, 2, "frequency")}},
    }
    add(table, "load", {"dof": "a", "F": loads[kind]})
    return table


def shared(d: Draw) -> Table:
    """A block that a floor and a guide, two floors, or a floor and a spring hold together."""
    table = masses(d, most=2, least=2, springs=0.0)
    table.pop("load", None)
    table["initial"] = {}
    pressed = d.number(1.0, 2.0, "force")
    add(table, "load", {"dof": "b", "F": pressed.of(-1.0)}, "press")
    add(table, "load", {"dof": "a", "F": d.function(2.0, "force", "constant linear steps")}, "side")
    mu = d.law("mu static")
    e = d.value(0.0, 0.5)
    add(table, "contact", {"normal": "b", "tangent": "a", "e": e} | mu)
    guide = d.one("friction", "contact", "both", "oblique")
    if guide in ("friction", "both"):
        add(table, "friction", {"dof": "b", "limit": d.number(0.5, 1.5, "force")})
    if guide in ("contact", "both"):
        own = {"normal": "b", "tangent": "a", "e": e} | d.law("mu static")
        add(table, "contact", own)
    if guide == "oblique":
        wall = {"normal": {"a": d.number(0.5, 1.0), "b": d.number(0.5, 1.0)}, "e": e}
        add(table, "contact", wall)
    return table


def far(d: Draw) -> Table:
    """A ball that bounces to rest, near the origin or far from it."""
    table: Table = {"dofs": ["a"], "time": {"end": Quantity(END, "time")}, "mass": {}}
    add(table, "mass", {"dof": "a", "m": d.number(0.5, 2.0, "mass")})
    away = d.value(0.0, 1.0, 10.0, 100.0)
    height = d.number(0.0, 1.0, "length").of(d.value(1.0, 0.01, 1e-4))
    add(table, "load", {"dof": "a", "F": d.number(1.0, 10.0, "force").of(-1.0)})
    add(table, "contact", {"normal": "a", "gap": Quantity(away, "length"), "e": d.value(0.5, 0.8)})
    table["initial"] = {"a": {"q": Quantity(height.value - away, "length")}}
    if d.chance(0.4):
        table["base"] = {"floor": {"displacement": d.function(0.25, "length", "harmonic linear")}}
        table["contact"]["c0"]["normal"] = {"a": 1.0, "floor": -1.0}
        table["initial"]["a"]["q"] = Quantity(height.value + 0.5 - away, "length")
    return table


def row(d: Draw) -> Table:
    """Balls in a row, some of which touch, and a wall."""
    dofs = list("abc"[: d.one(2, 3)])
    table: Table = {"dofs": dofs, "time": {"end": Quantity(END, "time")}, "mass": {}, "initial": {}}
    for x in dofs:
        add(table, "mass", {"dof": x, "m": d.number(0.5, 2.0, "mass")}, f"m{x}")
    for x, y in itertools.pairwise(dofs):
        gap = Quantity(d.value(0.0, 1e-9, 0.5, 1.0), "length")
        add(table, "contact", {"normal": {"between": [x, y]}, "gap": gap, "e": d.value(0.5, 1.0)})
    table["initial"]["a"] = {"v": d.number(0.5, 1.5, "velocity")}
    if d.chance(0.5):
        wall = {"normal": {dofs[-1]: -1.0}, "gap": d.number(1.0, 2.0, "length"), "e": 0.5}
        add(table, "contact", wall)
    if d.chance(0.5):
        add(table, "friction", {"dof": dofs[-1], "mu": 0.5, "N": d.number(0.5, 1.0, "force")})
    return table


def disc(d: Draw) -> Table:
    """A disc that slips and spins on a floor or a belt."""
    dofs = {"x": "translation", "y": "translation", "phi": "rotation"}
    table: Table = {"dofs": dofs, "time": {"end": Quantity(1.0, "time")}, "mass": {}}
    radius, m = d.number(0.1, 0.5, "length"), d.number(0.5, 2.0, "mass")
    for x in "xy":
        add(table, "mass", {"dof": x, "m": m}, x)
    inertia = Quantity(0.5 * m.value * radius.value**2, "inertia")
    add(table, "mass", {"dof": "phi", "m": inertia}, "phi")
    own: Table = {"plane": ["x", "y"], "spin": "phi", "mu": d.number(0.2, 0.5), "radius": radius}
    own |= {"N": d.number(5, 20, "force")}
    if d.chance(0.4):
        belts = [d.number(0.1, 0.5, m) for m in ("velocity", "velocity", "frequency")]
        own["belt"] = belts
    add(table, "friction", own)
    table["initial"] = {"x": {"v": d.signed(0.5, 2, "velocity")}}
    table["initial"]["phi"] = {"v": d.signed(1.0, 10.0, "frequency")}
    return table


def polygon(d: Draw) -> Table:
    """A box, thrown or put on a floor, an edge, or another point."""
    table: Table = {"time": {"end": Quantity(1.0, "time")}}
    table["gravity"] = {"g": Quantity(10.0, "acceleration"), "tilt": d.value(0.0, 0.0, 0.2)}
    h, w = d.number(0.2, 0.5, "length"), d.number(0.2, 0.5, "length")
    signs = {"p": (-1, -1), "q": (1, -1), "r": (1, 1), "s": (-1, 1)}
    corners = {k: [w.of(s), h.of(t)] for k, (s, t) in signs.items()}
    m = d.number(0.5, 2.0, "mass")
    lift = Quantity(h.value + d.value(0.0, 0.1, 0.5), "length")
    inertia = Quantity(m.value * (h.value**2 + w.value**2) / 3, "inertia")
    v = [d.signed(0.5, 2.0, "velocity"), Quantity(0.0, "velocity")]
    table["body"] = {
        "box": {"m": m, "J": inertia, "at": [Quantity(0.0, "length"), lift], "v": v}
        | {"omega": d.signed(0.5, 2.0, "frequency"), "points": corners}
    }
    law = d.law("mu mu static")
    e = d.value(0.0, 0.5)
    if d.one("line", "edge") == "line":
        for k in "pq":
            own = {"point": f"box.{k}", "line": "ground", "e": e} | law
            add(table, "contact", own)
    else:
        edge = {"left": [Quantity(-2.0, "length"), Quantity(0.0, "length")]}
        edge["right"] = [d.number(0.1, 0.5, "length"), Quantity(0.0, "length")]
        table["ground"] = {"points": edge}
        own = {"point": "ground.right", "polygon": [f"box.{k}" for k in "pqrs"], "e": e} | law
        add(table, "contact", own)
        own = {"point": "box.p", "polygon": ["ground.left", "ground.right"], "e": e} | law
        add(table, "contact", own)
    return table


def mechanism(d: Draw) -> Table:
    """A pendulum of one or two rods, or a slider-crank, with or without friction in a pin."""
    table: Table = {"time": {"end": Quantity(1.0, "time")}}
    table["gravity"] = {"g": Quantity(10.0, "acceleration")}
    kind = d.one("pendulum", "double", "crank")
    l = d.number(0.5, 1.0, "length")
    rub = {"mu": d.number(0.1, 0.5), "radius": d.number(0.05, 0.1, "length")}
    bodies = {"pendulum": ["rod"], "double": ["rod", "end"], "crank": ["rod", "end"]}[kind]
    table["body"] = {}
    for i, x in enumerate(bodies):
        length = l.of(1.0 + 2.0 * (i == 1 and kind == "crank"))
        m = d.number(0.5, 2.0, "mass")
        ends = {"p": [length.of(-0.5), Quantity(0.0, "length")]}
        ends["q"] = [length.of(0.5), Quantity(0.0, "length")]
        own = {"m": m, "J": Quantity(m.value * length.value**2 / 12, "inertia"), "points": ends}
        if kind != "crank" or i == 0:
            own |= {"angle": d.value(-1.5, -0.5, 0.5), "omega": d.signed(0.5, 2, "frequency")}
        add(table, "body", own, x)
    before = "ground"
    for x in bodies:
        own = {"points": [before, f"{x}.p"]} | (rub if d.chance(0.5) else {})
        add(table, "pin", own)
        before = f"{x}.q"
    if kind == "crank":
        own = {"point": before, "line": "ground"} | ({"mu": 0.2} if d.chance(0.3) else {})
        add(table, "slider", own)
    return table


def still(d: Draw) -> Table:
    """Masses on springs with friction and contacts, for their equilibria."""
    table = masses(d, most=2, springs=1.0)
    for x in table["dofs"]:
        table["initial"][x] = {"q": Quantity(0.0, "length"), "v": Quantity(0.0, "velocity")}
        table.get("load", {}).pop(f"l{x}", None)
        load = {"dof": x, "F": d.signed(0.5, 2.0, "force")}
        add(table, "load", load, f"l{x}")
    for _ in range(d.one(1, 2)):
        N = d.number(0.5, 2, "force")
        add(table, "friction", {"direction": d.direction(table["dofs"])} | d.law("mu") | {"N": N})
    if d.chance(0.5):
        own: Table = {"normal": d.direction(table["dofs"]), "gap": d.number(0, 0.2, "length")}
        own |= {"tangent": d.direction(table["dofs"])} | d.law("mu") if d.chance(0.5) else {}
        add(table, "contact", own)
    return table


def shaken(d: Draw) -> Table:
    """Up to two masses under a harmonic load, with friction or stops, for a periodic orbit."""
    table = masses(d, most=2, springs=1.0)
    table.pop("load", None)
    for x in table["dofs"]:
        add(table, "damper", {"dof": x, "c": d.number(0.25, 0.5, "damping")}, f"damper{x}")
    add(table, "load", {"dof": "a", "F": {"harmonic": d.wave(4.0, "force")}})
    N = d.number(0.5, 2, "force")
    if d.chance(0.7):
        add(table, "friction", {"direction": d.direction(table["dofs"])} | d.law("mu") | {"N": N})
    else:
        supports(d, table)
    return table


#: Functions that add the part of a kind to systems of masses, and allowed further parts.
PARTS: dict[str, Callable[[Draw, Table], None]] = {
    "statics": frictions, "belts": belt, "bases": base, "supports": supports, "contacts": contacts,
    "memory": memory, "carried": carried, "planes": plane, "floors": floor, "joints": joint,
    "states": state, "nonlinear": nonlinear, "curves": curve, "events": event, "massless": massless,
}  # fmt: skip
OTHERS: dict[str, Callable[[Draw], Table]] = {
    "limits": limit, "shared": shared, "far": far, "rows": row, "discs": disc,
    "polygons": polygon, "mechanisms": mechanism, "equilibria": still, "orbits": shaken,
    "impacts": impact,
}  # fmt: skip
KINDS = (*PARTS, *OTHERS)


def mixed(d: Draw, kind: str) -> Table:
    """Masses with the part of a kind, and up to two further parts."""
    least = {"planes": 2, "joints": 2, "floors": 3}.get(kind, 1)
    table = masses(d, least=least)
    others = d.some([k for k in PARTS if k != kind], d.one(0, 1, 1, 2))
    chosen = {kind, *others}
    # A node without mass cannot be eliminated together with functions of positions.
    for name in ("events", "joints"):
        if chosen >= {name, "massless"}:
            chosen.remove("massless" if kind == name else name)
    # In the order of the list: parts that refer to frictions come after them, the node last.
    for name in [name for name in PARTS if name in chosen]:
        PARTS[name](d, table)
    return table


def system(seed: int, structure: int, number: int, kind: str, typed: float = TYPED) -> Table:
    """The table of a system, reproducible from these numbers."""
    d = Draw(seed, structure, number, typed)
    return OTHERS[kind](d) if kind in OTHERS else mixed(d, kind)


# Tables as text.


def text(table: Mapping[str, Any], units: tuple[float, float, float] = (1.0, 1.0, 1.0)) -> str:
    """A table as TOML, with its numbers in ``units`` of mass, length and time."""
    lines = []
    for key, value in table.items():
        if not isinstance(value, Mapping) or key in ("dofs", "parameters", "time", "gravity"):
            lines.append(f"{key} = {written(value, units)}")
    for key, value in table.items():
        if isinstance(value, Mapping) and key not in ("dofs", "parameters", "time", "gravity"):
            # Elements have names, even if there is only one.
            elements = {key: value} if key == "ground" else value
            for name, element in elements.items():
                lines.append(f"\n[{key}]" if key == "ground" else f"\n[{key}.{name}]")
                lines += [f"{k} = {written(v, units)}" for k, v in element.items()]
    return "\n".join(lines) + "\n"


def written(value: Any, units: tuple[float, float, float]) -> str:
    """A value as TOML."""
    if isinstance(value, Quantity):
        powers = DIMENSIONS[value.measures]
        factor = math.prod(u**p for u, p in zip(units, powers, strict=True))
        return repr(float(value.value / factor))
    if isinstance(value, Mapping):
        return "{" + ", ".join(f'"{k}" = {written(v, units)}' for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(written(v, units) for v in value) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return '"' + value + '"'
    return repr(float(value)) if isinstance(value, np.floating) else repr(value)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--count", type=int, default=1, help="structures of each kind")
    options = parser.parse_args()
    for i in range(options.count):
        for kind in options.kinds.split(","):
            print(f"# {kind}\n{text(system(options.seed, i, 0, kind))}")


if __name__ == "__main__":
    main()
