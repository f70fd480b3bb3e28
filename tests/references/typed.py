"""Random systems whose numbers are those that people type: zeros, ones, halves, quarter periods.

Equal coefficients, loads that start or stop, phases at multiples of a quarter turn: guards vanish
identically, or several things happen at once. A structure says what elements there are, numbers say
the rest; systems of one structure run as one batch. Both are plain data, for jfric and for
references that share nothing with it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

QUARTERS = (-np.pi / 2, 0.0, np.pi / 2, np.pi)
KINDS = ("constant", "harmonic", "steps", "ramp")
END = 4.0
AXES = "xyz"


@dataclass(frozen=True)
class Touch:
    """A contact: along a degree of freedom, or between two; with a tangent if unilateral."""

    unilateral: bool
    dof: int
    other: int | None
    tangent: int | None
    law: str
    belt: str | None
    normal: str

    def direction(self, n: int) -> np.ndarray:
        w = np.zeros(n)
        w[self.dof] = 1.0
        if self.other is not None:
            w[self.other] = -1.0
        return w


@dataclass(frozen=True)
class Structure:
    """What elements a system has."""

    n: int
    contacts: tuple[Touch, ...]
    loads: tuple[str, ...]
    springs: tuple[bool, ...]
    coupled: bool

    def directions(self) -> tuple[np.ndarray, np.ndarray]:
        """Tangents and normals, one row for each contact."""
        tangents, normals = [], []
        for c in self.contacts:
            w, zero = c.direction(self.n), np.zeros(self.n)
            tangent = zero.copy()
            if c.tangent is not None:
                tangent[c.tangent] = 1.0
            tangents.append(tangent if c.unilateral else w)
            normals.append(w if c.unilateral else zero)
        return np.array(tangents), np.array(normals)

    @property
    def shares_normals(self) -> bool:
        """Whether a normal force that friction depends on may be shared with another contact: the
        motion is not unique then."""
        rubs = [c for c in self.contacts if c.unilateral and c.tangent is not None]
        return bool(rubs) and len(self.contacts) > 1

    @property
    def remembers(self) -> bool:
        """Whether the law itself leaves open what happens where a sliding velocity is zero."""
        return any(c.law == "static" for c in self.contacts)


@dataclass
class Numbers:
    """The numbers of one system; ``law``: static, then kinetic coefficients of both directions."""

    m: list
    k: list
    k_between: float
    c: list
    q: list
    v: list
    loads: list
    contacts: list = field(default_factory=list)


@dataclass
class Values:
    """The numbers of one contact."""

    law: tuple
    normal: tuple
    belt: tuple | None
    gap: float
    e: float


def _one(rng, *values):
    return values[rng.integers(len(values))]


def structure(rng) -> Structure:
    """One to three degrees of freedom with as many contacts."""
    n = int(rng.integers(1, 4))
    contacts = []
    for _ in range(int(rng.integers(1, 4))):
        dof = int(rng.integers(n))
        others = [i for i in range(n) if i != dof]
        other = int(rng.choice(others)) if others else None
        unilateral = bool(rng.random() < 0.5)
        tangent = other if unilateral and rng.random() < 0.6 else None
        pair = other if tangent is None and rng.random() < 0.3 else None
        law = _one(rng, "coulomb", "static", "directional")
        belt = _one(rng, None, None, "constant", "harmonic", "steps")
        normal = _one(rng, "constant", "constant", "harmonic")
        contacts.append(Touch(unilateral, dof, pair, tangent, law, belt, normal))
    return Structure(
        n,
        tuple(contacts),
        tuple(_one(rng, *KINDS) for _ in range(n)),
        tuple(bool(rng.random() < 0.6) for _ in range(n)),
        bool(n > 1 and rng.random() < 0.5),
    )


def numbers(rng, s: Structure) -> Numbers:
    """Numbers for a structure; no gap is negative at the start."""
    n = s.n
    x = Numbers(
        m=[_one(rng, 1.0, 1.0, 2.0, 0.5) for _ in range(n)],
        k=[_one(rng, 0.0, 1.0, 1.0, 2.0, 0.5) if on else 0.0 for on in s.springs],
        k_between=_one(rng, 0.0, 1.0, 2.0) if s.coupled else 0.0,
        c=[_one(rng, 0.0, 0.0, 0.5) for _ in range(n)],
        q=[_one(rng, 0.0, 0.0, 0.0, 1.0, -1.0, 0.5) for _ in range(n)],
        v=[_one(rng, 0.0, 0.0, 1.0, -1.0, 0.5) for _ in range(n)],
        loads=[_function(rng, kind, 1.0) for kind in s.loads],
    )
    for c in s.contacts:
        mu, other = _one(rng, 0.0, 0.5, 1.0, 1.0, 0.25), _one(rng, 0.0, 1.0, 0.5)
        law = (mu,) * 4
        if c.law == "static":
            law = (max(mu, 0.5),) * 2 + (min(mu, 0.5),) * 2
        elif c.law == "directional":
            law = (mu, other, mu, other)
        normal = ("constant", _one(rng, 0.0, 1.0, 1.0, 2.0))
        if c.normal == "harmonic":
            wave = ("harmonic", _one(rng, 0.0, 1.0, 0.5), 1.0, _one(rng, *QUARTERS))
            normal = ("sum", ("constant", 1.0), wave)
        belt = None if c.belt is None else _function(rng, c.belt, 0.5)
        gap = max(_one(rng, 0.0, 0.0, 1.0, 0.5), -float(c.direction(n) @ x.q))
        x.contacts.append(Values(law, normal, belt, gap, _one(rng, 0.0, 0.0, 0.5, 1.0)))
    return x


def _function(rng, kind: str, size: float) -> tuple:
    def level():
        return size * _one(rng, -1.0, 0.0, 1.0, 2.0, 0.5, -0.5)

    if kind == "constant":
        return kind, level()
    if kind == "harmonic":
        return kind, level(), _one(rng, 1.0, 2.0, 0.5), _one(rng, *QUARTERS)
    times = (1.0, 2.0) if kind == "steps" else (0.0, 1.0, 3.0)
    return kind, times, tuple(level() for _ in range(3))


def value(f: tuple, t: np.ndarray) -> np.ndarray:
    """A function of time at ``t``."""
    kind, *rest = f
    if kind == "constant":
        return np.full_like(t, rest[0])
    if kind == "harmonic":
        return rest[0] * np.sin(rest[1] * t + rest[2])
    if kind == "steps":
        return np.asarray(rest[1])[np.searchsorted(rest[0], t, side="right")]
    if kind == "ramp":
        return np.interp(t, *rest)
    return sum(value(part, t) for part in rest)


def matrices(x: Numbers) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Masses, damping and stiffness."""
    K = np.diag(x.k)
    if len(x.m) > 1:
        d = np.zeros(len(x.m))
        d[:2] = 1.0, -1.0
        K = K + x.k_between * np.outer(d, d)
    return np.diag(x.m), np.diag(x.c), K


def problem(s: Structure, x: Numbers):
    """The same system for jfric."""
    import jfric

    names = AXES[: s.n]
    elements = {
        "mass": {a: jfric.Mass(a, m) for a, m in zip(names, x.m, strict=True)},
        "load": {a: jfric.Load(a, _as_function(f)) for a, f in zip(names, x.loads, strict=True)},
        "damper": {a: jfric.Damper(a, c) for a, c in zip(names, x.c, strict=True)},
        "spring": {a: jfric.Spring(a, k) for a, k in zip(names, x.k, strict=True)},
    }
    if s.coupled:
        elements["spring"]["between"] = jfric.Spring({"x": 1.0, "y": -1.0}, x.k_between)
    friction, contact = {}, {}
    for i, (c, y) in enumerate(zip(s.contacts, x.contacts, strict=True)):
        static, kinetic = jfric.Directional(*y.law[:2]), jfric.Directional(*y.law[2:])
        law = jfric.StaticDynamic(static, kinetic) if c.law == "static" else jfric.Coulomb(static)
        direction = {names[c.dof]: 1.0}
        if c.other is not None:
            direction[names[c.other]] = -1.0
        belt = None if y.belt is None else _as_function(y.belt)
        if not c.unilateral:
            N = _as_function(y.normal)
            friction[f"c{i}"] = jfric.Friction(direction, law=law, N=N, belt=belt)
        elif c.tangent is None:
            contact[f"c{i}"] = jfric.Contact(direction, gap=y.gap, e=y.e)
        else:
            tangent = names[c.tangent]
            contact[f"c{i}"] = jfric.Contact(direction, tangent, law, gap=y.gap, e=y.e, belt=belt)
    elements |= {k: v for k, v in (("friction", friction), ("contact", contact)) if v}
    initial = {a: jfric.InitialState(q=q, v=v) for a, q, v in zip(names, x.q, x.v, strict=True)}
    return jfric.Problem(tuple(names), elements, initial=initial, time=END)


def _as_function(f: tuple):
    import jfric

    kind, *rest = f
    if kind == "sum":
        return jfric.Sum([_as_function(part) for part in rest])
    kinds = {
        "constant": jfric.Constant,
        "harmonic": jfric.Harmonic,
        "steps": jfric.Steps,
        "ramp": jfric.PiecewiseLinear,
    }
    return kinds[kind](*(list(x) if isinstance(x, tuple) else x for x in rest))
