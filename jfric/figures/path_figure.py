"""Figures of paths of equilibria: displacements over the parameter, line style by contact mode."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from jfric.errors import ProblemError, nearest, require_known
from jfric.figures import style
from jfric.results.modes import Mode
from jfric.statics.branch import Branch, EquilibriumPath

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Line style and colour of each contact mode; those of Janovsky (2015), figures 4 and 5.
STYLES = {
    Mode.OPEN: ("-", "#3a7d44", "no contact"),
    Mode.STICK: ("--", "#1f4e79", "stick"),
    Mode.SLIP_POS: ("-.", "#c0504d", "slip"),
    Mode.SLIP_NEG: ("-.", "#b8860b", "slip, other direction"),
    Mode.CLOSED: ("-", "#7b4ea3", "closed"),
}


def plot_path(
    path: EquilibriumPath,
    show: Sequence[str] | None = None,
    *,
    contact: str | Sequence[str] | None = None,
    title: str = "",
) -> Figure:
    """Figure of a ``path`` of equilibria: displacements over the parameter, under a ``title``.

    ``show``: names of degrees of freedom, one panel each (by default the first ones). Solid: no
    contact; dashed: stick; dash-dotted: slip, of the ``contact`` (one for all panels or one for
    each; by default the first). Dots: folds and changes of mode of that contact. Raises
    :class:`jfric.ProblemError` for unknown names. Equilibria over a load::

        >>> path = jfric.trace(problem, "load.F", 0.0, 500.0, seeds=1)
        >>> figure = jfric.plot_path(path)
        >>> figure.axes[-1].get_xlabel(), figure.axes[-1].get_ylabel()
        ('load.F', 'u [m]')
    """
    names = list(path.axes[: style.MOST_PANELS] if show is None else show)
    for name in names:
        require_known("show", "degree of freedom", name, path.axes)
    contacts = [contact] * len(names) if contact is None or isinstance(contact, str) else contact
    rows = [_contact_row(path, c) for c in contacts]
    figure, axes = style.panel_grid(len(names), 4.4, 3.1, 0.7)
    used: set[Mode] = set()
    for axis, name, row in zip(axes, names, rows, strict=False):
        column = path.axes.index(name)
        for branch in path.branches:
            used |= _draw(axis, branch, column, row, path)
        style.style_axes(axis, path.name, f"{name} [m]")
        if row is not None and len(path.names) > 1:
            axis.set_title(path.names[row], fontsize=9, loc="left")
    kept = [look for mode, look in STYLES.items() if mode in used]
    handles = [style.key(label, ls=dash, color=ink, lw=1.6) for dash, ink, label in kept]
    style.legend_below(figure, handles)
    return style.titled(figure, title)


def _contact_row(path: EquilibriumPath, contact: str | None) -> int | None:
    if not path.names:
        return None
    if contact is None:
        return 0
    matches = [i for i, n in enumerate(path.names) if contact in (n, *n.split("."))]
    if len(matches) != 1:
        found = f"no contact {contact!r}{nearest(contact, path.names)}"
        raise ProblemError(f"contact: {found}; there are {', '.join(path.names)}")
    return matches[0]


def _draw(axis: Axes, branch: Branch, column: int, row: int | None, path) -> set[Mode]:
    used = set()
    for part, mode in _parts(branch, row):
        dash, colour, _ = STYLES[mode]
        used.add(mode)
        over = branch.parameter[part], branch.q[part, column]
        axis.plot(*over, dash, color=colour, lw=1.6, zorder=3)
    for point in branch.special:
        own = row is not None and path.names[row] in point.contacts
        if point.kind != "end" and (own or point.kind == "fold"):
            axis.plot(point.parameter, point.q[column], "o", color="#222222", ms=3.5, zorder=4)
    return used


def _parts(branch: Branch, row: int | None):
    """Parts of the branch in which one contact keeps its mode, so that their lines are unbroken."""
    found: list[tuple[slice, Mode]] = []
    for part in branch.segments():
        mode = Mode.OPEN if row is None else Mode(int(branch.mode[part.start, row]))
        if found and found[-1][1] == mode:
            found[-1] = (slice(found[-1][0].start, part.stop), mode)
        else:
            found.append((part, mode))
    return found
