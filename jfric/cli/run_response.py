"""Actions of ``jfric response``: options to calls, results to sentences and files."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jfric.cli import report
from jfric.cli.interrupt import kept
from jfric.cli.kept_results import free_folder, write_json
from jfric.cli.loading import load_changed
from jfric.cli.run_sweep import parse_vary
from jfric.cli.vary import vary_number
from jfric.errors import ProblemError
from jfric.files import output
from jfric.results.grammar import split
from jfric.sweeps.progress import Progress
from jfric.sweeps.ranges import Range
from jfric.verification.periodic_checks import orbit_settings

if TYPE_CHECKING:
    from rich.console import Console

    from jfric.files.config import Config
    from jfric.periodic.response_result import FrequencyResponse

#: Curves and special points with a line of their own.
MOST_LISTED = 40
#: Where a peak lies that is not stationary, in words.
PLACES = {
    "smooth": "",
    "none": "",
    "corner": "at a change of events",
    "end": "at the end of the interval",
}
#: Parts of a curve in the progress bar.
PARTS = 1000


def run_response(
    console: Console,
    config: Path,
    *,
    settings: list[str],
    load: str | None,
    ends: tuple[str | None, str | None],
    quantity: str | None,
    over: list[str],
    solver: dict[str, Any],
    out: Path | None,
    csv: Path | None,
    json_file: Path | None,
    plot: bool,
) -> bool:
    """The response of a configuration, into ``out``, and say what came of it; whether all curves
    are complete."""
    from jfric.files.solver_choice import choose_solver
    from jfric.files.write_toml import dump
    from jfric.periodic.cycle_quantities import parse_cycle_quantities
    from jfric.periodic.response import drive_of, frequency_response

    chosen = load_changed(config, settings)
    chosen = dataclasses.replace(chosen, solver=choose_solver(chosen.solver, **solver)[1])
    problem, given = chosen.problem, orbit_settings(chosen, "state", response=True)
    place = load or _of_file(chosen, "load", "--load", "a name such as load")
    path = drive_of(problem, place).path
    start, stop = (
        _of_file(chosen, key, option, "a frequency")
        if text is None
        else vary_number(problem, path, text, option)
        for text, key, option in zip(ends, ("start", "stop"), ("--from", "--to"), strict=True)
    )
    names = split(quantity or chosen.response.get("quantity", problem.axes[0]))
    parse_cycle_quantities(problem, names)
    ranges = parse_vary(problem, over, sampled=False, option="--over")
    values = {
        k: v.values(np.arange(v.count or 1)) if isinstance(v, Range) else v
        for k, v in ranges.items()
    }
    for file in (csv, json_file):
        if file is not None and file.exists():
            raise ProblemError(f"{file}: exists already; choose another name")
    title = chosen.title or config.stem
    folder = out or free_folder(Path("results") / config.stem, "response", "")
    curves = int(np.prod([len(v) for v in values.values()], dtype=int))
    begun = time.perf_counter()
    try:
        with kept(lambda: _keeps(folder, curves)), Progress(curves * PARTS) as bar:
            found = frequency_response(
                problem,
                place,
                start,
                stop,
                over=values,
                store=folder,
                title=title,
                watch=_Watch(bar, curves),
                **given,
            )
    except ProblemError:
        with contextlib.suppress(OSError):  # only a folder that was reserved and never used
            folder.rmdir()
        raise
    seconds = time.perf_counter() - begun
    console.print(title, style="bold", markup=False)
    points = sum(len(c) for c in found.curves)
    console.print(
        f"{points:,} orbits on {len(found.curves)} curve{'' if curves == 1 else 's'} in "
        f"{seconds:.1f} s, compilation included",
        markup=False,
    )
    ok = _report(console, found, names)
    files = _write(found, names, folder, csv, json_file, dump(chosen))
    if plot:
        from jfric.figures.response_figure import plot_response

        picture = folder / "response.png"
        try:
            plot_response(found, names, title=title).savefig(picture, dpi=150)
        except OSError as error:
            raise ProblemError(f"--plot: cannot draw {picture} ({error.strerror})") from None
        files.append(picture)
    console.print("wrote " + ", ".join(str(f) for f in files), markup=False, soft_wrap=True)
    return ok


def _keeps(folder: Path, curves: int) -> str:
    """Sentence on the curves that are kept of an interrupted response."""
    whole = len(list(folder.glob("curve-*.whole.npz")))
    return (
        f"interrupted; {whole} of {curves} curves and what there is of the others are kept, "
        f"the same command with --out {folder} goes on"
    )


def _of_file(config: Config, key: str, option: str, form: str) -> Any:
    if key not in config.response:
        raise ProblemError(
            f"{option}: not given, needs {form}; the file has no table [response] with {key}"
        )
    return config.response[key]


class _Watch:
    """Shows how far the curves have come."""

    def __init__(self, bar: Progress, curves: int):
        self._bar, self._curves = bar, curves
        self._parts: dict[int, float] = {}
        self._rows: dict[int, int] = {}
        self._first: tuple[float, int] | None = None

    def __call__(self, curve: int, part: float, rows: int) -> None:
        self._parts[curve], self._rows[curve] = part, rows
        done, now = sum(self._rows.values()), time.perf_counter()
        if self._first is None:
            # The first waited for the compiler: the rate is that of the others.
            self._first = now, done
        rate = (done - self._first[1]) / max(now - self._first[0], 1e-9)
        stage = f"{done:,} orbits" if rate else "compiling"
        reached = round(PARTS * sum(self._parts.values()))
        self._bar.show(reached, PARTS * self._curves, stage, f"{rate:,.0f}/s" if rate else "")


def _report(console: Console, found: FrequencyResponse, names: list[str]) -> bool:
    """Peaks and special points; whether all curves are complete."""
    peaks = report.plain_table(
        "Peaks", "curve", "quantity", ">frequency [rad/s]", ">value", "", "outcome"
    )
    for i, curve in enumerate(found.curves[:MOST_LISTED]):
        for name in names:
            peak = found.peak(name, curve=i)
            remark = PLACES[peak.kind]
            if peak.kind != "none" and not peak.stable:
                remark = f"{remark} unstable".strip()
            label = found.label(i) or "1"
            numbers = f"{peak.frequency:.12g}", f"{peak.value:.12g}"
            peaks.add_row(label, name, *numbers, remark, curve.outcome)
    console.print(peaks)
    rows = [(i, p) for i, p in found.special if p.kind != "end"]
    if rows:
        table = report.plain_table(
            "Special points", "curve", "kind", ">frequency [rad/s]", ">largest multiplier"
        )
        for i, point in rows[:MOST_LISTED]:
            largest = float(np.max(np.abs(point.multipliers), initial=0.0))
            numbers = f"{point.parameter:.12g}", f"{largest:.6g}"
            table.add_row(found.label(i) or "1", point.kind, *numbers)
        console.print(table)
    for shown, every, what in (
        (MOST_LISTED, len(found.curves), "curves"),
        (MOST_LISTED, len(rows), "special points"),
    ):
        if every > shown:
            console.print(f"and {every - shown} more {what}", markup=False)
    failed = [i for i, c in enumerate(found.curves) if not c.complete]
    if failed:
        first = found.curves[failed[0]].outcome
        console.print(
            f"{len(failed)} of {len(found.curves)} curves are not complete, first number "
            f"{failed[0] + 1}: {first}",
            markup=False,
            style="bold red",
        )
    return not failed


def _write(
    found: FrequencyResponse,
    names: list[str],
    folder: Path,
    csv: Path | None,
    json_file: Path | None,
    config: str,
) -> list[Path]:
    """The table, and what was asked for; all points are there anew each time."""
    files = [csv or folder / "response.csv"]
    try:
        if csv is None:
            files[0].unlink(missing_ok=True)
        output.write_trajectory(files[0], found.columns(names), found.units(names))
        if json_file is not None:
            table = {k: np.asarray(v).tolist() for k, v in found.columns(names).items()}
            special = [
                {"curve": i + 1, "kind": p.kind, "frequency": p.parameter, "row": p.row}
                for i, p in found.special
            ]
            peaks = [_peak_row(found, i, name) for i in range(len(found.curves)) for name in names]
            content = {"load": found.drive.path, "points": table, "units": found.units(names)}
            content |= {"peaks": peaks, "special": special, "config": config}
            content |= {"outcome": [c.outcome for c in found.curves]}
            write_json(json_file, content)
            files.append(json_file)
    except OSError as error:
        raise ProblemError(f"cannot write {error.filename} ({error.strerror})") from None
    return files


def _peak_row(found: FrequencyResponse, curve: int, name: str) -> dict[str, Any]:
    peak = found.peak(name, curve=curve)
    return {
        "curve": curve + 1,
        **found.curves[curve].values,
        "quantity": name,
        "frequency": peak.frequency,
        "value": peak.value,
        "kind": peak.kind,
        "stable": peak.stable,
    }
