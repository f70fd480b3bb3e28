"""One record as many programs write it: read right, or refused in one sentence."""

import numpy as np
import pytest
from typer.testing import CliRunner

import jfric
from jfric.cli.main import app
from jfric.files.read_toml import loads
from jfric.fits.data.measured_files import clock_remarks, read_columns, read_experiments
from jfric.fits.data.proposal import propose

SYSTEM = """
dofs = ["x"]
[time]
end = "1 s"
[mass]
dof = "x"
m = "1 kg"
[friction]
dof = "x"
limit = "4 N"
[load]
dof = "x"
F = "0 N"
[data]
time = "time"
[data.y]
x = "position"
[data.u]
"load.F" = "force"
"""
TIME = 0.01 * np.arange(12)
POSITION = np.round(0.25 * np.sin(20.0 * TIME), 6)
FORCE = np.round(1000.0 + 500.0 * np.cos(20.0 * TIME), 2)
MM = [f"{1e3 * x:.6f}" for x in POSITION]


def cells(decimal=".", position=None, force=None, time=None):
    columns = (
        time or [f"{x:.2f}" for x in TIME],
        position or [f"{x:.6f}" for x in POSITION],
        force or [f"{x:.2f}" for x in FORCE],
    )
    return [[c.replace(".", decimal) for c in row] for row in zip(*columns, strict=True)]


def written(separator=",", header=("time", "position", "force"), rows=None, before="", end="\n"):
    lines = [separator.join(header)] if header else []
    lines += [separator.join(row) for row in (cells() if rows is None else rows)]
    return before + end.join(lines) + end


def spoilt(sample: int, text: str, column: int = 1):
    rows = cells()
    rows[sample][column] = text
    return rows


def thousands(mark: str, decimal: str):
    force = [f"{x:,.2f}".translate(str.maketrans({",": mark, ".": decimal})) for x in FORCE]
    return [[*row[:2], f] for row, f in zip(cells(decimal), force, strict=True)]


STAMPS = [f"2024-05-01T23:59:59.{round(1e3 * t):03d}" for t in TIME]
PREAMBLE = "Measurement 7\nOperator: N. N.\nSample rate;100\nDate;01.05.2024\n\n"
EXTRA = [[*row, "ok, running"] for row in cells()]

#: What is written, and what the table [data] says otherwise.
READ = {
    "comma and point": written(),
    "semicolon and point": written(";"),
    "semicolon and comma": written(";", rows=cells(",")),
    "tab and point": written("\t"),
    "tab and decimal comma": written("\t", rows=cells(",")),
    "bar": written("|"),
    "aligned by blanks": written("   "),
    "blanks and decimal comma": written("  ", rows=cells(",")),
    "comma and blank": written(", "),
    "all in quotation marks": written(
        '","', rows=cells(","), header=("time", "position", "force")
    ).replace("\n", '"\n"').join(['"', ""])[:-1],
    "line ends of Windows": written(end="\r\n"),
    "line ends of old machines": written(end="\r"),
    "UTF-8 with mark": written().encode("utf-8-sig"),
    "UTF-16 with mark": written("\t").encode("utf-16"),
    "UTF-16 without mark": written(";").encode("utf-16-le"),
    "Latin-1": ("Prüfung in Köln, 20 °C\n" + written(";")).encode("latin-1"),
    "sep= of spreadsheets": written(";", before="sep=;\n", rows=cells(",")),
    "unit in square brackets": written(header=("time [s]", "position [mm]", "force [N]"),
                                       rows=cells(position=MM)),
    "unit in round brackets": written(header=("Time (s)", "Position (mm)", "Force (N)"),
                                      rows=cells(position=MM)),
    "unit after a slash": written(";", header=("time/s", "position/mm", "force / N"),
                                  rows=cells(position=MM)),
    "units in a row": written(";", rows=[["s", "mm", "N"], *cells(position=MM)]),
    "units in a row, in brackets": written(";", rows=[["[s]", "[mm]", "[N]"],
                                                      *cells(position=MM)]),
    "units in blanks": written("  ", header=("time [s]", "position [mm]", "force [N]"),
                               rows=cells(position=MM)),
    "case and blanks": written(header=(" TIME", "Position ", "FORCE")),
    "preamble": written(";", before=PREAMBLE),
    "a line of numbers above the names": written(
        ";", before="2;1000;7\n", header=("time", "position", "force")),
    "preamble of remarks": written(before="# made by a logger\n# 100 Hz\n"),
    "header as a remark": "# " + written(),
    "separator at the end of lines": written(";").replace("\n", ";\n"),
    "blank lines between": written().replace("\n", "\n\n"),
    "text in another column": written(",", header=("time", "position", "force", "state"),
                                      rows=[[*r[:3], f'"{r[3]}"'] for r in EXTRA]),
    "thousands by points": written(";", rows=thousands(".", ",")),
    "thousands by commas in quotes": written(
        rows=[[*row[:2], f'"{row[2]}"'] for row in thousands(",", ".")]),
    "thousands by apostrophes": written(";", rows=thousands("'", ".")),
    "thousands by narrow blanks": written(";", rows=thousands("\u202f", ",")),
    "exponents": written(rows=cells(position=[f"{x:.6E}" for x in POSITION])),
    "time stamps": written(rows=cells(time=STAMPS)),
    "time stamps with blank and zone": written(
        ";", rows=cells(time=[s.replace("T", " ") + "+02:00" for s in STAMPS])),
    "times of day": written(rows=cells(time=[s[11:] for s in STAMPS])),
}  # fmt: skip
MISSING = {
    "empty": written(rows=spoilt(5, "")),
    "NaN": written(rows=spoilt(5, "NaN")),
    "dash": written(";", rows=spoilt(5, "-")),
    "n/a": written("\t", rows=spoilt(5, "n/a")),
}
REFUSED = {
    "decimal comma between commas": (
        written(rows=cells(",")),
        "line 1 names 3 columns, line 2 has 6 entries; decimal commas between separating commas",
    ),
    "infinite": (written(rows=spoilt(5, "inf")), "'position' holds inf in line 7, samples must"),
    "a column without a name": (
        written(header=("time", "position")), "line 1 names 2 columns, line 2 has 3 entries"),
    "a word": (written(rows=spoilt(5, "error")), "'position' holds text, 'error' in line 7"),
    "a word in the first row": (
        written(rows=spoilt(0, "error")),
        "line 2 holds 'error' where numbers begin",
    ),
    "a short line": (written(rows=[*cells()[:4], ["0.04"]]), "line 6 does not have 3 entries"),
    "time that falls": (
        written(rows=[*cells()[:4], *cells()[2:]]), "0.02 s in line 6 after 0.03 s"),
    "missing time": (written(rows=spoilt(5, "", 0)), "data.time: found no time in line 7"),
    "missing input": (
        written(rows=spoilt(5, "", 2)),
        'data.u.load.F: found no number in line 7, 1 in all; an input acts all the time, '
        'data.missing_inputs = "hold" keeps the last number',
    ),
    "unit of another kind": (
        written(header=("time", "position [kg]", "force")),
        "data.y.x: column 'position [kg]': found 'kg' (a mass), expected a length",
    ),
    "unknown unit": (
        written(header=("time", "position [Zoll/2]", "force")),
        "found the unknown unit 'Zoll/2'; give its unit in the table [data]",
    ),
    "two columns of one name": (
        written(header=("time", "position", "Position")),
        "no column 'force'; there are time, position, Position",
    ),
    "no numbers": ("just\nwords\n", "found no rows of at least two numbers"),
    "no text": (bytes(range(256)), "holds no text, a table of numbers is needed"),
}  # fmt: skip


def read(folder, content, system=SYSTEM):
    path = folder / "run.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_experiments(loads(system), path)[0]


def test_there_are_forty_ways():
    assert len(READ) + len(MISSING) + len(REFUSED) >= 40


@pytest.mark.parametrize("kind", READ)
def test_one_record_in_many_forms(tmp_path, kind):
    found = read(tmp_path, READ[kind])
    np.testing.assert_allclose(found.t - found.t[0], TIME, atol=1e-9)
    np.testing.assert_allclose(found.y["x"], POSITION, atol=1e-12)
    np.testing.assert_allclose(found.u["load.F"], FORCE, atol=1e-9)
    assert found.mask is None


@pytest.mark.parametrize("kind", MISSING)
def test_missing_samples_are_left_out_and_said(tmp_path, kind):
    found = read(tmp_path, MISSING[kind])
    np.testing.assert_array_equal(np.flatnonzero(~found.mask["x"]), [5])
    assert found.meta["remarks"] == ("1 of 12 samples of x are missing and left out",)


@pytest.mark.parametrize("kind", REFUSED)
def test_what_cannot_be_read_is_one_sentence(tmp_path, kind):
    content, sentence = REFUSED[kind]
    with pytest.raises(jfric.ProblemError) as caught:
        read(tmp_path, content)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_input_is_held_on_request(tmp_path):
    system = SYSTEM.replace("[data]\n", '[data]\nmissing_inputs = "hold"\n')
    found = read(tmp_path, REFUSED["missing input"][0], system)
    assert found.u["load.F"][5] == FORCE[4]
    assert "hold the last number" in found.meta["remarks"][0]


def test_a_name_that_is_two_columns_is_refused(tmp_path):
    content = written(header=("time", "position", "force"))
    system = SYSTEM.replace('"position"', '"POSITION"')
    assert read(tmp_path, content, system).y["x"][1] == POSITION[1]
    twice = written(header=("time", "position", "Position"))
    with pytest.raises(jfric.ProblemError, match="may be 'position' or 'Position'"):
        read(tmp_path, twice, system.replace('"force"', '"Position"'))


def test_units_of_table_and_header_that_disagree_are_refused(tmp_path):
    content = written(header=("time", "position [mm]", "force"))

    def with_unit(unit):
        return SYSTEM.replace('"position"', f'{{column = "position", unit = "{unit}"}}')

    with pytest.raises(jfric.ProblemError, match="found 'm', the header of the column says 'mm'"):
        read(tmp_path, content, with_unit("m"))
    # A number before the unit is a calibration.
    assert read(tmp_path, content, with_unit("1 m")).y["x"][1] == POSITION[1]


def test_a_point_before_three_digits_is_a_decimal_point(tmp_path):
    path = tmp_path / "run.csv"
    path.write_text("a;b\n1.000;2.500\n2.000;3.500\n")
    table = read_columns(path)
    assert table.values["a"].tolist() == [1.0, 2.0]
    path.write_text("a;b\n1.000;2,5\n2.000;3,5\n")
    table = read_columns(path)
    assert table.values["a"].tolist() == [1000.0, 2000.0]
    assert "thousands" in table.remarks[0]


def test_gaps_and_uneven_steps_are_named():
    t = 0.01 * np.arange(100.0)
    assert clock_remarks(t) == []
    gap = np.delete(t, slice(40, 60))
    assert clock_remarks(gap) == [
        "the times have a gap among steps of 0.01 s, the longest of 0.21 s after t = 0.39 s"
    ]
    shaken = t + 0.001 * np.sin(np.arange(100.0))
    assert "the steps between samples differ by up to 1" in clock_remarks(shaken)[0]
    # One missing sample is a gap, no uneven step.
    assert "a gap among steps of 0.01 s" in clock_remarks(np.delete(t, 40))[0]


@pytest.mark.parametrize("kind", ["units in a row", "unit in round brackets", "time stamps"])
def test_the_proposed_table_reads_the_file(tmp_path, kind):
    path = tmp_path / "run.csv"
    path.write_text(READ[kind])
    bare = SYSTEM.partition("[data]")[0]
    text = propose(path, loads(bare).problem)
    (found,) = read_experiments(loads(bare + text), path)
    np.testing.assert_allclose(found.t, TIME, atol=1e-9)
    np.testing.assert_allclose(found.y["x"], POSITION, atol=1e-12)
    np.testing.assert_allclose(found.u["load.F"], FORCE, atol=1e-9)
    assert "12 samples from 0 to 0.11 " in text


def test_proposal_names_what_it_does_not_know(tmp_path):
    path = tmp_path / "run.csv"
    path.write_text("t;a;b;note\n0;1,5;2;x\n1;;2;y\n2;1,7;2;z\n5;1,8;2;z\n")
    text = propose(path, loads(SYSTEM).problem)
    for said in (
        "decimal comma",
        "a gap among steps of 1",
        '# A guess, as no name and no unit is one of x:\nx = {column = "a"',
        "1.5 to 1.8, no unit found: SI is assumed, 1 missing",
        '"note" holds no numbers, or infinite ones',
        "seconds are assumed",
    ):
        assert said in text


def test_units_off_by_a_thousand_are_suspected(tmp_path):
    from jfric.cli.fit_record import run_fit
    from jfric.fits.free import Free

    config = loads(SYSTEM)
    path = tmp_path / "run.csv"
    path.write_text(written(rows=cells(time=[f"{1e4 * t:.2f}" for t in TIME])))
    with pytest.raises(jfric.ProblemError, match="found times from 0 s to 1100 s, the problem"):
        run_fit(config, [path], {"mass.m": Free(0.1, 10.0)})
    path.write_text(written(rows=cells(position=["0.5"] * 12)))
    with pytest.raises(jfric.ProblemError, match=r"y\.x: found 0\.5 at all of 12 samples"):
        run_fit(config, [path], {"mass.m": Free(0.1, 10.0)})
    # The motion of 1 t in place of 1 kg, under 1 kN to 1.5 kN.
    path.write_text(written(rows=cells(position=[f"{0.5 * 1.2 * t**2:.9f}" for t in TIME])))
    found = run_fit(config, [path], {"mass.m": Free(0.1, 1e5, init=500.0)}, starts=1)
    assert "mass.m is" in str(found)
    assert "is a unit of the data wrong?" in str(found)


def test_the_command_prints_the_proposal_and_asks_for_what_is_missing(tmp_path):
    path = tmp_path / "run.csv"
    path.write_text(READ["units in a row"])
    outcome = CliRunner().invoke(app, ["fit", "--init", str(path)])
    assert outcome.exit_code == 0, outcome.output
    assert 'time = {column = "time", unit = "s"}' in outcome.output
    outcome = CliRunner().invoke(app, ["fit", "--data", str(path)])
    assert outcome.exit_code == 2
    assert "CONFIG: missing, such as system.toml" in outcome.output
