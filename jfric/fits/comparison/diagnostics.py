"""Diagnostics of the fit of a law: tests of the force that it leaves unexplained, and parameters
that trade.

The residuals are those of inverse dynamics at the fitted values. Each question (velocity,
acceleration, position, its harmonics, delay) adds some functions of the measured motion to the
equation of motion, in addition to the derivatives by all free parameters, and estimates their
coefficients by least squares; small coefficients mean that nothing is missing. Their covariance
takes the residuals as autoregressive (:mod:`jfric.fits.uncertainty.noise_model`); the test is that
of Wald with quantiles of F. Each degree of freedom gets five questions, so p-values are multiplied
by the rule of Holm (1979), those of harmonics first by the number of periods. In long records any
small effect is significant: the share of the variance that an effect explains says how large it is.

Where parameters trade, the data determine a combination of them, but not each of them. The
information about the parameters (initial states and the like removed) is scaled to a unit diagonal;
a condition index above 30 is a direction of little information, and the parameters most of whose
variance lies in it trade. Source: D. A. Belsley, E. Kuh, R. E. Welsch, Regression Diagnostics
(1980), section 3.2. A parameter at its bound is left out of this. The parameters that would trade
with it, if it were free, depend on the value of the bound: they are named with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from jfric.fits.data.stacking import Data
from jfric.fits.fit_result import FitResult
from jfric.fits.inverse_model import FORCE, MOTION, own_inputs
from jfric.fits.objective import Squares
from jfric.fits.residuals import InverseDynamics
from jfric.fits.uncertainty.covariance import reached_bounds
from jfric.fits.uncertainty.noise_tests import taken_up
from jfric.fits.uncertainty.residual_series import ResidualSeries

#: Periods that are tested: the span of the motion over these numbers, if a motion at the root mean
#: square speed has that many rows in one period. Shorter periods lie where the filter begins.
HARMONICS, ROWS = range(1, 25), 6.0
#: Speeds, as parts of the fastest, between which the dependence on velocity is straight.
SPEEDS = (0.0, 0.1, 0.4, 1.0)
#: Functions are left out if less than this part is independent of the others.
DEPENDENT = 1e-6
SIGNIFICANT = 0.01


@dataclass(frozen=True)
class ResidualTest:
    """One test of the residuals of one degree of freedom.

    ``p``: corrected for the number of tests; ``share``: part of the variance of the residuals that
    the functions explain; ``estimate``: the delay [s] or the period [m or rad] that fits best, in
    the tests for these.
    """

    dof: str
    question: str
    p: float
    share: float
    estimate: float | None = None

    @property
    def significant(self) -> bool:
        """Whether an effect is missing, at the level of 1 %."""
        return self.p < SIGNIFICANT

    def __str__(self) -> str:
        much = f"{100 * self.share:.3g} % of its variance, p = {self.p:.2g}"
        said = {
            "velocity": "depends on the velocity: another curve of friction",
            "acceleration": "depends on the acceleration: a mass, or friction that grows with the "
            "load",
            "position": "depends on the position: a spring, or friction that changes along the way",
            "harmonics": "repeats along the way: a ripple of friction or force",
            "late input": "follows the rate of the inputs: a delay or a filter",
        }[self.question]
        if self.estimate is not None and self.question == "harmonics":
            said += f" of period {self.estimate:.3g}"
        if self.estimate is not None and self.question == "late input":
            said += f" of {1e3 * self.estimate:.2g} ms"
        return f"the force that is left along {self.dof} {said} ({much})"


def residual_tests(result: FitResult) -> tuple[ResidualTest, ...]:
    """All tests for a fit of a problem, on the records that it was fitted to.

    Raises :class:`jfric.ProblemError` where the records have no inverse dynamics.
    """
    recipe = result.recipe
    assert recipe is not None
    setup = recipe.setup
    free = {
        path: item
        for path, item in setup.free.items()
        if path in result.values and not path.startswith(("initial.", "controller."))
    }
    task = replace(
        setup,
        free=free,
        observe=None,
        residual=InverseDynamics("steady"),
        loss=Squares(),
        solver=None,
    ).task()
    x = np.array([result.values[path] for path in task.objective.layout.names])
    found = task.objective.linearise(x[None])
    off, jacobian = found.predicted[0] - task.objective.measured, found.jacobian[0]
    tests = []
    for j, signal in enumerate(task.objective.data.signals):
        used = task.used[..., j]
        # The weight is one number for a signal; division by it leaves derivatives of forces.
        weight = np.where(used, task.objective.weight[..., j], 1.0)[..., None]
        rows = Rows(off[..., j], jacobian[:, :, j] / weight, used)
        tests += _corrected(list(_ask(rows, signal.removeprefix(f"{FORCE}."), task.objective.data)))
    return tuple(tests)


@dataclass(frozen=True)
class Rows:
    """Residuals (E, m), their derivatives (E, m, P) and which rows count (E, m)."""

    off: np.ndarray
    jacobian: np.ndarray
    used: np.ndarray


def _corrected(tests: list[ResidualTest]) -> list[ResidualTest]:
    """``tests`` with p-values corrected for their number as in Holm (1979)."""
    found, least = {}, 0.0
    for rank, test in enumerate(sorted(tests, key=lambda t: t.p)):
        least = max(least, min(1.0, test.p * (len(tests) - rank)))
        found[test.question] = least
    return [replace(test, p=found[test.question]) for test in tests]


def _ask(rows: Rows, dof: str, data: Data) -> Iterator[ResidualTest]:
    q, v, a = (np.asarray(data.u[f"{MOTION}.{dof}.{letter}"]) for letter in "qva")
    used, sign = rows.used, np.sign(v)
    scale = {name: float(np.abs(x[used]).max()) or 1.0 for name, x in (("v", v), ("a", a))}
    speed = np.abs(v) / scale["v"]
    hats = [
        np.interp(speed, SPEEDS, np.eye(len(SPEEDS))[i]) * (sign == s)
        for i in range(len(SPEEDS))
        for s in (1.0, -1.0)
    ]
    yield _test("velocity", rows, dof, hats)[0]
    yield _test("acceleration", rows, dof, [a / scale["a"], np.abs(a) / scale["a"]])[0]
    low, high = float(q[used].min()), float(q[used].max())
    if high > low:
        x = 2.0 * (q - low) / (high - low) - 1.0
        powers = [x, x**2, x**3]
        yield _test("position", rows, dof, [*powers, *(sign * p for p in powers)])[0]
        found, step = [], float(data.t[0, 1] - data.t[0, 0])
        shortest = ROWS * step * float(np.sqrt(np.mean(v[used] ** 2)))
        numbers = [n for n in HARMONICS if high - low >= n * shortest] or [1]
        for number in numbers:
            angle = np.pi * number * x
            waves = [np.cos(angle), np.sin(angle)]
            test, _ = _test("harmonics", rows, dof, [*waves, *(sign * w for w in waves)])
            found.append(replace(test, estimate=(high - low) / number))
        best = min(found, key=lambda test: (test.p, -test.share))
        yield replace(best, p=min(1.0, best.p * len(numbers)))
    inputs = [np.asarray(u) for k, u in own_inputs(data.u).items()]
    if inputs:
        times = np.asarray(data.t)
        step = float(times[0][1] - times[0][0])
        rate = np.gradient(sum(inputs), step, axis=1)
        test, coefficients = _test("late input", rows, dof, [rate])
        # A force that acts late leaves minus the delay times its rate.
        yield replace(test, estimate=-coefficients[0] if coefficients.size else None)


def _test(question, rows: Rows, dof: str, functions) -> tuple[ResidualTest, np.ndarray]:
    """The test, and the coefficients of the ``functions`` if all of them are tested."""
    p, share, coefficients = wald(rows, np.stack(functions, axis=-1))
    return ResidualTest(dof, question, p, share), coefficients


def wald(rows: Rows, functions: np.ndarray) -> tuple[float, float, np.ndarray]:
    """p-value for the ``functions`` (E, m, g) of the residuals, the share of the variance that they
    explain, and their coefficients (g,), empty if some functions depend on the others."""
    used = rows.used
    e = np.where(used, rows.off, 0.0)
    size = float(np.sqrt(np.mean(e[used] ** 2))) or 1.0
    J, Z = (np.where(used[..., None], x, 0.0)[used] for x in (rows.jacobian, functions))
    known = _basis(J)
    free = Z - known @ (known.T @ Z)
    norm = np.linalg.norm(Z, axis=0)
    u, s, vt = np.linalg.svd(free / np.where(norm > 0, norm, 1.0), full_matrices=False)
    count = int(np.count_nonzero(s > DEPENDENT))
    if not count:
        return 1.0, 0.0, np.zeros(0)
    basis = np.concatenate([known, u[:, :count]], axis=1)
    series = _series(used, e[used] / size, basis)
    tested = np.arange(basis.shape[1]) >= known.shape[1]
    (p, share), off = taken_up(series, np.ones(tested.size, bool), tested)
    coefficients = size * (vt.T @ (-off / s)) / norm if count == Z.shape[1] else np.zeros(0)
    return p, share, coefficients


def _series(used: np.ndarray, values: np.ndarray, basis: np.ndarray) -> list[ResidualSeries]:
    """``values`` (r,) and their ``basis`` (r, k) at the rows ``used`` (E, m), as series."""
    psi, jacobian = np.zeros(used.shape), np.zeros((*used.shape, basis.shape[1]))
    psi[used], jacobian[used] = values, basis
    columns, series = np.arange(basis.shape[1]), []
    for e, own in enumerate(used):
        place = np.flatnonzero(own)
        if place.size > 1:
            at = slice(place[0], place[-1] + 1)
            rows = psi[e, at, None], jacobian[e, at, None], columns, used[e, at, None]
            series.append(ResidualSeries(*rows, 1.0))
    return series


def _basis(columns: np.ndarray) -> np.ndarray:
    """Orthonormal columns with the same span."""
    norm = np.linalg.norm(columns, axis=0)
    there = norm > 0.0
    u, s, _ = np.linalg.svd(columns[:, there] / norm[there], full_matrices=False)
    return u[:, s > DEPENDENT * s[0]] if s.size else np.zeros((columns.shape[0], 0))


#: Condition index from which on a direction is weak, and share of a variance that counts as most.
WEAK, SHARE = 30.0, 0.5
#: Relative size of directions that hold no information.
LEAST = 1e-14


@dataclass(frozen=True)
class Trade:
    """Parameters of which only a combination is known, with its condition index."""

    names: tuple[str, ...]
    condition: float

    def __str__(self) -> str:
        names = ", ".join(self.names)
        return f"{names} trade against each other (condition index {self.condition:.2g})"


@dataclass(frozen=True)
class AtBound:
    """A parameter that rests at its bound, and those that trade with it.

    ``side``: -1 at the lower bound, 1 at the upper one.
    """

    name: str
    value: float
    side: int
    names: tuple[str, ...]

    def __str__(self) -> str:
        bound = "lower" if self.side < 0 else "upper"
        trading = "trade" if len(self.names) > 1 else "trades"
        return (
            f"{self.name} rests at its {bound} bound, {self.value:.3g}, and "
            f"{', '.join(self.names)} {trading} with it: known is only what the bound leaves"
        )


def trades(result: FitResult) -> tuple[Trade, ...]:
    """Combinations of parameters of a fit that trade, the weakest first."""
    information, kept = _information(result, result.at_bound == 0)
    return weak_directions(information, tuple(result.names[i] for i in kept))


def at_bounds(result: FitResult) -> tuple[AtBound, ...]:
    """Parameters of a fit that rest at a bound while others trade with them."""
    everything = np.ones(len(result.names), bool)
    information, kept = _information(result, everything)
    names, sides = tuple(result.names[i] for i in kept), result.at_bound[kept]
    found = []
    for i in np.flatnonzero(sides):
        # The other bounds hold meanwhile.
        alone = (sides == 0) | (np.arange(len(kept)) == i)
        own = tuple(name for name, a in zip(names, alone, strict=True) if a)
        trading = trading_with(information[np.ix_(alone, alone)], own, names[i])
        if trading:
            value = float(result.vector[kept[i]])
            found.append(AtBound(names[i], value, int(sides[i]), trading))
    return tuple(found)


def trading_with(information: np.ndarray, names: tuple[str, ...], name: str) -> tuple[str, ...]:
    """Parameters of ``names`` that share most of their variance with ``name`` if all are free: the
    square of the correlation of the two estimates is above a half; the largest first."""
    names, values, vectors = _scaled(information, names)
    if name not in names or len(names) < 2:
        return ()
    covariance = (vectors / values) @ vectors.T
    i = names.index(name)
    share = covariance[i] ** 2 / (covariance[i, i] * np.diagonal(covariance))
    order = np.argsort(-share, kind="stable")
    return tuple(names[j] for j in order if j != i and share[j] > SHARE)


def starts_at_bounds(result: FitResult) -> list[str]:
    """Sentences on initial states that rest at a bound, which :func:`at_bounds` leaves out."""
    layout = result.objective.layout
    starts = np.array([name.startswith("initial.") for name in result.names])
    found = reached_bounds(result.names, np.where(starts, result.at_bound, 0), layout.bounds)
    return [f"{text}: widen it, or look for wrong readings there" for text, _ in found]


def _information(result: FitResult, which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Information about the parameters ``which`` of the model, initial states removed, and their
    numbers; both empty if the fit failed."""
    names = result.names
    hessian = result.objective.normal_at(result.vector).hessian
    if not np.all(np.isfinite(hessian)):
        return np.zeros((0, 0)), np.zeros(0, int)
    own = np.array(["[" not in name and not name.startswith("initial.") for name in names])
    kept, beside = np.flatnonzero(which & own), np.flatnonzero(which & ~own)
    information = hessian[np.ix_(kept, kept)]
    if beside.size:
        cross = hessian[np.ix_(kept, beside)]
        information = (
            information - cross @ np.linalg.pinv(hessian[np.ix_(beside, beside)]) @ cross.T
        )
    return information, kept


def _scaled(
    information: np.ndarray, names: tuple[str, ...]
) -> tuple[tuple[str, ...], np.ndarray, np.ndarray]:
    """Parameters that have information, and the eigenvalues and vectors of the information that is
    scaled to a unit diagonal."""
    size = np.sqrt(np.maximum(np.diagonal(information), 0.0))
    known = np.flatnonzero(size > 0.0)
    scaled = information[np.ix_(known, known)] / np.outer(size[known], size[known])
    values, vectors = np.linalg.eigh(0.5 * (scaled + scaled.T))
    least = LEAST * values.max(initial=0.0)
    return tuple(names[i] for i in known), np.maximum(values, least), vectors


def weak_directions(information: np.ndarray, names: tuple[str, ...]) -> tuple[Trade, ...]:
    """Combinations of ``names`` that trade, the weakest first, from the information (P, P)."""
    names, values, vectors = _scaled(information, names)
    if len(names) < 2:
        return ()
    variance = vectors**2 / values
    share = variance / variance.sum(axis=1, keepdims=True)
    weak = np.flatnonzero(np.sqrt(values[-1] / values) > WEAK)
    if not weak.size:
        return ()
    found, left = [], np.ones(len(names), bool)
    # Weak directions share variances: a parameter belongs to the first direction at which the sum
    # of its shares has reached most of its variance.
    for i, k in enumerate(weak):
        together = share[:, weak[: i + 1]].sum(axis=1)
        taking = left & (together > SHARE)
        if np.count_nonzero(taking) > 1:
            chosen = np.flatnonzero(taking)[np.argsort(-np.abs(vectors[taking, k]))]
            condition = float(np.sqrt(values[-1] / values[k]))
            found.append(Trade(tuple(names[j] for j in chosen), condition))
            left &= ~taking
    return tuple(found)
