"""The cost of a fit and its derivatives, for many members at once.

A member is one vector of parameters with its data: a start, a noise draw, a bootstrap sample or a
point of a profile. The simulation with its forward derivatives does not depend on the measured
values, so one compiled program serves all members. Members run in chunks of fixed size, so that
nothing is compiled anew, on as many threads as there are cores.
"""

from __future__ import annotations

import abc
import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jfric.fits.data.stacking import Data
from jfric.fits.free import Layout
from jfric.fits.model import AbstractModel
from jfric.numerics.compilation import Options, brief_options, no_options, quick_options
from jfric.numerics.cores import cores
from jfric.numerics.kept_programs import Kept
from jfric.results.status import Status


class AbstractLoss(abc.ABC):
    """Loss of residuals; ``scale``: the residual, in noise levels, above which it counts less."""

    #: Name in files and commands.
    word: ClassVar[str]
    scale: float

    @staticmethod
    @abc.abstractmethod
    def rho(s: Float[Array, ...]) -> tuple[Float[Array, ...], Float[Array, ...]]:
        """``rho(s)`` and ``rho'(s)`` of squared residuals ``s``."""


@dataclass(frozen=True)
class Squares(AbstractLoss):
    """Sum of squares: outliers count as they are.

    >>> jfric.Squares().rho(4.0)[0]
    4.0
    """

    word = "linear"
    scale: ClassVar[float] = 1.0

    @staticmethod
    def rho(s):
        return s, jnp.ones_like(s)


@dataclass(frozen=True)
class Huber(AbstractLoss):
    """Squares up to ``scale`` noise levels, absolute values beyond.

    >>> float(jfric.Huber(scale=2.0).rho(4.0)[0])
    3.0
    """

    word = "huber"
    scale: float = 1.0

    @staticmethod
    def rho(s):
        root = jnp.sqrt(jnp.maximum(s, 1.0))
        return jnp.where(s <= 1.0, s, 2.0 * root - 1.0), jnp.where(s <= 1.0, 1.0, 1.0 / root)


@dataclass(frozen=True)
class SoftL1(AbstractLoss):
    """Smooth passage from squares to absolute values around ``scale`` noise levels.

    >>> float(jfric.SoftL1().rho(3.0)[0])
    2.0
    """

    word = "soft_l1"
    scale: float = 1.0

    @staticmethod
    def rho(s):
        return 2.0 * (jnp.sqrt(1.0 + s) - 1.0), 1.0 / jnp.sqrt(1.0 + s)


@dataclass(frozen=True)
class Cauchy(AbstractLoss):
    """Logarithm of squares: residuals far above ``scale`` noise levels hardly count.

    >>> round(float(jfric.Cauchy().rho(1.0)[0]), 4)
    0.6931
    """

    word = "cauchy"
    scale: float = 1.0

    @staticmethod
    def rho(s):
        return jnp.log1p(s), 1.0 / (1.0 + s)


LOSSES = {loss.word: loss for loss in (Squares, Huber, SoftL1, Cauchy)}


#: Members of one call: few for a single fit, many for studies of more than ``MANY`` members.
FEW_MEMBERS, MANY_MEMBERS, MANY = 16, 256, 512
#: Motions and their derivatives, over all calls, after which a program is compiled once more, for
#: speed: until then a quickly compiled one, six times as slow, takes less time in all.
SOON = 256
#: Members without derivatives that cores share, and the fewest of one call.
PLAIN_MEMBERS, FEWEST = 64, 8

#: ``residual(predicted, measured, weight)`` of one experiment, each (m, k); see ``weighted``.
Residual = Callable[[Any, Any, Any], Any]


class Normal(NamedTuple):
    """Half the sum of squares, its gradient and its Gauss-Newton matrix by the parameters."""

    cost: np.ndarray
    gradient: np.ndarray
    hessian: np.ndarray


class Linearisation(NamedTuple):
    """Residuals and their derivatives, with the axes of members and experiments in front."""

    predicted: np.ndarray
    residuals: np.ndarray
    #: (..., L): by the parameters as each experiment sees them.
    jacobian: np.ndarray
    status: np.ndarray


def weighted(predicted, measured, weight):
    """``weight (predicted - measured)``; samples of weight zero do not count."""
    return jnp.where(weight > 0, weight * (predicted - measured), 0.0)


class Misfit(eqx.Module):
    """Residuals of predictions and their loss, for compiled programs."""

    residual: Residual = eqx.field(static=True)
    rho: Callable = eqx.field(static=True)
    scale: Float[Array, ""]

    def cost(self, residuals):
        """Half the sum of the losses of ``residuals``."""
        return 0.5 * self.scale**2 * jnp.sum(self.rho((residuals / self.scale) ** 2)[0])


class Objective:
    """Cost of parameters ``x`` (B, P): of the model's predictions for all experiments."""

    #: Beside its fields: how calls are computed, which is no part of the cost.
    __slots__ = ("__dict__", "__weakref__", "_work", "members")

    def __init__(
        self,
        model: AbstractModel,
        data: Data,
        layout: Layout,
        weight: np.ndarray,
        residual: Residual = weighted,
        loss: AbstractLoss | None = None,
    ):
        self.model, self.data, self.layout = model, data, layout
        self.residual, self.loss = residual, loss or Squares()
        #: (E, m, k): measured values, and their weights (zero: missing).
        self.measured = np.asarray(jax.jit(jax.vmap(model.target))(data))
        #: Members of one call for few of them, unless a call says another number.
        self.members: int | None = None
        self._work = 0
        self.weight = weight
        one_hot = layout.columns[..., None] == np.arange(layout.size)
        self._scatter = jnp.asarray(one_hot, jnp.result_type(float))

    @property
    def misfit(self) -> Misfit:
        """Residuals and loss, for compiled programs."""
        return Misfit(self.residual, self.loss.rho, jnp.asarray(self.loss.scale))

    def normal(self, x, measured=None, weight=None, chunk: int | None = None) -> Normal:
        """Normal equations of members ``x`` (B, P).

        ``measured`` and ``weight``: (B, E, m, k) if members have their own, None for those of the
        data. A member whose simulation failed has an infinite cost.
        """

        def call(x, own):
            pred, jac, status = self._predict(x)
            return _normal(self.misfit, pred, jac, status, *own, self._scatter)

        cost, gradient, hessian = self._in_chunks(call, x, (measured, weight), chunk)
        more = self.layout.prior_terms(np.atleast_2d(x))
        return Normal(cost + more[0], gradient + more[1], hessian + np.diag(more[2]))

    def costs(self, x) -> np.ndarray:
        """Costs (B,) of members ``x`` (B, P), without derivatives; infinite where one fails."""
        # Steps need not resolve derivatives.
        plain = self.model.with_adjoint("none")

        def call(x, own):
            pred, status = _predict_plainly(plain, self.data, x, self.layout.paths)
            return (_costs(self.misfit, pred, status, *own),)

        size = max(FEWEST, -(-PLAIN_MEMBERS // cores()))
        found = self._in_chunks(call, x, (None, None), size, whole=True)[0]
        return found + self.layout.prior_terms(np.atleast_2d(x))[0]

    def linearise(self, x, measured=None, weight=None) -> Linearisation:
        """Predictions, residuals and derivatives of members ``x`` (B, P)."""

        def call(x, own):
            pred, jac, status = self._predict(x)
            r, J = _residuals(self.misfit, pred, jac, *own)
            return pred, r, J, status

        return Linearisation(*self._in_chunks(call, x, (measured, weight), None))

    def normal_at(self, x: np.ndarray) -> Normal:
        """Normal equations of one member ``x`` (P,)."""
        return Normal(*(a[0] for a in self.normal(x[None])))

    def linearised_at(self, x: np.ndarray) -> Linearisation:
        """Predictions, residuals and derivatives of one member ``x`` (P,)."""
        return Linearisation(*(a[0] for a in self.linearise(x[None])))

    def predict(self, x, chunk: int | None = None) -> np.ndarray:
        """Predictions (B, E, m, k) of members ``x`` (B, P)."""

        def call(x, own):
            del own
            return (self._predict(x)[0],)

        return self._in_chunks(call, x, (None, None), chunk)[0]

    def _predict(self, x):
        # Quick options make many small kernels: long loops take twice as long.
        if self.model.is_long:
            options = no_options
        else:
            options = brief_options if self._work <= SOON else quick_options
        return _compiled_predict(options)(self.model, self.data, x, self.layout.paths)

    def _in_chunks(self, call, x, own, chunk, whole=False):
        x = np.atleast_2d(np.asarray(x, float))
        count = x.shape[0]
        few = self.members if count <= MANY else None
        size = chunk or few or chunk_of(count)
        size = 1 if self.model.is_long and not whole else size
        shared = (self.measured, self.weight)
        local = self.layout.local(x)

        def run(first):
            rows = np.minimum(np.arange(first, first + size), count - 1)
            part = [
                jnp.asarray(b[None] if a is None else np.asarray(a)[rows])
                for a, b in zip(own, shared, strict=True)
            ]
            found = call(jnp.asarray(local[rows]), part)
            return [np.asarray(f)[: count - first] for f in found]

        firsts = range(0, count, size)
        self._work += len(firsts) * size * self.measured.shape[0] * (1 + local.shape[-1])
        if len(firsts) == 1:
            return run(0)
        parts = list(_pool().map(run, firsts))
        return [np.concatenate(p) for p in zip(*parts, strict=True)]


class HasPoint:
    """Something at a point ``vector`` (P,) of an objective."""

    objective: Objective
    vector: np.ndarray

    def linearised(self) -> Linearisation:
        """Predictions (E, m, k), residuals, derivatives and status at the point."""
        return self.objective.linearised_at(self.vector)


@dataclass(frozen=True)
class Point(HasPoint):
    """A point of an objective."""

    objective: Objective
    vector: np.ndarray

    @functools.cached_property
    def normal(self) -> Normal:
        """Cost, gradient and Gauss-Newton matrix at the point."""
        return self.objective.normal_at(self.vector)


def chunk_of(count: int) -> int:
    """Members of one call for a study of ``count`` members."""
    return FEW_MEMBERS if count <= MANY else MANY_MEMBERS


@functools.cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(cores())


def _predict(model: AbstractModel, data: Data, x: Float[Array, "B E L"], paths: tuple[str, ...]):
    """Predictions (B, E, m, k), derivatives (B, E, m, k, L) and status (B, E)."""

    def one(x, data):
        def predict(x):
            values = {path: x[i] for i, path in enumerate(paths)}
            found = model.simulate_outputs(values, data)
            return found.y, (found.y, found.status)

        jac, (y, status) = jax.jacfwd(predict, has_aux=True)(x)
        return y, jac, status

    return jax.vmap(jax.vmap(one), in_axes=(0, None))(x, data)


@functools.cache
def _compiled_predict(options: Callable[[], Options]) -> Kept:
    return Kept(_predict, options=options)


@functools.partial(Kept, options=quick_options)
def _predict_plainly(model: AbstractModel, data: Data, x, paths: tuple[str, ...]):
    """Predictions (B, E, m, k) and status (B, E)."""

    def one(x, data):
        found = model.simulate_outputs({path: x[i] for i, path in enumerate(paths)}, data)
        return found.y, found.status

    return jax.vmap(jax.vmap(one), in_axes=(0, None))(x, data)


def experiment_cost(model: AbstractModel, misfit: Misfit, paths, x, data, measured, weight):
    """Cost of the parameters ``x`` (L,) of one experiment for measured values (m, k); infinite
    where the simulation fails. Traced; the caller adds priors."""
    found = model.simulate_outputs({path: x[i] for i, path in enumerate(paths)}, data)
    cost = misfit.cost(misfit.residual(found.y, measured, weight))
    return jnp.where(failed(found.status) | ~jnp.isfinite(cost), jnp.inf, cost)


def failed(status):
    """Whether a simulation has no usable prediction."""
    return (status != int(Status.OK)) & (status != int(Status.MAX_EVENTS))


def _one_residual(residual, pred, jac, measured, weight):
    """Residuals (m, k) and derivatives (m, k, L) of one experiment."""

    def function(p):
        found = residual(p, measured, weight)
        return found if found.ndim == 2 else found.reshape(-1, 1)

    def along(direction):
        return jax.jvp(function, (pred,), (direction,))[1]

    return function(pred), jax.vmap(along, in_axes=-1, out_axes=-1)(jac)


def _each(residual):
    """``residual`` for all members and experiments; data with one member serve all."""
    member = jax.vmap(functools.partial(_one_residual, residual))

    def members(pred, jac, measured, weight):
        axes = tuple(0 if a.shape[0] == pred.shape[0] else None for a in (measured, weight))
        measured, weight = (
            a if axis == 0 else a[0] for a, axis in zip((measured, weight), axes, strict=True)
        )
        return jax.vmap(member, in_axes=(0, 0, *axes))(pred, jac, measured, weight)

    return members


@jax.jit
def _residuals(misfit: Misfit, pred, jac, measured, weight):
    return _each(misfit.residual)(pred, jac, measured, weight)


@jax.jit
def _costs(misfit: Misfit, pred, status, measured, weight):
    def one(pred):
        return misfit.cost(jax.vmap(misfit.residual)(pred, measured[0], weight[0]))

    cost = jax.vmap(one)(pred)
    good = jnp.isfinite(cost) & ~jnp.any(failed(status), axis=1)
    return jnp.where(good, cost, jnp.inf)


@jax.jit
def _normal(misfit: Misfit, pred, jac, status, measured, weight, scatter):
    r, J = _each(misfit.residual)(pred, jac, measured, weight)
    values, slope = misfit.rho((r / misfit.scale) ** 2)
    cost = 0.5 * misfit.scale**2 * jnp.sum(values, axis=(1, 2, 3))
    g = jnp.einsum("bemk,bemkl->bel", slope * r, J)
    H = jnp.einsum("bemk,bemkl,bemkn->beln", slope, J, J)
    any_failed = jnp.any(failed(status), axis=1)
    gradient = jnp.einsum("bel,elp->bp", g, scatter)
    hessian = jnp.einsum("beln,elp,enq->bpq", H, scatter, scatter)
    finite = jnp.isfinite(cost) & jnp.all(jnp.isfinite(gradient), axis=1) & ~any_failed
    return jnp.where(finite, cost, jnp.inf), gradient, hessian
