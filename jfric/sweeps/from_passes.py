"""Observables from the passes of a solver, each of which moves along a known curve."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Int

from jfric.numerics.loops import keep, run_passes
from jfric.numerics.printing import printable
from jfric.results.observables import AtTimes, During
from jfric.results.reductions import Reductions
from jfric.results.status import Flag, Status
from jfric.solvers.base import AbstractSolver, one_sided
from jfric.solvers.records import empty_records
from jfric.system.control import driven
from jfric.system.problem import Problem
from jfric.system.start import started

if TYPE_CHECKING:
    from jfric.results.abstract_observables import Observable


@printable
class Observed(NamedTuple):
    """Observables of one trajectory by name (NaN where it failed), and its outcome."""

    values: dict[str, Array]
    #: :class:`jfric.Status` code and :class:`jfric.Flag` bits.
    status: Int[Array, ""]
    flags: Int[Array, ""]
    #: Passes of the solver's loop.
    steps: Int[Array, ""]


def run_with_pieces(
    problem: Problem,
    observables: tuple[Observable, ...],
    solver: AbstractSolver,
    budget=None,
    end=None,
) -> Observed:
    """Observables of one trajectory up to ``end`` [s] (by default the problem's), after at most
    ``budget`` passes (an array; by default the solver's), with a solver that has polynomials."""
    problem = driven(started(problem))
    prepared = solver.prepare(problem, end)
    mechanics = prepared.mechanics
    target = jnp.asarray(prepared.end if end is None else end, mechanics.K.dtype)
    state = solver.begin(problem, prepared, target)
    first, dtype = state.t, state.t.dtype
    budget = jnp.asarray(solver.max_steps if budget is None else budget, jnp.int32)
    force, none = jnp.zeros((mechanics.n,), dtype), jnp.zeros((0,), dtype)
    records = empty_records(mechanics)
    one = solver.next_pass(problem, prepared, state, none, target, force)
    reductions = Reductions(observables)
    seen = reductions.start(problem, mechanics, dtype)
    sided = (AtTimes, During)
    times = jnp.asarray([t for o in observables if isinstance(o, sided) for t in o.times], dtype)
    may_stop = reductions.enough(seen) is not None

    def stopped(s):
        return (s.flags & int(Flag.STOPPED)) != 0

    def active(s):
        goes_on = (s.status == int(Status.OK)) & solver.unfinished(prepared, s, target)
        goes_on = goes_on & (s.steps < budget)
        return goes_on & ~stopped(s) if may_stop else goes_on

    def body(s, carry, on, *common):
        new, _, piece = one.call(s, records, on, *common)
        new = one_sided(solver, s, new, target, times)
        assert piece is not None
        piece = piece()
        carry = keep(on & piece.useful, reductions.update(carry, piece), carry)
        if may_stop:
            flag = jnp.where(reductions.enough(carry), int(Flag.STOPPED), 0)
            new = eqx.tree_at(lambda s: s.flags, new, new.flags | flag.astype(new.flags.dtype))
        return new, carry

    # Extremes and integrals of polynomials are many scalars: without kernels arrays compile faster.
    scalars = one.kernels or not reductions.of_polynomials
    state, carry = run_passes(
        body,
        active,
        state,
        seen,
        max_steps=solver.max_steps,
        adjoint=solver.adjoint,
        given=prepared,
        constants=one.constants if scalars else None,
        kernels=one.kernels,
        scalar_buffers=True,
        shared=one.shared,
    )
    status = solver.outcome(prepared, state, target)
    if may_stop:
        status = jnp.where(stopped(state), state.status, status)
    # A user event, or an observable, may have ended the run earlier.
    last = state.t if problem.section("event") or may_stop else target
    found = reductions.finish(carry, state.q, state.v, last - first)
    values = {n: jnp.where(status == int(Status.OK), x, jnp.nan) for n, x in found.items()}
    return Observed(values, status, state.flags, state.steps)
