"""Figure of a comparison of laws."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from jfric.figures.style import style_axes

FOLD, MEAN, CHOSEN = "#9a9a9a", "#1f4e79", "#3a7d44"
#: Ratio to the best error at which a larger error is drawn at the edge.
EDGE = 4.0


def plot_comparison(compared: Mapping[str, Any]) -> Figure:
    """Errors of all laws on what was left out, one panel for each criterion; ``compared``: as
    :meth:`LawComparison.to_dict` has it.

    Grey: single folds; dark: mean and the standard error of its difference from the best law; the
    laws within one standard error are filled green, and the name of the recommended law is bold.
    """
    count, laws = len(compared["criteria"]), list(compared["laws"])
    made = Figure(figsize=(2.2 + 2.6 * count, 1.6 + 0.34 * len(laws)), layout="constrained")
    axes = made.subplots(1, count, sharey=True, squeeze=False)[0]
    place = np.arange(len(laws))
    for axis, (name, c) in zip(axes, compared["criteria"].items(), strict=True):
        style_axes(axis)
        factor, unit = _unit(c)
        means = np.array([float(c["laws"][law]["mean"]) for law in laws])
        edge = EDGE * float(np.nanmin(np.where(np.isfinite(means), means, np.nan)))
        for i, law in enumerate(laws):
            own, mean = c["laws"][law], means[i]
            folds = np.asarray(own["scores"], float)
            folds = folds[np.isfinite(folds)]
            axis.plot(
                factor * np.minimum(folds, edge), np.full(folds.size, i), "|", color=FOLD, ms=9
            )
            if not np.isfinite(mean) or mean > edge:
                said = "failed" if not np.isfinite(mean) else f"{factor * mean:.3g} →"
                axis.text(factor * edge, i, said, ha="right", va="center", fontsize=7, color=MEAN)
                continue
            axis.errorbar(
                factor * mean, i, xerr=factor * float(own["standard_error"]), fmt="o", ms=5,
                color=MEAN, mfc=CHOSEN if own["within"] else "white",
                mec=CHOSEN if own["within"] else MEAN, capsize=2,
            )  # fmt: skip
        axis.set_xlabel(f"error [{unit}]")
        axis.set_title(name + (" (fitted)" if c["fitted"] else ""), fontsize=10)
        axis.set_xlim(left=0.0)
    axes[0].set_yticks(place, laws)
    axes[0].invert_yaxis()
    for law, label in zip(laws, axes[0].get_yticklabels(), strict=True):
        if law == compared["recommended"]:
            label.set_fontweight("bold")
    return made


def _unit(c: Mapping[str, Any]) -> tuple[float, str]:
    """Factor and unit of errors: positions in thousandths, forces as parts of measured forces."""
    if c["unit"] in ("m", "rad"):
        return 1e3, f"m{c['unit']}"
    return 100.0 / float(c["size"]), "%"
