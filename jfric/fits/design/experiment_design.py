"""``design_experiment``: the input that makes parameters most certain, and its result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from jaxtyping import Float

from jfric.errors import ProblemError, require_one_of, within
from jfric.fits.data.experiment import Experiment
from jfric.fits.design.rivals import RANGE, SHARE, Rivals
from jfric.fits.design.search import CLIMBS, Search, Slot, Slots, decomposed, expected
from jfric.fits.free import Free, full_free, full_path
from jfric.fits.optimise.searches import global_sample, sobol
from jfric.fits.recipe import prepare
from jfric.fits.residuals import Simulation
from jfric.fits.task import Task
from jfric.numerics.limits import STARTS, require_count
from jfric.numerics.printing import printable
from jfric.system.expression import Expression
from jfric.system.model import build
from jfric.system.naming import find_path, get_parameter, set_parameters
from jfric.system.problem import Problem


@printable
@dataclass(frozen=True)
class ExperimentDesign:
    """The next experiment and the certainty expected from it, compared with the present one.

    ``inputs``: its numbers by path; ``problem``: the given problem with these inputs. ``before``,
    ``after``: standard deviations of each parameter by the present and by the new experiment
    (bounds of Cramer and Rao, root mean square over where the estimates will fall); infinite for
    parameters that are not determined. ``condition``: ratios of the largest to the smallest
    eigenvalue of the information, in parts of the parameters' sizes, before and after. ``merit``:
    logarithms of the maximised criterion at the given values of the parameters, before and after.
    ``evaluations``: number of simulated experiments. ``remarks``: limits of these numbers. Example:
    see :func:`jfric.design_experiment`.
    """

    inputs: Mapping[str, float | np.ndarray]
    before: Mapping[str, float]
    after: Mapping[str, float]
    condition: tuple[float, float]
    merit: tuple[float, float]
    evaluations: int
    problem: Problem = field(repr=False)
    remarks: tuple[str, ...] = ()

    @property
    def information_ratio(self) -> dict[str, float]:
        """Information about each parameter, new over present: ``(before/after)^2``."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return {
                name: float(np.divide(old, self.after[name]) ** 2)
                for name, old in self.before.items()
            }

    def table(self) -> list[dict[str, Any]]:
        """One row for each parameter: its standard deviations and their ratio."""
        return [
            {
                "parameter": name,
                "before": old,
                "after": self.after[name],
                "shrinks to": float(np.divide(self.after[name], old)),
                "information ratio": self.information_ratio[name],
            }
            for name, old in self.before.items()
        ]

    def __str__(self) -> str:
        form = {"precision": 6, "separator": ", ", "max_line_width": 90}
        inputs = {path: np.array2string(np.asarray(x), **form) for path, x in self.inputs.items()}
        lines = [f"{path} = {text}" for path, text in inputs.items()]
        width = max(len(name) for name in self.before)
        lines += [
            f"{row['parameter']:{width}}  standard deviation {row['before']:.3g} -> "
            f"{row['after']:.3g}, intervals shrink to {100 * row['shrinks to']:.0f} %"
            for row in self.table()
        ]
        lines.append(f"condition {self.condition[0]:.2g} -> {self.condition[1]:.2g}")
        return "\n".join([*lines, *self.remarks])


Criterion = Literal["D", "A"]


def design_experiment(
    problem: Problem,
    free: Mapping[str, Free],
    inputs: Mapping[str, tuple[Any, Any]],
    limits: Mapping[str, tuple[float, float]] | None = None,
    *,
    times: Float[np.ndarray, " m"],
    sigma: Mapping[str, float],
    of: Sequence[str] | None = None,
    criterion: Criterion = "D",
    rival: Problem | None = None,
    worst_of: int = 1,
    candidates: int = 64,
    seed: int = 0,
    **options: Any,
) -> ExperimentDesign:
    """The experiment whose input makes the parameters ``free`` of ``problem`` most certain.

    With the derivatives ``J`` of the samples by the parameters, the information is
    ``M = J^T J/sigma^2``, and no unbiased estimate has a covariance below ``C = M^-1``. Maximises
    ``-log det C`` (``criterion="D"``) or ``-log trace C`` (``"A"``) over a Sobol sample of
    ``candidates`` inputs, then by sequential quadratic programming from the best, with derivatives
    of ``M`` through all events. They are exact where no event comes or goes.

    The best input often stands where an event is about to come or to go: ``M`` jumps there, and its
    value belongs to one side only. The standard deviations of the result are therefore means over
    where the estimates will fall, for the present experiment and for the new one.

    ``free``: as in :func:`jfric.fit`; the information is computed at ``init``, by default the value
    of the problem, and a ``prior`` counts as in a fit. Sizes of parameters are their values on
    the scale ``"log"``, else the widths of their bounds. ``inputs``: lower and upper limit of each
    number that may be chosen, by path (``load.F.amplitude``, ``friction.belt``, ``initial.x.v``);
    of a list (``load.F.values``) for each entry, or as two lists. The inputs in the problem are the
    present experiment, with which the new one is compared. ``limits``: lowest and highest value of
    signals at the samples, such as the travel. ``times`` (m,) [s]: of the samples; ``sigma``:
    measured signals and the standard deviations of their noise. ``of``: the parameters that matter,
    all by default; the others are estimated, too. ``rival``: the same system with another law and
    its fitted numbers; the input then tells both laws apart, whatever values the parameters
    ``free`` take: the share of the rival in the predictions, ``rival.share``, becomes a parameter
    and the only one that matters (A. C. Atkinson, Biometrika 59, 1972). ``worst_of``: number of
    parameter vectors that the input has to suit, of which the worst counts: the first start and a
    Sobol sample between the bounds, or of the priors where there are some. ``seed``: of the
    samples. ``options``: of
    :func:`jfric.fit`, such as ``solver``.

    Raises :class:`jfric.ProblemError` for a design that cannot be computed. Source of the criteria:
    F. Pukelsheim, Optimal Design of Experiments (1993). The example uses the problem of
    :class:`jfric.Problem` and asks from which height a mass should be released; steps of 10 ms
    compile sooner::

        >>> design = jfric.design_experiment(
        ...     problem, {"friction.mu": jfric.Free(0.05, 0.3)}, {"initial.u.q": (0.05, 0.2)},
        ...     times=jnp.linspace(0.1, 2.0, 20), sigma={"u": 1e-3}, candidates=4,
        ...     solver=jfric.MoreauJean(0.01))
        >>> design.after["friction.mu"] < design.before["friction.mu"]
        True
    """
    problem = build(problem)
    if criterion not in ("D", "A"):
        raise ProblemError(f"criterion: found {criterion!r}, allowed are 'D' and 'A'")
    require_count("candidates", candidates, 1, STARTS)
    require_count("worst_of", worst_of, 1, STARTS)
    limits = dict(limits or {})
    if rival is not None:
        if of is not None:
            raise ProblemError(f"of: found {of!r} beside rival, whose share is what matters")
        of = SHARE
    task = _task(problem, rival, inputs, free, limits, times, sigma, options)
    layout = task.objective.layout
    slots, now, low, high = _inputs(problem, layout.paths, inputs, task, limits)
    chosen = _chosen(problem, layout.names, of)
    centre = layout.init
    lower, upper = layout.bounds
    search = Search(
        task=task,
        slots=slots,
        low=low,
        high=high,
        parameters=_scenarios(layout, worst_of, seed) * [name != SHARE for name in layout.names],
        unit=np.where(layout.log, centre, upper - lower),
        prior=layout.prior_terms(centre[None])[2],
        chosen=chosen,
        criterion=criterion,
        limits=np.array([limits[name] for name in limits], float).reshape(-1, 2),
    )
    before, _ = search.matrices(now[None])
    span = high - low
    inside = np.clip((now - low) / span, 0.0, 1.0)
    ranked = search.screen(np.concatenate([inside[None], sobol(low.size, candidates, seed)]))
    if not ranked.size:
        raise ProblemError(
            f"inputs: none of {candidates} inputs says anything of {', '.join(layout.names)}; is "
            "everything stuck, or a parameter without influence? (jfric.check tells)"
        )
    for part in ranked[:CLIMBS]:
        search.climb(part)
    if search.best is None:
        raise ProblemError(
            f"limits: none of {search.evaluations} inputs keeps {', '.join(limits)} within them"
        )
    return _result(problem, search, now, before, search.inputs(search.best))


def _task(problem, rival, inputs, free, limits, times, sigma, options) -> Task:
    if not isinstance(sigma, Mapping) or not sigma:
        raise ProblemError(
            f"sigma: found {sigma!r}, needs the noise of each measured signal, such as "
            "{'u': 1e-3}"
        )
    for path, item in free.items():
        if isinstance(item, Free) and item.per_experiment:
            raise ProblemError(f"free.{path}: per_experiment has no meaning for one experiment")
    t = np.asarray(times, float)
    signals = dict.fromkeys([*sigma, *limits])
    for name, pair in limits.items():
        if len(np.atleast_1d(pair)) != 2 or not pair[0] < pair[1]:
            raise ProblemError(f"limits.{name}: found {pair}, needs (lowest, highest)")
    nothing = np.zeros(t.shape)
    plan = Experiment(
        t,
        y=dict.fromkeys(signals, nothing),
        sigma=dict(sigma),
        mask={name: np.full(t.shape, name in sigma) for name in signals},
    )
    if rival is None:
        return prepare(problem, plan, free, **options)
    simulation = Simulation(options.pop("solver", None), options.pop("hold", "zero"))
    paths = tuple(_path(problem, path) for path in inputs)
    free = {**full_free(problem, free), SHARE: RANGE}
    both = Rivals(simulation.model(problem), simulation.model(build(rival)), paths)
    return prepare(both, plan, free, **options)


def _path(problem: Problem, path: str) -> str:
    with within("inputs: ", KeyError):
        return find_path(problem, path)


def _inputs(problem, free, inputs, task: Task, limits):
    """Slots of the inputs, and their present values and lower and upper limits (n,)."""
    if not inputs:
        raise ProblemError(
            "inputs: found none, give the limits of one, such as {'load.F.amplitude': (0, 5)}"
        )
    slots, now, low, high = [], [], [], []
    for path, pair in inputs.items():
        name = _path(problem, path)
        if name in free or name in [s.path for s in slots]:
            raise ProblemError(f"inputs: found {name!r} twice, or among the free parameters")
        value = get_parameter(problem, name)
        if isinstance(value, Expression):
            raise ProblemError(f"inputs: {name} is computed as {value.text!r}")
        shape = np.shape(value)
        try:
            ends = [np.broadcast_to(np.asarray(end, float), shape) for end in pair]
        except (TypeError, ValueError):
            ends = []
        if len(ends) != 2 or not np.all(np.isfinite(ends)) or not np.all(ends[0] < ends[1]):
            raise ProblemError(
                f"inputs.{path}: found {pair!r}, needs (lower, upper), finite, lower below upper"
            )
        slots.append(Slot(name, sum(a.size for a in now), shape))
        for numbers, new in ((now, value), (low, ends[0]), (high, ends[1])):
            numbers.append(np.ravel(np.asarray(new, float)))
    signals = task.objective.data.signals
    where = tuple(signals.index(name) for name in limits)
    found = Slots(tuple(free), tuple(slots), where)
    return found, np.concatenate(now), np.concatenate(low), np.concatenate(high)


def _chosen(problem, names, of) -> list[int]:
    if of is None:
        return list(range(len(names)))
    if of == SHARE:
        return [names.index(SHARE)]
    wanted = [full_path(problem, name) for name in ((of,) if isinstance(of, str) else of)]
    for name in wanted:
        require_one_of("of", name, names, "free are")
    if not wanted:
        raise ProblemError("of: found none, name the parameters that matter")
    return [names.index(name) for name in dict.fromkeys(wanted)]


def _scenarios(layout, count: int, seed: int) -> np.ndarray:
    """Parameters (T, P): the first start, then a sample of the priors, or between the bounds."""
    if count == 1:
        return layout.init[None]
    from scipy.special import ndtri  # slow to import

    points = global_sample(layout, count - 1, seed)
    lower, upper = layout.bounds
    part = (0.5 + np.arange(count - 1)) / (count - 1)
    rng = np.random.default_rng(seed)
    for i in np.flatnonzero(np.isfinite(layout.prior[:, 0])):
        mean, sd = layout.prior[i]
        points[:, i] = np.clip(mean + sd * ndtri(rng.permutation(part)), lower[i], upper[i])
    return np.concatenate([layout.init[None], points])


def _result(problem, search: Search, now, before, inputs) -> ExperimentDesign:
    layout = search.task.objective.layout
    after, _ = search.matrices(inputs[None])
    unit = search.unit
    old, _ = expected(search, now, before[0, 0])
    new, remarks = expected(search, inputs, after[0, 0])
    if SHARE in layout.names:
        i = layout.names.index(SHARE)
        far = " -> ".join(f"{x:.3g}" for x in 1.0 / np.array([old[i], new[i]]))
        remarks = (f"the rival is {far} standard errors away", *remarks)
    conditions = [_condition(m[0, 0], unit) for m in (before, after)]
    values: dict[str, float | np.ndarray] = {}
    for slot in search.slots.inputs:
        own = inputs[slot.first : slot.first + int(np.prod(slot.shape))].reshape(slot.shape)
        values[slot.path] = own if slot.shape else float(own)
    return ExperimentDesign(
        inputs=values,
        before=dict(zip(layout.names, old.tolist(), strict=True)),
        after=dict(zip(layout.names, new.tolist(), strict=True)),
        condition=(conditions[0], conditions[1]),
        merit=(float(search.merits(before).min()), float(search.merits(after).min())),
        remarks=remarks,
        evaluations=search.evaluations,
        problem=set_parameters(problem, values),
    )


def _condition(matrix, unit) -> float:
    values, _ = decomposed(matrix, unit)
    if not values.size:
        return float("nan")
    return float(values[-1] / values[0]) if values[0] > 0 else float("inf")
