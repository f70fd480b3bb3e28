"""``check``: obstacles to a fit, found before it is made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jfric.fits.data.experiment import Experiment
from jfric.fits.data.stacking import labels
from jfric.fits.free import Free
from jfric.fits.model import AbstractModel
from jfric.fits.objective import FEW_MEMBERS
from jfric.fits.optimise.direct_search import stepped
from jfric.fits.optimise.searches import global_sample
from jfric.fits.recipe import prepare
from jfric.fits.task import Task
from jfric.fits.uncertainty.covariance import UNIDENTIFIED
from jfric.numerics.printing import printable
from jfric.results.modes import Mode
from jfric.system.problem import Problem

#: Change of the residuals over the range of a parameter (in noise levels) that counts as none.
NOTHING = 1e-6
#: Relative difference up to which derivatives and finite differences agree.
AGREEMENT = 1e-3
#: Steps of the finite differences, as parts of the ranges of the bounds.
STEPS = (1e-3, 1e-4, 1e-5, 1e-6)


@dataclass(frozen=True)
class Finding:
    """One result of a check: ``"problem"`` stands in the way, ``"remark"`` is worth knowing."""

    kind: Literal["problem", "remark"]
    topic: str
    message: str


@printable
@dataclass
class CheckReport:
    """Findings of a check, and the numbers from which they follow."""

    findings: list[Finding] = field(default_factory=list)
    #: Influence of each parameter at the start: change of the residuals over its range (in noise
    #: levels, root of the sum of squares).
    influence: dict[str, float] = field(default_factory=dict)
    #: Ratio of the largest to the smallest eigenvalue of ``J^T J``, by parts of the ranges.
    condition: float = np.nan
    #: Largest relative difference between derivatives and finite differences.
    derivative_error: float = np.nan
    #: Largest change of a prediction by finer steps, in noise levels; 0 where steps are exact.
    step_error: float = 0.0
    #: For each experiment: part of the samples at which each contact sticks, and its reversals.
    stick_fraction: dict[str, list[float]] = field(default_factory=dict)
    reversals: dict[str, list[int]] = field(default_factory=dict)

    def add(self, kind: Literal["problem", "remark"], topic: str, message: str) -> None:
        """Add a finding."""
        self.findings.append(Finding(kind, topic, message))

    @property
    def ok(self) -> bool:
        """Whether no finding stands in the way of the fit."""
        return all(f.kind != "problem" for f in self.findings)

    def __str__(self) -> str:
        lines = [f"{f.kind}: {f.topic}: {f.message}" for f in self.findings]
        for label, sticks in self.stick_fraction.items():
            turns = ", ".join(str(n) for n in self.reversals[label])
            shares = ", ".join(f"{100 * s:.0f} %" for s in sticks)
            lines.append(f"experiment {label}: sticks {shares} of the samples, reversals {turns}")
        lines.append(
            f"condition of J'J {self.condition:.2g}, derivatives against finite differences "
            f"{self.derivative_error:.1e}, finer steps {self.step_error:.1e} noise levels"
        )
        return "\n".join(lines)


def check(
    problem: Problem | AbstractModel,
    experiments: Experiment | Sequence[Experiment],
    free: Mapping[str, Free],
    *,
    seed: int = 0,
    **options: Any,
) -> CheckReport:
    """Check of a fit at its first start; :func:`jfric.fit` takes the same arguments.

    ``problem``, ``experiments``, ``free``, ``seed`` and ``options`` are those of the fit. Finds
    parameters that do nothing, a model that never slips (its derivatives are zero), starts at a
    bound, combinations that the data cannot tell apart, derivatives that disagree with finite
    differences (on random directions), steps that are too coarse, and solvers whose derivatives
    miss how switching times move. Counts the sticking samples and reversals of each experiment. A
    fit without obstacles::

        >>> t = jnp.linspace(0.1, 2.0, 20)
        >>> data = jfric.Experiment(t, y={"u": jfric.simulate(problem, ts=t).q[:, 0]}, sigma=1e-3)
        >>> free = {"friction.mu": jfric.Free(0.05, 0.3), "mass.m": jfric.Free(50.0, 200.0)}
        >>> report = jfric.check(problem, data, free)
        >>> report.findings, report.derivative_error < 1e-3, report.reversals
        ([], True, {'1': [4]})
    """
    task = prepare(problem, experiments, free, **options)
    objective, layout = task.objective, task.objective.layout
    report = CheckReport()
    for i, side in enumerate(layout.at_bound(layout.init)):
        if side:
            word = "lower" if side < 0 else "upper"
            report.add("remark", layout.names[i], f"starts at its {word} bound {layout.init[i]:g}")
    x = np.concatenate([layout.init[None], global_sample(layout, FEW_MEMBERS - 1, seed)])
    x[0] = layout.values(layout.coordinates(x[0]))
    normal = objective.normal(x)
    ranges = layout.ranges(x)
    size = np.sqrt(np.maximum(np.einsum("bii->bi", normal.hessian), 0.0)) * ranges
    size[~np.isfinite(normal.cost)] = np.nan
    report.influence = dict(zip(layout.names, size[0].tolist(), strict=True))
    if not np.isfinite(normal.cost[0]):
        report.add(
            "problem", "start", "the simulation fails there; set init of the free parameters"
        )
    _motion(task, x[0], report)
    best = np.argsort(normal.cost, kind="stable")[:2]
    in_steps = "acts in steps, which its derivative does not foresee: the fit searches without it"
    for i in np.flatnonzero(stepped(objective, x[best])):
        size[:, i] = np.inf
        report.add("remark", layout.names[i], in_steps)
    nothing = _influence(task, size, report)
    # If a parameter has no influence at the start, the best point of the sample tells more.
    moves = np.isfinite(normal.cost[0]) and np.all(nothing | (size[0] > NOTHING))
    best = 0 if moves else int(np.argmin(normal.cost))
    if np.isfinite(normal.cost[best]):
        _condition(task, normal.hessian[best], ranges[best], size[0], nothing, report)
        _derivatives(task, x[best], ranges[best], report, seed)
        _steps(task, x[best], report)
    for message in objective.model.remarks():
        report.add("problem" if "miss" in message else "remark", "solver", message)
    return report


def _motion(task: Task, x, report: CheckReport) -> None:
    """Stick fractions and reversals of each experiment at its samples."""
    objective = task.objective
    local = jnp.asarray(objective.layout.local(x))
    motion = _moves(objective.model, objective.data, local, objective.layout.paths)
    if motion is None:
        return
    still = True
    valid = np.isfinite(np.asarray(objective.data.t))
    for e, label in enumerate(labels(task.experiments)):
        mode = np.asarray(motion.mode)[e][valid[e]]
        speed = np.asarray(motion.sliding_velocity)[e][valid[e]]
        report.stick_fraction[label] = np.mean(mode == Mode.STICK, axis=0).tolist()
        report.reversals[label] = [_sign_changes(column) for column in speed.T]
        still = still and mode.size > 0 and bool(np.all(mode == Mode.STICK))
    if still:
        report.add(
            "problem",
            "never slips",
            "all contacts stick at all samples at the start, the cost does not depend on friction "
            "there; start with less friction or take starts > 1",
        )


@eqx.filter_jit
def _moves(model: AbstractModel, data, x, paths: tuple[str, ...]):
    def one(x, data):
        return model.motion({path: x[i] for i, path in enumerate(paths)}, data)

    return jax.vmap(one)(x, data)


def _sign_changes(values: np.ndarray) -> int:
    signs = np.sign(values[np.isfinite(values) & (values != 0.0)])
    return int(np.sum(signs[1:] != signs[:-1]))


def _influence(task: Task, size, report: CheckReport) -> np.ndarray:
    """Whether each parameter (P,) changes nothing anywhere; reports also those at the start."""
    names = task.objective.layout.names
    everywhere = np.all(~(size > NOTHING), axis=0)
    for i, name in enumerate(names):
        if everywhere[i]:
            report.add("problem", name, "does nothing: no prediction depends on it, free another")
        elif not size[0, i] > NOTHING:
            report.add("remark", name, "does nothing at the start, but elsewhere it does")
    return everywhere


def _condition(task: Task, hessian, ranges, size, nothing, report: CheckReport) -> None:
    values, vectors = np.linalg.eigh(hessian * np.outer(ranges, ranges))
    report.condition = float(values[-1] / values[0]) if values[0] > 0 else float("inf")
    names = task.objective.layout.names
    for value, vector in zip(values, vectors.T, strict=True):
        named_already = np.all((nothing | (size == np.inf))[np.abs(vector) > 1e-3])
        if value > 1.0 / UNIDENTIFIED**2 or named_already:
            continue
        parts = ", ".join(
            f"{names[i]} by {vector[i]:+.2f}"
            for i in np.argsort(-np.abs(vector))
            if abs(vector[i]) > 0.01
        )
        report.add(
            "problem",
            "identifiability",
            f"the data cannot tell this change from none (parts of the ranges): {parts}",
        )


def _derivatives(task: Task, x, ranges, report: CheckReport, seed) -> None:
    """Compare derivatives along two random directions with central differences."""
    objective = task.objective
    rng = np.random.default_rng(seed)
    directions = rng.normal(size=(2, x.size))
    directions *= ranges / np.linalg.norm(directions, axis=1, keepdims=True)
    shifts = np.array([s for h in STEPS for s in (h, -h)])
    points = x + shifts[None, :, None] * directions[:, None, :]
    members = objective.linearise(np.concatenate([x[None], points.reshape(-1, x.size)]))
    jacobian = members.jacobian[0]
    r = members.residuals[1:].reshape(2, len(STEPS), 2, *members.residuals.shape[1:])
    error = 0.0
    for k, direction in enumerate(directions):
        local = objective.layout.local(direction)
        exact = np.einsum("emkl,el->emk", jacobian, local)
        scale = float(np.linalg.norm(exact))
        if scale == 0.0 or not np.isfinite(scale):
            continue
        steps = np.asarray(STEPS)[:, None, None, None]
        differences = (r[k, :, 0] - r[k, :, 1]) / (2.0 * steps)
        off = np.linalg.norm((differences - exact).reshape(len(STEPS), -1), axis=1) / scale
        error = max(error, float(np.min(np.where(np.isfinite(off), off, np.inf))))
    report.derivative_error = error
    if error > AGREEMENT:
        report.add(
            "problem",
            "derivatives",
            f"differ from finite differences by {error:.1e}: the solver misses a term, or the "
            "cost jumps near the start",
        )


def _steps(task: Task, x, report: CheckReport) -> None:
    objective = task.objective
    finer = objective.model.refined()
    if finer is None:
        return
    here = objective.linearise(x[None]).predicted
    model, objective.model = objective.model, finer
    there = objective.linearise(x[None]).predicted
    objective.model = model
    off = np.where(objective.weight > 0, objective.weight * (there - here)[0], 0.0)
    report.step_error = float(np.max(np.abs(off)))
    if report.step_error > 0.1:
        report.add(
            "problem",
            "steps",
            f"finer steps change a prediction by {report.step_error:.2g} noise levels; use a "
            "smaller dt or rtol",
        )
