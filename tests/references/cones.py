"""Several contacts with friction in a plane, by a fixed point over convex problems, in NumPy.

With the velocities ``u = w + D P`` of contacts (normal, two tangents) and ``s = mu |u_T|``,
Coulomb's law is the condition of a minimum of ``P D P/2 + (w + s n) P`` over the cones
``|P_T| <= mu P_N`` for the ``s`` that it leaves. Each minimum by accelerated projected gradients
with restarts. Independent of jfric.

Source: V. Acary, F. Cadoux, C. Lemarechal, J. Malick, A formulation of the linear discrete Coulomb
friction problem via convex optimization, ZAMM 91 (2011).
"""

import numpy as np


def solve(D, w, mu, rounds=200, tolerance=1e-12):
    """Impulses (k, 3) for ``D`` (3k, 3k), ``w`` (k, 3) and ``mu`` (k,), or None if not found."""
    P = np.zeros_like(w)
    for _ in range(rounds):
        u = w + (D @ P.ravel()).reshape(w.shape)
        shifted = w.copy()
        shifted[:, 0] += mu * np.linalg.norm(u[:, 1:], axis=1)
        new = _minimum(D, shifted, mu, P)
        change, P = np.abs(new - P).max(), new
        if change < tolerance * (1.0 + np.abs(P).max()):
            return P
    return None


def _minimum(D, w, mu, P):
    step = 1.0 / np.linalg.eigvalsh(D)[-1]
    ahead, weight = P.copy(), 1.0
    for _ in range(20000):
        slope = w + (D @ ahead.ravel()).reshape(w.shape)
        new = onto_cones(ahead - step * slope, mu)
        if np.sum(slope * (new - P)) > 0:
            weight = 1.0
        following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * weight**2))
        ahead = new + (weight - 1.0) / following * (new - P)
        done, P, weight = np.abs(new - P).max() < 1e-15 * (1.0 + np.abs(new).max()), new, following
        if done:
            break
    return P


def onto_cones(P, mu):
    """The nearest points of the cones ``|P_T| <= mu P_N``."""
    normal, length = P[:, 0], np.linalg.norm(P[:, 1:], axis=1)
    along = np.maximum((normal + mu * length) / (1.0 + mu**2), 0.0)
    outside = length > mu * normal
    safe = np.where(length > 0, length, 1.0)
    edge = np.column_stack([along, P[:, 1:] * (mu * along / safe)[:, None]])
    return np.where(outside[:, None], edge, P)


def violation(D, w, mu, P):
    """How far ``P`` is from the law: impulses outside their cones, velocities ``u + mu |u_T| n``
    outside the dual ones, and the work of both."""
    u = w + (D @ P.ravel()).reshape(w.shape)
    u = u + np.column_stack([mu * np.linalg.norm(u[:, 1:], axis=1), 0 * u[:, 1:]])
    outside = np.abs(P - onto_cones(P, mu)).max()
    dual = np.abs(u - onto_cones(u, 1.0 / mu)).max()
    return max(outside, dual, np.abs(np.sum(P * u, axis=1)).max())
