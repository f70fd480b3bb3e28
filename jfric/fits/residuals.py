"""Kinds of residuals: the quantities that a fit compares, each with its model and its checks."""

from __future__ import annotations

import abc
import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import numpy as np

from jfric.errors import ProblemError, require_one_of
from jfric.fits.curve_prior import with_elements
from jfric.fits.data.experiment import Experiment
from jfric.fits.force_balance import at_even_steps, smooth_motion
from jfric.fits.free import Free, full_controller
from jfric.fits.inverse_model import InverseModel, inverse_experiments
from jfric.fits.memory import (
    STARTS,
    StartInWindow,
    StartOfStates,
    free_starts,
    has_memory,
    with_history,
)
from jfric.fits.model import AbstractModel, OutputModel
from jfric.fits.objective import Residual, weighted
from jfric.fits.sampled_model import (
    LoopAndWindowsModel,
    SampledModel,
    closed_loop,
    in_loop,
    step_of,
    with_found_delay,
)
from jfric.fits.steady_model import SteadyModel
from jfric.numerics.limits import SAMPLES, require_count
from jfric.solvers.base import require_solver
from jfric.solvers.event_driven.solver import EventDriven
from jfric.solvers.sampled.equations import is_one_degree
from jfric.system.assembly import assemble
from jfric.system.control import apart, controllers
from jfric.system.controller import Controller
from jfric.system.problem import Problem

#: Default length of a window [s].
WINDOW = 1.0
#: Samples from which on a record is simulated from sample to sample.
LONG = 500
#: Samples whose parabola gives position and velocity at the start of a window.
SLOPE = 11


class Simulation(NamedTuple):
    """Settings of the simulation of a fit: its solver, None for the best one, and how measured
    inputs go on between samples (``"zero"`` or ``"linear"``)."""

    solver: Any = None
    hold: str = "zero"

    def model(self, problem: Problem) -> OutputModel:
        """The simulated signals of ``problem``."""
        return OutputModel(problem, self.differentiable(), self.hold)

    def best(self, problem: Problem, records: Sequence[Experiment]) -> AbstractModel:
        """The model from sample to sample if the problem allows it, else the simulated signals."""
        found = sampled_or_whole(problem, records, *self)
        return self.model(found) if isinstance(found, Problem) else found

    def differentiable(self) -> Any:
        """The solver, with derivatives in forward mode unless it is set otherwise: Jacobians use
        forward mode, and gradients of many parameters change to reverse mode themselves."""
        # A log of events is useless for a fit.
        solver = EventDriven(max_events=0) if self.solver is None else self.solver
        require_solver(solver)
        return replace(solver, adjoint="forward") if solver.adjoint == "auto" else solver


class Posed(NamedTuple):
    """A fit as it is computed: model, records, free parameters, and signals to compare."""

    model: AbstractModel
    experiments: Sequence[Experiment]
    free: Mapping[str, Free]
    observe: Any


class AbstractResidual(abc.ABC):
    """A kind of residuals of a problem."""

    #: Name in files and commands.
    word: ClassVar[str]
    #: Whether whole runs are compared, whose parameters may vary from run to run.
    of_runs: ClassVar[bool] = True

    @property
    def compare(self) -> Residual:
        """Residuals of predicted and measured samples."""
        return weighted

    @abc.abstractmethod
    def pose(
        self,
        problem: Problem,
        experiments: Sequence[Experiment],
        free: Mapping[str, Free],
        observe: Any,
        simulation: Simulation,
    ) -> Posed:
        """The fit of ``problem`` with these residuals; names are full paths. Raises
        :class:`jfric.ProblemError` for records without such residuals."""

    def in_windows(self, length: float) -> AbstractResidual | None:
        """The residuals on windows of ``length`` [s]; None if this kind has no windows."""
        return None


@dataclass(frozen=True)
class Outputs(AbstractResidual):
    """Simulated signals compared with the measured ones.

    A controller of the problem acts in the simulation, unless the records have its force as an
    input. What it sets is a signal by the path of its load (``load.F``).
    ``compare(predicted, measured, weight)``: residuals of arrays (m, k) of one experiment; ``weight
    (predicted - measured)`` by default::

        >>> jfric.Outputs().word
        'output'
    """

    word = "output"
    compare: Callable[[Any, Any, Any], Any] = weighted  # pyright: ignore

    def pose(self, problem, experiments, free, observe, simulation):
        problem, experiments = in_loop(problem, experiments)
        return Posed(simulation.model(problem), experiments, free, observe)

    def in_windows(self, length: float) -> AbstractResidual | None:
        return Windows(length) if self.compare is weighted else None


@dataclass(frozen=True)
class ClosedLoop(AbstractResidual):
    """Force of a :class:`jfric.Controller` in the simulated loop, compared with the measured one.

    ``controller``: of the loop, by default that of the problem; its numbers are parameters
    (``controller.kp``). One of the problem with a ``period`` has samples of its own and is
    simulated by the event-driven solver; for any other the samples are those of the record (even
    ones for several degrees of freedom or frictions, which take that solver, too), and its delay is
    the one that the records show, with a remark if that is not the given one: give
    ``Experiment.known`` or a free parameter ``controller.delay`` for another. ``states``: where
    elements that remember begin, as in :class:`jfric.InverseDynamics`::

        >>> jfric.ClosedLoop(jfric.Controller("u", "load.F", kp=100.0)).controller.drives
        'load.F'
    """

    word = "input"
    controller: Controller | None = None
    states: StartOfStates = "given"

    def pose(self, problem, experiments, free, observe, simulation):
        opened, own = apart(problem)
        given = own if self.controller is None else self.controller
        if given is None:
            raise ProblemError(
                "residual: 'input' compares the force of a controller, give controller"
            )
        samples = given is not own or given.period is None
        if samples and simulation.solver is not None:
            raise ProblemError(
                "solver: a closed loop is simulated from sample to sample, leave the solver out"
            )
        controller = full_controller(problem, given)
        if samples:
            controller, experiments = with_found_delay(controller, experiments, free)
        controller = _remembering(controller, free)
        if samples and not is_one_degree(eqx.filter_eval_shape(assemble, opened)):
            controller = replace(controller, period=step_of(experiments))
            problem = with_elements(opened, {"controller": {"controller": controller}})
            samples = False
        chosen = [closed_loop(e, controller) for e in experiments]
        for i, e in enumerate(chosen):
            if controller.drives not in e.y:
                raise ProblemError(
                    f"u.{controller.drives}: missing in experiment {i + 1}, residual='input' "
                    "compares the measured force with that of the controller"
                )
        observe = controller.drives if observe is None else observe
        require_one_of("states", self.states, STARTS)
        if self.states == "free":
            free = {**free, **free_starts(opened, free)}
        if samples:
            model = SampledModel(opened, controller, hold=simulation.hold)
        else:
            model = simulation.model(problem)
        model = replace(model, steady=self.states == "steady")
        return Posed(model, chosen, free, observe)


@dataclass(frozen=True)
class Windows(AbstractResidual):
    """Signals in windows of ``length`` [s], each of which starts from its own free state.

    An error in the model then cannot add up over the whole record. A remainder shorter than half a
    window is left out. ``states``: where elements that remember begin in each window: as in
    :class:`jfric.InverseDynamics`, or ``"followed"``, with what the measured motion over one length
    before the window has left; that is steady sliding at the first velocity where the model does
    not go from sample to sample::

        >>> jfric.Windows(0.5).length
        0.5
    """

    word = "windows"
    of_runs = False
    length: float = WINDOW
    states: StartInWindow = "followed"

    def pose(self, problem, experiments, free, observe, simulation):
        problem, experiments = in_loop(problem, experiments, closed=False)
        require_one_of("states", self.states, ("followed", *STARTS))
        simulated = simulation.best(problem, experiments)
        follows = self.states == "followed" and has_memory(problem)
        if follows or self.states == "steady":
            simulated = replace(simulated, steady=True)
        follows = follows and isinstance(simulated, SampledModel)
        missing = [dof for dof in problem.dofs for e in experiments if dof not in e.y]
        if missing:
            raise ProblemError(f"y.{missing[0]}: windows start from the measured position")
        chosen = [w for e in experiments for w in windows(e, [*problem.dofs], self.length, follows)]
        states = self._states(problem, chosen)
        if self.states == "free":
            states |= free_starts(problem, free)
        added = {path: item for path, item in states.items() if path not in free}
        return Posed(simulated, chosen, {**free, **added}, observe)

    def _states(self, problem: Problem, chosen: Sequence[Experiment]) -> dict[str, Free]:
        """Free initial states of the windows, within the range of the records."""
        found = {}
        for dof in problem.dofs:
            y = np.concatenate([w.y[dof] for w in chosen])
            starts = np.array([(w.x0 or {})[dof] for w in chosen])
            spread = float(np.ptp(y)) or 1.0
            fastest = float(np.max(np.abs(starts[:, 1]))) or spread / self.length
            bounds = {
                "q": (float(y.min()) - 0.1 * spread, float(y.max()) + 0.1 * spread),
                "v": (-2.0 * fastest, 2.0 * fastest),
            }
            for letter, (low, high) in bounds.items():
                item = Free(low, high, scale="linear", per_experiment=True)
                found[f"initial.{dof}.{letter}"] = item
        return found


@dataclass(frozen=True)
class LoopAndWindows(AbstractResidual):
    """Force of a controller in the simulated loop, and signals under the measured force, together.

    Both are compared in windows of ``length`` [s], each with its own free state. The force shows
    the fast effects, the motion the mean balance of forces, which the loop hides. ``controller``:
    see :class:`jfric.ClosedLoop`; it needs the samples of the record, and no integral action. The
    noise of either is estimated from its residuals, unless it is given, so that both count alike::

        >>> jfric.LoopAndWindows(0.5).length
        0.5
    """

    word = "both"
    of_runs = False
    length: float = WINDOW
    controller: Controller | None = None

    def pose(self, problem, experiments, free, observe, simulation):
        # A window of the loop has no history: elements that remember begin as in steady sliding.
        states = "steady" if has_memory(problem) else "given"
        loop = ClosedLoop(self.controller, states).pose(
            problem, experiments, free, None, simulation
        )
        closed = loop.model
        if not isinstance(closed, SampledModel) or closed.controller is None:
            raise ProblemError(
                "residual: 'both' simulates a controller at the samples of the record, leave its "
                "period out"
            )
        if not starts_anywhere(closed.controller):
            raise ProblemError(
                f"controller.ki: found {float(closed.controller.ki):g} with residual 'both', "
                "whose windows begin without the integral of the errors before them; take 'input' "
                "or 'windows'"
            )
        opened = Windows(self.length, states).pose(problem, experiments, free, None, simulation)
        chosen = [
            _begun(w, closed.controller)
            for e in loop.experiments
            for w in windows(e, [*problem.dofs], self.length)
        ]
        model = LoopAndWindowsModel(closed, replace(closed, controller=None))
        return Posed(model, chosen, opened.free, observe)


@dataclass(frozen=True)
class InverseDynamics(AbstractResidual):
    """Forces that the measured motion needs, compared with the measured ones, without simulation.

    States of elements that remember follow from the measured motion. ``states``: where they begin
    in each record: ``"free"``, a share ``start.NAME`` of their largest value, between -1 and 1;
    ``"steady"``, as in steady sliding at the first velocity; ``"given"``, the ``z0`` of the
    element. The noise of positions lets elements without true stick creep: where a record rests
    long under load, take ``residual="output"``::

        >>> jfric.InverseDynamics().word
        'inverse'
    """

    word = "inverse"
    states: StartOfStates = "free"

    def pose(self, problem, experiments, free, observe, simulation):
        del observe  # forces are compared
        problem, experiments = in_loop(problem, experiments, closed=False)
        require_one_of("states", self.states, STARTS)
        rows = inverse_experiments(problem, experiments, hold=simulation.hold)
        added = free_starts(problem, free) if self.states == "free" else {}
        model = InverseModel(problem, steady=self.states == "steady")
        return Posed(model, rows, {**free, **added}, None)


@dataclass(frozen=True)
class SteadyStates(AbstractResidual):
    """Periodic motions compared with rows of :func:`jfric.steady_states`.

    >>> jfric.SteadyStates().word
    'steady'
    """

    word = "steady"
    of_runs = False

    def pose(self, problem, experiments, free, observe, simulation):
        model = SteadyModel(problem, simulation.differentiable())
        return Posed(model, experiments, free, observe)


RESIDUALS = {
    r.word: r for r in (Outputs, ClosedLoop, Windows, LoopAndWindows, InverseDynamics, SteadyStates)
}


def _begun(window: Experiment, controller: Controller) -> Experiment:
    """A window with the measured force also as an input. The first samples of the force do not
    count: they come from readings before the window."""
    force = window.y[controller.drives]
    known = np.arange(force.size) >= controller.mean + controller.longest
    mask = {**(window.mask or {})}
    mask[controller.drives] = known & mask.get(controller.drives, True)
    return replace(window, u={**(window.u or {}), controller.drives: force}, mask=mask)


def starts_anywhere(controller: Controller) -> bool:
    """Whether a window of a record shows the memory of ``controller``: it has no integral."""
    return not np.any(np.asarray(controller.ki))


def _remembering(controller: Controller, free: Mapping[str, Free]) -> Controller:
    """The controller with a memory for the longest delay that the fit may try."""
    item = free.get("controller.delay")
    if not isinstance(item, Free):
        return controller
    require_count("free.controller.delay: its upper bound", math.ceil(item.upper), 0, SAMPLES)
    longest = max(controller.longest, math.ceil(item.upper))
    return dataclasses.replace(controller, longest=longest)


def sampled_or_whole(
    problem: Problem, records: Sequence[Experiment], solver: object = None, hold: str = "zero"
) -> Problem | SampledModel:
    """A model from sample to sample for measured inputs and long records, if the problem allows it,
    else the problem for the event-driven solver. Windows are simulated like the ``records`` from
    which they were cut: samples are no farther apart there."""
    mechanics = eqx.filter_eval_shape(assemble, problem)
    suits = all(e.u or e.t.size >= LONG for e in records) and not problem.section("event")
    suits = suits and not controllers(problem)
    if solver is None and suits and is_one_degree(mechanics):
        return SampledModel(problem, hold=hold)
    return problem


def windows(
    experiment: Experiment, axes: Sequence[str], length: float, follows: bool = False
) -> list[Experiment]:
    """Windows of ``length`` [s], each starting from the measured position and velocity;
    ``follows``: with the motion before them, where the record shows it."""
    t = experiment.t
    smooth = _smooth(experiment, axes) if follows else None
    if not length > 0.0 or length > t[-1] - t[0]:
        raise ProblemError(
            f"window: found {length:g} s, must lie between 0 and the length of the record "
            f"({t[-1] - t[0]:g} s)"
        )
    found = []
    count = int(np.ceil((t[-1] - t[0]) / length - 0.5))
    for i in range(count):
        start = float(t[0]) + i * length
        inside = np.flatnonzero((t >= start - 1e-9 * length) & (t < start + (1 - 1e-9) * length))
        if inside.size < SLOPE:
            raise ProblemError(
                f"window: {length:g} s hold {inside.size} samples, at least {SLOPE} are needed"
            )
        state = {dof: _state(t, experiment.y[dof], int(inside[0])) for dof in axes}
        end = float(np.nextafter(t[inside[-1]], np.inf))
        piece = experiment.between(float(t[inside[0]]), end, state)
        meta = {**(experiment.meta or {}), "name": f"{experiment.name or 'record'} {start:g} s"}
        piece = replace(piece, meta=meta)
        if smooth is not None:
            piece = with_history(piece, t, smooth)
        found.append(piece)
    return found


def _smooth(experiment: Experiment, axes: Sequence[str]) -> Any:
    """Measured positions as functions of time; None for a record with gaps."""
    try:
        return smooth_motion(axes, at_even_steps(axes, experiment, "linear"))
    except ProblemError:
        return None


def _state(t: np.ndarray, y: np.ndarray, first: int) -> tuple[float, float]:
    """Position and velocity at sample ``first`` from a parabola through the nearest samples.

    An acceleration ``a`` would falsify a straight line: in the position by ``5 a h^2`` for eleven
    samples ``h`` apart, and at the end of a record, with neighbours on one side, in the velocity.
    """
    begin = min(max(first - SLOPE // 2, 0), max(t.size - SLOPE, 0))
    near = slice(begin, begin + SLOPE)
    good = np.isfinite(y[near])
    degree = min(2, int(np.count_nonzero(good)) - 1)
    *_, slope, q = np.polyfit(t[near][good] - t[first], y[near][good], degree)
    return float(q), float(slope)
