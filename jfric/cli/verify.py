"""``jfric verify``: comparison with published values."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated

import typer

from jfric.cli.app import Flow, Options, app, console, one_sentence
from jfric.cli.interrupt import kept
from jfric.errors import ProblemError


@app.command(
    epilog="Examples: jfric verify | jfric verify --case 've0116*' --json | "
    "jfric verify my/configs --junit report.xml"
)
@one_sentence
def verify(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="PATH",
            help="Your own files or folders; without any, the shipped list.",
            show_default=False,
        ),
    ] = None,
    case: Annotated[
        str | None,
        typer.Option(
            help="Only the cases of this name ('janovsky*' for all that match).", metavar="NAME"
        ),
    ] = None,
    flow: Flow = None,
    kernel: Annotated[
        str | None,
        typer.Option(
            help="Only what this form of the event-driven computation can run, with it: general, "
            "lowered or one-dof; all: with every form that can run a case, and these "
            "must agree.",
            metavar="NAME",
        ),
    ] = None,
    option: Options = None,
    json_: Annotated[bool, typer.Option("--json", help="Print all checks as JSON.")] = False,
    junit: Annotated[
        Path | None, typer.Option(help="Also write JUnit XML.", metavar="FILE")
    ] = None,
) -> None:
    """Compare with published values: the shipped cases, or every \\[\\[check]] in your
    files.

    Exit status: 0, 1 where a check fails or one of several files is refused, 2 for bad input.
    """
    from jfric.cli import report
    from jfric.files.solver_choice import parse_options, require_flow
    from jfric.sweeps.progress import Progress
    from jfric.verification.verify_cases import verify as run_checks

    options = parse_options(option or [], flow=flow, kernel=kernel)
    flow, kernel = options.pop("flow", None), options.pop("kernel", None)
    if flow is not None:
        require_flow(flow)
    started = time.perf_counter()
    remarks: list[str] = []
    reached = [0, 0]

    def show(done: int, total: int, name: str) -> None:
        reached[:] = done, total
        bar.show(done, total, name)

    with kept(lambda: _kept(*reached)), Progress(0, stage="reading") as bar:
        results = run_checks(
            paths or None,
            case=case,
            flow=flow,
            kernel=kernel,
            options=options,
            progress=show,
            remark=remarks.append,
            processes=None,
        )
    seconds = time.perf_counter() - started
    if junit is not None:
        from jfric.verification.junit import write_junit

        try:
            write_junit(junit, results, seconds)
        except OSError as error:
            raise ProblemError(f"--junit: cannot write {junit} ({error.strerror})") from error
    for sentence in remarks:
        typer.echo(sentence, err=True)
    failed = sum(not r.passed for r in results)
    if json_:
        typer.echo(json.dumps([r.as_dict() for r in results], indent=2))
    else:
        terminal = console()
        terminal.print(report.verification_table(results))
        if failed:
            terminal.print(report.failures_table(results))
        count = len({r.case for r in results})
        cases = "1 case" if count == 1 else f"{count} cases"
        terminal.print(
            f"{len(results) - failed} of {len(results)} checks passed, {cases}, {seconds:.1f} s",
            style="bold red" if failed else "bold green",
        )
    raise typer.Exit(1 if failed else 0)


def _kept(done: int, total: int) -> str:
    """Nothing is: a verification that is not whole says nothing."""
    return f"interrupted after {done} of {total} runs; results are kept only of all of them"
