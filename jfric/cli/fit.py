"""``jfric fit`` and ``jfric compare``: parameters from measured files, and friction laws judged on
data held out from their fits."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from jfric import fits
from jfric.cli import options
from jfric.cli.app import answer, command, status, tell, wrote
from jfric.cli.interrupt import NOTHING, kept
from jfric.cli.kept_results import write_page
from jfric.cli.loading import load_changed, names_in, to_seconds
from jfric.cli.options import argument, setting
from jfric.errors import ProblemError, require_one_of
from jfric.optional import import_plotly
from jfric.sweeps.progress import Progress

if TYPE_CHECKING:
    from jfric.files.config import Config
    from jfric.fits.uncertainty.posterior import Posterior


RESIDUALS = ("output", "input", "windows", "both", "inverse", "steady", "joints")
#: Number of chains of a posterior, which run side by side.
CHAINS = 16
#: Criterion to which a comparison fits its laws, by the residual of the fit.
COMPARED = {
    "input": "closed loop", "windows": "windows", "both": "closed loop and windows",
    "inverse": "inverse dynamics",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class FitSettings:
    """Settings of ``jfric fit``."""

    config: Path | None = argument("TOML file that describes the system.", metavar="CONFIG")
    data: options.Measured = None
    free: list[str] | None = setting(
        "Parameter and its bounds, PATH=LOW:HIGH; :linear or :log chooses the scale, :each a value "
        "for each record, :varies values around a common mean. Repeatable; the table fit of the "
        "file unless given.",
        metavar="PATH=LOW:HIGH",
        paths=True,
    )
    init: Path | None = setting(
        "Print a table \\[data] for this measured file, to be checked, and end: columns, units, "
        "sample rate, what is missing.",
        metavar="FILE",
    )
    set_: options.Settings = None
    residual: str = setting(
        "output: simulated and measured signals; input: force of the controller in closed loop; "
        "windows: short windows with free initial states; both: input and windows together; "
        "inverse: forces that the measured motion needs, without simulation; steady: periodic "
        "motions, for files without a column of times; joints: friction and inertia of a robot "
        "from positions and torques of all joints.",
        "output",
        metavar="NAME",
    )
    window: str | None = setting(
        "Length of the windows: 1 s unless given; of --search shooting an eighth of the record.",
        metavar="TIME",
    )
    states: str | None = setting(
        "Where elements that remember begin: free, steady or given; in windows also followed, with "
        "the measured motion before.",
        metavar="NAME",
    )
    observe: str | None = setting("Signals to compare; all by default.", metavar="NAMES")
    starts: int = setting("Starts of the optimiser.", 8)
    search: str = setting(
        "starts: descents from the best of a sample; global: of a larger one, on growing parts of "
        "the records; shooting: on short windows before that.",
        "starts",
        metavar="NAME",
    )
    schedule: str | None = setting(
        "Lengths of the growing parts, such as '1 s, 5 s'; the whole comes last.",
        metavar="TIMES",
    )
    hold: options.Hold = "zero"
    loss: str = setting("linear, huber, soft_l1 or cauchy.", "linear", metavar="NAME")
    seed: int = setting("Seed of the starts.", 0)
    comparison: bool = setting(
        "Also compare laws of friction on held-out data, as jfric compare does.",
        False,
        name="--compare-laws",
    )
    out: Path | None = setting("Result (JSON), instead of results/<name of the file>/fit-NNN.json.")
    posterior: int = setting("Samples of the posterior to draw (needs jfric\\[bayes]).", 0, min=0)
    report: Path | None = setting("Also write a page with all plots.", metavar="FILE.html")
    json_: options.Json = False


@command(
    "Identify",
    epilog="Example, after jfric init fit: jfric fit fit.toml --data fit.csv "
    "--free friction.limit=0.01:1 --free spring.k=1:100 --report report.html",
)
def fit(given: FitSettings) -> bool | None:
    """Find parameters from measured files, with their uncertainty.

    Exit status: 0, 1 where the fit did not converge, 2 for bad input.
    """
    if given.init is not None:
        return _print_proposal(given.config, given.init)
    data = _required(given)
    from jfric.cli import fit_record
    from jfric.fits.optimise.descents import Outcome

    if given.report is not None:
        import_plotly()
    chosen = load_changed(given)
    if given.residual == "joints":
        return fit_record.fit_joints(given, chosen, data)
    words = _options(given)
    free = fit_record.free_of(chosen, given.free, required=True)
    watch = _Watch()
    with kept(watch.kept):
        with Progress(0) as watch.bar:
            made = fit_record.run_fit(chosen, data, free, seed=given.seed, watch=watch, **words)
        extra: dict[str, Any] = {}
        result = made.fit if isinstance(made, fits.HierarchicalFit) else made
        compared = _compare(given, chosen, data, free) if given.comparison else None
        drawn = None
        if given.posterior:
            drawn = result.sample(-(-given.posterior // CHAINS), seed=given.seed)
        if compared is not None:
            extra["law_comparison"] = compared.to_dict()
        if drawn is not None:
            extra |= {"posterior": drawn.to_dict(), "samples": fit_record.samples(drawn)}
        if isinstance(made, fits.HierarchicalFit):
            extra["hierarchical"] = made.to_dict()
        if given.report is not None:
            extra["profiles"] = fit_record.profiles(result)
        record = fit_record.fit_record(result, chosen, data, free, words, **extra)
        path = fit_record.write_record(given, "fit", record)
        if given.report is not None:
            from jfric.figures.view.fit_view import fit_page, read_fit

            # Of what was written, as `jfric view` makes it.
            write_page(given.report, fit_page(read_fit(path), path.stem), "--report")
    answer(record | {"files": [path, *filter(None, [given.report])]})
    tell(chosen.name, "bold")
    tell(str(made))
    if drawn is not None:
        _print_posterior(drawn)
    if compared is not None:
        tell(f"\n{compared}", whole=True)
    for file in filter(None, (path, given.report)):
        wrote(file)
    return result.outcome == Outcome.CONVERGED


def _required(given: FitSettings) -> list[Path]:
    """The records, which only a proposal may omit, as the file; a wrong residual is refused."""
    if not given.config:
        raise ProblemError("CONFIG: missing, such as system.toml")
    if not given.data:
        raise ProblemError("--data: missing, such as --data record.csv")
    require_one_of("--residual", given.residual, RESIDUALS)
    return given.data


def _options(given: FitSettings) -> dict[str, Any]:
    """Settings of a fit, as its record stores them."""
    schedule = [to_seconds(text, "--schedule") for text in names_in(given.schedule)]
    return {
        "residual": given.residual,
        "window": to_seconds(given.window, "--window"),
        "states": given.states,
        "observe": names_in(given.observe) or None,
        "search": given.search,
        "schedule": schedule or None,
        "starts": given.starts,
        "hold": given.hold,
        "loss": given.loss,
    }


def _compare(
    given: FitSettings, config: Config, data: list[Path], free: dict[str, fits.Free]
) -> fits.LawComparison:
    """Compare friction laws on held-out data, fitted to the residual of the fit."""
    from jfric.cli.fit_record import read_records

    config = config.opened()
    with status(Path(config.path).stem) as announce:
        return fits.compare_laws(
            config.problem,
            read_records(config, data),
            {k: f for k, f in free.items() if not f.per_experiment},
            controller=config.controller,
            fitted_to=COMPARED.get(given.residual),
            window=to_seconds(given.window, "--window"),
            hold=given.hold,
            announce=announce,
        )


def _print_posterior(drawn: Posterior) -> None:
    for name, row in drawn.to_dict().items():
        low, high = row["interval"]
        tell(
            f"posterior of {name}: {row['mean']:.6g} +- {row['standard_deviation']:.2g}, 95 % "
            f"from {low:.6g} to {high:.6g}"
        )
    for remark in drawn.remarks():
        tell(remark)


class _Watch:
    """Progress of a fit, with the best parameters so far."""

    bar: Progress

    def __init__(self) -> None:
        self._best: tuple[float, dict[str, float]] | None = None

    def __call__(
        self, stage: str, iteration: int, most: int, cost: float, values: dict[str, float]
    ) -> None:
        self._best = cost, values
        self.bar.show(iteration, most, f"{stage}, cost {cost:.4g}, iteration")

    def kept(self) -> str:
        if self._best is None:
            return NOTHING
        cost, values = self._best
        found = ", ".join(f"{name} = {value:.6g}" for name, value in values.items())
        return f"{NOTHING}; the best so far, at a cost of {cost:.6g}: {found}"


def _print_proposal(config: Path | None, file: Path) -> None:
    """Print a table ``[data]`` for a file on standard output."""
    from jfric.files.read_toml import load_config
    from jfric.fits.data.proposal import propose

    problem = None if config is None else load_config(config).problem
    typer.echo(propose(file, problem), nl=False)


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
        "One of the laws that are compared: viscous, Coulomb, 'Coulomb + viscous', linear (no "
        "friction, but stiffness, damping and mean), asymmetric, Stribeck, load-dependent, curve, "
        "position (with --period), or with memory: Jenkins, Dahl, Bouc-Wen, LuGre. Repeatable; all "
        "without memory unless given.",
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
    group: list[str] | None = setting(
        "What is left out together: 'file', every record alone; 'excitation', all records of one "
        "kind; or a pattern of names for each group, repeatable. Kinds, if there are several, "
        "unless given.",
        metavar="GROUP",
    )
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
    from jfric.cli.fit_record import free_of, read_records, request, write_record
    from jfric.files.write_toml import dump

    chosen = load_changed(given).opened()
    free = free_of(chosen, given.free, required=False)
    records = read_records(chosen, given.data)
    with status(given.config.stem) as announce:
        result = fits.compare_laws(
            chosen.problem,
            records,
            free,
            laws=given.law,
            criteria=given.criterion,
            fitted_to=given.fitted_to,
            folds=given.folds,
            lap=to_seconds(given.lap, "--lap"),
            groups=given.group,
            window=to_seconds(given.window, "--window"),
            controller=chosen.controller,
            period=given.period,
            hold=given.hold,
            starts=given.starts,
            announce=announce,
        )
    record = request(chosen, given.data) | result.to_dict()
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
