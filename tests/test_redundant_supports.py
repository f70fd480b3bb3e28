"""Redundant supports with static and kinetic coefficients: time stepping against limit loads.

A body rests as long as any admissible reactions hold it. :func:`jfric.limit_load` finds that load
by linear programs over all reactions, without modes, impulses or a history.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jfric

jax.config.update("jax_enable_x64", True)

SCHEMES = [jfric.MoreauJean(1e-3), jfric.StabilisedMidpoint(1e-3)]
METHODS = ["auto", "lemke", "gauss-seidel"]
DOFS = {"x": "translation", "y": "translation", "phi": "rotation"}


def _block(places, static, kinetic, *, push, height=0.0, weight=10.0, end=0.2) -> jfric.Problem:
    """A block on feet at ``places`` from its centre of mass, pushed at a height over that."""
    mass = {"x": jfric.Mass("x", 1.0), "y": jfric.Mass("y", 1.0), "phi": jfric.Mass("phi", 0.3)}
    feet = {
        f"f{i}": jfric.Contact(
            {"y": 1.0, "phi": places[i]}, "x", jfric.StaticDynamic(static[i], kinetic[i])
        )
        for i in range(len(static))
    }
    load = {
        "weight": jfric.Load("y", -weight),
        "push": jfric.Load({"x": 1.0, "phi": -height}, push),
    }
    return jfric.Problem(DOFS, {"mass": mass, "contact": feet, "load": load}, time=end)


def _rubbed(laws, *, push, end=0.2) -> jfric.Problem:
    """One body with several frictions of unit normal force."""
    friction = {f"f{i}": jfric.Friction("x", law, N=1.0) for i, law in enumerate(laws)}
    load = {"push": jfric.Load("x", push)}
    return jfric.Problem(
        ["x"], {"mass": jfric.Mass("x", 1.0), "friction": friction, "load": load}, time=end
    )


def _speed(problem, solver):
    solution = jfric.simulate(problem, solver)
    return jnp.max(jnp.abs(solution.final.v)), solution.status


#: The second one only in the slow tests.
each_scheme = pytest.mark.parametrize(
    "solver",
    [SCHEMES[0], *(pytest.param(s, marks=pytest.mark.slow) for s in SCHEMES[1:])],
    ids=lambda s: type(s).__name__,
)


@pytest.mark.slow
@each_scheme
def test_two_feet_hold_up_to_the_sum_of_their_static_limits(solver):
    """mu_s = 0.5 and a weight of 10: 5, whatever each foot carries."""

    @eqx.filter_jit
    @jax.vmap
    def speed(push, share):
        places = [share - 1.0, share]
        return _speed(_block(places, [0.5, 0.5], [0.25, 0.25], push=push), solver)

    shares = np.array([0.5, 0.6, 0.8, 0.95])
    found, status = speed(np.repeat([4.999, 5.001], 4), np.tile(shares, 2))
    np.testing.assert_array_equal(status, 0)
    np.testing.assert_array_less(found[:4], 1e-12)
    # 5.001 - 0.25 * 10 on a unit mass for 0.2 s, less one step in which it lets go.
    np.testing.assert_allclose(found[4:], 2.501 * 0.2, rtol=2e-2)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "laws",
    [
        (jfric.StaticDynamic(2.0, 1.0), jfric.StaticDynamic(0.5, 0.25)),
        (jfric.StaticDynamic(2.0, 1.0), jfric.Coulomb(0.5)),
    ],
    ids=["both drop", "one drops"],
)
def test_two_frictions_on_one_body_hold_together(laws, method):
    for scheme in (jfric.MoreauJean, jfric.StabilisedMidpoint):
        solver = scheme(1e-3, method=method)
        held, status = _speed(_rubbed(laws, push=2.499), solver)
        assert int(status) == 0
        assert float(held) < 1e-12
        moved, status = _speed(_rubbed(laws, push=2.501), solver)
        assert int(status) == 0
        assert float(moved) > 0.2


def test_what_carries_its_limit_without_moving_is_shown_as_stick():
    """The share of each contact is not unique; that the body rests is."""
    problem = _block([-0.4, 0.6], [0.5, 0.5], [0.25, 0.25], push=4.9)
    solution = jfric.simulate(problem, jfric.MoreauJean(1e-3), ts=jnp.linspace(0.01, 0.2, 20))
    assert set(np.asarray(solution.mode).ravel().tolist()) == {int(jfric.Mode.STICK)}
    assert int(solution.events.count) == 0


@pytest.mark.parametrize(
    ("solver", "feet"),
    [
        (SCHEMES[0], 2),
        *(
            pytest.param(scheme, feet, marks=pytest.mark.slow)
            for scheme, feet in ((SCHEMES[0], 3), (SCHEMES[1], 3), (SCHEMES[0], 4))
        ),
    ],
    ids=lambda x: x if isinstance(x, int) else type(x).__name__,
)
@pytest.mark.slow
def test_random_feet_hold_up_to_the_limit_load(solver, feet):
    """Random places, coefficients and heights of the push: slip or tilting."""
    random = np.random.default_rng(feet)
    count = 24 if feet < 4 else 6
    places = np.sort(random.uniform(-1.0, 1.0, (count, feet)), axis=1)
    places[:, 0], places[:, -1] = -abs(places[:, 0]) - 0.1, abs(places[:, -1]) + 0.1
    static = random.uniform(0.1, 0.9, (count, feet))
    kinetic = static * random.uniform(0.0, 1.0, (count, feet))
    height = random.uniform(-0.5, 2.0, count)

    @eqx.filter_jit
    @jax.vmap
    def limits(places, static, kinetic, height):
        problem = _block(places, static, kinetic, push=0.0, height=height)
        found = jfric.limit_load(problem, "load.push.F", 0.0, 20.0)
        return found.parameter, found.status

    @eqx.filter_jit
    @jax.vmap
    def speeds(places, static, kinetic, height, push):
        return _speed(_block(places, static, kinetic, push=push, height=height, end=0.02), solver)

    given = places, static, kinetic, height
    limit, status = limits(*given)
    assert not np.any(np.asarray(status))
    held, status = speeds(*given, 0.999 * limit)
    assert not np.any(np.asarray(status))
    np.testing.assert_array_less(held, 1e-9)
    moved, status = speeds(*given, 1.001 * limit)
    assert not np.any(np.asarray(status))
    np.testing.assert_array_less(1e-7, moved)


@pytest.mark.slow
def test_what_slides_beside_it_does_not_loosen_a_body():
    """Three feet near their limit load, and a second body of two frictions that slides."""
    random = np.random.default_rng(7)
    places = np.asarray([-0.7, 0.1, 0.6])

    def problem(static, push, beside):
        block = _block(places, static, 0.5 * static, push=push, height=0.3, end=0.02)
        law = jfric.StaticDynamic(0.5, 0.3)
        friction = {f"u{i}": jfric.Friction("u", law, N=1.0) for i in range(2)}
        elements = {
            **{k: dict(v) for k, v in block.elements.items()},
            "friction": friction,
        }
        elements["mass"]["u"] = jfric.Mass("u", 1.0)
        elements["load"]["beside"] = jfric.Load("u", beside)
        return jfric.Problem({**DOFS, "u": "translation"}, elements, time=0.02)

    @eqx.filter_jit
    @jax.vmap
    def limits(static):
        block = _block(places, static, 0.5 * static, push=0.0, height=0.3)
        return jfric.limit_load(block, "load.push.F", 0.0, 20.0).parameter

    @eqx.filter_jit
    @jax.vmap
    def speeds(static, push, beside):
        solution = jfric.simulate(problem(static, push, beside), jfric.MoreauJean(1e-3))
        return solution.final.v, solution.status

    static = jnp.asarray(random.uniform(0.1, 0.9, (12, 3)))
    limit = limits(static)
    beside = jnp.where(jnp.arange(12) % 2 == 0, 0.99, 1.5)
    v, status = speeds(static, 0.999 * limit, beside)
    assert not np.any(np.asarray(status))
    np.testing.assert_allclose(v[:, :3], 0.0, atol=1e-9)
    # 1.5 - 0.6 for 0.02 s, from the first step on; 0.99 does not reach the limit of 1.
    np.testing.assert_allclose(v[:, 3], jnp.where(beside > 1.0, 0.018, 0.0), atol=1e-9)
    moved, status = speeds(static, 1.001 * limit, beside)
    assert not np.any(np.asarray(status))
    assert np.all(np.max(np.abs(np.asarray(moved[:, :3])), axis=1) > 1e-7)
    np.testing.assert_allclose(moved[:, 3], v[:, 3], atol=1e-9)


@pytest.mark.parametrize("count", [2, *(pytest.param(n, marks=pytest.mark.slow) for n in (3, 4))])
def test_random_frictions_on_one_body_hold_the_sum_of_their_static_limits(count):
    random = np.random.default_rng(count)
    static = jnp.asarray(random.uniform(0.1, 3.0, (64, count)))
    kinetic = static * random.uniform(0.0, 1.0, (64, count))

    @eqx.filter_jit
    @jax.vmap
    def speeds(static, kinetic, part):
        laws = [jfric.StaticDynamic(static[i], kinetic[i]) for i in range(count)]
        problem = _rubbed(laws, push=part * jnp.sum(static), end=0.02)
        return _speed(problem, jfric.MoreauJean(1e-3))

    held, status = speeds(static, kinetic, jnp.full((64,), 1.0 - 1e-6))
    assert not np.any(np.asarray(status))
    np.testing.assert_array_less(held, 1e-12)
    moved, status = speeds(static, kinetic, jnp.full((64,), 1.0 + 1e-6))
    assert not np.any(np.asarray(status))
    expected = 0.02 * ((1.0 + 1e-6) * jnp.sum(static, 1) - jnp.sum(kinetic, 1))
    np.testing.assert_allclose(moved, expected, rtol=1e-9)


@pytest.mark.slow
@each_scheme
def test_a_body_that_came_to_rest_holds_as_well(solver):
    """It slides, stops on two feet, and is pushed by 0.999 of its static limit."""
    push = jfric.Steps([0.3], [0.0, 4.995])
    block = _block([-0.4, 0.6], [0.5, 0.5], [0.25, 0.25], push=push, end=0.6)
    sliding = {"x": jfric.InitialState(0.0, 0.5)}
    problem = jfric.Problem(DOFS, dict(block.elements), initial=sliding, time=0.6)
    solution = jfric.simulate(problem, solver, ts=jnp.asarray([0.25, 0.6]))
    assert int(solution.status) == 0
    # v^2 / (2 mu_d g)
    np.testing.assert_allclose(solution.q[:, 0], 0.25 / 5.0, atol=1e-3)
    assert float(solution.q[0, 0]) == pytest.approx(float(solution.q[1, 0]), abs=1e-12)


EXACT = jfric.EventDriven()


def test_feet_that_share_friction_but_not_weight_are_no_edge():
    """Limits of 1 N and 4 N hold 4.9 N; each foot carries 5 N of weight, whatever they share."""
    solution = jfric.simulate(_block([-0.5, 0.5], [0.2, 0.8], [0.1, 0.4], push=4.9), EXACT)
    assert jfric.Flag(int(solution.flags)) == jfric.Flag.REDUNDANT
    np.testing.assert_array_equal(solution.final.q[0], 0.0)
    assert bool(solution.differentiable)


@pytest.mark.parametrize("kind", [pytest.param("feet", marks=pytest.mark.slow), "rubbed"])
def test_what_must_slide_together_is_no_coincidence(kind):
    """A push of 4 N + 10 N/s t passes the limit of 5 N at 0.1 s; then 2.5 N of friction is left."""

    def last(k):
        push = jfric.Ramp(10.0 * k, 4.0 * k)
        if kind == "feet":
            problem = _block([-0.5, 0.5], [0.2, 0.8], [0.1, 0.4], push=push, end=0.5)
        else:
            laws = [jfric.StaticDynamic(1.0, 0.5), jfric.StaticDynamic(4.0, 2.0)]
            problem = _rubbed(laws, push=push, end=0.5)
        solution = jfric.simulate(problem, EXACT)
        return solution.final.q[0], solution

    slope, solution = jax.jacfwd(last, has_aux=True)(1.0)
    assert bool(solution.differentiable)
    # Sliding begins at t with k (4 + 10 t) = 5: x = int int (4 k + 10 k s - 2.5), dt/dk = -0.5.
    T = 0.4
    np.testing.assert_allclose(solution.final.q[0], 2.5 * T**2 / 2 + 10.0 * T**3 / 6, rtol=1e-9)
    exact = 0.5 * 2.5 * T + 5.0 * T**2 / 2 + 10.0 * T**3 / 6
    np.testing.assert_allclose(slope, exact, rtol=1e-9)


@each_scheme
def test_forces_that_are_not_unique_have_the_flag_by_time_stepping(solver):
    """They are a choice of the method: derivatives of them are no derivatives of the motion."""
    held = _block([-0.5, 0.5], [0.2, 0.8], [0.1, 0.4], push=1.0)
    solution = jfric.simulate(held, solver).check()
    assert jfric.Flag.REDUNDANT in jfric.Flag(int(solution.flags))
    assert not bool(solution.differentiable)
    assert jfric.Flag.REDUNDANT in jfric.Flag(int(jfric.simulate(held, EXACT).flags))
    single = _block([0.0], [0.2], [0.1], push=1.0)
    assert int(jfric.simulate(single, solver).flags) == 0
    # The flags belong to a run, also to one that goes on.
    again = jfric.simulate(held, solver, start=solution.final, end=0.3)
    assert jfric.Flag.REDUNDANT in jfric.Flag(int(again.flags))


@pytest.mark.parametrize(
    ("solver", "status"),
    [(EXACT, jfric.Status.INCONSISTENT), (jfric.MoreauJean(1e-3), jfric.Status.OK)],
)
def test_a_motion_that_depends_on_how_floor_and_guide_share_a_load_is_said(solver, status):
    """Sliding under a push of 3 N, with 0 to 1 N of friction: the guide carries any part."""
    elements = {
        "mass": {"x": jfric.Mass("x", 1.0), "y": jfric.Mass("y", 1.0)},
        "load": {"weight": jfric.Load("y", -1.0), "push": jfric.Load("x", 3.0)},
        "contact": jfric.Contact("y", "x", jfric.Coulomb(1.0)),
        "friction": jfric.Friction("y", limit=1.0),
    }
    solution = jfric.simulate(jfric.Problem(["x", "y"], elements, time=0.5), solver)
    assert int(solution.status) == status
    assert jfric.Flag.SEVERAL_MOTIONS in jfric.Flag(int(solution.flags))
    assert status or not bool(solution.differentiable)


TIES = {"x": 1.0, "y": 0.37, "z": -1.31}


def _tied() -> jfric.Problem:
    """Masses on a spring that move as one, each with friction."""
    friction = {"x": (0.1, 3.3), "y": (0.2, 2.7), "z": (0.15, 1.9)}
    elements = {
        "mass": {name: jfric.Mass(name, m) for name, m in {"x": 0.7, "y": 1.3, "z": 0.45}.items()},
        "spring": jfric.Spring("x", 61.0),
        "joint": {"y": jfric.Joint("y - 0.37*x"), "z": jfric.Joint("z + 1.31*x")},
        "friction": {
            name: jfric.Friction(name, jfric.Coulomb(mu), N=N) for name, (mu, N) in friction.items()
        },
    }
    initial = {name: 0.21 * ratio for name, ratio in TIES.items()}
    return jfric.Problem([*TIES], elements, initial=initial, time=6.0)


@pytest.mark.filterwarnings("ignore:the .* flow runs in float32")
@pytest.mark.parametrize("flow", ["exact", pytest.param("runge-kutta", marks=pytest.mark.slow)])
def test_frictions_of_one_motion_in_single_precision(flow):
    """Pivots of rounding errors held all three for ever, with status ok."""
    with jax.enable_x64(False):
        solution = jfric.simulate(_tied(), jfric.EventDriven(flow=flow))
    assert solution.q.dtype == jnp.float32
    solution.check()
    assert jfric.Flag.REDUNDANT in jfric.Flag(int(solution.flags))
    # Each half swing loses twice the width of the band of rest.
    mass, friction = 0.7 + 0.37**2 * 1.3 + 1.31**2 * 0.45, 0.33 + 0.37 * 0.54 + 1.31 * 0.285
    half = np.pi * np.sqrt(mass / 61.0)
    count = int(0.5 * (0.21 * 61.0 / friction + 1.0))
    assert int(solution.events.count) == 3 * count
    np.testing.assert_allclose(
        solution.events.time[: 3 * count : 3], half * np.arange(1, count + 1), rtol=1e-5
    )
    rest = (-1) ** count * (0.21 - 2.0 * count * friction / 61.0)
    np.testing.assert_allclose(solution.final.q, rest * np.array([*TIES.values()]), atol=3e-6)
    np.testing.assert_array_equal(solution.final.v, 0.0)


def _sprung_along_one_way() -> jfric.Problem:
    ways = {f"{k}": (0.37 * c, -1.31 * c, 0.3 * c) for k, c in enumerate((1.0, 1.0 / 3.0, 1.7))}
    elements = {
        "spring": {
            name: jfric.Spring(name, k) for name, k in {"x": 61.0, "y": 13.0, "z": 7.0}.items()
        },
        "friction": {
            name: jfric.Friction(
                dict(zip("xyz", way, strict=True)), jfric.Coulomb(0.2), N=2.0 + float(name)
            )
            for name, way in ways.items()
        },
        "load": jfric.Load("y", jfric.Harmonic(3.0, 0.5)),
    }
    return jfric.Problem(["x", "y", "z"], elements, time=0.5)


def test_quasi_static_shares_are_those_of_smallest_norm_in_single_precision():
    found = []
    for double in (True, False):
        with jax.enable_x64(double):
            problem, ts = _sprung_along_one_way(), jnp.array([0.5])
            solution = jfric.simulate(problem, jfric.QuasiStatic(), ts=ts)
        assert solution.q.dtype == (jnp.float64 if double else jnp.float32)
        assert jfric.Flag(int(solution.flags)) == jfric.Flag.REDUNDANT
        found.append(np.concatenate([solution.q, solution.lambda_t], axis=None))
    np.testing.assert_allclose(found[1], found[0], rtol=1e-5)
