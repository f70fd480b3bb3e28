"""Criteria that judge a law on records to which the law was not fitted.

    closed loop        force of the simulated controller that follows the measured reference
    inverse dynamics   force that the measured motion needs
    windows            positions in short windows, from the measured state at their start
    open loop          positions over the whole piece, from the measured state at its start

The initial state of a piece is the one with which the law itself passes through the first samples.
The state of a curve drawn through them would be wrong by the error of that curve, and a law with
more parameters than needed would compensate for that error.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jfric.errors import ProblemError
from jfric.fits.data.experiment import Experiment
from jfric.fits.data.stacking import Data, signals_of, stack
from jfric.fits.inverse_model import inverse_experiments
from jfric.fits.memory import has_memory
from jfric.fits.model import AbstractModel
from jfric.fits.objective import failed
from jfric.fits.residuals import (
    SLOPE,
    WINDOW,
    AbstractResidual,
    ClosedLoop,
    InverseDynamics,
    LoopAndWindows,
    Simulation,
    Windows,
    windows,
)
from jfric.fits.sampled_model import REFERENCE, SampledModel, closed_loop, without_reference
from jfric.fits.task import with_known
from jfric.system.controller import Controller
from jfric.system.naming import parameters, with_numbers
from jfric.system.problem import Problem

CLOSED, INVERSE, WINDOWS, OPEN = "closed loop", "inverse dynamics", "windows", "open loop"
CRITERIA = (CLOSED, INVERSE, WINDOWS, OPEN)
FORCES = (CLOSED, INVERSE)
#: What is minimised where both are possible: the loop hides the mean balance of forces, from which
#: positions follow, and positions hide what is fast.
JOINT = f"{CLOSED} and {WINDOWS}"
#: Corrections of an initial state: over a few samples positions are nearly ``q + v t``.
CORRECTIONS = 3
#: First words of parameters that belong to the measurement, not to the problem.
BESIDE = ("sensor", "input", "delay", "controller")


@dataclass(frozen=True)
class Setting:
    """Settings of criteria: controller, length of windows [s], ``hold`` of the inputs, and the
    problem whose friction decides at which samples forces are compared."""

    controller: Controller | None = None
    window: float | None = None
    hold: str = "zero"
    base: Problem | None = None


def possible(
    problem: Problem, experiments: Sequence[Experiment], controller: Controller | None
) -> list[str]:
    """The criteria that the records allow."""
    found = []
    follows = all(REFERENCE in (e.u or {}) for e in experiments)
    if controller is not None and follows:
        loops = [closed_loop(e, controller) for e in experiments]
        if all(controller.drives in e.y for e in loops):
            found.append(CLOSED)
    try:
        inverse_experiments(problem, experiments)
        # Numbers of single records count in simulations only.
        found += [] if any(e.known for e in experiments) else [INVERSE]
    except ProblemError:
        pass  # these records do not have this criterion
    return [*found, WINDOWS, OPEN]


def unit_of(problem: Problem, criterion: str) -> str:
    """Unit of a criterion; errors of several kinds are parts of the spread of each signal."""
    kinds = {problem.dofs.get(dof) == "rotation" for dof in problem.dofs}
    if len(kinds) > 1:
        return ""
    turns = kinds.pop()
    return ("N m" if turns else "N") if criterion in FORCES else ("rad" if turns else "m")


def error(
    criterion: str,
    problem: Problem,
    values: Mapping[str, float],
    pieces: Sequence[Experiment],
    setting: Setting,
) -> tuple[float, float]:
    """Root mean square error of a law on ``pieces``, infinite where a simulation fails, and the
    root mean square of the predicted signals; ``values``: fitted numbers by path, of the problem
    and the measurement."""
    data, used, predicted = predictions(criterion, problem, values, pieces, setting)
    if not np.all(np.isfinite(predicted[used])):
        return math.inf, math.nan
    measured = np.asarray(data.y)
    squares, sizes = [], []
    for j in range(len(data.signals)):
        there, y = used[..., j], measured[..., j]
        size = float(np.sqrt(np.mean(y[there] ** 2)) if criterion in FORCES else np.std(y[there]))
        off = float(np.mean((predicted[..., j] - y)[there] ** 2))
        mixed = unit_of(problem, criterion) == ""
        squares.append(off / (size**2 or 1.0) if mixed else off)
        sizes.append(1.0 if mixed else size**2)
    return float(np.sqrt(np.mean(squares))), float(np.sqrt(np.mean(sizes)))


def predictions(
    criterion: str,
    problem: Problem,
    values: Mapping[str, float],
    pieces: Sequence[Experiment],
    setting: Setting,
    *,
    given_start: bool = False,
) -> tuple[Data, np.ndarray, np.ndarray]:
    """Data of ``pieces``, which samples (E, m, k) count, and the predicted ones, all NaN where a
    simulation fails. ``given_start``: from the states of the pieces, not from those with which the
    law passes through their first samples."""
    known = parameters(problem)
    numbers = {k: jnp.asarray(x, float) for k, x in values.items()}
    own = {k: x for k, x in numbers.items() if k in known}
    beside = {k: x for k, x in numbers.items() if k.partition(".")[0] in BESIDE}
    problem = with_numbers(problem, own)
    model, chosen, signals = _arranged(criterion, problem, beside, pieces, setting)
    if not isinstance(model, SampledModel) or model.controller is None:
        beside = {k: x for k, x in beside.items() if not k.startswith("controller.")}
    first = [model.initial(e) for e in chosen]
    states = with_known(model, chosen, {}, [x for _, x in first])
    data, used, _ = stack(chosen, signals, [s for s, _ in first], states)
    if criterion in (WINDOWS, OPEN) and not given_start:
        data = _started(model, data, used, beside)
    predicted, status = (np.asarray(x) for x in _predicted(model, data, beside))
    return data, used, np.where(failed(status)[:, None, None], np.nan, predicted)


def residual_of(criterion: str, pieces: Sequence[Experiment], setting: Setting) -> AbstractResidual:
    """The residuals that are small where a law is good; for an open loop, those of windows as long
    as the shortest piece."""
    if criterion == CLOSED:
        return ClosedLoop(setting.controller, "steady")
    if criterion == INVERSE:
        return InverseDynamics("steady")
    if criterion == OPEN:
        return Windows(min(float(e.t[-1] - e.t[0]) for e in pieces))
    window = WINDOW if setting.window is None else setting.window
    return LoopAndWindows(window, setting.controller) if criterion == JOINT else Windows(window)


def _arranged(criterion, problem, values, pieces, setting: Setting):
    """The model, its experiments and signals."""
    simulation = Simulation(hold=setting.hold)
    if criterion == CLOSED:
        assert setting.controller is not None
        delay = math.ceil(float(values.get("controller.delay", setting.controller.delay)))
        longest = max(setting.controller.longest, delay)
        setting = replace(setting, controller=replace(setting.controller, longest=longest))
    if criterion in FORCES:
        residual = residual_of(criterion, pieces, setting)
        model, chosen, _, observe = residual.pose(problem, pieces, {}, None, simulation)
        if criterion == INVERSE and has_memory(problem) and setting.base is not None:
            slides = residual.pose(setting.base, pieces, {}, None, simulation).experiments
            chosen = [_only(e, x) for e, x in zip(chosen, slides, strict=True)]
        return model, chosen, signals_of(chosen, observe)
    chosen, model = list(pieces), simulation.best(problem, pieces)
    if has_memory(problem):
        model = replace(model, steady=True)
    if criterion == WINDOWS:
        length = WINDOW if setting.window is None else setting.window
        follows = has_memory(problem) and isinstance(model, SampledModel)
        chosen = [w for e in pieces for w in windows(e, [*problem.dofs], length, follows)]
    chosen = [_from_what_is_seen(e, values) for e in chosen]
    if isinstance(model, SampledModel):
        chosen = [without_reference(e) for e in chosen]
    return model, chosen, tuple(dof for dof in problem.dofs if dof in chosen[0].y)


def _only(e: Experiment, others: Experiment) -> Experiment:
    """``e`` with only those rows that count in ``others``, too: where friction slides."""
    mask = {}
    for name, own in (e.mask or {}).items():
        there = others.t[(others.mask or {})[name]]
        mask[name] = own & np.isin(e.t, there)
    return replace(e, mask=mask)


def _from_what_is_seen(e: Experiment, values: Mapping[str, Any]) -> Experiment:
    """The experiment with its true initial state, computed from the readings of the sensors."""
    x0 = {}
    for dof, (q, v) in (e.x0 or {}).items():
        offset = float(values.get(f"sensor.{dof}.offset", 0.0))
        gain = float(values.get(f"sensor.{dof}.gain", 1.0))
        late = sum(float(values.get(k, 0.0)) for k in ("delay", f"sensor.{dof}.delay"))
        late += float(values.get(f"sensor.{dof}.lag", 0.0))
        x0[dof] = ((q - offset + late * v) / gain, v / gain)
    return replace(e, x0=x0)


def _started(model: AbstractModel, data: Data, used: np.ndarray, values) -> Data:
    """Data whose initial states let the law pass through the first samples by least squares."""
    t, y = np.asarray(data.t)[:, :SLOPE], np.asarray(data.y)[:, :SLOPE]
    least, best = np.full(t.shape[0], np.inf), data
    for _ in range(CORRECTIONS + 1):
        predicted, status = (np.asarray(x) for x in _predicted(model, data, values))
        off = np.where(used[:, :SLOPE], y - predicted[:, :SLOPE], 0.0)
        size = np.sum(off**2, axis=(1, 2))
        size = np.where(failed(status) | ~np.isfinite(size), np.inf, size)
        better = size < least
        least = np.where(better, size, least)
        best = replace(best, x0={k: jnp.where(better, data.x0[k], x) for k, x in best.x0.items()})
        changed = dict(data.x0)
        for j, name in enumerate(data.signals):
            gain = float(values.get(f"sensor.{name}.gain", 1.0))
            for i in np.flatnonzero(np.isfinite(least)):
                good = used[i, :SLOPE, j] & np.isfinite(off[i, :, j])
                if np.count_nonzero(good) < 3:
                    continue
                slope, q = np.polyfit((t[i] - t[i, 0])[good], off[i, good, j] / gain, 1)
                for letter, more in (("q", q), ("v", slope)):
                    path = f"initial.{name}.{letter}"
                    changed[path] = changed[path].at[i].add(more)
        data = replace(data, x0=changed)
    return best


@eqx.filter_jit
def _predicted(model: AbstractModel, data, values):
    def one(data):
        found = model.simulate_outputs(values, data)
        return found.y, found.status

    return jax.vmap(one)(data)


#: Pieces of each record where there are too few records to leave whole ones out.
PIECES = 4
#: Most folds that groups of whole records are dealt out to.
MOST_FOLDS = 8

Fold = tuple[Experiment, ...]


def laps(experiment: Experiment, dofs: Sequence[str], count: int) -> list[Experiment]:
    """``count`` pieces of equal length, each starting from its measured state."""
    length = (experiment.t[-1] - experiment.t[0]) / count
    return windows(experiment, dofs, length)[:count]


def folds_of(
    experiments: Sequence[Experiment],
    dofs: Sequence[str],
    count: int | None = None,
    lap: float | None = None,
    groups: Sequence[Sequence[Experiment]] | None = None,
) -> list[Fold]:
    """Groups of pieces, each of which is left out once; every piece starts from its measured state.

    ``groups`` of whole records, dealt out to at most eight folds. Without them ``count`` pieces of
    each record, or laps of ``lap`` [s]: with ``count``, the pieces at the same place of all records
    form a fold; every lap is a fold of its own. Raises :class:`jfric.ProblemError` for fewer than
    two folds.
    """
    if groups is not None:
        whole = [tuple(piece for e in group for piece in laps(e, dofs, 1)) for group in groups]
        size = min(len(whole), MOST_FOLDS)
        return [sum(whole[i::size], ()) for i in range(size)]
    if lap is not None:
        found = [(piece,) for e in experiments for piece in windows(e, dofs, lap)]
    else:
        count = PIECES if count is None else count
        if count < 2:
            raise ProblemError(f"folds: found {count}, at least 2 are needed")
        found = list(zip(*(laps(e, dofs, count) for e in experiments), strict=True))
    if len(found) < 2:
        raise ProblemError(f"lap: found {len(found)} of {lap:g} s, at least 2 are needed")
    return found


def held_out_over_fitted(folds: Sequence[Fold]) -> float:
    """Average ratio of the samples of a fold to the samples that its candidates are fitted to."""
    sizes = np.array([sum(e.t.size for e in fold) for fold in folds], float)
    return float(np.mean(sizes / (sizes.sum() - sizes)))
