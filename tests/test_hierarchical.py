"""Hierarchical fits: against exact Gaussian formulas, coverage, and a fit of runs."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from scipy.stats import t as student

import jfric
from jfric.fits.random_effects import SEARCHED, RandomEffects


def effects(R, tau, noise, rng, common=False):
    """Estimates of ``R`` runs around 1, each with its own noise."""
    truth = 1.0 + tau * rng.normal(size=R)
    sd = noise * rng.uniform(0.5, 1.5, size=R)
    x = truth + sd * rng.normal(size=R)
    return RandomEffects(x, np.zeros(R), np.diag(sd**-2.0), [np.arange(R)]), truth, sd


@pytest.mark.parametrize("seed", range(3))
def test_the_marginal_likelihood_is_that_of_the_normal_model(seed):
    """With the mean integrated out by hand: restricted likelihood of x ~ N(mu, tau^2 + sd^2)."""
    rng = np.random.default_rng(seed)
    E, _, sd = effects(6, 0.2, 0.1, rng)

    def exact(tau):
        V = np.diag(tau**2 + sd**2)
        information = np.sum(1.0 / np.diagonal(V))
        mean = np.sum(E.x / np.diagonal(V)) / information
        own = multivariate_normal(np.full(6, mean), V).logpdf(E.x)
        return -own + 0.5 * np.log(information), mean

    taus = np.array([0.03, 0.1, 0.3])
    found = np.array([E.minus_log(np.log([t])) for t in taus])
    expected = np.array([exact(t)[0] for t in taus])
    np.testing.assert_allclose(found - found[0], expected - expected[0], atol=1e-8)
    assert E.means(taus[1:2])[0] == pytest.approx(exact(0.1)[1])
    # The variance of that mean, without and with the runs known exactly.
    information = np.sum(1.0 / (0.1**2 + sd**2))
    assert E.mean_variances(taus[1:2])[0] == pytest.approx(1.0 / information)


def test_runs_that_say_nothing_leave_the_scatter_to_the_others():
    """Most of the runs have no curvature: the width that is searched stays finite."""
    E = RandomEffects(np.arange(5.0), np.zeros(5), np.diag([0, 0, 0, 4, 4.0]), [np.arange(5)])
    (low, high) = np.exp(E.bounds()[0]) / np.std(np.arange(5.0), ddof=1)
    assert (low, high) == pytest.approx(SEARCHED, rel=1e-12)


def test_intervals_hold_the_truth():
    rng, draws, R, tau = np.random.default_rng(0), 120, 8, 0.1
    mean, scatter, runs = [], [], []
    for i in range(draws):
        E, truth, _ = effects(R, tau, 0.05, rng)
        t = E.scatter()
        half = student.ppf(0.975, E.mean_degrees(t)) * np.sqrt(E.mean_variances(t))
        mean.append(abs(E.means(t)[0] - 1.0) < half[0])
        low, high = E.scatter_interval(t, 0, 0.95)
        scatter.append(low <= tau <= high)
        if i % 4 == 0:
            runs += (np.abs(E.best(t) - truth) < 1.96 * E.errors(t)).tolist()
    assert 0.90 <= np.mean(mean) <= 0.99
    assert 0.90 <= np.mean(scatter) <= 0.99
    assert 0.90 <= np.mean(runs) <= 0.99


PROBLEM = jfric.Problem(
    ("x",),
    {
        "mass": jfric.Mass("x", 1.0),
        "friction": jfric.Friction("x", limit=1.0),
        "load": jfric.Load("x", 0.0),
    },
    time=2.0,
)
TRUE = np.array([0.9, 1.2, 1.0, 1.35, 0.8])


def runs(noise=0.02, seed=0):
    """Slides from a speed of 2 that friction stops, of one run each."""
    rng, t = np.random.default_rng(seed), np.linspace(0.0, 1.5, 31)
    return [
        jfric.Experiment(
            t, y={"x": 2.0 * t - 0.5 * limit * t**2 + noise * rng.normal(size=t.size)},
            sigma=noise, x0={"x": (0.0, 2.0)}, meta={"name": f"run {i}"},
        )
        for i, limit in enumerate(TRUE)
    ]  # fmt: skip


FREE = {"friction.limit": jfric.Free(0.1, 3.0, scale="linear", varies=True)}


def test_runs_around_a_common_mean():
    model = jfric.SampledModel(PROBLEM)
    found = jfric.fit_hierarchical(model, runs(), FREE, starts=1)
    values = np.array(list(found.runs["friction.limit"].values()))
    np.testing.assert_allclose(values, TRUE, atol=0.06)
    assert found.mean["friction.limit"] == pytest.approx(values.mean())
    low, high = found.scatter_intervals()["friction.limit"]
    assert low < TRUE.std(ddof=1) < high
    below, above = found.mean_intervals()["friction.limit"]
    assert below < 1.0 < above
    assert set(found.runs["friction.limit"]) == {f"run {i}" for i in range(5)}
    assert "friction.limit: mean" in str(found)
    # A run that says nothing lies at the mean.
    given = runs()
    given[3] = jfric.Experiment(
        given[3].t, y=given[3].y, sigma=50.0, x0=given[3].x0, meta=given[3].meta
    )
    vague = jfric.fit_hierarchical(model, given, FREE, starts=1)
    others = np.delete(TRUE, 3).mean()
    assert vague.runs["friction.limit"]["run 3"] == pytest.approx(others, abs=0.05)


@pytest.mark.slow
def test_each_run_has_a_number_of_its_own_beside_what_varies():
    """Masses that have nothing in common are found run by run and drawn to no mean."""
    rng, t = np.random.default_rng(0), np.linspace(0.0, 3.0, 101)
    x, v, a = np.sin(2.0 * t), 2.0 * np.cos(2.0 * t), -4.0 * np.sin(2.0 * t)
    masses = {"one": 1.0, "two": 2.0, "three": 1.5}
    given = []
    for (name, m), limit in zip(masses.items(), (0.8, 1.0, 1.2), strict=True):
        force = m * a + limit * np.sign(v) + 0.02 * rng.normal(size=t.size)
        given.append(jfric.Experiment(t, u={"load.F": force}, y={"x": x}, meta={"name": name}))
    free = {**FREE, "mass.m": jfric.Free(0.5, 3.0, scale="linear", per_experiment=True)}
    found = jfric.fit_hierarchical(PROBLEM, given, free, residual=jfric.InverseDynamics(), starts=1)
    assert found.common == {
        f"mass.m[{name}]": pytest.approx(m, abs=0.02) for name, m in masses.items()
    }
    limits = found.runs["friction.limit"]
    assert limits["one"] < limits["two"] < limits["three"]


def test_bad_calls_are_one_sentence():
    with pytest.raises(jfric.ProblemError, match=r"are found by jfric.fit_hierarchical"):
        jfric.fit(PROBLEM, runs(), FREE)
    with pytest.raises(jfric.ProblemError, match="found 2, at least 3 show how they scatter"):
        jfric.fit_hierarchical(PROBLEM, runs()[:2], FREE)
    with pytest.raises(jfric.ProblemError, match="found nothing that varies"):
        jfric.fit_hierarchical(PROBLEM, runs(), {"mass.m": jfric.Free(0.5, 2.0)})
    with pytest.raises(jfric.ProblemError, match="'windows', whose pieces are no runs"):
        jfric.fit_hierarchical(PROBLEM, runs(), FREE, residual=jfric.Windows())


def test_a_command_and_a_file_say_what_varies():
    from jfric.cli.fit_record import free_of
    from jfric.files.read_toml import loads

    system = 'dofs = ["x"]\ntime = {end = "1 s"}\nmass = {dof = "x", m = 1.0}\n'
    system += 'friction = {dof = "x", limit = "1 N"}\n'
    table = '[fit.free]\n"friction.limit" = {between = ["0.5 N", "2 N"], varies = true}\n'
    config = loads(system + table)
    read = free_of(config, None, required=True)
    assert read == {"friction.limit": jfric.Free(0.5, 2.0, varies=True)}
    assert free_of(config, ["friction.limit=0.5 N:2 N:varies"], required=True) == read
    with pytest.raises(jfric.ProblemError, match=r"or a table \[fit.free\] in the file"):
        free_of(loads(system), None, required=True)
    config = loads(system + table.replace("varies", "prior = [1.0, 0.0], each"))
    with pytest.raises(jfric.ProblemError, match=r"fit.free.friction.limit: prior: found"):
        free_of(config, None, required=True)


def test_runs_that_do_not_differ():
    """Values that were drawn together keep a scatter to be looked for, and no warning is needed."""
    given = []
    for i, e in enumerate(runs()):
        y = 2.0 * e.t - 0.5 * e.t**2 + 0.02 * np.sin(9.0 * i + 40.0 * e.t)
        given.append(jfric.Experiment(e.t, y={"x": y}, sigma=0.05, x0=e.x0))
    found = jfric.fit_hierarchical(jfric.SampledModel(PROBLEM), given, FREE, starts=1)
    assert found.mean["friction.limit"] == pytest.approx(1.0, abs=0.05)
    assert 0.0 < found.scatter["friction.limit"] < 0.02
    assert found.scatter_intervals()["friction.limit"][0] == 0.0
    assert any("no more than their noise" in said for said in found.remarks)
