"""Translation of the options of a command into a fit."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jfric.errors import ProblemError, within

if TYPE_CHECKING:
    from jfric.files.config import Config
    from jfric.fits.data.experiment import Experiment
    from jfric.fits.fit_result import FitResult
    from jfric.fits.free import Free
    from jfric.fits.hierarchical import HierarchicalFit
    from jfric.fits.minimise import Watch

RESIDUALS = ("output", "input", "windows", "both", "inverse", "steady", "joints")
WORDS = ("log", "linear", "each", "varies")


def parse_free(config: Config, texts: Sequence[str]) -> dict[str, Free]:
    """``PATH=LOW:HIGH``, with ``:log`` or ``:linear`` for the scale, ``:each`` for a value in each
    record, ``:varies`` for values around a common mean; bounds may carry units."""
    from jfric.fits.free import Free, full_path

    found: dict[str, Free] = {}
    for text in texts:
        path, equals, rest = text.partition("=")
        parts = [p.strip() for p in rest.split(":")]
        bounds, words = [p for p in parts if p not in WORDS], [p for p in parts if p in WORDS]
        if not equals or not path.strip() or len(bounds) != 2:
            raise ProblemError(
                f"--free: found {text!r}, expected PATH=LOW:HIGH such as friction.mu=0.01:1, with "
                ":linear or :log for the scale, :each for a value in each record and :varies for "
                "values around a common mean"
            )
        path = full_path(config.problem, path.strip())
        if path in found:
            raise ProblemError(f"--free: found {path!r} twice")
        low, high = (_bound(config, path, b) for b in bounds)
        scale = next((w for w in words if w in ("log", "linear")), "log" if low > 0 else "linear")
        with within(f"--free {path}: "):
            found[path] = Free(
                low,
                high,
                scale=scale,  # pyright: ignore
                per_experiment="each" in words,
                varies="varies" in words,
            )
    return found


def _bound(config: Config, path: str, text: str) -> float:
    from jfric.files.settings_tables import free_dimension
    from jfric.system.units import UnitError, to_si

    with within(f"--free {path}: ", UnitError, TypeError):
        value = to_si(text, free_dimension(config.problem, path))
        return float(value)  # pyright: ignore[reportArgumentType]


def free_of(config: Config, texts: Sequence[str] | None, *, required: bool) -> dict[str, Free]:
    """Free parameters by path: from the options ``--free``, else from the table ``[fit]``."""
    from jfric.fits.free import Free, full_path

    if texts:
        return parse_free(config, texts)
    found = {}
    for path, item in config.fit.get("free", {}).items():
        with within(f"fit.free.{path}: "):
            found[full_path(config.problem, path)] = Free(**item)
    if required and not found:
        raise ProblemError(
            "--free: missing, such as --free friction.mu=0.01:1, or a table [fit.free] in the file"
        )
    return found


def read_records(config: Config, files: Sequence[Path]) -> list[Experiment]:
    """The records in the files, which must be about as long as the simulated time of the system."""
    from jfric.fits.data.measured_files import read_experiments
    from jfric.fits.plausibility import require_span

    experiments = read_experiments(config, files)
    if config.data is None or config.data.time is not None:
        for experiment in experiments:
            require_span(config, experiment)
    return experiments


def run_fit(
    config: Config,
    files: Sequence[Path],
    free: dict[str, Free],
    *,
    residual: str = "output",
    window: float | None = None,
    states: str | None = None,
    observe: Sequence[str] | None = None,
    search: str = "starts",
    schedule: Sequence[float] | None = None,
    starts: int = 8,
    hold: str = "zero",
    loss: str = "linear",
    seed: int = 0,
    watch: Watch | None = None,
) -> FitResult | HierarchicalFit:
    """The fit that the command describes, hierarchical if a parameter varies from run to run.
    ``watch`` as for :func:`jfric.fit`."""
    from jfric.fits.fit_result import fit
    from jfric.fits.recipe import from_words
    from jfric.fits.residuals import Outputs, sampled_or_whole
    from jfric.fits.sampled_model import in_loop

    experiments = read_records(config, files)
    if config.data is not None and config.data.time is None:
        # Rows without times are steady states, whatever the option says.
        residual = "steady"
    words = dict(residual=residual, window=window, states=states, controller=config.controller,
                 loss=loss, search=search, schedule=schedule)  # fmt: skip
    options: dict[str, Any] = from_words(words)
    options |= dict(observe=observe, starts=starts, seed=seed, hold=hold, watch=watch)
    model: Any = config.problem
    if isinstance(options["residual"], Outputs):
        opened, records = in_loop(config.problem, experiments)
        found = sampled_or_whole(opened, records, hold=hold)
        model, experiments = (model, experiments) if found is opened else (found, records)
    if any(item.varies for item in free.values()):
        from jfric.fits.hierarchical import fit_hierarchical

        return fit_hierarchical(model, experiments, free, **options)
    return fit(model, experiments, free, **options)
