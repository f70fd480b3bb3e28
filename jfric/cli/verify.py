"""``jfric verify``: comparison with published values."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from jfric.cli import options
from jfric.cli.app import answer, command, tell
from jfric.cli.interrupt import kept
from jfric.cli.options import argument, setting
from jfric.errors import require_one_of, writing

if TYPE_CHECKING:
    from jfric.verification.result import Result


@dataclass(frozen=True, kw_only=True)
class VerifySettings:
    """Settings of ``jfric verify``."""

    paths: list[Path] | None = argument(
        "Your own files or folders; without any, the shipped list.",
        metavar="PATH",
        show_default=False,
    )
    case: list[str] | None = setting(
        "Only the cases of this name ('janovsky*' for all that match). Repeatable.",
        metavar="NAME",
    )
    flow: options.Flow = None
    kernel: str | None = setting(
        "Only what this form of the event-driven computation can run, with it: general, lowered or "
        "one-dof; all: with every form that can run a case, and these must agree.",
        metavar="NAME",
    )
    option: options.Options = None
    json_: options.Json = False
    junit: Path | None = setting("Also write JUnit XML.", metavar="FILE")


@command(
    "Simulate",
    epilog="Examples: jfric verify | jfric verify --case 've0116*' --json | "
    "jfric verify my/configs --junit report.xml",
)
def verify(given: VerifySettings) -> bool:
    """Compare with published values: the shipped cases, or every \\[\\[check]] in your
    files.

    Exit status: 0, 1 where a check fails or one of several files is refused, 2 for bad input.
    """
    started = time.perf_counter()
    remarks: list[str] = []
    results = _results(given, remarks)
    seconds = time.perf_counter() - started
    if given.junit is not None:
        from jfric.verification.result import write_junit

        with writing("--junit", given.junit):
            write_junit(given.junit, results, seconds)
    for sentence in remarks:
        typer.echo(sentence, err=True)
    answer([r.as_dict() for r in results])
    _print(results, seconds)
    return all(r.passed for r in results)


def _results(given: VerifySettings, remarks: list[str]) -> list[Result]:
    """All checks; sentences on omitted ones go to ``remarks``."""
    from jfric.files.solver_choice import FLOWS, parse_options
    from jfric.sweeps.progress import Progress
    from jfric.verification.runner import verify as run_checks

    words = parse_options(given.option or [], flow=given.flow, kernel=given.kernel)
    flow, kernel = words.pop("flow", None), words.pop("kernel", None)
    if flow is not None:
        require_one_of("flow", flow, FLOWS)
    reached = [0, 0]

    def show(done: int, total: int, name: str) -> None:
        reached[:] = done, total
        bar.show(done, total, name)

    with kept(lambda: _kept(*reached)), Progress(0, stage="reading") as bar:
        return run_checks(
            given.paths or None,
            case=given.case,
            flow=flow,
            kernel=kernel,
            options=words,
            progress=show,
            remark=remarks.append,
            processes=None,
        )


def _print(results: list[Result], seconds: float) -> None:
    from jfric.verification.result import failures_shown, verification_shown

    failed = sum(not r.passed for r in results)
    tell(verification_shown(results))
    if failed:
        tell(failures_shown(results))
    count = len({r.case for r in results})
    cases = "1 case" if count == 1 else f"{count} cases"
    passed = f"{len(results) - failed} of {len(results)} checks passed"
    tell(f"{passed}, {cases}, {seconds:.1f} s", "bold red" if failed else "bold green")


def _kept(done: int, total: int) -> str:
    """Sentence on an interruption: an incomplete verification is worthless, so nothing is kept."""
    return f"interrupted after {done} of {total} runs; results are kept only of all of them"
