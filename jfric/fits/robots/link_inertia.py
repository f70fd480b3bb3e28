"""Inertia of a link as ten numbers in which forces are linear, and those of them that exist.

With the mass ``m``, the centre of mass ``c`` and the inertia ``J`` about it, forces are linear in::

    pi = (m, m c, J + m (|c|^2 E - c c^T))

A body with these numbers exists where its pseudo-inertia, the second moments of its mass, is
positive definite::

    P = [[S, m c], [m c^T, m]],    S = tr(I)/2 E - I,    I = J + m (|c|^2 E - c c^T)

Source: P. M. Wensing, S. Kim, J.-J. E. Slotine, "Linear matrix inequalities for physically
consistent inertial parameter identification", IEEE Robotics and Automation Letters 3 (2018);
C. Rucker, P. M. Wensing, "Smooth parameterization of rigid-body inertia", same journal 7 (2022).
"""

from __future__ import annotations

import dataclasses

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jfric.system.link import Link

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
