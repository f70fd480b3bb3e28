"""Distance of bristle models from the set-valued law in their limit, as a function of stiffness."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np

from jfric.errors import ProblemError
from jfric.numerics.printing import Shown, printable
from jfric.results.status import Status
from jfric.solvers.bias_of_smoothing import POINTS, exact_motion
from jfric.solvers.event_driven.solver import EventDriven
from jfric.solvers.simulation import simulate
from jfric.system.bristle import LuGre
from jfric.system.description import element_label
from jfric.system.elements import Damper
from jfric.system.friction import Friction
from jfric.system.laws import Stribeck
from jfric.system.problem import Problem

if TYPE_CHECKING:
    from jfric.solvers.base import AbstractSolver

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
    values = [float(x) for x in sigma0]
    if not values or not all(0.0 < x < np.inf for x in values):
        raise ProblemError(
            f"sigma0: found {values}, at least one is needed and all positive and finite"
        )
    problem = problem.resolved()
    found = problem.section("lugre")
    if not found:
        raise ProblemError(
            "lugre: missing; the distance is that of LuGre elements from their limit"
        )
    chosen = solver if solver is not None else EventDriven(rtol=1e-10, max_steps=MAX_STEPS)
    ts, exact = exact_motion(set_valued(problem), chosen, points)
    runs = [simulate(stiffened(problem, x), chosen, ts=ts) for x in values]
    q = np.asarray(exact.q)
    peak = np.maximum(np.abs(q).max(axis=0), np.finfo(q.dtype).tiny)
    distance = np.stack([np.abs(np.asarray(run.q) - q).max(axis=0) for run in runs])
    return BristleBias(
        sigma0=np.asarray(values),
        distance=distance,
        relative=distance / peak,
        steps=np.array([int(run.steps) for run in runs]),
        status=np.array([int(run.status) for run in runs]),
        exact_steps=int(exact.steps),
        axes=exact.axes,
    )


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
            group = elements.setdefault(section, {})
            group[_free_name(own, group)] = part
    return _with_elements(problem, elements)


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
    return _with_elements(problem, dict(problem.elements) | {"lugre": lugre})


def _free_name(name: str, taken: dict[str, Any]) -> str:
    while name in taken:
        name += "_"
    return name


def _with_elements(problem: Problem, elements: dict[str, dict[str, Any]]) -> Problem:
    return Problem(
        problem.dofs,
        elements,
        initial=problem.initial,
        time=problem.time,
        parameters=problem.parameters,
        matrices=problem.matrices,
        follows=problem.follows,
    )
