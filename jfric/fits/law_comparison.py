"""Comparison of friction laws for one problem, on data that were not fitted.

Every candidate replaces the law of one friction element; what its own law gives is the start.
With ``v = |gamma_T|``, and all coefficients for each direction of sliding from "asymmetric" on::

    viscous            F_v v
    Coulomb            F_c
    Coulomb + viscous  F_c + F_v v
    asymmetric         F_c(+-) + F_v(+-) v
    Stribeck           F_c(+-) + F_v(+-) v + F_s exp(-(v/v_s)^2)
    load-dependent     the last, times 1 + a |f|, with the sum f of all other forces

The last is a law of :class:`jfric.Friction` with a load: it is a candidate where all other forces
have names.
``F_s`` may be negative: friction then rises with the sliding velocity instead of falling.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jfric.errors import ProblemError
from jfric.fits.arrange import windows
from jfric.fits.data.experiment import Experiment
from jfric.fits.data.stacking import stack
from jfric.fits.fit_result import FitResult
from jfric.fits.fitting import fit
from jfric.fits.free import Free
from jfric.fits.full_paths import full_experiment
from jfric.fits.minimise import Watch
from jfric.fits.model import OutputModel
from jfric.fits.objective import Objective
from jfric.fits.sampled_model import SampledModel
from jfric.system.carried import SECTIONS as WITH_FORCE
from jfric.system.description import element_label
from jfric.system.elements import SECTIONS, AbstractForce, Friction, Lagrangian
from jfric.system.functions import Constant
from jfric.system.laws import Directional, Stribeck
from jfric.system.planes import refuse_planes
from jfric.system.problem import Problem

#: Ranges of the coefficients, as parts of the present friction (and of it over the velocity).
RANGE = (1e-3, 1e2)
SIDES = ("positive", "negative")
#: Pieces of a single record for the comparison on held-out data.
PIECES = 4


@dataclass(frozen=True)
class Candidate:
    """A friction model: its problem, and what is free in it beside everything else."""

    name: str
    problem: Problem
    free: Mapping[str, Free]


@dataclass(frozen=True)
class Score:
    """How well a candidate predicts: relative errors in the fitted and in the held-out records."""

    candidate: str
    parameters: int
    fitted: float
    held_out: float
    #: For each fold.
    folds: tuple[float, ...]


def candidate_laws(problem: Problem, speed: float, *, loads: bool = True) -> list[Candidate]:
    """The candidates for the only friction element of ``problem``.

    ``speed`` [m/s or rad/s]: a typical sliding velocity, which sets the ranges of viscous terms.
    Dampers are taken out, the law holds their part and begins with it. ``loads``: whether load
    dependence is a candidate.
    """
    refuse_planes(problem, "the comparison of laws")
    group = problem.section("friction")
    if len(group) != 1:
        raise ProblemError(f"friction: found {len(group)} elements, the comparison takes one")
    ((name, element),) = problem.resolved().section("friction").items()
    size = float(element.coefficients.kinetic(speed)[0])
    if element.limit is not None:
        size, element = size * float(element.limit(0.0)), replace(element, limit=Constant(1.0))
    if not size > 0.0:
        raise ProblemError(f"friction: found a friction of {size:g}, a positive start is needed")
    low, high = (part * size for part in RANGE)
    # Dampers are taken out: what they do now is where the viscous part begins.
    damping = sum(float(d.c) for d in problem.resolved().section("damper").values())
    damping = min(max(damping or size / speed, low / speed), high / speed)
    force, rate = Free(low, high, init=size), Free(low / speed, high / speed, init=damping)
    sided = {f"F_c_{side}": force for side in SIDES} | {f"F_v_{side}": rate for side in SIDES}
    fall = {
        "F_s": Free(-size, 10.0 * size, init=-0.1 * size, scale="linear"),
        "v_s": Free(1e-3 * speed, 10.0 * speed, init=0.1 * speed),
    }
    # Half of what is carried may be lost, and a thousandth is where the fit begins.
    grow = {"kappa": Free(0.0, 1.0 / size, init=1e-3 / size, scale="linear")}
    candidates = {
        "viscous": {"F_v": rate},
        "Coulomb": {"F_c": force},
        "Coulomb + viscous": {"F_c": force, "F_v": rate},
        "asymmetric": sided,
        "Stribeck": sided | fall,
        "load-dependent": sided | fall | grow,
    }
    if not loads or not _carried(problem):
        del candidates["load-dependent"]
    return [
        Candidate(
            title,
            _with_law(problem, name, element, free),
            {f"parameters.{path}": f for path, f in free.items()},
        )
        for title, free in candidates.items()
    ]


def _with_law(problem: Problem, name: str, element: Friction, free: Mapping[str, Free]) -> Problem:
    """``problem`` with the law of a candidate, whose coefficients are shared parameters."""
    both = tuple(f"F_c_{side}" in free for side in SIDES)

    def of_sides(term: str, more: str = "") -> Any:
        if both[0]:
            return Directional(*(f"${term}_{side}{more}" for side in SIDES))
        return f"${term}{more}" if term in free else 0.0

    falls = "F_s" in free
    law = Stribeck(
        mu_s=of_sides("F_c", "+$F_s" if falls else ""),
        mu_d=of_sides("F_c"),
        v_s="$v_s" if falls else 1.0,
        mu_v=of_sides("F_v"),
    )
    elements = {k: dict(v) for k, v in problem.elements.items() if k != "damper"}
    load = {"load": _carried(problem), "kappa": "$kappa"} if "kappa" in free else {}
    elements["friction"] = {name: replace(element, law=law, **load)}
    # Friction that is lowest at rest is no Stribeck curve: fits may find it, files may not hold it.
    numbers = {k: 0.0 if k == "F_s" else f.init for k, f in free.items()}
    return Problem(
        problem.dofs,
        elements,
        initial=problem.initial,
        time=problem.time,
        parameters={**problem.parameters, **numbers},
        matrices=problem.matrices,
    )


def _carried(problem: Problem) -> list[str]:
    """All elements with a force but dampers and friction; none where some have no force to name."""
    for group in problem.elements.values():
        for element in group.values():
            named = isinstance(element, tuple(SECTIONS[s] for s in WITH_FORCE))
            if isinstance(element, (AbstractForce, Lagrangian)) and not named:
                return []
    if problem.matrices.C is not None or problem.matrices.K is not None:
        return []
    sections = [s for s in WITH_FORCE if s != "damper"]
    return [element_label(s, name) for s in sections for name in problem.section(s)]


def laps(experiment: Experiment, dofs: Sequence[str], count: int) -> list[Experiment]:
    """``count`` pieces of equal length, each starting from its measured state."""
    length = (experiment.t[-1] - experiment.t[0]) / count
    return windows(experiment, dofs, length)[:count]


def cross_validate(
    fit_candidate: Callable[[Candidate, Sequence[Experiment]], FitResult],
    candidates: Sequence[Candidate],
    folds: Sequence[Experiment],
) -> list[Score]:
    """Fit every candidate to all but one of ``folds`` and predict that one, in turns.

    ``fit_candidate(candidate, experiments)`` makes the fit; errors are those of the predicted
    signals, relative to the measured ones (see :func:`relative_error`). ``candidates``: those of
    :func:`jfric.candidate_laws`, or one's own.
    """
    scores = []
    for candidate in candidates:
        inside, outside, size = [], [], 0
        for i, held_out in enumerate(folds):
            found = fit_candidate(candidate, [f for j, f in enumerate(folds) if j != i])
            inside.append(relative_error(found))
            outside.append(relative_error(found, held_out))
            size = len(candidate.free)
        scores.append(Score(candidate.name, size, _rms(inside), _rms(outside), tuple(outside)))
    return scores


def compare_laws(
    result: FitResult, free: Mapping[str, Free], watch: Watch | None = None
) -> list[Score]:
    """Laws compared for the system and records of a fit, over its records or, where there is
    one only, over four pieces of it. What the comparison does not replace stays free. ``watch`` is
    told as by :func:`jfric.fit`, with the law as the stage."""
    model = result.objective.model
    if not isinstance(model, OutputModel | SampledModel):
        raise ProblemError(f"compare laws: found the model {type(model).__name__} of your own")
    problem, signals = model.problem, result.objective.data.signals
    dof = next((d for d in problem.axes if d in result.experiments[0].y), None)
    if dof is None:
        raise ProblemError("compare laws: needs a measured position")
    folds = list(result.experiments)
    if len(folds) == 1:
        folds = laps(folds[0], [dof], PIECES)
    elif len(folds) > 2 * PIECES:
        folds = folds[:: len(folds) // PIECES]
    speeds = np.concatenate([np.gradient(e.y[dof], e.t) for e in folds])
    speed = float(np.sqrt(np.nanmean(speeds**2)))
    # Event by event a fit of so many coefficients to each fold takes minutes.
    candidates = candidate_laws(problem, speed, loads=isinstance(model, SampledModel))
    # Pieces begin at their measured states.
    kept = {
        path: item
        for path, item in free.items()
        if path.partition(".")[0] not in ("friction", "damper", "initial")
    }

    def fitted(candidate: Candidate, experiments: Sequence[Experiment]) -> FitResult:
        own = replace(model, problem=candidate.problem)
        told = None if watch is None else lambda stage, *found: watch(candidate.name, *found)
        return fit(
            own, experiments, {**kept, **candidate.free}, observe=signals, starts=1, watch=told
        )

    return cross_validate(fitted, candidates, folds)


def relative_error(result: FitResult, experiment: Experiment | None = None) -> float:
    """``|predicted - measured| / |measured|`` over the fitted records, or over another one, which
    is predicted with the fitted values and its own initial state."""
    objective = result.objective
    if experiment is not None:
        objective = _on(result, experiment)
    predicted = objective.linearise(result.vector[None]).predicted[0]
    measured, used = np.asarray(objective.measured), objective.weight > 0
    return float(np.linalg.norm((predicted - measured)[used]) / np.linalg.norm(measured[used]))


def _on(result: FitResult, experiment: Experiment) -> Objective:
    """The objective of a fit with the data of another experiment."""
    fitted = result.objective
    layout = fitted.layout
    if np.any(layout.columns != layout.columns[0]):
        raise ProblemError("free: parameters of single experiments cannot predict another one")
    problem = getattr(fitted.model, "problem", None)
    if isinstance(problem, Problem):
        experiment = full_experiment(problem, experiment)
    start, x0 = fitted.model.initial(experiment)
    data, used, _ = stack([experiment], fitted.data.signals, [start], [x0])
    return Objective(
        fitted.model, data, replace(layout, columns=layout.columns[:1]), used.astype(float)
    )


def _rms(values: Sequence[float]) -> float:
    return float(np.sqrt(np.mean(np.square(values))))
