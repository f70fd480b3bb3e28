"""``jfric flutter``: stability of steady sliding over one or two parameters."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from jfric.cli import options
from jfric.cli.app import command, tell, wrote
from jfric.cli.options import setting
from jfric.errors import ProblemError

if TYPE_CHECKING:
    import numpy as np

    from jfric.periodic.flutter import FlutterBoundary, FlutterPath


@dataclass(frozen=True, kw_only=True)
class FlutterSettings:
    """Settings of ``jfric flutter``."""

    config: options.ConfigPath
    vary: str | None = setting(
        None,
        "Parameter and its interval; by default those of the file's table \\[statics].",
        metavar="PATH=START:STOP",
        paths=True,
    )
    second: str | None = setting(
        None,
        "Second parameter: its value at the start, and that to which the first boundary is "
        "followed.",
        metavar="PATH=START:STOP",
        paths=True,
    )
    points: int = setting(101, "Values of the parameter.")
    moving: str | None = setting(
        None, "Degrees of freedom that turn or run steadily, separated by commas.", metavar="NAMES"
    )
    set_: options.Settings = None
    out: options.ResultFolder = None
    plot: options.Plot = False


@command(
    "Study",
    epilog="Example, after jfric init s1_flutter: jfric flutter s1_flutter.toml --plot",
)
def flutter(given: FlutterSettings) -> None:
    """Find where steady sliding becomes unstable: frequencies and growth rates over a parameter.

    Prints the boundaries with their largest derivatives and writes all rows (CSV). Exit status: 0,
    2 for bad input.
    """
    from jfric.cli.loading import load_changed
    from jfric.cli.values import parse_interval
    from jfric.periodic.flutter import continue_flutter
    from jfric.periodic.flutter import flutter as found_over
    from jfric.system.naming import set_parameters

    chosen = load_changed(given.config, given.set_)
    problem, wanted = chosen.problem, dict(chosen.statics)
    if given.vary is not None:
        wanted = parse_interval(problem, given.vary)
    if not wanted:
        raise ProblemError(
            "--vary: not given, and the file has no table [statics]; give --vary PATH=START:STOP"
        )
    other = parse_interval(problem, given.second, "--second") if given.second else None
    if other is not None:
        problem = set_parameters(problem, {other["vary"]: other["start"]})
    moving = [name.strip() for name in (given.moving or "").split(",") if name.strip()]
    ends = wanted["vary"], wanted["start"], wanted["stop"]
    path = found_over(problem, *ends, points=given.points, moving=moving)
    title = chosen.title or given.config.stem
    tell(title, "bold")
    _print_path(path)
    boundary = None
    if other is not None:
        if not path.onsets:
            raise ProblemError("--second: there is no boundary in the interval of --vary")
        boundary = continue_flutter(path, path.onsets[0], other["vary"], other["stop"])
        tell(f"boundary with {len(boundary.parameter)} points, end: {boundary.outcome}")
    files = _write(path, boundary, given.out or Path("results") / given.config.stem)
    if given.plot:
        from jfric.figures.flutter_figure import plot_flutter

        files.append(files[0].with_suffix(".png"))
        plot_flutter(path, title=title).savefig(files[-1], dpi=150)
    wrote(*files)


def _print_path(path: FlutterPath) -> None:
    """Print where stability changes, and what moves these places most."""
    from jfric.numerics.printing import shown
    from jfric.system.expression import Expression
    from jfric.system.naming import parameters

    tell(shown(path))
    if not path.onsets:
        last = path.growth[-1]
        tell(f"no change of stability; growth rate at the end: {last:.6g} 1/s")
    known = {k: x for k, x in parameters(path.problem).items() if not isinstance(x, Expression)}
    for onset in path.onsets:
        # Compared by relative changes of the numbers.
        size = {k: abs(x * float(known[k])) for k, x in onset.derivatives.items()}
        largest = [k for k in sorted(size, key=lambda k: -size[k]) if size[k] > 0.0][:3]
        slopes = ", ".join(f"{k}: {onset.derivatives[k]:.6g}" for k in largest)
        tell(f"derivatives of {onset.parameter:.6g} by {slopes}" if slopes else "")


def _columns(path: FlutterPath) -> dict[str, np.ndarray]:
    """All rows of a path as columns: parameter, growth, modes, state."""
    import numpy as np

    from jfric.periodic.state_vector import state_columns

    columns = {path.name: path.parameter, "growth": path.growth}
    for k, values in enumerate(path.eigenvalues.T, start=1):
        columns |= {f"frequency.{k}": np.imag(values), f"growth.{k}": np.real(values)}
    return columns | state_columns(path.axes, path.state)


def _of_boundary(found: FlutterBoundary) -> dict[str, np.ndarray]:
    first, second = found.names
    return {
        first: found.parameter,
        second: found.second,
        "slope": found.slope,
        "frequency": found.frequency,
    }


def _write(path: FlutterPath, boundary: FlutterBoundary | None, folder: Path) -> list[Path]:
    """Write all rows (CSV), the places where stability changes (JSON), and a boundary (CSV)."""
    from jfric.cli.kept_results import write_json
    from jfric.files import output

    place = output.reserve(folder, "flutter")
    tables = {place.with_suffix(".csv"): _columns(path)}
    if boundary is not None:
        tables[place.with_name(f"{place.stem}-boundary.csv")] = _of_boundary(boundary)
    for file, columns in tables.items():
        output.write_trajectory(file, columns, dict.fromkeys(columns, ""))
    content = {"parameter": path.name, "onsets": [vars(onset) for onset in path.onsets]}
    write_json(place, content)
    return [*tables, place]
