"""Observables: reductions over the pieces of a trajectory, equal ones of which are computed
together."""

from __future__ import annotations

import abc
import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from jfric.errors import ProblemError
from jfric.results.pieces import Function, Piece, Point
from jfric.results.signals import Signal
from jfric.system.mechanics import Mechanics
from jfric.system.problem import Problem


class Observable(abc.ABC):
    """A reduction over the pieces of a trajectory: ``start``, ``update`` for each, ``finish``.

    ``name`` and ``unit`` label the result; ``function`` of a :class:`jfric.results.pieces.Point`
    gives the number that is reduced; ``number`` is that of an event, from 1; ``contact`` the place
    of a contact in ``Solution.names``. ``dims`` are the axes of a result that is an array, each
    with its name, its coordinates and their unit.
    The example has a user's own observable, which counts smooth pieces, and those of this module::

        >>> import numpy as np
        >>> seen = jfric.results.observables
        >>> class SmoothPieces(seen.Observable):
        ...     name, unit = "smooth pieces", ""
        ...
        ...     def start(self, problem, mechanics, dtype):
        ...         return jnp.asarray(0)
        ...
        ...     def update(self, carry, piece: seen.Piece):
        ...         return carry + (piece.h > 0)
        >>> def position(point: seen.Point):
        ...     return point.q[0]
        >>> wanted = [
        ...     SmoothPieces(),
        ...     seen.Final(position),
        ...     seen.Maximum(position),
        ...     seen.Minimum(position),
        ...     seen.Amplitude(position),
        ...     seen.Mean(position),
        ...     seen.RootMeanSquare(position),
        ...     seen.Integral(position, unit="m s"),
        ...     seen.AtTimes(position, (1.0, 2.0)),
        ...     seen.Dissipated(),
        ...     seen.StickFraction(0),
        ... ]
        >>> found = jfric.observe(problem, wanted).values
        >>> for name, x in found.items():
        ...     print(name, (np.asarray(x).round(6) + 0.0).tolist())
        amplitude 0.28
        dissipated 224.0
        final 0.32
        integral 1.208914
        maximum 0.56
        mean 0.302228
        minimum 0.0
        rms 0.322765
        smooth pieces 8.0
        stick_fraction 0.222495
        values [0.13893, 0.280596]
    """

    name: str
    unit: str
    #: Whether it is an extremum or integral over the polynomials of all pieces.
    of_polynomials: ClassVar[bool] = False

    @property
    def dims(self) -> tuple[tuple[str, tuple[float, ...], str], ...]:
        """Axes of the result in addition to those of the sweep: name, coordinates, unit."""
        return ()

    @abc.abstractmethod
    def start(self, problem: Problem, mechanics: Mechanics, dtype) -> Any:
        """Initial values, before the first piece."""

    @abc.abstractmethod
    def update(self, carry: Any, piece: Piece) -> Any:
        """Values (``carry``) after one more piece."""

    def enough(self, carry: Any) -> Any:
        """Whether the run may end because further pieces cannot change the result; None: never.

        A run ends, with the flag ``STOPPED``, once all of its observables that do not return None
        agree; only solvers with polynomials do so.
        """
        del carry

    def finish(self, carry: Any, q, v, duration) -> Any:
        """Result from ``carry``, the last state and the simulated time [s]."""
        del q, v, duration
        return carry


class OwnRun(Observable):
    """Observable that runs the solver by itself, and is the only one of a sweep or a run."""

    @abc.abstractmethod
    def measured(self, problem: Problem, solver: Any, end: Any) -> tuple[Any, Any, Any, Any]:
        """Value, status, flags and number of passes of a run of the resolved ``problem`` up to
        ``end`` [s]; None: to the problem's end."""

    def start(self, problem, mechanics, dtype):
        raise NotImplementedError

    def update(self, carry, piece):
        raise NotImplementedError


class OfMaximum(Observable):
    """Largest value over the whole trajectory; all of this kind are reduced together."""

    of_polynomials = True

    @abc.abstractmethod
    def quantity(self, x: Point) -> Any:
        """Number to be maximised, at the point ``x``."""

    def start(self, problem, mechanics, dtype):
        return jnp.full((), -jnp.inf, dtype)

    def update(self, carry, piece):
        return jnp.maximum(carry, piece.maxima(lambda x: self.quantity(x)[None])[0])


class OfIntegral(Observable):
    """Integral over time; all of this kind are reduced together."""

    of_polynomials = True

    @abc.abstractmethod
    def quantity(self, x: Point) -> Any:
        """Number to be integrated, at the point ``x``."""

    def at_jump(self, piece: Piece, slip: Float[Array, " nt"]) -> Any:
        """Contribution of a load that jumps, in no time, while contacts slide by ``slip``."""
        return jnp.zeros((), piece.q.dtype)

    def start(self, problem, mechanics, dtype):
        return jnp.zeros((), dtype)

    def update(self, carry, piece):
        return carry + sums([self], piece)[0]


@dataclass(frozen=True)
class OfFunction(Observable):
    """Observable of the values of a ``function`` of a point."""

    function: Function
    name: str = ""
    unit: str = ""

    def quantity(self, x: Point) -> Any:
        """Number to be reduced, at the point ``x``."""
        return self.function(x)


def own_run(observables: Sequence[Observable]) -> OwnRun | None:
    """The observable that runs the solver by itself, if there is one.

    Raises :class:`ProblemError` where it is not alone.
    """
    found = [o for o in observables if isinstance(o, OwnRun)]
    if found and len(observables) > 1:
        raise ProblemError(
            f"observe: {found[0].name!r} runs the solver by itself; observe it alone"
        )
    return found[0] if found else None


def sums(observables: Sequence[OfIntegral], piece: Piece) -> Float[Array, " k"]:
    """Contributions (k,) of a piece to each of several integrals."""
    found = piece.integrals(lambda x: jnp.stack([o.quantity(x) for o in observables]))
    if piece.slip is None:
        return found
    jumps = jnp.stack([o.at_jump(piece, piece.slip) for o in observables])
    return found + jnp.where(piece.h > 0, 0.0, jumps)


def renamed(observable: Observable, name: str) -> Observable:
    """Copy of ``observable`` under the name ``name``."""
    result = copy.copy(observable)
    object.__setattr__(result, "name", name)
    return result


def is_of_motion(function: Function) -> bool:
    """Whether position and velocity alone determine the value of ``function``."""
    return isinstance(function, Signal) and function.of_motion


class Reductions:
    """Observables, grouped: many integrals or maxima cost little more than one."""

    def __init__(self, observables: Sequence[Observable]):
        self.all = tuple(observables)
        self._maxima = [o for o in self.all if isinstance(o, OfMaximum)]
        self._integrals = [o for o in self.all if isinstance(o, OfIntegral)]
        grouped = {id(o) for o in (*self._maxima, *self._integrals)}
        self._others = [o for o in self.all if id(o) not in grouped]

    @property
    def of_polynomials(self) -> bool:
        """Whether any observable is an extremum or integral over the polynomials of all pieces."""
        return any(o.of_polynomials for o in self.all)

    def start(self, problem, mechanics, dtype) -> dict[str, Any]:
        """Initial values, before the first piece."""

        def together(group):
            values = [o.start(problem, mechanics, dtype) for o in group]
            return jnp.stack(values) if values else jnp.zeros((0,), dtype)

        return {
            "maxima": together(self._maxima),
            "integrals": together(self._integrals),
            "others": tuple(o.start(problem, mechanics, dtype) for o in self._others),
        }

    def update(self, carry: dict[str, Any], piece: Piece) -> dict[str, Any]:
        """Values (``carry``) after one more piece."""
        maxima, integrals = carry["maxima"], carry["integrals"]
        if self._maxima:
            found = piece.maxima(lambda x: jnp.stack([o.quantity(x) for o in self._maxima]))
            maxima = jnp.maximum(maxima, found)
        if self._integrals:
            integrals = integrals + sums(self._integrals, piece)
        others = zip(self._others, carry["others"], strict=True)
        return {
            "maxima": maxima,
            "integrals": integrals,
            "others": tuple(o.update(c, piece) for o, c in others),
        }

    def enough(self, carry: dict[str, Any]) -> Any:
        """Whether all observables that may end a run have seen enough; None if there are none."""
        others = zip(self._others, carry["others"], strict=True)
        said = [x for x in (o.enough(c) for o, c in others) if x is not None]
        return jnp.stack(said).all() if said else None

    def finish(self, carry: dict[str, Any], q, v, duration) -> dict[str, Array]:
        """Results by name, in the order of the observables."""
        groups = (self._maxima, self._integrals, self._others)
        carries = (carry["maxima"], carry["integrals"], carry["others"])
        found = {
            o.name: o.finish(group[i], q, v, duration)
            for observables, group in zip(groups, carries, strict=True)
            for i, o in enumerate(observables)
        }
        return {o.name: found[o.name] for o in self.all}
