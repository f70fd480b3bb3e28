"""Base of a user's own solvers with a fixed step: only the physics of one step is needed."""

# No annotations as text here: equinox must see which of them are abstract.
import abc
from typing import Any, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array

from jfric.errors import ProblemError, require_no_text
from jfric.numerics.limits import require_step
from jfric.numerics.tolerances import sooner
from jfric.results.status import Status
from jfric.solvers.base import REST, AbstractSolver, OnePass, Prepared
from jfric.solvers.records import Records, last_writable, write_rows
from jfric.solvers.states import Local, MotionState
from jfric.system.fields import UnitText
from jfric.system.problem import Problem

#: Outputs that one step of such a solver may write.
SLOTS = 64


class AbstractFixedStep(AbstractSolver):
    """A user's own solver with the fixed step ``dt`` [s]: only the physics of one step.

    Time, outputs, the end of a run, batches and derivatives are provided. Outputs inside a step lie
    on the cubic through positions and velocities at both of its ends, velocities on a straight
    line; a step that covers more than :data:`SLOTS` outputs is cut short.
    Symplectic Euler without friction, over one period of an oscillator::

        >>> import equinox as eqx
        >>> from jfric.system.forces import applied_force
        >>> class Euler(jfric.AbstractFixedStep):
        ...     dt: float
        ...     max_steps: int = eqx.field(static=True, default=100_000)
        ...     adjoint: str = eqx.field(static=True, default="auto")
        ...
        ...     def motion(self, prepared, t, q, v, h, force):
        ...         a = self.local(prepared, t, q, v).a + prepared.mechanics.M_inverse @ force
        ...         return q + h * (v + h * a), v + h * a
        ...
        ...     def local(self, prepared, t, q, v):
        ...         none = jnp.zeros(0, jnp.int32)
        ...         force = applied_force(prepared.mechanics, t, q, v, none)
        ...         a = prepared.mechanics.M_inverse @ force
        ...         return jfric.Local(a, jnp.zeros(0), jnp.zeros(0), none, none)
        >>> elements = {"mass": jfric.Mass("x", 1.0), "spring": jfric.Spring("x", 1.0)}
        >>> start = {"x": jfric.InitialState(q=1.0)}
        >>> swing = jfric.Problem(["x"], elements, initial=start, time=2.0 * jnp.pi)
        >>> bool(abs(jfric.simulate(swing, Euler(dt=1e-3)).final.q[0] - 1.0) < 1e-4)
        True

    ``tests/test_own_solver.py`` contains a solver with friction.
    """

    dt: eqx.AbstractVar[Any]

    @abc.abstractmethod
    def motion(self, prepared: Prepared, t, q, v, h, force) -> tuple[Array, Array]:
        """Position and velocity (n,) a time ``h`` [s] after ``(t, q, v)``, under the extra
        constant ``force`` (n,) [N, N m]."""

    @abc.abstractmethod
    def local(self, prepared: Prepared, t, q, v) -> Local:
        """Accelerations, reactions and modes at ``(t, q, v)``, for outputs."""

    def require(self, problem: Problem) -> None:
        """Raise :class:`jfric.ProblemError` for what this solver cannot represent."""
        super().require(problem)
        require_positive_step(self.dt)

    def require_duration(self, duration: float) -> None:
        """Raise :class:`jfric.ProblemError` where ``duration`` [s] takes too many steps."""
        require_step(self.dt, duration)

    def slots(self, count: int) -> int:
        """Outputs of ``count`` that one step may write."""
        return min(count, SLOTS)

    def refined(self, problem: Problem) -> Self:
        """Copy of this solver with half the step."""
        return half_step(self)

    def one_pass(
        self, problem: Problem, prepared: Prepared, state: Any, ts, until, force
    ) -> OnePass:
        """One step of length ``dt``, or less to end at ``until``."""
        del problem
        dt = jnp.asarray(self.dt, state.t.dtype)
        slots = self.slots(ts.shape[0])

        def call(s: MotionState, records: Records, on):
            goal = sooner(until, jnp.where(on, last_writable(records, ts, slots), until))
            goal = jnp.where(goal > s.t, goal, until)
            left = goal - s.t
            arrives = left < (1.0 + REST) * dt
            h = jnp.where(on, jnp.where(arrives, left, dt), dt)
            q, v = self.motion(prepared, s.t, s.q, s.v, h, force)
            t = jnp.where(arrives, goal, s.t + h)
            finite = jnp.isfinite(jnp.sum(q) + jnp.sum(v))
            status = jnp.where(finite, s.status, int(Status.NON_FINITE)).astype(jnp.int32)
            new = MotionState(t, q, v, status, s.flags, s.steps + 1, s.event_count)
            return new, _write(self, prepared, records, ts, s, new, h, on & finite), None

        return OnePass(call)


def _write(solver: AbstractFixedStep, prepared, records: Records, ts, old, new, h, on) -> Records:
    """Outputs between two states."""
    if ts.shape[0] == 0:
        return records
    rise = new.q - old.q

    def at(time, inside):
        s = jnp.where(inside, (time - old.t) / h, 0.0)
        bend = 3.0 * rise - h * (2.0 * old.v + new.v)
        twist = h * (old.v + new.v) - 2.0 * rise
        q = old.q + s * (h * old.v + s * (bend + s * twist))
        v = old.v + s * (new.v - old.v)
        x = solver.local(prepared, jnp.where(inside, time, old.t), q, v)
        values = jnp.concatenate([q, v, x.a, x.lambda_t, x.lambda_n])
        return values, jnp.concatenate([x.mode, x.segment]).astype(jnp.int32)

    return write_rows(records, ts, jax.vmap(at), new.t, on, solver.slots(ts.shape[0]))


def half_step(solver: Any) -> Any:
    """Copy of ``solver`` with half its step ``dt``."""
    return eqx.tree_at(lambda s: s.dt, solver, 0.5 * solver.dt)


def require_positive_step(dt: Any) -> None:
    """Raise :class:`jfric.ProblemError` unless ``dt`` [s] is positive; a traced ``dt`` is not
    checked."""
    if isinstance(dt, UnitText):
        dt = dt.text
    require_no_text("dt", dt)
    if isinstance(dt, Tracer) or np.ndim(dt) > 0 or 0.0 < float(dt) < np.inf:
        return
    raise ProblemError(f"dt: found {float(dt):g}, must be positive, in seconds")
