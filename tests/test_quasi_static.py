"""Load histories without inertia: closed forms, path dependence, derivatives, refusals."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from systems import unloaded_spring

import jfric
from jfric.files.read_toml import load_config
from jfric.files.solver_choice import choose_solver
from jfric.verification.configs import shipped

EXACT = 1e-12


@functools.cache
def ve0061() -> jfric.Problem:
    return load_config(shipped("ve0061")).problem


def loaded(k, mu, solver=None, **span):
    """Position at the end of loading and of unloading, and the events."""
    changed = jfric.set_parameters(ve0061(), {"spring.k": k, "friction.mu": mu})
    ts = None if span else jnp.array([1.0, 2.0])
    return jfric.simulate(changed, solver or jfric.QuasiStatic(), ts=ts, **span)


def sliders(limits, stiffness, own, force, times) -> jfric.Problem:
    """Springs in series with sliders (nodes without mass), all side by side with one spring."""
    nodes = [f"s{i}" for i in range(len(limits))]
    return jfric.Problem(
        ("u", *nodes),
        {
            "spring": {
                **{
                    f"to_{s}": jfric.Spring((s, "u"), k)
                    for s, k in zip(nodes, stiffness, strict=True)
                },
                "own": jfric.Spring("u", own),
            },
            "friction": {s: jfric.Friction(s, limit=x) for s, x in zip(nodes, limits, strict=True)},
            "load": jfric.Load("u", jfric.PiecewiseLinear(times, force)),
        },
        time=times[-1],
    )


@pytest.mark.slow
def test_derivatives_of_a_load_cycle():
    """u1 = (900 N - mu Fz)/k and u2 = mu Fz/k."""
    ve0061()

    def ends(k, mu):
        return loaded(k, mu).q[:, 0]

    dk, dmu = jax.jit(jax.jacfwd(ends, argnums=(0, 1)))(6000.0, 0.3)
    np.testing.assert_allclose(dk, [-0.1 / 6000, -0.05 / 6000], rtol=EXACT)
    np.testing.assert_allclose(dmu, [-1 / 6, 1 / 6], rtol=EXACT)
    reverse = jfric.QuasiStatic(adjoint="reverse", max_steps=32)
    back = jax.grad(lambda k, mu: loaded(k, mu, reverse, end=2.0).final.q[0], argnums=(0, 1))
    np.testing.assert_allclose(back(6000.0, 0.3), (-0.05 / 6000, 1 / 6), rtol=EXACT)


def test_a_batch_holds_what_single_runs_give():
    k, mu = jnp.array([6000.0, 600.0, 5000.0]), jnp.array([0.3, 0.3, 0.2])
    solution = jax.vmap(loaded)(k, mu)
    np.testing.assert_allclose(
        solution.q[..., 0], [[0.1, 0.05], [1.0, 0.5], [0.14, 0.04]], rtol=EXACT
    )
    assert (solution.status == jfric.Status.OK).all()
    assert solution.differentiable.all()


@pytest.mark.slow
def test_many_sliders_follow_their_hysteresis():
    """Twelve Jenkins elements in parallel against their own recursion, driven by the position."""
    n = 12
    limits, stiffness = np.linspace(0.5, 4.0, n), np.linspace(1.0, 3.0, n)
    times, force = [0.0, 1.0, 3.0, 4.0, 5.0], [0.0, 60.0, -60.0, 10.0, -20.0]
    problem = sliders(limits, stiffness, 5.0, force, times)
    ts = np.linspace(0.0, 5.0, 251)
    solution = jfric.simulate(problem, jfric.QuasiStatic(), ts=ts)
    assert solution.outcome() == "ok"
    anchor = np.zeros(n)
    for t, u in zip(ts, np.asarray(solution.q)[:, 0], strict=True):
        spring = np.clip(stiffness * (u - anchor), -limits, limits)
        anchor = u - spring / stiffness
        assert spring.sum() + 5.0 * u == pytest.approx(np.interp(t, times, force), abs=1e-11)
    assert jfric.contact_residual(problem, solution).max() < EXACT
    assert jfric.motion_residual(problem, solution).max() < EXACT
    # All slip one after the other, four times; the order of the elements does not matter.
    order = np.random.default_rng(3).permutation(n)
    turned = sliders(limits[order], stiffness[order], 5.0, force, times)
    again = jfric.simulate(turned, jfric.QuasiStatic(), ts=ts)
    np.testing.assert_allclose(again.q[:, 0], solution.q[:, 0], atol=1e-11)
    assert int(again.events.count) == int(solution.events.count) > 3 * n


@pytest.mark.slow  # its sibling: curved loads
def test_smaller_load_steps_change_nothing():
    problem = ve0061()
    finer = jfric.PiecewiseLinear(np.linspace(0, 2, 9), 900.0 * (1 - np.abs(np.linspace(-1, 1, 9))))
    elements = {**problem.elements, "load": jfric.Load("u", finer)}
    other = jfric.Problem(problem.dofs, elements, time=2.0)
    ts = np.linspace(0.0, 2.0, 41)
    coarse, fine = (jfric.simulate(p, jfric.QuasiStatic(), ts=ts) for p in (problem, other))
    np.testing.assert_allclose(fine.q, coarse.q, atol=1e-15)
    np.testing.assert_allclose(fine.events.time[:3], [1 / 3, 1.0, 5 / 3], rtol=EXACT)
    # In stick the position is the same float at every output.
    assert len(set(np.asarray(coarse.q)[21:33, 0])) == 1


def test_curved_loads_converge():
    """A harmonic load on a slider: loaded, held at the maximum, unloaded after F has dropped by
    twice the limit; straight lines follow the sine with second order."""
    k, limit = 10.0, 0.3
    elements = {
        "spring": jfric.Spring("u", k),
        "friction": jfric.Friction("u", limit=limit),
        "load": jfric.Load("u", jfric.Harmonic(1.0, 2.0)),
    }
    problem = jfric.Problem(("u",), elements, time=2.0)
    ts = np.linspace(0.0, 2.0, 401)
    force = np.sin(2.0 * ts)
    loading = np.maximum(force - limit, 0.0)
    after = np.minimum(1.0 - limit, force + limit)
    exact = np.where(ts < np.pi / 4, loading, after) / k
    errors = []
    for increments in (20, 80):
        solution = jfric.simulate(problem, jfric.QuasiStatic(increments), ts=ts)
        errors.append(np.abs(np.asarray(solution.q)[:, 0] - exact).max())
    assert errors[1] < errors[0] / 10
    assert errors[1] < 1e-4


@pytest.mark.slow
def test_start_jump_and_restart():
    """What the start leaves unbalanced is taken up at once, a jump likewise; history is kept."""
    problem = unloaded_spring()
    solver = jfric.QuasiStatic()
    whole = jfric.simulate(problem, solver, ts=[0.0, 0.5, 1.0, 2.0])
    # From 10 m it slides back until k u = 50 N + 30 N, then until k u = 30 N.
    np.testing.assert_allclose(whole.q[:, 0], [8.0, 8.0, 3.0, 3.0], rtol=EXACT)
    np.testing.assert_allclose(whole.lambda_t[:, 0], 30.0, rtol=EXACT)
    first = jfric.simulate(problem, solver, end=0.5)
    second = jfric.simulate(problem, solver, start=first.final, end=2.0, ts=[1.0, 2.0])
    np.testing.assert_allclose(second.q, whole.q[2:], rtol=EXACT)
    # The same pass by pass, and up to a time.
    step, advance = jax.jit(solver.step), jax.jit(solver.advance)
    state = initial = jax.jit(solver.init)(problem)
    for _ in range(20):
        state, info = step(problem, state)
    assert float(state.q[0]) == pytest.approx(3.0, rel=EXACT)
    assert not info.advanced
    halfway = advance(problem, initial, 0.5)
    assert float(halfway.q[0]) == pytest.approx(8.0, rel=EXACT)
    assert float(halfway.t) == 0.5


def test_contact_with_friction_against_the_static_closed_form():
    """One frictional contact under loads that grow in proportion: K = [[1.2, -1], [-1, 1.2]] in
    (u_nu, u_tau) with u_nu <= 0; slip towards + has u_tau = (f_tau - F f_nu)/(beta + F c)."""
    beta, c, F = 1.2, 1.0, 0.4

    def problem(f_nu, f_tau):
        ramp = lambda f: jfric.PiecewiseLinear([0.0, 1.0], [0.0, f])  # noqa: E731
        return jfric.Problem(
            ("nu", "tau"),
            {
                "contact": jfric.Contact({"nu": -1.0}, "tau", jfric.Coulomb(F)),
                "load": {"n": jfric.Load("nu", ramp(f_nu)), "t": jfric.Load("tau", ramp(f_tau))},
            },
            matrices=jfric.Matrices(K=[[beta, -c], [-c, beta]]),
        )

    cases = {
        (1.3, 0.0): (0.0, 0.0, 1.3, 0.0),
        (1.3, 1.0): (0.0, 0.3, 1.6, -0.64),
        (1.3, -1.0): (0.0, -0.6, 0.7, 0.28),
        (-1.0, 0.5): (-35 / 22, -10 / 11, 0.0, 0.0),
        (1.0, -1.3): (-5 / 22, -14 / 11, 0.0, 0.0),
    }
    for load, (nu, tau, lambda_n, lambda_t) in cases.items():
        solution = jfric.simulate(problem(*load), jfric.QuasiStatic(), ts=[1.0])
        assert solution.outcome() == "ok"
        found = [*solution.q[0], solution.lambda_n[0, 0], solution.lambda_t[0, 0]]
        np.testing.assert_allclose(found, [nu, tau, lambda_n, lambda_t], atol=EXACT)


def test_a_coefficient_of_zero_holds_nothing_to_either_side():
    """As a number of a sweep, of which nothing is known while tracing: u = f_tau / k."""

    def ends(force, mu):
        ramp = jfric.PiecewiseLinear([0.0, 1.0], [0.0, force])
        problem = jfric.Problem(
            ("nu", "tau"),
            {
                "contact": jfric.Contact({"nu": -1.0}, "tau", jfric.Coulomb(mu)),
                "load": {"n": jfric.Load("nu", 1.3), "t": jfric.Load("tau", ramp)},
            },
            matrices=jfric.Matrices(K=[[1.2, 0.0], [0.0, 1.2]]),
            time=1.0,
        )
        return jfric.simulate(problem, jfric.QuasiStatic(), ts=[1.0]).q[0]

    found = jax.jit(jax.vmap(ends, in_axes=(0, None)))(jnp.asarray([0.6, -0.6]), 0.0)
    np.testing.assert_allclose(found, [[0.0, 0.5], [0.0, -0.5]], atol=EXACT)


def test_gap_springs_and_moving_bases():
    """A gap of 0.1 m, then 100 N/m beside a spring to a base that moves by 0.3 m."""
    elements = {
        "spring": jfric.Spring(("wall", "u"), 50.0),
        "gap_spring": jfric.GapSpring("u", 100.0, 100.0, 0.1, 0.1),
        "base": {"wall": jfric.Base(jfric.PiecewiseLinear([0.0, 1.0, 3.0], [0.0, 0.3, -0.3]))},
    }
    problem = jfric.Problem(("u",), elements, time=3.0)
    solution = jfric.simulate(problem, jfric.QuasiStatic(), ts=[0.2, 1.0, 2.0, 3.0])
    free = (50 * 0.3 + 10) / 150
    np.testing.assert_allclose(solution.q[:, 0], [0.06, free, 0.0, -free], atol=EXACT)
    assert [row["to"] for row in solution.event_table()] == [
        "touch_positive", "free", "touch_negative"
    ]  # fmt: skip
    assert float(solution.events.time[0]) == pytest.approx(1 / 3, rel=EXACT)


def test_a_damper_to_a_support_has_the_force_of_its_motion():
    """Between two equal springs the body follows the support half the way."""
    elements = {
        "spring": {"near": jfric.Spring(("wall", "u"), 50.0), "far": jfric.Spring("u", 50.0)},
        "damper": jfric.Damper(("wall", "u"), 2.0),
        "base": {"wall": jfric.Base(jfric.PiecewiseLinear([0.0, 2.0, 3.0], [0.0, 0.6, 0.6]))},
    }
    problem = jfric.Problem(("u",), elements, time=3.0)
    names = ["force.damper(0.5 s)", "force.damper(2.5 s)"]
    found = jfric.observe(problem, names, jfric.QuasiStatic()).values
    np.testing.assert_allclose([found[n] for n in names], [2.0 * 0.15, 0.0], atol=EXACT)


def test_free_rigid_body_is_reported():
    """A block that nothing but friction holds: it sticks up to its limit, then there is no
    equilibrium."""
    elements = {
        "friction": jfric.Friction("u", jfric.Coulomb(0.3), N=100.0),
        "load": jfric.Load("u", jfric.PiecewiseLinear([0.0, 1.0], [0.0, 50.0])),
    }
    problem = jfric.Problem(("u",), elements)
    solution = jfric.simulate(problem, jfric.QuasiStatic(), ts=[0.5, 1.0])
    assert int(solution.status) == jfric.Status.SINGULAR
    assert "free to move" in solution.outcome()
    assert float(solution.final.t) == pytest.approx(0.6, rel=EXACT)
    assert float(solution.q[0, 0]) == 0.0
    assert np.isnan(solution.q[1, 0])


def test_equilibrium_lost_on_the_way_is_reported():
    """A spring that softens: beyond its maximum of 10 N the load cannot be carried."""
    elements = {
        "diagram_spring": jfric.DiagramSpring("u", [-1.0, 1.0, 2.0], [-10.0, 10.0, 5.0]),
        "load": jfric.Load("u", jfric.PiecewiseLinear([0.0, 1.0], [0.0, 20.0])),
    }
    problem = jfric.Problem(("u",), elements)
    solution = jfric.simulate(problem, jfric.QuasiStatic())
    assert int(solution.status) == jfric.Status.INCONSISTENT
    assert float(solution.final.t) == pytest.approx(0.5, rel=EXACT)


def test_redundant_sliders_share_the_load():
    """Two sliders on one node: which carries how much is not unique, the motion is."""
    elements = {
        "spring": jfric.Spring("u", 10.0),
        "friction": {"a": jfric.Friction("u", limit=1.0), "b": jfric.Friction("u", limit=3.0)},
        "load": jfric.Load("u", jfric.PiecewiseLinear([0.0, 1.0], [0.0, 8.0])),
    }
    problem = jfric.Problem(("u",), elements)
    solution = jfric.simulate(problem, jfric.QuasiStatic(), ts=[0.25, 0.5, 1.0])
    assert solution.outcome() == "ok"
    assert int(solution.flags) & jfric.Flag.REDUNDANT
    np.testing.assert_allclose(solution.q[:, 0], [0.0, 0.0, 0.4], atol=EXACT)
    np.testing.assert_allclose(solution.lambda_t[0], [-1.0, -1.0], rtol=EXACT)
    np.testing.assert_allclose(solution.lambda_t[2], [-1.0, -3.0], rtol=EXACT)


def test_a_belt_that_speeds_up_carries_by_its_way():
    """From rest to 1 m/s in 1 s it goes 0.5 m."""
    belt = jfric.PiecewiseLinear([0.0, 1.0], [0.0, 1.0])
    problem = jfric.Problem(
        ("u",),
        {
            "spring": jfric.Spring("u", 1.0),
            "friction": jfric.Friction("u", limit=10.0, belt=belt),
        },
        time=1.0,
    )
    solution = jfric.simulate(problem, jfric.QuasiStatic()).check()
    np.testing.assert_allclose(solution.final.q, [0.5], rtol=EXACT)


def test_what_it_cannot_represent_is_refused_by_name():
    spring = jfric.PolynomialSpring("u", [1.0, 0.0, 2.0])
    drop = jfric.Friction("u", jfric.StaticDynamic(0.3, 0.2), N=1.0)
    for elements, sentence in (
        ({"polynomial_spring": spring}, r"polynomial_spring: .* a PolynomialSpring is not; use a"),
        ({"spring": jfric.Spring("u", 1.0), "friction": drop}, r"friction: with StaticDynamic"),
    ):
        with pytest.raises(jfric.ProblemError, match=sentence):
            jfric.simulate(jfric.Problem(("u",), elements), jfric.QuasiStatic())
    with pytest.raises(jfric.ProblemError, match=r"'u' has no mass; add .* solver quasi-static"):
        jfric.simulate(ve0061())
    with pytest.raises(jfric.ProblemError, match="flow: the solver quasi-static has no such"):
        choose_solver({"name": "quasi-static", "flow": "exact"})
    # Settings that a file gives for another solver do not stand in the way.
    solver, settings = choose_solver({"flow": "exact", "max_steps": 7}, name="quasi-static")
    assert isinstance(solver, jfric.QuasiStatic)
    assert settings == {"name": "quasi-static", "max_steps": 7}


@pytest.mark.slow
def test_a_concrete_problem_may_be_used_while_tracing():
    problem = jfric.Problem(("u",), {"mass": jfric.Mass("u", 2.0), "load": jfric.Load("u", 1.0)})
    final = jax.jit(lambda end: jfric.simulate(problem, end=end).final.q[0])(2.0)
    assert float(final) == pytest.approx(1.0, rel=EXACT)
