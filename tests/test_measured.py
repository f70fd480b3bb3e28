"""Measured data: files, closed loops, windows, the command; real records where they are present."""

import functools
import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from prediction import relative_error
from typer.testing import CliRunner

import jfric
from jfric.cli.fit_record import checksum, run_fit
from jfric.cli.kept_results import write_page
from jfric.cli.main import app
from jfric.files import read_toml
from jfric.files.read_toml import load_config
from jfric.fits.comparison.candidates import candidate_laws
from jfric.fits.data.measured_files import read_columns, read_experiments
from jfric.fits.data.stacking import function_paths
from jfric.fits.free import check_free, read_free
from jfric.solvers.sampled.run import run_sampled

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


def loads(text, *path):
    """The content of a file for a fit, with the controller apart from the problem."""
    return read_toml.loads(text, *path).opened()


LOOP = """
title = "Sledge"
dofs = ["x"]
[time]
end = "6 s"
[mass]
dof = "x"
m = "2 kg"
[damper]
dof = "x"
c = "3 N*s/m"
[friction]
dof = "x"
limit = "4 N"
[load]
dof = "x"
F = "0 N"
[controller]
reads = "x"
drives = "load.F"
kp = 900.0
kd = 60.0
gain = 0.5
delay = 1.0
lag = "8 ms"
limit = 100.0
mean = 2
[data]
time = {column = "time", unit = "ms"}
[data.y]
x = {column = "position", unit = "mm"}
[data.u]
"load.F" = {column = "volts", unit = "0.5 N"}
"controller.reference" = {column = "wanted", unit = "mm"}
"""
TRUE = {"mass.m": 2.0, "damper.c": 3.0, "friction.limit": 4.0}
FREE = {
    "mass.m": jfric.Free(0.5, 8.0, init=3.0),
    "damper.c": jfric.Free(0.3, 30.0, init=6.0),
    "friction.limit": jfric.Free(0.4, 40.0, init=2.0),
}


@functools.cache
def columns():
    """A simulated closed loop with a little noise, in the units of a file."""
    config = loads(LOOP)
    t = 5e-3 * np.arange(1200)
    reference = 0.1 * np.sin(2.0 * t) + 0.03 * np.sin(5.3 * t)
    problem, controller = config.problem, config.controller
    slots = {"load.F": function_paths(problem)["load.F"]}

    @jax.jit
    def run(t, reference):
        return run_sampled(problem, t, {}, slots, controller=controller, reference=reference)

    motion = run(jnp.asarray(t), jnp.asarray(reference))
    x, force = np.asarray(motion.q), np.asarray(motion.inputs["load.F"])
    noise = np.random.default_rng(1).normal(size=t.size)
    return {
        "time": 1e3 * t,
        "position": 1e3 * (x + 1e-6 * noise),
        "volts": force / 0.5,
        "wanted": 1e3 * reference,
    }


def write(folder: Path, kind: str, table=None) -> Path:
    table = columns() if table is None else table
    path = folder / f"record.{kind}"
    if kind == "npz":
        np.savez(path, **table)
    elif kind == "mat":
        from scipy.io import savemat

        savemat(path, table)
    elif kind == "parquet":
        pa = pytest.importorskip("pyarrow")
        import pyarrow.parquet

        pyarrow.parquet.write_table(pa.table(table), path)
    else:
        rows = zip(*(v.tolist() for v in table.values()), strict=True)
        lines = [",".join(table), *(",".join(repr(x) for x in row) for row in rows)]
        path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("kind", ["csv", "parquet", "npz", "mat"])
def test_files_of_all_kinds_give_the_same_experiment(tmp_path, kind):
    (found,) = read_experiments(loads(LOOP), write(tmp_path, kind))
    table = columns()
    np.testing.assert_allclose(found.t, 1e-3 * table["time"], rtol=1e-14)
    np.testing.assert_allclose(found.y["x"], 1e-3 * table["position"], rtol=1e-14)
    np.testing.assert_allclose(found.u["load.F"], 0.5 * table["volts"], rtol=1e-14)
    np.testing.assert_allclose(found.u["controller.reference"], 1e-3 * table["wanted"], rtol=1e-14)


def test_several_records_in_one_file(tmp_path):
    table = {f"{name}/{k}": v for name in ("up_1", "up_2", "down") for k, v in columns().items()}
    path = tmp_path / "logs.npz"
    np.savez(path, **table)
    text = LOOP.replace("[data]\n", '[data]\nrecords = "up_*"\nstart = "1 s"\nend = "2 s"\n')
    found = read_experiments(loads(text), path)
    assert [e.name for e in found] == ["up_1", "up_2"]
    assert found[0].t[0] == pytest.approx(1.0)
    assert found[0].t.size == 201


def changed(**new):
    return {**columns(), **new}


MISTAKES = [
    ("unit = \"mm\"}\n[data.u]", 'unit = "kg"}\n[data.u]', None,
     "data.y.x.unit: found 'kg' (a mass), expected a length such as '10 mm'"),
    ('"position"', '"positon"', None,
     "record.npz: data.y.x: no column 'positon' (did you mean 'position'?)"),
    ('limit = 100.0', 'limits = 100.0', None, "controller.limits: unknown field"),
    ('lag = "8 ms"', 'lag = "-8 ms"', None,
     "controller.lag: found -0.008, must not be negative"),
    ('lag = "8 ms"', 'lag = "8 mm"', None,
     "controller.lag: found 'mm' (a length), expected a time"),
    (None, None, {"position": np.zeros(7)},
     "data.y.x: column 'position' has 7 samples, column 'time' has 1200; must be as many"),
    (None, None, {"volts": np.full(1200, np.nan)},
     "data.u.load.F: found no number in sample 0, 1200 in all; an input acts all"),
    (None, None, {"time": np.zeros(1200)},
     "data.time: found 0 s in all 1200 samples, times must increase"),
    (None, None, {"position": np.array(["a"] * 1200)}, "column 'position' holds text"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "table", "sentence"), MISTAKES)
def test_one_clear_sentence(tmp_path, old, new, table, sentence):
    text = LOOP if old is None else LOOP.replace(old, new)
    assert old is None or text != LOOP
    path = write(tmp_path, "npz", changed(**(table or {})))
    with pytest.raises(jfric.ProblemError) as caught:
        read_experiments(loads(text), path)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_missing_samples_are_masked(tmp_path):
    position = columns()["position"].copy()
    position[5:9] = np.nan
    (found,) = read_experiments(loads(LOOP), write(tmp_path, "csv", changed(position=position)))
    assert np.sum(~found.mask["x"]) == 4


def test_tables_survive_a_round_trip():
    from jfric.files.write_toml import dump

    config = loads(LOOP)
    again = loads(dump(config))
    assert again.data == config.data
    assert again.controller == config.controller


@pytest.mark.parametrize("lag", ["", 'lag = "0 s"'])
def test_a_controller_may_have_no_filter(lag):
    assert loads(LOOP.replace('lag = "8 ms"', lag)).controller.lag == 0.0


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    return read_experiments(loads(LOOP), write(folder, "npz"))[0]


@pytest.mark.slow
def test_closed_loop_recovers_the_parameters(record):
    config = loads(LOOP)
    free = {**FREE, "controller.lag": jfric.Free(1e-3, 0.05, init=3e-3)}
    found = jfric.fit(
        config.problem, record, free, residual=jfric.ClosedLoop(config.controller), starts=1
    )
    for name, value in {**TRUE, "controller.lag": 8e-3}.items():
        assert found.values[name] == pytest.approx(value, rel=1e-5)
    assert relative_error(found) < 1e-5


def test_windows_recover_the_parameters(record):
    config = loads(LOOP)
    found = jfric.fit(config.problem, record, FREE, residual=jfric.Windows(0.75), starts=1)
    assert len(found.experiments) == 8
    for name, value in TRUE.items():
        assert found.values[name] == pytest.approx(value, rel=1e-3)


def test_regression_is_a_good_start(record):
    found = jfric.inverse_regression(loads(LOOP).problem, record, list(TRUE), cutoff=15.0)
    for name, value in TRUE.items():
        assert found.values[name] == pytest.approx(value, rel=0.05)


@pytest.mark.slow
def test_check_sees_the_sampled_model(record):
    config = loads(LOOP)
    report = jfric.check(config.problem, record, FREE, residual=jfric.ClosedLoop(config.controller))
    assert report.ok, str(report)
    assert report.derivative_error < 1e-4
    assert report.step_error < 0.1
    assert report.reversals["record"][0] == 4


def test_candidate_laws_are_nested():
    candidates = candidate_laws(loads(LOOP).problem, 0.2)
    assert [r.name for r in candidates] == [
        "viscous", "Coulomb", "Coulomb + viscous", "asymmetric", "Stribeck", "load-dependent"
    ]  # fmt: skip
    assert [len(r.free) for r in candidates] == [1, 1, 2, 4, 6, 7]
    for candidate in candidates:
        assert "damper" not in candidate.problem.elements
        paths = jfric.parameters(candidate.problem)
        assert all(p in paths for p in candidate.free)
        # Each bound alone leaves a system that can be simulated.
        check_free(candidate.problem, candidate.free)
    with_load = candidates[-1].problem.elements["friction"]["friction"]
    assert with_load.load.names == ("load",)


@pytest.mark.parametrize("size", [0.04, 40.0])
def test_ranges_of_candidate_laws_follow_the_friction_of_the_file(size):
    problem = loads(LOOP.replace('limit = "4 N"', f'limit = "{size} N"')).problem
    (force,) = candidate_laws(problem, 0.2)[1].free.values()
    found = (force.lower, force.init, force.upper)
    assert found == pytest.approx((1e-3 * size, size, 1e2 * size), rel=1e-12)
    grows = candidate_laws(problem, 0.2)[-1].free["parameters.kappa"]
    # All of the load that moves the body at most.
    assert (grows.lower, grows.init, grows.upper) == pytest.approx((0.0, 1e-3 / size, 1.0 / size))


def test_the_command_writes_a_record_and_a_page_and_repeats(tmp_path):
    config = tmp_path / "sledge.toml"
    config.write_text(LOOP)
    data = write(tmp_path, "csv")
    out, page = tmp_path / "fit.json", tmp_path / "fit.html"
    call = ["fit", str(config), "--data", str(data), "--residual", "input", "--starts", "1"]
    call += ["--free", "mass.m=500 g:8 kg", "--free", "damper.c=0.3:30"]
    call += ["--free", "friction.limit=0.4:40", "--out", str(out), "--report", str(page)]
    outcome = CliRunner().invoke(app, call)
    assert outcome.exit_code == 0, outcome.output
    stored = json.loads(out.read_text())
    assert stored["parameters"]["friction.limit"]["value"] == pytest.approx(4.0, rel=1e-5)
    assert stored["versions"]["jax"]
    text = page.read_text()
    # The same page as `jfric view` makes of the record, with units and below 2 MiB.
    again = CliRunner().invoke(app, ["view", str(out), "--out", str(tmp_path / "again.html")])
    assert again.exit_code == 0, again.output
    assert (tmp_path / "again.html").read_text() == text
    assert len(text) < 2 * 2**20
    parameter = stored["parameters"]["friction.limit"]
    assert parameter["unit"] == "N"
    assert "<td>friction.<wbr>limit [N]</td>" in text
    assert "{:.6g} to {:.6g}".format(*parameter["interval"]) in text
    # Two of parameters together, four of residuals, three profiles, starts.
    assert text.count('<div class="plot"') == 10
    assert "://" not in text
    # The record holds all that repeats the fit.
    (file,) = stored["data"]
    assert file["sha256"] == checksum(data)
    same = read_toml.loads(stored["config"], stored["config_path"])
    free = {name: read_free(item) for name, item in stored["free"].items()}
    again = run_fit(same, [data], free, seed=stored["seed"], **stored["options"])
    assert again.values == {k: v["value"] for k, v in stored["parameters"].items()}
    with pytest.raises(jfric.ProblemError, match=r"--report: cannot write .*page\.html \("):
        write_page(config / "page.html", text, "--report")


@pytest.mark.parametrize(
    ("option", "sentence"),
    [
        (["--free", "mass.m=1"], "--free: found 'mass.m=1', expected PATH=LOW:HIGH"),
        (["--free", "mass.m=1 m:2 m"], "--free mass.m: found 'm' (a length), expected a mass"),
        (["--free", "mass.k=1:2"], "free: no parameter 'mass.k' (did you mean 'mass.m'?)"),
        (["--free", "mass.m=1:2", "--residual", "inputs"], "--residual: found 'inputs' (did you"),
    ],
)
def test_bad_calls_are_one_sentence(tmp_path, option, sentence):
    config = tmp_path / "sledge.toml"
    config.write_text(LOOP)
    call = ["fit", str(config), "--data", str(write(tmp_path, "npz")), *option]
    outcome = CliRunner().invoke(app, call)
    assert outcome.exit_code == 2
    assert sentence in outcome.output
    assert len(outcome.output.strip().splitlines()) == 1


def test_unreadable_files(tmp_path):
    broken = tmp_path / "a.npz"
    broken.write_bytes(b"nothing")
    with pytest.raises(jfric.ProblemError, match=r"a\.npz: cannot read it"):
        read_columns(broken)
    with pytest.raises(jfric.ProblemError, match=r"no such file"):
        read_columns(tmp_path / "b.csv")
    with pytest.raises(jfric.ProblemError, match=r"found '\.xls', allowed are \.csv"):
        read_columns(tmp_path / "c.xls")


emps = DATA / "emps" / "emps_estimation.npz"


@pytest.mark.skipif(not emps.is_file(), reason="the measured data are not part of the project")
def test_emps_regression_gives_the_published_parameters():
    config = load_config(Path(__file__).resolve().parents[1] / "configs" / "emps.toml")
    (record,) = read_experiments(config, emps)
    published = {
        "mass.m": 95.109, "damper.c": 203.50, "friction.limit": 20.394, "load.offset.F": 3.165
    }  # fmt: skip
    found = jfric.inverse_regression(config.problem, record, list(published))
    for name, value in published.items():
        assert found.values[name] == pytest.approx(value, rel=5e-3)
    assert found.relative_error == pytest.approx(0.0408, abs=1e-3)


@pytest.mark.parametrize("drop", [False, True])
def test_a_regression_takes_the_measured_force_in_place_of_the_controller(drop):
    """What a controller sets is measured: without that record its force would be taken as zero."""
    t = np.arange(0.0, 6.0, 1e-3)
    x, v, a = np.sin(2.0 * t), 2.0 * np.cos(2.0 * t), -4.0 * np.sin(2.0 * t)
    elements = {
        "mass": jfric.Mass("x", 1.0),
        "damper": jfric.Damper("x", 1.0),
        "load": jfric.Load("x", 0.0),
        "controller": jfric.Controller("x", "load", kp=100.0, period=1e-3),
    }
    problem = jfric.Problem(["x"], elements, time=6.0)
    u = {} if drop else {"load.F": 3.0 * a + 0.5 * v}
    record = jfric.Experiment(t, u=u, y={"x": x})
    names = ["mass.m", "damper.c"]
    if drop:
        with pytest.raises(jfric.ProblemError, match=r"^u\.load\.F: missing in experiment 1"):
            jfric.inverse_regression(problem, record, names)
    else:
        found = jfric.inverse_regression(problem, record, names)
        assert found.vector == pytest.approx([3.0, 0.5], rel=1e-4)
