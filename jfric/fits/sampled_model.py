"""Models that simulate from sample to sample: measured inputs, controllers, long records.

The delay of a sampled controller is found from records of its reference, reading and force. The
controller computes its output once more from what was measured, without any model of the machine.
The whole number of samples by which the recorded force follows this output is the delay. A wrong
delay in a simulated loop would be made up for by wrong friction and mass.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from jfric.errors import ProblemError, nearest, require_known, within
from jfric.fits.data.experiment import Experiment
from jfric.fits.data.stacking import Data, check_inputs
from jfric.fits.free import full_controller
from jfric.fits.measurement import acting, at_times, measurement_parameters, shown, total_delay
from jfric.fits.memory import along_motion, history_of, with_starts, without_history
from jfric.fits.model import AbstractModel, Motion, OutputModel, Prediction
from jfric.results.modes import Mode
from jfric.results.signals import find_signal
from jfric.results.status import Status
from jfric.solvers.event_driven.solver import EventDriven
from jfric.solvers.sampled.equations import require_one_degree
from jfric.solvers.sampled.run import SampledMotion, run_sampled
from jfric.system.assembly import assemble
from jfric.system.control import apart, controllers, target
from jfric.system.controller import Controller
from jfric.system.features import CONSTANT, require_features
from jfric.system.model import build
from jfric.system.naming import function_paths
from jfric.system.problem import Problem

#: Name of the measured reference of a controller among the inputs of an experiment.
REFERENCE = "controller.reference"
#: Name of this model in messages.
WHO = "a model that goes from sample to sample"


class SampledModel(AbstractModel):
    """Motion of one degree of freedom from sample to sample, in open or closed loop.

    ``problem``: one degree of freedom with at most one friction element, without events, and any
    number of elements that remember, springs with sliders and bristles.
    Signals are the position and velocity (``x``, ``v.x``) and the inputs by their paths
    (``load.F``): in closed loop the force that acts from each sample to the next. The simulation
    begins at the first sample. With a ``controller`` its numbers are parameters (``controller.kp``,
    ``controller.delay``), and the reference is the input ``controller.reference`` (ignored without
    one); a measured force is not used then. ``hold``: inputs are held (``"zero"``) or connected
    (``"linear"``). ``substeps``: of the integrator in a sample. ``width``: of an optional smoothed
    friction law. ``steady``: whether states of elements without a value begin as in steady sliding.
    Parameters that are not fitted keep the value of the problem::

        >>> t = jnp.linspace(0.0, 1.0, 11)
        >>> data = jfric.Experiment(t, u={"load.F": 1500.0 + 0.0 * t}, y={"u": 0.0 * t})
        >>> model = jfric.SampledModel(problem)
        >>> model.check([data], ["u"])
        >>> float(model.default("friction.mu", data))
        0.1
    """

    takes_known = True
    is_long = True

    problem: Problem
    controller: Controller | None = None
    hold: str = eqx.field(static=True, default="zero")
    substeps: int = eqx.field(static=True, default=1)
    width: float | None = eqx.field(static=True, default=None)
    steady: bool = eqx.field(static=True, default=False)

    def __post_init__(self):
        self.problem = build(self.problem)
        if self.controller is not None:
            self.controller = full_controller(self.problem, self.controller)

    def check(self, experiments: Sequence[Experiment], signals: Sequence[str]) -> None:
        require_features(self.problem, WHO, CONSTANT - {"events"} | {"sliders", "states"})
        require_one_degree(eqx.filter_eval_shape(assemble, self.problem))
        controller = self.controller
        if controller is not None:
            slots = function_paths(self.problem)
            require_known("controller.drives", "function of time", controller.drives, slots)
            if controller.reads not in self.problem.dofs:
                raise ProblemError(
                    f"controller.reads: no degree of freedom {controller.reads!r}"
                    f"{nearest(controller.reads, self.problem.dofs)}"
                )
        for i, e in enumerate(experiments):
            given = set(without_history(e.u))
            if controller is not None and REFERENCE not in given:
                raise ProblemError(
                    f"u.{REFERENCE}: missing in experiment {i + 1}, the controller follows it"
                )
            check_inputs(self.problem, tuple(given - {REFERENCE}), self.hold)
        driven = self._driven(tuple(without_history(experiments[0].u)))
        for name in signals:
            if name not in driven and not _of_motion(self.problem, name):
                raise ProblemError(
                    f"y.{name}: a model that goes from sample to sample gives positions, "
                    f"velocities and {', '.join(driven) or 'inputs'}"
                )

    def refined(self) -> SampledModel:
        return dataclasses.replace(self, substeps=2 * self.substeps)

    def remarks(self) -> list[str]:
        if self.width is None:
            return []
        return ["smoothed law: values and derivatives are those of a law without kinks, biased"]

    def motion(self, values: Mapping[str, Array], data: Data) -> Motion | None:
        motion, problem = self._simulate(values, data)
        mechanics = assemble(problem)
        if not mechanics.n_friction:
            return None
        slide = mechanics.W_T[0, 0] * motion.v
        mode = jnp.where(slide > 0, Mode.SLIP_POS, jnp.where(slide < 0, Mode.SLIP_NEG, Mode.STICK))
        return Motion(mode[:, None], slide[:, None])

    def default(self, path: str, experiment: Experiment) -> float:
        section, _, field = path.partition(".")
        if section == "controller" and self.controller is not None:
            numbers = [k for k, v in vars(self.controller).items() if eqx.is_array(v)]
            if field not in numbers:
                raise ProblemError(
                    f"free: no parameter {path!r}{nearest(field, numbers)}; a controller has "
                    + ", ".join(numbers)
                )
            return float(getattr(self.controller, field))
        driven = self.controller is not None and path.startswith(f"input.{self.controller.drives}.")
        if driven:
            raise ProblemError(
                f"free.{path}: the controller sets this input, nothing measured acts; free "
                "controller.delay instead"
            )
        return self._plain.default(path, experiment)

    def initial(self, experiment: Experiment) -> tuple[float, dict[str, float]]:
        first = float(experiment.t[0])
        if experiment.start is not None and experiment.start != first:
            raise ProblemError(
                f"start: found {experiment.start:g} s, a simulation from sample to sample begins "
                f"at the first, {first:g} s"
            )
        return first, self._plain.initial(dataclasses.replace(experiment, start=first))[1]

    def simulate_outputs(self, values: Mapping[str, Array], data: Data) -> Prediction:
        motion, _ = self._simulate(values, data)
        columns = []
        for name in data.signals:
            slopes = None
            if name in motion.inputs:
                column = motion.inputs[name]
            elif find_signal(self.problem, name).field == "q":
                column, slopes = motion.q, motion.v
            else:
                column = motion.v
            delay = total_delay(name, values)
            if delay is not None:
                column = at_times(data.t - delay, data.t, column, slopes)
            columns.append(shown(data.t, column, name, values))
        return Prediction(jnp.stack(columns, axis=1), motion.status)

    def _simulate(self, values: Mapping[str, Array], data: Data) -> tuple[SampledMotion, Problem]:
        given = {**data.x0, **values}
        own = {k: x for k, x in given.items() if k.startswith("controller.")}
        measured, history = without_history(data.u), history_of(data.u, 1)
        beside = {*measurement_parameters(data.signals, tuple(measured)), *own}
        own_numbers = {k: x for k, x in given.items() if k not in beside}
        if history is None:
            start = "initial" if self.steady else None
            problem, states = with_starts(self.problem, own_numbers, start), None
        else:
            t, q, v = history
            problem = with_starts(self.problem, own_numbers, v[0])
            states = along_motion(problem, t, q, v, {}).end
        controller = self.controller
        if controller is not None and own:
            names = [k.partition(".")[2] for k in own]
            controller = eqx.tree_at(
                lambda c: [getattr(c, n) for n in names], controller, list(own.values())
            )
        driven = self._driven(tuple(measured))
        slots = function_paths(problem)
        motion = run_sampled(
            problem,
            data.t,
            {
                k: acting(data.t, x, k, values, self.hold)
                for k, x in measured.items()
                if k in driven and (controller is None or k != controller.drives)
            },
            {k: slots[k] for k in driven},
            controller=controller,
            reference=data.u.get(REFERENCE),
            linear=self.hold == "linear",
            substeps=self.substeps,
            width=self.width,
            states=states,
        )
        return motion, problem

    @property
    def _plain(self) -> OutputModel:
        return OutputModel(self.problem, EventDriven(), self.hold)

    def _driven(self, inputs: Sequence[str]) -> tuple[str, ...]:
        """Paths of all inputs, measured or set by the controller."""
        paths = [path for path in inputs if path != REFERENCE]
        if self.controller is not None:
            paths.append(self.controller.drives)
        return tuple(dict.fromkeys(paths))


def closed_loop(experiment: Experiment, controller: Controller) -> Experiment:
    """``experiment`` with its measured force as a measured quantity instead of an input.

    In a fit it is then compared with the force of the simulated ``controller``::

        >>> t = jnp.linspace(0.0, 1.0, 11)
        >>> data = jfric.Experiment(t, u={"load.F": 0.0 * t}, y={"u": 0.0 * t})
        >>> judged = jfric.closed_loop(data, jfric.Controller("u", "load.F", kp=100.0))
        >>> list(judged.u), list(judged.y)
        ([], ['load.F', 'u'])
    """
    u, force = dict(experiment.u or {}), {}
    if controller.drives in u:
        force[controller.drives] = u.pop(controller.drives)
    y = {**force, **experiment.y}
    return dataclasses.replace(experiment, u=u, y=y, start=None)


def in_loop(
    problem: Problem, experiments: Sequence[Experiment], closed: bool = True
) -> tuple[Problem, Sequence[Experiment]]:
    """Problem and records of a fit: controllers act in the simulation if ``closed``. One whose
    force the records have as an input, or that has no samples of its own, is left out, with its
    reference; raises :class:`ProblemError` for a record that does not have that force."""
    given = {path for e in experiments for path in e.u or {}}
    own = list(controllers(problem).values())
    acts = closed and not any(
        c.period is None or given & {target(problem, path) for path in c.targets} for c in own
    )
    if acts or not own:
        return problem, experiments
    opened, controller = apart(problem)
    for i, e in enumerate(experiments):
        if controller is not None and controller.drives not in (e.u or {}):
            raise ProblemError(
                f"u.{controller.drives}: missing in experiment {i + 1}; the controller is left out "
                "here, so what it sets must be measured"
            )
    return opened, [without_reference(e) for e in experiments]


def without_reference(experiment: Experiment) -> Experiment:
    """``experiment`` without the reference of a controller, for a model that has none."""
    u = {k: x for k, x in (experiment.u or {}).items() if k != REFERENCE}
    return dataclasses.replace(experiment, u=u)


def step_of(experiments: Sequence[Experiment]) -> float:
    """The one step of all records [s], at which a controller without a period acts."""
    steps = np.concatenate([np.diff(e.t) for e in experiments])
    step = float(np.median(steps))
    if np.any(np.abs(steps - step) > 1e-6 * step):
        raise ProblemError(
            f"t: found steps from {steps.min():g} s to {steps.max():g} s; a controller without a "
            "period acts at the samples of the records, which must be even for this system"
        )
    return step


def _of_motion(problem: Problem, name: str) -> bool:
    with within(f"y.{name}: "):
        return find_signal(problem, name).of_motion


class LoopAndWindowsModel(AbstractModel):
    """The force of a loop that follows the measured reference, and the motion under the measured
    force, of one system from one initial state.

    ``closed``: with the controller, whose force is predicted; ``opened``: without one, predicts all
    other signals. Both read the same experiment, which has the measured force among ``u`` and
    ``y``."""

    takes_known = True
    is_long = True

    closed: SampledModel
    opened: SampledModel

    @property
    def problem(self) -> Problem:
        return self.opened.problem

    def check(self, experiments: Sequence[Experiment], signals: Sequence[str]) -> None:
        for model in (self.closed, self.opened):
            model.check(experiments, signals)

    def refined(self) -> LoopAndWindowsModel:
        return dataclasses.replace(self, closed=self.closed.refined(), opened=self.opened.refined())

    def motion(self, values: Mapping[str, Array], data: Data) -> Motion | None:
        return self.opened.motion(values, data)

    def default(self, path: str, experiment: Experiment) -> float:
        return self.closed.default(path, experiment)

    def initial(self, experiment: Experiment) -> tuple[float, dict[str, float]]:
        return self.opened.initial(experiment)

    def simulate_outputs(self, values: Mapping[str, Array], data: Data) -> Prediction:
        assert self.closed.controller is not None
        closed, opened = (m.simulate_outputs(values, data) for m in (self.closed, self.opened))
        own = jnp.array([name == self.closed.controller.drives for name in data.signals])
        status = jnp.where(closed.status == int(Status.OK), opened.status, closed.status)
        return Prediction(jnp.where(own, closed.y, opened.y), status)


#: Longest delay that is tried [samples].
LONGEST = 20
#: Part of the variance of the force that the recomputed output may leave: a controller that
#: explains less is another one than that of the record, and says nothing about the delay.
EXPLAINED = 0.1
#: The given delay stays unless another one lowers the error by this factor.
BETTER = 0.5
#: Samples that count at least.
FEWEST = 100


def found_delay(
    controller: Controller, experiments: Sequence[Experiment]
) -> tuple[Controller, str | None]:
    """``controller`` with the delay that ``experiments`` show, and a remark if it is another one.

    The given delay stays where the records do not have force, reference and reading, where the
    recomputed output is not close to the force, and where no other delay is clearly better.
    """
    given = float(controller.delay)
    squares = np.zeros(LONGEST + 2)  # of every delay, and of the given one
    size, count = 0.0, 0
    for e in experiments:
        rows = _errors(controller, e, given)
        if rows is not None:
            off, force = rows
            squares += np.sum(off**2, axis=1)
            size += float(np.sum((force - force.mean()) ** 2))
            count += force.size
    best = int(np.argmin(squares[:-1]))
    left = np.sqrt(squares / size) if size > 0.0 else squares
    known = count >= FEWEST and left[best] ** 2 < EXPLAINED
    if not known or best == given or not left[best] < BETTER * left[-1]:
        return controller, None
    said = (
        f"controller.delay: {best} samples as the records show, not {given:g}: the controller "
        f"computed again from its reading is off by {100 * left[best]:.2g} % of the force, with "
        f"{given:g} by {100 * left[-1]:.2g} %; free controller.delay to fit it"
    )
    delay = jnp.asarray(float(best), jnp.result_type(controller.delay))
    return replace(controller, delay=delay, longest=max(controller.longest, best)), said


def _errors(
    controller: Controller, e: Experiment, given: float
) -> tuple[np.ndarray, np.ndarray] | None:
    """Differences (LONGEST + 2, m) of the recomputed force, for every delay and the ``given`` one,
    from the recorded force (m,); without their means, as the first integral is unknown."""
    recorded = {**e.y, **(e.u or {})}
    names = (REFERENCE, controller.reads, controller.drives)
    if any(name not in recorded for name in names) or e.mask or e.t.size < 2 * LONGEST:
        return None
    r, y, force = (np.asarray(recorded[name]) for name in names)
    numbers = {
        name: jnp.asarray(x)
        for path, x in (e.known or {}).items()
        if (name := path.removeprefix("controller.")) != path
    }
    own = replace(controller, **{**numbers, "delay": jnp.zeros(())}, longest=1)
    output = np.asarray(_recomputed(own, jnp.asarray(e.t), jnp.asarray(r), jnp.asarray(y)))
    i = np.arange(LONGEST + controller.mean, e.t.size)
    delays = np.append(np.arange(LONGEST + 1.0), min(given, float(LONGEST)))
    off = np.stack([np.interp(i - late, np.arange(e.t.size), output) - force[i] for late in delays])
    return off - off.mean(axis=1, keepdims=True), force[i]


@eqx.filter_jit
def _recomputed(controller: Controller, t, r, y):
    """Output (m,) of a controller without delay at readings ``y`` (m,)."""
    dt = jnp.diff(t, append=2.0 * t[-1:] - t[-2:-1])

    def one(memory, row):
        force, memory = controller.step(memory, *row)
        return memory, force

    first = controller.start(r[0], y[0], (y[1] - y[0]) / dt[0], dt[0])
    return jax.lax.scan(one, first, (r, y, dt))[1]


def with_found_delay(
    controller: Controller, experiments: Sequence[Experiment], free: Iterable[str]
) -> tuple[Controller, list[Experiment]]:
    """``controller`` and ``experiments`` for a fit of the parameters ``free``: the delay is that of
    :func:`found_delay`, with its remark at the records, unless numbers of the controller are free
    or the records have a known delay."""
    chosen = list(experiments)
    told = any(path.startswith("controller.") for path in free)
    told = told or any("controller.delay" in (e.known or {}) for e in chosen)
    controller, said = (controller, None) if told else found_delay(controller, chosen)
    return controller, chosen if said is None else [e.with_remarks(said) for e in chosen]
