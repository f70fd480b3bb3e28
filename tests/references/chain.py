"""Bodies in a row that rub on the ground and on their neighbours, shaken by a common base.

Body i (mass m) hangs on the base by a spring k_base and a damper c_base, on its neighbours by
k_link, c_link. Friction with given limits: ``ground[i]`` on the velocity v_i, ``link[i]`` on the
relative velocity v_{i+1} - v_i. The base moves as ``z = A sin(w t)``; everything starts at rest.

How the modes are found here:

- Bodies that stick together form clusters (a cluster that touches a stuck ground contact rests).
  A cluster holds together as long as some distribution of its friction forces within their limits
  gives every body the cluster's acceleration. On a row of bodies this is a flow problem, and by
  the max-flow min-cut theorem it is feasible exactly if for every run of neighbouring bodies
  ``|sum(f - m a)|`` does not exceed the limits of the contacts that leave the run. These linear
  cut conditions are the event functions; the forces themselves, which need not be unique, are
  never computed.
- Where a sliding velocity reaches zero the new accelerations minimise the convex function
  ``sum(m a^2 / 2 - f a) + sum(cap |w^T a|)`` over the contacts without sliding velocity. On a row
  this is solved by dynamic programming, exactly, and checked with the cut conditions.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field

import numpy as np
from scipy.integrate import DOP853
from scipy.linalg import expm
from scipy.optimize import brentq

LABELS = {0: "stick", 1: "slip+", -1: "slip-"}


@dataclass(frozen=True)
class Chain:
    """Data of a chain of ``n`` bodies, SI units."""

    m: np.ndarray
    k_base: np.ndarray
    c_base: np.ndarray
    k_link: np.ndarray
    c_link: np.ndarray
    ground: np.ndarray
    link: np.ndarray
    amplitude: float
    omega: float
    end: float

    @property
    def n(self) -> int:
        return self.m.size


def data(n: int, amplitude: float, omega: float) -> Chain:
    """A chain without symmetry: the irregular numbers keep events apart."""
    i = np.arange(n)
    j = np.arange(n - 1)
    return Chain(
        m=np.round(1.0 + 0.35 * np.sin(1.7 * i + 0.3), 3),
        k_base=np.round(60.0 + 35.0 * np.cos(2.3 * i), 2),
        c_base=np.round(0.5 + 0.2 * np.sin(3.1 * i), 3),
        k_link=np.round(110.0 + 40.0 * np.sin(1.1 * j + 0.5), 2),
        c_link=np.round(0.3 + 0.1 * np.cos(1.9 * j), 3),
        ground=np.round(1.6 + 0.9 * np.sin(2.9 * i + 1.0), 3),
        link=np.round(1.1 + 0.7 * np.cos(1.3 * j + 0.4), 3),
        amplitude=amplitude,
        omega=omega,
        end=10.0,
    )


#: Chains whose events are well apart and whose decisions are far from degenerate.
CASES: dict[str, Chain] = {
    # 421 instants with events, 131 of them reversals without stick, at least 3e-4 s apart.
    "fast": data(10, amplitude=0.04, omega=6.0),
    # 208 instants, longer common stick, at least 1.7e-3 s apart.
    "slow": data(10, amplitude=0.08, omega=3.0),
    # 31 contacts, 349 instants, at least 1.5e-4 s apart.
    "long": data(16, amplitude=0.08, omega=3.0),
}


@dataclass
class Segment:
    """Motion between two events: dense outputs of the integrator's steps."""

    start: float
    modes: np.ndarray
    steps: list = field(default_factory=list)
    end: float = np.nan
    #: State after the last event before this segment, and at its end.
    y_start: np.ndarray | None = None
    y_end: np.ndarray | None = None

    def __call__(self, t: float) -> np.ndarray:
        if t <= self.start:
            return self.y_start
        for step in self.steps:
            if t <= step.t_max:
                return step(t)
        return self.steps[-1](t)


@dataclass
class Result:
    """Segments, and a record (time, contact, from, to) for each change of mode."""

    segments: list[Segment]
    records: list[tuple[float, str, str, str]]
    #: Smallest distance from a degenerate decision met at any capture.
    margin: float

    @property
    def event_times(self) -> np.ndarray:
        """Instants at which at least one contact changes its mode."""
        return np.unique([r[0] for r in self.records])

    def state(self, ts) -> np.ndarray:
        """States y = (q, v, energies) at ``ts``."""
        starts = np.array([s.start for s in self.segments])
        index = np.maximum(np.searchsorted(starts, ts, side="left") - 1, 0)
        return np.array([self.segments[i](t) for i, t in zip(index, ts, strict=True)])


class _System:
    """Modes are an integer array: ground contacts 0..n-1, links n..2n-2; 0 stick, +-1 sliding."""

    def __init__(self, chain: Chain):
        self.d = chain
        n = self.n = chain.n
        self.caps = np.concatenate([chain.ground, chain.link])
        D = np.diff(np.eye(n), axis=0)
        self.W = np.vstack([np.eye(n), D])
        self.K = np.diag(chain.k_base) + D.T @ np.diag(chain.k_link) @ D
        self.C = np.diag(chain.c_base) + D.T @ np.diag(chain.c_link) @ D

    def applied(self, t, q, v):
        """Forces without friction."""
        d = self.d
        z, z_dot = self.base(t)
        return d.k_base * z + d.c_base * z_dot - self.K @ q - self.C @ v

    def base(self, t):
        d = self.d
        return d.amplitude * np.sin(d.omega * t), d.amplitude * d.omega * np.cos(d.omega * t)

    def clusters(self, modes) -> list[tuple[int, int, bool]]:
        """(first, last, grounded) of each run of bodies joined by stuck links."""
        n, out, first = self.n, [], 0
        for i in range(n):
            if i == n - 1 or modes[n + i] != 0:
                out.append((first, i, bool(np.any(modes[first : i + 1] == 0))))
                first = i + 1
        return out

    def projector(self, modes) -> np.ndarray:
        """P with a = P (applied forces + forces of the sliding contacts)."""
        P = np.zeros((self.n, self.n))
        for a, b, grounded in self.clusters(modes):
            if not grounded:
                P[a : b + 1, a : b + 1] = 1.0 / self.d.m[a : b + 1].sum()
        return P

    def sliding_force(self, modes) -> np.ndarray:
        return -(self.W.T @ (modes * self.caps))

    def cuts(self, modes):
        """Rows R, limits c, and (first, last) of the runs: feasible iff |R (f + slide)| <= c."""
        n = self.n
        rows, limits, runs = [], [], []
        for first, last, grounded in self.clusters(modes):
            mass = self.d.m[first : last + 1]
            for a in range(first, last + 1):
                for b in range(a, last + 1):
                    if (a, b) == (first, last) and not grounded:
                        continue
                    row = np.zeros(n)
                    row[a : b + 1] = 1.0
                    if not grounded:
                        row[first : last + 1] -= self.d.m[a : b + 1].sum() / mass.sum()
                    limit = self.d.ground[a : b + 1].sum() if grounded else 0.0
                    limit += self.d.link[a - 1] if a > first else 0.0
                    limit += self.d.link[b] if b < last else 0.0
                    rows.append(row)
                    limits.append(limit)
                    runs.append((a, b, grounded, first, last))
        return np.array(rows).reshape(-1, n), np.array(limits), runs

    def accelerations(self, force, still) -> np.ndarray:
        """Minimiser of sum(m a^2/2 - force a) + sum(cap |w^T a|) over the contacts ``still``.

        The derivative of the cost-to-come, D_i(a), is increasing and piecewise linear; a link
        with limit H passes on D clipped to [-H, H].
        """
        n, d = self.n, self.d
        a = np.zeros(n)
        first = 0
        for last in range(n):
            if last < n - 1 and still[n + last]:
                continue
            lo, hi = np.empty(n), np.empty(n)

            def derivative(i, x, side, first=first, lo=lo, hi=hi):
                value = 0.0
                for j in range(first, i + 1):
                    value += d.m[j] * x - force[j]
                    if still[j]:
                        sign = side if x == 0.0 else np.sign(x)
                        value += d.ground[j] * sign
                    if j < i:
                        value = min(max(value, -d.link[j]), d.link[j])
                return value

            def root(i, target, derivative=derivative):
                if derivative(i, 0.0, -1) <= target <= derivative(i, 0.0, 1):
                    return 0.0
                bound = 10.0 * (np.abs(force).sum() + self.caps.sum()) / d.m.min()
                f = lambda x: derivative(i, x, 1) - target  # noqa: E731
                side = (0.0, bound) if derivative(i, 0.0, 1) < target else (-bound, 0.0)
                if side[1] == 0.0:
                    f = lambda x: derivative(i, x, -1) - target  # noqa: E731
                return brentq(f, *side, xtol=1e-300, rtol=1e-15)

            for i in range(first, last):
                lo[i], hi[i] = root(i, -d.link[i]), root(i, d.link[i])
            a[last] = root(last, 0.0)
            for i in range(last - 1, first - 1, -1):
                a[i] = min(max(a[i + 1], lo[i]), hi[i])
            first = last + 1
        return a


def solve(
    chain: Chain, *, rtol: float = 1e-13, max_step: float = 0.01, end: float | None = None
) -> Result:
    """Event-driven solution up to ``end``."""
    system = _System(chain)
    n, W = system.n, system.W
    end = chain.end if end is None else end
    names = [f"ground{i}" for i in range(n)] + [f"link{i}" for i in range(n - 1)]
    t = 0.0
    y = np.zeros(2 * n + 3)
    margin = np.inf

    def decide(t, y, modes, still):
        """Modes after a capture at t: contacts in ``still`` have zero sliding velocity."""
        nonlocal margin
        q, v = y[:n], y[n : 2 * n]
        sliding = np.where(still, 0, modes)
        force = system.applied(t, q, v) + system.sliding_force(sliding)
        a = system.accelerations(force, still)
        relative = W @ a
        new = np.where(still, np.sign(relative).astype(int), modes)
        total = system.applied(t, q, v) + system.sliding_force(new)
        # Karush-Kuhn-Tucker conditions: the clusters move as found, and every cut holds.
        assert np.allclose(system.projector(new) @ total, a, rtol=0, atol=1e-11)
        rows, limits, _ = system.cuts(new)
        slack = limits - np.abs(rows @ total)
        assert np.all(slack >= -1e-11)
        started = still & (new != 0)
        if t > 0.0:
            margin = min(
                margin, slack.min(initial=np.inf), np.abs(relative[started]).min(initial=np.inf)
            )
        return new

    modes = decide(t, y, np.zeros(2 * n - 1, int), np.ones(2 * n - 1, bool))
    segments, records = [], []
    while t < end:
        P = system.projector(modes)
        slide = system.sliding_force(modes)
        rows, limits, runs = system.cuts(modes)
        moving = np.flatnonzero(modes)
        sign = modes[moving]

        def rates(t, y, P=P, slide=slide, modes=modes):
            q, v = y[:n], y[n : 2 * n]
            z, z_dot = system.base(t)
            # Signed, not absolute: smooth in a step that goes past the event.
            friction = (modes * system.caps) @ (W @ v)
            damping = v @ system.C @ v - (chain.c_base @ v) * z_dot
            pull = chain.k_base * (z - q) + chain.c_base * (z_dot - v)
            # Damping of the base dampers acts on z_dot - v.
            damping += chain.c_base.sum() * z_dot**2 - (chain.c_base @ v) * z_dot
            return np.concatenate(
                [v, P @ (system.applied(t, q, v) + slide), [friction, damping, pull.sum() * z_dot]]
            )

        def guards(t, y, rows=rows, limits=limits, slide=slide, moving=moving, sign=sign):
            q, v = y[:n], y[n : 2 * n]
            r = rows @ (system.applied(t, q, v) + slide)
            return np.concatenate([limits - r, limits + r, sign * (W[moving] @ v)])

        segment = Segment(t, modes, y_start=y)
        integrator = DOP853(rates, t, y, end, rtol=rtol, atol=1e-15, max_step=max_step)
        hit = None
        # A contact that has just started to slide leaves zero slowly: its rounding noise there is
        # no event. Nothing happens within this time of an event (checked at the end).
        quiet = t + 1e-6 if segments else t
        while integrator.status == "running":
            integrator.step()
            dense = integrator.dense_output()
            segment.steps.append(dense)
            grid = np.linspace(dense.t_min, dense.t_max, 9)
            values = np.array([guards(s, dense(s)) for s in grid])
            fresh = grid[:, None] <= quiet
            negative = (values < 0.0) & ~fresh
            if np.any(negative):
                k = int(np.argmax(np.any(negative, axis=1)))
                for index in np.flatnonzero(negative[k]):
                    g = lambda s, dense=dense, index=index: guards(s, dense(s))[index]  # noqa: E731
                    left = max(grid[max(k - 1, 0)], quiet)
                    root = (
                        left if g(left) <= 0 else brentq(g, left, grid[k], xtol=1e-15, rtol=1e-15)
                    )
                    if hit is None or root < hit[0]:
                        hit = (root, int(index))
                break
        if hit is None:
            segment.end, segment.y_end = end, integrator.y
            segments.append(segment)
            break
        t, index = hit
        y = segment.steps[-1](t)
        segment.end, segment.y_end = t, y
        segments.append(segment)
        y = y.copy()
        if index < 2 * len(runs):
            # A run of bodies breaks loose in the direction of its surplus force.
            a, b, grounded, first, last = runs[index % len(runs)]
            direction = 1 if index < len(runs) else -1
            new = modes.copy()
            if grounded:
                new[a : b + 1] = direction
            if a > first:
                new[n + a - 1] = direction
            if b < last:
                new[n + b] = -direction
        else:
            captured = moving[index - 2 * len(runs)]
            still = modes == 0
            still[captured] = True
            # The captured velocity is zero exactly.
            trial = np.where(still, 0, modes)
            v = y[n : 2 * n]
            for first, last, grounded in system.clusters(trial):
                part = slice(first, last + 1)
                v[part] = 0.0 if grounded else chain.m[part] @ v[part] / chain.m[part].sum()
            still |= np.abs(W @ v) == 0.0
            new = decide(t, y, modes, still)
        records += [
            (t, names[c], LABELS[modes[c]], LABELS[new[c]]) for c in np.flatnonzero(new != modes)
        ]
        assert np.any(new != modes)
        modes = new
    result = Result(segments, records, margin)
    assert np.diff(result.event_times).min(initial=1.0) > 1e-5
    return result


def stored_energy(chain: Chain, t, q, v) -> np.ndarray:
    """Kinetic energy and energy of the springs at times t (m,) and states q, v (m, n)."""
    z = chain.amplitude * np.sin(chain.omega * np.asarray(t))[:, None]
    return 0.5 * (
        (chain.m * v**2).sum(-1)
        + (chain.k_link * np.diff(q, axis=-1) ** 2).sum(-1)
        + (chain.k_base * (z - q) ** 2).sum(-1)
    )


def energy_residual(chain: Chain, result: Result, ts) -> tuple[np.ndarray, float]:
    """Stored energy + dissipation - work of the base at ``ts``, and the energy exchanged."""
    y = result.state(ts)
    stored = stored_energy(chain, ts, y[:, : chain.n], y[:, chain.n : 2 * chain.n])
    friction, damping, work = y[:, -3:].T
    return stored + friction + damping - work, float(friction[-1] + damping[-1])


def admissibility(chain: Chain, result: Result, samples: int = 23) -> float:
    """Smallest value of any cut condition or signed sliding velocity between the events.

    Negative beyond rounding would mean a missed event: friction outside its limits, or directed
    along the sliding velocity.
    """
    system = _System(chain)
    n, worst = chain.n, np.inf
    for s in result.segments:
        rows, limits, _ = system.cuts(s.modes)
        slide = system.sliding_force(s.modes)
        for t in np.linspace(s.start, s.end, samples + 2)[1:-1]:
            y = s(t)
            r = rows @ (system.applied(t, y[:n], y[n : 2 * n]) + slide)
            gamma = (s.modes * (system.W @ y[n : 2 * n]))[s.modes != 0]
            worst = min(worst, (limits - np.abs(r)).min(initial=np.inf), gamma.min(initial=np.inf))
    return float(worst)


def propagation_error(chain: Chain, result: Result) -> float:
    """Largest difference between the integrator and the matrix exponential over a segment."""
    system = _System(chain)
    n, w = chain.n, chain.omega
    worst = 0.0
    for s in result.segments:
        P = system.projector(s.modes)
        A = np.zeros((2 * n + 3, 2 * n + 3))
        A[:n, n : 2 * n] = np.eye(n)
        A[n : 2 * n, :n] = -P @ system.K
        A[n : 2 * n, n : 2 * n] = -P @ system.C
        # Extra states sin(w t), cos(w t), 1.
        A[n : 2 * n, -3] = P @ chain.k_base * chain.amplitude
        A[n : 2 * n, -2] = P @ chain.c_base * chain.amplitude * w
        A[n : 2 * n, -1] = P @ system.sliding_force(s.modes)
        A[-3, -2], A[-2, -3] = w, -w
        x = np.concatenate([s.y_start[: 2 * n], [np.sin(w * s.start), np.cos(w * s.start), 1.0]])
        x = expm(A * (s.end - s.start)) @ x
        worst = max(worst, np.abs(x[: 2 * n] - s.y_end[: 2 * n]).max())
    return worst


@functools.cache
def solution(case: str = "fast") -> Result:
    """The solution of a case, computed once."""
    return solve(CASES[case])


def reference(ts, case: str = "fast") -> dict[str, np.ndarray]:
    """States at ``ts`` and the instants of the events."""
    n = CASES[case].n
    y = solution(case).state(np.asarray(ts, float))
    return {"q": y[:, :n], "v": y[:, n : 2 * n], "event_times": solution(case).event_times}


def problem(case: str = "fast", order=None):
    """The same system for jfric; ``order`` permutes its friction elements."""
    import jfric

    d = CASES[case]
    names = [f"x{i}" for i in range(d.n)]
    friction = {f"ground{i}": jfric.Friction(x, limit=d.ground[i]) for i, x in enumerate(names)} | {
        f"link{i}": jfric.Friction((names[i], names[i + 1]), limit=d.link[i])
        for i in range(d.n - 1)
    }
    keys = list(friction) if order is None else [list(friction)[i] for i in order]
    elements = {
        "base": {"table": jfric.Base(jfric.Harmonic(d.amplitude, d.omega))},
        "mass": {x: jfric.Mass(x, d.m[i]) for i, x in enumerate(names)},
        "spring": {f"b{i}": jfric.Spring(("table", x), d.k_base[i]) for i, x in enumerate(names)},
        "damper": {f"b{i}": jfric.Damper(("table", x), d.c_base[i]) for i, x in enumerate(names)},
        "friction": {key: friction[key] for key in keys},
    }
    for i in range(d.n - 1):
        pair = (names[i], names[i + 1])
        elements["spring"][f"l{i}"] = jfric.Spring(pair, d.k_link[i])
        elements["damper"][f"l{i}"] = jfric.Damper(pair, d.c_link[i])
    return jfric.Problem(names, elements, time=d.end)
