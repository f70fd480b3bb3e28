"""Comparison of laws: folds, states, parameters at bounds, residual tests, the command."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.linalg import expm
from typer.testing import CliRunner

import jfric
from jfric.cli.main import app
from jfric.files.read_toml import loads
from jfric.files.write_toml import dump
from jfric.fits.comparison import compare_laws
from jfric.fits.comparison.candidates import candidate_laws
from jfric.fits.comparison.compare_laws import _Comparison
from jfric.fits.comparison.criteria import (
    INVERSE,
    OPEN,
    WINDOWS,
    Setting,
    error,
    folds_of,
    held_out_over_fitted,
    residual_of,
)
from jfric.fits.comparison.diagnostics import (
    Rows,
    at_bounds,
    residual_tests,
    trades,
    trading_with,
    wald,
)
from jfric.fits.comparison.kinds import groups_of, kinds_of, remarks_on_kinds
from jfric.fits.comparison.next_record import Rival, next_record
from jfric.fits.inverse_model import inverse_experiments
from jfric.fits.recipe import prepare
from jfric.fits.uncertainty.residual_series import even_grid


def test_what_trades_with_a_parameter_at_its_bound_is_named():
    """The offset of the force and what friction is in each direction; forwards it is at a bound."""
    free = {
        "mass.m": jfric.Free(0.5, 20.0),
        "load.offset.F": jfric.Free(-5.0, 5.0, scale="linear", prior=(0.0, 1.0)),
        "parameters.forward": jfric.Free(3.0, 10.0),
        "parameters.backward": jfric.Free(0.1, 10.0),
    }
    law = jfric.Coulomb(jfric.laws.Directional("$forward", "$backward"))
    elements = {**axis().elements, "friction": jfric.Friction("x", law, limit=1.0)}
    problem = jfric.Problem(["x"], elements, time=1.0, parameters={"forward": 4.0, "backward": 2.0})
    found = jfric.fit(problem, moved(), free, residual=jfric.InverseDynamics(), starts=1)
    (bound,) = at_bounds(found)
    assert (bound.name, bound.side) == ("parameters.forward", -1)
    assert set(bound.names) == {"load.offset.F", "parameters.backward"}
    assert str(bound).startswith("parameters.forward rests at its lower bound, 3, and ")
    assert not trades(found)
    inside = {**free, "parameters.forward": jfric.Free(0.1, 10.0)}
    found = jfric.fit(problem, moved(), inside, residual=jfric.InverseDynamics(), starts=1)
    assert not at_bounds(found)
    assert any("load.offset.F" in trade.names for trade in trades(found))
    assert trading_with(np.diag([1.0, 2.0, 0.0]), ("a", "b", "c"), "c") == ()


def test_folds():
    t = np.linspace(0.0, 8.0, 801)
    e = jfric.Experiment(t, y={"x": np.sin(t)})
    four = folds_of([e], ["x"])
    assert [len(f) for f in four] == [1, 1, 1, 1]
    assert held_out_over_fitted(four) == pytest.approx(1 / 3, rel=0.01)
    assert len(folds_of([e, e], ["x"], lap=2.0)) == 8
    assert [len(f) for f in folds_of([e, e], ["x"], 3)] == [2, 2, 2]
    each = groups_of([e] * 10, "file")
    assert [len(f) for f in folds_of([e] * 10, ["x"], groups=each)] == [2, 2, 1, 1, 1, 1, 1, 1]
    q, v = four[1][0].x0["x"]
    assert (q, v) == pytest.approx((np.sin(2.0), np.cos(2.0)), abs=1e-3)
    with pytest.raises(jfric.ProblemError, match="folds: found 1, at least 2"):
        folds_of([e], ["x"], 1)


def recorded(name, size, count=1200, phase=0.0, more=0.0, **given):
    t = 5e-3 * np.arange(count)
    force = size * (8.0 * np.sin(3.0 * t + phase) + 3.0 * np.sin(7.1 * t)) + more * np.sin(60.0 * t)
    x = driven(force, 2.0, (4.0, 3.0), 5e-3)
    return jfric.Experiment(t, {"load.drive.F": force}, {"x": x}, meta={"name": name}, **given)


def test_records_of_one_kind_are_left_out_together():
    one, late = recorded("one", 1.0), recorded("late", 1.0, 900, 0.4)
    large, fast = recorded("large", 2.0), recorded("fast", 1.0, more=6.0)
    heavy = recorded("heavy", 1.0, known={"mass.m": 4.0})

    def names(groups):
        return [[e.name for e in group] for group in groups]

    kinds = kinds_of([one, large, late, fast, heavy])
    assert names(kinds) == [["one", "late"], ["large"], ["fast"], ["heavy"]]
    assert names(groups_of([one, large, late], None)) == [["one", "late"], ["large"]]
    assert names(groups_of([one, late, one], None)) == [["one"], ["late"], ["one"]]
    assert groups_of([one, late], None) is None
    assert names(groups_of([one, late], "file")) == [["one"], ["late"]]
    assert names(groups_of([one, large, fast], ["l*", "*"])) == [["large"], ["one", "fast"]]
    folds = folds_of([one, large, late], ["x"], groups=groups_of([one, large, late], None))
    assert [[e.name for e in f] for f in folds] == [["one 0 s", "late 0 s"], ["large 0 s"]]
    with pytest.raises(jfric.ProblemError, match=r"groups: 'fast' matches none of 'o.', 'l.'"):
        groups_of([one, large, fast], ["o*", "l*"])
    with pytest.raises(jfric.ProblemError, match="groups: all 2 records are in one group"):
        groups_of([one, late], "excitation")


def test_what_no_fold_can_say_is_said():
    one, late, large = recorded("one", 1.0), recorded("late", 1.0, phase=0.4), recorded("l", 2.0)
    (said,) = remarks_on_kinds([[one, late]], [[one], [late]])
    assert said.startswith("all records are of one kind of excitation (one, late): no law was")
    assert not remarks_on_kinds([[one, late], [large]], [[one, late], [large]])
    (said,) = remarks_on_kinds([[one, late], [large]], [[one], [late], [large]])
    assert said.startswith("records of one kind of excitation (one, late) were fitted and judged")
    (said,) = remarks_on_kinds([[one, late], [large]], None)
    assert "(one, late; l)" in said


def test_a_record_that_tells_two_laws_apart():
    """A damper that loses as much as friction at the recorded size does not at smaller ones."""
    law = jfric.Stribeck(0.0, 0.0, 1.0, mu_v=2.2)
    elements = {**axis().elements, "friction": jfric.Friction("x", law, limit=1.0)}
    damped = jfric.Problem(["x"], elements, time=1.0)
    slides = axis(limit=3.5)
    values = {"mass.m": 2.0}
    laws = Rival("Coulomb", slides, values), Rival("viscous", damped, values)
    piece = folds_of([recorded("run", 1.0)], ["x"], 2)[0][0]
    found = next_record(OPEN, laws, piece, 0.05, Setting())
    assert found is not None
    assert (found.signal, found.drives) == ("x", ("load.drive.F",))
    assert found.size * found.speed < 1.0
    assert found.tells
    assert f"{found.size:g} of that size and {found.speed:g} of that speed" in str(found)
    # The difference is that of both simulations.
    replay = replace(piece, u={"load.drive.F": found.size * np.interp(
        np.minimum(piece.t[0] + found.speed * (piece.t - piece.t[0]), piece.t[-1]),
        piece.t, piece.u["load.drive.F"])})  # fmt: skip
    x = [
        prepare(jfric.SampledModel(p), replay, {"mass.m": jfric.Free(1.0, 4.0)}).objective.predict(
            np.array([[2.0]])
        )[0, 0, :, 0]
        for p in (slides, damped)
    ]
    assert found.there == pytest.approx(np.sqrt(np.mean((x[0] - x[1]) ** 2)) / 0.05, rel=1e-6)
    assert not replace(found, there=1.5 * found.here).tells
    assert "plan another input" in str(replace(found, there=1.5 * found.here))


def test_p_values_hold_under_coloured_noise():
    """At the level of 5 %, with residuals of an autoregression that a fit has gone through."""
    rng = np.random.default_rng(0)
    m, found = 300, []
    t = np.linspace(0.0, 30.0, m)
    J = np.stack([np.sin(t), np.cos(1.7 * t)], axis=1)[None]
    Z = np.stack([np.sin(0.6 * t), np.sign(np.sin(t))], axis=1)[None]
    used = np.ones((1, m), bool)
    for _ in range(200):
        e = rng.normal(size=m)
        for i in range(1, m):
            e[i] += 0.7 * e[i - 1]
        found.append(wald(Rows((e + J[0] @ [1.0, 2.0])[None], J, used), Z)[0])
    assert 0.02 < np.mean(np.array(found) < 0.05) < 0.09
    p, share, b = wald(Rows((e + 2.0 * Z[0, :, 0])[None], J, used), Z)
    assert p < 1e-4
    assert 0.3 < share < 1.0
    assert b[0] == pytest.approx(2.0, abs=0.6)


@pytest.mark.parametrize("name", [WINDOWS, OPEN])
def test_the_true_law_passes_through_windows_that_it_has_made(name):
    """The state at the start of a window is that of the law. A line through the first samples
    missed the acceleration, by more than laws differ."""
    t = 5e-3 * np.arange(800)
    elements = {"mass": jfric.Mass("x", 2.0), "load": jfric.Load("x", 0.0),
                "friction": jfric.Friction("x", limit=3.0)}  # fmt: skip
    force = 8.0 * np.sin(3.0 * t) + 3.0 * np.sin(7.1 * t)
    x = driven(force, 2.0, (3.0, 3.0), 5e-3)
    data = jfric.Experiment(t, {"load.F": force}, {"x": x})
    problem = jfric.Problem(["x"], elements, time=4.0)
    pieces = [e for fold in folds_of([data], ["x"], 2) for e in fold]
    off, size = error(name, problem, {}, pieces, Setting(window=0.5))
    assert off < 1e-7 * size


M, FC, RIPPLE, PERIOD, DELAY = 3.0, 2.0, 0.15, 0.12, 0.004


def axis(limit=1.0, m=1.0):
    elements = {
        "mass": jfric.Mass("x", m),
        "friction": jfric.Friction("x", limit=limit),
        "load": {"drive": jfric.Load("x", 0.0), "offset": jfric.Load("x", 0.0)},
    }
    return jfric.Problem(["x"], elements, time=1.0)


def moved(ripple=0.0, delay=0.0, seed=0):
    """A motion of several frequencies and the force that was recorded ``delay`` too early."""
    rng = np.random.default_rng(seed)
    t = np.arange(0.0, 12.0, 5e-3)
    w = np.array([2.0, 4.6, 9.1])[:, None]
    a = np.array([0.3, 0.1, 0.02])[:, None]

    def force(t):
        x, v = np.sum(a * np.sin(w * t), 0), np.sum(a * w * np.cos(w * t), 0)
        acceleration = -np.sum(a * w**2 * np.sin(w * t), 0)
        wave = 1.0 + ripple * np.sin(2.0 * np.pi * x / PERIOD)
        return x, M * acceleration + FC * wave * np.sign(v)

    x, _ = force(t)
    # Held from each sample to the next, it acts half a sample later on average.
    _, late = force(t + 0.5 * 5e-3 + delay)
    noise = rng.normal(size=(2, t.size))
    return jfric.Experiment(t, {"load.drive.F": late + 0.05 * noise[0]}, {"x": x + 1e-7 * noise[1]})


FREE = {"mass.m": jfric.Free(0.5, 20.0), "friction.limit": jfric.Free(0.1, 10.0)}


@pytest.fixture(scope="module")
def inverse():
    """Fits to inverse dynamics of a record with nothing missing, with a ripple, with a delay."""
    given = {"nothing": moved(), "ripple": moved(RIPPLE), "delay": moved(0.0, DELAY)}
    return {
        k: jfric.fit(axis(), e, FREE, residual=jfric.InverseDynamics(), starts=1)
        for k, e in given.items()
    }


def driven(force, mass, limits, step):
    """Positions of a mass under held ``force`` and friction that differs between the directions,
    without error: the acceleration is constant from one event to the next."""
    x, v, found = 0.0, 0.0, [0.0]
    for f in force[:-1]:
        left = step
        while left > 0.0:
            way = np.sign(v) or (np.sign(f) if not -limits[1] <= f <= limits[0] else 0.0)
            if way == 0.0:
                break
            a = (f - (limits[0] if way > 0 else -limits[1])) / mass
            stops = -v / a if v * a < 0.0 else np.inf
            h = min(left, stops)
            x, v, left = x + v * h + 0.5 * a * h**2, 0.0 if stops <= left else v + a * h, left - h
        found.append(x)
    return np.array(found)


def test_the_true_law_leaves_nothing_in_inverse_dynamics():
    """Positions and forces pass the same means, which no reversal outside of them reaches."""
    step = 5e-3
    t = step * np.arange(1200)
    force = 8.0 * np.sin(3.0 * t) + 3.0 * np.sin(7.1 * t)
    x = driven(force, 2.0, (4.0, 3.0), step)
    law = jfric.Coulomb(jfric.laws.Directional(4.0, 3.0))
    elements = {"mass": jfric.Mass("x", 2.0), "load": jfric.Load("x", 0.0),
                "friction": jfric.Friction("x", law, limit=1.0)}  # fmt: skip
    problem = jfric.Problem(["x"], elements, time=6.0)
    (rows,) = inverse_experiments(problem, [jfric.Experiment(t, {"load.F": force}, {"x": x})])
    v, a, f = (rows.u[k] for k in ("motion.x.v", "motion.x.a", "load.F"))
    off, used = 2.0 * a + np.where(v > 0.0, 4.0, -3.0) - f, rows.mask["force.x"]
    assert np.mean(used) > 0.5
    assert np.abs(off[used]).max() < 1e-9
    assert np.abs(off[~used]).max() > 0.5


def test_each_criterion_has_residuals_of_its_own():
    """Laws are fitted to what they are judged by."""
    pieces = [jfric.Experiment(np.linspace(0.0, end, 9), {}, {"x": np.zeros(9)}) for end in (2, 3)]
    setting = Setting(window=0.5)
    found = [residual_of(x, pieces, setting) for x in (INVERSE, WINDOWS, OPEN)]
    assert found == [jfric.InverseDynamics("steady"), jfric.Windows(0.5), jfric.Windows(2.0)]


def test_inverse_dynamics_find_the_parameters(inverse):
    found = inverse["nothing"]
    assert found.values["mass.m"] == pytest.approx(M, rel=3e-3)
    assert found.values["friction.limit"] == pytest.approx(FC, rel=1e-2)
    low, high = found.intervals()["mass.m"]
    assert high - low < 0.05


def test_what_is_missing_is_found_in_the_residuals(inverse):
    tests = {k: {t.question: t for t in residual_tests(r)} for k, r in inverse.items()}
    assert not any(t.significant for t in tests["nothing"].values())
    ripple, late = tests["ripple"]["harmonics"], tests["delay"]["late input"]
    assert ripple.significant
    assert ripple.estimate == pytest.approx(PERIOD, rel=0.1)
    assert ripple.share > 0.3
    assert late.significant
    assert late.estimate == pytest.approx(DELAY, rel=0.15)
    assert "a delay or a filter of" in str(late)


def test_a_delay_is_fitted_in_inverse_dynamics():
    free = {**FREE, "input.load.drive.F.delay": jfric.Free(0.0, 0.05, init=0.0, scale="linear")}
    found = jfric.fit(axis(), moved(0.0, DELAY), free, residual=jfric.InverseDynamics(), starts=1)
    low, high = found.intervals()["input.load.drive.F.delay"]
    assert low < DELAY < high
    assert high - low < 1e-3


LOOP = """
dofs = ["x"]
time = {end = "8 s"}
mass = {dof = "x", m = "2 kg"}
friction = {dof = "x", limit = "3 N"}
load = {dof = "x", F = "0 N"}
[controller]
reads = "x"
drives = "load.F"
kp = 900.0
kd = 60.0
[data]
time = "t"
[data.y]
x = {column = "x", unit = "mm", resolution = "1 um"}
[data.u]
"load.F" = {column = "F", unit = "N"}
"controller.reference" = {column = "r", unit = "mm"}
[fit.free]
"mass.m" = {between = ["0.5 kg", "8 kg"], init = "3 kg"}
"""


def loop_record(samples=1200):
    """A loop whose friction differs between the directions, with noise of the force."""
    config = loads(LOOP).opened()
    law = jfric.Stribeck(*(jfric.laws.Directional(*x) for x in ((4.0, 3.0), (4.0, 3.0))), 1.0,
                         mu_v=jfric.laws.Directional(3.0, 2.0))  # fmt: skip
    elements = {**config.problem.elements,
                "friction": {"friction": jfric.Friction("x", law, limit=1.0)}}  # fmt: skip
    true = jfric.Problem(("x",), elements, time=8.0)
    t = 5e-3 * np.arange(samples)
    r = (0.1 * np.sin(2 * t) + 0.03 * np.sin(5.3 * t)) * (1.0 - np.exp(-((t / 0.3) ** 2)))
    blank = jfric.Experiment(t, {"controller.reference": r}, {"load.F": t, "x": t})
    task = prepare(jfric.SampledModel(true, config.controller), blank,
                   {"mass.m": jfric.Free(1.0, 4.0)}, observe=["x", "load.F"])  # fmt: skip
    x, force = task.objective.predict(np.array([[2.0]]))[0, 0].T
    noisy = force + 0.05 * np.random.default_rng(0).normal(size=samples)
    return t, 1e3 * np.round(x, 6), noisy, 1e3 * r


def test_a_file_says_what_is_free(tmp_path):
    config = loads(LOOP)
    assert config.fit["free"]["mass.m"] == {
        "lower": 0.5, "upper": 8.0, "scale": "log", "per_experiment": False, "varies": False,
        "init": 3.0,
    }  # fmt: skip
    assert config.data.y["x"].resolution == pytest.approx(1e-6)
    again = loads(dump(config))
    assert again.fit["free"] == config.fit["free"]
    wrong = LOOP.replace('"8 kg"]', '"8 m"]')
    with pytest.raises(jfric.ProblemError, match=r"mass.m.between\[2\]: found 'm' .a length"):
        loads(wrong)


@pytest.mark.slow
def test_what_friction_buys_is_the_error_of_a_linear_model():
    """Of a motion with a spring and a damper, that model is as good; of one with friction, not."""
    t = 5e-3 * np.arange(1600)
    force = 8.0 * np.sin(3.0 * t) + 3.0 * np.sin(7.1 * t)
    state, matrix = np.zeros(2), np.array([[0.0, 1.0], [-8.0 / M, -2.0 / M]])
    step, held = expm(5e-3 * matrix), []
    drive = np.linalg.solve(matrix, (step - np.eye(2)) @ [0.0, 1.0 / M])
    for f in force:
        held.append(state[0])
        state = step @ state + drive * (f + 0.5)
    laws = {"Coulomb": driven(force, M, (FC, FC), 5e-3), "linear": np.array(held)}
    noisy = force + 0.02 * np.random.default_rng(0).normal(size=t.size)
    for truth, x in laws.items():
        data = jfric.Experiment(t, {"load.drive.F": noisy}, {"x": x})
        found = jfric.compare_laws(
            axis(), data, {"mass.m": jfric.Free(0.5, 8.0)}, laws=["Coulomb", "linear"],
            fitted_to="inverse dynamics", criteria=["inverse dynamics", "open loop"], folds=2,
        )  # fmt: skip
        assert found.recommended == truth
        if truth == "linear":
            assert found.worth is None
            own = found.fitted.values
            assert own["parameters.stiffness"] == pytest.approx(8.0, rel=0.02)
            assert own["parameters.F_v"] == pytest.approx(2.0, rel=0.02)
            assert own["parameters.offset"] == pytest.approx(0.5, rel=0.05)
        else:
            times = float(found.worth.split("law: ")[1].split(" by")[0])
            mean = found.criterion("inverse dynamics").differences.mean
            assert times == pytest.approx(mean[1] / mean[0], rel=1e-2)
            assert times > 5.0
            assert found.worth in str(found)


@pytest.mark.parametrize("end", ["rises", "upper", "init"])
def test_what_a_candidate_may_find_is_a_system(end):
    """A fit found friction that is lower at rest, for which no system could be made."""
    for candidate in jfric.candidate_laws(axis(limit=4.0), 0.5):
        given = "init" if end == "rises" else end
        values = {path: getattr(free, given) for path, free in candidate.free.items()}
        if end == "rises" and "parameters.F_s" in values:
            values["parameters.F_s"] = -0.9 * values["parameters.F_c_positive"]
        changed = jfric.set_parameters(candidate.problem, values)
        static = np.array(changed.resolved().elements["friction"]["friction"].coefficients.static())
        assert np.all(static >= 0.0)


@pytest.mark.slow
@pytest.mark.parametrize("limit", [3.0, 60.0])
def test_where_nothing_is_viscous_the_true_law_is_recommended(limit):
    """A bound above zero, a thousandth of the friction, would be an error that richer laws mend.
    The search may begin from a limit that is much too high."""
    step, noise = 5e-3, 2e-3 * np.random.default_rng(0).normal(size=1200)
    t = step * np.arange(1200)
    force = 8.0 * np.sin(3.0 * t) + 3.0 * np.sin(7.1 * t)
    x = driven(force, 2.0, (4.0, 3.0), step)
    elements = {
        "mass": jfric.Mass("x", 1.0),
        "load": jfric.Load("x", 0.0),
        "friction": jfric.Friction("x", limit=limit),
    }
    data = jfric.Experiment(t, {"load.F": force + noise}, {"x": x})
    found = jfric.compare_laws(
        jfric.Problem(["x"], elements, time=6.0), data, {"mass.m": jfric.Free(0.5, 8.0)},
        laws=["asymmetric", "Stribeck"], fitted_to="inverse dynamics",
        criteria=["inverse dynamics", "windows"],
    )  # fmt: skip
    assert found.recommended == "asymmetric"
    assert len(found.laws[1].problems) == 4
    viscous = [v for k, v in found.laws[0].values[0].items() if "F_v" in k]
    assert max(viscous) < 1e-3


def test_windows_are_simulated_as_the_record_that_they_are_cut_from():
    """The last one is short; the motion would have its events located in each, 40 times slower."""
    t = np.linspace(0.0, 1.3, 1300)
    data = jfric.Experiment(t, y={"x": np.cos(t)})
    elements = {"mass": jfric.Mass("x", 1.0), "spring": jfric.Spring("x", 1.0),
                "friction": jfric.Friction("x", limit=0.1)}  # fmt: skip
    swing = jfric.Problem(["x"], elements, time=1.3)
    free = {"friction.limit": jfric.Free(0.01, 1.0)}
    task = prepare(swing, data, free, residual=jfric.Windows(0.5))
    assert [e.t.size for e in task.experiments] == [500, 500, 300]
    assert isinstance(task.objective.model, jfric.SampledModel)
    few = jfric.Experiment(t[::10], y={"x": np.cos(t[::10])})
    task = prepare(swing, few, free, residual=jfric.Windows(0.5))
    assert not isinstance(task.objective.model, jfric.SampledModel)


def test_a_curve_begins_at_the_simplest_law_that_rises_with_the_velocity(monkeypatch):
    """Fitted for that where it is not among the laws that are compared, and only once."""
    fitted = []

    def fit(problem, pieces, free, **options):
        fitted.append((set(free), pieces, options))
        return SimpleNamespace(values={"parameters.F_c": 3.0, "parameters.F_v": 0.5})

    monkeypatch.setattr(compare_laws, "fit", fit)
    laws = {law.name: law for law in candidate_laws(axis(), 0.2)}
    given = SimpleNamespace(values={}, candidates=laws, kept={"mass.m": jfric.Free(1.0, 4.0)})
    for _ in range(2):
        found = _Comparison._simple(given, 0, ["piece"], {"starts": 2})
        assert found == {"parameters.F_c": 3.0, "parameters.F_v": 0.5}
    assert fitted == [({"mass.m", "parameters.F_c", "parameters.F_v"}, ["piece"], {"starts": 2})]


def test_samples_have_rows_on_an_even_grid_where_there_is_one():
    for t, rows, step in (
        ([], [], np.nan),
        ([3.0], [0], 0.0),
        ([1.0, 1.5], [0, 1], 0.5),
        ([0.0, 0.1, 0.2, 0.5, 0.6], [0, 1, 2, 5, 6], 0.1),
        ([0.0, 0.1, 0.2, 0.37, 0.5], [0, 1, 2, 3, 4], 0.115),
        ([0.0, 0.1, 0.2, 1e6], [0, 1, 2, 3], 0.1),
    ):
        found, length = even_grid(np.array(t))
        assert found.tolist() == rows
        assert length == pytest.approx(step, nan_ok=True)


@pytest.mark.slow
def test_bad_calls_are_one_sentence():
    t = np.linspace(0.0, 8.0, 801)
    e = jfric.Experiment(t, {"load.drive.F": np.sin(t)}, {"x": np.sin(t)})
    for options, sentence in [
        ({"laws": ["Stribek", "viscous"]}, "laws: found 'Stribek' .did you mean 'Stribeck'"),
        ({"laws": ["Coulomb"]}, "laws: found Coulomb, give at least two"),
        ({"criteria": ["closed loop"]}, "'closed loop', which needs a controller"),
        ({"fitted_to": "window"}, "fitted_to: found 'window' .did you mean 'windows'"),
        ({"folds": 4, "lap": 1.0}, "folds: found folds and lap, give one of them"),
    ]:
        with pytest.raises(jfric.ProblemError, match=sentence):
            jfric.compare_laws(axis(), e, **options)
    each = {"mass.m": jfric.Free(1.0, 2.0, per_experiment=True)}
    with pytest.raises(jfric.ProblemError, match="a value of each experiment cannot predict"):
        jfric.compare_laws(axis(), e, each)


@pytest.mark.slow
def test_the_command_recommends_the_true_law(tmp_path):
    system, data = tmp_path / "axis.toml", tmp_path / "run.csv"
    system.write_text(LOOP)
    rows = np.stack(loop_record(), axis=1)
    data.write_text("t,x,F,r\n" + "\n".join(",".join(map(repr, row)) for row in rows.tolist()))
    out, page = tmp_path / "found.json", tmp_path / "page.html"
    laws = ["--law", "Coulomb + viscous", "--law", "asymmetric"]
    arguments = ["compare", str(system), "--data", str(data), *laws, "--out", str(out)]
    done = CliRunner().invoke(app, [*arguments, "--report", str(page)])
    assert done.exit_code == 0, done.output
    assert "recommended: asymmetric" in done.output
    found = json.loads(out.read_text())
    assert found["recommended"] == "asymmetric"
    assert set(found["criteria"]) == {"closed loop", "inverse dynamics", "windows", "open loop"}
    values = found["laws"]["asymmetric"]["values"][0]
    assert values["parameters.F_c_positive"] == pytest.approx(4.0, rel=0.03)
    assert "Recommended: asymmetric" in page.read_text()
