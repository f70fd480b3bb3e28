"""Engines of an optimisation: those of SciPy, steps of optax, and a search without derivatives.

All work in coordinates ``y`` in which the range of each unknown is one, on an objective and
constraints that change by about one over these ranges near the start.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from jfric.fits.optimise.direct_search import WIDE, direct_search
from jfric.optima.evaluation import Evaluation, Evaluator
from jfric.optima.goals import missed
from jfric.results.status import Status

#: Methods with exact derivatives, and those without.
WITH_DERIVATIVES = ("slsqp", "trust-constr", "adam")
WITHOUT = ("cobyqa", "direct")
METHODS = (*WITH_DERIVATIVES, *WITHOUT)
#: Scaled objective of a motion that failed: a line search turns back from it.
FAILED = 1e10
#: Smallest change of the scaled objective, and of the coordinates, that counts.
TOLERANCE = 1e-13
#: Weight of a violated constraint where the objective alone is minimised.
WEIGHT = 100.0
#: Length of the first step of optax, in coordinates.
RATE = 0.02
#: Newton steps onto the constraints after an engine has ended, and the weight that keeps them
#: short.
RESTORED, SHORT = 8, 1e-9


class End(NamedTuple):
    """Where an engine ended: coordinates (P,), whether it says that it is done, its message, and
    its iterations."""

    y: np.ndarray
    done: bool
    message: str
    iterations: int


class Scaled:
    """The goals around a start as an engine sees them; the last point is remembered."""

    def __init__(self, evaluator: Evaluator, start: np.ndarray, first: Evaluation, *, exact: bool):
        self.evaluator, self.equal, self.exact = evaluator, evaluator.equal, exact
        #: Constraints that depend on an unknown at the start; others teach nothing yet.
        self.moves = first.slopes[1:].any(axis=1)
        sizes = np.abs(first.slopes).max(axis=1)
        self.sizes = np.where(sizes > 0.0, sizes, 1.0)
        #: The last point at which there are values, and these.
        self.good_at, self.good = start, first
        self._last: tuple[bytes, Evaluation] | None = None

    def at(self, y: np.ndarray) -> Evaluation:
        """Evaluation at ``y``; values and derivatives of the last good point, with an objective
        that no step accepts, where the motion fails."""
        key = np.asarray(y, float).tobytes()
        if self._last is None or self._last[0] != key:
            found = self.evaluator.at(y, exact=self.exact)
            self._last = key, found
        found = self._last[1]
        if found.known and not self._is_stuck(found):
            self.good_at, self.good = np.array(y, float), found
            return found
        values = self.good.values.copy()
        values[0] += FAILED * self.sizes[0]
        return found._replace(values=values, slopes=self.good.slopes)

    def _is_stuck(self, found: Evaluation) -> bool:
        """Whether a constraint that is an equality, or missed, no longer depends on any unknown, as
        it did at the start: a body sticks, and no derivative shows the way out. The search stays
        where it moves, and meets a stop at the very end from that side."""
        still = self.moves & ~found.slopes[1:].any(axis=1)
        return self.exact and bool(np.any(still & (self.equal | (found.values[1:] < 0.0))))

    def objective(self, y) -> float:
        return float(self.at(y).values[0] / self.sizes[0])

    def gradient(self, y) -> np.ndarray:
        return self.at(y).slopes[0] / self.sizes[0]

    def constraints(self, y, which: Any = slice(None)) -> np.ndarray:
        return (self.at(y).values[1:] / self.sizes[1:])[which]

    def jacobian(self, y, which: Any = slice(None)) -> np.ndarray:
        return (self.at(y).slopes[1:] / self.sizes[1:, None])[which]


def descend(
    method: str, goals: Scaled, y: np.ndarray, most: int, limits: tuple[np.ndarray, np.ndarray]
) -> End:
    """The end of a search by ``method`` from ``y`` (P,), after at most ``most`` iterations."""
    if method == "adam":
        return _adam(goals, y, most, limits)
    from scipy.optimize import Bounds, NonlinearConstraint, minimize  # slow to import

    exact, equal = method in WITH_DERIVATIVES, goals.equal
    bounds: Any = Bounds  # its stub takes single numbers only
    arguments: dict[str, Any] = {"bounds": bounds(*limits)}
    if exact:
        arguments["jac"] = goals.gradient
    if method == "slsqp":
        arguments["constraints"] = [
            {
                "type": kind,
                "fun": lambda y, which=which: goals.constraints(y, which),
                "jac": lambda y, which=which: goals.jacobian(y, which),
            }
            for kind, which in (("eq", equal & goals.moves), ("ineq", ~equal & goals.moves))
            if which.any()
        ]
        options = {"maxiter": most, "ftol": TOLERANCE}
    else:
        upper = np.where(equal, 0.0, np.inf)
        slopes: dict[str, Any] = {"jac": goals.jacobian} if exact else {}
        if equal.size:
            arguments["constraints"] = NonlinearConstraint(
                goals.constraints, np.zeros(equal.size), upper, **slopes
            )
        options = {"maxiter": most}
        if exact:
            options |= {"gtol": 1e-10, "xtol": 1e-14}
        else:
            options |= {"maxfev": most * y.size, "final_tr_radius": 1e-9, "initial_tr_radius": 0.1}
    found = minimize(goals.objective, y, method=method, options=options, **arguments)
    return End(np.asarray(found.x), bool(found.success), str(found.message), int(found.nit))


def _adam(goals: Scaled, y: np.ndarray, most: int, limits) -> End:
    """Steps of Adam along the gradient, shrinking along a cosine, within the bounds."""
    import optax  # slow to import

    transform = optax.adam(optax.cosine_decay_schedule(RATE, most))
    state = transform.init(y)
    best, least = y, goals.objective(y)
    for _ in range(most):
        change, state = transform.update(goals.gradient(y), state)
        y = np.clip(y + np.asarray(change), *limits)
        if goals.objective(y) < least:
            best, least = y, goals.objective(y)
    return End(best, False, "all steps were taken", most)


def search_directly(
    evaluator: Evaluator, scales: np.ndarray, x: np.ndarray, seed: int, most: int
) -> End:
    """The best point that a search without derivatives finds around ``x`` (P,).

    Constraints count by their violations, in units of ``scales`` (k,)."""
    unknowns = evaluator.unknowns

    def cost(points: np.ndarray) -> np.ndarray:
        return merits(evaluator.many(points), evaluator.equal, scales)

    best, least, used = direct_search(
        cost, unknowns.layout, x, seed=seed, generations=most, width=WIDE
    )
    message = "the cloud of points has shrunk" if used < most else "all generations were used"
    return End(unknowns.scaled(best), bool(np.isfinite(least)) and used < most, message, used)


def merits(values: np.ndarray, equal: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """Objective plus weighted violations (n,), from values (n, k); infinite where one is NaN."""
    scaled = values / scales
    off = missed(scaled[:, 1:], equal).sum(axis=1)
    return np.where(np.isfinite(values).all(axis=1), scaled[:, 0] + WEIGHT * off, np.inf)


def spread(values: np.ndarray) -> np.ndarray:
    """Typical sizes (k,) of objective and constraints over points, from values (n, k)."""
    good = values[np.isfinite(values).all(axis=1)]
    if not len(good):
        return np.ones(values.shape[1])
    size = np.median(np.abs(good - np.median(good, axis=0) * (np.arange(good.shape[1]) == 0)), 0)
    return np.where(size > 0.0, size, 1.0)


def restored(goals: Scaled, y: np.ndarray, limits: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """The nearest coordinates that meet the constraints up to rounding, by Newton steps.

    Engines end at tolerances of their own. A step counts only if it comes nearer."""
    from scipy.optimize import lsq_linear  # slow to import

    def left(found: Evaluation) -> np.ndarray:
        rest = found.values[1:] / goals.sizes[1:]
        return np.where(goals.equal, rest, np.minimum(rest, 0.0))

    found, eye = goals.evaluator.at(y), np.eye(y.size)
    if not found.known:
        return y
    for _ in range(RESTORED):
        off = left(found)
        if not np.abs(off).max(initial=0.0) > 0.0:
            break
        # Constraints that nearly hold stay as they are, or a step would leave them.
        rows = goals.equal | (found.values[1:] / goals.sizes[1:] < 1e-6)
        slopes = (found.slopes[1:] / goals.sizes[1:, None])[rows]
        matrix = np.concatenate([slopes, SHORT * eye])
        right = np.concatenate([-off[rows], np.zeros(y.size)])
        low, high = (limit - y for limit in limits)
        free = high > low
        step = np.zeros(y.size)
        bounds = np.minimum(low, 0.0)[free], np.maximum(high, 0.0)[free]
        step[free] = lsq_linear(matrix[:, free], right, bounds, tol=1e-15).x
        trial = goals.evaluator.at(y + step)
        if not trial.known or not np.abs(left(trial)).max() < np.abs(off).max():
            break
        y, found = y + step, trial
    return y


def stationarity(found: Evaluation, goals: Scaled, y: np.ndarray, limits) -> float:
    """Largest part of the scaled gradient that no constraint and no bound that holds takes up.

    Karush-Kuhn-Tucker conditions, with multipliers by least squares."""
    from scipy.optimize import lsq_linear  # slow to import

    slopes, eye = found.slopes / goals.sizes[:, None], np.eye(y.size)
    holds = ~goals.equal & (found.values[1:] / goals.sizes[1:] < 1e-7)
    near = 1e-9 * np.maximum(1.0, np.abs(y))
    at_low, at_high = y - limits[0] <= near, limits[1] - y <= near
    rows = [slopes[1:][goals.equal], slopes[1:][holds], eye[at_low], -eye[at_high]]
    columns = np.concatenate(rows).T
    if not columns.shape[1]:
        return float(np.abs(slopes[0]).max())
    low = np.concatenate([np.full(len(rows[0]), -np.inf), np.zeros(sum(map(len, rows[1:])))])
    taken = lsq_linear(columns, slopes[0], (low, np.full(low.size, np.inf))).x
    return float(np.abs(columns @ taken - slopes[0]).max())


def failure(found: Evaluation) -> str:
    """Why a point has no value, as a sentence."""
    if found.status != int(Status.OK):
        return f"the motion fails at the start: {Status(found.status).message}"
    return "an observable has no value at the start, or no derivative (is there such an event?)"
