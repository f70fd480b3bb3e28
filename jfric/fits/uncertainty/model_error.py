"""Effects that a model lacks, told from noise by what a fit leaves.

Noise of any colour, too, looks like an error of the model if only its correlation in time is looked
at. The tests here ask instead whether a change of the model takes it up. Each effect is some
parameters in addition to the free ones: a damper, a constant force and a spring at each degree of
freedom, masses that are not free, delays, offsets of sensors, initial states. All parameters are
fitted again together with those of one effect at a time. The test is that of Wald (1943) for the
new ones, with the covariance of :mod:`jfric.fits.uncertainty.noise_model`: autoregressive noise,
its model taken from what the larger fit leaves. Effects are added one after the other as long as
they are significant; levels hold for all tests together (Bonferroni).

White residuals leave nothing to be taken up, and nothing more is computed for them. What depends on
the motion or on an input, and is taken up by none of the effects, has an unknown cause: intervals
would be those of a noise that does not exist. See :mod:`jfric.fits.uncertainty.noise_tests`.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from jfric.errors import ProblemError
from jfric.fits.curve_prior import with_elements
from jfric.fits.free import Free, full_experiment, full_free, full_signals
from jfric.fits.memory import without_history
from jfric.fits.objective import Normal, Point, Squares
from jfric.fits.plausibility import doubtful_readings, mask_of, unexplained
from jfric.fits.recipe import Estimate
from jfric.fits.task import Task
from jfric.fits.uncertainty.covariance import Covariance
from jfric.fits.uncertainty.noise_model import Sandwich, autoregressive_covariance
from jfric.fits.uncertainty.noise_tests import (
    Dependence,
    dependences,
    inverse_of,
    repeated,
    wald,
    whiteness,
)
from jfric.fits.uncertainty.residual_series import residual_series
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
    if len(problem.dofs) > MANY_DOFS:
        return problem, groups
    changed: dict[str, dict[str, Any]] = {}
    for section, letter, kind, make in (
        ("damper", "c", "viscous", Damper),
        ("load", "F", "asymmetry", Load),
        ("spring", "k", "position", Spring),
    ):
        names = {dof: f"{ADDED}_{dof}" for dof in problem.dofs}
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


#: Level of the tests of effects, for all of them together, as of those of what the rest follows;
#: most effects that are named.
SIGNIFICANT, MOST = 1e-3, 3
#: Level below which residuals are not taken as white.
WHITE = 0.05
#: Effects that are fitted in each round, those that promise most by derivatives.
TRIED = 3
#: Rounds in which a fit with an effect is refined, their first and largest damping, and the part of
#: the cost whose gain ends them.
ROUNDS, BEGIN, LARGEST, SETTLED = 10, 1e-3, 1e2, 1e-6
#: Part of a column that is independent of the others, below which an effect cannot be told apart.
DEPENDENT = 1e-4
#: Relative difference of costs up to which the larger fit is the same without its effects.
SAME = 1e-3
#: What may be missing where residuals follow a signal, by a part of its name; the first one counts.
CAUSES = {
    "size of": "friction that grows with the load (compare_laws: 'load-dependent')",
    "input": "a delay or a filter of the input, or a force that it does not hold",
    "rate": "another curve of friction (compare_laws: 'Stribeck', 'curve') or a delay",
    "": "a force, or friction, that changes along the way",
}


@dataclass(frozen=True)
class Effect:
    """An effect that the model lacks.

    ``kind``: one of ``KINDS``; ``p``: of the test, times the number of tests; ``share``: part of
    the squared residuals that it takes up; ``values``: of its parameters.
    """

    kind: str
    p: float
    share: float
    values: Mapping[str, float]
    #: Candidate of :func:`jfric.compare_laws` that has this effect.
    candidate: str | None = None

    def __str__(self) -> str:
        found = ", ".join(f"{path} = {x:.3g}" for path, x in self.values.items())
        return (
            f"model error: {KINDS[self.kind].said} takes up {100 * self.share:.3g} % of the "
            f"squared residuals ({_level(self.p)}, {found.replace(f'{ADDED}_', '')})"
            + (f"; compare_laws has it in {self.candidate!r}" if self.candidate else "")
        )


@dataclass(frozen=True)
class ModelError:
    """Errors of the model that a fit leaves in its residuals.

    ``effects``: what the model lacks, the largest first. ``moved`` (P,): change of the free
    parameters if it had them; ``matrix`` (P, P), ``degrees`` (P,): their covariance then.
    ``dependences``: what the rest depends on. ``repeats``: the part that repeated records share.
    ``withheld``: whether the rest is so large that no interval holds.
    """

    effects: tuple[Effect, ...] = ()
    moved: np.ndarray | None = None
    matrix: np.ndarray | None = None
    degrees: np.ndarray | None = None
    dependences: Mapping[str, Dependence] = field(default_factory=dict)
    repeats: Dependence | None = None
    withheld: bool = False
    #: Number of wrong readings that are left out of all this, but not of the fit.
    readings: int = 0

    def remarks(self, names: Sequence[str]) -> tuple[str, ...]:
        """Sentences on the errors of the model of a fit of the parameters ``names`` (P,)."""
        said = [str(effect) for effect in self.effects]
        if self.repeats is not None:
            said.append(
                f"model error: {100 * self.repeats.share:.3g} % of the squared residuals are the "
                f"same in records that repeat each other ({_level(self.repeats.p)})"
            )
        if self.dependences:
            said.append(self._on_rest())
        if self.withheld:
            said.append("no intervals: they would take errors of the model as noise")
        elif self.moved is not None:
            moved = ", ".join(f"{n} by {x:+.3g}" for n, x in zip(names, self.moved, strict=True))
            causes = ["that"] if self.effects else []
            causes += [f"leaving out {self.readings:,} doubtful readings"] if self.readings else []
            said.append(
                f"intervals are widened by what {' and '.join(causes)} would change: {moved}"
            )
        return tuple(said)

    def _on_rest(self) -> str:
        name, (p, share) = min(self.dependences.items(), key=lambda item: item[1].p)
        rest = "what the effects leave" if self.effects else "what is left"
        then = next(said for word, said in CAUSES.items() if word in name)
        holds = "" if self.withheld else "; intervals do not hold that"
        return (
            f"model error: {rest} follows the {name} ({100 * share:.3g} % of its squares, "
            f"{_level(p)}), as no noise does: {then}{holds}"
        )


def widened(found: Covariance, error: ModelError) -> Covariance:
    """The covariance with the changes of the parameters that the effects would make, or none for
    parameters whose intervals are withheld: ``V + d d^T``, with the covariance ``V`` and the change
    ``d`` of the fit that has the effects."""
    said, matrix, degrees = error.remarks(found.names), found.matrix.copy(), found.degrees
    if error.withheld:
        np.fill_diagonal(matrix, np.inf)
    elif error.moved is not None:
        assert error.matrix is not None
        lost = ~np.isfinite(np.diagonal(matrix))
        matrix = error.matrix + np.outer(error.moved, error.moved)
        matrix[lost, lost] = np.inf
        degrees = error.degrees
    elif not said:
        return found
    return replace(found, matrix=matrix, degrees=degrees, model_error=said)


def _level(p: float) -> str:
    return f"p = {p:.1g}" if p > 1e-12 else "p < 1e-12"


def model_error(fit: Estimate) -> ModelError:
    """The effects that the model of ``fit`` lacks, and wrong readings that count in full; none
    where its residuals are white, where they cannot be told, and where parameters act in steps."""
    objective, layout = fit.objective, fit.objective.layout
    settled = fit.cloud is None and fit.recipe is not None and np.isfinite(fit.cost)
    if not (settled and objective.model.runs_in_time):
        return ModelError()
    point = Point(objective, fit.vector)
    found, active = point.linearised(), np.ones(layout.size, bool)
    if found.residuals.shape != objective.weight.shape or not np.isfinite(found.jacobian).all():
        return ModelError()
    known = ModelError()
    wrong = doubtful_readings(objective, fit.experiments, found.predicted)
    if wrong and isinstance(objective.loss, Squares):
        known, point = _without(fit, mask_of(wrong, objective))
        found = point.linearised()
    repeats = repeated(fit.experiments, point.objective, found.residuals)
    repeats = repeats if repeats is not None and repeats.p < SIGNIFICANT else None
    if whiteness(residual_series(point)) > WHITE:
        return replace(known, repeats=repeats)
    larger = larger_fit(fit, point.objective.weight)
    if larger is not None:
        more, point, active = _search(fit, point, *larger)
        known = known if more.moved is None else replace(more, readings=known.readings)
        found = point.linearised()
    rest = dependences(point.objective, found, active)
    rest = {name: d for name, d in rest.items() if d.p < SIGNIFICANT}
    far = unexplained(point.objective, fit.experiments, found.predicted)
    return replace(known, dependences=rest, repeats=repeats, withheld=bool(far) and bool(rest))


def _without(fit: Estimate, wrong: np.ndarray) -> tuple[ModelError, Point]:
    """The fit without the readings ``wrong`` (E, m, k), and what changes."""
    objective = copy.copy(fit.objective)
    objective.weight = np.where(wrong, 0.0, objective.weight)
    active = np.ones(fit.vector.size, bool)
    start = Point(objective, fit.vector)
    point = Point(objective, _refined(start, active, active[None])[0])
    covariance = _covariance(point, active)
    moved = point.vector - fit.vector
    return ModelError(
        moved=moved, matrix=covariance.matrix, degrees=covariance.degrees, readings=int(wrong.sum())
    ), point


def _covariance(point: Point, active: np.ndarray) -> Sandwich:
    """Covariance of the ``active`` (P,) parameters at a point, zero for the others."""
    inverse = inverse_of(point.normal.hessian, active)
    prior = point.objective.layout.prior_terms(point.vector)[2] * active
    return autoregressive_covariance(residual_series(point), inverse, prior)


def _search(
    fit: Estimate, start: Point, task: Task, groups: Mapping[str, Sequence[str]]
) -> tuple[ModelError, Point, np.ndarray]:
    """Effects that are significant, one after the other, the point with all of them, and which
    parameters are free there."""
    objective, names = task.objective, task.objective.layout.names
    own = np.array([names.index(name) for name in fit.names])
    x = objective.layout.init.copy()
    x[own] = start.vector
    active = np.isin(np.arange(x.size), own)
    columns = {
        kind: np.array([name.partition("[")[0] in paths for name in names])
        for kind, paths in groups.items()
    }
    point, effects, found = Point(objective, x), [], None
    # A problem with one friction element has candidates of jfric.compare_laws.
    system = task.setup.system
    compared = system is not None and len(system.section("friction")) == 1
    first = float(point.normal.cost)
    if not np.isclose(first, start.normal.cost, rtol=SAME):
        return ModelError(), start, np.ones(own.size, bool)  # the larger model is not the same
    while len(effects) < MOST:
        best = _best(point, active, columns, len(groups))
        if best is None:
            break
        kind, new, p, larger, found = best
        values = {names[i]: float(larger.vector[i]) for i in np.flatnonzero(new)}
        share = float(point.normal.cost - larger.normal.cost) / first
        effects.append(Effect(kind, p, share, values, KINDS[kind].candidate if compared else None))
        point, active = larger, active | new
        del columns[kind]
    if found is None:
        return ModelError(), point, active
    moved, matrix = point.vector[own] - fit.vector, found.matrix[np.ix_(own, own)]
    return ModelError(tuple(effects), moved, matrix, found.degrees[own]), point, active


def _best(point: Point, active, columns: Mapping[str, np.ndarray], tests: int):
    """The significant effect that takes up most: its kind and parameters, p-value, the point with
    it and the covariance there; None without one."""
    hopeful = []
    for kind, wanted in columns.items():
        new = _independent(point.normal.hessian, active, wanted)
        if new.any():
            gain = _gain(point.normal, active | new) - _gain(point.normal, active)
            hopeful.append((gain, kind, new))
    hopeful = sorted(hopeful, key=lambda row: -row[0])[:TRIED]
    if not hopeful:
        return None
    sets = np.stack([active | new for _, _, new in hopeful])
    reached = [Point(point.objective, x) for x in _refined(point, active, sets)]
    for i in np.argsort([p.normal.cost for p in reached], kind="stable"):
        larger, (_, kind, new) = reached[i], hopeful[i]
        if not larger.normal.cost < point.normal.cost:
            break
        found = _covariance(larger, active | new)
        j = np.flatnonzero(new)
        off = larger.vector[j] - point.vector[j]
        p = tests * wald(off, found.matrix[np.ix_(j, j)], float(found.degrees[j].min()))
        if p < SIGNIFICANT:
            return kind, new, p, larger, found
    return None


def _independent(hessian: np.ndarray, active: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """``wanted`` (P,) without parameters that act as those before them do, or not at all."""
    size = np.sqrt(np.maximum(np.diagonal(hessian), 0.0))
    scaled = hessian / np.maximum(np.outer(size, size), 1e-300)
    kept = list(np.flatnonzero(active))
    new = np.zeros(wanted.size, bool)
    for i in np.flatnonzero(wanted & ~active & (size > 0.0)):
        part = np.linalg.lstsq(scaled[np.ix_(kept, kept)], scaled[kept, i], rcond=1e-12)[0]
        if scaled[i, i] - part @ scaled[kept, i] > DEPENDENT**2:
            kept.append(i)
            new[i] = True
    return new


def _gain(normal: Normal, free: np.ndarray) -> float:
    """How much the parameters ``free`` (P,) would lower the cost if residuals were linear."""
    return 0.5 * float(normal.gradient @ inverse_of(normal.hessian, free) @ normal.gradient)


def _refined(point: Point, known: np.ndarray, sets: np.ndarray) -> np.ndarray:
    """Least cost from ``point`` by each of the ``sets`` (G, P) of parameters, (G, P), by
    Levenberg-Marquardt. Values of ``known`` (P,) keep their bounds; others may have any sign."""
    objective = point.objective
    low, high = objective.layout.bounds
    points, damping = np.repeat(point.vector[None], len(sets), axis=0), np.full(len(sets), BEGIN)
    best = Normal(*(np.repeat(np.asarray(a)[None], len(sets), axis=0) for a in point.normal))
    for _ in range(ROUNDS):
        trial = points.copy()
        for g, own in enumerate(sets):
            damped = best.hessian[g] + damping[g] * np.diag(np.diagonal(best.hessian[g]))
            trial[g] -= inverse_of(damped, own) @ best.gradient[g]
        trial = np.where(known, np.clip(trial, low, high), trial)
        new = objective.normal(trial)
        better = new.cost < best.cost
        settled = np.where(better, best.cost - new.cost <= SETTLED * best.cost, damping > LARGEST)
        points = np.where(better[:, None], trial, points)
        best = Normal(
            np.where(better, new.cost, best.cost),
            np.where(better[:, None], new.gradient, best.gradient),
            np.where(better[:, None, None], new.hessian, best.hessian),
        )
        damping = np.where(better, 0.1 * damping, 10.0 * damping)
        if settled.all():
            break
    return points
