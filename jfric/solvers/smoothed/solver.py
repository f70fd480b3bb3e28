"""The smoothed solver: ``init``, ``step`` and ``solve``."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar, NamedTuple, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float, Int

from jfric.contact import rules
from jfric.errors import ProblemError, nearest, require_one_of
from jfric.numerics.linear_algebra import diagonal_of
from jfric.numerics.loops import Adjoint, require_adjoint
from jfric.numerics.tolerances import sooner
from jfric.results.modes import Mode
from jfric.results.status import Flag, Status
from jfric.solvers.base import AbstractSolver, OnePass
from jfric.solvers.given_forces import first_negative_force
from jfric.solvers.records import Records
from jfric.solvers.smoothed.friction import (
    BREAKAWAY,
    CURVES,
    Curve,
    damper,
    friction_forces,
    normal_forces,
)
from jfric.solvers.states import Local, MotionState, generic_change
from jfric.system.features import taken_by
from jfric.system.fields import Scalar
from jfric.system.forces import applied_force, normal_forces_at
from jfric.system.mechanics import Mechanics
from jfric.system.problem import Problem

#: Names of diffrax's solvers, for files and the command line.
METHODS = {
    "tsit5": "Tsit5",
    "dopri5": "Dopri5",
    "dopri8": "Dopri8",
    "kvaerno3": "Kvaerno3",
    "kvaerno5": "Kvaerno5",
}


def _method(value: Any) -> Any:
    """A diffrax solver by its name; objects pass through."""
    if not isinstance(value, str):
        return value
    if value not in METHODS:
        raise ProblemError(
            f"method: found {value!r}{nearest(value, METHODS)}, allowed are {', '.join(METHODS)} "
            "and, in Python, any diffrax method"
        )
    import diffrax  # slow to import

    return getattr(diffrax, METHODS[value])()


class Prepared(NamedTuple):
    """The assembled system, the settings of smoothing, and the end of the run [s]."""

    mechanics: Mechanics
    settings: Settings
    end: Float[Array, ""]


class Smoothed(AbstractSolver):
    """The laws of friction and contact without kinks, solved by ``diffrax.diffeqsolve``.

    Friction rises from zero over a velocity of the order ``width`` [m/s or rad/s] along the curve
    ``law``: ``"tanh"``, ``"arctan"`` or ``"sqrt"`` (:mod:`jfric.solvers.smoothed.friction`).
    Unilateral contacts become springs of ``contact_stiffness`` [N/m] with a damper that gives
    their coefficient of restitution (:mod:`jfric.solvers.smoothed.friction`); impacts without
    tangential impulse cannot be represented.

    Its results are biased: contacts creep where they should stick, and all results have an error of
    the order of ``width``, which :func:`jfric.smoothing_bias` measures. Derivatives are those of
    the smoothed system; they tend to the exact ones when the width is small and the steps resolve
    it. With a load that jumps, the derivative with respect to the time of the jump is missing.

    ``method``: any diffrax solver, or one of ``tsit5``, ``dopri5``, ``dopri8``, ``kvaerno3``,
    ``kvaerno5`` (implicit: for steep laws and stiff contacts). ``controller``: any diffrax step
    size controller; by default a ``PIDController`` with ``rtol`` and ``atol`` [m, m/s]. Steps end
    at the breakpoints of all functions of time. ``dt0`` [s]: first step, needed with
    ``diffrax.ConstantStepSize``. ``adjoint``: see :class:`AbstractSolver`; ``diffrax_adjoint``: any
    diffrax adjoint, which replaces the one of ``"reverse"`` or ``"forward"``. ``max_steps``:
    largest number of steps of a run.

    Raises :class:`jfric.ProblemError` for settings that are not allowed, and, when a run begins,
    for what the laws without kinks cannot represent. The problem of :class:`jfric.Problem` creeps
    past the place where it should stick, at 0.32 m::

        >>> solution = jfric.simulate(problem, jfric.Smoothed(width=1e-2, method="tsit5"))
        >>> 1e-6 < abs(float(solution.final.q[0]) - 0.32) < 1e-2
        True
    """

    law: Curve = eqx.field(static=True, default="tanh")
    width: Scalar = 1e-3
    contact_stiffness: Scalar = None
    method: Any = eqx.field(converter=_method, default="tsit5")
    rtol: float = eqx.field(static=True, default=1e-8)
    atol: float = eqx.field(static=True, default=1e-10)
    controller: Any = None
    dt0: Scalar = None
    adjoint: Adjoint = eqx.field(static=True, default="auto")
    diffrax_adjoint: Any = None
    max_steps: int = eqx.field(static=True, default=1_000_000)

    def __check_init__(self):
        require_one_of("law", self.law, CURVES)
        require_adjoint(self.adjoint)
        if self.diffrax_adjoint is not None and self.adjoint == "auto":
            raise ProblemError(
                "adjoint: found 'auto', must be 'reverse' or 'forward' with a diffrax_adjoint"
            )
        for name in ("width", "contact_stiffness", "dt0"):
            value = getattr(self, name)
            known = isinstance(value, (int, float, jax.Array)) and not isinstance(value, Tracer)
            if known and np.ndim(value) == 0 and not float(value) > 0.0:
                raise ProblemError(f"{name}: found {float(value):g}, must be positive")

    name: ClassVar[str] = "smoothed"
    takes: ClassVar[frozenset[str]] = taken_by("smoothed")
    remark: ClassVar[str] = "values and derivatives are those of a law without kinks, biased"

    def require(self, problem: Problem) -> None:
        """Raise :class:`jfric.ProblemError` for what this solver cannot represent."""
        super().require(problem)
        require_smoothed(problem, self)

    def prepare(self, problem: Problem, end=None) -> Prepared:
        """The assembled problem with the springs and dampers of its contacts."""
        mechanics, end = super().prepare(problem, end)
        dtype = mechanics.K.dtype
        stiffness = jnp.asarray(
            1.0 if self.contact_stiffness is None else self.contact_stiffness, dtype
        )
        settings = Settings(
            width=jnp.asarray(self.width, dtype),
            stiffness=stiffness,
            damping=damper(mechanics, stiffness),
            force=jnp.zeros((mechanics.n,), dtype),
        )
        return Prepared(mechanics, settings, end)

    def one_pass(
        self, problem: Problem, prepared: Prepared, state: MotionState, ts, until, force
    ) -> OnePass:
        """One call of the integrator, up to ``until``; outputs are not written."""

        def call(s: MotionState, records: Records, on):
            # The integrator gets an empty interval where nothing is left to do.
            goal = jnp.where(on, until, s.t)
            nothing = jnp.zeros((0,), s.t.dtype)
            return *self.run(problem, prepared, s, records, nothing, goal, force), None

        return OnePass(call)

    def run(
        self,
        problem: Problem,
        prepared: Prepared,
        state: MotionState,
        records: Records,
        ts,
        until,
        force,
    ) -> tuple[MotionState, Records]:
        """Run the integrator to ``until`` [s]; returns the state and the filled buffers."""
        del problem
        mechanics, settings, _ = prepared
        settings = settings._replace(force=force)
        begun, runs = state.status, state.status == int(Status.OK)
        until = jnp.where(runs, until, state.t)
        moment = first_negative_force(mechanics, state.t, until)
        moment = jnp.where(runs, moment, state.t)
        end = sooner(until, moment)
        missed = ~(ts < moment) | (ts > until)
        ts = jnp.where(ts < state.t, state.t, sooner(ts, end))
        final, (q, v) = self._integrate(
            mechanics, settings, state, jnp.concatenate([ts, end[None]])
        )
        stops = (final.status == int(Status.OK)) & (moment <= end)
        status = jnp.where(stops, int(Status.NEGATIVE_FORCE), final.status)
        status = jnp.where(runs, status, begun).astype(jnp.int32)
        final = eqx.tree_at(lambda s: s.status, final, status)
        if not ts.shape[0]:
            return final, records
        x = jax.vmap(lambda t, q, v: local(mechanics, settings, self.law, t, q, v))(ts, q, v)
        modes = jnp.concatenate([x.mode, x.segment], axis=1)
        values = jnp.concatenate([q, v, x.a, x.lambda_t, x.lambda_n], axis=1)
        missed = (missed | ~jnp.isfinite(q[:, 0]))[:, None]
        return final, records._replace(
            output_values=jnp.where(missed, jnp.nan, values),
            output_modes=jnp.where(missed, -1, modes),
        )

    def refined(self, problem: Problem) -> Self | None:
        """Copy of this solver with tolerances 100 times as small; None with a user's controller."""
        if self.controller is not None:
            return None
        return dataclasses.replace(self, rtol=0.01 * self.rtol, atol=0.01 * self.atol)

    def _integrate(self, mechanics: Mechanics, settings: Settings, state: MotionState, ts):
        """The state at the last of ``ts``, and positions and velocities at the others."""
        import diffrax

        name = self.law
        # Plain arrays: diffrax's backward adjoint fails on empty containers.
        arrays, structure = jax.tree.flatten((mechanics, settings))

        def motion(t, y, args):
            mechanics, settings = jax.tree.unflatten(structure, args)
            q, v = y
            return v, local(mechanics, settings, name, t, q, v).a

        def field(t, y, args):
            rate = motion(t, y[0], args)
            if y[1] is None:
                return rate, None
            # Implicit methods differentiate the rate of the change, too.
            t, here, args = jax.lax.stop_gradient((t, y[0], args))
            return rate, jax.jvp(lambda x: motion(t, x, args), (here,), (y[1],))[1]

        solution = diffrax.diffeqsolve(
            diffrax.ODETerm(field),
            self.method,
            t0=state.t,
            t1=ts[-1],
            dt0=None if self.dt0 is None else jnp.asarray(self.dt0, ts.dtype),
            y0=((state.q, state.v), self._change(mechanics)),
            args=arrays,
            saveat=diffrax.SaveAt(ts=ts),
            stepsize_controller=self._controller(mechanics),
            adjoint=self._diffrax_adjoint(),
            max_steps=self.max_steps,
            throw=False,
        )
        assert solution.ys is not None
        # Outputs that were not reached contain infinities.
        q, v = (jnp.where(jnp.isfinite(y), y, jnp.nan) for y in solution.ys[0])
        status = jnp.where(state.status == 0, _status(solution.result), state.status)
        arrived = jnp.all(jnp.isfinite(q[-1])) & jnp.all(jnp.isfinite(v[-1]))
        lost = (status == int(Status.OK)) & ~arrived
        status = jnp.where(lost, int(Status.NON_FINITE), status).astype(jnp.int32)
        steps = state.steps + solution.stats["num_steps"].astype(jnp.int32)
        ok = status == int(Status.OK)
        t = jnp.where(ok, ts[-1], state.t)
        jumps = jnp.sort(mechanics.jumps())
        together = jnp.any((jumps[1:] == jumps[:-1]) & (jumps[1:] > state.t) & (jumps[1:] < t))
        flags = state.flags | jnp.where(together, int(Flag.SIMULTANEOUS), 0).astype(jnp.int32)
        final = MotionState(t, q[-1], v[-1], status, flags, steps, state.event_count)
        return final, (q[:-1], v[:-1])

    def _change(self, mechanics: Mechanics):
        """Small change of positions and velocities that is integrated along where derivatives are
        required, see :mod:`jfric.solvers.states`."""
        if self.adjoint == "none":
            return None
        change = generic_change(jnp.sqrt(diagonal_of(mechanics.M)))
        return tuple(jnp.split(change, 2))

    def _diffrax_adjoint(self):
        import diffrax

        if self.diffrax_adjoint is not None:
            return self.diffrax_adjoint
        reverse = self.adjoint == "reverse"
        return diffrax.RecursiveCheckpointAdjoint() if reverse else diffrax.ForwardMode()

    def _controller(self, mechanics: Mechanics):
        import diffrax

        controller = self.controller
        if controller is None:
            controller = diffrax.PIDController(rtol=self.rtol, atol=self.atol)
            if self.adjoint != "none":
                mean = controller.norm

                def norm(error):
                    if len(error) != 2:
                        # A backward adjoint has a state of its own.
                        return mean(error)
                    motion, change = error
                    return jnp.maximum(mean(motion), mean(change))

                controller = dataclasses.replace(controller, norm=norm)
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


class Settings(NamedTuple):
    """Settings of smoothing, and an extra force; arrays, so that derivatives pass through."""

    width: Float[Array, ""]
    stiffness: Float[Array, ""]
    damping: Float[Array, " nu"]
    #: Extra constant force.
    force: Float[Array, " n"]


def local(mechanics: Mechanics, settings: Settings, curve: str, t, q, v) -> Local:
    """Accelerations, reactions and modes at ``(t, q, v)`` under smoothed laws."""
    z, z_dot = mechanics.base_motion(t)
    piecewise = mechanics.piecewise
    x = piecewise.directions @ q + piecewise.base_directions @ z
    rate = piecewise.directions @ v + piecewise.base_directions @ z_dot
    segment = piecewise.segment_at(x, rate)
    f = applied_force(mechanics, t, q, v, segment) + settings.force
    lambda_n = normal_forces(mechanics, t, q, v, settings.stiffness, settings.damping)
    given = normal_forces_at(mechanics, t, q, v, segment)
    normal_force = jnp.concatenate([given, lambda_n])
    gamma = mechanics.sliding_velocities(t, v)
    lambda_t = friction_forces(mechanics, gamma, normal_force, settings.width, curve)
    f = f + mechanics.R_T.T @ lambda_t + mechanics.W_N.T @ lambda_n
    if mechanics.reacting:
        rates = mechanics.rates_by_contacts(t, q, v, lambda_t, lambda_n, gamma)
        f = f + mechanics.reaction_to_rates(rates)
    return Local(
        a=mechanics.M_inverse @ f,
        lambda_t=lambda_t,
        lambda_n=lambda_n,
        mode=_modes(mechanics, settings, t, q, gamma),
        segment=piecewise.shown(segment),
    )


def _modes(mechanics: Mechanics, settings: Settings, t, q, gamma) -> Int[Array, " nt"]:
    """Modes in the sense of the exact law: creep below the width counts as stick."""
    widths = jnp.asarray(
        [BREAKAWAY if law.drops_at_onset else 1.0 for law in mechanics.laws], gamma.dtype
    )
    frictionless = np.asarray(mechanics.frictionless, bool)
    mode = rules.closed_mode(frictionless, gamma, widths * settings.width)
    mode = rules.reported_mode(frictionless, mode)
    if mechanics.n_unilateral:
        nf = mechanics.n_friction
        is_open = mechanics.gaps(t, q) >= 0
        mode = mode.at[nf:].set(jnp.where(is_open, Mode.OPEN, mode[nf:]))
    return mode.astype(jnp.int32)
