"""The application, and the common parts of its commands: options, errors, progress."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
import re
import shlex
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import Annotated, Any, NoReturn, TypeVar, get_args, get_type_hints

import typer

from jfric.cli.interrupt import INTERRUPTED, say
from jfric.errors import ProblemError, first_line, quoted

Work = TypeVar("Work", bound=Callable[..., bool | None])

app = typer.Typer(
    name="jfric",
    help="Exact simulation of dry friction, gaps and impacts, from a TOML file.",
    epilog="Examples: jfric init drive drive.toml | jfric run drive.toml --plot | "
    "jfric show drive.toml | jfric verify",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

#: Styles of words in tables.
COLOURS = {"passed": "green", "FAILED": "bold red"}
#: Words of the running command.
_words: ContextVar[list[str]] = ContextVar("_words", default=[])  # noqa: B039
#: Readers of the output of the running command: people, programs (JSON), or nobody.
_readers: ContextVar[str] = ContextVar("_readers", default="people")


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
            *("--version", "-V"),
            help="Print the versions.",
            callback=_print_version,
            is_eager=True,
            metavar="",
        ),
    ] = False,
    devices: Annotated[
        bool,
        typer.Option(
            "--devices",
            help="Print the devices that JAX finds: processors or GPUs.",
            callback=_print_devices,
            is_eager=True,
            metavar="",
        ),
    ] = False,
) -> None:
    """Nothing: help and typing errors come before JAX is loaded."""


Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.", metavar="")]
Verbose = Annotated[
    bool,
    typer.Option(
        *("--verbose", "-v"),
        help="Also print what is compiled, and the whole traceback of an error.",
        metavar="",
    ),
]


def set_up(verbose: bool = False) -> None:
    """Set up JAX before a command computes anything; ``verbose``: print each compilation."""
    import jax

    from jfric.numerics.compilation import compile_quickly, use_compilation_cache

    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_log_compiles", verbose)
    compile_quickly()
    use_compilation_cache()


def command(group: str, epilog: str) -> Callable[[Work], Work]:
    """Decorator that turns a function of a record of settings into a command with an option per
    field.

    ``group``: the heading of the command in the list of commands. ``epilog``: its examples. The
    decorator sets up JAX, and turns bad input into one sentence on standard error. Exit status: 0,
    1 if the function returns False or this machine cannot compute, 2 for bad input, 130 after an
    interruption.
    """

    def add(work: Work) -> Work:
        given = list(inspect.signature(work, eval_str=True).parameters.values())
        record = given[0].annotation if given else dict
        kind = inspect.Parameter.KEYWORD_ONLY
        # Typer passes the context in addition to the options of the command.
        context = inspect.Parameter("context", kind, annotation=typer.Context)
        common = [
            inspect.Parameter(name, kind, annotation=hint, default=False)
            for name, hint in (("quiet", Quiet), ("verbose", Verbose))
        ]
        parameters = [*(_parameters(record) if given else ()), *common, context]

        @functools.wraps(work)
        def called_by_typer(
            context: typer.Context, quiet: bool, verbose: bool, **words: Any
        ) -> None:
            _words.set(_called_as(context))
            # Elsewhere --json names a file, next to what is printed.
            plain = "nobody" if quiet else "people"
            _readers.set("programs" if words.get("json_") is True else plain)
            with contextlib.nullcontext() if verbose else _one_sentence():
                set_up(verbose)
                ok = work(record(**words)) if given else work()
            raise typer.Exit(0 if ok is not False else 1)

        called_by_typer.__signature__ = inspect.Signature(parameters)  # pyright: ignore
        called_by_typer.__annotations__ = {p.name: p.annotation for p in parameters}
        app.command(
            work.__name__, epilog=epilog, rich_help_panel=group, help=_unwrapped(work.__doc__ or "")
        )(called_by_typer)
        return work

    return add


def _unwrapped(text: str) -> str:
    """A docstring with one line per paragraph, which the terminal wraps at its width."""
    return re.sub(r"(?<!\n)\n(?!\n)", " ", inspect.cleandoc(text))


#: Placeholder for the value of an option in the help, by its type.
_VALUES = {bool: "", int: "N", float: "NUMBER", Path: "PATH"}


def _parameters(record: Any) -> Iterator[inspect.Parameter]:
    """Parameters for typer from the fields of a record, its own before most of its bases."""
    hints = get_type_hints(record, include_extras=True)
    own = inspect.get_annotations(record)
    fields = dataclasses.fields(record)
    first = {"config": 0, "set_": 1}
    for field in sorted(fields, key=lambda x: (first.get(x.name, 2), x.name not in own)):
        info = field.metadata.get("typer")
        hint = hints[field.name] if info is None else Annotated[hints[field.name], info]
        kind, *about = get_args(hint)
        kinds = [kind, *get_args(kind), *(x for part in get_args(kind) for x in get_args(part))]
        shown = [_VALUES[x] for x in kinds if x in _VALUES]
        if about[-1].metavar is None and shown:
            about[-1].metavar = shown[0]
        required = field.default is dataclasses.MISSING
        default = inspect.Parameter.empty if required else field.default
        kind = inspect.Parameter.KEYWORD_ONLY
        yield inspect.Parameter(field.name, kind, annotation=hint, default=default)


@contextlib.contextmanager
def _one_sentence() -> Iterator[None]:
    """Block that ends a command with one sentence for bad input or a failure of the machine."""
    try:
        yield
    except KeyboardInterrupt as error:
        say(error)
        raise typer.Exit(INTERRUPTED) from None
    except ProblemError as error:
        _end(2, str(error))
    except BrokenPipeError:
        raise  # the reader of the output is gone: typer ends quietly
    except OSError as error:
        _end(2, f"cannot use {quoted(str(error.filename))} ({error.strerror})")
    except MemoryError:
        _end(1, "not enough memory; ask for fewer outputs, events or trajectories")
    except RuntimeError as error:
        import jax

        if not isinstance(error, jax.errors.JaxRuntimeError):
            raise
        _end(1, f"the program cannot be compiled or run on this machine: {first_line(error)}")


def called() -> str:
    """The command line of this call without defaults; empty outside of a command."""
    return shlex.join(_words.get())


def _called_as(context: typer.Context) -> list[str]:
    words = ["jfric", str(context.info_name)]
    for parameter in context.command.params:
        name = parameter.name or ""
        source = context.get_parameter_source(name)
        if name in ("quiet", "verbose") or (name == "json_" and context.params[name] is True):
            continue  # the result does not depend on these options
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


@contextlib.contextmanager
def status(text: str, stage: str = "") -> Iterator[Callable[[str], None]]:
    """A spinner with the time on standard error, on a terminal, for a task of unknown length;
    ``stage``: its first one."""
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    terminal = Console(stderr=True)
    columns = SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn()
    disabled = not terminal.is_terminal
    with Progress(*columns, console=terminal, transient=True, disable=disabled) as spinner:
        task = spinner.add_task(f"{text}: {stage}" if stage else text, total=None)
        yield lambda stage: spinner.update(task, description=f"{text}: {stage}")


def console() -> Any:
    """The console for results."""
    from rich.console import Console

    terminal = Console(highlight=False)
    # Files and pipes have no width: tables are not folded to 80 columns there.
    return terminal if terminal.is_terminal else Console(highlight=False, width=160)


def tell(thing: Any, style: str = "", *, whole: bool = False) -> None:
    """Print a sentence, or the table of a result, for people; ``whole``: without line breaks."""
    if _readers.get() != "people":
        return None
    if isinstance(thing, str):
        return console().print(thing, style=style, markup=False, soft_wrap=whole)
    from jfric.numerics.printing import Shown, shown

    found = thing if isinstance(thing, Shown) else shown(thing)
    console().print(_table(*found), markup=False)


def tell_rows(title: str, columns: Iterable[str], rows: list[tuple[str, ...]]) -> None:
    """Print a table for people; columns as those of :class:`jfric.numerics.printing.Shown`."""
    if _readers.get() == "people":
        console().print(_table(title, columns, rows), markup=False)


def tell_more(count: int, most: int, what: str) -> None:
    """Print how many of ``count`` things are not in a list of at most so many."""
    if count > most:
        tell(f"and {count - most} more {what}".rstrip())


def answer(content: Any) -> None:
    """Print the result of a command as JSON, if a program reads the output."""
    if _readers.get() == "programs":
        from jfric.files.output import as_json

        typer.echo(as_json(content))


def _table(title: str, columns: Iterable[str], rows: Iterable[Any], below: str = "") -> Any:
    """A table as rich prints it."""
    from rich.table import Table
    from rich.text import Text

    table = Table(
        # As Text: of a string above or below a table, brackets would be markup.
        title=Text(title, "bold"),
        title_justify="left",
        caption=Text(below, "table.caption") if below else None,
        caption_justify="left",
        box=None,
        header_style="bold",
        pad_edge=False,
        padding=(0, 2, 0, 0),
    )
    for column in columns:
        name, right = column.removeprefix(">"), column.startswith(">")
        side = "right" if right else "left"
        table.add_column(name, justify=side, overflow="fold", no_wrap=right)
    for row in rows:
        table.add_row(*(Text(cell, COLOURS.get(cell, "")) for cell in row))
    return table


def remarks(sentences: Iterable[str]) -> None:
    """Print sentences on unusual but allowed properties of a result."""
    for sentence in sentences:
        tell(f"mind: {sentence}", "yellow")


def wrote(*files: Path) -> None:
    """Print the names of files that were written."""
    tell("wrote " + ", ".join(map(str, files)), whole=True)
