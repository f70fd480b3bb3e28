"""Interface of a fit: from parameters and an experiment to predicted samples.

Everything else in this folder (starts, optimisers, checks, uncertainty) works with any
:class:`AbstractModel`.
"""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from jfric.errors import ProblemError, nearest, within
from jfric.fits.data.experiment import Experiment
from jfric.fits.data.stacking import Data, check_inputs, with_inputs
from jfric.fits.measurement import acting, measurement_parameters, shown, total_delay
from jfric.fits.memory import START, bounded_states, with_starts
from jfric.numerics.loops import Adjoint, keep, run_passes
from jfric.numerics.polynomials import horner, with_derivatives
from jfric.results.signals import Command, Signal, find_signal, look_up
from jfric.results.solution import Solution
from jfric.results.status import Status
from jfric.solvers.base import AbstractSolver
from jfric.solvers.records import empty_records
from jfric.solvers.simulation import simulate
from jfric.system.assembly import assemble
from jfric.system.control import command_places, driven, target
from jfric.system.expression import Expression
from jfric.system.naming import find_path, parameters
from jfric.system.problem import Problem
from jfric.system.start import started


class Prediction(NamedTuple):
    """Samples that a model predicts for one experiment, and the status of its simulation."""

    y: Float[Array, "m k"]
    #: :class:`jfric.Status` code.
    status: Int[Array, ""]


class Motion(NamedTuple):
    """Modes and sliding velocities of the contacts at the times of the samples."""

    #: :class:`jfric.Mode` of each contact.
    mode: Int[Array, "m nt"]
    sliding_velocity: Float[Array, "m nt"]


class AbstractModel(eqx.Module):
    """Model of one experiment, whose predicted samples a fit compares with the measured ones.

    The columns of a prediction are the ``signals`` of the data. If a subclass has a field
    ``problem``, paths of parameters are completed, and their bounds checked, by that problem.
    Example: see :class:`jfric.SampledModel`.
    """

    #: Whether numbers of one experiment (``data.x0``) replace any parameters of the problem.
    takes_known: ClassVar[bool] = False
    #: Whether one member is work enough for a call: a long record, sample by sample.
    is_long: ClassVar[bool] = False
    #: Whether samples follow each other in time, so that their first part is also a record.
    runs_in_time: ClassVar[bool] = True

    def check(self, experiments: Sequence[Experiment], signals: Sequence[str]) -> None:
        """Raise :class:`jfric.ProblemError` for experiments that this model cannot predict."""

    @abc.abstractmethod
    def default(self, path: str, experiment: Experiment) -> float:
        """Value of the parameter ``path`` if it is not fitted; raises
        :class:`jfric.ProblemError` for an unknown one."""

    @abc.abstractmethod
    def initial(self, experiment: Experiment) -> tuple[float, dict[str, float]]:
        """Start time of the simulation of ``experiment`` [s], and values set by its initial
        state."""

    @abc.abstractmethod
    def simulate_outputs(self, values: Mapping[str, Array], data: Data) -> Prediction:
        """Predicted samples at ``data.t`` for parameter ``values`` by path.

        Traced: runs under ``jit``, ``vmap`` and ``jvp``. Rows at infinite times are not read.
        """

    def motion(self, values: Mapping[str, Array], data: Data) -> Motion | None:
        """Motion of the contacts, for :func:`jfric.check`; None if the model does not have it."""
        return None

    def refined(self) -> AbstractModel | None:
        """A copy of this model with finer steps; None where the steps are exact."""
        return None

    def with_adjoint(self, adjoint: Adjoint) -> AbstractModel:
        """The model for derivatives in reverse mode (``"reverse"``) or for none (``"none"``): this
        one unless overridden."""
        del adjoint
        return self

    def remarks(self) -> list[str]:
        """Known errors of the derivatives of the predictions, as sentences."""
        return []

    def target(self, data: Data) -> Float[Array, "m k"]:
        """Samples with which the prediction is compared: the measured ones."""
        return data.y


class OutputModel(AbstractModel):
    """Simulated signals at the times of the samples.

    ``y(t) = gain * signal(t - delay) + offset``, behind a filter; the parameters are those of the
    problem and those of :mod:`jfric.fits.measurement`. Before the start a signal has its initial
    value.
    """

    takes_known = True

    problem: Problem
    solver: AbstractSolver
    #: How measured inputs go on between samples: ``"zero"`` (held) or ``"linear"``.
    hold: str = eqx.field(static=True, default="zero")
    #: Whether states of elements without a value begin as in steady sliding.
    steady: bool = eqx.field(static=True, default=False)

    def check(self, experiments: Sequence[Experiment], signals: Sequence[str]) -> None:
        self.solver.require(self.problem)
        for name in signals:
            with within(f"y.{name}: "):
                _quantity(self.problem, name)
        for e in experiments:
            check_inputs(self.problem, tuple(e.u or {}), self.hold)

    def default(self, path: str, experiment: Experiment) -> float:
        sensors = measurement_parameters(tuple(experiment.y), tuple(experiment.u or {}))
        if path in sensors:
            return sensors[path]
        if path.removeprefix(f"{START}.") in bounded_states(self.problem):
            return 0.0
        try:
            name = find_path(self.problem, path)
        except KeyError:
            known = [*parameters(self.problem), *sensors]
            raise ProblemError(
                f"free: no parameter {path!r}{nearest(path, known)}; jfric show or "
                "jfric.parameters lists those of the problem, and there are " + ", ".join(sensors)
            ) from None
        own = self.initial(experiment)[1]
        if name in own:
            return own[name]
        value = parameters(self.problem)[name]
        if isinstance(value, Expression):
            shared = ", ".join(f"parameters.{r}" for r in value.references)
            raise ProblemError(f"free: {name} is computed as {value.text!r}; free {shared} instead")
        if np.ndim(value) != 0:
            raise ProblemError(f"free: {name} is a list of numbers, a fit takes single numbers")
        return float(value)

    def initial(self, experiment: Experiment) -> tuple[float, dict[str, float]]:
        own: dict[str, float] = {}
        for dof, state in (experiment.x0 or {}).items():
            if dof not in self.problem.dofs:
                raise ProblemError(
                    f"x0.{dof}: no degree of freedom {dof!r}{nearest(dof, self.problem.dofs)}"
                )
            pair = np.atleast_1d(np.asarray(state, float))
            if pair.shape not in ((1,), (2,)):
                raise ProblemError(f"x0.{dof}: found {state!r}, needs q or (q, v)")
            for letter, value in zip("qv", pair, strict=False):
                own[find_path(self.problem, f"initial.{dof}.{letter}")] = float(value)
        first = float(experiment.t[0])
        if experiment.start is not None:
            return experiment.start, own
        start = first if experiment.x0 is not None else float(self.problem.resolved().time.start)
        if start > first:
            raise ProblemError(
                f"t: found a first sample at {first:g} s, before the start of the problem at "
                f"{start:g} s; give start and x0 of the experiment"
            )
        return start, own

    def simulate_outputs(self, values: Mapping[str, Array], data: Data) -> Prediction:
        changed = self._changed(values, data)
        signals = [_quantity(self.problem, name) for name in data.signals]
        delays = [total_delay(name, values) for name in data.signals]
        sets = [isinstance(s, Command) for s in signals]
        if not any(sets) and all(f"sensor.{name}.delay" not in values for name in data.signals):
            columns, status = self._sampled(changed, signals, _earlier(data, delays[0]))
        else:
            # Sensors read at different times: one run covers all of them, in order of time. What a
            # controller sets is recorded as it acts after the sample.
            looks = [
                _earlier(data, delay) + later * _after(data)
                for delay, later in zip(delays, sets, strict=True)
            ]
            every = jnp.concatenate(looks)
            order = jnp.argsort(every)
            found, status = self._sampled(changed, signals, every[order])
            found = found[jnp.argsort(order)].reshape(len(signals), -1, len(signals))
            columns = jnp.stack([found[j, :, j] for j in range(len(signals))], axis=1)
        y = [shown(data.t, columns[:, j], s, values) for j, s in enumerate(data.signals)]
        return Prediction(jnp.stack(y, axis=1), status)

    def _sampled(self, changed: Problem, signals, ts):
        """Values (m, k) of the signals at the times ``ts``, and the status."""
        of_motion = all(isinstance(s, Signal) for s in signals)
        if of_motion and self.solver.has_polynomials and not self.solver.positions_jump:
            return sample_signals(changed, self.solver, signals, ts)
        solution = simulate(changed, self.solver, ts=ts)
        slide = _sliding(changed, solution)
        places = list(command_places(changed).values())

        def column(s: Signal | Command):
            if isinstance(s, Command):
                assert solution.commands is not None
                return solution.commands[:, places.index(s.path)]
            return getattr(solution, s.field, slide)[:, s.index]

        return jnp.stack([column(s) for s in signals], axis=1), solution.status

    def motion(self, values: Mapping[str, Array], data: Data) -> Motion | None:
        changed = self._changed(values, data)
        ts = _earlier(data, total_delay(data.signals[0], values))
        solution = simulate(changed, self.solver, ts=ts)
        return Motion(solution.mode, _sliding(changed, solution))

    def refined(self) -> AbstractModel | None:
        finer = self.solver.refined(self.problem)
        return None if finer is None else dataclasses.replace(self, solver=finer)

    def with_adjoint(self, adjoint: Adjoint) -> AbstractModel:
        solver = dataclasses.replace(self.solver, adjoint=adjoint)
        return dataclasses.replace(self, solver=solver)

    def remarks(self) -> list[str]:
        remark = self.solver.remark
        return [f"{type(self.solver).__name__}: {remark}"] if remark else []

    def _changed(self, values: Mapping[str, Array], data: Data) -> Problem:
        """The problem of one experiment, with its inputs and parameters."""
        own = measurement_parameters(data.signals, tuple(data.u))
        system = {path: x for path, x in values.items() if path not in own}
        steady = "initial" if self.steady else None
        changed = with_starts(self.problem, {**data.x0, **system}, steady)
        u = {path: acting(data.t, x, path, values, self.hold) for path, x in data.u.items()}
        changed = with_inputs(changed, data.t, u, self.hold)
        later = any(isinstance(_quantity(self.problem, name), Command) for name in data.signals)
        times = (data.start, data.end + later * _after(data))
        return eqx.tree_at(lambda p: (p.time.start, p.time.end), changed, times)


def _quantity(problem: Problem, name: str) -> Signal | Command:
    """The measured quantity: a part of the motion, or what a controller sets, also by the path of
    the load that it sets."""
    for label, path in command_places(problem).items():
        if name == target(problem, path):
            name = f"command.{label}"
    if name.partition(".")[0] == "command":
        found = look_up(problem, name)[1]
        assert isinstance(found, Command)
        return found
    return find_signal(problem, name)


def _after(data: Data):
    """Time [s] after a sample at which its output acts."""
    return 1e-9 * (data.end - data.start)


def _earlier(data: Data, delay):
    """Times at which a sensor that is ``delay`` [s] late reads the signal."""
    return data.t if delay is None else jnp.maximum(data.t - delay, data.start)


def _sliding(problem: Problem, solution: Solution):
    mechanics, s = assemble(problem), solution
    q, v = jax.vmap(mechanics.complete)(s.q, s.v, s.z)
    return jax.vmap(mechanics.sliding_at)(s.ts, q, v)


#: Samples that are evaluated together.
WINDOW = 48


class _Piece(NamedTuple):
    """Motion over the last pass: polynomials in ``(time - t)/h`` up to the time ``end``."""

    t: Float[Array, ""]
    h: Float[Array, ""]
    end: Float[Array, ""]
    table: Float[Array, "p k"]


class _Carry(NamedTuple):
    state: Any
    piece: _Piece
    #: Samples written so far.
    written: Int[Array, ""]


def sample_signals(
    problem: Problem, solver: AbstractSolver, signals: Sequence[Signal], ts: Float[Array, " m"]
) -> tuple[Float[Array, "m k"], Int[Array, ""]]:
    """Values of ``signals`` at the times ``ts``, which do not decrease, and the status of the
    trajectory; NaN at times that the trajectory does not reach.

    A pass of the event-driven solver may cover many samples. They are evaluated in windows,
    contiguous pieces of the output, from the polynomials of the pass; the next pass follows when
    all samples on this one are written.
    """
    problem = driven(started(problem))
    prepared = solver.prepare(problem)
    mechanics = prepared.mechanics
    dtype = mechanics.K.dtype
    target = jnp.asarray(prepared.end, dtype)
    state = solver.begin(problem, prepared, target)
    force, none = jnp.zeros((mechanics.n,), dtype), jnp.zeros((0,), dtype)
    records = empty_records(mechanics)
    one_pass = solver.next_pass(problem, prepared, state, none, target, force)
    columns = _columns(signals, mechanics.n)
    # A last sample that rounding put behind the end belongs to the end.
    slack = 4 * jnp.finfo(dtype).eps * jnp.abs(target)
    ts = jnp.where((ts > target) & (ts <= target + slack), target, ts)
    window = min(WINDOW, ts.shape[0])
    padded = jnp.concatenate([ts, jnp.full((window,), jnp.inf, dtype)])

    def one(s, on) -> tuple[Any, _Piece]:
        new, _, piece = one_pass.call(s, records, on)
        assert piece is not None
        piece = piece()
        table = jnp.stack([getattr(piece, f)[:, i] for f, i in columns], axis=1)
        # A pass that only settles modes covers no time.
        moves = new.t > s.t
        end = jnp.where(moves, new.t, -jnp.inf)
        return new, _Piece(s.t, jnp.where(moves, piece.h, 1.0), end, table)

    def exhausted(c: _Carry):
        return padded[c.written] > c.piece.end

    def active(c: _Carry):
        goes_on = solver.unfinished(prepared, c.state, target)
        ends = ~goes_on | (c.state.steps >= solver.max_steps)
        return (c.state.status == int(Status.OK)) & ~(ends & exhausted(c))

    def body(c: _Carry, y, on):
        fresh = exhausted(c)
        state, piece = keep(fresh, one(c.state, on & fresh), (c.state, c.piece))
        times = jax.lax.dynamic_slice_in_dim(padded, c.written, window)
        inside = on & (times <= piece.end)
        y = _overwritten(y, c.written, piece, times, inside)
        written = c.written + jnp.sum(inside, dtype=jnp.int32)
        return _Carry(state, piece, written), y

    table = jax.eval_shape(lambda s: one(s, True), state)[1].table
    nothing = _Piece(
        state.t, jnp.ones((), dtype), jnp.asarray(-jnp.inf, dtype), jnp.zeros(table.shape, dtype)
    )
    carry = _Carry(state, nothing, jnp.asarray(0, jnp.int32))
    y = jnp.full((padded.shape[0], len(columns)), jnp.nan, dtype)
    carry, y = run_passes(
        body, active, carry, y, max_steps=solver.max_steps, adjoint=solver.adjoint
    )
    state = carry.state
    status = solver.outcome(prepared, state, target)
    return _assembled(mechanics, signals, columns, ts, y[: ts.shape[0]]), status


def _overwritten(
    y: Float[Array, "r k"], written, piece: _Piece, times: Float[Array, " w"], inside
) -> Float[Array, "r k"]:
    """The output with values at the next ``times``, where these lie ``inside`` the piece."""
    # Infinite times would give undefined derivatives in reverse mode.
    s = (jnp.where(inside, times, piece.t) - piece.t) / piece.h
    old = jax.lax.dynamic_slice_in_dim(y, written, times.shape[0])
    values = jax.lax.stop_gradient(horner(piece.table[:, None, :], s[:, None]))
    values = jax.vmap(with_derivatives, (None, 0, 0))(piece.table, s, values)
    new = jnp.where(inside[:, None], values, old)
    return jax.lax.dynamic_update_slice_in_dim(y, new, written, 0)


def _columns(signals: Sequence[Signal], n: int) -> list[tuple[str, int]]:
    """Polynomials from which the signals are made; sliding velocities need the whole motion."""
    wanted = [(s.field, s.index) for s in signals if s.field != "sliding_velocity"]
    if len(wanted) < len(signals):
        motion = [(field, i) for field in "qv" for i in range(n)]
        return motion + [w for w in wanted if w not in motion]
    return list(dict.fromkeys(wanted))


def _assembled(mechanics, signals, columns, ts, y) -> Float[Array, "m k"]:
    found = []
    for signal in signals:
        if signal.field == "sliding_velocity":
            n = mechanics.n
            slides = jax.vmap(mechanics.sliding_at)(ts, y[:, :n], y[:, n : 2 * n])
            found.append(slides[:, signal.index])
        else:
            found.append(y[:, columns.index((signal.field, signal.index))])
    return jnp.stack(found, axis=1)
