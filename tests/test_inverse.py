"""Inverse-dynamics regression on a made record with known parameters, and its refusals."""

import dataclasses

import numpy as np
import pytest

import jfric
from jfric.fits.data.experiment import Experiment
from jfric.fits.inverse import inverse_regression

M, C, FC, OFFSET = 3.0, 5.0, 2.0, 0.7
NAMES = ["mass.m", "damper.c", "friction.limit", "load.offset.F"]


def problem(m=1.0, c=1.0, limit=1.0):
    elements = {
        "mass": jfric.Mass("x", m),
        "damper": jfric.Damper("x", c),
        "friction": jfric.Friction("x", limit=limit),
        "load": {"drive": jfric.Load("x", 0.0), "offset": jfric.Load("x", 0.0)},
    }
    return jfric.Problem(["x"], elements, time=1.0)


def motion(t):
    """Position, velocity and acceleration of several frequencies."""
    w = np.array([2.0, 4.6, 9.1])[:, None]
    a = np.array([0.3, 0.1, 0.02])[:, None]
    x, v = np.sum(a * np.sin(w * t), 0), np.sum(a * w * np.cos(w * t), 0)
    return x, v, -np.sum(a * w**2 * np.sin(w * t), 0)


def record(noise=0.0, seed=0):
    """A motion of several frequencies and the force that causes it."""
    rng = np.random.default_rng(seed)
    t = np.arange(0.0, 12.0, 1e-3)
    x, v, acceleration = motion(t)
    force = M * acceleration + C * v + FC * np.sign(v) - OFFSET
    y = x + noise * rng.normal(size=t.size)
    return Experiment(t, u={"load.drive.F": force}, y={"x": y})


def test_exact_without_noise():
    found = inverse_regression(problem(), record(), NAMES)
    np.testing.assert_allclose(found.vector, [M, C, FC, OFFSET], rtol=2e-3)
    assert found.relative_error < 0.01
    assert 1.0 < found.condition < 4.0


def test_noise_is_filtered_and_told():
    found = inverse_regression(problem(), record(noise=1e-5), NAMES, cutoff=20.0, decimate=20)
    sd = np.sqrt(np.diag(found.hac(20)))
    assert np.all(np.abs(found.vector - [M, C, FC, OFFSET]) < 4.0 * sd + 2e-3)
    assert np.all(sd > 0.0)


@pytest.mark.slow  # its sibling: one record
def test_several_records_are_taken_together():
    one = inverse_regression(problem(), record(), NAMES)
    two = inverse_regression(problem(), [record(), record()], NAMES)
    np.testing.assert_allclose(two.vector, one.vector, rtol=1e-10)
    assert two.b.size == 2 * one.b.size
    assert set(two.groups) == {0, 1}


def test_directions_of_sliding_apart():
    elements = dict(problem().elements)
    law = jfric.Stribeck(
        mu_s=jfric.Directional("$p", "$n"), mu_d=jfric.Directional("$p", "$n"), v_s=1.0,
        mu_v=jfric.Directional(1.0, 1.0),
    )  # fmt: skip
    elements["friction"] = {"friction": jfric.Friction("x", law, limit=1.0)}
    del elements["damper"]
    sided = jfric.Problem(["x"], elements, time=1.0, parameters={"p": 1.0, "n": 1.0})
    names = ["mass.m", "parameters.p", "parameters.n"]
    names += ["friction.mu_v.positive", "friction.mu_v.negative"]
    found = inverse_regression(sided, record(), names)
    # The constant load is the difference between the two directions.
    np.testing.assert_allclose(found.vector, [M, FC - OFFSET, FC + OFFSET, C, C], rtol=5e-3)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["mass.mm"], r"names: no parameter 'mass.mm' \(did you mean 'mass.m'"),
        (["mass.m", "initial.q"], "initial.x.q: the measured motion does not depend on it"),
        (["load.drive.F", "mass.m"], "load.drive.F: the measured motion does not depend on it"),
    ],
)
def test_refusals(names, message):
    with pytest.raises(jfric.ProblemError, match=message):
        inverse_regression(problem(), record(), names)


def test_nonlinear_parameters_are_refused():
    elements = dict(problem().elements)
    law = jfric.Stribeck(2.0, 1.0, 0.1)
    elements["friction"] = {"friction": jfric.Friction("x", law, limit=1.0)}
    bent = jfric.Problem(["x"], elements, time=1.0)
    with pytest.raises(jfric.ProblemError, match=r"friction\.v_s: enters .* nonlinearly"):
        inverse_regression(bent, record(), ["mass.m", "friction.v_s"])


def uneven():
    """The record with steps between 0.2 and 1.8 ms."""
    e = record()
    t = e.t + 0.8e-3 * np.random.default_rng(1).uniform(0.0, 1.0, e.t.size)
    u = np.interp(t, e.t, e.u["load.drive.F"])
    return Experiment(t, u={"load.drive.F": u}, y={"x": motion(t)[0]})


def test_uneven_steps_are_made_even_and_said():
    found = inverse_regression(problem(), uneven(), NAMES)
    np.testing.assert_allclose(found.vector, [M, C, FC, OFFSET], rtol=5e-3)
    (remark,) = found.remarks
    assert remark == "steps differed by 79 %: samples were brought to even ones of 0.001 s"
    assert remark in str(found)
    assert inverse_regression(problem(), record(), NAMES).remarks == ()


def test_a_fit_to_inverse_dynamics_takes_uneven_steps_and_says_so():
    free = {"mass.m": jfric.Free(0.5, 10.0), "friction.limit": jfric.Free(0.1, 10.0)}
    known = jfric.set_parameters(problem(), {"damper.c": C, "load.offset.F": OFFSET})
    found = jfric.fit(known, uneven(), free, residual=jfric.InverseDynamics(), starts=1)
    np.testing.assert_allclose(
        [found.values["mass.m"], found.values["friction.limit"]], [M, FC], rtol=1e-2
    )
    assert "samples were brought to even ones" in str(found)


def test_a_gap_is_refused():
    e = record()
    t = e.t.copy()
    t[100:] += 0.5
    with pytest.raises(jfric.ProblemError, match=r"found a step of 0\.501 s at 0\.099 s among"):
        inverse_regression(problem(), Experiment(t, e.u, e.y), NAMES)


def test_dependent_columns_are_named():
    elements = dict(problem().elements)
    elements["damper"] = {"a": jfric.Damper("x", 1.0), "b": jfric.Damper("x", 1.0)}
    twice = jfric.Problem(["x"], elements, time=1.0)
    with pytest.raises(jfric.ProblemError, match=r"damper\.a\.c, damper\.b\.c depend"):
        inverse_regression(twice, record(), ["mass.m", "damper.a.c", "damper.b.c"])


def test_missing_samples_are_refused_in_one_sentence():
    whole = record()
    y = np.where(np.arange(whole.t.size) == 7, np.nan, whole.y["x"])
    spoilt = Experiment(whole.t, u=whole.u, y={"x": y}, mask=np.isfinite(y))
    with pytest.raises(jfric.ProblemError, match=r"y\.x: found 1 missing samples, the first at"):
        inverse_regression(problem(), spoilt, NAMES)


def test_friction_of_all_joints_of_an_arm():
    """Torques that two arms need on a given path, by d'Alembert's principle for point masses."""
    t = np.arange(0.0, 8.0, 1e-3)
    waves = {"shoulder": (0.9, 2.0), "elbow": (0.7, 3.1)}
    q, v, a = (
        np.stack([f(*waves[x]) for x in waves])
        for f in (
            lambda A, w: A * np.sin(w * t),
            lambda A, w: A * w * np.cos(w * t),
            lambda A, w: -A * w * w * np.sin(w * t),
        )
    )
    # Angles of both arms (1 m) from below, with 2 kg and 1 kg at their ends.
    angle, rate, bend = (np.cumsum(x, axis=0) for x in (q, v, a))
    along = np.stack([np.cos(angle), np.sin(angle)])
    inwards = np.stack([-np.sin(angle), np.cos(angle)])
    moved = np.cumsum(bend * along + rate**2 * inwards, axis=1)
    needed = np.array([2.0, 1.0])[:, None] * (moved + np.array([0.0, 9.81])[:, None, None])
    # Each joint turns all that it carries about itself.
    second = np.sum(needed[:, 1] * along[:, 1], axis=0)
    first = np.sum((needed[:, 0] + needed[:, 1]) * along[:, 0], axis=0) + second
    torque = np.stack([first, second]) + np.array([[4.0], [1.5]]) * np.sign(v) + 0.3 * v
    link = {"axis": (0, -1, 0), "com": (0, 0, -1.0)}
    links = {
        "shoulder": jfric.Link(m=2.0, **link),
        "elbow": jfric.Link(m=1.0, parent="shoulder", at=(0, 0, -1.0), **link),
    }
    arm = jfric.Problem(
        [],
        {
            "link": links,
            "gravity": jfric.Gravity(9.81),
            "friction": {x: jfric.Friction(x, limit=1.0) for x in links},
            "damper": {x: jfric.Damper(x, 1.0) for x in links},
            "load": {x: jfric.Load(x, 0.0) for x in links},
        },
    )
    data = jfric.Experiment(
        t,
        u={f"load.{x}.F": torque[i] for i, x in enumerate(links)},
        y={x: q[i] for i, x in enumerate(links)},
    )
    names = [f"{s}.{x}.{f}" for s, f in (("friction", "limit"), ("damper", "c")) for x in links]
    floating = dataclasses.replace(links["elbow"], joint="ball")
    loose = jfric.Problem([], {"link": links | {"elbow": floating}}, time=1.0)
    with pytest.raises(jfric.ProblemError, match=r"link.elbow: found a joint, which the regr"):
        jfric.inverse_regression(loose, data, ["link.shoulder.m"])
    found = jfric.inverse_regression(arm, data, names, slowest=0.1)
    np.testing.assert_allclose(found.vector, [4.0, 1.5, 0.3, 0.3], rtol=2e-3)
