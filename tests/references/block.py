"""A rigid block on two unilateral frictional contacts that slides, tips, falls back and lifts.

Coordinates x, y, theta of the centre; kinematics linearised about rest. Contact i sits at
``(-b, -h)`` and ``(b, -h)``: gap ``y -+ b theta``, tangential velocity ``x' + h theta'`` (the same
for both, so tangential forces of two stuck contacts are not unique; motion and normal forces are).
Gravity, a horizontal force ``F(t)`` at height ``p`` above the centre, optional dampers and springs.

How the modes are found here: every combination of {open, stick, slip+, slip-} of the two contacts
is tried. At an impact the combination that solves the impact law is taken (Newton's e, Coulomb
impulse). For the motion after an event each combination that is admissible up to rounding is
integrated for a short time, and the one whose gaps, normal forces, sliding velocities and friction
limits stay strictly admissible is kept; two such, or none, is an error.
"""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass, field

import numpy as np
from scipy.integrate import DOP853
from scipy.linalg import expm
from scipy.optimize import brentq

OPEN, STICK, POS, NEG = "open", "stick", "slip+", "slip-"
NAMES = ("left", "right")


@dataclass(frozen=True)
class Block:
    """Data, SI units."""

    m: float
    inertia: float
    b: float
    h: float
    p: float
    mu: tuple[float, float]
    #: Force F = F0 sin(w0 t) + F1 sin(w1 t).
    F0: float
    w0: float
    F1: float
    w1: float
    #: Spring and damper along x, at the height of the centre.
    k: float
    c: float
    e: tuple[float, float] = (0.0, 0.0)
    g: float = 9.81
    end: float = 8.0

    @property
    def M(self) -> np.ndarray:
        return np.diag([self.m, self.m, self.inertia])

    @property
    def N(self) -> np.ndarray:
        """Normal directions, one row a contact."""
        return np.array([[0.0, 1.0, -self.b], [0.0, 1.0, self.b]])

    @property
    def T(self) -> np.ndarray:
        """Tangential directions, one row a contact."""
        return np.array([[1.0, 0.0, self.h], [1.0, 0.0, self.h]])

    def push(self, t):
        return self.F0 * np.sin(self.w0 * t) + self.F1 * np.sin(self.w1 * t)

    def applied(self, t, q, v):
        """Forces without contacts: gravity, push, spring and damper along x."""
        F = self.push(t)
        return np.array([F - self.k * q[0] - self.c * v[0], -self.m * self.g, -self.p * F])


#: Found by a random search for many kinds of transition, far apart and far from degenerate.
CASES: dict[str, Block] = {
    # Flat: an impact of one contact mostly leaves the other closed; 49 events, 15 impacts.
    "flat": Block(
        m=2.0,
        inertia=0.29,
        b=0.36,
        h=0.34,
        p=0.46,
        mu=(0.32, 0.23),
        F0=13.49,
        w0=7.74,
        F1=11.2,
        w1=4.43,
        k=49.86,
        c=5.21,
    ),
    # Tall: it rocks, an impact of one contact often lifts the other; 56 events, 20 impacts.
    "tall": Block(
        m=2.0,
        inertia=0.37,
        b=0.33,
        h=0.29,
        p=0.41,
        mu=(0.45, 0.43),
        F0=22.23,
        w0=7.74,
        F1=11.11,
        w1=4.24,
        k=25.93,
        c=4.6,
    ),
}


@dataclass
class Segment:
    """Motion in one mode."""

    start: float
    modes: tuple[str, str]
    y_start: np.ndarray
    steps: list = field(default_factory=list)
    end: float = np.nan
    y_end: np.ndarray | None = None

    def __call__(self, t):
        if t <= self.start:
            return self.y_start
        for step in self.steps:
            if t <= step.t_max:
                return step(t)
        return self.steps[-1](t)


@dataclass
class Result:
    """Segments, and a record (time, contact, from, to, impact) for each change of mode."""

    segments: list[Segment]
    records: list[tuple[float, str, str, str, bool]]
    impacts: list[tuple[float, np.ndarray, np.ndarray]]
    #: Energy lost in impacts, at the times of ``impacts``.
    losses: list[float]

    @property
    def event_times(self):
        return np.unique([r[0] for r in self.records] + [i[0] for i in self.impacts])

    def state(self, ts) -> np.ndarray:
        """States y = (q, v, friction work, damping work, work of the push) at ``ts``."""
        starts = np.array([s.start for s in self.segments])
        index = np.maximum(np.searchsorted(starts, ts, side="left") - 1, 0)
        return np.array([self.segments[i](t) for i, t in zip(index, ts, strict=True)])


def _sign(mode: str) -> float:
    return {POS: 1.0, NEG: -1.0}.get(mode, 0.0)


def forces(d: Block, modes, force, target_n=(0.0, 0.0), target_t=0.0, M=None):
    """Accelerations (or velocity jumps) and normal forces in a fixed mode.

    Closed contacts get the normal acceleration ``target_n``; stuck ones share one tangential
    force that gives ``target_t``. Returns (a, lambda_N (2,), the shared tangential force).
    """
    closed = [i for i in (0, 1) if modes[i] != OPEN]
    stuck = STICK in modes
    columns, rows, rhs = [], [], []
    for i in closed:
        s = _sign(modes[i])
        columns.append(d.N[i] - s * d.mu[i] * d.T[i])
        rows.append(d.N[i])
        rhs.append(target_n[i])
    if stuck:
        columns.append(d.T[0])
        rows.append(d.T[0])
        rhs.append(target_t)
    k = len(columns)
    A = np.zeros((3 + k, 3 + k))
    A[:3, :3] = d.M
    if k:
        A[:3, 3:] = -np.array(columns).T
        A[3:, :3] = np.array(rows)
    x = np.linalg.solve(A, np.concatenate([force, rhs]))
    normal = np.zeros(2)
    for j, i in enumerate(closed):
        normal[i] = x[3 + j]
    return x[:3], normal, (x[-1] if stuck else 0.0)


def combinations(closed):
    """All modes of the two contacts that their kinematics allow; ``closed`` may close."""
    choices = [(OPEN, STICK, POS, NEG) if c else (OPEN,) for c in closed]
    for modes in itertools.product(*choices):
        tangential = {x for x in modes if x != OPEN}
        # Both contacts have the same sliding velocity.
        if len(tangential) <= 1:
            yield modes


def guards(d: Block, modes, t, y) -> tuple[np.ndarray, list[tuple[str, int]]]:
    """Quantities that are positive while the mode holds, and what each of them is."""
    q, v = y[:3], y[3:6]
    _, normal, shared = forces(d, modes, d.applied(t, q, v))
    values, labels = [], []
    for i in (0, 1):
        if modes[i] == OPEN:
            values.append(d.N[i] @ q)
            labels.append(("gap", i))
        else:
            values.append(normal[i])
            labels.append(("normal", i))
    slip = next((_sign(x) for x in modes if x in (POS, NEG)), 0.0)
    if slip:
        values.append(slip * (d.T[0] @ v))
        labels.append(("velocity", 0))
    if STICK in modes:
        cap = np.array(d.mu) @ normal
        values += [cap - shared, cap + shared]
        labels += [("limit+", 0), ("limit-", 0)]
    return np.array(values), labels


def rates(d: Block, modes, t, y):
    q, v = y[:3], y[3:6]
    a, normal, _ = forces(d, modes, d.applied(t, q, v))
    slip = next((_sign(x) for x in modes if x in (POS, NEG)), 0.0)
    friction = slip * (np.array(d.mu) @ normal) * (d.T[0] @ v)
    work = d.push(t) * (v[0] - d.p * v[2])
    return np.concatenate([v, a, [friction, d.c * v[0] ** 2, work]])


def integrate(d, modes, t, y, end, rtol=1e-13, max_step=0.005):
    return DOP853(
        lambda t, y: rates(d, modes, t, y), t, y, end, rtol=rtol, atol=1e-15, max_step=max_step
    )


def mode_after(d: Block, t, y, touching, still, tolerance=1e-9) -> tuple[str, str]:
    """The mode of the motion that starts at t, by trying all of them.

    ``touching``: contacts with zero gap and normal velocity. ``still``: the sliding velocity is
    zero.
    """
    q, v = y[:3], y[3:6]
    gamma = d.T[0] @ v
    weight = d.m * d.g
    good = []
    for modes in combinations(touching):
        slip = next((_sign(x) for x in modes if x in (POS, NEG)), 0.0)
        if not still and (STICK in modes or slip * gamma < 0.0):
            continue
        a, normal, shared = forces(d, modes, d.applied(t, q, v))
        lifts = [d.N[i] @ a for i in (0, 1) if modes[i] == OPEN and touching[i]]
        if (
            np.any(normal < -tolerance * weight)
            or min(lifts, default=0.0) < -tolerance * d.g
            or (still and slip * (d.T[0] @ a) < -tolerance * d.g)
            or (STICK in modes and abs(shared) > np.array(d.mu) @ normal + tolerance * weight)
        ):
            continue
        # Admissible at the instant itself; now over a short time, where ties resolve.
        solver = integrate(d, modes, t, y, t + 4e-4, max_step=1e-4)
        ok = True
        while solver.status == "running":
            solver.step()
            ok &= bool(np.all(guards(d, modes, solver.t, solver.y)[0] > -1e-14))
        if ok:
            good.append(modes)
    if len(good) != 1:
        raise AssertionError(f"t = {t}: admissible modes {good}")
    return good[0]


def impact(d: Block, v, closed):
    """Velocity after an impact of the ``closed`` contacts and its mode, by trying all modes."""
    before = d.N @ v
    e = np.array(d.e)
    found = []
    for modes in combinations(closed):
        slip = next((_sign(x) for x in modes if x in (POS, NEG)), 0.0)
        jump, normal, shared = forces(d, modes, np.zeros(3), -(1.0 + e) * before, -(d.T[0] @ v))
        after = v + jump
        separation = d.N @ after + e * before
        if (
            np.any(normal < 0.0)
            or any(separation[i] < 0.0 for i in (0, 1) if closed[i] and modes[i] == OPEN)
            or slip * (d.T[0] @ after) < 0.0
            or (STICK in modes and abs(shared) > np.array(d.mu) @ normal)
        ):
            continue
        found.append((after, modes))
    assert len(found) == 1, found
    return found[0]


def project(d: Block, y, modes):
    """Remove the rounding errors of the closed contacts' gaps and of zero velocities."""
    y = y.copy()
    rows_q = [d.N[i] for i in (0, 1) if modes[i] != OPEN]
    rows_v = rows_q + ([d.T[0]] if STICK in modes else [])
    for rows, part in ((rows_q, slice(0, 3)), (rows_v, slice(3, 6))):
        if rows:
            W = np.array(rows)
            y[part] -= np.linalg.solve(d.M, W.T) @ np.linalg.solve(
                W @ np.linalg.solve(d.M, W.T), W @ y[part]
            )
    return y


def solve(d: Block, *, rtol: float = 1e-13, max_step: float = 0.005) -> Result:
    """Event-driven solution from rest on both contacts."""
    t, y = 0.0, np.zeros(9)
    touching, still = [True, True], True
    modes = mode_after(d, t, y, touching, still)
    segments, records, impacts, losses = [], [], [], []
    while True:
        labels = guards(d, modes, t, y)[1]

        def guard(s, y, modes=modes):
            return guards(d, modes, s, y)[0]

        segment = Segment(t, modes, y)
        integrator = integrate(d, modes, t, y, d.end, rtol, max_step)
        # Gaps and sliding velocities may start from zero; nothing happens within this time of an
        # event (checked at the end).
        quiet = t + 1e-5 if segments else t
        hit = None
        while integrator.status == "running" and hit is None:
            integrator.step()
            dense = integrator.dense_output()
            segment.steps.append(dense)
            grid = np.linspace(dense.t_min, dense.t_max, 9)
            values = np.array([guard(s, dense(s)) for s in grid])
            negative = (values < 0.0) & (grid > quiet)[:, None]
            if not np.any(negative):
                continue
            k = int(np.argmax(np.any(negative, axis=1)))
            left = max(grid[k - 1], quiet)
            for index in np.flatnonzero(negative[k]):
                root = brentq(
                    lambda s, dense=dense, index=index: guard(s, dense(s))[index],
                    left,
                    grid[k],
                    xtol=1e-15,
                    rtol=1e-15,
                )
                if hit is None or root < hit[0]:
                    hit = (root, int(index))
        segments.append(segment)
        if hit is None:
            segment.end, segment.y_end = d.end, integrator.y
            break
        t, (kind, i) = hit[0], labels[hit[1]]
        y = segment.steps[-1](t)
        segment.end, segment.y_end = t, y
        touching = [x != OPEN for x in modes]
        still = STICK in modes
        is_impact = kind == "gap"
        if is_impact:
            touching[i] = True
            y = y.copy()
            before = y[3:6].copy()
            y[3:6], shock = impact(d, before, touching)
            impacts.append((t, before, y[3:6].copy()))
            losses.append(0.5 * (before @ d.M @ before - y[3:6] @ d.M @ y[3:6]))
            touching = [shock[j] != OPEN and d.e[j] * abs(d.N[j] @ before) == 0.0 for j in (0, 1)]
            still = STICK in shock
            y = project(d, y, [shock[j] if touching[j] else OPEN for j in (0, 1)])
        elif kind == "velocity":
            still = True
            y = project(d, y, [STICK if x != OPEN else OPEN for x in modes])
        new = mode_after(d, t, y, touching, still)
        y = project(d, y, new)
        records += [
            (t, NAMES[j], modes[j], new[j], is_impact) for j in (0, 1) if modes[j] != new[j]
        ]
        assert new != modes or is_impact
        modes = new
    result = Result(segments, records, impacts, losses)
    assert np.diff(result.event_times).min(initial=1.0) > 1e-4
    return result


def stored_energy(d: Block, q, v) -> np.ndarray:
    """Kinetic energy, and energy of the spring and of gravity, at states q, v (m, 3)."""
    return 0.5 * (v**2 @ np.diag(d.M) + d.k * q[:, 0] ** 2) + d.m * d.g * q[:, 1]


def energy_residual(d: Block, result: Result, ts) -> tuple[np.ndarray, float]:
    """Stored energy + dissipation - work of the push at ``ts``, and the energy exchanged."""
    y = result.state(ts)
    friction, damping, work = y[:, 6:].T
    times = np.array([t for t, _, _ in result.impacts])
    lost = np.concatenate([[0.0], np.cumsum(result.losses)])[np.searchsorted(times, ts)]
    residual = stored_energy(d, y[:, :3], y[:, 3:6]) + friction + damping + lost - work
    return residual, float(friction[-1] + damping[-1] + lost[-1])


def admissibility(d: Block, result: Result, samples: int = 101) -> float:
    """Smallest value of any guard between the events: below zero if an event was missed."""
    return min(
        float(guards(d, s.modes, t, s(t))[0].min())
        for s in result.segments
        for t in np.linspace(s.start, s.end, samples + 2)[1:-1]
    )


def propagation_error(d: Block, result: Result) -> float:
    """Largest difference between the integrator and the matrix exponential over a segment."""
    worst = 0.0
    for s in result.segments:
        # The accelerations are affine in (q, v, push): their matrix from unit states.
        def acceleration(q, v, push, gravity, s=s):
            force = np.array([push - d.k * q[0] - d.c * v[0], -d.m * d.g * gravity, -d.p * push])
            return forces(d, s.modes, force)[0]

        zero, unit = np.zeros(3), np.eye(3)
        A = np.zeros((11, 11))
        A[:3, 3:6] = unit
        A[3:6, :3] = np.array([acceleration(u, zero, 0.0, 0.0) for u in unit]).T
        A[3:6, 3:6] = np.array([acceleration(zero, u, 0.0, 0.0) for u in unit]).T
        # Extra states: sine and cosine of both parts of the push, and 1.
        A[3:6, 6] = acceleration(zero, zero, d.F0, 0.0)
        A[3:6, 8] = acceleration(zero, zero, d.F1, 0.0)
        A[3:6, 10] = acceleration(zero, zero, 0.0, 1.0)
        A[6, 7], A[7, 6], A[8, 9], A[9, 8] = d.w0, -d.w0, d.w1, -d.w1
        angles = (d.w0 * s.start, d.w1 * s.start)
        x = np.concatenate(
            [s.y_start[:6], *([np.sin(angle), np.cos(angle)] for angle in angles), [1.0]]
        )
        x = expm(A * (s.end - s.start)) @ x
        worst = max(worst, float(np.abs(x[:6] - s.y_end[:6]).max()))
    return worst


@functools.cache
def solution(case: str = "flat") -> Result:
    """The solution of a case, computed once."""
    return solve(CASES[case])


def reference(ts, case: str = "flat") -> dict[str, np.ndarray]:
    """States at ``ts`` and the instants of the events."""
    y = solution(case).state(np.asarray(ts, float))
    return {"q": y[:, :3], "v": y[:, 3:6], "event_times": solution(case).event_times}


def problem(case: str = "flat", order=(0, 1)):
    """The same system for jfric; ``order`` permutes its contacts."""
    import jfric

    d = CASES[case]
    contacts = {
        name: jfric.Contact(
            {"y": 1.0, "theta": sign * d.b},
            {"x": 1.0, "theta": d.h},
            jfric.Coulomb(d.mu[i]),
            e=d.e[i],
        )
        for i, (name, sign) in enumerate(zip(NAMES, (-1.0, 1.0), strict=True))
    }
    push = jfric.Sum((jfric.Harmonic(d.F0, d.w0), jfric.Harmonic(d.F1, d.w1)))
    return jfric.Problem(
        {"x": "translation", "y": "translation", "theta": "rotation"},
        {
            "mass": {
                "x": jfric.Mass("x", d.m),
                "y": jfric.Mass("y", d.m),
                "theta": jfric.Mass("theta", d.inertia),
            },
            "spring": jfric.Spring("x", d.k),
            "damper": jfric.Damper("x", d.c),
            "load": {
                "gravity": jfric.Load("y", -d.m * d.g),
                "push": jfric.Load({"x": 1.0, "theta": -d.p}, push),
            },
            "contact": {NAMES[i]: contacts[NAMES[i]] for i in order},
        },
        time=d.end,
    )
