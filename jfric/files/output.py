"""Result files: the trajectory (CSV or Parquet) and its JSON sidecar."""

from __future__ import annotations

import csv
import functools
import json
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from jfric.errors import require_one_of, writing
from jfric.optional import import_package
from jfric.results.columns import column_units
from jfric.results.solution import Solution, reached_time
from jfric.results.status import Status, flags_in
from jfric.system.problem import Problem

FORMATS = ("csv", "parquet")


def reserve(
    directory: Path, stem: str = "run", ending: str = ".json", *, folder: bool = False
) -> Path:
    """Reserve the next free name ``<directory>/<stem>-NNN.json``, or with another ``ending``, and
    return it.

    The file, or the ``folder``, is created at once, so that two runs never take the same name;
    results that exist are never overwritten.
    """
    with writing("--out", directory):
        directory.mkdir(parents=True, exist_ok=True)
        number = 1 + max((_number(p, stem) for p in directory.glob(f"{stem}-*")), default=0)
        while True:
            path = directory / f"{stem}-{number:03d}{ending}"
            try:
                path.mkdir() if folder else path.touch(exist_ok=False)
                return path
            except FileExistsError:
                number += 1


def _number(path: Path, stem: str) -> int:
    digits = path.stem.removeprefix(f"{stem}-")
    return int(digits) if digits.isdigit() else 0


def write_trajectory(path: Path, table: dict[str, np.ndarray], units: dict[str, str]) -> None:
    """Write the columns; the ending of ``path`` chooses CSV or Parquet."""
    if path.suffix == ".parquet":
        _write_parquet(path, table, units)
        return
    with path.open("x", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(table)
        writer.writerows(
            [x if isinstance(x, str) else repr(float(x)) for x in row]
            for row in zip(*table.values(), strict=True)
        )


def require_format(name: str) -> None:
    """Raise :class:`ProblemError` for a format that cannot be written."""
    require_one_of("--format", name, FORMATS)
    if name == "parquet":
        import_pyarrow()


def import_pyarrow() -> Any:
    """The module pyarrow; raises an error on how to install it if it is missing."""
    found = import_package("pyarrow", "--format: parquet", "parquet")
    import_package("pyarrow.parquet", "--format: parquet", "parquet")
    return found


def _write_parquet(path: Path, table: dict[str, np.ndarray], units: dict[str, str]) -> None:
    pa = import_pyarrow()
    arrays, fields = [], []
    for name, values in table.items():
        array = pa.array(values.tolist() if values.dtype == object else values)
        arrays.append(array)
        fields.append(pa.field(name, array.type, metadata={"unit": units.get(name, "")}))
    with path.open("xb") as file:
        pa.parquet.write_table(pa.table(arrays, schema=pa.schema(fields)), file)


@functools.cache
def versions() -> dict[str, str]:
    """Versions of the programs that computed a result."""
    result = {"python": platform.python_version()}
    for package in ("jfric", "jax", "jaxlib", "diffrax", "equinox", "numpy"):
        try:
            result[package] = version(package)
        except PackageNotFoundError:
            result[package] = "unknown"
    return result


def sidecar(problem: Problem, solution: Solution, **extra: Any) -> dict[str, Any]:
    """Data stored next to a trajectory: units, outcome, events, versions, and ``extra``."""
    status = Status(int(solution.status))
    return {
        "units": column_units(problem, solution),
        "status": {
            "code": status.name.lower(),
            "message": status.message,
            "flags": [str(flag.name).lower() for flag in flags_in(int(solution.flags))],
            "steps": int(solution.steps),
        },
        "reached": reached_time(solution),
        "event_count": int(solution.events.count),
        "events": solution.event_table(),
        "versions": versions(),
        **extra,
    }


def as_json(content: Any) -> str:
    """Text of ``content``; arrays become lists, infinities and NaN become strings."""
    return json.dumps(_plain(content), indent=2, allow_nan=False)


def write_json(path: Path, content: Any) -> None:
    """Write ``content`` as the text of :func:`as_json`."""
    path.write_text(as_json(content) + "\n", "utf-8")


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if isinstance(value, (bool, int, str)) or value is None:
        return value
    if isinstance(value, float):
        return value if np.isfinite(value) else str(value)
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    return str(value)
