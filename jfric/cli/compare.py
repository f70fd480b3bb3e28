"""``jfric compare``: friction laws judged on data held out from their fits."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from jfric.cli import options
from jfric.cli.app import command, status, tell, wrote
from jfric.cli.kept_results import write_page
from jfric.cli.loading import load_changed
from jfric.cli.options import setting
from jfric.cli.run_fit import free_of, read_records
from jfric.cli.values import to_seconds
from jfric.errors import ProblemError


@dataclass(frozen=True, kw_only=True)
class CompareSettings(options.OnSystem):
    """Settings of ``jfric compare``."""

    data: options.Measured = None
    free: list[str] | None = setting(
        "What is free in every law in addition to its own coefficients, PATH=LOW:HIGH. "
        "Repeatable; the table fit of the file unless given.",
        metavar="PATH=LOW:HIGH",
        paths=True,
    )
    law: list[str] | None = setting(
        "One of the laws that are compared: viscous, Coulomb, 'Coulomb + viscous', asymmetric, "
        "Stribeck, load-dependent, curve, position (with --period), or with memory: Jenkins, Dahl, "
        "Bouc-Wen, LuGre. Repeatable; all without memory unless given.",
        metavar="NAME",
    )
    criterion: list[str] | None = setting(
        "What laws are judged by: 'closed loop', 'inverse dynamics', windows, 'open loop'. "
        "Repeatable; all that the records allow unless given.",
        metavar="NAME",
    )
    fitted_to: str | None = setting(
        "The criterion that is minimised; 'closed loop and windows' where there is a controller "
        "without an integral, 'closed loop' with one, else windows.",
        metavar="NAME",
    )
    folds: int | None = setting(
        "Pieces of every record that are left out in turns; whole records, or four pieces of fewer "
        "than three, unless given.",
    )
    lap: str | None = setting("Leave out pieces of this length.", metavar="TIME")
    window: str | None = setting("Length of the windows, 1 s unless given.", metavar="TIME")
    period: float | None = setting(
        "Length along the way after which friction repeats itself, in m or rad.",
    )
    hold: options.Hold = "zero"
    starts: int = setting("Starts of the optimiser for each fit.", 1)
    out: Path | None = setting("Result (JSON), instead of results/<name>/compare-NNN.json.")
    report: Path | None = setting("Also write a page with the figure.", metavar="FILE.html")


@command(
    "Identify",
    epilog="Example: jfric compare axis.toml --data run.csv --free mass.m=1:10 --folds 4",
)
def compare(given: CompareSettings) -> bool:
    """Compare laws of friction on what they were not fitted to.

    Exit status: 0 where a law is recommended, 1 where none can be, 2 for bad input.
    """
    if not given.data:
        raise ProblemError("--data: missing, such as --data record.csv")
    from jfric.cli.fit_record import sources, write_record
    from jfric.files.output import versions
    from jfric.files.write_toml import dump
    from jfric.fits.comparison.compare_laws import compare_laws

    chosen = load_changed(given).opened()
    free = free_of(chosen, given.free, required=False)
    records = read_records(chosen, given.data)
    with status(given.config.stem) as announce:
        result = compare_laws(
            chosen.problem,
            records,
            free,
            laws=given.law,
            criteria=given.criterion,
            fitted_to=given.fitted_to,
            folds=given.folds,
            lap=to_seconds(given.lap, "--lap"),
            window=to_seconds(given.window, "--window"),
            controller=chosen.controller,
            period=given.period,
            hold=given.hold,
            starts=given.starts,
            announce=announce,
        )
    record = {
        "title": chosen.title,
        "source": chosen.source,
        "config": dump(chosen),
        "config_path": chosen.path,
        "data": sources(chosen, given.data),
        "versions": versions(),
        **result.to_dict(),
    }
    if result.fitted is not None:
        record["recommended_config"] = dump(replace(chosen, problem=result.fitted.problem))
    path = write_record(given, "compare", record)
    if given.report is not None:
        from jfric.figures.view.fit_view import comparison_page

        write_page(given.report, comparison_page(record, path.stem), "--report")
    tell(chosen.name, "bold")
    tell(str(result), whole=True)
    for file in filter(None, (path, given.report)):
        wrote(file)
    return result.recommended is not None
