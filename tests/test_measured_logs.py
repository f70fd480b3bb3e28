"""Logs as machines write them, each read without a word about its layout: heads, times, wraps."""

import json
import random

import numpy as np
import pytest
from typer.testing import CliRunner

import jfric
from jfric.cli.fit_record import run_fit, sources
from jfric.cli.main import app
from jfric.files.read_toml import loads
from jfric.files.write_toml import dump
from jfric.fits.data.measured_files import read_columns, read_experiments
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
"""
ROTOR = """
dofs = {phi = "rotation"}
[time]
end = "1 s"
[mass]
dof = "phi"
m = "1 kg*m^2"
[friction]
dof = "phi"
limit = "0.1 N*m"
[load]
dof = "phi"
F = "0 N*m"
"""
T = 0.001 * np.arange(40)
MM = np.round(20.0 * np.sin(60.0 * T), 4)
N = np.round(3.0 + np.cos(60.0 * T), 4)


def rows(*columns, separator=",", decimal="."):
    """Lines of numbers; texts as they are."""
    lines = zip(*columns, strict=True)
    cells = ([c if isinstance(c, str) else f"{c:.9g}" for c in line] for line in lines)
    return "".join(separator.join(c.replace(".", decimal) for c in row) + "\n" for row in cells)


def keyed(word, *values):
    """A line of a head of TwinCAT: its word before each group of columns."""
    return "\t".join(f"{word}\t{value}" for value in values) + "\n"


TWINCAT = (
    "Name\tScope Project\nFile\tC:\\Scope\\a.svdx\n"
    "Starttime of export\t132959373843760000\tMontag, 2. Mai 2022\t13:56:24.376\n"
    "Endtime of export\t132959373853760000\tMontag, 2. Mai 2022\t13:56:25.376\n\n"
    + keyed("Name", "ActPos", "ActForce")
    + keyed("SymbolComment", "", "")
    + keyed("Data-Type", "REAL64", "REAL64")
    + keyed("SampleTime[ms]", 1, 1)
    + keyed("VariableSize", 8, 8)
    + keyed("SymbolBased", "True", "True")
    + keyed("IndexGroup", 16448, 16448)
    + keyed("SymbolName", "MAIN.Axis.ActPos", "MAIN.fForce")
    + keyed("NetID", "5.18.2.1.1.1", "5.18.2.1.1.1")
    + keyed("Port", 851, 851)
    + keyed("Offset", 0, 0)
    + keyed("ScaleFactor", 1, 1)
    + keyed("BitMask", "0xffffffffffffffff", "0xffffffffffffffff")
    + keyed("Unit", "mm", "N")
    + "\n"
    + rows(1e3 * T, MM, 1e3 * T, N, separator="\t", decimal=",")
    + "EOF\n"
)
CLOCK = [f"12:00:00.{round(1e3 * t):03d}" for t in T]
LATE = [f"23:59:59.{980 + i}" if i < 20 else f"00:00:00.{i - 20:03d}" for i in range(40)]
#: Heads with units in which the reader finds the record by itself.
WHOLE = {
    "TwinCAT Scope": TWINCAT,
    "five lines": "Name,Position,Force\nUnit,mm,N\nOffset,0,0\nSampleTime[ms],1,1\nComment,,\n"
    + rows(1e3 * T, MM, N),
    "five lines, decimal comma": "Name;Position;Force\nUnit;mm;N\nOffset;0;0\nScaleFactor;1;1\n"
    "SampleTime;0,001;0,001\n" + rows(T, MM, N, separator=";", decimal=","),
    "words on the left of all columns": "Name,Position,Force\nUnit,mm,N\nOffset,0,0\n"
    "SampleTime,0.001,0.001\n\n" + rows(MM, N),
    "words above numbers of samples": "Name;time;Position;Force\nUnit;ms;mm;N\n"
    + rows(np.arange(40.0), 1e3 * T, MM, N, separator=";"),
    "a counter below the words": "Name;Position;Force\nUnit;mm;N\nSampleTime[ms];1\nOffset;0;0\n"
    + rows(1.0 + np.arange(40.0), MM, N, separator=";"),
    "units in brackets": "Time,Position,Force\n(ms),(mm),(N)\n\n" + rows(1e3 * T, MM, N),
    "remarks of a scope": "#Digilent WaveForms Oscilloscope Acquisition\n#Sample rate: 1000Hz\n"
    "#Samples: 40\n\nTime (s),Position (mm),Force (N)\n" + rows(T, MM, N),
    "a step that is not that of the times": "Sample rate;10000\nx-axis;position [mm];force [N]\n"
    + rows(T, MM, N, separator=";"),
    "pairs with names": "Time [ms],Position [mm],Time [ms],Force [N]\n"
    + rows(1e3 * T, MM, 1e3 * T, N),
    "names above units": "Recorder 7\n\nms,Position,Force\n,mm,N\n" + rows(1e3 * T, MM, N),
    "unit words": "x-axis,Position,Force\nSecond,Millimeter,Newton\n" + rows(T, MM, N),
    "date and time of day": "Date;Time;Position [mm];Force [N]\n"
    + rows(["01.05.2024"] * 40, CLOCK, MM, N, separator=";"),
    "month first": "Date,Time,Position (mm),Force (N)\n"
    + rows(["5/1/2024"] * 20 + ["5/2/2024"] * 20, LATE, MM, N),
    "time of day over midnight": "Uhrzeit;Position [mm];Kraft [N]\n"
    + rows(LATE, MM, N, separator=";", decimal=","),
    "twelve hours": "Date,Time,Position [mm],Force [N]\n"
    + rows(["5/1/2024"] * 40, [f"{c} PM" for c in CLOCK], MM, N),
    "seconds and nanoseconds": "sec,nanosec,position [mm],force [N]\n"
    + rows([f"{1714564800 + (980 + i) // 1000}" for i in range(40)],
           [f"{(980 + i) % 1000 * 1000000}" for i in range(40)], MM, N),
    "rate in a remark": "# sample rate: 1 kHz\nposition [mm],force [N]\n" + rows(MM, N),
    "rate in a row": "Abtastrate [Hz];1000\nPosition [mm];Kraft [N]\n"
    + rows(MM, N, separator=";", decimal=","),
    "step in a row, samples counted": "Sample Interval,0.001\nSample,Position [mm],Force [N]\n"
    + rows(np.arange(40.0), MM, N),
    "samples per second": "Rate: none\nSampling rate = 1 kS/s\nposition [mm];force [N]\n"
    + rows(MM, N, separator=";"),
    "a row for each signal": "time [s],position [mm],force [N]\n"
    + rows(*(np.repeat(a, 2) for a in (T,)), *(
        [f"{a}" if i % 2 == k else "" for i, a in enumerate(np.repeat(c, 2))]
        for k, c in enumerate((MM, N)))),
    "LabVIEW": "LabVIEW Measurement\nWriter_Version\t2\nSeparator\tTab\nDelta_X\t0.001000\n"
    "X_Value\tPosition [mm]\tForce [N]\n" + rows(T, MM, N, separator="\t"),
    "German thousands": "Zeit;Position [um];Kraft [mN]\n" + "".join(
        f"{a:.3f};{1e3 * b:,.1f};{1e3 * c:,.1f}\n".translate(str.maketrans(",.", ".,"))
        for a, b, c in zip(T, MM, N, strict=True)),
    "French thousands": "temps;Position [um];force [mN]\n" + "".join(
        f"{a:.3f};{1e3 * b:,.1f};{1e3 * c:,.1f}\n".translate(str.maketrans(",.", " ,"))
        for a, b, c in zip(T, MM, N, strict=True)),
    "US thousands": "t,Position [um],Force [mN]\n" + "".join(
        f'{a},"{1e3 * b:,.1f}","{1e3 * c:,.1f}"\n' for a, b, c in zip(T, MM, N, strict=True)),
}  # fmt: skip
TDS = ["Record Length,40", "Sample Interval,1.0e-03", "Trigger Point,20", ",", "Source,CH1"]
TDS += ["Vertical Units,V", "Vertical Offset,0.0", "Horizontal Units,s", "Model Number,TDS2014"]
#: Oscilloscopes: times and the volts of one or two channels, which a guess makes metres.
SCOPES = {
    "Keysight": "x-axis,1,2\nsecond,Volt,Volt\n" + rows(T, MM, N),
    "Rigol": "X,CH1,CH2,Start,Increment,\nSequence,Volt,Volt,-1.0e-02,1.0e-03\n"
    + rows(np.arange(40.0), MM, N).replace("\n", ",\n"),
    "Rigol, step not a unit": "X,CH1,CH2,Start,Increment,\nSequence,Volt,Volt,-1.0e-02,2.5e-04\n"
    + rows(np.arange(40.0), MM, N).replace("\n", ",\n"),
    "Rigol with names": "Time(s),CH1(V),CH2(V)\n" + rows(T, MM, N),
    "Tektronix": "Model,MDO3014\nFirmware Version,1.02\n\nWaveform Type,ANALOG,,\n"
    "Point Format,Y,,\nHorizontal Units,S,,\nHorizontal Scale,0.004,,\nSample Interval,0.001,,\n"
    "Record Length,40,,\nProbe Attenuation,10,1,\nVertical Units,V,V,\nVertical Offset,0,0,\n"
    ",,,\nLabel,,,\nTIME,CH1,CH2\n" + rows(T, MM, N),
    "Tektronix, head on the left": "".join(
        f"{key},,{t:.9f},{x:.5f},\n"
        for key, t, x in zip(TDS + [","] * 31, T, MM, strict=True)),
    "units for names": "Second,Volt\n" + rows(T, MM),
    "Siglent": "Record Length,Analog:40\nSample Interval,0.001\nVertical Units,V\nSource,CH1\n"
    "Second,Volt\n" + rows(T, MM),
}  # fmt: skip


def proposed(folder, content, system=SYSTEM):
    """The record, read with the table that ``jfric fit --init`` writes."""
    path = folder / "run.csv"
    path.write_text(content)
    text = propose(path, loads(system).problem)
    (found,) = read_experiments(loads(system + text), path)
    return found, text


def said(found):
    return " ".join(found.meta.get("remarks", ()))


@pytest.mark.parametrize("kind", WHOLE)
def test_the_proposal_for_any_head_reads_the_record(tmp_path, kind):
    found, _ = proposed(tmp_path, WHOLE[kind])
    np.testing.assert_allclose(found.t - found.t[0], T, atol=1e-9)
    np.testing.assert_allclose(found.y["x"], 1e-3 * MM, atol=1e-9)
    np.testing.assert_allclose(found.u["load.F"], N, atol=1e-9)


@pytest.mark.parametrize("kind", SCOPES)
def test_the_proposal_for_an_oscilloscope_asks_for_the_size_of_a_volt(tmp_path, kind):
    found, text = proposed(tmp_path, SCOPES[kind])
    step = 2.5e-4 if "not a unit" in kind else 1e-3
    np.testing.assert_allclose(found.t - found.t[0], step / 1e-3 * T, atol=1e-9)
    np.testing.assert_allclose(found.y["x"], MM, atol=1e-4)
    assert 'unit = "1 m"}  # the file says "' in text
    assert "how much is one" in text
    assert "# A guess" in text or found.u == {}


@pytest.mark.parametrize("kind", [*WHOLE, *SCOPES])
def test_a_proposal_without_a_system_reads_as_well(tmp_path, kind):
    path = tmp_path / "run.csv"
    path.write_text((WHOLE | SCOPES)[kind])
    (found,) = read_experiments(loads(SYSTEM + propose(path)), path)
    assert found.t.size == 40


def test_a_proposal_holds_inputs_with_gaps_and_leaves_out_what_has_no_number(tmp_path):
    content = "time [s],position [mm],force [N],none,far\n0,1,2,,1\n1,2,,,inf\n2,4,3,,2\n"
    found, text = proposed(tmp_path, content)
    assert found.u["load.F"].tolist() == [2.0, 2.0, 3.0]
    assert 'missing_inputs = "hold"' in text
    assert '"none" holds no numbers, or infinite ones' in text
    assert '"far" holds no numbers, or infinite ones' in text
    # Nothing can hold what is missing first.
    found, text = proposed(tmp_path, content.replace("0,1,2,", "0,1,,"))
    assert found.u == {}
    assert "missing_inputs" not in text
    with pytest.raises(jfric.ProblemError, match=r"data\.y: found no column of numbers besides"):
        proposed(tmp_path, "time [s],position [mm]\n0,\n1,inf\n2,\n3,\n")


def test_a_proposal_for_a_damaged_log_is_read_or_refused(tmp_path):
    """Lines of all kinds lost, mixed and broken: what is proposed is always read."""
    rng, texts = random.Random(7), [*(WHOLE | SCOPES).values()]
    problem, path, read = loads(SYSTEM).problem, tmp_path / "run.csv", 0
    for _ in range(100):
        lines = rng.choice(texts).splitlines()
        for _ in range(rng.randint(1, 3)):
            i, j = rng.randrange(min(len(lines), 25)), rng.randrange(3)
            cell = rng.choice(["µ", '"', "#", "1e400", "NaN", "/", "[", "0", ",", ";", "\t"])
            at = rng.randrange(len(lines[i]) + 1)
            lines[i : i + 1] = rng.choice([
                [],
                [lines[i], rng.choice(texts).splitlines()[j]],
                [lines[i][:at] + cell + lines[i][at:]],
                [lines[i][:at]],
            ])  # fmt: skip
        path.write_text("\n".join(lines) + "\n")
        try:
            text = propose(path, problem)
        except jfric.ProblemError:
            continue
        read_experiments(loads(SYSTEM + text), path)
        read += 1
    assert read > 33


def test_a_speed_in_turns_per_minute_is_a_speed(tmp_path):
    head = "MR Configurator2\n2024/05/01\nms,Servo motor speed,Torque\n,r/min,Nm\n"
    found, text = proposed(tmp_path, head + rows(1e3 * T, MM, N), ROTOR)
    np.testing.assert_allclose(found.t, T, atol=1e-12)
    np.testing.assert_allclose(found.y["v.phi"], np.pi / 30.0 * MM, rtol=1e-12)
    np.testing.assert_allclose(found.u["load.F"], N)
    assert '"v.phi" = {column = "Servo motor speed", unit = "rpm"}' in text
    found, _ = proposed(tmp_path, "ms,Servo motor speed,Torque\n" + rows(1e3 * T, MM, N), ROTOR)
    np.testing.assert_allclose(found.t, T, atol=1e-12)
    np.testing.assert_allclose(found.y["v.phi"], MM)


@pytest.mark.parametrize("filled", [True, False])
def test_a_channel_with_a_slower_clock(tmp_path, filled):
    """Scope View fills the slow channel up with its last value, or ends its columns early."""
    head = (
        keyed("Name", "ActPos", "Force") + keyed("SampleTime[ms]", 1, 4) + keyed("Unit", "mm", "N")
    )
    lines = [f"{i}\t{MM[i]}" for i in range(40)]
    for i in range(40):
        k = i // 4 if filled else i
        lines[i] += f"\t{4 * k}\t{N[4 * k]}" if k < 10 else ""
    found, _ = proposed(tmp_path, head + "\n".join(lines) + "\n")
    np.testing.assert_allclose(found.t, T, atol=1e-12)
    np.testing.assert_allclose(found.y["x"], 1e-3 * MM, atol=1e-12)
    # An input holds until its next sample.
    np.testing.assert_allclose(found.u["load.F"], np.repeat(N[::4], 4))
    assert "load.F has times of its own, and was brought to those of the record" in said(found)
    # It may begin within its first step.
    late = [line.replace("\t0\t", "\t2\t") for line in lines]
    found, _ = proposed(tmp_path, head + "\n".join(late) + "\n")
    np.testing.assert_allclose(found.u["load.F"][:4], N[0])


def test_a_scale_in_the_head_is_named_and_not_applied(tmp_path):
    head = "Name,Position,Force\nUnit,mm,N\nOffset,0,5\nScaleFactor,1,1\nSampleTime[ms],1,1\n"
    found, text = proposed(tmp_path, head + rows(1e3 * T, MM, N))
    np.testing.assert_allclose(found.u["load.F"], N)
    assert "Offset of Force is 5 in line 3: it was not applied" in said(found)
    assert "# Offset of Force is 5 in line 3: it was not applied" in text
    assert "ScaleFactor" not in text


def test_of_samples_at_one_time_the_first_counts(tmp_path):
    content = "t [s],x [mm],F [N]\n0,1,5\n0,2,6\n0.001,3,7\n0.001,4,8\n0.002,5,9\n"
    found, text = proposed(tmp_path, content)
    assert found.t.tolist() == [0.0, 0.001, 0.002]
    assert found.y["x"].tolist() == [0.001, 0.003, 0.005]
    assert found.u["load.F"].tolist() == [5.0, 7.0, 9.0]
    remark = (
        "2 samples are at the time of another: of each signal the first number at a time counts"
    )
    assert found.meta["remarks"] == (remark,)
    assert "# 3 samples from 0 to 0.002 s, one every 0.001 s" in text


def test_times_that_fall_are_refused(tmp_path):
    path = tmp_path / "run.csv"
    path.write_text("t,x\n0,1\n0.002,2\n0.002,2\n0.001,3\n")
    config = loads(SYSTEM + '[data]\ntime = "t"\n[data.y]\nx = "x"\n')
    with pytest.raises(jfric.ProblemError, match=r"0\.001 s in line 5 after 0\.002 s"):
        read_experiments(config, path)


ANGLE = 12.0 * np.sin(8.0 * np.linspace(0.0, 1.0, 400))  # rad, with jumps at both ends
WRAPS = {
    "360 degrees": ("deg", np.degrees(ANGLE) % 360.0, "every turn"),
    "180 degrees": ("deg", (np.degrees(ANGLE) + 180.0) % 360.0 - 180.0, "every turn"),
    "2 pi": ("rad", ANGLE % (2.0 * np.pi), "every turn"),
    "turns": ("turn", ANGLE / (2.0 * np.pi) % 1.0, "every turn"),
    "a counter": ("0.001 rad", np.round(1000.0 * ANGLE) % 4096, r"every 2\^12 steps"),
    "a counter with a sign": (
        "0.0001 rad", (np.round(10000.0 * ANGLE) + 2**15) % 2**16 - 2**15, r"every 2\^16 steps"),
}  # fmt: skip


@pytest.mark.parametrize("kind", WRAPS)
def test_a_wrapped_angle_is_unwrapped_and_said(tmp_path, kind):
    unit, readings, remark = WRAPS[kind]
    t = np.linspace(0.0, 1.0, 400)
    table = f'[data]\ntime = "t"\n[data.y]\nphi = {{column = "a", unit = "{unit}"}}\n'
    path = tmp_path / "run.csv"
    path.write_text("t,a\n" + rows(t, readings))
    (found,) = read_experiments(loads(ROTOR + table), path)
    off = found.y["phi"] - ANGLE
    np.testing.assert_allclose(off, off[0], atol=1e-3)
    assert found.meta["remarks"][0].startswith("column 'a' begins anew ")
    assert remark.replace("\\", "") in said(found)


@pytest.mark.parametrize(("period", "key"), [(36.0, '"36 deg"'), (360.0, "0")])
def test_a_file_says_where_an_angle_begins_anew(tmp_path, period, key):
    """Behind a gear of ten; or nowhere, although it looks as if it did."""
    t = np.linspace(0.0, 1.0, 400)
    path = tmp_path / "run.csv"
    column = f'{{column = "a", unit = "deg", wraps_at = {key}}}'
    table = f'[data]\ntime = "t"\n[data.y]\nphi = {column}\n'
    readings = np.degrees(ANGLE) % period
    path.write_text("t,a\n" + rows(t, readings))
    (found,) = read_experiments(loads(ROTOR + table), path)
    expected = np.radians(readings) if key == "0" else ANGLE
    off = found.y["phi"] - expected
    np.testing.assert_allclose(off, off[0], atol=1e-6)
    with pytest.raises(jfric.ProblemError, match="wraps_at: found -1, must be zero or positive"):
        loads(ROTOR + table.replace(key, "-1"))


def test_what_only_looks_wrapped_is_left_alone(tmp_path):
    t = np.linspace(0.0, 1.0, 400)
    path = tmp_path / "run.csv"
    table = '[data]\ntime = "t"\n[data.y]\nphi = {column = "a", unit = "deg"}\n'
    for angle in (np.where(t < 0.5, 10.0, 300.0), np.degrees(ANGLE), 200.0 * (t > 0.5) + 20.0 * t):
        path.write_text("t,a\n" + rows(t, angle))
        (found,) = read_experiments(loads(ROTOR + table), path)
        np.testing.assert_allclose(found.y["phi"], np.radians(angle), rtol=1e-8)
        assert "begins anew" not in said(found)
    # A speed is no position.
    path.write_text("t,a\n" + rows(t, np.degrees(ANGLE) % 360.0))
    (found,) = read_experiments(
        loads(ROTOR + table.replace("phi", '"v.phi"').replace("deg", "deg/s")), path
    )
    np.testing.assert_allclose(found.y["v.phi"], ANGLE % (2 * np.pi), atol=1e-8)


def test_text_files_have_several_endings(tmp_path):
    for suffix in (".txt", ".tsv", ".dat"):
        path = tmp_path / f"run{suffix}"
        path.write_text("t\tx\n0\t1\n1\t2\n")
        assert read_columns(path).values["x"].tolist() == [1.0, 2.0]


SHIFT, DRIFT = 1.2345, 80e-6


def sweep(t):
    """A motion that does not repeat itself."""
    return 0.1 * np.sin(2.0 * t + 1.5 * t**2) + 0.02 * t


def pair(noise=1e-4):
    """A drive that gives its position, and a scope, started later, with position and force."""
    rng = np.random.default_rng(2)
    t, own = np.arange(0.0, 8.0, 1e-3), np.arange(0.0, 6.0, 4e-4)
    late = SHIFT + (1.0 + DRIFT) * own
    x = sweep(t) + noise * rng.normal(size=t.size)
    volts = 2.0 - 3.0 * (sweep(late) + noise * rng.normal(size=own.size))
    return t, x, own, volts, 10.0 * np.cos(late)


def test_two_clocks_are_joined_by_a_common_signal():
    t, x, own, volts, force = pair()
    drive = jfric.Experiment(t, y={"x": x}, meta={"name": "drive"})
    scope = jfric.Experiment(
        own, u={"load.F": force}, y={"x": -volts, "a.x": own}, meta={"name": "s"}
    )
    both = jfric.join_records(drive, scope, "x")
    assert abs(both.t[0] - SHIFT) < 2e-3
    assert abs(both.t[-1] - (SHIFT + (1.0 + DRIFT) * own[-1])) < 2e-3
    # The clock is far better known than the step of the samples.
    np.testing.assert_allclose(SHIFT + (1.0 + DRIFT) * both.y["a.x"], both.t, atol=1e-4)
    np.testing.assert_allclose(both.u["load.F"], 10.0 * np.cos(both.t), atol=1e-2)
    np.testing.assert_array_equal(both.y["x"], x[np.searchsorted(t, both.t)])
    (remark,) = both.meta["remarks"]
    assert remark.startswith("the clock of s was found by x: t = 1.234")
    # Wherever the sensors have their zeros.
    away = jfric.join_records(
        jfric.Experiment(t, y={"x": x + 50.0}), jfric.Experiment(own, y={"x": 400.0 - volts}), "x"
    )
    np.testing.assert_allclose(away.t, both.t, rtol=1e-9)
    # In the other order the scope has the clock.
    back = jfric.join_records(scope, drive, "x")
    assert abs(back.t[0]) < 1e-9
    assert abs(back.t[-1] - own[-1]) < 1e-9


def test_clocks_that_cannot_be_found_are_refused():
    t = np.arange(0.0, 10.0, 1e-2)
    wave = jfric.Experiment(t, y={"x": np.sin(8.0 * t)})
    with pytest.raises(jfric.ProblemError, match=r"x: shifts of .* fit equally well"):
        jfric.join_records(wave, wave, "x")
    noise = np.random.default_rng(0).normal(size=(2, t.size))
    one, other = (jfric.Experiment(t, y={"x": x}) for x in noise)
    with pytest.raises(jfric.ProblemError, match=r"x: found a correlation of at most 0\.\d+"):
        jfric.join_records(one, other, "x")
    with pytest.raises(jfric.ProblemError, match="signal: found 'v', the first record has x"):
        jfric.join_records(one, other, "v")
    still = jfric.Experiment(t, y={"x": 0.0 * t})
    with pytest.raises(jfric.ProblemError, match="x: the second record never changes"):
        jfric.join_records(one, still, "x")


BESIDE = """
[data]
time = "t"
[data.y]
x = "x"
[data.beside]
file = "*_scope.csv"
join = "x"
time = "Second"
[data.beside.y]
x = {column = "CH1", unit = "-0.5 m"}
[data.beside.u]
"load.F" = {column = "CH2", unit = "20 N"}
"""


def test_a_second_file_of_a_run_stands_in_the_table(tmp_path):
    t, x, own, volts, force = pair()
    (tmp_path / "run.csv").write_text("t,x\n" + rows(t, x))
    head = "Second,CH1,CH2\n"
    (tmp_path / "run_scope.csv").write_text(head + rows(own, volts, force / 20.0))
    (found,) = read_experiments(loads(SYSTEM + BESIDE), tmp_path / "run.csv")
    assert found.name == "run"
    np.testing.assert_allclose(found.u["load.F"], 10.0 * np.cos(found.t), atol=1e-2)
    assert "the clock of run_scope was found by x" in said(found)
    # Written and read again.
    text = dump(loads(SYSTEM + BESIDE))
    (again,) = read_experiments(loads(text), tmp_path / "run.csv")
    np.testing.assert_array_equal(again.u["load.F"], found.u["load.F"])
    # A signal that the system does not know only gives the clock.
    table = BESIDE.replace('x = "x"\n', 'x = "x"\nsync = "x"\n').replace(
        'join = "x"', 'join = "sync"'
    )
    table = table.replace('x = {column = "CH1"', 'sync = {column = "CH1"')
    (other,) = read_experiments(loads(SYSTEM + table), tmp_path / "run.csv")
    assert set(other.y) == {"x"}
    np.testing.assert_array_equal(other.u["load.F"], found.u["load.F"])


def test_a_fit_keeps_the_checksum_of_the_second_file(tmp_path):
    t, x, own, volts, force = pair()
    (tmp_path / "run.csv").write_text("t,x\n" + rows(t, x))
    (tmp_path / "run_scope.csv").write_text("Second,CH1,CH2\n" + rows(own, volts, force))
    config = loads(SYSTEM + BESIDE)
    first, second = sources(config, [tmp_path / "run.csv"])
    assert second["path"] == str(tmp_path / "run_scope.csv")
    assert second["beside"] == first["path"]
    assert second["sha256"] != first["sha256"]


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ('join = "x"', 'join = "y"', "data.beside.join: found 'y', data has x"),
        (
            'x = {column = "CH1", unit = "-0.5 m"}',
            "",
            "data.beside.join: found 'x', data.beside has",
        ),
        ('file = "*_scope.csv"', "", "data.beside.file: missing"),
        ("[data]\n", '[data]\nrecords = "*"\n', "data.beside: found one with data.records"),
    ],
)
def test_wrong_tables_of_second_files_are_one_sentence(old, new, sentence):
    with pytest.raises(jfric.ProblemError) as caught:
        loads(SYSTEM + BESIDE.replace(old, new))
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def fitted(folder, content, free, system=ROTOR):
    """Values and remarks of ``jfric fit`` with the table that ``jfric fit --init`` writes."""
    folder.joinpath("run.csv").write_text(content)
    folder.joinpath("system.toml").write_text(system)
    run = CliRunner().invoke
    table = run(app, ["fit", str(folder / "system.toml"), "--init", str(folder / "run.csv")])
    assert table.exit_code == 0, table.output
    folder.joinpath("system.toml").write_text(system + table.output)
    words = ["fit", str(folder / "system.toml"), "--data", str(folder / "run.csv")]
    done = run(app, [*words, "--free", free, "--starts", "2", "--out", str(folder / "fit.json")])
    assert done.exit_code == 0, done.output
    found = json.loads((folder / "fit.json").read_text())["parameters"]
    values = {name: row["value"] for name, row in found.items()}
    return values, " ".join(done.output.split())


@pytest.mark.slow  # its siblings: an angle that is unwrapped, other fits by the command
def test_a_wrapped_angle_gives_the_limit_of_friction(tmp_path):
    """Coasting from 10 rad/s against 0.1 N m. Wrapped, the limit was at its bound of 1 N m, and
    the fit had converged."""
    t = 0.005 * np.arange(201)
    degrees = np.degrees(10.0 * t - 0.05 * t**2) % 360.0
    content = "t [s],angle [deg]\n" + rows(t, np.round(degrees, 3))
    system = ROTOR + '[initial.phi]\nv = "10 rad/s"\n'
    values, output = fitted(tmp_path, content, "friction.limit=0.01:1", system)
    assert abs(values["friction.limit"] - 0.1) < 1e-3
    assert "column 'angle [deg]' begins anew every turn, 1 times: it was unwrapped" in output


def test_seconds_since_1970_count_from_the_first_sample(tmp_path):
    t = 0.005 * np.arange(201)
    content = "time,position\n" + rows([f"{1714564800 + a:.3f}" for a in t], t**2)
    found, _ = proposed(tmp_path, content)
    np.testing.assert_allclose(found.t, t, atol=1e-6)
    assert "times count from the first sample, at 1.7145648e+09 s" in said(found)


def outside(folder, first):
    """A record that begins at ``first``, its table, and what is free."""
    path, t = folder / "run.csv", 0.01 * np.arange(101)
    path.write_text("t,phi\n" + rows(first + t, 10.0 * t - 0.15 * t**2))
    table = '[data]\ntime = "t"\n[data.y]\nphi = "phi"\n'
    return path, table, {"friction.limit": jfric.Free(0.01, 1.0)}


@pytest.mark.parametrize("first", [-0.5, 3.0])
def test_a_record_outside_of_the_simulated_time_is_refused(tmp_path, first):
    """The motion was simulated from the start of the problem: another motion."""
    path, table, free = outside(tmp_path, first)
    sentence = rf"found a first sample at {first:g} s, the problem goes from 0 s to 1 s; set time"
    with pytest.raises(jfric.ProblemError, match=sentence):
        run_fit(loads(ROTOR + table), [path], free)


@pytest.mark.slow  # its siblings: fits of other records
@pytest.mark.parametrize("first", [-0.5, 3.0])
def test_a_problem_that_starts_with_its_record_is_fitted(tmp_path, first):
    path, table, free = outside(tmp_path, first)
    moved = ROTOR.replace("[time]\n", f'[time]\nstart = "{first} s"\n')
    moved = moved.replace('end = "1 s"', f'end = "{first + 1.0} s"') + "[initial.phi]\nv = 10.0\n"
    found = run_fit(loads(moved + table), [path], free, starts=2)
    assert abs(found.values["friction.limit"] - 0.3) < 1e-3
