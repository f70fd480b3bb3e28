import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jfric

CRITICAL = 1.2
PATHS = ("load.normal.F", "load.tangential.F", "contact.mu")
#: The static problem with one contact, Janovsky (2015), equation (1).
LUMPED = jfric.Problem(
    ["un", "ut"],
    {
        "contact": jfric.Contact({"un": -1.0}, "ut", jfric.Coulomb(0.4)),
        "load": {"normal": jfric.Load("un", 1.0), "tangential": jfric.Load("ut", 0.0)},
    },
    matrices=jfric.Matrices(K=[[1.2, -1.0], [-1.0, 1.2]]),
)


def at(f_nu, f_tau, mu):
    values = dict(zip(PATHS, (f_nu, f_tau, mu), strict=True))
    return jfric.equilibria(jfric.set_parameters(LUMPED, values))


@jax.jit
def batch(f_nu, f_tau, mu):
    return jax.vmap(at)(f_nu, f_tau, mu)


def test_20000_random_loads_have_as_many_solutions_as_predicted():
    draw = np.random.default_rng(0)
    f_nu, f_tau = draw.uniform(-2, 2, 20_000), draw.uniform(-4, 4, 20_000)
    mu = draw.uniform(0.0, 3.0, 20_000)
    found = batch(f_nu, f_tau, mu)
    wedge = (mu > CRITICAL) & (f_nu > 0) & (-mu * f_nu < f_tau) & (f_tau < -CRITICAL * f_nu)
    assert wedge.sum() > 500
    np.testing.assert_array_equal(found.count, 1 + 2 * wedge)
    assert not np.any(found.continuum | found.unresolved[:, None])
    assert np.max(np.where(found.exists, found.residual, 0.0)) < 1e-12


def test_edges_and_the_continuum_are_flagged():
    found = batch(*jnp.array([[1.0, 1.0, 1.0], [-1.5, -1.2, -1.2], [1.5, 1.5, 1.2]]))
    np.testing.assert_array_equal(found.count, [2, 2, 1])
    np.testing.assert_array_equal(np.any(found.continuum, axis=1), [False, False, True])
    np.testing.assert_array_equal(np.any(found.boundary, axis=1), [True, True, False])
    segment = jax.tree.map(lambda x: x[2], found).table()[0]
    ends = np.array([segment["q"], segment["q_to"]])
    np.testing.assert_allclose(ends, [[0, -1], [0, 0]], atol=1e-14)


def test_solutions_are_differentiable():
    def displacement(mu):
        return at(1.0, -1.35, mu).q[3, 1]

    # u_tau = (mu - 1.35)/(1.2 - mu) in the mode slip-.
    for derivative in (jax.jacfwd, jax.jacrev):
        assert derivative(displacement)(1.5) == pytest.approx(-0.15 / 0.09, abs=1e-12)


def test_rest_states_are_intervals_also_in_a_batch():
    oscillator = jfric.Problem(
        ["u"],
        {
            "spring": jfric.Spring("u", 5000.0),
            "friction": jfric.Friction("u", jfric.Coulomb(0.1), N=1000.0),
            "load": jfric.Load("u", 1500.0),
        },
    )

    def interval(mu):
        found = jfric.equilibria(
            jfric.set_parameters(oscillator, {"friction.mu": mu}), meaning="rest"
        )
        return found.q_low[0, 0], found.q_high[0, 0]

    low, high = jax.jit(jax.vmap(interval))(jnp.array([0.1, 0.2]))
    np.testing.assert_allclose(low, [0.28, 0.26], atol=1e-14)
    np.testing.assert_allclose(high, [0.32, 0.34], atol=1e-14)
    # From the reference u = 0 the static law leaves one of them.
    row = jfric.equilibria(oscillator).table()
    assert [r["mode"] for r in row] == [("slip+",)]
    np.testing.assert_allclose(row[0]["q"], [0.28], atol=1e-15)


def block(push):
    return jfric.Problem(
        ["x", "z"],
        {
            "contact": jfric.Contact("z", "x", jfric.Coulomb(0.3)),
            "load": {"weight": jfric.Load("z", -10.0), "push": jfric.Load("x", push)},
        },
    )


def test_a_block_without_springs():
    assert [r["mode"] for r in jfric.equilibria(block(2.0)).table()] == [("stick",)]
    assert int(jfric.equilibria(block(3.5)).count) == 0
    (sliding,) = jfric.equilibria(block(3.0)).table()
    assert sliding["continuum"]
    np.testing.assert_allclose(sliding["q_to"], [np.inf, 0.0])
    (rest,) = jfric.equilibria(block(2.0), meaning="rest").table()
    assert rest["q"] == {"x": (-np.inf, np.inf), "z": (0.0, 0.0)}
    assert int(jfric.equilibria(block(3.5), meaning="rest").count) == 0


@pytest.mark.slow
@pytest.mark.parametrize("stop", [5.0, 20.0])
def test_limit_load_of_a_body_that_tips(stop):
    """There it may stand on one foot, in one state alone: that is not how it came there."""
    feet = {
        "left": jfric.Contact({"y": 1.0, "phi": -0.99}, "x", jfric.Coulomb(0.9)),
        "right": jfric.Contact({"y": 1.0, "phi": 0.72}, "x", jfric.Coulomb(0.9)),
    }
    load = {
        "weight": jfric.Load("y", -10.0),
        "push": jfric.Load({"x": 1.0, "phi": -1.5}, 0.0),
    }
    problem = jfric.Problem(
        {"x": "translation", "y": "translation", "phi": "rotation"},
        {"mass": {d: jfric.Mass(d, 1.0) for d in ("x", "y", "phi")}, "contact": feet, "load": load},
    )
    limit = jfric.limit_load(problem, "load.push.F", 0.0, stop)
    assert int(limit.status) == 0
    assert float(limit.parameter) == pytest.approx(10.0 * 0.72 / 1.5, rel=1e-10)


@pytest.mark.slow
def test_limit_load_with_derivative():
    def limit(mu):
        changed = jfric.set_parameters(block(0.0), {"contact.mu": mu})
        return jfric.limit_load(changed, "load.push.F", 0.0, 9.0)

    found, slope = jax.jvp(lambda mu: limit(mu).parameter, (0.3,), (1.0,))
    assert float(found) == pytest.approx(3.0, abs=1e-13)
    assert float(slope) == pytest.approx(10.0, abs=1e-12)
    several = jax.jit(jax.vmap(limit))(jnp.asarray([0.1, 0.3]))
    np.testing.assert_allclose(several.parameter, [1.0, 3.0], atol=1e-13)
    assert several.axes == limit(0.3).axes
    never = jfric.limit_load(block(0.0), "load.push.F", 0.0, 2.0)
    assert int(never.status) == jfric.Status.MAX_STEPS
    none = jfric.limit_load(block(0.0), "load.push.F", 5.0, 9.0)
    assert int(none.status) == jfric.Status.INCONSISTENT


def test_a_belt_keeps_its_contact_at_the_limit():
    belt = jfric.Problem(
        ["x"],
        {
            "spring": jfric.Spring("x", 2.0),
            "friction": jfric.Friction("x", jfric.StaticDynamic(0.8, 0.5), N=1.0, belt=0.2),
        },
    )
    (row,) = jfric.equilibria(belt, meaning="rest").table()
    assert row["q"]["x"] == pytest.approx((0.25, 0.25), abs=1e-15)
    with pytest.raises(jfric.ProblemError, match=r"friction\.belt: .*meaning=\"rest\""):
        jfric.equilibria(belt)


def test_bad_requests():
    with pytest.raises(jfric.ProblemError, match=r"did you mean 'rest'"):
        jfric.equilibria(LUMPED, meaning="rests")  # pyright: ignore[reportArgumentType]
    with pytest.raises(jfric.ProblemError, match="starts: found 0"):
        jfric.equilibria(LUMPED, starts=0)
    with pytest.raises(jfric.ProblemError, match=r"did you mean 'contact.mu'"):
        jfric.limit_load(LUMPED, "contact.mue", 0.0, 1.0)
    gap = jfric.Problem(["x"], {"gap_spring": jfric.GapSpring("x", 1.0, 1.0, 0.1, 0.1)})
    with pytest.raises(jfric.ProblemError, match=r"^gap_spring: has a kink, which"):
        jfric.equilibria(gap)
