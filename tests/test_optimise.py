"""Optimal inputs and dimensions, by exact derivatives through stick and slip."""

import json
import types
import warnings
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from typer.testing import CliRunner

import jfric
from jfric.cli.main import app
from jfric.files.read_toml import load_config, loads
from jfric.files.write_toml import dump
from jfric.optima.engines import stationarity
from jfric.optima.optimise import from_table

#: Minimum time over 1 m with a force of 2 N against friction of 1 N, and when it turns.
SHORTEST, TURN = np.sqrt(8.0 / 3.0), np.sqrt(1.5)


def sled(times=(1.0,), values=(2.0, -2.0), end=2.0, **more):
    """A mass of 1 kg with dry friction of 1 N, driven by a piecewise constant force."""
    return jfric.Problem(
        ["x"],
        {
            "mass": jfric.Mass("x", 1.0),
            "friction": jfric.Friction("x", limit=1.0),
            "load": jfric.Load("x", jfric.Steps(list(times), list(values))),
        },
        time=end,
        **more,
    )


FASTEST = {
    "free": {"load.F.times": (0.1, 5.0), "time.end": (0.1, 5.0)},
    "objective": "time.end",
    "constraints": ["final.x == 1 m", "final.v.x == 0"],
}


@pytest.mark.parametrize(
    ("method", "starts"), [("slsqp", 1), ("slsqp", 4), ("trust-constr", 1), ("cobyqa", 1)]
)
def test_the_shortest_time_from_rest_to_rest_is_exact(method, starts):
    best = jfric.optimise(sled(), **FASTEST, method=method, starts=starts)
    assert best.converged
    assert best.status == jfric.Status.OK
    assert best.objective == pytest.approx(SHORTEST, abs=1e-12)
    assert best.values["load.F.times"][0] == pytest.approx(TURN, abs=1e-12)
    assert best.violation < 1e-14
    assert len(best.starts) == starts
    # The stop is the end: derivatives there are those of one side, which the result says.
    assert not best.differentiable or not any("one side" in x for x in best.remarks)


def test_the_search_without_derivatives_finds_the_same():
    best = jfric.optimise(sled(), **FASTEST, method="direct")
    assert best.converged
    assert best.objective == pytest.approx(SHORTEST, abs=1e-10)
    assert best.motions > 500


def test_the_result_is_a_problem_that_does_it():
    best = jfric.optimise(sled(), **FASTEST)
    found = jfric.simulate(best.problem)
    assert float(found.final.q[0]) == pytest.approx(1.0, abs=1e-12)
    assert "converged" in str(best)
    assert "time.end" in str(best)


@pytest.mark.slow
def test_an_input_of_many_values_is_the_one_of_least_norm():
    """While the sled moves forward, friction is a constant force: the piecewise constant input with
    the least integral of its square is a linear least-norm problem."""
    count, end = 6, 2.0
    h = end / count
    times = [h * i for i in range(1, count)]
    best = jfric.optimise(
        sled(times, [1.5] * count, end),
        {"load.F.values": (-10.0, 10.0)},
        "rms.input.load.F**2",
        ["final.x == 1 m", "final.v.x == 0"],
    )
    after = end - h * np.arange(1, count + 1)  # from the end of each piece on
    A = np.stack([np.full(count, h), h * (after + 0.5 * h)])
    b = np.array([0.0, 1.0]) + A @ np.ones(count)
    exact = A.T @ np.linalg.solve(A @ A.T, b)
    assert best.converged
    assert best.stationarity < 1e-7
    np.testing.assert_allclose(best.values["load.F.values"], exact, atol=2e-7)
    assert best.objective == pytest.approx(np.mean(exact**2), rel=1e-12)


@pytest.mark.slow
def test_constraints_just_beyond_the_bounds_are_not_met():
    """The shortest time of a way is as its root: 3e-8 s less leave 5e-8 m of it."""
    free = {"load.F.times": (0.5, 1.5), "time.end": (1.5, SHORTEST - 3e-8)}
    best = jfric.optimise(sled(), **FASTEST | {"free": free})
    assert not best.feasible
    assert 1e-9 < best.violation < 1e-7


@pytest.mark.parametrize(("margin", "left"), [(0.0, 0.0), (0.5, 1.0)])
def test_only_constraints_that_hold_take_up_a_slope(margin, left):
    """The objective and an inequality fall alike; the inequality has a ``margin``."""
    found = types.SimpleNamespace(values=np.array([3.0, margin]), slopes=np.ones((2, 1)))
    goals = types.SimpleNamespace(sizes=np.ones(2), equal=np.array([False]))
    limits = np.zeros(1), np.ones(1)
    assert stationarity(found, goals, np.array([0.5]), limits) == pytest.approx(left, abs=1e-12)


def test_entries_of_a_list_with_equal_bounds_are_held():
    best = jfric.optimise(
        sled((0.5, 1.0), (2.0, 0.5, -2.0)),
        {"load.F.values": ([-2.0, 0.5, -2.0], [2.0, 0.5, 2.0]), "time.end": (0.1, 5.0)},
        "time.end",
        ["final.x == 0.3 m", "final.v.x == 0"],
    )
    assert best.feasible
    assert best.values["load.F.values"][1] == 0.5
    assert len(best.starts[0]["start"]) == 3


def test_a_search_starts_at_the_own_value_or_in_the_middle_of_the_bounds():
    """The middle on the scale of the unknown: values far off were moved to the nearest bound."""
    free = jfric.Free
    for item, start in (
        ((1.0, 5.0), 2.0),
        ((3.0, 5.0), 4.0),
        (free(3.0, 5.0, scale="linear"), 4.0),
        (free(1.0, 3.0, init=1.5, scale="linear"), 1.5),
        (free(2.5, 10.0), 5.0),
        (free(1.0, 10.0), 2.0),
    ):
        best = jfric.optimise(sled(), {"time.end": item}, "time.end", iterations=1)
        assert best.starts[0]["start"]["time.end"] == pytest.approx(start, rel=1e-12), item


def test_times_of_a_list_stay_in_order():
    """Three phases of given forces: the middle one is not wanted, and vanishes."""
    free = {"load.F.times": (0.01, 5.0), "time.end": (0.1, 5.0)}
    best = jfric.optimise(
        sled((0.5, 1.0), (2.0, 0.0, -2.0)), free, "time.end", FASTEST["constraints"]
    )
    first, second = best.values["load.F.times"]
    assert best.feasible
    assert 0.0 < second - first < 1e-5
    assert best.objective == pytest.approx(SHORTEST, abs=1e-5)


def test_a_damper_with_a_known_optimum():
    """The least integral of x^2 of a free oscillator is at the damping ratio 1/2, of x^2 + (v/w)^2
    at 1/sqrt(2)."""
    problem = jfric.Problem(
        ["x"],
        {
            "mass": jfric.Mass("x", 2.0),
            "spring": jfric.Spring("x", 8.0),
            "damper": jfric.Damper("x", 1.0),
        },
        initial={"x": jfric.InitialState(q=1.0)},
        time=40.0,
    )
    ways = [({"damper.c": jfric.Free(0.5, 20.0)}, "slsqp"), ({"damper.c": 2.0}, "trust-constr")]
    for free, method in ways:
        best = jfric.optimise(problem, free, "rms.x", method=method)
        assert best.converged
        assert best.values["damper.c"] == pytest.approx(4.0, rel=1e-5)
    best = jfric.optimise(problem, {"damper.c": (0.5, 20.0)}, "rms.x**2 + rms.v.x**2/4")
    assert best.values["damper.c"] == pytest.approx(4.0 * np.sqrt(2.0), rel=1e-5)
    best = jfric.optimise(problem, {"damper.c": (0.5, 20.0)}, "rms.x", method="adam")
    assert best.converged
    assert best.values["damper.c"] == pytest.approx(4.0, rel=1e-2)


@pytest.mark.slow
def test_a_kink_at_the_optimum_is_said():
    """The distance from a place: its gradient jumps where it is reached."""
    problem = sled((1.0,), (2.0, -2.0), 1.0)
    objective = "sqrt((final.x - 0.5)^2)"
    with pytest.warns(UserWarning, match="kink"):
        best = jfric.optimise(problem, {"load.F.values": ([1.2, -2.0], [5.0, -2.0])}, objective)
    assert best.values["load.F.values"][0] == pytest.approx(2.0, abs=1e-6)
    assert best.stationarity > 0.1


def test_a_model_is_taken_as_well():
    best = jfric.optimise(jfric.build(sled()), **FASTEST)
    assert best.objective == pytest.approx(SHORTEST, abs=1e-12)


@pytest.mark.slow
def test_observables_of_ones_own_and_inequalities():
    """The highest speed is bounded: the optimum lies on the bound."""
    problem = sled((1.0,), (2.0, -2.0), 1.5)
    speed = jfric.observables.Maximum(lambda point: point.v[0], unit="m/s")
    best = jfric.optimise(
        problem,
        {"load.F.values": ([1.1, -2.0], [5.0, -2.0])},
        "-final.x",
        ["fast <= 0.7 m/s", "early >= 0.1"],
        observe={"fast": speed, "early": "x(0.9 s)"},
    )
    assert best.converged
    assert best.values["load.F.values"][0] == pytest.approx(1.7, abs=1e-9)
    assert best.observed["fast"] == pytest.approx(0.7, abs=1e-10)
    assert best.violations["early >= 0.1"] == 0.0


def test_a_body_that_sticks_at_the_start_is_said():
    with pytest.warns(UserWarning, match=r"no goal depends on load.F.values"):
        best = jfric.optimise(
            sled((), (0.5,)), {"load.F.values": (0.1, 5.0)}, "-final.x", method="slsqp"
        )
    assert any("stick" in text for text in best.remarks)
    assert not best.converged
    assert "depends on no unknown" in best.message
    with pytest.warns(UserWarning, match=r"no goal depends"):
        best = jfric.optimise(sled((), (0.5,)), {"load.F.values": (0.1, 5.0)}, "-final.x", starts=3)
    assert best.values["load.F.values"][0] == pytest.approx(5.0)


@pytest.mark.slow
def test_stop_time_is_a_sawtooth_and_counts_have_no_derivative():
    """A block on a spring stops the sooner the fewer its reversals: the time jumps."""
    problem = jfric.Problem(
        ["x"],
        {
            "mass": jfric.Mass("x", 1.0),
            "spring": jfric.Spring("x", 100.0),
            "friction": jfric.Friction("x", limit=3.0),
        },
        initial={"x": jfric.InitialState(q=0.4)},
        time=5.0,
    )
    free = {"friction.limit": (1.0, 20.0)}
    with pytest.warns(UserWarning, match="sawtooth"):
        near = jfric.optimise(problem, {"friction.limit": (1.0, 12.0)}, "stop_time")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        best = jfric.optimise(problem, free, "stop_time", method="direct")
    # From 40/3 N on, the first half swing is the last: at the end of it the spring holds.
    assert best.objective == pytest.approx(np.pi / 10.0, abs=1e-12)
    assert near.objective > 1.5 * best.objective
    with pytest.raises(jfric.ProblemError, match="a count changes in steps"):
        jfric.optimise(problem, free, "event_count")


def test_a_start_that_fails_is_reported():
    """A list whose times do not increase has a status, another start goes on."""
    problem = jfric.Problem(
        ["x"],
        {"mass": jfric.Mass("x", 1.0), "load": jfric.Load("x", 1.0)},
        time=1.0,
    )
    best = jfric.optimise(problem, {"load.F": (0.5, 2.0)}, "event_time(1)")
    assert not best.feasible
    assert not best.converged
    assert np.isnan(best.objective)
    assert "no value at the start" in best.message


@pytest.mark.slow
def test_a_smoothed_search_is_judged_in_the_exact_motion():
    problem = sled((), (2.0,), 1.0)
    width = jfric.Smoothed(width=0.05)
    with pytest.warns(UserWarning, match="Smoothed"):
        best = jfric.optimise(
            problem, {"load.F.values": (1.2, 5.0)}, "time.end", ["final.x == 1"], solver=width
        )
    moved = jnp.asarray(best.values["load.F.values"])[0] - 1.0
    assert best.observed["final.x"] == pytest.approx(0.5 * float(moved), rel=1e-9)
    assert not best.feasible
    assert best.violations["final.x == 1"] > 1e-6


WRONG = {
    "free: found nothing": {"free": {}},
    "did you mean": {"free": {"mass.n": (1.0, 2.0)}},
    "found 'mass.m' twice": {"free": {"mass.m": (1.0, 2.0), "mass.mass.m": (1.0, 2.0)}},
    "lower must not be above upper": {"free": {"mass.m": (2.0, 1.0)}},
    "must not be negative": {"free": {"mass.m": (-2.0, 1.0)}},
    "each is a number": {"free": {"mass.m": (1.0, [2.0, 3.0])}},
    "2 numbers or one for all": {"free": {"load.F.values": [1.0, 2.0, 3.0]}},
    "nothing is free": {"free": {"mass.m": (1.0, 1.0)}},
    "between bounds": {"free": {"load.F.values": [3.0, -2.0]}, "starts": 3},
    "allowed are slsqp": {"method": "newton"},
    "'adam' takes no constraints": {"method": "adam", "constraints": ["final.x == 1"]},
    "constraints.0: found 'final.x'": {"constraints": "final.x"},
    "constraints: found None": {"constraints": None},
    "no quantity 'y'": {"objective": "final.y"},
    "is a list of numbers": {"objective": "load.F.values"},
    "expected a formula": {"objective": 3.0},
    "observe.early": {"observe": {"early": "y(1 s)"}},
    "constraints.0: 'final.x == 1 s'": {"constraints": ["final.x == 1 s"]},
    "at least 1": {"starts": 0},
}


@pytest.mark.parametrize("message", WRONG)
def test_wrong_input_is_one_clear_sentence(message):
    given = {"free": {"mass.m": (1.0, 2.0)}, "objective": "final.x", **WRONG[message]}
    with pytest.raises(jfric.ProblemError) as error:
        jfric.optimise(sled(), **given)
    assert message in str(error.value)


CONFIG = "configs/c1_shortest_time.toml"


def test_a_file_says_what_is_free_and_what_for(tmp_path, monkeypatch):
    result = CliRunner().invoke(app, ["optimise", CONFIG, "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert "1.632993162" in result.output
    stored = json.loads((tmp_path / "optimise-001.json").read_text())
    assert stored["converged"]
    assert stored["objective"] == pytest.approx(SHORTEST, abs=1e-12)
    better = jfric.load(tmp_path / "optimise-001.toml")
    assert float(better.time.end) == pytest.approx(SHORTEST, abs=1e-12)


def test_options_replace_the_table_of_the_file(tmp_path):
    words = ["--free", "load.F.times=100 ms:1.9 s:log", "--objective", "-final.x", "--json"]
    words += ["--constraint", "early >= 0.1 m", "--observe", "early=x(0.5 s)"]
    with pytest.warns(UserWarning, match="early >= 0.1 m depends on no unknown"):
        result = CliRunner().invoke(app, ["optimise", CONFIG, *words, "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    # Full force ahead as long as allowed, then 0.1 s back.
    assert json.loads(result.stdout)["objective"] == pytest.approx(-(1.805 + 0.19 - 0.015))
    result = CliRunner().invoke(app, ["optimise", "configs/c4_belt.toml"])
    assert result.exit_code == 2
    assert "optimise.free: the file has none" in result.output


def test_a_table_is_written_as_it_was_read():
    config = load_config(CONFIG)
    assert config.optimise["free"]["time.end"]["between"] == [0.1, 5.0]
    assert loads(dump(config)).optimise == config.optimise


MISTAKES = {
    "optimise.free.load.G: no parameter 'load.G'": ('"load.F.times"', '"load.G"'),
    "optimise.free.time.end.between[1]: found 'kg' (a mass)": ("time.end", "0.1 kg"),
    "optimise.starts: found 0, must be greater than 0": ("[optimise]", "[optimise]\nstarts = 0"),
    "optimise.goal: unknown field": ("objective", "goal"),
}


@pytest.mark.parametrize("message", MISTAKES)
def test_mistakes_in_the_table_are_sentences(message):
    text = Path(CONFIG).read_text()
    old, new = MISTAKES[message]
    if new == "0.1 kg":
        old, new = '"time.end" = {between = ["0.1 s"', '"time.end" = {between = ["0.1 kg"'
    with pytest.raises(jfric.ProblemError) as error:
        loads(text.replace(old, new, 1))
    assert message in str(error.value)


def test_checks_know_an_optimum():
    text = Path(CONFIG).read_text()
    wrong = text.replace('"optimum.load.F.times(1)"', '"optimum.load.F.time(1)"')
    with pytest.raises(jfric.ProblemError, match="of an optimum there are objective, violation"):
        loads(wrong)
    results = jfric.verify([CONFIG])
    found = {r.quantity: r for r in results if r.quantity.startswith("optimum")}
    assert len(found) == 3
    assert all(r.passed for r in found.values())
    assert found["optimum.objective"].value == pytest.approx(SHORTEST, abs=1e-12)


def test_a_load_over_time_is_an_observable():
    problem = sled((0.5, 1.0), (1.0, 3.0, -2.0))
    words = [f"{kind}.input.load.F" for kind in ("integral", "rms", "max", "final")]
    found = jfric.observe(problem, words)
    values = [float(found.values[word]) for word in words]
    assert values == pytest.approx([0.5 + 1.5 - 2.0, np.sqrt((0.5 + 4.5 + 4.0) / 2.0), 3.0, -2.0])
    with pytest.raises(jfric.ProblemError, match=r"there are input\.friction"):
        jfric.observe(problem, "final.input.gate.F")


@pytest.mark.slow
@pytest.mark.parametrize("guess", [1.0, 3.0])
def test_a_voice_coil_motor_needs_less_than_was_published(guess):
    """C2: feasible in the exact motion, and below 0.7944417495 V^2 s from two starts."""
    config = load_config("configs/c2_voice_coil.toml")
    problem = jfric.set_parameters(config.problem, {"motor.V.values": np.full(53, guess)})
    best = jfric.optimise(problem, **from_table(config.optimise))
    assert best.converged
    assert best.violation < 1e-10
    assert best.objective == pytest.approx(0.794439297830, abs=1e-11)
    assert best.objective < 0.7944417495
