"""Events and breakpoints exactly on the end of a run: derivatives of the motion before them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jfric
from jfric.results.status import Flag

MASS = {"mass": jfric.Mass("x", 1.0)}
FALL = {
    "load": jfric.Load("x", -2.0),
    "contact": jfric.Contact("x", e=0.5),
}
HALVED = jfric.Event("x - 1 m", "up", change={"v.x": "0.5*v.x"})
STOPPED = jfric.Event("x - 1 m", "up", "stop")
STEPPED = {
    "friction": jfric.Friction("x", limit=1.0),
    "load": jfric.Load("x", jfric.Steps([1.0], [3.0, -2.0])),
}
#: Elements, start, and derivatives of x and v at 1 s by the end, by x(0) and by v(0), in the motion
#: before the event.
CASES = {
    "stop": ({"friction": jfric.Friction("x", limit=1.0)}, (0.0, 1.0), [[0, 1, 1], [-1, 0, 1]]),
    "impact": (FALL, (1.0, 0.0), [[-2, 1, 1], [-2, 0, 1]]),
    "jump of a load": (STEPPED, (0.0, 0.0), [[2, 1, None], [2, 0, None]]),
    "user event": ({"event": {"e": HALVED}}, (0.0, 1.0), [[1, 1, 1], [0, 0, 1]]),
    "stop of the run": ({"event": {"e": STOPPED}}, (0.0, 1.0), [[1, 1, 1], [0, 0, 1]]),
}
KERNELS = [
    (case, kernel, mode)
    for case in CASES
    for kernel in ("general", "one-dof", "lowered")
    for mode in ("forward", "reverse")
    if (kernel, mode) != ("lowered", "reverse")
    if kernel != "one-dof" or case in ("stop", "jump of a load")
]
QUICK = [("stop", "one-dof", "forward"), ("impact", "general", "forward")]


def problem(elements, start, **more):
    return jfric.Problem(
        ["x"], MASS | elements, initial={"x": jfric.InitialState(*start)}, time=1.0, **more
    )


@pytest.mark.parametrize(
    ("case", "kernel", "mode"),
    [x if x in QUICK else pytest.param(*x, marks=pytest.mark.slow) for x in KERNELS],
)
def test_an_event_on_the_end_has_the_derivatives_of_the_motion_before_it(case, kernel, mode):
    elements, start, exact = CASES[case]
    paths = ["time.end", "initial.x.q", "initial.x.v"]
    general = kernel == "general" and mode == "reverse"
    solver = jfric.EventDriven(kernel=kernel, adjoint="reverse" if general else "auto")
    p = problem(elements, start)

    def end(x):
        changed = jfric.set_parameters(p, dict(zip(paths, x, strict=True)))
        found = jfric.simulate(changed, solver)
        return jnp.concatenate([found.final.q, found.final.v]), found

    gradient = jax.jacfwd if mode == "forward" else jax.jacrev
    at = jnp.asarray([1.0, *start])
    slopes, found = gradient(end, has_aux=True)(at)
    exact = np.asarray(exact, float)
    known = ~np.isnan(exact)
    np.testing.assert_allclose(slopes[known], exact[known], atol=1e-12)
    # Tables often end with the run: a jump there is no edge.
    edge = case != "jump of a load"
    assert Flag(int(found.flags)) == (Flag.ONE_SIDED if edge else 0)
    assert bool(found.differentiable) is not edge
    assert float(found.final.t) == 1.0


@pytest.mark.parametrize("shift", [-1, 0, 1])
def test_rounding_of_the_event_decides_nothing(shift):
    """A fall of 0.3 s, and ends beside the impact that cannot be told from it."""
    p = problem({"load": jfric.Load("x", -0.2), "contact": jfric.Contact("x", e=0.5)}, (0.009, 0.0))
    end = 0.3 * (1 + shift * np.finfo(float).eps)

    def last(end):
        found = jfric.simulate(p, jfric.EventDriven(adjoint="forward"), end=end)
        return found.final.v[0], found

    slope, found = jax.jacfwd(last, has_aux=True)(end)
    assert Flag.ONE_SIDED in Flag(int(found.flags))
    np.testing.assert_allclose([found.final.v[0], slope], [-0.06, -0.2], rtol=1e-12)


@pytest.mark.parametrize("solver", [jfric.EventDriven(), jfric.MoreauJean(0.125)])
def test_an_output_at_the_end_leaves_the_derivative_by_the_end_whole(solver):
    p = problem({"load": jfric.Load("x", 2.0)}, (0.0, 1.0))

    def last(end):
        return jfric.simulate(p, solver, ts=jnp.asarray([0.5, 1.0]), end=end).final.q[0]

    np.testing.assert_allclose(jax.jacfwd(last)(1.0), 3.0, rtol=1e-12)


@pytest.mark.parametrize(
    "solver",
    [
        jfric.EventDriven(),
        *(
            pytest.param(solver, marks=pytest.mark.slow)
            for solver in (jfric.MoreauJean(0.0625), jfric.Smoothed())
        ),
    ],
)
def test_a_sample_of_a_controller_on_the_end_or_an_output_is_a_jump_that_comes_later(solver):
    """One rule with the jumps of tables, without a flag: values and derivatives by the end, by an
    output and by the period are those of the motion before the sample."""
    controller = jfric.Controller("x", "load.motor", kp=1.0, period=0.125, reference=1.0)
    elements = {"load": {"motor": jfric.Load("x", 0.0)}, "controller": controller}
    p = problem(elements, (0.0, 1.0))

    def values(x):
        period, end, output = x
        found = jfric.simulate(
            jfric.set_parameters(p, {"controller.period": period}),
            solver,
            ts=jnp.stack([output]),
            end=end,
        )
        return jnp.concatenate([found.final.q, found.final.v, found.q[0], found.v[0]]), found

    at, h = jnp.array([0.125, 1.0, 0.5]), 1e-6
    slopes, found = jax.jit(jax.jacfwd(values, has_aux=True))(at)
    assert int(found.flags) == 0
    assert int(found.final.loops.taken[0]) == 8  # the ninth is due at the end
    value = jax.jit(lambda x: values(x)[0])
    for k, side in enumerate([1.0, -1.0, -1.0]):
        one = side * h * np.eye(3)[k]
        rates = side * (value(at + one) - value(at)) / h
        # Between the ends of its steps time stepping has straight lines.
        rows = slice(2 if isinstance(solver, jfric.MoreauJean) else 4)
        np.testing.assert_allclose(slopes[rows, k], rates[rows], atol=1e-4)


@pytest.mark.parametrize("solver", [jfric.QuasiStatic(), jfric.Smoothed()])
def test_an_output_on_the_end_has_its_whole_derivative(solver):
    """Half of it was that of the end."""
    springs = {"spring": jfric.Spring("x", 2.0), "load": jfric.Load("x", jfric.Ramp(3.0))}
    p = problem(springs, (0.0, 0.0))

    def at(t):
        return jfric.simulate(p, solver, ts=t[None]).q[0, 0]

    end = jnp.asarray(1.0)
    rate = (at(end) - at(end - 1e-6)) / 1e-6
    np.testing.assert_allclose(jax.jacfwd(at)(end), rate, rtol=1e-5)


@pytest.mark.parametrize("output", [0.5, 0.55])
def test_outputs_of_time_stepping_move_with_their_times(output):
    """Between the ends of steps the motion is a straight line."""
    p = problem({}, (0.0, 2.0))

    def at(t):
        return jfric.simulate(p, jfric.MoreauJean(0.125), ts=t[None]).q[0, 0]

    np.testing.assert_allclose(jax.jacfwd(at)(jnp.asarray(output)), 2.0, rtol=1e-12)


def test_integrals_up_to_an_event_on_the_end():
    """The mean of v over the way to the stop: d/dT (1/T int v dt) = (v(T) - mean)/T."""
    p = problem({"friction": jfric.Friction("x", limit=1.0)}, (0.0, 1.0))

    def mean(end):
        return jfric.observe(p, ["mean.v.x", "final.x"], end=end).values

    found = jax.jacfwd(mean)(1.0)
    np.testing.assert_allclose([found["mean.v.x"], found["final.x"]], [-0.5, 0.0], atol=1e-12)


def test_a_kink_of_a_load_on_the_end_is_no_edge():
    p = problem({"load": jfric.Load("x", jfric.PiecewiseLinear([0.0, 1.0], [0.0, 3.0]))}, (0, 0))
    slopes = jax.jacfwd(lambda end: jfric.simulate(p, end=end).final.v)(1.0)
    np.testing.assert_allclose(slopes, [3.0], rtol=1e-12)
    assert bool(jfric.simulate(p).differentiable)
