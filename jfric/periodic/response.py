"""``frequency_response``: steady states over the frequency of a load, and families of them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import ArrayLike

from jfric.errors import ProblemError, SimulationError, nearest, require_no_text
from jfric.numerics.limits import require_count, require_part
from jfric.periodic.continuation import MOST, followed, resumed, rows_of
from jfric.periodic.cycle_quantities import Drive
from jfric.periodic.follower import FIRST, LONGEST
from jfric.periodic.forcing import harmonics_in
from jfric.periodic.orbit import OrbitStatus
from jfric.periodic.path import OrbitPoint, ResponseCurve
from jfric.periodic.path_kernel import Computation, Kernel, PathPoint, alone, side_by_side
from jfric.periodic.path_start import PathProblem, first_point
from jfric.periodic.path_store import Part, Rows, Store, fingerprint
from jfric.periodic.response_result import FrequencyResponse
from jfric.periodic.state_vector import axes_of
from jfric.statics.path_names import checked_path
from jfric.system.expression import Expression
from jfric.system.functions import Harmonic
from jfric.system.model import build
from jfric.system.naming import function_paths, get_parameter, set_parameters
from jfric.system.problem import Problem
from jfric.system.validation import validate

#: Most curves of a family.
CURVES = 10_000
#: Number of curves that are followed side by side.
TOGETHER = 16

#: Called for each row with the number of the curve, the covered part of the interval, and its rows.
Watch = Callable[[int, float, int], None]


@dataclass
class _Request:
    """Problem and settings that all curves of a response share."""

    problem: Problem
    drive: Drive
    limits: tuple[float, float]
    max_step: float
    max_steps: int
    segments: int
    options: dict[str, Any]
    store: Store | None
    watch: Watch
    curves: list[dict[str, float]] = field(default_factory=list)


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
    for end in (start, stop):
        require_no_text("start, stop", end)
    start, stop = float(start), float(stop)
    if not np.isfinite([start, stop]).all() or start == stop or min(start, stop) <= 0.0:
        raise ProblemError(
            f"start, stop: found {start:g} and {stop:g} rad/s, needs two frequencies above zero "
            "that differ"
        )
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
    section, element, name = drive.place
    omega = float(harmonics_in(getattr(there.resolved().section(section)[element], name))[0].omega)
    period = float(shooting.period_of(there, 0.0))
    drive = drive._replace(order=round(abs(omega) * period / (2.0 * np.pi)))
    request = {
        "problem": fingerprint(problem),
        "load": drive.path,
        "interval": [start, stop],
        "over": {k: v.tolist() for k, v in varied.items()},
        "steps": [max_step, max_steps, segments],
        "options": repr(sorted((k, repr(v)) for k, v in options.items())),
    }
    kept = None if store is None else Store(Path(store), request, title, "response")
    settings = max_step, max_steps, segments, options, kept, watch
    asked = _Request(problem, drive, (start, stop), *settings, curves)
    return FrequencyResponse(
        problem=problem,
        drive=drive,
        limits=(start, stop),
        over=varied,
        curves=tuple(_follow_all(asked)),
        shooting=shooting,
    )


def drive_of(problem: Problem, load: str) -> Drive:
    """The load whose function of time ``load`` names, and the path of its frequency."""
    places = {
        label: place
        for label, place in function_paths(problem).items()
        if harmonics_in(getattr(problem.section(place[0])[place[1]], place[2]))
    }
    found = [p for p in places if load in (p, p.rpartition(".")[0], places[p][1], f"{p}.omega")]
    if len(found) != 1:
        known = ", ".join(places) or "none"
        how = "several" if found else "none"
        raise ProblemError(
            f"load: found {load!r}{nearest(load, places) if not found else ''}, which names {how} "
            f"of the functions with a frequency ({known})"
        )
    label = found[0]
    section, element, name = places[label]
    function = getattr(problem.section(section)[element], name)
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


def _follow_all(asked: _Request) -> list[ResponseCurve]:
    found: list[ResponseCurve | None] = []
    for number, values in enumerate(asked.curves):
        kept = None if asked.store is None else asked.store.finished(number)
        whole = None if kept is None else _curve(values, kept)
        found.append(whole)
        if whole is not None:
            asked.watch(number, 1.0, len(whole))
    left = [number for number, curve in enumerate(found) if curve is None]
    for begin in range(0, len(left), TOGETHER):
        group = left[begin : begin + TOGETHER]
        if len(asked.curves) == 1:
            done = [alone(_follow(asked, group[0]))]
        else:
            width = min(TOGETHER, len(asked.curves))
            done = side_by_side([_follow(asked, number) for number in group], width)
        for number, curve in zip(group, done, strict=True):
            found[number] = curve
    return [curve for curve in found if curve is not None]


def _curve(values: dict[str, float], whole: Part) -> ResponseCurve:
    status, said = whole.outcome
    special = tuple(whole.special)
    return ResponseCurve(values, **whole.rows.columns, special=special, status=status, outcome=said)


def _follow(asked: _Request, number: int) -> Computation[ResponseCurve]:
    """One curve, from its beginning or from where it was interrupted."""
    size = 2 * len(axes_of(asked.problem))
    values, store = asked.curves[number], asked.store
    exact = {path: jnp.asarray(x, float) for path, x in values.items()}
    problem = set_parameters(asked.problem, exact) if exact else asked.problem
    before = None if store is None else store.begun(number)

    def watch(part: float, count: int) -> None:
        asked.watch(number, part, count)

    def finished(rows: Rows, points: list[OrbitPoint], status: OrbitStatus, said: str):
        whole = Part(rows, points, {}, (int(status), said))
        if store is not None:
            store.keep(number, whole)
        watch(1.0, len(rows))
        return _curve(values, whole)

    try:
        begin = yield from _begin(asked, problem, before)
    except SimulationError as error:
        return finished(rows_of([], size), [], OrbitStatus.NO_CONVERGENCE, str(error))
    rows, points, remarks = yield from followed(
        begin,
        asked.limits,
        asked.max_step,
        asked.max_steps,
        lambda points: rows_of(points, size),
        store=store,
        number=number,
        watch=watch,
    )
    ended = points[-1].kind if points and not remarks else "left"
    stuck = "nothing was found to go on from the last row"
    said = "; ".join(remarks) or ("complete" if ended == "end" else stuck)
    return finished(rows, points, OrbitStatus.CONVERGED, said)


def _begin(
    asked: _Request, problem: Problem, before: Part | None
) -> Computation[tuple[Kernel, PathPoint, float]]:
    """The equations, the point at which a path begins or goes on, and the next step."""
    options = dict(asked.options)
    path = PathProblem(problem, asked.drive.path, asked.limits, asked.segments, options)
    if before is None:
        return *(yield from first_point(path)), FIRST
    there = path.at(asked.limits[0])
    shooting = path.equations(there, there, None)[0]
    return (yield from resumed(shooting, problem, before.state))
