"""``optimise``: inputs, gains and dimensions that are best for the exact motion."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from jfric.errors import ProblemError, require_one_of, warn, within
from jfric.fits.free import Free
from jfric.fits.optimise.searches import CANDIDATES, global_sample
from jfric.numerics.cores import cores
from jfric.numerics.limits import STARTS, STEPS, require_count
from jfric.numerics.printing import Shown, printable, short
from jfric.optima import engines
from jfric.optima.evaluation import Evaluation, Evaluator
from jfric.optima.goals import Goals, missed, read_goals
from jfric.optima.unknowns import Unknowns, by_path, read_unknowns
from jfric.results.abstract_observables import Observable
from jfric.results.status import NOT_DIFFERENTIABLE, Status, flags_in
from jfric.solvers.base import AbstractSolver, require_solver
from jfric.solvers.event_driven.solver import EventDriven
from jfric.sweeps.observing import observe as observed_on
from jfric.system.model import build
from jfric.system.naming import set_parameters
from jfric.system.problem import Problem

#: Iterations of an engine by default.
MOST = 500
#: Searches in a row, each with the constraints that depend on an unknown where it begins.
ROUNDS = 4
#: Part of the gradient, in units of that at the start, that counts as zero.
STILL = 1e-4
#: Violation of a constraint, as a part of its change over the ranges, that still counts as none.
FEASIBLE = 1e-10


@printable
@dataclass(frozen=True)
class Optimum:
    """The best values that :func:`jfric.optimise` found.

    ``values``: numbers and lists by path [SI]; ``problem``: the problem with them. ``objective``,
    ``observed`` (by name), ``violations`` (by the text of the constraint, zero where it holds),
    ``status`` and ``flags`` are those of a fresh run of the event-driven motion at these values,
    whatever solver the search used. ``feasible``: whether that run reached its end and each
    violation is less than 1e-10 of the change of its constraint over the ranges of the unknowns.
    ``converged``: whether it is feasible, and the engine ended by its own rule. ``message``: that
    of the engine. ``stationarity``: largest part of the gradient of the objective, over the ranges
    and in units of its size at the start, that the constraints and bounds do not take up: zero at a
    smooth optimum, NaN after a search without derivatives. ``starts``: the outcome of each start.
    ``derivatives`` and ``motions``: how many runs with and without derivatives the search took, and
    ``seconds`` [s] how long, compilation included.
    ``remarks``: what to know about the derivatives. Example: see :func:`jfric.optimise`.
    """

    problem: Problem
    values: dict[str, Any]
    objective: float
    observed: dict[str, float]
    violations: dict[str, float]
    status: int
    flags: int
    feasible: bool
    converged: bool
    message: str
    stationarity: float
    starts: tuple[dict[str, Any], ...]
    derivatives: int
    motions: int
    seconds: float
    remarks: tuple[str, ...]

    @property
    def violation(self) -> float:
        """The largest violation of a constraint."""
        return max(self.violations.values(), default=0.0)

    @property
    def differentiable(self) -> bool:
        """Whether no event at which derivatives may not exist occurs in the motion found."""
        return not self.flags & int(NOT_DIFFERENTIABLE)

    def _shown(self) -> Shown:
        how = "converged" if self.converged else "not converged"
        how = how if self.feasible else "not feasible"
        rows = [("objective", f"{self.objective:.10g}")]
        for path, value in self.values.items():
            several = np.ndim(value) > 0
            rows.append((path, short(value) if several else f"{float(value):.10g}"))
        rows += [(f"violation of {text}", f"{x:.3g}") for text, x in self.violations.items()]
        rows.append(("status", Status(self.status).name.lower()))
        runs = f"{self.derivatives} runs with derivatives, {self.motions} without"
        rows.append(("search", f"{runs}, {self.seconds:.3g} s; {self.message}"))
        return Shown(f"Optimum: {how}", (), rows, "; ".join(self.remarks))


def optimise(
    problem: Problem,
    free: Mapping[str, Any],
    objective: str | Observable,
    constraints: str | Sequence[str] = (),
    *,
    observe: Mapping[str, str | Observable] | None = None,
    method: str = "slsqp",
    starts: int = 1,
    seed: int = 0,
    iterations: int = MOST,
    solver: AbstractSolver | None = None,
) -> Optimum:
    """Minimise ``objective`` over the numbers of ``problem`` that are ``free``.

    ``free``: by path a pair ``(lower, upper)``, a start without bounds (a number, or a list; None:
    the problem's own), or a :class:`jfric.Free`; [SI]. A path may name a single number (a gain, a
    dimension, an initial state, ``time.end``) or a list: values and times of a
    :class:`jfric.functions.Steps` or :class:`jfric.PiecewiseLinear` are an input over time. Bounds
    may be lists as well; an entry with equal bounds is held. A start is the problem's own value
    where that lies within the bounds, else the middle. Times of a list are kept in order.

    ``objective`` is a formula in observables (``"rms.v.x + 0.1*max.a.x"``) and paths of single
    numbers (``"time.end"``), or one observable; ``constraints`` compare two such formulas by
    ``==``, ``<=`` or ``>=``, also with units: ``"final.x == 20 mm"``. ``observe``: further
    observables by the names that formulas use for them, such as ``{"early": "x(1 s)"}``.

    ``method``: ``"slsqp"`` and ``"trust-constr"`` of SciPy (sequential quadratic programming, with
    exact gradients through all events), ``"adam"`` of optax (without constraints), or, without
    derivatives, ``"cobyqa"`` of SciPy and ``"direct"``, the cross-entropy method, also for an
    objective that jumps. ``starts``: number of starts, the best of a sample within the bounds
    that is computed as one batch; ``seed``: of the sample. ``iterations``: largest number for each
    start. ``solver``: of the search, by default the event-driven one.

    Returns a :class:`jfric.Optimum`, the best feasible end of all starts, judged by a fresh run of
    the event-driven motion. Numerical trouble never raises: see ``status``, ``feasible`` and
    ``converged`` there. Raises :class:`jfric.ProblemError` for bad input, and for an objective
    whose derivative is zero everywhere, such as ``event_count``, with a method that needs it. Warns
    where the derivative with respect to an unknown is zero at the start, because the body sticks
    there or the input comes too late, and of quantities that jump: ``stop_time`` is a sawtooth
    over most numbers, as another reversal becomes the last one.

    Minimum time from rest to rest over 1 m with dry friction: full force ahead, then back::

        >>> sled = jfric.Problem(
        ...     ["x"],
        ...     {
        ...         "mass": jfric.Mass("x", 1.0),
        ...         "friction": jfric.Friction("x", limit=1.0),
        ...         "load": jfric.Load("x", jfric.Steps([1.0], [2.0, -2.0])),
        ...     },
        ...     time=2.0,
        ... )
        >>> best = jfric.optimise(
        ...     sled,
        ...     free={"load.F.times": (0.1, 5.0), "time.end": (0.1, 5.0)},
        ...     objective="time.end",
        ...     constraints=["final.x == 1 m", "final.v.x == 0"],
        ... )
        >>> best.converged, round(best.objective, 8)
        (True, 1.63299316)
    """
    began = time.perf_counter()
    problem = build(problem)
    solver = EventDriven() if solver is None else solver
    require_solver(solver)
    solver.require(problem)
    unknowns = read_unknowns(problem, free)
    goals = read_goals(problem, objective, constraints, observe or {})
    _require(method, starts, seed, iterations, unknowns, goals)
    remarks = _remarks(method, goals, solver)
    for text in remarks:
        warn(f"optimise: {text}")
    with within("free: at the start, "):
        set_parameters(problem, by_path(unknowns.places, unknowns.given))
    numbers = jax.tree.map(jax.numpy.asarray, problem)
    evaluator = Evaluator(numbers, unknowns, goals, solver)
    points = _points(evaluator, starts, seed)

    def search(number: int) -> _Outcome:
        return _search(evaluator, method, points[number], iterations, seed + number)

    with warnings.catch_warnings(), ThreadPoolExecutor(min(len(points), cores())) as pool:
        # Of SciPy, about goals that are linear in the unknowns.
        warnings.filterwarnings("ignore", "delta_grad == 0.0", UserWarning)
        ends = list(pool.map(search, range(len(points))))
    for text in ends[0].remarks:
        warn(f"optimise: {text}")
    return _judged(problem, evaluator, ends, remarks, solver, began)


def from_table(table: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of :func:`optimise` from the table ``[optimise]`` of a file."""

    def item(path: str, given: Mapping[str, Any]) -> Any:
        if "between" not in given:
            return None
        low, high = given["between"]
        if given.get("scale", "linear") == "linear":
            return low, high
        if np.ndim(low) or np.ndim(high):
            raise ProblemError(f"optimise.free.{path}.scale: 'log' takes one bound for all")
        return Free(low, high)

    free = {path: item(path, given) for path, given in table.get("free", {}).items()}
    return {"objective": "", **table, "free": free}


def _require(method, starts, seed, iterations, unknowns: Unknowns, goals: Goals) -> None:
    require_one_of("method", method, engines.METHODS)
    require_count("starts", starts, 1, STARTS)
    require_count("iterations", iterations, 1, STEPS)
    require_count("seed", seed, 0, STEPS)
    without = ~np.isfinite(unknowns.layout.high - unknowns.layout.low)
    if without.any() and (starts > 1 or method == "direct"):
        why = f"method {method!r} searches" if method == "direct" else "several starts are drawn"
        name = unknowns.layout.names[int(np.argmax(without))]
        raise ProblemError(f"free.{name}: found no bounds, {why} between bounds: (lower, upper)")
    if method == "adam" and (goals.shown or unknowns.order()[1].size):
        raise ProblemError(
            "method: 'adam' takes no constraints, nor free times of a list; take 'slsqp'"
        )
    if goals.counts and method in engines.WITH_DERIVATIVES:
        raise ProblemError(
            f"{goals.counts[0]}: a count changes in steps, its derivative is zero; take "
            "method='direct', or a quantity that changes smoothly"
        )


def _remarks(method: str, goals: Goals, solver: AbstractSolver) -> list[str]:
    """Remarks on the derivatives, before anything is computed."""
    if method not in engines.WITH_DERIVATIVES:
        return []
    found = [
        f"{name} jumps where another event becomes the last one (a sawtooth): its derivative is "
        "that within one tooth, in which the search stays; smooth are 'time.end', free, with "
        "constraints of rest at the end, or rms of a velocity; method='direct' and starts=N look "
        "beyond a tooth"
        for name in goals.last_times
    ]
    return found + ([f"{type(solver).__name__}: {solver.remark}"] if solver.remark else [])


def _points(evaluator: Evaluator, count: int, seed: int) -> np.ndarray:
    """``count`` starts (count, P): the given one, and the best of a sample."""
    layout = evaluator.unknowns.layout
    if count == 1:
        return layout.init[None]
    sample = global_sample(layout, CANDIDATES * count, seed)
    values = evaluator.many(sample)
    best = np.argsort(
        engines.merits(values, evaluator.equal, engines.spread(values)), kind="stable"
    )
    return np.concatenate([layout.init[None], sample[best[: count - 1]]])


@dataclass(frozen=True)
class _Outcome:
    """Where the search from one start ended. ``evaluation``: there, None if it failed at once."""

    start: np.ndarray
    end: engines.End
    evaluation: Evaluation | None
    stationary: float
    remarks: Sequence[str] = ()

    @property
    def sizes(self) -> np.ndarray:
        """Changes of the constraints over the ranges; 1 for those that do not change, and where
        the search failed at once."""
        if self.evaluation is None:
            return np.ones(())
        found = np.abs(self.evaluation.slopes[1:]).max(axis=1, initial=0.0)
        return np.where(found > 0.0, found, 1.0)

    def violation(self, equal: np.ndarray) -> float:
        """Largest violation, in units of :attr:`sizes`."""
        if self.evaluation is None:
            return np.inf
        off = missed(self.evaluation.values[1:], equal)
        return float((off / self.sizes).max(initial=0.0))


def _search(evaluator: Evaluator, method: str, x: np.ndarray, most: int, seed: int) -> _Outcome:
    """The end of the search from one start ``x`` (P,)."""
    unknowns = evaluator.unknowns
    y, limits = unknowns.scaled(x), unknowns.limits
    first, exact = evaluator.at(y), method in engines.WITH_DERIVATIVES
    if method == "direct":
        sample = global_sample(unknowns.layout, CANDIDATES * CANDIDATES, seed)
        end = engines.search_directly(
            evaluator, engines.spread(evaluator.many(sample)), x, seed, most
        )
        y = end.y
        first = evaluator.at(y)
    if not first.known:
        return _Outcome(x, engines.End(y, False, engines.failure(first), 0), None, np.nan)
    start, goals = first, engines.Scaled(evaluator, y, first, exact=exact)
    for _ in range(ROUNDS if method != "direct" else 0):
        goals = engines.Scaled(evaluator, y, first, exact=exact)
        end = engines.descend(method, goals, y, most, limits)
        y = np.clip(end.y, *limits)
        first = goals.at(y)
        # Constraints that a body at rest hid, as its speed at the end, count from here on.
        if not exact or not (first.slopes[1:].any(axis=1) & ~goals.moves).any():
            break
    y = engines.restored(goals, np.clip(end.y, *limits), limits)
    last = evaluator.at(y)
    if not last.known:
        y, end = goals.good_at, end._replace(done=False)
        last = evaluator.at(y)
    if method == "direct":
        return _Outcome(x, end._replace(y=y), last, np.nan)
    still = engines.stationarity(goals.at(y) if exact else last, goals, y, limits)
    remarks = _unmoved(evaluator, start) if exact else []
    if method == "adam":
        end = end._replace(done=still < STILL)
    elif exact and not last.slopes[0].any() and evaluator.goals.is_moved:
        end = end._replace(done=False, message="the objective depends on no unknown there")
    elif exact and not still < STILL:
        remarks.append(
            f"at the optimum a part of the gradient, {still:.2g}, is left: the objective has a "
            "kink or a jump there; compare several starts (starts=N), or method='direct'"
        )
    return _Outcome(x, end._replace(y=y), last, still, remarks)


def _unmoved(evaluator: Evaluator, first: Evaluation) -> list[str]:
    """Remarks on unknowns on which nothing depends at the start, and on goals that depend on
    none."""
    unknowns, goals = evaluator.unknowns, evaluator.goals
    names = np.asarray(unknowns.layout.names)[~first.slopes.any(axis=0)].tolist()
    few = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
    found = []
    if names:
        found.append(
            f"at the start no goal depends on {few}: does a body stick, or does the input come "
            "after the end? Search from another start (starts=N)"
        )
    still = ~first.slopes[: 1 + len(goals.shown)].any(axis=1)
    hidden = np.asarray(("the objective", *goals.shown))[still].tolist()
    if hidden and len(names) < len(unknowns.layout.names):
        found.append(f"at the start {', '.join(hidden)} depends on no unknown: does a body stick?")
    return found


def _judged(
    problem: Problem,
    evaluator: Evaluator,
    ends: list[_Outcome],
    remarks: list[str],
    solver: AbstractSolver,
    began: float,
) -> Optimum:
    """The best end, as a fresh run of the exact motion sees it."""
    unknowns, goals, equal = evaluator.unknowns, evaluator.goals, evaluator.equal
    off = np.asarray([end.violation(equal) for end in ends])
    heights = [np.inf if e.evaluation is None else float(e.evaluation.values[0]) for e in ends]
    order = sorted(range(len(ends)), key=lambda i: (max(off[i], FEASIBLE), heights[i]))
    best = ends[order[0]]
    x = unknowns.unscaled(best.end.y)
    values = by_path(unknowns.places, unknowns.whole(x))
    values = {path: float(v) if np.ndim(v) == 0 else v for path, v in values.items()}
    found = set_parameters(problem, values)
    exact = EventDriven() if solver.remark else solver
    seen, status, flags = {}, int(Status.OK), 0
    if goals.observables:
        run = observed_on(found, list(goals.observables), exact)
        seen, status, flags = run.values, int(run.status), int(run.flags)
    numbers = np.asarray(goals.values(found, seen))
    violations = missed(numbers[1:], goals.equal)
    reached = status == int(Status.OK) and bool(np.isfinite(numbers).all())
    sizes = np.broadcast_to(best.sizes, equal.shape)
    feasible = reached and bool(np.all(violations <= FEASIBLE * sizes[: violations.size]))
    remarks = [*remarks, *best.remarks]
    remarks += [f"at the optimum: {flag.message}" for flag in flags_in(flags)]
    return Optimum(
        problem=found,
        values=values,
        objective=float(numbers[0]),
        observed={name: float(value) for name, value in seen.items()},
        violations=dict(zip(goals.shown, violations.tolist(), strict=True)),
        status=status,
        flags=flags,
        feasible=feasible,
        converged=feasible and best.end.done,
        message=best.end.message,
        stationarity=best.stationary,
        starts=tuple(
            {
                "start": dict(zip(unknowns.layout.names, ends[i].start.tolist(), strict=True)),
                "objective": heights[i],
                "violation": float(off[i]),
                "iterations": ends[i].end.iterations,
                "message": ends[i].end.message,
            }
            for i in order
        ),
        derivatives=evaluator.derivatives,
        motions=evaluator.motions,
        seconds=time.perf_counter() - began,
        remarks=tuple(dict.fromkeys(remarks)),
    )
