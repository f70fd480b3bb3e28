"""One rigid body in a plane whose points touch straight walls with friction, by SciPy, event by
event.

Coordinates x, y of the centre and the angle. A contact is a point of the body, in the body's
coordinates, and a wall: a normal and how far the wall is along it. All combinations of {open,
stick, slip+, slip-} are tried where the mode is not known: at an impact the one that solves the
impact law is taken (Newton's e, Coulomb's impulse), for a motion the one that stays admissible when
it is integrated for a short time. None, or two, is an error; modes whose
reactions are not unique are left out.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from scipy.integrate import DOP853
from scipy.optimize import brentq

OPEN, STICK, POS, NEG = "open", "stick", "slip+", "slip-"
SIGN = {POS: 1.0, NEG: -1.0}


class Singular(Exception):
    """Reactions are not unique, or there are none."""


@dataclass(frozen=True)
class Touching:
    """A point of the body and a wall; ``tangent`` is the normal turned clockwise."""

    at: tuple[float, float]
    normal: tuple[float, float] = (0.0, 1.0)
    offset: float = 0.0
    mu: float = 0.0
    e: float = 0.0


@dataclass(frozen=True)
class Body:
    """Mass, inertia, contacts, and a force ``(t)`` of three components beside the weight."""

    m: float
    J: float
    contacts: tuple[Touching, ...]
    load: Callable = lambda t: np.zeros(3)
    g: float = 9.81

    @property
    def mass(self):
        return np.array([self.m, self.m, self.J])

    def force(self, t):
        return self.load(t) - np.array([0.0, self.m * self.g, 0.0])

    def rows(self, q, v):
        """Gaps, normal and tangential directions, and relative accelerations of the motion."""
        c, s = np.cos(q[2]), np.sin(q[2])
        gaps, N, T, bias = [], [], [], []
        for x in self.contacts:
            d = np.array([[c, -s], [s, c]]) @ x.at
            turned = np.array([-d[1], d[0]])
            n = np.asarray(x.normal)
            t = np.array([n[1], -n[0]])
            gaps.append(n @ (q[:2] + d) - x.offset)
            N.append([*n, n @ turned])
            T.append([*t, t @ turned])
            bias.append([-(v[2] ** 2) * (n @ d), -(v[2] ** 2) * (t @ d)])
        return np.array(gaps), np.array(N), np.array(T), np.array(bias)

    def solved(self, modes, rows, force, normal, tangent):
        """Accelerations (or jumps of velocity), normal and tangential reactions, where closed
        contacts get the relative accelerations ``normal`` and stuck ones ``tangent``."""
        _, N, T, _ = rows
        columns, equations, right = [], [], []
        for i, mode in enumerate(modes):
            if mode != OPEN:
                columns.append(N[i] - SIGN.get(mode, 0.0) * self.contacts[i].mu * T[i])
                equations.append(N[i])
                right.append(normal[i])
        for i, mode in enumerate(modes):
            if mode == STICK:
                columns.append(T[i])
                equations.append(T[i])
                right.append(tangent[i])
        k, n = len(columns), len(modes)
        normal_force, friction = np.zeros(n), np.zeros(n)
        a = force / self.mass
        if k:
            C, E = np.array(columns).T, np.array(equations)
            G = E @ (C / self.mass[:, None])
            if np.linalg.cond(G) > 1e9:
                raise Singular
            reaction = np.linalg.solve(G, np.array(right) - E @ a)
            a = a + (C @ reaction) / self.mass
            closed = [i for i, mode in enumerate(modes) if mode != OPEN]
            normal_force[closed] = reaction[: len(closed)]
            stuck = [i for i, mode in enumerate(modes) if mode == STICK]
            friction[stuck] = reaction[len(closed) :]
        return a, normal_force, friction

    def motion(self, modes, t, q, v):
        """Accelerations and reactions in a mode."""
        rows = self.rows(q, v)
        return *self.solved(modes, rows, self.force(t), *-rows[3].T), rows

    def guards(self, modes, t, y):
        """Quantities that are positive while the mode lasts, and what each of them is."""
        q, v = y[:3], y[3:]
        _, normal, friction, (gaps, _, T, _) = self.motion(modes, t, q, v)
        values, labels = [], []
        for i, mode in enumerate(modes):
            if mode == OPEN:
                values.append(gaps[i])
                labels.append(("gap", i))
                continue
            values.append(normal[i])
            labels.append(("normal", i))
            if mode == STICK:
                limit = self.contacts[i].mu * normal[i]
                values += [limit - friction[i], limit + friction[i]]
                labels += [("limit", i), ("limit", i)]
            else:
                values.append(SIGN[mode] * (T[i] @ v))
                labels.append(("velocity", i))
        return np.array(values), labels

    def steps(self, modes, t, y, end, max_step):
        """The integrator of a mode."""

        def rates(t, y):
            return np.concatenate([y[3:], self.motion(modes, t, y[:3], y[3:])[0]])

        return DOP853(rates, t, y, end, rtol=1e-12, atol=1e-14, max_step=max_step)

    def combinations(self, touching, resting):
        yield from itertools.product(
            *[
                (OPEN,) if not c else (OPEN, STICK, POS, NEG) if r else (OPEN, POS, NEG)
                for c, r in zip(touching, resting, strict=True)
            ]
        )

    def mode_after(self, t, y, touching, resting):
        """The mode of the motion that starts at ``t``."""
        q, v = y[:3], y[3:]
        T, found = self.rows(q, v)[2], []
        for modes in self.combinations(touching, resting):
            sliding = [SIGN[x] * (T[i] @ v) for i, x in enumerate(modes) if x in SIGN]
            resting_slides = [resting[i] for i, x in enumerate(modes) if x in SIGN]
            if any(g < 0 and not r for g, r in zip(sliding, resting_slides, strict=True)):
                continue
            # Positive right after the start: the gap of what lifts, and sliding that begins, too.
            try:
                solver, good = self.steps(modes, t, y, t + 1e-4, 2e-5), True
            except Singular:
                continue
            while solver.status == "running" and good:
                solver.step()
                good = bool(np.all(self.guards(modes, solver.t, solver.y)[0] > -1e-12))
            if good:
                found.append(modes)
        assert len(found) == 1, f"t = {t}: admissible modes {found}"
        return found[0]

    def impact(self, q, v, touching):
        """Velocity after an impact of the ``touching`` contacts, and its mode."""
        rows = self.rows(q, v)
        _, N, T, _ = rows
        before, e = N @ v, np.array([x.e for x in self.contacts])
        found = []
        for modes in self.combinations(touching, touching):
            try:
                jump, normal, friction = self.solved(
                    modes, rows, np.zeros(3), -(1.0 + e) * before, -(T @ v)
                )
            except Singular:
                continue
            after, limit = v + jump, np.array([x.mu for x in self.contacts]) * normal
            parts = N @ after + e * before
            if (
                np.all(normal >= 0.0)
                and all(parts[i] >= 0 for i, x in enumerate(modes) if touching[i] and x == OPEN)
                and all(SIGN[x] * (T[i] @ after) >= 0 for i, x in enumerate(modes) if x in SIGN)
                and all(abs(friction[i]) <= limit[i] for i, x in enumerate(modes) if x == STICK)
            ):
                found.append((after, modes))
        assert len(found) == 1, found
        return found[0]

    def project(self, y, modes):
        """Take away rounding errors of what is held."""
        y, closed = y.copy(), [i for i, x in enumerate(modes) if x != OPEN]
        stuck = [i for i, x in enumerate(modes) if x == STICK]
        if closed:
            for _ in range(2):
                gaps, N, _, _ = self.rows(y[:3], y[3:])
                y[:3] -= np.linalg.pinv(N[closed]) @ gaps[closed]
            _, N, T, _ = self.rows(y[:3], y[3:])
            W = np.concatenate([N[closed], T[stuck]])
            y[3:] -= np.linalg.pinv(W) @ (W @ y[3:])
        return y


@dataclass
class Motion:
    """Pieces ``(start, dense outputs)`` and events ``(time, contact, from, to, state before)``."""

    pieces: list = field(default_factory=list)
    events: list = field(default_factory=list)

    def __call__(self, t):
        """State at ``t``, before what happens then."""
        starts = [start for start, _ in self.pieces]
        _, steps = self.pieces[max(int(np.searchsorted(starts, t)) - 1, 0)]
        return next((s for s in steps if t <= s.t_max), steps[-1])(t)


def solve(body: Body, y, end, touching=None, resting=None, max_step=0.01) -> Motion:
    """Motion from the state ``y`` (6,): contacts ``touching`` at the start, of which some are
    ``resting``."""
    none = [False] * len(body.contacts)
    touching, resting = list(touching or none), list(resting or none)
    t, y, found = 0.0, np.asarray(y, float), Motion()
    modes = body.mode_after(t, y, touching, resting)
    while True:
        solver, steps, hit = body.steps(modes, t, y, end, max_step), [], None
        labels = body.guards(modes, t, y)[1]
        quiet = t + 1e-6 if found.events else t
        while solver.status == "running" and hit is None:
            solver.step()
            dense = solver.dense_output()
            steps.append(dense)
            grid = np.linspace(dense.t_min, dense.t_max, 9)
            values = np.array([body.guards(modes, s, dense(s))[0] for s in grid])
            below = (values < 0.0) & (grid > quiet)[:, None]
            if not below.any():
                continue
            k = int(np.argmax(below.any(axis=1)))
            for index in np.flatnonzero(below[k]):

                def guard(s, dense=dense, index=index, modes=modes):
                    return body.guards(modes, s, dense(s))[0][index]

                root = brentq(guard, max(grid[k - 1], quiet), grid[k], xtol=1e-15, rtol=1e-15)
                if hit is None or root < hit[0]:
                    hit = (root, int(index))
        found.pieces.append((t, steps))
        if hit is None:
            return found
        t, (kind, i) = hit[0], labels[hit[1]]
        y = steps[-1](t)
        touching = [x != OPEN for x in modes]
        before = y
        if kind == "gap":
            touching[i] = True
            v, shock = body.impact(y[:3], y[3:], touching)
            y = np.concatenate([y[:3], v])
            approach = body.rows(y[:3], v)[1] @ before[3:]
            held = [
                x != OPEN and c.e * abs(r) < 1e-12
                for x, c, r in zip(shock, body.contacts, approach, strict=True)
            ]
            touching, resting = held, [h and x == STICK for h, x in zip(held, shock, strict=True)]
        else:
            resting = [x == STICK or (j == i and kind == "velocity") for j, x in enumerate(modes)]
        y = body.project(
            y, [STICK if r else POS if c else OPEN for c, r in zip(touching, resting, strict=True)]
        )
        new = body.mode_after(t, y, touching, resting)
        y = body.project(y, new)
        assert new != modes or kind == "gap"
        found.events += [
            (t, j, a, b, before)
            for j, (a, b) in enumerate(zip(modes, new, strict=True))
            if a != b or (kind == "gap" and j == i)
        ]
        modes = new
