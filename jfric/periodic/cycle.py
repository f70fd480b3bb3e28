"""Integrals over the pieces of a whole cycle: Fourier coefficients, and work."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np

from jfric.errors import ProblemError
from jfric.results.abstract_observables import Observable, OfIntegral
from jfric.system.problem import Problem


@dataclass(frozen=True)
class Harmonics(Observable):
    """Real and imaginary parts (2, count + 1) of the Fourier coefficients of ``function`` over the
    whole run, which is one period."""

    function: Callable
    count: int
    name: str = "harmonics"
    unit: str = ""

    def start(self, problem, mechanics, dtype):
        return jnp.zeros((2, self.count + 1), dtype)

    def update(self, carry, piece):
        orders = jnp.arange(self.count + 1, dtype=carry.dtype)
        time = piece.problem.time
        rate = 2.0 * np.pi / (time.end - time.start)

        def integrand(point):
            angle = orders * rate * (point.t - time.start)
            value = self.function(point)
            return value * jnp.concatenate([jnp.cos(angle), -jnp.sin(angle)])

        return carry + piece.integrals(integrand).reshape(2, -1)

    def finish(self, carry, q, v, duration):
        weight = jnp.asarray([1.0] + [2.0] * self.count, carry.dtype)
        return carry * weight[None, :] / duration


@dataclass(frozen=True)
class Work(OfIntegral):
    """Work [J] of all loads and belts."""

    name: str = "work"
    unit: str = "J"

    def quantity(self, x):
        mechanics = x.mechanics
        power = jnp.sum(x.lambda_t * mechanics.belt_velocities(x.t))
        pushes = zip(mechanics.load_directions, mechanics.load_functions, strict=True)
        return power + sum(jnp.sum(direction * x.v) * load(x.t) for direction, load in pushes)


def work_of_loads(problem: Problem) -> Work:
    """Observable of the energy lost in a cycle: the work of loads and belts; raises
    :class:`ProblemError` where a support moves."""
    for name in problem.bases:
        raise ProblemError(
            f"base.{name}: the work of a support that moves is not known; observe 'dissipated'"
        )
    return Work()
