"""The page of a fit, and that of a comparison of laws, both from their records."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jfric.errors import ProblemError
from jfric.figures.style import new_figure, style_axes, with_unit
from jfric.figures.view import fit_panels as panels
from jfric.figures.view.fit_panels import MEASURED, NORMAL, RESIDUAL, SIMULATED
from jfric.figures.view.page import curve, data, folded, label, page, plain, system, table, text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Measured samples that are points of their own.
MOST_MARKERS = 3000
#: Colours of a comparison of laws.
FOLD, MEAN, CHOSEN = "#9a9a9a", "#1f4e79", "#3a7d44"
#: Ratio to the best error at which a larger error is drawn at the edge.
EDGE = 4.0


def read_fit(path: Path) -> dict[str, Any]:
    """The stored record of a fit; raises :class:`jfric.ProblemError` if it lacks its series."""
    found = json.loads(path.read_text("utf-8"))
    if not found.get("series"):
        raise ProblemError(
            f"{path}: holds no series, it was written by an older version; fit again"
        )
    return found


def fit_page(record: Mapping[str, Any], name: str) -> str:
    """The page of a fit; ``name``: what it is called where its system has no title."""
    series = panels.series_of(record)
    together, profiles = panels.certainty(record), panels.profiles(record)
    parts = [
        f"<p>{text(record['outcome'].replace('_', ' '))}; cost {float(record['cost']):.6g}</p>",
        *_remarks(record["remarks"]),
        f"<h2>Parameters, 95 % intervals ({text(record['method'])})</h2>",
        _parameters(record["parameters"]),
        "<h2>Records</h2>",
        _records(series),
        "<h2>Simulated and measured</h2>",
        "<div class=controls><label>record and signal <select id=choice></select></label></div>",
        "<div class=plot id=compared></div>",
        data("compared-all", [_compared(s) for s in series]),
        "<h2>Residuals</h2>",
        "<p>A trend by velocity or position is friction that the model does not have; correlation "
        "outside the grey band is not white noise.</p>",
        _side_by_side(panels.residuals(series)),
        *(["<h2>Parameters together</h2>"] if together else []),
        *(["<p>Ellipses hold 50 and 95 % of the normal approximation.</p>"] * (len(together) > 1)),
        _side_by_side(together),
        *_posterior(record),
        *(["<h2>Profiles of the cost</h2>", _side_by_side(profiles)] if profiles else []),
        *(_comparison(record["law_comparison"]) if record.get("law_comparison") else []),
        "<h2>Starts</h2>",
        panels.starts(record),
        *_to_repeat(record, [["seed", record.get("seed", "")], *record.get("options", {}).items()]),
    ]
    return page(_title(record, name), _about(record, name), parts, ["plots.js", "fit.js"])


def comparison_page(record: Mapping[str, Any], name: str) -> str:
    """The page of a comparison of laws; ``name`` as in :func:`fit_page`."""
    parts = [*_comparison(record), *_to_repeat(record, [])]
    title = f"{_title(record, name)}: laws of friction compared"
    return page(title, _about(record, name), parts)


def _title(record: Mapping[str, Any], name: str) -> str:
    return str(record.get("title") or name)


def _about(record: Mapping[str, Any], name: str) -> str:
    return ": ".join(filter(None, [name, record.get("source", "")]))


def _remarks(said: Sequence[str]) -> list[str]:
    return [f"<p class=remark>{text(remark)}</p>" for remark in said]


def _side_by_side(plots: Sequence[str]) -> str:
    return f"<div class=panels>{''.join(f'<div>{plot}</div>' for plot in plots)}</div>"


def _interval(pair: Sequence[Any] | None) -> str:
    return "{:.6g} to {:.6g}".format(*map(float, pair)) if pair else "none"


def _parameters(found: Mapping[str, Mapping[str, Any]]) -> str:
    rows = [
        [
            with_unit(name, item.get("unit", "")), f"{float(item['value']):.6g}",
            f"{float(item['standard_error']):.2g}",
            _interval(item["interval"]) + (", at a bound" if item["at_bound"] else ""),
        ]
        for name, item in found.items()
    ]  # fmt: skip
    return table(["parameter", "value", "standard error", "95 % interval"], rows)


def _records(series: Sequence[Mapping[str, Any]]) -> str:
    rows = []
    for s in series:
        error = float(np.sqrt(np.mean(s["residual"] ** 2)))
        relative = np.linalg.norm(s["residual"]) / (np.linalg.norm(s["measured"]) or 1.0)
        signal = with_unit(s["signal"], s.get("unit", ""))
        rows.append([s["record"], signal, s["t"].size, f"{error:.4g}", f"{100 * relative:.3f}"])
    return table(["record", "signal", "samples", "RMS error", "relative [%]"], rows)


def _compared(s: Mapping[str, Any]) -> dict[str, Any]:
    """Both curves with the band of new samples, and below them the residual."""
    t, predicted, band = s["t"], s["predicted"], NORMAL * s["spread"]
    unit = s.get("unit", "")
    over: dict[str, Any] = {"hovertemplate": "%{y:.8g}"}
    quiet: dict[str, Any] = {"hoverinfo": "skip", "hovertemplate": None}
    area = {"fill": "tonexty", "fillcolor": "rgba(31, 78, 121, 0.22)", **quiet}
    dots: dict[str, Any] = {"mode": "markers" if t.size <= MOST_MARKERS else "lines", **over}
    traces = [
        curve(t, predicted - band, SIMULATED, "", 0.0, **quiet),
        curve(t, predicted + band, SIMULATED, "95 % of new samples", 0.0, **area),
        curve(t, s["measured"], MEASURED, "measured", 2.0, **dots),
        curve(t, predicted, SIMULATED, "simulated", **over),
        curve(t, s["residual"], RESIDUAL, "residual", 1.0, yaxis="y2", **over),
    ]
    layout = {
        "height": 560,
        "hovermode": "x unified",
        "hoversubplots": "axis",
        "legend": {"orientation": "h", "y": 1.0, "yanchor": "bottom"},
        "xaxis": {"title": {"text": "t [s]"}, "anchor": "y2"},
        "yaxis": {"domain": [0.36, 1.0], "title": {"text": label(s["signal"], unit)}},
        "yaxis2": {"domain": [0.0, 0.3], "title": {"text": label("residual", unit)}},
    }
    return plain(traces, layout) | {"label": f"{s['record']}: {s['signal']}"}


def _posterior(record: Mapping[str, Any]) -> list[str]:
    """Numbers of the samples, and what makes them doubtful."""
    if not record.get("samples"):
        return []
    rows = [
        [
            with_unit(name, record["parameters"][name].get("unit", "")),
            f"{float(row['mean']):.6g}", f"{float(row['standard_deviation']):.2g}",
            _interval(row["interval"]), f"{float(row['rhat']):.3f}",
            f"{float(row['effective']):,.0f}",
        ]
        for name, row in record["posterior"].items()
    ]  # fmt: skip
    header = ["parameter", "mean", "standard deviation", "interval", "R-hat", "independent"]
    count, drawn = int(record["samples"]["count"]), len(record["samples"]["values"])
    part = panels.some_of(drawn, count, "")
    return [
        f"<p>{count:,} samples of the posterior, for independent normal noise"
        f"{f'; {part}' if part else ''}.</p>",
        table(header, rows),
        *_remarks(record["samples"]["remarks"]),
    ]


def _comparison(found: Mapping[str, Any]) -> list[str]:
    """Laws on what they were not fitted to: recommendation, picture, table, warnings."""
    name, reason = found["recommended"], found["reason"]
    buffer = io.BytesIO()
    plot_comparison(found).savefig(buffer, format="png", dpi=150)
    picture = base64.b64encode(buffer.getvalue()).decode()
    return [
        "<h2>Laws of friction on what they were not fitted to</h2>",
        f"<p>{text(reason if name is None else f'Recommended: {name}, {reason}.')}</p>",
        '<div class=wide><img alt="errors of the laws by all criteria" '
        f'src="data:image/png;base64,{picture}"></div>',
        table(*found["table"]),
        "<p>* simplest within one standard error of the best; in brackets the standard error of "
        "the difference from the best</p>",
        *_remarks(found["warnings"]),
    ]


def plot_comparison(compared: Mapping[str, Any]) -> Figure:
    """Errors of all laws on what was left out, one panel for each criterion; ``compared``: as
    :meth:`LawComparison.to_dict` has it.

    Grey: single folds; dark: mean and the standard error of its difference from the best law; the
    laws within one standard error are filled green, and the name of the recommended law is bold.
    """
    count, laws = len(compared["criteria"]), list(compared["laws"])
    made = new_figure(2.2 + 2.6 * count, 1.6 + 0.34 * len(laws))
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
    for law, words in zip(laws, axes[0].get_yticklabels(), strict=True):
        if law == compared["recommended"]:
            words.set_fontweight("bold")
    return made


def _unit(c: Mapping[str, Any]) -> tuple[float, str]:
    """Factor and unit of errors: positions in thousandths, forces as parts of measured forces."""
    if c["unit"] in ("m", "rad"):
        return 1e3, f"m{c['unit']}"
    return 100.0 / float(c["size"]), "%"


def _to_repeat(record: Mapping[str, Any], options: Sequence[Sequence[Any]]) -> list[str]:
    """Measured files, ``options``, versions and the configuration."""
    files = table(["file", "SHA-256"], [(d["path"], d["sha256"]) for d in record["data"]])
    settings = folded("The settings", table(["", ""], options)) if options else ""
    return [
        folded("The measured files", files),
        settings,
        system(record["config"], record["versions"]),
    ]
