"""Eigenvalues of steady sliding over a parameter, and where small motions begin to grow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.optimize import linear_sum_assignment

from jfric.errors import ProblemError
from jfric.numerics.continuation import Advance, Lengths, Trial, run, steps
from jfric.numerics.limits import require_count
from jfric.numerics.linear_algebra import nearest_eigenvalue, nearest_pair
from jfric.numerics.printing import Shown, printable
from jfric.periodic.steady_sliding import NEUTRAL, SteadySliding, require_steady, solved
from jfric.statics.path_names import checked_interval, checked_path
from jfric.system.expression import Expression
from jfric.system.model import build
from jfric.system.naming import get_parameter, parameters, set_parameters
from jfric.system.problem import Problem

OnsetKind = Literal["flutter", "divergence", "mode change"]
#: Relative distance of two values of the parameter at which the search between them ends.
BRACKET = 1e-13
#: Distance of two eigenvalues, and growth, as parts of the largest one, below which they meet.
MEETS = 1e-4
#: Steps of Newton's method for a boundary, size of its last one, and the largest size, as a part of
#: the interval, of all together.
ROUNDS, NEAR, FARTHEST = 30, 1e-14, 1e-3
#: Most steps along a boundary, and length below which it ends, as a part of the interval.
MOST, SHORTEST = 10_000, 1e-6


@printable
@dataclass(frozen=True)
class Onset:
    """A value of the parameter at which steady sliding loses or gains its stability.

    ``parameter`` [SI]; ``kind``: ``"flutter"`` (a frequency grows), ``"divergence"`` (growth
    without oscillation) or ``"mode change"`` (contacts or springs change their state, and
    eigenvalues jump); ``frequency`` [rad/s]; ``meets``: whether two eigenvalues meet there, as in
    systems without damping, so that growth begins like a root; ``loses``: whether stability ends
    in the direction of the path. ``derivatives``: those of ``parameter`` by all other numbers of
    the problem, by path: with the condition ``f(p, theta) = 0`` of the boundary, ``dp/dtheta =
    -f_theta/f_p``; empty for a change of mode. Example: see :func:`jfric.flutter`.
    """

    parameter: float
    kind: OnsetKind
    frequency: float
    meets: bool
    loses: bool
    derivatives: dict[str, float]


@printable
@dataclass(frozen=True)
class FlutterPath:
    """Eigenvalues of steady sliding over the parameter ``name``.

    ``parameter`` (r,) [SI]; ``eigenvalues`` (r, k) [rad/s]: each column follows one eigenvalue with
    an imaginary part that is not negative; NaN where there is none; ``growth`` (r,) [1/s]: the
    largest real part, NaN where no steady state was found; ``state`` (r, 2n) of the ``axes``;
    ``onsets``: where stability changes. Example: see :func:`jfric.flutter`.
    """

    name: str
    parameter: np.ndarray
    eigenvalues: np.ndarray
    growth: np.ndarray
    state: np.ndarray
    axes: tuple[str, ...]
    onsets: tuple[Onset, ...]
    #: The problem, the time [s] of its loads, and the axes that move.
    problem: Problem
    t: float
    moving: tuple[str, ...]

    def _shown(self) -> Shown:
        rows = [
            (f"{x.parameter:.12g}", x.kind, f"{x.frequency:.9g}", "loses" if x.loses else "gains")
            for x in self.onsets
        ]
        title = f"FlutterPath: {len(self.parameter)} states over {self.name}"
        return Shown(title, (f">{self.name}", "what", ">frequency", "stability"), rows)


@printable
@dataclass(frozen=True)
class FlutterBoundary:
    """Boundary of stability of steady sliding over two parameters, row by row.

    ``names``: full paths of both parameters; ``parameter``, ``second`` (r,) [SI]: their values;
    ``slope`` (r,): derivative of the first by the second along the boundary, infinite where it
    turns around; ``frequency`` (r,) [rad/s]; ``outcome``: why the boundary ends, in words.
    Example: see :func:`jfric.continue_flutter`.
    """

    names: tuple[str, str]
    parameter: np.ndarray
    second: np.ndarray
    slope: np.ndarray
    frequency: np.ndarray
    outcome: str


def flutter(
    problem: Problem,
    path: str,
    start: float,
    stop: float,
    *,
    points: int = 101,
    t: float | None = None,
    moving: Sequence[str] = (),
) -> FlutterPath:
    """Frequencies and growth rates of steady sliding over a parameter, and where flutter begins.

    ``path``: a parameter of ``problem``, at ``points`` equal steps from ``start`` to ``stop`` [SI];
    ``t``, ``moving``: see :func:`jfric.steady_sliding`. Between two values with different stability
    the boundary is the exact zero of a smooth function, by Newton's method with its derivative: of
    the real part of an eigenvalue, or, where two eigenvalues meet (``meets``), of the square of
    half their difference. Changes that come and go between two values are not found.

    Raises :class:`jfric.ProblemError` for unknown parameters, and like
    :func:`jfric.steady_sliding`. Source: O. N. Kirillov, Nonconservative Stability Problems of
    Modern Physics (2013). After the example of :func:`jfric.steady_sliding`, two modes of the brake
    are coupled by friction::

        >>> found = jfric.flutter(brake, "friction.mu", 0.0, 2.0, points=11)
        >>> onset = found.onsets[0]
        >>> onset.kind, round(onset.parameter, 9), round(onset.frequency, 6)
        ('flutter', 1.180555556, 1.632993)
        >>> round(onset.derivatives["stop.k"], 6)
        -1.052083
    """
    problem = build(problem)
    require_steady(problem, moving)
    require_count("points", points, 3, 10**5)
    name = checked_path(problem, path)
    ends = checked_interval(problem, name, start, stop)
    t = float(problem.resolved().time.start) if t is None else float(t)
    values = np.linspace(*ends, points)
    test = _Test(problem, name, jnp.asarray(t), tuple(moving))
    found = test.states(values)
    known, grows = found.exists, ~found.stable
    changes = np.flatnonzero(known[1:] & known[:-1] & (grows[1:] != grows[:-1]))
    onsets = [_onset(test, values[i : i + 2], bool(grows[i]), points) for i in changes]
    state = np.concatenate([found.q, found.v], axis=1)
    followed = _followed(np.asarray(found.eigenvalues))
    columns = name, values, followed, np.asarray(found.growth), state, found.axes
    return FlutterPath(*columns, tuple(onsets), problem, t, tuple(moving))


def continue_flutter(
    path: FlutterPath, onset: Onset, second: str, stop: float, *, points: int = 41
) -> FlutterBoundary:
    """Boundary of stability through ``onset`` of ``path``, over its parameter and a second one.

    ``second``: another parameter, from its value in the problem to ``stop`` [SI]. The boundary is
    the curve on which the function of :func:`jfric.flutter` is zero, followed by its arc, in steps
    of about ``1/points`` of the interval, with exact derivatives; it may turn around in both
    parameters. It ends at ``stop``, where the first parameter leaves the interval of the path, or
    where the boundary changes its kind, as eigenvalues that meet do where damping begins.

    Raises :class:`jfric.ProblemError` for unknown parameters and for changes of mode.
    After the example of :func:`jfric.flutter`, the critical friction falls where the support of the
    brake is stiffer::

        >>> boundary = jfric.continue_flutter(found, found.onsets[0], "spring.y.k", 0.5, points=5)
        >>> boundary.outcome, boundary.parameter[[0, -1]].round(9).tolist()
        ('stop', [1.180555556, 1.146701389])
    """
    problem = path.problem
    other = checked_path(problem, second)
    if other == path.name:
        raise ProblemError(f"second: found {other}, which is the parameter of the path itself")
    if onset.kind == "mode change":
        raise ProblemError("onset: found a mode change, followed are flutter and divergence")
    require_count("points", points, 2, 10**5)
    first = float(np.asarray(get_parameter(problem, other)))
    checked_interval(problem, other, first, stop)
    test = _Test(problem, path.name, jnp.asarray(path.t), path.moving)
    scale = np.asarray([np.ptp(path.parameter), abs(stop - first)])
    origin = np.asarray([onset.parameter, first])
    curve = _Curve(test, other, onset.meets, scale, origin, float(stop), path.parameter)
    here = curve.corrected(curve.origin / scale, 1j * onset.frequency, across=False)
    if here is None:
        raise ProblemError(f"onset: found {onset}, which is no boundary of this problem")
    rows, lengths = [here], Lengths(1.0 / points, SHORTEST)

    def answer(trial: Trial) -> Advance:
        found = curve.step(trial.here, trial.size)
        if found.point is not None:
            rows.append(found.point)
        return found

    outcome = run(steps(here, 1.0 / points, lengths, MOST), answer)
    return _boundary((path.name, other), rows, scale, outcome)


class _Place(NamedTuple):
    """Point of a boundary: both parameters and the slopes of its function, scaled; eigenvalue;
    direction in which it is followed."""

    u: np.ndarray
    slopes: np.ndarray
    value: complex
    direction: np.ndarray


def _boundary(
    names: tuple[str, str], rows: list[_Place], scale: np.ndarray, outcome: str
) -> FlutterBoundary:
    at = np.asarray([row.u * scale for row in rows])
    slopes = np.asarray([row.slopes / scale for row in rows])
    with np.errstate(divide="ignore"):
        slope = -slopes[:, 1] / slopes[:, 0]
    frequency = np.asarray([abs(row.value.imag) for row in rows])
    return FlutterBoundary(names, at[:, 0], at[:, 1], slope, frequency, outcome)


class _Curve(NamedTuple):
    """A boundary over two parameters, in their ``scale``, from ``origin`` to ``stop`` of the second
    parameter, as long as the first lies among ``values``."""

    test: _Test
    second: str
    meets: bool
    scale: np.ndarray
    origin: np.ndarray
    stop: float
    values: np.ndarray

    def corrected(self, u: np.ndarray, near: complex, *, across: bool, last=None) -> _Place | None:
        """Point of the boundary near ``u``, at right angles to it (``across``) or for the same
        second parameter."""
        begin = u
        for _ in range(ROUNDS):
            at = dict(zip((self.test.name, self.second), u * self.scale, strict=True))
            f, value, by = self.test(at, near, self.meets)
            slopes = np.asarray([by[name] for name in at]) * self.scale
            used = slopes if across else slopes * np.asarray([1.0, 0.0])
            step = -f * used / np.maximum(used @ used, 1e-300)
            u, near = u + step, value
            if not np.all(np.isfinite(u)) or np.linalg.norm(u - begin) > 0.5:
                return None
            if np.linalg.norm(step) <= NEAR * (1.0 + np.linalg.norm(u)):
                break
        else:
            return None
        along = np.asarray([-slopes[1], slopes[0]])
        along = along / np.maximum(np.linalg.norm(along), 1e-300)
        old = np.asarray([0.0, self.stop - self.origin[1]]) if last is None else last.direction
        return _Place(u, slopes, value, along if along @ old >= 0 else -along)

    def step(self, here: _Place, size: float) -> Advance:
        """Step of length ``size`` along the boundary."""
        u = here.u + size * here.direction
        end = self.stop / self.scale[1]
        passes = (u[1] - end) * (here.u[1] - end) <= 0.0
        if passes:
            u = here.u + (end - here.u[1]) / here.direction[1] * here.direction
            u[1] = end
        found = self.corrected(u, here.value, across=not passes, last=here)
        if found is None or np.linalg.norm(found.u - u) > 0.5 * size:
            return Advance(None, 0.5 * size)
        low, high = sorted((self.values[0], self.values[-1]))
        if not low <= found.u[0] * self.scale[0] <= high:
            return Advance(None, ended="the first parameter leaves its interval")
        if abs(found.value.real) > 10.0 * NEUTRAL * abs(found.value) and self.meets:
            return Advance(None, ended="eigenvalues no longer meet: damping begins")
        return Advance(found, 2.0 * size, "stop" if passes else "")


class _Test(NamedTuple):
    """A function that is zero where growth begins, for changed numbers of the problem."""

    problem: Problem
    name: str
    t: Float[Array, ""]
    moving: tuple[str, ...]

    def states(self, values: np.ndarray) -> SteadySliding:
        """Steady sliding at values of the parameter, as one batch."""
        found = _states(self.problem, self.name, jnp.asarray(values), self.t, self.moving)
        return jax.device_get(found)

    def __call__(
        self, changed: dict[str, float], near: complex, meets: bool
    ) -> tuple[float, complex, dict[str, float]]:
        """Value, eigenvalue nearest to ``near``, and derivatives by all numbers of the problem."""
        known = parameters(self.problem).items()
        known = {k: jnp.asarray(x, float) for k, x in known if not isinstance(x, Expression)}
        values = {k: x for k, x in known.items() if x.ndim == 0}
        values |= {k: jnp.asarray(x) for k, x in changed.items()}
        found = _tested(self.problem, values, jnp.asarray(near + 0j), self.t, self.moving, meets)
        (f, value), slopes = jax.device_get(found)
        return float(f), complex(value), {k: float(x) for k, x in slopes.items()}


@eqx.filter_jit
def _tested(problem: Problem, values, near, t, moving, meets: bool):
    def value(values):
        matrix = solved(set_parameters(problem, values), t, moving).matrix
        if meets:
            mean, square = nearest_pair(matrix, near)
            return square.real, (square.real, mean)
        found = nearest_eigenvalue(matrix, near)
        return found.real, (found.real, found)

    slopes, found = jax.jacfwd(value, has_aux=True)(values)
    return found, slopes


@eqx.filter_jit
def _states(problem: Problem, name: str, values, t, moving) -> SteadySliding:
    def one(value):
        return solved(set_parameters(problem, {name: value}), t, moving)

    return jax.vmap(one)(values)


def _onset(test: _Test, ends: np.ndarray, grows: bool, points: int) -> Onset:
    """The change of stability between two values of the parameter, at the first of which small
    motions grow or not; with states at ``points`` values as one batch."""
    (low, high), near = ends, BRACKET * max(*np.abs(ends), np.ptp(ends))
    # Not near the change, where all eigenvalues of a small system may vanish.
    size = np.nanmax(np.abs(test.states(np.linspace(low, high, points)).eigenvalues))
    while True:
        values = np.linspace(low, high, points)
        found = test.states(values)
        first = int(np.argmax(found.stable[1:] == grows)) + 1
        low, high = values[first - 1], values[first]
        if abs(high - low) <= near:
            break
    sides = [jax.tree.map(lambda x, i=i: x[i], found) for i in (first - 1, first)]
    wild, calm = sides if grows else sides[::-1]
    values = wild.eigenvalues[np.isfinite(wild.eigenvalues)]
    largest = values[np.argmax(values.real)]
    jumps = any(np.any(getattr(calm, x) != getattr(wild, x)) for x in ("mode", "segment"))
    if jumps or not wild.exists or largest.real > MEETS * size:
        height = abs(float(largest.imag))
        return Onset(
            float(high), "mode change", height, meets=False, loses=not grows, derivatives={}
        )
    others = np.sort(np.abs(values - largest))[1:]
    neutral = abs(float(calm.growth)) <= NEUTRAL * size
    meets = bool(neutral and len(others) and others[0] <= MEETS * size)
    longest = FARTHEST * float(np.ptp(ends))
    place, value, slopes = _polished(test, float(high), 1j * largest.imag, meets, longest)
    oscillates = abs(value.imag) > MEETS * size
    return Onset(
        parameter=place,
        kind="flutter" if oscillates else "divergence",
        frequency=abs(value.imag) if oscillates else 0.0,
        meets=meets,
        loses=not grows,
        derivatives={k: -x / slopes[test.name] for k, x in slopes.items() if k != test.name},
    )


def _polished(test: _Test, place: float, near: complex, meets: bool, longest: float):
    """The zero of ``test`` next to ``place``, its eigenvalue and slopes; ``place`` itself where
    Newton's method leaves it by more than ``longest``."""
    x, value = place, near
    for _ in range(ROUNDS):
        f, value, slopes = test({test.name: x}, value, meets)
        step = -f / slopes[test.name] if slopes[test.name] else np.inf
        if not abs(x + step - place) <= longest:
            return place, value, slopes
        x += step
        if abs(step) <= NEAR * abs(x):
            break
    return x, value, slopes


def _followed(eigenvalues: np.ndarray) -> np.ndarray:
    """Eigenvalues (r, k) with an imaginary part that is not negative, each column the ones nearest
    to each other from row to row."""
    rows = [row[np.isfinite(row) & (row.imag >= 0.0)] for row in eigenvalues]
    width = max(map(len, rows), default=0)
    found = np.full((len(rows), width), np.nan + 0j)
    last = np.full(width, np.nan + 0j)
    for i, row in enumerate(rows):
        away = np.abs(last[:, None] - row[None, :])
        place, which = linear_sum_assignment(np.where(np.isnan(away), 1e9, away))
        found[i, place] = row[which]
        last = np.where(np.isnan(found[i]), last, found[i])
    return found
