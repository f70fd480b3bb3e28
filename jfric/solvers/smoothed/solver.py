"""The smoothed solver: ``init``, ``step`` and ``solve``."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float, Int

from jfric.errors import ProblemError, nearest
from jfric.solution import Events, Solution
from jfric.solvers.smoothed.contact import damper
from jfric.solvers.smoothed.friction import CURVES, Curve
from jfric.solvers.smoothed.motion import Settings, local
from jfric.status import Status
from jfric.system.fields import Scalar
from jfric.system.mechanics import Mechanics, assemble
from jfric.system.problem import Problem
from jfric.system.validation import require_inertia

#: Names for diffrax's solvers and adjoints, for files and the command line.
METHODS = {
    "tsit5": "Tsit5",
    "dopri5": "Dopri5",
    "dopri8": "Dopri8",
    "kvaerno3": "Kvaerno3",
    "kvaerno5": "Kvaerno5",
}
ADJOINTS = {
    "forward": "ForwardMode",
    "reverse": "RecursiveCheckpointAdjoint",
    "direct": "DirectAdjoint",
}


def _named(value: Any, what: str, classes: dict[str, str]) -> Any:
    """A diffrax object by its name; objects pass through."""
    if not isinstance(value, str):
        return value
    if value not in classes:
        raise ProblemError(
            f"{what}: found {value!r}{nearest(value, classes)}, allowed are {', '.join(classes)} "
            f"and, in Python, any diffrax {what}"
        )
    import diffrax  # slow to import

    return getattr(diffrax, classes[value])()


def _method(value: Any) -> Any:
    return _named(value, "method", METHODS)


def _adjoint(value: Any) -> Any:
    return _named(value, "adjoint", ADJOINTS)


class State(eqx.Module):
    """Position and velocity at a time, and what became of the integration so far."""

    t: Float[Array, ""]
    q: Float[Array, " n"]
    v: Float[Array, " n"]
    status: Int[Array, ""]
    steps: Int[Array, ""]


class StepInfo(NamedTuple):
    """Diagnostics of one call of the integrator: time passed [s], steps taken."""

    h: Float[Array, ""]
    steps: Int[Array, ""]


class Smoothed(eqx.Module):
    """The same laws without corners, solved by ``diffrax.diffeqsolve``.

    Friction rises from zero over a velocity of the order ``width`` [m/s or rad/s] along the curve
    ``law``: ``"tanh"``, ``"arctan"`` or ``"sqrt"`` (:mod:`jfric.solvers.smoothed.friction`).
    Unilateral contacts become springs of ``contact_stiffness`` [N/m] with a damper that gives
    their coefficient of restitution (:mod:`jfric.solvers.smoothed.contact`); impacts without
    tangential impulse cannot be represented.

    Its results are biased: contacts creep where they should stick, and everything is off by the
    order of ``width``. :func:`jfric.smoothing_bias` measures it. Derivatives are those of the
    smoothed system; they tend to the exact ones when the width is small and the steps resolve it.
    With a load that jumps, the derivative with respect to the time of the jump is missing.

    ``method``: any diffrax solver, or one of ``tsit5``, ``dopri5``, ``dopri8``, ``kvaerno3``,
    ``kvaerno5`` (implicit: for steep laws and stiff contacts). ``controller``: any diffrax step
    size controller; a ``PIDController`` with ``rtol`` and ``atol`` [m, m/s] unless given. Steps
    end at the breakpoints of all functions of time. ``dt0`` [s]: first step, needed with
    ``diffrax.ConstantStepSize``. ``adjoint``: ``"forward"`` (``jvp``, ``jacfwd``), ``"reverse"``
    (``grad``), ``"direct"`` (both) or any diffrax adjoint.
    """

    law: Curve = eqx.field(static=True, default="tanh")
    width: Scalar = 1e-3
    contact_stiffness: Scalar = None
    method: Any = eqx.field(converter=_method, default="tsit5")
    rtol: float = eqx.field(static=True, default=1e-8)
    atol: float = eqx.field(static=True, default=1e-10)
    controller: Any = None
    dt0: Scalar = None
    adjoint: Any = eqx.field(converter=_adjoint, default="forward")
    max_steps: int = eqx.field(static=True, default=1_000_000)

    def __check_init__(self):
        if self.law not in CURVES:
            raise ProblemError(
                f"law: found {self.law!r}{nearest(self.law, CURVES)}, allowed are "
                f"{', '.join(CURVES)}"
            )
        for name in ("width", "contact_stiffness", "dt0"):
            value = getattr(self, name)
            known = isinstance(value, (int, float, jax.Array)) and not isinstance(value, Tracer)
            if known and np.ndim(value) == 0 and not float(value) > 0.0:
                raise ProblemError(f"{name}: found {float(value):g}, must be positive")

    #: What it can be started from, and how it is best compiled: few kernels, run often.
    state_type: ClassVar[type] = State
    compile_quickly: ClassVar[bool] = False

    def require(self, problem: Problem) -> None:
        """Raise :class:`jfric.ProblemError` for what this solver cannot represent."""
        require_inertia(problem)
        require_smoothed(problem, self)

    def init(self, problem: Problem) -> State:
        """State at the problem's start time."""
        self.require(problem)
        problem = problem.resolved()
        initial = [problem.initial[d] for d in problem.dofs]
        q, v = jnp.stack([i.q for i in initial]), jnp.stack([i.v for i in initial])
        zero = jnp.asarray(0, jnp.int32)
        return State(jnp.asarray(problem.time.start, q.dtype), q, v, zero, zero)

    def step(
        self, problem: Problem, state: State, *, until=None, force=None
    ) -> tuple[State, StepInfo]:
        """One call of the integrator, up to the time ``until`` [s] (default: the problem's end)
        under a constant extra ``force`` (n,) [N, N m]."""
        mechanics, settings, until = self._prepare(problem, until, force)
        new, _ = self._integrate(mechanics, settings, state, until[None])
        return new, StepInfo(new.t - state.t, new.steps - state.steps)

    def advance(self, problem: Problem, state: State, until, *, force=None) -> State:
        """Like :meth:`step`, without diagnostics."""
        return self.step(problem, state, until=until, force=force)[0]

    def solve(self, problem: Problem, ts, start: State | None, end) -> Solution:
        """Integrate to the end; see :func:`jfric.simulate`."""
        mechanics, settings, end = self._prepare(problem, end, None)
        state = self.init(problem) if start is None else _restart(start)
        ts = jnp.zeros((0,)) if ts is None else jnp.asarray(ts)
        ts = jnp.clip(ts.astype(state.t.dtype), state.t, end)
        final, (q, v) = self._integrate(
            mechanics, settings, state, jnp.concatenate([ts, end[None]])
        )
        at = jax.vmap(lambda t, q, v: local(mechanics, settings, self.law, t, q, v))
        found = at(ts, q, v)
        known = jnp.isfinite(q[:, :1])
        return Solution(
            ts=ts,
            q=q,
            v=v,
            a=found.a,
            lambda_n=found.lambda_n,
            lambda_t=found.lambda_t,
            mode=jnp.where(known, found.mode, -1),
            segment=jnp.where(known, found.segment, -1),
            events=_no_events(mechanics),
            status=final.status,
            flags=jnp.asarray(0, jnp.int32),
            final=final,
            steps=final.steps,
            axes=mechanics.axes,
            names=mechanics.contact_names + mechanics.piecewise.names,
            segment_labels=mechanics.piecewise.labels,
        )

    def _prepare(self, problem: Problem, until, force):
        mechanics = assemble(problem)
        dtype = mechanics.K.dtype
        until = problem.resolved().time.end if until is None else until
        force = jnp.zeros((mechanics.n,)) if force is None else jnp.asarray(force)
        stiffness = jnp.asarray(
            1.0 if self.contact_stiffness is None else self.contact_stiffness, dtype
        )
        settings = Settings(
            width=jnp.asarray(self.width, dtype),
            stiffness=stiffness,
            damping=damper(mechanics, stiffness),
            force=force.astype(dtype),
        )
        return mechanics, settings, jnp.asarray(until, dtype)

    def _integrate(self, mechanics: Mechanics, settings: Settings, state: State, ts):
        """The state at the last of ``ts``, and positions and velocities at the others."""
        import diffrax

        name = self.law
        # Plain arrays: diffrax's backward adjoint stumbles over empty containers.
        arrays, structure = jax.tree.flatten((mechanics, settings))

        def field(t, y, args):
            mechanics, settings = jax.tree.unflatten(structure, args)
            q, v = y
            return v, local(mechanics, settings, name, t, q, v).a

        solution = diffrax.diffeqsolve(
            diffrax.ODETerm(field),
            self.method,
            t0=state.t,
            t1=ts[-1],
            dt0=None if self.dt0 is None else jnp.asarray(self.dt0, ts.dtype),
            y0=(state.q, state.v),
            args=arrays,
            saveat=diffrax.SaveAt(ts=ts),
            stepsize_controller=self._controller(mechanics),
            adjoint=self.adjoint,
            max_steps=self.max_steps,
            throw=False,
        )
        assert solution.ys is not None
        # What was not reached holds infinities.
        q, v = (jnp.where(jnp.isfinite(y), y, jnp.nan) for y in solution.ys)
        status = jnp.where(state.status == 0, _status(solution.result), state.status)
        arrived = jnp.all(jnp.isfinite(q[-1])) & jnp.all(jnp.isfinite(v[-1]))
        lost = (status == int(Status.OK)) & ~arrived
        status = jnp.where(lost, int(Status.NON_FINITE), status).astype(jnp.int32)
        steps = state.steps + solution.stats["num_steps"].astype(jnp.int32)
        ok = status == int(Status.OK)
        final = State(jnp.where(ok, ts[-1], state.t), q[-1], v[-1], status, steps)
        return final, (q[:-1], v[:-1])

    def _controller(self, mechanics: Mechanics):
        import diffrax

        controller = self.controller
        if controller is None:
            controller = diffrax.PIDController(rtol=self.rtol, atol=self.atol)
        breaks = mechanics.breakpoints()
        adaptive = isinstance(controller, diffrax.AbstractAdaptiveStepSizeController)
        if breaks.shape[0] == 0 or not adaptive:
            return controller
        if isinstance(controller, diffrax.ClipStepSizeController):
            return controller
        return diffrax.ClipStepSizeController(controller, jump_ts=jnp.sort(breaks))


def require_smoothed(problem: Problem, solver: Smoothed) -> None:
    """Raise :class:`ProblemError` for contacts that ``solver`` cannot represent."""
    contacts = problem.section("contact")
    for name, contact in contacts.items():
        where = "contact" if len(contacts) == 1 else f"contact.{name}"
        if solver.contact_stiffness is None:
            raise ProblemError(
                f"contact_stiffness: missing; the solver smoothed makes {where} a spring and "
                "needs its stiffness [N/m]"
            )
        if contact.impact == "none" and contact.tangent is not None:
            raise ProblemError(
                f"{where}.impact: found 'none', but smoothed contacts transmit friction during "
                "impacts; the solver smoothed takes 'coulomb' only"
            )


def _status(result):
    import diffrax

    stalled = jnp.where(
        result == diffrax.RESULTS.max_steps_reached, int(Status.MAX_STEPS), int(Status.STALLED)
    )
    return jnp.where(result == diffrax.RESULTS.successful, int(Status.OK), stalled)


def _restart(state: State) -> State:
    return eqx.tree_at(lambda s: s.steps, state, jnp.asarray(0, jnp.int32))


def _no_events(mechanics: Mechanics) -> Events:
    """An empty log: a smoothed law has no changes of mode."""
    none, index = jnp.zeros((0,), mechanics.K.dtype), jnp.zeros((0,), jnp.int32)
    states = jnp.zeros((0, mechanics.n), mechanics.K.dtype)
    count = jnp.asarray(0, jnp.int32)
    return Events(none, index, index, index, index == 1, states, states, states, count)
