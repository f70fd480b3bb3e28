"""Calls of programs by many paths of orbits, executed one by one or together in batches.

Paths are generators that yield :class:`Call` and receive the result of the program.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from jfric.numerics import continuation
from jfric.numerics.cores import on_all_devices
from jfric.periodic.shooting import Shooting
from jfric.solvers.simulation import call_compiled


class Call(NamedTuple):
    """Call of a program with the equations, which are structure, and with numbers."""

    program: Callable[..., Any]
    shooting: Shooting
    numbers: tuple[Any, ...]


Result = TypeVar("Result")
#: A computation on the host that waits for the results of programs.
Computation = Generator[Call, Any, Result]


def alone(computation: Computation[Result]) -> Result:
    """Result of one computation."""
    return continuation.run(computation, _called)


def _called(call: Call) -> Any:
    return call_compiled(call.program, call.shooting.solver, None, call.shooting, *call.numbers)


def side_by_side(computations: Sequence[Computation[Result]], width: int) -> list[Result]:
    """Results of all computations, which wait for each other, so that their programs run as
    batches.

    A batch always has room for ``width`` calls, so that it is compiled once; unused rows repeat the
    first.
    """
    devices = len(jax.local_devices())
    width = width if width < devices else -(-width // devices) * devices
    return continuation.side_by_side(
        computations, lambda call: call.program, lambda calls: batched(calls, width)
    )


def batched(calls: list[Call], width: int) -> list[Any]:
    """Results of calls of one program, as one batch with room for ``width``."""
    rows = [call.numbers for call in calls]
    rows += rows[:1] * (width - len(rows))
    # Stacked on the host: a program for each count would take long to compile.
    stacked = jax.tree.map(lambda *x: jnp.asarray(np.stack([np.asarray(one) for one in x])), *rows)
    program, shooting, _ = calls[0]
    found = call_compiled(_batch, shooting.solver, None, program, shooting, stacked)
    found = jax.tree.map(np.asarray, found)
    return [jax.tree.map(lambda x, i=i: x[i], found) for i in range(len(calls))]


def _batch(solver, end, program, shooting, stacked):
    def share(stacked):
        return jax.vmap(lambda numbers: program(solver, end, shooting, *numbers))(stacked)

    width = jax.tree.leaves(stacked)[0].shape[0]
    if width % len(jax.local_devices()):
        return share(stacked)
    return on_all_devices(share, (True,))(stacked)
