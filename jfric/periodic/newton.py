"""Newton's method on the equations of periodic motion, as one loop under ``jit`` and ``vmap``.

One round evaluates the motion and its derivatives once, at a trial point: a batch goes from round
to round together. A step that does not lower the residual is shortened.
"""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jfric.numerics.linear_algebra import matvec, singular_values
from jfric.numerics.loops import keep
from jfric.periodic.orbit_status import OrbitStatus
from jfric.periodic.shooting import Motion, Phase, Shooting, Unknowns
from jfric.results.status import Status
from jfric.system.problem import Problem

#: A step below this part of the scales is the last one: the error that is left is its square.
LAST_STEP = 1e-8
#: Residuals below this part of the scales are rounding errors.
ROUNDING = 1e-12
#: Largest residual, relative to the scales, of what counts as converged.
RESIDUAL = 1e-9
#: Singular values below this part of the largest one belong to directions that nothing decides.
UNDECIDED = 1e-10
#: Steps are shortened by this factor, down to ``SHORTEST``.
SHORTENED, SHORTEST = 0.25, 1e-5
#: States that agree to this part of the scales are the same but for rounding.
EQUAL = 1e-14
#: Gaps at the start below this part of the sizes count as closed.
CLOSED = 1e-9
#: Newton steps longer than this many scales are cut.
LONGEST = 4.0


class Scales(NamedTuple):
    """Sizes of states (2n,), period and parameter: what errors and steps are relative to."""

    state: Float[Array, " x"]
    period: Float[Array, ""]
    parameter: Float[Array, ""]


class Along(NamedTuple):
    """A further equation where a parameter is unknown: ``tangent . (u - origin) / scales = s``."""

    tangent: Float[Array, " u"]
    origin: Float[Array, " u"]
    s: Float[Array, ""]


class Found(NamedTuple):
    """Where Newton's method ended. ``smallest``: smallest singular value of the scaled equations,
    relative to the largest one."""

    z: Unknowns
    motion: Motion
    jacobian: Float[Array, "e u"]
    residual: Float[Array, ""]
    smallest: Float[Array, ""]
    status: Int[Array, ""]
    run_status: Int[Array, ""]
    iterations: Int[Array, ""]


class _Carry(NamedTuple):
    found: Found
    step: Float[Array, " u"]
    factor: Float[Array, ""]
    last: Bool[Array, ""]
    done: Bool[Array, ""]
    first: Bool[Array, ""]


def solve(
    shooting: Shooting,
    problem: Problem,
    start: Unknowns,
    phase: Phase,
    scales: Scales,
    along: Along | None = None,
    *,
    most: Int[Array, ""] | int,
) -> Found:
    """Newton's method from ``start``, at most ``most`` rounds; without derivatives."""
    given = (problem, start, phase, scales, along)
    problem, start, phase, scales, along = jax.lax.stop_gradient(given)

    def at(z: Unknowns) -> tuple[Found, Float[Array, " u"]]:
        return evaluated(shooting, problem, z, phase, scales, along)

    def fine(found: Found):
        moves = (found.run_status == int(Status.OK)) & (found.z.period > 0)
        # A start inside another body is no motion.
        outside = found.motion.gap >= -CLOSED * jnp.max(scales.state)
        return moves & outside & jnp.isfinite(found.residual)

    def one(carry: _Carry) -> _Carry:
        old = carry.found
        trial, step = at(_snapped(shooting.moved(old.z, carry.factor * carry.step), old, scales))
        falls = trial.residual <= (1.0 - 1e-4 * carry.factor) * old.residual
        good = fine(trial) & (carry.first | falls | (trial.residual <= ROUNDING))
        kept = keep(good | carry.first, trial, old)
        size = _size(shooting, step, scales)
        factor = jnp.where(good, 1.0, SHORTENED * carry.factor)
        # What was the last step is not tried again: nothing but rounding is left.
        ends = carry.last | (good & (size <= ROUNDING * LAST_STEP))
        return _Carry(
            found=kept._replace(
                iterations=old.iterations + 1,
                status=jnp.where(factor < SHORTEST, int(OrbitStatus.NO_CONVERGENCE), old.status),
            ),
            step=jnp.where(good, _cut(shooting, step, scales), carry.step),
            factor=factor,
            last=good & (size <= LAST_STEP),
            done=ends | (factor < SHORTEST) | (carry.first & ~good),
            first=jnp.asarray(False),
        )

    # The first round is one at the start itself: the motion is compiled once.
    nothing, step = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), jax.eval_shape(at, start))
    no = jnp.asarray(False)
    carry = _Carry(
        found=nothing._replace(z=start, residual=jnp.asarray(jnp.inf, step.dtype)),
        step=step,
        factor=jnp.ones((), step.dtype),
        last=no,
        done=no,
        first=~no,
    )
    carry = jax.lax.while_loop(lambda c: ~c.done & (c.found.iterations <= most), one, carry)
    found = carry.found
    return found._replace(status=_status(found, fine(found)))


@eqx.filter_jit
def evaluated(
    shooting: Shooting,
    problem: Problem,
    z: Unknowns,
    phase: Phase,
    scales: Scales,
    along: Along | None = None,
) -> tuple[Found, Float[Array, " u"]]:
    """What is known at ``z``, and the step of Newton's method from there."""
    motion = shooting.motion(problem, z, phase)
    residual, jacobian = shooting.residual(z, motion), shooting.jacobian(motion)
    scaled, rows, columns = scaled_equations(shooting, jacobian, scales)
    right = residual / rows
    if along is not None:
        off = jnp.sum(along.tangent * (shooting.pack(z) - along.origin) / columns) - along.s
        scaled = jnp.concatenate([scaled, along.tangent[None]])
        right = jnp.append(right, off)
    step, smallest = least_step(scaled, right)
    found = Found(
        z=z,
        motion=motion,
        jacobian=jacobian,
        residual=jnp.max(jnp.abs(right)),
        smallest=smallest,
        status=jnp.asarray(int(OrbitStatus.CONVERGED), jnp.int32),
        run_status=motion.status,
        iterations=jnp.asarray(0, jnp.int32),
    )
    return found, columns * step


def scaled_equations(shooting: Shooting, jacobian, scales: Scales):
    """Derivatives of equations and unknowns in their own sizes, and these sizes."""
    columns, rows = _columns(shooting, scales), _rows(shooting, scales)
    return jacobian * columns[None, :] / rows[:, None], rows, columns


def least_step(
    a: Float[Array, "e e"], residual: Float[Array, " e"]
) -> tuple[Float[Array, " e"], Float[Array, ""]]:
    """The shortest solution of ``a x = -residual`` in the directions that ``a`` decides, and the
    smallest singular value relative to the largest one."""
    a = jnp.where(jnp.isfinite(a), a, 0.0)
    u, values, vt = singular_values(a)
    largest = jnp.max(values)
    decided = values > UNDECIDED * largest
    x = matvec(u.T, residual) * jnp.where(decided, 1.0 / jnp.where(decided, values, 1.0), 0.0)
    smallest = jnp.min(values) / jnp.where(largest > 0, largest, 1.0)
    return -matvec(vt.T, x), smallest


def _snapped(z: Unknowns, old: Found, scales: Scales) -> Unknowns:
    """What agrees with the end of the motion but for rounding is that end: what is closed or sticks
    there does so exactly."""
    ends = jnp.roll(old.motion.ends, 1, axis=0)
    near = jnp.abs(z.states - ends) <= EQUAL * scales.state[None, :]
    return z._replace(states=jnp.where(near, ends, z.states))


def _columns(shooting: Shooting, scales: Scales) -> Float[Array, " u"]:
    """Sizes of the unknowns."""
    states = jnp.tile(scales.state, (shooting.segments, 1))
    return shooting.pack(Unknowns(states, scales.period, scales.parameter))


def _rows(shooting: Shooting, scales: Scales) -> Float[Array, " e"]:
    """Sizes of the equations."""
    states = jnp.tile(scales.state, shooting.segments)
    if not shooting.autonomous:
        return states
    size = jnp.ones((), states.dtype)
    if shooting.phase == "event":
        size = scales.period
    if shooting.phase == "section":
        size = jnp.max(scales.state)
    return jnp.append(states, size)


def _size(shooting: Shooting, step, scales: Scales):
    return jnp.max(jnp.abs(step / _columns(shooting, scales)))


def _cut(shooting: Shooting, step, scales: Scales):
    size = _size(shooting, step, scales)
    return step * (LONGEST / jnp.maximum(size, LONGEST))


def _status(found: Found, fine) -> Int[Array, ""]:
    """The outcome: the first reason that holds."""
    good = fine & (found.residual <= RESIDUAL)
    many = found.run_status == int(Status.MAX_EVENTS)
    fails = found.run_status != int(Status.OK)
    still = found.z.period <= 0
    cases = ((good & found.motion.on_event, OrbitStatus.STARTS_ON_EVENT),)
    cases += ((good, OrbitStatus.CONVERGED), (still, OrbitStatus.STANDS_STILL))
    cases += ((many, OrbitStatus.TOO_MANY_EVENTS), (fails, OrbitStatus.MOTION_FAILED))
    status = jnp.asarray(int(OrbitStatus.NO_CONVERGENCE), jnp.int32)
    for holds, code in cases[::-1]:
        status = jnp.where(holds, int(code), status)
    return status.astype(jnp.int32)
