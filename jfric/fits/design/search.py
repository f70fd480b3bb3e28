"""The best input of an experiment: a sample of all inputs, then sequential quadratic programming
from the best, by the information about the parameters that each would give.

Standard deviations that an input is expected to give are averages over where the estimates may
fall.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jfric.fits.objective import failed
from jfric.fits.task import Task
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


@functools.cache
def _compiled(slope: bool):
    def many(model, data, weight, slots, x, u):
        one = functools.partial(_one, model, data, weight, slots)
        if slope:
            return jax.jacfwd(jax.vmap(one, (0, None)), argnums=1)(x, u)
        return jax.vmap(one)(x, u)

    return eqx.filter_jit(many, compiler_options=quick_options() or None)  # pyright: ignore


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


#: Number of inputs from which a climb starts, and of steps of each climb.
CLIMBS, STEPS = 3, 40
#: Excess over a limit, in parts of its range, that still counts as keeping it.
SLACK = 1e-6


@dataclass
class Search:
    """Merit of inputs as parts (n,) of their ranges, and the best so far that keeps all limits."""

    task: Task
    slots: Slots
    low: np.ndarray
    high: np.ndarray
    #: (T, P) Parameters for which the input has to be good (the least merit counts), and their
    #: sizes.
    parameters: np.ndarray
    unit: np.ndarray
    prior: np.ndarray
    chosen: list[int]
    criterion: str
    #: (s, 2) Lower and upper limits of signals.
    limits: np.ndarray
    best: np.ndarray | None = None
    value: float = -np.inf
    evaluations: int = 0
    _last: dict[bytes, tuple] = field(default_factory=dict)

    def _computed(self, slope: bool, parameters: np.ndarray, inputs: np.ndarray) -> Information:
        """Information for all ``parameters`` (B, P) by ``inputs`` (B, n) of their own; or its
        derivatives (..., n) by one input (n,): second derivatives of the trajectory, forward over
        forward through all events, exact where no event comes or goes."""
        objective = self.task.objective
        data = jax.tree.map(lambda a: a[0], objective.data)
        weight = jnp.asarray(objective.weight[0])
        found = _compiled(slope)(objective.model, data, weight, self.slots, parameters, inputs)
        return Information(*map(np.asarray, found))

    def inputs(self, part: np.ndarray) -> np.ndarray:
        """Inputs from parts of their ranges."""
        return self.low + (self.high - self.low) * part

    def matrices(self, inputs: np.ndarray):
        """Information (B, T, P, P), priors included, and distance (B, T, 2 s) from the limits."""
        count, members = inputs.shape[0], self.parameters.shape[0]
        every, own = np.tile(self.parameters, (count, 1)), np.repeat(inputs, members, axis=0)
        size = count * members
        parts = []
        for first in range(0, size, MEMBERS):
            rows = np.minimum(np.arange(first, first + MEMBERS), size - 1)
            parts.append([x[: size - first] for x in self._computed(False, every[rows], own[rows])])
        found = Information(*map(np.concatenate, zip(*parts, strict=True)))
        self.evaluations += size
        matrix = found.matrix + np.diag(self.prior)
        low, high = self.limits.T
        room = np.concatenate([found.lowest - low, high - found.highest], axis=-1)
        room = room / np.tile(high - low, 2)
        return matrix.reshape(count, members, *matrix.shape[1:]), room.reshape(count, members, -1)

    def merits(self, matrix: np.ndarray) -> np.ndarray:
        """Merits (B, T) of the information ``matrix`` (B, T, P, P)."""
        return np.array([[self._merit(m)[0] for m in row] for row in matrix])

    def _merit(self, matrix, slope=None):
        return merit(matrix, slope, self.unit, self.chosen, self.criterion)

    def screen(self, parts: np.ndarray) -> np.ndarray:
        """The inputs ``parts`` (B, n), best first; those without any information are left out."""
        matrix, room = self.matrices(self.inputs(parts))
        value = self.merits(matrix).min(axis=1)
        short = np.maximum(-room.min(axis=(1, 2), initial=np.inf), 0.0)
        for i in range(parts.shape[0]):
            self._keep(parts[i], value[i], short[i])
        # An input that misses a limit may still be near a good one that keeps it.
        rank = np.where(np.isfinite(value), value - 10.0 * short, -np.inf)
        order = np.argsort(-rank, kind="stable")
        return parts[order[np.isfinite(rank[order])]]

    def _keep(self, part, value, short) -> None:
        if short <= SLACK and value > self.value:
            self.best, self.value = np.array(part), float(value)

    def climb(self, part: np.ndarray) -> None:
        """Maximise the least merit of all parameters from ``part`` (n,).

        The problem is written as ``max s`` with ``merit_i >= s`` and room to all limits, which is
        smooth where the least merit is not.
        """
        from scipy.optimize import minimize  # slow to import

        n = part.size
        value = self._with_slopes(part)[0]
        if not np.all(np.isfinite(value)):
            return
        bounds = [(0.0, 1.0)] * n + [(None, None)]
        constraints = {
            "type": "ineq",
            "fun": lambda z: self._left(z)[0],
            "jac": lambda z: self._left(z)[1],
        }
        minimize(
            lambda z: -z[n],
            np.append(part, value.min()),
            jac=lambda z: np.append(np.zeros(n), -1.0),
            method="SLSQP",
            bounds=bounds,
            constraints=constraints,
            options={"maxiter": STEPS, "ftol": 1e-6},
        )

    def _left(self, z) -> tuple[np.ndarray, np.ndarray]:
        """Excess of the merits over the last number of ``z``, distances from the limits, and the
        slopes of both."""
        value, slope, room, edge = self._with_slopes(z[:-1])
        by_last = np.r_[-np.ones(len(value)), np.zeros(len(room))]
        rows = np.column_stack([np.concatenate([slope, edge]), by_last])
        return np.r_[value - z[-1], room], rows

    def _with_slopes(self, part):
        """Merits (T,), distances (T 2 s,) from the limits and the slopes of both by the parts;
        merits far below all others where there are none, so that a search turns back."""
        part = np.clip(np.asarray(part, float), 0.0, 1.0)
        key = part.tobytes()
        if key in self._last:
            return self._last[key]
        span = self.high - self.low
        inputs = self.inputs(part)
        matrix, room = (a[0] for a in self.matrices(inputs[None]))
        change = self._computed(True, self.parameters, inputs)
        found = [self._merit(m, s * span) for m, s in zip(matrix, change.matrix, strict=True)]
        value = np.array([f[0] for f in found])
        slope = np.stack([f[1] for f in found if f[1] is not None])
        size = np.tile(self.limits[:, 1] - self.limits[:, 0], 2)[:, None]
        edge = np.concatenate([change.lowest, -change.highest], axis=-2) * span / size
        self._keep(part, value.min(), max(-room.min(initial=np.inf), 0.0))
        value, slope = np.nan_to_num(value, neginf=-1e3), np.nan_to_num(slope)
        room, edge = np.nan_to_num(room, nan=-1.0), np.nan_to_num(edge)
        self._last = {key: (value, slope, room.reshape(-1), edge.reshape(-1, part.size))}
        return self._last[key]


#: Change of the predicted standard deviations among the estimates above which a remark follows.
NONLINEAR = 0.2
#: A step in parts of a standard deviation, and the change over that step that only a jump causes.
TINY, JUMP = 1e-3, 0.05


def expected(
    search: Search, inputs: Float[np.ndarray, " n"], matrix: Float[np.ndarray, "P P"]
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Standard deviations (P,) by the experiment ``inputs``, and remarks on them.

    ``C(p)`` is the bound of Cramer and Rao for the parameters ``p``; the estimates are taken as
    normal around the given ones with ``C = L L^T``. The result is the root of the mean of the
    diagonal of ``C`` over ``p +- sqrt(P) L_i``, exact where ``C`` is of second order in ``p`` (the
    cubature rule of I. Arasaratnam, S. Haykin, IEEE Trans. Automatic Control 54, 2009, section IV).
    If ``C`` jumps at the given values, both sides count. ``matrix``: the information at the given
    values, which gives the standard deviations if there are none around them.
    """
    layout = search.task.objective.layout
    here = standard_deviations(matrix, search.unit)
    if not np.all(np.isfinite(here)):
        return here, ()
    values, vectors = decomposed(matrix, search.unit)
    root = search.unit[:, None] * vectors / np.sqrt(values)  # columns
    far, tiny = np.sqrt(root.shape[0]) * root, TINY * np.diag(here)
    lower, upper = layout.bounds
    around = np.concatenate([layout.init + s * step.T for step in (far, tiny) for s in (1.0, -1.0)])
    own, search.parameters = search.parameters, np.clip(around, lower, upper)
    found, _ = search.matrices(inputs[None])
    search.parameters = own
    other, near = np.split(standard_deviations(found[0], search.unit), 2)
    remarks = []
    up, down = np.split(near, 2)
    jump = np.nan_to_num(np.maximum(up, down) / np.minimum(up, down) - 1.0, nan=np.inf)
    if np.max(jump) > JUMP:
        name = layout.names[int(np.argmax(np.max(jump, axis=0)))]
        more = f"{100 * np.max(jump):.0f} % larger" if np.isfinite(jump).all() else "lost"
        remarks.append(
            f"an event comes or goes at the given values: on one side the standard deviation of "
            f"{name} is {more}"
        )
    # A standard deviation that is no finite number there counts as an infinite change.
    change = np.nan_to_num(np.abs(other / here - 1.0), nan=np.inf, posinf=np.inf)
    worst = float(np.max(change))
    if worst > NONLINEAR:
        name = layout.names[int(np.argmax(np.max(change, axis=0)))]
        by = "is lost" if np.isinf(worst) else f"changes by {100 * worst:.0f} %"
        remarks.append(
            f"among the estimates the predicted standard deviation of {name} {by}: the prediction "
            "is rough; take worst_of > 1"
        )
    known = np.all(np.isfinite(other))
    return np.sqrt(np.mean(other**2, axis=0)) if known else here, tuple(remarks)
