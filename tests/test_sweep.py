"""Sweeps against closed forms, their tables, figures, and refusals."""

import functools
import json
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray
from scipy.stats import qmc
from typer.testing import CliRunner

import jfric
from jfric.cli.main import app
from jfric.files.read_toml import load_config
from jfric.numerics.compilation import ACCELERATOR, CPU, CPU_WHOLE
from jfric.sweeps import sweeping
from jfric.sweeps.design import make_design, parse_vary
from jfric.sweeps.sweeping import execute, prepare
from jfric.sweeps.table import ZarrTable, read_layout
from jfric.sweeps.tiles import choose_budget, refined, start_layout, tile_shape, tiles

ROOT = Path(__file__).resolve().parents[1]
M, K, FX, FZ, END = 100.0, 5000.0, 1500.0, 1000.0, 4.0
OMEGA = np.sqrt(K / M)
HALF = np.pi / OMEGA
#: One list for all runs of the oscillator: its program is compiled once.
OBSERVED = (
    "final.u, final.v, max.u, max.v, min.v.u, mean.u, rms.v, stop_time, event_time(3), "
    "last_event_time, "
    "event.u(2), event_count, impact_count, dissipated, stick_fraction, u(1 s), max.lambda_t, u(t)"
)
TIMES = (0.0, 0.5, 4.0)
SHAPE = {"chunk": 8, "block": 8, "devices": 1}


@functools.cache
def oscillator() -> jfric.Problem:
    return jfric.load(ROOT / "configs" / "ve0116.toml")


def half_waves(mu):
    """Turning points (number + 1 of them) of VE0116 up to its end, and where the motion is."""
    d, centre = mu * FZ / K, FX / K
    needed = int(np.ceil((centre / d - 1.0) / 2.0 - 1e-12))
    number = min(needed, int(END / HALF))
    stops = number == needed
    turning = [
        centre - (1 if i % 2 == 0 else -1) * (centre - 2.0 * i * d) for i in range(number + 1)
    ]
    return turning, d, stops


def closed_form(mu):
    """u at ``t``, times of events and energy lost, by half cosines about 0.3 -+ d."""
    turning, d, stops = half_waves(mu)

    def u(t):
        i = min(int(t / HALF), len(turning) - 1)
        if stops and i == len(turning) - 1:
            return turning[-1]
        middle = FX / K - (1 if i % 2 == 0 else -1) * d
        return middle + (turning[i] - middle) * np.cos(OMEGA * (t - i * HALF))

    return u, turning, d, stops


@functools.cache
def swept() -> xarray.Dataset:
    # No value on the edge of the cone, where the number of half waves jumps.
    mus = np.linspace(0.052, 0.294, 40)
    return jfric.sweep(oscillator(), {"friction.mu": mus}, OBSERVED, times=TIMES, **SHAPE)


@pytest.mark.slow
def test_observables_of_the_oscillator_have_their_closed_forms():
    table = swept()
    assert set(np.asarray(table["status"])) == {0}
    for mu in np.asarray(table["friction.mu"]):
        row = table.sel({"friction.mu": mu})
        u, turning, d, stops = closed_form(mu)
        waves = len(turning) - 1
        path = np.sum(np.abs(np.diff(turning))) + (0.0 if stops else abs(u(END) - turning[-1]))
        expected = {
            "final.u": u(END),
            "max.u": max(turning),
            "max.v": OMEGA * abs(turning[0] - (FX / K - d)),
            "min.v.u": -OMEGA * abs(turning[1] - (FX / K + d)),
            "stop_time": waves * HALF if stops else np.nan,
            "last_event_time": waves * HALF,
            "event_time(3)": 3 * HALF if waves >= 3 else np.nan,
            "event.u(2)": turning[2],
            "event_count": waves,
            "impact_count": 0,
            "dissipated": mu * FZ * path,
            "stick_fraction": 1.0 - waves * HALF / END if stops else 0.0,
            "u(1 s)": u(1.0),
        }
        for name, value in expected.items():
            np.testing.assert_allclose(float(row[name]), value, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(row["u(t)"], [u(t) for t in TIMES], atol=1e-12)
        # Heat is what the spring, the mass and the load lose.
        v = float(row["final.v"])
        stored = 0.5 * K * u(END) ** 2 + 0.5 * M * v**2 - FX * u(END)
        np.testing.assert_allclose(float(row["dissipated"]), -stored, rtol=1e-12)


def test_means_are_integrals_over_the_whole_time():
    table = swept().isel({"friction.mu": 17})
    u, turning, _, stops = closed_form(float(table["friction.mu"]))
    assert stops
    ts = np.linspace(0.0, END, 40_001)
    mean = np.trapezoid([u(t) for t in ts], ts) / END
    np.testing.assert_allclose(float(table["mean.u"]), mean, rtol=1e-8)
    # The mean square of a half wave is half the square of its peak.
    peaks = 0.5 * OMEGA * np.abs(np.diff(turning))
    rms = np.sqrt(np.sum(0.5 * peaks**2) * HALF / END)
    np.testing.assert_allclose(float(table["rms.v"]), rms, rtol=1e-12)


def test_extrema_through_lift_off_and_impact():
    """Example 4.2 of Janovsky over ten periods; the largest sliding velocity and the largest
    rate of the gap lie in flight and just before an impact."""
    problem = jfric.load(ROOT / "configs" / "janovsky_4_2_none.toml")
    published = {
        "max.v.ut": 0.89517055367394,
        "min.v.ut": -0.37661974313614,
        "min.un": -1.645812177941,
        "max.v.un": 0.68347523292123,
        "min.v.un": -0.39626762714408,
        "min.ut": -2.3050610285259,
        "max.ut": 0.60461107850214,
        "max.lambda_n": 1.1046110785021,
        "max.lambda_t": 0.33138332355064,
        "min.lambda_t": -0.33138332355064,
    }
    names = [*published, "impact_count", "event_count"]
    found = jax.jit(lambda p: jfric.observe(p, names))(problem)
    assert int(found.status) == jfric.Status.OK
    for name, value in published.items():
        np.testing.assert_allclose(float(found.values[name]), value, rtol=1e-10, err_msg=name)
    # One lift-off and one impact in each period of 12 pi.
    assert found.values["impact_count"] == 10
    assert found.values["event_count"] == 81


def energy(x):
    """A user's own observable: mechanical energy [J], with a parameter of the lane."""
    k = jfric.get_parameter(x.problem, "spring.k")
    return 0.5 * k * x.q[0] ** 2 + 0.5 * M * x.v[0] ** 2


@dataclass(frozen=True)
class Longest(jfric.observables.Observable):
    """A user's own reduction: length of the longest smooth piece [s]."""

    name: str = "longest"
    unit: str = "s"

    def start(self, problem, mechanics, dtype):
        return jnp.zeros((), dtype)

    def update(self, carry, piece):
        return jnp.maximum(carry, piece.h)


@pytest.mark.slow
def test_own_observables_and_lists_side_by_side():
    observables = {
        "peak": jfric.observables.Maximum(energy, unit="J"),
        "end": jfric.observables.Final(energy, unit="J"),
        "longest": Longest(),
    }
    values = {"friction.mu": [0.1, 0.2, 0.25], "spring.k": [4000.0, 5000.0, 6000.0]}
    table = jfric.sweep(oscillator(), values, observables, method="zip")
    assert table["peak"].dims == ("trajectory",)
    assert table["peak"].attrs["units"] == "J"
    assert list(table["spring.k"].values) == values["spring.k"]
    for i in range(3):
        mu, k = values["friction.mu"][i], values["spring.k"][i]
        # The first half wave stores most, at its end; the last state is at rest.
        first = 2.0 * (FX - mu * FZ) / k
        np.testing.assert_allclose(float(table["peak"][i]), 0.5 * k * first**2, rtol=1e-10)
    assert np.all(table["end"] < table["peak"])
    assert np.all((table["longest"] > 0.1) & (table["longest"] < END))


def derivative(mode, solver):
    names = ["max.v", "dissipated", "stick_fraction"]

    def values(k):
        lane = jfric.set_parameters(oscillator(), {"spring.k": k, "friction.mu": 0.11})
        found = jfric.observe(lane, names, solver).values
        return jnp.stack([found[name] for name in names])

    return np.asarray(jax.jit(mode(values))(K))


def check_derivative(found):
    d = 0.11 * FZ
    # max v = (F - mu N) / sqrt(k m); heat: path times mu N; rests after 7 half waves.
    path = sum(2.0 * (FX - (2 * i + 1) * d) for i in range(7)) / K
    expected = [
        -0.5 * (FX - d) / np.sqrt(M) * K**-1.5,
        -d * path / K,
        0.5 * 7 * np.pi * np.sqrt(M) * K**-1.5 / END,
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.slow
def test_derivatives_of_observables():
    """In reverse mode by forward sensitivities, which forward mode shares."""
    check_derivative(derivative(jax.jacrev, jfric.EventDriven()))


@pytest.mark.slow
def test_derivatives_of_observables_by_stored_states():
    solver = jfric.EventDriven(adjoint="reverse", max_steps=32)
    check_derivative(derivative(jax.jacrev, solver))


@pytest.mark.parametrize(
    ("platform", "small", "lanes"),
    [(CPU_WHOLE, 0, 64), (CPU, 0, 1024), (CPU, 1, 4096), (ACCELERATOR, 0, 131_072)],
)
def test_rows_are_as_long_as_pays(platform, small, lanes):
    known = {"platform": platform, "block": None, "max_steps": 9, "lane_bytes": 8}
    size = 2 * 64 * 4096
    made = start_layout((size,), devices=2, small=bool(small), chunk=None, **known)
    assert made.lanes == lanes
    # Every lane of a tile has its place in one call of the program.
    assert made.devices * made.rows * made.lanes >= made.tile[0]
    assert made.tile[0] % (made.devices * made.lanes) == 0
    # So it is once steps have been counted, few of them here: as many rows as before.
    later = refined(made, (size,), np.full(64, 9), state_size=2, max_steps=9, block=None)
    assert later.tile[0] % (made.devices * made.lanes) == 0
    few = start_layout((3,), devices=2, small=True, chunk=None, **known)
    assert (few.lanes, few.rows, few.tile) == (8, 1, (3,))


def test_tables_of_similar_sizes_are_the_same_program():
    known = {"small": False, "chunk": None, "block": None, "max_steps": 9, "lane_bytes": 8}

    def program(size):
        made = start_layout((size,), devices=2, platform=CPU_WHOLE, **known)
        assert made.devices * made.rows * made.lanes >= size
        return made.rows, made.lanes

    assert program(100) == program(128) == (1, 64)
    assert program(600) == program(2000) == (16, 64)


def test_results_larger_than_a_tile_may_be_are_computed_by_the_row():
    known = {"platform": CPU, "small": False, "chunk": None, "block": None, "max_steps": 9}
    made = start_layout((10_000,), devices=2, lane_bytes=10**12, **known)
    assert (made.rows, made.lanes, made.tile) == (1, 1024, (2000,))


def test_hard_lanes_do_not_hold_the_others_and_a_failing_one_is_a_status(monkeypatch):
    """Some lanes need many times the passes: they are computed apart. One needs too many."""
    # Four, none of them hard, tell how many passes are usual.
    monkeypatch.setattr(sweeping, "PILOT", 4)
    lanes, mu = 80, 0.005
    k = np.full(lanes, K)
    hard, hopeless = [5, 41, 77], 60
    k[hard] = 2500 * K
    k[hopeless] = 2500 * K
    mus = np.full(lanes, mu)
    mus[hopeless] = 0.1 * mu
    prepared = prepare(
        oscillator(),
        {"spring.k": k, "friction.mu": mus},
        "final.u,event_count",
        method="zip",
        solver=jfric.EventDriven(max_steps=200),
    )
    sink, summary = execute(prepared, chunk=8, devices=1)
    table = sink.dataset()
    status, steps = np.asarray(table["status"]), np.asarray(table["steps"])
    assert np.flatnonzero(status).tolist() == [hopeless]
    assert summary.statuses.tolist()[:3] == [lanes - 1, 0, 1]
    meanings = table["status"].attrs["flag_meanings"].split()
    codes = list(table["status"].attrs["flag_values"])
    assert meanings[codes.index(status[hopeless])] == "max_steps"
    assert np.isnan(table["final.u"][hopeless])
    assert np.isnan(table["event_count"][hopeless])
    # 150 half waves until the hard ones stop, at the smallest multiple that friction holds.
    waves = int(np.ceil((FX / (mu * FZ) - 1.0) / 2.0 - 1e-12))
    turning = (FX - (-1) ** waves * (FX - 2 * waves * mu * FZ)) / (2500 * K)
    np.testing.assert_allclose(table["final.u"][hard], turning, rtol=1e-9)
    assert np.all(table["event_count"][hard] == waves)
    assert len(set(np.asarray(table["final.u"])[[0, 1, 2, 79]])) == 1
    easy = np.delete(steps, [*hard, hopeless])
    assert choose_budget(steps, 200) < steps[hard].min()
    assert choose_budget(steps, 200) > easy.max()


@pytest.mark.slow
def test_grid_in_a_store_is_read_without_jfric(tmp_path):
    store = tmp_path / "grid.zarr"
    vary = {"friction.mu": jfric.Range(0.06, 0.29, 6), "load.F": jfric.Range(1e3, 2e3, 5, "log")}
    observed = "final.u, max.v, u(t)"
    grid = {"problem": oscillator(), "vary": vary, "observe": observed, "times": TIMES}
    table = jfric.sweep(**grid, store=store, **SHAPE)
    memory = jfric.sweep(**grid, **SHAPE)
    xarray.testing.assert_identical(
        table.load().drop_attrs(), memory.transpose(*table.dims).drop_attrs()
    )
    assert table["u(t)"].dims == ("friction.mu", "load.F", "time")
    mu, force = np.meshgrid(table["friction.mu"], table["load.F"], indexing="ij")
    np.testing.assert_allclose(table["max.v"], (force - mu * FZ) / np.sqrt(K * M), rtol=1e-12)
    script = f"""
import sys, xarray
data = xarray.open_zarr({str(store)!r}, chunks=None)
assert "jfric" not in sys.modules
assert data["max.v"].attrs["units"] == "m/s" and data["load.F"].attrs["units"] == "N"
assert "[friction]" in data.attrs["config"] and data["u(t)"].shape == (6, 5, 3)
print(float(data["final.u"][0, 0]))
"""
    output = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert float(output.stdout) == float(table["final.u"][0, 0])
    assert output.stderr == b""


def test_stores_of_earlier_versions_are_read_in_the_words_of_today(tmp_path):
    earlier = xarray.Dataset(
        {"status": ("lane", np.zeros(3, np.int8))}, attrs={"command": "jfric run a.toml"}
    )
    earlier.to_zarr(tmp_path / "earlier.zarr", consolidated=False)
    table = jfric.open_sweep(tmp_path / "earlier.zarr")
    assert table["status"].dims == ("trajectory",)
    assert table.attrs == {"point_command": "jfric run a.toml"}


@pytest.mark.parametrize("method", ["random", "sobol", "latin-hypercube"])
def test_samples_do_not_depend_on_how_they_are_cut(method):
    vary = {"a": (0.0, 1.0), "b": jfric.Range(1.0, 100.0, scale="log")}
    design = make_design(vary, method, samples=256, seed=3)
    whole = design.values(0, 256)
    parts = [design.values(*ends) for ends in ((0, 100), (100, 101), (101, 256))]
    np.testing.assert_array_equal(np.concatenate(parts), whole)
    assert np.all((whole >= [0.0, 1.0]) & (whole <= [1.0, 100.0]))
    assert np.any(make_design(vary, method, samples=256, seed=4).values(0, 256) != whole)
    # Uniform on each scale: the means of 256 draws lie within four standard errors.
    unit = np.stack([whole[:, 0], np.log(whole[:, 1]) / np.log(100.0)])
    assert np.all(np.abs(unit.mean(axis=1) - 0.5) < 4.0 / np.sqrt(12 * 256))


@pytest.mark.parametrize(
    ("shape", "most"),
    [((1000, 200), 4096), ((100_000,), 4096), ((3, 5000), 4096), ((7, 9, 11), 20)],
)
def test_tiles_cover_the_table_once_in_order(shape, most):
    cover = np.zeros(shape, int)
    last = 0
    numbers = np.arange(cover.size).reshape(shape)
    for tile in tiles(shape, tile_shape(shape, most)):
        assert tile.first == last
        last = tile.last
        assert tile.last - tile.first <= most
        np.testing.assert_array_equal(
            numbers[tile.region].ravel(), np.arange(tile.first, tile.last)
        )
        cover[tile.region] += 1
    assert last == cover.size
    assert np.all(cover == 1)


def test_logarithmic_ranges_are_geometric_and_meet_their_ends():
    values = jfric.Range(1e-3, 1e2, 6, "log").values(np.arange(6))
    np.testing.assert_allclose(values, [1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2], rtol=1e-14)
    assert values[0] == 1e-3
    assert values[-1] == 1e2


MU = {"friction.mu": [0.1, 0.2]}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"vary": {"friction.nu": [1.0]}}, "'friction.nu' (did you mean 'friction.mu'"),
        ({"vary": {"friction.mu": [-0.1, 0.2]}}, "at friction.mu = -0.1: friction.mu: found -0.1"),
        ({"vary": {"friction.mu": jfric.Range(0.1, -0.2, 3)}}, "at friction.mu = -0.2: friction"),
        ({"vary": {"friction.mu": [0.1, np.nan]}}, "friction.mu: found nan, values must be finite"),
        ({"vary": {"friction.mu": [0.1, 0.1]}}, "found a value twice"),
        ({"vary": {"friction.mu": (0.1, 0.2)}, "method": "sobol"}, "samples: found none"),
        ({"vary": {"friction.mu": [0.1, 0.2, 0.3]}, "method": "sobol", "samples": 8}, "two ends"),
        (
            {"vary": {"friction.mu": (0.1, 0.2)}, "method": "random", "samples": 8, "seed": -1},
            "seed: found -1",
        ),
        ({"vary": MU, "samples": 3}, "samples: found 3, but the method is 'grid'"),
        ({"vary": MU, "method": "gird"}, "method: found 'gird' (did you mean 'grid'?)"),
        ({"vary": {**MU, "spring.k": [1.0]}, "method": "zip"}, "needs as many of each"),
        ({"vary": {}}, "vary: found no parameter"),
        ({"vary": MU, "observe": "final.w"}, "no quantity 'w'"),
        ({"vary": MU, "observe": "maxi.u"}, "did you mean 'max"),
        ({"vary": MU, "observe": "final.u,final.u"}, "found 'final.u' twice"),
        ({"vary": MU, "observe": ""}, "observe: found nothing"),
        ({"vary": MU, "observe": "u(t)"}, "no times are given"),
        ({"vary": MU, "observe": "u(1 m)"}, "expected a time"),
        ({"vary": MU, "observe": "event_time(0)"}, "events are numbered 1, 2"),
        ({"vary": MU, "observe": "dissipated.pad"}, "no single contact 'pad'"),
        ({"vary": MU, "observe": "u(t)", "times": [1.0, 0.5]}, "a list that increases"),
        ({"vary": MU, "devices": 99}, "devices: found 99"),
        ({"vary": MU, "workers": 0}, "workers: found 0"),
        ({"vary": MU, "workers": 1, "scheduler": "tcp://x:1"}, "give one of the two"),
        (
            {"vary": {"friction.mu": jfric.Range(0.1, 0.2, 10**10)}},
            "10000000000 points, their results take",
        ),
    ],
)  # fmt: skip
def test_bad_input_is_refused_in_one_sentence(arguments, sentence):
    given = {"observe": "final.u", **arguments}
    with pytest.raises(jfric.ProblemError) as caught:
        jfric.sweep(oscillator(), **given)
    message = str(caught.value)
    assert sentence in message
    assert "\n" not in message


def test_a_scheduler_that_does_not_answer_is_named(monkeypatch):
    from jfric.sweeps import runner

    monkeypatch.setattr(runner, "PATIENCE", "0.5s")
    with pytest.raises(jfric.ProblemError, match=r"no Dask scheduler answers at 'tcp://127"):
        jfric.sweep(oscillator(), MU, "final.u", scheduler="tcp://127.0.0.1:9")


def test_stores_of_other_things_are_left_alone(tmp_path):
    (tmp_path / "file").write_text("mine", "utf-8")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "mine").touch()
    prepared = prepare(oscillator(), MU, OBSERVED, times=TIMES)
    for name in ("file", "folder"):
        with pytest.raises(jfric.ProblemError, match=r"choose another name|is a file"):
            execute(prepared, store=tmp_path / name)
    assert (tmp_path / "folder" / "mine").exists()
    execute(prepared, store=tmp_path / "sweep.zarr", **SHAPE)
    other = prepare(oscillator(), {"friction.mu": [0.1, 0.3]}, OBSERVED, times=TIMES)
    with pytest.raises(jfric.ProblemError, match=r"another sweep .values differs"):
        execute(other, store=tmp_path / "sweep.zarr")


@pytest.mark.slow
def test_command_sweeps_draws_and_refuses(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = str(ROOT / "configs" / "ve0116.toml")
    line = ["sweep", config, "--vary", "friction.mu=0.06:0.28:12", "--observe", OBSERVED]
    line += ["--times", "0, 0.5, 4", "--out", "mu.zarr"]
    line += ["--chunk", "8", "--block", "8", "--devices", "1"]
    result = CliRunner().invoke(app, [*line, "--plot"])
    assert result.exit_code == 0, result.output
    assert "12 trajectories" in result.output
    assert (tmp_path / "mu.png").stat().st_size > 10_000
    kept = jfric.open_sweep("mu.zarr").attrs
    program, *words = shlex.split(kept["command"])
    assert (program, sorted(words)) == ("jfric", sorted([*line, "--plot"]))
    assert kept["point_command"] == f"jfric run {config}"
    again = CliRunner().invoke(app, line)
    assert "12 of 12 trajectories were there already" in again.output
    drawn = CliRunner().invoke(app, ["plot", "mu.zarr", "--observe", "final.u", "--out", "u.png"])
    assert drawn.exit_code == 0
    assert (tmp_path / "u.png").exists()
    refused = {
        ("plot", "mu.zarr", "--observe", "final.w"): "did you mean 'final.",
        ("plot", "none.zarr"): "no such folder",
        (*line[:2], "--vary", "load.F=1 kg:2 kN:3", *line[4:]): "found 'kg' (a mass)",
        (*line[:2], "--vary", "load.F=1 kN:2 kN", *line[4:]): "expected PATH=LOW:HIGH:COUNT",
        (*line[:2], "--vary", "load.F=0:2 kN:3:log", *line[4:]): "two positive ends",
        (*line[:2], "--vary", "load.F=1 kN:2 kN:x", *line[4:]): "expected a whole number",
        (*line[:2], "--vary", "laod.F=1:2:3", *line[4:]): "did you mean 'load.F'",
        (*line[:2], "--vary", "load.F", *line[4:]): "expected PATH=",
    }
    for arguments, sentence in refused.items():
        result = CliRunner().invoke(app, list(arguments))
        assert result.exit_code == 2, result.output
        assert sentence in re.sub(r"\s+", " ", result.output)


@pytest.mark.slow
def test_other_solvers_give_what_they_compute():
    """Against single runs of the same solver; what is between outputs is interpolated."""
    problem = jfric.set_parameters(jfric.load(ROOT / "configs" / "ve0116.toml"), {"time.end": 2.0})
    solver, values = jfric.MoreauJean(1e-3), np.array([0.08, 0.2])
    names = "final.u,final.v.u,event_time(2),stop_time,event_count,u(0.777 s),max.u,dissipated"
    names += ",last_event_time"
    table = jfric.sweep(problem, {"friction.mu": values}, observe=names, solver=solver)
    exact = jfric.sweep(problem, {"friction.mu": values}, observe=names)
    assert np.all(table.status == 0)
    for i, mu in enumerate(values):
        lane = jfric.set_parameters(problem, {"friction.mu": mu})
        one = jfric.simulate(lane, solver, ts=np.array([0.777]))
        found, count = table.isel({"friction.mu": i}), int(one.events.count)
        assert float(found["final.u"]) == pytest.approx(float(one.final.q[0]), abs=1e-12)
        assert float(found["u(0.777 s)"]) == pytest.approx(float(one.q[0, 0]), abs=1e-12)
        assert float(found["event_time(2)"]) == float(one.events.time[1])
        assert float(found["last_event_time"]) == float(one.events.time[count - 1])
        assert int(found["event_count"]) == count
    # The first still moves at the end.
    assert np.isnan(exact["stop_time"][0])
    for name in ("final.u", "max.u", "dissipated", "stop_time"):
        np.testing.assert_allclose(table[name], exact[name], rtol=2e-3, err_msg=name)
    with pytest.raises(jfric.ProblemError, match=r"found 'stop_time', but the solver smoothed"):
        jfric.sweep(problem, {"friction.mu": values}, observe="stop_time", solver=jfric.Smoothed())


def test_command_sweeps_load_histories(tmp_path, monkeypatch):
    """VE0061: the residual displacement is mu Fz / k."""
    monkeypatch.chdir(tmp_path)
    line = ["sweep", str(ROOT / "configs" / "ve0061.toml"), "--vary", "friction.mu=0.1:0.3:3"]
    line += ["--observe", "final.u,max.u", "--solver", "quasi-static", "--out", "r.zarr", "--json"]
    result = CliRunner().invoke(app, line)
    assert result.exit_code == 0, result.output
    printed = json.loads(result.stdout)
    table = jfric.open_sweep("r.zarr")
    mu = np.linspace(0.1, 0.3, 3)
    np.testing.assert_allclose(table["final.u"], mu * 1000.0 / 6000.0, rtol=1e-12)
    np.testing.assert_allclose(table["max.u"], (900.0 - mu * 1000.0) / 6000.0, rtol=1e-12)
    assert printed["axes"] == {"friction.mu": mu.tolist()}
    assert printed["values"]["max.u"] == table["max.u"].values.tolist()
    assert printed["values"]["status"] == [0, 0, 0]
    assert printed["units"]["max.u"] == "m"


def test_command_says_how_many_failed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "configs" / "ve0116.toml").read_text("utf-8")
    (tmp_path / "few.toml").write_text(text + "\n[solver]\nmax_steps = 5\n", "utf-8")
    line = ["sweep", str(tmp_path / "few.toml"), "--vary", "friction.mu=[0.06, 0.12, 0.25]"]
    result = CliRunner().invoke(app, [*line, "--observe", "final.u"])
    assert result.exit_code == 1
    assert "2 failed: stopped before the end time" in result.output
    table = tmp_path / "results" / "few" / "sweep-001.zarr"
    assert (table / "status").exists()
    assert jfric.open_sweep(table).attrs["title"] == load_config("few.toml").title != ""


def test_command_line_takes_intervals_lists_and_units():
    values = parse_vary(
        oscillator(), ["load.F=1 kN:2 kN:3", "spring.k=1 kN/m:1e5:4:log"], sampled=False
    )
    assert values["load.F"] == jfric.Range(1000.0, 2000.0, 3)
    assert values["spring.k"] == jfric.Range(1000.0, 1e5, 4, "log")
    values = parse_vary(oscillator(), ["friction.mu=[0.1, 0.3, 0.2]"], sampled=False)
    assert values["friction.mu"].tolist() == [0.1, 0.3, 0.2]
    values = parse_vary(oscillator(), ["load.F=1 kN:2 kN:log"], sampled=True)
    assert values["load.F"] == jfric.Range(1000.0, 2000.0, None, "log")


class TestFigures:
    """Figures of tables written down by hand."""

    STATUS: ClassVar = {"units": ""}

    def table(self, *shape, dims, **coordinates):
        status = np.zeros(shape, np.int8)
        status.ravel()[::7] = int(jfric.Status.INCONSISTENT)
        values = np.where(status == 0, np.arange(status.size).reshape(shape), np.nan)
        return xarray.Dataset(
            {"final.u": (dims, values, {"units": "m"}), "status": (dims, status)},
            coordinates,
            {"title": "title"},
        )

    def test_one_parameter_is_a_curve_with_failures_marked(self):
        data = self.table(50, dims=("friction.mu",), **{"friction.mu": np.linspace(0, 1, 50)})
        figure = jfric.plot_sweep(data)
        (axis,) = figure.axes
        assert axis.get_ylabel() == "final.u [m]"
        assert axis.get_xlabel() == "friction.mu"
        assert len(axis.lines[1].get_xdata()) == 8
        assert "8 of 50 failed (red)" in figure.get_suptitle()
        assert axis.get_xscale() == "linear"

    def test_each_curve_has_a_colour_of_its_own(self):
        data = self.table(50, dims=("friction.mu",), **{"friction.mu": np.linspace(0, 1, 50)})
        data["max.u"] = 2.0 * data["final.u"]
        colours = [axis.lines[0].get_color() for axis in jfric.plot_sweep(data).axes]
        assert len(set(colours)) == 2

    def test_a_long_curve_keeps_its_spikes(self):
        x = np.linspace(0.0, 1.0, 100_001)
        data = self.table(x.size, dims=("friction.mu",), **{"friction.mu": x})
        data["status"][:] = 0
        data["final.u"][:] = np.where(np.arange(x.size) == 43_210, 5.0, 0.0)
        (axis,) = jfric.plot_sweep(data).axes
        drawn = axis.lines[0].get_ydata()
        assert np.max(drawn) == 5.0
        assert len(drawn) < 20_000

    def test_two_parameters_are_a_map(self):
        data = self.table(
            20, 30, dims=("friction.mu", "load.F"),
            **{"friction.mu": np.linspace(0, 1, 20), "load.F": np.geomspace(1, 100, 30)},
        )  # fmt: skip
        figure = jfric.plot_sweep(data)
        axis = figure.axes[0]
        assert (axis.get_xscale(), axis.get_yscale()) == ("linear", "log")
        values, failed = axis.collections
        assert values.get_array().shape == (30, 20)
        assert np.sum(np.isfinite(failed.get_array().filled(np.nan))) == len(range(0, 600, 7))

    def test_three_parameters_are_a_map_through_the_middle(self):
        data = self.table(
            4, 20, 30, dims=("a", "b", "c"),
            a=np.arange(4.0), b=np.arange(20.0), c=np.arange(30.0),
        )  # fmt: skip
        figure = jfric.plot_sweep(data)
        assert figure.axes[0].get_xlabel() == "b"
        assert "a = 2" in figure.get_suptitle()

    def test_samples_are_a_scatter_matrix(self):
        rng = np.random.default_rng(0)
        data = self.table(100, dims=("trajectory",))
        data = data.assign_coords({n: ("trajectory", rng.random(100)) for n in ("mu", "F")})
        data.attrs["parameters"] = ["mu", "F"]
        figure = jfric.plot_sweep(data)
        assert len(figure.axes) == 9
        labels = [figure.axes[6 + i].get_xlabel() for i in range(3)]
        assert labels == ["mu", "F", "final.u [m]"]
        good, failed = figure.axes[1].collections
        assert len(good.get_offsets()) == 85
        assert len(failed.get_offsets()) == 15

    def test_a_scatter_matrix_of_a_part_shows_the_whole_box_and_says_so(self):
        count = 12_000
        unit = qmc.Sobol(2, rng=0).random(2**14)[:count]
        data = self.table(count, dims=("trajectory",))
        values = {n: ("trajectory", unit[:, i]) for i, n in enumerate(("mu", "F"))}
        data = data.assign_coords(values)
        data.attrs["parameters"] = ["mu", "F"]
        figure = jfric.plot_sweep(data)
        assert "5,000 of 12,000 drawn" in figure.get_suptitle()
        points = np.concatenate([c.get_offsets() for c in figure.axes[1].collections])
        assert len(points) == 5_000
        # Every part of the box holds its share; so do the histograms, of all rows.
        shares = np.histogram2d(*points.T, bins=4, range=[[0, 1], [0, 1]])[0] / 5_000
        np.testing.assert_allclose(shares, 1 / 16, atol=0.015)
        assert sum(bar.get_height() for bar in figure.axes[0].patches) == count
        again = jfric.plot_sweep(data)
        same = np.concatenate([c.get_offsets() for c in again.axes[1].collections])
        np.testing.assert_array_equal(points, same)

    def test_a_large_map_keeps_what_failed_and_says_what_it_leaves_out(self):
        data = self.table(
            4_100, 3, dims=("a", "b"), a=np.linspace(1.0, 0.0, 4_100), b=np.array([2.0, 1.0, 3.0])
        )  # fmt: skip
        data["status"][:] = 0
        data["status"][3_001, 1] = int(jfric.Status.INCONSISTENT)
        (axis, _) = jfric.plot_sweep(data).axes
        values, failed = axis.collections
        assert values.get_array().shape == (3, 2_050)
        marked = np.argwhere(np.isfinite(failed.get_array().filled(np.nan)))
        # In order: row 0 is b = 1, and a grows to the right.
        assert marked.tolist() == [[0, (4_099 - 3_001) // 2]]
        assert axis.get_title(loc="left") == "final.u [m], 6,150 of 12,300 points drawn"

    def test_a_trajectory_of_each_point_is_a_map_over_time(self):
        """Over two parameters it shows the last time; a single value has a cell of its own."""
        dims, times = ("mu", "F", "time"), np.linspace(0.0, 3.0, 4)
        data = self.table(5, 1, dims=dims[:2], mu=np.geomspace(0.1, 1.0, 5), F=np.array([2.0]))
        data["u(t)"] = (dims, np.arange(20.0).reshape(5, 1, 4), {"units": "m"})
        data = data.assign_coords(time=times).drop_vars("final.u")
        axis = jfric.plot_sweep(data).axes[0]
        assert axis.get_title(loc="left") == "u(t) at time = 3 [m]"
        values, failed = axis.collections
        assert values.get_array().tolist() == [[3.0, 7.0, 11.0, 15.0, 19.0]]
        assert failed.get_array().count() == 1
        assert axis.get_xscale() == "log"
        assert axis.get_ylim() == pytest.approx((1.0, 3.0))
        one = jfric.plot_sweep(data.isel(F=0)).axes[0]
        assert (one.get_xlabel(), one.get_ylabel()) == ("mu", "time")
        (curve,) = jfric.plot_sweep(data[["status"]].isel(F=0).assign(a=data["mu"])).axes
        assert curve.get_xscale() == "log"
        assert curve.get_xlim() == pytest.approx((0.1, 1.0))

    def test_returns_are_dots_over_their_parameter(self):
        table = xarray.Dataset(
            {
                "x": (("mu", "return"), np.arange(6.0).reshape(2, 3), {"units": "m"}),
                "v.x": (("return", "mu"), np.arange(6.0).reshape(3, 2), {"units": "m/s"}),
                "status": (("mu",), np.zeros(2, np.int8)),
            },
            {"mu": [0.1, 0.2]},
        )
        upper, lower = jfric.plot_returns(table, title="two").axes
        assert (upper.get_ylabel(), lower.get_ylabel()) == ("x [m]", "v.x [m/s]")
        assert (upper.get_xlabel(), lower.get_xlabel()) == ("", "mu")
        for axis, values in ((upper, range(6)), (lower, (0, 2, 4, 1, 3, 5))):
            (dots,) = axis.lines
            assert dots.get_xdata().tolist() == [0.1] * 3 + [0.2] * 3
            assert dots.get_ydata().tolist() == list(values)
            assert (dots.get_marker(), dots.get_linestyle()) == (".", "None")
        assert len(jfric.plot_returns(table, ["v.x"]).axes) == 1
        with pytest.raises(jfric.ProblemError, match="no quantity with the axis 'return'"):
            jfric.plot_returns(table.drop_dims("return"))

    def test_unknown_observables_are_refused(self):
        with pytest.raises(jfric.ProblemError, match=r"found 'final\.w'"):
            jfric.plot_sweep(self.table(5, dims=("a",), a=np.arange(5.0)), ["final.w"])


def test_a_store_killed_while_it_was_created_begins_anew(tmp_path):
    prepared = prepare(oscillator(), MU, OBSERVED, times=TIMES)
    path = tmp_path / "begun.zarr"
    path.mkdir()
    (path / "jfric-begun").touch()
    (path / "friction.mu").mkdir()
    assert read_layout(path, prepared.identity) is None
    sink, _ = execute(prepared, store=path, **SHAPE)
    assert isinstance(sink, ZarrTable)
    assert sink.unfinished() == []


@pytest.mark.slow
def test_a_sweep_shows_its_progress_on_a_terminal(monkeypatch):
    import sys

    from jfric.sweeps import progress

    seen = []
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(
        progress.Progress, "__enter__", lambda self: seen.append(self._shown) or self
    )
    parts = {"mass": jfric.Mass("x", 1.0), "spring": jfric.Spring("x", 1.0)}
    jfric.sweep(jfric.Problem(["x"], parts, time=1.0), {"mass.m": [1.0, 2.0]}, "max.x")
    assert seen == [True]
