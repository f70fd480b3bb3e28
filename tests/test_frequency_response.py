"""Frequency responses: linear closed forms, folds, families, peaks and their derivatives."""

from __future__ import annotations

import dataclasses
import functools
import json
import warnings
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from scipy.optimize import brentq
from typer.testing import CliRunner

import jfric
from jfric.cli.main import app
from jfric.figures.steady_figure import rounded
from jfric.files.read_toml import load_config, loads
from jfric.files.write_toml import dump
from jfric.periodic import path_kernel
from jfric.periodic.path import OrbitPoint, ResponseCurve, Store
from jfric.verification.system_checks import system_jobs, system_results

CONFIGS = Path(__file__).parent.parent / "configs"

#: Mass and stiffness are one.
C, F = 0.2, 1.0


def oscillator(**more) -> jfric.Problem:
    """A linear oscillator under a harmonic load, and whatever comes to it."""
    elements = {
        "mass": jfric.Mass("x", 1.0),
        "spring": jfric.Spring("x", 1.0),
        "damper": jfric.Damper("x", C),
        "load": jfric.Load("x", jfric.Harmonic(F, 0.8, 0.3)),
    }
    return jfric.Problem(["x"], elements | more)


@functools.cache
def family() -> jfric.FrequencyResponse:
    """Three dampers."""
    return jfric.frequency_response(
        oscillator(), "load", 0.9, 1.05, over={"damper.c": np.array([0.1, C, 0.3])}
    )


@functools.cache
def near_its_peak(begins: float = 0.0) -> jfric.FrequencyResponse:
    problem = oscillator()
    if begins:
        problem = jfric.Problem(["x"], problem.elements, time=jfric.TimeSpan(9.0, begins))
    return jfric.frequency_response(problem, "load", 0.99, 1.0)


def damped_by_friction() -> jfric.Problem:
    """A mass with a friction damper behind a spring."""
    return jfric.Problem(
        ("x", "y"),
        {
            "mass": {"a": jfric.Mass("x", 1.0), "b": jfric.Mass("y", 0.1)},
            "spring": {"a": jfric.Spring("x", 1.0), "b": jfric.Spring(("x", "y"), 0.6)},
            "damper": {"a": jfric.Damper("x", 0.05), "b": jfric.Damper(("x", "y"), 0.05)},
            "friction": jfric.Friction("y", jfric.Coulomb(0.4), N=0.5),
            "load": jfric.Load("x", jfric.Harmonic(0.3, 1.0)),
        },
    )


def test_bad_requests_are_one_sentence():
    problem = oscillator()
    two = oscillator(base={"b": jfric.Base(jfric.Harmonic(0.1, 0.8))})
    requests: list[tuple[Any, dict[str, Any], str]] = [
        ((problem, "loat", 0.9, 1.0), {}, "load: found 'loat' .did you mean 'load.F'"),
        ((problem, "load", 0.9, 0.9), {}, "two frequencies above zero that differ"),
        ((problem, "load", 0.9, 1.0), {"over": {"damper.d": [1.0]}}, "did you mean 'damper.c'"),
        ((problem, "load", 0.9, 1.0), {"over": {"damper.c": []}}, "needs a list of finite"),
        ((problem, "load", 0.9, 1.0), {"period": 1.0}, "a load with a frequency decides"),
        ((two, "load", 0.9, 1.0), {}, "make their frequencies one shared parameter"),
    ]
    for given, options, words in requests:
        with pytest.raises(jfric.ProblemError, match=words):
            jfric.frequency_response(*given, **options)


def test_an_error_on_curves_side_by_side_reaches_the_caller(monkeypatch):
    def fails(calls, width):
        raise FloatingPointError("no program for this")

    monkeypatch.setattr(path_kernel, "batched", fails)
    with pytest.raises(FloatingPointError, match="no program for this"):
        jfric.frequency_response(oscillator(), "load", 0.9, 1.0, over={"damper.c": [0.1, C]})


@pytest.mark.parametrize("begins", [0.0, 2.0])
def test_quantities_of_a_cycle_of_each_kind(begins):
    """Of one linear response, by a word of its own, an observable, a harmonic and an amplitude.
    Nobody need give a time for a cycle, and it may begin at any time."""
    response = near_its_peak(begins)
    w = response.frequency
    size = np.abs(F / (1.0 - w**2 + 1j * C * w))
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        found = response.observe("energy_loss, max.v.x, harmonic.x, x")
    expected = {
        "energy_loss": np.pi * C * w * size**2,
        "max.v.x": w * size,
        "harmonic.x": size,
        "x": size,
    }
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, rtol=1e-9, err_msg=name)


@pytest.mark.slow
def test_a_family_of_linear_responses_is_the_closed_form():
    response = family()
    c, w = response.over["damper.c"][:, None], response.frequency
    exact = F / (1.0 - w**2 + 1j * c * w)
    known = np.isfinite(w)
    assert response.status[known].tolist() == [0] * known.sum()
    assert (response.status[~known] == -1).all()
    assert response.stable[known].all()
    for found, wanted in (
        (response.amplitude("x"), abs(exact)),
        (response.amplitude("x", 1), abs(exact)),
        (response.phase("x"), np.angle(exact)),
        (response.phase("v.x"), np.angle(1j * exact)),
        (response.rms("x"), abs(exact) / np.sqrt(2.0)),
        (response.energy_loss(), np.pi * c * w * abs(exact) ** 2),
        (response.observe("force.damper")["force.damper"], c * w * abs(exact)),
    ):
        np.testing.assert_allclose(found[known], wanted[known], rtol=1e-11)
    data = response.to_xarray("x, phase.x")
    assert data["x"].dims == ("damper.c", "point")
    assert data["x"].shape == w.shape
    table = response.columns("x")
    assert len(table["x"]) == known.sum()
    with pytest.raises(jfric.ProblemError, match="quantity"):
        response.observe("y")


@pytest.mark.slow
def test_a_family_over_two_parameters_has_an_axis_for_each():
    over = {"damper.c": [0.2, 0.4], "load.F.amplitude": [0.5, 1.0, 2.0]}
    response = jfric.frequency_response(oscillator(), "load", 0.8, 1.2, over=over)
    c, P = (x[..., None] for x in np.meshgrid(*over.values(), indexing="ij"))
    w = response.frequency
    assert w.shape[:2] == (2, 3)
    known = np.isfinite(w)
    exact = P / (1.0 - w**2 + 1j * c * w)
    np.testing.assert_allclose(response.amplitude("x")[known], abs(exact)[known], rtol=1e-11)
    data = response.to_xarray("x")
    assert data["x"].dims == ("damper.c", "load.F.amplitude", "point")
    one = data["x"].sel({"damper.c": 0.4, "load.F.amplitude": 2.0})
    np.testing.assert_array_equal(one, response.observe("x")["x"][1, 2])


@pytest.mark.slow
def test_peaks_and_their_derivatives_are_the_closed_form():
    response = family()
    found = response.backbone("x", "damper.c, spring.k, load.F.amplitude")
    c = found["damper.c"]
    np.testing.assert_allclose(found["frequency"], np.sqrt(1.0 - c**2 / 2.0), rtol=1e-9)
    top = F / (c * np.sqrt(1.0 - c**2 / 4.0))
    np.testing.assert_allclose(found["x"], top, rtol=1e-12)
    by_c = -top / c + top * c / (4.0 - c**2)
    np.testing.assert_allclose(found["d(x)/d(damper.c)"], by_c, rtol=1e-10)
    by_k = -0.5 * top / (1.0 - c**2 / 4.0)
    np.testing.assert_allclose(found["d(x)/d(spring.k)"], by_k, rtol=1e-9)
    np.testing.assert_allclose(found["d(x)/d(load.F.amplitude)"], top, rtol=1e-10)
    listed = response.peak("x", ["damper.c", "spring.k"])
    assert listed.derivatives == response.peak("x", "damper.c, spring.k").derivatives
    edge = jfric.frequency_response(oscillator(), "load", 0.8, 0.9).peak("x", "damper.c")
    assert (edge.kind, edge.frequency) == ("end", pytest.approx(0.9, abs=1e-12))
    assert np.isnan(edge.derivatives["damper.c"])


@pytest.mark.slow
def test_a_response_goes_on_where_it_was_stopped(tmp_path):
    """What was kept is not computed again, and the whole curve is the same."""
    store, rows = tmp_path / "response", []
    problem = oscillator(polynomial_spring=jfric.PolynomialSpring("x", [0.0, 0.0, 0.1]))

    def stop_at(limit):
        def watch(curve, part, count):
            rows.append(count)
            if count == limit:
                raise KeyboardInterrupt

        return watch

    ends = problem, "load", 0.6, 1.9
    with pytest.raises(KeyboardInterrupt):
        jfric.frequency_response(*ends, store=store, watch=stop_at(31))
    assert [p.name for p in store.glob("*.npz")] == ["curve-0001.part.npz"]
    rows.clear()
    resumed = jfric.frequency_response(*ends, store=store, watch=stop_at(None))
    assert rows[0] == 32
    whole = jfric.frequency_response(*ends)
    assert resumed.curves[0].complete
    kinds = [[p.kind for p in r.curves[0].special] for r in (resumed, whole)]
    assert kinds[0] == kinds[1]
    assert resumed.peak("x").value == pytest.approx(whole.peak("x").value, rel=1e-10)
    rows.clear()
    again = jfric.frequency_response(*ends, store=store, watch=stop_at(None))
    assert rows == [len(again.curves[0])]
    np.testing.assert_array_equal(again.frequency, resumed.frequency)
    with pytest.raises(jfric.ProblemError, match="holds another response"):
        jfric.frequency_response(problem, "load", 0.6, 1.8, store=store)


@pytest.mark.slow
def test_a_response_on_the_command_line_goes_on_and_ends_in_a_sentence(tmp_path, monkeypatch):
    runner, out = CliRunner(), tmp_path / "duffing"
    command = ["response", "configs/p6_duffing.toml", "--load", "load", "--from", "0.6"]
    command += ["--to", "1.6 rad/s", "--out", str(out)]
    keep = Store.keep_part

    def interrupted(self, *given):
        keep(self, *given)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Store, "keep_part", interrupted)
        found = runner.invoke(app, command)
    assert found.exit_code == 130
    assert "interrupted; 0 of 1 curves" in found.output
    assert f"the same command with --out {out} goes on" in found.output.replace("\n", "")
    found = runner.invoke(app, [*command, "--plot", "--json", str(tmp_path / "all.json")])
    assert found.exit_code == 0, found.output
    assert "complete" in found.output
    assert "1.11570025" in found.output  # the lower fold
    assert (out / "response.png").exists()
    rows = (out / "response.csv").read_text().splitlines()
    assert rows[0].startswith("curve,frequency,x,stable,multiplier")
    content = json.loads((tmp_path / "all.json").read_text())
    assert [p["kind"] for p in content["special"]].count("fold") == 2
    assert {p["curve"] for p in content["special"]} == {1}
    for bad, words in (
        (["--load", "lod"], "did you mean"),
        (["--quantity", "max.z"], "quantity"),
        (["--over", "load.F.omega=1:2:3"], "found 'load.F.omega' twice"),
    ):
        refused = runner.invoke(app, [*command[:-2], *bad])
        assert refused.exit_code == 2
        assert words in refused.output


def test_a_file_that_names_its_response():
    """A table [response]: read with units, written again, asked for by checks."""
    config = load_config(CONFIGS / "p4_linear.toml")
    asked = {"load": "load", "start": 0.8, "stop": 1.6}
    assert config.response == asked
    text = dump(config)
    assert loads(text).response == asked
    with pytest.raises(jfric.ProblemError, match=r"response\.start: .*Hz"):
        loads(text.replace("start = 0.8", "start = '0.8 Hz'"))
    (job,) = system_jobs("lacks", dataclasses.replace(config, response={}), config.checks[-1:])
    _, results = system_results(job)
    assert not any(r.passed for r in results)
    assert any("a table [response] with load, start and stop" in r.quantity for r in results)


@pytest.mark.slow
def test_a_command_writes_the_points_and_peaks_that_python_has(tmp_path):
    found, config = near_its_peak(), tmp_path / "linear.toml"
    config.write_text(jfric.to_toml(oscillator()))
    table, everything = tmp_path / "points.csv", tmp_path / "all.json"
    command = ["response", str(config), "--load", "load", "--from", "0.99", "--to", "1.0"]
    command += ["--quantity", "x,energy_loss", "--out", str(tmp_path / "kept")]
    command += ["--csv", str(table), "--json", str(everything)]
    said = CliRunner().invoke(app, command)
    assert said.exit_code == 0, said.output
    assert f"{len(found.curves[0])} orbits on 1 curve in " in said.output
    points = np.genfromtxt(table, delimiter=",", names=True)
    omega = points["frequency"]
    np.testing.assert_array_equal(omega, found.curves[0].parameter)
    exact = F / np.hypot(1.0 - omega**2, C * omega)
    np.testing.assert_allclose(points["x"], exact, rtol=1e-9)
    np.testing.assert_allclose(points["energy_loss"], np.pi * C * omega * exact**2, rtol=1e-9)
    content = json.loads(everything.read_text())
    assert content["load"] == "load.F.omega"
    assert content["units"]["energy_loss"] == "J"
    assert content["outcome"] == [found.curves[0].outcome]
    peak, _ = content["peaks"]
    assert (peak["curve"], peak["quantity"], peak["stable"]) == (1, "x", True)
    # The largest of all lies below this interval, at the root of 1 - c^2 / 2.
    assert (peak["kind"], peak["frequency"]) == ("end", 0.99)
    again = CliRunner().invoke(app, command)
    assert again.exit_code == 2
    assert "exists already; choose another name" in " ".join(again.output.split())
    free = CliRunner().invoke(app, ["response", str(config)])
    assert "--load: not given, needs a name such as load" in " ".join(free.output.split())


@pytest.mark.slow
def test_a_periodic_motion_on_the_command_line(tmp_path):
    command = ["periodic", "configs/p5_continuous_slip.toml", "--out", str(tmp_path)]
    found = CliRunner().invoke(app, [*command, "--show", "max.x", "--plot"])
    assert found.exit_code == 0, found.output
    for words in ("period 7.85398163397 s", "stable", "slip-", "max.x = 2.50013678"):
        assert words in found.output
    assert (tmp_path / "orbit-001.png").exists()
    refused = CliRunner().invoke(app, [*command, "--parameter", "friction.nu=0:1"])
    assert refused.exit_code == 2
    assert "did you mean 'friction.mu'" in refused.output


@pytest.mark.slow
def test_the_normal_force_with_the_lowest_peak_is_that_of_a_fine_sweep():
    problem, name = damped_by_friction(), "friction.N"
    ends = "load", 1.04, 1.15
    best = jfric.minimise_peak(
        problem, "load", "x", name, 0.58, 0.66, *ends[1:], count=4, transient=30
    )
    assert best.kind == "stationary"
    assert abs(best.peak.derivatives[name]) < 1e-8
    # Four peaks beside the optimum, and beside another value: differences of fourth order.
    h, weights = 1e-3, np.array([1.0, -8.0, 8.0, -1.0]) / 12.0
    places = h * np.array([-2.0, -1.0, 1.0, 2.0])
    for centre in (best.parameter, 0.64):
        values = centre + places
        family = jfric.frequency_response(problem, *ends, over={name: values}, transient=30)
        found = family.backbone("x", name)
        assert found["exact"].all()
        peaks, slopes = found["x"], found[f"d(x)/d({name})"]
        # The derivative at the centre is that of the curve through the four derivatives.
        middle = np.polynomial.Polynomial.fit(values, slopes, 3)(centre)
        assert weights @ peaks / h == pytest.approx(middle, abs=1e-7)
        if centre == best.parameter:
            assert weights @ peaks / h == pytest.approx(0.0, abs=1e-7)
            assert (peaks > best.peak.value).all()


def test_what_sticks_for_a_whole_cycle_is_not_unstable():
    """Multipliers of one but for rounding, and such that are larger."""
    largest = np.array([0.9, 1.0 - 1e-12, 1.0 + 1e-12, 1.0 + 1e-6])
    count = len(largest)
    curve = ResponseCurve(
        values={},
        parameter=np.ones(count),
        period=np.ones(count),
        begins=np.zeros(count),
        state=np.zeros((count, 2)),
        multipliers=np.stack([largest + 0.0j, 0.5 * largest], axis=1),
        flags=np.zeros(count, int),
        events=((),) * count,
        special=(),
    )
    assert curve.stable.tolist() == [True, True, True, False]


@pytest.mark.parametrize("phase", [True, False])
def test_the_upper_panel_says_how_many_curves_are_left_out(phase):
    one = near_its_peak()
    axes = jfric.plot_response(dataclasses.replace(one, curves=9 * one.curves), phase=phase).axes
    said = [axis.get_title("left") for axis in axes]
    assert said[0].startswith("1 of 9 not drawn; choose with jfric.plot_response(")
    assert said[1:] == [""] * phase


def test_special_points_and_unstable_parts_are_marked_where_they_are():
    """A flip halfway between two rows; from there on the motion is unstable."""
    one = near_its_peak()
    (curve,) = one.curves
    last = len(curve) - 1
    there = 0.5 * (curve.parameter[last - 1] + curve.parameter[last])
    state, loads = curve.state[last], curve.multipliers[last]
    flip = OrbitPoint("flip", there, state, 6.0, loads, last - 1)
    larger = np.where(np.arange(last + 1)[:, None] == last, 2.0, 0.5) * np.ones_like(loads)
    changed = dataclasses.replace(curve, special=(flip,), multipliers=larger)
    figure = jfric.plot_response(dataclasses.replace(one, curves=(changed,)), ["x", "max.x"])
    upper, beside, _, hidden = figure.axes
    assert not hidden.get_visible()
    (mark,) = (line for line in upper.lines if line.get_marker() == "^")
    assert mark.get_xdata() == pytest.approx([there])
    ends = jfric.plot_response(one).axes[0].lines[0].get_ydata()
    assert mark.get_ydata() == pytest.approx([ends[-1]], rel=1e-2)
    styles = [line.get_linestyle() for line in beside.lines if line.get_marker() != "^"]
    assert styles == ["-", "--"]
    with pytest.raises(jfric.ProblemError, match="show: found 13 quantities, at most 12 fit"):
        jfric.plot_response(one, ["x"] * 13)


def test_lines_of_a_figure_go_through_their_points_and_add_no_peak():
    x = np.array([0.5, 0.8, 0.9, 0.9, 0.85, 1.2])  # twice the same point, round two folds
    y = np.array([0.3, 1.0, 2.5, 2.5, 1.0, 0.4])
    line_x, line_y = rounded(x, y)
    for point in zip(x, y, strict=True):
        assert min(np.hypot(line_x - point[0], line_y - point[1])) < 1e-14
    assert len(line_x) > 5 * len(x)
    assert (line_y.min(), line_y.max()) == (0.3, 2.5)
    assert np.flatnonzero(np.diff(np.sign(np.diff(line_x)))).size == 2


def test_single_precision_is_refused_in_one_sentence():
    with (
        jax.enable_x64(False),
        pytest.raises(jfric.ProblemError, match="found float32"),
    ):
        jfric.frequency_response(oscillator(), "load", 0.9, 1.05)


@pytest.mark.slow
@pytest.mark.parametrize("begins", [True, False])
@pytest.mark.parametrize("offset", [0.0, 0.05])
@pytest.mark.parametrize("normal", [0.543, 1.2])
def test_a_contact_that_sticks_for_the_whole_cycle_begins_or_ends_to_slip(normal, offset, begins):
    """To both sides at once, where the amplitude of its force in the linear response is the limit,
    whatever place it sticks at; the curve goes on behind, with nothing else found on it."""
    problem = jfric.Problem(
        ("x", "y"),
        {
            "mass": {"a": jfric.Mass("x", 1.0), "b": jfric.Mass("y", 0.02)},
            "spring": {"a": jfric.Spring("x", 1.0), "b": jfric.Spring(("x", "y"), 0.6)},
            "damper": {"a": jfric.Damper("x", 0.05), "b": jfric.Damper(("x", "y"), 0.03)},
            "friction": jfric.Friction("y", jfric.Coulomb(0.4), N=normal),
            "load": {
                "shake": jfric.Load("x", jfric.Harmonic(0.3, 1.0)),
                "hold": jfric.Load("x", offset),
            },
        },
    )

    def too_much(w):
        x = 0.3 / abs(complex(1.6 - w**2, 0.08 * w))
        return abs(complex(0.6, 0.03 * w)) * x - 0.4 * normal

    first, last = {0.543: (0.8, 0.95), 1.2: (1.05, 1.15)}[normal]
    ends = (first, last) if begins else (last, first)
    found = jfric.frequency_response(problem, "shake", *ends, transient=30)
    (curve,) = found.curves
    assert curve.complete
    assert len(curve) < 150
    change = next(p for p in curve.special if () in (p.before, p.after))
    assert change.kind == "event change"
    slips, sticks = (change.after, change.before) if begins else (change.before, change.after)
    assert sticks == ()
    assert len(slips or ()) == 4
    assert not [p for p in curve.special if p.kind == "branch point"]
    assert change.parameter == pytest.approx(brentq(too_much, first, last, xtol=1e-14), abs=1e-9)


def test_chosen_curves_have_their_own_labels():
    one = near_its_peak()
    curves = tuple(dataclasses.replace(one.curves[0], values={"damper.c": c}) for c in (1, 2, 3))
    axis = jfric.plot_response(dataclasses.replace(one, curves=curves), curves=[2, 0]).axes[0]
    words = [text.get_text() for text in axis.get_legend().get_texts()]
    assert words == ["damper.c = 3", "damper.c = 1"]


def test_both_ends_of_the_frequency_are_judged():
    parts = {
        "mass": jfric.Mass("x", 1.0),
        "spring": jfric.Spring("x", 1.0),
        "damper": jfric.Damper("x", 0.2),
        "friction": jfric.Friction("x", jfric.Coulomb(0.1), N=jfric.Harmonic(1.0, 1.0, 0.5)),
    }
    # Positive until the end of a run at the first frequency, not at the last one.
    problem = jfric.Problem(["x"], parts, time=1.0)
    with pytest.raises(jfric.ProblemError, match=r"friction.N: found -1 at t = 0.702"):
        jfric.frequency_response(problem, "friction.N", 0.9, 6.0)
