"""One self-contained HTML page of a fit."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jfric.errors import ProblemError
from jfric.figures import fit_certainty as certainty
from jfric.figures import fit_figures as figures
from jfric.figures.comparison_figure import plot_comparison
from jfric.fits.series import Series, series

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from jfric.files.config import Config
    from jfric.fits.comparison.result import LawComparison
    from jfric.fits.fit_result import FitResult
    from jfric.fits.uncertainty.posterior import Posterior

_STYLE = """
body { font: 16px/1.45 system-ui, sans-serif; max-width: 66rem; margin: 1.5rem auto;
  padding: 0 1rem; color: #222; overflow-wrap: break-word; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin: 2rem 0 .6rem; }
table { border-collapse: collapse; font-size: .95rem; }
th, td { padding: .2rem 1rem .2rem 0; text-align: left; vertical-align: top; }
.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
th { border-bottom: 1px solid #999; }
.wide { overflow-x: auto; margin-bottom: .8rem; }
.panels { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 24rem), 1fr));
  gap: 1rem; align-items: start; }
.panels img { width: 100%; max-width: 42rem; height: auto; }
pre { background: #f5f5f5; padding: .8rem; overflow: auto; font-size: .85rem; }
.remark { color: #a33; }
@media print {
  body { font-size: 10pt; max-width: none; margin: 0; padding: 0; }
  h2, .lead { break-after: avoid; } img, tr { break-inside: avoid; }
  .panels { grid-template-columns: 1fr 1fr; gap: .4cm; }
  .wide { overflow: visible; } td, th { overflow-wrap: anywhere; }
  pre { white-space: pre-wrap; background: none; border: 1px solid #ccc; }
}
"""

#: Most parameters whose profiles are computed for the page, and points of each profile.
MAX_PROFILES, POINTS = 8, 9


def write_page(
    path: Path,
    config: Config,
    result: FitResult,
    record: Mapping[str, Any],
    compared: LawComparison | None = None,
    posterior: Posterior | None = None,
) -> None:
    """Write the page; raises :class:`jfric.ProblemError` where it cannot be written."""
    _write(path, page(config, result, record, compared, posterior))


def page(
    config: Config,
    result: FitResult,
    record: Mapping[str, Any],
    compared: LawComparison | None = None,
    posterior: Posterior | None = None,
) -> str:
    """The page as text: everything is inside it, figures too; ``posterior``: samples to be drawn
    beside the normal approximation."""
    found = series(result)
    options = [["seed", record["seed"]], *record["options"].items()]
    parts = [
        f"<p>{html.escape(result.outcome.message)}; cost {result.cost:.6g}</p>",
        *(f'<p class="remark">{html.escape(r)}</p>' for r in record["remarks"]),
        f"<h2>Parameters, 95 % intervals ({html.escape(record['method'])})</h2>",
        _parameters(record["parameters"]),
        "<h2>Records</h2>",
        _records(found),
        "<h2>Simulated against measured</h2>",
        _panels(figures.compared(found)),
        _omitted(found),
        "<h2>Residuals</h2>",
        '<p class="lead">A trend by velocity or position is friction that the model does not have; '
        "correlation outside the grey band is not white noise.</p>",
        _panels(figures.residuals(found)),
        *_certainty(result, posterior),
    ]
    if compared is not None:
        parts += _comparison(compared)
    parts += [
        "<h2>Starts</h2>",
        _panels([figures.starts(result)]),
        *_to_repeat(record, _table(["", ""], options)),
    ]
    return _document(config, parts)


def write_comparison(
    path: Path, config: Config, compared: LawComparison, record: Mapping[str, Any]
) -> None:
    """Write the page of a comparison of laws; raises :class:`jfric.ProblemError` where it cannot be
    written."""
    _write(path, _document(config, [*_comparison(compared), *_to_repeat(record)]))


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ProblemError(f"--report: cannot write {path} ({error.strerror})") from None


def _to_repeat(record: Mapping[str, Any], options: str = "") -> list[str]:
    """Measured files, ``options`` as a table, versions and the configuration."""
    return [
        "<h2>To repeat it</h2>",
        _table(["file", "SHA-256"], [[d["path"], d["sha256"]] for d in record["data"]]),
        options,
        _table(["package", "version"], record["versions"].items()),
        f"<pre>{html.escape(record['config'])}</pre>",
    ]


def _document(config: Config, parts: Iterable[str]) -> str:
    """The page with the title and the source of ``config`` above its ``parts``."""
    title = config.title or Path(config.path).stem
    source = f"<p>{html.escape(config.source)}</p>" if config.source else ""
    parts = [f"<h1>{html.escape(title)}</h1>", source, *parts]
    head = '<meta charset="utf-8">'
    head += '<meta name="viewport" content="width=device-width, initial-scale=1">'
    head += f"<title>{html.escape(title)}</title><style>{_STYLE}</style>"
    body = "\n".join(p for p in parts if p)
    return f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head><body>\n{body}\n</body></html>\n'


def _comparison(compared: LawComparison) -> list[str]:
    """Sections of a comparison of laws: recommendation, picture, table, warnings."""
    name, reason = compared.recommended, compared.verdict.reason
    said = reason if name is None else f"Recommended: {name}, {reason}."
    return [
        "<h2>Laws of friction on what they were not fitted to</h2>",
        f"<p>{html.escape(said)}</p>",
        _image(plot_comparison(compared), "errors of the laws by all criteria"),
        _table(*compared.table()),
        "<p>* simplest within one standard error of the best; in brackets the standard error of "
        "the difference from the best</p>",
        *(f'<p class="remark">{html.escape(w)}</p>' for w in compared.warnings),
    ]


def _certainty(result: FitResult, posterior: Posterior | None) -> list[str]:
    """Correlations, pairs and profiles of parameters with a finite error."""
    pairs = certainty.corner(result, posterior)
    if pairs is None:
        return []
    together = [p for p in (figures.correlations(result), pairs) if p is not None]
    parts = ["<h2>Parameters together</h2>"]
    if len(together) > 1:
        parts.append('<p class="lead">Ellipses hold 50 and 95 % of the normal approximation.</p>')
    parts.append(_panels(together))
    if posterior is not None:
        parts += _posterior(posterior)
    matrix = result.covariance().matrix
    known = [n for i, n in enumerate(result.names) if np.isfinite(matrix[i, i])][:MAX_PROFILES]
    found = result.profile(known, points=POINTS)
    return [*parts, "<h2>Profiles of the cost</h2>", _panels(certainty.profiles(found))]


def _posterior(posterior: Posterior) -> list[str]:
    """Numbers of the samples, and what makes them doubtful."""
    rows = [
        [
            name, f"{row['mean']:.6g}", f"{row['standard_deviation']:.2g}",
            f"{row['interval'][0]:.6g} to {row['interval'][1]:.6g}", f"{row['rhat']:.3f}",
            f"{row['effective']:,.0f}",
        ]
        for name, row in posterior.to_dict().items()
    ]  # fmt: skip
    header = ["parameter", "mean", "standard deviation", "interval", "R-hat", "independent"]
    return [
        f'<p class="lead">{posterior.samples[..., 0].size:,} samples of the posterior, for '
        "independent normal noise.</p>",
        _table(header, rows),
        *(f'<p class="remark">{html.escape(said)}</p>' for said in posterior.remarks()),
    ]


def _omitted(found: Sequence[Series]) -> str:
    more = len(found) - figures.MAX_RECORDS
    return f"<p>{more} more are in the table only.</p>" if more > 0 else ""


def _parameters(table: Mapping[str, Mapping[str, Any]]) -> str:
    rows = []
    for name, item in table.items():
        pair = item["interval"]
        shown = f"{pair[0]:.6g} to {pair[1]:.6g}" if pair else "none"
        rows.append([name, f"{item['value']:.6g}", f"{item['standard_error']:.2g}", shown])
    return _table(["parameter", "value", "standard error", "interval"], rows)


def _records(found: Sequence[Series]) -> str:
    rows = []
    for s in found:
        error = float(np.sqrt(np.mean(s.residual**2)))
        relative = 100.0 * np.linalg.norm(s.residual) / (np.linalg.norm(s.measured) or 1.0)
        rows.append([s.record, s.signal, s.t.size, f"{error:.4g}", f"{relative:.3f}"])
    header = ["record", "signal", "samples", "RMS error", "relative [%]"]
    return _table(header, rows)


def _table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table; columns of numbers are aligned to the right."""
    texts = [[html.escape(str(value)) for value in row] for row in rows]
    kinds = [
        ' class="n"' if all(map(_is_number, column)) else "" for column in zip(*texts, strict=True)
    ] or [""] * len(header)
    lines = "".join(
        f"<tr>{''.join(f'<td{k}>{v}</td>' for v, k in zip(row, kinds, strict=True))}</tr>"
        for row in texts
    )
    top = "".join(f"<th{k}>{html.escape(h)}</th>" for h, k in zip(header, kinds, strict=True))
    top = f"<tr>{top}</tr>" if any(header) else ""
    return f'<div class="wide"><table>{top}{lines}</table></div>'


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _panels(panels: Sequence[figures.Panel]) -> str:
    return f'<div class="panels">{"".join(_image(*panel) for panel in panels)}</div>'


def _image(figure: Figure, what: str) -> str:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=150)
    data = base64.b64encode(buffer.getvalue()).decode()
    return f'<img alt="{html.escape(what)}" src="data:image/png;base64,{data}">'
