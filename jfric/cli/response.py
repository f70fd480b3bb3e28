"""``jfric response``: steady states over the frequency of a load."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jfric import figures, periodic
from jfric.cli import options
from jfric.cli.app import command, tell, tell_more, tell_rows, wrote
from jfric.cli.kept_results import computed_into, save_figure, write_json
from jfric.cli.loading import load_solved, use_devices
from jfric.cli.options import setting
from jfric.errors import ProblemError

if TYPE_CHECKING:
    from jfric.files.config import Config

#: Most curves and special points that are listed.
MOST_LISTED = 40
#: Words for the place of a peak that is not stationary.
PLACES = {
    "smooth": "",
    "none": "",
    "corner": "at a change of events",
    "end": "at the end of the interval",
}
#: Number of parts of a curve in the progress bar.
PARTS = 1000


@dataclass(frozen=True, kw_only=True)
class ResponseSettings(options.OnMotion):
    """Settings of ``jfric response``."""

    load: str | None = setting(
        "Load, support or belt whose frequency varies, by its name.", metavar="NAME"
    )
    from_: str | None = setting(
        "First frequency \\[rad/s], or with its unit.", name="--from", metavar="VALUE"
    )
    to: str | None = setting(
        "Last frequency \\[rad/s], or with its unit.", name="--to", metavar="VALUE"
    )
    quantity: str | None = setting(
        "What to keep and draw, separated by commas: x (amplitude), harmonic.x(3), phase.x, rms.x, "
        "max.v.x, energy_loss ...; by default the amplitude of the first degree of freedom.",
        metavar="NAMES",
    )
    over: list[str] | None = setting(
        "Further parameter with one curve for each value, PATH=LOW:HIGH:COUNT or "
        "PATH=\\[A, B, ...]. At most two.",
        metavar="PATH=VALUES",
        paths=True,
    )
    out: options.StoreFolder = None
    devices: options.Devices = None
    json_: Path | None = setting(
        "Also write curves and peaks there (JSON).", name="--json", metavar="FILE"
    )
    csv: Path | None = setting("Write the table there, instead of into the folder.", metavar="FILE")
    plot: options.Plot = False


@command(
    "Study",
    epilog="Example, after jfric init p6_duffing: "
    "jfric response p6_duffing.toml --load load --from 0.6 --to 1.6 "
    "--quantity x,energy_loss --plot",
)
def response(given: ResponseSettings) -> bool:
    """Follow the steady states of a system over the frequency of a load, round folds.

    Prints peaks and special points of each curve and writes all points (CSV). Exit status: 0, 1
    where a curve is not complete, 2 for bad input.
    """
    from jfric.files.write_toml import dump
    from jfric.periodic.cycle_quantities import parse_cycle_quantities
    from jfric.results.grammar import split
    from jfric.sweeps.design import numbers, parse_vary

    use_devices(given.devices)
    chosen = load_solved(given)
    drive = _drive(chosen, given)
    names = split(given.quantity or chosen.response.get("quantity", chosen.problem.axes[0]))
    parse_cycle_quantities(chosen.problem, names)
    ranges = parse_vary(chosen.problem, given.over or [], option="--over")
    values = {name: numbers(x) for name, x in ranges.items()}
    for file in (given.csv, given.json_):
        if file is not None and file.exists():
            raise ProblemError(f"{file}: exists already; choose another name")
    begun = time.perf_counter()
    found, folder = computed_into(
        given,
        "response",
        lambda folder: _compute(chosen, drive, values, folder),
        ending="",
        keeps=lambda folder: _keeps(folder, _curves(values)),
    )
    seconds = time.perf_counter() - begun
    tell(chosen.name, "bold")
    points, curves = sum(len(c) for c in found.curves), len(found.curves)
    tell(
        f"{points:,} orbits on {curves} curve{'' if curves == 1 else 's'} in {seconds:.1f} s, "
        "compilation included"
    )
    ok = _print(found, names)
    files = _write(found, names, folder, given, dump(chosen))
    if given.plot:
        picture = folder / "response.png"
        files.append(
            save_figure(picture, lambda: figures.plot_response(found, names, title=chosen.name))
        )
    wrote(*files)
    return ok


def _drive(config: Config, given: ResponseSettings) -> tuple[str, float, float]:
    """The load, and the first and the last frequency, from the command or the file."""
    from jfric.files.assignments import parse_number
    from jfric.periodic.response import drive_of

    place = given.load or _of_file(config, "load", "--load", "a name such as load")
    path = drive_of(config.problem, place).path
    start, stop = (
        _of_file(config, key, option, "a frequency")
        if text is None
        else parse_number(config.problem, path, text, option)
        for text, key, option in ((given.from_, "start", "--from"), (given.to, "stop", "--to"))
    )
    return place, start, stop


def _of_file(config: Config, key: str, option: str, form: str) -> Any:
    if key not in config.response:
        raise ProblemError(
            f"{option}: not given, needs {form}; the file has no table [response] with {key}"
        )
    return config.response[key]


def _compute(
    config: Config, drive: tuple[str, float, float], values: dict[str, Any], folder: Path
) -> periodic.FrequencyResponse:
    """The response, stored in ``folder`` while it is computed."""
    from jfric.sweeps.progress import Progress
    from jfric.verification.system_checks import orbit_settings

    settings = orbit_settings(config, "state", response=True)
    parts: dict[int, float] = {}
    orbits: dict[int, int] = {}
    total = _curves(values) * PARTS

    def watch(curve: int, part: float, rows: int) -> None:
        parts[curve], orbits[curve] = part, rows
        reached, count = round(PARTS * sum(parts.values())), sum(orbits.values())
        bar.show(reached, total, f"{count:,} orbits", counted=count)

    with Progress(total) as bar:
        kept = {"store": folder, "title": config.name, "watch": watch}
        return periodic.frequency_response(config.problem, *drive, over=values, **kept, **settings)


def _curves(values: dict[str, Any]) -> int:
    return math.prod(len(x) for x in values.values())


def _keeps(folder: Path, curves: int) -> str:
    """Sentence on the stored curves of an interrupted response."""
    whole = len(list(folder.glob("curve-*.whole.npz")))
    return (
        f"interrupted; {whole} of {curves} curves and what there is of the others are kept, "
        f"the same command with --out {folder} goes on"
    )


def _print(found: periodic.FrequencyResponse, names: list[str]) -> bool:
    """Print peaks and special points; returns whether all curves are complete."""
    import numpy as np

    rows = []
    for i, curve in enumerate(found.curves[:MOST_LISTED]):
        for name in names:
            peak = found.peak(name, curve=i)
            remark = PLACES[peak.kind]
            if peak.kind != "none" and not peak.stable:
                remark = f"{remark} unstable".strip()
            values = f"{peak.frequency:.12g}", f"{peak.value:.12g}"
            rows.append((found.label(i) or "1", name, *values, remark, curve.outcome))
    columns = "curve", "quantity", ">frequency [rad/s]", ">value", "", "outcome"
    tell_rows("Peaks", columns, rows)
    special = [(i, p) for i, p in found.special if p.kind != "end"]
    if special:
        rows = []
        for i, point in special[:MOST_LISTED]:
            largest = float(np.max(np.abs(point.multipliers), initial=0.0))
            values = f"{point.parameter:.12g}", f"{largest:.6g}"
            rows.append((found.label(i) or "1", point.kind, *values))
        columns = "curve", "kind", ">frequency [rad/s]", ">largest multiplier"
        tell_rows("Special points", columns, rows)
    tell_more(len(found.curves), MOST_LISTED, "curves")
    tell_more(len(special), MOST_LISTED, "special points")
    failed = [i for i, c in enumerate(found.curves) if not c.complete]
    if failed:
        first = found.curves[failed[0]].outcome
        counted = f"{len(failed)} of {len(found.curves)} curves are not complete"
        tell(f"{counted}, first number {failed[0] + 1}: {first}", "bold red")
    return not failed


def _write(
    found: periodic.FrequencyResponse,
    names: list[str],
    folder: Path,
    given: ResponseSettings,
    config: str,
) -> list[Path]:
    """Write the table and the request; all points are written anew each time."""
    import numpy as np

    from jfric.files import output

    files = [given.csv or folder / "response.csv"]
    columns, units = found.columns(names), found.units(names)
    if given.csv is None:
        files[0].unlink(missing_ok=True)
    output.write_trajectory(files[0], columns, units)
    if given.json_ is not None:
        special = [
            {"curve": i + 1, "kind": p.kind, "frequency": p.parameter, "row": p.row}
            for i, p in found.special
        ]
        content = {
            "load": found.drive.path,
            "points": {name: np.asarray(x).tolist() for name, x in columns.items()},
            "units": units,
            "peaks": [_peak(found, i, n) for i in range(len(found.curves)) for n in names],
            "special": special,
            "config": config,
            "outcome": [c.outcome for c in found.curves],
        }
        write_json(given.json_, content)
        files.append(given.json_)
    return files


def _peak(found: periodic.FrequencyResponse, curve: int, name: str) -> dict[str, Any]:
    peak = found.peak(name, curve=curve)
    about = {"curve": curve + 1, **found.curves[curve].values, "quantity": name}
    return about | {k: getattr(peak, k) for k in ("frequency", "value", "kind", "stable")}
