"""Measured records from CSV, Parquet, ``.npz`` and ``.mat`` files."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from jfric.errors import ProblemError, first_line, quoted, within
from jfric.files.config import Beside, Column, Config, Measured
from jfric.files.read_toml import load_config
from jfric.fits.data.cells import Table, is_angle
from jfric.fits.data.experiment import Experiment
from jfric.fits.data.joining import POSITIONS, at_times, first_of_each, join_records, unwrapped
from jfric.fits.data.mat import read_mat
from jfric.fits.data.text_table import read_text
from jfric.system.units import UnitError, dimensions_of, unit_factor

SUFFIXES = (".csv", ".txt", ".tsv", ".dat", ".parquet", ".npz", ".mat")
#: Part of their median by which time steps may differ before a remark says so.
JITTER = 0.01
#: Time of the first sample, in lengths of the record, from which on it is that of a clock: seconds
#: since 1970, or since a machine was switched on.
FAR = 1000.0
#: Step, in medians, from which on it is a gap.
GAP = 1.5


def read_experiments(
    config: str | os.PathLike[str] | Config, files: str | Path | Sequence[str | Path]
) -> list[Experiment]:
    """The records in ``files``, their columns mapped by the table ``[data]`` of ``config``.

    Raises :class:`jfric.ProblemError` for files, columns and lengths that do not fit.
    A file of two columns::

        >>> import pathlib, tempfile
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> columns = '[data]\\ntime = "t"\\n[data.y]\\nu = {column = "position", unit = "mm"}\\n'
        >>> _ = (folder / "block.toml").write_text(jfric.to_toml(problem) + columns)
        >>> _ = (folder / "run.csv").write_text("t,position\\n0.0,0.0\\n0.1,20.0\\n0.2,60.0\\n")
        >>> (record,) = jfric.read_experiments(folder / "block.toml", folder / "run.csv")
        >>> record.name, record.y["u"].tolist()
        ('run', [0.0, 0.02, 0.06])
    """
    chosen = config if isinstance(config, Config) else load_config(config)
    if chosen.data is None:
        raise ProblemError(
            f"{chosen.path}: data: missing; give the columns of the files, such as [data] time = "
            '"t" and [data.y] u = {column = "position", unit = "mm"}; jfric fit FILE --init DATA '
            "prints such a table"
        )
    paths = [files] if isinstance(files, str | Path) else list(files)
    found = [e for path in paths for e in _experiments(chosen.data, Path(path))]
    if not found:
        raise ProblemError(f"data.records: no record matches {chosen.data.records!r}")
    for pattern in chosen.data.known:
        if not any(fnmatch.fnmatchcase(e.name or "", pattern) for e in found):
            names = ", ".join(e.name or "" for e in found)
            raise ProblemError(f"data.known.{pattern}: no record of this name; there are {names}")
    return found


def read_columns(path: Path) -> Table:
    """All columns of a file by name."""
    if path.suffix.lower() not in SUFFIXES:
        raise ProblemError(f"{path}: found {path.suffix!r}, allowed are {', '.join(SUFFIXES)}")
    if not path.is_file():
        raise ProblemError(f"{path}: no such file")
    try:
        match path.suffix.lower():
            case ".parquet":
                return Table(_parquet(path))
            case ".npz":
                with np.load(path, allow_pickle=False) as content:
                    return Table({name: content[name] for name in content.files})
            case ".mat":
                return Table(read_mat(path))
            case _:
                return read_text(path)
    except ProblemError:
        raise
    except Exception as error:  # readers of formats raise anything for a damaged file
        raise ProblemError(f"{path}: cannot read it ({first_line(error)})") from None


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
    table = read_columns(path)
    if data.records is None:
        found = _experiment(data, table, path, path.stem)
        return [found if data.beside is None else _joined(found, data.beside, path)]
    names = dict.fromkeys(key.partition("/")[0] for key in table.values if "/" in key)
    return [
        _experiment(data, table.record(name), path, name)
        for name in names
        if fnmatch.fnmatchcase(name, data.records)
    ]


def _joined(first: Experiment, beside: Beside, path: Path) -> Experiment:
    """A record with what the second file of the run has."""
    other = beside.path(path)
    second = _experiment(beside.columns, read_columns(other), other, other.stem)
    with within(f"{path} and {other}: "):
        found = join_records(first, second, beside.join)
    if beside.keeps:
        return found
    parts = {
        name: {k: v for k, v in (getattr(found, name) or {}).items() if k != beside.join}
        for name in ("y", "u", "resolution", "mask")
    }
    return replace(found, **parts | {"mask": parts["mask"] or None})


def _experiment(data: Measured, table: Table, path: Path, name: str) -> Experiment:
    where = f"{path}" if data.records is None else f"{path}, {name}"
    t = _times(data, table, where)
    there = np.isfinite(t)
    # Only columns with times of their own may end later than those of the record.
    rows, t = np.flatnonzero(there), t[there]
    # Rounding of written times must not decide whether a sample lies in the interval.
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
    # Samples at one time are one sample.
    starts = np.flatnonzero(np.r_[True, np.diff(t) != 0])
    many = np.count_nonzero(inside) - np.count_nonzero(inside[starts])
    rows, inside = rows[starts], inside[starts]
    falls = np.flatnonzero(inside[1:] & (np.diff(t[starts]) < 0))
    if falls.size:
        i = int(falls[0])
        raise ProblemError(
            f"{where}: data.time: found {t[starts][i + 1]:.9g} s in {table.place(rows[i + 1])} "
            f"after {t[starts][i]:.9g} s, times must increase"
        )
    if many and np.count_nonzero(inside) == 1:
        raise ProblemError(
            f"{where}: data.time: found {t[0]:.9g} s in all {many + 1} samples, times must increase"
        )
    remarks = [*table.remarks]
    if many:
        said = f"{many:,} samples are at the time of another"
        remarks.append(f"{said}: of each signal the first number at a time counts")
    samples = _Samples(data, table, where, t, there, rows, starts, inside, remarks)
    y, u = (samples.columns(letter) for letter in "yu")
    t = t[starts][inside]
    if data.time is not None and abs(t[0]) > FAR * np.ptp(t):
        remarks.append(f"times count from the first sample, at {t[0]:.9g} s")
        t = t - t[0]
    remarks += clock_remarks(t) if data.time is not None else ()
    missing = {k: np.isfinite(v) for k, v in y.items()}
    for k, there in missing.items():
        if not there.all():
            said = f"{np.sum(~there):,} of {there.size:,} samples of {k} are missing and left out"
            remarks.append(said)
    mask = None if all(m.all() for m in missing.values()) else missing
    resolution = {k: c.resolution for k, c in data.y.items() if c.resolution is not None}
    known = {}
    for pattern, numbers in data.known.items():
        known |= numbers if fnmatch.fnmatchcase(name, pattern) else {}
    meta = {"name": name, **({"remarks": tuple(remarks)} if remarks else {})}
    with within(f"{where}: "):
        return Experiment(t, u, y, mask=mask, meta=meta, resolution=resolution, known=known)


class _Samples(NamedTuple):
    """Times (m,) of a table, ``there`` where there are some, in ``rows``; the first sample of each
    time, and whether it lies ``inside`` the interval asked for."""

    data: Measured
    table: Table
    where: str
    t: np.ndarray
    there: np.ndarray
    rows: np.ndarray
    starts: np.ndarray
    inside: np.ndarray
    remarks: list[str]

    def columns(self, letter: str) -> dict[str, np.ndarray]:
        """Measured quantities (``y``) or inputs (``u``) at the samples, in SI."""
        data, table, where, remarks = self.data, self.table, self.where, self.remarks
        found, shape = {}, self.there.shape
        for quantity, column in getattr(data, letter).items():
            field = f"data.{letter}.{quantity}"
            values = _values(table, column, field, where, remarks)
            if values.shape != shape:
                first = data.time or next(iter(data.y.values()))
                raise ProblemError(
                    f"{where}: {field}: column {column.name!r} has {values.size} samples, "
                    f"column {first.name!r} has {shape[0]}; must be as many"
                )
            own = _own_times(data, table, column, where)
            if own is None:
                values = values[self.there]
            else:
                values = at_times(self.t, own, values, held=letter == "u")
                remarks.append(
                    f"{quantity} has times of its own, and was brought to those of the record"
                )
            values = first_of_each(self.t, values)
            if letter == "u":
                values = _without_gaps(values, data, field, where, table, self.rows, remarks)
            found[quantity] = values[self.inside]
        return found


def _times(data: Measured, table: Table, where: str) -> np.ndarray:
    """Times of the samples; row numbers for steady states."""
    if data.time is None:
        name, column = next(iter(data.y.items()))
        return np.arange(_values(table, column, f"data.y.{name}", where).size, dtype=float)
    t = _values(table, data.time, "data.time", where)
    if np.any(np.isnan(t)) and not (table.clocks and np.any(np.isfinite(t))):
        i = int(np.argmax(np.isnan(t)))
        raise ProblemError(f"{where}: data.time: found no time in {table.place(i)}")
    return t


def _own_times(data: Measured, table: Table, column: Column, where: str) -> np.ndarray | None:
    """Times of a column that has its own, None where they are those of the record."""
    clock, time = table.clocks.get(table.find(column.name)), data.time
    if clock is None or time is None or clock == table.find(time.name):
        return None
    if table.find(time.name) not in table.clocks.values():
        return None
    own = _values(table, replace(time, name=clock), "data.time", where)
    same = np.allclose(own, _values(table, time, "data.time", where), 0.0, 1e-12, equal_nan=True)
    return None if same else own


def clock_remarks(t: Float[np.ndarray, " m"], unit: str = "s") -> list[str]:
    """Remarks on gaps and uneven steps of the increasing times ``t``."""
    if t.size < 3:
        return []
    steps = np.diff(t)
    step = float(np.median(steps))
    gaps, said = steps > GAP * step, []
    if gaps.any():
        worst = int(np.argmax(steps))
        many = f"{gaps.sum()} gaps" if gaps.sum() > 1 else "a gap"
        said.append(
            f"the times have {many} among steps of {step:g} {unit}, the longest of "
            f"{steps[worst]:g} {unit} after t = {t[worst]:g} {unit}"
        )
    off = np.abs(steps[~gaps] / step - 1.0)
    # Times written with few digits are uneven by rounding.
    if off.size and off.max() > JITTER:
        said.append(
            f"the steps between samples differ by up to {100 * off.max():.0f} % from "
            f"{step:g} {unit}"
        )
    return said


def _without_gaps(values, data: Measured, field, where, table: Table, rows, remarks):
    """An input with missing samples held at the last value, if the table ``[data]`` asks for it."""
    missing = np.isnan(values)
    if not missing.any():
        return values
    i = int(np.argmax(missing))
    if data.missing_inputs != "hold" or missing[0]:
        raise ProblemError(
            f"{where}: {field}: found no number in {table.place(rows[i])}, {missing.sum()} in all; "
            "an "
            "input acts all the time"
            + ("" if missing[0] else ', data.missing_inputs = "hold" keeps the last number')
        )
    remarks.append(f"{missing.sum():,} missing samples of {field} hold the last number")
    last = np.maximum.accumulate(np.where(missing, 0, np.arange(values.size)))
    return values[last]


def _values(
    table: Table, column: Column, field: str, where: str, remarks: list[str] | None = None
) -> np.ndarray:
    """A column in SI. ``remarks``: of a measured quantity, which may be a wrapped position."""
    with within(f"{where}: {field}: "):
        name = table.find(column.name)
    values = np.asarray(table.values[name])
    if name in table.wrong:
        line, text = table.wrong[name]
        raise ProblemError(
            f"{where}: {field}: column {column.name!r} holds text, {quoted(text)} in line {line}, "
            "needs one number per sample"
        )
    if values.ndim != 1 or values.dtype.kind not in "fiub":
        kind = "text" if values.dtype.kind in "USO" else f"an array of shape {values.shape}"
        raise ProblemError(
            f"{where}: {field}: column {column.name!r} holds {kind}, needs one number per sample"
        )
    factor, values = _factor(table, name, column, f"{where}: {field}"), values.astype(float)
    measures = column.measures.name if column.measures else "angle"
    if column.wraps_at:
        there = np.isfinite(values)
        values[there] = np.unwrap(values[there], period=column.wraps_at / abs(factor))
    elif remarks is not None and measures in POSITIONS and column.wraps_at is None:
        scales = [factor] if measures == "angle" else []
        if is_angle(table.unit(name)):
            scales.append(float(unit_factor(table.unit(name) or "", None)))
        smooth = unwrapped(values, scales)
        if smooth is not None:
            values = smooth[0]
            remarks.append(f"column {name!r} {smooth[1]}")
    found = factor * values + column.offset
    if np.any(np.isinf(found)):
        i = int(np.argmax(np.isinf(found)))
        raise ProblemError(
            f"{where}: {field}: column {column.name!r} holds {found[i]} in {table.place(i)}, "
            "samples must be finite; leave those that are missing empty"
        )
    return found


def _factor(table: Table, name: str, column: Column, where: str) -> float:
    """Factor from a column to SI: from the table ``[data]``, else from the header."""
    if name in table.stamps:
        if column.factor != 1.0:
            raise ProblemError(
                f"{where}: column {column.name!r} holds time stamps, which are read in seconds; "
                "leave the unit out"
            )
        return 1.0
    unit = table.unit(name)
    if unit is None:
        return column.factor
    if not column.unit:
        try:
            return float(unit_factor(unit, column.measures)) if unit else column.factor
        except UnitError as error:
            raise ProblemError(
                f"{where}: column {name!r}: {error}; give its unit in the table [data]"
            ) from None
    # A unit that begins with a number is a calibration, whatever the header says.
    if unit and column.unit[:1].isalpha():
        given = unit_factor(column.unit, None)
        try:
            other = unit_factor(unit, None)
        except UnitError:
            return column.factor
        if dimensions_of(unit) == dimensions_of(column.unit) and other != given:
            raise ProblemError(
                f"{where}.unit: found {column.unit!r}, the header of the column says {unit!r}; "
                f'write "1 {column.unit}" if the header is wrong'
            )
    return column.factor
