import csv
import dataclasses
import importlib
import inspect
import json
import logging
import re
import xml.etree.ElementTree as ET
from contextvars import ContextVar

import jax
import pytest
from jax.experimental.compilation_cache import compilation_cache
from rich.text import Text
from typer.main import get_command
from typer.testing import CliRunner

import jfric
from jfric.cli.app import tell
from jfric.cli.main import app
from jfric.files.starting_files import STARTERS
from jfric.numerics import kept_programs
from jfric.numerics.compilation import cache_directory, compilation_folder
from jfric.numerics.printing import Shown
from jfric.verification.configs import shipped

SMALL = """
dofs = ["x"]
[time]
end = "1 s"
outputs = 11
[mass]
dof = "x"
m = "1 kg"
[friction]
dof = "x"
mu = 0.1
N = "10 N"
[load]
dof = "x"
F = "2 N"
[[check]]
quantity = "x(1)"
expected = {expected}
tolerance = 1e-9
source = "(F - mu N) t^2 / 2 m"
"""


@pytest.fixture(scope="module", autouse=True)
def _compile_once(tmp_path_factory):
    """Commands of this module share compiled programs; the process's settings are restored."""
    before = {
        name: getattr(jax.config, name)
        for name in (
            "jax_compilation_cache_dir",
            "jax_persistent_cache_min_compile_time_secs",
            "jax_persistent_cache_min_entry_size_bytes",
            "jax_logging_level",
        )
    }
    levels = {name: logging.getLogger(name).level for name in ("jax", "jaxlib")}
    compilation_cache.reset_cache()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JFRIC_CACHE_DIR", str(tmp_path_factory.mktemp("xla")))
        patch.setattr(kept_programs, "compilation_folder", compilation_folder)
        yield
    for name, value in before.items():
        jax.config.update(name, value)
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)
    compilation_cache.reset_cache()


def call(*arguments):
    return CliRunner().invoke(app, [str(a) for a in arguments])


SLIDER = """
dofs = ["x"]
time = {end = 1.0, outputs = 11}
mass = {dof = "x", m = 1.0}
spring = {dof = "x", k = 40.0}
friction = {dof = "x", mu = 0.3, N = 1.0}
initial.x.q = 0.1
"""


def test_a_run_to_another_end_is_traced_no_more(tmp_path, monkeypatch):
    """Another number of outputs would be another program, of the motion and of its forces."""
    traced, made = [], kept_programs.Kept._made
    monkeypatch.setattr(kept_programs.Kept, "_made", lambda *x: traced.append(x[0]) or made(*x))
    system = tmp_path / "system.toml"
    system.write_text(SLIDER)

    def run(*words):
        kept_programs.forget_programs()
        found = call("run", system, *words, "--out", tmp_path)
        assert found.exit_code == 0, found.output
        return len(traced)

    first = run()
    assert first > 1
    assert run("--set", "time.end=0.7", "--times", "23") == first
    with (tmp_path / "run-002.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 23
    # The force of the spring belongs to the position of its own row.
    force, position = ([float(row[name]) for row in rows] for name in ("force.spring", "q.x"))
    assert force == pytest.approx([-40.0 * x for x in position], rel=1e-9, abs=1e-12)


def ve0116():
    return shipped("ve0116")


def test_help():
    result = call("--help")
    assert result.exit_code == 0
    for group in ("Begin", "Simulate", "Study", "Identify"):
        assert f"─ {group} ─" in result.output
    for command in ("run", "show", "verify", "schema"):
        assert command in result.output
        assert "Example" in call(command, "--help").output


@pytest.mark.slow
def test_run_writes_trajectory_sidecar_and_figure(tmp_path):
    result = call("run", ve0116(), "--plot", "--out", tmp_path)
    assert result.exit_code == 0, result.output
    assert "status: ok" in result.output
    assert "compile" in result.output
    assert "events 7" in result.output
    assert "FAILED" not in result.output
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "run-001.csv",
        "run-001.json",
        "run-001.png",
    ]
    sidecar = json.loads((tmp_path / "run-001.json").read_text())
    assert sidecar["command"].startswith("jfric run ")
    assert sidecar["units"]["v.u"] == "m/s"
    assert sidecar["event_count"] == 7
    assert sidecar["solver"]["flow"] == "exact"
    assert set(sidecar["wall_time"]) == {"compile", "run", "total"}
    assert sidecar["trajectory"] == "run-001.csv"
    with (tmp_path / "run-001.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 401
    assert float(rows[100]["q.u"]) == pytest.approx(0.1389304187383115, abs=1e-12)
    assert rows[-1]["mode.friction"] == "stick"


def test_run_with_changed_parameters_leaves_its_checks_out(tmp_path):
    # With the figure as in the test above: the same shapes, hence no new compilation.
    arguments = ("run", ve0116(), "--out", tmp_path, "--format", "parquet", "--plot")
    result = call(*arguments, "--set", "friction.mu=0.12", "--set", "spring.k=5 kN/m")
    assert result.exit_code == 0, result.output
    assert "left out, they hold for its own numbers" in " ".join(result.output.split())
    assert "FAILED" not in result.output
    # What is written is the changed system, which runs again from its own text.
    sidecar = json.loads((tmp_path / "run-001.json").read_text())
    assert sidecar["set"] == ["friction.mu=0.12", "spring.k=5 kN/m"]
    (tmp_path / "again.toml").write_text(sidecar["config"])
    shown = call("show", tmp_path / "again.toml").output
    assert "0.12" in shown
    result = call(*arguments)
    assert result.exit_code == 0, result.output
    assert (tmp_path / "run-002.parquet").exists()


@pytest.mark.parametrize(
    ("held", "side"),
    [
        pytest.param("", "(SI units)", marks=pytest.mark.slow),
        ("[friction]\ndof = 'u'\nlimit = '4 N'\n", "(SI units; one-sided, see the flags)"),
    ],
    ids=["swing", "held"],
)
def test_run_says_which_derivatives_have_one_side_only(held, side, tmp_path):
    """A swing has derivatives on both sides; at a load that friction just holds there is one."""
    swing = """dofs = ["u"]
[time]
end = "1 s"
outputs = 2
[mass]
dof = "u"
m = "1 kg"
[spring]
dof = "u"
k = "4 N/m"
[initial.u]
q = "1 m"
"""
    (tmp_path / "swing.toml").write_text(swing + held)
    arguments = ("run", tmp_path / "swing.toml", "--out", tmp_path)
    result = call(*arguments, "--derivative", "final.u/spring.k")
    assert result.exit_code == 0, result.output
    assert side in " ".join(result.output.split())


def test_results_are_printed_for_programs_or_not_at_all(tmp_path):
    arguments = ("run", ve0116(), "--out", tmp_path)
    result = call(*arguments, "--json")
    assert result.exit_code == 0
    found = json.loads(result.stdout)
    assert (found["status"]["code"], found["event_count"]) == ("ok", 7)
    assert found["files"] == [str(tmp_path / f"run-001.{x}") for x in ("csv", "json")]
    quiet = call(*arguments, "-q")
    assert (quiet.exit_code, quiet.output) == (0, "")
    kept = json.loads((tmp_path / "run-002.json").read_text())
    assert not kept["command"].endswith(("-q", "--quiet"))
    shown = json.loads(call("show", ve0116(), "--json", "--set", "spring.k=6 kN/m").stdout)
    assert shown["dofs"] == {"u": "translation"}
    assert shown["parameters"]["spring.k"] == {"value": 6000.0, "unit": "N/m"}
    assert "did you mean 'friction.mu'" in call(*arguments, "--set", "friktion.mu=1", "-q").stderr
    wrong = call(*arguments, "--set", "friktion.mu=1", "-v")
    assert isinstance(wrong.exception, jfric.ProblemError)  # with its traceback


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--set", "friktion.mu=1"], "no parameter 'friktion.mu' (did you mean 'friction.mu'?)"),
        (["--set", "friction.mu"], "found 'friction.mu', expected path=value"),
        (["--set", "spring.k=5 kN"], "--set spring.k: found 'kN' (a force), expected a stiffness"),
        (["--set", "spring.k=[1, 2]"], "expected one number"),
        (["--set", "mass.m=-1"], "mass.m: found -1, must not be negative"),
        (["--solver", "event"], "solver: found 'event' (did you mean 'event-driven'?)"),
        (["--flow", "exakt"], "flow: found 'exakt' (did you mean 'exact'?)"),
        (["--rtol", "2"], "rtol: found 2.0, must lie between 0 and 1"),
        (["--format", "xls"], "found 'xls', allowed are csv, parquet"),
        (["--times", "1, 5"], "found times from 1 s to 5 s, they must lie inside"),
        (["--times", "1 m"], "--times: found 'm'"),
        (["--times", "1"], "at least 2 and"),
    ],
)
def test_bad_input_is_one_sentence(arguments, sentence, tmp_path):
    result = call("run", ve0116(), "--out", tmp_path, *arguments)
    assert result.exit_code == 2
    assert sentence in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (MemoryError(), 1, "not enough memory; ask for fewer outputs, events or trajectories"),
        (PermissionError(13, "Permission denied", "a.toml"), 2, "cannot use 'a.toml' (Permission"),
        (
            jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: none left\nat 0x1"), 1,
            "cannot be compiled or run on this machine: RESOURCE_EXHAUSTED: none left",
        ),
        (KeyboardInterrupt("interrupted; 3 of 4 are kept"), 130, "interrupted; 3 of 4 are kept"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (RuntimeError("a mistake of the program"), 1, ""),
        (BrokenPipeError(), 1, ""),
    ],
)  # fmt: skip
def test_what_a_command_meets_is_one_sentence_but_for_its_own_mistakes(
    error, code, said, monkeypatch
):
    def fails(*given, **options):
        raise error

    monkeypatch.setattr("jfric.cli.run.load_changed", fails)
    found = call("run", ve0116())
    assert found.exit_code == code
    lines = found.output.strip().splitlines()
    if said:
        assert len(lines) == 1
        assert lines[0].startswith("jfric: ")
        assert said in lines[0]
    else:
        assert lines == []


def test_text_stays_text_and_cells_have_their_sides(capsys, monkeypatch):
    """Brackets are no markup, in sentences and tables; numbers are at the right."""
    monkeypatch.setattr("jfric.cli.app._readers", ContextVar("readers", default="people"))
    tell("length [m] of [/] and [bold]x[/bold]")
    tell(Shown("Lengths [red]", ("name", ">x [m]"), [("a[b]", "1"), ("c", "20")], "below [m]"))
    said = capsys.readouterr().out
    assert "length [m] of [/] and [bold]x[/bold]" in said
    assert "Lengths [red]" in " ".join(said.split())
    assert [line.rstrip() for line in said.splitlines()[-4:]] == [
        "name  x [m]", "a[b]      1", "c        20", "below [m]",
    ]  # fmt: skip


def test_missing_file():
    result = call("run", "nowhere.toml")
    assert result.exit_code == 2
    assert "nowhere.toml: cannot read the file" in result.stderr


@pytest.mark.parametrize("name", ["ve0116", "drive"])
def test_missing_file_with_the_name_of_a_system(name, tmp_path):
    """The command that the message names writes the file."""
    path = tmp_path / f"{name}.toml"
    result = call("run", path)
    assert result.exit_code == 2
    words = f"jfric init {name} {path}"
    assert words in " ".join(result.stderr.split())
    assert call(*words.split()[1:]).exit_code == 0
    assert call("show", path).exit_code == 0


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("ve0116", "run"),
        ("a2_incline", "statics"),
        ("p4_linear", "periodic"),
        ("s1_flutter", "flutter"),
        ("c1_shortest_time", "optimise"),
    ],
)
def test_init_names_the_command_that_the_file_is_for(name, command, tmp_path):
    path = tmp_path / f"{name}.toml"
    assert f"next: jfric {command} {path}" in " ".join(call("init", name, path).stdout.split())


def test_examples_need_no_folder_of_the_repository():
    """Their files are what ``jfric init`` writes: an installed package has no other ones."""
    for command in (get_command(app), *get_command(app).commands.values()):
        example = command.epilog
        assert example
        assert "configs/" not in example
        for name in re.findall(r"jfric init (\w+)", example):
            assert name in STARTERS or shipped(name).is_file()


def test_show():
    result = call("show", shipped("sdnd106"))
    assert result.exit_code == 0
    assert result.output.startswith(jfric.files.read_toml.load_config(shipped("sdnd106")).title)
    for text in ("friction.mu_s", "N/m", "x1 (translation)", "-x1 + x2", "StaticDynamic", "$m"):
        assert text in result.output


def test_an_element_that_is_not_passive_is_remarked_on():
    found = call("show", shipped("m5_lugre"))
    assert found.exit_code == 0
    assert "mind: lugre: is not passive, sigma2 (0.4) does not exceed" in found.stderr
    assert "mind" not in call("show", shipped("m5_lugre"), "--set", "lugre.sigma2=200").stderr


@pytest.mark.parametrize(
    ("module", "settings", "function"),
    [
        ("export", "ExportSettings", jfric.exports.export_mjcf),
        ("fit", "CompareSettings", jfric.compare_laws),
        ("fit", "FitSettings", jfric.fit),
        ("statics", "EquilibriaSettings", jfric.equilibria),
        ("sweep", "SweepSettings", jfric.sweep),
    ],
)
def test_options_left_out_are_those_of_the_function(module, settings, function):
    record = getattr(importlib.import_module(f"jfric.cli.{module}"), settings)
    left_out = None, dataclasses.MISSING
    given = {x.name: x.default for x in dataclasses.fields(record) if x.default not in left_out}
    own = inspect.signature(function).parameters
    shared = given.keys() & own.keys() - {"residual", "search", "loss"}  # words of the command
    known = {name: own[name].default for name in shared}
    assert known
    assert {name: given[name] for name in shared} == known


def test_schema():
    result = call("schema")
    assert "friction" in json.loads(result.stdout)["properties"]


def test_verify_files_of_a_user(tmp_path):
    (tmp_path / "good.toml").write_text(SMALL.format(expected=0.5))
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "bad.toml").write_text(SMALL.format(expected=1.0))
    result = call("verify", tmp_path, "--json", "--junit", tmp_path / "report.xml")
    assert result.exit_code == 1, result.exception
    rows = {row["case"]: row for row in json.loads(result.stdout)}
    keys = "case quantity solver expected value error tolerance passed source"
    assert list(rows["good"]) == keys.split()
    assert rows["good"]["passed"]
    assert rows["good"]["source"] == "(F - mu N) t^2 / 2 m"
    assert not rows["bad"]["passed"]
    assert rows["bad"]["error"] == pytest.approx(0.5)
    report = ET.parse(tmp_path / "report.xml").getroot()
    assert (report.get("tests"), report.get("failures")) == ("2", "1")

    result = call("verify", tmp_path / "good.toml")
    assert result.exit_code == 0
    assert "1 of 1 checks passed, 1 case, " in result.output


def test_every_file_of_a_verification_gets_its_line(tmp_path):
    (tmp_path / "good.toml").write_text(SMALL.format(expected=0.5))
    (tmp_path / "typo.toml").write_text(SMALL.format(expected=0.5).replace("mu =", "nu ="))
    (tmp_path / "none.toml").write_text(SMALL.split("[[check]]")[0])
    unmet = SMALL.format(expected=1) + '[[check]]\nquantity="limit.x"\nexpected=1\ntolerance=1\n'
    (tmp_path / "unmet.toml").write_text(unmet)
    (tmp_path / "broken.toml").write_text("dofs = [")
    quiet = '[solver]\nname = "quasi-static"\n'
    (tmp_path / "quasi.toml").write_text(SMALL.format(expected=0.5) + quiet)
    result = call("verify", tmp_path, "--flow", "exact", "--json")
    assert result.exit_code == 1, result.exception
    rows = {row["case"]: row for row in json.loads(result.stdout)}
    assert set(rows) == {"good", "typo", "unmet", "broken"}
    assert rows["good"]["passed"]
    assert "friction.nu: unknown field" in rows["typo"]["quantity"]
    assert rows["broken"]["quantity"].startswith("refused: ")
    assert any("needs a table [statics]" in r["quantity"] for r in json.loads(result.stdout))
    assert "none.toml: found no [[check]]" in result.stderr
    assert "quasi.toml: left out, the solver quasi-static has no flow 'exact'" in result.stderr
    # A single file that is refused is bad input.
    result = call("verify", tmp_path / "typo.toml")
    assert (result.exit_code, len(result.stderr.strip().splitlines())) == (2, 1)


def test_verify_without_checks(tmp_path):
    (tmp_path / "none.toml").write_text(SMALL.split("[[check]]")[0])
    result = call("verify", tmp_path)
    assert result.exit_code == 2
    assert "found no [[check]]" in result.stderr


def test_cache_directory(monkeypatch, tmp_path):
    monkeypatch.setenv("JFRIC_CACHE_DIR", str(tmp_path))
    assert cache_directory() == tmp_path
    for off in ("0", ""):
        monkeypatch.setenv("JFRIC_CACHE_DIR", off)
        assert cache_directory() is None
    monkeypatch.delenv("JFRIC_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_directory() == tmp_path / "jfric" / "xla"


def test_a_cache_that_cannot_be_written_breaks_nothing(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("JFRIC_CACHE_DIR", str(tmp_path / "file" / "cache"))
    assert call("show", ve0116()).exit_code == 0


@pytest.mark.slow
@pytest.mark.parametrize("setting", ["time.end=0.5", "parameters.T=0.5"])
def test_checks_are_left_out_with_set_also_where_the_end_comes_before_them(setting, tmp_path):
    config = tmp_path / "block.toml"
    text = SMALL.format(expected=0.5)
    if setting.startswith("parameters"):
        text = text.replace('end = "1 s"', 'end = "$T"') + "[parameters]\nT = 1.0\n"
    config.write_text(text)
    line = ["run", str(config), "--set", setting, "--out", str(tmp_path / "out")]
    found = CliRunner().invoke(app, line)
    assert found.exit_code == 0, found.output
    assert "1 left out" in found.output


ORBIT = """
[[check]]
quantity = "orbit.x"
expected = 0.0
tolerance = 1e-9
source = "none: it does not repeat"
"""


def test_checks_of_steady_states_are_for_another_command(tmp_path):
    config = tmp_path / "block.toml"
    config.write_text(SMALL.format(expected=0.5) + ORBIT)
    found = call("run", config, "--out", tmp_path / "out")
    assert found.exit_code == 0, found.output
    assert f"checks of steady states: 1 left out; jfric verify {config}" in found.output
    assert "x(1)" in found.output


CONTROLLED = """
[controller]
reads = "x"
drives = "load.F"
kp = 1.0
"""


def test_a_controller_without_samples_of_its_own_is_for_fits(tmp_path):
    config = tmp_path / "block.toml"
    config.write_text(SMALL.format(expected=0.5) + CONTROLLED)
    for line in (
        ["run", "--out", tmp_path],
        ["sweep", "--vary", "friction.mu=0.1:0.2:2", "--observe", "final.x"],
        ["periodic"],
        ["verify"],
    ):
        command, *options = map(str, line)
        found = CliRunner().invoke(app, [command, str(config), *options])
        words = " ".join(found.output.split())
        assert found.exit_code == 2, (command, found.output)
        assert "controller.period: missing; give the time between two samples" in words, words
    assert CliRunner().invoke(app, ["show", str(config)]).exit_code == 0
    assert "controller.kp" in jfric.parameters(jfric.load(config))


def test_analyses_of_positions_and_velocities_refuse_a_controller(tmp_path):
    config = tmp_path / "block.toml"
    config.write_text(SMALL.format(expected=0.5) + CONTROLLED + 'period = "1 ms"\n')
    found = CliRunner().invoke(app, ["equilibria", str(config)])
    assert found.exit_code == 2, found.output
    assert "controller: found a controller" in " ".join(found.output.split())


def test_every_help_shows_its_brackets():
    """What stands in brackets is a name or a unit, no markup that the terminal takes away."""
    for name, command in get_command(app).commands.items():
        texts = [command.help, command.epilog, *(getattr(p, "help", "") for p in command.params)]
        for text in filter(None, texts):
            shown = Text.from_markup(text).plain
            assert shown == text.replace("\\[", "["), name
            for opening, closing in ("()", "[]"):
                assert shown.count(opening) == shown.count(closing), (name, shown)
            assert shown.rstrip()[-1] in ".)" or text == command.epilog, (name, shown)


def test_devices_are_printed_and_nothing_else_is_asked():
    found = jax.devices()
    done = call("--devices")
    assert done.exit_code == 0
    assert done.stdout.startswith(f"{len(found)} {found[0].platform}")
    assert done.stdout.count("\n") == 1
