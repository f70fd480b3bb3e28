"""``compare_laws``: laws of friction, fitted to some records and judged on the others."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from jfric.errors import ProblemError, require_one_of
from jfric.fits.comparison.candidates import (
    BEGIN,
    CURVE,
    MEMORY,
    Candidate,
    candidate_laws,
    curve_candidate,
)
from jfric.fits.comparison.criteria import (
    CLOSED,
    CRITERIA,
    JOINT,
    OPEN,
    WINDOWS,
    Fold,
    Setting,
    error,
    folds_of,
    held_out_over_fitted,
    possible,
    residual_of,
    unit_of,
)
from jfric.fits.comparison.diagnostics import at_bounds, residual_tests, starts_at_bounds, trades
from jfric.fits.comparison.kinds import groups_of, kinds_of, remarks_on_kinds
from jfric.fits.comparison.next_record import NextRecord, Rival, next_record
from jfric.fits.comparison.result import (
    Criterion,
    Fitted,
    LawComparison,
    LawResult,
    differences,
    verdict,
)
from jfric.fits.curve_fit import CurveFit, fit_curve
from jfric.fits.data.experiment import Experiment, remarks_of
from jfric.fits.fit_result import FitResult, fit
from jfric.fits.free import Free, beginning_at, full_controller, full_experiment, full_free
from jfric.fits.optimise.descents import LevenbergMarquardt
from jfric.fits.residuals import starts_anywhere
from jfric.fits.sampled_model import with_found_delay
from jfric.solvers.sampled.equations import is_one_degree
from jfric.system.assembly import assemble
from jfric.system.controller import Controller
from jfric.system.model import build
from jfric.system.naming import parameters, set_parameters
from jfric.system.problem import Problem

#: Sections that the comparison replaces, or takes from the measured state.
REPLACED = ("friction", "damper", "initial")
#: Endings of coefficients with a direction: both start from the value of a simpler law.
SIDES = ("_positive", "_negative")


def compare_laws(
    problem: Problem,
    experiments: Experiment | Sequence[Experiment],
    free: Mapping[str, Free] | None = None,
    *,
    laws: Sequence[str] | None = None,
    criteria: Sequence[str] | None = None,
    fitted_to: str | None = None,
    folds: int | None = None,
    lap: float | None = None,
    groups: str | Sequence[str] | None = None,
    controller: Controller | None = None,
    window: float | None = None,
    period: float | None = None,
    hold: str = "zero",
    starts: int = 1,
    max_iterations: int | None = None,
    announce: Callable[[str], None] | None = None,
) -> LawComparison:
    """Laws for the one friction element of ``problem``, compared on records held out from the fit.

    ``laws``: names of :func:`jfric.candidate_laws`, and ``"curve"`` for :func:`jfric.fit_curve`; by
    default all except those with memory. ``period`` [m or rad]: friction that repeats along the way
    is a candidate. ``free``: other parameters that are free in every law, by path; initial states
    are free where they matter. ``criteria``: of ``"closed loop"`` (force of the ``controller``),
    ``"inverse dynamics"``, ``"windows"`` of ``window`` [s] (1 s unless given) and ``"open loop"``
    (over the whole of a held-out piece); all that the records allow by default. ``fitted_to``: the
    criterion that is minimised, by default ``"closed loop and windows"``
    (:class:`jfric.LoopAndWindows`) where there is a controller, its force alone where that has an
    integral, else windows. The delay of a controller is the one that the records show, as for
    :class:`jfric.ClosedLoop`.

    Each fit leaves out one of the ``groups`` of ``experiments``: ``"file"``, each alone;
    ``"excitation"``, all of one kind; or patterns of their names, one for each group. By default
    kinds, if there are several, else each record, if there are at least three. ``folds`` pieces of
    each record (four of fewer records) or laps of ``lap`` [s] are left out instead. Where all
    records are of one kind, or the next best law is as good, ``next_record`` of the result tells
    them apart. Laws are compared by the differences of their errors on the same folds; the standard
    error of their mean allows for the overlap of the fitted data (Nadeau and Bengio 2003), and
    correlation within a fold does not affect it. The smoothness of the curve, one number, is chosen
    on the first fold's records alone. The recommendation is the simplest law within two standard
    errors of the best, or within 1 % of its error, by every criterion, or else by all criteria that
    were not fitted, or none. The recommended law is fitted once more, to all records.

    ``starts``, ``max_iterations``, ``hold``: as in :func:`jfric.fit`; every fit also starts from
    the results of the simpler laws. ``announce``: called with the name of each step. Raises
    :class:`jfric.ProblemError` for records and laws that cannot be compared. A motion under
    Coulomb's friction::

        >>> slide = jfric.Problem(
        ...     ["x"],
        ...     {
        ...         "mass": jfric.Mass("x", 3.0),
        ...         "friction": jfric.Friction("x", limit=1.0),
        ...         "load": jfric.Load("x", 0.0),
        ...     },
        ... )
        >>> t = jnp.arange(0.0, 12.0, 1e-2)
        >>> x, v, a = 0.5 * jnp.sin(2.0 * t), jnp.cos(2.0 * t), -2.0 * jnp.sin(2.0 * t)
        >>> data = jfric.Experiment(t, u={"load.F": 3.0 * a + 2.0 * jnp.sign(v)}, y={"x": x})
        >>> found = jfric.compare_laws(
        ...     slide, data, laws=["viscous", "Coulomb"], criteria=["inverse dynamics"],
        ...     fitted_to="inverse dynamics", folds=2)
        >>> header, rows = found.table()
        >>> [row[0] for row in rows if row[3] == "best"], found.fitted_to
        (['Coulomb'], 'inverse dynamics')
    """
    problem = build(problem)
    given = [experiments] if isinstance(experiments, Experiment) else list(experiments)
    chosen = [full_experiment(problem, e) for e in given]
    missing = [dof for dof in problem.dofs for e in chosen if dof not in e.y]
    if missing:
        raise ProblemError(f"y.{missing[0]}: the comparison needs measured positions")
    kept, told = _kept(problem, free or {}), []
    if controller is not None:
        controller = full_controller(problem, controller)
        controller, chosen = with_found_delay(controller, chosen, kept)
        told = remarks_of(chosen)
    several = [
        k for k, x in {"groups": groups, "folds": folds, "lap": lap}.items() if x is not None
    ]
    if len(several) > 1:
        raise ProblemError(f"{several[0]}: found {' and '.join(several)}, give one of them")
    kinds = kinds_of(chosen)
    parts = groups_of(chosen, groups) if folds is None and lap is None else None
    pieces = folds_of(chosen, [*problem.dofs], folds, lap, parts)
    told += remarks_on_kinds(kinds, parts)
    allowed = possible(problem, [e for fold in pieces for e in fold], controller)
    judged = _chosen("criteria", criteria, allowed)
    both = controller is not None and starts_anywhere(controller)
    both = both and {CLOSED, WINDOWS} <= set(allowed)
    if fitted_to is None and both and {CLOSED, WINDOWS} <= set(judged):
        fitted_to = JOINT
    target = fitted_to or (CLOSED if CLOSED in allowed else WINDOWS)
    _known("fitted_to", target, [*allowed, JOINT] if both else allowed)
    if window is None and (WINDOWS in judged or target == JOINT):
        window = _window(pieces)
    setting = Setting(controller, window, hold, problem)
    comparison = _Comparison(
        problem, kept, pieces, setting, target, judged,
        {"starts": starts, "optimiser": LevenbergMarquardt(max_iterations or 60)},
        announce or (lambda text: None),
        period,
    )  # fmt: skip
    found = replace(comparison.of(laws), remarks=tuple(told))
    return replace(found, next_record=comparison.telling(found, len(kinds) == 1))


def _kept(problem: Problem, free: Mapping[str, Free]) -> dict[str, Free]:
    """Free parameters that all laws share: none of friction, dampers and initial states."""
    found = {}
    for path, item in full_free(problem, free).items():
        if path.partition(".")[0] in REPLACED:
            continue
        if item.per_experiment:
            raise ProblemError(
                f"free.{path}: a value of each experiment cannot predict another one"
            )
        found[path] = item
    return found


def _chosen(what: str, given: Sequence[str] | None, allowed: Sequence[str]) -> list[str]:
    if given is None:
        return list(allowed)
    for name in given:
        _known(what, name, allowed)
    return [name for name in allowed if name in given]


def _known(what: str, name: str, allowed: Sequence[str]) -> None:
    if name in CRITERIA and name not in allowed:
        needs = (
            "a controller and its measured reference and force"
            if name == CLOSED
            else "even steps and positions without gaps, longer than the filter"
        )
        raise ProblemError(f"{what}: found {name!r}, which needs {needs}")
    require_one_of(what, name, allowed)


def _window(pieces: Sequence[Fold]) -> float:
    """The default length of windows: one second, or a quarter of the shortest piece."""
    shortest = min(float(np.ptp(e.t)) for fold in pieces for e in fold)
    return min(1.0, shortest / 4.0)


@dataclass
class _Comparison:
    problem: Problem
    kept: Mapping[str, Free]
    folds: Sequence[Fold]
    setting: Setting
    target: str
    criteria: Sequence[str]
    search: Mapping[str, Any]
    announce: Callable[[str], None]
    #: Length along the way after which friction repeats itself, if known.
    period: float | None = None
    #: The curve that was fitted last.
    curve: CurveFit | None = None
    #: Fitted values so far, by law and fold.
    values: dict[tuple[str, int], Mapping[str, float]] = field(default_factory=dict)

    def of(self, laws: Sequence[str] | None) -> LawComparison:
        """All laws on all folds."""
        names = [*self.candidates, CURVE]
        default = [name for name in names if name not in MEMORY]
        wanted = _chosen("laws", default if laws is None else laws, names)
        if len(wanted) < 2:
            raise ProblemError(f"laws: found {', '.join(wanted) or 'none'}, give at least two")
        results, scores, sizes = [], [], np.full((len(self.criteria), len(self.folds)), np.nan)
        for name in wanted:
            found, own = self._law(name, sizes)
            results.append(found)
            scores.append(own)
        table = np.stack(scores)  # (L, C, F)
        ratio = held_out_over_fitted(self.folds)
        size = np.sqrt(np.nanmean(sizes**2, axis=1)).tolist()
        judged = tuple(
            Criterion(
                name,
                unit_of(self.problem, name),
                size[i],
                name in self.target.split(" and "),
                differences(table[:, i], ratio, size[i]),
            )
            for i, name in enumerate(self.criteria)
        )
        found = verdict(wanted, judged)
        name = None if found.recommended is None else wanted[found.recommended]
        return LawComparison(
            tuple(results),
            judged,
            tuple(", ".join(str(e.name) for e in fold) for fold in self.folds),
            self.target,
            found,
            None if name is None else self._of_all(name),
        )

    def _of_all(self, name: str) -> Fitted | None:
        """The law fitted to all folds."""
        self.announce(f"{name}, fitted to all records")
        try:
            problem, result = self._fitted(name, len(self.folds))
            values = {k: x for k, x in result.values.items() if "[" not in k}
            problem = _with_values(problem, values)
        except ProblemError:
            return None  # said of the folds
        intervals = result.intervals()
        return Fitted(problem, values, {k: intervals[k] for k in values})

    def telling(self, found: LawComparison, one_kind: bool) -> NextRecord | None:
        """The record that would tell the recommended law, or the best one, from the next best:
        where both are as good, or ``one_kind`` of records says less than another one would."""
        simulated = [c for c in found.criteria if c.name in (CLOSED, OPEN)]
        judge = (simulated or found.criteria)[0]
        order = [int(i) for i in np.argsort(judge.differences.mean, kind="stable")]
        first = found.verdict.recommended
        first = order[0] if first is None else first
        pair = [first, *(i for i in order if i != first)][:2]
        laws = [found.laws[i] for i in pair]
        alike = bool(np.all([c.differences.as_good[pair] for c in found.criteria]))
        if not one_kind and not alike:
            return None
        if not all(len(law.problems) == len(self.folds) for law in laws):
            return None
        self.announce(f"a record that tells {laws[0].name} from {laws[1].name}")
        one, other = (Rival(law.name, law.problems[0], law.values[0]) for law in laws)
        criterion, off = judge.name, float(judge.differences.scores[first, 0])
        if not simulated:
            criterion = OPEN
            off, _ = error(OPEN, one.problem, one.values, self.folds[0], self.setting)
        if not 0.0 < off < np.inf:
            return None
        record = next_record(criterion, (one, other), self.folds[0][0], off, self.setting)
        return record if record is not None and (alike or record.tells) else None

    @functools.cached_property
    def _speeds(self) -> np.ndarray:
        records = [e for fold in self.folds for e in fold]
        rates = [np.gradient(e.y[dof], e.t) for e in records for dof in self.problem.dofs]
        speeds = np.abs(np.concatenate(rates))
        return speeds[np.isfinite(speeds)]

    @functools.cached_property
    def candidates(self) -> dict[str, Candidate]:
        """The named laws, for the motion of the records."""
        speed = float(np.sqrt(np.mean(self._speeds**2)))
        loads = is_one_degree(assemble(self.problem))
        y = [e.y[dof] for f in self.folds for e in f for dof in self.problem.dofs]
        travel = max(float(np.nanmax(x) - np.nanmin(x)) for x in y) if loads else None
        laws = candidate_laws(self.problem, speed, loads=loads, travel=travel, period=self.period)
        return {law.name: law for law in laws}

    def _law(self, name: str, sizes: np.ndarray) -> tuple[LawResult, np.ndarray]:
        """The result of one law on all folds, and its scores (C, F)."""
        scores = np.full((len(self.criteria), len(self.folds)), np.inf)
        first, remarks, values, problems, free = None, [], [], [], 0
        for i, fold in enumerate(self.folds):
            self.announce(f"{name}, {i + 1} of {len(self.folds)} folds left out")
            try:
                problem, result = self._fitted(name, i)
            except ProblemError as wrong:
                remarks.append(f"fold {i + 1} left out: {wrong}")
                continue
            own = {k: x for k, x in result.values.items() if "[" not in k}
            values.append(own)
            free = len([k for k in own if not k.startswith("initial.")])
            if not np.isfinite(result.cost):
                remarks.append(f"fold {i + 1} left out: {result.outcome.message}")
                continue
            self.values[name, i] = own
            try:
                problems.append(_with_values(problem, own))
            except ProblemError as wrong:  # the model from sample to sample asks for no bounds
                remarks.append(f"fold {i + 1}: no system has the values found: {wrong}")
            first = first or (problem, result)
            for j, criterion in enumerate(self.criteria):
                scores[j, i], size = error(criterion, problem, own, fold, self.setting)
                sizes[j, i] = size if np.isfinite(size) else sizes[j, i]
            errors = zip(self.criteria, scores[:, i], strict=True)
            self.announce(f"{name}: " + ", ".join(f"{c} {e:.4g}" for c, e in errors))
        if first is None:
            return LawResult(name, free, tuple(values), (), (), (), tuple(remarks)), scores
        _, result = first
        try:
            tests = residual_tests(result)
        except ProblemError:
            tests = ()  # records without inverse dynamics
        law = LawResult(
            name=name,
            parameters=free,
            values=tuple(values),
            trades=trades(result),
            tests=tests,
            problems=tuple(problems),
            remarks=(*remarks, *starts_at_bounds(result)),
            bounds=at_bounds(result),
        )
        return law, scores

    def _fitted(self, name: str, left_out: int) -> tuple[Problem, FitResult]:
        """The problem of a law and its fit to all folds but one."""
        pieces = [e for i, fold in enumerate(self.folds) if i != left_out for e in fold]
        options = {**self.search, "residual": residual_of(self.target, pieces, self.setting)}
        options["hold"] = self.setting.hold
        if name != CURVE:
            candidate = self.candidates[name]
            start = self._start(name, left_out)
            free = beginning_at({**self.kept, **candidate.free}, start)
            result = fit(candidate.problem, pieces, free, **options)
            return candidate.problem, result
        if self.curve is None:
            start = self._simple(left_out, pieces, options)
            fastest = float(np.quantile(self._speeds, 0.999))
            problem = curve_candidate(self.problem, fastest, start).problem
            found = fit_curve(problem, pieces, beginning_at(self.kept, start), **options)
        else:
            # The smoothness was chosen once, on the first fold's records.
            start, weight = self.curve.fit.values, self.curve.weight
            free = beginning_at(self.kept, start)
            found = fit_curve(self.curve.problem, pieces, free, weight=weight, **options)
        if np.isfinite(found.fit.cost):
            self.curve = found
        return found.problem, found.fit

    def _start(self, name: str, left_out: int) -> dict[str, float]:
        """Start values: from the simpler laws on this fold, then from this law on other folds."""
        order = list(self.candidates)
        begin: dict[str, float] = {}
        for other in order[: order.index(name)]:
            for path, value in self.values.get((other, left_out), {}).items():
                begin[path] = value
                begin |= {path + side: value for side in SIDES}
        levels = [begin[path] for path in map("parameters.F_c{}".format, SIDES) if path in begin]
        if levels:
            begin["parameters.F_s"] = BEGIN * min(levels)
        return begin | dict(self.values.get((name, left_out - 1), {}))

    def _simple(self, left_out: int, pieces, options) -> Mapping[str, float]:
        """Values of Coulomb and viscous friction on this fold."""
        name = "Coulomb + viscous"
        if (name, left_out) not in self.values:
            candidate = self.candidates[name]
            found = fit(candidate.problem, pieces, {**self.kept, **candidate.free}, **options)
            self.values[name, left_out] = found.values
        return self.values[name, left_out]


def _with_values(problem: Problem, values: Mapping[str, float]) -> Problem:
    known = parameters(problem)
    return set_parameters(problem, {k: x for k, x in values.items() if k in known})
