"""Motions of random systems in small steps, computed without jfric.

This is a second program for the systems of ``random_systems.py``: it reads the same TOML text with
its own reader, takes small steps (midpoint positions, explicit forces) and finds the impulses of
all contacts of a step by projected Gauss-Seidel. Its error falls with the step; two lengths of step
give its size. Unknown elements are named in :class:`Unknown`.

    g_m <= 0:  0 <= w_n + e min(w_n-, 0)  _|_  p_n >= 0,     p_t in -mu p_n Sign(w_t)

Where static limits are larger than kinetic ones, one instant may decide. So kinks of functions of
time lie in the middle of steps, where forces are taken: a peak may pass a limit for less than a
step. And a plane comes to rest only in a step that is shorter by many halvings: in a longer one it
may miss that sliding turns around. Several impulses may fulfil the laws. If some hold all contacts
that rest, these rest.
"""

from __future__ import annotations

import itertools
import re
import tomllib
from typing import Any

import numba
import numpy as np

#: Numbers of a function of time: constant, amplitude, omega, phase, kind, count, times, values.
WIDTH = 14
(
    SPRING, LOAD, STOP, GAP, DIAGRAM, SLIDER, CUBIC, DRAG, DAHL, BOUC_WEN, LUGRE, STATE, NODE
) = range(13)  # fmt: skip
FREE, NORMAL, JOINT = range(3)
#: Kinds of functions of time that have breaks.
STEPS, LINEAR = 1, 2
#: Sliding velocity [m/s] below which a friction element sticks.
STILL = 1e-12
#: Gap [m] below which a contact is closed: rounding errors open no contact at rest.
CLOSED = 1e-13
#: Part of a step in which sliding in a plane may come to rest, if it may also turn around there.
SHORTEST = 2.0**-24
#: Sine of an angle below which sliding reverses straight.
STRAIGHT = 3e-5
#: Rounds in which impulses at rest are looked for, and their error as a part of the largest.
ROUNDS, EXACT = 2000, 1e-9


class Unknown(Exception):
    """Error for an element or a field that the stepping does not know."""


# Reading.


def function(value: Any) -> np.ndarray:
    """The numbers of a function of time."""
    f = np.zeros(WIDTH)
    parts = value["sum"] if isinstance(value, dict) and "sum" in value else [value]
    for part in parts:
        if not isinstance(part, dict):
            f[0] += part
            continue
        ((kind, own),) = part.items()
        if kind == "harmonic":
            f[1:4] = own["amplitude"], own["omega"], own.get("phase", 0.0)
        elif kind in ("steps", "linear"):
            times, values = own["times"], own["values"]
            f[4], f[5] = (STEPS if kind == "steps" else LINEAR), len(times)
            f[6 : 6 + len(times)], f[10 : 10 + len(values)] = times, values
        else:
            raise Unknown(kind)
    return f


class System:
    """The numbers of a system, and its time functions, elements and contacts."""

    def __init__(self, text: str):
        self.table = table = tomllib.loads(text)
        known = {
            "dofs", "time", "mass", "spring", "damper", "load", "initial", "base", "friction",
            "contact", "stop", "gap_spring", "diagram_spring", "jenkins", "maxwell_slip", "dahl",
            "bouc_wen", "lugre", "polynomial_spring", "drag", "event", "state", "joint", "iwan",
            "masing_spring", "massless", "parameters",
        }  # fmt: skip
        for key in table:
            if key not in known:
                raise Unknown(key)
        self.node = self._node()
        self.dofs = [x for x in table["dofs"] if x not in table.get("massless", ())]
        self.bases = list(table.get("base", {}))
        self.n, self.end = len(self.dofs), float(table["time"]["end"])
        self.m = np.zeros(self.n)
        for own in table["mass"].values():
            self.m[self.dofs.index(own["dof"])] += own["m"]
        start = [table.get("initial", {}).get(x, {}) for x in self.dofs]
        self.q = np.array([float(s.get("q", 0.0)) for s in start])
        self.v = np.array([float(s.get("v", 0.0)) for s in start])
        self.functions = [function(table["base"][x]["displacement"]) for x in self.bases]
        self.kinds: list[int] = []
        self.w: list[np.ndarray] = []
        self.numbers: list[np.ndarray] = []
        self.z: list[float] = []
        self.names: dict[str, list[int]] = {}
        self.rows: list[dict[str, Any]] = []
        for section, read in READERS.items():
            for name, own in table.get(section, {}).items():
                if "n" in (own.get("dof"), *own.get("between", ())):
                    continue
                first = len(self.kinds)
                read(self, own)
                self.names[f"{section}.{name}"] = list(range(first, len(self.kinds)))
        if self.node is not None:
            near, own, limit, start = self.node
            self.element(NODE, self.direction("a"), near, own, limit, start=start)
        for own in table.get("friction", {}).values():
            if own.get("dof") != "n":
                self._friction(own)
        for own in table.get("contact", {}).values():
            self._contact(own)
        for own in table.get("joint", {}).values():
            found = re.fullmatch(r"a - \$ratio\*b", own["constraint"])
            if not found:
                raise Unknown("joint")
            ratio, parent = float(table["parameters"]["ratio"]), len(self.rows)
            self._row(JOINT, self.direction({"a": 1.0, "b": -ratio}))
            if "mu" in own:
                numbers = self._law(own) | {"parent": parent}
                self._row(FREE, self.direction(own["sliding"]), **numbers)
        self.event = self._event()

    def _node(self) -> tuple[float, float, float, float] | None:
        """The springs to the mass and to the ground, limit and start of a node without mass."""
        if "massless" not in self.table:
            return None
        springs, rubs = self.table["spring"].values(), self.table["friction"].values()
        (near,) = (x["k"] for x in springs if x.get("between") == ["n", "a"])
        (own,) = (x["k"] for x in springs if x.get("dof") == "n")
        (limit,) = (x["limit"] for x in rubs if x.get("dof") == "n")
        start = self.table["initial"].get("n", {}).get("q", 0.0)
        return near, own, limit, start

    def direction(self, own: Any) -> np.ndarray:
        """A direction over masses and supports."""
        if isinstance(own, str):
            own = {own: 1.0}
        if "between" in own:
            own = {own["between"][0]: -1.0, own["between"][1]: 1.0}
        w = np.zeros(self.n + len(self.bases))
        for x, part in own.items():
            w[(self.dofs + self.bases).index(x)] = part
        return w

    def along(self, own: dict[str, Any]) -> np.ndarray:
        """The direction of an element."""
        if "between" in own:
            return self.direction({"between": own["between"]})
        return self.direction(own["dof"] if "dof" in own else own["direction"])

    def element(self, kind: int, w: np.ndarray, *numbers: float, start: float = 0.0) -> None:
        """An element with a force along ``w``, whose state begins at ``start``."""
        self.kinds.append(kind)
        self.z.append(start)
        self.w.append(w)
        self.numbers.append(np.array([*numbers, *np.zeros(8 - len(numbers))]))

    def time_function(self, value: Any) -> int:
        """The number of a function of time, which is stored."""
        self.functions.append(function(value))
        return len(self.functions) - 1

    def _row(self, kind: int, w: np.ndarray, second: Any = None, **numbers: Any) -> None:
        zero = np.zeros_like(w)
        usual = {
            "gap": 0.0, "e": 0.0, "static": (0.0, 0.0), "kinetic": (0.0, 0.0), "v_s": 0.0, "law": 0,
            "limit": -1, "kappa": 0.0, "load": -1, "belt": (-1, -1), "parent": -1,
        }  # fmt: skip
        own = usual | {"kind": kind, "w": w, "second": zero if second is None else second}
        self.rows.append(own | {"plane": second is not None} | numbers)

    def _law(self, own: dict[str, Any]) -> dict[str, Any]:
        def sides(x: Any) -> tuple[float, float]:
            return (x["positive"], x["negative"]) if isinstance(x, dict) else (x, x)

        if "mu_s" not in own:
            mu = sides(own.get("mu", 1.0))
            return {"static": mu, "kinetic": mu}
        law = 0 if "v_s" not in own else 2 if own.get("law") == "velocity-weakening" else 1
        both = {"static": sides(own["mu_s"]), "kinetic": sides(own["mu_d"])}
        return both | {"law": law, "v_s": own.get("v_s", 1.0)}

    def _friction(self, own: dict[str, Any]) -> None:
        if "spin" in own:
            raise Unknown("spin")
        numbers = self._law(own)
        numbers["limit"] = self.time_function(own["N"] if "N" in own else own["limit"])
        if "load" in own:
            ((name, factor),) = own["load"].items()
            (numbers["load"],), numbers["kappa"] = self.names[name], own["kappa"] * abs(factor)
        if "plane" in own:
            belts = own.get("belt", (0.0, 0.0))
            numbers["belt"] = tuple(self.time_function(x) for x in belts)
            one, two = (self.direction(x) for x in own["plane"])
            self._row(FREE, one, two, **numbers)
            return
        numbers["belt"] = (self.time_function(own.get("belt", 0.0)), -1)
        self._row(FREE, self.along(own), **numbers)

    def _contact(self, own: dict[str, Any]) -> None:
        parent = len(self.rows)
        self._row(NORMAL, self.direction(own["normal"]), gap=own.get("gap", 0.0), e=own["e"])
        if "tangent" in own or "plane" in own:
            numbers = self._law(own) | {"parent": parent}
            numbers["belt"] = (self.time_function(own.get("belt", 0.0)), -1)
            pair = own.get("plane", [own.get("tangent")])
            two = self.direction(pair[1]) if len(pair) > 1 else None
            self._row(FREE, self.direction(pair[0]), two, **numbers)

    def _event(self) -> np.ndarray:
        """Degree of freedom, level, direction, increments of position and velocity, and whether the
        event ends the motion."""
        if "event" not in self.table:
            return np.array([-1.0, 0, 0, 0, 0, 0])
        (own,) = self.table["event"].values()
        p = self.table["parameters"]
        way = {"up": 1.0, "down": -1.0, "both": 0.0}[own["direction"]]
        change = own.get("change", {})
        jump = p["jump"] if "a" in change else 0.0
        kick = p["kick"] if "v.a" in change else 0.0
        ends = float(own.get("action") == "stop")
        return np.array([self.dofs.index("a"), p["level"], way, jump, kick, ends])


def _state(s: System, own: dict[str, Any]) -> None:
    if "force" in own:
        p = s.table["parameters"]
        s.element(STATE, s.direction(own["dof"]), p["g"], p["T"])


def _sliders(s: System, own: dict[str, Any]) -> None:
    for k, R in zip(np.atleast_1d(own["k"]), np.atleast_1d(own["R"]), strict=True):
        s.element(SLIDER, s.along(own), k, R)


def _iwan(s: System, own: dict[str, Any]) -> None:
    K, F, chi, beta = (own[x] for x in ("K_T", "F_S", "chi", "beta"))
    # Density R phi^chi up to the largest strength, and the point there.
    ratio = beta + (chi + 1.0) / (chi + 2.0)
    top = F * (1.0 + beta) / (K * ratio)
    R = F * (chi + 1.0) / (top ** (chi + 2.0) * ratio)
    ends = np.linspace(0.0, top, own["count"])
    for low, high in itertools.pairwise(ends):
        stiffness = R * (high ** (chi + 1.0) - low ** (chi + 1.0)) / (chi + 1.0)
        strength = R * (high ** (chi + 2.0) - low ** (chi + 2.0)) / (chi + 2.0)
        s.element(SLIDER, s.along(own), stiffness, strength)
    point = F / top * beta / ratio
    s.element(SLIDER, s.along(own), point, point * top)


def _masing(s: System, own: dict[str, Any]) -> None:
    (x, x1), (F, F1) = own["x"], own["F"]
    last = (F1 - F) / (x1 - x)
    s.element(SLIDER, s.along(own), F / x - last, F - last * x)
    s.element(SPRING, s.along(own), last, 0.0)


def _diagram(s: System, own: dict[str, Any]) -> None:
    s.element(DIAGRAM, s.along(own), *own["x"], *own["F"])


RELEASES = {"physical": 0, "adhesive": 1, "limited": 2}
READERS = {
    "spring": lambda s, e: s.element(SPRING, s.along(e), e["k"], 0.0),
    "damper": lambda s, e: s.element(SPRING, s.along(e), 0.0, e["c"]),
    "load": lambda s, e: s.element(LOAD, s.along(e), s.time_function(e["F"])),
    "stop": lambda s, e: s.element(
        STOP, s.along(e), e["k"], e.get("c", 0.0), e.get("gap", 0.0),
        RELEASES[e.get("release", "physical")],
    ),
    "gap_spring": lambda s, e: s.element(
        GAP, s.along(e), e["k_positive"], e["k_negative"], e["gap_positive"], e["gap_negative"]
    ),
    "diagram_spring": _diagram,
    "jenkins": _sliders,
    "maxwell_slip": _sliders,
    "iwan": _iwan,
    "masing_spring": _masing,
    "polynomial_spring": lambda s, e: s.element(CUBIC, s.along(e), *e["k"]),
    "drag": lambda s, e: s.element(DRAG, s.along(e), e["c"]),
    "dahl": lambda s, e: s.element(DAHL, s.along(e), e["sigma"], e["F_c"]),
    "bouc_wen": lambda s, e: s.element(
        BOUC_WEN, s.along(e), e["k"], e["beta"], e["gamma"], e["n"], e["A"]
    ),
    "lugre": lambda s, e: s.element(
        LUGRE, s.along(e), e["sigma0"], e["sigma1"], e["sigma2"], e["F_c"], e["F_s"], e["v_s"]
    ),
    "state": _state,
}  # fmt: skip


# Stepping.


@numba.njit(cache=True)
def at(f, t):
    """The value of a function of time."""
    y = f[0] + f[1] * np.sin(f[2] * t + f[3])
    count = int(f[5])
    if f[4] == STEPS:
        place = 0
        while place < count and t >= f[6 + place]:
            place += 1
        y += f[10 + place]
    elif f[4] == LINEAR:
        if t <= f[6]:
            y += f[10]
        elif t >= f[5 + count]:
            y += f[9 + count]
        else:
            i = 0
            while t >= f[7 + i]:
                i += 1
            part = (t - f[6 + i]) / (f[7 + i] - f[6 + i])
            y += f[10 + i] + part * (f[11 + i] - f[10 + i])
    return y


@numba.njit(cache=True)
def force(kind, p, functions, t, x, xd, z, h):
    """The force of an element along its direction, and its state after the step."""
    if kind == SPRING:
        return -p[0] * x - p[1] * xd, z
    if kind == LOAD:
        return at(functions[int(p[0])], t), z
    if kind == STOP:
        depth = x - p[2]
        if depth <= 0.0:
            return 0.0, z
        spring, damper = p[0] * depth, p[1] * xd
        if p[3] == 0:
            return -max(0.0, spring + damper), z
        if p[3] == 1:
            return -(spring + damper), z
        return -(spring + min(max(damper, -spring), spring)), z
    if kind == GAP:
        if x > p[2]:
            return -p[0] * (x - p[2]), z
        if x < -p[3]:
            return -p[1] * (x + p[3]), z
        return 0.0, z
    if kind == DIAGRAM:
        i = 0 if x < p[1] else 1
        slope = (p[4 + i] - p[3 + i]) / (p[1 + i] - p[i])
        return -(p[3 + i] + slope * (x - p[i])), z
    if kind == SLIDER:
        new = min(max(z + h * xd, -p[1] / p[0]), p[1] / p[0])
        return -p[0] * 0.5 * (z + new), new
    if kind == CUBIC:
        return -(p[0] * x + p[1] * x**2 + p[2] * x**3), z
    if kind == DRAG:
        return -p[0] * abs(xd) * xd, z
    if kind == DAHL:
        rate = xd * (1.0 - np.sign(xd) * p[0] * z / p[1])
        return -p[0] * (z + 0.5 * h * rate), z + h * rate
    if kind == BOUC_WEN:
        rate = xd * (p[4] - (p[1] * np.sign(xd) * np.sign(z) + p[2]) * abs(z) ** p[3])
        return -p[0] * (z + 0.5 * h * rate), z + h * rate
    if kind == LUGRE:
        g = p[3] + (p[4] - p[3]) * np.exp(-((xd / p[5]) ** 2))
        rate = xd - p[0] * abs(xd) * z / g
        return -(p[0] * (z + 0.5 * h * rate) + p[1] * rate + p[2] * xd), z + h * rate
    if kind == NODE:
        # The node moves as little as its friction allows.
        new = min(max(z, (p[0] * x - p[2]) / (p[0] + p[1])), (p[0] * x + p[2]) / (p[0] + p[1]))
        return -p[0] * (x - new), new
    rate = p[0] * xd - z / p[1]
    return -(z + 0.5 * h * rate), z + h * rate


@numba.njit(cache=True)
def limits(row, numbers, functions, stuck, speed, t, normal, carried):
    """The largest friction against either direction, static or kinetic."""
    weight = normal
    if numbers[row, 8] >= 0:
        weight = at(functions[int(numbers[row, 8])], t) + numbers[row, 9] * abs(carried)
    low, high = numbers[row, 2], numbers[row, 3]
    if not stuck:
        s_low, s_high = low, high
        low, high = numbers[row, 4], numbers[row, 5]
        part = 0.0
        if numbers[row, 7] == 1:
            part = np.exp(-((speed / numbers[row, 6]) ** 2))
        elif numbers[row, 7] == 2:
            part = 1.0 / (1.0 + speed / numbers[row, 6])
        low, high = low + part * (s_low - low), high + part * (s_high - high)
    else:
        weight *= 1.0 + 1e-9
    return low * weight, high * weight


@numba.njit(cache=True)
def sweep(kinds, w, second, plane, parent, numbers, functions, m, n, active, stuck, speed, belt,
          carried, before, base_v, v, p, t, h):  # fmt: skip
    """Impulses of all contacts of a step, and the velocities after it."""
    for _ in range(2000):
        change = 0.0
        for r in range(len(kinds)):
            if not active[r]:
                continue
            speeds = -belt[r]
            cross, own = 0.0, np.zeros(2)
            for i in range(n):
                speeds[0] += w[r, i] * v[i]
                speeds[1] += second[r, i] * v[i]
                own[0] += w[r, i] ** 2 / m[i]
                own[1] += second[r, i] ** 2 / m[i]
                cross += w[r, i] * second[r, i] / m[i]
            for i in range(len(base_v)):
                speeds[0] += w[r, n + i] * base_v[i]
                speeds[1] += second[r, n + i] * base_v[i]
            # The largest response of both directions to one impulse.
            inverse = 0.5 * (own[0] + own[1]) + np.sqrt(0.25 * (own[0] - own[1]) ** 2 + cross**2)
            new = p[r] - speeds / inverse
            if kinds[r] == NORMAL:
                new[0] = max(0.0, new[0] - numbers[r, 1] * min(before[r], 0.0) / inverse)
            elif kinds[r] == FREE:
                normal = abs(p[parent[r], 0]) / h if parent[r] >= 0 else 0.0
                low, high = limits(r, numbers, functions, stuck[r], speed[r], t, normal, carried[r])
                if plane[r]:
                    new *= min(1.0, low * h / max(np.sqrt(new[0] ** 2 + new[1] ** 2), 1e-300))
                else:
                    new[0] = min(max(new[0], -low * h), high * h)
            if not plane[r]:
                new[1] = 0.0
            for i in range(n):
                v[i] += (w[r, i] * (new[0] - p[r, 0]) + second[r, i] * (new[1] - p[r, 1])) / m[i]
            change = max(change, np.max(np.abs(new - p[r])))
            p[r] = new
        if change < 1e-11 * h:
            break


@numba.njit(cache=True)
def rest(kinds, w, second, plane, parent, numbers, functions, m, n, active, asked, belt,
         carried, before, base_v, free, v, p, kept, t, h):  # fmt: skip
    """Whether other impulses hold contacts that would let go. If so, ``v`` and ``p`` are theirs.

    Impulses at rest are a plane, admissible ones a cone; reflections at both in turn (Douglas,
    Rachford) lead to their intersection. ``free``: velocities without impulses; ``kept``: forces
    that held last.
    """
    rows = len(kinds)
    letting, normals = False, 0
    chosen = np.zeros(rows, np.bool_)
    for r in range(rows):
        if not active[r]:
            continue
        a, b = -belt[r, 0], -belt[r, 1]
        for i in range(n):
            a += w[r, i] * v[i]
            b += second[r, i] * v[i]
        for i in range(len(base_v)):
            a += w[r, n + i] * base_v[i]
        if kinds[r] == JOINT or (kinds[r] == FREE and not asked[r]):
            return False
        if kinds[r] == NORMAL:
            chosen[r] = a + numbers[r, 1] * min(before[r], 0.0) <= STILL
            normals += chosen[r]
        elif np.sqrt(a * a + (b * b if plane[r] else 0.0)) > STILL:
            letting = True
    # Only normal impulses can be shared in another way.
    if not letting or normals < 1:
        return False
    count = 0
    for r in range(rows):
        if active[r] and kinds[r] == FREE:
            chosen[r] = parent[r] < 0 or chosen[parent[r]]
        count += chosen[r] * (2 if plane[r] else 1)
    G, b, x = np.zeros((count, n)), np.zeros(count), np.zeros(count)
    limit, normal_of, plane_of = np.zeros((count, 2)), np.full(count, -1), np.full(count, -1)
    place, of = np.full(rows, -1), np.zeros(count, np.int64)
    c = 0
    for r in range(rows):
        if not chosen[r]:
            continue
        place[r], of[c] = c, r
        G[c] = w[r, :n]
        b[c] = belt[r, 0]
        x[c] = kept[r, 0] * h
        if kinds[r] == NORMAL:
            b[c] = -numbers[r, 1] * min(before[r], 0.0)
        for i in range(len(base_v)):
            b[c] -= w[r, n + i] * base_v[i]
        if kinds[r] == FREE:
            weight = 1.0 if parent[r] >= 0 else h
            low, high = limits(r, numbers, functions, True, 0.0, t, 1.0, carried[r])
            limit[c, 0], limit[c, 1] = low * weight, high * weight
            normal_of[c] = place[parent[r]] if parent[r] >= 0 else -1
        c += 1
        if plane[r]:
            G[c], b[c], x[c], of[c] = second[r, :n], belt[r, 1], kept[r, 1] * h, r
            plane_of[c - 1], normal_of[c] = c, -2
            c += 1
    for j in range(count):
        b[j] -= np.sum(G[j] * free)
    A = np.zeros((count, count))
    for i in range(count):
        for j in range(count):
            A[i, j] = np.sum(G[i] * G[j] / m)
    inverse = np.linalg.pinv(A, 1e-10)
    size = np.max(np.abs(b)) + 1e-300
    if np.max(np.abs(A @ (inverse @ b) - b)) > 1e-9 * size:
        return False
    found, worst = x, 0.0
    for _ in range(ROUNDS):
        found = x - inverse @ (A @ x - b)
        turned = 2.0 * found - x
        inside = turned.copy()
        worst = 0.0
        for j in range(count):
            r = of[j]
            if kinds[r] != FREE or normal_of[j] == -2:
                continue
            second_x = turned[plane_of[j]] if plane_of[j] >= 0 else 0.0
            one = found[plane_of[j]] if plane_of[j] >= 0 else 0.0
            y, height = turned[j], 1.0
            length, along = np.sqrt(y * y + second_x * second_x), np.sqrt(found[j] ** 2 + one**2)
            mu = limit[j, 0] if plane_of[j] >= 0 or y < 0.0 else limit[j, 1]
            mu_found = limit[j, 0] if plane_of[j] >= 0 or found[j] < 0.0 else limit[j, 1]
            if normal_of[j] >= 0:
                height, level = turned[normal_of[j]], found[normal_of[j]]
                worst = max(worst, -level, along - mu_found * max(level, 0.0))
                if length > mu * height:
                    # The next point on the edge of the cone, or its tip.
                    height = max(0.0, (height + mu * length) / (1.0 + mu * mu))
                    inside[normal_of[j]] = height
            else:
                worst = max(worst, along - mu_found)
            if length > mu * height:
                inside[j] = y * mu * height / length
                if plane_of[j] >= 0:
                    inside[plane_of[j]] = second_x * mu * height / length
        for j in range(count):
            if kinds[of[j]] == NORMAL:
                worst = max(worst, -found[j])
                inside[j] = max(0.0, inside[j])
        if worst <= EXACT * np.max(np.abs(found)):
            break
        x = x + inside - found
    if worst > EXACT * np.max(np.abs(found)):
        return False
    v[:] = free
    p[:] = 0.0
    for j in range(count):
        v += G[j] * found[j] / m
        p[of[j], 1 if normal_of[j] == -2 else 0] = found[j]
    kept[:] = p / h
    return True


@numba.njit(cache=True)
def march(n, m, q, v, z, bases, functions, ekinds, ew, ep, kinds, w, second, plane, parent, numbers,
          belts, loads, event, grid, outputs):  # fmt: skip
    """Positions and velocities at the outputs, and the time at which the motion ended. Steps end at
    the times of the ``grid``."""
    rows, count = len(kinds), len(outputs)
    found = np.full((count, 2, n), np.nan)
    z = z.copy()
    forces = np.zeros(len(ekinds))
    stuck = np.ones(rows, np.bool_)
    first, way = True, np.zeros(rows, np.int64)
    place = 0
    base_m, base_v = np.zeros(bases), np.zeros(bases)
    belt, before = np.zeros((rows, 2)), np.zeros(rows)
    speed, carried = np.zeros(rows), np.zeros(rows)
    active, closed = np.zeros(rows, np.bool_), np.zeros(rows, np.bool_)
    dof = int(event[0])
    side = 0.0
    if dof >= 0:
        side = np.sign(q[dof] - event[1])
    # Parts of a step of the grid: done, and next. Both are sums of powers of two.
    k, done, part = 0, 0.0, 1.0
    kept = np.zeros((rows, 2))
    after = z.copy()
    while k < len(grid) - 1:
        width = grid[k + 1] - grid[k]
        t, h = grid[k] + done * width, part * width
        for i in range(bases):
            base_m[i] = at(functions[i], t + 0.5 * h)
            base_v[i] = (at(functions[i], t + h) - at(functions[i], t)) / h
        qm = q + 0.5 * h * v
        f = np.zeros(n)
        for e in range(len(ekinds)):
            x, xd = 0.0, 0.0
            for i in range(n):
                x += ew[e, i] * qm[i]
                xd += ew[e, i] * v[i]
            for i in range(bases):
                x += ew[e, n + i] * base_m[i]
                xd += ew[e, n + i] * base_v[i]
            forces[e], after[e] = force(ekinds[e], ep[e], functions, t + 0.5 * h, x, xd, z[e], h)
            for i in range(n):
                f[i] += ew[e, i] * forces[e]
        for r in range(rows):
            gap, before[r] = numbers[r, 0], 0.0
            for i in range(n):
                gap += w[r, i] * qm[i]
                before[r] += w[r, i] * v[i]
            for i in range(bases):
                gap += w[r, n + i] * base_m[i]
                before[r] += w[r, n + i] * base_v[i]
            belt[r, 0] = at(functions[belts[r, 0]], t + h) if belts[r, 0] >= 0 else 0.0
            belt[r, 1] = at(functions[belts[r, 1]], t + h) if belts[r, 1] >= 0 else 0.0
            active[r] = True
            if kinds[r] == NORMAL:
                active[r] = gap <= CLOSED
            elif parent[r] >= 0:
                active[r] = active[parent[r]]
            carried[r] = forces[loads[r]] if loads[r] >= 0 else 0.0
        if first:
            for r in range(rows):
                # Belt velocities at the start: at the end of the step belts may already move.
                a, b = before[r], 0.0
                if belts[r, 0] >= 0:
                    a -= at(functions[belts[r, 0]], t)
                if plane[r]:
                    for i in range(n):
                        b += second[r, i] * v[i]
                    if belts[r, 1] >= 0:
                        b -= at(functions[belts[r, 1]], t)
                speed[r] = np.sqrt(a * a + b * b)
                stuck[r] = speed[r] < STILL
            first = False
        speed_before = speed.copy()
        sign = np.zeros(rows)
        for r in range(rows):
            sign[r] = 0.0 if stuck[r] else np.sign(before[r] - belt[r, 0])
        asked = stuck.copy()
        held = np.zeros(rows, np.bool_)
        hits = False
        for r in range(rows):
            hits = hits or (kinds[r] == NORMAL and active[r] and not closed[r])
        for _ in range(8):
            trial = v + h * f / m
            p = np.zeros((rows, 2))
            sweep(kinds, w, second, plane, parent, numbers, functions, m, n, active, asked, speed,
                  belt, carried, before, base_v, trial, p, t + 0.5 * h, h)  # fmt: skip
            if rest(kinds, w, second, plane, parent, numbers, functions, m, n, active, asked,
                    belt, carried, before, base_v, v + h * f / m, trial, p, kept,
                    t + 0.5 * h, h):  # fmt: skip
                for r in range(rows):
                    if kinds[r] == FREE and active[r] and asked[r]:
                        speed[r] = 0.0
                break
            again = False
            for r in range(rows):
                if kinds[r] != FREE or not active[r]:
                    continue
                a, b = -belt[r, 0], 0.0
                for i in range(n):
                    a += w[r, i] * trial[i]
                for i in range(bases):
                    a += w[r, n + i] * base_v[i]
                if plane[r]:
                    b = -belt[r, 1]
                    for i in range(n):
                        b += second[r, i] * trial[i]
                now = np.sqrt(a * a + b * b)
                if asked[r] and now > STILL and not held[r]:
                    # A contact that lets go slides against kinetic friction.
                    asked[r], again = False, True
                    held[r] = True
                # A contact that would reverse comes to rest first, unless an impact reverses it.
                reverses = not asked[r] and not held[r] and not plane[r] and a * sign[r] < 0.0
                if reverses and (parent[r] < 0 or not hits):
                    asked[r], again = True, True
                speed[r] = now
            if not again:
                break
        fastest = np.max(np.abs(v)) + np.max(np.abs(trial))
        for r in range(rows):
            if kinds[r] != NORMAL or not active[r] or p[r, 0] <= 0.0:
                continue
            opens = numbers[r, 1] * min(before[r], 0.0)
            for i in range(n):
                opens += w[r, i] * trial[i]
            for i in range(bases):
                opens += w[r, n + i] * base_v[i]
            if opens > 1e-3 * fastest + 1e-9:
                # The rounds run in a circle where friction can hold itself.
                return found, np.nan
        turns = False
        for r in range(rows):
            if not plane[r] or not active[r] or stuck[r] or numbers[r, 2] <= numbers[r, 4]:
                continue
            old, new = before[r] - belt[r, 0], -belt[r, 0]
            along, across = -belt[r, 1], -belt[r, 1]
            for i in range(n):
                new += w[r, i] * trial[i]
                along += second[r, i] * v[i]
                across += second[r, i] * trial[i]
            for i in range(bases):
                new += w[r, n + i] * base_v[i]
            # Sliding that reverses straight comes to rest first; static friction may hold it there.
            # That is seen before steps are so short that rounding errors have the speed of sliding.
            reverses = old * new + along * across < 0.0
            if reverses and way[r] == 0:
                size = np.sqrt((old**2 + along**2) * (new**2 + across**2))
                way[r] = 1 if abs(old * across - along * new) < STRAIGHT * size else 2
            elif not reverses and part >= 1.0:
                way[r] = 0
            reverses = reverses and way[r] == 1
            turns = turns or reverses or speed[r] < STILL
            if reverses and part <= SHORTEST:
                speed[r] = 0.0
        if turns and part > SHORTEST:
            speed[:] = speed_before
            part *= 0.5
            continue
        for r in range(rows):
            stuck[r] = speed[r] < STILL if active[r] else False
        z[:], closed[:] = after, active
        moved = q + 0.5 * h * (v + trial)
        vn = trial
        ended = False
        if dof >= 0:
            now = moved[dof] - event[1]
            fires = side != 0.0 and now * side < 0.0 and (event[2] == 0.0 or event[2] == -side)
            if fires and event[5] > 0:
                ended = True
            elif fires and event[3] != 0.0:
                tries = 0
                while now * side < 0.0:
                    now += event[3]
                    tries += 1
                    if event[3] * side < 0.0:
                        break
                    if tries > 100:
                        return found, np.nan
                jump = event[1] + now - moved[dof]
                moved[dof] += jump
                for e in range(len(ekinds)):  # the step stretches the springs of sliders
                    if ekinds[e] == SLIDER:
                        room = ep[e, 1] / ep[e, 0]
                        z[e] = min(max(z[e] + ew[e, dof] * jump, -room), room)
            elif fires and event[4] != 0.0:
                old = vn[dof]
                vn[dof] += event[4]
                if old != 0.0:
                    moved[dof] = event[1] + now * vn[dof] / old
            new = np.sign(moved[dof] - event[1])
            if new != 0.0:
                side = new
        while place < count and outputs[place] <= t + h:
            share = (outputs[place] - t) / h
            found[place, 0] = q + share * (moved - q)
            found[place, 1] = v + share * (vn - v)
            place += 1
        q, v = moved, vn
        if ended:
            return found, t
        done += part
        if done >= 1.0:
            k, done = k + 1, 0.0
        part = min(2.0 * part, 1.0 - done)
    return found, grid[-1]


def times_of(s: System, steps: int) -> np.ndarray:
    """Ends of steps of nearly one length; kinks of functions of time are in the middle of steps."""
    h, kinks = s.end / steps, set()
    for f in s.functions:
        if f[4] == LINEAR:
            kinks |= {float(t) for t in f[6 : 6 + int(f[5])]}
    ends = [0.0]
    for t in sorted(kinks):
        # Kinks so close to each other or to the ends lie anywhere in steps.
        if t - 0.5 * h > ends[-1] and t + 0.5 * h < s.end:
            ends += [t - 0.5 * h, t + 0.5 * h]
    ends.append(s.end)
    parts = [
        np.linspace(a, b, max(round((b - a) / h), 1), endpoint=False)
        for a, b in itertools.pairwise(ends)
    ]
    return np.concatenate([*parts, [s.end]])


def motion(text: str, steps: int, outputs: np.ndarray) -> tuple[np.ndarray, float]:
    """Positions and velocities (outputs, 2, n), and the time up to which they are valid."""
    s = System(text)
    rows = len(s.rows)
    width = s.n + len(s.bases)

    def column(name: str, kind: Any, shape: tuple[int, ...] = ()) -> np.ndarray:
        return np.array([r[name] for r in s.rows], kind).reshape(rows, *shape)

    numbers = np.zeros((rows, 10))
    for i, r in enumerate(s.rows):
        numbers[i] = (
            r["gap"], r["e"], *r["static"], *r["kinetic"], r["v_s"], r["law"], r["limit"],
            r["kappa"],
        )  # fmt: skip
    return march(
        s.n, s.m, s.q, s.v, np.array(s.z), len(s.bases), np.array(s.functions).reshape(-1, WIDTH),
        np.array(s.kinds, int), np.array(s.w).reshape(-1, width),
        np.array(s.numbers).reshape(-1, 8), column("kind", int), column("w", float, (width,)),
        column("second", float, (width,)), column("plane", bool), column("parent", int), numbers,
        column("belt", int, (2,)), column("load", int), s.event, times_of(s, steps), outputs,
    )  # fmt: skip
