"""The moving mechanism of a page: the scene of an animation as shapes that a script draws."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jfric.figures.curves import Phase
from jfric.figures.mechanism_figure import GREY, MARKS, body_colour, ground, picture_times, view_of
from jfric.figures.mechanism_scene import Scene, posed
from jfric.figures.view.page import data, text
from jfric.system.problem import Problem

#: Pictures a second, and places along the longer side of the view that are told apart.
FPS, FINE = 50, 20_000


def mechanism(
    problem: Problem,
    curves: Sequence[tuple[np.ndarray, np.ndarray]],
    spans: dict[str, list[Phase]],
) -> list[str]:
    """HTML of the bodies of a problem in motion; arguments as :func:`posed` has them."""
    start, end = (f(times[k] for times, _ in curves) for f, k in ((max, 0), (min, -1)))
    drawn = posed(problem, picture_times(start, end, FPS), curves, spans)
    found = {mode for mark in drawn.marks for mode in mark.modes}
    keys = [("■", body_colour(i), name) for i, name in enumerate(drawn.bodies)]
    keys += [("○" if m == "open" else "●", _mark(m)[0], m) for m in MARKS if m in found]
    legend = " ".join(
        f'<span style="color: {ink}">{sign}</span> {text(name)} ' for sign, ink, name in keys
    )
    return [
        "<h2>Mechanism</h2>",
        "<div class=controls id=playing></div>",
        f"<div class=plot><canvas id=mechanism></canvas><div>{legend}</div></div>",
        data("scene", _shapes(drawn)),
    ]


def _mark(mode: str) -> tuple[str, str]:
    """Colours of the edge and the inside of a touching point."""
    inside = MARKS.get(mode, "#222222")
    return ("#888888" if mode == "open" else inside), inside


def _shapes(drawn: Scene) -> dict[str, Any]:
    """Shapes in the order in which they are drawn, at places in parts of the view."""
    view = view_of(drawn)
    size = float(np.max(np.ptp(view, axis=0)))
    shapes: list[dict[str, Any]] = []

    def add(kind: str, at: Any, ink: str, **more: Any) -> None:
        """``at``: points (f, k, 2) over time, or (k, 2) of what stands still."""
        places = np.nan_to_num((np.asarray(at, float) - view[0]) / size * FINE)
        rows = places.reshape(len(places) if places.ndim == 3 else 1, -1).round().astype(int)
        shapes.append({"kind": kind, "at": rows.tolist(), "ink": ink, **more})

    for start, along in drawn.lines:
        add("strokes", ground(start, along, view).reshape(-1, 2), GREY)
    for start, along in drawn.guides:
        add("strokes", [start - 4 * size * along, start + 4 * size * along], GREY, dashed=True)
    for circle in drawn.circles:
        more = {"radius": circle.radius / size * FINE, "hollow": circle.hollow}
        if circle.body >= 0:
            more["angle"] = circle.angle.round(4).tolist()
        add("circle", circle.centre[:, None], body_colour(circle.body), **more)
    for outline in drawn.outlines:
        add("polygon", outline.corners, body_colour(outline.body))
    for ends in drawn.springs:
        add("spring", np.stack(ends, axis=1), GREY)
    for at, grounded in drawn.pins:
        add("pin", at[:, None], GREY, grounded=grounded)
    for mark in drawn.marks:
        add("mark", mark.place[:, None], "", colours=[_mark(mode) for mode in mark.modes])
    width, height = (np.ptp(view, axis=0) / size * FINE).tolist()
    return {
        "times": drawn.times.tolist(),
        "width": width,
        "height": height,
        "shapes": shapes,
        "fps": FPS,
    }
