"""What figures of tests show, held against what was approved once by looking at them.

Every figure that a test makes while it runs is described by what it draws: limits, labels, curves,
points, areas. ``tests/approved/figures.json`` keeps the descriptions; ``pytest --approve`` writes
those of the tests that ran, for those who have looked at the pictures. Figures of other tests are
not held against anything.
"""

from __future__ import annotations

import fcntl
import functools
import json
import math
import re
from pathlib import Path

import numpy as np

APPROVED = Path(__file__).parent / "approved" / "figures.json"
#: What numbers may differ by, relative to the largest of those beside them.
CLOSE = 2e-3
_NUMBER = re.compile(r"[-+\u2212]?\d[\d,]*\.?\d*(?:[eE][-+]?\d+)?")


def described(figure) -> dict:
    """A figure by what it draws."""
    size = [float(x) for x in figure.get_size_inches()]
    texts = [x.get_text() for x in figure.texts]
    legends = [x for own in figure.legends for x in _legend(own)]
    axes = [_axes(axis) for axis in figure.axes]
    return {"size": size, "texts": texts, "legends": legends, "axes": axes}


def _axes(axis) -> dict:
    legend = axis.get_legend()
    return {
        "limits": [*map(float, axis.get_xlim()), *map(float, axis.get_ylim())],
        "scales": [axis.get_xscale(), axis.get_yscale()],
        "labels": [axis.get_title(), axis.get_xlabel(), axis.get_ylabel()],
        "texts": [x.get_text() for x in axis.texts],
        "places": [list(map(_number, x.get_position())) for x in axis.texts],
        "legend": _legend(legend) if legend is not None else [],
        "lines": [_line(x) for x in axis.lines],
        "collections": [_collection(x) for x in axis.collections],
        "patches": [_patch(x) for x in axis.patches],
        "images": [_numbers(x.get_array()) for x in axis.images],
    }


def _legend(legend) -> list:
    colours = [_colour(x.get_facecolor()) for x in legend.get_patches()]
    return [*(x.get_text() for x in legend.get_texts()), *colours]


def _line(line) -> dict:
    style = [_colour(line.get_color()), line.get_linestyle(), str(line.get_marker())]
    x, y = (_numbers(np.asarray(values, object)) for values in line.get_data())
    return {"style": style, "width": float(line.get_linewidth()), "x": x, "y": y}


def _collection(found) -> dict:
    places = np.concatenate([np.zeros((0, 2)), *(p.vertices for p in found.get_paths())])
    offsets = np.asarray(found.get_offsets(), float).reshape(-1, 2)
    values = found.get_array()
    return {
        "kind": type(found).__name__,
        "colours": sorted({_colour(x) for x in found.get_facecolor()}),
        "paths": [*_numbers(places[:, 0]), *_numbers(places[:, 1])],
        "offsets": [*_numbers(offsets[:, 0]), *_numbers(offsets[:, 1])],
        "values": _numbers(values) if values is not None else [],
    }


def _patch(patch) -> dict:
    places = patch.get_path().transformed(patch.get_patch_transform()).vertices
    return {
        "kind": type(patch).__name__,
        "colour": _colour(patch.get_facecolor()),
        "places": [*_numbers(places[:, 0]), *_numbers(places[:, 1])],
    }


def _colour(colour) -> str:
    from matplotlib.colors import to_hex

    return to_hex(colour, keep_alpha=True)


def _number(x) -> float:
    return float(x) if isinstance(x, (int, float, np.number)) else 0.0


def _numbers(values) -> list:
    """How many there are, their first and last, extremes, mean and mean square, without gaps."""
    x = np.ma.filled(np.ma.asarray(values), np.nan).reshape(-1)
    try:
        x = x.astype(float)
    except (TypeError, ValueError):
        return [x.size, *map(str, x[:3])]
    own = x[np.isfinite(x)]
    if not own.size:
        return [x.size]
    found = own[0], own[-1], own.min(), own.max(), own.mean(), np.sqrt(np.mean(own**2))
    return [x.size, own.size, *map(float, found)]


def difference(found, approved, at: str = "figure") -> str:
    """The first difference of two descriptions, empty where there is none."""
    if isinstance(approved, dict):
        for key, value in approved.items():
            if said := difference(found.get(key), value, f"{at}.{key}"):
                return said
        return ""
    if isinstance(approved, list) and isinstance(found, list):
        if len(found) != len(approved):
            return f"{at}: {len(found)} for {len(approved)}: {found} for {approved}"
        numbers = [x for x in [*found, *approved] if isinstance(x, float)]  # no counts
        scale = max((abs(x) for x in numbers if math.isfinite(x)), default=0.0)
        for i, (x, y) in enumerate(zip(found, approved, strict=True)):
            here = f"{at}[{i}]"
            if isinstance(y, float) and isinstance(x, (int, float)):
                if abs(x - y) > CLOSE * scale:
                    return f"{here}: {x} for {y}"
            elif said := difference(x, y, here):
                return said
        return ""
    if isinstance(approved, str) and isinstance(found, str):
        return "" if _same_text(found, approved) else f"{at}: {found!r} for {approved!r}"
    if isinstance(approved, float) and isinstance(found, (int, float)):
        return "" if abs(found - approved) <= CLOSE * abs(approved) else f"{at}: {found}"
    return "" if found == approved else f"{at}: {found!r} for {approved!r}"


def _same_text(found: str, approved: str) -> bool:
    """Whether two texts are the same but for the last digits of their numbers."""
    if found == approved or found.startswith("#"):
        return found == approved
    if _NUMBER.sub("#", found) != _NUMBER.sub("#", approved):
        return False
    pairs = zip(_NUMBER.findall(found), _NUMBER.findall(approved), strict=True)
    return all(abs(_value(x) - _value(y)) <= 1e-2 * abs(_value(y)) + 1e-12 for x, y in pairs)


def _value(text: str) -> float:
    return float(text.replace(",", "").replace("\u2212", "-") or 0.0)


@functools.cache
def read(file: Path = APPROVED) -> dict[str, list]:
    """What was approved, by the names of tests."""
    return json.loads(file.read_text("utf-8")) if file.exists() else {}


def write(found: dict[str, list], file: Path = APPROVED) -> None:
    """Approve what tests showed that ran; what others did stays."""
    with open(file.with_suffix(".lock"), "w") as lock:  # tests run in several processes
        fcntl.flock(lock, fcntl.LOCK_EX)
        every = {**read.__wrapped__(file), **found}
        lines = [f"{json.dumps(k)}: {json.dumps(every[k])}" for k in sorted(every)]
        file.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")
