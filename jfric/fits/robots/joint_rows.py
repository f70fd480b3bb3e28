"""Rows of the regression of a robot: torques of its joints, and what they are linear in.

With filtered positions, velocities and accelerations the measured torque ``tau`` of every joint at
every sample is::

    tau  =  Y(q, v, a) pi + r(q, v, a) + friction + constant

``Y pi``: of the inertial numbers ``pi`` of the links
(:mod:`jfric.fits.robots.joint_rows`); ``r``: of everything else in the problem. Torques and
columns pass the same low-pass filter.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jfric.errors import ProblemError
from jfric.fits.data.experiment import Experiment
from jfric.fits.data.stacking import run_lengths
from jfric.fits.force_balance import (
    SPOILT,
    at_even_steps,
    complete_positions,
    quiet_cutoff,
    resolutions,
    smooth,
    unbalanced,
)
from jfric.system.body import Link, moving
from jfric.system.problem import Problem

#: Samples per period of the cut-off frequency at which columns are computed, and that are kept.
COMPUTED, KEPT = 16.0, 2.5
#: Longest step of a record, in periods of the cut-off frequency.
GAP = 0.125
#: Rows in sequence that may repeat all positions: readings that came too late.
STALE = 3


class Filter(NamedTuple):
    """Low pass of columns (s, ...) at the ``rate`` [Hz], of which the ``rows`` are kept."""

    rate: float
    cutoff: float
    rows: np.ndarray

    def __call__(self, columns: np.ndarray) -> np.ndarray:
        return smooth(columns, self.rate, self.cutoff)[self.rows]


class Rows(NamedTuple):
    """Rows of one record at even steps.

    ``t`` (m,) [s]: times of the rows; ``tau``, ``rates``, ``rest`` (m, n): torques, their rates,
    and what of them is neither inertia of the links nor friction; ``Y`` (m, n, 10 L); ``path``,
    ``speed`` (s, n): filtered positions and velocities at all samples, from which columns of
    friction follow; ``filtered``: takes such columns to the rows.
    """

    t: np.ndarray
    tau: np.ndarray
    rates: np.ndarray
    rest: np.ndarray
    Y: np.ndarray
    path: np.ndarray
    speed: np.ndarray
    filtered: Filter
    remarks: tuple[str, ...]


def drives(problem: Problem) -> dict[str, str]:
    """Names of the loads whose measured force is the torque of a joint, by degree of freedom."""
    loads = problem.section("load").items()
    found = {x.direction.names[0]: name for name, x in reversed([*loads]) if x.direction.is_single}
    for dof in problem.dofs:
        if dof not in found:
            raise ProblemError(
                f"load: missing for {dof}; the measured torque of each joint is a load on it, such "
                f'as load.{dof} with dof = "{dof}"'
            )
    return {dof: found[dof] for dof in problem.dofs}


def inertial_links(problem: Problem) -> list[str]:
    """Links whose inertia is estimated: those that a joint of their own moves."""
    links = problem.section("link")
    if not links:
        raise ProblemError("link: found none; the friction of joints needs a robot of links")
    wrong = [
        f"link.{k}: found a {x.joint} joint"
        for k, x in links.items()
        if x.joint in ("ball", "free")
    ]
    if wrong:
        raise ProblemError(f"{wrong[0]}, the joints need one coordinate each")
    moved = moving(links)
    return [k for k, x in links.items() if k in moved and x.joint != "fixed" and float(x.m) > 0.0]


def given_numbers(problem: Problem, names: Sequence[str]) -> Float[np.ndarray, "l 10"]:
    """Inertial numbers of the links ``names`` as they are in ``problem``."""
    links: list[Link] = [problem.section("link")[name] for name in names]
    return np.stack([np.asarray(numbers_of(*map(jnp.asarray, (x.m, x.com, x.J)))) for x in links])


def rows_of(problem: Problem, e: Experiment, names: Sequence[str], cutoff: float | None) -> Rows:
    """The rows of one record; ``names``: the links of :func:`inertial_links`."""
    e = _without_stale(problem, e)
    longest = float(np.max(np.diff(e.t)))
    e = at_even_steps(problem.dofs, e, "linear", longest if cutoff is None else GAP / cutoff)
    rate = 1.0 / float(np.mean(np.diff(e.t)))
    measured = complete_positions(problem.dofs, e)
    if cutoff is None:
        quiet = quiet_cutoff(rate, measured, resolutions(problem.dofs, e))
        cutoff = min(quiet, GAP / longest)
    q = smooth(measured, rate, cutoff)
    v = np.gradient(q, 1.0 / rate, axis=0)
    a = np.gradient(v, 1.0 / rate, axis=0)
    torque = np.stack([_torque(e, dof, name) for dof, name in drives(problem).items()], axis=1)
    spoilt, every = round(SPOILT / cutoff * rate), max(1, round(rate / (KEPT * cutoff)))
    kept = np.arange(spoilt, e.t.size - spoilt, every)
    if kept.size < 20:
        raise ProblemError(
            f"t: found {e.t.size} samples, {kept.size} rows of which are left behind a filter with "
            f"a cut-off of {cutoff:g} Hz, at least 20 are needed"
        )
    tau = smooth(torque, rate, cutoff)
    coarse = max(1, int(rate / (COMPUTED * cutoff)))
    Y, rest = _linear(problem, names, e.t[::coarse], *(x[::coarse] for x in (q, v, a)))
    Y, rest = (smooth(x, rate / coarse, cutoff) for x in (Y, rest))
    at = np.clip(np.round(kept / coarse).astype(int), 0, len(Y) - 1)
    # Columns that are computed at few samples are read at those next to the rows.
    kept = np.minimum(at * coarse, e.t.size - 1)
    rates = np.gradient(tau, 1.0 / rate, axis=0)
    own = Filter(rate, cutoff, kept)
    return Rows(e.t[kept], tau[kept], rates[kept], rest[at], Y[at], q, v, own, e.remarks)


def _torque(e: Experiment, dof: str, name: str) -> np.ndarray:
    path = f"load.{name}.F"
    if path not in (e.u or {}):
        raise ProblemError(f"u.{path}: missing, the torque of the joint {dof} must be measured")
    return np.asarray((e.u or {})[path], float)


def _without_stale(problem: Problem, e: Experiment) -> Experiment:
    """The record without rows that repeat the positions of all joints among rows that move."""
    q = complete_positions(problem.dofs, e)
    same = np.append(False, np.all(q[1:] == q[:-1], axis=1))
    stale = same & (run_lengths(same.astype(float), 1.0) <= STALE)
    if not stale.any():
        return e
    keep = ~stale
    said = f"{stale.sum():,} rows repeat the positions of the row before, they were left out"
    u = {k: np.asarray(x)[keep] for k, x in (e.u or {}).items()}
    y = {k: np.asarray(e.y[k])[keep] for k in problem.dofs}
    resolution = {k: x for k, x in (e.resolution or {}).items() if k in y}
    return Experiment(e.t[keep], u, y, meta=e.meta, resolution=resolution).with_remarks(said)


def _linear(problem: Problem, names: Sequence[str], t, q, v, a):
    """Columns ``Y`` (s, n, 10 L) of the inertial numbers, and what is left of the force without
    them (s, n)."""
    start = jnp.asarray(given_numbers(problem, names))

    def force(numbers, t, q, v, a):
        changed = problem
        for name, x in zip(names, numbers, strict=True):
            m, com, J = body_of(x)

            def place(p, name=name):
                link = p.elements["link"][name]
                return link.m, link.com, link.J

            changed = eqx.tree_at(place, changed, (m, tuple(com), tuple(J)))
        return unbalanced(changed, t, q, v, a, {})

    @jax.jit
    def both(t, q, v, a):
        derivative = jax.vmap(jax.jacfwd(force), (None, 0, 0, 0, 0))(start, t, q, v, a)
        left = jax.vmap(force, (None, 0, 0, 0, 0))(start, t, q, v, a)
        return derivative, left

    Y, left = both(*map(jnp.asarray, (t, q, v, a)))
    rest = left - jnp.einsum("snlk,lk->sn", Y, start)
    return np.asarray(Y).reshape(*left.shape, -1), np.asarray(rest)


#: Least part of the largest eigenvalue of a pseudo-inertia: bodies of thin rods have zeros.
LEAST = 1e-9
#: Places of the ten free numbers of a lower triangle, and of its diagonal.
TRIANGLE, DIAGONAL = np.tril_indices(4), np.arange(4)


def numbers_of(m, com, J) -> Float[Array, " 10"]:
    """The numbers ``pi`` (10,) of a body: mass, its first moments, ``Ixx, Iyy, Izz, Ixy, Ixz, Iyz``
    about the origin of the link's frame."""
    x, y, z = com
    added = jnp.stack([y * y + z * z, x * x + z * z, x * x + y * y, -x * y, -x * z, -y * z])
    return jnp.concatenate([jnp.stack([m, m * x, m * y, m * z]), jnp.stack([*J]) + m * added])


def body_of(numbers):
    """Mass, centre of mass and inertia about it, of the numbers ``pi`` (10,)."""
    m, com = numbers[0], numbers[1:4] / numbers[0]
    about = numbers_of(m, com, jnp.zeros(6))[4:]
    return m, com, numbers[4:] - about


def with_numbers(link: Link, numbers: np.ndarray) -> Link:
    """A copy of ``link`` with the inertia ``numbers`` (10,)."""
    m, com, J = (np.asarray(x) for x in body_of(jnp.asarray(numbers)))
    return dataclasses.replace(link, m=float(m), com=tuple(com.tolist()), J=tuple(J.tolist()))


def pseudo_inertia(numbers: np.ndarray) -> Float[np.ndarray, "4 4"]:
    """The pseudo-inertia of the numbers ``pi`` (10,)."""
    xx, yy, zz, xy, xz, yz = numbers[4:]
    inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    found = np.empty((4, 4))
    found[:3, :3] = 0.5 * np.trace(inertia) * np.eye(3) - inertia
    found[:3, 3] = found[3, :3] = numbers[1:4]
    found[3, 3] = numbers[0]
    return found


def root_of(numbers: np.ndarray) -> Float[np.ndarray, "4 4"]:
    """The lower triangle ``L`` with ``L L^T`` the pseudo-inertia, of the nearest body that
    exists."""
    values, vectors = np.linalg.eigh(pseudo_inertia(numbers))
    values = np.maximum(values, LEAST * values[-1])
    return np.linalg.cholesky((vectors * values) @ vectors.T)


def existing(root: Float[Array, "4 4"], change: Float[Array, " 10"]) -> Float[Array, " 10"]:
    """The numbers ``pi`` (10,) of the body whose pseudo-inertia has the root ``root T``.

    ``T``: lower triangle with the entries ``change``, on its diagonal their exponentials; so
    ``change = 0`` is the body of ``root``, and every change is a body that exists.
    """
    T = jnp.zeros((4, 4)).at[TRIANGLE].set(change)
    T = T.at[DIAGONAL, DIAGONAL].set(jnp.exp(jnp.diag(T)))
    L = jnp.asarray(root) @ T
    P = L @ L.T
    inertia = jnp.trace(P[:3, :3]) * jnp.eye(3) - P[:3, :3]
    products = jnp.stack([inertia[0, 1], inertia[0, 2], inertia[1, 2]])
    return jnp.concatenate([P[3:, 3], P[:3, 3], jnp.diag(inertia), products])
