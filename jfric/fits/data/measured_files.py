"""Measured records from CSV, Parquet, ``.npz`` and ``.mat`` files."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jfric.errors import ProblemError, first_line, nearest
from jfric.files.config import Column, Config, Measured
from jfric.files.read_toml import load_config
from jfric.fits.data.experiment import Experiment
from jfric.fits.data.mat import read_mat

SUFFIXES = (".csv", ".parquet", ".npz", ".mat")


def read_experiments(
    config: str | os.PathLike[str] | Config, files: str | Path | Sequence[str | Path]
) -> list[Experiment]:
    """The records in ``files``, their columns mapped as the table ``[data]`` of ``config`` says.

    Raises :class:`jfric.ProblemError` for files, columns and lengths that do not fit.
    """
    chosen = config if isinstance(config, Config) else load_config(config)
    if chosen.data is None:
        raise ProblemError(
            f"{chosen.path}: data: missing; give the columns of the files, such as [data] time = "
            '"t" and [data.y] u = {column = "position", unit = "mm"}'
        )
    paths = [files] if isinstance(files, str | Path) else list(files)
    found = [e for path in paths for e in _experiments(chosen.data, Path(path))]
    if not found:
        raise ProblemError(f"data.records: no record matches {chosen.data.records!r}")
    return found


def read_columns(path: Path) -> dict[str, np.ndarray]:
    """All columns of a file by name."""
    if path.suffix not in SUFFIXES:
        raise ProblemError(f"{path}: found {path.suffix!r}, allowed are {', '.join(SUFFIXES)}")
    if not path.is_file():
        raise ProblemError(f"{path}: no such file")
    try:
        if path.suffix == ".csv":
            return _csv(path)
        if path.suffix == ".parquet":
            return _parquet(path)
        if path.suffix == ".npz":
            with np.load(path, allow_pickle=False) as content:
                return {name: content[name] for name in content.files}
        return read_mat(path)
    except ProblemError:
        raise
    except Exception as error:  # whatever the reader of a format says of a damaged file
        raise ProblemError(f"{path}: cannot read it ({first_line(error)})") from None


def _csv(path: Path) -> dict[str, np.ndarray]:
    import csv

    with path.open(newline="", encoding="utf-8-sig") as file:
        first = file.readline()
        delimiter = max(",;\t", key=first.count)
        header = [name.strip() for name in next(csv.reader([first], delimiter=delimiter), [])]
        rows = [row for row in csv.reader(file, delimiter=delimiter) if row]
    if len(set(header)) != len(header) or not all(header):
        raise ProblemError(f"{path}: the first line must name every column once")
    short = next((i for i, row in enumerate(rows, 2) if len(row) != len(header)), None)
    if short is not None:
        raise ProblemError(f"{path}: line {short} does not have {len(header)} entries")
    if not rows:
        raise ProblemError(f"{path}: found no samples below the header")
    columns = {}
    for name, entries in zip(header, zip(*rows, strict=True), strict=True):
        try:
            columns[name] = np.array([float(x) if x.strip() else np.nan for x in entries])
        except ValueError:
            columns[name] = np.array(entries)  # text: an error where it is asked for
    return columns


def _parquet(path: Path) -> dict[str, np.ndarray]:
    try:
        import pyarrow.parquet as pq
    except ImportError as error:
        raise ProblemError(
            f"{path}: parquet needs pyarrow, which is not installed (pip install jfric[parquet])"
        ) from error
    table = pq.read_table(path)
    return {name: table[name].to_numpy() for name in table.column_names}


def _experiments(data: Measured, path: Path) -> list[Experiment]:
    columns = read_columns(path)
    if data.records is None:
        return [_experiment(data, columns, path, path.stem)]
    names = dict.fromkeys(key.partition("/")[0] for key in columns if "/" in key)
    return [
        _experiment(data, _of(columns, name), path, name)
        for name in names
        if fnmatch.fnmatchcase(name, data.records)
    ]


def _of(columns: Mapping[str, np.ndarray], record: str) -> dict[str, np.ndarray]:
    start = f"{record}/"
    return {k.removeprefix(start): v for k, v in columns.items() if k.startswith(start)}


def _experiment(data: Measured, columns, path: Path, name: str) -> Experiment:
    where = f"{path}" if data.records is None else f"{path}, {name}"
    t = _times(data, columns, where)
    # Rounding of written times must not decide whether a sample is inside.
    slack = 1e-9 * (np.ptp(t) if t.size else 0.0)
    inside = np.ones(t.shape, bool)
    if data.start is not None:
        inside &= t >= data.start - slack
    if data.end is not None:
        inside &= t <= data.end + slack
    if not np.any(inside):
        raise ProblemError(
            f"{where}: no sample lies between data.start and data.end; times are from "
            f"{t.min():g} s to {t.max():g} s"
        )
    groups: dict[str, Any] = {"y": {}, "u": {}}
    for letter, group in groups.items():
        for quantity, column in getattr(data, letter).items():
            field = f"data.{letter}.{quantity}"
            values = _values(columns, column, field, where)
            if values.shape != t.shape:
                first = data.time or next(iter(data.y.values()))
                raise ProblemError(
                    f"{where}: {field}: column {column.name!r} has {values.size} samples, "
                    f"column {first.name!r} has {t.size}; must be as many"
                )
            group[quantity] = values[inside]
    missing = {k: np.isfinite(v) for k, v in groups["y"].items()}
    mask = None if all(m.all() for m in missing.values()) else missing
    try:
        return Experiment(t[inside], groups["u"], groups["y"], mask=mask, meta={"name": name})
    except ProblemError as error:
        raise ProblemError(f"{where}: {error}") from None


def _times(data: Measured, columns, where: str) -> np.ndarray:
    """Times of the samples; numbers of the rows where they are steady states."""
    if data.time is not None:
        return _values(columns, data.time, "data.time", where)
    name, column = next(iter(data.y.items()))
    return np.arange(_values(columns, column, f"data.y.{name}", where).size, dtype=float)


def _values(columns, column: Column, field: str, where: str) -> np.ndarray:
    if column.name not in columns:
        raise ProblemError(
            f"{where}: {field}: no column {column.name!r}{nearest(column.name, columns)}; there "
            f"are {', '.join(columns)}"
        )
    values = np.asarray(columns[column.name])
    if values.ndim != 1 or values.dtype.kind not in "fiub":
        kind = "text" if values.dtype.kind in "USO" else f"an array of shape {values.shape}"
        raise ProblemError(
            f"{where}: {field}: column {column.name!r} holds {kind}, needs one number per sample"
        )
    found = column.factor * values.astype(float) + column.offset
    if np.any(np.isinf(found)):
        i = int(np.argmax(np.isinf(found)))
        raise ProblemError(
            f"{where}: {field}: column {column.name!r} holds {found[i]} at sample {i}, samples "
            "must be finite; leave those that are missing empty"
        )
    return found
