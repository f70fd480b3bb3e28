"""Figure of a comparison of laws."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from jfric.figures.style import style_axes
from jfric.fits.comparison.verdict import Criterion

if TYPE_CHECKING:
    from jfric.fits.comparison.result import LawComparison

FOLD, MEAN, CHOSEN = "#9a9a9a", "#1f4e79", "#3a7d44"
#: Ratio to the best error at which a larger error is drawn at the edge.
EDGE = 4.0


def plot_comparison(compared: LawComparison) -> Figure:
    """Errors of all laws on held-out data, one panel for each criterion.

    Grey: single folds; dark: mean and the standard error of its difference from the best law; the
    laws within one standard error are filled green, and the name of the recommended law is bold.
    """
    count = len(compared.criteria)
    made = Figure(
        figsize=(2.2 + 2.6 * count, 1.6 + 0.34 * len(compared.laws)), layout="constrained"
    )
    axes = made.subplots(1, count, sharey=True, squeeze=False)[0]
    place = np.arange(len(compared.laws))
    for axis, c in zip(axes, compared.criteria, strict=True):
        style_axes(axis)
        d = c.differences
        factor, unit = _unit(c)
        edge = EDGE * float(np.nanmin(np.where(np.isfinite(d.mean), d.mean, np.nan)))
        for i in place:
            folds = d.scores[i][np.isfinite(d.scores[i])]
            axis.plot(
                factor * np.minimum(folds, edge), np.full(folds.size, i), "|", color=FOLD, ms=9
            )
            if not np.isfinite(d.mean[i]) or d.mean[i] > edge:
                said = "failed" if not np.isfinite(d.mean[i]) else f"{factor * d.mean[i]:.3g} →"
                axis.text(factor * edge, i, said, ha="right", va="center", fontsize=7, color=MEAN)
                continue
            axis.errorbar(
                factor * d.mean[i], i, xerr=factor * d.standard_error[i], fmt="o", ms=5,
                color=MEAN, mfc=CHOSEN if d.within[i] else "white",
                mec=CHOSEN if d.within[i] else MEAN, capsize=2,
            )  # fmt: skip
        axis.set_xlabel(f"error [{unit}]")
        axis.set_title(c.name + (" (fitted)" if c.fitted else ""), fontsize=10)
        axis.set_xlim(left=0.0)
    axes[0].set_yticks(place, [law.name for law in compared.laws])
    axes[0].invert_yaxis()
    for law, label in zip(compared.laws, axes[0].get_yticklabels(), strict=True):
        if law.name == compared.recommended:
            label.set_fontweight("bold")
    return made


def _unit(c: Criterion) -> tuple[float, str]:
    """Factor and unit of errors: positions in thousandths, forces relative to measured forces."""
    if c.unit in ("m", "rad"):
        return 1e3, f"m{c.unit}"
    return 100.0 / c.size, "%"
