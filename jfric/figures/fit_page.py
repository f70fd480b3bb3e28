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
from jfric.figures import fit_figures as figures
from jfric.figures.comparison_figure import plot_comparison
from jfric.fits.series import Series, series

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from jfric.files.config import Config
    from jfric.fits.comparison.result import LawComparison
    from jfric.fits.fit_result import FitResult

_STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem;
  color: #222; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
table { border-collapse: collapse; } th, td { padding: .2rem .9rem .2rem 0; text-align: left; }
td.n { text-align: right; font-variant-numeric: tabular-nums; }
th { border-bottom: 1px solid #999; }
img { max-width: 100%; } pre { background: #f5f5f5; padding: .8rem; overflow: auto; }
.remark { color: #a33; }
"""


def write_page(
    path: Path,
    config: Config,
    result: FitResult,
    record: Mapping[str, Any],
    compared: LawComparison | None = None,
) -> None:
    """Write the page; raises :class:`jfric.ProblemError` where it cannot be written."""
    text = page(config, result, record, compared)
    _write(path, text)


def page(
    config: Config,
    result: FitResult,
    record: Mapping[str, Any],
    compared: LawComparison | None = None,
) -> str:
    """The page as text: everything is inside it, figures too."""
    found = series(result)
    title = config.title or Path(config.path).stem
    parts = [
        f"<h1>{html.escape(title)}</h1>",
        f"<p>{html.escape(config.source)}</p>" if config.source else "",
        f"<p>{html.escape(result.outcome.message)}; cost {result.cost:.6g}</p>",
        *(f'<p class="remark">{html.escape(r)}</p>' for r in record["remarks"]),
        f"<h2>Parameters, 95 % intervals ({html.escape(record['method'])})</h2>",
        _parameters(record["parameters"]),
        "<h2>Records</h2>",
        _records(found),
        "<h2>Simulated against measured</h2>",
        _image(figures.compared(found), "simulated and measured signals, and residuals in time"),
        "<h2>Residuals</h2>",
        _image(figures.residuals(found), "residuals against velocity and position"),
    ]
    correlated = figures.correlations(result)
    if correlated is not None:
        parts += [
            "<h2>Correlation of the estimates</h2>",
            _image(correlated, "correlation of the estimates"),
        ]
    if compared is not None:
        parts += _comparison(compared)
    parts += [
        "<h2>Starts</h2>",
        _image(figures.starts(result), "costs of the starts"),
        "<h2>To repeat it</h2>",
        _table(["file", "SHA-256"], [[d["path"], d["sha256"]] for d in record["data"]]),
        _table(["", ""], [["seed", record["seed"]], *record["options"].items()]),
        _table(["package", "version"], record["versions"].items()),
        f"<pre>{html.escape(record['config'])}</pre>",
    ]
    return _document(title, parts)


def write_comparison(
    path: Path, config: Config, compared: LawComparison, record: Mapping[str, Any]
) -> None:
    """Write the page of a comparison of laws; raises :class:`jfric.ProblemError` where it cannot be
    written."""
    title = config.title or Path(config.path).stem
    parts = [
        f"<h1>{html.escape(title)}</h1>",
        f"<p>{html.escape(config.source)}</p>" if config.source else "",
        *_comparison(compared),
        "<h2>To repeat it</h2>",
        _table(["file", "SHA-256"], [[d["path"], d["sha256"]] for d in record["data"]]),
        _table(["package", "version"], record["versions"].items()),
        f"<pre>{html.escape(record['config'])}</pre>",
    ]
    _write(path, _document(title, parts))


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ProblemError(f"--report: cannot write {path} ({error.strerror})") from None


def _document(title: str, parts: Iterable[str]) -> str:
    head = f'<meta charset="utf-8"><title>{html.escape(title)}</title><style>{_STYLE}</style>'
    body = "\n".join(p for p in parts if p)
    return f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head><body>\n{body}\n</body></html>\n'


def _comparison(compared: LawComparison) -> list[str]:
    """Laws on what they were not fitted to: recommendation, picture, table, warnings."""
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
    def cell(value: Any) -> str:
        text = html.escape(str(value))
        number = text.replace(".", "").replace("-", "").replace("e", "").replace("+", "").isdigit()
        return f'<td class="n">{text}</td>' if number else f"<td>{text}</td>"

    lines = "".join(f"<tr>{''.join(cell(v) for v in row)}</tr>" for row in rows)
    top = "".join(f"<th>{html.escape(h)}</th>" for h in header)
    return f"<table><tr>{top}</tr>{lines}</table>"


def _image(figure: Figure, what: str) -> str:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=110)
    data = base64.b64encode(buffer.getvalue()).decode()
    return f'<img alt="{html.escape(what)}" src="data:image/png;base64,{data}">'
