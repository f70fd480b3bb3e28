"""Options of the command line: fields of a command's record of settings, types of options that
several commands share, and words for their completion in the shell, without JAX."""

from __future__ import annotations

import dataclasses
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from jfric.files.solver_choice import SOLVERS
from jfric.files.starting_files import STARTERS
from jfric.verification.configs import systems

#: Tables of a file without parameters of the system, and keys without parameters.
_OTHER_TABLES = {"check", "solver", "data", "controller", "fit", "periodic"}
_OTHER_KEYS = {"outputs", "title", "source", "description", "angle", "omega", "count"}
#: Words for functions of time, which are left out of the paths of parameters below them.
_FORMS = {"harmonic", "linear", "steps", "ramp"}
#: A number with or without a unit, or the reference to a shared parameter.
_NUMBER = re.compile(r"[+-]?[\d.][\d.eE+-]*\s*([A-Za-zµΩ°%/][^()$]*)?|-?\$\w+")


def parameter_paths(context: typer.Context, incomplete: str) -> list[str]:
    """Paths of numbers in the file that the command names, for options ``PATH=VALUE``."""
    # The shell cuts off the words here, so the file may still be among the arguments.
    words = [context.params.get("config"), *context.args]
    config = next((x for x in words if x and str(x).endswith(".toml")), None)
    if config is None or "=" in incomplete:
        return []
    try:
        table = tomllib.loads(Path(config).read_text("utf-8"))
    except (OSError, ValueError):
        return []
    own = {k: v for k, v in table.items() if k not in _OTHER_TABLES}
    return [f"{x}=" for x in _numbers(own, ()) if x.startswith(incomplete)]


def starting_files(incomplete: str) -> list[str]:
    """Kinds of starting files, and systems of the package."""
    return [x for x in (*STARTERS, *systems()) if x.startswith(incomplete)]


def _numbers(table: Mapping[str, Any], inside: tuple[str, ...]) -> Iterator[str]:
    for key, value in table.items():
        if key in _OTHER_KEYS:
            continue
        path = inside if key in _FORMS and inside else (*inside, key)
        if isinstance(value, Mapping):
            yield from _numbers(value, path)
        elif isinstance(value, bool) or not path:
            continue
        elif isinstance(value, (int, float)) or (
            isinstance(value, str) and _NUMBER.fullmatch(value.strip())
        ):
            yield ".".join(path)


# Options of several commands; a single command has its own ones in its record.
ConfigPath = Annotated[
    Path, typer.Argument(metavar="CONFIG", help="TOML file that describes the system.")
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="PATH=VALUE",
        autocompletion=parameter_paths,
        help="Change a parameter; the value may carry its unit (spring.k='5 kN/m'). Repeatable.",
    ),
]
Measured = Annotated[
    list[Path] | None,
    typer.Option(help="Measured file: .csv, .txt, .tsv, .dat, .parquet, .npz or .mat. Repeatable."),
]
SolverName = Annotated[
    str | None,
    typer.Option("--solver", help=f"Solver: {', '.join(SOLVERS)}.", metavar="NAME"),
]
Flow = Annotated[
    str | None,
    typer.Option(help="Flow between events: auto, exact or runge-kutta.", metavar="NAME"),
]
Rtol = Annotated[float | None, typer.Option(help="Relative tolerance of the runge-kutta flow.")]
Options = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=VALUE",
        help="A setting of the solver, in SI units (width=1e-3, method=kvaerno5). Repeatable.",
    ),
]
Method = Annotated[
    str, typer.Option(help="grid, zip, random, sobol or latin-hypercube.", metavar="NAME")
]
Samples = Annotated[int | None, typer.Option(help="Number of points of a sampled method.")]
Seed = Annotated[int, typer.Option(help="Seed of a sampled method.")]
Chunk = Annotated[int | None, typer.Option(help="Trajectories that step together.")]
Devices = Annotated[
    int | None, typer.Option(help="Devices (CPU cores, GPUs) to use; all by default.")
]
Workers = Annotated[int | None, typer.Option(help="Compute in that many processes, through Dask.")]
Hold = Annotated[str, typer.Option(help="Inputs between samples: zero or linear.", metavar="NAME")]
ResultFolder = Annotated[
    Path | None,
    typer.Option(help="Folder of the result files, instead of results/<name of the file>."),
]
StoreFolder = Annotated[
    Path | None,
    typer.Option(
        help="Folder of the results, instead of a free one in results/<name of the file>. "
        "The same command goes on after an interruption.",
        metavar="FOLDER",
    ),
]
Interval = Annotated[
    str | None,
    typer.Option(
        help="Parameter and its interval; by default those of the file's table \\[statics].",
        metavar="PATH=START:STOP",
        autocompletion=parameter_paths,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON, nothing else.")]
Plot = Annotated[bool, typer.Option("--plot", help="Also write a figure (PNG).")]
Drawn = Annotated[bool, typer.Option("--plot", help="Also draw the results (PNG).")]


def setting(
    help: str,
    default: Any = None,
    *,
    name: str | None = None,
    metavar: str | None = None,
    paths: bool = False,
    **more: Any,
) -> Any:
    """Field of a record of settings, as an option of the command line.

    ``default``: ``...`` for a required option. ``name``: of the option, by default that of the
    field. ``paths``: whether the shell completes paths of parameters.
    """
    complete = parameter_paths if paths else None
    names = () if name is None else (name,)
    info = typer.Option(*names, help=help, metavar=metavar, autocompletion=complete, **more)
    return _field(default, info)


def argument(help: str, default: Any = None, *, metavar: str, **more: Any) -> Any:
    """Field of a record of settings, as an argument of the command line."""
    return _field(default, typer.Argument(metavar=metavar, help=help, **more))


def _field(default: Any, info: Any) -> Any:
    default = dataclasses.MISSING if default is ... else default
    return dataclasses.field(default=default, metadata={"typer": info})


@dataclass(frozen=True, kw_only=True)
class OnSystem:
    """Settings of every command on the system of a file."""

    config: ConfigPath
    set_: Settings = None

    @property
    def folder(self) -> Path:
        """Folder of the result files: that of ``--out``, or the one of the system."""
        return getattr(self, "out", None) or Path("results") / self.config.stem


@dataclass(frozen=True, kw_only=True)
class OnMotion(OnSystem):
    """Settings of every command that computes motions of a system."""

    flow: Flow = None
    rtol: Rtol = None
    option: Options = None


@dataclass(frozen=True, kw_only=True)
class BySolver(OnMotion):
    """Settings of every command that computes motions by a solver of choice."""

    solver: SolverName = None
