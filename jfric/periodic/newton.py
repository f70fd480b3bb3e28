"""Newton's method on the equations of periodic motion, as one loop under ``jit`` and ``vmap``.

Each round evaluates the motion and its derivatives once, at a trial point, so that a batch goes
from round to round together. A step that does not lower the residual is shortened.

Derivatives by many unknowns cost as much as many motions. For large systems they are kept: rounds
between two evaluations of the derivatives compute the motion alone, and correct the inverse by the
observed change (Broyden's update). The criterion of convergence is the same, and the returned
derivatives are those at the end.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jfric.numerics.compilation import platform
from jfric.numerics.linear_algebra import matvec
from jfric.numerics.loops import keep
from jfric.periodic.linearised import Equations, Found, Scales, evaluated, inverse_of
from jfric.periodic.orbit import OrbitStatus
from jfric.periodic.shooting import Unknowns
from jfric.results.status import Status

#: Step, in scales, below which it is the last one: the remaining error is the square of it.
LAST_STEP = 1e-8
#: Residuals below this part of the scales are rounding errors.
ROUNDING = 1e-12
#: Largest residual, relative to the scales, of a converged solution.
RESIDUAL = 1e-9
#: Steps are shortened by this factor, down to ``SHORTEST``.
SHORTENED, SHORTEST = 0.25, 1e-5
#: Difference of states, in scales, below which they differ by rounding only.
EQUAL = 1e-14
#: Gap at the start, in sizes, below which it counts as closed.
CLOSED = 1e-9
#: Number of unknowns from which on derivatives are kept for several rounds.
KEPT_FROM = 24
#: Most rounds with the same derivatives, and the largest part of the residual that each may leave.
KEPT_ROUNDS, CONTRACTS = 24, 0.3
#: Distance of points, in sizes of the motion, within which derivatives differ by rounding only.
SAME_POINT = 1e-11
#: Part of the residual that shows a double zero: Newton's method that leaves about a quarter has
#: gone half of the way, so the same step is tried again.
A_QUARTER = (0.15, 0.4)
#: Denominators, relative to the step, below which an update of the inverse is left out.
UPDATED = 1e-3
#: Fields that a motion computed without derivatives lacks.
DERIVATIVES = ("gain", "by_period", "by_parameter", "phase_by")


class _Carry(NamedTuple):
    found: Found
    step: Float[Array, " u"]
    factor: Float[Array, ""]
    last: Bool[Array, ""]
    done: Bool[Array, ""]
    first: Bool[Array, ""]


class _Kept(NamedTuple):
    """State of rounds with the same derivatives. ``found``: the point, with the last computed
    derivatives; ``right``: scaled left sides of the equations; ``inverse`` (u, e): inverse of their
    derivatives; ``step``: the last step; ``again``: whether it is also the next one; ``factor``: by
    which the next step is shortened; ``away``: distance of the point from that of the derivatives,
    in sizes; ``last``: whether one step is left; ``stale``: whether the next step needs new
    derivatives."""

    found: Found
    right: Float[Array, " e"]
    inverse: Float[Array, "u e"]
    step: Float[Array, " u"]
    again: Bool[Array, ""]
    factor: Float[Array, ""]
    away: Float[Array, ""]
    rounds: Int[Array, ""]
    last: Bool[Array, ""]
    stale: Bool[Array, ""]
    done: Bool[Array, ""]

    @property
    def next_size(self) -> Float[Array, ""]:
        """The largest component of the next whole step, in sizes of the unknowns."""
        return jnp.max(jnp.abs(matvec(self.inverse, self.right)))


def solve(equations: Equations, start: Unknowns, *, most: Int[Array, ""] | int) -> Found:
    """Result of Newton's method from ``start`` after at most ``most`` rounds, not
    differentiable."""
    numbers: Any = equations[1:]
    numbers, start = jax.lax.stop_gradient((numbers, start))
    equations = Equations(equations.shooting, *numbers)
    few = equations.shooting.pack(start).shape[0] < KEPT_FROM
    found = (_every_round if few else _kept)(equations, start, most)
    return found._replace(status=_status(found, _fine(found, equations.scales)))


def together(unknowns: int) -> int:
    """Number of motions of a batch that go from round to round together. It is small for large
    systems: each of their motions is a batch of its derivatives and waits for no other one."""
    size = platform().row
    return size if unknowns < KEPT_FROM else max(1, size // unknowns**2)


def _derived(equations: Equations, z: Unknowns):
    """The point ``z`` with derivatives, the left sides, and the inverse of their derivatives."""
    found, right, scaled = equations.at(z)
    inverse, smallest = inverse_of(scaled)
    return found._replace(smallest=smallest), right, inverse


def _nothing(function, equations: Equations, start: Unknowns):
    """Zeros in the form of the results of ``function``, so that a loop may begin with the start
    itself, whose motion is then compiled once."""
    shapes = jax.eval_shape(lambda z: function(equations, z), start)
    return jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes)


def _every_round(equations: Equations, start: Unknowns, most) -> Found:
    """Newton's method with derivatives in every round."""
    scales = equations.scales

    def one(carry: _Carry) -> _Carry:
        old = carry.found
        moved = equations.shooting.moved(old.z, carry.factor * carry.step)
        trial, step = evaluated(equations, _snapped(moved, old, scales))
        falls = trial.residual <= (1.0 - 1e-4 * carry.factor) * old.residual
        good = _fine(trial, scales) & (carry.first | falls | (trial.residual <= ROUNDING))
        kept = keep(good | carry.first, trial, old)
        size = equations.size_of(step)
        factor = jnp.where(good, 1.0, SHORTENED * carry.factor)
        # After the last step there is no further trial: only rounding is left.
        ends = carry.last | (good & (size <= ROUNDING * LAST_STEP))
        return _Carry(
            found=kept._replace(
                iterations=old.iterations + 1,
                status=jnp.where(factor < SHORTEST, int(OrbitStatus.NO_CONVERGENCE), old.status),
            ),
            step=jnp.where(good, equations.cut(step), carry.step),
            factor=factor,
            last=good & (size <= LAST_STEP),
            done=ends | (factor < SHORTEST) | (carry.first & ~good),
            first=jnp.asarray(False),
        )

    nothing, step = _nothing(evaluated, equations, start)
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
    return carry.found


def _kept(equations: Equations, start: Unknowns, most) -> Found:
    """Newton's method with derivatives kept for several rounds; ``iterations`` counts the rounds
    that compute derivatives."""
    scales = equations.scales

    def one(carry: _Kept) -> _Kept:
        """Evaluation of the derivatives, followed by rounds without them."""
        going, first = unfinished(carry), carry.found.iterations == 0
        found, right, inverse = _derived(equations, carry.found.z)
        found = found._replace(iterations=carry.found.iterations + 1)
        zero = jnp.zeros((), right.dtype)
        new = carry._replace(
            found=found,
            right=right,
            inverse=inverse,
            again=jnp.asarray(False),
            factor=zero + 1.0,
            away=zero,
            rounds=jnp.asarray(0, jnp.int32),
            stale=~going,
            # After the last step these are the derivatives at its end.
            done=carry.last | (first & ~_fine(found, scales)),
        )
        done = new.done | (new.next_size <= ROUNDING * LAST_STEP)
        last = carry.last | (new.next_size <= LAST_STEP)
        new = new._replace(last=last, done=done, stale=~going | done)
        return jax.lax.while_loop(lambda c: ~c.stale, lambda c: _without(equations, c), new)

    def unfinished(carry: _Kept):
        return ~carry.done & (carry.found.iterations <= most)

    found, right, inverse = _nothing(_derived, equations, start)
    no, none = jnp.asarray(False), jnp.asarray(0, jnp.int32)
    found = found._replace(z=start, residual=jnp.asarray(jnp.inf, right.dtype))
    zero = jnp.zeros((), right.dtype)
    step = zero * equations.columns
    carry = _Kept(*(found, right, inverse, step, no, zero + 1.0, zero, none, no, no, no))
    return jax.lax.while_loop(unfinished, one, carry).found


def _without(equations: Equations, carry: _Kept) -> _Kept:
    """A step with the kept derivatives, and the motion alone at its end."""
    shooting, scales = equations.shooting, equations.scales
    old, columns = carry.found, equations.columns
    step = carry.factor * equations.cut(-columns * matvec(carry.inverse, carry.right))
    step = jnp.where(carry.again, carry.step, step)
    z = _snapped(shooting.moved(old.z, step), old, scales)
    motion = shooting.motion(equations.problem, z, equations.phase, derivatives=False)
    right = equations.left_sides(z, motion)
    known = {name: getattr(old.motion, name) for name in DERIVATIVES}
    trial = old._replace(
        z=z,
        motion=motion._replace(**known),
        residual=jnp.max(jnp.abs(right)),
        run_status=motion.status,
    )
    falls = trial.residual <= (1.0 - 1e-4 * carry.factor) * old.residual
    tiny = trial.residual <= ROUNDING
    part = trial.residual / old.residual
    enough = jnp.where(carry.again, part <= A_QUARTER[0], falls | tiny)
    good = _fine(trial, scales) & enough
    whole = carry.factor == 1.0
    again = good & whole & (carry.rounds == 0) & (A_QUARTER[0] < part) & (part < A_QUARTER[1])
    updated = _updated(carry.inverse, step / columns, right - carry.right)
    new = carry._replace(
        found=keep(good, trial, old),
        right=jnp.where(good, right, carry.right),
        inverse=jnp.where(good, updated, carry.inverse),
        step=step,
        again=again & ~carry.last,
        # A step is shortened only if the derivatives are those of the point itself.
        factor=jnp.where(good | carry.again, 1.0, SHORTENED * carry.factor),
        away=carry.away + jnp.where(good, equations.size_of(step), 0.0),
        rounds=carry.rounds + 1,
        # A residual of rounding errors cannot fall any more.
        last=carry.last | (good & tiny & (old.residual <= ROUNDING)),
    )
    return _judged(carry, new, good, (part <= CONTRACTS) & whole)


def _judged(carry: _Kept, new: _Kept, good, contracts) -> _Kept:
    """The state after a step: whether the derivatives are stale, and whether the search ends."""
    arrived = new.next_size <= SAME_POINT
    fails = ~good & (new.factor < SHORTEST)
    here = new.away <= SAME_POINT
    stale = jnp.where(good, ~contracts | arrived, (carry.away > 0.0) & ~carry.again)
    status = jnp.where(fails, int(OrbitStatus.NO_CONVERGENCE), new.found.status)
    return new._replace(
        stale=stale | new.last | fails | (new.rounds >= KEPT_ROUNDS),
        done=fails | (here & (new.last | (good & arrived))),
        found=new.found._replace(status=status),
    )


def _updated(
    inverse: Float[Array, "u e"], step: Float[Array, " u"], change: Float[Array, " e"]
) -> Float[Array, "u e"]:
    """Broyden's update of an inverse: the nearest matrix that maps ``change`` to ``step``. Source:
    J. E. Dennis, R. B. Schnabel, Numerical Methods for Unconstrained Optimization and Nonlinear
    Equations (1983), section 8.3."""
    predicted, row = matvec(inverse, change), matvec(inverse.T, step)
    denominator = jnp.sum(step * predicted)
    sound = jnp.abs(denominator) > UPDATED * jnp.sum(step**2)
    factor = jnp.where(sound, 1.0 / jnp.where(sound, denominator, 1.0), 0.0)
    return inverse + factor * (step - predicted)[:, None] * row[None, :]


def _snapped(z: Unknowns, old: Found, scales: Scales) -> Unknowns:
    """Unknowns with states replaced by the ends of the motion where both differ by rounding only,
    so that a contact that is closed or sticks at an end does so exactly."""
    ends = jnp.roll(old.motion.ends, 1, axis=0)
    near = jnp.abs(z.states - ends) <= EQUAL * scales.state[None, :]
    return z._replace(states=jnp.where(near, ends, z.states))


def _fine(found: Found, scales: Scales) -> Bool[Array, ""]:
    """Whether there is a motion at all."""
    moves = (found.run_status == int(Status.OK)) & (found.z.period > 0)
    # A start inside another body is no motion.
    outside = found.motion.gap >= -CLOSED * jnp.max(scales.state)
    return moves & outside & jnp.isfinite(found.residual)


def _status(found: Found, fine) -> Int[Array, ""]:
    """The status of the search: the first one whose condition holds."""
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
