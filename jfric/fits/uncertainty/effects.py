"""Effects that a model may lack, as further parameters of its fit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from jfric.errors import ProblemError
from jfric.fits.curve_prior import with_elements
from jfric.fits.free import Free
from jfric.fits.full_paths import full_experiment, full_free, full_signals
from jfric.fits.memory import without_history
from jfric.fits.recipe import Estimate
from jfric.fits.task import Task
from jfric.system.elements import Damper, Load, Spring
from jfric.system.expression import Expression
from jfric.system.naming import parameters
from jfric.system.problem import Problem

#: Degrees of freedom, and records, up to which each has an effect of its own.
MANY_DOFS, MANY_RECORDS = 4, 8
#: A parameter of an effect; it starts from the value of the problem.
ANY = Free(-1e9, 1e9, scale="linear")
#: Name of the elements that are added.
ADDED = "not_modelled"


class Kind(NamedTuple):
    """An effect in words, and the candidate of :func:`jfric.compare_laws` that has it."""

    said: str
    candidate: str | None = None


KINDS = {
    "viscous": Kind("friction that grows with the velocity", "Coulomb + viscous"),
    "asymmetry": Kind("a constant force, or friction that differs by direction", "asymmetric"),
    "position": Kind("a spring, or friction that changes along the way"),
    "mass": Kind("another mass, or friction that grows with the load", "load-dependent"),
    "delay": Kind("a delay"),
    "offset": Kind("an offset of a sensor"),
    "initial state": Kind("another initial state"),
}


def larger_fit(fit: Estimate, weight: np.ndarray) -> tuple[Task, dict[str, list[str]]] | None:
    """The fit with the parameters of all effects free and the weights (E, m, k), and their paths by
    kind; None for a model of the user, of whose parameters nothing is known."""
    assert fit.recipe is not None
    setup = fit.recipe.setup
    system = setup.system
    if system is None:
        return None
    records = tuple(full_experiment(system, e) for e in setup.experiments)
    free, observe = full_free(system, setup.free), full_signals(system, setup.observe)
    problem: Any = setup.problem
    groups = _measured(fit, system)
    try:
        if isinstance(problem, Problem):
            problem, more = _with_elements(problem)
            groups |= more
        # Neither free nor known already.
        taken = {*fit.objective.layout.paths, *(p for e in records for p in e.known or {})}
        groups = {
            kind: {path: item for path, item in found.items() if path not in taken}
            for kind, found in groups.items()
        }
        free |= {path: item for found in groups.values() for path, item in found.items()}
        changed = replace(setup, problem=problem, experiments=records, observe=observe, free=free)
        task = changed.task()
    except ProblemError:
        return None
    if task.objective.weight.shape != weight.shape:
        return None
    task.objective.weight = weight
    return task, {kind: list(found) for kind, found in groups.items()}


def _with_elements(problem: Problem) -> tuple[Problem, dict[str, dict[str, Free]]]:
    """The problem with a damper, a constant force and a spring at each degree of freedom, all zero,
    and their parameters; masses that are numbers."""
    groups: dict[str, dict[str, Free]] = {}
    masses = {
        path: Free(0.5 * float(x), 2.0 * float(x), scale="linear")
        for path, x in parameters(problem).items()
        if path.startswith("mass.") and not isinstance(x, Expression) and float(x) > 0.0
    }
    if len(masses) <= MANY_DOFS:
        groups["mass"] = masses
    if len(problem.axes) > MANY_DOFS:
        return problem, groups
    changed: dict[str, dict[str, Any]] = {}
    for section, letter, kind, make in (
        ("damper", "c", "viscous", Damper),
        ("load", "F", "asymmetry", Load),
        ("spring", "k", "position", Spring),
    ):
        names = {dof: f"{ADDED}_{dof}" for dof in problem.axes}
        own = {name: make(dof, 0.0) for dof, name in names.items()}
        changed[section] = own
        groups[kind] = {
            f"{section}.{name}.{letter}": Free(0.0, 1.0, scale="linear") for name in own
        }
    return with_elements(problem, changed), groups


def _measured(fit: Estimate, system: Problem) -> dict[str, dict[str, Free]]:
    """Parameters of sensors, inputs, controllers and initial states that the model of the fit has,
    by kind."""
    data = fit.objective.data
    t = np.asarray(data.t)
    late = Free(0.0, 0.1 * float(np.ptp(t[np.isfinite(t)])), scale="linear")
    delays = {f"input.{path}.delay": late for path in without_history(data.u)} | {"delay": late}
    delays["controller.delay"] = Free(0.0, 2.0, scale="linear")
    if any(path.endswith("delay") for path in fit.objective.layout.paths):
        delays = {}  # two delays in sequence act almost as one
    each = replace(ANY, per_experiment=True)
    dofs = system.axes if t.shape[0] <= MANY_RECORDS else ()
    found = {
        "delay": delays,
        "offset": {f"sensor.{signal}.offset": ANY for signal in data.signals},
        "initial state": {f"initial.{dof}.{letter}": each for dof in dofs for letter in "qv"},
    }
    return {k: {p: x for p, x in own.items() if _is_free(fit, p)} for k, own in found.items()}


def _is_free(fit: Estimate, path: str) -> bool:
    """Whether the model of the fit has such a parameter."""
    try:
        fit.objective.model.default(path, fit.experiments[0])
    except ProblemError:
        return False
    return True
