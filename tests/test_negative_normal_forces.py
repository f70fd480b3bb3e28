"""Numbers that no system has, a given normal force that is negative among them: refused where they
are known, else a status."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jfric
from jfric.solvers.given_forces import negative_from
from jfric.solvers.sampled.run import run_sampled
from jfric.system.function_checks import find_negative

jax.config.update("jax_enable_x64", True)


def _rubbed(normal, end: float = 10.0, start: float = 0.0) -> jfric.Problem:
    return jfric.Problem(
        ["x"],
        {
            "mass": jfric.Mass("x", 1.0),
            "friction": jfric.Friction("x", jfric.Coulomb(0.3), N=normal),
        },
        initial={"x": jfric.InitialState(0.0, 0.52)},
        time=jfric.TimeSpan(end, start),
    )


NEGATIVE = {
    "slow and fast": jfric.Sum([1.0, jfric.Harmonic(3.0, 1.0), jfric.Harmonic(0.01, 1000.0)]),
    # 1 - 0.995 - 0.01 only where both are at their minimum.
    "both at once": jfric.Sum([1.0, jfric.Harmonic(0.995, 1.0), jfric.Harmonic(0.01, 977.0)]),
    "a beat": jfric.Sum([1.9999, jfric.Harmonic(1.0, 50.0), jfric.Harmonic(1.0, 50.3)]),
    "a ramp": jfric.Sum([jfric.PiecewiseLinear([0.0, 10.0], [2.0, 0.9]), jfric.Harmonic(1.0, 7.0)]),
    "a step": jfric.Sum([jfric.Steps([3.0, 3.1], [2.0, 0.5, 2.0]), jfric.Harmonic(1.0, 400.0)]),
    "a corner": jfric.PiecewiseLinear([0.0, 4.0, 8.0], [1.0, -1e-3, 1.0]),
    # Both fall, between two breaks.
    "a ramp and a slow wave": jfric.Sum(
        [jfric.PiecewiseLinear([0.0, 2.0], [1.6, -0.4]), jfric.Harmonic(1.0, 1.0, np.pi - 1.0)]
    ),
}


@pytest.mark.parametrize("name", NEGATIVE)
def test_a_force_that_becomes_negative_is_refused(name):
    with pytest.raises(jfric.ProblemError, match=r"friction.N: found -\S+ at t = \S+ s, must not"):
        _rubbed(NEGATIVE[name], end=30.0)


POSITIVE = {
    "to zero": jfric.Sum([1.0, jfric.Harmonic(1.0, 3.0)]),
    "to zero together": jfric.Sum([0.3, jfric.Harmonic(0.1, 3.0), jfric.Harmonic(0.2, 3.0)]),
    "a fast part": jfric.Sum([1.02, jfric.Harmonic(1.0, 1.0), jfric.Harmonic(0.01, 1e6)]),
    "a ramp to zero": jfric.PiecewiseLinear([0.0, 30.0], [1.0, 0.0]),
    "negative after the end": jfric.PiecewiseLinear([0.0, 30.0, 60.0], [1.0, 0.0, -1.0]),
    "negative before the start": jfric.PiecewiseLinear([-5.0, 0.0], [-1.0, 1.0]),
}


@pytest.mark.parametrize("name", POSITIVE)
def test_a_force_that_stays_positive_is_accepted(name):
    _rubbed(POSITIVE[name], end=30.0)


@pytest.mark.parametrize("seed", range(20))
def test_random_sums_of_harmonics_against_dense_samples(seed):
    random = np.random.default_rng(seed)
    waves = [jfric.Harmonic(*random.uniform([0.0, 0.1, 0.0], [1.0, 40.0, 6.0])) for _ in range(3)]
    t = np.linspace(0.0, 5.0, 400_001)
    lowest = sum(
        float(w.amplitude) * np.sin(float(w.omega) * t + float(w.phase)) for w in waves
    ).min()
    assert find_negative(jfric.Sum([1e-6 - lowest, *waves]), 0.0, 5.0) is None
    found = find_negative(jfric.Sum([-1e-6 - lowest, *waves]), 0.0, 5.0)
    assert found is not None
    assert found.value < 0.0


SOLVERS = {
    "general": (jfric.EventDriven(kernel="general"), 1e-9),
    "lowered": (jfric.EventDriven(kernel="lowered"), 1e-9),
    "runge-kutta": (jfric.EventDriven(flow="runge-kutta"), 1e-9),
    "moreau-jean in scalars": (jfric.MoreauJean(1e-3), 2e-3),
    "moreau-jean": (jfric.MoreauJean(1e-3, method="lemke"), 2e-3),
    "smoothed": (jfric.Smoothed(width=1e-2), 1e-9),
    "quasi-static": (jfric.QuasiStatic(increments=100), 1e-9),
}
FAST = "general", "moreau-jean in scalars", "quasi-static"


def _swings(amplitude, omega):
    """A friction element whose normal force is ``1 + amplitude sin(omega t)`` from 0 to 10 s."""
    changed = jfric.Sum([1.0, jfric.Harmonic(0.5, 1.0)])
    problem = jfric.Problem(
        ["x"],
        {
            "mass": jfric.Mass("x", 1.0),
            "spring": jfric.Spring("x", 1.0),
            "friction": jfric.Friction("x", jfric.Coulomb(0.3), N=changed),
            "load": jfric.Load("x", jfric.Harmonic(0.4, 0.7)),
        },
        time=10.0,
    )
    numbers = {"friction.N.1.amplitude": amplitude, "friction.N.1.omega": omega}
    return jfric.set_parameters(problem, numbers)


@pytest.mark.parametrize(
    "name",
    [n if n in FAST else pytest.param(n, marks=pytest.mark.slow) for n in SOLVERS],
)
def test_what_is_traced_is_watched_during_the_run(name):
    """The runs beside it go on, and nothing after the moment passes for a result."""
    solver, late = SOLVERS[name]
    ts = jnp.linspace(0.0, 10.0, 41)

    @eqx.filter_jit
    @jax.vmap
    def run(amplitude, omega):
        return jfric.simulate(_swings(amplitude, omega), solver, ts=ts)

    found = run(jnp.asarray([0.5, 1.0, 2.0]), jnp.ones(3))
    assert found.status.tolist() == [0, 0, int(jfric.Status.NEGATIVE_FORCE)]
    # 1 + 2 sin t = 0 at 7 pi / 6.
    moment = 7.0 * np.pi / 6.0
    assert float(found.final.t[2]) == pytest.approx(moment, abs=late)
    for values in (found.q, found.v, found.lambda_t):
        assert bool(jnp.isfinite(values[:2]).all())
        assert bool(jnp.isfinite(values[2, ts < moment - late]).all())
        assert bool(jnp.isnan(values[2, ts > moment + late]).all())


@pytest.mark.slow
@pytest.mark.parametrize(
    "solver",
    [jfric.EventDriven(), jfric.MoreauJean(1e-2), jfric.Smoothed(width=1e-2), jfric.QuasiStatic()],
)
def test_a_force_that_is_negative_from_the_start(solver):
    @eqx.filter_jit
    @jax.vmap
    def run(mean):
        problem = jfric.Problem(
            ["x"],
            {
                "mass": jfric.Mass("x", 1.0),
                "spring": jfric.Spring("x", 1.0),
                "friction": jfric.Friction("x", jfric.Coulomb(0.3), N=1.0),
            },
            time=2.0,
        )
        problem = jfric.set_parameters(problem, {"friction.N": mean})
        return jfric.simulate(problem, solver, ts=jnp.asarray([0.0, 1.0]))

    found = run(jnp.asarray([1.0, -1.0]))
    assert found.status.tolist() == [0, int(jfric.Status.NEGATIVE_FORCE)]
    assert found.final.t.tolist() == [2.0, 0.0]
    assert bool(jnp.isfinite(found.q[0]).all())
    assert bool(jnp.isnan(found.q[1]).all())


@pytest.mark.parametrize("held", ["", "linear"])
def test_samples_are_watched(held):
    """A normal force of its own, and one that is measured: from the sample that it spoils on."""
    t = jnp.linspace(0.0, 10.0, 101)
    slots = {"friction.N": ("friction", "friction", "N")} if held else {}

    @eqx.filter_jit
    @jax.vmap
    def run(amplitude):
        inputs = {"friction.N": 1.0 + amplitude * jnp.sin(t)} if held else {}
        return run_sampled(_swings(amplitude, 1.0), t, inputs, slots, linear=bool(held))

    found = run(jnp.asarray([0.5, 1.0, 2.0]))
    assert found.status.tolist() == [0, 0, int(jfric.Status.NEGATIVE_FORCE)]
    assert bool(jnp.isfinite(found.q[:2]).all())
    np.testing.assert_array_equal(jnp.isnan(found.q[2]), t > 7.0 * np.pi / 6.0)
    np.testing.assert_array_equal(jnp.isnan(found.v[2]), t > 7.0 * np.pi / 6.0)


@pytest.mark.parametrize("name", NEGATIVE)
def test_the_first_negative_value_of_a_traced_function(name):
    """Against the search that knows the numbers: it finds the lowest value, at or after that."""
    known = find_negative(NEGATIVE[name], 0.0, 30.0)
    assert known is not None
    found = float(eqx.filter_jit(negative_from)([NEGATIVE[name]], 0.0, 30.0))
    assert 0.0 < found <= known.t
    t = np.linspace(0.0, found, 200_001)
    assert np.asarray(jax.vmap(NEGATIVE[name])(t))[:-1].min() > -1e-9
    after = found + np.linspace(0.0, 1e-6, 101)[1:]
    assert np.asarray(jax.vmap(NEGATIVE[name])(after)).min() < 0.0


@pytest.mark.parametrize("name", POSITIVE)
def test_a_traced_function_that_stays_positive(name):
    assert float(eqx.filter_jit(negative_from)([POSITIVE[name]], 0.0, 30.0)) == np.inf


def test_the_first_negative_values_of_random_functions():
    """One in a batch, however shallow, and none where it stops short of zero."""
    random = np.random.default_rng(0)
    waves = random.uniform([0.1, 0.1, 0.0], [1.0, 40.0, 6.0], (40, 3, 3))
    t = np.linspace(0.0, 5.0, 100_001)
    values = np.sum(waves[..., :1] * np.sin(waves[..., 1:2] * t + waves[..., 2:]), axis=1)

    @jax.jit
    @jax.vmap
    def run(mean, waves):
        return negative_from([jfric.Sum([mean, *(jfric.Harmonic(*w) for w in waves)])], 0.0, 5.0)

    lowest = values.min(axis=1)
    np.testing.assert_array_equal(run(1e-5 - lowest, waves), np.inf)
    found = np.asarray(run(-1e-5 - lowest, waves))
    below = values - lowest[:, None] < 1e-5
    first = t[below.argmax(axis=1)]
    np.testing.assert_array_less(found, first + 1e-12)
    np.testing.assert_array_less(first - 1e-4, found)


def _rubbing(law: jfric.AbstractLaw) -> jfric.Problem:
    return jfric.Problem(
        ["u"],
        {
            "mass": jfric.Mass("u", 100.0),
            "spring": jfric.Spring("u", 5000.0),
            "friction": jfric.Friction("u", law, N=1000.0),
            "load": jfric.Load("u", jfric.Steps([0.5, 3.0], [1500.0, 1500.0, 1400.0])),
        },
        time=4.0,
    )


@pytest.mark.parametrize(
    ("path", "value", "sentence"),
    [
        ("friction.mu_d", -0.1, "friction.mu_d: found -0.1, must not be negative"),
        ("friction.mu_d", 0.2, "friction.mu_d: found 0.2, must not exceed mu_s"),
        ("friction.mu_s", jnp.nan, "friction.mu_s: found nan, must be finite"),
        ("friction.N", -3.0, "friction.N: found -3 at t = 0 s, must not be negative"),
        ("mass.m", -1.0, "mass.m: found -1, must not be negative"),
        ("time.end", -jnp.inf, "time.end: found -inf, must be finite"),
        ("time.end", -1.0, "time.end: found -1 s, must be later than time.start"),
    ],
)
def test_numbers_that_no_system_has_are_refused_where_they_are_known(path, value, sentence):
    problem = _rubbing(jfric.StaticDynamic(0.1, 0.1))
    with pytest.raises(jfric.ProblemError) as error:
        jfric.set_parameters(problem, {path: value})
    assert str(error.value).startswith(sentence)


@pytest.mark.parametrize(
    "name",
    [n if n in FAST else pytest.param(n, marks=pytest.mark.slow) for n in SOLVERS],
)
def test_numbers_that_no_system_has_are_a_status_where_they_are_traced(name):
    """Nothing is computed with them, and the runs beside them go on."""
    solver, problem = SOLVERS[name][0], _rubbing(jfric.Coulomb(0.1))
    inf, nan = jnp.inf, jnp.nan
    finite, bounds = int(jfric.Status.NON_FINITE), int(jfric.Status.OUT_OF_BOUNDS)
    #        mu, k, end, first jump of the load, status
    rows = [
        (0.1, 5000.0, 4.0, 0.5, 0),
        (-0.1, 5000.0, 4.0, 0.5, bounds),
        (0.1, -1.0, 4.0, 0.5, bounds),
        (0.1, 5000.0, 4.0, 3.5, bounds),
        (inf, 5000.0, 4.0, 0.5, finite),
        (0.1, nan, 4.0, 0.5, finite),
        (0.1, 5000.0, nan, 0.5, finite),
        (0.1, 5000.0, -inf, 0.5, finite),
        (0.1, 5000.0, -1.0, 0.5, bounds),
        (0.1, 5000.0, 0.0, 0.5, bounds),
    ]
    paths = ["friction.mu", "spring.k", "time.end"]

    @eqx.filter_jit
    @jax.vmap
    def run(row):
        values = dict(zip(paths, row[:3], strict=True))
        values["load.F.times"] = jnp.stack([row[3], jnp.asarray(3.0)])
        changed = jfric.set_parameters(problem, values)
        return jfric.simulate(changed, solver, ts=jnp.asarray([0.0, 0.25]))

    found = run(jnp.asarray([row[:4] for row in rows]))
    assert found.status.tolist() == [row[4] for row in rows]
    assert bool(jnp.isfinite(found.q[0]).all())
    assert bool(jnp.isnan(found.q[1:]).all())
    assert found.final.t.tolist() == [4.0] + [0.0] * (len(rows) - 1)
    assert bool(jnp.isfinite(found.final.q).all())


def test_samples_with_numbers_that_no_system_has():
    problem = _rubbing(jfric.StaticDynamic(0.1, 0.1))

    @eqx.filter_jit
    @jax.vmap
    def run(mu_s, mu_d):
        changed = jfric.set_parameters(problem, {"friction.mu_s": mu_s, "friction.mu_d": mu_d})
        return run_sampled(changed, jnp.linspace(0.0, 1.0, 11), {}, {})

    found = run(jnp.asarray([0.3, 0.1, 0.1, jnp.inf]), jnp.asarray([0.3, 0.2, -0.1, 0.1]))
    bounds, finite = int(jfric.Status.OUT_OF_BOUNDS), int(jfric.Status.NON_FINITE)
    assert found.status.tolist() == [0, bounds, bounds, finite]
    assert bool(jnp.isfinite(found.q[0]).all())
    assert bool(jnp.isnan(found.q[1:]).all())


def _with_everything() -> jfric.Problem:
    """Elements of every kind that have bounds of their own."""
    steps = jfric.Steps([1.0, 2.0], [0.0, 1.0, 2.0])
    curve = jfric.FrictionCurve([0.0, 0.01, 0.1], [0.3, 0.2, 0.25], mu_s=0.35)
    factor = jfric.SplineFactor([0.0, 1.0, 2.0], [1.0, 1.2, 1.1])
    weights = {"u": 1.0, "w": 2.0}
    elements = {
        "mass": {"u": jfric.Mass("u", 1.0), "w": jfric.Mass("w", 2.0)},
        "spring": jfric.Spring(weights, 3.0),
        "damper": jfric.Damper("u", 0.5),
        "load": jfric.Load("u", steps),
        "friction": {
            "curve": jfric.Friction("u", curve, N=1.0, position=factor),
            "drop": jfric.Friction("w", jfric.Stribeck(0.3, 0.2, v_s=0.1), N=1.0),
            "line": jfric.Friction(weights, jfric.StaticDynamic(0.3, 0.2), N=1.0),
        },
        "contact": jfric.Contact("w", e=0.5, gap=1.0),
        "diagram_spring": jfric.DiagramSpring("u", [-1.0, 0.0, 2.0], [-1.0, 0.0, 1.0]),
        "lugre": jfric.LuGre("u", sigma0=300.0, sigma1=3.0, F_c=1.0, F_s=1.5, v_s=0.1),
        "dahl": jfric.Dahl("u", sigma=60.0, F_c=1.0, exponent=1.5),
        "bouc_wen": jfric.BoucWen("u", k=40.0, beta=20.0, gamma=10.0, n=1.5),
        "jenkins": {n: jfric.Jenkins("u", k=10.0, R=1.0, z0=0.05) for n in ("a", "b")},
        "jenkins_coupling": jfric.JenkinsCoupling(("a", "b"), k=1.0),
        "masing_spring": jfric.MasingSpring("u", [0.1, 0.2, 0.4], [1.0, 1.5, 2.0]),
        "iwan": jfric.Iwan("u", K_T=10.0, F_S=1.0, chi=-0.5, beta=0.1),
    }
    return jfric.Problem(["u", "w"], elements, time=3.0)


def _both_ways(problem: jfric.Problem, rows: list) -> list[tuple[bool, bool]]:
    """Whether each number, set at its path, is allowed: where it is known, where it is traced."""
    known, base = [], jfric.parameters(problem)
    paths = tuple(dict.fromkeys(path for path, _ in rows))
    for path, value in rows:
        try:
            jfric.set_parameters(problem, {path: value})
        except jfric.ProblemError:
            known.append(False)
        else:
            known.append(True)

    @eqx.filter_jit
    @jax.vmap
    def begun(values):
        changed = jfric.set_parameters(problem, values)
        return jfric.EventDriven().init(changed).status

    tables = {p: np.array([v if q == p else base[p] for q, v in rows]) for p in paths}
    status = np.asarray(begun(tables))
    refused = np.isin(status, [jfric.Status.OUT_OF_BOUNDS, jfric.Status.NON_FINITE])
    return list(zip(known, (~refused).tolist(), strict=True))


@pytest.mark.slow
def test_bounds_of_elements_hold_where_numbers_are_traced():
    """Open bounds, order of knots, and what numbers must be to each other."""
    rows = [
        ("lugre.sigma0", 0.0),
        ("lugre.F_s", 0.5),
        ("lugre.z0", 0.1),
        ("dahl.exponent", 0.5),
        ("bouc_wen.z0", 9.0),
        ("jenkins.a.z0", 0.2),
        ("jenkins.b.R", 0.0),
        ("friction.curve.speeds.1", 0.2),
        ("friction.curve.speeds.0", 1e-3),
        ("friction.curve.mu_s", 0.2),
        ("friction.curve.position.x.1", 3.0),
        ("friction.line.mu_d", 0.4),
        ("damper.c", -0.1),
        ("contact.e", 1.5),
        ("load.F.times", np.array([2.0, 1.0])),
        ("masing_spring.x", np.array([0.2, 0.1, 0.4])),
        ("masing_spring.F", np.array([1.0, 1.5, 3.0])),
        ("diagram_spring.x", np.array([0.0, 0.0, 2.0])),
    ]
    allowed = [("lugre.z0", 0.005), ("friction.curve.speeds.1", 0.05), ("contact.e", 1.0)]
    found = _both_ways(_with_everything(), rows + allowed)
    assert found == [(False, False)] * len(rows) + [(True, True)] * len(allowed)


@pytest.mark.slow
def test_every_number_of_every_element_is_judged_alike_known_or_traced():
    problem, rows = _with_everything(), []
    for path, value in jfric.parameters(problem).items():
        x = np.asarray(value, float)
        if path.startswith("time.") or path.endswith(".N"):
            continue  # of which the run tells more
        if x.ndim == 0:
            rows += [(path, y) for y in (-float(x) or -1.0, 0.0, 10.0 * float(x))]
        elif x.ndim == 1:
            rows += [(path, y) for y in (x[::-1], 0.0 * x)]
    wrong = [row for row, (a, b) in zip(rows, _both_ways(problem, rows), strict=True) if a != b]
    assert not wrong


@pytest.mark.parametrize(
    "solver",
    [
        pytest.param(jfric.EventDriven(adjoint="none"), marks=pytest.mark.slow),
        jfric.MoreauJean(1e-2),
        pytest.param(jfric.QuasiStatic(), marks=pytest.mark.slow),
        pytest.param(jfric.Smoothed(width=1e-3), marks=pytest.mark.slow),
    ],
)
def test_output_times_that_no_run_has_are_a_status_where_they_are_traced(solver):
    """Those behind the end are not reached."""
    problem, bounds = _rubbing(jfric.Coulomb(0.1)), int(jfric.Status.OUT_OF_BOUNDS)
    times = [
        [0.0, 0.5, 4.0],
        [0.5, 0.25, 4.0],
        [-1.0, 0.5, 4.0],
        [0.1, 0.5, 9.0],
        [0.1, jnp.inf, jnp.inf],
    ]
    run = jax.jit(jax.vmap(lambda ts: jfric.simulate(problem, solver, ts=ts)))
    found = run(jnp.asarray(times))
    assert found.status.tolist() == [0, bounds, bounds, 0, 0]
    reached = jnp.isfinite(found.q).all(-1).tolist()
    assert reached == [
        [True] * 3,
        [False] * 3,
        [False] * 3,
        [True, True, False],
        [True, False, False],
    ]
    with pytest.raises(jfric.ProblemError, match="ts: found times that decrease"):
        jfric.simulate(problem, solver, ts=jnp.asarray(times[1]))


@pytest.mark.slow
@pytest.mark.parametrize("solver", [jfric.EventDriven(), jfric.MoreauJean(1e-2)])
def test_a_start_inside_a_wall_is_a_status_where_it_is_traced(solver):
    problem = jfric.Problem(
        ["y"],
        {
            "mass": jfric.Mass("y", 1.0),
            "load": jfric.Load("y", -1.0),
            "contact": jfric.Contact("y", e=0.0, gap=1.0),
        },
        initial={"y": jfric.InitialState(-0.9)},
        time=0.25,
    )

    @eqx.filter_jit
    @jax.vmap
    def run(y):
        return jfric.simulate(jfric.set_parameters(problem, {"initial.y.q": y}), solver)

    found = run(jnp.asarray([-0.9, -1.0, -1.0 - 1e-9, -1.1]))
    assert found.status.tolist() == [0, 0, 0, int(jfric.Status.PENETRATION)]
    table = jfric.sweep(problem, {"initial.y.q": [-0.9, -1.1]}, "final.y", solver=solver)
    assert table.status.values.tolist() == [0, int(jfric.Status.PENETRATION)]
    assert np.isnan(table["final.y"].values).tolist() == [False, True]


def test_a_force_that_is_negative_by_little():
    normal = jfric.Sum([1.0 - 1e-7, jfric.Harmonic(1.0, 3.0, 0.3)])
    with pytest.raises(jfric.ProblemError, match=r"friction.N: found -\S+ at t = \S+ s, must not"):
        _rubbed(normal, end=30.0)
