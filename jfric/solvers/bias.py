"""Distance of smoothed laws and of bristles from the exact laws, as a function of the width of
smoothing or of the stiffness."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

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
from jfric.system.bristle import LuGre
from jfric.system.description import element_label
from jfric.system.elements import Damper
from jfric.system.friction import Friction
from jfric.system.laws import Stribeck
from jfric.system.problem import Problem

if TYPE_CHECKING:
    from jfric.results.solution import Solution
    from jfric.solvers.base import AbstractSolver

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
    widths = _positive("widths", widths)
    ts, exact = exact_motion(problem, EventDriven(), points)
    smoothed = solver if solver is not None else Smoothed()
    runs = [
        simulate(
            problem, eqx.tree_at(lambda s: s.width, smoothed, jnp.asarray(w, exact.q.dtype)), ts=ts
        )
        for w in widths
    ]
    return SmoothingBias(
        widths=np.asarray(widths),
        creep=np.stack([_creep(problem, exact, run) for run in runs]),
        contacts=exact.names[: np.asarray(exact.mode).shape[1]],
        **_compared(exact, runs),
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


def _positive(name: str, given: Sequence[float]) -> list[float]:
    values = [float(x) for x in given]
    if not values or not all(0.0 < x < np.inf for x in values):
        raise ProblemError(
            f"{name}: found {values}, at least one is needed and all positive and finite"
        )
    return values


def _compared(exact: Solution, runs: list[Solution]) -> dict[str, Any]:
    """Fields of a bias that follow from the motions alone."""
    q = np.asarray(exact.q)
    peak = np.maximum(np.abs(q).max(axis=0), np.finfo(q.dtype).tiny)
    distance = np.stack([np.abs(np.asarray(run.q) - q).max(axis=0) for run in runs])
    return {
        "distance": distance,
        "relative": distance / peak,
        "steps": np.array([int(run.steps) for run in runs]),
        "status": np.array([int(run.status) for run in runs]),
        "exact_steps": int(exact.steps),
        "axes": exact.axes,
    }


def _creep(problem: Problem, exact: Solution, run: Solution) -> np.ndarray:
    """Path of each contact over the intervals at both ends of which the exact motion sticks."""
    mechanics = assemble(problem)
    ts = np.asarray(exact.ts)
    gamma = np.asarray(jax.vmap(mechanics.sliding_velocities)(ts, run.v))
    sticks = np.asarray(exact.mode) == Mode.STICK
    during = sticks[1:] & sticks[:-1]
    middle = 0.5 * (np.abs(gamma[1:]) + np.abs(gamma[:-1])) * np.diff(ts)[:, None]
    return np.where(during, middle, 0.0).sum(axis=0)


#: Bristles are stiff, so that the integration takes many steps.
MAX_STEPS = 200_000


@printable
@dataclasses.dataclass(frozen=True)
class BristleBias:
    """Motions with bristles compared with that of the set-valued law, one row for each stiffness.

    ``sigma0`` (S,) [N/m or N m/rad]: stiffnesses of the bristles. ``axes``: names of the columns.
    ``distance`` (S, n): largest difference of each degree of freedom [m, rad]; ``relative`` (S, n):
    this difference over the largest value of the set-valued motion. ``steps`` (S,): steps with
    bristles; ``exact_steps``: passes with the set-valued law. ``status`` (S,):
    :class:`jfric.Status`. Example: see :func:`jfric.bristle_bias`.
    """

    sigma0: np.ndarray
    distance: np.ndarray
    relative: np.ndarray
    steps: np.ndarray
    status: np.ndarray
    exact_steps: int
    axes: tuple[str, ...]

    def _shown(self) -> Shown:
        names = [f" {axis}" if len(self.axes) > 1 else "" for axis in self.axes]
        columns = [f">{kind}{name}" for name in names for kind in ("distance", "relative")]
        below = f"set-valued: {self.exact_steps} passes of the event-driven solver"
        rows = [
            (
                f"{stiffness:g}",
                *(f"{x:.3e}" for x in np.stack([self.distance[i], self.relative[i]], 1).ravel()),
                self._order(i),
                str(self.steps[i]),
                Status(int(self.status[i])).message,
            )
            for i, stiffness in enumerate(self.sigma0)
        ]
        columns = [">sigma0", *columns, ">order", ">steps", "status"]
        return Shown("Bias of bristles", tuple(columns), rows, below)

    def _order(self, row: int) -> str:
        """Order of the relative distance in the stiffness, from this row and the row before."""
        last, now = self.relative.max(axis=1)[[row - 1, row]]
        softer, stiffer = self.sigma0[[row - 1, row]]
        if row == 0 or min(last, now) <= 0 or softer == stiffer:
            return ""
        return f"{np.log(last / now) / np.log(stiffer / softer):.2f}"


def bristle_bias(
    problem: Problem,
    sigma0: Sequence[float],
    solver: AbstractSolver | None = None,
    *,
    points: int = POINTS,
) -> BristleBias:
    """Distances of motions with LuGre elements of stiffness ``sigma0`` from the set-valued motion.

    ``problem`` is simulated with each of the stiffnesses, and with the set-valued laws that its
    LuGre elements tend to as the stiffness grows. Such a law is :class:`jfric.Stribeck` with
    ``mu_s N = F_s``, ``mu_d N = F_c`` and the same ``v_s``, in parallel with a damper ``sigma2``.
    ``sigma0`` (S,) [N/m or N m/rad] replaces that of every element. ``sigma1`` grows with the root
    of the stiffness, so that the bristles keep their damping ratio, and ``z0`` falls with it, so
    that the force at the start is the same. ``solver``: for both motions; by default the
    event-driven solver to 1e-10. ``points``: number of evenly spaced times at which the motions
    are compared. Raises :class:`jfric.ProblemError` without LuGre elements, for stiffnesses that
    are not positive, and where the set-valued motion ends early::

        >>> law = jfric.LuGre("u", sigma0=1e3, sigma1=30.0, F_c=1.0, F_s=1.5, v_s=0.1)
        >>> elements = {"mass": jfric.Mass("u", 1.0), "lugre": law}
        >>> block = jfric.Problem(["u"], elements, initial={"u": jfric.InitialState(v=1.0)})
        >>> bias = jfric.bristle_bias(block, [1e3, 1e5], points=51)
        >>> bool(bias.distance[1, 0] < 0.2 * bias.distance[0, 0])
        True

    Source of the law: C. Canudas de Wit, H. Olsson, K. J. Astrom, P. Lischinsky, IEEE Trans.
    Automatic Control 40 (1995).
    """
    values = _positive("sigma0", sigma0)
    problem = problem.resolved()
    found = problem.section("lugre")
    if not found:
        raise ProblemError(
            "lugre: missing; the distance is that of LuGre elements from their limit"
        )
    chosen = solver if solver is not None else EventDriven(rtol=1e-10, max_steps=MAX_STEPS)
    ts, exact = exact_motion(set_valued(problem), chosen, points)
    runs = [simulate(stiffened(problem, x), chosen, ts=ts) for x in values]
    return BristleBias(sigma0=np.asarray(values), **_compared(exact, runs))


def set_valued(problem: Problem) -> Problem:
    """A resolved ``problem`` in which each LuGre element is replaced by its limit for infinitely
    stiff bristles."""
    elements = {k: dict(group) for k, group in problem.elements.items() if k != "lugre"}
    for name, element in problem.section("lugre").items():
        own = element_label("lugre", name).replace(".", "_")
        law = Stribeck(mu_s=element.F_s, mu_d=element.F_c, v_s=element.v_s)
        rigid: dict[str, Any] = {
            "friction": Friction(element.direction, law, N=1.0),
            "damper": Damper(element.direction, element.sigma2),
        }
        for section, part in rigid.items():
            group, free = elements.setdefault(section, {}), own
            while free in group:
                free += "_"
            group[free] = part
    return dataclasses.replace(problem, elements=elements)


def stiffened(problem: Problem, sigma0: float) -> Problem:
    """A resolved ``problem`` with bristles of the stiffness ``sigma0`` and the same ratio of
    damping."""

    def with_stiffness(element: LuGre) -> LuGre:
        ratio = sigma0 / element.sigma0
        return dataclasses.replace(
            element,
            sigma0=jnp.asarray(sigma0, ratio.dtype),
            sigma1=element.sigma1 * jnp.sqrt(ratio),
            z0=element.z0 / ratio,
        )

    lugre = {name: with_stiffness(e) for name, e in problem.section("lugre").items()}
    return dataclasses.replace(problem, elements=dict(problem.elements) | {"lugre": lugre})
