"""Basins of attraction: labels, shares, early ends, refusals, resumed runs, the command."""

import dataclasses
import shlex

import jax.numpy as jnp
import numpy as np
import pytest
from typer.testing import CliRunner

import jfric
from jfric import ProblemError
from jfric.cli.main import app
from jfric.cli.returns import _print
from jfric.figures.steady_figure import MOST_LISTED
from jfric.periodic.basins import (
    FAILED,
    UNRECOGNISED,
    Attractor,
    from_table,
    prepare_basins,
    run_basins,
)
from jfric.periodic.sections import Section
from jfric.sweeps.design import parse_section
from jfric.sweeps.table import ZarrTable

OMEGA = 2.6


def against_a_stop(omega=OMEGA, gap=0.5):
    """An oscillator that a harmonic force drives against a rigid stop: two motions."""
    return jfric.Problem(
        ["x"],
        {
            "mass": jfric.Mass("x", 1.0),
            "spring": jfric.Spring("x", 1.0),
            "damper": jfric.Damper("x", 0.1),
            "load": jfric.Load("x", jfric.Harmonic(1.0, omega)),
            "contact": jfric.Contact({"x": -1.0}, gap=gap, e=0.7),
        },
    )


PLANE = {"initial.x.q": jfric.Range(-4.0, 0.5, 9), "initial.x.v": jfric.Range(-4.0, 4.0, 8)}


@pytest.fixture(scope="module")
def found():
    return jfric.basins(against_a_stop(), PLANE, progress=False)


def test_every_start_has_the_label_of_the_motion_it_reaches(found):
    assert found.labels.shape == (9, 8)
    assert {(a.period) for a in found.attractors} == {1, 2}
    assert not found.failed
    problem, period = against_a_stop(), 2 * np.pi / OMEGA
    ends = [period * n for n in (400, 401, 402)]
    for i, j in ((0, 0), (2, 3), (5, 6), (8, 1)):
        start = {
            "initial.x.q": float(found.table["initial.x.q"][i]),
            "initial.x.v": float(found.table["initial.x.v"][j]),
        }
        solution = jfric.simulate(
            jfric.set_parameters(problem, start),
            jfric.EventDriven(max_events=0),
            ts=jnp.asarray(ends),
            end=ends[-1] + 0.01,
        )
        states = np.hstack([np.asarray(solution.q), np.asarray(solution.v)])
        returns = 2 if abs(states[1] - states[0]).max() > 1e-6 else 1
        attractor = found.attractors[found.labels[i, j] - 1]
        assert attractor.period == returns
        apart = np.abs(states[:2] - np.r_[attractor.q, attractor.v]).max(axis=1)
        assert apart.min() < 1e-5


def test_shares_add_up_and_have_the_error_of_random_samples(found):
    counts = [int(np.sum(found.labels == i + 1)) for i in range(len(found.attractors))]
    assert counts == [a.count for a in found.attractors]
    assert counts == sorted(counts, reverse=True)
    assert sum(counts) == found.labels.size
    for attractor in found.attractors:
        p = attractor.count / 72
        assert attractor.share == pytest.approx(p)
        assert attractor.error == pytest.approx(np.sqrt(p * (1 - p) / 72))
        assert attractor.spread < 1e-4
        assert attractor.returns < 400


def test_a_run_ends_when_its_motion_is_recognised(found):
    assert np.all(found.table["flags"].values & int(jfric.Flag.STOPPED))
    # 500 periods have several passes each.
    assert found.table["steps"].values.max() < 1000


@pytest.mark.slow
def test_a_linear_system_has_one_attractor_whatever_the_start():
    elements = dict(against_a_stop().elements)
    del elements["contact"]
    problem = jfric.Problem(["x"], elements)
    sampled = {"initial.x.q": (-3.0, 3.0), "initial.x.v": (-3.0, 3.0)}
    found = jfric.basins(problem, sampled, method="sobol", samples=16, seed=3, progress=False)
    (attractor,) = found.attractors
    response = 1.0 / (1.0 - OMEGA**2 + 0.1j * OMEGA)  # of a sine
    np.testing.assert_allclose(attractor.q[0], response.imag, atol=1e-6)
    np.testing.assert_allclose(attractor.v[0], OMEGA * response.real, atol=1e-6)
    assert (attractor.share, attractor.error, found.dims) == (1.0, 0.0, ("trajectory",))


def test_what_does_not_repeat_has_a_label_of_its_own():
    undamped = jfric.Problem(
        ["x"],
        {
            "mass": jfric.Mass("x", 1.0),
            "spring": jfric.Spring("x", 2.0),
            "load": jfric.Load("x", jfric.Harmonic(1.0, 1.0)),
        },
    )
    starts = {"initial.x.q": [0.0, 0.5]}
    found = jfric.basins(undamped, starts, give_up=40, progress=False)
    assert found.labels.tolist() == [UNRECOGNISED, UNRECOGNISED]
    assert found.unrecognised == (1.0, 0.0)
    assert not found.attractors


def test_what_decays_slowly_is_no_attractor_yet():
    """A free vibration of twice the frequency of the load comes back to a return after each period,
    smaller by a part of 3e-5."""
    swinging = jfric.Problem(
        ["x"],
        {
            "mass": jfric.Mass("x", 1.0),
            "spring": jfric.Spring("x", 4.0),
            "damper": jfric.Damper("x", 1e-5),
            "load": jfric.Load("x", jfric.Harmonic(1e-3, 1.0)),
        },
    )
    found = jfric.basins(swinging, {"initial.x.q": [1.0]}, give_up=20, progress=False)
    assert found.labels.tolist() == [UNRECOGNISED]


@pytest.mark.slow
def test_a_start_inside_a_contact_is_none():
    found = jfric.basins(against_a_stop(), {"initial.x.q": [0.0, 0.6, 3.0]}, progress=False)
    assert found.labels.tolist()[1:] == [FAILED, FAILED]
    assert found.labels[0] > 0
    assert found.failed == 2


@pytest.mark.slow
def test_equilibria_and_limit_cycles_without_loads():
    # Two wells; and a body on a belt, which sticks and slips once in each cycle.
    belt = jfric.Problem(
        ["x"],
        {
            "mass": jfric.Mass("x", 1.0),
            "spring": jfric.Spring("x", 1.0),
            "friction": jfric.Friction("x", jfric.StaticDynamic(0.4, 0.2), N=10.0, belt=0.5),
            "event": {"turn": jfric.Event("v.x", "down")},
        },
        time=200.0,
    )
    found = jfric.basins(
        belt, {"initial.x.q": [0.0, 3.0, 5.0]}, section="event.turn", progress=False
    )
    (cycle,) = found.attractors
    assert cycle.period == 1
    assert cycle.share == 1.0
    np.testing.assert_allclose(cycle.v, 0.0, atol=1e-9)
    # Slip starts at the static limit with the belt's speed, about the kinetic equilibrium.
    np.testing.assert_allclose(cycle.q, 2.0 + np.hypot(2.0, 0.5), rtol=1e-6)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"section": "peroid"}, "did you mean 'period'"),
        ({"section": -1.0}, "section: found an interval of -1 s"),
        ({"tolerance": 0.1}, "tolerance: found 0.1"),
        ({"longest": 0}, "longest: found 0"),
        ({"give_up": 5}, "give_up: found 5"),
        ({"solver": jfric.MoreauJean(1e-3)}, "knows its motion at outputs only"),
        ({"plane": {"load.F.omega": [1.0, 2.0]}}, "may change the period"),
        ({"plane": {"intial.x.q": [1.0]}}, "did you mean 'initial.x.q'"),
    ],
)
def test_bad_input_is_one_sentence(options, said):
    plane = options.pop("plane", PLANE)
    with pytest.raises(ProblemError) as error:
        jfric.basins(against_a_stop(), plane, progress=False, **options)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_cycles_are_the_same_point_whichever_return_came_last():
    seen = Attractor(Section("period", seconds=1.0), dofs=1, most=4)
    from jfric.periodic.basins import _chosen

    cycle = np.array([[0.3, -1.0], [0.5, 0.2], [-0.7, 0.9]])
    size = jnp.asarray([0.7, 1.0])
    points = [
        np.asarray(_chosen(jnp.asarray(np.roll(cycle, i, axis=0)[[0, 0, 1, 2]]), size, 3))
        for i in range(3)
    ]
    assert points[0].tolist() == points[1].tolist() == points[2].tolist()
    assert len(seen.dims[0][1]) == 6


@pytest.mark.slow
def test_a_figure_shows_the_basins(found, tmp_path, monkeypatch):
    figure = jfric.plot_basins(found, title="two motions")
    figure.savefig(tmp_path / "basins.png")
    (legend,) = figure.legends
    words = [text.get_text() for text in legend.get_texts()]
    assert len(words) == 2
    assert words[0].startswith(f"1: period {found.attractors[0].period}, ")
    (mesh,) = (x for x in figure.axes[0].collections if x.get_array() is not None)
    shown = [mesh.to_rgba(label + 1) for label in range(1, len(words) + 1)]
    assert shown == [patch.get_facecolor() for patch in legend.get_patches()]
    # Beyond those that are listed only how many there are and what they share; then the rest.
    many = tuple(
        dataclasses.replace(found.attractors[0], share=0.08) for _ in range(MOST_LISTED + 2)
    )
    labels = np.where(np.arange(found.labels.size) % 4 < 2, 1, -1).reshape(found.labels.shape)
    labels[0, 0] = 0
    shown = dataclasses.replace(found, attractors=many, labels=labels)
    words = [text.get_text() for text in jfric.plot_basins(shown).legends[0].get_texts()]
    share = 100.0 / labels.size
    assert words[-3:] == [
        "2 more: 16.0%", f"not recognised: {share:.1f}%", "failed, or no start: 50.0%",
    ]  # fmt: skip
    printed = []
    for module in ("app", "returns"):
        monkeypatch.setattr(f"jfric.cli.{module}.tell", lambda text, *_: printed.append(text))
    _print(dataclasses.replace(shown, attractors=(2 * many)[:22]))
    first = found.attractors[0]
    assert printed[0].endswith(f"period 2, at x = {first.q[0]:.6g}, v.x = {first.v[0]:.6g}")
    assert printed[20:] == [
        "and 2 more attractors",
        f"not recognised: {share:.2f}% +- {100.0 * shown.unrecognised[1]:.2f}% (chaotic, slow, or "
        "of a longer period)",
        f"{np.sum(labels == -1)} failed or start inside a contact",
    ]
    box = {"initial.x.q": (-4.0, 0.5), "initial.x.v": (-4.0, 4.0)}
    drawn = jfric.basins(against_a_stop(), box, samples=40, method="random", seed=1, progress=False)
    (points,) = jfric.plot_basins(drawn).axes[0].collections
    legend = [patch.get_facecolor() for patch in jfric.plot_basins(drawn).legends[0].get_patches()]
    np.testing.assert_allclose(points.get_facecolors(), [legend[i - 1] for i in drawn.labels])
    line = jfric.basins(against_a_stop(), {"initial.x.q": [0.0]}, progress=False)
    with pytest.raises(ProblemError, match="a figure has two"):
        jfric.plot_basins(line)


@pytest.mark.slow
def test_an_interrupted_run_goes_on_where_it_was(found, tmp_path, monkeypatch):
    store, write, written = tmp_path / "basins.zarr", ZarrTable.write, []

    def interrupted(self, tile, results):
        if len(written) == 2:
            raise KeyboardInterrupt
        written.append(tile)
        write(self, tile, results)

    made = prepare_basins(against_a_stop(), PLANE)
    monkeypatch.setattr(ZarrTable, "write", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_basins(made, store=store, block=16, progress=False)
    monkeypatch.setattr(ZarrTable, "write", write)
    resumed, summary = run_basins(made, store=store, block=16, progress=False)
    assert summary.computed == found.labels.size - sum(t.last - t.first for t in written)
    assert np.array_equal(resumed.labels, found.labels)
    again = from_table(jfric.open_sweep(store), ("x",))
    assert np.array_equal(again.labels, found.labels)


TOML = """
title = "Impact oscillator"
dofs = ["x"]
time = {end = "20 s"}
mass = {dof = "x", m = "1 kg"}
spring = {dof = "x", k = "1 N/m"}
damper = {dof = "x", c = "0.1 N s/m"}
load = {dof = "x", F = {harmonic = {amplitude = "1 N", omega = "2.6 rad/s"}}}
contact = {normal = {x = -1.0}, gap = "0.5 m", e = 0.7}
"""


@pytest.mark.slow
def test_the_command_says_which_motions_there_are(tmp_path):
    (tmp_path / "impact.toml").write_text(TOML)
    store = tmp_path / "found.zarr"
    arguments = ["basins", str(tmp_path / "impact.toml"), "--plane", "initial.q=-4:0.5:6"]
    arguments += ["--plane", "initial.v=-4:4:8", "--out", str(store), "--plot", "--devices", "1"]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    assert "48 trajectories in " in done.output
    assert "period 2, at x = 0.0898677, v.x = 0.334707" in " ".join(done.output.split())
    assert store.with_suffix(".png").exists()
    kept = jfric.open_sweep(store).attrs["command"]
    assert sorted(shlex.split(kept)) == sorted(["jfric", *arguments])
    done = CliRunner().invoke(app, [*arguments[:4], "--section", "peroid"])
    assert done.exit_code == 2
    assert "did you mean 'period'" in " ".join(done.output.split())


@pytest.mark.slow
def test_the_section_of_the_command_may_carry_a_unit():
    assert parse_section("period") == "period"
    assert parse_section("20 ms") == pytest.approx(0.02)
    assert parse_section("event.turn") == "event.turn"
    with pytest.raises(ProblemError, match="--section"):
        parse_section("3 kg")


def test_checks_of_attractors_and_exponents(tmp_path):
    """A missing table is said; a third attractor has no share."""
    text = """
dofs = ["x"]
time = { end = "1 s" }
mass = { dof = "x", m = 1.0 }
damper = { dof = "x", c = 1.0 }
polynomial_spring = { dof = "x", k = [-1.0, 0.0, 1.0] }
lyapunov = { interval = "0.5 s", intervals = 20, skip = 80, parts = 2 }
"""
    plane = 'basins = { plane = ["initial.x.q=-1.5:1.5:4"], section = "1 s" }\n'
    checks = "".join(
        f'[[check]]\nquantity = "{name}"\nexpected = {value}\ntolerance = 1e-6\n'
        for name, value in (
            ("attractor_count", 2),
            ("basin_share(2)", 0.5),
            ("basin_share(3)", 0.5),
            ("lyapunov", (5**0.5 - 1) / 2),
        )
    )
    path = tmp_path / "wells.toml"
    path.write_text(text + plane + checks)
    assert [r.passed for r in jfric.verify([path])] == [True, True, False, True]
    path.write_text(text + checks)
    failed = [r.quantity for r in jfric.verify([path]) if not r.passed]
    assert len(failed) == 4
    assert "a table [basins] with plane" in failed[-1]
