"""Harmonic balance: closed forms, exact motions by events, invariants, folds, refusals."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from references import continuous_slip

import jfric
from jfric import BalanceStatus, ProblemError
from jfric.periodic.harmonic_balance_equations import mean_between

COSINE = 0.5 * np.pi


def oscillator(omega=1.2, force=1.0, damping=0.0, **elements):
    return jfric.Problem(
        ["x"],
        {
            "mass": jfric.Mass("x", 1.0),
            "spring": jfric.Spring("x", 1.0),
            "damper": jfric.Damper("x", damping),
            "load": jfric.Load("x", jfric.Harmonic(force, omega, COSINE)),
            **elements,
        },
    )


def two_masses(**elements):
    return jfric.Problem(
        ["a", "b"],
        {
            "mass": {"a": jfric.Mass("a", 1.0), "b": jfric.Mass("b", 0.3)},
            "spring": {
                "a": jfric.Spring("a", 1.0),
                "ab": jfric.Spring(("a", "b"), 0.5),
                "b": jfric.Spring("b", 0.2),
            },
            "damper": {"a": jfric.Damper("a", 0.05), "b": jfric.Damper("b", 0.05)},
            "load": jfric.Load("a", jfric.Harmonic(1.0, 1.0, COSINE)),
            **elements,
        },
    )


def after_transient(problem, omega, periods=80):
    """One period of the exact motion after many, on 400 phases."""
    period = 2 * np.pi / omega
    ts = period * (periods + np.arange(400) / 400)
    solution = jfric.simulate(
        jfric.set_parameters(problem, {"load.F.omega": omega}),
        jfric.EventDriven(max_events=4000),
        ts=ts,
        end=float(ts[-1] + 0.01),
    ).check()
    return np.asarray(solution.q)


def distance(found, row, exact):
    phases = 2 * np.pi * np.arange(400) / 400
    motions = [found.positions(dof, phases)[row] for dof in found.axes]
    return max(np.abs(m - e).max() for m, e in zip(motions, exact.T, strict=True))


@pytest.mark.slow
def test_without_friction_it_is_the_linear_response():
    problem = jfric.Problem(
        ["a", "b"],
        {
            "mass": {"a": jfric.Mass("a", 1.0), "b": jfric.Mass("b", 0.3)},
            "spring": {
                "a": jfric.Spring("a", 1.0),
                "ab": jfric.Spring(("a", "b"), 0.5),
                "w": jfric.Spring(("wall", "b"), 0.9),
            },
            "damper": {"a": jfric.Damper("a", 0.05), "w": jfric.Damper(("wall", "b"), 0.1)},
            "load": jfric.Load("a", jfric.Harmonic(1.0, "$omega", COSINE)),
            "base": {"wall": jfric.Base(jfric.Harmonic(0.3, "2*$omega", 0.4))},
        },
        parameters={"omega": 1.0},
    )
    omegas = np.linspace(0.3, 3.0, 9)
    found = jfric.harmonic_balance(problem, "parameters.omega", at=omegas, harmonics=3)
    assert found.ok.all()
    M = np.diag([1.0, 0.3])
    K = np.array([[1.5, -0.5], [-0.5, 1.4]])
    C = np.diag([0.05, 0.1])
    for i, w in enumerate(omegas):
        first = np.linalg.solve(K + 1j * w * C - w**2 * M, [1.0, 0.0])
        z = 0.3 * np.exp(1j * (0.4 - COSINE))  # a sine as a cosine
        second = np.linalg.solve(
            K + 2j * w * C - 4 * w**2 * M, np.array([0.0, (0.9 + 2j * w * 0.1) * z])
        )
        np.testing.assert_allclose(found.coefficients[i, 1], first, rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(found.coefficients[i, 2], second, rtol=1e-12, atol=1e-13)
        assert np.abs(found.coefficients[i, [0, 3]]).max() < 1e-13
    assert found.remainder.max() < 1e-12
    np.testing.assert_allclose(found.omega, omegas, rtol=1e-15)


@pytest.mark.slow  # its sibling: that a friction damper is that of exact events
@pytest.mark.parametrize("omega", [1.2])
def test_continuous_slip_is_approached_with_more_harmonics(omega):
    problem = oscillator(friction=jfric.Friction("x", limit=0.3))
    exact = continuous_slip.amplitude(1.0, 1.0, 0.3, 1.0, omega)
    inside = continuous_slip.velocity(1.0, 1.0, 0.3, 1.0, omega, np.linspace(0.01, 3.13, 99))
    assert np.all(inside < 0.0), "the motion never stops"
    away, left = [], []
    for harmonics in (3, 9, 27):
        found = jfric.harmonic_balance(problem, "load.F.omega", at=[omega], harmonics=harmonics)
        assert found.ok.all()
        assert found.residual.max() < 1e-10
        away.append(abs(found.amplitude("x")[0] / exact - 1.0))
        left.append(found.remainder[0])
    # A force that jumps has harmonics that fall with 1/k: the error falls with 1/H.
    assert away[0] < 0.07
    assert away[1] < 0.5 * away[0]
    assert away[2] < 0.5 * away[1]
    assert left[2] < left[1] < left[0]


@pytest.mark.slow
def test_a_friction_damper_that_sticks_and_slips_is_that_of_exact_events():
    problem = two_masses(friction=jfric.Friction("b", limit=0.4))
    omegas = [0.7, 1.1]
    exact = [after_transient(problem, w) for w in omegas]
    away = []
    for harmonics in (5, 15):
        found = jfric.harmonic_balance(problem, "load.F.omega", at=omegas, harmonics=harmonics)
        assert found.ok.all()
        away.append(max(distance(found, i, e) for i, e in enumerate(exact)))
    assert away[0] < 0.15
    assert away[1] < 0.5 * away[0]
    assert 0.02 < found.stick[0, 0] < 0.9  # slow: it stops; fast: it does not
    assert found.stick[1, 0] < found.stick[0, 0]


@pytest.mark.slow  # its sibling: that a friction damper is that of exact events
def test_an_elastic_stop_is_that_of_exact_events():
    problem = two_masses(stop=jfric.Stop("b", k=2.0, gap=0.4))
    exact = after_transient(problem, 1.9, periods=300)
    away = []
    for harmonics in (5, 15):
        found = jfric.harmonic_balance(problem, "load.F.omega", at=[1.9], harmonics=harmonics)
        assert found.ok.all()
        away.append(distance(found, 0, exact))
    assert away[0] < 0.02
    assert away[1] < 0.2 * away[0]
    assert abs(found.coefficients[0, 0, 1]) > 1e-3  # a stop on one side moves the mean


def duffing(omega=1.0):
    return jfric.Problem(
        ["x"],
        {
            "mass": jfric.Mass("x", 1.0),
            "damper": jfric.Damper("x", 0.05),
            "polynomial_spring": jfric.PolynomialSpring("x", [1.0, 0.0, 0.1]),
            "load": jfric.Load("x", jfric.Harmonic(0.18, omega)),
        },
    )


@pytest.fixture(scope="module")
def curve():
    return jfric.harmonic_balance(duffing(), "load.F.omega", 0.6, 1.6, harmonics=15)


@pytest.mark.slow
def test_a_curve_goes_round_its_folds(curve):
    assert curve.ended == "stop"
    assert curve.ok.all()
    assert curve.parameter[0] == 0.6
    assert curve.parameter[-1] == 1.6
    turns = np.flatnonzero(np.diff(np.sign(np.diff(curve.parameter))))
    assert len(turns) == len(curve.folds) == 2
    upper, lower = curve.folds
    assert upper > lower
    # The largest value of the parameter on the curve before it turns, and the smallest after.
    assert upper >= curve.parameter[: turns[1]].max()
    assert lower <= curve.parameter[turns[0] :].min() + 1e-9
    assert curve.fold_amplitudes[0, 0] > 2.5 * curve.fold_amplitudes[1, 0]


@pytest.mark.slow
def test_folds_are_as_exact_in_other_units(curve):
    """With a unit of time a million times longer, frequencies are large numbers."""
    per = 1e6
    numbers = {"damper.c": 0.05 * per, "load.F.amplitude": 0.18 * per**2}
    stiffness = jnp.asarray([1.0, 0.0, 0.1]) * per**2
    problem = jfric.set_parameters(duffing(), numbers | {"polynomial_spring.k": stiffness})
    found = jfric.harmonic_balance(
        problem, "load.F.omega", 0.6 * per, 1.6 * per, harmonics=curve.harmonics
    )
    np.testing.assert_allclose(found.folds, per * curve.folds, rtol=1e-12)
    np.testing.assert_allclose(found.fold_amplitudes, curve.fold_amplitudes, rtol=1e-8)


def test_motions_on_a_curve_return_after_a_period(curve):
    rows = np.linspace(1, len(curve.parameter) - 2, 7).astype(int)
    states = curve.states()[rows]
    q0, v0 = states.T

    def returned(omega, q, v):
        problem = jfric.set_parameters(
            duffing(), {"load.F.omega": omega, "initial.x.q": q, "initial.x.v": v}
        )
        end = 2 * jnp.pi / omega
        final = jfric.simulate(problem, jfric.EventDriven(adjoint="none"), end=end).final
        return jnp.stack([final.q[0], final.v[0]])

    back = jax.vmap(returned)(curve.omega[rows], jnp.asarray(q0), jnp.asarray(v0))
    np.testing.assert_allclose(back, states, atol=2e-8)
    # A quarter of a period later, and the same motion there.
    later = curve.states(0.5 * np.pi / curve.omega[rows[0]])[rows[0], 0]
    assert later == pytest.approx(curve.positions("x", [0.5 * np.pi])[rows[0], 0], abs=1e-12)


@pytest.mark.slow
def test_exact_orbits_start_from_harmonic_balance(curve):
    """Stable and unstable ones between the folds, without a transient."""
    upper, lower = curve.folds
    inside = (curve.parameter > lower + 0.01) & (curve.parameter < upper - 0.01)
    rows = np.flatnonzero(inside)[::4]
    omega = {"load.F.omega": curve.parameter[rows]}
    orbits = jfric.periodic_orbit(duffing(), values=omega, start=curve.states()[rows])
    assert orbits.converged.all()
    np.testing.assert_allclose(orbits.state, curve.states()[rows], atol=1e-6)
    assert 0 < int(orbits.stable.sum()) < len(rows)


def test_amplitude_phase_and_rms_are_those_of_the_motion(curve):
    phases = np.linspace(0.0, 2 * np.pi, 20001)
    x = curve.positions("x", phases)
    np.testing.assert_allclose(curve.amplitude("x"), 0.5 * np.ptp(x, axis=1), rtol=1e-7)
    np.testing.assert_allclose(curve.rms("x"), np.sqrt(np.mean(x[:, :-1] ** 2, axis=1)), rtol=1e-12)
    first = curve.amplitude("x", 1)[:, None] * np.cos(phases + curve.phase("x")[:, None])
    wave = np.mean(x[:, :-1] * np.exp(-1j * phases[:-1]), axis=1)
    np.testing.assert_allclose(first[:, 0], 2 * np.real(wave), atol=1e-12)


@pytest.mark.slow
def test_loads_work_for_what_friction_and_dampers_take():
    problem = two_masses(friction=jfric.Friction("b", limit=0.3, belt=None))
    found = jfric.harmonic_balance(problem, "load.F.omega", at=np.linspace(0.5, 1.6, 6))
    assert found.ok.all()
    k = np.arange(found.harmonics + 1)
    v = 1j * k * found.omega[:, None, None] * found.coefficients.transpose(0, 2, 1)
    a, b = v[:, 0], v[:, 1]

    def power(force, speed):
        """Mean over a period; the mean parts count in full."""
        weight = np.where(k > 0, 0.5, 1.0)
        return np.real(np.sum(weight * force * np.conj(speed), axis=-1))

    load = np.zeros_like(a)
    load[:, 1] = 1.0
    taken = power(0.05 * a, a) + power(0.05 * b, b) - power(found.friction[:, :, 0], b)
    np.testing.assert_allclose(power(load, a), taken, rtol=1e-9)
    assert np.all(-power(found.friction[:, :, 0], b) > 0.0)


@pytest.mark.slow
def test_a_contact_that_sticks_all_the_time_is_held():
    problem = oscillator(omega=0.6, friction=jfric.Friction("x", limit=1.5))
    found = jfric.harmonic_balance(problem, harmonics=5)
    assert found.ok.all()
    assert found.stick[0, 0] == 1.0
    assert np.ptp(found.positions("x", np.linspace(0, 6, 50))) < 1e-9


def test_a_belt_that_is_never_reached_pulls_to_one_side():
    problem = oscillator(force=0.2, damping=0.1, friction=jfric.Friction("x", limit=0.3, belt=9.0))
    found = jfric.harmonic_balance(problem, harmonics=3)
    assert found.ok.all()
    np.testing.assert_allclose(found.coefficients[0, 0, 0], 0.3, rtol=1e-12)
    np.testing.assert_allclose(found.friction[0, 0, 0], 0.3, rtol=1e-12)


@pytest.mark.slow
def test_motions_of_several_periods_hold_those_of_one(curve):
    found = jfric.harmonic_balance(duffing(0.8), harmonics=10, periods=2)
    same = jfric.harmonic_balance(duffing(0.8), harmonics=5)
    assert found.omega[0] == 0.4
    np.testing.assert_allclose(found.coefficients[0, ::2], same.coefficients[0], atol=1e-10)
    assert np.abs(found.coefficients[0, 1::2]).max() < 1e-12


@pytest.mark.slow
def test_a_rigid_contact_may_press_but_not_open():
    def pressed(weight):
        # Without jumps of friction where the normal force vanishes.
        return jfric.Problem(
            ["x", "z"],
            {
                "mass": {"x": jfric.Mass("x", 1.0), "z": jfric.Mass("z", 1.0)},
                "spring": {"x": jfric.Spring("x", 1.0), "z": jfric.Spring("z", 1.0)},
                "load": {
                    "x": jfric.Load("x", jfric.Harmonic(1.0, 1.3)),
                    "z": jfric.Load("z", jfric.Sum([-weight, jfric.Harmonic(0.5, 1.3, 0.3)])),
                },
                "contact": jfric.Contact("z", "x", law=jfric.Coulomb(0.3)),
            },
        )

    held = jfric.harmonic_balance(pressed(1.0), harmonics=15)
    assert held.ok.all()
    assert np.abs(held.coefficients[0, :, 1]).max() < 1e-9
    np.testing.assert_allclose(held.normal[0, 0, 0], 1.0, rtol=1e-9)
    np.testing.assert_allclose(np.abs(held.normal[0, 1, 0]), 0.5, rtol=1e-9)
    opened = jfric.harmonic_balance(pressed(0.3), harmonics=15)
    assert opened.status[0] in (BalanceStatus.OPENS, BalanceStatus.UNSOLVED)


@pytest.mark.slow
def test_a_normal_force_that_pulls_is_a_status():
    pulls = jfric.Sum([1.0, jfric.Harmonic(1.5, 1.2)])
    problem = oscillator(damping=0.1, friction=jfric.Friction("x", jfric.Coulomb(0.1), N=pulls))
    found = jfric.harmonic_balance(problem, harmonics=5)
    assert found.status[0] == BalanceStatus.NEGATIVE_FORCE


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.floats(-3, 3), min_size=3, max_size=6),
    st.floats(0.01, 1.0),
    st.floats(0.01, 1.0),
)
def test_means_between_samples_are_integrals(values, below, above):
    x = np.asarray(values)
    found = np.asarray(mean_between(jnp.asarray(x)[:, None], -below, above))[:, 0]
    s = (np.arange(20000) + 0.5) / 20000
    line = x[:, None] + s * (np.roll(x, -1) - x)[:, None]
    np.testing.assert_allclose(found, np.clip(line, -below, above).mean(axis=1), atol=1e-4)


@pytest.mark.parametrize(
    ("make", "options", "said"),
    [
        (
            lambda: oscillator(load=jfric.Load("x", jfric.Steps([1.0], [0.0, 1.0]))),
            {},
            "load.F: found a Steps with breakpoints",
        ),
        (
            lambda: oscillator(load=jfric.Load("x", 1.0)),
            {},
            "load: found no function of time with a frequency",
        ),
        (
            lambda: oscillator(
                load={
                    "a": jfric.Load("x", jfric.Harmonic(1.0, 1.0)),
                    "b": jfric.Load("x", jfric.Harmonic(1.0, np.sqrt(2.0))),
                }
            ),
            {},
            "load: found the frequencies 1, 1.41421 rad/s",
        ),
        (
            lambda: oscillator(
                load={
                    "a": jfric.Load("x", jfric.Harmonic(1.0, 1.0)),
                    "b": jfric.Load("x", jfric.Harmonic(1.0, 7.0)),
                }
            ),
            {"harmonics": 5},
            "harmonics: found 5, a load has the harmonic 7",
        ),
        (
            # 1/3 Hz and 20 Hz, rounded as a table gives them.
            lambda: oscillator(
                load={
                    "a": jfric.Load("x", jfric.Harmonic(1.0, 2.0943951024)),
                    "b": jfric.Load("x", jfric.Harmonic(1.0, 125.66370614)),
                }
            ),
            {"harmonics": 5},
            "harmonics: found 5, a load has the harmonic 60",
        ),
        (
            lambda: oscillator(friction=jfric.Friction("x", jfric.StaticDynamic(0.3, 0.2), N=1.0)),
            {},
            "friction: with StaticDynamic friction drops",
        ),
        (
            lambda: oscillator(event=jfric.Event("x - 0.1")),
            {},
            "event: found an event of your own, which harmonic balance cannot",
        ),
        (
            lambda: oscillator(
                force_field=jfric.ForceField(lambda t, q, v, p: -0.1 * t * q, {"a": 1.0})
            ),
            {},
            "ForceField: depends on time",
        ),
        (oscillator, {"path": "load.F.omga", "at": [1.0]}, "did you mean 'load.F.omega'"),
        (oscillator, {"path": "load.F.omega"}, "load.F.omega: found no values"),
        (oscillator, {"at": [1.0]}, "path: found none"),
        (oscillator, {"harmonics": 0}, "harmonics: found 0"),
        (oscillator, {"harmonics": 5, "samples": 10}, "samples: found 10"),
        (oscillator, {"step": 2.0}, "step: found 2.0"),
    ],
)
def test_what_it_cannot_represent_is_said_in_one_sentence(make, options, said):
    with pytest.raises(ProblemError) as error:
        jfric.harmonic_balance(make(), **options)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_unknown_names_of_a_result(curve):
    with pytest.raises(ProblemError, match="dof: found 'y'"):
        curve.amplitude("y")
    with pytest.raises(ProblemError, match="harmonic: found 99"):
        curve.phase("x", 99)
