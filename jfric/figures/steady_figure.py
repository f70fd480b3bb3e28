"""Figures of steady states: paths of orbits and responses, solid lines if stable, dashed lines if
not; eigenvalues of steady sliding; basins of attraction."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jfric.errors import ProblemError
from jfric.figures import style
from jfric.periodic.basins import FAILED, UNRECOGNISED, Basins
from jfric.periodic.cycle_quantities import CycleQuantity, parse_cycle_quantities
from jfric.periodic.path import OrbitKind, OrbitPath
from jfric.periodic.response_result import FrequencyResponse
from jfric.periodic.steady_sliding import NEUTRAL
from jfric.results.grammar import as_observables
from jfric.sweeps.design import NUMBER_AXIS
from jfric.system.naming import path_dimension

if TYPE_CHECKING:
    from collections.abc import Set

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    from jfric.periodic.flutter import FlutterPath

#: Marker, colour and label of each kind of special point.
MARKERS: dict[OrbitKind, tuple[str, str, str]] = {
    "fold": ("s", "#c0504d", "fold"),
    "flip": ("^", "#7b4ea3", "flip"),
    "torus": ("v", "#b8860b", "torus"),
    "branch point": ("X", "#3a7d44", "branch point"),
    "hopf": ("D", "#1f6f8b", "hopf (equilibrium)"),
    "event change": ("o", "#222222", "event change"),
    "dead end": ("x", "#222222", "dead end"),
}
#: How a figure is asked for other curves.
HOW = "jfric.plot_response(..., curves=[...])"
#: Pieces of a line between neighbouring points.
FINER = 8
#: Colours of failed runs and of motions without an attractor; lighter colours for basins, on which
#: the dots of their attractors are visible.
FAILED_COLOUR, NONE_COLOUR = "#c00000", "#222222"
LIGHT = 0.45
#: Number of attractors with an entry of their own in the legend.
MOST_LISTED = 12
MAX_SCATTERED = 20_000


def plot_orbits(
    path: OrbitPath, show: str | Sequence[str] | None = None, *, title: str = ""
) -> Figure:
    """Figure of a ``path`` of periodic motions over its parameter, under a ``title``.

    ``show``: observables over a period (``"max.x, rms.v.x"``), one panel each; by default the
    largest positions. Solid lines: stable motions; dashed: unstable ones; special points are marked
    (see :class:`jfric.OrbitPoint`). Raises :class:`jfric.ProblemError` for an unknown observable.
    After the example of :func:`jfric.continue_orbit`::

        >>> figure = jfric.plot_orbits(path)
        >>> figure.axes[0].get_xlabel(), figure.axes[0].get_ylabel()
        ('friction.mu', 'max.x [m]')
    """
    chosen = [f"max.{axis}" for axis in path.axes[: style.MOST_PANELS]] if show is None else show
    values = path.observe(chosen)
    style.require_panels(len(values), "observables")
    problem = path.orbits.problem
    dimension = path_dimension(problem, path.name)
    over = style.with_unit(path.name, dimension.unit if dimension else "")
    units = [observable.unit for observable in as_observables(problem, chosen)]
    figure, axes = style.panel_grid(len(values), 4.8, 3.3, 0.8)
    for axis, unit, (name, value) in zip(axes, units, values.items(), strict=False):
        for part, dash in stretches(path.stable):
            over_part = path.parameter[part], value[part]
            axis.plot(*over_part, dash, color="#1f4e79", lw=1.6, zorder=3)
        for point in path.special:
            _mark(axis, point.kind, (point.parameter, float(value[point.row])), 4.5)
        style.style_axes(axis, over, style.with_unit(name, unit))
    style.legend_below(
        figure, stability_handles(path.stable, {point.kind for point in path.special})
    )
    return style.titled(figure, title)


def stretches(stable: np.ndarray) -> list[tuple[slice, str]]:
    """Stretches of one stability, each beginning where the one before ends, and their lines."""
    cuts = [0, *(np.flatnonzero(stable[1:] != stable[:-1]) + 1).tolist(), len(stable)]
    return [
        (slice(max(a - 1, 0), b), "-" if stable[b - 1] else "--")
        for a, b in itertools.pairwise(cuts)
        if b > a
    ]


def _mark(axis: Axes, kind: OrbitKind, place: tuple[float, float], size: float) -> None:
    """Mark a special point, if points of its kind have a marker."""
    if kind in MARKERS:
        marker, colour, _ = MARKERS[kind]
        axis.plot(*place, marker, color=colour, ms=size, zorder=4)


def stability_handles(
    stable: np.ndarray, kinds: Set[OrbitKind], colour: str = "#1f4e79", width: float = 1.6
) -> list[Line2D]:
    """Entries of a legend: kinds of lines and of special points that a figure has."""
    lines = [("-", "stable", stable.any()), ("--", "unstable", not stable.all())]
    handles = [
        style.key(label, ls=dash, color=colour, lw=width) for dash, label, used in lines if used
    ]
    return handles + [
        style.key(label, ls="", marker=marker, color=marked, ms=4.5)
        for kind, (marker, marked, label) in MARKERS.items()
        if kind in kinds
    ]


def plot_response(
    response: FrequencyResponse,
    show: str | Sequence[str] | None = None,
    *,
    curves: Sequence[int] | None = None,
    phase: bool = True,
    title: str = "",
) -> Figure:
    """Figure of a frequency ``response`` under a ``title``.

    ``show``: quantities (``"x, rms.v.x"``), one column of panels each; by default the amplitude of
    the first degree of freedom. Below an amplitude or a harmonic stands its ``phase`` relative to
    the load. Solid lines: stable motions; dashed: unstable ones; special points are marked (see
    :class:`jfric.OrbitPoint`). Families have one colour for each curve, and at most
    eight curves: spread over the family, or those with the numbers ``curves``, from 0. Raises
    :class:`jfric.ProblemError` for an unknown quantity or number. After the example of
    :func:`jfric.frequency_response`::

        >>> [axes.get_ylabel() for axes in jfric.plot_response(response, "x").axes]
        ['amplitude of x [m]', 'phase of x [deg]']
    """
    chosen = parse_cycle_quantities(response.problem, [response.axes[0]] if show is None else show)
    style.require_panels(len(chosen), "quantities")
    drawn = _drawn(len(response.curves), curves)
    below = [_phase_of(response, q) if phase else None for q in chosen]
    lines = 2 if any(below) else 1
    figure = style.new_figure(max(5.6 * len(chosen), 6.4), 4.4 if lines == 1 else 6.2)
    ratios = (2.0, 1.0)[:lines]
    axes = figure.subplots(lines, len(chosen), squeeze=False, sharex=True, height_ratios=ratios)
    for column, (upper, lower) in enumerate(zip(chosen, below, strict=True)):
        _panel(axes[0, column], response, upper, drawn)
        bottom: Axes = axes[0, column]
        if lines == 2:
            if lower is None:
                axes[1, column].set_visible(False)
                axes[0, column].tick_params(labelbottom=True)
            else:
                bottom = axes[1, column]
                _panel(bottom, response, lower, drawn)
        style.label_axes(bottom, "frequency of the load [rad/s]")
        if curves is None:
            style.only_some(axes[0, column], len(response.curves), HOW)
    _response_legend(figure, response, drawn)
    return style.titled(figure, title)


def _drawn(count: int, chosen: Sequence[int] | None) -> list[int]:
    """Numbers of the curves that are drawn."""
    if chosen is None:
        return np.unique(
            np.linspace(0, count - 1, min(count, style.MOST_CURVES)).astype(int)
        ).tolist()
    if len(chosen) > style.MOST_CURVES or not all(0 <= i < count for i in chosen):
        raise ProblemError(
            f"curves: found {list(chosen)}, give at most {style.MOST_CURVES} numbers below {count}"
        )
    return list(chosen)


def _phase_of(response: FrequencyResponse, q: CycleQuantity) -> CycleQuantity | None:
    if q.form not in ("amplitude", "harmonic"):
        return None
    order = "" if q.order is None else f"({q.order})"
    return parse_cycle_quantities(response.problem, [f"phase.{q.signal}{order}"])[0]


def _panel(axis: Axes, response: FrequencyResponse, q: CycleQuantity, drawn: Sequence[int]) -> None:
    for number, i in enumerate(drawn):
        curve = response.curves[i]
        if not len(curve):
            continue
        value = response.of_curve(i, [q])[:, 0]
        if q.form == "phase":
            known = np.unwrap(value)
            value = np.degrees(known - (2.0 * np.pi if known[0] > np.radians(1.0) else 0.0))
        for part, dash in stretches(curve.stable):
            x, y = rounded(curve.parameter[part], value[part])
            axis.plot(x, y, dash, color=style.colour(number), lw=1.5, zorder=3)
        for point in curve.special:
            place = _place(curve.parameter, value, point.row, point.parameter)
            _mark(axis, point.kind, place, 4.0)
    if q.form == "phase":
        from matplotlib.ticker import MultipleLocator

        axis.yaxis.set_major_locator(MultipleLocator(45.0))
    elif q.form in ("amplitude", "harmonic"):
        axis.set_ylim(bottom=0.0)
    style.style_axes(axis, y=_label(q))


def rounded(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A smooth line through points that lie far apart where the curve is nearly straight; the line
    is monotone between neighbours and so adds no peak."""
    from scipy.interpolate import PchipInterpolator

    steps = np.hypot(np.diff(x) / (np.ptp(x) or 1.0), np.diff(y) / (np.ptp(y) or 1.0))
    apart = np.append(True, steps > 0.0)
    x, y, along = x[apart], y[apart], np.append(0.0, np.cumsum(steps))[apart]
    if len(x) < 3:
        return x, y
    parts = np.arange(FINER * (len(x) - 1) + 1) / FINER
    places = np.interp(parts, np.arange(len(x)), along)
    both = PchipInterpolator(along, np.stack([x, y], axis=1))(places)
    return both[:, 0], both[:, 1]


def _place(parameter: np.ndarray, value: np.ndarray, row: int, there: float):
    """The place of a special point between its neighbouring rows, by frequency if possible."""
    last = min(row + 1, len(parameter) - 1)
    low, high = parameter[row], parameter[last]
    part = 0.5 if high == low else (there - low) / (high - low)
    part = float(np.clip(part, 0.0, 1.0))
    return there, value[row] + part * (value[last] - value[row])


def _label(q: CycleQuantity) -> str:
    if q.form == "phase":
        return f"phase of {q.signal} [deg]"
    name = f"amplitude of {q.signal}" if q.form == "amplitude" else q.text
    return f"{name} [{q.unit}]" if q.unit else name


def _response_legend(figure: Figure, response: FrequencyResponse, drawn: Sequence[int]) -> None:
    stable = np.concatenate([c.stable for c in response.curves])
    many = len(response.curves) > 1
    plain = "#444444" if many else style.LINES[0]
    kinds = {point.kind for _, point in response.special}
    style.legend_below(figure, stability_handles(stable, kinds, plain, 1.5), 5)
    if not many:
        return
    curves = [
        style.key(response.label(i), color=style.colour(number), lw=1.5)
        for number, i in enumerate(drawn)
    ]
    figure.axes[0].legend(handles=curves, loc="best", frameon=False, fontsize=8)


def plot_flutter(path: FlutterPath, *, title: str = "") -> Figure:
    """Figure of frequencies (above) and growth rates (below) over a parameter, under a ``title``.

    ``path``: a result of :func:`jfric.flutter`. Each colour follows one mode; dots are where small
    motions grow, dashed lines where stability changes. After the example of :func:`jfric.flutter`::

        >>> figure = jfric.plot_flutter(found)
        >>> [axis.get_ylabel() for axis in figure.axes]
        ['frequency [rad/s]', 'growth rate [1/s]']
    """
    figure = style.new_figure(7.0, 6.0)
    above, below = figure.subplots(2, 1, sharex=True)
    rates, frequencies = np.real(path.eigenvalues), np.imag(path.eigenvalues)
    grows = rates > NEUTRAL * np.nanmax(np.abs(path.eigenvalues))
    for k in range(path.eigenvalues.shape[1]):
        for axis, values in ((above, frequencies), (below, rates)):
            axis.plot(path.parameter, values[:, k], color=style.colour(k), lw=1.6)
            dots = np.where(grows[:, k], values[:, k], np.nan)
            axis.plot(path.parameter, dots, "o", color=style.colour(k), ms=2.5)
    for axis in (above, below):
        for onset in path.onsets:
            axis.axvline(onset.parameter, color="#555555", lw=0.9, ls="--")
        style.style_axes(axis)
    for onset in path.onsets:
        above.annotate(
            f" {onset.parameter:.6g}",
            (onset.parameter, 1.0),
            xycoords=("data", "axes fraction"),
            fontsize=8,
            va="top",
        )
    below.axhline(0.0, color="#000000", lw=0.6)
    style.label_axes(above, y="frequency [rad/s]")
    style.label_axes(below, x=path.name, y="growth rate [1/s]")
    return style.titled(figure, title)


def plot_basins(basins: Basins, *, title: str = "") -> Figure:
    """Figure of ``basins`` over two parameters: a colour for each attractor, shares in the legend.

    Dots are the attractors, where the axes are positions or velocities of the start. Black: not
    recognised; red: failed, or a start inside a contact. Samples: one dot each. ``title``: above
    the figure. The figure belongs to no window; save it with ``figure.savefig(path)``. Raises
    :class:`jfric.ProblemError` unless the basins have two parameters.
    After the example of :func:`jfric.basins`, over two parameters::

        >>> starts = {"initial.x.q": [-1.5, -0.5, 0.5, 1.5], "initial.x.v": [0.0, 0.1]}
        >>> found = jfric.basins(magnets, starts, section=1.0, progress=False)
        >>> figure = jfric.plot_basins(found)
        >>> figure.axes[0].get_xlabel(), figure.axes[0].get_ylabel()
        ('initial.x.q [m]', 'initial.x.v [m/s]')
    """
    from matplotlib.colors import ListedColormap

    names = [str(n) for n in basins.table.attrs["parameters"]]
    if len(names) != 2:
        raise ProblemError(
            f"basins: found {len(names)} parameters ({', '.join(names)}), a figure has two"
        )
    figure = style.new_figure(9.0, 5.6)
    axis = figure.subplots()
    count, drawn = len(basins.attractors), ""
    colours = [FAILED_COLOUR, NONE_COLOUR, *(_light(style.colour(i)) for i in range(count))]
    x, y = (np.asarray(basins.table[n]) for n in names)
    if basins.dims == (NUMBER_AXIS,):
        part = style.some_rows(basins.labels.size, MAX_SCATTERED)
        drawn = style.some_of(part.size, basins.labels.size, "starts ")
        chosen = [colours[label + 1] for label in basins.labels[part]]
        axis.scatter(x[part], y[part], c=chosen, s=3, lw=0, rasterized=True)
    else:
        axis.pcolormesh(
            x,
            y,
            basins.labels.T + 1,
            cmap=ListedColormap(colours),
            vmin=-0.5,
            vmax=len(colours) - 0.5,
            shading="nearest",
            rasterized=True,
        )
    _mark_attractors(axis, basins, names, (x.min(), x.max(), y.min(), y.max()))
    handles = _shares(basins, colours[2:])
    figure.legend(handles=handles, loc="outside right upper", frameon=False, fontsize=9)
    units = (str(basins.table[name].attrs.get("units", "")) for name in names)
    style.style_axes(axis, *map(style.with_unit, names, units), grid=False)
    return style.titled(figure, ", ".join(text for text in (title, drawn) if text), 11.0)


def _shares(basins: Basins, colours: list) -> list[Patch]:
    """Entries of the legend: attractors in their ``colours``, other labels, and all shares."""
    from matplotlib.patches import Patch

    handles = [
        Patch(color=colours[i], label=f"{i + 1}: period {a.period}, {a.share:.1%}")
        for i, a in enumerate(basins.attractors[:MOST_LISTED])
    ]
    others = basins.attractors[MOST_LISTED:]
    if others:
        rest = sum(a.share for a in others)
        handles.append(Patch(color="#ffffff", label=f"{len(others)} more: {rest:.1%}"))
    for label, own, words in (
        (UNRECOGNISED, NONE_COLOUR, "not recognised"),
        (FAILED, FAILED_COLOUR, "failed, or no start"),
    ):
        if np.any(basins.labels == label):
            handles.append(Patch(color=own, label=f"{words}: {basins.share(label)[0]:.1%}"))
    return handles


def _light(dark: str) -> tuple[float, ...]:
    from matplotlib.colors import to_rgb

    return tuple(1.0 - (1.0 - LIGHT) * (1.0 - c) for c in to_rgb(dark))


def _mark_attractors(axis: Any, basins: Basins, names: list[str], box: tuple[float, ...]) -> None:
    """Draw the points of the attractors if the axes are a position and its velocity."""
    states = {f"initial.{dof}.{x}": (x, i) for i, dof in enumerate(basins.axes) for x in "qv"}
    if any(name not in states for name in names):
        return
    (along, i), (across, j) = (states[name] for name in names)
    for number, attractor in enumerate(basins.attractors[:MOST_LISTED]):
        point = float(getattr(attractor, along)[i]), float(getattr(attractor, across)[j])
        if box[0] <= point[0] <= box[1] and box[2] <= point[1] <= box[3]:
            axis.plot(*point, "o", color=style.colour(number), mec="#ffffff", ms=8, zorder=3)
