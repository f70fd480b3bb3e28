"""Models and records for fits of outputs, the force of a controller, or short windows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import equinox as eqx
import numpy as np

from jfric.errors import ProblemError
from jfric.fits.data.experiment import Experiment
from jfric.fits.free import Free
from jfric.fits.sampled_model import SampledModel, closed_loop
from jfric.solvers.sampled.equations import is_one_degree
from jfric.system.assembly import assemble
from jfric.system.controller import Controller
from jfric.system.problem import Problem
from jfric.system.states import state_units

#: Length of a window [s] unless given.
WINDOW = 1.0
#: Samples from which on a record is simulated from sample to sample.
LONG = 500
#: Samples whose parabola gives position and velocity at the start of a window.
SLOPE = 11


def closed(
    problem: Problem, experiments: Sequence[Experiment], controller: Controller | None
) -> tuple[SampledModel, list[Experiment], str]:
    """``residual="input"``: the closed loop, whose force is compared with the measured one."""
    if controller is None:
        raise ProblemError("residual: 'input' compares the force of a controller, give controller")
    chosen = [closed_loop(e, controller) for e in experiments]
    for i, e in enumerate(chosen):
        if controller.drives not in e.y:
            raise ProblemError(
                f"u.{controller.drives}: missing in experiment {i + 1}, residual='input' compares "
                "the measured force with that of the controller"
            )
    return SampledModel(problem, controller), chosen, controller.drives


def windowed(
    problem: Problem,
    experiments: Sequence[Experiment],
    free: Mapping[str, Free],
    length: float | None,
) -> tuple[list[Experiment], dict[str, Free]]:
    """``residual="windows"``: experiments cut into windows of ``length`` [s], each with its own
    free initial state; a rest shorter than half a window is left out.

    An error in the model then cannot add up over the whole record.
    """
    length = WINDOW if length is None else length
    for name in state_units(problem):
        raise ProblemError(
            f"residual: 'windows' start from measured states, and z.{name} of an element that "
            "remembers is not measured; take residual='output'"
        )
    missing = [dof for dof in problem.axes for e in experiments if dof not in e.y]
    if missing:
        raise ProblemError(f"y.{missing[0]}: windows start from the measured position")
    chosen = [w for e in experiments for w in windows(e, problem.axes, length)]
    result = dict(free)
    for dof in problem.axes:
        y = np.concatenate([w.y[dof] for w in chosen])
        starts = np.array([(w.x0 or {})[dof] for w in chosen])
        spread = float(np.ptp(y)) or 1.0
        fastest = float(np.max(np.abs(starts[:, 1]))) or spread / length
        bounds = {
            "q": (float(y.min()) - 0.1 * spread, float(y.max()) + 0.1 * spread),
            "v": (-2.0 * fastest, 2.0 * fastest),
        }
        for letter, (low, high) in bounds.items():
            item = Free(low, high, scale="linear", per_experiment=True)
            result.setdefault(f"initial.{dof}.{letter}", item)
    return chosen, result


def sampled_or_whole(
    problem: Problem, records: Sequence[Experiment], solver: object, hold: str
) -> Problem | SampledModel:
    """A model from sample to sample for measured inputs and long records, where one can be had;
    else the problem, for the event-driven solver. Windows are simulated as the ``records`` that
    they were cut from: samples are no farther apart there."""
    mechanics = eqx.filter_eval_shape(assemble, problem)
    suits = all(e.u or e.t.size >= LONG for e in records) and not problem.section("event")
    if solver is None and suits and is_one_degree(mechanics):
        return SampledModel(problem, hold=hold)
    return problem


def windows(experiment: Experiment, axes: Sequence[str], length: float) -> list[Experiment]:
    """Windows of ``length`` [s], each starting from the measured position and velocity."""
    t = experiment.t
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
        found.append(replace(piece, meta=meta))
    return found


def _state(t: np.ndarray, y: np.ndarray, first: int) -> tuple[float, float]:
    """Position and velocity at sample ``first`` from a parabola through the nearest samples.

    A straight line would be off by the acceleration: in the position by ``5 a h^2`` for eleven
    samples ``h`` apart, and at the end of a record, with neighbours on one side, in the velocity.
    """
    begin = min(max(first - SLOPE // 2, 0), max(t.size - SLOPE, 0))
    near = slice(begin, begin + SLOPE)
    good = np.isfinite(y[near])
    degree = min(2, int(np.count_nonzero(good)) - 1)
    *_, slope, q = np.polyfit(t[near][good] - t[first], y[near][good], degree)
    return float(q), float(slope)
