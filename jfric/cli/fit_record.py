"""A fit that a command asks for: from its options, and as JSON with all that repeats it."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jfric import fits
from jfric.cli.app import answer, status, tell, wrote
from jfric.cli.kept_results import write_json
from jfric.errors import ProblemError, within, writing
from jfric.figures.style import some_rows
from jfric.files.config import Config
from jfric.files.output import reserve, versions
from jfric.files.settings_tables import free_dimension
from jfric.files.write_toml import dump
from jfric.fits.fit_result import series
from jfric.fits.free import Free, full_path
from jfric.fits.minimise import Watch
from jfric.fits.plausibility import require_span
from jfric.fits.recipe import from_words
from jfric.fits.residuals import sampled_or_whole
from jfric.fits.robots.joint_laws import described
from jfric.fits.sampled_model import in_loop
from jfric.fits.uncertainty.posterior import Posterior
from jfric.results.signals import look_up
from jfric.system.naming import find_path, path_dimension
from jfric.system.problem import Problem
from jfric.system.units import UnitError, to_si

WORDS = ("log", "linear", "each", "varies")


def parse_free(config: Config, texts: Sequence[str]) -> dict[str, fits.Free]:
    """``PATH=LOW:HIGH``, with ``:log`` or ``:linear`` for the scale, ``:each`` for a value in each
    record, ``:varies`` for values around a common mean; bounds may carry units."""
    found: dict[str, fits.Free] = {}
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
            found[path] = fits.Free(
                low,
                high,
                scale=scale,  # pyright: ignore
                per_experiment="each" in words,
                varies="varies" in words,
            )
    return found


def _bound(config: Config, path: str, text: str) -> float:

    with within(f"--free {path}: ", UnitError, TypeError):
        value = to_si(text, free_dimension(config.problem, path))
        return float(value)  # pyright: ignore[reportArgumentType]


def free_of(config: Config, texts: Sequence[str] | None, *, required: bool) -> dict[str, fits.Free]:
    """Free parameters by path: from the options ``--free``, else from the table ``[fit]``."""
    if texts:
        return parse_free(config, texts)
    found = {}
    for path, item in config.fit.get("free", {}).items():
        with within(f"fit.free.{path}: "):
            found[full_path(config.problem, path)] = fits.Free(**item)
    if required and not found:
        raise ProblemError(
            "--free: missing, such as --free friction.mu=0.01:1, or a table [fit.free] in the file"
        )
    return found


def read_records(config: Config, files: Sequence[Path]) -> list[fits.Experiment]:
    """The records in the files, which must be about as long as the simulated time of the system."""
    experiments = fits.read_experiments(config, files)
    if config.data is None or config.data.time is not None:
        for experiment in experiments:
            require_span(config, experiment)
    return experiments


def run_fit(
    config: Config,
    files: Sequence[Path],
    free: dict[str, fits.Free],
    *,
    residual: str = "output",
    observe: Sequence[str] | None = None,
    starts: int = 8,
    hold: str = "zero",
    seed: int = 0,
    watch: Watch | None = None,
    **words: Any,
) -> fits.FitResult | fits.HierarchicalFit:
    """The fit that the command describes, hierarchical if a parameter varies from run to run.
    ``watch`` as for :func:`jfric.fit`; ``words``: of the residual and the search."""
    experiments = read_records(config, files)
    if config.data is not None and config.data.time is None:
        # Rows without times are steady states, whatever the option says.
        residual = "steady"
    words |= {"residual": residual, "controller": config.controller}
    options: dict[str, Any] = from_words(words)
    options |= dict(observe=observe, starts=starts, seed=seed, hold=hold, watch=watch)
    model: Any = config.problem
    if isinstance(options["residual"], fits.Outputs):
        opened, records = in_loop(config.problem, experiments)
        found = sampled_or_whole(opened, records, hold=hold)
        model, experiments = (model, experiments) if found is opened else (found, records)
    if any(item.varies for item in free.values()):
        return fits.fit_hierarchical(model, experiments, free, **options)
    return fits.fit(model, experiments, free, **options)


#: Parameters whose profiles are kept, points of each, and samples of a posterior.
MAX_PROFILES, POINTS, MAX_SAMPLES = 8, 9, 1_000


def fit_record(
    result: fits.FitResult,
    config: Config,
    files: Sequence[Path],
    free: Mapping[str, Free],
    options: Mapping[str, Any],
    **extra: Any,
) -> dict[str, Any]:
    """Record of a fit: configuration as TOML, files with checksums, free parameters, options and
    seed, versions; values with errors and intervals; starts; measured and predicted samples."""
    covariance = result.covariance()
    intervals = covariance.intervals()
    errors = covariance.standard_errors
    return {
        **request(config, files),
        "free": {path: dataclasses.asdict(item) for path, item in free.items()},
        "options": dict(options),
        "seed": result.seed,
        "outcome": result.outcome.name.lower(),
        "remarks": [*covariance.remarks(), *result.remarks],
        "cost": result.cost,
        "noise_known": all(e.sigma is not None for e in result.experiments),
        "sigma": dict(result.sigma),
        "method": covariance.method,
        "parameters": {
            name: {
                "value": value,
                # Those of one record have its name in brackets.
                "unit": _unit(config.problem, name.partition("[")[0]),
                "standard_error": errors[name],
                "interval": intervals[name],
                "at_bound": int(result.at_bound[i]),
            }
            for i, (name, value) in enumerate(result.values.items())
        },
        "covariance": covariance.matrix,
        "waterfall": [{**row, "outcome": row["outcome"].name.lower()} for row in result.waterfall],
        **extra,
        # Last, because they are long.
        "series": _series(result, config.problem),
    }


def request(config: Config, files: Sequence[Path]) -> dict[str, Any]:
    """Content common to all records: the system, the measured files, and versions of programs."""
    return {
        "title": config.title,
        "source": config.source,
        "config": dump(config),
        "config_path": config.path,
        "data": sources(config, files),
        "versions": versions(),
    }


def _series(result: fits.FitResult, problem: Problem) -> list[dict[str, Any]]:
    """Measured and predicted samples of all signals of all records, with their units."""
    return [
        {
            "record": s.record,
            "signal": s.signal,
            "unit": _unit(problem, s.signal),
            "t": s.t,
            "measured": s.measured,
            "predicted": s.predicted,
            "spread": s.spread,
            "of": s.dof,
            "of_unit": _unit(problem, s.dof or ""),
            "position": s.position,
            "velocity": s.velocity,
        }
        for s in series(result)
    ]


def profiles(result: fits.FitResult) -> dict[str, dict[str, np.ndarray]]:
    """Profiles of the first parameters that have a finite error, as a record keeps them."""
    matrix = result.covariance().matrix
    known = [n for i, n in enumerate(result.names) if np.isfinite(matrix[i, i])][:MAX_PROFILES]
    found = result.profile(known, points=POINTS) if known else {}
    return {n: {"values": p.values, "deviance": p.deviance} for n, p in found.items()}


def samples(drawn: Posterior) -> dict[str, Any]:
    """Some samples (n, P) of a posterior for a picture, of how many, and what is doubtful."""
    every = drawn.samples.reshape(-1, len(drawn.names))
    some = every[some_rows(len(every), MAX_SAMPLES)]
    return {"count": len(every), "remarks": drawn.remarks(), "values": some}


def _unit(problem: Problem, signal: str) -> str:
    """Unit of a signal; empty for signals that only the data and the fit know."""
    try:
        return str(getattr(look_up(problem, signal)[1], "unit", ""))
    except ProblemError:
        pass
    try:
        dimension = path_dimension(problem, find_path(problem, signal))
    except KeyError:
        return ""
    return "" if dimension is None else dimension.unit


def write_record(given: Any, kind: str, record: Mapping[str, Any]) -> Path:
    """Write a record to the path of the option ``--out``, or to the next free ``KIND-NNN``."""
    path = given.out or reserve(Path("results") / given.config.stem, kind)
    with writing("--out", path):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_json(path, record)
    return path


def sources(config: Config, files: Sequence[Path]) -> list[dict[str, str]]:
    """Measured files with their checksums, and those that ``[data.beside]`` reads with them."""
    found = [{"path": str(p), "sha256": checksum(p)} for p in files]
    beside = config.data and config.data.beside
    if beside:
        others = {p: beside.path(p) for p in files}
        found += [
            {"path": str(q), "sha256": checksum(q), "beside": str(p)} for p, q in others.items()
        ]
    return found


def checksum(path: Path) -> str:
    """SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def fit_joints(given: Any, config: Config, data: Sequence[Path]) -> bool:
    """Print and write the friction of all joints, and the robot with it as a file."""
    if given.free:
        raise ProblemError("--free: found with --residual joints, which chooses its own numbers")
    with status(f"friction of the joints of {Path(config.path).stem}"):
        found = fits.joint_friction(config.problem, read_records(config, data))
    record = _joints_record(found, config, data)
    path = write_record(given, "joints", record)
    robot = path.with_suffix(".toml")
    robot.write_text(dump(found.problem), "utf-8")
    answer(record | {"files": [path, robot]})
    tell(config.name, "bold")
    tell(str(found), whole=True)
    tell(found.numbers())
    wrote(path, robot)
    return True


def _joints_record(
    found: fits.JointFriction, config: Config, data: Sequence[Path]
) -> dict[str, Any]:
    joints = {
        joint: {
            "law": described(law),
            "delay": found.delays[joint],
            "residual": found.residuals[joint],
            "left_out": dict(zip(("none", "plain", "law"), found.left_out[joint], strict=True)),
        }
        for joint, law in found.laws.items()
    }
    return {
        **request(config, data),
        "joints": joints,
        "values": dict(found.values),
        "half_widths": dict(found.half_widths),
        "remarks": list(found.remarks),
    }
