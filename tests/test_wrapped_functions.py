"""Functions of time that end, and those that are cut off at zero."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jfric
from jfric.files.read_toml import loads

jax.config.update("jax_enable_x64", True)

LINE = jfric.PiecewiseLinear([0.0, 1.0, 3.0], [-1.0, 2.0, -2.0])
ENDS = {
    "harmonic": (jfric.Harmonic(2.0, 3.0, 0.4), lambda t: 2.0 * np.sin(3.0 * t + 0.4)),
    "line": (LINE, lambda t: np.interp(t, [0.0, 1.0, 3.0], [-1.0, 2.0, -2.0])),
    "number": (5.0, lambda t: 5.0 + 0.0 * t),
    "sum": (jfric.Sum([LINE, jfric.Harmonic(1.0, 2.0)]),
            lambda t: np.interp(t, [0.0, 1.0, 3.0], [-1.0, 2.0, -2.0]) + np.sin(2.0 * t)),
}  # fmt: skip


@pytest.mark.parametrize("name", ENDS)
def test_a_function_that_ends(name):
    function, exact = ENDS[name]
    ended = jfric.Until(function, 1.7, after=-0.3)
    t = np.linspace(-1.0, 4.0, 501)
    found = jax.vmap(ended)(jnp.asarray(t))
    np.testing.assert_allclose(found, np.where(t < 1.7, exact(t), -0.3), atol=1e-14)
    assert float(ended(1.7)) == -0.3
    assert 1.7 in np.asarray(ended.breakpoints())


CUT = {
    "line": (LINE, {}),
    "lines and steps": (jfric.Sum([LINE, jfric.Steps([0.5, 2.5], [0.3, -0.6, 5.0])]), {}),
    "constant": (3.0, {}),
    "negative": (-3.0, {}),
    "ends": (jfric.Until(LINE, 2.9, after=1.0), {}),
    "harmonic": (jfric.Harmonic(2.0, 3.0, 0.4), {"end": 4.0}),
    "late phase": (jfric.Sum([0.5, jfric.Harmonic(2.0, 3.0, 40.0)]), {"end": 4.0}),
    "negative phase": (jfric.Sum([0.5, jfric.Harmonic(-2.0, 3.0, -40.0)]), {"periods": 2}),
    "always positive": (jfric.Sum([2.5, jfric.Harmonic(2.0, 3.0)]), {"end": 4.0}),
    "never positive": (jfric.Sum([-2.5, jfric.Harmonic(2.0, 3.0)]), {"end": 4.0}),
}


@pytest.mark.parametrize("name", CUT)
def test_a_function_cut_off_at_zero(name):
    function, options = CUT[name]
    cut = jfric.Clipped(function, **options)
    plain = function if callable(function) else lambda t: jnp.asarray(function)
    t = jnp.linspace(0.0, 4.0, 4001)
    expected = jnp.maximum(jax.vmap(plain)(t), 0.0)
    np.testing.assert_allclose(jax.vmap(cut)(t), expected, atol=1e-13)
    breaks = np.asarray(cut.breakpoints())
    assert np.all(np.diff(breaks) >= 0.0)
    # At every zero the next piece is the one after it.
    for z in breaks[(breaks > 0.0) & (breaks < 4.0)]:
        assert float(cut(z + 1e-9)) == pytest.approx(max(0.0, float(plain(z + 1e-9))), abs=1e-7)


def _pushed(load) -> jfric.Problem:
    return jfric.Problem(
        ["x"],
        {"mass": jfric.Mass("x", 1.0), "load": jfric.Load("x", load)},
        time=4.0,
    )


@pytest.mark.parametrize("flow", ["exact", pytest.param("runge-kutta", marks=pytest.mark.slow)])
def test_motion_under_them_in_closed_form(flow):
    solver = jfric.EventDriven(flow=flow)
    # max(0, sin t) over one period, and then nothing: v = 2 from pi on.
    load = jfric.Clipped(jfric.Harmonic(1.0, 1.0), end=4.0)
    final = jfric.simulate(_pushed(load), solver).final
    assert float(final.v[0]) == pytest.approx(2.0, abs=1e-9)
    assert float(final.q[0]) == pytest.approx(np.pi + 2.0 * (4.0 - np.pi), abs=1e-9)
    # A unit force for 1.5 s.
    final = jfric.simulate(_pushed(jfric.Until(1.0, 1.5)), solver).final
    assert float(final.v[0]) == pytest.approx(1.5, abs=1e-12)
    # Triangles: 2/3 * 2 / 2 + 1 * 2 / 2.
    final = jfric.simulate(_pushed(jfric.Clipped(LINE)), solver).final
    assert float(final.v[0]) == pytest.approx(2.0 / 3.0 + 1.0, abs=1e-9)


@pytest.mark.slow
def test_other_solvers_agree():
    for solver in (jfric.MoreauJean(1e-4), jfric.Smoothed()):
        load = jfric.Clipped(jfric.Harmonic(1.0, 1.0), end=4.0)
        assert float(jfric.simulate(_pushed(load), solver).final.v[0]) == pytest.approx(2, abs=1e-4)
    spring = jfric.Problem(
        ["x"],
        {"spring": jfric.Spring("x", 2.0), "load": jfric.Load("x", jfric.Clipped(LINE))},
        time=4.0,
    )
    found = jfric.simulate(spring, jfric.QuasiStatic(), ts=jnp.asarray([0.2, 1.0, 2.5])).q[:, 0]
    np.testing.assert_allclose(found, [0.0, 1.0, 0.0], atol=1e-12)


@pytest.mark.slow
def test_a_normal_force_that_lifts():
    """N = max(0, 1 - t): the block slows down by (1 - t) mu, for one second."""
    problem = jfric.Problem(
        ["x"],
        {
            "mass": jfric.Mass("x", 1.0),
            "friction": jfric.Friction(
                "x",
                jfric.Coulomb(0.5),
                N=jfric.Clipped(jfric.PiecewiseLinear([0.0, 4.0], [1.0, -3.0])),
            ),
        },
        initial={"x": jfric.InitialState(0.0, 1.0)},
        time=4.0,
    )
    for solver in (jfric.EventDriven(), jfric.MoreauJean(1e-3)):
        solution = jfric.simulate(problem, solver)
        assert int(solution.status) == 0
        assert float(solution.final.v[0]) == pytest.approx(0.75, abs=1e-6)


@pytest.mark.slow
def test_derivatives_by_the_end_and_by_a_zero():
    def speed(end):
        return jfric.simulate(_pushed(jfric.Until(jfric.Harmonic(1.0, 1.0), end))).final.v[0]

    assert float(jax.grad(speed)(1.2)) == pytest.approx(np.sin(1.2), rel=1e-9)

    def gained(level):
        line = jfric.PiecewiseLinear([0.0, 4.0], [level, level - 4.0])
        return jfric.simulate(_pushed(jfric.Clipped(line))).final.v[0]

    # The triangle level^2 / 2.
    assert float(gained(1.5)) == pytest.approx(1.125, rel=1e-9)
    assert float(jax.grad(gained)(1.5)) == pytest.approx(1.5, rel=1e-9)


@pytest.mark.parametrize(
    "function",
    [
        jfric.Sum([LINE, jfric.Harmonic(1.0, 1.0)]),
        jfric.Sum([jfric.Harmonic(1.0, 1.0), jfric.Harmonic(1.0, 2.0)]),
    ],
)
def test_what_has_no_closed_zeros_is_refused(function):
    with pytest.raises(jfric.ProblemError, match="a constant plus one harmonic"):
        jfric.Clipped(function, end=3.0)
    with pytest.raises(jfric.ProblemError, match="needs the time up to which"):
        jfric.Clipped(jfric.Harmonic(1.0, 1.0))


def test_zeros_of_the_whole_run_must_be_known():
    short = jfric.Clipped(jfric.Harmonic(1.0, 20.0), end=1.0)
    with pytest.raises(jfric.ProblemError, match=r"load.F: the zeros of the clipped harmonic are"):
        _pushed(short)

    problem = _pushed(jfric.Clipped(jfric.Harmonic(1.0, 1.0), end=4.0))

    # Under tracing the run says so.
    @jax.jit
    def status(omega):
        changed = jfric.set_parameters(problem, {"load.F.function.omega": omega})
        return jfric.simulate(changed, jfric.MoreauJean(1e-2)).status

    assert int(status(1.0)) == 0
    assert int(status(20.0)) == int(jfric.Status.NON_FINITE)


def test_in_files():
    text = """
    dofs = ["x"]
    time = {end = 4}
    mass = {dof = "x", m = 1}
    [load.a]
    dof = "x"
    F = {until = {function = {harmonic = {amplitude = "2 kN", omega = 3}}, end = "1500 ms"}}
    [load.b]
    dof = "x"
    F = {clipped = {function = {linear = {times = [0, 4], values = [1, -3]}}}}
    [load.c]
    dof = "x"
    F = {clipped = {function = {harmonic = {amplitude = 1, omega = 1}}, end = "4 s"}}
    """
    problem = loads(text).problem
    first = problem.elements["load"]["a"].F  # type: ignore[attr-defined]
    assert float(first.end) == 1.5
    assert float(first.function.amplitude) == 2000.0
    again = loads(jfric.to_toml(problem)).problem
    assert jax.tree.structure(again) == jax.tree.structure(jfric.build(problem))
    for a, b in zip(jax.tree.leaves(again), jax.tree.leaves(problem), strict=True):
        np.testing.assert_array_equal(a, b)
    wrong = text.replace('omega = 1}}, end = "4 s"', "omega = 1}}")
    with pytest.raises(jfric.ProblemError, match=r"load.c.F.clipped: a harmonic that is clipped"):
        loads(wrong)
