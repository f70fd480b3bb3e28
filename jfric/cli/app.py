"""The application, and what its commands share: options, errors, progress."""

from __future__ import annotations

import contextlib
import functools
import inspect
import shlex
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from jfric.cli.completion import parameter_paths
from jfric.cli.interrupt import INTERRUPTED, say
from jfric.errors import ProblemError, first_line, quoted
from jfric.files.solver_choice import SOLVERS

app = typer.Typer(
    name="jfric",
    help="Exact simulation of dry friction, gaps and impacts, from a TOML file.",
    epilog="Examples: jfric run configs/ve0116.toml --plot | jfric show configs/ve0116.toml | "
    "jfric verify",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

#: Words of the command that is running.
_words: ContextVar[list[str]] = ContextVar("_words", default=[])  # noqa: B039

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
    typer.Option(help="Measured file: .csv, .parquet, .npz or .mat. Repeatable."),
]
Flow = Annotated[
    str | None,
    typer.Option(help="Flow between events: auto, exact or runge-kutta.", metavar="NAME"),
]
Rtol = Annotated[float | None, typer.Option(help="Relative tolerance of the runge-kutta flow.")]
ResultFolder = Annotated[
    Path | None,
    typer.Option(help="Folder of the result files, instead of results/<name of the file>."),
]
Plot = Annotated[bool, typer.Option("--plot", help="Also write a figure (PNG).")]

SolverName = Annotated[
    str | None,
    typer.Option("--solver", help=f"Solver: {', '.join(SOLVERS)}.", metavar="NAME"),
]
Options = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=VALUE",
        help="A setting of the solver, in SI units (width=1e-3, method=kvaerno5). Repeatable.",
    ),
]


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        others = ", ".join(f"{name} {version(name)}" for name in ("jax", "jaxlib", "diffrax"))
        typer.echo(f"jfric {version('jfric')} ({others})")
        raise typer.Exit


def _print_devices(wanted: bool) -> None:
    if wanted:
        import jax

        found = jax.devices()
        kind = f" ({found[0].device_kind})" if found[0].device_kind != found[0].platform else ""
        typer.echo(f"{len(found)} {found[0].platform}{kind}")
        raise typer.Exit


@app.callback()
def _begin(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the versions.", callback=_print_version, is_eager=True
        ),
    ] = False,
    devices: Annotated[
        bool,
        typer.Option(
            "--devices",
            help="Print the devices that JAX finds: processors or GPUs.",
            callback=_print_devices,
            is_eager=True,
        ),
    ] = False,
) -> None:
    """Nothing: help and typing errors come before JAX is loaded."""


def set_up() -> None:
    """Settings of JAX, before a command computes anything."""
    import jax

    from jfric.numerics.compilation import collect_seldom, compile_quickly, use_compilation_cache

    jax.config.update("jax_enable_x64", True)
    compile_quickly()
    collect_seldom()
    use_compilation_cache()


def one_sentence(command: Callable[..., None]) -> Callable[..., None]:
    """A command with JAX set up, and bad input as one sentence on standard error, exit status 2.

    Exit status 1 is for what this machine cannot compute, 130 for what an interruption left.
    """

    @functools.wraps(command)
    def wrapped(*args: Any, context: typer.Context, **kwargs: Any) -> None:
        _words.set(_called_as(context))
        try:
            set_up()
            command(*args, **kwargs)
        except KeyboardInterrupt as error:
            say(error)
            raise typer.Exit(INTERRUPTED) from None
        except ProblemError as error:
            _end(2, str(error))
        except BrokenPipeError:
            raise  # nobody reads on: typer ends quietly
        except OSError as error:
            _end(2, f"cannot use {quoted(str(error.filename))} ({error.strerror})")
        except MemoryError:
            _end(1, "not enough memory; ask for fewer outputs, events or trajectories")
        except RuntimeError as error:
            if not _is_of_the_compiler(error):
                raise
            _end(1, f"the program cannot be compiled or run on this machine: {first_line(error)}")

    # The context is asked of typer beside what the command takes.
    signature, kind = inspect.signature(command, eval_str=True), inspect.Parameter.KEYWORD_ONLY
    context = inspect.Parameter("context", kind, annotation=typer.Context)
    parameters = [*signature.parameters.values(), context]
    wrapped.__signature__ = signature.replace(parameters=parameters)  # pyright: ignore
    wrapped.__annotations__ = command.__annotations__ | {"context": typer.Context}
    return wrapped


def called() -> str:
    """The command as it was called, defaults left out; empty outside of one."""
    return shlex.join(_words.get())


def _called_as(context: typer.Context) -> list[str]:
    words = ["jfric", str(context.info_name)]
    for parameter in context.command.params:
        name = parameter.name or ""
        source = context.get_parameter_source(name)
        if source is None or source.name != "COMMANDLINE":
            continue
        given = context.params[name]
        for value in given if isinstance(given, (list, tuple)) else [given]:
            if parameter.param_type_name == "option":
                words += (parameter.secondary_opts if value is False else parameter.opts)[:1]
            words += [] if isinstance(value, bool) else [str(value)]
    return words


def _end(code: int, sentence: str) -> NoReturn:
    typer.echo(f"jfric: {sentence}", err=True)
    raise typer.Exit(code) from None


def _is_of_the_compiler(error: RuntimeError) -> bool:
    import jax

    return isinstance(error, jax.errors.JaxRuntimeError)


@contextlib.contextmanager
def status(text: str) -> Iterator[Callable[[str], None]]:
    """A spinner with the time on standard error, on a terminal, while something takes long of
    which no part can be told."""
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    terminal = Console(stderr=True)
    columns = SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn()
    disabled = not terminal.is_terminal
    with Progress(*columns, console=terminal, transient=True, disable=disabled) as spinner:
        task = spinner.add_task(text, total=None)
        yield lambda stage: spinner.update(task, description=f"{text}: {stage}")


def console() -> Any:
    """Where results are printed."""
    from rich.console import Console

    terminal = Console(highlight=False)
    # Files and pipes have no width: do not fold tables to 80 columns there.
    return terminal if terminal.is_terminal else Console(highlight=False, width=160)
