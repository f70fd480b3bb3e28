"""Moreau's midpoint scheme for many systems of one structure at once, in NumPy.

Positions at the middle of a step decide which contacts are closed; impulses obey Newton's law for
normals and Coulomb's for tangents, found by projected Gauss-Seidel. A contact at rest carries its
static limit until it moves. Independent of jfric: systems come as plain data
(:mod:`references.typed`).

Source: J. J. Moreau, Numerical aspects of the sweeping process, Comput. Methods Appl. Mech. Engrg.
177 (1999).
"""

from __future__ import annotations

import numpy as np

from references.typed import END, Numbers, Structure, matrices, value

SWEEPS = 60


def simulate(s: Structure, systems: list[Numbers], outputs: int, h: float = 2e-3) -> np.ndarray:
    """Positions (system, output, degree of freedom) at evenly spaced times."""
    T, N = s.directions()
    nt = len(T)
    M, C, K = (np.array(x) for x in zip(*map(matrices, systems), strict=True))
    W = np.concatenate([T, N])
    M_inverse = np.linalg.inv(M)
    MW = M_inverse @ W.T
    D = W @ MW
    steps = round(END / h)
    middle = (np.arange(steps) + 0.5) * h
    loads = _table(systems, middle, [lambda x, i=i: x.loads[i] for i in range(s.n)])
    belts = _table(systems, middle, [lambda x, i=i: x.contacts[i].belt for i in range(nt)])
    given = _table(systems, middle, [lambda x, i=i: x.contacts[i].normal for i in range(nt)])
    gap0 = np.array([[c.gap for c in x.contacts] for x in systems])
    e = np.array([[c.e for c in x.contacts] for x in systems])
    law = np.array([[c.law for c in x.contacts] for x in systems])
    unilateral = np.array([c.unilateral for c in s.contacts])
    q, v = (np.array([getattr(x, name) for x in systems]) for name in "qv")
    sliding = np.abs(v @ T.T - belts[:, 0]) > 1e-12
    result = [q]
    for k in range(steps):
        half = q + 0.5 * h * v
        force = loads[:, k] - _times(K, half) - _times(C, v)
        free = v + h * _times(M_inverse, force)
        closed = unilateral & (gap0 + half @ N.T <= 1e-12)
        before = v @ N.T
        gamma = free @ W.T - np.concatenate([belts[:, k], np.zeros_like(gap0)], axis=1)
        gamma[:, nt:] += e * np.minimum(before, 0.0)
        limit = np.where(unilateral, np.inf, h * given[:, k])
        for _ in range(3):
            mu = np.where(sliding[..., None], law[..., 2:], law[..., :2])
            P, after = _impulses(D, gamma, closed, limit, mu)
            moves = np.abs(after[:, :nt]) > 1e-7 * (1.0 + np.abs(belts[:, k]))
            if not np.any(moves & ~sliding):
                break
            sliding = sliding | moves
        sliding = moves
        v = free + _times(MW, P)
        q = half + 0.5 * h * v
        if (k + 1) % (steps // (outputs - 1)) == 0:
            result.append(q)
    return np.stack(result, axis=1)


def _times(a, x):
    return np.einsum("bij,bj->bi", a, x)


def _table(systems, t, functions) -> np.ndarray:
    """Values (system, time, function); None is zero."""
    rows = [[f(x) for f in functions] for x in systems]
    zero = np.zeros_like(t)
    return np.array(
        [np.stack([zero if f is None else value(f, t) for f in row], axis=-1) for row in rows]
    )


def _impulses(D, gamma, closed, limit, mu):
    """Impulses and relative velocities after them; ``limit``: given normal impulses, or infinite
    for contacts whose normal impulse is an unknown."""
    nt = closed.shape[1]
    P, after = np.zeros_like(gamma), gamma.copy()

    def change(i, new):
        nonlocal after
        after = after + D[:, :, i] * (new - P[:, i])[:, None]
        P[:, i] = new

    for _ in range(SWEEPS):
        for i in range(nt):
            n = nt + i
            if np.any(D[:, n, n] > 0):
                push = P[:, n] - after[:, n] / np.where(D[:, n, n] > 0, D[:, n, n], 1.0)
                change(n, np.where(closed[:, i], np.maximum(push, 0.0), 0.0))
            if np.any(D[:, i, i] > 0):
                N = np.where(np.isinf(limit[:, i]), P[:, n], limit[:, i])
                push = P[:, i] - after[:, i] / D[:, i, i]
                change(i, np.clip(push, -mu[:, i, 0] * N, mu[:, i, 1] * N))
    return P, after
