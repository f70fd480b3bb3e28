"""Springs in series with sliders: hysteresis that does not depend on the rate."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from differences import fourth_order
from hypothesis import given, settings
from hypothesis import strategies as st
from references import hysteresis

import jfric
from jfric.files.read_toml import loads
from jfric.results.columns import forces_at_outputs
from jfric.system.elements import SECTIONS

START = jfric.InitialState


def section_of(element):
    return next(name for name, cls in SECTIONS.items() if cls is type(element))


def held(element, path, pace=1.0):
    """A body that friction holds, and a hand that draws the other end along straight lines."""
    times = pace * np.arange(len(path) + 1.0)
    hand = jfric.Base(jfric.PiecewiseLinear(times, [0.0, *path]))
    return jfric.Problem(
        ["u"],
        {
            "mass": jfric.Mass("u", 1.0),
            "friction": jfric.Friction("u", limit=1e6),
            "base": {"hand": hand},
            section_of(element): element,
        },
        time=times[-1],
    )


def forces_at_corners(element, path, pace=1.0):
    problem = held(element, path, pace)
    solution = jfric.simulate(problem, ts=pace * jnp.arange(1.0, len(path) + 1.0))
    solution.check()
    (force,) = jfric.spring_forces(problem, solution).values()
    return -np.asarray(force), solution


@pytest.mark.slow
def test_cycle_of_one_slider():
    """M1: virgin curve, limit, the closed cycle and its loss, at any rate."""
    k, R, X = 100.0, 2.0, 0.05
    element = jfric.Jenkins(("u", "hand"), k=k, R=R)
    path = [0.01, 0.02, X, -X, X, X - 2 * R / k, -X]
    for pace in (1.0, 1e-3):
        found, solution = forces_at_corners(element, path, pace)
        np.testing.assert_allclose(found, [1.0, 2.0, 2.0, -2.0, 2.0, -2.0, -2.0], atol=1e-12)
        assert solution.states == ("jenkins",)
        np.testing.assert_allclose(solution.z[:, 0] * k, found, atol=1e-12)
    # The energy that the hand puts in on a closed cycle, exactly: the force is piecewise linear.
    dense = jfric.simulate(held(element, path), dense=True)
    times = np.unique(np.r_[3.0, 5.0, [e["time"] for e in dense.event_table()]])
    times = times[(times >= 3.0) & (times <= 5.0)]
    x = np.interp(times, np.arange(8.0), [0.0, *path])
    force = k * np.asarray(dense.evaluate(times).z)[:, 0]
    work = np.sum(np.diff(x) * (force[1:] + force[:-1]) / 2)
    assert work == pytest.approx(4 * R * (X - R / k), abs=1e-12)
    assert work == pytest.approx(hysteresis.loss([k], [R], X), abs=1e-12)


SIDE_BY_SIDE = 5


def random_sliders(seed):
    rng = np.random.default_rng(seed)
    return 10 ** rng.uniform(0, 2, SIDE_BY_SIDE), 10 ** rng.uniform(-1, 1, SIDE_BY_SIDE)


@jax.jit
def _pulls(k, R, path):
    """Pulls of sliders at the corners of a path that a hand takes."""
    element = jfric.MaxwellSlip(("u", "hand"), k=k, R=R)
    problem = held(element, [0.0] * 7)
    values = {"base.hand.displacement.values": jnp.concatenate([jnp.zeros(1), path])}
    # Rounding errors are relative to what holds the body.
    values |= {"maxwell_slip.k": k, "maxwell_slip.R": R, "friction.limit": 2.0 * R.sum()}
    problem = jfric.set_parameters(problem, values)
    solution = jfric.simulate(problem, ts=jnp.arange(1.0, 8.0))
    return -forces_at_outputs(problem, solution)[:, 0], solution.status


@pytest.mark.slow
@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 10**6),
    path=st.lists(st.integers(-(10**6), 10**6), min_size=7, max_size=7),
)
def test_random_sliders_on_random_paths(seed, path):
    k, R = random_sliders(seed)
    path = np.asarray(path) * 2e-6 * (R / k).max()
    found, status = _pulls(jnp.asarray(k), jnp.asarray(R), jnp.asarray(path))
    assert int(status) == 0
    np.testing.assert_allclose(found, hysteresis.driven(k, R, path), atol=1e-11 * R.sum())


@pytest.mark.parametrize("seed", range(5))
def test_masing_rules(seed):
    """A branch after a reversal is the initial curve scaled by two, until it meets an older one."""
    k, R = random_sliders(seed)
    top = 1.5 * (R / k).max()

    def initial(x):
        return np.minimum(k * x, R).sum()

    # Up, down to a turn, up again beyond the first turn: on the initial curve, as if there were
    # no inner loop.
    path = np.asarray([0.6, -0.2, 0.1, -0.2, 0.6, 0.9, 0.3]) * top
    found, status = _pulls(jnp.asarray(k), jnp.asarray(R), jnp.asarray(path))
    assert int(status) == 0
    x = path
    expected = [
        initial(x[0]),
        initial(x[0]) - 2 * initial((x[0] - x[1]) / 2),
        initial(x[0]) - 2 * initial((x[0] - x[1]) / 2) + 2 * initial((x[2] - x[1]) / 2),
        initial(x[0]) - 2 * initial((x[0] - x[1]) / 2),
        initial(x[4]),
        initial(x[5]),
        initial(x[5]) - 2 * initial((x[5] - x[6]) / 2),
    ]
    np.testing.assert_allclose(found, expected, atol=1e-11 * R.sum())


def test_a_masing_curve_is_met_at_its_points():
    x, F = [0.01, 0.02, 0.05], [2.0, 3.0, 4.5]
    spring = jfric.MasingSpring(("u", "hand"), x=x, F=F)
    found, _ = forces_at_corners(spring, [0.01, 0.02, 0.05, 0.03, -0.05, 0.05])
    np.testing.assert_allclose(found, [2.0, 3.0, 4.5, 0.5, -4.5, 4.5], atol=1e-12)


FOUR = {"K_T": 2.0, "F_S": 3.0, "chi": -0.1, "beta": 0.1}
#: M2: amplitude over phi_max, force on the initial curve, loss in a cycle.
IWAN = [
    (0.25, 1.240476200402, 0.176374717853),
    (0.5, 2.138687984493, 1.316507445042),
    (0.9, 2.924093618877, 7.239583544989),
]


@pytest.mark.parametrize(("part", "force", "lost"), IWAN)
def test_iwan_converges_with_its_order(part, force, lost):
    errors = []
    for count in (23, 45, 89):
        joint = jfric.Iwan("u", count=count, **FOUR)
        b = joint.branches()
        X = part * float(joint.phi_max)
        F = float(jnp.sum(b.k * jnp.minimum(X, b.slip)))
        D = hysteresis.loss(np.asarray(b.k), np.asarray(b.k * b.slip), X)
        errors.append((abs(F - force), abs(D - lost)))
    errors = np.asarray(errors)
    assert np.all(errors[-1] < [1e-3, 3e-3])
    assert np.all(errors[-1] <= 0.5 * errors[0] + 1e-11)


def test_iwan_is_exact_where_parts_end():
    joint = jfric.Iwan(("u", "hand"), count=21, **FOUR)
    X = 0.5 * float(joint.phi_max)
    found, _ = forces_at_corners(joint, [X, -X, X])
    np.testing.assert_allclose(found, 2.138687984493 * np.asarray([1, -1, 1]), atol=1e-11)

    def error(count):
        b = jfric.Iwan("u", count=count, **FOUR).branches()
        lost = hysteresis.loss(np.asarray(b.k), np.asarray(b.k * b.slip), X)
        return abs(lost / 1.316507445042 - 1)

    order = np.log2(error(81) / error(161))
    assert 1.8 < order < 2.2
    assert error(161) < 1e-4


def mass_on_sliders(count=4, end=4.0):
    k = np.linspace(1000.0, 3000.0, count) / count
    R = 3.0 * np.linspace(20.0, 200.0, count) / count
    elements = {
        "mass": jfric.Mass("u", 100.0),
        "spring": jfric.Spring("u", 5000.0),
        "maxwell_slip": jfric.MaxwellSlip("u", k=k, R=R),
        "load": jfric.Load("u", jfric.Harmonic(1500.0, omega=5.0)),
    }
    return jfric.Problem(["u"], elements, initial={"u": START(q=0.01)}, time=end), k, R


@pytest.mark.parametrize(
    "count", [pytest.param(1, marks=pytest.mark.slow), 4, pytest.param(16, marks=pytest.mark.slow)]
)
def test_a_mass_on_sliders(count):
    problem, k, R = mass_on_sliders(count)
    solution = jfric.simulate(problem, ts=jnp.array([0.0, 4.0]))
    solution.check()
    state, log = hysteresis.oscillator(
        100.0, 5000.0, k, R, lambda t: 1500.0 * np.sin(5.0 * t), 0.01, 0.0, 4.0
    )
    times = [e["time"] for e in solution.event_table()]
    np.testing.assert_allclose(times, [t for t, _ in log], atol=1e-11)
    assert len(log) > 10
    np.testing.assert_allclose([solution.q[-1, 0], solution.v[-1, 0]], state, atol=1e-11)
    assert float(jfric.motion_residual(problem, solution).max()) < 1e-12
    # At most a pass for each event, and those that settle the modes.
    assert int(solution.steps) < len(times) + 20


@pytest.mark.slow
def test_energy():
    """What the load puts in is in springs, in the mass, or lost by sliders that slip."""
    problem, k, R = mass_on_sliders()
    solution = jfric.simulate(problem, dense=True)
    knots = np.unique(np.r_[0.0, 4.0, [e["time"] for e in solution.event_table()]])
    nodes, weights = np.polynomial.legendre.leggauss(30)
    work = lost = 0.0
    for a, b in itertools.pairwise(knots):
        t = 0.5 * (a + b) + 0.5 * (b - a) * nodes
        m = solution.evaluate(t)
        v, z = np.asarray(m.v)[:, 0], np.asarray(m.z)
        slips = np.abs(z) >= (R / k) * (1 - 1e-12)
        work += 0.5 * (b - a) * weights @ (1500.0 * np.sin(5.0 * t) * v)
        lost += 0.5 * (b - a) * weights @ (np.abs(v) * (slips * R).sum(axis=1))

    def stored(t):
        m = solution.evaluate(t)
        return 50.0 * m.v[0] ** 2 + 2500.0 * m.q[0] ** 2 + 0.5 * jnp.sum(k * m.z**2)

    assert lost > 1.0
    assert work - lost == pytest.approx(float(stored(4.0) - stored(0.0)), abs=1e-9)


@pytest.mark.slow  # its sibling: derivatives of bristles
def test_derivatives():
    """Forward and reverse against differences, away from changes of the sequence of events."""
    problem, k, _ = mass_on_sliders()

    def end(x, adjoint):
        values = {"maxwell_slip.k": x[:4], "maxwell_slip.R": x[4:8], "mass.m": x[8]}
        values |= {"load.F.amplitude": x[9]}
        solver = jfric.EventDriven(adjoint=adjoint)
        changed = jfric.set_parameters(problem, values)
        solution = jfric.simulate(changed, solver, ts=jnp.array([1.9]))
        return jnp.concatenate([solution.q[0], solution.v[0], solution.z[0]])

    element = problem.elements["maxwell_slip"]["maxwell_slip"]
    x = jnp.concatenate([element.k, element.R, jnp.array([100.0, 1500.0])])
    forward = jax.jit(jax.jacfwd(lambda x: end(x, "forward")))(x)
    backward = jax.jit(jax.jacrev(lambda x: end(x, "reverse")))(x)
    np.testing.assert_allclose(forward, backward, rtol=1e-9, atol=1e-12)
    values = jax.jit(lambda x: end(x, "forward"))
    for i in range(len(x)):
        h = 1e-5 * x[i]
        difference = (values(x.at[i].add(h)) - values(x.at[i].add(-h))) / (2 * h)
        np.testing.assert_allclose(
            forward[:, i] * x[i], difference * x[i], rtol=1e-6, atol=1e-8 * float(jnp.max(k))
        )


JOINTS = {
    "jenkins": jfric.Jenkins("u", k=2000.0, R=80.0),
    "masing_spring": jfric.MasingSpring("u", x=[0.01, 0.03, 0.08], F=[40.0, 90.0, 140.0]),
    "iwan": jfric.Iwan("u", K_T=3000.0, F_S=150.0, chi=-0.3, beta=0.4, count=6),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", JOINTS)
def test_derivatives_of_every_joint_both_ways(name):
    """In all its numbers, forward and reverse, against differences of fourth order."""
    elements = {k: v for k, v in mass_on_sliders()[0].elements.items() if k != "maxwell_slip"}
    problem = jfric.Problem(
        ["u"], elements | {name: JOINTS[name]}, initial={"u": START(q=0.003)}, time=2.0
    )
    paths = [p for p in jfric.parameters(problem) if p.startswith(f"{name}.") and "z0" not in p]
    parts = [jnp.atleast_1d(jfric.get_parameter(problem, p)) for p in paths]
    cuts = np.cumsum([part.size for part in parts])[:-1]
    scalar = [jnp.ndim(jfric.get_parameter(problem, p)) == 0 for p in paths]

    def end(x, adjoint="forward"):
        values = dict(zip(paths, jnp.split(x, cuts), strict=True))
        values = {p: v[0] if s else v for (p, v), s in zip(values.items(), scalar, strict=True)}
        changed = jfric.set_parameters(problem, values)
        found = jfric.simulate(changed, jfric.EventDriven(adjoint=adjoint), ts=jnp.array([1.9]))
        return jnp.concatenate([found.q[0], found.v[0], found.z[0]])

    x = jnp.concatenate(parts)
    forward = jax.jit(jax.jacfwd(end))(x)
    backward = jax.jit(jax.jacrev(lambda x: end(x, "reverse")))(x)
    np.testing.assert_allclose(forward, backward, rtol=1e-9, atol=1e-12)
    values = jax.jit(end)
    for i in range(len(x)):
        difference = fourth_order(lambda d, i=i: values(x.at[i].add(d)), 1e-4 * abs(x[i]))
        np.testing.assert_allclose(forward[:, i] * x[i], difference * x[i], rtol=1e-7, atol=1e-8)


@pytest.mark.slow
def test_a_jump_of_the_position_stretches_the_springs():
    """A user's event moves the body: the sliders see the way, whatever its direction."""
    k, R, jump = np.asarray([50.0, 100.0]), np.asarray([1.0, 6.0]), -0.03
    problem = jfric.Problem(
        ["u"],
        {
            "mass": jfric.Mass("u", 1.0),
            "maxwell_slip": jfric.MaxwellSlip("u", k=k, R=R),
            "event": jfric.Event("u - 0.035", change={"u": f"u - {-jump}"}),
        },
        initial={"u": START(v=2.0)},
        time=0.02,
    )
    solution = jfric.simulate(problem, ts=jnp.array([0.02]), dense=True)
    solution.check()
    time = next(e["time"] for e in solution.event_table() if e["contact"] == "event")
    after = solution.evaluate(time, side="after")
    np.testing.assert_allclose(after.z @ k, hysteresis.driven(k, R, [0.035, 0.035 + jump])[1])


@pytest.mark.slow
def test_restart_and_batches():
    problem, *_ = mass_on_sliders()
    ts = jnp.array([2.5])
    whole = jfric.simulate(problem, ts=ts)
    first = jfric.simulate(jfric.set_parameters(problem, {"time.end": 1.3}), ts=jnp.array([1.3]))
    second = jfric.simulate(problem, start=first.final, ts=ts)
    np.testing.assert_allclose(second.q, whole.q, atol=1e-12)
    np.testing.assert_allclose(second.z, whole.z, atol=1e-12)
    traces = 0

    @jax.jit
    def many(m):
        nonlocal traces
        traces += 1
        run = lambda m: jfric.simulate(jfric.set_parameters(problem, {"mass.m": m}), ts=ts).z  # noqa: E731
        return jax.vmap(run)(m)

    found = many(jnp.array([100.0, 90.0, 110.0]))
    many(jnp.array([80.0, 90.0, 110.0]))
    np.testing.assert_allclose(found[0], whole.z, atol=1e-12)
    assert traces == 1


FILE = """
dofs = ["u"]
[time]
end = 1.0
[mass]
dof = "u"
m = "1 kg"
[{section}]
dof = "u"
{numbers}
"""


@pytest.mark.parametrize(
    ("section", "numbers"),
    [
        ("jenkins", 'k = "1 kN/m"\nR = "2 N"\nz0 = "1 mm"'),
        ("maxwell_slip", "k = [10.0, 20.0]\nR = [1.0, 3.0]"),
        ("masing_spring", 'x = ["1 cm", "3 cm"]\nF = [2.0, 3.0]'),
        ("iwan", "K_T = 2.0\nF_S = 3.0\nchi = -0.1\nbeta = 0.1\ncount = 12"),
    ],
)
def test_files_hold_them(section, numbers):
    problem = loads(FILE.format(section=section, numbers=numbers)).problem
    again = loads(jfric.to_toml(problem)).problem
    first, second = (jfric.parameters(p) for p in (problem, again))
    assert list(first) == list(second)
    assert all(jnp.array_equal(first[k], second[k]) for k in first)
    assert again.elements[section][section].sliders == problem.elements[section][section].sliders


BAD = [
    (jfric.Jenkins("u", k=-1.0, R=1.0), "jenkins.k: found -1, must be positive"),
    (jfric.Jenkins("u", k=1.0, R=0.0), "jenkins.R: found 0, must be positive"),
    (jfric.Jenkins("u", k=10.0, R=1.0, z0=0.2), "jenkins.z0: found 0.2, the slider slips at 0.1"),
    (jfric.MaxwellSlip("u", k=[1.0, 2.0], R=[1.0]), "found 1 limits for 2 stiffnesses"),
    (jfric.MaxwellSlip("u", k=[1.0, 0.0], R=[1.0, 1.0]), "maxwell_slip.k: found 0, must be pos"),
    (jfric.MasingSpring("u", x=[1.0], F=[1.0]), "at least two"),
    (jfric.MasingSpring("u", x=[1.0, 0.5], F=[1.0, 2.0]), "must increase from above zero"),
    (jfric.MasingSpring("u", x=[1.0, 2.0], F=[1.0, 3.0]), "found the slopes 1, 2 from the origin"),
    (jfric.Iwan("u", K_T=1.0, F_S=1.0, chi=-1.0, beta=0.1), "iwan.chi: found -1, must be above"),
    (jfric.Iwan("u", K_T=1.0, F_S=1.0, chi=0.0, beta=-0.1), "iwan.beta: found -0.1, must not be"),
    (jfric.Iwan("u", K_T=1.0, F_S=1.0, chi=0.0, beta=0.1, count=1), "iwan.count: found 1"),
]


@pytest.mark.parametrize(("element", "sentence"), BAD, ids=[s for _, s in BAD])
def test_bad_numbers_have_a_sentence(element, sentence):
    elements = {"mass": jfric.Mass("u", 1.0), section_of(element): element}
    with pytest.raises(jfric.ProblemError, match=None) as error:
        jfric.Problem(["u"], elements)
    assert sentence in str(error.value)


@pytest.mark.parametrize(
    "solver", [jfric.MoreauJean(dt=1e-3), jfric.Smoothed(), jfric.QuasiStatic()]
)
def test_other_solvers_refuse_them_by_name(solver):
    problem, *_ = mass_on_sliders()
    with pytest.raises(jfric.ProblemError, match="maxwell_slip: found a memory"):
        jfric.simulate(problem, solver, ts=jnp.array([1.0]))


def test_a_slider_beside_a_stop_starts_without_force():
    parts = {
        "mass": {"a": jfric.Mass("x", 1.0), "b": jfric.Mass("y", 1.0)},
        "stop": jfric.Stop("x", k=100.0, gap=0.3),
        "jenkins": jfric.Jenkins("y", 10.0, 1.0),
    }
    start = {"x": jfric.InitialState(0.2), "y": jfric.InitialState(0.0)}
    s = jfric.simulate(jfric.Problem(["x", "y"], parts, initial=start, time=0.5))
    assert s.final.q.tolist() == [0.2, 0.0]
