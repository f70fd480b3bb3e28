"""Programs taken apart into scalars: the same numbers, derivatives and decisions."""

from __future__ import annotations

import equinox.internal as eqxi
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jfric
from jfric.numerics.loops import once
from jfric.numerics.lowering import Constants, Lowered, Scalars, constants_of, emission


def _movements(a, b):
    c = jnp.concatenate([a, b[:, :1].T, a[::-1]])[1:, None, :].repeat(2, axis=1)
    c = c.transpose(2, 0, 1).reshape(-1, 2) * jnp.arange(2.0)
    return c.at[1, :].set(7.0).at[jnp.array([0, 3]), 1].add(b[0, :2]), jnp.pad(a, ((1, 0), (0, 2)))


def _sums(a, b):
    return a @ b, jnp.max(a, axis=0), jnp.argmax(a, axis=1), jnp.sum(b), jnp.any(a > b.T, axis=1)


def _choices(a, b):
    k = jnp.argmin(a[0])
    row = jax.lax.dynamic_index_in_dim(b, k + 5, keepdims=False)
    c = jax.lax.cond(a[0, 0] > 0, lambda: jnp.sin(a[0]), lambda: b[:, 0] * 2.0)
    several = jnp.argsort(jnp.array([3, 1, 2])) + 0 * k
    columns = b[:, jnp.stack([k, jnp.argmax(a[1])])], b[several[::-1] * k // 2]
    parts = jax.vmap(lambda x: jax.lax.dynamic_slice(x, (k,), (2,)))(b)
    written = jax.lax.dynamic_update_slice(b, a[:, :2], (k + 1, 1))
    return c, b[k], row, *columns, parts, written, jnp.where(a > 0.2, a, jnp.sqrt(jnp.abs(a)))


def _scans(a, b):
    falling = jax.lax.scan(lambda c, x: (c * x, c + x[0]), jnp.ones(2), b, reverse=True)
    rows = jax.lax.map(lambda x: jnp.polyval(x, a[0]), a)
    return (
        *falling,
        rows,
        jnp.einsum("ij,kij->ik", a, jnp.stack([b.T, a])),
        jax.vmap(jnp.dot)(a, b.T),
    )


def _loops(a, b):
    halved = jax.lax.while_loop(lambda x: jnp.sum(x * x) > 0.1, lambda x: 0.5 * x, a)
    power = jax.lax.fori_loop(0, 4, lambda i, x: x @ b, a)
    return halved, power, jnp.linalg.solve(b + 4.0 * jnp.eye(3), a.T)


def _round(function):
    """A loop's round whose state is what ``function`` gives."""

    def one(given, state, buffers):
        a, b = given
        found = function(a, b)
        total, _ = state
        first = sum(jnp.abs(1.0 * x).reshape(-1) @ jnp.arange(1.0, x.size + 1.0) for x in found)
        buffers = buffers.at[state[1] % 50].set(first)
        return (total + first, state[1] + 1), buffers

    return one


@pytest.mark.parametrize(
    "function",
    [_movements, _sums, pytest.param(_choices, marks=pytest.mark.slow), _scans, _loops],
)
def test_rounds_and_their_derivatives_are_the_same(function):
    rng = np.random.default_rng(3)
    a = jnp.asarray(rng.normal(size=(2, 3)))
    b = jnp.asarray(rng.normal(size=(3, 3) if function is _loops else (3, 2)))
    if function is _choices:
        b = jnp.asarray(rng.normal(size=(3, 3)))
    one = _round(function)
    state, buffers = (jnp.asarray(1.0), jnp.asarray(3)), jnp.zeros(50)
    known = [[None] * a.size, [None] * b.size]
    low = Lowered(one, (a, b), state, buffers, known)

    def lowered(a, b):
        def goes_on(tested, state):
            return eqxi.unvmap_any(state[1] < tested[0])

        entries, rest = low.repeat(
            goes_on, [jnp.asarray(5)], low.split((a, b)), low.split(state), buffers
        )
        return (*low.join(entries), rest)

    def plain(a, b):
        new, rest = one((a, b), *one((a, b), state, buffers))
        return (*new, rest)

    first, rest = low(low.split((a, b)), low.split(state), buffers)
    for x, y in zip(
        (*low.join(first), rest), jax.tree.leaves(one((a, b), state, buffers)), strict=True
    ):
        np.testing.assert_allclose(x, y, rtol=1e-12)

    for x, y in zip(jax.jit(lowered)(a, b), plain(a, b), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-12)
    batch = jnp.stack([a, 2.0 * a, a - 1.0])
    for x, y in zip(
        jax.vmap(lowered, (0, None))(batch, b), jax.vmap(plain, (0, None))(batch, b), strict=True
    ):
        np.testing.assert_allclose(x, y, rtol=1e-12)
    direction = (jnp.ones_like(a), jnp.zeros_like(b))

    def slope(f):
        return lambda a: jax.jvp(f, (a, b), direction)[1][0]

    np.testing.assert_allclose(slope(lowered)(a), slope(plain)(a), rtol=1e-10)
    # Six directions or more are several programs; the buffer has derivatives, too.
    for batched in (lambda f: f, lambda f: jax.vmap(f, (0, None))):
        x = a if batched(slope) is slope else batch
        found, expected = (
            jax.jit(batched(jax.jacfwd(lambda a, b, f=f: f(a, b)[::2])))(x, b)
            for f in (lowered, plain)
        )
        for y, z in zip(found, expected, strict=True):
            np.testing.assert_allclose(y, z, rtol=1e-10, atol=1e-12)
    if function is _sums:
        second = [jax.jvp(slope(f), (a,), (jnp.ones_like(a),))[1] for f in (lowered, plain)]
        np.testing.assert_allclose(*second, rtol=1e-10, atol=1e-12)


def _ends(f):
    """First and second derivatives of ``f`` at three points, batches within and without."""
    points = jnp.array([[0.5, 0.7], [1.0, 1.4], [-0.5, -0.3]])
    x, dx, along = points[0], jnp.array([0.3, 1.0]), jnp.ones_like(points)

    def slope(x):
        return jax.jvp(f, (x,), (dx,))[1]

    return (
        jax.jacfwd(jax.vmap(f))(points),
        jax.vmap(jax.jacfwd(f))(points),
        jax.jvp(jax.vmap(f), (points,), (along,))[1],
        jax.jacfwd(lambda p: jax.jvp(jax.vmap(f), (p,), (along,))[1])(points),
        jax.vmap(jax.jacfwd(jax.jacfwd(f)))(points),
        jax.jvp(slope, (x,), (dx,))[1],
        jax.jacfwd(slope)(x),
    )


def test_batches_and_directions_nest_in_any_order():
    state, buffer = (jnp.array([0.1, 0.2]), jnp.asarray(0)), jnp.zeros(5)

    def one(given, state, buffer):
        (a,), (x, n) = given, state
        return (jnp.sin(x) * a + x[::-1], n + 1), buffer.at[n].set(jnp.sum(x * a))

    low = Lowered(one, (jnp.ones(2),), state, buffer, [[None] * 2])

    def lowered(a):
        def goes_on(_, state):
            return eqxi.unvmap_any(state[1] < 3)

        found, rest = low.repeat(goes_on, [], low.split((a,)), low.split(state), buffer)
        return low.join(found)[0], rest

    def plain(a):
        x, rest = state, buffer
        for _ in range(3):
            x, rest = one((a,), x, rest)
        return x[0], rest

    found, expected = jax.jit(lambda: _ends(lowered))(), _ends(plain)
    for y, z in zip(*map(jax.tree.leaves, (found, expected)), strict=True):
        np.testing.assert_allclose(y, z, rtol=1e-13, atol=1e-15)


@pytest.mark.slow
def test_scalars_keep_derivatives_of_both_kinds_and_batches():
    rng = np.random.default_rng(5)
    given = {"D": jnp.asarray(rng.normal(size=(2, 2))) + 3.0 * jnp.eye(2), "n": jnp.asarray(2)}

    def function(given, x, mode):
        inverse = jnp.linalg.inv(given["D"])
        y = inverse @ x + jax.lax.stop_gradient(x) * given["n"]
        rounds = jax.lax.while_loop(lambda k: jnp.sum(k) < 5.0, lambda k: 2.0 * k, jnp.abs(y))
        held = jnp.where(mode == 1, jax.lax.cond(x[0] > 0, jnp.sin, jnp.cos, y), y)
        return {"y": y, "held": held, "mode": mode + 1, "rounds": rounds, "none": jnp.zeros((0,))}

    xs, modes = jnp.asarray(rng.normal(size=(6, 2))), jnp.asarray([0, 1, 0, 1, 2, 1])
    made = Scalars(function, given, xs[0], modes[0])
    everything = made.part(lambda r: r)
    found = jax.vmap(lambda x, m: everything(made.prepare(given), x, m))(xs, modes)
    expected = jax.vmap(lambda x, m: function(given, x, m))(xs, modes)
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, rtol=1e-13, err_msg=name)
        assert found[name].dtype == values.dtype

    held = made.part(lambda r: (r["held"], r["y"]))
    y = made.part(lambda r: r["y"])
    assert [part.uses(i) for part in (held, y) for i in (1, 2)] == [True, True, True, False]

    def lowered(given, x):
        return held(made.prepare(given), x, modes[1])

    def plain(given, x):
        r = function(given, x, modes[1])
        return r["held"], r["y"]

    D = given["D"]
    for derivative in (jax.jacfwd, jax.jacrev):
        a, b = (
            derivative(lambda D, x, f=f: f({**given, "D": D}, x), (0, 1)) for f in (lowered, plain)
        )
        for found, expected in zip(*map(jax.tree.leaves, (a(D, xs[1]), b(D, xs[1]))), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)


def test_without_kernels_derivatives_are_those_of_the_operations():
    """What has a derivative of its own keeps it, and what is there for the compiler stays."""

    @jax.custom_jvp
    def own(x):
        return jnp.sin(x)

    own.defjvp(lambda primals, tangents: (own(*primals), 3.0 * tangents[0]))

    def one(given, x, buffer):
        y = once(given[0] @ x, x[0] < 9.0)
        y = jnp.where(y > 0, own(y), jax.lax.stop_gradient(y) * x)
        return y, buffer.at[0].set(jnp.sum(y))

    rng = np.random.default_rng(6)
    D, buffer = jnp.asarray(rng.normal(size=(2, 2))), jnp.zeros((60,))
    xs, dxs = jnp.asarray(rng.normal(size=(2, 5, 2)))
    low = Lowered(one, [D], xs[0], buffer, [[None] * 4], kernels=False)

    def lowered(x):
        state, filled = low(low.split([D]), low.split(x), buffer)
        return low.join(state), filled

    # The four products of D x, which only the barrier uses, are computed inside of it: its results
    # are not copied. Two are left.
    outside = [eqn.primitive.name for eqn in jax.make_jaxpr(lowered)(xs[0]).eqns]
    assert "cond" in outside
    assert outside.count("mul") == 2

    def derivative(f):
        return jax.jit(jax.vmap(lambda x, dx: jax.jvp(f, (x,), (dx,))))(xs, dxs)

    found, expected = derivative(lowered), derivative(lambda x: one([D], x, buffer))
    for a, b in zip(*map(jax.tree.leaves, (found, expected)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-15)


def test_what_the_structure_makes_zero_costs_nothing():
    def assembled(k):
        return [jnp.diag(k), jnp.outer(k, jnp.array([1.0, 0.0]))]

    known = constants_of(assembled, jnp.ones(2))
    assert [x is None for x in known[0]] == [True, False, False, True]
    assert [x is None for x in known[1]] == [True, False, True, False]
    matrices = [jnp.diag(jnp.array([2.0, 3.0]))]
    x = jnp.array([1.0, -1.0])

    def operations(known) -> int:
        def step(given, x, _):
            return given[0] @ x, ()

        return Lowered(step, matrices, x, (), known).operations

    assert operations([[None] * 4]) == 6  # four products and two sums
    assert operations([known[0]]) == 2


def test_loops_keep_what_the_structure_makes_zero():
    matrix, x = jnp.diag(jnp.array([2.0, 3.0])), jnp.array([1.0, -1.0])

    def step(given, x, _):
        def body(carry):
            count, y = carry
            return count + 1 + given[0][0, 1].astype(int), given[0] @ y

        def test(carry):
            return (carry[0] < 3) & (given[0][1, 0] < 1.0)

        return jax.lax.while_loop(test, body, (0, x))[1], ()

    def lowered(known):
        low = Lowered(step, [matrix], x, (), known)
        (loop,) = (n for n in low.branch.graph.nodes if n.op == "loop")
        found = low.join(low(low.split([matrix]), low.split(x), ())[0])
        np.testing.assert_allclose(found, [8.0, -27.0], rtol=1e-14)
        inner = [loop.params[name] for name in ("body", "test")]
        return [len(b.graph.nodes) - len(b.inputs) for b in inner]

    known = [constants_of(jnp.diag, jnp.ones(2))[0]]
    # Six operations of the product, two sums and a conversion; two comparisons and their join.
    assert lowered([[None] * 4]) == [9, 3]
    assert lowered(known) == [3, 1]


def test_constants_are_found_by_their_arrays():
    x, y = jnp.zeros(2), jnp.ones(2)
    traced = []

    def function(x, y):
        constants = Constants([x], [[None, np.asarray(0.0)]])
        traced.extend([constants.of(x)[1] is None, constants.of(y)[1] is None])
        return x + y

    jax.make_jaxpr(function)(x, y)
    assert traced == [False, True]
    assert Constants([], []).of(y)[0] == 1.0  # no part of a trace


def _chain():
    return jfric.Problem(
        ("x", "y"),
        {
            "mass": {"x": jfric.Mass("x", 1.0), "y": jfric.Mass("y", 2.0)},
            "spring": {"a": jfric.Spring("x", 50.0), "b": jfric.Spring(("x", "y"), 30.0)},
            "friction": {
                "a": jfric.Friction("x", law=jfric.StaticDynamic(0.4, 0.3), N=10.0),
                "b": jfric.Friction("y", law=jfric.Coulomb(0.2), N=10.0),
            },
            "load": jfric.Load("y", jfric.Harmonic(20.0, 5.0)),
        },
        initial={a: jfric.InitialState(q=0.0, v=0.0) for a in ("x", "y")},
        time=3.0,
    )


def _ball():
    return jfric.Problem(
        ("x", "z"),
        {
            "mass": {"x": jfric.Mass("x", 1.0), "z": jfric.Mass("z", 1.0)},
            "contact": jfric.Contact("z", "x", jfric.Coulomb(0.3), e=0.5),
            "load": {"g": jfric.Load("z", -9.81), "f": jfric.Load("x", jfric.Harmonic(4.0, 3.0))},
        },
        initial={"x": jfric.InitialState(q=0.0, v=1.0), "z": jfric.InitialState(q=0.2, v=0.0)},
        time=2.0,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("problem", "path"), [(_chain(), "friction.a.mu_d"), (_ball(), "contact.mu")]
)
def test_the_lowered_pass_decides_as_the_general_one(problem, path):
    ts = np.linspace(0.0, float(problem.time.end), 21)

    def run(kernel):
        solver = jfric.EventDriven(kernel=kernel, adjoint="forward", max_events=64)

        def one(mu, ts=ts):
            return jfric.simulate(jfric.set_parameters(problem, {path: mu}), solver, ts=ts)

        def end(mu):
            return one(mu).q[-1]

        both = jax.jit(lambda x: (jax.vmap(one)(x), jax.vmap(jax.jacfwd(end))(x)))
        return both(jnp.linspace(0.1, 0.35, 6))

    (general, slopes), (lowered, own) = run("general"), run("lowered")
    assert (np.asarray(general.status) == 0).all()
    for name in ("status", "flags", "steps", "mode"):
        np.testing.assert_array_equal(getattr(lowered, name), getattr(general, name))
    np.testing.assert_array_equal(lowered.events.count, general.events.count)
    np.testing.assert_allclose(lowered.events.time, general.events.time, rtol=1e-9)
    for name in ("q", "v", "a", "lambda_t", "lambda_n"):
        np.testing.assert_allclose(getattr(lowered, name), getattr(general, name), atol=1e-9)
    np.testing.assert_allclose(own, slopes, rtol=1e-6, atol=1e-8)


def _swinging():
    """A pendulum under a load that rubs."""
    return jfric.Problem(
        ("x",),
        {
            "mass": jfric.Mass("x", 1.0),
            "pendulum": jfric.Pendulum("x", 1.0, 0.3),
            "friction": jfric.Friction("x", law=jfric.Coulomb(0.1), N=3.0),
            "load": jfric.Load("x", jfric.Harmonic(2.0, 5.0)),
        },
        initial={"x": jfric.InitialState(q=1.0, v=0.0)},
        time=3.0,
    )


def _pulled():
    """Two masses on hardening springs, friction by velocity, a stop; one is drawn along a belt."""
    return jfric.Problem(
        ("x", "y"),
        {
            "mass": {"x": jfric.Mass("x", 1.0), "y": jfric.Mass("y", 2.0)},
            "polynomial_spring": {
                "a": jfric.PolynomialSpring("x", [50.0, 0.0, 30.0]),
                "b": jfric.PolynomialSpring(("x", "y"), [30.0, 0.0, 20.0]),
            },
            "stop": jfric.Stop("x", k=500.0, gap=0.1),
            "friction": {
                "a": jfric.Friction("x", law=jfric.StaticDynamic(0.4, 0.3), N=10.0, belt=0.1),
                "b": jfric.Friction("y", law=jfric.Stribeck(0.3, 0.2, 0.5), N=10.0),
            },
            "load": jfric.Load("y", jfric.Harmonic(20.0, 5.0)),
        },
        initial={a: jfric.InitialState(q=0.0, v=0.0) for a in ("x", "y")},
        time=1.5,
    )


def _thrown():
    """A block with drag that falls on a belt, bounces, and sticks to it at last."""
    return jfric.Problem(
        ("x", "z"),
        {
            "mass": {"x": jfric.Mass("x", 1.0), "z": jfric.Mass("z", 1.0)},
            "drag": jfric.Drag("z", 0.1),
            "contact": jfric.Contact("z", "x", jfric.VelocityWeakening(0.3, 2.0), e=0.4, belt=0.2),
            "load": jfric.Load("z", -9.81),
        },
        initial={"x": jfric.InitialState(q=0.0, v=1.0), "z": jfric.InitialState(q=0.1, v=0.0)},
        time=1.5,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("problem", "path", "values"),
    [
        (_swinging(), "friction.mu", (0.1, 0.3)),
        (_pulled(), "friction.a.mu_d", (0.1, 0.35)),
        (_thrown(), "contact.mu_s", (0.2, 0.4)),
    ],
    ids=["swinging", "pulled", "thrown"],
)
def test_the_lowered_runge_kutta_step_is_the_general_one(problem, path, values):
    """Errors of a step below rounding decide how long the next one is: numbers of passes may
    differ, and so does what the tolerance leaves open."""
    ts = np.linspace(0.0, float(problem.time.end), 9)

    def run(kernel):
        solver = jfric.EventDriven(kernel=kernel, adjoint="forward", max_events=32)

        def one(x):
            found = jfric.simulate(jfric.set_parameters(problem, {path: x}), solver, ts=ts)
            return (found.final.q, found.final.v), found

        both = jax.vmap(jax.jacfwd(one, has_aux=True))
        return jax.jit(both)(jnp.linspace(*values, 4))

    (slopes, general), (own, lowered) = run("general"), run("lowered")
    assert (np.asarray(general.status) == 0).all()
    assert (np.asarray(general.events.count) >= 1).all()
    for name in ("status", "flags", "mode"):
        np.testing.assert_array_equal(getattr(lowered, name), getattr(general, name))
    np.testing.assert_array_equal(lowered.events.count, general.events.count)
    np.testing.assert_array_equal(lowered.events.to_mode, general.events.to_mode)
    np.testing.assert_allclose(lowered.events.time, general.events.time, rtol=1e-10)
    for name in ("q", "v"):
        found, expected = getattr(lowered.final, name), getattr(general.final, name)
        np.testing.assert_allclose(found, expected, atol=1e-10)
    for found, expected in zip(own, slopes, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-9)


def _rubbed():
    return jfric.Problem(
        ("x",),
        {
            "mass": jfric.Mass("x", 1.0),
            "spring": jfric.Spring("x", 50.0),
            "friction": jfric.Friction("x", law=jfric.StaticDynamic(0.4, 0.3), N=10.0),
            "load": jfric.Load("x", jfric.Harmonic(20.0, 5.0)),
        },
        time=1.5,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("problem", "path"),
    [
        (_rubbed(), "friction.mu_d"),
        pytest.param(_chain(), "friction.a.mu_d", marks=pytest.mark.slow),
    ],
)
def test_sweeps_take_the_lowered_pass(problem, path):
    values = {path: jfric.Range(0.1, 0.35, 8)}
    problem = jfric.set_parameters(problem, {"time.end": 1.5})
    observed = ["final.x", f"max.{problem.axes[-1]}", "event_count"]
    tables = [
        jfric.sweep(problem, values, observe=observed, solver=jfric.EventDriven(kernel=kernel))
        for kernel in ("general", "lowered")
    ]
    for name in observed:
        np.testing.assert_allclose(tables[1][name], tables[0][name], rtol=1e-10)


@pytest.mark.parametrize(
    ("solver", "problem", "says"),
    [
        (jfric.EventDriven(kernel="lowerd"), _chain(), "did you mean 'lowered'"),
        (jfric.EventDriven(kernel="one-dof"), _chain(), "is for one degree of freedom"),
        (jfric.EventDriven(kernel="lowered", adjoint="reverse"), _chain(), "forward derivatives"),
    ],
)  # fmt: skip
def test_a_kernel_that_does_not_fit_is_refused(solver, problem, says):
    with pytest.raises(jfric.ProblemError, match=says):
        jfric.simulate(problem, solver, ts=np.array([1.0]))


def test_a_program_with_many_outputs_is_no_longer_than_one_with_few():
    """Outputs of a pass are arrays: written out one by one, 2,001 of them compiled for 24 s."""
    elements = {
        "mass": jfric.Mass("u", 1.0),
        "spring": jfric.Spring("u", 1.0),
        "friction": jfric.Friction("u", law=jfric.Coulomb(0.1), N=1.0),
    }
    problem = jfric.Problem(("u",), elements, initial={"u": jfric.InitialState(1.0)}, time=1.0)

    def lines(count):
        ts = jnp.linspace(0.0, 1.0, count)
        run = jax.jit(lambda p: jfric.simulate(p, jfric.EventDriven(kernel="one-dof"), ts=ts).q)
        return len(run.lower(problem).as_text().splitlines())

    assert lines(2001) <= 1.05 * lines(300)


def _operands(jaxpr) -> list[int]:
    """Numbers of arrays of the kernels of a program."""
    found = []
    for equation in jaxpr.eqns:
        if equation.primitive.name == "reduce_window":
            found.append(len(equation.invars) // 2)
        for value in equation.params.values():
            inner = getattr(value, "jaxpr", value)
            if equation.primitive.name != "reduce_window" and hasattr(inner, "eqns"):
                found += _operands(inner)
    return found


@pytest.mark.parametrize("shift", [1, 73], ids=["a chain", "a mesh"])
def test_kernels_of_many_arrays_are_cut(shift, monkeypatch):
    """Where the compiler does not tell so many arrays apart, loops stay scalar or overflow its
    stack: a block on two feet in a batch of 256 ended the process."""
    count, most = 180, 200
    monkeypatch.setattr(emission, "kernel_arrays", lambda: most)

    def one(given, state, buffers):
        rate, x = given[0], state
        for _ in range(3):
            x = rate * jnp.roll(x, shift) + jnp.sin(x)
        return x, buffers

    state, rate = jnp.linspace(0.0, 1.0, count), jnp.linspace(0.1, 0.2, count)
    low = Lowered(one, (rate,), state, (), [[None] * count])

    def lowered(x):
        return low.join(low(low.split((rate,)), low.split(x), ())[0])

    batch = jnp.stack([state, 2.0 * state])
    sizes = _operands(jax.make_jaxpr(lowered)(state).jaxpr)
    assert len(sizes) > 1
    # What is read and what is written share operands.
    assert max(sizes) <= most
    expected = jax.vmap(lambda x: one((rate,), x, ())[0])(batch)
    np.testing.assert_allclose(jax.jit(jax.vmap(lowered))(batch), expected, rtol=1e-12)


@pytest.mark.slow
def test_a_block_on_two_feet_runs_in_wide_batches():
    feet = {
        name: jfric.Contact({"y": 1.0, "a": side}, {"x": 1.0, "a": 0.3}, jfric.Coulomb(0.3), e=0.3)
        for name, side in (("l", -0.5), ("r", 0.5))
    }
    masses = {name: jfric.Mass(name, m) for name, m in (("x", 1.0), ("y", 1.0), ("a", 0.1))}
    block = jfric.Problem(
        ("x", "y", "a"),
        {"mass": masses, "contact": feet, "load": {"g": jfric.Load("y", -9.81)}},
        initial={"x": jfric.InitialState(v=1.0), "y": jfric.InitialState(0.05)},
        time=0.5,
    )

    def final(mu, kernel):
        solver = jfric.EventDriven(kernel=kernel, adjoint="none")
        return jfric.simulate(jfric.set_parameters(block, {"contact.l.mu": mu}), solver).final.q

    mu = jnp.linspace(0.1, 0.5, 256)
    wide = jax.jit(jax.vmap(lambda x: final(x, "lowered")))(mu)
    few = jax.jit(jax.vmap(lambda x: final(x, "general")))(mu[::51])
    np.testing.assert_allclose(wide[::51], few, rtol=0, atol=1e-12)
