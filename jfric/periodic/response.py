"""``frequency_response``: steady states over the frequency of a load, and families of them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import ArrayLike

from jfric.errors import ProblemError, SimulationError, nearest, require_no_text
from jfric.numerics.limits import require_count, require_part
from jfric.periodic.continuation import MOST, Following, followed, resumed, rows_of
from jfric.periodic.cycle_quantities import Drive
from jfric.periodic.follower import FIRST, LONGEST
from jfric.periodic.forcing import function_at, periodic_functions
from jfric.periodic.orbit import OrbitStatus
from jfric.periodic.path import Part, ResponseCurve, Store, fingerprint
from jfric.periodic.path_kernel import Computation, Kernel, PathPoint, alone, side_by_side
from jfric.periodic.path_start import PathProblem, first_point
from jfric.periodic.response_result import FrequencyResponse
from jfric.periodic.state_vector import axes_of
from jfric.statics.path_names import checked_path
from jfric.system.expression import Expression
from jfric.system.functions import Harmonic
from jfric.system.model import build
from jfric.system.naming import get_parameter, set_parameters
from jfric.system.problem import Problem
from jfric.system.validation import validate

#: Most curves of a family.
CURVES = 10_000
#: Number of curves that are followed side by side.
TOGETHER = 16

#: Called for each row with the number of the curve, the covered part of the interval, and its rows.
Watch = Callable[[int, float, int], None]


def frequency_response(
    problem: Problem,
    load: str,
    start: float,
    stop: float,
    *,
    over: Mapping[str, ArrayLike] | None = None,
    state: Any = None,
    max_step: float = LONGEST,
    max_steps: int = MOST,
    segments: int = 1,
    store: str | Path | None = None,
    title: str = "",
    watch: Watch = lambda curve, part, rows: None,
    **options: Any,
) -> FrequencyResponse:
    """Steady states of ``problem`` over the frequency of a ``load``, from ``start`` to ``stop``.

    ``load``: a load, support or belt that is :class:`jfric.Harmonic` in time, by its name, or the
    path of its frequency; ``start``, ``stop``: frequencies [rad/s], in the order in which they are
    covered. The curve is that of :func:`jfric.continue_orbit`, which takes the further ``options``:
    exact orbits, stable and unstable ones, round folds, with folds, flips and changes of events
    located. ``over``: further parameters by path and their values, one curve for each combination.
    The curves are followed side by side: their next steps are computed as one batch, on all
    devices.

    ``state`` (2n,): a guess of the orbit at ``start``; without it the problem's own start and a
    transient lead to one. ``max_step``, ``max_steps``, ``segments``: as for
    :func:`jfric.continue_orbit`. ``store``: a folder that keeps the computed rows, so that the same
    call continues after an interruption; ``title``: written there. ``watch`` is called for each row
    with the number of the curve, the covered part of the interval, and the number of rows.

    Returns a :class:`jfric.FrequencyResponse`; a curve without a first orbit is empty, as its
    ``status`` says. Raises :class:`jfric.ProblemError` for a load without a frequency, or whose
    frequency others do not follow, and where :func:`jfric.continue_orbit` does. Source: A. H.
    Nayfeh, D. T. Mook, Nonlinear Oscillations (1979). A linear oscillator::

        >>> linear = jfric.Problem(
        ...     ["x"],
        ...     {
        ...         "mass": jfric.Mass("x", 1.0),
        ...         "spring": jfric.Spring("x", 1.0),
        ...         "damper": jfric.Damper("x", 0.2),
        ...         "load": jfric.Load("x", jfric.Harmonic(1.0, 0.8)),
        ...     },
        ... )
        >>> response = jfric.frequency_response(linear, "load", 0.9, 1.05)
        >>> w, x = response.frequency, response.amplitude("x")
        >>> bool(abs(x - abs(1.0 / (1.0 - w**2 + 0.2j * w))).max() < 1e-12)
        True
        >>> peak = response.peak("x")
        >>> round(peak.frequency**2, 9), round(peak.value, 9)
        (0.98, 5.025189076)
        >>> curve = response.curves[0]
        >>> curve.outcome, [point.kind for point in curve.special]
        ('complete', ['end'])
    """
    problem = build(problem)
    drive = drive_of(problem, load)
    start, stop = _checked_limits(start, stop)
    if "section" in options or "period" in options or "orbit" in options:
        raise ProblemError(
            "section, period, orbit: a load with a frequency decides on both; give state, or "
            "transient and cycles"
        )
    require_count("max_steps", max_steps, 1, 10**6)
    require_part("max_step", max_step)
    if state is not None:
        options["start"] = state
    varied, curves = _family(problem, over, drive.path)
    for values, end in itertools.product(curves, (start, stop)):
        validate(set_parameters(problem, values | {drive.path: end}))
    path = PathProblem(problem, drive.path, (start, stop), segments, options)
    shooting = path.equations(problem, path.at(start), None)[0]
    there = set_parameters(problem, curves[0] | {drive.path: start})
    drive = drive.repeating(there, float(shooting.period_of(there, 0.0)))
    request = {
        "problem": fingerprint(problem),
        "load": drive.path,
        "interval": [start, stop],
        "over": {k: v.tolist() for k, v in varied.items()},
        "steps": [max_step, max_steps, segments],
        "options": repr(sorted((k, repr(v)) for k, v in options.items())),
    }
    kept = None if store is None else Store(Path(store), request, title, "response")
    size = 2 * len(axes_of(problem))
    how = Following(max_step, max_steps, lambda points: rows_of(points, size), kept, watch)
    return FrequencyResponse(
        problem=problem,
        drive=drive,
        limits=(start, stop),
        over=varied,
        curves=tuple(_follow_all(path, how, curves)),
        shooting=shooting,
    )


def _checked_limits(start: float, stop: float) -> tuple[float, float]:
    """The ends of an interval of frequencies."""
    for end in (start, stop):
        require_no_text("start, stop", end)
    start, stop = float(start), float(stop)
    if not np.isfinite([start, stop]).all() or start == stop or min(start, stop) <= 0.0:
        raise ProblemError(
            f"start, stop: found {start:g} and {stop:g} rad/s, needs two frequencies above zero "
            "that differ"
        )
    return start, stop


def drive_of(problem: Problem, load: str) -> Drive:
    """The load whose function of time ``load`` names, and the path of its frequency."""
    places = periodic_functions(problem)
    found = [p for p in places if load in (p, p.rpartition(".")[0], places[p][1], f"{p}.omega")]
    if len(found) != 1:
        known = ", ".join(places) or "none"
        how = "several" if found else "none"
        raise ProblemError(
            f"load: found {load!r}{nearest(load, places) if not found else ''}, which names {how} "
            f"of the functions with a frequency ({known})"
        )
    label = found[0]
    function = function_at(problem, places[label])
    if not isinstance(function, Harmonic):
        raise ProblemError(
            f"{label}: found a {type(function).__name__}, whose frequency is none of one number; "
            "give a Harmonic function"
        )
    path = f"{label}.omega"
    value = get_parameter(problem, path)
    if isinstance(value, Expression) and [value.text.strip()] == [*value.references]:
        path = f"parameters.{value.text.strip()}"
    return Drive(places[label], checked_path(problem, path), 1)


def _family(problem: Problem, over, path: str) -> tuple[dict[str, np.ndarray], list[dict]]:
    """Values of the further parameters by full path, and those of each curve."""
    varied: dict[str, np.ndarray] = {}
    for given, values in (over or {}).items():
        name = checked_path(problem, given)
        array = np.atleast_1d(np.asarray(values, float))
        if name in varied or name == path:
            raise ProblemError(f"over: found {name!r} twice")
        if array.ndim != 1 or not array.size or not np.isfinite(array).all():
            raise ProblemError(f"over.{name}: needs a list of finite numbers")
        varied[name] = array
    if len(varied) > 2:
        raise ProblemError(f"over: found {len(varied)} parameters, at most two")
    combinations = itertools.product(*(v.tolist() for v in varied.values()))
    curves = [dict(zip(varied, row, strict=True)) for row in combinations]
    require_count("over: the number of curves", len(curves), 1, CURVES)
    return varied, curves


def _follow_all(
    path: PathProblem, how: Following, curves: list[dict[str, float]]
) -> list[ResponseCurve]:
    """All curves, those with other values of the further parameters side by side."""
    parts = [how.finished(number) for number in range(len(curves))]
    for number, whole in enumerate(parts):
        if whole is not None:
            how.watch(number, 1.0, len(whole.rows))
    left = [number for number, whole in enumerate(parts) if whole is None]
    for begin in range(0, len(left), TOGETHER):
        group = left[begin : begin + TOGETHER]
        computations = [_follow(path, how, number, curves[number]) for number in group]
        if len(curves) == 1:
            done = [alone(computations[0])]
        else:
            done = side_by_side(computations, min(TOGETHER, len(curves)))
        for number, whole in zip(group, done, strict=True):
            parts[number] = whole
    pairs = zip(curves, parts, strict=True)
    return [_curve(values, whole) for values, whole in pairs if whole is not None]


def _curve(values: dict[str, float], whole: Part) -> ResponseCurve:
    status, remarks = whole.outcome
    special = tuple(whole.special)
    ended = special[-1].kind if special else "left"
    stuck = "nothing was found to go on from the last row"
    said = "; ".join(remarks.splitlines()) or ("complete" if ended == "end" else stuck)
    return ResponseCurve(values, **whole.rows.columns, special=special, status=status, outcome=said)


def _follow(
    path: PathProblem, how: Following, number: int, values: dict[str, float]
) -> Computation[Part]:
    """One curve, from its beginning or from where it was interrupted."""
    exact = {name: jnp.asarray(x, float) for name, x in values.items()}
    if exact:
        path = path._replace(problem=set_parameters(path.problem, exact))
    try:
        begin = yield from _begin(path, how.begun(number))
    except SimulationError as error:
        failed = int(OrbitStatus.NO_CONVERGENCE), str(error)
        whole = how.kept(number, Part(how.rows_of([]), [], {}, failed))
    else:
        whole = yield from followed(begin, path.limits, how, number)
    how.watch(number, 1.0, len(whole.rows))
    return whole


def _begin(path: PathProblem, before: Part | None) -> Computation[tuple[Kernel, PathPoint, float]]:
    """The equations, the point at which a path begins or goes on, and the next step."""
    if before is None:
        return *(yield from first_point(path)), FIRST
    there = path.at(path.limits[0])
    shooting = path.equations(there, there, None)[0]
    return (yield from resumed(shooting, path.problem, before.state))
