"""``jfric equilibria``, ``jfric trace`` and ``jfric flutter``: systems at rest, and the stability
of steady sliding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jfric import figures, periodic, results, statics
from jfric.cli import options
from jfric.cli.app import command, remarks, tell, wrote
from jfric.cli.kept_results import add_figure, write_rows
from jfric.cli.loading import followed, load_changed, names_in, parse_interval
from jfric.cli.options import setting
from jfric.errors import ProblemError

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True, kw_only=True)
class EquilibriaSettings(options.OnSystem):
    """Settings of ``jfric equilibria``."""

    rest: bool = setting("Where the system can stay at rest, as intervals.", False, name="--rest")
    starts: int = setting("Starts of Newton's method, with many contacts.", 64)


@command(
    "Study",
    epilog="Example, after jfric init janovsky_static_e5: jfric equilibria janovsky_static_e5.toml",
)
def equilibria(given: EquilibriaSettings) -> bool:
    """Print all equilibria of a system with friction, from its initial position as reference.

    Exit status: 0, 1 where there is none, 2 for bad input.
    """
    chosen = load_changed(given)
    meaning = "rest" if given.rest else "reference"
    found = statics.equilibria(chosen.problem, meaning=meaning, starts=given.starts)
    tell(chosen.name, "bold")
    tell(found)
    return int(found.count) > 0


@dataclass(frozen=True, kw_only=True)
class TraceSettings(options.OnSystem):
    """Settings of ``jfric trace``."""

    vary: options.Interval = None
    seeds: int | None = setting("Values of the parameter at which branches are looked for.")
    show: str | None = setting("Degrees of freedom to draw, separated by commas.", metavar="NAMES")
    contact: str | None = setting("Contact whose modes give the line styles.", metavar="NAME")
    out: options.ResultFolder = None
    plot: options.Plot = False


@command(
    "Study",
    epilog="Example, after jfric init janovsky_static_fold: "
    "jfric trace janovsky_static_fold.toml --vary parameters.ftau=2.5:-2.5 --plot",
)
def trace(given: TraceSettings) -> None:
    """Follow all equilibria over a parameter through folds and changes of mode.

    Prints the special points and writes all rows (CSV). Exit status: 0, 2 for bad input.
    """
    chosen = load_changed(given)
    wanted = followed(chosen, given.vary)
    if given.seeds is not None:
        wanted["seeds"] = given.seeds
    name, start, stop = wanted.pop("vary"), wanted.pop("start"), wanted.pop("stop")
    path = statics.trace(chosen.problem, name, start, stop, **wanted)
    tell(chosen.name, "bold")
    tell(path)
    remarks(path.remarks)
    special = [{**row, "q": list(map(float, row["q"]))} for row in path.special_table()]
    content = {"parameter": path.name, "start": path.start, "stop": path.stop}
    content |= {"special": special, "remarks": list(path.remarks)}
    files = write_rows(given.folder, "path", _columns(path), content)
    if given.plot:
        about = {"contact": given.contact, "title": chosen.name}
        add_figure(files, lambda: figures.plot_path(path, names_in(given.show) or None, **about))
    wrote(*files)


def _columns(path: statics.EquilibriumPath) -> dict[str, np.ndarray]:
    """All rows of a path as columns: branch, parameter, positions, reactions, modes."""
    import numpy as np

    branches = path.branches

    def joined(field: str) -> np.ndarray:
        return np.concatenate([getattr(b, field) for b in branches]) if branches else np.zeros((0,))

    sizes = [len(b.parameter) for b in branches]
    numbers = np.repeat(np.arange(1.0, len(branches) + 1), sizes)
    columns: dict[str, Any] = {"branch": numbers, path.name: joined("parameter")}
    if branches:
        normals = path.names[len(path.names) - branches[0].lambda_n.shape[1] :]
        for field, names in (("q", path.axes), ("lambda_t", path.names), ("lambda_n", normals)):
            values = joined(field)
            columns |= {f"{field}.{name}": values[:, i] for i, name in enumerate(names)}
        reaction = joined("reaction") if path.joints else np.zeros((0, 0))
        columns |= {f"reaction.{name}": reaction[:, i] for i, name in enumerate(path.joints)}
        for i, name in enumerate(path.names):
            columns[f"mode.{name}"] = np.asarray(
                [results.Mode(int(m)).label for m in joined("mode")[:, i]]
            )
    return columns


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
    from jfric.system.naming import set_parameters

    chosen = load_changed(given)
    problem, wanted = chosen.problem, followed(chosen, given.vary)
    other = parse_interval(problem, given.second, "--second") if given.second else None
    if other is not None:
        problem = set_parameters(problem, {other["vary"]: other["start"]})
    ends = wanted["vary"], wanted["start"], wanted["stop"]
    path = periodic.flutter(problem, *ends, points=given.points, moving=names_in(given.moving))
    tell(chosen.name, "bold")
    _print_onsets(path)
    boundary = None
    if other is not None:
        if not path.onsets:
            raise ProblemError("--second: there is no boundary in the interval of --vary")
        boundary = periodic.continue_flutter(path, path.onsets[0], other["vary"], other["stop"])
        tell(f"boundary with {len(boundary.parameter)} points, end: {boundary.outcome}")
    content = {"parameter": path.name, "onsets": [vars(onset) for onset in path.onsets]}
    files = write_rows(given.folder, "flutter", _flutter_columns(path), content)
    if boundary is not None:
        columns = dict(zip(boundary.names, (boundary.parameter, boundary.second), strict=True))
        columns |= {"slope": boundary.slope, "frequency": boundary.frequency}
        files.insert(1, files[0].with_name(f"{files[0].stem}-boundary.csv"))
        output.write_trajectory(files[1], columns, dict.fromkeys(columns, ""))
    if given.plot:
        add_figure(files, lambda: figures.plot_flutter(path, title=chosen.name))
    wrote(*files)


def _print_onsets(path: periodic.FlutterPath) -> None:
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


def _flutter_columns(path: periodic.FlutterPath) -> dict[str, np.ndarray]:
    """All rows of a path as columns: parameter, growth, modes, state."""
    import numpy as np

    from jfric.periodic.state_vector import state_columns

    columns = {path.name: path.parameter, "growth": path.growth}
    for k, values in enumerate(path.eigenvalues.T, start=1):
        columns |= {f"frequency.{k}": np.imag(values), f"growth.{k}": np.real(values)}
    return columns | state_columns(path.axes, path.state)
