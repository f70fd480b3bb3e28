import csv
import json
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow.parquet
import pytest
from trajectories import machine, oscillator

import jfric
from jfric.files import output
from jfric.results.columns import column_units, columns


def test_columns_and_their_units():
    problem, solution = machine()
    table, units = columns(problem, solution), column_units(problem, solution)
    assert list(table) == list(units)
    assert units["q.arm"] == "rad"
    assert units["a.lid"] == "m/s^2"
    assert units["lambda_t.friction.hinge"] == "N m"
    assert units["lambda_n.contact.floor"] == "N"
    assert table["mode.contact.floor"][0] == "open"
    assert table["mode.contact.floor"][-1] == "slip+"
    assert table["segment.gap_spring"][-1] == "touch_positive"
    assert units["force.gap_spring"] == "N"
    assert table["force.gap_spring"][-1] == pytest.approx(0.1 - np.sin(10.0))
    assert len(columns(problem, solution, np.array([0, 2]))["t"]) == 2


def test_csv_keeps_every_digit(tmp_path):
    problem, solution = oscillator()
    table = columns(problem, solution)
    output.write_trajectory(tmp_path / "a.csv", table, column_units(problem, solution))
    with (tmp_path / "a.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == list(table)
    assert np.array_equal([float(row["q.u"]) for row in rows], table["q.u"])
    assert rows[-1]["mode.friction"] == "stick"


def test_parquet_holds_units(tmp_path):
    problem, solution = machine()
    table = columns(problem, solution)
    output.write_trajectory(tmp_path / "a.parquet", table, column_units(problem, solution))
    read = pyarrow.parquet.read_table(tmp_path / "a.parquet")
    assert read.column_names == list(table)
    assert np.array_equal(read["v.arm"].to_numpy(), table["v.arm"])
    assert read.schema.field("v.arm").metadata[b"unit"] == b"rad/s"


def test_results_are_never_overwritten(tmp_path):
    problem, solution = oscillator()
    with ThreadPoolExecutor(8) as pool:
        paths = list(pool.map(lambda _: output.reserve(tmp_path / "new"), range(8)))
    assert sorted(p.name for p in paths) == [f"run-{i:03d}.json" for i in range(1, 9)]
    (tmp_path / "a.csv").write_text("mine")
    with pytest.raises(FileExistsError):
        output.write_trajectory(tmp_path / "a.csv", columns(problem, solution), {})


def test_other_files_of_a_folder_take_no_number(tmp_path):
    for name in ("run-first.csv", "run-.txt", "other-007.json"):
        (tmp_path / name).write_text("mine")
    assert output.reserve(tmp_path).name == "run-001.json"


def test_two_runs_that_begin_at_once_take_different_names(tmp_path, monkeypatch):
    """The second one looked at the folder before the first one had a file there."""
    monkeypatch.setattr(output, "_number", lambda path, stem: 0)
    names = [output.reserve(tmp_path).name for _ in range(3)]
    assert names == ["run-001.json", "run-002.json", "run-003.json"]


def test_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(jfric.ProblemError, match=r"--out: cannot write to .*file/results"):
        output.reserve(tmp_path / "file" / "results")


def test_sidecar_is_valid_json(tmp_path):
    problem, solution = machine()
    content = output.sidecar(problem, solution, worst=np.float64("nan"), list=(1, np.arange(2)))
    output.write_json(tmp_path / "a.json", content)
    read = json.loads((tmp_path / "a.json").read_text())
    assert read["status"] == {"code": "ok", "message": "ok", "flags": ["tie"], "steps": 31}
    assert read["event_count"] == 2
    assert read["events"][0]["contact"] == "contact.floor"
    assert read["events"][0]["from"] == "open"
    assert read["events"][0]["impact"] is True
    assert read["worst"] == "nan"
    assert read["list"] == [1, [0, 1]]
    assert {"jfric", "jax", "numpy", "python"} <= set(read["versions"])


def test_unknown_format():
    with pytest.raises(jfric.ProblemError, match="found 'xls', allowed are csv, parquet"):
        output.require_format("xls")
