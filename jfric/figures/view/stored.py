"""Results that commands left under ``results/``: the kind of each, and a run as stored."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from jfric.errors import ProblemError

Kind = Literal["run", "sweep", "fit"]
#: Endings of tables that belong to a result and are stored next to it.
TABLES = (".csv", ".parquet")
WORDS = ("mode.", "segment.")


@dataclass(frozen=True)
class StoredRun:
    """A stored trajectory as columns, numbers or words, with its record."""

    columns: dict[str, np.ndarray]
    about: dict[str, Any]

    @property
    def axes(self) -> list[str]:
        """Names of the degrees of freedom, in their order."""
        return [name.removeprefix("q.") for name in self.columns if name.startswith("q.")]

    def unit(self, column: str) -> str:
        return str(self.about["units"].get(column, ""))


def find(path: Path) -> tuple[Kind, Path]:
    """Kind and place of the result at ``path``; for a folder of results, the newest one."""
    if not path.exists():
        raise ProblemError(f"{path}: no such file or folder")
    kind = kind_of(path)
    if kind is not None:
        return kind
    if path.is_dir():
        inside = [(p.stat().st_mtime, found) for p in path.iterdir() if (found := kind_of(p))]
        if inside:
            return max(inside, key=lambda item: item[0])[1]
        raise ProblemError(f"{path}: holds no run, sweep or fit")
    raise ProblemError(
        f"{path}: no run (run-001.json), sweep (sweep-001.zarr) or fit (fit-001.json)"
    )


def kind_of(path: Path) -> tuple[Kind, Path] | None:
    """The kind of one result and its place; None for any other file."""
    if path.is_dir():
        return ("sweep", path) if (path / "zarr.json").is_file() else None
    if path.suffix in TABLES:
        path = path.with_suffix(".json")
    if path.suffix != ".json" or not path.is_file():
        return None
    try:
        found = json.loads(path.read_text("utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError):
        return None
    if not isinstance(found, dict):
        return None
    if {"trajectory", "events", "units", "solver"} <= set(found):
        return "run", path
    return ("fit", path) if {"free", "parameters", "waterfall"} <= set(found) else None


def read_run(path: Path) -> StoredRun:
    """A run from its JSON file; raises :class:`jfric.ProblemError` if its trajectory is missing."""
    about = json.loads(path.read_text("utf-8"))
    trajectory = path.with_name(about["trajectory"])
    if not trajectory.is_file():
        raise ProblemError(f"{trajectory}: no such file, {path.name} names it as its trajectory")
    read = _parquet if trajectory.suffix == ".parquet" else _csv
    columns = read(trajectory)
    if "t" not in columns:
        raise ProblemError(f"{trajectory}: no trajectory, it has no column 't'")
    found = {
        name: np.asarray(values, str if name.startswith(WORDS) else float)
        for name, values in columns.items()
    }
    return StoredRun(found, about)


def _csv(path: Path) -> dict[str, list[str]]:
    with path.open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    return {name: [row[i] for row in rows] for i, name in enumerate(header)}


def _parquet(path: Path) -> dict[str, list[Any]]:
    from jfric.files.output import import_pyarrow

    table = import_pyarrow().parquet.read_table(path)
    return {name: table[name].to_pylist() for name in table.column_names}
