"""Linearised equations of periodic motion at one point, scaled by their own sizes, and the orbit
there."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from jfric.numerics.linear_algebra import matmul, matvec, singular_values
from jfric.periodic.orbit import OrbitStatus, PeriodicOrbit, multipliers
from jfric.periodic.shooting import Motion, Phase, Shooting, Unknowns
from jfric.periodic.state_vector import axes_of, with_start
from jfric.system.assembly import assemble
from jfric.system.event import event_labels
from jfric.system.problem import Problem, TimeSpan

#: Singular values, as parts of the largest one, below which a direction is undetermined.
UNDECIDED = 1e-10
#: Length, in scales, to which longer Newton steps are cut.
LONGEST = 4.0


class Scales(NamedTuple):
    """Sizes of states (2n,), period and parameter, to which errors and steps are relative."""

    state: Float[Array, " x"]
    period: Float[Array, ""]
    parameter: Float[Array, ""]


class Along(NamedTuple):
    """Additional equation for an unknown parameter: ``tangent . (u - origin) / scales = s``."""

    tangent: Float[Array, " u"]
    origin: Float[Array, " u"]
    s: Float[Array, ""]


class Found(NamedTuple):
    """End of Newton's method. ``smallest``: smallest singular value of the scaled equations,
    relative to the largest one."""

    z: Unknowns
    motion: Motion
    jacobian: Float[Array, "e u"]
    residual: Float[Array, ""]
    smallest: Float[Array, ""]
    status: Int[Array, ""]
    run_status: Int[Array, ""]
    iterations: Int[Array, ""]


class Equations(NamedTuple):
    """Equations of periodic motion, with the parts that stay the same at all points."""

    shooting: Shooting
    problem: Problem
    phase: Phase
    scales: Scales
    along: Along | None = None

    @property
    def columns(self) -> Float[Array, " u"]:
        """Sizes of the unknowns."""
        return sizes_of_unknowns(self.shooting, self.scales)

    @property
    def rows(self) -> Float[Array, " e"]:
        """Sizes of the equations, without the additional one."""
        shooting, scales = self.shooting, self.scales
        states = jnp.tile(scales.state, shooting.segments)
        if not shooting.autonomous:
            return states
        size = jnp.ones((), states.dtype)
        if shooting.phase == "event":
            size = scales.period
        if shooting.phase == "section":
            size = jnp.max(scales.state)
        return jnp.append(states, size)

    def at(self, z: Unknowns):
        """Motion at ``z``, the scaled left sides of all equations and their scaled derivatives."""
        motion = self.shooting.motion(self.problem, z, self.phase)
        jacobian = self.shooting.jacobian(motion)
        right, scaled = self.left_sides(z, motion), self.scaled(jacobian)
        if self.along is not None:
            scaled = jnp.concatenate([scaled, self.along.tangent[None]])
        found = Found(
            z=z,
            motion=motion,
            jacobian=jacobian,
            residual=jnp.max(jnp.abs(right)),
            smallest=jnp.zeros((), right.dtype),
            status=jnp.asarray(int(OrbitStatus.CONVERGED), jnp.int32),
            run_status=motion.status,
            iterations=jnp.asarray(0, jnp.int32),
        )
        return found, right, scaled

    def left_sides(self, z: Unknowns, motion: Motion) -> Float[Array, " e"]:
        """Left sides of all equations, in their sizes."""
        right = self.shooting.residual(z, motion) / self.rows
        if self.along is None:
            return right
        away = (self.shooting.pack(z) - self.along.origin) / self.columns
        return jnp.append(right, jnp.sum(self.along.tangent * away) - self.along.s)

    def scaled(self, jacobian: Float[Array, "e u"]) -> Float[Array, "e u"]:
        """Derivatives in sizes of equations and unknowns."""
        return jacobian * self.columns[None, :] / self.rows[:, None]

    def size_of(self, step: Float[Array, " u"]) -> Float[Array, ""]:
        """The largest component of a step, in sizes of the unknowns."""
        return jnp.max(jnp.abs(step / self.columns))

    def cut(self, step: Float[Array, " u"]) -> Float[Array, " u"]:
        """A step cut to the allowed length."""
        return step * (LONGEST / jnp.maximum(self.size_of(step), LONGEST))


@eqx.filter_jit
def evaluated(equations: Equations, z: Unknowns) -> tuple[Found, Float[Array, " u"]]:
    """Motion and derivatives at ``z``, and the step of Newton's method from there."""
    found, right, scaled = equations.at(z)
    step, smallest = least_step(scaled, right)
    return found._replace(smallest=smallest), equations.columns * step


def least_step(
    a: Float[Array, "e e"], residual: Float[Array, " e"]
) -> tuple[Float[Array, " e"], Float[Array, ""]]:
    """The shortest solution of ``a x = -residual`` in the directions that ``a`` decides, and the
    smallest singular value relative to the largest one."""
    (u, _, vt), reciprocals, smallest = _decided(a)
    return -matvec(vt.T, matvec(u.T, residual) * reciprocals), smallest


def inverse_of(a: Float[Array, "e u"]) -> tuple[Float[Array, "u e"], Float[Array, ""]]:
    """The matrix that gives the least step, up to its sign."""
    (u, _, vt), reciprocals, smallest = _decided(a)
    return matmul(vt.T * reciprocals[None, :], u.T), smallest


def _decided(a):
    """Singular values and vectors, reciprocals of the values in determined directions, and the
    smallest value relative to the largest one."""
    parts = singular_values(jnp.where(jnp.isfinite(a), a, 0.0))
    values = parts.values
    largest = jnp.max(values)
    decided = values > UNDECIDED * largest
    reciprocals = jnp.where(decided, 1.0 / jnp.where(decided, values, 1.0), 0.0)
    return parts, reciprocals, jnp.min(values) / jnp.where(largest > 0, largest, 1.0)


def sizes_of_unknowns(shooting: Shooting, scales: Scales) -> Float[Array, " u"]:
    """Sizes of the unknowns."""
    states = jnp.tile(scales.state, (shooting.segments, 1))
    return shooting.pack(Unknowns(states, scales.period, scales.parameter))


def orbit_of(shooting: Shooting, problem: Problem, found: Found, scales: Scales) -> PeriodicOrbit:
    """The periodic orbit found by Newton's method, with its multipliers and events; ``scales``:
    sizes of the states."""
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
        drift=_drift(shooting, motion, period, scales),
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


def _drift(shooting: Shooting, motion: Motion, period, scales: Scales) -> Float[Array, ""]:
    """The largest change of a state over a period at the rate that it has at the ends of segments,
    in sizes of the states; infinite under loads with a period, which are never at rest."""
    if not shooting.autonomous:
        return jnp.asarray(jnp.inf, period.dtype)
    # The period moves the end of a segment by its part of it.
    change = jnp.max(jnp.abs(motion.by_period), axis=0) * shooting.segments * period
    q, v = jnp.split(scales.state, 2)
    time = period / (2.0 * jnp.pi)
    size = jnp.maximum(q, v * time)
    return jnp.max(change / jnp.concatenate([size, size / time]))
