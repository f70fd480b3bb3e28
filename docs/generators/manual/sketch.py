"""Sketch of a system: a block for each degree of freedom, and elements between them.

Blocks stand side by side, moving supports among them. Each element has its own lane from one block
to another, or to a piece of the ground next to its block; lanes that pass a block go behind it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from generators.manual import symbols
from jfric.system.direction import Direction
from jfric.system.elements import SECTIONS
from jfric.system.forces import force_sections
from jfric.system.naming import parameters, path_dimension

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from jfric.system.problem import Problem

#: Largest number of degrees of freedom that are drawn as blocks.
LARGEST = 6
#: Width of a block and of the room between two blocks, and height of a lane.
BLOCK, ROOM, LANE = 0.9, 2.2, 0.72
#: Inches of a unit.
SCALE = 0.95
_BLOCK_FACE, _SUPPORT = "#9ecae1", "#d9d9d9"


@dataclass(frozen=True)
class _Part:
    """An element and the columns that it joins; it may end at a piece of the ground to their left
    (``ground`` -1) or to their right (1)."""

    section: str
    text: str
    columns: tuple[int, ...]
    ground: int = 0
    #: Whether the element pushes the blocks at its ends apart (1), or together (-1).
    pushes: int = 0

    @property
    def columns_in_order(self) -> list[int]:
        """Columns from left to right."""
        return sorted(self.columns)

    @property
    def rooms(self) -> range:
        """Rooms between columns of the element; room ``i`` is to the left of column ``i``."""
        low, high = min(self.columns), max(self.columns)
        return range(low + (self.ground >= 0), high + 1 + (self.ground > 0))


def can_be_sketched(problem: Problem) -> bool:
    """Whether a sketch is useful: few degrees of freedom, and elements along them."""
    return 0 < len(problem.dofs) <= LARGEST and not problem.section("body")


def plot_system(problem: Problem, title: str = "") -> Figure:
    """Sketch of the elements of ``problem`` under a ``title``."""
    from matplotlib.figure import Figure

    problem = problem.resolved()
    columns = [*problem.elements.get("base", {}), *problem.dofs]
    parts = _parts(problem, columns)
    lanes = _lanes(parts)
    depth = max([*lanes, 0]) + 1
    rooms = {room for part in parts for room in part.rooms}
    left = 0.0 if 0 in rooms else ROOM - 0.2
    right = _left(len(columns)) if len(columns) in rooms else _left(len(columns)) - ROOM + 0.2
    width = right - left
    top, bottom = 0.35 + 0.5 * bool(title), -depth * LANE - 0.15
    figure = Figure(figsize=(SCALE * width, SCALE * (top - bottom)))
    axis = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axis.set_axis_off()
    axis.set_xlim(left, right)
    axis.set_ylim(bottom, top)
    if title:
        axis.text(left + 0.1, top - 0.1, title, fontsize=11, fontweight="bold", va="top")
    for part, lane in zip(parts, lanes, strict=True):
        _draw(axis, part, -(lane + 0.5) * LANE)
    for column, name in enumerate(columns):
        mine = [lane for part, lane in zip(parts, lanes, strict=True) if column in part.columns]
        _block(axis, problem, column, name, mine or [0])
    return figure


def _left(column: int) -> float:
    return ROOM + column * (BLOCK + ROOM)


def _parts(problem: Problem, columns: list[str]) -> list[_Part]:
    dofs = tuple(range(len(columns) - len(problem.dofs), len(columns)))
    found: list[_Part] = []
    motors = problem.labelled("motor")
    inside = {name for k, x in motors.items() for group in x.parts(k).values() for name in group}

    def drawn(section: str) -> list[tuple[str, Any]]:
        # A motor has a symbol of its own in place of its parts.
        return [(k, x) for k, x in problem.labelled(section).items() if k not in inside]

    def add(
        section: str, text: str, joined: tuple[int, ...], ground: int = -1, pushes: int = 0
    ) -> None:
        if joined:
            found.append(_Part(section, text, joined, ground, pushes))

    def along(
        section: str, text: str, direction: Direction, ground: int = -1, pushes: int = 0
    ) -> None:
        # An element that depends on a difference alone does not end at the ground.
        add(section, text, at(direction), 0 if _is_relative(direction, columns) else ground, pushes)

    def at(direction: Any) -> tuple[int, ...]:
        return tuple(columns.index(x) for x in direction.names if x in columns)

    def one_sided(section: str, label: str, direction: Direction, pushes: float) -> None:
        # An element that pushes forwards stands to the left; between two blocks it pushes them
        # apart.
        last = max(at(direction), default=0)
        relative = _is_relative(direction, columns)
        names = (columns[last],) if relative else tuple(columns)
        forwards = pushes * float(np.sum(np.asarray(direction.vector(names)))) > 0.0
        together = relative and not forwards
        words = _words(problem, label, section)
        along(section, words, direction, -1 if forwards else 1, -1 if together else 1)

    for section in force_sections():
        for label, element in drawn(section):
            if section == "stop":
                one_sided(section, label, element.direction, -1.0)
            else:
                along(section, _words(problem, label, section), element.direction)
    for label, element in drawn("friction"):
        for direction in _directions(element):
            along("friction", _words(problem, label, "friction"), direction)
    for label, element in problem.labelled("contact").items():
        if isinstance(element.normal, Direction):
            one_sided("contact", label, element.normal, 1.0)
        else:
            words = _words(problem, label, "contact")
            add("contact", words, _named(columns, getattr(element.gap, "function", None)) or dofs)
        for direction in _directions(element, "tangent") if element.law is not None else ():
            along("friction", f"{label}: friction", direction)
    for label, joint in problem.labelled("joint").items():
        add("joint", label, _named(columns, *joint.constraint) or dofs)
    for label, velocity in problem.labelled("velocity").items():
        add("joint", label, tuple(columns.index(dof) for dof, _ in velocity.moves))
    for label in problem.labelled("lagrangian"):
        add("energy", f"{label}: energies", dofs, 0 if len(dofs) > 1 else -1)
    for letter in "MCK":
        if getattr(problem.matrices, letter) is not None:
            add("matrix", f"matrix {letter}", dofs, 0 if len(dofs) > 1 else -1)
    for label, state in problem.labelled("state").items():
        add("state", label, dofs if state.direction is None else at(state.direction))
    for label, element in motors.items():
        along("motor", _words(problem, label, "motor"), element.direction)
    for label, load in drawn("load"):
        found += [_Part("load", label, (column,), 1) for column in at(load.direction)]
    return found


def _is_relative(direction: Direction, columns: list[str]) -> bool:
    """Whether ``direction`` is a difference of columns alone."""
    names = tuple(x for x in direction.names if x in columns)
    total = float(np.sum(np.asarray(direction.vector(names))))
    return len(names) > 1 and abs(total) < 1e-12


def _named(columns: list[str], *functions: Any) -> tuple[int, ...]:
    """Numbers of the columns whose names occur in the texts of ``functions``."""
    words = {x for text in functions if isinstance(text, str) for x in re.findall(r"\w+", text)}
    return tuple(i for i, name in enumerate(columns) if name in words)


def _directions(element: Any, field: str = "direction") -> list[Direction]:
    given = element.plane if element.plane is not None else (getattr(element, field),)
    given = (*given, getattr(element, "spin", None))
    return [d for d in given if isinstance(d, Direction)]


def _words(problem: Problem, label: str, section: str) -> str:
    """The label of an element and its most important numbers."""
    known: dict[str, Any] = parameters(problem)
    words = []
    for field in getattr(SECTIONS.get(section), "shown", ()):
        path = f"{label}.{field}"
        if path not in known or np.ndim(known[path]):
            continue
        value = float(np.asarray(known[path]))
        if field in ("gap", "e") and not value:
            continue
        dimension = path_dimension(problem, path)
        unit = "" if dimension is None else dimension.unit.replace("^2", "²").replace("*", "·")
        name = {"mu": "μ", "mu_s": "μₛ"}.get(field, field)
        words.append(f"{name} = {value:.6g} {unit}".strip())
    return f"{label}: {', '.join(words)}" if words else label


def _lanes(parts: list[_Part]) -> list[int]:
    """The first lane of each part that is free in all its rooms."""
    taken: dict[int, set[int]] = {}
    lanes = []
    for part in parts:
        used = set().union(*(taken.get(room, set()) for room in part.rooms))
        lane = next(i for i in range(len(used) + 1) if i not in used)
        for room in part.rooms:
            taken.setdefault(room, set()).add(lane)
        lanes.append(lane)
    return lanes


def _draw(axis: Axes, part: _Part, y: float) -> None:
    """Draw one element in its lane: its symbol in the last room, a line through the other rooms."""
    low, high = min(part.columns), max(part.columns)
    if part.section == "load":
        left = _left(low) + BLOCK
        symbols.arrow(axis, left, y, left + 0.75, y)
        axis.text(left + 0.1, y + 0.1, part.text, fontsize=7.5, va="bottom")
        return
    if part.ground > 0:
        left, right = _left(high) + BLOCK, _left(high) + BLOCK + ROOM - 0.2
        symbols.ground(axis, right, y, -1)
    elif part.ground < 0:
        left, right = _left(low) - ROOM + 0.2, _left(low)
        symbols.ground(axis, left, y, 1)
    else:
        left, right = _left(high) - ROOM, _left(high)
    turned = part.section == "stop" and part.ground > 0
    place = (right, left) if turned else (left, right)
    symbol = getattr(SECTIONS.get(part.section), "symbol", "")
    symbols.SYMBOLS.get(symbol, symbols.box)(axis, *place, y)
    ends = [(left, 1)] if part.ground >= 0 else []
    for end, side in (*ends, *([(right, -1)] if part.ground <= 0 else [])):
        near, far = end + 0.06 * side, end + 0.4 * side
        if part.pushes:
            away = part.pushes > 0
            symbols.arrow(axis, far if away else near, y - 0.12, near if away else far, y - 0.12)
    order = part.columns_in_order
    for i, following in enumerate(order[1:]):
        last = part.ground == 0 and i == len(order) - 2  # there the symbol is
        symbols.line(axis, [_left(order[i]) + BLOCK, left if last else _left(following)], [y, y])
    several = len(part.columns) + abs(part.ground) > 2
    for column in part.columns if several else ():
        axis.plot([_left(column) + 0.1], [y], "o", ms=4, color="#111111", zorder=7)
    axis.text(0.5 * (left + right), y + 0.2, part.text, fontsize=7.5, ha="center", va="bottom")


def _block(axis: Axes, problem: Problem, column: int, name: str, lanes: list[int]) -> None:
    """Draw a body, or a moving support, over its lanes."""
    from matplotlib.patches import FancyBboxPatch

    top, bottom = -min(lanes) * LANE - 0.08, -(max(lanes) + 1) * LANE + 0.08
    support = name in problem.bases
    turns = problem.dofs.get(name) == "rotation"
    shape = "round,pad=0,rounding_size=0.28" if turns else "square,pad=0"
    x = _left(column)
    patch = FancyBboxPatch(
        (x, bottom),
        BLOCK,
        top - bottom,
        boxstyle=shape,
        fc=_SUPPORT if support else _BLOCK_FACE,
        ec=symbols.INK,
        lw=1.2,
        hatch="////" if support else None,
        zorder=5,
    )
    axis.add_patch(patch)
    mass = "" if support else _mass(problem, name)
    box = {"fc": "white" if support else _BLOCK_FACE, "ec": "none", "pad": 1.0}
    axis.text(
        x + BLOCK / 2,
        0.5 * (top + bottom),
        f"{name}\n{mass}" if mass else name,
        fontsize=8,
        ha="center",
        va="center",
        zorder=8,
        color="#111111",  # the block is light in every theme of the page
        bbox=box,
    )
    symbols.arrow(axis, x + 0.15, top + 0.14, x + BLOCK - 0.15, top + 0.14, "->")


def _mass(problem: Problem, name: str) -> str:
    own = [e for e in problem.labelled("mass").values() if e.direction.names == (name,)]
    if len(own) != 1:
        return ""
    unit = "kg·m²" if problem.dofs[name] == "rotation" else "kg"
    return f"{float(np.asarray(own[0].m)):.4g} {unit}"
