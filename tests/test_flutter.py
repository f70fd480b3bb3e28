"""Steady sliding: eigenvalues, the boundary of flutter, and the motion beyond it."""

import json

import jax
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import brentq
from typer.testing import CliRunner

import jfric
from jfric.cli.main import app
from jfric.system.naming import set_parameters
from jfric.verification.configs import shipped

K11, K12, K22, K3 = 3.0, 1.5, 7.0 / 3.0, 4.0 / 3.0
CRITICAL = (K12 + (K11 - K22) ** 2 / (4.0 * K12)) / K3


@pytest.fixture(scope="module", autouse=True)
def _quickly():
    jfric.compile_quickly()


def brake(**numbers):
    return set_parameters(jfric.load(shipped("s1_flutter")), numbers)


def stiffness(mu):
    return np.array([[K11, K12 - mu * K3], [K12, K22]])


def eigenvalues(M, C, K):
    """Eigenvalues of ``M x'' + C x' + K x = 0``."""
    n = len(M)
    A = np.block([[np.zeros((n, n)), np.eye(n)], [-np.linalg.solve(M, np.hstack([K, C]))]])
    return np.linalg.eigvals(A)


def largest(mu, c):
    return np.max(eigenvalues(np.eye(2), np.diag(c), stiffness(mu)).real)


@pytest.fixture(scope="module")
def path():
    return jfric.flutter(brake(), "friction.mu", 0.0, 2.0, points=41)


def test_eigenvalues_are_those_of_the_matrices(path):
    expected = [eigenvalues(np.eye(2), np.zeros((2, 2)), stiffness(mu)) for mu in path.parameter]
    frequencies = np.sort([np.sort(np.abs(x.imag))[::2] for x in expected], axis=1)
    assert np.sort(path.eigenvalues.imag, axis=1) == pytest.approx(frequencies, abs=1e-7)
    assert path.growth == pytest.approx([np.max(x.real) for x in expected], abs=1e-7)
    resting = np.linalg.solve(stiffness(path.parameter[7]), [0.0, 1.0])
    assert path.state[7] == pytest.approx([*resting, 0.0, 0.0], abs=1e-14)


def test_the_boundary_is_exact_and_has_exact_derivatives(path):
    (onset,) = path.onsets
    assert (onset.kind, onset.meets, onset.loses) == ("flutter", True, True)
    assert onset.parameter == pytest.approx(CRITICAL, abs=1e-14)
    assert onset.frequency == pytest.approx(np.sqrt((K11 + K22) / 2.0), abs=1e-12)
    # k22 = 0.25 k1 + k2 + k3: of mu_c = (k12 + (k11 - k22)^2/(4 k12))/k3
    by_k22 = -(K11 - K22) / (2.0 * K12) / K3
    assert onset.derivatives["spring.support.k"] == pytest.approx(by_k22, abs=1e-12)
    assert onset.derivatives["stop.k"] == pytest.approx(by_k22 - CRITICAL / K3, abs=1e-12)
    assert onset.derivatives["load.F"] == pytest.approx(0.0, abs=1e-14)


def test_growth_has_derivatives(path):
    problem = path.problem

    def growth(mu):
        return jfric.steady_sliding(set_parameters(problem, {"friction.mu": mu})).growth

    slope = jax.grad(growth)(1.5)
    assert growth(1.5) == pytest.approx(largest(1.5, [0.0, 0.0]), abs=1e-14)
    h = 1e-5
    difference = (largest(1.5 + h, [0, 0]) - largest(1.5 - h, [0, 0])) / (2.0 * h)
    assert slope == pytest.approx(difference, rel=1e-9)


def test_the_boundary_is_followed_over_a_second_parameter(path):
    found = jfric.continue_flutter(path, path.onsets[0], "spring.support.k", 1.25, points=5)
    k22 = K22 + found.second - 0.25
    assert found.outcome == "stop"
    assert found.second[-1] == 1.25
    # It passes the lowest critical friction on the way, at k22 = k11.
    assert found.slope[0] < 0.0 < found.slope[-1]
    exact = (K12 + (K11 - k22) ** 2 / (4.0 * K12)) / K3
    assert found.parameter == pytest.approx(exact, abs=1e-13)
    assert found.slope == pytest.approx(-(K11 - k22) / (2.0 * K12 * K3), abs=1e-12)


@pytest.mark.slow
def test_damping_makes_the_boundary_a_simple_crossing():
    problem = jfric.load(shipped("s1_flutter"))
    separate = {"damper": {"x": jfric.Damper("x", 0.02), "y": jfric.Damper("y", 0.1)}}
    problem = jfric.Problem(
        ["x", "y"], {**problem.elements, **separate}, initial=problem.initial, time=1.0
    )
    problem = set_parameters(problem, {"damper.x.c": 0.02})
    found = jfric.flutter(problem, "friction.mu", 0.0, 2.0, points=41)
    (onset,) = found.onsets
    assert not onset.meets

    def critical(c):
        return brentq(lambda mu: largest(mu, [c, 0.1]), 0.5, 1.5, xtol=1e-15)

    assert onset.parameter == pytest.approx(critical(0.02), abs=1e-12)
    difference = (critical(0.0201) - critical(0.0199)) / 2e-4
    assert onset.derivatives["damper.x.c"] == pytest.approx(difference, rel=1e-5)
    boundary = jfric.continue_flutter(found, onset, "damper.x.c", 0.2, points=4)
    exact = [critical(c) for c in boundary.second]
    assert boundary.parameter == pytest.approx(exact, abs=1e-11)


def test_where_damping_begins_the_boundary_changes_its_kind(path):
    found = jfric.continue_flutter(path, path.onsets[0], "parameters.c", 0.5, points=4)
    assert found.outcome == "eigenvalues no longer meet: damping begins"
    assert len(found.second) == 1


def _segment(mode, x, mu=1.5, c=0.1, belt=0.1):
    """Next event after the state ``x`` of the brake in ``(sliding, touches)``, by an independent
    integration: time and state."""
    sliding, touches = mode

    def field(t, x):
        pressed = K3 * x[1] if touches else 0.0
        drag = -mu * pressed * sliding
        ax = -K11 * x[0] - K12 * x[1] - c * x[2] + drag
        if sliding == 0:
            ax = 0.0
        return [x[2], x[3], ax, 1.0 - K12 * x[0] - x[1] - pressed - c * x[3]]

    def lifts(t, x):
        return x[1]

    def sticks(t, x):
        return x[2] - belt

    def breaks(t, x):
        need = K11 * x[0] + K12 * x[1] + c * belt
        return mu * K3 * x[1] - abs(need)

    events = [lifts, breaks if sliding == 0 else sticks]
    for event in events:
        event.terminal = True
    start = 1e-6  # past the event at which the segment begins
    first = solve_ivp(field, (0.0, start), x, rtol=1e-13, atol=1e-15, method="DOP853").y[:, -1]
    found = solve_ivp(
        field, (start, 20.0), first, rtol=1e-13, atol=1e-15, method="DOP853", events=events
    )
    return found.t[-1], found.y[:, -1], int(len(found.t_events[1]) > 0)


@pytest.mark.slow
def test_the_limit_cycle_sticks_and_lifts_off():
    beyond = brake(**{"friction.mu": 1.5, "parameters.c": 0.1})
    orbit = jfric.periodic_orbit(beyond, transient=300.0)
    assert bool(orbit.converged)
    assert bool(orbit.stable)
    table = orbit.event_table()
    assert [(row["from"], row["to"]) for row in table] == [
        ("touch", "free"), ("slip-", "slip+"), ("free", "touch"), ("slip+", "slip-"),
        ("slip-", "stick"), ("stick", "slip-"),
    ]  # fmt: skip
    # Sticking erases a direction; the motion along itself has the multiplier one.
    sizes = np.abs(orbit.multipliers)
    assert sizes[0] == pytest.approx(1.0, abs=1e-9)
    assert sizes[-1] == 0.0
    modes = [(-1, 1), (-1, 0), (1, 0), (1, 1), (-1, 1), (0, 1), (-1, 1)]
    x, t = np.asarray(orbit.state), 0.0
    for mode, row in zip(modes[:-1], table, strict=True):
        took, x, _ = _segment(mode, x)
        t += took
        assert t == pytest.approx(row["time"], abs=1e-8)


#: Brake with four modes in sliding: pad (x, y) held by a caliper (u, w) on a disc (z).
FIVE = ("x", "y", "z", "u", "w")


def five(mu=0.4, force=2.0, c=0.0):
    springs = {
        "pad": jfric.Spring({"x": 1.0, "y": -0.3, "u": -1.0, "w": 0.3}, k=40.0),
        "back": jfric.Spring({"y": 1.0, "w": -1.0}, k=30.0),
        "disc": jfric.Spring("z", k=60.0),
        "caliper": jfric.Spring("u", k=70.0),
        "hinge": jfric.Spring({"w": 1.0, "u": -0.3}, k=50.0),
    }
    masses = {"x": 1.0, "y": 1.0, "z": 2.0, "u": 1.5, "w": 1.2}
    elements = {
        "mass": {k: jfric.Mass(k, m) for k, m in masses.items()},
        "spring": springs,
        "damper": {k: jfric.Damper(k, c) for k in FIVE},
        "load": jfric.Load({"y": -1.0}, force),
        "contact": jfric.Contact({"y": 1.0, "z": -1.0}, {"x": 1.0}, mu, belt=1.0),
    }
    return jfric.Problem(list(FIVE), elements, time=60.0)


def reference(mu, c=0.0):
    """Eigenvalues of the brake in sliding, by hand: positions on the closed contact, equations
    across its reaction and friction."""
    M = np.diag([1.0, 1.0, 2.0, 1.5, 1.2])
    rows = np.array(
        [
            [1, -0.3, 0, -1, 0.3],
            [0, 1, 0, 0, -1],
            [0, 0, 1, 0, 0],
            [0, 0, 0, 1, 0],
            [0, 0, 0, -0.3, 1],
        ]
    )
    K = rows.T @ np.diag([40.0, 30.0, 60.0, 70.0, 50.0]) @ rows
    # The reaction pushes y up and z down; friction drags x along the belt.
    pushes = np.array([mu, 1.0, -1.0, 0.0, 0.0])
    along = np.eye(5)[:, [0, 1, 3, 4]] + np.outer(np.eye(5)[2], [0, 1, 0, 0])
    across = np.linalg.svd(pushes[None])[2][1:]
    return eigenvalues(across @ M @ along, c * across @ along, across @ K @ along)


def test_four_modes_with_a_unilateral_contact():
    for mu, c in ((0.0, 0.0), (0.4, 0.0), (0.9, 0.3)):
        found = jfric.steady_sliding(five(mu, c=c))
        assert bool(found.exists)
        values = np.asarray(found.eigenvalues)
        values = values[np.isfinite(values)]
        assert len(values) == 8
        expected = reference(mu, c)
        expected = expected[np.argsort(expected.imag)]
        assert values[np.argsort(values.imag)] == pytest.approx(expected, abs=1e-9)
        assert float(found.lambda_t[0]) == pytest.approx(mu * float(found.lambda_n[0]), abs=1e-13)


@pytest.mark.slow
def test_four_modes_flutter_and_lift_off():
    path = jfric.flutter(five(c=0.02), "contact.mu", 0.0, 1.5, points=31)
    onset = path.onsets[0]
    assert onset.kind == "flutter"
    exact = brentq(
        lambda mu: np.max(reference(mu, 0.02).real),
        onset.parameter - 1e-3,
        onset.parameter + 1e-3,
        xtol=1e-15,
    )
    assert onset.parameter == pytest.approx(exact, abs=1e-11)
    beyond = set_parameters(path.problem, {"contact.mu": onset.parameter + 0.2})
    steady = jfric.steady_sliding(beyond)
    assert float(steady.growth) > 0.0
    start = {f"initial.{k}.q": q for k, q in zip(FIVE, steady.q, strict=True)}
    moved = set_parameters(beyond, start | {"initial.x.v": 0.01, "time.end": 60.0})
    solution = jfric.simulate(moved, jfric.EventDriven(max_events=1000))
    assert int(solution.status) == 0
    modes = np.asarray(solution.events.to_mode[: int(solution.events.count)])
    assert (modes == int(jfric.Mode.OPEN)).any()
    # It began to grow at the computed rate.
    early = np.asarray(solution.events.time)[0]
    assert early > 2.0 / float(steady.growth)


@pytest.mark.slow
def test_a_contact_that_opens_jumps():
    """Pulled up, the steady state is one without contact, and its eigenvalues are others."""
    problem = jfric.Problem(
        ["x", "y"],
        {
            "mass": {"x": jfric.Mass("x", 1.0), "y": jfric.Mass("y", 1.0)},
            "spring": {
                "tilted": jfric.Spring({"x": 1.0, "y": -0.5}, k=3.0),
                "y": jfric.Spring("y", k=1.0),
            },
            "load": jfric.Load("y", -1.0),
            "contact": jfric.Contact("y", "x", 0.5, belt=1.0),
        },
        time=1.0,
    )
    path = jfric.flutter(problem, "load.F", -1.0, 1.0, points=5)
    states = [jfric.steady_sliding(set_parameters(problem, {"load.F": f})) for f in (-1.0, 1.0)]
    assert [len(s.modes()) for s in states] == [1, 2]
    assert [jfric.Mode(int(s.mode[0])) for s in states] == [jfric.Mode.SLIP_NEG, jfric.Mode.OPEN]
    assert path.onsets == ()
    assert states[0].eigenvalues.imag[1] == pytest.approx(-np.sqrt(3.75), abs=1e-12)


@pytest.mark.slow
def test_friction_that_falls_with_speed_flutters_over_the_speed():
    law = jfric.laws.Stribeck(mu_s=0.6, mu_d=0.3, v_s=0.5)
    problem = jfric.Problem(
        ["x"],
        {
            "mass": jfric.Mass("x", 2.0),
            "spring": jfric.Spring("x", 50.0),
            "damper": jfric.Damper("x", 0.5),
            "friction": jfric.Friction("x", law, N=10.0, belt=1.0),
        },
        time=1.0,
    )
    path = jfric.flutter(problem, "friction.belt", 0.3, 2.0, points=11)
    onset = path.onsets[-1]
    assert not onset.loses

    def damping(v):
        return 0.5 + 10.0 * float(jax.grad(lambda v: law.kinetic(v)[0])(v))

    exact = brentq(damping, onset.parameter - 0.05, onset.parameter + 0.05, xtol=1e-15)
    assert onset.parameter == pytest.approx(exact, abs=1e-11)
    assert onset.frequency == pytest.approx(5.0, abs=1e-9)


@pytest.mark.slow
def test_divergence_grows_without_oscillation():
    problem = jfric.Problem(
        ["u"],
        {
            "lagrangian": jfric.Lagrangian(kinetic="0.5*v.u^2", potential="-0.5*u^2"),
            "spring": jfric.Spring("u", 1.5),
        },
        time=1.0,
    )
    (onset,) = jfric.flutter(problem, "spring.k", 1.7, 0.5, points=5).onsets
    assert (onset.kind, onset.frequency) == ("divergence", 0.0)
    assert onset.parameter == pytest.approx(1.0, abs=1e-12)


@pytest.mark.slow
def test_states_of_friction_take_part():
    """Rate and state friction at its critical stiffness, as in ``m6_stability``."""
    problem = jfric.load(shipped("m6_stability"))
    path = jfric.flutter(problem, "spring.k", 2e7, 1.2e8, points=11)
    (onset,) = path.onsets
    assert onset.parameter == pytest.approx(6.5e7, rel=1e-9)
    assert onset.frequency == pytest.approx(1e-3 * np.sqrt(0.5), rel=1e-9)


def test_an_axis_may_turn_steadily():
    problem = jfric.Problem(
        {"w": "rotation", "x": "translation"},
        {
            "mass": {"w": jfric.Mass("w", 2.0), "x": jfric.Mass("x", 1.0)},
            "damper": jfric.Damper("w", 0.5),
            "spring": jfric.Spring("x", 4.0),
            "load": jfric.Load("w", 3.0),
            "friction": jfric.Friction({"x": 1.0, "w": -0.1}, 0.5, N=2.0),
        },
        initial={"w": jfric.InitialState(v=1.0)},
        time=1.0,
    )
    found = jfric.steady_sliding(problem, moving=["w"])
    assert found.v == pytest.approx([(3.0 - 0.1) / 0.5, 0.0])
    assert found.q[1] == pytest.approx(1.0 / 4.0)
    values = np.asarray(found.eigenvalues)
    values = np.sort_complex(values[np.isfinite(values)])
    assert values == pytest.approx([-0.25, -2j, 2j], abs=1e-12)


def test_what_cannot_slide_steadily_is_refused():
    loads = {"load": jfric.Load("y", jfric.Harmonic(1.0, 2.0))}
    problem = jfric.load(shipped("s1_flutter"))
    parts = {**problem.elements, **loads}
    shaken = jfric.Problem(["x", "y"], parts, parameters=problem.parameters, time=1.0)
    with pytest.raises(jfric.ProblemError, match=r"load\.F: found a harmonic function of time"):
        jfric.steady_sliding(shaken)
    with pytest.raises(jfric.ProblemError, match="moving: found 'z', axes are x, y"):
        jfric.steady_sliding(problem, moving=["z"])
    with pytest.raises(jfric.ProblemError, match="points: found 2"):
        jfric.flutter(problem, "friction.mu", 0.0, 1.0, points=2)
    with pytest.raises(jfric.ProblemError, match="no parameter"):
        jfric.flutter(problem, "friction.nu", 0.0, 1.0)


def test_a_contact_that_cannot_stick_where_it_stands_is_no_steady_state():
    problem = jfric.Problem(
        ["x"],
        {
            "mass": jfric.Mass("x", 1.0),
            "spring": jfric.Spring("x", 1.0),
            "friction": jfric.Friction("x", 0.5, N=1.0),
        },
        initial={"x": jfric.InitialState(q=0.4)},
        time=1.0,
    )
    held = jfric.steady_sliding(problem)
    assert bool(held.exists)
    assert np.isnan(held.eigenvalues.real).all()
    assert held.q[0] == 0.4
    pulled = set_parameters(problem, {"initial.x.q": 0.6})
    assert not jfric.steady_sliding(pulled).exists


@pytest.mark.slow
def test_the_command_writes_rows_boundary_and_picture(tmp_path):
    arguments = ["--points", "21", "--second", "spring.support.k=0.25:1", "--plot"]
    file = str(shipped("s1_flutter"))
    found = CliRunner().invoke(app, ["flutter", file, *arguments, "--out", str(tmp_path)])
    assert found.exit_code == 0, found.output
    assert "1.18055555556  flutter" in found.output
    (onset,) = json.loads((tmp_path / "flutter-001.json").read_text())["onsets"]
    assert onset["derivatives"]["stop.k"] == pytest.approx(-CRITICAL / K3 - 1.0 / 6.0, abs=1e-9)
    rows = np.genfromtxt(tmp_path / "flutter-001-boundary.csv", delimiter=",", skip_header=1)
    assert rows[-1, 1] == 1.0
    assert (tmp_path / "flutter-001.png").stat().st_size > 10_000
    refused = CliRunner().invoke(app, ["flutter", str(shipped("c4_belt"))])
    assert refused.exit_code == 2
    assert "--vary: not given, and the file has no table [statics]" in refused.output
