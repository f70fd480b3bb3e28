"""Reductions of all observables of a sweep; equal ones are computed together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array

from jfric.results.abstract_observables import Observable, OfIntegral, OfMaximum
from jfric.results.abstract_observables import integrals as added
from jfric.results.observables import Amplitude
from jfric.results.pieces import Piece
from jfric.results.windows import During


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
        whole = any(isinstance(o, (Amplitude, During)) for o in self._others)
        return bool(self._maxima or self._integrals) or whole

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
            integrals = integrals + added(self._integrals, piece)
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
