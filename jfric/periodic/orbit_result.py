"""Periodic orbit from the end of Newton's method."""

from __future__ import annotations

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp

from jfric.numerics.linear_algebra import matmul
from jfric.periodic.linearised import Found
from jfric.periodic.multipliers import multipliers
from jfric.periodic.orbit import PeriodicOrbit
from jfric.periodic.shooting import Shooting
from jfric.periodic.state_vector import axes_of, with_start
from jfric.system.assembly import assemble
from jfric.system.event import event_labels
from jfric.system.problem import Problem, TimeSpan


def orbit_of(shooting: Shooting, problem: Problem, found: Found) -> PeriodicOrbit:
    """The periodic orbit found by Newton's method, with its multipliers and events."""
    motion, z = found.motion, found.z
    monodromy = motion.gain[0]
    for i in range(1, shooting.segments):
        monodromy = matmul(motion.gain[i], monodromy)
    values, vectors = multipliers(monodromy)
    period = jnp.asarray(shooting.period_of(problem, z.period), z.states.dtype)
    begun = with_start(problem, problem.resolved().time.start, z.states[0])
    begins = begun.time.start
    begun = eqx.tree_at(lambda p: p.time, begun, TimeSpan(begins + period, begins))
    times, codes = motion.times.ravel(), motion.codes.reshape(-1, 4)
    mechanics = eqx.filter_eval_shape(assemble, begun.resolved())
    order = jnp.argsort(jax.lax.stop_gradient(times), stable=True)
    return PeriodicOrbit(
        problem=begun,
        period=period,
        state=z.states[0],
        states=z.states,
        monodromy=monodromy,
        multipliers=values,
        eigenvectors=vectors,
        event_times=times[order],
        event_codes=codes[order],
        event_count=jnp.sum(motion.count),
        residual=found.residual,
        smallest=found.smallest,
        status=found.status,
        run_status=found.run_status,
        flags=motion.flags,
        iterations=found.iterations,
        solver=dataclasses.replace(shooting.solver, adjoint="auto"),
        axes=axes_of(problem),
        names=mechanics.contact_names + mechanics.piecewise.names,
        segment_labels=mechanics.piecewise.labels,
        event_names=event_labels(problem),
        forced=not shooting.autonomous,
    )
