"""Unilateral contacts with friction in a plane: the normal force is a reaction."""

import dataclasses
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from references.plane import Belts
from references.plane_contact import Particle

import jfric
from jfric.contact.impact import solve_impact
from jfric.files.read_toml import load_config, loads
from jfric.files.write_toml import dump
from jfric.results.columns import contacts_shown
from jfric.results.signals import signal_names
from jfric.verification.configs import shipped

START = jfric.InitialState
SOLVER = jfric.EventDriven(rtol=1e-12)
G = 9.81


def particle(law, start, time, load=None, e=0.0, M=None) -> jfric.Problem:
    """A particle of 1 kg over a floor with friction in both directions."""
    return jfric.Problem(
        ["x", "y", "z"],
        {
            "contact": jfric.Contact("z", plane=["x", "y"], law=law, e=e),
            "load": {d: jfric.Load(d, f) for d, f in ({"z": -G} | (load or {})).items()},
        },
        matrices=jfric.Matrices(M=np.eye(3) if M is None else M),
        initial=start,
        time=time,
    )


THROWN = particle(
    jfric.Coulomb(0.2), {"x": START(v=2.0), "y": START(v=1.0), "z": START(q=0.3, v=-0.5)}, 2.0
)


def landing(x):
    """Times of impact and stop, and place of the stop, of a particle that slides after it hits."""
    mu, v, h = x
    fast, w = jnp.sqrt(v * v + 1.0), jnp.sqrt(0.25 + 2.0 * G * h)
    hits, left = (w - 0.5) / G, fast - mu * w
    way = fast * hits + left**2 / (2.0 * mu * G)
    return jnp.stack([hits, hits + left / (mu * G), way * v / fast, way / fast])


def simulated_landing(x):
    mu, v, h = x
    values = {"contact.mu": mu, "initial.x.v": v, "initial.z.q": h}
    ts = jnp.array([2.0])
    solution = jfric.simulate(jfric.set_parameters(THROWN, values), SOLVER, ts=ts)
    found = jnp.concatenate([solution.events.time[:2], solution.q[0, :2]])
    return found, (found, solution.events.to_mode[:2])


@pytest.mark.slow
def test_thrown_obliquely():
    """Lands, loses speed in proportion to the impulse, slides and stops, or stops as it lands."""
    x = jnp.array([[0.2, 2.0, 0.3], [0.1, 1.0, 0.1], [0.4, 3.0, 0.05], [0.5, 0.1, 0.3]])
    found, modes = jax.jit(jax.vmap(lambda x: simulated_landing(x)[1]))(x)
    np.testing.assert_allclose(found[:3], jax.vmap(landing)(x[:3]), rtol=1e-11)
    assert modes[:3].tolist() == [[jfric.Mode.SLIP, jfric.Mode.STICK]] * 3
    # Friction of the impact is enough to hold it where it lands.
    assert modes[3, 0] == jfric.Mode.STICK
    np.testing.assert_allclose(found[3, 2:], found[3, 0] * jnp.array([0.1, 1.0]), rtol=1e-12)


@pytest.mark.slow  # its sibling: the case f4_billiard_drop of the verification list
def test_thrown_obliquely_with_derivatives():
    x = jnp.array([0.2, 2.0, 0.3])
    forward = jax.jit(jax.jacfwd(simulated_landing, has_aux=True))
    rates, (found, modes) = forward(x)
    np.testing.assert_allclose(found, landing(x), rtol=1e-11)
    np.testing.assert_allclose(rates, jax.jacfwd(landing)(x), rtol=1e-9, atol=1e-10)
    assert modes.tolist() == [jfric.Mode.SLIP, jfric.Mode.STICK]

    # With much friction the impact ends the motion.
    def stuck(x):
        hits = landing(x)[0]
        return jnp.stack([hits, x[1] * hits, hits])

    x = x.at[0].set(1.0)
    rates, (found, modes) = forward(x)
    np.testing.assert_allclose(found[jnp.array([0, 2, 3])], stuck(x), rtol=1e-12)
    expected = jax.jacfwd(stuck)(x)
    np.testing.assert_allclose(rates[jnp.array([0, 2, 3])], expected, rtol=1e-9, atol=1e-10)
    assert int(modes[0]) == jfric.Mode.STICK


@pytest.mark.slow  # compiles for a minute; its sibling: forward mode
def test_derivatives_in_reverse():
    x = jnp.array([0.2, 2.0, 0.3])
    reverse, _ = jax.jit(jax.jacrev(simulated_landing, has_aux=True))(x)
    np.testing.assert_allclose(reverse, jax.jacfwd(landing)(x), rtol=1e-9, atol=1e-10)


@pytest.mark.slow
def test_derivatives_through_the_start_of_sliding():
    """A load that grows pushes the particle off: ``x = a tau^3/6`` with ``tau = T - mu g/a``."""
    ramp = {"x": jfric.PiecewiseLinear([0.0, 2.0], [0.0, 4.0])}
    pushed = particle(jfric.Coulomb(0.2), {}, 2.0, load=ramp)

    def place(x):
        mu, h = x
        values = {"contact.mu": mu, "time.end": h}
        solution = jfric.simulate(jfric.set_parameters(pushed, values), SOLVER, ts=h[None])
        return jnp.stack([solution.events.time[0], solution.q[0, 0], solution.v[0, 0]])

    def expected(x):
        starts = x[0] * G / 2.0
        tau = x[1] - starts
        return jnp.stack([starts, tau**3 / 3.0, tau**2])

    x = jnp.array([0.2, 1.8])
    forward = jax.jit(lambda x: (place(x), jax.jacfwd(place)(x)))
    found, rates = forward(x)
    np.testing.assert_allclose(found, expected(x), rtol=1e-10)
    np.testing.assert_allclose(rates, jax.jacfwd(expected)(x), rtol=1e-7, atol=1e-9)


@pytest.mark.slow  # its siblings: the same with a given normal force
def test_as_with_a_given_normal_force():
    """The cases F2, F3 and F5: the weight presses as the given force does."""
    limits = np.array([0.5, 0.2])
    angle = np.array([np.cos(0.6), np.sin(0.6)])
    jumps = [(0.5 * a, a + 0.3 * b) for a, b in zip(limits * angle, angle / limits, strict=True)]
    slope = G * np.sin(0.4)
    cases = [
        ([0.4, 0.4], 1.0, [(0.2, 0.2), (0.0, 0.0)], 1.0, 4.0),
        ([0.6, 0.6], G * np.cos(0.4), [(slope, slope), (0.0, 0.0)], 1.0, 0.9),
        (limits.tolist(), 1.0, jumps, 0.0, 3.0),
    ]
    run = jax.jit(lambda problem, ts: jfric.simulate(problem, SOLVER, ts=ts))
    for mu, weight, forces, v, time in cases:
        ts, law, start = jnp.linspace(0.0, time, 21), jfric.Coulomb(mu), {"y": START(v=v)}
        load = {d: jfric.Steps([1.0], list(f)) for d, f in zip("xy", forces, strict=True)}
        problem = particle(law, start, time, load | {"z": -weight})
        solution = run(problem, ts)
        solution.check()
        given = jfric.Problem(
            ["x", "y"],
            {
                "mass": {d: jfric.Mass(d, 1.0) for d in "xy"},
                "friction": jfric.Friction(plane=["x", "y"], law=law, N=weight),
                "load": {d: jfric.Load(d, load[d]) for d in load},
            },
            initial=start,
            time=time,
        )
        same = run(given, ts)
        np.testing.assert_allclose(solution.q[:, :2], same.q, atol=1e-11)
        np.testing.assert_allclose(solution.v[:, :2], same.v, atol=1e-11)
        np.testing.assert_allclose(solution.lambda_t, same.lambda_t, atol=1e-9)
        count = int(same.events.count)
        assert int(solution.events.count) == count > 0
        times = solution.events.time[:count], same.events.time[:count]
        np.testing.assert_allclose(*times, atol=1e-11)
        np.testing.assert_allclose(solution.lambda_n[:, 0], weight, rtol=1e-14)
        assert float(jfric.contact_residual(problem, solution).max()) < 1e-11


def coupled(rng) -> np.ndarray:
    """A mass matrix that couples everything."""
    A = rng.normal(size=(3, 3))
    return np.eye(3) + 0.12 * A @ A.T


@jax.jit
def run_coupled(problem):
    return jfric.simulate(problem, SOLVER, ts=jnp.linspace(0.0, 3.0, 31))


@pytest.mark.slow  # its sibling: impacts alone
def test_coupled_masses_beside_another_method():
    rng, mu, force = np.random.default_rng(1), np.array([0.5, 0.3]), np.array([0.3, -0.2, -6.0])
    reached = set()
    load = dict(zip("xyz", force, strict=True))
    for _ in range(8):
        M, v = coupled(rng), np.array([*rng.normal(size=2) * 1.5, -0.5])
        start = {d: START(v=x) for d, x in zip("xy", v[:2], strict=True)}
        start["z"] = START(q=0.3, v=v[2])
        problem = particle(jfric.Coulomb(list(mu)), start, 3.0, load, M=M)
        solution = run_coupled(problem)
        solution.check()
        reference = Particle(M, force, mu)
        _, place = reference.run([0.0, 0.0, 0.3], v)
        count = int(solution.events.count)
        times = [t for t, _ in reference.events]
        np.testing.assert_allclose(solution.events.time[:count], times, atol=1e-11)
        labels = [jfric.Mode(int(m)).label for m in solution.events.to_mode[:count]]
        assert labels == [label for _, label in reference.events]
        np.testing.assert_allclose(solution.q[-1], place, atol=1e-11)
        assert float(jfric.contact_residual(problem, solution).max()) < 1e-11
        assert float(jfric.motion_residual(problem, solution).max()) < 1e-12
        reached |= {tuple(labels)}
    assert reached == {("stick",), ("slip", "stick")}
    # Bounces that accumulate; no impact gains energy.
    rebounding = particle(jfric.Coulomb(list(mu)), start, 3.0, load, e=0.4, M=M)
    solution = run_coupled(rebounding)
    solution.check()
    assert jfric.Flag.ZENO in jfric.Flag(int(solution.flags))
    energy = 0.5 * np.einsum("ti,ij,tj->t", solution.v, M, solution.v) - solution.q @ force
    assert np.diff(energy).max() < 1e-12 * energy[0]


def test_impacts_beside_another_method():
    rng, modes = np.random.default_rng(3), []
    nothing = jnp.full((4,), 1e-14)
    solve = jax.jit(lambda *laws: solve_impact(*laws, nothing, independent=True, planes=((0, 1),)))
    for _ in range(12):
        M, mu, e = coupled(rng), rng.uniform(0.1, 0.9, 2), rng.uniform(0.0, 1.0)
        v = np.append(rng.normal(size=2), -1.0)
        expected, sticks = Particle(M, np.zeros(3), mu, e).impulse(v)
        D = np.linalg.inv(M)
        both = np.array([0, 1, 2, 2])
        laws = D[np.ix_(both, both)], v[both], [True, True], [e, e], mu, mu
        found = solve(*map(jnp.asarray, laws))
        assert bool(found.solved)
        np.testing.assert_allclose(found.impulse, [*expected, 0.0], atol=1e-12)
        assert int(found.mode[0]) == (jfric.Mode.STICK if sticks else jfric.Mode.SLIP_POS)
        modes.append(sticks)
    assert len(set(modes)) == 2


@pytest.mark.slow  # its sibling: the same belts with given normal forces
def test_block_on_two_belts_at_right_angles():
    """A block on two feet, one on each belt: the distances of the feet share its weight."""
    omega, phase = np.array([0.7, 0.77]), np.array([0.3, 1.0])
    reference = Belts(
        lambda t: 0.5 * np.sin(omega * t + phase),
        lambda t: 0.5 * omega * np.cos(omega * t + phase),
        (0.6, 0.3),
        np.array([(0.2, 0.0), (0.0, 0.2)]),
        c=0.05,
    )
    ts = np.linspace(0.0, 20.0, 41)[1:]
    states = reference.run([0.0, 0.0], [0.35, 0.0], ts)
    loads = {
        d: jfric.Load(d, jfric.Harmonic(0.5, omega=w, phase=p))
        for d, w, p in zip("xy", omega, phase, strict=True)
    }
    belts = {"left": (1.0, [0.2, 0.0]), "right": (-2.0, [0.0, 0.2])}
    problem = jfric.Problem(
        {"x": "translation", "y": "translation", "z": "translation", "phi": "rotation"},
        {
            "mass": {d: jfric.Mass(d, 1.0) for d in ("x", "y", "z", "phi")},
            "spring": {d: jfric.Spring(d, 1.0) for d in "xy"},
            "damper": {d: jfric.Damper(d, 0.05) for d in "xy"},
            "load": {**loads, "z": jfric.Load("z", -1.5)},
            "contact": {
                name: jfric.Contact(
                    {"z": 1.0, "phi": arm}, plane=["x", "y"], law=jfric.Coulomb(0.6), belt=belt
                )
                for name, (arm, belt) in belts.items()
            },
        },
        initial={"x": START(v=0.35)},
        time=20.0,
    )
    solution = jfric.simulate(problem, SOLVER, ts=jnp.asarray(ts))
    solution.check()
    count = len(reference.events)
    events = solution.events
    assert int(events.count) == count >= 9
    np.testing.assert_allclose(events.time[:count], [e[0] for e in reference.events], atol=1e-10)
    assert [int(c) for c in events.contact[:count]] == [2 * e[1] for e in reference.events]
    found = jnp.concatenate([solution.q[:, :2], solution.v[:, :2]], 1)
    np.testing.assert_allclose(found, states, atol=1e-10)
    assert float(jfric.contact_residual(problem, solution).max()) < 1e-10


def plate(feet, v, mu, h, e) -> jfric.Problem:
    """A plate on feet below its centre of mass by ``h``, with small rotations."""
    dofs = dict.fromkeys("xyz", "translation") | dict.fromkeys(["turn", "roll", "tilt"], "rotation")
    inertia = dict.fromkeys("xyz", 1.0) | {"turn": 0.5, "roll": 0.25, "tilt": 0.25}
    contacts = {
        f"foot{i}": jfric.Contact(
            {"z": 1.0, "roll": y, "tilt": -x},
            plane=[{"x": 1.0, "turn": -y, "tilt": -h}, {"y": 1.0, "turn": x, "roll": h}],
            law=jfric.Coulomb(mu),
            e=e,
        )
        for i, (x, y) in enumerate(feet)
    }
    return jfric.Problem(
        dofs,
        {
            "mass": {d: jfric.Mass(d, m) for d, m in inertia.items()},
            "contact": contacts,
            "load": jfric.Load("z", -G),
        },
        initial={d: START(q=0.2 * (d == "z"), v=x) for d, x in zip(dofs, v, strict=True)},
        time=2.0,
    )


@pytest.mark.slow  # compiles for a minute
def test_plates_that_fall_on_three_feet():
    rng = np.random.default_rng(5)
    inertia = np.array([1.0, 1.0, 1.0, 0.5, 0.25, 0.25])

    @jax.jit
    def run(problem):
        solution = jfric.simulate(problem, SOLVER, ts=jnp.linspace(0.0, 2.0, 41))
        worst = jfric.contact_residual(problem, solution).max()
        return solution, worst, jfric.motion_residual(problem, solution).max()

    impacts, gained = 0, 0
    for i in range(9):
        feet = np.array([(1.0, 0.0), (-0.5, 0.8), (-0.5, -0.8)]) + 0.1 * rng.normal(size=(3, 2))
        h, mu, e = rng.uniform(0.0, 0.8), rng.uniform(0.4, 1.0), rng.uniform(0.0, 0.8) * (i % 2)
        v = rng.normal(size=6) * [1.0, 1.0, 0.3, 1.0, 1.0, 1.0]
        solution, contact, motion = run(plate(feet.tolist(), v, mu, h, e))
        if int(solution.status) == jfric.Status.IMPACT_ENERGY:
            # Newton's restitution with friction may gain energy, and is not followed further.
            assert e > 0.0
            gained += 1
            continue
        solution.check()
        assert float(contact) < 1e-10
        assert float(motion) < 1e-12
        energy = 0.5 * np.asarray(solution.v) ** 2 @ inertia + G * np.asarray(solution.q)[:, 2]
        assert np.diff(energy).max() < 1e-11 * energy[0]
        assert np.abs(solution.v[-1]).max() < 1e-13
        impacts += int(solution.events.impact.sum())
    assert impacts > 50
    assert gained <= 1


@pytest.mark.slow  # shares the program of the coupled masses
def test_no_motion_with_much_friction():
    """Painleve: friction would press more than the normal force lifts."""
    M = np.linalg.inv(np.array([[1.0, 0.0, 0.9], [0.0, 1.0, 0.0], [0.9, 0.0, 1.0]]))
    for mu, v, status in [
        (1.5, 1.0, jfric.Status.INCONSISTENT),
        (1.5, -1.0, jfric.Status.OK),
        (1.0, 1.0, jfric.Status.OK),
    ]:
        start, load = {"x": START(v=v), "z": START()}, {"x": 0.0, "y": 0.0}
        solution = run_coupled(particle(jfric.Coulomb([mu, mu]), start, 3.0, load, M=M))
        assert int(solution.status) == status


@pytest.mark.slow  # compiles for a minute
def test_on_a_ball():
    """A bead thrown along the top of a ball stops or leaves, as it does in the plane of its way."""
    v = np.array([1.2, 0.9])

    def bead(axes, start, **contact):
        place = "sqrt(" + " + ".join(f"{d}^2" for d in axes) + ")"
        return jfric.Problem(
            list(axes),
            {
                "mass": {d: jfric.Mass(d, 1.0) for d in axes},
                "load": jfric.Load("z", -G),
                "contact": jfric.Contact(gap=f"{place} - 2", law=jfric.Coulomb(0.3), **contact),
            },
            initial={"z": START(q=2.0)} | {d: START(v=w) for d, w in start.items()},
            time=1.5,
        )

    # Along meridians these are the velocities, whatever the place.
    along = "v.{0} - {0}*v.z/(z + 2)"
    ball = bead("xyz", dict(zip("xy", v, strict=True)), plane=[along.format(d) for d in "xy"])
    flat = bead("xz", {"x": np.hypot(*v)}, sliding=along.format("x"))
    last = []
    for mu in (0.6, 0.05):
        found, same = (
            jfric.simulate(
                jfric.set_parameters(p, {"contact.mu": mu}), SOLVER, ts=jnp.array([0.2, 1.5])
            )
            for p in (ball, flat)
        )
        found.check()
        np.testing.assert_allclose(found.events.time[:1], same.events.time[:1], atol=1e-10)
        way = np.asarray(found.q[:, :2]) @ v / np.hypot(*v)
        np.testing.assert_allclose(np.stack([way, found.q[:, 2]], 1), same.q, atol=1e-9)
        last.append(int(found.events.to_mode[0]))
    assert last == [jfric.Mode.STICK, jfric.Mode.OPEN]


def test_files_and_names():
    config = load_config(shipped("f4_billiard_drop"))
    again = loads(dump(config)).problem
    assert jax.tree.all(jax.tree.map(lambda a, b: np.all(a == b), again, config.problem))
    text = shipped("f4_billiard_drop").read_text()
    written = dump(loads(text.replace('{ x = 1.0, phi_y = "-$R" }', '"x - $R*phi_y"')).problem)
    assert "x - $R*phi_y" in written
    assert dump(loads(written).problem) == written
    names = signal_names(THROWN)
    assert {"lambda_n.contact", "lambda_t.contact.1", "slip.contact.2"} <= set(names)
    assert "lambda_n.contact.1" not in names


def test_one_normal_force_is_printed_for_both_directions():
    stuck = SimpleNamespace(
        names=("contact.1", "contact.2"),
        axes=("x", "y", "z"),
        states=(),
        command_names=(),
        mode=np.full((1, 2), jfric.Mode.STICK),
        lambda_t=np.array([[3.0, 4.0]]),
        lambda_n=np.array([[9.81, 0.0]]),
        mode_label=lambda i, mode: jfric.Mode(int(mode)).label,
    )
    forces = [row[4] for row in contacts_shown(THROWN, stuck).rows]
    assert forces == ["9.81", ""]


@pytest.mark.parametrize(
    ("field", "sentence"),
    [
        ({"plane": ["x"]}, "contact.plane: found 1 directions, two are needed"),
        ({"plane": ["x", {"x": 2.0}]}, "contact.plane: found two directions that are the same"),
        ({"plane": ["x", "y + w"]}, "contact.plane[2]: "),
        ({"tangent": "x"}, "contact: found both tangent and plane, at most one is needed"),
        ({"belt": 0.5}, "contact.belt: found one velocity, friction in a plane needs two"),
        ({"plane": None, "tangent": "x", "belt": [0.5, 0.0]}, "contact.belt: found 2 velocities"),
        ({"law": None}, "contact: plane is given without mu; give both"),
        ({"law": jfric.Coulomb([0.4, 0.0])}, "contact.mu.second: found 0, must be positive"),
    ],
)
def test_sentences(field, sentence):
    contact = dataclasses.replace(THROWN.elements["contact"]["contact"], **field)
    with pytest.raises(jfric.ProblemError) as error:
        dataclasses.replace(THROWN, elements=THROWN.elements | {"contact": {"contact": contact}})
    assert sentence in str(error.value)


@pytest.mark.parametrize(
    "solver",
    [
        jfric.QuasiStatic(),
        jfric.Smoothed(),
        jfric.EventDriven(flow="exact"),
        jfric.EventDriven(kernel="lowered"),
    ],
    ids=["quasi-static", "smoothed", "exact flow", "lowered"],
)
def test_others_refuse_by_name(solver):
    with pytest.raises(jfric.ProblemError, match="in a plane"):
        jfric.simulate(THROWN, solver, ts=jnp.array([0.1]))


def test_statics_refuse_by_name():
    with pytest.raises(jfric.ProblemError, match=r"contact\.plane: found friction in a plane"):
        jfric.equilibria(THROWN)
