"""Decisions at instants where guards vanish, contacts share a load, or several things happen.

Closed forms, by every pass that can run the case.
"""

from __future__ import annotations

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import linprog

import jfric
from jfric import Flag, Mode, Status

STILL = jfric.InitialState(q=0.0, v=0.0)
#: The pass that is chosen, the general one, the same taken apart, and the Runge-Kutta flow.
SOLVERS = {
    "auto": jfric.EventDriven(adjoint="none", max_steps=2000),
    "general": jfric.EventDriven(adjoint="reverse", max_steps=2000),
    "lowered": jfric.EventDriven(kernel="lowered", adjoint="none", max_steps=2000),
    "runge-kutta": jfric.EventDriven(flow="runge-kutta", adjoint="none", max_steps=2000),
}
EXACT = {"auto": 1e-12, "general": 1e-12, "lowered": 1e-12, "runge-kutta": 1e-8}
_RUNGE_KUTTA = pytest.param("runge-kutta", marks=pytest.mark.slow)
#: Where ``auto`` has a pass of its own, the general one is for the slow tests.
_GENERAL = pytest.param("general", marks=pytest.mark.slow)
each_solver = pytest.mark.parametrize("solver", ["auto", _GENERAL, _RUNGE_KUTTA])
#: Cases with several contacts have no pass of their own.
each_flow = pytest.mark.parametrize("solver", ["general", _RUNGE_KUTTA])
#: The kernel in scalars takes half a minute to compile: the cases in which most happens.
_LOWERED = pytest.param("lowered", marks=pytest.mark.slow)
each_kernel = pytest.mark.parametrize("solver", ["general", _RUNGE_KUTTA, _LOWERED])


def _problem(axes: str, elements: dict, time: float, **initial) -> jfric.Problem:
    mass = {"mass": {f"m{a}": jfric.Mass(a, 1.0) for a in axes}}
    start = {a: initial.get(a, STILL) for a in axes}
    return jfric.Problem(tuple(axes), mass | elements, initial=start, time=time)


def _runs(problems, solver: str, ts):
    """Problems of one structure as one batch."""
    batch = jax.tree.map(lambda *x: jnp.stack([jnp.asarray(y) for y in x]), *problems)
    run = jax.jit(jax.vmap(lambda p: jfric.simulate(p, SOLVERS[solver], ts=ts)))
    return run(batch)


# A contact that carries nothing


@pytest.mark.slow
@each_solver
def test_a_contact_without_a_force_opens(solver):
    levels = [(0.0, 0.0, 1.0), (-1.0, 0.0, 1.0), (0.0, -1.0, 1.0)]
    ts = np.linspace(0.0, 4.0, 9)
    problems = [
        _problem(
            "x",
            {
                "contact": jfric.Contact("x"),
                "load": jfric.Load("x", jfric.Steps([1.0, 2.0], list(f))),
            },
            4.0,
        )
        for f in levels
    ]
    runs = _runs(problems, solver, ts)
    np.testing.assert_array_equal(runs.status, Status.OK)
    np.testing.assert_array_equal(runs.events.count, 1)
    expected = np.where(ts > 2.0, 0.5 * (ts - 2.0) ** 2, 0.0)
    np.testing.assert_allclose(runs.q[..., 0], np.tile(expected, (3, 1)), atol=EXACT[solver])


@pytest.mark.slow
@each_solver
def test_no_friction_to_one_side(solver):
    """Coefficients (+), (-), push: the body moves where the coefficient is zero."""
    cases = [(0.0, 0.0, 1.0), (0.0, 0.0, -1.0), (1.0, 0.0, -0.5), (0.0, 1.0, 0.5)]
    ts = np.linspace(0.0, 2.0, 5)
    problems = [
        _problem(
            "xz",
            {
                "contact": jfric.Contact("z", "x", jfric.Coulomb(jfric.Directional(p, n))),
                "load": {"z": jfric.Load("z", -1.0), "x": jfric.Load("x", push)},
            },
            2.0,
        )
        for p, n, push in cases
    ]
    runs = _runs(problems, solver, ts)
    np.testing.assert_array_equal(runs.status, Status.OK)
    expected = 0.5 * np.array([c[2] for c in cases])[:, None] * ts**2
    np.testing.assert_allclose(runs.q[..., 0], expected, atol=EXACT[solver])
    np.testing.assert_allclose(runs.lambda_n[..., 0], 1.0, atol=1e-12)


@pytest.mark.slow
@each_solver
def test_belt_that_carries_to_one_side_only(solver):
    """Without friction where the belt moves forward, the body follows it back from pi to 3 pi/2."""
    law = jfric.Coulomb(jfric.Directional(1.0, 0.0))
    belt = jfric.Harmonic(0.3, 1.0)
    contact = jfric.Contact("z", "x", law, belt=belt)
    problem = _problem("xz", {"contact": contact, "load": jfric.Load("z", -1.0)}, 6.0)
    run = jfric.simulate(problem, SOLVERS[solver], ts=np.array([3.0, 4.0, 6.0]))
    assert run.status == Status.OK
    at_four = 0.3 * (-math.cos(4.0) - 1.0)
    expected = [0.0, at_four, -0.3 - 0.3 * (6.0 - 1.5 * math.pi)]
    np.testing.assert_allclose(run.q[:, 0], expected, atol=EXACT[solver])


# Loads that vanish with rounding errors of their own


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["auto", "general", _RUNGE_KUTTA, _LOWERED])
def test_mass_with_a_spring_on_a_floor(solver):
    """It lifts, lands, and its contact force passes zero at multiples of pi/2."""
    cases = [(k, phase) for k in (0.0, 0.5, 1.0, 2.0) for phase in (math.pi / 2, 0.3)]
    ts = np.linspace(0.0, 6.0, 25)
    problems = [
        _problem(
            "x",
            {
                "spring": jfric.Spring("x", k),
                "contact": jfric.Contact("x"),
                "load": jfric.Load("x", jfric.Harmonic(1.0, 1.0, phase)),
            },
            6.0,
        )
        for k, phase in cases
    ]
    runs = _runs(problems, solver, ts)
    np.testing.assert_array_equal(runs.status, Status.OK)
    for (k, phase), q in zip(cases, np.asarray(runs.q[..., 0]), strict=True):
        expected = _above_floor(k, phase, ts)
        np.testing.assert_allclose(q, expected, atol=2e-4, err_msg=f"k={k}, phase={phase}")


def _above_floor(k: float, phase: float, ts, h: float = 1e-4):
    """A projected midpoint rule: v+ >= 0 where the gap is closed."""
    q = v = 0.0
    result, every = [q], round(float(ts[1] - ts[0]) / h)
    for step in range(every * (len(ts) - 1)):
        half = q + 0.5 * h * v
        v = v + h * (math.sin((step + 0.5) * h + phase) - k * half)
        if half <= 0.0:
            v = max(v, 0.0)
        q = half + 0.5 * h * v
        if (step + 1) % every == 0:
            result.append(q)
    return np.array(result)


@pytest.mark.slow
@each_solver
@pytest.mark.parametrize("crosses", [1.0, -1.0])
def test_ramp_through_zero(solver, crosses):
    """The contact force of a load that crosses zero is a rounding error there, of either sign."""
    load = jfric.PiecewiseLinear([0.1, 3.1], [-crosses * 0.3, crosses * 0.6])
    problem = _problem("x", {"contact": jfric.Contact("x"), "load": jfric.Load("x", load)}, 3.0)
    ts = np.array([1.0, 2.0, 3.0])
    run = jfric.simulate(problem, SOLVERS[solver], ts=ts)
    assert run.status == Status.OK
    if crosses > 0:
        expected = 0.05 * np.maximum(ts - 1.1, 0.0) ** 3
        np.testing.assert_allclose(run.q[:, 0], expected, atol=EXACT[solver])
    else:
        # 0.3 up to 0.1 s, then 0.3 - 0.3 (t - 0.1): above the floor all the time.
        assert np.all(np.asarray(run.q[:, 0]) > 0.1)


# Two contacts on one body that cannot both stick


@pytest.mark.slow
@each_kernel
def test_two_frictions_on_one_body_one_of_them_on_a_belt(solver):
    """The stronger one carries the body along, the other slides back and forth."""
    belt = jfric.Harmonic(0.3, 1.0)
    ts = np.linspace(0.0, 10.0, 21)
    problems = [
        _problem(
            "x",
            {
                "friction": {
                    "a": jfric.Friction("x", limit=5.0, belt=belt),
                    "b": jfric.Friction("x", limit=1.0, belt=speed),
                }
            },
            10.0,
        )
        for speed in (0.0, 0.1, -0.25)
    ]
    runs = _runs(problems, solver, ts)
    np.testing.assert_array_equal(runs.status, Status.OK)
    expected = np.tile(0.3 * (1.0 - np.cos(ts)), (3, 1))
    np.testing.assert_allclose(runs.q[..., 0], expected, atol=EXACT[solver])
    motion = jax.vmap(jfric.motion_residual)(_stacked(problems), runs)
    assert float(motion.max()) < 1e-9


def _stacked(problems):
    return jax.tree.map(lambda *x: jnp.stack([jnp.asarray(y) for y in x]), *problems)


@pytest.mark.slow
@each_kernel
def test_belt_that_pulls_a_body_off_a_wall(solver):
    ts = np.linspace(0.0, 6.0, 13)
    problems = [
        _problem(
            "x",
            {
                "friction": jfric.Friction("x", limit=5.0, belt=jfric.Harmonic(0.3, 1.0)),
                "contact": jfric.Contact("x"),
                "load": jfric.Load("x", -pressed),
            },
            6.0,
        )
        for pressed in (0.0, 1.0)
    ]
    runs = _runs(problems, solver, ts)
    np.testing.assert_array_equal(runs.status, Status.OK)
    expected = np.tile(0.3 * (1.0 - np.cos(ts)), (2, 1))
    np.testing.assert_allclose(runs.q[..., 0], expected, atol=EXACT[solver])


# Contacts that share a load


@each_flow
@pytest.mark.parametrize(
    ("second", "kinetic"),
    [
        (jfric.StaticDynamic(0.5, 0.25), 1.25),
        pytest.param(jfric.StaticDynamic(0.5, 0.5), 1.5, marks=pytest.mark.slow),
    ],
)
def test_two_static_limits_add_up(solver, second, kinetic):
    """Limits 2 and 0.5: the load t pulls the body off at 2.5 s, whatever each of them carries."""
    elements = {
        "friction": {
            "a": jfric.Friction("x", law=jfric.StaticDynamic(2.0, 1.0), N=1.0),
            "b": jfric.Friction("x", law=second, N=1.0),
        },
        "load": jfric.Load("x", jfric.PiecewiseLinear([0.0, 10.0], [0.0, 10.0])),
    }
    run = jfric.simulate(_problem("x", elements, 3.0), SOLVERS[solver], ts=np.array([3.0]))
    assert run.status == Status.OK
    np.testing.assert_allclose(run.events.time[:2], 2.5, atol=1e-9)
    # From 2.5 s on: x'' = t - kinetic.
    expected = 0.5 * (2.5 - kinetic) * 0.25 + 0.125 / 6.0
    np.testing.assert_allclose(run.q[-1, 0], expected, atol=1e-9)


@functools.cache
def _block(share: float, mu_left: float, mu_right: float, ratio: float) -> jfric.Problem:
    """A block of weight 10 on two feet, pushed at their height by the force t."""
    feet = {
        name: jfric.Contact({"y": 1.0, "a": arm}, {"x": 1.0}, jfric.StaticDynamic(mu, ratio * mu))
        for name, arm, mu in (("left", -1.0 + share, mu_left), ("right", share, mu_right))
    }
    elements = {
        "contact": feet,
        "load": {
            "weight": jfric.Load("y", -10.0),
            "push": jfric.Load("x", jfric.PiecewiseLinear([0.0, 20.0], [0.0, 20.0])),
        },
    }
    return _problem("xya", elements, 12.0)


@pytest.mark.slow
@each_kernel
def test_block_on_two_feet_holds_up_to_its_static_limit(solver):
    """Left and right foot carry ``share`` and the rest; the limits of friction add up."""
    rng = np.random.default_rng(5)
    cases = [(0.6, 0.5, 0.5, 0.5), (0.8, 0.5, 0.5, 0.5), (0.95, 0.5, 0.5, 0.5)]
    cases += [
        (rng.uniform(0.05, 0.95), *rng.uniform(0.1, 1.0, 2), rng.uniform(0.2, 1.0))
        for _ in range(17)
    ]
    runs = _runs([_block(*c) for c in cases], solver, np.array([12.0]))
    np.testing.assert_array_equal(runs.status, Status.OK)
    limits = [10.0 * (share * left + (1.0 - share) * right) for share, left, right, _ in cases]
    np.testing.assert_allclose(runs.events.time[:, 0], limits, rtol=1e-9)


@pytest.mark.slow
def test_feet_that_let_go_together_say_that_their_forces_are_not_unique():
    """One foot holds more than the other: all forces are on it when both let go."""
    laws = jfric.Coulomb(0.25), jfric.StaticDynamic(0.5, 0.25)
    problem = jfric.Problem(
        ["x", "y"],
        {
            "mass": {"x": jfric.Mass("x", 2.0), "y": jfric.Mass("y", 0.5)},
            "load": {"side": jfric.Load("x", 1.5), "weight": jfric.Load("y", -2.0)},
            "contact": {f"c{i}": jfric.Contact("y", "x", law) for i, law in enumerate(laws)},
        },
        time=2.0,
    )
    solution = jfric.simulate(problem, ts=jnp.array([2.0])).check()
    assert int(solution.flags) & jfric.Flag.REDUNDANT
    np.testing.assert_allclose(solution.q[0], [0.5 * (1.5 - 0.5) / 2.0 * 4.0, 0.0], atol=1e-12)
    assert float(solution.lambda_n[0].sum()) == pytest.approx(2.0, abs=1e-12)


@pytest.mark.slow
def test_limit_load_says_the_same():
    """The rest states of statics are lost where the block lets go."""
    problem = _block(0.6, 0.5, 0.25, 0.5)
    elements = dict(problem.elements)
    elements["load"] = elements["load"] | {"push": jfric.Load("x", 0.0)}
    constant = jfric.Problem(problem.dofs, elements, initial=problem.initial, time=1.0)
    limit = jfric.limit_load(constant, "load.push.F", 0.0, 12.0)
    run = jfric.simulate(problem, SOLVERS["general"])
    np.testing.assert_allclose(run.events.time[0], limit.parameter, rtol=1e-9)


_KNOTS = np.arange(5.0)
_TRIANGLE = ({"x": 1.0}, {"y": 1.0}, {"x": 1.0, "y": -1.0})


def _typed_triangle(rng) -> dict:
    """Numbers that people type for two bodies with friction on each and between them."""

    def halves(low, high, count):
        return rng.integers(low, high + 1, count) / 2.0

    static, normal = halves(1, 4, 3), np.stack([halves(1, 5, 5) for _ in range(3)])
    normal = np.where(rng.random((3, 1)) < 0.6, normal[:, :1], normal)
    loads = np.stack([halves(-8, 12, 5), halves(-8, 12, 5)])
    loads[:, 0] *= rng.random() < 0.3
    for k in range(1, 5):
        loads[:, k] = np.where(rng.random(2) < 0.25, loads[:, k - 1], loads[:, k])
    kinetic = static * rng.choice([0.25, 0.5, 1.0], 3)
    masses, spring = halves(1, 4, 2), float(rng.choice([0.0, 1.0, 4.0]))
    found = {"static": static, "kinetic": kinetic, "normal": normal, "loads": loads}
    return found | {"masses": masses, "spring": spring}


def _triangle(x: dict, order=(0, 1, 2), mirror: float = 1.0, units=(1.0, 1.0, 1.0)):
    mass, length, second = units
    force = mass * length / second**2

    def line(values):
        return jfric.PiecewiseLinear(_KNOTS * second, np.asarray(values) * force)

    friction = {
        f"f{place}": jfric.Friction(
            _TRIANGLE[i],
            jfric.StaticDynamic(x["static"][i], x["kinetic"][i]),
            N=line(x["normal"][i]),
        )
        for place, i in enumerate(order)
    }
    elements = {
        "mass": {a: jfric.Mass(a, mass * m) for a, m in zip("xy", x["masses"], strict=True)},
        "spring": jfric.Spring("y", k=x["spring"] * mass / second**2),
        "friction": friction,
        "load": {a: jfric.Load(a, line(mirror * x["loads"][i])) for i, a in enumerate("xy")},
    }
    return jfric.Problem(("x", "y"), elements, initial={"x": STILL, "y": STILL}, time=4.0 * second)


def _lets_go(x: dict) -> float:
    """When no forces within the static limits hold both bodies: the friction between them has to
    leave each to its own."""

    def slack(t):
        normal = [np.interp(t, _KNOTS, n) for n in x["normal"]]
        (a, b), (own, other, between) = (
            [np.interp(t, _KNOTS, f) for f in x["loads"]],
            x["static"] * normal,
        )
        return min(between, own - a, other + b) - max(-between, -own - a, b - other)

    grid = np.linspace(0.0, 4.0, 1601)
    lost = np.flatnonzero(np.array([slack(t) for t in grid]) < -1e-9)
    if not len(lost) or lost[0] == 0:
        return np.inf if not len(lost) else 0.0
    low, high = grid[lost[0] - 1], grid[lost[0]]
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if slack(middle) < 0 else (middle, high)
    return low


@pytest.mark.slow
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1)])
def test_three_frictions_on_two_bodies_hold_while_any_forces_do(order):
    """And move the same way, flags too, in a mirror, in other units and in another order."""
    rng = np.random.default_rng(20)
    systems = [_typed_triangle(rng) for _ in range(40)]
    units = (7e2, 3e4, 1.0)
    plain = [_triangle(x) for x in systems]
    others = [_triangle(x, order, mirror=-1.0) for x in systems]
    others += [_triangle(x, order, units=units) for x in systems]
    ts = np.linspace(0.0, 4.0, 9)
    if order == (0, 1, 2):
        runs = _runs(plain + others, "general", ts)
        first, other = (
            jax.tree.map(lambda x, s=s: x[s], runs) for s in (slice(40), slice(40, 120))
        )
    else:
        first, other = _runs(plain, "general", ts), _runs(others, "general", ts)
    np.testing.assert_array_equal(first.status, Status.OK)
    count = np.asarray(first.events.count)
    expected = np.array([_lets_go(x) for x in systems])
    # What does not hold from the start on moves at once.
    moves = np.abs(np.asarray(first.v)[:, 1]).max(axis=1) > 0
    assert moves[expected < 1e-9].all()
    held = expected >= 1e-9
    found = np.where(count > 0, np.asarray(first.events.time)[:, 0], np.inf)
    np.testing.assert_allclose(found[held], expected[held], atol=1e-9)
    assert np.isfinite(expected[held]).sum() > 10
    q, size = np.asarray(first.q), 1.0 + np.abs(first.q).max(axis=(1, 2), keepdims=True)
    turned = np.concatenate([-q, q * units[1]]) / np.concatenate([size, size * units[1]])
    seen = np.asarray(other.q) / np.concatenate([size, size * units[1]])
    np.testing.assert_allclose(seen, turned, rtol=0, atol=1e-9)
    for name in ("status", "flags"):
        once = np.asarray(getattr(first, name))
        np.testing.assert_array_equal(getattr(other, name), np.concatenate([once, once]), name)


def _guided(side, down=(-1.0, -1.0), limit=1.0, mu=1.0, **initial) -> jfric.Problem:
    """A body that a guide along y and a floor hold, under loads from start to end, linear in
    between."""

    def load(name, ends):
        return jfric.Load(name, jfric.PiecewiseLinear([0.0, 3.0], list(ends)))

    elements = {
        "friction": {"guide": jfric.Friction("y", limit=limit)},
        "contact": {"floor": jfric.Contact("y", "x", jfric.Coulomb(mu))},
        "load": {"side": load("x", side), "down": load("y", down)},
    }
    return _problem("xy", elements, 3.0, **initial)


_GUIDED_TIMES = np.array([0.0, 1.0, 2.5])


@each_flow
def test_a_floor_and_a_guide_hold_what_they_can_together(solver):
    """Pressed down by 1 N (mu = 1), the guide carries up to 1 N: side loads up to 2 N rest. Above
    them the floor's friction depends on what the guide carries, which is open."""
    for load in (0.25, 0.75, 1.5, -1.999, 2.0):
        s = jfric.simulate(_guided((load, load)), SOLVERS[solver], ts=_GUIDED_TIMES)
        assert s.status == Status.OK, load
        assert np.all(s.q == 0.0)
        (guide, floor), normal = s.lambda_t[1], s.lambda_n[1, 0]
        np.testing.assert_allclose([floor, guide + normal], [-load, 1.0], atol=1e-12)
        assert max(abs(guide) - 1.0, abs(floor) - normal) <= 1e-12
        assert (Flag.TIE in Flag(int(s.flags))) == (load == 2.0)
    # Beyond that, and pulled ever harder, which lets go at 2 N.
    for ends, at in (((2.001, 2.001), 0.0), ((3.0, 3.0), 0.0), ((0.0, 3.0), 2.0)):
        s = jfric.simulate(_guided(ends), SOLVERS[solver], ts=_GUIDED_TIMES)
        assert s.status == Status.INCONSISTENT
        assert Flag.SEVERAL_MOTIONS in Flag(int(s.flags))
        np.testing.assert_allclose(s.final.t, at, atol=1e-9)


@pytest.mark.slow
def test_random_loads_on_a_floor_and_a_guide_hold_where_a_linear_program_does():
    """The body rests exactly as long as any admissible forces are in equilibrium."""
    rng, several = np.random.default_rng(45), 0
    for _ in range(60):
        limit, mu = rng.integers(0, 7) / 2.0, rng.choice([0.25, 0.5, 1.0, 1.5])
        side, down = rng.integers(-6, 7, (2, 2)) / 2.0
        if rng.random() < 0.5:
            side[1], down[1] = side[0], down[0]
        case = _guided(side, down, limit, mu)
        s = jfric.simulate(case, SOLVERS["general"], ts=_GUIDED_TIMES)
        t, ends = _end_of_rest(limit, mu, side, down), float(s.final.t)
        assert s.status in (Status.OK, Status.INCONSISTENT)
        assert ends == 3.0 or ends >= t - 1e-6
        for at, q in zip(_GUIDED_TIMES[1:], s.q[1:], strict=True):
            if at <= t:
                assert np.all(q == 0.0)
            elif at > t + 1e-3 and at < ends:
                assert np.any(q != 0.0)
        several += 0.0 < t < 3.0 and ends < 3.0
    assert several > 3


def _end_of_rest(limit: float, mu: float, side, down) -> float:
    """Until when equilibrium is possible, at most 3 s; -1 if never. Unknown: the time, and the
    forces of guide, floor and its friction."""
    slope = np.array([side[1] - side[0], down[1] - down[0]]) / 3.0
    balance = np.array([[slope[0], 0.0, 0.0, 1.0], [slope[1], 1.0, 1.0, 0.0]])
    friction = np.array([[0.0, 0.0, -mu, 1.0], [0.0, 0.0, -mu, -1.0]])
    bounds = [(0.0, 0.0), (-limit, limit), (0.0, None), (None, None)]
    given = {"A_ub": friction, "b_ub": [0.0, 0.0], "A_eq": balance, "b_eq": [-side[0], -down[0]]}
    if linprog(np.zeros(4), **given, bounds=bounds).status != 0:
        return -1.0
    return linprog([-1.0, 0.0, 0.0, 0.0], **given, bounds=[(0.0, 3.0), *bounds[1:]]).x[0]


# A touch


def _touching(other_mass: bool) -> jfric.Problem:
    law = jfric.StaticDynamic(0.5, 0.3)
    elements = {
        "spring": jfric.Spring("x", k=1.0),
        "friction": jfric.Friction("x", law=law, N=2.0, belt=0.5),
    }
    return _problem("xy" if other_mass else "x", elements, 3.0)


DISTANCES = (1e-3, 1e-6, 1e-9, 1e-12, 1e-13, 1e-14, 1e-15)


@pytest.mark.parametrize(
    ("solver", "touched"),
    [
        ("runge-kutta", "limit"),
        pytest.param("runge-kutta", "velocity", marks=pytest.mark.slow),
        pytest.param("auto", "limit", marks=pytest.mark.slow),
        pytest.param("auto", "velocity", marks=pytest.mark.slow),
    ],
)
def test_a_touch_costs_no_more_than_some_steps(solver, touched):
    """A load that comes up to the limit of stick, and a belt up to the velocity of a body that it
    does not hold: near to either, no step tells the guard from zero."""
    load, limit, belt, v = jfric.Harmonic(1.0, 1.0), 1.0, 0.0, 0.0
    if touched == "velocity":
        load, limit, belt, v = 0.0, 0.0, jfric.Harmonic(0.5, 2.0), 0.5
    elements = {
        "friction": jfric.Friction("x", limit=limit, belt=belt),
        "load": jfric.Load("x", load),
    }
    moving = jfric.InitialState(q=0.0, v=v)
    ts = np.linspace(0.0, 4.0, 9)
    run = jfric.simulate(_problem("x", elements, 4.0, x=moving), SOLVERS[solver], ts=ts)
    assert run.status == Status.OK
    assert int(run.flags) & Flag.GRAZING
    assert int(run.final.steps) < 300
    np.testing.assert_allclose(run.q[:, 0], v * ts, atol=EXACT[solver])


#: Every kernel that can run the touch, with and without another mass.
TOUCHES = [
    pytest.param(kernel, flow, other_mass, marks=() if quick else pytest.mark.slow)
    for kernel, flow, other_mass, quick in (
        ("one-dof", "exact", False, True),
        ("general", "exact", False, False),
        ("general", "exact", True, True),
        ("general", "runge-kutta", False, True),
        ("general", "runge-kutta", True, False),
        ("lowered", "exact", False, False),
        ("lowered", "exact", True, False),
        ("lowered", "runge-kutta", False, False),
        ("lowered", "runge-kutta", True, False),
    )
]


@pytest.mark.slow
@pytest.mark.parametrize(("kernel", "flow", "other_mass"), TOUCHES)
def test_a_touch_is_decided_one_way_and_flagged(kernel, flow, other_mass):
    """The sliding velocity comes as near to zero as ``0.5 eps``; the motion jumps at eps = 0."""
    problem = _touching(other_mass)
    solver = jfric.EventDriven(kernel=kernel, flow=flow, adjoint="none", max_steps=2000)
    eps = np.array([*(-x for x in DISTANCES), 0.0, *reversed(DISTANCES)])

    @jax.jit
    @jax.vmap
    def run(q):
        changed = jfric.set_parameters(problem, {"initial.x.q": q})
        return jfric.simulate(changed, solver, ts=np.array([3.0]))

    runs = run(0.6 - 0.5 * (1.0 + eps))
    np.testing.assert_array_equal(runs.status, Status.OK)
    # What the flow resolves: rounding, or the tolerance of the integration.
    near = np.abs(eps) <= (2e-9 if flow == "runge-kutta" else 1.5e-12)
    sticks = near | (eps > 0)
    np.testing.assert_array_equal(runs.events.count, np.where(sticks, 2, 0))
    np.testing.assert_array_equal((runs.flags & Flag.GRAZING) != 0, near)
    np.testing.assert_array_equal(runs.differentiable, ~near)
    expected = np.where(sticks, 1.217649, 1.094996)
    np.testing.assert_allclose(runs.q[:, -1, 0], expected, atol=6e-4)


# A limit that is reached where a function of time breaks

#: A load just below the limit of 1 N, and what the error of the Runge-Kutta flow can tell from it.
BELOW, WELL_BELOW = 1.0 - 1e-9, 1.0 - 1e-6

#: Load by its values at 0, 1, 2, 3 s and constant after that, the normal force, and the place at 4
#: s of the body (1 kg; static coefficient 1, kinetic 0.5): reached and not passed, it stays.
_STEADY = (1.0, 1.0, 1.0, 1.0)
BREAKS = {
    "stays": ((0.0, 1.0, 1.0, 1.0), _STEADY, 0.0),
    "goes back": ((0.0, 1.0, 0.0, 0.0), _STEADY, 0.0),
    "goes back slowly": ((0.0, 1.0, 0.999, 0.999), _STEADY, 0.0),
    "backwards": ((0.0, -1.0, -1.0, 0.0), _STEADY, 0.0),
    "is reached twice": ((0.0, 1.0, -1.0, 1.0), _STEADY, 0.0),
    "normal force falls to it": (_STEADY, (2.0, 1.0, 1.0, 1.0), 0.0),
    "normal force falls and rises": (_STEADY, (2.0, 1.0, 2.0, 2.0), 0.0),
    "both fall": ((2.0, 1.0, 0.5, 0.5), (3.0, 1.0, 0.5, 0.5), 0.0),
    "starts there": ((1.0, 0.0, 1.0, 1.0), _STEADY, 0.0),
    "nearly": ((0.0, BELOW, 0.0, 0.0), _STEADY, 0.0),
    # From 1 s on: x'' = 0.5 + 0.5 (t - 1), from 2 s on 1.
    "goes on": ((0.0, 1.0, 1.5, 1.5), _STEADY, 0.5 / 2 + 0.5 / 6 + 2 * 0.75 + 2.0),
}


def _broken(load, normal, parts: int = 1, mirrored: bool = False) -> jfric.Problem:
    """``parts`` frictions that share what one has."""
    times = [0.0, 1.0, 2.0, 3.0]
    law, N = jfric.StaticDynamic(1.0, 0.5), np.asarray(normal) / parts
    friction = {
        f"f{i}": jfric.Friction("x", law, N=jfric.PiecewiseLinear(times, N)) for i in range(parts)
    }
    sign = -1.0 if mirrored else 1.0
    pull = jfric.Load("x", jfric.PiecewiseLinear(times, sign * np.asarray(load)))
    return _problem("x", {"friction": friction, "load": pull}, 4.0)


@pytest.mark.parametrize(
    ("solver", "parts"),
    [
        ("general", 1),
        pytest.param("general", 2, marks=pytest.mark.slow),
        pytest.param("auto", 1, marks=pytest.mark.slow),
        pytest.param("lowered", 1, marks=pytest.mark.slow),
        pytest.param("runge-kutta", 1, marks=pytest.mark.slow),
        pytest.param("runge-kutta", 2, marks=pytest.mark.slow),
    ],
)
def test_a_limit_reached_at_a_break_and_not_passed_holds(solver, parts):
    both = [(False, x) for x in BREAKS.values()] + [(True, x) for x in BREAKS.values()]
    below = WELL_BELOW if solver == "runge-kutta" else BELOW
    problems = [
        _broken([below if x == BELOW else x for x in load], N, parts, mirrored)
        for mirrored, (load, N, _) in both
    ]
    runs = _runs(problems, solver, np.array([1.0, 4.0]))
    np.testing.assert_array_equal(runs.status, Status.OK)
    expected = np.array([(-1.0 if mirrored else 1.0) * x for mirrored, (_, _, x) in both])
    np.testing.assert_allclose(runs.q[:, -1, 0], expected, rtol=0, atol=EXACT[solver])
    # Any smaller limit lets go.
    away = np.array([name == "nearly" for name in BREAKS] * 2)
    ends = np.asarray(runs.differentiable)
    np.testing.assert_array_equal(ends, away)


def _on_belt(times, levels) -> jfric.Problem:
    """A belt of 1 m/s draws a spring of 1 N/m to the limit of 1 N in 1 s."""
    friction = jfric.Friction("x", jfric.StaticDynamic(1.0, 0.5), N=1.0, belt=1.0)
    load = jfric.Load("x", jfric.Steps(times, levels))
    return _problem(
        "x",
        {"spring": jfric.Spring("x", k=1.0), "friction": friction, "load": load},
        2.0,
        x=jfric.InitialState(q=0.0, v=1.0),
    )


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["auto", _GENERAL, _RUNGE_KUTTA])
def test_a_limit_reached_where_the_load_steps(solver):
    """The load that then helps keeps the body on the belt; one that does not, or a little, lets go
    at once or where the spring has used it up."""
    levels = [0.0, -0.5, 0.5, 1.5]
    problems = [_on_belt([1.0], [0.0, level]) for level in levels]
    runs = _runs(problems, solver, np.array([1.5, 2.0]))
    np.testing.assert_array_equal(runs.status, Status.OK)
    let_go = np.array([1.0, 1.0, 1.5])
    np.testing.assert_allclose(runs.events.time[:3, 0], let_go, atol=1e-9)
    assert runs.events.count[3] == 0
    np.testing.assert_allclose(runs.q[3, :, 0], [1.5, 2.0], atol=EXACT[solver])
    assert not np.asarray(runs.differentiable).any()


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["general", _RUNGE_KUTTA])
def test_what_comes_to_rest_at_a_break_rests(solver):
    """A body that 0.5 N of friction stops after 1 s, where a load between the kinetic and the
    static limit begins to push it on, or to pull it back."""
    pushes = [0.0, 0.75, -0.75, 1.0, 1.25]
    problems = [
        _problem(
            "x",
            {
                "friction": jfric.Friction("x", jfric.StaticDynamic(1.0, 0.5), N=1.0),
                "load": jfric.Load("x", jfric.Steps([1.0], [0.0, push])),
            },
            3.0,
            x=jfric.InitialState(q=0.0, v=0.5),
        )
        for push in pushes
    ]
    runs = _runs(problems, solver, np.array([1.0, 3.0]))
    np.testing.assert_array_equal(runs.status, Status.OK)
    expected = 0.25 + np.array([0.0, 0.0, 0.0, 0.0, 0.5 * 0.75 * 4.0])
    np.testing.assert_allclose(runs.q[:, -1, 0], expected, atol=EXACT[solver])
    assert not np.asarray(runs.differentiable).any()


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["general", _RUNGE_KUTTA])
def test_a_limit_touched_by_a_smooth_load_holds(solver):
    """Static friction is not lost where a sine has its top at the limit; slightly above it is."""
    tops = np.array([1.0 - 1e-6, 1.0, 1.0 + 1e-6])
    problems = [
        _problem(
            "x",
            {
                "friction": jfric.Friction("x", jfric.StaticDynamic(1.0, 0.5), N=1.0),
                "load": jfric.Load("x", jfric.Harmonic(top, 1.0)),
            },
            4.0,
        )
        for top in tops
    ]
    runs = _runs(problems, solver, np.array([4.0]))
    np.testing.assert_array_equal(runs.status, Status.OK)
    np.testing.assert_array_equal(runs.differentiable, [True, False, True])
    # The Runge-Kutta flow cannot tell the top from what is above it by its error, and says so.
    holds = slice(2) if solver == "general" else slice(1)
    np.testing.assert_array_equal(runs.q[holds, -1, 0], 0.0)
    assert runs.q[2, -1, 0] > 0.1


# Motion that does not exist, or is not unique


@pytest.mark.slow
@each_solver
@pytest.mark.parametrize("coupled", [False, True])
def test_self_locking_limit(solver, coupled):
    """Friction takes back what the normal force does: at mu = 1 no motion exists."""
    ts = np.array([0.0, 1.0])

    def problem(mu):
        load = {"load": jfric.Load("y", -10.0)}
        moving = {"x": jfric.InitialState(q=0.0, v=1.0), "y": STILL}
        if not coupled:
            contact = jfric.Contact("y", {"x": 1.0, "y": 1.0}, jfric.Coulomb(mu))
            return _problem("xy", {"contact": contact} | load, 1.0, **moving)
        contact = jfric.Contact("y", "x", jfric.Coulomb(mu))
        mass = jfric.Matrices(M=((1.0, -1.0), (-1.0, 2.0)))
        elements = {"contact": contact} | load
        return jfric.Problem(("x", "y"), elements, matrices=mass, initial=moving, time=1.0)

    runs = _runs([problem(mu) for mu in (1.0 - 1e-7, 1.0, 1.0 + 1e-7)], solver, ts)
    expected = [Status.OK, Status.INCONSISTENT, Status.INCONSISTENT]
    np.testing.assert_array_equal(runs.status, expected)
    # Nothing is reported where there is no motion, or more than one.
    assert np.isnan(np.asarray(runs.q[1:])).all()
    # It stops at once: the normal force is 1e8 times the load.
    np.testing.assert_allclose(runs.q[0, -1, 0], 5e-9, rtol=1e-6)


@each_flow
def test_friction_of_a_normal_force_that_nobody_knows(solver):
    """Floor and guide share the load; how the floor's friction acts on sliding is open."""
    moving = jfric.InitialState(q=0.0, v=1.0)
    slides = _guided((0.0, 0.0), (-0.5, -0.5), mu=0.5, x=moving)
    run = jfric.simulate(slides, SOLVERS[solver], ts=_GUIDED_TIMES)
    assert run.status == Status.INCONSISTENT


# Impacts that accumulate, or happen at once


def _bouncing(heights: dict) -> jfric.Problem:
    elements = {
        "contact": {a: jfric.Contact(a, e=0.5) for a in heights},
        "load": {a: jfric.Load(a, -10.0) for a in heights},
    }
    start = {a: jfric.InitialState(q=h, v=0.0) for a, h in heights.items()}
    return _problem("".join(heights), elements, 6.0, **start)


@pytest.mark.slow
@each_solver
def test_rest_after_accumulating_impacts_is_recorded_where_it_begins(solver):
    """A ball from 5 m with e = 1/2 rests after 3 s."""
    run = jfric.simulate(_bouncing({"x": 5.0}), SOLVERS[solver])
    n = int(run.events.count)
    assert run.status == Status.OK
    assert int(run.flags) & Flag.ZENO
    times = np.asarray(run.events.time[:n])
    assert np.all(np.diff(times) > 0)
    assert times[-1] == pytest.approx(3.0, abs=1e-11)
    # The state of the record is that of its time.
    assert abs(float(run.events.q[n - 1, 0])) < 1e-15
    assert float(run.events.v[n - 1, 0]) == 0.0
    assert run.events.to_mode[n - 1] == Mode.CLOSED


@pytest.mark.slow
@each_kernel
def test_sequences_that_accumulate_together(solver):
    """Each has its own time: 3 s and, from 5.0000001 m, 3e-8 s later."""
    for height, later in ((5.0, 0.0), (5.0000001, 3e-8)):
        run = jfric.simulate(_bouncing({"x": 5.0, "y": height}), SOLVERS[solver])
        n = int(run.events.count)
        times = np.asarray(run.events.time[:n])
        assert np.all(np.diff(times) >= 0)
        np.testing.assert_allclose(times[-2:], [3.0, 3.0 + later], atol=2e-11)


@pytest.mark.slow
def test_the_limit_of_accumulation_is_an_option():
    """Impacts before the time that remains is 1e-6 and 1e-12 of what has passed."""
    counts = []
    for limit in (1e-6, 1e-12):
        solver = jfric.EventDriven(accumulation=limit, adjoint="none")
        counts.append(int(jfric.simulate(_bouncing({"x": 5.0}), solver).events.count))
    # The remaining time is 2 s after the first impact, and halves with each.
    assert counts == [21, 41]
    with pytest.raises(jfric.ProblemError, match="accumulation: found 0"):
        jfric.simulate(_bouncing({"x": 5.0}), jfric.EventDriven(accumulation=0.0))


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["auto", _GENERAL, _LOWERED])
def test_a_hundred_thousand_impacts_without_drift(solver):
    """An elastic oscillator against a stop, in its 100,001st flight, beside its closed form."""
    omega, offset = 1000.0, 1e-3
    spring = jfric.Spring("x", k=omega**2, x0=-offset)
    elements = {"spring": spring, "contact": jfric.Contact("x", e=1.0)}
    problem = _problem("x", elements, 1.0, x=jfric.InitialState(q=0.0, v=1.0))
    flights = 100_000.25
    end = flights * (0.5 * math.pi / omega)
    adjoint = "reverse" if solver == "general" else "none"
    kernel = "lowered" if solver == "lowered" else "auto"
    settings = jfric.EventDriven(adjoint=adjoint, kernel=kernel, max_steps=250_000, max_events=0)
    run = jfric.simulate(problem, settings, ts=np.array([end]), end=end)
    assert run.status == Status.OK
    # x = -offset + offset cos + sin / omega, and again from each impact on: a quarter turn each.
    phase = 0.25 * 0.5 * math.pi
    expected = -offset + offset * math.cos(phase) + math.sin(phase) / omega
    assert float(run.q[0, 0]) == pytest.approx(expected, abs=1e-12)


@pytest.mark.slow
def test_a_foot_that_the_impact_of_another_lifts_is_a_second_change():
    """A rod turns about its left foot, which slides: the blow on the right one, (1 + e) times what
    it loses, lifts the left one as well."""
    feet = {
        "left": jfric.Contact({"y": 1.0, "phi": -1.0}, "x", jfric.Coulomb(0.1)),
        "right": jfric.Contact({"y": 1.0, "phi": 1.0}, gap=0.2, e=0.5),
    }
    problem = jfric.Problem(
        {"x": "translation", "y": "translation", "phi": "rotation"},
        {
            "mass": {f"m{a}": jfric.Mass(a, m) for a, m in (("x", 1.0), ("y", 1.0), ("phi", 2.0))},
            "contact": feet,
            "load": jfric.Load("y", -9.0),
        },
        initial={a: jfric.InitialState(v=v) for a, v in (("x", 1.0), ("y", -1.0), ("phi", -1.0))},
        time=0.12,
    )
    run = jfric.simulate(problem, SOLVERS["general"])
    rows = run.event_table()
    assert [(r["contact"], r["from"], r["to"], r["impact"]) for r in rows] == [
        ("contact.left", "slip+", "open", False),
        ("contact.right", "open", "open", True),
    ]
    # Both fall by 3 m/s^2 over 0.1 m. Masses of 1 and 2: 3/2 (1 + e)/(3/2) of the speed of the
    # right foot, of which y takes all and the turn a half.
    speed = math.sqrt(1.0 + 2.0 * 3.0 * 0.1)
    blow = 1.5 * 2.0 * speed / 1.5
    np.testing.assert_allclose(rows[0]["v"][1:], [-speed + blow, -speed + 0.5 * blow], atol=1e-12)
    assert Flag(int(run.flags)) == Flag.SIMULTANEOUS


# Energies that are known inside a run only


@pytest.mark.slow
def test_impacts_that_gain_energy_are_an_option():
    """Newton's restitution with friction: a rod's tip leaves faster than it came (Kane)."""
    normal, tangent = {"y": 1.0, "a": -0.5}, {"x": 1.0, "a": 1.0}
    masses = {"x": 1.0, "y": 1.0, "a": 0.3}
    problem = jfric.Problem(
        tuple(masses),
        {
            "mass": {k: jfric.Mass(k, m) for k, m in masses.items()},
            "contact": jfric.Contact(normal, tangent, jfric.Coulomb(0.5), e=0.9),
        },
        initial={
            "x": jfric.InitialState(q=0.0, v=0.5),
            "y": jfric.InitialState(q=0.0, v=-1.0),
            "a": STILL,
        },
        time=0.01,
    )
    stopped = jfric.simulate(problem, jfric.EventDriven(adjoint="none"))
    assert stopped.status == Status.IMPACT_ENERGY
    run = jfric.simulate(problem, jfric.EventDriven(adjoint="none", energy_gain="allow"))
    assert run.status == Status.OK
    assert int(run.flags) & Flag.ENERGY_GAIN
    gain = 0.5 * (np.array(list(masses.values())) @ np.asarray(run.final.v) ** 2 - 0.25 - 1.0)
    assert gain > 0
    assert float(run.final.energy_gained) == pytest.approx(gain, rel=1e-9)
    with pytest.raises(jfric.ProblemError, match="energy_gain: found 'alow'"):
        jfric.simulate(problem, jfric.EventDriven(energy_gain="alow"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mu", "status"),
    [pytest.param(0.5, Status.INCONSISTENT, marks=pytest.mark.slow), (0.0, Status.OK)],
)
def test_an_impulse_that_two_contacts_share(mu, status):
    """Two stops at one place, one of them rough: how far it slows the sliding down is open."""
    elements = {
        "contact": {
            "rough": jfric.Contact("x", "y", jfric.Coulomb(mu)),
            "smooth": jfric.Contact("x"),
        }
    }
    start = {
        "x": jfric.InitialState(q=0.5, v=-1.0),
        "y": jfric.InitialState(q=0.0, v=1.0),
    }
    run = jfric.simulate(_problem("xy", elements, 1.0, **start), SOLVERS["general"])
    assert run.status == status


@pytest.mark.slow
@each_solver
def test_a_limit_that_vanishes_with_its_first_derivatives_is_watched(solver):
    """Friction without a normal force, and a chain of springs that passes a ramp on: the force that
    would hold the body begins with the third power of time, or a higher one."""
    elements = {
        "friction": jfric.Friction("x", jfric.Coulomb(1.0), N=0.0),
        "spring": {
            "a": jfric.Spring(("x", "y"), k=1.0),
            "b": jfric.Spring(("y", "z"), k=1.0),
        },
        "load": jfric.Load("z", jfric.PiecewiseLinear([0.0, 1.0], [0.0, 1.0])),
    }
    ts = np.linspace(0.0, 1.0, 5)
    run = jfric.simulate(_problem("xyz", elements, 1.0), SOLVERS[solver], ts=ts)
    assert run.status == Status.OK
    del elements["friction"]
    free = jfric.simulate(_problem("xyz", elements, 1.0), SOLVERS["general"], ts=ts)
    np.testing.assert_allclose(run.q, free.q, atol=1e-9)


# Friction that can do nothing


@pytest.mark.slow
@each_kernel
def test_what_sticks_to_a_belt_sticks_on_while_other_friction_reverses(solver):
    """A belt that swings carries a body over the ground, whose friction reverses with it. With
    static limits other motions would be possible, too; rounding must not choose one of them."""
    rng = np.random.default_rng(0)
    count, outputs = (64, 41) if solver == "general" else (8, 9)
    sizes = rng.uniform((0.5, 0.2, 1.0, 1.0), (2.0, 0.5, 3.0, 5.0), (count, 4))
    problems = []
    for m, speed, omega, N in sizes:
        frictions = {
            "ground": jfric.Friction({"x": 0.66}, jfric.StaticDynamic(0.5, 0.4), N=N),
            "belt": jfric.Friction(
                {"x": 1.48}, jfric.StaticDynamic(0.6, 0.3), N=4.0, belt=jfric.Harmonic(speed, omega)
            ),
        }
        elements = {"friction": frictions, "mass": {"mx": jfric.Mass("x", m)}}
        problems.append(_problem("x", elements, 10.0))
    found = _runs(problems, solver, np.linspace(0.0, 10.0, outputs))
    m, speed, omega, N = sizes.T
    # What the belt gives, and what it has to at most, in units of its own direction.
    carries = 1.001 * (m * speed / 1.48 * omega + 0.66 * 0.4 * N) < 1.48 * 0.6 * 4.0
    assert carries.sum() > count // 2
    assert not np.asarray(found.status).any()
    modes, flags = np.asarray(found.mode)[carries, 1:, 1], np.asarray(found.flags)[carries]
    assert (modes[:, outputs // 4 :] == Mode.STICK).all()
    assert not (flags & int(Flag.SIMULTANEOUS)).any()
    velocity = np.asarray(found.v)[carries, outputs // 4 + 1 :, 0]
    t = np.asarray(found.ts)[carries, outputs // 4 + 1 :]
    expected = (speed[carries, None] / 1.48) * np.sin(omega[carries, None] * t)
    np.testing.assert_allclose(velocity, expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("arm", [0.2, -0.5, 2.0])
@pytest.mark.parametrize("load", [-1.0, 1.0])
def test_a_lever_whose_tip_rubs_as_it_lands(load, arm):
    """Reaction and friction turn the lever about the same axis: the tip lands and stays, or is
    lifted again, unless friction alone can hold it (mu times the ratio of the arms above 1)."""
    elements = {
        "mass": jfric.Mass("arm", 1.0),
        "load": jfric.Load("arm", load),
        "contact": jfric.Contact({"arm": 0.5}, {"arm": arm}, 0.3, gap=0.1),
    }
    start = {"arm": jfric.InitialState(0.0, -1.0)}
    problem = jfric.Problem({"arm": "rotation"}, elements, initial=start, time=3.0)
    _lands(jfric.simulate(problem), load, 0.3 * abs(arm) / 0.5 < 1)


@pytest.mark.parametrize("load", [-1.0, 1.0])
def test_coordinates_that_a_joint_ties_rub_as_they_land(load):
    """As the lever, with the ratio of the arms, 1, found from the joint."""
    elements = {
        "mass": {"a": jfric.Mass("a", 1.5), "b": jfric.Mass("b", 1.5)},
        "load": jfric.Load("b", 1.875 * load),
        "contact": jfric.Contact({"b": 0.5}, "a", 0.25, gap=0.1),
        "joint": jfric.Joint("a - 0.5*b"),
    }
    start = {"a": jfric.InitialState(0.0, -0.5), "b": jfric.InitialState(0.0, -1.0)}
    problem = jfric.Problem(["a", "b"], elements, initial=start, time=3.0)
    _lands(jfric.simulate(problem), load, True)


def _lands(s, load, lifts):
    """At -0.2 with an inertia of 1 from a velocity of -1, and stays or is lifted by the load."""
    when = (1 - np.sqrt(1 - 0.4 * load)) / load
    if load < 0:
        assert s.outcome() == "ok"
        np.testing.assert_allclose(s.events.time[0], when, rtol=1e-12)
        np.testing.assert_allclose([s.final.q[-1], s.final.v[-1]], [-0.2, 0.0], atol=1e-12)
    elif lifts:
        assert s.outcome() == "ok"
        np.testing.assert_allclose(s.final.q[-1], -0.2 + 0.5 * (3 - when) ** 2, rtol=1e-10)
    else:
        assert s.status == Status.INCONSISTENT
