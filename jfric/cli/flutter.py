"""``jfric flutter``: stability of steady sliding over one or two parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from jfric.cli import options
from jfric.cli.app import command, tell, wrote
from jfric.cli.kept_results import add_figure, write_rows
from jfric.cli.loading import load_changed
from jfric.cli.options import setting
from jfric.cli.values import followed, names_in, parse_interval
from jfric.errors import ProblemError

if TYPE_CHECKING:
    import numpy as np

    from jfric.periodic.flutter import FlutterPath


@dataclass(frozen=True, kw_only=True)
class FlutterSettings(options.OnSystem):
    """Settings of ``jfric flutter``."""

    vary: options.Interval = None
    second: str | None = setting(
        "Second parameter: its value at the start, and that to which the first boundary is "
        "followed.",
        metavar="PATH=START:STOP",
        paths=True,
    )
    points: int = setting("Values of the parameter.", 101)
    moving: str | None = setting(
        "Degrees of freedom that turn or run steadily, separated by commas.", metavar="NAMES"
    )
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
    from jfric.files import output
    from jfric.periodic.flutter import continue_flutter
    from jfric.periodic.flutter import flutter as found_over
    from jfric.system.naming import set_parameters

    chosen = load_changed(given)
    problem, wanted = chosen.problem, followed(chosen, given.vary)
    other = parse_interval(problem, given.second, "--second") if given.second else None
    if other is not None:
        problem = set_parameters(problem, {other["vary"]: other["start"]})
    ends = wanted["vary"], wanted["start"], wanted["stop"]
    path = found_over(problem, *ends, points=given.points, moving=names_in(given.moving))
    tell(chosen.name, "bold")
    _print_path(path)
    boundary = None
    if other is not None:
        if not path.onsets:
            raise ProblemError("--second: there is no boundary in the interval of --vary")
        boundary = continue_flutter(path, path.onsets[0], other["vary"], other["stop"])
        tell(f"boundary with {len(boundary.parameter)} points, end: {boundary.outcome}")
    content = {"parameter": path.name, "onsets": [vars(onset) for onset in path.onsets]}
    files = write_rows(given.folder, "flutter", _columns(path), content)
    if boundary is not None:
        columns = dict(zip(boundary.names, (boundary.parameter, boundary.second), strict=True))
        columns |= {"slope": boundary.slope, "frequency": boundary.frequency}
        files.insert(1, files[0].with_name(f"{files[0].stem}-boundary.csv"))
        output.write_trajectory(files[1], columns, dict.fromkeys(columns, ""))
    if given.plot:
        from jfric.figures.steady_figure import plot_flutter

        add_figure(files, lambda: plot_flutter(path, title=chosen.name))
    wrote(*files)


def _print_path(path: FlutterPath) -> None:
    """Print where stability changes, and what moves these places most."""
    from jfric.system.expression import Expression
    from jfric.system.naming import parameters

    tell(path)
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
