"""``fit_curve``: a friction curve without a given formula, from measurements, with its band."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from jfric.errors import ProblemError
from jfric.fits.curve_prior import Side, find_curve, free_of, with_bends, with_elements
from jfric.fits.data.experiment import Experiment
from jfric.fits.fit_result import FitResult
from jfric.fits.free import Free, beginning_at
from jfric.fits.minimise import Watch
from jfric.fits.random_effects import Centred
from jfric.fits.recipe import Recipe
from jfric.fits.uncertainty.covariance import Method
from jfric.fits.uncertainty.residual_series import cost_of_data
from jfric.numerics.printing import printable
from jfric.system.laws import Directional, FrictionCurve
from jfric.system.naming import parameters, with_numbers
from jfric.system.problem import Problem

#: Most fits with a weight chosen anew from the last fit.
ROUNDS = 8
#: Change of the logarithm of the standard deviation of bends below which the choice has settled.
SETTLED = 0.1
#: Standard deviations that are searched, relative to the first one.
SEARCHED = (1e-4, 1e3)
#: Ratio of the standard deviation of bends to the one that the data ask for, below which a curve
#: that is still negative is refused.
STIFFEST = 1e-3


class Band(NamedTuple):
    """A curve at sliding speeds ``v`` (m,) with its standard errors, and the interval that holds
    the true value at each speed with the probability asked for; each (m,)."""

    v: np.ndarray
    mu: np.ndarray
    standard_error: np.ndarray
    low: np.ndarray
    high: np.ndarray


@printable
@dataclass
class CurveFit:
    """A friction curve from measurements.

    ``problem``: the system with the found values, its law a :class:`jfric.FrictionCurve` of
    numbers. ``fit``: the fit with its covariance and remarks; its parameters are start, end and
    bends of the curve. ``weight``: weight ``1/tau^2`` of the squares of bends. ``rounds``: ``tau``
    of each fit. ``remarks``: limits of the result. ``place``: section and name of the element;
    ``sides``: its curves as lines and bends. Example: see :func:`jfric.fit_curve`.
    """

    problem: Problem
    fit: FitResult
    weight: float
    rounds: tuple[float, ...]
    remarks: tuple[str, ...]
    place: tuple[str, str] = field(repr=False)
    sides: tuple[Side, ...] = field(repr=False)

    @property
    def law(self) -> FrictionCurve:
        """The fitted curve."""
        section, name = self.place
        return self.problem.section(section)[name].law

    def knots(self, direction: str = "positive") -> Band:
        """The values at the knots with 95 % intervals; see :meth:`band`."""
        return self.band([float(v) for v in self.law.speeds], direction)

    def band(
        self,
        v: Sequence[float] | np.ndarray,
        direction: str = "positive",
        level: float = 0.95,
        method: Method = "autoregressive",
    ) -> Band:
        """The curve for one ``direction`` of sliding (``"positive"``, ``"negative"``) at the speeds
        ``v`` (m,) [m/s or rad/s], and its uncertainty from the noise and the prior.

        Intervals hold the true value at a speed with probability ``level`` on average over speeds
        (G. Wahba, J. R. Stat. Soc. B 45 (1983)). ``method`` as in
        :meth:`jfric.FitResult.covariance`. NaN where neither the data nor the prior determine the
        value.
        """
        import jax
        import jax.numpy as jnp
        from scipy.special import ndtri

        if direction not in ("positive", "negative"):
            raise ProblemError(
                f"direction: found {direction!r}, allowed are 'positive' and 'negative'"
            )
        if not 0.0 < level < 1.0:
            raise ProblemError(f"level: found {level:g}, must lie between 0 and 1")
        at = np.atleast_1d(np.asarray(v, float))
        if np.any(at < 0):
            raise ProblemError(f"v: found {at.min():g}, speeds of sliding are not negative")
        index = 0 if direction == "positive" else 1
        side = self.sides[index if len(self.sides) == 2 else 0]
        law = self.law

        def curve(x):
            values = tuple(jnp.asarray(side.matrix) @ x)
            return FrictionCurve(law.speeds, values, monotone=law.monotone).kinetic(at)[0]

        place = [self.fit.names.index(path) for path in side.paths]
        x = jnp.asarray(self.fit.vector[place])
        J = np.asarray(jax.jacfwd(curve)(x))
        matrix = self.fit.covariance(method).matrix[np.ix_(place, place)]
        error = np.sqrt(np.einsum("mi,ij,mj->m", J, matrix, J))
        mu, z = np.asarray(curve(x)), float(ndtri(0.5 + 0.5 * level))
        return Band(at, mu, error, mu - z * error, mu + z * error)

    def __str__(self) -> str:
        lines = [
            f"{self.fit.outcome.message}; friction curve with bends of {self.rounds[-1]:.3g} "
            f"({len(self.rounds)} fits)"
        ]
        directions = ("positive", "negative") if len(self.sides) == 2 else ("positive",)
        for direction in directions:
            found = self.knots(direction)
            lines.append(f"speed, coefficient, standard error ({direction})")
            lines += [
                f"{v:.6g}  {mu:.6g}  {e:.2g}"
                for v, mu, e in zip(found.v, found.mu, found.standard_error, strict=True)
            ]
        others = set(self.fit.names) - {path for side in self.sides for path in side.paths}
        errors = self.fit.covariance().standard_errors
        lines += [f"{n}  {self.fit.values[n]:.6g}  {errors[n]:.2g}" for n in sorted(others)]
        return "\n".join([*lines, *self.remarks])


def fit_curve(
    problem: Problem,
    experiments: Experiment | Sequence[Experiment],
    free: Mapping[str, Free] | None = None,
    *,
    element: str | None = None,
    weight: float | None = None,
    starts: int = 1,
    watch: Watch | None = None,
    **options: Any,
) -> CurveFit:
    """The friction curve with which ``problem`` reproduces the ``experiments`` best, and its band.

    The law of one element is a :class:`jfric.FrictionCurve` with at least three knots; its values
    are the first guess, and two directions are independent of each other. If several elements have
    such a law, ``element`` names one (``"friction.guide"``). Free are all values of the curve and
    the parameters in ``free``, as in :func:`jfric.fit`, which takes ``options`` (``observe``,
    ``residual``, ``loss``, ``hold``, ...). ``starts``: number of starts of the first fit; later
    fits go on from the last one. ``watch``: as in :func:`jfric.fit`. A separate static limit
    ``mu_s`` is not found: stick lasts up to the first value.

    The curve is smooth: over ``x = ln(1 + v/speeds[1])`` the changes of slope at the knots are
    normal with mean zero and a standard deviation ``tau``; ``weight = 1/tau^2`` is the weight of
    their squares. By default ``tau`` has the largest marginal likelihood, by Laplace's
    approximation around the last fit with its Gauss-Newton matrix; the number of samples is reduced
    to the independent ones by the autocorrelation of the residuals.

    Where that curve is negative somewhere, ``tau`` is halved until it is not, and a remark says so.
    Raises :class:`jfric.ProblemError` for a problem or records that cannot be fitted.
    Source: D. J. C. MacKay, Bayesian interpolation, Neural Computation 4 (1992).
    Friction ``2 + |v|`` N, from inverse dynamics::

        >>> law = jfric.FrictionCurve([0.0, 0.1, 0.3, 1.0], [2.0, 2.0, 2.0, 2.0])
        >>> slide = jfric.Problem(
        ...     ["x"],
        ...     {
        ...         "mass": jfric.Mass("x", 3.0),
        ...         "friction": jfric.Friction("x", law, limit=1.0),
        ...         "load": jfric.Load("x", 0.0),
        ...     },
        ... )
        >>> t = jnp.arange(0.0, 12.0, 5e-3)
        >>> x, v, a = 0.5 * jnp.sin(2.0 * t), jnp.cos(2.0 * t), -2.0 * jnp.sin(2.0 * t)
        >>> F = 3.0 * a + jnp.sign(v) * (2.0 + abs(v))
        >>> data = jfric.Experiment(t, u={"load.F": F}, y={"x": x})
        >>> found = jfric.fit_curve(slide, data, residual=jfric.InverseDynamics())
        >>> law = found.problem.elements["friction"]["friction"].law
        >>> [round(float(law.kinetic(jnp.asarray(v))[0]), 1) for v in (0.3, 0.8)]
        [2.3, 2.8]
    """
    section, name, law = find_curve(problem, element)
    changed, sides = with_bends(problem, element)
    speeds = np.array([float(v) for v in problem.resolved().section(section)[name].law.speeds])
    others = dict(free or {})
    for path in others:
        if ".curve." in path or path.endswith(".mu_s"):
            raise ProblemError(f"free.{path}: all values of the curve are free already")
    if weight is not None and not weight > 0.0:
        raise ProblemError(f"weight: found {weight:g}, must be positive")
    recipe = Recipe.of(changed, experiments, others, **options)
    search = _Search(recipe, others, tuple(sides), speeds, starts, watch)
    if weight is None:
        found, asked, remarks = search.likely()
    else:
        asked, remarks = weight**-0.5, []
        found = search.fitted(asked)

    def plain(found: FitResult) -> Problem:
        numbers = {k: value for k, value in found.values.items() if k in parameters(changed)}
        return _plain(with_numbers(changed, numbers), section, name, law, sides)

    found, tau, there = search.positive(found, asked, plain)
    if tau < asked:
        remarks.append(
            f"a curve with bends of {asked:.3g}, as the data ask for, is negative somewhere: bends "
            f"of {tau:.3g} were taken"
        )
    # In the problem, start and end have far values, because of bounds: no sign of a wrong unit.
    own = tuple(path for side in sides for path in side.paths)
    found.remarks = tuple(said for said in found.remarks if not said.startswith(own))
    return CurveFit(
        problem=there,
        fit=found,
        weight=tau**-2,
        rounds=tuple(search.rounds),
        remarks=(*remarks, *found.remarks),
        place=(section, name),
        sides=tuple(sides),
    )


@dataclass
class _Search:
    """Fits of one curve with different standard deviations of its bends."""

    recipe: Recipe
    free: Mapping[str, Free]
    sides: tuple[Side, ...]
    speeds: np.ndarray
    starts: int
    watch: Watch | None
    rounds: list[float] = field(default_factory=list)

    def fitted(self, tau: float, last: FitResult | None = None) -> FitResult:
        """The fit with bends of ``tau``, from the ``last`` one on."""
        self.rounds.append(tau)
        begin = None if last is None else last.values
        chosen = beginning_at(self.free, begin or {})
        for side in self.sides:
            chosen |= free_of(side, self.speeds, tau, begin)
        return FitResult.of(self.recipe.again(chosen, 1 if begin else self.starts), self.watch)

    def likely(self) -> tuple[FitResult, float, list[str]]:
        """The fit whose bends have the largest marginal likelihood around it, their standard
        deviation, and remarks."""
        x = np.log1p(self.speeds / self.speeds[1])
        largest = max(float((side.matrix @ side.start).max()) for side in self.sides)
        tau = first = largest / float(np.mean(np.diff(x)))
        bends = [path for side in self.sides for path in side.bends]
        found = self.fitted(tau)
        while np.isfinite(found.cost):
            better = _best_tau(found, bends, tau, first)
            if abs(np.log(better / tau)) < SETTLED:
                break
            if len(self.rounds) == ROUNDS:
                said = f"the weight of the prior has not settled after {ROUNDS} fits: bends of "
                return found, tau, [f"{said}{tau:.3g} were taken, {better:.3g} would follow"]
            tau = better
            found = self.fitted(tau, found)
        return found, tau, []

    def positive(
        self, found: FitResult, tau: float, plain: Callable[[FitResult], Problem]
    ) -> tuple[FitResult, float, Problem]:
        """A fit whose curve is nowhere negative, with stiffer bends than ``tau`` if need be, and
        the problem ``plain`` with it."""
        asked = tau
        while True:
            try:
                return found, tau, plain(found)
            except ProblemError:  # a straight line between the ends would not be negative
                if tau <= asked * STIFFEST:
                    raise
            tau *= 0.5
            found = self.fitted(tau, found)


def _plain(
    problem: Problem, section: str, name: str, law: FrictionCurve, sides: Sequence[Side]
) -> Problem:
    """The problem with numbers in place of expressions in start, end and bends."""
    curves = []
    for side in sides:
        numbers = [float(problem.parameters[n]) for n in side.names]
        curves.append(tuple((side.matrix @ np.array(numbers)).tolist()))
    curve = Directional(*curves) if len(curves) == 2 else curves[0]
    part = replace(problem.section(section)[name], law=replace(law, curve=curve, mu_s=None))
    own = {n for side in sides for n in side.names}
    kept = {k: v for k, v in problem.parameters.items() if k not in own}
    return with_elements(problem, {section: {name: part}}, kept)


def _best_tau(found: FitResult, bends: Sequence[str], tau: float, first: float) -> float:
    """The standard deviation of bends with the largest marginal likelihood around a fit, among
    those whose curves keep all bounds: the fit must not use friction below zero."""
    from scipy.optimize import minimize_scalar

    # A value that has reached a bound stays there.
    moves = found.at_bound == 0
    own = [name for name, free in zip(found.names, moves, strict=True) if free]
    at = np.array([own.index(path) for path in bends if path in own], int)
    lower, upper = (bound[moves] for bound in found.objective.layout.bounds)
    gradient, hessian = cost_of_data(found, np.array([found.names.index(b) for b in bends]))
    cost = found.vector[moves], gradient[moves], hessian[np.ix_(moves, moves)]
    effects = Centred(*cost, [at])

    def minus_log(log_tau: float) -> float:
        value = effects.minus_log(np.array([log_tau]))
        if not np.isfinite(value):
            return np.inf
        best = effects.best(np.exp([log_tau]))
        return value if np.all((best >= lower) & (best <= upper)) else np.inf

    grid = np.linspace(np.log(first * SEARCHED[0]), np.log(first * SEARCHED[1]), 33)
    values = [minus_log(g) for g in grid]
    best = int(np.argmin(values))
    if not np.isfinite(values[best]):
        return tau
    around = (grid[max(best - 1, 0)], grid[min(best + 1, grid.size - 1)])
    least: Any = minimize_scalar(minus_log, bounds=around, method="bounded")
    return float(np.exp(least.x if least.fun <= values[best] else grid[best]))
