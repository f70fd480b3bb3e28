"""Distance of smoothed laws from the exact ones, as a function of the smoothing width."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jfric.errors import ProblemError
from jfric.numerics.printing import Shown, printable
from jfric.results.modes import Mode
from jfric.results.status import Status
from jfric.solvers.event_driven.solver import EventDriven
from jfric.solvers.simulation import simulate
from jfric.solvers.smoothed.solver import Smoothed
from jfric.system.assembly import assemble

if TYPE_CHECKING:
    from jfric.results.solution import Solution
    from jfric.solvers.base import AbstractSolver
    from jfric.system.problem import Problem

#: Evenly spaced times at which the motions are compared.
POINTS = 2001


@printable
@dataclasses.dataclass(frozen=True)
class SmoothingBias:
    """Smoothed motions compared with the exact one, one row for each width.

    ``widths`` (W,) [m/s or rad/s]; ``axes``, ``contacts``: names of the columns. ``distance`` (W,
    n): largest difference of each degree of freedom [m, rad]; ``relative`` (W, n): this difference
    over the largest value of the exact motion. ``creep`` (W, nt): path [m, rad] that each contact
    slides while the exact one sticks. ``steps`` (W,): steps of the integrator; ``exact_steps``:
    passes of the exact solver. ``status`` (W,): :class:`jfric.Status`. Example: see
    :func:`jfric.smoothing_bias`.
    """

    widths: np.ndarray
    distance: np.ndarray
    relative: np.ndarray
    creep: np.ndarray
    steps: np.ndarray
    status: np.ndarray
    exact_steps: int
    axes: tuple[str, ...]
    contacts: tuple[str, ...]

    def _shown(self) -> Shown:
        several = len(self.axes) > 1
        distances = [f">distance {axis}" if several else ">distance" for axis in self.axes]
        creeps = [f">creep {name}" for name in self.contacts]
        below = f"exact: {self.exact_steps} passes of the event-driven solver"
        rows = [
            (
                f"{width:g}",
                *(f"{x:.3e}" for x in (*self.distance[i], *self.creep[i])),
                str(self.steps[i]),
                Status(int(self.status[i])).message,
            )
            for i, width in enumerate(self.widths)
        ]
        columns = (">width", *distances, *creeps, ">steps", "status")
        return Shown("Smoothing bias", columns, rows, below)


def smoothing_bias(
    problem: Problem,
    widths: Sequence[float],
    solver: Smoothed | None = None,
    *,
    points: int = POINTS,
) -> SmoothingBias:
    """Simulate ``problem`` with the exact law and with each of the smoothing ``widths``.

    ``widths`` (W,) [m/s or rad/s]. ``solver``: the smoothed solver to judge; its own width is not
    used. ``points``: number of evenly spaced times at which the motions are compared. Raises
    :class:`jfric.ProblemError` for widths that are not positive, and where the exact simulation
    ends early. A narrower width is closer to the exact motion and creeps less::

        >>> bias = jfric.smoothing_bias(problem, [1e-2, 1e-3], points=201)
        >>> bool(bias.distance[1, 0] < 0.2 * bias.distance[0, 0])
        True
        >>> bool(bias.creep[1, 0] < bias.creep[0, 0])
        True
    """
    widths = [float(w) for w in widths]
    if not widths or not all(0.0 < w < np.inf for w in widths):
        raise ProblemError(
            f"widths: found {widths}, at least one is needed and all positive and finite"
        )
    ts, exact = exact_motion(problem, EventDriven(), points)
    smoothed = solver if solver is not None else Smoothed()
    runs = [
        simulate(
            problem, eqx.tree_at(lambda s: s.width, smoothed, jnp.asarray(w, exact.q.dtype)), ts=ts
        )
        for w in widths
    ]
    q = np.asarray(exact.q)
    peak = np.maximum(np.abs(q).max(axis=0), np.finfo(q.dtype).tiny)
    distance = np.stack([np.abs(np.asarray(run.q) - q).max(axis=0) for run in runs])
    return SmoothingBias(
        widths=np.asarray(widths),
        distance=distance,
        relative=distance / peak,
        creep=np.stack([_creep(problem, exact, run) for run in runs]),
        steps=np.array([int(run.steps) for run in runs]),
        status=np.array([int(run.status) for run in runs]),
        exact_steps=int(exact.steps),
        axes=exact.axes,
        contacts=exact.names[: np.asarray(exact.mode).shape[1]],
    )


def exact_motion(
    problem: Problem, solver: AbstractSolver, points: int
) -> tuple[np.ndarray, Solution]:
    """Output times [s] and the motion that others are compared with, at ``points`` evenly spaced
    times. Raises :class:`jfric.ProblemError` where this motion ends early."""
    span = problem.resolved().time
    ts = np.linspace(float(span.start), float(span.end), points)
    exact = simulate(problem, solver, ts=ts)
    if int(exact.status) not in (Status.OK, Status.MAX_EVENTS):
        raise ProblemError(f"the exact motion is not known to the end: {exact.outcome()}")
    return ts, exact


def _creep(problem: Problem, exact: Solution, run: Solution) -> np.ndarray:
    """Path of each contact over the intervals at both ends of which the exact motion sticks."""
    mechanics = assemble(problem)
    ts = np.asarray(exact.ts)
    gamma = np.asarray(jax.vmap(mechanics.sliding_velocities)(ts, run.v))
    sticks = np.asarray(exact.mode) == Mode.STICK
    during = sticks[1:] & sticks[:-1]
    middle = 0.5 * (np.abs(gamma[1:]) + np.abs(gamma[:-1])) * np.diff(ts)[:, None]
    return np.where(during, middle, 0.0).sum(axis=0)
