"""Information about the parameters from a future experiment, and its derivatives."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jfric.fits.data.stacking import Data
from jfric.fits.model import AbstractModel
from jfric.fits.objective import failed
from jfric.numerics.compilation import quick_options

#: Experiments that are simulated together.
MEMBERS = 16


class Slot(NamedTuple):
    """Place of the numbers of one input in the vector of inputs."""

    path: str
    first: int
    #: () for a number, (n,) for a list.
    shape: tuple[int, ...]


class Slots(NamedTuple):
    """Parameters and inputs by path, and columns of the signals that have limits."""

    free: tuple[str, ...]
    inputs: tuple[Slot, ...]
    limited: tuple[int, ...]


class Information(NamedTuple):
    """Information from experiments; NaN where the simulation fails.

    ``matrix`` (..., P, P): ``sum J^T J / sigma^2`` by the parameters. ``lowest`` and ``highest``
    (..., s): extremes of the signals that have limits, at the samples.
    """

    matrix: np.ndarray
    lowest: np.ndarray
    highest: np.ndarray


def information(
    model: AbstractModel,
    data: Data,
    weight: Float[np.ndarray, "m k"],
    slots: Slots,
    parameters: Float[np.ndarray, "B P"],
    inputs: Float[np.ndarray, "B n"],
) -> Information:
    """The information of ``B`` experiments of one plan ``data``, each with its own parameters and
    inputs; ``weight``: one over the noise of each sample, 0 where nothing is measured."""
    count, parts = inputs.shape[0], []
    for first in range(0, count, MEMBERS):
        rows = np.minimum(np.arange(first, first + MEMBERS), count - 1)
        found = _compiled(False)(
            model, data, jnp.asarray(weight), slots, parameters[rows], inputs[rows]
        )
        parts.append([np.asarray(f)[: count - first] for f in found])
    return Information(*(np.concatenate(p) for p in zip(*parts, strict=True)))


def slopes(
    model: AbstractModel,
    data: Data,
    weight: Float[np.ndarray, "m k"],
    slots: Slots,
    parameters: Float[np.ndarray, "B P"],
    inputs: Float[np.ndarray, " n"],
) -> Information:
    """Derivatives (..., n) of the information of one input, for each of the parameters.

    Second derivatives of the trajectory, forward over forward through all events: exact where no
    event comes or goes.
    """
    found = _compiled(True)(model, data, jnp.asarray(weight), slots, parameters, inputs)
    return Information(*(np.asarray(f) for f in found))


def _one(model, data, weight, slots: Slots, x, u) -> tuple[Array, ...]:
    def predict(x):
        values = {path: x[i] for i, path in enumerate(slots.free)}
        for slot in slots.inputs:
            size = int(np.prod(slot.shape))
            values[slot.path] = u[slot.first : slot.first + size].reshape(slot.shape)
        found = model.simulate_outputs(values, data)
        return found.y, (found.y, found.status)

    J, (y, status) = jax.jacfwd(predict, has_aux=True)(x)
    # Rows behind the last sample are filled up.
    real = jnp.isfinite(data.t)[:, None]
    J = jnp.where(weight[..., None] > 0, J * weight[..., None], 0.0)
    matrix = jnp.einsum("mkp,mkq->pq", J, J)
    limited = y[:, list(slots.limited)]
    lowest = jnp.min(jnp.where(real, limited, jnp.inf), axis=0)
    highest = jnp.max(jnp.where(real, limited, -jnp.inf), axis=0)
    bad = failed(status)
    return tuple(jnp.where(bad, jnp.nan, x) for x in (matrix, lowest, highest))


def _many(model, data, weight, slots, x, u):
    return jax.vmap(functools.partial(_one, model, data, weight, slots))(x, u)


def _many_slopes(model, data, weight, slots, x, u):
    def along(u):
        return jax.vmap(lambda own: _one(model, data, weight, slots, own, u))(x)

    return jax.jacfwd(along)(u)


@functools.cache
def _compiled(slope: bool):
    options = quick_options() or None
    function = _many_slopes if slope else _many
    return eqx.filter_jit(function, compiler_options=options)  # pyright: ignore


def decomposed(
    matrix: Float[np.ndarray, "P P"], unit: Float[np.ndarray, " P"]
) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues and vectors of the information in the ``unit`` of each parameter; empty where it
    is not finite."""
    scaled = matrix * np.outer(unit, unit)
    if not np.all(np.isfinite(scaled)):
        return np.zeros(0), np.zeros((0, 0))
    values, vectors = np.linalg.eigh(scaled)
    return values, vectors


def standard_deviations(
    matrix: Float[np.ndarray, "... P P"], unit: Float[np.ndarray, " P"]
) -> Float[np.ndarray, "... P"]:
    """Least standard deviations of unbiased estimates (Cramer and Rao), infinite where the
    information does not determine a parameter; ``unit``: sizes of the parameters."""
    found = np.full(matrix.shape[:-1], np.nan)
    for place in np.ndindex(matrix.shape[:-2]):
        values, vectors = decomposed(matrix[place], unit)
        if not values.size:
            continue
        known = values > 1e-13 * max(values[-1], 1e-300)
        variance = np.einsum("pi,i->p", vectors[:, known] ** 2, 1.0 / values[known])
        lost = np.any(np.abs(vectors[:, ~known]) > 1e-3, axis=1)
        found[place] = unit * np.sqrt(np.where(lost, np.inf, variance))
    return found


def merit(
    matrix: Float[np.ndarray, "P P"],
    slope: Float[np.ndarray, "P P n"] | None,
    unit: Float[np.ndarray, " P"],
    chosen: Sequence[int],
    criterion: str,
) -> tuple[float, np.ndarray | None]:
    """Certainty of the ``chosen`` parameters, as a logarithm of information, and its slope.

    With ``C`` the block of the chosen ones of the covariance, by their ``unit``:
    ``-log det C / p`` (D) or ``-log(trace C / p)`` (A). Minus infinity where ``C`` is not finite.
    """
    none, scale = None if slope is None else np.zeros(slope.shape[-1]), np.outer(unit, unit)
    values, vectors = decomposed(matrix, unit)
    if not values.size or not values[0] > 1e-14 * max(values[-1], 1e-300):
        return -np.inf, none
    full = (vectors / values) @ vectors.T
    own = np.asarray(chosen)
    C, p = full[np.ix_(own, own)], len(own)
    value = -np.linalg.slogdet(C)[1] / p if criterion == "D" else -np.log(np.trace(C) / p)
    if slope is None:
        return float(value), None
    change = -np.einsum("ap,pqn,qb->abn", full[own], slope * scale[..., None], full[:, own])
    if criterion == "D":
        return float(value), -np.einsum("ab,ban->n", np.linalg.inv(C), change) / p
    return float(value), -np.einsum("aan->n", change) / np.trace(C)
