"""The equations of harmonic balance: forces in the time domain, their balance in harmonics.

A motion of the base frequency ``Omega`` with ``H`` harmonics, and likewise the reactions::

    q(t) = Q_0 + sum_k (A_k cos(k Omega t) + B_k sin(k Omega t)),    k = 1 .. H

``y`` holds their coefficients: ``2 H + 1`` for each degree of freedom and each reaction. With the
projection ``P`` on these harmonics, from equidistant samples of a period, the equations are::

    P [M q'' - f(t, q, q') - R_T^T lambda_T - W_N^T lambda_N] = 0
    lambda_T = P clip(lambda_T - r_T gamma_T, -mu(+) N, mu(-) N)
    lambda_N = P max(lambda_N - r_N g_N, 0)

The last two are the laws of contact and friction as projections, at each sample: no friction is
smoothed, and the numbers ``r > 0`` do not change the solution if the harmonics represent its
forces. The friction law relates force and velocity, as everywhere in jfric: it has no memory.

Sources: T. M. Cameron, J. H. Griffin, An alternating frequency/time domain method, J. Appl. Mech.
56 (1989), for forces by samples; S. Nacivet, C. Pierre, F. Thouverez, L. Jezequel, A dynamic
Lagrangian frequency-time method, J. Sound Vib. 265 (2003), for reactions as multipliers that follow
from the balance and are corrected in the time domain; P. Alart, A. Curnier, Comput. Methods Appl.
Mech. Engrg. 92 (1991), for the projections, which take the place of Nacivet's march through the
period.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from jfric.errors import ProblemError
from jfric.periodic.forcing import WHO, frequencies
from jfric.system.assembly import assemble
from jfric.system.features import CONSTANT, require_features
from jfric.system.forces import applied_force
from jfric.system.inertia import require_inertia
from jfric.system.mechanics import Mechanics
from jfric.system.naming import set_parameters
from jfric.system.problem import Problem

#: Least unit of forces on a degree of freedom, as a part of the largest force anywhere.
IDLE = 1e-6


class Setting(NamedTuple):
    """Settings that determine the structure of the equations.

    ``path``: path of the parameter that varies, or None; ``harmonics``, ``samples``: their numbers;
    ``carrier``: which frequency of the functions of time gives the base frequency, and the number
    by which that frequency is divided.
    """

    path: str | None
    harmonics: int
    samples: int
    carrier: tuple[int, float]


class Basis(NamedTuple):
    """Matrices between coefficients and samples of a period.

    ``values``, ``slopes``, ``curvatures`` (m, 2 H + 1): of the functions 1, cos(k tau), sin(k tau)
    and their derivatives by ``tau``; ``project`` (2 H + 1, m): coefficients from samples;
    ``between``: from means over the intervals behind the samples.
    """

    phases: np.ndarray
    values: np.ndarray
    slopes: np.ndarray
    curvatures: np.ndarray
    project: np.ndarray
    between: np.ndarray


def make_basis(harmonics: int, samples: int) -> Basis:
    """The matrices for equidistant ``samples`` of a period."""
    phases = 2.0 * np.pi * np.arange(samples) / samples
    k = np.arange(1, harmonics + 1)
    cosine, sine = np.cos(np.outer(phases, k)), np.sin(np.outer(phases, k))
    one, zero = np.ones((samples, 1)), np.zeros((samples, 1))
    values = np.hstack([one, cosine, sine])
    slopes = np.hstack([zero, -k * sine, k * cosine])
    curvatures = np.hstack([zero, -(k**2) * cosine, -(k**2) * sine])
    weights = np.r_[1.0, np.full(2 * harmonics, 2.0)] / samples
    middle = phases + np.pi / samples
    halfway = np.hstack([one, np.cos(np.outer(middle, k)), np.sin(np.outer(middle, k))])
    # The mean of a straight line over an interval is that of its ends. For a wave it is smaller
    # than the value in the middle, by this factor.
    weights_between = weights / np.cos(np.pi * np.r_[0.0, k, k] / samples)
    return Basis(
        phases,
        values,
        slopes,
        curvatures,
        weights[:, None] * values.T,
        weights_between[:, None] * halfway.T,
    )


class Motion(NamedTuple):
    """A motion at the samples of a period, and its balance of forces there."""

    t: Float[Array, " m"]
    q: Float[Array, "m n"]
    v: Float[Array, "m n"]
    #: Unbalanced forces (m, n), and the sum of the magnitudes of their terms.
    defect: Float[Array, "m n"]
    size: Float[Array, "m n"]
    #: Reactions (m, nt + nu) of the harmonics, and by the laws.
    reactions: Float[Array, "m c"]
    lawful: Float[Array, "m c"]
    #: Largest magnitude of each reaction that the laws allow.
    bound: Float[Array, "m c"]
    #: Contacts (m, nt) whose friction force is below its limit, unilateral contacts (m, nu) that
    #: are open, and whether all given normal forces push.
    sticks: Bool[Array, "m nt"]
    opens: Bool[Array, "m nu"]
    pushes: Bool[Array, ""]
    omega: Float[Array, ""]


def width(mechanics: Mechanics) -> int:
    """Number of unknown functions of time: positions and reactions."""
    return mechanics.n + mechanics.n_contacts + mechanics.n_unilateral


def at_parameter(problem: Problem, setting: Setting, value) -> Mechanics:
    """The assembled system with the varied parameter at ``value``."""
    if setting.path is not None:
        problem = set_parameters(problem, {setting.path: value})
    return assemble(problem)


def motion(mechanics: Mechanics, setting: Setting, y: Float[Array, " u"], steep=1.0) -> Motion:
    """Motion and forces at the samples, from ``y``; ``steep``: part of the usual ``r_T``."""
    basis = make_basis(setting.harmonics, setting.samples)
    dtype = mechanics.K.dtype
    index, divisor = setting.carrier
    omega = jnp.asarray(frequencies(mechanics)[index] / divisor, dtype)
    values, slopes, curvatures = (
        jnp.asarray(x, dtype) for x in (basis.values, basis.slopes, basis.curvatures)
    )
    n, nt = mechanics.n, mechanics.n_contacts
    coefficients = y.reshape(2 * setting.harmonics + 1, width(mechanics))
    Q = coefficients[:, :n]
    t = jnp.asarray(basis.phases, dtype) / omega
    q, v, a = values @ Q, omega * (slopes @ Q), omega**2 * (curvatures @ Q)
    reactions = values @ coefficients[:, n:]
    friction, normal = reactions[:, :nt], reactions[:, nt:]
    force = jax.vmap(lambda t, q, v: applied_force(mechanics, t, q, v))(t, q, v)
    held = friction @ mechanics.R_T + normal @ mechanics.W_N
    size = jnp.abs(a) @ jnp.abs(mechanics.M.T) + jnp.abs(q) @ jnp.abs(mechanics.K.T)
    size = size + jnp.abs(v) @ jnp.abs(mechanics.C.T) + jnp.abs(force) + jnp.abs(held)
    size = size + jnp.abs(mechanics.f0)[None, :]
    given, pushes = _given(mechanics, t)
    gaps = jax.vmap(mechanics.gaps)(t, q)
    ratio_T, ratio_N = _ratios(mechanics, omega, setting.harmonics)
    pressed = jnp.maximum(normal - ratio_N * gaps, 0.0)
    carried = jnp.concatenate([given, pressed], axis=1)
    gamma = jax.vmap(mechanics.sliding_velocities)(t, v)
    upper, lower = _limits(mechanics, gamma, carried)
    trial = friction - steep * ratio_T * gamma
    lawful = mean_between(trial, -_middle(upper), _middle(lower))
    return Motion(
        t,
        q,
        v,
        a @ mechanics.M.T - force - held,
        size,
        reactions,
        jnp.concatenate([lawful, mean_between(normal - ratio_N * gaps, 0.0, jnp.inf)], axis=1),
        jnp.concatenate([jnp.maximum(upper, lower), pressed], axis=1),
        (trial > -upper) & (trial < lower),
        normal - ratio_N * gaps < 0.0,
        pushes,
        omega,
    )


def _middle(x: Float[Array, "m c"]) -> Float[Array, "m c"]:
    """Values half way to the next sample; the first sample follows the last."""
    return 0.5 * (x + jnp.roll(x, -1, axis=0))


def mean_between(trial: Float[Array, "m c"], low, high) -> Float[Array, "m c"]:
    """Means of ``clip(trial, low, high)`` from each sample to the next, ``trial`` being a straight
    line between them.

    A change from one limit to the other within an interval moves its mean, so the equations have
    derivatives however steep the change is.
    """
    following = jnp.roll(trial, -1, axis=0)
    first, last = jnp.minimum(trial, following), jnp.maximum(trial, following)
    rise = last - first
    changes = rise > 0.0
    clipped_first, clipped_last = jnp.clip(first, low, high), jnp.clip(last, low, high)
    below, above = jnp.maximum(low - first, 0.0), jnp.maximum(last - high, 0.0)
    below, above = jnp.minimum(below, rise), jnp.minimum(above, rise)
    inside = (clipped_last - clipped_first) * 0.5 * (clipped_last + clipped_first)
    # An infinite limit is never met.
    floor, ceiling = (jnp.where(jnp.isfinite(x), x, 0.0) for x in (low, high))
    area = below * floor + above * ceiling + inside
    return jnp.where(changes, area / jnp.where(changes, rise, 1.0), clipped_first)


def _given(mechanics: Mechanics, t) -> tuple[Float[Array, "m nf"], Bool[Array, ""]]:
    """Normal forces of the friction elements, and whether none of them pulls."""
    functions = mechanics.normal_forces
    if not functions:
        return jnp.zeros((t.shape[0], 0), t.dtype), jnp.asarray(True)
    ones = jnp.ones_like(t)
    found = jnp.stack([jax.vmap(f)(t) * ones for f in functions], axis=1).astype(t.dtype)
    return jnp.maximum(found, 0.0), jnp.all(found >= 0.0)


def _limits(mechanics: Mechanics, gamma, normal):
    """Limits of friction for positive and negative sliding, each (m, nt), not below zero."""
    if not mechanics.n_contacts:
        return jnp.zeros_like(gamma), jnp.zeros_like(gamma)
    pairs = [
        jax.vmap(law.kinetic)(jnp.abs(g)) for law, g in zip(mechanics.laws, gamma.T, strict=True)
    ]
    ones = jnp.ones_like(gamma[:, 0])
    upper, lower = (jnp.stack([p[i] * ones for p in pairs], axis=1) * normal for i in (0, 1))
    return upper, lower


def _ratios(mechanics: Mechanics, omega, harmonics: int):
    """``r_T`` (1, nt) [N s/m] and ``r_N`` (1, nu) [N/m] of the projections: the resistance of a
    contact's inertia at the base frequency; steeper for friction with more harmonics."""
    inverse = mechanics.M_inverse
    along = jnp.sum((mechanics.W_T @ inverse) * mechanics.R_T, axis=1)
    across = jnp.sum((mechanics.W_N @ inverse) * mechanics.W_N, axis=1)

    def mass(mobility):
        moves = mobility > 0.0
        return jnp.where(moves, 1.0 / jnp.where(moves, mobility, 1.0), 1.0)

    return (harmonics**2 * omega * mass(along))[None, :], (omega**2 * mass(across))[None, :]


def residual(
    problem: Problem, setting: Setting, y: Float[Array, " u"], value, steep=1.0
) -> tuple[Float[Array, " u"], Float[Array, " u"]]:
    """The equations at the coefficients ``y``, and the scale of each equation."""
    mechanics = at_parameter(problem, setting, value)
    found = motion(mechanics, setting, y, steep)
    basis = make_basis(setting.harmonics, setting.samples)
    project = jnp.asarray(basis.project, y.dtype)
    # A reaction and its law are compared after projection: samples hold more harmonics.
    between = jnp.asarray(basis.between, y.dtype)
    laws = project @ found.reactions - between @ found.lawful
    both = jnp.concatenate([project @ found.defect, laws], axis=1)
    return both.reshape(-1), _scales(found, both.shape[0])


def _scales(found: Motion, rows: int):
    forces = jnp.max(found.size, axis=0)
    reactions = jnp.max(jnp.abs(found.reactions) + found.bound, axis=0)
    scale = jnp.concatenate([forces, reactions])
    # A degree of freedom without forces takes its scale from the forces elsewhere.
    tiny = jnp.finfo(found.q.dtype).tiny
    scale = jnp.maximum(scale, jnp.maximum(IDLE * jnp.max(scale), tiny))
    return jax.lax.stop_gradient(jnp.broadcast_to(scale[None, :], (rows, scale.size)).reshape(-1))


def remainder(found: Motion, setting: Setting) -> Float[Array, ""]:
    """Relative part of the forces that the harmonics do not balance, by root mean squares."""
    basis = make_basis(setting.harmonics, setting.samples)
    tiny = jnp.finfo(found.q.dtype).tiny

    def beyond(x):
        kept = jnp.asarray(basis.values, x.dtype) @ (jnp.asarray(basis.project, x.dtype) @ x)
        return jnp.sqrt(jnp.mean((x - kept) ** 2, axis=0))

    def rms(x):
        return jnp.maximum(jnp.sqrt(jnp.mean(x**2, axis=0)), tiny)

    parts = [beyond(found.defect) / rms(found.size)]
    if found.lawful.shape[1]:
        parts.append(beyond(found.lawful) / rms(jnp.abs(found.lawful) + found.bound))
    return jnp.max(jnp.concatenate(parts))


def finite_numbers(what: str, values: Any) -> np.ndarray:
    """A list of values of a parameter; raises :class:`ProblemError` for anything else."""
    found = np.asarray(values, float)
    if found.ndim != 1 or not found.size or not np.all(np.isfinite(found)):
        raise ProblemError(f"{what}: found no list of finite numbers, needs at least one value")
    return found


def require_balance(problem: Problem) -> None:
    """Raise :class:`ProblemError` for problems that harmonic balance cannot represent."""
    require_inertia(problem)
    require_features(problem, WHO, CONSTANT - {"carried", "events", "position"})
    for where, element in problem.labelled("friction", "contact").items():
        law = element.law
        if law is not None and law.drops_at_onset:
            raise ProblemError(
                f"{where}: with {type(law).__name__} friction drops when sliding begins, which "
                f"{WHO} cannot represent: it knows no history; take mu or stribeck without a peak, "
                "or the solver event-driven"
            )
