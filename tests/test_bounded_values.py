"""Sizes, values and files on the command line that once ran for ever, gave a traceback or passed
in silence: each gives its sentence, exit status 2."""

import contextlib
import json
import zipfile

import numpy as np
import pytest
from test_bounded_input import refused, within
from test_config_errors import GOOD
from test_measured import LOOP
from typer.testing import CliRunner

import jfric
from jfric.cli.main import app
from jfric.files.read_toml import loads
from jfric.system.elements import SECTIONS
from jfric.system.fields import Bounds, about
from jfric.system.laws import LAWS
from jfric.system.position_factor import PeriodicFactor, SplineFactor
from jfric.verification.configs import shipped

HUGE = 10**12


def sentence_of(*arguments) -> str:
    """What the command says of bad input."""
    with within(10):
        result = CliRunner().invoke(app, [str(a) for a in arguments])
    assert result.exit_code == 2, (result.output, result.exception)
    assert len(result.stderr.strip().splitlines()) == 1
    return result.stderr.strip()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--times", HUGE], "--times: found 1000000000000, expected a whole number, at least 2"),
        (["--times", "9" * 5000], "--times: found '999"),
        (["--option", f"max_events={HUGE}"], "max_events: found 1000000000000, expected a whole"),
        (["--option", f"max_events={2**70}"], "max_events: found a number of 71 bits, expected"),
        (["--option", f"max_steps={2**70}"], "max_steps: found a number of 71 bits, expected"),
        (["--option", "max_steps=2.5"], "max_steps: found 2.5, expected a whole number"),
        (["--option", "max_steps=nan"], "max_steps: found nan, expected a whole number"),
        (["--option", "max_steps=3", "--option", "max-steps=4"], "found 'max_steps' twice"),
        (["--option", "flow=3"], "flow: found 3, expected a name"),
        (
            ["--solver", "moreau-jean"],
            "dt: missing; the solver moreau-jean needs the length of its",
        ),
        (["--solver", "moreau-jean", "--option", "dt=-1"], "dt: found -1, must be positive"),
        (["--solver", "moreau-jean", "--option", "dt=nan"], "dt: found nan, must be positive"),
        (["--solver", "moreau-jean", "--option", "dt=1e-300"], "dt: found 1e-300 s, the 4 s to be"),
        (["--solver", "moreau-jean", "--option", "theta=2"], "theta: found 2, must lie between"),
        (["--solver", "quasi-static", "--option", f"increments={HUGE}"], "increments: found 10000"),
        (["--solver", "smoothed", "--option", "width=inf"], "width: found inf, must be positive"),
        (["--solver", "smoothed", "--option", "method=7"], "method: found 7, expected a name"),
        (["--set", "mass.m=1", "--set", "mass.m=2"], "--set: found 'mass.m' twice"),
    ],
)
def test_run(arguments, sentence, tmp_path):
    assert sentence in sentence_of("run", shipped("ve0116"), "--out", tmp_path, *arguments)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--vary", f"friction.mu=0:1:{HUGE}"], "found 1000000000000, expected a whole number"),
        (["--vary", f"friction.mu=0:1:{10**30}"], "expected a whole number, at least 1"),
        (
            ["--vary", "friction.mu=0:1:1000000", "--vary", "spring.k=1:2:1000000"],
            "vary: the number of combinations: found 1000000000000",
        ),
        (
            ["--vary", "friction.mu=0:1", "--method", "random", "--samples", HUGE],
            "samples: found 1000000000000, at most",
        ),
        (["--vary", "friction.mu=0:1:2", "--devices", 10**6], "--devices: found 1000000, expected"),
        (["--vary", "friction.mu=0:1:2", "--workers", 10**6], "workers: found 1000000, expected"),
        (["--vary", "friction.mu=0:1:2", "--times", HUGE], "--times: found 1000000000000"),
        (["--vary", "mass.m=0:1:3"], "vary: at mass.m = 0: mass: the degree of freedom 'u' has no"),
        (["--vary", "friction.mu=0:1:2", "--observe", "u(99)"], "found 99 s, after the end at 4 s"),
        (
            ["--vary", "friction.mu=0:1:2", "--observe", "event_time(99999999999999999999)"],
            "events are numbered up to",
        ),
    ],
)
def test_sweep(arguments, sentence, tmp_path):
    out = ["--observe", "final.u", "--out", tmp_path / "sweep.zarr"]
    out = out if "--observe" not in arguments else out[2:]
    assert sentence in sentence_of("sweep", shipped("ve0116"), *arguments, *out)


def test_times_up_to_a_varied_end():
    problem = jfric.load(shipped("ve0116"))
    table = jfric.sweep(problem, {"time.end": [1.0, 6.0]}, "u(5)")
    assert np.isnan(table["u(5)"].values).tolist() == [True, False]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["bias", "ve0116", "--widths", "nan"], "widths: found [nan], at least one is needed"),
        (["bias", "ve0116", "--widths", "1,inf"], "widths: found [1.0, inf]"),
        (["trace", "janovsky_static_fold", "--seeds", "-1"], "seeds: found -1, expected a whole"),
        (["trace", "janovsky_static_fold", "--seeds", HUGE], "seeds: found 1000000000000"),
        (
            ["trace", "janovsky_static_mu", "--vary", "parameters.F=-1:1"],
            "contact.mu: found -1, must not be negative",
        ),
        (["equilibria", "janovsky_static_e1", "--starts", HUGE], "starts: found 1000000000000"),
    ],
)
def test_other_commands(arguments, sentence):
    command, name, *rest = arguments
    assert sentence in sentence_of(command, shipped(name), *rest)


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("end = 4", "end = 4\noutputs = nan", "time.outputs: found nan, expected a whole number"),
        ("end = 4", f"end = 4\noutputs = {HUGE}", "time.outputs: found 1000000000000, must be at"),
        (
            None,
            f"[solver]\nmax_events = {2**70}",
            "solver.max_events: found 1180591620717",
        ),
        (
            None,
            f"[solver]\nmax_steps = {HUGE}",
            "solver.max_steps: found 1000000000000",
        ),
        (None, "[solver]\nwidth = inf", "solver.width: found inf, must be finite"),
        (None, "[solver]\nmax_steps = 2.5", "solver.max_steps: found 2.5, expected a whole number"),
        (
            None,
            "CHECK u(1)\nexpected = nan\ntolerance = 1",
            "check[1].expected: found nan, must be",
        ),
        (
            None,
            "CHECK u(1)\nexpected = 1\ntolerance = inf",
            "check[1].tolerance: found inf, must be",
        ),
        (None, "CHECK u(1)\nexpected = 1\nrelative = nan", "check[1].relative: found nan, must be"),
        (
            None,
            "CHECK event_time(99999999999999999999)\nexpected = 1\ntolerance = 1",
            "check[1].quantity: found 'event_time(99999999999999999999)', events are numbered",
        ),
        (
            None,
            '[load]\ndof = "u"\nF = {steps = {times = [nan], values = [0, 1]}}',
            "load.F.times: found [nan], must be finite",
        ),
    ],
)
def test_files(old, new, sentence):
    new = new.replace("CHECK ", '[[check]]\nquantity = "')
    if "quantity" in new:
        new = new.replace("\nexpected", '"\nexpected')
    base = GOOD.replace('end = "4 s"', "end = 4")
    assert refused(base + new if old is None else base.replace(old, new)).startswith(sentence)


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("delay = 1.0", "delay = -1.0", "controller.delay: found -1, must not be negative"),
        ("delay = 1.0", "delay = inf", "controller.delay: found inf, must be finite"),
        ("limit = 100.0", "limit = 0", "controller.limit: found 0, must be positive"),
        ("kp = 900.0", "kp = nan", "controller.kp: found nan, must be finite"),
        ("mean = 2", "mean = 2.5", "controller.mean: found 2.5, expected a whole number"),
    ],
)
def test_controllers(old, new, sentence):
    assert refused(LOOP.replace(old, new)).startswith(sentence)


@pytest.mark.parametrize(
    ("free", "sentence"),
    [
        (["friction.limit=-1:3"], "free.friction.limit: found the bounds -1 and 3, must not be"),
        (["mass.m=-1:3"], "free.mass.m: found the bounds -1 and 3, must not be negative"),
        (["mass.m=0:3"], "free.mass.m: with 0, a degree of freedom has no mass"),
        (["mass.m=1:3", "mass.m=1:4"], "--free: found 'mass.m' twice"),
        (["mass.m=1:3", "mass.mass.m=1:4"], "free: found 'mass.m' twice"),
        (["delay=-1:1"], "free.delay: found the bounds -1 and 1, must not be negative"),
        (["controller.delay=-1:1"], "free.controller.delay: found the bounds -1 and 1, must not"),
    ],
)
def test_fits(free, sentence, tmp_path):
    (tmp_path / "loop.toml").write_text(LOOP)
    t = np.arange(200) * 5.0
    rows = "".join(f"{x:g},{np.sin(x / 1e2):g},0,0\n" for x in t)
    (tmp_path / "data.csv").write_text(f"time,position,volts,wanted\n{rows}")
    given = [x for text in free for x in ("--free", text)]
    where = ["--data", tmp_path / "data.csv", "--out", tmp_path / "fit.json"]
    residual = ["--residual", "input"] if "controller" in free[0] else []
    found = sentence_of("fit", tmp_path / "loop.toml", *where, *given, *residual)
    assert sentence in found


def test_bounds_on_a_shared_parameter():
    from jfric.fits.free import Free, check_free

    text = GOOD.replace('"100 kg"', '"$a - 1"') + "[parameters]\na = 2\n"
    problem = loads(text).problem
    check_free(problem, {"parameters.a": Free(1.5, 3.0)})
    with pytest.raises(jfric.ProblemError, match=r"with 0.5, mass.m is -0.5, must not be neg"):
        check_free(problem, {"parameters.a": Free(0.5, 3.0)})


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("data.npz", b"PK\x03\x04 damaged"),
        ("data.npz", b""),
        ("data.mat", b""),
        ("data.mat", b"x" * 300),
        ("data.parquet", b"PAR1"),
        ("data.csv", b"time,position,volts,wanted\n0,1," + b"2" * 200_000 + b",3\n"),
        ("data.csv", b"time,position,volts,wanted\n" + b'0,"' + b"2" * 200_000 + b'",2,3\n'),
        ("data.csv", b"\xff\xfe\x00"),
        ("data.csv", b"time,position,volts,wanted\n0,1,2,3\n5,inf,2,3\n"),
        ("data.csv", b"time,position,volts,wanted\n0,1,2,3\ninf,1,2,3\n"),
        ("data.csv", b"time,position,volts,wanted\n0,1,2,3\n5,1,-inf,3\n"),
    ],
)
def test_data(name, content, tmp_path):
    (tmp_path / "loop.toml").write_text(LOOP)
    (tmp_path / name).write_bytes(content)
    free = ["--free", "mass.m=1:3"]
    found = sentence_of("fit", tmp_path / "loop.toml", "--data", tmp_path / name, *free)
    assert name in found


def test_a_damaged_member_of_an_archive(tmp_path):
    (tmp_path / "loop.toml").write_text(LOOP)
    with zipfile.ZipFile(tmp_path / "data.npz", "w") as archive:
        archive.writestr("time.npy", b"\x93NUMPY damaged")
    free = ["--free", "mass.m=1:3"]
    found = sentence_of("fit", tmp_path / "loop.toml", "--data", tmp_path / "data.npz", *free)
    assert "data.npz: cannot read it" in found


@pytest.mark.parametrize("content", ["", "[]", "{}", json.dumps({"address": 3}), "\x00"])
def test_a_damaged_scheduler_file(content, tmp_path, monkeypatch):
    from jfric.sweeps import runner

    monkeypatch.setattr(runner, "PATIENCE", "0.5s")
    (tmp_path / "scheduler.json").write_text(content)
    problem = jfric.load(shipped("ve0116"))
    with within(10), pytest.raises(jfric.ProblemError, match="no Dask scheduler answers"):
        jfric.sweep(
            problem,
            {"friction.mu": [0.1, 0.2]},
            "final.u",
            scheduler=str(tmp_path / "scheduler.json"),
        )


def test_a_fit_whose_starts_all_fail_ends_in_words(tmp_path):
    # Springs so stiff that nothing can be computed.
    (tmp_path / "loop.toml").write_text(LOOP)
    t = np.arange(50) * 5.0
    rows = "".join(f"{x:g},{np.sin(x / 1e2):g},1e300,0\n" for x in t)
    (tmp_path / "data.csv").write_text(f"time,position,volts,wanted\n{rows}")
    result = CliRunner().invoke(
        app,
        ["fit", str(tmp_path / "loop.toml"), "--data", str(tmp_path / "data.csv"), "--free",
         "mass.m=1e-300:1e-299", "--starts", "1", "--out", str(tmp_path / "fit.json")],
    )  # fmt: skip
    assert result.exit_code in (1, 2), (result.output, result.exception)


def mat_file(**options) -> bytes:
    import io

    from scipy.io import savemat

    t = 0.02 * np.arange(40)
    table = {
        "t": t,
        "single": t.astype(np.float32),
        "counts": np.arange(40, dtype=np.int16),
        "whole": np.arange(40.0),
        "table": np.arange(6.0).reshape(2, 3),
        "text": "abc",
        "cells": np.array([1, "a"], dtype=object),
        "one": 2.5,
    }
    buffer = io.BytesIO()
    savemat(buffer, table, **options)
    return buffer.getvalue()


@pytest.mark.parametrize("options", [{}, {"do_compression": True}])
def test_mat_files_are_read_as_scipy_does(tmp_path, options):
    from scipy.io import loadmat

    from jfric.fits.data.mat import read_mat

    path = tmp_path / "x.mat"
    path.write_bytes(mat_file(**options))
    found, expected = read_mat(path), loadmat(path)
    assert set(found) == {k for k in expected if not k.startswith("__")}
    for name in ("t", "single", "counts", "whole", "table", "one"):
        np.testing.assert_array_equal(found[name], np.squeeze(expected[name]))
    assert found["text"].dtype == found["cells"].dtype == object


@pytest.mark.parametrize("options", [{}, {"do_compression": True}])
def test_damaged_mat_files_never_end_the_process(tmp_path, options):
    from jfric.fits.data.measured_files import read_columns

    whole, rng = mat_file(**options), np.random.default_rng(1)
    path = tmp_path / "x.mat"
    refused = 0
    for _ in range(400):
        data = bytearray(whole)
        for place in rng.integers(128, len(data), 3):
            data[place] = rng.integers(256)
        path.write_bytes(data[: rng.integers(100, len(data))] if rng.random() < 0.3 else data)
        with contextlib.suppress(jfric.ProblemError):
            read_columns(path)
            refused -= 1
        refused += 1
    assert refused > 50


def test_degrees_of_freedom_may_be_called_as_fields_are():
    """A weight of a direction is no stiffness, whatever the degree of freedom is called."""
    problem = jfric.Problem(
        ["k", "c", "e"],
        {
            "mass": {x: jfric.Mass(x, 1.0) for x in ("k", "c", "e")},
            "spring": {"a": jfric.Spring({"k": -1.0, "c": 1.0}, 2.0)},
            "contact": {"a": jfric.Contact({"e": -2.0}, {"c": -1.0}, jfric.Coulomb(0.1), gap=1.0)},
        },
    )
    weights = jfric.parameters(problem)
    assert float(weights["spring.a.direction.k"]) == float(weights["contact.a.tangent.c"]) == -1.0
    with pytest.raises(jfric.ProblemError, match=r"^spring.k: found -2, must not be negative"):
        jfric.Problem(["k"], {"mass": jfric.Mass("k", 1.0), "spring": jfric.Spring("k", -2.0)})


#: What numbers of elements, laws and functions may be.
BOUNDS = """
Body: m > 0, J > 0
BoucWen: k > 0, n >= 1, A > 0
Contact: e >= 0 <= 1, radius >= 0, circle_radius >= 0, sphere_radius >= 0, contact_radius > 0
Contensou: mu >= 0, radius > 0
Controller: limit > 0, delay >= 0 <= 1e+06, lag >= 0, period > 0, phase >= 0, resolution > 0,
  slew > 0, tau >= 0, notch > 0, notch_width > 0, smooth >= 0, deadband >= 0, dead_time >= 0
Coulomb: mu >= 0
Dahl: sigma > 0, F_c > 0, exponent >= 1
Damper: c >= 0
DirectionalLoss: average >= 0, difference >= 0, h > 0
Drag: c >= 0
Friction: N >= 0, limit >= 0, kappa >= 0
FrictionCurve: speeds >= 0, curve >= 0, mu_s >= 0
GapSpring: k_positive >= 0, k_negative >= 0, gap_positive >= 0, gap_negative >= 0
Iwan: K_T > 0, F_S > 0, chi > -1, beta >= 0
Jenkins: k > 0, R > 0
Link: m >= 0, armature >= 0, radius > 0
LinkSpring: k >= 0, c >= 0
LuGre: sigma0 > 0, F_c > 0, F_s > 0, v_s > 0, sigma1 >= 0, sigma2 >= 0, breakaway >= 0 <= 1
MasingSpring: x > 0, F > 0
Mass: m >= 0
MaxwellSlip: k > 0, R > 0
Motor: R > 0, L > 0, J >= 0, i_max > 0, C_th > 0, R_th > 0, T_amb > 0, T0 > 0
Pendulum: m >= 0, L >= 0
PeriodicFactor: period > 0
Pin: radius > 0
RateState: N > 0, a > 0, b >= 0, D_c > 0, V0 > 0
Rolling: radius > 0, circle_radius >= 0
SplineFactor: factor >= 0
Spring: k >= 0
StateFeedback: period > 0, limit > 0, phase >= 0, resolution > 0, delay >= 0 <= 1e+06, dead_time
  >= 0
StaticDynamic: mu_s >= 0, mu_d >= 0
StepController: period > 0, phase >= 0, resolution > 0, delay >= 0, dead_time >= 0
Stop: k >= 0, c >= 0
Stribeck: mu_s >= 0, mu_d >= 0, v_s > 0, exponent > 0, mu_v >= 0, peak >= 1
Transmission: limit >= 0, stribeck >= 0, v_s > 0, exponent > 0, c >= 0, km >= 0, ke >= 0, kms >=
  0, kes >= 0, kqm >= 0, kqe >= 0, k >= 0, c_shaft >= 0, backlash >= 0
VelocityWeakening: mu_s >= 0, v_s > 0, mu_d >= 0, mu_v >= 0
"""


def test_bounds_of_all_numbers():
    classes = [*SECTIONS.values(), *LAWS.values(), PeriodicFactor, SplineFactor]
    found = {}
    for kind in sorted(set(classes), key=lambda x: x.__name__):
        bounds = {name: x.bounds for name, x in about(kind).items() if x.bounds != Bounds()}
        found[kind.__name__] = [
            f"{name} {'>=' if x.closed else '>'} {x.low:g}"
            + (f" <= {x.high:g}" if np.isfinite(x.high) else "")
            for name, x in bounds.items()
        ]
    lines = BOUNDS.replace("\n  ", " ").strip().split("\n")
    known = {kind: words.split(", ") for kind, words in (line.split(": ") for line in lines)}
    assert {kind: words for kind, words in found.items() if words} == known
