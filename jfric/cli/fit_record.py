"""A fit as JSON: its input, its results, and the data needed to repeat it."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jfric.cli.kept_results import write_json
from jfric.errors import ProblemError
from jfric.figures.style import some_rows
from jfric.files.output import versions
from jfric.fits.free import Free

if TYPE_CHECKING:
    from jfric.files.config import Config
    from jfric.fits.fit_result import FitResult
    from jfric.fits.uncertainty.posterior import Posterior
    from jfric.system.problem import Problem

#: Parameters whose profiles are kept, points of each, and samples of a posterior.
MAX_PROFILES, POINTS, MAX_SAMPLES = 8, 9, 1_000


def fit_record(
    result: FitResult,
    config: Config,
    files: Sequence[Path],
    free: Mapping[str, Free],
    options: Mapping[str, Any],
    **extra: Any,
) -> dict[str, Any]:
    """Record of a fit: configuration as TOML, files with checksums, free parameters, options and
    seed, versions; values with errors and intervals; starts; measured and predicted samples."""
    from jfric.files.write_toml import dump

    covariance = result.covariance()
    intervals = covariance.intervals()
    errors = covariance.standard_errors
    return {
        "title": config.title,
        "source": config.source,
        "config": dump(config),
        "config_path": config.path,
        "data": sources(config, files),
        "free": {path: dataclasses.asdict(item) for path, item in free.items()},
        "options": dict(options),
        "seed": result.seed,
        "versions": versions(),
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


def _series(result: FitResult, problem: Problem) -> list[dict[str, Any]]:
    """Measured and predicted samples of all signals of all records, with their units."""
    from jfric.fits.fit_result import series

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


def profiles(result: FitResult) -> dict[str, dict[str, np.ndarray]]:
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
    from jfric.results.signals import look_up
    from jfric.system.naming import find_path, path_dimension

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
    from jfric.files.output import reserve

    path = given.out or reserve(Path("results") / given.config.stem, kind)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_json(path, record)
    except OSError as error:
        raise ProblemError(f"--out: cannot write {path} ({error.strerror})") from None
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
